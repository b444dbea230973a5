/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's dyn.zeros(shape), dyn.reshape(data, newshape), …: the operators of the same name whose sizes stand in a tensor
 * that is their last argument (docs/sizes.md).
 *
 *     dyn.zeros([n, 3])         zeros(shape=[n, 3])
 *     dyn.reshape(x, s)         let sizes = s; reshape(x, newshape=[sizes[0], sizes[1]])    s : Tensor[(2,), int64]
 *
 * The number of sizes is the rank of the result, so the length of that tensor must be known. */
#include <string.h>

#include "types/infer/state.h"

/* The attribute that the last argument stands for, or NULL where the operator has no such form. */
static const AttrSpec *sizes_of(const Op *op) {
    for (int i = 0; i < op->nattrs; i++)
        if (op->attrs[i].type == AT_DIMS ||
            (op->attrs[i].type == AT_DIM && strcmp(op->attrs[i].name, "depth") == 0))
            return &op->attrs[i];
    return NULL;
}

const Op *infer_find_dyn(const Name *name) {
    const char *text = name->sym->text;
    const Op *op = strncmp(text, "dyn.", 4) == 0 ? op_find(sym_intern(text + 4)) : NULL;
    return op && sizes_of(op) && strcmp(text + 4, "index") != 0 ? op : NULL;
}

static Ast *node(AstKind kind, Span span) {
    Ast *e = mem_new(Ast);
    e->kind = kind;
    e->span = span;
    return e;
}

static AstAttrValue *value_of(Ast *e) {
    AstAttrValue *v = mem_new(AstAttrValue);
    bool minus = e->kind == AST_UNARY && e->op == UNOP_NEG && e->a->kind == AST_INT;
    v->span = e->span;
    if (e->kind == AST_INT || minus) { /* a written number may be a code */
        v->kind = AST_ATTR_INT;
        v->i = minus ? -e->a->i : e->i;
    } else {
        v->kind = AST_ATTR_EXPR;
        v->expr = e;
    }
    return v;
}

/* sizes[i], or sizes where that is one integer. */
static Ast *element(const Symbol *sizes, int64_t i, Span span) {
    Ast *name = node(AST_NAME, span);
    name->name = (Name){.sym = sizes, .span = span};
    if (i < 0)
        return name;
    Ast *e = node(AST_INDEX, span), *at = node(AST_INT, span);
    at->i = i;
    e->a = name;
    vec_push(&e->indices, ((AstIndex){.kind = INDEX_AT, .at = at, .span = span}));
    return e;
}

/* The number of sizes in a tensor of this type; -1 where it is one size, -2 after a report. */
static int64_t count_sizes(Infer *I, const Expr *e, const Op *op) {
    uint32_t rank;
    Type **dims;
    int64_t n;
    if (type_get_rank(e->type, &rank, &dims) && rank == 0)
        return -1;
    if (type_get_rank(e->type, &rank, &dims) && rank == 1 && type_get_int(dims[0], &n))
        return n;
    Diag *d = infer_error(I, DIAG_R0313, e->span, "`dyn.%s` needs a vector of sizes, found %s",
                          op->name, type_text(e->type));
    if (d)
        diag_add_fact(d, "its length is the rank of the result, so it must be known");
    return -2;
}

/* The call with its last argument as an attribute. Variables that it needs are added to `lets`. */
static Ast *with_sizes(Infer *I, const Op *op, const Ast *call, LetStack *lets) {
    const AttrSpec *spec = sizes_of(op);
    Ast *sizes = vec_last(&call->args), *out = mem_new(Ast);
    AstAttr attr = {.name = sym_intern(spec->name), .span = sizes->span};
    AstAttrValue *list = mem_new(AstAttrValue);
    list->kind = AST_ATTR_LIST;
    list->span = sizes->span;
    if (sizes->kind == AST_TENSOR) {
        for (size_t i = 0; i < sizes->args.len; i++)
            vec_push(&list->items, value_of(sizes->args.data[i]));
    } else if (sizes->kind == AST_INT) {
        vec_push(&list->items, value_of(sizes));
    } else {
        const Symbol *name = sym_intern("%sizes of a dyn operator");
        Expr *value = infer_expr(I, sizes, NULL);
        int64_t n = type_resolve(value->type)->tag == TY_ERROR ? -2 : count_sizes(I, value, op);
        if (n < -1)
            return NULL;
        Var *var = var_new(name, value->type, sizes->span);
        infer_note_constant(value, &var->size);
        scope_bind(I, name, false, var);
        vec_push(&lets->vars, var);
        vec_push(&lets->values, value);
        for (int64_t i = n < 0 ? -1 : 0; i < n || (n < 0 && i < 0); i++)
            vec_push(&list->items, value_of(element(name, i, sizes->span)));
    }
    attr.value = spec->type == AT_DIM ? list->items.data[0] : list;
    *out = *call;
    out->args = (AstVec){0};
    for (size_t i = 0; i + 1 < call->args.len; i++)
        vec_push(&out->args, call->args.data[i]);
    out->attrs = (AstAttrVec){0};
    for (size_t i = 0; i < call->attrs.len; i++) /* TVM writes `shape=None` there */
        if (call->attrs.data[i].name != attr.name)
            vec_push(&out->attrs, call->attrs.data[i]);
    vec_push(&out->attrs, attr);
    return out;
}

Expr *infer_dyn_call(Infer *I, const Op *op, Ast *e) {
    LetStack lets = {0};
    size_t mark = scope_mark(I);
    if (e->args.len != (size_t)op->nargs + 1) {
        infer_error(I, DIAG_R0203, e->span, "`dyn.%s` takes %d argument%s, and %u %s given",
                    op->name, op->nargs + 1, op->nargs ? "s" : "", (uint32_t)e->args.len,
                    e->args.len == 1 ? "is" : "are");
        return infer_error_expr(e->span);
    }
    Ast *call = with_sizes(I, op, e, &lets);
    Expr *out = call ? infer_named_op(I, op, call) : infer_error_expr(e->span);
    scope_restore(I, mark);
    return let_stack_wrap(&lets, out);
}
