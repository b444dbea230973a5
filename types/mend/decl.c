/* SPDX-License-Identifier: Apache-2.0 */
/* What a change to a type declaration concerns: the declarations that mention the type, and the items that
 * mention one of their names. It is read off the tokens, so it may be too much and is never too little.
 * infer/part.c finds out which items use these. */
#include <string.h>

#include "types/mend/mend.h"

typedef enum DeclNameKind { NAME_OF_TYPE, NAME_OF_CTOR, NAME_OF_FIELD } DeclNameKind;

typedef struct DeclName {
    const Symbol *name;
    DeclNameKind kind;
} DeclName;
typedef VEC(DeclName) DeclNames;

typedef struct Users {
    const Mender *m;
    DeclNames names;
    int32_t at; /* the item that was changed */
    bool *said; /* by item: it is in `types` or `namers` already */
    IndexVec *types, *namers;
} Users;

static void add_name(DeclNames *out, const Symbol *name, DeclNameKind kind) {
    for (size_t i = 0; i < out->len; i++) {
        if (out->data[i].name == name && out->data[i].kind == kind)
            return;
    }
    DeclName n = {name, kind};
    vec_push(out, n);
}

static void add_names(DeclNames *out, const Item *decl) {
    add_name(out, decl->name.sym, NAME_OF_TYPE);
    for (size_t c = 0; c < decl->ctors.len; c++) {
        const AstCtor *ctor = &decl->ctors.data[c];
        add_name(out, ctor->name.sym, NAME_OF_CTOR);
        for (size_t i = 0; i < ctor->fields.len && ctor->named; i++)
            add_name(out, ctor->fields.data[i].name, NAME_OF_FIELD);
    }
}

static bool has_name(const DeclNames *names, DeclName n) {
    for (size_t i = 0; i < names->len; i++) {
        if (names->data[i].name == n.name && names->data[i].kind == n.kind)
            return true;
    }
    return false;
}

/* Whether the token may name a field: `e.name`, or `name = …`, `name: …`, `{ name, … }` of a value or a
 * pattern. */
static bool may_be_field(const Mender *m, size_t i) {
    const MendToken *t = &m->tokens.data[i];
    TokenKind before = i ? t[-1].kind : TOK_EOF;
    TokenKind after = i + 1 < m->tokens.len ? t[1].kind : TOK_EOF;
    bool braces = t->opener >= 0 && m->tokens.data[t->opener].kind == TOK_LBRACE;
    return before == TOK_DOT || after == TOK_EQUAL || after == TOK_COLON ||
           (braces && (before == TOK_LBRACE || before == TOK_COMMA));
}

/* Whether the reader asks what the name is before it reads what follows. */
static bool is_read_by_name(const Mender *m, size_t i) {
    const MendToken *t = &m->tokens.data[i];
    return i + 1 < m->tokens.len && t->end == t[1].begin &&
           (t[1].kind == TOK_LBRACKET || t[1].kind == TOK_DOT);
}

static bool declares_name(const Item *decl, const Symbol *name) {
    for (size_t c = 0; c < decl->ctors.len; c++) {
        if (decl->ctors.data[c].name.sym == name)
            return true;
    }
    return decl->name.sym == name;
}

/* Adds the items that mention the name. False when only a check of the whole text can tell: something else than
 * definitions and types mentions it, or another type declares it. */
static bool add_users(Users *u, DeclName n, bool changed) {
    const Mender *m = u->m;
    for (int32_t i = (int32_t)(uintptr_t)map_find(&m->last, n.name) - 1; i >= 0;
         i = m->tokens.data[i].same) {
        int32_t at = m->tokens.data[i].item;
        if (changed && n.kind != NAME_OF_FIELD && is_read_by_name(m, (size_t)i))
            return false;
        if (at >= 0 && changed && n.kind != NAME_OF_FIELD && at != u->at &&
            declares_name(m->c->module->items.data[at], n.name))
            return false;
        if (at < 0 || u->said[at] || (n.kind == NAME_OF_FIELD && !may_be_field(m, (size_t)i)))
            continue;
        const Item *item = m->c->module->items.data[at];
        if (infer_in_groups(item)) {
            u->said[at] = true;
            vec_push(u->namers, (uint32_t)at);
        } else if (n.kind == NAME_OF_TYPE && item->kind == ITEM_TYPE) {
            u->said[at] = true;
            vec_push(u->types, (uint32_t)at);
            add_names(&u->names, item);
        } else if (n.kind == NAME_OF_TYPE) {
            return false;
        }
    }
    return true;
}

bool mend_type_users(const Mender *m, uint32_t at, const Item *now, IndexVec *types,
                     IndexVec *namers) {
    if (m->c->mode == INFER_PROMPT || m->c->module->versioned)
        return false;
    const Item *before = m->c->module->items.data[at];
    DeclNames old = {0}, new = {0};
    add_names(&old, before);
    add_names(&new, now);
    Users u = {.m = m,
               .at = (int32_t)at,
               .said = mem_new_n(bool, m->c->module->items.len + 1),
               .types = types,
               .namers = namers};
    u.said[at] = true;
    vec_push(types, at);
    add_names(&u.names, before);
    add_names(&u.names, now);
    for (size_t i = 0; i < u.names.len; i++) {
        DeclName n = u.names.data[i];
        bool was = has_name(&old, n), is = has_name(&new, n);
        if (is && !was && n.kind != NAME_OF_FIELD && map_has(&m->c->I->names, n.name))
            return false;
        if (!add_users(&u, n, was != is))
            return false;
    }
    return true;
}
