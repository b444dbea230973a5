/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on single elements. The formula of `sin` is a program of some forty scalar instructions (ops/recipe/scalar.h),
 * which is interpreted at first; once it has run often, it is compiled as a kernel for one element, which gives
 * the same bits. */
#ifndef EVAL_ELEMENT_H
#define EVAL_ELEMENT_H

#include "eval/machine.h"

/* Applies the site's operator to scalars of one dtype. False: it has no formula for them, or it fails, and apply_op
 * says why. */
bool element_apply(Interp *in, Site *site, const Value *args, Value *out);

#endif
