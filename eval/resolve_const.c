/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of code. What is found by a pointer stands there once. */
#include "eval/machine.h"
#include "eval/resolve.h"

int32_t const_value(Resolver *r, Value v) {
    vec_push(&r->consts, v);
    return operand(BASE_CONST, (uint32_t)r->consts.len - 1);
}

static DType literal_dtype(const Expr *lit) {
    DType t;
    if (lit->type && type_get_dtype(lit->type, &t))
        return t;
    return lit->is_float ? DT_F32 : DT_I32;
}

int32_t const_literal(Resolver *r, const Expr *e) {
    return const_value(r, value_of_literal(e, literal_dtype(e)));
}

bool const_tuple(Resolver *r, const Expr *e, int32_t *out) {
    Value items[TENSOR_MAX_RANK];
    if (e->kind != EXPR_TUPLE || !e->nargs || e->nargs > TENSOR_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const Expr *item = e->args[i];
        if (item->kind != EXPR_LIT || item->like)
            return false;
        items[i] = value_of_literal(item, literal_dtype(item));
    }
    *out = const_value(r, value_tuple(items, e->nargs));
    return true;
}

int32_t const_pointer(Resolver *r, uint32_t tag, void *p) {
    void *known = map_find(&r->pointers, p);
    if (known)
        return (int32_t)(intptr_t)known;
    int32_t at = const_value(r, (Value){.tag = tag, .p = p});
    map_set(&r->pointers, p, (void *)(intptr_t)at);
    return at;
}

/* The pointer, and behind it what an instruction that has the pointer needs besides. */
static int32_t const_pair(Resolver *r, uint32_t tag, void *p, const void *beside) {
    void *known = map_find(&r->pointers, p);
    if (known)
        return (int32_t)(intptr_t)known;
    int32_t at = const_pointer(r, tag, p);
    (void)const_value(r, (Value){.tag = VAL_ABSENT, .p = (void *)(uintptr_t)beside});
    return at;
}

int32_t const_global(Resolver *r, Global *g) {
    return const_pair(r, VAL_ABSENT, g, global_cell(r->in, g));
}

int32_t const_ctor(Resolver *r, Ctor *ctor) {
    return const_pair(r, VAL_CTOR, ctor, data_layout_first(ctor));
}
