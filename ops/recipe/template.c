/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recipe/template.h"

#include "base/mem.h"

#include <string.h>

enum { ALIGN = 64, SMALL = 2048 };

/* ---- making ---------------------------------------------------------------------------------- */

typedef struct Life {
    size_t first, last; /* steps that touch the temporary */
    int64_t bytes, at;
    bool used;
} Life;

typedef struct Slots {
    const Plan *plan;
    Tensor *const *in, *const *out;
    uint32_t nin, nout;
} Slots;

/* Slots are told apart by their buffers: a lowering may have made another header over one. */
static bool find_slot(const Slots *s, const Tensor *t, uint32_t *slot) {
    for (uint32_t i = 0; i < s->nin; i++)
        if (s->in[i]->buffer == t->buffer) {
            *slot = i;
            return true;
        }
    for (uint32_t i = 0; i < s->nout; i++)
        if (s->out[i]->buffer == t->buffer) {
            *slot = s->nin + i;
            return true;
        }
    for (size_t i = 0; i < s->plan->temps.len; i++)
        if (s->plan->temps.data[i]->buffer == t->buffer) {
            *slot = s->nin + s->nout + (uint32_t)i;
            return true;
        }
    return false;
}

static int64_t count_elements(const Step *step) {
    int64_t n = 1;
    for (int i = 0; i < step->recipe->rank + step->recipe->nreduce; i++)
        if (__builtin_mul_overflow(n, step->args.extents[i], &n))
            return INT64_MAX;
    return n;
}

static void count_params(const Recipe *r, uint32_t *ints, uint32_t *floats) {
    for (int i = 0; i < r->nbody + r->nepilogue; i++) {
        const Scalar *c = i < r->nbody ? &r->body[i] : &r->epilogue[i - r->nbody];
        uint32_t *n = dtype_is_float((DType)c->type) ? floats : ints;
        if (c->op == SC_PARAM && (uint32_t)c->a >= *n)
            *n = (uint32_t)c->a + 1;
    }
}

static bool keep_step(const Slots *slots, const Step *step, TemplateStep *kept) {
    const Recipe *r = step->recipe;
    int axes = r->rank + r->nreduce, n = r->noperands + r->noutputs;
    int64_t *numbers = mem_bytes(sizeof *numbers * (size_t)(axes * (n + 1) + 1));
    uint32_t *slot = mem_bytes(sizeof *slot * (size_t)(n + 1));
    int64_t *offset = mem_bytes(sizeof *offset * (size_t)(n + 1));
    size_t row = sizeof(int64_t) * (size_t)axes;
    kept->recipe = r;
    kept->elements = count_elements(step);
    kept->hash = recipe_hash(r);
    kept->numbers = numbers;
    kept->slot = slot;
    kept->offset = offset;
    memcpy(numbers, step->args.extents, row);
    for (int p = 0; p < n; p++) {
        bool is_in = p < r->noperands;
        int i = is_in ? p : p - r->noperands;
        const Tensor *t = is_in ? step->in[i] : step->out[i];
        int64_t from = t->offset + (is_in ? step->in_offsets[i] : step->out_offsets[i]);
        if (!find_slot(slots, t, &slot[p]))
            return false;
        offset[p] = from * (int64_t)dtype_size(t->dtype);
        memcpy(numbers += axes, is_in ? step->args.in_strides[i] : step->args.out_strides[i], row);
    }
    count_params(r, &kept->niparams, &kept->nfparams);
    int64_t *ints = mem_bytes(sizeof *ints * (kept->niparams + 1));
    double *floats = mem_bytes(sizeof *floats * (kept->nfparams + 1));
    memcpy(ints, step->args.iparams, sizeof *ints * kept->niparams);
    memcpy(floats, step->args.fparams, sizeof *floats * kept->nfparams);
    kept->iparams = ints;
    kept->fparams = floats;
    return true;
}

/* Gives each temporary the lowest place that is free while it lives. */
static int64_t place_temps(const Template *t, const Plan *plan, int64_t *at) {
    size_t n = plan->temps.len;
    Life *lives = mem_bytes(sizeof *lives * (n + 1));
    for (size_t i = 0; i < n; i++) {
        const Tensor *temp = plan->temps.data[i];
        int64_t bytes = temp->count * (int64_t)dtype_size(temp->dtype);
        lives[i] = (Life){.bytes = (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN};
    }
    for (size_t k = 0; k < t->nsteps; k++) {
        const Recipe *r = t->steps[k].recipe;
        for (int p = 0; p < r->noperands + r->noutputs; p++) {
            uint32_t slot = t->steps[k].slot[p];
            if (slot < t->nin + t->nout)
                continue;
            Life *life = &lives[slot - t->nin - t->nout];
            if (!life->used)
                life->first = k;
            life->last = k;
            life->used = true;
        }
    }
    int64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        Life *life = &lives[i];
        bool moved = life->used;
        while (moved) {
            moved = false;
            for (size_t k = 0; k < i; k++) {
                const Life *o = &lives[k];
                if (o->used && o->first <= life->last && life->first <= o->last &&
                    o->at < life->at + life->bytes && life->at < o->at + o->bytes) {
                    life->at = o->at + o->bytes;
                    moved = true;
                }
            }
        }
        at[i] = life->at;
        if (life->used && life->at + life->bytes > end)
            end = life->at + life->bytes;
    }
    return end;
}

/* Whether an instruction may end a kernel. Shifts and divisions by a constant do not. */
static bool may_fail(const Scalar *code, int i) {
    const Scalar *c = &code[i];
    if (c->op == SC_CHECK)
        return true;
    bool checked = c->op == SC_DIV || c->op == SC_REM || c->op == SC_SHL || c->op == SC_SHR;
    if (!checked || dtype_is_float((DType)c->type))
        return false;
    return code[c->b].op != SC_CONST || code[c->b].imm.i <= 0;
}

static bool step_may_fail(const Recipe *r) {
    for (int k = 0; k < recipe_count_parts(r); k++) {
        Recipe part;
        recipe_part(r, k, &part);
        for (int i = 0; i < part.nbody; i++)
            if (may_fail(part.body, i))
                return true;
        for (int i = 0; i < part.nepilogue; i++)
            if (may_fail(part.epilogue, i))
                return true;
    }
    return false;
}

static bool is_load_of(const Scalar *c, int operand) {
    return (c->op == SC_LOAD || c->op == SC_LOAD_AT || c->op == SC_LOAD_IF) && c->a == operand;
}

/* Whether the operand is read at the index of the result alone, when that is worked out: by a MAP's body, or by
 * the epilogue of a fold. Before the last part of a ROWS writes a row, those before it have read all that they want. */
static bool is_read_at_result(const Recipe *r, int operand) {
    bool folds = r->kind != RECIPE_MAP && r->kind != RECIPE_ROWS;
    for (int i = 0; i < r->nbody; i++)
        if (is_load_of(&r->body[i], operand) && (folds || r->body[i].op != SC_LOAD))
            return false;
    for (int i = 0; i < r->nepilogue; i++)
        if (is_load_of(&r->epilogue[i], operand) && r->epilogue[i].op != SC_LOAD)
            return false;
    return true;
}

/* Whether the step reads input `slot` only at the element that it writes, if at all. */
static bool reads_in_step(const TemplateStep *step, uint32_t slot) {
    const Recipe *r = step->recipe;
    int axes = r->rank + r->nreduce;
    const int64_t *to = step->numbers + axes * (1 + r->noperands);
    for (int p = 0; p < r->noperands; p++) {
        const int64_t *from = step->numbers + axes * (1 + p);
        if (step->slot[p] != slot)
            continue;
        if (r->in_types[p] != r->out_types[0] || !is_read_at_result(r, p) || step->offset[p])
            return false;
        int place = r->kind == RECIPE_ROWS ? axes : r->rank;
        for (int a = 0; a < place; a++)
            if (from[a] != to[a] && step->numbers[a] > 1)
                return false;
    }
    return true;
}

/* Whether one of several results is the operand as it is read. An engine may take such a result from where it lies when
 * it stores it, which is after it stored the results before it. */
static bool is_copied(const TemplateStep *step, uint32_t slot) {
    const Recipe *r = step->recipe;
    if (r->kind == RECIPE_ROWS) /* has one result: find_in_place */
        return false;
    for (int k = 0; r->noutputs > 1 && k < r->noutputs; k++) {
        const Scalar *c = &r->body[r->results[k]];
        if (c->op == SC_LOAD && step->slot[c->a] == slot)
            return true;
    }
    return false;
}

/* Whether the results are written by the last step alone, and read by none. */
static bool are_written_last(const Template *t) {
    const TemplateStep *last = &t->steps[t->nsteps - 1];
    for (uint32_t o = 0; o < t->nout; o++)
        if (last->slot[last->recipe->noperands + o] != t->nin + o ||
            last->offset[last->recipe->noperands + o])
            return false;
    for (uint32_t k = 0; k < t->nsteps; k++) {
        const Recipe *step = t->steps[k].recipe;
        for (int p = 0; p < step->noperands + step->noutputs; p++) {
            uint32_t slot = t->steps[k].slot[p];
            bool is_result = slot >= t->nin && slot < t->nin + t->nout;
            if (is_result && (k + 1 < t->nsteps || p < step->noperands))
                return false;
        }
    }
    return true;
}

static bool lie_alike(const Tensor *x, const Tensor *y) {
    bool same = x->dtype == y->dtype && x->rank == y->rank && x->count == y->count;
    for (int a = 0; a < x->rank && same; a++)
        same = x->shape[a] == y->shape[a] && x->strides[a] == y->strides[a];
    return same;
}

/* Whether the first output of a ROWS is that of its last part, a MAP. */
static bool writes_last(const Recipe *r) {
    const RecipePart *last = &r->parts[r->nparts - 1];
    return last->kind == RECIPE_MAP && last->noutputs == 1 && last->out == 0;
}

/* The inputs over each of which any one of the results may be written: these are written by the last step alone, after
 * which nothing is read, and have its layout. A call that fails is run again, so nothing may fail. */
static uint64_t find_in_place(const Template *t, Tensor *const *in, Tensor *const *out) {
    uint64_t found = 0;
    if (!t->nsteps || !t->nout)
        return 0;
    const TemplateStep *last = &t->steps[t->nsteps - 1];
    const Recipe *r = last->recipe;
    bool one_by_one = r->kind == RECIPE_MAP || r->kind == RECIPE_REDUCE ||
                      r->kind == RECIPE_PRODUCT; /* each result is written once */
    bool by_rows = r->kind == RECIPE_ROWS && t->nout == 1 && writes_last(r);
    if ((!one_by_one || r->noutputs != t->nout) && !by_rows)
        return 0;
    if (!are_written_last(t))
        return 0;
    for (uint32_t k = 0; k < t->nsteps; k++)
        if (step_may_fail(t->steps[k].recipe))
            return 0;
    for (uint32_t o = 1; o < t->nout; o++)
        if (!lie_alike(out[o], out[0]))
            return 0;
    for (uint32_t i = 0; i < t->nin && i < 64; i++)
        if (lie_alike(in[i], out[0]) && reads_in_step(last, i) && !is_copied(last, i))
            found |= UINT64_C(1) << i;
    return found;
}

/* Where along the step's axes an axis of its output lies; -1: across several of them. */
static int find_axis(const TemplateStep *step, int64_t extent, int64_t stride) {
    int axes = step->recipe->rank;
    const int64_t *to = step->numbers + 2 * axes;
    for (int a = 0; a < axes; a++)
        if (to[a] > 0 && stride % to[a] == 0 && stride >= to[a] &&
            stride * extent <= to[a] * step->numbers[a])
            return a;
    return -1;
}

/* Whether the step gives a part of input as it lies there. */
static bool find_view(const Template *t, uint32_t k, const Tensor *out, TemplateView *view) {
    const TemplateStep *step = &t->steps[k];
    const Recipe *r = step->recipe;
    if (!recipe_only_moves(r) || r->noperands != 1 || step->slot[0] >= t->nin ||
        step->slot[1] != t->nin + k || step->offset[1] || !out->rank)
        return false;
    view->slot = step->slot[0];
    view->offset = step->offset[0] / (int64_t)dtype_size(r->in_types[0]);
    const int64_t *from = step->numbers + r->rank;
    bool inner = true;
    for (int axis = out->rank; axis-- > 0;) {
        view->strides[axis] = 1;
        if (out->shape[axis] == 1)
            continue;
        int a = find_axis(step, out->shape[axis], out->strides[axis]);
        if (a < 0 || from[a] <= 0)
            return false;
        int64_t times = out->strides[axis] / step->numbers[2 * r->rank + a];
        view->strides[axis] = times * from[a];
        if (inner && view->strides[axis] != 1)
            return false;
        inner = false;
    }
    return true;
}

/* The results as parts of the inputs, where nothing else is computed. */
static const TemplateView *find_views(const Template *t, Tensor *const *out) {
    if (t->nsteps != t->nout || !t->nout)
        return NULL;
    TemplateView *views = mem_bytes(sizeof *views * t->nout);
    for (uint32_t i = 0; i < t->nout; i++)
        if (!find_view(t, i, out[i], &views[i]))
            return NULL;
    return views;
}

/* Whether the step has an operand or a result in the slot, of an element in front of byte `end`. */
static bool touches(const TemplateStep *step, uint32_t slot, int64_t end) {
    for (int p = 0; p < step->recipe->noperands + step->recipe->noutputs; p++)
        if (step->slot[p] == slot && step->offset[p] < end)
            return true;
    return false;
}

/* Template.lengthens, as of `concatenate((x, y))`: what may end the kernel would leave a longer x. */
static bool find_lengthens(const Template *t, Tensor *const *in, Tensor *const *out) {
    if (t->nout != 1 || !t->nin || !t->nsteps || in[0]->dtype != out[0]->dtype)
        return false;
    const TemplateStep *step = &t->steps[0];
    const Recipe *r = step->recipe;
    const int64_t *from = step->numbers + r->rank, *to = from + r->rank;
    int64_t end = in[0]->count * (int64_t)dtype_size(in[0]->dtype);
    bool lays = recipe_only_moves(r) && r->noperands == 1 && step->slot[0] == 0 &&
                step->slot[1] == t->nin && !step->offset[0] && !step->offset[1] &&
                step->elements == in[0]->count && tensor_is_contiguous(in[0]);
    for (int a = 0; a < r->rank && lays; a++)
        lays = step->numbers[a] == 1 || from[a] == to[a];
    for (uint32_t k = 1; k < t->nsteps && lays; k++)
        lays = !touches(&t->steps[k], 0, INT64_MAX) && !touches(&t->steps[k], t->nin, end) &&
               !step_may_fail(t->steps[k].recipe);
    return lays;
}

Template *template_new(const Plan *plan, Tensor *const *in, uint32_t nin, Tensor *const *out,
                       uint32_t nout) {
    size_t nsteps = plan->steps.len, ntemps = plan->temps.len;
    Template *t = mem_alloc(sizeof *t + nsteps * sizeof(TemplateStep));
    Slots slots = {plan, in, out, nin, nout};
    t->nin = nin;
    t->nout = nout;
    t->nslots = nin + nout + (uint32_t)ntemps;
    t->nsteps = (uint32_t)nsteps;
    for (size_t k = 0; k < nsteps; k++)
        if (!keep_step(&slots, plan->steps.data[k], &t->steps[k]))
            return NULL;
    t->out = mem_bytes(sizeof *t->out * (nout + 1));
    for (uint32_t i = 0; i < nout; i++) {
        t->out[i].dtype = out[i]->dtype;
        t->out[i].rank = out[i]->rank;
        memcpy(t->out[i].shape, out[i]->shape, sizeof(int64_t) * (size_t)out[i]->rank);
    }
    int64_t *at = mem_bytes(sizeof *at * (ntemps + 1));
    t->scratch = place_temps(t, plan, at);
    t->temp_at = at;
    t->views = find_views(t, out);
    t->in_place = find_in_place(t, in, out);
    t->lengthens = find_lengthens(t, in, out);
    return t;
}

/* ---- running --------------------------------------------------------------------------------- */

void template_bind(const TemplateStep *step, char *const *at, const volatile int *interrupt,
                   KernelArgs *args) {
    const Recipe *r = step->recipe;
    int axes = r->rank + r->nreduce;
    size_t row = sizeof(int64_t) * (size_t)axes;
    const int64_t *numbers = step->numbers;
    memcpy(args->extents, numbers, row);
    for (int i = 0; i < r->noperands; i++) {
        args->in[i] = at[step->slot[i]] + step->offset[i];
        memcpy(args->in_strides[i], numbers += axes, row);
    }
    for (int i = 0; i < r->noutputs; i++) {
        args->out[i] = at[step->slot[r->noperands + i]] + step->offset[r->noperands + i];
        memcpy(args->out_strides[i], numbers += axes, row);
    }
    memcpy(args->iparams, step->iparams, sizeof(int64_t) * step->niparams);
    memcpy(args->fparams, step->fparams, sizeof(double) * step->nfparams);
    args->interrupt = interrupt;
    args->thread = 0;
    args->nthreads = 1;
}

static int32_t run_steps(Template *t, uint32_t from, char **at, TemplateRunner runner, void *ctx,
                         const volatile int *interrupt) {
    int32_t status = KERNEL_DONE;
    for (uint32_t k = from; k < t->nsteps && status == KERNEL_DONE; k++)
        status = runner(ctx, &t->steps[k], at, interrupt);
    if (status == KERNEL_MEMORY)
        mem_out_of_memory(0);
    return status;
}

static void place(const Template *t, char **at, char *scratch) {
    uint32_t first = t->nin + t->nout;
    for (uint32_t i = first; i < t->nslots; i++)
        at[i] = scratch + t->temp_at[i - first];
}

static int32_t run_small(Template *t, uint32_t from, char **at, TemplateRunner runner, void *ctx,
                         const volatile int *interrupt) {
    _Alignas(ALIGN) char scratch[SMALL];
    place(t, at, scratch);
    return run_steps(t, from, at, runner, ctx, interrupt);
}

int32_t template_run_from(Template *t, uint32_t from, char **at, TemplateRunner runner, void *ctx,
                          const volatile int *interrupt) {
    if (t->nslots == t->nin + t->nout)
        return run_steps(t, from, at, runner, ctx, interrupt);
    if (t->scratch <= SMALL)
        return run_small(t, from, at, runner, ctx, interrupt);
    Tensor *scratch = tensor_new(DT_U8, 1, &t->scratch);
    place(t, at, tensor_data(scratch));
    int32_t status = run_steps(t, from, at, runner, ctx, interrupt);
    tensor_release(scratch);
    return status;
}

int32_t template_run(Template *t, char **at, TemplateRunner runner, void *ctx,
                     const volatile int *interrupt) {
    return template_run_from(t, 0, at, runner, ctx, interrupt);
}
