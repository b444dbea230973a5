/* SPDX-License-Identifier: Apache-2.0 */
/* Changes at the place of a message: a name that is near by spelling, an argument too many or too few,
 * a literal of the other kind, and at last other names that fit. Each is tried before it is suggested. */
#include <string.h>
#include <strings.h>

#include "types/mend/mend.h"

enum {
    MAX_NAMES = 8, /* so many names at a place are respelt */
    MAX_NEAR = 3,  /* with so many spellings each */
    MAX_FIELDS = 8,
    MAX_WILDCARDS = 6, /* so many a constructor or a type without brackets gets */
    MAX_GUESSES = 12,
};

/* ---- names by spelling ----------------------------------------------------------------------- */

/* Adds the parts of a name, `nn` and `dense` of `nn.dense`: each is a token of its own. */
static void add_parts(SymbolVec *out, Map *seen, const Symbol *name) {
    const char *text = name->text;
    for (;;) {
        size_t n = strcspn(text, ".");
        const Symbol *part = n ? sym_intern_n(text, n) : NULL;
        if (part && part->text[0] != '_' && !map_has(seen, part)) {
            map_set(seen, part, (void *)part);
            vec_push(out, part);
        }
        if (!text[n])
            return;
        text += n + 1;
    }
}

const SymbolVec *mend_known_names(Mender *m) {
    if (!m->known.len) {
        env_each_name(m->c->env, &m->known);
        mend_may_walk(m, 20 * m->known.len); /* gathering and sorting them */
    }
    return &m->known;
}

static void gather_names(Mender *m) {
    if (m->pool.len)
        return;
    Map seen = {0};
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&m->counts, &i, &key, &value);) {
        const Symbol *s = key;
        if (s->text[0] < '0' || s->text[0] > '9')
            add_parts(&m->pool, &seen, s);
    }
    const SymbolVec *known = mend_known_names(m);
    for (size_t i = 0; i < known->len; i++)
        add_parts(&m->pool, &seen, known->data[i]);
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        for (int k = 0; k < op->nattrs; k++)
            add_parts(&m->pool, &seen, sym_intern(op->attrs[k].name));
    }
    for (int t = 0; t < DTYPE_COUNT; t++)
        add_parts(&m->pool, &seen, sym_intern(dtype_info[t].name));
    const char *types[] = {"String", "Tensor"};
    for (size_t i = 0; i < 2; i++)
        add_parts(&m->pool, &seen, sym_intern(types[i]));
    mend_may_walk(m, 20 * m->pool.len);
}

const char *mend_with_sigil(const Mender *m, size_t token, const Symbol *name) {
    const MendToken *t = &m->tokens.data[token];
    if (t->kind == TOK_LOCAL)
        return fmt_text("%%%s", name->text);
    if (t->kind == TOK_GLOBAL)
        return fmt_text("@%s", name->text);
    return name->text;
}

/* Whether the name may be meant where a constructor is missing: constructors begin with a capital. */
static bool may_be_meant(const Mender *m, const Symbol *name) {
    if (m->d->code != DIAG_R0113 || !m->unknown)
        return true;
    return (m->unknown->text[0] >= 'A' && m->unknown->text[0] <= 'Z') ==
           (name->text[0] >= 'A' && name->text[0] <= 'Z');
}

static void try_spellings(Mender *m, size_t token) {
    gather_names(m);
    const Symbol *written = m->tokens.data[token].sym;
    if (!m->unknown && written->len < 3)
        return;
    m->by_spelling = !m->far;
    SymbolVec left = {0};
    for (size_t i = 0; i < m->pool.len; i++) {
        if (may_be_meant(m, m->pool.data[i]))
            vec_push(&left, m->pool.data[i]);
    }
    const Symbol *relation = m->unknown ? rel_find_nearest(m->unknown, m->budget) : NULL;
    if (relation)
        vec_push(&left, relation);
    for (uint32_t k = 0; k < MAX_NEAR; k++) {
        const Symbol *near = sym_find_nearest(m->tokens.data[token].sym, left.data, left.len,
                                              m->budget);
        if (!near)
            break;
        /* A binding without uses may be the misspelt one itself, so all items have to check then. */
        m->alone = m->by_spelling && mend_count(m, near) != 1;
        bool done = mend_try_token(m, MEND_NAME, token, mend_with_sigil(m, token, near));
        m->alone = false;
        if (done)
            break;
        for (size_t i = 0; i < left.len; i++) {
            if (left.data[i] == near)
                left.data[i] = left.data[--left.len];
        }
    }
    m->by_spelling = false;
}

/* Tries other spellings of the names at the place, and the name without its sigil. */
static void try_near_names(Mender *m, size_t first, size_t last) {
    uint32_t n = 0;
    for (size_t i = first; i < last && n < MAX_NAMES; i++) {
        const MendToken *t = &m->tokens.data[i];
        if (!mend_is_name(t) && !mend_is_dtype(t))
            continue;
        if (m->unknown && t->sym != m->unknown)
            continue;
        n++;
        try_spellings(m, i);
        if (m->unknown && t->kind == TOK_GLOBAL)
            mend_try_token(m, MEND_NAME, i, t->sym->text);
        if (mend_is_done(m))
            return;
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool is_field(const Mender *m, size_t i) {
    const MendToken *t = &m->tokens.data[i];
    if (!mend_is_name(t) || i == 0)
        return false;
    if (t[-1].kind == TOK_DOT)
        return true;
    return i + 1 < m->tokens.len && t->opener >= 0 &&
           m->tokens.data[t->opener].kind == TOK_LBRACE &&
           (t[1].kind == TOK_COLON || t[1].kind == TOK_EQUAL) &&
           (t[-1].kind == TOK_LBRACE || t[-1].kind == TOK_COMMA || t[-1].word == WORD_WITH);
}

/* Gathers the fields that the text declares, then those of other types; returns how many are the text's own. */
static size_t gather_fields(const Mender *m, SymbolVec *out) {
    Map seen = {0};
    for (size_t k = 0; k < m->tokens.len && out->len < MAX_FIELDS; k++) {
        const MendToken *t = &m->tokens.data[k];
        if (t->item < 0 || m->c->module->items.data[t->item]->kind != ITEM_TYPE ||
            !is_field(m, k) || map_has(&seen, t->sym))
            continue;
        map_set(&seen, t->sym, (void *)t->sym);
        vec_push(out, t->sym);
    }
    size_t own = out->len;
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&m->c->env->here->types, &i, &key, &value);) {
        const TypeDecl *decl = value;
        for (uint32_t c = 0; c < decl->nctors; c++) {
            const Ctor *ctor = decl->ctors[c];
            for (uint32_t f = 0; ctor->field_names && f < ctor->nfields; f++) {
                if (map_has(&seen, ctor->field_names[f]))
                    continue;
                map_set(&seen, ctor->field_names[f], (void *)ctor->field_names[f]);
                vec_push(out, ctor->field_names[f]);
            }
        }
    }
    return own;
}

static bool is_spelt_alike(const Mender *m, const Symbol *a, const Symbol *b) {
    return strcasecmp(a->text, b->text) == 0 || sym_find_nearest(a, &b, 1, m->budget);
}

/* Tries other fields, those spelt alike first. For a value of unknown type any field may be meant, so fields of
 * types elsewhere are tried only where they are spelt alike. */
static void try_near_fields(Mender *m, size_t first, size_t last) {
    SymbolVec fields = {0};
    size_t own = gather_fields(m, &fields);
    size_t n = m->d->code == DIAG_R0213 ? fields.len : own;
    for (size_t i = first; i < last; i++) {
        const Symbol *written = m->tokens.data[i].sym;
        if (!is_field(m, i) || (m->unknown && written != m->unknown))
            continue;
        for (size_t k = 0; k < fields.len + n && !mend_is_done(m); k++) {
            const Symbol *field = fields.data[k % fields.len];
            if (k >= fields.len || is_spelt_alike(m, written, field))
                mend_try_token(m, MEND_NAME, i, field->text);
        }
    }
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_call(const Mender *m, size_t open) {
    if (!open || m->tokens.data[open].partner < 0)
        return false;
    const MendToken *t = &m->tokens.data[open], *p = t - 1;
    if (t->kind != TOK_LPAREN && t->kind != TOK_LBRACKET)
        return false;
    if (p->end != t->begin)
        return false;
    return mend_is_name(p) || p->kind == TOK_RPAREN || p->kind == TOK_GT || p->kind == TOK_RBRACKET;
}

/* Removes a part with the comma after it; the last part goes with the comma before it. */
bool mend_remove_part(Mender *m, const MendParts *parts, size_t k) {
    uint32_t begin = m->tokens.data[parts->data[k]].begin;
    uint32_t end = m->tokens.data[parts->data[k + 1]].end;
    if (k + 2 < parts->len) {
        end = m->tokens.data[parts->data[k + 2]].begin;
    } else if (k) {
        begin = m->tokens.data[parts->data[k - 1]].end;
    }
    return mend_try(m, MEND_REMOVE, begin, end, "");
}

/* Whether no part is an attribute. */
static bool is_plain_list(const Mender *m, const MendParts *parts) {
    for (size_t k = 0; k < parts->len; k += 2)
        if (parts->data[k] + 1 < m->tokens.len &&
            m->tokens.data[parts->data[k] + 1].kind == TOK_EQUAL)
            return false;
    return true;
}

/* Tries to make one tuple of the arguments, then to remove each from the last to the first, before all those that are
 * written twice. */
static void remove_arguments(Mender *m, size_t open) {
    MendParts parts = {0};
    mend_parts(m, open, &parts);
    if (parts.len > 2 && is_plain_list(m, &parts)) {
        uint32_t begin = m->tokens.data[parts.data[0]].begin;
        uint32_t end = m->tokens.data[vec_last(&parts)].end;
        if (mend_try(m, MEND_REPLACE, begin, end, fmt_text("(%s)", mend_text(m, begin, end))))
            return;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (size_t n = parts.len; n > 1; n -= 2) {
            size_t k = n - 2;
            uint32_t begin = m->tokens.data[parts.data[k]].begin;
            uint32_t end = m->tokens.data[parts.data[k + 1]].end;
            bool twice = false;
            if (k + 3 < parts.len) {
                uint32_t b = m->tokens.data[parts.data[k + 2]].begin;
                uint32_t e = m->tokens.data[parts.data[k + 3]].end;
                twice = e - b == end - begin &&
                        strncmp(m->source->text + b, m->source->text + begin, e - b) == 0;
            }
            if (twice != (pass == 0))
                continue;
            if (mend_remove_part(m, &parts, k))
                return;
        }
    }
}

static void insert_argument(Mender *m, size_t open, const char *text) {
    MendParts parts = {0};
    mend_parts(m, open, &parts);
    for (size_t k = 0; k <= parts.len && !mend_is_done(m); k += 2) {
        uint32_t at = k < parts.len ? m->tokens.data[parts.data[k]].begin
                      : k           ? m->tokens.data[parts.data[k - 1]].end
                                    : m->tokens.data[open].end;
        const char *whole = !parts.len      ? text
                            : k < parts.len ? fmt_text("%s, ", text)
                                            : fmt_text(", %s", text);
        mend_try(m, MEND_INSERT, at, at, whole);
    }
}

/* The operator named before the bracket, or NULL. */
static const Op *called_op(const Mender *m, size_t open) {
    size_t first = open;
    while (first > 1 && m->tokens.data[first - 2].kind == TOK_DOT)
        first -= 2;
    if (!first)
        return NULL;
    uint32_t begin = m->tokens.data[first - 1].begin;
    return op_find(sym_intern(mend_text(m, begin, m->tokens.data[open].begin)));
}

/* Tries to name the attributes that are given by place: `zeros(shape=[2, 3])` for `zeros([2, 3])`,
 * `sum(x, axis=0)` for `sum(x, 0)`; and `concatenate((a, b))` for `concatenate(a, b)`. */
static void name_attributes(Mender *m, size_t open) {
    const Op *op = called_op(m, open);
    MendParts parts = {0};
    if (!op)
        return;
    mend_parts(m, open, &parts);
    size_t n = 0;
    while (2 * n < parts.len && m->tokens.data[parts.data[2 * n] + 1].kind != TOK_EQUAL)
        n++;
    if (n <= (size_t)op->nargs)
        return;
    size_t extra = (size_t)op->nargs;
    bool tuple = op->nargs == 1 && op_arg(op, 0).tuple;
    uint32_t begin = m->tokens.data[parts.data[tuple ? 0 : 2 * extra]].begin;
    uint32_t end = m->tokens.data[parts.data[2 * n - 1]].end;
    const char *text = mend_text(m, begin, end);
    if (tuple && mend_try(m, MEND_REPLACE, begin, end, fmt_text("(%s)", text)))
        return;
    for (int optional = 0; optional < 2; optional++) {
        for (int i = 0; i < op->nattrs && !tuple && !mend_is_done(m); i++) {
            const AttrSpec *a = &op->attrs[i];
            if ((a->initial != NULL) != optional)
                continue;
            bool list = n - extra > 1;
            mend_try(m, MEND_REPLACE, begin, end,
                     fmt_text(list ? "%s=[%s]" : "%s=%s", a->name, text));
        }
    }
}

/* Tries to exchange two arguments of the call: `map(f, l)` for `map(l, f)`. */
static void exchange_arguments(Mender *m, size_t first) {
    if (first == m->tokens.len) /* the place is behind the last token */
        return;
    int32_t open = m->tokens.data[first].opener;
    while (open >= 0 && !is_call(m, (size_t)open))
        open = m->tokens.data[open].opener;
    if (open < 0)
        return;
    MendParts parts = {0};
    mend_parts(m, (size_t)open, &parts);
    if (parts.len > 8)
        return;
    for (size_t i = 0; i + 3 < parts.len; i += 2) {
        for (size_t k = i + 2; k + 1 < parts.len && !mend_is_done(m); k += 2) {
            uint32_t a = m->tokens.data[parts.data[i]].begin,
                     b = m->tokens.data[parts.data[i + 1]].end;
            uint32_t c = m->tokens.data[parts.data[k]].begin,
                     d = m->tokens.data[parts.data[k + 1]].end;
            mend_try(
                m, MEND_REPLACE, a, d,
                fmt_text("%s%s%s", mend_text(m, c, d), mend_text(m, b, c), mend_text(m, a, b)));
        }
    }
}

/* Tries to give all arguments but the first to the result: `grad(f)(x)` for `grad(f, x)`. */
static void give_rest_to_result(Mender *m, size_t open) {
    MendParts parts = {0};
    mend_parts(m, open, &parts);
    if (parts.len < 4)
        return;
    mend_try(m, MEND_REPLACE, m->tokens.data[parts.data[1]].end,
             m->tokens.data[parts.data[2]].begin, ")(");
}

static void try_arguments(Mender *m, size_t first, size_t last) {
    bool pattern = m->d->code == DIAG_R0208, attribute = m->d->code == DIAG_R0112;
    if (m->d->code == DIAG_R0201)
        exchange_arguments(m, first);
    if (!pattern && !attribute && m->d->code != DIAG_R0203 && m->d->code != DIAG_R0108)
        return;
    uint32_t calls = 0;
    for (size_t i = first; i < last && calls < 2 && !mend_is_done(m); i++) {
        if (!is_call(m, i))
            continue;
        calls++;
        if (!pattern)
            name_attributes(m, i);
        if (attribute || mend_is_done(m))
            continue;
        if (m->d->code == DIAG_R0203)
            give_rest_to_result(m, i);
        if (mend_is_done(m))
            continue;
        remove_arguments(m, i);
        if (pattern && !mend_is_done(m))
            insert_argument(m, i, "_");
    }
}

/* Tries to add an argument that may have been forgotten: an unused name, or (unused false) another. */
static void try_forgotten_arguments(Mender *m, size_t first, size_t last, bool unused) {
    if (m->d->code != DIAG_R0203)
        return;
    SymbolVec names = {0};
    mend_locals(m, unused, &names);
    for (size_t i = first; i < last; i++) {
        if (!is_call(m, i))
            continue;
        for (size_t k = 0; k < names.len && k < 6 && !mend_is_done(m); k++)
            insert_argument(m, i, names.data[k]->text);
        return;
    }
}

/* ---- literals -------------------------------------------------------------------------------- */

void mend_literal(Mender *m, size_t token) {
    const MendToken *t = &m->tokens.data[token];
    const char *text = t->sym->text;
    size_t digits = strspn(text, "0123456789.");
    bool has_dot = memchr(text, '.', digits) != NULL;
    if (token && t[-1].kind == TOK_DOT && t[-1].end == t->begin) { /* the number of a projection */
        for (int i = 0; i < 4; i++)
            mend_try_token(m, MEND_REPLACE, token, fmt_text("%d", i));
        return;
    }
    if (text[digits] == 'e' || text[digits] == 'x')
        return;
    const char *number = mem_strndup(text, digits); /* without its suffix */
    if (text[digits] && mend_try_token(m, MEND_REPLACE, token, number))
        return;
    if (!has_dot) {
        mend_try_token(m, MEND_REPLACE, token, fmt_text("%s.0", number));
    } else if (strcmp(number + strcspn(number, "."), ".0") == 0) {
        mend_try_token(m, MEND_REPLACE, token, mem_strndup(number, strcspn(number, ".")));
    }
}

static void try_literals(Mender *m, size_t first, size_t last) {
    MendValues v = {0};
    mend_values(m, &v);
    uint32_t n = 0;
    for (size_t i = first; i < last && n < MAX_NAMES && !mend_is_done(m); i++) {
        const MendToken *t = &m->tokens.data[i];
        if (t->kind == TOK_LBRACKET && i == first)
            mend_elements(m, i);
        if (t->kind != TOK_NUMBER)
            continue;
        n++;
        bool size = mend_has_size(&v, t->sym) && !m->far;
        for (size_t k = 0; size && k < v.nsizes && !mend_is_done(m); k++)
            mend_try_token(m, MEND_REPLACE, i, v.sizes[k]->text);
        mend_literal(m, i);
    }
}

/* ---- operators that are taken for one another ------------------------------------------------ */

/* Tries to transpose an operand, the right one first: `a @@ transpose(b)`, then `transpose(a) @@ b`. */
static void transpose_operand(Mender *m) {
    for (size_t i = m->d->labels.len; i-- > 0;) {
        Span s = m->d->labels.data[i].span;
        if (s.source != m->source || s.end <= s.begin || s.end > m->line_end ||
            !mend_is_on_line(m, s))
            continue;
        if (mend_try(m, MEND_REPLACE, s.begin, s.end,
                     fmt_text("transpose(%s)", mend_text(m, s.begin, s.end))))
            return;
    }
}

static void try_operators(Mender *m, size_t first, size_t last) {
    /* Each sign is sometimes written where the one beside it is meant. */
    static const BinOp slips[][2] = {
        {BINOP_ADD, BINOP_APPEND}, {BINOP_MUL, BINOP_MATMUL}, {BINOP_PIPE, BINOP_COMPOSE}};
    for (size_t i = first; i < last && !mend_is_done(m); i++) {
        if (m->tokens.data[i].kind == TOK_ATAT && diag_is_of_sizes(m->d->code))
            transpose_operand(m); /* the product by elements may be meant too, and is tried below */
        BinOp written = infix_find(m->tokens.data[i].kind);
        if (written == BINOP_APPEND && m->d->op == sym_intern("++"))
            continue; /* what joins tensors or lists was meant, and is not `+` (wrap.c) */
        for (size_t k = 0; k < sizeof slips / sizeof *slips; k++)
            if (written == slips[k][0] || written == slips[k][1])
                mend_try_token(m, MEND_REPLACE, i,
                               infix_table[slips[k][written == slips[k][0]]].sign);
    }
}

/* ---- other names that fit -------------------------------------------------------------------- */

static void guess_names(Mender *m, size_t token, const SymbolVec *names) {
    for (size_t i = 0; i < names->len && i < MAX_GUESSES && !mend_is_done(m); i++)
        if (may_be_meant(m, names->data[i]))
            mend_try_token(m, MEND_NAME, token, mend_with_sigil(m, token, names->data[i]));
}

static void guess(Mender *m, size_t first, size_t last, bool unused) {
    SymbolVec names = {0};
    mend_locals(m, unused, &names);
    for (size_t i = first; i < last && !mend_is_done(m); i++) {
        const MendToken *t = &m->tokens.data[i];
        if (!mend_is_name(t) || (m->unknown && t->sym != m->unknown))
            continue;
        if (i + 1 < m->tokens.len && t[1].kind == TOK_EQUAL)
            continue;
        guess_names(m, i, &names);
    }
}

/* Tries `Rect(_, _)` for the pattern `Rect` of a constructor with fields, and `Layer[_, _]` for the type
 * `Layer` with arguments. */
static void try_wildcards(Mender *m, size_t first, size_t last) {
    bool pattern = m->d->code == DIAG_R0208, type = m->d->code == DIAG_R0108;
    if (!(pattern || type) || last != first + 1)
        return;
    const char *written = mend_text(m, m->place.begin, m->place.end), *each = "_";
    m->alone = true; /* each use is mended by itself */
    for (int n = 1; n <= MAX_WILDCARDS && !mend_is_done(m); n++) {
        mend_try(m, MEND_REPLACE, m->place.begin, m->place.end,
                 fmt_text(pattern ? "%s(%s)" : "%s[%s]", written, each));
        each = fmt_text("%s, _", each);
    }
    m->alone = false;
}

void mend_near(Mender *m) {
    size_t first, last;
    mend_place_tokens(m, &first, &last);
    try_wildcards(m, first, last);
    if (mend_is_done(m))
        return;
    try_near_names(m, first, last);
    if (mend_is_done(m))
        return;
    if (m->unknown && mend_count(m, m->unknown) == 1)
        guess(m, first, last, true);
    if (mend_is_done(m))
        return;
    if (m->d->code == DIAG_R0212 || m->d->code == DIAG_R0213)
        try_near_fields(m, first, last);
    try_arguments(m, first, last);
    if (m->unknown)
        return;
    try_literals(m, first, last);
    try_operators(m, first, last);
    try_forgotten_arguments(m, first, last, true);
}

/* ---- other names ------------------------------------------------------------------------------ */

void mend_guess(Mender *m) {
    bool def = m->item >= 0 && m->c->module->items.data[m->item]->kind == ITEM_DEF;
    if (m->d->code == DIAG_R0103 && def)
        return; /* a name is defined twice, so none is missing */
    if (m->d->code == DIAG_R0403)
        return; /* whatever is data would do */
    size_t first, last;
    mend_place_tokens(m, &first, &last);
    guess(m, first, last, true);
    try_forgotten_arguments(m, first, last, false);
    guess(m, first, last, false);
}
