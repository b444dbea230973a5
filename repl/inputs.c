/* SPDX-License-Identifier: Apache-2.0 */
/* `relay run FILE --input name=file.npy`: values for the parameters of @main and for free_vars.
 *
 * What an input is, is said in Relay: `load("file.npy")`, or for `name=random` a draw of the type's
 * shape (an unknown size is 1), so that files are read and checked in one place. */
#include <string.h>

#include "repl/inputs.h"

static const char *find_input(Session *s, const Symbol *name) {
    size_t n = name->len;
    for (int i = 0; i < s->ninputs; i++)
        if (strncmp(s->inputs[i], name->text, n) == 0 && s->inputs[i][n] == '=')
            return s->inputs[i] + n + 1;
    return NULL;
}

/* Numbers in [0, 1), or zeros of a dtype that is no float. Each input has a key of its own. */
static bool add_random(Session *s, Str *out, Type *type) {
    uint32_t rank;
    Type **dims;
    DType dtype;
    if (!type_get_rank(type, &rank, &dims) || !type_get_dtype(type, &dtype))
        return false;
    Str shape = {0};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n = 1;
        (void)type_get_int(dims[i], &n);
        str_printf(&shape, "%s%lld", i ? ", " : "", (long long)n);
    }
    const char *name = dtype_info[dtype].name;
    if (dtype_is_float(dtype))
        str_printf(out,
                   "random.uniform(random.threefry_key(%llu), 0.0, 1.0, out_shape=[%s], "
                   "out_dtype=%s).1",
                   (unsigned long long)(s->options.seed + s->draws++), str_text(&shape), name);
    else
        str_printf(out, "zeros(shape=[%s], dtype=%s)", str_text(&shape), name);
    return true;
}

/* Appends the expression that gives input `name` of `type`. False after a diagnostic. */
static bool input_add(Session *s, Str *out, const Symbol *name, Type *type, Span span,
                      Diags *diags) {
    const char *value = find_input(s, name);
    if (!value) {
        Diag *d = diag_error(diags, DIAG_R0507, span, "`%s` has no value", name->text);
        diag_add_help(d, "`relay run FILE --input %s=file.npy`, or `--input %s=random`", name->text,
                      name->text);
        return false;
    }
    if (strcmp(value, "random") != 0) {
        origin_read(type, span_none(), value);
        str_add(out, "load(");
        str_add_quoted(out, value, strlen(value));
        str_add(out, ")");
        return true;
    }
    if (add_random(s, out, type_resolve(type)))
        return true;
    diag_error(diags, DIAG_R0507, span,
               "`%s` is %s, of which there is no random value: only tensors "
               "of known dtype and rank can be drawn",
               name->text, type_text(type));
    return false;
}

SessionStatus inputs_run_main(Session *s, Global *main_fn, Diags *diags) {
    Fn *fn = main_fn->value->fn;
    if (fn->nparams > 0 && !s->ninputs && !s->options.calls_main)
        return SESSION_OK; /* a library's */
    Type *type = type_resolve(main_fn->scheme->type);
    Str text = {0};
    str_add(&text, "@main(");
    for (uint32_t i = 0; i < fn->nparams; i++) {
        if (i)
            str_add(&text, ", ");
        if (!input_add(s, &text, fn->params[i]->name, type->args[i], fn->params[i]->span, diags))
            return SESSION_FAILED;
    }
    str_add(&text, ")");
    Source *source = source_new("main", str_text(&text), text.len, 0);
    return session_run_source(s, source, 0, RUN_SHOW, INFER_FILE, false, diags);
}

static bool fill(Session *s, Global *g, Diags *diags) {
    Str text = {0}, type = {0};
    scheme_print(&type, g->scheme, NULL);
    str_printf(&text, "let _input: %s = ", str_text(&type));
    if (!input_add(s, &text, g->name, g->scheme->type, g->span, diags))
        return false;
    str_add(&text, ";");
    Source *source = source_new("input", str_text(&text), text.len, 0);
    if (session_run_source(s, source, 0, 0, INFER_FILE, false, diags) != SESSION_OK)
        return false;
    Global *found = env_find_loaded(s->env, sym_intern("_input"));
    Value v;
    if (!found || !interp_get_global(s->interp, found, &v))
        return false;
    interp_set_global(s->interp, g, v);
    return true;
}

typedef struct Finder {
    Map seen;
    VEC(Global *) found;
} Finder;

static void find_free_vars(void *ctx, Expr *e) {
    Finder *f = ctx;
    if (map_has(&f->seen, e))
        return;
    map_set(&f->seen, e, e);
    if (e->kind == EXPR_GLOBAL && e->global->kind == GLOBAL_FREE_VAR &&
        !map_has(&f->seen, e->global)) {
        map_set(&f->seen, e->global, e->global);
        vec_push(&f->found, e->global);
    }
    expr_each_child(e, find_free_vars, f);
}

bool inputs_fill(Session *s, const CoreItem *item, Diags *diags) {
    Expr *e = item->expr ? item->expr : item->global ? item->global->value : NULL;
    if (!s->ninputs || !e)
        return true; /* the first use of a free variable says that it has no value */
    Finder f = {0};
    find_free_vars(&f, e);
    for (size_t i = 0; i < f.found.len; i++) {
        bool given = find_input(s, f.found.data[i]->name) != NULL;
        if (given && !fill(s, f.found.data[i], diags))
            return false;
    }
    return true;
}
