/* SPDX-License-Identifier: Apache-2.0 */
/* Relations and schemes as text.
 *
 * Note [The usual form]. Where the two operands of a product may have any rank, the scheme is shown for matrices:
 *
 *     fn (x, w) { x @@ w }     fn [n, k, m, b](Tensor[(n, k), b], Tensor[(k, m), b]) -> Tensor[(n, m), b]
 *
 * The scheme itself stays general and takes vectors and batches too. `:type!` shows it with its relation. The usual
 * form is found by solving an instance under this assumption, in a solver of its own. */
#include <string.h>

#include "types/op.h"
#include "types/solve/solver_impl.h"
#include "types/type/print.h"

/* ---- relations ------------------------------------------------------------------------------- */

void relation_print(Str *out, const Relation *r, TypeNamer *namer) {
    str_add(out, r->def->name);
    str_add_char(out, '(');
    uint32_t n = r->nargs;
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(out, ", ");
        if (i + 1 == n && r->def == &rel_field)
            str_printf(out, "%s, ", ((const Symbol *)r->data)->text);
        if (i + 1 == n && r->def == &rel_proj)
            str_printf(out, "%lld, ", (long long)*(const int64_t *)r->data);
        if (i == 1 && n == 3 && r->def == &rel_index && r->data) /* a constant position */
            str_printf(out, "(%lld,)", (long long)*(const int64_t *)r->data);
        else
            type_print_part(out, r->args[i], namer);
        if (n == 2 && i == 0 && is_broadcast(r->def)) { /* a set of one input is written twice */
            str_add(out, ", ");
            type_print_part(out, r->args[i], namer);
        }
    }
    if (r->attrs) {
        Str attrs = {0};
        attrs_print(&attrs, r->attrs);
        if (attrs.len)
            str_printf(out, ", %s", attrs.text);
    }
    str_add_char(out, ')');
}

/* ---- the usual form -------------------------------------------------------------------------- */

/* Whether nothing is known of an operand but that it is a tensor. */
static bool is_open_tensor(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_VAR)
        return true;
    return t->tag == TY_TENSOR && type_resolve(t->tensor.shape)->tag == TY_VAR;
}

static bool is_product(const Relation *r) { return r->def == op_matmul.relation; }

static Type *make_matrix(Type *rows, Type *columns, Type *dtype) {
    Type *dims[] = {rows, columns};
    return type_tensor(type_shape(dims, 2), dtype);
}

static bool assume_matrices(Solver *s, Relation *r) {
    Type *n = solver_var_named(s, KIND_DIM, sym_intern("n"));
    Type *k = solver_var_named(s, KIND_DIM, sym_intern("k"));
    Type *m = solver_var_named(s, KIND_DIM, sym_intern("m"));
    Type *dtype = solver_var(s, KIND_DTYPE);
    return solver_unify(s, r->args[0], make_matrix(n, k, dtype)) &&
           solver_unify(s, r->args[1], make_matrix(k, m, dtype));
}

static const Scheme *scheme_find_usual(const Scheme *scheme) {
    bool any = false;
    for (uint32_t i = 0; i < scheme->nrelations && scheme->ndeclared == 0; i++)
        any = any || is_product(scheme->relations[i]);
    if (!any)
        return scheme;
    Diags quiet = {0};
    Solver *s = solver_new(&quiet);
    solver_enter(s);
    Type *t = scheme_instantiate(s, scheme, span_none(), NULL, 0, NULL);
    if (type_has_vars(scheme->type) || !solver_run(s))
        return scheme; /* the definition is still being inferred */
    for (size_t i = 0; i < s->waiting.len; i++) {
        Relation *r = s->waiting.data[i];
        if (r->status == REL_WAIT && is_product(r) && is_open_tensor(r->args[0]) &&
            is_open_tensor(r->args[1]) && (!assume_matrices(s, r) || !solver_run(s)))
            return scheme;
    }
    Scheme *usual = scheme_generalise(s, t, false);
    return quiet.errors ? scheme : usual;
}

/* ---- schemes --------------------------------------------------------------------------------- */

/* Names type variables by their positions in the only relation, as in Broadcast(Tensor[(n, m), t], b, c). It must
 * be a Broadcast in which they stand in the same order as in the type. */
static void name_by_position(const Scheme *scheme, TypeNamer *namer) {
    const Relation *only = NULL;
    for (uint32_t i = 0; i < scheme->nrelations; i++) {
        if (scheme->relations[i]->def->implicit)
            continue;
        if (only)
            return;
        only = scheme->relations[i];
    }
    if (!only || strcmp(only->def->name, rel_broadcast.name) != 0 || only->nargs > 6)
        return;
    uint32_t next = 0;
    for (uint32_t i = 0; i < scheme->nparams; i++) {
        Type *p = scheme->params[i];
        if (p->kind != KIND_TYPE)
            continue;
        while (next < only->nargs && type_resolve(only->args[next]) != p)
            next++;
        if (next++ == only->nargs || p->param.name)
            return;
    }
    for (uint32_t i = 0; i < only->nargs; i++) {
        Type *arg = type_resolve(only->args[i]);
        const Symbol *name = sym_intern_n(&"abcdef"[i], 1);
        if (arg->tag == TY_PARAM && arg->kind == KIND_TYPE && !map_has(&namer->names, arg) &&
            !map_has(&namer->taken, name))
            namer_take(namer, arg, name);
    }
}

/* Prints declared parameters in the order of their declaration, then dims, shapes, dtypes and types. */
static void print_quantifiers(Str *out, const Scheme *scheme, TypeNamer *namer) {
    static const Kind order[] = {KIND_DIM, KIND_SHAPE, KIND_DTYPE, KIND_TYPE, KIND_EFFECT};
    bool any = false;
    for (uint32_t i = 0; i < scheme->ndeclared; i++) {
        str_add(out, any ? ", " : "");
        str_add(out, namer_name(namer, scheme->params[i])->text);
        any = true;
    }
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        if (order[k] == KIND_EFFECT && !namer->show_effects)
            continue;
        for (uint32_t i = scheme->ndeclared; i < scheme->nparams; i++) {
            if (scheme->params[i]->kind != order[k])
                continue;
            str_add(out, any ? ", " : "");
            str_add(out, namer_name(namer, scheme->params[i])->text);
            any = true;
        }
    }
}

static void print_where(Str *out, const Scheme *scheme, TypeNamer *namer) {
    const char *sep = " where ";
    for (uint32_t i = 0; i < scheme->nrelations && out->len <= TYPE_PRINT_LIMIT; i++) {
        if (scheme->relations[i]->def->implicit)
            continue;
        str_add(out, sep);
        relation_print(out, scheme->relations[i], namer);
        sep = ", ";
    }
    for (uint32_t i = 0; i < scheme->nparams; i++) {
        Type *p = scheme->params[i];
        if (p->kind != KIND_DTYPE)
            continue;
        const RelDef *class = rel_of_dtypes(p->param.dtypes);
        if (!class || class->implicit)
            continue;
        str_printf(out, "%s%s(%s)", sep, class->name, namer_name(namer, p)->text);
        sep = ", ";
    }
}

void scheme_print(Str *out, const Scheme *scheme, TypeNamer *namer) {
    TypeNamer fresh = {0};
    if (!namer)
        namer = &fresh;
    scheme = scheme_open_uses(scheme);
    if (!namer->show_effects)
        scheme = scheme_find_usual(scheme);
    TypeVec parts = {0};
    vec_push(&parts, scheme->type);
    bool closed = !scheme->ndeclared && !(type_resolve(scheme->type)->flags & TYPE_HAS_PARAMS);
    if (closed) { /* what its relations ask of variables that it does not show, nothing can decide */
        type_print(out, scheme->type, namer);
        return;
    }
    for (uint32_t i = 0; i < scheme->nrelations; i++)
        for (uint32_t k = 0; k < scheme->relations[i]->nargs; k++)
            vec_push(&parts, scheme->relations[i]->args[k]);
    namer_count_unknowns(namer, parts.data, parts.len);
    for (uint32_t i = 0; i < scheme->ndeclared; i++)
        namer_name(namer, scheme->params[i]);
    name_by_position(scheme, namer);
    for (uint32_t i = 0; i < scheme->nparams; i++) /* in order of appearance */
        if (scheme->params[i]->kind != KIND_EFFECT)
            namer_name(namer, scheme->params[i]);
    Type *t = type_resolve(scheme->type);
    Str body = {0}, quantifiers = {0}, where = {0};
    if (t->tag == TY_FN)
        type_print_signature(&body, t, namer);
    else
        type_print_part(&body, t, namer);
    print_quantifiers(&quantifiers, scheme, namer);
    print_where(&where, scheme, namer);
    if (t->tag == TY_FN && quantifiers.len)
        str_printf(out, "fn [%s]", str_text(&quantifiers));
    else if (t->tag == TY_FN)
        str_add(out, "fn");
    else if (where.len)
        str_printf(out, "forall (%s), ", str_text(&quantifiers));
    type_print_append(out, &body);
    type_print_append(out, &where);
}
