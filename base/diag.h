/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: the user's mistakes, as data first and text last.
 *
 * Whoever detects a mistake builds one Diag and reports it, once, to the Diags it was handed;
 * callers pass false or NULL up. Codes stand in diag.def (code, severity, title, explanation,
 * example). Our own mistakes are BUG("…"); nothing else ends the process. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include "base/span.h"
#include "base/str.h"
#include "base/symbol.h"
#include "base/vec.h"

typedef enum DiagCode {
    DIAG_NONE,
#define DIAG(code, severity, title, explanation, bad, good) DIAG_##code,
#include "base/diag.def"
#undef DIAG
    DIAG_COUNT
} DiagCode;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

typedef struct DiagInfo {
    const char *name; /* "R0312" */
    Severity severity;
    const char *title;       /* what `explain` heads its page with */
    const char *explanation; /* two to six sentences */
    const char *bad, *good;  /* a program that draws it, and the same program mended */
} DiagInfo;

const DiagInfo *diag_get_info(DiagCode code);
DiagCode diag_find_code(const char *name); /* DIAG_NONE when there is none */

/* Note [Diagnostics are data]. Text is for people alone: no code looks into it. Whoever makes a diagnostic
 * also fills in the fields that say what it is about, and whoever looks for the cause (types/mend) reads
 * these. tests/lint.py refuses a search in a message, a label, a fact or a help outside of base/diag*.c. */

/* What a type that is shown looks like from outside. */
typedef enum DiagForm {
    DIAG_FORM_NONE, /* no type is shown */
    DIAG_FORM_OTHER,
    DIAG_FORM_SCALAR, /* a tensor of rank 0 */
    DIAG_FORM_TENSOR,
    DIAG_FORM_LIST,
    DIAG_FORM_OPTION,
    DIAG_FORM_STRING,
    DIAG_FORM_TUPLE,
    DIAG_FORM_REF,
} DiagForm;
typedef struct DiagType {
    DiagForm form;
    const Symbol *dtype; /* of a scalar or tensor, where it is known; else NULL */
} DiagType;

typedef enum DiagRole {
    DIAG_ROLE_PLACE,
    DIAG_ROLE_HEADING,     /* says what the excerpt of another source is of: "in `layer`" */
    DIAG_ROLE_DECLARATION, /* where the constructor is declared whose fields are counted */
    DIAG_ROLE_GUESS,       /* where the name is bound that `guess` offers */
} DiagRole;

typedef struct DiagLabel {
    Span span;
    const char *text; /* may be "" */
    DiagRole role;
    DiagType type;      /* of what stands there, where the label says it */
    const Source *made; /* the earlier entry that made it, where the label says it; else NULL */
} DiagLabel;

/* Which of the mistakes of its code it is, where that matters. */
typedef enum DiagCause {
    DIAG_CAUSE_NONE,
    DIAG_CAUSE_INDEX, /* what is indexed has not so many axes, or is neither tensor nor tuple */
    DIAG_CAUSE_ATTR_DTYPE, /* an attribute that is a dtype is given something else */
    DIAG_CAUSE_NO_ELSE,    /* an `if` without an `else` */
    DIAG_CAUSE_SIZE,       /* a number that is no size */
    DIAG_CAUSE_LINE_END,   /* lines of a block lack their `;`; the one fix adds it to each */
    DIAG_CAUSE_LANES,      /* a dtype of several lanes: no other name is meant */
    DIAG_CAUSE_IMPORT,     /* a name of a module that is not imported: likewise */
    DIAG_CAUSE_COMMAND,    /* a command of the prompt in a file: no other text is meant */
} DiagCause;

/* A change of the program that was made and checked: the text that takes the place of each span (which
 * may be empty: an insertion). */
typedef struct DiagEdit {
    Span span;
    const char *text;
} DiagEdit;

/* Where sizes come from, said in one fact: "3 and 4 come from the file x.npy". */
typedef struct DiagOrigin {
    size_t fact;       /* in facts */
    const char *sizes; /* "3 and 4" */
    const char *where; /* "the file x.npy" */
} DiagOrigin;

/* What could be done that was not tried, and the name it says to write, or NULL. */
typedef struct DiagHelp {
    const char *text;
    const Symbol *name;
    bool untried; /* it was a fix that did not check */
} DiagHelp;

typedef struct DiagFix {
    const char *message; /* printed `= help: message`; says the type of the result */
    const Symbol *name;  /* "did you mean this?", or NULL */
    const char *type;    /* of the edited expression, or "" */
    VEC(DiagEdit) edits;
} DiagFix;

typedef struct Diag {
    DiagCode code;
    const char *message; /* lower case, no full stop, identifiers in backticks */
    DiagLabel primary;
    VEC(DiagLabel) labels;   /* secondary places */
    VEC(const char *) facts; /* printed `= fact` */
    VEC(DiagHelp) helps;     /* printed `= help: …` */
    VEC(DiagFix *) fixes;    /* suggestions as data; only what was checked */
    /* What it is about: Note [Diagnostics are data]. */
    DiagCause cause;
    const Symbol *missing;      /* the name that is not there; may be qualified: `nn.dens` */
    const Symbol *guess;        /* the name spelt like it that the primary label or a fact offers */
    size_t guess_fact;          /* 1 + that fact's place in facts; 0: the label offers it */
    const Symbol *op;           /* the operator whose arguments are wrong */
    DiagType expected, found;   /* where one type is asked for */
    int axis;                   /* where one axis is at fault; else -1 */
    VEC(const Symbol *) dtypes; /* that it speaks of, each once; so of sizes, as they are written */
    VEC(const Symbol *) sizes;
    VEC(DiagOrigin) origins;
    const char
        *expects; /* of a text that cannot be read: the tokens that could stand there, each between
                            blanks: " ; in " */
} Diag;

/* Where diagnostics of one run are collected. */
typedef struct Diags {
    VEC(Diag *) list;
    size_t errors, warnings;
} Diags;

Diag *diag_new(DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_set_label(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_add_label(Diag *d, Span span, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Its role is another than DIAG_ROLE_PLACE. */
void diag_add_label_of(Diag *d, DiagRole role, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_add_heading(Diag *d, Span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_add_fact(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_add_help(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One that replaces `span`; more edits may be pushed. type: of the edited expression, or NULL. */
DiagFix *diag_add_fix(Diag *d, Span span, const char *replacement, const char *type,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* "did you mean `guess`?" as the primary label, or as a fact. */
void diag_set_guess(Diag *d, const Symbol *guess);
void diag_add_guess_fact(Diag *d, const Symbol *guess);
/* A help that tells to write a name. */
void diag_add_name_help(Diag *d, const Symbol *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_drop_fact(Diag *d, size_t fact);
/* "SIZES comes from WHERE", in one fact with other sizes that come from there. */
void diag_add_comes(Diag *d, const char *sizes, const char *where);
void diag_note_dtype(Diag *d, const Symbol *dtype);
void diag_note_size(Diag *d, const Symbol *size);
void diag_note_size_first(Diag *d, const Symbol *size); /* one of those at fault */
/* expects: from what was expected in words, "`;` or `in`", as it is said. */
void diag_set_expects(Diag *d, const char *what);
bool diag_is_expected(const Diag *d, const char *token);
/* Whether they say the same: in the message, of a place, in the first fact; and whether a fix says so. */
bool diag_has_same_message(const Diag *a, const Diag *b);
bool diag_has_same_fact(const Diag *a, const Diag *b);
bool diag_label_says_same(const DiagLabel *a, const DiagLabel *b);
bool diag_has_fix(const Diag *d, const char *message);
void diag_report(Diags *diags, Diag *d);

/* diag_new + diag_report for the one-line cases. */
Diag *diag_error(Diags *diags, DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

typedef enum DiagStyle { DIAG_STYLE_FULL, DIAG_STYLE_SHORT, DIAG_STYLE_JSON } DiagStyle;
typedef struct DiagLook {
    DiagStyle style;
    bool color;
    int width; /* of the terminal, into which the full style fits; 0: no terminal */
} DiagLook;
void diag_print(Str *out, const Diag *d, const DiagLook *look);
/* All of a run, source by source in order of place. The full style stops after five errors (and five
 * warnings) with `and N more`. */
void diags_print(Str *out, const Diags *diags, const DiagLook *look);

/* The parts of diag_print; callers want diag_print. */
const char *severity_name(Severity severity);
void diag_print_short(Str *out, const Diag *d);
void diag_print_json(Str *out, const Diag *d);
void diag_add_json_text(Str *out, const char *text); /* a string, in quotes */
void diag_add_json_span(Str *out, Span span);        /* "file":…,"line":…, and so on */

/* Our own mistake: prints "this is a bug in Relay", what is wrong, and the place in our sources; ends the
 * process with status 1. */
#define BUG(...) bug_(__FILE__, __LINE__, __VA_ARGS__)
/* How --verify-types ends where a value is not of its static type. */
enum { BUG_STATUS = 1, BUG_STATUS_MISMATCH = 3 };
void bug_set_handler(void (*fn)(const char *message)); /* only tests set one; must not return */
_Noreturn void bug_end(const char *message, int status);
_Noreturn void bug_(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
