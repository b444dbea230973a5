/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of operators. TVM writes numbers and references alike as text, and which it is follows from the
 * field of a C++ struct. What the operator's table says of the attribute tells most of them apart; of integers
 * those which TVM holds as objects are listed. */
#include <stdlib.h>
#include <string.h>

#include "interchange/tvm_graph.h"

bool tvm_is_held_as_object(const Op *op, const char *name) {
    static const char *const always[] = {"channels",   "units",       "repeats",    "batch_dims",
                                         "k",          "num_samples", "index_rank", "seq_axis",
                                         "batch_axis", "exclusive",   "inverse"};
    static const char *const axis[] = {"take",        "repeat",          "stack",  "gather",
                                       "reverse",     "scatter",         "cumsum", "cumprod",
                                       "scatter_add", "scatter_elements"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(name, always[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof axis / sizeof *axis; i++)
        if (strcmp(name, "axis") == 0 && op == op_find(sym_intern(axis[i])))
            return true;
    return false;
}

static const char *list_value(TvmGraph *g, size_t node) {
    Str out = {0};
    str_add(&out, "[");
    for (size_t i = 0; i < tvm_list_len(g, node); i++) {
        const char *item = tvm_value(g, tvm_list_at(g, node, i));
        if (!item)
            return NULL;
        str_printf(&out, "%s%s", i ? ", " : "", item);
    }
    str_add(&out, "]");
    return str_text(&out);
}

static const char *integer(TvmGraph *g, size_t node, const char *text) {
    char *end;
    long long n = text ? strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end) {
        tvm_damaged(g, node, "`%.40s` is no integer", text ? text : "");
        return NULL;
    }
    return fmt_text("%lld", n);
}

static const char *number(TvmGraph *g, size_t node, const char *text) {
    char *end;
    double v = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end) {
        tvm_damaged(g, node, "`%.40s` is no number", text ? text : "");
        return NULL;
    }
    Str out = {0};
    str_add_float(&out, v, 64);
    return str_text(&out);
}

static const char *quoted(const char *text) {
    Str out = {0};
    str_add_quoted(&out, text, strlen(text));
    return str_text(&out);
}

const char *tvm_value(TvmGraph *g, size_t node) {
    const char *out = NULL, *dtype = tvm_text(g, node, "dtype");
    if (!node)
        return "None";
    if (tvm_enter(g, node)) {
        if (tvm_is(g, node, "IntImm")) {
            out = integer(g, node, tvm_text(g, node, "value"));
            if (out && dtype && strcmp(dtype, "bool") == 0)
                out = strcmp(out, "0") == 0 ? "False" : "True";
        } else if (tvm_is(g, node, "FloatImm"))
            out = number(g, node, tvm_text(g, node, "value"));
        else if (tvm_is(g, node, "runtime.String"))
            out = quoted(tvm_repr(g, node) ? tvm_repr(g, node) : "");
        else if (tvm_is(g, node, "tir.StringImm"))
            out = quoted(tvm_string(g, node, "value"));
        else if (tvm_is(g, node, "tir.Any"))
            out = "?";
        else if (tvm_is(g, node, "Array"))
            out = list_value(g, node);
    }
    tvm_leave(g);
    return out;
}

/* The attribute as Relay writes it: "" where it is not given, NULL where it has no counterpart. */
static const char *attr_value(TvmGraph *g, const Op *op, const AttrSpec *spec, size_t attrs,
                              const char *text) {
    const char *out;
    char *end;
    unsigned long at = strtoul(text, &end, 10);
    bool counted = end != text && !*end && at < json_array_size(g->nodes);
    if (strcmp(text, "null") == 0)
        return "";
    switch (spec->type) {
    case AT_DTYPE: return strcmp(text, "void") == 0 || !*text ? "" : quoted(text);
    case AT_STRING:
        if (counted && tvm_is(g, at, "VirtualDevice")) /* there is one device */
            return "";
        return quoted(tvm_string(g, attrs, spec->name));
    case AT_FLOAT:
        if (counted && tvm_is(g, at, "FloatImm"))
            return tvm_value(g, at);
        return number(g, attrs, text);
    case AT_BOOL:
        if (strcmp(text, "0") == 0 || strcmp(text, "1") == 0)
            return *text == '1' ? "True" : "False";
        break;
    case AT_INT:
        if (!tvm_is_held_as_object(op, spec->name) || !counted || !tvm_is(g, at, "IntImm"))
            return integer(g, attrs, text);
        break;
    case AT_DIM:
        if (!tvm_is_held_as_object(op, spec->name))
            return integer(g, attrs, text);
        /* fall through */
    case AT_INT_OPT:
        if (counted && at && !tvm_is(g, at, "IntImm"))
            return integer(g, attrs, text);
        break;
    case AT_INTS:
    case AT_INTS_OPT:
    case AT_DIMS:
    case AT_DIMS_OPT:
    case AT_DIM_LISTS:
    case AT_INT_OR_DIMS:
    case AT_FLOATS: break;
    }
    out = tvm_value(g, tvm_ref(g, attrs, spec->name));
    return out && strcmp(out, "None") == 0 ? "" : out;
}

/* The ends of `arange` are arguments of the call and fields of its attributes. */
static bool is_argument(const char *key) {
    return strcmp(key, "start") == 0 || strcmp(key, "stop") == 0 || strcmp(key, "step") == 0;
}

void tvm_add_attrs(TvmGraph *g, const Op *op, size_t attrs, Str *out) {
    json_t *all = json_object_get(json_array_get(g->nodes, attrs), "attrs"), *value;
    const char *key;
    json_object_foreach(all, key, value) {
        const char *text = json_string_value(value);
        int i = op_attr_index(op, key);
        if (!text) {
            tvm_damaged(g, attrs, "its `%.40s` is no text", key);
            return;
        }
        if (i < 0) {
            /* Null, false and empty ask for nothing. */
            bool empty = !*text || strcmp(text, "0") == 0 || strcmp(text, "null") == 0 ||
                         is_argument(key) || !*tvm_string(g, attrs, key);
            size_t n = strspn(text, "0123456789");
            bool hint = strstr(key, "schedule") != NULL ||
                        (n && !text[n] && tvm_is(g, (size_t)atoi(text), "Array") &&
                         tvm_list_len(g, (size_t)atoi(text)) == 0);
            if (!empty && !hint)
                tvm_missing(g, fmt_text("attribute `%s` of operator `%s`", key, op->name));
            continue;
        }
        const char *printed = attr_value(g, op, &op->attrs[i], attrs, text);
        const char *initial = op->attrs[i].initial;
        if (!printed)
            tvm_missing(g, fmt_text("the value of `%s` of operator `%s`", key, op->name));
        else if (*printed && !(initial && strcmp(initial, printed) == 0))
            str_printf(out, "%s%s=%s", out->len ? ", " : "", key, printed);
    }
}
