/* SPDX-License-Identifier: Apache-2.0 */
/* Changes elsewhere, tried when none at the place of the message mends the program: the binding that
 * has another name than its uses, the dtype, size or literal of a declaration that several uses
 * contradict. Where such a change is the only one, the mistake is there. */
#include <stdlib.h>
#include <string.h>

#include "types/mend/mend.h"

enum {
    MAX_BINDINGS = 40,
    MAX_FAR = 60,
    UNITS_OF_SIDE =
        600000, /* for the search of the other side, when that of the first has spent the item's budget */
};

/* ---- what the message speaks of -------------------------------------------------------------- */

static bool has_value(const Symbol *const *values, size_t n, const Symbol *s) {
    for (size_t i = 0; i < n; i++)
        if (values[i] == s)
            return true;
    return false;
}

bool mend_has_size(const MendValues *v, const Symbol *s) {
    return has_value(v->sizes, v->nsizes, s);
}

static void add_value(const Symbol **values, size_t *n, const Symbol *s) {
    if (!has_value(values, *n, s) && *n < MEND_MAX_VALUES)
        values[(*n)++] = s;
}

void mend_values(const Mender *m, MendValues *v) {
    for (size_t i = 0; i < m->d->dtypes.len; i++)
        add_value(v->dtypes, &v->ndtypes, m->d->dtypes.data[i]);
    for (size_t i = 0; i < m->d->sizes.len; i++)
        add_value(v->sizes, &v->nsizes, m->d->sizes.data[i]);
}

/* ---- bindings of another name ---------------------------------------------------------------- */

/* Whether a binding may be renamed to the missing name: not when a definition of that name stands elsewhere,
 * because then the use is the mistake. */
static bool mend_may_rename(const Mender *m) {
    if (!m->unknown || m->d->code == DIAG_R0105 || m->d->code == DIAG_R0109)
        return false;
    for (size_t i = 0; i < m->c->module->items.len; i++) {
        const Item *item = m->c->module->items.data[i];
        if (item->kind != ITEM_TYPE && item->name.sym == m->unknown)
            return false;
    }
    for (size_t i = 0; i < m->tokens.len && m->d->code == DIAG_R0101;
         i++) { /* a type parameter of that name */
        const MendToken *t = &m->tokens.data[i];
        if (t->item == m->item && t->sym == m->unknown && t->opener >= 0 &&
            m->tokens.data[t->opener].kind == TOK_LBRACKET && t->begin < m->place.begin)
            return false;
    }
    return true;
}

typedef struct Ranked {
    size_t token;
    unsigned rank;
} Ranked;

static int by_rank(const void *x, const void *y) {
    const Ranked *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->token > b->token ? -1 : 1; /* of one rank the nearest above comes first */
}

static bool is_near_name(const Mender *m, const Symbol *a, const Symbol *b) {
    return sym_find_nearest(a, &b, 1, m->budget) != NULL;
}

/* Renames bindings that nothing mentions and that are spelt like the missing name, where the missing name is
 * written more often or is the likelier spelling: then the slip is where the name is bound. */
void mend_slips(Mender *m) {
    if (!mend_may_walk(m, 2 * m->tokens.len) || !mend_may_rename(m))
        return;
    bool often = mend_count(m, m->unknown) > 1;
    m->far = true;
    for (size_t i = 0; i < m->tokens.len && !mend_is_done(m); i++) {
        const MendToken *t = &m->tokens.data[i];
        if (!mend_is_binding(m, i) || !mend_is_unused(m, i))
            continue;
        if (!is_near_name(m, m->unknown, t->sym))
            continue;
        if (often || mend_is_likelier(m, m->unknown, t->sym))
            mend_try_token(m, MEND_NAME, i, mend_with_sigil(m, i, m->unknown));
    }
    m->far = false;
}

/* Renames bindings to the missing name: those spelt alike first, and of these the ones that nothing mentions. */
static void rename_bindings(Mender *m) {
    if (!mend_may_walk(m, 2 * m->tokens.len) || !mend_may_rename(m))
        return;
    size_t here = mend_token_at(m, m->place.begin);
    bool often = mend_count(m, m->unknown) > 1;
    bool field = m->d->code == DIAG_R0212 || m->d->code == DIAG_R0213 || m->d->code == DIAG_R0208;
    VEC(Ranked) found = {0};
    for (size_t i = 0; i < m->tokens.len; i++) {
        const MendToken *t = &m->tokens.data[i];
        if (i == here || !mend_is_binding(m, i) || t->sym == m->unknown)
            continue;
        bool own = t->item == m->item && i < here;
        const Item *item = t->item >= 0 ? m->c->module->items.data[t->item] : NULL;
        bool global = item && (item->kind == ITEM_TYPE || item->name.span.begin == t->begin);
        if (!own && !global)
            continue;
        if (field && (!item || item->kind != ITEM_TYPE))
            continue;
        bool unused = mend_is_unused(m, i);
        bool near = is_near_name(m, m->unknown, t->sym);
        if (!near && !often)
            continue; /* one use and one binding: neither is likelier to be the slip */
        if (!near && m->found.len)
            continue; /* a change by spelling was found already */
        vec_push(&found, ((Ranked){i, (near ? 0u : 2u) + (unused ? 0u : 1u)}));
    }
    if (found.len)
        qsort(found.data, found.len, sizeof *found.data, by_rank);
    for (size_t i = 0; i < found.len && i < MAX_BINDINGS && !mend_is_done(m); i++) {
        size_t token = found.data[i].token;
        mend_try_token(m, MEND_NAME, token, mend_with_sigil(m, token, m->unknown));
    }
}

/* ---- dtypes, sizes, literals ----------------------------------------------------------------- */

static bool has_dtype(const MendValues *v, const Symbol *s) {
    return has_value(v->dtypes, v->ndtypes, s);
}

/* Whether the program says `instead` so much more often that `s` stands out. */
static bool stands_out(const Mender *m, const Symbol *s, const Symbol *instead) {
    return mend_count(m, instead) >= 3 * mend_count(m, s);
}

static void try_values(Mender *m, size_t token, const Symbol *const *values, size_t n,
                       bool outliers) {
    const MendToken *t = &m->tokens.data[token];
    for (size_t k = 0; k < n && !mend_is_done(m); k++) {
        if (values[k] == t->sym || (outliers && !stands_out(m, t->sym, values[k])))
            continue;
        mend_try_value(m, token, values[k]->text);
    }
}

/* Tries other sizes at the places where the message says that its sizes come from. */
static void try_at_origins(Mender *m, const MendValues *v, bool outliers) {
    for (size_t i = 0; i < m->d->labels.len && !mend_is_done(m); i++) {
        Span s = m->d->labels.data[i].span;
        size_t token = s.source == m->source ? mend_token_at(m, s.begin) : m->tokens.len;
        if (token == m->tokens.len)
            continue;
        const MendToken *t = &m->tokens.data[token];
        bool size = t->kind == TOK_NUMBER && t->begin == s.begin && t->end == s.end;
        if (size && t->item >= 0 && mend_has_size(v, t->sym))
            try_values(m, token, v->sizes, v->nsizes, outliers);
    }
}

/* Tries other values at each token that is not at the place: from the place upwards, then downwards. */
static void each_far(Mender *m, const MendValues *v, bool outliers, bool dtypes, bool sizes,
                     bool literals) {
    size_t here = mend_token_at(m, m->place.begin), n = m->tokens.len, tried = 0;
    if (!mend_may_walk(m, n))
        return;
    if (sizes)
        try_at_origins(m, v, outliers);
    for (size_t k = 0; k < n && tried < MAX_FAR && !mend_is_done(m); k++) {
        size_t i = k < here ? here - 1 - k : k;
        const MendToken *t = &m->tokens.data[i];
        bool near = t->begin >= m->place.begin && t->end <= m->place.end && t->begin <= m->line_end;
        if (near || t->item < 0)
            continue;
        if (dtypes && mend_names_dtype(t)) {
            tried++;
            if (has_dtype(v, t->sym))
                try_values(m, i, v->dtypes, v->ndtypes, outliers);
        } else if (t->kind == TOK_NUMBER) {
            if (sizes && mend_has_size(v, t->sym)) {
                tried++;
                try_values(m, i, v->sizes, v->nsizes, outliers);
            }
            bool suffix = t->sym->text[strspn(t->sym->text, "0123456789.e-+")] != '\0';
            if (literals && (!outliers || suffix)) {
                tried++;
                mend_literal(m, i);
            }
        }
    }
}

/* Tries a field more or fewer in the constructor's declaration, which several patterns or uses may contradict. */
static void try_declared_fields(Mender *m) {
    if (m->d->code != DIAG_R0208 && m->d->code != DIAG_R0203)
        return;
    for (size_t i = 0; i < m->d->labels.len && !mend_is_done(m); i++) {
        DiagLabel label = m->d->labels.data[i];
        if (label.span.source != m->source || label.role != DIAG_ROLE_DECLARATION)
            continue;
        size_t open = mend_token_at(m, label.span.end);
        MendParts parts = {0};
        if (open < m->tokens.len && m->tokens.data[open].kind == TOK_LPAREN)
            mend_parts(m, open, &parts);
        for (size_t k = 0; k + 1 < parts.len && !mend_is_done(m); k += 2)
            mend_remove_part(m, &parts, k);
        for (size_t k = 0; k + 1 < parts.len && !mend_is_done(m); k += 2) {
            uint32_t begin = m->tokens.data[parts.data[k]].begin;
            uint32_t end = m->tokens.data[parts.data[k + 1]].end;
            mend_try(m, MEND_BLAME, begin, begin, fmt_text("%s, ", mend_text(m, begin, end)));
        }
        if (!parts.len)
            mend_try(m, MEND_BLAME, label.span.end, label.span.end, "(int32)");
    }
}

/* Tries an element more or fewer in a tensor literal. */
void mend_elements(Mender *m, size_t open) {
    const MendToken *t = &m->tokens.data[open];
    TokenKind first = open + 1 < m->tokens.len ? t[1].kind : TOK_EOF;
    bool literal = first == TOK_NUMBER || first == TOK_MINUS || first == TOK_LBRACKET;
    bool indexed = open && t[-1].end == t->begin &&
                   (mend_is_name(t - 1) || t[-1].kind == TOK_RPAREN || t[-1].kind == TOK_RBRACKET);
    if (!literal || indexed)
        return;
    MendParts parts = {0};
    mend_parts(m, open, &parts);
    if (parts.len < 2)
        return;
    size_t last = parts.len - 2;
    uint32_t begin = m->tokens.data[parts.data[last]].begin;
    uint32_t end = m->tokens.data[parts.data[last + 1]].end;
    mend_try(m, MEND_BLAME, end, end, fmt_text(", %s", mend_text(m, begin, end)));
    if (parts.len > 2)
        mend_try(m, MEND_BLAME, m->tokens.data[parts.data[last - 1]].end, end, "");
}

/* Tries a sum in the place of a comparison, where a number is wanted. */
static void try_sum_for_comparison(Mender *m, size_t i) {
    static const TokenKind kinds[] = {TOK_LT, TOK_LE, TOK_GT, TOK_GE, TOK_EQEQ, TOK_NE};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (m->tokens.data[i].kind == kinds[k])
            mend_try_token(m, MEND_BLAME, i, "+");
}

static void guess_elsewhere(Mender *m, const MendValues *v) {
    size_t here = mend_token_at(m, m->place.begin), n = m->tokens.len, tried = 0;
    bool bools = has_dtype(v, sym_intern("bool"));
    if (!mend_may_walk(m, n))
        return;
    for (size_t k = 0; k < n && tried < MAX_FAR && !mend_is_done(m); k++) {
        size_t i = k < here ? here - 1 - k : k;
        const MendToken *t = &m->tokens.data[i];
        if (t->item < 0 || (t->begin >= m->place.begin && t->end <= m->place.end))
            continue;
        if (t->kind == TOK_LBRACKET && v->nsizes) {
            tried++;
            mend_elements(m, i);
        } else if (bools) {
            try_sum_for_comparison(m, i);
        }
    }
}

static bool about_dtypes(const Mender *m) {
    static const DiagCode codes[] = {DIAG_R0201, DIAG_R0204, DIAG_R0205, DIAG_R0206, DIAG_R0207,
                                     DIAG_R0208, DIAG_R0212, DIAG_R0310, DIAG_R0311, DIAG_R0402};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == m->d->code)
            return true;
    return false;
}

/* Whether the message is about branches, arms or elements, which must agree and are not asked for a type. */
static bool is_between_equals(const Mender *m) {
    DiagCode c = m->d->code;
    return c == DIAG_R0205 || c == DIAG_R0206 || c == DIAG_R0207;
}

bool mend_is_of_shapes(DiagCode code) {
    return strncmp(diag_get_info(code)->name, "R03", 3) == 0 && code != DIAG_R0310 &&
           code != DIAG_R0311;
}

static bool about_sizes(const Mender *m) {
    DiagCode c = m->d->code;
    return mend_is_of_shapes(c) || c == DIAG_R0201 || c == DIAG_R0208 || is_between_equals(m);
}

void mend_outliers(Mender *m) {
    m->far = true;
    MendValues v = {0};
    mend_values(m, &v);
    if (m->unknown) {
        rename_bindings(m);
    } else {
        bool dtypes = about_dtypes(m);
        if (dtypes || about_sizes(m))
            each_far(m, &v, true, dtypes, about_sizes(m), dtypes);
    }
    m->far = false;
}

/* Tries names that nothing mentions in the place of the names before the message's place. */
static void try_unused_names(Mender *m) {
    SymbolVec names = {0};
    mend_locals(m, true, &names);
    size_t here = mend_token_at(m, m->place.begin);
    for (size_t k = 1; k <= 12 && k <= here && names.len && !mend_is_done(m); k++) {
        const MendToken *t = &m->tokens.data[here - k];
        if (t->item != m->item || !mend_is_name(t) || mend_is_binding(m, here - k))
            continue;
        for (size_t i = 0; i < names.len && i < 3 && !mend_is_done(m); i++)
            mend_try_token(m, MEND_NAME, here - k, mend_with_sigil(m, here - k, names.data[i]));
    }
}

/* Tries other axes of the operator that is called at the place, as in `concatenate((a, b), axis=1)`. */
static void try_other_axes(Mender *m) {
    enum { MAX_AXIS = 3 };
    size_t open = mend_token_at(m, m->place.end);
    if (!diag_is_of_sizes(m->d->code) || open + 1 >= m->tokens.len ||
        m->tokens.data[open].kind != TOK_LPAREN || m->tokens.data[open].partner < 0)
        return;
    for (size_t i = open; i + 2 < (size_t)m->tokens.data[open].partner; i++) {
        const MendToken *t = &m->tokens.data[i];
        if (t->sym != sym_intern("axis") || t[1].kind != TOK_EQUAL)
            continue;
        const MendToken *number = t[2].kind == TOK_MINUS ? t + 3 : t + 2;
        for (int axis = 0; axis <= MAX_AXIS && number->kind == TOK_NUMBER; axis++) {
            if (!mend_is_done(m))
                mend_try(m, MEND_REPLACE, t[2].begin, number->end, fmt_text("%d", axis));
        }
    }
}

void mend_far(Mender *m) {
    if (m->unknown)
        return;
    m->far = true;
    try_other_axes(m);
    if (!mend_is_done(m))
        try_unused_names(m);
    MendValues v = {0};
    mend_values(m, &v);
    bool dtypes = about_dtypes(m);
    if (dtypes || about_sizes(m))
        each_far(m, &v, false, dtypes, about_sizes(m), dtypes);
    try_declared_fields(m);
    if (!mend_is_done(m) && (dtypes || about_sizes(m)))
        guess_elsewhere(m, &v);
    m->far = false;
}

/* ---- the other side -------------------------------------------------------------------------- */

/* Whether the change is one of two sides that clash: it is elsewhere, or no type was asked for at the place. */
static bool may_be_side(const Mender *m, const Mend *mend) {
    if (m->unknown || mend->kind == MEND_NAME)
        return false;
    if (mend->far)
        return true;
    const MendToken *t = &m->tokens.data[mend_token_at(m, mend->begin)];
    return is_between_equals(m) && t->begin == mend->begin && t->end == mend->end &&
           (t->kind == TOK_NUMBER || mend_is_dtype(t));
}

bool mend_other_side(Mender *m, const Mend *mend, Mend *out) {
    if (!may_be_side(m, mend))
        return false;
    MendVec found = m->found;
    m->found = (MendVec){0};
    budget_lend(m->budget, UNITS_OF_SIDE);
    m->side = mend;
    m->far = true;
    MendValues v = {0};
    mend_values(m, &v);
    bool dtypes = about_dtypes(m), sizes = about_sizes(m);
    if (dtypes || sizes) {
        each_far(m, &v, false, dtypes, sizes, dtypes);
        guess_elsewhere(m, &v);
    }
    bool is = false;
    for (size_t i = 0; i < m->found.len && !is; i++) {
        *out = m->found.data[i];
        is = out->remaining <= mend->remaining;
    }
    m->found = found;
    m->side = NULL;
    m->far = false;
    return is;
}
