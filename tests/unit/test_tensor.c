/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes, tensors and their buffers. */
#include "config.h"

#include "tensor/packed.h"
#include "tensor/tensor.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(halves_round_trip) {
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h), g = bf16_to_f32((uint16_t)h);
        if (!isnan(f))
            CHECK_INT(f32_to_f16(f), h);
        if (!isnan(g))
            CHECK_INT(f32_to_bf16(g), h);
        CHECK(isnan(f) == isnan(f16_to_f32(f64_to_f16((double)f))));
        if (!isnan(f))
            CHECK_INT(f64_to_f16((double)f), h);
    }
}

TEST(halves_round_to_even) {
    CHECK_INT(f32_to_f16(1.0f + 0x1p-11f), f32_to_f16(1.0f));
    CHECK_INT(f32_to_f16(1.0f + 0x1.8p-10f), f32_to_f16(1.0f + 0x1p-9f));
    CHECK_INT(f32_to_f16(65519.0f), 0x7BFF);
    CHECK_INT(f32_to_f16(65520.0f), 0x7C00);
    CHECK_INT(f32_to_f16(0x1p-25f), 0);
    CHECK_INT(f32_to_f16(0x1.000002p-25f), 1);
    CHECK_INT(f32_to_bf16(1.0f + 0x1p-8f), 0x3F80);
    CHECK_INT(f32_to_bf16(1.0f + 0x1.8p-7f), 0x3F82);
    CHECK_INT(f32_to_bf16(1.0f + 0x1.02p-8f), 0x3F81);
    CHECK_INT(f32_to_bf16(-INFINITY), 0xFF80);
}

/* By way of float32 this would round up to a tie and then to even. */
TEST(float64_rounds_once) {
    double d = 1.0 + 0x1p-11 + 0x1p-40;
    CHECK_INT(f64_to_f16(d), 0x3C01);
    CHECK_INT(f32_to_f16((float)d), 0x3C00);
    CHECK_INT(f64_to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3F81);
}

TEST(floats_saturate) {
    int8_t i8;
    uint64_t u64;
    int64_t i64;
    double nan = NAN, big = 1e30, negative = -1.9;
    elem_cast(&i8, DT_I8, &big, DT_F64);
    CHECK_INT(i8, 127);
    elem_cast(&i8, DT_I8, &negative, DT_F64);
    CHECK_INT(i8, -1);
    elem_cast(&u64, DT_U64, &negative, DT_F64);
    CHECK_INT(u64, 0);
    elem_cast(&u64, DT_U64, &big, DT_F64);
    CHECK(u64 == UINT64_MAX);
    elem_cast(&i64, DT_I64, &nan, DT_F64);
    CHECK_INT(i64, 0);
    CHECK(dtype_holds_int(DT_U64, -1, true) && !dtype_holds_int(DT_I64, -1, true));
    CHECK(!dtype_holds_int(DT_U8, -1, false) && !dtype_holds_int(DT_I8, 128, false));
}

TEST(views) {
    int32_t data[] = {0, 1, 2, 3, 4, 5};
    Tensor *t = tensor_from(DT_I32, 2, (int64_t[]){2, 3}, data);
    Tensor *v = tensor_view(t, 2, (int64_t[]){3, 2}, (int64_t[]){-1, 3}, 2);
    CHECK_INT(t->buffer->owners, 2);
    CHECK(!tensor_is_contiguous(v) && tensor_is_contiguous(t));
    CHECK_INT(*(int32_t *)tensor_at(v, 0), 2);
    CHECK_INT(*(int32_t *)tensor_at(v, 3), 4);
    const int32_t *c = tensor_data(tensor_contiguous(v));
    int32_t expected[] = {2, 5, 1, 4, 0, 3};
    CHECK(memcmp(c, expected, sizeof expected) == 0);
    CHECK(tensor_contiguous(t) == t);
}

TEST(counts) {
    CHECK_INT(shape_count(0, NULL, DT_F32), 1);
    CHECK_INT(shape_count(2, (int64_t[]){(int64_t)1 << 40, (int64_t)1 << 40}, DT_I8), -1);
    CHECK_INT(shape_count(3, (int64_t[]){(int64_t)1 << 40, 0, (int64_t)1 << 40}, DT_I8), 0);
    CHECK_INT(shape_count(1, (int64_t[]){(int64_t)1 << 46}, DT_F32), -1);
}

TEST(buffers_are_aligned_and_reused) {
    for (int64_t n = 0; n < 200000; n = n * 3 / 2 + 1)
        CHECK_INT((uintptr_t)tensor_data(tensor_new(DT_U8, 1, &n)) % 64, 0);
    int64_t n = 100000;
    Tensor *t = tensor_new(DT_F32, 1, &n);
    void *data = tensor_data(t);
    size_t live = tensor_bytes_live();
    tensor_release(t);
    CHECK(tensor_bytes_live() < live);
    CHECK(tensor_data(tensor_new(DT_F32, 1, &n)) == data);
}

/* The header of a small tensor and its buffer are one block, and its elements a block of few lines more than they need. */
TEST(small_tensors_take_little) {
    enum { MANY = 100000, EACH = 280 /* bytes, of which 112 are elements */ };
    Tensor **all = mem_new_n(Tensor *, MANY);
    int64_t n = 14;
    size_t before = mem_heap_bytes();
    for (int i = 0; i < MANY; i++)
        all[i] = tensor_new(DT_F64, 1, &n);
    size_t took = mem_heap_bytes() - before;
    CHECK(took < (size_t)MANY * EACH);
    CHECK_INT(all[0]->count, all[MANY - 1]->count);
}

#ifndef RLY_GC_STRESS /* which collects in between */
/* Note [Spare tensors] in tensor/tensor.c. */
TEST(small_tensors_serve_again) {
    int64_t n = 14, more = 40, stride = 1;
    Tensor *t = tensor_new(DT_F64, 1, &n);
    void *data = tensor_data(t);
    tensor_release(t);
    Tensor *other = tensor_new(DT_F64, 1, &more);
    CHECK(other != t);
    Tensor *again = tensor_new(DT_F32, 1, &n);
    CHECK(again != t); /* a line less */
    again = tensor_new(DT_I64, 1, &n);
    CHECK(again == t && tensor_data(again) == data);
    CHECK_INT(again->dtype, DT_I64);
    Tensor *view = tensor_view(again, 1, &n, &stride, 0);
    tensor_release(again); /* the view still reads it */
    CHECK(tensor_new(DT_F64, 1, &n) != again);
    tensor_drop(view);
    CHECK(tensor_view(other, 1, &n, &stride, 3) == view);
    CHECK_INT(view->offset, 3);
}

/* How many of so many tensors that were given back a collection leaves for the next ones. */
static int count_left(int collections) {
    enum { MANY = 100 };
    static Tensor *all[MANY];
    int64_t n = 100;
    int left = 0;
    for (int i = 0; i < MANY; i++)
        all[i] = tensor_new(DT_F64, 1, &n);
    for (int i = 0; i < MANY; i++)
        tensor_release(all[i]);
    for (int i = 0; i < collections; i++)
        mem_collect();
    for (int i = MANY; i-- > 0;)
        left += tensor_new(DT_F64, 1, &n) == all[i];
    memset(all, 0, sizeof all);
    return left;
}

TEST(spare_tensors_are_let_go) {
    CHECK_INT(count_left(0), 100);
    CHECK_INT(count_left(1), 100);
    CHECK_INT(count_left(2), 0);
}
#endif

static size_t resident(void) {
    size_t pages = 0, ignored;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%zu %zu", &ignored, &pages) != 2)
            pages = 0;
        fclose(f);
    }
    return pages * 4096;
}

TEST(dropped_tensors_are_freed) {
    long drops = check_share(8000);
    int64_t n = 1 << 18; /* 1 MB of float32 */
    size_t most = 0;
    for (long i = 0; i < drops; i++) {
        Tensor *t = tensor_new(DT_F32, 1, &n);
        memset(tensor_data(t), 1, i % 16 ? 4096 : 1 << 20);
        if (tensor_bytes_live() > most)
            most = tensor_bytes_live();
    }
    CHECK(most < (size_t)200 << 20);
    CHECK(resident() < (size_t)512 << 20);
}

/* Allocates n tensors of so many MB, whose pages are never touched, and releases them all. */
static void round_of_size(int n, int64_t megabytes) {
    enum { MOST = 64 };
    Tensor *t[MOST];
    int64_t floats = megabytes << 18;
    for (int i = 0; i < n; i++)
        t[i] = tensor_new(DT_F32, 1, &floats);
    for (int i = 0; i < n; i++)
        tensor_release(t[i]);
}

static void round_of(int n) { round_of_size(n, 16); }

/* tensor/buffer.c, Note [Kept up to the high-water mark]. */
TEST(rounds_map_their_memory_once) {
    for (int i = 0; i < 4; i++) /* the first ones meet what other tests left in the lists */
        round_of(40);
    size_t mappings = tensor_mappings();
    for (int i = 0; i < 20; i++)
        round_of(40);
    CHECK_INT(tensor_mappings(), mappings);
    CHECK(tensor_bytes_idle() >= (size_t)640 << 20);
}

/* tensor/buffer.c, Note [Large pages]. */
TEST(blocks_of_half_a_megabyte_lie_side_by_side) {
    enum { N = 8, PAGE = 4096 };
    int64_t shape[] = {544 << 10};
    Tensor *t[N];
    int beside = 0;
    for (int i = 0; i < N; i++) {
        t[i] = tensor_new(DT_U8, 1, shape);
        memset(tensor_data(t[i]), i, (size_t)shape[0]);
        ptrdiff_t apart = i ? (char *)tensor_data(t[i]) - (char *)tensor_data(t[i - 1]) : 0;
        beside += apart >= 640 << 10 && apart < (640 << 10) + 2 * PAGE;
    }
    CHECK(beside >= N - 2); /* one region may end among them */
    for (int i = 0; i < N; i++)
        CHECK_INT(((char *)tensor_data(t[i]))[shape[0] - 1], i);
    for (int i = 0; i < N; i++)
        tensor_release(t[i]);
}

/* tensor/buffer.c, Note [Spread over the lines of a page]: of blocks of a kernel few begin at one line of their pages. */
TEST(blocks_begin_at_different_lines) {
    enum { N = 24, LINES = 64, MOST = 4 };
    static const int64_t sizes[] = {4096, 8000, 65536, 254744, 9 << 20};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        Tensor *t[N];
        int at[LINES] = {0};
        for (int i = 0; i < N; i++) {
            t[i] = tensor_new(DT_U8, 1, &sizes[k]);
            uintptr_t begin = (uintptr_t)tensor_data(t[i]);
            CHECK(begin % LINES == 0 && ++at[begin / 64 % LINES] <= MOST);
        }
        for (int i = 0; i < N; i++)
            tensor_release(t[i]);
    }
}

/* Addresses of elements keep the collector from no block: Note [Far from the heap] in tensor/buffer.c. */
TEST(large_blocks_beside_many_tensors) {
    enum { TENSORS = 1200, BLOCKS = 8, BLOCK = 1 << 20, FAR = 32 << 20, MOST = 128 << 20 };
    const int64_t n = 100000; /* 800 kB that nobody writes */
    Tensor **held = mem_new_n(Tensor *, TENSORS);
    char *blocks[BLOCKS], *end;
    mem_set_heap_limit(MOST);
    for (int i = 0; i < TENSORS; i++)
        held[i] = tensor_new(DT_F64, 1, &n);
    end = mem_bytes(FAR); /* the heap has one end on either side of them, if they are beside it */
    mem_collect();
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = mem_alloc(BLOCK); /* without room the program ends here */
    for (int i = 0; i < BLOCKS; i++)
        CHECK_INT(blocks[i][BLOCK - 1], 0);
    end[0] = 0;
    mem_set_heap_limit(0);
    for (int i = 0; i < TENSORS; i++)
        tensor_release(held[i]);
}

/* What is live of each size at once is less than what a round needs in all. */
TEST(rounds_of_two_sizes_map_their_memory_once) {
    size_t mappings = 0;
    for (int i = 0; i < 24; i++) {
        if (i == 4)
            mappings = tensor_mappings();
        round_of_size(20, 16);
        round_of_size(10, 32);
    }
    CHECK_INT(tensor_mappings(), mappings);
}

/* Small ones stay as they are; larger ones have their elements, wherever these now lie. */
TEST(tensors_are_lengthened) {
    int64_t few[] = {10}, shape[] = {10000, 2}, longer[] = {20001};
    Tensor *small = tensor_new(DT_F64, 1, few);
    CHECK(tensor_lengthen(small, 1, longer) == NULL && tensor_data(small) != NULL);
    Tensor *t = tensor_new(DT_F64, 2, shape);
    double *x = tensor_data(t);
    for (int i = 0; i < 20000; i++)
        x[i] = i;
    Tensor *view = tensor_view(t, 1, few, (int64_t[]){1}, 0);
    CHECK(tensor_lengthen(t, 1, longer) == NULL);
    tensor_drop(view);
    for (int64_t n = 20001; n < 4000000; n += n / 3) {
        Tensor *u = tensor_lengthen(t, 1, &n);
        CHECK(u && u->count == n && u->buffer->owners == 1 && tensor_is_contiguous(u));
        t = u;
        x = tensor_data(t);
        CHECK(x[0] == 0.0 && x[19999] == 19999.0 && (uintptr_t)x % 64 == 0);
        x[n - 1] = 1.0;
    }
    size_t live = tensor_bytes_live();
    CHECK(live >= t->buffer->bytes);
    tensor_release(t);
    CHECK(tensor_bytes_live() < live);
}

/* A tensor of 160 kB, which gets half as much again. */
TEST(rounds_that_lengthen_map_their_memory_once) {
    size_t mappings = 0;
    for (int i = 0; i < 24; i++) {
        if (i == 4)
            mappings = tensor_mappings();
        int64_t n = 20000, longer = 30000;
        Tensor *t = tensor_new(DT_F64, 1, &n);
        double *x = tensor_data(t);
        for (int k = 0; k < n; k++)
            x[k] = k + i;
        t = tensor_lengthen(t, 1, &longer);
        CHECK(t && t->count == longer);
        x = tensor_data(t);
        for (int k = 0; k < n; k++)
            CHECK(x[k] == k + i);
        x[longer - 1] = 0;
        tensor_release(t);
    }
    CHECK_INT(tensor_mappings(), mappings);
}

TEST(a_peak_is_forgotten) {
    round_of(40);
    for (int i = 0; i < 600; i++)
        round_of(2);
    CHECK(tensor_bytes_idle() <= (size_t)160 << 20);
}

TEST(nans_have_one_sign_outside) {
    static const uint32_t bits[] = {0xffc00000, 0x7fa00001, 0x7f800000, 0xff800000, 0x80000000};
    static const uint32_t plain[] = {0x7fc00000, 0x7fc00000, 0x7f800000, 0xff800000, 0x80000000};
    int64_t n = 5;
    Tensor *t = tensor_from(DT_F32, 1, &n, bits), *out = tensor_canonical(t);
    CHECK(memcmp(tensor_data(out), plain, sizeof plain) == 0);
    CHECK(memcmp(tensor_data(t), bits, sizeof bits) == 0);
    CHECK(tensor_canonical(out) == out);
    for (int dtype = DT_F16; dtype <= DT_F64; dtype++) {
        Tensor *one = tensor_scalar_float((DType)dtype, -(double)NAN);
        Tensor *other = tensor_scalar_float((DType)dtype, (double)NAN);
        CHECK(memcmp(tensor_data(tensor_canonical(one)), tensor_data(tensor_canonical(other)),
                     dtype_size((DType)dtype)) == 0);
    }
}

/* Copies in another order: made at the second use, gone with the elements that they are of. */
TEST(packed_copies) {
    int64_t n = 50000;
    Tensor *t = tensor_new(DT_F32, 1, &n);
    PackedKey key = {.width = 16}, other = {.width = 32};
    CHECK(!packed_is_due(t->buffer, &key));
    CHECK(packed_find(t->buffer, &key) == NULL);
    CHECK(packed_is_due(t->buffer, &key));
    void *copy = packed_new(t->buffer, &key, 200000);
    CHECK(copy != NULL && packed_find(t->buffer, &key) == copy);
    CHECK(packed_find(t->buffer, &other) == NULL);
    CHECK_INT(packed_bytes(), 200000);
    packed_forget(t->buffer); /* as when it is written to */
    CHECK(packed_find(t->buffer, &key) == NULL && packed_bytes() == 0);
    CHECK(!packed_is_due(t->buffer, &key) && packed_is_due(t->buffer, &key));
    CHECK(packed_new(t->buffer, &key, 200000) != NULL);
    CHECK(packed_new(t->buffer, &other, (size_t)1 << 45) ==
          NULL); /* it was never due, and is too large */
    tensor_release(t);
    CHECK_INT(packed_bytes(), 0);
}

static void pack_and_drop(void) {
    int64_t n = 50000;
    PackedKey key = {.width = 16};
    for (int i = 0; i < 20; i++) {
        Tensor *t = tensor_new(DT_F32, 1, &n);
        packed_is_due(t->buffer, &key);
        CHECK(packed_new(t->buffer, &key, 200000) != NULL);
    }
}

TEST(packed_copies_make_room) {
    pack_and_drop();
    CHECK_INT(packed_bytes(), 20 * 200000);
    tensor_set_limit(mem_heap_bytes() + tensor_bytes_live() + tensor_bytes_idle() + (4 << 20));
    int64_t n = 6 << 20; /* more than is free without them */
    Tensor *t = tensor_new(DT_U8, 1, &n);
    CHECK(packed_bytes() == 0);
    tensor_release(t);
    tensor_set_limit(0);
}

int main(void) {
    RUN(halves_round_trip);
    RUN(halves_round_to_even);
    RUN(float64_rounds_once);
    RUN(floats_saturate);
    RUN(nans_have_one_sign_outside);
    RUN(views);
    RUN(counts);
    RUN(buffers_are_aligned_and_reused);
    RUN(small_tensors_take_little);
#ifndef RLY_GC_STRESS
    RUN(small_tensors_serve_again);
    RUN(spare_tensors_are_let_go);
#endif
    RUN(dropped_tensors_are_freed);
    RUN(rounds_map_their_memory_once);
    RUN(blocks_of_half_a_megabyte_lie_side_by_side);
    RUN(blocks_begin_at_different_lines);
    RUN(large_blocks_beside_many_tensors);
    RUN(rounds_of_two_sizes_map_their_memory_once);
    RUN(tensors_are_lengthened);
    RUN(rounds_that_lengthen_map_their_memory_once);
    RUN(a_peak_is_forgotten);
    RUN(packed_copies);
    RUN(packed_copies_make_room);
    return check_result();
}
