/* SPDX-License-Identifier: Apache-2.0 */
/* Types (LANGUAGE §4). Sizes are read where types are: what a name or a parenthesis means is decided
 * by its kind, in inference; only a parenthesis that holds visible sizes is a shape at once. */
#include "parser/parse_internal.h"

#include <ctype.h>
#include <string.h>

static AstType *type_node(Parser *p, AstTypeKind kind, uint32_t begin) {
    AstType *t = mem_new(AstType);
    t->kind = kind;
    t->span = parse_span_from(p, begin);
    return t;
}

static AstType *type_hole(Parser *p) {
    AstType *t = type_node(p, AST_TYPE_HOLE, p->tok.begin);
    t->span = parse_tok_span(p);
    return t;
}

static AstType *type_name(Parser *p, const char *name, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_NAME, begin);
    t->name = sym_intern(name);
    return t;
}

/* kind := 'Type' | 'Shape' | 'BaseType' | 'Dim' */
static const Symbol *read_kind(Parser *p) {
    static const char *const kinds[] = {"Type", "Shape", "BaseType", "Dim"};
    Token t = p->tok;
    if (t.kind == TOK_IDENT) {
        for (size_t i = 0; i < 4; i++)
            if (strcmp(t.sym->text, kinds[i]) == 0) {
                parse_advance(p);
                return t.sym;
            }
        Diag *d = parse_complain(p, DIAG_R0016, parse_tok_span(p), "`%s` is no kind", t.sym->text);
        if (d)
            diag_add_fact(d, "the kinds are Type, Shape, BaseType and Dim");
        parse_advance(p);
        return NULL;
    }
    parse_unexpected(p, "a kind");
    return NULL;
}

/* A [':' kind], … up to `close`. */
static void read_type_params(Parser *p, TokenKind close, AstTypeParamVec *params) {
    NameVec names = {0};
    while (!p->panic && p->tok.kind != close) {
        Name name = parse_binder(p, false, "a type parameter");
        AstTypeParam param = {name.sym, NULL, name.span};
        vec_push(&names, name);
        if (parse_accept(p, TOK_COLON))
            param.kind = read_kind(p);
        param.span.end = p->prev_end;
        vec_push(params, param);
        if (!parse_more(p, close))
            break;
    }
    parse_check_twice(p, &names, "type parameter");
}

void parse_type_params(Parser *p, AstTypeParamVec *params) {
    if (p->panic)
        return;
    if (parse_at(p, TOK_LBRACKET)) {
        Opened opened = parse_open(p);
        read_type_params(p, TOK_RBRACKET, params);
        parse_close(p, TOK_RBRACKET, opened);
    } else if (parse_accept(p, TOK_LT)) {
        read_type_params(p, TOK_GT, params);
        parse_expect(p, TOK_GT);
    }
}

void parse_type_args(Parser *p, TokenKind close, AstTypeVec *args) {
    while (!p->panic && p->tok.kind != close) {
        vec_push(args, parse_type_any(p));
        if (!parse_more(p, close))
            break;
    }
}

/* `D(` is the derivative of a type. */
static bool is_deriv(const Token *name, const Token *next) {
    return next->kind == TOK_LPAREN && !next->blank_before && name->sym->len == 1 &&
           name->sym->text[0] == 'D';
}

/* 'where' R '(' T, … [attr, …] ')' ',' … */
bool parse_where(Parser *p, AstConstraintVec *where) {
    if (!parse_accept_word(p, WORD_WHERE))
        return false;
    for (;;) {
        uint32_t begin = p->tok.begin;
        Name name = parse_dotted(p, "a relation such as `Broadcast(a, b, c)`");
        AstConstraint c = {.name = name.sym};
        if (p->panic)
            break;
        if (!parse_at(p, TOK_LPAREN)) {
            parse_unexpected(p, "`(`");
            break;
        }
        Opened opened = parse_open(p);
        while (!p->panic && !parse_at(p, TOK_RPAREN)) {
            if (parse_at_attr(p)) {
                bool before = p->in_call;
                p->in_call = false;
                c.attrs = mem_new(AstAttrVec);
                parse_attrs(p, TOK_RPAREN, c.attrs);
                p->in_call = before;
                break;
            }
            vec_push(&c.args, parse_type_any(p));
            if (!parse_more(p, TOK_RPAREN))
                break;
        }
        parse_close(p, TOK_RPAREN, opened);
        c.span = parse_span_from(p, begin);
        vec_push(where, c);
        /* The comma may belong to a list of types around: the `where` goes on if a relation follows. */
        if (p->panic || !parse_at(p, TOK_COMMA))
            break;
        Token next = parse_peek(p), after;
        if (next.kind != TOK_IDENT || word_is_type(next.word) || next.word == WORD_REF ||
            next.word == WORD_REF_TYPE || word_get_class(next.word) == WORDCLASS_RESERVED)
            break;
        lexer_read(&p->lex, next.end, &after);
        if ((after.kind != TOK_LPAREN && after.kind != TOK_DOT) || is_deriv(&next, &after))
            break;
        parse_advance(p);
    }
    return true;
}

/* [name ':'] T, …: the types after a name may have it as a size. */
static void read_fn_params(Parser *p, AstType *fn) {
    while (!p->panic && !parse_at(p, TOK_RPAREN)) {
        const Symbol *name = NULL;
        if (parse_at(p, TOK_IDENT) && parse_peek(p).kind == TOK_COLON) {
            name = parse_binder(p, false, "the name of a parameter").sym;
            parse_advance(p);
        }
        while (name && fn->arg_names.len < fn->args.len)
            vec_push(&fn->arg_names, NULL);
        if (name || fn->arg_names.len)
            vec_push(&fn->arg_names, name);
        vec_push(&fn->args, parse_type_any(p));
        if (!parse_more(p, TOK_RPAREN))
            break;
    }
}

/* 'fn' [params] '(' [name ':'] T, … ')' '->' T ['where' …]; the `where` is the outermost function's: that of a
 * result needs parentheses. */
static AstType *read_fn_type(Parser *p, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_FN, begin);
    unsigned ctx = p->ctx;
    p->ctx = (p->ctx & ~(unsigned)CTX_NO_ARROW) | CTX_NO_WHERE;
    parse_type_params(p, &t->params);
    if (!p->panic && parse_at(p, TOK_LPAREN)) {
        Opened opened = parse_open(p);
        read_fn_params(p, t);
        parse_close(p, TOK_RPAREN, opened);
    } else {
        parse_unexpected(p, "`(`");
    }
    parse_expect(p, TOK_ARROW);
    t->result = parse_type_any(p);
    p->ctx = ctx;
    if (!(ctx & CTX_NO_WHERE))
        parse_where(p, &t->where);
    t->span = parse_span_from(p, begin);
    return t;
}

/* 'forall' ( '(' A [':' K], … ')' | A ) ',' T ['where' R(T, …), …] */
static AstType *read_forall(Parser *p, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_FORALL, begin);
    if (parse_at(p, TOK_LPAREN)) {
        Opened opened = parse_open(p);
        read_type_params(p, TOK_RPAREN, &t->params);
        parse_close(p, TOK_RPAREN, opened);
    } else {
        Name name = parse_binder(p, false, "a type parameter");
        AstTypeParam param = {name.sym, NULL, name.span};
        if (parse_accept(p, TOK_COLON))
            param.kind = read_kind(p);
        vec_push(&t->params, param);
    }
    if (!parse_accept(p, TOK_COMMA) && !parse_accept(p, TOK_DOT))
        parse_unexpected(p, "`,`");
    t->result = parse_type_any(p);
    if (!(p->ctx & CTX_NO_WHERE))
        parse_where(p, &t->where);
    t->span = parse_span_from(p, begin);
    return t;
}

/* '(' dim, … ')', with the bracket in hand, or a name or hole for a whole shape. */
static AstType *read_shape(Parser *p) {
    uint32_t begin = p->tok.begin;
    bool named = parse_at_word(p, WORD_SHAPE) && parse_peek(p).kind == TOK_LPAREN;
    if (named)
        parse_advance(p);
    if (!parse_at(p, TOK_LPAREN))
        return parse_type_any(p);
    AstType *t = type_node(p, AST_TYPE_SHAPE, begin);
    Opened opened = parse_open(p);
    parse_type_args(p, TOK_RPAREN, &t->args);
    parse_close(p, TOK_RPAREN, opened);
    t->span = parse_span_from(p, begin);
    return t;
}

/* 'Tensor' '[' shape ',' dtype ']' | 'Tensor' '(' dtype ',' shape ')' */
static AstType *read_tensor(Parser *p, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_TENSOR, begin);
    bool square = parse_at(p, TOK_LBRACKET);
    if (!square && !parse_at(p, TOK_LPAREN)) {
        parse_unexpected(p, "`[`");
        t->shape = t->dtype = type_hole(p);
        return t;
    }
    Opened opened = parse_open(p);
    t->shape = square ? read_shape(p) : NULL;
    if (!square)
        t->dtype = parse_type_any(p);
    parse_expect(p, TOK_COMMA);
    if (square)
        t->dtype = parse_type_any(p);
    else
        t->shape = read_shape(p);
    parse_accept(p, TOK_COMMA);
    parse_close(p, square ? TOK_RBRACKET : TOK_RPAREN, opened);
    t->span = parse_span_from(p, begin);
    return t;
}

/* IntType(32), UIntType(8), FloatType(32), BoolType; each may have lanes, which must be 1. */
static AstType *read_base_type(Parser *p, Word word, uint32_t begin) {
    if (word == WORD_BOOL_TYPE) {
        if (parse_at(p, TOK_LPAREN) && !p->tok.blank_before) {
            Opened empty = parse_open(p);
            parse_close(p, TOK_RPAREN, empty);
        }
        return type_name(p, "bool", begin);
    }
    int64_t bits = 0;
    if (!parse_at(p, TOK_LPAREN)) {
        parse_unexpected(p, "`(`");
        return type_hole(p);
    }
    Opened opened = parse_open(p);
    Token t = p->tok;
    if (t.kind != TOK_NUMBER || !parse_index_number(p, t.begin, t.end, &bits))
        parse_unexpected(p, "a number of bits");
    else
        parse_advance(p);
    parse_close(p, TOK_RPAREN, opened);
    bool floats = word == WORD_FLOAT_TYPE;
    if (!p->panic && bits != 16 && bits != 32 && bits != 64 && (floats || bits != 8)) {
        parse_mistake(p, DIAG_R0001, parse_span_from(p, begin),
                      "expected %s32 or 64 bits, found %d", floats ? "16, " : "8, 16, ", (int)bits);
        return type_hole(p);
    }
    const char *stem = floats ? "float" : word == WORD_INT_TYPE ? "int" : "uint";
    return type_name(p, fmt_text("%s%d", stem, (int)bits), begin);
}

/* ref(T), RefType(T), Ref[T], with the bracket in hand. */
static AstType *read_ref_type(Parser *p, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_REF, begin);
    TokenKind close = parse_at(p, TOK_LBRACKET) ? TOK_RBRACKET : TOK_RPAREN;
    Opened opened = parse_open(p);
    t->result = parse_type_any(p);
    parse_close(p, close, opened);
    t->span = parse_span_from(p, begin);
    return t;
}

/* D(T), with the bracket in hand and no blank before it. */
static AstType *read_deriv_type(Parser *p, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_DERIV, begin);
    Opened opened = parse_open(p);
    t->result = parse_type_any(p);
    parse_close(p, TOK_RPAREN, opened);
    t->span = parse_span_from(p, begin);
    return t;
}

/* floordiv(a, b), min(a, b), max(a, b), with the bracket in hand. */
static AstType *read_dim_call(Parser *p, DimOp op, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_DIM, begin);
    t->op = op;
    Opened opened = parse_open(p);
    vec_push(&t->args, parse_type_any(p));
    parse_expect(p, TOK_COMMA);
    vec_push(&t->args, parse_type_any(p));
    parse_close(p, TOK_RPAREN, opened);
    t->span = parse_span_from(p, begin);
    return t;
}

static AstType *dim_leaf(Parser *p, DimOp op, int64_t value, uint32_t begin) {
    AstType *t = type_node(p, AST_TYPE_DIM, begin);
    t->op = op;
    t->value = value;
    return t;
}

/* Behind `T#1`, what was T before it was declared anew at the prompt, if the name in hand is one; else 0. */
static uint32_t version_end(const Parser *p) {
    const Source *source = p->lex.source;
    uint32_t end = p->tok.end;
    if (end >= source->len || source->text[end] != '#')
        return 0;
    do {
        end++;
    } while (end < source->len && isdigit((unsigned char)source->text[end]));
    return end > p->tok.end + 1 ? end : 0;
}

/* A type that begins with a word. */
static AstType *read_word_type(Parser *p) {
    Token t = p->tok, next = parse_peek(p);
    bool round = next.kind == TOK_LPAREN, square = next.kind == TOK_LBRACKET;
    switch ((int)t.word) {
    case WORD_FN: parse_advance(p); return read_fn_type(p, t.begin);
    case WORD_TENSOR: parse_advance(p); return read_tensor(p, t.begin);
    case WORD_INT_TYPE:
    case WORD_UINT_TYPE:
    case WORD_FLOAT_TYPE:
    case WORD_BOOL_TYPE: parse_advance(p); return read_base_type(p, t.word, t.begin);
    case WORD_REF:
    case WORD_REF_TYPE:
    case WORD_BIG_REF:
        if (!round && !square)
            break;
        parse_advance(p);
        return read_ref_type(p, t.begin);
    case WORD_FORALL: parse_advance(p); return read_forall(p, t.begin);
    case WORD_FLOORDIV:
    case WORD_MIN:
    case WORD_MAX:
        if (!round)
            break;
        parse_advance(p);
        return read_dim_call(p,
                             t.word == WORD_FLOORDIV ? DIM_FLOORDIV
                             : t.word == WORD_MIN    ? DIM_MIN
                                                     : DIM_MAX,
                             t.begin);
    case WORD_SHAPE:
        if (round)
            return read_shape(p);
        break;
    case WORD_META: /* meta[tir.Var][0]: a symbolic size, here any size */
        if (square) {
            const char *key;
            size_t len;
            int64_t i;
            parse_meta(p, &key, &len, &i);
            return dim_leaf(p, DIM_ANY, 0, t.begin);
        }
        break;
    }
    if (word_get_class(t.word) == WORDCLASS_RESERVED) {
        parse_unexpected(p, "a type");
        return type_hole(p);
    }
    if (t.sym->len == 1 && t.sym->text[0] == '_') {
        parse_advance(p);
        return type_node(p, AST_TYPE_HOLE, t.begin);
    }
    if (is_deriv(&t, &next)) {
        parse_advance(p);
        return read_deriv_type(p, t.begin);
    }
    uint32_t end = version_end(p);
    Name name = {0};
    if (end) {
        name.sym = sym_intern_n(p->lex.source->text + t.begin, end - t.begin);
        parse_cut(p, end);
        parse_advance(p);
    } else {
        name = parse_dotted(p, "a type");
    }
    AstType *type = type_name(p, name.sym->text, t.begin);
    if (!p->panic && parse_at(p, TOK_LBRACKET) && !parse_line_ended(p)) {
        Opened opened = parse_open(p);
        parse_type_args(p, TOK_RBRACKET, &type->args);
        parse_close(p, TOK_RBRACKET, opened);
        type->span = parse_span_from(p, t.begin);
    }
    return type;
}

static bool is_sum(const AstType *t) {
    return t->kind == AST_TYPE_DIM && (t->op == DIM_ADD || t->op == DIM_SUB || t->op == DIM_MUL);
}

/* '(' T, … ')': a tuple, `(T)` alone is T, in a versioned text only if it is a sum of sizes; with a size in it a shape. An arrow after it makes its
 * elements the parameters. */
static AstType *read_round(Parser *p) {
    uint32_t begin = p->tok.begin;
    bool comma = false, shape = false;
    Opened opened = parse_open(p);
    AstType *t = type_node(p, AST_TYPE_TUPLE, begin);
    while (!p->panic && !parse_at(p, TOK_RPAREN)) {
        AstType *e = parse_type_any(p);
        shape |= e->kind == AST_TYPE_DIM;
        vec_push(&t->args, e);
        if (!parse_at(p, TOK_COMMA))
            break;
        comma = true;
        parse_advance(p);
    }
    parse_close(p, TOK_RPAREN, opened);
    t->span = parse_span_from(p, begin);
    bool alone = t->args.len == 1 && !comma;
    if (alone && (!p->module->versioned || is_sum(t->args.data[0])))
        return t->args.data[0];
    if (shape)
        t->kind = AST_TYPE_SHAPE;
    return t;
}

/* The 1 of `?1`, or 0. */
static int64_t read_unknown_number(Parser *p) {
    int64_t number = 0;
    if (!parse_at(p, TOK_NUMBER) || p->tok.blank_before)
        return 0;
    if (!parse_index_number(p, p->tok.begin, p->tok.end, &number) || number < 1)
        parse_mistake(p, DIAG_R0005, parse_tok_span(p),
                      "unknown sizes are numbered `?1`, `?2` and so on");
    parse_advance(p);
    return number;
}

AstType *parse_type_atom(Parser *p) {
    Token t = p->tok;
    if (p->panic)
        return type_hole(p);
    switch ((int)t.kind) {
    case TOK_IDENT: return read_word_type(p);
    case TOK_LPAREN: return read_round(p);
    case TOK_QUESTION:
        parse_advance(p);
        return dim_leaf(p, DIM_ANY, read_unknown_number(p), t.begin);
    case TOK_NUMBER: {
        int64_t value = 0;
        if (!parse_index_number(p, t.begin, t.end, &value)) {
            Diag *d = parse_mistake(p, DIAG_R0005, parse_tok_span(p),
                                    "a size is an integer that fits int64");
            if (d)
                d->cause = DIAG_CAUSE_SIZE;
            return type_hole(p);
        }
        parse_advance(p);
        return dim_leaf(p, DIM_INT, value, t.begin);
    }
    }
    parse_unexpected(p, "a type");
    return type_hole(p);
}

static bool dim_operator(TokenKind kind, DimOp *op) {
    BinOp sign = infix_find(kind);
    *op = sign == BINOP_ADD ? DIM_ADD : sign == BINOP_SUB ? DIM_SUB : DIM_MUL;
    return sign == BINOP_ADD || sign == BINOP_SUB || sign == BINOP_MUL;
}

static AstType *dim_binary(Parser *p, DimOp op, AstType *a, AstType *b) {
    AstType *t = type_node(p, AST_TYPE_DIM, a->span.begin);
    t->span = span_join(a->span, b->span);
    t->op = op;
    vec_push(&t->args, a);
    vec_push(&t->args, b);
    return t;
}

/* ['-'] atom */
static AstType *dim_factor(Parser *p) {
    uint32_t begin = p->tok.begin;
    if (!parse_at(p, TOK_MINUS))
        return parse_type_atom(p);
    parse_advance(p);
    AstType *t = parse_type_atom(p);
    if (t->kind == AST_TYPE_DIM && t->op == DIM_INT) {
        t = dim_leaf(p, DIM_INT, -t->value, begin);
        return t;
    }
    AstType *zero = dim_leaf(p, DIM_INT, 0, begin);
    t = dim_binary(p, DIM_SUB, zero, t);
    t->span = parse_span_from(p, begin);
    return t;
}

/* product (('+' | '-') product)*, product := factor ('*' factor)* */
static AstType *dim_sum(Parser *p) {
    AstType *sum = NULL, *product = dim_factor(p);
    DimOp pending = DIM_ADD, op;
    while (!p->panic && dim_operator(p->tok.kind, &op) && !parse_line_ended(p)) {
        parse_advance(p);
        AstType *right = dim_factor(p);
        if (op == DIM_MUL) {
            product = dim_binary(p, op, product, right);
        } else {
            sum = sum ? dim_binary(p, pending, sum, product) : product;
            pending = op;
            product = right;
        }
    }
    return sum ? dim_binary(p, pending, sum, product) : product;
}

/* T := sum ['->' T]: `(T, U) -> V` has two parameters, `((T, U)) -> V` one. */
AstType *parse_type_any(Parser *p) {
    AstType *hole = type_hole(p);
    if (!parse_enter(p)) {
        parse_leave(p);
        return hole;
    }
    uint32_t begin = p->tok.begin;
    bool round = parse_at(p, TOK_LPAREN);
    AstType *t = dim_sum(p);
    if (!p->panic && !(p->ctx & CTX_NO_ARROW) && parse_at(p, TOK_ARROW)) {
        AstType *fn = type_node(p, AST_TYPE_FN, begin);
        parse_advance(p);
        bool list = round && t->span.begin == begin && t->kind == AST_TYPE_TUPLE;
        if (list)
            fn->args = t->args;
        else
            vec_push(&fn->args, t);
        fn->result = parse_type_any(p);
        fn->span = parse_span_from(p, begin);
        t = fn;
    }
    parse_leave(p);
    return t;
}
