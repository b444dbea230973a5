/* SPDX-License-Identifier: Apache-2.0 */
/* How other languages write assignments, functions, conditions, matches, types, comments, strings and imports.
 * Each function looks at the tokens around one token and proposes to write what Relay has instead. */
#include <ctype.h>

#include "types/mend/slips_impl.h"

enum { BEFORE = 14 }; /* the most tokens that the head of a construct may have */

/* ---- assignments ----------------------------------------------------------------------------- */

/* Whether token i is the first of a statement. */
static bool begins_statement(const Slips *s, size_t i) {
    return !i || token(s, i)->line || token(s, i - 1)->kind == TOK_SEMI ||
           token(s, i - 1)->kind == TOK_LBRACE || token(s, i - 1)->kind == TOK_RBRACE;
}

/* `x[i] = e`: another tensor under the same name. */
static void set_part(Slips *s, size_t i) {
    int32_t open = token(s, i - 1)->partner;
    if (!is(s, i - 1, "]") || open < 1 || !is_name(s, (size_t)open - 1) ||
        !begins_statement(s, (size_t)open - 1))
        return;
    const char *name = tokens_text(s, (size_t)open - 1, (size_t)open);
    size_t end = expression_end(s, i + 1, true);
    SlipEdits c = {0};
    edit(&c, begin_of(s, (size_t)open - 1), begin_of(s, (size_t)open),
         fmt_text("let %s = { %s with ", name, name));
    edit(&c, end_before(s, end), end_before(s, end), " }");
    offer(s, &c);
    edit(&c, end_before(s, end), end_before(s, end), ";");
    if (!is(s, end, ";"))
        offer(s, &c);
}

/* `x = e`: a comparison in a condition, otherwise a binding or an assignment. */
static void equals(Slips *s, size_t i) {
    if (!is(s, i, "=") || !i)
        return;
    set_part(s, i);
    bool begins = is_name(s, i - 1) && begins_statement(s, i - 1);
    if (!begins)
        replace_tokens(s, i, i + 1, "==");
    if (!begins)
        return;
    replace_tokens(s, i, i + 1, ":=");
    size_t end = expression_end(s, i + 1, true);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i - 1), begin_of(s, i - 1), "let ");
    offer(s, &c);
    edit(&c, end_before(s, end), end_before(s, end), ";");
    if (!is(s, end, ";"))
        offer(s, &c);
    replace_tokens(s, i, i + 1, "==");
}

/* return e;     return e */
static void returns(Slips *s, size_t i) {
    if (!is(s, i, "return") || i + 1 >= count(s))
        return;
    size_t end = expression_end(s, i + 1, true);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i), begin_of(s, i + 1), "");
    if (is(s, end, ";"))
        edit(&c, begin_of(s, end), token(s, end)->end, "");
    offer(s, &c);
}

/* x is None     x is not None */
static void identities(Slips *s, size_t i) {
    if (!is(s, i, "is") || !i)
        return;
    bool negated = is(s, i + 1, "not");
    replace_tokens(s, i, i + 1 + negated, negated ? "!=" : "==");
}

/* x += e, where x is no reference: another value under the same name. */
static void renewals(Slips *s, size_t i) {
    if (!is(s, i, "=") || i < 2 || !touches(s, i - 1) || !is_name(s, i - 2) ||
        !is_any(s, i - 1, "+ - * /") || !begins_statement(s, i - 2))
        return;
    const char *name = tokens_text(s, i - 2, i - 1), *op = tokens_text(s, i - 1, i);
    size_t end = expression_end(s, i + 1, true);
    bool one = end == i + 2 || is(s, i - 1, "+");
    SlipEdits c = {0};
    edit(&c, begin_of(s, i - 2), begin_of(s, i - 2), "let ");
    edit(&c, begin_of(s, i - 1), begin_of(s, i + 1),
         fmt_text("= %s %s %s", name, op, one ? "" : "("));
    edit(&c, end_before(s, end), end_before(s, end), one ? "" : ")");
    offer(s, &c);
    edit(&c, end_before(s, end), end_before(s, end), ";");
    if (!is(s, end, ";"))
        offer(s, &c);
}

/* r += e     r++ */
static void updates(Slips *s, size_t i) {
    if (i > 1 && is_any(s, i - 1, "++ --") && is_name(s, i - 2) && touches(s, i - 2)) {
        const char *name = tokens_text(s, i - 2, i - 1);
        replace_tokens(s, i - 1, i, fmt_text(" := !%s %.1s 1", name, tokens_text(s, i - 1, i)));
    }
    if (!is(s, i, "=") || i < 2 || !touches(s, i - 1) || !is_name(s, i - 2) ||
        !is_any(s, i - 1, "+ -"))
        return;
    const char *name = tokens_text(s, i - 2, i - 1);
    size_t end = expression_end(s, i + 1, true);
    bool one = is(s, i - 1, "+") || end == i + 2;
    if (one)
        replace_tokens(s, i - 1, i + 1, fmt_text(":= !%s %s", name, tokens_text(s, i - 1, i)));
}

/* [e for x in xs]     [e for x in xs if c] */
static void comprehensions(Slips *s, size_t i) {
    size_t first = is(s, i, "for") ? expression_begin(s, i) : 0, in = i + 1, when;
    int32_t close = first ? token(s, first - 1)->partner : -1;
    if (!first || !is(s, first - 1, "[") || close < 0)
        return;
    while (in < (size_t)close && !is(s, in, "in"))
        in = behind(s, in);
    for (when = in; when < (size_t)close && !is(s, when, "if");)
        when = behind(s, when);
    if (in >= (size_t)close)
        return;
    const char *x = tokens_text(s, i + 1, in), *xs = tokens_text(s, in + 1, when);
    if (in > i + 2 && !is(s, i + 1, "("))
        x = fmt_text("(%s)", x);
    if (when < (size_t)close)
        xs = fmt_text("filter(fn (%s) { %s }, %s)", x, tokens_text(s, when + 1, (size_t)close), xs);
    const char *map = fmt_text("map(fn (%s) { %s }, %s)", x, tokens_text(s, first, i), xs);
    replace(s, begin_of(s, first - 1), token(s, (size_t)close)->end, map);
    replace(s, begin_of(s, first - 1), token(s, (size_t)close)->end,
            fmt_text("tensor.of(%s)", map));
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Braces around the tokens from `first` on, the separator before them left out. */
static void braced(Slips *s, SlipEdits *c, size_t separator, size_t end) {
    bool semi = is(s, end, ";");
    bool tight = separator > 0 && touches(s, separator - 1);
    edit(c, begin_of(s, separator), token(s, separator)->end, tight ? " {" : "{");
    edit(c, end_before(s, end), semi ? token(s, end)->end : end_before(s, end), " }");
}

/* def f(x) = e     def f(x): e     def f(x) -> T = e     and Python's block */
static void definitions(Slips *s, size_t i) {
    if (!is_any(s, i, "= : =>"))
        return;
    size_t head = i;
    while (head > 0 && !token(s, head)->line)
        head--;
    bool def = is(s, head, "def");
    if (token(s, i)->depth != token(s, head)->depth)
        return;
    bool block = is(s, i, ":") && is_any(s, head, "if else elif") && i + 1 < count(s) &&
                 token(s, i + 1)->line;
    if (!def && !block && !is_any(s, head, "function fun func fn"))
        return;
    SlipEdits c = {0};
    if (is(s, head, "elif"))
        edit(&c, begin_of(s, head), token(s, head)->end, "else if");
    if (!def && !block)
        edit(&c, begin_of(s, head), token(s, head)->end, "def");
    SlipEdits whole = {0};
    for (size_t k = 0; k < c.len; k++)
        vec_push(&whole, c.data[k]);
    braced(s, &c, i, expression_end(s, i + 1, true));
    if (i + 1 < count(s) && !token(s, i + 1)->line)
        offer(s, &c);
    size_t end = indented_end(s, i);
    braced(s, &whole, i, end);
    uint32_t line = begin_of(s, head), indent = line;
    while (indent > 0 && s->t->text[indent - 1] != '\n')
        indent--;
    if (i + 1 < count(s) && token(s, i + 1)->line)
        vec_last(&whole).text = fmt_text("\n%s}", part(s, indent, line));
    offer(s, &whole);
}

/* let f(x) = e;     let f x y = e; */
static void let_functions(Slips *s, size_t i) {
    size_t at = i;
    while (at > 0 && !is(s, at, "let") && i - at < BEFORE)
        at--;
    if (!is(s, at, "let"))
        return;
    size_t name = at + 1 + is(s, at + 1, "rec");
    if (!is_name(s, name))
        return;
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
    if (!is(s, k, "=") || k == name + 1)
        return;
    SlipEdits c = {0};
    size_t end = expression_end(s, k + 1, false);
    if (token(s, at)->depth == 0) {
        edit(&c, begin_of(s, at), token(s, k)->end,
             fmt_text("def %s(%s) {", tokens_text(s, name, name + 1), str_text(&params)));
        edit(&c, end_before(s, end), is(s, end, ";") ? token(s, end)->end : end_before(s, end),
             " }");
    } else {
        edit(&c, begin_of(s, name), token(s, k)->end,
             fmt_text("%s = fn (%s) {", tokens_text(s, name, name + 1), str_text(&params)));
        edit(&c, end_before(s, end), end_before(s, end), " }");
    }
    offer(s, &c);
}

/* fun x -> e     lambda x, y: e     \x -> e     function (x) { e }     fn x => e     fn (x) -> e */
static void literals(Slips *s, size_t i) {
    bool backslash = is(s, i, "\\") || is(s, i, "\xCE\xBB");
    if (!backslash && !is_any(s, i, "fun lambda function func fn"))
        return;
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
static void arrows(Slips *s, size_t i) {
    size_t head = i, body = i + 1;
    if (is_any(s, i, "=> ->") && i) {
        int32_t open = token(s, i - 1)->partner;
        head = is(s, i - 1, ")") && open >= 0 ? (size_t)open : i - 1;
        if (head == i - 1 && !is_name(s, head))
            return;
    } else if (is(s, i, "|")) {
        for (body = i + 1; body < count(s) && !is(s, body, "|") && body < i + BEFORE;)
            body++;
        if (!is(s, body, "|"))
            return;
        body++;
    } else {
        return;
    }
    const char *params = tokens_text(s, head, i);
    if (is(s, i, "|"))
        params = fmt_text("(%s)", tokens_text(s, i + 1, body - 1));
    else if (!is(s, head, "("))
        params = fmt_text("(%s)", params);
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

/* ---- conditions, matches, types -------------------------------------------------------------- */

/* a if c else b     c ? a : b     if (c) a else b */
static void conditions(Slips *s, size_t i) {
    SlipEdits c = {0};
    size_t first = expression_begin(s, i), middle = i;
    size_t end = expression_end(s, i + 1, true);
    const char *stop = is(s, i, "if") ? "else" : ":";
    if (is_any(s, i, "if ?") && first < i) {
        while (middle < end && !is(s, middle, stop))
            middle++;
        if (middle == end)
            return;
        bool python = is(s, i, "if");
        const char *left = tokens_text(s, first, i), *right = tokens_text(s, i + 1, middle);
        edit(&c, begin_of(s, first), end_before(s, end),
             fmt_text("if (%s) { %s } else { %s }", python ? right : left, python ? left : right,
                      tokens_text(s, middle + 1, end)));
        offer(s, &c);
    }
    if (i && is(s, i - 1, ")") && token(s, i - 1)->partner > 0 && !is(s, i, "{") &&
        is(s, (size_t)token(s, i - 1)->partner - 1, "if")) {
        while (middle < count(s) && !is(s, middle, "else") && middle - i < 4 * BEFORE)
            middle++;
        if (!is(s, middle, "else"))
            return;
        edit(&c, begin_of(s, i), begin_of(s, i), "{ ");
        edit(&c, end_before(s, middle), end_before(s, middle), " }");
        offer(s, &c);
    }
}

/* match x with | A -> e | B -> e */
static void matches(Slips *s, size_t i) {
    if (!is_any(s, i, "with of in :"))
        return;
    size_t end = expression_end(s, i + 1, false);
    SlipEdits c = {0};
    edit(&c, begin_of(s, i), token(s, i)->end, "{");
    edit(&c, end_before(s, end), end_before(s, end), " }");
    offer(s, &c);
}

/* type T = A | B of U     type P = { x: float32 } */
static void declarations(Slips *s, size_t i) {
    if (!count(s))
        return;
    size_t head = i < count(s) ? i : count(s) - 1;
    while (head > 0 && !token(s, head)->line)
        head--;
    if (!is_any(s, head, "type data enum datatype struct class") || !is_name(s, head + 1))
        return;
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
    if (is(s, k, "="))
        k++;
    if (is(s, k, "{") && (is(s, k + 2, ":"))) { /* the type is a record */
        str_printf(&text, "{ %s %s }", name, tokens_text(s, k, end));
    } else if (is(s, k, "{")) {
        return;
    } else {
        str_add(&text, "{ ");
        for (bool first = true; k < end; k++) {
            if (is(s, k, "|") && first)
                continue;
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
    if (is(s, end, ";"))
        end++;
    replace(s, begin_of(s, head), end_before(s, end), str_text(&text));
}

/* Point { x, y }: the values of fields have their names. */
static void puns(Slips *s, size_t i) {
    size_t open = i;
    while (open > 1 && !is(s, open, "{") && i - open < BEFORE)
        open--;
    if (!is_any(s, i, ", }") || !is(s, open, "{") || !is_name(s, open - 1))
        return;
    int32_t close = token(s, open)->partner;
    if (close < 0)
        return;
    SlipEdits c = {0};
    for (size_t k = open + 1; k < (size_t)close; k = behind(s, k))
        if (is_name(s, k) && is_any(s, k - 1, "{ ,") && is_any(s, k + 1, ", }"))
            edit(&c, token(s, k)->end, token(s, k)->end,
                 fmt_text(": %s", tokens_text(s, k, k + 1)));
    if (c.len)
        offer(s, &c);
}

/* Tensor[(2, 3)]     Tensor[[2, 3], float32]     Tensor<(2, 3), float32> */
static void tensors(Slips *s, size_t i) {
    size_t at = i;
    while (at > 0 && !is(s, at, "Tensor") && i - at < BEFORE)
        at--;
    if (!is(s, at, "Tensor") || at + 2 >= count(s))
        return;
    if (is(s, at + 1, "<")) {
        size_t end = at + 2;
        while (end < count(s) && !is(s, end, ">"))
            end = behind(s, end);
        if (end >= count(s))
            return;
        SlipEdits c = {0};
        edit(&c, begin_of(s, at + 1), token(s, at + 1)->end, "[");
        edit(&c, begin_of(s, end), token(s, end)->end, "]");
        offer(s, &c);
    } else if (is(s, at + 1, "[") && is(s, at + 2, "[") && token(s, at + 2)->partner > 0) {
        size_t close = (size_t)token(s, at + 2)->partner;
        const char *comma = close == at + 4 ? "," : "";
        replace(s, begin_of(s, at + 2), token(s, close)->end,
                fmt_text("(%s%s)", tokens_text(s, at + 3, close), comma));
    } else if (is(s, at + 1, "[") && token(s, at + 2)->kind == TOK_NUMBER && is(s, at + 3, "]")) {
        replace_tokens(s, at + 2, at + 3,
                       fmt_text("(%s,), float32", tokens_text(s, at + 2, at + 3)));
    } else if (is(s, i, "]")) {
        insert_before(s, i, ", float32");
    }
}

/* ---- text: comments, strings, arithmetic ----------------------------------------------------- */

static uint32_t line_end(const Slips *s, uint32_t at) {
    while (at < s->t->len && s->t->text[at] != '\n')
        at++;
    return at;
}

static bool is_comment(const Slips *s, const SlipToken *t, const char *mark) {
    return t->end - t->begin >= 1 && t->begin + strlen(mark) <= s->t->len &&
           strncmp(s->t->text + t->begin, mark, strlen(mark)) == 0;
}

/* # a comment     -- a comment     (* a comment *) */
static void comments(Slips *s, size_t i) {
    static const char *const marks[] = {"#", "--"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks && i < count(s); k++) {
        if (!is_comment(s, token(s, i), marks[k]))
            continue;
        SlipEdits c = {0};
        uint32_t at = begin_of(s, i);
        edit(&c, at, at + (uint32_t)strlen(marks[k]), "//");
        offer(s, &c);
        SlipEdits all = {0};
        uint32_t upto = 0;
        for (size_t j = 0; j < count(s); j++) {
            if (begin_of(s, j) < upto || !is_comment(s, token(s, j), marks[k]))
                continue;
            edit(&all, begin_of(s, j), begin_of(s, j) + (uint32_t)strlen(marks[k]), "//");
            upto = line_end(s, begin_of(s, j));
        }
        if (all.len > 1)
            offer(s, &all);
    }
    if (is(s, i, "(") && is(s, i + 1, "*") && touches(s, i)) {
        const char *end = strstr(s->t->text + begin_of(s, i), "*)");
        if (!end)
            return;
        uint32_t at = (uint32_t)(end - s->t->text);
        SlipEdits c = {0};
        edit(&c, begin_of(s, i), begin_of(s, i) + 2, "/*");
        edit(&c, at, at + 2, "*/");
        offer(s, &c);
    }
}

/* 'text'     “text”     "text */
static void strings(Slips *s, size_t i) {
    static const char *const quotes[][2] = {
        {"'", "'"}, {"\xE2\x80\x9C", "\xE2\x80\x9D"}, {"\xE2\x80\x98", "\xE2\x80\x99"}, {"`", "`"}};
    if (i >= count(s))
        return;
    uint32_t begin = begin_of(s, i), end = line_end(s, begin);
    for (size_t k = 0; k < sizeof quotes / sizeof *quotes; k++) {
        size_t n = strlen(quotes[k][0]);
        if (begin + n > s->t->len || strncmp(s->t->text + begin, quotes[k][0], n) != 0)
            continue;
        SlipEdits c = {0};
        for (uint32_t at = begin, open = 0; at < end; at++) { /* the quotes of the whole line */
            const char *q = quotes[k][open];
            if (strncmp(s->t->text + at, q, strlen(q)) != 0)
                continue;
            edit(&c, at, at + (uint32_t)strlen(q), "\"");
            open = !open;
        }
        if (c.len % 2 == 0)
            offer(s, &c);
    }
    if (token(s, i)->kind != TOK_ERROR || s->t->text[begin] != '"')
        return;
    uint32_t at = end;
    while (at > begin && strchr(" ;,)]}", s->t->text[at - 1])) {
        at--;
        if (s->t->text[at] != ' ')
            replace(s, at, at, "\"");
    }
    replace(s, end, end, "\"");
}

/* a % b     a // b */
static void remainders(Slips *s, size_t i) {
    uint32_t at = begin_of(s, i), begin = at;
    const char *call = NULL;
    if (!i)
        return;
    if (i < count(s) && s->t->text[at] == '%') {
        call = "mod";
        begin = at + 1;
    } else {
        at = end_before(s, i);
        while (at < s->t->len && s->t->text[at] == ' ')
            at++;
        if (at + 1 >= s->t->len || s->t->text[at] != '/' || s->t->text[at + 1] != '/')
            return;
        call = "floor_divide";
        begin = at + 2;
    }
    while (begin < s->t->len && s->t->text[begin] == ' ')
        begin++;
    uint32_t end = begin;
    while (end < s->t->len && (isalnum((unsigned char)s->t->text[end]) || s->t->text[end] == '_'))
        end++;
    size_t left = i;
    while (left > 0 && token(s, left - 1)->end > at)
        left--;
    if (!left || begin == end)
        return;
    size_t first = left - 1;
    if (token(s, first)->partner >= 0 && token(s, first)->partner < (int32_t)first) {
        first = (size_t)token(s, first)->partner;
        if (first && is_name(s, first - 1) && touches(s, first - 1))
            first--;
    }
    replace(s, begin_of(s, first), end,
            fmt_text("%s(%s, %s)", call, tokens_text(s, first, left), part(s, begin, end)));
}

/* a mod b: an operator that is a word. */
static void infix_words(Slips *s, size_t i) {
    static const char *const words[][2] = {{"mod", "mod"}, {"rem", "mod"}, {"div", "floor_divide"}};
    size_t begin = i ? expression_begin(s, i) : i, end = expression_end(s, i, true);
    for (size_t k = 0; k < sizeof words / sizeof *words && begin < i && i + 1 < end; k++)
        if (is(s, i, words[k][0]))
            replace_tokens(s, begin, end,
                           fmt_text("%s(%s, %s)", words[k][1], tokens_text(s, begin, i),
                                    tokens_text(s, i + 1, end)));
}

/* assert c */
static void assertions(Slips *s, size_t i) {
    if (!i || !is(s, i - 1, "assert") || is(s, i, "("))
        return;
    size_t end = expression_end(s, i, true);
    const char *condition = tokens_text(s, i, end);
    if (end > i && !strpbrk(condition, "\"\\\n"))
        replace_tokens(s, i - 1, end, fmt_text("assert(%s, \"%s\")", condition, condition));
}

/* x int32     int32 x     int x = 3 */
static void typed_names(Slips *s, size_t i) {
    bool dtype = i < count(s) && word_get_class(token(s, i)->word) == WORDCLASS_DTYPE;
    if (dtype && i && is_name(s, i - 1) && !touches(s, i - 1))
        insert_before(s, i, ":");
    if (dtype && is_name(s, i + 1) && !is(s, i + 2, "="))
        replace_tokens(s, i, i + 2,
                       fmt_text("%s: %s", tokens_text(s, i + 1, i + 2), tokens_text(s, i, i + 1)));
    if (i && is_name(s, i) && is(s, i + 1, "=") && begins_statement(s, i - 1) &&
        (is_any(s, i - 1, "int float double long string str bool mut") ||
         word_get_class(token(s, i - 1)->word) == WORDCLASS_DTYPE))
        replace_tokens(s, i - 1, i, "let");
    if (is(s, i, "mut") || (i && is(s, i - 1, "mut"))) {
        size_t at = is(s, i, "mut") ? i : i - 1;
        if (is_name(s, at + 1))
            remove_tokens(s, at, at + 1);
    }
}

/* f"text {e}" */
static void formats(Slips *s, size_t i) {
    size_t at = i && is_any(s, i - 1, "f F") ? i - 1 : i;
    if (!is_any(s, at, "f F") || token(s, at)->end >= s->t->len)
        return;
    const char *text = s->t->text + token(s, at)->end, quote = text[0], *p = text + 1;
    Str out = {0}, part = {0};
    if (quote != '"' && quote != '\'')
        return;
    for (; *p && *p != quote && *p != '\n'; p++) {
        const char *end = *p == '{' ? strpbrk(p, "}\n") : NULL;
        if (!end || *end != '}' || p[1] == '{') {
            str_add_char(&part, *p);
            continue;
        }
        const char *inside = mem_strndup(p + 1, (size_t)(end - p - 1));
        size_t n = strcspn(inside, ":!"); /* how many digits there are is left out */
        if (part.len)
            str_printf(&out, "%s\"%s\"", out.len ? " ++ " : "", str_text(&part));
        str_printf(&out, "%sshow(%.*s)", out.len ? " ++ " : "", (int)n, inside);
        part = (Str){0};
        p = end;
    }
    if (part.len || !out.len)
        str_printf(&out, "%s\"%s\"", out.len ? " ++ " : "", str_text(&part));
    if (*p == quote)
        replace(s, begin_of(s, at), (uint32_t)(p + 1 - s->t->text), str_text(&out));
}

/* let a, b = e */
static void tuples(Slips *s, size_t i) {
    size_t first = i;
    while (first > 0 && (is_name(s, first - 1) || is(s, first - 1, ",")))
        first--;
    size_t end = i;
    while (is_name(s, end) || is(s, end, ","))
        end++;
    if (is(s, i, ",") && first > 0 && is(s, first - 1, "let") && is(s, end, "="))
        replace_tokens(s, first, end, fmt_text("(%s)", tokens_text(s, first, end)));
}

/* ---- imports --------------------------------------------------------------------------------- */

/* from m import a, b     import m.a     #include "m" */
static void imports(Slips *s, size_t i) {
    for (size_t at = i > 2 ? i - 2 : 0; at <= i && at < count(s); at++) {
        if (is(s, at, "from") && is_name(s, at + 1) && is(s, at + 2, "import")) {
            size_t end = at + 3;
            while (end < count(s) && !token(s, end)->line && !is(s, end, ";"))
                end++;
            replace_tokens(s, at, end,
                           fmt_text("import %s (%s)", tokens_text(s, at + 1, at + 2),
                                    tokens_text(s, at + 3, end)));
        }
        if (is(s, at, "#") && is(s, at + 1, "include") && at + 2 < count(s))
            replace_tokens(s, at, at + 3, fmt_text("import %s;", tokens_text(s, at + 2, at + 3)));
    }
}

/* `Tensor[(2.0,), float32]`: a size that is written as a float. */
static void sizes(Slips *s, size_t i) {
    if (i >= count(s) || token(s, i)->kind != TOK_NUMBER || !s->t->diag ||
        s->t->diag->cause != DIAG_CAUSE_SIZE)
        return;
    const char *text = tokens_text(s, i, i + 1);
    size_t digits = strspn(text, "0123456789");
    if (digits && text[digits] == '.')
        replace_tokens(s, i, i + 1, mem_strndup(text, digits));
}

/* 1.     .5 */
static void fractions(Slips *s, size_t i) {
    if (!is(s, i, "."))
        return;
    bool before = i && token(s, i - 1)->kind == TOK_NUMBER && end_before(s, i) == begin_of(s, i);
    bool behind_it = i + 1 < count(s) && token(s, i + 1)->kind == TOK_NUMBER &&
                     begin_of(s, i + 1) == token(s, i)->end;
    if (before != behind_it)
        replace(s, before ? token(s, i)->end : begin_of(s, i),
                before ? token(s, i)->end : begin_of(s, i), "0");
}

/* `float32(x)`: a cast that is written as a call. */
static void casts(Slips *s, size_t i) {
    if (i + 1 >= count(s) || word_get_class(token(s, i)->word) != WORDCLASS_DTYPE ||
        token(s, i + 1)->kind != TOK_LPAREN || token(s, i + 1)->partner < 0)
        return;
    size_t close = (size_t)token(s, i + 1)->partner;
    const char *dtype = tokens_text(s, i, i + 1);
    if (close == i + 3)
        replace_tokens(s, i, close + 1, fmt_text("(%s) %s", dtype, tokens_text(s, i + 2, close)));
    else
        replace_tokens(s, i, i + 1, fmt_text("(%s) ", dtype));
}

/* In the order in which they are tried. */
const SlipShape slip_shapes[] = {
    {imports, false},    {formats, false},        {comments, true},     {strings, false},
    {identities, false}, {comprehensions, false}, {equals, false},      {renewals, false},
    {updates, false},    {returns, true},         {conditions, true},   {literals, true},
    {arrows, true},      {definitions, false},    {typed_names, false}, {let_functions, false},
    {tuples, false},     {declarations, false},   {tensors, false},     {matches, false},
    {remainders, false}, {sizes, false},          {fractions, false},   {casts, false},
    {puns, false},       {infix_words, false},    {assertions, false},
};
const size_t slip_nshapes = sizeof slip_shapes / sizeof *slip_shapes;
