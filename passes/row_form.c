/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/row_form.h"

#include "passes/batch.h"
#include "passes/vmap.h"
#include "types/solve/solver.h"

enum { DEEPEST = 32 /* declarations within declarations */ };

RowForm *row_form_leaf(Type *type, bool is_whole) {
    RowForm *f = mem_new(RowForm);
    *f = (RowForm){.type = type, .is_whole = is_whole};
    return f;
}

RowForm *row_form_parts(Ctor *ctor, RowForm **parts, uint32_t n) {
    RowForm *f = mem_new(RowForm);
    *f = (RowForm){.ctor = ctor, .parts = parts, .n = n};
    return f;
}

void row_form_leaves(const RowForm *form, RowFormVec *out) {
    if (!form->parts)
        vec_push(out, form);
    for (uint32_t i = 0; i < form->n; i++)
        row_form_leaves(form->parts[i], out);
}

/* ---- of a type ------------------------------------------------------------------------------- */

/* stacked: the type is that of all rows. */
static RowForm *form_of_type(Type *t, bool stacked, int depth);

static RowForm *form_of_types(Ctor *ctor, Type *const *types, uint32_t n, bool stacked, int depth) {
    RowForm **parts = mem_new_n(RowForm *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(parts[i] = form_of_type(types[i], stacked, depth + 1)))
            return NULL;
    return row_form_parts(ctor, parts, n);
}

static bool holds_data(Type *t) {
    t = type_resolve(t);
    if (t->tag != TY_TUPLE)
        return t->tag != TY_TENSOR;
    for (uint32_t i = 0; i < t->nargs; i++)
        if (holds_data(t->args[i]))
            return true;
    return false;
}

static RowForm *form_of_type(Type *t, bool stacked, int depth) {
    t = type_resolve(t);
    if (depth > DEEPEST)
        return NULL;
    if (!holds_data(t)) {
        Type *row = stacked ? vmap_type_of_row(t) : t;
        return row ? row_form_leaf(row, false) : NULL;
    }
    switch (t->tag) {
    case TY_TUPLE: return form_of_types(NULL, t->args, t->nargs, stacked, depth);
    case TY_STRING:
    case TY_FN:
    case TY_REF: return row_form_leaf(t, true);
    case TY_DATA: break;
    default: return NULL;
    }
    const TypeDecl *decl = t->decl;
    if (decl->nctors != 1 || decl->nexists || decl->nparams != t->nargs)
        return NULL;
    Ctor *ctor = decl->ctors[0];
    Type **fields = mem_new_n(Type *, (size_t)ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        fields[i] = type_substitute(ctor->fields[i], decl->params, t->args, t->nargs);
    return form_of_types(ctor_of_values(ctor), fields, ctor->nfields, stacked, depth);
}

RowForm *row_form_of_type(Type *row) { return form_of_type(row, false, 0); }

RowForm *row_form_of_rows(Type *rows) { return form_of_type(rows, true, 0); }

/* ---- types of data --------------------------------------------------------------------------- */

static bool is_nothing(const RowForm *f) {
    const Type *t = f->type ? type_resolve(f->type) : NULL;
    return !f->parts && t && t->tag == TY_TUPLE && !t->nargs;
}

static bool holds_nothing(const RowForm *f) {
    bool found = is_nothing(f);
    for (uint32_t i = 0; i < f->n && !found; i++)
        found = holds_nothing(f->parts[i]);
    return found;
}

/* Whether it is data of that declaration. Gives it the type, with unknowns for what its fields do not say. */
static bool settle_as(Solver *s, RowForm *f, TypeDecl *decl) {
    const Ctor *ctor = decl->ctors[f->ctor->tag];
    uint32_t n = decl->nparams + decl->nexists;
    Type **from = mem_new_n(Type *, (size_t)n + 1), **to = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        from[i] = i < decl->nparams ? decl->params[i] : decl->exists[i - decl->nparams];
        to[i] = solver_var(s, type_resolve(from[i])->kind);
    }
    f->type = type_data(decl, to, decl->nparams);
    bool fits = true;
    for (uint32_t i = 0; i < f->n && fits; i++) {
        Type *field = type_substitute(ctor->fields[i], from, to, n);
        fits = type_has(field, TY_DERIV) || solver_unify(s, field, f->parts[i]->type);
    }
    return fits;
}

/* A row may itself be rows, of a declaration that says how many axes there are. What fits no declaration and has () in it
 * is a cotangent. */
static bool settle_data(Solver *s, RowForm *f) {
    enum { MOST_ROWS = 4 };
    TypeDecl *decl = f->ctor->decl;
    for (int i = 0; i < MOST_ROWS && decl; i++, decl = type_decl_rows(decl))
        if (settle_as(s, f, decl))
            return true;
    (void)settle_as(s, f, f->ctor->decl);
    f->type = type_deriv(f->type);
    return holds_nothing(f);
}

static bool settle(Solver *s, RowForm *f) {
    Type **types = mem_new_n(Type *, (size_t)f->n + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        if (!settle(s, f->parts[i]))
            return false;
        types[i] = f->parts[i]->type;
    }
    if (f->ctor)
        return settle_data(s, f);
    if (f->parts)
        f->type = type_tuple(types, f->n);
    else if (!f->type)
        f->type = solver_var(s, KIND_TYPE);
    return true;
}

/* What nothing says of a type stays open. */
static void finish(Solver *s, RowForm *f) {
    Map seen = {0};
    TypeVec vars = {0};
    for (uint32_t i = 0; i < f->n; i++)
        finish(s, f->parts[i]);
    type_collect(f->type, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        (void)solver_unify(s, vars.data[i], type_param(sym_intern("a"), vars.data[i]->kind));
    f->type = type_zonk(f->type);
}

bool row_forms_settle(RowForm *const *forms, uint32_t n) {
    Diags unheard = {0};
    Solver *s = solver_new(&unheard);
    for (uint32_t i = 0; i < n; i++)
        if (!settle(s, forms[i]))
            return false;
    for (uint32_t i = 0; i < n; i++)
        finish(s, forms[i]);
    return true;
}

/* ---- code ------------------------------------------------------------------------------------ */

Expr *row_form_make(const Build *b, const RowForm *form, Var *const *vars, uint32_t *at) {
    if (!form->parts)
        return b_ref(b, vars[(*at)++]);
    Expr **parts = mem_new_n(Expr *, (size_t)form->n + 1);
    for (uint32_t i = 0; i < form->n; i++)
        parts[i] = row_form_make(b, form->parts[i], vars, at);
    return form->ctor ? batch_construct(form->ctor, parts, form->type, b->span)
                      : b_tuple(b, parts, form->n);
}

Pattern *row_form_pattern(const Build *b, const RowForm *form, Type *all, Var *const *vars,
                          uint32_t *at) {
    if (!form->parts) {
        Pattern *p = b_pattern(b, PAT_VAR, vars[*at]->type);
        p->var = vars[(*at)++];
        return p;
    }
    Pattern *p = b_pattern(b, form->ctor ? PAT_CTOR : PAT_TUPLE, all);
    const Type *t = type_resolve(all);
    bool is_tuple = !form->ctor && t->tag == TY_TUPLE && t->nargs == form->n;
    p->ctor = form->ctor;
    p->nargs = form->n;
    p->args = mem_new_n(Pattern *, (size_t)form->n + 1);
    for (uint32_t i = 0; i < form->n; i++)
        p->args[i] = row_form_pattern(b, form->parts[i],
                                      is_tuple ? t->args[i] : b_some_type("part"), vars, at);
    return p;
}
