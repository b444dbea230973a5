/* SPDX-License-Identifier: Apache-2.0 */
/* Vmap(f, g): g is f at each index of the first axis of every tensor in its arguments (LANGUAGE §3).
 *
 *   f : fn(T1, …, Tn) -> U   ⇒   g : fn(Rows(T1), …, Rows(Tn)) -> Rows(U)
 *
 * Rows(T) has a first axis more at each tensor of T: Rows(Tensor[(3,), b]) = Tensor[(k, 3), b]. All tensors of all arguments
 * and of the result have the same k. Tuples and data are mapped through; Strings, functions and references stay what
 * they are, as arguments, and are refused in the result. Data is mapped through its type arguments where its declaration
 * takes the axis there: List[Tensor[(3,), b]] becomes List[Tensor[(k, 3), b]]. Where it fixes the ranks of its tensors, as
 * `type P { P(float32) }` does, it becomes Rows[k, P] (Note [Rows of data] in type/rows.c).
 *
 * Whichever side of a parameter is known first gives the other one, so `vmap(fn (x) { … })(xs)` needs no annotation. */
#include "base/mem.h"
#include "tensor/tensor.h"
#include "types/solve/solver_impl.h"

/* One run of the relation. */
typedef struct Rows {
    Solver *s;
    Relation *r;
    Type *count;    /* the size of the first axes; NULL: no tensor was met yet */
    bool is_result; /* the result is at hand, and not a parameter */
    bool waits;     /* some part is not known on either side */
    bool derives;   /* within D(T): what has no floats is () there */
    bool has_tensor, failed;
} Rows;

static void relate_rows(Rows *w, Type **row, Type **all);

static void fail(Rows *w) { w->failed = true; }

/* ---- tensors --------------------------------------------------------------------------------- */

/* Takes `size` for the first axis of a tensor. */
static void take_count(Rows *w, Type *size) {
    int64_t a, b;
    w->has_tensor = true;
    size = type_resolve(size);
    if (!w->count) {
        w->count = size;
    } else if (type_get_int(w->count, &a) && type_get_int(size, &b)) {
        if (a == b)
            return;
        Diag *d = rel_error(w->s, w->r, DIAG_R0314,
                            "the first axes of the arguments of `vmap` differ: %lld and %lld",
                            (long long)a, (long long)b);
        diag_add_fact(d, "the function is called once for each index of them");
        fail(w);
    } else if (!rel_unify_dim(w->s, w->r, w->count, size, -1, 0)) {
        fail(w);
    } else if (type_get_int(size, &b)) {
        w->count = size;
    }
}

static Type *prepend_count(Rows *w, uint32_t rank, Type *const *dims) {
    Type **all = mem_new_n(Type *, (size_t)rank + 1);
    w->has_tensor = true;
    if (!w->count)
        w->count = solver_var(w->s, KIND_DIM);
    all[0] = w->count;
    for (uint32_t i = 0; i < rank; i++)
        all[i + 1] = dims[i];
    return type_shape(all, rank + 1);
}

/* Relates the shape of a row to that of all rows. */
static void relate_shapes(Rows *w, Type **row, Type **all) {
    uint32_t rank;
    Type **dims;
    *row = type_resolve(*row);
    *all = type_resolve(*all);
    if (type_get_rank(*all, &rank, &dims)) {
        if (rank == 0) {
            rel_error(w->s, w->r, DIAG_R0313,
                      w->is_result ? "the result of `vmap` has a first axis, this is a scalar"
                                   : "`vmap` takes its arguments apart along their first axis; a "
                                     "scalar has none");
            fail(w);
            return;
        }
        take_count(w, dims[0]);
        *row = type_shape(dims + 1, rank - 1);
    } else if (type_get_rank(*row, &rank, &dims)) {
        if (rank + 1 > TENSOR_MAX_RANK) {
            rel_error(w->s, w->r, DIAG_R0313, "a tensor has at most %d axes", TENSOR_MAX_RANK);
            fail(w);
            return;
        }
        if (w->is_result && !w->count)
            w->waits = true;
        else
            *all = prepend_count(w, rank, dims);
    } else if ((*all)->tag == TY_ANY || (*row)->tag == TY_ANY) {
        w->has_tensor = true;
        if (!w->count)
            w->count = type_any(KIND_DIM, NULL);
        if ((*row)->tag == TY_VAR)
            *row = type_any(KIND_SHAPE, NULL);
        if ((*all)->tag == TY_VAR)
            *all = type_any(KIND_SHAPE, NULL);
    } else {
        w->has_tensor = true;
        w->waits = true;
    }
}

static void relate_tensors(Rows *w, Type **row, Type **all) {
    const Type *known = (*row)->tag == TY_TENSOR ? *row : *all;
    bool both = (*row)->tag == (*all)->tag;
    Type *dtype = known->tensor.dtype;
    Type *row_shape = (*row)->tag == TY_TENSOR ? (*row)->tensor.shape : NULL;
    Type *all_shape = (*all)->tag == TY_TENSOR ? (*all)->tensor.shape : NULL;
    row_shape = row_shape ? row_shape : solver_var(w->s, KIND_SHAPE);
    all_shape = all_shape ? all_shape : solver_var(w->s, KIND_SHAPE);
    relate_shapes(w, &row_shape, &all_shape);
    if (both && row_shape == (*row)->tensor.shape && all_shape == (*all)->tensor.shape &&
        type_resolve((*row)->tensor.dtype) == type_resolve((*all)->tensor.dtype))
        return;
    *row = type_tensor(row_shape, dtype);
    *all = type_tensor(all_shape, dtype);
}

/* ---- tuples and data ------------------------------------------------------------------------- */

static Type **fresh_like(Rows *w, Type *const *args, uint32_t n) {
    Type **out = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        out[i] = solver_var(w->s, type_resolve(args[i])->kind);
    return out;
}

static void relate_tuples(Rows *w, Type **row, Type **all) {
    uint32_t n = (*row)->tag == TY_TUPLE ? (*row)->nargs : (*all)->nargs;
    Type **rows = mem_new_n(Type *, (size_t)n + 1), **alls = mem_new_n(Type *, (size_t)n + 1);
    Type **made = fresh_like(w, (*row)->tag == TY_TUPLE ? (*row)->args : (*all)->args, n);
    if ((*row)->tag == (*all)->tag && (*row)->nargs != (*all)->nargs)
        return; /* unification says it */
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (*row)->tag == TY_TUPLE ? (*row)->args[i] : made[i];
        alls[i] = (*all)->tag == TY_TUPLE ? (*all)->args[i] : made[i];
        relate_rows(w, &rows[i], &alls[i]);
    }
    *row = type_tuple(rows, n);
    *all = type_tuple(alls, n);
}

/* Relates the arguments of data, of n values of a declaration that takes the axis, or of rows and what is in them. */
static void relate_arguments(Rows *w, Type **rows, Type **alls, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        Kind kind = type_resolve(rows[i] ? rows[i] : alls[i])->kind;
        if (kind == KIND_TYPE || kind == KIND_SHAPE) {
            rows[i] = rows[i] ? rows[i] : solver_var(w->s, kind);
            alls[i] = alls[i] ? alls[i] : solver_var(w->s, kind);
        }
        switch (kind) {
        case KIND_TYPE: relate_rows(w, &rows[i], &alls[i]); break;
        case KIND_SHAPE: relate_shapes(w, &rows[i], &alls[i]); break;
        case KIND_DIM:
        case KIND_DTYPE:
        case KIND_EFFECT:
            rows[i] = rows[i] ? rows[i] : alls[i];
            alls[i] = rows[i];
            break;
        }
    }
}

/* Data whose parameters take the axis: the declaration stays. */
static void relate_same_data(Rows *w, Type **row, Type **all) {
    const Type *known = (*row)->tag == TY_DATA ? *row : *all;
    uint32_t n = known->nargs;
    Type **rows = mem_new_n(Type *, (size_t)n + 1), **alls = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (*row)->tag == TY_DATA ? (*row)->args[i] : NULL;
        alls[i] = (*all)->tag == TY_DATA ? (*all)->args[i] : NULL;
    }
    relate_arguments(w, rows, alls, n);
    *row = type_data(known->decl, rows, n);
    *all = type_data(known->decl, alls, n);
}

/* Data whose declaration says how many axes its tensors have: `decl`, and `stacked` of n of its values. */
static void relate_stacked(Rows *w, Type **row, Type **all, TypeDecl *decl, TypeDecl *stacked) {
    uint32_t n = decl->nparams;
    Type **rows = mem_new_n(Type *, (size_t)n + 1), **alls = mem_new_n(Type *, (size_t)n + 2);
    if ((*all)->tag == TY_DATA) {
        take_count(w, (*all)->args[0]);
    } else if (w->is_result && !w->count) {
        w->waits = true;
        return;
    } else if (!w->count) {
        w->count = solver_var(w->s, KIND_DIM);
    }
    if (w->failed)
        return;
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = (*row)->tag == TY_DATA ? (*row)->args[i] : NULL;
        alls[i + 1] = (*all)->tag == TY_DATA ? (*all)->args[i + 1] : NULL;
    }
    relate_arguments(w, rows, alls + 1, n);
    alls[0] = (*all)->tag == TY_DATA ? (*all)->args[0] : w->count;
    *row = type_data(decl, rows, n);
    *all = type_data(stacked, alls, n + 1);
}

static void fail_for_axes(Rows *w, const TypeDecl *decl) {
    rel_error(w->s, w->r, DIAG_R0313, "a tensor has at most %d axes, and one of `%s` has as many",
              TENSOR_MAX_RANK, decl->name->text);
    fail(w);
}

static void fail_to_take(Rows *w, Type *all) {
    Diag *d = rel_error(w->s, w->r, DIAG_R0319,
                        "`vmap` takes no rows out of %s: its declaration says how many axes its "
                        "tensors have",
                        type_text(all));
    diag_add_fact(d,
                  "n of them, stacked, are a Rows[n, %s]: what `build` or `vmap` makes of a "
                  "function that gives one",
                  type_text(all));
    fail(w);
}

/* Of n rows there would be n Strings, for which the type has no room. */
static bool fail_for_whole(Rows *w, Type *data) {
    Type *whole = w->is_result && !w->derives ? type_find_whole(data) : NULL;
    if (!whole)
        return false;
    Diag *d = rel_error(w->s, w->r, DIAG_R0319,
                        "`vmap` stacks the tensors of its results, and %s holds %s, which is none",
                        type_text(data), type_text(whole));
    diag_add_fact(d, "each row has its own; `map` gives a List of them");
    fail(w);
    return true;
}

static void relate_data(Rows *w, Type **row, Type **all) {
    bool knows_row = (*row)->tag == TY_DATA, knows_all = (*all)->tag == TY_DATA;
    if (fail_for_whole(w, knows_row ? *row : *all))
        return;
    TypeDecl *decl = knows_row ? (*row)->decl : (*all)->decl;
    if (knows_row ? type_decl_takes_axis(decl) : !decl->row && type_decl_takes_axis(decl)) {
        if (!knows_row || !knows_all || (*all)->decl == decl) /* else unification says it */
            relate_same_data(w, row, all);
        return;
    }
    w->has_tensor = true;
    if (!knows_row && !decl->row) {
        fail_to_take(w, *all);
        return;
    }
    decl = knows_row ? decl : decl->row;
    TypeDecl *stacked = type_decl_rows(decl);
    Type *unknown = solver_var(w->s, KIND_TYPE);
    bool differ = knows_all && (*all)->decl != stacked; /* unification says it */
    if (!stacked)
        fail_for_axes(w, decl);
    else if (!differ)
        relate_stacked(w, row, all, decl, stacked);
    else
        relate_stacked(w, row, &unknown, decl, stacked);
    if (differ && !w->failed && !w->waits)
        *all = unknown;
}

/* D(T) of data that is not its own derivative: its rows are D of those of T. */
static void relate_derivatives(Rows *w, Type **row, Type **all) {
    Type *of = type_resolve((*row)->tag == TY_DERIV ? (*row)->elem : (*all)->elem);
    if (of->tag != TY_DATA) {
        w->waits = true;
        w->has_tensor |= !w->is_result;
        return;
    }
    Type *one = (*row)->tag == TY_DERIV ? (*row)->elem : solver_var(w->s, KIND_TYPE);
    Type *rows = (*all)->tag == TY_DERIV ? (*all)->elem : solver_var(w->s, KIND_TYPE);
    w->derives = true;
    relate_rows(w, &one, &rows);
    w->derives = false;
    *row = type_deriv(one);
    *all = type_deriv(rows);
}

/* ---- all types ------------------------------------------------------------------------------- */

/* What has no tensors to take apart is the same in each call. */
static void relate_whole(Rows *w, Type **row, Type **all, const Type *known) {
    if (w->is_result && !w->derives && known->tag != TY_ERROR) {
        rel_error(w->s, w->r, DIAG_R0319,
                  "`vmap` stacks the results of its function, which must be tensors, or tuples and "
                  "data of them; this one gives %s",
                  type_text((*row)->tag == TY_VAR ? *all : *row));
        fail(w);
        return;
    }
    if ((*row)->tag == TY_VAR)
        *row = *all;
    else if ((*all)->tag == TY_VAR)
        *all = *row;
}

static bool is_vmap(const RelDef *def) { return def == &rel_vmap; }

/* What a declared Vmap says that `one` is on the other side: `all` of a row, or a row of `all`. NULL: nothing. */
static Type *declared_other(Rows *w, Type *one, bool is_row) {
    const Relation *fact;
    for (size_t at = 0; (fact = solver_next_fact(w->s, is_vmap, &at));) {
        Type *from = type_resolve(fact->args[is_row ? 0 : 1]);
        Type *to = type_resolve(fact->args[is_row ? 1 : 0]);
        if (from->tag != TY_FN || to->tag != TY_FN)
            continue;
        for (uint32_t k = 0; k < from->nargs && k < to->nargs; k++)
            if (type_equal(from->args[k], one))
                return to->args[k];
        if (type_equal(from->fn.result, one))
            return to->fn.result;
    }
    return NULL;
}

/* A declared parameter, or a tensor of a declared shape. */
static bool is_declared(Type *t) {
    return t->tag == TY_PARAM ||
           (t->tag == TY_TENSOR && type_resolve(t->tensor.shape)->tag == TY_PARAM);
}

/* What is declared has no other side but what the `where` says. */
static bool relate_declared(Rows *w, Type **row, Type **all) {
    Type *other = NULL;
    if (is_declared(*all) && (other = declared_other(w, *all, false)))
        *row = other;
    else if (is_declared(*row) && (other = declared_other(w, *row, true)))
        *all = other;
    w->has_tensor |= other != NULL;
    w->waits |= other != NULL; /* the whole relation follows from the declared one, or not */
    return other != NULL;
}

/* Makes *row and *all what they are, as far as one says it of the other. */
static void relate_rows(Rows *w, Type **row, Type **all) {
    if (w->failed)
        return;
    *row = type_resolve(*row);
    *all = type_resolve(*all);
    if (relate_declared(w, row, all))
        return;
    const Type *known = (*row)->tag == TY_VAR ? *all : *row;
    const Type *other = known == *row ? *all : *row;
    if (known->tag != TY_VAR && other->tag != TY_VAR && other->tag != known->tag)
        return; /* unification says it */
    switch (known->tag) {
    case TY_TENSOR: relate_tensors(w, row, all); return;
    case TY_TUPLE: relate_tuples(w, row, all); return;
    case TY_DATA: relate_data(w, row, all); return;
    case TY_DERIV: relate_derivatives(w, row, all); return;
    case TY_STRING:
    case TY_FN:
    case TY_REF:
    case TY_ERROR: relate_whole(w, row, all, known); return;
    default:
        w->waits = true;
        w->has_tensor |= !w->is_result;
        return; /* not known yet */
    }
}

static RelStatus report_no_tensor(Rows *w, uint32_t n) {
    rel_error(w->s, w->r, DIAG_R0319,
              n ? "no argument of this function holds a tensor that `vmap` could take apart"
                : "`vmap` needs a function with a parameter, this one has none");
    return REL_FAIL;
}

/* f and g as functions of as many parameters. False: not known yet, or *status is REL_FAIL. */
static bool find_functions(Solver *s, Relation *r, RelStatus *status) {
    *status = REL_WAIT;
    for (int i = 0; i < 2; i++) {
        Type *one = type_resolve(r->args[i]), *other = type_resolve(r->args[1 - i]);
        if (one->tag != TY_FN || other->tag != TY_VAR)
            continue;
        Type **params = mem_new_n(Type *, (size_t)one->nargs + 1);
        for (uint32_t k = 0; k < one->nargs; k++)
            params[k] = solver_var(s, KIND_TYPE);
        Type *made = type_fn(params, one->nargs, solver_var(s, KIND_TYPE), one->fn.effect);
        if (!rel_unify(s, r, 1 - i, made))
            *status = REL_FAIL;
    }
    Type *f = type_resolve(r->args[0]), *g = type_resolve(r->args[1]);
    if (f->tag != TY_FN && f->tag != TY_VAR && f->tag != TY_PARAM && f->tag != TY_ERROR) {
        rel_error(s, r, DIAG_R0201, "`vmap` takes a function, this is %s", type_text(f));
        *status = REL_FAIL;
    }
    return *status != REL_FAIL && f->tag == TY_FN && g->tag == TY_FN;
}

static RelStatus relate_vmap(Solver *s, Relation *r) {
    RelStatus status;
    if (!find_functions(s, r, &status))
        return status;
    Type *f = type_resolve(r->args[0]), *g = type_resolve(r->args[1]);
    uint32_t n = f->nargs;
    Rows w = {.s = s, .r = r};
    Type **rows = mem_new_n(Type *, (size_t)n + 1), **alls = mem_new_n(Type *, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = f->args[i];
        alls[i] = i < g->nargs ? g->args[i] : solver_var(s, KIND_TYPE);
        relate_rows(&w, &rows[i], &alls[i]);
    }
    if (w.failed)
        return REL_FAIL;
    if (!w.has_tensor)
        return report_no_tensor(&w, n);
    Type *row = f->fn.result, *all = g->fn.result;
    w.is_result = true;
    relate_rows(&w, &row, &all);
    if (w.failed || !rel_unify(s, r, 0, type_fn_named(rows, n, row, f->fn.effect, f->fn.named)) ||
        !rel_unify(s, r, 1, type_fn(alls, n, all, f->fn.effect)))
        return REL_FAIL;
    return w.waits ? REL_WAIT : REL_DONE;
}

const RelDef rel_vmap = {.name = "Vmap", .relate = relate_vmap, .nargs = 2};
