/* SPDX-License-Identifier: Apache-2.0 */
/* `import_onnx("m.onnx")`: a model is a module that the session makes of the file (EnvHooks.import), and the call is
 * the `model` in it. Its type comes from the file, so that the path must be there when the program is read. */
#include <string.h>

#include "types/infer/state.h"

typedef struct Finder {
    Infer *I;
    bool ok;
} Finder;

static void visit(void *ctx, Ast *e);

static bool calls_import(const Ast *e) {
    return e->kind == AST_CALL && e->a->kind == AST_NAME && e->a->name.sigil != SIGIL_LOCAL &&
           strcmp(e->a->name.sym->text, "import_onnx") == 0;
}

static void import_model(Finder *f, Ast *e) {
    const Ast *path = e->args.len == 1 ? e->args.data[0] : NULL;
    if (!path || path->kind != AST_STRING) {
        Diag *d = infer_error(f->I, DIAG_R0510, path ? path->span : e->span,
                              "`import_onnx` takes one path, written out as a string");
        if (d)
            diag_add_fact(
                d,
                "the type of the model comes from its file, which is read before the program runs");
        f->ok = false;
        return;
    }
    Item *item = mem_new(Item);
    *item = (Item){.kind = ITEM_IMPORT,
                   .span = e->span,
                   .path = path->text,
                   .as = sym_intern_n(path->text, path->text_len)};
    const EnvHooks *hooks = &f->I->env->hooks;
    if (!(hooks->import ? hooks->import(hooks->ctx, f->I->env, item, f->I->diags)
                        : env_open_module(f->I->env, item, f->I->diags))) {
        f->ok = false;
        return;
    }
    Name name = {sym_intern(fmt_text("%s.model", item->as->text)), SIGIL_GLOBAL, e->span};
    *e = (Ast){.kind = AST_NAME, .span = e->span, .op_span = e->op_span, .name = name};
}

static void visit_children(Finder *f, Ast *e) {
    visit(f, e->a);
    visit(f, e->b);
    visit(f, e->c);
    for (size_t i = 0; i < e->args.len; i++)
        visit(f, e->args.data[i]);
    if (e->kind == AST_CALL)
        ast_attrs_each(&e->attrs, visit, f);
    else if (e->kind == AST_FN)
        visit(f, e->fn->body);
    else if (e->kind == AST_MATCH)
        for (size_t i = 0; i < e->arms.len; i++) {
            visit(f, e->arms.data[i].guard);
            visit(f, e->arms.data[i].body);
        }
    else if (ast_has_indices(e))
        for (size_t i = 0; i < e->indices.len; i++) {
            visit(f, e->indices.data[i].at);
            visit(f, e->indices.data[i].begin);
            visit(f, e->indices.data[i].end);
            visit(f, e->indices.data[i].step);
        }
}

static void visit(void *ctx, Ast *e) {
    Finder *f = ctx;
    for (; e && f->ok && mem_stack_left() > 64 << 10; e = e->body) {
        if (calls_import(e))
            import_model(f, e);
        else
            visit_children(f, e);
    }
}

bool infer_import_models(Infer *I) {
    Finder f = {I, true};
    const Source *source = I->module->source;
    if (!source || !strstr(source->text, "import_onnx"))
        return true;
    for (size_t i = 0; i < I->module->items.len && f.ok; i++) {
        const Item *item = I->module->items.data[i];
        visit(&f, item->value);
        if (item->fn)
            visit(&f, item->fn->body);
    }
    return f.ok;
}
