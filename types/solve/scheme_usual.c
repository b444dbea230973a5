/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a scheme that is shown: where a product's two operands may have any rank, the usual one
 * is printed, that of two matrices:
 *
 *     fn (x, w) { x @@ w }     fn [n, k, m, b](Tensor[(n, k), b], Tensor[(k, m), b]) -> Tensor[(n, m), b]
 *
 * The scheme itself stays general (vectors and batches are taken), and `:type!` shows it with its
 * relation. Found by solving an instance under that assumption, in a solver of its own. */
#include <string.h>

#include "types/solve/solver_impl.h"

/* An operand of which nothing is known but that it is a tensor. */
static bool is_open_tensor(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_VAR)
        return true;
    return t->tag == TY_TENSOR && type_resolve(t->tensor.shape)->tag == TY_VAR;
}

static bool is_product(const Relation *r) {
    return strcmp(r->def->name, "MatMul") == 0 && r->nargs == 3;
}

static Type *matrix(Type *rows, Type *columns, Type *dtype) {
    Type *dims[] = {rows, columns};
    return type_tensor(type_shape(dims, 2), dtype);
}

static bool assume_matrices(Solver *s, Relation *r) {
    Type *n = solver_var_named(s, KIND_DIM, sym_intern("n"));
    Type *k = solver_var_named(s, KIND_DIM, sym_intern("k"));
    Type *m = solver_var_named(s, KIND_DIM, sym_intern("m"));
    Type *dtype = solver_var(s, KIND_DTYPE);
    return solver_unify(s, r->args[0], matrix(n, k, dtype)) &&
           solver_unify(s, r->args[1], matrix(k, m, dtype));
}

const Scheme *scheme_usual(const Scheme *scheme) {
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
        return scheme; /* inside a definition still being inferred */
    for (size_t i = 0; i < s->waiting.len; i++) {
        Relation *r = s->waiting.data[i];
        if (r->status == REL_WAIT && is_product(r) && is_open_tensor(r->args[0]) &&
            is_open_tensor(r->args[1]) && (!assume_matrices(s, r) || !solver_run(s)))
            return scheme;
    }
    Scheme *usual = scheme_generalise(s, t, false);
    return quiet.errors ? scheme : usual;
}
