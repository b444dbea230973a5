/* SPDX-License-Identifier: Apache-2.0 */
/* Changes for what other languages and libraries call otherwise than Relay does: `true`,
 * `len(xs)`, `np.zeros(…)`, `x.sum()`, `x.T`, `relu`, `int(x)`, `dtype=float`, a tensor literal where
 * a list is wanted; and modules by their spelling. Each is tried before it is suggested: mend.h. */
#include <stdlib.h>
#include <string.h>

#include "types/mend/mend.h"

/* What an unknown name may be called here. A member M of a value, `x.M`, is also tried as `f(x)`. */
static const struct {
    const char *habit, *here;
} names[] = {
    {"true", "True"},
    {"false", "False"},
    {"TRUE", "True"},
    {"FALSE", "False"},
    {"null", "None"},
    {"nil", "Nil"},
    {"none", "None"},
    {"just", "Some"},
    {"Just", "Some"},
    {"Nothing", "None"},
    {"nothing", "None"},
    {"len", "length"},
    {"count", "length"},
    {"size", "length"},
    {"size", "ndarray_size"},
    {"numel", "ndarray_size"},
    {"length", "ndarray_size"},
    {"len", "str.length"},
    {"head", "hd"},
    {"tail", "tl"},
    {"reverse", "rev"},
    {"fold", "foldl"},
    {"reduce", "foldl"},
    {"fold_left", "foldl"},
    {"fold_right", "foldr"},
    {"println", "print"},
    {"printf", "print"},
    {"puts", "print"},
    {"echo", "print"},
    {"str", "show"},
    {"string", "show"},
    {"repr", "show"},
    {"to_string", "show"},
    {"iter", "map"},
    {"toString", "show"},
    {"string_of_int", "show"},
    {"string_of_float", "show"},
    {"print_endline", "print"},
    {"print_string", "print"},
    {"sub", "str.slice"},
    {"substr", "str.slice"},
    {"substring", "str.slice"},
    {"strip", "str.trim"},
    {"uppercase", "str.upper"},
    {"lowercase", "str.lower"},
    {"to_int", "str.int"},
    {"to_float", "str.float"},
    {"int_of_string", "str.int"},
    {"float_of_string", "str.float"},
    {"sorted", "list.sort"},
    {"concat", "append"},
    {"time", "clock"},
    {"raise", "error"},
    {"panic", "error"},
    {"fail", "error"},
    {"failwith", "error"},
    {"throw", "error"},
    {"float", "float32"},
    {"double", "float64"},
    {"half", "float16"},
    {"int", "int32"},
    {"long", "int64"},
    {"integer", "int32"},
    {"byte", "uint8"},
    {"array", "Tensor"},
    {"Array", "Tensor"},
    {"tensor", "Tensor"},
    {"ndarray", "Tensor"},
    {"option", "Option"},
    {"f32", "float32"},
    {"f64", "float64"},
    {"i32", "int32"},
    {"i64", "int64"},
    {"u8", "uint8"},
    {"Float", "float32"},
    {"Int", "int32"},
    {"Bool", "bool"},
    {"boolean", "bool"},
    {"str", "String"},
    {"string", "String"},
    {"list", "List"},
    {"optional", "Option"},
    {"Optional", "Option"},
    {"Maybe", "Option"},
    {"shape", "shape_of"},
    {"T", "transpose"},
    {"permute", "transpose"},
    {"swapaxes", "transpose"},
    {"t", "transpose"},
    {"view", "reshape"},
    {"flatten", "nn.batch_flatten"},
    {"unsqueeze", "expand_dims"},
    {"pow", "power"},
    {"sub", "subtract"},
    {"mul", "multiply"},
    {"div", "divide"},
    {"neg", "negative"},
    {"concat", "concatenate"},
    {"cat", "concatenate"},
    {"vstack", "concatenate"},
    {"dot", "matmul"},
    {"mm", "matmul"},
    {"bmm", "nn.batch_matmul"},
    {"reduce_sum", "sum"},
    {"reduce_mean", "mean"},
    {"reduce_max", "max"},
    {"amax", "max"},
    {"amin", "min"},
    {"var", "variance"},
    {"fmod", "mod"},
    {"remainder", "mod"},
    {"ln", "log"},
    {"linear", "nn.dense"},
    {"clamp", "clip"},
    {"arctan", "atan"},
    {"arcsin", "asin"},
    {"arccos", "acos"},
    {"detach", "stop_gradient"},
    {"astype", "cast"},
};
enum { NAMES = sizeof names / sizeof *names };

static const MendToken *token(const Mender *m, size_t i) {
    return i < m->tokens.len ? &m->tokens.data[i] : NULL;
}

static bool has_kind(const Mender *m, size_t i, TokenKind kind) {
    return i < m->tokens.len && token(m, i)->kind == kind;
}

/* Tries the operators and definitions whose last part is the name: `nn.relu` for `relu`. */
static void try_qualified(Mender *m, uint32_t begin, uint32_t end, const Symbol *name) {
    const SymbolVec *known = mend_known_names(m);
    if (!mend_may_walk(m, known->len))
        return;
    for (size_t i = 0; i < known->len && !mend_is_done(m); i++) {
        const char *text = known->data[i]->text, *dot = strrchr(text, '.');
        if (dot && text[0] != '_' && dot[1] != '_' && strcmp(dot + 1, name->text) == 0)
            mend_try(m, MEND_NAME, begin, end, text);
    }
}

static bool is_bound(const Mender *m, size_t i) {
    const Symbol *name = token(m, i)->sym;
    for (int32_t k = (int32_t)(uintptr_t)map_find(&m->last, name) - 1; k >= 0;
         k = token(m, (size_t)k)->same) {
        if (mend_is_binding(m, (size_t)k))
            return true;
    }
    return env_find(m->c->env, name, SIGIL_NONE).kind == BIND_GLOBAL;
}

static void try_habit(Mender *m, size_t i, const Symbol *habit) {
    for (size_t k = 0; k < NAMES && !mend_is_done(m); k++) {
        if (strcmp(names[k].habit, habit->text) == 0)
            mend_try_token(m, MEND_NAME, i, names[k].here);
    }
}

static const Symbol *nearest_habit(const Mender *m, const Symbol *name) {
    const Symbol *habits[NAMES];
    for (size_t k = 0; k < NAMES; k++)
        habits[k] = sym_intern(names[k].habit);
    return sym_find_nearest(name, habits, NAMES, m->budget);
}

static void try_names(Mender *m, size_t i) {
    const MendToken *t = token(m, i);
    if (t->kind == TOK_IDENT)
        try_habit(m, i, t->sym);
    const char *others[] = {t->sym->text, fmt_text("@%s", t->sym->text),
                            fmt_text("%%%s", t->sym->text)};
    bool bound = m->d->code != DIAG_R0113 && is_bound(m, i); /* a variable would match anything */
    for (size_t k = 0; k < 3 && !mend_is_done(m) && bound; k++)
        mend_try_token(m, MEND_NAME, i, others[k]);
    if (t->kind == TOK_IDENT && !mend_is_done(m))
        try_qualified(m, t->begin, t->end, t->sym);
}

/* Tries a cast for a call of a type's name: `(int32) e` for `int(e)`. */
static void try_cast(Mender *m, size_t i) {
    static const char *const casts[][2] = {{"int", "int32"},
                                           {"float", "float32"},
                                           {"bool", "bool"},
                                           {"double", "float64"},
                                           {"long", "int64"}};
    if (!has_kind(m, i + 1, TOK_LPAREN) || token(m, i + 1)->partner < 0)
        return;
    const MendToken *t = token(m, i), *close = token(m, (size_t)token(m, i + 1)->partner);
    for (size_t k = 0; k < sizeof casts / sizeof *casts; k++) {
        if (strcmp(casts[k][0], t->sym->text) != 0)
            continue;
        bool one = token(m, i + 1)->partner == (int32_t)i + 3;
        const char *inside = mend_text(m, token(m, i + 1)->end, close->begin);
        mend_try(m, MEND_REPLACE, t->begin, close->end,
                 fmt_text(one ? "(%s) %s" : "(%s) (%s)", casts[k][1], inside));
    }
}

/* Tries a function for a member: one of its name, or what it is called here. */
static void try_member(Mender *m, uint32_t begin, size_t member, const char *value) {
    const MendToken *t = token(m, member);
    bool call = has_kind(m, member + 1, TOK_LPAREN) && token(m, member + 1)->partner >= 0;
    uint32_t end = t->end;
    const char *more = "";
    if (call && value) { /* x.f(a) */
        const MendToken *open = token(m, member + 1), *close = token(m, (size_t)open->partner);
        const char *inside = mend_text(m, open->end, close->begin);
        end = close->end;
        more = inside[0] ? fmt_text(", %s", inside) : "";
    }
    for (size_t k = 0; k <= NAMES && !mend_is_done(m); k++) {
        if (k && strcmp(names[k - 1].habit, t->sym->text) != 0)
            continue;
        const char *f = k ? names[k - 1].here : t->sym->text;
        mend_try(m, MEND_REPLACE, begin, end, value ? fmt_text("%s(%s%s)", f, value, more) : f);
    }
    if (!value && !mend_is_done(m))
        try_qualified(m, begin, end, t->sym);
}

static bool is_library(const Symbol *name) {
    static const char *const libraries[] = {"np",    "numpy", "torch",  "tf",     "math", "Math",
                                            "jnp",   "jax",   "tvm",    "relay",  "F",    "K",
                                            "nn",    "std",   "scipy",  "random", "list", "List",
                                            "Array", "str",   "String", "tensor"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        if (strcmp(libraries[i], name->text) == 0)
            return true;
    return false;
}

/* Tries `b(a)` for `a.b` where a is a value, and `b` alone where a is the name of another library. */
static void try_members(Mender *m, size_t first, size_t last) {
    for (size_t i = first; i + 2 < m->tokens.len && i < last && !mend_is_done(m); i++) {
        if (!mend_is_name(token(m, i)) || !has_kind(m, i + 1, TOK_DOT))
            continue;
        size_t member = i + 2;
        if (!mend_is_name(token(m, member)))
            continue;
        while (has_kind(m, member + 1, TOK_DOT) && member + 2 < m->tokens.len && m->unknown &&
               mend_is_name(token(m, member + 2)))
            member += 2; /* np.linalg.norm */
        uint32_t begin = token(m, i)->begin;
        bool value = is_bound(m, i);
        if (!value && !is_library(token(m, i)->sym))
            continue;
        try_member(m, begin, member, value ? mend_text(m, begin, token(m, member - 2)->end) : NULL);
    }
}

/* Tries `sum(f(…))` for `f(…).sum()`: the value is all before the dot. */
static void try_member_of_value(Mender *m, size_t first, size_t last) {
    for (size_t i = last; i-- > first + 1 && !mend_is_done(m);) {
        if (!has_kind(m, i - 1, TOK_DOT) || !mend_is_name(token(m, i)))
            continue;
        uint32_t begin = m->place.begin, end = token(m, i - 1)->begin;
        bool round = has_kind(m, first, TOK_LPAREN) && token(m, first)->partner == (int32_t)i - 2;
        try_member(m, begin, i,
                   round ? mend_text(m, begin + 1, end - 1) : mend_text(m, begin, end));
        return;
    }
}

/* ---- lists and types ------------------------------------------------------------------------- */

/* Tries `list` before a tensor literal where a list is wanted, there or where the name is bound. */
static void try_lists(Mender *m, size_t first, size_t last) {
    if (m->d->expected.form != DIAG_FORM_LIST || m->d->found.form != DIAG_FORM_TENSOR)
        return;
    for (size_t i = first; i < last && !mend_is_done(m); i++) {
        if (has_kind(m, i, TOK_LBRACKET))
            mend_try(m, MEND_INSERT, token(m, i)->begin, token(m, i)->begin, "list");
        if (!mend_is_name(token(m, i)))
            continue;
        int32_t bound = token(m, i)->same;
        for (; bound >= 0; bound = token(m, (size_t)bound)->same) {
            size_t at = (size_t)bound + 2;
            if (!mend_is_binding(m, (size_t)bound) || !has_kind(m, at - 1, TOK_EQUAL))
                continue;
            if (has_kind(m, at, TOK_LBRACKET))
                mend_try(m, MEND_INSERT, token(m, at)->begin, token(m, at)->begin, "list");
            break;
        }
    }
}

/* Tries `shape_of(x)[0]` for `length(x)` of a tensor: at the place, or where the message is that x is no List, as
 * `length(x)` made it one. */
static void try_lengths(Mender *m, size_t first) {
    bool here = m->d->expected.form == DIAG_FORM_LIST && m->d->found.form == DIAG_FORM_TENSOR;
    bool made = (m->d->expected.form == DIAG_FORM_TENSOR || m->d->cause == DIAG_CAUSE_INDEX) &&
                m->d->found.form == DIAG_FORM_LIST;
    if (!(here || made) || !mend_is_name(token(m, first)))
        return;
    for (int32_t x = (int32_t)first; x >= 2 && !mend_is_done(m); x = token(m, (size_t)x)->same) {
        size_t at = (size_t)x;
        const MendToken *f = token(m, at - 2);
        bool other = token(m, at)->item != token(m, first)->item || (here && at != first);
        if (other)
            return;
        if (f->sym && strcmp(f->sym->text, "length") == 0 && has_kind(m, at - 1, TOK_LPAREN) &&
            has_kind(m, at + 1, TOK_RPAREN))
            mend_try(m, MEND_REPLACE, f->begin, token(m, at + 1)->end,
                     fmt_text("shape_of(%s)[0]", token(m, at)->sym->text));
    }
}

/* Tries `Tensor[(2, 3), float32]` for `Tensor[2, 3]`. */
static void try_tensor_type(Mender *m, size_t first) {
    size_t open = first;
    while (open > 0 && first - open < 12 && !has_kind(m, open, TOK_LBRACKET))
        open--;
    if (!open || token(m, open - 1)->word != WORD_TENSOR || token(m, open)->partner < 0)
        return;
    MendParts parts = {0};
    mend_parts(m, open, &parts);
    if (parts.len < 2)
        return;
    const MendToken *last = token(m, vec_last(&parts));
    bool dtype = mend_is_dtype(last) && parts.len > 2;
    size_t dims = parts.len - 2 * dtype;
    uint32_t begin = token(m, open)->end, end = token(m, parts.data[dims - 1])->end;
    const char *close = dims == 2 ? "," : "";
    mend_try(m, MEND_REPLACE, begin, dtype ? last->end : end,
             fmt_text("(%s%s), %s", mend_text(m, begin, end), close,
                      dtype ? last->sym->text : "float32"));
}

static void try_dtype(Mender *m, const char *name, const char *quote) {
    DType dtype;
    if (!mend_is_done(m) && dtype_find(name, strlen(name), &dtype))
        mend_try(m, MEND_NAME, m->place.begin, m->place.end,
                 fmt_text("%s%s%s", quote, name, quote));
}

/* Tries a dtype for what is not one: `dtype=np.float32`, `dtype=float`, `dtype="flot32"`. */
static void try_dtypes(Mender *m) {
    const char *text = mend_text(m, m->place.begin, m->place.end), *dot = strrchr(text, '.');
    const char *quote = text[0] == '"' ? "\"" : "";
    const char *word = dot ? dot + 1 : text + strlen(quote);
    const Symbol *said = sym_intern_n(word, strcspn(word, "\"")), *dtypes[DTYPE_COUNT];
    try_dtype(m, said->text, quote);
    for (size_t k = 0; k < NAMES; k++) {
        if (strcmp(names[k].habit, said->text) == 0)
            try_dtype(m, names[k].here, quote);
    }
    for (int t = 0; t < DTYPE_COUNT; t++)
        dtypes[t] = sym_intern(dtype_info[t].name);
    const Symbol *near = sym_find_nearest(said, dtypes, DTYPE_COUNT, m->budget);
    if (near)
        try_dtype(m, near->text, quote);
}

/* Tries floats for integers, by which no derivative is taken: `grad(f)(k)` for an integer k. */
static void try_floats(Mender *m, size_t first, size_t last) {
    if (last == first + 1 && has_kind(m, first, TOK_NUMBER))
        mend_literal(m, first);
    if (mend_is_done(m))
        return;
    mend_cast(m, m->place.begin, m->place.end, "float32");
    for (size_t i = first; i < last && !mend_is_done(m); i++)
        if (mend_is_dtype(token(m, i)))
            mend_try_token(m, MEND_REPLACE, i, "float32");
    for (size_t i = first; i < last && !mend_is_done(m); i++)
        if (has_kind(m, i, TOK_NUMBER))
            mend_literal(m, i);
}

/* Tries `let y = e` for `y := e` where there is no `y`. */
static void try_binding(Mender *m, size_t i) {
    bool begins = i == 0 || token(m, i)->item < 0 || token(m, i - 1)->item != token(m, i)->item ||
                  has_kind(m, i - 1, TOK_SEMI) || has_kind(m, i - 1, TOK_LBRACE);
    if (begins && has_kind(m, i + 1, TOK_ASSIGN))
        mend_try(m, MEND_REPLACE, token(m, i)->begin, token(m, i + 1)->end,
                 fmt_text("let %s =", token(m, i)->sym->text));
}

/* ---- imports --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) {
    const Symbol *const *x = a, *const *y = b;
    return strcmp((*x)->text, (*y)->text);
}

/* Tries other modules and names for an import: `import nm;`, `import "nm.rly";`, `import nn.Linear;`,
 * `import nn (Linera);`. */
static void try_imports(Mender *m) {
    const Item *item = m->item >= 0 ? m->c->module->items.data[m->item] : NULL;
    if (!item || item->kind != ITEM_IMPORT || m->d->code != DIAG_R0105)
        return;
    if (m->d->guess) { /* the module has a name like it */
        mend_try(m, MEND_NAME, m->place.begin, m->place.end, m->d->guess->text);
        return;
    }
    const EnvHooks *hooks = &m->c->env->hooks;
    SymbolVec modules = {0};
    if (hooks->each_module)
        hooks->each_module(hooks->ctx, &modules);
    if (modules.len)
        qsort(modules.data, modules.len, sizeof *modules.data,
              by_text); /* the order of a folder's files is not fixed */
    size_t first = mend_token_at(m, item->span.begin) + 1;
    uint32_t begin = item->path ? token(m, first)->begin : item->name.span.begin;
    uint32_t end = item->path ? token(m, first)->end : item->name.span.end;
    const char *written = item->path ? item->path : item->name.sym->text;
    const char *dot = strrchr(written, '.');
    if (dot && !item->path && !item->has_names && !item->as)
        mend_try(m, MEND_REPLACE, begin, end,
                 fmt_text("%s (%s)", mem_strndup(written, (size_t)(dot - written)), dot + 1));
    if (dot && item->path && strcmp(dot, ".rly") != 0)
        dot = NULL;
    const char *stem = item->path && dot ? mem_strndup(written, (size_t)(dot - written)) : written;
    const Symbol *near = sym_find_nearest(sym_intern(stem), modules.data, modules.len, m->budget);
    if (near && !mend_is_done(m))
        mend_try(m, MEND_NAME, begin, end,
                 item->path ? fmt_text("\"%s.rly\"", near->text) : near->text);
}

/* Tries `flatten` for the `concat` of a List of Lists, and the element-wise operator for `max(a, b)`, since `max` takes the greatest element of one tensor. For
 * `max(a, 0)` an axis is likelier. */
static void try_elementwise(Mender *m, size_t first, size_t last) {
    static const char *const pairs[][2] = {
        {"max", "maximum"}, {"min", "minimum"}, {"all", "logical_and"}, {"any", "logical_or"}};
    for (size_t i = first; i < last && !mend_is_done(m); i++) {
        const MendToken *t = token(m, i);
        if (t->begin == m->place.begin && t->sym && strcmp(t->sym->text, "concat") == 0)
            mend_try_token(m, MEND_NAME, i, "flatten");
        if (t->begin != m->place.begin || !t->sym || !has_kind(m, i + 1, TOK_LPAREN) ||
            token(m, i + 1)->partner < 3)
            continue;
        size_t second = (size_t)token(m, i + 1)->partner - 1;
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            if (strcmp(t->sym->text, pairs[k][0]) != 0)
                continue;
            if (has_kind(m, second, TOK_NUMBER) && has_kind(m, second - 1, TOK_COMMA))
                mend_try(m, MEND_REPLACE, token(m, second)->begin, token(m, second)->begin,
                         "axis=");
            if (!mend_is_done(m))
                mend_try_token(m, MEND_NAME, i, pairs[k][1]);
        }
    }
}

/* Tries `f(a, b)` for `f(a)(b)`, and `f(a, b, c)` for `f(a)(b)(c)`, where f wants all at once: `grad(f)(x)` is written
 * so, `check_grad(f, x)` is not. */
static void try_curried(Mender *m, size_t first, size_t last) {
    size_t open = last;
    int32_t close = has_kind(m, last, TOK_LPAREN) ? token(m, last)->partner : -1;
    if (last <= first + 2 || !has_kind(m, last - 1, TOK_RPAREN))
        return;
    uint32_t begin = token(m, last - 1)->begin;
    for (const char *joined = ", "; close >= 0 && !mend_is_done(m);) {
        uint32_t end = token(m, open)->end;
        mend_try(m, MEND_REPLACE, begin, end, joined);
        joined = fmt_text("%s%s, ", joined, mend_text(m, end, token(m, (size_t)close)->begin));
        open = (size_t)close + 1;
        close = has_kind(m, open, TOK_LPAREN) ? token(m, open)->partner : -1;
    }
}

/* Tries `fn (x) { f(a, x) }` for `f(a)`, of which the last argument is to come. */
static void try_partial(Mender *m, size_t first, size_t last) {
    bool call = last > first + 2 && has_kind(m, last - 1, TOK_RPAREN);
    int32_t open = call ? token(m, last - 1)->partner : -1;
    if (open <= (int32_t)first || has_kind(m, last, TOK_LPAREN))
        return;
    const char *inside = mend_text(m, token(m, (size_t)open)->end, token(m, last - 1)->begin);
    mend_try(m, MEND_REPLACE, token(m, first)->begin, token(m, last - 1)->end,
             fmt_text("fn (x) { %s(%s, x) }",
                      mend_text(m, token(m, first)->begin, token(m, (size_t)open)->begin), inside));
}

/* Tries a tuple for what is written as a tensor literal: `concatenate([a, b])`. */
static void try_tuple(Mender *m, size_t first) {
    if (!has_kind(m, first + 1, TOK_LPAREN) || !has_kind(m, first + 2, TOK_LBRACKET) ||
        token(m, first + 2)->partner < 0)
        return;
    const MendToken *open = token(m, first + 2), *close = token(m, (size_t)open->partner);
    mend_try(m, MEND_REPLACE, open->begin, close->end,
             fmt_text("(%s)", mend_text(m, open->end, close->begin)));
}

void mend_habits(Mender *m) {
    size_t first, last;
    mend_place_tokens(m, &first, &last);
    try_imports(m);
    if (m->unknown)
        mend_slips(m); /* a name of the program comes before those of other languages */
    m->by_spelling = m->unknown != NULL;
    m->alone = true; /* each use is mended by itself */
    for (size_t i = first; i < last && m->unknown && !mend_is_done(m); i++) {
        if (token(m, i)->sym != m->unknown)
            continue;
        try_names(m, i);
        if (!mend_is_done(m))
            try_cast(m, i);
        if (!mend_is_done(m))
            try_binding(m, i);
    }
    const Symbol *near = m->unknown && m->d->code == DIAG_R0102 ? nearest_habit(m, m->unknown)
                                                                : NULL;
    for (size_t i = first; i < last && near && !mend_is_done(m); i++) {
        if (token(m, i)->sym == m->unknown) /* `Flot` is `Float`, which is float32 here */
            try_habit(m, i, near);
    }
    if ((m->unknown || m->d->code == DIAG_R0212) && !mend_is_done(m))
        try_members(m, first, last);
    if (m->d->code == DIAG_R0212 && !mend_is_done(m))
        try_member_of_value(m, first, last);
    if (m->d->code == DIAG_R0203) {
        try_elementwise(m, first, last);
        if (!mend_is_done(m))
            try_curried(m, first, last);
        if (!mend_is_done(m))
            try_partial(m, first, last);
    }
    if (m->d->code == DIAG_R0401)
        try_floats(m, first, last);
    if (m->d->code == DIAG_R0310)
        try_tuple(m, first);
    if (m->d->code == DIAG_R0111 && m->d->cause == DIAG_CAUSE_ATTR_DTYPE)
        try_dtypes(m);
    if (m->d->code == DIAG_R0107 && !mend_is_done(m))
        try_tensor_type(m, first);
    m->by_spelling = m->alone = false;
    if (!mend_is_done(m))
        try_lists(m, first, last);
    if (!mend_is_done(m))
        try_lengths(m, first);
}
