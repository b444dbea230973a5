/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator with recipes, planned on tensors without elements: a lowering that reads one ends here. The
 * template gives the bits of the call that is planned anew, on dense arguments and on transposed ones, and
 * again on other elements. */
#include "jit/jit.h"
#include "ops/ops.h"
#include "ops/recipe/fuse.h"
#include "tests/unit/check.h"
#include "tests/unit/op_calls.h"

static Jit *jit; /* NULL where there is no compiler */
static int kept, transposed, launched;

/* Elements of a shape; its axes lie in reverse order in memory where `turned`. */
static Tensor *argument(DType dtype, const Shape *s, bool turned) {
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK], stride = 1;
    int rank = s->rank;
    for (int i = 0; i < rank; i++) {
        shape[rank - 1 - i] = s->dims[i];
        strides[i] = stride;
        stride *= s->dims[i];
    }
    Tensor *t = turned ? tensor_new(dtype, rank, shape) : tensor_new(dtype, rank, s->dims);
    fill_elements(t, 1);
    return turned ? tensor_view(t, rank, s->dims, strides, 0) : t;
}

/* As a compiled kernel that is made ready. */
static int32_t run_ready(void *ctx, TemplateStep *step, char *const *at,
                         const volatile int *interrupt) {
    KernelArgs args;
    template_bind(step, at, interrupt, &args);
    JitLaunch *launch = jit_launch_new(ctx, step->recipe, &args);
    if (!launch)
        return jit_run(ctx, step->recipe, &args);
    launched++;
    return jit_launch_run(ctx, launch, at, step->slot, step->offset);
}

/* NULL where the operator does not take these arguments. */
static Template *plan_blank(const OpCall *call) {
    Tensor *blank[MAX_IN], *outs[OP_MAX_OUTPUTS];
    OutSpec specs[OP_MAX_OUTPUTS];
    for (uint32_t i = 0; i < call->nin; i++)
        blank[i] = tensor_blank_like(call->in[i]);
    OpCall planned = *call;
    planned.in = blank;
    int n = call->op->shape(&planned, specs);
    for (int i = 0; i < n; i++)
        outs[i] = tensor_blank(specs[i].dtype, specs[i].rank, specs[i].shape);
    Plan plan = {.blank = true};
    if (n < 0 || !call->op->lower(&planned, outs, &plan))
        return NULL;
    plan_chain(&plan);
    return template_new(&plan, blank, call->nin, outs, (uint32_t)n);
}

static int viewed;

/* The part of an argument that a result could be has the elements of the result. */
static void check_view(const OpCall *call, const TemplateView *view, const Tensor *want) {
    const Tensor *from = call->in[view->slot];
    const Tensor *part = tensor_contiguous(
        tensor_view(from, want->rank, want->shape, view->strides, from->offset + view->offset));
    size_t bytes = (size_t)want->count * dtype_size(want->dtype);
    if (part->dtype != want->dtype || memcmp(tensor_data(part), tensor_data(want), bytes) != 0)
        check_fail(__FILE__, __LINE__, "%s: the view differs", call->op->name);
}

static int lengthened;

/* The first argument, with the steps that follow the one that lays it down, gives the result. */
static void check_lengthens(const OpCall *call, Template *t, char **at, const Tensor *want) {
    const Tensor *first = call->in[0];
    Tensor *got = tensor_new_zero(want->dtype, want->rank, want->shape);
    at[t->nin] = tensor_data(got);
    memcpy(at[t->nin], tensor_data(first), (size_t)first->count * dtype_size(first->dtype));
    int32_t status = template_run_from(t, 1, at, run_step, NULL, NULL);
    if (status != KERNEL_DONE ||
        memcmp(at[t->nin], tensor_data(want), (size_t)want->count * dtype_size(want->dtype)) != 0)
        check_fail(__FILE__, __LINE__, "%s: lengthened, it differs", call->op->name);
    lengthened++;
}

static void compare(const OpCall *call, Template *t) {
    Tensor *want[OP_MAX_OUTPUTS], *got[OP_MAX_OUTPUTS];
    char **at = mem_new_n(char *, t->nslots + 1);
    int n = op_run(call, want, NULL, NULL);
    for (uint32_t i = 0; i < t->nin; i++)
        at[i] = tensor_data(call->in[i]);
    for (uint32_t i = 0; i < t->nout; i++) {
        got[i] = tensor_new_zero(t->out[i].dtype, t->out[i].rank, t->out[i].shape);
        at[t->nin + i] = tensor_data(got[i]);
    }
    bool ready = jit && below(8) == 0;
    int32_t status = template_run(t, at, ready ? run_ready : run_step, jit, NULL);
    if ((status == KERNEL_DONE) != (n >= 0))
        check_fail(__FILE__, __LINE__, "%s: status %d, %d results", call->op->name, status, n);
    for (int i = 0; i < n && t->views; i++, viewed++)
        check_view(call, &t->views[i], want[i]);
    if (n == 1 && t->lengthens)
        check_lengthens(call, t, at, want[0]);
    for (int i = 0; i < n && status == KERNEL_DONE; i++)
        if (got[i]->count != want[i]->count ||
            memcmp(tensor_data(got[i]), tensor_data(want[i]),
                   (size_t)want[i]->count * dtype_size(want[i]->dtype)) != 0)
            check_fail(__FILE__, __LINE__, "%s: result %d differs", call->op->name, i);
    kept++;
}

static bool try_call(const Op *op, uint32_t number) {
    Call c;
    Diags diags = {0};
    if (!make_call(&c, op, number, below(64)))
        return false;
    bool turned = below(3) == 0;
    for (int i = 0; i < c.nin; i++)
        c.in[i] = argument(c.dtypes[i], &c.shapes[i], turned);
    OpCall call = {.op = op, .attrs = c.attrs, .nin = (uint32_t)c.nin, .in = c.in, .diags = &diags};
    Template *t = plan_blank(&call);
    if (!t) {
        if (op_run(&call, (Tensor *[OP_MAX_OUTPUTS]){0}, NULL, NULL) >= 0)
            check_fail(__FILE__, __LINE__, "%s: runs, but has no template", op->name);
        return false;
    }
    for (int again = 0; again < 2; again++) {
        compare(&call, t);
        for (int i = 0; i < c.nin; i++)
            fill_elements(c.in[i], 1);
    }
    transposed += turned;
    return true;
}

TEST(operators) {
    const char *why;
    int missed = 0; /* operators whose arguments are seldom drawn together */
    jit = jit_open(&(JitOptions){.cache_dir = "", .threads = 2}, &why);
    list_shapes();
    for (size_t i = 0; i < op_count() && !check_failures; i++) {
        const Op *op = op_at(i);
        if (!op_has_kept_plans(op))
            continue;
        int done = 0;
        for (uint32_t tries = 0; tries < 4000 && done < 12; tries++)
            done += try_call(op, tries);
        missed += !done;
    }
    CHECK(kept > 2000 && transposed > 200 && missed < 6 && viewed > 50 && lengthened > 5);
    if (jit)
        CHECK(launched > 200);
    jit_close(jit);
}

/* Of what is planned for one call, since elements decide it: kernels give the bits of the reference. */
TEST(plans_of_one_call) {
    const char *why;
    int ran = 0;
    jit = jit_open(&(JitOptions){.cache_dir = "", .threads = 2}, &why);
    for (size_t i = 0; i < op_count() && jit && !check_failures; i++) {
        const Op *op = op_at(i);
        if (!op->lower_reads)
            continue;
        for (uint32_t tries = 0; tries < 400; tries++) {
            Call c;
            Diags diags = {0};
            Tensor *want[OP_MAX_OUTPUTS], *got[OP_MAX_OUTPUTS];
            if (!make_call(&c, op, tries, below(64)))
                continue;
            for (int k = 0; k < c.nin; k++)
                c.in[k] = argument(c.dtypes[k], &c.shapes[k], below(3) == 0);
            OpCall call = {
                .op = op, .attrs = c.attrs, .nin = (uint32_t)c.nin, .in = c.in, .diags = &diags};
            int n = op_run(&call, want, NULL, NULL);
            CHECK_INT(op_run(&call, got, jit_run_step, jit), n);
            for (int k = 0; k < n; k++)
                if (memcmp(tensor_data(tensor_canonical(got[k])),
                           tensor_data(tensor_canonical(want[k])),
                           (size_t)want[k]->count * dtype_size(want[k]->dtype)) != 0)
                    check_fail(__FILE__, __LINE__, "%s: result %d differs", op->name, k);
            ran += n > 0;
        }
    }
    CHECK(!jit || ran > 100);
    printf("   %d calls\n", ran);
    jit_close(jit);
}

/* a -> t1 -> t2 -> t3 -> out: t3 lies where t1 was. */
TEST(temporaries_share_storage) {
    int64_t shape[] = {1000};
    Tensor *in = tensor_blank(DT_F32, 1, shape), *out = tensor_blank(DT_F32, 1, shape);
    Plan plan = {.blank = true};
    Tensor *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = plan_temp(&plan, DT_F32, 1, shape);
    plan_copy(&plan, t[0], in);
    plan_copy(&plan, t[1], t[0]);
    plan_copy(&plan, t[2], t[1]);
    plan_copy(&plan, out, t[2]);
    Template *made = template_new(&plan, &in, 1, &out, 1);
    CHECK(made->temp_at[0] == made->temp_at[2] && made->temp_at[0] != made->temp_at[1]);
    CHECK(made->scratch < 3 * 4000);
    Tensor *from = tensor_new(DT_F32, 1, shape), *to = tensor_new_zero(DT_F32, 1, shape);
    fill_elements(from, 1);
    char *at[5] = {tensor_data(from), tensor_data(to)};
    CHECK_INT(template_run(made, at, run_step, NULL, NULL), KERNEL_DONE);
    CHECK(memcmp(tensor_data(from), tensor_data(to), 4000) == 0);
}

/* Operators on rows are one launch, whose result may be written over the argument. */
TEST(rows_in_place) {
    static const char *const names[] = {"nn.softmax", "nn.log_softmax"};
    static const DType dtypes[] = {DT_F32, DT_F64, DT_F16};
    const char *why;
    jit = jit_open(&(JitOptions){.cache_dir = "", .threads = 2}, &why);
    for (int i = 0; i < 6; i++) {
        Shape shape = {.rank = 3, .dims = {3, 7, 12 + i * 37}};
        Diags diags = {0};
        Tensor *x = argument(dtypes[i / 2], &shape, false), *want;
        const Op *op = op_find(sym_intern(names[i % 2]));
        OpCall call = {.op = op, .attrs = attrs_defaults(op), .nin = 1, .in = &x, .diags = &diags};
        Template *t = plan_blank(&call);
        CHECK(t->nsteps == 1 && t->in_place == 1);
        compare(&call, t);
        CHECK_INT(op_run(&call, &want, NULL, NULL), 1);
        char **at = mem_new_n(char *, t->nslots + 1);
        at[0] = at[1] = tensor_data(x);
        CHECK_INT(template_run(t, at, jit ? run_ready : run_step, jit, NULL), KERNEL_DONE);
        CHECK(memcmp(tensor_data(x), tensor_data(want), (size_t)x->count * dtype_size(x->dtype)) ==
              0);
    }
    jit_close(jit);
}

int main(void) {
    RUN(operators);
    RUN(plans_of_one_call);
    RUN(temporaries_share_storage);
    RUN(rows_in_place);
    return check_result();
}
