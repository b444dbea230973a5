/* SPDX-License-Identifier: Apache-2.0 */
/* See ops/recipe/epilogue.h. The new step is worked out beside the old ones and copied over the MAP when all has gone
 * well. */
#include "ops/recipe/epilogue.h"

#include "base/mem.h"
#include "ops/recipe/axes.h"

#include <string.h>

enum {
    /* A tile of a product repeats its epilogue for each vector of sums, up to 24 times. */
    MOST_BEHIND_PRODUCT = 160,
    MOST_BEHIND_REDUCE = 1024,
};

typedef struct Finish {
    const Step *map, *fold;
    int operand;    /* of the map */
    Axes maps;      /* the axes of the map */
    Axes folds;     /* the parallel axes of the fold, cut alike */
    Step *step;     /* the new one */
    Recipe *recipe; /* … of it */
    VEC(Scalar) epilogue;
} Finish;

/* ---- axes ------------------------------------------------------------------------------------ */

static bool match_axes(Finish *f) {
    const Step *map = f->map, *fold = f->fold;
    return axes_find(&f->maps, map->recipe->rank, map->args.extents,
                     map->args.in_strides[f->operand]) &&
           axes_find(&f->folds, fold->recipe->rank, fold->args.extents,
                     fold->args.out_strides[0]) &&
           axes_match(&f->maps, &f->folds);
}

/* ---- the domain of the new step -------------------------------------------------------------- */

static bool uses_index(const Scalar *code, int n) {
    for (int i = 0; i < n; i++)
        if (code[i].op == SC_IOTA)
            return true;
    return false;
}

/* The parallel axes of the fold in its own order, each cut as the map needs it. */
static bool add_parallel_axes(Finish *f) {
    const Step *fold = f->fold, *map = f->map;
    const Recipe *from = fold->recipe;
    KernelArgs *to = &f->step->args;
    bool indexed = uses_index(from->body, from->nbody) ||
                   uses_index(from->epilogue, from->nepilogue);
    int n = 0;
    for (int a = 0; a < from->rank; a++) {
        int parts = 0;
        for (int i = f->folds.n; i-- > 0;) { /* the outermost first */
            const Axis *axis = &f->folds.at[i], *other = &f->maps.at[i];
            if (axis->of != a)
                continue;
            if (n + from->nreduce == RECIPE_MAX_AXES)
                return false;
            parts++;
            to->extents[n] = axis->extent;
            for (int p = 0; p < from->noperands; p++)
                to->in_strides[p][n] = fold->args.in_strides[p][a] * axis->times;
            for (int p = 0; p < map->recipe->noperands; p++)
                to->in_strides[from->noperands + p][n] = map->args.in_strides[p][other->of] *
                                                         other->times;
            to->out_strides[0][n] = map->args.out_strides[0][other->of] * other->times;
            n++;
        }
        if (parts > 1 && indexed)
            return false;
        if (parts == 0) { /* of extent 1 */
            to->extents[n] = 1;
            for (int p = 0; p < from->noperands; p++)
                to->in_strides[p][n] = fold->args.in_strides[p][a];
            to->out_strides[0][n] = fold->args.out_strides[0][a];
            n++;
        }
    }
    f->recipe->rank = (uint8_t)n;
    return n + from->nreduce <= RECIPE_MAX_AXES;
}

static void add_reduction_axes(Finish *f) {
    const Step *fold = f->fold;
    KernelArgs *to = &f->step->args;
    for (int a = 0; a < fold->recipe->nreduce; a++) {
        int at = f->recipe->rank + a, from = fold->recipe->rank + a;
        to->extents[at] = fold->args.extents[from];
        for (int p = 0; p < fold->recipe->noperands; p++)
            to->in_strides[p][at] = fold->args.in_strides[p][from];
    }
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Gives the map's operands their places behind the fold's; the one between is left out. What both read stands
 * there twice, since a product may read its own operand from packed panels. */
static bool add_operands(Finish *f, int *place) {
    const Recipe *from = f->fold->recipe, *map = f->map->recipe;
    KernelArgs *args = &f->step->args;
    int n = from->noperands;
    if (n + map->noperands > RECIPE_MAX_OPERANDS)
        return false;
    memcpy(f->step->in, f->fold->in, sizeof f->step->in);
    memcpy(f->step->in_offsets, f->fold->in_offsets, sizeof f->step->in_offsets);
    for (int p = 0; p < map->noperands; p++) {
        int row = from->noperands + p;
        if (p == f->operand)
            continue;
        place[p] = n;
        if (n != row)
            memcpy(args->in_strides[n], args->in_strides[row], sizeof args->in_strides[n]);
        f->step->in[n] = f->map->in[p];
        f->step->in_offsets[n] = f->map->in_offsets[p];
        f->recipe->in_types[n++] = map->in_types[p];
    }
    for (int p = n; p < from->noperands + map->noperands; p++)
        memset(args->in_strides[p], 0, sizeof args->in_strides[p]);
    f->recipe->noperands = (uint8_t)n;
    f->step->out[0] = f->map->out[0];
    f->step->out_offsets[0] = f->map->out_offsets[0];
    f->recipe->out_types[0] = map->out_types[0];
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */

static void count_params(const Scalar *code, int n, int *ints, int *floats) {
    for (int i = 0; i < n; i++) {
        int *count = dtype_is_float((DType)code[i].type) ? floats : ints;
        if (code[i].op == SC_PARAM && code[i].a >= *count)
            *count = code[i].a + 1;
    }
}

/* The fold's epilogue, then the map's body over its value. */
static bool add_code(Finish *f, const int *place) {
    const Recipe *from = f->fold->recipe, *map = f->map->recipe;
    KernelArgs *args = &f->step->args;
    int ints = 0, floats = 0;
    count_params(from->body, from->nbody, &ints, &floats);
    count_params(from->epilogue, from->nepilogue, &ints, &floats);
    memcpy(args->iparams, f->fold->args.iparams, sizeof args->iparams);
    memcpy(args->fparams, f->fold->args.fparams, sizeof args->fparams);
    for (int i = 0; i < from->nepilogue; i++)
        vec_push(&f->epilogue, from->epilogue[i]);
    if (!from->nepilogue)
        vec_push(&f->epilogue, ((Scalar){.op = SC_ACC, .type = from->acc_type}));
    int32_t value = (int32_t)f->epilogue.len - 1;
    if (scalar_result(&f->epilogue.data[value]) != (DType)from->out_types[0])
        return false; /* storing it rounds */
    int32_t *at = mem_bytes(sizeof *at * ((size_t)map->nbody + 1));
    for (int i = 0; i < map->nbody; i++) {
        Scalar c = map->body[i];
        at[i] = (int32_t)f->epilogue.len;
        if (c.op == SC_LOAD && c.a == f->operand) {
            at[i] = value;
            continue;
        }
        if (c.op == SC_LOAD)
            c.a = place[c.a];
        if (c.op == SC_PARAM) {
            bool is_float = dtype_is_float((DType)c.type);
            int to = c.a + (is_float ? floats : ints);
            if (to >= RECIPE_MAX_PARAMS)
                return false;
            if (is_float)
                args->fparams[to] = f->map->args.fparams[c.a];
            else
                args->iparams[to] = f->map->args.iparams[c.a];
            c.a = to;
        }
        ScalarReads reads = scalar_reads(&c);
        for (int k = reads.first; k < reads.end; k++)
            c.at[k] = at[c.at[k]];
        vec_push(&f->epilogue, c);
    }
    /* The result of an epilogue is its last value. */
    if (at[map->results[0]] != (int32_t)f->epilogue.len - 1)
        return false;
    size_t most = from->kind == RECIPE_PRODUCT ? MOST_BEHIND_PRODUCT : MOST_BEHIND_REDUCE;
    return f->epilogue.len <= most;
}

/* Whether the map only loads at the index itself. */
static bool is_plain(const Recipe *map) {
    for (int i = 0; i < map->nbody; i++)
        if (map->body[i].op == SC_LOAD_AT || map->body[i].op == SC_LOAD_IF ||
            map->body[i].op == SC_IOTA)
            return false;
    return true;
}

bool step_finish(Step *map, const Step *fold, int operand) {
    const Recipe *m = map->recipe, *r = fold->recipe;
    if ((r->kind != RECIPE_PRODUCT && r->kind != RECIPE_REDUCE) || r->noutputs != 1 ||
        m->kind != RECIPE_MAP || m->noutputs != 1 || !is_plain(m) ||
        fold->out[0] != map->in[operand] || fold->out_offsets[0] || map->in_offsets[operand])
        return false;
    Finish finish = {.map = map, .fold = fold, .operand = operand}, *f = &finish;
    int place[RECIPE_MAX_OPERANDS] = {0};
    f->step = mem_new(Step);
    f->recipe = mem_new(Recipe);
    *f->recipe = *r;
    if (!match_axes(f) || r->noperands + m->noperands > RECIPE_MAX_OPERANDS ||
        !add_parallel_axes(f))
        return false;
    add_reduction_axes(f);
    if (!add_operands(f, place) || !add_code(f, place))
        return false;
    f->recipe->epilogue = f->epilogue.data;
    f->recipe->nepilogue = (uint16_t)f->epilogue.len;
    f->step->recipe = f->recipe;
    *map = *f->step;
    return true;
}
