/* SPDX-License-Identifier: Apache-2.0 */
/* Relay text of core expressions (`:ir`): parsable where the language can say it, with the fewest
 * parentheses (the table of LANGUAGE §3), names made unique where one would hide another. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "types/core/core.h"
#include "types/core/env_impl.h"
#include "types/op.h"

typedef struct Printer {
    Str *out;
    CorePrintOptions options;
    Map names;    /* Var -> const Symbol* */
    Map taken;    /* const Symbol* -> Var in scope, or what is mentioned free */
    Map used;     /* Var mentioned somewhere */
    Map literals; /* Var -> the literal that stands for it */
    TypeNamer namer;
    int indent;
} Printer;

static void print(Printer *p, Expr *e, Prec prec);
static void print_block(Printer *p, Expr *e);

/* ---- names ----------------------------------------------------------------------------------- */

typedef struct Scan {
    Printer *p;
    Map seen;
} Scan;

const char *core_plain_name(const Symbol *hidden) {
    Str out = {0};
    for (const char *text = hidden->text; *text; text++) {
        if (isalnum((unsigned char)*text) || *text == '_')
            str_add_char(&out, *text);
        else if (*text == ' ')
            str_add_char(&out, '_');
    }
    return out.len && !isdigit((unsigned char)out.text[0]) ? str_text(&out) : "whole";
}

/* A definition of a module of the library is named by both, whatever was imported. */
static bool is_of_library(const Global *g) {
    return g->internal && g->home && g->home->name && !symbol_is_hidden(g->name);
}

static const char *global_name(const Printer *p, const Global *g) {
    const char *name = p->options.names ? map_find(p->options.names, g) : NULL;
    if (name)
        return name;
    if (is_of_library(g))
        return fmt_text("%s.%s", g->home->name->text, g->name->text);
    return symbol_is_hidden(g->name) ? core_plain_name(g->name) : g->name->text;
}

static void scan(void *ctx, Expr *e) {
    Scan *c = ctx;
    while (!map_has(&c->seen, e)) {
        map_set(&c->seen, e, e);
        if (e->kind == EXPR_VAR)
            map_set(&c->p->used, e->var, e->var);
        if (e->kind == EXPR_GLOBAL)
            map_set(&c->p->taken, sym_intern(global_name(c->p, e->global)), e->global);
        if (e->kind == EXPR_OP)
            map_set(&c->p->taken, sym_intern(e->op->name), (void *)e->op);
        if (e->kind != EXPR_LET) {
            expr_each_child(e, scan, c);
            return;
        }
        scan(c, e->a); /* the spine is walked in a loop */
        e = e->body;
    }
}

static const Symbol *choose_name(Printer *p, Var *v) {
    const char *text = v->name->text;
    const char *base = strcmp(text, "_") == 0 ? "t" : text;
    if (symbol_is_hidden(v->name))
        base = core_plain_name(v->name);
    if (text[0] == '%') /* of a graph, by its number: no `let` binds such a name */
        base = fmt_text("t%s", text + 1);
    const Symbol *name = sym_intern(base);
    for (int i = 1; map_has(&p->taken, name); i++)
        name = sym_intern(fmt_text("%s_%d", base, i));
    return name;
}

static void bind(Printer *p, Var *v) {
    if (!map_has(&p->used, v) && strcmp(v->name->text, "_") == 0)
        return;
    const Symbol *name = choose_name(p, v);
    map_set(&p->names, v, (void *)name);
    map_set(&p->taken, name, v);
}

static void unbind(Printer *p, Var *v) {
    const Symbol *name = map_find(&p->names, v);
    if (name && map_find(&p->taken, name) == v)
        map_remove(&p->taken, name);
}

static bool is_plain(const char *text) {
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    return *text && !isdigit((unsigned char)*text);
}

static void print_var(Printer *p, Var *v) {
    const Symbol *name = map_find(&p->names, v);
    const char *text = name ? name->text : v->name->text;
    if (p->options.tvm || (!is_plain(text) && strcmp(text, "_") != 0))
        str_add_char(p->out, '%');
    str_add(p->out, text);
}

static void print_type(Printer *p, Type *t) { type_print(p->out, t, &p->namer); }

static void print_binding(Printer *p, Var *v) {
    print_var(p, v);
    if (p->options.types && v->type) {
        str_add(p->out, ": ");
        print_type(p, v->type);
    }
}

static void print_global(Printer *p, const Global *g) {
    if (!is_of_library(g) && (g->sigil || p->options.tvm || op_find(g->name)))
        str_add_char(p->out, '@');
    str_add(p->out, global_name(p, g));
}

static void new_line(Printer *p) {
    str_add_char(p->out, '\n');
    for (int i = 0; i < p->indent; i++)
        str_add(p->out, "  ");
}

/* ---- literals -------------------------------------------------------------------------------- */

static const char *suffix_of(DType t) {
    static const char *const suffixes[DTYPE_COUNT] = {
        [DT_I8] = "i8",   [DT_I16] = "i16", [DT_I64] = "i64", [DT_U8] = "u8",     [DT_U16] = "u16",
        [DT_U32] = "u32", [DT_U64] = "u64", [DT_F16] = "f16", [DT_BF16] = "bf16", [DT_F64] = "f64",
    };
    return suffixes[t] ? suffixes[t] : "";
}

static int float_bits(DType t) {
    return t == DT_F64 ? 64 : t == DT_F16 ? 16 : t == DT_BF16 ? 17 : 32;
}

static void print_float(Printer *p, double f, DType dtype) {
    str_add_float(p->out, f, float_bits(dtype));
    str_add(p->out, suffix_of(dtype));
}

static void print_int(Printer *p, int64_t i, DType dtype) {
    if (dtype == DT_BOOL)
        str_add(p->out, i ? "True" : "False");
    else if (dtype == DT_U64)
        str_printf(p->out, "%llu%s", (unsigned long long)i, suffix_of(dtype));
    else
        str_printf(p->out, "%lld%s", (long long)i, suffix_of(dtype));
}

static bool is_negative(const Expr *e) {
    return e->kind == EXPR_LIT && (e->is_float ? signbit(e->f) && !isnan(e->f) : e->i < 0);
}

/* The dtype that a literal has, or takes from another value. */
static bool find_dtype(const Expr *e, DType *dtype) {
    Type *type = e->kind == EXPR_VAR ? e->var->type : e->type;
    return (type && type_get_dtype(type, dtype)) ||
           (e->kind == EXPR_LIT && e->like && find_dtype(e->like, dtype));
}

static void print_lit(Printer *p, const Expr *e) {
    DType dtype;
    bool known = find_dtype(e, &dtype);
    if (!known)
        dtype = e->is_float ? DT_F32 : DT_I32;
    if (e->is_float && !known) /* it may become a float64 */
        str_add_float(p->out, e->f, 64);
    else if (e->is_float)
        print_float(p, e->f, dtype);
    else if (dtype_is_float(dtype))
        print_float(p, (double)e->i, dtype);
    else
        print_int(p, e->i, dtype);
}

static void print_element(Printer *p, const Tensor *t, int64_t i) {
    const void *at = tensor_at(t, i);
    if (dtype_is_float(t->dtype))
        print_float(p, elem_get_float(at, t->dtype), t->dtype);
    else
        print_int(p, elem_get_int(at, t->dtype), t->dtype);
}

static void print_elements(Printer *p, const Tensor *t, int axis, int64_t *next) {
    if (axis == t->rank) {
        print_element(p, t, (*next)++);
        return;
    }
    str_add_char(p->out, '[');
    for (int64_t i = 0; i < t->shape[axis]; i++) {
        if (i)
            str_add(p->out, ", ");
        print_elements(p, t, axis + 1, next);
    }
    str_add_char(p->out, ']');
}

enum { MAX_SHOWN = 64 }; /* elements of a constant; a larger one shows its type */

static void print_const(Printer *p, const Expr *e) {
    const Tensor *t = e->tensor;
    int64_t next = 0;
    if ((t->count <= MAX_SHOWN || p->options.whole) &&
        (t->count > 0 || (t->rank == 1 && t->dtype == DT_F32))) {
        print_elements(p, t, 0, &next);
        return;
    }
    str_add(p->out, t->count ? "constant<" : "Zero ");
    Type **dims = mem_new_n(Type *, t->rank + 1);
    for (int i = 0; i < t->rank; i++)
        dims[i] = type_dim_int(t->shape[i], NULL);
    print_type(p, type_tensor(type_shape(dims, (uint32_t)t->rank), type_dtype(t->dtype)));
    if (t->count)
        str_add_char(p->out, '>');
}

/* ---- operators ------------------------------------------------------------------------------- */

static void open_paren(Printer *p, bool wanted) {
    if (wanted)
        str_add_char(p->out, '(');
}

static void close_paren(Printer *p, bool wanted) {
    if (wanted)
        str_add_char(p->out, ')');
}

static void print_infix(Printer *p, Expr *a, BinOp op, Expr *b, Prec prec) {
    bool parens = infix_table[op].prec < prec;
    open_paren(p, parens);
    print(p, a, infix_left(op));
    str_printf(p->out, " %s ", infix_table[op].sign);
    print(p, b, infix_right(op));
    close_paren(p, parens);
}

/* A size of a call as it is written: without the conversion to int64 that it got when it was read. */
static const Symbol *size_text(Printer *p, Expr *size) {
    DType dtype;
    bool converts = size->kind == EXPR_CALL && size->a->kind == EXPR_OP &&
                    size->a->op == &op_cast && size->attrs &&
                    attrs_dtype(size->attrs, "dtype", &dtype) && dtype == DT_I64;
    Str text = {0}, *out = p->out;
    p->out = &text;
    print(p, converts ? size->args[0] : size, PREC_ASSIGN);
    p->out = out;
    return sym_intern(text.text);
}

/* v with the expressions of the call's sizes from *next on, which are evaluated in this order. */
static AttrValue with_sizes(Printer *p, const Expr *call, AttrValue v, uint32_t *next) {
    if (v.kind == ATTR_DIM && *next < call->nsizes) {
        v.kind = ATTR_REF;
        v.ref = size_text(p, call->sizes[(*next)++]);
    } else if (v.kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v.list.n + 1);
        for (uint32_t i = 0; i < v.list.n; i++)
            items[i] = with_sizes(p, call, v.list.items[i], next);
        v.list.items = items;
    }
    return v;
}

static void print_attrs(Printer *p, Str *out, const Expr *e) {
    if (!e->nsizes || p->options.tvm) {
        attrs_print(out, e->attrs);
        return;
    }
    AttrValue *values = mem_new_n(AttrValue, e->attrs->op->nattrs + 1);
    uint32_t next = 0;
    for (int i = 0; i < e->attrs->op->nattrs; i++)
        values[i] = with_sizes(p, e, e->attrs->values[i], &next);
    attrs_print(out, &(Attrs){e->attrs->op, values});
}

static void print_args(Printer *p, Expr *e) {
    str_add_char(p->out, '(');
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (i)
            str_add(p->out, ", ");
        print(p, e->args[i], PREC_ASSIGN);
    }
    if (e->attrs) {
        Str attrs = {0};
        print_attrs(p, &attrs, e);
        if (attrs.len)
            str_printf(p->out, "%s%s", e->nargs ? ", " : "", attrs.text);
    }
    str_add_char(p->out, ')');
}

static bool has_default_attrs(const Expr *e) {
    Str attrs = {0};
    if (e->attrs)
        attrs_print(&attrs, e->attrs);
    return attrs.len == 0;
}

/* Prints an operator call in its infix, prefix or cast form; false where it has none. */
static bool print_op_call(Printer *p, Expr *e, Prec prec) {
    const Op *op = e->a->op;
    BinOp infix = op_find_infix(op);
    DType dtype;
    if (p->options.tvm)
        return false;
    if (e->nargs == 2 && infix != BINOP_COUNT && has_default_attrs(e)) {
        print_infix(p, e->args[0], infix, e->args[1], prec);
        return true;
    }
    const char *prefix = NULL;
    if (e->nargs == 1 && op == &op_negative && !is_negative(e->args[0]))
        prefix = "-";
    else if (e->nargs == 1 && op == &op_cast && e->attrs && attrs_dtype(e->attrs, "dtype", &dtype))
        prefix = fmt_text("(%s) ", dtype_info[dtype].name);
    if (prefix) {
        open_paren(p, prec > PREC_UNARY);
        str_add(p->out, prefix);
        print(p, e->args[0], PREC_UNARY);
        close_paren(p, prec > PREC_UNARY);
        return true;
    }
    if (e->nargs == 1 && op == &op_logical_not && type_is_scalar(e->args[0]->type, DT_BOOL)) {
        open_paren(p, prec > PREC_BANG);
        str_add_char(p->out, '!');
        print(p, e->args[0], PREC_BANG);
        close_paren(p, prec > PREC_BANG);
        return true;
    }
    return false;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool is_ctor(const Expr *e, const char *name) {
    return e->kind == EXPR_CTOR && strcmp(e->ctor->name->text, name) == 0 &&
           strcmp(e->ctor->decl->name->text, "List") == 0;
}

static bool is_cons(const Expr *e) {
    return e->kind == EXPR_CALL && is_ctor(e->a, "Cons") && e->nargs == 2;
}

/* a :: b :: rest, or list[a, b]: a loop over the spine. */
static void print_cons(Printer *p, Expr *e, Prec prec) {
    Expr *end = e;
    while (is_cons(end))
        end = end->args[1];
    bool list = is_ctor(end, "Nil");
    bool parens = !list && prec > PREC_CONS;
    open_paren(p, parens);
    str_add(p->out, list ? "list[" : "");
    for (; is_cons(e); e = e->args[1]) {
        print(p, e->args[0], list ? PREC_ASSIGN : PREC_ADD);
        str_add(p->out, !list ? " :: " : is_cons(e->args[1]) ? ", " : "");
    }
    if (list)
        str_add_char(p->out, ']');
    else
        print(p, end, PREC_CONS);
    close_paren(p, parens);
}

/* a ++ b ++ c */
static void print_append(Printer *p, Expr *e, Prec prec) {
    bool parens = infix_table[BINOP_APPEND].prec < prec;
    open_paren(p, parens);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (i)
            str_printf(p->out, " %s ", infix_table[BINOP_APPEND].sign);
        print(p, e->args[i], i ? infix_right(BINOP_APPEND) : infix_left(BINOP_APPEND));
    }
    close_paren(p, parens);
}

static void print_call(Printer *p, Expr *e, Prec prec) {
    if (e->a->kind == EXPR_OP && print_op_call(p, e, prec))
        return;
    if (is_cons(e) && !p->options.tvm) {
        print_cons(p, e, prec);
        return;
    }
    if (e->a->kind == EXPR_BUILTIN && strcmp(e->a->symbol->text, "str.append") == 0) {
        print_append(p, e, prec);
        return;
    }
    if (e->mode) { /* calls of transformed functions have no syntax of their own */
        str_add(p->out, e->mode == 1 + AD_REVERSE ? "ad.reverse(" : "ad.forward(");
        print(p, e->a, PREC_ASSIGN);
        str_add_char(p->out, ')');
    } else {
        print(p, e->a, PREC_CALL);
    }
    print_args(p, e);
}

/* ---- bindings -------------------------------------------------------------------------------- */

/* Whether a program can declare the type: no part of it is for inference to find. */
static bool is_sayable(Type *t) {
    return !type_has_vars(t) && !type_has(t, TY_PARAM) && !type_has(t, TY_ERROR);
}

static void print_fn(Printer *p, Expr *e) {
    const Fn *fn = e->fn;
    str_add(p->out, "fn ");
    for (uint32_t i = 0; i < fn->ntype_params; i++) {
        str_add(p->out, i ? ", " : "[");
        print_type(p, fn->type_params[i]);
    }
    str_add(p->out, fn->ntype_params ? "](" : "(");
    for (uint32_t i = 0; i < fn->nparams; i++)
        bind(p, fn->params[i]);
    for (uint32_t i = 0; i < fn->nparams; i++) {
        if (i)
            str_add(p->out, ", ");
        print_binding(p, fn->params[i]);
        if (p->options.param_types && !p->options.types && is_sayable(fn->params[i]->type)) {
            str_add(p->out, ": ");
            print_type(p, fn->params[i]->type);
        }
    }
    for (uint32_t i = 0; i < fn->nattrs; i++)
        if (fn->attrs[i].value->kind == AST_ATTR_INT)
            str_printf(p->out, "%s%s=%lld", i || fn->nparams ? ", " : "", fn->attrs[i].name->text,
                       (long long)fn->attrs[i].value->i);
    str_add(p->out, ") ");
    if (p->options.types && fn->body->type) {
        str_add(p->out, "-> ");
        print_type(p, fn->body->type);
        str_add_char(p->out, ' ');
    }
    print_block(p, fn->body);
    for (uint32_t i = 0; i < fn->nparams; i++)
        unbind(p, fn->params[i]);
}

/* Prints the bindings of a spine, each on its line, then its value. */
static void print_spine(Printer *p, Expr *e) {
    VarVec opened = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        Var *v = e->var;
        if (v && e->a->kind == EXPR_LIT && e->a->like) {
            /* A binding would give it a dtype of its own; where it is used it takes that of its place. */
            map_set(&p->literals, v, e->a);
            continue;
        }
        bool named = v && (map_has(&p->used, v) || strcmp(v->name->text, "_") != 0);
        if (named && e->rec)
            bind(p, v);
        if (named) {
            /* The name is chosen before the value is printed, but it hides nothing in it. */
            if (!e->rec)
                map_set(&p->names, v, (void *)choose_name(p, v));
            str_add(p->out, "let ");
            print_binding(p, v);
            str_add(p->out, " = ");
        }
        print(p, e->a, PREC_ASSIGN);
        str_add_char(p->out, ';');
        new_line(p);
        if (named) {
            if (!e->rec)
                map_set(&p->taken, map_find(&p->names, v), v);
            vec_push(&opened, v);
        }
    }
    print(p, e, PREC_ASSIGN);
    for (size_t i = opened.len; i > 0; i--)
        unbind(p, opened.data[i - 1]);
}

static void print_block(Printer *p, Expr *e) {
    if (e->kind != EXPR_LET) {
        str_add(p->out, "{ ");
        print(p, e, PREC_SEQ);
        str_add(p->out, " }");
        return;
    }
    str_add_char(p->out, '{');
    p->indent++;
    new_line(p);
    print_spine(p, e);
    p->indent--;
    new_line(p);
    str_add_char(p->out, '}');
}

/* ---- choices --------------------------------------------------------------------------------- */

static bool is_bool(const Expr *e, bool value) {
    return e->kind == EXPR_LIT && !e->is_float && e->i == value && e->type &&
           type_is_scalar(e->type, DT_BOOL);
}

static void print_if(Printer *p, Expr *e, Prec prec) {
    if (is_bool(e->c, false)) {
        print_infix(p, e->a, BINOP_AND, e->b, prec);
        return;
    }
    if (is_bool(e->b, true)) {
        print_infix(p, e->a, BINOP_OR, e->c, prec);
        return;
    }
    open_paren(p, prec > PREC_ASSIGN);
    str_add(p->out, "if (");
    print(p, e->a, PREC_SEQ);
    str_add(p->out, ") ");
    print_block(p, e->b);
    str_add(p->out, " else ");
    print_block(p, e->c);
    close_paren(p, prec > PREC_ASSIGN);
}

static void bind_pattern(Printer *p, const Pattern *q) {
    if (q->kind == PAT_VAR)
        bind(p, q->var);
    for (uint32_t i = 0; i < q->nargs; i++)
        bind_pattern(p, q->args[i]);
}

static void unbind_pattern(Printer *p, const Pattern *q) {
    if (q->kind == PAT_VAR)
        unbind(p, q->var);
    for (uint32_t i = 0; i < q->nargs; i++)
        unbind_pattern(p, q->args[i]);
}

static void print_pattern(Printer *p, const Pattern *q) {
    switch (q->kind) {
    case PAT_WILDCARD: str_add_char(p->out, '_'); return;
    case PAT_VAR: print_var(p, q->var); return;
    case PAT_LIT: print_lit(p, q->lit); return;
    case PAT_STRING: str_add_quoted(p->out, q->text, q->text_len); return;
    case PAT_CTOR:
        str_add(p->out, q->ctor->name->text);
        if (q->nargs == 0)
            return;
        break;
    case PAT_TUPLE: break;
    }
    str_add_char(p->out, '(');
    for (uint32_t i = 0; i < q->nargs; i++) {
        if (i)
            str_add(p->out, ", ");
        print_pattern(p, q->args[i]);
    }
    str_add(p->out, q->kind == PAT_TUPLE && q->nargs == 1 ? ",)" : ")");
}

static void print_match(Printer *p, Expr *e) {
    str_add(p->out, e->partial ? "match? (" : "match (");
    print(p, e->a, PREC_SEQ);
    str_add(p->out, ") {");
    p->indent++;
    for (uint32_t i = 0; i < e->narms; i++) {
        const Arm *arm = &e->arms[i];
        new_line(p);
        bind_pattern(p, arm->pattern);
        print_pattern(p, arm->pattern);
        if (arm->guard) {
            str_add(p->out, " when ");
            print(p, arm->guard, PREC_PIPE);
        }
        str_add(p->out, " => ");
        if (arm->body->kind == EXPR_LET)
            print_block(p, arm->body);
        else
            print(p, arm->body, PREC_ASSIGN);
        unbind_pattern(p, arm->pattern);
        str_add(p->out, i + 1 < e->narms ? "," : "");
    }
    p->indent--;
    new_line(p);
    str_add_char(p->out, '}');
}

/* ---- indices --------------------------------------------------------------------------------- */

/* The spec's letters, with the integers in their places (core.h). */
static void print_index(Printer *p, Expr *e) {
    const char *spec = e->attrs ? attrs_text(e->attrs, "spec") : "";
    uint32_t next = 0;
    print(p, e->a, PREC_CALL);
    str_add_char(p->out, '[');
    for (const char *c = spec; *c; c++) {
        if (c != spec)
            str_add(p->out, ", ");
        if (*c == '.') {
            str_add(p->out, "...");
        } else if (*c == 'n') {
            str_add(p->out, "None");
        } else if (*c == ':') {
            int given = c[1] >= '0' && c[1] <= '7' ? *++c - '0' : 0;
            if (given & 1 && next < e->nargs)
                print(p, e->args[next++], PREC_ADD);
            str_add_char(p->out, ':');
            if (given & 2 && next < e->nargs)
                print(p, e->args[next++], PREC_ADD);
            if (given & 4 && next < e->nargs) {
                str_add_char(p->out, ':');
                print(p, e->args[next++], PREC_ADD);
            }
        } else if (next < e->nargs) {
            print(p, e->args[next++], PREC_ASSIGN);
        }
    }
    str_add_char(p->out, ']');
}

/* ---- all ------------------------------------------------------------------------------------- */

static void print_items(Printer *p, Expr *e, const char *open, const char *close) {
    str_add(p->out, open);
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (i)
            str_add(p->out, ", ");
        print(p, e->args[i], PREC_ASSIGN);
    }
    str_add(p->out, close);
}

static void print_wrapped(Printer *p, const char *before, Expr *e, const char *after) {
    str_add(p->out, before);
    print(p, e, PREC_SEQ);
    str_add(p->out, after);
}

static void print_bang(Printer *p, Expr *e, Prec prec) {
    open_paren(p, prec > PREC_BANG);
    str_add_char(p->out, '!');
    print(p, e->a, PREC_BANG);
    close_paren(p, prec > PREC_BANG);
}

static void print_update(Printer *p, Expr *e) {
    str_add(p->out, "{ ");
    print(p, e->a, PREC_CALL);
    str_add(p->out, " with ");
    for (uint32_t i = 0; i < e->nargs; i++) {
        str_printf(p->out, "%s%s = ", i ? ", " : "", e->field_names[i]->text);
        print(p, e->args[i], PREC_ASSIGN);
    }
    str_add(p->out, " }");
}

static void print(Printer *p, Expr *e, Prec prec) {
    switch (e->kind) {
    case EXPR_LIT: {
        bool parens = is_negative(e) && prec > PREC_UNARY;
        open_paren(p, parens);
        print_lit(p, e);
        close_paren(p, parens);
        return;
    }
    case EXPR_CONST: print_const(p, e); return;
    case EXPR_STRING: str_add_quoted(p->out, e->text, e->text_len); return;
    case EXPR_VAR: {
        Expr *literal = map_find(&p->literals, e->var);
        if (literal)
            print(p, literal, prec);
        else
            print_var(p, e->var);
        return;
    }
    case EXPR_GLOBAL: print_global(p, e->global); return;
    case EXPR_OP: str_add(p->out, e->op->name); return;
    case EXPR_CTOR: str_add(p->out, e->ctor->name->text); return;
    case EXPR_BUILTIN: str_add(p->out, e->symbol->text); return;
    case EXPR_CALL: print_call(p, e, prec); return;
    case EXPR_FN:
        open_paren(p, prec > PREC_UNARY);
        print_fn(p, e);
        close_paren(p, prec > PREC_UNARY);
        return;
    case EXPR_LET: print_block(p, e); return;
    case EXPR_IF: print_if(p, e, prec); return;
    case EXPR_MATCH:
        open_paren(p, prec > PREC_ASSIGN);
        print_match(p, e);
        close_paren(p, prec > PREC_ASSIGN);
        return;
    case EXPR_TUPLE: print_items(p, e, "(", e->nargs == 1 ? ",)" : ")"); return;
    case EXPR_PROJ:
        open_paren(p, e->a->kind == EXPR_LIT);
        print(p, e->a, PREC_CALL);
        close_paren(p, e->a->kind == EXPR_LIT);
        str_printf(p->out, ".%d", e->index);
        return;
    case EXPR_FIELD:
        print(p, e->a, PREC_CALL);
        str_printf(p->out, ".%s", e->field->text);
        return;
    case EXPR_UPDATE: print_update(p, e); return;
    case EXPR_REF: print_wrapped(p, "ref(", e->a, ")"); return;
    case EXPR_READ:
    case EXPR_BANG: print_bang(p, e, prec); return;
    case EXPR_WRITE: print_infix(p, e->a, BINOP_ASSIGN, e->b, prec); return;
    case EXPR_EQUAL: print_infix(p, e->a, e->negate ? BINOP_NE : BINOP_EQ, e->b, prec); return;
    case EXPR_TENSOR: print_items(p, e, "[", "]"); return;
    case EXPR_INDEX: print_index(p, e); return;
    case EXPR_DIM_OF:
        print_wrapped(p, "shape_of(", e->a, ")");
        str_printf(p->out, "[%d]", e->index);
        return;
    case EXPR_ZERO:
        if (type_is_unit(e->zero_type)) {
            str_add(p->out, "()");
            return;
        }
        open_paren(p, prec > PREC_UNARY);
        str_add(p->out, "Zero ");
        print_type(p, e->zero_type);
        close_paren(p, prec > PREC_UNARY);
        return;
    case EXPR_CHECK: print(p, e->a, prec); return;
    case EXPR_GRAD:
        print_wrapped(p,
                      fmt_text("%s%s(",
                               e->mode == GRAD_CUSTOM ? "_" : "", /* as the prelude has it */
                               grad_kind_name((GradKind)e->mode)),
                      e->a, ")");
        return;
    case EXPR_ERROR: str_add_char(p->out, '_'); return;
    }
}

void expr_print(Str *out, Expr *e, const CorePrintOptions *options) {
    Printer p = {.out = out};
    if (options)
        p.options = *options;
    Scan c = {.p = &p};
    scan(&c, e);
    VarVec free = {0};
    expr_free_vars(e, &free);
    for (size_t i = 0; i < free.len; i++)
        bind(&p, free.data[i]);
    if (e->kind == EXPR_LET)
        print_spine(&p, e);
    else
        print(&p, e, PREC_SEQ);
}
