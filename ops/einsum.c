/* SPDX-License-Identifier: Apache-2.0 */
/* einsum: NumPy's summation by names. `ij,jk->ik`: an axis for each letter, the letters that do not
 * stand after the arrow are summed over; without an arrow those that stand once remain, in
 * alphabetical order. `...` are the remaining axes, which broadcast. */
#include <string.h>

#include "base/mem.h"
#include "ops/structured.h"

enum { EINSUM_MAX_INPUTS = 16, EINSUM_LABELS = 52 + TENSOR_MAX_RANK };

/* Labels 0..51 are letters, 52 + i the i-th axis of the ellipsis counted from the right. */
typedef struct Einsum {
    int ninputs;
    int naxes[EINSUM_MAX_INPUTS + 1],
        labels[EINSUM_MAX_INPUTS + 1][TENSOR_MAX_RANK]; /* last: result */
} Einsum;

static int letter(char c) {
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return -1;
}

/* One term of the equation. rank < 0: not known (the result's); ellipsis axes: `dots`. */
static const char *einsum_term(const char **text, int dots, int *n, int *labels) {
    const char *p = *text;
    bool had = false;
    *n = 0;
    for (; *p && *p != ',' && strncmp(p, "->", 2); p++) {
        if (*p == ' ')
            continue;
        if (!strncmp(p, "...", 3)) {
            if (had)
                return "has two ellipses in one term";
            if (*n + dots > TENSOR_MAX_RANK)
                return "has a term with too many axes";
            had = true;
            for (int i = dots - 1; i >= 0; i--)
                labels[(*n)++] = 52 + i;
            p += 2;
            continue;
        }
        int l = letter(*p);
        if (l < 0)
            return "has a character that is no letter";
        if (*n == TENSOR_MAX_RANK)
            return "has a term with too many axes";
        labels[(*n)++] = l;
    }
    *text = p;
    return NULL;
}

static int term_letters(const char *p, bool *ellipsis) {
    int n = 0;
    *ellipsis = false;
    for (; *p && *p != ',' && strncmp(p, "->", 2); p++) {
        n += letter(*p) >= 0;
        *ellipsis |= *p == '.';
    }
    return n;
}

static const char *einsum_parse(const char *equation, int ninputs, const int *ranks, Einsum *e) {
    int most = 0, count[EINSUM_LABELS] = {0};
    const char *p = equation, *problem;
    if (ninputs > EINSUM_MAX_INPUTS || ninputs < 1)
        return "takes 1 to 16 tensors";
    e->ninputs = ninputs;
    for (int i = 0; i < ninputs; i++) {
        bool ellipsis;
        int dots = ranks[i] - term_letters(p, &ellipsis);
        if (dots < 0 || (dots > 0 && !ellipsis))
            return "has a term that does not name each axis of its tensor";
        if (dots > most)
            most = dots;
        problem = einsum_term(&p, dots, &e->naxes[i], e->labels[i]);
        if (problem)
            return problem;
        for (int j = 0; j < e->naxes[i]; j++)
            count[e->labels[i][j]]++;
        if (i + 1 < ninputs && *p++ != ',')
            return "has fewer terms than tensors";
    }
    if (*p == ',')
        return "has more terms than tensors";
    int *n = &e->naxes[ninputs], *out = e->labels[ninputs];
    if (*p) {
        p += 2;
        problem = einsum_term(&p, most, n, out);
        if (problem)
            return problem;
        if (*p)
            return "has something after the result";
        for (int i = 0; i < *n; i++) {
            if (!count[out[i]])
                return "has a letter in the result that is in no term";
            for (int j = 0; j < i; j++)
                if (out[i] == out[j])
                    return "has a letter twice in the result";
        }
        return NULL;
    }
    *n = 0;
    for (int i = most - 1; i >= 0; i--)
        out[(*n)++] = 52 + i;
    for (int l = 0; l < 52; l++) {
        if (count[l] != 1)
            continue;
        if (*n == TENSOR_MAX_RANK)
            return "has a result with too many axes";
        out[(*n)++] = l;
    }
    return NULL;
}

/* The size of each label, -1 where it does not occur. */
static bool einsum_sizes(const OpCall *call, Einsum *e, int64_t *sizes) {
    int ranks[EINSUM_MAX_INPUTS];
    for (uint32_t i = 0; i < call->nin && i < EINSUM_MAX_INPUTS; i++)
        ranks[i] = call->in[i]->rank;
    const char *problem =
        einsum_parse(attrs_text(call->attrs, "equation"), (int)call->nin, ranks, e);
    if (problem) {
        shape_error(call, DIAG_R0316, "the equation \"%s\" %s", attrs_text(call->attrs, "equation"),
                    problem);
        return false;
    }
    for (int l = 0; l < EINSUM_LABELS; l++)
        sizes[l] = -1;
    for (int i = 0; i < e->ninputs; i++) {
        if (!shape_check_same_dtype(call, 0, i))
            return false;
        for (int j = 0; j < e->naxes[i]; j++) {
            int64_t *size = &sizes[e->labels[i][j]], n = call->in[i]->shape[j];
            if (*size < 0 || *size == 1)
                *size = n;
            if (n == *size || n == 1)
                continue;
            shape_error(call, DIAG_R0314,
                        "axis %d of tensor %d has size %lld, where its letter has %lld", j, i + 1,
                        (long long)n, (long long)*size);
            return false;
        }
    }
    return true;
}

static int shape_einsum(const OpCall *call, OutSpec *out) {
    Einsum e;
    int64_t sizes[EINSUM_LABELS], dims[TENSOR_MAX_RANK];
    if (!einsum_sizes(call, &e, sizes))
        return -1;
    int n = e.naxes[e.ninputs];
    for (int i = 0; i < n; i++)
        dims[i] = sizes[e.labels[e.ninputs][i]];
    return shape_set(call, out, call->in[0]->dtype, n, dims) ? 1 : -1;
}

static RelStatus relate_einsum(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM}, &status))
        return status;
    uint32_t n, rank;
    int ranks[EINSUM_MAX_INPUTS];
    Type **parts, **dims, *sizes[EINSUM_LABELS] = {0};
    Einsum e;
    rel_parts(r, 0, &n, &parts);
    for (uint32_t i = 0; i < n && i < EINSUM_MAX_INPUTS; i++) {
        if (!rel_rank_in(parts[i], &rank, &dims))
            return rel_wait(s, r, rel_dtype_in(parts[0]));
        ranks[i] = (int)rank;
    }
    const char *problem = einsum_parse(attrs_text(r->attrs, "equation"), (int)n, ranks, &e);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`einsum`: the equation \"%s\" %s",
                  attrs_text(r->attrs, "equation"), problem);
        return REL_FAIL;
    }
    for (int i = 0; i < e.ninputs; i++) {
        if (!solver_unify(s, rel_dtype_in(parts[i]), rel_dtype_in(parts[0]))) {
            rel_error(s, r, DIAG_R0311, "`einsum`: the tensors have different dtypes");
            return REL_FAIL;
        }
        rel_rank_in(parts[i], &rank, &dims);
        for (int j = 0; j < e.naxes[i]; j++) {
            Type **size = &sizes[e.labels[i][j]];
            if (!*size || rel_is_one(*size))
                *size = dims[j];
            else if (!rel_is_one(dims[j]) && !rel_unify_dim(s, r, *size, dims[j], 0, j))
                return REL_FAIL;
        }
    }
    Type **out = mem_new_n(Type *, TENSOR_MAX_RANK);
    int nout = e.naxes[e.ninputs];
    for (int i = 0; i < nout; i++)
        out[i] = sizes[e.labels[e.ninputs][i]];
    status = rel_result(s, r, out, (uint32_t)nout, rel_dtype_in(parts[0]));
    return status == REL_FAIL ? status : rel_settled(r);
}

/* The axes of the loop: those of the result, then the summed ones; a stride for each tensor. */
static bool eval_einsum(const OpCall *call, Tensor *const *out) {
    Einsum e;
    int64_t sizes[EINSUM_LABELS], extents[EINSUM_LABELS], place[EINSUM_LABELS] = {0};
    int64_t strides[EINSUM_MAX_INPUTS][EINSUM_LABELS] = {{0}}, at[EINSUM_MAX_INPUTS] = {0};
    int axis_of[EINSUM_LABELS], naxes = 0, nout, n;
    if (!einsum_sizes(call, &e, sizes))
        return false;
    n = e.ninputs;
    nout = e.naxes[n];
    for (int l = 0; l < EINSUM_LABELS; l++)
        axis_of[l] = -1;
    for (int i = 0; i < nout; i++)
        axis_of[e.labels[n][i]] = naxes++;
    for (int l = 0; l < EINSUM_LABELS; l++)
        if (sizes[l] >= 0 && axis_of[l] < 0)
            axis_of[l] = naxes++;
    int64_t inner = 1;
    for (int l = 0; l < EINSUM_LABELS; l++) {
        if (axis_of[l] < 0)
            continue;
        extents[axis_of[l]] = sizes[l];
        if (axis_of[l] >= nout)
            inner *= sizes[l];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < e.naxes[i]; j++)
            if (call->in[i]->shape[j] != 1)
                strides[i][axis_of[e.labels[i][j]]] += call->in[i]->strides[j];
    DType t = out[0]->dtype;
    bool is_float = dtype_is_float(t);
    size_t size = dtype_size(t);
    for (int64_t o = 0; o < out[0]->count; o++) {
        double f = 0;
        uint64_t u = 0;
        for (int64_t k = 0; k < inner; k++) {
            double fp = 1;
            uint64_t up = 1;
            for (int i = 0; i < n; i++) {
                const char *p = (const char *)tensor_data(call->in[i]) + at[i] * (int64_t)size;
                if (is_float)
                    fp *= elem_get_float(p, t);
                else
                    up *= (uint64_t)elem_get_int(p, t);
            }
            f += fp;
            u += up;
            for (int a = naxes - 1; a >= nout; a--) {
                int64_t by = ++place[a] < extents[a] ? 1 : 1 - extents[a];
                for (int i = 0; i < n; i++)
                    at[i] += by * strides[i][a];
                if (by == 1)
                    break;
                place[a] = 0;
            }
        }
        void *q = tensor_at(out[0], o);
        if (is_float)
            elem_set_float(q, t, f);
        else
            elem_set_int(q, t, (int64_t)u);
        for (int a = nout - 1; a >= 0; a--) {
            int64_t by = ++place[a] < extents[a] ? 1 : 1 - extents[a];
            for (int i = 0; i < n; i++)
                at[i] += by * strides[i][a];
            if (by == 1)
                break;
            place[a] = 0;
        }
    }
    return true;
}

static const RelDef rel_einsum = {"Einsum", relate_einsum, 2, false};
static const AttrSpec einsum_attrs[] = {
    {"equation", AT_STRING, NULL, "a letter for each axis: \"ij,jk->ik\""},
};
const Op op_einsum = {
    .name = "einsum",
    .args = "(data)",
    .nargs = 1,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_einsum,
    .eval = eval_einsum,
    .reference_only = "its loops are written in a string; `@@` is compiled",
    .doc =
        "Products of the tensors' elements summed over the letters that are not in the result, as\n"
        "NumPy's einsum. Floats are summed in float64.",
    .example = "einsum(([[1, 2], [3, 4]], [10, 1]), equation=\"ij,j->i\")",
    .example_result = "[12, 34] : Tensor[(2,), int32]",
    .see_also = "matmul, sum, transpose",
};
