/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a program with a mistake: its brackets and names, and where names are bound. What a token is, is
 * guessed by the tokens around it; a wrong guess costs a trial and no more. */
#include <string.h>

#include "types/mend/mend.h"

int32_t mend_item_at(const Mender *m, uint32_t at) {
    const Module *module = m->c->module;
    size_t low = 0, high = module->items.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        Span s = module->items.data[mid]->span;
        if (at < s.begin) {
            high = mid;
        } else if (at >= s.end) {
            low = mid + 1;
        } else {
            return (int32_t)mid;
        }
    }
    return -1;
}

static bool opens(TokenKind k) { return k == TOK_LPAREN || k == TOK_LBRACKET || k == TOK_LBRACE; }
static bool closes(TokenKind k) { return k == TOK_RPAREN || k == TOK_RBRACKET || k == TOK_RBRACE; }

/* Makes room for tokens in unscanned memory: they refer to symbols only, which are never collected. */
static void reserve_tokens(Mender *m, size_t cap) {
    MendToken *data = mem_bytes(cap * sizeof *data);
    if (m->tokens.len)
        memcpy(data, m->tokens.data, m->tokens.len * sizeof *data);
    m->tokens.data = data;
    m->tokens.cap = cap;
}

void mend_read_tokens(Mender *m) {
    Module scratch = {.source = m->source};
    Lexer lex;
    lexer_init(&lex, m->source, &scratch);
    VEC(int32_t) stack = {0};
    reserve_tokens(m, (m->source->len - m->begin) / 3 + 64);
    for (uint32_t at = m->begin;;) {
        Token t;
        lexer_read(&lex, at, &t);
        if (t.kind == TOK_EOF || t.kind == TOK_ERROR)
            break;
        at = t.end;
        MendToken n = {.kind = t.kind,
                       .word = t.word,
                       .begin = t.begin,
                       .end = t.end,
                       .sym = t.sym,
                       .partner = -1,
                       .same = -1,
                       .opener = stack.len ? vec_last(&stack) : -1,
                       .item = mend_item_at(m, t.begin)};
        int32_t here = (int32_t)m->tokens.len;
        if (closes(t.kind) && stack.len) {
            int32_t open = vec_pop(&stack);
            m->tokens.data[open].partner = here;
            n.partner = open;
            n.opener = m->tokens.data[open].opener;
        }
        if (opens(t.kind))
            vec_push(&stack, here);
        DType dtype;
        if (t.kind == TOK_NUMBER)
            n.sym = sym_intern_n(m->source->text + t.begin, t.end - t.begin);
        if (t.kind == TOK_STRING && t.end - t.begin > 2 &&
            dtype_find(m->source->text + t.begin + 1, t.end - t.begin - 2, &dtype))
            n.sym = sym_intern(dtype_info[dtype].name);
        if (m->tokens.len == m->tokens.cap)
            reserve_tokens(m, 2 * m->tokens.cap);
        vec_push(&m->tokens, n);
        if (n.sym) {
            map_set(&m->counts, n.sym, (void *)(mend_count(m, n.sym) + 1));
            m->tokens.data[here].same = (int32_t)(uintptr_t)map_find(&m->last, n.sym) - 1;
            map_set(&m->last, n.sym, (void *)(uintptr_t)(here + 1));
        }
    }
}

const char *mend_text(const Mender *m, uint32_t begin, uint32_t end) {
    return mem_strndup(m->source->text + begin, end - begin);
}

size_t mend_token_at(const Mender *m, uint32_t begin) {
    size_t low = 0, high = m->tokens.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (m->tokens.data[mid].begin < begin) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

void mend_place_tokens(const Mender *m, size_t *first, size_t *last) {
    *first = mend_token_at(m, m->place.begin);
    uint32_t end = m->place.end < m->line_end ? m->place.end : m->line_end;
    *last = mend_token_at(m, end);
    if (*last == *first && *first < m->tokens.len)
        (*last)++;
}

bool mend_is_on_line(const Mender *m, Span s) {
    uint32_t line = m->place.begin;
    while (line > 0 && m->source->text[line - 1] != '\n')
        line--;
    return s.begin >= line;
}

size_t mend_count(const Mender *m, const Symbol *s) { return (uintptr_t)map_find(&m->counts, s); }

bool mend_is_dtype(const MendToken *t) {
    return t->kind == TOK_IDENT && word_get_class(t->word) == WORDCLASS_DTYPE;
}

bool mend_names_dtype(const MendToken *t) {
    return mend_is_dtype(t) || (t->kind == TOK_STRING && t->sym);
}

bool mend_is_name(const MendToken *t) {
    if (t->kind != TOK_IDENT)
        return t->kind == TOK_LOCAL || t->kind == TOK_GLOBAL;
    WordClass c = word_get_class(t->word);
    return c == WORDCLASS_NONE || c == WORDCLASS_SOFT;
}

void mend_parts(const Mender *m, size_t open, MendParts *out) {
    int32_t close = m->tokens.data[open].partner;
    if (close < 0)
        return;
    size_t first = open + 1;
    for (size_t i = open + 1; i <= (size_t)close; i++) {
        const MendToken *t = &m->tokens.data[i];
        bool end = i == (size_t)close;
        if (!end && !(t->kind == TOK_COMMA && t->opener == (int32_t)open))
            continue;
        if (i > first) {
            vec_push(out, first);
            vec_push(out, i - 1);
        }
        first = i + 1;
    }
}

/* Whether the bracket holds declared type parameters: `def f[ … ]`, `type T[ … ]`, `fn [ … ]`. */
static bool declares_parameters(const Mender *m, size_t open) {
    const MendToken *t = &m->tokens.data[open];
    if (open && t[-1].word == WORD_FN)
        return true;
    return open > 1 && mend_is_name(t - 1) && (t[-2].word == WORD_DEF || t[-2].word == WORD_TYPE);
}

/* Whether the token is a name where it is bound: after `let`, `def` or `type`, a parameter, a name in a
 * pattern, a constructor, a field or a type parameter in a declaration. */
bool mend_is_binding(const Mender *m, size_t i) {
    const MendToken *t = &m->tokens.data[i];
    if (!mend_is_name(t) || t->kind == TOK_GLOBAL || i == 0 || i + 1 >= m->tokens.len)
        return false;
    const MendToken *p = t - 1, *n = t + 1;
    if (p->kind == TOK_IDENT && (p->word == WORD_LET || p->word == WORD_DEF || p->word == WORD_AS))
        return true;
    const MendToken *first = t;
    if (t->item >= 0) {
        Span span = m->c->module->items.data[t->item]->span;
        first = &m->tokens.data[mend_token_at(m, span.begin)];
        bool type = m->c->module->items.data[t->item]->kind == ITEM_TYPE;
        if (type && (p == first || n->kind == TOK_COLON || p->kind == TOK_LBRACE ||
                     p->kind == TOK_COMMA || p->kind == TOK_BAR))
            return n->kind != TOK_RPAREN;
    }
    if (t->opener >= 0 && m->tokens.data[t->opener].kind == TOK_LBRACKET)
        return declares_parameters(m, (size_t)t->opener) &&
               (p->kind == TOK_LBRACKET || p->kind == TOK_COMMA) &&
               (n->kind == TOK_RBRACKET || n->kind == TOK_COMMA || n->kind == TOK_COLON);
    if (t->opener < 0)
        return false;
    bool before = p->kind == TOK_LPAREN || p->kind == TOK_COMMA || p->kind == TOK_COLONCOLON ||
                  p->kind == TOK_LBRACE || p->kind == TOK_BAR;
    return before &&
           (n->kind == TOK_COMMA || n->kind == TOK_RPAREN || n->kind == TOK_COLON ||
            n->kind == TOK_COLONCOLON || n->kind == TOK_RBRACE || n->kind == TOK_FATARROW);
}

bool mend_is_unused(const Mender *m, size_t binding) {
    const MendToken *t = &m->tokens.data[binding];
    const Item *item = t->item >= 0 ? m->c->module->items.data[t->item] : NULL;
    return mend_count(m, t->sym) == 1 ||
           (item && item->name.span.begin == t->begin && infer_in_groups(item) && m->c->edges &&
            !m->mentioned[t->item]);
}

void mend_locals(const Mender *m, bool unused, SymbolVec *out) {
    if (m->item < 0)
        return;
    Span span = m->c->module->items.data[m->item]->span;
    Map counts = {0}, seen = {0};
    size_t first = mend_token_at(m, span.begin), last = mend_token_at(m, span.end);
    for (size_t i = first; i < last; i++) {
        const Symbol *s = m->tokens.data[i].sym;
        if (s && mend_is_name(&m->tokens.data[i]))
            map_set(&counts, s, (void *)((uintptr_t)map_find(&counts, s) + 1));
    }
    size_t here = mend_token_at(m, m->place.begin);
    bool chooses = false;
    for (size_t i = first; i < here; i++) {
        Word word = m->tokens.data[i].word;
        chooses = chooses || word == WORD_IF || word == WORD_MATCH;
    }
    for (size_t i = last; i-- > first;) {
        const MendToken *t = &m->tokens.data[i];
        if (i > here + 40 || !mend_is_binding(m, i) || map_has(&seen, t->sym))
            continue;
        bool own = m->c->module->items.data[m->item]->name.span.begin == t->begin;
        if (own && (m->unknown || !chooses))
            continue; /* a function that calls itself without a choice checks and does not end */
        if (t->sym->text[0] == '_' || (t->sym->text[0] >= 'A' && t->sym->text[0] <= 'Z'))
            continue;
        map_set(&seen, t->sym, (void *)t->sym);
        if (((uintptr_t)map_find(&counts, t->sym) == 1) == unused)
            vec_push(out, t->sym);
    }
    for (size_t i = here; i-- > 0 && m->unknown;) { /* names of the file's items above */
        const MendToken *t = &m->tokens.data[i];
        const Item *item = t->item >= 0 ? m->c->module->items.data[t->item] : NULL;
        if (!item || t->item == m->item || m->c->failed[t->item] ||
            item->name.span.begin != t->begin || !t->sym)
            continue;
        if ((mend_count(m, t->sym) == 1) == unused && !map_has(&seen, t->sym))
            vec_push(out, t->sym);
    }
}
