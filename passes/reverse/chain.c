/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that a loop makes anyway.
 *
 * The way forth of a loop is a loop that hands on frames. Where it is gone back through in turn, it gets frames of its own,
 * and mostly of the same contents:
 *
 *   fwd(x, a, i, k, k1)    { let v = a / x;  fwd(…, (k, x, v), (k1, x, v)) }      becomes
 *   fwd(x, a, i, k)        { let v = a / x;  fwd(…, (k, x, v)) }
 *
 * so the parameter k stands for k1, too, where every call from outside begins both alike. Its frames are read on both ways
 * back, and the one that is made last, which runs last, gives them back (Note [Frames] in reverse.h). */
#include "passes/reverse/internal.h"

static bool holds(const Expr *tuple, const Var *v) {
    for (uint32_t i = 1; i < tuple->nargs; i++)
        if (tuple->args[i]->var == v)
            return true;
    return false;
}

/* Whether the frame is of variables only, behind those before it, and all that are saved are among them. */
static bool serves(const Expr *tuple, const Var *before, const VarVec *saved) {
    for (uint32_t i = 0; i < tuple->nargs; i++)
        if (tuple->args[i]->kind != EXPR_VAR)
            return false;
    for (size_t i = 0; i < saved->len; i++)
        if (!holds(tuple, saved->data[i]))
            return false;
    return tuple->nargs > 1 && tuple->args[0]->var == before &&
           type_resolve(tuple->type)->tag != TY_TUPLE;
}

static bool begins_in_steps(const Instance *caller, const Steps *steps, const Instance *n,
                            uint32_t param);

static bool begins_in_branch(const Instance *caller, const Step *s, const Instance *n,
                             uint32_t param) {
    for (uint32_t i = 0; i < s->nchoices; i++)
        if (!begins_in_steps(caller, s->choices[i].steps, n, param))
            return false;
    return true;
}

/* Whether all calls of n in these steps give the parameter what is below the frames of any loop. */
static bool begins_in_steps(const Instance *caller, const Steps *steps, const Instance *n,
                            uint32_t param) {
    for (size_t i = 0; i < steps->steps.len; i++) {
        const Step *s = steps->steps.data[i];
        if (s->kind == STEP_BRANCH && !begins_in_branch(caller, s, n, param))
            return false;
        if (s->kind != STEP_CALL || s->instance != n)
            continue;
        const Place *p = place_of(caller, s->e->args[param]);
        if (!p || !p->is_empty)
            return false;
    }
    return steps->end != END_BRANCH || begins_in_branch(caller, steps->branch, n, param);
}

static bool begins_with_none(const Program *p, const Instance *n, uint32_t param) {
    for (size_t i = 0; i < p->instances.len; i++) {
        const Instance *caller = p->instances.data[i];
        if (caller->reached && !begins_in_steps(caller, caller->body, n, param))
            return false;
    }
    return true;
}

static void find_chain(const Program *p, Instance *n) {
    Steps *loop = n->loops.data[0];
    for (uint32_t i = 0; i < n->fn->fn->nparams; i++) {
        Var *v = n->fn->fn->params[i];
        const Expr *arg = loop->call->args[i];
        const Expr *tuple = arg->kind == EXPR_VAR ? map_find(&n->tuples, arg->var) : NULL;
        if (!tuple || !serves(tuple, v, &loop->saved) || !begins_with_none(p, n, i))
            continue;
        n->own_chain = v;
        vec_clear(&loop->saved);
        for (uint32_t k = 1; k < tuple->nargs; k++)
            vec_push(&loop->saved, tuple->args[k]->var);
        return;
    }
}

void chains_find(Program *p, const Instance *top) {
    for (size_t i = 0; i < p->instances.len; i++) {
        Instance *n = p->instances.data[i];
        if (n->reached && n != top && !n->forward && !n->replays && !n->runs_again &&
            n->loops.len == 1 && !counts_frames(n))
            find_chain(p, n);
    }
}
