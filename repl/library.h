/* SPDX-License-Identifier: Apache-2.0 */
/* What the prelude and the library's modules define, read off their texts: so that a name is found, and
 * documented, before its module is imported. */
#ifndef REPL_LIBRARY_H
#define REPL_LIBRARY_H

#include "base/str.h"
#include "base/symbol.h"
#include "base/vec.h"

typedef struct LibraryItem {
    const char *module;  /* "optim"; "" for the prelude */
    const char *name;    /* "sgd", "list.sum" */
    const char *head;    /* the definition up to its body, on one line */
    const char *doc;     /* its `///` lines without `Example:`; may be empty */
    const char *example; /* an expression, or NULL */
    const char *result;  /* what that shows */
} LibraryItem;
typedef VEC(LibraryItem) LibraryItemVec;

/* Every public item of a module, in order of its text; NULL: of all of them, and the prelude. */
void library_list(const char *module, LibraryItemVec *out);
/* The comment at the head of a module of the library; NULL where there is none of this name. */
const char *library_about(const char *module);
/* The item that a qualified name (`optim.sgd`) or a bare one (`sgd`, `map`) is, or NULL. */
const LibraryItem *library_find(const char *name);
/* What the comment says, and its example; with the head, and where to import it from. */
void library_print_comment(Str *out, const LibraryItem *item);
void library_print_doc(Str *out, const LibraryItem *item);

#endif
