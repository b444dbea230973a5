/* SPDX-License-Identifier: Apache-2.0 */
/* Trying changes to the program, choosing among those that mend it, and suggesting them. mend.h is the
 * manual. */
#include "types/mend/mend.h"

#include <ctype.h>
#include <string.h>

enum {
    MAX_MENDED = 5, /* for so many errors changes are tried */
    MAX_FIXES = 2,
};

/* ---- what else the mistake shows in ---------------------------------------------------------- */

/* Whether the token's own item binds its name, so that it does not mean the item of that name. */
static bool is_bound_inside(const Mender *m, const MendToken *t) {
    for (int32_t i = (int32_t)(uintptr_t)map_find(&m->last, t->sym) - 1; i >= 0;
         i = m->tokens.data[i].same) {
        if (m->tokens.data[i].item == t->item && mend_is_binding(m, (size_t)i))
            return true;
    }
    return false;
}

static bool is_same_place(const Mender *m, const DiagLabel *a, const DiagLabel *b) {
    return a->span.source == m->source && b->span.source == m->source &&
           a->span.begin == b->span.begin;
}

static bool is_same_value(const Mender *m, const DiagLabel *a, const DiagLabel *b) {
    size_t i = mend_token_at(m, a->span.begin), k = mend_token_at(m, b->span.begin);
    if (a->span.source != m->source || b->span.source != m->source || i >= m->tokens.len ||
        k >= m->tokens.len)
        return false;
    const MendToken *s = &m->tokens.data[i], *t = &m->tokens.data[k];
    return s->sym == t->sym && mend_is_name(s) && s->end == a->span.end && t->end == b->span.end &&
           !is_bound_inside(m, s) && !is_bound_inside(m, t);
}

/* Whether two messages show the same types, and one of these types is of the same named value in both. */
static bool clashes_alike(const Mender *m, const Diag *a, const Diag *b) {
    bool same = false;
    for (size_t i = 0; i < a->labels.len && a->labels.len == b->labels.len; i++) {
        const DiagLabel *x = &a->labels.data[i], *y = &b->labels.data[i];
        if (!diag_label_says_same(x, y))
            return false;
        same = same || is_same_value(m, x, y);
    }
    return same;
}

/* Whether two errors have the same message and, where both have facts, the same first fact. */
static bool says_the_same(const Diag *a, const Diag *b) {
    return diag_has_same_message(a, b) && diag_has_same_fact(a, b);
}

/* Whether the error is that a constructor is given another number of fields than it declares. */
static bool counts_fields(const Diag *d) { return d->code == DIAG_R0203 || d->code == DIAG_R0208; }

/* Finds the items whose errors may have the same cause as the one being mended. A change has to mend all of
 * them, or it is not the cause that it mends. */
static void find_related(Mender *m, size_t first) {
    const Diags *diags = m->c->diags;
    memset(m->related, 0, m->c->module->items.len * sizeof *m->related);
    for (size_t i = first; i < diags->list.len; i++) {
        const Diag *d = diags->list.data[i];
        if (d == m->d || d->primary.span.source != m->source)
            continue;
        bool same = says_the_same(d, m->d) || (m->unknown && d->missing == m->unknown);
        if (d->code != m->d->code && !same && !(counts_fields(d) && counts_fields(m->d)))
            continue;
        for (size_t k = 0; k < d->labels.len && !same; k++) {
            for (size_t j = 0; j < m->d->labels.len && !same; j++)
                same = is_same_place(m, &d->labels.data[k], &m->d->labels.data[j]);
        }
        same = same || clashes_alike(m, d, m->d);
        int32_t item = mend_item_at(m, d->primary.span.begin);
        if (same && item >= 0)
            m->related[item] = true;
    }
    for (size_t i = 0; i < m->c->module->items.len;
         i++) { /* it failed because an item that it needs did */
        if (m->c->failed[i] && !m->told[i])
            m->related[i] = true;
    }
    size_t mended = m->item >= 0 && m->c->failed[m->item];
    for (size_t i = 0; i < m->c->module->items.len; i++)
        mended += m->related[i] && (int32_t)i != m->item && m->c->failed[i];
    m->goal = m->nfailed - mended;
    for (size_t i = 0; i < m->c->module->items.len; i++) {
        m->wanted_alone[i] = m->c->failed[i] && (int32_t)i == m->item;
        m->wanted[i] = m->wanted_alone[i] || (m->c->failed[i] && m->related[i]);
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

static Span mend_span(const Mender *m, const Mend *mend) {
    return (Span){m->source, mend->begin, mend->end};
}

static uint32_t line_of(Span span) {
    uint32_t line, column;
    span_locate(span, &line, &column);
    return line;
}

static const char *where_words(const Mender *m, const Mend *mend) {
    uint32_t line = line_of(mend_span(m, mend)), here = line_of(m->d->primary.span);
    return line == here ? "" : fmt_text(" in line %u", line);
}

/* The name that the message is about, with the change in it: `optim.sgd` where only `sgd` is written anew. */
static const char *whole_name(const Mender *m, const Mend *mend) {
    Span p = m->d->primary.span;
    if (m->d->code != DIAG_R0101 || p.source != m->source || p.begin > mend->begin ||
        p.end < mend->end)
        return mend->text;
    const char *text = mend_text(m, p.begin, p.end);
    for (const char *c = text; *c; c++)
        if (*c != '.' && *c != '_' && !isalnum((unsigned char)*c))
            return mend->text;
    return fmt_text("%s%s%s", mend_text(m, p.begin, mend->begin), mend->text,
                    mend_text(m, mend->end, p.end));
}

static void add_fix(Mender *m, const Mend *mend) {
    const char *old = mend_text(m, mend->begin, mend->end), *say = NULL;
    switch (mend->kind) {
    case MEND_NAME:
        say = mend->far ? fmt_text("with the name `%s` in place of `%s`%s this checks", mend->text,
                                   old, where_words(m, mend))
                        : fmt_text("did you mean `%s`?", whole_name(m, mend));
        break;
    case MEND_REPLACE:
        say = mend->snippet ? NULL
                            : fmt_text("with `%s` in place of `%s`%s this checks", mend->text, old,
                                       where_words(m, mend));
        break;
    case MEND_REMOVE: say = mend->snippet ? NULL : fmt_text("without `%s` this checks", old); break;
    case MEND_INSERT:
        say = mend->snippet ? NULL : fmt_text("with `%s` this checks", mend->text);
        break;
    case MEND_BLAME: return;
    }
    if (!say)
        say = fmt_text("`%s` checks%s%s", mend->snippet, mend->type ? ", with type " : "",
                       mend->type ? mend->type : "");
    size_t kept = 0;
    for (size_t i = 0; i < m->d->helps.len; i++) { /* the suggestion says it better */
        const DiagHelp *help = &m->d->helps.data[i];
        bool says = mend->kind == MEND_NAME && help->name == sym_intern(mend->text);
        if (!help->untried && !says && m->d->code != DIAG_R0401)
            m->d->helps.data[kept++] = m->d->helps.data[i];
    }
    m->d->helps.len = kept;
    if (diag_has_fix(m->d, say))
        return;
    DiagFix *fix = diag_add_fix(m->d, mend_span(m, mend), mend->text, mend->type, "%s", say);
    if (mend->kind == MEND_NAME && !mend->far)
        fix->name = sym_intern(mend->text);
}

/* Points the message at the place of the change; where it arose becomes a second place. */
static void move_place(Mender *m, const Mend *mend) {
    Diag *d = m->d;
    DiagLabel old = d->primary;
    size_t kept = 0;
    for (size_t i = 0; i < d->labels.len; i++) {
        Span s = d->labels.data[i].span;
        if (s.source == m->source && s.begin == mend->begin && s.end == mend->end)
            continue;
        d->labels.data[kept++] = d->labels.data[i];
    }
    d->labels.len = kept;
    bool guesses = d->guess && !d->guess_fact;
    d->primary = (DiagLabel){.span = mend_span(m, mend), .text = ""};
    d->guess = NULL;
    if (mend->begin == mend->end) {
        d->primary.span.end++;
    }
    if (guesses)
        old.text = "";
    diag_add_label(d, old.span, "%s", old.text[0] ? old.text : "this does not agree with it");
    if (mend->kind == MEND_NAME) {
        diag_set_label(d, "was this to be `%s`?", mend->text);
    } else if (mend->kind == MEND_BLAME) {
        diag_set_label(d, "this does not agree with its uses");
    } else if (!mend->text[0]) {
        diag_set_label(d, "without this it would agree");
    } else {
        diag_set_label(d, "`%s` here would agree", mend->text);
    }
}

/* Drops the other errors, which the change mends too, and labels their places in this one. */
static void drop_consequences(Mender *m, size_t first, const char *label) {
    Diags *diags = m->c->diags;
    size_t kept = first;
    for (size_t i = first; i < diags->list.len; i++) {
        Diag *d = diags->list.data[i];
        bool error = diag_get_info(d->code)->severity == SEVERITY_ERROR;
        if (error && d != m->d) {
            if (kept < 6 + first)
                diag_add_label(m->d, d->primary.span, "%s", label);
            diags->errors--;
            continue;
        }
        diags->list.data[kept++] = d;
    }
    diags->list.len = kept;
}

static bool is_labelled(const Mender *m, Span span) {
    for (size_t i = 0; i < m->d->labels.len; i++) {
        Span s = m->d->labels.data[i].span;
        if (s.source == span.source && s.begin < span.end && span.begin < s.end)
            return true;
    }
    return false;
}

/* What a label calls one of two sides that clash: the size or dtype itself where it is one. */
static const char *side_words(const Mender *m, const Mend *mend) {
    const char *text = mend_text(m, mend->begin, mend->end);
    bool size = strspn(text, "0123456789") == strlen(text) &&
                strspn(mend->text, "0123456789") == strlen(mend->text);
    DType dtype;
    return size || dtype_find(text, strlen(text), &dtype) ? text : "one side";
}

/* The change described by an expression that holds both operands. only: never by a smaller one. */
static Mend with_both(const Mend *mend, bool only) {
    Mend out = *mend;
    if (mend->spanning || only) {
        out.snippet = mend->spanning;
        out.type = mend->spanning_type;
    }
    return out;
}

/* Suggests both of two changes, each of which mends, and blames neither place. */
static void show_both(Mender *m, const Mend *one, const Mend *other) {
    if (one->kind != MEND_REPLACE || other->kind != MEND_REPLACE)
        return;
    const Mend *sides[] = {one, other};
    if (other->begin < one->begin) {
        sides[0] = other;
        sides[1] = one;
    }
    for (size_t i = 0; i < 2; i++) {
        Mend mend = with_both(sides[i], sides[i]->far);
        add_fix(m, &mend);
        Span span = mend_span(m, &mend);
        if (line_of(span) != line_of(m->d->primary.span) && !is_labelled(m, span))
            diag_add_label(m->d, span, "%s comes from here", side_words(m, &mend));
    }
}

/* Whether the message should point at the change: on one line both sides can be seen already. */
static bool points_elsewhere(const Mender *m, const Mend *mend) {
    return mend->far &&
           (mend->kind == MEND_NAME || line_of(mend_span(m, mend)) != line_of(m->d->primary.span));
}

static void choose_suggestion(Mender *m, size_t first) {
    if (!m->found.len)
        return;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < m->found.len; i++) {
        if (m->found.data[i].remaining < least)
            least = m->found.data[i].remaining;
    }
    bool near = false;
    const Mend *best = NULL;
    for (size_t i = 0; i < m->found.len; i++) {
        const Mend *mend = &m->found.data[i];
        if (mend->remaining != least)
            continue;
        if (!best || (!mend->far && !near))
            best = mend;
        near = near || !mend->far;
    }
    Mend other;
    if (mend_other_side(m, best, &other) && (!near || other.kind == MEND_REPLACE)) {
        if (!near && !least && m->nfailed > 1)
            drop_consequences(m, first, "here too");
        show_both(m, best, &other);
        return;
    }
    bool moves = !near && points_elsewhere(m, best);
    if (moves)
        move_place(m, best);
    if (!near && !least && m->nfailed > 1)
        drop_consequences(m, first, moves ? "nor does this" : "here too");
    uint32_t added = 0;
    for (size_t i = 0; i < m->found.len && added < MAX_FIXES; i++) {
        const Mend *mend = &m->found.data[i];
        if (mend->remaining != least || mend->far == near)
            continue;
        if (!near && mend != best)
            continue;
        size_t fixes = m->d->fixes.len;
        Mend both = with_both(mend, false);
        add_fix(m, near || moves ? mend : &both);
        added += m->d->fixes.len > fixes;
    }
}

static void drop_untried_helps(Diag *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->helps.len; i++) {
        if (!d->helps.data[i].untried)
            d->helps.data[kept++] = d->helps.data[i];
    }
    d->helps.len = kept;
}

static void drop_labels_of_guess(Diag *d) {
    size_t kept = 0;
    for (size_t i = 0; i < d->labels.len; i++) {
        if (d->labels.data[i].role != DIAG_ROLE_GUESS)
            d->labels.data[kept++] = d->labels.data[i];
    }
    d->labels.len = kept;
}

/* Takes back a name that was offered by its spelling alone and does not check; where another one does, the
 * primary label offers that one. */
static void drop_untried(Mender *m) {
    Diag *d = m->d;
    drop_untried_helps(d);
    if (d->guess_fact) {
        diag_drop_fact(d, d->guess_fact - 1);
        d->guess_fact = 0;
        d->guess = NULL;
    }
    if (d->primary.text[0] && !d->guess)
        return;
    for (size_t i = 0; i < d->fixes.len; i++) {
        const Symbol *name = d->fixes.data[i]->name;
        if (!name)
            continue;
        if (name != d->guess) /* otherwise the label offers it already */
            diag_set_label(d, "%s", d->fixes.data[i]->message);
        return;
    }
    diag_set_label(d, "%s", "");
    d->guess = NULL;
    drop_labels_of_guess(d);
}

/* ---- all of a module's errors ---------------------------------------------------------------- */

/* Whether some known name begins with this part, as `nn.dense` begins with `nn`. */
static bool is_first_part(Mender *m, const Symbol *name) {
    const SymbolVec *known = mend_known_names(m);
    for (size_t i = 0; i < known->len && mend_may_walk(m, 1); i++) {
        const char *text = known->data[i]->text;
        if (strncmp(text, name->text, name->len) == 0 && text[name->len] == '.')
            return true;
    }
    return false;
}

/* Whether a token is the name `missing`, its last part, or its first part where no name begins so. */
static bool is_missing_part(Mender *m, const Symbol *part, const Symbol *missing) {
    if (part == missing)
        return true;
    if (part->len >= missing->len)
        return false;
    const char *end = missing->text + missing->len - part->len;
    if (end[-1] == '.' && strcmp(end, part->text) == 0)
        return true;
    return missing->text[part->len] == '.' && memcmp(missing->text, part->text, part->len) == 0 &&
           !is_first_part(m, part);
}

/* The token at the place that is, or is a part of, the name that the message says is missing. */
static const Symbol *missing_name(Mender *m) {
    if (!m->d->missing)
        return NULL;
    size_t i = mend_token_at(m, m->place.begin);
    for (; i < m->tokens.len && m->tokens.data[i].begin < m->place.end; i++) {
        const MendToken *t = &m->tokens.data[i];
        if ((mend_is_name(t) || mend_is_dtype(t)) && is_missing_part(m, t->sym, m->d->missing))
            return t->sym;
    }
    return NULL;
}

/* Tries the fixes that came with the message. One that does not check becomes a help of an error, and goes
 * from a warning. */
static void verify(Mender *m, Diag *d, size_t first) {
    m->d = d;
    m->place = d->primary.span;
    m->item = mend_item_at(m, m->place.begin);
    m->unknown = NULL;
    /* Each of many warnings would be compared with all others. */
    bool may_search = mend_may_walk(m, m->c->diags->list.len - first);
    if (may_search)
        find_related(m, first);
    m->alone = true;
    size_t kept = 0;
    for (size_t i = 0; i < d->fixes.len; i++) {
        DiagFix *fix = d->fixes.data[i];
        const DiagEdit *e = &fix->edits.data[0];
        if (may_search && fix->edits.len == 1 && e->span.source == m->source &&
            mend_checks(m, e->span.begin, e->span.end, e->text))
            d->fixes.data[kept++] = fix;
        else if (diag_get_info(d->code)->severity == SEVERITY_ERROR)
            vec_push(&d->helps, ((DiagHelp){.text = fix->message, .untried = true}));
    }
    d->fixes.len = kept;
    m->alone = false;
}

static void mend_one(Mender *m, Diag *d, size_t first) {
    m->d = d;
    m->place = d->primary.span;
    m->item = mend_item_at(m, m->place.begin);
    m->far = false;
    map_clear(&m->tried);
    vec_clear(&m->found);
    const Source *s = m->source;
    m->line_end = m->place.begin;
    while (m->line_end < s->len && s->text[m->line_end] != '\n')
        m->line_end++;
    m->unknown = missing_name(m);
    find_related(m, first);
    mend_may_walk(m, 20 * (m->c->diags->list.len - first) + 4 * m->c->module->items.len);
    void (*const steps[])(Mender *) = {mend_habits, mend_near, mend_outliers,
                                       mend_wrap,   mend_far,  mend_guess};
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !mend_is_done(m); i++)
        steps[i](m);
    choose_suggestion(m, first);
    drop_untried(m);
}

static bool begin(Mender *out, ModuleCheck *c, size_t first) {
    const Source *source = c->module->source;
    if (!source || !c->module->items.len || (source->flags & SOURCE_INTERNAL))
        return false;
    if (c->env->no_mending)
        return false;
    Mender m = {.c = c, .source = source, .budget = &c->env->budget, .base = *c->env->here};
    if (!c->module->versioned) {
        m.begin = c->module->items.data[0]->span.begin;
        while (m.begin > 0 && source->text[m.begin - 1] != '\n')
            m.begin--;
    }
    if (c->declares) {
        m.base.types = c->types;
        m.base.ctors = c->ctors;
        m.base.ops = c->ops;
    }
    map_add(&m.versions, &c->env->versions);
    for (size_t i = 0; i < c->module->items.len; i++)
        m.nfailed += c->failed[i];
    m.related = mem_new_n(bool, c->module->items.len + 1);
    m.wanted = mem_new_n(bool, c->module->items.len + 1);
    m.wanted_alone = mem_new_n(bool, c->module->items.len + 1);
    m.mentioned = mem_new_n(bool, c->module->items.len + 1);
    m.told = mem_new_n(bool, c->module->items.len + 1);
    for (size_t i = 0; c->edges && i < c->module->items.len; i++) {
        for (size_t k = 0; k < c->edges[i].len; k++)
            m.mentioned[c->edges[i].data[k]] |= c->edges[i].data[k] != i;
    }
    for (size_t i = first; i < c->diags->list.len; i++) {
        const Diag *d = c->diags->list.data[i];
        int32_t item = d->primary.span.source == source ? mend_item_at(&m, d->primary.span.begin)
                                                        : -1;
        if (item >= 0 && diag_get_info(d->code)->severity == SEVERITY_ERROR)
            m.told[item] = true;
    }
    if (c->parts)
        m.parts = parts_new(c);
    *out = m;
    return true;
}

/* Fixes that came with a diagnostic of c->diags from list[first] on are tried; those that do not check become
 * words. */
static void mend_verify(ModuleCheck *c, size_t first) {
    Mender m;
    bool any = false;
    for (size_t i = first; i < c->diags->list.len; i++) {
        Diag *d = c->diags->list.data[i];
        if (!d->fixes.len || d->code == DIAG_R0110)
            continue; /* the fixes of a hole were tried when they were made */
        if (!any && !begin(&m, c, first))
            return;
        if (!any)
            budget_begin_item(m.budget);
        any = true;
        verify(&m, d, first);
    }
    budget_end_item(&c->env->budget);
}

/* Adds fixes to the errors of c->diags from list[first] on, and moves their places. */
static void mend_module(ModuleCheck *c, size_t first) {
    const Source *source = c->module->source;
    Mender m;
    if (!begin(&m, c, first))
        return;
    mend_read_tokens(&m);
    mend_may_walk(&m, 10 * m.tokens.len);
    uint32_t mended = 0;
    for (size_t i = first; i < c->diags->list.len; i++) {
        Diag *d = c->diags->list.data[i];
        bool error = diag_get_info(d->code)->severity == SEVERITY_ERROR;
        if (!error || d->primary.span.source != source || d->code == DIAG_R0110 ||
            d->cause == DIAG_CAUSE_LANES || d->cause == DIAG_CAUSE_IMPORT)
            continue;
        if (d->fixes.len)
            continue; /* whoever found the mistake also found what mends it */
        if (mended == MAX_MENDED || budget_is_spent(m.budget)) {
            m.d = d;
            drop_untried(&m);
            continue;
        }
        budget_begin_item(m.budget);
        mend_one(&m, d, first);
        budget_end_item(m.budget);
        mended++;
    }
}

static void check_and_mend(void *check) {
    ModuleCheck *c = check;
    module_check(c);
    mend_holes(c);
    if (c->whole)
        mend_verify(c, c->first);
    module_bind(c);
    if (!c->ok)
        mend_module(c, c->first);
    module_close(c);
}

bool mend_infer_module(Env *env, const Module *module, InferMode mode, Diags *diags,
                       CoreItemVec *out) {
    ModuleCheck c = {.env = env, .module = module, .mode = mode, .diags = diags, .out = out};
    infer_on_stack(check_and_mend, &c);
    return c.ok;
}
