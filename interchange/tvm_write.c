/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions and functions as nodes of TVM's Relay. What the graph has no counterpart of is gathered, so that one
 * run tells all of it. */
#include "interchange/tvm_write.h"

#include <string.h>

#include "interchange/tvm_writer.h"
#include "ops/table.h"
#include "parser/metadata.h"
#include "types/infer/infer.h"

enum { MOST_NODES = 1 << 22, MOST_SAID = 40 };

static size_t write(Writer *w, Expr *e);

size_t tvm_refuse(Writer *w, Span span, const char *what) {
    const Symbol *key = sym_intern(what);
    w->refused++;
    if (map_has(&w->said, key) || w->said.len >= MOST_SAID)
        return 0;
    map_set(&w->said, key, w);
    diag_error(w->diags, DIAG_R0509, span, "TVM's graphs have no counterpart of %s", what);
    return 0;
}

/* ---- constants ------------------------------------------------------------------------------- */

static size_t write_tensor(Writer *w, const Tensor *t) {
    static const uint8_t codes[] = {[DTC_INT] = 0, [DTC_UINT] = 1, [DTC_FLOAT] = 2, [DTC_BOOL] = 1};
    const Tensor *c = tensor_canonical(t);
    size_t size = dtype_size(c->dtype);
    MetaConstant array = {.code = c->dtype == DT_BF16 ? 4 : codes[dtype_info[c->dtype].cls],
                          .bits = c->dtype == DT_BOOL ? 1 : (uint8_t)(8 * size),
                          .ndim = c->rank,
                          .shape = (int64_t *)c->shape,
                          .data = tensor_data(c),
                          .bytes = (size_t)c->count * size};
    str_add(&w->arrays, w->narrays ? ",\n    \"" : "\n    \"");
    metadata_add_array(&w->arrays, &array);
    str_add(&w->arrays, "\"");
    return tvm_expr(w, "relay.Constant", "data", tvm_number(w->narrays++), NULL);
}

static size_t write_number(Writer *w, const Expr *e, DType dtype) {
    if (e->is_float)
        return write_tensor(w, tensor_scalar_float(dtype, e->f));
    return write_tensor(w, dtype_is_float(dtype) ? tensor_scalar_float(dtype, (double)e->i)
                                                 : tensor_scalar_int(dtype, e->i));
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool is_rows(Type *t) {
    t = t ? type_resolve(t) : NULL;
    return t && t->tag == TY_DATA && t->decl->row;
}

/* The constructors of a type of TVM say how many axes their tensors have, so rows of it have no type there. */
static size_t refuse_rows(Writer *w, Type *t, Span span) {
    const char *name = type_resolve(t)->decl->name->text;
    return tvm_refuse(
        w, span,
        fmt_text("rows of `%s`, whose declaration says how many axes its tensors have", name));
}

static size_t write_var(Writer *w, Var *v, bool typed) {
    size_t known = (size_t)(uintptr_t)map_find(&w->vars, v);
    if (known)
        return known;
    if (typed && is_rows(v->type))
        return refuse_rows(w, v->type, v->span);
    const char *name = *v->name->text == '%' ? v->name->text + 1 : v->name->text;
    size_t id = tvm_node(w, "relay.Id", "name_hint",
                         tvm_number(tvm_write_text(w, *name ? name : "v")), NULL);
    known = tvm_expr(w, "relay.Var", "type_annotation",
                     tvm_number(typed ? tvm_write_type(w, v->type) : 0), "vid", tvm_number(id),
                     NULL);
    map_set(&w->vars, v, (void *)(uintptr_t)known);
    return known;
}

static size_t write_call(Writer *w, size_t callee, const size_t *args, size_t n, size_t attrs) {
    return tvm_expr(w, "relay.Call", "args", tvm_number(tvm_write_list(w, args, n)), "attrs",
                    tvm_number(attrs), "op", tvm_number(callee), "type_args",
                    tvm_number(tvm_write_list(w, NULL, 0)), NULL);
}

static size_t write_tuple(Writer *w, const size_t *items, size_t n) {
    return tvm_expr(w, "relay.Tuple", "fields", tvm_number(tvm_write_list(w, items, n)), NULL);
}

static size_t *write_all(Writer *w, Expr *const *args, uint32_t n) {
    size_t *out = mem_new_n(size_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = write(w, args[i]);
    return out;
}

static size_t write_value(Writer *w, const Global *g, const ExportValue *v, Span span) {
    size_t *parts = mem_new_n(size_t, v->nparts + 1), ctor;
    if (v->tensor)
        return write_tensor(w, v->tensor);
    if (!v->is_tuple && !v->ctor)
        return tvm_refuse(w, span, fmt_text("the value of `%s`", g->name->text));
    ctor = v->ctor ? tvm_write_ctor(w, v->ctor, span) : 0;
    for (uint32_t i = 0; i < v->nparts; i++)
        parts[i] = write_value(w, g, &v->parts[i], span);
    return v->is_tuple ? write_tuple(w, parts, v->nparts)
                       : write_call(w, ctor, parts, v->nparts, 0);
}

static size_t write_global(Writer *w, Global *g, Span span) {
    size_t node = (size_t)(uintptr_t)map_find(&w->globals, g);
    if (node)
        return node;
    if (g->value && g->value->kind == EXPR_FN) {
        const char *name = tvm_unique_name(w, core_plain_name(g->name));
        node = tvm_expr(w, "GlobalVar", "name_hint", tvm_number(tvm_write_text(w, name)),
                        "struct_info_", "0", NULL);
        vec_push(&w->functions, g);
    } else if (g->kind == GLOBAL_LET) {
        ExportValue v = w->find(w->ctx, g);
        node = write_value(w, g, &v, span);
    } else
        return tvm_refuse(w, span, fmt_text("`%s`", g->name->text));
    map_set(&w->globals, g, (void *)(uintptr_t)node);
    return node;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static size_t write_simple(Writer *w, const char *op, const Expr *e, size_t *args, size_t n) {
    const Op *known = op_find(sym_intern(op));
    return write_call(w, tvm_write_op(w, known, e->span), args, n, 0);
}

/* A number takes the dtype of what it is computed with where that is open. */
static size_t write_literal(Writer *w, const Expr *e) {
    DType dtype;
    if (type_get_dtype(e->type, &dtype))
        return write_number(w, e, dtype);
    if (!e->like)
        return tvm_refuse(w, e->span, "a number whose dtype is open");
    size_t args[] = {write_number(w, e, e->is_float ? DT_F64 : DT_I64), write(w, e->like)};
    return write_simple(w, "cast_like", e, args, 2);
}

/* What lowering made of a form that graphs have not. */
static size_t write_lowered(Writer *w, Expr *made, const Expr *e, const char *what) {
    return made ? write(w, made) : tvm_refuse(w, e->span, what);
}

/* A call whose attributes have sizes that are computed is one of the operator `dyn.…`. */
static size_t write_sized(Writer *w, const Expr *e) {
    const char *form = infer_dyn_form(e->a->op->name);
    Expr *made = form ? tvm_lower_sizes(e, form) : NULL;
    if (!made)
        return tvm_refuse(w, e->span, "a size that is computed, as an attribute");
    size_t callee = tvm_write_dyn(w, e->a->op, e->span);
    size_t *args = write_all(w, made->args, made->nargs);
    return write_call(w, callee, args, made->nargs, tvm_write_attrs(w, made, args));
}

static const char *const not_an_index = "a mask, or an index by several vectors";

static size_t write_apply(Writer *w, Expr *e) {
    if (e->mode)
        return tvm_refuse(w, e->span, "a derivative");
    if (e->a->kind == EXPR_OP && e->a->op == &op_index && e->args[1]->kind == EXPR_TUPLE)
        return write_lowered(w,
                             tvm_lower_index(e->args[0], attrs_text(e->attrs, "spec"),
                                             e->args[1]->args, e->args[1]->nargs, e->span),
                             e, not_an_index);
    if (e->a->kind == EXPR_OP && e->nsizes)
        return write_sized(w, e);
    size_t callee = e->a->kind == EXPR_OP ? tvm_write_op(w, e->a->op, e->span) : write(w, e->a);
    size_t *args = write_all(w, e->args, e->nargs);
    size_t attrs = e->a->kind == EXPR_OP ? tvm_write_attrs(w, e, args) : 0;
    return write_call(w, callee, args, e->nargs, attrs);
}

static size_t write_op_value(Writer *w, const Expr *e) {
    if (e->op->nattrs)
        return tvm_refuse(w, e->span,
                          fmt_text("operator `%s` as a value, which has attributes", e->op->name));
    return tvm_write_op(w, e->op, e->span);
}

/* == of tensors; of other data it has no counterpart. */
static size_t write_equal(Writer *w, Expr *e) {
    if (type_resolve(e->a->type)->tag != TY_TENSOR)
        return tvm_refuse(w, e->span, "`==` of what are no tensors");
    size_t args[] = {write(w, e->a), write(w, e->b)};
    return write_simple(w, e->negate ? "not_equal" : "equal", e, args, 2);
}

static size_t write_stack(Writer *w, Expr *e) {
    size_t items = write_tuple(w, write_all(w, e->args, e->nargs), e->nargs);
    size_t attrs = tvm_node(w, "relay.attrs.StackAttrs", "axis", tvm_number(tvm_write_int(w, 0)),
                            NULL);
    return write_call(w, tvm_write_op(w, &op_stack, e->span), &items, 1, attrs);
}

static size_t write_not(Writer *w, Expr *e) {
    size_t arg = write(w, e->a);
    if (type_resolve(e->a->type)->tag == TY_REF)
        return tvm_expr(w, "relay.RefRead", "ref", tvm_number(arg), NULL);
    return write_simple(w, "logical_not", e, &arg, 1);
}

/* ---- functions, bindings, choices ------------------------------------------------------------ */

static size_t write_type_params(Writer *w, Type *const *params, uint32_t n) {
    size_t *items = mem_new_n(size_t, n + 1), len = 0;
    for (uint32_t i = 0; i < n; i++) {
        Type *p = type_resolve(params[i]);
        if (p->kind != KIND_TYPE || p->tag != TY_PARAM)
            continue;
        const char *name = p->param.name ? p->param.name->text : fmt_text("T%u", i);
        items[len] = tvm_node(w, "TypeVar", "kind", "0", "name_hint",
                              tvm_number(tvm_write_text(w, name)), "span", "0", NULL);
        map_set(&w->types, p, (void *)(uintptr_t)items[len++]);
    }
    return tvm_write_list(w, items, len);
}

static size_t write_fn(Writer *w, const Expr *e, const Scheme *scheme) {
    const Fn *fn = e->fn;
    size_t *params = mem_new_n(size_t, fn->nparams + 1), attrs = 0;
    size_t vars = scheme ? write_type_params(w, scheme->params, scheme->nparams)
                         : write_type_params(w, fn->type_params, fn->ntype_params);
    for (uint32_t i = 0; i < fn->nparams; i++)
        params[i] = write_var(w, fn->params[i], true);
    for (uint32_t i = 0; i < fn->nattrs; i++)
        if (strcmp(fn->attrs[i].name->text, "Primitive") == 0 &&
            fn->attrs[i].value->kind == AST_ATTR_INT) {
            const char *key = "Primitive";
            size_t value = tvm_write_int(w, fn->attrs[i].value->i);
            attrs = tvm_node(w, "DictAttrs", "__dict__",
                             tvm_number(tvm_write_map(w, &key, &value, 1)), NULL);
        }
    size_t result = tvm_write_type(w, type_resolve(e->type)->fn.result), body = write(w, fn->body);
    return tvm_expr(w, "relay.Function", "attrs", tvm_number(attrs), "body", tvm_number(body),
                    "params", tvm_number(tvm_write_list(w, params, fn->nparams)), "ret_type",
                    tvm_number(result), "type_params", tvm_number(vars), NULL);
}

/* Graphs have no errors of their own. */
static bool is_assertion(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_GLOBAL && e->a->global->internal &&
           e->a->global->name == sym_intern("assert");
}

/* A chain of bindings is written in a loop, its value first. */
static size_t write_let(Writer *w, Expr *e) {
    VEC(size_t) bound = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        if (!e->var && is_assertion(e->a))
            continue;
        Var *v = e->var ? e->var : var_new(sym_intern("_"), e->a->type, e->span);
        size_t var = write_var(w, v, e->rec);
        vec_push(&bound, var);
        vec_push(&bound, e->a->kind == EXPR_FN ? write_fn(w, e->a, e->var ? e->var->scheme : NULL)
                                               : write(w, e->a));
    }
    size_t body = write(w, e);
    for (; bound.len; bound.len -= 2)
        body = tvm_expr(w, "relay.Let", "body", tvm_number(body), "value",
                        tvm_number(bound.data[bound.len - 1]), "var",
                        tvm_number(bound.data[bound.len - 2]), NULL);
    return body;
}

static size_t write_pattern(Writer *w, const Pattern *p) {
    if (p->kind == PAT_WILDCARD)
        return tvm_shared_node(w, "relay.PatternWildcard", "span", "0", NULL);
    if (p->kind == PAT_VAR)
        return tvm_node(w, "relay.PatternVar", "span", "0", "var",
                        tvm_number(write_var(w, p->var, false)), NULL);
    if (p->kind == PAT_LIT || p->kind == PAT_STRING)
        return tvm_refuse(w, p->span, "a pattern that is a number or a text");
    size_t *items = mem_new_n(size_t, p->nargs + 1);
    for (uint32_t i = 0; i < p->nargs; i++)
        items[i] = write_pattern(w, p->args[i]);
    const char *list = tvm_number(tvm_write_list(w, items, p->nargs));
    if (p->kind == PAT_TUPLE)
        return tvm_node(w, "relay.PatternTuple", "patterns", list, "span", "0", NULL);
    return tvm_node(w, "relay.PatternConstructor", "constructor",
                    tvm_number(tvm_write_ctor(w, p->ctor, p->span)), "patterns", list, "span", "0",
                    NULL);
}

static size_t write_choice(Writer *w, size_t data, const size_t *clauses, size_t n, bool partial) {
    return tvm_expr(w, "relay.Match", "clauses", tvm_number(tvm_write_list(w, clauses, n)),
                    "complete", partial ? "0" : "1", "data", tvm_number(data), NULL);
}

static size_t write_clause(Writer *w, size_t pattern, size_t body) {
    return tvm_node(w, "relay.Clause", "lhs", tvm_number(pattern), "rhs", tvm_number(body), "span",
                    "0", NULL);
}

static size_t write_match(Writer *w, Expr *e) {
    size_t data = write(w, e->a), *clauses = mem_new_n(size_t, e->narms + 1);
    for (uint32_t i = 0; i < e->narms; i++) {
        if (e->arms[i].guard)
            tvm_refuse(w, e->arms[i].guard->span, "a pattern with a condition");
        size_t pattern = write_pattern(w, e->arms[i].pattern);
        clauses[i] = write_clause(w, pattern, write(w, e->arms[i].body));
    }
    return write_choice(w, data, clauses, e->narms, e->partial);
}

/* A field of a record is what a pattern of its only constructor binds. */
static size_t write_field(Writer *w, Expr *e) {
    Type *t = type_resolve(e->a->type);
    if (t->tag != TY_DATA || t->decl->nctors != 1 || e->index < 0)
        return tvm_refuse(w, e->span, fmt_text("field `%s` of what is not known", e->field->text));
    const Ctor *ctor = t->decl->ctors[0];
    Var *v = var_new(e->field, e->type, e->span);
    size_t data = write(w, e->a), *items = mem_new_n(size_t, ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        items[i] = (int32_t)i == e->index
                       ? tvm_node(w, "relay.PatternVar", "span", "0", "var",
                                  tvm_number(write_var(w, v, false)), NULL)
                       : tvm_shared_node(w, "relay.PatternWildcard", "span", "0", NULL);
    size_t pattern = tvm_node(
        w, "relay.PatternConstructor", "constructor", tvm_number(tvm_write_ctor(w, ctor, e->span)),
        "patterns", tvm_number(tvm_write_list(w, items, ctor->nfields)), "span", "0", NULL);
    size_t clause = write_clause(w, pattern, write_var(w, v, false));
    return write_choice(w, data, &clause, 1, false);
}

static size_t write_if(Writer *w, Expr *e) {
    size_t cond = write(w, e->a), yes = write(w, e->b), no = write(w, e->c);
    return tvm_expr(w, "relay.If", "cond", tvm_number(cond), "false_branch", tvm_number(no),
                    "true_branch", tvm_number(yes), NULL);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static size_t write_ref(Writer *w, Expr *e) {
    size_t a = write(w, e->a);
    if (e->kind == EXPR_REF)
        return tvm_expr(w, "relay.RefCreate", "value", tvm_number(a), NULL);
    if (e->kind == EXPR_READ)
        return tvm_expr(w, "relay.RefRead", "ref", tvm_number(a), NULL);
    return tvm_expr(w, "relay.RefWrite", "ref", tvm_number(a), "value", tvm_number(write(w, e->b)),
                    NULL);
}

static size_t write_other(Writer *w, const Expr *e) {
    static const char *const words[] = {
        [EXPR_STRING] = "a text",
        [EXPR_BUILTIN] = "a function of the library that is no Relay",
        [EXPR_ZERO] = "a zero of any type",
        [EXPR_GRAD] = "a derivative",
        [EXPR_ERROR] = "an expression without a type",
    };
    return tvm_refuse(w, e->span, words[e->kind]);
}

static size_t write(Writer *w, Expr *e) {
    if (w->nnodes > MOST_NODES)
        return tvm_refuse(w, e->span, fmt_text("a program of more than %d nodes", MOST_NODES));
    if (is_rows(e->type))
        return refuse_rows(w, e->type, e->span);
    switch (e->kind) {
    case EXPR_LIT: return write_literal(w, e);
    case EXPR_CONST: return write_tensor(w, e->tensor);
    case EXPR_VAR: return write_var(w, e->var, false);
    case EXPR_GLOBAL: return write_global(w, e->global, e->span);
    case EXPR_OP: return write_op_value(w, e);
    case EXPR_CTOR: {
        size_t ctor = tvm_write_ctor(w, e->ctor, e->span);
        return e->ctor->nfields ? ctor : write_call(w, ctor, NULL, 0, 0);
    }
    case EXPR_CALL: return write_apply(w, e);
    case EXPR_FN: return write_fn(w, e, NULL);
    case EXPR_LET: return write_let(w, e);
    case EXPR_IF: return write_if(w, e);
    case EXPR_MATCH: return write_match(w, e);
    case EXPR_TUPLE: return write_tuple(w, write_all(w, e->args, e->nargs), e->nargs);
    case EXPR_PROJ: {
        size_t tuple = write(w, e->a);
        return tvm_expr(w, "relay.TupleGetItem", "index", fmt_text("%d", e->index), "tuple_value",
                        tvm_number(tuple), NULL);
    }
    case EXPR_FIELD: return write_field(w, e);
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE: return write_ref(w, e);
    case EXPR_BANG: return write_not(w, e);
    case EXPR_EQUAL: return write_equal(w, e);
    case EXPR_TENSOR: return write_stack(w, e);
    case EXPR_CHECK: return write(w, e->a); /* TVM checks sizes itself */
    case EXPR_INDEX:
        return write_lowered(
            w, tvm_lower_index(e->a, attrs_text(e->attrs, "spec"), e->args, e->nargs, e->span), e,
            not_an_index);
    case EXPR_DIM_OF: return write(w, tvm_lower_size(e));
    case EXPR_UPDATE:
        return write_lowered(w, tvm_lower_update(e), e, "`with` of a record that is not known");
    case EXPR_STRING:
    case EXPR_BUILTIN:
    case EXPR_ZERO:
    case EXPR_GRAD:
    case EXPR_ERROR: break;
    }
    return write_other(w, e);
}

/* ---- modules --------------------------------------------------------------------------------- */

static size_t write_module(Writer *w) {
    VEC(size_t) all = {0};
    for (size_t i = 0; i < w->functions.len; i++) {
        Global *g = w->functions.data[i];
        size_t fn = write_fn(w, g->value, g->scheme);
        vec_push(&all, (size_t)(uintptr_t)map_find(&w->globals, g));
        vec_push(&all, fn);
    }
    const char *types = tvm_number(tvm_write_map(w, NULL, w->headers.data, w->headers.len));
    const char *none = tvm_number(tvm_write_map(w, NULL, NULL, 0));
    return tvm_node(w, "IRModule", "attrs", "0", "functions",
                    tvm_number(tvm_write_map(w, NULL, all.data, all.len)), "global_infos", none,
                    "global_type_var_map_", none, "global_var_map_", none, "source_map", "0",
                    "type_definitions", types, NULL);
}

bool tvm_write(Global *const *roots, size_t n, ExportFind find, void *ctx, Diags *diags, Str *out) {
    Writer w = {.find = find, .ctx = ctx, .diags = diags};
    (void)tvm_write_text(&w, "main"); /* so that no number and no bool is taken for node 1 */
    for (size_t i = 0; i < n; i++)
        (void)write_global(&w, roots[i], roots[i]->span);
    size_t root = write_module(&w);
    if (w.refused)
        return false;
    str_printf(out, "{\n  \"root\": %zu,\n  \"nodes\": [\n    {\"type_key\": \"\"}", root);
    str_add_n(out, str_text(&w.nodes), w.nodes.len);
    str_add(out, "\n  ],\n  \"b64ndarrays\": [");
    str_add_n(out, str_text(&w.arrays), w.arrays.len);
    str_add(out, "\n  ],\n  \"attrs\": {\"tvm_version\": \"0.18.0\"}\n}\n");
    return true;
}
