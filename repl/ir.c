/* SPDX-License-Identifier: Apache-2.0 */
/* `relay ir FILE`: the items of a file as core after passes, in Relay's text. Nothing runs. */
#include "repl/session_internal.h"
#include "types/mend/mend.h"

#include <string.h>

typedef struct IrJob {
    Session *s;
    const char *path;
    const char *const *passes;
    int npasses;
    Str *out;
    bool ok;
} IrJob;

/* Names for the values that patterns take apart, each a name of nothing else. */
static void name_hidden(Session *s, const CoreItemVec *items, Map *names) {
    Map taken = {0};
    for (size_t i = 0; i < items->len; i++)
        if (items->data[i].global)
            map_set(&taken, items->data[i].global->name, items->data[i].global);
    for (size_t i = 0; i < items->len; i++) {
        Global *g = items->data[i].global;
        if (!g || !symbol_is_hidden(g->name))
            continue;
        const char *base = core_plain_name(g->name);
        const Symbol *name = sym_intern(base);
        for (int k = 1;
             map_has(&taken, name) || env_find(s->env, name, SIGIL_NONE).kind != BIND_NONE; k++)
            name = sym_intern(fmt_text("%s_%d", base, k));
        map_set(&taken, name, g);
        map_set(names, g, (void *)name->text);
    }
}

/* `def @f(x) { … }`, `let x = …;`, `…`, and `…;` where the value is not shown. */
static void print_item(Str *out, const CoreItem *item, Expr *e, const Map *names) {
    CorePrintOptions options = {.names = names};
    Str text = {0};
    expr_print(&text, e, &options);
    const char *t = str_text(&text), *name = item->global ? map_find(names, item->global) : NULL;
    if (item->kind == CORE_DEF && strncmp(t, "fn ", 3) == 0)
        str_printf(out, "def @%s%s\n", item->global->name->text, t + 3);
    else if (item->global)
        str_printf(out, "let %s = %s;\n", name ? name : item->global->name->text, t);
    else
        str_printf(out, "%s%s\n", t, item->shown ? "" : ";");
}

static void ir_of_file(void *arg) {
    IrJob *job = arg;
    Session *s = job->s;
    Diags *diags = mem_new(Diags);
    Source *source = session_read_file(s, job->path, diags);
    const char *slash = strrchr(job->path, '/');
    ParseScope scope;
    session_parse_scope(s, &scope);
    ParseOptions options = {.scope = &scope};
    Module *module = NULL;
    CoreItemVec items = {0};
    Map printed = {0}, names = {0};
    passes_forget(&s->passes);
    vec_push(&s->folders, slash ? mem_strndup(job->path, (size_t)(slash - job->path) + 1) : "");
    if (source && parse_module(source, &options, diags, &module) == PARSE_OK &&
        mend_infer_module(s->env, module, INFER_CHECK_ONLY, diags, &items)) {
        job->ok = true;
        name_hidden(s, &items, &names);
        for (size_t i = 0; i < items.len && job->ok; i++) {
            const CoreItem *item = &items.data[i];
            Expr *e = session_core_of(item);
            if (!e)
                continue;
            session_check_core(s, item);
            e = session_run_passes(s, e, job->passes, job->npasses, diags);
            session_print_pass_notes(s, job->out);
            if (e)
                session_print_copies(s, e, job->passes, job->npasses, &printed, job->out, diags);
            if (e)
                print_item(job->out, item, e, &names);
            else
                job->ok = false;
        }
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
