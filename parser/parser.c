/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's frame: tokens in hand, mistakes and recovery, nesting, and the loop over items. The
 * productions stand in parse_*.c, each above its function. */
#include "parser/parse_internal.h"

#include <ctype.h>
#include <string.h>

enum { STACK_RESERVE = 512 * 1024, MAX_REPORTS = 100 };

Span parse_span(const Parser *p, uint32_t begin, uint32_t end) {
    return (Span){p->source, begin, end < begin ? begin : end};
}

Ast *parse_node(Parser *p, AstKind kind, uint32_t begin) {
    Ast *a = mem_new(Ast);
    a->kind = kind;
    a->span = parse_span_from(p, begin);
    return a;
}

Ast *parse_error_node(Parser *p) {
    Ast *a = parse_node(p, AST_ERROR, p->tok.begin);
    a->span = parse_tok_span(p);
    return a;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool is_word_char(char c) { return c == '_' || isalnum((unsigned char)c); }

/* Whether the text is a number without a dot, or the name of a value in scope. */
static bool is_divisor(Parser *p, const char *text, size_t n) {
    size_t digits = strspn(text, "0123456789");
    if (!n || digits == n)
        return n > 0;
    for (size_t i = 0; i < n; i++)
        if (!is_word_char(text[i]))
            return false;
    bool local;
    return !digits && parse_find_name(p, sym_intern_n(text, n), &local) == KNOWN_VALUE;
}

/* Warns of a comment that looks like a division, `7 // 2`: it follows a value, with at most one blank around its
 * slashes, and is a number or the name of a value. */
static void warn_division(Parser *p, Span comment) {
    const char *text = p->source->text;
    uint32_t before = comment.begin, begin = comment.begin + 2, end = comment.end;
    if (before > 0 && text[before - 1] == ' ')
        before--;
    if (begin < end && text[begin] == ' ')
        begin++;
    while (end > begin && strchr(" \t;", text[end - 1]))
        end--;
    bool value = before > 0 && (is_word_char(text[before - 1]) || text[before - 1] == ')' ||
                                text[before - 1] == ']');
    if (!value || word_get_class(p->prev_word) == WORDCLASS_RESERVED ||
        text[comment.begin + 1] != '/' || !is_divisor(p, text + begin, end - begin))
        return;
    Diag *d = parse_warn(p, DIAG_R0909, comment, "`//` begins a comment");
    if (d) {
        diag_set_label(d, "not read");
        diag_add_help(
            d, "`floor_divide(a, b)` divides and rounds down, `/` between integers truncates");
    }
}

void parse_advance(Parser *p) {
    p->prev_end = p->tok.end;
    p->prev_word = p->tok.word;
    lexer_read(&p->lex, p->tok.end, &p->tok);
    for (; p->comments < p->module->comments.len && !p->muted; p->comments++) {
        Span comment = p->module->comments.data[p->comments].span;
        if (comment.begin >= p->tok.begin)
            break;
        if (comment.begin >= p->prev_end)
            warn_division(p, comment);
    }
}

Token parse_peek(Parser *p) {
    Token t;
    lexer_read(&p->lex, p->tok.end, &t);
    return t;
}

void parse_cut(Parser *p, uint32_t at) { p->tok.end = at; }

bool parse_accept(Parser *p, TokenKind kind) {
    if (p->panic || p->tok.kind != kind)
        return false;
    parse_advance(p);
    return true;
}

bool parse_accept_word(Parser *p, Word word) {
    if (p->panic || !parse_at_word(p, word))
        return false;
    parse_advance(p);
    return true;
}

bool parse_expect(Parser *p, TokenKind kind) {
    if (parse_accept(p, kind))
        return true;
    parse_unexpected(p, token_kind_text(kind));
    return false;
}

static const char *const word_texts[] = {
#define WORD(name, text, cls) text,
    LEXER_WORDS(WORD)
#undef WORD
};

bool parse_expect_word(Parser *p, Word word) {
    if (parse_accept_word(p, word))
        return true;
    parse_unexpected(p, fmt_text("`%s`", word_texts[word - 1]));
    return false;
}

/* ---- mistakes -------------------------------------------------------------------------------- */

static const char *describe(const Parser *p, const Token *t) {
    int n = (int)(t->end - t->begin > 40 ? 40 : t->end - t->begin);
    const char *text = p->source->text + t->begin;
    switch (t->kind) {
    case TOK_EOF: return "the end of the text";
    case TOK_STRING: return "a string";
    case TOK_NUMBER: return fmt_text("the number `%.*s`", n, text);
    case TOK_IDENT:
        if (word_get_class(t->word) == WORDCLASS_RESERVED)
            return fmt_text("the reserved word `%.*s`", n, text);
        if (word_is_type(t->word))
            return fmt_text("the type `%.*s`", n, text);
        return fmt_text("`%.*s`", n, text);
    case TOK_ERROR:
    case TOK_LOCAL:
    case TOK_GLOBAL:
    case TOK_GRAPH:
    case TOK_LPAREN:
    case TOK_RPAREN:
    case TOK_LBRACKET:
    case TOK_RBRACKET:
    case TOK_LBRACE:
    case TOK_RBRACE:
    case TOK_COMMA:
    case TOK_SEMI:
    case TOK_COLON:
    case TOK_COLONCOLON:
    case TOK_ASSIGN:
    case TOK_EQUAL:
    case TOK_EQEQ:
    case TOK_NE:
    case TOK_LT:
    case TOK_LE:
    case TOK_GT:
    case TOK_GE:
    case TOK_COMPOSE:
    case TOK_PIPE:
    case TOK_BAR:
    case TOK_OROR:
    case TOK_ANDAND:
    case TOK_BANG:
    case TOK_ARROW:
    case TOK_FATARROW:
    case TOK_PLUS:
    case TOK_PLUSPLUS:
    case TOK_MINUS:
    case TOK_STAR:
    case TOK_STARSTAR:
    case TOK_SLASH:
    case TOK_ATAT:
    case TOK_DOT:
    case TOK_ELLIPSIS:
    case TOK_QUESTION:
    case TOK_HASH: break;
    }
    return fmt_text("`%.*s`", n, text);
}

static Diag *report(Parser *p, DiagCode code, Span span, const char *fmt, va_list ap) {
    Str s = {0};
    str_vprintf(&s, fmt, ap);
    p->failed = true;
    if (p->diags->list.len >= MAX_REPORTS)
        return NULL;
    Diag *d = diag_new(code, span, "%s", str_text(&s));
    diag_report(p->diags, d);
    return d;
}

Diag *parse_mistake(Parser *p, DiagCode code, Span span, const char *fmt, ...) {
    bool quiet = p->panic || p->muted;
    p->panic = true;
    if (quiet)
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    Diag *d = report(p, code, span, fmt, ap);
    va_end(ap);
    return d;
}

Diag *parse_complain(Parser *p, DiagCode code, Span span, const char *fmt, ...) {
    if (p->panic || p->muted)
        return NULL;
    va_list ap;
    va_start(ap, fmt);
    Diag *d = report(p, code, span, fmt, ap);
    va_end(ap);
    return d;
}

Diag *parse_warn(Parser *p, DiagCode code, Span span, const char *text) {
    if (p->panic || p->muted || p->diags->list.len >= MAX_REPORTS)
        return NULL;
    Diag *d = diag_new(code, span, "%s", text);
    diag_report(p->diags, d);
    return d;
}

/* The token in hand is TOK_ERROR. */
static void report_lexical(Parser *p) {
    const Token *t = &p->tok;
    Span span = parse_tok_span(p);
    const char *text = p->source->text + t->begin;
    if (t->error == DIAG_R0002) {
        parse_mistake(p, DIAG_R0002, span, "this string does not end");
    } else if (t->error == DIAG_R0003) {
        if (p->options->prompt && !p->failed) {
            p->incomplete = p->panic = true;
            return;
        }
        span.end = span.begin + 2;
        parse_mistake(p, DIAG_R0003, span, "this comment does not end");
    } else if (*text == '%' || *text == '@') {
        Diag *d = parse_mistake(p, DIAG_R0015, span, "`%c` without a name", *text);
        if (d && *text == '%')
            diag_add_fact(d,
                          "`%%` begins a local name and touches it; the remainder is `mod(a, b)`");
    } else if ((unsigned char)*text >= 0x80 || *text > ' ') {
        Diag *d = parse_mistake(p, DIAG_R0015, span, "`%.*s` means nothing here",
                                (int)(t->end - t->begin), text);
        if (d && (unsigned char)*text >= 0x80)
            diag_add_fact(d, "names are of the letters a to z and A to Z, digits and `_`; other "
                             "letters stand in strings and comments");
    } else {
        parse_mistake(p, DIAG_R0015, span, "the byte 0x%02x means nothing here",
                      (unsigned)(unsigned char)*text);
    }
}

/* `for i in l {`, `while (c) {`: the name before the mistake is a statement of other languages. */
static bool report_statement(Parser *p) {
    static const struct {
        const char *name, *help;
    } statements[] = {
        {"for", "`map(f, l)`, `foldl(f, init, l)` and `loop(n, f, x)` are functions"},
        {"while", "`while(p, f, x)` is a function: it applies f to x as long as p(x) holds"},
        {"switch", "cases are told apart by `match (x) { 0 => a, _ => b }`"},
    };
    const char *text = p->source->text, *end = text + p->prev_end, *begin;
    if (end > text && end[-1] == ')') {
        int depth = 0;
        do {
            end--;
            depth += *end == ')' ? 1 : *end == '(' ? -1 : 0;
        } while (end > text && depth > 0);
        while (end > text && end[-1] == ' ')
            end--;
    }
    for (begin = end; begin > text && (begin[-1] == '_' || isalnum((unsigned char)begin[-1]));)
        begin--;
    size_t n = (size_t)(end - begin);
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (strlen(statements[i].name) != n || memcmp(statements[i].name, begin, n) != 0)
            continue;
        Span span = parse_span(p, (uint32_t)(begin - text), (uint32_t)(end - text));
        Diag *d = parse_mistake(p, DIAG_R0019, span, "there is no statement `%s`",
                                statements[i].name);
        if (d)
            diag_add_help(d, "%s", statements[i].help);
        return true;
    }
    return false;
}

/* The name of a command, as in `:type x`, on a line of its own; its length, 0: there is none. */
static int command_length(const Parser *p) {
    const char *text = p->source->text;
    uint32_t begin = p->tok.begin, at = p->tok.end;
    if (p->tok.kind != TOK_COLON || (begin > 0 && text[begin - 1] != '\n'))
        return 0;
    while (text[at] >= 'a' && text[at] <= 'z')
        at++;
    return (int)(at - p->tok.end);
}

void parse_unexpected_at(Parser *p, Expected expected, const char *what) {
    if (p->panic || p->muted) {
        p->panic = true;
        return;
    }
    if (p->tok.kind == TOK_ERROR) {
        report_lexical(p);
        return;
    }
    if (p->tok.kind == TOK_EOF && p->options->prompt && !p->failed) {
        p->incomplete = p->panic = true;
        return;
    }
    if (expected == EXPECTED_OPERATOR && report_statement(p))
        return;
    Span span = parse_tok_span(p);
    if (p->tok.kind == TOK_EOF) /* point behind what is there, not at an empty last line */
        span = parse_span(p, p->prev_end, p->prev_end);
    Diag *d = parse_mistake(p, DIAG_R0001, span, "expected %s, found %s", what,
                            describe(p, &p->tok));
    if (d)
        diag_set_expects(d, what);
    if (d && p->tok.kind == TOK_EQUAL && expected == EXPECTED_OPERATOR)
        diag_add_fact(
            d, "a binding is `let x = ...;`, a comparison `==`, an assignment to a reference `:=`");
    int n = d ? command_length(p) : 0;
    if (n) {
        d->cause = DIAG_CAUSE_COMMAND;
        diag_add_fact(d, "`:%.*s` would be a command of the prompt; a file has none", n,
                      p->source->text + p->tok.end);
    }
}

void parse_unexpected(Parser *p, const char *what) { parse_unexpected_at(p, EXPECTED_OTHER, what); }

/* ---- brackets -------------------------------------------------------------------------------- */

Opened parse_open(Parser *p) {
    Opened opened = {p->ctx, parse_tok_span(p)};
    vec_push(&p->brackets, p->source->text[p->tok.begin]);
    p->ctx = 0;
    parse_advance(p);
    return opened;
}

bool parse_close_after(Parser *p, TokenKind kind, Opened opened, Expected expected,
                       const char *what) {
    p->ctx = opened.ctx;
    if (!p->panic && p->tok.kind == kind) {
        (void)vec_pop(&p->brackets);
        parse_advance(p);
        return true;
    }
    size_t before = p->diags->list.len;
    parse_unexpected_at(p, expected, what ? what : fmt_text("`,` or %s", token_kind_text(kind)));
    if (p->diags->list.len > before && p->tok.kind != TOK_ERROR)
        diag_add_label(vec_last(&p->diags->list), opened.span, "opened here");
    return false;
}

bool parse_close(Parser *p, TokenKind kind, Opened opened) {
    return parse_close_after(p, kind, opened, EXPECTED_OTHER, NULL);
}

bool parse_more(Parser *p, TokenKind close) {
    return parse_accept(p, TOK_COMMA) && p->tok.kind != close;
}

bool parse_enter(Parser *p) {
    p->depth++;
    if (p->panic)
        return false;
    if (p->depth <= PARSE_MAX_DEPTH && mem_stack_left() > STACK_RESERVE)
        return true;
    parse_mistake(p, DIAG_R0009, parse_tok_span(p), "nested too deeply (%d levels)", p->depth);
    if (!p->muted) { /* going on would meet the same again at every level */
        uint32_t end = (uint32_t)p->source->len;
        p->tok = (Token){.kind = TOK_EOF, .begin = end, .end = end};
    }
    return false;
}

/* ---- recovery and speculation ---------------------------------------------------------------- */

bool parse_begins_item(const Token *t) {
    if (t->kind != TOK_IDENT)
        return false;
    switch ((int)t->word) {
    case WORD_DEF:
    case WORD_TYPE:
    case WORD_EXTERN:
    case WORD_OPERATOR:
    case WORD_DERIVATIVE:
    case WORD_TANGENT:
    case WORD_NO_DERIVATIVE:
    case WORD_IMPORT: return true;
    }
    return false;
}

static bool at_line_start(const Parser *p) {
    return p->tok.begin == 0 || p->source->text[p->tok.begin - 1] == '\n';
}

static bool only_round_above(const Parser *p, size_t level) {
    for (size_t i = level; i < p->brackets.len; i++)
        if (p->brackets.data[i] == '{')
            return false;
    return true;
}

/* A closing bracket: drops the open ones above `level` down to its match. False: it has none. */
static bool close_matching(Parser *p, size_t level, char open) {
    for (size_t i = p->brackets.len; i > level; i--)
        if (p->brackets.data[i - 1] == open) {
            p->brackets.len = i - 1;
            return true;
        }
    return false;
}

bool parse_recover(Parser *p, size_t level) {
    if (p->muted || p->incomplete)
        return false;
    bool again = true;
    for (; again; parse_advance(p)) {
        const Token *t = &p->tok;
        if (t->kind == TOK_EOF)
            return false;
        bool begins = parse_begins_item(t) || (t->word == WORD_LET && at_line_start(p));
        if (begins && t->break_before && t->begin > p->item_begin) {
            if (level > 0)
                return false;
            break;
        }
        switch ((int)t->kind) {
        case TOK_LPAREN:
        case TOK_LBRACKET:
        case TOK_LBRACE:
        case TOK_HASH:
            vec_push(&p->brackets, t->kind == TOK_HASH ? '[' : p->source->text[t->begin]);
            break;
        case TOK_RPAREN: close_matching(p, level, '('); break;
        case TOK_RBRACKET: close_matching(p, level, '['); break;
        case TOK_RBRACE:
            if (!close_matching(p, level, '{')) {
                if (level > 0) { /* the end of this block */
                    p->brackets.len = level;
                    p->panic = false;
                    return true;
                }
                again = false;
            } else if (level == 0 && p->brackets.len == 0 && parse_peek(p).break_before) {
                again = false;
            }
            break;
        case TOK_SEMI:
            if (p->brackets.len == level ||
                (only_round_above(p, level) && parse_peek(p).break_before))
                again = false;
            break;
        }
    }
    p->brackets.len = level;
    p->panic = false;
    return true;
}

Saved parse_save(Parser *p) {
    p->muted++;
    return (Saved){p->tok, p->prev_end, p->ctx, p->brackets.len, p->depth};
}

void parse_restore(Parser *p, Saved saved) {
    p->muted--;
    p->tok = saved.tok;
    p->prev_end = saved.prev_end;
    p->ctx = saved.ctx;
    p->brackets.len = saved.brackets;
    p->depth = saved.depth;
    p->panic = false;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* JSON up to the end, behind the token in hand. */
static void read_metadata(Parser *p) {
    parse_metadata(p, p->tok.end);
    uint32_t end = (uint32_t)p->source->len;
    p->tok = (Token){.kind = TOK_EOF, .begin = end, .end = end};
}

/* '#[version = "0.0.5"]' and '#[metadata] json'; with `#[` in hand. */
static void read_section(Parser *p, bool first) {
    Span span = parse_tok_span(p);
    parse_advance(p);
    span.end = p->tok.end;
    const char *word = p->tok.kind == TOK_IDENT ? p->tok.sym->text : "";
    if (strcmp(word, "version") == 0) {
        if (!first)
            parse_complain(p, DIAG_R0013, span, "`#[version]` stands first in a file");
        parse_advance(p);
        parse_expect(p, TOK_EQUAL);
        if (!p->panic && parse_at(p, TOK_STRING)) {
            p->module->versioned = p->lex.versioned = true;
            p->module->version = mem_strndup(p->source->text + p->tok.begin + 1,
                                             p->tok.end - p->tok.begin - 2);
            parse_advance(p);
        } else {
            parse_unexpected(p, "a version in quotes");
        }
        parse_expect(p, TOK_RBRACKET);
    } else if (strcmp(word, "metadata") == 0 && parse_peek(p).kind == TOK_RBRACKET) {
        parse_advance(p);
        read_metadata(p);
    } else if (p->tok.kind == TOK_EOF) {
        parse_unexpected(p, "`version` or `metadata`");
    } else {
        Diag *d = parse_mistake(p, DIAG_R0013, span,
                                "`#[` begins `#[version = \"...\"]` or `#[metadata]`");
        if (d)
            diag_set_label(d, "neither of them");
    }
}

/* 'v0.0.4', as TVM before 0.7 began a module: its length, or 0. */
size_t parse_old_version(const Source *s) {
    size_t n = 0;
    if (s->len < 6 || memcmp(s->text, "v0.0.", 5) != 0)
        return 0;
    for (n = 5; n < s->len && s->text[n] >= '0' && s->text[n] <= '9'; n++)
        ;
    return n > 5 && (n == s->len || strchr(" \t\r\n", s->text[n])) ? n : 0;
}

static void read_items(Parser *p) {
    bool first = true;
    size_t old = parse_old_version(p->source);
    if (old) {
        p->module->versioned = p->lex.versioned = true;
        p->module->version = mem_strndup(p->source->text + 1, old - 1);
        lexer_read(&p->lex, (uint32_t)old, &p->tok);
    }
    while (!parse_at(p, TOK_EOF)) {
        Item *item = NULL;
        p->item_begin = p->tok.begin;
        if (parse_at(p, TOK_HASH)) {
            read_section(p, first);
        } else if (old && parse_at(p, TOK_IDENT) && strcmp(p->tok.sym->text, "METADATA") == 0 &&
                   parse_peek(p).kind == TOK_COLON) {
            parse_advance(p);
            read_metadata(p);
        } else if (!parse_accept(p, TOK_SEMI)) {
            item = parse_item(p);
            vec_push(&p->module->items, item);
            for (size_t i = 0; i < p->derived.len; i++)
                vec_push(&p->module->items, p->derived.data[i]);
            p->derived.len = 0;
        }
        first = false;
        if (!p->panic)
            continue;
        if (item)
            item->kind = ITEM_ERROR;
        p->ctx = 0;
        p->depth = 0;
        if (!parse_recover(p, 0))
            break;
    }
}

static bool check_bytes(Parser *p) {
    const Source *s = p->source;
    size_t bad = 0;
    size_t begin = p->options->begin;
    const char *nul = s->len > begin ? memchr(s->text + begin, 0, s->len - begin) : NULL;
    if (s->len >= UINT32_MAX) {
        diag_error(p->diags, DIAG_R0007, span_none(), "the text is longer than 4 GB");
        return false;
    }
    if (nul) {
        bad = (size_t)(nul - s->text);
        diag_error(p->diags, DIAG_R0008, parse_span(p, (uint32_t)bad, (uint32_t)bad + 1),
                   "a NUL byte: this is no program text");
        return false;
    }
    if (!text_is_utf8(s->text + begin, s->len - begin, &bad)) {
        bad += begin;
        diag_error(p->diags, DIAG_R0007, parse_span(p, (uint32_t)bad, (uint32_t)bad + 1),
                   "the byte 0x%02x here is not UTF-8", (unsigned)(unsigned char)s->text[bad]);
        return false;
    }
    return true;
}

static const ParseOptions no_options;

static bool start(Parser *p, const Source *source, const ParseOptions *options, Diags *diags) {
    *p = (Parser){.source = source, .options = options ? options : &no_options, .diags = diags};
    p->module = mem_new(Module);
    p->module->source = source;
    lexer_init(&p->lex, source, p->module);
    return check_bytes(p);
}

ParseStatus parse_module(const Source *source, const ParseOptions *options, Diags *diags,
                         Module **module) {
    Parser p;
    bool ok = start(&p, source, options, diags);
    *module = p.module;
    if (!ok)
        return PARSE_FAILED;
    parse_scan_heads(&p);
    p.module->heads = p.heads;
    lexer_read(&p.lex, (uint32_t)p.options->begin, &p.tok);
    read_items(&p);
    if (p.options->prompt && !p.module->items.len && parse_ends_in_doc(&p))
        p.incomplete = true; /* it documents the item to come */
    return p.failed ? PARSE_FAILED : p.incomplete ? PARSE_INCOMPLETE : PARSE_OK;
}

Item *parse_item_again(const Source *source, const ParseOptions *options, const Module *module,
                       Diags *diags) {
    Parser p;
    if (!start(&p, source, options, diags))
        return NULL;
    p.heads = module->heads;
    p.module->versioned = p.lex.versioned = module->versioned;
    lexer_read(&p.lex, 0, &p.tok);
    Item *item = parse_item(&p);
    return p.failed || p.panic || p.incomplete ? NULL : item;
}

AstType *parse_type(const Source *source, Diags *diags) {
    Parser p;
    if (!start(&p, source, NULL, diags))
        return NULL;
    lexer_read(&p.lex, 0, &p.tok);
    AstType *type = parse_type_any(&p);
    if (!p.panic && !parse_at(&p, TOK_EOF))
        parse_unexpected(&p, "the end of the type");
    return p.failed ? NULL : type;
}
