/* SPDX-License-Identifier: Apache-2.0 */
/* Grad(f, g) and its kin: g is the derivative of the function f (LANGUAGE §5). The parameters of f and g are the
 * same, so each gives those of the other. The result of g is built of D, which is inverted at tensors only.
 *
 *   Grad   fn(T1, …, Tn) -> U   ⇒   fn(T1, …, Tn) -> (U, (D(T1), …, D(Tn)))      U a float tensor
 *   Deriv                          fn(T1, …, Tn) -> D(T1), or (D(T1), …, D(Tn))
 *   Vjp                            fn(T1, …, Tn, D(U)) -> (U, (D(T1), …, D(Tn)))  U data of tensors
 *   Jvp                            fn(T1, …, Tn, D(T1), …, D(Tn)) -> (U, D(U))
 *
 * CustomGrad(f, d): d is fn(T1, …, Tn, D(U)) -> (D(T1), …, D(Tn)), which gives f's cotangents.
 * Checkpoint(f): f is a function of any type.
 * Leaves(t, e): e is a scalar of the dtype that all floats of t have (relate_leaves). */
#include <string.h>

#include "base/mem.h"
#include "types/solve/solver_impl.h"

typedef enum Mode { MODE_GRAD, MODE_DERIV, MODE_VJP, MODE_JVP } Mode;

static const char *mode_name(Mode mode) {
    switch (mode) {
    case MODE_GRAD: return "grad";
    case MODE_DERIV: return "deriv";
    case MODE_VJP: return "vjp";
    case MODE_JVP: return "jvp";
    }
    return "";
}

/* Finds the parameters of f where only g is known. They are g's own, without those that the mode adds. */
static bool find_function(Solver *s, Relation *r, Mode mode) {
    Type *f = type_resolve(r->args[0]), *g = type_resolve(r->args[1]);
    if (f->tag != TY_VAR || g->tag != TY_FN)
        return true;
    uint32_t n = mode == MODE_VJP   ? g->nargs - (g->nargs > 0)
                 : mode == MODE_JVP ? g->nargs / 2
                                    : g->nargs;
    bool seeds = mode == MODE_GRAD || mode == MODE_DERIV;
    Type *result = seeds ? solver_tensor_var(s) : solver_var(s, KIND_TYPE);
    return rel_unify(s, r, 0, type_fn(g->args, n, result, g->fn.effect));
}

/* Whether f gives a value and the derivative by its only parameter, as `grad(g)` does. */
static bool gives_grad(const Type *f) {
    Type *t = type_resolve(f->fn.result), *partials;
    if (f->nargs != 1 || t->tag != TY_TUPLE || t->nargs != 2)
        return false;
    partials = type_resolve(t->args[1]);
    return partials->tag == TY_TUPLE && partials->nargs == 1 &&
           type_equal(partials->args[0], type_deriv(f->args[0]));
}

static bool check_result(Solver *s, Relation *r, Mode mode, const Type *f, Type *result) {
    bool seeds = mode == MODE_GRAD || mode == MODE_DERIV;
    Type *t = type_resolve(result);
    if (!seeds) {
        if (!type_holds_code(t))
            return true;
        rel_error(s, r, DIAG_R0403, "`%s` takes functions whose result is data; this one gives %s",
                  mode_name(mode), type_text(t));
        return false;
    }
    if (t->tag == TY_ERROR)
        return true;
    if (t->tag == TY_VAR)
        return solver_unify(s, t, solver_tensor_var(s)) && check_result(s, r, mode, f, result);
    if (t->tag == TY_TENSOR && solver_restrict(s, t->tensor.dtype, DTS_FLOAT))
        return true;
    if (t->tag == TY_TENSOR && type_resolve(t->tensor.dtype)->tag == TY_PARAM &&
        (type_dtype_set(t->tensor.dtype) & DTS_FLOAT)) {
        rel_error(s, r, DIAG_R0304,
                  "`%s` is not known to be a float, which `%s` needs of the result",
                  type_text(t->tensor.dtype), mode_name(mode));
        return false;
    }
    Diag *d = rel_error(s, r, DIAG_R0402,
                        "`%s` needs a function whose result is a float tensor, this "
                        "one gives %s",
                        mode_name(mode), type_text(t));
    if (gives_grad(f))
        diag_add_help(d, "`deriv(deriv(f))` is the second derivative: `grad` gives the value of "
                         "the function too");
    else if (type_holds_float(t) == HOLDS_YES)
        diag_add_fact(d, "`vjp(f)(x, c)` takes the cotangent `c` of such a result");
    return false;
}

static Type *make_deriv_tuple(Type **params, uint32_t n) {
    Type **parts = mem_new_n(Type *, n);
    for (uint32_t i = 0; i < n; i++)
        parts[i] = type_deriv(params[i]);
    return type_tuple(parts, n);
}

static Type *make_derivative_type(Mode mode, Type *f) {
    uint32_t n = f->nargs;
    Type *u = f->fn.result, *effect = f->fn.effect, *d = make_deriv_tuple(f->args, n);
    Type *pair[] = {u, mode == MODE_JVP ? type_deriv(u) : d};
    Type *both = type_tuple(pair, 2);
    Type **params = mem_new_n(Type *, 2 * (size_t)n + 1), **named = NULL;
    if (f->fn.named) {
        named = mem_new_n(Type *, 2 * (size_t)n + 1);
        memcpy(named, f->fn.named, n * sizeof *named);
    }
    for (uint32_t i = 0; i < n; i++) {
        params[i] = f->args[i];
        params[n + i] = type_deriv(f->args[i]);
    }
    switch (mode) {
    case MODE_GRAD: return type_fn_named(f->args, n, both, effect, named);
    case MODE_DERIV:
        return type_fn_named(f->args, n, n == 1 ? type_deriv(f->args[0]) : d, effect, named);
    case MODE_VJP:
        params[n] = type_deriv(u);
        return type_fn_named(params, n + 1, both, effect, named);
    case MODE_JVP: return type_fn_named(params, 2 * n, both, effect, named);
    }
    return NULL;
}

static Holds params_hold_float(Type **params, uint32_t n) {
    Holds all = HOLDS_NO;
    for (uint32_t i = 0; i < n; i++) {
        Holds one = type_holds_float(params[i]);
        if (one == HOLDS_YES)
            return HOLDS_YES;
        all = one == HOLDS_UNKNOWN ? one : all;
    }
    return all;
}

static RelStatus report_no_float(Solver *s, Relation *r, Type **params, uint32_t n) {
    Diag *d;
    if (n == 1)
        d = rel_error(s, r, DIAG_R0401,
                      "cannot differentiate: the parameter is %s, which holds no float",
                      type_text(params[0]));
    else
        d = rel_error(s, r, DIAG_R0401,
                      n ? "cannot differentiate: no parameter holds a float"
                        : "cannot differentiate: the function has no parameters");
    if (n > 0 && type_resolve(params[0])->tag == TY_TENSOR)
        diag_add_fact(d, "`(float32) x` makes a float of an integer");
    return REL_FAIL;
}

static RelStatus relate_mode(Solver *s, Relation *r, Mode mode) {
    if (!find_function(s, r, mode))
        return REL_FAIL;
    Type *f = type_resolve(r->args[0]);
    if (f->tag == TY_VAR || f->tag == TY_PARAM)
        return REL_WAIT;
    if (f->tag != TY_FN) {
        rel_error(s, r, DIAG_R0201, "`%s` takes a function, this is %s", mode_name(mode),
                  type_text(f));
        return REL_FAIL;
    }
    Holds holds = params_hold_float(f->args, f->nargs);
    if (holds == HOLDS_NO)
        return report_no_float(s, r, f->args, f->nargs);
    if (!check_result(s, r, mode, f, f->fn.result))
        return REL_FAIL;
    if (!rel_unify(s, r, 1, make_derivative_type(mode, f)))
        return REL_FAIL;
    if (params_hold_float(f->args, f->nargs) == HOLDS_UNKNOWN)
        solver_post(s, &rel_differentiable, f->args, f->nargs, NULL, r->span);
    return REL_DONE;
}

static RelStatus relate_grad(Solver *s, Relation *r) { return relate_mode(s, r, MODE_GRAD); }

static RelStatus relate_deriv(Solver *s, Relation *r) { return relate_mode(s, r, MODE_DERIV); }

static RelStatus relate_vjp(Solver *s, Relation *r) { return relate_mode(s, r, MODE_VJP); }

static RelStatus relate_jvp(Solver *s, Relation *r) { return relate_mode(s, r, MODE_JVP); }

static RelStatus relate_differentiable(Solver *s, Relation *r) {
    switch (params_hold_float(r->args, r->nargs)) {
    case HOLDS_YES: return REL_DONE;
    case HOLDS_NO: return report_no_float(s, r, r->args, r->nargs);
    case HOLDS_UNKNOWN: return REL_WAIT;
    }
    return REL_WAIT;
}

/* Finds f = fn(T1, …, Tn) -> U where only d is known, which takes n + 1 arguments. */
static bool find_custom(Solver *s, Relation *r) {
    Type *f = type_resolve(r->args[0]), *d = type_resolve(r->args[1]);
    if (f->tag != TY_VAR || d->tag != TY_FN || d->nargs == 0)
        return true;
    return rel_unify(
        s, r, 0,
        type_fn(d->args, d->nargs - 1, solver_var(s, KIND_TYPE), solver_var(s, KIND_EFFECT)));
}

static RelStatus relate_custom(Solver *s, Relation *r) {
    if (!find_custom(s, r))
        return REL_FAIL;
    Type *f = type_resolve(r->args[0]);
    if (f->tag == TY_VAR || f->tag == TY_PARAM)
        return REL_WAIT;
    if (f->tag != TY_FN) {
        rel_error(s, r, DIAG_R0201, "`custom_grad` takes a function, this is %s", type_text(f));
        return REL_FAIL;
    }
    if (type_holds_code(f->fn.result)) {
        rel_error(s, r, DIAG_R0403,
                  "`custom_grad` takes functions whose result is data; this one "
                  "gives %s",
                  type_text(f->fn.result));
        return REL_FAIL;
    }
    Type **params = mem_new_n(Type *, (size_t)f->nargs + 1);
    for (uint32_t i = 0; i < f->nargs; i++)
        params[i] = f->args[i];
    params[f->nargs] = type_deriv(f->fn.result);
    Type *d = type_fn(params, f->nargs + 1, make_deriv_tuple(f->args, f->nargs),
                      solver_var(s, KIND_EFFECT));
    return rel_unify(s, r, 1, d) ? REL_DONE : REL_FAIL;
}

static RelStatus relate_checkpoint(Solver *s, Relation *r) {
    Type *f = type_resolve(r->args[0]);
    if (f->tag == TY_VAR || f->tag == TY_PARAM)
        return REL_WAIT;
    if (f->tag == TY_FN)
        return REL_DONE;
    rel_error(s, r, DIAG_R0201, "`checkpoint` takes a function, this is %s", type_text(f));
    return REL_FAIL;
}

/* Leaves(t, Tensor[(), b]): the float tensors in a value of type t are all of dtype b. D(t) has the same ones. */
static RelStatus relate_leaves(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]);
    if (t->tag == TY_DERIV) {
        r->args[0] = t->elem;
        t = type_resolve(t->elem);
    }
    TypeVec dtypes = {0};
    bool known = type_collect_float_dtypes(t, &dtypes);
    for (size_t i = 1; i < dtypes.len; i++)
        if (!solver_unify(s, dtypes.data[0], dtypes.data[i])) {
            rel_error(s, r, DIAG_R0310, "%s holds floats of %s and of %s, wanted is one dtype",
                      type_text(t), type_text(dtypes.data[0]), type_text(dtypes.data[i]));
            return REL_FAIL;
        }
    Type *wanted = type_resolve(r->args[1]);
    if (dtypes.len && wanted->tag == TY_TENSOR &&
        !solver_unify(s, wanted->tensor.dtype, dtypes.data[0])) {
        rel_error(s, r, DIAG_R0311, "the floats in here are of %s, and those beside them of %s",
                  type_text(dtypes.data[0]), type_text(wanted->tensor.dtype));
        return REL_FAIL;
    }
    if (dtypes.len && !rel_unify(s, r, 1, type_tensor(type_shape(NULL, 0), dtypes.data[0])))
        return REL_FAIL;
    if (known && !dtypes.len) {
        rel_error(s, r, DIAG_R0310, "%s holds no float tensor", type_text(t));
        return REL_FAIL;
    }
    return known ? REL_DONE : REL_WAIT;
}

const RelDef rel_leaves = {.name = "Leaves", .relate = relate_leaves, .nargs = 2};
const RelDef rel_custom_grad = {.name = "CustomGrad", .relate = relate_custom, .nargs = 2};
const RelDef rel_checkpoint = {.name = "Checkpoint", .relate = relate_checkpoint, .nargs = 1};
const RelDef rel_grad = {.name = "Grad", .relate = relate_grad, .nargs = 2};
const RelDef rel_deriv = {.name = "Deriv", .relate = relate_deriv, .nargs = 2};
const RelDef rel_vjp = {.name = "Vjp", .relate = relate_vjp, .nargs = 2};
const RelDef rel_jvp = {.name = "Jvp", .relate = relate_jvp, .nargs = 2};
const RelDef rel_differentiable = {
    .name = "Differentiable", .relate = relate_differentiable, .nargs = -1, .implicit = true};
