/* SPDX-License-Identifier: Apache-2.0 */
/* Export to ONNX: onnx_export.h says how a function becomes a graph. Here its expressions are followed.
 *
 * What a model cannot hold is refused with its place: references, derivatives that are no code, recursion whose end is not
 * known before it runs. */
#include "interchange/onnx_export.h"

#include <string.h>

#include "interchange/export_impl.h"
#include "types/type/dim.h"

enum {
    MOST_CALLS = 1000,
    MOST_STEPS = 1000000,
    OPSET = 17,
    IR_VERSION = 8,
    MOST_BYTES = INT32_MAX - 64
};

typedef struct Scope {
    const Var *var;
    Traced *value;
    const struct Scope *outer;
} Scope;

Traced *export_refuse(Export *ex, Span span, const char *why) {
    if (ex->stopped)
        return &ex->bad;
    if (span.source && (span.source->flags & SOURCE_INTERNAL) && ex->site.source)
        span = ex->site;
    const Symbol *key = sym_intern(fmt_text("%u %u %s", span.begin, span.end, why));
    if (!map_has(&ex->reported, key)) {
        map_set(&ex->reported, key, (void *)key);
        diag_error(ex->diags, DIAG_R0509, span, "ONNX export: %s", why);
    }
    return &ex->bad;
}

/* The same of a limit: nothing more is followed. */
static Traced *stop(Export *ex, Span span, const char *why) {
    export_refuse(ex, span, why);
    ex->stopped = true;
    return &ex->bad;
}

static Traced *export_expr(Export *ex, const Scope *scope, Expr *e);

static const Scope *bind(const Scope *outer, const Var *var, Traced *value) {
    Scope *s = mem_new(Scope);
    *s = (Scope){var, value, outer};
    return s;
}

static Traced *fn_traced(Expr *fn, const Scope *scope) {
    Traced *t = mem_new(Traced);
    *t = (Traced){.kind = TRACED_FN, .fn = fn, .scope = scope};
    return t;
}

static Traced *data_traced(const Ctor *ctor, Traced **parts, uint32_t n) {
    Traced *t = traced_tuple(parts, n);
    t->kind = TRACED_DATA;
    t->ctor = ctor;
    return t;
}

/* ---- values that the program holds ----------------------------------------------------------- */

/* path: how the program writes it, the name of its initializer. */
static Traced *held(Export *ex, const ExportValue *v, const char *path, const Expr *use) {
    if (v->tensor) {
        if (onnx_dtype_of(v->tensor->dtype) == ONNX_UNDEFINED)
            return export_refuse(
                ex, use->span,
                fmt_text("no counterpart of dtype %s", dtype_info[v->tensor->dtype].name));
        Traced *t = traced_constant(v->tensor);
        t->path = path;
        return t;
    }
    if (!v->ctor && !v->is_tuple)
        return export_refuse(ex, use->span,
                             fmt_text("`%s` is no tensor nor data of tensors", path));
    Traced **parts = mem_new_n(Traced *, v->nparts);
    for (uint32_t i = 0; i < v->nparts; i++)
        parts[i] = held(ex, &v->parts[i],
                        v->ctor && v->ctor->field_names
                            ? fmt_text("%s.%s", path, v->ctor->field_names[i]->text)
                            : fmt_text("%s.%u", path, i),
                        use);
    return v->ctor ? data_traced(v->ctor, parts, v->nparts) : traced_tuple(parts, v->nparts);
}

static Traced *export_global(Export *ex, const Expr *e) {
    Global *g = e->global;
    Traced *known = map_find(&ex->globals, g);
    if (known)
        return known;
    if (g->value && g->value->kind == EXPR_FN)
        known = fn_traced(g->value, NULL);
    else if (g->kind == GLOBAL_LET) {
        ExportValue v = ex->ask->find(ex->ask->ctx, g);
        known = held(ex, &v, g->name->text, e);
    } else
        return export_refuse(ex, e->span, fmt_text("`%s` has no counterpart", g->name->text));
    map_set(&ex->globals, g, known);
    return known;
}

/* A literal has the dtype of its type, or of the value beside which it stands. */
static Traced *export_literal(Export *ex, const Scope *scope, const Expr *e) {
    DType dtype;
    if (e->like) {
        Traced *like = export_expr(ex, scope, e->like);
        if (like->kind != TRACED_TENSOR)
            return &ex->bad;
        dtype = like->dtype;
    } else if (!type_get_dtype(e->type, &dtype))
        return export_refuse(ex, e->span, "a literal whose dtype is not known");
    return e->is_float ? traced_scalar(ex, dtype, e->f) : traced_int(ex, dtype, e->i);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The function as it is followed: with code for the derivatives in it. */
static const Fn *prepare(Export *ex, Expr *fn) {
    Expr *known = map_find(&ex->prepared, fn);
    if (!known) {
        known = ex->ask->prepare(ex->ask->ctx, fn);
        map_set(&ex->prepared, fn, known);
    }
    return known->fn;
}

static Traced *call_function(Export *ex, Span span, const Traced *callee, Traced **args,
                             uint32_t nargs) {
    if (callee->kind == TRACED_BAD)
        return &ex->bad;
    if (callee->kind != TRACED_FN || callee->fn->fn->nparams != nargs)
        return export_refuse(ex, span, "a call of no known function");
    if (ex->calls >= MOST_CALLS)
        return stop(
            ex, span,
            fmt_text("calls nested more than %d deep: recursion whose end is not known before "
                     "the model runs, or a long loop",
                     MOST_CALLS));
    const Scope *inner = callee->scope;
    const Fn *fn = prepare(ex, callee->fn);
    for (uint32_t i = 0; i < nargs; i++)
        inner = bind(inner, fn->params[i], args[i]);
    Span site = ex->site;
    if (!(span.source && (span.source->flags & SOURCE_INTERNAL)))
        ex->site = span;
    ex->calls++;
    Traced *result = export_expr(ex, inner, fn->body);
    ex->calls--;
    ex->site = site;
    return result;
}

static Traced **export_all(Export *ex, const Scope *scope, Expr *const *exprs, uint32_t n) {
    Traced **out = mem_new_n(Traced *, n);
    for (uint32_t i = 0; i < n; i++)
        out[i] = export_expr(ex, scope, exprs[i]);
    return out;
}

Traced *export_apply(Export *ex, Span span, Traced *fn, Traced **args, uint32_t n) {
    if (fn->kind == TRACED_FN && fn->fn->kind == EXPR_OP)
        return export_default(ex, fn->fn->op, span, args, n);
    if (fn->kind == TRACED_FN && fn->fn->kind == EXPR_CTOR)
        return data_traced(fn->fn->ctor, args, n);
    return call_function(ex, span, fn, args, n);
}

static Traced *find_var(Export *ex, const Scope *scope, const Var *var, Span span) {
    for (; scope; scope = scope->outer)
        if (scope->var == var)
            return scope->value;
    return export_refuse(ex, span, fmt_text("`%s` is not known here", var->name->text));
}

/* What a function literal captured, by its number among the variables that are free in it. */
static Traced *captured(Export *ex, const Expr *e, Traced *const *args) {
    const Traced *fn = args[0];
    VarVec vars = {0};
    int64_t at = -1;
    if (fn->kind == TRACED_BAD)
        return &ex->bad;
    if (args[1]->kind == TRACED_TENSOR && args[1]->constant)
        elem_cast(&at, DT_I64, tensor_data(args[1]->constant), args[1]->dtype);
    if (fn->kind == TRACED_FN && fn->fn->kind == EXPR_FN)
        expr_free_vars(fn->fn, &vars);
    if (at < 0 || (size_t)at >= vars.len)
        return export_refuse(ex, e->span, "a derivative of a function that is not known");
    return find_var(ex, fn->scope, vars.data[at], e->span);
}

static Traced *export_builtin(Export *ex, const Scope *scope, const Expr *e, const char *name) {
    bool is_tree = strncmp(name, "tree.", 5) == 0;
    if (!is_tree && strncmp(name, "ad.", 3) != 0)
        return export_refuse(ex, e->span, fmt_text("`%s` has no counterpart", name));
    Traced **args = mem_new_n(Traced *, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++)
        args[i] = e->args[i]->kind == EXPR_STRING ? &ex->bad : export_expr(ex, scope, e->args[i]);
    if (strcmp(name, "ad.captured") == 0)
        return captured(ex, e, args);
    return is_tree ? export_tree(ex, e, name, args) : export_ad(ex, e, args);
}

static Traced *refuse_derivative(Export *ex, const Expr *e) {
    const char *why = ex->ask->why(ex->ask->ctx);
    return export_refuse(ex, e->span,
                         fmt_text("`%s` that is not code%s%s",
                                  e->kind == EXPR_GRAD ? grad_kind_name((GradKind)e->mode) : "grad",
                                  why ? ": " : "", why ? why : ""));
}

static Traced *export_call(Export *ex, const Scope *scope, Expr *e) {
    if (e->mode)
        return refuse_derivative(ex, e);
    if (e->a->kind == EXPR_OP) {
        ExportCall call = {.op = e->a->op, .attrs = e->attrs, .span = e->span};
        call.args = export_all(ex, scope, e->args, e->nargs);
        call.nargs = e->nargs;
        call.sizes = export_all(ex, scope, e->sizes, e->nsizes);
        call.nsizes = e->nsizes;
        return export_operator(ex, call);
    }
    if (e->a->kind == EXPR_CTOR)
        return data_traced(e->a->ctor, export_all(ex, scope, e->args, e->nargs), e->nargs);
    if (e->a->kind == EXPR_BUILTIN)
        return export_builtin(ex, scope, e, e->a->symbol->text);
    if (e->a->kind == EXPR_GLOBAL && e->a->global->kind == GLOBAL_BUILTIN)
        return export_builtin(ex, scope, e, e->a->global->symbol);
    Traced *callee = export_expr(ex, scope, e->a);
    Traced **args = export_all(ex, scope, e->args, e->nargs);
    Traced *loop = e->a->kind == EXPR_GLOBAL
                       ? export_loop(ex, e->a->global, e->span, args, e->nargs)
                       : NULL;
    return loop ? loop : export_apply(ex, e->span, callee, args, e->nargs);
}

/* ---- branches -------------------------------------------------------------------------------- */

bool export_leaves(const Traced *t, TracedVec *out) {
    if (t->kind == TRACED_TENSOR)
        vec_push(out, (Traced *)t);
    bool all = t->kind == TRACED_TENSOR || t->kind == TRACED_TUPLE || t->kind == TRACED_DATA;
    for (uint32_t i = 0; i < t->nparts; i++)
        all &= export_leaves(t->parts[i], out);
    return all;
}

bool export_same_form(const Traced *a, const Traced *b) {
    if (a->kind != b->kind || a->nparts != b->nparts || a->ctor != b->ctor ||
        a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->nparts; i++)
        if (!export_same_form(a->parts[i], b->parts[i]))
            return false;
    return true;
}

Traced *export_with_leaves(const Traced *t, Traced *const *leaves, size_t *next) {
    if (t->kind == TRACED_TENSOR)
        return leaves[(*next)++];
    Traced *copy = mem_new(Traced);
    *copy = *t;
    copy->parts = mem_new_n(Traced *, t->nparts);
    for (uint32_t i = 0; i < t->nparts; i++)
        copy->parts[i] = export_with_leaves(t->parts[i], leaves, next);
    return copy;
}

/* What a branch computes: an expression, or the arms of a `match` from one on. */
typedef struct Branch {
    const Scope *scope;
    Expr *e;
    const Expr *match; /* NULL: e */
    Traced *value;     /* of the match */
    uint32_t arm;
} Branch;

static Traced *match_from(Export *ex, const Branch *b);

/* A branch as a graph of its own, whose outputs are the tensors of its value. */
static Traced *export_branch(Export *ex, const Branch *b, Span span, Str *graph,
                             TracedVec *leaves) {
    Str nodes = {0}, *outer = ex->nodes, ports = {0};
    ex->nodes = &nodes;
    Traced *value = b->match ? match_from(ex, b) : export_expr(ex, b->scope, b->e);
    if (value->kind != TRACED_BAD && !export_leaves(value, leaves))
        value = export_refuse(ex, span, "a branch whose value is no tensor nor data of tensors");
    for (size_t i = 0; value->kind != TRACED_BAD && i < leaves->len; i++) {
        Traced *leaf = leaves->data[i];
        Traced *out = export_node(ex, "Identity", &leaf, 1, NULL, leaf->dtype, leaf->rank);
        export_open_port(&ports, 12, out->name, leaf->dtype, leaf->rank);
    }
    ex->nodes = outer;
    str_add_n(graph, str_text(&nodes), nodes.len);
    wire_add_text(graph, 2, export_name(ex, NULL));
    str_add_n(graph, str_text(&ports), ports.len);
    return value;
}

/* A node If. */
static Traced *emit_if(Export *ex, Span span, Traced *condition, const Branch *yes,
                       const Branch *no) {
    Str then_graph = {0}, else_graph = {0}, attrs = {0};
    TracedVec then_leaves = {0}, else_leaves = {0}, outs = {0};
    Traced *a = export_branch(ex, yes, span, &then_graph, &then_leaves);
    Traced *b = export_branch(ex, no, span, &else_graph, &else_leaves);
    if (a->kind == TRACED_BAD || b->kind == TRACED_BAD)
        return &ex->bad;
    if (!export_same_form(a, b))
        return export_refuse(ex, span, "branches that give data of two forms");
    const char **names = mem_new_n(const char *, then_leaves.len);
    for (size_t i = 0; i < then_leaves.len; i++) {
        const Traced *leaf = then_leaves.data[i];
        names[i] = export_name(ex, NULL);
        vec_push(&outs, traced_named(names[i], leaf->dtype, leaf->rank));
    }
    onnx_add_graph(&attrs, "then_branch", &then_graph);
    onnx_add_graph(&attrs, "else_branch", &else_graph);
    if (outs.len)
        export_node_outputs(ex, "If", &condition, 1, &attrs, names, (uint32_t)outs.len);
    size_t next = 0;
    return export_with_leaves(a, outs.data, &next);
}

static Traced *export_if(Export *ex, const Scope *scope, const Expr *e) {
    Traced *condition = export_expr(ex, scope, e->a);
    if (condition->kind != TRACED_TENSOR)
        return &ex->bad;
    if (condition->constant)
        return export_expr(ex, scope,
                           *(const bool *)tensor_data(condition->constant) ? e->b : e->c);
    Branch yes = {.scope = scope, .e = e->b}, no = {.scope = scope, .e = e->c};
    return emit_if(ex, e->span, condition, &yes, &no);
}

typedef enum Fit { FITS, FITS_NOT, FIT_OPEN } Fit;

/* Whether a value fits a pattern, whose variables are then bound in *scope. It does so where all that is added to
 * `conditions` is true. */
static Fit fit_pattern(Export *ex, const Pattern *p, Traced *value, const Scope **scope,
                       TracedVec *conditions) {
    switch (p->kind) {
    case PAT_WILDCARD: return FITS;
    case PAT_VAR: *scope = bind(*scope, p->var, value); return FITS;
    case PAT_LIT: {
        Traced *args[] = {value, export_literal(ex, *scope, p->lit)};
        if (value->kind != TRACED_TENSOR || args[1]->kind != TRACED_TENSOR)
            return FIT_OPEN;
        Traced *same = export_default(ex, &op_equal, p->span, args, 2);
        if (same->kind != TRACED_TENSOR || same->rank)
            return FIT_OPEN;
        if (!same->constant) {
            vec_push(conditions, same);
            return FITS;
        }
        return *(const bool *)tensor_data(same->constant) ? FITS : FITS_NOT;
    }
    case PAT_STRING: return FIT_OPEN;
    case PAT_CTOR:
        if (value->kind != TRACED_DATA)
            return FIT_OPEN;
        if (value->ctor != p->ctor)
            return FITS_NOT;
        break;
    case PAT_TUPLE:
        if (value->kind != TRACED_TUPLE)
            return FIT_OPEN;
        break;
    }
    Fit all = FITS;
    for (uint32_t i = 0; i < p->nargs && i < value->nparts && all == FITS; i++)
        all = fit_pattern(ex, p->args[i], value->parts[i], scope, conditions);
    return all;
}

/* The arms from one on: that which is taken where this is known, otherwise a node If for each that may be. */
static Traced *match_from(Export *ex, const Branch *b) {
    const Expr *e = b->match;
    for (uint32_t i = b->arm; i < e->narms; i++) {
        const Arm *arm = &e->arms[i];
        const Scope *inner = b->scope;
        TracedVec conditions = {0};
        Fit fit = fit_pattern(ex, arm->pattern, b->value, &inner, &conditions);
        if (fit == FITS_NOT)
            continue;
        Traced *guard = fit == FITS && arm->guard ? export_expr(ex, inner, arm->guard) : NULL;
        if (fit == FIT_OPEN || (guard && guard->kind != TRACED_TENSOR))
            return export_refuse(ex, arm->pattern->span,
                                 "a `match` whose arm is not known before the model runs");
        if (guard && guard->constant && !*(const bool *)tensor_data(guard->constant))
            continue;
        if (guard && !guard->constant)
            vec_push(&conditions, guard);
        if (!conditions.len)
            return export_expr(ex, inner, arm->body);
        Traced *taken = conditions.data[0];
        for (size_t k = 1; k < conditions.len; k++) {
            Traced *both[] = {taken, conditions.data[k]};
            taken = export_node(ex, "And", both, 2, NULL, DT_BOOL, 0);
        }
        Branch yes = {.scope = inner, .e = arm->body}, no = *b;
        no.arm = i + 1;
        return emit_if(ex, e->span, taken, &yes, &no);
    }
    return export_refuse(ex, e->span, "a `match` of which no arm fits");
}

static Traced *export_match(Export *ex, const Scope *scope, const Expr *e) {
    Branch all = {.scope = scope, .match = e, .value = export_expr(ex, scope, e->a)};
    return all.value->kind == TRACED_BAD ? all.value : match_from(ex, &all);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static Traced *part_at(Export *ex, const Expr *e, const Traced *whole, int64_t index) {
    if (whole->kind == TRACED_BAD)
        return &ex->bad;
    if (whole->kind == TRACED_TENSOR || whole->kind == TRACED_FN || index < 0 ||
        index >= whole->nparts)
        return export_refuse(ex, e->span, "a part of what is no tuple nor record");
    return whole->parts[index];
}

/* The place of a field in data; -1: it has none of this name. */
static int64_t field_index(const Traced *data, const Symbol *field) {
    for (uint32_t i = 0; data->kind == TRACED_DATA && data->ctor->field_names && i < data->nparts;
         i++)
        if (data->ctor->field_names[i] == field)
            return i;
    return -1;
}

static Traced *export_update(Export *ex, const Scope *scope, const Expr *e) {
    Traced *whole = export_expr(ex, scope, e->a);
    if (whole->kind != TRACED_DATA)
        return part_at(ex, e, whole, -1);
    Traced **parts = mem_new_n(Traced *, whole->nparts);
    for (uint32_t i = 0; i < whole->nparts; i++)
        parts[i] = whole->parts[i];
    for (uint32_t i = 0; i < e->nargs; i++) {
        int64_t at = field_index(whole, e->field_names[i]);
        if (at < 0)
            return part_at(ex, e, whole, at);
        parts[at] = export_expr(ex, scope, e->args[i]);
    }
    return data_traced(whole->ctor, parts, whole->nparts);
}

static Traced *export_bracket(Export *ex, const Scope *scope, const Expr *e) {
    Traced *whole = export_expr(ex, scope, e->a);
    Traced **args = export_all(ex, scope, e->args, e->nargs);
    if (whole->kind == TRACED_BAD)
        return whole;
    if (whole->kind != TRACED_TENSOR) {
        int64_t at = -1;
        if (e->nargs == 1 && args[0]->kind == TRACED_TENSOR && args[0]->constant)
            elem_cast(&at, DT_I64, tensor_data(args[0]->constant), args[0]->dtype);
        return part_at(ex, e, whole, at);
    }
    for (uint32_t i = 0; i < e->nargs; i++)
        if (args[i]->kind == TRACED_BAD)
            return args[i];
    return export_index(ex, e->span, attrs_text(e->attrs, "spec"), whole, args, e->nargs);
}

static Traced *export_equal(Export *ex, const Scope *scope, const Expr *e) {
    Traced *in[] = {export_expr(ex, scope, e->a), export_expr(ex, scope, e->b)};
    if (in[0]->kind == TRACED_BAD || in[1]->kind == TRACED_BAD)
        return &ex->bad;
    if (in[0]->kind != TRACED_TENSOR || in[1]->kind != TRACED_TENSOR)
        return export_refuse(ex, e->span, "`==` of what are no tensors");
    Traced *same = export_default(ex, &op_equal, e->span, in, 2);
    return e->negate && same->kind != TRACED_BAD
               ? export_default(ex, &op_logical_not, e->span, &same, 1)
               : same;
}

static Traced *export_dim(Export *ex, const Scope *scope, const Expr *e) {
    Traced *of = export_expr(ex, scope, e->a);
    DType dtype = DT_I32;
    (void)type_get_dtype(e->type, &dtype);
    if (of->kind == TRACED_BAD)
        return of;
    if (of->kind != TRACED_TENSOR || e->index >= of->rank)
        return export_refuse(ex, e->span, "a size of what is no tensor");
    return export_size(ex, of, e->index, dtype);
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* What is asserted is left to the program: a model has no errors of its own. */
static bool is_assertion(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_GLOBAL && e->a->global->internal &&
           e->a->global->name == sym_intern("assert");
}

static const Scope *export_let(Export *ex, const Scope *scope, const Expr *e) {
    if (!e->var && is_assertion(e->a))
        return scope;
    if (!e->rec) {
        Traced *value = export_expr(ex, scope, e->a);
        return e->var ? bind(scope, e->var, value) : scope;
    }
    Traced *fn = fn_traced(e->a, NULL);
    fn->scope = bind(scope, e->var, fn);
    return fn->scope;
}

static Traced *export_expr(Export *ex, const Scope *scope, Expr *e) {
    for (; e->kind == EXPR_LET && !ex->stopped; e = e->body)
        scope = export_let(ex, scope, e);
    if (ex->stopped)
        return &ex->bad;
    if (++ex->nsteps > MOST_STEPS)
        return stop(ex, e->span, fmt_text("more than %d steps", MOST_STEPS));
    switch (e->kind) {
    case EXPR_VAR: return find_var(ex, scope, e->var, e->span);
    case EXPR_LIT: return export_literal(ex, scope, e);
    case EXPR_CONST: return traced_constant(e->tensor);
    case EXPR_GLOBAL: return export_global(ex, e);
    case EXPR_OP:
    case EXPR_FN: return fn_traced(e, scope);
    case EXPR_CTOR: return e->ctor->nfields ? fn_traced(e, scope) : data_traced(e->ctor, NULL, 0);
    case EXPR_CALL: return export_call(ex, scope, e);
    case EXPR_TUPLE: return traced_tuple(export_all(ex, scope, e->args, e->nargs), e->nargs);
    case EXPR_PROJ: return part_at(ex, e, export_expr(ex, scope, e->a), e->index);
    case EXPR_FIELD: {
        Traced *whole = export_expr(ex, scope, e->a);
        return part_at(ex, e, whole, e->index >= 0 ? e->index : field_index(whole, e->field));
    }
    case EXPR_UPDATE: return export_update(ex, scope, e);
    case EXPR_CHECK: /* a model checks the sizes of its inputs itself */
        return export_expr(ex, scope, e->a);
    case EXPR_EQUAL: return export_equal(ex, scope, e);
    case EXPR_IF: return export_if(ex, scope, e);
    case EXPR_MATCH: return export_match(ex, scope, e);
    case EXPR_INDEX: return export_bracket(ex, scope, e);
    case EXPR_TENSOR: {
        Traced *tuple = traced_tuple(export_all(ex, scope, e->args, e->nargs), e->nargs);
        for (uint32_t i = 0; i < e->nargs; i++)
            if (tuple->parts[i]->kind == TRACED_BAD)
                return &ex->bad;
        return export_default(ex, &op_stack, e->span, &tuple, 1);
    }
    case EXPR_BANG: {
        Traced *x = export_expr(ex, scope, e->a);
        return x->kind == TRACED_BAD ? x : export_default(ex, &op_logical_not, e->span, &x, 1);
    }
    case EXPR_DIM_OF: return export_dim(ex, scope, e);
    case EXPR_ZERO: return export_zero(ex, e->span, e->zero_type);
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE: return export_refuse(ex, e->span, "a reference");
    case EXPR_GRAD: return refuse_derivative(ex, e);
    case EXPR_STRING:
    case EXPR_BUILTIN:
    case EXPR_LET:
    case EXPR_ERROR: break;
    }
    return export_refuse(ex, e->span, "this expression has no counterpart");
}

/* ---- the interface of the graph -------------------------------------------------------------- */

/* An output under a name of its own, so that an input or one value given twice can be an output. */
static bool add_output(Export *ex, Str *ports, Traced *value, Type *type, const char *hint) {
    DType dtype;
    int rank;
    const char *name = export_name(ex, hint);
    if (value->kind != TRACED_TENSOR)
        return false;
    if (!export_port(ports, 12, name, type, &dtype, &rank))
        export_open_port(ports, 12, name, value->dtype, value->rank);
    export_node_outputs(ex, "Identity", &value, 1, NULL, &name, 1);
    return true;
}

static void export_outputs(Export *ex, const Expr *entry, Traced *result, Str *ports) {
    Type *type = type_resolve(type_resolve(entry->type)->fn.result);
    bool done = true;
    if (result->kind == TRACED_BAD)
        return;
    if (result->kind == TRACED_TENSOR)
        (void)add_output(ex, ports, result, type, "output");
    for (uint32_t i = 0; i < result->nparts; i++) {
        Type *part = type->tag == TY_TUPLE && i < type->nargs ? type->args[i] : type;
        done &= result->parts[i]->kind == TRACED_BAD ||
                add_output(ex, ports, result->parts[i], part,
                           result->ctor && result->ctor->field_names
                               ? result->ctor->field_names[i]->text
                               : fmt_text("output%u", i));
    }
    if (!done || (result->kind != TRACED_TENSOR && !result->nparts))
        export_refuse(ex, entry->span, "the result is no tensor, nor a tuple or record of such");
}

/* The sizes of a tensor's type; NULL where one is no number. */
static const int64_t *known_shape(Type *type) {
    Type *shape = type_resolve(type_resolve(type)->tensor.shape);
    int64_t *sizes = mem_bytes(sizeof *sizes * (shape->nargs + 1));
    for (uint32_t i = 0; i < shape->nargs; i++) {
        Type *d = type_resolve(shape->args[i]);
        if (d->tag != TY_DIM || d->dim->nterms)
            return NULL;
        sizes[i] = d->dim->constant;
    }
    return sizes;
}

/* The parameters as inputs. */
static const Scope *export_inputs(Export *ex, const Fn *fn, Str *ports) {
    const Scope *scope = NULL;
    for (uint32_t i = 0; i < fn->nparams; i++) {
        const Var *v = fn->params[i];
        DType dtype;
        int rank;
        const char *input = export_name(ex, v->name->text);
        Traced *value;
        if (export_port(ports, 11, input, v->type, &dtype, &rank)) {
            value = traced_named(input, dtype, rank);
            value->shape = known_shape(v->type);
        } else
            value = export_refuse(
                ex, v->span,
                fmt_text("parameter `%s` is no tensor of known rank and dtype", v->name->text));
        scope = bind(scope, v, value);
    }
    return scope;
}

bool onnx_export(Expr *entry, const char *name, const ExportAsk *ask, Diags *diags, Str *out) {
    Str nodes = {0}, ports = {0}, graph = {0}, opset = {0};
    Export ex = {.ask = ask, .diags = diags, .nodes = &nodes};
    size_t errors = diags->errors;
    const Fn *fn = prepare(&ex, entry);
    const Scope *scope = export_inputs(&ex, fn, &ports);
    export_outputs(&ex, entry, export_expr(&ex, scope, fn->body), &ports);
    if (diags->errors > errors)
        return false;
    str_add_n(&graph, str_text(&nodes), nodes.len);
    wire_add_text(&graph, 2, name);
    str_add_n(&graph, str_text(&ex.initializers), ex.initializers.len);
    str_add_n(&graph, str_text(&ports), ports.len);
    if (graph.len > MOST_BYTES) {
        export_refuse(&ex, entry->span, "the model is larger than the 2 GB that its format holds");
        return false;
    }
    wire_add_varint(out, 1, IR_VERSION);
    wire_add_text(out, 2, "relay");
    onnx_add_message(out, 7, &graph);
    wire_add_text(&opset, 1, "");
    wire_add_varint(&opset, 2, OPSET);
    onnx_add_message(out, 8, &opset);
    return true;
}
