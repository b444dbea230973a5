/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: sequences, operators, calls and indices (LANGUAGE §3). Chains of any length are read in
 * loops, with the operators waiting on a stack of their own (Dijkstra's shunting yard). */
#include "parser/parse_internal.h"

#include <string.h>

/* ---- sequences ------------------------------------------------------------------------------- */

static bool at_free_var(Parser *p) {
    if (!parse_at_soft(p, WORD_FREE_VAR))
        return false;
    TokenKind next = parse_peek(p).kind;
    return next == TOK_LOCAL || next == TOK_IDENT;
}

static bool at_graph_let(Parser *p) {
    return parse_at(p, TOK_GRAPH) && parse_peek(p).kind == TOK_EQUAL;
}

static int64_t graph_index(Parser *p) {
    int64_t i = 0;
    if (!parse_index_number(p, p->tok.begin + 1, p->tok.end, &i))
        parse_mistake(p, DIAG_R0006, parse_tok_span(p),
                      "the number of a graph binding is too large");
    return i;
}

/* The right side of a binding: its own `;` belongs to the binding. */
static Ast *bound_value(Parser *p) {
    unsigned ctx = p->ctx;
    p->ctx = (ctx & ~(unsigned)(p->options->prompt ? 0 : CTX_LINE)) | CTX_NO_SEMI;
    Ast *value = parse_expr(p);
    p->ctx = ctx;
    return p->panic ? parse_error_node(p) : value;
}

/* 'let' pattern [':' T] '=' e; the function literal after a recursive binding sees its name. The bindings of
 * the pattern's variables hang in the body already. */
static Ast *read_let(Parser *p) {
    Ast *let = parse_node(p, AST_LET, p->tok.begin);
    let->op_span = parse_tok_span(p);
    parse_advance(p);
    LetHead head = parse_let_head(p, false);
    let->name = head.name;
    let->type = head.type;
    let->pattern = head.pattern;
    parse_expect(p, TOK_EQUAL);
    bool recursive = parse_at_word(p, WORD_FN) && !head.pattern;
    if (recursive)
        parse_let_bind(p, &head);
    let->a = bound_value(p);
    if (!recursive)
        parse_let_bind(p, &head);
    if (head.pattern)
        let->body = parse_take_apart(p, head.pattern, head.name);
    return let;
}

/* %i '=' e */
static Ast *read_graph_let(Parser *p) {
    Ast *let = parse_node(p, AST_GRAPH_LET, p->tok.begin);
    let->op_span = parse_tok_span(p);
    let->i = graph_index(p);
    parse_advance(p);
    parse_expect(p, TOK_EQUAL);
    let->a = bound_value(p);
    return let;
}

/* 'free_var' x [':' T] */
static Ast *read_free_var(Parser *p) {
    Ast *free_var = parse_node(p, AST_FREE_VAR, p->tok.begin);
    free_var->op_span = parse_tok_span(p);
    parse_advance(p);
    free_var->name = parse_binder(p, false, "the name of a free variable");
    if (parse_accept(p, TOK_COLON))
        free_var->type = parse_type_any(p);
    parse_scope_bind(p, free_var->name);
    return free_var;
}

static bool ends_sequence(const Parser *p) {
    return parse_at(p, TOK_RBRACE) || parse_at(p, TOK_RPAREN) || parse_at(p, TOK_RBRACKET) ||
           parse_at(p, TOK_EOF) || parse_at(p, TOK_COMMA) || parse_at(p, TOK_BAR);
}

/* Whether a link ends where the token in hand begins the next line, which could only be another link: the `;` between
 * them is missing. What begins with a sign would go on with the link. */
static bool lacks_semicolon(const Parser *p, bool block) {
    const Token *t = &p->tok;
    if (!block || p->panic || p->muted || !t->break_before || (p->ctx & CTX_NO_SEMI))
        return false;
    if (t->kind != TOK_IDENT)
        return t->kind == TOK_LOCAL || t->kind == TOK_GLOBAL || t->kind == TOK_GRAPH ||
               t->kind == TOK_NUMBER || t->kind == TOK_STRING;
    return word_get_class(t->word) != WORDCLASS_RESERVED || t->word == WORD_LET ||
           t->word == WORD_IF || t->word == WORD_MATCH || t->word == WORD_FN;
}

/* Reports a missing `;`, all of a text in one message, and goes on as if it were there. */
static void pass_line_end(Parser *p, const char *what) {
    enum { MAX_SHOWN = 3 };
    Span span = parse_tok_span(p), end = parse_span(p, p->prev_end, p->prev_end);
    Diag *d = p->unended;
    static const char help[] =
        "in braces a line break ends nothing: a `;` stands after each binding, and after "
        "each expression but the last";
    if (d) {
        vec_push(&d->fixes.data[0]->edits, ((DiagEdit){end, ";"}));
        if (d->labels.len < MAX_SHOWN)
            diag_add_label(d, span, "and here");
        d->helps.data[0].text = fmt_text("%s (%zu are missing)", help, d->fixes.data[0]->edits.len);
        return;
    }
    parse_unexpected(p, what);
    p->panic = false;
    d = p->diags->list.len ? vec_last(&p->diags->list) : NULL;
    if (!d || d->code != DIAG_R0001 || d->primary.span.begin != span.begin)
        return;
    p->unended = d;
    d->cause = DIAG_CAUSE_LINE_END;
    diag_add_help(d, "%s", help);
    diag_add_fix(d, end, ";", NULL, "with `;` this reads");
}

/* After a link of a sequence: true when another follows, false when it ends here without a value. */
static bool next_link(Parser *p, const Ast *link, bool block) {
    if (link->kind == AST_LET && parse_accept_word(p, WORD_IN))
        return true;
    if (!parse_accept(p, TOK_SEMI)) {
        if (p->panic || (link->kind == AST_LET && ends_sequence(p) && !parse_at(p, TOK_EOF)))
            return false;
        if (lacks_semicolon(p, block)) {
            pass_line_end(p, link->kind == AST_LET ? "`;` or `in`" : "an operator, `;` or `}`");
            return true;
        }
        parse_unexpected(p, link->kind == AST_LET ? "`;` or `in`" : "`;`");
        return false;
    }
    return !ends_sequence(p);
}

/* One link or the value at the end (*last). */
static Ast *read_link(Parser *p, bool block, bool *last) {
    *last = false;
    if (parse_at_word(p, WORD_LET))
        return read_let(p);
    if (at_graph_let(p))
        return read_graph_let(p);
    if (at_free_var(p))
        return read_free_var(p);
    Ast *e = parse_expr(p);
    bool ends = !parse_at(p, TOK_SEMI) || (p->ctx & CTX_NO_SEMI);
    if (!p->panic && ends && !lacks_semicolon(p, block)) {
        *last = true;
        return e;
    }
    Ast *seq = parse_node(p, AST_SEQ, e->span.begin);
    seq->op_span = parse_tok_span(p);
    seq->a = p->panic ? parse_error_node(p) : e;
    return seq;
}

/* (binding | e) ';' … [e]. In a block, a mistake is stepped over. */
static Ast *read_sequence(Parser *p, bool block) {
    size_t mark = parse_scope_mark(p), level = p->brackets.len;
    unsigned ctx = p->ctx;
    AstVec links = {0};
    Ast *first = NULL, **slot = &first;
    for (bool last = false, more = true; more && !last;) {
        int depth = p->depth;
        Ast *link = read_link(p, block, &last);
        *slot = link;
        if (last)
            break;
        vec_push(&links, link);
        for (slot = &link->body; *slot; slot = &(*slot)->body)
            vec_push(&links, *slot);
        more = next_link(p, link, block);
        if (p->panic) {
            p->depth = depth;
            p->ctx = ctx;
            more = block && parse_recover(p, level) && !ends_sequence(p);
        }
    }
    for (size_t i = 0; i < links.len; i++)
        links.data[i]->span.end = p->prev_end;
    parse_scope_release(p, mark);
    return first;
}

Ast *parse_sequence(Parser *p) {
    if (p->panic)
        return parse_error_node(p);
    return read_sequence(p, false);
}

/* field ('=' | ':') e ',' … '}' */
static void read_fields(Parser *p, TokenKind sign, Ast *record) {
    while (!p->panic && !parse_at(p, TOK_RBRACE)) {
        vec_push(&record->fields, parse_binder(p, false, "the name of a field"));
        parse_expect(p, sign);
        vec_push(&record->args, parse_expr(p));
        if (!parse_more(p, TOK_RBRACE))
            break;
    }
    parse_check_twice(p, &record->fields, "field");
}

/* 'with' w '=' e, … | 'with' '[' index, … ']' '=' e */
static Ast *read_with(Parser *p, Ast *a, uint32_t begin) {
    Ast *with = parse_node(p, AST_WITH, begin);
    with->op_span = parse_tok_span(p);
    with->a = a;
    parse_advance(p);
    if (!parse_at(p, TOK_LBRACKET)) {
        read_fields(p, TOK_EQUAL, with);
        return with;
    }
    with->kind = AST_WITH_AT;
    parse_indices(p, with);
    with->op_span.end = p->prev_end;
    parse_expect(p, TOK_EQUAL);
    vec_push(&with->args, parse_expr(p));
    if (!p->panic && parse_at(p, TOK_COMMA))
        parse_unexpected(p, "`}`: one part at a time is replaced");
    return with;
}

/* '{' sequence '}' | '{' e with '}' */
Ast *parse_block(Parser *p) {
    uint32_t begin = p->tok.begin;
    if (p->panic || !parse_at(p, TOK_LBRACE)) {
        parse_unexpected(p, "`{`");
        return parse_error_node(p);
    }
    Opened opened = parse_open(p);
    Ast *e;
    if (parse_at(p, TOK_RBRACE)) {
        e = parse_node(p, AST_TUPLE, begin);
    } else {
        e = read_sequence(p, true);
        if (!p->panic && parse_at_word(p, WORD_WITH)) {
            e = read_with(p, e, begin);
        }
    }
    bool updates = e->kind == AST_WITH || e->kind == AST_WITH_AT;
    parse_close_after(p, TOK_RBRACE, opened, updates ? EXPECTED_OTHER : EXPECTED_OPERATOR,
                      updates ? "`,` or `}`" : "an operator, `;` or `}`");
    e->span = parse_span_from(p, begin);
    return e;
}

/* ---- operators ------------------------------------------------------------------------------- */

typedef struct Pending {
    BinOp op;
    Span span;
} Pending;

/* The binary operator in hand. `**` is not among them: it stands further in, in read_power. */
static bool find_operator(const Parser *p, Pending *pending) {
    TokenKind kind = p->tok.kind;
    BinOp op = infix_find(kind);
    if (p->panic || op == BINOP_COUNT || infix_table[op].prec > PREC_UNARY ||
        (kind == TOK_MINUS && parse_line_ended(p)) ||
        (kind == TOK_COLONCOLON && (p->ctx & CTX_INDEX)))
        return false;
    *pending = (Pending){op, parse_tok_span(p)};
    return true;
}

typedef struct Yard {
    AstVec operands;
    VEC(Pending) operators;
} Yard;

/* Joins the two innermost operands. */
static void reduce(Parser *p, Yard *yard) {
    Pending op = vec_pop(&yard->operators);
    Ast *b = vec_pop(&yard->operands), *a = vec_pop(&yard->operands);
    Ast *e = parse_node(p, AST_BINARY, a->span.begin);
    e->span = span_join(a->span, b->span);
    e->op_span = op.span;
    e->op = (uint8_t)op.op;
    e->a = a;
    e->b = b;
    vec_push(&yard->operands, e);
}

/* unary (operator unary)* */
Ast *parse_expr(Parser *p) {
    if (!parse_enter(p)) {
        parse_leave(p);
        return parse_error_node(p);
    }
    Ast *e = parse_unary(p);
    Pending op;
    if (find_operator(p, &op)) {
        Yard yard = {0};
        vec_push(&yard.operands, e);
        do {
            while (yard.operators.len > 0 &&
                   infix_table[vec_last(&yard.operators).op].prec >= infix_left(op.op))
                reduce(p, &yard);
            vec_push(&yard.operators, op);
            parse_advance(p);
            vec_push(&yard.operands, parse_unary(p));
        } while (find_operator(p, &op));
        while (yard.operators.len > 0)
            reduce(p, &yard);
        e = yard.operands.data[0];
    }
    parse_leave(p);
    return e;
}

static Ast *unary_node(Parser *p, AstKind kind, uint32_t begin, Span op_span, Ast *a) {
    Ast *e = parse_node(p, kind, begin);
    e->op_span = op_span;
    e->a = a;
    return e;
}

/* '-' and a number directly after it are one literal, unless `**` or a call would bind tighter. */
static bool minus_folds(Parser *p) {
    Token number = parse_peek(p), after;
    if (number.kind == TOK_IDENT) {
        if (!literal_is_special(number.sym->text, number.sym->len) ||
            parse_is_shadowed(p, number.sym))
            return false;
    } else if (number.kind != TOK_NUMBER) {
        return false;
    }
    lexer_read(&p->lex, number.end, &after);
    return after.kind != TOK_STARSTAR && after.kind != TOK_DOT && after.kind != TOK_LPAREN &&
           after.kind != TOK_LBRACKET;
}

/* '(' b ')' of a type parameter, before what cannot go on an expression: not `-`, `(`, `[`, since a
 * size is a value too (`(n) - 1`). */
static bool at_param_cast(Parser *p, const Token *name) {
    bool found = false;
    for (size_t i = p->type_params.len; i-- > 0 && !found;)
        found = p->type_params.data[i] == name->sym;
    Token close, next;
    if (!found || parse_is_shadowed(p, name->sym))
        return false;
    lexer_read(&p->lex, name->end, &close);
    if (close.kind != TOK_RPAREN)
        return false;
    lexer_read(&p->lex, close.end, &next);
    return parse_begins_expr(&next) && !((p->ctx & CTX_LINE) && next.break_before) &&
           next.kind != TOK_LPAREN && next.kind != TOK_LBRACKET && next.kind != TOK_LBRACE &&
           next.kind != TOK_MINUS;
}

/* '(' (dtype | Tensor … | type parameter) ')', which cannot be an expression in parentheses. */
static bool at_cast(Parser *p) {
    if (!parse_at(p, TOK_LPAREN))
        return false;
    Token t = parse_peek(p);
    return t.kind == TOK_IDENT && (word_is_type(t.word) || at_param_cast(p, &t));
}

/* The word in hand is sq, Grad or Ref before an operand. */
static bool at_prefix_word(Parser *p) {
    if (!parse_at_soft(p, WORD_SQ) && !parse_at_soft(p, WORD_GRAD) &&
        !parse_at_soft(p, WORD_BIG_REF))
        return false;
    Token next = parse_peek(p);
    return parse_begins_expr(&next) && !((p->ctx & CTX_LINE) && next.break_before) &&
           next.kind != TOK_LBRACE;
}

/* '!' bang | postfix */
static Ast *read_bang(Parser *p) {
    if (!parse_at(p, TOK_BANG))
        return parse_postfix(p);
    Span op_span = parse_tok_span(p);
    Ast *e = NULL;
    if (parse_enter(p)) {
        parse_advance(p);
        Ast *a = read_bang(p);
        e = unary_node(p, AST_UNARY, op_span.begin, op_span, a);
        e->op = UNOP_BANG;
    }
    parse_leave(p);
    return e ? e : parse_error_node(p);
}

/* What a prefix or `**` stands before: one level further in. */
static Ast *read_operand(Parser *p) {
    Ast *e = parse_enter(p) ? parse_unary(p) : parse_error_node(p);
    parse_leave(p);
    return e;
}

/* bang ['**' unary] */
static Ast *read_power(Parser *p) {
    Ast *base = read_bang(p);
    if (p->panic || !parse_at(p, TOK_STARSTAR))
        return base;
    Span op_span = parse_tok_span(p);
    parse_advance(p);
    Ast *exponent = read_operand(p);
    Ast *e = unary_node(p, AST_BINARY, base->span.begin, op_span, base);
    e->op = BINOP_POW;
    e->b = exponent;
    return e;
}

/* '(' T ')' unary */
static Ast *read_cast(Parser *p) {
    uint32_t begin = p->tok.begin;
    Opened opened = parse_open(p);
    AstType *type = parse_type_any(p);
    parse_close_after(p, TOK_RPAREN, opened, EXPECTED_OTHER, "`)`");
    Span op_span = parse_span_from(p, begin);
    Ast *operand = read_operand(p);
    Ast *e = unary_node(p, AST_CAST, begin, op_span, operand);
    e->type = type;
    return e;
}

/* '-' unary, a negative number being one literal */
static Ast *read_minus(Parser *p) {
    Span op_span = parse_tok_span(p);
    bool folds = minus_folds(p);
    parse_advance(p);
    if (folds) {
        Ast *e = parse_literal(p, true);
        e->span = parse_span_from(p, op_span.begin);
        return e;
    }
    Ast *operand = read_operand(p);
    Ast *e = unary_node(p, AST_UNARY, op_span.begin, op_span, operand);
    e->op = UNOP_NEG;
    return e;
}

/* ('-' | 'sq' | 'Grad' | 'Ref' | cast) unary | power */
Ast *parse_unary(Parser *p) {
    if (p->panic)
        return parse_error_node(p);
    if (parse_at(p, TOK_MINUS))
        return read_minus(p);
    if (at_cast(p))
        return read_cast(p);
    if (!parse_at(p, TOK_IDENT) || !at_prefix_word(p))
        return read_power(p);
    Span op_span = parse_tok_span(p);
    Word word = p->tok.word;
    parse_advance(p);
    Ast *a = read_operand(p);
    AstKind kind = word == WORD_SQ ? AST_UNARY : word == WORD_GRAD ? AST_GRAD : AST_REF;
    Ast *e = unary_node(p, kind, op_span.begin, op_span, a);
    e->op = word == WORD_SQ ? UNOP_SQ : 0;
    return e;
}
