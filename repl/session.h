/* SPDX-License-Identifier: Apache-2.0 */
/* One session: globals, types, diagnostics and an engine. The prompt, the script runner, and later
 * the notebook kernel and the language server are faces of it. Two can live in one process. */
#ifndef REPL_SESSION_H
#define REPL_SESSION_H

#include "eval/interp.h"
#include "eval/reference/reference.h"
#include "parser/parser.h"

typedef struct Session Session;

typedef struct SessionOptions {
    Engine engine;
    bool jit; /* operators as compiled kernels; false: by their reference evaluation */
    bool jit_cache;
    bool prelude;    /* false: --no-prelude */
    bool no_files;   /* files that a program loads are not looked at while it is checked */
    bool check_core; /* hold the core to its rules after inference and every pass */
    OptOptions opt;  /* what code goes through before it runs */

    int threads; /* 0: as many as cores */
    size_t stack_bytes, memory_bytes;
    uint64_t seed;
    bool calls_main;    /* `relay run`: an @main that takes arguments is called, or the run fails */
    bool hunts_nan;     /* --nan, :nan on */
    bool no_progress;   /* --progress=never */
    bool verify_types;  /* --verify-types (eval/verify.h) */
    bool twins;         /* --twins (InterpOptions) */
    bool counts;        /* --count: the instructions that run */
    bool digest;        /* remember values for session_print_digests */
    const char *stdlib; /* directory, NULL: RELAY_STDLIB, else as installed, else embedded */
    int argc;           /* of the script */
    char **argv;
    DiagStyle diag_style;
    bool color;              /* of diagnostics */
    int diag_width;          /* of the terminal they go to, 0: none */
    int width;               /* of the terminal that values go to, 0: none */
    int fixed_width;         /* :set width; 0: the terminal's */
    int edge, most_elements; /* of tensors that are summarised; 0: as usual */
    bool hides_types;
    int plot_screen; /* how plots are shown (repl/plot/screen.h) */
    int plot_height; /* rows of a plot that is text, 0: 15 */
    bool at_prompt;  /* somebody may be asked at the terminal */
    bool plot_color; /* of plots that are text */
    int digits;      /* shown floats are rounded to so many significant digits, 0: not at all */
} SessionOptions;

void session_options_init(SessionOptions *o);
Session *session_new(const SessionOptions *options);
/* Another session with the options of this one, which shows and complains where this one does; an interrupt of
 * this one stops what that one runs too. NULL when it cannot begin, which was said. */
Session *session_new_beside(Session *s);
void session_end_beside(Session *s, Session *beside);
void session_fini(Session *s);

typedef enum SessionStatus {
    SESSION_OK,
    SESSION_INCOMPLETE, /* the text may be continued */
    SESSION_FAILED,     /* diagnostics were printed to `out` */
    SESSION_INTERRUPTED,
} SessionStatus;

/* How output reaches the face. */
typedef struct SessionSink {
    void (*value)(void *ctx, const char *text, size_t n); /* shown values and print */
    void (*diag)(void *ctx, const char *text, size_t n);  /* rendered diagnostics */
    void *ctx;
    bool hides_progress; /* of `progress`, which writes to the terminal itself */
} SessionSink;
void session_set_sink(Session *s, const SessionSink *sink);
/* Instead of the sink, values of shown items go here: the item's place, and `value : type`. */
typedef void (*ShownFn)(void *ctx, Session *s, Span at, const char *text);
void session_set_shown(Session *s, ShownFn shown, void *ctx);
SessionSink session_swap_sink(Session *s, const SessionSink *sink); /* the one it had */
/* What a face has to say itself goes the same ways: an answer as it stands, and a complaint. */
void session_say(Session *s, const char *text);
void session_complain(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void session_set_width(Session *s, int width, int diag_width); /* the terminal was resized */

void session_hunt_nan(Session *s, bool on); /* interp_hunt_nan */
bool session_hunts_nan(const Session *s);
void session_set_seed(Session *s, uint64_t seed);
const char *session_last_trace(Session *s);      /* interp_last_trace */
void session_set_digits(Session *s, int digits); /* 0: floats are not rounded */

/* The text with lines wider than the terminal broken at blanks, outside strings, and indented. */
const char *session_fold(const Session *s, const Str *text);
/* Words in lines as wide as the terminal, but at most 80 columns; ends with a line break. */
const char *session_fill(const Session *s, const char *words);
int session_width(const Session *s); /* columns of the terminal that values go to, 0: none */

/* One entry at the prompt: reads, checks, runs, shows. name: "prompt 3", or NULL to number it. */
SessionStatus session_enter(Session *s, const char *text, size_t len, bool may_continue);
/* The same for definitions that may mention each other. When one fails nothing is bound and nothing said. */
SessionStatus session_try_definitions(Session *s, const char *text, size_t len);

/* What became of a text: the last value of an expression in it, or the first mistake. */
typedef struct SessionResult {
    SessionStatus status;
    DiagCode error; /* DIAG_NONE: there was none */
    bool has_value; /* an expression was evaluated */
    Value value;
    const Scheme *scheme; /* of the value */
} SessionResult;
const SessionResult *session_last_result(const Session *s); /* of the last entry, file or text */
/* Evaluates a text beside the entries: nothing is shown or said, and `it` stays. */
void session_probe(Session *s, const char *text, size_t len, SessionResult *out);
/* Whether an entry would read: nothing is said and nothing run. */
ParseStatus session_read_status(Session *s, const char *text, size_t len);
/* A whole file ("-": standard input) or text: read and checked before its first item runs; then @main. inputs:
 * "name=file.npy" pairs for `--input`. */
SessionStatus session_run_file(Session *s, const char *path, const char *const *inputs,
                               int ninputs);
SessionStatus session_run_text(Session *s, const char *name, const char *text, size_t len,
                               bool show_last_only);
/* Runs an entry as the prompt does, and shows nothing (session_last_result). name: of the text, in diagnostics. */
SessionStatus session_evaluate(Session *s, const char *name, const char *text, size_t len);
/* As `let name = v` at the prompt, of a value that has this type. */
void session_bind(Session *s, const char *name, Value v, Scheme *scheme);
SessionStatus session_load(Session *s, const char *path); /* :load */
SessionStatus session_reload(Session *s);                 /* :reload: the last one again */
SessionStatus session_check_file(Session *s, const char *path, bool residual);
SessionStatus session_format_file(Session *s, const char *path, bool tvm, Str *out);

/* Questions, none of which evaluates (but time and mem). False: a diagnostic was printed. */
bool session_type_of(Session *s, const char *expr, bool raw, Str *out);
bool session_ir(Session *s, const char *expr, const char *const *passes, int npasses, Str *out);
bool session_why(Session *s, const char *expr, Str *out);
bool session_ir_file(Session *s, const char *path, const char *const *passes, int npasses,
                     Str *out);
/* What `:why` says, of each definition of a file. */
bool session_why_file(Session *s, const char *path, Str *out);
bool session_info(Session *s, const char *name, Str *out); /* name, or "session" */
bool session_doc(Session *s, const char *name, Str *out);
bool session_explain(Session *s, const char *code, Str *out);
bool session_browse(Session *s, const char *module, Str *out);
bool session_llvm(Session *s, const char *expr, bool assembly, Str *out);
SessionStatus session_time(Session *s, const char *expr);
SessionStatus session_mem(Session *s, const char *expr); /* launches and bytes of tensors */
/* Runs an expression at least five times: the median, the spread, and the first run. */
bool session_bench(Session *s, const char *expr, Str *out);
/* Evaluates an expression by the reference evaluator, which tells what happens; *result: its value. False after a
 * diagnostic. */
bool session_watch(Session *s, const char *expr, WatchFn watch, void *ctx, Value *result);
typedef VEC(const char *) TextVec;

void session_interrupt(Session *s);       /* async-signal-safe */
bool session_was_interrupted(Session *s); /* since the last entry began */
Env *session_env(Session *s);
bool session_is_at_prompt(const Session *s);

/* With `digest`: a line for each value that was shown or bound by `let` so far, in this order, of its name and
 * the digest of what it is now (eval/digest.h), what references hold included. */
void session_print_digests(const Session *s, Str *out);
/* With `counts`: how many instructions ran so far, and of which kind. */
void session_print_counts(const Session *s, Str *out);

#endif
