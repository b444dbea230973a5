/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/graph.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/output.h"
#include "repl/session_internal.h"

typedef struct Gift {
    const struct Node *from; /* the operator whose step back gave it */
    Value value;
} Gift;

typedef struct Node {
    const char *what; /* an operator's name, a parameter's, or "" of a constant */
    bool is_leaf;
    Value value; /* as the derivative sees it */
    Span span;
    VEC(struct Node *) args;
    VEC(Gift) gifts; /* what its cotangent is the sum of */
    bool is_printed;
    int number, row; /* in pictures */
} Node;

typedef struct Graph {
    uint64_t level; /* of the derivative that is shown; 0: it has not begun */
    bool is_done;
    Map nodes; /* identity of an active value -> Node */
    VEC(Node *) all, leaves, roots;
} Graph;

enum { MOST_NODES = 100000, MOST_LINES = 400 };

/* ---- collecting ------------------------------------------------------------------------------ */

static Node *new_node(Graph *g, const char *what, Value v, Span span) {
    Node *node = mem_new(Node);
    node->what = what;
    node->value = v;
    node->span = span;
    node->number = (int)g->all.len;
    vec_push(&g->all, node);
    const void *identity = watch_identity(v, g->level);
    if (identity)
        map_set(&g->nodes, identity, node);
    return node;
}

static Node *find_node(const Graph *g, Value v) {
    const void *identity = watch_identity(v, g->level);
    return identity ? map_find(&g->nodes, identity) : NULL;
}

/* The parameters, each float tensor in them by its path. */
static void add_leaves(Graph *g, const char *name, Value v) {
    const Ctor *c = v.tag == VAL_CTOR ? data_ctor(v) : NULL;
    for (uint32_t i = 0, n = value_count(v); i < n && g->all.len < MOST_NODES; i++)
        add_leaves(g,
                   c && c->field_names ? fmt_text("%s.%s", name, c->field_names[i]->text)
                                       : fmt_text("%s.%u", name, i),
                   value_part(v, i));
    if (!watch_identity(v, g->level))
        return;
    Node *node = new_node(g, name, v, span_none());
    node->is_leaf = true;
    vec_push(&g->leaves, node);
}

static void add_args(Graph *g, Node *node, Value v, Node *result) {
    uint32_t n = value_count(v);
    for (uint32_t i = 0; i < n; i++)
        add_args(g, result, value_part(v, i), result);
    if (n)
        return;
    Node *arg = find_node(g, v);
    if (!arg && (v.tag == VAL_SCALAR || v.tag == VAL_TENSOR)) {
        arg = new_node(g, "", v, span_none());
        arg->is_leaf = true;
    }
    if (arg)
        vec_push(&node->args, arg);
}

/* What a step back gave to the active values in an argument. */
static void add_gifts(Graph *g, const Node *from, Value arg, Value gave) {
    for (uint32_t i = 0, n = value_count(arg), m = value_count(gave); i < n && i < m; i++)
        add_gifts(g, from, value_part(arg, i), value_part(gave, i));
    Node *node = find_node(g, arg);
    if (node && !(gave.tag == VAL_TUPLE && !gave.p))
        vec_push(&node->gifts, ((Gift){from, gave}));
}

static void add_roots(Graph *g, Value v) {
    for (uint32_t i = 0, n = value_count(v); i < n; i++)
        add_roots(g, value_part(v, i));
    Node *node = find_node(g, v);
    if (node)
        vec_push(&g->roots, node);
}

static bool watch(void *ctx, const WatchEvent *e) {
    Graph *g = ctx;
    if (e->kind == WATCH_BEGIN && !g->level) {
        const Fn *fn = e->value.tag == VAL_CLOSURE ? ((const Closure *)e->value.p)->fn->fn : NULL;
        g->level = e->level;
        for (uint32_t i = 0; i < e->n; i++)
            add_leaves(g, fn && i < fn->nparams ? fn->params[i]->name->text : fmt_text("%u", i),
                       e->args[i]);
    }
    if (!g->level || e->level != g->level || g->all.len >= MOST_NODES)
        return true;
    if (e->kind == WATCH_VALUE && watch_identity(e->value, g->level)) {
        Node *node = new_node(g, e->what, e->value, e->span);
        for (uint32_t i = 0; i < e->n; i++)
            add_args(g, node, e->args[i], node);
    } else if (e->kind == WATCH_STORE) {
        Node *node = find_node(g, e->args[0]);
        if (node)
            map_set(&g->nodes, watch_identity(e->value, g->level), node);
    } else if (e->kind == WATCH_SEED) {
        add_roots(g, e->value);
    } else if (e->kind == WATCH_BACK && e->gave) {
        const Node *from = find_node(g, e->value);
        for (uint32_t i = 0; from && i < e->n; i++)
            add_gifts(g, from, e->args[i], e->gave[i]);
    }
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { MOST_SHOWN = 4 }; /* elements of a tensor */

static bool is_large(Value v) {
    return v.tag == VAL_TENSOR && ((const Tensor *)v.p)->count > MOST_SHOWN;
}

/* A large tensor by its shape and where its elements lie: `(2, 3) from -0.5 to 1.25`. */
static const char *range_text(const Tensor *t) {
    double low = INFINITY, high = -INFINITY;
    bool is_float = dtype_is_float(t->dtype), has_nan = false;
    for (int64_t i = 0; i < t->count; i++) {
        const void *at = tensor_at(t, i);
        double x = is_float ? elem_get_float(at, t->dtype) : (double)elem_get_int(at, t->dtype);
        has_nan |= isnan(x);
        low = fmin(low, x);
        high = fmax(high, x);
    }
    Str out = {0};
    for (int i = 0; i < t->rank; i++)
        str_printf(&out, "%s%lld", i ? ", " : "(", (long long)t->shape[i]);
    str_add(&out, t->rank == 1 ? ",)" : ")");
    if (low <= high)
        str_printf(&out, " from %.5g to %.5g", low, high);
    str_add(&out, has_nan ? ", with nan" : "");
    return str_text(&out);
}

static const char *value_text(Value v) {
    v = value_primal(v);
    if (is_large(v))
        return range_text(v.p);
    Str out = {0};
    ValuePrintOptions options = {
        .one_line = true, .nested = true, .digits = 5, .max_elements = 6, .edge = 2, .width = 40};
    value_print(&out, v, &options);
    return out.len > 48 ? fmt_text("%.44s ...", str_text(&out)) : str_text(&out);
}

static bool has_cotangent(const Graph *g, const Node *node) {
    Value ct = watch_cotangent(node->value, g->level);
    return !(ct.tag == VAL_TUPLE && !ct.p);
}

static const char *cotangent_text(const Graph *g, const Node *node) {
    return has_cotangent(g, node) ? value_text(watch_cotangent(node->value, g->level)) : "0";
}

/* What the program says there, where that is short. */
static const char *source_text(const Node *node) {
    Span at = node->span;
    if (!at.source || at.end <= at.begin || at.end - at.begin > 40 ||
        (at.source->flags & SOURCE_INTERNAL))
        return "";
    const char *text = mem_strndup(at.source->text + at.begin, at.end - at.begin);
    return strchr(text, '\n') ? "" : text;
}

typedef struct TreePrinter {
    const Graph *g;
    Str *out;
    size_t lines;
    size_t width; /* of the terminal */
} TreePrinter;

static const char *gift_text(const Node *node, const Node *via) {
    for (size_t i = 0; via && i < node->gifts.len; i++)
        if (node->gifts.data[i].from == via)
            return fmt_text("(via %s) d %s", via->what, value_text(node->gifts.data[i].value));
    return "";
}

static void add_cut(Str *out, const char *line, size_t width) {
    size_t n = strlen(line);
    if (text_width(line, n) > width) {
        while (n && text_width(line, n) + 3 > width)
            for (n--; n && ((unsigned char)line[n] & 0xC0) == 0x80;)
                n--;
        str_printf(out, "%.*s...\n", (int)n, line);
    } else {
        str_printf(out, "%s\n", line);
    }
}

/* A line of a node. Where it is too long for the terminal, its derivative and its source go below, beside the lines
 * of the tree. */
static void add_node_line(TreePrinter *p, const char *head, const char *derivative,
                          const char *source, const char *below) {
    enum { DERIVATIVE_COLUMN = 31, SOURCE_COLUMN = 47 };
    const char *const parts[] = {derivative, source};
    Str line = {0}, out = {0};
    str_add(&line, head);
    for (size_t i = 0; i < 2; i++) {
        if (!*parts[i])
            continue;
        Str joined = {0};
        str_printf(&joined, "%s  ", str_text(&line));
        str_pad(&joined, i == 0 ? DERIVATIVE_COLUMN : SOURCE_COLUMN);
        str_add(&joined, parts[i]);
        if (text_width(joined.text, joined.len) > p->width) {
            add_cut(&out, str_text(&line), p->width);
            joined = (Str){0};
            str_printf(&joined, "%s  %s", below, parts[i]);
        }
        line = joined;
    }
    add_cut(&out, str_text(&line), p->width);
    str_add(p->out, str_text(&out));
}

/* A line of a node, below it what it was made from. */
static void print_node(TreePrinter *p, Node *node, const Node *via, const char *first,
                       const char *next, int depth) {
    enum { MOST_DEPTH = 60 };
    if (p->lines++ >= MOST_LINES)
        return;
    Str head = {0};
    bool again = node->is_printed && node->args.len, constant = node->is_leaf && !*node->what;
    bool stops = again || (depth >= MOST_DEPTH && node->args.len);
    const char *derivative = "", *source = source_text(node);
    if (constant) {
        str_printf(&head, "%s%s", first, value_text(node->value));
    } else {
        str_printf(&head, "%s%s ", first, node->what);
        str_pad(&head, 14);
        str_printf(&head, " %s", value_text(node->value));
        derivative = node->is_leaf ? gift_text(node, via)
                                   : fmt_text("d %s", cotangent_text(p->g, node));
    }
    if (stops)
        source = fmt_text("%s%s%s", source, *source ? "   " : "", again ? "(as above)" : "...");
    const char *bar = output_is_utf8() ? "│ " : "| ";
    add_node_line(p, str_text(&head), derivative, source,
                  fmt_text("%s%s", next, node->args.len && !stops ? bar : "  "));
    node->is_printed = true;
    for (size_t i = 0; !again && depth < MOST_DEPTH && i < node->args.len; i++) {
        bool last = i + 1 == node->args.len;
        const char *branch = output_is_utf8() ? (last ? "└─ " : "├─ ") : last ? "`- " : "|- ";
        const char *trunk = last ? "   " : output_is_utf8() ? "│  " : "|  ";
        print_node(p, node->args.data[i], node, fmt_text("%s%s", next, branch),
                   fmt_text("%s%s", next, trunk), depth + 1);
    }
}

/* `x: d = 0.5403 + 0.84147 = 1.38177` */
static void print_leaf_sums(const Graph *g, Str *out) {
    for (size_t i = 0; i < g->leaves.len; i++) {
        const Node *leaf = g->leaves.data[i];
        str_printf(out, "%s: d = ", leaf->what);
        bool are_few = leaf->gifts.len <= 6 && !is_large(value_primal(leaf->value));
        for (size_t k = 0; leaf->gifts.len > 1 && are_few && k < leaf->gifts.len; k++)
            str_printf(out, "%s%s", k ? " + " : "", value_text(leaf->gifts.data[k].value));
        if (leaf->gifts.len > 1 && !are_few)
            str_printf(out, "the sum of %zu", leaf->gifts.len);
        str_printf(out, "%s%s\n", leaf->gifts.len > 1 ? " = " : "", cotangent_text(g, leaf));
    }
}

static void print_tree(const Session *s, const Graph *g, Str *out) {
    int width = s->options.width;
    TreePrinter p = {g, out, 0, width > 0 ? (size_t)width : SIZE_MAX};
    for (size_t i = 0; i < g->roots.len; i++)
        print_node(&p, g->roots.data[i], NULL, "", "", 0);
    if (p.lines > MOST_LINES)
        str_printf(out, "... and more; a graph of %zu values\n", g->all.len);
    Str sums = {0};
    print_leaf_sums(g, &sums);
    str_add(out, session_fold(s, &sums));
}

/* ---- pictures -------------------------------------------------------------------------------- */

static const char *node_title(const Node *node) {
    return *node->what ? node->what : value_text(node->value);
}

static void print_dot(const Graph *g, Str *out) {
    str_add(out, "digraph {\n  rankdir=BT; node [shape=box, fontname=\"monospace\"];\n");
    for (size_t i = 0; i < g->all.len; i++) {
        const Node *node = g->all.data[i];
        Str label = {0};
        str_add(&label, node_title(node));
        if (*node->what)
            str_printf(&label, "\n%s\nd %s", value_text(node->value), cotangent_text(g, node));
        str_printf(out, "  n%d [label=", node->number);
        str_add_quoted(out, str_text(&label), label.len);
        str_add(out, node->is_leaf ? ", style=rounded];\n" : "];\n");
        for (size_t k = 0; k < node->args.len; k++)
            str_printf(out, "  n%d -> n%d;\n", node->args.data[k]->number, node->number);
    }
    str_add(out, "}\n");
}

static void add_xml(Str *out, const char *text) {
    for (; *text; text++)
        switch (*text) {
        case '<': str_add(out, "&lt;"); break;
        case '>': str_add(out, "&gt;"); break;
        case '&': str_add(out, "&amp;"); break;
        default: str_add_char(out, *text);
        }
}

static void add_svg_line(Str *out, int x, int y, const char *text, const char *style) {
    str_printf(out, "<text x=\"%d\" y=\"%d\"%s>", x, y, style);
    add_xml(out, text);
    str_add(out, "</text>\n");
}

/* Rows by the longest way from a leaf, in each row in the order of making. */
static void print_svg(const Graph *g, Str *out) {
    enum { WIDTH = 260, HEIGHT = 62, GAP_X = 20, GAP_Y = 46 };
    int rows = 0, widest = 1, *used = mem_new_n(int, g->all.len + 2),
        *column = mem_new_n(int, g->all.len + 1);
    for (size_t i = 0; i < g->all.len; i++) {
        Node *node = g->all.data[i];
        node->row = 0;
        for (size_t k = 0; k < node->args.len; k++)
            if (node->args.data[k]->row + 1 > node->row)
                node->row = node->args.data[k]->row + 1;
        rows = node->row >= rows ? node->row + 1 : rows;
        column[i] = used[node->row]++;
        widest = used[node->row] > widest ? used[node->row] : widest;
    }
    int width = widest * (WIDTH + GAP_X) + GAP_X, height = rows * (HEIGHT + GAP_Y) + GAP_Y;
    str_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
               "font-family=\"monospace\" font-size=\"13\">\n<rect width=\"100%%\" "
               "height=\"100%%\" fill=\"white\"/>\n",
               width, height);
    for (int pass = 0; pass < 2; pass++) /* lines lie below boxes */
        for (size_t i = 0; i < g->all.len; i++) {
            const Node *node = g->all.data[i];
            int left = (width - used[node->row] * (WIDTH + GAP_X)) / 2 + GAP_X / 2;
            int x = left + column[i] * (WIDTH + GAP_X),
                y = height - (node->row + 1) * (HEIGHT + GAP_Y);
            for (size_t k = 0; pass == 0 && k < node->args.len; k++) {
                const Node *arg = node->args.data[k];
                int arg_left = (width - used[arg->row] * (WIDTH + GAP_X)) / 2 + GAP_X / 2;
                str_printf(out, "<path d=\"M%d %dL%d %d\" stroke=\"#888\"/>\n", x + WIDTH / 2,
                           y + HEIGHT, arg_left + column[arg->number] * (WIDTH + GAP_X) + WIDTH / 2,
                           height - (arg->row + 1) * (HEIGHT + GAP_Y));
            }
            if (pass == 0)
                continue;
            str_printf(out,
                       "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" "
                       "stroke=\"#444\"/>\n",
                       x, y, WIDTH, HEIGHT, node->is_leaf ? 14 : 3,
                       node->is_leaf ? "#eef6ff" : "#fff8e8");
            add_svg_line(out, x + 10, y + 18, fmt_text("%.30s", node_title(node)),
                         " font-weight=\"bold\"");
            if (*node->what) {
                add_svg_line(out, x + 10, y + 36, fmt_text("%.30s", value_text(node->value)), "");
                add_svg_line(out, x + 10, y + 53, fmt_text("d %.28s", cotangent_text(g, node)),
                             " fill=\"#a33\"");
            }
        }
    str_add(out, "</svg>\n");
}

/* ---- the command ----------------------------------------------------------------------------- */

bool graph_print(Session *s, const char *expr, GraphForm form, Str *out) {
    Graph *g = mem_new(Graph);
    Value result;
    if (!session_watch(s, expr, watch, g, &result))
        return false;
    if (!g->level) {
        session_complain(s, "nothing is differentiated in it: `:graph grad(f)(x)` shows the way to "
                            "f(x) and back\n");
        return false;
    }
    if (!g->roots.len) {
        session_complain(s, "its value does not depend on the parameters\n");
        return false;
    }
    switch (form) {
    case GRAPH_TEXT: print_tree(s, g, out); break;
    case GRAPH_DOT: print_dot(g, out); break;
    case GRAPH_SVG: print_svg(g, out); break;
    }
    return true;
}
