/* SPDX-License-Identifier: Apache-2.0 */
/* Fused plans give the bits of the plans they come from, in as few steps as they should. */
#include "ops/recipe/fuse.h"
#include "ops/recipe/unroll.h"
#include "tests/unit/check.h"

#include <stdlib.h>

enum { M = 7, N = 12 };

typedef struct Made {
    Plan plan;
    Tensor *out, *more; /* more: a second result, or NULL */
} Made;

static Tensor *numbers(int rank, const int64_t *shape, int seed) {
    Tensor *t = tensor_new(DT_F32, rank, shape);
    for (int64_t i = 0; i < t->count; i++)
        *(float *)tensor_at(t, i) = (float)((i * 37 + seed * 11) % 101) / 17 - 2;
    return t;
}

static Tensor *turned(const Tensor *t) {
    int64_t shape[2] = {t->shape[1], t->shape[0]}, strides[2] = {t->strides[1], t->strides[0]};
    return tensor_view(t, 2, shape, strides, 0);
}

static void add(Plan *plan, Tensor *out, const Tensor *x, const Tensor *y) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    Sc a = sc_load(&s.body, step_in(&s, x), x->dtype);
    sc_add(&s.body, a, sc_load(&s.body, step_in(&s, y), y->dtype));
    step_out(&s, out);
    step_end(&s);
}

static void tanh_times(Plan *plan, Tensor *out, const Tensor *x, const Tensor *y, double by) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    Sc a = sc_tanh(&s.body, sc_load(&s.body, step_in(&s, x), x->dtype));
    a = sc_mul(&s.body, a, sc_load(&s.body, step_in(&s, y), y->dtype));
    sc_mul(&s.body, a, step_fparam(&s, &s.body, DT_F32, by));
    step_out(&s, out);
    step_end(&s);
}

static void scaled_index(Plan *plan, Tensor *out, const Tensor *x, double by) {
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out->rank, out->shape);
    Sc a = sc_mul(&s.body, sc_load(&s.body, step_in(&s, x), x->dtype),
                  step_fparam(&s, &s.body, DT_F32, by));
    sc_add(&s.body, a, sc_cast(&s.body, sc_iota(&s.body, 1), DT_F32));
    step_out(&s, out);
    step_end(&s);
}

static const int64_t matrix[2] = {M, N}, row[1] = {N};

static Made chain(void) { /* tanh(x + bias) * x * 3 + x */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *bias = numbers(1, row, 2);
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix), *u = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    add(&m.plan, t, x, bias);
    tanh_times(&m.plan, u, t, x, 3);
    add(&m.plan, m.out, u, x);
    return m;
}

static Made reduced(uint32_t which) { /* sum over axes of x * 0.5 + index, by another layout */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 3);
    int64_t shape[2] = {N, M};
    if (which & 4)
        x = turned(numbers(2, shape, 3));
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    scaled_index(&m.plan, t, x, 0.5);
    uint32_t over = which & 3;
    int64_t left[2];
    int n = 0;
    for (int a = 0; a < 2; a++)
        if (!(over >> a & 1))
            left[n++] = matrix[a];
    m.out = tensor_new(DT_F32, n, left);
    plan_reduce(&m.plan, m.out, t, over, COMBINE_SUM);
    return m;
}

static Made through_a_view(void) { /* (x + x)ᵀ + y */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 5);
    int64_t shape[2] = {N, M};
    Tensor *y = numbers(2, shape, 6), *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, shape);
    add(&m.plan, t, x, x);
    StepBuilder s;
    step_begin(&s, &m.plan, RECIPE_MAP, 2, shape);
    int64_t strides[2] = {t->strides[1], t->strides[0]};
    Sc a = sc_load(&s.body, step_in_strided(&s, t, strides, 0), DT_F32);
    sc_sub(&s.body, a, sc_load(&s.body, step_in(&s, y), DT_F32));
    step_out(&s, m.out);
    step_end(&s);
    return m;
}

static Made filled(void) { /* a producer without operands */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    plan_fill_float(&m.plan, t, 2.5);
    add(&m.plan, m.out, t, x);
    return m;
}

static Made half(void) { /* a temporary that rounds */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *t = plan_temp(&m.plan, DT_F16, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    tanh_times(&m.plan, t, x, x, 1);
    add(&m.plan, m.out, t, x);
    return m;
}

static Made twice(bool fold) { /* read by two steps, which may become one */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    Tensor *u = plan_temp(&m.plan, DT_F32, fold ? 1 : 2, fold ? row : matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    add(&m.plan, t, x, x);
    if (fold)
        plan_reduce(&m.plan, u, t, 1, COMBINE_MAX);
    else
        add(&m.plan, u, t, x);
    add(&m.plan, m.out, u, t);
    return m;
}

static Made repeated(void) { /* a row that every row of the result reads: not computed again */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *b = numbers(1, row, 2);
    Tensor *t = plan_temp(&m.plan, DT_F32, 1, row);
    m.out = tensor_new(DT_F32, 2, matrix);
    tanh_times(&m.plan, t, b, b, 2);
    add(&m.plan, m.out, x, t);
    return m;
}

enum { K = 5 };

/* t[i, j] = sum over k of x[i, k] * y[k, j]; t may lie in any order. */
static void product(Plan *plan, Tensor *t, const Tensor *x, const Tensor *y) {
    StepBuilder s;
    int64_t k = x->shape[1];
    step_begin(&s, plan, RECIPE_PRODUCT, 2, t->shape);
    step_reduce_over(&s, 1, &k);
    int64_t rows[3] = {x->strides[0], 0, x->strides[1]},
            columns[3] = {0, y->strides[1], y->strides[0]};
    Sc a = sc_load(&s.body, step_in_strided(&s, x, rows, 0), DT_F32);
    sc_mul(&s.body, a, sc_load(&s.body, step_in_strided(&s, y, columns, 0), DT_F32));
    step_combine(&s, COMBINE_SUM, DT_F32);
    step_out(&s, t);
    step_end(&s);
}

static Tensor *product_of(Plan *plan, Tensor *t) {
    int64_t left[2] = {t->shape[0], K}, right[2] = {K, t->shape[1]};
    product(plan, t, numbers(2, left, 8), numbers(2, right, 9));
    return t;
}

static Made layer(void) { /* tanh(x @@ w + bias) * residual * 3 */
    Made m = {0};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix), *u = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    product_of(&m.plan, t);
    add(&m.plan, u, t, numbers(1, row, 2));
    tanh_times(&m.plan, m.out, u, numbers(2, matrix, 3), 3);
    return m;
}

static Made cut(void) { /* (x @@ w) as (M, 3, N / 3), added to what repeats along the middle */
    Made m = {0};
    int64_t parts[3] = {M, 3, N / 3}, some[3] = {M, 1, N / 3};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 3, parts);
    product_of(&m.plan, t);
    int64_t strides[3] = {N, N / 3, 1};
    StepBuilder s;
    step_begin(&s, &m.plan, RECIPE_MAP, 3, parts);
    Sc a = sc_load(&s.body, step_in_strided(&s, t, strides, 0), DT_F32);
    sc_add(&s.body, a, sc_load(&s.body, step_in(&s, numbers(3, some, 4)), DT_F32));
    step_out(&s, m.out);
    step_end(&s);
    return m;
}

static Made turned_result(void) { /* (x @@ w)ᵀ + y */
    Made m = {0};
    int64_t shape[2] = {N, M};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, shape);
    product_of(&m.plan, t);
    int64_t strides[2] = {1, N};
    StepBuilder s;
    step_begin(&s, &m.plan, RECIPE_MAP, 2, shape);
    Sc a = sc_load(&s.body, step_in_strided(&s, t, strides, 0), DT_F32);
    sc_sub(&s.body, a, sc_load(&s.body, step_in(&s, numbers(2, shape, 6)), DT_F32));
    step_out(&s, m.out);
    step_end(&s);
    return m;
}

static Made two_products(void) { /* x @@ w + y @@ v + bias: the first takes in the rest */
    Made m = {0};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix), *u = plan_temp(&m.plan, DT_F32, 2, matrix);
    Tensor *v = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    product_of(&m.plan, t);
    product_of(&m.plan, u);
    add(&m.plan, v, t, u);
    add(&m.plan, m.out, v, numbers(1, row, 2));
    return m;
}

static Made through_a_transpose(void) { /* x @@ yᵀ, where the transpose is a step of its own */
    Made m = {0};
    int64_t left[2] = {M, K}, stored[2] = {N, K}, right[2] = {K, N};
    Tensor *y = numbers(2, stored, 9), *t = plan_temp(&m.plan, DT_F32, 2, right);
    m.out = tensor_new(DT_F32, 2, matrix);
    plan_copy(&m.plan, t, turned(y));
    product(&m.plan, m.out, numbers(2, left, 8), t);
    return m;
}

static Made sum_of_rows(void) { /* a sum of rows, and what follows it */
    Made m = {0};
    int64_t column[2] = {M, 1};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, column);
    m.out = tensor_new(DT_F32, 2, column);
    plan_reduce(&m.plan, t, numbers(2, matrix, 3), 2, COMBINE_SUM);
    tanh_times(&m.plan, m.out, t, numbers(2, column, 1), 0.5);
    return m;
}

static Made broadcast(void) { /* a sum that each element of a row reads */
    Made m = {0};
    int64_t column[2] = {M, 1};
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, column), *x = numbers(2, matrix, 3);
    m.out = tensor_new(DT_F32, 2, matrix);
    plan_reduce(&m.plan, t, x, 2, COMBINE_SUM);
    add(&m.plan, m.out, x, t);
    return m;
}

/* d = x - max(x); d + sum(tanh(d) * d): folds of one tensor along an axis, and what follows them. */
static Made folded_twice(const int64_t *shape, int axis, DType between) {
    Made m = {0};
    int64_t left[2] = {shape[0], shape[1]};
    left[axis] = 1;
    Tensor *x = numbers(2, shape, 3), *d = plan_temp(&m.plan, between, 2, shape);
    Tensor *top = plan_temp(&m.plan, DT_F32, 2, left), *sum = plan_temp(&m.plan, DT_F32, 2, left);
    Tensor *t = plan_temp(&m.plan, DT_F32, 2, shape);
    m.out = tensor_new(DT_F32, 2, shape);
    plan_reduce(&m.plan, top, x, 1u << axis, COMBINE_MAX);
    add(&m.plan, d, x, top);
    tanh_times(&m.plan, t, d, d, 2);
    plan_reduce(&m.plan, sum, t, 1u << axis, COMBINE_SUM);
    add(&m.plan, m.out, d, sum);
    return m;
}

/* d = tanh(x) * x * 2; d + sum(d): a map that a fold reads, and another map. */
static Made folded_map(void) {
    Made m = {0};
    int64_t column[2] = {M, 1};
    Tensor *x = numbers(2, matrix, 3), *d = plan_temp(&m.plan, DT_F32, 2, matrix);
    Tensor *sum = plan_temp(&m.plan, DT_F32, 2, column);
    m.out = tensor_new(DT_F32, 2, matrix);
    tanh_times(&m.plan, d, x, x, 2);
    plan_reduce(&m.plan, sum, d, 2, COMBINE_SUM);
    add(&m.plan, m.out, d, sum);
    return m;
}

/* Two sums over one tensor, of which neither reads the other. */
static Made sums_of_one(void) {
    Made m = {0};
    int64_t column[2] = {M, 1};
    Tensor *x = numbers(2, matrix, 3), *t = plan_temp(&m.plan, DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, column);
    m.more = tensor_new(DT_F32, 2, column);
    tanh_times(&m.plan, t, x, x, 2);
    plan_reduce(&m.plan, m.more, t, 2, COMBINE_SUM);
    plan_reduce(&m.plan, m.out, x, 2, COMBINE_MAX);
    return m;
}

static Made siblings(
    void) { /* x + bias and tanh(x + bias) * x, both kept; the first walks two axes, the other one */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1), *bias = numbers(1, row, 2);
    m.more = tensor_new(DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    add(&m.plan, m.more, x, bias);
    tanh_times(&m.plan, m.out, m.more, x, 3);
    return m;
}

static Made cousins(void) { /* x + y and x + z, of which neither reads the other */
    Made m = {0};
    Tensor *x = numbers(2, matrix, 1);
    m.more = tensor_new(DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    add(&m.plan, m.more, x, numbers(2, matrix, 2));
    add(&m.plan, m.out, x, numbers(2, matrix, 3));
    return m;
}

static Made strangers(void) { /* nothing in common */
    Made m = {0};
    m.more = tensor_new(DT_F32, 2, matrix);
    m.out = tensor_new(DT_F32, 2, matrix);
    add(&m.plan, m.more, numbers(2, matrix, 4), numbers(2, matrix, 2));
    add(&m.plan, m.out, numbers(2, matrix, 1), numbers(2, matrix, 3));
    return m;
}

static Made turned_sibling(void) { /* t = x + y; t + transpose(t) reads t at two places */
    Made m = {0};
    static const int64_t square[2] = {M, M};
    Tensor *x = numbers(2, square, 1);
    m.more = tensor_new(DT_F32, 2, square);
    m.out = tensor_new(DT_F32, 2, square);
    add(&m.plan, m.more, x, numbers(2, square, 2));
    add(&m.plan, m.out, m.more, turned(m.more));
    return m;
}

static void check(const char *what, Made plain, Made fused, size_t steps) {
    plan_fuse(&fused.plan);
    if (fused.plan.steps.len != steps)
        check_fail(__FILE__, __LINE__, "%s: %zu steps, expected %zu", what, fused.plan.steps.len,
                   steps);
    CHECK_INT(plan_run(&plain.plan, NULL, NULL, NULL), KERNEL_DONE);
    CHECK_INT(plan_run(&fused.plan, NULL, NULL, NULL), KERNEL_DONE);
    size_t bytes = (size_t)plain.out->count * sizeof(float);
    if (memcmp(tensor_data(plain.out), tensor_data(fused.out), bytes) != 0)
        check_fail(__FILE__, __LINE__, "%s: other bits", what);
    if (plain.more && memcmp(tensor_data(plain.more), tensor_data(fused.more), bytes) != 0)
        check_fail(__FILE__, __LINE__, "%s: other bits of the second result", what);
}

TEST(chains) {
    check("chain", chain(), chain(), 1);
    check("twice", twice(false), twice(false), 1);
}
TEST(reductions) {
    for (uint32_t which = 1; which < 8; which++)
        if (which & 3)
            check(fmt_text("reduction %u", which), reduced(which), reduced(which), 1);
}
TEST(several_results) {
    check("siblings", siblings(), siblings(), 1);
    check("cousins", cousins(), cousins(), 1);
    check("strangers", strangers(), strangers(), 2);
    check("turned", turned_sibling(), turned_sibling(), 2);
}
TEST(views) { check("view", through_a_view(), through_a_view(), 1); }
TEST(fills) { check("fill", filled(), filled(), 1); }
TEST(not_fused) {
    check("half", half(), half(), 2);
    check("repeated", repeated(), repeated(), 2);
    check("read by a fold too", twice(true), twice(true), 3);
}
TEST(rows) {
    static const int64_t short_rows[2] = {N, M}, long_rows[2] = {3, 5000};
    check("broadcast", broadcast(), broadcast(), 1);
    check("rows", folded_twice(matrix, 1, DT_F32), folded_twice(matrix, 1, DT_F32), 1);
    check("halves", folded_twice(matrix, 1, DT_F16), folded_twice(matrix, 1, DT_F16), 1);
    check("columns", folded_twice(matrix, 0, DT_F32), folded_twice(matrix, 0, DT_F32), 4);
    check("short", folded_twice(short_rows, 1, DT_F32), folded_twice(short_rows, 1, DT_F32), 4);
    check("long", folded_twice(long_rows, 1, DT_F32), folded_twice(long_rows, 1, DT_F32), 4);
    check("folded map", folded_map(), folded_map(), 1);
    check("sums of one tensor", sums_of_one(), sums_of_one(), 1);
}
TEST(epilogues) {
    check("layer", layer(), layer(), 1);
    check("cut", cut(), cut(), 1);
    check("turned", turned_result(), turned_result(), 1);
    check("two products", two_products(), two_products(), 2);
    check("transpose", through_a_transpose(), through_a_transpose(), 1);
    check("reduction", sum_of_rows(), sum_of_rows(), 1);
}

/* s = s + x[k, i] * y[k, j] over k, twice, of products with so many steps. */
static Made added_products(int64_t k) {
    Made m = {0};
    int64_t left[2] = {k, M}, right[2] = {k, N};
    Tensor *sum = numbers(2, matrix, 3);
    for (int i = 0; i < 2; i++) {
        Tensor *x = numbers(2, left, 4 + i), *y = numbers(2, right, 6 + i);
        Tensor *t = plan_temp(&m.plan, DT_F32, 2, matrix), *next = tensor_new(DT_F32, 2, matrix);
        product(&m.plan, t, turned(x), y);
        add(&m.plan, next, sum, t);
        if (i == 0)
            vec_push(&m.plan.temps, next);
        sum = m.out = next;
    }
    return m;
}

TEST(products_written_out) {
    for (int64_t k = 1; k <= 4; k++) {
        Made plain = added_products(k), unrolled = added_products(k);
        for (size_t i = 0; i < unrolled.plan.steps.len; i++)
            CHECK_INT(step_unroll(unrolled.plan.steps.data[i], 3), i % 2 == 0 && k <= 3);
        check(fmt_text("products of %lld steps", (long long)k), plain, unrolled, k <= 3 ? 1 : 2);
    }
    Made none = added_products(0);
    CHECK(!step_unroll(none.plan.steps.data[0], 3));
}

int main(void) {
    RUN(chains);
    RUN(reductions);
    RUN(several_results);
    RUN(views);
    RUN(fills);
    RUN(not_fused);
    RUN(rows);
    RUN(epilogues);
    RUN(products_written_out);
    return check_result();
}
