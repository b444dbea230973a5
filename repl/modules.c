/* SPDX-License-Identifier: Apache-2.0 */
/* Where names come from outside a text: the prelude, and imports.
 *
 * A module is looked for beside the importing file, in RELAY_PATH, in the stdlib directory
 * (--stdlib's option, RELAY_STDLIB, else as installed), and last among the embedded texts. Each runs
 * once a session and shows nothing; a cycle is an error that lists it. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/file_header.h"
#include "interchange/translate.h"
#include "prelude/texts.h"
#include "repl/session_internal.h"

enum { MAX_SOURCE_BYTES = 1 << 30 };

static const EmbeddedText *find_embedded(const char *name) {
    for (const EmbeddedText *t = embedded_texts; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* A system call that a signal cut short is done again, but after Ctrl-C. */
static bool again(const Session *s) { return errno == EINTR && !*interp_interrupt_flag(s->interp); }

Source *session_read_file(Session *s, const char *path, Diags *diags) {
    struct stat st;
    const char *why = NULL;
    bool standard = strcmp(path, "-") == 0;
    FILE *f;
    do
        f = standard ? stdin : fopen(path, "rb");
    while (!f && again(s));
    if (standard)
        path = "stdin";
    if (!f || fstat(fileno(f), &st) != 0)
        why = strerror(errno);
    else if (S_ISDIR(st.st_mode))
        why = "it is a directory";
    else if (S_ISREG(st.st_mode) && st.st_size > MAX_SOURCE_BYTES)
        why = "it is larger than 1 GB";
    Str text = {0};
    char buffer[1 << 16];
    while (!why) {
        size_t n = fread(buffer, 1, sizeof buffer, f);
        str_add_n(&text, buffer, n);
        if (text.len > MAX_SOURCE_BYTES)
            why = "it is larger than 1 GB";
        else if (n == sizeof buffer)
            continue;
        else if (!ferror(f))
            break;
        else if (!again(s))
            why = strerror(errno);
        clearerr(f);
    }
    if (f && !standard)
        fclose(f);
    if (why && *interp_interrupt_flag(s->interp))
        return NULL;
    if (why) {
        diag_error(diags, DIAG_R0501, span_none(), "cannot read `%s`: %s", path, why);
        return NULL;
    }
    return source_new(mem_strdup(path), str_text(&text), text.len, 0);
}

/* Whether a line of the program saves to the path before that is quoted there: then the file is another one
 * when the program runs. */
static bool saves_to(const Source *source, const char *path) {
    const char *quoted = fmt_text("\"%s\"", path), *text = source->text;
    for (const char *at = text; (at = strstr(at, quoted)); at++) {
        const char *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        const char *save = strstr(line, "save");
        if (save && save < at)
            return true;
    }
    return false;
}

bool session_read_header(void *ctx, const Source *source, const char *path, FileHeader *out) {
    Session *s = ctx;
    const char *folder = s->folders.len ? vec_last(&s->folders) : "";
    return !s->options.no_files && !(source && saves_to(source, path)) &&
           file_read_header(path, folder, out);
}

/* ---- imports --------------------------------------------------------------------------------- */

static bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The path of `file` in one of the folders it is looked for in, or NULL; *library: it is the standard
 * library's. */
static const char *find_file(Session *s, const char *file, bool *library) {
    *library = false;
    if (file[0] == '/')
        return file_exists(file) ? file : NULL;
    const char *here = s->folders.len ? vec_last(&s->folders) : "";
    const char *path = fmt_text("%s%s", here, file);
    if (file_exists(path))
        return path;
    for (const char *p = getenv("RELAY_PATH"); p && *p;) {
        size_t n = strcspn(p, ":");
        path = fmt_text("%.*s/%s", (int)n, p, file);
        if (n && file_exists(path))
            return path;
        p += n + (p[n] == ':');
    }
    const char *stdlib = s->options.stdlib ? s->options.stdlib : getenv("RELAY_STDLIB");
    if (stdlib) {
        path = fmt_text("%s/%s", stdlib, file);
        *library = file_exists(path);
        if (*library)
            return path;
    }
    return NULL;
}

static void add_module(SymbolVec *out, const char *file) {
    size_t n = strlen(file);
    if (n > 4 && strcmp(file + n - 4, ".rly") == 0)
        vec_push(out, sym_intern_n(file, n - 4));
}

static void add_folder(SymbolVec *out, const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        add_module(out, e->d_name);
    if (d)
        closedir(d);
}

void session_each_module(void *ctx, SymbolVec *out) {
    Session *s = ctx;
    for (const EmbeddedText *t = embedded_texts; t->name; t++)
        if (strncmp(t->name, "stdlib/", 7) == 0)
            add_module(out, t->name + 7);
    const char *here = s->folders.len ? vec_last(&s->folders) : "";
    add_folder(out, here[0] ? here : ".");
    for (const char *p = getenv("RELAY_PATH"); p && *p;) {
        size_t n = strcspn(p, ":");
        if (n)
            add_folder(out, mem_strndup(p, n));
        p += n + (p[n] == ':');
    }
    const char *stdlib = s->options.stdlib ? s->options.stdlib : getenv("RELAY_STDLIB");
    if (stdlib)
        add_folder(out, stdlib);
}

static Loaded *find_loaded(Session *s, const char *name) {
    for (size_t i = 0; i < s->loaded.len; i++)
        if (strcmp(s->loaded.data[i]->name, name) == 0)
            return s->loaded.data[i];
    return NULL;
}

static void report_cycle(Session *s, const Item *item, const char *name, Diags *diags) {
    Str chain = {0};
    bool on = false;
    for (size_t i = 0; i < s->loaded.len; i++) {
        Loaded *l = s->loaded.data[i];
        on |= strcmp(l->name, name) == 0;
        if (on && l->running)
            str_printf(&chain, "`%s` imports ", l->name);
    }
    str_printf(&chain, "`%s`", name);
    Diag *d = diag_error(diags, DIAG_R0119, item->span, "these imports form a cycle");
    diag_add_fact(d, "%s", str_text(&chain));
}

/* A model is read as the program that it is translated to. The source keeps the model's name, so that messages
 * speak of the file; each line of it says which node it comes from. */
static Source *translate_model(Session *s, Source *source, Span at, Diags *diags) {
    if (!source)
        return NULL;
    size_t n = strlen(source->name);
    bool named = n > 5 && strcmp(source->name + n - 5, ".onnx") == 0;
    if (!named && !onnx_is_model((const unsigned char *)source->text, source->len))
        return source;
    OnnxProgram program = {0};
    OnnxModel *model = onnx_read(source->name, (const unsigned char *)source->text, source->len, at,
                                 diags);
    if (!model || !onnx_translate(model, source->name, s->known_inputs, diags, &program))
        return NULL;
    return source_new(source->name, str_text(&program.text), program.text.len, 0);
}

typedef struct ModuleJob {
    Session *s;
    Source *source;
    Diags *diags;
    bool ok;
} ModuleJob;

static void run_module(void *arg) {
    ModuleJob *job = arg;
    job->ok = session_run_source(job->s, job->source, 0, 0, INFER_FILE, false, job->diags) ==
              SESSION_OK;
}

void session_trial(void *ctx, bool begin) {
    Session *s = ctx;
    if (begin) {
        s->before_trial = s->loaded.len;
        s->was_check_only = s->check_only;
        s->check_only = true;
    } else {
        s->loaded.len = s->before_trial;
        s->check_only = s->was_check_only;
    }
}

/* What takes the place of another language's library. */
static void add_library_help(Diag *d, const Item *item) {
    static const char *const libraries[][2] = {
        {"numpy",
         "its functions are operators here, bound without an import: `zeros(shape=[2, 3])`"},
        {"scipy", "`linalg` solves and factorises, `random` draws: `import linalg;`"},
        {"math", "its functions are operators here, bound without an import: `sqrt(2.0)`"},
        {"torch",
         "operators are bound without an import, `grad(f)` is a function, `nn` has layers"},
        {"jax", "operators, `grad` and `vmap` are bound without an import"},
        {"tensorflow",
         "operators are bound without an import, `grad(f)` is a function, `nn` has layers"},
        {"matplotlib", "`plot(xs, ys)` is bound without an import, `import plot;` has more"},
        {"pandas", "`import data;` reads CSV"},
        {"functools", "`map`, `filter`, `foldl` and others are bound without an import"},
        {"itertools", "`map`, `filter`, `zip` and others are bound without an import"},
    };
    size_t n = item->path ? 0 : strcspn(item->name.sym->text, ".");
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strlen(libraries[i][0]) == n && !strncmp(item->name.sym->text, libraries[i][0], n))
            diag_add_help(d, "%s", libraries[i][1]);
}

bool session_import(void *ctx, Env *env, const Item *item, Diags *diags) {
    Session *s = ctx;
    const char *file = item->path ? item->path : fmt_text("%s.rly", item->name.sym->text);
    bool library;
    const char *path = find_file(s, file, &library);
    const EmbeddedText *embedded = path ? NULL : find_embedded(fmt_text("stdlib/%s", file));
    if (!path && !embedded) {
        Diag *d = diag_error(diags, DIAG_R0105, item->span, "there is no module `%s`",
                             item->path ? item->path : item->name.sym->text);
        d->missing = item->path ? NULL : item->name.sym;
        diag_add_fact(d,
                      "looked for `%s` beside the importing file, in RELAY_PATH and in the "
                      "standard library",
                      file);
        add_library_help(d, item);
        return false;
    }
    const char *name = path ? path : embedded->name;
    Item opened = *item;
    if (item->path)
        opened.path = name;
    Loaded *known = find_loaded(s, name);
    if (known && known->running) {
        report_cycle(s, item, name, diags);
        return false;
    }
    if (!known) {
        known = mem_new(Loaded);
        *known = (Loaded){name, true};
        vec_push(&s->loaded, known);
        Source *source = path ? session_read_file(s, path, diags)
                              : source_new(embedded->name, embedded->text, embedded->len,
                                           SOURCE_INTERNAL);
        source = translate_model(s, source, item->span, diags);
        if (source && library)
            source->flags |= SOURCE_INTERNAL;
        const char *slash = path ? strrchr(path, '/') : NULL;
        vec_push(&s->folders, slash ? mem_strndup(path, (size_t)(slash - path) + 1) : "");
        env_begin_module(env, item->path ? sym_intern(name) : item->name.sym);
        Diags *inner = mem_new(Diags);
        ModuleJob job = {s, source, inner, false};
        bool ok = source && interp_guard(s->interp, inner, run_module, &job) && job.ok;
        env_end_module(env);
        s->folders.len--;
        known->running = false;
        for (size_t i = 0; i < inner->list.len; i++)
            diag_report(diags, inner->list.data[i]);
        if (!ok) { /* may be mended and imported again */
            known->name = "";
            return false;
        }
    }
    return env_open_module(env, &opened, diags);
}
