/* SPDX-License-Identifier: Apache-2.0 */
/* Names in canonical text. For TVM each gets the sigil of what it means, found in the order in which
 * inference looks (types/infer/scope.c). */
#include <ctype.h>
#include <string.h>

#include "parser/print_internal.h"

enum { SIGIL_SHIFT = 24 };
static const uintptr_t bare_one = 1, sigil_one = (uintptr_t)1 << SIGIL_SHIFT;

static const char *sigil_text(Sigil sigil) {
    switch (sigil) {
    case SIGIL_NONE: return "";
    case SIGIL_LOCAL: return "%";
    case SIGIL_GLOBAL: return "@";
    }
    return "";
}

static uintptr_t find_local(const Printer *p, const Symbol *sym) {
    return (uintptr_t)map_find(&p->locals, sym);
}

static void bind(Printer *p, Name name) {
    vec_push(&p->bound, name);
    uintptr_t n = find_local(p, name.sym) + (name.sigil == SIGIL_NONE ? bare_one : sigil_one);
    map_set(&p->locals, name.sym, (void *)n);
}

void print_scope_release(Printer *p, size_t mark) {
    while (p->bound.len > mark) {
        Name name = vec_pop(&p->bound);
        uintptr_t n = find_local(p, name.sym) - (name.sigil == SIGIL_NONE ? bare_one : sigil_one);
        map_set(&p->locals, name.sym, (void *)n);
    }
}

static bool is_compound(const Symbol *sym) {
    return !symbol_is_hidden(sym) && strpbrk(sym->text, "./:") != NULL;
}

void print_bind_items(Printer *p, const Module *m) {
    for (size_t i = 0; i < m->items.len; i++) {
        Item *item = m->items.data[i];
        switch (item->kind) {
        case ITEM_DEF:
        case ITEM_OPERATOR:
        case ITEM_LET:
        case ITEM_FREE_VAR:
            map_set(&p->globals, item->name.sym, item);
            p->compound |= is_compound(item->name.sym);
            break;
        case ITEM_TYPE:
            for (size_t k = 0; k < item->ctors.len; k++)
                map_set(&p->ctors, item->ctors.data[k].name.sym, item);
            break;
        case ITEM_IMPORT: p->imports = true; break;
        case ITEM_EXTERN_TYPE:
        case ITEM_DERIVATIVE:
        case ITEM_TANGENT:
        case ITEM_NO_DERIVATIVE:
        case ITEM_GRAPH_LET:
        case ITEM_EXPR:
        case ITEM_ERROR: break;
        }
    }
}

bool print_is_ctor(const Printer *p, const Symbol *sym) {
    const PrintOptions *o = p->options;
    return map_has(&p->ctors, sym) || (o->find_bare && o->find_bare(o->ctx, sym) == BARE_CTOR);
}

static Sigil global_sigil(const Item *item) {
    return item->kind == ITEM_LET || item->kind == ITEM_FREE_VAR ? SIGIL_LOCAL : SIGIL_GLOBAL;
}

/* The sigil that a bare name needs in a versioned text. */
static Sigil find_sigil(const Printer *p, const Symbol *sym) {
    const PrintOptions *o = p->options;
    uintptr_t local = find_local(p, sym);
    if (local & (sigil_one - 1))
        return SIGIL_LOCAL;
    if (map_has(&p->ctors, sym))
        return SIGIL_NONE;
    const Item *item = map_find(&p->globals, sym);
    if (item && item->name.sigil == SIGIL_NONE)
        return global_sigil(item);
    switch (o->find_bare ? o->find_bare(o->ctx, sym) : BARE_NOTHING) {
    case BARE_CTOR:
    case BARE_OPERATOR: return SIGIL_NONE;
    case BARE_GLOBAL: return SIGIL_GLOBAL;
    case BARE_NOTHING: break;
    }
    if (local)
        return SIGIL_LOCAL;
    if (item)
        return global_sigil(item);
    bool capital = sym->text[0] >= 'A' && sym->text[0] <= 'Z';
    return p->imports && !p->rule && !capital && !map_has(&p->params, sym) ? SIGIL_GLOBAL
                                                                           : SIGIL_NONE;
}

/* A name for what a pattern takes apart, which nobody can write: `a_b` for `(a, b)`. Nothing else in the text is
 * called so. */
static const char *plain_name(Printer *p, const Symbol *sym) {
    const char *known = map_find(&p->plain, sym);
    if (known)
        return known;
    Str base = {0};
    for (const char *c = sym->text; *c; c++)
        if (isalnum((unsigned char)*c) || strchr("_ .", *c))
            str_add_char(&base, strchr(" .", *c) ? '_' : *c);
    const char *text = p->module->source ? p->module->source->text : "";
    const char *name = base.len ? str_text(&base) : "whole";
    for (int i = 1; strstr(text, name); i++)
        name = fmt_text("%s_%d", base.len ? str_text(&base) : "whole", i);
    map_set(&p->plain, sym, (void *)mem_strdup(name));
    return map_find(&p->plain, sym);
}

Sigil print_sigil(const Printer *p, const Name *name) {
    bool bare = p->options->tvm && name->sigil == SIGIL_NONE && !p->module_versioned;
    return bare ? find_sigil(p, name->sym) : name->sigil;
}

Doc *print_name(Printer *p, const Name *name) {
    if (symbol_is_hidden(name->sym))
        return doc_textf("%%%s", plain_name(p, name->sym));
    return doc_textf("%s%s", sigil_text(print_sigil(p, name)), name->sym->text);
}

Doc *print_field(const Name *name) {
    return doc_textf("%s%s", sigil_text(name->sigil), name->sym->text);
}

bool print_is_parenthesised(const Ast *e) {
    const Source *s = e->span.source;
    return s && e->span.begin < s->len && s->text[e->span.begin] == '(';
}

Doc *print_binder(Printer *p, const Name *name) {
    Sigil sigil = name->sigil;
    if (symbol_is_hidden(name->sym))
        return print_name(p, name);
    p->compound |= is_compound(name->sym);
    if (p->options->tvm) {
        bind(p, *name);
        if (sigil == SIGIL_NONE)
            sigil = SIGIL_LOCAL;
    }
    return doc_textf("%s%s", sigil_text(sigil), name->sym->text);
}
