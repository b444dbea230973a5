/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a graph that is written, and the attributes of operators as the classes of TVM hold them. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "interchange/tvm_graph.h"
#include "interchange/tvm_writer.h"
#include "ops/table.h"

typedef struct TvmOp {
    const char *name, *class, *fields;
} TvmOp;

static const TvmOp tvm_ops[] = {
#define TVM_OP(name, class, fields) {name, class, fields},
#include "interchange/tvm_ops.def"
#undef TVM_OP
};

static const TvmOp *find_op(Writer *w, const Op *op) {
    bool first = !w->ops.len;
    for (size_t i = 0; first && i < sizeof tvm_ops / sizeof *tvm_ops; i++) {
        const Op *known = op_find(sym_intern(tvm_ops[i].name));
        if (known)
            map_set(&w->ops, known, (void *)&tvm_ops[i]);
    }
    return map_find(&w->ops, op);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

const char *tvm_number(size_t node) { return fmt_text("%zu", node); }

static void add_attr(Str *out, const char *key, const char *value) {
    str_printf(out, "%s\"%s\": ", out->len ? ", " : "", key);
    diag_add_json_text(out, value);
}

static void add_attrs(Str *out, va_list args) {
    const char *key;
    while ((key = va_arg(args, const char *)))
        add_attr(out, key, va_arg(args, const char *));
}

static size_t add_node(Writer *w, const char *text) {
    str_printf(&w->nodes, ",\n    {%s}", text);
    return ++w->nnodes;
}

static size_t add_shared(Writer *w, const char *text) {
    const Symbol *key = sym_intern(text);
    uintptr_t known = (uintptr_t)map_find(&w->shared, key);
    if (!known) {
        known = add_node(w, text) + 1;
        map_set(&w->shared, key, (void *)known);
    }
    return known - 1;
}

static const char *node_text(const char *kind, const Str *attrs) {
    return fmt_text("\"type_key\": \"%s\", \"attrs\": {%s}", kind, str_text(attrs));
}

size_t tvm_node(Writer *w, const char *kind, ...) {
    Str attrs = {0};
    va_list args;
    va_start(args, kind);
    add_attrs(&attrs, args);
    va_end(args);
    return add_node(w, node_text(kind, &attrs));
}

size_t tvm_shared_node(Writer *w, const char *kind, ...) {
    Str attrs = {0};
    va_list args;
    va_start(args, kind);
    add_attrs(&attrs, args);
    va_end(args);
    return add_shared(w, node_text(kind, &attrs));
}

size_t tvm_expr(Writer *w, const char *kind, ...) {
    Str attrs = {0};
    va_list args;
    va_start(args, kind);
    add_attr(&attrs, "_checked_type_", "0");
    add_attrs(&attrs, args);
    add_attr(&attrs, "span", "0");
    add_attr(&attrs, "virtual_device_", "0");
    va_end(args);
    return add_node(w, node_text(kind, &attrs));
}

static size_t add_repr(Writer *w, const char *kind, const char *text) {
    Str out = {0};
    str_printf(&out, "\"type_key\": \"%s\", \"repr_str\": ", kind);
    diag_add_json_text(&out, text);
    return add_shared(w, str_text(&out));
}

size_t tvm_write_text(Writer *w, const char *text) { return add_repr(w, "runtime.String", text); }

size_t tvm_write_int(Writer *w, int64_t i) {
    return tvm_shared_node(w, "IntImm", "dtype", i == (int32_t)i ? "int32" : "int64", "span", "0",
                           "value", fmt_text("%" PRId64, i), NULL);
}

static void add_items(Str *out, const size_t *items, size_t n) {
    str_add(out, "\"data\": [");
    for (size_t i = 0; i < n; i++)
        str_printf(out, "%s%zu", i ? ", " : "", items[i]);
    str_add(out, "]");
}

size_t tvm_write_list(Writer *w, const size_t *items, size_t n) {
    Str out = {0};
    str_add(&out, "\"type_key\": \"Array\", ");
    add_items(&out, items, n);
    return add_shared(w, str_text(&out));
}

size_t tvm_write_map(Writer *w, const char *const *keys, const size_t *items, size_t n) {
    Str out = {0};
    str_add(&out, "\"type_key\": \"Map\", ");
    for (size_t i = 0; keys && i < n; i++) {
        str_add(&out, i ? ", " : "\"keys\": [");
        diag_add_json_text(&out, keys[i]);
    }
    str_add(&out, keys && n ? "], " : "");
    add_items(&out, items, n);
    return add_node(w, str_text(&out));
}

/* ---- operators ------------------------------------------------------------------------------- */

size_t tvm_write_op(Writer *w, const Op *op, Span span) {
    /* What refuses to overflow in Relay has no errors in a graph. */
    op = op == &op_checked_add        ? &op_add
         : op == &op_checked_subtract ? &op_subtract
         : op == &op_checked_multiply ? &op_multiply
                                      : op;
    if (!find_op(w, op))
        return tvm_refuse(w, span, fmt_text("operator `%s`", op->name));
    return add_repr(w, "Op", op->name);
}

size_t tvm_write_dyn(Writer *w, const Op *op, Span span) {
    if (!find_op(w, op))
        return tvm_refuse(w, span, fmt_text("operator `%s`", op->name));
    return add_repr(w, "Op", fmt_text("dyn.%s", op->name));
}

static const char *float_text(double f) {
    return isnan(f) ? "nan" : isinf(f) ? (f < 0 ? "-inf" : "inf") : fmt_text("%.17g", f);
}

/* A value that is an object of TVM's. A size that is none of a constant has no counterpart. */
static size_t write_object(Writer *w, const AttrValue *v) {
    size_t *items;
    switch (v->kind) {
    case ATTR_INT: return tvm_write_int(w, v->i);
    case ATTR_BOOL:
        return tvm_shared_node(w, "IntImm", "dtype", "bool", "span", "0", "value", v->i ? "1" : "0",
                               NULL);
    case ATTR_FLOAT:
        return tvm_shared_node(w, "FloatImm", "dtype", "float64", "span", "0", "value",
                               float_text(v->f), NULL);
    case ATTR_STRING: return tvm_write_text(w, v->text);
    case ATTR_LIST:
        items = mem_new_n(size_t, v->list.n + 1);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = write_object(w, &v->list.items[i]);
        return tvm_write_list(w, items, v->list.n);
    case ATTR_NONE: return 0;
    case ATTR_DTYPE:
    case ATTR_DIM:
    case ATTR_REF: break;
    }
    return tvm_refuse(w, v->span, "a size that is computed, as an attribute");
}

static bool is_lone_int(AttrType type, const AttrValue *v) {
    return v->kind == ATTR_INT &&
           (type == AT_INTS || type == AT_INTS_OPT || type == AT_DIMS || type == AT_DIMS_OPT);
}

static const char *attr_text(Writer *w, const Op *op, const AttrSpec *spec, const AttrValue *v) {
    bool held = tvm_is_held_as_object(op, spec->name);
    if (spec->type == AT_DTYPE)
        return v->kind == ATTR_DTYPE ? dtype_info[v->dtype].name : "";
    if (v->kind == ATTR_BOOL && !held)
        return v->i ? "1" : "0";
    if (spec->type == AT_FLOAT && (v->kind == ATTR_FLOAT || v->kind == ATTR_INT))
        return float_text(v->kind == ATTR_FLOAT ? v->f : (double)v->i);
    if ((spec->type == AT_INT || spec->type == AT_DIM) && v->kind == ATTR_INT && !held)
        return fmt_text("%" PRId64, v->i);
    if (is_lone_int(spec->type, v)) {
        size_t item = tvm_write_int(w, v->i);
        return tvm_number(tvm_write_list(w, &item, 1));
    }
    return tvm_number(write_object(w, v));
}

/* Fields of the class beside the operator's attributes, in the form of tvm_ops.def. */
static void add_fields(Writer *w, const char *fields, const Expr *call, const size_t *args,
                       Str *out) {
    uint32_t next = 0;
    while (*fields) {
        size_t n = strcspn(fields, " ");
        const char *sign = memchr(fields, '=', n);
        const char *key = fmt_text("%.*s", (int)(sign ? sign - fields : (ptrdiff_t)n), fields);
        if (!sign) {
            add_attr(out, key, tvm_number(next < call->nargs ? args[next] : 0));
            next++;
        } else {
            const char *value = fmt_text("%.*s", (int)(fields + n - sign - 1), sign + 1);
            add_attr(out, key, *value == '"' ? tvm_number(tvm_write_text(w, value + 1)) : value);
        }
        fields += n + (fields[n] == ' ');
    }
}

size_t tvm_write_attrs(Writer *w, const Expr *call, const size_t *args) {
    const Op *op = call->a->op;
    const TvmOp *known = find_op(w, op);
    const Attrs *attrs = call->attrs ? call->attrs : attrs_defaults(op);
    Str out = {0}, given = {0};
    if (!known)
        return 0;
    if (call->nsizes)
        return tvm_refuse(w, call->span, "a size that is computed, as an attribute");
    if (!*known->class) {
        if (attrs)
            attrs_print(&given, attrs);
        return given.len ? tvm_refuse(w, call->span,
                                      fmt_text("the attributes of operator `%s`", op->name))
                         : 0;
    }
    for (int i = 0; attrs && i < op->nattrs; i++)
        add_attr(&out, op->attrs[i].name, attr_text(w, op, &op->attrs[i], &attrs->values[i]));
    add_fields(w, known->fields, call, args, &out);
    return add_node(w, node_text(fmt_text("relay.attrs.%s", known->class), &out));
}
