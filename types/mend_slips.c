/* SPDX-License-Identifier: Apache-2.0 */
/* What might have been meant where the reader stopped; mend_read.h has the manual.
 *
 * A table of words for words, the brackets and separators that may be missing, and the shapes other
 * languages have for functions, conditions, matches and comments. All are tried, none is believed. */
#include "types/mend_read.h"

#include <ctype.h>
#include <string.h>

enum { BEFORE = 14 }; /* tokens before the mistake that are looked at */

typedef struct Slips {
    SlipText *t;
    SlipChanges *out;
} Slips;

/* ---- tokens ---------------------------------------------------------------------------------------- */

static size_t count(const Slips *s) { return s->t->tokens.len; }
static const SlipToken *token(const Slips *s, size_t i) { return &s->t->tokens.data[i]; }

static bool is(const Slips *s, size_t i, const char *text)
{
    if (i >= count(s)) return false;
    const SlipToken *t = token(s, i);
    size_t n = strlen(text);
    return t->end - t->begin == n && memcmp(s->t->text + t->begin, text, n) == 0;
}

static bool is_any(const Slips *s, size_t i, const char *words)
{
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (is(s, i, mem_strndup(w, n))) return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static bool touches(const Slips *s, size_t i) /* the token after it */
{
    return i + 1 < count(s) && token(s, i)->end == token(s, i + 1)->begin;
}

static bool is_name(const Slips *s, size_t i)
{
    if (i >= count(s)) return false;
    const SlipToken *t = token(s, i);
    if (t->kind != TOK_IDENT) return false;
    WordClass c = word_get_class(t->word);
    return c == WORDCLASS_NONE || c == WORDCLASS_SOFT;
}

static const char *part(const Slips *s, uint32_t begin, uint32_t end)
{
    return begin < end ? mem_strndup(s->t->text + begin, end - begin) : "";
}

static const char *tokens_text(const Slips *s, size_t first, size_t last) /* last: behind */
{
    return first < last ? part(s, token(s, first)->begin, token(s, last - 1)->end) : "";
}

static uint32_t begin_of(const Slips *s, size_t i)
{
    return i < count(s) ? token(s, i)->begin : s->t->len;
}

static uint32_t end_before(const Slips *s, size_t i) { return i ? token(s, i - 1)->end : 0; }

/* The token after this one, or after the bracket it opens. */
static size_t behind(const Slips *s, size_t i)
{
    int32_t partner = token(s, i)->partner;
    return partner > (int32_t)i ? (size_t)partner + 1 : i + 1;
}

/* Behind the expression that begins at token i: at `,` `;` or a bracket that closes what is around it; `line`: or
 * where a line ends outside brackets. */
static size_t expression_end(const Slips *s, size_t i, bool line)
{
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

/* Where the expression that ends before token i begins. */
static size_t expression_begin(const Slips *s, size_t i)
{
    while (i > 0) {
        const SlipToken *t = token(s, i - 1);
        if (t->kind == TOK_COMMA || t->kind == TOK_SEMI || t->kind == TOK_LPAREN ||
            t->kind == TOK_LBRACKET || t->kind == TOK_LBRACE || t->kind == TOK_EQUAL ||
            t->kind == TOK_FATARROW || t->kind == TOK_ASSIGN)
            return i;
        if (t->partner < 0 && (t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET)) return i;
        bool block = t->kind == TOK_RBRACE && i < count(s) && token(s, i)->line;
        if (block) return i;
        i = t->partner >= 0 ? (size_t)t->partner : i - 1;
        if (i < count(s) && token(s, i)->line && token(s, i)->depth == 0) return i;
    }
    return i;
}

/* Behind the last token of a block by its indentation, as Python has it, that begins behind token i. */
static size_t indented_end(const Slips *s, size_t i)
{
    size_t head = i;
    while (head > 0 && !token(s, head)->line) head--;
    uint32_t line = begin_of(s, head), at = line;
    while (at > 0 && s->t->text[at - 1] != '\n') at--;
    uint32_t indent = line - at;
    for (i++; i < count(s); i++) {
        if (!token(s, i)->line) continue;
        uint32_t begin = token(s, i)->begin, start = begin;
        while (start > 0 && s->t->text[start - 1] != '\n') start--;
        if (begin - start <= indent) return i;
    }
    return i;
}

/* ---- changes --------------------------------------------------------------------------------------- */

static void edit(SlipEdits *c, uint32_t begin, uint32_t end, const char *text)
{
    vec_push(c, ((SlipEdit){begin, end, text}));
}

static void offer(Slips *s, const SlipEdits *c) { vec_push(s->out, *c); }

static void replace(Slips *s, uint32_t begin, uint32_t end, const char *text)
{
    SlipEdits c = {0};
    edit(&c, begin, end, text);
    offer(s, &c);
}

/* Tokens [first, last). */
static void replace_tokens(Slips *s, size_t first, size_t last, const char *text)
{
    replace(s, begin_of(s, first), token(s, last - 1)->end, text);
}

static void remove_tokens(Slips *s, size_t first, size_t last)
{
    uint32_t end = token(s, last - 1)->end;
    bool tight = first && touches(s, first - 1);
    if (last < count(s) && !token(s, last)->line && !tight) end = begin_of(s, last);
    else if (first && !token(s, first)->line && !tight) {
        replace(s, token(s, first - 1)->end, end, "");
        return;
    }
    replace(s, begin_of(s, first), end, "");
}

static void insert_before(Slips *s, size_t i, const char *text)
{
    uint32_t at = end_before(s, i);
    replace(s, at, at, text);
}

/* ---- words for words ----------------------------------------------------------------------------------- */

/* Tokens that touch are one word here: `+=`, `<>`. */
static const struct {
    const char *was, *meant;
} words[] = {
    {"and", "&&"}, {"or", "||"}, {"&", "&&"}, {"|", "||"}, {"|", "|>"}, {"~", "!"},
    {"<>", "!="}, {"===", "=="}, {"!==", "!="}, {"=/=", "!="}, {"/=", "!="}, {"=<", "<="}, {"=>", ">="},
    {"<-", "="}, {"<-", ":="}, {"+.", "+"}, {"-.", "-"}, {"*.", "*"}, {"/.", "/"}, {"^", "**"}, {"^", "++"},
    {"@", "@@"}, {"fn", "def"}, {"function", "def"}, {"func", "def"}, {"fun", "def"},
    {"proc", "def"}, {"define", "def"}, {"var", "let"}, {"val", "let"}, {"const", "let"}, {"auto", "let"},
    {"elif", "else if"}, {"elsif", "else if"}, {"elseif", "else if"}, {"data", "type"}, {"enum", "type"},
    {"struct", "type"}, {"class", "type"}, {"datatype", "type"}, {"open", "import"}, {"use", "import"},
    {"using", "import"}, {"case", "match"}, {"switch", "match"}, {":", "="}, {":", "=>"}, {":", "->"}, {"=", ":"},
    {":", "::"}, {"=", "=>"}, {"->", "=>"}, {"=>", "->"}, {"=>", "="}, {",", ";"}, {";", ","},
    {":=", "="}, {"|", ","}, {"*", "!"}, {"\xE2\x87\x92", "=>"}, {"\xE2\x86\x92", "->"},
    {"\xE2\x89\xA4", "<="}, {"\xE2\x89\xA5", ">="}, {"\xE2\x89\xA0", "!="}, {"\xC3\x97", "*"},
    {"\xE2\x88\x92", "-"}, {"\xC3\xB7", "/"},
};
enum { WORDS = sizeof words / sizeof *words };

/* Behind the tokens from i on that spell `text`, or 0. */
static size_t spells(const Slips *s, size_t i, const char *text)
{
    size_t n = strlen(text);
    uint32_t begin = begin_of(s, i);
    if (begin + n > s->t->len || memcmp(s->t->text + begin, text, n) != 0) return 0;
    while (i < count(s) && token(s, i)->end < begin + n) i++;
    return i < count(s) && token(s, i)->end == begin + n ? i + 1 : 0;
}

/* The same wherever the text has it. */
static void replace_all(Slips *s, const char *was, const char *meant)
{
    SlipEdits c = {0};
    for (size_t i = 0; i < count(s); i++) {
        size_t end = spells(s, i, was);
        if (end) edit(&c, begin_of(s, i), token(s, end - 1)->end, meant);
    }
    if (c.len > 1) offer(s, &c);
}

static void other_words(Slips *s, size_t i)
{
    if (i < s->t->at && i + 4 < s->t->at) return;
    if (is(s, i, "=") && is(s, i + 1, ">")) replace_tokens(s, i, i + 2, "=>");
    if (is(s, i, ",") && is_any(s, i + 1, "} ; ) ]")) remove_tokens(s, i, i + 1);
    for (size_t k = 0; k < WORDS; k++) {
        size_t end = spells(s, i, words[k].was);
        if (!end) continue;
        bool colon = !strcmp(words[k].was, "=") && !strcmp(words[k].meant, ":");
        bool equal = !strcmp(words[k].was, ":") && !strcmp(words[k].meant, "=");
        bool arrow = !strcmp(words[k].was, ":") && strchr(words[k].meant, '>') && i && touches(s, i - 1);
        if (arrow)
            replace_tokens(s, i, end, fmt_text(" %s", words[k].meant));
        else if (i && (colon || equal)) /* `x: 1` and `x=1`, as one writes them */
            replace(s, token(s, i - 1)->end, equal ? begin_of(s, end) : token(s, end - 1)->end, words[k].meant);
        else
            replace_tokens(s, i, end, words[k].meant);
        if (arrow) replace_all(s, words[k].was, fmt_text(" %s", words[k].meant));
        if (isalpha((unsigned char)words[k].was[0]) || words[k].was[0] == '&' || words[k].was[0] == '^')
            replace_all(s, words[k].was, words[k].meant);
    }
    if (is(s, i, "not") && i + 1 < count(s))
        replace(s, begin_of(s, i), begin_of(s, i + 1), "!");
    if (is_any(s, i, "rec mut new then do") && i + 1 < count(s)) remove_tokens(s, i, i + 1);
}

/* x = e: a comparison in a condition, else a binding or an assignment. */
static void equals(Slips *s, size_t i)
{
    if (!is(s, i, "=") || !i) return;
    bool begins = is_name(s, i - 1) &&
                  (i == 1 || token(s, i - 1)->line || token(s, i - 2)->kind == TOK_SEMI ||
                   token(s, i - 2)->kind == TOK_LBRACE || token(s, i - 2)->kind == TOK_RBRACE);
    if (!begins) replace_tokens(s, i, i + 1, "==");
    if (!begins) return;
    replace_tokens(s, i, i + 1, ":=");
    size_t end = expression_end(s, i + 1, true);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i - 1), begin_of(s, i - 1), "let ");
    offer(s, &c);
    edit(&c, end_before(s, end), end_before(s, end), ";");
    if (!is(s, end, ";")) offer(s, &c);
    replace_tokens(s, i, i + 1, "==");
}

/* return e;     return e */
static void returns(Slips *s, size_t i)
{
    if (!is(s, i, "return") || i + 1 >= count(s)) return;
    size_t end = expression_end(s, i + 1, true);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i), begin_of(s, i + 1), "");
    if (is(s, end, ";")) edit(&c, begin_of(s, end), token(s, end)->end, "");
    offer(s, &c);
}

/* r += e     r++ */
static void updates(Slips *s, size_t i)
{
    if (i > 1 && is_any(s, i - 1, "++ --") && is_name(s, i - 2) && touches(s, i - 2)) {
        const char *name = tokens_text(s, i - 2, i - 1);
        replace_tokens(s, i - 1, i, fmt_text(" := !%s %.1s 1", name, tokens_text(s, i - 1, i)));
    }
    if (!is(s, i, "=") || i < 2 || !touches(s, i - 1) || !is_name(s, i - 2) || !is_any(s, i - 1, "+ -")) return;
    const char *name = tokens_text(s, i - 2, i - 1);
    size_t end = expression_end(s, i + 1, true);
    bool one = is(s, i - 1, "+") || end == i + 2;
    if (one) replace_tokens(s, i - 1, i + 1, fmt_text(":= !%s %s", name, tokens_text(s, i - 1, i)));
}

/* ---- functions ----------------------------------------------------------------------------------------- */

/* Braces around the tokens from `first` on, the separator before them left out. */
static void braced(Slips *s, SlipEdits *c, size_t separator, size_t end)
{
    bool semi = is(s, end, ";");
    bool tight = separator > 0 && touches(s, separator - 1);
    edit(c, begin_of(s, separator), token(s, separator)->end, tight ? " {" : "{");
    edit(c, end_before(s, end), semi ? token(s, end)->end : end_before(s, end), " }");
}

/* def f(x) = e     def f(x): e     def f(x) -> T = e     and Python's block */
static void definitions(Slips *s, size_t i)
{
    if (!is_any(s, i, "= : =>")) return;
    size_t head = i;
    while (head > 0 && !token(s, head)->line) head--;
    bool def = is(s, head, "def");
    if (token(s, i)->depth != token(s, head)->depth) return;
    bool block = is(s, i, ":") && is_any(s, head, "if else elif") && i + 1 < count(s) && token(s, i + 1)->line;
    if (!def && !block && !is_any(s, head, "function fun func fn")) return;
    SlipEdits c = {0};
    if (is(s, head, "elif")) edit(&c, begin_of(s, head), token(s, head)->end, "else if");
    if (!def && !block) edit(&c, begin_of(s, head), token(s, head)->end, "def");
    SlipEdits whole = {0};
    for (size_t k = 0; k < c.len; k++) vec_push(&whole, c.data[k]);
    braced(s, &c, i, expression_end(s, i + 1, true));
    if (i + 1 < count(s) && !token(s, i + 1)->line) offer(s, &c);
    size_t end = indented_end(s, i);
    braced(s, &whole, i, end);
    uint32_t line = begin_of(s, head), indent = line;
    while (indent > 0 && s->t->text[indent - 1] != '\n') indent--;
    if (i + 1 < count(s) && token(s, i + 1)->line)
        vec_last(&whole).text = fmt_text("\n%s}", part(s, indent, line));
    offer(s, &whole);
}

/* let f(x) = e;     let f x y = e; */
static void let_functions(Slips *s, size_t i)
{
    size_t at = i;
    while (at > 0 && !is(s, at, "let") && i - at < BEFORE) at--;
    if (!is(s, at, "let")) return;
    size_t name = at + 1 + is(s, at + 1, "rec");
    if (!is_name(s, name)) return;
    Str params = {0};
    size_t k = name + 1;
    if (is(s, k, "(") && token(s, k)->partner > 0) {
        size_t close = (size_t)token(s, k)->partner;
        str_add(&params, tokens_text(s, k + 1, close));
        k = close + 1;
    } else {
        for (; is_name(s, k); k++)
            str_printf(&params, "%s%s", params.len ? ", " : "", tokens_text(s, k, k + 1));
    }
    if (!is(s, k, "=") || k == name + 1) return;
    SlipEdits c = {0};
    size_t end = expression_end(s, k + 1, false);
    if (token(s, at)->depth == 0) {
        edit(&c, begin_of(s, at), token(s, k)->end,
             fmt_text("def %s(%s) {", tokens_text(s, name, name + 1), str_text(&params)));
        edit(&c, end_before(s, end), is(s, end, ";") ? token(s, end)->end : end_before(s, end), " }");
    } else {
        edit(&c, begin_of(s, name), token(s, k)->end,
             fmt_text("%s = fn (%s) {", tokens_text(s, name, name + 1), str_text(&params)));
        edit(&c, end_before(s, end), end_before(s, end), " }");
    }
    offer(s, &c);
}

/* fun x -> e     lambda x, y: e     \x -> e     function (x) { e }     fn x => e     fn (x) -> e */
static void literals(Slips *s, size_t i)
{
    bool backslash = is(s, i, "\\") || is(s, i, "\xCE\xBB");
    if (!backslash && !is_any(s, i, "fun lambda function func fn")) return;
    size_t k = i + 1;
    Str params = {0};
    if (is(s, k, "(") && token(s, k)->partner > 0) {
        size_t close = (size_t)token(s, k)->partner;
        str_add(&params, tokens_text(s, k + 1, close));
        k = close + 1;
    } else {
        for (; is_name(s, k) || is(s, k, ","); k++)
            if (is_name(s, k))
                str_printf(&params, "%s%s", params.len ? ", " : "", tokens_text(s, k, k + 1));
    }
    const char *head = fmt_text("fn (%s) ", str_text(&params));
    SlipEdits c = {0};
    if (is(s, k, "{")) {
        edit(&c, begin_of(s, i), begin_of(s, k), head);
        offer(s, &c);
    } else if (is_any(s, k, ": -> => .")) {
        size_t end = expression_end(s, k + 1, true);
        edit(&c, begin_of(s, i), token(s, k)->end, fmt_text("%s{", head));
        edit(&c, end_before(s, end), end_before(s, end), " }");
        offer(s, &c);
    }
}

/* (x, y) => e     x => e     |x| e */
static void arrows(Slips *s, size_t i)
{
    size_t head = i, body = i + 1;
    if (is_any(s, i, "=> ->") && i) {
        int32_t open = token(s, i - 1)->partner;
        head = is(s, i - 1, ")") && open >= 0 ? (size_t)open : i - 1;
        if (head == i - 1 && !is_name(s, head)) return;
    } else if (is(s, i, "|")) {
        for (body = i + 1; body < count(s) && !is(s, body, "|") && body < i + BEFORE;) body++;
        if (!is(s, body, "|")) return;
        body++;
    } else {
        return;
    }
    const char *params = tokens_text(s, head, i);
    if (is(s, i, "|")) params = fmt_text("(%s)", tokens_text(s, i + 1, body - 1));
    else if (!is(s, head, "(")) params = fmt_text("(%s)", params);
    SlipEdits c = {0};
    if (is(s, body, "{")) {
        edit(&c, begin_of(s, head), begin_of(s, body), fmt_text("fn %s ", params));
    } else {
        size_t end = expression_end(s, body, true);
        edit(&c, begin_of(s, head), begin_of(s, body), fmt_text("fn %s { ", params));
        edit(&c, end_before(s, end), end_before(s, end), " }");
    }
    offer(s, &c);
}

/* f x */
static void applications(Slips *s, size_t i)
{
    if (!i || !is_name(s, i - 1) || i >= count(s)) return;
    TokenKind k = token(s, i)->kind;
    if (k != TOK_NUMBER && k != TOK_STRING && !is_name(s, i)) return;
    Str args = {0};
    size_t end = i;
    for (; end < count(s) && (end == i || !token(s, end)->line) &&
           (token(s, end)->kind == TOK_NUMBER || token(s, end)->kind == TOK_STRING || is_name(s, end)); end++)
        str_printf(&args, "%s%s", args.len ? ", " : "", tokens_text(s, end, end + 1));
    replace(s, token(s, i - 1)->end, token(s, end - 1)->end, fmt_text("(%s)", str_text(&args)));
}

/* ---- conditions, matches, types ------------------------------------------------------------------------------ */

/* a if c else b     c ? a : b     if (c) a else b */
static void conditions(Slips *s, size_t i)
{
    SlipEdits c = {0};
    size_t first = expression_begin(s, i), middle = i;
    size_t end = expression_end(s, i + 1, true);
    const char *stop = is(s, i, "if") ? "else" : ":";
    if (is_any(s, i, "if ?") && first < i) {
        while (middle < end && !is(s, middle, stop)) middle++;
        if (middle == end) return;
        bool python = is(s, i, "if");
        const char *left = tokens_text(s, first, i), *right = tokens_text(s, i + 1, middle);
        edit(&c, begin_of(s, first), end_before(s, end),
             fmt_text("if (%s) { %s } else { %s }", python ? right : left, python ? left : right,
                      tokens_text(s, middle + 1, end)));
        offer(s, &c);
    }
    if (i && is(s, i - 1, ")") && token(s, i - 1)->partner > 0 && !is(s, i, "{") &&
        is(s, (size_t)token(s, i - 1)->partner - 1, "if")) {
        while (middle < count(s) && !is(s, middle, "else") && middle - i < 4 * BEFORE) middle++;
        if (!is(s, middle, "else")) return;
        edit(&c, begin_of(s, i), begin_of(s, i), "{ ");
        edit(&c, end_before(s, middle), end_before(s, middle), " }");
        offer(s, &c);
    }
}

/* match x with | A -> e | B -> e */
static void matches(Slips *s, size_t i)
{
    if (!is_any(s, i, "with of in :")) return;
    size_t end = expression_end(s, i + 1, false);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i), token(s, i)->end, "{");
    edit(&c, end_before(s, end), end_before(s, end), " }");
    offer(s, &c);
}

/* type T = A | B of U     type P = { x: float32 } */
static void declarations(Slips *s, size_t i)
{
    if (!count(s)) return;
    size_t head = i < count(s) ? i : count(s) - 1;
    while (head > 0 && !token(s, head)->line) head--;
    if (!is_any(s, head, "type data enum datatype struct class") || !is_name(s, head + 1)) return;
    size_t end = i;
    while (end < count(s) && !is(s, end, ";") &&
           !(token(s, end)->line && token(s, end)->depth == 0 && !is(s, end, "|")))
        end++;
    Str text = {0};
    const char *name = tokens_text(s, head + 1, head + 2);
    str_printf(&text, "type %s ", name);
    size_t k = head + 2;
    if (is(s, k, "[") && token(s, k)->partner > 0) {
        str_printf(&text, "%s ", tokens_text(s, k, (size_t)token(s, k)->partner + 1));
        k = (size_t)token(s, k)->partner + 1;
    }
    if (is(s, k, "=")) k++;
    if (is(s, k, "{") && (is(s, k + 2, ":"))) { /* a record */
        str_printf(&text, "{ %s %s }", name, tokens_text(s, k, end));
    } else if (is(s, k, "{")) {
        return;
    } else {
        str_add(&text, "{ ");
        for (bool first = true; k < end; k++) {
            if (is(s, k, "|") && first) continue;
            if (is(s, k, "of")) {
                size_t stop = k + 1;
                Str fields = {0};
                for (; stop < end && !is(s, stop, "|"); stop++) {
                    const char *field = tokens_text(s, stop, stop + 1);
                    str_add(&fields, is(s, stop, "*") ? ", " : field);
                }
                str_printf(&text, "(%s)", str_text(&fields));
                k = stop - 1;
                continue;
            }
            str_add(&text, is(s, k, "|") ? ", " : tokens_text(s, k, k + 1));
            first = false;
        }
        str_add(&text, " }");
    }
    if (is(s, end, ";")) end++;
    replace(s, begin_of(s, head), end_before(s, end), str_text(&text));
}

/* Tensor[(2, 3)]     Tensor[[2, 3], float32]     Tensor<(2, 3), float32> */
static void tensors(Slips *s, size_t i)
{
    size_t at = i;
    while (at > 0 && !is(s, at, "Tensor") && i - at < BEFORE) at--;
    if (!is(s, at, "Tensor") || at + 2 >= count(s)) return;
    if (is(s, at + 1, "<")) {
        size_t end = at + 2;
        while (end < count(s) && !is(s, end, ">")) end = behind(s, end);
        if (end >= count(s)) return;
        SlipEdits c = {0};
        edit(&c, begin_of(s, at + 1), token(s, at + 1)->end, "[");
        edit(&c, begin_of(s, end), token(s, end)->end, "]");
        offer(s, &c);
    } else if (is(s, at + 1, "[") && is(s, at + 2, "[") && token(s, at + 2)->partner > 0) {
        size_t close = (size_t)token(s, at + 2)->partner;
        const char *comma = close == at + 4 ? "," : "";
        replace(s, begin_of(s, at + 2), token(s, close)->end,
                fmt_text("(%s%s)", tokens_text(s, at + 3, close), comma));
    } else if (is(s, i, "]")) {
        insert_before(s, i, ", float32");
    }
}

/* ---- text: comments, strings, arithmetic ------------------------------------------------------------------------ */

static uint32_t line_end(const Slips *s, uint32_t at)
{
    while (at < s->t->len && s->t->text[at] != '\n') at++;
    return at;
}

static bool is_comment(const Slips *s, const SlipToken *t, const char *mark)
{
    return t->end - t->begin >= 1 && t->begin + strlen(mark) <= s->t->len &&
           strncmp(s->t->text + t->begin, mark, strlen(mark)) == 0;
}

/* # a comment     -- a comment     (* a comment *) */
static void comments(Slips *s, size_t i)
{
    static const char *const marks[] = {"#", "--"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks && i < count(s); k++) {
        if (!is_comment(s, token(s, i), marks[k])) continue;
        SlipEdits c = {0};
        uint32_t at = begin_of(s, i);
        edit(&c, at, at + (uint32_t)strlen(marks[k]), "//");
        offer(s, &c);
        SlipEdits all = {0};
        uint32_t upto = 0;
        for (size_t j = 0; j < count(s); j++) {
            if (begin_of(s, j) < upto || !is_comment(s, token(s, j), marks[k])) continue;
            edit(&all, begin_of(s, j), begin_of(s, j) + (uint32_t)strlen(marks[k]), "//");
            upto = line_end(s, begin_of(s, j));
        }
        if (all.len > 1) offer(s, &all);
    }
    if (is(s, i, "(") && is(s, i + 1, "*") && touches(s, i)) {
        const char *end = strstr(s->t->text + begin_of(s, i), "*)");
        if (!end) return;
        uint32_t at = (uint32_t)(end - s->t->text);
        SlipEdits c = {0};
        edit(&c, begin_of(s, i), begin_of(s, i) + 2, "/*");
        edit(&c, at, at + 2, "*/");
        offer(s, &c);
    }
}

/* 'text'     “text”     "text */
static void strings(Slips *s, size_t i)
{
    static const char *const quotes[][2] = {{"'", "'"}, {"\xE2\x80\x9C", "\xE2\x80\x9D"},
                                            {"\xE2\x80\x98", "\xE2\x80\x99"}, {"`", "`"}};
    if (i >= count(s)) return;
    uint32_t begin = begin_of(s, i), end = line_end(s, begin);
    for (size_t k = 0; k < sizeof quotes / sizeof *quotes; k++) {
        size_t n = strlen(quotes[k][0]);
        if (begin + n > s->t->len || strncmp(s->t->text + begin, quotes[k][0], n) != 0) continue;
        SlipEdits c = {0};
        for (uint32_t at = begin, open = 0; at < end; at++) { /* all of the line */
            const char *q = quotes[k][open];
            if (strncmp(s->t->text + at, q, strlen(q)) != 0) continue;
            edit(&c, at, at + (uint32_t)strlen(q), "\"");
            open = !open;
        }
        if (c.len % 2 == 0) offer(s, &c);
    }
    if (token(s, i)->kind != TOK_ERROR || s->t->text[begin] != '"') return;
    uint32_t at = end;
    while (at > begin && strchr(" ;,)]}", s->t->text[at - 1])) {
        at--;
        if (s->t->text[at] != ' ') replace(s, at, at, "\"");
    }
    replace(s, end, end, "\"");
}

/* a % b     a // b */
static void remainders(Slips *s, size_t i)
{
    uint32_t at = begin_of(s, i), begin = at;
    const char *call = NULL;
    if (!i) return;
    if (i < count(s) && s->t->text[at] == '%') {
        call = "mod";
        begin = at + 1;
    } else {
        at = end_before(s, i);
        while (at < s->t->len && s->t->text[at] == ' ') at++;
        if (at + 1 >= s->t->len || s->t->text[at] != '/' || s->t->text[at + 1] != '/') return;
        call = "floor_divide";
        begin = at + 2;
    }
    while (begin < s->t->len && s->t->text[begin] == ' ') begin++;
    uint32_t end = begin;
    while (end < s->t->len && (isalnum((unsigned char)s->t->text[end]) || s->t->text[end] == '_')) end++;
    size_t left = i;
    while (left > 0 && token(s, left - 1)->end > at) left--;
    if (!left || begin == end) return;
    size_t first = left - 1;
    if (token(s, first)->partner >= 0 && token(s, first)->partner < (int32_t)first) {
        first = (size_t)token(s, first)->partner;
        if (first && is_name(s, first - 1) && touches(s, first - 1)) first--;
    }
    replace(s, begin_of(s, first), end,
            fmt_text("%s(%s, %s)", call, tokens_text(s, first, left), part(s, begin, end)));
}

/* ---- imports --------------------------------------------------------------------------------------------- */

/* from m import a, b     import m.a     #include "m" */
static void imports(Slips *s, size_t i)
{
    for (size_t at = i > 2 ? i - 2 : 0; at <= i && at < count(s); at++) {
        if (is(s, at, "from") && is_name(s, at + 1) && is(s, at + 2, "import")) {
            size_t end = at + 3;
            while (end < count(s) && !token(s, end)->line && !is(s, end, ";")) end++;
            replace_tokens(s, at, end, fmt_text("import %s (%s)", tokens_text(s, at + 1, at + 2),
                                                tokens_text(s, at + 3, end)));
        }
        if (is(s, at, "#") && is(s, at + 1, "include") && at + 2 < count(s))
            replace_tokens(s, at, at + 3, fmt_text("import %s;", tokens_text(s, at + 2, at + 3)));
    }
}

/* ---- what is missing, and what is too many ------------------------------------------------------------------ */

static void insertions(Slips *s, bool expected)
{
    static const char *const texts[] = {";", ")", "}", ",", "]", "=>", "=", "{", ":", "(", "else"};
    size_t i = s->t->at;
    if (expected && strstr(s->t->message, "has no `else`")) insert_before(s, i, " else { () }");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        bool said = strstr(s->t->message, fmt_text("`%s`", texts[k])) != NULL;
        if (said != expected) continue;
        bool tight = strchr(";),]:(", texts[k][0]) != NULL;
        insert_before(s, i, tight ? texts[k] : fmt_text(" %s", texts[k]));
        if (texts[k][0] == ')' || texts[k][0] == '}' || texts[k][0] == ']') { /* at the ends of lines before */
            int lines = 0;
            for (size_t j = i; j-- > 1 && lines < 12;) {
                if (!token(s, j)->line) continue;
                lines++;
                insert_before(s, j, tight ? texts[k] : fmt_text(" %s", texts[k]));
            }
        }
    }
}

static bool may_go(const Slips *s, size_t i)
{
    if (i >= count(s)) return false;
    TokenKind k = token(s, i)->kind;
    if (k == TOK_IDENT) return !touches(s, i);
    return k == TOK_LPAREN || k == TOK_RPAREN || k == TOK_LBRACKET || k == TOK_RBRACKET || k == TOK_LBRACE ||
           k == TOK_RBRACE || k == TOK_COMMA || k == TOK_SEMI || k == TOK_COLON || k == TOK_ERROR;
}

static void deletions(Slips *s)
{
    size_t i = s->t->at;
    if (i > 1 && i + 1 < count(s) && is(s, i, ":")) /* f(x: 1) */
        replace(s, begin_of(s, i - 1), begin_of(s, i + 1), "");
    if (may_go(s, i)) remove_tokens(s, i, i + 1);
    if (i && may_go(s, i - 1)) remove_tokens(s, i - 1, i);
}

void slips_propose(SlipText *t, SlipChanges *out)
{
    Slips s = {t, out};
    static void (*const shapes[])(Slips *, size_t) = {
        imports, comments, strings, equals, updates, returns, conditions, literals, arrows, definitions,
        let_functions, declarations, tensors, matches, remainders, other_words};
    size_t last = t->at + 1 < t->tokens.len ? t->at + 1 : t->tokens.len;
    size_t first = t->at > BEFORE ? t->at - BEFORE : 0;
    bool line = t->at < t->tokens.len && t->tokens.data[t->at].line;
    if (line) insertions(&s, true);
    size_t order[BEFORE + 3], n = 0;
    order[n++] = t->at;
    if (last != t->at) order[n++] = last;
    for (size_t i = t->at; i-- > first;) order[n++] = i;
    for (size_t k = 0; k < n; k++) {
        bool near = order[k] + 1 >= t->at;
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            bool wide = shapes[j] == literals || shapes[j] == other_words || shapes[j] == comments ||
                        shapes[j] == conditions || shapes[j] == arrows || shapes[j] == returns;
            if (near || wide) shapes[j](&s, order[k]);
        }
    }
    if (!line) {
        applications(&s, t->at);
        insertions(&s, true);
    }
    deletions(&s);
    insertions(&s, false);
}
