/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer on the checker: any bytes are read and, if the reader takes them, checked over the whole
 * prelude and standard library; what it does not take is mended. What checks has schemes and core that print; what does not has a
 * diagnostic. The first byte chooses file or prompt. Nothing is evaluated.
 *
 * The prelude is checked once. A run gets a copy of the Env whose maps it may change. */
#include "base/map.h"
#include "base/mem.h"
#include "prelude/texts.h"
#include "repl/prelude.h"
#include "repl/session_internal.h"
#include "types/core/env_impl.h"
#include "types/mend/mend.h"
#include "types/mend/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STACK_BYTES = 1 << 30 };

typedef struct Input {
    const uint8_t *data;
    size_t size;
} Input;

static Session *session;

static void require(bool holds) {
    if (!holds)
        abort();
}

static void drop(void *ctx, const char *text, size_t n) {
    if (ctx) /* while setting up: what is wrong with the prelude */
        fwrite(text, 1, n, stderr);
}

/* Only modules that are there already: no file is read. */
static bool import(void *ctx, Env *env, const Item *item, Diags *diags) {
    (void)ctx;
    return env_open_module(env, item, diags);
}

static Map copy_of(const Map *map) {
    Map copy = {0};
    const void *key;
    void *value;
    for (size_t i = 0; map_next(map, &i, &key, &value);)
        map_set(&copy, key, value);
    return copy;
}

static void set_up(void *arg) {
    (void)arg;
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    session = session_new(&options);
    require(session != NULL);
    session_set_sink(session, &(SessionSink){drop, drop, session, true});
    require(prelude_load_all(session));
    for (const EmbeddedText *t = embedded_texts; t->name; t++) {
        if (strncmp(t->name, "stdlib/", 7) != 0)
            continue;
        Str text = {0};
        str_printf(&text, "import %.*s;", (int)strcspn(t->name + 7, "."), t->name + 7);
        session_run_text(session, "set up", str_text(&text), text.len, false);
    }
    session->sink.ctx = NULL;
    Env *env = session->env;
    env->hooks = (EnvHooks){.import = import};
    env->dependents = env->versions = env->specialised = (Map){0};
    env->residuals = (ResidualVec){0};
}

static void print_item(const CoreItem *item) {
    Str out = {0};
    if (item->scheme)
        scheme_print(&out, item->scheme, NULL);
    if (item->global && item->global->scheme)
        scheme_print(&out, item->global->scheme, NULL);
    if (item->expr)
        expr_print(&out, item->expr, NULL);
    if (item->global && item->global->value)
        expr_print(&out, item->global->value, NULL);
    if (item->decl)
        show_type_decl(&out, item->decl);
}

static void check_input(void *arg) {
    const Input *in = arg;
    bool prompt = in->size && (in->data[0] & 1);
    ParseScope scope;
    session_parse_scope(session, &scope);
    ParseOptions options = {.prompt = prompt, .scope = &scope};
    const char *text = (const char *)in->data + (in->size > 0);
    Source *source = source_new("fuzz", text, in->size - (in->size > 0),
                                prompt ? SOURCE_PROMPT : 0);
    Diags diags = {0};
    Module *module = NULL;
    ParseStatus read = parse_module(source, &options, &diags, &module);
    /* One in 64 of what is read and one in 2,048 of what is not: to mend is to read and to check dozens
     * of times, and most runs should be new inputs. */
    bool mends = hash_bytes(in->data, in->size, 0) % (read == PARSE_OK ? 64 : 2048) == 0;
    if (read == PARSE_INCOMPLETE || (read == PARSE_FAILED && !mends))
        return;
    Env saved = *session->env, *env = session->env;
    for (int k = 0; k < 3; k++)
        env->rules[k] = copy_of(&saved.rules[k]);
    env->session = env->here = mem_new(Namespace);
    env->no_mending = !mends;
    CoreItemVec items = {0};
    InferMode mode = prompt ? INFER_PROMPT : INFER_FILE;
    if (read == PARSE_OK) {
        bool ok = mend_infer_module(env, module, mode, &diags, &items);
        require(ok == (diags.errors == 0));
    } else {
        mend_reading(env, source, &options, mode, false, &diags, 0);
        require(diags.errors > 0);
    }
    for (size_t i = 0; i < items.len; i++)
        print_item(&items.data[i]);
    Str out = {0};
    for (size_t i = 0; i < diags.list.len; i++)
        diag_print(&out, diags.list.data[i], &(DiagLook){.style = DIAG_STYLE_FULL});
    require(env->here == env->session);
    *env = saved;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    mem_init();
    mem_call_on_stack(STACK_BYTES, set_up, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in = {data, size};
    if (mem_stack_left() > STACK_BYTES / 2) /* run.sh gives the process such a stack */
        check_input(&in);
    else
        mem_call_on_stack(STACK_BYTES, check_input, &in);
    return 0;
}
