/* SPDX-License-Identifier: Apache-2.0 */
/* A name fits when `fn [a, …]() -> TYPE { NAME }` checks: the checker itself says so, with its unification, relations
 * and the instances that it finds. */
#include "repl/search.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "repl/session_internal.h"

typedef struct Found {
    const char *name;
    const char *type;
    size_t generality; /* parameters and relations of its own type */
    bool is_own;       /* the session's */
} Found;

enum { MOST_SHOWN = 20 };

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* "[a, n]" for the words of one small letter in the type; "" for none. */
static const char *letters_of(const char *type) {
    bool used[26] = {false};
    Str out = {0};
    for (const char *p = type; *p;) {
        size_t n = 0;
        while (is_word(p[n]))
            n++;
        if (n == 1 && islower((unsigned char)*p) && !used[*p - 'a']) {
            used[*p - 'a'] = true;
            str_printf(&out, "%s%c", out.len ? ", " : "[", *p);
        }
        p += n ? n : 1;
    }
    if (out.len)
        str_add_char(&out, ']');
    return str_text(&out);
}

static void drop_text(void *ctx, const char *text, size_t n) { (void)ctx, (void)text, (void)n; }

static bool fits(Session *s, const char *letters, const char *type, const char *name) {
    Str ignored = {0};
    return session_type_of(s, fmt_text("fn %s() -> %s { %s }", letters, type, name), false,
                           &ignored);
}

static bool is_candidate(const char *name) {
    return name[0] != '_' && !strstr(name, "._") && strcmp(name, "it") != 0;
}

static int by_rank(const void *a, const void *b) {
    const Found *x = a, *y = b;
    if (x->is_own != y->is_own)
        return x->is_own ? -1 : 1;
    if (x->generality != y->generality)
        return x->generality < y->generality ? -1 : 1;
    return strcmp(x->name, y->name);
}

bool search_type(Session *s, const char *type, Str *out) {
    const char *letters = letters_of(type);
    Str ignored = {0};
    if (!session_type_of(s, fmt_text("fn %s(value: %s) { value }", letters, type), false, &ignored))
        return false;
    SessionSink quiet = {drop_text, drop_text, NULL, true}, sink = session_swap_sink(s, &quiet);
    SymbolVec names = {0};
    VEC(Found) found = {0};
    session_each_name(s, &names);
    for (size_t i = 0; i < names.len && !session_was_interrupted(s); i++) {
        const char *name = names.data[i]->text;
        if (!is_candidate(name) || !fits(s, letters, type, name))
            continue;
        Str own = {0};
        Binding b = env_find(s->env, names.data[i], SIGIL_NONE);
        if (b.kind == BIND_TYPE || !session_type_of(s, name, false, &own))
            continue;
        const Scheme *scheme = b.kind == BIND_GLOBAL ? b.global->scheme : NULL;
        size_t generality = scheme ? scheme->nparams + scheme->nrelations : own.len / 8;
        bool is_own = b.kind == BIND_GLOBAL && !b.global->internal;
        vec_push(&found, ((Found){name, str_text(&own), generality, is_own}));
    }
    session_set_sink(s, &sink);
    if (found.len)
        qsort(found.data, found.len, sizeof *found.data, by_rank);
    for (size_t i = 0; i < found.len && i < MOST_SHOWN; i++)
        str_printf(out, "%s : %s", found.data[i].name, found.data[i].type);
    if (found.len > MOST_SHOWN)
        str_printf(out, "... and %zu more\n", found.len - MOST_SHOWN);
    if (!found.len)
        str_add(out, "nothing that is bound has this type\n");
    return true;
}
