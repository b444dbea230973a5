/* SPDX-License-Identifier: Apache-2.0 */
/* A number that all bits of a value make: `--digest` prints it, so that tests can compare what two engines
 * leave behind beyond the digits that are shown. */
#ifndef EVAL_DIGEST_H
#define EVAL_DIGEST_H

#include "eval/value.h"

/* Equal values have equal digests: the same constructors, dtypes, shapes and bits of elements, and references
 * shared in the same places. Every nan counts as one, since no program can tell them apart, and every
 * function as one, since engines make them in their own ways. Data may share and be deep: after a million
 * nodes the rest is left out. */
uint64_t value_digest(Value v);

#endif
