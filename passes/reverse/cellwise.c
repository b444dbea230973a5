/* SPDX-License-Identifier: Apache-2.0 */
/* What adds to cells, part by part.
 *
 * Note [Cells one by one]. `ad.mirror_add(m, ct)` adds to as many cells as m has. Where a derivative follows it, each of these
 * additions is a step of its own, so it is read as a call of
 *
 *   add(m, ct)      if ad.is_cell(m) { ad.mirror_put(m, ad.add(ad.mirror_sum((), m), ct)) } else { parts(m, ct, 0) }
 *   parts(m, ct, i) if ad.has_item(m, i) { add(ad.item(m, i), ad.item(ct, i)); parts(m, ct, i + 1) } else { () }
 *
 * and `ad.mirror_split(sum, a, b)`, which adds what is in the cells of sum that are new, as one of
 *
 *   split(sum, a, b) if ad.is_same(sum, a) { () } else { if ad.is_same(sum, b) { () } else { if ad.is_cell(sum) {
 *                      let s = ad.settle(ad.mirror_sum((), sum)); add(a, s); add(b, s) } else { parts(sum, a, b, 0) } } }
 *
 * `ad.mirror_move(own, to)` is the same with () for b, the last part first. So all that is left are cells that are made, read and
 * put to, and these have cells of their own by the same builtins: Note [Mirrors of mirrors] in beside.c. */
#include "passes/reverse/beside.h"
#include "passes/reverse/mirror.h"

extern const Op op_collapse_sum_like;

typedef struct Cellwise {
    Build b;
    Global *whole, *parts;
    Var *x[4];  /* the mirror, what stands beside it, and the number of a part */
    uint32_t n; /* how many they are, but the number */
} Cellwise;

static Expr *x(const Cellwise *c, uint32_t i) { return b_ref(&c->b, c->x[i]); }

/* A call that is read again though it gives (). */
static Expr *call_of(const Build *b, Global *g, Expr *const *args, uint32_t n) {
    Expr **copy = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = args[i];
    Expr *call = b_call(b, expr_global(g, b_some_type("f"), b->span), copy, n, 0);
    call->type = b_some_type("ct");
    return call;
}

static Expr *choose(const Build *b, Expr *test, Expr *yes, Expr *no) {
    Expr *e = b_if(b, test, yes, no);
    e->type = b_some_type("ct");
    return e;
}

/* The whole of a part, and the parts behind it. */
static Expr *of_parts(const Cellwise *c, bool last_first) {
    const Build *b = &c->b;
    Expr *part[4] = {NULL}, *next[5] = {NULL};
    for (uint32_t i = 0; i < c->n; i++) {
        part[i] = b_builtin(b, "ad.item", x(c, i), x(c, 3), NULL);
        next[i] = x(c, i);
    }
    next[c->n] = b_builtin(b, "ad.next", x(c, 3), NULL);
    Expr *of_part = call_of(b, c->whole, part, c->n);
    Expr *rest = call_of(b, c->parts, next, c->n + 1);
    Block block = {.b = b};
    block_do(&block, last_first ? rest : of_part);
    return choose(b, b_builtin(b, "ad.has_item", x(c, 0), x(c, 3), NULL),
                  block_end(&block, last_first ? of_part : rest), b_unit(b));
}

static Expr *start_parts(const Cellwise *c) {
    Expr *args[4] = {NULL};
    for (uint32_t i = 0; i < c->n; i++)
        args[i] = x(c, i);
    args[c->n] = expr_int(0, DT_I32, c->b.span);
    return call_of(&c->b, c->parts, args, c->n + 1);
}

static Expr *content(const Build *b, Expr *cell) {
    return b_builtin(b, "ad.mirror_sum", b_unit(b), cell, NULL);
}

/* add(m, ct) of a cell */
static Expr *add_to_cell(const Cellwise *c) {
    const Build *b = &c->b;
    Expr *sum = b_builtin(b, "ad.add", content(b, x(c, 0)), x(c, 1), NULL);
    return b_builtin(b, "ad.mirror_put", x(c, 0), sum, NULL);
}

/* What the rule of `add` gives for each of two sums of one shape: a value with a cell of its own. */
static Expr *same_sum(const Build *b, Expr *s) {
    Expr **two = mem_new_n(Expr *, 2);
    two[0] = two[1] = s;
    return b_op(b, &op_collapse_sum_like, two, 2, s->type);
}

/* split(sum, a, b) of a cell */
static Expr *split_cell(const Cellwise *c, Global *add) {
    const Build *b = &c->b;
    Block block = {.b = b};
    Expr *s = block_let(&block, "s", b_builtin(b, "ad.settle", content(b, x(c, 0)), NULL));
    Expr *last = NULL;
    for (uint32_t i = 1; i < c->n; i++) {
        if (last)
            block_do(&block, last);
        Expr *part = c->n > 2 ? block_let(&block, "s", same_sum(b, s)) : s;
        last = call_of(b, add, (Expr *[]){x(c, i), part}, 2);
    }
    return block_end(&block, last);
}

/* add: NULL where it is the one that is made. */
static Global *make(const char *name, uint32_t n, Global *add, bool last_first) {
    Cellwise c = {.b = {span_none()}, .n = n};
    static const char *const names[] = {"m", "a", "b", "i"};
    for (uint32_t i = 0; i < 4; i++)
        c.x[i] = b_var(&c.b, names[i], i < 3 ? b_some_type("mirror") : type_scalar(DT_I32));
    c.whole = instance_global(name);
    c.parts = instance_global(fmt_text("%s_parts", name));
    Expr *body = choose(&c.b, b_builtin(&c.b, "ad.is_cell", x(&c, 0), NULL),
                        add ? split_cell(&c, add) : add_to_cell(&c), start_parts(&c));
    for (uint32_t i = n; add && i-- > 1;)
        body = choose(&c.b, b_builtin(&c.b, "ad.is_same", x(&c, 0), x(&c, i), NULL), b_unit(&c.b),
                      body);
    Var **params = mem_new_n(Var *, n), **of_a_part = mem_new_n(Var *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = of_a_part[i] = c.x[i];
    of_a_part[n] = c.x[3];
    c.whole->value = b_fn(&c.b, name, params, n, body);
    c.parts->value = b_fn(&c.b, c.parts->name->text, of_a_part, n + 1, of_parts(&c, last_first));
    return c.whole;
}

Expr *cellwise(PassCtx *ctx, const Expr *call) {
    GradState *state = grad_state(ctx);
    static const char *const names[] = {"ad.mirror_add", "ad.mirror_split", "ad.mirror_move"};
    enum { ADD, SPLIT, MOVE };
    if (!state->cellwise[ADD]) {
        state->cellwise[ADD] = make("add_to_cells", 2, NULL, false);
        state->cellwise[SPLIT] = make("split_cells", 3, state->cellwise[ADD], false);
        state->cellwise[MOVE] = make("move_cells", 2, state->cellwise[ADD], true);
    }
    for (int i = ADD; i <= MOVE; i++)
        if (expr_calls_builtin(call, names[i])) {
            Build b = {call->span};
            return call_of(&b, state->cellwise[i], call->args, call->nargs);
        }
    return NULL;
}
