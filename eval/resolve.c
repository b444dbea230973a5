/* SPDX-License-Identifier: Apache-2.0 */
/* Core to code: variables become slots, constants and captures, forms become instructions.
 *
 * Chains are loops: `let` and `;`, `else if`, the left operands of operators (a + b + c …), the
 * last arguments of constructors (list literals). Other nesting recurses; when the C stack runs
 * short the rest is resolved on another one.
 *
 * Slots are a stack: an expression's temporaries are given back when its value is where it was
 * wanted. `dst` is a slot, or TAIL: the value is the function's result. */
#include "eval/resolve.h"

#include "eval/fuse.h"
#include "eval/own.h"
#include "eval/tighten.h"
#include "eval/verify.h"
#include "passes/cells.h"
#include "passes/vmap.h"

#include <string.h>

static void resolve(Resolver *r, Expr *e, int32_t dst);

/* ---- emitting -------------------------------------------------------------------------------- */

size_t emit(Resolver *r, Expr *origin, Opcode op, uint32_t x, int32_t a, int32_t b, int32_t c) {
    Instr i = {(uint16_t)op, (uint16_t)(x > UINT16_MAX ? UINT16_MAX : x), a, b, c};
    vec_push(&r->instrs, i);
    vec_push(&r->origin, origin);
    return r->instrs.len - 1;
}

int32_t slot_new(Resolver *r) {
    if (r->top >= OPERAND_MAX / 16)
        BUG("a function with more than 2^23 variables");
    uint32_t i = r->top++;
    if (r->top > r->max)
        r->max = r->top;
    return (int32_t)i;
}

void patch_here(Resolver *r, const Patches *jumps) {
    for (size_t i = 0; i < jumps->len; i++)
        r->instrs.data[jumps->data[i]].a = (int32_t)r->instrs.len;
}

void bind(Resolver *r, const Var *v, int32_t at) {
    map_set(&r->vars, v, (void *)((intptr_t)at + 1));
    vec_push(&r->bound, v);
}

void unbind(Resolver *r, size_t first) {
    while (r->bound.len > first)
        (void)map_remove(&r->vars, vec_pop(&r->bound));
}

int32_t result_slot(Resolver *r, int32_t dst) { return dst == TAIL ? slot_new(r) : dst; }

void finish(Resolver *r, Expr *e, int32_t dst, int32_t at) {
    if (dst == TAIL) {
        verify_operand(r, e, slot(at), e->type, NULL);
        emit(r, e, CODE_RETURN, 0, 0, slot(at), 0);
    }
}

/* The operand of an expression that needs no instruction; false when it does. */
static bool simple_operand(Resolver *r, Expr *e, int32_t *out) {
    switch (e->kind) {
    case EXPR_VAR: {
        if (fuse_value_of(r, e->var))
            return false;
        void *at = map_find(&r->vars, e->var);
        if (!at)
            BUG("variable `%s` has no place in the function that mentions it", e->var->name->text);
        *out = (int32_t)((intptr_t)at - 1);
        return true;
    }
    case EXPR_LIT:
        if (e->like)
            return false;
        *out = const_literal(r, e);
        return true;
    case EXPR_CONST: *out = const_value(r, value_tensor(e->tensor)); return true;
    case EXPR_STRING: *out = const_value(r, value_string(e->text, e->text_len)); return true;
    case EXPR_OP: *out = const_value(r, value_of_op(r->in, e->op, e->span)); return true;
    case EXPR_CTOR: *out = const_value(r, value_of_ctor(r->in, e->ctor, e->span)); return true;
    case EXPR_TUPLE:
        if (e->nargs)
            return false;
        *out = const_value(r, value_unit());
        return true;
    case EXPR_ZERO: {
        Value zero;
        if (!value_zero(e->zero_type, &zero))
            BUG("Zero of a type that is not known: %s", type_text(e->zero_type));
        *out = const_value(r, zero);
        return true;
    }
    case EXPR_GLOBAL:
    case EXPR_BUILTIN:
    case EXPR_CALL:
    case EXPR_FN:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_MATCH:
    case EXPR_PROJ:
    case EXPR_FIELD:
    case EXPR_UPDATE:
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_WRITE:
    case EXPR_BANG:
    case EXPR_EQUAL:
    case EXPR_TENSOR:
    case EXPR_INDEX:
    case EXPR_DIM_OF:
    case EXPR_CHECK:
    case EXPR_GRAD:
    case EXPR_ERROR: return false;
    }
    return false;
}

int32_t resolve_operand(Resolver *r, Expr *e) {
    int32_t at;
    if (simple_operand(r, e, &at))
        return at;
    int32_t t = slot_new(r);
    resolve(r, e, t);
    r->top = (uint32_t)t + 1;
    return slot(t);
}

int32_t resolve_args(Resolver *r, Expr **args, uint32_t n) {
    uint32_t first = r->top;
    for (uint32_t i = 0; i < n; i++) {
        int32_t at = slot_new(r);
        resolve(r, args[i], at);
        r->top = (uint32_t)at + 1;
    }
    return (int32_t)first;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The instruction that stands for a scalar operator; OPCODE_COUNT when none does. */
static Opcode arith_opcode(const Expr *e) {
    if (e->kind == EXPR_CALL && e->a->kind == EXPR_OP && !e->nsizes)
        for (int op = CODE_ADD; op <= CODE_NOT; op++)
            if (arith_ops[op] == e->a->op)
                return (Opcode)op;
    return OPCODE_COUNT;
}

/* Whether e is a == b, either as a form of its own or as a call of the operator. */
static bool equality_parts(const Expr *e, Expr **a, Expr **b, bool *negate) {
    if (e->kind == EXPR_EQUAL) {
        *a = e->a;
        *b = e->b;
        *negate = e->negate;
        return true;
    }
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || e->nargs != 2 ||
        (e->a->op != &op_equal && e->a->op != &op_not_equal))
        return false;
    *a = e->args[0];
    *b = e->args[1];
    *negate = e->a->op == &op_not_equal;
    return true;
}

/* Whether e is a call of the builtin of derivatives with that name. */
static bool calls_ad(const Expr *e, const char *name) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_BUILTIN &&
           strcmp(e->a->symbol->text, name) == 0;
}

/* Whether it is a part of a cotangent by its number. */
static bool is_part_of_ct(const Expr *e) {
    return calls_ad(e, "ad.item") && e->args[1]->kind == EXPR_LIT;
}

/* Whether a call of a builtin of derivatives is an instruction of its own, or none. */
static bool is_instruction(const Expr *e) {
    return calls_ad(e, "ad.add") || is_part_of_ct(e) || cells_is_own(e);
}

static bool is_site(const Expr *e) {
    Expr *a, *b;
    bool negate;
    if (e->kind != EXPR_CALL || is_instruction(e))
        return false;
    const Expr *f = e->a;
    return f->kind == EXPR_BUILTIN ||
           (f->kind == EXPR_OP && arith_opcode(e) == OPCODE_COUNT &&
            !equality_parts(e, &a, &b, &negate)) ||
           (f->kind == EXPR_GLOBAL && f->global->kind == GLOBAL_BUILTIN);
}

static uint32_t add_site(Resolver *r, Expr *call) {
    Site s = {.type = call->type, .nargs = call->nargs, .nsizes = call->nsizes};
    const Expr *f = call->a;
    if (f->kind == EXPR_OP) {
        s.call = call;
        s.op = f->op;
        s.attrs = call->attrs ? call->attrs : attrs_defaults(f->op);
        s.scalar = f->op->scalar;
    } else {
        const Symbol *name = f->kind == EXPR_BUILTIN ? f->symbol : sym_intern(f->global->symbol);
        s.builtin = builtin_find(name);
        if (!s.builtin)
            BUG("no builtin `%s`", name->text);
        if (s.builtin->nargs >= 0 && (uint32_t)s.builtin->nargs != call->nargs)
            BUG("builtin `%s` takes %d arguments, not %u", name->text, s.builtin->nargs,
                call->nargs);
        if (f->kind == EXPR_GLOBAL && f->global->scheme) {
            Type *t = type_resolve(f->global->scheme->type);
            DType known;
            if (t->tag == TY_FN && (!s.type || !type_get_dtype(s.type, &known)) &&
                type_resolve(t->fn.result)->tag == TY_DATA)
                s.type = t->fn.result;
        }
    }
    vec_push(&r->sites, s);
    return (uint32_t)r->sites.len - 1;
}

/* The arguments of an operator or builtin, of which none keeps a tuple: one of literals, as the place of an index, is made
 * once. (Elsewhere it may be a frame, which is given back.) */
static void resolve_site_args(Resolver *r, Expr **args, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t tuple;
        if (const_tuple(r, args[i], &tuple))
            emit(r, args[i], CODE_MOVE, 0, slot(slot_new(r)), tuple, 0);
        else
            resolve_args(r, args + i, 1);
    }
}

/* op(op(op(a, b), c), d): the inner results stand where the first arguments are wanted. */
static void resolve_site_chain(Resolver *r, Expr *e, int32_t dst) {
    VEC(Expr *) chain = {0};
    Expr *x = e;
    for (; is_site(x); x = x->args[0]) {
        vec_push(&chain, x);
        if (x->nargs == 0)
            break;
    }
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    int32_t first = (int32_t)r->top;
    bool spread = own_spreads(r, vec_last(&chain), x);
    if (spread) {
        resolve_args(r, x->args, x->nargs);
    } else if (x != vec_last(&chain)) {
        int32_t at = slot_new(r);
        resolve(r, x, at);
        r->top = (uint32_t)at + 1;
    }
    while (chain.len) {
        Expr *call = vec_pop(&chain);
        if (call->nargs > 1)
            resolve_site_args(r, call->args + 1, call->nargs - 1);
        if (call->nsizes)
            resolve_args(r, call->sizes, call->nsizes);
        uint32_t site = add_site(r, call);
        if (spread)
            r->sites.data[site].nargs = x->nargs;
        r->sites.data[site].spread = spread;
        spread = false;
        int32_t at = chain.len ? first : to;
        emit(r, call, r->sites.data[site].op ? CODE_OPERATOR : CODE_BUILTIN, 0, slot(at),
             slot(first), (int32_t)site);
        if (chain.len)
            verify_operand(r, call, slot(at), call->type, NULL);
        r->top = (uint32_t)first;
        if (chain.len)
            (void)slot_new(r);
    }
    finish(r, e, dst, to);
    r->top = mark;
}

static void resolve_arith(Resolver *r, Expr *e, int32_t dst) {
    VEC(Expr *) chain = {0};
    Expr *x = e;
    while (arith_opcode(x) != OPCODE_COUNT) {
        vec_push(&chain, x);
        x = x->args[0];
    }
    uint32_t mark = r->top;
    int32_t to = dst;
    int32_t left = resolve_operand(r, x);
    if (dst == TAIL) /* the left operand's place, where that is a temporary */
        to = r->top > mark ? (int32_t)mark : slot_new(r);
    int32_t acc = chain.len == 1 || dst == TAIL ? to : slot_new(r);
    while (chain.len) {
        Expr *call = vec_pop(&chain);
        uint32_t inner = r->top;
        int32_t right = call->nargs > 1 ? resolve_operand(r, call->args[1]) : 0;
        int32_t at = chain.len ? acc : to;
        emit(r, call, arith_opcode(call), 0, slot(at), left, right);
        if (chain.len)
            verify_operand(r, call, slot(at), call->type, NULL);
        left = slot(at);
        r->top = inner;
    }
    finish(r, e, dst, to);
    r->top = mark;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A function literal applied at once is a `let` of its parameters. What a derivative became has no place in the
 * program: it is called, since errors in it are told at its call. */
static bool is_inline(const Resolver *r, const Expr *e) {
    const Expr *f = e->a;
    return f->kind == EXPR_FN && !e->mode && !e->drop && f->fn->nparams == e->nargs &&
           !f->fn->is_straight && path_of_fn(f) == r->code->path;
}

static Expr *resolve_inline(Resolver *r, Expr *e) {
    VEC(int32_t) at = {0};
    for (uint32_t i = 0; i < e->nargs; i++)
        vec_push(&at, resolve_operand(r, e->args[i]));
    for (uint32_t i = 0; i < e->nargs; i++) {
        const Var *v = e->a->fn->params[i];
        bind(r, v, at.data[i]);
        verify_operand(r, e->args[i], at.data[i], v->type, v->name);
    }
    return e->a->fn->body;
}

static bool is_function_call(const Resolver *r, const Expr *e) {
    Expr *a, *b;
    bool negate;
    return e->kind == EXPR_CALL && e->a->kind != EXPR_CTOR && arith_opcode(e) == OPCODE_COUNT &&
           !is_site(e) && !equality_parts(e, &a, &b, &negate) && !is_inline(r, e) &&
           !is_instruction(e);
}

/* Data whose last field is still missing: the slots of all of it, and of the part that lacks the field. */
typedef struct Hole {
    int32_t whole, part;
} Hole;

/* Whether the tail call e, or an inlined one that it is the last act of, was written in the program. */
static bool is_from_program(const Resolver *r, const Expr *e) {
    for (const Inlined *i = e->inlined; i; i = i->outer)
        if (!i->internal)
            return true;
    return !r->code->internal;
}

static void resolve_function_call(Resolver *r, Expr *e, int32_t dst, const Hole *hole) {
    uint32_t mark = r->top;
    Expr *f = e->a;
    const Symbol *path = call_path(r->code, e);
    bool other_path = path != r->code->path;
    bool known = f->kind == EXPR_GLOBAL && f->global->kind == GLOBAL_DEF && !other_path;
    int32_t callee = known ? const_global(r, f->global) : resolve_operand(r, f);
    if (e->nargs >= UINT16_MAX)
        BUG("a call with %u arguments", e->nargs);
    /* a temporary that waits for the result is no one's until then: the arguments begin there */
    if (dst != TAIL && (uint32_t)dst + 1 == r->top && !r->code->verify)
        r->top--;
    int32_t first = resolve_args(r, e->args, e->nargs);
    if (hole)
        emit(r, e, CODE_HOLE, 0, 0, slot(hole->whole), slot(hole->part));
    if (other_path) {
        int32_t at = path ? const_pointer(r, VAL_ABSENT, (void *)(uintptr_t)path)
                          : const_value(r, (Value){.tag = VAL_ABSENT});
        emit(r, e, CODE_PATH, 0, 0, at, 0);
    }
    bool tail = dst == TAIL && (hole || !r->passes_ran || expr_is_tail(e, TAIL_CALL));
    int32_t to = tail ? 0 : result_slot(r, dst);
    Opcode op = tail ? known ? CODE_TAIL_GLOBAL : CODE_TAIL : known ? CODE_CALL_GLOBAL : CODE_CALL;
    /* the callee's activation begins at `first`, which has to exist even without arguments */
    if ((uint32_t)first >= r->max)
        r->max = (uint32_t)first + 1;
    emit(r, e, op, e->nargs, tail ? is_from_program(r, e) : slot(to), callee, slot(first));
    if (!tail)
        finish(r, e, dst, to);
    r->top = mark;
}

/* The function call that is the last argument of the innermost constructor, or NULL. */
static Expr *call_in_last_field(const Resolver *r, Expr *e) {
    while (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR && e->nargs)
        e = e->args[e->nargs - 1];
    return is_function_call(r, e) ? e : NULL;
}

/* C(a, C(b, C(c, d))): all but the last arguments in adjacent slots, built from the end. The value
 * of C(c, d) is made in the slot after c, where C(b, ·) wants its last argument. Where d is a call
 * and all is a function's result: Note [Calls in a last field]. */
static void resolve_ctor_chain(Resolver *r, Expr *e, int32_t dst) {
    VEC(Expr *) chain = {0};
    VEC(int32_t) firsts = {0};
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    Expr *call = dst == TAIL ? call_in_last_field(r, e) : NULL;
    if (call && r->passes_ran && !expr_is_tail(call, TAIL_IN_FIELD))
        call = NULL;
    bool several = call && e->args[e->nargs - 1] != call;
    Hole hole = {to, several ? slot_new(r) : to};
    for (Expr *x = e;;) {
        vec_push(&chain, x);
        vec_push(&firsts, (int32_t)r->top);
        uint32_t n = x->nargs;
        if (n == 0)
            break;
        resolve_args(r, x->args, n - 1);
        Expr *last = x->args[n - 1];
        if (last->kind != EXPR_CALL || last->a->kind != EXPR_CTOR) {
            if (call)
                emit(r, x, CODE_MOVE, 0, slot(slot_new(r)), const_value(r, data_hole(last->type)),
                     0);
            else
                resolve_args(r, x->args + n - 1, 1);
            break;
        }
        x = last;
    }
    for (bool inner = true; chain.len; inner = false) {
        Expr *x = vec_pop(&chain);
        int32_t first = vec_pop(&firsts);
        int32_t ctor = const_ctor(r, x->a->ctor);
        int32_t at = chain.len ? first : to;
        emit(r, x, CODE_DATA, 0, slot(at), slot(first), ctor);
        if (inner && several)
            emit(r, x, CODE_MOVE, 0, slot(hole.part), slot(at), 0);
        r->top = (uint32_t)first;
    }
    if (call)
        resolve_function_call(r, call, TAIL, &hole);
    else
        finish(r, e, dst, to);
    r->top = mark;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void resolve_fn(Resolver *r, Expr *e, int32_t dst) {
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    Make m = {.code = code_of_fn(r->in, e)};
    m.captured = mem_bytes((m.code->ncaptured + 1) * sizeof(int32_t));
    for (uint32_t i = 0; i < m.code->ncaptured; i++) {
        if (!m.code->captured[i]) {
            m.captured[i] = verify_activation(r);
            continue;
        }
        void *at = map_find(&r->vars, m.code->captured[i]);
        if (!at)
            BUG("captured variable `%s` has no place", m.code->captured[i]->name->text);
        m.captured[i] = (int32_t)((intptr_t)at - 1);
    }
    if (m.code->ncaptured == 0) {
        emit(r, e, CODE_MOVE, 0, slot(to), const_value(r, closure_new(m.code)), 0);
    } else {
        vec_push(&r->makes, m);
        emit(r, e, CODE_CLOSURE, 0, slot(to), (int32_t)r->makes.len - 1, 0);
    }
    finish(r, e, dst, to);
    r->top = mark;
}

/* ---- the rest -------------------------------------------------------------------------------- */

void resolve_let(Resolver *r, Expr *e) {
    if (!e->var) {
        uint32_t mark = r->top;
        int32_t at;
        if (!simple_operand(r, e->a, &at))
            resolve(r, e->a, slot_new(r));
        r->top = mark;
        return;
    }
    int32_t at;
    if (!e->rec && simple_operand(r, e->a, &at)) {
        bind(r, e->var, at);
        verify_operand(r, e, at, e->var->type, e->var->name);
        return;
    }
    int32_t s = slot_new(r);
    if (e->rec)
        bind(r, e->var, slot(s));
    const Expr *before = r->unverified;
    if (verify_waits_for_checks(e))
        r->unverified = e->a;
    resolve(r, e->a, s);
    r->top = (uint32_t)s + 1;
    bind(r, e->var, slot(s));
    if (r->unverified != e->a)
        verify_operand(r, e, slot(s), e->var->type, e->var->name);
    r->unverified = before;
}

static void resolve_checks(Resolver *r, Expr *e) {
    uint32_t mark = r->top;
    for (uint32_t i = 0; i < e->nchecks; i++) {
        int32_t found = resolve_operand(r, e->checks[i].found);
        int32_t expected = resolve_operand(r, e->checks[i].expected);
        bool size = e->checks[i].kind == CHECK_SIZE;
        emit(r, e, size ? CODE_CHECK : CODE_CHECK_SHAPE, 0, (int32_t)i, found, expected);
        r->top = mark;
    }
}

/* Forms that are one instruction after their parts. */
static void resolve_plain(Resolver *r, Expr *e, int32_t dst) {
    uint32_t mark = r->top;
    int32_t to = result_slot(r, dst);
    int32_t s = slot(to), a, b;
    switch (e->kind) {
    case EXPR_LIT: /* the literal in each dtype, in order */
        a = resolve_operand(r, e->like);
        b = const_value(r, value_of_literal(e, 0));
        for (int t = 1; t < DTYPE_COUNT; t++)
            (void)const_value(r, value_of_literal(e, (DType)t));
        emit(r, e, CODE_LIKE, 0, s, a, b);
        break;
    case EXPR_GLOBAL: emit(r, e, CODE_GLOBAL, 0, s, const_global(r, e->global), 0); break;
    case EXPR_TUPLE:
        a = resolve_args(r, e->args, e->nargs);
        emit(r, e, CODE_TUPLE, 0, s, slot(a), (int32_t)e->nargs);
        break;
    case EXPR_TENSOR:
        a = resolve_args(r, e->args, e->nargs);
        emit(r, e, CODE_TENSOR, 0, s, slot(a), (int32_t)e->nargs);
        break;
    case EXPR_PROJ:
        a = resolve_operand(r, e->a);
        emit(r, e, CODE_PROJ, 0, s, a, e->index);
        break;
    case EXPR_FIELD:
        a = resolve_operand(r, e->a);
        emit(r, e, CODE_FIELD, 0, s, a, 0);
        break;
    case EXPR_UPDATE:
        a = resolve_operand(r, e->a);
        b = resolve_args(r, e->args, e->nargs);
        emit(r, e, CODE_UPDATE, 0, s, a, slot(b));
        break;
    case EXPR_INDEX:
        a = resolve_operand(r, e->a);
        b = resolve_args(r, e->args, e->nargs);
        emit(r, e, CODE_INDEX, 0, s, a, slot(b));
        break;
    case EXPR_REF:
    case EXPR_READ:
    case EXPR_BANG: {
        Opcode op = e->kind == EXPR_REF ? CODE_REF : e->kind == EXPR_READ ? CODE_READ : CODE_BANG;
        a = resolve_operand(r, e->a);
        emit(r, e, op, 0, s, a, 0);
        break;
    }
    case EXPR_WRITE:
        a = resolve_operand(r, e->a);
        b = resolve_operand(r, e->b);
        emit(r, e, CODE_WRITE, 0, s, a, b);
        break;
    case EXPR_EQUAL:
    case EXPR_CALL: {
        Expr *left, *right;
        bool negate;
        if (is_instruction(e)) {
            a = resolve_operand(r, e->args[0]);
            b = is_part_of_ct(e) ? (int32_t)e->args[1]->i : resolve_operand(r, e->args[1]);
            emit(r, e, is_part_of_ct(e) ? CODE_PART_OF_CT : CODE_ADD_CT, 0, s, a, b);
            break;
        }
        if (!equality_parts(e, &left, &right, &negate))
            BUG("a call of a kind that is not known");
        a = resolve_operand(r, left);
        b = resolve_operand(r, right);
        emit(r, e, CODE_EQUAL, negate, s, a, b);
        break;
    }
    case EXPR_DIM_OF:
        a = resolve_operand(r, e->a);
        emit(r, e, CODE_DIM_OF, 0, s, a, e->index);
        break;
    case EXPR_GRAD:
        a = resolve_operand(r, e->a);
        emit(r, e, CODE_GRAD, e->mode, s, a, e->is_left);
        break;
    case EXPR_CONST:
    case EXPR_STRING:
    case EXPR_VAR:
    case EXPR_OP:
    case EXPR_CTOR:
    case EXPR_ZERO:
    case EXPR_BUILTIN:
    case EXPR_FN:
    case EXPR_LET:
    case EXPR_IF:
    case EXPR_MATCH:
    case EXPR_CHECK:
    case EXPR_ERROR: BUG("form %d cannot be run", (int)e->kind);
    }
    finish(r, e, dst, to);
    r->top = mark;
}

static void resolve_call(Resolver *r, Expr *e, int32_t dst) {
    Expr *a, *b;
    bool negate;
    if (resolve_fused(r, e, dst) || resolve_added_product(r, e, dst))
        return;
    if (e->a->kind == EXPR_CTOR)
        resolve_ctor_chain(r, e, dst);
    else if (arith_opcode(e) != OPCODE_COUNT)
        resolve_arith(r, e, dst);
    else if (is_site(e))
        resolve_site_chain(r, e, dst);
    else if (equality_parts(e, &a, &b, &negate) || is_instruction(e))
        resolve_plain(r, e, dst);
    else
        resolve_function_call(r, e, dst, NULL);
}

static void resolve_here(Resolver *r, Expr *e, int32_t dst) {
    Expr *whole = e;
    Patches ends = {0};
    uint32_t mark = r->top;
    size_t scope = r->bound.len;
    for (;;) {
        int32_t at;
        while (cells_is_own(e)) /* no derivative follows code that runs */
            e = e->args[0];
        if (e->kind == EXPR_VAR && fuse_value_of(r, e->var))
            e = fuse_value_of(r, e->var);
        if (simple_operand(r, e, &at)) {
            if (dst == TAIL) {
                verify_operand(r, e, at, e->type, NULL);
                emit(r, e, CODE_RETURN, 0, 0, at, 0);
            } else {
                emit(r, e, CODE_MOVE, 0, slot(dst), at, 0);
            }
            break;
        }
        if (e->kind == EXPR_LET) {
            e = gather_parts(e);
            bool taken = !r->code->verify && fuse_let(r, e, false);
            Expr *next = taken ? NULL : resolve_row(r, e);
            if (!taken && !next)
                resolve_let(r, e);
            e = next ? next : e->body;
        } else if (e->kind == EXPR_CHECK) {
            resolve_checks(r, e);
            e = e->a;
        } else if (e->kind == EXPR_CALL && is_inline(r, e)) {
            e = resolve_inline(r, e);
        } else if (e->kind == EXPR_IF) {
            Patches otherwise = {0};
            uint32_t inner = r->top;
            resolve_condition(r, e->a, false, &otherwise);
            resolve(r, e->b, dst);
            if (dst != TAIL)
                vec_push(&ends, emit(r, e, CODE_JUMP, 0, 0, 0, 0));
            patch_here(r, &otherwise);
            r->top = inner;
            e = e->c;
        } else {
            if (e->kind == EXPR_MATCH)
                resolve_match(r, e, dst);
            else if (e->kind == EXPR_CALL)
                resolve_call(r, e, dst);
            else if (e->kind == EXPR_FN)
                resolve_fn(r, e, dst);
            else
                resolve_plain(r, e, dst);
            break;
        }
    }
    patch_here(r, &ends);
    if (dst != TAIL)
        verify_operand(r, whole, slot(dst), whole->type, NULL);
    r->top = mark;
    unbind(r, scope);
}

/* Emits jumps, added to `jumps`, that are taken when the condition is `sense`. */
void resolve_condition(Resolver *r, Expr *e, bool sense, Patches *jumps) {
    uint32_t mark = r->top;
    Opcode op = arith_opcode(e);
    if (e->kind == EXPR_IF) {
        bool is_and = e->c->kind == EXPR_LIT && !e->c->i, is_or = e->b->kind == EXPR_LIT && e->b->i;
        if (is_and || is_or) {
            Expr *second = is_or ? e->c : e->b; /* of `x || False` both hold */
            /* `and` is false as soon as one part is, `or` true as soon as one part is */
            bool decided = is_or;
            if (decided == sense) {
                resolve_condition(r, e->a, sense, jumps);
                resolve_condition(r, second, sense, jumps);
            } else {
                Patches skip = {0};
                resolve_condition(r, e->a, decided, &skip);
                resolve_condition(r, second, sense, jumps);
                patch_here(r, &skip);
            }
            return;
        }
    }
    if (op == CODE_NOT) {
        resolve_condition(r, e->args[0], !sense, jumps);
        return;
    }
    size_t at;
    Expr *left, *right;
    bool negate;
    if (op >= CODE_LT && op <= CODE_GE && op != OPCODE_COUNT) {
        int32_t b = resolve_operand(r, e->args[0]), c = resolve_operand(r, e->args[1]);
        at = emit(r, e, (Opcode)(CODE_JUMP_LT + (op - CODE_LT)), sense, 0, b, c);
    } else if (equality_parts(e, &left, &right, &negate)) {
        int32_t b = resolve_operand(r, left), c = resolve_operand(r, right);
        at = emit(r, e, CODE_JUMP_EQ, sense != negate, 0, b, c);
    } else if (calls_ad(e, "ad.is_zero")) {
        int32_t b = resolve_operand(r, e->args[0]);
        at = emit(r, e, CODE_JUMP_ABSENT, sense, 0, b, 0);
    } else {
        int32_t b = resolve_operand(r, e);
        at = emit(r, e, CODE_JUMP_IF, sense, 0, b, 0);
    }
    vec_push(jumps, at);
    r->top = mark;
}

typedef struct Later {
    Resolver *r;
    Expr *e;
    int32_t dst;
} Later;

static void resolve_later(void *arg) {
    Later *l = arg;
    resolve_here(l->r, l->e, l->dst);
}

static void resolve(Resolver *r, Expr *e, int32_t dst) {
    enum { SPARE = 256 << 10 };
    if (e->kind == EXPR_GRAD)
        e = vmap_to_run(&r->in->passes, e);
    if (mem_stack_left() > SPARE) {
        resolve_here(r, e, dst);
        return;
    }
    Later l = {r, e, dst};
    call_on_large_stack(r->in, resolve_later, &l);
}

void resolve_into(Resolver *r, Expr *e, int32_t dst) { resolve(r, e, dst); }

/* ---- a whole function ------------------------------------------------------------------------ */

Resolver *resolve_code(Interp *in, Code *code, Expr *source) {
    Resolver *r = mem_new(Resolver);
    r->in = in;
    room_take(r);
    r->code = code;
    Expr *body = code->item ? source : source->fn->body;
    r->body = body;
    r->passes_ran = source != code->fn || (!code->item && code->fn->fn->is_instance);
    if (!code->item)
        for (uint32_t i = 0; i < code->fn->fn->nparams; i++)
            bind(r, source->fn->params[i], slot(slot_new(r)));
    r->owned = !code->item && code->fn->fn->frames.len ? slot_new(r) : -1;
    for (uint32_t i = 0; i < code->ncaptured; i++)
        if (code->captured[i])
            bind(r, code->captured[i], operand(BASE_CAPTURED, i));
    verify_begin(r);
    if (code_counts(in, code))
        emit(r, body, CODE_COUNT, 0, 0, 0, 0);
    int32_t at = code->item ? slot_new(r) : TAIL;
    resolve(r, body, at);
    if (code->item)
        emit(r, body, CODE_RETURN, 0, 0, slot(at), 0);
    own_code(r);
    return r;
}

bool code_resolve(Interp *in, Code *code) {
    static const uint32_t none[] = {0};
    Resolver *r = resolve_code(in, code, code_source(in, code));
    tighten_code(r);
    choose_forms(r);
    code->lists = r->lists;
    code->ninstrs = (uint32_t)r->instrs.len;
    code->nslots = r->max;
    code->consts = r->consts.data;
    code->makes = r->makes.data;
    code->gives = r->gives.data;
    code->items_owned = r->items_owned.len ? r->items_owned.data : none;
    room_leave(r, code);
    return true;
}
