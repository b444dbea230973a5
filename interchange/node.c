/* SPDX-License-Identifier: Apache-2.0 */
/* What translators see of a node. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "interchange/translation.h"

/* ---- numbers as text -------------------------------------------------------------------------- */

const char *ints_print(const int64_t *v, size_t n) {
    Str out = {0};
    str_add(&out, "[");
    for (size_t i = 0; i < n; i++)
        str_printf(&out, "%s%lld", i ? ", " : "", (long long)v[i]);
    str_add(&out, "]");
    return str_text(&out);
}

static const char *const suffixes[DTYPE_COUNT] = {
    [DT_I8] = "i8",   [DT_I16] = "i16", [DT_I64] = "i64", [DT_U8] = "u8",     [DT_U16] = "u16",
    [DT_U32] = "u32", [DT_U64] = "u64", [DT_F16] = "f16", [DT_BF16] = "bf16", [DT_F64] = "f64",
};

const char *float_text(double v, DType d) {
    static const int bits[DTYPE_COUNT] = {
        [DT_F16] = 16, [DT_BF16] = 17, [DT_F32] = 32, [DT_F64] = 64};
    const char *suffix = suffixes[d] ? suffixes[d] : "";
    if (isnan(v) || isinf(v)) {
        const char *word = isnan(v) ? "nan" : v < 0 ? "(-inf)" : "inf";
        return d == DT_F32 ? word : fmt_text("cast(%s, dtype=%s)", word, dtype_info[d].name);
    }
    Str out = {0};
    str_add_float(&out, v, bits[d]);
    return fmt_text(signbit(v) ? "(%s%s)" : "%s%s", str_text(&out), suffix);
}

const char *int_text(int64_t v, DType d) {
    const char *suffix = suffixes[d] ? suffixes[d] : "";
    if (d == DT_U64)
        return fmt_text("%llu%s", (unsigned long long)v, suffix);
    return fmt_text(v < 0 ? "(%lld%s)" : "%lld%s", (long long)v, suffix);
}

/* ---- values ---------------------------------------------------------------------------------- */

Val *val_tensor(const char *text, DType dtype, int rank, const Num *dims) {
    Val *v = mem_new(Val);
    *v = (Val){.text = text, .has_dtype = true, .dtype = dtype, .rank = rank};
    v->dims = mem_new_n(Num, (rank < 0 ? 0 : rank) + 1);
    for (int i = 0; dims && i < rank; i++)
        v->dims[i] = dims[i];
    return v;
}

Val *val_like(const Val *v, const char *text) {
    Val *out = mem_new(Val);
    *out = *v;
    out->text = text;
    out->has_nums = false;
    out->constant = NULL;
    return out;
}

Num val_dim(const Val *v, int axis) {
    Num n = v->dims[axis];
    if (n.known || n.text)
        return n;
    return num_size(fmt_text("shape_of(%s, dtype=int64)[%d]", v->text, axis));
}

static Num join_dim(Num a, Num b) {
    if (a.known && a.n == 1)
        return b;
    if (b.known && b.n == 1)
        return a;
    if (a.known)
        return a;
    if (b.known)
        return b;
    return num_is(a, b) ? a : num_unknown();
}

Val *val_broadcast(const char *text, DType dtype, Val *const *v, size_t n) {
    int rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i]->rank < 0)
            return val_tensor(text, dtype, -1, NULL);
        rank = v[i]->rank > rank ? v[i]->rank : rank;
    }
    Val *out = val_tensor(text, dtype, rank, NULL);
    for (int axis = 0; axis < rank; axis++) {
        Num dim = num_int(1);
        for (size_t i = 0; i < n; i++) {
            int at = axis - (rank - v[i]->rank);
            if (at >= 0)
                dim = join_dim(dim, v[i]->dims[at]);
        }
        out->dims[axis] = dim;
    }
    return out;
}

/* ---- operands -------------------------------------------------------------------------------- */

int64_t node_opset(const Node *n) { return n->scope->opset; }

bool node_refuse(Node *n, const char *fmt, ...) {
    va_list ap;
    Str what = {0};
    va_start(ap, fmt);
    str_vprintf(&what, fmt, ap);
    va_end(ap);
    if (!n->failed)
        translation_refuse(n->scope->t, n->node, str_text(&what));
    n->failed = true;
    return false;
}

uint32_t node_inputs(const Node *n) {
    size_t k = n->node->inputs.len;
    while (k && !*n->node->inputs.data[k - 1])
        k--;
    return (uint32_t)k;
}

uint32_t node_outputs(const Node *n) {
    size_t k = n->node->outputs.len;
    while (k && !*n->node->outputs.data[k - 1])
        k--;
    return (uint32_t)k;
}

bool node_has(const Node *n, uint32_t i) {
    return i < n->node->inputs.len && *n->node->inputs.data[i];
}

bool node_wants(const Node *n, uint32_t i) {
    return i < n->node->outputs.len && *n->node->outputs.data[i];
}

Val *node_in(Node *n, uint32_t i) {
    Val *v = node_has(n, i) ? graph_find(n->scope, n->node->inputs.data[i]) : NULL;
    if (v && !v->bad)
        return v;
    if (!v && node_has(n, i))
        node_refuse(n, "nothing before it computes its input `%s`", n->node->inputs.data[i]);
    else if (!v)
        node_refuse(n, "it has no input %u", i);
    n->failed = true;
    v = val_tensor("()", DT_F32, 0, NULL);
    return v;
}

const char *node_text(Node *n, uint32_t i) { return node_in(n, i)->text; }

DType node_dtype(Node *n, uint32_t i) {
    const Val *v = node_in(n, i);
    if (v->kind != KIND_OF_TENSOR || !v->has_dtype)
        node_refuse(n, "the dtype of input %u is not known", i);
    return v->dtype;
}

int node_rank(Node *n, uint32_t i) {
    const Val *v = node_in(n, i);
    if (v->kind != KIND_OF_TENSOR)
        node_refuse(n, "input %u is no tensor", i);
    else if (v->rank < 0)
        node_refuse(n, "the rank of input %u is not known", i);
    return v->kind != KIND_OF_TENSOR || v->rank < 0 ? 0 : v->rank;
}

bool node_nums(Node *n, uint32_t i, const char *what, Nums *out) {
    const Val *v = node_in(n, i);
    if (n->failed)
        return false;
    if (val_has_nums(v) && v->rank <= 1) {
        *out = v->nums;
        return true;
    }
    /* A vector of known length: its elements. */
    if (v->kind == KIND_OF_TENSOR && v->rank == 1 && v->dims[0].known &&
        v->dims[0].n <= ONNX_MAX_RANK) {
        for (int64_t k = 0; k < v->dims[0].n; k++)
            vec_push(out, num_text(fmt_text("%s[%lld]", v->text, (long long)k)));
        return true;
    }
    if (v->kind == KIND_OF_TENSOR && v->rank == 0) {
        vec_push(out, num_text(v->text));
        return true;
    }
    return node_refuse(n, "%s (input `%s`) is computed, and how many sizes it has is not known",
                       what, n->node->inputs.data[i]);
}

bool node_ints(Node *n, uint32_t i, const char *what, OnnxInts *out) {
    const Val *v = node_in(n, i);
    if (n->failed)
        return false;
    bool known = val_has_nums(v) && v->rank <= 1;
    for (size_t k = 0; known && k < v->nums.len; k++) {
        known = v->nums.data[k].known;
        vec_push(out, v->nums.data[k].n);
    }
    return known ||
           node_refuse(n, "%s (input `%s`) must be constant", what, n->node->inputs.data[i]);
}

bool node_floats(Node *n, uint32_t i, const char *what, double **out, size_t *len) {
    const Val *v = node_in(n, i);
    DType d;
    if (n->failed)
        return false;
    if (!v->constant || !v->constant->data || !onnx_find_dtype(v->constant->type, &d) ||
        v->constant->count > 1024)
        return node_refuse(n, "%s (input `%s`) must be constant", what, n->node->inputs.data[i]);
    *len = (size_t)v->constant->count;
    *out = mem_new_n(double, *len + 1);
    for (size_t k = 0; k < *len; k++) {
        char aligned[8];
        memcpy(aligned, v->constant->data + k * dtype_size(d), dtype_size(d));
        (*out)[k] = dtype_is_float(d) ? elem_get_float(aligned, d)
                                      : (double)elem_get_int(aligned, d);
    }
    return true;
}

int64_t node_axis(Node *n, int64_t axis, int rank) {
    if (axis >= -(int64_t)rank && axis < rank)
        return axis < 0 ? axis + rank : axis;
    node_refuse(n, "axis %lld of a tensor of %d axes", (long long)axis, rank);
    return 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

OnnxAttr *node_attr(Node *n, const char *name) {
    for (size_t i = 0; i < n->node->attrs.len; i++)
        if (strcmp(n->node->attrs.data[i]->name, name) == 0) {
            n->node->attrs.data[i]->used = true;
            return n->node->attrs.data[i];
        }
    return NULL;
}

static OnnxAttr *typed_attr(Node *n, const char *name, OnnxAttrType type) {
    OnnxAttr *a = node_attr(n, name);
    if (a && a->type != type) {
        node_refuse(n, "its attribute `%s` is of another type than the operator's", name);
        return NULL;
    }
    return a;
}

int64_t attr_int(Node *n, const char *name, int64_t otherwise) {
    const OnnxAttr *a = typed_attr(n, name, ONNX_ATTR_INT);
    return a ? a->i : otherwise;
}

double attr_float(Node *n, const char *name, double otherwise) {
    const OnnxAttr *a = typed_attr(n, name, ONNX_ATTR_FLOAT);
    return a ? (double)a->f : otherwise;
}

const char *attr_text(Node *n, const char *name, const char *otherwise) {
    const OnnxAttr *a = typed_attr(n, name, ONNX_ATTR_STRING);
    return a ? a->s : otherwise;
}

bool attr_ints(Node *n, const char *name, OnnxInts *out) {
    const OnnxAttr *a = typed_attr(n, name, ONNX_ATTR_INTS);
    if (a)
        *out = a->ints;
    return a != NULL;
}

void attr_ignore(Node *n, const char *name) { (void)node_attr(n, name); }

/* ---- results --------------------------------------------------------------------------------- */

const char *node_name(Node *n, const char *hint) { return translation_name(n->scope->t, hint); }

static const char *add_statement(Node *n, const char *hint, const char *text) {
    const char *name = node_name(n, hint);
    vec_push(&n->scope->statements, ((Statement){name, text, NULL, n->node}));
    return name;
}

const char *node_let(Node *n, const char *hint, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    return add_statement(n, hint, str_text(&text));
}

void node_alias(Node *n, uint32_t i, Val *v) {
    if (n->failed) {
        v = mem_new(Val);
        v->bad = true;
    }
    if (i < n->node->outputs.len)
        graph_bind(n->scope, n->node->outputs.data[i], v);
}

/* The elements of a sequence differ in their sizes. NULL: not a sequence, or not known. */
static const char *list_type(const Val *v) {
    Str sizes = {0};
    if (v->kind != KIND_OF_SEQUENCE || !v->of || v->of->kind != KIND_OF_TENSOR || v->of->rank < 0)
        return NULL;
    for (int i = 0; i < v->of->rank; i++)
        str_add(&sizes, v->of->rank == 1 ? "?," : i ? ", ?" : "?");
    const char *dtype = dtype_info[v->of->dtype].name;
    return v->of->rank ? fmt_text(": List[Tensor[(%s), %s]]", str_text(&sizes), dtype)
                       : fmt_text(": List[%s]", dtype);
}

void node_bind(Node *n, uint32_t i, Val *v) {
    if (!n->failed && node_wants(n, i)) {
        v->text = add_statement(n, n->node->outputs.data[i], v->text);
        vec_last(&n->scope->statements).type = list_type(v);
    }
    node_alias(n, i, v);
}

void node_bind_like(Node *n, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    node_bind(n, 0, val_like(node_in(n, 0), str_text(&text)));
}

Val *node_tensor(Node *n, const OnnxTensor *t) { return translation_tensor(n->scope->t, t); }

/* A number stands where it is used, a larger literal has a name. */
void node_constant(Node *n, const OnnxTensor *t) {
    Val *v = node_tensor(n, t);
    bool is_named = v->text && v->text[0] == '[' && strlen(v->text) > 40;
    n->failed |= v->bad;
    if (is_named)
        node_bind(n, 0, v);
    else
        node_alias(n, 0, v);
}

void node_import(Node *n) { n->scope->t->imports = true; }

/* ---- nodes and graphs ------------------------------------------------------------------------ */

static const OnnxFunction *find_function(const Translation *t, const OnnxNode *n) {
    for (size_t i = 0; i < t->model->functions.len; i++) {
        const OnnxFunction *f = t->model->functions.data[i];
        if (strcmp(f->name, n->op) == 0 && strcmp(f->domain, n->domain) == 0)
            return f;
    }
    return NULL;
}

/* A node of a function of the model, with the attributes that refer to the call's replaced by those. */
static OnnxNode *with_attrs(const OnnxNode *node, const OnnxNode *call, const OnnxFunction *f) {
    OnnxNode *out = mem_new(OnnxNode);
    *out = *node;
    memset(&out->attrs, 0, sizeof out->attrs);
    for (size_t i = 0; i < node->attrs.len; i++) {
        OnnxAttr *a = node->attrs.data[i];
        const OnnxAttr *given = a->refers ? NULL : a;
        for (size_t k = 0; a->refers && !given && k < call->attrs.len; k++)
            if (strcmp(call->attrs.data[k]->name, a->refers) == 0)
                given = call->attrs.data[k];
        for (size_t k = 0; a->refers && !given && k < f->defaults.len; k++)
            if (strcmp(f->defaults.data[k]->name, a->refers) == 0)
                given = f->defaults.data[k];
        if (!given)
            continue; /* left out in the call, so left out here */
        OnnxAttr *copy = mem_new(OnnxAttr);
        *copy = *given;
        copy->name = a->name;
        vec_push(&out->attrs, copy);
    }
    return out;
}

/* A call of a function of the model is its body, in a scope of its own. */
static void translate_call(Node *n, const OnnxFunction *f) {
    Scope *s = n->scope;
    enum { MAX_CALLS = 64 };
    if (s->t->depth >= MAX_CALLS) {
        node_refuse(n, "functions of the model call each other without end");
        return;
    }
    s->t->depth++;
    Scope *inner = mem_new(Scope);
    *inner = (Scope){.t = s->t, .opset = s->opset, .indent = s->indent};
    for (size_t i = 0; i < f->inputs.len; i++)
        if (node_has(n, (uint32_t)i))
            graph_bind(inner, f->inputs.data[i], node_in(n, (uint32_t)i));
    VEC(OnnxNode *) nodes = {0};
    for (size_t i = 0; i < f->nodes.len; i++)
        vec_push(&nodes, with_attrs(f->nodes.data[i], n->node, f));
    inner->statements.data = s->statements.data;
    inner->statements.len = s->statements.len;
    inner->statements.cap = s->statements.cap;
    scope_translate(inner, nodes.data, nodes.len);
    s->statements.data = inner->statements.data;
    s->statements.len = inner->statements.len;
    s->statements.cap = inner->statements.cap;
    for (size_t i = 0; i < f->outputs.len; i++) {
        Val *v = graph_find(inner, f->outputs.data[i]);
        if (!v) {
            v = mem_new(Val);
            v->bad = true;
        }
        node_alias(n, (uint32_t)i, v);
    }
    s->t->depth--;
}

static void translate_node(Scope *s, const OnnxNode *node) {
    Node n = {.scope = s, .node = node};
    const OnnxFunction *f = find_function(s->t, node);
    n.op = f || *node->domain ? NULL : onnx_op_find(node->op);
    for (size_t i = 0; i < node->inputs.len && !n.failed; i++)
        if (node_has(&n, (uint32_t)i))
            (void)node_in(&n, (uint32_t)i);
    if (f && !n.failed)
        translate_call(&n, f);
    else if (n.op && !n.failed) {
        if (s->opset < n.op->since)
            node_refuse(&n, "it is of opset %lld; Relay knows it since %d", (long long)s->opset,
                        n.op->since);
        else
            n.op->translate(&n);
        for (size_t i = 0; i < node->attrs.len && !n.failed; i++)
            if (!node->attrs.data[i]->used)
                node_refuse(&n, "its attribute `%s` is not known", node->attrs.data[i]->name);
    } else {
        n.failed = true;
    }
    if (!n.failed)
        return;
    Val *bad = mem_new(Val);
    bad->bad = true;
    for (size_t i = 0; i < node->outputs.len; i++)
        graph_bind(s, node->outputs.data[i], bad);
}

void scope_translate(Scope *s, OnnxNode *const *nodes, size_t n) {
    for (size_t i = 0; i < n; i++)
        translate_node(s, nodes[i]);
}

const char *node_graph(Node *n, OnnxGraph *g, Val *const *args, size_t nargs, Vals *out) {
    Scope *s = mem_new(Scope);
    *s = (Scope){.t = n->scope->t,
                 .outer = n->scope,
                 .opset = n->scope->opset,
                 .indent = n->scope->indent + 1};
    for (size_t i = 0; i < g->initializers.len; i++)
        graph_bind(s, g->initializers.data[i]->name,
                   translation_tensor(s->t, g->initializers.data[i]));
    if (g->inputs.len != nargs) {
        node_refuse(n, "its graph `%s` takes %zu inputs, not %zu", g->name, g->inputs.len, nargs);
        return NULL;
    }
    for (size_t i = 0; i < nargs; i++)
        graph_bind(s, g->inputs.data[i]->name, args[i]);
    scope_translate(s, g->nodes.data, g->nodes.len);
    for (size_t i = 0; i < g->outputs.len; i++) {
        Val *v = graph_find(s, g->outputs.data[i]->name);
        if (!v)
            node_refuse(n, "nothing computes the output `%s` of its graph `%s`",
                        g->outputs.data[i]->name, g->name);
        if (!v || v->bad) {
            n->failed = true;
            return NULL;
        }
        vec_push(out, v);
    }
    Str text = {0};
    scope_print(s, value_tuple_text(out->data, out->len), &text);
    return str_text(&text);
}
