/* SPDX-License-Identifier: Apache-2.0 */
/* Field numbers are those of onnx.proto (github.com/onnx/onnx, Apache-2.0). Unknown fields are skipped, as
 * protocol buffers ask. */
#include "interchange/onnx.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const char *path;
    Span at;
    Diags *diags;
    int depth; /* of graphs in attributes of nodes, and of types in types */
    bool failed;
} Reader;

static bool fail(Reader *r, const char *what) {
    if (!r->failed)
        diag_error(r->diags, DIAG_R0508, r->at, "`%s` is no ONNX model: %s", r->path, what);
    r->failed = true;
    return false;
}

static const struct {
    int64_t type;
    DType dtype;
} dtypes[] = {
    {ONNX_FLOAT, DT_F32},     {ONNX_UINT8, DT_U8},   {ONNX_INT8, DT_I8},    {ONNX_UINT16, DT_U16},
    {ONNX_INT16, DT_I16},     {ONNX_INT32, DT_I32},  {ONNX_INT64, DT_I64},  {ONNX_BOOL, DT_BOOL},
    {ONNX_FLOAT16, DT_F16},   {ONNX_DOUBLE, DT_F64}, {ONNX_UINT32, DT_U32}, {ONNX_UINT64, DT_U64},
    {ONNX_BFLOAT16, DT_BF16},
};
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

bool onnx_find_dtype(int64_t type, DType *out) {
    for (int i = 0; i < NDTYPES; i++)
        if (dtypes[i].type == type) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

int64_t onnx_dtype_of(DType dtype) {
    for (int i = 0; i < NDTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].type;
    return ONNX_UNDEFINED;
}

const char *onnx_dtype_name(int64_t type) {
    static const char *const names[] = {
        "undefined",      "float32",  "uint8",        "int8",           "uint16",
        "int16",          "int32",    "int64",        "string",         "bool",
        "float16",        "float64",  "uint32",       "uint64",         "complex64",
        "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
        "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
        "uint2",          "int2"};
    if (type >= 0 && type < (int64_t)(sizeof names / sizeof *names))
        return names[type];
    return fmt_text("number %lld", (long long)type);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Texts end at their first NUL: what follows it nobody could read. */
static const char *text_of(const WireField *f) {
    return f->type == WIRE_BYTES ? mem_strndup((const char *)f->bytes.p, wire_left(&f->bytes)) : "";
}

static Wire part_of(const WireField *f) { return f->type == WIRE_BYTES ? f->bytes : (Wire){0}; }

/* Repeated integers, packed or one a field. */
static void add_ints(const WireField *f, OnnxInts *out) {
    if (f->type == WIRE_VARINT)
        vec_push(out, (int64_t)f->value);
    uint64_t v;
    for (Wire w = part_of(f); wire_varint(&w, &v);)
        vec_push(out, (int64_t)v);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Elements that stand in a field of their type; the field's numbers are wider than small elements. */
typedef struct Elements {
    Wire packed; /* the one packed field, where there is one */
    size_t fields;
    Str loose; /* fields that are not packed, as they would lie */
} Elements;

static void add_elements(Elements *e, const WireField *f) {
    e->fields++;
    if (f->type == WIRE_BYTES && e->fields == 1) {
        e->packed = f->bytes;
        return;
    }
    if (e->fields == 2)
        str_add_n(&e->loose, (const char *)e->packed.p, wire_left(&e->packed));
    if (f->type == WIRE_BYTES)
        str_add_n(&e->loose, (const char *)f->bytes.p, wire_left(&f->bytes));
    else if (f->type == WIRE_FIXED32 || f->type == WIRE_FIXED64)
        for (int i = 0; i < (f->type == WIRE_FIXED32 ? 4 : 8); i++)
            str_add_char(&e->loose, (char)(f->value >> 8 * i));
    else {
        uint64_t v = f->value;
        for (; v >= 0x80; v >>= 7)
            str_add_char(&e->loose, (char)(v | 0x80));
        str_add_char(&e->loose, (char)v);
    }
    e->packed = wire_of((const unsigned char *)str_text(&e->loose), e->loose.len);
}

/* Varints, one an element, as elements of the dtype. Halves stand as their bits. */
static void decode_varints(OnnxTensor *t, Wire w, DType d) {
    size_t size = dtype_size(d);
    unsigned char *out = mem_bytes((size_t)t->count * size + 1);
    int64_t n = 0;
    for (uint64_t v; wire_varint(&w, &v); n++) {
        if (n == t->count)
            break;
        if (d == DT_BOOL)
            v = v != 0;
        memcpy(out + (size_t)n * size, &v, size);
    }
    if (w.failed || n != t->count || wire_left(&w)) {
        t->wrong = "its elements are not as many as its shape says";
        return;
    }
    t->data = out;
    t->bytes = (size_t)t->count * size;
}

static void find_elements(OnnxTensor *t, Wire raw, bool has_raw, const Elements *typed) {
    DType d;
    if (t->wrong || t->location)
        return;
    if (!onnx_find_dtype(t->type, &d)) {
        t->wrong = fmt_text("its elements are of %s", onnx_dtype_name(t->type));
        return;
    }
    size_t size = dtype_size(d);
    bool fixed = d == DT_F32 || d == DT_F64;
    if (has_raw || fixed) {
        Wire from = has_raw ? raw : typed->packed;
        if (wire_left(&from) / size != (size_t)t->count || wire_left(&from) % size) {
            t->wrong = fmt_text("it has %zu bytes of elements, its shape asks for %lld of %zu",
                                wire_left(&from), (long long)t->count, size);
            return;
        }
        t->data = from.p ? from.p : (const unsigned char *)"";
        t->bytes = wire_left(&from);
    } else if ((size_t)t->count > wire_left(&typed->packed)) {
        t->wrong = "its elements are not as many as its shape says";
    } else {
        decode_varints(t, typed->packed, d);
    }
    /* A bool is 0 or 1, whatever byte the file has. */
    if (d == DT_BOOL && t->data) {
        unsigned char *out = mem_bytes(t->bytes + 1);
        for (size_t i = 0; i < t->bytes; i++)
            out[i] = t->data[i] != 0;
        t->data = out;
    }
}

static void read_external(OnnxTensor *t, Wire w) {
    const char *key = "", *value = "";
    for (WireField f; wire_next(&w, &f);) {
        if (f.number == 1)
            key = text_of(&f);
        else if (f.number == 2)
            value = text_of(&f);
    }
    char *end;
    if (strcmp(key, "location") == 0)
        t->location = value;
    if (strcmp(key, "offset") == 0 || strcmp(key, "length") == 0) {
        long long n = strtoll(value, &end, 10);
        if (n < 0 || *end || end == value)
            t->wrong = fmt_text("its external data has the %s `%s`", key, value);
        else if (key[0] == 'o')
            t->offset = n;
        else
            t->length = n;
    }
}

static OnnxTensor *read_tensor(Reader *r, Wire w) {
    OnnxTensor *t = mem_new(OnnxTensor);
    OnnxInts dims = {0};
    Elements typed = {0};
    Wire raw = {0};
    bool has_raw = false, outside = false;
    *t = (OnnxTensor){.name = "", .length = -1};
    for (WireField f; wire_next(&w, &f);) {
        switch (f.number) {
        case 1: add_ints(&f, &dims); break;
        case 2: t->type = (int64_t)f.value; break;
        case 4:  /* float_data */
        case 5:  /* int32_data */
        case 7:  /* int64_data */
        case 10: /* double_data */
        case 11: add_elements(&typed, &f); break;
        case 6: t->wrong = "its elements are strings"; break;
        case 8: t->name = text_of(&f); break;
        case 9:
            raw = part_of(&f);
            has_raw = true;
            break;
        case 13: read_external(t, part_of(&f)); break;
        case 14: outside = f.value == 1; break;
        }
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of tensor `%s` end too early", t->name));
    if (!outside)
        t->location = NULL;
    else if (!t->location)
        t->wrong = "its data is outside of the file, and nothing says where";
    t->count = 1;
    t->rank = (int)(dims.len > ONNX_MAX_RANK ? ONNX_MAX_RANK : dims.len);
    t->dims = dims.data;
    if (dims.len > ONNX_MAX_RANK)
        t->wrong = fmt_text("it has %zu axes", dims.len);
    for (int i = 0; i < t->rank; i++)
        if (dims.data[i] < 0 || __builtin_mul_overflow(t->count, dims.data[i], &t->count) ||
            t->count > (int64_t)1 << 48) {
            t->wrong = "its shape is no shape that a tensor can have";
            t->count = 0;
            break;
        }
    find_elements(t, raw, has_raw, &typed);
    return t;
}

/* ---- types ----------------------------------------------------------------------------------- */

static void read_shape(OnnxType *t, Wire w) {
    t->has_shape = true;
    for (WireField f; wire_next(&w, &f);) {
        if (f.number != 1)
            continue;
        OnnxDim dim = {-1, NULL};
        Wire part = part_of(&f);
        for (WireField g; wire_next(&part, &g);) {
            if (g.number == 1 && g.type == WIRE_VARINT)
                dim.size = (int64_t)g.value;
            else if (g.number == 2)
                dim.param = text_of(&g);
        }
        if (dim.size < 0 || dim.size > ONNX_MOST_SIZE) /* no tensor is so large */
            dim.size = -1;
        vec_push(&t->dims, dim);
    }
}

static OnnxType *read_type(Reader *r, Wire w) {
    OnnxType *t = mem_new(OnnxType);
    if (++r->depth > ONNX_MAX_DEPTH)
        fail(r, "its types are nested too deeply");
    for (WireField f; !r->failed && wire_next(&w, &f);) {
        Wire part = part_of(&f);
        switch (f.number) {
        case 1:
            t->kind = ONNX_TYPE_TENSOR;
            for (WireField g; wire_next(&part, &g);) {
                if (g.number == 1)
                    t->elem = (int64_t)g.value;
                else if (g.number == 2)
                    read_shape(t, part_of(&g));
            }
            break;
        case 4:
        case 9:
            t->kind = f.number == 4 ? ONNX_TYPE_SEQUENCE : ONNX_TYPE_OPTIONAL;
            for (WireField g; !r->failed && wire_next(&part, &g);)
                if (g.number == 1)
                    t->of = read_type(r, part_of(&g));
            break;
        case 5: t->kind = ONNX_TYPE_MAP; break;
        case 8: t->kind = ONNX_TYPE_SPARSE; break;
        }
    }
    if ((t->kind == ONNX_TYPE_SEQUENCE || t->kind == ONNX_TYPE_OPTIONAL) && !t->of)
        t->of = mem_new(OnnxType);
    r->depth--;
    return t;
}

static OnnxValue *read_value(Reader *r, Wire w) {
    OnnxValue *v = mem_new(OnnxValue);
    v->name = "";
    for (WireField f; !r->failed && wire_next(&w, &f);) {
        if (f.number == 1)
            v->name = text_of(&f);
        else if (f.number == 2)
            v->type = read_type(r, part_of(&f));
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of value `%s` end too early", v->name));
    if (!v->type)
        v->type = mem_new(OnnxType);
    return v;
}

/* ---- nodes and graphs ------------------------------------------------------------------------ */

static OnnxGraph *read_graph(Reader *r, Wire w);

static void add_float(OnnxAttr *a, const WireField *f) {
    if (f->type == WIRE_FIXED32)
        vec_push(&a->floats, wire_float(f->value));
    Wire w = part_of(f);
    for (; wire_left(&w) >= 4; w.p += 4) {
        uint32_t bits = (uint32_t)w.p[0] | (uint32_t)w.p[1] << 8 | (uint32_t)w.p[2] << 16 |
                        (uint32_t)w.p[3] << 24;
        vec_push(&a->floats, wire_float(bits));
    }
}

static OnnxAttr *read_attr(Reader *r, Wire w) {
    OnnxAttr *a = mem_new(OnnxAttr);
    a->name = a->s = "";
    OnnxAttrType found = ONNX_ATTR_UNDEFINED;
    for (WireField f; !r->failed && wire_next(&w, &f);) {
        switch (f.number) {
        case 1: a->name = text_of(&f); break;
        case 2:
            a->f = wire_float(f.value);
            found = ONNX_ATTR_FLOAT;
            break;
        case 3:
            a->i = (int64_t)f.value;
            found = ONNX_ATTR_INT;
            break;
        case 4:
            a->s = text_of(&f);
            found = ONNX_ATTR_STRING;
            break;
        case 5:
            a->tensor = read_tensor(r, part_of(&f));
            found = ONNX_ATTR_TENSOR;
            break;
        case 6:
            a->graph = read_graph(r, part_of(&f));
            found = ONNX_ATTR_GRAPH;
            break;
        case 7:
            add_float(a, &f);
            found = ONNX_ATTR_FLOATS;
            break;
        case 8:
            add_ints(&f, &a->ints);
            found = ONNX_ATTR_INTS;
            break;
        case 9:
            vec_push(&a->strings, text_of(&f));
            found = ONNX_ATTR_STRINGS;
            break;
        case 20:
            a->type = f.value <= ONNX_ATTR_TYPES ? (OnnxAttrType)f.value : ONNX_ATTR_UNDEFINED;
            break;
        case 21: a->refers = text_of(&f); break;
        }
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of attribute `%s` end too early", a->name));
    if (a->type == ONNX_ATTR_UNDEFINED)
        a->type = found;
    /* What a type says is there, is there. */
    if ((a->type == ONNX_ATTR_TENSOR && !a->tensor) || (a->type == ONNX_ATTR_GRAPH && !a->graph))
        fail(r, fmt_text("attribute `%s` has no value", a->name));
    return a;
}

static OnnxNode *read_node(Reader *r, Wire w) {
    OnnxNode *n = mem_new(OnnxNode);
    n->name = n->op = n->domain = "";
    for (WireField f; !r->failed && wire_next(&w, &f);) {
        switch (f.number) {
        case 1: vec_push(&n->inputs, text_of(&f)); break;
        case 2: vec_push(&n->outputs, text_of(&f)); break;
        case 3: n->name = text_of(&f); break;
        case 4: n->op = text_of(&f); break;
        case 5: vec_push(&n->attrs, read_attr(r, part_of(&f))); break;
        case 7: n->domain = text_of(&f); break;
        }
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of node `%s` end too early", n->name));
    if (strcmp(n->domain, "ai.onnx") == 0)
        n->domain = "";
    return n;
}

static OnnxGraph *read_graph(Reader *r, Wire w) {
    OnnxGraph *g = mem_new(OnnxGraph);
    g->name = "";
    if (++r->depth > ONNX_MAX_DEPTH)
        fail(r, "its graphs are nested too deeply");
    for (WireField f; !r->failed && wire_next(&w, &f);) {
        switch (f.number) {
        case 1: vec_push(&g->nodes, read_node(r, part_of(&f))); break;
        case 2: g->name = text_of(&f); break;
        case 5: vec_push(&g->initializers, read_tensor(r, part_of(&f))); break;
        case 11: vec_push(&g->inputs, read_value(r, part_of(&f))); break;
        case 12: vec_push(&g->outputs, read_value(r, part_of(&f))); break;
        case 13: vec_push(&g->infos, read_value(r, part_of(&f))); break;
        case 15: g->sparse++; break;
        }
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of graph `%s` end too early", g->name));
    r->depth--;
    return g;
}

static OnnxFunction *read_function(Reader *r, Wire w) {
    OnnxFunction *f = mem_new(OnnxFunction);
    f->name = f->domain = "";
    for (WireField g; !r->failed && wire_next(&w, &g);) {
        switch (g.number) {
        case 1: f->name = text_of(&g); break;
        case 4: vec_push(&f->inputs, text_of(&g)); break;
        case 5: vec_push(&f->outputs, text_of(&g)); break;
        case 6: vec_push(&f->attr_names, text_of(&g)); break;
        case 7: vec_push(&f->nodes, read_node(r, part_of(&g))); break;
        case 10: f->domain = text_of(&g); break;
        case 11: vec_push(&f->defaults, read_attr(r, part_of(&g))); break;
        }
    }
    if (w.failed)
        fail(r, fmt_text("the bytes of function `%s` end too early", f->name));
    return f;
}

/* ---- the model ------------------------------------------------------------------------------- */

bool onnx_is_model(const unsigned char *p, size_t n) {
    Wire w = wire_of(p, n);
    bool graph = false;
    for (WireField f; wire_next(&w, &f);) {
        if (f.number > 32 || (f.number == 7 && f.type != WIRE_BYTES) ||
            (f.number == 1 && f.type != WIRE_VARINT))
            return false;
        graph |= f.number == 7;
    }
    return graph && !w.failed;
}

OnnxModel *onnx_read(const char *path, const unsigned char *p, size_t n, Span at, Diags *diags) {
    Reader r = {.path = path, .at = at, .diags = diags};
    OnnxModel *m = mem_new(OnnxModel);
    *m = (OnnxModel){.path = path, .at = at, .producer = "", .producer_version = ""};
    Wire w = wire_of(p, n);
    for (WireField f; !r.failed && wire_next(&w, &f);) {
        switch (f.number) {
        case 1: m->ir_version = (int64_t)f.value; break;
        case 2: m->producer = text_of(&f); break;
        case 3: m->producer_version = text_of(&f); break;
        case 7: m->graph = read_graph(&r, part_of(&f)); break;
        case 8: {
            const char *domain = "";
            int64_t version = 0;
            Wire part = part_of(&f);
            for (WireField g; wire_next(&part, &g);) {
                if (g.number == 1)
                    domain = text_of(&g);
                else if (g.number == 2)
                    version = (int64_t)g.value;
            }
            if (!*domain || strcmp(domain, "ai.onnx") == 0)
                m->opset = version;
            vec_push(&m->domains, domain);
            break;
        }
        case 25: vec_push(&m->functions, read_function(&r, part_of(&f))); break;
        }
    }
    if (w.failed)
        fail(&r, "its bytes end too early, or are no fields");
    if (!r.failed && !m->graph)
        fail(&r, n ? "it has no graph" : "it is empty");
    return r.failed ? NULL : m;
}
