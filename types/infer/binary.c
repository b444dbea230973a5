/* SPDX-License-Identifier: Apache-2.0 */
/* Infix and prefix operators. Chains that lean to the left are walked in a loop, so that a sum of
 * 10,000 terms needs no stack. */
#include <string.h>

#include "types/infer/state.h"

static bool is_error(const Expr *e) { return type_resolve(e->type)->tag == TY_ERROR; }

static Expr *arithmetic(Infer *I, Ast *e, Expr *a, Expr *b) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = a;
    args[1] = b;
    return infer_known_op(I, infix_ops[e->op], args, 2, e->span, e->op_span);
}

/* `a == b` is element-wise between tensors and structural otherwise, which is decided when the types are
 * known. */
static Expr *equality(Infer *I, Ast *e, Expr *a, Expr *b) {
    Type *ta = type_resolve(a->type), *tb = type_resolve(b->type);
    if (ta->tag == TY_ERROR || tb->tag == TY_ERROR)
        return infer_error_expr(e->span);
    if (ta->tag == TY_TENSOR || tb->tag == TY_TENSOR) {
        Type *other = ta->tag == TY_TENSOR ? tb : ta;
        if (other->tag == TY_TENSOR || other->tag == TY_VAR)
            return arithmetic(I, e, a, b);
    }
    Expr *q = expr_new(EXPR_EQUAL, solver_var(I->s, KIND_TYPE), e->span);
    q->a = a;
    q->b = b;
    q->negate = e->op == BINOP_NE;
    Type **args = mem_new_n(Type *, 3);
    args[0] = ta;
    args[1] = tb;
    args[2] = q->type;
    Expr *operands[] = {a, b};
    infer_post(I, &rel_equal, args, 3, NULL, e->op_span.source ? e->op_span : e->span, q, operands,
               2);
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_EQUAL, q);
    return q;
}

static Expr *want_bool(Infer *I, Expr *e, const char *what) {
    if (is_error(e))
        return e;
    TypePlace place = place_of_words(what);
    solver_set_place(I->s, e->span, place);
    if (!solver_flow(I->s, e->type, type_scalar(DT_BOOL), e->span, place)) {
        Diag *d = infer_error(I, DIAG_R0204, e->span, "%s is one bool, found %s", what,
                              type_text(e->type));
        if (d)
            diag_set_label(d, "%s", type_text(e->type));
    }
    solver_run(I->s);
    return e;
}

/* `a && b` is `if a then b else False`, and `a || b` is `if a then True else b`. */
static Expr *logical(Infer *I, Ast *e, Expr *a, Expr *b) {
    bool and = e->op == BINOP_AND;
    const char *what = and? "an operand of `&&`" : "an operand of `||`";
    a = want_bool(I, a, what);
    b = want_bool(I, b, what);
    Expr *known = expr_bool(!and, e->span);
    return expr_if(a, and? b : known, and? known : b, type_scalar(DT_BOOL), e->span);
}

/* The parts joined by one call, or by a tree of calls: `++` from the left would copy the first part for each that
 * follows. */
static Expr *join_parts(Expr **parts, size_t n, Span op_span) {
    enum { MOST = 32 };
    while (n > MOST) {
        size_t groups = 0;
        for (size_t i = 0; i < n; i += MOST)
            parts[groups++] = join_parts(parts + i, n - i < MOST ? n - i : MOST, op_span);
        n = groups;
    }
    if (n == 1)
        return parts[0];
    Expr **args = mem_new_n(Expr *, n);
    memcpy(args, parts, n * sizeof *args);
    Span span = span_join(args[0]->span, args[n - 1]->span);
    Expr *call = expr_call_builtin("str.append", args, (uint32_t)n, type_string(), span);
    call->a->span = op_span;
    return call;
}

/* Checks the parts of a `++`; false after a diagnostic. */
static bool append_parts(Infer *I, Ast *e, Expr **a, Expr **b) {
    Type *left = type_resolve((*a)->type), *right = type_resolve((*b)->type);
    bool lists = type_is_list(left) || type_is_list(right);
    if (lists || (left->tag == TY_TENSOR && right->tag == TY_TENSOR)) {
        Diag *d = infer_error(I, DIAG_R0201, e->op_span, "`++` joins Strings, not %s",
                              lists ? "lists" : "tensors");
        if (d) {
            d->op = sym_intern("++");
            diag_add_label(d, (*a)->span, "%s", type_text(left));
            vec_last(&d->labels).type = diag_type(left);
            diag_add_label(d, (*b)->span, "%s", type_text(right));
            vec_last(&d->labels).type = diag_type(right);
            diag_add_fact(d, lists ? "lists are joined by `concat(a, b)`"
                                   : "tensors are joined by `concatenate((a, b))`");
        }
        return false;
    }
    *a = infer_flow(I, *a, type_string(), place_of_words("the left of `++`"), span_none());
    *b = infer_flow(I, *b, type_string(), place_of_words("the right of `++`"), span_none());
    return true;
}

/* `left ++ b ++ c`: the links from *at of the spine down that join Strings. *at becomes the last of them. */
static Expr *append(Infer *I, Ast *const *spine, size_t *at, Expr *left) {
    VEC(Expr *) parts = {0};
    vec_push(&parts, left);
    for (size_t i = *at;; i--) {
        Ast *e = spine[i];
        Expr *right = infer_expr(I, e->b, NULL);
        if (!append_parts(I, e, &left, &right))
            return infer_error_expr(e->span);
        if (parts.len == 1)
            parts.data[0] = left;
        vec_push(&parts, right);
        left = right;
        *at = i;
        if (i == 0 || spine[i - 1]->op != BINOP_APPEND)
            return join_parts(parts.data, parts.len, e->op_span);
    }
}

/* `x |> f` evaluates x first, then f. An operator or constructor is called directly. */
static Expr *pipe(Infer *I, Ast *e, Expr *x) {
    Name name;
    if (callee_name(I, e->b, &name)) {
        Resolved r = scope_resolve(I, &name);
        Expr **args = mem_new_n(Expr *, 1);
        args[0] = x;
        if (r.kind == NAME_OP) {
            static const AstAttrVec none;
            const Attrs *attrs = infer_attrs(I, r.op, &none, e->b->span);
            if (!attrs && r.op->nattrs)
                return infer_error_expr(e->span);
            return infer_op_call(I, r.op, NULL, args, 1, attrs, e->span, e->b->span);
        }
        if (r.kind == NAME_CTOR)
            return infer_ctor_call(I, r.ctor, args, 1, NULL, NULL, 0, e->span);
    }
    LetStack lets = {0};
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = let_stack_add(&lets, x, "x");
    Expr *f = infer_expr(I, e->b, NULL);
    return let_stack_wrap(&lets, infer_apply(I, f, args, 1, e->span, NULL));
}

/* `f >> g` is `fn (x) { g(f(x)) }`, where f and g are evaluated once. */
static Expr *compose(Infer *I, Ast *e, Expr *f, Expr *g) {
    LetStack lets = {0};
    f = let_stack_add(&lets, f, "f");
    g = let_stack_add(&lets, g, "g");
    Var *x = var_new(sym_intern("x"), solver_var(I->s, KIND_TYPE), e->span);
    Type *outer = I->effect;
    I->effect = solver_var(I->s, KIND_EFFECT);
    Type *effect = I->effect;
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = expr_var(x, e->span);
    args[1] = infer_apply(I, f, args, 1, f->span, NULL);
    Expr *body = infer_apply(I, g, args + 1, 1, e->span, NULL);
    I->effect = outer;
    Type *type = type_fn(&x->type, 1, body->type, effect);
    return let_stack_wrap(&lets, expr_fn(&x, 1, body, type, e->span));
}

Expr *infer_binary(Infer *I, Ast *e, Type *want) {
    if (e->op == BINOP_ASSIGN)
        return infer_ref_write(I, e);
    if (e->op == BINOP_CONS)
        return infer_cons_chain(I, e, want);
    if (e->op == BINOP_POW) {
        Expr *a = infer_expr(I, e->a, NULL);
        return arithmetic(I, e, a, infer_expr(I, e->b, NULL));
    }
    VEC(Ast *) spine = {0};
    while (e->kind == AST_BINARY && !infix_table[e->op].right) {
        vec_push(&spine, e);
        e = e->a;
    }
    Expr *left = infer_expr(I, e, NULL);
    for (size_t i = spine.len; i-- > 0;) {
        Ast *node = spine.data[i];
        if (node->op == BINOP_PIPE) {
            left = pipe(I, node, left);
            continue;
        }
        if (node->op == BINOP_APPEND) {
            left = append(I, spine.data, &i, left);
            continue;
        }
        const Op *op = infix_ops[node->op];
        Expr *right = op && op->relation == &rel_broadcast
                          ? infer_literal_beside(I, node->b, left->type)
                          : NULL;
        right = right ? right : infer_expr(I, node->b, NULL);
        switch ((BinOp)node->op) {
        case BINOP_ADD:
        case BINOP_SUB:
        case BINOP_MUL:
        case BINOP_DIV:
        case BINOP_POW:
        case BINOP_MATMUL:
        case BINOP_LT:
        case BINOP_LE:
        case BINOP_GT:
        case BINOP_GE: left = arithmetic(I, node, left, right); break;
        case BINOP_EQ:
        case BINOP_NE: left = equality(I, node, left, right); break;
        case BINOP_AND:
        case BINOP_OR: left = logical(I, node, left, right); break;
        case BINOP_COMPOSE: left = compose(I, node, left, right); break;
        case BINOP_ASSIGN:
        case BINOP_CONS:
        case BINOP_APPEND:
        case BINOP_PIPE:
        case BINOP_COUNT: break;
        }
    }
    return left;
}

/* ---- prefix ---------------------------------------------------------------------------------- */

/* `!a` is `not` of a bool and the contents of a reference. Which one is decided when a's type is known. */
static Expr *bang(Infer *I, Ast *e) {
    Expr *a = infer_expr(I, e->a, NULL);
    Type *t = type_resolve(a->type);
    if (t->tag == TY_ERROR)
        return infer_error_expr(e->span);
    if (t->tag == TY_REF) {
        Expr *r = expr_new(EXPR_READ, solver_open_unknowns(I->s, t->elem), e->span);
        r->a = a;
        return r;
    }
    if (t->tag == TY_TENSOR) {
        want_bool(I, a, "the operand of `!`");
        if (infer_failed(I))
            return infer_error_expr(e->span);
        Expr **args = mem_new_n(Expr *, 1);
        args[0] = a;
        return infer_known_op(I, &op_logical_not, args, 1, e->span, e->op_span);
    }
    if (t->tag != TY_VAR && t->tag != TY_PARAM) {
        Diag *d = infer_error(I, DIAG_R0219, a->span, "`!` needs a reference or a bool, found %s",
                              type_text(t));
        if (d)
            diag_set_label(d, "%s", type_text(t));
        return infer_error_expr(e->span);
    }
    Expr *b = expr_new(EXPR_BANG, solver_var(I->s, KIND_TYPE), e->span);
    b->a = a;
    Type **args = mem_new_n(Type *, 2);
    args[0] = t;
    args[1] = b->type;
    infer_post(I, &rel_bang, args, 2, NULL, e->span, b, &a, 1);
    if (!solver_run(I->s))
        return infer_error_expr(e->span);
    infer_note(I, PENDING_BANG, b);
    return b;
}

Expr *infer_unary(Infer *I, Ast *e, Type *want) {
    (void)want;
    switch ((UnOp)e->op) {
    case UNOP_NEG:
        if (e->a->kind == AST_INT || e->a->kind == AST_FLOAT) {
            Expr *lit = infer_literal(I, e->a, true);
            lit->span = e->span;
            return lit;
        }
        break;
    case UNOP_BANG: return bang(I, e);
    case UNOP_SQ: {
        LetStack lets = {0};
        Expr *x = let_stack_add(&lets, infer_expr(I, e->a, NULL), "x");
        Expr **args = mem_new_n(Expr *, 2);
        args[0] = x;
        args[1] = expr_copy(x);
        if (x->kind == EXPR_LIT || x->kind == EXPR_CONST)
            args[1] = x;
        return let_stack_wrap(&lets, infer_known_op(I, &op_multiply, args, 2, e->span, e->op_span));
    }
    }
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = infer_expr(I, e->a, NULL);
    return infer_known_op(I, &op_negative, args, 1, e->span, e->op_span);
}
