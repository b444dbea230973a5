/* SPDX-License-Identifier: Apache-2.0 */
/* The functions in a value that was there before, for a derivative that is made while the program runs: Note [Functions of values] in
 * passes/reverse/functions.c.
 *
 * A value is walked along its type, so that parts in which no function can be are not looked at. It is given up where a
 * function is no closure of a literal as it was written (a derivative, a twin of one, a constructor), where a reference may
 * hold a function, which may be another one later, and where the value is large. */
#include "eval/held.h"

#include "eval/machine.h"
#include "passes/grad.h"

enum {
    MOST_VALUES = 2000, /* that are looked at */
    DEEPEST = 100,      /* value in value, but for the last parts */
    KNOWN_DEPTH = 6     /* closures that captured closures */
};

typedef struct Finder {
    Interp *in;
    HeldFunctions *out;
    Map closures[2]; /* that were met: in data, and as what is known */
    Map found;       /* what was added, by name */
    uint32_t left;
} Finder;

/* is_known: the value is known as a function, if it is one. */
static bool find(Finder *f, Value v, Type *type, bool is_known, int depth);

/* Whether the code of a closure is that of its literal, which captured what is free in it. */
static bool is_as_written(Interp *in, const Closure *c) {
    const Fn *fn = c->fn->fn;
    GradKind kind;
    if (!c->code || c->code->fn != c->fn || c->code->from || c->code->made || path_of_fn(c->fn) ||
        (fn->base && fn->base != c->fn) || grad_is_template(&in->passes, c->fn, &kind))
        return false;
    for (int m = 0; m < AD_MODES; m++)
        if (fn->own_twins[m])
            return false;
    VarVec captured = {0};
    expr_free_vars(c->fn, &captured);
    bool same = captured.len == c->ncaptured;
    for (uint32_t i = 0; same && i < c->ncaptured; i++)
        same = captured.data[i] == c->code->captured[i];
    return same;
}

static const Op *operator_of(Interp *in, const Closure *c) {
    const Expr *body = c->fn->fn->body;
    bool calls = body->kind == EXPR_CALL && body->a->kind == EXPR_OP;
    return calls && map_find(&in->op_values, body->a->op) == c ? body->a->op : NULL;
}

static bool is_constructor(Interp *in, const Closure *c) {
    const Expr *body = c->fn->fn->body;
    bool calls = body->kind == EXPR_CALL && body->a->kind == EXPR_CTOR;
    return calls && map_find(&in->ctor_values, body->a->ctor) == c;
}

static void add_function(Finder *f, const Closure *c, Type *type, bool is_known) {
    Str key = {0};
    str_printf(&key, "%p %d %s", (void *)c->fn, is_known, type ? type_text(type) : "");
    const Symbol *name = sym_intern(str_text(&key));
    if (!map_enter(&f->found, name))
        return;
    HeldFunction held = {.literal = c->fn,
                         .self = c->ncaptured,
                         .ncaptured = c->ncaptured,
                         .op = operator_of(f->in, c),
                         .type = type,
                         .is_known = is_known};
    for (uint32_t i = 0; i < c->ncaptured; i++)
        if (c->captured[i].tag == VAL_CLOSURE && c->captured[i].p == c)
            held.self = i;
    vec_push(&f->out->all, held);
}

static bool find_closure(Finder *f, Closure *c, Type *type, bool is_known, int depth) {
    if (!is_as_written(f->in, c) || is_constructor(f->in, c))
        return false;
    is_known &= depth < KNOWN_DEPTH;
    add_function(f, c, type, is_known);
    if (!map_enter(&f->closures[is_known], c))
        return true;
    for (uint32_t i = 0; i < c->ncaptured; i++)
        if (!find(f, c->captured[i], c->code->captured[i]->type, is_known, depth + 1))
            return false;
    return true;
}

/* The type of a part of a tuple or of data; NULL: it is not known. */
static Type *type_of_part(Value v, Type *type, uint32_t i) {
    type = type ? type_resolve(type) : NULL;
    if (v.tag == VAL_TUPLE)
        return type && type->tag == TY_TUPLE && i < type->nargs ? type->args[i] : NULL;
    const Ctor *ctor = data_ctor(v);
    const TypeDecl *decl = ctor->decl;
    if (!type || type->tag != TY_DATA || type->decl != decl || decl->nexists ||
        type->nargs != decl->nparams || i >= ctor->nfields)
        return NULL;
    return type_substitute(ctor->fields[i], decl->params, type->args, type->nargs);
}

static bool find(Finder *f, Value v, Type *type, bool is_known, int depth) {
    for (;; is_known = false) {
        if (type && !type_may_be_function(type))
            return true;
        if (!f->left-- || depth > DEEPEST)
            return false;
        switch ((ValueTag)v.tag) {
        case VAL_SCALAR:
        case VAL_TENSOR:
        case VAL_STRING: return true;
        case VAL_CLOSURE: return find_closure(f, v.p, type, is_known, depth);
        case VAL_REF:
            type = type ? type_resolve(type) : NULL;
            return type && type->tag == TY_REF && !type_may_be_function(type->elem);
        case VAL_BUILTIN:
        case VAL_DUAL:
        case VAL_ABSENT: return false;
        case VAL_TUPLE:
        case VAL_CTOR: break;
        }
        uint32_t n = value_count(v);
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!find(f, value_part(v, i), type_of_part(v, type, i), false, depth + 1))
                return false;
        if (!n)
            return true;
        type = type_of_part(v, type, n - 1);
        v = value_part(v, n - 1);
    }
}

/* The literal of a closure with those that it captured; NULL where one of them is not as it was written. */
static struct Known *literal_of_closure(Interp *in, const Closure *c, int depth) {
    if (depth == KNOWN_DEPTH || !is_as_written(in, c) || is_constructor(in, c))
        return NULL;
    struct Known **captured = mem_new_n(struct Known *, c->ncaptured + 1);
    uint32_t self = c->ncaptured;
    for (uint32_t i = 0; i < c->ncaptured; i++) {
        const Closure *inner = c->captured[i].p;
        if (c->captured[i].tag != VAL_CLOSURE)
            continue;
        if (inner == c) {
            self = i;
            continue;
        }
        captured[i] = literal_of_closure(in, inner, depth + 1);
        if (!captured[i])
            return NULL;
    }
    return reverse_known(c->fn, captured, self);
}

static const Value *value_of_let(Interp *in, const Global *g) {
    const Cell *cell = g->kind == GLOBAL_LET && !g->broken ? weak_find(&in->cells, g) : NULL;
    return cell && cell->set ? &cell->value : NULL;
}

bool held_find(void *interp, const Global *g, Type *type, HeldFunctions *out) {
    Interp *in = interp;
    const Value *v = value_of_let(in, g);
    Finder f = {.in = in, .out = out, .left = MOST_VALUES};
    if (!v)
        return false;
    out->whole = v->tag == VAL_CLOSURE ? literal_of_closure(in, v->p, 0) : NULL;
    return !type || find(&f, *v, type, out->whole != NULL, 0);
}

HeldFunctions *held_by_closure(Interp *in, const Closure *c, const Code *code) {
    HeldFunctions *held = mem_new(HeldFunctions);
    Finder f = {.in = in, .out = held, .left = MOST_VALUES};
    bool any = false;
    for (uint32_t i = 0; i < c->ncaptured && i < code->ncaptured; i++) {
        bool is_self = c->captured[i].tag == VAL_CLOSURE && c->captured[i].p == c;
        if (!is_self && !find(&f, c->captured[i], code->captured[i]->type, true, 1))
            return NULL;
    }
    for (size_t i = 0; i < held->all.len; i++)
        any |= !held->all.data[i].is_known;
    return any ? held : NULL;
}
