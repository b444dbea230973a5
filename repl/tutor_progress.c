/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/tutor_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "repl/line/place.h"

void progress_read(Progress *p) {
    const char *path = place_of_state("tutor");
    FILE *f = path ? fopen(path, "r") : NULL;
    char line[80];
    while (f && fgets(line, sizeof line, f)) {
        int lesson;
        size_t frame;
        if (sscanf(line, "%d %zu", &lesson, &frame) == 2)
            progress_set(p, lesson, frame);
        else if (sscanf(line, "now %d", &lesson) == 1)
            progress_set_now(p, lesson);
    }
    if (f)
        fclose(f);
}

/* Whole or not at all: another prompt may be reading. */
void progress_write(const Progress *p) {
    const char *path = place_of_state("tutor");
    if (!path || !place_make_parents(path))
        return;
    const char *fresh = fmt_text("%s.%ld", path, (long)getpid());
    FILE *f = fopen(fresh, "w");
    if (!f)
        return;
    for (int i = 0; i < PROGRESS_LESSONS; i++)
        if (p->frames[i])
            fprintf(f, "%d %zu\n", i, p->frames[i]);
    if (p->now)
        fprintf(f, "now %d\n", p->now);
    int lost = ferror(f);
    if (fclose(f) != 0 || lost || rename(fresh, path) != 0)
        unlink(fresh);
}

size_t progress_get(const Progress *p, int lesson) {
    return lesson > 0 && lesson < PROGRESS_LESSONS ? p->frames[lesson] : 0;
}

void progress_set(Progress *p, int lesson, size_t frame) {
    if (lesson > 0 && lesson < PROGRESS_LESSONS)
        p->frames[lesson] = frame;
}

int progress_now(const Progress *p, int most) { return p->now >= 1 && p->now <= most ? p->now : 1; }

void progress_set_now(Progress *p, int lesson) { p->now = lesson; }
