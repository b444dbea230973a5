/* SPDX-License-Identifier: Apache-2.0 */
/* See ops/recipe/join.h. The new step is worked out beside the old ones and copied over the second when all has gone
 * well. */
#include "ops/recipe/join.h"

#include "base/mem.h"
#include "ops/recipe/axes.h"

#include <string.h>

enum { MOST_CODE = 800, MOST_OUTPUTS = 16, COMPUTED = -1 /* in place of an operand's number */ };

typedef struct Join {
    const Step *from, *into;
    Axes froms, intos;                  /* axes of the two, cut alike */
    Step *step;                         /* the new one */
    Recipe *recipe;                     /* … of it */
    int place[RECIPE_MAX_OPERANDS];     /* the operands of `into` */
    int32_t value[RECIPE_MAX_OPERANDS]; /* … of those that `from` computes: positions in the code */
    VEC(Scalar) body;
} Join;

/* Whether the map only loads at the index itself. */
static bool is_plain(const Recipe *r) {
    if (r->kind != RECIPE_MAP)
        return false;
    for (int i = 0; i < r->nbody; i++)
        if (r->body[i].op == SC_LOAD_AT || r->body[i].op == SC_LOAD_IF || r->body[i].op == SC_IOTA)
            return false;
    return true;
}

/* Whether all results lie alike. */
static bool is_even(const Step *s) {
    for (int k = 1; k < s->recipe->noutputs; k++)
        for (int a = 0; a < s->recipe->rank; a++)
            if (s->args.extents[a] > 1 && s->args.out_strides[k][a] != s->args.out_strides[0][a])
                return false;
    return true;
}

static bool match(Join *j) {
    const Step *from = j->from, *into = j->into;
    return axes_find(&j->froms, from->recipe->rank, from->args.extents,
                     from->args.out_strides[0]) &&
           axes_find(&j->intos, into->recipe->rank, into->args.extents,
                     into->args.out_strides[0]) &&
           axes_match(&j->froms, &j->intos);
}

/* The strides of an operand along the new axes, the outermost first. */
static void spread(const Axes *axes, const int64_t *strides, int64_t *out) {
    for (int i = 0; i < axes->n; i++) {
        const Axis *axis = &axes->at[axes->n - 1 - i];
        out[i] = strides[axis->of] * axis->times;
    }
}

static void set_domain(Join *j) {
    int n = j->intos.n;
    for (int i = 0; i < n; i++)
        j->step->args.extents[i] = j->intos.at[n - 1 - i].extent;
    j->recipe->rank = (uint8_t)n;
    if (n == 0) { /* one element */
        j->step->args.extents[0] = 1;
        j->recipe->rank = 1;
    }
}

/* ---- operands -------------------------------------------------------------------------------- */

static void put_operand(Join *j, int at, const Step *s, int p, const Axes *axes) {
    j->step->in[at] = s->in[p];
    j->step->in_offsets[at] = s->in_offsets[p];
    j->recipe->in_types[at] = s->recipe->in_types[p];
    spread(axes, s->args.in_strides[p], j->step->args.in_strides[at]);
    j->recipe->noperands = (uint8_t)(at + 1);
}

/* Operand p of `into` as one of the new step: an equal one or a new one. */
static bool add_operand(Join *j, int p) {
    const Recipe *r = j->recipe;
    const Step *s = j->into;
    int64_t strides[RECIPE_MAX_AXES] = {0};
    spread(&j->intos, s->args.in_strides[p], strides);
    for (int i = 0; i < r->noperands; i++)
        if (j->step->in[i] == s->in[p] && j->step->in_offsets[i] == s->in_offsets[p] &&
            r->in_types[i] == s->recipe->in_types[p] &&
            !memcmp(j->step->args.in_strides[i], strides, sizeof strides)) {
            j->place[p] = i;
            return true;
        }
    if (r->noperands == RECIPE_MAX_OPERANDS)
        return false;
    j->place[p] = r->noperands;
    put_operand(j, j->place[p], s, p, &j->intos);
    return true;
}

/* Whether operand p of `into` is a result of `from`, and if so, whether it may be read from the register. */
static bool find_computed(Join *j, int p, bool *refused) {
    const Step *from = j->from, *into = j->into;
    for (int k = 0; k < from->recipe->noutputs; k++) {
        if (into->in[p]->buffer != from->out[k]->buffer)
            continue;
        const Scalar *value = &from->recipe->body[from->recipe->results[k]];
        int64_t strides[RECIPE_MAX_AXES] = {0};
        spread(&j->intos, into->args.in_strides[p], strides);
        *refused = into->in[p] != from->out[k] || into->in_offsets[p] != from->out_offsets[k] ||
                   scalar_result(value) != (DType)from->recipe->out_types[k];
        for (int i = 0; i < j->intos.n; i++)
            *refused |= strides[i] != j->intos.at[j->intos.n - 1 - i].stride;
        j->place[p] = COMPUTED;
        j->value[p] = from->recipe->results[k];
        return true;
    }
    return false;
}

static bool add_operands(Join *j) {
    bool related = false;
    int own = j->from->recipe->noperands;
    for (int p = 0; p < own; p++) /* with their numbers: the code of `from` is taken as it is */
        put_operand(j, p, j->from, p, &j->froms);
    for (int p = 0; p < j->into->recipe->noperands; p++) {
        bool refused = false;
        if (find_computed(j, p, &refused)) {
            related = true;
        } else {
            if (!add_operand(j, p))
                return false;
            related |= j->place[p] < own && j->into->in[p]->count > 1;
        }
        if (refused)
            return false;
    }
    return related;
}

static bool add_output(Join *j, const Step *s, int k, const Axes *axes, int32_t value) {
    Recipe *r = j->recipe;
    if (r->noutputs == MOST_OUTPUTS)
        return false;
    int i = r->noutputs++;
    j->step->out[i] = s->out[k];
    j->step->out_offsets[i] = s->out_offsets[k];
    r->out_types[i] = s->recipe->out_types[k];
    r->results[i] = value;
    spread(axes, s->args.out_strides[k], j->step->args.out_strides[i]);
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */

static void count_params(const Recipe *r, int *ints, int *floats) {
    for (int i = 0; i < r->nbody; i++) {
        int *count = dtype_is_float((DType)r->body[i].type) ? floats : ints;
        if (r->body[i].op == SC_PARAM && r->body[i].a >= *count)
            *count = r->body[i].a + 1;
    }
}

static bool move_param(Join *j, Scalar *c, int ints, int floats) {
    bool is_float = dtype_is_float((DType)c->type);
    int to = c->a + (is_float ? floats : ints);
    if (to >= RECIPE_MAX_PARAMS)
        return false;
    if (is_float)
        j->step->args.fparams[to] = j->into->args.fparams[c->a];
    else
        j->step->args.iparams[to] = j->into->args.iparams[c->a];
    c->a = to;
    return true;
}

/* The position of an equal load in the code of `from`; -1: none. */
static int32_t find_load(const Join *j, const Scalar *c, int before) {
    for (int i = 0; i < before; i++) {
        const Scalar *known = &j->body.data[i];
        if (known->op == SC_LOAD && known->a == c->a && known->type == c->type)
            return i;
    }
    return -1;
}

/* The code of `from`, then that of `into`; gives where the values of the latter are. */
static int32_t *add_code(Join *j) {
    const Recipe *from = j->from->recipe, *into = j->into->recipe;
    int ints = 0, floats = 0;
    count_params(from, &ints, &floats);
    memcpy(j->step->args.iparams, j->from->args.iparams, sizeof j->step->args.iparams);
    memcpy(j->step->args.fparams, j->from->args.fparams, sizeof j->step->args.fparams);
    for (int i = 0; i < from->nbody; i++)
        vec_push(&j->body, from->body[i]);
    int32_t *at = mem_bytes(sizeof *at * ((size_t)into->nbody + 1));
    for (int i = 0; i < into->nbody; i++) {
        Scalar c = into->body[i];
        at[i] = -1;
        if (c.op == SC_LOAD) {
            int p = c.a;
            c.a = j->place[p] == COMPUTED ? 0 : j->place[p];
            at[i] = j->place[p] == COMPUTED ? j->value[p] : find_load(j, &c, from->nbody);
        }
        if (at[i] >= 0)
            continue;
        if (c.op == SC_PARAM && !move_param(j, &c, ints, floats))
            return NULL;
        ScalarReads reads = scalar_reads(&c);
        for (int k = reads.first; k < reads.end; k++)
            c.at[k] = at[c.at[k]];
        at[i] = (int32_t)j->body.len;
        vec_push(&j->body, c);
    }
    return j->body.len <= MOST_CODE ? at : NULL;
}

bool step_join(Step *into, const Step *from, uint32_t kept) {
    Join join = {.from = from, .into = into}, *j = &join;
    if (!is_plain(from->recipe) || !is_plain(into->recipe) || !is_even(from) || !is_even(into) ||
        from->out_offsets[0] || into->out_offsets[0] || !match(j))
        return false;
    j->step = mem_new(Step);
    j->recipe = mem_new(Recipe);
    j->recipe->kind = RECIPE_MAP;
    set_domain(j);
    if (!add_operands(j))
        return false;
    const int32_t *at = add_code(j);
    if (!at)
        return false;
    for (int k = 0; k < into->recipe->noutputs; k++)
        if (!add_output(j, into, k, &j->intos, at[into->recipe->results[k]]))
            return false;
    for (int k = 0; k < from->recipe->noutputs; k++)
        if (kept >> k & 1 && !add_output(j, from, k, &j->froms, from->recipe->results[k]))
            return false;
    j->recipe->body = j->body.data;
    j->recipe->nbody = (uint16_t)j->body.len;
    j->step->recipe = j->recipe;
    *into = *j->step;
    return true;
}
