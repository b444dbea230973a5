/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's graph of a program as text. An expression that several others use, or that is an argument, is bound by
 * `%N = …;`, as TVM's printer does; it stands in the innermost scope around all its uses, so that no name is used
 * outside of its scope. A function body, a branch, an arm and what follows a `let` are scopes. */
#include "interchange/tvm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "interchange/translator.h"
#include "interchange/tvm_graph.h"
#include "parser/metadata.h"
#include "types/infer/infer.h"

typedef struct TScope {
    struct TScope *outer;
    size_t depth;
    VEC(size_t) bound; /* expressions, what they need first */
} TScope;

/* What is known of a node. */
typedef struct Info {
    TScope *scope; /* of an expression: around all its uses */
    TScope **arms; /* those that it opens */
    uint32_t uses;
    uint8_t color; /* 1: being visited, 2: visited */
    bool tail;     /* it is the result of a scope, or the value of a let */
    const char *name;
} Info;

typedef struct Edge {
    size_t to;
    int scope; /* -1: that of the parent; else which one it opens */
    bool tail;
} Edge;
typedef VEC(Edge) Edges;
typedef VEC(size_t) Order;

typedef struct Reader {
    TvmGraph g;
    Info *info;
    size_t n;
    Map names; /* taken by variables of this definition */
    VEC(size_t) used;
    int temps;
    Str free;
    bool open; /* a bare expression: what is free in it is a parameter */
    Map constants;
    Module stored;
    TvmProgram *out;
} Reader;

/* ---- names and types ------------------------------------------------------------------------- */

static const char *identifier(const char *name) {
    static const char *const words[] = {"let",      "fn",        "def",      "if",     "else",
                                        "type",     "match",     "free_var", "extern", "ref",
                                        "ref_read", "ref_write", "meta",     "in",     "then"};
    Str out = {0};
    if (!isalpha((unsigned char)*name))
        str_add(&out, "v");
    for (; *name && out.len < 100; name++)
        str_add_char(&out, isalnum((unsigned char)*name) ? *name : '_');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(str_text(&out), words[i]) == 0)
            str_add(&out, "_");
    return str_text(&out);
}

static void add_type(Reader *r, size_t node, Str *out);

static void add_types(Reader *r, size_t list, bool one, Str *out) {
    size_t n = tvm_list_len(&r->g, list);
    for (size_t i = 0; i < n && !r->g.damage; i++) {
        str_add(out, i ? ", " : "");
        add_type(r, tvm_list_at(&r->g, list, i), out);
    }
    str_add(out, one && n == 1 ? "," : "");
}

static void add_tensor_type(Reader *r, size_t node, Str *out) {
    size_t shape = tvm_ref(&r->g, node, "shape"), n = tvm_list_len(&r->g, shape);
    const char *dtype = tvm_text(&r->g, node, "dtype");
    if (!dtype || !*dtype ||
        strspn(dtype, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(dtype)) {
        tvm_damaged(&r->g, node, "it has no dtype");
        return;
    }
    if (!n) {
        str_add(out, dtype);
        return;
    }
    str_add(out, "Tensor[(");
    for (size_t i = 0; i < n; i++) {
        const char *size = tvm_value(&r->g, tvm_list_at(&r->g, shape, i));
        if (!size || (*size != '?' && !isdigit((unsigned char)*size)))
            tvm_missing(&r->g, "a size that is computed from others");
        str_printf(out, "%s%s", i ? ", " : "", size ? size : "?");
    }
    str_printf(out, "%s), %s]", n == 1 ? "," : "", dtype);
}

static void add_type(Reader *r, size_t node, Str *out) {
    TvmGraph *g = &r->g;
    if (tvm_enter(g, node)) {
        if (!node || tvm_is(g, node, "relay.IncompleteType"))
            str_add(out, "_");
        else if (tvm_is(g, node, "relay.TensorType"))
            add_tensor_type(r, node, out);
        else if (tvm_is(g, node, "TupleType")) {
            str_add(out, "(");
            add_types(r, tvm_ref(g, node, "fields"), true, out);
            str_add(out, ")");
        } else if (tvm_is(g, node, "FuncType")) {
            str_add(out, "fn (");
            add_types(r, tvm_ref(g, node, "arg_types"), false, out);
            str_add(out, ") -> ");
            add_type(r, tvm_ref(g, node, "ret_type"), out);
        } else if (tvm_is(g, node, "TypeVar") || tvm_is(g, node, "GlobalTypeVar"))
            str_add(out, identifier(tvm_string(g, node, "name_hint")));
        else if (tvm_is(g, node, "relay.TypeCall")) {
            size_t args = tvm_ref(g, node, "args");
            add_type(r, tvm_ref(g, node, "func"), out);
            str_add(out, tvm_list_len(g, args) ? "[" : "");
            add_types(r, args, false, out);
            str_add(out, tvm_list_len(g, args) ? "]" : "");
        } else if (tvm_is(g, node, "RelayRefType")) {
            str_add(out, "ref(");
            add_type(r, tvm_ref(g, node, "value"), out);
            str_add(out, ")");
        } else
            tvm_damaged(g, node, "it stands where a type should be");
    }
    tvm_leave(g);
}

/* ---- order and scopes ------------------------------------------------------------------------ */

static bool is_leaf(TvmGraph *g, size_t node) {
    static const char *const leaves[] = {"relay.Var", "GlobalVar", "Op", "relay.Constant",
                                         "relay.Constructor"};
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
        if (tvm_is(g, node, leaves[i]))
            return true;
    /* A constructor without arguments is a call of it. */
    return tvm_is(g, node, "relay.Call") && tvm_list_len(g, tvm_ref(g, node, "args")) == 0 &&
           tvm_is(g, tvm_ref(g, node, "op"), "relay.Constructor");
}

static void add_edge(Reader *r, Edges *out, size_t node, const char *key, int scope, bool tail) {
    size_t to = tvm_ref(&r->g, node, key);
    if (!to)
        tvm_damaged(&r->g, node, "it has no `%s`", key);
    vec_push(out, ((Edge){to, scope, tail}));
}

static void add_list_edges(Reader *r, Edges *out, size_t node, const char *key) {
    size_t list = tvm_ref(&r->g, node, key);
    for (size_t i = 0; i < tvm_list_len(&r->g, list) && !r->g.damage; i++)
        vec_push(out, ((Edge){tvm_list_at(&r->g, list, i), -1, false}));
}

static const char *tuple_key(Reader *r, size_t node) {
    return tvm_text(&r->g, node, "tuple_value") ? "tuple_value" : "tuple";
}

/* The expressions in an expression, in the order they are written. */
static void find_edges(Reader *r, size_t node, Edges *out) {
    TvmGraph *g = &r->g;
    if (is_leaf(g, node))
        return;
    if (tvm_is(g, node, "relay.Function"))
        add_edge(r, out, node, "body", 0, true);
    else if (tvm_is(g, node, "relay.Call")) {
        add_edge(r, out, node, "op", -1, false);
        add_list_edges(r, out, node, "args");
    } else if (tvm_is(g, node, "relay.Let")) {
        add_edge(r, out, node, "value", -1, true);
        add_edge(r, out, node, "body", 0, true);
    } else if (tvm_is(g, node, "relay.If")) {
        add_edge(r, out, node, "cond", -1, false);
        add_edge(r, out, node, "true_branch", 0, true);
        add_edge(r, out, node, "false_branch", 1, true);
    } else if (tvm_is(g, node, "relay.Match")) {
        size_t clauses = tvm_ref(g, node, "clauses");
        add_edge(r, out, node, "data", -1, false);
        for (size_t i = 0; i < tvm_list_len(g, clauses) && !g->damage; i++)
            add_edge(r, out, tvm_list_at(g, clauses, i), "rhs", (int)i, true);
    } else if (tvm_is(g, node, "relay.Tuple"))
        add_list_edges(r, out, node, "fields");
    else if (tvm_is(g, node, "relay.TupleGetItem"))
        add_edge(r, out, node, tuple_key(r, node), -1, false);
    else if (tvm_is(g, node, "relay.RefCreate"))
        add_edge(r, out, node, "value", -1, false);
    else if (tvm_is(g, node, "relay.RefRead"))
        add_edge(r, out, node, "ref", -1, false);
    else if (tvm_is(g, node, "relay.RefWrite")) {
        add_edge(r, out, node, "ref", -1, false);
        add_edge(r, out, node, "value", -1, false);
    } else
        tvm_damaged(g, node, "it stands where an expression should be");
}

/* Every expression under root, after those in it. */
static void find_order(Reader *r, size_t root, Order *order) {
    typedef struct Frame {
        size_t node, at;
        Edges edges;
    } Frame;
    VEC(Frame) stack = {0};
    Frame first = {.node = root};
    vec_push(&stack, first);
    while (stack.len && !r->g.damage) {
        Frame *f = &vec_last(&stack);
        Info *info = &r->info[f->node];
        if (info->color == 0) {
            info->color = 1;
            find_edges(r, f->node, &f->edges);
        }
        if (f->at == f->edges.len) {
            info->color = 2;
            vec_push(order, f->node);
            (void)vec_pop(&stack);
            continue;
        }
        Frame next = {.node = f->edges.data[f->at++].to};
        if (r->info[next.node].color == 1)
            tvm_damaged(&r->g, next.node, "it is a part of itself");
        else if (r->info[next.node].color == 0)
            vec_push(&stack, next);
    }
}

static TScope *scope_new(TScope *outer) {
    TScope *s = mem_new(TScope);
    s->outer = outer;
    s->depth = outer ? outer->depth + 1 : 0;
    return s;
}

static TScope *scope_around(TScope *a, TScope *b) {
    while (a != b) {
        if (a->depth >= b->depth)
            a = a->outer;
        else
            b = b->outer;
    }
    return a;
}

/* From the root inwards: all uses of an expression are seen before it is. */
static void find_scopes(Reader *r, const Order *order) {
    for (size_t i = order->len; i-- > 0 && !r->g.damage;) {
        Info *info = &r->info[order->data[i]];
        Edges edges = {0};
        find_edges(r, order->data[i], &edges);
        info->arms = mem_new_n(TScope *, edges.len + 2);
        for (size_t k = 0; k < edges.len; k++) {
            Edge e = edges.data[k];
            Info *to = &r->info[e.to];
            TScope *scope = e.scope < 0 ? info->scope : scope_new(info->scope);
            if (e.scope >= 0)
                info->arms[e.scope] = scope;
            to->scope = to->scope ? scope_around(to->scope, scope) : scope;
            to->uses++;
            to->tail = e.tail;
        }
    }
    for (size_t i = 0; i < order->len && !r->g.damage; i++) {
        Info *info = &r->info[order->data[i]];
        if (!is_leaf(&r->g, order->data[i]) && (info->uses > 1 || !info->tail))
            vec_push(&info->scope->bound, order->data[i]);
    }
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void add_expr(Reader *r, size_t node, int indent, Str *out);

static void add_line(Str *out, int indent) { str_printf(out, "\n%*s", 2 * indent, ""); }

/* A variable is its `vid`, which several nodes may share. */
static size_t var_key(Reader *r, size_t node) {
    size_t vid = tvm_ref(&r->g, node, "vid");
    return vid ? vid : node;
}

static const char *declare(Reader *r, size_t node) {
    size_t key = var_key(r, node);
    const char *hint = tvm_string(&r->g, tvm_ref(&r->g, node, "vid"), "name_hint");
    if (!tvm_is(&r->g, node, "relay.Var")) {
        tvm_damaged(&r->g, node, "it stands where a variable should be");
        return "v";
    }
    if (r->info[key].name)
        return r->info[key].name;
    const char *base = identifier(*hint ? hint : tvm_string(&r->g, node, "name_hint"));
    const char *name = base;
    for (int i = 1; map_has(&r->names, sym_intern(name)); i++)
        name = fmt_text("%s_%d", base, i);
    map_set(&r->names, sym_intern(name), r);
    vec_push(&r->used, key);
    return r->info[key].name = name;
}

static void add_typed_var(Reader *r, size_t node, Str *out) {
    size_t type = tvm_ref(&r->g, node, "type_annotation");
    str_printf(out, "%%%s", declare(r, node));
    if (type && !tvm_is(&r->g, type, "relay.IncompleteType")) {
        str_add(out, ": ");
        add_type(r, type, out);
    }
}

static void add_var(Reader *r, size_t node, Str *out) {
    if (!r->info[var_key(r, node)].name && !r->open)
        tvm_damaged(&r->g, node, "nothing binds this variable");
    else if (!r->info[var_key(r, node)].name) {
        str_add(&r->free, r->free.len ? ", " : "");
        add_typed_var(r, node, &r->free);
    }
    str_printf(out, "%%%s", declare(r, node));
}

static bool constant_dtype(const MetaConstant *c, DType *out) {
    const char *name = c->code == 4                   ? "bfloat16"
                       : c->code == 1 && c->bits == 1 ? "bool"
                       : c->code == 6                 ? "bool"
                       : c->code == 0                 ? fmt_text("int%d", c->bits)
                       : c->code == 1                 ? fmt_text("uint%d", c->bits)
                       : c->code == 2                 ? fmt_text("float%d", c->bits)
                                                      : "";
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (strcmp(dtype_info[d].name, name) == 0) {
            *out = (DType)d;
            return true;
        }
    return false;
}

static const char *scalar_text(const MetaConstant *c, DType d) {
    char aligned[16] = {0};
    memcpy(aligned, c->data, c->bytes < 8 ? c->bytes : 8);
    if (d == DT_BOOL)
        return aligned[0] ? "True" : "False";
    return dtype_is_float(d) ? float_text(elem_get_float(aligned, d), d)
                             : int_text(elem_get_int(aligned, d), d);
}

static void store_constant(Reader *r, const MetaConstant *c, DType d) {
    size_t k = r->stored.constants.len;
    str_printf(&r->out->types, "  c%zu: Tensor[(", k);
    for (int i = 0; i < c->ndim; i++)
        str_printf(&r->out->types, "%s%lld", i ? ", " : "", (long long)c->shape[i]);
    str_printf(&r->out->types, "%s), %s],\n", c->ndim == 1 ? "," : "", dtype_info[d].name);
    str_printf(&r->out->stored, "%sc%zu: meta[relay.Constant][%zu]", k ? ", " : "", k, k);
    vec_push(&r->stored.constants, (MetaConstant *)c);
}

static void add_constant(Reader *r, size_t node, Str *out) {
    const char *data = tvm_text(&r->g, node, "data"), *wrong = "it names no array";
    char *end = NULL;
    unsigned long i = data ? strtoul(data, &end, 10) : 0;
    json_t *text = data && end != data && !*end ? json_array_get(r->g.arrays, i) : NULL;
    const char *known = text ? map_find(&r->constants, text) : NULL;
    DType d;
    if (known) {
        str_add(out, known);
        return;
    }
    MetaConstant *c = json_is_string(text) ? metadata_read_array(json_string_value(text),
                                                                 json_string_length(text), &wrong)
                                           : NULL;
    if (!c) {
        tvm_damaged(&r->g, node, "%s", wrong);
        return;
    }
    if (!constant_dtype(c, &d) || dtype_size(d) != (c->bits + 7u) / 8u) {
        tvm_missing(&r->g, fmt_text("a constant of dtype code %d, %d bits", c->code, c->bits));
        return;
    }
    if (c->ndim == 0)
        known = scalar_text(c, d);
    else {
        known = fmt_text("constants.c%zu", r->stored.constants.len);
        store_constant(r, c, d);
    }
    map_set(&r->constants, text, (void *)known);
    str_add(out, known);
}

/* An operator, or the one of which it is the form with attributes among its arguments. */
static const Op *find_op(const char *name) {
    const Symbol *sym = sym_intern(name);
    const Op *op = op_find(sym);
    return op ? op : infer_find_dyn(sym);
}

static void add_callee(Reader *r, size_t node, Str *out) {
    TvmGraph *g = &r->g;
    if (tvm_is(g, node, "Op")) {
        const char *name = tvm_repr(g, node);
        if (!name)
            tvm_damaged(g, node, "it has no name");
        else if (!find_op(name))
            tvm_missing(g, fmt_text("operator `%s`", name));
        str_add(out, name ? name : "");
    } else
        str_add(out, identifier(tvm_string(g, node, "name_hint")));
}

/* An expression where it is used: its name, or itself. */
static void add_use(Reader *r, size_t node, int indent, Str *out) {
    TvmGraph *g = &r->g;
    if (r->info[node].name)
        str_add(out, r->info[node].name);
    else if (tvm_is(g, node, "relay.Var"))
        add_var(r, node, out);
    else if (tvm_is(g, node, "relay.Constant"))
        add_constant(r, node, out);
    else if (tvm_is(g, node, "GlobalVar"))
        str_printf(out, "@%s", identifier(tvm_string(g, node, "name_hint")));
    else if (tvm_is(g, node, "Op") || tvm_is(g, node, "relay.Constructor"))
        add_callee(r, node, out);
    else
        add_expr(r, node, indent, out);
}

static void add_uses(Reader *r, size_t list, int indent, Str *out) {
    for (size_t i = 0; i < tvm_list_len(&r->g, list) && !r->g.damage; i++) {
        str_add(out, i ? ", " : "");
        add_use(r, tvm_list_at(&r->g, list, i), indent, out);
    }
}

/* What a scope binds, then its result. A chain of `let` is one loop. */
static void add_scope(Reader *r, TScope *s, size_t node, int indent, Str *out) {
    for (;;) {
        for (size_t i = 0; i < s->bound.len && !r->g.damage; i++) {
            size_t e = s->bound.data[i];
            Str text = {0};
            add_expr(r, e, indent, &text);
            r->info[e].name = fmt_text("%%%d", r->temps++);
            vec_push(&r->used, e);
            bool chain = tvm_is(&r->g, e, "relay.Let");
            str_printf(out, chain ? "%s = {%s};" : "%s = %s;", r->info[e].name, str_text(&text));
            add_line(out, indent);
        }
        if (r->g.damage || r->info[node].name || !tvm_is(&r->g, node, "relay.Let"))
            break;
        str_add(out, "let ");
        add_typed_var(r, tvm_ref(&r->g, node, "var"), out);
        str_add(out, " = ");
        size_t value = tvm_ref(&r->g, node, "value");
        bool chain = tvm_is(&r->g, value, "relay.Let");
        str_add(out, chain ? "{" : "");
        add_use(r, value, indent, out);
        str_add(out, chain ? "};" : ";");
        add_line(out, indent);
        s = r->info[node].arms[0];
        node = tvm_ref(&r->g, node, "body");
    }
    if (!r->g.damage)
        add_use(r, node, indent, out);
}

static void add_block(Reader *r, TScope *s, size_t node, int indent, Str *out) {
    str_add(out, "{");
    add_line(out, indent + 1);
    add_scope(r, s, node, indent + 1, out);
    add_line(out, indent);
    str_add(out, "}");
}

/* Attributes of functions that are numbers, as `Primitive=1`; the others are notes of TVM's passes. */
static void add_fn_attrs(Reader *r, size_t node, bool comma, Str *out) {
    size_t map = tvm_ref(&r->g, tvm_ref(&r->g, node, "attrs"), "__dict__");
    json_t *keys = json_object_get(json_array_get(r->g.nodes, map), "keys");
    for (size_t i = 0; i < json_array_size(keys) && !r->g.damage; i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        size_t value = tvm_list_at(&r->g, map, i);
        if (!key || strcmp(key, "Primitive") != 0 || !tvm_is(&r->g, value, "IntImm"))
            continue;
        str_printf(out, "%s%s=%s", comma ? ", " : "", key, tvm_value(&r->g, value));
        comma = true;
    }
}

static void add_fn(Reader *r, size_t node, int indent, Str *out) {
    TvmGraph *g = &r->g;
    size_t params = tvm_ref(g, node, "params"), vars = tvm_ref(g, node, "type_params");
    size_t result = tvm_ref(g, node, "ret_type");
    if (tvm_list_len(g, vars)) {
        str_add(out, "[");
        add_types(r, vars, false, out);
        str_add(out, "]");
    }
    str_add(out, "(");
    for (size_t i = 0; i < tvm_list_len(g, params) && !g->damage; i++) {
        str_add(out, i ? ", " : "");
        add_typed_var(r, tvm_list_at(g, params, i), out);
    }
    add_fn_attrs(r, node, tvm_list_len(g, params) > 0, out);
    str_add(out, ") ");
    if (result && !tvm_is(g, result, "relay.IncompleteType")) {
        str_add(out, "-> ");
        add_type(r, result, out);
        str_add(out, " ");
    }
    add_block(r, r->info[node].arms[0], tvm_ref(g, node, "body"), indent, out);
}

static void add_call(Reader *r, size_t node, int indent, Str *out) {
    TvmGraph *g = &r->g;
    size_t op = tvm_ref(g, node, "op"), args = tvm_ref(g, node, "args");
    size_t attrs = tvm_ref(g, node, "attrs");
    const char *name = tvm_is(g, op, "Op") ? tvm_repr(g, op) : NULL;
    const Op *known = name ? find_op(name) : NULL;
    Str text = {0};
    add_use(r, op, indent, out);
    if (is_leaf(g, node))
        return;
    str_add(out, "(");
    add_uses(r, args, indent, out);
    if (known && attrs)
        tvm_add_attrs(g, known, attrs, &text);
    str_printf(out, "%s%s)", text.len && tvm_list_len(g, args) ? ", " : "", str_text(&text));
}

static void add_pattern(Reader *r, size_t node, Str *out) {
    TvmGraph *g = &r->g;
    if (tvm_enter(g, node)) {
        size_t list = tvm_ref(g, node, "patterns"), n = tvm_list_len(g, list);
        bool ctor = tvm_is(g, node, "relay.PatternConstructor");
        if (tvm_is(g, node, "relay.PatternWildcard"))
            str_add(out, "_");
        else if (tvm_is(g, node, "relay.PatternVar"))
            add_typed_var(r, tvm_ref(g, node, "var"), out);
        else if (ctor || tvm_is(g, node, "relay.PatternTuple")) {
            if (ctor)
                add_callee(r, tvm_ref(g, node, "constructor"), out);
            str_add(out, ctor && !n ? "" : "(");
            for (size_t i = 0; i < n && !g->damage; i++) {
                str_add(out, i ? ", " : "");
                add_pattern(r, tvm_list_at(g, list, i), out);
            }
            str_add(out, !ctor && n == 1 ? ",)" : ctor && !n ? "" : ")");
        } else
            tvm_damaged(g, node, "it stands where a pattern should be");
    }
    tvm_leave(g);
}

static void add_match(Reader *r, size_t node, int indent, Str *out) {
    TvmGraph *g = &r->g;
    size_t clauses = tvm_ref(g, node, "clauses");
    const char *complete = tvm_text(g, node, "complete");
    str_add(out, complete && strcmp(complete, "0") == 0 ? "match? (" : "match (");
    add_use(r, tvm_ref(g, node, "data"), indent, out);
    str_add(out, ") {");
    for (size_t i = 0; i < tvm_list_len(g, clauses) && !g->damage; i++) {
        size_t clause = tvm_list_at(g, clauses, i);
        add_line(out, indent + 1);
        add_pattern(r, tvm_ref(g, clause, "lhs"), out);
        str_add(out, " => ");
        add_block(r, r->info[node].arms[i], tvm_ref(g, clause, "rhs"), indent + 1, out);
        str_add(out, ",");
    }
    add_line(out, indent);
    str_add(out, "}");
}

static void add_if(Reader *r, size_t node, int indent, Str *out) {
    str_add(out, "if (");
    add_use(r, tvm_ref(&r->g, node, "cond"), indent, out);
    str_add(out, ") ");
    add_block(r, r->info[node].arms[0], tvm_ref(&r->g, node, "true_branch"), indent, out);
    str_add(out, " else ");
    add_block(r, r->info[node].arms[1], tvm_ref(&r->g, node, "false_branch"), indent, out);
}

/* A form of one or two operands. */
static void add_form(Reader *r, size_t node, const char *begin, const char *a, const char *b,
                     int indent, Str *out) {
    str_add(out, begin);
    add_use(r, tvm_ref(&r->g, node, a), indent, out);
    if (b) {
        str_add(out, ", ");
        add_use(r, tvm_ref(&r->g, node, b), indent, out);
    }
    str_add(out, ")");
}

static void add_expr(Reader *r, size_t node, int indent, Str *out) {
    TvmGraph *g = &r->g;
    if (tvm_enter(g, node)) {
        if (tvm_is(g, node, "relay.Function")) {
            str_add(out, "fn ");
            add_fn(r, node, indent, out);
        } else if (tvm_is(g, node, "relay.Call"))
            add_call(r, node, indent, out);
        else if (tvm_is(g, node, "relay.Let"))
            add_scope(r, scope_new(NULL), node, indent, out); /* around it, all is bound */
        else if (tvm_is(g, node, "relay.If"))
            add_if(r, node, indent, out);
        else if (tvm_is(g, node, "relay.Match"))
            add_match(r, node, indent, out);
        else if (tvm_is(g, node, "relay.Tuple")) {
            size_t fields = tvm_ref(g, node, "fields");
            str_add(out, "(");
            add_uses(r, fields, indent, out);
            str_add(out, tvm_list_len(g, fields) == 1 ? ",)" : ")");
        } else if (tvm_is(g, node, "relay.TupleGetItem")) {
            const char *index = tvm_text(g, node, "index");
            add_use(r, tvm_ref(g, node, tuple_key(r, node)), indent, out);
            if (!index || !*index || strlen(index) > 6 ||
                strspn(index, "0123456789") != strlen(index))
                tvm_damaged(g, node, "it has no index");
            str_printf(out, ".%s", index ? index : "0");
        } else if (tvm_is(g, node, "relay.RefCreate"))
            add_form(r, node, "ref(", "value", NULL, indent, out);
        else if (tvm_is(g, node, "relay.RefRead"))
            add_form(r, node, "ref_read(", "ref", NULL, indent, out);
        else if (tvm_is(g, node, "relay.RefWrite"))
            add_form(r, node, "ref_write(", "ref", "value", indent, out);
        else
            tvm_damaged(g, node, "it stands where an expression should be");
    }
    tvm_leave(g);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* Names are of one definition: what the one before it left is forgotten. */
static TScope *begin_definition(Reader *r, size_t root) {
    for (size_t i = 0; i < r->used.len; i++)
        r->info[r->used.data[i]].name = NULL;
    vec_clear(&r->used);
    r->names = (Map){0};
    r->temps = 0;
    Order order = {0};
    TScope *s = scope_new(NULL);
    for (size_t i = 0; i < r->n; i++)
        r->info[i] = (Info){0};
    r->info[root].scope = s;
    r->info[root].uses = 1;
    r->info[root].tail = true;
    find_order(r, root, &order);
    find_scopes(r, &order);
    return s;
}

static void add_definition(Reader *r, const char *name, size_t fn) {
    if (!tvm_is(&r->g, fn, "relay.Function")) {
        tvm_damaged(&r->g, fn, "`@%.40s` is no function of Relay", name);
        return;
    }
    (void)begin_definition(r, fn);
    if (r->g.damage)
        return;
    str_printf(&r->out->text, "def @%s", identifier(name));
    add_fn(r, fn, 0, &r->out->text);
    str_add(&r->out->text, "\n\n");
}

static void add_type_data(Reader *r, size_t node) {
    TvmGraph *g = &r->g;
    Str *out = &r->out->text;
    size_t vars = tvm_ref(g, node, "type_vars"), ctors = tvm_ref(g, node, "constructors");
    str_printf(out, "%stype ", tvm_list_len(g, ctors) ? "" : "extern ");
    add_type(r, tvm_ref(g, node, "header"), out);
    if (tvm_list_len(g, vars)) {
        str_add(out, "[");
        add_types(r, vars, false, out);
        str_add(out, "]");
    }
    str_add(out, tvm_list_len(g, ctors) ? " {\n" : "\n");
    for (size_t i = 0; i < tvm_list_len(g, ctors) && !g->damage; i++) {
        size_t ctor = tvm_list_at(g, ctors, i), inputs = tvm_ref(g, ctor, "inputs");
        str_printf(out, "  %s", identifier(tvm_string(g, ctor, "name_hint")));
        if (tvm_list_len(g, inputs)) {
            str_add(out, "(");
            add_types(r, inputs, false, out);
            str_add(out, ")");
        }
        str_add(out, ",\n");
    }
    str_add(out, tvm_list_len(g, ctors) ? "}\n\n" : "\n");
}

/* A map from names to nodes: the keys are nodes, or of a StrMap text. */
static void read_module(Reader *r, size_t module) {
    TvmGraph *g = &r->g;
    size_t types = tvm_ref(g, module, "type_definitions"), fns = tvm_ref(g, module, "functions");
    for (size_t i = 1; i < tvm_list_len(g, types) && !g->damage; i += 2)
        add_type_data(r, tvm_list_at(g, types, i));
    for (size_t i = 1; i < tvm_list_len(g, fns) && !g->damage; i += 2) {
        size_t name = tvm_list_at(g, fns, i - 1);
        if (!tvm_is(g, name, "GlobalVar"))
            tvm_damaged(g, name, "it stands where the name of a function should be");
        else
            add_definition(r, tvm_string(g, name, "name_hint"), tvm_list_at(g, fns, i));
    }
}

static void read_root(Reader *r) {
    TvmGraph *g = &r->g;
    json_t *root = json_object_get(g->root, "root");
    size_t at = json_is_integer(root) && json_integer_value(root) > 0
                    ? (size_t)json_integer_value(root)
                    : r->n;
    if (at >= r->n) {
        tvm_damaged(g, TVM_NOWHERE, "it has no `root` among its `nodes`");
        return;
    }
    if (tvm_is(g, at, "IRModule")) {
        read_module(r, at);
        return;
    }
    if (tvm_is(g, at, "relay.Function")) {
        add_definition(r, "main", at);
        return;
    }
    r->open = true;
    TScope *s = begin_definition(r, at);
    Str text = {0};
    if (!g->damage)
        add_scope(r, s, at, 0, &text);
    if (r->free.len)
        str_printf(&r->out->text, "def @main(%s) {\n  %s\n}\n", str_text(&r->free),
                   str_text(&text));
    else
        str_printf(&r->out->text, "%s\n", str_text(&text));
}

static bool report(Reader *r, Diags *diags) {
    enum { SHOWN = 40 };
    if (r->g.damage) {
        diag_error(diags, DIAG_R0508, span_none(), "`%s` is no graph of TVM's Relay: %s", r->g.path,
                   r->g.damage);
        return false;
    }
    if (!r->g.missing.len)
        return true;
    Diag *d = diag_error(diags, DIAG_R0509, span_none(), "`%s` cannot be translated to Relay",
                         r->g.path);
    for (size_t i = 0; i < r->g.missing.len && i < SHOWN; i++)
        diag_add_fact(d, "there is no counterpart of %s", r->g.missing.data[i]);
    return false;
}

bool tvm_read(const char *path, const char *text, size_t len, Diags *diags, TvmProgram *out) {
    Reader *r = mem_new(Reader);
    json_error_t error;
    *r = (Reader){.g = {.path = path}, .out = out};
    r->g.root = json_loadb(text, len, 0, &error);
    r->g.nodes = json_object_get(r->g.root, "nodes");
    r->g.arrays = json_object_get(r->g.root, "b64ndarrays");
    r->n = json_array_size(r->g.nodes);
    r->info = mem_new_n(Info, r->n + 1);
    if (!r->g.root)
        tvm_damaged(&r->g, TVM_NOWHERE, "line %d, column %d: %s", error.line, error.column,
                    error.text);
    else
        read_root(r);
    if (r->stored.constants.len)
        print_metadata(&out->metadata, &r->stored);
    bool whole = report(r, diags);
    json_decref(r->g.root);
    return whole;
}
