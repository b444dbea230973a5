/* SPDX-License-Identifier: Apache-2.0 */
/* Additions to parts of one accumulator stand behind each other, so that what is between them is one group of operators:
 *
 *   let a = ad.add_index(acc, x, ct, "i", (0,));            let ct_1 = strong_multiply(ct, w);
 *   let ct_1 = strong_multiply(ct, w);               =>     let a = ad.add_index(acc, x, ct, "i", (0,));
 *   let b = ad.add_index(a, x, ct_1, "i", (1,));            let b = ad.add_index(a, x, ct_1, "i", (1,));
 *
 * Nothing reads an accumulator but what adds to it next, and no addition fails, as its place was read before. The
 * additions keep their order. It does not look into the arms of a choice, and is not done where a further derivative
 * follows: there the order of statements is that in which cotangents are added. */
#include "passes/reverse/internal.h"

typedef struct Link {
    Expr *let;
    struct Link *before; /* the addition that moves here */
    bool moves;
} Link;

static bool is_addition(const Expr *e) { return expr_calls_builtin(e, "ad.add_index"); }

/* Counts for each variable that is free in e one more statement that reads it. */
static void count_reads(Map *reads, Expr *e) {
    VarVec vars = {0};
    expr_free_vars(e, &vars);
    for (size_t i = 0; i < vars.len; i++) {
        void **n = map_at(reads, vars.data[i]);
        *n = (void *)((uintptr_t)*n + 1);
    }
}

static Expr *put(const Link *link, Expr *body) {
    for (; link; link = link->before) {
        Expr *let = expr_copy(link->let);
        let->body = body;
        let->type = body->type;
        body = let;
    }
    return body;
}

Expr *gather_additions(Expr *code) {
    VEC(Link *) links = {0};
    Map additions = {0}, reads = {0}; /* Var -> Link; Var -> the number of statements */
    Expr *value = code;
    bool any = false;
    for (; value->kind == EXPR_LET; value = value->body) {
        Link *link = mem_new(Link);
        *link = (Link){.let = value};
        vec_push(&links, link);
        if (!is_addition(value->a) || !value->var)
            continue;
        const Expr *acc = value->a->args[0];
        link->before = acc->kind == EXPR_VAR ? map_find(&additions, acc->var) : NULL;
        any |= link->before != NULL;
        map_set(&additions, value->var, link);
    }
    if (!any)
        return code;
    for (size_t i = 0; i < links.len; i++)
        count_reads(&reads, links.data[i]->let->a);
    count_reads(&reads, value);
    for (size_t i = 0; i < links.len; i++) {
        Link *link = links.data[i], *of = link->before;
        if (of && (uintptr_t)map_find(&reads, of->let->var) == 1)
            of->moves = true;
        else
            link->before = NULL;
    }
    for (size_t i = links.len; i-- > 0;)
        if (!links.data[i]->moves)
            value = put(links.data[i], value);
    return value;
}
