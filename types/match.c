/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustiveness and redundancy of `match`, after L. Maranget, "Warnings for pattern matching", JFP
 * 2007: a matrix of patterns, specialised by constructor, column after column. Missing values are
 * shown as an example. Guarded arms and float literals cover nothing (LANGUAGE §4).
 *
 * The problem is NP-hard; after FUEL steps the match is taken to be complete (it then fails when
 * running, as `match?` does). */
#include <string.h>

#include "types/infer_state.h"

enum { FUEL = 2000000 };

typedef struct Row {
    Pattern **p; /* ncols of them; NULL is a wildcard */
} Row;
typedef VEC(Row) Matrix;

typedef struct Match {
    long fuel;
} Match;

static bool is_wild(const Pattern *p)
{
    return !p || p->kind == PAT_WILDCARD || p->kind == PAT_VAR;
}

static bool is_bool_lit(const Pattern *p)
{
    return p->kind == PAT_LIT && type_is_scalar(p->lit->type, DT_BOOL);
}

/* Whether two refutable patterns have the same head. */
static bool same_head(const Pattern *a, const Pattern *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case PAT_CTOR: return a->ctor == b->ctor;
    case PAT_TUPLE: return true;
    case PAT_LIT:
        if (a->lit->is_float || b->lit->is_float) return false;
        return a->lit->i == b->lit->i;
    case PAT_STRING:
        return a->text_len == b->text_len && memcmp(a->text, b->text, a->text_len) == 0;
    case PAT_WILDCARD:
    case PAT_VAR: break;
    }
    return false;
}

static Row row_with(const Row *row, uint32_t ncols, Pattern *const *head, uint32_t arity)
{
    Row out = {mem_new_n(Pattern *, ncols - 1 + arity + 1)};
    for (uint32_t i = 0; i < arity; i++) out.p[i] = head ? head[i] : NULL;
    memcpy(out.p + arity, row->p + 1, (ncols - 1) * sizeof *out.p);
    return out;
}

/* The rows whose first column may match the head, their sub-patterns in front. */
static void specialise(Match *m, const Matrix *rows, uint32_t ncols, const Pattern *head,
                       uint32_t arity, Matrix *out)
{
    for (size_t i = 0; i < rows->len; i++) {
        const Row *row = &rows->data[i];
        m->fuel--;
        if (is_wild(row->p[0])) {
            vec_push(out, row_with(row, ncols, NULL, arity));
        } else if (same_head(row->p[0], head)) {
            vec_push(out, row_with(row, ncols, row->p[0]->args, arity));
        }
    }
}

static void default_rows(Match *m, const Matrix *rows, uint32_t ncols, Matrix *out)
{
    for (size_t i = 0; i < rows->len; i++) {
        m->fuel--;
        if (is_wild(rows->data[i].p[0])) vec_push(out, row_with(&rows->data[i], ncols, NULL, 0));
    }
}

static const Pattern *first_head(const Matrix *rows)
{
    for (size_t i = 0; i < rows->len; i++) {
        if (!is_wild(rows->data[i].p[0])) return rows->data[i].p[0];
    }
    return NULL;
}

/* args NULL: any. */
static Pattern *witness_new(PatternKind kind, uint32_t nargs, Pattern *const *args)
{
    Pattern *w = mem_new(Pattern);
    w->kind = kind;
    w->nargs = nargs;
    w->args = mem_new_n(Pattern *, nargs + 1);
    if (nargs && args) memcpy(w->args, args, nargs * sizeof *args);
    return w;
}

static bool find_missing(Match *m, const Matrix *rows, uint32_t ncols, Pattern **witness);

/* Under one head: its missing arguments become one pattern in front of the rest. */
static bool missing_under(Match *m, const Matrix *rows, uint32_t ncols, const Pattern *head,
                          uint32_t arity, Pattern **witness)
{
    Matrix sub = {0};
    specialise(m, rows, ncols, head, arity, &sub);
    Pattern **inner = mem_new_n(Pattern *, ncols + arity);
    if (!find_missing(m, &sub, ncols - 1 + arity, inner)) return false;
    Pattern *w = witness_new(head->kind, arity, inner);
    w->ctor = head->ctor;
    w->lit = head->lit;
    witness[0] = w;
    memcpy(witness + 1, inner + arity, (ncols - 1) * sizeof *witness);
    return true;
}

static bool missing_ctor(Match *m, const Matrix *rows, uint32_t ncols, const Pattern *head,
                         Pattern **witness)
{
    const TypeDecl *decl = head->ctor->decl;
    bool *used = mem_new_n(bool, decl->nctors + 1);
    uint32_t nused = 0;
    for (size_t i = 0; i < rows->len; i++) {
        const Pattern *p = rows->data[i].p[0];
        if (is_wild(p) || p->kind != PAT_CTOR || used[p->ctor->tag]) continue;
        used[p->ctor->tag] = true;
        nused++;
    }
    if (nused < decl->nctors) {
        Matrix rest = {0};
        default_rows(m, rows, ncols, &rest);
        if (!find_missing(m, &rest, ncols - 1, witness + 1)) return false;
        uint32_t absent = 0;
        while (used[absent]) absent++;
        Pattern *w = witness_new(PAT_CTOR, decl->ctors[absent]->nfields, NULL);
        w->ctor = decl->ctors[absent];
        witness[0] = w;
        return true;
    }
    for (uint32_t c = 0; c < decl->nctors; c++) {
        Pattern one = {.kind = PAT_CTOR, .ctor = decl->ctors[c]};
        if (missing_under(m, rows, ncols, &one, decl->ctors[c]->nfields, witness)) return true;
    }
    return false;
}

static bool missing_bool(Match *m, const Matrix *rows, uint32_t ncols, Pattern **witness)
{
    for (int b = 0; b < 2; b++) {
        Pattern one = {.kind = PAT_LIT, .lit = expr_bool(b != 0, span_none())};
        if (missing_under(m, rows, ncols, &one, 0, witness)) return true;
    }
    return false;
}

/* A value vector that no row matches, as patterns (NULL: any). */
static bool find_missing(Match *m, const Matrix *rows, uint32_t ncols, Pattern **witness)
{
    if (--m->fuel < 0) return false;
    if (rows->len == 0) {
        for (uint32_t i = 0; i < ncols; i++) witness[i] = NULL;
        return true;
    }
    if (ncols == 0) return false;
    const Pattern *head = first_head(rows);
    if (head && head->kind == PAT_TUPLE)
        return missing_under(m, rows, ncols, head, head->nargs, witness);
    if (head && head->kind == PAT_CTOR) return missing_ctor(m, rows, ncols, head, witness);
    if (head && is_bool_lit(head)) return missing_bool(m, rows, ncols, witness);
    /* Numbers and Strings never cover all; nor does an empty column of heads. */
    Matrix rest = {0};
    default_rows(m, rows, ncols, &rest);
    if (!find_missing(m, &rest, ncols - 1, witness + 1)) return false;
    witness[0] = NULL;
    return true;
}

/* Whether `row` matches something that `rows` do not. */
static bool is_useful(Match *m, const Matrix *rows, const Row *row, uint32_t ncols)
{
    if (--m->fuel < 0) return true;
    if (ncols == 0) return rows->len == 0;
    if (rows->len == 0) return true;
    const Pattern *p = row->p[0];
    if (!is_wild(p)) {
        uint32_t arity = p->kind == PAT_CTOR || p->kind == PAT_TUPLE ? p->nargs : 0;
        Matrix sub = {0};
        specialise(m, rows, ncols, p, arity, &sub);
        Row inner = row_with(row, ncols, p->args, arity);
        return is_useful(m, &sub, &inner, ncols - 1 + arity);
    }
    const Pattern *head = first_head(rows);
    if (head && head->kind == PAT_TUPLE) {
        Matrix sub = {0};
        specialise(m, rows, ncols, head, head->nargs, &sub);
        Row inner = row_with(row, ncols, NULL, head->nargs);
        return is_useful(m, &sub, &inner, ncols - 1 + head->nargs);
    }
    if (head && head->kind == PAT_CTOR) {
        const TypeDecl *decl = head->ctor->decl;
        for (uint32_t c = 0; c < decl->nctors; c++) {
            Pattern one = {.kind = PAT_CTOR, .ctor = decl->ctors[c]};
            Matrix sub = {0};
            specialise(m, rows, ncols, &one, decl->ctors[c]->nfields, &sub);
            Row inner = row_with(row, ncols, NULL, decl->ctors[c]->nfields);
            if (is_useful(m, &sub, &inner, ncols - 1 + decl->ctors[c]->nfields)) return true;
        }
        return false;
    }
    if (head && is_bool_lit(head)) {
        for (int b = 0; b < 2; b++) {
            Pattern one = {.kind = PAT_LIT, .lit = expr_bool(b != 0, span_none())};
            Matrix sub = {0};
            specialise(m, rows, ncols, &one, 0, &sub);
            Row inner = row_with(row, ncols, NULL, 0);
            if (is_useful(m, &sub, &inner, ncols - 1)) return true;
        }
        return false;
    }
    Matrix rest = {0};
    default_rows(m, rows, ncols, &rest);
    Row inner = row_with(row, ncols, NULL, 0);
    return is_useful(m, &rest, &inner, ncols - 1);
}

/* ---- the example ---------------------------------------------------------------------------------- */

static void print_witness(Str *out, const Pattern *p, int depth)
{
    if (!p || depth == 0) {
        str_add(out, "_");
        return;
    }
    switch (p->kind) {
    case PAT_WILDCARD:
    case PAT_VAR:
    case PAT_STRING: str_add(out, "_"); return;
    case PAT_LIT: str_add(out, p->lit->i ? "True" : "False"); return;
    case PAT_CTOR:
        str_add(out, p->ctor->name->text);
        if (!p->nargs) return;
        break;
    case PAT_TUPLE: break;
    }
    str_add(out, "(");
    for (uint32_t i = 0; i < p->nargs; i++) {
        if (i) str_add(out, ", ");
        print_witness(out, p->args[i], depth - 1);
    }
    str_add(out, p->kind == PAT_TUPLE && p->nargs == 1 ? ",)" : ")");
}

static bool has_float(const Pattern *p)
{
    if (is_wild(p)) return false;
    if (p->kind == PAT_LIT) {
        DType t;
        return p->lit->is_float || (type_get_dtype(p->lit->type, &t) && dtype_is_float(t));
    }
    if (p->kind == PAT_STRING) return false;
    for (uint32_t i = 0; i < p->nargs; i++) {
        if (has_float(p->args[i])) return true;
    }
    return false;
}

static bool is_empty_type(Type *t)
{
    t = type_resolve(t);
    return t->tag == TY_DATA && t->decl->nctors == 0 && !t->decl->is_extern;
}

/* Literals alone need no matrix: what repeats is found by its value. Keeps 10,000 arms linear. */
static bool plain_literals(const Expr *e)
{
    for (uint32_t i = 0; i < e->narms; i++) {
        const Pattern *p = e->arms[i].pattern;
        if (e->arms[i].guard) return false;
        if (is_wild(p)) continue;
        if (p->kind != PAT_LIT || p->lit->is_float || is_bool_lit(p)) return false;
    }
    return true;
}

static void warn_unreachable(Infer *I, const Arm *arm, const Arm *before)
{
    Diag *d = infer_warning(I, DIAG_R0903, arm->pattern->span, "this arm is never taken");
    if (!d) return;
    diag_set_label(d, "never matches");
    if (before) diag_add_label(d, before->pattern->span, "this arm comes first");
    diag_add_fact(d, "the arms before it cover every value it could match");
}

static bool check_literals(Infer *I, const Expr *e)
{
    Map seen = {0};
    const Arm *all = NULL;
    for (uint32_t i = 0; i < e->narms; i++) {
        const Arm *arm = &e->arms[i];
        if (all) {
            warn_unreachable(I, arm, all);
        } else if (is_wild(arm->pattern)) {
            all = arm;
        } else {
            const void *key = (const void *)(uintptr_t)(((uint64_t)arm->pattern->lit->i << 1) | 1);
            const Arm *first = map_find(&seen, key);
            if (first && first->pattern->lit->i == arm->pattern->lit->i) {
                warn_unreachable(I, arm, first);
            } else {
                map_set(&seen, key, (void *)arm);
            }
        }
    }
    return all != NULL;
}

static void report_missing(Infer *I, const Expr *e, Pattern *witness)
{
    Str example = {0};
    print_witness(&example, witness, 12);
    Span span = e->a ? e->a->span : e->span;
    bool any = strcmp(str_text(&example), "_") == 0;
    Diag *d = infer_error(I, DIAG_R0210, span, any ? "this `match` does not cover every value"
                                                   : "this `match` does not cover `%s`",
                          str_text(&example));
    if (!d) return;
    diag_set_label(d, "%s", type_text(e->a->type));
    diag_add_fact(d, "`match?` is for a match that is meant to be partial");
}

void match_check(Infer *I, Expr *e)
{
    if (type_resolve(e->a->type)->tag == TY_ERROR) return;
    if (e->narms == 0 && is_empty_type(e->a->type)) return;
    if (e->narms && plain_literals(e)) {
        if (!check_literals(I, e) && !e->partial) report_missing(I, e, NULL);
        return;
    }
    Match m = {FUEL};
    Matrix rows = {0};
    for (uint32_t i = 0; i < e->narms; i++) {
        Arm *arm = &e->arms[i];
        Row row = {mem_new_n(Pattern *, 1)};
        row.p[0] = arm->pattern;
        if (m.fuel > 0 && !is_useful(&m, &rows, &row, 1)) warn_unreachable(I, arm, NULL);
        if (!arm->guard && !has_float(arm->pattern)) vec_push(&rows, row);
    }
    if (e->partial) return;
    if (e->narms == 0) {
        Type *t = type_resolve(e->a->type);
        Pattern *w = NULL;
        if (t->tag == TY_DATA && t->decl->nctors) {
            w = witness_new(PAT_CTOR, t->decl->ctors[0]->nfields, NULL);
            w->ctor = t->decl->ctors[0];
        }
        report_missing(I, e, w);
        return;
    }
    Pattern *witness[1] = {NULL};
    m.fuel = FUEL;
    if (find_missing(&m, &rows, 1, witness)) report_missing(I, e, witness[0]);
}
