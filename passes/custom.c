/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose derivative is not that of their code. Each is a function literal like any other,
 * whose first twins are written here instead of being derived (Note [Twins] in grad.h): so they
 * nest, and an enclosing derivative transforms the twins as ordinary code.
 *
 *   custom_grad(f, df)   runs f in the world outside and asks df for the cotangents
 *   reverse twin   fn (D, x1, …, xn) {
 *                    ad.no_dual(D, …, (f, df));
 *                    let p1 = ad.strip(D, x1); …  let v = f(p1, …);
 *                    if ad.is_active(D, x1, …) {
 *                      <record r = ad.lift(D, v)>  backwards: let cts = df(p1, …, ct);
 *                                                  ad.accumulate(D, (x1, …), cts)
 *                    } else { v } }
 *   forward twin   … ad.pair(L, v, vjp(fn (ct) { df(p1, …, ct) })(0, (t1, …)).1.0)
 *
 *   checkpoint(f)        keeps nothing of f's run, and runs it again when going backwards
 *   reverse twin   fn (D, x1, …, xn) {
 *                    let E = ad.fork(D, …);  let y = f(E, x1, …);   // E is dropped
 *                    let v = ad.strip(D, y);
 *                    if ad.is_active(D, y) {
 *                      <record r>  backwards: let E = ad.fork(D, …);  let y = f(E, x1, …);
 *                                             ad.accumulate(D, y, ct);  (!ad.chain(E))()
 *                    } else { v } }
 *
 * ad.fork(D) is an empty tape of D's level: what f makes are duals of D's level, so cotangents of
 * what f captures arrive where they belong. Both runs are between ad.seal and ad.unseal, which
 * forbid writing to references made before, and in the second run reading one that was written
 * since the first. */
#include <string.h>

#include "passes/grad_internal.h"

typedef struct Custom {
    Build b;
    Expr *inner;    /* fn (x1, …, xn) { … } */
    Expr *captured; /* its only free variable */
    uint32_t n;
} Custom;

static Expr *param(const Custom *c, uint32_t i) { return b_ref(&c->b, c->inner->fn->params[i]); }

/* The arguments of a call: `first`, the parameters or what replaces them, `last`. Any of the three may be NULL. */
static Expr **with_params(const Custom *c, Expr *first, Expr **params, Expr *last, uint32_t *n) {
    Expr **args = mem_new_n(Expr *, c->n + 2);
    *n = 0;
    if (first)
        args[(*n)++] = first;
    for (uint32_t i = 0; i < c->n; i++)
        args[(*n)++] = params ? params[i] : param(c, i);
    if (last)
        args[(*n)++] = last;
    return args;
}

static Expr *call(const Custom *c, Expr *f, Expr *first, Expr **params, Expr *last, unsigned drop) {
    uint32_t n;
    Expr **args = with_params(c, first, params, last, &n);
    return b_call(&c->b, f, args, n, drop);
}

static void set_twin(const Custom *c, AdMode mode, Var *tape, Expr *body) {
    const Fn *base = c->inner->fn;
    Expr *twin = expr_copy(c->inner);
    twin->fn = mem_new(Fn);
    *twin->fn = *base;
    twin->fn->base = c->inner;
    twin->fn->path = sym_intern(mode == AD_REVERSE ? "r" : "f");
    memset(twin->fn->own_twins, 0, sizeof twin->fn->own_twins);
    twin->fn->nparams = base->nparams + 1;
    twin->fn->params = mem_new_n(Var *, twin->fn->nparams);
    twin->fn->params[0] = tape;
    for (uint32_t i = 0; i < base->nparams; i++)
        twin->fn->params[i + 1] = base->params[i];
    twin->fn->body = body;
    twin->type = b_twin_type(c->inner->type);
    c->inner->fn->own_twins[mode] = twin;
}

static Expr *is_active(const Custom *c, Expr *tape) {
    uint32_t n;
    Expr **args = with_params(c, tape, NULL, NULL, &n);
    return b_builtin_n(&c->b, "ad.is_active", args, n);
}

static Expr *accumulate(PassCtx *ctx, const Custom *c, Expr *tape, Expr *x, Expr *ct) {
    Expr **args = mem_new_n(Expr *, 3);
    args[0] = tape;
    args[1] = x;
    args[2] = ct;
    return b_call(&c->b, grad_accumulate(ctx), args, 3, 0);
}

static Expr *no_op(const Custom *c) { return b_fn(&c->b, "start", NULL, 0, b_unit(&c->b)); }

/* Code that ends with the message `words` where a closure or reference in x holds a dual of the tape's level. */
static Expr *no_dual(const Custom *c, Expr *tape, const char *words, Expr *x) {
    Expr *text = expr_new(EXPR_STRING, type_string(), c->b.span);
    text->text = words;
    text->text_len = strlen(words);
    return b_builtin(&c->b, "ad.no_dual", tape, text, x, NULL);
}

/* A record on the tape that is being written: r is v with fresh cells. */
typedef struct Record {
    Block forward, back;
    Expr *r, *before;
} Record;

static void record_begin(Record *rec, const Custom *c, Expr *tape, Expr *v) {
    rec->forward.b = rec->back.b = &c->b;
    rec->r = block_let(&rec->forward, "r", b_builtin(&c->b, "ad.lift", tape, v, NULL));
    rec->before = block_let(&rec->forward, "before",
                            b_read(&c->b, b_builtin(&c->b, "ad.chain", tape, NULL)));
}

static Expr *record_end(Record *rec, const Custom *c, Expr *tape, const char *name) {
    const Build *b = &c->b;
    Block body = {.b = b};
    block_do(&body, b_if(b, b_builtin(b, "ad.has_cotangent", tape, rec->r, NULL),
                         block_end(&rec->back, b_unit(b)), b_unit(b)));
    Expr *propagate = b_fn(b, name, NULL, 0, block_end(&body, b_call(b, rec->before, NULL, 0, 0)));
    block_do(&rec->forward, b_write(b, b_builtin(b, "ad.chain", tape, NULL), propagate));
    return block_end(&rec->forward, rec->r);
}

/* ---- custom_grad ----------------------------------------------------------------------------- */

/* Binds p1, …, pn, the parameters as the world outside sees them, and v, which is f of them. */
static Expr *run_outside(const Custom *c, Block *block, Expr *tape, Expr **primals) {
    const Build *b = &c->b;
    block_do(block,
             no_dual(c, tape, "a function that `custom_grad` is given captures", c->captured));
    for (uint32_t i = 0; i < c->n; i++) {
        primals[i] = block_let(block, "p", b_builtin(b, "ad.strip", tape, param(c, i), NULL));
        block_do(block, no_dual(c, tape,
                                "a function or reference among the arguments of "
                                "`custom_grad` holds",
                                primals[i]));
    }
    return block_let(block, "v", call(c, b_proj(b, c->captured, 0), NULL, primals, NULL, 1));
}

static void custom_reverse(PassCtx *ctx, const Custom *c) {
    const Build *b = &c->b;
    Var *var = b_var(b, "tape", type_tape());
    Expr *tape = b_ref(b, var), **primals = mem_new_n(Expr *, c->n + 1);
    Block block = {.b = b};
    Expr *v = run_outside(c, &block, tape, primals);
    Record rec = {0};
    record_begin(&rec, c, tape, v);
    Expr *whole = block_let(&rec.back, "ct", b_builtin(b, "ad.cotangent", tape, rec.r, NULL));
    Expr *cts = block_let(&rec.back, "cts",
                          call(c, b_proj(b, c->captured, 1), NULL, primals, whole, 0));
    for (uint32_t i = 0; i < c->n; i++) {
        Expr *ct = b_proj(b, cts, i);
        block_do(&rec.back, b_builtin(b, "ad.check_seed", primals[i], ct, NULL));
        block_do(&rec.back, accumulate(ctx, c, tape, param(c, i), ct));
    }
    Expr *r = record_end(&rec, c, tape, "custom_grad");
    set_twin(c, AD_REVERSE, var, block_end(&block, b_if(b, is_active(c, tape), r, v)));
}

static void custom_forward(const Custom *c) {
    const Build *b = &c->b;
    Var *var = b_var(b, "level", type_tape());
    Var *ct = b_var(b, "ct", type_deriv(c->inner->type->fn.result));
    Expr *level = b_ref(b, var), **primals = mem_new_n(Expr *, c->n + 1);
    Block block = {.b = b};
    Expr *v = run_outside(c, &block, level, primals);
    Expr *rule = call(c, b_proj(b, c->captured, 1), NULL, primals, b_ref(b, ct), 0);
    Expr *vjp = b_vjp(b, b_fn(b, "transpose", &ct, 1, rule));
    Expr **tangents = mem_new_n(Expr *, c->n + 1);
    for (uint32_t i = 0; i < c->n; i++)
        tangents[i] = b_builtin(b, "ad.tangent", level, param(c, i), NULL);
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = b_builtin(b, "ad.zeros", v, NULL);
    args[1] = b_tuple(b, tangents, c->n);
    Expr *dv = b_proj(b, b_proj(b, b_call(b, vjp, args, 2, 1), 1), 0);
    Expr *pair = b_builtin(b, "ad.pair", level, v, dv, NULL);
    set_twin(c, AD_FORWARD, var, block_end(&block, b_if(b, is_active(c, level), pair, v)));
}

/* The type of df, which takes the arguments of f and the cotangent of its result and gives their cotangents. */
static Type *rule_type(Type *fn) {
    Type **takes = mem_new_n(Type *, fn->nargs + 1), **gives = mem_new_n(Type *, fn->nargs + 1);
    for (uint32_t i = 0; i < fn->nargs; i++) {
        takes[i] = fn->args[i];
        gives[i] = type_deriv(fn->args[i]);
    }
    takes[fn->nargs] = type_deriv(fn->fn.result);
    return type_fn(takes, fn->nargs + 1, type_tuple(gives, fn->nargs), type_allocates());
}

/* fn (given) { inner }, given being f, or (f, df) where there is a rule, and inner fn (x1, …, xn) { … } with no body yet. */
static Expr *template_new(Custom *c, const Build *b, const char *name, const char *given, bool rule,
                          uint32_t n) {
    *c = (Custom){.b = *b, .n = n};
    Var **params = mem_new_n(Var *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = b_var(b, fmt_text("x%u", i + 1), b_some_type("a"));
    Type *fn = b_fn_type(params, n, b_some_type("y"));
    Var *captured = b_var(b, given, rule ? type_tuple((Type *[]){fn, rule_type(fn)}, 2) : fn);
    c->captured = b_ref(b, captured);
    c->inner = expr_fn(params, n, NULL, fn, b->span);
    c->inner->fn->name = sym_intern(name);
    return b_fn(b, name, &captured, 1, c->inner);
}

/* fn (fs) { fn (x1, …, xn) { fs.0(x1, …, xn) } } */
Expr *custom_template(PassCtx *ctx, const Build *b, uint32_t n) {
    Custom c;
    Expr *e = template_new(&c, b, "custom_grad", "fs", true, n);
    c.inner->fn->body = call(&c, b_proj(b, c.captured, 0), NULL, NULL, NULL, 0);
    custom_reverse(ctx, &c);
    custom_forward(&c);
    return e;
}

/* ---- checkpoint ------------------------------------------------------------------------------ */

/* Runs f's reverse twin on an empty tape of the same level, *fork. *seal is that of the first run, or NULL in it. */
static Expr *run_sealed(const Custom *c, Block *block, Expr *tape, Expr **seal, Expr **fork) {
    const Build *b = &c->b;
    bool twin = !*seal;
    Expr *first = twin ? b_unit(b) : *seal;
    *fork = block_let(block, "E", b_builtin(b, "ad.fork", tape, no_op(c), NULL));
    *seal = block_let(block, "seal", b_builtin(b, "ad.seal", first, NULL));
    Expr *run = call(c, c->captured, *fork, NULL, NULL, 0);
    if (!twin)
        run->mode = 1 + AD_REVERSE;
    Expr *y = block_let(block, "y", run);
    block_do(block, b_builtin(b, "ad.unseal", *seal, NULL));
    return y;
}

static void checkpoint_reverse(PassCtx *ctx, const Custom *c) {
    const Build *b = &c->b;
    Var *var = b_var(b, "tape", type_tape());
    Expr *tape = b_ref(b, var), *fork, *seal = NULL;
    Block block = {.b = b};
    Expr *y = run_sealed(c, &block, tape, &seal, &fork);
    Expr *v = block_let(&block, "v", b_builtin(b, "ad.strip", tape, y, NULL));
    Expr *active = block_let(&block, "active", b_builtin(b, "ad.is_active", tape, y, NULL));
    block_do(&block,
             no_dual(c, tape, "a function or reference in the result of `checkpoint` holds", v));
    Record rec = {0};
    record_begin(&rec, c, tape, v);
    Expr *again = run_sealed(c, &rec.back, tape, &seal, &fork);
    /* A part of the result that has no cotangent gets none: a zero makes NaN of what is infinite in f. */
    Expr *added = b_builtin(b, "ad.added", tape, rec.r, NULL);
    block_do(&rec.back, accumulate(ctx, c, tape, again, added));
    Expr *chain = block_let(&rec.back, "chain", b_read(b, b_builtin(b, "ad.chain", fork, NULL)));
    block_do(&rec.back, b_call(b, chain, NULL, 0, 0));
    Expr *r = record_end(&rec, c, tape, "checkpoint");
    set_twin(c, AD_REVERSE, var, block_end(&block, b_if(b, active, r, v)));
}

/* fn (f) { fn (x1, …, xn) { f(x1, …, xn) } } */
Expr *checkpoint_template(PassCtx *ctx, const Build *b, uint32_t n) {
    Custom c;
    Expr *e = template_new(&c, b, "checkpoint", "f", false, n);
    c.inner->fn->body = call(&c, c.captured, NULL, NULL, NULL, 0);
    checkpoint_reverse(ctx, &c);
    return e;
}
