/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of expressions. Chains (`let`, `;`, graph bindings, operators to the left, `::` and
 * `:=` to the right, calls and projections) are walked in loops. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "parser/print_internal.h"

/* ---- literals -------------------------------------------------------------------------------- */

Doc *print_string(Printer *p, const char *text, size_t len, Span span) {
    Str s = {0};
    if (!p->versioned) {
        str_add_quoted(&s, text, len);
        return doc_text(str_text(&s));
    }
    /* TVM's strings are raw: a character that cannot stand for itself cannot be written. */
    size_t bad;
    Diags *diags = p->options->diags;
    if (diags && (memchr(text, '"', len) || memchr(text, 0, len) || !text_is_utf8(text, len, &bad)))
        diag_error(diags, DIAG_R0004, span,
                   "TVM's strings have no escapes: this one cannot be written there");
    str_printf(&s, "\"%.*s\"", (int)len, text);
    return doc_text(str_text(&s));
}

/* int32 -> i32, bfloat16 -> bf16 */
static const char *suffix(const Symbol *dtype) {
    if (!dtype)
        return "";
    const char *name = dtype->text;
    const char *digits = strpbrk(name, "0123456789");
    const char *letter = name[0] == 'b' ? "bf" : name[0] == 'f' ? "f" : name[0] == 'u' ? "u" : "i";
    return fmt_text("%s%s", letter, digits ? digits : "");
}

static Doc *print_int(const Ast *e) {
    if (e->dtype && strcmp(e->dtype->text, "uint64") == 0)
        return doc_textf("%" PRIu64 "u64", (uint64_t)e->i);
    return doc_textf("%" PRId64 "%s", e->i, suffix(e->dtype));
}

/* Digits as they were written: rounding the shortest form of a weak literal at another dtype could
 * give another number. */
static Doc *print_float(Printer *p, const Ast *e) {
    Str s = {0};
    const char *type = e->dtype ? e->dtype->text : "float64";
    int bits = strcmp(type, "float32") == 0    ? 32
               : strcmp(type, "float16") == 0  ? 16
               : strcmp(type, "bfloat16") == 0 ? 17
                                               : 64;
    if (e->text) {
        str_printf(&s, "%s%.*s", signbit(e->f) ? "-" : "", (int)e->text_len, e->text);
        for (size_t i = 0; i < s.len; i++)
            if (s.text[i] == 'E')
                s.text[i] = 'e';
    } else {
        str_add_float(&s, e->f, bits);
    }
    /* TVM writes float32's suffix as `f`. */
    bool plain = p->options->tvm && (e->dtype ? bits == 32 : !p->weak_floats);
    str_add(&s, plain ? "f" : e->dtype ? suffix(e->dtype) : "");
    return doc_text(str_text(&s));
}

/* ---- operators ------------------------------------------------------------------------------- */

static Doc *tvm_call(Printer *p, const char *op, const Ast *a, const Ast *b) {
    DocVec items = {0};
    vec_push(&items, print_expr(p, a, PREC_SEQ + 1));
    vec_push(&items, print_expr(p, b, PREC_SEQ + 1));
    return doc_cat2(doc_text(op), doc_list("(", items, ",", ")", false));
}

/* The call that stands for e's operator in TVM's text, or NULL where its sign is written. */
static const char *tvm_name(const Printer *p, const Ast *e) {
    const char *name = p->options->tvm ? infix_table[e->op].tvm : NULL;
    bool own = name && e->op == BINOP_CONS && map_has(&p->ctors, sym_intern(name));
    return own ? NULL : name;
}

/* a + b - c: the operands of one level, to the left, in a loop; of arithmetic as many a line as fit */
static Doc *print_left(Printer *p, const Ast *e) {
    VEC(const Ast *) links = {0};
    Prec prec = infix_table[e->op].prec;
    for (; e->kind == AST_BINARY && infix_table[e->op].prec == prec; e = e->a)
        vec_push(&links, e);
    DocVec parts = {0};
    vec_push(&parts, print_expr(p, e, prec));
    for (size_t i = links.len; i-- > 0;) {
        Doc *right = print_expr(p, links.data[i]->b, infix_right((BinOp)links.data[i]->op));
        vec_push(&parts, doc_textf(" %s", infix_table[links.data[i]->op].sign));
        vec_push(&parts, prec >= PREC_CONS ? doc_group(doc_cat2(doc_line(), right))
                                           : doc_cat2(doc_line(), right));
    }
    return doc_group(doc_nest(2, doc_cat(parts)));
}

/* a :: b :: c, r := s := e: to the right, in a loop */
static bool is_link(const Ast *e, BinOp op) { return e->kind == AST_BINARY && e->op == op; }

static Doc *print_right(Printer *p, const Ast *e) {
    DocVec parts = {0};
    BinOp op = (BinOp)e->op;
    for (; is_link(e, op); e = e->b) {
        vec_push(&parts, print_expr(p, e->a, infix_left(op)));
        vec_push(&parts, doc_textf(" %s", infix_table[op].sign));
        vec_push(&parts, doc_line());
    }
    vec_push(&parts, print_expr(p, e, infix_right(op)));
    return doc_group(doc_nest(2, doc_cat(parts)));
}

/* Cons(a, Cons(b, c)), ref_write(r, ref_write(s, e)): as calls, in a loop */
static Doc *print_right_calls(Printer *p, const Ast *e, const char *name) {
    DocVec parts = {0};
    BinOp op = (BinOp)e->op;
    size_t n = 0;
    for (; is_link(e, op); e = e->b, n++) {
        vec_push(&parts, doc_textf("%s(", name));
        vec_push(&parts, print_expr(p, e->a, PREC_SEQ + 1));
        vec_push(&parts, doc_text(","));
        vec_push(&parts, doc_line());
    }
    vec_push(&parts, print_expr(p, e, PREC_SEQ + 1));
    char *close = mem_bytes(n + 1);
    memset(close, ')', n);
    close[n] = 0;
    vec_push(&parts, doc_text(close));
    return doc_group(doc_nest(2, doc_cat(parts)));
}

static Doc *print_binary(Printer *p, const Ast *e) {
    const char *name = tvm_name(p, e);
    BinOp op = (BinOp)e->op;
    if (op == BINOP_POW) /* stays on its line */
        return name ? tvm_call(p, name, e->a, e->b)
                    : doc_cat3(print_expr(p, e->a, infix_left(op)),
                               doc_textf(" %s ", infix_table[op].sign),
                               print_expr(p, e->b, infix_right(op)));
    if (infix_table[op].right)
        return name ? print_right_calls(p, e, name) : print_right(p, e);
    return print_left(p, e);
}

/* The first of e's own text, parentheses aside. */
static const Ast *leftmost(const Ast *e) {
    for (;;) {
        switch (e->kind) {
        case AST_BINARY:
        case AST_CALL:
        case AST_INSTANTIATE:
        case AST_PROJ:
        case AST_FIELD:
        case AST_INDEX: e = e->a; continue;
        case AST_INT:
        case AST_FLOAT:
        case AST_BOOL:
        case AST_STRING:
        case AST_NAME:
        case AST_GRAPH_VAR:
        case AST_HOLE:
        case AST_FN:
        case AST_LET:
        case AST_GRAPH_LET:
        case AST_FREE_VAR:
        case AST_SEQ:
        case AST_IF:
        case AST_MATCH:
        case AST_TUPLE:
        case AST_RECORD:
        case AST_WITH:
        case AST_WITH_AT:
        case AST_TENSOR:
        case AST_LIST:
        case AST_UNARY:
        case AST_CAST:
        case AST_ZERO:
        case AST_REF:
        case AST_REF_READ:
        case AST_GRAD:
        case AST_META:
        case AST_ERROR: return e;
        }
        return e;
    }
}

/* sq e, Grad e: not before a brace, which would begin a record, nor before the operator `where` */
static Doc *print_prefix(Printer *p, const char *word, const Ast *a) {
    const Ast *first = leftmost(a);
    bool where = first->kind == AST_NAME && strcmp(first->name.sym->text, "where") == 0;
    if (ast_is_chain(first) || first->kind == AST_WITH || first->kind == AST_WITH_AT || where)
        return doc_cat3(doc_textf("%s(", word), print_expr(p, a, PREC_SEQ + 1), doc_text(")"));
    return doc_cat2(doc_textf("%s ", word), print_expr(p, a, PREC_UNARY));
}

static int prec_of(const Printer *p, const Ast *e);

static Doc *print_unary(Printer *p, const Ast *e) {
    bool number = e->a->kind == AST_INT || e->a->kind == AST_FLOAT;
    switch ((UnOp)e->op) {
    case UNOP_NEG: /* `-1` is one literal */
        return doc_cat2(
            doc_text("-"),
            print_expr(p, e->a,
                       number && prec_of(p, e->a) == PREC_ATOM ? PREC_ATOM + 1 : PREC_UNARY));
    case UNOP_BANG: return doc_cat2(doc_text("!"), print_expr(p, e->a, PREC_BANG));
    case UNOP_SQ: return print_prefix(p, "sq", e->a);
    }
    BUG("no such unary operator: %d", e->op);
}

/* ---- calls, data ----------------------------------------------------------------------------- */

/* Numbers and the like, which need no line each. */
static bool are_small(const AstVec *args) {
    for (size_t i = 0; i < args->len; i++) {
        AstKind kind = args->data[i]->kind;
        if (kind != AST_INT && kind != AST_FLOAT && kind != AST_BOOL && kind != AST_STRING)
            return false;
    }
    return true;
}

/* What a bracket may stand directly before when it takes several lines. */
static bool can_hug(const Ast *e) {
    return e->kind == AST_FN || e->kind == AST_MATCH || e->kind == AST_RECORD || ast_is_chain(e);
}

/* Where the last of the arguments ends. */
static uint32_t args_end(const Ast *e) {
    bool has_attrs = e->kind == AST_CALL && e->attrs.len > 0;
    return has_attrs     ? vec_last(&e->attrs).span.end
           : e->args.len ? vec_last(&e->args)->span.end
                         : 0;
}

static Doc *print_elements(Printer *p, const char *open, const Ast *e, const char *close) {
    Rows rows = {.fill = are_small(&e->args)};
    for (size_t i = 0; i < e->args.len; i++) {
        rows_next(p, &rows, print_begin(p, e->args.data[i]));
        vec_push(&rows.in, print_expr(p, e->args.data[i], PREC_SEQ + 1));
    }
    return rows_end(p, &rows, open, close, args_end(e));
}

static Doc *print_args(Printer *p, const Ast *e) {
    Rows rows = {.hug = e->args.len && !e->attrs.len && can_hug(vec_last(&e->args))};
    for (size_t i = 0; i < e->args.len; i++) {
        rows_next(p, &rows, print_begin(p, e->args.data[i]));
        vec_push(&rows.in, print_expr(p, e->args.data[i], PREC_SEQ + 1));
    }
    for (size_t i = 0; i < e->attrs.len; i++) {
        rows_next(p, &rows, e->attrs.data[i].span.begin);
        vec_push(&rows.in, print_attr(p, &e->attrs.data[i]));
    }
    return rows_end(p, &rows, "(", ")", args_end(e));
}

static Doc *print_type_args(Printer *p, const char *open, const AstTypeVec *types,
                            const char *close) {
    DocVec items = {0};
    for (size_t i = 0; i < types->len; i++)
        vec_push(&items, print_inner_type(p, types->data[i]));
    return doc_list(open, items, ",", close, false);
}

static Doc *print_record(Printer *p, const Ast *e) {
    Rows rows = {.pad = true};
    for (size_t i = 0; i < e->fields.len; i++) {
        rows_next(p, &rows, e->fields.data[i].span.begin);
        vec_push(&rows.in, doc_cat3(print_field(&e->fields.data[i]), doc_text(": "),
                                    print_expr(p, e->args.data[i], PREC_SEQ + 1)));
    }
    return doc_cat2(doc_textf("%s ", e->name.sym->text), rows_end(p, &rows, "{", "}", args_end(e)));
}

static Doc *print_with(Printer *p, const Ast *e) {
    Rows rows = {.pad = true};
    Doc *base = print_expr(p, e->a, PREC_ASSIGN);
    for (size_t i = 0; i < e->fields.len; i++) {
        rows_next(p, &rows, e->fields.data[i].span.begin);
        vec_push(&rows.in, doc_cat3(print_field(&e->fields.data[i]), doc_text(" = "),
                                    print_expr(p, e->args.data[i], PREC_SEQ + 1)));
    }
    return doc_cat3(doc_text("{ "), base, rows_end(p, &rows, " with", "}", args_end(e)));
}

/* Whether a `::` of e stands in no brackets: in an index it would be two colons. */
static bool has_open_cons(const Ast *e) {
    while (e->kind == AST_BINARY && infix_table[e->op].prec <= PREC_CONS) {
        if (e->op == BINOP_CONS || has_open_cons(e->b))
            return true;
        e = e->a;
    }
    return false;
}

static Doc *print_index_part(Printer *p, const Ast *e) {
    const Ast *first = leftmost(e);
    bool none = first->kind == AST_NAME && strcmp(first->name.sym->text, "None") == 0;
    return print_expr(p, e, none ? PREC_ATOM + 1 : has_open_cons(e) ? PREC_CONS + 1 : PREC_ASSIGN);
}

/* Whether `::` behind e would be read into its last name. */
static bool ends_in_name(const Ast *e) {
    while (e->kind == AST_BINARY || e->kind == AST_UNARY || e->kind == AST_CAST ||
           e->kind == AST_GRAD)
        e = e->kind == AST_BINARY ? e->b : e->a;
    return e->kind == AST_NAME;
}

static Doc *print_slice(Printer *p, const AstIndex *x) {
    DocVec parts = {0};
    if (x->begin)
        vec_push(&parts, print_index_part(p, x->begin));
    bool cut = x->begin && !x->end && x->step && ends_in_name(x->begin);
    vec_push(&parts, doc_text(cut ? " :" : ":"));
    if (x->end)
        vec_push(&parts, print_index_part(p, x->end));
    if (x->step) {
        vec_push(&parts, doc_text(":"));
        vec_push(&parts, print_index_part(p, x->step));
    }
    return doc_cat(parts);
}

static Doc *print_indices(Printer *p, const Ast *e) {
    DocVec items = {0};
    for (size_t i = 0; i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        switch (x->kind) {
        case INDEX_AT: vec_push(&items, print_index_part(p, x->at)); break;
        case INDEX_ELLIPSIS: vec_push(&items, doc_text("...")); break;
        case INDEX_NEW_AXIS: vec_push(&items, doc_text("None")); break;
        case INDEX_SLICE: vec_push(&items, print_slice(p, x)); break;
        }
    }
    return doc_list("[", items, ",", "]", false);
}

/* { t with [i, 1:3] = v } */
static Doc *print_with_at(Printer *p, const Ast *e) {
    Doc *base = print_expr(p, e->a, PREC_ASSIGN);
    Rows rows = {.pad = true};
    rows_next(p, &rows, e->op_span.end);
    vec_push(&rows.in, doc_cat3(print_indices(p, e), doc_text(" = "),
                                print_expr(p, e->args.data[0], PREC_SEQ + 1)));
    return doc_cat3(doc_text("{ "), base, rows_end(p, &rows, " with", "}", args_end(e)));
}

static bool is_postfix(const Ast *e) {
    return e->kind == AST_CALL || e->kind == AST_INSTANTIATE || e->kind == AST_PROJ ||
           e->kind == AST_FIELD || e->kind == AST_INDEX;
}

/* A name before a dot, where the two could be read as one: `(nn).w`. Parentheses in the source say
 * that they would; without one, parentheses never hurt. */
static bool must_close(const Printer *p, const Ast *base) {
    if (base->kind != AST_NAME)
        return base->kind == AST_INT || base->kind == AST_FLOAT;
    if (!base->span.source || print_is_parenthesised(base))
        return true;
    return p->options->tvm && base->name.sigil == SIGIL_NONE && p->compound;
}

/* The first `name=value` of the call that is an argument and no attribute, or NULL. callee: its name, with the
 * fields that it was read with in `name`. */
static const AstAttr *find_argument_by_name(const Printer *p, const Ast *callee, const Symbol *name,
                                            const Ast *call) {
    bool is_definition = print_sigil(p, &callee->name) != SIGIL_NONE;
    for (size_t i = 0; i < call->attrs.len; i++) {
        const AstAttr *a = &call->attrs.data[i];
        if (is_definition ? name == callee->name.sym
                          : p->options->has_operand &&
                                p->options->has_operand(p->options->ctx, name, a->name))
            return a;
    }
    return NULL;
}

/* TVM takes `name=value` in a call for a note or an attribute. */
static void refuse_arguments_by_name(const Printer *p, const Ast *callee, const Symbol *name,
                                     const Ast *call) {
    if (!p->options->tvm || p->module_versioned || !p->options->diags)
        return;
    const AstAttr *a = find_argument_by_name(p, callee, name, call);
    if (a)
        diag_error(p->options->diags, DIAG_R0117, a->span, "TVM's text has no arguments by name");
}

/* f(x).0[i].w: to the left, in a loop */
static Doc *print_postfix(Printer *p, const Ast *e) {
    VEC(const Ast *) links = {0};
    for (; is_postfix(e); e = e->a)
        vec_push(&links, e);
    DocVec parts = {0};
    const Ast *first = vec_last(&links);
    bool dot = first->kind == AST_PROJ || first->kind == AST_FIELD;
    vec_push(&parts, print_expr(p, e, dot && must_close(p, e) ? PREC_ATOM + 1 : PREC_CALL));
    const Symbol *name = e->kind == AST_NAME ? e->name.sym
                                             : NULL; /* `nn.dense` is a field so far */
    for (size_t i = links.len; i-- > 0;) {
        const Ast *x = links.data[i];
        if (x->kind == AST_CALL && name)
            refuse_arguments_by_name(p, e, name, x);
        name = name && x->kind == AST_FIELD ? sym_qualify(name, x->field) : NULL;
        if (x->kind == AST_CALL && x->type_args.len)
            vec_push(&parts, print_type_args(p, "<", &x->type_args, ">"));
        vec_push(&parts, x->kind == AST_CALL          ? print_args(p, x)
                         : x->kind == AST_INSTANTIATE ? print_type_args(p, "[", &x->type_args, "]")
                         : x->kind == AST_PROJ        ? doc_textf(".%" PRId64, x->i)
                         : x->kind == AST_FIELD       ? doc_textf(".%s", x->field->text)
                                                      : print_indices(p, x));
    }
    return doc_cat(parts);
}

/* ---- expressions ----------------------------------------------------------------------------- */

static int prec_of(const Printer *p, const Ast *e) {
    switch (e->kind) {
    case AST_BINARY: return tvm_name(p, e) ? PREC_CALL : infix_table[e->op].prec;
    case AST_UNARY: return e->op == UNOP_BANG ? PREC_BANG : PREC_UNARY;
    case AST_ZERO: return print_takes_more(p, e->type) ? PREC_SEQ + 1 : PREC_UNARY;
    case AST_CAST:
    case AST_GRAD: return PREC_UNARY;
    case AST_INT:
        return e->i < 0 && !(e->dtype && strcmp(e->dtype->text, "uint64") == 0) ? PREC_UNARY
                                                                                : PREC_ATOM;
    case AST_FLOAT: return signbit(e->f) && !isnan(e->f) ? PREC_UNARY : PREC_ATOM;
    case AST_FN:
    case AST_IF:
    case AST_MATCH: return PREC_SEQ + 1; /* closed, but only where nothing follows */
    case AST_CALL:
    case AST_INSTANTIATE:
    case AST_PROJ:
    case AST_FIELD:
    case AST_INDEX:
    case AST_REF:
    case AST_REF_READ: return PREC_CALL;
    case AST_LET:
    case AST_GRAPH_LET:
    case AST_FREE_VAR:
    case AST_SEQ: return PREC_ATOM; /* printed in braces */
    case AST_BOOL:
    case AST_STRING:
    case AST_NAME:
    case AST_GRAPH_VAR:
    case AST_HOLE:
    case AST_TUPLE:
    case AST_RECORD:
    case AST_WITH:
    case AST_WITH_AT:
    case AST_TENSOR:
    case AST_LIST:
    case AST_META:
    case AST_ERROR: return PREC_ATOM;
    }
    return PREC_ATOM;
}

static Doc *print_keyword_call(Printer *p, const char *word, const Ast *a) {
    Rows rows = {.hug = can_hug(a)};
    rows_next(p, &rows, print_begin(p, a));
    vec_push(&rows.in, print_expr(p, a, PREC_SEQ + 1));
    return doc_cat2(doc_text(word), rows_end(p, &rows, "(", ")", a->span.end));
}

static Doc *print_bare(Printer *p, const Ast *e) {
    switch (e->kind) {
    case AST_INT: return print_int(e);
    case AST_FLOAT: return print_float(p, e);
    case AST_BOOL: return doc_text(e->i ? "True" : "False");
    case AST_STRING: return print_string(p, e->text, e->text_len, e->span);
    case AST_NAME: return print_name(p, &e->name);
    case AST_GRAPH_VAR: return doc_textf("%%%" PRId64, e->i);
    case AST_HOLE: return doc_text("_");
    case AST_CALL:
    case AST_INSTANTIATE:
    case AST_PROJ:
    case AST_FIELD:
    case AST_INDEX: return print_postfix(p, e);
    case AST_FN: return print_fn(p, e->fn);
    case AST_LET:
    case AST_GRAPH_LET:
    case AST_FREE_VAR:
    case AST_SEQ: return print_block(p, e);
    case AST_IF: return print_if(p, e);
    case AST_MATCH: return print_match(p, e);
    case AST_TUPLE: return print_elements(p, "(", e, e->args.len == 1 ? ",)" : ")");
    case AST_RECORD: return print_record(p, e);
    case AST_WITH: return print_with(p, e);
    case AST_WITH_AT: return print_with_at(p, e);
    case AST_TENSOR: return print_elements(p, "[", e, "]");
    case AST_LIST: return print_elements(p, "list[", e, "]");
    case AST_UNARY: return print_unary(p, e);
    case AST_BINARY: return print_binary(p, e);
    case AST_CAST:
        return doc_cat3(doc_text("("), print_type(p, e->type),
                        doc_cat2(doc_text(") "), print_expr(p, e->a, PREC_UNARY)));
    case AST_ZERO: return doc_cat2(doc_text("Zero "), print_type_atom(p, e->type));
    case AST_GRAD: return print_prefix(p, "Grad", e->a);
    case AST_REF: return print_keyword_call(p, "ref", e->a);
    case AST_REF_READ: return print_keyword_call(p, "ref_read", e->a);
    case AST_META: return doc_textf("meta[%s][%" PRId64 "]", e->text, e->i);
    case AST_ERROR: return doc_text("_");
    }
    BUG("no such form of expression: %d", (int)e->kind);
}

Doc *print_expr(Printer *p, const Ast *e, int prec) {
    Doc *d = print_bare(p, e);
    return prec_of(p, e) < prec ? doc_cat3(doc_text("("), d, doc_text(")")) : d;
}
