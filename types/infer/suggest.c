/* SPDX-License-Identifier: Apache-2.0 */
/* Names that might have been meant. The distance is sym_find_nearest's; here the candidates are
 * gathered: locals in scope, type parameters, the file's items, what the session has, operators. */
#include <stdlib.h>
#include <string.h>

#include "types/infer/state.h"

/* ---- names of other languages ---------------------------------------------------------------- */

/* Names of other languages that no change of a name mends, or none alone, as in `1 + true`. mend/habits.c has the
 * others. */
static const struct {
    const char *name, *help;
} habits[] = {
    {"true", "the values of bool are `True` and `False`"},
    {"false", "the values of bool are `True` and `False`"},
    {"TRUE", "the values of bool are `True` and `False`"},
    {"FALSE", "the values of bool are `True` and `False`"},
    {"tuple", "a tuple is written `(a, b)`"},
    {"list", "a List is written `list[a, b]`"},
    {"dict", "named fields are those of a `type`; a List of pairs `list[(key, value)]` maps keys"},
    {"len", "`length(xs)` counts a List, `str.length(s)` a String; `shape_of(x)[0]` is the first "
            "size of a tensor"},
    {"gradient", "the derivatives of f at x are `grad(f)(x)`"},
    {"backward", "the derivatives of f at x are `grad(f)(x)`"},
    {"rand",
     "`random.uniform(key, out_shape=[n])` draws numbers, with a key `random.threefry_key(seed)`"},
    {"randn",
     "`random.normal(key, out_shape=[n])` draws numbers, with a key `random.threefry_key(seed)`"},
    {"square", "`x ** 2` is the square of x"},
    {"cube", "`x ** 3` is the third power of x"},
    {"inner", "`sum(x * y)` is the inner product of two vectors, `a @@ b` the matrix product"},
    {"tensor", "`[1.0, 2.0]` is a tensor, `tensor.of(xs)` makes one of a List"},
    {"array", "`[1.0, 2.0]` is a tensor, `tensor.of(xs)` makes one of a List"},
    {"concat_map", "`flatten(map(f, xs))` joins the Lists that f gives"},
    {"flat_map", "`flatten(map(f, xs))` joins the Lists that f gives"},
    {"bind", "`flatten(map(f, xs))` joins the Lists that f gives"},
    {"input",
     "`args` holds the arguments of the command line, `read_text(path)` the text of a file"},
    {"np", "operators need no prefix: `zeros(shape=[3])`, `sum(x)`, `sin(x)`"},
    {"torch", "operators need no prefix: `zeros(shape=[3])`, `sum(x)`, `sin(x)`"},
    {"iter", "`map(f, xs);` calls f of each element"},
    {"for_each", "`map(f, xs);` calls f of each element"},
    {"forEach", "`map(f, xs);` calls f of each element"},
    {"reduce", "`foldl(f, start, xs)` folds a List; tensors have `sum`, `prod`, `max` and others"},
    {"math", "operators need no prefix: `sqrt(x)`, `sin(x)`, `pi`"},
};

static const char *find_habit(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        if (strlen(habits[i].name) == n && strncmp(habits[i].name, name, n) == 0)
            return habits[i].help;
    }
    return NULL;
}

/* Of `np.random.randn` the last part says most, and the first one what all such names have in common. */
const char *infer_habit_of(const Symbol *name) {
    size_t n = strcspn(name->text, ".");
    bool member = name->text[n] == '.' && strncmp(name->text, "list", n) == 0; /* a module's */
    const char *first = member ? NULL : find_habit(name->text, n), *dot = strrchr(name->text, '.');
    const char *last = first && dot ? find_habit(dot + 1, strlen(dot + 1)) : NULL;
    return last ? last : first;
}

/* Functions of the library that other languages call with other arguments. */
static const struct {
    const char *name;
    uint32_t nargs;
    const char *help;
} arities[] = {
    {"range", 2,
     "`arange(a, b)` is the tensor of a … b - 1, and `map(fn (i) { a + i }, range(b - a))` the "
     "List"},
    {"range", 3, "`arange(a, b, step)` is such a tensor, `list.rows` of it a List"},
    {"random.split", 2,
     "it gives two keys; `map(fn (i) { random.fold_in(key, i) }, range(n))` gives n"},
    {"random.key", 0,
     "a key is made of a seed, `random.key(0)`, and gives the same numbers each time"},
};

const char *infer_arity_habit(const Global *callee, uint32_t nargs) {
    const Source *in = callee->span.source;
    bool library = in && (in->flags & SOURCE_INTERNAL);
    for (size_t i = 0; library && i < sizeof arities / sizeof *arities; i++) {
        const char *name = arities[i].name, *dot = strrchr(name, '.');
        bool is_here = !dot || strstr(in->name, fmt_text("/%.*s.rly", (int)(dot - name), name));
        if (arities[i].nargs == nargs && is_here &&
            strcmp(callee->name->text, dot ? dot + 1 : name) == 0)
            return arities[i].help;
    }
    return NULL;
}

/* ---- names in scope -------------------------------------------------------------------------- */

static void add_keys(SymbolVec *out, const Map *m) {
    const void *key;
    void *value;
    for (size_t i = 0; map_next(m, &i, &key, &value);) {
        const Symbol *s = key;
        if (s->text[0] != '_')
            vec_push(out, s);
    }
}

static void add_env_names(SymbolVec *out, const Env *env) {
    const Namespace *spaces[] = {env->here, env->prelude};
    for (int k = 0; k < (env->here == env->prelude ? 1 : 2); k++) {
        add_keys(out, &spaces[k]->globals);
        add_keys(out, &spaces[k]->ctors);
        add_keys(out, &spaces[k]->ops);
    }
    for (size_t i = 0; i < op_count(); i++)
        vec_push(out, sym_intern(op_at(i)->name));
    if (env->hooks.each_name)
        env->hooks.each_name(env->hooks.ctx, out);
}

static void add_type_names(SymbolVec *out, const Env *env) {
    add_keys(out, &env->here->types);
    if (env->here != env->prelude)
        add_keys(out, &env->prelude->types);
    for (int t = 0; t < DTYPE_COUNT; t++)
        vec_push(out, sym_intern(dtype_info[t].name));
    vec_push(out, sym_intern("String"));
    vec_push(out, sym_intern("Tensor"));
}

static const Symbol *nearest(Env *env, const Symbol *name, const SymbolVec *from) {
    budget_draw(&env->budget, 4 * (int64_t)from->len); /* the cost of gathering the names */
    return sym_find_nearest(name, from->data, from->len, &env->budget);
}

const Symbol *env_suggest(Env *env, const Symbol *name, bool types) {
    SymbolVec names = {0};
    if (budget_is_spent(&env->budget))
        return NULL;
    if (types) {
        add_type_names(&names, env);
    } else {
        add_env_names(&names, env);
    }
    return nearest(env, name, &names);
}

/* Names the module of the library that has the name. */
static bool add_module_help(Infer *I, Diag *d, const Symbol *name) {
    const EnvHooks *hooks = &I->env->hooks;
    bool asks = hooks->find_module && !budget_is_spent(&I->env->budget);
    const char *module = asks ? hooks->find_module(hooks->ctx, name) : NULL;
    if (!module || map_has(&I->env->here->modules, sym_intern(module)))
        return false;
    bool is_whole = strchr(name->text, '.') || strcmp(name->text, module) == 0;
    d->cause = is_whole ? DIAG_CAUSE_IMPORT : d->cause;
    if (is_whole)
        diag_add_help(d, "`import %s;` has it", module);
    else
        diag_add_help(d, "`import %s;` has it, as `%s.%s`", module, module, name->text);
    return true;
}

static bool pattern_has(const AstPattern *p, const Symbol *name) {
    if (!p)
        return false;
    bool has = p->kind == AST_PAT_NAME && p->name.sym == name;
    for (size_t i = 0; i < p->args.len && !has; i++)
        has = pattern_has(p->args.data[i], name);
    return has;
}

/* The end of the last line before `at` whose next line begins with a bracket or a minus, or 0: these go on with what the
 * line ends with. A line that ends with a comment has no such place. */
static uint32_t find_open_line_end(const Source *source, uint32_t from, uint32_t at) {
    const char *text = source->text;
    for (uint32_t i = at; i > from; i--) {
        uint32_t first = i;
        if (text[i - 1] != '\n')
            continue;
        while (first < at && (text[first] == ' ' || text[first] == '\t'))
            first++;
        if (!strchr("([-", text[first]))
            continue;
        uint32_t end = i - 1;
        while (end > from && strchr(" \t\r", text[end - 1]))
            end--;
        uint32_t line = end;
        while (line > from && text[line - 1] != '\n')
            line--;
        const char *comment = strstr(text + line, "//");
        return comment && comment < text + end ? 0 : end;
    }
    return 0;
}

bool scope_report_open_binding(Infer *I, Diag *d, const Name *name) {
    for (const OpenBinding *b = I->binding; b; b = b->outer) {
        const Ast *let = b->let;
        if (let->name.sym != name->sym && !pattern_has(let->pattern, name->sym))
            continue;
        const Source *source = name->span.source;
        uint32_t end = source && source == let->a->span.source
                           ? find_open_line_end(source, let->a->span.begin, name->span.end)
                           : 0;
        if (!end)
            return false;
        Span at = {source, end, end};
        diag_add_label(d, let->a->span, "the value of `%s` goes on to here", name->sym->text);
        diag_add_fix(d, at, ";", NULL, "a `;` at the end of the line above ends the value");
        return true;
    }
    return false;
}

static int by_text(const void *a, const void *b) {
    const Symbol *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

/* Says what there is of that beginning, as `str.`. */
static void add_members(Diag *d, const Symbol *module, SymbolVec *names) {
    enum { MOST = 20 };
    size_t n = strlen(module->text), shown = 0;
    Str list = {0};
    SymbolVec members = {0};
    for (size_t i = 0; i < names->len; i++) {
        const char *text = names->data[i]->text;
        if (strncmp(text, module->text, n) == 0 && text[n] == '.' && text[n + 1] != '_')
            vec_push(&members, names->data[i]);
    }
    if (members.len)
        qsort(members.data, members.len, sizeof *members.data, by_text);
    for (size_t i = 0; i < members.len; i++) {
        if (i && members.data[i] == members.data[i - 1])
            continue; /* of two spaces */
        shown++;
        str_printf(&list, "%s%s", shown > 1 ? ", " : "", members.data[i]->text + n + 1);
    }
    if (shown > MOST)
        diag_add_fact(d, "`%s` has %zu names; at the prompt `:browse %s` lists them", module->text,
                      shown, module->text);
    else if (shown)
        diag_add_fact(d, "`%s` has %s", module->text, str_text(&list));
}

void scope_report_unknown(Infer *I, const Name *name) {
    const char *sigil = name->sigil == SIGIL_LOCAL ? "%" : name->sigil == SIGIL_GLOBAL ? "@" : "";
    Diag *d = infer_error(I, DIAG_R0101, name->span, "there is no `%s%s`", sigil, name->sym->text);
    if (d)
        d->missing = name->sym;
    if (!d || I->unread || scope_report_open_binding(I, d, name))
        return;
    const TypeParam *param = name->sigil == SIGIL_NONE ? type_scope_find(I, name->sym) : NULL;
    if (param) {
        const char *b = name->sym->text;
        if (param->kind_known && param->kind == KIND_DTYPE)
            diag_add_fact(d,
                          "`%s` is a dtype; before `(`, `[` or `-` a cast to it is written "
                          "`(Tensor[_, %s]) (...)`",
                          b, b);
        else
            diag_add_fact(d, "`%s` is a type parameter, no value", b);
        return;
    }
    const char *why, *instead;
    if (name->sigil == SIGIL_NONE && op_find_absent(name->sym->text, &why, &instead)) {
        diag_add_fact(d, "TVM's operator of this name is none here: %s", why);
        diag_add_help(d, "%s", instead);
        return;
    }
    SymbolVec near = {0};
    for (size_t i = 0; i < I->trail.len; i++)
        vec_push(&near, I->trail.data[i]->name);
    for (size_t i = 0; i < I->type_trail.len; i++)
        vec_push(&near, I->type_trail.data[i]->name);
    const Symbol *found = nearest(I->env, name->sym, &near);
    SymbolVec far = {0};
    if (!found) {
        const char *help = name->sigil == SIGIL_NONE ? infer_habit_of(name->sym) : NULL;
        if (help) {
            diag_add_help(d, "%s", help);
            return;
        }
        if (name->sigil == SIGIL_NONE && add_module_help(I, d, name->sym))
            return;
        if (!budget_is_spent(&I->env->budget)) {
            add_keys(&far, &I->names);
            add_env_names(&far, I->env);
        }
        found = nearest(I->env, name->sym, &far);
    }
    const char *dot = strrchr(name->sym->text, '.');
    if (name->sigil == SIGIL_NONE && dot) {
        const Symbol *module = sym_intern_n(name->sym->text, (size_t)(dot - name->sym->text));
        if (env_has_module(I->env, module) && !map_has(&I->env->here->modules, module)) {
            diag_add_help(d, "`import %s;` brings the module's names", module->text);
            return;
        }
        add_members(d, module, &far);
    }
    if (!found)
        return;
    Name as = {.sym = found, .sigil = SIGIL_NONE};
    Resolved r = scope_resolve(I, &as);
    Span where = r.kind == NAME_LOCAL    ? r.local->var->span
                 : r.kind == NAME_GLOBAL ? r.global->span
                                         : span_none();
    bool shown = where.source && !(where.source->flags & SOURCE_INTERNAL);
    if (found == name->sym) {
        if (r.kind == NAME_LOCAL) {
            diag_add_name_help(d, found, "there is a local `%s`: write `%s`", found->text,
                               found->text);
        } else if (r.kind == NAME_OP) {
            diag_add_name_help(d, found, "`%s` is an operator: write it without `@`", found->text);
        } else {
            diag_add_name_help(d, found, "`%s` is a global: write `@%s`", found->text, found->text);
        }
        return;
    }
    if (shown && where.source != d->primary.span.source && (where.source->flags & SOURCE_PROMPT)) {
        diag_set_guess(d, found);
        diag_set_label(d, "did you mean `%s`, defined at %s?", found->text, where.source->name);
        return;
    }
    diag_set_guess(d, found);
    if (shown)
        diag_add_label_of(d, DIAG_ROLE_GUESS, where, "`%s` is defined here", found->text);
}
