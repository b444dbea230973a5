/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h as a C program outside of Relay sees it: linked with librelay.so, nothing else included. */
#include "repl/relay.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The structures of dlpack.h. */
typedef struct DLTensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor t;
    void *ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

static int failures, failed_tests;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAILED %s: %s:%d: %s\n", __func__, __FILE__, __LINE__, #condition);            \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static bool says(const RelaySession *s, const char *part) {
    return strstr(relay_error(s), part) != NULL;
}

static bool shows(RelayValue *v, const char *text) {
    bool same = v && strcmp(relay_show(v), text) == 0;
    if (v && !same)
        printf("    shown: %s\n", relay_show(v));
    return same;
}

/* Shows and releases. */
static bool gives(RelaySession *s, const char *text, const char *shown) {
    RelayValue *v = relay_evaluate(s, text);
    bool same = shows(v, shown);
    if (!v)
        printf("    %s\n", relay_error(s));
    relay_release(v);
    return same;
}

static void evaluates_and_tells_mistakes(void) {
    RelaySession *s = relay_open(NULL);
    CHECK(gives(s, "def f(x) { x * x }\nlet y = 3.0\nf(y)", "9.0 : float32"));
    CHECK(gives(s, "let z = 1", "() : ()"));
    CHECK(gives(s, "arange(z + 2)", "[0, 1, 2] : Tensor[(3,), int32]"));
    CHECK(strcmp(relay_error(s), "") == 0);
    CHECK(!relay_evaluate(s, "f(\"a\")") && says(s, "error[R0"));
    CHECK(!relay_evaluate(s, "[1.0, 2.0] + [1.0, 2.0, 3.0]") && says(s, "axis 0 is 2 on the left"));
    CHECK(!relay_evaluate(s, "let q = (1") && says(s, "ends in the middle"));
    CHECK(!relay_evaluate(s, "list.head(Nil : List[int32])") && says(s, "error"));
    CHECK(!relay_evaluate(s, "q") && says(s, "there is no `q`"));
    CHECK(gives(s, "f(y)", "9.0 : float32"));
    CHECK(!relay_load(s, "/no/such/file.rly") && says(s, "file.rly"));
    relay_close(s);
}

static void takes_values_apart(void) {
    RelaySession *s = relay_open(NULL);
    RelayValue *v = relay_evaluate(
        s, "grad(fn (w: float64, l) { w * foldl(fn (a, x) { a + x }, 0.0f64, l) })"
           "(2.0f64, list[1.0f64, 3.0f64])");
    CHECK(relay_kind(v) == RELAY_TUPLE && relay_count(v) == 2);
    RelayValue *gradients = relay_item(v, 1), *list = relay_item(gradients, 1),
               *second = relay_item(list, 1);
    CHECK(relay_kind(list) == RELAY_DATA && relay_count(list) == 2);
    CHECK(strcmp(relay_constructor(list), "Cons") == 0);
    CHECK(shows(second, "2.0 : float64"));
    CHECK(!relay_item(list, 2) && !relay_item(second, 0));
    RelayValue *both[] = {second, list};
    RelayValue *pair = relay_tuple(s, both, 2);
    CHECK(shows(pair, "(2.0, list[2.0, 2.0]) : (float64, List[float64])"));
    CHECK(relay_define(s, "pair", pair));
    CHECK(gives(s, "pair.0 + 1.0f64", "3.0 : float64"));
    relay_release(relay_evaluate(s, "type Point[b] { Point { x: Tensor[(), b], name: String } }"));
    RelayValue *point = relay_evaluate(s, "Point { x: 1.5, name: \"p\" }"),
               *name = relay_item(point, 1);
    size_t length;
    CHECK(relay_kind(name) == RELAY_STRING && strcmp(relay_text(name, &length), "p") == 0 &&
          length == 1);
    RelayValue *x = relay_item(point, 0);
    CHECK(shows(x, "1.5 : float32"));
    RelayValue *text = relay_string(s, "a\0b", 3), *texts[] = {text, name};
    RelayValue *joined = relay_call(s, "fn (a, b) { a ++ b }", texts, 2);
    CHECK(relay_text(joined, &length) && length == 4);
    CHECK(!relay_call(s, "f", texts, 2) && says(s, "there is no `f`"));
    RelayValue *all[] = {v, gradients, list, second, pair, point, name, x, text, joined};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        relay_release(all[i]);
    relay_close(s);
}

static atomic_int deleted;

static void count_deleted(DLManagedTensor *self) {
    (void)self;
    deleted++;
}

/* Nothing is copied on the way in and out, and nothing written over what was lent or handed out. */
static void tensors_are_not_copied(void) {
    RelaySession *s = relay_open(NULL);
    static double elements[6] = {1, 2, 3, 4, 5, 6};
    static int64_t shape[2] = {2, 3};
    static DLManagedTensor m = {.t = {elements, {1, 0}, 2, {2, 64, 1}, shape, NULL, 0}};
    RelayValue *x = relay_from_dlpack(s, &m);
    CHECK(shows(x, "[[1.0, 2.0, 3.0],\n [4.0, 5.0, 6.0]] : Tensor[(2, 3), float64]"));
    RelayValue *same = relay_call(s, "fn (x) { (x, 1) }", &x, 1), *part = relay_item(same, 0);
    DLManagedTensor *out = relay_to_dlpack(part);
    CHECK(out && out->t.data == elements && out->t.ndim == 2 && out->t.shape[1] == 3);
    out->deleter(out);
    RelayValue *y = relay_call(s, "fn (x) { exp(x + 1.0f64) * x }", &x, 1);
    CHECK(elements[0] == 1 && elements[5] == 6);
    DLManagedTensor *product = relay_to_dlpack(y);
    CHECK(product->t.data != elements && ((double *)product->t.data)[5] > 6578.0);
    CHECK(product->t.dtype.code == 2 && product->t.dtype.bits == 64);
    relay_release(relay_call(s, "fn (y) { loop(9, fn (y) { y * 0.0f64 }, y) }", &y, 1));
    CHECK(((double *)product->t.data)[5] > 6578.0);
    CHECK(!relay_call(s, "fn (x) { x @@ x }", &x, 1) && says(s, "error[R0"));
    RelayValue *all[] = {x, same, part, y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        relay_release(all[i]);
    relay_close(s);
    product->deleter(product);
}

static void other_layouts_are_read_or_refused(void) {
    RelaySession *s = relay_open(NULL);
    static float elements[6] = {1, 2, 3, 4, 5, 6};
    static int64_t shape[2] = {3, 2}, strides[2] = {-1, 3};
    static DLManagedTensor m = {.t = {elements, {1, 0}, 2, {2, 32, 1}, shape, strides, 8}};
    RelayValue *x = relay_from_dlpack(s, &m);
    CHECK(shows(x, "[[3.0, 6.0],\n [2.0, 5.0],\n [1.0, 4.0]] : Tensor[(3, 2), float32]"));
    DLManagedTensor *out = relay_to_dlpack(x);
    CHECK(out->t.strides[0] == 2 && ((float *)out->t.data)[1] == 6);
    out->deleter(out);
    relay_release(x);
    m.t.byte_offset = 6;
    CHECK(!relay_from_dlpack(s, &m) && says(s, "at a multiple of their 4 bytes"));
    m.t.byte_offset = 0;
    m.t.device.type = 2;
    CHECK(!relay_from_dlpack(s, &m) && says(s, "device of type 2"));
    m.t.device.type = 1;
    m.t.dtype.bits = 128;
    CHECK(!relay_from_dlpack(s, &m) && says(s, "128 bits"));
    m.t.dtype.bits = 32;
    shape[0] = -1;
    CHECK(!relay_from_dlpack(s, &m) && says(s, "negative"));
    m.t.ndim = 17;
    CHECK(!relay_from_dlpack(s, &m) && says(s, "at most 16 axes"));
    relay_close(s);
}

/* What was lent comes back, though the collector may see a few of them a while longer. */
static void what_was_lent_comes_back(void) {
    RelaySession *s = relay_open(NULL);
    enum { N = 200, ELEMENTS = 1 << 20 };
    static float elements[ELEMENTS];
    static int64_t shape[1] = {ELEMENTS};
    static DLManagedTensor m = {.t = {elements, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0},
                                .deleter = count_deleted};
    for (int i = 0; i < N; i++) {
        RelayValue *x = relay_from_dlpack(s, &m), *y = relay_call(s, "fn (x) { sum(x) }", &x, 1);
        CHECK(shows(y, "0.0 : float32"));
        relay_release(x);
        relay_release(y);
    }
    CHECK(deleted > N / 2);
    if (deleted <= N / 2)
        printf("    %d of %d\n", (int)deleted, N);
    relay_close(s);
}

static void collect_text(void *context, const char *text, size_t length) {
    char *kept = context;
    strncat(kept, text, length);
}

static RelaySession *calling_back;

static void call_back(void *context, const char *text, size_t length) {
    (void)text;
    (void)length;
    *(RelayValue **)context = relay_evaluate(calling_back, "1");
}

static void output_goes_where_it_is_sent(void) {
    RelaySession *s = relay_open(NULL);
    char kept[100] = "";
    relay_set_output(s, collect_text, kept);
    relay_release(relay_evaluate(s, "print(1 + 1)\nlet x = 2"));
    CHECK(strcmp(kept, "2\n") == 0);
    RelayValue *result = (RelayValue *)kept;
    calling_back = s;
    relay_set_output(s, call_back, &result);
    relay_release(relay_evaluate(s, "print(1)"));
    CHECK(!result);
    relay_close(s);
}

typedef struct Counter {
    RelaySession *s;
    int wrong;
} Counter;

static void *count_in_session(void *arg) {
    Counter *c = arg;
    c->s = relay_open(NULL);
    relay_release(relay_evaluate(c->s, "let r = ref(0)\ndef next(n) { r := !r + n; !r }"));
    for (int i = 1; i <= 100; i++) {
        char text[40], expected[40];
        snprintf(text, sizeof text, "next(%d)", i);
        snprintf(expected, sizeof expected, "%d : int32", i * (i + 1) / 2);
        c->wrong += !gives(c->s, text, expected);
    }
    relay_close(c->s);
    return NULL;
}

static void two_sessions_in_two_threads(void) {
    Counter counters[2] = {{0}, {0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count_in_session, &counters[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(counters[0].wrong == 0 && counters[1].wrong == 0);
}

static atomic_bool interrupting;

static void *interrupt_until_told(void *arg) {
    while (interrupting) {
        relay_interrupt(arg);
        struct timespec t = {0, 1000000};
        nanosleep(&t, NULL);
    }
    return NULL;
}

static void what_runs_can_be_interrupted(void) {
    RelaySession *s = relay_open(NULL);
    interrupting = true;
    pthread_t thread;
    pthread_create(&thread, NULL, interrupt_until_told, s);
    CHECK(!relay_evaluate(s, "def forever(n) { forever(n + 1) }\nforever(0)") &&
          says(s, "interrupted"));
    interrupting = false;
    pthread_join(thread, NULL);
    CHECK(gives(s, "1 + 1", "2 : int32"));
    CHECK(!relay_evaluate(s, "def deep(n) { 1 + deep(n) }\ndeep(0)") && says(s, "error[R06"));
    CHECK(gives(s, "1 + 1", "2 : int32"));
    relay_close(s);
}

static void run(const char *name, void (*test)(void)) {
    failures = 0;
    test();
    failed_tests += failures > 0;
    if (!failures)
        printf("ok %s\n", name);
    fflush(stdout);
}

#define RUN(test) run(#test, test)

int main(void) {
    RUN(evaluates_and_tells_mistakes);
    RUN(takes_values_apart);
    RUN(tensors_are_not_copied);
    RUN(other_layouts_are_read_or_refused);
    RUN(what_was_lent_comes_back);
    RUN(output_goes_where_it_is_sent);
    RUN(two_sessions_in_two_threads);
    RUN(what_runs_can_be_interrupted);
    return failed_tests > 0;
}
