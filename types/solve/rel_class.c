/* SPDX-License-Identifier: Apache-2.0 */
/* The dtype classes Num, Float, Int, Bits (integers and bool), and the equation that waits. A class is
 * kept in the variable itself, so these relations are done as soon as they have run. */
#include "types/solve/solver_impl.h"

static RelStatus relate_class(Solver *s, Relation *r, DTypeSet set) {
    if (solver_restrict(s, r->args[0], set))
        return REL_DONE;
    Type *t = type_resolve(r->args[0]);
    rel_error(s, r, DIAG_R0310, "this must be %s, it is %s", dtype_class_name(set),
              t->tag == TY_DTYPE ? type_text(t) : dtype_class_name(type_dtype_set(t)));
    return REL_FAIL;
}

static RelStatus relate_num(Solver *s, Relation *r) { return relate_class(s, r, DTS_NUM); }

static RelStatus relate_float(Solver *s, Relation *r) { return relate_class(s, r, DTS_FLOAT); }

static RelStatus relate_int(Solver *s, Relation *r) { return relate_class(s, r, DTS_INT); }

static RelStatus relate_bits(Solver *s, Relation *r) { return relate_class(s, r, DTS_BITS); }

DTypeSet rel_dtype_class(const RelDef *def) {
    return def == &rel_num     ? DTS_NUM
           : def == &rel_float ? DTS_FLOAT
           : def == &rel_int   ? DTS_INT
           : def == &rel_bits  ? DTS_BITS
                               : 0;
}

const RelDef *rel_of_dtypes(DTypeSet set) {
    return !(set & ~DTS_FLOAT)  ? &rel_float
           : !(set & ~DTS_INT)  ? &rel_int
           : !(set & ~DTS_NUM)  ? &rel_num
           : !(set & ~DTS_BITS) ? &rel_bits
                                : NULL;
}

const RelDef rel_num = {.name = "Num", .relate = relate_num, .nargs = 1, .implicit = true};
const RelDef rel_float = {.name = "Float", .relate = relate_float, .nargs = 1};
const RelDef rel_int = {.name = "Int", .relate = relate_int, .nargs = 1};
const RelDef rel_bits = {.name = "Bits", .relate = relate_bits, .nargs = 1};

/* ---- Same(a, b) ------------------------------------------------------------------------------ */

static bool is_open_deriv(Type *t) {
    if (t->tag != TY_DERIV)
        return false;
    Type *elem = type_resolve(t->elem);
    return elem->tag == TY_VAR || type_has_vars(elem);
}

static RelStatus relate_same(Solver *s, Relation *r) {
    Type *a = type_resolve(r->args[0]), *b = type_resolve(r->args[1]);
    if (type_equal(a, b))
        return REL_DONE;
    if (a->kind == KIND_DIM &&
        dims_wait(a, b)) /* unifying would only post the same equation again */
        return REL_WAIT;
    if (a->kind == KIND_TYPE && (is_open_deriv(a) || is_open_deriv(b)) && a->tag != TY_VAR &&
        b->tag != TY_VAR && a->tag == b->tag)
        return REL_WAIT;
    if (a->kind == KIND_TYPE && is_open_deriv(a) != is_open_deriv(b))
        return REL_WAIT;
    const char *what = r->data ? r->data : "a size";
    s->what = what;
    if (a->kind == KIND_DIM ? unify_dims(s, a, b, true) : unify_gradual(s, a, b))
        return REL_DONE;
    TypeNamer names = {0};
    Str left = {0}, right = {0};
    type_print(&left, a, &names);
    type_print(&right, b, &names);
    if (a->kind == KIND_DIM)
        rel_error(s, r, s->mismatch.kind == MISMATCH_RIGID ? DIAG_R0303 : DIAG_R0301,
                  "%s: %s and %s must be equal", what, str_text(&left), str_text(&right));
    else
        rel_error(s, r, DIAG_R0201, "%s: %s and %s must be the same", what, str_text(&left),
                  str_text(&right));
    return REL_FAIL;
}

const RelDef rel_same = {.name = "Same", .relate = relate_same, .nargs = 2};
