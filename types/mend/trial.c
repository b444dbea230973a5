/* SPDX-License-Identifier: Apache-2.0 */
/* Trying one change to the program; mend.h has the manual.
 *
 * A change inside one item costs that item: its text is read again as it would be read among the
 * others (parse_item_again), and checked against the others as they were checked (infer/part.c).
 * A change to a type costs the items that mention it. Where that cannot tell whether the change mends, it
 * costs the whole text, and is tried only where the budget allows it. */
#include <string.h>

#include "parser/parser.h"
#include "types/mend/mend.h"

enum { MAX_SNIPPET = 70 };

/* How many bytes of text may still be checked for this error. */
static size_t bytes_left(const Mender *m) {
    return (size_t)(budget_get_left(m->budget) / BUDGET_CHECK_BYTE);
}

static void draw_checked(Mender *m, size_t bytes) {
    budget_draw(m->budget, BUDGET_CHECK_BYTE * (int64_t)bytes);
}

bool mend_may_walk(Mender *m, size_t steps) { return budget_draw(m->budget, (int64_t)steps); }

static KnownName find_known(void *ctx, const Symbol *name) {
    Env *env = ctx;
    switch (env_find(env, name, SIGIL_NONE).kind) {
    case BIND_GLOBAL:
        return env_find(env, name, SIGIL_NONE).global->kind == GLOBAL_DEF ? KNOWN_DEF : KNOWN_VALUE;
    case BIND_CTOR:
    case BIND_OP: return KNOWN_DEF;
    case BIND_NONE:
    case BIND_TYPE:
    case BIND_MODULE: break;
    }
    return KNOWN_NOTHING;
}

/* Checks a trial in copies of the namespaces, which are put back afterwards. */
static void run_apart(Mender *m, ModuleCheck *trial) {
    Env *env = m->c->env;
    Namespace *here = env->here, saved = *here;
    Map versions = env->versions, types = {0}, ctors = {0}, ops = {0}, own = {0};
    map_add(&types, &m->base.types);
    map_add(&ctors, &m->base.ctors);
    map_add(&ops, &m->base.ops);
    map_add(&own, &m->versions);
    here->types = types;
    here->ctors = ctors;
    here->ops = ops;
    env->versions = own;
    module_check(trial);
    *here = saved;
    env->versions = versions;
    const void *key;
    void *value;
    for (size_t i = 0; map_next(&m->base.types, &i, &key, &value);) {
        TypeDecl *decl = value;
        decl->superseded = false; /* the trial's declarations are gone */
        decl->version = 0;
    }
}

typedef struct Covering {
    Map seen;
    uint32_t begin, end, limit;
    bool itself; /* the expression may be just what was changed */
    Expr *best;
} Covering;

/* Finds the smallest expression that holds the changed place and something around it. */
static void find_covering(void *ctx, Expr *e) {
    Covering *c = ctx;
    for (; e; e = e->body) {
        if (map_has(&c->seen, e))
            return;
        map_set(&c->seen, e, e);
        Span s = e->span;
        bool inside = c->end > c->begin || (s.begin < c->begin && s.end > c->end);
        bool covers = s.source && inside && s.begin <= c->begin && s.end >= c->end &&
                      s.end - s.begin + c->itself > c->end - c->begin &&
                      s.end - s.begin <= c->limit;
        if (covers && e->kind != EXPR_LET && e->kind != EXPR_FN &&
            (!c->best || s.end - s.begin < c->best->span.end - c->best->span.begin))
            c->best = e;
        if (e->kind != EXPR_LET)
            break;
        find_covering(ctx, e->a);
    }
    if (e)
        expr_each_child(e, find_covering, ctx);
}

void mend_describe(const CoreItemVec *items, const Source *source, Mend *mend, uint32_t from,
                   uint32_t to) {
    Covering c = {.begin = from, .end = to, .limit = MAX_SNIPPET};
    bool call = mend->kind == MEND_REPLACE && strchr(mend->text, '(');
    for (size_t k = 0; k < 2 * items->len && !c.best; k++) {
        size_t i = k % items->len;
        if (k == items->len) {
            if (!call)
                return;
            c = (Covering){.begin = from, .end = to, .limit = MAX_SNIPPET, .itself = true};
        }
        const CoreItem *item = &items->data[i];
        Span s = item->item->span;
        if (from < s.begin || to > s.end)
            continue;
        Expr *e = item->expr ? item->expr : item->global ? item->global->value : NULL;
        if (e)
            find_covering(&c, e);
    }
    if (!c.best)
        return;
    Span s = c.best->span;
    const char *text = mem_strndup(source->text + s.begin, s.end - s.begin);
    if (strchr(text, '\n'))
        return;
    mend->snippet = text;
    Type *t = type_resolve(c.best->type);
    if (!(t->flags & TYPE_HAS_PARAMS) && !type_has_vars(t) && t->tag != TY_FN &&
        t->tag != TY_ERROR && t->tag != TY_DERIV)
        mend->type = type_text(t);
}

/* Describes the change for its suggestion. source: what was read of the edited text, from `offset` on. */
static void describe(const Mender *m, const CoreItemVec *items, const Source *source,
                     uint32_t offset, Mend *mend) {
    uint32_t from = mend->begin - offset, to = from + (uint32_t)strlen(mend->text);
    mend_describe(items, source, mend, from, to);
    Span place = m->far || !m->d->labels.len ? m->place : m->d->labels.data[0].span;
    bool after = place.begin >= mend->end;
    if (place.source != m->source || place.begin < offset || (!after && place.end > mend->begin))
        return;
    uint32_t shift = after ? to - from - (mend->end - mend->begin) : 0;
    uint32_t begin = place.begin - offset + shift, end = place.end - offset + shift;
    from = begin < from ? begin : from;
    to = end > to ? end : to;
    if (to > source->len || memchr(source->text + from, '\n', to - from))
        return;
    Mend spanning = {.kind = mend->kind, .text = mend->text};
    mend_describe(items, source, &spanning, from, to);
    mend->spanning = spanning.snippet;
    mend->spanning_type = spanning.type;
}

/* Whether all that is still wrong is that other names are missing: an item may misspell two, and mending the
 * first leaves the second. What was read begins at `offset` of the text. */
static bool only_another_name(const Mender *m, const Mend *mend, const Diags *diags,
                              const Source *read, uint32_t offset) {
    int64_t shift = (int64_t)strlen(mend->text) - (int64_t)(mend->end - mend->begin);
    for (size_t i = 0; i < diags->list.len; i++) {
        const Diag *d = diags->list.data[i];
        if (diag_get_info(d->code)->severity != SEVERITY_ERROR)
            continue;
        int64_t begin = d->primary.span.begin;
        if (d->primary.span.source == read) {
            begin += offset;
            if (begin >= mend->begin && begin < mend->begin + (int64_t)strlen(mend->text))
                return false; /* the text that was put there is wrong itself */
            if (begin > mend->begin)
                begin -= shift;
        }
        bool again = diag_has_same_message(d, m->d) && !m->alone;
        if (d->code != m->d->code || again || begin == m->place.begin)
            return false;
    }
    return true;
}

/* Whether both operands of the changed expression grow by broadcasting, as in `[1, 2, 3] + expand_dims([1, 2],
 * axis=1)`. Such a change checks, with the warning that this is rarely meant (R0901), and is not suggested. */
static bool grows_both(const Mender *m, const Mend *mend, const Diags *diags, const Source *read,
                       uint32_t offset) {
    if (!diag_is_of_sizes(m->d->code))
        return false;
    uint32_t begin = mend->begin - offset, end = begin + (uint32_t)strlen(mend->text);
    for (size_t i = 0; i < diags->list.len; i++) {
        const Diag *d = diags->list.data[i];
        if (d->code != DIAG_R0901)
            continue;
        for (size_t k = 0; k <= d->labels.len; k++) {
            Span s = k ? d->labels.data[k - 1].span : d->primary.span;
            if (s.source == read && s.begin < end && begin < s.end)
                return true;
        }
    }
    return false;
}

/* ---- a change inside one item ---------------------------------------------------------------- */

/* The edited text of the item that holds the change, and some of what follows it; NULL when item `at` does not
 * hold the change. */
static Source *edited_item(const Mender *m, const Mend *mend, int32_t at) {
    const Module *module = m->c->module;
    Span s = module->items.data[at]->span;
    if (mend->begin < s.begin || mend->end > s.end)
        return NULL;
    enum { LOOK_AHEAD = 1000 }; /* the reader looks at less than this of what follows an item */
    size_t end = (size_t)at + 1 < module->items.len ? module->items.data[at + 1]->span.end
                                                    : m->source->len;
    if (end > s.end + (size_t)LOOK_AHEAD)
        end = s.end + LOOK_AHEAD;
    Str text = {0};
    str_add_n(&text, m->source->text + s.begin, mend->begin - s.begin);
    str_add(&text, mend->text);
    str_add_n(&text, m->source->text + mend->end, end - mend->end);
    return source_new(m->source->name, str_text(&text), text.len, m->source->flags);
}

/* Reads the edited item and returns the text that was read; NULL when the item does not hold the change. out:
 * the item, or NULL where the text is no longer one item. */
static const Source *read_again(Mender *m, const Mend *mend, int32_t at, Item **out) {
    const Source *source = edited_item(m, mend, at);
    *out = NULL;
    if (!source)
        return NULL;
    Span old = m->c->module->items.data[at]->span;
    int64_t shift = (int64_t)strlen(mend->text) - (int64_t)(mend->end - mend->begin);
    budget_draw(m->budget, BUDGET_READ_BYTE * (old.end - old.begin) + BUDGET_TRIAL);
    ParseScope scope = {.find_global = find_known, .ctx = m->c->env};
    ParseOptions options = {.prompt = m->c->mode == INFER_PROMPT, .scope = &scope};
    Diags diags = {0};
    Item *item = parse_item_again(source, &options, m->c->module, &diags);
    if (item && !item->span.begin && item->span.end == old.end - old.begin + shift)
        *out = item;
    return source;
}

/* Reads the edited item; PART_CHECKED when it reads. */
static PartVerdict read_changed(Mender *m, const Mend *mend, int32_t at, Item **item,
                                const Source **source) {
    const Item *before = m->c->module->items.data[at];
    *source = read_again(m, mend, at, item);
    if (!*source || before->pattern || before->derived || (*item && (*item)->pattern))
        return PART_UNSURE; /* a pattern is several items */
    return *item ? PART_CHECKED : PART_WORSE;
}

static bool add_namers(const Mender *m, const Symbol *name, bool plain, IndexVec *out) {
    for (int32_t i = (int32_t)(uintptr_t)map_find(&m->last, name) - 1; i >= 0;
         i = m->tokens.data[i].same) {
        const MendToken *t = &m->tokens.data[i];
        TokenKind next = (size_t)i + 1 < m->tokens.len ? t[1].kind : TOK_EOF;
        /* how the text behind the name is read depends on what the name is */
        if (!plain || (t->end == t[1].begin && (next == TOK_LBRACKET || next == TOK_DOT)))
            return false;
        if (t->item >= 0)
            vec_push(out, (uint32_t)t->item);
    }
    return true;
}

/* Collects the items that may mean the name that the edited item binds, if that is another than before. False
 * when only a check of the whole text can tell. */
static bool find_namers(const Mender *m, const Item *before, const Item *now, IndexVec *out) {
    const Symbol *was = infer_item_symbol(before), *is = infer_item_symbol(now);
    if (was == is)
        return true;
    if (!was || !is)
        return false;
    bool plain = before->name.sigil == SIGIL_NONE && now->name.sigil == SIGIL_NONE &&
                 !m->c->module->versioned && !strchr(was->text, '.') && !strchr(is->text, '.');
    IndexVec old = {0};
    return add_namers(m, was, plain, &old) && add_namers(m, is, plain, out);
}

static PartVerdict run_part(Mender *m, Mend *mend) {
    int32_t at = mend_item_at(m, mend->begin);
    if (!m->parts || at < 0)
        return PART_UNSURE;
    const Item *before = m->c->module->items.data[at];
    bool type = before->kind == ITEM_TYPE;
    if (!type && !infer_in_groups(before))
        return PART_UNSURE;
    Item *item;
    const Source *source;
    PartVerdict read = read_changed(m, mend, at, &item, &source);
    if (read != PART_CHECKED)
        return read;
    Span old = before->span;
    Diags diags = {0};
    IndexVec namers = {0}, types = {0};
    if (type ? item->kind != ITEM_TYPE || !mend_type_users(m, (uint32_t)at, item, &types, &namers)
             : !find_namers(m, before, item, &namers))
        return PART_UNSURE;
    bool may_fail = (type || at == m->item) && m->by_spelling && m->unknown;
    PartCheck check = {.at = (uint32_t)at,
                       .item = item,
                       .namers = &namers,
                       .types = type ? &types : NULL,
                       .wanted = m->alone ? m->wanted_alone : m->wanted,
                       .may_fail = may_fail ? m->item : -1,
                       .most_bytes = bytes_left(m),
                       .diags = &diags};
    PartVerdict v = parts_check(m->parts, &check);
    draw_checked(m, check.bytes);
    if (v != PART_CHECKED)
        return v;
    if (grows_both(m, mend, &diags, source, old.begin))
        return PART_WORSE;
    mend->remaining = m->nfailed - check.mended;
    if (check.it_failed) {
        if (!only_another_name(m, mend, &diags, source, old.begin))
            return PART_WORSE;
    } else if (!check.mended && m->nfailed) {
        return PART_WORSE;
    }
    if (type)
        return PART_CHECKED;
    CoreItemVec items = {0};
    vec_push(&items, check.core);
    describe(m, &items, source, old.begin, mend);
    return PART_CHECKED;
}

/* ---- a change to declarations that failed ---------------------------------------------------- */

/* Whether each error in the declarations was there before, or is about another missing name in the declaration
 * that was changed. */
static bool less_is_said(const Mender *m, const Mend *mend, const Diags *diags, const Source *read,
                         uint32_t offset) {
    const Diags *before = m->c->diags;
    Diags others = {0};
    for (size_t i = 0; i < diags->list.len; i++) {
        Diag *d = diags->list.data[i];
        bool was = diag_get_info(d->code)->severity != SEVERITY_ERROR;
        for (size_t k = m->c->first; k < before->list.len && !was; k++) {
            const Diag *e = before->list.data[k];
            was = e != m->d && e->code == d->code && diag_has_same_message(e, d) &&
                  e->primary.span.source == d->primary.span.source &&
                  e->primary.span.begin == d->primary.span.begin;
        }
        if (!was)
            vec_push(&others.list, d);
    }
    bool another = m->unknown && m->by_spelling;
    return !others.list.len || (another && only_another_name(m, mend, &others, read, offset));
}

/* Tries a change to a declaration where the declarations failed and no item was checked: checks the
 * declarations again, then the items that mention a name of the changed one, and what these need. */
static PartVerdict run_declaration(Mender *m, Mend *mend) {
    const Module *module = m->c->module;
    int32_t at = mend_item_at(m, mend->begin);
    bool types = at >= 0 && m->item >= 0 && module->items.data[at]->kind == ITEM_TYPE &&
                 module->items.data[m->item]->kind == ITEM_TYPE;
    if (!types || m->c->edges || !m->c->I)
        return PART_UNSURE;
    Item *item;
    const Source *source;
    PartVerdict read = read_changed(m, mend, at, &item, &source);
    if (read != PART_CHECKED)
        return read;
    size_t n = module->items.len;
    IndexVec namers = {0}, mentioners = {0};
    if (!mend_type_users(m, (uint32_t)at, item, &mentioners, &namers))
        return PART_UNSURE;
    Module edited = *module;
    edited.items.data = mem_new_n(Item *, n + 1);
    memcpy(edited.items.data, module->items.data, n * sizeof *edited.items.data);
    edited.items.data[at] = item;
    TrialCheck check = {.wanted = mem_new_n(bool, n + 1),
                        .edited = mem_new_n(bool, n + 1),
                        .may_fail = mem_new_n(bool, n + 1),
                        .by_needs = true,
                        .most_bytes = bytes_left(m)};
    for (size_t i = 0; i < namers.len; i++)
        check.wanted[namers.data[i]] = true;
    Diags diags = {0};
    CoreItemVec items = {0};
    ModuleCheck trial = {.env = m->c->env,
                         .module = &edited,
                         .mode = m->c->mode,
                         .diags = &diags,
                         .out = &items,
                         .trial = &check};
    run_apart(m, &trial);
    budget_draw(m->budget, 50 * (int64_t)n); /* entering the names of all items */
    for (size_t i = 0; i < n; i++) {
        const Item *one = module->items.data[i];
        bool checked = trial.edges ? check.wanted[i] : one->kind == ITEM_TYPE;
        if (checked)
            draw_checked(m, one->span.end - one->span.begin);
        m->c->env->counts.tried += checked;
    }
    bool good = !check.ended ? false
                : trial.edges
                    ? !diags.errors && trial.by_item
                    : less_is_said(m, mend, &diags, source, module->items.data[at]->span.begin);
    return good ? PART_CHECKED : PART_WORSE;
}

/* ---- a change anywhere ----------------------------------------------------------------------- */

static Source *edited_text(const Mender *m, const Mend *mend) {
    Str text = {0};
    str_add_n(&text, m->source->text, mend->begin);
    str_add(&text, mend->text);
    str_add_n(&text, m->source->text + mend->end, m->source->len - mend->end);
    return source_new(m->source->name, str_text(&text), text.len, m->source->flags);
}

/* Tries a change by checking the whole text. whole: all items are checked; otherwise those that the change or
 * the failures can concern. Two items may settle the type of one reference together, so a change is
 * accepted only after a check of all items. */
static bool run_whole(Mender *m, Mend *mend, bool whole) {
    const Module *before = m->c->module;
    size_t n = before->items.len;
    size_t bytes = m->source->len - m->begin;
    if (!budget_draw(m->budget, BUDGET_TRIAL) || bytes_left(m) < bytes)
        return false;
    budget_draw(m->budget, BUDGET_READ_BYTE * (int64_t)bytes);
    Source *source = edited_text(m, mend);
    ParseScope scope = {.find_global = find_known, .ctx = m->c->env};
    ParseOptions options = {
        .prompt = m->c->mode == INFER_PROMPT, .scope = &scope, .begin = m->begin};
    Diags diags = {0};
    Module *module = NULL;
    if (parse_module(source, &options, &diags, &module) != PARSE_OK || module->items.len != n)
        return false;
    bool *edited = mem_new_n(bool, n + 1), *wanted = mem_new_n(bool, n + 1),
         all = whole || !m->c->by_item;
    for (size_t i = 0; i < n; i++) {
        Span s = before->items.data[i]->span;
        edited[i] = s.begin <= mend->end && mend->begin <= s.end;
        wanted[i] = m->c->failed[i];
        all |= before->items.data[i]->kind == ITEM_TYPE && edited[i];
    }
    for (size_t i = 0; i < n && all; i++)
        wanted[i] = true;
    mend->remaining = 0;
    TrialCheck check = {
        .wanted = wanted, .edited = edited, .may_fail = m->c->failed, .edges = m->c->edges};
    CoreItemVec items = {0};
    ModuleCheck trial = {.env = m->c->env,
                         .module = module,
                         .mode = m->c->mode,
                         .diags = &diags,
                         .out = &items,
                         .trial = &check};
    run_apart(m, &trial);
    for (size_t i = 0; i < n; i++) {
        Span s = module->items.data[i]->span;
        if (wanted[i])
            draw_checked(m, s.end - s.begin);
        m->c->env->counts.tried += wanted[i];
        mend->remaining += trial.failed[i];
    }
    if (!check.ended || (!trial.by_item && diags.errors))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (trial.failed[i] && (!m->c->failed[i] || (m->related[i] && !m->alone)))
            return false;
    }
    if (m->item >= 0 && trial.failed[m->item]) {
        /* The item has another mistake, but the misspelt name is mended. */
        if (!m->by_spelling || !m->unknown || !only_another_name(m, mend, &diags, source, 0))
            return false;
    } else if (mend->remaining >= m->nfailed && m->nfailed) {
        return false;
    }
    if ((diags.errors && !mend->remaining) || grows_both(m, mend, &diags, source, 0))
        return false;
    describe(m, &items, source, 0, mend);
    return true;
}

/* ---- an import ------------------------------------------------------------------------------- */

static bool run_import(Mender *m, Mend *mend) {
    size_t bytes = m->source->len - m->begin;
    if (bytes_left(m) < bytes)
        return false;
    budget_draw(m->budget, BUDGET_READ_BYTE * (int64_t)bytes + BUDGET_TRIAL);
    draw_checked(m, bytes);
    const Source *source = edited_text(m, mend);
    ParseScope scope = {.find_global = find_known, .ctx = m->c->env};
    ParseOptions options = {
        .prompt = m->c->mode == INFER_PROMPT, .scope = &scope, .begin = m->begin};
    Diags diags = {0};
    Module *module = NULL;
    CoreItemVec items = {0};
    if (parse_module(source, &options, &diags, &module) != PARSE_OK)
        return false;
    module_checks_apart(m->c->env, module, m->c->mode, &diags, &items);
    for (size_t i = 0; i < diags.list.len;
         i++) { /* other mistakes may stay, unless a name is missing */
        const DiagInfo *info = diag_get_info(diags.list.data[i]->code);
        bool other = strncmp(info->name, "R02", 3) == 0 || strncmp(info->name, "R03", 3) == 0;
        if (info->severity == SEVERITY_ERROR && !other)
            return false;
    }
    mend->remaining = 0;
    return true;
}

bool mend_is_done(const Mender *m) {
    if (budget_is_spent(m->budget))
        return true;
    for (size_t i = 0; i < m->found.len; i++) {
        if (m->found.data[i].remaining <= m->goal || m->found.data[i].alone)
            return true;
    }
    return false;
}

static bool run_trial(Mender *m, Mend *mend) {
    int32_t at = mend_item_at(m, mend->begin);
    if (at >= 0 && m->c->module->items.data[at]->kind == ITEM_IMPORT)
        return run_import(m, mend);
    PartVerdict v = m->parts ? run_part(m, mend) : run_declaration(m, mend);
    if (v == PART_UNSURE)
        return run_whole(m, mend, false) && run_whole(m, mend, true);
    return v == PART_CHECKED;
}

bool mend_checks(Mender *m, uint32_t begin, uint32_t end, const char *text) {
    Mend mend = {.kind = MEND_REPLACE, .begin = begin, .end = end, .text = text};
    return !budget_is_spent(m->budget) && run_trial(m, &mend);
}

bool mend_try(Mender *m, MendKind kind, uint32_t begin, uint32_t end, const char *text) {
    if (budget_is_spent(m->budget) || (m->side && begin < m->side->end && end > m->side->begin))
        return false;
    if (strlen(text) == end - begin && strncmp(m->source->text + begin, text, end - begin) == 0)
        return false;
    const Symbol *key = sym_intern(fmt_text("%u %u %s", begin, end, text));
    if (map_has(&m->tried, key))
        return false;
    map_set(&m->tried, key, (void *)key);
    Mend mend = {
        .kind = kind, .begin = begin, .end = end, .text = text, .far = m->far, .alone = m->alone};
    if (!run_trial(m, &mend))
        return false;
    vec_push(&m->found, mend);
    return mend.remaining <= m->goal || mend.alone;
}

bool mend_try_token(Mender *m, MendKind kind, size_t token, const char *text) {
    const MendToken *t = &m->tokens.data[token];
    bool no_sign = strcmp(text, "0") == 0 || text[0] == '-'; /* neither -0 nor --1 */
    bool negative = no_sign && t->kind == TOK_NUMBER && token > 1 && t[-1].kind == TOK_MINUS &&
                    t[-1].end == t->begin &&
                    (t[-2].kind == TOK_EQUAL || t[-2].kind == TOK_COMMA ||
                     t[-2].kind == TOK_LPAREN || t[-2].kind == TOK_LBRACKET);
    return mend_try(m, kind, negative ? t[-1].begin : t->begin, t->end, text);
}

bool mend_try_value(Mender *m, size_t token, const char *value) {
    bool quoted = m->tokens.data[token].kind == TOK_STRING;
    return mend_try_token(m, MEND_REPLACE, token, quoted ? fmt_text("\"%s\"", value) : value);
}
