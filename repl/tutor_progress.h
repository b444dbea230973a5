/* SPDX-License-Identifier: Apache-2.0 */
/* How far each lesson has come, and its file. Without a writable home nothing is kept, and nothing is said
 * about it; lines that are none of ours are left out. */
#ifndef REPL_TUTOR_PROGRESS_H
#define REPL_TUTOR_PROGRESS_H

#include <stddef.h>

enum { PROGRESS_LESSONS = 100 };

typedef struct Progress {
    size_t frames[PROGRESS_LESSONS]; /* done, by lesson */
    int now;                         /* the lesson that `:tutor` opens; 0: the first */
} Progress;

void progress_read(Progress *p);
void progress_write(const Progress *p);
size_t progress_get(const Progress *p, int lesson);
void progress_set(Progress *p, int lesson, size_t frame);
int progress_now(const Progress *p, int most); /* 1 to most */
void progress_set_now(Progress *p, int lesson);

#endif
