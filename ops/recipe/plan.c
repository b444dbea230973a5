/* SPDX-License-Identifier: Apache-2.0 */
/* Building and running the steps of an operator call.
 *
 * Note [Fewer axes]. The cost of a walk and the number of compiled kernels both grow with the
 * number of axes. step_end drops axes of extent 1 and merges neighbours that every operand walks
 * as one (kernel_group_axes), so a contiguous element-wise call has one axis whatever its rank was. Order is kept:
 * a reduction or a scan meets its elements as before. */
#include "ops/recipe/plan.h"

#include "base/diag.h"
#include "base/mem.h"

#include <string.h>

Tensor *plan_temp(Plan *plan, DType dtype, int rank, const int64_t *shape) {
    Tensor *t = plan->blank ? tensor_blank(dtype, rank, shape) : tensor_new(dtype, rank, shape);
    vec_push(&plan->temps, t);
    return t;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static Step *step_new(Plan *plan) {
    if (!plan->spares.len)
        return mem_new(Step);
    Step *step = vec_pop(&plan->spares);
    *step = (Step){0};
    return step;
}

void step_begin(StepBuilder *s, Plan *plan, RecipeKind kind, int rank, const int64_t *extents) {
    memset(s, 0, sizeof *s);
    s->plan = plan;
    s->kind = kind;
    s->rank = rank;
    s->step = step_new(plan);
    for (int i = 0; i < rank; i++)
        s->step->args.extents[i] = extents[i];
}

void step_reduce_over(StepBuilder *s, int nreduce, const int64_t *extents) {
    if (s->nin || s->nout || s->rank + nreduce > RECIPE_MAX_AXES)
        BUG("step: reduction axes after operands, or more than %d axes", RECIPE_MAX_AXES);
    s->nreduce = nreduce;
    for (int i = 0; i < nreduce; i++)
        s->step->args.extents[s->rank + i] = extents[i];
}

void step_combine(StepBuilder *s, Combine combine, DType acc_type) {
    s->combine = combine;
    s->acc_type = acc_type;
}

int step_in_strided(StepBuilder *s, const Tensor *t, const int64_t *strides, int64_t offset) {
    if (s->nin == RECIPE_MAX_OPERANDS)
        BUG("step: more than %d operands", RECIPE_MAX_OPERANDS);
    int i = s->nin++;
    s->in_types[i] = t->dtype;
    s->step->in[i] = (Tensor *)t;
    s->step->in_offsets[i] = offset;
    for (int axis = 0; axis < s->rank + s->nreduce; axis++)
        s->step->args.in_strides[i][axis] = strides[axis];
    return i;
}

/* Strides of t's axes as the last of `rank` axes; 0 where t repeats. */
static void align(const Tensor *t, int rank, const int64_t *extents, int64_t *strides) {
    int shift = rank - t->rank;
    if (shift < 0)
        BUG("step: rank %d into a domain of rank %d", t->rank, rank);
    for (int axis = 0; axis < rank; axis++) {
        bool repeats = axis < shift || t->shape[axis - shift] == 1;
        if (!repeats && t->shape[axis - shift] != extents[axis])
            BUG("step: size %lld into extent %lld", (long long)t->shape[axis - shift],
                (long long)extents[axis]);
        strides[axis] = repeats ? 0 : t->strides[axis - shift];
    }
}

int step_in(StepBuilder *s, const Tensor *t) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    align(t, s->rank, s->step->args.extents, strides);
    return step_in_strided(s, t, strides, 0);
}

int step_out_strided(StepBuilder *s, Tensor *t, const int64_t *strides, int64_t offset) {
    int i = s->nout++;
    s->out_types[i] = t->dtype;
    s->step->out[i] = t;
    s->step->out_offsets[i] = offset;
    for (int axis = 0; axis < s->rank + s->nreduce; axis++)
        s->step->args.out_strides[i][axis] = axis < s->rank ? strides[axis] : 0;
    return i;
}

int step_out(StepBuilder *s, Tensor *t) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    align(t, s->rank, s->step->args.extents, strides);
    return step_out_strided(s, t, strides, 0);
}

Sc step_iparam(StepBuilder *s, ScalarBuilder *b, DType type, int64_t v) {
    if (s->niparams == RECIPE_MAX_PARAMS)
        BUG("step: more than %d parameters", RECIPE_MAX_PARAMS);
    s->step->args.iparams[s->niparams] = v;
    return sc_param(b, type, s->niparams++);
}

Sc step_fparam(StepBuilder *s, ScalarBuilder *b, DType type, double v) {
    if (s->nfparams == RECIPE_MAX_PARAMS)
        BUG("step: more than %d parameters", RECIPE_MAX_PARAMS);
    s->step->args.fparams[s->nfparams] = v;
    return sc_param(b, type, s->nfparams++);
}

void step_set_body(StepBuilder *s, const Scalar *code, int n) {
    s->body.code.data = (Scalar *)code;
    s->body.code.len = s->body.code.cap = (size_t)n; /* full: a push would copy it first */
}

void step_result(StepBuilder *s, Sc v) { s->results[s->nresults++] = v; }

static bool uses_iota(const ScalarBuilder *b) {
    for (size_t i = 0; i < b->code.len; i++)
        if (b->code.data[i].op == SC_IOTA)
            return true;
    return false;
}

static void move_axis(StepBuilder *s, int to, int from) {
    KernelArgs *a = &s->step->args;
    a->extents[to] = a->extents[from];
    for (int i = 0; i < s->nin; i++)
        a->in_strides[i][to] = a->in_strides[i][from];
    for (int i = 0; i < s->nout; i++)
        a->out_strides[i][to] = a->out_strides[i][from];
}

/* An axis of extent 1, walked contiguously by all. */
static void unit_axis(StepBuilder *s, int axis) {
    KernelArgs *a = &s->step->args;
    a->extents[axis] = 1;
    for (int i = 0; i < s->nin; i++)
        a->in_strides[i][axis] = 1;
    for (int i = 0; i < s->nout; i++)
        a->out_strides[i][axis] = axis < s->rank;
}

/* Compacts the axes [begin, end) in place; gives how many are left. `keep`: the last one stays as
 * it is. */
static int compact(StepBuilder *s, int begin, int end, bool keep) {
    KernelArgs *a = &s->step->args;
    int group[RECIPE_MAX_AXES];
    AxisRange range = {begin, end, keep ? 1u << (end - 1) : 0, 0};
    int n = kernel_group_axes(a, s->nin, s->nout, range, group);
    for (int axis = begin, last = -1; axis < end; axis++) {
        if (group[axis] < 0)
            continue;
        int to = begin + group[axis];
        int64_t outer = to == last ? a->extents[to] : 1;
        move_axis(s, to, axis);
        a->extents[to] *= outer;
        last = to;
    }
    return n;
}

/* See Note [Fewer axes]. Each group keeps at least one axis. */
static void merge_axes(StepBuilder *s) {
    bool reduces = s->kind == RECIPE_REDUCE || s->kind == RECIPE_PRODUCT;
    int nreduce = compact(s, s->rank, s->rank + s->nreduce, false);
    int rank = compact(s, 0, s->rank, s->kind == RECIPE_SCAN), from = s->rank;
    bool unit = rank == 0 && nreduce < RECIPE_MAX_AXES;
    int to = rank + unit;
    for (int i = 0; i < nreduce && to < from; i++)
        move_axis(s, to + i, from + i);
    for (int i = nreduce; i-- > 0 && to > from;)
        move_axis(s, to + i, from + i);
    s->rank = to;
    s->nreduce = nreduce;
    if (unit)
        unit_axis(s, 0);
    if (reduces && nreduce == 0) {
        s->nreduce = 1;
        unit_axis(s, s->rank);
    }
}

void step_end(StepBuilder *s) {
    Step *step = s->step;
    int nresults = s->kind == RECIPE_SCATTER ? 2 : s->nout;
    if (s->nresults == 0 && nresults == 1)
        step_result(s, (Sc)s->body.code.len - 1);
    if (s->nresults != nresults)
        BUG("step: %d results for %d outputs", s->nresults, s->nout);
    for (int axis = 0; axis < s->rank; axis++)
        if (step->args.extents[axis] == 0) {
            vec_push(&s->plan->spares, step);
            return;
        }
    bool iota = uses_iota(&s->body) || uses_iota(&s->epilogue);
    if (!iota)
        merge_axes(s);

    Recipe *r = mem_new(Recipe);
    r->kind = s->kind;
    r->combine = s->combine;
    r->last = s->last;
    r->rank = (uint8_t)s->rank;
    r->nreduce = (uint8_t)s->nreduce;
    r->noperands = (uint8_t)s->nin;
    r->noutputs = (uint8_t)s->nout;
    r->acc_type = (uint8_t)s->acc_type;
    for (int i = 0; i < s->nin; i++)
        r->in_types[i] = (uint8_t)s->in_types[i];
    for (int i = 0; i < s->nout; i++)
        r->out_types[i] = (uint8_t)s->out_types[i];
    r->nbody = (uint16_t)s->body.code.len;
    r->body = s->body.code.data;
    r->nepilogue = (uint16_t)s->epilogue.code.len;
    r->epilogue = s->epilogue.code.data;
    memcpy(r->results, s->results, sizeof(int32_t) * (size_t)s->nresults);
    step->recipe = r;
    vec_push(&s->plan->steps, step);
}

/* ---- common steps ---------------------------------------------------------------------------- */

void plan_gather_strided(Plan *plan, Tensor *out, const Tensor *t, const int64_t *strides,
                         int64_t offset) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    Sc x = sc_load(&s.body, step_in_strided(&s, t, strides, offset), t->dtype);
    step_result(&s, sc_convert(&s.body, x, out->dtype));
    step_out(&s, out);
    step_end(&s);
}

void plan_copy(Plan *plan, Tensor *out, const Tensor *t) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    align(t, out->rank, out->shape, strides);
    plan_gather_strided(plan, out, t, strides, 0);
}

const Tensor *plan_contiguous(Plan *plan, const Tensor *t) {
    if (tensor_is_contiguous(t))
        return t;
    Tensor *copy = plan_temp(plan, t->dtype, t->rank, t->shape);
    plan_copy(plan, copy, t);
    return copy;
}

static void fill(Plan *plan, Tensor *out, int64_t i, double f) {
    StepBuilder s;
    DType type = sc_type_of(out->dtype);
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    if (dtype_is_float(type))
        step_fparam(&s, &s.body, type, f);
    else
        step_iparam(&s, &s.body, type, i);
    step_out(&s, out);
    step_end(&s);
}

void plan_fill_int(Plan *plan, Tensor *out, int64_t v) {
    fill(plan, out, out->dtype == DT_BOOL ? v != 0 : v, (double)v);
}

void plan_fill_float(Plan *plan, Tensor *out, double v) {
    int64_t i = 0;
    if (!dtype_is_float(out->dtype)) {
        unsigned char element[8];
        elem_set_float(element, out->dtype, v);
        i = elem_get_int(element, out->dtype);
    }
    fill(plan, out, i, v);
}

DType reduce_acc_type(DType t) { return sc_type_of(t); }

void plan_reduce(Plan *plan, Tensor *out, const Tensor *t, uint32_t axes, Combine combine) {
    StepBuilder s;
    step_begin_reduce(&s, plan, RECIPE_REDUCE, t, axes);
    DType acc = sc_type_of(out->dtype);
    Sc x = sc_load(&s.body, step_in_reduced(&s, t, axes), t->dtype);
    sc_cast(&s.body, x, acc);
    step_combine(&s, combine, acc);
    step_out_reduced(&s, out, t, axes);
    step_end(&s);
}

void step_begin_reduce(StepBuilder *s, Plan *plan, RecipeKind kind, const Tensor *t,
                       uint32_t axes) {
    int64_t kept[RECIPE_MAX_AXES], reduced[RECIPE_MAX_AXES];
    int nkept = 0, nreduced = 0;
    for (int axis = 0; axis < t->rank; axis++) {
        if (axes >> axis & 1)
            reduced[nreduced++] = t->shape[axis];
        else
            kept[nkept++] = t->shape[axis];
    }
    step_begin(s, plan, kind, nkept, kept);
    step_reduce_over(s, nreduced, reduced);
}

int step_in_reduced(StepBuilder *s, const Tensor *t, uint32_t axes) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    int kept = 0, reduced = s->rank;
    for (int axis = 0; axis < t->rank; axis++) {
        int64_t stride = t->shape[axis] == 1 ? 0 : t->strides[axis];
        strides[axes >> axis & 1 ? reduced++ : kept++] = stride;
    }
    return step_in_strided(s, t, strides, 0);
}

int step_out_reduced(StepBuilder *s, Tensor *out, const Tensor *t, uint32_t axes) {
    int64_t strides[RECIPE_MAX_AXES] = {0};
    int kept = 0;
    bool keepdims = out->rank == t->rank;
    for (int axis = 0; axis < t->rank; axis++)
        if (!(axes >> axis & 1)) {
            strides[kept] = out->strides[keepdims ? axis : kept];
            kept++;
        }
    return step_out_strided(s, out, strides, 0);
}

/* ---- running --------------------------------------------------------------------------------- */

static int32_t reference(void *ctx, const Recipe *r, const KernelArgs *args) {
    (void)ctx;
    return recipe_run(r, args);
}

int32_t plan_run(Plan *plan, StepRunner runner, void *ctx, const volatile int *interrupt) {
    int32_t status = KERNEL_DONE;
    if (!runner)
        runner = reference;
    for (size_t k = 0; k < plan->steps.len && status == KERNEL_DONE; k++) {
        Step *step = plan->steps.data[k];
        const Recipe *r = step->recipe;
        KernelArgs *args = &step->args;
        for (int i = 0; i < r->noperands; i++)
            args->in[i] = (char *)tensor_data(step->in[i]) +
                          step->in_offsets[i] * (int64_t)dtype_size(step->in[i]->dtype);
        for (int i = 0; i < r->noutputs; i++)
            args->out[i] = (char *)tensor_data(step->out[i]) +
                           step->out_offsets[i] * (int64_t)dtype_size(step->out[i]->dtype);
        args->interrupt = interrupt;
        args->thread = 0;
        args->nthreads = 1;
        status = runner(ctx, r, args);
    }
    for (size_t k = 0; k < plan->temps.len; k++)
        tensor_release(plan->temps.data[k]);
    plan->temps.len = 0;
    if (status == KERNEL_MEMORY)
        mem_out_of_memory(0);
    return status;
}
