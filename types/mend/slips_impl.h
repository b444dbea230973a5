/* SPDX-License-Identifier: Apache-2.0 */
/* What mend/slips.c and mend/shapes.c share; nobody else includes it: the tokens around the
 * mistake, and how a change is written down. */
#ifndef TYPES_MEND_SLIPS_IMPL_H
#define TYPES_MEND_SLIPS_IMPL_H

#include <string.h>

#include "types/mend/read.h"

typedef struct Slips {
    SlipText *t;
    SlipChanges *out;
} Slips;

/* ---- tokens ---------------------------------------------------------------------------------- */

static inline size_t count(const Slips *s) { return s->t->tokens.len; }
static inline const SlipToken *token(const Slips *s, size_t i) { return &s->t->tokens.data[i]; }

static inline bool is(const Slips *s, size_t i, const char *text) {
    if (i >= count(s))
        return false;
    const SlipToken *t = token(s, i);
    size_t n = strlen(text);
    return t->end - t->begin == n && memcmp(s->t->text + t->begin, text, n) == 0;
}

static inline bool is_any(const Slips *s, size_t i, const char *words) {
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (is(s, i, mem_strndup(w, n)))
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

/* Whether the next token follows without a blank. */
static inline bool touches(const Slips *s, size_t i) {
    return i + 1 < count(s) && token(s, i)->end == token(s, i + 1)->begin;
}

static inline bool is_name(const Slips *s, size_t i) {
    if (i >= count(s))
        return false;
    const SlipToken *t = token(s, i);
    if (t->kind != TOK_IDENT)
        return false;
    WordClass c = word_get_class(t->word);
    return c == WORDCLASS_NONE || c == WORDCLASS_SOFT;
}

static inline const char *part(const Slips *s, uint32_t begin, uint32_t end) {
    return begin < end ? mem_strndup(s->t->text + begin, end - begin) : "";
}

/* The text of the tokens [first, last). */
static inline const char *tokens_text(const Slips *s, size_t first, size_t last) {
    return first < last ? part(s, token(s, first)->begin, token(s, last - 1)->end) : "";
}

static inline uint32_t begin_of(const Slips *s, size_t i) {
    return i < count(s) ? token(s, i)->begin : s->t->len;
}

static inline uint32_t end_before(const Slips *s, size_t i) { return i ? token(s, i - 1)->end : 0; }

/* The token after this one, or after the bracket it opens. */
static inline size_t behind(const Slips *s, size_t i) {
    int32_t partner = token(s, i)->partner;
    return partner > (int32_t)i ? (size_t)partner + 1 : i + 1;
}

/* The token behind the expression that begins at token i: a `,`, a `;`, or the bracket that closes what is
 * around it; with `line` also the first token of another line outside of brackets. */
static inline size_t expression_end(const Slips *s, size_t i, bool line) {
    size_t first = i;
    while (i < count(s)) {
        const SlipToken *t = token(s, i);
        if (t->kind == TOK_COMMA || t->kind == TOK_SEMI || t->kind == TOK_RPAREN ||
            t->kind == TOK_RBRACKET || t->kind == TOK_RBRACE || (line && i > first && t->line))
            return i;
        i = behind(s, i);
    }
    return i;
}

/* The first token of the expression that ends before token i. */
static inline size_t expression_begin(const Slips *s, size_t i) {
    while (i > 0) {
        const SlipToken *t = token(s, i - 1);
        if (t->kind == TOK_COMMA || t->kind == TOK_SEMI || t->kind == TOK_LPAREN ||
            t->kind == TOK_LBRACKET || t->kind == TOK_LBRACE || t->kind == TOK_EQUAL ||
            t->kind == TOK_FATARROW || t->kind == TOK_ASSIGN)
            return i;
        if (t->partner < 0 && (t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET))
            return i;
        bool block = t->kind == TOK_RBRACE && i < count(s) && token(s, i)->line;
        if (block)
            return i;
        i = t->partner >= 0 ? (size_t)t->partner : i - 1;
        if (i < count(s) && token(s, i)->line && token(s, i)->depth == 0)
            return i;
    }
    return i;
}

/* The token behind the block that begins behind token i and is as long as its lines are indented, as in
 * Python. */
static inline size_t indented_end(const Slips *s, size_t i) {
    size_t head = i;
    while (head > 0 && !token(s, head)->line)
        head--;
    uint32_t line = begin_of(s, head), at = line;
    while (at > 0 && s->t->text[at - 1] != '\n')
        at--;
    uint32_t indent = line - at;
    for (i++; i < count(s); i++) {
        if (!token(s, i)->line)
            continue;
        uint32_t begin = token(s, i)->begin, start = begin;
        while (start > 0 && s->t->text[start - 1] != '\n')
            start--;
        if (begin - start <= indent)
            return i;
    }
    return i;
}

/* ---- changes --------------------------------------------------------------------------------- */

static inline void edit(SlipEdits *c, uint32_t begin, uint32_t end, const char *text) {
    vec_push(c, ((SlipEdit){begin, end, text}));
}

static inline void offer(Slips *s, const SlipEdits *c) { vec_push(s->out, *c); }

static inline void replace(Slips *s, uint32_t begin, uint32_t end, const char *text) {
    SlipEdits c = {0};
    edit(&c, begin, end, text);
    offer(s, &c);
}

/* Proposes to replace the tokens [first, last). */
static inline void replace_tokens(Slips *s, size_t first, size_t last, const char *text) {
    replace(s, begin_of(s, first), token(s, last - 1)->end, text);
}

static inline void remove_tokens(Slips *s, size_t first, size_t last) {
    uint32_t end = token(s, last - 1)->end;
    bool tight = first && touches(s, first - 1);
    if (last < count(s) && !token(s, last)->line && !tight)
        end = begin_of(s, last);
    else if (first && !token(s, first)->line && !tight) {
        replace(s, token(s, first - 1)->end, end, "");
        return;
    }
    replace(s, begin_of(s, first), end, "");
}

static inline void insert_before(Slips *s, size_t i, const char *text) {
    uint32_t at = end_before(s, i);
    replace(s, at, at, text);
}

/* ---- mend/shapes.c: proposes what token i may be the middle of ------------------------------- */

typedef struct SlipShape {
    void (*propose)(Slips *s, size_t i);
    bool wide; /* it may begin some tokens before where the reader stopped */
} SlipShape;
extern const SlipShape slip_shapes[];
extern const size_t slip_nshapes;

#endif
