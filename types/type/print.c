/* SPDX-License-Identifier: Apache-2.0 */
/* Types as text (LANGUAGE §6): scalars by their dtype, variables as a, b, c … in order of
 * appearance, unknowns `?`, or `?1` where one occurs twice. Types are DAGs that may be
 * exponentially large as text, so printing stops at a limit and counting enters no node more than
 * twice. */
#include "types/type/print.h"

#include <string.h>

#include "types/type/dim.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* The letters to name a variable by, in this order, for each kind. When they are used up, the first gets a number. */
static const char *const letters[] = {
    [KIND_TYPE] = "acdefghijklopquvwxyz", /* b after a: see candidate */
    [KIND_SHAPE] = "s",
    [KIND_DTYPE] = "bt",
    [KIND_DIM] = "nmkpqhwijlr",
    [KIND_EFFECT] = "e",
};

static const Symbol *candidate(Kind kind, uint32_t i) {
    if (kind == KIND_TYPE && i > 0) {
        if (i == 1)
            return sym_intern("b");
        i--;
    }
    const char *from = letters[kind];
    size_t n = strlen(from);
    if (i < n)
        return sym_intern_n(from + i, 1);
    return sym_intern(fmt_text("%c%zu", from[0], (size_t)i - n + 1));
}

const Symbol *namer_take(TypeNamer *namer, Type *t, const Symbol *name) {
    map_set(&namer->names, t, (void *)name);
    map_set(&namer->taken, name, t);
    return name;
}

const Symbol *namer_name(TypeNamer *namer, Type *t) {
    const Symbol *name = map_find(&namer->names, t);
    if (name)
        return name;
    name = t->tag == TY_VAR ? t->var.hint : t->param.name;
    if (name && !map_has(&namer->taken, name))
        return namer_take(namer, t, name);
    for (uint32_t i = 0;; i++) {
        name = candidate(t->kind, i);
        if (!map_has(&namer->taken, name))
            return namer_take(namer, t, name);
    }
}

/* ---- unknowns: how often each occurs --------------------------------------------------------- */

typedef struct UnknownCount {
    TypeNamer *namer;
    Map visits; /* Type* -> how often entered: twice is enough to see what occurs twice */
    Map in;     /* unknown of which each value has its own -> the value in which it was seen */
    uintptr_t value, nvalues; /* the value being entered: elements, a parameter, a result */
} UnknownCount;

static void count_unknowns(void *count, Type *t);

static void count_in_value(void *count, Type *t) {
    UnknownCount *c = count;
    uintptr_t around = c->value;
    c->value = ++c->nvalues;
    count_unknowns(c, t);
    c->value = around;
}

static void count_unknown(UnknownCount *c, Type *t) {
    /* 1: seen once; 2 + n: printed with the number n */
    Map *unknowns = &c->namer->unknowns;
    uintptr_t seen = (uintptr_t)map_find(unknowns, t);
    bool again = !t->param.each || (uintptr_t)map_find(&c->in, t) == c->value + 1;
    map_set(&c->in, t, (void *)(c->value + 1));
    if (seen == 0)
        map_set(unknowns, t, (void *)(uintptr_t)1);
    else if (seen == 1 && again)
        map_set(unknowns, t, (void *)(uintptr_t)2);
}

static void count_unknowns(void *count, Type *t) {
    UnknownCount *c = count;
    if (t->tag == TY_VAR && t->kind == KIND_TYPE && t->var.link) {
        count_in_value(c, type_resolve(t));
        return;
    }
    t = type_resolve(t);
    if (!(t->flags & (TYPE_HAS_ANY | TYPE_HAS_VARS)))
        return;
    if (t->tag == TY_ANY) {
        count_unknown(c, t);
        return;
    }
    uintptr_t visited = (uintptr_t)map_find(&c->visits, t);
    if (visited == 2)
        return;
    map_set(&c->visits, t, (void *)(visited + 1));
    bool values = t->tag == TY_FN || t->tag == TY_DATA || t->tag == TY_REF;
    type_each_part(t, values ? count_in_value : count_unknowns, c);
}

void namer_count_unknowns(TypeNamer *namer, Type *const *types, size_t n) {
    UnknownCount count = {.namer = namer};
    for (size_t i = 0; i < n; i++)
        count_unknowns(&count, types[i]);
}

static void print_unknown(Str *out, Type *t, TypeNamer *namer) {
    const Symbol *name = map_find(&namer->names, t);
    if (name) { /* of a parameter of the function that is printed */
        str_add(out, name->text);
        return;
    }
    if (t->param.declared) { /* in the body whose signature names it */
        str_add(out, t->param.name->text);
        return;
    }
    uintptr_t seen = (uintptr_t)map_find(&namer->unknowns, t);
    str_add_char(out, '?');
    if (seen < 2)
        return;
    if (seen == 2) { /* the first time it is printed: number it */
        uintptr_t numbered = 0;
        const void *key;
        void *value;
        for (size_t i = 0; map_next(&namer->unknowns, &i, &key, &value);)
            numbered += (uintptr_t)value > 2;
        seen = 3 + numbered;
        map_set(&namer->unknowns, t, (void *)seen);
    }
    str_printf(out, "%zu", (size_t)(seen - 2));
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void print_atom(Str *out, const DimAtom *a, TypeNamer *namer) {
    if (a->kind == DIM_ATOM_TYPE) {
        type_print_part(out, a->type, namer);
        return;
    }
    str_add(out, a->kind == DIM_ATOM_FLOORDIV ? "floordiv("
                 : a->kind == DIM_ATOM_MIN    ? "min("
                                              : "max(");
    type_print_part(out, a->a, namer);
    str_add(out, ", ");
    type_print_part(out, a->b, namer);
    str_add_char(out, ')');
}

/* Prints positive terms first, so that a size begins with a minus only if all its terms are negative. */
void dim_print(Str *out, Type *t, TypeNamer *namer) {
    const Dim *d = t->dim;
    bool any = false;
    if (d->nterms && d->constant > 0 && d->terms[0].coef < 0) {
        bool all_negative = true;
        for (uint32_t i = 0; i < d->nterms; i++)
            all_negative = all_negative && d->terms[i].coef < 0;
        if (all_negative) {
            str_printf(out, "%lld", (long long)d->constant);
            any = true;
        }
    }
    bool constant_printed = any;
    for (int sign = 0; sign < 2; sign++)
        for (uint32_t i = 0; i < d->nterms; i++) {
            const DimMonomial *m = &d->terms[i];
            if ((m->coef < 0) != (sign == 1))
                continue;
            uint64_t size = m->coef < 0 ? 0 - (uint64_t)m->coef : (uint64_t)m->coef;
            str_add(out, !any ? (m->coef < 0 ? "-" : "") : m->coef < 0 ? " - " : " + ");
            any = true;
            if (size != 1)
                str_printf(out, "%llu * ", (unsigned long long)size);
            for (uint32_t k = 0; k < m->natoms; k++) {
                if (k)
                    str_add(out, " * ");
                print_atom(out, m->atoms[k], namer);
            }
        }
    if (!any)
        str_printf(out, "%lld", (long long)d->constant);
    else if (d->constant != 0 && !constant_printed)
        str_printf(out, d->constant < 0 ? " - %llu" : " + %llu",
                   (unsigned long long)(d->constant < 0 ? 0 - (uint64_t)d->constant
                                                        : (uint64_t)d->constant));
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Prints `open a, b, c close`, with a comma after the only element of a tuple. */
static void print_list(Str *out, char open, Type **args, uint32_t n, bool comma, char close,
                       TypeNamer *namer) {
    str_add_char(out, open);
    for (uint32_t i = 0; i < n && out->len <= TYPE_PRINT_LIMIT; i++) {
        if (i)
            str_add(out, ", ");
        type_print_part(out, args[i], namer);
    }
    if (comma && n == 1)
        str_add_char(out, ',');
    str_add_char(out, close);
}

static void print_effect(Str *out, Type *effect, TypeNamer *namer) {
    effect = type_resolve(effect);
    if (effect->tag == TY_ALLOCATES)
        str_add(out, " makes references");
    else if (effect->tag != TY_PURE)
        str_printf(out, " effect %s", namer_name(namer, effect)->text);
}

/* Prints (n: int32, Tensor[(n,), b]). Within the function's type the unknown has that name. */
static void print_named_params(Str *out, Type *t, TypeNamer *namer) {
    for (uint32_t i = 0; i < t->nargs && out->len <= TYPE_PRINT_LIMIT; i++) {
        str_add(out, i ? ", " : "(");
        if (type_fn_names(t, i))
            str_printf(out, "%s: ", namer_name(namer, t->fn.named[i])->text);
        type_print_part(out, t->args[i], namer);
    }
    str_add(out, t->nargs ? ")" : "()");
}

static void free_names(const Type *t, TypeNamer *namer) {
    for (uint32_t i = 0; i < t->nargs; i++) {
        const Symbol *name = t->fn.named[i] ? map_find(&namer->names, t->fn.named[i]) : NULL;
        if (!name)
            continue;
        map_remove(&namer->names, t->fn.named[i]);
        map_remove(&namer->taken, name);
    }
}

void type_print_signature(Str *out, Type *t, TypeNamer *namer) {
    if (t->fn.named)
        print_named_params(out, t, namer);
    else
        print_list(out, '(', t->args, t->nargs, false, ')', namer);
    str_add(out, " -> ");
    type_print_part(out, t->fn.result, namer);
    if (namer->show_effects)
        print_effect(out, t->fn.effect, namer);
    if (t->fn.named)
        free_names(t, namer);
}

/* The dtype of a weak literal, shown in diagnostics as what it would become; else NULL. */
static const char *weak_text(const Type *t) {
    if (t->tag != TY_VAR || !t->var.weak)
        return NULL;
    return dtype_info[t->var.dtypes & DT_BIT(DT_I32) ? DT_I32 : DT_F32].name;
}

static void print_data(Str *out, const TypeDecl *decl, Type **args, uint32_t n, TypeNamer *namer) {
    if (decl->row) {
        str_add(out, "Rows[");
        type_print_part(out, args[0], namer);
        str_add(out, ", ");
        Type **rows = mem_new_n(Type *, (size_t)n);
        for (uint32_t i = 1; i < n; i++) {
            Kind kind = type_resolve(args[i])->kind;
            rows[i - 1] = kind == KIND_TYPE || kind == KIND_SHAPE ? type_row(args[i]) : args[i];
        }
        print_data(out, decl->row, rows, n - 1, namer);
        str_add_char(out, ']');
        return;
    }
    str_add(out, decl->name->text);
    if (decl->version)
        str_printf(out, "#%u", decl->version);
    if (n)
        print_list(out, '[', args, n, false, ']', namer);
}

void type_print_part(Str *out, Type *t, TypeNamer *namer) {
    if (out->len > TYPE_PRINT_LIMIT)
        return;
    t = type_resolve(t);
    switch (t->tag) {
    case TY_VAR:
    case TY_PARAM: {
        const char *weak = weak_text(t);
        str_add(out, weak ? weak : namer_name(namer, t)->text);
        return;
    }
    case TY_TENSOR: {
        Type *shape = type_resolve(t->tensor.shape), *dtype = type_resolve(t->tensor.dtype);
        Type *whole = shape->tag == TY_PARAM ? shape->param.known : NULL;
        if (whole && type_resolve(whole->param.known->tensor.dtype) ==
                         dtype) { /* the parameter is shown as it was declared */
            str_add(out, namer_name(namer, whole)->text);
            return;
        }
        const char *known = dtype->tag == TY_DTYPE ? dtype_info[dtype->dtype_value].name
                                                   : weak_text(dtype);
        if (shape->tag == TY_SHAPE && shape->nargs == 0 && known) {
            str_add(out, known);
            return;
        }
        str_add(out, "Tensor[");
        type_print_part(out, shape, namer);
        str_add(out, ", ");
        type_print_part(out, dtype, namer);
        str_add_char(out, ']');
        return;
    }
    case TY_TUPLE:
    case TY_SHAPE: print_list(out, '(', t->args, t->nargs, true, ')', namer); return;
    case TY_FN:
        str_add(out, "fn");
        type_print_signature(out, t, namer);
        return;
    case TY_REF:
        str_add(out, "ref(");
        type_print_part(out, t->elem, namer);
        str_add_char(out, ')');
        return;
    case TY_DERIV:
        str_add(out, "D(");
        type_print_part(out, t->elem, namer);
        str_add_char(out, ')');
        return;
    case TY_DATA: print_data(out, t->decl, t->args, t->nargs, namer); return;
    case TY_STRING: str_add(out, "String"); return;
    case TY_ERROR: str_add(out, "_"); return;
    case TY_DTYPE: str_add(out, dtype_info[t->dtype_value].name); return;
    case TY_DIM: dim_print(out, t, namer); return;
    case TY_ANY: print_unknown(out, t, namer); return;
    case TY_PURE: str_add(out, "pure"); return;
    case TY_ALLOCATES: str_add(out, "allocates"); return;
    }
}

static void cut(Str *out, size_t start) {
    if (out->len <= start + TYPE_PRINT_LIMIT)
        return;
    out->len = start + TYPE_PRINT_LIMIT;
    str_add(out, " ...");
}

void type_print_append(Str *out, Str *part) {
    cut(part, 0);
    str_add_n(out, str_text(part), part->len);
}

void type_print(Str *out, Type *t, TypeNamer *namer) {
    TypeNamer fresh = {0};
    Str part = {0};
    if (!namer)
        namer = &fresh;
    namer_count_unknowns(namer, &t, 1);
    type_print_part(&part, t, namer);
    type_print_append(out, &part);
}

const char *type_text(Type *t) {
    Str out = {0};
    type_print(&out, t, NULL);
    return str_text(&out);
}

void type_namer_reserve(TypeNamer *namer, Type *t) {
    Map seen = {0};
    TypeVec params = {0};
    type_collect(t, TY_PARAM, &seen, &params);
    for (size_t i = 0; i < params.len; i++)
        (void)namer_name(namer, params.data[i]);
}

const char *type_text_with(TypeNamer *namer, Type *t) {
    Str s = {0};
    type_print(&s, t, namer);
    return str_text(&s);
}
