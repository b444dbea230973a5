/* SPDX-License-Identifier: Apache-2.0 */
/* The harness of unit tests. A program is
 *
 *     TEST(name) { CHECK(1 + 1 == 2); CHECK_TEXT(str_text(&s), "2"); }
 *     int main(void) { RUN(name); return check_result(); }
 *
 * and prints `ok name` or `FAILED name: file:line: what` for each. */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static const char *check_test;
static int check_failures, check_failed_tests;

#define TEST(name) static void test_##name(void)
#define RUN(name) check_run(#name, test_##name)

#define CHECK(condition) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_TEXT(found, expected) check_text(__FILE__, __LINE__, found, expected)
#define CHECK_INT(found, expected)                                                                 \
    check_int(__FILE__, __LINE__, #found, (long long)(found), (long long)(expected))

#define check_fail(file, line, ...)                                                                \
    (check_failures++ ? (void)0                                                                    \
                      : (void)(printf("FAILED %s: %s:%d: ", check_test, file, line),               \
                               printf(__VA_ARGS__), putchar('\n')))

static inline void check_text(const char *file, int line, const char *found, const char *expected) {
    if (strcmp(found, expected) != 0)
        check_fail(file, line, "found\n%s\nexpected\n%s", found, expected);
}

static inline void check_int(const char *file, int line, const char *what, long long found,
                             long long expected) {
    if (found != expected)
        check_fail(file, line, "%s is %lld, expected %lld", what, found, expected);
}

static inline void check_run(const char *name, void (*test)(void)) {
    mem_init();
    check_test = name;
    check_failures = 0;
    test();
    if (check_failures)
        check_failed_tests++;
    else
        printf("ok %s\n", name);
    fflush(stdout);
}

static inline int check_result(void) { return check_failed_tests != 0; }

#endif
