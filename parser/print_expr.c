/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of expressions and patterns. Chains (`let`, `;`, graph bindings, operators to
 * the left, `::` to the right) are walked in loops. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "parser/print_internal.h"

/* ---- names and literals ----------------------------------------------------------------------- */

static const char *sigil_text(Sigil sigil)
{
    switch (sigil) {
    case SIGIL_NONE: return "";
    case SIGIL_LOCAL: return "%";
    case SIGIL_GLOBAL: return "@";
    }
    return "";
}

/* tvm: every local gets its %, every global its @; operators and constructors stay bare. */
Doc *print_name(Printer *p, const Name *name, bool binding)
{
    Sigil sigil = name->sigil;
    if (p->options->tvm && sigil == SIGIL_NONE) {
        if (binding || map_has(&p->locals, name->sym))
            sigil = SIGIL_LOCAL;
        else if (map_has(&p->globals, name->sym) ||
                 (p->options->is_global && p->options->is_global(p->options->ctx, name->sym)))
            sigil = SIGIL_GLOBAL;
    }
    if (p->options->tvm && binding && sigil == SIGIL_LOCAL)
        map_set(&p->locals, name->sym, (void *)name->sym);
    return doc_textf("%s%s", sigil_text(sigil), name->sym->text);
}

Doc *print_string(Printer *p, const char *text, size_t len)
{
    Str s = {0};
    if (p->versioned)
        str_printf(&s, "\"%.*s\"", (int)len, text);
    else
        str_add_quoted(&s, text, len);
    return doc_text(str_text(&s));
}

/* int32 -> i32, bfloat16 -> bf16 */
static const char *suffix(const Symbol *dtype)
{
    if (!dtype)
        return "";
    const char *name = dtype->text;
    const char *digits = strpbrk(name, "0123456789");
    const char *letter = name[0] == 'b' ? "bf" : name[0] == 'f' ? "f" : name[0] == 'u' ? "u" : "i";
    return fmt_text("%s%s", letter, digits ? digits : "");
}

static Doc *print_int(const Ast *e)
{
    if (e->dtype && strcmp(e->dtype->text, "uint64") == 0)
        return doc_textf("%" PRIu64 "u64", (uint64_t)e->i);
    return doc_textf("%" PRId64 "%s", e->i, suffix(e->dtype));
}

static Doc *print_float(Printer *p, const Ast *e)
{
    Str s = {0};
    const char *type = e->dtype ? e->dtype->text : "float64";
    int bits = strcmp(type, "float32") == 0 ? 32 : strcmp(type, "float16") == 0 ? 16
               : strcmp(type, "bfloat16") == 0 ? 17 : 64;
    str_add_float(&s, e->f, bits);
    str_add(&s, e->dtype ? suffix(e->dtype) : p->options->tvm ? "f" : "");
    return doc_text(str_text(&s));
}

/* ---- patterns --------------------------------------------------------------------------------- */

static Doc *print_pattern_list(Printer *p, const char *open, const AstPatternVec *args, const char *close)
{
    DocVec items = {0};
    for (size_t i = 0; i < args->len; i++)
        vec_push(&items, print_pattern(p, args->data[i]));
    return doc_list(open, items, ",", close, false);
}

static Doc *print_record_pattern(Printer *p, const AstPattern *pat)
{
    DocVec items = {0};
    for (size_t i = 0; i < pat->fields.len; i++) {
        const AstPattern *arg = pat->args.data[i];
        const Symbol *field = pat->fields.data[i].sym;
        bool abbreviated = arg->kind == AST_PAT_NAME && arg->name.sym == field && !arg->type &&
                           arg->name.sigil == SIGIL_NONE && !p->options->tvm;
        vec_push(&items, abbreviated ? doc_text(field->text)
                                     : doc_cat3(doc_text(field->text), doc_text(": "),
                                                print_pattern(p, arg)));
    }
    return doc_cat2(doc_textf("%s ", pat->name.sym->text), doc_list("{", items, ",", "}", true));
}

/* p :: q :: r, to the right in a loop */
static Doc *print_cons_pattern(Printer *p, const AstPattern *pat)
{
    DocVec parts = {0};
    for (; pat->kind == AST_PAT_CONS && !pat->type; pat = pat->args.data[1]) {
        const AstPattern *head = pat->args.data[0];
        Doc *d = print_pattern(p, head);
        bool nested = head->kind == AST_PAT_CONS;
        vec_push(&parts, nested ? doc_cat3(doc_text("("), d, doc_text(")")) : d);
        vec_push(&parts, doc_text(" :: "));
    }
    vec_push(&parts, print_pattern(p, pat));
    return doc_cat(parts);
}

static Doc *print_bare_pattern(Printer *p, const AstPattern *pat)
{
    switch (pat->kind) {
    case AST_PAT_WILDCARD: return doc_text("_");
    case AST_PAT_NAME: {
        bool capital = pat->name.sym->text[0] >= 'A' && pat->name.sym->text[0] <= 'Z';
        return print_name(p, &pat->name, !capital);
    }
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: return print_expr(p, pat->literal, PREC_UNARY);
    case AST_PAT_CTOR:
        return doc_cat2(doc_text(pat->name.sym->text), print_pattern_list(p, "(", &pat->args, ")"));
    case AST_PAT_RECORD: return print_record_pattern(p, pat);
    case AST_PAT_TUPLE:
        return print_pattern_list(p, "(", &pat->args, pat->args.len == 1 ? ",)" : ")");
    case AST_PAT_PAREN: return print_pattern_list(p, "(", &pat->args, ")");
    case AST_PAT_CONS: return print_cons_pattern(p, pat);
    case AST_PAT_LIST: return print_pattern_list(p, "list[", &pat->args, "]");
    }
    BUG("no such form of pattern: %d", (int)pat->kind);
}

static bool has_arrow(const AstType *t)
{
    return t->kind == AST_TYPE_FN;
}

Doc *print_pattern(Printer *p, const AstPattern *pat)
{
    Doc *d = print_bare_pattern(p, pat);
    if (!pat->type)
        return d;
    const char *open = has_arrow(pat->type) ? ": (" : ": ";
    return doc_cat3(d, doc_cat2(doc_text(open), print_type(p, pat->type)),
                    doc_text(has_arrow(pat->type) ? ")" : ""));
}

/* ---- operators -------------------------------------------------------------------------------- */

typedef struct InfixInfo {
    const char *sign;
    int prec;
    const char *op; /* tvm: the operator a sign stands for that TVM has no sign for */
} InfixInfo;

static const InfixInfo infix[] = {
    [BINOP_ADD] = {"+", PREC_ADD, NULL},       [BINOP_SUB] = {"-", PREC_ADD, NULL},
    [BINOP_MUL] = {"*", PREC_MUL, NULL},       [BINOP_DIV] = {"/", PREC_MUL, NULL},
    [BINOP_POW] = {"**", PREC_POWER, "power"}, [BINOP_MATMUL] = {"@@", PREC_MUL, "nn.matmul"},
    [BINOP_EQ] = {"==", PREC_EQUAL, NULL},     [BINOP_NE] = {"!=", PREC_EQUAL, NULL},
    [BINOP_LT] = {"<", PREC_COMPARE, NULL},    [BINOP_LE] = {"<=", PREC_COMPARE, NULL},
    [BINOP_GT] = {">", PREC_COMPARE, NULL},    [BINOP_GE] = {">=", PREC_COMPARE, NULL},
    [BINOP_AND] = {"&&", PREC_AND, NULL},      [BINOP_OR] = {"||", PREC_OR, NULL},
    [BINOP_APPEND] = {"++", PREC_ADD, NULL},   [BINOP_CONS] = {"::", PREC_CONS, "Cons"},
    [BINOP_PIPE] = {"|>", PREC_PIPE, NULL},    [BINOP_COMPOSE] = {">>", PREC_COMPOSE, NULL},
};

static Doc *tvm_call(Printer *p, const char *op, const Ast *a, const Ast *b)
{
    DocVec items = {0};
    vec_push(&items, print_expr(p, a, PREC_SEQ + 1));
    vec_push(&items, print_expr(p, b, PREC_SEQ + 1));
    return doc_cat2(doc_text(op), doc_list("(", items, ",", ")", false));
}

/* a + b - c: the operands of one level, to the left, in a loop */
static Doc *print_left(Printer *p, const Ast *e, int prec)
{
    VEC(const Ast *) links = {0};
    for (; e->kind == AST_BINARY && infix[e->op].prec == prec &&
           !(p->options->tvm && infix[e->op].op); e = e->a)
        vec_push(&links, e);
    DocVec parts = {0};
    vec_push(&parts, print_expr(p, e, prec));
    for (size_t i = links.len; i-- > 0;) {
        vec_push(&parts, doc_textf(" %s", infix[links.data[i]->op].sign));
        vec_push(&parts, doc_line());
        vec_push(&parts, print_expr(p, links.data[i]->b, prec + 1));
    }
    return doc_group(doc_nest(2, doc_cat(parts)));
}

static Doc *print_cons(Printer *p, const Ast *e)
{
    DocVec parts = {0};
    for (; e->kind == AST_BINARY && e->op == BINOP_CONS; e = e->b) {
        vec_push(&parts, print_expr(p, e->a, PREC_CONS + 1));
        vec_push(&parts, doc_text(" ::"));
        vec_push(&parts, doc_line());
    }
    vec_push(&parts, print_expr(p, e, PREC_CONS));
    return doc_group(doc_nest(2, doc_cat(parts)));
}

static Doc *print_binary(Printer *p, const Ast *e)
{
    const InfixInfo *info = &infix[e->op];
    if (p->options->tvm && info->op)
        return tvm_call(p, info->op, e->a, e->b);
    if (e->op == BINOP_POW) /* to the right; its right operand may start with a sign */
        return doc_cat3(print_expr(p, e->a, PREC_POWER + 1), doc_text(" ** "),
                        print_expr(p, e->b, e->b->kind == AST_BINARY ? PREC_POWER : PREC_UNARY));
    return e->op == BINOP_CONS ? print_cons(p, e) : print_left(p, e, info->prec);
}

static Doc *print_unary(Printer *p, const Ast *e)
{
    switch ((UnOp)e->op) {
    case UNOP_NEG: return doc_cat2(doc_text("-"), print_expr(p, e->a, PREC_UNARY));
    case UNOP_BANG: return doc_cat2(doc_text("!"), print_expr(p, e->a, PREC_BANG));
    case UNOP_SQ: return doc_cat2(doc_text("sq "), print_expr(p, e->a, PREC_UNARY));
    }
    BUG("no such unary operator: %d", e->op);
}

/* ---- calls, data ------------------------------------------------------------------------------ */

static Doc *print_args(Printer *p, const char *open, const AstVec *args, const AstAttrVec *attrs,
                       const char *close)
{
    DocVec items = {0};
    for (size_t i = 0; i < args->len; i++)
        vec_push(&items, print_expr(p, args->data[i], PREC_SEQ + 1));
    if (attrs)
        print_attrs(p, attrs, &items);
    return doc_list(open, items, ",", close, false);
}

static Doc *print_type_args(Printer *p, const AstTypeVec *types)
{
    DocVec items = {0};
    for (size_t i = 0; i < types->len; i++)
        vec_push(&items, print_type(p, types->data[i]));
    return doc_list("<", items, ",", ">", false);
}

static Doc *print_fields(Printer *p, const Ast *e)
{
    DocVec items = {0};
    for (size_t i = 0; i < e->fields.len; i++)
        vec_push(&items, doc_cat3(doc_text(e->fields.data[i].sym->text),
                                  doc_text(e->kind == AST_WITH ? " = " : ": "),
                                  print_expr(p, e->args.data[i], PREC_SEQ + 1)));
    if (e->kind == AST_RECORD)
        return doc_cat2(doc_textf("%s ", e->name.sym->text), doc_list("{", items, ",", "}", true));
    DocVec parts = {0};
    for (size_t i = 0; i < items.len; i++) {
        if (i)
            vec_push(&parts, doc_text(", "));
        vec_push(&parts, items.data[i]);
    }
    return doc_cat3(doc_cat2(doc_text("{ "), print_expr(p, e->a, PREC_ASSIGN)), doc_text(" with "),
                    doc_cat2(doc_cat(parts), doc_text(" }")));
}

static Doc *print_indices(Printer *p, const Ast *e)
{
    DocVec items = {0};
    for (size_t i = 0; i < e->indices.len; i++) {
        const AstIndex *x = &e->indices.data[i];
        switch (x->kind) {
        case INDEX_AT: vec_push(&items, print_expr(p, x->at, PREC_ASSIGN)); break;
        case INDEX_ELLIPSIS: vec_push(&items, doc_text("...")); break;
        case INDEX_NEW_AXIS: vec_push(&items, doc_text("None")); break;
        case INDEX_SLICE: {
            DocVec parts = {0};
            if (x->begin)
                vec_push(&parts, print_expr(p, x->begin, PREC_CONS + 1));
            vec_push(&parts, doc_text(":"));
            if (x->end)
                vec_push(&parts, print_expr(p, x->end, PREC_CONS + 1));
            if (x->step) {
                vec_push(&parts, doc_text(":"));
                vec_push(&parts, print_expr(p, x->step, PREC_CONS + 1));
            }
            vec_push(&items, doc_cat(parts));
            break;
        }
        }
    }
    return doc_cat2(print_expr(p, e->a, PREC_CALL), doc_list("[", items, ",", "]", false));
}

/* ---- control ---------------------------------------------------------------------------------- */

Doc *print_fn_rest(Printer *p, const AstFn *fn)
{
    Map outer = {0};
    if (p->options->tvm) { /* a copy of the locals, so that inner names end with the function */
        const void *key;
        void *value;
        for (size_t i = 0; map_next(&p->locals, &i, &key, &value);)
            map_set(&outer, key, value);
    }
    DocVec params = {0};
    for (size_t i = 0; i < fn->params.len; i++) {
        Doc *name = print_name(p, &fn->params.data[i].name, true);
        vec_push(&params, fn->params.data[i].type
                              ? doc_cat3(name, doc_text(": "), print_type(p, fn->params.data[i].type))
                              : name);
    }
    print_attrs(p, &fn->attrs, &params);
    DocVec parts = {0};
    vec_push(&parts, doc_list("(", params, ",", ")", false));
    if (fn->result) {
        vec_push(&parts, doc_text(" -> "));
        vec_push(&parts, print_type(p, fn->result));
    }
    if (fn->has_where)
        vec_push(&parts, print_where(p, &fn->where));
    vec_push(&parts, doc_text(" "));
    vec_push(&parts, print_block(p, fn->body));
    if (p->options->tvm)
        p->locals = outer;
    return doc_cat(parts);
}

static Doc *print_fn(Printer *p, const AstFn *fn)
{
    return doc_cat3(doc_text("fn "), print_type_params(p, &fn->type_params), print_fn_rest(p, fn));
}

static Doc *print_if(Printer *p, const Ast *e)
{
    DocVec parts = {0};
    for (;;) {
        vec_push(&parts, doc_text("if ("));
        vec_push(&parts, print_expr(p, e->a, PREC_SEQ + 1));
        vec_push(&parts, doc_text(") "));
        vec_push(&parts, print_block(p, e->b));
        vec_push(&parts, doc_text(" else "));
        if (e->c->kind != AST_IF || p->options->tvm)
            break;
        e = e->c;
    }
    vec_push(&parts, print_block(p, e->c));
    return doc_cat(parts);
}

static bool is_chain(const Ast *e)
{
    return e->kind == AST_LET || e->kind == AST_GRAPH_LET || e->kind == AST_FREE_VAR ||
           e->kind == AST_SEQ;
}

static Doc *print_match(Printer *p, const Ast *e)
{
    DocVec arms = {0};
    for (size_t i = 0; i < e->arms.len; i++) {
        const AstArm *arm = &e->arms.data[i];
        DocVec own = {0}, trailing = {0}, parts = {0};
        print_comments(p, arm->pattern->span.begin, &own, &trailing);
        for (size_t k = 0; k < trailing.len; k++)
            vec_push(&own, trailing.data[k]);
        for (size_t k = 0; k < own.len; k++) {
            vec_push(&parts, own.data[k]);
            vec_push(&parts, doc_hard());
        }
        vec_push(&parts, print_pattern(p, arm->pattern));
        if (arm->guard) {
            vec_push(&parts, doc_text(" when "));
            vec_push(&parts, print_expr(p, arm->guard, PREC_PIPE));
        }
        vec_push(&parts, doc_text(" => "));
        vec_push(&parts, is_chain(arm->body) ? print_block(p, arm->body)
                                             : print_expr(p, arm->body, PREC_SEQ + 1));
        vec_push(&arms, doc_cat(parts));
    }
    return doc_cat3(doc_text(e->flag ? "match? (" : "match ("), print_expr(p, e->a, PREC_SEQ + 1),
                    doc_cat2(doc_text(") "), doc_list("{", arms, ",", "}", true)));
}

/* One link of a chain, without its `;`. */
static Doc *print_link(Printer *p, const Ast *e)
{
    DocVec parts = {0};
    if (e->kind == AST_SEQ)
        return print_expr(p, e->a, PREC_SEQ + 1);
    if (e->kind == AST_GRAPH_LET) {
        vec_push(&parts, doc_textf("%%%" PRId64 " = ", e->i));
        vec_push(&parts, print_expr(p, e->a, PREC_SEQ + 1));
        return doc_cat(parts);
    }
    /* tvm binds the name before its value is printed: a recursive function mentions it */
    Doc *name = print_name(p, &e->name, true);
    vec_push(&parts, doc_text(e->kind == AST_LET ? "let " : "free_var "));
    vec_push(&parts, name);
    if (e->type) {
        vec_push(&parts, doc_text(": "));
        vec_push(&parts, print_type(p, e->type));
    }
    if (e->kind == AST_LET) {
        vec_push(&parts, doc_text(" = "));
        vec_push(&parts, print_expr(p, e->a, PREC_SEQ + 1));
    }
    return doc_cat(parts);
}

static void push_comments(Printer *p, uint32_t at, DocVec *out, bool first)
{
    DocVec own = {0}, trailing = {0};
    print_comments(p, at, &own, &trailing);
    for (size_t i = 0; i < trailing.len; i++) {
        vec_push(out, first && i == 0 ? doc_text("") : doc_text("  "));
        vec_push(out, trailing.data[i]);
        if (first)
            vec_push(out, doc_hard());
    }
    if (!first)
        vec_push(out, own.len || trailing.len ? doc_hard() : doc_line());
    for (size_t i = 0; i < own.len; i++) {
        vec_push(out, own.data[i]);
        vec_push(out, doc_hard());
    }
}

Doc *print_block(Printer *p, const Ast *e)
{
    DocVec in = {0};
    const Ast *block = e;
    bool many = is_chain(e), first = true;
    while (e) {
        bool chain = is_chain(e);
        push_comments(p, e->span.begin, &in, first);
        first = false;
        vec_push(&in, chain ? print_link(p, e) : print_expr(p, e, PREC_SEQ + 1));
        if (!chain)
            break;
        if (e->body || e->kind != AST_LET)
            vec_push(&in, doc_text(";"));
        if (e->body && print_blank_before(p, e->a ? e->a->span.end : e->span.begin, e->body->span.begin))
            vec_push(&in, doc_soft());
        e = e->body;
    }
    DocVec own = {0}, trailing = {0};
    print_comments(p, block->span.end, &own, &trailing);
    for (size_t i = 0; i < trailing.len; i++)
        vec_push(&own, trailing.data[i]);
    for (size_t i = 0; i < own.len; i++) {
        vec_push(&in, doc_hard());
        vec_push(&in, own.data[i]);
    }
    DocVec all = {0};
    vec_push(&all, doc_text("{"));
    vec_push(&all, doc_nest(2, doc_cat2(many ? doc_hard() : doc_line(), doc_cat(in))));
    vec_push(&all, many ? doc_hard() : doc_line());
    vec_push(&all, doc_text("}"));
    return doc_group(doc_cat(all));
}

/* ---- expressions ------------------------------------------------------------------------------ */

static int prec_of(const Printer *p, const Ast *e)
{
    switch (e->kind) {
    case AST_BINARY: return p->options->tvm && infix[e->op].op ? PREC_CALL : infix[e->op].prec;
    case AST_UNARY: return e->op == UNOP_BANG ? PREC_BANG : PREC_UNARY;
    case AST_CAST:
    case AST_ZERO:
    case AST_GRAD: return PREC_UNARY;
    case AST_REF_WRITE: return p->options->tvm ? PREC_CALL : PREC_ASSIGN;
    case AST_INT: return e->i < 0 && !(e->dtype && strcmp(e->dtype->text, "uint64") == 0) ? PREC_UNARY
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
    case AST_TENSOR:
    case AST_LIST:
    case AST_META:
    case AST_ERROR: return PREC_ATOM;
    }
    return PREC_ATOM;
}

static Doc *print_call(Printer *p, const Ast *e)
{
    VEC(const Ast *) calls = {0};
    for (; e->kind == AST_CALL && prec_of(p, e->a) >= PREC_CALL; e = e->a)
        vec_push(&calls, e);
    const Ast *head = calls.len ? vec_last(&calls)->a : e->a;
    if (!calls.len)
        vec_push(&calls, e);
    DocVec parts = {0};
    vec_push(&parts, print_expr(p, head, PREC_CALL));
    for (size_t i = calls.len; i-- > 0;) {
        if (calls.data[i]->type_args.len)
            vec_push(&parts, print_type_args(p, &calls.data[i]->type_args));
        vec_push(&parts, print_args(p, "(", &calls.data[i]->args, &calls.data[i]->attrs, ")"));
    }
    return doc_cat(parts);
}

static Doc *print_keyword_call(Printer *p, const char *word, const Ast *a, const Ast *b)
{
    DocVec items = {0};
    vec_push(&items, print_expr(p, a, PREC_SEQ + 1));
    if (b)
        vec_push(&items, print_expr(p, b, PREC_SEQ + 1));
    return doc_cat2(doc_text(word), doc_list("(", items, ",", ")", false));
}

static Doc *print_bare(Printer *p, const Ast *e)
{
    switch (e->kind) {
    case AST_INT: return print_int(e);
    case AST_FLOAT: return print_float(p, e);
    case AST_BOOL: return doc_text(e->i ? "True" : "False");
    case AST_STRING: return print_string(p, e->text, e->text_len);
    case AST_NAME: return print_name(p, &e->name, false);
    case AST_GRAPH_VAR: return doc_textf("%%%" PRId64, e->i);
    case AST_HOLE: return doc_text("_");
    case AST_CALL: return print_call(p, e);
    case AST_INSTANTIATE: return doc_cat2(print_expr(p, e->a, PREC_CALL), print_type_args(p, &e->type_args));
    case AST_FN: return print_fn(p, e->fn);
    case AST_LET:
    case AST_GRAPH_LET:
    case AST_FREE_VAR:
    case AST_SEQ: return print_block(p, e);
    case AST_IF: return print_if(p, e);
    case AST_MATCH: return print_match(p, e);
    case AST_TUPLE: return print_args(p, "(", &e->args, NULL, e->args.len == 1 ? ",)" : ")");
    case AST_PROJ: return doc_cat2(print_expr(p, e->a, PREC_CALL), doc_textf(".%" PRId64, e->i));
    case AST_FIELD: return doc_cat2(print_expr(p, e->a, PREC_CALL), doc_textf(".%s", e->field->text));
    case AST_RECORD:
    case AST_WITH: return print_fields(p, e);
    case AST_TENSOR: return print_args(p, "[", &e->args, NULL, "]");
    case AST_LIST: return print_args(p, "list[", &e->args, NULL, "]");
    case AST_INDEX: return print_indices(p, e);
    case AST_UNARY: return print_unary(p, e);
    case AST_BINARY: return print_binary(p, e);
    case AST_CAST:
        return doc_cat3(doc_text("("), print_type(p, e->type),
                        doc_cat2(doc_text(") "), print_expr(p, e->a, PREC_UNARY)));
    case AST_ZERO: return doc_cat2(doc_text("Zero "), print_type(p, e->type));
    case AST_GRAD: return doc_cat2(doc_text("Grad "), print_expr(p, e->a, PREC_UNARY));
    case AST_REF: return print_keyword_call(p, "ref", e->a, NULL);
    case AST_REF_READ: return print_keyword_call(p, "ref_read", e->a, NULL);
    case AST_REF_WRITE:
        if (p->options->tvm)
            return print_keyword_call(p, "ref_write", e->a, e->b);
        return doc_cat3(print_expr(p, e->a, PREC_ASSIGN + 1), doc_text(" := "),
                        print_expr(p, e->b, PREC_ASSIGN + 1));
    case AST_META: return doc_textf("meta[%s][%" PRId64 "]", e->text, e->i);
    case AST_ERROR: return doc_text("_");
    }
    BUG("no such form of expression: %d", (int)e->kind);
}

Doc *print_expr(Printer *p, const Ast *e, int prec)
{
    Doc *d = print_bare(p, e);
    return prec_of(p, e) < prec ? doc_cat3(doc_text("("), d, doc_text(")")) : d;
}

void ast_print_expr(Str *out, const Ast *ast, const PrintOptions *options)
{
    Printer p = {.options = options};
    doc_print(out, print_expr(&p, ast, PREC_SEQ), options->width ? options->width : 100);
}
