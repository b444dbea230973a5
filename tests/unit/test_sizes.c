/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that are formulas say what the kernels do at every value of their variables: slices, and
 * the order that Note [Sizes in order] finds. */
#include "ops/slice.h"
#include "tests/unit/check.h"
#include "types/solve/solver.h"
#include "types/type/dim.h"

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

static Type *n, *m; /* two declared sizes */

/* The formula at n = a, m = b. */
static int64_t value_at(Type *t, int64_t a, int64_t b) {
    Type *from[] = {n, m}, *to[] = {type_dim_int(a, NULL), type_dim_int(b, NULL)};
    int64_t v = -1;
    Type *found = type_resolve(type_substitute(t, from, to, 2));
    if (!type_get_int(found, &v))
        FAIL("%s has no value at %d, %d: %s", type_text(t), (int)a, (int)b, type_text(found));
    return v;
}

/* ---- slices ---------------------------------------------------------------------------------- */

TEST(slices_of_symbolic_axes) {
    static const int64_t steps[] = {1, 2, 3, 7, -1, -2, -3, -7};
    Relation r = {0};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (int64_t b = -7; b <= 7; b++)
            for (int64_t e = -7; e <= 7; e++) {
                SliceRange g = {
                    .has_begin = b != 7, .has_end = e != 7, .begin = b, .end = e, .step = steps[s]};
                Type *size = rel_slice_size(&r, n, g.has_begin ? type_dim_int(b, NULL) : NULL,
                                            g.has_end ? type_dim_int(e, NULL) : NULL, steps[s]);
                for (int64_t d = 0; d <= 9; d++) {
                    int64_t first, count;
                    slice_resolve(&g, d, &first, &count);
                    check_tried();
                    if (value_at(size, d, 0) != count)
                        FAIL("slice %d:%d:%d of an axis of %d has %d elements, %s says %d", (int)b,
                             (int)e, (int)steps[s], (int)d, (int)count, type_text(size),
                             (int)value_at(size, d, 0));
                }
            }
}

TEST(slices_up_to_a_declared_size) {
    Relation r = {0};
    for (int which = 1; which < 4; which++) {
        Type *end = which & 2 ? dim_add_int(m, 1) : NULL, *begin = which & 1 ? m : NULL;
        Type *size = rel_slice_size(&r, n, begin, end, 1);
        for (int64_t d = 0; d < 6; d++)
            for (int64_t k = 0; k < 6; k++) {
                SliceRange g = {
                    .has_begin = begin, .has_end = end, .begin = k, .end = k + 1, .step = 1};
                int64_t first, count;
                slice_resolve(&g, d, &first, &count);
                CHECK_INT(value_at(size, d, k), count);
            }
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

static uint32_t seed = 11;
static uint32_t below(uint32_t k) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % k;
}

static Type *random_size(int depth) {
    if (depth == 0)
        return below(3) == 0 ? type_dim_int((int64_t)below(4), NULL) : below(2) ? n : m;
    Type *a = random_size(depth - 1), *b = random_size(depth - 1);
    switch (below(6)) {
    case 0: return dim_add(a, b);
    case 1: return dim_sub(a, b);
    case 2: return dim_min(a, b);
    case 3: return dim_max(a, b);
    case 4: return dim_floordiv(a, type_dim_int(1 + (int64_t)below(3), NULL));
    }
    return dim_add_int(a, (int64_t)below(5) - 2);
}

/* What is found is true at every size. */
TEST(order_is_sound) {
    int found[3] = {0};
    for (int i = 0; i < 4000; i++) {
        Type *a = random_size(1 + (int)below(3)), *b = random_size(1 + (int)below(3));
        DimCompare c = dim_compare(a, b);
        bool size = dim_is_size(a);
        found[c]++;
        for (int64_t x = 0; x < 8; x++)
            for (int64_t y = 0; y < 8; y++) {
                int64_t va = value_at(a, x, y), vb = value_at(b, x, y);
                if ((c == DIM_EQUAL && va != vb) || (c == DIM_DIFFERENT && va == vb))
                    FAIL("%s and %s are %s, and %d and %d at n = %d, m = %d", type_text(a),
                         type_text(b), c == DIM_EQUAL ? "equal" : "different", (int)va, (int)vb,
                         (int)x, (int)y);
                if (size && va < 0)
                    FAIL("%s is never negative, and %d at n = %d, m = %d", type_text(a), (int)va,
                         (int)x, (int)y);
            }
    }
    CHECK(found[DIM_EQUAL] > 20 && found[DIM_DIFFERENT] > 20 && found[DIM_UNDECIDED] > 20);
}

/* Normal forms: what a formula is built of is not lost. */
TEST(formulas_keep_their_value) {
    for (int64_t x = 0; x < 6; x++)
        for (int64_t y = 0; y < 6; y++)
            for (int64_t c = 1; c < 4; c++) {
                Type *k = type_dim_int(c, NULL), *sum = dim_add_int(dim_add(n, m), -2);
                int64_t v = x + y - 2, floor = v / c - (v % c != 0 && v < 0);
                CHECK_INT(value_at(dim_floordiv(sum, k), x, y), floor);
                CHECK_INT(value_at(dim_min(sum, k), x, y), v < c ? v : c);
                CHECK_INT(value_at(dim_max(dim_max(sum, k), n), x, y), v > c   ? (v > x ? v : x)
                                                                       : c > x ? c
                                                                               : x);
                CHECK_INT(value_at(dim_max(dim_add_int(dim_max(sum, k), -1), n), x, y),
                          (v > c ? v : c) - 1 > x ? (v > c ? v : c) - 1 : x);
            }
}

TEST(equal_formulas_are_found_equal) {
    Type *zero = type_dim_int(0, NULL), *one = type_dim_int(1, NULL), *four = type_dim_int(4, NULL);
    struct {
        Type *a, *b;
    } same[] = {
        {dim_max(dim_add_int(n, -1), zero), dim_sub(n, dim_min(n, one))},
        {dim_min(dim_max(dim_add_int(n, -1), zero), four),
         dim_max(dim_add_int(dim_min(n, type_dim_int(5, NULL)), -1), zero)},
        {dim_max(dim_add_int(dim_max(dim_add_int(n, -1), zero), -1), zero),
         dim_max(dim_add_int(n, -2), zero)},
        {dim_min(dim_min(n, four), type_dim_int(9, NULL)), dim_min(n, four)},
        {dim_add(dim_min(n, m), dim_max(n, m)), dim_add(n, m)},
        {dim_floordiv(dim_floordiv(n, four), four), dim_floordiv(n, type_dim_int(16, NULL))},
        {dim_min(dim_add(n, m), n), n},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (dim_compare(same[i].a, same[i].b) != DIM_EQUAL)
            FAIL("%s and %s are equal", type_text(same[i].a), type_text(same[i].b));
    CHECK(dim_compare(dim_max(n, one), zero) == DIM_DIFFERENT);
    CHECK(dim_compare(dim_floordiv(n, four), n) == DIM_UNDECIDED);
}

int main(void) {
    mem_init();
    n = type_param(sym_intern("n"), KIND_DIM);
    m = type_param(sym_intern("m"), KIND_DIM);
    RUN(slices_of_symbolic_axes);
    RUN(slices_up_to_a_declared_size);
    RUN(order_is_sound);
    RUN(formulas_keep_their_value);
    RUN(equal_formulas_are_found_equal);
    return check_result();
}
