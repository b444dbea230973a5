/* SPDX-License-Identifier: Apache-2.0 */
/* The prelude, read item by item when a name is first asked for.
 *
 * Reading and checking all of prelude/ takes 15 ms, which every start would pay for a handful of
 * names. So the texts are only scanned for the heads of their items (0.1 ms: an item begins at the
 * left margin), and an item is parsed, checked and bound when inference, or a derivative, first
 * looks its name up. Its definitions are annotated, so each is checked by itself, at the type it
 * declares. Measured: `relay -e '1 + 2'` 3.5 ms against 18, with 40 definitions used 6 ms.
 *
 * A serialised image of the checked prelude would save the rest, at the price of a second
 * representation of everything in the core; it is not worth that yet. tests/golden/stdlib loads
 * every item. */
#include "repl/prelude.h"

#include <stdlib.h>
#include <string.h>

#include "prelude/texts.h"

typedef enum PartKind { PART_GLOBAL, PART_RULE, PART_TYPE } PartKind;

/* One item of a prelude text. */
typedef struct Part {
    PartKind kind;
    const Symbol *name;
    const Source *source;
    uint32_t begin, end;
    bool loaded;       /* or being loaded */
    struct Part *next; /* of the same name: rules of one operator */
} Part;

struct Prelude {
    Session *session;
    Map globals, rules; /* Symbol -> Part */
    VEC(Part *) parts;
};

/* ---- heads ----------------------------------------------------------------------------------- */

typedef struct Head {
    const char *word;
    PartKind kind;
} Head;

static const Head heads[] = {
    {"def ", PART_GLOBAL},   {"derivative ", PART_RULE},    {"extern ", PART_TYPE},
    {"let ", PART_GLOBAL},   {"no_derivative ", PART_RULE}, {"operator ", PART_GLOBAL},
    {"tangent ", PART_RULE}, {"type ", PART_TYPE},
};

static const Head *head_of(const char *line, size_t len) {
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        size_t n = strlen(heads[i].word);
        if (len > n && memcmp(line, heads[i].word, n) == 0)
            return &heads[i];
    }
    return NULL;
}

static bool is_name_char(char c) {
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static void add_part(Prelude *p, const Source *source, const Head *head, uint32_t begin,
                     const char *line) {
    const char *name = line + strlen(head->word);
    name += *name == '@' || *name == '%';
    size_t n = 0;
    while (is_name_char(name[n]))
        n++;
    Part *part = mem_new(Part);
    *part = (Part){
        .kind = head->kind, .name = sym_intern_n(name, n), .source = source, .begin = begin};
    if (p->parts.len && vec_last(&p->parts)->source == source)
        vec_last(&p->parts)->end = begin;
    part->end = (uint32_t)source->len;
    vec_push(&p->parts, part);
    if (head->kind == PART_GLOBAL)
        map_set(&p->globals, part->name, part);
    if (head->kind == PART_RULE) {
        part->next = map_find(&p->rules, part->name);
        map_set(&p->rules, part->name, part);
    }
}

static void scan(Prelude *p, const Source *source) {
    uint32_t doc = UINT32_MAX; /* where the `///` lines before this one begin */
    for (uint32_t i = 0; i < source->nlines; i++) {
        uint32_t at = source->line_starts[i];
        uint32_t end = i + 1 < source->nlines ? source->line_starts[i + 1] : (uint32_t)source->len;
        const char *line = source->text + at;
        if (end - at >= 3 && memcmp(line, "///", 3) == 0) {
            doc = doc == UINT32_MAX ? at : doc;
            continue;
        }
        const Head *head = head_of(line, end - at);
        if (head)
            add_part(p, source, head, doc == UINT32_MAX ? at : doc, line);
        doc = UINT32_MAX;
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct LoadJob {
    Prelude *p;
    Part *part;
    bool ok;
} LoadJob;

static void load(void *arg) {
    LoadJob *job = arg;
    Session *s = job->p->session;
    Source *slice = mem_new(Source);
    *slice = *job->part->source;
    slice->len = job->part->end;
    Diags *diags = mem_new(Diags);
    job->ok = session_run_source(s, slice, job->part->begin, 0, INFER_FILE, false, diags) ==
              SESSION_OK;
    session_print_diags(s, diags); /* the prelude's own mistake, or a warning of it */
}

static bool load_part(Prelude *p, Part *part) {
    if (!part || part->loaded)
        return true;
    Session *s = p->session;
    LoadJob job = {p, part, false};
    Diags *before = interp_get_diags(s->interp);
    bool check_only = s->check_only;
    s->check_only = false;
    struct Namespace *here = env_enter_prelude(s->env);
    struct Namespace *types = env_copy_types(s->env);
    part->loaded = true;
    if (!session_with_stack(s, load, &job)) { /* memory ran out: try again when there is some */
        part->loaded = false;
        env_put_types_back(s->env, types);
    }
    env_leave_prelude(s->env, here);
    s->check_only = check_only;
    interp_set_diags(s->interp, before);
    return job.ok;
}

void prelude_load_global(void *ctx, const Symbol *name) {
    Session *s = ctx;
    if (s->prelude)
        load_part(s->prelude, map_find(&s->prelude->globals, name));
}

void prelude_load_rules(void *ctx, const Symbol *op) {
    Session *s = ctx;
    for (Part *part = s->prelude ? map_find(&s->prelude->rules, op) : NULL; part; part = part->next)
        load_part(s->prelude, part);
}

void prelude_each_name(void *ctx, SymbolVec *out) {
    Session *s = ctx;
    const void *key;
    void *value;
    for (size_t i = 0; s->prelude && map_next(&s->prelude->globals, &i, &key, &value);)
        vec_push(out, key);
}

KnownName prelude_find_known(Session *s, const Symbol *name) {
    Part *part = s->prelude ? map_find(&s->prelude->globals, name) : NULL;
    if (!part)
        return KNOWN_NOTHING;
    return part->source->text[part->begin] == 'l' ? KNOWN_VALUE : KNOWN_DEF;
}

bool prelude_load_all(Session *s) {
    bool ok = true;
    for (size_t i = 0; s->prelude && i < s->prelude->parts.len; i++)
        ok &= load_part(s->prelude, s->prelude->parts.data[i]);
    return ok;
}

bool prelude_open(Session *s) {
    Prelude *p = mem_new(Prelude);
    p->session = s;
    for (const EmbeddedText *t = embedded_texts; t->name; t++)
        if (strncmp(t->name, "prelude/", 8) == 0)
            scan(p, source_new(t->name, t->text, t->len, SOURCE_INTERNAL));
    s->prelude = p;
    bool ok = true;
    for (size_t i = 0; i < p->parts.len; i++) /* types are few, and literals speak of List */
        if (p->parts.data[i]->kind == PART_TYPE)
            ok &= load_part(p, p->parts.data[i]);
    return ok;
}
