/* SPDX-License-Identifier: Apache-2.0 */
/* See lexer.h. Nothing here reports: a token that is wrong carries the code of what is wrong, and
 * the reader, which may only be looking ahead, reports it when it gets there. */
#include "parser/lexer.h"

#include <string.h>

typedef struct WordEntry {
    Word word;
    WordClass cls;
    size_t len;
    const char *text;
} WordEntry;

static const WordEntry word_table[] = {
#define WORD(name, text, cls) {WORD_##name, WORDCLASS_##cls, sizeof text - 1, text},
    LEXER_WORDS(WORD)
#undef WORD
};

int token_depth(TokenKind kind) {
    switch ((int)kind) {
    case TOK_LPAREN:
    case TOK_LBRACKET:
    case TOK_HASH:
    case TOK_LBRACE: return 1;
    case TOK_RPAREN:
    case TOK_RBRACKET:
    case TOK_RBRACE: return -1;
    }
    return 0;
}

WordClass word_get_class(Word word) {
    return word == WORD_NONE ? WORDCLASS_NONE : word_table[word - 1].cls;
}

bool word_is_type(Word word) {
    WordClass c = word_get_class(word);
    return c == WORDCLASS_DTYPE || c == WORDCLASS_TYPE;
}

uint32_t lexer_skip_prompt(const Source *source, uint32_t i) {
    static const char *const prompts[] = {"relay>", "...>"};
    uint32_t at = i;
    while (at < source->len && (source->text[at] == ' ' || source->text[at] == '\t'))
        at++;
    for (size_t k = 0; k < sizeof prompts / sizeof *prompts; k++) {
        size_t n = strlen(prompts[k]);
        if (source->len - at < n || memcmp(source->text + at, prompts[k], n) != 0)
            continue;
        at += (uint32_t)n;
        if (at < source->len && source->text[at] == ' ')
            return at + 1;
        return at == source->len || strchr("\r\n", source->text[at]) ? at : i;
    }
    return i;
}

/* Whether the first line that is neither empty nor a comment has a prompt, or greets as the prompt does. */
static bool is_session(const Source *source) {
    static const char greeting[] = "Relay ", answer[] = ":help for commands";
    const char *text = source->text, *end = text + source->len;
    while (text < end) {
        const char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));
        text = stop ? stop + 1 : end;
        const char *first = line + strspn(line, " \t\r");
        if (first >= text || *first == '\n' || (first[0] == '/' && first[1] == '/'))
            continue;
        if (strncmp(first, greeting, sizeof greeting - 1) == 0) {
            const char *found = strstr(first, answer);
            return found && found < text;
        }
        uint32_t begin = (uint32_t)(line - source->text);
        return lexer_skip_prompt(source, begin) != begin;
    }
    return false;
}

void lexer_init(Lexer *lex, const Source *source, Module *module) {
    *lex = (Lexer){.source = source, .module = module, .session = is_session(source)};
}

/* A walk through the table costs what looking in a map does, and no map is made for each text that is read:
 * a paste at the prompt is many short ones. */
static Word find_word(const char *text, size_t len) {
    for (size_t i = 0; i < sizeof word_table / sizeof *word_table; i++)
        if (word_table[i].len == len && word_table[i].text[0] == text[0] &&
            memcmp(word_table[i].text, text, len) == 0)
            return word_table[i].word;
    return WORD_NONE;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_word(char c) { return is_letter(c) || is_digit(c); }

/* The byte at i, or NUL past the end (source texts end with NUL; a NUL inside is refused before). */
static char at(const Lexer *lex, uint32_t i) {
    return i < lex->source->len ? lex->source->text[i] : '\0';
}

enum { LONG_INDENT = 1000 }; /* further in, a comment stands behind something */

static void record_comment(Lexer *lex, uint32_t begin, uint32_t end) {
    if (!lex->module || begin < lex->comments_upto)
        return;
    lex->comments_upto = end;
    uint32_t line = begin;
    while (line > 0 && at(lex, line - 1) != '\n' && begin - line < LONG_INDENT)
        line--;
    uint32_t first = lexer_skip_prompt(lex->source, line);
    while (first < begin && (at(lex, first) == ' ' || at(lex, first) == '\t'))
        first++;
    bool own = first == begin && (line == 0 || at(lex, line - 1) == '\n');
    Comment c = {{lex->source, begin, end}, own};
    vec_push(&lex->module->comments, c);
}

/* The end of the block comment at i, or 0 if it has none. */
static uint32_t block_comment_end(const Lexer *lex, uint32_t i) {
    size_t depth = 0;
    do {
        if (i >= lex->source->len)
            return 0;
        char c = at(lex, i), d = at(lex, i + 1);
        if (c == '/' && d == '*') {
            depth++;
            i += 2;
        } else if (c == '*' && d == '/') {
            depth--;
            i += 2;
        } else {
            i++;
        }
    } while (depth > 0);
    return i;
}

/* Passes a prompt at the beginning of a line. Of a session the lines without one are passed whole, and so are its
 * commands. */
static uint32_t skip_line_head(const Lexer *lex, uint32_t i) {
    if (lex->versioned)
        return i;
    uint32_t behind = lexer_skip_prompt(lex->source, i);
    bool comment = at(lex, i) == '/' && at(lex, i + 1) == '/';
    if (!lex->session || comment || (behind != i && at(lex, behind) != ':'))
        return behind;
    const char *text = lex->source->text;
    const char *end = memchr(text + i, '\n', lex->source->len - i);
    return end ? (uint32_t)(end - text) : (uint32_t)lex->source->len;
}

/* Skips blanks and comments from t->begin on; false at a block comment that does not end. */
static bool skip_blanks(Lexer *lex, Token *t) {
    uint32_t i = t->begin, start = i;
    for (;;) {
        if (i == 0 || at(lex, i - 1) == '\n')
            i = skip_line_head(lex, i);
        char c = at(lex, i);
        if (c == '\n') {
            t->break_before = true;
            i++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            i++;
        } else if (c == '/' && at(lex, i + 1) == '/') {
            uint32_t begin = i;
            while (i < lex->source->len && at(lex, i) != '\n')
                i++;
            uint32_t end = i > begin && at(lex, i - 1) == '\r' ? i - 1 : i;
            record_comment(lex, begin, end);
        } else if (c == '/' && at(lex, i + 1) == '*') {
            uint32_t end = block_comment_end(lex, i);
            if (!end) {
                t->begin = i;
                t->end = (uint32_t)lex->source->len;
                return false;
            }
            if (memchr(lex->source->text + i, '\n', end - i))
                t->break_before = true;
            record_comment(lex, i, end);
            i = end;
        } else {
            break;
        }
    }
    t->blank_before = i > start;
    t->begin = t->end = i;
    return true;
}

/* digits [. digits] [e [+-] digits] and whatever letters touch it: the suffix. */
static uint32_t number_end(const Lexer *lex, uint32_t i) {
    while (is_digit(at(lex, i)))
        i++;
    if (at(lex, i) == '.' && is_digit(at(lex, i + 1)))
        for (i++; is_digit(at(lex, i)); i++)
            ;
    char c = at(lex, i), d = at(lex, i + 1);
    if ((c == 'e' || c == 'E') && (d == '+' || d == '-') && is_digit(at(lex, i + 2)))
        i += 3;
    while (is_word(at(lex, i)))
        i++;
    return i;
}

/* What may follow a sigil: words joined by `.`, `::` and `/`. */
static uint32_t sigil_name_end(const Lexer *lex, uint32_t i) {
    for (;;) {
        while (is_word(at(lex, i)))
            i++;
        char c = at(lex, i);
        uint32_t next = c == '.' || c == '/'                ? i + 1
                        : c == ':' && at(lex, i + 1) == ':' ? i + 2
                                                            : 0;
        if (!next || !is_word(at(lex, next)))
            return i;
        i = next;
    }
}

static void read_string(const Lexer *lex, Token *t) {
    for (uint32_t i = t->begin + 1; i < lex->source->len; i++) {
        char c = at(lex, i);
        if (c == '"') {
            t->kind = TOK_STRING;
            t->end = i + 1;
            return;
        }
        if (c == '\n' && !lex->versioned)
            break;
        if (c == '\\' && !lex->versioned && i + 1 < lex->source->len)
            i++;
    }
    t->kind = TOK_ERROR;
    t->error = DIAG_R0002;
    const char *from = lex->source->text + t->begin;
    const char *stop = memchr(from, '\n', lex->source->len - t->begin);
    t->end = stop ? (uint32_t)(stop - lex->source->text) : (uint32_t)lex->source->len;
}

static const struct {
    char text[4];
    uint8_t len;
    TokenKind kind;
} marks[] = {
#define TOKEN(name, text)
#define MARK(name, text) {text, sizeof text - 1, TOK_##name},
#define INFIX(name, kind, sign, ...) {sign, sizeof sign - 1, TOK_##kind},
    TOKENS(TOKEN, MARK)
#include "parser/infix.def"
#undef TOKEN
#undef MARK
#undef INFIX
};

/* The longest mark that the text begins with. */
static void read_mark(const Lexer *lex, Token *t) {
    const char *text = lex->source->text + t->begin;
    uint32_t len = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (text[0] == marks[i].text[0] && marks[i].len > len &&
            strncmp(text, marks[i].text, marks[i].len) == 0) {
            t->kind = marks[i].kind;
            len = marks[i].len;
        }
    t->end = t->begin + len;
    if (len)
        return;
    t->kind = TOK_ERROR;
    t->error = DIAG_R0015;
    t->end = t->begin + 1;
    while ((at(lex, t->end) & 0xC0) == 0x80) /* the rest of a UTF-8 character */
        t->end++;
}

static void set_symbol(const Lexer *lex, Token *t, uint32_t begin) {
    t->sym = sym_intern_n(lex->source->text + begin, t->end - begin);
}

void lexer_read(Lexer *lex, uint32_t from, Token *t) {
    *t = (Token){.begin = from};
    if (from == 0 && lex->source->len >= 3 && memcmp(lex->source->text, "\xEF\xBB\xBF", 3) == 0)
        t->begin = 3; /* a byte order mark */
    if (from == 0 && at(lex, t->begin) == '#' &&
        at(lex, t->begin + 1) == '!') { /* #!/usr/bin/env relay */
        while (t->begin < lex->source->len && at(lex, t->begin) != '\n')
            t->begin++;
    }
    if (!skip_blanks(lex, t)) {
        t->kind = TOK_ERROR;
        t->error = DIAG_R0003;
        return;
    }
    uint32_t i = t->begin;
    if (i >= lex->source->len) {
        t->kind = TOK_EOF;
        t->begin = t->end = (uint32_t)lex->source->len;
        return;
    }
    char c = at(lex, i), d = at(lex, i + 1);
    if (is_letter(c)) {
        while (is_word(at(lex, i)))
            i++;
        t->kind = TOK_IDENT;
        t->end = i;
        set_symbol(lex, t, t->begin);
        t->word = find_word(lex->source->text + t->begin, t->end - t->begin);
    } else if (is_digit(c)) {
        t->kind = TOK_NUMBER;
        t->end = number_end(lex, i);
    } else if (c == '%' && is_digit(d)) {
        t->kind = TOK_GRAPH;
        for (t->end = i + 1; is_digit(at(lex, t->end)); t->end++)
            ;
    } else if ((c == '%' || c == '@') && is_letter(d)) {
        t->kind = c == '%' ? TOK_LOCAL : TOK_GLOBAL;
        t->end = sigil_name_end(lex, i + 1);
        set_symbol(lex, t, i + 1);
    } else if (c == '"') {
        read_string(lex, t);
    } else {
        read_mark(lex, t);
    }
}
