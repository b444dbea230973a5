/* SPDX-License-Identifier: Apache-2.0 */
/* A file being written. Its bytes go to a temporary file beside it, which takes the path when all of
 * them are there: what fails half way (a full disk, a kill) leaves the earlier file as it was. A path
 * that is no regular file of one's own with one name (/dev/stdout, a pipe, another's file, a hard
 * link), or whose directory takes no new file, is written in place.
 *
 *     Output out;
 *     output_open(&out, path);
 *     output_add(&out, bytes, n);
 *     if (!output_close(&out)) … strerror(out.why)
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct Output {
    FILE *file;
    const char *path;      /* where it ends, symbolic links followed */
    const char *temporary; /* NULL: written in place */
    int why;               /* errno of the first failure, after which nothing is written; 0 */
} Output;

void output_open(Output *o, const char *path);
void output_add(Output *o, const void *bytes, size_t n);
bool output_flush(Output *o); /* false: a full disk, say; the path is not taken yet */
bool output_close(Output *o); /* false: something failed, and why says what */
void output_drop(Output *o);  /* in place of output_close: leaves the path as it was */

/* Whether the locale's texts are UTF-8, as LC_ALL, LC_CTYPE or LANG say. */
bool output_is_utf8(void);

#endif
