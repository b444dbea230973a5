/* SPDX-License-Identifier: Apache-2.0 */
/* Searching for the changes after which a text reads and checks; mend/read.h is the manual.
 *
 * Of a long text only a window around the mistake is read for each change; the whole text is read,
 * and then checked, when its window reads. */
#include "types/mend/read.h"

#include <ctype.h>
#include <string.h>

#include "types/mend/mend.h"

enum {
    MAX_DEPTH = 8,      /* so many mistakes are mended one after the other */
    MAX_WIDTH = 3,      /* so many of the changes that lead further are followed */
    SMALL_TEXT = 20000, /* a text of so many bytes is read as a whole */
    WINDOW_ITEMS = 2,   /* a window ends so many items after the one with the mistake */
    MAX_SAID = 4,       /* so many changes are told one by one */
};

/* A text with changes. The places of the changes are those of the text as written. */
typedef struct Draft {
    const char *text;
    uint32_t len;
    SlipEdits edits;
    uint32_t stops;   /* where reading this text stops */
    const Diag *diag; /* the reader's error there; NULL: it reads */
} Draft;

typedef struct Search {
    Env *env;
    const Source *source;
    const ParseOptions *options;
    InferMode mode;
    bool expression;
    Budget *budget;
    bool checked_once;
    Map seen; /* Symbol of a draft's edits in words: each is tried once */
    Draft
        best; /* the best that checks, one without warnings if there is one; edits.len is 0 until then */
    CoreItemVec items; /* the items of the best draft */
    const Source *found;
} Search;

/* ---- windows --------------------------------------------------------------------------------- */

static bool item_begins(const char *line) {
    static const char *const words[] = {"def ",        "let ",     "type ",
                                        "import ",     "extern ",  "operator ",
                                        "derivative ", "tangent ", "no_derivative "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(line, words[i], strlen(words[i])) == 0)
            return true;
    }
    return false;
}

static void window_around(const Draft *d, uint32_t first, uint32_t *begin, uint32_t *end) {
    *begin = first;
    *end = d->len;
    if (d->len - first <= SMALL_TEXT)
        return;
    uint32_t at = d->stops < d->len ? d->stops : d->len;
    uint32_t b = at;
    while (b > first && !((b == 0 || d->text[b - 1] == '\n') && item_begins(d->text + b)))
        b--;
    int items = 0;
    for (at++; at < d->len; at++) {
        if (d->text[at - 1] == '\n' && item_begins(d->text + at) && ++items > WINDOW_ITEMS)
            break;
    }
    if (at < d->len && at - b < SMALL_TEXT) {
        *begin = b;
        *end = at;
    }
}

/* ---- reading and checking -------------------------------------------------------------------- */

/* Reads a part of the text; returns where reading stops, or UINT32_MAX when all of it reads. */
static uint32_t read_part(Search *s, const Draft *d, uint32_t begin, uint32_t end,
                          const Diag **diag, Module **module, const Source **source) {
    budget_draw(s->budget, BUDGET_READ_BYTE * (int64_t)(end - begin) + BUDGET_TRIAL);
    bool whole = end == d->len && begin == s->options->begin;
    uint32_t from = whole ? 0 : begin;
    Source *part = source_new(s->source->name, d->text + from, end - from, s->source->flags);
    ParseOptions options = *s->options;
    options.begin = whole ? s->options->begin : 0;
    Diags diags = {0};
    ParseStatus status = parse_module(part, &options, &diags, module);
    *source = part;
    for (size_t i = 0; i < diags.list.len; i++) {
        const Diag *e = diags.list.data[i];
        if (diag_get_info(e->code)->severity != SEVERITY_ERROR)
            continue;
        *diag = e;
        return from + e->primary.span.begin;
    }
    *diag = NULL;
    return status == PARSE_OK ? UINT32_MAX : end;
}

/* The same for the whole text, which is read only when the part around the mistake reads. */
static uint32_t read_draft(Search *s, Draft *d, const Draft *from, Module **module,
                           const Source **source) {
    uint32_t begin, end, first = (uint32_t)s->options->begin;
    Draft around = *d;
    around.stops = from->stops;
    window_around(&around, first, &begin, &end);
    d->stops = read_part(s, d, begin, end, &d->diag, module, source);
    if (d->stops == UINT32_MAX && (begin > first || end < d->len))
        d->stops = read_part(s, d, first, d->len, &d->diag, module, source);
    return d->stops;
}

static bool checks(Search *s, const Draft *d, const Module *module, const Source *source) {
    if (s->expression && (module->items.len != 1 || module->items.data[0]->kind != ITEM_EXPR))
        return false;
    int64_t cost = BUDGET_CHECK_BYTE * (int64_t)d->len;
    if (budget_get_left(s->budget) < cost && s->checked_once)
        return false;
    s->checked_once = true;
    budget_draw(s->budget, cost);
    CoreItemVec items = {0};
    Diags diags = {0};
    if (!module_checks_apart(s->env, module, s->mode, &diags, &items))
        return false;
    size_t warnings = diags.warnings;
    for (size_t i = 0; i < diags.list.len; i++)
        if (diags.list.data[i]->code == DIAG_R0902)
            return false; /* nobody writes a value to throw it away */
    if (warnings && s->best.edits.len)
        return false;
    s->best = *d;
    s->items = items;
    s->found = source;
    return !warnings;
}

/* ---- changes of changed texts ---------------------------------------------------------------- */

/* Translates a place in the draft to one in the text as written. False when it is inside of text that a change
 * put there. after: where text was left out, the place is behind it. */
static bool to_written(const Draft *d, uint32_t at, bool after, uint32_t *out) {
    int64_t shift = 0;
    for (size_t i = 0; i < d->edits.len; i++) {
        const SlipEdit *e = &d->edits.data[i];
        int64_t begin = (int64_t)e->begin + shift, n = (int64_t)strlen(e->text);
        if (at < begin || (at == begin && !(after && !n)))
            break;
        if (at < begin + n)
            return false;
        shift += n - (int64_t)(e->end - e->begin);
    }
    *out = (uint32_t)(at - shift);
    return true;
}

static bool add_edit(Draft *d, SlipEdit e) {
    size_t i = d->edits.len;
    SlipEdit none = {0};
    vec_push(&d->edits, none);
    while (i > 0 && d->edits.data[i - 1].begin > e.begin) {
        d->edits.data[i] = d->edits.data[i - 1];
        i--;
    }
    d->edits.data[i] = e;
    if (i > 0 && d->edits.data[i - 1].end > e.begin)
        return false;
    return i + 1 == d->edits.len || e.end <= d->edits.data[i + 1].begin;
}

/* Writes the text of a draft: the text as written with the draft's edits. */
static void write_draft(const Search *s, Draft *d) {
    Str text = {0};
    uint32_t at = 0;
    for (size_t i = 0; i < d->edits.len; i++) {
        const SlipEdit *e = &d->edits.data[i];
        str_add_n(&text, s->source->text + at, e->begin - at);
        str_add(&text, e->text);
        at = e->end;
    }
    str_add_n(&text, s->source->text + at, s->source->len - at);
    d->text = str_text(&text);
    d->len = (uint32_t)text.len;
}

static bool change(const Search *s, const Draft *from, const SlipEdits *edits, uint32_t offset,
                   Draft *out) {
    *out = (Draft){0};
    for (size_t i = 0; i < from->edits.len; i++)
        vec_push(&out->edits, from->edits.data[i]);
    for (size_t i = 0; i < edits->len; i++) {
        SlipEdit e = edits->data[i];
        uint32_t begin = e.begin + offset, end = e.end + offset;
        if (!to_written(from, begin, end > begin, &e.begin) ||
            !to_written(from, end, false, &e.end))
            return false;
        if (e.begin < s->options->begin || !add_edit(out, e))
            return false;
    }
    write_draft(s, out);
    return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Reads the tokens of a window, mistakes of the lexer included. */
static void read_tokens(SlipText *t, const Source *source, bool versioned) {
    Module scratch = {.source = source};
    Lexer lex;
    lexer_init(&lex, source, &scratch);
    lex.versioned = versioned;
    VEC(int32_t) stack = {0};
    for (uint32_t at = 0;;) {
        Token k;
        lexer_read(&lex, at, &k);
        if (k.kind == TOK_EOF)
            return;
        at = k.end > at ? k.end : at + 1;
        SlipToken n = {.kind = k.kind,
                       .word = k.word,
                       .begin = k.begin,
                       .end = at,
                       .partner = -1,
                       .depth = (uint32_t)stack.len,
                       .line = k.break_before || !k.begin};
        int32_t here = (int32_t)t->tokens.len;
        bool closes = k.kind == TOK_RPAREN || k.kind == TOK_RBRACKET || k.kind == TOK_RBRACE;
        if (closes && stack.len) {
            TokenKind open = t->tokens.data[vec_last(&stack)].kind;
            if ((int)k.kind - (int)open ==
                1) { /* a bracket's kind is followed by that of its partner */
                n.partner = vec_pop(&stack);
                t->tokens.data[n.partner].partner = here;
                n.depth = (uint32_t)stack.len;
            }
        }
        vec_push(&t->tokens, n);
        if (k.kind == TOK_LPAREN || k.kind == TOK_LBRACKET || k.kind == TOK_LBRACE)
            vec_push(&stack, here);
    }
}

static void propose(Search *s, const Draft *d, SlipChanges *out, uint32_t *offset) {
    uint32_t begin, end;
    window_around(d, (uint32_t)s->options->begin, &begin, &end);
    Source *part = source_new("", d->text + begin, end - begin, 0);
    SlipText t = {.text = part->text, .len = end - begin, .diag = d->diag};
    read_tokens(&t, part, false);
    uint32_t at = d->stops - begin;
    while (t.at < t.tokens.len && t.tokens.data[t.at].end <= at)
        t.at++;
    slips_propose(&t, out);
    *offset = begin;
}

/* Whether b stops further on than a does, by the text as written. */
static bool is_further(const Draft *a, const Draft *b) {
    uint32_t x, y;
    if (!to_written(a, a->stops, true, &x))
        return false;
    return to_written(b, b->stops, true, &y) && y > x;
}

static bool is_new(Search *s, const Draft *d) {
    Str key = {0};
    for (size_t i = 0; i < d->edits.len; i++)
        str_printf(&key, "%u %u %s\n", d->edits.data[i].begin, d->edits.data[i].end,
                   d->edits.data[i].text);
    const Symbol *symbol = sym_intern(str_text(&key));
    if (map_has(&s->seen, symbol))
        return false;
    map_set(&s->seen, symbol, (void *)symbol);
    return true;
}

static bool search(Search *s, const Draft *from, int depth) {
    SlipChanges changes = {0};
    uint32_t offset;
    propose(s, from, &changes, &offset);
    VEC(Draft) further = {0};
    for (size_t i = 0; i < changes.len && !budget_is_spent(s->budget); i++) {
        Draft d;
        budget_draw(s->budget, s->source->len / 8 + 1); /* writing the text of the draft */
        if (!change(s, from, &changes.data[i], offset, &d) || !is_new(s, &d))
            continue;
        Module *module;
        const Source *source;
        if (read_draft(s, &d, from, &module, &source) != UINT32_MAX) {
            if (is_further(from, &d))
                vec_push(&further, d);
            continue;
        }
        if (checks(s, &d, module, source))
            return true;
    }
    if (s->best.edits.len)
        return true;
    if (depth == MAX_DEPTH)
        return false;
    for (int k = 0; k < MAX_WIDTH && !budget_is_spent(s->budget);
         k++) { /* first the drafts that read furthest */
        size_t best = 0;
        for (size_t i = 1; i < further.len; i++) {
            if (is_further(&further.data[best], &further.data[i]))
                best = i;
        }
        if (best >= further.len)
            return false;
        Draft d = further.data[best];
        for (size_t i = best + 1; i < further.len; i++)
            further.data[i - 1] = further.data[i];
        further.len--;
        if (search(s, &d, depth + 1))
            return true;
    }
    return false;
}

/* ---- saying so ------------------------------------------------------------------------------- */

static const char *written(const Search *s, const SlipEdit *e) {
    return mem_strndup(s->source->text + e->begin, e->end - e->begin);
}

static bool is_one_line(const char *text) { return !strchr(text, '\n'); }

static const char *trimmed(const char *text) {
    while (*text == ' ' || *text == '\n')
        text++;
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\n'))
        n--;
    return mem_strndup(text, n);
}

static const char *edit_words(const Search *s, const SlipEdit *e) {
    const char *old = written(s, e), *now = trimmed(e->text);
    if (e->end > e->begin && e->text[0])
        return fmt_text("with `%s` in place of `%s`", now, old);
    if (e->text[0]) {
        uint32_t end = e->begin, begin;
        while (end > 0 && strchr(" \n\t", s->source->text[end - 1]))
            end--;
        for (begin = end; begin > 0 && !strchr(" \n\t([{,;", s->source->text[begin - 1]);)
            begin--;
        if (begin == end && begin > 0)
            begin--;
        const char *after = mem_strndup(s->source->text + begin, end - begin);
        if (end == begin || end - begin > 40)
            return fmt_text("with `%s`", now);
        return fmt_text("with `%s` after `%s`", now, after);
    }
    return fmt_text("without `%s`", trimmed(old));
}

/* The line with the changes, if they are on one line that is not too long; else NULL. */
static const char *changed_line(const Search *s) {
    enum { LONGEST = 70 };
    const SlipEdits *edits = &s->best.edits;
    uint32_t begin = edits->data[0].begin, end = vec_last(edits).end;
    while (begin > 0 && s->source->text[begin - 1] != '\n')
        begin--;
    while (end < s->source->len && s->source->text[end] != '\n')
        end++;
    size_t tail = s->source->len - end;
    const char *text = mem_strndup(s->best.text + begin, s->best.len - tail - begin);
    while (*text == ' ')
        text++;
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ')
        n--;
    return n && n <= LONGEST && is_one_line(text) ? mem_strndup(text, n) : NULL;
}

static const char *say(Search *s, const char **type) {
    const SlipEdits *edits = &s->best.edits;
    const SlipEdit *first = &edits->data[0];
    bool same = true;
    for (size_t i = 1; i < edits->len; i++)
        same &= strcmp(edits->data[i].text, first->text) == 0 &&
                strcmp(written(s, &edits->data[i]), written(s, first)) == 0;
    if (edits->len == 1) {
        Mend mend = {.begin = first->begin, .end = first->end, .text = first->text};
        mend_describe(&s->items, s->found, &mend, first->begin,
                      first->begin + (uint32_t)strlen(first->text));
        *type = mend.type;
        if (mend.snippet)
            return fmt_text("`%s` checks%s%s", mend.snippet, mend.type ? ", with type " : "",
                            mend.type ? mend.type : "");
    }
    const char *line = changed_line(s);
    bool word = isalpha((unsigned char)first->text[0]);
    if (line && (edits->len > 1 || word || strlen(first->text) > 6))
        return fmt_text("`%s` checks", line);
    if (edits->len > 1 && same)
        return fmt_text("%s, in %zu places, this checks", edit_words(s, first), edits->len);
    Str text = {0};
    size_t n = edits->len > MAX_SAID + 1 ? MAX_SAID : edits->len;
    for (size_t i = 0; i < n; i++) {
        const char *words = edit_words(s, &edits->data[i]);
        if (!is_one_line(words))
            return fmt_text("with %zu changes this checks", edits->len);
        str_printf(&text, "%s%s", i == 0 ? "" : i + 1 == edits->len ? " and " : ", ", words);
    }
    if (n < edits->len)
        str_printf(&text, " and %zu more changes", edits->len - n);
    return fmt_text("%s this checks", str_text(&text));
}

/* Drops the reader's other errors when one change mends the text: they come of the same mistake. */
static void drop_consequences(Diags *diags, size_t kept) {
    size_t n = kept + 1;
    for (size_t i = n; i < diags->list.len; i++) {
        Diag *d = diags->list.data[i];
        if (diag_get_info(d->code)->severity == SEVERITY_ERROR)
            diags->errors--;
        else
            diags->list.data[n++] = d;
    }
    diags->list.len = n;
}

/* Tries the one fix that came with the reader's error; what does not check is no fix. */
static bool verify_fix(Search *s, const Draft *as_written, Diags *diags, size_t first) {
    Diag *d = diags->list.data[first];
    DiagFix *fix = d->fixes.data[0];
    Draft all = {0};
    Module *module;
    const Source *source;
    for (size_t i = 0; i < fix->edits.len; i++) {
        const DiagEdit *e = &fix->edits.data[i];
        add_edit(&all, (SlipEdit){e->span.begin, e->span.end, e->text});
    }
    write_draft(s, &all);
    d->fixes.len = 0;
    if (read_draft(s, &all, as_written, &module, &source) == UINT32_MAX)
        checks(s, &all, module, source);
    if (!s->best.edits.len)
        return false;
    const char *type = NULL;
    fix->message = say(s, &type);
    fix->type = type ? type : "";
    vec_push(&d->fixes, fix);
    d->helps.len = 0;
    return true;
}

void mend_reading(Env *env, const Source *source, const ParseOptions *options, InferMode mode,
                  bool expression, Diags *diags, size_t first) {
    if (env->no_mending || (source->flags & SOURCE_INTERNAL))
        return;
    while (first < diags->list.len &&
           diag_get_info(diags->list.data[first]->code)->severity != SEVERITY_ERROR)
        first++;
    if (first == diags->list.len)
        return;
    Diag *d = diags->list.data[first];
    bool line_end = d->cause == DIAG_CAUSE_LINE_END;
    if (d->primary.span.source != source || (d->fixes.len && !line_end))
        return;
    if (d->code == DIAG_R0019 || d->cause == DIAG_CAUSE_COMMAND)
        return; /* a statement of other languages is not mended by changing words, nor a command */
    Search s = {.env = env,
                .source = source,
                .options = options,
                .mode = mode,
                .expression = expression,
                .budget = &env->budget};
    Draft as_written = {.text = source->text,
                        .len = (uint32_t)source->len,
                        .stops = d->primary.span.begin,
                        .diag = d};
    if (line_end && verify_fix(&s, &as_written, diags, first))
        return;
    if (!search(&s, &as_written, 1))
        return;
    const char *type = NULL, *text = say(&s, &type);
    const SlipEdits *edits = &s.best.edits;
    Span place = {source, edits->data[0].begin, edits->data[0].end};
    DiagFix *fix = diag_add_fix(d, place, edits->data[0].text, type, "%s", text);
    for (size_t i = 1; i < edits->len; i++) {
        const SlipEdit *e = &edits->data[i];
        vec_push(&fix->edits, ((DiagEdit){{source, e->begin, e->end}, e->text}));
    }
    d->helps.len = 0; /* the suggestion says it better */
    if (edits->len == 1)
        drop_consequences(diags, first);
}
