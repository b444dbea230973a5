/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/map.h"
#include "base/siphash.h"
#include "base/span.h"
#include "base/str.h"
#include "base/symbol.h"
#include "base/vec.h"
#include "base/weak.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static const char *float_text(double v, int bits) {
    Str s = {0};
    str_add_float(&s, v, bits);
    return str_text(&s);
}

TEST(floats) {
    static const struct {
        double value;
        const char *text;
    } doubles[] = {
        {0.1, "0.1"},
        {1, "1.0"},
        {1e16, "1e+16"},
        {1e-5, "1e-05"},
        {0.0001, "0.0001"},
        {1e15, "1000000000000000.0"},
        {123456.5, "123456.5"},
        {-0.0, "-0.0"},
        {5e-324, "5e-324"},
        {1.5e300, "1.5e+300"},
        {1e22, "1e+22"},
        {0x1p-44, "5.684341886080802e-14"},
        {0.30000000000000004, "0.30000000000000004"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
        {NAN, "nan"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
    };
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        CHECK_TEXT(float_text(doubles[i].value, 64), doubles[i].text);
    CHECK_TEXT(float_text(0.1f, 32), "0.1");
    CHECK_TEXT(float_text(3.14159f, 32), "3.14159");
    CHECK_TEXT(float_text(3.4028234663852886e38, 32), "3.4028235e+38");
    CHECK_TEXT(float_text(1e-45f, 32), "1e-45");
    CHECK_TEXT(float_text(0.0999755859375, 16), "0.1");
    CHECK_TEXT(float_text(65504, 16), "65500.0");
    CHECK_TEXT(float_text(0x1p-24, 16), "6e-08");
    CHECK_TEXT(float_text(0.10009765625, 17), "0.1");
}

TEST(float_texts_read_back) {
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double d;
        float f;
        uint32_t low = (uint32_t)bits;
        memcpy(&d, &bits, 8);
        memcpy(&f, &low, 4);
        if (!isnan(d))
            CHECK(strtod(float_text(d, 64), NULL) == d);
        if (!isnan(f))
            CHECK(strtof(float_text((double)f, 32), NULL) == f);
    }
}

TEST(text) {
    Str s = {0};
    str_add_quoted(&s, "a\"\n\x01\xff\xc3\xa9", 7);
    CHECK_TEXT(str_text(&s), "\"a\\\"\\n\\x01\\xff\xc3\xa9\"");
    CHECK_INT(text_width("\xe6\x97\xa5"
                         "e\xcc\x81",
                         6),
              3); /* a wide one; a combined one */
    CHECK(text_is_utf8("\xc3\xa9", 2, NULL));
    size_t at = 9;
    CHECK(!text_is_utf8("ab\xed\xa0\x80", 5, &at) && at == 2); /* a surrogate */
    CHECK(!text_is_utf8("\xc0\x80", 2, NULL));                 /* over-long */
    Str t = {0};
    str_add(&t, "x\nab");
    str_pad(&t, 5);
    CHECK_TEXT(str_text(&t), "x\nab   ");
    CHECK_TEXT(fmt_text("%0200d|", 7) + 199, "7|");
}

TEST(vectors) {
    VEC(int *) v = {0};
    int x = 3;
    for (int i = 0; i < 1000; i++)
        vec_push(&v, &x);
    CHECK_INT(v.len, 1000);
    CHECK(v.data[999] == &x && vec_pop(&v) == &x && v.len == 999);
}

TEST(maps) {
    enum { N = 50000 };
    static char keys[N];
    Map m = {0};
    for (long i = 0; i < N; i++)
        map_set(&m, &keys[i], &keys[i]);
    for (long i = 0; i < N; i += 2)
        CHECK(map_remove(&m, &keys[i]));
    CHECK(!map_remove(&m, &keys[0]));
    for (long i = 0; i < N; i += 4)
        map_set(&m, &keys[i], NULL);
    CHECK_INT(m.len, N / 2 + N / 4);
    CHECK(map_has(&m, &keys[4]) && !map_find(&m, &keys[4]) && map_find(&m, &keys[5]) == &keys[5]);
    CHECK(!map_has(&m, &keys[2]));
    size_t n = 0, at = 0;
    const void *key, *first = NULL;
    void *value;
    while (map_next(&m, &at, &key, &value)) {
        if (!n++)
            first = key;
    }
    CHECK(n == m.len && first == &keys[1]);
    map_clear(&m);
    CHECK(m.len == 0 && !map_has(&m, &keys[1]));
}

TEST(maps_as_scopes) { /* names bound and dropped in any order, against a table of flags */
    enum { N = 300 };
    static char keys[N];
    bool there[N] = {false};
    Map m = {0};
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        size_t k = bits % N;
        if (bits >> 40 & 1)
            map_set(&m, &keys[k], &keys[k]);
        else
            CHECK(map_remove(&m, &keys[k]) == there[k]);
        there[k] = bits >> 40 & 1;
        CHECK(map_has(&m, &keys[(k + 1) % N]) == there[(k + 1) % N]);
    }
    size_t n = 0;
    for (size_t k = 0; k < N; k++)
        n += there[k];
    CHECK_INT(m.len, n);
    map_clear(&m);
    for (int i = 0; i < 100000; i++) {
        map_set(&m, &keys[0], keys);
        map_remove(&m, &keys[0]);
    }
    CHECK_INT(m.cap, 4); /* nothing of it stays */
}

TEST(maps_of_one_walk) { /* they begin on the stack, and are as others are beyond it */
    enum { N = 5 * MAP_ROOM };
    static char keys[N];
    for (size_t n = 0; n <= N; n += MAP_ROOM / 2) {
        Map m;
        MapRoom room;
        map_begin(&m, &room);
        for (size_t i = 0; i < n; i++)
            CHECK(map_enter(&m, &keys[i]) && !map_enter(&m, &keys[i]));
        CHECK((m.entries == room.entries) == (n <= MAP_ROOM));
        for (size_t i = 0; i < n; i += 2)
            CHECK(map_remove(&m, &keys[i]));
        for (size_t i = 0; i < n; i++)
            CHECK(map_find(&m, &keys[i]) == (i % 2 ? &keys[i] : NULL));
        for (size_t i = 0; i < N; i++)
            *map_at(&m, &keys[i]) = &keys[0];
        CHECK(m.len == N && map_find(&m, &keys[N - 1]) == &keys[0]);
        map_end(&m);
        CHECK(m.len == 0 && !map_has(&m, &keys[0]));
    }
}

/* The first sixteen of the reference implementation's vectors: key 00 01 … 0f, text 00 01 …; the
 * last is the example of the paper's appendix. */
TEST(siphash_of_the_reference) {
    static const uint64_t tags[16] = {
        0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au, 0x85676696d7fb7e2du,
        0xcf2794e0277187b7u, 0x18765564cd99a68du, 0xcbc9466e58fee3ceu, 0xab0200f58b01d137u,
        0x93f5f5799a932462u, 0x9e0082df0ba9e4b0u, 0x7a5dbbc594ddb9f3u, 0xf4b32f46226bada7u,
        0x751e8fbc860ee5fbu, 0x14ea5627c0843d90u, 0xf723ca908e7af2eeu, 0xa129ca6149be45e5u,
    };
    unsigned char bytes[16];
    for (size_t i = 0; i < 16; i++)
        bytes[i] = (unsigned char)i;
    for (size_t n = 0; n < 16; n++)
        CHECK(siphash(bytes, bytes, n) == tags[n]);
}

TEST(symbols) {
    CHECK(sym_intern("abc") == sym_intern_n("abcd", 3));
    CHECK(sym_intern("abc") != sym_intern("abd"));
    const Symbol *c[] = {sym_intern("image"), sym_intern("images"), sym_intern("Relu"),
                         sym_intern("x")};
    CHECK(sym_find_nearest(sym_intern("imges"), c, 4, NULL) == c[1]);
    CHECK(sym_find_nearest(sym_intern("relu"), c, 4, NULL) == c[2]);
    CHECK(sym_find_nearest(sym_intern("iamge"), c, 4, NULL) == c[0]);
    CHECK(!sym_find_nearest(sym_intern("zebra"), c, 4, NULL));
    CHECK(!sym_find_nearest(sym_intern("y"), c, 4, NULL));
    for (int i = 0; i < 5000; i++)
        CHECK(sym_intern(fmt_text("n%d", i)) == sym_intern(fmt_text("n%d", i)));
}

TEST(places) {
    const char *text = "ab\n\xc3\xa9 x\n";
    Source *s = source_new("f", text, strlen(text), 0);
    uint32_t line, column;
    CHECK_INT(s->nlines, 3);
    span_locate((Span){s, 6, 7}, &line, &column);
    CHECK(line == 2 && column == 3);
    span_locate((Span){s, 8, 8}, &line, &column);
    CHECK(line == 3 && column == 1);
    span_locate((Span){s, 99, 99}, &line, &column);
    CHECK(line == 3 && column == 1);
    Span j = span_join((Span){s, 1, 2}, (Span){s, 5, 6});
    CHECK(j.begin == 1 && j.end == 6);
}

static void *in_static_data;

static int use_all_stack(int depth) {
    volatile char frame[200];
    frame[0] = 1;
    return mem_stack_left() < 16384 ? depth : use_all_stack(depth + 1) + frame[0] - 1;
}

static void churn(void) {
    for (int i = 0; i < 100000; i++)
        mem_bytes(64);
    mem_collect();
}

static void inner(void *arg) {
    char **out = arg;
    char *mine = fmt_text("inner%d", 1);
    CHECK(mem_stack_left() <= 1 << 20 && mem_stack_left() > 1000000);
    CHECK(use_all_stack(0) > 1000);
    churn();
    *out = mine;
}

static void outer(void *arg) {
    char *mine = fmt_text("outer%d", 1);
    mem_call_on_stack(1 << 20, inner, arg);
    churn();
    CHECK_TEXT(mine, "outer1");
}

TEST(stacks) {
    char *mine = fmt_text("main%d", 1), *theirs = NULL, *pinned = fmt_text("pin%d", 1);
    uintptr_t hidden = ~(uintptr_t)pinned;
    mem_pin(pinned);
    mem_pin(pinned);
    mem_unpin(pinned);
    pinned = NULL;
    in_static_data = fmt_text("static%d", 1);
    mem_call_on_stack(64 << 20, outer, &theirs);
    churn();
    CHECK_TEXT(mine, "main1");
    CHECK_TEXT(theirs, "inner1");
    CHECK_TEXT(in_static_data, "static1");
    CHECK_TEXT((char *)~hidden, "pin1");
}

static void note_room(void *arg) { *(size_t *)arg = mem_stack_left(); }

TEST(stacks_take_what_there_is) {
    size_t room = 0;
    mem_call_on_stack((size_t)1 << 50, note_room, &room); /* more than can be addressed */
    CHECK(room > 1 << 20 && room < (size_t)1 << 50);
}

static int finalized;
static void on_dead(void *p, void *arg) { finalized += p != NULL && arg == &finalized; }

static __attribute__((noinline)) void make_garbage(void) {
    for (int i = 0; i < 100; i++)
        mem_on_unreachable(mem_alloc(40), on_dead, &finalized);
}

typedef struct Thing {
    struct Thing *of;
    int number;
} Thing;

static __attribute__((noinline)) void fill_side_tables(WeakMap *of_values, WeakMap *of_keys,
                                                       Thing **kept) {
    enum { N = 2000 };
    for (int i = 0; i < N; i++) {
        Thing *key = mem_new(Thing), *value = mem_new(Thing), *owned = mem_new(Thing);
        value->of = key;
        value->number = owned->number = i;
        weak_set(of_values, key, value);
        weak_set_owned(of_keys, key, owned);
        if (i % 10 == 0) { /* a value keeps its entry, a key that of what it owns */
            CHECK(weak_find(of_values, key) == value && weak_find(of_keys, key) == owned);
            kept[i / 10] = i % 20 ? value : key;
        }
    }
}

TEST(side_tables) {
    enum { KEPT = 200 };
    WeakMap of_values = {0}, of_keys = {0};
    Thing *kept[KEPT], other = {0};
    CHECK(!weak_find(&of_values, &other));
    fill_side_tables(&of_values, &of_keys, kept);
    for (int i = 0; i < 20; i++)
        mem_collect();
    int wrong = 0;
    for (int i = 0; i < KEPT; i++) {
        Thing *key = kept[i]->of ? kept[i]->of : kept[i];
        Thing *owned = weak_find(&of_keys, key), *value = weak_find(&of_values, key);
        wrong += !owned || owned->number != i * 10;
        wrong += kept[i]->of && value != kept[i];
    }
    CHECK_INT(wrong, 0);
    for (int i = 0; i < 4000; i++) { /* the dead are dropped as others come */
        Thing *t = mem_new(Thing);
        weak_set(&of_values, t, t);
        if (i % 100 == 0)
            mem_collect();
    }
    CHECK(weak_size(&of_values) < 1500);
}

static void count_collection(void *ctx) { ++*(int *)ctx; }

/* Code that is made is kept by thousands of links: their number is no reason to collect. */
TEST(links_collect_nothing) {
    enum { LINKS = 10000 };
    int collections = 0;
    Thing *t = mem_new(Thing);
    mem_collect();
    mem_add_roots_callback(count_collection, &collections);
    for (int i = 0; i < LINKS; i++)
        mem_watch(t);
    mem_remove_roots_callback(count_collection, &collections);
#ifdef RLY_GC_STRESS
    CHECK(collections <= LINKS / RLY_GC_STRESS);
#else
    CHECK_INT(collections, 0);
#endif
}

/* Fills a table whose values do not refer to their keys, and forgets the keys. */
static __attribute__((noinline)) void forget_keys(WeakMap *m, Thing **values, int n) {
    for (int i = 0; i < n; i++) {
        values[i] = mem_new(Thing);
        weak_set(m, mem_new(Thing), values[i]);
    }
}

TEST(side_tables_do_not_take_new_keys_for_dead_ones) {
    enum { N = 2000 };
    static Thing *values[N];
    WeakMap m = {0};
    forget_keys(&m, values, N);
    for (int i = 0; i < 5; i++)
        mem_collect();
    int found = 0;
    for (int i = 0; i < 20 * N; i++) /* many at addresses of keys that were collected */
        found += weak_find(&m, mem_new(Thing)) != NULL;
    CHECK_INT(found, 0);
}

TEST(finalizers) {
    make_garbage();
    churn();
    CHECK_INT(finalized, 0); /* only on demand */
    mem_run_finalizers();
    CHECK(finalized >= 90);
}

static char *root_cell[1];
static uintptr_t *disguised; /* memory the collector does not see */
static void push_roots(void *ctx) {
    (void)ctx;
    root_cell[0] = (char *)~disguised[0];
    mem_push_range(root_cell, root_cell + 1);
}

TEST(root_callbacks) {
    disguised = mem_bytes(sizeof *disguised);
    mem_add_roots_callback(push_roots, NULL);
    disguised[0] = ~(uintptr_t)fmt_text("root%d", 1);
    churn();
    CHECK_TEXT((char *)~disguised[0], "root1");
    mem_remove_roots_callback(push_roots, NULL);
}

TEST(limits) { CHECK(mem_default_limit() > 1 << 20 && mem_heap_bytes() > 0); }

/* Each cell is referred to by the last word of the one before alone. */
TEST(whole_cells) {
    enum { WORDS = 4, MANY = 20000 };
    void **first = NULL, **last = NULL, **list = NULL;
    for (uintptr_t i = 0; i < MANY; i++) {
        if (!list)
            list = mem_cells(WORDS * sizeof *list);
        void **cell = list;
        list = *cell;
#ifndef RLY_GC_STRESS
        if (list)
            CHECK_INT((int)(((char *)list - (char *)cell) % 32), 0);
#endif
        cell[0] = NULL;
        cell[1] = (void *)(i << 1 | 1);
        if (last)
            last[WORDS - 1] = cell;
        else
            first = cell;
        last = cell;
        if (i % 5000 == 0)
            mem_collect();
    }
    size_t n = 0;
    for (void **cell = first; cell; cell = cell[WORDS - 1], n++)
        CHECK(cell[1] == (void *)(n << 1 | 1));
    CHECK_INT((int)n, MANY);
}

/* Each block is referred to by the one before alone, and nothing else is in the blocks of lists. */
TEST(blocks_of_all_sizes_are_apart_and_zero) {
    enum { SIZES = 1200, MANY = 8 * SIZES };
    char *first = NULL, **last = &first;
    for (size_t i = 0; i < MANY; i++) {
        size_t bytes = sizeof(char *) + i % SIZES;
        char *block = mem_alloc(bytes);
        for (size_t k = 0; k < bytes; k++)
            CHECK(block[k] == 0);
        memset(block + sizeof(char *), (int)(i % 251 + 1), bytes - sizeof(char *));
        *last = block;
        last = (char **)block;
        if (i % 2000 == 0)
            mem_collect();
    }
    size_t i = 0;
    for (char *block = first; block; block = *(char **)block, i++)
        for (size_t k = sizeof(char *); k < sizeof(char *) + i % SIZES; k++)
            CHECK((unsigned char)block[k] == i % 251 + 1);
    CHECK_INT((int)i, MANY);
}

int main(void) {
    RUN(floats);
    RUN(float_texts_read_back);
    RUN(text);
    RUN(vectors);
    RUN(maps);
    RUN(maps_as_scopes);
    RUN(maps_of_one_walk);
    RUN(siphash_of_the_reference);
    RUN(symbols);
    RUN(places);
    RUN(stacks);
    RUN(stacks_take_what_there_is);
    RUN(finalizers);
    RUN(side_tables);
    RUN(links_collect_nothing);
    RUN(side_tables_do_not_take_new_keys_for_dead_ones);
    RUN(root_callbacks);
    RUN(limits);
    RUN(whole_cells);
    RUN(blocks_of_all_sizes_are_apart_and_zero);
    return check_result();
}
