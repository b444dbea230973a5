/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rows.h"

#include "base/mem.h"
#include "ops/ops.h"
#include "ops/recipe/plan.h"
#include "ops/relate/shape_util.h"

#include <string.h>

/* ---- the call of one row --------------------------------------------------------------------- */

static int64_t count_rows(const OpCall *call) {
    const OpRows *rows = call->op->rows;
    for (uint32_t i = 0; i < rows->n && i < call->nin; i++)
        if (rows->has_rows[i] && call->in[i]->rank > 0)
            return call->in[i]->shape[0];
    BUG("`%s` at all rows: no argument has rows", call->op->name);
}

/* The headers are those of tensors without elements, which say all that planning reads; otherwise of row number `row`. */
static Tensor *part_of_row(const Tensor *t, bool has_rows, bool blank, int64_t row) {
    if (!has_rows)
        return blank ? tensor_blank_like(t)
                     : tensor_view(t, t->rank, t->shape, t->strides, t->offset);
    Tensor *part = tensor_view(t, t->rank - 1, t->shape + 1, t->strides + 1,
                               t->offset + row * t->strides[0]);
    if (!blank)
        return part;
    Tensor *like = tensor_blank_like(part);
    tensor_drop(part);
    return like;
}

static OpCall call_of_row(const OpCall *call, bool blank, int64_t row) {
    const OpRows *rows = call->op->rows;
    OpCall one = *call;
    Tensor **in = mem_new_n(Tensor *, call->nin + 1);
    if (call->nin != rows->n)
        BUG("`%s` at all rows: %u tensors in place of %u", call->op->name, call->nin, rows->n);
    for (uint32_t i = 0; i < call->nin; i++)
        in[i] = part_of_row(call->in[i], rows->has_rows[i], blank, row);
    one.op = rows->of;
    one.in = in;
    one.places = false;
    return one;
}

static void drop_parts(Tensor *const *parts, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        tensor_drop(parts[i]);
}

static int shape_rows(const OpCall *call, OutSpec *out) {
    const Op *of = call->op->rows->of;
    int64_t rows = count_rows(call), shape[TENSOR_MAX_RANK];
    bool blank = of->shape_mode == SHAPE_OF_SHAPES;
    OpCall one = call_of_row(call, blank, 0);
    int n = of->shape(&one, out);
    if (!blank)
        drop_parts(one.in, one.nin);
    for (int i = 0; i < n; i++) {
        if (out[i].rank == TENSOR_MAX_RANK)
            BUG("`%s` at all rows: no axis is left for the rows", call->op->name);
        shape[0] = rows;
        memcpy(shape + 1, out[i].shape, (size_t)out[i].rank * sizeof *shape);
        if (!shape_set(call, &out[i], out[i].dtype, out[i].rank + 1, shape))
            return -1;
    }
    return n;
}

/* ---- recipes ---------------------------------------------------------------------------------- */

/* What a tensor of the plan of one row stands for. */
typedef struct Operand {
    const Tensor *one; /* in the plan of one row: it is known by its buffer */
    Tensor *all;
    int64_t stride; /* from row to row; 0: it is the same for all */
} Operand;

typedef struct Widening {
    Plan *to;
    int64_t rows;
    VEC(Operand) operands;
} Widening;

static void add_operand(Widening *w, const Tensor *one, const Tensor *all, bool has_rows) {
    vec_push(&w->operands, ((Operand){one, (Tensor *)all, has_rows ? all->strides[0] : 0}));
}

static const Operand *find_operand(const Widening *w, const Tensor *t) {
    for (size_t i = 0; i < w->operands.len; i++)
        if (w->operands.data[i].one->buffer == t->buffer)
            return &w->operands.data[i];
    BUG("a plan reads a tensor that is none of its arguments");
}

static void add_temporary(Widening *w, const Tensor *one) {
    int64_t shape[TENSOR_MAX_RANK + 1] = {w->rows};
    memcpy(shape + 1, one->shape, (size_t)one->rank * sizeof *shape);
    bool fits = one->rank < TENSOR_MAX_RANK;
    if (!fits) { /* the axes of a temporary are walked by strides, so they may stand as one */
        shape[1] = one->count;
    }
    add_operand(w, one, plan_temp(w->to, one->dtype, fits ? one->rank + 1 : 2, shape), true);
}

/* The index along an axis is that along the one behind it. */
static void copy_code(ScalarBuilder *to, const Scalar *code, int n) {
    for (int i = 0; i < n; i++) {
        Scalar c = code[i];
        if (c.op == SC_IOTA)
            c.a++;
        vec_push(&to->code, c);
    }
}

/* The axes of an operand, the rows first. */
static const int64_t *with_rows(int64_t stride, const int64_t *strides, int axes, int64_t *all) {
    all[0] = stride;
    memcpy(all + 1, strides, (size_t)axes * sizeof *all);
    return all;
}

/* The step at the rows from `first`, as many as `rows`. */
static void add_step(Widening *w, const Step *one, int64_t first, int64_t rows) {
    const Recipe *r = one->recipe;
    const KernelArgs *a = &one->args;
    bool is_axis = rows != 1;
    int axes = r->rank + r->nreduce;
    int64_t all[RECIPE_MAX_AXES + 1];
    StepBuilder s;
    if (is_axis)
        step_begin(&s, w->to, r->kind, r->rank + 1, with_rows(rows, a->extents, r->rank, all));
    else
        step_begin(&s, w->to, r->kind, r->rank, a->extents);
    step_reduce_over(&s, r->nreduce, a->extents + r->rank);
    step_combine(&s, r->combine, (DType)r->acc_type);
    s.last = r->last;
    for (int i = 0; i < r->noperands; i++) {
        const Operand *o = find_operand(w, one->in[i]);
        int64_t at = one->in[i]->offset + one->in_offsets[i] + first * o->stride;
        const int64_t *strides = a->in_strides[i];
        step_in_strided(&s, o->all, is_axis ? with_rows(o->stride, strides, axes, all) : strides,
                        at);
    }
    for (int i = 0; i < r->noutputs; i++) {
        const Operand *o = find_operand(w, one->out[i]);
        int64_t at = one->out[i]->offset + one->out_offsets[i] + first * o->stride;
        const int64_t *strides = a->out_strides[i];
        step_out_strided(&s, o->all,
                         is_axis ? with_rows(o->stride, strides, r->rank, all) : strides, at);
        s.out_types[i] = (DType)r->out_types[i];
    }
    if (is_axis) {
        copy_code(&s.body, r->body, r->nbody);
        copy_code(&s.epilogue, r->epilogue, r->nepilogue);
    } else {
        step_set_body(&s, r->body, r->nbody);
        s.epilogue.code.data = (Scalar *)r->epilogue;
        s.epilogue.code.len = s.epilogue.code.cap = r->nepilogue;
    }
    memcpy(s.step->args.iparams, a->iparams, sizeof a->iparams);
    memcpy(s.step->args.fparams, a->fparams, sizeof a->fparams);
    int results = r->kind == RECIPE_SCATTER ? 2 : r->noutputs;
    for (int i = 0; i < results; i++)
        step_result(&s, r->results[i]);
    step_end(&s);
}

static bool lower_rows(const OpCall *call, Tensor *const *out, Plan *plan) {
    const OpRows *rows = call->op->rows;
    OpCall one = call_of_row(call, true, 0);
    OutSpec specs[OP_MAX_OUTPUTS];
    Tensor *outs[OP_MAX_OUTPUTS];
    int n = rows->of->shape(&one, specs);
    if (n < 0)
        return false;
    Widening w = {.to = plan, .rows = count_rows(call)};
    for (uint32_t i = 0; i < call->nin; i++)
        add_operand(&w, one.in[i], call->in[i], rows->has_rows[i]);
    for (int i = 0; i < n; i++) {
        outs[i] = tensor_blank(specs[i].dtype, specs[i].rank, specs[i].shape);
        add_operand(&w, outs[i], out[i], true);
    }
    Plan of_one = {.blank = true};
    if (!rows->of->lower(&one, outs, &of_one))
        return false;
    for (size_t i = 0; i < of_one.temps.len; i++)
        add_temporary(&w, of_one.temps.data[i]);
    for (size_t k = 0; k < of_one.steps.len; k++) {
        const Step *step = of_one.steps.data[k];
        bool fits = step->recipe->rank + step->recipe->nreduce < RECIPE_MAX_AXES;
        for (int64_t row = 0; row < (fits ? 1 : w.rows); row++)
            add_step(&w, step, row, fits ? w.rows : 1);
    }
    return true;
}

/* ---- one row after the other ------------------------------------------------------------------ */

/* Runs the call of one row into `out`, parts of the results. */
static bool run_row(const OpCall *one, Tensor *const *out, int n) {
    const Op *op = one->op;
    if (!op->lower && op->shape_mode == SHAPE_OF_SHAPES)
        return op->eval(one, out);
    OutSpec specs[OP_MAX_OUTPUTS];
    if (op->shape(one, specs) != n)
        return false;
    for (int i = 0; i < n; i++) {
        bool same = specs[i].rank == out[i]->rank;
        for (int axis = 0; axis < out[i]->rank && same; axis++)
            same = specs[i].shape[axis] == out[i]->shape[axis];
        if (!same)
            return false; /* the loop says which row it is */
    }
    if (!op->lower)
        return op->eval(one, out);
    Plan plan = {0};
    if (!op->lower(one, out, &plan))
        return false;
    int32_t status = plan_run(&plan, NULL, NULL, one->interrupt);
    if (status != KERNEL_DONE && status != KERNEL_INTERRUPTED)
        op_report_status(one, status);
    return status == KERNEL_DONE;
}

static bool eval_rows(const OpCall *call, Tensor *const *out) {
    OutSpec specs[OP_MAX_OUTPUTS];
    Tensor *parts[OP_MAX_OUTPUTS];
    int n = shape_rows(call, specs);
    bool ok = n >= 0;
    for (int64_t row = 0; row < count_rows(call) && ok && !op_interrupted(call); row++) {
        OpCall one = call_of_row(call, false, row);
        for (int i = 0; i < n; i++)
            parts[i] = part_of_row(out[i], true, false, row);
        ok = run_row(&one, parts, n);
        drop_parts(one.in, one.nin);
        drop_parts(parts, (uint32_t)n);
    }
    return ok;
}

/* ---- the operator ----------------------------------------------------------------------------- */

const Op *op_over_rows(const Op *of, const bool *has_rows, uint32_t n) {
    Op *op = mem_new(Op);
    OpRows *rows = mem_new(OpRows);
    bool *copy = mem_new_n(bool, n + 1);
    bool planned = op_has_kept_plans(of);
    memcpy(copy, has_rows, n * sizeof *copy);
    *rows = (OpRows){of, n, copy};
    *op = (Op){.name = of->name,
               .args = of->args,
               .nargs = of->nargs,
               .attrs = of->attrs,
               .nattrs = of->nattrs,
               .choices = of->choices,
               .dtypes = DTS_ALL,
               .shape_mode = planned ? SHAPE_OF_SHAPES : SHAPE_OF_DATA,
               .pattern = OP_OPAQUE,
               .tuple = of->tuple,
               .by_attr = of->by_attr,
               .shape = shape_rows,
               .lower = planned ? lower_rows : NULL,
               .eval = planned ? NULL : eval_rows,
               .doc = of->doc,
               .rows = rows};
    return op;
}
