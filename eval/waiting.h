/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of cotangents that are tensors, which only their accumulators know (Tensor.accumulates): what is added next is
 * added in place, and all other readers come after the last addition and take the mark off (`ad.settle`, `ad.dense`).
 *
 * Note [Products that wait]. The cotangent of weights that a recurrent program uses at each step is a sum of products,
 * one a step, each of few multiply-adds an element: of one row and one column, an outer product. Added one by one,
 * each reads and writes all of the sum. So they wait beside it, as their two factors, and one kernel adds several of them: for
 * each element, and for each product in order, it folds the product as that alone would be folded and adds it. Those are the
 * operations of one product after the other, so the bits are the same, and the sum is read and written once.
 *
 * The first product waits as well, where nothing was added before: then the sum has its buffer, and elements when the products
 * that joined it are folded, the first of them in place of the sum.
 *
 * What waits is added when enough does, before anything else is added, and before anything reads the sum. The
 * elements of factors stay as they are meanwhile, since the views that wait are owners of their buffers (eval/own.h). */
#ifndef EVAL_WAITING_H
#define EVAL_WAITING_H

#include "eval/machine.h"

/* What Tensor.accumulates says, a bit each. A sum to whose parts is added has no -0.0, since adding a tensor that is zero
 * elsewhere leaves none; that stays true when it is settled. WAS_SUM: it was one until it was settled, once. */
enum { SETTLED = 0, SUM = 1, WITHOUT_NEGATIVE_ZERO = 2, WAS_SUM = 4 };
static inline bool is_sum(const Tensor *t) { return t->accumulates & SUM; }

/* Whether a tensor that such an owner reads for the last time ends there (OWN_SUM). */
static inline uint64_t dying_sum(uint32_t owner, Value v) {
    return owner == OWN_SUM && v.tag == VAL_TENSOR &&
           (((Tensor *)v.p)->accumulates & (SUM | WAS_SUM)) == WAS_SUM &&
           ((Tensor *)v.p)->buffer->owners == 1;
}

/* A sum of the product alone, which waits, too: only when others have joined it is the sum written. NULL: the product is to
 * be computed at once. of: its operator and how it is called. dying: those of its arguments that end there. */
Tensor *waiting_new_sum(const Site *of, const Value *args, uint64_t dying);
/* Lets a product wait beside the sum; false where it is to be added at once. of: the product's operator and how it is
 * called. args: the sum, then the product's. dying: those of them that end there (eval/own.h). *ok: it was not
 * interrupted by adding what waited before. */
bool waiting_push(Interp *in, Tensor *sum, const Site *of, const Value *args, uint64_t dying,
                  bool *ok);
/* Adds what waits. False when interrupted: then the sum is of no use. */
bool waiting_add_all(Interp *in, Tensor *sum);
/* The same of a value where it is a tensor. */
static inline bool waiting_add_of(Interp *in, Value v) {
    return v.tag != VAL_TENSOR || !((Tensor *)v.p)->waiting || waiting_add_all(in, v.p);
}

#endif
