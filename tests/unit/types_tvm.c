/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's tests of its type solver (tests/python/relay/test_type_solver.py), each under its name there, without `test_`:
 * what is unified, what relations find forwards and backwards, what is refused. Relations there have
 * an identity as one of them; here that is the relation of the element-wise operators, or equality. A
 * quantified type there is unified as it stands; here a scheme is instantiated and then unified, and
 * declared parameters are rigid. */
#include "ops/relate/relations.h"
#include "tests/unit/check.h"
#include "types/op.h"
#include "types/solve/solver.h"

extern const Op op_copy;

static Solver *s;

static void begin(void) {
    Diags *diags = mem_new(Diags);
    s = solver_new(diags);
    solver_enter(s);
}

static Type *var(void) { return solver_var(s, KIND_TYPE); }

static Type *tensor(uint32_t rank, const int64_t *sizes) {
    Type **dims = mem_new_n(Type *, rank + 1);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = type_dim_int(sizes[i], NULL);
    return type_tensor(type_shape(dims, rank), type_dtype(DT_F32));
}
#define TENSOR(...)                                                                                \
    tensor(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static Type *tuple(uint32_t n, Type *const *items) {
    Type **args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = items[i];
    return type_tuple(args, n);
}
#define TUPLE(...) tuple(sizeof((Type *[]){__VA_ARGS__}) / sizeof(Type *), (Type *[]){__VA_ARGS__})

static Type *fn(uint32_t n, Type *const *params, Type *result) {
    Type **args = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        args[i] = params[i];
    return type_fn(args, n, result, solver_var(s, KIND_EFFECT));
}
#define FN(result, ...)                                                                            \
    fn(sizeof((Type *[]){__VA_ARGS__}) / sizeof(Type *), (Type *[]){__VA_ARGS__}, result)

static void relate(const Op *op, Type **args, uint32_t n) {
    Type **own = mem_new_n(Type *, n);
    for (uint32_t i = 0; i < n; i++)
        own[i] = args[i];
    Relation *r = solver_post(s, op->relation, own, n, NULL, span_none());
    r->op = op;
}

static Type *add(Type *a, Type *b) {
    Type *args[] = {a, b, var()};
    relate(&op_add, args, 3);
    return args[2];
}

static void identity(Type *a, Type *b) {
    Type *args[] = {a, b};
    relate(&op_copy, args, 2);
}

static const char *text(Type *t) { return type_text(type_zonk(t)); }

/* A data type of n parameters, without constructors. */
static TypeDecl *declare(const char *name, uint32_t n) {
    TypeDecl *d = mem_new(TypeDecl);
    d->name = sym_intern(name);
    d->nparams = n;
    d->params = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        d->params[i] = type_param(sym_intern("p"), KIND_TYPE);
    return d;
}

static Type *data(TypeDecl *d, Type *a, Type *b) {
    Type **args = mem_new_n(Type *, 2);
    args[0] = a;
    args[1] = b;
    return type_data(d, args, d->nparams);
}

/* ---- relations ------------------------------------------------------------------------------- */

TEST(bcast) {
    begin();
    Type *sum = add(TENSOR(10, 20), TENSOR(10, 1)), *same = var();
    identity(sum, same);
    Type *more = add(same, TENSOR(10, 1, 1));
    CHECK(solver_run(s));
    CHECK_TEXT(text(sum), "Tensor[(10, 20), float32]");
    CHECK_TEXT(text(more), "Tensor[(10, 10, 20), float32]");
}

TEST(backward_solving) {
    begin();
    Type *open = var();
    Type *sum = add(TENSOR(10, 20), open);
    identity(open, TENSOR(10, 1, 1));
    CHECK(solver_run(s));
    CHECK_TEXT(text(sum), "Tensor[(10, 10, 20), float32]");
}

TEST(recursive_backward_solving) {
    begin();
    Type *a = var(), *b = var(), *c = var();
    Type *open = TUPLE(TUPLE(a, b), c);
    CHECK(solver_unify(s, TUPLE(TUPLE(TENSOR(10, 20), TENSOR(10, 1, 1)), TENSOR(10)), open));
    CHECK_TEXT(
        text(open),
        "((Tensor[(10, 20), float32], Tensor[(10, 1, 1), float32]), Tensor[(10,), float32])");
}

TEST(backward_solving_after_child_update) {
    begin();
    Type *a = var(), *b = var(), *c = var(), *x = var(), *y = var();
    CHECK(solver_unify(s, x, TUPLE(a, b)) && solver_unify(s, y, TUPLE(a, c)));
    CHECK(solver_unify(s, x, y));
    CHECK(type_resolve(b) == type_resolve(c));
    CHECK_TEXT(text(x), "(a, b)");
    CHECK(type_equal(x, y));
    identity(a, TENSOR(10, 20)); /* found inside the tuples: both have it */
    identity(b, TENSOR(10, 1, 1));
    CHECK(solver_run(s));
    CHECK_TEXT(text(x), "(Tensor[(10, 20), float32], Tensor[(10, 1, 1), float32])");
    CHECK(type_equal(x, y));
}

/* ---- unification ----------------------------------------------------------------------------- */

TEST(unify_tuple) {
    begin();
    Type *open = TUPLE(var(), var());
    CHECK(solver_unify(s, open, TUPLE(TENSOR(10, 20), TENSOR(10, 20))));
    CHECK_TEXT(text(open), "(Tensor[(10, 20), float32], Tensor[(10, 20), float32])");
}

TEST(unify_global_type_var) {
    begin();
    TypeDecl *d = declare("gtv", 0);
    CHECK(solver_unify(s, data(d, NULL, NULL), data(d, NULL, NULL)));
}

TEST(unify_typecall) {
    begin();
    TypeDecl *d = declare("gtv", 2);
    Type *open = data(d, var(), var());
    CHECK(solver_unify(s, open, data(d, TENSOR(10, 20), TENSOR(10, 20))));
    CHECK_TEXT(text(open), "gtv[Tensor[(10, 20), float32], Tensor[(10, 20), float32]]");
}

TEST(unify_functype) {
    begin();
    Type *open = FN(var(), var(), var());
    CHECK(solver_unify(s, open, FN(type_unit(), TENSOR(10, 20), TENSOR(10))));
    CHECK_TEXT(text(open), "fn(Tensor[(10, 20), float32], Tensor[(10,), float32]) -> ()");
}

TEST(recursive_unify) {
    begin();
    Type *a = var(), *b = var(), *c = var();
    Type *open = FN(c, TUPLE(TUPLE(a, b), b), c);
    Type *t2 = TENSOR(10, 20), *t1 = TENSOR(10);
    CHECK(solver_unify(s, open, FN(t1, TUPLE(TUPLE(TENSOR(10, 10, 20), t2), t2), t1)));
    CHECK_TEXT(text(open), "fn(((Tensor[(10, 10, 20), float32], Tensor[(10, 20), float32]), "
                           "Tensor[(10, 20), float32]), Tensor[(10,), float32]) -> "
                           "Tensor[(10,), float32]");
}

TEST(unify_vars_under_tuples) {
    begin();
    Type *a = var(), *b = var();
    Type *twice = TUPLE(a, a);
    CHECK(solver_unify(s, twice, twice));
    CHECK_TEXT(text(twice), "(a, a)");
    CHECK(solver_unify(s, TUPLE(a, b), TUPLE(b, a)));
    CHECK(type_resolve(a) == type_resolve(b));
}

TEST(binding_over_typevars) {
    begin();
    Type *a = solver_rigid(s, KIND_TYPE, sym_intern("a"));
    Type *b = solver_rigid(s, KIND_TYPE, sym_intern("b"));
    Type *open = FN(var(), var());
    CHECK(solver_unify(s, open, FN(b, a)));
    CHECK_TEXT(text(open), "fn(a) -> b");
}

/* ---- quantified functions: instances --------------------------------------------------------- */

/* An instance of `fn [a, b, c](…) -> …` over fresh variables. */
typedef struct Vars {
    Type *a, *b, *c;
} Vars;

static Vars instance(void) { return (Vars){var(), var(), var()}; }

TEST(unify_quantified_funcs) {
    begin();
    Vars v = instance(), w = instance();
    Type *f = FN(v.c, v.a, v.b), *g = FN(w.a, w.a, w.a);
    CHECK(solver_unify(s, f, g));
    CHECK_TEXT(text(f), "fn(a, a) -> a");
    v = instance();
    w = instance();
    f = FN(v.a, v.a);
    g = FN(w.c, w.b);
    CHECK(solver_unify(s, f, g));
    CHECK_TEXT(text(g), "fn(a) -> a");
}

TEST(unify_quantified_func_and_concrete) {
    begin();
    Vars v = instance(), w = instance();
    Type *f = FN(v.b, v.a);
    CHECK(solver_unify(s, f, FN(type_unit(), w.b)));
    CHECK_TEXT(text(f), "fn(a) -> ()");
}

TEST(unify_quantified_funcs_nesting) {
    begin();
    Vars v = instance(), w = instance();
    Type *f = FN(TUPLE(v.a, v.b, v.c), v.a, TUPLE(v.b, v.c));
    CHECK(solver_unify(s, f, FN(TUPLE(w.a, w.a, w.a), w.a, TUPLE(w.a, w.a))));
    CHECK_TEXT(text(f), "fn(a, (a, a)) -> (a, a, a)");
}

/* Commented out there: it crashed. */
TEST(unify_quantified_funcs_var_order) {
    begin();
    Vars v = instance(), w = instance();
    Type *f = FN(TUPLE(v.a, v.b, v.c), v.a, TUPLE(v.b, v.c));
    CHECK(solver_unify(s, f, FN(TUPLE(w.a, w.a, w.c), w.a, TUPLE(w.a, w.c))));
    CHECK_TEXT(text(f), "fn(a, (a, b)) -> (a, a, b)");
}

/* ---- what is refused ------------------------------------------------------------------------- */

TEST(incompatible_tuple_unification) {
    begin();
    Type *a = var(), *b = var();
    CHECK(!solver_unify(s, TUPLE(TUPLE(a, a), b),
                        TUPLE(TUPLE(TENSOR(1, 2, 3), TENSOR(2, 3)), TENSOR(3))));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_RANK);
    CHECK_TEXT(solver_mismatch(s)->path, "0.1");
}

TEST(bad_recursive_unification) {
    begin();
    Type *a = var();
    CHECK(!solver_unify(s, a, TUPLE(a, a)));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_OCCURS);
}

TEST(unify_invalid_global_typevars) {
    begin();
    CHECK(!solver_unify(s, data(declare("gtv1", 0), NULL, NULL),
                        data(declare("gtv2", 0), NULL, NULL)));
}

TEST(incompatible_typecall_var_unification) {
    begin();
    CHECK(!solver_unify(s, data(declare("gtv1", 1), var(), NULL),
                        data(declare("gtv2", 1), var(), NULL)));
}

TEST(incompatible_typecall_args_unification) {
    begin();
    TypeDecl *d = declare("gtv1", 2);
    Type *a = var(), *b = var();
    CHECK(!solver_unify(s, data(d, TUPLE(a, a), b),
                        data(d, TUPLE(TENSOR(1, 2, 3), TENSOR(2, 3)), TENSOR(3))));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_RANK);
}

/* There a quantified result does not meet a tuple of another parameter; an instance of ours may, as
 * both are free, but declared parameters are rigid and do not. */
TEST(incompatible_quantified_func_unification) {
    begin();
    Type *a = solver_rigid(s, KIND_TYPE, sym_intern("a"));
    Type *b = solver_rigid(s, KIND_TYPE, sym_intern("b"));
    Type *c = solver_rigid(s, KIND_TYPE, sym_intern("c"));
    CHECK(!solver_unify(s, FN(c, a, b), FN(TUPLE(a), b, c)));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_RIGID);
}

int main(void) {
    RUN(bcast);
    RUN(backward_solving);
    RUN(recursive_backward_solving);
    RUN(backward_solving_after_child_update);
    RUN(unify_tuple);
    RUN(unify_global_type_var);
    RUN(unify_typecall);
    RUN(unify_functype);
    RUN(recursive_unify);
    RUN(unify_vars_under_tuples);
    RUN(binding_over_typevars);
    RUN(unify_quantified_funcs);
    RUN(unify_quantified_func_and_concrete);
    RUN(unify_quantified_funcs_nesting);
    RUN(unify_quantified_funcs_var_order);
    RUN(incompatible_tuple_unification);
    RUN(bad_recursive_unification);
    RUN(unify_invalid_global_typevars);
    RUN(incompatible_typecall_var_unification);
    RUN(incompatible_typecall_args_unification);
    RUN(incompatible_quantified_func_unification);
    return check_result();
}
