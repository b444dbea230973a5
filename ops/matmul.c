/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. All of them, and their partial derivatives, are one form: of three tensors two
 * are multiplied and summed over the axes that the third, the target, does not have.
 *
 *     out[b, n, m] = sum k      lhs[b, n, k] * rhs[b, k, m]
 *     lhs[b, n, k] = sum m      out[b, n, m] * rhs[b, k, m]      (and over b where lhs repeats)
 *     rhs[b, k, m] = sum n      lhs[b, n, k] * out[b, n, m] */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

enum { MAT_LHS, MAT_RHS, MAT_OUT };

/* The axes are the batch axes of the result, then n, k, m. A tensor has stride 0 along an axis it
 * does not have. */
typedef struct Mat {
    int nbatch;
    int64_t extents[RECIPE_MAX_AXES];
    bool has[3][RECIPE_MAX_AXES];
    bool lvec, rvec; /* lhs (k), rhs (k): the result lacks n, m */
} Mat;

static int mat_axes(const Mat *m) { return m->nbatch + 3; }

/* The strides of one of the three over all axes. */
static void mat_strides(const Mat *m, int which, const Tensor *t, bool transposed,
                        int64_t *strides) {
    int nb = m->nbatch, nmat = 2;
    if (which == MAT_LHS)
        nmat = 2 - m->lvec;
    if (which == MAT_RHS)
        nmat = 2 - m->rvec;
    if (which == MAT_OUT)
        nmat = 2 - m->lvec - m->rvec;
    int own = t->rank - nmat; /* batch axes of t */
    for (int i = 0; i < nb + 3; i++)
        strides[i] = 0;
    for (int i = 0; i < nb; i++) {
        int k = i - (nb - own);
        if (k >= 0 && m->has[which][i])
            strides[i] = t->strides[k];
    }
    const int64_t *s = t->strides + own;
    int64_t *n = strides + nb, *k = n + 1, *c = n + 2, swap[2];
    if (transposed) {
        swap[0] = s[1];
        swap[1] = s[0];
        s = swap;
    }
    switch (which) {
    case MAT_LHS:
        if (!m->lvec)
            *n = *s++;
        *k = *s;
        return;
    case MAT_RHS:
        *k = *s++;
        if (!m->rvec)
            *c = *s;
        return;
    default:
        if (!m->lvec)
            *n = *s++;
        if (!m->rvec)
            *c = *s;
    }
}

/* target = x * y, summed over the axes that target lacks. */
static void mat_plan(Plan *plan, const Mat *m, int target, Tensor *t, bool ttrans, int nx,
                     const Tensor *x, bool xtrans, int ny, const Tensor *y, bool ytrans) {
    int64_t ts[RECIPE_MAX_AXES], xs[RECIPE_MAX_AXES], ys[RECIPE_MAX_AXES];
    mat_strides(m, target, t, ttrans, ts);
    mat_strides(m, nx, x, xtrans, xs);
    mat_strides(m, ny, y, ytrans, ys);
    Product p = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < mat_axes(m); i++) {
            if (m->has[target][i] != (pass == 0))
                continue;
            int n = p.rank + p.nreduce;
            p.extents[n] = m->extents[i];
            p.out_strides[n] = ts[i];
            p.x_strides[n] = xs[i];
            p.y_strides[n] = ys[i];
            if (pass == 0)
                p.rank++;
            else
                p.nreduce++;
        }
    }
    plan_product(plan, t, &p, x, y);
}

/* nb batch axes of lhs and of rhs, whose sizes stand before n, k and k, m. */
static bool mat_batch(const OpCall *call, Mat *m, int nl, const int64_t *l, int nr,
                      const int64_t *r) {
    m->nbatch = nl > nr ? nl : nr;
    if (m->nbatch + 3 > RECIPE_MAX_AXES) {
        shape_error(call, DIAG_R0313, "takes at most %d batch axes", RECIPE_MAX_AXES - 3);
        return false;
    }
    for (int i = 0; i < m->nbatch; i++) {
        int il = i - (m->nbatch - nl), ir = i - (m->nbatch - nr);
        int64_t a = il < 0 ? 1 : l[il], b = ir < 0 ? 1 : r[ir];
        if (a != b && a != 1 && b != 1) {
            shape_error(call, DIAG_R0312, "batch axes of size %lld and %lld do not broadcast",
                        (long long)a, (long long)b);
            return false;
        }
        m->extents[i] = a == 1 ? b : a;
        m->has[MAT_LHS][i] = il >= 0 && a == m->extents[i];
        m->has[MAT_RHS][i] = ir >= 0 && b == m->extents[i];
        m->has[MAT_OUT][i] = true;
    }
    return true;
}

static void mat_inner(Mat *m, int64_t n, int64_t k, int64_t c) {
    int i = m->nbatch;
    m->extents[i] = n;
    m->extents[i + 1] = k;
    m->extents[i + 2] = c;
    m->has[MAT_LHS][i] = m->has[MAT_OUT][i] = !m->lvec;
    m->has[MAT_LHS][i + 1] = m->has[MAT_RHS][i + 1] = true;
    m->has[MAT_RHS][i + 2] = m->has[MAT_OUT][i + 2] = !m->rvec;
}

static bool same_inner(const OpCall *call, int a, int axis_a, int b, int axis_b) {
    return shape_check_dims(call, a, axis_a < 0 ? axis_a + call->in[a]->rank : axis_a, b,
                            axis_b < 0 ? axis_b + call->in[b]->rank : axis_b);
}

/* ---- matmul: NumPy's ranks ------------------------------------------------------------------- */

static bool matmul_mat(const OpCall *call, int l, int r, Mat *m) {
    const Tensor *a = call->in[l], *b = call->in[r];
    *m = (Mat){0};
    if (!shape_check_same_dtype(call, l, r) || !shape_check_min_rank(call, l, 1) ||
        !shape_check_min_rank(call, r, 1))
        return false;
    m->lvec = a->rank == 1;
    m->rvec = b->rank == 1;
    int64_t n = a->shape[a->rank - 1], k = b->shape[m->rvec ? 0 : b->rank - 2];
    if (n != k) {
        shape_mistake(call, DIAG_R0314,
                      "the inner sizes of `%s` differ: %lld on the left, %lld on the right",
                      op_subject(call->op), (long long)n, (long long)k);
        return false;
    }
    if (!mat_batch(call, m, m->lvec ? 0 : a->rank - 2, a->shape, m->rvec ? 0 : b->rank - 2,
                   b->shape))
        return false;
    mat_inner(m, m->lvec ? 1 : a->shape[a->rank - 2], a->shape[a->rank - 1],
              m->rvec ? 1 : b->shape[b->rank - 1]);
    return true;
}

static int mat_out_shape(const Mat *m, int64_t *dims) {
    int rank = 0;
    for (int i = 0; i < mat_axes(m); i++)
        if (m->has[MAT_OUT][i])
            dims[rank++] = m->extents[i];
    return rank;
}

static int shape_matmul(const OpCall *call, OutSpec *out) {
    Mat m;
    int64_t dims[RECIPE_MAX_AXES];
    if (!matmul_mat(call, 0, 1, &m))
        return -1;
    int rank = mat_out_shape(&m, dims);
    return shape_set(call, out, call->in[0]->dtype, rank, dims) ? 1 : -1;
}

/* The batch size of the result, from sizes a and b side by side (NULL: missing). *open: one of them
 * may still turn out to be 1. NULL after a report. */
static Type *batch_dim(Solver *s, Relation *r, Type *a, Type *b, int axis, bool *open) {
    int64_t n;
    uint32_t rank;
    Type **dims;
    bool one = rel_rank_in(rel_result_arg(r), &rank, &dims) && axis < (int)rank &&
               rel_is_one(type_resolve(dims[axis]));
    for (int i = 0; one && i < 2; i++) /* then both are 1 */
        if ((i ? b : a) && !rel_unify_dim(s, r, i ? b : a, dims[axis], i, axis))
            return NULL;
    if (!a || rel_is_one(a))
        return b ? b : a;
    if (!b || rel_is_one(b) || dim_compare(a, b) == DIM_EQUAL)
        return a;
    bool ka = type_get_int(a, &n), kb = type_get_int(b, &n);
    Type *unknown = rel_unknown_broadcast(s, r, a, b, axis);
    if (unknown)
        return unknown;
    if (!(ka && kb) && (rel_dim_open(a) || rel_dim_open(b))) {
        *open = true;
        return ka ? a : kb ? b : solver_var(s, KIND_DIM);
    }
    return rel_unify_dim(s, r, a, b, 1, axis) ? a : NULL;
}

/* Of two matrices whose inner sizes differ: says so. */
static void explain_product(Solver *s, Relation *r) {
    uint32_t na, nb;
    Type **a, **b;
    Diags *diags = solver_diags(s);
    Diag *d = diags->list.len ? vec_last(&diags->list) : NULL;
    if (!d || d->code != DIAG_R0314 || !rel_rank_in(r->args[0], &na, &a) ||
        !rel_rank_in(r->args[1], &nb, &b) || na < 1 || nb < 1)
        return;
    int ia = (int)na - 1, ib = nb == 1 ? 0 : (int)nb - 2;
    d->message = fmt_text("the inner sizes of `%s` differ: %s on the left, %s on the right",
                          relation_subject(r), type_text(a[ia]), type_text(b[ib]));
}

/* How many axes the product of tensors with a and b has; -1: there is none. */
static int product_rank(int a, int b) {
    int la = a < 2 ? 0 : a - 2, lb = b < 2 ? 0 : b - 2;
    return a < 1 || b < 1 ? -1 : (la > lb ? la : lb) + (a > 1) + (b > 1);
}

typedef struct ProductRank {
    int other, result; /* other -1: not known */
} ProductRank;

static bool is_rank_of_factor(void *ctx, int rank) {
    const ProductRank *p = ctx;
    if (p->other >= 0)
        return product_rank(rank, p->other) == p->result;
    for (int other = 1; other <= TENSOR_MAX_RANK; other++)
        if (product_rank(rank, other) == p->result)
            return true;
    return false;
}

/* The number of axes of one operand, where only one gives the result's beside the other. */
static bool rank_from_other(Solver *s, Relation *r, int arg) {
    uint32_t n, rank;
    Type **dims;
    if (!rel_rank_in(rel_result_arg(r), &rank, &dims))
        return true;
    ProductRank p = {rel_rank_in(r->args[1 - arg], &n, &dims) ? (int)n : -1, (int)rank};
    return rel_only_rank(s, r, arg, is_rank_of_factor, &p);
}

static RelStatus relate_matmul(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status)) {
        if (status == REL_FAIL)
            explain_product(s, r);
        return status;
    }
    uint32_t na, nb, n = 0;
    Type **a, **b, *dtype = rel_dtype_in(r->args[0]);
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    if (!rank_from_other(s, r, 0) || !rank_from_other(s, r, 1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &na, &a) || !rel_rank_in(r->args[1], &nb, &b))
        return rel_wait(s, r, dtype);
    if (na == 0 || nb == 0) {
        rel_error(s, r, DIAG_R0313,
                  "`%s`: a product needs at least 1 axis on each side; `*` multiplies "
                  "by a number",
                  relation_subject(r));
        return REL_FAIL;
    }
    if (!rel_unify_dim(s, r, b[nb == 1 ? 0 : nb - 2], a[na - 1], 1, nb == 1 ? 0 : (int)nb - 2))
        return REL_FAIL;
    uint32_t la = na < 2 ? 0 : na - 2, lb = nb < 2 ? 0 : nb - 2, lead = la > lb ? la : lb;
    Type **out = mem_new_n(Type *, lead + 3);
    bool open = false;
    for (uint32_t i = 0; i < lead; i++) {
        Type *x = i + la < lead ? NULL : a[i + la - lead],
             *y = i + lb < lead ? NULL : b[i + lb - lead];
        out[n] = batch_dim(s, r, x, y, (int)i, &open);
        if (!out[n++])
            return REL_FAIL;
    }
    if (na > 1)
        out[n++] = a[na - 2];
    if (nb > 1)
        out[n++] = b[nb - 1];
    if (rel_result(s, r, out, n, dtype) == REL_FAIL)
        return REL_FAIL;
    return open ? REL_WAIT : REL_DONE;
}

static bool lower_matmul(const OpCall *call, Tensor *const *out, Plan *plan) {
    Mat m;
    if (!matmul_mat(call, 0, 1, &m))
        return false;
    mat_plan(plan, &m, MAT_OUT, out[0], false, MAT_LHS, call->in[0], false, MAT_RHS, call->in[1],
             false);
    return true;
}

/* A vector on either side has no n, no m. */
static void write_matmul_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    static const char *const lhs[] = {"(k)", "(n, k)", "(b~, n, k)"}, *const rhs[] = {"(k)",
                                                                                      "(k, m)",
                                                                                      "(b~, k, m)"};
    (void)attrs;
    int a = nin > 0 ? ranks[0] : 2, b = nin > 1 ? ranks[1] : 2;
    str_printf(out, "%s, %s", a < 1 || a > 3 ? "(..., n, k)" : lhs[a - 1],
               b < 1 || b > 3 ? "(..., k, m)" : rhs[b - 1]);
}

static const RelDef rel_matmul = {"MatMul", relate_matmul, 3, false};
const Op op_matmul = {
    .name = "matmul",
    .args = "lhs, rhs",
    .nargs = 2,
    .write_sizes = write_matmul_sizes,
    .relation = &rel_matmul,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_matmul,
    .lower = lower_matmul,
    .doc = "The matrix product, written `lhs @@ rhs`: the last axis of lhs with the last but one "
           "of rhs;\n"
           "a vector on either side loses its axis; earlier axes broadcast.",
    .example = "matmul([[1, 2], [3, 4]], [10, 1])",
    .example_result = "[12, 34] : Tensor[(2,), int32]",
    .see_also = "nn.dense, nn.batch_matmul, einsum",
};

enum { OF_LHS, OF_RHS };

/* (grad, rhs, lhs) and (grad, lhs, rhs): the result has the shape of the last. */
static int shape_matmul_grad(const OpCall *call, OutSpec *out) {
    bool left = call->op->variant == OF_LHS;
    const Tensor *g = call->in[0], *like = call->in[2];
    Mat m;
    int64_t dims[RECIPE_MAX_AXES];
    if (!matmul_mat(call, left ? 2 : 1, left ? 1 : 2, &m) || !shape_check_same_dtype(call, 0, 1))
        return -1;
    int rank = mat_out_shape(&m, dims);
    bool fits = rank == g->rank;
    for (int i = 0; i < rank && fits; i++)
        fits = dims[i] == g->shape[i];
    if (!fits) {
        shape_error(call, DIAG_R0314, "`grad` has shape %s, the product %s",
                    shape_text(g->rank, g->shape), shape_text(rank, dims));
        return -1;
    }
    return shape_set(call, out, g->dtype, like->rank, like->shape) ? 1 : -1;
}

static RelStatus relate_matmul_grad(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_NUM}, &status))
        return status;
    Type *dtype = rel_dtype_in(r->args[0]);
    for (int i = 1; i < 3; i++)
        if (!rel_unify(s, r, i, type_tensor(rel_shape_in(r->args[i]), dtype)))
            return REL_FAIL;
    return rel_result_type(s, r, r->args[2]) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_matmul_lhs(const OpCall *call, Tensor *const *out, Plan *plan) {
    Mat m;
    if (!matmul_mat(call, 2, 1, &m))
        return false;
    mat_plan(plan, &m, MAT_LHS, out[0], false, MAT_OUT, call->in[0], false, MAT_RHS, call->in[1],
             false);
    return true;
}

static bool lower_matmul_rhs(const OpCall *call, Tensor *const *out, Plan *plan) {
    Mat m;
    if (!matmul_mat(call, 1, 2, &m))
        return false;
    mat_plan(plan, &m, MAT_RHS, out[0], false, MAT_LHS, call->in[1], false, MAT_OUT, call->in[0],
             false);
    return true;
}

static const RelDef rel_matmul_lhs = {"MatMulLhs", relate_matmul_grad, 4, false};
const Op op_matmul_lhs = {
    .name = "matmul_lhs",
    .args = "grad, rhs, lhs",
    .nargs = 3,
    .relation = &rel_matmul_lhs,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .variant = OF_LHS,
    .like_last = true,
    .shape = shape_matmul_grad,
    .refuses_sizes = true,
    .lower = lower_matmul_lhs,
    .doc = "The derivative of matmul by lhs: grad times rhs, summed over the axes that lhs lacks.\n"
           "Of lhs only the shape matters.",
    .example = "matmul_lhs([1, 2], [10, 1], [[0, 0], [0, 0]])",
    .example_result = "[[10,  1],\n [20,  2]] : Tensor[(2, 2), int32]",
    .see_also = "matmul",
};
static const RelDef rel_matmul_rhs = {"MatMulRhs", relate_matmul_grad, 4, false};
const Op op_matmul_rhs = {
    .name = "matmul_rhs",
    .args = "grad, lhs, rhs",
    .nargs = 3,
    .relation = &rel_matmul_rhs,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .variant = OF_RHS,
    .like_last = true,
    .shape = shape_matmul_grad,
    .refuses_sizes = true,
    .lower = lower_matmul_rhs,
    .doc = "The derivative of matmul by rhs: lhs times grad, summed over the axes that rhs lacks.\n"
           "Of rhs only the shape matters.",
    .example = "matmul_rhs([1, 2], [[1, 2], [3, 4]], [0, 0])",
    .example_result = "[7, 10] : Tensor[(2,), int32]",
    .see_also = "matmul",
};

/* ---- nn.matmul, nn.dense: a matrix on the right -----------------------------------------------
 */

typedef struct DenseAxes {
    bool ta, tb;
} DenseAxes;

enum { ANY_MATMUL, DENSE }; /* as attributes say; always `data @@ transpose(weight)` */

static DenseAxes dense_axes(const Op *op, const Attrs *attrs) {
    if (op->variant == DENSE)
        return (DenseAxes){false, true};
    return (DenseAxes){attrs_bool(attrs, "transpose_a"), attrs_bool(attrs, "transpose_b")};
}

static bool dense_mat(const OpCall *call, Mat *m) {
    const Tensor *a = call->in[0], *b = call->in[1];
    DenseAxes t = dense_axes(call->op, call->attrs);
    *m = (Mat){.lvec = a->rank == 1 && !t.ta};
    if (!shape_check_same_dtype(call, 0, 1) || !shape_check_min_rank(call, 0, 1) ||
        !shape_check_rank(call, 1, 2) || (t.ta && !shape_check_rank(call, 0, 2)) ||
        !same_inner(call, 0, t.ta ? 0 : -1, 1, t.tb ? 1 : 0))
        return false;
    int lead = t.ta || m->lvec ? 0 : a->rank - 2;
    int64_t n = m->lvec ? 1 : a->shape[t.ta ? 1 : a->rank - 2];
    if (!mat_batch(call, m, lead, a->shape, 0, NULL))
        return false;
    mat_inner(m, n, a->shape[t.ta ? 0 : a->rank - 1], b->shape[t.tb ? 0 : 1]);
    return true;
}

static int shape_dense(const OpCall *call, OutSpec *out) {
    Mat m;
    int64_t dims[RECIPE_MAX_AXES];
    if (!dense_mat(call, &m))
        return -1;
    int rank = mat_out_shape(&m, dims);
    const AttrValue *units = attrs_get(call->attrs, "units");
    if (units->kind == ATTR_INT && units->i != dims[rank - 1]) {
        shape_error(call, DIAG_R0314, "units=%lld, and `%s` has %lld", (long long)units->i,
                    shape_arg_name(call, 1), (long long)dims[rank - 1]);
        return -1;
    }
    return shape_set(call, out, shape_attr_dtype(call, "out_dtype", call->in[0]->dtype), rank, dims)
               ? 1
               : -1;
}

/* data (…, k), weight (units, k): (…, units). Given the units, data determines the weight. */
static RelStatus relate_dense(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    DenseAxes t = dense_axes(r->op, r->attrs);
    uint32_t na, nb;
    Type **a, **b, *dtype = rel_dtype_in(r->args[0]);
    const AttrValue *units = attrs_get(r->attrs, "units");
    Type *u = units->kind == ATTR_NONE ? NULL
              : units->kind == ATTR_DIM
                  ? units->dim
                  : type_dim_int(units->i, rel_attr_origin(r, "units", units));
    if (t.ta ? !rel_give_rank(s, r, 0, 2) : !rel_rank_of_result(s, r, 0, 0))
        return REL_FAIL;
    bool ranked = rel_rank_in(r->args[0], &na, &a);
    if (ranked && (na == 0 || (t.ta && na != 2))) {
        rel_error(s, r, DIAG_R0313, "`%s`: %s has %u axes", r->op->name, type_text(r->args[0]), na);
        return REL_FAIL;
    }
    if (!rel_make_rank(s, r, 1, 2) ||
        !rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    rel_rank_in(r->args[1], &nb, &b);
    if (nb != 2) {
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes and needs 2", r->op->name,
                  op_arg(r->op, 1).name, nb);
        return REL_FAIL;
    }
    if (u && !rel_unify_dim(s, r, b[t.tb ? 0 : 1], u, 1, t.tb ? 0 : 1))
        return REL_FAIL;
    if (!ranked)
        return rel_wait(s, r, rel_attr_dtype(r, "out_dtype", dtype));
    if (!rel_unify_dim(s, r, b[t.tb ? 1 : 0], a[t.ta ? 0 : na - 1], 1, t.tb ? 1 : 0))
        return REL_FAIL;
    Type **out = rel_copy_dims(na, a, 0);
    if (t.ta)
        out[0] = a[1];
    out[na - 1] = b[t.tb ? 0 : 1];
    dtype = rel_attr_dtype(r, "out_dtype", dtype);
    return rel_result(s, r, out, na, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_dense(const OpCall *call, Tensor *const *out, Plan *plan) {
    DenseAxes t = dense_axes(call->op, call->attrs);
    Mat m;
    if (!dense_mat(call, &m))
        return false;
    mat_plan(plan, &m, MAT_OUT, out[0], false, MAT_LHS, call->in[0], t.ta, MAT_RHS, call->in[1],
             t.tb);
    return true;
}

static void write_product_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    (void)nin;
    (void)ranks;
    str_printf(out, "%s, %s", attrs_bool(attrs, "transpose_a") ? "(k, n)" : "(..., k)",
               attrs_bool(attrs, "transpose_b") ? "(m, k)" : "(k, m)");
}

static const RelDef rel_dense = {"Dense", relate_dense, 3, false};
static const AttrSpec dense_attrs[] = {
    {"units", AT_DIM, "None", "the rows of the weight, where its type is to be determined by it"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
};
const Op op_nn_dense = {
    .name = "nn.dense",
    .args = "data, weight",
    .nargs = 2,
    .sizes = "(..., k), (units, k)",
    .attrs = dense_attrs,
    .nattrs = 2,
    .relation = &rel_dense,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .variant = DENSE,
    .shape = shape_dense,
    .lower = lower_dense,
    .doc = "data @@ transpose(weight): data (…, k) and weight (units, k) give (…, units).",
    .example = "nn.dense([[1.0, 2.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])",
    .example_result = "[[3.0, 2.0, 1.0]] : Tensor[(1, 3), float32]",
    .see_also = "matmul, nn.bias_add, nn.matmul",
};
static const RelDef rel_nn_matmul = {"NNMatMul", relate_dense, 3, false};
static const AttrSpec nn_matmul_attrs[] = {
    {"units", AT_DIM, "None", "the columns of the product, where tensor_b is determined by it"},
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
    {"transpose_a", AT_BOOL, "False", "tensor_a is (k, n)"},
    {"transpose_b", AT_BOOL, "False", "tensor_b is (m, k)"},
};
const Op op_nn_matmul = {
    .name = "nn.matmul",
    .args = "tensor_a, tensor_b",
    .nargs = 2,
    .write_sizes = write_product_sizes,
    .attrs = nn_matmul_attrs,
    .nattrs = 4,
    .relation = &rel_nn_matmul,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .variant = ANY_MATMUL,
    .shape = shape_dense,
    .lower = lower_dense,
    .doc = "tensor_a (…, k) times the matrix tensor_b (k, m), either of them transposed first.",
    .example = "nn.matmul([[1, 2]], [[3, 4]], transpose_b=True)",
    .example_result = "[[11]] : Tensor[(1, 1), int32]",
    .see_also = "matmul, nn.dense, nn.batch_matmul",
};

/* ---- nn.dense_weight ------------------------------------------------------------------------- */

static int shape_dense_weight(const OpCall *call, OutSpec *out) {
    const Tensor *g = call->in[0], *x = call->in[1];
    if (!shape_check_same_dtype(call, 0, 1) || !shape_check_min_rank(call, 0, 1) ||
        !shape_check_rank(call, 1, g->rank))
        return -1;
    for (int i = 0; i + 1 < g->rank; i++)
        if (!shape_check_dims(call, 0, i, 1, i))
            return -1;
    int64_t dims[2] = {g->shape[g->rank - 1], x->shape[x->rank - 1]};
    return shape_set(call, out, g->dtype, 2, dims) ? 1 : -1;
}

static RelStatus relate_dense_weight(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    uint32_t ng, nx;
    Type **g, **x, *dtype = rel_dtype_in(r->args[0]);
    if (!rel_unify(s, r, 1, type_tensor(rel_shape_in(r->args[1]), dtype)))
        return REL_FAIL;
    if (!rel_same_rank(s, r, 0, 1))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &ng, &g) || !rel_rank_in(r->args[1], &nx, &x))
        return rel_wait_rank(s, r, 2, dtype);
    if (ng != nx || ng == 0) {
        rel_error(s, r, DIAG_R0313, "`%s`: %u and %u axes", r->op->name, ng, nx);
        return REL_FAIL;
    }
    for (uint32_t i = 0; i + 1 < ng; i++)
        if (!rel_unify_dim(s, r, x[i], g[i], 1, (int)i))
            return REL_FAIL;
    Type *out[2] = {g[ng - 1], x[nx - 1]};
    return rel_result(s, r, out, 2, dtype) == REL_FAIL ? REL_FAIL : REL_DONE;
}

static bool lower_dense_weight(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *g = call->in[0], *x = call->in[1];
    Product p = {.rank = 2, .nreduce = g->rank - 1};
    for (int i = 0; i < 2; i++) {
        p.extents[i] = out[0]->shape[i];
        p.out_strides[i] = out[0]->strides[i];
    }
    p.x_strides[0] = g->strides[g->rank - 1];
    p.y_strides[1] = x->strides[x->rank - 1];
    for (int i = 0; i + 1 < g->rank; i++) {
        p.extents[2 + i] = g->shape[i];
        p.x_strides[2 + i] = g->strides[i];
        p.y_strides[2 + i] = x->strides[i];
    }
    plan_product(plan, out[0], &p, g, x);
    return true;
}

static const RelDef rel_dense_weight = {"DenseWeight", relate_dense_weight, 3, false};
const Op op_nn_dense_weight = {
    .name = "nn.dense_weight",
    .args = "grad, data",
    .nargs = 2,
    .relation = &rel_dense_weight,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_dense_weight,
    .lower = lower_dense_weight,
    .doc =
        "transpose(grad) @@ data, summed over all axes but the last of each: grad (…, u) and data\n"
        "(…, k) give (u, k), the derivative of nn.dense by its weight.",
    .example = "nn.dense_weight([[1, 2]], [[10, 20, 30]])",
    .example_result = "[[10, 20, 30],\n [20, 40, 60]] : Tensor[(2, 3), int32]",
    .see_also = "nn.dense",
};

/* ---- nn.batch_matmul ------------------------------------------------------------------------- */

static bool batch_mat(const OpCall *call, Mat *m) {
    const Tensor *a = call->in[0], *b = call->in[1];
    bool ta = attrs_bool(call->attrs, "transpose_a"), tb = attrs_bool(call->attrs, "transpose_b");
    *m = (Mat){0};
    if (!shape_check_same_dtype(call, 0, 1) || !shape_check_rank(call, 0, 3) ||
        !shape_check_rank(call, 1, 3) || !same_inner(call, 0, ta ? 1 : 2, 1, tb ? 2 : 1) ||
        !mat_batch(call, m, 1, a->shape, 1, b->shape))
        return false;
    mat_inner(m, a->shape[ta ? 2 : 1], a->shape[ta ? 1 : 2], b->shape[tb ? 1 : 2]);
    return true;
}

static int shape_batch_matmul(const OpCall *call, OutSpec *out) {
    Mat m;
    int64_t dims[RECIPE_MAX_AXES];
    if (!batch_mat(call, &m))
        return -1;
    int rank = mat_out_shape(&m, dims);
    return shape_set(call, out, shape_attr_dtype(call, "out_dtype", call->in[0]->dtype), rank, dims)
               ? 1
               : -1;
}

static RelStatus relate_batch_matmul(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    bool ta = attrs_bool(r->attrs, "transpose_a"), tb = attrs_bool(r->attrs, "transpose_b");
    Type *dtype = rel_dtype_in(r->args[0]), **a, **b;
    uint32_t rank;
    for (int i = 0; i < 2; i++) {
        if (!rel_make_rank(s, r, i, 3) ||
            !rel_unify(s, r, i, type_tensor(rel_shape_in(r->args[i]), dtype)))
            return REL_FAIL;
        rel_rank_in(r->args[i], &rank, &a);
        if (rank == 3)
            continue;
        rel_error(s, r, DIAG_R0313, "`nn.batch_matmul`: `tensor_%c` has %u axes and needs 3",
                  'a' + i, rank);
        return REL_FAIL;
    }
    rel_rank_in(r->args[0], &rank, &a);
    rel_rank_in(r->args[1], &rank, &b);
    if (!rel_unify_dim(s, r, b[tb ? 2 : 1], a[ta ? 1 : 2], 1, tb ? 2 : 1))
        return REL_FAIL;
    bool open = false;
    Type *out[3] = {batch_dim(s, r, a[0], b[0], 0, &open), a[ta ? 2 : 1], b[tb ? 1 : 2]};
    if (!out[0])
        return REL_FAIL;
    dtype = rel_attr_dtype(r, "out_dtype", dtype);
    if (rel_result(s, r, out, 3, dtype) == REL_FAIL)
        return REL_FAIL;
    return open ? REL_WAIT : REL_DONE;
}

static bool lower_batch_matmul(const OpCall *call, Tensor *const *out, Plan *plan) {
    Mat m;
    if (!batch_mat(call, &m))
        return false;
    mat_plan(plan, &m, MAT_OUT, out[0], false, MAT_LHS, call->in[0],
             attrs_bool(call->attrs, "transpose_a"), MAT_RHS, call->in[1],
             attrs_bool(call->attrs, "transpose_b"));
    return true;
}

static void write_batch_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    (void)nin;
    (void)ranks;
    str_printf(out, "%s, %s", attrs_bool(attrs, "transpose_a") ? "(b~, k, n)" : "(b~, n, k)",
               attrs_bool(attrs, "transpose_b") ? "(b~, m, k)" : "(b~, k, m)");
}

static const RelDef rel_batch_matmul = {"BatchMatMul", relate_batch_matmul, 3, false};
static const AttrSpec batch_matmul_attrs[] = {
    {"out_dtype", AT_DTYPE, "None", "of the result; None: that of the arguments"},
    {"transpose_a", AT_BOOL, "False", "tensor_a is (b, k, n)"},
    {"transpose_b", AT_BOOL, "False", "tensor_b is (b, m, k)"},
};
const Op op_nn_batch_matmul = {
    .name = "nn.batch_matmul",
    .args = "tensor_a, tensor_b",
    .nargs = 2,
    .write_sizes = write_batch_sizes,
    .attrs = batch_matmul_attrs,
    .nattrs = 3,
    .relation = &rel_batch_matmul,
    .dtypes = DTS_NUM,
    .pattern = OP_PRODUCT,
    .shape = shape_batch_matmul,
    .lower = lower_batch_matmul,
    .doc =
        "One matrix product for each batch: (b, n, k) and (b, k, m) give (b, n, m). A batch of 1\n"
        "serves all.",
    .example = "nn.batch_matmul([[[1, 2]]], [[[3], [4]], [[5], [6]]])",
    .example_result = "[[[11]],\n [[17]]] : Tensor[(2, 1, 1), int32]",
    .see_also = "matmul, nn.dense",
};
