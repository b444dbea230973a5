/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes by number: a reference is text, since TVM writes all attributes as text. */
#include "interchange/tvm_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool tvm_damaged(TvmGraph *g, size_t node, const char *fmt, ...) {
    if (g->damage)
        return false;
    Str out = {0};
    va_list args;
    va_start(args, fmt);
    str_vprintf(&out, fmt, args);
    va_end(args);
    g->damage = node ? fmt_text("node %zu (%s): %s", node, tvm_kind(g, node), str_text(&out))
                     : str_text(&out);
    return false;
}

void tvm_missing(TvmGraph *g, const char *what) {
    for (size_t i = 0; i < g->missing.len; i++)
        if (strcmp(g->missing.data[i], what) == 0)
            return;
    vec_push(&g->missing, what);
}

bool tvm_enter(TvmGraph *g, size_t node) {
    g->depth++;
    if (g->damage)
        return false;
    if (g->depth > TVM_MAX_DEPTH)
        return tvm_damaged(g, node, "it is nested too deeply, or is part of itself");
    if (++g->work > TVM_MAX_WORK)
        return tvm_damaged(g, node, "what it shares is too long to be written out");
    return true;
}

void tvm_leave(TvmGraph *g) { g->depth--; }

static const char *text_of(json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

/* Names that changed between v0.6 and v0.18. */
const char *tvm_kind(TvmGraph *g, size_t node) {
    static const char *const renamed[][2] = {
        {"relay.Module", "IRModule"},
        {"relay.GlobalVar", "GlobalVar"},
        {"relay.Op", "Op"},
        {"relay.TypeVar", "TypeVar"},
        {"TypeCall", "relay.TypeCall"},
        {"relay.GlobalTypeVar", "GlobalTypeVar"},
        {"relay.TupleType", "TupleType"},
        {"relay.FuncType", "FuncType"},
        {"TensorType", "relay.TensorType"},
        {"relay.RefType", "RelayRefType"},
        {"relay.Any", "tir.Any"},
        {"Any", "tir.Any"},
        {"StrMap", "Map"},
        {"StringImm", "tir.StringImm"},
        {"Constructor", "relay.Constructor"},
        {"TypeData", "relay.TypeData"},
        {"Id", "relay.Id"},
        {"IncompleteType", "relay.IncompleteType"},
    };
    const char *kind = text_of(json_array_get(g->nodes, node), "type_key");
    for (size_t i = 0; kind && i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(kind, renamed[i][0]) == 0)
            return renamed[i][1];
    return kind ? kind : "";
}

bool tvm_is(TvmGraph *g, size_t node, const char *kind) {
    return strcmp(tvm_kind(g, node), kind) == 0;
}

const char *tvm_text(TvmGraph *g, size_t node, const char *key) {
    return text_of(json_object_get(json_array_get(g->nodes, node), "attrs"), key);
}

size_t tvm_ref(TvmGraph *g, size_t node, const char *key) {
    const char *text = tvm_text(g, node, key);
    char *end;
    if (!text || strcmp(text, "null") == 0)
        return 0;
    errno = 0;
    unsigned long i = strtoul(text, &end, 10);
    if (end == text || *end || errno || text[0] == '-' || i >= json_array_size(g->nodes)) {
        tvm_damaged(g, node, "its `%s` is `%.40s`, which is no node", key, text);
        return 0;
    }
    return i;
}

static json_t *list_of(TvmGraph *g, size_t list) {
    return json_object_get(json_array_get(g->nodes, list), "data");
}

size_t tvm_list_len(TvmGraph *g, size_t list) { return json_array_size(list_of(g, list)); }

size_t tvm_list_at(TvmGraph *g, size_t list, size_t i) {
    json_t *at = json_array_get(list_of(g, list), i);
    json_int_t n = json_integer_value(at);
    if (!json_is_integer(at) || n < 0 || (uint64_t)n >= json_array_size(g->nodes)) {
        tvm_damaged(g, list, "its element %zu is no node", i);
        return 0;
    }
    return (size_t)n;
}

const char *tvm_repr(TvmGraph *g, size_t node) {
    json_t *at = json_array_get(g->nodes, node);
    const char *text = text_of(at, "repr_str");
    return text ? text : text_of(at, "global_key");
}

const char *tvm_string(TvmGraph *g, size_t node, const char *key) {
    const char *text = tvm_text(g, node, key);
    char *end;
    if (!text)
        return "";
    unsigned long i = strtoul(text, &end, 10);
    if (end == text || *end || i >= json_array_size(g->nodes))
        return text;
    if (tvm_is(g, i, "runtime.String"))
        return tvm_repr(g, i) ? tvm_repr(g, i) : "";
    if (tvm_is(g, i, "tir.StringImm"))
        return tvm_text(g, i, "value") ? tvm_text(g, i, "value") : "";
    return i ? text : "";
}
