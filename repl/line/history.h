/* SPDX-License-Identifier: Apache-2.0 */
/* What was entered, and its file: $XDG_STATE_HOME/relay/history, oldest first.
 *
 * An entry is a line; later lines of one begin with a tab, which is no part of it. Entries are appended under a
 * lock, so that prompts that run at once share the file; each reads what the others added before it
 * searches. An entry that comes again moves to the end, and those of
 * this prompt stay behind the others'. Without a writable home there is no file, and
 * nothing is said about it; what of a file is no text is left out.
 *
 * The file is read when the history is first searched: a prompt opens without it. */
#ifndef REPL_LINE_HISTORY_H
#define REPL_LINE_HISTORY_H

#include "base/map.h"
#include "base/symbol.h"
#include "base/vec.h"

enum { HISTORY_MAX = 10000 };

typedef struct History {
    const char *path;          /* NULL: none */
    VEC(const Symbol *) items; /* NULL: it came again later */
    Map places;                /* Symbol -> 1 + its place in items */
    VEC(const Symbol *) own;   /* added by this prompt */
    size_t nlive;              /* items that are not NULL */
    uint64_t device, inode;    /* of the file that was read */
    size_t upto, lines;        /* how far, and what was read of it */
} History;

void history_open(History *h);
/* Not kept: what begins with a blank, and what is empty. */
void history_add(History *h, const char *entry);
/* Reads what other prompts added. */
void history_refresh(History *h);

/* The entry before (older) or after position `at` that begins with (or, `inside`, holds) a text, and
 * differs from `not`; positions run from 0, h->items.len is behind the newest. False: there is none. */
bool history_find(const History *h, size_t *at, bool older, const char *text, bool inside,
                  const char * not );

#endif
