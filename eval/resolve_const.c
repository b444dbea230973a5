/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of code. What is found by a pointer stands there once. */
#include "eval/machine.h"
#include "eval/resolve.h"

int32_t const_value(Resolver *r, Value v) {
    vec_push(&r->consts, v);
    return operand(BASE_CONST, (uint32_t)r->consts.len - 1);
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
