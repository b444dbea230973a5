/* SPDX-License-Identifier: Apache-2.0 */
/* What might have been meant where the reader stopped; mend/read.h has the manual.
 *
 * A table of words for words, the brackets and separators that may be missing or too many, and the
 * shapes of mend/shapes.c. Each is tried before it is suggested. */
#include <ctype.h>

#include "types/mend/slips_impl.h"

enum { BEFORE = 14 }; /* so many tokens before the mistake are looked at */

/* ---- words for words ------------------------------------------------------------------------- */

/* Words of other languages and what Relay has for them. Tokens that touch are one word here: `+=`, `<>`. */
static const struct {
    const char *was, *meant;
} words[] = {
    {"and", "&&"},
    {"or", "||"},
    {"&", "&&"},
    {"|", "||"},
    {"|", "|>"},
    {"~", "!"},
    {"<>", "!="},
    {"===", "=="},
    {"!==", "!="},
    {"=/=", "!="},
    {"/=", "!="},
    {"=<", "<="},
    {"=>", ">="},
    {"<-", "="},
    {"<-", ":="},
    {"+.", "+"},
    {"-.", "-"},
    {"*.", "*"},
    {"/.", "/"},
    {"^", "**"},
    {"^", "++"},
    {"@", "@@"},
    {"fn", "def"},
    {"function", "def"},
    {"func", "def"},
    {"fun", "def"},
    {"proc", "def"},
    {"define", "def"},
    {"var", "let"},
    {"val", "let"},
    {"const", "let"},
    {"auto", "let"},
    {"elif", "else if"},
    {"elsif", "else if"},
    {"elseif", "else if"},
    {"data", "type"},
    {"enum", "type"},
    {"struct", "type"},
    {"class", "type"},
    {"datatype", "type"},
    {"open", "import"},
    {"use", "import"},
    {"using", "import"},
    {"case", "match"},
    {"switch", "match"},
    {":", "="},
    {":", "=>"},
    {":", "->"},
    {"=", ":"},
    {":", "::"},
    {"=", "=>"},
    {"->", "=>"},
    {"=>", "->"},
    {"=>", "="},
    {",", ";"},
    {";", ","},
    {":=", "="},
    {"|", ","},
    {"*", "!"},
    {"\xE2\x87\x92", "=>"},
    {"\xE2\x86\x92", "->"},
    {"\xE2\x89\xA4", "<="},
    {"\xE2\x89\xA5", ">="},
    {"\xE2\x89\xA0", "!="},
    {"\xC3\x97", "*"},
    {"\xE2\x88\x92", "-"},
    {"\xC3\xB7", "/"},
};
enum { WORDS = sizeof words / sizeof *words };

/* The token behind those from i on that spell `text`, or 0 when they do not. */
static size_t spells(const Slips *s, size_t i, const char *text) {
    size_t n = strlen(text);
    uint32_t begin = begin_of(s, i);
    if (begin + n > s->t->len || memcmp(s->t->text + begin, text, n) != 0)
        return 0;
    while (i < count(s) && token(s, i)->end < begin + n)
        i++;
    return i < count(s) && token(s, i)->end == begin + n ? i + 1 : 0;
}

/* Proposes to replace a word wherever the text has it. */
static void replace_all(Slips *s, const char *was, const char *meant) {
    SlipEdits c = {0};
    for (size_t i = 0; i < count(s); i++) {
        size_t end = spells(s, i, was);
        if (end)
            edit(&c, begin_of(s, i), token(s, end - 1)->end, meant);
    }
    if (c.len > 1)
        offer(s, &c);
}

static void other_words(Slips *s, size_t i) {
    if (i < s->t->at && i + 4 < s->t->at)
        return;
    if (is(s, i, "=") && is(s, i + 1, ">"))
        replace_tokens(s, i, i + 2, "=>");
    if (is(s, i, ",") && is_any(s, i + 1, "} ; ) ]"))
        remove_tokens(s, i, i + 1);
    for (size_t k = 0; k < WORDS; k++) {
        size_t end = spells(s, i, words[k].was);
        if (!end)
            continue;
        bool colon = !strcmp(words[k].was, "=") && !strcmp(words[k].meant, ":");
        bool equal = !strcmp(words[k].was, ":") && !strcmp(words[k].meant, "=");
        bool arrow = !strcmp(words[k].was, ":") && strchr(words[k].meant, '>') && i &&
                     touches(s, i - 1);
        if (arrow)
            replace_tokens(s, i, end, fmt_text(" %s", words[k].meant));
        else if (i &&
                 (colon || equal)) /* a colon takes a blank behind it only, an equals sign none */
            replace(s, token(s, i - 1)->end, equal ? begin_of(s, end) : token(s, end - 1)->end,
                    words[k].meant);
        else
            replace_tokens(s, i, end, words[k].meant);
        if (arrow)
            replace_all(s, words[k].was, fmt_text(" %s", words[k].meant));
        if (isalpha((unsigned char)words[k].was[0]) || words[k].was[0] == '&' ||
            words[k].was[0] == '^')
            replace_all(s, words[k].was, words[k].meant);
    }
    if (is(s, i, "not") && i + 1 < count(s))
        replace(s, begin_of(s, i), begin_of(s, i + 1), "!");
    if (is_any(s, i, "rec mut new then do") && i + 1 < count(s))
        remove_tokens(s, i, i + 1);
}

/* `f x`: a call without brackets. */
static void applications(Slips *s, size_t i) {
    if (!i || !is_name(s, i - 1) || i >= count(s))
        return;
    TokenKind k = token(s, i)->kind;
    if (k != TOK_NUMBER && k != TOK_STRING && !is_name(s, i))
        return;
    Str args = {0};
    size_t end = i;
    for (; end < count(s) && (end == i || !token(s, end)->line) &&
           (token(s, end)->kind == TOK_NUMBER || token(s, end)->kind == TOK_STRING ||
            is_name(s, end));
         end++)
        str_printf(&args, "%s%s", args.len ? ", " : "", tokens_text(s, end, end + 1));
    replace(s, token(s, i - 1)->end, token(s, end - 1)->end, fmt_text("(%s)", str_text(&args)));
}

/* ---- what is missing, and what is too many --------------------------------------------------- */

static void insertions(Slips *s, bool expected) {
    static const char *const texts[] = {";", ")", "}", ",", "]", "=>", "=", "{", ":", "(", "else"};
    size_t i = s->t->at;
    const Diag *d = s->t->diag;
    if (expected && d && d->cause == DIAG_CAUSE_NO_ELSE)
        insert_before(s, i, " else { () }");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        bool said = d && diag_is_expected(d, texts[k]);
        if (said != expected)
            continue;
        bool tight = strchr(";),]:(", texts[k][0]) != NULL;
        insert_before(s, i, tight ? texts[k] : fmt_text(" %s", texts[k]));
        if (texts[k][0] == ')' || texts[k][0] == '}' ||
            texts[k][0] == ']') { /* the bracket may be missing at the end of a line before */
            int lines = 0;
            for (size_t j = i; j-- > 1 && lines < 12;) {
                if (!token(s, j)->line)
                    continue;
                lines++;
                insert_before(s, j, tight ? texts[k] : fmt_text(" %s", texts[k]));
            }
        }
    }
}

static bool may_go(const Slips *s, size_t i) {
    if (i >= count(s))
        return false;
    TokenKind k = token(s, i)->kind;
    if (k == TOK_IDENT)
        return !touches(s, i);
    return k == TOK_LPAREN || k == TOK_RPAREN || k == TOK_LBRACKET || k == TOK_RBRACKET ||
           k == TOK_LBRACE || k == TOK_RBRACE || k == TOK_COMMA || k == TOK_SEMI ||
           k == TOK_COLON || k == TOK_ERROR;
}

static void deletions(Slips *s) {
    size_t i = s->t->at;
    if (i > 1 && i + 1 < count(s) && is(s, i, ":")) /* `f(x: 1)`, an attribute with a colon */
        replace(s, begin_of(s, i - 1), begin_of(s, i + 1), "");
    if (may_go(s, i))
        remove_tokens(s, i, i + 1);
    if (i && may_go(s, i - 1))
        remove_tokens(s, i - 1, i);
}

void slips_propose(SlipText *t, SlipChanges *out) {
    Slips s = {t, out};
    size_t last = t->at + 1 < t->tokens.len ? t->at + 1 : t->tokens.len;
    size_t first = t->at > BEFORE ? t->at - BEFORE : 0;
    bool line = t->at < t->tokens.len && t->tokens.data[t->at].line;
    if (line)
        insertions(&s, true);
    size_t order[BEFORE + 3], n = 0;
    order[n++] = t->at;
    if (last != t->at)
        order[n++] = last;
    for (size_t i = t->at; i-- > first;)
        order[n++] = i;
    for (size_t k = 0; k < n; k++) {
        bool near = order[k] + 1 >= t->at;
        for (size_t j = 0; j < slip_nshapes; j++)
            if (near || slip_shapes[j].wide)
                slip_shapes[j].propose(&s, order[k]);
        other_words(&s, order[k]);
    }
    if (!line) {
        applications(&s, t->at);
        insertions(&s, true);
    }
    deletions(&s);
    insertions(&s, false);
}
