/* SPDX-License-Identifier: Apache-2.0 */
/* `relay ir FILE` and `:ir EXPR`: core after passes, in Relay's text; with --why, and `:why EXPR`, what the passes did.
 * Nothing runs.
 *
 * What `relay ir --opt=2` prints is a program: read back with --as-written, it executes the same instructions
 * (tests/property/counts.py). Where it has a part that no program can say, such as what a derivative does with
 * cotangents (`ad.settle`), it is for people alone. `:ir` leaves types of parameters out, to be short.
 *
 * The functions that passes make, the copies of `specialise` and the code of `derive`, are printed before what first
 * calls them, each after the same passes. No program can say their names, so each gets one that nothing else has. */
#include "eval/code.h"
#include "eval/plan_text.h"
#include "passes/inline.h"
#include "passes/vmap.h"
#include "repl/session_internal.h"
#include "types/mend/mend.h"

#include <string.h>

void session_no_such_pass(Diags *diags, const char *name) {
    Diag *d = diag_error(diags, DIAG_R0101, span_none(), "there is no pass `%s`", name);
    Str names = {0};
    for (size_t i = 0; i < pass_count(); i++)
        str_printf(&names, "%s%s", i ? ", " : "", pass_at(i)->name);
    diag_add_fact(d, "passes: %s", str_text(&names));
}

/* The passes by name, with `plan` as the last; `plan` alone follows those that code goes through. None: those of the
 * level that was asked for, else what `:ir` shows by default, where a derivative without calls is written out as the
 * thesis does. */
static bool find_passes(Session *s, const char *const *names, int n, PassVec *out, bool *plan,
                        Diags *diags) {
    *plan = n > 0 && strcmp(names[n - 1], "plan") == 0;
    if (*plan && --n == 0) { /* what really runs */
        opt_passes(&s->options.opt, out);
        return true;
    }
    for (int i = 0; i < n; i++) {
        const Pass *pass = pass_find(names[i]);
        if (!pass) {
            session_no_such_pass(diags, names[i]);
            return false;
        }
        vec_push(out, pass);
    }
    int level = s->options.opt.at_once ? s->options.opt.level : 2;
    for (size_t i = 0; !n && i < pass_count(); i++) {
        const Pass *pass = pass_at(i);
        if (pass->level ? pass->level <= level : !s->options.opt.at_once)
            vec_push(out, pass);
    }
    return true;
}

/* As code goes through them. */
static Expr *run_passes(Session *s, Expr *e, const PassVec *passes, const Symbol *name) {
    DependencyVec deps = {0};
    VarVec captured = {0};
    expr_free_vars(e, &captured);
    return optimise_by(&s->passes, passes, e, name, &captured, &deps);
}

/* A function literal that stays in a function becomes code of its own, and goes through the passes again when it first
 * runs. */
typedef struct Inner {
    Session *s;
    const PassVec *passes;
    Map done; /* Expr -> what it became */
} Inner;

static Expr *optimise_inner(void *ctx, Expr *e) {
    Inner *in = ctx;
    Expr *known = map_find(&in->done, e), *after = e;
    if (known)
        return known;
    if (e->kind == EXPR_FN)
        after = run_passes(in->s, e, in->passes, e->fn->name);
    after = after->kind == EXPR_LET ? expr_map_block(after, optimise_inner, in)
                                    : expr_map_children(after, optimise_inner, in);
    map_set(&in->done, e, after);
    return after;
}

static Expr *optimise_all(Session *s, Expr *e, const PassVec *passes, const Symbol *name) {
    Inner in = {.s = s, .passes = passes};
    e = run_passes(s, e, passes, name);
    if (!e || e->kind == EXPR_LET)
        return e ? expr_map_block(e, optimise_inner, &in) : NULL;
    return expr_map_children(e, optimise_inner, &in);
}

/* What is being printed. */
typedef struct Ir {
    Session *s;
    PassVec passes;
    bool plan; /* after them: how it runs */
    Str *out;
    Map names;    /* Global -> its name in the text */
    Map taken;    /* Symbol -> the Global that has the name */
    Map printed;  /* the functions that passes made */
    bool is_file; /* a program to be read back: with types of parameters, and whole constants */
} Ir;

static CorePrintOptions print_options(const Ir *ir) {
    return (CorePrintOptions){
        .names = &ir->names, .param_types = ir->is_file, .whole = ir->is_file};
}

/* After the passes, as it runs; at the prompt the functions inside stand as the passes over the whole leave them, and a
 * derivative is shown as the code that the run makes of it. */
static Expr *optimise_of(Ir *ir, Expr *e, const Symbol *name) {
    ir->s->passes.derives_values = !ir->is_file && e->kind == EXPR_GRAD;
    Expr *made = ir->is_file ? optimise_all(ir->s, e, &ir->passes, name)
                             : run_passes(ir->s, e, &ir->passes, name);
    ir->s->passes.derives_values = false;
    return ir->plan && made ? plan_text(ir->s->interp, made) : made;
}

static void print_notes(Ir *ir) {
    for (size_t i = 0; i < ir->s->passes.notes.len; i++)
        str_printf(ir->out, "// %s\n", ir->s->passes.notes.data[i]);
    vec_clear(&ir->s->passes.notes);
}

static void give_name(Ir *ir, Global *g, const char *base) {
    const Symbol *name = sym_intern(base);
    for (int k = 1;
         map_has(&ir->taken, name) || env_find(ir->s->env, name, SIGIL_NONE).kind != BIND_NONE; k++)
        name = sym_intern(fmt_text("%s_%d", base, k));
    map_set(&ir->taken, name, g);
    map_set(&ir->names, g, (void *)name->text);
}

static void print_indented(Str *out, const char *text) {
    for (; *text; text++) {
        str_add_char(out, *text);
        if (*text == '\n')
            str_add(out, "  ");
    }
}

/* `def @f(x) { … }`, `let x = …;`, `…`, and `…;` where the value is not shown. */
static void print_global(Ir *ir, const Global *g, bool is_def, Expr *e) {
    CorePrintOptions options = print_options(ir);
    Str text = {0};
    expr_print(&text, e, &options);
    const char *t = str_text(&text), *name = map_find(&ir->names, g);
    name = name ? name : g->name->text;
    if (is_def && strncmp(t, "fn ", 3) == 0) {
        str_printf(ir->out, "def @%s%s\n", name, t + 3);
    } else if (e->kind == EXPR_LET) {
        str_printf(ir->out, "let %s = {\n  ", name);
        print_indented(ir->out, t);
        str_add(ir->out, "\n};\n");
    } else {
        str_printf(ir->out, "let %s = %s;\n", name, t);
    }
}

/* A block stands in braces: its bindings are no items. */
static void print_value(Ir *ir, Expr *e) {
    CorePrintOptions options = print_options(ir);
    if (e->kind != EXPR_LET) {
        expr_print(ir->out, e, &options);
        return;
    }
    Str text = {0};
    expr_print(&text, e, &options);
    str_add(ir->out, "{\n  ");
    print_indented(ir->out, str_text(&text));
    str_add(ir->out, "\n}");
}

/* ---- functions that passes made --------------------------------------------------------------- */

typedef struct MadeVec {
    Ir *ir;
    Map seen;
    VEC(Global *) found;
} MadeVec;

static void find_made(void *ctx, Expr *e) {
    MadeVec *m = ctx;
    for (; !map_has(&m->seen, e); e = e->body) {
        map_set(&m->seen, e, e);
        if (e->kind != EXPR_LET)
            break;
        find_made(m, e->a);
    }
    if (e->kind == EXPR_GLOBAL && e->global->is_made && !map_has(&m->ir->printed, e->global)) {
        map_set(&m->ir->printed, e->global, e->global);
        vec_push(&m->found, e->global);
    }
    if (e->kind != EXPR_LET)
        expr_each_child(e, find_made, m);
}

/* `total.fwd` as `total_fwd`. */
static const char *plain_name(const Symbol *name) {
    char *text = mem_strndup(name->text, name->len);
    for (char *p = text; *p; p++)
        if (*p == '.')
            *p = '_';
    return text;
}

static void print_made(Ir *ir, Expr *e) {
    MadeVec m = {.ir = ir};
    VEC(Expr *) values = {0};
    find_made(&m, e);
    for (size_t i = 0; i < m.found.len; i++) {
        Global *g = m.found.data[i];
        give_name(ir, g, plain_name(g->name));
        vec_push(&values, optimise_of(ir, g->value, g->name));
        find_made(&m, vec_last(&values));
    }
    print_notes(ir);
    for (size_t i = 0; i < m.found.len; i++)
        print_global(ir, m.found.data[i], true, values.data[i]);
}

/* ---- files ------------------------------------------------------------------------------------ */

typedef struct IrJob {
    Session *s;
    const char *path;
    const char *const *passes;
    int npasses;
    Str *out;
    bool ok;
} IrJob;

/* Names for the values that patterns take apart, each a name of nothing else. */
static void name_hidden(Ir *ir, const CoreItemVec *items) {
    for (size_t i = 0; i < items->len; i++)
        if (items->data[i].global)
            map_set(&ir->taken, items->data[i].global->name, items->data[i].global);
    for (size_t i = 0; i < items->len; i++) {
        Global *g = items->data[i].global;
        if (g && symbol_is_hidden(g->name))
            give_name(ir, g, core_plain_name(g->name));
    }
}

/* What has no core stands as it was written: types, imports, derivatives of operators. */
static void print_declaration(Ir *ir, const Item *item) {
    if (item && item->span.source)
        str_printf(ir->out, "%.*s\n", (int)(item->span.end - item->span.begin),
                   item->span.source->text + item->span.begin);
}

static void print_item(Ir *ir, const CoreItem *item) {
    Expr *e = session_core_of(item);
    if (!e) {
        print_declaration(ir, item->item);
        return;
    }
    session_check_core(ir->s, item);
    e = optimise_of(ir, e, item->global ? item->global->name : NULL);
    print_made(ir, e);
    if (item->global) {
        print_global(ir, item->global, item->kind == CORE_DEF, e);
        return;
    }
    print_value(ir, e);
    str_add(ir->out, item->shown ? "\n" : ";\n");
}

/* The items of a file, checked; false: a diagnostic was made. */
static bool read_items(Session *s, const char *path, Diags *diags, Source **source,
                       CoreItemVec *items) {
    ParseScope scope;
    session_parse_scope(s, &scope);
    ParseOptions options = {.scope = &scope};
    Module *module = NULL;
    *source = session_read_file(s, path, diags);
    return *source && parse_module(*source, &options, diags, &module) == PARSE_OK &&
           mend_infer_module(s->env, module, INFER_CHECK_ONLY, diags, items);
}

/* Modules that the file imports are looked for beside it. */
static void enter_folder_of(Session *s, const char *path) {
    const char *slash = strrchr(path, '/');
    vec_push(&s->folders, slash ? mem_strndup(path, (size_t)(slash - path) + 1) : "");
}

static void ir_of_file(void *arg) {
    IrJob *job = arg;
    Session *s = job->s;
    Diags *diags = mem_new(Diags);
    Source *source;
    CoreItemVec items = {0};
    Ir ir = {.s = s, .out = job->out, .is_file = true};
    passes_forget(&s->passes);
    vec_clear(&s->passes.notes);
    s->passes.diags = diags;
    enter_folder_of(s, job->path);
    if (read_items(s, job->path, diags, &source, &items) &&
        find_passes(s, job->passes, job->npasses, &ir.passes, &ir.plan, diags)) {
        if (ir.plan)
            str_add(ir.out, "import memory;\n");
        name_hidden(&ir, &items);
        for (size_t i = 0; i < items.len; i++)
            print_item(&ir, &items.data[i]);
        job->ok = true;
    }
    s->folders.len--;
    session_print_diags(s, diags);
}

bool session_ir_file(Session *s, const char *path, const char *const *passes, int npasses,
                     Str *out) {
    IrJob job = {s, path, passes, npasses, out, false};
    env_begin_run(s->env);
    return session_with_stack(s, ir_of_file, &job) && job.ok;
}

/* ---- expressions ------------------------------------------------------------------------------ */

bool session_print_ir(Session *s, Expr *e, const char *const *passes, int npasses, Str *out,
                      Diags *diags) {
    Ir ir = {.s = s, .out = out};
    passes_forget(&s->passes);
    vec_clear(&s->passes.notes);
    s->passes.diags = diags;
    if (!find_passes(s, passes, npasses, &ir.passes, &ir.plan, diags))
        return false;
    e = optimise_of(&ir, e, NULL);
    print_made(&ir, e);
    CorePrintOptions options = print_options(&ir);
    expr_print(out, e, &options);
    str_add_char(out, '\n');
    return true;
}

/* ---- what passes did -------------------------------------------------------------------------- */

static bool was_told(const TellingVec *all, size_t i) {
    for (size_t k = 0; k < i; k++) {
        const Telling *a = &all->data[k], *b = &all->data[i];
        if (a->span.source == b->span.source && a->span.begin == b->span.begin &&
            strcmp(a->text, b->text) == 0)
            return true;
    }
    return false;
}

/* What was told of the user's own text, each once: `3:7 inline put `f` in place of its call`. */
static void print_tellings(Str *out, const TellingVec *all, TellingKind kind) {
    for (size_t i = 0; i < all->len; i++) {
        const Telling *t = &all->data[i];
        uint32_t line, column;
        bool is_own = t->span.source && !(t->span.source->flags & SOURCE_INTERNAL);
        if (t->kind != kind || !is_own || was_told(all, i))
            continue;
        span_locate(t->span, &line, &column);
        str_printf(out, "%s:%u:%u: %s %s\n", t->span.source->name, line, column, t->pass, t->text);
    }
}

#define NOTHING_TOLD "the passes found nothing to do, and left no call\n"

/* What `:why e` prints, without the last word where there is nothing to tell. */
static bool tell_why(Session *s, Expr *e, Str *out, Diags *diags) {
    TellingVec tellings = {0};
    Str ir = {0};
    VEC(const char *) names = {0}; /* of those that code goes through */
    int most;
    if (code_is_left(e, &most)) {
        str_printf(out, "the passes leave a function of more than %d nodes as it is\n", most);
        return true;
    }
    for (size_t i = 0; i < pass_count(); i++)
        if (pass_at(i)->level && pass_at(i)->level <= s->options.opt.level)
            vec_push(&names, pass_at(i)->name);
    s->passes.tellings = &tellings;
    bool ok = session_print_ir(s, e, names.data, (int)names.len, &ir, diags);
    vmap_tell(&s->passes, e);
    s->passes.tellings = NULL;
    print_tellings(out, &tellings, TOLD_DONE);
    print_tellings(out, &tellings, TOLD_LEFT);
    for (const char *line = str_text(&ir); strncmp(line, "// ", 3) == 0;
         line = strchr(line, '\n') + 1)
        str_printf(out, "%.*s\n", (int)(strchr(line, '\n') - line - 3), line + 3);
    return ok;
}

bool session_print_why(Session *s, Expr *e, Str *out, Diags *diags) {
    bool ok = tell_why(s, e, out, diags);
    if (ok && !out->len)
        str_add(out, NOTHING_TOLD);
    return ok;
}

/* Under the name of the definition, or the line of a value, what was done with it; nothing where that is nothing. */
static bool why_of_item(Session *s, const Source *source, const CoreItem *item, Str *out,
                        Diags *diags) {
    Expr *e = session_core_of(item);
    Str text = {0};
    uint32_t line = 0, column;
    if (!e)
        return true;
    if (!tell_why(s, e, &text, diags))
        return false;
    if (!text.len)
        return true;
    if (item->global && !symbol_is_hidden(item->global->name)) {
        str_printf(out, "%s:\n  ", item->global->name->text);
    } else {
        span_locate(e->span, &line, &column);
        str_printf(out, "%s:%u:\n  ", source->name, line);
    }
    print_indented(out, mem_strndup(str_text(&text), text.len - 1));
    str_add_char(out, '\n');
    return true;
}

static void why_of_file(void *arg) {
    IrJob *job = arg;
    Session *s = job->s;
    Diags *diags = mem_new(Diags);
    Source *source;
    CoreItemVec items = {0};
    enter_folder_of(s, job->path);
    job->ok = read_items(s, job->path, diags, &source, &items);
    for (size_t i = 0; i < items.len && job->ok; i++)
        job->ok = why_of_item(s, source, &items.data[i], job->out, diags);
    if (job->ok && !job->out->len)
        str_printf(job->out, "%s: " NOTHING_TOLD, source->name);
    s->folders.len--;
    session_print_diags(s, diags);
}

bool session_why_file(Session *s, const char *path, Str *out) {
    IrJob job = {.s = s, .path = path, .out = out};
    env_begin_run(s->env);
    return session_with_stack(s, why_of_file, &job) && job.ok;
}
