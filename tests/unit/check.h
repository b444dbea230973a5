/* SPDX-License-Identifier: Apache-2.0 */
/* The harness of unit tests. A program is
 *
 *     TEST(name) { CHECK(1 + 1 == 2); CHECK_TEXT(str_text(&s), "2"); }
 *     int main(void) { RUN(name); return check_result(); }
 *
 * and prints `ok name` or `FAILED name: file:line: what` for each. A test that checks nothing fails; one
 * that compares by itself says so with check_tried. Long tests ask check_share for how much to do. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *check_test;
static int check_failures, check_failed_tests, check_count;
static bool check_skipped;

#define TEST(name) static void test_##name(void)
#define RUN(name) check_run(#name, test_##name)

#define CHECK(condition)                                                                           \
    (check_count++, (condition) ? (void)0 : check_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_TEXT(found, expected) check_text(__FILE__, __LINE__, found, expected)
#define CHECK_INT(found, expected)                                                                 \
    check_int(__FILE__, __LINE__, #found, (long long)(found), (long long)(expected))

#define check_fail(file, line, ...)                                                                \
    (check_failures++ ? (void)0                                                                    \
                      : (void)(printf("FAILED %s: %s:%d: ", check_test, file, line),               \
                               printf(__VA_ARGS__), putchar('\n')))

static inline void check_text(const char *file, int line, const char *found, const char *expected) {
    check_count++;
    if (strcmp(found, expected) != 0)
        check_fail(file, line, "found\n%s\nexpected\n%s", found, expected);
}

static inline void check_int(const char *file, int line, const char *what, long long found,
                             long long expected) {
    check_count++;
    if (found != expected)
        check_fail(file, line, "%s is %lld, expected %lld", what, found, expected);
}

/* Something was compared, with check_fail where it differed. */
static inline void check_tried(void) { check_count++; }

/* This test cannot run here. */
static inline void check_skip(void) { check_skipped = true; }

/* How many of `whole` cases of a long test to run, and the seed of what it draws: tests/share.py. */
static inline long check_share(long whole) {
    const char *share = getenv("RLY_SHARE");
    long n = share ? (long)((double)whole * atof(share) + 0.5) : whole;
    return n > 0 ? n : 1;
}

static inline unsigned check_seed(void) {
    const char *seed = getenv("RLY_SEED");
    return seed ? (unsigned)strtoul(seed, NULL, 10) : 1;
}

static inline void check_run(const char *name, void (*test)(void)) {
    mem_init();
    check_test = name;
    check_failures = check_count = 0;
    check_skipped = false;
    test();
    if (!check_failures && !check_count && !check_skipped)
        check_fail(__FILE__, __LINE__, "nothing was checked");
    if (check_failures)
        check_failed_tests++;
    else
        printf("%s %s\n", check_skipped ? "skip" : "ok", name);
    fflush(stdout);
}

static inline int check_result(void) { return check_failed_tests != 0; }

#endif
