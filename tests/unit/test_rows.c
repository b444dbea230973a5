/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator at all rows (ops/rows.h) gives the bits that each row has alone: random calls over small shapes, with rows
 * in each argument or in some, dense and transposed, run at once and from a plan that is kept. */
#include "ops/ops.h"
#include "ops/rows.h"
#include "tests/unit/check.h"
#include "tests/unit/op_calls.h"

enum { ROWS = 3 };

static int compared, refused, planned;

/* The rows lie next to each other in memory where `turned`. */
static Tensor *argument(DType dtype, const Shape *s, int64_t rows, bool turned) {
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], stride = 1;
    int rank = 0;
    if (rows)
        shape[rank++] = rows;
    for (int i = 0; i < s->rank; i++)
        shape[rank++] = s->dims[i];
    for (int i = 0; i < rank; i++) {
        strides[i] = stride;
        stride *= shape[i];
    }
    Tensor *t = tensor_new(dtype, rank, shape);
    fill_elements(t, 0);
    return turned ? tensor_view(t, rank, shape, strides, 0) : t;
}

static Tensor *row_of(const Tensor *t, bool has_rows, int64_t row) {
    return has_rows ? tensor_view(t, t->rank - 1, t->shape + 1, t->strides + 1,
                                  t->offset + row * t->strides[0])
                    : (Tensor *)t;
}

static void check_row(const Op *op, const Tensor *all, int64_t row, const Tensor *alone) {
    const Tensor *part = row_of(all, true, row);
    bool same = part->dtype == alone->dtype && part->rank == alone->rank;
    for (int i = 0; i < alone->rank && same; i++)
        same = part->shape[i] == alone->shape[i];
    size_t bytes = (size_t)alone->count * dtype_size(alone->dtype);
    if (!same || memcmp(tensor_data(tensor_canonical(part)), tensor_data(tensor_canonical(alone)),
                        bytes) != 0)
        check_fail(__FILE__, __LINE__, "%s: row %d differs", op->name, (int)row);
}

/* The same from a plan that was made without elements. */
static void check_plan(const OpCall *call, Tensor *const *want, int n) {
    Tensor *blank[MAX_IN], *outs[OP_MAX_OUTPUTS];
    OutSpec specs[OP_MAX_OUTPUTS];
    for (uint32_t i = 0; i < call->nin; i++)
        blank[i] = tensor_blank_like(call->in[i]);
    OpCall made = *call;
    made.in = blank;
    Plan plan = {.blank = true};
    if (call->op->shape(&made, specs) != n)
        check_fail(__FILE__, __LINE__, "%s: another number of results", call->op->name);
    for (int i = 0; i < n; i++)
        outs[i] = tensor_blank(specs[i].dtype, specs[i].rank, specs[i].shape);
    Template *t = call->op->lower(&made, outs, &plan)
                      ? template_new(&plan, blank, call->nin, outs, (uint32_t)n)
                      : NULL;
    if (!t) {
        check_fail(__FILE__, __LINE__, "%s: no plan is made", call->op->name);
        return;
    }
    char **at = mem_new_n(char *, t->nslots + 1);
    Tensor *got[OP_MAX_OUTPUTS];
    for (uint32_t i = 0; i < t->nin; i++)
        at[i] = tensor_data(call->in[i]);
    for (uint32_t i = 0; i < t->nout; i++) {
        got[i] = tensor_new_zero(t->out[i].dtype, t->out[i].rank, t->out[i].shape);
        at[t->nin + i] = tensor_data(got[i]);
    }
    CHECK_INT(template_run(t, at, run_step, NULL, NULL), KERNEL_DONE);
    for (int i = 0; i < n; i++)
        if (memcmp(tensor_data(got[i]), tensor_data(want[i]),
                   (size_t)want[i]->count * dtype_size(want[i]->dtype)) != 0)
            check_fail(__FILE__, __LINE__, "%s: the plan that is kept differs", call->op->name);
    planned++;
}

static bool try_call(const Op *op, uint32_t number) {
    Call c;
    Diags diags = {0};
    bool has_rows[MAX_IN] = {false}, any = false, turned = below(3) == 0, alone = true, same = true;
    if (!make_call(&c, op, number, below(64)) || c.nin == 0)
        return false;
    for (int i = 0; i < c.nin; i++)
        any |= has_rows[i] = below(3) != 0 && c.shapes[i].rank < TENSOR_MAX_RANK;
    if (!any)
        has_rows[below((uint32_t)c.nin)] = true;
    for (int i = 0; i < c.nin; i++)
        c.in[i] = argument(c.dtypes[i], &c.shapes[i], has_rows[i] ? ROWS : 0, turned);
    Tensor *want[ROWS][OP_MAX_OUTPUTS], *got[OP_MAX_OUTPUTS];
    int n = -1;
    for (int row = 0; row < ROWS; row++) {
        Tensor *in[MAX_IN];
        for (int i = 0; i < c.nin; i++)
            in[i] = row_of(c.in[i], has_rows[i], row);
        OpCall one = {
            .op = op, .attrs = c.attrs, .nin = (uint32_t)c.nin, .in = in, .diags = &diags};
        n = op_run(&one, want[row], NULL, NULL);
        alone &= n >= 0;
        for (int i = 0; i < n && row && alone; i++)
            for (int axis = 0; axis < want[row][i]->rank; axis++)
                same &= want[row][i]->rank == want[0][i]->rank &&
                        want[row][i]->shape[axis] == want[0][i]->shape[axis];
        if (n < 0 && !row)
            return false;
    }
    const Op *all = op_over_rows(op, has_rows, (uint32_t)c.nin);
    OpCall call = {
        .op = all, .attrs = c.attrs, .nin = (uint32_t)c.nin, .in = c.in, .diags = &diags};
    int made = op_run(&call, got, NULL, NULL);
    if (!alone || !same) {
        if (made >= 0)
            check_fail(__FILE__, __LINE__, "%s: runs at all rows, but not at each", op->name);
        refused++;
        return true;
    }
    if (made != n) {
        check_fail(__FILE__, __LINE__, "%s: %d results at all rows, %d at each", op->name, made, n);
        return true;
    }
    for (int i = 0; i < n; i++)
        for (int row = 0; row < ROWS; row++)
            check_row(op, got[i], row, want[row][i]);
    if (all->lower)
        check_plan(&call, got, n);
    compared++;
    return true;
}

TEST(operators) {
    int missed = 0; /* operators whose arguments are seldom drawn together */
    list_shapes();
    for (size_t i = 0; i < op_count() && !check_failures; i++) {
        const Op *op = op_at(i);
        if (op->cut) /* its sizes are known when it has run */
            continue;
        int done = 0;
        for (uint32_t tries = 0; tries < 3000 && done < 10; tries++)
            done += try_call(op, tries);
        missed += !done;
        if (!done)
            printf("%s was not tried\n", op->name);
    }
    CHECK(compared > 2000 && planned > 1800 && refused > 10);
    CHECK(missed < 10);
}

int main(void) {
    RUN(operators);
    return check_result();
}
