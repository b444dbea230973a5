/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, attributes, initializers and ports of the model that is written. Field numbers are those of onnx.proto. */
#include <ctype.h>
#include <string.h>

#include "interchange/export_impl.h"
#include "types/type/dim.h"

/* ---- names and values ------------------------------------------------------------------------ */

const char *export_name(Export *ex, const char *hint) {
    const char *name = hint;
    do {
        if (!hint)
            name = fmt_text("v%u", ex->nnames++);
        else if (map_has(&ex->names, sym_intern(name)))
            name = fmt_text("%s_%u", hint, ex->nnames++);
    } while (map_has(&ex->names, sym_intern(name)));
    map_set(&ex->names, sym_intern(name), (void *)name);
    return name;
}

Traced *traced_named(const char *name, DType dtype, int rank) {
    Traced *t = mem_new(Traced);
    *t = (Traced){.kind = TRACED_TENSOR, .name = name, .dtype = dtype, .rank = rank};
    return t;
}

Traced *traced_constant(Tensor *tensor) {
    Traced *t = traced_named(NULL, tensor->dtype, tensor->rank);
    t->constant = tensor;
    t->shape = tensor->shape;
    return t;
}

static Traced *scalar(Export *ex, const char *text, Tensor *tensor) {
    const Symbol *key = sym_intern(fmt_text("%s %s", dtype_info[tensor->dtype].name, text));
    Traced *t = map_find(&ex->scalars, key);
    if (!t) {
        t = traced_constant(tensor);
        map_set(&ex->scalars, key, t);
    }
    return t;
}

Traced *traced_scalar(Export *ex, DType dtype, double value) {
    return scalar(ex, fmt_text("%a", value), tensor_scalar_float(dtype, value));
}

Traced *traced_int(Export *ex, DType dtype, int64_t value) {
    if (DTS_FLOAT >> dtype & 1)
        return traced_scalar(ex, dtype, (double)value);
    return scalar(ex, fmt_text("%lld", (long long)value), tensor_scalar_int(dtype, value));
}

Traced *traced_ints(const int64_t *ints, uint32_t n) {
    return traced_constant(tensor_from(DT_I64, 1, (int64_t[]){n}, ints));
}

Traced *traced_tuple(Traced **parts, uint32_t n) {
    Traced *t = mem_new(Traced);
    *t = (Traced){.kind = TRACED_TUPLE, .parts = parts, .nparts = n};
    return t;
}

const char *traced_read(Export *ex, Traced *t) {
    if (t->name)
        return t->name;
    const Tensor *tensor = tensor_canonical(tensor_contiguous(t->constant));
    Str message = {0};
    t->name = export_name(ex, t->path);
    for (int i = 0; i < tensor->rank; i++)
        wire_add_varint(&message, 1, (uint64_t)tensor->shape[i]);
    wire_add_varint(&message, 2, (uint64_t)onnx_dtype_of(tensor->dtype));
    wire_add_text(&message, 8, t->name);
    wire_add_bytes(&message, 9, tensor_data(tensor),
                   (size_t)tensor->count * dtype_size(tensor->dtype));
    onnx_add_message(&ex->initializers, 5, &message);
    return t->name;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void onnx_add_message(Str *out, uint32_t number, const Str *message) {
    wire_add_bytes(out, number, str_text(message), message->len);
}

/* The rest of an AttributeProto, behind its name. */
static void add_attr(Str *attrs, const char *name, const Str *value, OnnxAttrType type) {
    Str message = {0};
    wire_add_text(&message, 1, name);
    str_add_n(&message, str_text(value), value->len);
    wire_add_varint(&message, 20, type);
    onnx_add_message(attrs, 5, &message);
}

void onnx_add_int(Str *attrs, const char *name, int64_t value) {
    Str field = {0};
    wire_add_varint(&field, 3, (uint64_t)value);
    add_attr(attrs, name, &field, ONNX_ATTR_INT);
}

void onnx_add_float(Str *attrs, const char *name, double value) {
    Str field = {0};
    wire_add_float(&field, 2, (float)value);
    add_attr(attrs, name, &field, ONNX_ATTR_FLOAT);
}

void onnx_add_text(Str *attrs, const char *name, const char *text) {
    Str field = {0};
    wire_add_text(&field, 4, text);
    add_attr(attrs, name, &field, ONNX_ATTR_STRING);
}

void onnx_add_ints(Str *attrs, const char *name, const int64_t *values, uint32_t n) {
    Str field = {0};
    for (uint32_t i = 0; i < n; i++)
        wire_add_varint(&field, 8, (uint64_t)values[i]);
    add_attr(attrs, name, &field, ONNX_ATTR_INTS);
}

void onnx_add_graph(Str *attrs, const char *name, const Str *graph) {
    Str field = {0};
    onnx_add_message(&field, 6, graph);
    add_attr(attrs, name, &field, ONNX_ATTR_GRAPH);
}

void export_node_outputs(Export *ex, const char *op, Traced *const *in, uint32_t n,
                         const Str *attrs, const char *const *outputs, uint32_t noutputs) {
    Str message = {0};
    for (uint32_t i = 0; i < n; i++)
        wire_add_text(&message, 1, in[i] ? traced_read(ex, in[i]) : "");
    for (uint32_t i = 0; i < noutputs; i++)
        wire_add_text(&message, 2, outputs[i]);
    wire_add_text(&message, 4, op);
    if (attrs)
        str_add_n(&message, str_text(attrs), attrs->len);
    onnx_add_message(ex->nodes, 1, &message);
}

Traced *export_node(Export *ex, const char *op, Traced *const *in, uint32_t n, const Str *attrs,
                    DType dtype, int rank) {
    const char *name = export_name(ex, NULL);
    export_node_outputs(ex, op, in, n, attrs, &name, 1);
    return traced_named(name, dtype, rank);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static void add_port(Str *graph, uint32_t number, const char *name, DType dtype, const Str *sizes) {
    Str tensor = {0}, kind = {0}, port = {0};
    wire_add_varint(&tensor, 1, (uint64_t)onnx_dtype_of(dtype));
    onnx_add_message(&tensor, 2, sizes);
    onnx_add_message(&kind, 1, &tensor);
    wire_add_text(&port, 1, name);
    onnx_add_message(&port, 2, &kind);
    onnx_add_message(graph, number, &port);
}

void export_open_port(Str *graph, uint32_t number, const char *name, DType dtype, int rank) {
    Str sizes = {0}, open = {0};
    for (int i = 0; i < rank; i++)
        onnx_add_message(&sizes, 1, &open);
    add_port(graph, number, name, dtype, &sizes);
}

bool export_port(Str *graph, uint32_t number, const char *name, Type *type, DType *dtype,
                 int *rank) {
    Type *t = type_resolve(type);
    if (t->tag != TY_TENSOR || type_resolve(t->tensor.shape)->tag != TY_SHAPE ||
        !type_get_dtype(t, dtype) || onnx_dtype_of(*dtype) == ONNX_UNDEFINED)
        return false;
    Type *shape = type_resolve(t->tensor.shape);
    Str sizes = {0};
    for (uint32_t i = 0; i < shape->nargs; i++) {
        Type *d = type_resolve(shape->args[i]);
        Str size = {0};
        if (d->tag == TY_DIM && d->dim->nterms == 0)
            wire_add_varint(&size, 1, (uint64_t)d->dim->constant);
        else if (d->tag == TY_PARAM && d->param.name)
            wire_add_text(&size, 2, d->param.name->text);
        onnx_add_message(&sizes, 1, &size);
    }
    *rank = (int)shape->nargs;
    add_port(graph, number, name, *dtype, &sizes);
    return true;
}
