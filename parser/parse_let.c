/* SPDX-License-Identifier: Apache-2.0 */
/* What `let` and parameters bind: a name, or the variables of a pattern (LANGUAGE §2).
 *
 * Note [Patterns that bind]. A pattern that binds is read as the bindings it stands for, so that nothing
 * behind the reader has to know of it but the check that it takes every value:
 *
 *     let (a, Layer { w, b: _ }) = e;
 *
 *     let (a, w) = e;                  the pattern stays on this link, for inference and the printer;
 *                                      its name is hidden: `(a, w)` is one symbol, which nobody can write
 *     let a = (a, w).0;                from here on links with `flag` (items with `derived`)
 *     let (a, w).1 = (a, w).1;
 *     let w = match ((a, w).1) { Layer { w: %w } => %w };
 *
 * Data is taken apart by name, since it is a name under which the sizes of a value are opened (LANGUAGE §2).
 * A parameter has the hidden name, and the links stand before the body of its function. */
#include <string.h>

#include "parser/parse_internal.h"

/* ---- what begins a pattern ------------------------------------------------------------------- */

static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

/* '(' | C '(' | m.C '{' | 'list' '[' | x '::' */
bool parse_at_let_pattern(Parser *p) {
    if (p->panic)
        return false;
    if (parse_at(p, TOK_LPAREN))
        return true;
    if (!parse_at(p, TOK_IDENT))
        return false;
    Saved saved = parse_save(p);
    bool list = parse_at_soft(p, WORD_LIST);
    char first = p->tok.sym->text[0];
    parse_advance(p);
    while (parse_at(p, TOK_DOT) && parse_peek(p).kind == TOK_IDENT) {
        parse_advance(p);
        first = p->tok.sym->text[0];
        parse_advance(p);
    }
    bool found = (list && parse_at(p, TOK_LBRACKET)) || parse_at(p, TOK_COLONCOLON) ||
                 (is_capital(first) && (parse_at(p, TOK_LPAREN) || parse_at(p, TOK_LBRACE)));
    parse_restore(p, saved);
    return found;
}

void parse_pattern_names(const AstPattern *pattern, NameVec *names) {
    if (pattern->kind == AST_PAT_NAME)
        vec_push(names, pattern->name);
    for (size_t i = 0; i < pattern->args.len; i++)
        parse_pattern_names(pattern->args.data[i], names);
}

enum { LONG_NAME = 60, MAX_NESTING = 1000 };

Name parse_hidden_name(Parser *p, const AstPattern *pattern) {
    NameVec names = {0};
    Str text = {0};
    parse_pattern_names(pattern, &names);
    str_add_char(&text, '(');
    for (size_t i = 0; i < names.len && text.len < LONG_NAME; i++)
        str_printf(&text, "%s%s", i ? ", " : "", names.data[i].sym->text);
    str_add(&text, text.len < LONG_NAME ? ")" : ", ...)");
    return (Name){sym_intern(str_text(&text)), SIGIL_NONE,
                  parse_span(p, pattern->span.begin, pattern->span.end)};
}

/* (x | pattern) [':' T] */
LetHead parse_let_head(Parser *p, bool global) {
    LetHead head = {0};
    if (parse_at_let_pattern(p)) {
        size_t mark = parse_scope_mark(p);
        head.pattern = parse_pattern(p);
        parse_scope_release(p, mark);
        head.name = parse_hidden_name(p, head.pattern);
        NameVec names = {0};
        parse_pattern_names(head.pattern, &names);
        parse_check_twice(p, &names, "variable");
    } else if (parse_at(p, TOK_LBRACKET)) {
        Diag *d = parse_mistake(p, DIAG_R0001, parse_tok_span(p),
                                "expected a name or a pattern, found `[`");
        if (d)
            diag_add_help(d, "the parts of a tensor `t` are `t[0]`, `t[1]` and so on");
    } else {
        head.name = parse_binder(p, global,
                                 global ? "the name of a global" : "the name of a local");
    }
    if (parse_accept(p, TOK_COLON))
        head.type = parse_type_any(p);
    if (!p->panic && parse_at(p, TOK_COMMA) && !head.pattern) {
        Diag *d = parse_mistake(p, DIAG_R0001, parse_tok_span(p), "expected `=`, found `,`");
        if (d)
            diag_add_help(
                d, "a tuple is taken apart by a pattern in parentheses: `let (%s, ...) = ...`",
                head.name.sym->text);
    }
    return head;
}

void parse_let_bind(Parser *p, const LetHead *head) {
    NameVec names = {0};
    if (head->pattern)
        parse_pattern_names(head->pattern, &names);
    else
        vec_push(&names, head->name);
    for (size_t i = 0; i < names.len; i++)
        parse_scope_bind(p, names.data[i]);
}

/* ---- the bindings of its variables ----------------------------------------------------------- */

typedef struct Taking {
    Parser *p;
    Ast *first, **slot;
} Taking;

static Ast *name_node(const Taking *t, Name name) {
    Ast *e = parse_node(t->p, AST_NAME, name.span.begin);
    e->name = name;
    e->span = name.span;
    return e;
}

static void bind_part(Taking *t, Name name, Ast *value) {
    Ast *let = parse_node(t->p, AST_LET, name.span.begin);
    let->flag = true;
    let->span = let->op_span = name.span;
    let->name = name;
    let->a = value;
    *t->slot = let;
    t->slot = &let->body;
}

static AstPattern *pattern_node(AstPatternKind kind, Span span) {
    AstPattern *pattern = mem_new(AstPattern);
    pattern->kind = kind;
    pattern->span = span;
    return pattern;
}

/* match (whole) { C(_, %x, _) => %x }, of the pattern's own form; the part is the one at `at`. */
static Ast *match_part(const Taking *t, const AstPattern *pattern, size_t at, Name whole) {
    const AstPattern *part = pattern->args.data[at];
    Name x = {part->kind == AST_PAT_NAME ? part->name.sym : sym_intern("part"), SIGIL_LOCAL,
              part->span};
    AstPattern *variable = pattern_node(AST_PAT_NAME, part->span);
    variable->name = x;
    AstPattern *own = pattern_node(pattern->kind, pattern->span);
    own->name = pattern->name;
    if (pattern->kind == AST_PAT_RECORD)
        vec_push(&own->fields, pattern->fields.data[at]);
    for (size_t i = 0; i < pattern->args.len; i++) {
        if (i == at)
            vec_push(&own->args, variable);
        else if (pattern->kind != AST_PAT_RECORD)
            vec_push(&own->args, pattern_node(AST_PAT_WILDCARD, pattern->args.data[i]->span));
    }
    Ast *match = parse_node(t->p, AST_MATCH, part->span.begin);
    match->span = match->op_span = part->span;
    match->a = name_node(t, whole);
    AstArm arm = {.pattern = own, .body = name_node(t, x)};
    vec_push(&match->arms, arm);
    return match;
}

static bool has_names(const AstPattern *pattern) {
    NameVec names = {0};
    parse_pattern_names(pattern, &names);
    return names.len > 0;
}

static Ast *read_part(const Taking *t, const AstPattern *pattern, size_t at, Name whole) {
    switch (pattern->kind) {
    case AST_PAT_TUPLE: {
        Ast *part = parse_node(t->p, AST_PROJ, pattern->args.data[at]->span.begin);
        part->span = part->op_span = pattern->args.data[at]->span;
        part->a = name_node(t, whole);
        part->i = (int64_t)at;
        return part;
    }
    case AST_PAT_PAREN:
    case AST_PAT_CTOR:
    case AST_PAT_RECORD: return match_part(t, pattern, at, whole);
    case AST_PAT_CONS: /* refused by inference, since it does not take every value */
    case AST_PAT_LIST:
    case AST_PAT_WILDCARD:
    case AST_PAT_NAME:
    case AST_PAT_INT:
    case AST_PAT_FLOAT:
    case AST_PAT_BOOL:
    case AST_PAT_STRING: break;
    }
    Ast *e = parse_node(t->p, AST_ERROR, pattern->span.begin);
    e->span = pattern->span;
    return e;
}

static void take_apart(Taking *t, const AstPattern *pattern, Name whole, int depth) {
    if (depth > MAX_NESTING) {
        parse_mistake(t->p, DIAG_R0009, pattern->span, "patterns nest more than %d deep",
                      MAX_NESTING);
        return;
    }
    for (size_t i = 0; i < pattern->args.len; i++) {
        const AstPattern *part = pattern->args.data[i];
        if (!has_names(part))
            continue;
        Ast *value = read_part(t, pattern, i, whole);
        if (part->kind == AST_PAT_NAME) {
            bind_part(t, part->name, value);
            continue;
        }
        Name inner = {sym_intern(fmt_text("%s.%zu", whole.sym->text, i)), SIGIL_NONE, part->span};
        bind_part(t, inner, value);
        take_apart(t, part, inner, depth + 1);
    }
}

Ast *parse_take_apart(Parser *p, const AstPattern *pattern, Name whole) {
    Taking t = {.p = p};
    t.slot = &t.first;
    if (!p->panic)
        take_apart(&t, pattern, whole, 1);
    return t.first;
}
