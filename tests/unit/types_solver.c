/* SPDX-License-Identifier: Apache-2.0 */
/* Unification, relations, laws and schemes, without syntax. */
#include "tests/unit/check.h"
#include "types/op.h"
#include "types/solve/solver.h"

static Diags diags;
static Solver *s;

static void begin(void) {
    diags = (Diags){0};
    s = solver_new(&diags);
    solver_enter(s);
}

static Type *var(Kind kind) { return solver_var(s, kind); }

static Type *dim(int64_t n) { return type_dim_int(n, NULL); }

static Type *tensor2(Type *a, Type *b, Type *dtype) {
    Type *dims[] = {a, b};
    return type_tensor(type_shape(dims, 2), dtype);
}

static Type *tensor1(Type *a, Type *dtype) { return type_tensor(type_shape(&a, 1), dtype); }

static Type *f32(void) { return type_dtype(DT_F32); }

static Type *apply(const Op *op, Type *a, Type *b) {
    Type *args[] = {a, b, var(KIND_TYPE)};
    Relation *r = solver_post(s, op->relation, args, 3, NULL, span_none());
    r->op = op;
    return args[2];
}

static Type *add(Type *a, Type *b) { return apply(&op_add, a, b); }

static Type *literal(bool is_float) {
    return type_tensor(type_shape(NULL, 0), solver_weak_dtype(s, is_float, span_none()));
}

static Type *fn2(Type *a, Type *b, Type *result) {
    Type *params[] = {a, b};
    return type_fn(params, 2, result, var(KIND_EFFECT));
}

static Type *fn1(Type *a, Type *result) { return type_fn(&a, 1, result, var(KIND_EFFECT)); }

static const char *scheme_text(const Scheme *scheme) {
    Str out = {0};
    if (!scheme)
        return "NULL";
    scheme_print(&out, scheme, NULL);
    return str_text(&out);
}

static const char *general(Type *t) { return scheme_text(scheme_generalise(s, t, false)); }

static const char *message(void) { return diags.list.len ? diags.list.data[0]->message : ""; }

static RelStatus relate_matmul(Solver *solver, Relation *r) {
    Type *n = solver_var_named(solver, KIND_DIM, sym_intern("n"));
    Type *k = solver_var_named(solver, KIND_DIM, sym_intern("k"));
    Type *m = solver_var_named(solver, KIND_DIM, sym_intern("m"));
    Type *b = solver_var(solver, KIND_DTYPE);
    return rel_unify(solver, r, 0, tensor2(n, k, b)) && rel_unify(solver, r, 1, tensor2(k, m, b)) &&
                   rel_unify(solver, r, -1, tensor2(n, m, b))
               ? REL_DONE
               : REL_FAIL;
}
static const RelDef rel_matmul = {.name = "Matmul", .relate = relate_matmul, .nargs = 3};
static const Op simple_matmul = {
    .name = "matmul", .args = "a, b", .nargs = 2, .relation = &rel_matmul};

static RelStatus relate_relu(Solver *solver, Relation *r) {
    Type *t = solver_tensor_var(solver);
    return rel_unify(solver, r, 0, t) && rel_unify(solver, r, -1, t) ? REL_DONE : REL_FAIL;
}
static const RelDef rel_relu = {.name = "Identity", .relate = relate_relu, .nargs = 2};

static Type *relu(Type *a) {
    Type *args[] = {a, var(KIND_TYPE)};
    solver_post(s, &rel_relu, args, 2, NULL, span_none());
    return args[1];
}

/* ---- printing -------------------------------------------------------------------------------- */

TEST(prints_types) {
    begin();
    Type *parts[] = {type_scalar(DT_F32), tensor1(dim(3), f32())};
    CHECK_TEXT(type_text(type_tuple(parts, 2)), "(float32, Tensor[(3,), float32])");
    CHECK_TEXT(type_text(type_tuple(parts, 1)), "(float32,)");
    CHECK_TEXT(type_text(type_unit()), "()");
    CHECK_TEXT(type_text(type_ref(type_scalar(DT_I32))), "ref(int32)");
    CHECK_TEXT(type_text(solver_tensor_var(s)), "Tensor[s, b]");
    CHECK_TEXT(type_text(tensor2(type_any(KIND_DIM, NULL), dim(2), f32())),
               "Tensor[(?, 2), float32]");
    Type *any = type_any(KIND_DIM, NULL);
    CHECK_TEXT(type_text(tensor2(any, any, f32())), "Tensor[(?1, ?1), float32]");
}

TEST(long_types_are_cut) {
    begin();
    Type *t = type_scalar(DT_F32);
    for (int i = 0; i < 60; i++) {
        Type *pair[] = {t, t};
        t = type_tuple(pair, 2);
    }
    size_t n = strlen(type_text(t));
    CHECK(n >= 2000 && n < 2100);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

TEST(dims_are_polynomials) {
    begin();
    Type *n = type_param(sym_intern("n"), KIND_DIM), *m = type_param(sym_intern("m"), KIND_DIM);
    Type *sum = dim_add(n, m);
    CHECK_TEXT(type_text(sum), "n + m");
    CHECK(dim_compare(dim_mul(sum, sum), dim_add(dim_add(dim_mul(n, n), dim_mul(m, m)),
                                                 dim_mul(dim(2), dim_mul(m, n)))) == DIM_EQUAL);
    CHECK(dim_compare(dim_add_int(n, 1), n) == DIM_DIFFERENT);
    CHECK(dim_compare(n, m) == DIM_UNDECIDED);
    CHECK(dim_sub(sum, m) == n);
    CHECK_TEXT(type_text(dim_sub(dim_mul(dim(2), n), dim(1))), "2 * n - 1");
    CHECK_TEXT(type_text(dim_floordiv(dim_add_int(dim_mul(dim(2), n), 3), dim(2))), "n + 1");
    CHECK_TEXT(type_text(dim_floordiv(dim_floordiv(n, dim(2)), dim(3))), "floordiv(n, 6)");
    CHECK_TEXT(type_text(dim_floordiv(dim_mul(n, m), m)), "n");
    CHECK(dim_max(n, dim(0)) == n);
    CHECK(dim_min(dim_add_int(n, 2), n) == n);
    CHECK_TEXT(type_text(dim_max(n, m)), "max(n, m)");
    CHECK_TEXT(type_text(dim_mul(dim(INT64_MAX), dim(2))), "?");
}

TEST(dims_are_solved) {
    begin();
    Type *n = var(KIND_DIM), *m = var(KIND_DIM);
    int64_t v;
    CHECK(solver_unify(s, dim_add_int(n, 2), dim(5)));
    CHECK(type_get_int(n, &v) && v == 3);
    Type *h = var(KIND_DIM);
    CHECK(solver_unify(s, dim_mul(dim(2), h), dim(6))); /* divided: h = 3 */
    CHECK(type_get_int(h, &v) && v == 3);
    CHECK(!solver_unify(s, dim_mul(dim(2), var(KIND_DIM)), dim(5)));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_DIM);
    CHECK(solver_unify(s, dim_mul(m, m), dim(9))); /* waits */
    CHECK(!type_get_int(m, &v));
    CHECK(solver_unify(s, m, dim(4)));
    CHECK(!solver_run(s));
    CHECK(diags.errors == 1);
    Type *k = var(KIND_DIM);
    CHECK(!solver_unify(s, k, dim_add_int(k, 1)));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_OCCURS);
    Type *a = solver_rigid(s, KIND_DIM, NULL), *b = solver_rigid(s, KIND_DIM, NULL);
    CHECK(!solver_unify(s, a, b));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_RIGID);
    CHECK(!solver_unify(s, dim_add_int(k, 3), dim(1))); /* no negative size */
}

/* ---- unification ----------------------------------------------------------------------------- */

TEST(mismatches_have_paths) {
    begin();
    Type *a[] = {type_scalar(DT_F32), tensor2(dim(2), dim(3), f32())};
    Type *b[] = {type_scalar(DT_F32), tensor2(dim(2), dim(4), f32())};
    CHECK(!solver_unify(s, type_tuple(a, 2), type_tuple(b, 2)));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_DIM);
    CHECK_INT(solver_mismatch(s)->axis, 1);
    CHECK_TEXT(solver_mismatch(s)->path, "1");
    CHECK(!solver_unify(s, fn1(a[0], a[1]), fn1(a[0], type_string())));
    CHECK_TEXT(solver_mismatch(s)->path, "result");
    Type *v = var(KIND_TYPE);
    CHECK(!solver_unify(s, v, fn1(v, a[0])));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_OCCURS);
}

TEST(unknown_sizes_flow) {
    begin();
    Type *known = tensor1(dim(5), f32()), *any = tensor1(type_any(KIND_DIM, NULL), f32());
    CHECK(solver_flow(s, known, any, span_none(), place_of_name("x")));
    CHECK_INT(solver_nresiduals(s), 0);
    CHECK(solver_flow(s, any, known, span_none(), place_of_name("x")));
    CHECK_INT(solver_nresiduals(s), 1);
    CHECK(!solver_flow(s, type_ref(known), type_ref(any), span_none(), place_of_name("x")));
    CHECK(solver_flow(s, fn1(any, known), fn1(known, any), span_none(), place_of_name("f")));
    CHECK(!solver_flow(s, fn1(known, known), fn1(any, any), span_none(), place_of_name("f")));
    Type *n = var(KIND_DIM); /* one variable met by two sizes not known equal */
    CHECK(solver_flow(s, any, tensor1(n, f32()), span_none(), place_of_name("x")));
    CHECK_INT(solver_nresiduals(s), 1);
    CHECK(solver_flow(s, known, tensor1(n, f32()), span_none(), place_of_name("y")));
    CHECK_INT(solver_nresiduals(s), 2);
    Type *shape = var(KIND_SHAPE);
    CHECK(solver_flow(s, type_tensor(shape, f32()), any, span_none(), place_of_name("z")));
    CHECK(solver_unify(s, type_tensor(shape, f32()), known));
}

TEST(arms_join) {
    begin();
    Type *known = tensor1(dim(5), f32()), *any = tensor1(type_any(KIND_DIM, NULL), f32());
    CHECK_TEXT(type_text(type_join(s, known, any, false)), "Tensor[(?,), float32]");
    CHECK_TEXT(type_text(type_join(s, known, known, false)), "Tensor[(5,), float32]");
    CHECK(!type_join(s, known, tensor1(dim(6), f32()), false));
    Type *v = var(KIND_TYPE);
    CHECK_TEXT(type_text(type_join(s, v, any, false)), "Tensor[(?,), float32]");
    CHECK_TEXT(type_text(v), "Tensor[(n,), float32]");
}

static TypeDecl *declare(const char *name, Type *param) {
    TypeDecl *d = mem_new(TypeDecl);
    d->name = sym_intern(name);
    if (param) {
        d->nparams = 1;
        d->params = mem_new_n(Type *, 1);
        d->params[0] = param;
    }
    return d;
}

static void add_ctor(TypeDecl *d, const char *name, Type **fields, const char *const *names,
                     uint32_t n) {
    Ctor *c = mem_new(Ctor);
    c->name = sym_intern(name);
    c->decl = d;
    c->tag = d->nctors;
    c->nfields = n;
    c->fields = mem_new_n(Type *, n + 1);
    c->field_names = names ? mem_new_n(const Symbol *, n) : NULL;
    for (uint32_t i = 0; i < n; i++) {
        c->fields[i] = fields[i];
        if (names)
            c->field_names[i] = sym_intern(names[i]);
    }
    Ctor **ctors = mem_new_n(Ctor *, d->nctors + 1);
    for (uint32_t i = 0; i < d->nctors; i++)
        ctors[i] = d->ctors[i];
    ctors[d->nctors++] = c;
    d->ctors = ctors;
}

static TypeDecl *declare_list(void) {
    Type *a = type_param(sym_intern("a"), KIND_TYPE);
    TypeDecl *d = declare("List", a);
    Type *fields[] = {a, type_data(d, &a, 1)};
    add_ctor(d, "Cons", fields, NULL, 2);
    add_ctor(d, "Nil", NULL, NULL, 0);
    return d;
}

TEST(sizes_flow_into_immutable_data_only) {
    begin();
    Type *known = tensor1(dim(5), f32()), *any = tensor1(type_any(KIND_DIM, NULL), f32());
    TypeDecl *list = declare_list();
    Type *a = type_param(sym_intern("a"), KIND_TYPE);
    TypeDecl *cell = declare("Cell", a);
    Type *field = type_ref(a);
    add_ctor(cell, "Cell", &field, NULL, 1);
    CHECK(solver_flow(s, type_data(list, &known, 1), type_data(list, &any, 1), span_none(),
                      place_of_name("x")));
    CHECK(!solver_flow(s, type_data(list, &any, 1), type_data(list, &known, 1), span_none(),
                       place_of_name("x")));
    CHECK(!solver_flow(s, type_data(cell, &known, 1), type_data(cell, &any, 1), span_none(),
                       place_of_name("x")));
    CHECK_TEXT(type_text(type_join(s, type_data(list, &known, 1), type_data(list, &any, 1), false)),
               "List[Tensor[(?,), float32]]");
}

TEST(effects_decide_what_generalises) {
    begin();
    Type *outer = var(KIND_EFFECT);
    solver_enter(s);
    Type *e = var(KIND_EFFECT), *inner = var(KIND_EFFECT);
    CHECK(!solver_effect_allocates(s, e));
    solver_effect_include(s, inner, e);
    CHECK(!solver_effect_allocates(s, e));
    CHECK(solver_unify(s, inner, type_allocates()));
    CHECK(solver_effect_allocates(s, e));
    Type *f = var(KIND_EFFECT);
    CHECK(solver_unify(s, f, type_pure()));
    CHECK(!solver_effect_allocates(s, f));
    solver_effect_include(s, outer, f); /* an unknown function's effect */
    CHECK(solver_effect_allocates(s, f));
    solver_leave(s);
    /* map: fn(fn(a) -e-> b, a) -d-> b with e in d */
    Type *a = var(KIND_TYPE), *b = var(KIND_TYPE), *arg = fn1(a, b), *t = fn2(arg, a, b);
    solver_effect_include(s, arg->fn.effect, t->fn.effect);
    Scheme *apply_scheme = scheme_generalise(s, t, false);
    CHECK_INT(apply_scheme->nincludes, 1);
    CHECK_TEXT(scheme_text(apply_scheme), "fn [a, b](fn(a) -> b, a) -> b");
    t = scheme_instantiate(s, apply_scheme, span_none(), NULL, 0, NULL);
    CHECK(!solver_effect_allocates(s, t->fn.effect));
    CHECK(solver_unify(s, t->args[0]->fn.effect, type_allocates()));
    CHECK(solver_effect_allocates(s, t->fn.effect));
}

/* ---- schemes --------------------------------------------------------------------------------- */

TEST(identity_is_polymorphic) {
    begin();
    Type *a = var(KIND_TYPE);
    CHECK_TEXT(general(fn1(a, a)), "fn [a](a) -> a");
}

TEST(addition_keeps_its_relation) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    CHECK_TEXT(general(fn2(x, y, add(x, y))), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
}

TEST(doubling_is_absorbed) {
    begin();
    Type *x = var(KIND_TYPE);
    CHECK_TEXT(general(fn1(x, add(x, x))), "fn [s, b](Tensor[s, b]) -> Tensor[s, b]");
}

TEST(a_literal_is_the_unit) {
    begin();
    Type *x = var(KIND_TYPE);
    CHECK_TEXT(general(fn1(x, add(x, literal(false)))), "fn [s, b](Tensor[s, b]) -> Tensor[s, b]");
    begin();
    x = var(KIND_TYPE);
    CHECK_TEXT(general(fn1(x, add(x, literal(true)))),
               "fn [s, b](Tensor[s, b]) -> Tensor[s, b] where Float(b)");
}

TEST(sets_are_associative) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    CHECK_TEXT(general(fn2(x, y, add(x, add(y, x)))),
               "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    begin();
    x = var(KIND_TYPE), y = var(KIND_TYPE);
    CHECK_TEXT(general(fn2(x, y, add(add(x, literal(false)), y))),
               "fn [s, s1, s2, b](Tensor[s, b], Tensor[s1, b]) -> Tensor[s2, b] where "
               "Broadcast(Tensor[s, b], Tensor[s1, b], Tensor[s2, b])"); /* b is the literal's */
    begin();
    Type *p[] = {var(KIND_TYPE), var(KIND_TYPE), var(KIND_TYPE)};
    Type *t = type_fn(p, 3, add(add(p[0], p[1]), p[2]), var(KIND_EFFECT));
    CHECK_TEXT(general(t), "fn [a, b, c, d](a, b, c) -> d where Broadcast(a, b, c, d)");
}

TEST(a_result_absorbs_its_arguments) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE), *t = add(x, y);
    Type *pair[] = {t, add(t, x)};
    CHECK_TEXT(general(fn2(x, y, type_tuple(pair, 2))),
               "fn [a, b, c](a, b) -> (c, c) where Broadcast(a, b, c)");
}

TEST(layer_prints_as_a_person_would) {
    begin();
    Type *p[] = {var(KIND_TYPE), var(KIND_TYPE), var(KIND_TYPE)};
    Type *product = apply(&simple_matmul, p[0], p[1]);
    Type *t = type_fn(p, 3, relu(add(product, p[2])), var(KIND_EFFECT));
    CHECK_TEXT(general(t), "fn [n, k, m, t, b, c](Tensor[(n, k), t], Tensor[(k, m), t], b) -> c "
                           "where Broadcast(Tensor[(n, m), t], b, c)");
}

TEST(instances_are_solved) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    Scheme *f = scheme_generalise(s, fn2(x, y, add(x, y)), false);
    Type *t = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
    CHECK(solver_unify(s, t->args[0], tensor2(dim(3), dim(1), f32())));
    CHECK(solver_unify(s, t->args[1], tensor1(dim(4), f32())));
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(t->fn.result), "Tensor[(3, 4), float32]");
    t = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
    CHECK(solver_unify(s, t->args[0], tensor1(dim(3), f32())));
    CHECK(solver_unify(s, t->args[1], tensor1(dim(4), f32())));
    CHECK(!solver_run(s));
    CHECK_TEXT(message(), "these shapes do not broadcast");
}

TEST(broadcast_solves_backwards) {
    begin();
    Type *n = var(KIND_DIM),
         *args[] = {tensor1(n, f32()), tensor1(dim(1), f32()), tensor1(dim(5), f32())};
    solver_post(s, &rel_broadcast, args, 3, NULL, span_none());
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(n), "5");
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    Type *c = apply(&op_less, x, y); /* a rank-0 result: both are rank 0 */
    CHECK(solver_unify(s, c, type_scalar(DT_BOOL)));
    CHECK(solver_unify(s, x, type_scalar(DT_F32)));
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(y), "float32");
}

TEST(broadcast_of_unknowns) {
    begin();
    Type *any = type_any(KIND_DIM, NULL);
    Type *r = add(tensor1(any, f32()), tensor1(dim(1), f32()));
    Type *q = add(tensor1(any, f32()), tensor1(dim(7), f32()));
    Type *two = add(tensor1(any, f32()), tensor1(type_any(KIND_DIM, NULL), f32()));
    Type *same = add(tensor1(any, f32()), tensor1(any, f32()));
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(r), "Tensor[(?,), float32]");
    CHECK_TEXT(type_text(q), "Tensor[(7,), float32]");
    CHECK_TEXT(type_text(two), "Tensor[(?,), float32]");
    CHECK(type_equal(same, r));
    CHECK_INT(solver_nresiduals(s), 2);
}

TEST(dtypes_must_be_one) {
    begin();
    add(type_scalar(DT_F32), type_scalar(DT_I32));
    CHECK(!solver_run(s));
    CHECK_TEXT(message(), "`+` takes arguments of one dtype, not float32 and int32");
    begin();
    add(type_scalar(DT_I32), literal(true));
    CHECK(!solver_run(s));
    begin();
    add(type_scalar(DT_BOOL), type_scalar(DT_BOOL));
    CHECK(!solver_run(s));
    CHECK_TEXT(message(), "`+` takes numbers, not bool");
}

TEST(weak_literals_default) {
    begin();
    Type *t = add(literal(false), literal(false));
    CHECK_TEXT(general(t), "int32");
    begin();
    CHECK_TEXT(general(add(literal(false), literal(true))), "float32");
    begin();
    CHECK_TEXT(general(add(literal(false), type_scalar(DT_F64))), "float64");
    begin();
    Type *x = var(KIND_TYPE);
    CHECK_TEXT(general(fn1(x, literal(true))), "fn [a](a) -> float32");
}

TEST(declared_facts_entail) {
    begin();
    Type *p[] = {solver_rigid(s, KIND_TYPE, sym_intern("a")),
                 solver_rigid(s, KIND_TYPE, sym_intern("b")),
                 solver_rigid(s, KIND_TYPE, sym_intern("c"))};
    size_t mark = solver_count_facts(s);
    solver_assume_fact(s, &rel_broadcast, p, 3, NULL, NULL, span_none());
    Type *sum = add(p[0], p[1]), *more = add(sum, p[0]);
    CHECK(solver_run(s));
    CHECK(type_resolve(sum) == p[2]);
    CHECK(type_resolve(more) == p[2]);
    CHECK_TEXT(scheme_text(scheme_generalise_declared(s, fn2(p[0], p[1], sum), p, 3, true)),
               "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    solver_forget_facts(s, mark);
    begin();
    Type *q[] = {solver_rigid(s, KIND_TYPE, sym_intern("a")),
                 solver_rigid(s, KIND_TYPE, sym_intern("b"))};
    sum = add(q[0], q[1]);
    CHECK(!scheme_generalise_declared(s, fn2(q[0], q[1], sum), q, 2, true));
    CHECK_INT(diags.list.data[0]->code, DIAG_R0304);
}

TEST(rigid_parameters_do_not_escape) {
    begin();
    Type *outer = var(KIND_TYPE);
    solver_enter(s);
    Type *a = solver_rigid(s, KIND_TYPE, sym_intern("a"));
    CHECK(!solver_unify(s, outer, a));
    CHECK_INT(solver_mismatch(s)->kind, MISMATCH_RIGID);
}

TEST(outer_relations_stay_outside) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    solver_enter(s);
    Type *sum = add(x, y);
    Scheme *mono = scheme_generalise(s, sum, false);
    solver_leave(s);
    CHECK_INT(mono->nparams, 0);
    solver_enter(s);
    Type *z = var(KIND_TYPE);
    Scheme *poly = scheme_generalise(s, fn1(z, add(x, z)), false);
    solver_leave(s);
    CHECK_INT(poly->nrelations, 1);
    CHECK_TEXT(general(fn2(x, y, mono->type)), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
}

TEST(applying_twice_thirty_times_is_linear) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE);
    Scheme *f = scheme_generalise(s, fn2(x, y, add(x, y)), false);
    for (int i = 0; i < 30; i++) {
        x = var(KIND_TYPE), y = var(KIND_TYPE);
        Type *inner = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
        Type *outer = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
        solver_unify(s, inner->args[0], x);
        solver_unify(s, inner->args[1], y);
        solver_unify(s, outer->args[0], x);
        solver_unify(s, outer->args[1], inner->fn.result);
        f = scheme_generalise(s, fn2(x, y, outer->fn.result), false);
    }
    CHECK_TEXT(scheme_text(f), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    CHECK(solver_counts(s).runs < 1000);
    x = var(KIND_TYPE);
    Type *pair[] = {x, x};
    f = scheme_generalise(s, fn1(x, type_tuple(pair, 2)), false);
    for (int i = 0; i < 14; i++) { /* the type is 2^i deep in text, i nodes as a DAG */
        Type *once = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
        Type *again = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
        CHECK(solver_unify(s, once->args[0], again->args[0]));
        Type *both[] = {once->fn.result, again->fn.result};
        f = scheme_generalise(s, fn1(once->args[0], type_tuple(both, 2)), false);
    }
    CHECK(strlen(scheme_text(f)) < 2200);
}

TEST(long_chains_run_linearly) {
    begin();
    Type *x = var(KIND_TYPE), *y = var(KIND_TYPE), *t = x;
    for (int i = 0; i < 10000; i++) {
        t = add(t, y);
        solver_run(s);
    }
    CHECK_TEXT(general(fn2(x, y, t)), "fn [a, b, c](a, b) -> c where Broadcast(a, b, c)");
    CHECK(solver_counts(s).runs < 40000);
    begin();
    x = t = var(KIND_TYPE);
    for (int i = 0; i < 10000; i++)
        t = add(t, literal(false));
    CHECK(solver_unify(s, x, tensor1(dim(3), f32())));
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(t), "Tensor[(3,), float32]");
    CHECK(solver_counts(s).runs < 40000);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

static Type *derivative(const RelDef *def, Type *f) {
    Type *args[] = {f, var(KIND_TYPE)};
    solver_post(s, def, args, 2, NULL, span_none());
    return args[1];
}

TEST(gradients_have_types) {
    begin();
    Type *f = fn2(type_scalar(DT_F32), type_scalar(DT_I32), type_scalar(DT_F32));
    Type *g = derivative(&rel_grad, f), *d = derivative(&rel_deriv, f);
    Type *v = derivative(&rel_vjp, f), *j = derivative(&rel_jvp, f);
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(g), "fn(float32, int32) -> (float32, (float32, ()))");
    CHECK_TEXT(type_text(d), "fn(float32, int32) -> (float32, ())");
    CHECK_TEXT(type_text(v), "fn(float32, int32, float32) -> (float32, (float32, ()))");
    CHECK_TEXT(type_text(j), "fn(float32, int32, float32, ()) -> (float32, float32)");
    Type *x = var(KIND_TYPE), *df = derivative(&rel_deriv, fn1(x, add(x, x)));
    CHECK_TEXT(general(df), "fn [s, b](Tensor[s, b]) -> Tensor[s, b] where Float(b)");
    Type *a = var(KIND_TYPE), *u = var(KIND_TYPE), *h = fn1(a, u);
    Type *gh = derivative(&rel_grad, h);
    CHECK_TEXT(general(fn2(h, a, gh)), "fn [s, b, a](fn(a) -> Tensor[s, b], a) -> "
                                       "fn(a) -> (Tensor[s, b], (D(a),)) where Float(b)");
}

TEST(derivatives_of_data) {
    begin();
    TypeDecl *list = declare_list();
    Type *floats = type_scalar(DT_F32), *ints = type_scalar(DT_I32), *a = var(KIND_TYPE);
    CHECK_TEXT(type_text(type_deriv(type_data(list, &floats, 1))), "List[float32]");
    CHECK_TEXT(type_text(type_deriv(type_data(list, &ints, 1))), "D(List[int32])");
    Type *open = type_deriv(type_data(list, &a, 1));
    CHECK_TEXT(type_text(open), "D(List[a])");
    CHECK(solver_unify(s, a, floats));
    CHECK_TEXT(type_text(open), "List[float32]");
    Type *pair[] = {floats, ints};
    CHECK_TEXT(type_text(type_deriv(type_tuple(pair, 2))), "(float32, ())");
    CHECK_TEXT(type_text(type_deriv(type_deriv(type_tuple(pair, 2)))), "(float32, ())");
    Type *b = var(KIND_TYPE); /* b = D(b) holds of floats; it waits */
    CHECK(solver_unify(s, b, type_deriv(b)));
    CHECK(solver_unify(s, b, floats));
    CHECK(solver_run(s));
    Type *c = var(KIND_TYPE);
    CHECK(solver_unify(s, c, type_deriv(c)));
    CHECK(solver_unify(s, c, ints));
    CHECK(!solver_run(s));
}

/* ---- access ---------------------------------------------------------------------------------- */

TEST(fields_wait_for_the_type) {
    begin();
    TypeDecl *line = declare("Line", NULL);
    Type *fields[] = {type_scalar(DT_F32), type_scalar(DT_I32)};
    const char *const names[] = {"w", "n"};
    add_ctor(line, "Line", fields, names, 2);
    Type *p = var(KIND_TYPE), *w = var(KIND_TYPE), *again = var(KIND_TYPE), *n = var(KIND_TYPE);
    solver_post_field(s, p, sym_intern("w"), w, span_none());
    solver_post_field(s, p, sym_intern("w"), again, span_none());
    Type *pair[] = {w, again};
    Scheme *f = scheme_generalise(s, fn1(p, type_tuple(pair, 2)), false);
    CHECK_TEXT(scheme_text(f), "fn [a, b](a) -> (b, b) where Field(a, w, b)");
    Type *t = scheme_instantiate(s, f, span_none(), NULL, 0, NULL);
    CHECK(solver_unify(s, t->args[0], type_data(line, NULL, 0)));
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(t->fn.result), "(float32, float32)");
    solver_post_field(s, type_deriv(type_data(line, NULL, 0)), sym_intern("n"), n, span_none());
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(n), "()");
    solver_post_field(s, type_data(line, NULL, 0), sym_intern("wx"), var(KIND_TYPE), span_none());
    CHECK(!solver_run(s));
    CHECK_INT(diags.list.data[0]->code, DIAG_R0212);
}

TEST(projection_and_bang) {
    begin();
    Type *t = var(KIND_TYPE), *x = var(KIND_TYPE), *r = var(KIND_TYPE), *y = var(KIND_TYPE);
    solver_post_proj(s, t, 1, x, span_none());
    Type *args[] = {r, y};
    solver_post(s, &rel_bang, args, 2, NULL, span_none());
    CHECK(solver_run(s));
    CHECK_INT(solver_nwaiting(s), 2);
    Type *parts[] = {type_string(), type_unit()};
    CHECK(solver_unify(s, t, type_tuple(parts, 2)));
    CHECK(solver_unify(s, y, type_string())); /* no bool: r is a reference */
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(x), "()");
    CHECK_TEXT(type_text(r), "ref(String)");
    solver_post_proj(s, t, 2, var(KIND_TYPE), span_none());
    CHECK(!solver_run(s));
    CHECK_INT(diags.list.data[0]->code, DIAG_R0216);
}

TEST(equality_by_the_type) {
    begin();
    Type *args[] = {type_string(), var(KIND_TYPE), var(KIND_TYPE)};
    solver_post(s, &rel_equal, args, 3, NULL, span_none());
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(args[1]), "String");
    CHECK_TEXT(type_text(args[2]), "bool");
    Type *tensors[] = {tensor1(dim(3), f32()), type_scalar(DT_F32), var(KIND_TYPE)};
    solver_post(s, &rel_equal, tensors, 3, NULL, span_none());
    CHECK(solver_run(s));
    CHECK_TEXT(type_text(tensors[2]), "Tensor[(3,), bool]");
}

TEST(outer_broadcasts_are_warned_of) {
    begin();
    const Source *source = source_new("t", "a - b", 5, 0);
    Type *args[] = {tensor2(dim(3), dim(1), f32()), tensor1(dim(3), f32()), var(KIND_TYPE)};
    solver_post(s, &rel_broadcast, args, 3, NULL, (Span){source, 0, 5})->op = &op_add;
    CHECK(solver_run(s));
    CHECK_INT(diags.warnings, 1);
    CHECK_TEXT(message(), "(3, 1) and (3,) broadcast to (3, 3)");
    begin();
    Type *bias[] = {tensor2(dim(3), dim(4), f32()), tensor1(dim(4), f32()), var(KIND_TYPE)};
    solver_post(s, &rel_broadcast, bias, 3, NULL, (Span){source, 0, 5})->op = &op_add;
    CHECK(solver_run(s));
    CHECK_INT(diags.warnings, 0);
}

TEST(gradients_are_refused) {
    begin();
    derivative(&rel_grad, fn1(type_scalar(DT_I32), type_scalar(DT_F32)));
    CHECK(!solver_run(s));
    CHECK_INT(diags.list.data[0]->code, DIAG_R0401);
    begin();
    Type *pair[] = {type_scalar(DT_F32), type_scalar(DT_F32)};
    derivative(&rel_grad, fn1(type_scalar(DT_F32), type_tuple(pair, 2)));
    CHECK(!solver_run(s));
    CHECK_INT(diags.list.data[0]->code, DIAG_R0402);
}

int main(void) {
    RUN(prints_types);
    RUN(long_types_are_cut);
    RUN(dims_are_polynomials);
    RUN(dims_are_solved);
    RUN(mismatches_have_paths);
    RUN(unknown_sizes_flow);
    RUN(arms_join);
    RUN(sizes_flow_into_immutable_data_only);
    RUN(effects_decide_what_generalises);
    RUN(identity_is_polymorphic);
    RUN(addition_keeps_its_relation);
    RUN(doubling_is_absorbed);
    RUN(a_literal_is_the_unit);
    RUN(sets_are_associative);
    RUN(a_result_absorbs_its_arguments);
    RUN(layer_prints_as_a_person_would);
    RUN(instances_are_solved);
    RUN(broadcast_solves_backwards);
    RUN(broadcast_of_unknowns);
    RUN(dtypes_must_be_one);
    RUN(weak_literals_default);
    RUN(declared_facts_entail);
    RUN(rigid_parameters_do_not_escape);
    RUN(outer_relations_stay_outside);
    RUN(applying_twice_thirty_times_is_linear);
    RUN(long_chains_run_linearly);
    RUN(gradients_have_types);
    RUN(derivatives_of_data);
    RUN(fields_wait_for_the_type);
    RUN(projection_and_bang);
    RUN(equality_by_the_type);
    RUN(outer_broadcasts_are_warned_of);
    RUN(gradients_are_refused);
    return check_result();
}
