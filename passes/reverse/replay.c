/* SPDX-License-Identifier: Apache-2.0 */
/* Ways back that read the arguments in place of a frame: Note [Replays] in reverse.h.
 *
 * What the way back of an instance reads is known once all ways back are made. From there the steps are followed to what
 * they read in turn: of a call that is replayed itself, those of its arguments that its way back takes. So the instances
 * that may be replayed are found together: all but loops, less those that cost too much until none is left that does. */
#include "passes/reverse/internal.h"

/* What one call computes again, operators on floats counted twice, the choices that it makes again, and tuples, data and
 * functions. */
enum { MOST_WORK = 12, TOO_MUCH = MOST_WORK + 1 };

/* ---- what is read ---------------------------------------------------------------------------- */

static bool is_needed(const Instance *n, const Var *v) { return v && map_has(&n->needed, v); }

static bool step_is_needed(const Instance *n, const Step *s) {
    return is_needed(n, s->var) || is_needed(n, s->frame);
}

static void need(Instance *n, Var *v) {
    if (map_has(&n->needed, v))
        return;
    map_set(&n->needed, v, v);
    n->program->changed = true;
}

static void need_all(Instance *n, const VarVec *vars) {
    for (size_t i = 0; i < vars->len; i++)
        need(n, vars->data[i]);
}

static void need_operands(Instance *n, Expr *e) {
    VarVec vars = {0};
    if (e)
        expr_free_vars(e, &vars);
    need_all(n, &vars);
}

bool replay_needs_self(const Instance *n) {
    for (size_t i = 0; i < n->self->captured.len; i++)
        if (is_needed(n, n->self->captured.data[i]))
            return true;
    return false;
}

/* What stands in place of the frame of a call. */
static void need_arguments(Instance *n, const Step *s) {
    const Instance *callee = s->instance;
    if (!callee)
        return;
    if (replay_needs_self(callee))
        need_operands(n, s->e->a);
    for (uint32_t i = 0; i < s->e->nargs; i++)
        if (is_needed(callee, callee->fn->fn->params[i]))
            need_operands(n, s->e->args[i]);
}

static void find_needed(Instance *n, Steps *steps);

static void find_needed_of_branch(Instance *n, Step *s) {
    need_operands(n, s->scrutinee);
    for (uint32_t i = 0; i < s->nchoices; i++) {
        Choice *c = &s->choices[i];
        need_operands(n, c->guard);
        if (is_needed(n, s->var))
            need_operands(n, c->steps->result);
        if (is_needed(n, s->frame))
            need_all(n, &c->saved);
        find_needed(n, c->steps);
    }
}

static void find_needed(Instance *n, Steps *steps) {
    if (steps->end == END_BRANCH)
        find_needed_of_branch(n, steps->branch);
    else
        need_all(n, &steps->saved);
    for (size_t i = steps->steps.len; i-- > 0;) {
        Step *s = steps->steps.data[i];
        if (!step_is_needed(n, s))
            continue;
        if (s->kind == STEP_BRANCH)
            find_needed_of_branch(n, s);
        else if (s->kind == STEP_CALL && !is_needed(n, s->var))
            need_arguments(n, s);
        else
            need_operands(n, s->e);
    }
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Whether the parts of a tuple or record beside the one that e reads are scalars. Of a frame that is not known, so what
 * asks one which value a result is never runs again. */
static bool keeps_little(const Expr *e) {
    const Type *t = type_resolve(e->a->type);
    bool is_record = t->tag == TY_DATA && t->decl->nctors == 1 && e->index >= 0;
    if (!is_record && t->tag != TY_TUPLE)
        return false;
    const Ctor *ctor = is_record ? t->decl->ctors[0] : NULL;
    for (uint32_t i = 0; i < (is_record ? ctor->nfields : t->nargs); i++)
        if (i != (uint32_t)e->index && !type_has_rank0(is_record ? ctor->fields[i] : t->args[i]))
            return false;
    return true;
}

/* Whether what a pattern holds is small, or is kept anyway. */
static bool pattern_keeps_little(const Instance *n, const Pattern *p) {
    switch (p->kind) {
    case PAT_LIT: return true;
    case PAT_STRING:
    case PAT_WILDCARD: return type_has_rank0(p->type);
    case PAT_VAR: return is_needed(n, p->var) || type_has_rank0(p->var->type);
    case PAT_TUPLE:
    case PAT_CTOR: break;
    }
    for (uint32_t i = 0; i < p->nargs; i++)
        if (!pattern_keeps_little(n, p->args[i]))
            return false;
    return p->kind == PAT_TUPLE || p->nargs == p->ctor->nfields;
}

bool is_scalar_operator(const Expr *call) {
    if (call->a->kind != EXPR_OP || call->a->op->scalar == OP_SCALAR_NONE ||
        !type_has_rank0(call->type))
        return false;
    for (uint32_t i = 0; i < call->nargs; i++)
        if (!type_has_rank0(call->args[i]->type))
            return false;
    return true;
}

static uint32_t work_of_value(const Expr *e);

static uint32_t work_of_parts(const Expr *e) {
    uint32_t work = 1;
    for (uint32_t i = 0; i < e->nargs && work <= MOST_WORK; i++)
        work += work_of_value(e->args[i]);
    return work;
}

static uint32_t work_of_value(const Expr *e) {
    if (mem_stack_left() < SPARE_STACK)
        return TOO_MUCH;
    switch (e->kind) {
    case EXPR_LIT: return e->like ? TOO_MUCH : 0;
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_GLOBAL:
    case EXPR_CTOR: return 0;
    case EXPR_PROJ:
    case EXPR_FIELD: return keeps_little(e) ? work_of_value(e->a) : TOO_MUCH;
    case EXPR_CALL:
        if (e->a->kind != EXPR_CTOR && !is_scalar_operator(e))
            return TOO_MUCH;
        return work_of_parts(e) + (e->nargs && type_may_hold_float(e->args[0]->type));
    case EXPR_TUPLE: return work_of_parts(e);
    case EXPR_FN: return 1;
    case EXPR_IF: return work_of_value(e->a) + work_of_value(e->b) + work_of_value(e->c);
    case EXPR_OP:
    case EXPR_BUILTIN:
    case EXPR_LET:
    case EXPR_MATCH:
    case EXPR_UPDATE:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_DIM_OF:
    case EXPR_ZERO:
    case EXPR_CHECK:
    case EXPR_GRAD:
    case EXPR_ERROR: break;
    }
    return TOO_MUCH;
}

static uint32_t work_of(const Instance *n, const Steps *steps);

/* That of the arm that has most. */
static uint32_t work_of_branch(const Instance *n, const Step *s) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->nchoices; i++) {
        const Choice *c = &s->choices[i];
        const Pattern *p = c->pattern;
        bool whole = !p || p->kind == PAT_VAR || p->kind == PAT_WILDCARD;
        if (!whole && !pattern_keeps_little(n, p))
            return TOO_MUCH;
        uint32_t work = (c->guard ? work_of_value(c->guard) : 0) + work_of(n, c->steps);
        most = work > most ? work : most;
    }
    return 1 + work_of_value(s->scrutinee) + most;
}

static uint32_t work_of_step(const Instance *n, const Step *s) {
    switch (s->kind) {
    case STEP_PLAIN:
    case STEP_OPERATOR: return s->rec ? TOO_MUCH : work_of_value(s->e);
    case STEP_BUILTIN: return TOO_MUCH;
    case STEP_CALL:
        return is_needed(n, s->var) || !s->instance || !s->instance->replays ? TOO_MUCH : 0;
    case STEP_BRANCH: return work_of_branch(n, s);
    }
    BUG("a step of kind %d", (int)s->kind);
}

static uint32_t work_of(const Instance *n, const Steps *steps) {
    uint32_t work = steps->end == END_BRANCH ? work_of_branch(n, steps->branch) : 0;
    for (size_t i = 0; i < steps->steps.len && work <= MOST_WORK; i++)
        if (step_is_needed(n, steps->steps.data[i]))
            work += work_of_step(n, steps->steps.data[i]);
    return work;
}

/* ---- which are replayed ---------------------------------------------------------------------- */

static bool may_replay(Instance *n) {
    bool is_made = false;
    for (size_t i = 0; i < n->backs.len; i++)
        is_made |= n->backs.data[i]->state == BACK_MADE;
    return is_made && !n->loops.len && !n->named.len && !n->runs_again;
}

static void find_all_needed(Program *p) {
    for (size_t i = 0; i < p->instances.len; i++) {
        Instance *n = p->instances.data[i];
        map_clear(&n->needed);
        if (n->replays)
            need_all(n, &n->kept);
    }
    do {
        p->changed = false;
        for (size_t i = 0; i < p->instances.len; i++)
            if (p->instances.data[i]->replays)
                find_needed(p->instances.data[i], p->instances.data[i]->body);
    } while (p->changed);
}

static void forget_saved(Steps *steps) {
    vec_clear(&steps->saved);
    for (size_t i = 0; i <= steps->steps.len; i++) {
        bool last = i == steps->steps.len;
        Step *s = last ? steps->branch : steps->steps.data[i];
        if (last ? steps->end != END_BRANCH : s->kind != STEP_BRANCH)
            continue;
        for (uint32_t k = 0; k < s->nchoices; k++) {
            vec_clear(&s->choices[k].saved);
            forget_saved(s->choices[k].steps);
        }
    }
}

static void keep_needed(Instance *n) {
    const Fn *f = n->fn->fn;
    vec_clear(&n->kept);
    for (uint32_t i = 0; n->replays && i < f->nparams; i++)
        if (is_needed(n, f->params[i]))
            vec_push(&n->kept, f->params[i]);
}

bool replay_choose(Program *p) {
    bool any = false, fewer;
    for (size_t i = 0; i < p->instances.len; i++)
        any |= p->instances.data[i]->replays = may_replay(p->instances.data[i]);
    if (!any)
        return false;
    do {
        find_all_needed(p);
        any = fewer = false;
        for (size_t i = 0; i < p->instances.len; i++) {
            Instance *n = p->instances.data[i];
            if (!n->replays)
                continue;
            bool straight = instance_is_straight(n);
            /* what is differentiated backwards once more has one cell for a value: computed again, it would have two,
             * whose cotangents are added in another order */
            uint32_t most = straight || !p->merges ? 0 : MOST_WORK;
            /* what it captured is read from its closure, which nothing else needs where it stands in place of its calls */
            n->replays = work_of(n, n->body) <= most && !(straight && replay_needs_self(n));
            any |= n->replays;
            fewer |= !n->replays;
        }
    } while (fewer);
    for (size_t i = 0; any && i < p->instances.len; i++) {
        forget_saved(p->instances.data[i]->body);
        keep_needed(p->instances.data[i]);
    }
    return any;
}
