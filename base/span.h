/* SPDX-License-Identifier: Apache-2.0 */
/* Sources and places in them. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stddef.h>
#include <stdint.h>

typedef struct Source {
    const char *name; /* as shown: "train.rly", "prompt 3", "prelude/prelude.rly" */
    const char *text;
    size_t len;
    uint32_t *line_starts; /* byte offsets; nlines of them */
    uint32_t nlines;
    uint32_t flags;
} Source;

enum {
    SOURCE_INTERNAL = 1, /* prelude and stdlib: a failure inside is reported at the user's call */
    SOURCE_PROMPT = 2,
};

/* A half-open byte range. source == NULL: no place is known. */
typedef struct Span {
    const Source *source;
    uint32_t begin, end;
} Span;

Source *source_new(const char *name, const char *text, size_t len, uint32_t flags);
void span_locate(Span span, uint32_t *line, uint32_t *column); /* of its begin, from 1; columns in
                                                                   characters */
Span span_join(Span a, Span b);
/* Of `{ e }` the place of e (where it is short and begins with no comment); else the place itself. */
Span span_inside(Span block);
static inline Span span_none(void) { return (Span){0}; }

#endif
