/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what the text binds, and how far a name reaches (LANGUAGE §1).
 *
 * Locals are followed scope by scope while reading; the heads of the items (`def`, `let`, `type` with
 * its constructors, `import`, …) are scanned beforehand, since a definition may be used before it;
 * what is older than this text, ParseOptions.scope knows. */
#include "parser/parse_internal.h"

#include <string.h>

/* Flags of a head. */
enum { HEAD_DEF = 1, HEAD_VALUE = 2, HEAD_MODULE = 4, HEAD_BARE = 8 };

static uintptr_t find_head(const Parser *p, const Symbol *sym) {
    return (uintptr_t)map_find(&p->heads, sym);
}

static void add_head(Parser *p, const Symbol *sym, uintptr_t flags) {
    map_set(&p->heads, sym, (void *)(find_head(p, sym) | flags));
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* A count of bare bindings and one of bindings with a sigil, packed into a map's value. */
enum { SIGIL_SHIFT = 24 };
static const uintptr_t bare_one = 1, sigil_one = (uintptr_t)1 << SIGIL_SHIFT;

static uintptr_t find_local(const Parser *p, const Symbol *sym) {
    return (uintptr_t)map_find(&p->locals, sym);
}

static bool is_bare_local(const Parser *p, const Symbol *sym) {
    return (find_local(p, sym) & (sigil_one - 1)) != 0;
}

size_t parse_scope_mark(const Parser *p) { return p->bindings.len; }

void parse_scope_bind(Parser *p, Name name) {
    if (!name.sym)
        return;
    vec_push(&p->bindings, name);
    uintptr_t n = find_local(p, name.sym) + (name.sigil == SIGIL_NONE ? bare_one : sigil_one);
    map_set(&p->locals, name.sym, (void *)n);
}

void parse_scope_release(Parser *p, size_t mark) {
    while (p->bindings.len > mark) {
        Name name = vec_pop(&p->bindings);
        uintptr_t n = find_local(p, name.sym) - (name.sigil == SIGIL_NONE ? bare_one : sigil_one);
        map_set(&p->locals, name.sym, (void *)n);
    }
}

static KnownName find_session(const Parser *p, const Symbol *sym) {
    const ParseScope *scope = p->options->scope;
    return scope && scope->find_global ? scope->find_global(scope->ctx, sym) : KNOWN_NOTHING;
}

static KnownName find_any_global(const Parser *p, const Symbol *sym) {
    uintptr_t head = find_head(p, sym);
    return head & HEAD_DEF ? KNOWN_DEF : head & HEAD_VALUE ? KNOWN_VALUE : find_session(p, sym);
}

KnownName parse_find_name(Parser *p, const Symbol *sym, bool *local) {
    *local = find_local(p, sym) != 0;
    return *local ? KNOWN_VALUE : find_any_global(p, sym);
}

bool parse_is_shadowed(Parser *p, const Symbol *sym) {
    if (is_bare_local(p, sym))
        return true;
    uintptr_t head = find_head(p, sym);
    if ((head & HEAD_DEF) && (head & HEAD_BARE))
        return true;
    /* `None` is the prelude's constructor and the syntax of an index at once */
    return strcmp(sym->text, "None") != 0 && !(p->source->flags & SOURCE_INTERNAL) &&
           find_session(p, sym) != KNOWN_NOTHING;
}

bool parse_at_soft(Parser *p, Word word) {
    return parse_at_word(p, word) && !parse_is_shadowed(p, p->tok.sym);
}

/* ---- names that are used --------------------------------------------------------------------- */

static bool is_bound(Parser *p, const Symbol *sym) {
    bool local;
    return parse_find_name(p, sym, &local) != KNOWN_NOTHING;
}

/* Names have at most this many parts; what follows is projections. */
enum { MAX_PARTS = 64 };

/* Where text may be cut: before its separators, the first ones of very many. */
static size_t find_separators(const char *text, size_t n, size_t cuts[MAX_PARTS]) {
    size_t len = 0;
    for (size_t i = 1; i < n && len < MAX_PARTS; i++) {
        if (text[i] == '.' || text[i] == '/')
            cuts[len++] = i;
        else if (text[i] == ':') {
            cuts[len++] = i++;
        }
    }
    return len;
}

/* Where a name nobody bound ends: before what looks like a projection or a division. */
static size_t unbound_length(const char *text, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (text[i] == '/' || (text[i] == '.' && text[i + 1] >= '0' && text[i + 1] <= '9'))
            return i;
    return n;
}

static Name sigil_name(Parser *p) {
    Token t = p->tok;
    const Symbol *whole = t.sym, *sym = whole;
    size_t cuts[MAX_PARTS], n = find_separators(whole->text, whole->len, cuts);
    if (n > 0 && !is_bound(p, whole)) {
        bool found = false;
        while (n-- > 0 && !found) {
            sym = sym_intern_n(whole->text, cuts[n]);
            found = is_bound(p, sym);
        }
        if (!found)
            sym = sym_intern_n(whole->text, unbound_length(whole->text, whole->len));
        parse_cut(p, t.begin + 1 + sym->len);
    }
    Name name = {sym, t.kind == TOK_LOCAL ? SIGIL_LOCAL : SIGIL_GLOBAL, parse_tok_span(p)};
    parse_advance(p);
    return name;
}

/* With a bare word in hand that is followed by a dot: `x.w` reads a field of what is bound as x, else
 * `nn.dense` is one name, as far as it is known, else as far as it goes. */
static Name dotted_ref(Parser *p) {
    Name name = {p->tok.sym, SIGIL_NONE, parse_tok_span(p)};
    uintptr_t head = find_head(p, name.sym);
    bool only_operators = p->module->versioned;
    bool value = is_bare_local(p, name.sym) || ((head & HEAD_VALUE) && (head & HEAD_BARE)) ||
                 find_session(p, name.sym) == KNOWN_VALUE;
    parse_advance(p);
    if (value && !only_operators)
        return name;
    bool found = !only_operators && is_bound(p, name.sym), module = (head & HEAD_MODULE) != 0;
    Name whole = name, best = name;
    Token best_tok = p->tok;
    uint32_t best_end = p->prev_end;
    for (size_t segments = 1; segments < MAX_PARTS; segments++) {
        if (!parse_at(p, TOK_DOT) || parse_peek(p).kind != TOK_IDENT)
            break;
        parse_advance(p);
        whole.sym = sym_qualify(whole.sym, p->tok.sym);
        whole.span.end = p->tok.end;
        parse_advance(p);
        bool known = find_any_global(p, whole.sym) != KNOWN_NOTHING;
        if (known || (!found && !(module && segments > 1))) {
            best = whole;
            best_tok = p->tok;
            best_end = p->prev_end;
            found |= known;
        }
    }
    p->tok = best_tok;
    p->prev_end = best_end;
    return best;
}

Name parse_name_ref(Parser *p) {
    if (parse_at(p, TOK_LOCAL) || parse_at(p, TOK_GLOBAL))
        return sigil_name(p);
    if (parse_peek(p).kind == TOK_DOT)
        return dotted_ref(p);
    Name name = {p->tok.sym, SIGIL_NONE, parse_tok_span(p)};
    parse_advance(p);
    return name;
}

/* Ident ('.' Ident)* */
Name parse_dotted(Parser *p, const char *what) {
    Name name = {0};
    if (!parse_at(p, TOK_IDENT)) {
        parse_unexpected(p, what);
        name.span = parse_tok_span(p);
        name.sym = sym_intern("_");
        return name;
    }
    name = (Name){p->tok.sym, SIGIL_NONE, parse_tok_span(p)};
    parse_advance(p);
    for (int parts = 1; parts < MAX_PARTS && parse_at(p, TOK_DOT); parts++) {
        if (parse_peek(p).kind != TOK_IDENT)
            break;
        parse_advance(p);
        name.sym = sym_qualify(name.sym, p->tok.sym);
        name.span.end = p->tok.end;
        parse_advance(p);
    }
    return name;
}

/* ---- names that are bound -------------------------------------------------------------------- */

Name parse_binder(Parser *p, bool global, const char *what) {
    Token t = p->tok;
    Name name = {sym_intern("_"), SIGIL_NONE, parse_tok_span(p)};
    if (t.kind == TOK_LOCAL || (t.kind == TOK_GLOBAL && global)) {
        name.sym = t.sym;
        name.sigil = t.kind == TOK_LOCAL ? SIGIL_LOCAL : SIGIL_GLOBAL;
        parse_advance(p);
    } else if (t.kind == TOK_IDENT && word_get_class(t.word) == WORDCLASS_RESERVED) {
        parse_mistake(p, DIAG_R0012, name.span, "`%s` is a reserved word, expected %s", t.sym->text,
                      what);
    } else if (t.kind == TOK_IDENT && word_is_type(t.word)) {
        parse_mistake(p, DIAG_R0012, name.span, "`%s` is a type, expected %s", t.sym->text, what);
    } else if (t.kind == TOK_IDENT && global) {
        name = parse_dotted(p, what);
    } else if (t.kind == TOK_IDENT) {
        name.sym = t.sym;
        parse_advance(p);
    } else {
        parse_unexpected(p, what);
    }
    return name;
}

void parse_check_twice(Parser *p, const NameVec *names, const char *what) {
    Map seen = {0};
    for (size_t i = 0; i < names->len; i++) {
        const Name *name = &names->data[i], *first = map_find(&seen, name->sym);
        if (strcmp(name->sym->text, "_") == 0)
            continue;
        if (!first) {
            map_set(&seen, name->sym, (void *)name);
            continue;
        }
        Diag *d = parse_complain(p, DIAG_R0014, name->span, "the %s `%s` stands here twice", what,
                                 name->sym->text);
        if (d)
            diag_add_label(d, first->span, "first here");
    }
}

/* ---- the heads of the whole text ------------------------------------------------------------- */

/* The name at *t, with its dots when bare; *t ends up behind it. */
static void scan_name(Parser *p, Token *t, uintptr_t flags) {
    if (t->kind == TOK_LOCAL || t->kind == TOK_GLOBAL) {
        add_head(p, t->sym, flags);
        lexer_read(&p->lex, t->end, t);
        return;
    }
    if (t->kind != TOK_IDENT)
        return;
    const Symbol *sym = t->sym;
    lexer_read(&p->lex, t->end, t);
    for (int parts = 1; parts < MAX_PARTS && t->kind == TOK_DOT; parts++) {
        lexer_read(&p->lex, t->end, t);
        if (t->kind != TOK_IDENT)
            break;
        sym = sym_qualify(sym, t->sym);
        lexer_read(&p->lex, t->end, t);
    }
    add_head(p, sym, flags | HEAD_BARE);
}

/* What the pattern at *t binds, up to its `=`: each name that no bracket follows, and, a little too much, the
 * names of fields and types. */
static void scan_pattern(Parser *p, Token *t) {
    for (int depth = 0; t->kind != TOK_EOF && (depth > 0 || t->kind != TOK_EQUAL);) {
        Token here = *t;
        if (here.break_before && parse_begins_item(&here))
            return;
        lexer_read(&p->lex, t->end, t);
        if (here.kind == TOK_LPAREN || here.kind == TOK_LBRACE || here.kind == TOK_LBRACKET)
            depth++;
        else if (here.kind == TOK_RPAREN || here.kind == TOK_RBRACE || here.kind == TOK_RBRACKET)
            depth--;
        bool opens = t->kind == TOK_LPAREN || t->kind == TOK_LBRACE || t->kind == TOK_LBRACKET;
        if (here.kind == TOK_LOCAL)
            add_head(p, here.sym, HEAD_VALUE);
        else if (here.kind == TOK_IDENT && !opens && !word_is_type(here.word))
            add_head(p, here.sym, HEAD_VALUE | HEAD_BARE);
        if (depth < 0)
            return;
    }
}

/* The name or the pattern behind `let`. */
static void scan_let(Parser *p, Token *t) {
    Token next;
    lexer_read(&p->lex, t->end, &next);
    bool pattern = t->kind == TOK_LPAREN ||
                   (t->kind == TOK_IDENT && (next.kind == TOK_LPAREN || next.kind == TOK_LBRACE));
    if (pattern)
        scan_pattern(p, t);
    else
        scan_name(p, t, HEAD_VALUE);
}

/* `T[A] { C(…), D | E }` behind `type`: the constructors. */
static void scan_type(Parser *p, Token *t) {
    int depth = 0;
    lexer_read(&p->lex, t->end, t); /* behind the name */
    bool square = t->kind == TOK_LBRACKET;
    if (square || t->kind == TOK_LT) { /* parameters hold no brackets */
        while (t->kind != TOK_EOF && t->kind != (square ? TOK_RBRACKET : TOK_GT))
            lexer_read(&p->lex, t->end, t);
        lexer_read(&p->lex, t->end, t);
    }
    if (t->kind != TOK_LBRACE)
        return;
    for (bool begins = false; t->kind != TOK_EOF; lexer_read(&p->lex, t->end, t)) {
        if (t->break_before && parse_begins_item(t))
            return;
        if (t->kind == TOK_IDENT && begins && depth == 1)
            add_head(p, t->sym, HEAD_DEF);
        if (t->kind == TOK_LBRACE || t->kind == TOK_LPAREN || t->kind == TOK_LBRACKET)
            depth++;
        else if (t->kind == TOK_RBRACE || t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET)
            depth--;
        begins = depth == 1 &&
                 (t->kind == TOK_LBRACE || t->kind == TOK_COMMA || t->kind == TOK_BAR);
        if (depth == 0)
            return;
    }
}

/* `nn`, `nn as m`, `nn (a, b)` behind `import`. */
static void scan_import(Parser *p, Token *t) {
    if (t->kind != TOK_IDENT)
        return;
    const Symbol *module = t->sym;
    lexer_read(&p->lex, t->end, t);
    if (t->kind == TOK_LPAREN) {
        for (; t->kind != TOK_EOF && t->kind != TOK_RPAREN; lexer_read(&p->lex, t->end, t))
            if (t->kind == TOK_IDENT)
                add_head(p, t->sym, HEAD_DEF);
        return;
    }
    if (t->kind == TOK_IDENT && t->word == WORD_AS) {
        lexer_read(&p->lex, t->end, t);
        if (t->kind == TOK_IDENT)
            module = t->sym;
    }
    add_head(p, module, HEAD_MODULE);
}

void parse_scan_heads(Parser *p) {
    Token t;
    int depth = 0;
    size_t old = parse_old_version(p->source);
    p->lex.versioned = old > 0;
    for (lexer_read(&p->lex, (uint32_t)(old + p->options->begin), &t); t.kind != TOK_EOF;) {
        Token here = t;
        lexer_read(&p->lex, t.end, &t);
        if (here.kind == TOK_HASH && t.kind == TOK_IDENT && !strcmp(t.sym->text, "version"))
            p->lex.versioned = true;
        if (here.kind == TOK_HASH && t.kind == TOK_IDENT && !strcmp(t.sym->text, "metadata"))
            break;
        if (old && depth == 0 && here.kind == TOK_IDENT && !strcmp(here.sym->text, "METADATA") &&
            t.kind == TOK_COLON)
            break;
        if (here.break_before && parse_begins_item(&here))
            depth = 0;
        if (here.kind == TOK_LPAREN || here.kind == TOK_LBRACKET || here.kind == TOK_LBRACE)
            depth++;
        else if (here.kind == TOK_RPAREN || here.kind == TOK_RBRACKET || here.kind == TOK_RBRACE)
            depth -= depth > 0;
        if (depth > 0 || here.kind != TOK_IDENT)
            continue;
        switch ((int)here.word) {
        case WORD_DEF:
        case WORD_OPERATOR: scan_name(p, &t, HEAD_DEF); break;
        case WORD_LET: scan_let(p, &t); break;
        case WORD_FREE_VAR: scan_name(p, &t, HEAD_VALUE); break;
        case WORD_TYPE: scan_type(p, &t); break;
        case WORD_IMPORT: scan_import(p, &t); break;
        }
    }
    p->lex.versioned = false; /* until the reader itself gets there */
}
