/* SPDX-License-Identifier: Apache-2.0 */
/* See Note [Products that wait] in eval/waiting.h. */
#include "eval/waiting.h"

#include "eval/plans.h"
#include "ops/ops.h"
#include "ops/recipe/fuse.h"
#include "ops/recipe/unroll.h"

#include <string.h>

/* With so many rows of 512, a step that adds a product to weights of 512 x 512 takes, with all around it: 1 row 0.23 ms
 * one by one and 0.14 waiting, 4 rows 0.30 and 0.24, 6 rows 0.38 and 0.30, 8 rows 0.44 and 0.41, 12 rows 0.49 and 0.51. */
enum {
    MOST_STEPS =
        12, /* multiply-adds an element that wait: a kernel has operands for two factors each and the sum */
    MOST_OF_ONE = 6, /* … of one product, so that at least two wait */
    LEAST = 1024,    /* elements of a sum: a smaller one stays in the first cache */
    SMALLER = 4,     /* by so much the factors have fewer elements than the sum */
};

/* Products of one operator; two factors each. */
typedef struct Waiting {
    const Op *op;
    const Attrs *attrs;
    uint32_t n;
    int64_t steps; /* of all */
    bool alone;    /* they are the sum: its elements have not been written yet */
    Tensor *factor[2 * MOST_STEPS];
} Waiting;

/* ---- the kernel ------------------------------------------------------------------------------ */

static Tensor *plan_result(Plan *plan, const Tensor *like, bool last) {
    return last ? tensor_blank(like->dtype, like->rank, like->shape)
                : plan_temp(plan, like->dtype, like->rank, like->shape);
}

static void plan_call(Plan *plan, const Op *op, const Attrs *attrs, Tensor **in, Tensor *out) {
    Diags unheard = {0};
    OpCall call = {
        .op = op, .attrs = attrs, .nin = (uint32_t)op->nargs, .in = in, .diags = &unheard};
    if (!op->lower(&call, &out, plan))
        BUG("operator `%s` cannot be planned beside a sum", op->name);
}

/* in: the sum, then the factors. */
static Template *make_template(void *ctx, Tensor *const *in, uint32_t n) {
    const Waiting *w = ctx;
    Plan plan = {.blank = true};
    Tensor *sum = w->alone ? NULL : in[0];
    for (uint32_t i = 1; i < n; i += 2) {
        bool last = i + 2 == n;
        Tensor *factors[3] = {in[i], in[i + 1], in[0]};
        Tensor *both[2] = {sum, plan_result(&plan, in[0], last && !sum)};
        plan_call(&plan, w->op, w->attrs, factors, both[1]);
        if (sum) {
            sum = plan_result(&plan, in[0], last);
            plan_call(&plan, &op_add, attrs_defaults(&op_add), both, sum);
        } else {
            sum = both[1];
        }
    }
    for (size_t k = 0; k < plan.steps.len; k++)
        (void)step_unroll(plan.steps.data[k], MOST_STEPS);
    plan_fuse(&plan);
    Template *t = template_new(&plan, in, n, &sum, 1);
    if (!t)
        BUG("products that wait read a tensor that is none of their factors");
    return t;
}

/* The sum has its elements where `made` has them, and nothing else has. */
static void take_elements(Tensor *sum, const Tensor *made) {
    sum->buffer = made->buffer;
    sum->offset = made->offset;
    memcpy(sum->strides, made->strides, sizeof *sum->strides * (size_t)sum->rank);
}

bool waiting_add_all(Interp *in, Tensor *sum) {
    static const char added, alone; /* by their addresses: plans of products that wait */
    Waiting *w = sum->waiting;
    uint8_t mark = sum->accumulates;
    Value args[1 + 2 * MOST_STEPS], out;
    uint32_t n = 0;
    sum->waiting = NULL;
    args[n++] = value_tensor(sum);
    for (uint32_t i = 0; i < 2 * w->n; i++)
        args[n++] = value_tensor(w->factor[i]);
    PlanCall call = {
        .what = w->alone ? &alone : &added, .more = w->op, .dying = (UINT64_C(1) << n) - 1};
    int32_t status = plans_run(in, &call, args, n, make_template, w, &out);
    if (status == KERNEL_INTERRUPTED) {
        in->interrupt = 1;
        return false;
    }
    if (status != KERNEL_DONE)
        BUG("products that wait ended with status %d", (int)status);
    if (out.p != sum)
        take_elements(sum, out.p);
    sum->accumulates = mark;
    return true;
}

/* ---- what waits ------------------------------------------------------------------------------ */

/* How many multiply-adds an element of a product of so many elements has, at most; 0: it is not to wait. */
static int64_t count_steps(int64_t count, const Tensor *x, const Tensor *y) {
    int64_t both;
    if (count < LEAST || x->count + y->count > count / SMALLER ||
        __builtin_mul_overflow(x->count, y->count, &both))
        return 0;
    for (int64_t k = 1; k <= MOST_OF_ONE; k++)
        if (count * k * k >= both)
            return k;
    return 0;
}

/* Whether such products may wait. */
static bool may_wait(const Site *of) {
    const Op *op = of->op;
    bool takes_two = op->nargs == 2 || (op->nargs == 3 && op->like_last);
    return takes_two && !op->nattrs && !of->nsizes;
}

/* What the product of x and y is. like: of its shape, or NULL where the operator does not ask. */
static bool find_spec(const Site *of, Tensor *x, Tensor *y, Tensor *like, OutSpec *spec) {
    Tensor *in[3] = {x, y, like};
    Diags unheard = {0};
    OpCall call = {.op = of->op, .attrs = of->attrs, .nin = of->nargs, .in = in, .diags = &unheard};
    return of->op->shape(&call, spec) == 1;
}

/* Whether the product has the shape of the sum. */
static bool fits(Tensor *sum, const Site *of, Tensor *x, Tensor *y) {
    OutSpec spec;
    return find_spec(of, x, y, sum, &spec) && spec.dtype == sum->dtype && spec.rank == sum->rank &&
           !memcmp(spec.shape, sum->shape, sizeof *spec.shape * (size_t)spec.rank);
}

static bool is_float_tensor(Value v) {
    return v.tag == VAL_TENSOR && !((Tensor *)v.p)->waiting &&
           (((Tensor *)v.p)->dtype == DT_F32 || ((Tensor *)v.p)->dtype == DT_F64);
}

static bool is_factor(const Tensor *sum, Value v) {
    return is_float_tensor(v) && ((Tensor *)v.p)->dtype == sum->dtype &&
           ((Tensor *)v.p)->buffer != sum->buffer;
}

static Tensor *hold(const Tensor *t) {
    return tensor_view(t, t->rank, t->shape, t->strides, t->offset);
}

static void add_factors(Waiting *w, const Tensor *x, const Tensor *y, int64_t steps) {
    w->factor[2 * w->n] = hold(x);
    w->factor[2 * w->n + 1] = hold(y);
    w->n++;
    w->steps += steps;
}

static Waiting *waiting_new(const Site *of, bool alone) {
    Waiting *w = mem_new(Waiting);
    w->op = of->op;
    w->attrs = of->attrs;
    w->alone = alone;
    return w;
}

/* Gives back those of n arguments that end. */
static void drop_dying(const Value *args, uint32_t n, uint64_t dying) {
    for (uint32_t i = 0; i < n; i++)
        if ((dying >> i & 1) && args[i].tag == VAL_TENSOR)
            tensor_drop(args[i].p);
}

Tensor *waiting_new_sum(const Site *of, const Value *args, uint64_t dying) {
    OutSpec spec;
    if (!may_wait(of) || !is_float_tensor(args[0]) || !is_float_tensor(args[1]))
        return NULL;
    Tensor *x = args[0].p, *y = args[1].p, *like = NULL;
    if (of->nargs == 3) {
        if (args[2].tag != VAL_TENSOR)
            return NULL;
        like = args[2].p;
    }
    if (x->dtype != y->dtype || !find_spec(of, x, y, like, &spec) || spec.dtype != x->dtype)
        return NULL;
    int64_t steps = count_steps(shape_count(spec.rank, spec.shape, spec.dtype), x, y);
    if (!steps)
        return NULL;
    Tensor *sum = tensor_new(spec.dtype, spec.rank, spec.shape);
    Waiting *w = waiting_new(of, true);
    add_factors(w, x, y, steps);
    sum->waiting = w;
    sum->accumulates = SUM;
    drop_dying(args, of->nargs, dying);
    return sum;
}

bool waiting_push(Interp *in, Tensor *sum, const Site *of, const Value *args, uint64_t dying,
                  bool *ok) {
    bool is_own = is_sum(sum) || (dying & 1);
    if (!is_own || !may_wait(of) || sum->buffer->owners != 1 || !is_factor(sum, args[1]) ||
        !is_factor(sum, args[2]))
        return false;
    Tensor *x = args[1].p, *y = args[2].p;
    int64_t steps = count_steps(sum->count, x, y);
    if (!steps || !fits(sum, of, x, y))
        return false;
    Waiting *w = sum->waiting;
    *ok = true;
    if (w && (w->op != of->op || w->steps + steps > MOST_STEPS)) {
        *ok = waiting_add_all(in, sum);
        w = NULL;
        if (!*ok)
            return true;
    }
    if (!w)
        w = sum->waiting = waiting_new(of, false);
    add_factors(w, x, y, steps);
    sum->accumulates |= SUM;
    drop_dying(args + 1, of->nargs, dying >> 1);
    return true;
}
