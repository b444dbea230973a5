/* SPDX-License-Identifier: Apache-2.0 */
/* How values of a type depend on its parameters (LANGUAGE §4 "Where sizes flow").
 *
 *     type Pair[a, b] { Pair(a, b) }                covariant: a Pair[T, b] is taken where Pair[U, b] is
 *                                                   asked, if a T is where a U is
 *     type Sink[a] { Sink(fn(a) -> ()) }            contravariant: the other way round
 *     type Cell[a] { Cell(Ref[a]) }                 invariant: T and U are one
 *
 * A size parameter in arithmetic in a function's parameter, as in fn(Tensor[(2 * n,), b]) -> (), is invariant: the
 * size does not tell which n it is for. */
#include "base/mem.h"
#include "types/solve/solver_impl.h"

typedef struct Use {
    Type *const *params;
    uint32_t n;
    uint8_t *of; /* for each param, the variance found so far */
    Map seen[4]; /* by variance: the nodes that were visited */
} Use;

static uint8_t flip_variance(uint8_t variance) {
    return (uint8_t)((variance & COVARIANT ? CONTRAVARIANT : 0) |
                     (variance & CONTRAVARIANT ? COVARIANT : 0));
}

static void note_use(Use *u, Type *t, uint8_t variance) {
    t = type_resolve(t);
    if (!(t->flags & TYPE_HAS_PARAMS) || variance == UNUSED || map_has(&u->seen[variance], t))
        return;
    map_set(&u->seen[variance], t, t);
    switch (t->tag) {
    case TY_PARAM:
        for (uint32_t i = 0; i < u->n; i++)
            if (u->params[i] == t)
                u->of[i] |= variance;
        return;
    case TY_TENSOR: note_use(u, t->tensor.shape, variance); return;
    case TY_TUPLE:
    case TY_SHAPE:
        for (uint32_t i = 0; i < t->nargs; i++)
            note_use(u, t->args[i], variance);
        return;
    case TY_DIM: {
        TypeVec params = {0};
        Map seen = {0};
        type_collect(t, TY_PARAM, &seen, &params);
        for (size_t i = 0; i < params.len; i++)
            note_use(u, params.data[i], variance == COVARIANT ? COVARIANT : INVARIANT);
        return;
    }
    case TY_FN:
        for (uint32_t i = 0; i < t->nargs; i++)
            note_use(u, t->args[i], flip_variance(variance));
        note_use(u, t->fn.result, variance);
        return;
    case TY_REF: note_use(u, t->elem, INVARIANT); return;
    case TY_DERIV: note_use(u, t->elem, variance); return;
    case TY_DATA: {
        const uint8_t *inner = variance_of(t->decl);
        for (uint32_t i = 0; i < t->nargs; i++)
            note_use(u, t->args[i],
                     inner[i] == COVARIANT       ? variance
                     : inner[i] == CONTRAVARIANT ? flip_variance(variance)
                                                 : inner[i]);
        return;
    }
    case TY_VAR:
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

/* Finds the variances as a fixed point. A recursive declaration uses its own as found so far, and is visited again
 * until nothing changes, since a use of one parameter may become a use of another. */
const uint8_t *variance_of(TypeDecl *decl) {
    if (decl->variance)
        return decl->variance;
    uint8_t *v = decl->variance = mem_new_n(uint8_t, decl->nparams + 1);
    for (uint32_t i = 0; i < decl->nparams; i++)
        v[i] = decl->is_extern ? INVARIANT : UNUSED;
    for (bool changed = true; changed;) {
        Use use = {.params = decl->params, .n = decl->nparams, .of = v};
        uint32_t before = 0, after = 0;
        for (uint32_t i = 0; i < decl->nparams; i++)
            before += v[i];
        for (uint32_t c = 0; c < decl->nctors; c++)
            for (uint32_t f = 0; f < decl->ctors[c]->nfields; f++)
                note_use(&use, decl->ctors[c]->fields[f], COVARIANT);
        for (uint32_t i = 0; i < decl->nparams; i++)
            after += v[i];
        changed = before != after;
    }
    return v;
}

Type *solver_var_of_data(Solver *s, TypeDecl *decl, uint32_t param) {
    Type *var = solver_var(s, decl->params[param]->kind);
    var->var.joins = var->kind == KIND_TYPE && !(variance_of(decl)[param] & CONTRAVARIANT);
    var->var.asked = sizes_asked_of(decl)[param];
    return var;
}

bool *scheme_joins(const Scheme *scheme) {
    bool *joins = mem_new_n(bool, scheme->nparams + 1);
    Use use = {.params = scheme->params,
               .n = scheme->nparams,
               .of = mem_new_n(uint8_t, scheme->nparams + 1)};
    Type *fn = type_resolve(scheme->type);
    Map related = {0};
    TypeVec params = {0};
    for (uint32_t i = 0; fn->tag == TY_FN && i < fn->nargs; i++)
        note_use(&use, fn->args[i], COVARIANT);
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        for (uint32_t k = 0; k < scheme->relations[i]->nargs; k++)
            type_collect(scheme->relations[i]->args[k], TY_PARAM, &related, &params);
    for (uint32_t i = 0; i < scheme->nparams; i++)
        joins[i] = scheme->params[i]->kind == KIND_TYPE && !(use.of[i] & CONTRAVARIANT) &&
                   !map_has(&related, scheme->params[i]);
    return joins;
}
