/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/history.h"

#include "base/map.h"
#include "base/str.h"
#include "base/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the directories on the way to the file. */
static bool make_parents(const char *path) {
    char *copy = mem_strdup(path);
    for (char *p = copy + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(copy, 0700) != 0 && errno != EEXIST)
                return false;
            *p = '/';
        }
    return true;
}

void history_open(HistoryFile *h) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    h->path = NULL;
    if (state && state[0] == '/')
        h->path = fmt_text("%s/relay/history", state);
    else if (home && home[0] == '/')
        h->path = fmt_text("%s/.local/state/relay/history", home);
    if (h->path && !make_parents(h->path))
        h->path = NULL;
}

void history_read(const HistoryFile *h, HistoryLines *out) {
    FILE *f = h->path ? fopen(h->path, "r") : NULL;
    if (!f)
        return;
    flock(fileno(f), LOCK_SH);
    char *line = NULL;
    size_t cap = 0;
    HistoryLines all = {0};
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
        if (line[n - 1] == '\n')
            n--;
        if (n && text_is_utf8(line, (size_t)n, NULL))
            vec_push(&all, mem_strndup(line, (size_t)n));
    }
    free(line);
    fclose(f);

    Map seen = {0};
    HistoryLines newest = {0};
    for (size_t i = all.len; i-- > 0 && newest.len < HISTORY_MAX;) {
        const Symbol *text = sym_intern(all.data[i]);
        if (!map_has(&seen, text)) {
            map_set(&seen, text, NULL);
            vec_push(&newest, all.data[i]);
        }
    }
    for (size_t i = newest.len; i-- > 0;)
        vec_push(out, newest.data[i]);

    if (all.len > 2 * HISTORY_MAX && (f = fopen(h->path, "r+"))) {
        flock(fileno(f), LOCK_EX);
        if (ftruncate(fileno(f), 0) == 0)
            for (size_t i = 0; i < out->len; i++)
                fprintf(f, "%s\n", out->data[i]);
        fclose(f);
    }
}

void history_append(const HistoryFile *h, const char *line) {
    if (!h->path || !line[0] || line[0] == ' ' || strchr(line, '\n'))
        return;
    int fd = open(h->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    const char *text = fmt_text("%s\n", line);
    flock(fd, LOCK_EX);
    ssize_t n = write(fd, text, strlen(text)); /* in one piece, or not at all */
    (void)n;
    close(fd);
}
