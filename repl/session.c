/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "eval/held.h"
#include "eval/launch.h"
#include "repl/inputs.h"
#include "repl/prelude.h"
#include "repl/session_internal.h"
#include "types/mend/mend.h"
#include "types/mend/read.h"

enum { FRONT_STACK_BYTES = 1 << 30 };

void session_options_init(SessionOptions *o) {
    *o = (SessionOptions){.jit = true, .jit_cache = true, .prelude = true};
    opt_options_init(&o->opt);
#ifdef RLY_DEBUG
    o->check_core = true;
#endif
}

typedef struct Guarded {
    Session *s;
    void (*fn)(void *arg);
    void *arg;
    bool ok;
} Guarded;

static void run_guarded(void *arg) {
    Guarded *g = arg;
    Diags *diags = mem_new(Diags);
    size_t folders = g->s->folders.len;
    g->ok = interp_guard(g->s->interp, diags, g->fn, g->arg);
    if (g->ok)
        return;
    g->s->folders.len = folders;
    passes_abandon(&g->s->passes);
    session_print_diags(g->s, diags);
    if (session_was_interrupted(g->s))
        g->s->sink.diag(g->s->sink.ctx, "interrupted\n", strlen("interrupted\n"));
}

bool session_with_stack(Session *s, void (*fn)(void *arg), void *arg) {
    Guarded guarded = {s, fn, arg, true};
    if (s) {
        fn = run_guarded;
        arg = &guarded;
    }
    if (mem_stack_left() > mem_stack_share(FRONT_STACK_BYTES) / 2)
        fn(arg);
    else
        mem_call_on_stack(FRONT_STACK_BYTES, fn, arg);
    return guarded.ok;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void write_stdout(void *ctx, const char *text, size_t n) {
    (void)ctx;
    fwrite(text, 1, n, stdout);
}

static void write_stderr(void *ctx, const char *text, size_t n) {
    (void)ctx;
    fflush(stdout);
    fwrite(text, 1, n, stderr);
}

static void print_through(void *ctx, const char *text, size_t n) {
    Session *s = ctx;
    s->sink.value(s->sink.ctx, text, n);
}

void session_set_sink(Session *s, const SessionSink *sink) {
    s->sink = *sink;
    if (s->interp)
        interp_hide_progress(s->interp, sink->hides_progress);
}

void session_set_shown(Session *s, ShownFn shown, void *ctx) {
    s->shown = shown;
    s->shown_ctx = ctx;
}

SessionSink session_swap_sink(Session *s, const SessionSink *sink) {
    SessionSink had = s->sink;
    session_set_sink(s, sink);
    return had;
}

void session_say(Session *s, const char *text) { s->sink.value(s->sink.ctx, text, strlen(text)); }

void session_complain(Session *s, const char *fmt, ...) {
    Str text = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    s->sink.diag(s->sink.ctx, str_text(&text), text.len);
}

void session_set_width(Session *s, int width, int diag_width) {
    s->options.width = s->options.fixed_width ? s->options.fixed_width : width;
    s->options.diag_width = diag_width;
}

void session_set_digits(Session *s, int digits) {
    s->options.digits = digits;
    interp_set_digits(s->interp, digits);
}

void session_hunt_nan(Session *s, bool on) {
    s->options.hunts_nan = on;
    interp_hunt_nan(s->interp, on);
}

void session_set_seed(Session *s, uint64_t seed) {
    s->options.seed = seed;
    interp_set_seed(s->interp, seed);
}

const char *session_last_trace(Session *s) { return interp_last_trace(s->interp); }

bool session_hunts_nan(const Session *s) { return s->options.hunts_nan; }

static void session_write(Session *s, const Str *text) {
    s->sink.value(s->sink.ctx, str_text(text), text->len);
}

void session_print_diags(Session *s, Diags *diags) {
    if (!diags->list.len)
        return;
    for (size_t i = 0; i < diags->list.len && s->result.error == DIAG_NONE; i++)
        if (diag_get_info(diags->list.data[i]->code)->severity == SEVERITY_ERROR)
            s->result.error = diags->list.data[i]->code;
    Str out = {0};
    DiagLook look = {s->options.diag_style, s->options.color, s->options.diag_width};
    diags_print(&out, diags, &look);
    s->sink.diag(s->sink.ctx, str_text(&out), out.len);
    *diags = (Diags){0};
}

/* ---- beginning and end ----------------------------------------------------------------------- */

Session *session_new(const SessionOptions *options) {
    Session *s = mem_new(Session);
    mem_pin(s);
    s->options = s->given = *options;
    s->sink = (SessionSink){write_stdout, write_stderr, NULL, false};
    s->hooks = (EnvHooks){.ctx = s,
                          .import = session_import,
                          .trial = session_trial,
                          .each_module = session_each_module,
                          .load_global = prelude_load_global,
                          .load_rules = prelude_load_rules,
                          .each_name = prelude_each_name,
                          .find_module = session_find_module,
                          .read_header = session_read_header};
    s->env = env_new(&s->hooks);
    Diags *diags = mem_new(Diags);
    InterpOptions io = {
        .engine = options->engine,
        .stack_bytes = options->stack_bytes,
        .memory_bytes = options->memory_bytes,
        .seed = options->seed,
        .hunts_nan = options->hunts_nan,
        .no_progress = options->no_progress,
        .verify_types = options->verify_types,
        .check_core = options->check_core,
        .opt = options->opt,
        .counts = options->counts,
        .twins = options->twins,
    };
    s->interp = interp_new(s->env, diags, &io);
    interp_set_output(s->interp, print_through, s);
    interp_set_draw(s->interp, show_draw);
    interp_set_args(s->interp, options->argc, options->argv);
    s->passes = (PassCtx){.env = s->env,
                          .diags = diags,
                          .check = options->check_core,
                          .opt = &s->options.opt,
                          .poll = interp_poll_passes,
                          .poll_arg = s->interp,
                          .find_held = held_find,
                          .held_by = s->interp};
    if (options->jit)
        launch_use_jit(s->interp, options->threads, options->jit_cache);
    const char *unknown = opt_unknown_pass(&options->opt);
    if (unknown) {
        session_no_such_pass(diags, unknown);
        session_print_diags(s, diags);
    }
    if (unknown || (options->prelude && !prelude_open(s))) {
        session_fini(s);
        return NULL;
    }
    return s;
}

void session_fini(Session *s) {
    interp_fini(s->interp);
    mem_unpin(s);
}

Env *session_env(Session *s) { return s->env; }

bool session_is_at_prompt(const Session *s) { return s->options.at_prompt; }

Session *session_new_beside(Session *s) {
    Session *beside = session_new(&s->options);
    if (!beside)
        return NULL;
    beside->sink = s->sink;
    vec_push(&s->beside, beside);
    return beside;
}

void session_end_beside(Session *s, Session *beside) {
    size_t kept = 0;
    for (size_t i = 0; i < s->beside.len; i++)
        if (s->beside.data[i] != beside)
            s->beside.data[kept++] = s->beside.data[i];
    s->beside.len = kept;
    session_fini(beside);
}

void session_interrupt(Session *s) {
    interp_interrupt(s->interp);
    for (size_t i = 0; i < s->beside.len; i++)
        interp_interrupt(s->beside.data[i]->interp);
}

bool session_was_interrupted(Session *s) { return *interp_interrupt_flag(s->interp) != 0; }

/* ---- running items --------------------------------------------------------------------------- */

/* After an item: what the prompt says of it. */
static void announce(Session *s, const CoreItem *item) {
    Str out = {0};
    switch (item->kind) {
    case CORE_DEF:
    case CORE_LET:
        if (item->global && !symbol_is_hidden(item->global->name))
            show_binding(&out, item->global->name, item->global->scheme);
        break;
    case CORE_TYPE:
        if (item->decl)
            show_type_decl(&out, item->decl);
        break;
    case CORE_OPERATOR:
    case CORE_EXPR:
    case CORE_RULE:
    case CORE_IMPORT: break;
    }
    session_show(s, &out);
}

static bool is_unit_value(Value v) { return v.tag == VAL_TUPLE && !v.p; }

void session_bind(Session *s, const char *name, Value v, Scheme *scheme) {
    Global *g = mem_new(Global);
    g->kind = GLOBAL_LET;
    g->name = sym_intern(name);
    g->scheme = scheme;
    interp_set_global(s->interp, g, v);
    env_bind_global(s->env, g);
}

static void bind_it(Session *s, Value v, Scheme *scheme) {
    if (!is_unit_value(v) && scheme)
        session_bind(s, "it", v, scheme);
}

Expr *session_core_of(const CoreItem *item) {
    switch (item->kind) {
    case CORE_EXPR: return item->expr;
    case CORE_DEF:
    case CORE_LET: return item->global->value;
    case CORE_TYPE:
    case CORE_OPERATOR:
    case CORE_RULE:
    case CORE_IMPORT: break;
    }
    return NULL;
}

void session_check_core(const Session *s, const CoreItem *item) {
    Expr *e = s->passes.check ? session_core_of(item) : NULL;
    if (e && !(item->global && item->global->by_types)) /* such a one runs as copies only */
        pass_check(&s->passes, e, NULL,
                   item->global ? fmt_text("inference of `%s`", item->global->name->text)
                                : "inference");
}

/* At the prompt the sizes of what has been made are known from here on. */
static void take_known_sizes(Session *s, CoreItem *item, Value v) {
    Global *g = item->kind == CORE_LET ? item->global : NULL;
    if (item->kind == CORE_EXPR)
        item->scheme = scheme_with_known_sizes(item->scheme, v);
    else if (g && g->kind == GLOBAL_LET && interp_get_global(s->interp, g, &v))
        g->scheme = scheme_with_known_sizes(g->scheme, v);
}

double session_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static SessionStatus run_item(Session *s, CoreItem *item, bool show, unsigned flags) {
    Value v = value_unit();
    double begin = session_now_ms();
    EvalStatus status = interp_run_item(s->interp, item, &v);
    s->ran_ms += session_now_ms() - begin;
    switch (status) {
    case EVAL_OK: break;
    case EVAL_FAILED: return SESSION_FAILED;
    case EVAL_INTERRUPTED: return SESSION_INTERRUPTED;
    }
    if (s->options.digest && (item->kind == CORE_EXPR || item->kind == CORE_LET)) {
        const char *name = item->global ? item->global->name->text : "shown";
        vec_push(&s->digested, ((DigestedValue){name, v}));
    }
    if (flags & RUN_PROMPT)
        take_known_sizes(s, item, v);
    if (item->kind == CORE_EXPR) {
        s->result.has_value = true;
        s->result.value = v;
        s->result.scheme = item->scheme;
    }
    if (item->kind == CORE_EXPR && show && !is_unit_value(v)) {
        Str out = {0};
        if (!show_value(s, v, item->scheme, &out))
            return SESSION_INTERRUPTED;
        if (s->shown && item->expr->span.source)
            s->shown(s->shown_ctx, s, item->expr->span, session_fold(s, &out));
        else
            session_show(s, &out);
    }
    if (flags & RUN_PROMPT) {
        if (!(flags & RUN_QUIET))
            announce(s, item);
        if (item->kind == CORE_EXPR && item->shown)
            bind_it(s, v, item->scheme);
    }
    return SESSION_OK;
}

/* `@main` is called last, and its value shown. */
static SessionStatus run_main(Session *s, const CoreItemVec *items, Diags *diags) {
    for (size_t i = items->len; i-- > 0;) {
        Global *g = items->data[i].global;
        if (items->data[i].kind != CORE_DEF || !g || strcmp(g->name->text, "main") != 0)
            continue;
        return inputs_run_main(s, g, diags);
    }
    return SESSION_OK;
}

SessionStatus session_run_source(Session *s, Source *source, size_t begin, unsigned flags,
                                 InferMode mode, bool may_continue, Diags *diags) {
    ParseOptions po = {.prompt = mode == INFER_PROMPT, .begin = begin};
    ParseScope scope;
    session_parse_scope(s, &scope);
    po.scope = &scope;
    Module *module = NULL;
    size_t before = diags->list.len;
    switch (parse_module(source, &po, diags, &module)) {
    case PARSE_OK: break;
    case PARSE_INCOMPLETE:
        if (may_continue)
            return SESSION_INCOMPLETE;
        if (!module->items.len && !diags->errors)
            return SESSION_OK; /* documentation of nothing */
        if (!diags->errors)
            diag_error(diags, DIAG_R0001,
                       (Span){source, (uint32_t)source->len, (uint32_t)source->len},
                       "the text ends in the middle of an item");
        return SESSION_FAILED;
    case PARSE_FAILED:
        mend_reading(s->env, source, &po, s->check_only ? INFER_CHECK_ONLY : mode, false, diags,
                     before);
        return SESSION_FAILED;
    }
    CoreItemVec items = {0};
    bool checked = mend_infer_module(s->env, module, s->check_only ? INFER_CHECK_ONLY : mode, diags,
                                     &items);
    if (!checked && !(flags & RUN_PROMPT))
        return SESSION_FAILED;
    for (size_t i = 0; checked && !diags->errors && i < items.len; i++)
        session_check_core(s, &items.data[i]);
    if (s->check_only)
        return SESSION_OK;
    session_print_diags(s, diags); /* warnings, before what the program prints */
    if (*interp_interrupt_flag(s->interp))
        return SESSION_INTERRUPTED;

    interp_set_diags(s->interp, diags);
    size_t last_shown = items.len;
    for (size_t i = 0; i < items.len; i++)
        if (items.data[i].kind == CORE_EXPR)
            last_shown = i;
    SessionStatus status = checked ? SESSION_OK : SESSION_FAILED;
    for (size_t i = 0; i < items.len; i++) {
        CoreItem *item = &items.data[i];
        if (!inputs_fill(s, item, diags))
            return SESSION_FAILED;
        bool show = item->shown && (flags & RUN_SHOW);
        if (flags & RUN_SHOW_LAST)
            show = i == last_shown;
        SessionStatus one = run_item(s, item, show, flags);
        if (one != SESSION_OK)
            for (size_t k = items.len; k-- > i;) /* what got no value keeps the one it had */
                env_restore(s->env, &items.data[k], diags);
        session_print_diags(s, diags);
        if (one != SESSION_OK)
            return one;
    }
    if (status == SESSION_OK && (flags & RUN_MAIN))
        status = run_main(s, &items, diags);
    return status;
}

/* ---- entries and files ----------------------------------------------------------------------- */

typedef struct Job {
    Session *s;
    Source *source;
    const char *path;
    unsigned flags;
    InferMode mode;
    bool may_continue;
    SessionStatus status;
} Job;

static void run_job(void *arg) {
    Job *job = arg;
    Session *s = job->s;
    Diags *diags = mem_new(Diags);
    if (job->path) {
        job->source = session_read_file(s, job->path, diags);
        const char *slash = strrchr(job->path, '/');
        vec_push(&s->folders, slash ? mem_strndup(job->path, (size_t)(slash - job->path) + 1) : "");
    }
    job->status = !job->source ? SESSION_FAILED
                               : session_run_source(s, job->source, 0, job->flags, job->mode,
                                                    job->may_continue, diags);
    if (job->path)
        s->folders.len--;
    if (job->status == SESSION_INCOMPLETE)
        return;
    if (job->status == SESSION_FAILED && !diags->errors && *interp_interrupt_flag(s->interp))
        job->status = SESSION_INTERRUPTED;
    session_print_diags(s, diags);
    if (job->status == SESSION_INTERRUPTED) {
        const char *text = job->flags & RUN_PROMPT
                               ? "interrupted; everything defined so far is kept\n"
                               : "interrupted\n";
        s->sink.diag(s->sink.ctx, text, strlen(text));
    }
}

/* An entry at the prompt begins anew. A program does not: what interrupts it before it begins is meant
 * for it, and would be lost. */
static SessionStatus run(Job job) {
    if (job.flags & RUN_PROMPT)
        interp_resume(job.s->interp);
    env_begin_run(job.s->env);
    job.s->result = (SessionResult){0};
    bool done = session_with_stack(job.s, run_job, &job);
    job.s->result.status = done ? job.status : SESSION_FAILED;
    return job.s->result.status;
}

const SessionResult *session_last_result(const Session *s) { return &s->result; }

static void say_nothing(void *ctx, const char *text, size_t n) { (void)ctx, (void)text, (void)n; }

void session_probe(Session *s, const char *text, size_t len, SessionResult *out) {
    SessionSink quiet = {say_nothing, say_nothing, NULL, true}, sink = session_swap_sink(s, &quiet);
    SessionResult before = s->result;
    Source *source = source_new("probe", text, len, SOURCE_PROMPT);
    run((Job){.s = s, .source = source, .mode = INFER_PROMPT});
    *out = s->result;
    if (out->has_value)
        out->scheme = scheme_with_known_sizes((Scheme *)out->scheme, out->value);
    s->result = before;
    session_set_sink(s, &sink);
}

SessionStatus session_enter(Session *s, const char *text, size_t len, bool may_continue) {
    Source *source = source_new(fmt_text("prompt %u", s->prompts + 1), text, len, SOURCE_PROMPT);
    SessionStatus status = run((Job){.s = s,
                                     .source = source,
                                     .flags = RUN_SHOW | RUN_PROMPT,
                                     .mode = INFER_PROMPT,
                                     .may_continue = may_continue});
    if (status != SESSION_INCOMPLETE)
        s->prompts++;
    return status;
}

/* What was said while a text was tried: warnings and bindings, in order. */
typedef struct Said {
    bool is_diag;
    const char *text;
    size_t len;
} Said;
typedef VEC(Said) SaidVec;

static void keep_value(void *ctx, const char *text, size_t n) {
    Said said = {false, mem_strndup(text, n), n};
    vec_push((SaidVec *)ctx, said);
}

static void keep_diag(void *ctx, const char *text, size_t n) {
    Said said = {true, mem_strndup(text, n), n};
    vec_push((SaidVec *)ctx, said);
}

SessionStatus session_try_definitions(Session *s, const char *text, size_t len) {
    SaidVec said = {0};
    SessionSink sink = s->sink;
    s->sink = (SessionSink){keep_value, keep_diag, &said, false};
    SessionStatus status = session_enter(s, text, len, false);
    s->sink = sink;
    for (size_t i = 0; status == SESSION_OK && i < said.len; i++)
        (said.data[i].is_diag ? sink.diag : sink.value)(sink.ctx, said.data[i].text,
                                                        said.data[i].len);
    if (status != SESSION_OK)
        s->prompts--;
    return status;
}

typedef struct ReadJob {
    Session *s;
    const char *text;
    size_t len;
    ParseStatus status;
} ReadJob;

static void read_quietly(void *arg) {
    ReadJob *job = arg;
    Source *source = source_new("entry", job->text, job->len, SOURCE_PROMPT);
    Diags diags = {0};
    ParseScope scope;
    session_parse_scope(job->s, &scope);
    ParseOptions options = {.prompt = true, .scope = &scope};
    Module *module = NULL;
    job->status = parse_module(source, &options, &diags, &module);
}

ParseStatus session_read_status(Session *s, const char *text, size_t len) {
    ReadJob job = {s, text, len, PARSE_FAILED};
    session_with_stack(s, read_quietly, &job);
    return job.status;
}

SessionStatus session_run_file(Session *s, const char *path, const char *const *inputs,
                               int ninputs) {
    s->inputs = inputs;
    s->ninputs = ninputs;
    return run((Job){.s = s, .path = path, .flags = RUN_SHOW | RUN_MAIN, .mode = INFER_FILE});
}

SessionStatus session_run_text(Session *s, const char *name, const char *text, size_t len,
                               bool show_last_only) {
    Source *source = source_new(name, text, len, 0);
    unsigned flags = show_last_only ? RUN_SHOW_LAST : RUN_SHOW | RUN_MAIN;
    return run((Job){.s = s, .source = source, .flags = flags, .mode = INFER_FILE});
}

SessionStatus session_evaluate(Session *s, const char *name, const char *text, size_t len) {
    Source *source = source_new(name, text, len, SOURCE_PROMPT);
    return run(
        (Job){.s = s, .source = source, .flags = RUN_PROMPT | RUN_QUIET, .mode = INFER_PROMPT});
}

SessionStatus session_load(Session *s, const char *path) {
    s->last_loaded = mem_strdup(path);
    return run(
        (Job){.s = s, .path = s->last_loaded, .flags = RUN_SHOW | RUN_PROMPT, .mode = INFER_FILE});
}

SessionStatus session_load_quietly(Session *s, const char *path) {
    return run((Job){.s = s, .path = path, .flags = RUN_PROMPT | RUN_QUIET, .mode = INFER_FILE});
}

SessionStatus session_reload(Session *s) {
    return s->last_loaded ? session_load(s, s->last_loaded) : SESSION_OK;
}

/* The operator stands in a definition that is called there. */
static bool is_inside(const ResidualInfo *check) {
    return check->inner.source && check->inner_name;
}

/* "at train.rly:3:14", or whose it is: "of the prelude", "of `loss`". */
static const char *inside_words(const ResidualInfo *check) {
    const char *name = check->inner.source->name, *slash = strrchr(name, '/');
    uint32_t line, column;
    span_locate(check->inner, &line, &column);
    if (!(check->inner.source->flags & SOURCE_INTERNAL))
        return fmt_text("at %s:%u:%u", name, line, column);
    if (strncmp(name, "prelude/", 8) == 0)
        return "of the prelude";
    name = slash ? slash + 1 : name;
    return fmt_text("of `%.*s`", (int)strcspn(name, "."), name);
}

static void print_check(Str *out, const ResidualInfo *check, bool json) {
    if (json) {
        diag_print_json(out,
                        diag_new(DIAG_R0907, check->span, "checked when running: %s", check->text));
        out->len -= strlen("}\n");
        str_add(out, ",\"operator\":");
        str_add(out, check->op ? "" : "null");
        if (check->op)
            diag_add_json_text(out, check->op);
        str_add(out, ",\"argument\":");
        str_add(out, check->arg ? "" : "null");
        if (check->arg)
            diag_add_json_text(out, check->arg);
        str_add(out, ",\"axis\":");
        str_add(out, check->axis < 0 ? "null" : fmt_text("%d", check->axis));
        str_add(out, ",\"inside\":");
        if (is_inside(check)) {
            str_add(out, "{\"definition\":");
            diag_add_json_text(out, check->inner_name->text);
            str_add_char(out, ',');
            diag_add_json_span(out, check->inner);
            str_add_char(out, '}');
        } else {
            str_add(out, "null");
        }
        str_add(out, "}\n");
        return;
    }
    uint32_t line = 0, column = 0;
    if (check->span.source)
        span_locate(check->span, &line, &column);
    str_printf(out, "%s:%u:%u: checked when running: %s",
               check->span.source ? check->span.source->name : "?", line, column, check->text);
    if (is_inside(check))
        str_printf(out, ", in `%s` %s", check->inner_name->text, inside_words(check));
    str_add_char(out, '\n');
}

/* By place; of one place as they were found. */
static int by_place(const void *a, const void *b) {
    const ResidualInfo *x = *(const ResidualInfo *const *)a, *y = *(const ResidualInfo *const *)b;
    const char *f = x->span.source ? x->span.source->name : "",
               *g = y->span.source ? y->span.source->name : "";
    int order = strcmp(f, g);
    if (order)
        return order;
    if (x->span.begin != y->span.begin)
        return x->span.begin < y->span.begin ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void print_checks(Str *out, const ResidualVec *all, size_t from, bool json) {
    size_t n = all->len - from;
    const ResidualInfo **order = mem_new_n(const ResidualInfo *, n + 1);
    for (size_t i = 0; i < n; i++)
        order[i] = &all->data[from + i];
    qsort(order, n, sizeof *order, by_place);
    for (size_t i = 0; i < n; i++) {
        bool again = false; /* a definition that is checked again says the same again */
        for (size_t k = i; k > 0 && !again && order[k - 1]->span.begin == order[i]->span.begin; k--)
            again = strcmp(order[k - 1]->text, order[i]->text) == 0 &&
                    order[k - 1]->inner.source == order[i]->inner.source &&
                    order[k - 1]->inner.begin == order[i]->inner.begin;
        if (!again)
            print_check(out, order[i], json);
    }
}

SessionStatus session_check_file(Session *s, const char *path, bool residual) {
    size_t before = env_residuals(s->env)->len;
    s->check_only = true;
    env_list_checks(s->env, residual);
    SessionStatus status = run((Job){.s = s, .path = path, .mode = INFER_CHECK_ONLY});
    env_list_checks(s->env, false);
    s->check_only = false;
    if (residual) {
        const ResidualVec *all = env_residuals(s->env);
        Str out = {0};
        print_checks(&out, all, before, s->options.diag_style == DIAG_STYLE_JSON);
        session_write(s, &out);
    }
    return status;
}

SessionStatus session_time(Session *s, const char *expr) {
    double begin = session_now_ms(), ran = s->ran_ms, compiled = launch_compile_ms(s->interp);
    uint64_t asked = tensor_counts().asked;
    SessionStatus status = session_enter(s, expr, strlen(expr), false);
    double all = session_now_ms() - begin;
    ran = s->ran_ms - ran;
    compiled = launch_compile_ms(s->interp) - compiled;
    Str out = {0};
    str_printf(
        &out, "checked in %.3f ms, compiled in %.3f ms, ran in %.3f ms, allocated %llu bytes\n",
        all - ran, compiled, ran - compiled, (unsigned long long)(tensor_counts().asked - asked));
    session_show(s, &out);
    return status;
}

SessionStatus session_mem(Session *s, const char *expr) {
    InterpStats stats = *interp_stats(s->interp);
    TensorCounts counts = tensor_counts();
    tensor_watch(true);
    SessionStatus status = session_enter(s, expr, strlen(expr), false);
    tensor_watch(false);
    Str out = {0};
    session_print_work(s, stats, counts, &out);
    session_write(s, &out);
    return status;
}
