/* SPDX-License-Identifier: Apache-2.0 */
/* A model is imported as a module, and the rest is said in Relay: inputs are read by `load`, outputs written by
 * `save`. What a small input holds is known before the model is translated, so that it may be a shape or an axis. */
#include "repl/model.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "eval/value.h"
#include "interchange/onnx_export.h"
#include "interchange/translate.h"
#include "interchange/tvm.h"
#include "interchange/tvm_write.h"
#include "repl/session_internal.h"

bool session_is_model(Session *s, const char *path) {
    struct stat st;
    Diags diags = {0};
    size_t n = strlen(path);
    /* The name decides whether it is worth looking at, the contents what it is. */
    if (n > 5 && strcmp(path + n - 5, ".onnx") == 0)
        return true;
    if (n > 4 && strcmp(path + n - 4, ".rly") == 0)
        return false;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    Source *source = session_read_file(s, path, &diags);
    return source && onnx_is_model((const unsigned char *)source->text, source->len);
}

static bool fail(Session *s, DiagCode code, const char *message) {
    Diags *diags = mem_new(Diags);
    diag_error(diags, code, span_none(), "%s", message);
    session_print_diags(s, diags);
    return false;
}

static bool evaluate(Session *s, const char *name, const Str *text, SessionStatus *status) {
    *status = session_evaluate(s, name, str_text(text), text->len);
    return *status == SESSION_OK;
}

static const char *find_input(const char *const *inputs, int n, const char *name) {
    size_t len = strlen(name);
    for (int i = 0; i < n; i++)
        if (strncmp(inputs[i], name, len) == 0 && inputs[i][len] == '=')
            return inputs[i] + len + 1;
    return NULL;
}

/* Loads an input under the name `_input0`; a sequence as what the model says. */
static bool load_input(Session *s, const OnnxValue *in, size_t k, const char *path,
                       OnnxKnowns *known, SessionStatus *status) {
    Str text = {0};
    if (in->type->kind != ONNX_TYPE_TENSOR)
        return true; /* loaded by its type, which the translation says */
    str_add(&text, "load(");
    str_add_quoted(&text, path, strlen(path));
    str_add(&text, ")");
    if (!evaluate(s, fmt_text("input %s", in->name), &text, status))
        return false;
    Value v = s->result.value;
    session_bind(s, fmt_text("_input%zu", k), v, (Scheme *)s->result.scheme);
    if (v.tag == VAL_TENSOR || v.tag == VAL_SCALAR) {
        const Tensor *t = value_to_tensor(v);
        OnnxKnown one = {in->name, t->dtype, t->rank, t->shape, tensor_data(t)};
        vec_push(known, one);
    }
    return true;
}

/* Reads the model; NULL after a diagnostic. */
static OnnxModel *read_model(Session *s, const char *path) {
    Diags *diags = mem_new(Diags);
    Source *source = session_read_file(s, path, diags);
    OnnxModel *m = source ? onnx_read(path, (const unsigned char *)source->text, source->len,
                                      span_none(), diags)
                          : NULL;
    session_print_diags(s, diags);
    return m;
}

static bool is_initializer(const OnnxGraph *g, const char *name) {
    for (size_t i = 0; i < g->initializers.len; i++)
        if (strcmp(g->initializers.data[i]->name, name) == 0)
            return true;
    return false;
}

static const char *file_name(const char *output) {
    Str out = {0};
    for (const char *p = output; *p; p++)
        str_add_char(&out,
                     *p == '/' || (unsigned char)*p < ' ' || (p == output && *p == '.') ? '_' : *p);
    return str_text(&out);
}

static bool check_inputs(Session *s, const OnnxModel *m, const char *const *inputs, int ninputs) {
    for (int i = 0; i < ninputs; i++) {
        bool found = false;
        for (size_t k = 0; k < m->graph->inputs.len; k++) {
            const char *name = m->graph->inputs.data[k]->name;
            size_t len = strlen(name);
            found |= strncmp(inputs[i], name, len) == 0 && inputs[i][len] == '=';
        }
        if (!found)
            return fail(s, DIAG_R0507,
                        fmt_text("`%s` has no input `%.*s`", m->path, (int)strcspn(inputs[i], "="),
                                 inputs[i]));
    }
    for (size_t k = 0; k < m->graph->inputs.len; k++) {
        const char *name = m->graph->inputs.data[k]->name;
        if (!is_initializer(m->graph, name) && !find_input(inputs, ninputs, name))
            return fail(
                s, DIAG_R0507,
                fmt_text("input `%s` of `%s` has no value: give it by `--input=%s=FILE.npy`", name,
                         m->path, name));
    }
    return true;
}

static void import_text(Str *text, const char *path) {
    str_add(text, "import ");
    str_add_quoted(text, path, strlen(path));
    str_add(text, ";\n");
}

SessionStatus session_run_model(Session *s, const char *path, const char *const *inputs,
                                int ninputs, const char *save) {
    OnnxModel *m = read_model(s, path);
    if (!m || !check_inputs(s, m, inputs, ninputs))
        return SESSION_FAILED;
    SessionStatus status = SESSION_OK;
    OnnxKnowns *known = mem_new(OnnxKnowns);
    for (size_t i = 0; i < m->graph->inputs.len; i++) {
        const OnnxValue *in = m->graph->inputs.data[i];
        if (!is_initializer(m->graph, in->name) &&
            !load_input(s, in, i, find_input(inputs, ninputs, in->name), known, &status))
            return status;
    }
    s->known_inputs = known;
    OnnxProgram program = {0};
    Diags *diags = mem_new(Diags);
    bool translated = onnx_translate(m, path, known, diags, &program);
    session_print_diags(s, diags);
    if (!translated)
        return SESSION_FAILED;
    Str text = {0}, calls = {0}, saves = {0};
    import_text(&text, path[0] == '/' || path[0] == '.' ? path : fmt_text("./%s", path));
    for (size_t i = 0, k = 0; i < m->graph->inputs.len; i++) {
        const OnnxValue *in = m->graph->inputs.data[i];
        if (is_initializer(m->graph, in->name))
            continue;
        if (in->type->kind != ONNX_TYPE_TENSOR) {
            const char *file = find_input(inputs, ninputs, in->name);
            str_printf(&text, "let _input%zu: %s = load(", i, program.inputs.data[k].type);
            str_add_quoted(&text, file, strlen(file));
            str_add(&text, ");\n");
        }
        str_printf(&calls, ", _input%zu", i);
        k++;
    }
    str_printf(&text, "let _outputs = run(weights%s);\n", str_text(&calls));
    if (!evaluate(s, "run", &text, &status))
        return status;
    if (save && mkdir(save, 0777) != 0 && errno != EEXIST) {
        fail(s, DIAG_R0505, fmt_text("`%s` cannot be made: %s", save, strerror(errno)));
        return SESSION_FAILED;
    }
    for (size_t i = 0; i < program.outputs.len; i++) {
        const OnnxPort *out = &program.outputs.data[i];
        const char *value = program.outputs.len == 1 ? "_outputs" : fmt_text("_outputs.%zu", i);
        if (save) {
            const char *file = fmt_text("%s/%s.%s", save, file_name(out->name),
                                        out->many ? "npz" : "npy");
            str_printf(&saves, "save(%s, ", value);
            str_add_quoted(&saves, file, strlen(file));
            str_add(&saves, ");\n");
        } else
            str_printf(&saves, "%s\n", value);
    }
    return session_run_text(s, "outputs", str_text(&saves), saves.len, false);
}

/* Lists are as deep as they are long, so the last part is not a call. */
static ExportValue export_value(Value v) {
    ExportValue out = {0}, *to = &out;
    for (;;) {
        switch ((ValueTag)v.tag) {
        case VAL_SCALAR:
        case VAL_TENSOR: to->tensor = value_to_tensor(v); return out;
        case VAL_TUPLE: to->is_tuple = true; break;
        case VAL_CTOR: to->ctor = data_ctor(v); break;
        default: return out;
        }
        to->nparts = value_count(v);
        if (!to->nparts)
            return out;
        to->parts = mem_new_n(ExportValue, to->nparts);
        for (uint32_t i = 0; i + 1 < to->nparts; i++)
            to->parts[i] = export_value(value_part(v, i));
        v = value_part(v, to->nparts - 1);
        to = &to->parts[to->nparts - 1];
    }
}

static ExportValue find_value(void *ctx, Global *g) {
    Session *s = ctx;
    Value v;
    return interp_get_global(s->interp, g, &v) ? export_value(v) : (ExportValue){0};
}

typedef struct ExportJob {
    Session *s;
    Expr *main;
    Diags *diags;
    Str model;
    bool exported;
} ExportJob;

static Global *find_main(Session *s) {
    Global *g = env_find(s->env, sym_intern("main"), SIGIL_NONE).global;
    g = g ? g : env_find(s->env, sym_intern("main"), SIGIL_GLOBAL).global;
    return g && g->value && g->value->kind == EXPR_FN ? g : NULL;
}

static SessionStatus write_all(Session *s, const char *to, const Str *text) {
    Output out;
    output_open(&out, to);
    output_add(&out, str_text(text), text->len);
    if (output_close(&out))
        return SESSION_OK;
    fail(s, DIAG_R0505, fmt_text("`%s` cannot be written: %s", to, strerror(out.why)));
    return SESSION_FAILED;
}

/* Whether a function has a derivative, or calls one that has. */
typedef struct Search {
    Map seen; /* Global */
} Search;

static bool has_derivative(void *arg, const Expr *e) {
    Search *search = arg;
    if (e->kind == EXPR_GRAD || (e->kind == EXPR_CALL && e->mode))
        return true;
    if (e->kind != EXPR_GLOBAL || !e->global->value || e->global->value->kind != EXPR_FN ||
        map_has(&search->seen, e->global))
        return false;
    map_set(&search->seen, e->global, search);
    return expr_any(e->global->value, has_derivative, search);
}

/* With the code that runs for derivatives in their place, as when it has run hot. */
static Expr *prepare_function(void *ctx, Expr *fn) {
    Session *s = ctx;
    Search search = {0};
    DependencyVec deps = {0};
    VarVec captured = {0};
    if (!expr_any(fn, has_derivative, &search))
        return fn;
    expr_free_vars(fn, &captured);
    Expr *made = optimise(&s->passes, fn, fn->fn->name, &captured, &deps);
    return made->kind == EXPR_FN ? made : fn;
}

/* Why the last derivative that is no code is none. */
static const char *why_no_code(void *ctx) {
    const Session *s = ctx;
    return s->passes.notes.len ? vec_last(&s->passes.notes) : NULL;
}

static void export_main(void *arg) {
    ExportJob *job = arg;
    ExportAsk ask = {find_value, prepare_function, why_no_code, job->s};
    job->exported = onnx_export(job->main, "main", &ask, job->diags, &job->model);
}

/* Writes `main` of a program as a model. The program's items run, since their values are the weights. */
static SessionStatus export_program(Session *s, const char *path, const char *to) {
    SessionStatus status = session_load_quietly(s, path);
    if (status != SESSION_OK)
        return status;
    Global *g = find_main(s);
    if (!g || g->kind != GLOBAL_DEF) {
        fail(s, DIAG_R0509,
             fmt_text("`%s` has no function `main`, which is what an ONNX model is made of", path));
        return SESSION_FAILED;
    }
    ExportJob job = {.s = s, .main = g->value, .diags = mem_new(Diags)};
    bool done = session_with_stack(s, export_main, &job);
    session_print_diags(s, job.diags);
    if (!done || !job.exported)
        return SESSION_FAILED;
    return write_all(s, to, &job.model);
}

typedef struct GraphJob {
    Session *s;
    VEC(Global *) roots;
    Diags *diags;
    Str graph;
    bool written;
} GraphJob;

static void write_graph(void *arg) {
    GraphJob *job = arg;
    job->written = tvm_write(job->roots.data, job->roots.len, find_value, job->s, job->diags,
                             &job->graph);
}

/* Writes `main` of a program and what it uses as a graph of TVM, or all its functions where it has no `main`. */
static SessionStatus export_graph(Session *s, const char *path, const char *to) {
    GraphJob job = {.s = s, .diags = mem_new(Diags)};
    SessionStatus status = session_load_quietly(s, path);
    if (status != SESSION_OK)
        return status;
    Global *g = find_main(s);
    SymbolVec names = {0};
    if (g)
        vec_push(&job.roots, g);
    else
        env_each_name(s->env, &names);
    for (size_t i = 0; i < names.len; i++) {
        g = env_find_loaded(s->env, names.data[i]);
        if (g && !g->internal && g->value && g->value->kind == EXPR_FN)
            vec_push(&job.roots, g);
    }
    if (!job.roots.len) {
        fail(s, DIAG_R0509,
             fmt_text("`%s` has no functions, which are what a graph of TVM is made of", path));
        return SESSION_FAILED;
    }
    bool done = session_with_stack(s, write_graph, &job);
    session_print_diags(s, job.diags);
    return done && job.written ? write_all(s, to, &job.graph) : SESSION_FAILED;
}

/* Writes a program after what checks it, and writes what it stores, has run. */
static SessionStatus write_checked(Session *s, const char *to, const Str *program,
                                   const Str *checks) {
    Output out;
    SessionStatus status;
    output_open(&out, to);
    output_add(&out, str_text(program), program->len);
    if (output_flush(&out) && !evaluate(s, "convert", checks, &status)) {
        output_drop(&out);
        return status;
    }
    if (!output_close(&out)) {
        fail(s, DIAG_R0505, fmt_text("`%s` cannot be written: %s", to, strerror(out.why)));
        return SESSION_FAILED;
    }
    return SESSION_OK;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

typedef struct TvmJob {
    const char *path;
    const Source *source;
    Diags *diags;
    TvmProgram program;
    bool read;
} TvmJob;

static void read_tvm(void *arg) {
    TvmJob *job = arg;
    job->read = tvm_read(job->path, job->source->text, job->source->len, job->diags, &job->program);
}

/* Writes a graph of TVM's as a program. The program is checked, with its constants in metadata, before it is written. */
static SessionStatus convert_tvm(Session *s, const char *path, const char *to) {
    TvmJob job = {.path = path, .diags = mem_new(Diags)};
    job.source = session_read_file(s, path, job.diags);
    bool done = job.source && session_with_stack(s, read_tvm, &job);
    session_print_diags(s, job.diags);
    if (!done || !job.read)
        return SESSION_FAILED;
    const TvmProgram *p = &job.program;
    const char *weights = fmt_text("%.*s.safetensors",
                                   (int)(strlen(to) - (ends_with(to, ".rly") ? 4 : 0)), to);
    const char *slash = strrchr(weights, '/');
    Str head = {0}, text = {0}, checked = {0};
    if (p->types.len)
        str_printf(&head, "type StoredConstants { StoredConstants {\n%s} }\n", str_text(&p->types));
    str_printf(&text, "// Translated from a graph of TVM.\n%s", str_text(&head));
    str_add(&checked, str_text(&head));
    if (p->types.len) {
        const char *file = slash ? slash + 1 : weights;
        str_add(&text, "let constants: StoredConstants = load(");
        str_add_quoted(&text, file, strlen(file));
        str_add(&text, ");\n\n");
        str_printf(&checked, "let constants = StoredConstants { %s };\n", str_text(&p->stored));
    }
    str_add(&text, str_text(&p->text));
    str_add(&checked, str_text(&p->text));
    if (p->types.len) {
        str_add(&checked, ";\nsave(constants, ");
        str_add_quoted(&checked, weights, strlen(weights));
        str_printf(&checked, ");\n%s", str_text(&p->metadata));
    }
    return write_checked(s, to, &text, &checked);
}

SessionStatus session_convert_model(Session *s, const char *path, const char *to) {
    if (ends_with(to, ".onnx"))
        return export_program(s, path, to);
    if (ends_with(to, ".json") && !ends_with(path, ".onnx") && !ends_with(path, ".json"))
        return export_graph(s, path, to);
    if (ends_with(to, ".json")) {
        fail(s, DIAG_R0509, fmt_text("`%s`: a graph of TVM is written of a program of Relay", to));
        return SESSION_FAILED;
    }
    if (ends_with(path, ".json"))
        return convert_tvm(s, path, to);
    OnnxModel *m = read_model(s, path);
    OnnxProgram program = {0};
    OnnxMembers members = {0};
    if (!m)
        return SESSION_FAILED;
    size_t n = strlen(to), stem = n > 4 && strcmp(to + n - 4, ".rly") == 0 ? n - 4 : n;
    const char *weights = fmt_text("%.*s.safetensors", (int)stem, to);
    const char *slash = strrchr(weights, '/');
    Diags *diags = mem_new(Diags);
    bool translated = onnx_translate(m, slash ? slash + 1 : weights, NULL, diags, &program);
    session_print_diags(s, diags);
    if (!translated)
        return SESSION_FAILED;
    /* The model is imported and so checked before the weights are written, and the program takes its path
     * after them: neither is left without the other. */
    Str text = {0};
    import_text(&text, path[0] == '/' || path[0] == '.' ? path : fmt_text("./%s", path));
    onnx_find_members(m, &members);
    if (members.len) {
        str_add(&text, "save(stored, ");
        str_add_quoted(&text, weights, strlen(weights));
        str_add(&text, ");\n");
    }
    str_add(&program.text, str_text(&program.entry));
    return write_checked(s, to, &program.text, &text);
}
