/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators. It is put together from ops.def and elementwise.def and sorted on first
 * use; after that it never changes. And a call of one, from its sizes to its results. */
#include "ops/ops.h"

#include "base/diag.h"
#include "ops/elementwise.h"
#include "ops/table.h"

#include <stdlib.h>
#include <string.h>

#define INTERNAL(symbol) OP(symbol)
#define UNARY(symbol, ...) OP(symbol)
#define TEST(symbol, ...) OP(symbol)
#define BINARY(symbol, ...) OP(symbol)
#define COMPARE(symbol, ...) OP(symbol)
#define OP(symbol) &op_##symbol,
static const Op *table[] = {
#include "ops/elementwise.def"
#include "ops/ops.def"
};
#undef OP

static const Op *const internal[] = {
#undef INTERNAL
#define OP(symbol)
#define INTERNAL(symbol) &op_##symbol,
#include "ops/ops.def"
#undef INTERNAL
#undef OP
};

bool op_is_internal(const Op *op) {
    for (size_t i = 0; i < sizeof internal / sizeof internal[0]; i++)
        if (internal[i] == op)
            return true;
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const Op *const *)a)->name, (*(const Op *const *)b)->name);
}

static const Op *const *sorted(void) {
    static bool ready;
    if (!ready) {
        ready = true;
        qsort(table, op_count(), sizeof table[0], by_name);
    }
    return table;
}

size_t op_count(void) { return sizeof table / sizeof table[0]; }
const Op *op_at(size_t i) { return sorted()[i]; }

static int compare_name(const void *name, const void *op) {
    return strcmp(name, (*(const Op *const *)op)->name);
}

const Op *op_find(const Symbol *name) {
    const Op *const *found = bsearch(name->text, sorted(), op_count(), sizeof table[0],
                                     compare_name);
    return found ? *found : NULL;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static void report_index(const OpCall *call) {
    const char *which = call->op->blame_index ? call->op->blame_index(call) : NULL;
    diag_error(call->diags, DIAG_R0602, call->span, "`%s`: %s", op_subject(call->op),
               which ? which : "an index is out of range");
}

static void report_size(const OpCall *call) {
    const char *dtype = dtype_info[call->in[0]->dtype].name;
    diag_error(call->diags, DIAG_R0614, call->span, "a size is too large: %s does not hold it",
               dtype);
}

void op_report_status(const OpCall *call, int32_t status) {
    const char *name = op_subject(call->op);
    if (status == KERNEL_DIVIDE)
        diag_error(call->diags, DIAG_R0601, call->span, "`%s`: integer division by zero", name);
    else if (status == KERNEL_INDEX)
        report_index(call);
    else if (status == KERNEL_SIZE)
        report_size(call);
    else if (status == KERNEL_SHIFT)
        diag_error(call->diags, DIAG_R0603, call->span, "`%s`: a negative %s", name,
                   call->op == &op_power ? "exponent of an integer" : "shift");
}

/* The results of an operator whose sizes only had a bound: copies, so that what is not used is free. */
static void cut_outputs(const OpCall *call, Tensor **out, OutSpec *specs, int n) {
    call->op->cut(call, out, specs);
    for (int i = 0; i < n; i++) {
        const Tensor *whole = out[i];
        bool same = true;
        for (int axis = 0; axis < whole->rank; axis++)
            same = same && specs[i].shape[axis] == whole->shape[axis];
        if (same)
            continue;
        Plan plan = {0};
        Tensor *part = tensor_new(whole->dtype, whole->rank, specs[i].shape);
        plan_gather_strided(&plan, part, whole, whole->strides, 0);
        plan_run(&plan, NULL, NULL, NULL);
        tensor_release(out[i]);
        out[i] = part;
    }
}

int op_run(const OpCall *call, Tensor **out, StepRunner runner, void *ctx) {
    return op_run_interruptible(call, out, runner, ctx, NULL);
}

int op_run_interruptible(const OpCall *call, Tensor **out, StepRunner runner, void *ctx,
                         const volatile int *interrupt) {
    OutSpec specs[OP_MAX_OUTPUTS];
    const Op *op = call->op;
    int n = op->shape(call, specs);
    if (n < 0)
        return OP_FAILED;
    for (int i = 0; i < n; i++)
        out[i] = tensor_new(specs[i].dtype, specs[i].rank, specs[i].shape);
    if (!op->lower) {
        OpCall polled = *call;
        polled.interrupt = interrupt;
        bool ok = op->eval(&polled, out);
        if (op_interrupted(&polled))
            return OP_INTERRUPTED;
        if (!ok)
            return OP_FAILED;
        if (op->cut)
            cut_outputs(call, out, specs, n);
        return n;
    }
    Step first; /* on the stack: a Step is large, and most calls have one */
    Step *spare[] = {&first};
    Plan plan = {.spares = {.data = spare, .len = 1, .cap = 1}};
    if (!op->lower(call, out, &plan))
        return OP_FAILED;
    int32_t status = plan_run(&plan, runner, ctx, interrupt);
    if (status == KERNEL_DONE)
        return n;
    if (status == KERNEL_INTERRUPTED)
        return OP_INTERRUPTED;
    op_report_status(call, status);
    return OP_FAILED;
}

bool op_find_absent(const char *name, const char **why, const char **instead) {
    static const struct {
        const char *name, *why, *instead;
    } absent[] = {
#define ABSENT(name, why, instead) {name, why, instead},
#define FORM ABSENT
#include "ops/absent.def"
#undef FORM
#undef ABSENT
    };
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        if (strcmp(absent[i].name, name))
            continue;
        *why = absent[i].why;
        *instead = absent[i].instead;
        return true;
    }
    return false;
}

bool op_is_form(const char *name) {
    static const char *const forms[] = {
#define ABSENT(name, why, instead)
#define FORM(name, why, instead) name,
#include "ops/absent.def"
#undef FORM
#undef ABSENT
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(forms[i], name))
            return true;
    return false;
}
