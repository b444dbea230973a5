/* SPDX-License-Identifier: Apache-2.0 */
/* Declared parameters that a body fixes (R0218). Without a `where` the relations of declared parameters are
 * inferred. But a parameter to which they leave no choice is not a parameter:
 *
 *     def f[s](x: Tensor[s, float32]) -> Tensor[(2, 3), float32] { nn.pad(x, 0.0, pad_width=[[0, 0], [1, 1]]) }
 *
 * s is rigid while the body is inferred, so that Pad(Tensor[s, float32], float32, Tensor[(2, 3), float32])
 * waits, and would find s = (2, 1) at each call. So an instance of the waiting relations is solved here, in a solver
 * of its own. Relations that leave a choice, as in (n, 1), are inferred. Relations that no call can fulfil are
 * refused, with the message that each call would get. */
#include "base/mem.h"
#include "types/solve/solver_impl.h"

/* The types that relations give to the parameters, once the relations are solved. */
typedef struct Instance {
    uint32_t n;
    Type **params, **types;
    Diag *refused; /* why there is no instance, or NULL */
} Instance;

static Type *make_fresh(Solver *s, const Type *t) {
    Type *v = solver_var(s, t->kind);
    if (t->kind == KIND_DTYPE)
        v->var.dtypes = t->tag == TY_VAR ? t->var.dtypes : t->param.dtypes;
    return v;
}

static Instance solve_instance(Relation *const *relations, size_t n, Type **params,
                               uint32_t nparams) {
    Diags quiet = {0};
    Solver *s = solver_new(&quiet);
    solver_enter(s);
    Instance out = {.n = nparams, .params = params, .types = mem_new_n(Type *, nparams + 1)};
    TypeVec from = {0}, to = {0};
    Map seen = {0};
    for (uint32_t i = 0; i < nparams; i++)
        vec_push(&from, params[i]);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < relations[i]->nargs; k++)
            type_collect(relations[i]->args[k], TY_VAR, &seen, &from);
    for (size_t i = 0; i < from.len; i++)
        vec_push(&to, make_fresh(s, from.data[i]));
    Substitution by = substitution_new(from.data, to.data, (uint32_t)from.len);
    for (size_t i = 0; i < n; i++)
        solver_add(s, relation_copy(relations[i], &by));
    if (!solver_run(s) && quiet.list.len)
        out.refused = quiet.list.data[0];
    for (uint32_t i = 0; i < nparams; i++)
        out.types[i] = type_resolve(to.data[i]);
    return out;
}

/* The type of parameter i in every instance, in terms of the other parameters. NULL where it is open. */
static Type *find_fixed(const Instance *in, uint32_t i) {
    Type *t = in->types[i];
    TypeVec from = {0}, to = {0}, left = {0};
    Map seen = {0};
    for (uint32_t k = 0; k < in->n; k++)
        if (in->types[k]->tag == TY_VAR && (t->tag != TY_VAR || k < i)) {
            vec_push(&from, in->types[k]);
            vec_push(&to, in->params[k]);
        }
    t = type_substitute(t, from.data, to.data, (uint32_t)from.len);
    type_collect(t, TY_VAR, &seen, &left);
    return t->tag == TY_ANY || left.len ? NULL : t;
}

static bool mentions(const Relation *r, Type *param) {
    for (uint32_t i = 0; i < r->nargs; i++)
        if (type_mentions(r->args[i], &param, 1))
            return true;
    return false;
}

/* Blames one relation that fixes parameter i alone, or else the first that mentions it. */
static void report_fixed(Solver *s, const RelationVec *relations, const Instance *in, uint32_t i) {
    Relation *blamed = NULL;
    Type *must = find_fixed(in, i);
    for (size_t k = 0; k < relations->len; k++) {
        Relation *r = relations->data[k];
        if (!mentions(r, in->params[i]))
            continue;
        Instance own = solve_instance(&r, 1, in->params, in->n);
        Type *found = own.refused ? NULL : find_fixed(&own, i);
        blamed = blamed ? blamed : r;
        if (found) {
            blamed = r;
            must = found;
            break;
        }
    }
    int arg = -1;
    for (uint32_t k = 0; blamed && arg < 0 && k + 1 < blamed->nargs; k++)
        if (type_mentions(blamed->args[k], &in->params[i], 1))
            arg = (int)k;
    if (blamed)
        rel_refuse_rigid(s, blamed, arg, in->params[i], must);
}

bool narrow_check_declared(Solver *s, const RelationVec *relations, Type **params, uint32_t n) {
    RelationVec waiting = {0};
    for (size_t i = 0; i < relations->len; i++)
        if (relations->data[i]->status == REL_WAIT)
            vec_push(&waiting, relations->data[i]);
    bool any = false;
    for (size_t i = 0; i < waiting.len && !any; i++)
        for (uint32_t k = 0; k < n && !any; k++)
            any = mentions(waiting.data[i], params[k]);
    if (!any)
        return true;
    Instance in = solve_instance(waiting.data, waiting.len, params, n);
    if (in.refused) {
        diag_report(s->diags, in.refused);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (find_fixed(&in, i)) {
            report_fixed(s, &waiting, &in, i);
            return false;
        }
    return true;
}
