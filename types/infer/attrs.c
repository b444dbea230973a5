/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of an operator call, checked by the operator's table. They are constants, but for
 * sizes (any integers, `?`) and, in a derivative rule, the attributes of the rule's operator. */
#include <string.h>

#include "types/infer/state.h"

const char *attr_type_words(AttrType t) {
    switch (t) {
    case AT_INT: return "an integer";
    case AT_INT_OPT: return "an integer or None";
    case AT_FLOAT: return "a number";
    case AT_BOOL: return "True or False";
    case AT_STRING: return "a string";
    case AT_DTYPE: return "a dtype";
    case AT_INTS: return "a list of integers";
    case AT_INTS_OPT: return "a list of integers or None";
    case AT_DIMS: return "a list of sizes";
    case AT_DIMS_OPT: return "a list of sizes or None";
    case AT_DIM_LISTS: return "a list of lists of sizes";
    case AT_INT_OR_DIMS: return "an integer or a list of sizes";
    case AT_FLOATS: return "a list of numbers";
    case AT_DIM: return "a size";
    }
    return "";
}

static bool as_int(const AstAttrValue *v, AttrValue *out) {
    if (v->kind == AST_ATTR_DIM && v->dim && v->dim->kind == AST_TYPE_DIM &&
        v->dim->op == DIM_INT) {
        *out = (AttrValue){.kind = ATTR_INT, .i = v->dim->value, .span = v->span};
        return true;
    }
    if (v->kind != AST_ATTR_INT)
        return false;
    *out = (AttrValue){.kind = ATTR_INT, .i = v->i, .span = v->span};
    return true;
}

static bool as_float(const AstAttrValue *v, AttrValue *out) {
    if (v->kind == AST_ATTR_FLOAT) {
        *out = (AttrValue){.kind = ATTR_FLOAT, .f = v->f};
        return true;
    }
    AttrValue i;
    if (!as_int(v, &i))
        return false;
    *out = (AttrValue){.kind = ATTR_FLOAT, .f = (double)i.i};
    return true;
}

/* The expression that stands for a value. */
static Ast *expr_of(const AstAttrValue *v) {
    if (v->kind == AST_ATTR_EXPR)
        return v->expr;
    Ast *e = mem_new(Ast);
    e->kind = AST_NAME;
    e->span = v->span;
    e->name = (Name){.sym = v->name, .span = v->span};
    return e;
}

/* An integer that a `let` bound, where the language needs a constant. */
static bool as_constant(Infer *I, const AstAttrValue *v, AttrValue *out) {
    int64_t n;
    bool size = v->kind == AST_ATTR_EXPR ||
                (v->kind == AST_ATTR_NAME && !type_scope_find(I, v->name));
    Type *dim = size ? infer_size(I, expr_of(v)) : NULL;
    if (!dim || !type_get_int(dim, &n))
        return false;
    *out = (AttrValue){.kind = ATTR_INT, .i = n, .span = v->span};
    return true;
}

static bool as_dim(Infer *I, const AstAttrValue *v, AttrValue *out) {
    if (as_int(v, out))
        return true;
    Type *dim = NULL;
    if (v->kind == AST_ATTR_NAME && type_scope_find(I, v->name) && !map_has(&I->locals, v->name)) {
        AstType name = {.kind = AST_TYPE_NAME, .span = v->span, .name = v->name};
        dim = infer_ast_type(I, &name, KIND_DIM);
    } else if (v->kind == AST_ATTR_DIM && v->dim) {
        dim = infer_ast_type(I, v->dim, KIND_DIM);
    } else if (v->kind == AST_ATTR_NAME || v->kind == AST_ATTR_EXPR) {
        dim = infer_size(I, expr_of(v));
    }
    if (!dim)
        return false;
    int64_t n;
    *out = type_get_int(dim, &n)
               ? (AttrValue){.kind = ATTR_INT, .i = n, .is_size = true, .span = v->span}
               : (AttrValue){.kind = ATTR_DIM, .dim = dim};
    return true;
}

static bool as_dtype(const AstAttrValue *v, AttrValue *out) {
    const char *text = v->kind == AST_ATTR_NAME     ? v->name->text
                       : v->kind == AST_ATTR_STRING ? v->text
                                                    : NULL;
    if (!text)
        return false;
    if (v->kind == AST_ATTR_STRING && !text[0]) { /* TVM writes out_dtype="" for None */
        *out = (AttrValue){.kind = ATTR_NONE};
        return true;
    }
    DType t;
    if (!dtype_find(text, strlen(text), &t))
        return false;
    *out = (AttrValue){.kind = ATTR_DTYPE, .dtype = t};
    return true;
}

static bool convert(Infer *I, AttrType type, const AstAttrValue *v, AttrValue *out);

/* Reads a list; a lone element stands for a list of one. */
static bool as_list(Infer *I, AttrType element, const AstAttrValue *v, AttrValue *out) {
    size_t n = v->kind == AST_ATTR_LIST ? v->items.len : 1;
    AttrValue *items = mem_new_n(AttrValue, n + 1);
    for (size_t i = 0; i < n; i++) {
        const AstAttrValue *item = v->kind == AST_ATTR_LIST ? v->items.data[i] : v;
        if (!convert(I, element, item, &items[i]))
            return false;
    }
    out->kind = ATTR_LIST;
    out->list.items = items;
    out->list.n = (uint32_t)n;
    return true;
}

static bool convert(Infer *I, AttrType type, const AstAttrValue *v, AttrValue *out) {
    if (v->kind == AST_ATTR_NAME && I->rule_op && op_attr_index(I->rule_op, v->name->text) >= 0) {
        *out = (AttrValue){.kind = ATTR_REF, .ref = v->name};
        return true;
    }
    bool none = v->kind == AST_ATTR_NONE;
    switch (type) {
    case AT_INT_OPT:
        if (none)
            break;
        return as_int(v, out) || as_constant(I, v, out);
    case AT_INT: return as_int(v, out) || as_constant(I, v, out);
    case AT_FLOAT: return as_float(v, out);
    case AT_BOOL:
        if (v->kind != AST_ATTR_BOOL && v->kind != AST_ATTR_INT)
            return false;
        *out = (AttrValue){.kind = ATTR_BOOL, .i = v->i != 0};
        return true;
    case AT_STRING:
        if (v->kind != AST_ATTR_STRING)
            return false;
        *out = (AttrValue){.kind = ATTR_STRING, .text = v->text};
        return true;
    case AT_DTYPE:
        if (none)
            break;
        return as_dtype(v, out);
    case AT_INTS_OPT:
        if (none)
            break;
        return as_list(I, AT_INT, v, out);
    case AT_INTS: return as_list(I, AT_INT, v, out);
    case AT_DIMS_OPT:
        if (none)
            break;
        return as_list(I, AT_DIM, v, out);
    case AT_DIMS: return as_list(I, AT_DIM, v, out);
    case AT_DIM_LISTS: return v->kind == AST_ATTR_LIST && as_list(I, AT_DIMS, v, out);
    case AT_INT_OR_DIMS:
        if (v->kind == AST_ATTR_LIST)
            return as_list(I, AT_DIM, v, out);
        return as_int(v, out) || as_constant(I, v, out);
    case AT_FLOATS: return as_list(I, AT_FLOAT, v, out);
    case AT_DIM: return as_dim(I, v, out);
    }
    *out = (AttrValue){.kind = ATTR_NONE};
    return true;
}

/* What NumPy and PyTorch call an attribute of this operator, or NULL. */
static const Symbol *find_habit(const Op *op, const char *name) {
    static const char *const habits[][2] = {{"dim", "axis"},
                                            {"dims", "axis"},
                                            {"axes", "axis"},
                                            {"keepdim", "keepdims"},
                                            {"keep_dims", "keepdims"},
                                            {"size", "shape"},
                                            {"size", "out_shape"},
                                            {"shape", "out_shape"},
                                            {"shape", "newshape"},
                                            {"stride", "strides"},
                                            {"pad", "padding"},
                                            {"kernel", "kernel_size"},
                                            {"kernel_size", "pool_size"}};
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (strcmp(habits[i][0], name) == 0 && op_attr_index(op, habits[i][1]) >= 0)
            return sym_intern(habits[i][1]);
    return NULL;
}

static void unknown_attr(Infer *I, const Op *op, const AstAttr *a) {
    Diag *d = infer_error(I, DIAG_R0109, a->span, "`%s` has no attribute `%s`", op->name,
                          a->name->text);
    if (!d)
        return;
    d->missing = a->name;
    SymbolVec names = {0};
    Str all = {0};
    for (int i = 0; i < op->nattrs; i++) {
        vec_push(&names, sym_intern(op->attrs[i].name));
        str_printf(&all, "%s`%s`", i ? ", " : "", op->attrs[i].name);
    }
    for (int i = 0; i < op->nargs; i++)
        vec_push(&names, sym_intern(op_arg(op, i).name));
    const Symbol *near = sym_find_nearest(a->name, names.data, names.len, &I->env->budget);
    const Symbol *habit = near ? NULL : find_habit(op, a->name->text);
    if (habit)
        diag_add_fix(d,
                     (Span){a->span.source, a->span.begin, a->span.begin + (uint32_t)a->name->len},
                     habit->text, NULL, "did you mean `%s`?", habit->text);
    for (size_t i = 0; i < names.len && !near && !habit; i++) { /* `shape` for `out_shape` */
        const Symbol *n = names.data[i];
        size_t before = n->len > a->name->len ? n->len - a->name->len : 0;
        Span at = {a->span.source, a->span.begin, a->span.begin + (uint32_t)a->name->len};
        if (!before || n->text[before - 1] != '_' || strcmp(n->text + before, a->name->text) != 0)
            continue;
        diag_add_fix(d, at, n->text, NULL, "did you mean `%s`?", n->text);
        break;
    }
    if (near) {
        diag_set_guess(d, near);
    } else if (op->nattrs) {
        diag_add_fact(d, "its attributes are %s", str_text(&all));
    } else {
        diag_add_fact(d, "it has none");
    }
}

/* Whether text holds each of the n letters once, in any order. */
static bool is_order_of(const char *text, const char *letters, size_t n) {
    bool all = strlen(text) == n;
    for (size_t i = 0; i < n && all; i++)
        all = strchr(text, letters[i]) != NULL;
    return all;
}

/* The letters of a layout without its blocks: those of NCHW8c are NCHW. */
static const char *join_blocks(const char *text) {
    char *plain = mem_bytes(strlen(text) + 1);
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        const char *digits = p;
        while (*p >= '0' && *p <= '9')
            p++;
        if (!*p)
            return "";
        if (p == digits)
            plain[n++] = *p;
    }
    plain[n] = 0;
    return plain;
}

/* Checks a string attribute against Op.choices. */
static bool check_choice(Infer *I, const Op *op, const char *attr, const AttrValue *v, Span span) {
    const char *p = op->choices;
    size_t len = strlen(attr);
    while (p && (strncmp(p, attr, len) || p[len] != ':')) {
        p = strchr(p, ';');
        p = p ? p + 2 : NULL;
    }
    if (!p || v->kind != ATTR_STRING)
        return true;
    SymbolVec words = {0};
    Str all = {0};
    bool packed = false;
    p += len + 1;
    while (*p == ' ') {
        const char *word = ++p;
        size_t n = strcspn(p, " ;");
        p += n;
        bool blocks = *word == '+', order = *word == '*' || blocks;
        bool fits = order ? is_order_of(blocks ? join_blocks(v->text) : v->text, word + 1, n - 1)
                    : *word == '-' ? !*v->text
                                   : strlen(v->text) == n && !memcmp(v->text, word, n);
        if (fits)
            return true;
        const char *sep = !all.len ? "" : *p == ' ' ? ", " : " or ";
        if (order) {
            str_printf(&all, "%san order of the letters %.*s", sep, (int)n - 1, word + 1);
            packed |= blocks;
        } else {
            n = *word == '-' ? 0 : n;
            str_printf(&all, "%s\"%.*s\"", sep, (int)n, word);
            vec_push(&words, sym_intern_n(word, n));
        }
    }
    Diag *d = infer_error(I, DIAG_R0111, span, "attribute `%s` of `%s` is %s%s", attr, op->name,
                          str_text(&all), packed ? ", also with blocks" : "");
    const Symbol *near = d ? sym_find_nearest(sym_intern(v->text), words.data, words.len,
                                              &I->env->budget)
                           : NULL;
    if (near && near->len)
        diag_add_fix(d, span, fmt_text("\"%s\"", near->text), NULL, "did you mean \"%s\"?",
                     near->text);
    return false;
}

/* Whether the attribute says nothing: TVM prints those that are not given as None, some that are no attributes here,
 * and those that repeat an argument, as `arange(0, 4, 1, start=meta[…])` does. There is one device, so it does not
 * matter which one TVM's module names. */
static bool says_nothing(const Infer *I, const Op *op, const AstAttr *a, int k) {
    bool none = a->value->kind == AST_ATTR_NONE;
    if (a->value->kind == AST_ATTR_META && strcmp(a->value->text, "VirtualDevice") == 0)
        return true;
    if (k >= 0) {
        AttrType type = op->attrs[k].type;
        return none && type != AT_INT_OPT && type != AT_INTS_OPT && type != AT_DIMS_OPT &&
               type != AT_DTYPE;
    }
    bool argument = false;
    for (int i = 0; i < op->nargs && !argument; i++) {
        argument = strcmp(op_arg(op, i).name, a->name->text) == 0;
    }
    return I->module->versioned && (none || argument);
}

/* Whether a part of the value is computed. */
static bool is_expression(const AstAttrValue *v) {
    bool any = v->kind == AST_ATTR_EXPR || v->kind == AST_ATTR_NAME;
    for (size_t i = 0; v->kind == AST_ATTR_LIST && i < v->items.len && !any; i++)
        any = is_expression(v->items.data[i]);
    return any;
}

const Attrs *infer_attrs(Infer *I, const Op *op, const AstAttrVec *attrs, Span span) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    bool *given = mem_new_n(bool, op->nattrs + 1);
    for (size_t i = 0; i < attrs->len; i++) {
        const AstAttr *a = &attrs->data[i];
        int k = op_attr_index(op, a->name->text);
        if (says_nothing(I, op, a, k))
            continue;
        if (k < 0) {
            unknown_attr(I, op, a);
            return NULL;
        }
        given[k] = true;
        if (!convert(I, op->attrs[k].type, a->value, &values[k])) {
            Diag *d = infer_error(I, DIAG_R0111, a->value->span, "attribute `%s` of `%s` is %s",
                                  a->name->text, op->name, attr_type_words(op->attrs[k].type));
            if (d && op->attrs[k].type == AT_DTYPE)
                d->cause = DIAG_CAUSE_ATTR_DTYPE;
            if (d && is_expression(a->value))
                diag_add_fact(d,
                              "`%s` must be a constant, written there or bound by `let`: %s, or "
                              "how it is computed, depends on it",
                              a->name->text,
                              op->attrs[k].type == AT_INT_OR_DIMS ? "how many results there are"
                                                                  : "the rank of the result");
            else if (d && (op->attrs[k].type == AT_DIMS || op->attrs[k].type == AT_DIMS_OPT ||
                           op->attrs[k].type == AT_DIM))
                diag_add_fact(d, "a size is one integer");
            else if (d)
                diag_add_fact(d, "attributes are constants, written where the call is");
            return NULL;
        }
        if (!check_choice(I, op, op->attrs[k].name, &values[k], a->value->span))
            return NULL;
    }
    for (int k = 0; k < op->nattrs; k++) {
        if (given[k])
            continue;
        if (!op->attrs[k].initial) {
            infer_error(I, DIAG_R0112, span, "`%s` needs the attribute `%s`, %s", op->name,
                        op->attrs[k].name, attr_type_words(op->attrs[k].type));
            return NULL;
        }
        values[k] = attr_parse(op->attrs[k].initial);
    }
    Attrs *out = mem_new(Attrs);
    out->op = op;
    out->values = values;
    return out;
}
