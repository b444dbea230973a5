/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that keep the elements and their order, and change the shape: reshape and its kin.
 *
 * TVM's special sizes in `newshape`: 0 copies the size at this place, -1 is inferred, -2 copies all
 * that remain, -3 merges two, -4 splits one into the two that follow. Only written integers are such
 * codes: Note [Sizes are no codes] in types/solve/attrs.h. */
#include <string.h>

#include "base/mem.h"
#include "ops/relate/solve.h"

static bool lower_relayout(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_relayout(plan, out[0], call->in[0]);
    return true;
}

/* ---- reshape --------------------------------------------------------------------------------- */

/* What stands at one place of `newshape`. A size that is a type counts as 1 while it is not known. */
typedef struct NewSize {
    int64_t value;
    bool is_size;  /* it is no code, whatever its value is */
    bool computed; /* and it was computed while running */
} NewSize;

enum { MAX_NEW_SIZES = TENSOR_MAX_RANK + 8 };

/* One algorithm for sizes that are numbers and sizes that are types: a size is an index into
 * the source, a product of two, or a number. */
typedef struct ReshapePlan {
    int rank;
    struct {
        int from, n, at; /* n source dims from `from`; its place in newshape */
        int64_t value;   /* n = 0: the size, -1: inferred */
    } dims[TENSOR_MAX_RANK];
    int nsplit;
    struct {
        int source, first;
    } splits[TENSOR_MAX_RANK]; /* dims first, first + 1 make source */
    int infer;                 /* the dim that is inferred outside of splits, or -1 */
    bool has_empty;            /* one of the sizes that were computed is 0 */
    const char *problem;
} ReshapePlan;

static bool reshape_fail(ReshapePlan *p, const char *problem) {
    p->problem = problem;
    return false;
}

/* Whether this may be one of the two sizes after -4. */
static bool is_part_of_split(NewSize v) { return v.is_size || v.value > 0 || v.value == -1; }

static bool is_inferred(NewSize v) { return !v.is_size && v.value == -1; }

static bool reshape_plan(ReshapePlan *p, int rank, const NewSize *spec, int n, bool allowzero) {
    memset(p, 0, sizeof *p);
    p->infer = -1;
    int src = 0;
    for (int i = 0; i < n; i++) {
        int64_t v = spec[i].value;
        if (spec[i].is_size && v < 0)
            return reshape_fail(p, "holds a negative size");
        if (p->rank >= TENSOR_MAX_RANK)
            return reshape_fail(p, "names too many axes");
        p->dims[p->rank].at = i;
        if (v > 0 || spec[i].is_size || (v == 0 && allowzero)) {
            p->dims[p->rank++].value = v;
            p->has_empty |= v == 0 && spec[i].computed;
            src++;
        } else if (v == 0) {
            if (src >= rank)
                return reshape_fail(p, "copies (0) an axis that is not there");
            p->dims[p->rank].from = src++;
            p->dims[p->rank++].n = 1;
        } else if (v == -1) {
            if (p->infer >= 0)
                return reshape_fail(p, "has more than one -1");
            p->infer = p->rank;
            p->dims[p->rank++].value = -1;
            src++;
        } else if (v == -2) {
            for (; src < rank; src++) {
                if (p->rank >= TENSOR_MAX_RANK)
                    return reshape_fail(p, "names too many axes");
                p->dims[p->rank].from = src;
                p->dims[p->rank++].n = 1;
            }
        } else if (v == -3) {
            if (src + 1 >= rank)
                return reshape_fail(p, "merges (-3) axes that are not there");
            p->dims[p->rank].from = src;
            p->dims[p->rank++].n = 2;
            src += 2;
        } else if (v == -4) {
            if (i + 2 >= n || src >= rank || p->rank + 2 > TENSOR_MAX_RANK)
                return reshape_fail(p, "splits (-4) an axis and needs two sizes after it");
            NewSize a = spec[i + 1], b = spec[i + 2];
            if (!is_part_of_split(a) || !is_part_of_split(b) || (is_inferred(a) && is_inferred(b)))
                return reshape_fail(p, "splits (-4) into two sizes of which one may be -1");
            p->splits[p->nsplit].source = src++;
            p->splits[p->nsplit++].first = p->rank;
            p->dims[p->rank++].value = a.value;
            p->dims[p->rank].at = i + 2;
            p->dims[p->rank++].value = b.value;
            p->dims[p->rank - 2].at = i + 1;
            i += 2;
        } else {
            return reshape_fail(p, "has a size below -4");
        }
    }
    return true;
}

/* The sizes and codes of a call, all known. -1: they are not, or there are too many. */
static int reshape_spec(const Attrs *attrs, NewSize *spec) {
    const AttrValue *v = attrs_get(attrs, "newshape");
    if (v->kind != ATTR_LIST || v->list.n > MAX_NEW_SIZES)
        return -1;
    for (uint32_t i = 0; i < v->list.n; i++) {
        const AttrValue *item = &v->list.items[i];
        spec[i] = (NewSize){item->i, item->is_size, item->computed};
        if (item->kind == ATTR_DIM && type_get_int(item->dim, &spec[i].value))
            spec[i].is_size = true;
        else if (item->kind != ATTR_INT)
            return -1;
    }
    return (int)v->list.n;
}

/* contrib_reverse_reshape reads source and newshape from the right. */
static void reverse_ints(int64_t *v, int n) {
    for (int i = 0; i < n / 2; i++) {
        int64_t t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

static void reverse_spec(NewSize *v, int n) {
    for (int i = 0; i < n / 2; i++) {
        NewSize t = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = t;
    }
}

/* The special sizes are read from the left, or from the right. */
enum { FROM_LEFT, FROM_RIGHT };

/* The size -1: what is left of the elements, where copied sizes cancel, so that it does not depend on
 * them when they are 0. */
static bool infer_size(const ReshapePlan *p, const Tensor *x, const int64_t *source,
                       int64_t *dims) {
    int64_t total = 1, known = 1, all = 1;
    uint32_t copied = 0;
    for (int i = 0; i < p->nsplit; i++)
        copied |= 1u << p->splits[i].source;
    for (int i = 0; i < p->rank; i++) {
        bool split = false;
        for (int k = 0; k < p->nsplit; k++)
            split |= i == p->splits[k].first || i == p->splits[k].first + 1;
        for (int k = 0; k < p->dims[i].n; k++)
            copied |= 1u << (p->dims[i].from + k);
        if (i == p->infer)
            continue;
        bool fits = !__builtin_mul_overflow(all, dims[i], &all);
        if (p->dims[i].n == 0 && !split)
            fits = fits && !__builtin_mul_overflow(known, dims[i], &known);
        if (!fits)
            return false;
    }
    for (int i = 0; i < x->rank; i++)
        if (!(copied >> i & 1) && __builtin_mul_overflow(total, source[i], &total))
            return false;
    if (known == 0 ? x->count != 0 : all != 0 && total % known != 0)
        return false;
    dims[p->infer] = known == 0 ? 0 : total / known;
    return true;
}

/* The other size where -4 splits an axis of size d and one is `part`, or -1 where there is none. */
static int64_t split_rest(int64_t d, int64_t part) {
    if (part == 0)
        return d == 0 ? 0 : -1;
    return d % part == 0 ? d / part : -1;
}

/* Both shapes with their elements, which are not as many. A size -1 is to be inferred. */
static void add_counts(Diag *d, const Tensor *x, int rank, const int64_t *dims) {
    int64_t known = 1;
    bool inferred = false;
    for (int i = 0; i < rank; i++) {
        inferred |= dims[i] == -1;
        if (dims[i] != -1 && __builtin_mul_overflow(known, dims[i], &known))
            return;
    }
    Str have = {0}, want = {0};
    str_printf(&have, "data      %s", shape_text(x->rank, x->shape));
    str_printf(&want, "newshape  %s", shape_text(rank, dims));
    size_t column = (have.len > want.len ? have.len : want.len) + 3;
    str_pad(&have, column);
    str_pad(&want, column);
    diag_add_fact(d, "%s%lld element%s\n%s%s%lld element%s", str_text(&have), (long long)x->count,
                  x->count == 1 ? "" : "s", str_text(&want), inferred ? "a multiple of " : "",
                  (long long)known, known == 1 ? "" : "s");
}

static int shape_reshape(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int64_t source[TENSOR_MAX_RANK], dims[TENSOR_MAX_RANK];
    NewSize spec[MAX_NEW_SIZES];
    int n = reshape_spec(call->attrs, spec);
    if (n < 0) {
        shape_error(call, DIAG_R0316, "newshape must be a list of at most %d known sizes",
                    TENSOR_MAX_RANK);
        return -1;
    }
    memcpy(source, x->shape, sizeof(int64_t) * (size_t)x->rank);
    if (call->op->variant == FROM_RIGHT) {
        reverse_spec(spec, n);
        reverse_ints(source, x->rank);
    }
    ReshapePlan p;
    if (!reshape_plan(&p, x->rank, spec, n, attrs_bool(call->attrs, "allowzero"))) {
        shape_error(call, DIAG_R0316, "newshape %s", p.problem);
        return -1;
    }
    for (int i = 0; i < p.rank; i++) {
        dims[i] = p.dims[i].value;
        if (p.dims[i].n == 1)
            dims[i] = source[p.dims[i].from];
        if (p.dims[i].n == 2)
            dims[i] = source[p.dims[i].from] * source[p.dims[i].from + 1];
    }
    for (int i = 0; i < p.nsplit; i++) {
        int64_t d = source[p.splits[i].source], *a = &dims[p.splits[i].first], *b = a + 1;
        if (*a == -1 && split_rest(d, *b) >= 0)
            *a = split_rest(d, *b);
        if (*b == -1 && split_rest(d, *a) >= 0)
            *b = split_rest(d, *a);
        if (*a < 0 || *b < 0 || *a * *b != d) {
            shape_error(call, DIAG_R0316, "newshape cannot split axis %d of size %lld so",
                        p.splits[i].source, (long long)d);
            return -1;
        }
    }
    /* Where a computed size is 0, the elements do not say what -1 is. The type says it where it can (inferred_size in
     * types/infer/settle.c), and then no -1 is left. */
    if (p.infer >= 0 && p.has_empty) {
        shape_error(call, DIAG_R0316, "newshape has a size 0, so nothing says what -1 stands for");
        return -1;
    }
    if (p.infer >= 0 && !infer_size(&p, x, source, dims)) {
        add_counts(shape_error(call, DIAG_R0316, "%lld elements do not fill %s",
                               (long long)x->count, shape_text(p.rank, dims)),
                   x, p.rank, dims);
        return -1;
    }
    int64_t known = 1;
    for (int i = 0; i < p.rank; i++)
        if (__builtin_mul_overflow(known, dims[i], &known))
            known = -1;
    if (call->op->variant == FROM_RIGHT)
        reverse_ints(dims, p.rank);
    if (known != x->count) {
        Diag *d = shape_error(call, DIAG_R0316, "%lld elements of shape %s do not fill shape %s",
                              (long long)x->count, shape_text(x->rank, x->shape),
                              shape_text(p.rank, dims));
        add_counts(d, x, p.rank, dims);
        return -1;
    }
    return shape_set(call, out, x->dtype, p.rank, dims) ? 1 : -1;
}

/* total / known, where equal factors on both sides cancel. */
static Type *infer_dim(Solver *s, Relation *r, uint32_t nsource, Type **source, uint32_t nknown,
                       Type **known) {
    Type **left = rel_copy_dims(nsource, source, 0);
    uint32_t nleft = nsource, nrest = 0;
    Type **rest = mem_new_n(Type *, nknown + 1);
    for (uint32_t i = 0; i < nknown; i++) {
        uint32_t j = 0;
        while (j < nleft && dim_compare(left[j], known[i]) != DIM_EQUAL)
            j++;
        if (j < nleft)
            left[j] = left[--nleft];
        else
            rest[nrest++] = known[i];
    }
    Type *total = rel_product(r, nleft, left);
    return nrest ? rel_quotient(s, total, rel_product(r, nrest, rest)) : total;
}

static void reverse_dims(Type **dims, uint32_t n) {
    for (uint32_t i = 0; i < n / 2; i++) {
        Type *t = dims[i];
        dims[i] = dims[n - 1 - i];
        dims[n - 1 - i] = t;
    }
}

typedef struct RankOfReshaped {
    const NewSize *spec;
    int n, result;
    bool allowzero;
} RankOfReshaped;

static bool is_rank_of_reshaped(void *ctx, int rank) {
    const RankOfReshaped *c = ctx;
    ReshapePlan p;
    return reshape_plan(&p, rank, c->spec, c->n, c->allowzero) && p.rank == c->result;
}

/* As many elements as the result. */
static bool filled(Solver *s, Relation *r, uint32_t rank, Type **dims) {
    uint32_t n;
    Type **of_result;
    return !rel_rank_in(rel_result_arg(r), &n, &of_result) ||
           rel_fill(s, r, 0, rank, dims, n, of_result);
}

/* newshape may hold sizes that are types. */
static RelStatus relate_reshape(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    const AttrValue *v = attrs_get(r->attrs, "newshape");
    if (v->kind != ATTR_LIST)
        return REL_WAIT;
    NewSize spec[MAX_NEW_SIZES];
    Type *sizes[MAX_NEW_SIZES] = {0};
    int n = 0;
    bool special = false, allowzero = attrs_bool(r->attrs, "allowzero");
    for (uint32_t i = 0; i < v->list.n && n < MAX_NEW_SIZES; i++, n++) {
        const AttrValue *item = &v->list.items[i];
        spec[n] = item->kind == ATTR_INT ? (NewSize){item->i, item->is_size, item->computed}
                                         : (NewSize){1, true, false};
        if (item->kind == ATTR_DIM)
            sizes[n] = item->dim;
        special |= !spec[n].is_size && spec[n].value < -1;
        special |= !spec[n].is_size && spec[n].value == 0 && !allowzero;
    }
    uint32_t rank = 0, nout;
    Type **source = NULL, **outs, *dtype = rel_dtype_in(r->args[0]);
    bool reverse = r->op->variant == FROM_RIGHT;
    if (reverse) {
        reverse_spec(spec, n);
        reverse_dims(sizes, (uint32_t)n);
    }
    if (rel_rank_in(rel_result_arg(r), &nout, &outs)) {
        RankOfReshaped c = {spec, n, (int)nout, allowzero};
        if (!rel_only_rank(s, r, 0, is_rank_of_reshaped, &c))
            return REL_FAIL;
    }
    bool ranked = rel_rank_in(r->args[0], &rank, &source);
    if (!ranked && special)
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    source = rel_copy_dims(rank, source, 0);
    if (reverse)
        reverse_dims(source, rank);
    ReshapePlan p;
    if (!reshape_plan(&p, (int)rank, spec, n, allowzero)) {
        rel_error(s, r, DIAG_R0316, "`%s`: newshape %s", r->op->name, p.problem);
        return REL_FAIL;
    }
    Type **dims = mem_new_n(Type *, p.rank + 1);
    for (int i = 0; i < p.rank; i++) {
        Type *size = sizes[p.dims[i].at];
        if (p.dims[i].n)
            dims[i] = rel_product(r, (uint32_t)p.dims[i].n, source + p.dims[i].from);
        else if (p.dims[i].value >= 0)
            dims[i] = size      ? size
                      : reverse ? rel_int_dim(r, p.dims[i].value)
                                : type_dim_int(
                                      p.dims[i].value,
                                      rel_attr_origin(r, "newshape", &v->list.items[p.dims[i].at]));
    }
    for (int i = 0; i < p.nsplit; i++) {
        int first = p.splits[i].first;
        for (int j = 0; j < 2; j++)
            if (!dims[first + j])
                dims[first + j] = rel_quotient(s, source[p.splits[i].source], dims[first + 1 - j]);
    }
    if (p.infer >= 0) {
        Type **known = mem_new_n(Type *, p.rank + 1);
        uint32_t nknown = 0;
        bool none = false; /* a size 0 is asked for */
        for (int i = 0; i < p.rank; i++) {
            int64_t d;
            if (i == p.infer)
                continue;
            known[nknown++] = dims[i];
            none |= p.dims[i].n == 0 && type_get_int(type_resolve(dims[i]), &d) && d == 0;
        }
        dims[p.infer] = none     ? rel_int_dim(r, 0)
                        : ranked ? infer_dim(s, r, rank, source, nknown, known)
                                 : solver_var(s, KIND_DIM);
    } else if (ranked && dim_compare(rel_product(r, rank, source),
                                     rel_product(r, (uint32_t)p.rank, dims)) == DIM_DIFFERENT) {
        rel_error(s, r, DIAG_R0316, "`%s`: the elements of %s do not fill the new shape",
                  r->op->name, type_text(r->args[0]));
        return REL_FAIL;
    }
    if (!ranked && p.infer >= 0)
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if (reverse)
        reverse_dims(dims, (uint32_t)p.rank);
    status = rel_result(s, r, dims, (uint32_t)p.rank, dtype);
    if (status == REL_FAIL || (ranked && !filled(s, r, rank, source)))
        return REL_FAIL;
    return rel_settled(r);
}

static const RelDef rel_reshape = {"Reshape", relate_reshape, 2, false};
static const RelDef rel_reverse_reshape = {"ReverseReshape", relate_reshape, 2, false};
static const AttrSpec reshape_attrs[] = {
    {"newshape", AT_DIMS, NULL,
     "the new sizes; 0 copies one, -1 is inferred, -2 copies the rest, "
     "-3 merges two, -4 splits one into the next two"},
    {"allowzero", AT_BOOL, "False", "0 is the size 0 and copies nothing"},
};

const Op op_reshape = {
    .name = "reshape",
    .args = "data",
    .nargs = 1,
    .attrs = reshape_attrs,
    .nattrs = 2,
    .relation = &rel_reshape,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = FROM_LEFT,
    .shape = shape_reshape,
    .refuses_sizes = true,
    .lower = lower_relayout,
    .doc = "The same elements in another shape, in row-major order.\n"
           "At most one size may be -1: what is left over.",
    .example = "reshape([1, 2, 3, 4], newshape=[2, -1])",
    .example_result = "[[1, 2],\n [3, 4]] : Tensor[(2, 2), int32]",
    .see_also = "reshape_like, squeeze, expand_dims",
};
const Op op_contrib_reverse_reshape = {
    .name = "contrib_reverse_reshape",
    .args = "data",
    .nargs = 1,
    .attrs = reshape_attrs,
    .nattrs = 2,
    .relation = &rel_reverse_reshape,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .variant = FROM_RIGHT,
    .shape = shape_reshape,
    .refuses_sizes = true,
    .lower = lower_relayout,
    .doc = "As reshape, reading the special sizes from the right.",
    .example = "contrib_reverse_reshape([[[1, 2]], [[3, 4]]], newshape=[-1, 0])",
    .example_result = "[[1, 2],\n [3, 4]] : Tensor[(2, 2), int32]",
    .see_also = "reshape",
};

/* ---- reshape_like ---------------------------------------------------------------------------- */

/* lhs_begin .. lhs_end of data's axes become rhs_begin .. rhs_end of the other's. */
static bool like_range(const Attrs *attrs, const char *begin, const char *end, int rank, int *b,
                       int *e) {
    int64_t x = attrs_int(attrs, begin);
    int64_t y = attrs_is_none(attrs, end) ? rank : attrs_int(attrs, end);
    if (x < 0)
        x += rank;
    if (y < 0)
        y += rank;
    *b = (int)x;
    *e = (int)y;
    return x >= 0 && y >= x && y <= rank;
}

static int shape_reshape_like(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0], *y = call->in[1];
    int lb, le, rb, re, rank = 0;
    if (!like_range(call->attrs, "lhs_begin", "lhs_end", x->rank, &lb, &le) ||
        !like_range(call->attrs, "rhs_begin", "rhs_end", y->rank, &rb, &re) ||
        lb + (re - rb) + (x->rank - le) > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, "the axes to replace do not exist");
        return -1;
    }
    int64_t dims[TENSOR_MAX_RANK], count = 1;
    for (int i = 0; i < lb; i++)
        dims[rank++] = x->shape[i];
    for (int i = rb; i < re; i++)
        dims[rank++] = y->shape[i];
    for (int i = le; i < x->rank; i++)
        dims[rank++] = x->shape[i];
    for (int i = 0; i < rank; i++)
        count = size_multiply(count, dims[i]);
    if (count != x->count) {
        shape_error(call, DIAG_R0316, "%lld elements of shape %s do not fill shape %s",
                    (long long)x->count, shape_text(x->rank, x->shape), shape_text(rank, dims));
        return -1;
    }
    return shape_set(call, out, x->dtype, rank, dims) ? 1 : -1;
}

typedef struct RankOfLike {
    const Attrs *attrs;
    int data, like, result; /* the one that is sought is -1 */
} RankOfLike;

static bool is_rank_of_like(void *ctx, int rank) {
    const RankOfLike *c = ctx;
    int lb, le, rb, re, nx = c->data < 0 ? rank : c->data, ny = c->like < 0 ? rank : c->like;
    return like_range(c->attrs, "lhs_begin", "lhs_end", nx, &lb, &le) &&
           like_range(c->attrs, "rhs_begin", "rhs_end", ny, &rb, &re) &&
           lb + (re - rb) + (nx - le) == c->result;
}

/* Two of the three ranks may tell the third. */
static bool like_ranks(Solver *s, Relation *r) {
    uint32_t nx, ny, nr;
    Type **dims;
    bool has_x = rel_rank_in(r->args[0], &nx, &dims), has_y = rel_rank_in(r->args[1], &ny, &dims);
    if (has_x == has_y || !rel_rank_in(rel_result_arg(r), &nr, &dims))
        return true;
    RankOfLike c = {r->attrs, has_x ? (int)nx : -1, has_y ? (int)ny : -1, (int)nr};
    return rel_only_rank(s, r, has_x ? 1 : 0, is_rank_of_like, &c);
}

static RelStatus relate_reshape_like(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_ALL}, &status))
        return status;
    uint32_t nx, ny, n = 0;
    Type **x, **y;
    int lb, le, rb, re;
    bool whole = attrs_int(r->attrs, "lhs_begin") == 0 && attrs_is_none(r->attrs, "lhs_end") &&
                 attrs_int(r->attrs, "rhs_begin") == 0 && attrs_is_none(r->attrs, "rhs_end");
    if (whole) {
        status = rel_result_type(s, r,
                                 type_tensor(rel_shape_in(r->args[1]), rel_dtype_in(r->args[0])));
        if (status == REL_FAIL || (rel_rank_in(r->args[0], &nx, &x) && !filled(s, r, nx, x)))
            return REL_FAIL;
        return rel_settled(r);
    }
    if (!like_ranks(s, r))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &nx, &x) || !rel_rank_in(r->args[1], &ny, &y))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if (!like_range(r->attrs, "lhs_begin", "lhs_end", (int)nx, &lb, &le) ||
        !like_range(r->attrs, "rhs_begin", "rhs_end", (int)ny, &rb, &re)) {
        rel_error(s, r, DIAG_R0316, "`%s`: the axes to replace do not exist", r->op->name);
        return REL_FAIL;
    }
    Type **dims = mem_new_n(Type *, nx + ny + 1);
    for (int i = 0; i < lb; i++)
        dims[n++] = x[i];
    for (int i = rb; i < re; i++)
        dims[n++] = y[i];
    for (uint32_t i = (uint32_t)le; i < nx; i++)
        dims[n++] = x[i];
    if (rel_result(s, r, dims, n, rel_dtype_in(r->args[0])) == REL_FAIL ||
        !rel_fill(s, r, 0, nx, x, n, dims) || !rel_fill(s, r, 1, n, dims, nx, x))
        return REL_FAIL;
    return rel_settled(r);
}

static const RelDef rel_reshape_like = {"ReshapeLike", relate_reshape_like, 3, false};
static const AttrSpec reshape_like_attrs[] = {
    {"lhs_begin", AT_INT, "0", "first axis of data to replace"},
    {"lhs_end", AT_INT_OPT, "None", "axis after the last to replace"},
    {"rhs_begin", AT_INT, "0", "first axis of shape_like to take"},
    {"rhs_end", AT_INT_OPT, "None", "axis after the last to take"},
};
const Op op_reshape_like = {
    .name = "reshape_like",
    .args = "data, shape_like",
    .nargs = 2,
    .attrs = reshape_like_attrs,
    .nattrs = 4,
    .relation = &rel_reshape_like,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .scalar = OP_SCALAR_SELF,
    .shape = shape_reshape_like,
    .refuses_sizes = true,
    .lower = lower_relayout,
    .doc = "data's elements in the shape of shape_like, or with some axes taken from it.",
    .example = "reshape_like([1, 2, 3, 4], [[0.0, 0.0], [0.0, 0.0]])",
    .example_result = "[[1, 2],\n [3, 4]] : Tensor[(2, 2), int32]",
    .see_also = "reshape",
};

/* ---- expand_dims, squeeze, nn.batch_flatten -------------------------------------------------- */

static int shape_expand_dims(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int64_t n = attrs_int(call->attrs, "num_newaxis"), dims[TENSOR_MAX_RANK];
    int axis;
    if (n < 0 || x->rank + n > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0316, "num_newaxis=%lld: a tensor has at most %d axes",
                    (long long)n, TENSOR_MAX_RANK);
        return -1;
    }
    if (!shape_one_axis(call, "axis", x->rank + 1, &axis))
        return -1;
    for (int i = 0; i < x->rank; i++)
        dims[i < axis ? i : i + n] = x->shape[i];
    for (int i = 0; i < n; i++)
        dims[axis + i] = 1;
    return shape_set(call, out, x->dtype, x->rank + (int)n, dims) ? 1 : -1;
}

static RelStatus relate_expand_dims(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axis, n = (uint32_t)attrs_int(r->attrs, "num_newaxis");
    Type **dims;
    if (n <= TENSOR_MAX_RANK && !rel_rank_of_result(s, r, 0, -(int)n))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims) || n > TENSOR_MAX_RANK)
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    if (!rel_one_axis(s, r, "axis", rank + 1, &axis))
        return REL_FAIL;
    Type **out = mem_new_n(Type *, rank + n + 1);
    for (uint32_t i = 0; i < rank; i++)
        out[i < axis ? i : i + n] = dims[i];
    for (uint32_t i = 0; i < n; i++)
        out[axis + i] = rel_int_dim(r, 1);
    status = rel_result(s, r, out, rank + n, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static const RelDef rel_expand_dims = {"ExpandDims", relate_expand_dims, 2, false};
static const AttrSpec expand_dims_attrs[] = {
    {"axis", AT_INT, NULL, "where the new axis goes: it is the new axis's own number"},
    {"num_newaxis", AT_INT, "1", "how many"},
};
const Op op_expand_dims = {
    .name = "expand_dims",
    .args = "data",
    .nargs = 1,
    .attrs = expand_dims_attrs,
    .nattrs = 2,
    .relation = &rel_expand_dims,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_expand_dims,
    .lower = lower_relayout,
    .doc = "New axes of size 1.",
    .example = "expand_dims([1, 2], axis=1)",
    .example_result = "[[1],\n [2]] : Tensor[(2, 1), int32]",
    .see_also = "squeeze, reshape",
};

static int shape_squeeze(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    int64_t dims[TENSOR_MAX_RANK];
    uint32_t axes = 0;
    int rank = 0;
    if (attrs_is_none(call->attrs, "axis")) {
        for (int i = 0; i < x->rank; i++)
            if (x->shape[i] == 1)
                axes |= 1u << i;
    } else if (!shape_axis_set(call, "axis", false, x->rank, &axes)) {
        return -1;
    }
    for (int i = 0; i < x->rank; i++) {
        if (!(axes >> i & 1)) {
            dims[rank++] = x->shape[i];
        } else if (x->shape[i] != 1) {
            shape_error(call, DIAG_R0316, "axis %d of `data` has size %lld; only size 1 goes away",
                        i, (long long)x->shape[i]);
            return -1;
        }
    }
    return shape_set(call, out, x->dtype, rank, dims) ? 1 : -1;
}

static RelStatus relate_squeeze(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank, axes = 0, n = 0;
    Type **dims;
    bool all = attrs_is_none(r->attrs, "axis");
    if (!all && !rel_rank_of_result(s, r, 0, (int)attrs_get(r->attrs, "axis")->list.n))
        return REL_FAIL;
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait(s, r, rel_dtype_in(r->args[0]));
    Type **out = mem_new_n(Type *, rank + 1);
    if (!all && !rel_axis_set(s, r, "axis", false, rank, &axes))
        return REL_FAIL;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t d;
        if (all) {
            if (type_get_int(type_resolve(dims[i]), &d)) {
                if (d != 1)
                    out[n++] = dims[i];
                continue;
            }
            return rel_dim_open(dims[i]) ? rel_wait(s, r, rel_dtype_in(r->args[0]))
                                         : rel_unknown_rank(s, r, rel_dtype_in(r->args[0]));
        }
        if (!(axes >> i & 1))
            out[n++] = dims[i];
        else if (!rel_unify_dim(s, r, dims[i], rel_int_dim(r, 1), 0, (int)i))
            return REL_FAIL;
    }
    status = rel_result(s, r, out, n, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static const RelDef rel_squeeze = {"Squeeze", relate_squeeze, 2, false};
static const AttrSpec squeeze_attrs[] = {
    {"axis", AT_INTS_OPT, "None", "axes of size 1 to remove; None: all of them"},
};
const Op op_squeeze = {
    .name = "squeeze",
    .args = "data",
    .nargs = 1,
    .attrs = squeeze_attrs,
    .nattrs = 1,
    .relation = &rel_squeeze,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_squeeze,
    .lower = lower_relayout,
    .doc = "Axes of size 1 removed.",
    .example = "squeeze([[[1], [2]]], axis=[0])",
    .example_result = "[[1],\n [2]] : Tensor[(2, 1), int32]",
    .see_also = "expand_dims",
};

static int shape_batch_flatten(const OpCall *call, OutSpec *out) {
    const Tensor *x = call->in[0];
    if (!shape_check_min_rank(call, 0, 1))
        return -1;
    int64_t dims[2] = {x->shape[0], 1};
    for (int i = 1; i < x->rank; i++)
        dims[1] = size_multiply(dims[1], x->shape[i]);
    return shape_set(call, out, x->dtype, 2, dims) ? 1 : -1;
}

static RelStatus relate_batch_flatten(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL}, &status))
        return status;
    uint32_t rank;
    Type **dims, *out[2];
    if (!rel_rank_in(r->args[0], &rank, &dims))
        return rel_wait_rank(s, r, 2, rel_dtype_in(r->args[0]));
    if (rank == 0)
        BUG("the shape of a scalar is known, and its refusal");
    out[0] = dims[0];
    out[1] = rel_product(r, rank - 1, dims + 1);
    status = rel_result(s, r, out, 2, rel_dtype_in(r->args[0]));
    return status == REL_FAIL ? status : REL_DONE;
}

static const RelDef rel_batch_flatten = {"BatchFlatten", relate_batch_flatten, 2, false};
const Op op_nn_batch_flatten = {
    .name = "nn.batch_flatten",
    .args = "data",
    .nargs = 1,
    .relation = &rel_batch_flatten,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_batch_flatten,
    .lower = lower_relayout,
    .doc = "(n, a, b, …) to (n, a * b * …): all axes but the first merged.",
    .example = "nn.batch_flatten([[[1, 2], [3, 4]]])",
    .example_result = "[[1, 2, 3, 4]] : Tensor[(1, 4), int32]",
    .see_also = "reshape",
};
