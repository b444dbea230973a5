/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of other libraries (LANGUAGE §2), called through libffi.
 *
 *     operator @cbrt : fn(float64) -> float64 = "cbrt" from "libm.so.6"
 *
 * A scalar argument is passed by value as C's int8_t … double (bool as uint8_t, float16 and
 * bfloat16 as their bits); a tensor as a DLPack `DLTensor *`, contiguous. A scalar result is
 * returned; a tensor result is a last argument, `DLTensor *`, allocated from the declared type,
 * whose sizes must be numbers or made of named sizes of the arguments. An argument's elements are not
 * to be written to; the sizes that the callee sees are a copy. A result `()` is void. */
#ifndef EVAL_FOREIGN_H
#define EVAL_FOREIGN_H

#include "types/op.h"

/* Opens the library, finds the symbol and makes the operator callable. False after a diagnostic. */
bool foreign_bind(const Op *op, Diags *diags);

#endif
