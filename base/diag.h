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

typedef struct DiagLabel {
    Span span;
    const char *text; /* may be "" */
    bool heads;       /* says what the excerpt of another source is of: "in `layer`" */
} DiagLabel;

/* A change of the program that was made and checked: the text that takes the place of each span (which
 * may be empty: an insertion). */
typedef struct DiagEdit {
    Span span;
    const char *text;
} DiagEdit;

typedef struct DiagFix {
    const char *message; /* printed `= help: message`; says the type of the result */
    const char *type;    /* of the edited expression, or "" */
    VEC(DiagEdit) edits;
} DiagFix;

typedef struct Diag {
    DiagCode code;
    const char *message; /* lower case, no full stop, identifiers in backticks */
    DiagLabel primary;
    VEC(DiagLabel) labels;   /* secondary places */
    VEC(const char *) facts; /* printed `= fact` */
    VEC(const char *) helps; /* printed `= help: …` */
    VEC(DiagFix *) fixes;    /* suggestions as data; only what was checked */
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
void diag_add_heading(Diag *d, Span span, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_add_fact(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_add_help(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One that replaces `span`; more edits may be pushed. type: of the edited expression, or NULL. */
DiagFix *diag_add_fix(Diag *d, Span span, const char *replacement, const char *type,
                      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
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

/* Our own mistake: prints "this is a bug in Relay", file and what was being done; ends with
 * status 1 through the handler (the session's), else exit(1). */
#define BUG(...) bug_(__FILE__, __LINE__, __VA_ARGS__)
/* How --verify-types ends where a value is not of its static type. */
enum { BUG_STATUS = 1, BUG_STATUS_MISMATCH = 3 };
_Noreturn void bug_end(const char *message, int status);
_Noreturn void bug_(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void bug_set_handler(void (*fn)(const char *message)); /* must not return */

#endif
