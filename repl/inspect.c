/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a session, none of which evaluates: types, what a name is, documentation, the program
 * after passes, completion. */
#include <stdlib.h>
#include <string.h>

#include "eval/launch.h"
#include "ops/ops.h"
#include "parser/print.h"
#include "repl/doc.h"
#include "repl/library.h"
#include "repl/prelude.h"
#include "repl/session_internal.h"
#include "types/infer/infer.h"
#include "types/mend/mend.h"
#include "types/mend/read.h"

/* ---- expressions ----------------------------------------------------------------------------- */

static KnownName find_known(void *ctx, const Symbol *name) {
    Session *s = ctx;
    KnownName unloaded = prelude_find_known(s, name);
    if (unloaded != KNOWN_NOTHING && !env_find_loaded(s->env, name))
        return unloaded;
    Binding b = env_find(s->env, name, SIGIL_GLOBAL);
    if (b.kind == BIND_NONE)
        b = env_find(s->env, name, SIGIL_NONE);
    switch (b.kind) {
    case BIND_NONE:
    case BIND_TYPE:
    case BIND_MODULE: return KNOWN_NOTHING;
    case BIND_GLOBAL:
        return b.global->kind == GLOBAL_LET || b.global->kind == GLOBAL_FREE_VAR ? KNOWN_VALUE
                                                                                 : KNOWN_DEF;
    case BIND_CTOR:
    case BIND_OP: return KNOWN_DEF;
    }
    return KNOWN_NOTHING;
}

void session_parse_scope(Session *s, ParseScope *scope) {
    *scope = (ParseScope){.find_global = find_known, .ctx = s};
}

/* The items of a text (expression: it is to be one), read with the prompt's rules. */
static Module *read_items(Session *s, const char *text, bool expression, Diags *diags) {
    Source *source = source_new("input", text, strlen(text), SOURCE_PROMPT);
    ParseScope scope;
    session_parse_scope(s, &scope);
    ParseOptions options = {.prompt = true, .scope = &scope};
    Module *module = NULL;
    size_t first = diags->list.len;
    switch (parse_module(source, &options, diags, &module)) {
    case PARSE_OK: return module;
    case PARSE_INCOMPLETE:
        if (!diags->errors)
            diag_error(diags, DIAG_R0001,
                       (Span){source, (uint32_t)source->len, (uint32_t)source->len},
                       "the text ends in the middle of an expression");
        return NULL;
    case PARSE_FAILED:
        mend_reading(s->env, source, &options, INFER_PROMPT, expression, diags, first);
        return NULL;
    }
    return NULL;
}

/* The scheme of a module that is one expression. What fails is checked once more, as the entry it
 * would be: that tries changes. */
static Scheme *scheme_of(Session *s, const Module *module, Diags *diags) {
    if (module->items.len != 1 || module->items.data[0]->kind != ITEM_EXPR) {
        diag_error(diags, DIAG_R0001, span_none(), "an expression is wanted here");
        return NULL;
    }
    Diags entered = {0};
    CoreItemVec items = {0};
    Scheme *scheme = infer_type_of(s->env, module->items.data[0]->value, diags);
    if (!scheme && !mend_infer_module(s->env, module, INFER_PROMPT, &entered, &items) &&
        entered.errors)
        *diags = entered;
    return scheme;
}

typedef struct Question {
    Session *s;
    const char *text;
    const char *const *passes;
    int npasses;
    bool raw, ok;
    Str *out;
} Question;

static bool ask(void (*fn)(void *), Question *q) {
    interp_resume(q->s->interp);
    env_begin_run(q->s->env);
    return session_with_stack(q->s, fn, q) && q->ok;
}

static void type_of(void *arg) {
    Question *q = arg;
    Diags *diags = mem_new(Diags);
    const Module *module = read_items(q->s, q->text, true, diags);
    Scheme *scheme = module ? scheme_of(q->s, module, diags) : NULL;
    if (scheme) {
        TypeNamer namer = {.show_effects = q->raw};
        scheme_print(q->out, scheme, &namer);
        str_add_char(q->out, '\n');
        q->ok = true;
    }
    session_print_diags(q->s, diags);
}

bool session_type_of(Session *s, const char *expr, bool raw, Str *out) {
    Question q = {.s = s, .text = expr, .raw = raw, .out = out};
    return ask(type_of, &q);
}

/* The core of an expression, or of the body of a global it names. */
static Expr *core_of(Session *s, const char *text, Diags *diags) {
    Module *module = read_items(s, text, false, diags);
    CoreItemVec items = {0};
    if (!module || !mend_infer_module(s->env, module, INFER_CHECK_ONLY, diags, &items))
        return NULL;
    for (size_t i = items.len; i-- > 0;) {
        CoreItem *item = &items.data[i];
        Expr *e = item->kind == CORE_EXPR ? item->expr : item->global ? item->global->value : NULL;
        if (e && e->kind == EXPR_GLOBAL && e->global->value)
            return e->global->value;
        if (e)
            return e;
    }
    return NULL;
}

Expr *session_read_expression(Session *s, const char *text, Diags *diags) {
    Module *module = read_items(s, text, true, diags);
    CoreItemVec items = {0};
    if (module && module->items.len == 1 && module->items.data[0]->kind == ITEM_EXPR &&
        mend_infer_module(s->env, module, INFER_PROMPT, diags, &items))
        return items.data[0].expr;
    if (!diags->errors)
        diag_error(diags, DIAG_R0001, span_none(), "an expression is wanted here");
    return NULL;
}

typedef struct Watching {
    Session *s;
    const char *text;
    WatchFn watch;
    void *ctx;
    Value *result;
    bool ok;
} Watching;

static void watch_expression(void *arg) {
    Watching *w = arg;
    Session *s = w->s;
    Diags *diags = mem_new(Diags), *before = interp_get_diags(s->interp);
    Expr *e = session_read_expression(s, w->text, diags);
    interp_set_diags(s->interp, diags);
    w->ok = e && reference_watch(s->interp, e, w->watch, w->ctx, w->result) == EVAL_OK;
    interp_set_diags(s->interp, before);
    session_print_diags(s, diags);
}

bool session_watch(Session *s, const char *expr, WatchFn watch, void *ctx, Value *result) {
    Watching w = {s, expr, watch, ctx, result, false};
    interp_resume(s->interp);
    env_begin_run(s->env);
    return session_with_stack(s, watch_expression, &w) && w.ok;
}

void session_each_name(Session *s, SymbolVec *out) {
    SymbolVec all = {0};
    env_each_name(s->env, &all);
    for (size_t i = 0; i < all.len; i++) {
        Binding b = env_find(s->env, all.data[i], SIGIL_NONE);
        if (b.kind != BIND_OP || !op_is_internal(b.op))
            vec_push(out, all.data[i]);
    }
}

static void ir_of(void *arg) {
    Question *q = arg;
    Diags *diags = mem_new(Diags);
    Expr *e = core_of(q->s, q->text, diags);
    q->ok = e && session_print_ir(q->s, e, q->passes, q->npasses, q->out, diags);
    session_print_diags(q->s, diags);
}

bool session_ir(Session *s, const char *expr, const char *const *passes, int npasses, Str *out) {
    Question q = {.s = s, .text = expr, .passes = passes, .npasses = npasses, .out = out};
    return ask(ir_of, &q);
}

static void why_of(void *arg) {
    Question *q = arg;
    Diags *diags = mem_new(Diags);
    Expr *e = core_of(q->s, q->text, diags);
    q->ok = e && session_print_why(q->s, e, q->out, diags);
    session_print_diags(q->s, diags);
}

bool session_why(Session *s, const char *expr, Str *out) {
    Question q = {.s = s, .text = expr, .out = out};
    return ask(why_of, &q);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *trim(const char *text) {
    while (*text == ' ' || *text == '\t')
        text++;
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n;", text[n - 1]))
        n--;
    return mem_strndup(text, n);
}

static Binding find_name(Session *s, const char *name) {
    Sigil sigil = name[0] == '@' ? SIGIL_GLOBAL : name[0] == '%' ? SIGIL_LOCAL : SIGIL_NONE;
    const Symbol *sym = sym_intern(sigil == SIGIL_NONE ? name : name + 1);
    Binding b = env_find(s->env, sym, sigil);
    if (b.kind == BIND_NONE) {
        TypeDecl *decl = env_find_type(s->env, sym);
        if (decl)
            return (Binding){.kind = BIND_TYPE, .decl = decl};
    }
    return b;
}

const char *session_find_module(void *ctx, const Symbol *name) {
    (void)ctx;
    const LibraryItem *item = library_find(name->text);
    return item && *item->module ? item->module : NULL;
}

static bool no_such_name(Session *s, const char *name) {
    SymbolVec names = {0};
    env_each_name(s->env, &names);
    const Symbol *near = sym_find_nearest(sym_intern(name), names.data, names.len, NULL);
    Diags *diags = mem_new(Diags);
    Diag *d = diag_error(diags, DIAG_R0101, span_none(), "there is no `%s`", name);
    if (near)
        diag_add_help(d, "did you mean `%s`?", near->text);
    session_print_diags(s, diags);
    return false;
}

static void say_where(Str *out, Span span) {
    if (!span.source)
        return;
    uint32_t line, column;
    span_locate(span, &line, &column);
    str_printf(out, "defined at %s:%u:%u\n", span.source->name, line, column);
}

/* Documentation is laid out for 100 columns, or the terminal if it has less. */
static size_t doc_width(const Session *s) {
    int width = s->options.width;
    return width > 0 && width < 100 ? (size_t)width : 100;
}

void session_print_work(const Session *s, InterpStats stats, TensorCounts counts, Str *out) {
    const InterpStats *now = interp_stats(s->interp);
    TensorCounts tensors = tensor_counts();
    uint64_t n[] = {now->launches - stats.launches,
                    tensors.asked - counts.asked,
                    now->bytes_in_place - stats.bytes_in_place,
                    tensors.returned - counts.returned,
                    tensors.recycled - counts.recycled,
                    tensors.peak};
    static const char *const what[] = {"launches",
                                       "bytes asked",
                                       "bytes written over an argument",
                                       "bytes given back at their last use",
                                       "bytes in storage used before",
                                       "most bytes at once"};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        str_printf(out, "%s: %llu\n", what[i], (unsigned long long)n[i]);
}

bool session_info(Session *s, const char *text, Str *out) {
    const char *name = trim(text);
    if (strcmp(name, "session") == 0) {
        const InterpStats *stats = interp_stats(s->interp);
        str_printf(out, "functions optimised: %llu, by %llu passes; made anew: %llu\n",
                   (unsigned long long)stats->optimised, (unsigned long long)stats->applied,
                   (unsigned long long)stats->dropped);
        str_printf(out, "derivatives made into code: %llu\nderivatives that kept a tape: %llu\n",
                   (unsigned long long)stats->derived, (unsigned long long)stats->taped);
        str_printf(out,
                   "operators run by reference: %llu\noperators run as kernels: %llu\n"
                   "plans made: %llu\nresults written over an argument: %llu\n",
                   (unsigned long long)stats->ops_reference,
                   (unsigned long long)stats->ops_compiled, (unsigned long long)stats->plans,
                   (unsigned long long)stats->in_place);
        launch_print_stats(s->interp, out);
        session_print_work(s, (InterpStats){0}, (TensorCounts){0}, out);
        str_printf(out, "calls: %llu\ncollected heap: %zu bytes\ntensors: %zu bytes\nseed: %llu\n",
                   (unsigned long long)stats->calls, mem_heap_bytes(), tensor_bytes_live(),
                   (unsigned long long)s->options.seed);
        return true;
    }
    Binding b = find_name(s, op_name_of_sign(name));
    switch (b.kind) {
    case BIND_NONE:
    case BIND_MODULE: return no_such_name(s, name);
    case BIND_GLOBAL:
        show_binding(out, b.global->name, b.global->scheme);
        say_where(out, b.global->span);
        if (b.global->broken)
            str_add(out, "it no longer checks, since something it uses was redefined\n");
        return true;
    case BIND_CTOR:
        str_printf(out, "%s is a constructor of\n", b.ctor->name->text); /* fall through */
    case BIND_TYPE:
        show_type_decl(out, b.kind == BIND_TYPE ? b.decl : b.ctor->decl);
        say_where(out, b.kind == BIND_TYPE ? b.decl->span : b.ctor->span);
        return true;
    case BIND_OP:
        str_printf(out, "%s is an operator\n", b.op->name);
        op_print_doc(out, s->env, b.op, doc_width(s));
        return true;
    }
    return false;
}

/* What a module of the library is for, and the names in it. */
static bool module_doc(const char *name, Str *out) {
    const char *about = library_about(name);
    if (!about)
        return false;
    str_printf(out, "import %s;\n  ", name);
    str_add_indented(out, join_lines(about), 2);
    str_add(out, "\n  it has ");
    LibraryItemVec items = {0};
    library_list(name, &items);
    for (size_t i = 0; i < items.len; i++)
        str_printf(out, "%s`%s`", i ? ", " : "", items.data[i].name);
    str_printf(out, "\n  `:browse %s` shows their types\n", name);
    return true;
}

bool session_doc(Session *s, const char *text, Str *out) {
    const char *name = trim(text);
    Binding b = find_name(s, op_name_of_sign(name));
    const char *doc = NULL;
    const Source *source = NULL;
    const LibraryItem *item = library_find(name);
    if (item && (b.kind == BIND_NONE || b.kind == BIND_MODULE)) {
        library_print_doc(out, item);
        return true;
    }
    switch (b.kind) {
    case BIND_NONE:
    case BIND_MODULE:
        return word_print_doc(out, name) || module_doc(name, out) || no_such_name(s, name);
    case BIND_OP: op_print_doc(out, s->env, b.op, doc_width(s)); return true;
    case BIND_GLOBAL:
        show_binding(out, b.global->name, b.global->scheme);
        if (infer_parameters(b.global) && b.global->span.source &&
            !(b.global->span.source->flags & SOURCE_INTERNAL))
            str_printf(out, "  called as %s\n", infer_call_text(infer_parameters(b.global), name));
        doc = b.global->doc;
        source = b.global->span.source;
        break;
    case BIND_CTOR:
    case BIND_TYPE: {
        const TypeDecl *decl = b.kind == BIND_CTOR ? b.ctor->decl : b.decl;
        show_type_decl(out, decl);
        doc = decl->doc;
        source = decl->span.source;
        break;
    }
    }
    if (item && doc && source && (source->flags & SOURCE_INTERNAL)) {
        library_print_comment(out, item);
        return true;
    }
    str_add(out, "  ");
    str_add_indented(out, doc ? join_lines(doc) : "(no documentation)", 2);
    str_add_char(out, '\n');
    return true;
}

static void add_program(Str *out, const char *heading, const char *program) {
    if (!*program)
        return;
    str_printf(out, "\n%s\n\n    ", heading);
    str_add_indented(out, program, 4);
    str_add_char(out, '\n');
}

/* `R0312`, `r0312` or `312`. */
static DiagCode find_code(const char *text) {
    const char *digits = *text == 'R' || *text == 'r' ? text + 1 : text;
    size_t n = strlen(digits);
    if (n == 0 || n > 4 || strspn(digits, "0123456789") != n)
        return DIAG_NONE;
    return diag_find_code(fmt_text("R%04d", atoi(digits)));
}

bool session_explain(Session *s, const char *text, Str *out) {
    DiagCode code = find_code(trim(text));
    if (code == DIAG_NONE) {
        Diags *diags = mem_new(Diags);
        diag_error(diags, DIAG_R0101, span_none(), "there is no diagnostic `%s`", trim(text));
        session_print_diags(s, diags);
        return false;
    }
    const DiagInfo *info = diag_get_info(code);
    str_printf(out, "%s: %s\n\n", info->name, info->title);
    str_add(out, session_fill(s, info->explanation));
    add_program(out, "This draws it:", info->bad);
    add_program(out, "This is right:", info->good);
    return true;
}

static bool no_such_module(Session *s, const char *name) {
    SymbolVec names = {0};
    Str list = {0};
    session_each_module(s, &names);
    for (size_t i = 0; i < names.len; i++)
        str_printf(&list, "%s`%s`", i ? ", " : "", names.data[i]->text);
    Diags *diags = mem_new(Diags);
    Diag *d = diag_error(diags, DIAG_R0101, span_none(), "there is no module `%s`", name);
    diag_add_fact(d, "modules: %s", str_text(&list));
    session_print_diags(s, diags);
    return false;
}

/* What stands in the text of a module of the library, of the prelude, or of a part of it (`str`). */
static void browse_library(const char *module, Str *out) {
    LibraryItemVec items = {0}, prelude = {0};
    bool is_prelude = strcmp(module, "prelude") == 0;
    library_list(is_prelude ? "" : module, &items);
    for (size_t i = 0; i < items.len; i++)
        str_printf(out, "%s\n", items.data[i].head);
    library_list("", &prelude);
    const char *part = fmt_text("%s.", module);
    for (size_t i = 0; i < prelude.len; i++)
        if (strncmp(prelude.data[i].name, part, strlen(part)) == 0)
            str_printf(out, "%s\n", prelude.data[i].head);
}

/* Whether the name, which begins with the module's, is of a module that this one imports: `nn.random.split`. */
static bool is_of_import(Session *s, const char *module, const Symbol *name) {
    const Namespace *n = map_find(&s->env->here->modules, sym_intern(module));
    const char *rest = name->text + strlen(module) + 1, *dot = strchr(rest, '.');
    return n && dot && map_has(&n->modules, sym_intern_n(rest, (size_t)(dot - rest)));
}

bool session_browse(Session *s, const char *module, Str *out) {
    const char *prefix = module && *trim(module) ? fmt_text("%s.", trim(module)) : "";
    SymbolVec names = {0};
    env_each_name(s->env, &names);
    for (size_t i = 0; i < names.len; i++) {
        const Symbol *name = names.data[i];
        if (strncmp(name->text, prefix, strlen(prefix)) != 0 || name->text[0] == '_' ||
            strstr(name->text, "._") || (*prefix && is_of_import(s, trim(module), name)))
            continue;
        Binding b = env_find(s->env, name, SIGIL_GLOBAL);
        if (b.kind == BIND_GLOBAL && (*prefix || !b.global->internal))
            show_binding(out, name, b.global->scheme);
    }
    if (*prefix && !out->len)
        browse_library(trim(module), out);
    for (size_t i = 0; *prefix && i < names.len; i++) {
        Binding b = env_find(s->env, names.data[i], SIGIL_NONE);
        if (b.kind == BIND_OP && !op_is_internal(b.op) &&
            strncmp(names.data[i]->text, prefix, strlen(prefix)) == 0) {
            op_print_signature(out, b.op, 0);
            str_add_char(out, '\n');
        }
    }
    if (*prefix && !out->len)
        return no_such_module(s, trim(module));
    return true;
}

/* ---- kernels --------------------------------------------------------------------------------- */

bool session_llvm(Session *s, const char *expr, bool assembly, Str *out) {
    launch_trace_kernels(s->interp, assembly ? LAUNCH_TRACE_ASM : LAUNCH_TRACE_LLVM, out);
    SessionStatus status = session_enter(s, expr, strlen(expr), false);
    launch_trace_kernels(s->interp, LAUNCH_TRACE_NONE, NULL);
    return status == SESSION_OK;
}

/* ---- canonical text -------------------------------------------------------------------------- */

typedef struct FormatJob {
    Session *s;
    const char *path;
    bool tvm;
    Str *out;
    SessionStatus status;
} FormatJob;

static BareName find_bare(void *ctx, const Symbol *name) {
    Session *s = ctx;
    Binding b = env_find(s->env, name, SIGIL_NONE);
    switch (b.kind) {
    case BIND_CTOR: return BARE_CTOR;
    case BIND_OP: return b.op->foreign ? BARE_GLOBAL : BARE_OPERATOR;
    case BIND_GLOBAL: return BARE_GLOBAL;
    case BIND_NONE:
    case BIND_TYPE:
    case BIND_MODULE: break;
    }
    return prelude_find_known(s, name) == KNOWN_NOTHING ? BARE_NOTHING : BARE_GLOBAL;
}

static bool has_operand(void *ctx, const Symbol *op, const Symbol *name) {
    Session *s = ctx;
    Binding b = env_find(s->env, op, SIGIL_NONE);
    if (b.kind != BIND_OP || op_attr_index(b.op, name->text) >= 0)
        return false;
    for (int i = 0; i < b.op->nargs; i++)
        if (strcmp(op_arg(b.op, i).name, name->text) == 0)
            return true;
    return false;
}

static void format_file(void *arg) {
    FormatJob *job = arg;
    Diags *diags = mem_new(Diags);
    Source *source = session_read_file(job->s, job->path, diags);
    Module *module = NULL;
    ParseScope scope;
    session_parse_scope(job->s, &scope);
    ParseOptions options = {.scope = &scope};
    job->status = SESSION_FAILED;
    if (source && parse_module(source, &options, diags, &module) == PARSE_OK) {
        PrintOptions print = {.tvm = job->tvm,
                              .find_bare = find_bare,
                              .has_operand = has_operand,
                              .ctx = job->s,
                              .diags = diags};
        ast_print_module(job->out, module, &print);
        job->status = diags->errors ? SESSION_FAILED : SESSION_OK;
    }
    session_print_diags(job->s, diags);
}

SessionStatus session_format_file(Session *s, const char *path, bool tvm, Str *out) {
    FormatJob job = {s, path, tvm, out, SESSION_FAILED};
    return session_with_stack(s, format_file, &job) ? job.status : SESSION_FAILED;
}
