/* SPDX-License-Identifier: Apache-2.0 */
/* Small tensors that were given back and serve again. Private to tensor/.
 *
 * Note [Spare tensors]. A small tensor is a header with its buffer behind it, and a block of elements; a view is a header.
 * One that is given back, because it was made for an operator or a frame and ends there, serves the next of its rank and
 * number of lines, instead of two blocks more for the collector. A collection lets those go that were not asked for since
 * the one before. They stand in a stack, so that those below the top are known and fetched early: most were given back
 * long ago. A derivative of GradBench's lstm with 1,024 rows and 2 layers asked the collector for 41,000 tensors' blocks
 * when this was made, and for 129,000 else. */
#ifndef TENSOR_SPARE_H
#define TENSOR_SPARE_H

#include "tensor/tensor.h"

/* Tensors of one kind; NULL stands for a kind that is not kept. */
typedef struct Spare Spare;

/* Those with elements of so many bytes, whose buffer is part of the header. */
Spare *spare_of(int rank, size_t bytes);
/* Headers alone. */
Spare *spare_view(int rank);
/* Nothing refers to the header any more. */
void spare_give(Spare *s, Tensor *t);
/* NULL where none waits. What it holds is as it was when it was given, but `waiting`. */
Tensor *spare_take(Spare *s);

#endif
