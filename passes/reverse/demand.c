/* SPDX-License-Identifier: Apache-2.0 */
/* Which tangents something reads.
 *
 *   let d = points @@ c; let i = argmin(d); sum(take(c, i))        the tangent of c is read, that of d is not
 *
 * A value may be active and lead to nothing that has a tangent: only `argmin` or a comparison reads it. Its tangent would
 * be made for nobody, and `dce` cannot take it out again, since operators whose sizes are not known count as ones that
 * may fail. So the steps of a function are gone through from its end, where the result is read, to its beginning. A call
 * reads the tangents of all its arguments: which of them its function reads is not asked. */
#include "passes/reverse/beside.h"

static void read_place(Map *read, Place *p) {
    if (!p || map_has(read, p))
        return;
    map_set(read, p, p);
    for (uint32_t i = 0; i < p->nparts; i++)
        read_place(read, p->parts[i]);
}

bool tangent_is_read(const Map *read, const Place *p) {
    if (!p || map_has(read, p))
        return p != NULL;
    for (uint32_t i = 0; i < p->nparts; i++)
        if (tangent_is_read(read, p->parts[i]))
            return true;
    return false;
}

static void read_all(Instance *n, Place *const *places, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        read_place(&n->read, places[i]);
}

static void read_operands(Instance *n, const Step *s) {
    const Expr *e = s->e;
    if (e->kind == EXPR_PROJ) {
        read_place(&n->read, place_of(n, e->a));
        return;
    }
    if (is_of_cells(e)) {
        Expr *args[4];
        for (uint32_t i = args_of_cells(e, args); i-- > 0;)
            read_place(&n->read, place_of(n, args[i]));
        return;
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (s->kind != STEP_OPERATOR || !tangent_ignores(n, e, i))
            read_place(&n->read, place_of(n, e->args[i]));
}

static void find_in_steps(Instance *n, const Steps *steps);

/* What a pattern took apart is read as a whole where a part of it is. */
static void find_in_choice(Instance *n, const Choice *c) {
    find_in_steps(n, c->steps);
    for (size_t i = c->wholes.len; i-- > 0;)
        if (tangent_is_read(&n->read, c->splits.data[i]))
            read_place(&n->read, c->wholes.data[i]);
}

static void find_in_step(Instance *n, const Step *s) {
    bool touches = step_touches_cells(n, s);
    if (touches)
        read_place(&n->read, s->place);
    if (!touches && !tangent_is_read(&n->read, s->place))
        return;
    switch (s->kind) {
    case STEP_PLAIN: return;
    case STEP_OPERATOR:
    case STEP_BUILTIN: read_operands(n, s); return;
    case STEP_CALL: read_all(n, s->places, s->nslots); return;
    case STEP_BRANCH:
        for (uint32_t i = 0; i < s->nchoices; i++)
            find_in_choice(n, &s->choices[i]);
        return;
    }
}

static void find_in_steps(Instance *n, const Steps *steps) {
    switch (steps->end) {
    case END_RETURN: read_place(&n->read, place_of(n, steps->result)); break;
    case END_LOOP: read_all(n, steps->branch->places, steps->branch->nslots); break;
    case END_BRANCH:
        for (uint32_t i = 0; i < steps->branch->nchoices; i++)
            find_in_choice(n, &steps->branch->choices[i]);
        break;
    }
    for (size_t i = steps->steps.len; i-- > 0;)
        find_in_step(n, steps->steps.data[i]);
}

void tangents_find_read(Instance *n) {
    map_clear(&n->read);
    find_in_steps(n, n->body);
}
