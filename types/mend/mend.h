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

/* infer_module, with what a session says besides: what fits the holes, what mends the mistakes. */
bool mend_infer_module(Env *env, const Module *module, InferMode mode, Diags *diags,
                       CoreItemVec *out);

/* Says of each hole what fits there. (mend/hole.c) */
void mend_holes(ModuleCheck *c);

/* ---- the work ------------------------------------------------------------------------------------ */

typedef struct MendToken {
    TokenKind kind : 16;
    Word word : 16;
    uint32_t begin, end;
    const Symbol
        *sym;        /* of a name, a number as written, a string that is a dtype's name; or NULL */
    int32_t partner; /* of a bracket, else -1 */
    int32_t opener;  /* the bracket around it, or -1 */
    int32_t item;    /* or -1 */
    int32_t same;    /* the one before that says the same, or -1 */
} MendToken;

typedef enum MendKind {
    MEND_NAME,    /* another name: `did you mean` */
    MEND_REPLACE, /* another token, or an expression around one */
    MEND_REMOVE,
    MEND_INSERT,
    MEND_BLAME, /* shows where the mistake is, but is no suggestion: the value is a guess */
} MendKind;

typedef struct Mend {
    MendKind kind;
    uint32_t begin, end; /* of the old text */
    const char *text;
    bool far;
    bool alone; /* it mends one of several mistakes that are alike, and more is not asked of it */
    size_t remaining;                     /* items that still fail */
    const char *snippet;                  /* the expression around it as changed, or NULL */
    const char *type;                     /* its type, or NULL */
    const char *spanning, *spanning_type; /* of one that holds the other side too */
} Mend;
typedef VEC(Mend) MendVec;

/* The dtypes and sizes a message speaks of. */
enum { MEND_MAX_VALUES = 6 };
typedef struct MendValues {
    const Symbol *dtypes[MEND_MAX_VALUES], *sizes[MEND_MAX_VALUES];
    size_t ndtypes, nsizes;
} MendValues;

/* The work on one module's errors. */
typedef struct Mender {
    ModuleCheck *c;
    const Source *source;
    uint32_t begin; /* of the module in its source */
    VEC(MendToken) tokens;
    Budget *budget; /* of the run: what the search draws from */
    Map counts;     /* Symbol -> how often the source says it */
    Map last;       /* Symbol -> the last token that says it, + 1 */
    Parts *parts;   /* NULL: a change takes the check of the whole module */
    Namespace base; /* what the module's declarations are bound over */
    Map versions;
    size_t nfailed; /* items that fail */
    size_t goal;    /* how many of them may go on failing: their mistakes are others */
    /* of the error being mended */
    Diag *d;
    int32_t item;      /* its item, or -1 */
    Span place;        /* where it arose */
    uint32_t line_end; /* of the line its place begins on */
    bool far;          /* what is tried now is elsewhere */
    const Mend *side;  /* what is tried now is elsewhere than this, or NULL */
    bool by_spelling;  /* what is tried now is a name spelt alike */
    bool *related;     /* by item: its error may come of the same mistake */
    bool *mentioned;   /* by item: another mentions what it binds */
    bool *told;        /* by item: an error arose in it; what failed else failed by what it needs */
    bool *wanted;      /* by item: that failed, and is to check after a change */
    bool *wanted_alone; /* the same where only the error's own item is */
    bool alone;         /* what is tried now mends one of several mistakes that are alike */
    Map tried;          /* Symbol of the change -> itself */
    MendVec found;
    SymbolVec known;       /* names visible here (mend_known_names), once they were asked for */
    SymbolVec pool;        /* every name it might have been, once it was asked for */
    const Symbol *unknown; /* R01…, R02…: the name it says is missing, or NULL */
} Mender;

/* ---- mend/tokens.c ---------------------------------------------------------------------------- */

void mend_read_tokens(Mender *m);
int32_t mend_item_at(const Mender *m, uint32_t at); /* or -1 */
const char *mend_text(const Mender *m, uint32_t begin, uint32_t end);
/* The first token that begins at `begin` or behind it, or tokens.len. */
size_t mend_token_at(const Mender *m, uint32_t begin);
/* Those of the message's place, [first, last), as far as its first line goes; at least one. */
void mend_place_tokens(const Mender *m, size_t *first, size_t *last);
bool mend_is_on_line(const Mender *m, Span s); /* begins on the line of the place, or behind */
bool mend_is_name(const MendToken *t); /* an identifier that is no reserved word and no dtype */
bool mend_is_dtype(const MendToken *t);
bool mend_names_dtype(const MendToken *t);           /* or is its name in quotes: dtype="int32" */
size_t mend_count(const Mender *m, const Symbol *s); /* how often the text says it */
/* The parts between the commas of the bracket at token `open`: pairs of tokens, first and last. */
typedef VEC(size_t) MendParts;
void mend_parts(const Mender *m, size_t open, MendParts *out);
bool mend_is_binding(const Mender *m, size_t token);
bool mend_is_unused(const Mender *m, size_t binding); /* nothing says the name, meaning this one */
/* Names bound in the item of the error that nothing in it mentions, newest first, where a name is missing
 * those of the text too; else those that something mentions. */
void mend_locals(const Mender *m, bool unused, SymbolVec *out);

/* ---- mend/trial.c: trying ---------------------------------------------------------------------- */

/* [begin, end) -> text. True: that is all that could be asked. */
bool mend_try(Mender *m, MendKind kind, uint32_t begin, uint32_t end, const char *text);
bool mend_try_token(Mender *m, MendKind kind, size_t token, const char *text);
/* A size, or a dtype, which is in quotes where the one there is. */
bool mend_try_value(Mender *m, size_t token, const char *value);
/* The same as mend_try, not kept. */
bool mend_checks(Mender *m, uint32_t begin, uint32_t end, const char *text);
/* A change was found that mends all it could, or the budget is spent. */
bool mend_is_done(const Mender *m);
/* Draws a walk over so many tokens, names or diagnostics from the budget; false: it has not so much. */
bool mend_may_walk(Mender *m, size_t steps);
/* The smallest expression around what was changed, [from, to) of `source` now, and its type. */
void mend_describe(const CoreItemVec *items, const Source *source, Mend *mend, uint32_t from,
                   uint32_t to);
/* Every name that the environment offers at the error, sorted. */
const SymbolVec *mend_known_names(Mender *m);
/* mend/decl.c: the types that are declared again where item `at`, a type, is declared as `now`, and the
 * items that mention one of them. False: it takes the whole text to know. */
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

/* Parts of these that several use. */
void mend_slips(Mender *m); /* mend/far.c: a name bound once, nearly the one that is missing */
void mend_elements(Mender *m,
                   size_t open); /* mend/far.c: a tensor literal, an element more or fewer */
void mend_literal(Mender *m, size_t token); /* mend/near.c: the other kind of number; no suffix */
void mend_cast(Mender *m, uint32_t begin, uint32_t end, const char *dtype); /* mend/wrap.c */
bool mend_remove_part(Mender *m, const MendParts *parts, size_t k); /* k: its first token's index */
const char *mend_with_sigil(const Mender *m, size_t token, const Symbol *name); /* as it has it */
bool mend_is_of_shapes(DiagCode code); /* R03…, but those of dtypes */
void mend_values(const Mender *m, MendValues *v);
bool mend_has_size(const MendValues *v, const Symbol *s);
/* mend/words.c: whether spelling a is likelier than b. */
bool mend_is_likelier(Mender *m, const Symbol *a, const Symbol *b);

#endif
