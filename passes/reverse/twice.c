/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are given one value twice, under names of which only the way back finds that they are one.
 *
 * In `f(id(x), x)` both arguments have the accumulator of x, so they are one slot of f, as in `f(x, x)`. Where the run decides
 * whether they are one, the call is made a choice that asks it on the way forth,
 *
 *   let y = if (c) { x } else { x * x };  f(y, x)      as      if (y is x) { f(x, x) } else { f(y, x) }
 *
 * each arm with an instance of its own, and all ways back are made again. */
#include "passes/reverse/twice.h"

#include <string.h>

static void merge_slots(Step *s, uint32_t a, uint32_t b) {
    uint32_t *slot = mem_new_n(uint32_t, s->slots.n + 1);
    for (uint32_t i = 0; i < s->slots.n; i++) {
        uint32_t k = s->slots.slot[i];
        slot[i] = k == b ? a : k - (k > b);
    }
    s->slots.slot = slot;
    s->shared[a] |= s->shared[b];
    s->nslots--;
    memmove(s->places + b, s->places + b + 1, (s->nslots - b) * sizeof *s->places);
    memmove(s->shared + b, s->shared + b + 1, (s->nslots - b) * sizeof *s->shared);
}

static Step *copy_call(Instance *n, const Step *s, Steps *into) {
    Step *copy = mem_new(Step);
    *copy = *s;
    copy->places = mem_new_n(Place *, s->nslots + 1);
    copy->shared = mem_new_n(bool, s->nslots + 1);
    memcpy(copy->places, s->places, s->nslots * sizeof *s->places);
    memcpy(copy->shared, s->shared, s->nslots * sizeof *s->shared);
    copy->var = var_new(s->var->name, s->var->type, s->e->span);
    copy->frame = var_new(s->frame->name, s->frame->type, s->e->span);
    copy->place = place_new(n, s->place->type);
    copy->place->home = into;
    copy->instance = copy->named_by = NULL;
    map_set(&n->places, copy->var, copy->place);
    map_set(&n->made_by, copy->var, copy);
    map_set(&into->defines, copy->var, copy->var);
    map_set(&into->defines, copy->frame, copy->frame);
    vec_push(&into->steps, copy);
    into->end = END_RETURN;
    into->result = expr_var(copy->var, s->e->span);
    return copy;
}

/* Makes the call of which slots a and b may be one value a choice. */
static void split_call(Instance *n, Step *s, uint32_t a, uint32_t b) {
    Choice *choices = mem_new_n(Choice, 3);
    Step call = *s;
    for (int i = 0; i < 2; i++) {
        choices[i].steps = mem_new(Steps);
        choices[i].steps->around = s->place->home;
    }
    merge_slots(copy_call(n, &call, choices[0].steps), a, b);
    Apart *apart = mem_new(Apart);
    *apart = (Apart){s->places[a], s->places[b], s->apart};
    copy_call(n, &call, choices[1].steps)->apart = apart;
    Build build = {s->e->span};
    s->kind = STEP_BRANCH;
    s->asks = apart;
    s->scrutinee = expr_bool(
        false, s->e->span); /* for good where no way back asks: then both arms do the same */
    s->e = b_if(&build, expr_bool(true, s->e->span), s->e, s->e);
    s->e->type = call.e->type;
    s->limit = n->nplaces + 1;
    s->nchoices = 2;
    s->choices = choices;
    alias_forget(s->place);
    n->program->changed = true;
}

static bool is_apart(const Step *s, const Place *one, const Place *other) {
    for (const Apart *a = s->apart; a; a = a->next)
        if (a->one == one && a->other == other)
            return true;
    return false;
}

Twice twice_settle(Instance *n, Step *s) {
    for (uint32_t a = 0; a < s->nslots; a++)
        for (uint32_t b = a + 1; b < s->nslots; b++) {
            Place *one = s->places[a], *other = s->places[b];
            if (place_here(one) != place_here(other))
                continue;
            if (is_apart(s, one, other))
                return TWICE_NEVER;
            if (alias_settled(one) == alias_settled(other)) {
                merge_slots(s, a, b);
                n->program->changed = true;
                return TWICE_NOT;
            }
            split_call(n, s, a, b);
            return TWICE_SPLIT;
        }
    return TWICE_IN_PARTS;
}
