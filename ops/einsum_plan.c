/* SPDX-License-Identifier: Apache-2.0 */
/* Products summed by names, as recipes. Tensors are contracted two at a time, those first whose product is smallest in
 * relation to them; letters that nothing else has are summed over before, and a product keeps those that the result or
 * another tensor has. So `ij,jk,kl->il` costs two products of matrices, not a loop over four letters.
 *
 * A tensor is a stride for each letter: a letter that stands twice walks the diagonal, one of size 1 or none repeats. */
#include "ops/einsum.h"

#include <string.h>

typedef struct Labelled {
    const Tensor *t;
    int64_t strides[EINSUM_LABELS];
    bool has[EINSUM_LABELS]; /* with a size above 1 */
} Labelled;

static Labelled label_tensor(const Einsum *e, int term, const Tensor *t) {
    Labelled x = {.t = t};
    for (int j = 0; j < e->naxes[term]; j++) {
        int l = e->labels[term][j];
        if (t->shape[j] == 1)
            continue;
        x.strides[l] += t->strides[j];
        x.has[l] = true;
    }
    return x;
}

static bool has_letter_twice(const Einsum *e, int term) {
    for (int j = 0; j < e->naxes[term]; j++)
        for (int k = 0; k < j; k++)
            if (e->labels[term][j] == e->labels[term][k])
                return true;
    return false;
}

static bool is_empty(const Einsum *e) {
    for (int l = 0; l < EINSUM_LABELS; l++)
        if (e->sizes[l] == 0)
            return true;
    return false;
}

/* The letters in the order in which the equation has them first; how many there are. Sums go in this order, whatever
 * the layout of the tensors is, so that it does not show in the result. */
static int order_letters(const Einsum *e, int *letters) {
    bool seen[EINSUM_LABELS] = {false};
    int n = 0;
    for (int i = 0; i < e->ninputs; i++)
        for (int j = 0; j < e->naxes[i]; j++) {
            int l = e->labels[i][j];
            if (!seen[l])
                letters[n++] = l;
            seen[l] = true;
        }
    return n;
}

/* A temporary with these letters. */
static Labelled plan_labelled(EinsumSum *s, const bool *has) {
    const Einsum *e = s->e;
    Labelled x = {0};
    int64_t count = 1;
    int letters[EINSUM_LABELS];
    for (int i = order_letters(e, letters); i-- > 0;) {
        int l = letters[i];
        if (!has[l])
            continue;
        x.has[l] = true;
        x.strides[l] = count;
        count = size_multiply(count, e->sizes[l]);
    }
    x.t = plan_temp(s->plan, s->sums->dtype, 1, &count);
    return x;
}

/* The letters of a domain: those of `to`, the largest strides first, or those that are summed over. */
static int list_letters(const Einsum *e, const Labelled *to, const Labelled *x, const Labelled *y,
                        bool sums, int *letters) {
    int all[EINSUM_LABELS], count = order_letters(e, all), n = 0;
    for (int i = 0; i < count; i++) {
        int l = all[i], k;
        bool is_in = sums ? !to->has[l] && (x->has[l] || (y && y->has[l])) : to->has[l];
        if (!is_in)
            continue;
        for (k = n++; k > 0 && !sums && to->strides[letters[k - 1]] < to->strides[l]; k--)
            letters[k] = letters[k - 1];
        letters[k] = l;
    }
    return n;
}

/* to = the sum of x, or of x * y, over what `to` does not have. */
static void plan_contraction(EinsumSum *s, const Labelled *to, const Labelled *x,
                             const Labelled *y) {
    const Einsum *e = s->e;
    const Labelled *operands[] = {x, y};
    int letters[EINSUM_LABELS], rank = list_letters(e, to, x, y, false, letters);
    int nreduce = list_letters(e, to, x, y, true, letters + rank), axes = rank + nreduce;
    int64_t extents[EINSUM_LABELS], strides[RECIPE_MAX_AXES] = {0};
    if (axes > RECIPE_MAX_AXES) {
        if (!s->failed)
            shape_error(e->call, DIAG_R0316,
                        "two tensors have %d letters together, at most %d "
                        "are taken",
                        axes, RECIPE_MAX_AXES);
        s->failed = true;
        return;
    }
    for (int i = 0; i < axes; i++)
        extents[i] = e->sizes[letters[i]];
    DType acc = s->sums->dtype;
    StepBuilder b;
    step_begin(&b, s->plan,
               !nreduce ? RECIPE_MAP
               : y      ? RECIPE_PRODUCT
                        : RECIPE_REDUCE,
               rank, extents);
    if (nreduce) {
        step_reduce_over(&b, nreduce, extents + rank);
        step_combine(&b, COMBINE_SUM, acc);
    }
    Sc v = 0;
    for (int k = 0; k < (y ? 2 : 1); k++) {
        for (int i = 0; i < axes; i++)
            strides[i] = operands[k]->strides[letters[i]];
        DType stored = operands[k]->t->dtype;
        Sc one = sc_cast(&b.body,
                         sc_load(&b.body, step_in_strided(&b, operands[k]->t, strides, 0), stored),
                         acc);
        v = k ? sc_mul(&b.body, v, one) : one;
    }
    for (int i = 0; i < rank; i++)
        strides[i] = to->strides[letters[i]];
    step_result(&b, v);
    step_out_strided(&b, (Tensor *)to->t, strides, 0);
    step_end(&b);
}

/* Tensors that are left to be multiplied, and how many of them and of the target have each letter. */
typedef struct Left {
    const Labelled *to;
    int n;
    Labelled x[EINSUM_MAX_INPUTS + 1];
    int count[EINSUM_LABELS];
} Left;

static void count_letters(Left *left, const Labelled *x, int by) {
    for (int l = 0; l < EINSUM_LABELS; l++)
        left->count[l] += x->has[l] ? by : 0;
}

/* The letters of x, and of y, that others have. */
static void keep_letters(const Left *left, const Labelled *x, const Labelled *y, bool *kept) {
    for (int l = 0; l < EINSUM_LABELS; l++) {
        int own = x->has[l] + (y && y->has[l]);
        kept[l] = own && left->count[l] > own;
    }
}

static double count_places(const Einsum *e, const bool *has) {
    double n = 1;
    for (int l = 0; l < EINSUM_LABELS; l++)
        n *= has[l] ? (double)e->sizes[l] : 1;
    return n;
}

/* Each of the tensors is summed over the letters that it alone has. */
static void sum_alone(EinsumSum *s, Left *left) {
    for (int i = 0; i < left->n; i++) {
        bool kept[EINSUM_LABELS];
        keep_letters(left, &left->x[i], NULL, kept);
        if (!memcmp(kept, left->x[i].has, sizeof kept))
            continue;
        Labelled sum = plan_labelled(s, kept);
        plan_contraction(s, &sum, &left->x[i], NULL);
        count_letters(left, &left->x[i], -1);
        left->x[i] = sum;
        count_letters(left, &sum, 1);
    }
}

/* The two tensors whose product is smallest in relation to them. */
static void find_pair(const Einsum *e, const Left *left, int *first, int *second) {
    double best = 0;
    for (int i = 0; i < left->n; i++)
        for (int j = i + 1; j < left->n; j++) {
            const Labelled *x = &left->x[i], *y = &left->x[j];
            bool kept[EINSUM_LABELS];
            keep_letters(left, x, y, kept);
            double grows = count_places(e, kept) - count_places(e, x->has) -
                           count_places(e, y->has);
            if ((i || j > 1) && grows >= best)
                continue;
            best = grows;
            *first = i;
            *second = j;
        }
}

static void plan_product_of(EinsumSum *s, Left *left) {
    if (left->n > 1)
        sum_alone(s, left);
    while (left->n > 2) {
        int i = 0, j = 1;
        bool kept[EINSUM_LABELS];
        find_pair(s->e, left, &i, &j);
        Labelled x = left->x[i], y = left->x[j];
        keep_letters(left, &x, &y, kept);
        Labelled product = plan_labelled(s, kept);
        plan_contraction(s, &product, &x, &y);
        count_letters(left, &x, -1);
        count_letters(left, &y, -1);
        count_letters(left, &product, 1);
        left->x[i] = product;
        left->n--;
        memmove(&left->x[j], &left->x[j + 1], sizeof x * (size_t)(left->n - j));
    }
    plan_contraction(s, left->to, &left->x[0], left->n > 1 ? &left->x[1] : NULL);
}

void einsum_begin(EinsumSum *s, const Einsum *e, Plan *plan, Tensor *target, int term) {
    DType acc = reduce_acc_type(target->dtype);
    *s = (EinsumSum){.e = e, .plan = plan, .target = target, .sums = target, .term = term};
    if (acc != target->dtype)
        s->sums = plan_temp(plan, acc, target->rank, target->shape);
}

void einsum_add(EinsumSum *s, int n, Tensor *const *factors, const int *terms) {
    Tensor *out = s->n++ ? plan_temp(s->plan, s->sums->dtype, s->sums->rank, s->sums->shape)
                         : s->sums;
    Labelled to = label_tensor(s->e, s->term, out);
    Left left = {.to = &to, .n = n};
    count_letters(&left, &to, 1);
    for (int i = 0; i < n; i++) {
        left.x[i] = label_tensor(s->e, terms[i], factors[i]);
        count_letters(&left, &left.x[i], 1);
    }
    if (is_empty(s->e) || has_letter_twice(s->e, s->term))
        plan_fill_int(s->plan, out, 0);
    if (!is_empty(s->e))
        plan_product_of(s, &left);
    if (out == s->sums)
        return;
    StepBuilder b;
    step_begin(&b, s->plan, RECIPE_MAP, out->rank, out->shape);
    Sc before = sc_load(&b.body, step_in(&b, s->sums), out->dtype);
    sc_add(&b.body, before, sc_load(&b.body, step_in(&b, out), out->dtype));
    step_out(&b, s->sums);
    step_end(&b);
}

bool einsum_end(EinsumSum *s) {
    if (!s->n)
        plan_fill_int(s->plan, s->sums, 0);
    if (s->sums != s->target)
        plan_copy(s->plan, s->target, s->sums);
    return !s->failed;
}
