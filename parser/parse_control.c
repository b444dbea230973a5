/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, `if` and `match` (LANGUAGE §3). */
#include "parser/parse_internal.h"

/* '{' key '=' */
static bool at_annotations(Parser *p) {
    if (p->panic || !parse_at(p, TOK_LBRACE))
        return false;
    Saved saved = parse_save(p);
    parse_advance(p);
    bool found = parse_at_attr(p);
    parse_restore(p, saved);
    return found;
}

/* (x | pattern) ['{' attributes '}'] [':' T], …, then attributes */
static void read_params(Parser *p, AstFn *fn) {
    NameVec names = {0};
    while (!p->panic && !parse_at(p, TOK_RPAREN)) {
        if (parse_at_attr(p)) {
            bool before = p->in_call;
            p->in_call = false;
            parse_attrs(p, TOK_RPAREN, &fn->attrs);
            p->in_call = before;
            break;
        }
        AstParam param = {0};
        if (parse_at_let_pattern(p)) {
            size_t mark = parse_scope_mark(p);
            param.pattern = parse_pattern(p);
            parse_scope_release(p, mark);
            parse_pattern_names(param.pattern, &names);
            param.name = parse_hidden_name(p, param.pattern);
        } else {
            param.name = parse_binder(p, false, "a parameter");
            vec_push(&names, param.name);
        }
        if (at_annotations(p)) { /* {virtual_device=…}: where TVM would put it */
            AstAttrVec ignored = {0};
            Opened opened = parse_open(p);
            bool before = p->in_call;
            p->in_call = false;
            parse_attrs(p, TOK_RBRACE, &ignored);
            p->in_call = before;
            parse_close(p, TOK_RBRACE, opened);
        }
        if (parse_accept(p, TOK_COLON))
            param.type = parse_type_any(p);
        vec_push(&fn->params, param);
        if (!parse_more(p, TOK_RPAREN))
            break;
    }
    parse_check_twice(p, &names, "parameter");
}

/* [type parameters] '(' parameters ')' ['->' T] ['where' …] '{' e '}' */
AstFn *parse_fn_rest(Parser *p) {
    AstFn *fn = mem_new(AstFn);
    size_t mark = parse_scope_mark(p), type_mark = p->type_params.len;
    parse_type_params(p, &fn->type_params);
    for (size_t i = 0; i < fn->type_params.len; i++)
        vec_push(&p->type_params, fn->type_params.data[i].name);
    if (!p->panic && parse_at(p, TOK_LPAREN)) {
        Opened opened = parse_open(p);
        read_params(p, fn);
        parse_close(p, TOK_RPAREN, opened);
    } else {
        parse_unexpected(p, fn->type_params.len ? "`(`" : "`(` or type parameters");
    }
    unsigned ctx = p->ctx;
    if (parse_accept(p, TOK_ARROW)) {
        p->ctx |= CTX_NO_WHERE;
        fn->result = parse_type_any(p);
        p->ctx = ctx;
    }
    fn->has_where = parse_where(p, &fn->where);
    NameVec names = {0};
    for (size_t i = 0; i < fn->params.len; i++) {
        if (fn->params.data[i].pattern)
            parse_pattern_names(fn->params.data[i].pattern, &names);
        else
            vec_push(&names, fn->params.data[i].name);
    }
    for (size_t i = 0; i < names.len; i++)
        parse_scope_bind(p, names.data[i]);
    Ast **body = &fn->body;
    for (size_t i = 0; i < fn->params.len; i++) {
        const AstParam *param = &fn->params.data[i];
        if (param->pattern)
            *body = parse_take_apart(p, param->pattern, param->name);
        while (*body)
            body = &(*body)->body;
    }
    *body = parse_block(p);
    for (Ast *e = fn->body; e != *body; e = e->body)
        e->span.end = p->prev_end;
    parse_scope_release(p, mark);
    p->type_params.len = type_mark;
    return fn;
}

/* 'fn' … */
Ast *parse_fn(Parser *p) {
    Ast *e = parse_node(p, AST_FN, p->tok.begin);
    e->op_span = parse_tok_span(p);
    parse_advance(p);
    e->fn = parse_fn_rest(p);
    e->span.end = p->prev_end;
    return e;
}

/* A condition or scrutinee: `x {` is no record there, and line breaks mean nothing. */
static Ast *read_head(Parser *p) {
    unsigned ctx = p->ctx;
    p->ctx = CTX_NO_RECORD;
    Ast *e = parse_expr(p);
    p->ctx = ctx;
    return e;
}

/* An arm without braces. `last`: what ends the whole expression ends it too. */
static Ast *read_arm(Parser *p, bool last) {
    unsigned ctx = p->ctx;
    p->ctx = CTX_NO_SEMI | (last ? ctx : 0);
    Ast *e = parse_sequence(p);
    p->ctx = ctx;
    return e;
}

/* No `else` where one has to stand. */
static void missing_else(Parser *p, Span if_span) {
    if (p->tok.kind == TOK_EOF && p->options->prompt) {
        parse_unexpected(p, "`else`");
        return;
    }
    Span after = parse_span(p, p->prev_end, p->prev_end);
    Diag *d = parse_mistake(p, DIAG_R0010, after, "this `if` has no `else`");
    if (d) {
        d->cause = DIAG_CAUSE_NO_ELSE;
        diag_set_expects(d, "`else`");
        diag_add_label(d, if_span, "this one");
        diag_add_help(d, "where nothing is to be done, write `else { () }`");
    }
}

/* 'if' c '{' e '}' 'else' ('{' e '}' | if) | 'if' c 'then' e 'else' e */
Ast *parse_if(Parser *p) {
    Ast *e = parse_node(p, AST_IF, p->tok.begin);
    e->op_span = parse_tok_span(p);
    e->a = e->b = e->c = parse_error_node(p);
    if (!parse_enter(p)) {
        parse_leave(p);
        return e;
    }
    parse_advance(p);
    e->a = read_head(p);
    bool braces = parse_at(p, TOK_LBRACE);
    if (braces)
        e->b = parse_block(p);
    else if (parse_accept_word(p, WORD_THEN))
        e->b = read_arm(p, false);
    else
        parse_unexpected(p, "`{` or `then`");
    if (!p->panic && !parse_at_word(p, WORD_ELSE))
        missing_else(p, e->op_span);
    if (parse_accept_word(p, WORD_ELSE)) {
        if (braces && parse_at(p, TOK_LBRACE))
            e->c = parse_block(p);
        else if (braces && parse_at_word(p, WORD_IF))
            e->c = parse_if(p);
        else
            e->c = read_arm(p, true);
    }
    parse_leave(p);
    e->span.end = p->prev_end;
    return e;
}

static void check_variables(Parser *p, size_t mark) {
    NameVec names = {0};
    for (size_t i = mark; i < p->bindings.len; i++)
        vec_push(&names, p->bindings.data[i]);
    if (names.len > 1)
        parse_check_twice(p, &names, "variable");
}

/* pattern ['when' e] ('=>' | '->') e */
static void read_match_arm(Parser *p, Ast *match, bool braces) {
    size_t mark = parse_scope_mark(p);
    AstArm arm = {.pattern = parse_pattern(p)};
    check_variables(p, mark);
    unsigned ctx = p->ctx;
    p->ctx = 0;
    if (parse_accept_word(p, WORD_WHEN))
        arm.guard = parse_expr(p);
    if (p->tok.kind == TOK_BAR && braces && !arm.guard && !p->panic) {
        Diag *d = parse_mistake(p, DIAG_R0001, parse_tok_span(p), "a pattern has no alternatives");
        if (d)
            diag_add_help(d, "each has an arm of its own: `1 => a, 2 => a`");
    } else if (!parse_accept(p, TOK_FATARROW) && !parse_accept(p, TOK_ARROW)) {
        parse_unexpected(p, arm.guard ? "`=>` or `->`" : "`=>`, `->` or `when`");
    }
    p->ctx = ctx;
    arm.body = braces ? parse_sequence(p) : read_arm(p, true);
    parse_scope_release(p, mark);
    vec_push(&match->arms, arm);
}

/* 'match' ['?'] e ('{' arm, … '}' | '|' arm '|' …); the arms in braces may have bars too. */
Ast *parse_match(Parser *p) {
    Ast *e = parse_node(p, AST_MATCH, p->tok.begin);
    e->op_span = parse_tok_span(p);
    e->a = parse_error_node(p);
    parse_advance(p);
    if (parse_at(p, TOK_QUESTION) && !p->tok.blank_before) {
        e->flag = true;
        e->op_span.end = p->tok.end;
        parse_advance(p);
    }
    e->a = read_head(p);
    if (!p->panic && parse_at(p, TOK_LBRACE)) {
        Opened opened = parse_open(p);
        parse_accept(p, TOK_BAR);
        while (!p->panic && !parse_at(p, TOK_RBRACE)) {
            read_match_arm(p, e, true);
            if (!parse_accept(p, TOK_COMMA) && !parse_accept(p, TOK_BAR))
                break;
            parse_accept(p, TOK_BAR);
        }
        parse_close(p, TOK_RBRACE, opened);
    } else if (!p->panic && parse_at(p, TOK_BAR)) {
        while (parse_accept(p, TOK_BAR))
            read_match_arm(p, e, false);
    } else {
        parse_unexpected(p, "`{` or `|`");
    }
    e->span.end = p->prev_end;
    return e;
}
