/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values: reading the defaults of an operator's entry, comparing and printing. */
#include "types/solve/attrs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "types/op.h"

const AttrValue *attrs_find(const Attrs *attrs, const char *name) {
    for (int i = 0; attrs && i < attrs->op->nattrs; i++)
        if (strcmp(attrs->op->attrs[i].name, name) == 0)
            return &attrs->values[i];
    return NULL;
}

const AttrValue *attrs_get(const Attrs *attrs, const char *name) {
    const AttrValue *v = attrs_find(attrs, name);
    if (!v)
        BUG("`%s` has no attribute `%s`", attrs ? attrs->op->name : "an operator", name);
    return v;
}

AttrValue attr_size(int64_t size) {
    return (AttrValue){.kind = ATTR_INT, .i = size, .is_size = true};
}

AttrValue attr_computed_size(int64_t size) {
    AttrValue v = attr_size(size);
    v.computed = true;
    return v;
}

int64_t attrs_int(const Attrs *attrs, const char *name) {
    const AttrValue *v = attrs_get(attrs, name);
    int64_t n;
    if (v->kind == ATTR_INT || v->kind == ATTR_BOOL)
        return v->i;
    if (v->kind == ATTR_DIM && type_get_int(v->dim, &n))
        return n;
    BUG("attribute `%s` of `%s` is no integer", name, attrs->op->name);
}

double attrs_float(const Attrs *attrs, const char *name) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind == ATTR_FLOAT)
        return v->f;
    if (v->kind == ATTR_INT)
        return (double)v->i;
    BUG("attribute `%s` of `%s` is no number", name, attrs->op->name);
}

bool attrs_bool(const Attrs *attrs, const char *name) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind != ATTR_BOOL && v->kind != ATTR_INT)
        BUG("attribute `%s` of `%s` is no bool", name, attrs->op->name);
    return v->i != 0;
}

const char *attrs_text(const Attrs *attrs, const char *name) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind != ATTR_STRING)
        BUG("attribute `%s` of `%s` is no text", name, attrs->op->name);
    return v->text;
}

bool attrs_is_none(const Attrs *attrs, const char *name) {
    return attrs_get(attrs, name)->kind == ATTR_NONE;
}

static bool value_int(const AttrValue *v, int64_t *out) {
    if (v->kind == ATTR_DIM)
        return type_get_int(v->dim, out);
    *out = v->i;
    return v->kind == ATTR_INT;
}

bool attrs_ints(const Attrs *attrs, const char *name, const int64_t **out, uint32_t *n) {
    const AttrValue *v = attrs_get(attrs, name);
    uint32_t count = v->kind == ATTR_LIST ? v->list.n : 1;
    int64_t *ints = mem_bytes((count + 1) * sizeof *ints);
    for (uint32_t i = 0; i < count; i++)
        if (!value_int(v->kind == ATTR_LIST ? &v->list.items[i] : v, &ints[i]))
            return false;
    *out = ints;
    *n = count;
    return true;
}

bool attrs_dtype(const Attrs *attrs, const char *name, DType *out) {
    const AttrValue *v = attrs_get(attrs, name);
    if (v->kind != ATTR_DTYPE)
        return false;
    *out = v->dtype;
    return true;
}

/* ---- equality -------------------------------------------------------------------------------- */

static bool dims_are_equal(void *ctx, Type *a, Type *b) {
    (void)ctx;
    return dim_compare(a, b) == DIM_EQUAL;
}

static bool attr_equal(const AttrValue *a, const AttrValue *b, SameSize same, void *ctx) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ATTR_NONE: return true;
    case ATTR_INT: return a->i == b->i && (a->i > 0 || a->is_size == b->is_size);
    case ATTR_BOOL: return a->i == b->i;
    case ATTR_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case ATTR_STRING: return strcmp(a->text, b->text) == 0;
    case ATTR_DTYPE: return a->dtype == b->dtype;
    case ATTR_LIST:
        if (a->list.n != b->list.n)
            return false;
        for (uint32_t i = 0; i < a->list.n; i++)
            if (!attr_equal(&a->list.items[i], &b->list.items[i], same, ctx))
                return false;
        return true;
    case ATTR_DIM: return same(ctx, a->dim, b->dim);
    case ATTR_REF: return a->ref == b->ref;
    }
    return false;
}

bool attrs_equal_values(const Attrs *a, const Attrs *b) {
    return attrs_equal_by(a, b, dims_are_equal, NULL);
}

bool attrs_equal_by(const Attrs *a, const Attrs *b, SameSize same, void *ctx) {
    if (!a || !b)
        return (!a || a->op->nattrs == 0) && (!b || b->op->nattrs == 0);
    if (a->op->relation != b->op->relation || a->op->nattrs != b->op->nattrs)
        return false;
    for (int i = 0; i < a->op->nattrs; i++)
        if (!attr_equal(&a->values[i], &b->values[i], same, ctx))
            return false;
    return true;
}

/* ---- printing -------------------------------------------------------------------------------- */

void attr_print(Str *out, const AttrValue *v) {
    switch (v->kind) {
    case ATTR_NONE: str_add(out, "None"); return;
    case ATTR_INT: str_printf(out, "%lld", (long long)v->i); return;
    case ATTR_BOOL: str_add(out, v->i ? "True" : "False"); return;
    case ATTR_FLOAT: str_add_float(out, v->f, 64); return;
    case ATTR_STRING: str_add_quoted(out, v->text, strlen(v->text)); return;
    case ATTR_DTYPE: str_add(out, dtype_info[v->dtype].name); return;
    case ATTR_LIST:
        str_add_char(out, '[');
        for (uint32_t i = 0; i < v->list.n; i++) {
            if (i)
                str_add(out, ", ");
            attr_print(out, &v->list.items[i]);
        }
        str_add_char(out, ']');
        return;
    case ATTR_DIM: type_print(out, v->dim, NULL); return;
    case ATTR_REF: str_add_n(out, v->ref->text, v->ref->len); return;
    }
}

void attrs_print(Str *out, const Attrs *a) {
    const char *sep = "";
    for (int i = 0; a && i < a->op->nattrs; i++) {
        const AttrSpec *spec = &a->op->attrs[i];
        if (spec->initial) {
            AttrValue initial = attr_parse(spec->initial);
            if (attr_equal(&initial, &a->values[i], dims_are_equal, NULL))
                continue;
        }
        str_printf(out, "%s%s=", sep, spec->name);
        attr_print(out, &a->values[i]);
        sep = ", ";
    }
}

/* ---- defaults -------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *p) {
    while (*p == ' ')
        p++;
    return p;
}

static const char *parse_value(const char *p, AttrValue *out);

static const char *parse_list(const char *p, AttrValue *out) {
    VEC(AttrValue) items = {0};
    p = skip_blanks(p + 1);
    while (*p && *p != ']') {
        AttrValue v;
        p = skip_blanks(parse_value(p, &v));
        vec_push(&items, v);
        if (*p == ',')
            p = skip_blanks(p + 1);
    }
    *out = (AttrValue){.kind = ATTR_LIST, .list = {items.data, (uint32_t)items.len}};
    return *p ? p + 1 : p;
}

static const char *parse_string(const char *p, AttrValue *out) {
    const char *end = strchr(p + 1, '"');
    if (!end)
        BUG("a default without its closing quote: %s", p);
    *out = (AttrValue){.kind = ATTR_STRING, .text = mem_strndup(p + 1, (size_t)(end - p - 1))};
    return end + 1;
}

static const char *parse_number(const char *p, AttrValue *out) {
    char *end;
    size_t digits = strspn(p + (*p == '-'), "0123456789");
    const char *after = p + (*p == '-') + digits;
    if (digits && *after != '.' && *after != 'e') {
        *out = (AttrValue){.kind = ATTR_INT, .i = strtoll(p, &end, 10)};
    } else {
        *out = (AttrValue){.kind = ATTR_FLOAT, .f = strtod(p, &end)};
        if (end == p)
            BUG("a default that cannot be read: %s", p);
    }
    return end;
}

static const char *parse_value(const char *p, AttrValue *out) {
    p = skip_blanks(p);
    size_t word = strcspn(p, " ,]");
    if (*p == '[')
        return parse_list(p, out);
    if (*p == '"')
        return parse_string(p, out);
    if (word == 4 && strncmp(p, "None", 4) == 0) {
        *out = (AttrValue){.kind = ATTR_NONE};
        return p + word;
    }
    if ((word == 4 && strncmp(p, "True", 4) == 0) || (word == 5 && strncmp(p, "False", 5) == 0)) {
        *out = (AttrValue){.kind = ATTR_BOOL, .i = *p == 'T'};
        return p + word;
    }
    DType dtype;
    if (isalpha((unsigned char)*p) && dtype_find(p, word, &dtype)) {
        *out = (AttrValue){.kind = ATTR_DTYPE, .dtype = dtype};
        return p + word;
    }
    return parse_number(p, out);
}

AttrValue attr_parse(const char *text) {
    AttrValue v;
    const char *end = skip_blanks(parse_value(text, &v));
    if (*end)
        BUG("a default that cannot be read: %s", text);
    return v;
}

const Attrs *attrs_defaults(const Op *op) {
    Attrs *out = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++) {
        if (!op->attrs[i].initial)
            return NULL;
        values[i] = attr_parse(op->attrs[i].initial);
    }
    out->op = op;
    out->values = values;
    return out;
}

/* ---- attributes of a derivative rule --------------------------------------------------------- */

static bool value_has_refs(const AttrValue *v) {
    if (v->kind == ATTR_REF)
        return true;
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        if (value_has_refs(&v->list.items[i]))
            return true;
    return false;
}

static bool value_has_size(const AttrValue *v) {
    int64_t n;
    if (v->kind == ATTR_DIM)
        return !type_get_int(v->dim, &n);
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        if (value_has_size(&v->list.items[i]))
            return true;
    return false;
}

bool attrs_have_sizes(const Attrs *a) {
    for (int i = 0; a && i < a->op->nattrs; i++)
        if (value_has_size(&a->values[i]))
            return true;
    return false;
}

static AttrValue with_unit_sizes(const AttrValue *v) {
    AttrValue out = *v;
    int64_t n;
    if (v->kind == ATTR_DIM)
        return attr_size(type_get_int(v->dim, &n) ? n : 1);
    if (v->kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n + 1);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = with_unit_sizes(&v->list.items[i]);
        out.list.items = items;
    }
    return out;
}

const Attrs *attrs_with_unit_sizes(const Attrs *a) {
    if (!attrs_have_sizes(a))
        return a;
    Attrs *out = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, a->op->nattrs);
    for (int i = 0; i < a->op->nattrs; i++)
        values[i] = with_unit_sizes(&a->values[i]);
    *out = (Attrs){a->op, values};
    return out;
}

bool attrs_have_refs(const Attrs *a) {
    for (int i = 0; a && i < a->op->nattrs; i++)
        if (value_has_refs(&a->values[i]))
            return true;
    return false;
}

static AttrValue substitute_refs(const AttrValue *v, const Attrs *call) {
    AttrValue out = *v;
    if (v->kind == ATTR_REF) {
        const AttrValue *found = attrs_find(call, v->ref->text);
        if (!found)
            BUG("`%s` has no attribute `%s`", call ? call->op->name : "an operator", v->ref->text);
        return *found;
    }
    if (v->kind == ATTR_LIST && value_has_refs(v)) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = substitute_refs(&v->list.items[i], call);
        out.list.items = items;
    }
    return out;
}

const Attrs *attrs_substitute(const Attrs *a, const Attrs *call) {
    if (!attrs_have_refs(a))
        return a;
    Attrs *out = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, a->op->nattrs);
    for (int i = 0; i < a->op->nattrs; i++)
        values[i] = substitute_refs(&a->values[i], call);
    out->op = a->op;
    out->values = values;
    return out;
}
