/* SPDX-License-Identifier: Apache-2.0 */
/* Items (LANGUAGE §2). */
#include "parser/parse_internal.h"

#include <string.h>

/* ---- documentation --------------------------------------------------------------------------- */

static bool is_doc(const Parser *p, const Comment *c) {
    const char *text = p->source->text + c->span.begin;
    size_t n = c->span.end - c->span.begin;
    return c->own_line && n >= 3 && memcmp(text, "///", 3) == 0 && (n == 3 || text[3] != '/');
}

bool parse_ends_in_doc(const Parser *p) {
    const Module *m = p->module;
    return m->comments.len && is_doc(p, &vec_last(&m->comments));
}

/* Only blanks and at most one line break lie between, and prompts of a session. */
static bool adjoins(const Parser *p, uint32_t end, uint32_t begin) {
    int breaks = 0;
    for (uint32_t i = end; i < begin; i++) {
        if (p->source->text[i] == '\n') {
            breaks++;
            i = lexer_skip_prompt(p->source, i + 1) - 1;
        } else if (!strchr(" \t\r", p->source->text[i]))
            return false;
    }
    return breaks <= 1;
}

/* The `///` lines directly before the token in hand, without their slashes. */
static const char *read_doc(const Parser *p) {
    const Module *m = p->module;
    size_t lo = 0, hi = m->comments.len;
    while (lo < hi) { /* the first comment behind the token */
        size_t mid = lo + (hi - lo) / 2;
        if (m->comments.data[mid].span.begin < p->tok.begin)
            lo = mid + 1;
        else
            hi = mid;
    }
    uint32_t before = p->tok.begin;
    size_t first = lo;
    while (first > 0 && is_doc(p, &m->comments.data[first - 1]) &&
           adjoins(p, m->comments.data[first - 1].span.end, before))
        before = m->comments.data[--first].span.begin;
    if (first == lo)
        return NULL;
    Str doc = {0};
    for (size_t i = first; i < lo; i++) {
        Span s = m->comments.data[i].span;
        uint32_t at = s.begin + 3;
        if (at < s.end && p->source->text[at] == ' ')
            at++;
        if (i > first)
            str_add_char(&doc, '\n');
        str_add_n(&doc, p->source->text + at, s.end - at);
    }
    return str_text(&doc);
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* C | C '(' T, … ')' | C '{' w ':' T, … '}' */
static AstCtor read_ctor(Parser *p) {
    AstCtor ctor = {.name = parse_binder(p, false, "the name of a constructor")};
    NameVec names = {0};
    if (p->panic || (!parse_at(p, TOK_LPAREN) && !parse_at(p, TOK_LBRACE)))
        return ctor;
    ctor.named = parse_at(p, TOK_LBRACE);
    TokenKind close = ctor.named ? TOK_RBRACE : TOK_RPAREN;
    Opened opened = parse_open(p);
    while (!p->panic && p->tok.kind != close) {
        AstField field = {0};
        uint32_t begin = p->tok.begin;
        if (ctor.named) {
            Name name = parse_binder(p, false, "the name of a field");
            field.name = name.sym;
            vec_push(&names, name);
            parse_expect(p, TOK_COLON);
        }
        field.type = parse_type_any(p);
        field.span = parse_span_from(p, begin);
        vec_push(&ctor.fields, field);
        if (!parse_more(p, close))
            break;
    }
    parse_close(p, close, opened);
    parse_check_twice(p, &names, "field");
    return ctor;
}

/* 'type' T [parameters] ['{' C (',' | '|') … '}'] */
static void read_type(Parser *p, Item *item) {
    item->kind = ITEM_TYPE;
    parse_advance(p);
    item->name = parse_binder(p, false, "the name of a type");
    parse_type_params(p, &item->type_params);
    if (p->panic || !parse_at(p, TOK_LBRACE)) {
        bool ends = parse_at(p, TOK_SEMI) || p->tok.break_before ||
                    (parse_at(p, TOK_EOF) && !p->options->prompt);
        if (!ends)
            parse_unexpected(p, "`{`");
        return;
    }
    Opened opened = parse_open(p);
    parse_accept(p, TOK_BAR);
    while (!p->panic && !parse_at(p, TOK_RBRACE)) {
        AstCtor ctor = read_ctor(p);
        vec_push(&item->ctors, ctor);
        if (!parse_accept(p, TOK_COMMA) && !parse_accept(p, TOK_BAR))
            break;
    }
    bool fields = !p->panic && item->ctors.len == 1 && parse_at(p, TOK_COLON) &&
                  !item->ctors.data[0].fields.len;
    size_t before = p->diags->list.len;
    parse_close(p, TOK_RBRACE, opened);
    if (fields && p->diags->list.len > before && item->name.sym)
        diag_add_help(vec_last(&p->diags->list),
                      "fields stand behind the name of a constructor: `type %s { %s { %s: ... } }`",
                      item->name.sym->text, item->name.sym->text,
                      item->ctors.data[0].name.sym->text);
}

static const char *read_text(Parser *p, const char *what) {
    if (p->panic || !parse_at(p, TOK_STRING)) {
        parse_unexpected(p, what);
        return "";
    }
    return parse_literal(p, false)->text;
}

/* 'operator' f ':' T '=' "symbol" 'from' "library" */
static void read_operator(Parser *p, Item *item) {
    item->kind = ITEM_OPERATOR;
    parse_advance(p);
    item->name = parse_binder(p, true, "the name of an operator");
    parse_expect(p, TOK_COLON);
    item->type = parse_type_any(p);
    parse_expect(p, TOK_EQUAL);
    item->symbol = read_text(p, "the name of a C function in quotes");
    parse_expect_word(p, WORD_FROM);
    item->path = read_text(p, "the name of a library in quotes");
}

static void read_names(Parser *p, TokenKind stop, const char *what, NameVec *names) {
    while (!p->panic && p->tok.kind != stop && !parse_at(p, TOK_RPAREN)) {
        vec_push(names, parse_binder(p, false, what));
        if (!parse_accept(p, TOK_COMMA))
            break;
    }
}

/* An operator that exists: `where` is one, too. */
static Name read_operator_name(Parser *p) {
    return parse_at(p, TOK_IDENT) ? parse_dotted(p, "the name of an operator")
                                  : parse_binder(p, true, "the name of an operator");
}

/* ('derivative' | 'tangent') op '(' a, … ';' out, … ')' '{' e '}' */
static void read_rule(Parser *p, Item *item, ItemKind kind) {
    NameVec names = {0};
    item->kind = kind;
    item->fn = mem_new(AstFn);
    parse_advance(p);
    item->name = read_operator_name(p);
    size_t mark = parse_scope_mark(p);
    if (!p->panic && parse_at(p, TOK_LPAREN)) {
        Opened opened = parse_open(p);
        read_names(p, TOK_SEMI, "an argument of the operator", &names);
        parse_expect(p, TOK_SEMI);
        read_names(p, TOK_RPAREN,
                   kind == ITEM_DERIVATIVE ? "the result or its cotangent"
                                           : "the result or a tangent",
                   &item->extra);
        parse_close(p, TOK_RPAREN, opened);
    } else {
        parse_unexpected(p, "`(`");
    }
    for (size_t i = 0; i < names.len; i++) {
        AstParam param = {.name = names.data[i]};
        vec_push(&item->fn->params, param);
    }
    for (size_t i = 0; i < item->extra.len; i++)
        vec_push(&names, item->extra.data[i]);
    parse_check_twice(p, &names, "name");
    for (size_t i = 0; i < names.len; i++)
        parse_scope_bind(p, names.data[i]);
    item->fn->body = parse_block(p);
    parse_scope_release(p, mark);
}

/* 'import' ("path" | m ['as' n | '(' name, … ')']) */
static void read_import(Parser *p, Item *item) {
    item->kind = ITEM_IMPORT;
    parse_advance(p);
    if (parse_at(p, TOK_STRING)) {
        item->path = parse_literal(p, false)->text;
    } else {
        item->name = parse_dotted(p, "a module or a file in quotes");
    }
    if (parse_accept_word(p, WORD_AS))
        item->as = parse_binder(p, false, "a name for the module").sym;
    else if (!p->panic && parse_at(p, TOK_LPAREN) && !p->tok.break_before) {
        Opened opened = parse_open(p);
        item->has_names = true;
        while (!p->panic && !parse_at(p, TOK_RPAREN)) {
            vec_push(&item->names, parse_binder(p, true, "a name of the module"));
            if (!parse_more(p, TOK_RPAREN))
                break;
        }
        parse_close(p, TOK_RPAREN, opened);
    }
}

/* ---- bindings and expressions ---------------------------------------------------------------- */

/* How far the line of the byte at `at` is indented. */
static uint32_t find_indent(const Parser *p, uint32_t at) {
    uint32_t line = at;
    while (line > 0 && p->source->text[line - 1] != '\n')
        line--;
    line = lexer_skip_prompt(p->source, line);
    return (uint32_t)strspn(p->source->text + line, " \t");
}

/* A line break has ended the item. Warns where the next line looks as if it went on: what begins it can begin an
 * expression, and it is indented further. */
static void end_line(Parser *p) {
    if (!parse_at(p, TOK_MINUS) && !parse_at(p, TOK_LPAREN) && !parse_at(p, TOK_LBRACKET))
        return;
    if (find_indent(p, p->tok.begin) <= find_indent(p, p->item_begin))
        return;
    Diag *d = parse_warn(p, DIAG_R0908, parse_tok_span(p),
                         "this line does not go on with the one above");
    if (d) {
        diag_set_label(d, "begins an item of its own");
        diag_add_help(d, "an operator at the end of a line goes on with it, and so does an open "
                         "bracket; `;` says that it "
                         "ends");
    }
}

/* The `;` of a binding, which the end of the line or of the text replaces. */
static void end_binding(Parser *p, const char *what) {
    if (parse_accept(p, TOK_SEMI) || p->panic || parse_at(p, TOK_EOF))
        return;
    if (p->tok.break_before && !p->module->versioned)
        end_line(p);
    else
        parse_unexpected(p, what);
}

static Ast *item_value(Parser *p) {
    p->ctx = CTX_NO_SEMI | (p->module->versioned ? 0 : CTX_LINE);
    Ast *value = parse_expr(p);
    p->ctx = 0;
    return value;
}

static void end_expr(Parser *p, Item *item) {
    item->kind = ITEM_EXPR;
    item->shown = !parse_accept(p, TOK_SEMI);
    if (item->shown && !p->panic && !parse_at(p, TOK_EOF) && !p->tok.break_before)
        parse_unexpected_at(p, EXPECTED_OPERATOR, "an operator, `;` or a line break");
    else if (item->shown && !p->panic && !parse_at(p, TOK_EOF))
        end_line(p);
}

/* The bindings of the item's variables, as items that follow it. */
static void derive_items(Parser *p, const Item *item) {
    for (Ast *e = parse_take_apart(p, item->pattern, item->name); e; e = e->body) {
        Item *part = mem_new(Item);
        part->kind = ITEM_LET;
        part->derived = true;
        part->span = parse_span_from(p, p->prev_end); /* behind the item: spans do not overlap */
        part->name = e->name;
        part->value = e->a;
        part->doc = item->doc;
        vec_push(&p->derived, part);
    }
}

/* 'let' pattern [':' T] '=' e ';' | 'let' pattern [':' T] '=' e 'in' e */
static void read_let(Parser *p, Item *item) {
    Span op_span = parse_tok_span(p);
    uint32_t begin = p->tok.begin;
    size_t mark = parse_scope_mark(p);
    parse_advance(p);
    item->kind = ITEM_LET;
    LetHead head = parse_let_head(p, true);
    item->name = head.name;
    item->type = head.type;
    item->pattern = head.pattern;
    parse_expect(p, TOK_EQUAL);
    bool recursive = parse_at_word(p, WORD_FN) && !head.pattern;
    if (recursive)
        parse_let_bind(p, &head);
    item->value = item_value(p);
    if (!recursive)
        parse_let_bind(p, &head);
    if (!parse_accept_word(p, WORD_IN)) {
        end_binding(p, "`;` or `in`");
        if (head.pattern && !p->panic)
            derive_items(p, item);
        return;
    }
    Ast *let = parse_node(p, AST_LET, begin), **body = &let->body;
    let->op_span = op_span;
    let->name = item->name;
    let->type = item->type;
    let->pattern = item->pattern;
    let->a = item->value;
    if (head.pattern)
        *body = parse_take_apart(p, head.pattern, head.name);
    while (*body)
        body = &(*body)->body;
    p->ctx = CTX_LINE | CTX_NO_SEMI;
    *body = parse_sequence(p);
    p->ctx = 0;
    let->span = parse_span_from(p, begin);
    parse_scope_release(p, mark);
    item->name = (Name){0};
    item->type = NULL;
    item->pattern = NULL;
    item->value = let;
    end_expr(p, item);
}

/* %i '=' e ';' */
static void read_graph_let(Parser *p, Item *item) {
    item->kind = ITEM_GRAPH_LET;
    if (!parse_index_number(p, p->tok.begin + 1, p->tok.end, &item->index))
        parse_mistake(p, DIAG_R0006, parse_tok_span(p),
                      "the number of a graph binding is too large");
    parse_advance(p);
    parse_expect(p, TOK_EQUAL);
    item->value = item_value(p);
    end_binding(p, "`;`");
}

/* 'free_var' x [':' T] ';' */
static void read_free_var(Parser *p, Item *item) {
    item->kind = ITEM_FREE_VAR;
    parse_advance(p);
    item->name = parse_binder(p, true, "the name of a free variable");
    if (parse_accept(p, TOK_COLON))
        item->type = parse_type_any(p);
    parse_scope_bind(p, item->name);
    end_binding(p, "`;`");
}

static bool at_free_var(Parser *p) {
    if (!parse_at_soft(p, WORD_FREE_VAR))
        return false;
    TokenKind next = parse_peek(p).kind;
    return next == TOK_LOCAL || next == TOK_IDENT;
}

static void read_expr(Parser *p, Item *item) {
    p->ctx = CTX_LINE | CTX_NO_SEMI;
    item->value = parse_expr(p);
    p->ctx = 0;
    end_expr(p, item);
}

static void read_item(Parser *p, Item *item) {
    if (at_free_var(p)) {
        read_free_var(p, item);
        return;
    }
    if (parse_at(p, TOK_GRAPH) && parse_peek(p).kind == TOK_EQUAL) {
        read_graph_let(p, item);
        return;
    }
    switch (p->tok.kind == TOK_IDENT ? (int)p->tok.word : 0) {
    case WORD_DEF:
        item->kind = ITEM_DEF;
        parse_advance(p);
        item->name = parse_binder(p, true, "the name of a definition");
        item->fn = parse_fn_rest(p);
        return;
    case WORD_TYPE: read_type(p, item); return;
    case WORD_EXTERN:
        parse_advance(p);
        if (!parse_at_word(p, WORD_TYPE)) {
            parse_unexpected(p, "`type`");
            return;
        }
        parse_advance(p);
        item->kind = ITEM_EXTERN_TYPE;
        item->name = parse_binder(p, false, "the name of a type");
        parse_type_params(p, &item->type_params);
        return;
    case WORD_OPERATOR: read_operator(p, item); return;
    case WORD_DERIVATIVE: read_rule(p, item, ITEM_DERIVATIVE); return;
    case WORD_TANGENT: read_rule(p, item, ITEM_TANGENT); return;
    case WORD_NO_DERIVATIVE:
        item->kind = ITEM_NO_DERIVATIVE;
        parse_advance(p);
        item->name = read_operator_name(p);
        return;
    case WORD_IMPORT: read_import(p, item); return;
    case WORD_LET: read_let(p, item); return;
    }
    read_expr(p, item);
}

Item *parse_item(Parser *p) {
    Item *item = mem_new(Item);
    uint32_t begin = p->tok.begin;
    item->kind = ITEM_ERROR;
    item->doc = read_doc(p);
    read_item(p, item);
    item->span = parse_span_from(p, begin);
    return item;
}
