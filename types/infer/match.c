/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about the arms of a `match`: a value without an arm, arms that are never taken. cover.c finds what the
 * arms cover. */
#include <string.h>

#include "types/infer/cover.h"
#include "types/infer/state.h"

static void warn_unreachable(Infer *I, const Expr *e, uint32_t arm, Covering *covering) {
    Diag *d = infer_warning(I, DIAG_R0903, e->arms[arm].pattern->span, "this arm is never taken");
    if (!d)
        return;
    diag_set_label(d, "never matches");
    uint32_t by[3], n = covering_find(covering, arm, by, 3);
    const Pattern *first = n == 1 ? e->arms[by[0]].pattern : NULL;
    bool named = first && first->kind == PAT_VAR;
    for (uint32_t i = 0; i < n && !named; i++)
        diag_add_label(d, e->arms[by[i]].pattern->span,
                       n == 1 ? "this arm comes first" : "this arm takes some of its values");
    if (named)
        diag_add_label(d, first->span, "this arm comes first: `%s` is a name for any value",
                       first->var->name->text);
    const char *habit = named ? infer_habit_of(first->var->name) : NULL;
    if (habit)
        diag_add_help(d, "%s", habit);
    diag_add_fact(d, n == 1 ? "the arm before it covers every value it could match"
                            : "the arms before it cover every value it could match");
}

/* Suggests the missing arms, each calling `error`, before the brace that closes the match. */
static void suggest_arms(Infer *I, const Expr *e, const Cover *cover, Diag *d) {
    const Source *source = e->span.source;
    bool in_prelude;
    const Symbol *error = sym_intern("error");
    if (!cover->narms || !e->narms || !source || I->module->versioned || map_has(&I->names, error))
        return;
    if (!env_find_global(I->env, error, &in_prelude) || !in_prelude)
        return;
    uint32_t at = e->span.end, first = e->arms[0].pattern->span.begin;
    if (at <= e->span.begin || source->text[--at] != '}')
        return;
    while (at > e->span.begin && strchr(" \t\r\n", source->text[at - 1]))
        at--;
    while (first > e->span.begin && strchr(" \t\r\n", source->text[first - 1]))
        first--;
    bool bars = first > e->span.begin && source->text[first - 1] == '|';
    Str text = {0}, shown = {0};
    for (uint32_t i = 0; i < cover->narms; i++) {
        bool comma = i || source->text[at - 1] != ',';
        str_printf(&text, "%s%s %s error(\"not covered\")",
                   bars    ? " | "
                   : comma ? ", "
                           : " ",
                   cover->arms[i], bars ? "->" : "=>");
        str_printf(&shown, "%s`%s => ...`", i ? ", " : "", cover->arms[i]);
    }
    Span where = {source, at, at};
    bool one = cover->narms == 1;
    diag_add_fix(d, where, str_text(&text), type_text(e->type), "the arm%s %s %s missing",
                 one ? "" : "s", str_text(&shown), one ? "is" : "are");
}

static void report_missing(Infer *I, const Expr *e, const Cover *cover) {
    Span span = e->a ? e->a->span : e->span;
    if (cover->gave_up) {
        Diag *d = infer_error(I, DIAG_R0210, span,
                              "the arms of this `match` are too many to tell what they cover");
        if (!d)
            return;
        diag_set_label(d, "%s", type_text(e->a->type));
        diag_add_fact(d,
                      "a last arm `_ => ...` takes what may be left; `match?` leaves it to fail");
        return;
    }
    bool any = strcmp(cover->missing, "_") == 0;
    Diag *d = infer_error(I, DIAG_R0210, span,
                          any ? "this `match` does not cover every value"
                              : "this `match` does not cover `%s`",
                          cover->missing);
    if (!d)
        return;
    diag_set_label(d, "%s", type_text(e->a->type));
    diag_add_fact(d, "`match?` is for a match that is meant to be partial");
    suggest_arms(I, e, cover, d);
}

void match_check(Infer *I, Expr *e) {
    if (type_resolve(e->a->type)->tag == TY_ERROR)
        return;
    Cover cover = cover_arms(e->arms, e->narms, e->a->type, e->partial);
    Covering *covering = NULL;
    for (uint32_t i = 0; i < e->narms; i++) {
        if (cover.useful[i])
            continue;
        if (!covering)
            covering = covering_new(e->arms, e->narms, e->a->type);
        warn_unreachable(I, e, i, covering);
    }
    if (!e->partial && !cover.complete)
        report_missing(I, e, &cover);
}
