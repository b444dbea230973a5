/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on core that is made here: their work is linear, also where nodes are shared, blocks are loops
 * and not recursion, what they copy is whole, and fuel that ran out is said. */
#include "tests/unit/check.h"

#include "passes/effects.h"
#include "passes/subst.h"
#include "repl/session.h"

static Env *env;

static Type *f32(void) { return type_scalar(DT_F32); }

static Var *new_var(const char *name) { return var_new(sym_intern(name), f32(), span_none()); }

static Expr *use(Var *v) { return expr_var(v, span_none()); }

static Expr *call2(const char *op, Expr *a, Expr *b) {
    Expr *args[] = {a, b};
    return expr_call_op(op_find(sym_intern(op)), args, 2, NULL, f32(), span_none());
}

/* let v1 = v0; let w1 = v1 + v1; let v2 = w1; …; the last: half of the bindings are names. */
static Expr *long_block(Var *first, int n) {
    Var **vars = mem_new_n(Var *, 2 * n + 1);
    for (int i = 0; i <= 2 * n; i++)
        vars[i] = i ? new_var("v") : first;
    Expr *e = use(vars[2 * n]);
    for (int i = n; i > 0; i--) {
        e = expr_let(vars[2 * i], call2("add", use(vars[2 * i - 1]), use(vars[2 * i - 1])), e);
        e = expr_let(vars[2 * i - 1], use(vars[2 * i - 2]), e);
    }
    return e;
}

/* The same node on both sides of each sum: 2^n paths, n nodes. */
static Expr *shared_sums(Var *v, int n) {
    Expr *e = use(v);
    for (int i = 0; i < n; i++)
        e = call2("add", e, e);
    return e;
}

static uint64_t work_of(const char *pass, Expr *e) {
    PassCtx ctx = {.env = env};
    (void)pass_run(&ctx, pass_find(pass), e);
    return ctx.work;
}

TEST(inlining_is_linear) {
    Var *x = new_var("x");
    uint64_t n = work_of("inline", long_block(x, 1000)),
             n2 = work_of("inline", long_block(x, 2000));
    CHECK(n >= 1000 && n <= 10000);
    CHECK(n2 <= 2 * n + 10);
}

TEST(cleaning_is_linear) {
    Var *x = new_var("x");
    uint64_t n = work_of("dce", long_block(x, 1000)), n2 = work_of("dce", long_block(x, 2000));
    CHECK(n >= 1000 && n <= 20000);
    CHECK(n2 <= 2 * n + 10);
}

TEST(effects_are_found_once) {
    Var *x = new_var("x");
    PassCtx ctx = {.env = env};
    Effects *effects = effects_new(&ctx, long_block(x, 1000));
    uint64_t before = ctx.work;
    Expr *block = long_block(x, 10);
    (void)effects_at(effects, block);
    uint64_t once = ctx.work;
    (void)effects_at(effects, block);
    CHECK(once > before);
    CHECK_INT(ctx.work, once);
}

TEST(shared_nodes_are_walked_once) {
    Var *x = new_var("x");
    CHECK(work_of("inline", shared_sums(x, 200)) < 2000);
    CHECK(work_of("dce", shared_sums(x, 200)) < 2000);
    CHECK(work_of("ad", shared_sums(x, 200)) < 2000);
    CHECK(work_of("partial_eval", shared_sums(x, 200)) < 2000);
    Subst s = {0};
    Expr *copy = expr_substitute(&s, shared_sums(x, 200));
    CHECK(copy->args[0] == copy->args[1]);
}

static const char *const all_passes[] = {"ad", "partial_eval", "inline", "dce"};

TEST(long_blocks_are_loops) { /* on a C stack of 8 MB: recursion would need more for each binding */
    Var *x = new_var("x");
    for (size_t i = 0; i < sizeof all_passes / sizeof *all_passes; i++) {
        PassCtx ctx = {.env = env};
        Expr *e = pass_run(&ctx, pass_find(all_passes[i]), long_block(x, 100000));
        CHECK(e->kind == EXPR_LET);
    }
    Subst s = {0};
    CHECK(expr_substitute(&s, long_block(x, 100000))->kind == EXPR_LET);
}

static void count_poll(void *count) { ++*(uint64_t *)count; }

TEST(passes_see_an_interrupt) { /* each polls between 1,024 visits of nodes */
    Var *x = new_var("x");
    for (size_t i = 0; i < pass_count(); i++) {
        uint64_t polls = 0;
        PassCtx ctx = {.env = env, .poll = count_poll, .poll_arg = &polls};
        if (!pass_at(i)->level)
            continue;
        Expr *block = long_block(x, 100000); /* of a function: unpack looks at nothing else */
        Expr *fn = expr_fn(&x, 1, block, type_fn(&x->type, 1, block->type, type_allocates()),
                           span_none());
        (void)pass_run(&ctx, pass_at(i), fn);
        CHECK(polls >= 97 && polls == ctx.work / 1024);
    }
}

/* broadcast_to and its like take sizes that are computed: expressions beside the arguments. */
TEST(substitution_reaches_sizes) {
    Var *n = var_new(sym_intern("n"), type_scalar(DT_I64), span_none()), *x = new_var("x");
    Expr *call = call2("add", use(x), use(x));
    Expr *size = use(n);
    call->nsizes = 1;
    call->sizes = &size;
    Subst s = {0};
    Expr *seven = expr_int(7, DT_I64, span_none());
    map_set(&s.vars, n, seven);
    Expr *copy = expr_substitute(&s, call);
    CHECK(copy->sizes[0] == seven);
    CHECK(call->sizes[0] == size);
}

/* What is said when the derivative of x * x is given `fuel` steps. */
static const char *note_of(uint32_t fuel, bool *settled) {
    Var *x = new_var("x");
    Expr *square = expr_fn(&x, 1, call2("multiply", use(x), use(x)),
                           type_fn((Type *[]){f32()}, 1, f32(), type_pure()), span_none());
    Expr *grad = expr_new(EXPR_GRAD, square->type, span_none());
    grad->a = square;
    PassCtx ctx = {.env = env, .fuel = fuel};
    Expr *e = pass_run(&ctx, pass_find("ad"), grad);
    Expr *after = pass_run(&ctx, pass_find("partial_eval"), e);
    *settled = after != e;
    return ctx.notes.len ? ctx.notes.data[0] : "";
}

TEST(fuel_that_ran_out_is_said) {
    bool settled;
    CHECK_TEXT(note_of(0, &settled), "");
    CHECK(settled);
    CHECK_TEXT(note_of(10, &settled), "partial_eval gave up on a derivative after 10 steps");
    CHECK(!settled);
}

int main(void) {
    mem_init();
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    env = session_env(session_new(&options));
    RUN(inlining_is_linear);
    RUN(cleaning_is_linear);
    RUN(effects_are_found_once);
    RUN(shared_nodes_are_walked_once);
    RUN(long_blocks_are_loops);
    RUN(passes_see_an_interrupt);
    RUN(substitution_reaches_sizes);
    RUN(fuel_that_ran_out_is_said);
    return check_result();
}
