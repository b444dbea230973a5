/* SPDX-License-Identifier: Apache-2.0 */
/* The value that no arm takes, written as a pattern; and types that have no value at all. */
#include <stdlib.h>
#include <string.h>

#include "types/infer/cover_impl.h"

enum {
    MAX_TYPE_STEPS = 500, /* into how many types one looks for a value */
    MAX_LENGTH =
        160, /* of the pattern that is shown, in characters; a longer one is cut at CUT_DEPTH */
    MAX_DEPTH = 200, /* no pattern of MAX_LENGTH is deeper */
    CUT_DEPTH = 12,
};

/* ---- types without values -------------------------------------------------------------------- */

typedef struct Inhabited {
    int steps;
    Type *open[32]; /* the data types being looked into: a value that needs itself cannot be made */
    int nopen;
} Inhabited;

static bool inhabited(Inhabited *h, Type *t) {
    if (!t || --h->steps < 0)
        return true;
    t = type_resolve(t);
    switch (t->tag) {
    case TY_TUPLE:
        for (uint32_t i = 0; i < t->nargs; i++) {
            if (!inhabited(h, t->args[i]))
                return false;
        }
        return true;
    case TY_REF: return inhabited(h, t->elem);
    case TY_DATA: break;
    case TY_VAR:
    case TY_PARAM:
    case TY_TENSOR:
    case TY_FN:
    case TY_STRING:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return true;
    }
    const TypeDecl *decl = t->decl;
    if (decl->is_extern || h->nopen == 32)
        return true;
    for (int i = 0; i < h->nopen; i++) {
        if (h->open[i] == t || (h->open[i]->decl == decl && type_equal(h->open[i], t)))
            return false;
    }
    h->open[h->nopen++] = t;
    bool any = false;
    for (uint32_t c = 0; c < decl->nctors && !any; c++) {
        const Ctor *ctor = decl->ctors[c];
        any = true;
        for (uint32_t f = 0; f < ctor->nfields && any; f++)
            any = inhabited(h,
                            type_substitute(ctor->fields[f], decl->params, t->args, decl->nparams));
    }
    h->nopen--;
    return any;
}

bool cover_is_inhabited(Type *type) {
    Inhabited h = {.steps = MAX_TYPE_STEPS};
    return inhabited(&h, type);
}

Type *cover_field_type(Type *data, const Ctor *ctor, uint32_t field) {
    Type *t = data ? type_resolve(data) : NULL;
    if (!t || t->tag != TY_DATA)
        return NULL;
    ctor = ctor_of_type(ctor, t);
    if (t->decl != ctor->decl)
        return NULL;
    return type_substitute(ctor->fields[field], t->decl->params, t->args, t->decl->nparams);
}

bool cover_ctor_is_inhabited(Type *data, const Ctor *ctor) {
    for (uint32_t f = 0; f < ctor->nfields; f++) {
        if (!cover_is_inhabited(cover_field_type(data, ctor, f)))
            return false;
    }
    return true;
}

/* ---- the missing value ----------------------------------------------------------------------- */

static int compare_ints(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Finds the literal of the dtype nearest to zero that is none of `others`; false if there is none. */
static bool absent_int(Type *type, const Head *others, uint32_t n, int64_t *out) {
    DType t;
    int64_t low = INT64_MIN, high = INT64_MAX;
    if (type && type_get_dtype(type, &t) && dtype_is_int(t)) {
        int bits = dtype_info[t].bits;
        bool sign = dtype_info[t].cls == DTC_INT;
        if (bits < 64)
            high = ((int64_t)1 << (bits - (sign ? 1 : 0))) - 1;
        low = !sign ? 0 : bits < 64 ? -high - 1 : low;
    }
    int64_t *values = mem_new_n(int64_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        values[i] = others[i].node->pattern->lit->i;
    qsort(values, n, sizeof *values, compare_ints);
    int64_t v = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] == v) {
            if (v == high)
                break;
            v++;
        }
    }
    bool taken = false;
    for (uint32_t i = 0; i < n; i++)
        taken |= values[i] == v;
    for (uint32_t i = n; taken && i-- > 0;) {
        if (values[i] >= 0) {
            v = -1;
            continue;
        }
        if (values[i] == v)
            v--;
        else
            taken = false;
    }
    *out = v;
    return v >= low && v <= high;
}

static void add_absent_literal(Str *out, Type *type, const Head *others, uint32_t n) {
    const Pattern *p = others[0].node->pattern;
    if (p->kind == PAT_STRING) {
        bool empty = false;
        size_t longest = 0;
        for (uint32_t i = 0; i < n; i++) {
            const Pattern *q = others[i].node->pattern;
            empty |= q->text_len == 0;
            size_t run = 0;
            while (run < q->text_len && q->text[run] == 'a')
                run++;
            if (run == q->text_len && run > longest)
                longest = run;
        }
        str_add(out, "\"");
        for (size_t i = 0; empty && i <= longest; i++)
            str_add(out, "a");
        str_add(out, "\"");
        return;
    }
    bool is_float = false;
    double most = -1;
    for (uint32_t i = 0; i < n; i++) {
        const Expr *lit = others[i].node->pattern->lit;
        is_float |= lit->is_float || node_has_float(others[i].node->pattern);
        double f = lit->is_float ? lit->f : (double)lit->i;
        if (f >= 0 && f < 1e6 && f > most)
            most = f;
    }
    int64_t v;
    if (is_float) {
        str_printf(out, "%lld.0", (long long)most + 1);
    } else if (absent_int(type, others, n, &v)) {
        str_printf(out, "%lld", (long long)v);
    } else {
        str_add(out, "_");
    }
}

static void add_literal(Str *out, const Pattern *p) {
    DType t;
    if (p->kind == PAT_STRING) {
        str_add(out, "\"");
        for (size_t i = 0; i < p->text_len; i++) {
            unsigned char c = (unsigned char)p->text[i];
            if (c == '"' || c == '\\')
                str_printf(out, "\\%c", c);
            else if (c == '\n')
                str_add(out, "\\n");
            else if (c == '\t')
                str_add(out, "\\t");
            else if (c < 32)
                str_printf(out, "\\x%02x", c);
            else
                str_printf(out, "%c", c);
        }
        str_add(out, "\"");
    } else if (type_is_scalar(p->lit->type, DT_BOOL)) {
        str_add(out, p->lit->i ? "True" : "False");
    } else if (p->lit->is_float) {
        str_printf(out, "%g", p->lit->f);
    } else if (type_get_dtype(p->lit->type, &t) && dtype_info[t].cls == DTC_UINT) {
        str_printf(out, "%llu", (unsigned long long)p->lit->i);
    } else {
        str_printf(out, "%lld", (long long)p->lit->i);
    }
}

typedef struct Style {
    const TypeDecl *list; /* the type whose values are written `list[…]`, or NULL */
    bool all;             /* a literal that no arm has is written `_` */
    const char *cut;      /* the text in place of parts that are too deep */
} Style;

static void add_place(const Style *style, Str *out, const Place *p, int depth);

/* Writes `list[a, b]`, or `a :: b :: rest`. */
static void add_list(const Style *style, Str *out, const Place *p, int depth, bool inner) {
    VEC(const Place *) items = {0};
    bool open = false, cut = false;
    for (int left = depth;; left--) {
        const Ctor *c = p->several && style->all ? NULL
                        : p->absent_ctor         ? p->absent_ctor
                        : p->head                ? p->head->ctor
                                                 : NULL;
        if (c && c->nfields == 0)
            break;
        if (!c || left == 0) {
            open = true;
            cut = c != NULL;
            break;
        }
        vec_push(&items, p->kids ? p->kids[0] : NULL);
        if (!p->kids) { /* no arm names the constructor, so nothing is known of its parts */
            open = true;
            break;
        }
        p = p->kids[1];
    }
    bool parens = open && inner && items.len;
    str_add(out, !open ? "list[" : parens ? "(" : "");
    for (size_t i = 0; i < items.len; i++) {
        if (i && !open)
            str_add(out, ", ");
        const Place *item = items.data[i];
        if (!item) {
            str_add(out, "_");
        } else if (open && item->type && type_resolve(item->type)->tag == TY_DATA &&
                   type_resolve(item->type)->decl == style->list) {
            add_list(style, out, item, depth - 1, true);
        } else {
            add_place(style, out, item, depth - 1);
        }
        if (open)
            str_add(out, " :: ");
    }
    str_add(out, cut ? style->cut : open ? "_" : "]");
    if (parens)
        str_add(out, ")");
}

static bool is_any(const Place *p) { return !p->head && !p->absent_ctor && !p->others; }

static void add_place(const Style *style, Str *out, const Place *p, int depth) {
    if (!p || depth <= 0) {
        str_add(out, p && depth <= 0 && !is_any(p) ? style->cut : "_");
        return;
    }
    if ((p->others || p->several) && style->all) {
        str_add(out, "_");
        return;
    }
    if (p->others) {
        add_absent_literal(out, p->type, p->others, p->nothers);
        return;
    }
    const Ctor *ctor = p->absent_ctor;
    if (!ctor && p->head && p->head->kind == PAT_CTOR)
        ctor = p->head->ctor;
    if (!ctor && !p->head) {
        str_add(out, "_");
        return;
    }
    if (!ctor && p->head->kind != PAT_TUPLE) {
        add_literal(out, p->head);
        return;
    }
    if (ctor && ctor->decl == style->list) {
        add_list(style, out, p, depth, false);
        return;
    }
    uint32_t n = ctor ? ctor->nfields : p->head->nargs;
    if (ctor)
        str_add(out, ctor->name->text);
    if (ctor && !n)
        return;
    bool named = ctor && ctor->field_names;
    str_add(out, named ? " { " : "(");
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            str_add(out, ", ");
        if (named)
            str_printf(out, "%s: ", ctor->field_names[i]->text);
        add_place(style, out, p->kids ? p->kids[i] : NULL, depth - 1);
    }
    str_add(out, named ? " }" : !ctor && n == 1 ? ",)" : ")");
}

bool node_has_float(const Pattern *p) {
    for (;;) {
        DType t;
        if (p->kind == PAT_LIT)
            return p->lit->is_float || (type_get_dtype(p->lit->type, &t) && dtype_is_float(t));
        if ((p->kind != PAT_CTOR && p->kind != PAT_TUPLE) || p->nargs == 0)
            return false;
        for (uint32_t i = 0; i + 1 < p->nargs; i++) {
            if (node_has_float(p->args[i]))
                return true;
        }
        p = p->args[p->nargs - 1];
    }
}

const char *place_text(const Place *root, const TypeDecl *list, bool all) {
    Str out = {0};
    Style style = {list, all, all ? "_" : "..."};
    add_place(&style, &out, root, MAX_DEPTH);
    if (!all && out.len > MAX_LENGTH) {
        out = (Str){0};
        add_place(&style, &out, root, CUT_DEPTH);
    }
    return all && out.len > MAX_LENGTH ? NULL : str_text(&out);
}
