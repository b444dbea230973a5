/* SPDX-License-Identifier: Apache-2.0 */
/* Names, scopes and the text as a whole. */
#include "interchange/translate.h"

#include <ctype.h>
#include <string.h>

#include "interchange/translation.h"
#include "parser/lexer.h"
#include "types/op.h"

enum { MAX_NAME = 48, MAX_LITERAL = 64 };

/* ---- names ----------------------------------------------------------------------------------- */

/* Words that a name would hide or that the reader takes for something else, and those of attributes, which scope_print would
 * take for the name's uses; operators are asked for. */
static const char *const taken[] = {
    "let",      "in",       "if",       "then",       "else",       "match",
    "fn",       "def",      "type",     "when",       "with",       "where",
    "import",   "operator", "extern",   "derivative", "tangent",    "no_derivative",
    "Tensor",   "IntType",  "UIntType", "FloatType",  "BoolType",   "list",
    "sq",       "Grad",     "Ref",      "Zero",       "None",       "it",
    "True",     "False",    "bool",     "int8",       "int16",      "int32",
    "int64",    "uint8",    "uint16",   "uint32",     "uint64",     "float16",
    "bfloat16", "float32",  "float64",  "String",     "nan",        "inf",
    "meta",     "free_var", "nn",       "image",      "dyn",        "random",
    "vision",   "qnn",      "onnx",     "linalg",     "w",          "while",
    "loop",     "foldl",    "map",      "nth",        "length",     "rev",
    "tensor",   "load",     "save",     "weights",    "constants",  "stored",
    "run",      "model",    "Model",    "Weights",    "Constants",  "Stored",
    "forall",   "ref",      "grad",     "error",      "str",        "data",
    "main",     "args",     "zip",      "hd",         "tl",         "eye",
    "pi",       "linspace", "std",      "Some",       "Cons",       "Nil",
    "show",     "print",    "id",       "size",       "concat",     "append",
    "drop",     "update",   "json",     "optim",      "loss",       "plot",
    "deriv",    "vm",       "device",   "memory",     "annotation", "contrib",
    "shape",    "axis",     "axes",     "dtype",      "mode",       "layout",
};

static bool is_taken(const Translation *t, const char *name) {
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(taken[i], name) == 0)
            return true;
    return op_find(sym_intern(name)) || map_has(&t->used, sym_intern(name));
}

/* The name as an identifier: `/layer1/Conv_output_0` is layer1_Conv_output_0. */
static const char *identifier(const char *name, const char *otherwise) {
    Str out = {0};
    for (const char *p = name; *p && out.len < MAX_NAME; p++) {
        bool word = isalnum((unsigned char)*p) || *p == '_';
        if (!word && (!out.len || out.text[out.len - 1] == '_'))
            continue;
        if (!out.len && *p == '_')
            continue;
        if (!out.len && isdigit((unsigned char)*p))
            str_add(&out, "v");
        str_add_char(&out, word ? *p : '_');
    }
    while (out.len && out.text[out.len - 1] == '_')
        out.text[--out.len] = '\0';
    return out.len ? str_text(&out) : otherwise;
}

const char *translation_name(Translation *t, const char *hint) {
    const char *base = identifier(hint, "value"), *name = base;
    for (int i = 2; is_taken(t, name); i++)
        name = fmt_text("%s_%d", base, i);
    map_set(&t->used, sym_intern(name), t);
    return name;
}

/* ---- what is stored -------------------------------------------------------------------------- */

static bool is_weight(const OnnxTensor *t) {
    DType d;
    return onnx_find_dtype(t->type, &d) && dtype_is_float(d);
}

static bool is_stored(const OnnxTensor *t, bool initializer) {
    return !t->wrong && (t->location || (initializer && is_weight(t)) || t->count > MAX_LITERAL);
}

/* Whether the reader takes the word for something else than the name of a field. */
static bool is_reserved(const char *word) {
    static const struct {
        const char *word, *class;
    } words[] = {
#define WORD(name, spelling, class) {spelling, #class},
        LEXER_WORDS(WORD)
#undef WORD
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, word))
            return strcmp(words[i].class, "SOFT") != 0;
    return false;
}

static void add_member(OnnxMembers *out, Map *used, const OnnxTensor *t, const char *name,
                       bool weight) {
    const char *base = identifier(name, weight ? "weight" : "constant");
    const char *field = base;
    for (int i = 2; is_reserved(field) || map_has(used, sym_intern(field)); i++)
        field = fmt_text("%s_%d", base, i);
    map_set(used, sym_intern(field), out);
    const char *path = fmt_text("%s.%s", weight ? "weights" : "constants", field);
    vec_push(out, ((OnnxMember){path, field, weight, t}));
}

static void find_in_nodes(OnnxNode *const *nodes, size_t n, OnnxMembers *out, Map *used);

static void find_in_graph(const OnnxGraph *g, bool outermost, OnnxMembers *out, Map *used) {
    for (size_t i = 0; i < g->initializers.len; i++) {
        const OnnxTensor *t = g->initializers.data[i];
        if (is_stored(t, outermost))
            add_member(out, used, t, t->name, outermost && is_weight(t));
    }
    find_in_nodes(g->nodes.data, g->nodes.len, out, used);
}

static void find_in_nodes(OnnxNode *const *nodes, size_t n, OnnxMembers *out, Map *used) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i]->attrs.len; k++) {
            const OnnxAttr *a = nodes[i]->attrs.data[k];
            const char *name = nodes[i]->outputs.len ? nodes[i]->outputs.data[0] : a->name;
            if (a->graph)
                find_in_graph(a->graph, false, out, used);
            if (a->tensor && is_stored(a->tensor, false))
                add_member(out, used, a->tensor, name, false);
        }
}

void onnx_find_members(const OnnxModel *m, OnnxMembers *out) {
    Map used = {0};
    find_in_graph(m->graph, true, out, &used);
    for (size_t i = 0; i < m->functions.len; i++)
        find_in_nodes(m->functions.data[i]->nodes.data, m->functions.data[i]->nodes.len, out,
                      &used);
}

/* ---- literals -------------------------------------------------------------------------------- */

static void add_element(Str *out, const OnnxTensor *t, DType d, int64_t i) {
    const unsigned char *p = t->data + (size_t)i * dtype_size(d);
    char aligned[8];
    memcpy(aligned, p, dtype_size(d));
    if (d == DT_BOOL)
        str_add(out, *p ? "True" : "False");
    else if (dtype_is_float(d))
        str_add(out, float_text(elem_get_float(aligned, d), d));
    else
        str_add(out, int_text(elem_get_int(aligned, d), d));
}

static void add_nested(Str *out, const OnnxTensor *t, DType d, int axis, int64_t *at) {
    if (axis == t->rank) {
        add_element(out, t, d, (*at)++);
        return;
    }
    str_add(out, "[");
    for (int64_t i = 0; i < t->dims[axis]; i++) {
        str_add(out, i ? ", " : "");
        add_nested(out, t, d, axis + 1, at);
    }
    str_add(out, "]");
}

static const char *literal(const OnnxTensor *t, DType d) {
    Str out = {0};
    int64_t at = 0;
    if (t->count == 0)
        str_printf(&out, "zeros(shape=%s, dtype=%s)", ints_print(t->dims, (size_t)t->rank),
                   dtype_info[d].name);
    else
        add_nested(&out, t, d, 0, &at);
    return str_text(&out);
}

Val *translation_tensor(Translation *t, const OnnxTensor *tensor) {
    Val *v = mem_new(Val);
    const OnnxMember *m = map_find(&t->members, tensor);
    DType d;
    if (tensor->wrong || !onnx_find_dtype(tensor->type, &d)) {
        translation_refuse(t, NULL,
                           fmt_text("tensor `%s`: %s", tensor->name,
                                    tensor->wrong ? tensor->wrong
                                                  : fmt_text("Relay has no dtype %s",
                                                             onnx_dtype_name(tensor->type))));
        v->bad = true;
        return v;
    }
    Num *dims = mem_new_n(Num, tensor->rank + 1);
    for (int i = 0; i < tensor->rank; i++)
        dims[i] = num_int(tensor->dims[i]);
    const char *text = m ? fmt_text("%s.%s", m->weight ? "w" : "constants", m->field)
                         : literal(tensor, d);
    v = val_tensor(text, d, tensor->rank, dims);
    v->constant = tensor->data ? tensor : NULL;
    if (tensor->data && (dtype_is_int(d) || d == DT_BOOL) && tensor->count <= MOST_NUMS) {
        v->has_nums = true;
        for (int64_t i = 0; i < tensor->count; i++) {
            char aligned[8];
            memcpy(aligned, tensor->data + (size_t)i * dtype_size(d), dtype_size(d));
            vec_push(&v->nums, num_int(elem_get_int(aligned, d)));
        }
    }
    return v;
}

/* ---- refusals -------------------------------------------------------------------------------- */

const char *node_described(const OnnxNode *n) {
    const char *domain = *n->domain ? fmt_text("%s.", n->domain) : "";
    const char *name = *n->name ? n->name : n->outputs.len ? n->outputs.data[0] : "";
    return *name ? fmt_text("%s%s \"%s\"", domain, n->op, name) : fmt_text("%s%s", domain, n->op);
}

void translation_refuse(Translation *t, const OnnxNode *node, const char *what) {
    enum { NAMED = 3 };
    const char *where = node ? node_described(node) : "";
    for (size_t i = 0; i < t->reasons.len; i++) {
        Reason *r = &t->reasons.data[i];
        if (strcmp(r->what, what) != 0)
            continue;
        if (++r->count <= NAMED)
            r->nodes = fmt_text("%s, %s", r->nodes, where);
        return;
    }
    vec_push(&t->reasons, ((Reason){what, where, 1}));
}

static void report(const Translation *t, Diags *diags) {
    Diag *d = diag_error(diags, DIAG_R0509, t->model->at, "`%s` cannot be translated to Relay",
                         t->model->path);
    enum { SHOWN = 40 };
    for (size_t i = 0; i < t->reasons.len && i < SHOWN; i++) {
        const Reason *r = &t->reasons.data[i];
        if (!*r->nodes)
            diag_add_fact(d, "%s", r->what);
        else if (r->count > 3)
            diag_add_fact(d, "%s and %zu more: %s", r->nodes, r->count - 3, r->what);
        else
            diag_add_fact(d, "%s: %s", r->nodes, r->what);
    }
    if (t->reasons.len > SHOWN)
        diag_add_fact(d, "and %zu more", t->reasons.len - SHOWN);
}

/* Operators that are not there are found before anything else, in every graph, so that none is passed over
 * because an earlier node was refused. */
static void find_missing(Translation *t, OnnxNode *const *nodes, size_t n);

static bool is_function(const Translation *t, const OnnxNode *n) {
    for (size_t i = 0; i < t->model->functions.len; i++)
        if (strcmp(t->model->functions.data[i]->name, n->op) == 0 &&
            strcmp(t->model->functions.data[i]->domain, n->domain) == 0)
            return true;
    return false;
}

static void find_missing(Translation *t, OnnxNode *const *nodes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const OnnxNode *node = nodes[i];
        if (!is_function(t, node) && (*node->domain || !onnx_op_find(node->op)))
            translation_refuse(t, node,
                               fmt_text("there is no operator `%s%s%s` in Relay's table",
                                        node->domain, *node->domain ? "." : "", node->op));
        for (size_t k = 0; k < node->attrs.len; k++)
            if (node->attrs.data[k]->graph)
                find_missing(t, node->attrs.data[k]->graph->nodes.data,
                             node->attrs.data[k]->graph->nodes.len);
    }
}

/* ---- scopes ---------------------------------------------------------------------------------- */

Val *graph_find(const Scope *s, const char *name) {
    const Symbol *sym = sym_intern(name);
    for (; s; s = s->outer) {
        Val *v = map_find(&s->values, sym);
        if (v)
            return v;
    }
    return NULL;
}

void graph_bind(Scope *s, const char *name, Val *v) {
    if (*name)
        map_set(&s->values, sym_intern(name), v);
}

static void mark_words(Map *live, const char *text) {
    for (const char *p = text; *p;) {
        size_t n = 0;
        while (isalnum((unsigned char)p[n]) || p[n] == '_')
            n++;
        if (n)
            map_set(live, sym_intern_n(p, n), live);
        p += n ? n : 1;
    }
}

void scope_print(const Scope *s, const char *result, Str *out) {
    Map live = {0};
    bool *kept = mem_bytes(s->statements.len + 1);
    mark_words(&live, result);
    for (size_t i = s->statements.len; i-- > 0;) {
        const Statement *st = &s->statements.data[i];
        kept[i] = map_has(&live, sym_intern(st->name));
        if (kept[i])
            mark_words(&live, st->text);
    }
    for (size_t i = 0; i < s->statements.len; i++) {
        const Statement *st = &s->statements.data[i];
        if (!kept[i])
            continue;
        str_printf(out, "%*slet %s%s = %s;", s->indent * 2, "", st->name, st->type ? st->type : "",
                   st->text);
        /* The node in a comment, where it is not the same as that of the line before. */
        if (st->node &&
            (i + 1 == s->statements.len || s->statements.data[i + 1].node != st->node)) {
            str_add(out, "  // ");
            for (const char *p = node_described(st->node); *p; p++)
                str_add_char(out, (unsigned char)*p < ' ' || (unsigned char)*p >= 127 ? '?' : *p);
        }
        str_add(out, "\n");
    }
    str_printf(out, "%*s%s\n", s->indent * 2, "", result);
}

const char *value_tuple_text(Val *const *v, size_t n) {
    if (n == 1)
        return v[0]->text;
    Str out = {0};
    str_add(&out, "(");
    for (size_t i = 0; i < n; i++)
        str_printf(&out, "%s%s", i ? ", " : "", v[i]->text);
    str_add(&out, ")");
    return str_text(&out);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool is_word(const char *p) {
    if (!isalpha((unsigned char)*p))
        return false;
    for (; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return true;
}

/* What a function takes: its parameters, and the sizes that have names. */
typedef struct Signature {
    Translation *t;
    Map sizes; /* Symbol of a size in the model -> const char * */
    Str names, params, args;
} Signature;

static const char *size_name(Signature *sig, const char *param) {
    const Symbol *sym = sym_intern(param);
    const char *name = map_find(&sig->sizes, sym);
    if (!name) {
        name = translation_name(sig->t, param);
        map_set(&sig->sizes, sym, (void *)name);
        str_printf(&sig->names, "%s%s", sig->names.len ? ", " : "", name);
    }
    return name;
}

/* A value of the type, and the type as Relay writes it. NULL after a refusal. */
static Val *typed_value(Signature *sig, const OnnxType *type, const char *text,
                        const OnnxKnown *known, const char *name, const char **printed) {
    DType d;
    Val *v;
    switch (type->kind) {
    case ONNX_TYPE_TENSOR: {
        if (!onnx_find_dtype(type->elem, &d)) {
            translation_refuse(
                sig->t, NULL,
                fmt_text("input `%s`: Relay has no dtype %s", name, onnx_dtype_name(type->elem)));
            return NULL;
        }
        bool shaped = type->has_shape && type->dims.len <= ONNX_MAX_RANK;
        size_t rank = shaped ? type->dims.len : known ? (size_t)known->rank : 0;
        if (!shaped && !known) {
            translation_refuse(sig->t, NULL,
                               fmt_text("input `%s`: the model does not say its rank", name));
            return NULL;
        }
        Num *dims = mem_new_n(Num, rank + 1);
        Str shape = {0};
        for (size_t i = 0; i < rank; i++) {
            OnnxDim dim = shaped ? type->dims.data[i] : (OnnxDim){-1, NULL};
            if (dim.size < 0 && known && (size_t)known->rank == rank)
                dim.size = known->shape[i];
            if (dim.size >= 0)
                dims[i] = num_int(dim.size);
            else if (dim.param && is_word(dim.param))
                dims[i] = num_size(size_name(sig, dim.param));
            str_printf(&shape, "%s%s", i ? ", " : "",
                       num_print(dims[i]) ? num_print(dims[i]) : "?");
        }
        *printed = rank ? fmt_text("Tensor[(%s%s), %s]", str_text(&shape), rank == 1 ? "," : "",
                                   dtype_info[d].name)
                        : dtype_info[d].name;
        v = val_tensor(text, d, (int)rank, dims);
        return v;
    }
    case ONNX_TYPE_SEQUENCE:
        v = mem_new(Val);
        *v = (Val){.kind = KIND_OF_SEQUENCE, .text = text};
        {
            /* The elements differ in their sizes: no names, no numbers. */
            OnnxType any = *type->of;
            OnnxDim unknown = {-1, NULL};
            any.dims.len = 0;
            for (size_t i = 0; i < type->of->dims.len; i++)
                vec_push(&any.dims, unknown);
            v->of = typed_value(sig, &any, NULL, NULL, name, printed);
        }
        if (!v->of)
            return NULL;
        *printed = fmt_text("List[%s]", *printed);
        return v;
    case ONNX_TYPE_OPTIONAL:
        v = mem_new(Val);
        *v = (Val){.kind = KIND_OF_OPTIONAL, .text = text};
        v->of = typed_value(sig, type->of, NULL, NULL, name, printed);
        if (!v->of)
            return NULL;
        *printed = fmt_text("Option[%s]", *printed);
        return v;
    case ONNX_TYPE_NONE:
    case ONNX_TYPE_MAP:
    case ONNX_TYPE_SPARSE: break;
    }
    translation_refuse(
        sig->t, NULL,
        fmt_text("input `%s`: it is no tensor, sequence or optional of tensors", name));
    return NULL;
}

static void take_known(Val *v, const OnnxKnown *known) {
    bool small = known->rank == 0 || (known->rank == 1 && known->shape[0] <= MAX_LITERAL);
    int64_t n = known->rank ? known->shape[0] : 1;
    OnnxTensor *t = mem_new(OnnxTensor);
    *t = (OnnxTensor){.name = known->name,
                      .type = onnx_dtype_of(known->dtype),
                      .rank = known->rank,
                      .dims = known->shape,
                      .count = n,
                      .data = known->data};
    if (!small)
        return;
    t->bytes = (size_t)n * dtype_size(known->dtype);
    v->constant = t;
    if (!dtype_is_int(known->dtype) && known->dtype != DT_BOOL)
        return;
    v->has_nums = true;
    for (int64_t i = 0; i < n; i++)
        vec_push(&v->nums, num_int(elem_get_int((const char *)known->data +
                                                    (size_t)i * dtype_size(known->dtype),
                                                known->dtype)));
}

static void add_input(Signature *sig, Scope *s, const OnnxValue *in, OnnxProgram *out) {
    const OnnxKnown *known = map_find(&sig->t->inputs, sym_intern(in->name));
    const char *name = translation_name(sig->t, in->name), *type = "";
    Val *v = typed_value(sig, in->type, name, known, in->name, &type);
    if (!v) {
        v = mem_new(Val);
        v->bad = true;
    } else if (known && v->kind == KIND_OF_TENSOR && v->dtype == known->dtype) {
        take_known(v, known);
    }
    graph_bind(s, in->name, v);
    str_printf(&sig->params, ", %s: %s", name, type);
    str_printf(&sig->args, ", %s", name);
    vec_push(&out->inputs, ((OnnxPort){in->name, type, v->kind == KIND_OF_SEQUENCE}));
}

/* ---- the program ----------------------------------------------------------------------------- */

static void print_record(const OnnxMembers *members, bool weights, Str *out) {
    const char *name = weights ? "Weights" : "Constants";
    str_printf(out, "type %s { %s {\n", name, name);
    for (size_t i = 0; i < members->len; i++) {
        const OnnxMember *m = &members->data[i];
        DType d = DT_F32;
        if (m->weight != weights)
            continue;
        (void)onnx_find_dtype(m->tensor->type, &d);
        str_printf(out, "  %s: ", m->field);
        if (m->tensor->rank == 0)
            str_printf(out, "%s,\n", dtype_info[d].name);
        else {
            str_add(out, "Tensor[(");
            for (int k = 0; k < m->tensor->rank; k++)
                str_printf(out, "%s%lld", k ? ", " : "", (long long)m->tensor->dims[k]);
            str_printf(out, "%s), %s],\n", m->tensor->rank == 1 ? "," : "", dtype_info[d].name);
        }
    }
    str_add(out, "} }\n");
}

static void print_stored(const OnnxMembers *members, const char *path, Str *out) {
    bool weights = false, constants = false;
    for (size_t i = 0; i < members->len; i++) {
        weights |= members->data[i].weight;
        constants |= !members->data[i].weight;
    }
    if (weights)
        print_record(members, true, out);
    if (constants)
        print_record(members, false, out);
    if (weights || constants) {
        str_printf(out, "type Stored { Stored { %s%s%s } }\nlet stored: Stored = load(",
                   weights ? "weights: Weights" : "", weights && constants ? ", " : "",
                   constants ? "constants: Constants" : "");
        str_add_quoted(out, path, strlen(path));
        str_add(out, ");\n");
    }
    str_add(out, weights ? "let weights: Weights = stored.weights;\n" : "let weights = ();\n");
    if (constants)
        str_add(out, "let constants: Constants = stored.constants;\n");
}

static bool has_initializer(const OnnxGraph *g, const char *name) {
    for (size_t i = 0; i < g->initializers.len; i++)
        if (strcmp(g->initializers.data[i]->name, name) == 0)
            return true;
    return false;
}

static void add_comment(Str *out, const char *text) {
    for (; *text; text++)
        str_add_char(out, (unsigned char)*text < ' ' || (unsigned char)*text >= 127 ? '?' : *text);
}

bool onnx_translate(const OnnxModel *m, const char *weights_path, const OnnxKnowns *known,
                    Diags *diags, OnnxProgram *out) {
    Translation *t = mem_new(Translation);
    *t = (Translation){.model = m, .known = known};
    OnnxMembers members = {0};
    onnx_find_members(m, &members);
    for (size_t i = 0; i < members.len; i++)
        map_set(&t->members, members.data[i].tensor, &members.data[i]);
    for (size_t i = 0; known && i < known->len; i++)
        map_set(&t->inputs, sym_intern(known->data[i].name), &known->data[i]);
    const OnnxGraph *g = m->graph;
    if (!m->opset && g->nodes.len)
        translation_refuse(t, NULL, "it does not say which opset of ONNX it is of");
    if (m->opset && m->opset < 7)
        translation_refuse(
            t, NULL,
            fmt_text("it is of opset %lld; 7 and later are understood", (long long)m->opset));
    if (g->sparse)
        translation_refuse(t, NULL, "it has sparse initializers");
    find_missing(t, g->nodes.data, g->nodes.len);
    for (size_t i = 0; i < m->functions.len; i++)
        find_missing(t, m->functions.data[i]->nodes.data, m->functions.data[i]->nodes.len);

    Scope *s = mem_new(Scope);
    *s = (Scope){.t = t, .opset = m->opset, .indent = 1};
    Signature sig = {.t = t};
    for (size_t i = 0; i < g->initializers.len; i++)
        graph_bind(s, g->initializers.data[i]->name,
                   translation_tensor(t, g->initializers.data[i]));
    for (size_t i = 0; i < g->inputs.len; i++)
        if (!has_initializer(g, g->inputs.data[i]->name))
            add_input(&sig, s, g->inputs.data[i], out);
    scope_translate(s, g->nodes.data, g->nodes.len);
    Vals results = {0};
    for (size_t i = 0; i < g->outputs.len; i++) {
        Val *v = graph_find(s, g->outputs.data[i]->name);
        if (!v) {
            translation_refuse(
                t, NULL, fmt_text("nothing computes its output `%s`", g->outputs.data[i]->name));
            continue;
        }
        vec_push(&results, v);
        vec_push(&out->outputs,
                 ((OnnxPort){g->outputs.data[i]->name, NULL, v->kind == KIND_OF_SEQUENCE}));
    }
    if (t->reasons.len) {
        report(t, diags);
        return false;
    }
    str_printf(&out->text, "// Translated from an ONNX model of opset %lld", (long long)m->opset);
    if (*m->producer) {
        str_add(&out->text, ", made by ");
        add_comment(&out->text, fmt_text("%s%s%s", m->producer, *m->producer_version ? " " : "",
                                         m->producer_version));
    }
    str_add(&out->text, ".\n");
    if (t->imports)
        str_add(&out->text, "import onnx;\n");
    print_stored(&members, weights_path, &out->text);
    bool weights = false;
    for (size_t i = 0; i < members.len; i++)
        weights |= members.data[i].weight;
    str_add(&out->text, "\n");
    if (*g->name) {
        str_add(&out->text, "/// The graph ");
        add_comment(&out->text, g->name);
        str_add(&out->text, ".\n");
    }
    str_printf(&out->text, "def run%s%s%s(w: %s%s) {\n", sig.names.len ? "[" : "",
               str_text(&sig.names), sig.names.len ? "]" : "", weights ? "Weights" : "()",
               str_text(&sig.params));
    scope_print(s, value_tuple_text(results.data, results.len), &out->text);
    str_add(&out->text, "}\n\ntype Model[w, f] { Model { weights: w, run: f } }\n"
                        "let model = Model { weights: weights, run: run };\n");
    str_printf(&out->entry, "def main%s%s%s(%s) { run(weights%s) }\n", sig.names.len ? "[" : "",
               str_text(&sig.names), sig.names.len ? "]" : "",
               sig.params.len ? str_text(&sig.params) + 2 : "", str_text(&sig.args));
    return true;
}
