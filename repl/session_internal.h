/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the session: session.c (entries and files), modules.c (prelude, imports),
 * show.c (values and types as text), inspect.c (questions that evaluate nothing). */
#ifndef REPL_SESSION_INTERNAL_H
#define REPL_SESSION_INTERNAL_H

#include "passes/pass.h"
#include "repl/session.h"

typedef struct Loaded {
    const char *name; /* module name or path */
    bool running;     /* being loaded now: an import of it is a cycle */
} Loaded;

typedef struct DigestedValue {
    const char *name;
    Value value;
} DigestedValue;

struct Session {
    SessionOptions options, given; /* as they are now, and as they were when it began */
    EnvHooks hooks;
    Env *env;
    Interp *interp;
    PassCtx passes;
    struct Prelude *prelude;
    SessionSink sink;
    VEC(Loaded *) loaded;
    VEC(const char *) folders; /* of the files being read, innermost last */
    unsigned prompts;          /* entries so far */
    const char *last_loaded;   /* for :reload */
    bool check_only;           /* `relay check`: nothing runs */
    size_t before_trial;       /* modules loaded when a trial began, and */
    bool was_check_only;
    const char *const *inputs; /* --input name=file */
    int ninputs;
    VEC(DigestedValue) digested;
    SessionResult result;
    double ran_ms;         /* in evaluations so far, the compiling of kernels included */
    VEC(Session *) beside; /* session_new_beside */
    const struct OnnxKnowns *known_inputs; /* of the model that is run */
    uint64_t draws;                        /* `=random` inputs so far: each has its own key */
    ShownFn shown;                         /* who is told of shown items, or NULL */
    void *shown_ctx;
    int asked_screen; /* what the terminal takes, a PlotScreen; 0: it was not asked yet */
};

/* Reads, checks and, unless the session only checks, runs one source. */
typedef enum RunFlags {
    RUN_SHOW = 1,      /* show the values of shown items */
    RUN_SHOW_LAST = 2, /* only of the last */
    RUN_MAIN = 4,      /* call @main at the end */
    RUN_PROMPT = 8,    /* tell what definitions bound; bind `it` */
    RUN_QUIET = 16,    /* with RUN_PROMPT: tell nothing */
} RunFlags;
/* begin: where reading starts (parser.h). */
SessionStatus session_run_source(Session *s, Source *source, size_t begin, unsigned flags,
                                 InferMode mode, bool may_continue, Diags *diags);

/* As session_load, but tells nothing of what the file binds. */
SessionStatus session_load_quietly(Session *s, const char *path);

/* A file's text, "-" for standard input; NULL after a diagnostic or Ctrl-C. */
Source *session_read_file(Session *s, const char *path, Diags *diags);

void session_trial(void *ctx, bool begin);           /* EnvHooks.trial */
void session_each_module(void *ctx, SymbolVec *out); /* EnvHooks.each_module */
bool session_import(void *ctx, Env *env, const Item *item, Diags *diags);

void session_print_diags(Session *s, Diags *diags);
double session_now_ms(void); /* of a clock that only goes on */

/* Writes values, bindings and their types, folded (session_fold). */
void session_show(Session *s, const Str *text);

/* `value : type` and a line break. False when it was interrupted. */
/* The scheme of a value that has been made: its unknown sizes are those of the value. */
Scheme *scheme_with_known_sizes(Scheme *scheme, Value v);
const char *session_find_module(void *ctx, const Symbol *name);
bool session_read_header(void *ctx, const Source *source, const char *path, FileHeader *out);
bool show_draw(Value v, const char *path, Str *bytes, const char **why); /* DrawFn: of plots */
bool show_value(Session *s, Value v, const Scheme *scheme, Str *out);
void show_binding(Str *out, const Symbol *name, const Scheme *scheme);
void show_type_decl(Str *out, const TypeDecl *decl);

/* The names that a user may write: without the operators that only derivatives and passes use. */
void session_each_name(Session *s, SymbolVec *out);

/* What the reader must know of names bound so far. */
void session_parse_scope(Session *s, ParseScope *scope);

/* Runs fn(arg) with room to recurse over nested syntax. False when memory ran out, which is then said;
 * without a session nothing catches that. */
bool session_with_stack(Session *s, void (*fn)(void *arg), void *arg);

/* A text that is to be one expression, checked; NULL after a diagnostic. */
Expr *session_read_expression(Session *s, const char *text, Diags *diags);
/* The expression of an item; NULL for those that have none. */
Expr *session_core_of(const CoreItem *item);
/* With --check-core, and always in debug builds: holds an item to the rules of the core. */
void session_check_core(const Session *s, const CoreItem *item);

void session_no_such_pass(Diags *diags, const char *name);
/* e after the passes, by name and in order (none: those that `:ir` shows by default), behind the functions that they made.
 * False after a diagnostic. */
bool session_print_ir(Session *s, Expr *e, const char *const *passes, int npasses, Str *out,
                      Diags *diags);
/* What those passes did with e, and why they left what they left. */
bool session_print_why(Session *s, Expr *e, Str *out, Diags *diags);
/* Launches and bytes of tensors since these counts were taken. */
void session_print_work(const Session *s, InterpStats since, TensorCounts counts, Str *out);

#endif
