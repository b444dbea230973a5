/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/ast_gen_impl.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

static const char *const kinds[] = {"Type", "Shape", "BaseType", "Dim"};

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t next(Gen *g) { /* splitmix64 */
    uint64_t z = g->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int gen_pick(Gen *g, int n) { return (int)(next(g) % (uint64_t)n); }

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const locals[] = {"x", "y", "acc", "_unused", "x1", "Long_Name_0", "data"};
static const char *const softs[] = {"sq",  "Grad", "Ref",      "Zero",      "list",
                                    "ref", "read", "ref_read", "ref_write", "meta",
                                    "as",  "from", "free_var", "min",       "forall"};
static const char *const compounds[] = {"a.b", "onnx::Conv_1", "base/x", "m.24.w", "a.b/c"};
static const char *const globals[] = {"f", "main", "helper", "nn.dense", "add", "where"};
static const char *const ctors[] = {"Cons", "Nil", "Some", "Leaf", "m.Node"};
static const char *const fields[] = {"w", "b", "weight", "type", "x"};
static const char *const params[] = {"A", "B", "n", "m", "s"};

static const Symbol *sym(const char *text) { return sym_intern(text); }

Name gen_name_of(const char *text, Sigil sigil) {
    drawn_sigil[sigil]++;
    return (Name){.sym = sym(text), .sigil = sigil};
}

/* A new local, in scope from here on. */
Name gen_binder(Gen *g) {
    Name name;
    if (g->soft && gen_chance(g, 30)) {
        thing(THING_SOFT_NAME);
        name = gen_name_of(PICK(g, softs), gen_chance(g, 20) ? SIGIL_LOCAL : SIGIL_NONE);
    } else if (gen_chance(g, 15)) {
        thing(THING_COMPOUND_NAME);
        name = gen_name_of(PICK(g, compounds), SIGIL_LOCAL);
    } else {
        name = gen_name_of(PICK(g, locals), gen_chance(g, 40) ? SIGIL_LOCAL : SIGIL_NONE);
    }
    vec_push(&g->scope, name);
    return name;
}

Name fresh_binder(Gen *g, const NameVec *taken) {
    for (;;) {
        size_t mark = g->scope.len;
        Name name = gen_binder(g);
        bool twice = false;
        for (size_t i = 0; i < taken->len; i++)
            twice |= taken->data[i].sym == name.sym;
        if (!twice)
            return name;
        g->scope.len = mark;
    }
}

static bool shadows(const Gen *g, const char *word) {
    const Symbol *s = sym(word);
    for (size_t i = 0; i < g->scope.len; i++)
        if (g->scope.data[i].sym == s)
            return true;
    return false;
}

/* ---- types ----------------------------------------------------------------------------------- */

static void gen_where(Gen *g, AstConstraintVec *where);

static AstType *type_node(AstTypeKind kind) {
    AstType *t = mem_new(AstType);
    t->kind = kind;
    drawn_type[kind]++;
    return t;
}

static AstType *type_name(const char *name) {
    AstType *t = type_node(AST_TYPE_NAME);
    t->name = sym(name);
    return t;
}

static AstType *dim_node(DimOp op) {
    AstType *t = type_node(AST_TYPE_DIM);
    t->op = op;
    drawn_dim[op]++;
    return t;
}

static AstType *gen_dim(Gen *g, int depth) {
    static const DimOp ops[] = {DIM_ADD, DIM_SUB, DIM_MUL, DIM_FLOORDIV, DIM_MIN, DIM_MAX};
    if (depth <= 0 || gen_chance(g, 40)) {
        if (gen_chance(g, 40))
            return type_name(PICK(g, params));
        AstType *t = dim_node(gen_chance(g, 30) ? DIM_ANY : DIM_INT);
        if (t->op == DIM_ANY && gen_chance(g, 50)) {
            thing(THING_NUMBERED_UNKNOWN);
            t->value = 1 + gen_pick(g, 12);
        }
        if (t->op == DIM_INT)
            t->value = gen_chance(g, 10)  ? -(int64_t)gen_pick(g, 9)
                       : gen_chance(g, 5) ? INT64_MAX
                                          : gen_pick(g, 100);
        return t;
    }
    AstType *t = dim_node(PICK(g, ops));
    vec_push(&t->args, gen_dim(g, depth - 1));
    vec_push(&t->args, gen_dim(g, depth - 1));
    return t;
}

void gen_type_params(Gen *g, AstTypeParamVec *out, int least) {
    int n = least + gen_pick(g, 3);
    for (int i = 0; i < n; i++) {
        AstTypeParam p = {.name = sym(params[i])};
        if (gen_chance(g, 40)) {
            p.kind = sym(PICK(g, kinds));
            thing(THING_KIND);
        }
        vec_push(out, p);
    }
}

static AstType *gen_shape(Gen *g) {
    AstType *t = type_node(AST_TYPE_SHAPE);
    for (int n = gen_pick(g, 4); n > 0; n--)
        vec_push(&t->args, gen_dim(g, 2));
    return t;
}

static AstType *gen_fn_type(Gen *g) {
    AstType *t = type_node(AST_TYPE_FN);
    if (gen_chance(g, 30))
        gen_type_params(g, &t->params, 1);
    gen_arg_types(g, t);
    t->result = gen_type(g);
    if (gen_chance(g, 30) && !g->versioned) { /* there an inner one cannot be parenthesised */
        thing(THING_TYPE_WHERE);
        gen_where(g, &t->where);
    }
    return t;
}

AstType *gen_type(Gen *g) {
    g->depth--;
    AstType *t = NULL;
    switch (g->depth <= 0 ? gen_pick(g, 2) : gen_pick(g, 12)) {
    case 0: t = type_name(PICK(g, gen_dtypes)); break;
    case 1: t = gen_chance(g, 20) ? type_node(AST_TYPE_HOLE) : type_name(PICK(g, params)); break;
    case 2:
        t = type_name(gen_chance(g, 20) ? "m.Layer" : "List");
        for (int n = 1 + gen_pick(g, 2); n > 0; n--)
            vec_push(&t->args, gen_chance(g, 40) ? gen_dim(g, 2) : gen_type(g));
        break;
    case 3:
    case 4:
        t = type_node(AST_TYPE_TENSOR);
        t->shape = gen_chance(g, 70)   ? gen_shape(g)
                   : gen_chance(g, 20) ? type_node(AST_TYPE_HOLE)
                                       : type_name("s");
        t->dtype = gen_chance(g, 10) ? type_node(AST_TYPE_HOLE) : type_name(PICK(g, gen_dtypes));
        break;
    case 5:
    case 6: t = gen_fn_type(g); break;
    case 7:
        t = type_node(AST_TYPE_TUPLE);
        for (int n = gen_pick(g, 4); n > 0; n--) {
            AstType *e = gen_type(g); /* a size would make it a shape */
            vec_push(&t->args, e->kind == AST_TYPE_DIM ? type_name("A") : e);
        }
        break;
    case 8:
        t = type_node(AST_TYPE_REF);
        t->result = gen_type(g);
        break;
    case 9:
        t = type_node(AST_TYPE_DERIV);
        t->result = gen_type(g);
        break;
    case 10:
        t = type_node(AST_TYPE_FORALL);
        gen_type_params(g, &t->params, 1);
        t->result = gen_type(g);
        if (gen_chance(g, 30) && !g->versioned) {
            thing(THING_TYPE_WHERE);
            gen_where(g, &t->where);
        }
        break;
    default: t = gen_shape(g); break;
    }
    g->depth++;
    return t;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const char *gen_text(Gen *g, size_t *len) {
    static const char *const plain[] = {"text",      "",    "a, b // c", "/* no */",
                                        "x := 1; }", "äöü", "100%",      "\\n"};
    static const char *const odd[] = {"say \"so\"", "a\nb", "tab\t.", "\x01\x7f", "\xff.", "nul"};
    const char *text = g->versioned || gen_chance(g, 60) ? PICK(g, plain) : PICK(g, odd);
    *len = strlen(text);
    if (!*len)
        thing(THING_EMPTY_STRING);
    if (strpbrk(text, "\"\n\t\x01"))
        thing(THING_ESCAPES);
    if ((unsigned char)text[0] == 0xFF)
        thing(THING_NOT_UTF8);
    if (!strcmp(text, "nul")) {
        *len = 4;
        return "a\0001";
    }
    return text;
}

/* A sum that an attribute's value can begin with: neither a parenthesis nor a minus in front. */
static AstType *gen_attr_dim(Gen *g) {
    AstType *t = dim_node(gen_chance(g, 50) ? DIM_ADD : DIM_MUL), *n = dim_node(DIM_INT);
    n->value = 2;
    vec_push(&t->args, gen_chance(g, 50) ? type_name("n") : n);
    vec_push(&t->args, gen_dim(g, 2));
    return gen_chance(g, 30) ? dim_node(DIM_ANY) : t;
}

static Ast *node(AstKind kind);

/* A sum or product, which is no bare name. */
static Ast *gen_size(Gen *g) {
    Ast *e = node(AST_BINARY), *a = node(AST_NAME), *b = node(AST_INT);
    e->op = gen_chance(g, 50) ? BINOP_ADD : BINOP_MUL;
    a->name.sym = sym("n");
    b->i = gen_pick(g, 9);
    e->a = a;
    e->b = gen_chance(g, 50) ? b : a;
    return e;
}

static AstAttrValue *gen_attr_value(Gen *g, int depth) {
    AstAttrValue *v = mem_new(AstAttrValue);
    v->kind = (AstAttrKind)gen_pick(g, N_ATTR);
    if (v->kind == AST_ATTR_LIST && depth <= 0)
        v->kind = AST_ATTR_NONE;
    if (v->kind == (g->in_call ? AST_ATTR_DIM : AST_ATTR_EXPR))
        v->kind = g->in_call ? AST_ATTR_EXPR : AST_ATTR_DIM;
    if (v->kind == AST_ATTR_NONE && shadows(g, "None"))
        v->kind = AST_ATTR_INT;
    drawn_attr[v->kind]++;
    switch (v->kind) {
    case AST_ATTR_INT:
        v->i = gen_chance(g, 30) ? -(int64_t)gen_pick(g, 9) : gen_pick(g, 1000);
        break;
    case AST_ATTR_FLOAT:
        v->f = gen_chance(g, 20)   ? INFINITY
               : gen_chance(g, 20) ? -INFINITY
               : gen_chance(g, 20) ? NAN
                                   : (gen_pick(g, 2000) - 1000) / 64.0;
        break;
    case AST_ATTR_BOOL: v->i = gen_pick(g, 2); break;
    case AST_ATTR_STRING: v->text = gen_text(g, &v->text_len); break;
    case AST_ATTR_NONE: break;
    case AST_ATTR_NAME: v->name = sym(gen_chance(g, 50) ? "float32" : "axis"); break;
    case AST_ATTR_META:
        v->text = "relay.Constant";
        v->text_len = strlen(v->text);
        v->i = gen_pick(g, 3);
        break;
    case AST_ATTR_DIM:
        v->dim = gen_chance(g, 70) ? gen_attr_dim(g) : type_node(AST_TYPE_TENSOR);
        if (v->dim->kind == AST_TYPE_TENSOR) {
            v->dim->shape = gen_shape(g);
            v->dim->dtype = type_name("float32");
        }
        break;
    case AST_ATTR_EXPR: v->expr = gen_size(g); break;
    case AST_ATTR_LIST:
        for (int n = gen_pick(g, 4); n > 0; n--)
            vec_push(&v->items, gen_attr_value(g, depth - 1));
        break;
    }
    return v;
}

static void gen_attrs(Gen *g, AstAttrVec *out) {
    static const char *const keys[] = {"Primitive", "strides", "a.b", "dtype", "type_"};
    int first = gen_pick(g, 5), n = 1 + gen_pick(g, 2);
    for (int i = 0; i < n; i++) {
        AstAttr a = {.name = sym(keys[(first + i) % 5]), .value = gen_attr_value(g, 2)};
        vec_push(out, a);
    }
}

static void gen_where(Gen *g, AstConstraintVec *where) {
    static const char *const relations[] = {"Broadcast", "Num", "nn.Dense"};
    for (int n = 1 + gen_pick(g, 2); n > 0; n--) {
        AstConstraint c = {.name = sym(PICK(g, relations))};
        for (int k = 1 + gen_pick(g, 2); k > 0; k--)
            vec_push(&c.args, gen_chance(g, 20) ? gen_type(g) : type_name(PICK(g, params)));
        if (gen_chance(g, 20)) {
            thing(THING_WHERE_ATTRS);
            c.attrs = mem_new(AstAttrVec);
            gen_attrs(g, c.attrs);
        }
        vec_push(where, c);
    }
}

/* ---- literals -------------------------------------------------------------------------------- */

static Ast *node(AstKind kind) {
    Ast *e = mem_new(Ast);
    e->kind = kind;
    drawn_ast[kind]++;
    return e;
}

static Ast *gen_int(Gen *g) {
    Ast *e = node(AST_INT);
    int type = gen_chance(g, 60) ? 0 : 1 + gen_pick(g, 8), bits = type ? 8 << (type - 1) % 4 : 64;
    if (type) {
        drawn_suffix[type]++;
        e->dtype = sym(gen_dtypes[type]);
    } else {
        thing(THING_WEAK_INT);
    }
    bool is_signed = type < 5;
    uint64_t half = (uint64_t)1 << (bits - 1);
    if (is_signed && gen_chance(g, 10)) {
        thing(THING_SMALLEST_INT);
        e->i = (int64_t)(0 - half);
    } else if (!is_signed && gen_chance(g, 10)) {
        thing(THING_LARGEST_UINT);
        e->i = (int64_t)(half - 1 + half);
    } else {
        e->i = gen_pick(g, 100);
        if (is_signed && gen_chance(g, 25))
            e->i = -e->i;
    }
    if (is_signed && e->i < 0)
        thing(THING_NEGATIVE_INT);
    return e;
}

static Ast *gen_float(Gen *g) {
    static const double values[] = {0.0, 0.5, 1.0, 1.5, 2.0, 96.0, 0.125, 0x1p-10, 1024.0};
    Ast *e = node(AST_FLOAT);
    int type = gen_chance(g, 60) ? 0 : 9 + gen_pick(g, 4);
    if (type) {
        drawn_suffix[type]++;
        e->dtype = sym(gen_dtypes[type]);
    } else {
        thing(THING_WEAK_FLOAT);
    }
    e->f = PICK(g, values);
    if (!type || type == 12)
        e->f = gen_chance(g, 20)   ? 1e300 / (1 + gen_pick(g, 99))
               : gen_chance(g, 20) ? 0.1 * gen_pick(g, 99)
                                   : e->f;
    if (gen_chance(g, 8)) {
        thing(THING_NAN);
        e->f = NAN;
        return e;
    }
    if (gen_chance(g, 8)) {
        thing(THING_INF);
        e->f = INFINITY;
    }
    if (gen_chance(g, 25)) {
        e->f = -e->f;
        thing(isinf(e->f) ? THING_MINUS_INF
              : e->f == 0 ? THING_NEGATIVE_ZERO
                          : THING_NEGATIVE_FLOAT);
    }
    return e;
}

static Ast *gen_literal(Gen *g) {
    Ast *e;
    switch (gen_pick(g, 5)) {
    case 0:
    case 1: return gen_int(g);
    case 2: return gen_float(g);
    case 3:
        e = node(AST_BOOL);
        e->i = gen_pick(g, 2);
        return e;
    default:
        e = node(AST_STRING);
        e->text = gen_text(g, &e->text_len);
        return e;
    }
}

/* ---- patterns -------------------------------------------------------------------------------- */

static AstPattern *gen_pattern(Gen *g, int depth, NameVec *bound);

static AstPattern *gen_variable(Gen *g, NameVec *bound, bool field) {
    AstPattern *pat = mem_new(AstPattern);
    pat->kind = AST_PAT_NAME;
    drawn_pattern[pat->kind]++;
    if (gen_chance(g, 25) && !field) {
        pat->name = gen_name_of(PICK(g, ctors), SIGIL_NONE);
    } else if (bound->len < 5) {
        pat->name = fresh_binder(g, bound);
        vec_push(bound, pat->name);
    } else {
        pat->name = gen_name_of("Nil", SIGIL_NONE);
    }
    if (gen_chance(g, 20) && !strchr(pat->name.sym->text, '.')) {
        pat->type = gen_type(g);
        thing(THING_PATTERN_TYPE);
    }
    return pat;
}

static void gen_patterns(Gen *g, int depth, int n, NameVec *bound, AstPatternVec *out) {
    for (; n > 0; n--)
        vec_push(out, gen_pattern(g, depth - 1, bound));
}

static AstPattern *gen_pattern(Gen *g, int depth, NameVec *bound) {
    AstPatternKind kind = (AstPatternKind)gen_pick(g, depth <= 0 ? AST_PAT_STRING + 1 : N_PATTERN);
    if (kind == AST_PAT_NAME)
        return gen_variable(g, bound, false);
    if (kind == AST_PAT_LIST && shadows(g, "list"))
        kind = AST_PAT_WILDCARD;
    AstPattern *pat = mem_new(AstPattern);
    pat->kind = kind;
    drawn_pattern[kind]++;
    switch (kind) {
    case AST_PAT_WILDCARD:
        if (gen_chance(g, 20))
            pat->type = gen_type(g);
        break;
    case AST_PAT_NAME: break;
    case AST_PAT_INT: pat->literal = gen_int(g); break;
    case AST_PAT_FLOAT: pat->literal = gen_float(g); break;
    case AST_PAT_BOOL:
        pat->literal = node(AST_BOOL);
        pat->literal->i = gen_pick(g, 2);
        break;
    case AST_PAT_STRING:
        pat->literal = node(AST_STRING);
        pat->literal->text = gen_text(g, &pat->literal->text_len);
        break;
    case AST_PAT_CTOR:
        pat->name = gen_name_of(PICK(g, ctors), SIGIL_NONE);
        gen_patterns(g, depth, gen_pick(g, 3), bound, &pat->args);
        break;
    case AST_PAT_RECORD: {
        int first = gen_pick(g, 5);
        pat->name = gen_name_of(PICK(g, ctors), SIGIL_NONE);
        for (int n = gen_pick(g, 3), i = 0; i < n; i++) {
            vec_push(&pat->fields,
                     gen_name_of(fields[i == 0 ? first % 3 : (first + i) % 3], SIGIL_NONE));
            vec_push(&pat->args, gen_pattern(g, depth - 1, bound));
        }
        break;
    }
    case AST_PAT_TUPLE: gen_patterns(g, depth, gen_pick(g, 4), bound, &pat->args); break;
    case AST_PAT_PAREN: gen_patterns(g, depth, 1, bound, &pat->args); break;
    case AST_PAT_CONS:
        gen_patterns(g, depth, 2, bound, &pat->args);
        if (pat->args.data[0]->kind == AST_PAT_CONS) { /* in parentheses */
            AstPattern *paren = mem_new(AstPattern);
            paren->kind = AST_PAT_PAREN;
            vec_push(&paren->args, pat->args.data[0]);
            pat->args.data[0] = paren;
        }
        break;
    case AST_PAT_LIST: gen_patterns(g, depth, gen_pick(g, 3), bound, &pat->args); break;
    }
    return pat;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static Ast *gen_name(Gen *g) {
    Ast *e = node(AST_NAME);
    if (g->scope.len && gen_chance(g, 70)) {
        Name bound = g->scope.data[gen_pick(g, (int)g->scope.len)];
        e->name = gen_name_of(bound.sym->text, bound.sigil);
        return e;
    }
    const char *text = gen_chance(g, 30) ? PICK(g, ctors) : PICK(g, globals);
    Sigil sigil = strcmp(text, "where") == 0 || text[0] < 'a' || gen_chance(g, 60) ? SIGIL_NONE
                                                                                   : SIGIL_GLOBAL;
    if (strchr(text, '.'))
        thing(THING_DOTTED_NAME);
    /* a name that something is bound as would be cut at its dot */
    if (strchr(text, '.') && sigil == SIGIL_NONE && shadows(g, "m"))
        text = "f";
    e->name = gen_name_of(text, sigil);
    return e;
}

static void gen_args(Gen *g, AstVec *args, int most) {
    for (int n = gen_pick(g, most + 1); n > 0; n--)
        vec_push(args, gen_expr(g));
}

AstFn *gen_fn(Gen *g) {
    AstFn *fn = mem_new(AstFn);
    size_t mark = g->scope.len;
    NameVec taken = {0};
    if (gen_chance(g, 20)) {
        gen_type_params(g, &fn->type_params, 1);
        thing(THING_FN_PARAMS);
    }
    for (int n = gen_pick(g, 3); n > 0; n--) {
        AstParam p = {0};
        if (gen_chance(g, 20)) {
            p.name = gen_name_of("(whole)", SIGIL_NONE);
            p.pattern = gen_binding_pattern(g, 1, &taken);
        } else {
            p.name = fresh_binder(g, &taken);
            vec_push(&taken, p.name);
        }
        if (gen_chance(g, 40))
            p.type = gen_type(g);
        vec_push(&fn->params, p);
    }
    if (gen_chance(g, 15)) {
        gen_attrs(g, &fn->attrs);
        thing(THING_FN_ATTRS);
    }
    if (gen_chance(g, 30)) {
        fn->result = gen_type(g);
        thing(THING_FN_RESULT);
    }
    if (gen_chance(g, 15)) {
        fn->has_where = true;
        gen_where(g, &fn->where);
        thing(THING_FN_WHERE);
    }
    fn->body = gen_expr(g);
    g->scope.len = mark;
    return fn;
}

/* A chain of a few links. */
static Ast *gen_chain(Gen *g) {
    static const AstKind links[] = {AST_LET, AST_LET, AST_SEQ, AST_GRAPH_LET, AST_FREE_VAR};
    Ast *first = NULL, **slot = &first;
    size_t mark = g->scope.len;
    for (int n = 1 + gen_pick(g, 3); n > 0; n--) {
        AstKind kind = PICK(g, links);
        Ast *e = node(kind == AST_FREE_VAR && shadows(g, "free_var") ? AST_LET : kind);
        if (e->kind != AST_FREE_VAR)
            e->a = gen_expr(g);
        if (e->kind == AST_GRAPH_LET)
            e->i = gen_pick(g, 20);
        if (e->kind == AST_LET || e->kind == AST_FREE_VAR) {
            NameVec bound = {0};
            bool apart = e->kind == AST_LET && gen_chance(g, 25);
            e->name = apart ? gen_name_of("(whole)", SIGIL_NONE) : gen_binder(g);
            if (apart)
                e->pattern = gen_binding_pattern(g, 2, &bound);
            if (gen_chance(g, 30)) {
                e->type = gen_type(g);
                thing(THING_LET_TYPE);
            }
        }
        *slot = e;
        slot = &e->body;
    }
    AstKind last = first->kind;
    for (const Ast *e = first; e; e = e->body)
        last = e->kind;
    if (gen_chance(g, 80)) {
        *slot = gen_expr(g);
    } else {
        thing(last == AST_LET ? THING_LET_END : THING_SEQ_END);
    }
    g->scope.len = mark;
    return first;
}

static AstIndex gen_index(Gen *g) {
    AstIndex x = {.kind = (IndexKind)gen_pick(g, N_INDEX)};
    if (x.kind == INDEX_NEW_AXIS && shadows(g, "None"))
        x.kind = INDEX_ELLIPSIS;
    drawn_index[x.kind]++;
    if (x.kind == INDEX_AT)
        x.at = gen_expr(g);
    if (x.kind == INDEX_SLICE) {
        x.begin = gen_chance(g, 60) ? gen_expr(g) : NULL;
        x.end = gen_chance(g, 60) ? gen_expr(g) : NULL;
        x.step = gen_chance(g, 40) ? gen_expr(g) : NULL;
    }
    return x;
}

static Ast *gen_match(Gen *g) {
    Ast *e = node(AST_MATCH);
    e->flag = gen_chance(g, 30);
    if (e->flag)
        thing(THING_MATCH_PARTIAL);
    e->a = gen_expr(g);
    for (int n = gen_pick(g, 4); n > 0; n--) {
        size_t mark = g->scope.len;
        NameVec bound = {0};
        AstArm arm = {.pattern = gen_pattern(g, 3, &bound)};
        if (gen_chance(g, 30)) {
            arm.guard = gen_expr(g);
            thing(THING_GUARD);
        }
        arm.body = gen_expr(g);
        g->scope.len = mark;
        vec_push(&e->arms, arm);
    }
    return e;
}

static void gen_fields(Gen *g, Ast *e) {
    int first = gen_pick(g, 5), n = (e->kind == AST_WITH) + gen_pick(g, 2);
    for (int i = 0; i < n; i++) {
        vec_push(&e->fields, gen_name_of(fields[(first + i) % 3], SIGIL_NONE));
        vec_push(&e->args, gen_expr(g));
    }
}

static Ast *gen_leaf(Gen *g) {
    Ast *e;
    switch (gen_pick(g, 8)) {
    case 0: return node(AST_HOLE);
    case 1:
        e = node(AST_GRAPH_VAR);
        e->i = gen_pick(g, 20);
        return e;
    case 2:
        if (shadows(g, "meta"))
            return gen_literal(g);
        e = node(AST_META);
        e->text = "relay.Constant";
        e->text_len = strlen(e->text);
        e->i = gen_pick(g, 3);
        return e;
    case 3:
    case 4:
    case 5: return gen_name(g);
    default: return gen_literal(g);
    }
}

/* What has syntax of its own, unless its word is bound. */
static bool is_hidden(const Gen *g, AstKind kind) {
    return (kind == AST_LIST && shadows(g, "list")) || (kind == AST_ZERO && shadows(g, "Zero")) ||
           (kind == AST_REF && shadows(g, "ref")) ||
           (kind == AST_REF_READ && shadows(g, "ref_read")) ||
           (kind == AST_GRAD && shadows(g, "Grad"));
}

static AstType *gen_cast_type(Gen *g) {
    if (gen_chance(g, 50))
        return type_name(PICK(g, gen_dtypes));
    AstType *t = type_node(AST_TYPE_TENSOR);
    t->shape = gen_shape(g);
    t->dtype = type_name(PICK(g, gen_dtypes));
    return t;
}

static Ast *gen_branch(Gen *g) {
    static const AstKind all[] = {
        AST_CALL,   AST_CALL,   AST_CALL,  AST_INSTANTIATE, AST_FN,    AST_LET,      AST_LET,
        AST_IF,     AST_MATCH,  AST_TUPLE, AST_PROJ,        AST_FIELD, AST_RECORD,   AST_WITH,
        AST_TENSOR, AST_LIST,   AST_INDEX, AST_UNARY,       AST_UNARY, AST_BINARY,   AST_BINARY,
        AST_BINARY, AST_BINARY, AST_CAST,  AST_ZERO,        AST_REF,   AST_REF_READ, AST_GRAD};
    AstKind kind = PICK(g, all);
    if (is_hidden(g, kind))
        return gen_leaf(g);
    if (kind == AST_LET) {
        thing(THING_CHAIN_VALUE);
        return gen_chain(g);
    }
    if (kind == AST_MATCH)
        return gen_match(g);
    Ast *e = mem_new(Ast);
    e->kind = kind;
    switch (kind) {
    case AST_CALL:
        e->a = gen_expr(g);
        if (e->a->kind == AST_INSTANTIATE)
            e->a = gen_name(g);
        if (e->a->kind == AST_NAME && gen_chance(g, 30)) {
            for (int n = 1 + gen_pick(g, 2); n > 0; n--)
                vec_push(&e->type_args, gen_type(g));
            thing(THING_CALL_TYPES);
        }
        gen_args(g, &e->args, 3);
        if (gen_chance(g, 20)) {
            g->in_call = true;
            gen_attrs(g, &e->attrs);
            g->in_call = false;
            thing(THING_CALL_ATTRS);
        }
        break;
    case AST_INSTANTIATE:
        e->a = node(AST_NAME);
        e->a->name = gen_name_of("helper", SIGIL_GLOBAL);
        vec_push(&e->type_args, gen_type(g));
        break;
    case AST_FN: e->fn = gen_fn(g); break;
    case AST_IF:
        e->a = gen_expr(g);
        e->b = gen_expr(g);
        e->c = gen_expr(g);
        break;
    case AST_TUPLE:
        gen_args(g, &e->args, 3);
        if (e->args.len < 2)
            thing(e->args.len ? THING_TUPLE_1 : THING_TUPLE_0);
        break;
    case AST_TENSOR:
    case AST_LIST: gen_args(g, &e->args, 4); break;
    case AST_PROJ:
        e->a = gen_expr(g);
        e->i = gen_pick(g, 12);
        break;
    case AST_FIELD:
        e->a = gen_expr(g);
        e->field = sym(PICK(g, fields));
        break;
    case AST_RECORD:
        e->name = gen_name_of("Layer", SIGIL_NONE);
        gen_fields(g, e);
        break;
    case AST_WITH:
        e->a = gen_expr(g);
        gen_fields(g, e);
        break;
    case AST_WITH_AT:
    case AST_INDEX: /* brackets after a name may hold types */
        while (!e->a || e->a->kind == AST_NAME || e->a->kind == AST_INSTANTIATE)
            e->a = gen_expr(g);
        for (int n = 1 + gen_pick(g, 3); n > 0; n--)
            vec_push(&e->indices, gen_index(g));
        if (e->indices.len > 2 && (e->kind = AST_WITH_AT))
            vec_push(&e->args, node(AST_TUPLE));
        break;
    case AST_UNARY:
        e->op = (uint8_t)gen_pick(g, N_UNOP);
        if (e->op == UNOP_SQ && shadows(g, "sq"))
            e->op = UNOP_BANG;
        drawn_unop[e->op]++;
        e->a = gen_expr(g);
        break;
    case AST_BINARY:
        e->op = (uint8_t)gen_pick(g, N_BINOP);
        drawn_binop[e->op]++;
        e->a = gen_expr(g);
        e->b = gen_expr(g);
        break;
    case AST_CAST:
        e->type = gen_cast_type(g);
        e->a = gen_expr(g);
        break;
    case AST_ZERO: e->type = gen_chance(g, 50) ? gen_cast_type(g) : gen_type(g); break;
    case AST_REF:
    case AST_REF_READ:
    case AST_GRAD: e->a = gen_expr(g); break;
    case AST_INT:
    case AST_FLOAT:
    case AST_BOOL:
    case AST_STRING:
    case AST_NAME:
    case AST_GRAPH_VAR:
    case AST_HOLE:
    case AST_LET:
    case AST_GRAPH_LET:
    case AST_FREE_VAR:
    case AST_SEQ:
    case AST_MATCH:
    case AST_META:
    case AST_ERROR: break;
    }
    drawn_ast[e->kind]++;
    return e;
}

Ast *gen_expr(Gen *g) {
    g->depth--;
    Ast *e = g->depth <= 0 || gen_chance(g, 25) ? gen_leaf(g) : gen_branch(g);
    g->depth++;
    return e;
}
