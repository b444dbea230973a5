/* SPDX-License-Identifier: Apache-2.0 */
/* The reference evaluation against plain loops that follow ops/recipe/recipe.h word by word. */
#include "ops/recipe/plan.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static uint32_t seed = 1;
static float random_float(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed * 0x1p-31f;
}

static Tensor *random_tensor(int rank, const int64_t *shape) {
    Tensor *t = tensor_new(DT_F32, rank, shape);
    for (int64_t i = 0; i < t->count; i++)
        ((float *)tensor_data(t))[i] = random_float();
    return t;
}

static float at(const Tensor *t, int64_t i) { return *(float *)tensor_at(t, i); }

/* Sixteen accumulators and the fixed tree. */
static float sum16(const float *x, int64_t n) {
    float acc[16] = {0};
    for (int64_t i = 0; i < n; i++)
        acc[i % 16] += x[i];
    for (int s = 8; s > 0; s /= 2)
        for (int i = 0; i < s; i++)
            acc[i] += acc[i + s];
    return acc[0];
}

static void check_sum(int64_t rows, int64_t columns, bool transposed) {
    Tensor *t = transposed ? random_tensor(2, (int64_t[]){columns, rows})
                           : random_tensor(2, (int64_t[]){rows, columns});
    const Tensor *v = t;
    if (transposed)
        v = tensor_view(t, 2, (int64_t[]){rows, columns}, (int64_t[]){1, rows}, 0);
    Tensor *out = tensor_new(DT_F32, 1, &rows);
    Plan plan = {0};
    plan_reduce(&plan, out, v, 2, COMBINE_SUM);
    CHECK_INT(plan_run(&plan, NULL, NULL, NULL), KERNEL_DONE);
    float *row = malloc(sizeof(float) * (size_t)(columns + 1));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++)
            row[j] = at(v, i * columns + j);
        CHECK(at(out, i) == sum16(row, columns));
    }
    free(row);
}

/* Whichever way the evaluation walks. */
TEST(sums_have_one_order) {
    static const int64_t sizes[][2] = {{1, 1},   {1, 5000}, {3, 1000}, {300, 7},  {1000, 3},
                                       {5, 300}, {70, 70},  {2, 0},    {257, 65}, {64, 257}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_sum(sizes[i][0], sizes[i][1], false);
        check_sum(sizes[i][0], sizes[i][1], true);
    }
}

static void check_product(int64_t m, int64_t n, int64_t k) {
    Tensor *x = random_tensor(2, (int64_t[]){m, k}), *y = random_tensor(2, (int64_t[]){k, n});
    Tensor *out = tensor_new(DT_F32, 2, (int64_t[]){m, n});
    Plan plan = {0};
    StepBuilder s;
    step_begin(&s, &plan, RECIPE_PRODUCT, 2, out->shape);
    step_reduce_over(&s, 1, &k);
    Sc a = sc_load(&s.body, step_in_strided(&s, x, (int64_t[]){k, 0, 1}, 0), DT_F32);
    Sc b = sc_load(&s.body, step_in_strided(&s, y, (int64_t[]){0, 1, n}, 0), DT_F32);
    sc_mul(&s.body, a, b);
    step_combine(&s, COMBINE_SUM, DT_F32);
    step_out(&s, out);
    step_end(&s);
    CHECK_INT(plan_run(&plan, NULL, NULL, NULL), KERNEL_DONE);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float acc = 0;
            for (int64_t l = 0; l < k; l++)
                acc = fmaf(at(x, i * k + l), at(y, l * n + j), acc);
            CHECK(at(out, i * n + j) == acc);
        }
}

TEST(products_are_in_order) {
    check_product(1, 1, 1000);
    check_product(3, 2, 500);
    check_product(40, 50, 30);
    check_product(5, 7, 0);
    check_product(1, 300, 2);
}

TEST(maps_broadcast) {
    static const int64_t shapes[][3] = {{2, 3, 5}, {1, 3, 1}, {2, 1, 5}, {2, 300, 3}, {1, 300, 1}};
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++) {
            int64_t shape[3];
            bool fits = true;
            for (int i = 0; i < 3; i++) {
                int64_t p = shapes[a][i], q = shapes[b][i];
                fits &= p == q || p == 1 || q == 1;
                shape[i] = p == 1 ? q : p;
            }
            if (!fits)
                continue;
            Tensor *x = random_tensor(3, shapes[a]), *y = random_tensor(3, shapes[b]);
            Tensor *out = tensor_new(DT_F32, 3, shape);
            Plan plan = {0};
            StepBuilder s;
            step_begin(&s, &plan, RECIPE_MAP, 3, shape);
            Sc u = sc_load(&s.body, step_in(&s, x), DT_F32);
            Sc v = sc_load(&s.body, step_in(&s, y), DT_F32);
            sc_sub(&s.body, u, v);
            step_out(&s, out);
            step_end(&s);
            CHECK_INT(plan_run(&plan, NULL, NULL, NULL), KERNEL_DONE);
            for (int64_t i = 0; i < out->count; i++) {
                int64_t index[3] = {i / (shape[1] * shape[2]), i / shape[2] % shape[1],
                                    i % shape[2]};
                int64_t p = 0, q = 0;
                for (int k = 0; k < 3; k++) {
                    p = p * shapes[a][k] + (shapes[a][k] == 1 ? 0 : index[k]);
                    q = q * shapes[b][k] + (shapes[b][k] == 1 ? 0 : index[k]);
                }
                CHECK(at(out, i) == at(x, p) - at(y, q));
            }
        }
}

TEST(axes_are_merged) {
    Plan plan = {0};
    int64_t shape[] = {2, 1, 3, 4};
    Tensor *x = random_tensor(4, shape), *out = tensor_new(DT_F32, 4, shape);
    plan_copy(&plan, out, x);
    const Step *step = plan.steps.data[0];
    CHECK_INT(step->recipe->rank, 1);
    CHECK_INT(step->args.extents[0], 24);
    Tensor *sum = tensor_new(DT_F32, 1, (int64_t[]){2});
    plan_reduce(&plan, sum, tensor_view(x, 3, (int64_t[]){2, 3, 4}, (int64_t[]){12, 4, 1}, 0), 6,
                COMBINE_SUM);
    CHECK_INT(plan.steps.data[1]->recipe->rank, 1);
    CHECK_INT(plan.steps.data[1]->recipe->nreduce, 1);
    Tensor *scalar = tensor_new(DT_F32, 0, NULL);
    plan_reduce(&plan, scalar, x, 15, COMBINE_SUM);
    CHECK_INT(plan.steps.data[2]->recipe->rank, 1);
    CHECK_INT(plan.steps.data[2]->args.extents[1], 24);
    CHECK_INT(plan_run(&plan, NULL, NULL, NULL), KERNEL_DONE);
}

TEST(recipes_are_keys) {
    Plan plan = {0};
    Tensor *x = random_tensor(2, (int64_t[]){3, 4}), *y = random_tensor(1, (int64_t[]){50});
    plan_copy(&plan, tensor_new(DT_F32, 2, x->shape), x);
    plan_copy(&plan, tensor_new(DT_F32, 1, y->shape), y);
    plan_copy(&plan, tensor_new(DT_F64, 1, y->shape), y);
    const Recipe *r[3];
    for (int i = 0; i < 3; i++)
        r[i] = plan.steps.data[i]->recipe;
    CHECK(recipe_equal(r[0], r[1]) && recipe_hash(r[0]) == recipe_hash(r[1]));
    CHECK(!recipe_equal(r[0], r[2]) && recipe_hash(r[0]) != recipe_hash(r[2]));
    Str s = {0};
    recipe_print(&s, r[2]);
    CHECK_TEXT(str_text(&s), "map rank 1 (float32) -> float64\n"
                             "  %0 = load float32 in0\n"
                             "  %1 = cast float64 %0 from float32\n"
                             "  result %1\n");
}

/* Adds 1 at out[index]; then the running sum, exclusive. */
TEST(scatter_then_scan) {
    int64_t where[] = {3, 0, 3, 3, 1}, n = 5, m = 4;
    Tensor *index = tensor_from(DT_I64, 1, &n, where), *count = tensor_new_zero(DT_I32, 1, &m);
    Tensor *before = tensor_new(DT_I32, 1, &m);
    Plan plan = {0};
    StepBuilder s;
    step_begin(&s, &plan, RECIPE_SCATTER, 1, &n);
    Sc offset = sc_load(&s.body, step_in(&s, index), DT_I64);
    Sc one = sc_int(&s.body, DT_I32, 1);
    step_result(&s, one);
    step_result(&s, offset);
    step_combine(&s, COMBINE_SUM, DT_I32);
    step_out_strided(&s, count, (int64_t[]){0}, 0);
    step_end(&s);
    step_begin(&s, &plan, RECIPE_SCAN, 1, &m);
    sc_load(&s.body, step_in(&s, count), DT_I32);
    step_combine(&s, COMBINE_SUM, DT_I32);
    s.last = true;
    step_out(&s, before);
    step_end(&s);
    CHECK_INT(plan_run(&plan, NULL, NULL, NULL), KERNEL_DONE);
    int32_t counts[] = {1, 1, 0, 3}, sums[] = {0, 1, 2, 2};
    CHECK(memcmp(tensor_data(count), counts, sizeof counts) == 0);
    CHECK(memcmp(tensor_data(before), sums, sizeof sums) == 0);
}

TEST(threads_split_the_work) {
    int64_t n = 1001;
    Tensor *x = random_tensor(1, &n), *out = tensor_new_zero(DT_F32, 1, &n);
    Plan plan = {0};
    plan_copy(&plan, out, x);
    Step *step = plan.steps.data[0];
    step->args.in[0] = tensor_data(x);
    step->args.out[0] = tensor_data(out);
    step->args.nthreads = 3;
    for (int i = 0; i < 3; i++) {
        step->args.thread = i;
        CHECK_INT(recipe_run(step->recipe, &step->args), KERNEL_DONE);
    }
    CHECK(memcmp(tensor_data(x), tensor_data(out), sizeof(float) * (size_t)n) == 0);
}

TEST(statuses) {
    int64_t n = 300;
    Tensor *x = tensor_new_zero(DT_I32, 1, &n), *out = tensor_new(DT_I32, 1, &n);
    ((int32_t *)tensor_data(x))[299] = 5;
    static const ScalarOp ops[] = {SC_DIV, SC_REM, SC_SHL};
    static const int32_t expected[] = {KERNEL_DIVIDE, KERNEL_DIVIDE, KERNEL_SHIFT};
    for (int k = 0; k < 3; k++) {
        Plan plan = {0};
        StepBuilder s;
        step_begin(&s, &plan, RECIPE_MAP, 1, &n);
        Sc v = sc_load(&s.body, step_in(&s, x), DT_I32);
        Sc y = k < 2 ? v : sc_neg(&s.body, v);
        sc_op2(&s.body, ops[k], v, y);
        step_out(&s, out);
        step_end(&s);
        CHECK_INT(plan_run(&plan, NULL, NULL, NULL), expected[k]);
        int stop = 1;
        CHECK_INT(plan_run(&plan, NULL, NULL, &stop), KERNEL_INTERRUPTED);
    }
}

int main(void) {
    RUN(sums_have_one_order);
    RUN(products_are_in_order);
    RUN(maps_broadcast);
    RUN(axes_are_merged);
    RUN(recipes_are_keys);
    RUN(scatter_then_scan);
    RUN(threads_split_the_work);
    RUN(statuses);
    return check_result();
}
