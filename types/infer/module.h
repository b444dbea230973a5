/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a module in steps, and of a part of it that was edited: for who tries changes. */
#ifndef TYPES_INFER_MODULE_H
#define TYPES_INFER_MODULE_H

#include "types/infer/state.h"

/* What is particular to the check of an edited text. */
typedef struct TrialCheck {
    bool *wanted;          /* by item: what is checked; what these need is added */
    const bool *edited;    /* by item: what differs from the first text */
    const bool *may_fail;  /* by item: what failed before */
    const IndexVec *edges; /* what mentioned what, before; NULL: no item was checked before */
    bool imports;          /* of a text that was not read before */
    bool by_needs;         /* what is wanted and what it needs: nothing else is looked at */
    size_t most_bytes;     /* by_needs: of these items; what has more fails */
    bool ended;            /* out: the budget sufficed; else the rest says nothing */
} TrialCheck;

/* One check of a module: infer_module's, or a trial's, which imports nothing and binds nothing. Trials are
 * made between module_check and module_bind: the Env then is as it was before. */
typedef struct ModuleCheck {
    Env *env;
    const Module *module;
    InferMode mode;
    Diags *diags;
    CoreItemVec *out;
    size_t first;  /* of its diagnostics in the list */
    size_t errors; /* diags->errors before it */
    bool ok;
    Namespace before;      /* types, ctors and ops before the module's imports and declarations */
    bool restores;         /* if it has a mistake these are put back */
    Map types, ctors, ops; /* out: before the module's declarations were bound */
    bool declares;
    TrialCheck *trial; /* NULL: the check itself */
    bool *failed;      /* out, by item */
    IndexVec *edges;   /* out: what mentions what, or NULL */
    bool whole;        /* out: every item was checked, or too many have mistakes */
    bool by_item;      /* out: declarations were fine, items were checked one by one */
    bool *open;        /* out, by item: its type is not settled by it alone */
    Infer *I;          /* once its names are entered */
    bool parts;        /* out: one item may be checked alone; what follows is set then */
    Global **globals;  /* by item */
    GroupVec groups;
    bool to_bind;   /* the check's own: all is well, or it is a trial */
    Global **made;  /* by item: what it would bind */
    CoreItem *core; /* by item */
} ModuleCheck;

void module_check(ModuleCheck *c);
/* Binds the names of a check that went well, and checks again what mentions them. */
void module_bind(ModuleCheck *c);
/* What the module declared is forgotten, if it had a mistake. */
void module_close(ModuleCheck *c);
/* Calls fn where there is stack enough for inference. */
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
    PART_WORSE, /* an item fails that was fine, or it is too much to check */
    PART_CHECKED,
    PART_UNSURE, /* it takes the whole module to know */
} PartVerdict;

typedef struct PartCheck {
    uint32_t at;
    Item *item; /* as edited */
    /* Where it binds another name than before: items that say the new one. Of a type declaration: items
     * that say one of its names. */
    const IndexVec *namers;
    const IndexVec *types; /* a type declaration and those that mention its type; NULL: no type */
    const bool *wanted;    /* by item: what had failed and is to check now */
    int32_t may_fail;      /* an item that may fail still, or -1 */
    size_t most_bytes;
    Diags *diags;
    CoreItem core;  /* out: of the item */
    bool it_failed; /* out: the item that may */
    size_t mended;  /* out: items that had failed and check */
    size_t bytes;   /* out: of text checked again */
} PartCheck;
PartVerdict parts_check(Parts *parts, PartCheck *check);

#endif
