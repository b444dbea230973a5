/* SPDX-License-Identifier: Apache-2.0 */
/* See ops/recipe/chain.h. The new step is worked out beside the old ones and copied over the second when all has gone
 * well. */
#include "ops/recipe/chain.h"

#include "base/mem.h"

#include <string.h>

enum {
    SHORTEST = 8,   /* shorter rows are folded with lanes across them (FORM_FEW) */
    LONGEST = 4096, /* with what stands beside it a row stays in the second cache */
    MOST_CODE = 1500,
    MOST_OUTPUTS = 16
};

/* One of the two steps: where the axes of the new domain lie in its own. */
typedef struct Side {
    const Step *step;
    int of[RECIPE_MAX_AXES];
    int64_t times[RECIPE_MAX_AXES]; /* one step there is so many steps here */
    int nparts;
} Side;

typedef struct Chain {
    Side from, into;
    int n; /* axes of the new domain, the row last */
    int64_t extent[RECIPE_MAX_AXES];
    Step *step;                     /* the new one */
    Recipe *recipe;                 /* … of it */
    int place[RECIPE_MAX_OPERANDS]; /* the operands of `into` */
    int ints, floats;               /* parameters of `from` */
    VEC(Scalar) body, epilogue;
} Chain;

/* ---- what may be a part ---------------------------------------------------------------------- */

static bool is_plain(const Scalar *code, int n) {
    for (int i = 0; i < n; i++)
        if (code[i].op == SC_LOAD_AT || code[i].op == SC_LOAD_IF || code[i].op == SC_IOTA)
            return false;
    return true;
}

static bool folds_rows(const Recipe *r) {
    return (r->kind == RECIPE_REDUCE || r->kind == RECIPE_ROWS) && r->nreduce == 1;
}

static bool may_be_part(const Recipe *r) {
    return (r->kind == RECIPE_MAP || folds_rows(r)) && is_plain(r->body, r->nbody) &&
           is_plain(r->epilogue, r->nepilogue);
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* The innermost axis before `a` that is longer than 1; -1: none. */
static int next_axis(const Step *s, int a) {
    while (a-- > 0 && s->args.extents[a] == 1)
        ;
    return a;
}

/* Cuts the axes of both, from the row outwards, where either begins a new one. Both walk their domains row-major, so
 * equal places have equal numbers. */
static bool match_axes(Chain *c) {
    const Step *s[2] = {c->from.step, c->into.step};
    Side *side[2] = {&c->from, &c->into};
    int at[2], n = 0;
    int64_t left[2], times[2] = {1, 1};
    for (int i = 0; i < 2; i++) {
        at[i] = next_axis(s[i], s[i]->recipe->rank + s[i]->recipe->nreduce);
        left[i] = at[i] < 0 ? 1 : s[i]->args.extents[at[i]];
    }
    while (at[0] >= 0 && at[1] >= 0) {
        int64_t extent = left[0] < left[1] ? left[0] : left[1];
        if (n == RECIPE_MAX_AXES || extent < 1 || left[0] % extent != 0 || left[1] % extent != 0)
            return false;
        c->extent[n] = extent;
        for (int i = 0; i < 2; i++) {
            side[i]->of[n] = at[i];
            side[i]->times[n] = times[i];
            left[i] /= extent;
            times[i] *= extent;
            if (left[i] == 1) {
                at[i] = next_axis(s[i], at[i]);
                left[i] = at[i] < 0 ? 1 : s[i]->args.extents[at[i]];
                times[i] = 1;
            }
        }
        n++;
    }
    c->n = n;
    return at[0] < 0 && at[1] < 0 && n > 0;
}

/* Whether the innermost axis is the row of each step that has one. */
static bool is_row(const Chain *c) {
    const Side *side[2] = {&c->from, &c->into};
    for (int i = 0; i < 2; i++) {
        const Step *s = side[i]->step;
        int last = s->recipe->rank + s->recipe->nreduce - 1;
        if (folds_rows(s->recipe) && s->args.extents[last] != c->extent[0])
            return false;
    }
    return c->extent[0] >= SHORTEST && c->extent[0] <= LONGEST;
}

/* Strides along the new axes, the outermost first. */
static void spread(const Chain *c, const Side *side, const int64_t *strides, int64_t *out) {
    for (int i = 0; i < c->n; i++)
        out[c->n - 1 - i] = strides[side->of[i]] * side->times[i];
}

static void spread_output(const Chain *c, const Side *side, int k, int64_t *out) {
    spread(c, side, side->step->args.out_strides[k], out);
    if (side->step->recipe->kind == RECIPE_REDUCE)
        out[c->n - 1] = 0;
}

static void set_domain(Chain *c) {
    for (int i = 0; i < c->n; i++)
        c->step->args.extents[c->n - 1 - i] = c->extent[i];
    c->recipe->rank = (uint8_t)(c->n - 1);
    c->recipe->nreduce = 1;
}

/* ---- operands and outputs -------------------------------------------------------------------- */

static bool same_strides(const Chain *c, const int64_t *a, const int64_t *b) {
    return memcmp(a, b, sizeof *a * (size_t)c->n) == 0;
}

/* Operand p of a side as one of the new step: an equal one or a new one; -1: no room, or its rows are not contiguous. */
static int add_operand(Chain *c, const Side *side, int p) {
    const Step *s = side->step;
    Recipe *r = c->recipe;
    int64_t strides[RECIPE_MAX_AXES] = {0};
    spread(c, side, s->args.in_strides[p], strides);
    if (strides[c->n - 1] != 0 && strides[c->n - 1] != 1)
        return -1;
    for (int i = 0; i < r->noperands && side == &c->into; i++)
        if (c->step->in[i] == s->in[p] && c->step->in_offsets[i] == s->in_offsets[p] &&
            same_strides(c, c->step->args.in_strides[i], strides))
            return i;
    if (r->noperands == RECIPE_MAX_OPERANDS)
        return -1;
    int i = r->noperands++;
    c->step->in[i] = s->in[p];
    c->step->in_offsets[i] = s->in_offsets[p];
    r->in_types[i] = s->recipe->in_types[p];
    memcpy(c->step->args.in_strides[i], strides, sizeof strides);
    return i;
}

/* Whether operand p of `into` is what `from` writes; *refused where it is not read at the place where that was written. */
static bool is_computed(const Chain *c, int p, bool *refused) {
    const Step *from = c->from.step, *into = c->into.step;
    bool found = false;
    for (int k = 0; k < from->recipe->noutputs; k++) {
        int64_t read[RECIPE_MAX_AXES] = {0}, written[RECIPE_MAX_AXES] = {0};
        if (into->in[p]->buffer != from->out[k]->buffer)
            continue;
        spread(c, &c->into, into->args.in_strides[p], read);
        spread_output(c, &c->from, k, written);
        *refused |= into->in[p] != from->out[k] || into->in_offsets[p] != from->out_offsets[k] ||
                    !same_strides(c, read, written);
        found = true;
    }
    return found;
}

/* The operands of both; false where the two have nothing to do with each other, or something does not go. */
static bool add_operands(Chain *c) {
    bool related = false, refused = false;
    int own = c->from.step->recipe->noperands;
    for (int p = 0; p < own; p++) /* with their numbers: the code of `from` is taken as it is */
        if (add_operand(c, &c->from, p) < 0)
            return false;
    for (int p = 0; p < c->into.step->recipe->noperands; p++) {
        related |= is_computed(c, p, &refused);
        int i = c->place[p] = add_operand(c, &c->into, p);
        if (i < 0 || refused)
            return false;
        related |= i < own && c->step->args.in_strides[i][c->n - 1] == 1;
    }
    return related;
}

static bool touches(const Step *s, const Tensor *t) {
    for (int p = 0; p < s->recipe->noperands; p++)
        if (s->in[p]->buffer == t->buffer)
            return true;
    for (int k = 0; k < s->recipe->noutputs; k++)
        if (s->out[k]->buffer == t->buffer)
            return true;
    return false;
}

static bool add_output(Chain *c, const Side *side, int k) {
    const Step *s = side->step;
    Recipe *r = c->recipe;
    if (r->noutputs == MOST_OUTPUTS)
        return false;
    int i = r->noutputs++;
    c->step->out[i] = s->out[k];
    c->step->out_offsets[i] = s->out_offsets[k];
    r->out_types[i] = s->recipe->out_types[k];
    r->results[i] = s->recipe->results[k];
    int64_t *strides = c->step->args.out_strides[i];
    spread_output(c, side, k, strides);
    return s->recipe->kind != RECIPE_MAP || strides[c->n - 1] == 1;
}

static bool add_outputs(Chain *c) {
    for (int k = 0; k < c->into.step->recipe->noutputs; k++)
        if (touches(c->from.step, c->into.step->out[k]) || !add_output(c, &c->into, k))
            return false;
    for (int k = 0; k < c->from.step->recipe->noutputs; k++)
        if (!add_output(c, &c->from, k))
            return false;
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */

static void add_parts(Chain *c, const Recipe *from, int first_output) {
    RecipePart only = {.kind = (uint8_t)from->kind,
                       .combine = (uint8_t)from->combine,
                       .last = from->last,
                       .acc_type = from->acc_type,
                       .noutputs = from->noutputs,
                       .nbody = from->nbody,
                       .nepilogue = from->nepilogue};
    for (int k = 0; k < recipe_count_parts(from); k++) {
        RecipePart part = from->kind == RECIPE_ROWS ? from->parts[k] : only;
        part.out = (uint8_t)(part.out + first_output);
        c->recipe->parts[c->recipe->nparts++] = part;
    }
}

static void count_params(Chain *c, const Scalar *code, int n) {
    for (int i = 0; i < n; i++) {
        int *count = dtype_is_float((DType)code[i].type) ? &c->floats : &c->ints;
        if (code[i].op == SC_PARAM && code[i].a >= *count)
            *count = code[i].a + 1;
    }
}

/* An instruction of `into` with the operands and parameters of the new step; false: there is no room for a parameter. */
static bool renumber(Chain *c, Scalar *code) {
    KernelArgs *to = &c->step->args;
    const KernelArgs *own = &c->into.step->args;
    if (code->op == SC_LOAD)
        code->a = c->place[code->a];
    if (code->op != SC_PARAM)
        return true;
    bool is_float = dtype_is_float((DType)code->type);
    int at = code->a + (is_float ? c->floats : c->ints);
    if (at >= RECIPE_MAX_PARAMS)
        return false;
    if (is_float)
        to->fparams[at] = own->fparams[code->a];
    else
        to->iparams[at] = own->iparams[code->a];
    code->a = at;
    return true;
}

static bool add_code(Chain *c) {
    const Recipe *from = c->from.step->recipe, *into = c->into.step->recipe;
    memcpy(c->step->args.iparams, c->from.step->args.iparams, sizeof c->step->args.iparams);
    memcpy(c->step->args.fparams, c->from.step->args.fparams, sizeof c->step->args.fparams);
    count_params(c, from->body, from->nbody);
    count_params(c, from->epilogue, from->nepilogue);
    for (int i = 0; i < from->nbody; i++)
        vec_push(&c->body, from->body[i]);
    for (int i = 0; i < from->nepilogue; i++)
        vec_push(&c->epilogue, from->epilogue[i]);
    for (int i = 0; i < into->nbody + into->nepilogue; i++) {
        bool is_body = i < into->nbody;
        Scalar code = is_body ? into->body[i] : into->epilogue[i - into->nbody];
        if (!renumber(c, &code))
            return false;
        if (is_body)
            vec_push(&c->body, code);
        else
            vec_push(&c->epilogue, code);
    }
    return c->body.len + c->epilogue.len <= MOST_CODE;
}

bool step_chain(Step *into, const Step *from) {
    const Recipe *a = from->recipe, *b = into->recipe;
    if ((!folds_rows(a) && !folds_rows(b)) || !may_be_part(a) || !may_be_part(b) ||
        recipe_count_parts(a) + recipe_count_parts(b) > RECIPE_MAX_PARTS)
        return false;
    Chain chain = {.from = {.step = from}, .into = {.step = into}}, *c = &chain;
    if (!match_axes(c) || !is_row(c))
        return false;
    c->step = mem_new(Step);
    c->recipe = mem_new(Recipe);
    c->recipe->kind = RECIPE_ROWS;
    set_domain(c);
    if (!add_operands(c) || !add_outputs(c) || !add_code(c))
        return false;
    add_parts(c, a, b->noutputs);
    add_parts(c, b, 0);
    c->recipe->body = c->body.data;
    c->recipe->nbody = (uint16_t)c->body.len;
    c->recipe->epilogue = c->epilogue.data;
    c->recipe->nepilogue = (uint16_t)c->epilogue.len;
    c->step->recipe = c->recipe;
    *into = *c->step;
    return true;
}
