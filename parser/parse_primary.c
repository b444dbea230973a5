/* SPDX-License-Identifier: Apache-2.0 */
/* What operators join: literals, names, brackets, and what follows them: calls, projections,
 * indices, type arguments, records (LANGUAGE §3). */
#include "parser/parse_internal.h"

#include <string.h>

/* ---- literals -------------------------------------------------------------------------------- */

bool parse_at_literal_number(Parser *p) {
    return parse_at(p, TOK_NUMBER) ||
           (parse_at(p, TOK_IDENT) && literal_is_special(p->tok.sym->text, p->tok.sym->len) &&
            !parse_is_shadowed(p, p->tok.sym));
}

static void bad_number(Parser *p, const Number *n, const char *text, size_t len, bool negative) {
    Span span = parse_tok_span(p);
    const char *sign = negative ? "-" : "";
    if (n->error == DIAG_R0005) {
        span.begin += (uint32_t)n->digits;
        Diag *d = parse_complain(p, DIAG_R0005, span, "`%.*s` is no suffix of %s number",
                                 (int)(len - n->digits), text + n->digits,
                                 n->is_float ? "this" : "a");
        if (d)
            diag_add_fact(d, n->is_float
                                 ? "the suffixes of floats are f16 bf16 f32 f64, and f for f32"
                                 : "the suffixes are i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 "
                                   "f32 f64, i for i32, f for f32");
        return;
    }
    if (n->dtype)
        parse_complain(p, DIAG_R0006, span, "`%s%.*s` is out of the range of %s", sign,
                       (int)n->digits, text, n->dtype);
    else
        parse_complain(p, DIAG_R0006, span, "`%s%.*s` is out of the range of %s", sign,
                       (int)n->digits, text, n->is_float ? "every float" : "int64");
}

/* A number with the minus before it passed, inf, nan, a string, True, False. */
Ast *parse_literal(Parser *p, bool negative) {
    Token t = p->tok;
    const char *text = p->source->text + t.begin;
    size_t len = t.end - t.begin;
    Ast *e = parse_node(p, AST_INT, t.begin);
    if (t.kind == TOK_STRING) {
        size_t bad_at, bad_len;
        e->kind = AST_STRING;
        e->text = literal_read_string(text, len, p->lex.versioned, &e->text_len, &bad_at, &bad_len);
        if (!e->text) {
            uint32_t at = t.begin + (uint32_t)bad_at;
            parse_complain(p, DIAG_R0004, parse_span(p, at, at + (uint32_t)bad_len),
                           "`%.*s` is no escape", (int)bad_len, text + bad_at);
            e->text = "";
        }
    } else if (t.word == WORD_TRUE || t.word == WORD_FALSE) {
        e->kind = AST_BOOL;
        e->i = t.word == WORD_TRUE;
    } else {
        Number n = literal_read_number(text, len, negative);
        if (n.error != DIAG_NONE)
            bad_number(p, &n, text, len, negative);
        e->kind = n.is_float ? AST_FLOAT : AST_INT;
        e->dtype = n.dtype ? sym_intern(n.dtype) : NULL;
        e->text = text;
        e->text_len = n.digits;
        if (n.is_float)
            e->f = n.f;
        else
            e->i = (int64_t)(negative ? 0 - n.magnitude : n.magnitude);
    }
    parse_advance(p);
    e->span.end = p->prev_end;
    return e;
}

bool parse_begins_expr(const Token *t) {
    switch ((int)t->kind) {
    case TOK_NUMBER:
    case TOK_STRING:
    case TOK_LOCAL:
    case TOK_GLOBAL:
    case TOK_GRAPH:
    case TOK_LPAREN:
    case TOK_LBRACKET:
    case TOK_LBRACE:
    case TOK_MINUS:
    case TOK_BANG: return true;
    case TOK_IDENT: break;
    default: return false;
    }
    switch ((int)t->word) {
    case WORD_LET:
    case WORD_IF:
    case WORD_MATCH:
    case WORD_FN:
    case WORD_TRUE:
    case WORD_FALSE: return true;
    }
    WordClass c = word_get_class(t->word);
    return c == WORDCLASS_NONE || c == WORDCLASS_SOFT;
}

/* ---- brackets -------------------------------------------------------------------------------- */

/* '(' ')' | '(' sequence ')' | '(' e ',' … ')' */
static Ast *read_round(Parser *p) {
    uint32_t begin = p->tok.begin;
    Opened opened = parse_open(p);
    Ast *tuple = parse_node(p, AST_TUPLE, begin), *e = tuple;
    if (!parse_at(p, TOK_RPAREN)) {
        e = parse_sequence(p);
        if (!p->panic && parse_at(p, TOK_COMMA)) {
            vec_push(&tuple->args, e);
            e = tuple;
            while (parse_more(p, TOK_RPAREN))
                vec_push(&tuple->args, parse_expr(p));
        }
    }
    parse_close(p, TOK_RPAREN, opened);
    e->span = parse_span_from(p, begin);
    return e;
}

static void read_elements(Parser *p, TokenKind close, AstVec *args) {
    Opened opened = parse_open(p);
    while (!p->panic && p->tok.kind != close) {
        vec_push(args, parse_expr(p));
        if (!parse_more(p, close))
            break;
    }
    parse_close(p, close, opened);
}

static Ast *read_bracketed(Parser *p, AstKind kind, uint32_t begin) {
    Ast *e = parse_node(p, kind, begin);
    read_elements(p, TOK_RBRACKET, &e->args);
    e->span = parse_span_from(p, begin);
    return e;
}

static Ast *index_part(Parser *p) {
    if (parse_at(p, TOK_COLON) || parse_at(p, TOK_COMMA) || parse_at(p, TOK_RBRACKET))
        return NULL;
    p->ctx = CTX_INDEX;
    Ast *e = parse_expr(p);
    p->ctx = 0;
    return e;
}

/* '...' | 'None' | e | [e] ':' [e] [':' [e]]; `::` is two colons here. */
static AstIndex read_index(Parser *p) {
    AstIndex index = {.kind = INDEX_AT};
    uint32_t begin = p->tok.begin;
    if (parse_accept(p, TOK_ELLIPSIS)) {
        index.kind = INDEX_ELLIPSIS;
    } else if (parse_at_soft(p, WORD_NONE_VALUE)) {
        index.kind = INDEX_NEW_AXIS;
        parse_advance(p);
    } else {
        if (!parse_at(p, TOK_COLON) && !parse_at(p, TOK_COLONCOLON)) {
            if (parse_at(p, TOK_COMMA))
                parse_unexpected(p, "an index");
            index.at = index_part(p);
        }
        if (parse_at(p, TOK_COLON) || parse_at(p, TOK_COLONCOLON)) {
            index.kind = INDEX_SLICE;
            index.begin = index.at;
            index.at = NULL;
            if (parse_accept(p, TOK_COLONCOLON)) {
                index.step = index_part(p);
            } else {
                parse_advance(p);
                index.end = index_part(p);
                if (parse_accept(p, TOK_COLON))
                    index.step = index_part(p);
            }
        }
    }
    index.span = parse_span_from(p, begin);
    return index;
}

void parse_indices(Parser *p, Ast *e) {
    Opened opened = parse_open(p);
    if (parse_at(p, TOK_RBRACKET))
        parse_unexpected(p, "an index");
    while (!p->panic && !parse_at(p, TOK_RBRACKET)) {
        AstIndex index = read_index(p);
        vec_push(&e->indices, index);
        if (!parse_more(p, TOK_RBRACKET))
            break;
    }
    parse_close(p, TOK_RBRACKET, opened);
}

/* Whether brackets after a instantiate it: after a def, a constructor, an operator. Of a name nobody
 * knows, what stands in the brackets decides. */
static bool takes_types(Parser *p, const Ast *a) {
    if (a->kind != AST_NAME || a->name.sigil == SIGIL_LOCAL)
        return false;
    bool local;
    KnownName known = parse_find_name(p, a->name.sym, &local);
    switch (known) {
    case KNOWN_DEF: return true;
    case KNOWN_VALUE: return local && a->name.sigil == SIGIL_GLOBAL;
    case KNOWN_NOTHING: break;
    }
    Token t = parse_peek(p);
    char c = a->name.sym->text[0];
    return a->name.sigil == SIGIL_GLOBAL || (c >= 'A' && c <= 'Z') ||
           (t.kind == TOK_IDENT && (word_is_type(t.word) || t.word == WORD_FN));
}

static Ast *instantiate(Parser *p, Ast *a) {
    Ast *e = parse_node(p, AST_INSTANTIATE, a->span.begin);
    e->op_span = parse_tok_span(p);
    e->a = a;
    return e;
}

Ast *parse_brackets(Parser *p, Ast *a) {
    uint32_t bracket = p->tok.begin;
    if (takes_types(p, a)) {
        Ast *e = instantiate(p, a);
        Opened opened = parse_open(p);
        if (parse_at(p, TOK_RBRACKET))
            parse_unexpected(p, "a type");
        parse_type_args(p, TOK_RBRACKET, &e->type_args);
        parse_close(p, TOK_RBRACKET, opened);
        e->op_span = parse_span_from(p, bracket);
        e->span.end = p->prev_end;
        return e;
    }
    Ast *e = parse_node(p, AST_INDEX, a->span.begin);
    e->a = a;
    parse_indices(p, e);
    e->op_span = parse_span_from(p, bracket);
    e->span.end = p->prev_end;
    return e;
}

/* f '<' T, … '>' '(' with nothing between `f<` and `>(`: types, or else a comparison. */
static Ast *try_angle_types(Parser *p, Ast *a) {
    if (p->tok.blank_before || (a->kind != AST_NAME))
        return NULL;
    Saved saved = parse_save(p);
    Ast *e = instantiate(p, a);
    parse_advance(p);
    p->ctx = 0;
    bool ok = !parse_at(p, TOK_GT);
    parse_type_args(p, TOK_GT, &e->type_args);
    ok = ok && !p->panic && parse_at(p, TOK_GT);
    if (ok) {
        Token next = parse_peek(p);
        ok = next.kind == TOK_LPAREN && !next.blank_before;
    }
    Token after = p->tok;
    uint32_t prev_end = p->prev_end;
    parse_restore(p, saved);
    if (!ok)
        return NULL;
    p->tok = after;
    p->prev_end = prev_end;
    parse_advance(p);
    e->op_span.end = e->span.end = p->prev_end;
    return e;
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* ref(e), ref_read(r), read(r), ref_write(r, e): calls that are syntax, unless bound. */
static void set_reference(Parser *p, Ast *call) {
    const Ast *f = call->a;
    if (f->kind != AST_NAME || f->name.sigil != SIGIL_NONE || call->type_args.len ||
        call->attrs.len)
        return;
    const Word *word = NULL;
    Token t;
    lexer_read(&p->lex, f->name.span.begin, &t);
    word = &t.word;
    AstKind kind = *word == WORD_REF                              ? AST_REF
                   : *word == WORD_READ || *word == WORD_REF_READ ? AST_REF_READ
                   : *word == WORD_REF_WRITE                      ? AST_BINARY
                                                                  : AST_CALL;
    size_t n = kind == AST_BINARY ? 2 : 1;
    if (kind == AST_CALL || call->args.len != n || f->name.sym != t.sym ||
        parse_is_shadowed(p, f->name.sym))
        return;
    call->kind = kind;
    call->op = BINOP_ASSIGN; /* of AST_BINARY */
    call->a = call->args.data[0];
    call->b = n == 2 ? call->args.data[1] : NULL;
    call->args.len = 0;
}

/* f '(' e, …, name '=' value, … ')' */
static Ast *read_call(Parser *p, Ast *f) {
    Ast *e = parse_node(p, AST_CALL, f->span.begin);
    e->a = f;
    e->op_span = f->span;
    if (f->kind == AST_INSTANTIATE) {
        e->a = f->a;
        e->type_args = f->type_args;
    }
    Opened opened = parse_open(p);
    while (!p->panic && !parse_at(p, TOK_RPAREN)) {
        if (parse_at_attr(p)) {
            bool before = p->in_call;
            p->in_call = true;
            parse_attrs(p, TOK_RPAREN, &e->attrs);
            p->in_call = before;
            break;
        }
        vec_push(&e->args, parse_expr(p));
        if (!parse_more(p, TOK_RPAREN))
            break;
    }
    parse_close(p, TOK_RPAREN, opened);
    e->span.end = p->prev_end;
    set_reference(p, e);
    return e;
}

/* a '.' digits | a '.' field; the digits end at a dot: `x.1.0` is two projections. */
static Ast *read_dot(Parser *p, Ast *a) {
    Ast *e = parse_node(p, AST_PROJ, a->span.begin);
    e->a = a;
    e->op_span = parse_tok_span(p);
    Token dot = p->tok, t = parse_peek(p);
    parse_advance(p);
    if (t.kind == TOK_NUMBER) {
        uint32_t end = t.begin;
        while (end < t.end && p->source->text[end] >= '0' && p->source->text[end] <= '9')
            end++;
        parse_cut(p, end);
        if (!parse_index_number(p, t.begin, end, &e->i))
            parse_mistake(p, DIAG_R0006, parse_span(p, t.begin, end), "no tuple is that long");
        parse_advance(p);
    } else if (t.kind == TOK_IDENT) {
        e->kind = AST_FIELD;
        e->field = t.sym;
        parse_advance(p);
    } else if ((a->kind == AST_INT || a->kind == AST_FLOAT) && dot.begin == a->span.end) {
        parse_mistake(p, DIAG_R0005, parse_span(p, a->span.begin, dot.end),
                      "this number has no digit behind its dot");
    } else {
        parse_unexpected(p, "a field or the number of an element");
    }
    e->op_span = parse_span_from(p, dot.begin);
    e->span.end = p->prev_end;
    return e;
}

/* C '{' w ':' e, … '}' */
static Ast *read_record(Parser *p, const Ast *name) {
    Ast *e = parse_node(p, AST_RECORD, name->span.begin);
    e->name = name->name;
    e->op_span = name->span;
    Opened opened = parse_open(p);
    while (!p->panic && !parse_at(p, TOK_RBRACE)) {
        vec_push(&e->fields, parse_binder(p, false, "the name of a field"));
        parse_expect(p, TOK_COLON);
        vec_push(&e->args, parse_expr(p));
        if (!parse_more(p, TOK_RBRACE))
            break;
    }
    parse_close(p, TOK_RBRACE, opened);
    parse_check_twice(p, &e->fields, "field");
    e->span.end = p->prev_end;
    return e;
}

/* primary (call | '.' … | '[' … ']' | '<' … '>' | record)* */
Ast *parse_postfix(Parser *p) {
    bool plain = parse_at(p, TOK_IDENT); /* a name in parentheses begins no record */
    Ast *e = parse_primary(p);
    for (;; plain = false) {
        Ast *next = NULL;
        if (p->panic)
            return e;
        switch ((int)p->tok.kind) {
        case TOK_LPAREN:
            if (!parse_line_ended(p))
                next = read_call(p, e);
            break;
        case TOK_LBRACKET:
            if (!parse_line_ended(p))
                next = parse_brackets(p, e);
            break;
        case TOK_DOT: next = read_dot(p, e); break;
        case TOK_LT: next = try_angle_types(p, e); break;
        case TOK_LBRACE:
            if (plain && e->kind == AST_NAME && !(p->ctx & CTX_NO_RECORD) && !parse_line_ended(p))
                next = read_record(p, e);
            break;
        }
        if (!next)
            return e;
        e = next;
    }
}

/* ---- primaries ------------------------------------------------------------------------------- */

static Ast *read_name(Parser *p) {
    uint32_t begin = p->tok.begin;
    Name name = parse_name_ref(p);
    Ast *e = parse_node(p, AST_NAME, begin);
    e->name = name;
    return e;
}

/* 'Zero' T */
static Ast *read_zero(Parser *p) {
    Ast *e = parse_node(p, AST_ZERO, p->tok.begin);
    e->op_span = parse_tok_span(p);
    parse_advance(p);
    e->type = parse_type_atom(p);
    e->span.end = p->prev_end;
    return e;
}

static Ast *read_meta(Parser *p) {
    Ast *e = parse_node(p, AST_META, p->tok.begin);
    parse_meta(p, &e->text, &e->text_len, &e->i);
    e->span.end = p->prev_end;
    return e;
}

static bool begins_type(const Token *t) {
    return t->kind == TOK_LPAREN ||
           (t->kind == TOK_IDENT &&
            (word_get_class(t->word) != WORDCLASS_RESERVED || t->word == WORD_FN));
}

static Ast *read_word(Parser *p) {
    Token t = p->tok, next = parse_peek(p);
    switch ((int)t.word) {
    case WORD_TRUE:
    case WORD_FALSE: return parse_literal(p, false);
    case WORD_FN: return parse_fn(p);
    case WORD_IF: return parse_if(p);
    case WORD_MATCH: return parse_match(p);
    case WORD_LET: return parse_sequence(p);
    case WORD_WHERE: /* the operator */ return read_name(p);
    case WORD_LIST:
        if (next.kind == TOK_LBRACKET && !parse_is_shadowed(p, t.sym)) {
            parse_advance(p);
            return read_bracketed(p, AST_LIST, t.begin);
        }
        break;
    case WORD_ZERO:
        if (begins_type(&next) && !((p->ctx & CTX_LINE) && next.break_before) &&
            !parse_is_shadowed(p, t.sym))
            return read_zero(p);
        break;
    case WORD_META:
        if (next.kind == TOK_LBRACKET && !parse_is_shadowed(p, t.sym))
            return read_meta(p);
        break;
    }
    if (word_get_class(t.word) == WORDCLASS_RESERVED || word_is_type(t.word)) {
        size_t said = p->diags->list.len;
        parse_unexpected(p, "an expression");
        if (word_is_type(t.word) && p->diags->list.len > said)
            diag_add_help(vec_last(&p->diags->list),
                          "a type is no value: a cast is written `(float64) x`, and an operator's "
                          "dtype `dtype=float64`");
        return parse_error_node(p);
    }
    if (parse_at_literal_number(p))
        return parse_literal(p, false);
    if (t.sym->len == 1 && t.sym->text[0] == '_') {
        Ast *e = parse_node(p, AST_HOLE, t.begin);
        parse_advance(p);
        e->span.end = p->prev_end;
        return e;
    }
    return read_name(p);
}

Ast *parse_primary(Parser *p) {
    uint32_t begin = p->tok.begin;
    if (p->panic)
        return parse_error_node(p);
    switch ((int)p->tok.kind) {
    case TOK_NUMBER:
    case TOK_STRING: return parse_literal(p, false);
    case TOK_IDENT: return read_word(p);
    case TOK_LOCAL:
    case TOK_GLOBAL: return read_name(p);
    case TOK_GRAPH: {
        Ast *e = parse_node(p, AST_GRAPH_VAR, begin);
        if (!parse_index_number(p, begin + 1, p->tok.end, &e->i))
            parse_mistake(p, DIAG_R0006, parse_tok_span(p), "no graph binding has such a number");
        parse_advance(p);
        e->span.end = p->prev_end;
        return e;
    }
    case TOK_LPAREN: return read_round(p);
    case TOK_LBRACKET: return read_bracketed(p, AST_TENSOR, begin);
    case TOK_LBRACE: return parse_block(p);
    }
    Token next = p->tok.kind == TOK_DOT ? parse_peek(p) : p->tok;
    if (next.kind == TOK_NUMBER && next.begin == p->tok.end)
        parse_mistake(p, DIAG_R0005, parse_span(p, begin, next.end),
                      "this number has no digit before its dot");
    else
        parse_unexpected(p, "an expression");
    return parse_error_node(p);
}
