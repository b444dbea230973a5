/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions, and where the blame lies, found by trying.
 *
 * After a mistake the text is changed in one place, read and checked again; a change is suggested only
 * when the item of the mistake then checks and no other item fails that checked before (Lerner,
 * Flower, Grossman and Chambers, "Searching for type-error messages", PLDI 2007, with the checker as
 * the oracle). Which changes are tried is the matter of mend/near.c and mend/wrap.c (at the
 * place of the message) and mend/far.c (elsewhere).
 *
 * Blame: a message stays where it arose as long as a change there mends the program. When none does
 * and a change of one other token does (a declaration that several uses contradict, a binding that
 * nothing mentions under its name), the message points there, and where it arose becomes a
 * secondary place. But of two sizes or dtypes that clash none is to blame by itself: where a change on
 * the other side mends as much, the message stays, and both changes are suggested.
 *
 * A change costs the item it is made in, and what depends on that where its type changes: the rest of the
 * text is neither read nor checked again (mend/trial.c, infer/part.c). The work is drawn from
 * the run's budget (base/budget.h), so that what is suggested depends on the program alone and never on
 * the machine. */
#ifndef TYPES_MEND_MEND_H
#define TYPES_MEND_MEND_H

#include "parser/lexer.h"
#include "types/infer/module.h"

/* Calls infer_module, and adds to its messages what fits the holes and what mends the mistakes. */
bool mend_infer_module(Env *env, const Module *module, InferMode mode, Diags *diags,
                       CoreItemVec *out);

/* Adds to the message of each hole what fits there. (mend/hole.c) */
void mend_holes(ModuleCheck *c);

/* ---- the work ------------------------------------------------------------------------------------ */

typedef struct MendToken {
    TokenKind kind : 16;
    Word word : 16;
    uint32_t begin, end;
    const Symbol
        *sym;        /* of a name, a number as written, a string that is a dtype's name; or NULL */
    int32_t partner; /* the token that closes or opens this bracket; -1: it is no bracket */
    int32_t opener;  /* the token of the bracket around this one, or -1 */
    int32_t item;    /* the item that this token is in, or -1 */
    int32_t same;    /* the last token before this one with the same symbol, or -1 */
} MendToken;

typedef enum MendKind {
    MEND_NAME,    /* another name is written: `did you mean` */
    MEND_REPLACE, /* another token or expression is written */
    MEND_REMOVE,
    MEND_INSERT,
    MEND_BLAME, /* shows where the mistake is and is not suggested, since the text put there is a guess */
} MendKind;

typedef struct Mend {
    MendKind kind;
    uint32_t begin, end; /* the bytes of the old text that are replaced */
    const char *text;
    bool far;
    bool alone;          /* it needs to mend only the error's own item, though others fail alike */
    size_t remaining;    /* how many items still fail after the change */
    const char *snippet; /* the smallest expression around the change, as changed, or NULL */
    const char *type;    /* its type, or NULL */
    const char *spanning, *spanning_type; /* the same for one that also holds the first operand */
} Mend;
typedef VEC(Mend) MendVec;

/* The dtypes and sizes a message speaks of. */
enum { MEND_MAX_VALUES = 6 };
typedef struct MendValues {
    const Symbol *dtypes[MEND_MAX_VALUES], *sizes[MEND_MAX_VALUES];
    size_t ndtypes, nsizes;
} MendValues;

/* The state of mending one module's errors. */
typedef struct Mender {
    ModuleCheck *c;
    const Source *source;
    uint32_t begin; /* where the module begins in its source */
    VEC(MendToken) tokens;
    Budget *budget; /* what the search draws from: the run's */
    Map counts;     /* Symbol -> how often the source says it */
    Map last;       /* Symbol -> the last token that says it, + 1 */
    Parts *parts;   /* NULL: each change needs a check of the whole module */
    Namespace base; /* the namespace before the module's declarations were bound */
    Map versions;
    size_t nfailed; /* how many items fail */
    size_t goal;    /* how many of them may go on failing, because their mistakes are others */
    /* The rest is about the error that is being mended. */
    Diag *d;
    int32_t item;      /* the item that it arose in, or -1 */
    Span place;        /* where the message pointed at first */
    uint32_t line_end; /* the end of the line that its place begins on */
    bool far;          /* the changes tried now are not at its place */
    const Mend *side;  /* the changes tried now must not overlap this one; or NULL */
    bool by_spelling;  /* the changes tried now are names spelt alike */
    bool *related;     /* by item: its error may have the same cause */
    bool *mentioned;   /* by item: another item mentions what it binds */
    bool *
        told; /* by item: an error was reported in it; other items failed because one they need did */
    bool *wanted;       /* by item: it failed, and must check after a change */
    bool *wanted_alone; /* the same for a change that needs to mend only the error's own item */
    bool alone;         /* the changes tried now need to mend only the error's own item */
    Map tried;          /* Symbol of a change in words -> itself: each is tried once */
    MendVec found;
    SymbolVec known; /* names visible here (mend_known_names), once they were asked for */
    SymbolVec pool;  /* every name that might have been meant, once it was asked for */
    const Symbol
        *unknown; /* the token's name where the message says that a name is missing, or NULL */
} Mender;

/* ---- mend/tokens.c ---------------------------------------------------------------------------- */

void mend_read_tokens(Mender *m);
int32_t mend_item_at(const Mender *m, uint32_t at); /* or -1 */
const char *mend_text(const Mender *m, uint32_t begin, uint32_t end);
/* The first token that begins at `begin` or behind it, or tokens.len. */
size_t mend_token_at(const Mender *m, uint32_t begin);
/* The tokens [first, last) of the message's place, as far as its first line goes; at least one. */
void mend_place_tokens(const Mender *m, size_t *first, size_t *last);
bool mend_is_on_line(const Mender *m,
                     Span s); /* whether s begins on the line of the place, or behind it */
bool mend_is_name(
    const MendToken *t); /* whether t is an identifier, no reserved word and no dtype */
bool mend_is_dtype(const MendToken *t);
bool mend_names_dtype(const MendToken *t);           /* also in quotes: dtype="int32" */
size_t mend_count(const Mender *m, const Symbol *s); /* how often the text says it */
/* The parts between the commas of the bracket at token `open`: pairs of tokens, first and last. */
typedef VEC(size_t) MendParts;
void mend_parts(const Mender *m, size_t open, MendParts *out);
bool mend_is_binding(const Mender *m, size_t token);
bool mend_is_unused(const Mender *m,
                    size_t binding); /* whether nothing mentions what the token binds */
/* Names bound in the item of the error, newest first: those that nothing in it mentions (unused), or those
 * that something mentions. Where a name is missing, names of the file's items follow. */
void mend_locals(const Mender *m, bool unused, SymbolVec *out);

/* ---- mend/trial.c: trying ---------------------------------------------------------------------- */

/* Tries to write `text` for the bytes [begin, end) and keeps the change in m->found where it mends. True:
 * it mends all that can be asked of a change. */
bool mend_try(Mender *m, MendKind kind, uint32_t begin, uint32_t end, const char *text);
bool mend_try_token(Mender *m, MendKind kind, size_t token, const char *text);
/* Tries a size, or a dtype, which is put in quotes where the token is in quotes. */
bool mend_try_value(Mender *m, size_t token, const char *value);
/* Whether the change mends; it is not kept. */
bool mend_checks(Mender *m, uint32_t begin, uint32_t end, const char *text);
/* Whether a change was found that mends all that can be asked, or the budget is spent. */
bool mend_is_done(const Mender *m);
/* Draws a walk over so many tokens, names or diagnostics from the budget; false when it is spent then. */
bool mend_may_walk(Mender *m, size_t steps);
/* Fills in mend->snippet and mend->type: the smallest expression around what was changed, which now is
 * [from, to) of `source`. */
void mend_describe(const CoreItemVec *items, const Source *source, Mend *mend, uint32_t from,
                   uint32_t to);
/* Every name that the environment offers at the error, sorted. */
const SymbolVec *mend_known_names(Mender *m);
/* mend/decl.c: collects the types that must be declared again when the type of item `at` is declared
 * as `now`, and the items that mention one of them. False when only a check of the whole text can tell. */
bool mend_type_users(const Mender *m, uint32_t at, const Item *now, IndexVec *types,
                     IndexVec *namers);

/* ---- what is tried, in this order --------------------------------------------------------------- */

void mend_habits(Mender *m);   /* mend/habits.c: what is called otherwise elsewhere */
void mend_near(Mender *m);     /* mend/near.c: what the message itself is about */
void mend_outliers(Mender *m); /* mend/far.c: one dtype or size that disagrees with the others */
void mend_wrap(Mender *m);     /* mend/wrap.c: an operand as a whole */
void mend_far(Mender *m);      /* mend/far.c: elsewhere */
void mend_guess(Mender *m);    /* mend/near.c: other names that fit */
/* mend/far.c: whether a change elsewhere than `mend` mends as much: what clashes has two sides. */
bool mend_other_side(Mender *m, const Mend *mend, Mend *out);

/* Parts of these steps that several of them use. */
void mend_slips(Mender *m); /* mend/far.c: an unused name spelt like the missing one */
void mend_elements(Mender *m,
                   size_t open); /* mend/far.c: an element more or fewer in a tensor literal */
void mend_literal(Mender *m, size_t token); /* mend/near.c: the other kind of number; no suffix */
void mend_cast(Mender *m, uint32_t begin, uint32_t end, const char *dtype); /* mend/wrap.c */
bool mend_remove_part(Mender *m, const MendParts *parts,
                      size_t k); /* parts[k] is its first token */
const char *mend_with_sigil(const Mender *m, size_t token,
                            const Symbol *name); /* with the sigil that the token has */
bool mend_is_of_shapes(DiagCode code);           /* whether it is of R03…, and not about dtypes */
void mend_values(const Mender *m, MendValues *v);
bool mend_has_size(const MendValues *v, const Symbol *s);
/* mend/words.c: whether spelling a is likelier than b. */
bool mend_is_likelier(Mender *m, const Symbol *a, const Symbol *b);

#endif
