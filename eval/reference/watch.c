/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation that tells what happens. Its globals have cells of their own, since a function is a closure of the
 * engine that made it. */
#include "eval/ad.h"
#include "eval/reference/internal.h"

bool ref_tell(Reference *r, WatchEvent event) {
    if (!r->watch)
        return true;
    event.is_inner = r->unwatched > 0;
    event.scope = r->scope;
    for (const Activation *a = r->top; a && event.depth < 1000; a = a->caller)
        event.depth += a->fn != NULL;
    if (r->watch(r->watch_ctx, &event))
        return true;
    interp_interrupt(r->in);
    return false;
}

EvalStatus reference_watch(Interp *in, Expr *e, WatchFn watch, void *ctx, Value *out) {
    WeakMap cells = in->cells, *watched = in->watched;
    Reference *engine = in->reference, *r = reference_new(in);
    r->watch = watch;
    r->watch_ctx = ctx;
    in->watched = &cells;
    in->cells = (WeakMap){0};
    in->reference = r;
    EvalStatus status = reference_eval(r, e, out);
    in->reference = engine;
    in->cells = cells;
    in->watched = watched;
    return status;
}

bool reference_eval_global(Reference *r, Expr *e, Value *out) {
    World *world = r->world;
    r->world = NULL;
    r->unwatched++;
    bool ok = ref_eval(r, e, NULL, NULL, out);
    r->unwatched--;
    r->world = world;
    return ok;
}

const void *watch_identity(Value v, uint64_t level) {
    const Dual *d = v.tag == VAL_DUAL ? v.p : NULL;
    return d && d->level == level ? d->other.p : NULL;
}

Value watch_cotangent(Value v, uint64_t level) {
    const Ref *cell = watch_identity(v, level);
    return cell ? cell->value : value_unit();
}

bool watch_variable(const Local *scope, size_t i, const char **name, Value *value) {
    for (; scope && i > 0; i--)
        scope = scope->outer;
    if (!scope)
        return false;
    *name = scope->var->name->text;
    *value = scope->value;
    return true;
}
