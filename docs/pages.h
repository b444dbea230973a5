/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of docs/ that are made from the program's own tables. Each begins with a part written
 * by hand, which ends with the line PAGE_MARK; what follows is generated: `make docs` rewrites it,
 * and a test compares it. */
#ifndef DOCS_PAGES_H
#define DOCS_PAGES_H

#include "repl/session.h"

#define PAGE_MARK "<!-- What follows is generated: `make docs`. -->"

typedef struct Page {
    const char *name; /* "errors": docs/errors.md */
    /* The generated part. False, with *why, when this machine cannot make it. */
    bool (*print)(Session *s, Str *out, const char **why);
} Page;

enum { PAGE_COUNT = 5 };
extern const Page pages[PAGE_COUNT];
const Page *page_find(const char *name); /* NULL when there is none */

bool page_print_errors(Session *s, Str *out, const char **why);
bool page_print_library(Session *s, Str *out, const char **why);
bool page_print_operators(Session *s, Str *out, const char **why);
bool page_print_onnx(Session *s, Str *out, const char **why);
bool page_print_kernels(Session *s, Str *out, const char **why);

/* The whole page: the head of the text there is, then the generated part. */
bool page_print(const Page *page, Session *s, const char *old, Str *out, const char **why);

/* The whole file; NULL when it cannot be read. */
const char *page_read(const char *path);

#endif
