/* SPDX-License-Identifier: Apache-2.0 */
/* What eval/value_print.c (values on one line, tensors) and eval/value_layout.c (data over several
 * lines) share. */
#ifndef EVAL_VALUE_PRINT_IMPL_H
#define EVAL_VALUE_PRINT_IMPL_H

#include "eval/value.h"

enum { PRINT_MAX_DEPTH = 100, PRINT_MAX_LIST = 1000 };

typedef struct Printer {
    Str *out;
    size_t
        limit; /* printing stops where `out` is longer than this: what tries a line needs no more */
    int64_t width, edge, max_elements;
    int digits;
    const volatile int *interrupt;
    VEC(const void *) refs; /* references that are being printed: one inside of itself is a cycle */
    size_t nodes;           /* printed so far, elements of tensors included */
} Printer;

static inline bool print_is_stopped(const Printer *p) {
    return p->out->len > p->limit || (p->interrupt && *p->interrupt);
}

/* The value on one line; at depth 0 a tensor is laid out in rows. */
void print_value(Printer *p, Value v, int depth);
/* lines: in rows, else on one line. summarise: only the edges, whatever its size. */
void print_tensor(Printer *p, const Tensor *t, bool lines, bool summarise);
/* The value on one line where it fits, else as a tree. */
void print_laid_out(Printer *p, Value v);
/* Whether this is a constructor of the prelude's List. */
bool print_is_list(const Ctor *c);

#endif
