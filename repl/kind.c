/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/kind.h"

#include "repl/session_internal.h"

#include <string.h>

static const char *kind_text(Kind kind) {
    switch (kind) {
    case KIND_TYPE: return "Type";
    case KIND_SHAPE: return "Shape";
    case KIND_DTYPE: return "BaseType";
    case KIND_DIM: return "Dim";
    case KIND_EFFECT: return "Effect";
    }
    return "";
}

/* `Type -> Type`, `(Dim, Dim) -> Type`, `Type`. */
static const char *decl_kind(const TypeDecl *decl) {
    Str out = {0};
    if (decl->nparams > 1)
        str_add_char(&out, '(');
    for (uint32_t i = 0; i < decl->nparams; i++)
        str_printf(&out, "%s%s", i ? ", " : "", kind_text(decl->params[i]->kind));
    if (decl->nparams)
        str_add(&out, decl->nparams > 1 ? ") -> " : " -> ");
    str_add(&out, "Type");
    return str_text(&out);
}

/* A name alone: NULL when no type has it. */
static const char *name_kind(Session *s, const Symbol *name) {
    DType dtype;
    if (strcmp(name->text, "Tensor") == 0)
        return "(Shape, BaseType) -> Type";
    if (strcmp(name->text, "Ref") == 0)
        return "Type -> Type";
    if (strcmp(name->text, "String") == 0)
        return "Type";
    if (dtype_find(name->text, name->len, &dtype))
        return "BaseType";
    const TypeDecl *decl = env_find_type(session_env(s), name);
    return decl ? decl_kind(decl) : NULL;
}

static const char *written_kind(Session *s, const AstType *t, Diags *diags) {
    switch (t->kind) {
    case AST_TYPE_NAME:
        if (t->args.len == 0) {
            const char *kind = name_kind(s, t->name);
            if (!kind)
                diag_error(diags, DIAG_R0102, t->span, "there is no type `%s`", t->name->text);
            return kind;
        }
        const TypeDecl *decl = env_find_type(session_env(s), t->name);
        if (!decl) {
            diag_error(diags, DIAG_R0102, t->span, "there is no type `%s`", t->name->text);
            return NULL;
        }
        if (decl->nparams != t->args.len) {
            diag_error(diags, DIAG_R0108, t->span, "type `%s` has %u parameter%s, and %zu %s given",
                       t->name->text, decl->nparams, decl->nparams == 1 ? "" : "s", t->args.len,
                       t->args.len == 1 ? "is" : "are");
            return NULL;
        }
        return "Type";
    case AST_TYPE_SHAPE: return "Shape";
    case AST_TYPE_DIM: return "Dim";
    case AST_TYPE_TENSOR:
    case AST_TYPE_FN:
    case AST_TYPE_TUPLE:
    case AST_TYPE_REF:
    case AST_TYPE_DERIV:
    case AST_TYPE_FORALL:
    case AST_TYPE_HOLE: return "Type";
    }
    return NULL;
}

bool session_kind(Session *s, const char *text, Str *out) {
    Diags *diags = mem_new(Diags);
    const char *kind = NULL;
    if (strcmp(text, "Tensor") == 0 ||
        strcmp(text, "Ref") == 0) { /* the reader wants them applied */
        kind = name_kind(s, sym_intern(text));
    } else {
        Source *source = source_new("input", text, strlen(text), SOURCE_PROMPT);
        AstType *t = parse_type(source, diags);
        if (t)
            kind = written_kind(s, t, diags);
    }
    if (kind)
        str_printf(out, "%s : %s\n", text, kind);
    session_print_diags(s, diags);
    return kind != NULL;
}
