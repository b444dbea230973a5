/* SPDX-License-Identifier: Apache-2.0 */
/* einsum: NumPy's summation by names. `ij,jk->ik`: an axis for each letter, the letters that do not
 * stand after the arrow are summed over; without an arrow those that stand once remain, in
 * alphabetical order. `...` are the remaining axes, which broadcast. */
#include "ops/einsum.h"

#include <string.h>

#include "base/mem.h"

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

bool einsum_read(const OpCall *call, uint32_t first, uint32_t n, Einsum *e) {
    int ranks[EINSUM_MAX_INPUTS];
    const char *equation = attrs_text(call->attrs, "equation");
    for (uint32_t i = 0; i < n && i < EINSUM_MAX_INPUTS; i++)
        ranks[i] = call->in[first + i]->rank;
    const char *problem = einsum_parse(equation, (int)n, ranks, e);
    e->call = call;
    if (problem) {
        shape_error(call, DIAG_R0316, "the equation \"%s\" %s", equation, problem);
        return false;
    }
    for (int l = 0; l < EINSUM_LABELS; l++)
        e->sizes[l] = -1;
    for (int i = 0; i < e->ninputs; i++) {
        const Tensor *t = call->in[first + (uint32_t)i];
        if (!shape_check_same_dtype(call, (int)first, (int)first + i))
            return false;
        for (int j = 0; j < e->naxes[i]; j++) {
            int64_t *size = &e->sizes[e->labels[i][j]], d = t->shape[j];
            if (*size < 0 || *size == 1)
                *size = d;
            if (d == *size || d == 1)
                continue;
            shape_error(call, DIAG_R0314,
                        "axis %d of tensor %d has size %lld, where its letter has %lld", j, i + 1,
                        (long long)d, (long long)*size);
            return false;
        }
    }
    return true;
}

int einsum_result(const Einsum *e, int64_t *dims) {
    for (int i = 0; i < e->naxes[e->ninputs]; i++)
        dims[i] = e->sizes[e->labels[e->ninputs][i]];
    return e->naxes[e->ninputs];
}

/* ---- einsum ---------------------------------------------------------------------------------- */

static int shape_einsum(const OpCall *call, OutSpec *out) {
    Einsum e;
    int64_t dims[TENSOR_MAX_RANK];
    if (!einsum_read(call, 0, call->nin, &e))
        return -1;
    int rank = einsum_result(&e, dims);
    return shape_set(call, out, call->in[0]->dtype, rank, dims) ? 1 : -1;
}

/* A term without an ellipsis names each axis of its tensor. */
static void ranks_by_letters(Solver *s, Relation *r, uint32_t n, Type **parts) {
    const char *p = attrs_text(r->attrs, "equation");
    for (uint32_t i = 0; i < n; i++) {
        bool ellipsis;
        int letters = term_letters(p, &ellipsis);
        p += strcspn(p, ",-");
        p += *p == ',';
        if (ellipsis || letters > TENSOR_MAX_RANK || rel_shape_in(parts[i])->tag != TY_VAR)
            continue;
        Type **fresh = mem_new_n(Type *, letters + 1);
        for (int k = 0; k < letters; k++)
            fresh[k] = solver_var(s, KIND_DIM);
        solver_unify(s, rel_shape_in(parts[i]), type_shape(fresh, (uint32_t)letters));
    }
}

/* The size of a letter that stands for axes of sizes a and b, which are equal, or one is 1. *open: it
 * may still turn out to be. NULL after a report. */
static Type *letter_size(Solver *s, Relation *r, Type *a, Type *b, int axis, bool *open) {
    int64_t n;
    if (rel_is_one(a))
        return b;
    if (rel_is_one(b) || dim_compare(a, b) == DIM_EQUAL)
        return a;
    Type *unknown = rel_unknown_broadcast(s, r, a, b, axis);
    if (unknown)
        return unknown;
    if (rel_dim_open(a) || rel_dim_open(b)) {
        *open = true;
        return type_get_int(a, &n) ? a : type_get_int(b, &n) ? b : solver_var(s, KIND_DIM);
    }
    return rel_unify_dim(s, r, a, b, 0, axis) ? a : NULL;
}

/* The axes of the result that have size 1: so has each axis with their letter. */
static uint32_t ones_of_result(Relation *r, const Einsum *e) {
    uint32_t rank, ones = 0;
    Type **dims;
    if (rel_rank_in(rel_result_arg(r), &rank, &dims) && (int)rank == e->naxes[e->ninputs])
        for (uint32_t i = 0; i < rank; i++)
            ones |= (uint32_t)rel_is_one(type_resolve(dims[i])) << i;
    return ones;
}

RelStatus relate_einsum(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM}, &status))
        return status;
    uint32_t n, rank;
    int ranks[EINSUM_MAX_INPUTS];
    Type **parts, **dims, *sizes[EINSUM_LABELS] = {0};
    Einsum e;
    bool open = false;
    rel_parts(r, 0, &n, &parts);
    for (uint32_t i = 1; i < n; i++)
        if (!solver_unify(s, rel_dtype_in(parts[i]), rel_dtype_in(parts[0]))) {
            rel_error(s, r, DIAG_R0311, "`einsum`: the tensors have different dtypes");
            return REL_FAIL;
        }
    ranks_by_letters(s, r, n, parts);
    for (uint32_t i = 0; i < n && i < EINSUM_MAX_INPUTS; i++) {
        if (!rel_rank_in(parts[i], &rank, &dims))
            return rel_wait(s, r, rel_dtype_in(parts[0]));
        ranks[i] = (int)rank;
    }
    const char *problem = einsum_parse(attrs_text(r->attrs, "equation"), (int)n, ranks, &e);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: the equation \"%s\" %s", r->op->name,
                  attrs_text(r->attrs, "equation"), problem);
        return REL_FAIL;
    }
    uint32_t ones = ones_of_result(r, &e);
    for (int i = 0; i < e.ninputs; i++) {
        rel_rank_in(parts[i], &rank, &dims);
        for (int j = 0; j < e.naxes[i]; j++) {
            for (int k = 0; k < e.naxes[e.ninputs]; k++)
                if (ones >> k & 1 && e.labels[e.ninputs][k] == e.labels[i][j] &&
                    !rel_unify_dim(s, r, dims[j], rel_int_dim(r, 1), 0, j))
                    return REL_FAIL;
            Type **size = &sizes[e.labels[i][j]];
            *size = *size ? letter_size(s, r, *size, dims[j], j, &open) : dims[j];
            if (!*size)
                return REL_FAIL;
        }
    }
    Type **out = mem_new_n(Type *, TENSOR_MAX_RANK);
    int nout = e.naxes[e.ninputs];
    for (int i = 0; i < nout; i++)
        out[i] = sizes[e.labels[e.ninputs][i]];
    status = rel_result(s, r, out, (uint32_t)nout, rel_dtype_in(parts[0]));
    return status == REL_FAIL ? status : open ? REL_WAIT : rel_settled(r);
}

static bool lower_einsum(const OpCall *call, Tensor *const *out, Plan *plan) {
    Einsum e;
    EinsumSum sum;
    int terms[EINSUM_MAX_INPUTS];
    if (!einsum_read(call, 0, call->nin, &e))
        return false;
    for (int i = 0; i < e.ninputs; i++)
        terms[i] = i;
    einsum_begin(&sum, &e, plan, out[0], e.ninputs);
    einsum_add(&sum, e.ninputs, call->in, terms);
    return einsum_end(&sum);
}

static const RelDef rel_einsum = {"Einsum", relate_einsum, 2, false};
const AttrSpec einsum_attrs[1] = {
    {"equation", AT_STRING, NULL, "a letter for each axis: \"ij,jk->ik\""},
};
/* The letters of the equation; a size of 1 goes with any. */
static void write_einsum_sizes(Str *out, const Attrs *attrs, uint32_t nin, const int *ranks) {
    const char *p = attrs_text(attrs, "equation");
    (void)ranks;
    for (uint32_t i = 0; i < nin && *p; i++, p += *p == ',') {
        bool first = true;
        str_add(out, i ? ", (" : "(");
        for (; *p && *p != ',' && *p != '-'; p++) {
            bool dots = !strncmp(p, "...", 3);
            if (!dots && letter(*p) < 0)
                continue;
            str_printf(out, dots ? "%s..." : "%s%c~", first ? "" : ", ", *p);
            p += dots ? 2 : 0;
            first = false;
        }
        str_add(out, ")");
    }
}

const Op op_einsum = {
    .name = "einsum",
    .args = "(data)",
    .nargs = 1,
    .write_sizes = write_einsum_sizes,
    .attrs = einsum_attrs,
    .nattrs = 1,
    .relation = &rel_einsum,
    .dtypes = DTS_NUM,
    .pattern = OP_OPAQUE,
    .shape = shape_einsum,
    .lower = lower_einsum,
    .doc =
        "Products of the tensors' elements summed over the letters that are not in the result, as\n"
        "NumPy's einsum. Tensors are multiplied two at a time, from the left, and floats summed as "
        "by matmul.",
    .example = "einsum(([[1, 2], [3, 4]], [10, 1]), equation=\"ij,j->i\")",
    .example_result = "[12, 34] : Tensor[(2,), int32]",
    .see_also = "matmul, sum, transpose",
};
