/* SPDX-License-Identifier: Apache-2.0 */
/* vmap(f) is evaluated as the loop that it means: passes/vmap.h. */
#include "passes/vmap.h"

#include "eval/reference/internal.h"
#include "passes/grad.h"

Expr *ref_loop(Reference *r, Expr *e) {
    Expr *loop = weak_find(&r->loops, e);
    if (!loop) {
        loop = vmap_to_run(&r->in->passes, e);
        weak_set(&r->loops, e, loop);
    }
    return loop;
}

Value ref_vmap(Reference *r, Value f) {
    if (f.tag != VAL_CLOSURE)
        BUG("vmap of a value that is no function (tag %u)", f.tag);
    uint32_t n = ((const Closure *)f.p)->fn->fn->nparams;
    Closure *c = mem_alloc(sizeof *c + sizeof(Value));
    c->fn = grad_template(&r->in->passes, GRAD_VMAP, n)->fn->body;
    c->ncaptured = 1;
    c->captured[0] = f;
    return (Value){.tag = VAL_CLOSURE, .p = c};
}
