/* SPDX-License-Identifier: Apache-2.0 */
/* Values as printed (LANGUAGE §6) and structural equality. */
#include "check.h"

#include "eval/value.h"

#include <math.h>

static const char *show_with(Value v, ValuePrintOptions o) {
    Str s = {0};
    value_print(&s, v, &o);
    return str_text(&s);
}

static const char *show(Value v) { return show_with(v, (ValuePrintOptions){0}); }

static Value floats(int rank, const int64_t *shape, const float *data) {
    return value_tensor(tensor_from(DT_F32, rank, shape, data));
}

static Value iota(int rank, int64_t a, int64_t b, int64_t c) {
    int64_t shape[3] = {a, b, c};
    Tensor *t = tensor_new(DT_I32, rank, shape);
    for (int64_t i = 0; i < t->count; i++)
        elem_set_int(tensor_at(t, i), DT_I32, i);
    return value_tensor(t);
}

static Ctor *ctor(TypeDecl *d, const char *name, uint32_t n) {
    Ctor *c = mem_new(Ctor);
    c->name = sym_intern(name);
    c->nfields = n;
    c->decl = d;
    return c;
}

static Ctor *cons, *nil;

static void make_list_type(void) {
    TypeDecl *d = mem_new(TypeDecl);
    d->name = sym_intern("List");
    d->nctors = 2;
    cons = ctor(d, "Cons", 2);
    nil = ctor(d, "Nil", 0);
}

static Value list_of(int n) {
    Value l = value_data(nil, NULL);
    while (n-- > 0) {
        Value fields[2] = {value_int(DT_I32, n), l};
        l = value_data(cons, fields);
    }
    return l;
}

TEST(scalars) {
    CHECK_TEXT(show(value_int(DT_I32, -3)), "-3");
    CHECK_TEXT(show(value_int(DT_U64, -1)), "18446744073709551615");
    CHECK_TEXT(show(value_bool(true)), "True");
    CHECK_TEXT(show(value_float(DT_F32, (double)0.1f)), "0.1");
    CHECK_TEXT(show(value_float(DT_F64, 2.0)), "2.0");
    CHECK_TEXT(show(value_float(DT_F64, -0.0)), "-0.0");
    CHECK_TEXT(show(value_float(DT_F32, 1e16)), "1e+16");
    CHECK_TEXT(show(value_float(DT_F64, (double)NAN)), "nan");
    CHECK_TEXT(show(value_string("a\"b\n", 4)), "\"a\\\"b\\n\"");
}

TEST(containers) {
    Value items[2] = {value_int(DT_I32, 1), value_float(DT_F32, 2.5)};
    CHECK_TEXT(show(value_tuple(items, 2)), "(1, 2.5)");
    CHECK_TEXT(show(value_tuple(items, 1)), "(1,)");
    CHECK_TEXT(show(value_unit()), "()");
    CHECK_TEXT(show(list_of(3)), "list[0, 1, 2]");
    CHECK_TEXT(show(list_of(0)), "list[]");
    Ref *r = mem_new(Ref);
    r->value = (Value){.tag = VAL_REF, .p = r};
    CHECK_TEXT(show(r->value), "ref(ref(<cycle>))");
    TypeDecl *d = mem_new(TypeDecl);
    d->name = sym_intern("Layer");
    Ctor *layer = ctor(d, "Layer", 2);
    const Symbol *names[2] = {sym_intern("w"), sym_intern("b")};
    layer->field_names = names;
    int64_t one[2] = {1, 1};
    float x[1] = {1};
    Value fields[2] = {floats(2, one, x), floats(1, one, x)};
    CHECK_TEXT(show(value_data(layer, fields)), "Layer { w: [[1.0]], b: [1.0] }");
}

TEST(tensors) {
    int64_t shape[3] = {2, 2, 2};
    float a[8] = {7, 10, 15, 22, -1, 0.5f, 100, 3};
    CHECK_TEXT(show(floats(1, shape, a)), "[7.0, 10.0]");
    CHECK_TEXT(show(floats(2, shape, a)), "[[ 7.0, 10.0],\n [15.0, 22.0]]");
    CHECK_TEXT(show(floats(3, shape, a)), "[[[  7.0,  10.0],\n  [ 15.0,  22.0]],\n\n"
                                          " [[ -1.0,   0.5],\n  [100.0,   3.0]]]");
    CHECK_TEXT(show(iota(3, 2, 1, 2)), "[[[0, 1]],\n [[2, 3]]]");
    CHECK_TEXT(show(iota(1, 0, 0, 0)), "[]");
    CHECK_TEXT(show(iota(2, 2, 0, 0)), "[[],\n []]");
    CHECK_TEXT(show_with(iota(2, 2, 2, 0), (ValuePrintOptions){.nested = true}),
               "[[0, 1], [2, 3]]");
    CHECK_TEXT(show(iota(1, 2000, 0, 0)), "[0, 1, 2, ..., 1997, 1998, 1999]");
    CHECK_TEXT(show(iota(2, 40, 50, 0)), "[[   0,    1,    2, ...,   47,   48,   49],\n"
                                         " [  50,   51,   52, ...,   97,   98,   99],\n"
                                         " [ 100,  101,  102, ...,  147,  148,  149],\n"
                                         " ...,\n"
                                         " [1850, 1851, 1852, ..., 1897, 1898, 1899],\n"
                                         " [1900, 1901, 1902, ..., 1947, 1948, 1949],\n"
                                         " [1950, 1951, 1952, ..., 1997, 1998, 1999]]");
    CHECK_TEXT(show_with(iota(1, 12, 0, 0), (ValuePrintOptions){.width = 20}),
               "[ 0,  1,  2,  3,  4,\n  5,  6,  7,  8,  9,\n 10, 11]");
}

TEST(digits) {
    ValuePrintOptions three = {.digits = 3};
    CHECK_TEXT(show_with(value_float(DT_F32, 3.14159274), three), "3.14");
    CHECK_TEXT(show_with(value_float(DT_F32, 0.1), three), "0.1");
    CHECK_TEXT(show_with(value_float(DT_F64, 123456.75), three), "123457.0");
    CHECK_TEXT(show_with(value_float(DT_F64, 99.996), three), "100.0");
    CHECK_TEXT(show_with(value_float(DT_F64, -1.23456e-7), three), "-1.23e-07");
    CHECK_TEXT(show_with(value_float(DT_F64, 1.23456e30), three), "1.23e+30");
    CHECK_TEXT(show_with(value_float(DT_F64, 1.7976931348623157e308), three),
               "1.7976931348623157e+308");
    CHECK_TEXT(show_with(value_float(DT_F32, 16777216.0), (ValuePrintOptions){.digits = 17}),
               "16777216.0");
    CHECK_TEXT(show_with(value_float(DT_F64, -INFINITY), three), "-inf");
    CHECK_TEXT(show_with(value_int(DT_I32, 123456), three), "123456");
}

/* Data that has no room, down to widths that hold nothing. */
TEST(layout) {
    Value pair[2] = {iota(1, 30, 0, 0), value_string("\xc3\xa9t\xc3\xa9", 5)};
    Value both = value_tuple(pair, 2);
    CHECK_TEXT(show_with(both, (ValuePrintOptions){.width = 40}),
               "(\n  [0, 1, 2, ..., 27, 28, 29],\n  \"\u00e9t\u00e9\"\n)");
    CHECK_TEXT(show_with(value_tuple(&both, 1), (ValuePrintOptions){.width = 26}),
               "((\n  [0, 1, ..., 28, 29],\n  \"\u00e9t\u00e9\"\n),)");
    CHECK_TEXT(show_with(list_of(8), (ValuePrintOptions){.width = 14}),
               "list[0, 1, 2,\n     3, 4, 5,\n     6, 7]");
    CHECK(strlen(show_with(both, (ValuePrintOptions){.width = 1})) < 100);
}

TEST(long_and_deep) {
    const char *text = show(list_of(300000));
    CHECK(strlen(text) < 6000);
    CHECK_TEXT(text + strlen(text) - 9, "999, ...]");
    Value v = value_unit();
    for (int i = 0; i < 100000; i++)
        v = value_tuple(&v, 1);
    text = show(v);
    CHECK(strstr(text, "...") != NULL && strlen(text) < 1000);
}

/* Axes of size 0 leave rows to print where there is no element. */
TEST(rows_without_elements) {
    int64_t most[5] = {2, INT64_C(4278190082), INT64_C(4278190082), INT64_C(4278190082), 0};
    CHECK_TEXT(show(iota(2, INT64_C(4278190082), 0, 0)),
               "[[],\n [],\n [],\n ...,\n [],\n [],\n []]");
    CHECK_TEXT(show(iota(2, 7, 0, 0)), "[[],\n [],\n [],\n [],\n [],\n [],\n []]");
    CHECK(strlen(show(value_tensor(tensor_new(DT_I32, 5, most)))) < 20000);
    CHECK_TEXT(show(iota(3, INT64_C(4278190082), 0, 3)),
               "[[],\n [],\n [],\n ...,\n [],\n [],\n []]");
    CHECK_TEXT(show_with(iota(2, 1001, 0, 0), (ValuePrintOptions){.nested = true}),
               "[[], [], [], ..., [], [], []]");
}

/* What data shares is printed again and again, but not without end: elements count as nodes do. */
TEST(shared_tensors_are_bounded) {
    Value v = iota(1, 1000, 0, 0);
    for (int i = 0; i < 3; i++) {
        Value items[100];
        for (int k = 0; k < 100; k++)
            items[k] = v;
        v = value_tuple(items, 100);
    }
    CHECK(strlen(show(v)) < 16 << 20);
}

/* After an interrupt nothing large is printed any more, whatever it is. */
TEST(interrupted) {
    int flag = 1;
    ValuePrintOptions o = {.interrupt = &flag, .max_elements = 1 << 20};
    char *text = mem_bytes(1 << 20);
    memset(text, 'x', 1 << 20);
    Value items[2] = {value_string(text, 1 << 20), iota(2, 1000, 1000, 0)};
    Value all[] = {items[0], items[1], list_of(1000), value_tuple(items, 2),
                   iota(1, 1 << 20, 0, 0)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(strlen(show_with(all[i], o)) < 100);
    flag = 0;
    CHECK(strlen(show_with(all[0], o)) > 1 << 20);
}

TEST(equality) {
    CHECK_INT(value_equal(list_of(300000), list_of(300000)), 1);
    CHECK_INT(value_equal(list_of(3), list_of(4)), 0);
    CHECK_INT(value_equal(value_float(DT_F32, (double)NAN), value_float(DT_F32, (double)NAN)), 0);
    CHECK_INT(value_equal(iota(2, 2, 3, 0), iota(2, 2, 3, 0)), 1);
    CHECK_INT(value_equal(iota(2, 2, 3, 0), iota(2, 3, 2, 0)), 0);
    CHECK_INT(value_equal(value_string("a", 1), value_string("a", 1)), 1);
    Closure *c = mem_new(Closure);
    Value f = {.tag = VAL_CLOSURE, .p = c};
    CHECK_INT(value_equal(f, f), -1);
    Value shared = value_int(DT_I32, 1);
    for (int i = 0; i < 60; i++) { /* 2^60 paths */
        Value both[2] = {shared, shared};
        shared = value_tuple(both, 2);
    }
    CHECK_INT(value_equal(shared, shared), 1);
}

static const DataLayout *layout_of(Value data) { return ((const Data *)data.p)->layout; }

TEST(layouts_of_data) {
    Value l = list_of(3), end = data_get(data_get(data_get(l, 1), 1), 1);
    CHECK(layout_of(l) == layout_of(data_get(l, 1)));
    CHECK(data_ctor(end) == nil && data_size(end) == 0);
    CHECK_INT(sizeof(Data) + 3 * sizeof *((Data *)l.p)->words, 32);
    Value other[2] = {value_float(DT_F32, 1.5), l}, both[2] = {value_int(DT_I32, 7), l};
    Value mixed = value_data(cons, other), again = value_data(cons, both);
    CHECK(layout_of(mixed) != layout_of(l));
    CHECK(layout_of(again) == layout_of(l));
    CHECK_TEXT(show(mixed), "list[1.5, 0, 1, 2]");
    data_set(again, 0, value_string("a", 1));
    CHECK_TEXT(show(again), "list[\"a\", 0, 1, 2]");
    data_set(again, 0, value_float(DT_F32, 2.0));
    CHECK(layout_of(again) == layout_of(mixed));
    CHECK_INT(value_equal(again, mixed), 0);
    data_set(again, 0, value_float(DT_F32, 1.5));
    CHECK_INT(value_equal(again, mixed), 1);
}

/* More layouts than are remembered, of which some are asked for again later. */
TEST(very_many_layouts) {
    enum { FIELDS = 20, MANY = 3000 };
    TypeDecl *d = mem_new(TypeDecl);
    d->name = sym_intern("Wide");
    Ctor *wide = ctor(d, "Wide", FIELDS);
    Value *all = mem_new_n(Value, MANY);
    for (int i = 0; i < MANY; i++) {
        Value fields[FIELDS];
        for (int k = 0; k < FIELDS; k++)
            fields[k] = i >> k % 12 & 1 ? value_int(DT_I64, i + k) : value_float(DT_F64, i + k);
        all[i] = value_data(wide, fields);
    }
    for (int i = 0; i < MANY; i++)
        for (uint32_t k = 0; k < FIELDS; k++) {
            Value v = data_get(all[i], k);
            CHECK_INT(v.aux, i >> k % 12 & 1 ? DT_I64 : DT_F64);
            CHECK_INT((int)(v.aux == DT_I64 ? (double)v.i : v.f), i + (int)k);
        }
}

TEST(chains) {
    ValueChain chain = {0};
    Value pair[2] = {value_int(DT_I32, 1), value_unit()};
    CHECK_TEXT(show(value_chain_end(&chain, pair[0])), "1");
    chain = (ValueChain){0};
    value_chain_add(&chain, value_data(cons, pair));
    value_chain_add(&chain, value_tuple(pair, 2));
    value_chain_add(&chain, value_data(cons, pair));
    Value made = value_chain_end(&chain, value_data(nil, NULL));
    CHECK_TEXT(show(data_get(made, 1)), "(1, list[1])");
}

int main(void) {
    mem_init();
    make_list_type();
    RUN(scalars);
    RUN(containers);
    RUN(tensors);
    RUN(digits);
    RUN(layout);
    RUN(long_and_deep);
    RUN(rows_without_elements);
    RUN(shared_tensors_are_bounded);
    RUN(interrupted);
    RUN(equality);
    RUN(layouts_of_data);
    RUN(very_many_layouts);
    RUN(chains);
    return check_result();
}
