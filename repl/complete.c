/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens before the cursor say what may stand there. Of types only those of the session's names are
 * asked for: what is being typed is not inferred, since it rarely checks in the middle. */
#include "repl/complete.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parser/lexer.h"
#include "repl/commands.h"
#include "repl/doc.h"
#include "repl/session_internal.h"
#include "repl/settings.h"

typedef struct Place {
    Session *s;
    const char *text;
    size_t len;        /* of the text before the cursor */
    VEC(Token) tokens; /* those before the word */
    const char *word;  /* what is typed of it; with the dots before it where `dotted` */
    size_t begin;
    const char *owner; /* "a.b" of `a.b.wo`, or NULL */
    bool in_string, in_comment;
    SymbolVec names; /* of the session, once they were asked for */
    Completions *out;
} Place;

static void add(Place *p, const char *text, const char *note) {
    if (strncmp(text, p->word, strlen(p->word)) != 0)
        return;
    Completion c = {text, note};
    vec_push(&p->out->list, c);
}

static const SymbolVec *names_of(Place *p) {
    if (!p->names.len)
        session_each_name(p->s, &p->names);
    return &p->names;
}

/* ---- the place ------------------------------------------------------------------------------- */

static bool is_name(const Token *t) {
    return t->kind == TOK_IDENT || t->kind == TOK_GLOBAL || t->kind == TOK_LOCAL;
}

/* Takes `a.b.` off the end of the tokens, if the word stands behind it without a blank. */
static void find_owner(Place *p) {
    size_t n = p->tokens.len, end = p->begin;
    while (n >= 2 && p->tokens.data[n - 1].kind == TOK_DOT && p->tokens.data[n - 1].end == end &&
           is_name(&p->tokens.data[n - 2]) &&
           p->tokens.data[n - 2].end == p->tokens.data[n - 1].begin) {
        end = p->tokens.data[n - 2].begin;
        n -= 2;
    }
    if (n == p->tokens.len)
        return;
    p->owner = mem_strndup(p->text + end, p->begin - 1 - end);
    p->tokens.len = n;
}

static void read_tokens(Place *p, size_t from) {
    Source *source = source_new("entry", p->text, p->len, SOURCE_PROMPT);
    Module comments = {0};
    Lexer lex;
    lexer_init(&lex, source, &comments);
    size_t at = from;
    p->word = "";
    for (;;) {
        Token t = {0};
        lexer_read(&lex, (uint32_t)at, &t);
        if (t.kind == TOK_EOF || t.end <= at)
            break;
        vec_push(&p->tokens, t);
        at = t.end;
    }
    size_t n = comments.comments.len;
    p->in_comment = n && comments.comments.data[n - 1].span.end == p->len &&
                    p->text[comments.comments.data[n - 1].span.begin + 1] == '/';
    p->begin = p->len;
    if (!p->tokens.len)
        return;
    Token last = vec_last(&p->tokens);
    if (last.kind == TOK_ERROR && last.end == p->len) {
        p->in_string = p->text[last.begin] == '"';
        p->in_comment |= p->text[last.begin] == '/';
        p->begin = last.begin + 1;
        p->tokens.len--;
    } else if (is_name(&last) && last.end == p->len) {
        p->begin = last.begin;
        p->tokens.len--;
    }
    p->word = mem_strndup(p->text + p->begin, p->len - p->begin);
    if (!p->in_string)
        find_owner(p);
}

static TokenKind kind_at(const Place *p, size_t back) {
    return p->tokens.len > back ? p->tokens.data[p->tokens.len - 1 - back].kind : TOK_EOF;
}

static Word word_at(const Place *p, size_t back) {
    return p->tokens.len > back ? p->tokens.data[p->tokens.len - 1 - back].word : WORD_NONE;
}

/* The position of the innermost bracket that is open, or SIZE_MAX. */
static size_t find_open_before(const Place *p, size_t end) {
    size_t depth = 0;
    for (size_t i = end; i-- > 0;) {
        switch ((int)p->tokens.data[i].kind) {
        case TOK_RPAREN:
        case TOK_RBRACKET:
        case TOK_RBRACE: depth++; break;
        case TOK_LPAREN:
        case TOK_LBRACKET:
        case TOK_HASH:
        case TOK_LBRACE:
            if (depth-- == 0)
                return i;
        }
    }
    return SIZE_MAX;
}

static size_t find_open(const Place *p) { return find_open_before(p, p->tokens.len); }

/* The name `a.b` that ends with token i, as text; NULL: no name does. */
static const char *name_ending(const Place *p, size_t i) {
    if (!is_name(&p->tokens.data[i]))
        return NULL;
    size_t first = i;
    while (first >= 2 && p->tokens.data[first - 1].kind == TOK_DOT &&
           is_name(&p->tokens.data[first - 2]))
        first -= 2;
    size_t begin = p->tokens.data[first].begin;
    return mem_strndup(p->text + begin, p->tokens.data[i].end - begin);
}

static Binding find(Session *s, const char *name) {
    Sigil sigil = name[0] == '@' ? SIGIL_GLOBAL : name[0] == '%' ? SIGIL_LOCAL : SIGIL_NONE;
    return env_find(session_env(s), sym_intern(name + (sigil != SIGIL_NONE)), sigil);
}

/* ---- files and modules ----------------------------------------------------------------------- */

/* A path that stands in a string as it is. */
static bool is_plain(const char *name) {
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || strchr("\"\\\177", *c))
            return false;
    return text_is_utf8(name, strlen(name), NULL);
}

static int compare_completions(const void *a, const void *b) {
    return strcmp(((const Completion *)a)->text, ((const Completion *)b)->text);
}

static void add_files(Place *p) {
    const char *slash = strrchr(p->word, '/');
    const char *folder = slash ? mem_strndup(p->word, (size_t)(slash - p->word) + 1) : "";
    const char *path = *folder ? folder : ".";
    const char *home = getenv("HOME");
    if (strncmp(path, "~/", 2) == 0 && home)
        path = fmt_text("%s%s", home, path + 1);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!is_plain(e->d_name) || (e->d_name[0] == '.' && (!slash || slash[1] != '.') &&
                                     p->word[slash ? slash + 1 - p->word : 0] != '.'))
            continue;
        struct stat st;
        bool is_folder = stat(fmt_text("%s/%s", path, e->d_name), &st) == 0 && S_ISDIR(st.st_mode);
        add(p, fmt_text("%s%s%s", folder, e->d_name, is_folder ? "/" : ""), "");
    }
    if (d)
        closedir(d);
    if (p->out->list.len)
        qsort(p->out->list.data, p->out->list.len, sizeof *p->out->list.data, compare_completions);
}

static bool is_module_name(const char *name) {
    if (!((name[0] | 32) >= 'a' && (name[0] | 32) <= 'z'))
        return false;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] ==
           '\0';
}

static void add_modules(Place *p) {
    SymbolVec modules = {0};
    session_each_module(p->s, &modules);
    Map seen = {0};
    for (size_t i = 0; i < modules.len; i++) {
        const Symbol *m = modules.data[i];
        if (!map_has(&seen, m) && is_module_name(m->text))
            add(p, m->text, "module");
        map_set(&seen, m, NULL);
    }
    if (p->out->list.len)
        qsort(p->out->list.data, p->out->list.len, sizeof *p->out->list.data, compare_completions);
}

/* ---- fields and members ---------------------------------------------------------------------- */

static const Ctor *record_of(Type *type) {
    type = type ? type_resolve(type) : NULL;
    if (!type || type->tag != TY_DATA || type->decl->nctors != 1)
        return NULL;
    const Ctor *c = type->decl->ctors[0];
    return c->field_names ? c : NULL;
}

/* The type of a field of a type, as declared. */
static Type *field_of(Type *type, const char *name) {
    const Ctor *c = record_of(type);
    for (uint32_t i = 0; c && i < c->nfields; i++)
        if (strcmp(c->field_names[i]->text, name) == 0)
            return c->fields[i];
    return NULL;
}

/* The type of `a.b.c`, where `a` is a value of the session. */
static Type *type_of_path(Session *s, const char *path) {
    size_t n = strcspn(path, ".");
    Binding b = find(s, mem_strndup(path, n));
    Type *type = b.kind == BIND_GLOBAL && b.global->scheme ? b.global->scheme->type : NULL;
    while (type && path[n]) {
        path += n + 1;
        n = strcspn(path, ".");
        type = field_of(type, mem_strndup(path, n));
    }
    return type;
}

static void add_fields(Place *p) {
    const Ctor *c = record_of(type_of_path(p->s, p->owner));
    for (uint32_t i = 0; c && i < c->nfields; i++)
        add(p, c->field_names[i]->text, type_text(c->fields[i]));
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_private(const char *name, const char *typed) {
    return (name[0] == '_' && typed[0] != '_') || strstr(name, "._");
}

/* Names of parameters and of `let` in the entry itself: those that the session does not know. */
static void add_local_names(Place *p) {
    Map seen = {0};
    for (size_t i = p->tokens.len; i-- > 0;) {
        const Token *t = &p->tokens.data[i];
        bool part = i > 0 && p->tokens.data[i - 1].kind == TOK_DOT;
        if (t->kind != TOK_IDENT || t->word != WORD_NONE || part || map_has(&seen, t->sym))
            continue;
        map_set(&seen, t->sym, NULL);
        const Token *next = i + 1 < p->tokens.len ? t + 1 : NULL;
        if (next && next->kind == TOK_EQUAL && i > 0 && t[-1].word != WORD_LET)
            continue; /* an attribute */
        if (env_find(session_env(p->s), t->sym, SIGIL_NONE).kind == BIND_NONE)
            add(p, t->sym->text, "");
    }
}

/* `nn.dense` as `nn.`, unless the module is typed. */
static const char *up_to_dot(const char *name, size_t from) {
    const char *dot = strchr(name + from, '.');
    return dot ? mem_strndup(name, (size_t)(dot - name) + 1) : name;
}

/* Every name; with an owner those of that module, without it. */
static void add_session_names(Place *p, bool own) {
    const SymbolVec *names = names_of(p);
    const char *prefix = p->owner ? fmt_text("%s.", p->owner) : "";
    size_t n = strlen(prefix);
    const char *sigil = p->word[0] == '@' || p->word[0] == '%' ? mem_strndup(p->word, 1) : "";
    const char *before = "";
    for (size_t i = 0; i < names->len; i++) {
        const char *name = names->data[i]->text;
        if (strncmp(name, prefix, n) != 0 || is_private(name, prefix) ||
            strncmp(name + n, p->word + strlen(sigil), strlen(p->word) - strlen(sigil)) != 0)
            continue;
        Global *g = env_find_loaded(session_env(p->s), names->data[i]);
        bool is_own = g && !g->internal;
        if (is_own != own && !p->owner)
            continue;
        const char *shown = up_to_dot(name, n) + n;
        if (strcmp(shown, before) == 0)
            continue;
        before = shown;
        add(p, *sigil ? fmt_text("%s%s", sigil, shown) : shown,
            shown[strlen(shown) - 1] == '.' ? "module" : NULL);
    }
}

/* Words that begin an item or an expression, once enough of them is typed to mean them. */
static void add_words(Place *p) {
    static const char *const items[] = {"def", "import", "let", "type"};
    static const char *const values[] = {"False", "True"};
    TokenKind last = kind_at(p, 0);
    bool item = last == TOK_EOF || last == TOK_SEMI;
    for (size_t i = 0; item && strlen(p->word) >= 2 && i < sizeof items / sizeof *items; i++)
        add(p, items[i], "");
    for (size_t i = 0; strlen(p->word) >= 2 && i < sizeof values / sizeof *values; i++)
        add(p, values[i], "");
}

/* Whether a parameter of `fn (` or `def f(` begins here. */
static bool is_parameter(const Place *p) {
    size_t open = find_open(p);
    if (open == SIZE_MAX || open == 0 || p->tokens.data[open].kind != TOK_LPAREN ||
        (kind_at(p, 0) != TOK_COMMA && p->tokens.len != open + 1))
        return false;
    const Token *before = &p->tokens.data[open - 1];
    return before->word == WORD_FN ||
           (open >= 2 && before->kind == TOK_IDENT && before[-1].word == WORD_DEF);
}

/* Whether the word is a name that is being bound: nobody knows it yet. A capital begins a pattern's constructor. */
static bool is_binding(const Place *p) {
    Word last = word_at(p, 0);
    if (is_parameter(p))
        return !(*p->word >= 'A' && *p->word <= 'Z');
    return kind_at(p, 0) == TOK_IDENT &&
           (last == WORD_LET || last == WORD_DEF || last == WORD_TYPE || last == WORD_OPERATOR ||
            last == WORD_AS);
}

static void add_names(Place *p) {
    add_local_names(p);
    add_session_names(p, true);
    add_session_names(p, false);
    add_words(p);
}

/* ---- types ----------------------------------------------------------------------------------- */

/* Whether a colon behind a field stands before its value, `Line { slope: 1.0 }`, and not before its declared type. */
static bool is_field_value(const Place *p) {
    size_t open = find_open(p), outer;
    if (open == SIZE_MAX || open == 0 || p->tokens.data[open].kind != TOK_LBRACE ||
        !is_name(&p->tokens.data[open - 1]))
        return false;
    outer = find_open_before(p, open);
    if (outer == SIZE_MAX || p->tokens.data[outer].kind != TOK_LBRACE)
        return true;
    for (size_t i = outer; i-- > 0 && p->tokens.data[i].kind != TOK_LBRACE;)
        if (p->tokens.data[i].word == WORD_TYPE)
            return false;
    return true;
}

static bool is_type_place(const Place *p) {
    TokenKind last = kind_at(p, 0);
    if (last == TOK_COLON && is_field_value(p))
        return false;
    if (last == TOK_COLON || last == TOK_ARROW)
        return true;
    size_t open = find_open(p);
    if (open == SIZE_MAX || open == 0 || (last != TOK_COMMA && p->tokens.len != open + 1))
        return false;
    const Token *before = &p->tokens.data[open - 1];
    if (p->tokens.data[open].kind != TOK_LBRACKET || !is_name(before))
        return false;
    return word_is_type(before->word) ||
           (open >= 2 && (before[-1].kind == TOK_COLON || before[-1].kind == TOK_ARROW));
}

static void add_types(Place *p) {
    const SymbolVec *names = names_of(p);
    for (size_t i = 0; i < names->len; i++) {
        TypeDecl *decl = names->data[i]->text[0] >= 'A' && names->data[i]->text[0] <= 'Z'
                             ? env_find_type(session_env(p->s), names->data[i])
                             : NULL;
        if (decl)
            add(p, names->data[i]->text, "type");
    }
    static const char *const more[] = {"Tensor", "List",   "Option", "Tree",
                                       "Rows",   "String", "fn",     "ref"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        bool there = false;
        for (size_t k = 0; k < p->out->list.len; k++)
            there |= strcmp(p->out->list.data[k].text, more[i]) == 0;
        if (!there)
            add(p, more[i], "type");
    }
    for (int t = 0; t < DTYPE_COUNT; t++)
        add(p, dtype_info[t].name, "scalars of it");
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* Whether a pattern begins here: after `{` or `,` of a match, and which value is matched. */
static bool is_pattern_place(const Place *p, const char **subject) {
    size_t open = find_open(p);
    if (open == SIZE_MAX || open < 3 || p->tokens.data[open].kind != TOK_LBRACE ||
        (kind_at(p, 0) != TOK_COMMA && p->tokens.len != open + 1) ||
        p->tokens.data[open - 1].kind != TOK_RPAREN)
        return false;
    size_t depth = 1, i = open - 1;
    while (i > 0 && depth)
        switch ((int)p->tokens.data[--i].kind) {
        case TOK_RPAREN: depth++; break;
        case TOK_LPAREN: depth--; break;
        }
    bool is_match = i > 0 && (p->tokens.data[i - 1].word == WORD_MATCH ||
                              (i > 1 && p->tokens.data[i - 1].kind == TOK_QUESTION &&
                               p->tokens.data[i - 2].word == WORD_MATCH));
    *subject = is_match && i + 3 == open ? name_ending(p, i + 1) : NULL;
    return is_match;
}

static const char *ctor_note(const Ctor *c) {
    return fmt_text("constructor of %s", c->decl->name->text);
}

static void add_ctors(Place *p, const char *subject) {
    Type *type = subject ? type_of_path(p->s, subject) : NULL;
    type = type ? type_resolve(type) : NULL;
    if (type && type->tag == TY_DATA) {
        for (uint32_t i = 0; i < type->decl->nctors; i++)
            add(p, type->decl->ctors[i]->name->text, ctor_note(type->decl->ctors[i]));
        return;
    }
    const SymbolVec *names = names_of(p);
    for (size_t i = 0; i < names->len; i++) {
        Binding b = names->data[i]->text[0] >= 'A' && names->data[i]->text[0] <= 'Z'
                        ? env_find(session_env(p->s), names->data[i], SIGIL_NONE)
                        : (Binding){.kind = BIND_NONE};
        if (b.kind == BIND_CTOR)
            add(p, names->data[i]->text, ctor_note(b.ctor));
    }
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* What is called whose arguments the cursor is in. */
static Binding find_callee(const Place *p, size_t *open) {
    *open = find_open(p);
    if (*open == SIZE_MAX || *open == 0 || p->tokens.data[*open].kind != TOK_LPAREN)
        return (Binding){.kind = BIND_NONE};
    const char *name = name_ending(p, *open - 1);
    return name ? find(p->s, name) : (Binding){.kind = BIND_NONE};
}

static bool is_given(const Place *p, size_t open, const char *attr) {
    for (size_t i = open + 1; i + 1 < p->tokens.len; i++)
        if (p->tokens.data[i].kind == TOK_IDENT && p->tokens.data[i + 1].kind == TOK_EQUAL &&
            strcmp(p->tokens.data[i].sym->text, attr) == 0)
            return true;
    return false;
}

static void add_attributes(Place *p, const Op *op, size_t open) {
    for (int i = 0; i < op->nattrs; i++)
        if (!is_given(p, open, op->attrs[i].name))
            add(p, fmt_text("%s=", op->attrs[i].name),
                fmt_text("%s%s%s", attr_type_words(op->attrs[i].type),
                         op->attrs[i].initial ? "; else " : "",
                         op->attrs[i].initial ? op->attrs[i].initial : ""));
}

/* How many commas stand between the arguments before the cursor. */
static size_t count_commas(const Place *p, size_t open) {
    size_t n = 0, depth = 0;
    for (size_t i = open + 1; i < p->tokens.len; i++) {
        switch ((int)p->tokens.data[i].kind) {
        case TOK_LPAREN:
        case TOK_LBRACKET:
        case TOK_HASH:
        case TOK_LBRACE: depth++; break;
        case TOK_RPAREN:
        case TOK_RBRACKET:
        case TOK_RBRACE: depth -= depth > 0; break;
        case TOK_COMMA: n += depth == 0;
        }
    }
    return n;
}

/* The parameters of a definition that no argument before the cursor is given to. */
static void add_parameters(Place *p, const Global *global, size_t open) {
    const AstFn *fn = infer_parameters(global);
    Type *type = global->scheme ? type_resolve(global->scheme->type) : NULL;
    bool by_name = false; /* one of the arguments is, so that positions say nothing */
    for (size_t i = 0; fn && i < fn->params.len; i++)
        by_name |= is_given(p, open, fn->params.data[i].name.sym->text);
    for (size_t i = by_name ? 0 : count_commas(p, open); fn && i < fn->params.len; i++) {
        const AstParam *param = &fn->params.data[i];
        bool typed = type && type->tag == TY_FN && i < type->nargs;
        if (!param->pattern && !is_given(p, open, param->name.sym->text))
            add(p, fmt_text("%s=", param->name.sym->text), typed ? type_text(type->args[i]) : "");
    }
}

/* The texts a string attribute may be, of "mode: clip wrap; layout: *NCHW -". */
static void add_choices(Place *p, const Op *op, const char *attr) {
    const char *at = op->choices;
    size_t n = strlen(attr);
    while (at && *at) {
        at += strspn(at, "; ");
        if (strncmp(at, attr, n) == 0 && at[n] == ':') {
            for (at += n + 1; *at == ' ';) {
                at++;
                size_t len = strcspn(at, " ;");
                if (len && *at != '*' && *at != '-')
                    add(p, fmt_text("\"%.*s\"", (int)len, at), "");
                at += len;
            }
            return;
        }
        at += strcspn(at, ";");
    }
}

/* After `attr=` of an operator's call; false: that is not here. */
static bool add_attribute_values(Place *p, const Op *op) {
    if (kind_at(p, 0) != TOK_EQUAL || kind_at(p, 1) != TOK_IDENT)
        return false;
    const char *name = p->tokens.data[p->tokens.len - 2].sym->text;
    for (int i = 0; i < op->nattrs; i++) {
        const AttrSpec *a = &op->attrs[i];
        if (strcmp(a->name, name) != 0)
            continue;
        if (a->type == AT_BOOL) {
            add(p, "True", "");
            add(p, "False", "");
        } else if (a->type == AT_DTYPE) {
            for (int t = 0; t < DTYPE_COUNT; t++)
                add(p, fmt_text("\"%s\"", dtype_info[t].name), "");
        }
        add_choices(p, op, name);
        if (strstr(attr_type_words(a->type), "None"))
            add(p, "None", attr_type_words(a->type));
        return true;
    }
    return false;
}

/* ---- records --------------------------------------------------------------------------------- */

/* `Line { slope: 1.0, …`, `type Line { Line { …` and `{ line with …`: names of fields, of which those are
 * offered that are known. False: none begins here. */
static bool add_field_names(Place *p) {
    size_t open = find_open(p);
    if (open == SIZE_MAX || p->tokens.data[open].kind != TOK_LBRACE)
        return false;
    bool begins = kind_at(p, 0) == TOK_COMMA || p->tokens.len == open + 1;
    const char *before = open > 0 ? name_ending(p, open - 1) : NULL;
    const Ctor *c = NULL;
    if (begins && before && before[0] >= 'A' && before[0] <= 'Z') {
        Binding b = find(p->s, before);
        c = b.kind == BIND_CTOR ? b.ctor : NULL;
    } else if (p->tokens.len > open + 2 && p->tokens.data[open + 2].word == WORD_WITH &&
               (kind_at(p, 0) == TOK_COMMA || word_at(p, 0) == WORD_WITH)) {
        const char *name = name_ending(p, open + 1);
        c = name ? record_of(type_of_path(p->s, name)) : NULL;
    } else {
        return false;
    }
    for (uint32_t i = 0; c && c->field_names && i < c->nfields; i++)
        add(p, c->field_names[i]->text, type_text(c->fields[i]));
    return true;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void add_at_place(Place *p) {
    const char *subject;
    size_t open;
    if (p->in_comment || is_binding(p))
        return;
    if (p->in_string) {
        add_files(p);
        return;
    }
    if (p->owner) {
        add_fields(p);
        if (!p->out->list.len)
            add_session_names(p, false);
        return;
    }
    if (word_at(p, 0) == WORD_IMPORT) {
        add_modules(p);
        return;
    }
    if (add_field_names(p))
        return;
    Binding callee = find_callee(p, &open);
    const Op *op = callee.kind == BIND_OP ? callee.op : NULL;
    if (op && add_attribute_values(p, op))
        return;
    if (is_type_place(p)) {
        add_types(p);
        return;
    }
    if (is_pattern_place(p, &subject)) {
        add_ctors(p, subject);
        return;
    }
    bool begins_argument = kind_at(p, 0) == TOK_COMMA;
    if (op && (begins_argument || p->tokens.len == open + 1)) {
        bool wanted = begins_argument || op->nargs == 0;
        if (wanted || *p->word)
            add_attributes(p, op, open);
    }
    if (callee.kind == BIND_GLOBAL && begins_argument)
        add_parameters(p, callee.global, open);
    add_names(p);
}

typedef struct Request {
    Session *s;
    const char *text;
    size_t len, cursor;
    Completions *out;
    const char *answer;
} Request;

/* `:load FILE` and the like; false: an expression stands after the command. */
static bool complete_argument(Place *p) {
    size_t n = strcspn(p->text, " ");
    const char *command = command_full_name(mem_strndup(p->text + 1, n - 1));
    p->begin = n + strspn(p->text + n, " ");
    p->word = p->text + p->begin;
    if (!command || strcmp(command, "type") == 0)
        return false;
    if (strcmp(command, "load") == 0 || strcmp(command, "save") == 0) {
        add_files(p);
        return true;
    }
    if (strcmp(command, "nan") == 0) {
        add(p, "on", "");
        add(p, "off", "");
        return true;
    }
    if (strcmp(command, "set") == 0 || strcmp(command, "unset") == 0) {
        for (size_t i = 0; i < settings_count(); i++)
            add(p, settings_name(i), "");
        return true;
    }
    if (strcmp(command, "browse") == 0 || strcmp(command, "import") == 0) {
        add_modules(p);
        return true;
    }
    return false;
}

static void complete_now(void *arg) {
    Request *r = arg;
    Place p = {.s = r->s, .text = mem_strndup(r->text, r->len), .len = r->len, .out = r->out};
    p.word = p.text;
    size_t from = 0;
    if (p.text[0] == ':') {
        from = strcspn(p.text, " ");
        if (!p.text[from]) {
            TextVec words = {0};
            command_complete(p.text, p.len, &words);
            for (size_t i = 0; i < words.len; i++)
                add(&p, words.data[i], command_help(words.data[i] + 1));
            return;
        }
        if (complete_argument(&p)) {
            r->out->begin = p.begin;
            return;
        }
        const char *command = command_full_name(mem_strndup(p.text + 1, from - 1));
        read_tokens(&p, from);
        r->out->begin = p.begin;
        if (command && (strcmp(command, "kind") == 0 || strcmp(command, "search") == 0))
            add_types(&p);
        else
            add_at_place(&p);
        return;
    }
    read_tokens(&p, 0);
    r->out->begin = p.begin;
    add_at_place(&p);
}

void complete_text(Session *s, const char *text, size_t len, Completions *out) {
    Request r = {.s = s, .text = text, .len = len, .out = out};
    out->begin = len;
    session_with_stack(s, complete_now, &r);
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static const char *describe(Session *s, const char *name) {
    Binding b = find(s, name);
    Str out = {0};
    switch (b.kind) {
    case BIND_GLOBAL:
        if (b.global->scheme)
            scheme_print(&out, b.global->scheme, NULL);
        return out.len ? str_text(&out) : NULL;
    case BIND_OP: op_print_signature(&out, b.op, 0); return str_text(&out);
    case BIND_CTOR: return ctor_note(b.ctor);
    case BIND_TYPE: return "type";
    case BIND_NONE:
    case BIND_MODULE: break;
    }
    return NULL;
}

static void describe_now(void *arg) {
    Request *r = arg;
    r->answer = describe(r->s, r->text);
}

const char *complete_describe(Session *s, const char *name) {
    Request r = {.s = s, .text = name};
    session_with_stack(s, describe_now, &r);
    return r.answer;
}

static bool is_name_byte(char c) {
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static void hint_now(void *arg) {
    Request *r = arg;
    size_t end = r->cursor;
    while (end < r->len && is_name_byte(r->text[end]))
        end++;
    Place p = {.s = r->s, .text = mem_strndup(r->text, end), .len = end, .word = ""};
    read_tokens(&p, r->text[0] == ':' ? strcspn(p.text, " ") : 0);
    if (p.in_comment || p.in_string)
        return;
    if (*p.word) {
        const char *name = p.owner ? fmt_text("%s.%s", p.owner, p.word) : p.word;
        const char *what = describe(r->s, name);
        if (!what && p.owner) {
            Type *type = field_of(type_of_path(r->s, p.owner), p.word);
            what = type ? type_text(type) : NULL;
        }
        if (what)
            r->answer = strncmp(what, name, strlen(name)) == 0 ? what
                                                               : fmt_text("%s : %s", name, what);
        return;
    }
    size_t open;
    Binding callee = find_callee(&p, &open);
    const Op *op = callee.kind == BIND_OP ? callee.op : NULL;
    const AstFn *fn = callee.kind == BIND_GLOBAL ? infer_parameters(callee.global) : NULL;
    Str out = {0};
    if (op)
        op_print_signature(&out, op, 0);
    r->answer = op ? str_text(&out) : fn ? infer_call_text(fn, name_ending(&p, open - 1)) : NULL;
}

const char *complete_hint(Session *s, const char *text, size_t len, size_t cursor) {
    Request r = {.s = s, .text = text, .len = len, .cursor = cursor};
    session_with_stack(s, hint_now, &r);
    return r.answer;
}
