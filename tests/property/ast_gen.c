/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/ast_gen.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

/* ---- what was drawn -------------------------------------------------------------------------- */

enum {
    N_AST = AST_ERROR, N_TYPE = AST_TYPE_HOLE + 1, N_PATTERN = AST_PAT_LIST + 1,
    N_ATTR = AST_ATTR_DIM + 1, N_INDEX = INDEX_NEW_AXIS + 1, N_BINOP = BINOP_COMPOSE + 1,
    N_UNOP = UNOP_SQ + 1, N_DIM = DIM_MAX + 1, N_ITEM = ITEM_ERROR, N_SIGIL = SIGIL_GLOBAL + 1,
};

static const char *const dtypes[] = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                                     "uint32", "uint64", "float16", "bfloat16", "float32", "float64"};
static const char *const kinds[] = {"Type", "Shape", "BaseType", "Dim"};

/* Single things, by name. */
#define THINGS(X)                                                                                  \
    X(WEAK_INT) X(WEAK_FLOAT) X(NEGATIVE_INT) X(NEGATIVE_FLOAT) X(NEGATIVE_ZERO) X(INF) X(MINUS_INF) \
    X(NAN) X(SMALLEST_INT) X(LARGEST_UINT) X(ESCAPES) X(NOT_UTF8) X(EMPTY_STRING) X(MATCH_PARTIAL) \
    X(GUARD) X(LET_END) X(SEQ_END) X(LET_TYPE) X(PATTERN_TYPE) X(FN_PARAMS) X(FN_ATTRS) X(FN_RESULT) \
    X(FN_WHERE) X(WHERE_ATTRS) X(TYPE_WHERE) X(CALL_TYPES) X(CALL_ATTRS) X(KIND) X(DOC) X(EMPTY_TYPE) \
    X(NAMED_CTOR) X(IMPORT_PATH) X(IMPORT_AS) X(IMPORT_NAMES) X(SHOWN) X(NOT_SHOWN) X(CONSTANT)    \
    X(VERSIONED) X(SOFT_NAME) X(DOTTED_NAME) X(COMPOUND_NAME) X(TUPLE_0) X(TUPLE_1) X(CHAIN_VALUE)
enum {
#define X(name) THING_##name,
    THINGS(X)
#undef X
    N_THING
};
static const char *const thing_names[] = {
#define X(name) #name,
    THINGS(X)
#undef X
};

static int drawn_ast[N_AST], drawn_type[N_TYPE], drawn_pattern[N_PATTERN], drawn_attr[N_ATTR],
    drawn_index[N_INDEX], drawn_binop[N_BINOP], drawn_unop[N_UNOP], drawn_dim[N_DIM],
    drawn_item[N_ITEM], drawn_sigil[N_SIGIL], drawn_suffix[13], drawn_thing[N_THING];

static void thing(int which) { drawn_thing[which]++; }

static void list_missing(Str *s, const char *what, const int *drawn, int n, const char *const *names) {
    for (int i = 0; i < n; i++)
        if (!drawn[i])
            str_printf(s, "%s %s\n", what, names[i]);
}

static void list_numbers(Str *s, const char *what, const int *drawn, int n) {
    for (int i = 0; i < n; i++)
        if (!drawn[i])
            str_printf(s, "%s number %d\n", what, i);
}

const char *gen_missing(void) {
    Str s = {0};
    list_numbers(&s, "expression", drawn_ast, N_AST);
    list_numbers(&s, "type", drawn_type, N_TYPE);
    list_numbers(&s, "pattern", drawn_pattern, N_PATTERN);
    list_numbers(&s, "attribute", drawn_attr, N_ATTR);
    list_numbers(&s, "index", drawn_index, N_INDEX);
    list_numbers(&s, "binary operator", drawn_binop, N_BINOP);
    list_numbers(&s, "unary operator", drawn_unop, N_UNOP);
    list_numbers(&s, "size", drawn_dim, N_DIM);
    list_numbers(&s, "item", drawn_item, N_ITEM);
    list_numbers(&s, "sigil", drawn_sigil, N_SIGIL);
    list_missing(&s, "suffix", drawn_suffix + 1, 12, dtypes + 1);
    list_missing(&s, "thing", drawn_thing, N_THING, thing_names);
    return str_text(&s);
}

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t next(Gen *g) { /* splitmix64 */
    uint64_t z = g->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static int pick(Gen *g, int n) { return (int)(next(g) % (uint64_t)n); }
static bool chance(Gen *g, int percent) { return pick(g, 100) < percent; }
#define PICK(g, list) ((list)[pick(g, (int)(sizeof(list) / sizeof *(list)))])

/* ---- names ----------------------------------------------------------------------------------- */

static const char *const locals[] = {"x", "y", "acc", "_unused", "x1", "Long_Name_0", "data"};
static const char *const softs[] = {"sq", "Grad", "Ref", "Zero", "list", "ref", "read", "ref_read",
                                    "ref_write", "meta", "as", "from", "free_var", "min", "forall"};
static const char *const compounds[] = {"a.b", "onnx::Conv_1", "base/x", "m.24.w", "a.b/c"};
static const char *const globals[] = {"f", "main", "helper", "nn.dense", "add", "where"};
static const char *const ctors[] = {"Cons", "Nil", "Some", "Leaf", "m.Node"};
static const char *const fields[] = {"w", "b", "weight", "type", "x"};
static const char *const params[] = {"A", "B", "n", "m", "s"};

static const Symbol *sym(const char *text) { return sym_intern(text); }

static Name name_of(const char *text, Sigil sigil) {
    drawn_sigil[sigil]++;
    return (Name){.sym = sym(text), .sigil = sigil};
}

/* A new local, in scope from here on. */
static Name binder(Gen *g) {
    Name name;
    if (g->soft && chance(g, 30)) {
        thing(THING_SOFT_NAME);
        name = name_of(PICK(g, softs), chance(g, 20) ? SIGIL_LOCAL : SIGIL_NONE);
    } else if (chance(g, 15)) {
        thing(THING_COMPOUND_NAME);
        name = name_of(PICK(g, compounds), SIGIL_LOCAL);
    } else {
        name = name_of(PICK(g, locals), chance(g, 40) ? SIGIL_LOCAL : SIGIL_NONE);
    }
    vec_push(&g->scope, name);
    return name;
}

static Name fresh_binder(Gen *g, const NameVec *taken) {
    for (;;) {
        size_t mark = g->scope.len;
        Name name = binder(g);
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

static AstType *gen_type(Gen *g);
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
    if (depth <= 0 || chance(g, 40)) {
        if (chance(g, 40))
            return type_name(PICK(g, params));
        AstType *t = dim_node(chance(g, 30) ? DIM_ANY : DIM_INT);
        if (t->op == DIM_INT)
            t->value = chance(g, 10) ? -(int64_t)pick(g, 9) : chance(g, 5) ? INT64_MAX : pick(g, 100);
        return t;
    }
    AstType *t = dim_node(PICK(g, ops));
    vec_push(&t->args, gen_dim(g, depth - 1));
    vec_push(&t->args, gen_dim(g, depth - 1));
    return t;
}

static void gen_type_params(Gen *g, AstTypeParamVec *out, int least) {
    int n = least + pick(g, 3);
    for (int i = 0; i < n; i++) {
        AstTypeParam p = {.name = sym(params[i])};
        if (chance(g, 40)) {
            p.kind = sym(PICK(g, kinds));
            thing(THING_KIND);
        }
        vec_push(out, p);
    }
}

static AstType *gen_shape(Gen *g) {
    AstType *t = type_node(AST_TYPE_SHAPE);
    for (int n = pick(g, 4); n > 0; n--)
        vec_push(&t->args, gen_dim(g, 2));
    return t;
}

static AstType *gen_fn_type(Gen *g) {
    AstType *t = type_node(AST_TYPE_FN);
    if (chance(g, 30))
        gen_type_params(g, &t->params, 1);
    for (int n = pick(g, 3); n > 0; n--)
        vec_push(&t->args, gen_type(g));
    t->result = gen_type(g);
    if (chance(g, 30) && !g->versioned) { /* there an inner one cannot be parenthesised */
        thing(THING_TYPE_WHERE);
        gen_where(g, &t->where);
    }
    return t;
}

static AstType *gen_type(Gen *g) {
    g->depth--;
    AstType *t = NULL;
    switch (g->depth <= 0 ? pick(g, 2) : pick(g, 11)) {
    case 0: t = type_name(PICK(g, dtypes)); break;
    case 1: t = chance(g, 20) ? type_node(AST_TYPE_HOLE) : type_name(PICK(g, params)); break;
    case 2:
        t = type_name(chance(g, 20) ? "m.Layer" : "List");
        for (int n = 1 + pick(g, 2); n > 0; n--)
            vec_push(&t->args, chance(g, 40) ? gen_dim(g, 2) : gen_type(g));
        break;
    case 3:
    case 4:
        t = type_node(AST_TYPE_TENSOR);
        t->shape = chance(g, 70) ? gen_shape(g) : chance(g, 20) ? type_node(AST_TYPE_HOLE) : type_name("s");
        t->dtype = chance(g, 10) ? type_node(AST_TYPE_HOLE) : type_name(PICK(g, dtypes));
        break;
    case 5:
    case 6: t = gen_fn_type(g); break;
    case 7:
        t = type_node(AST_TYPE_TUPLE);
        for (int n = pick(g, 4); n > 0; n--) {
            AstType *e = gen_type(g); /* a size would make it a shape */
            vec_push(&t->args, e->kind == AST_TYPE_DIM ? type_name("A") : e);
        }
        break;
    case 8:
        t = type_node(AST_TYPE_REF);
        t->result = gen_type(g);
        break;
    case 9:
        t = type_node(AST_TYPE_FORALL);
        gen_type_params(g, &t->params, 1);
        t->result = gen_type(g);
        break;
    default: t = gen_shape(g); break;
    }
    g->depth++;
    return t;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const char *gen_text(Gen *g, size_t *len) {
    static const char *const plain[] = {"text", "", "a, b // c", "/* no */", "x := 1; }", "äöü", "100%", "\\n"};
    static const char *const odd[] = {"say \"so\"", "a\nb", "tab\t.", "\x01\x7f", "\xff.", "nul"};
    const char *text = g->versioned || chance(g, 60) ? PICK(g, plain) : PICK(g, odd);
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
    AstType *t = dim_node(chance(g, 50) ? DIM_ADD : DIM_MUL), *n = dim_node(DIM_INT);
    n->value = 2;
    vec_push(&t->args, chance(g, 50) ? type_name("n") : n);
    vec_push(&t->args, gen_dim(g, 2));
    return chance(g, 30) ? dim_node(DIM_ANY) : t;
}

static AstAttrValue *gen_attr_value(Gen *g, int depth) {
    AstAttrValue *v = mem_new(AstAttrValue);
    v->kind = (AstAttrKind)pick(g, N_ATTR);
    if (v->kind == AST_ATTR_LIST && depth <= 0)
        v->kind = AST_ATTR_NONE;
    if (v->kind == AST_ATTR_NONE && shadows(g, "None"))
        v->kind = AST_ATTR_INT;
    drawn_attr[v->kind]++;
    switch (v->kind) {
    case AST_ATTR_INT: v->i = chance(g, 30) ? -(int64_t)pick(g, 9) : pick(g, 1000); break;
    case AST_ATTR_FLOAT:
        v->f = chance(g, 20) ? INFINITY : chance(g, 20) ? -INFINITY : chance(g, 20) ? NAN
               : (pick(g, 2000) - 1000) / 64.0;
        break;
    case AST_ATTR_BOOL: v->i = pick(g, 2); break;
    case AST_ATTR_STRING: v->text = gen_text(g, &v->text_len); break;
    case AST_ATTR_NONE: break;
    case AST_ATTR_NAME: v->name = sym(chance(g, 50) ? "float32" : "axis"); break;
    case AST_ATTR_META:
        v->text = "relay.Constant";
        v->text_len = strlen(v->text);
        v->i = pick(g, 3);
        break;
    case AST_ATTR_DIM:
        v->dim = chance(g, 70) ? gen_attr_dim(g) : type_node(AST_TYPE_TENSOR);
        if (v->dim->kind == AST_TYPE_TENSOR) {
            v->dim->shape = gen_shape(g);
            v->dim->dtype = type_name("float32");
        }
        break;
    case AST_ATTR_LIST:
        for (int n = pick(g, 4); n > 0; n--)
            vec_push(&v->items, gen_attr_value(g, depth - 1));
        break;
    }
    return v;
}

static void gen_attrs(Gen *g, AstAttrVec *out) {
    static const char *const keys[] = {"Primitive", "strides", "a.b", "dtype", "type_"};
    int first = pick(g, 5), n = 1 + pick(g, 2);
    for (int i = 0; i < n; i++) {
        AstAttr a = {.name = sym(keys[(first + i) % 5]), .value = gen_attr_value(g, 2)};
        vec_push(out, a);
    }
}

static void gen_where(Gen *g, AstConstraintVec *where) {
    static const char *const relations[] = {"Broadcast", "Num", "nn.Dense"};
    for (int n = 1 + pick(g, 2); n > 0; n--) {
        AstConstraint c = {.name = sym(PICK(g, relations))};
        for (int k = 1 + pick(g, 2); k > 0; k--)
            vec_push(&c.args, chance(g, 20) ? gen_type(g) : type_name(PICK(g, params)));
        if (chance(g, 20)) {
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
    int type = chance(g, 60) ? 0 : 1 + pick(g, 8), bits = 8 << (type - 1) % 4;
    if (type) {
        drawn_suffix[type]++;
        e->dtype = sym(dtypes[type]);
    } else {
        thing(THING_WEAK_INT);
        bits = 64;
    }
    bool is_signed = type < 5;
    uint64_t half = (uint64_t)1 << (bits - 1);
    if (is_signed && chance(g, 10)) {
        thing(THING_SMALLEST_INT);
        e->i = (int64_t)(0 - half);
    } else if (!is_signed && chance(g, 10)) {
        thing(THING_LARGEST_UINT);
        e->i = (int64_t)(half - 1 + half);
    } else {
        e->i = pick(g, 100);
        if (is_signed && chance(g, 25))
            e->i = -e->i;
    }
    if (is_signed && e->i < 0)
        thing(THING_NEGATIVE_INT);
    return e;
}

static Ast *gen_float(Gen *g) {
    static const double values[] = {0.0, 0.5, 1.0, 1.5, 2.0, 96.0, 0.125, 0x1p-10, 1024.0};
    Ast *e = node(AST_FLOAT);
    int type = chance(g, 60) ? 0 : 9 + pick(g, 4);
    if (type) {
        drawn_suffix[type]++;
        e->dtype = sym(dtypes[type]);
    } else {
        thing(THING_WEAK_FLOAT);
    }
    e->f = PICK(g, values);
    if (!type || type == 12)
        e->f = chance(g, 20) ? 1e300 / (1 + pick(g, 99)) : chance(g, 20) ? 0.1 * pick(g, 99) : e->f;
    if (chance(g, 8)) {
        thing(THING_NAN);
        e->f = NAN;
        return e;
    }
    if (chance(g, 8)) {
        thing(THING_INF);
        e->f = INFINITY;
    }
    if (chance(g, 25)) {
        e->f = -e->f;
        thing(isinf(e->f) ? THING_MINUS_INF : e->f == 0 ? THING_NEGATIVE_ZERO : THING_NEGATIVE_FLOAT);
    }
    return e;
}

static Ast *gen_literal(Gen *g) {
    Ast *e;
    switch (pick(g, 5)) {
    case 0:
    case 1: return gen_int(g);
    case 2: return gen_float(g);
    case 3:
        e = node(AST_BOOL);
        e->i = pick(g, 2);
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
    if (chance(g, 25) && !field) {
        pat->name = name_of(PICK(g, ctors), SIGIL_NONE);
    } else if (bound->len < 5) {
        pat->name = fresh_binder(g, bound);
        vec_push(bound, pat->name);
    } else {
        pat->name = name_of("Nil", SIGIL_NONE);
    }
    if (chance(g, 20) && !strchr(pat->name.sym->text, '.')) {
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
    AstPatternKind kind = (AstPatternKind)pick(g, depth <= 0 ? AST_PAT_STRING + 1 : N_PATTERN);
    if (kind == AST_PAT_NAME)
        return gen_variable(g, bound, false);
    if (kind == AST_PAT_LIST && shadows(g, "list"))
        kind = AST_PAT_WILDCARD;
    AstPattern *pat = mem_new(AstPattern);
    pat->kind = kind;
    drawn_pattern[kind]++;
    switch (kind) {
    case AST_PAT_WILDCARD:
        if (chance(g, 20))
            pat->type = gen_type(g);
        break;
    case AST_PAT_NAME: break;
    case AST_PAT_INT: pat->literal = gen_int(g); break;
    case AST_PAT_FLOAT: pat->literal = gen_float(g); break;
    case AST_PAT_BOOL:
        pat->literal = node(AST_BOOL);
        pat->literal->i = pick(g, 2);
        break;
    case AST_PAT_STRING:
        pat->literal = node(AST_STRING);
        pat->literal->text = gen_text(g, &pat->literal->text_len);
        break;
    case AST_PAT_CTOR:
        pat->name = name_of(PICK(g, ctors), SIGIL_NONE);
        gen_patterns(g, depth, pick(g, 3), bound, &pat->args);
        break;
    case AST_PAT_RECORD: {
        int first = pick(g, 5);
        pat->name = name_of(PICK(g, ctors), SIGIL_NONE);
        for (int n = pick(g, 3), i = 0; i < n; i++) {
            vec_push(&pat->fields, name_of(fields[i == 0 ? first % 3 : (first + i) % 3], SIGIL_NONE));
            vec_push(&pat->args, gen_pattern(g, depth - 1, bound));
        }
        break;
    }
    case AST_PAT_TUPLE: gen_patterns(g, depth, pick(g, 4), bound, &pat->args); break;
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
    case AST_PAT_LIST: gen_patterns(g, depth, pick(g, 3), bound, &pat->args); break;
    }
    return pat;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static Ast *gen_expr(Gen *g);

static Ast *gen_name(Gen *g) {
    Ast *e = node(AST_NAME);
    if (g->scope.len && chance(g, 70)) {
        Name bound = g->scope.data[pick(g, (int)g->scope.len)];
        e->name = name_of(bound.sym->text, bound.sigil);
        return e;
    }
    const char *text = chance(g, 30) ? PICK(g, ctors) : PICK(g, globals);
    Sigil sigil = strcmp(text, "where") == 0 || text[0] < 'a' || chance(g, 60) ? SIGIL_NONE : SIGIL_GLOBAL;
    if (strchr(text, '.'))
        thing(THING_DOTTED_NAME);
    /* a name that something is bound as would be cut at its dot */
    if (strchr(text, '.') && sigil == SIGIL_NONE && shadows(g, "m"))
        text = "f";
    e->name = name_of(text, sigil);
    return e;
}

static void gen_args(Gen *g, AstVec *args, int most) {
    for (int n = pick(g, most + 1); n > 0; n--)
        vec_push(args, gen_expr(g));
}

static AstFn *gen_fn(Gen *g) {
    AstFn *fn = mem_new(AstFn);
    size_t mark = g->scope.len;
    NameVec taken = {0};
    if (chance(g, 20)) {
        gen_type_params(g, &fn->type_params, 1);
        thing(THING_FN_PARAMS);
    }
    for (int n = pick(g, 3); n > 0; n--) {
        AstParam p = {.name = fresh_binder(g, &taken)};
        vec_push(&taken, p.name);
        if (chance(g, 40))
            p.type = gen_type(g);
        vec_push(&fn->params, p);
    }
    if (chance(g, 15)) {
        gen_attrs(g, &fn->attrs);
        thing(THING_FN_ATTRS);
    }
    if (chance(g, 30)) {
        fn->result = gen_type(g);
        thing(THING_FN_RESULT);
    }
    if (chance(g, 15)) {
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
    for (int n = 1 + pick(g, 3); n > 0; n--) {
        AstKind kind = PICK(g, links);
        Ast *e = node(kind == AST_FREE_VAR && shadows(g, "free_var") ? AST_LET : kind);
        if (e->kind != AST_FREE_VAR)
            e->a = gen_expr(g);
        if (e->kind == AST_GRAPH_LET)
            e->i = pick(g, 20);
        if (e->kind == AST_LET || e->kind == AST_FREE_VAR) {
            e->name = binder(g);
            if (chance(g, 30)) {
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
    if (chance(g, 80)) {
        *slot = gen_expr(g);
    } else {
        thing(last == AST_LET ? THING_LET_END : THING_SEQ_END);
    }
    g->scope.len = mark;
    return first;
}

static AstIndex gen_index(Gen *g) {
    AstIndex x = {.kind = (IndexKind)pick(g, N_INDEX)};
    if (x.kind == INDEX_NEW_AXIS && shadows(g, "None"))
        x.kind = INDEX_ELLIPSIS;
    drawn_index[x.kind]++;
    if (x.kind == INDEX_AT)
        x.at = gen_expr(g);
    if (x.kind == INDEX_SLICE) {
        x.begin = chance(g, 60) ? gen_expr(g) : NULL;
        x.end = chance(g, 60) ? gen_expr(g) : NULL;
        x.step = chance(g, 40) ? gen_expr(g) : NULL;
    }
    return x;
}

static Ast *gen_match(Gen *g) {
    Ast *e = node(AST_MATCH);
    e->flag = chance(g, 30);
    if (e->flag)
        thing(THING_MATCH_PARTIAL);
    e->a = gen_expr(g);
    for (int n = pick(g, 4); n > 0; n--) {
        size_t mark = g->scope.len;
        NameVec bound = {0};
        AstArm arm = {.pattern = gen_pattern(g, 3, &bound)};
        if (chance(g, 30)) {
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
    int first = pick(g, 5), n = (e->kind == AST_WITH) + pick(g, 2);
    for (int i = 0; i < n; i++) {
        vec_push(&e->fields, name_of(fields[(first + i) % 3], SIGIL_NONE));
        vec_push(&e->args, gen_expr(g));
    }
}

static Ast *gen_leaf(Gen *g) {
    Ast *e;
    switch (pick(g, 8)) {
    case 0: return node(AST_HOLE);
    case 1:
        e = node(AST_GRAPH_VAR);
        e->i = pick(g, 20);
        return e;
    case 2:
        if (shadows(g, "meta"))
            return gen_literal(g);
        e = node(AST_META);
        e->text = "relay.Constant";
        e->text_len = strlen(e->text);
        e->i = pick(g, 3);
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
           (kind == AST_REF && shadows(g, "ref")) || (kind == AST_REF_READ && shadows(g, "ref_read")) ||
           (kind == AST_GRAD && shadows(g, "Grad"));
}

static AstType *gen_cast_type(Gen *g) {
    if (chance(g, 50))
        return type_name(PICK(g, dtypes));
    AstType *t = type_node(AST_TYPE_TENSOR);
    t->shape = gen_shape(g);
    t->dtype = type_name(PICK(g, dtypes));
    return t;
}

static Ast *gen_branch(Gen *g) {
    static const AstKind all[] = {
        AST_CALL, AST_CALL, AST_CALL, AST_INSTANTIATE, AST_FN, AST_LET, AST_LET, AST_IF, AST_MATCH,
        AST_TUPLE, AST_PROJ, AST_FIELD, AST_RECORD, AST_WITH, AST_TENSOR, AST_LIST, AST_INDEX,
        AST_UNARY, AST_UNARY, AST_BINARY, AST_BINARY, AST_BINARY, AST_BINARY, AST_CAST, AST_ZERO,
        AST_REF, AST_REF_READ, AST_REF_WRITE, AST_GRAD};
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
        if (e->a->kind == AST_NAME && chance(g, 30)) {
            for (int n = 1 + pick(g, 2); n > 0; n--)
                vec_push(&e->type_args, gen_type(g));
            thing(THING_CALL_TYPES);
        }
        gen_args(g, &e->args, 3);
        if (chance(g, 20)) {
            gen_attrs(g, &e->attrs);
            thing(THING_CALL_ATTRS);
        }
        break;
    case AST_INSTANTIATE:
        e->a = node(AST_NAME);
        e->a->name = name_of("helper", SIGIL_GLOBAL);
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
        e->i = pick(g, 12);
        break;
    case AST_FIELD:
        e->a = gen_expr(g);
        e->field = sym(PICK(g, fields));
        break;
    case AST_RECORD:
        e->name = name_of("Layer", SIGIL_NONE);
        gen_fields(g, e);
        break;
    case AST_WITH:
        e->a = gen_expr(g);
        gen_fields(g, e);
        break;
    case AST_INDEX:
        do
            e->a = gen_expr(g);
        while (e->a->kind == AST_NAME || e->a->kind == AST_INSTANTIATE); /* brackets may hold types */
        for (int n = 1 + pick(g, 3); n > 0; n--) {
            AstIndex x = gen_index(g);
            vec_push(&e->indices, x);
        }
        break;
    case AST_UNARY:
        e->op = (uint8_t)pick(g, N_UNOP);
        if (e->op == UNOP_SQ && shadows(g, "sq"))
            e->op = UNOP_BANG;
        drawn_unop[e->op]++;
        e->a = gen_expr(g);
        break;
    case AST_BINARY:
        e->op = (uint8_t)pick(g, N_BINOP);
        drawn_binop[e->op]++;
        e->a = gen_expr(g);
        e->b = gen_expr(g);
        break;
    case AST_CAST:
        e->type = gen_cast_type(g);
        e->a = gen_expr(g);
        break;
    case AST_ZERO: e->type = chance(g, 50) ? gen_cast_type(g) : gen_type(g); break;
    case AST_REF:
    case AST_REF_READ:
    case AST_GRAD: e->a = gen_expr(g); break;
    case AST_REF_WRITE:
        e->a = gen_expr(g);
        e->b = gen_expr(g);
        break;
    case AST_INT: case AST_FLOAT: case AST_BOOL: case AST_STRING: case AST_NAME: case AST_GRAPH_VAR:
    case AST_HOLE: case AST_LET: case AST_GRAPH_LET: case AST_FREE_VAR: case AST_SEQ: case AST_MATCH:
    case AST_META: case AST_ERROR: break;
    }
    drawn_ast[kind]++;
    return e;
}

static Ast *gen_expr(Gen *g) {
    g->depth--;
    Ast *e = g->depth <= 0 || chance(g, 25) ? gen_leaf(g) : gen_branch(g);
    g->depth++;
    return e;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void gen_ctors(Gen *g, Item *item) {
    static const char *const names[] = {"Red", "Green", "Blue"};
    int n = pick(g, 4);
    if (!n)
        thing(THING_EMPTY_TYPE);
    for (int i = 0; i < n; i++) {
        AstCtor c = {.name = name_of(names[i], SIGIL_NONE), .named = chance(g, 30)};
        int k = pick(g, 3);
        if (c.named)
            thing(THING_NAMED_CTOR);
        for (int j = 0; j < k; j++) {
            AstField f = {.name = c.named ? sym(fields[j]) : NULL, .type = gen_type(g)};
            vec_push(&c.fields, f);
        }
        vec_push(&item->ctors, c);
    }
}

static void gen_import(Gen *g, Item *item) {
    if (chance(g, 40)) {
        item->path = "lib/a file.rly";
        thing(THING_IMPORT_PATH);
    } else {
        item->name = name_of("nn", SIGIL_NONE);
    }
    if (chance(g, 30)) {
        item->as = sym("m");
        thing(THING_IMPORT_AS);
    } else if (chance(g, 50)) {
        item->has_names = true;
        vec_push(&item->names, name_of("linear", SIGIL_NONE));
        vec_push(&item->names, name_of("sgd", SIGIL_GLOBAL));
        thing(THING_IMPORT_NAMES);
    }
}

static void gen_rule(Gen *g, Item *item) {
    static const char *const args[] = {"data", "weight", "out", "ct"};
    item->name = name_of(chance(g, 30) ? "where" : "nn.dense", SIGIL_NONE);
    item->fn = mem_new(AstFn);
    size_t mark = g->scope.len;
    for (int i = 0; i < 4; i++) {
        Name name = name_of(args[i], chance(g, 20) ? SIGIL_LOCAL : SIGIL_NONE);
        AstParam p = {.name = name};
        vec_push(&g->scope, name);
        if (i < 2)
            vec_push(&item->fn->params, p);
        else
            vec_push(&item->extra, name);
    }
    item->fn->body = gen_expr(g);
    g->scope.len = mark;
}

static Item *gen_item(Gen *g) {
    static const char *const docs[] = {"One line.", "Two\n  lines.", "", "a\n\nb"};
    Item *item = mem_new(Item);
    item->kind = (ItemKind)pick(g, N_ITEM);
    drawn_item[item->kind]++;
    if (chance(g, 20)) {
        item->doc = PICK(g, docs);
        thing(THING_DOC);
    }
    switch (item->kind) {
    case ITEM_DEF:
        item->name = name_of(chance(g, 20) ? "lib.fn_1" : "f", chance(g, 60) ? SIGIL_GLOBAL : SIGIL_NONE);
        item->fn = gen_fn(g);
        break;
    case ITEM_TYPE:
        item->name = name_of("Colour", SIGIL_NONE);
        gen_type_params(g, &item->type_params, 0);
        gen_ctors(g, item);
        break;
    case ITEM_EXTERN_TYPE:
        item->name = name_of("Storage", SIGIL_NONE);
        gen_type_params(g, &item->type_params, 0);
        break;
    case ITEM_OPERATOR:
        item->name = name_of("cbrt", chance(g, 70) ? SIGIL_GLOBAL : SIGIL_NONE);
        item->type = gen_type(g);
        item->symbol = "cbrt";
        item->path = "libm.so.6";
        break;
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT: gen_rule(g, item); break;
    case ITEM_NO_DERIVATIVE: item->name = name_of("argsort", SIGIL_NONE); break;
    case ITEM_LET:
        item->name = name_of(PICK(g, locals), chance(g, 30) ? SIGIL_LOCAL : SIGIL_NONE);
        if (chance(g, 30))
            item->type = gen_type(g);
        item->value = gen_expr(g);
        break;
    case ITEM_GRAPH_LET:
        item->index = pick(g, 30);
        item->value = gen_expr(g);
        break;
    case ITEM_FREE_VAR:
        item->name = name_of("input", SIGIL_LOCAL);
        if (chance(g, 70))
            item->type = gen_type(g);
        break;
    case ITEM_IMPORT: gen_import(g, item); break;
    case ITEM_EXPR:
        item->value = gen_expr(g);
        item->shown = chance(g, 60);
        thing(item->shown ? THING_SHOWN : THING_NOT_SHOWN);
        break;
    case ITEM_ERROR: break;
    }
    return item;
}

static MetaConstant *gen_constant(Gen *g) {
    static const unsigned char codes[] = {0, 1, 2, 2}, bits[] = {32, 8, 32, 64};
    MetaConstant *c = mem_new(MetaConstant);
    int type = pick(g, 4);
    size_t n = 1;
    c->code = codes[type];
    c->bits = bits[type];
    c->ndim = pick(g, 3);
    c->shape = mem_bytes(8 * 3);
    for (int i = 0; i < c->ndim; i++)
        n *= (size_t)(c->shape[i] = pick(g, 4));
    c->bytes = n * c->bits / 8;
    unsigned char *data = mem_bytes(c->bytes + 1);
    for (size_t i = 0; i < c->bytes; i++)
        data[i] = (unsigned char)pick(g, 256);
    c->data = data;
    thing(THING_CONSTANT);
    return c;
}

Module *gen_module(uint64_t seed) {
    Gen g = {.state = seed, .depth = 6};
    g.versioned = chance(&g, 25);
    g.soft = chance(&g, 30);
    Module *m = mem_new(Module);
    m->versioned = g.versioned;
    m->version = g.versioned ? "0.0.5" : NULL;
    if (g.versioned)
        thing(THING_VERSIONED);
    for (int n = 1 + pick(&g, 6); n > 0; n--) {
        vec_push(&m->items, gen_item(&g));
        g.scope.len = 0;
    }
    if (chance(&g, 10))
        for (int n = 1 + pick(&g, 2); n > 0; n--)
            vec_push(&m->constants, gen_constant(&g));
    return m;
}
