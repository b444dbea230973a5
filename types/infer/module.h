/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a module in steps, and of a part of it that was edited: for who tries changes. */
#ifndef TYPES_INFER_MODULE_H
#define TYPES_INFER_MODULE_H

#include "types/infer/state.h"

/* What is particular to the check of an edited text. */
typedef struct TrialCheck {
    bool *wanted;         /* of each item: whether it is checked. What these items need is added */
    const bool *edited;   /* of each item: whether it differs from the first text */
    const bool *may_fail; /* of each item: whether it failed before */
    const IndexVec
        *edges; /* which items each item mentioned before; NULL where no item was checked before */
    bool imports;      /* the text was not read before, so its modules are imported */
    bool by_needs;     /* only the wanted items and what they need are looked at */
    size_t most_bytes; /* by_needs: how much text these items may have before the check gives up */
    bool ended;        /* out: the budget sufficed. If not, the other results mean nothing */
} TrialCheck;

/* One check of a module: infer_module's, or a trial's, which imports nothing and binds nothing. Trials are
 * made between module_check and module_bind: the Env then is as it was before. */
typedef struct ModuleCheck {
    Env *env;
    const Module *module;
    InferMode mode;
    Diags *diags;
    CoreItemVec *out;
    size_t first;  /* the index of its first diagnostic in the list */
    size_t errors; /* diags->errors before it */
    bool ok;
    Namespace before;      /* types, ctors and ops before the module's imports and declarations */
    bool restores;         /* whether `before` is put back after a mistake */
    Map types, ctors, ops; /* out: before the module's declarations were bound */
    bool declares;
    TrialCheck *trial; /* NULL where this is no trial */
    bool *failed;      /* out: of each item, whether it failed */
    IndexVec *edges;   /* out: which items each item mentions, or NULL */
    bool whole;        /* out: every item was checked, or too many have mistakes */
    bool by_item;      /* out: the declarations were right, and items were checked one by one */
    bool *open;        /* out: of each item, whether others settle its type too */
    Infer *I;          /* set when the names are entered */
    bool parts;        /* out: single items may be checked again. Then the following are set */
    Global **globals;  /* by item */
    GroupVec groups;
    bool to_bind;   /* private: whether the names are to be bound */
    Global **made;  /* of each item: the global that it would bind */
    CoreItem *core; /* by item */
} ModuleCheck;

void module_check(ModuleCheck *c);
/* Binds the names of a check that went well, and checks again what mentions them. */
void module_bind(ModuleCheck *c);
/* Forgets what the module declared, if it had a mistake. */
void module_close(ModuleCheck *c);
/* Calls fn on a stack that is large enough for inference. */
void infer_on_stack(void (*fn)(void *), void *arg);
/* Whether a module checks, its imports included; nothing is bound. It stops at the first item that fails. */
bool module_checks_apart(Env *env, const Module *module, InferMode mode, Diags *diags,
                         CoreItemVec *out);

/* ---- infer/part.c: one item of a module, edited ------------------------------------------------------
 *
 * The rest is taken as it was checked. In order of dependency, what mentions the item is checked again
 * where the item came out at another type, or had failed; and so on. A type is declared again with those
 * that mention it, and what names one of them is checked again. */
typedef struct Parts Parts;
Parts *parts_new(const ModuleCheck *c);

typedef enum PartVerdict {
    PART_WORSE, /* an item fails that was right, or there is too much to check */
    PART_CHECKED,
    PART_UNSURE, /* only a check of the whole module can tell */
} PartVerdict;

typedef struct PartCheck {
    uint32_t at;
    Item *item; /* the edited item */
    /* Where the item binds another name than before, the items that mention the new one. Of a type declaration, the items
 * that mention one of its names. */
    const IndexVec *namers;
    const IndexVec *
        types; /* the type declaration and those that mention its type; NULL where the item is none */
    const bool *wanted; /* of each item: whether it had failed and must check now */
    int32_t may_fail;   /* an item that may still fail, or -1 */
    size_t most_bytes;
    Diags *diags;
    CoreItem core;  /* out: what the item becomes */
    bool it_failed; /* out: whether the item `may_fail` did */
    size_t mended;  /* out: how many items that had failed check now */
    size_t bytes;   /* out: how much text was checked again */
} PartCheck;
PartVerdict parts_check(Parts *parts, PartCheck *check);

#endif
