/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of two values that are taken by turns, as frames and those of their tangents are:
 *
 *   let p = k.0; let q = d.0; if (ad.is_zero(p)) { … } else { let x = k.1; let y = d.1; let v = k.2; let w = d.2; …
 *
 * Those of one value come together, and last the one that is asked for, so that one instruction takes them
 * (eval/tighten.h). */
#include "eval/resolve.h"

#include <string.h>

enum { MOST_PARTS = 32 };

static bool takes_part(const Expr *let) {
    return let->kind == EXPR_LET && !let->rec && let->var && let->a->kind == EXPR_PROJ &&
           let->a->a->kind == EXPR_VAR;
}

/* The bindings of parts that follow each other from e on, none of a value that another one binds. */
static uint32_t collect_parts(Expr *e, Expr **lets) {
    uint32_t n = 0;
    for (; takes_part(e) && n < MOST_PARTS; e = e->body) {
        for (uint32_t i = 0; i < n; i++)
            if (lets[i]->var == e->a->a->var)
                return n;
        lets[n++] = e;
    }
    return n;
}

/* The variable that an `if` asks for. */
static const Var *asked_by(const Expr *e) {
    bool asks = e->kind == EXPR_IF && e->a->kind == EXPR_CALL && e->a->a->kind == EXPR_BUILTIN &&
                strcmp(e->a->a->symbol->text, "ad.is_zero") == 0 && e->a->args[0]->kind == EXPR_VAR;
    return asks ? e->a->args[0]->var : NULL;
}

Expr *gather_parts(Expr *e) {
    Expr *lets[MOST_PARTS], *order[MOST_PARTS];
    uint32_t n = collect_parts(e, lets), done = 0;
    if (n < 2)
        return e;
    Expr *rest = lets[n - 1]->body;
    const Var *asked = asked_by(rest), *last = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (lets[i]->var == asked)
            last = lets[i]->a->a->var;
    bool taken[MOST_PARTS] = {false};
    for (int pass = 0; pass < 2; pass++) /* those of the value that is asked for come second */
        for (uint32_t i = 0; i < n; i++) {
            const Var *of = lets[i]->a->a->var;
            for (uint32_t k = i; k < n && (of != last || pass); k++)
                if (!taken[k] && lets[k]->a->a->var == of && lets[k]->var != asked) {
                    taken[k] = true;
                    order[done++] = lets[k];
                }
        }
    for (uint32_t i = 0; i < n; i++)
        if (!taken[i])
            order[done++] = lets[i];
    if (memcmp(lets, order, n * sizeof *lets) == 0)
        return e;
    for (uint32_t i = n; i-- > 0;) {
        Expr *let = expr_copy(order[i]);
        let->body = rest;
        rest = let;
    }
    return rest;
}
