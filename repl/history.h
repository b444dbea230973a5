/* SPDX-License-Identifier: Apache-2.0 */
/* The prompt's history on disk: $XDG_STATE_HOME/relay/history, one entry a line, oldest first.
 * Entries are appended under a lock, so that two prompts share the file. Without a writable home
 * there is no file, and nothing is said about it. */
#ifndef REPL_HISTORY_H
#define REPL_HISTORY_H

#include "base/vec.h"

enum { HISTORY_MAX = 10000 };

typedef struct HistoryFile {
    const char *path; /* NULL: none */
} HistoryFile;

typedef VEC(const char *) HistoryLines;

void history_open(HistoryFile *h);
/* The newest HISTORY_MAX entries, each text once. A file that has grown to twice that is rewritten. */
void history_read(const HistoryFile *h, HistoryLines *out);
/* Not stored: what begins with a blank, and what is empty. */
void history_append(const HistoryFile *h, const char *line);

#endif
