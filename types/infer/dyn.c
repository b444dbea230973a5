/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's dyn.zeros(shape), dyn.reshape(data, newshape), …: the operators of the same name, whose attributes stand
 * among the arguments (docs/sizes.md).
 *
 *     dyn.zeros([n, 3])         zeros(shape=[n, 3])
 *     dyn.reshape(x, s)         let sizes = s; reshape(x, newshape=[sizes[0], sizes[1]])    s : Tensor[(2,), int64]
 *     dyn.nn.pad(x, w, 0.0)     let sizes = w; nn.pad(x, 0.0, pad_width=[[sizes[0, 0], sizes[0, 1]]])
 *
 * Sizes may be computed. What else is an attribute (an axis) must be written or a constant, and the number of sizes
 * is a rank, so the shape of their tensor must be known. */
#include <string.h>

#include "types/infer/state.h"

/* The arguments in TVM's order: those that are attributes have the attribute's name. */
static const struct {
    const char *op, *args;
} forms[] = {
    {"zeros", "shape"},
    {"ones", "shape"},
    {"full", "fill_value shape"},
    {"broadcast_to", "data shape"},
    {"reshape", "data newshape"},
    {"one_hot", "indices on_value off_value depth"},
    {"tile", "data reps"},
    {"topk", "data k"},
    {"expand_dims", "data axis"},
    {"squeeze", "data axis"},
    {"nn.pad", "data pad_width pad_value"},
    {"nn.upsampling", "data scale_h scale_w"},
    {"nn.upsampling3d", "data scale_d scale_h scale_w"},
    {"image.resize2d", "data size roi"},
    {"sparse_to_dense", "sparse_indices sparse_values default_value output_shape"},
};

const char *infer_dyn_form(const char *op) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].op, op) == 0)
            return forms[i].args;
    return NULL;
}

const Op *infer_find_dyn(const Symbol *name) {
    const char *text = name->text;
    bool dyn = strncmp(text, "dyn.", 4) == 0 && infer_dyn_form(text + 4);
    return dyn ? op_find(sym_intern(text + 4)) : NULL;
}

typedef struct Dyn {
    Infer *I;
    const Op *op;
    Ast *call; /* that of `op` */
    LetStack lets;
} Dyn;

/* ---- syntax ---------------------------------------------------------------------------------- */

static Ast *node(AstKind kind, Span span) {
    Ast *e = mem_new(Ast);
    e->kind = kind;
    e->span = span;
    return e;
}

static Ast *name_node(const Symbol *sym, Span span) {
    Ast *e = node(AST_NAME, span);
    e->name = (Name){.sym = sym, .span = span};
    return e;
}

static Ast *int_node(int64_t i, Span span) {
    Ast *e = node(AST_INT, span);
    e->i = i;
    return e;
}

static AstAttrValue *attr_node(AstAttrKind kind, Span span) {
    AstAttrValue *v = mem_new(AstAttrValue);
    v->kind = kind;
    v->span = span;
    return v;
}

/* The number in `2` or `-2`. */
static const Ast *number_node(const Ast *e) {
    return e->kind == AST_UNARY && e->op == UNOP_NEG ? e->a : e;
}

static bool is_number(const Ast *e) {
    AstKind kind = number_node(e)->kind;
    return kind == AST_INT || kind == AST_FLOAT;
}

/* A written number, which may be a code; another expression; a list where e is a tensor literal. floats: a float is
 * a number too. */
static AstAttrValue *value_of(Ast *e, bool floats) {
    AstAttrValue *v = attr_node(AST_ATTR_EXPR, e->span);
    v->expr = e;
    if (e->kind == AST_TENSOR) {
        v->kind = AST_ATTR_LIST;
        for (size_t i = 0; i < e->args.len; i++)
            vec_push(&v->items, value_of(e->args.data[i], floats));
    } else if (is_number(e) && (floats || number_node(e)->kind == AST_INT)) {
        bool minus = e->kind == AST_UNARY;
        const Ast *n = number_node(e);
        v->kind = n->kind == AST_INT ? AST_ATTR_INT : AST_ATTR_FLOAT;
        if (n->kind == AST_INT)
            v->i = minus ? -n->i : n->i;
        else
            v->f = minus ? -n->f : n->f;
    }
    return v;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Binds a value to a variable of the call, and gives its name. */
static Ast *bind(Dyn *d, Expr *value) {
    const Symbol *name = sym_intern(fmt_text("%%argument %zu of a dyn operator", d->lets.vars.len));
    Var *var = var_new(name, value->type, value->span);
    infer_note_constant(value, &var->size);
    scope_bind(d->I, name, false, var);
    vec_push(&d->lets.vars, var);
    vec_push(&d->lets.values, value);
    Ast *e = name_node(name, value->span);
    e->name.sigil = SIGIL_LOCAL; /* in a file with #[version] a bare name is no local */
    return e;
}

/* sizes[at, …]: an element of a tensor; all of it where it has no axes. */
static AstAttrValue *element(const Ast *sizes, const int64_t *at, uint32_t n) {
    Ast *e = node(AST_INDEX, sizes->span);
    e->a = (Ast *)sizes;
    for (uint32_t i = 0; i < n; i++)
        vec_push(&e->indices,
                 ((AstIndex){
                     .kind = INDEX_AT, .at = int_node(at[i], sizes->span), .span = sizes->span}));
    return value_of(n ? e : (Ast *)sizes, false);
}

/* An element of a constant, as a number that is written. */
static AstAttrValue *constant_element(const Tensor *t, int64_t at, Span span) {
    bool is_float = dtype_is_float(t->dtype);
    AstAttrValue *v = attr_node(is_float ? AST_ATTR_FLOAT : AST_ATTR_INT, span);
    if (is_float)
        v->f = elem_get_float(tensor_at(t, at), t->dtype);
    else
        v->i = elem_get_int(tensor_at(t, at), t->dtype);
    return v;
}

/* How many axes an attribute's lists have: 0 of a number, 1 of a list, 2 of a list of lists. */
static uint32_t rank_of_attr(AttrType type) {
    switch (type) {
    case AT_DIM_LISTS: return 2;
    case AT_INTS:
    case AT_INTS_OPT:
    case AT_DIMS:
    case AT_DIMS_OPT:
    case AT_INT_OR_DIMS:
    case AT_FLOATS: return 1;
    case AT_INT:
    case AT_INT_OPT:
    case AT_FLOAT:
    case AT_BOOL:
    case AT_STRING:
    case AT_DTYPE:
    case AT_DIM: return 0;
    }
    return 0;
}

/* A tensor's elements as an attribute; NULL after a report. A lone number may stand in a vector of one. */
static AstAttrValue *elements(Dyn *d, const AttrSpec *spec, Expr *value) {
    uint32_t want = rank_of_attr(spec->type), rank = 0;
    int64_t shape[2] = {1, 1}, at[2] = {0, 0}, one = 0;
    Type **dims;
    bool known = type_get_rank(value->type, &rank, &dims) && rank <= 2;
    for (uint32_t i = 0; known && i < rank; i++)
        known = type_get_int(dims[i], &shape[i]);
    bool lone = known && want == 0 && (rank == 0 || (rank == 1 && shape[0] == 1));
    if (!known || !(lone || rank == want || (rank == 0 && want == 1))) {
        Diag *diag = infer_error(d->I, DIAG_R0313, value->span, "`dyn.%s` needs %s, found %s",
                                 d->op->name,
                                 want == 0   ? "one number"
                                 : want == 1 ? "a vector of sizes"
                                             : "a matrix of sizes",
                                 type_text(value->type));
        if (diag && want)
            diag_add_fact(diag, "its length is the rank of the result, so it must be known");
        return NULL;
    }
    const Tensor *constant = value->kind == EXPR_CONST ? value->tensor : NULL;
    Ast *name = constant ? NULL : bind(d, value);
    if (lone || want == 0)
        return constant ? constant_element(constant, 0, value->span) : element(name, &one, rank);
    AstAttrValue *list = attr_node(AST_ATTR_LIST, value->span);
    for (at[0] = 0; at[0] < shape[0]; at[0]++) {
        AstAttrValue *row = list;
        if (want == 2) {
            row = attr_node(AST_ATTR_LIST, value->span);
            vec_push(&list->items, row);
        }
        for (at[1] = 0; at[1] < shape[1]; at[1]++)
            vec_push(&row->items,
                     constant ? constant_element(constant, at[0] * shape[1] + at[1], value->span)
                              : element(name, at, rank));
    }
    return list;
}

/* A tensor literal as the vector or matrix that it is; else the value of the argument. */
static AstAttrValue *attribute(Dyn *d, const AttrSpec *spec, Ast *arg) {
    if (arg->kind != AST_TENSOR && !is_number(arg)) {
        Expr *value = infer_expr(d->I, arg, NULL);
        return type_resolve(value->type)->tag == TY_ERROR ? NULL : elements(d, spec, value);
    }
    AstAttrValue *v = value_of(arg, spec->type == AT_FLOATS || spec->type == AT_FLOAT);
    bool lone = rank_of_attr(spec->type) == 0 && v->kind == AST_ATTR_LIST && v->items.len == 1;
    return lone ? v->items.data[0] : v;
}

/* ---- upsampling ------------------------------------------------------------------------------ */

static Ast *call_node(const char *name, Ast *arg, Span span) {
    Ast *e = node(AST_CALL, span);
    e->a = name_node(sym_intern(name), span);
    vec_push(&e->args, arg);
    return e;
}

static Ast *binary_node(BinOp op, Ast *a, Ast *b) {
    Ast *e = node(AST_BINARY, a->span);
    e->op = op;
    e->a = a;
    e->b = b;
    e->op_span = a->span;
    return e;
}

static Ast *cast_node(const char *dtype, Ast *a) {
    Ast *e = node(AST_CAST, a->span);
    e->type = mem_new(AstType);
    e->type->kind = AST_TYPE_NAME;
    e->type->span = a->span;
    e->type->name = sym_intern(dtype);
    e->a = a;
    return e;
}

/* How often axis `at` of data is longer, as nn.upsampling rounds it: floor(shape_of(data)[at] * scale + 0.5). */
static AstAttrValue *scaled_side(const Ast *data, int64_t at, const Ast *scale) {
    Ast *shape = call_node("shape_of", (Ast *)data, scale->span),
        *half = node(AST_FLOAT, scale->span);
    half->f = 0.5;
    Ast *side = cast_node("float64", element(shape, &at, 1)->expr);
    Ast *wanted = binary_node(BINOP_MUL, side, cast_node("float64", (Ast *)scale));
    Ast *whole = call_node("floor", binary_node(BINOP_ADD, wanted, half), scale->span);
    return value_of(cast_node("int64", whole), false);
}

static const AstAttr *find_attr(const Ast *e, const char *name) {
    for (size_t i = 0; i < e->attrs.len; i++)
        if (strcmp(e->attrs.data[i].name->text, name) == 0)
            return &e->attrs.data[i];
    return NULL;
}

static void add_text(Ast *e, const char *name, const char *text) {
    AstAttrValue *v = attr_node(AST_ATTR_STRING, e->span);
    v->text = text;
    v->text_len = strlen(text);
    vec_push(&e->attrs, ((AstAttr){sym_intern(name), v, e->span}));
}

/* nn.upsampling and nn.upsampling3d whose scales are computed: the resize of that size. */
static Expr *upsample(Dyn *d, const Ast *e) {
    bool deep = e->args.len == 4;
    const AstAttr *layout = find_attr(e, "layout"), *method = find_attr(e, "method"),
                  *corners = find_attr(e, "align_corners"),
                  *mode = find_attr(e, "coordinate_transformation_mode");
    const char *axes = layout && layout->value->text ? layout->value->text
                       : deep                        ? "NCDHW"
                                                     : "NCHW";
    const char *how = method && method->value->text ? method->value->text : "nearest";
    AstAttr size = {sym_intern("size"), attr_node(AST_ATTR_LIST, e->span), e->span};
    Ast *call = call_node(deep ? "image.resize3d" : "image.resize2d",
                          bind(d, infer_expr(d->I, e->args.data[0], NULL)), e->span);
    for (size_t i = 1; i < e->args.len; i++) {
        const char *side = strchr(axes, "DHW"[deep ? i - 1 : i]);
        Ast *scale = bind(d, infer_expr(d->I, e->args.data[i], NULL));
        vec_push(&size.value->items,
                 scaled_side(call->args.data[0], side ? side - axes : 0, scale));
    }
    vec_push(&call->attrs, size);
    add_text(call, "layout", axes);
    add_text(call, "method",
             strstr(how, "linear")  ? "linear"
             : strstr(how, "cubic") ? "cubic"
                                    : "nearest_neighbor");
    add_text(call, "coordinate_transformation_mode",
             deep ? mode && mode->value->text ? mode->value->text : "half_pixel"
             : corners && corners->value->i != 0 ? "align_corners"
                                                 : "asymmetric");
    add_text(call, "rounding_method", "");
    return infer_expr(d->I, call, NULL);
}

/* ---- the call -------------------------------------------------------------------------------- */

static bool is_computed(const Ast *e) {
    bool any = e->kind != AST_NAME && e->kind != AST_TENSOR && e->kind != AST_META && !is_number(e);
    for (size_t i = 0; e->kind == AST_TENSOR && i < e->args.len && !any; i++)
        any = is_computed(e->args.data[i]);
    return any;
}

/* Whether an attribute after argument k is computed: then the argument is bound before it. */
static bool is_computed_after(const Ast *e, size_t k) {
    bool any = false;
    for (size_t i = k + 1; i < e->args.len && !any; i++)
        any = is_computed(e->args.data[i]);
    return any;
}

/* Makes the call of the operator; false after a report. */
static bool make_call(Dyn *d, const Ast *e) {
    const char *name = infer_dyn_form(d->op->name);
    AstAttrVec made = {0};
    d->call->args = (AstVec){0};
    for (size_t k = 0; k < e->args.len; k++) {
        size_t len = strcspn(name, " ");
        const Symbol *sym = sym_intern_n(name, len);
        int at = op_attr_index(d->op, sym->text);
        Ast *arg = e->args.data[k];
        name += len + (name[len] == ' ');
        if (at < 0) {
            if (is_computed(arg) && is_computed_after(e, k))
                arg = bind(d, infer_expr(d->I, arg, NULL));
            vec_push(&d->call->args, arg);
            continue;
        }
        AstAttr attr = {
            .name = sym, .span = arg->span, .value = attribute(d, &d->op->attrs[at], arg)};
        if (!attr.value)
            return false;
        vec_push(&made, attr);
    }
    d->call->attrs = (AstAttrVec){0};
    for (size_t i = 0; i < e->attrs.len;
         i++) { /* TVM writes `shape=None` for what is an argument */
        bool twice = false;
        for (size_t k = 0; k < made.len; k++)
            twice = twice || made.data[k].name == e->attrs.data[i].name;
        if (!twice)
            vec_push(&d->call->attrs, e->attrs.data[i]);
    }
    for (size_t i = 0; i < made.len; i++)
        vec_push(&d->call->attrs, made.data[i]);
    return true;
}

Expr *infer_dyn_call(Infer *I, const Op *op, Ast *e) {
    Dyn d = {.I = I, .op = op, .call = mem_new(Ast)};
    size_t mark = scope_mark(I), n = 1;
    for (const char *p = infer_dyn_form(op->name); *p; p++)
        n += *p == ' ';
    if (e->args.len != n) {
        infer_error(I, DIAG_R0203, e->span, "`dyn.%s` takes %zu argument%s, and %zu %s given",
                    op->name, n, n == 1 ? "" : "s", e->args.len, e->args.len == 1 ? "is" : "are");
        return infer_error_expr(e->span);
    }
    *d.call = *e;
    bool scales = strstr(infer_dyn_form(op->name), "scale_") != NULL, numbers = true;
    for (size_t i = 1; i < n; i++)
        numbers = numbers && is_number(e->args.data[i]);
    Expr *out = scales && !numbers ? upsample(&d, e)
                : make_call(&d, e) ? infer_named_op(I, op, d.call)
                                   : infer_error_expr(e->span);
    scope_restore(I, mark);
    return let_stack_wrap(&d.lets, out);
}
