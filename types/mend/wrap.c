/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to an operand as a whole: a cast or another dtype, a transposition, a new axis, a part of a tuple,
 * what a reference holds, another way to join it to its neighbour, `any` or `all` of a condition. Each is
 * tried before it is suggested. */
#include <string.h>

#include "types/mend/mend.h"

enum { MAX_OPERAND = 200 }; /* the longest operand that is changed, in bytes */

/* Whether a cast or `!` before the text would take all of it: names, calls and brackets that touch. */
static bool is_atom(const char *text) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    int depth = 0;
    while (*text == '!')
        text++;
    for (; *text; text++) {
        depth += *text == '(' || *text == '[';
        depth -= *text == ')' || *text == ']';
        if (!depth && !strchr(word, *text) && *text != ')' && *text != ']')
            return false;
    }
    return true;
}

/* Tries another dtype where the operand is made: in `zeros(shape=[2], dtype=int32)`, say. */
static bool make_of(Mender *m, uint32_t begin, uint32_t end, const char *dtype) {
    for (size_t i = mend_token_at(m, begin); i < m->tokens.len && m->tokens.data[i].end <= end;
         i++) {
        const MendToken *t = &m->tokens.data[i];
        if (i > 1 && mend_names_dtype(t) && t[-1].kind == TOK_EQUAL && t[-2].sym &&
            strcmp(t[-2].sym->text, "dtype") == 0 && mend_try_value(m, i, dtype))
            return true;
    }
    return false;
}

void mend_cast(Mender *m, uint32_t begin, uint32_t end, const char *dtype) {
    if (make_of(m, begin, end, dtype))
        return;
    const char *text = mend_text(m, begin, end);
    mend_try(m, MEND_REPLACE, begin, end,
             is_atom(text) ? fmt_text("(%s) %s", dtype, text) : fmt_text("(%s) (%s)", dtype, text));
}

/* Whether an attribute's value begins there. An operator around it would make an unknown size of it,
 * which puts the error off and mends nothing. */
static bool is_attribute(Mender *m, uint32_t begin) {
    size_t i = mend_token_at(m, begin);
    const MendToken *t = &m->tokens.data[i];
    return i > 2 && t[-1].kind == TOK_EQUAL && t[-2].sym &&
           (t[-3].kind == TOK_COMMA || t[-3].kind == TOK_LPAREN);
}

/* Whether a number loses more than digits when it is converted. */
static bool cast_loses(const Symbol *from, const Symbol *to) {
    DType a, b;
    if (!dtype_find(from->text, strlen(from->text), &a) ||
        !dtype_find(to->text, strlen(to->text), &b))
        return false;
    return (dtype_is_float(a) && !dtype_is_float(b)) || b == DT_BOOL;
}

/* Whether the text is a number with a fraction or an exponent, without a suffix. */
static bool is_fraction(const char *text) {
    return *text >= '0' && *text <= '9' && strcspn(text, ".e") < strlen(text) &&
           !text[strspn(text, "0123456789.e+-")];
}

/* Whether the operand is the base of `{ r with … }`, whose result is to be like it. */
static bool is_updated(Mender *m, uint32_t end) {
    size_t next = mend_token_at(m, end);
    return next < m->tokens.len && m->tokens.data[next].word == WORD_WITH;
}

/* label: of the operand, or NULL where nothing says what it is. */
static void wrap_operand(Mender *m, Span span, const DiagLabel *label) {
    if (span.source != m->source || span.end <= span.begin || span.end - span.begin > MAX_OPERAND ||
        is_attribute(m, span.begin) || is_updated(m, span.end))
        return;
    const char *text = mend_text(m, span.begin, span.end);
    if (strchr(text, '\n'))
        return;
    static const char *const wraps[] = {"transpose(%s)", "expand_dims(%s, axis=0)",
                                        "expand_dims(%s, axis=1)", "expand_dims(%s, axis=-1)",
                                        "squeeze(%s)"};
    MendValues v = {0};
    mend_values(m, &v);
    if (!mend_is_of_shapes(m->d->code)) {
        for (size_t i = 0; i < v.ndtypes && !mend_is_done(m); i++)
            if (!(label && label->type.dtype && cast_loses(label->type.dtype, v.dtypes[i])) &&
                !(is_fraction(text) && cast_loses(sym_intern("float32"), v.dtypes[i])))
                mend_cast(m, span.begin, span.end, v.dtypes[i]->text);
        return;
    }
    size_t close = strlen(text);
    if (close && text[close - 1] == ')') {
        bool attrs = strstr(text, "axis=") != NULL;
        if (attrs)
            mend_try(m, MEND_INSERT, span.end - 1, span.end - 1, ", keepdims=True");
    }
    bool has_one = mend_has_size(&v, sym_intern("1"));
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps && !mend_is_done(m); i++) {
        if (strncmp(wraps[i], "squeeze", 7) == 0 && !has_one)
            continue;
        Str s = {0};
        const char *gap = strstr(wraps[i], "%s");
        str_add_n(&s, wraps[i], (size_t)(gap - wraps[i]));
        str_add(&s, text);
        str_add(&s, gap + 2);
        mend_try(m, MEND_REPLACE, span.begin, span.end, str_text(&s));
    }
}

/* Tries to convert an integer beside a number with a fraction: `(float32) n + 1.5`. */
static void try_cast_beside_fraction(Mender *m) {
    const DiagLabel *labels = m->d->labels.data;
    for (size_t i = 0; i < 2 && m->d->labels.len == 2; i++) {
        Span s = labels[i].span, other = labels[1 - i].span;
        if (s.source == m->source && other.source == m->source && other.begin < other.end &&
            is_fraction(mend_text(m, s.begin, s.end)))
            mend_cast(m, other.begin, other.end, "float32");
    }
}

/* Tries to convert either of two operands whose dtypes differ. */
static void try_cast_either(Mender *m) {
    MendValues v = {0};
    mend_values(m, &v);
    try_cast_beside_fraction(m);
    const DiagLabel *side[2] = {NULL, NULL};
    for (size_t i = 0; i < m->d->labels.len; i++) {
        const DiagLabel *l = &m->d->labels.data[i];
        bool near = l->span.source == m->source && l->span.begin < l->span.end &&
                    l->span.end <= m->line_end && mend_is_on_line(m, l->span);
        for (size_t k = 0; k < v.ndtypes && k < 2 && near; k++) {
            if (l->type.dtype == v.dtypes[k])
                side[k] = l;
        }
    }
    for (size_t k = 2; k-- > 0;) { /* the operand on the right is the more likely one */
        if (v.ndtypes != 2 || !side[0] || !side[1] || cast_loses(v.dtypes[k], v.dtypes[1 - k]))
            continue;
        mend_cast(m, side[k]->span.begin, side[k]->span.end, v.dtypes[1 - k]->text);
    }
}

/* Tries `(float32)` before bools where an operator asks for numbers, as `mean` does. */
static void try_cast_of_bools(Mender *m) {
    m->alone = true; /* each use is mended by itself */
    for (size_t i = 0; i < m->d->labels.len && !mend_is_done(m); i++) {
        const DiagLabel *l = &m->d->labels.data[i];
        bool here = l->span.source == m->source && l->span.begin < l->span.end &&
                    l->span.end - l->span.begin <= MAX_OPERAND;
        if (here && l->type.dtype == sym_intern("bool"))
            mend_cast(m, l->span.begin, l->span.end, "float32");
    }
    m->alone = false;
}

/* `0 < x < 1` compares the bool `0 < x` with 1: tries `0 < x && x < 1`. */
static void try_both_comparisons(Mender *m) {
    if (m->d->labels.len < 2)
        return;
    Span left = m->d->labels.data[0].span, right = m->d->labels.data[1].span;
    if (left.source == m->source && right.source == m->source && left.begin > right.begin)
        left = right;
    if (left.source != m->source || left.end > m->line_end)
        return;
    size_t middle = 0;
    int depth = 0;
    for (size_t i = mend_token_at(m, left.begin);
         i < m->tokens.len && m->tokens.data[i].end <= left.end; i++) {
        const MendToken *t = &m->tokens.data[i];
        depth += (t->kind == TOK_LPAREN || t->kind == TOK_LBRACKET || t->kind == TOK_LBRACE) -
                 (t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET || t->kind == TOK_RBRACE);
        bool compares = t->kind == TOK_LT || t->kind == TOK_LE || t->kind == TOK_GT ||
                        t->kind == TOK_GE || t->kind == TOK_EQEQ || t->kind == TOK_NE;
        if (!depth && compares)
            middle = i + 1;
    }
    if (middle && middle < m->tokens.len)
        mend_try(m, MEND_INSERT, left.end, left.end,
                 fmt_text(" && %s", mend_text(m, m->tokens.data[middle].begin, left.end)));
}

/* Tries a part of an operand that is a tuple, and what a reference holds. */
static void try_parts_of_operand(Mender *m, const DiagLabel *label) {
    Span s = label->span;
    bool tuple = label->type.form == DIAG_FORM_TUPLE, ref = label->type.form == DIAG_FORM_REF;
    const char *begin = m->source->text + s.begin;
    bool written = tuple && *begin == '('; /* nobody writes a tuple to take it apart at once */
    if ((!tuple && !ref) || written || s.end - s.begin > MAX_OPERAND)
        return;
    const char *text = mem_strndup(begin, s.end - s.begin);
    if (!is_atom(text))
        text = fmt_text("(%s)", text);
    static const char *const parts[] = {".1.0", ".0", ".1"}; /* grad(f)(x).1.0 is the derivative */
    if (ref)
        mend_try(m, MEND_REPLACE, s.begin, s.end, fmt_text("!%s", text));
    for (size_t i = 0; tuple && i < sizeof parts / sizeof *parts && !mend_is_done(m); i++)
        mend_try(m, MEND_REPLACE, s.begin, s.end, fmt_text("%s%s", text, parts[i]));
}

static bool is_bracketed(const char *text) {
    int depth = 0;
    size_t i = 0;
    do {
        depth += (text[i] == '(') - (text[i] == ')');
        i++;
    } while (depth > 0 && text[i]);
    return text[0] == '(' && !text[i];
}

/* Tries `any` and `all` of a condition that is a tensor of bools. */
static void try_any_and_all(Mender *m) {
    const char *text = mend_text(m, m->place.begin, m->place.end);
    size_t n = strlen(text);
    bool round = is_bracketed(text);
    const char *inner = round ? mem_strndup(text + 1, n - 2) : text;
    static const char *const words[] = {"any", "all"};
    for (size_t i = 0; i < 2; i++)
        mend_try(m, MEND_REPLACE, m->place.begin, m->place.end,
                 fmt_text(round ? "(%s(%s))" : "%s(%s)", words[i], inner));
}

/* The text of a list: of `[1, 2]`, which is a tensor, that of `list[1, 2]`. */
static const char *as_list(const DiagLabel *label, const char *text) {
    bool literal = label->type.form == DIAG_FORM_TENSOR && text[0] == '[';
    return literal ? fmt_text("list%s", text) : text;
}

/* Tries `concat` for `+` and `++` between lists, `concatenate` for `++` between tensors, and `++` with `show` for `+`
 * beside a String. */
static void try_other_joins(Mender *m) {
    const DiagLabel *labels = m->d->labels.data;
    bool joins = m->d->op == sym_intern("++");
    if (m->d->labels.len < 2 || (m->d->op != sym_intern(op_add.name) && !joins))
        return;
    bool swapped = labels[0].span.begin > labels[1].span.begin;
    const DiagLabel *left = &labels[swapped], *right = &labels[!swapped];
    Span l = left->span, r = right->span;
    if (l.source != m->source || r.source != m->source || l.end > r.begin)
        return;
    const char *a = mend_text(m, l.begin, l.end), *b = mend_text(m, r.begin, r.end);
    const char *between = mend_text(m, l.end, r.begin);
    if (strchr(between, '(') || strchr(between, ')'))
        return; /* a bracket between them belongs to one of the operands */
    bool lists = left->type.form == DIAG_FORM_LIST && right->type.form == DIAG_FORM_LIST;
    bool first = left->type.form == DIAG_FORM_STRING;
    bool second = right->type.form == DIAG_FORM_STRING;
    if (lists ||
        (joins && (left->type.form == DIAG_FORM_LIST || right->type.form == DIAG_FORM_LIST)))
        mend_try(m, MEND_REPLACE, l.begin, r.end,
                 fmt_text("concat(%s, %s)", as_list(left, a), as_list(right, b)));
    else if (joins && !first && !second)
        mend_try(m, MEND_REPLACE, l.begin, r.end, fmt_text("concatenate((%s, %s))", a, b));
    else if (first && !second)
        mend_try(m, MEND_REPLACE, l.begin, r.end, fmt_text("%s ++ show(%s)", a, b));
    else if (second && !first)
        mend_try(m, MEND_REPLACE, l.begin, r.end, fmt_text("show(%s) ++ %s", a, b));
}

/* Tries `logical_not(x)` for `!x` of a tensor of bools. */
static void try_logical_not(Mender *m) {
    size_t i = mend_token_at(m, m->place.begin);
    if (i && i < m->tokens.len && m->tokens.data[i - 1].kind == TOK_BANG)
        mend_try(m, MEND_REPLACE, m->tokens.data[i - 1].begin, m->place.end,
                 fmt_text("logical_not(%s)", mend_text(m, m->place.begin, m->place.end)));
}

/* Tries one index fewer for `x[0, 1]` where x has one axis, and `nth(l, 0)` for `l[0]` of a list. */
static void try_other_index(Mender *m) {
    size_t open = mend_token_at(m, m->place.begin), last = mend_token_at(m, m->place.end);
    while (open < last && (m->tokens.data[open].kind != TOK_LBRACKET ||
                           m->tokens.data[open].partner + 1 != (int32_t)last))
        open++;
    MendParts parts = {0};
    if (open < last)
        mend_parts(m, open, &parts);
    if (m->d->code == DIAG_R0313 && parts.len > 2)
        mend_remove_part(m, &parts, parts.len - 2);
    const MendToken *t = &m->tokens.data[open];
    if (m->d->code == DIAG_R0216 && parts.len == 2)
        mend_try(m, MEND_REPLACE, m->place.begin, m->place.end,
                 fmt_text("nth(%s, %s)", mend_text(m, m->place.begin, t->begin),
                          mend_text(m, t->end, m->place.end - 1)));
}

/* Whether one bool is asked for and a tensor is found. */
static bool is_many_bools(const Diag *d) {
    return d->expected.form == DIAG_FORM_SCALAR && d->expected.dtype == sym_intern("bool") &&
           d->found.form == DIAG_FORM_TENSOR;
}

/* Tries `get_or(o, 0)` for an Option where its value is wanted. */
static void try_value_of_option(Mender *m, Span s, DiagForm form) {
    static const char *const otherwise[] = {"0.0", "0", "\"\""};
    bool here = s.source == m->source && s.begin < s.end && s.end - s.begin <= MAX_OPERAND;
    for (size_t k = 0; k < 3 && here && form == DIAG_FORM_OPTION && !mend_is_done(m); k++)
        mend_try(m, MEND_REPLACE, s.begin, s.end,
                 fmt_text("get_or(%s, %s)", mend_text(m, s.begin, s.end), otherwise[k]));
}

void mend_wrap(Mender *m) {
    DiagCode c = m->d->code;
    const char *family = diag_get_info(c)->name;
    if (m->unknown || (strncmp(family, "R02", 3) != 0 && strncmp(family, "R03", 3) != 0))
        return;
    if (c == DIAG_R0203 || c == DIAG_R0208 || c == DIAG_R0210 || c == DIAG_R0202)
        return;
    bool list = m->d->found.form == DIAG_FORM_LIST;
    if (m->d->cause == DIAG_CAUSE_INDEX && (c == DIAG_R0313 || (c == DIAG_R0216 && list))) {
        try_other_index(m);
        return;
    }
    bool small = m->place.end - m->place.begin <= MAX_OPERAND;
    if (small && c == DIAG_R0204)
        try_logical_not(m);
    if (small && (c == DIAG_R0204 || is_many_bools(m->d)))
        try_any_and_all(m);
    if (c == DIAG_R0201) {
        try_value_of_option(m, (Span){m->source, m->place.begin, m->place.end}, m->d->found.form);
        for (size_t i = 0; i < m->d->labels.len; i++)
            try_value_of_option(m, m->d->labels.data[i].span, m->d->labels.data[i].type.form);
        try_other_joins(m);
    }
    if (small && c == DIAG_R0201 && m->d->expected.form == DIAG_FORM_STRING && !mend_is_done(m))
        mend_try(m, MEND_REPLACE, m->place.begin, m->place.end,
                 fmt_text("show(%s)", mend_text(m, m->place.begin, m->place.end)));
    if (c == DIAG_R0311 || c == DIAG_R0310)
        try_both_comparisons(m);
    if (c == DIAG_R0310 && !mend_is_done(m))
        try_cast_of_bools(m);
    if (c == DIAG_R0311 && !mend_is_done(m))
        try_cast_either(m);
    size_t n = m->d->labels.len;
    for (size_t i = n;
         i-- > 0 && !mend_is_done(m);) { /* the operand on the right is the more likely one */
        Span s = m->d->labels.data[i].span;
        if (c == DIAG_R0201 && s.source == m->source)
            try_parts_of_operand(m, &m->d->labels.data[i]);
        bool here = s.source == m->source && s.begin < s.end && s.end <= m->line_end;
        if (here && mend_is_on_line(m, s))
            wrap_operand(m, s, &m->d->labels.data[i]);
    }
    if (!mend_is_done(m))
        wrap_operand(m, m->place, NULL);
}
