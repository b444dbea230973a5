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

int32_t const_global(Resolver *r, Global *g) {
    void *known = map_find(&r->pointers, g);
    if (known)
        return (int32_t)(intptr_t)known;
    int32_t at = const_pointer(r, VAL_ABSENT, g);
    (void)const_value(r, (Value){.tag = VAL_ABSENT, .p = global_cell(r->in, g)});
    return at;
}

int32_t const_ctor(Resolver *r, Ctor *ctor) {
    void *known = map_find(&r->pointers, ctor);
    if (known)
        return (int32_t)(intptr_t)known;
    int32_t at = const_pointer(r, VAL_CTOR, ctor);
    (void)const_value(r,
                      (Value){.tag = VAL_ABSENT, .p = (void *)(uintptr_t)data_layout_first(ctor)});
    return at;
}
