/* SPDX-License-Identifier: Apache-2.0 */
/* Options stand before the file of a program; what follows the file is the script's. For the other
 * subcommands they may stand anywhere. Everything comes from the tables `options` and `subcommands`,
 * --help too. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "repl/cli.h"

#include "base/str.h"
#include "base/symbol.h"
#include "repl/doctest.h"
#include "repl/line/terminal.h"
#include "repl/live.h"
#include "repl/model.h"
#include "repl/plot/screen.h"
#include "repl/prompt.h"
#include "repl/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

typedef enum Color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } Color;

/* Words separated by commas. The array ends with a NULL that `len` does not count. */
typedef VEC(const char *) Words;

typedef struct Cli {
    SessionOptions session;
    Color color;
    bool time, residual, transcript, tvm, why;
    bool wants_json;         /* known before the options are read, for mistakes in them */
    VEC(const char *) texts; /* of -e, run one after the other */
    VEC(const char *) inputs, files;
    const char *save, *output; /* --save, -o */
    Words passes, without;
} Cli;

typedef struct Option {
    const char *name, *value; /* value: as help shows it, NULL for none */
    const char *help;
    bool (*set)(Cli *cli, const char *value); /* false: the value is not one of the help's */
} Option;

typedef struct Subcommand {
    const char *name, *arguments, *help;
    int (*run)(Cli *cli);
    bool script; /* the first argument ends the options, the others are the script's */
} Subcommand;

/* ---- options --------------------------------------------------------------------------------- */

static bool parse_unsigned(const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] < '0' || text[0] > '9')
        return false;
    *out = n;
    return true;
}

static bool parse_size(const char *text, size_t *out) {
    size_t n = strlen(text), scale = 1;
    const char *units = "KMG", *unit = n > 1 ? strchr(units, text[n - 1] & ~32) : NULL;
    if (unit && *unit) {
        scale = (size_t)1 << (10 * (unit - units + 1));
        n--;
    }
    uint64_t value;
    if (!parse_unsigned(mem_strndup(text, n), &value) || value > SIZE_MAX / scale || value == 0)
        return false;
    *out = (size_t)value * scale;
    return true;
}

/* The position of `value` among words separated by `|`; -1 when it is none of them. */
static int find_word(const char *words, const char *value) {
    size_t n = strlen(value);
    for (int i = 0; *words; i++) {
        size_t k = strcspn(words, "|");
        if (k == n && memcmp(words, value, n) == 0)
            return i;
        words += k + (words[k] == '|');
    }
    return -1;
}

static bool set_color(Cli *cli, const char *value) {
    int i = find_word("auto|always|never", value);
    cli->color = i < 0 ? COLOR_AUTO : (Color)i;
    return i >= 0;
}

static bool set_diagnostics(Cli *cli, const char *value) {
    int i = find_word("full|short|json", value);
    cli->session.diag_style = i < 0 ? DIAG_STYLE_FULL : (DiagStyle)i;
    return i >= 0;
}

static bool set_engine(Cli *cli, const char *value) {
    int i = find_word("vm|reference", value);
    cli->session.engine = i == 1 ? ENGINE_REFERENCE : ENGINE_VM;
    return i >= 0;
}

static bool set_jit(Cli *cli, const char *value) {
    int i = find_word("on|off", value);
    cli->session.jit = i == 0;
    return i >= 0;
}

static bool set_threads(Cli *cli, const char *value) {
    uint64_t n;
    if (!parse_unsigned(value, &n) || n < 1 || n > 1024)
        return false;
    cli->session.threads = (int)n;
    return true;
}

static bool set_seed(Cli *cli, const char *value) {
    return parse_unsigned(value, &cli->session.seed);
}

static bool set_memory(Cli *cli, const char *value) {
    return parse_size(value, &cli->session.memory_bytes);
}

static bool set_stack(Cli *cli, const char *value) {
    return parse_size(value, &cli->session.stack_bytes);
}

static bool set_input(Cli *cli, const char *value) {
    if (!strchr(value, '=') || value[0] == '=')
        return false;
    vec_push(&cli->inputs, value);
    return true;
}

static bool set_save(Cli *cli, const char *value) {
    cli->save = value;
    return *value != '\0';
}

static bool set_opt(Cli *cli, const char *value) {
    int i = find_word("0|1|2|3", value);
    cli->session.opt.level = i;
    cli->session.opt.at_once = true;
    return i >= 0;
}

static bool set_opt_bisect(Cli *cli, const char *value) {
    cli->session.opt.bisects = cli->session.opt.at_once = true;
    return parse_unsigned(value, &cli->session.opt.bisect);
}

static bool set_print_after(Cli *cli, const char *value) {
    cli->session.opt.print_after = value;
    return true;
}

static void add_words(Words *to, const char *value) {
    for (size_t n; *value; value += n + (value[n] == ',')) {
        n = strcspn(value, ",");
        if (n)
            vec_push(to, mem_strndup(value, n));
    }
    vec_push(to, NULL);
    to->len--;
}

static bool set_pass(Cli *cli, const char *value) {
    OptOptions *opt = &cli->session.opt;
    add_words(&cli->passes, value);
    opt->passes = cli->passes.data;
    opt->npasses = (uint32_t)cli->passes.len;
    opt->at_once = true;
    return true;
}

static bool set_no_pass(Cli *cli, const char *value) {
    add_words(&cli->without, value);
    cli->session.opt.without = cli->without.data;
    cli->session.opt.nwithout = (uint32_t)cli->without.len;
    return true;
}

static bool set_jit_cache(Cli *cli, const char *value) {
    (void)value;
    cli->session.jit_cache = false;
    return true;
}

static bool set_check_core(Cli *cli, const char *value) {
    (void)value;
    cli->session.check_core = true;
    return true;
}

static bool set_count(Cli *cli, const char *value) {
    (void)value;
    cli->session.counts = true;
    return true;
}

static bool set_as_written(Cli *cli, const char *value) {
    (void)value;
    cli->session.opt.as_written = cli->session.opt.at_once = true;
    return true;
}

static bool set_digest(Cli *cli, const char *value) {
    (void)value;
    cli->session.digest = true;
    return true;
}

static bool set_no_files(Cli *cli, const char *value) {
    (void)value;
    cli->session.no_files = true;
    return true;
}

static bool set_prelude(Cli *cli, const char *value) {
    (void)value;
    cli->session.prelude = false;
    return true;
}

static bool set_residual(Cli *cli, const char *value) {
    (void)value;
    cli->residual = true;
    return true;
}

static bool set_time(Cli *cli, const char *value) {
    (void)value;
    cli->time = true;
    return true;
}

static bool set_transcript(Cli *cli, const char *value) {
    (void)value;
    cli->transcript = true;
    return true;
}

static bool set_tvm(Cli *cli, const char *value) {
    (void)value;
    cli->tvm = true;
    return true;
}

static bool set_why(Cli *cli, const char *value) {
    (void)value;
    cli->why = true;
    return true;
}

static bool set_nan(Cli *cli, const char *value) {
    (void)value;
    cli->session.hunts_nan = true;
    return true;
}

static bool set_progress(Cli *cli, const char *value) {
    cli->session.no_progress = strcmp(value, "never") == 0;
    return cli->session.no_progress || strcmp(value, "auto") == 0;
}

static bool set_verify_types(Cli *cli, const char *value) {
    (void)value;
    cli->session.verify_types = true;
    return true;
}

static bool set_twins(Cli *cli, const char *value) {
    (void)value;
    cli->session.twins = true;
    return true;
}

/* Sorted. */
static const Option options[] = {
    {"as-written", NULL,
     "run the program's own text as it stands, and the library's after passes: for what `ir` "
     "prints",
     set_as_written},
    {"check-core", NULL, "hold the program to the rules of its core, after each pass",
     set_check_core},
    {"color", "auto|always|never", "colours in diagnostics; auto asks the terminal and NO_COLOR",
     set_color},
    {"count", NULL, "say on standard error how many instructions ran, and of which kind",
     set_count},
    {"diagnostics", "full|short|json", "short and json are one line each", set_diagnostics},
    {"digest", NULL,
     "end with a number of the bits of each value shown or bound, to compare engines", set_digest},
    {"engine", "vm|reference", "what evaluates; the reference is plain, slow and for tests",
     set_engine},
    {"input", "NAME=FILE", "run: a value for a parameter of @main or a free_var; =random makes one",
     set_input},
    {"jit", "on|off", "operators as compiled kernels, or by their reference evaluation", set_jit},
    {"memory", "SIZE", "most memory for values and stack, as in 500M or 4G", set_memory},
    {"nan", NULL, "fail where a NaN or an infinity is made of finite numbers", set_nan},
    {"no-files", NULL, "types of loaded files come from the program alone", set_no_files},
    {"no-jit-cache", NULL, "keep no compiled kernels on disk", set_jit_cache},
    {"no-pass", "P,Q", "passes that never run", set_no_pass},
    {"no-prelude", NULL, "start with operators only", set_prelude},
    {"opt", "0|1|2|3",
     "how far code is optimised before it first runs; when not said, fully once it has run hot",
     set_opt},
    {"opt-bisect", "N", "run the first N applications of passes only, and say which is the last",
     set_opt_bisect},
    {"pass", "P,Q", "the passes to run, in this order", set_pass},
    {"print-after", "P", "write each function to standard error as the pass P leaves it",
     set_print_after},
    {"progress", "auto|never", "whether `progress` tells how far it is", set_progress},
    {"residual", NULL, "check: list the checks that are left for the run", set_residual},
    {"save", "DIR", "run: write each output of a model to DIR/NAME.npy", set_save},
    {"seed", "N", "of the random numbers", set_seed},
    {"stack", "SIZE", "most memory for calls; 1G when not said", set_stack},
    {"threads", "N", "at most so many", set_threads},
    {"time", NULL, "say on standard error how long it took", set_time},
    {"transcript", NULL, "doctest: print what a lesson of the tutor says, and each answer tried",
     set_transcript},
    {"tvm", NULL, "fmt: sigils and layout as TVM prints them", set_tvm},
    {"twins", NULL, "differentiate while running and never make derivatives code", set_twins},
    {"verify-types", NULL,
     "compare each value with its type while running; for work on Relay itself", set_verify_types},
    {"why", NULL, "ir: what the passes did with each definition, and why they left a call",
     set_why},
};
enum { NOPTIONS = sizeof options / sizeof *options };

static const Option *find_option(const char *name) {
    for (size_t i = 0; i < NOPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    return NULL;
}

static void find_style(Cli *cli, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--diagnostics=json") == 0 ||
            (strcmp(argv[i], "--diagnostics") == 0 && i + 1 < argc &&
             strcmp(argv[i + 1], "json") == 0))
            cli->wants_json = true;
}

static int usage_error(const Cli *cli, const char *fmt, const char *what) {
    const char *message = fmt_text(fmt, what);
    Diag *d = diag_new(DIAG_R0018, span_none(), "%s", message);
    Str out = {0};
    if (cli->wants_json)
        diag_print_json(&out, d);
    else
        str_printf(&out, "relay: %s; `relay --help` lists what there is\n", message);
    fputs(str_text(&out), stderr);
    return 2;
}

/* One option at argv[*i]; 0 or the exit status. */
static int take_option(Cli *cli, int argc, char **argv, int *i) {
    const char *text = argv[*i] + 2, *value = strchr(text, '=');
    const char *name = value ? mem_strndup(text, (size_t)(value - text)) : text;
    const Option *option = find_option(name);
    if (!option) {
        const Symbol *names[NOPTIONS];
        for (size_t k = 0; k < NOPTIONS; k++)
            names[k] = sym_intern(options[k].name);
        const Symbol *nearest = sym_find_nearest(sym_intern(name), names, NOPTIONS, NULL);
        return usage_error(cli, "there is no option `--%s`",
                           nearest ? fmt_text("%s`, did you mean `--%s", name, nearest->text)
                                   : name);
    }
    if (!option->value && value)
        return usage_error(cli, "`--%s` takes no value", name);
    if (option->value && value)
        value++;
    else if (option->value && *i + 1 < argc)
        value = argv[++*i];
    else if (option->value)
        return usage_error(cli, "%s", fmt_text("`--%s` wants a value: %s", name, option->value));
    if (!option->set(cli, value))
        return usage_error(cli, "%s",
                           fmt_text("`--%s` wants %s, not `%s`", name, option->value, value));
    return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static Session *current; /* for the signal handler */
static volatile sig_atomic_t output_broken, interrupted;
static volatile sig_atomic_t caret_written; /* by the terminal: ^C, on a line of ours */

static void on_interrupt(int sig) {
    (void)sig;
    interrupted = caret_written = 1;
    if (current)
        session_interrupt(current);
}

/* A reader that has gone (`relay FILE | head`) ends the evaluation, quietly. */
static void write_value(void *ctx, const char *text, size_t n) {
    (void)ctx;
    if (output_broken)
        return;
    if (fwrite(text, 1, n, stdout) < n && errno == EPIPE) {
        output_broken = 1;
        session_interrupt(current);
    }
}

static void write_diag(void *ctx, const char *text, size_t n) {
    (void)ctx;
    if (output_broken)
        return;
    fflush(stdout);
    if (caret_written && isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
        fputc('\n', stderr);
    caret_written = 0;
    fwrite(text, 1, n, stderr);
}

static bool want_color(Color color) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    switch (color) {
    case COLOR_ALWAYS: return true;
    case COLOR_NEVER: return false;
    case COLOR_AUTO: break;
    }
    return isatty(STDERR_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static Session *start(Cli *cli) {
    cli->session.color = cli->session.diag_style == DIAG_STYLE_FULL && want_color(cli->color);
    cli->session.plot_color = isatty(STDOUT_FILENO) && want_color(cli->color);
    cli->session.width = terminal_width(STDOUT_FILENO);
    cli->session.diag_width = terminal_width(STDERR_FILENO);
    Session *s = session_new(&cli->session);
    if (!s)
        return NULL;
    current = s;
    SessionSink sink = {write_value, write_diag, NULL, false};
    session_set_sink(s, &sink);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails, and is told */
    return s;
}

/* 0; 1 when output was lost, which is said. A reader that has gone wanted no more. */
static int flush_output(void) {
    if (!output_broken && fflush(stdout) != 0 && errno == EPIPE)
        output_broken = 1;
    bool lost = !output_broken && ferror(stdout);
    if (lost)
        fputs("relay: cannot write to standard output\n", stderr);
    return lost;
}

static int finish(Session *s, SessionStatus status) {
    int lost = flush_output();
    current = NULL;
    session_fini(s);
    return output_broken ? 0 : lost || status != SESSION_OK;
}

static bool answer(bool ok, const Str *out) {
    fputs(str_text(out), stdout);
    return ok;
}

/* The first file of the command line, or what stands in its place. */
static int run_program(Cli *cli) {
    const char *path = cli->files.len ? cli->files.data[0] : NULL;
    bool prompt = !path && !cli->texts.len && isatty(STDIN_FILENO);
    if (path) {
        cli->session.argc = (int)cli->files.len - 1;
        cli->session.argv = mem_new_n(char *, cli->files.len);
        for (size_t i = 1; i < cli->files.len; i++)
            cli->session.argv[i - 1] = mem_strdup(cli->files.data[i]);
    }
    cli->session.at_prompt = prompt;
    Session *s = start(cli);
    if (!s)
        return 1;
    SessionStatus status = SESSION_OK;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (prompt) {
        int result = prompt_run(s, want_color(cli->color));
        return finish(s, SESSION_OK) || result;
    } else if (cli->texts.len) {
        for (size_t i = 0; i < cli->texts.len && status == SESSION_OK; i++) {
            const char *text = cli->texts.data[i];
            status = session_run_text(s, i ? fmt_text("-e %zu", i + 1) : "-e", text, strlen(text),
                                      true);
        }
    } else if (path && session_is_model(s, path)) {
        status = session_run_model(s, path, cli->inputs.data, (int)cli->inputs.len, cli->save);
    } else {
        status = session_run_file(s, path ? path : "-", cli->inputs.data, (int)cli->inputs.len);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (cli->time) {
        double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
        fflush(stdout);
        Str stats = {0};
        session_info(s, "session", &stats);
        fprintf(stderr, "read, checked and ran in %.3f ms\n%s", ms, str_text(&stats));
    }
    if (cli->session.counts) {
        Str counts = {0};
        session_print_counts(s, &counts);
        fflush(stdout);
        fputs(str_text(&counts), stderr);
    }
    if (cli->session.digest) {
        Str digests = {0};
        session_print_digests(s, &digests);
        fflush(stdout);
        fputs(str_text(&digests), stderr);
    }
    return finish(s, status);
}

static int run_check(Cli *cli) {
    Session *s = start(cli);
    if (!s)
        return 1;
    SessionStatus status = SESSION_OK;
    for (size_t i = 0; i < cli->files.len && !output_broken; i++)
        if (session_check_file(s, cli->files.data[i], cli->residual) != SESSION_OK)
            status = SESSION_FAILED;
    return finish(s, status);
}

static int run_fmt(Cli *cli) {
    cli->session.jit = false;
    Session *s = start(cli);
    if (!s)
        return 1;
    SessionStatus status = SESSION_OK;
    for (size_t i = 0; i < cli->files.len && !output_broken; i++) {
        Str out = {0};
        if (session_format_file(s, cli->files.data[i], cli->tvm, &out) != SESSION_OK)
            status = SESSION_FAILED;
        fwrite(str_text(&out), 1, out.len, stdout);
    }
    return finish(s, status);
}

static int run_convert(Cli *cli) {
    if (cli->files.len != 1 || !cli->output)
        return usage_error(cli, "`relay convert` wants a file and where its translation goes: %s",
                           "`relay convert m.onnx -o m.rly`");
    cli->session.jit = false;
    Session *s = start(cli);
    return s ? finish(s, session_convert_model(s, cli->files.data[0], cli->output)) : 1;
}

static int run_ir(Cli *cli) {
    cli->session.jit = false;
    cli->session.opt.passes = NULL; /* nothing runs: they are those that are shown */
    cli->session.opt.npasses = 0;
    Session *s = start(cli);
    if (!s)
        return 1;
    bool ok = true;
    for (size_t i = 0; i < cli->files.len && !output_broken; i++) {
        Str out = {0};
        const char *path = cli->files.data[i];
        bool told = cli->why
                        ? session_why_file(s, path, &out)
                        : session_ir_file(s, path, cli->passes.data, (int)cli->passes.len, &out);
        ok &= answer(told, &out);
    }
    return finish(s, ok ? SESSION_OK : SESSION_FAILED);
}

static int run_doc(Cli *cli) {
    cli->session.jit = false;
    Session *s = start(cli);
    if (!s)
        return 1;
    bool ok = true;
    for (size_t i = 0; i < cli->files.len; i++) {
        Str out = {0};
        ok &= answer(session_doc(s, cli->files.data[i], &out), &out);
    }
    return finish(s, ok ? SESSION_OK : SESSION_FAILED);
}

/* Each page in a session of its own, as wide as its lines may be. */
static int run_doctest(Cli *cli) {
    DoctestCount count = {0};
    cli->session.plot_screen = SCREEN_BRAILLE; /* whatever the terminal */
    for (size_t i = 0; i < cli->files.len && !output_broken; i++) {
        Session *s = start(cli);
        if (!s)
            return 1;
        session_set_width(s, DOCTEST_WIDTH, DOCTEST_WIDTH);
        Str out = {0};
        const char *path = cli->files.data[i];
        size_t n = strlen(path);
        if (n > 4 && strcmp(path + n - 4, ".tut") == 0)
            doctest_play(s, path, cli->transcript, &count, &out);
        else
            doctest_run(s, path, &count, &out);
        fputs(str_text(&out), stdout);
        finish(s, SESSION_OK);
    }
    printf("%zu passed, %zu failed\n", count.passed, count.failed);
    return flush_output() || count.failed;
}

static int run_explain(Cli *cli) {
    cli->session.jit = cli->session.prelude = false;
    Session *s = start(cli);
    if (!s)
        return 1;
    bool ok = true;
    for (size_t i = 0; i < cli->files.len; i++) {
        Str out = {0};
        ok &= answer(session_explain(s, cli->files.data[i], &out), &out);
    }
    return finish(s, ok ? SESSION_OK : SESSION_FAILED);
}

static Session *start_live(void *ctx) { return start(ctx); }

static void finish_live(void *ctx, Session *s) {
    (void)ctx;
    finish(s, SESSION_OK);
}

static int run_watch(Cli *cli) {
    LiveFace face = {start_live, finish_live, cli, &interrupted, &output_broken};
    return !live_run(&face, cli->files.data[0]);
}

/* ---- subcommands ----------------------------------------------------------------------------- */

static const Subcommand subcommands[] = {
    {"check", "FILE...", "read and type-check; silent when all is well", run_check, false},
    {"convert", "FILE -o FILE",
     "translate a model of ONNX or TVM to Relay, or m.rly to m.onnx or m.json", run_convert, false},
    {"doc", "NAME...", "what an operator or prelude function does", run_doc, false},
    {"doctest", "FILE...", "run what a page types at `relay>`, and compare the answers",
     run_doctest, false},
    {"explain", "CODE...", "what a diagnostic means, as in R0312", run_explain, false},
    {"fmt", "FILE...", "print the canonical text", run_fmt, false},
    {"ir", "FILE...", "print the program after passes", run_ir, false},
    {"run", "FILE [ARG...]", "run a file; `run` may be left out", run_program, true},
    {"watch", "FILE", "run a file again when it is saved, and show the values that changed",
     run_watch, false},
};
enum { NSUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static const Subcommand *find_subcommand(const char *name) {
    for (size_t i = 0; i < NSUBCOMMANDS; i++)
        if (strcmp(subcommands[i].name, name) == 0)
            return &subcommands[i];
    return NULL;
}

static void print_help(void) {
    puts("relay                        the prompt; or runs standard input when it is no terminal\n"
         "relay train.rly data.csv     runs a file\n"
         "relay -e 'grad(fn (x) { x * x })(3.0)'\n"
         "\nCommands:");
    for (size_t i = 0; i < NSUBCOMMANDS; i++) {
        Str line = {0};
        str_printf(&line, "  relay %s %s", subcommands[i].name, subcommands[i].arguments);
        str_pad(&line, 32);
        printf("%s %s\n", str_text(&line), subcommands[i].help);
    }
    puts("\nOptions (--name value or --name=value):");
    for (size_t i = 0; i < NOPTIONS; i++) {
        Str line = {0};
        str_printf(&line, "  --%s%s%s", options[i].name, options[i].value ? "=" : "",
                   options[i].value ? options[i].value : "");
        str_pad(&line, 32);
        printf("%s %s\n", str_text(&line), options[i].help);
    }
    puts("  -e EXPR                    run a text and show its last value\n"
         "  --help, --version\n"
         "\nThe exit status is 0, 1 after an error in the program, 2 for wrong usage.");
}

int cli_main(int argc, char **argv) {
    Cli *cli = mem_new(Cli);
    session_options_init(&cli->session);
    find_style(cli, argc, argv);
    const Subcommand *command = NULL;
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        bool script = cli->files.len && (!command || command->script);
        /* `relay run FILE --input name=value`: an input is the command's wherever it stands */
        bool input = strncmp(arg, "--input", 7) == 0 && (arg[7] == '=' || arg[7] == '\0');
        bool save = strncmp(arg, "--save", 6) == 0 && (arg[6] == '=' || arg[6] == '\0');
        if (command && command->script && (input || save))
            script = false;
        if (script || only_arguments || arg[0] != '-' || arg[1] == '\0') {
            if (!command && !cli->files.len && !cli->texts.len && !only_arguments) {
                if ((command = find_subcommand(arg)))
                    continue;
                if (strcmp(arg, "build") == 0 && access(arg, F_OK) != 0)
                    return usage_error(cli, "this version has no command `%s`", arg);
            }
            vec_push(&cli->files, arg);
        } else if (strcmp(arg, "--") == 0) {
            only_arguments = true;
        } else if (strcmp(arg, "-e") == 0) {
            if (++i >= argc)
                return usage_error(cli, "`-e` wants %s", "a text");
            vec_push(&cli->texts, argv[i]);
        } else if (strcmp(arg, "-o") == 0) {
            if (++i >= argc)
                return usage_error(cli, "`-o` wants %s", "a file");
            cli->output = argv[i];
        } else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
            print_help();
            return flush_output();
        } else if (strcmp(arg, "--version") == 0) {
            puts("relay " PACKAGE_VERSION);
            return flush_output();
        } else if (arg[1] != '-') {
            return usage_error(cli, "there is no option `%s`", arg);
        } else {
            int status = take_option(cli, argc, argv, &i);
            if (status)
                return status;
        }
    }
    if (command && cli->texts.len)
        return usage_error(cli, "`-e` does not go with `%s`", command->name);
    if (command && !cli->files.len)
        return usage_error(cli, "`relay %s` wants an argument", command->name);
    if (cli->texts.len && cli->files.len) { /* what follows -e is the script's */
        cli->session.argc = (int)cli->files.len;
        cli->session.argv = mem_new_n(char *, cli->files.len + 1);
        for (size_t i = 0; i < cli->files.len; i++)
            cli->session.argv[i] = mem_strdup(cli->files.data[i]);
        vec_clear(&cli->files);
    }
    cli->session.calls_main = command && command->run == run_program;
    return command ? command->run(cli) : run_program(cli);
}
