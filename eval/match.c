/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern matching, compiled plainly: each arm's tests in order, the next arm where one fails.
 *
 *     match (e) { Cons(x, _) => a, Nil => b }
 *
 *     s <- e;  test s is Cons else L1;  x <- s.0;  a;  jump end;
 *     L1: test s is Nil else L2;  b;  jump end;  L2: no match
 *
 * A tuple literal matched by tuple patterns is not built. Where the arms before one have taken all other constructors,
 * its own is not tested: above, Nil is what is left. */
#include "eval/verify.h"

/* Whether the arm takes every value of its pattern's constructor. */
static bool takes_ctor(const Arm *arm) {
    const Pattern *p = arm->pattern;
    bool all = p->kind == PAT_CTOR && !arm->guard;
    for (uint32_t i = 0; all && i < p->nargs; i++)
        all = p->args[i]->kind == PAT_WILDCARD || p->args[i]->kind == PAT_VAR;
    return all;
}

/* Adds the constructor of an arm that takes all its values. Whether it is the one that the arms before have left. */
static bool take_ctor(const Arm *arm, uint64_t *taken) {
    enum { MOST = 64 };
    if (arm->pattern->kind != PAT_CTOR)
        return false;
    const Ctor *ctor = arm->pattern->ctor;
    if (!ctor->decl || ctor->decl->nctors > MOST)
        return false;
    uint64_t all = UINT64_MAX >> (MOST - ctor->decl->nctors), one = UINT64_C(1) << ctor->tag;
    bool last = (*taken | one) == all;
    if (takes_ctor(arm))
        *taken |= one;
    return last;
}

/* Tests the value at operand `at`, binding what the pattern names. known: its constructor is the pattern's. */
static void resolve_pattern(Resolver *r, Pattern *p, Expr *match, int32_t at, bool known,
                            Patches *fail) {
    switch (p->kind) {
    case PAT_WILDCARD: return;
    case PAT_VAR:
        bind(r, p->var, at);
        verify_operand(r, match, at, p->var->type, p->var->name);
        return;
    case PAT_LIT: {
        DType t;
        Type *type = p->lit->type ? p->lit->type : p->type;
        if (!type || !type_get_dtype(type, &t))
            t = p->lit->is_float ? DT_F64 : DT_I64;
        int32_t lit = const_value(r, value_of_literal(p->lit, t));
        vec_push(fail, emit(r, match, CODE_TEST_VALUE, 0, 0, at, lit));
        return;
    }
    case PAT_STRING: {
        int32_t text = const_value(r, value_string(p->text, p->text_len));
        vec_push(fail, emit(r, match, CODE_TEST_VALUE, 0, 0, at, text));
        return;
    }
    case PAT_CTOR: {
        if (known)
            break;
        int32_t ctor = const_ctor(r, p->ctor);
        bool holds = p->ctor->nfields || p->ctor->is_function;
        Opcode test = holds ? CODE_TEST_DATA : CODE_TEST_NULLARY;
        vec_push(fail, emit(r, match, test, 0, 0, at, ctor));
        break;
    }
    case PAT_TUPLE: break;
    }
    Opcode get = p->kind != PAT_CTOR    ? CODE_GET_ITEM
                 : p->ctor->is_function ? CODE_GET_CAPTURED
                                        : CODE_GET_FIELD;
    for (uint32_t i = 0; i < p->nargs; i++)
        if (p->args[i]->kind != PAT_WILDCARD) {
            int32_t s = operand(BASE_SLOT, (uint32_t)slot_new(r));
            emit(r, match, get, 0, s, at, (int32_t)i);
            resolve_pattern(r, p->args[i], match, s, false, fail);
        }
}

static bool takes_tuple_apart(const Expr *e) {
    if (e->a->kind != EXPR_TUPLE || e->a->nargs == 0)
        return false;
    for (uint32_t i = 0; i < e->narms; i++)
        if (e->arms[i].pattern->kind != PAT_TUPLE && e->arms[i].pattern->kind != PAT_WILDCARD)
            return false;
    return true;
}

void resolve_match(Resolver *r, Expr *e, int32_t dst) {
    uint32_t mark = r->top;
    VEC(int32_t) parts = {0};
    int32_t whole = 0;
    bool apart = takes_tuple_apart(e);
    if (apart)
        for (uint32_t i = 0; i < e->a->nargs; i++)
            vec_push(&parts, resolve_operand(r, e->a->args[i]));
    else
        whole = resolve_operand(r, e->a);
    uint32_t inner = r->top;
    size_t scope = r->bound.len;
    Patches ends = {0};
    uint64_t taken = 0; /* constructors, by their tags */
    bool open = true;   /* some value may have matched no arm so far */
    for (uint32_t i = 0; open && i < e->narms; i++) {
        const Arm *arm = &e->arms[i];
        Patches fail = {0};
        if (!apart)
            resolve_pattern(r, arm->pattern, e, whole, take_ctor(arm, &taken), &fail);
        else if (arm->pattern->kind == PAT_TUPLE)
            for (uint32_t k = 0; k < arm->pattern->nargs; k++)
                resolve_pattern(r, arm->pattern->args[k], e, parts.data[k], false, &fail);
        if (arm->guard)
            resolve_condition(r, arm->guard, false, &fail);
        resolve_into(r, arm->body, dst);
        r->top = inner;
        unbind(r, scope);
        open = fail.len > 0;
        if (dst != TAIL && (open || i + 1 < e->narms))
            vec_push(&ends, emit(r, e, CODE_JUMP, 0, 0, 0, 0));
        patch_here(r, &fail);
    }
    if (open)
        emit(r, e, CODE_NO_MATCH, 0, 0, apart ? parts.data[0] : whole, 0);
    patch_here(r, &ends);
    r->top = mark;
}
