/* SPDX-License-Identifier: Apache-2.0 */
/* Loops whose number of steps only the model knows: `loop` and `while`, and `foldl` and `map` over the rows of a tensor
 * whose first size has a name. Each is a node Loop. What is carried has one form and one dtype a tensor. */
#include <string.h>

#include "interchange/export_impl.h"
#include "interchange/export_ops.h"

typedef struct Loop {
    Span span;
    Traced *step, *test; /* functions; test NULL: `count` steps */
    Traced *count,
        *more;     /* a number of int64, whether the first step is taken; either may be NULL */
    Traced *state; /* NULL: nothing is carried */
    Traced *rows;  /* the tensor whose rows the steps take, behind the state; or NULL */
    bool collects; /* what the steps give is stacked, and not carried */
} Loop;

static void add_shaped_port(Str *ports, uint32_t number, const Traced *t) {
    export_open_port(ports, number, t->name, t->dtype, t->rank);
}

/* The names by which the body knows what is carried. */
static void add_carried(Export *ex, const TracedVec *leaves, bool shaped, Str *ports,
                        TracedVec *inside) {
    for (size_t i = 0; i < leaves->len; i++) {
        const Traced *leaf = leaves->data[i];
        Traced *t = traced_named(export_name(ex, NULL), leaf->dtype, leaf->rank);
        t->shape = shaped ? leaf->shape : NULL;
        add_shaped_port(ports, 11, t);
        vec_push(inside, t);
    }
}

/* The body of one step as a graph, and its value. NULL after a refusal. */
static Traced *trace_step(Export *ex, const Loop *l, bool shaped, Str *graph) {
    Str nodes = {0}, *outer = ex->nodes, ports = {0};
    TracedVec carried = {0}, inside = {0}, results = {0};
    Traced *args[2], *next;
    uint32_t n = 0;
    size_t at = 0;
    ex->nodes = &nodes;
    Traced *i = traced_named(export_name(ex, NULL), DT_I64, 0);
    Traced *go = traced_named(export_name(ex, NULL), DT_BOOL, 0);
    add_shaped_port(&ports, 11, i);
    add_shaped_port(&ports, 11, go);
    if (l->state) {
        (void)export_leaves(l->state, &carried);
        add_carried(ex, &carried, shaped, &ports, &inside);
        args[n++] = export_with_leaves(l->state, inside.data, &at);
    }
    if (l->rows)
        args[n++] = emit_gather(ex, l->rows, i, 0);
    next = export_apply(ex, l->span, l->step, args, n);
    if (next->kind != TRACED_BAD && !export_leaves(next, &results))
        next = export_refuse(ex, l->span, "a loop whose step gives no tensor nor data of tensors");
    if (next->kind != TRACED_BAD && l->test)
        go = export_apply(ex, l->span, l->test, &next, 1);
    if (next->kind != TRACED_BAD && go->kind == TRACED_TENSOR) {
        Traced *again = export_node(ex, "Identity", &go, 1, NULL, DT_BOOL, 0);
        add_shaped_port(&ports, 12, again);
        for (size_t k = 0; k < results.len; k++) {
            Traced *leaf = results.data[k];
            add_shaped_port(&ports, 12,
                            export_node(ex, "Identity", &leaf, 1, NULL, leaf->dtype, leaf->rank));
        }
    }
    ex->nodes = outer;
    str_add_n(graph, str_text(&nodes), nodes.len);
    wire_add_text(graph, 2, export_name(ex, NULL));
    str_add_n(graph, str_text(&ports), ports.len);
    return next->kind == TRACED_BAD || go->kind != TRACED_TENSOR ? NULL : next;
}

static bool keeps_shapes(const Traced *a, const Traced *b) {
    if (a->kind == TRACED_TENSOR)
        return !a->shape ||
               (b->shape && !memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)a->rank));
    for (uint32_t i = 0; i < a->nparts; i++)
        if (!keeps_shapes(a->parts[i], b->parts[i]))
            return false;
    return true;
}

static Traced *emit_loop(Export *ex, const Loop *l) {
    Str body = {0}, attrs = {0};
    TracedVec carried = {0}, results = {0}, outs = {0}, in = {0};
    size_t at = 0;
    if (l->state && !export_leaves(l->state, &carried))
        return export_refuse(ex, l->span, "a loop over what is no tensor nor data of tensors");
    bool shaped = true;
    Traced *next = trace_step(ex, l, true, &body);
    if (next && l->state && !l->collects && !export_same_form(l->state, next))
        return export_refuse(ex, l->span, "a loop whose step gives data of another form");
    if (next && l->state && !keeps_shapes(l->state, next)) {
        shaped = false;
        body = (Str){0};
        next = trace_step(ex, l, false, &body);
    }
    if (!next)
        return &ex->bad;
    (void)export_leaves(next, &results);
    vec_push(&in, l->count);
    vec_push(&in, l->more);
    for (size_t i = 0; i < carried.len; i++)
        vec_push(&in, carried.data[i]);
    const char **names = mem_new_n(const char *, results.len + 1);
    for (size_t i = 0; i < results.len; i++) {
        const Traced *leaf = results.data[i];
        names[i] = export_name(ex, NULL);
        Traced *out = traced_named(names[i], leaf->dtype, leaf->rank + l->collects);
        out->shape = shaped && !l->collects ? leaf->shape : NULL;
        vec_push(&outs, out);
    }
    if (!results.len)
        return next;
    onnx_add_graph(&attrs, "body", &body);
    export_node_outputs(ex, "Loop", in.data, (uint32_t)in.len, &attrs, names,
                        (uint32_t)results.len);
    return export_with_leaves(next, outs.data, &at);
}

static Traced *row_count(Export *ex, Traced *rows) { return export_size(ex, rows, 0, DT_I64); }

static bool is_function(const Global *g, const char *name, const Traced *f, uint32_t nargs,
                        uint32_t wanted) {
    return nargs == wanted && strcmp(g->name->text, name) == 0 && f->kind == TRACED_FN;
}

static Traced *rows_traced(Traced *tensor) {
    Traced *t = mem_new(Traced);
    *t = (Traced){.kind = TRACED_ROWS, .rows = tensor};
    return t;
}

Traced *export_loop(Export *ex, const Global *g, Span span, Traced **args, uint32_t n) {
    Loop l = {.span = span};
    if (!g->internal)
        return NULL;
    if (n == 1 && strcmp(g->name->text, "list.rows") == 0)
        return args[0]->kind == TRACED_TENSOR && args[0]->rank && !args[0]->shape
                   ? rows_traced(args[0])
                   : NULL;
    if (n == 1 && strcmp(g->name->text, "tensor.of") == 0)
        return args[0]->kind == TRACED_ROWS ? args[0]->rows : NULL;
    if (n >= 2 && is_function(g, "loop", args[1], n, 3) && args[0]->kind == TRACED_TENSOR &&
        !args[0]->constant) {
        l.count = export_cast(ex, args[0], DT_I64);
        l.step = args[1];
        l.state = args[2];
        return emit_loop(ex, &l);
    }
    if (n && is_function(g, "while", args[0], n, 3)) {
        Traced *more = export_apply(ex, span, args[0], &args[2], 1);
        if (more->kind != TRACED_TENSOR || more->constant)
            return more->kind == TRACED_BAD ? more : NULL;
        l.test = args[0];
        l.more = more;
        l.step = args[1];
        l.state = args[2];
        return emit_loop(ex, &l);
    }
    if (n && is_function(g, "foldl", args[0], n, 3) && args[2]->kind == TRACED_ROWS) {
        l.step = args[0];
        l.state = args[1];
        l.rows = args[2]->rows;
        l.count = row_count(ex, l.rows);
        return emit_loop(ex, &l);
    }
    if (n && is_function(g, "map", args[0], n, 2) && args[1]->kind == TRACED_ROWS) {
        l.step = args[0];
        l.rows = args[1]->rows;
        l.count = row_count(ex, l.rows);
        l.collects = true;
        Traced *all = emit_loop(ex, &l);
        return all->kind == TRACED_TENSOR ? rows_traced(all)
               : all->kind == TRACED_BAD
                   ? all
                   : export_refuse(ex, span, "rows that are mapped to several tensors");
    }
    return NULL;
}
