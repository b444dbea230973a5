/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns against the type of what is matched; their variables are bound in the scope of the arm. And what
 * is said of the arms once they are known. */
#include "types/infer/cover.h"
#include <string.h>

#include "types/infer/state.h"

static Pattern *pattern_new(PatternKind kind, Type *type, Span span) {
    Pattern *p = mem_new(Pattern);
    p->kind = kind;
    p->type = type;
    p->span = span;
    return p;
}

static bool fits(Infer *I, Type *type, Type *pattern_type, Span span, TypePlace place) {
    solver_set_place(I->s, span, place_of_words("this pattern"));
    if (solver_unify(I->s, type, pattern_type))
        return true;
    TypeNamer namer = {0};
    const char *found = type_text_with(&namer, type);
    Diag *d = infer_error(I, DIAG_R0208, span, "%s cannot match a value of type %s",
                          type_place_text(&place), found);
    if (d) {
        diag_note_type(d, type);
        diag_note_type(d, pattern_type);
        diag_set_label(d, "matches %s", type_text_with(&namer, pattern_type));
        diag_add_mismatch(I, d, &namer);
    }
    return false;
}

static Pattern *name_pattern(Infer *I, const AstPattern *p, Type *type);

static Pattern *ctor_pattern(Infer *I, const AstPattern *p, const Ctor *ctor, Type *type,
                             const Expr *value) {
    Type *t = type_resolve(type);
    bool derives = t->tag == TY_DERIV; /* its fields are those of the data, differentiated */
    t = derives ? type_resolve(t->elem) : t;
    Pattern *out = pattern_new(PAT_CTOR, type, p->span);
    out->ctor = ctor_of_values(ctor);
    ctor = ctor_of_type(ctor, t);
    out->nargs = ctor->nfields;
    out->args = mem_new_n(Pattern *, ctor->nfields + 1);
    bool known = t->tag == TY_DATA && t->decl == ctor->decl;
    CtorInstance inst = ctor_instantiate(I, ctor, known ? t->args : NULL, OPEN_UNKNOWN,
                                         infer_opened(I, value, ctor));
    if (!known && !fits(I, type, inst.data, p->span, place_of_name(ctor->name->text)))
        return pattern_new(PAT_WILDCARD, type, p->span);
    for (uint32_t i = 0; derives && known && i < ctor->nfields; i++)
        inst.fields[i] = type_deriv(inst.fields[i]);
    if (p->kind == AST_PAT_RECORD) {
        if (!ctor->field_names) {
            infer_error(I, DIAG_R0208, p->span, "constructor `%s` has no named fields",
                        ctor->name->text);
            return pattern_new(PAT_WILDCARD, type, p->span);
        }
        for (size_t i = 0; i < p->args.len; i++) {
            uint32_t k = 0;
            while (k < ctor->nfields && ctor->field_names[k] != p->fields.data[i].sym)
                k++;
            if (k == ctor->nfields) {
                Diag *d = infer_error(I, DIAG_R0208, p->fields.data[i].span,
                                      "`%s` has no field `%s`", ctor->name->text,
                                      p->fields.data[i].sym->text);
                if (d)
                    d->missing = p->fields.data[i].sym;
                const Symbol *near = sym_find_nearest(p->fields.data[i].sym, ctor->field_names,
                                                      ctor->nfields, &I->env->budget);
                if (d && near)
                    diag_set_guess(d, near);
                return pattern_new(PAT_WILDCARD, type, p->span);
            }
            out->args[k] = infer_pattern(I, p->args.data[i], inst.fields[k], NULL);
        }
        for (uint32_t k = 0; k < ctor->nfields; k++) {
            if (!out->args[k])
                out->args[k] = pattern_new(PAT_WILDCARD, inst.fields[k], p->span);
        }
        return out;
    }
    if (p->args.len != ctor->nfields) {
        Diag *d = infer_error(I, DIAG_R0208, p->span,
                              "`%s` has %u field%s, and the pattern has %zu", ctor->name->text,
                              ctor->nfields, ctor->nfields == 1 ? "" : "s", p->args.len);
        if (d && ctor->span.source && !(ctor->span.source->flags & SOURCE_INTERNAL))
            diag_add_label_of(d, DIAG_ROLE_DECLARATION, ctor->span, "declared here");
        return pattern_new(PAT_WILDCARD, type, p->span);
    }
    for (uint32_t i = 0; i < ctor->nfields; i++)
        out->args[i] = infer_pattern(I, p->args.data[i], inst.fields[i], NULL);
    return out;
}

static Pattern *name_pattern(Infer *I, const AstPattern *p, Type *type) {
    const Symbol *name = p->name.sym;
    Pattern *out = pattern_new(PAT_VAR, type, p->span);
    out->var = var_new(name, type, p->name.span);
    scope_bind(I, name, p->name.sigil != SIGIL_NONE, out->var);
    return out;
}

static Pattern *tuple_pattern(Infer *I, const AstPattern *p, Type *type) {
    uint32_t n = (uint32_t)p->args.len;
    Type *t = type_resolve(type);
    if (t->tag != TY_TUPLE || t->nargs != n) {
        Type **args = mem_new_n(Type *, n + 1);
        for (uint32_t i = 0; i < n; i++)
            args[i] = solver_var(I->s, KIND_TYPE);
        Type *tuple = type_tuple(args, n);
        if (!fits(I, type, tuple, p->span, (TypePlace){.kind = PLACE_PATTERN, .index = n}))
            return pattern_new(PAT_WILDCARD, type, p->span);
        t = type_resolve(type);
        if (t->tag != TY_TUPLE)
            t = tuple;
    }
    Pattern *out = pattern_new(PAT_TUPLE, type, p->span);
    out->nargs = n;
    out->args = mem_new_n(Pattern *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out->args[i] = infer_pattern(I, p->args.data[i], t->args[i], NULL);
    return out;
}

static Pattern *literal_pattern(Infer *I, const AstPattern *p, Type *type) {
    if (p->kind == AST_PAT_STRING) {
        Pattern *out = pattern_new(PAT_STRING, type, p->span);
        out->text = p->literal->text;
        out->text_len = p->literal->text_len;
        fits(I, type, type_string(), p->span, place_of_words("a String literal"));
        return out;
    }
    Pattern *out = pattern_new(PAT_LIT, type, p->span);
    Ast *lit = p->literal;
    bool negative = false;
    if (lit->kind == AST_UNARY && lit->op == UNOP_NEG) {
        negative = true;
        lit = lit->a;
    }
    out->lit = lit->kind == AST_BOOL ? expr_bool(lit->i != 0, p->span)
                                     : infer_literal(I, lit, negative);
    fits(I, type, out->lit->type, p->span, place_of_words("a literal"));
    return out;
}

static const Ctor *list_ctor(Infer *I, const char *name, Span span) {
    const Ctor *c = env_prelude_ctor(I->env, name);
    if (!c)
        infer_error(I, DIAG_R0102, span,
                    "lists need the prelude's type `List`, which is not loaded");
    return c;
}

/* `list[p, q]` and `p :: ps` as patterns of constructors, made in a loop. */
static Pattern *list_pattern(Infer *I, const AstPattern *p, Type *type) {
    const Ctor *cons = list_ctor(I, "Cons", p->span), *nil = list_ctor(I, "Nil", p->span);
    if (!cons || !nil)
        return pattern_new(PAT_WILDCARD, type, p->span);
    CtorInstance inst = ctor_instantiate(I, cons, NULL, OPEN_UNKNOWN, NULL);
    if (!fits(I, type, inst.data, p->span, place_of_words("a list pattern")))
        return pattern_new(PAT_WILDCARD, type, p->span);
    Pattern *first = NULL, **slot = &first;
    bool list = p->kind == AST_PAT_LIST;
    size_t n = list ? p->args.len : 1;
    for (;;) {
        for (size_t i = 0; i < n; i++) {
            Pattern *node = pattern_new(PAT_CTOR, type, p->span);
            node->ctor = (Ctor *)cons;
            node->listed = true;
            node->nargs = 2;
            node->args = mem_new_n(Pattern *, 2);
            node->args[0] = infer_pattern(I, p->args.data[i], inst.fields[0], NULL);
            *slot = node;
            slot = &node->args[1];
        }
        if (list) {
            *slot = pattern_new(PAT_CTOR, type, p->span);
            (*slot)->ctor = (Ctor *)nil;
            (*slot)->listed = true;
            return first;
        }
        p = p->args.data[1];
        if (p->kind != AST_PAT_CONS || p->type) {
            *slot = infer_pattern(I, p, type, NULL);
            return first;
        }
    }
}

static Pattern *bare_name(Infer *I, const AstPattern *p, Type *type, const Expr *value) {
    if (p->name.sigil == SIGIL_NONE && !I->pattern_binds) {
        Ctor *ctor = scope_find_ctor(I, p->name.sym);
        if (ctor)
            return ctor_pattern(I, p, ctor, type, value);
        char c = p->name.sym->text[0];
        if ((c >= 'A' && c <= 'Z') || strchr(p->name.sym->text, '.')) {
            Diag *d = infer_error(I, DIAG_R0113, p->name.span, "there is no constructor `%s`",
                                  p->name.sym->text);
            if (d) {
                d->missing = p->name.sym;
                const Symbol *near = env_suggest(I->env, p->name.sym, false);
                if (near)
                    diag_set_guess(d, near);
                diag_add_fact(d, "a variable in a pattern begins with a small letter");
            }
            return pattern_new(PAT_WILDCARD, type, p->span);
        }
    }
    return name_pattern(I, p, type);
}

static Pattern *pattern(Infer *I, const AstPattern *p, Type *type, const Expr *value) {
    switch (p->kind) {
    case AST_PAT_WILDCARD: return pattern_new(PAT_WILDCARD, type, p->span);
    case AST_PAT_NAME: return bare_name(I, p, type, value);
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: return literal_pattern(I, p, type);
    case AST_PAT_CTOR:
    case AST_PAT_RECORD: {
        Ctor *ctor = scope_find_ctor(I, p->name.sym);
        if (ctor)
            return ctor_pattern(I, p, ctor, type, value);
        Diag *d = infer_error(I, DIAG_R0113, p->name.span, "there is no constructor `%s`",
                              p->name.sym->text);
        if (d)
            d->missing = p->name.sym;
        const Symbol *near = d ? env_suggest(I->env, p->name.sym, false) : NULL;
        if (near)
            diag_set_guess(d, near);
        return pattern_new(PAT_WILDCARD, type, p->span);
    }
    case AST_PAT_TUPLE: return tuple_pattern(I, p, type);
    case AST_PAT_PAREN: {
        /* `(p)` matched against a 1-tuple is the pattern of a 1-tuple */
        Type *t = type_resolve(type);
        if (t->tag == TY_TUPLE && t->nargs == 1)
            return tuple_pattern(I, p, type);
        return infer_pattern(I, p->args.data[0], type, value);
    }
    case AST_PAT_CONS:
    case AST_PAT_LIST: return list_pattern(I, p, type);
    }
    return pattern_new(PAT_WILDCARD, type, p->span);
}

Pattern *infer_pattern(Infer *I, const AstPattern *p, Type *type, const Expr *value) {
    if (p->type) {
        Type *t = infer_ast_type(I, p->type, KIND_TYPE);
        fits(I, type, t, p->type->span, place_of_words("this annotation"));
    }
    if (I->pattern_depth >= TYPE_MAX_DEPTH) {
        infer_error(I, DIAG_R0009, p->span, "patterns nest more than %d deep", TYPE_MAX_DEPTH);
        return pattern_new(PAT_WILDCARD, type, p->span);
    }
    I->pattern_depth++;
    Pattern *out = pattern(I, p, type, value);
    I->pattern_depth--;
    return out;
}

/* The part of a pattern that binds which asks for one of several cases: a literal, a list, a constructor of a type
 * that has more. NULL where it takes every value. */
static const AstPattern *find_choice(Infer *I, const AstPattern *p) {
    switch (p->kind) {
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING:
    case AST_PAT_CONS:
    case AST_PAT_LIST: return p;
    case AST_PAT_CTOR:
    case AST_PAT_RECORD: {
        const Ctor *ctor = scope_find_ctor(I, p->name.sym);
        if (ctor && ctor->decl->nctors > 1)
            return p;
        break;
    }
    case AST_PAT_WILDCARD:
    case AST_PAT_NAME:
    case AST_PAT_TUPLE:
    case AST_PAT_PAREN: break;
    }
    const AstPattern *found = NULL;
    for (size_t i = 0; i < p->args.len && !found; i++)
        found = find_choice(I, p->args.data[i]);
    return found;
}

void infer_take_apart(Infer *I, const AstPattern *p, Type *type) {
    size_t mark = scope_mark(I);
    I->pattern_binds = true;
    Pattern *pattern = infer_pattern(I, p, type, NULL);
    const AstPattern *choice = infer_failed(I) ? NULL : find_choice(I, p);
    I->pattern_binds = false;
    scope_restore(I, mark);
    if (!choice)
        return;
    Arm arm = {.pattern = pattern};
    Cover cover = cover_arms(&arm, 1, type, false);
    Diag *d = infer_error(I, DIAG_R0222, choice->span, "this pattern does not take every value");
    if (!d)
        return;
    if (cover.missing)
        diag_set_label(d, "the value may be `%s`", cover.missing);
    diag_add_help(d, "`match` tells cases apart: `match (e) { pattern => ..., _ => ... }`");
}

/* ---- the arms of a match --------------------------------------------------------------------- */

/* Messages about the arms of a `match`: a value without an arm, arms that are never taken. cover.c finds what the
 * arms cover. */

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
