/* SPDX-License-Identifier: Apache-2.0 */
/* `const Op op_NAME` of every operator: for code that names operators one by one. */
#ifndef OPS_TABLE_H
#define OPS_TABLE_H

#include "types/op.h"

#define OP(symbol) extern const Op op_##symbol;
#define INTERNAL(symbol) OP(symbol)
#define UNARY(symbol, ...) OP(symbol)
#define TEST(symbol, ...) OP(symbol)
#define BINARY(symbol, ...) OP(symbol)
#define COMPARE(symbol, ...) OP(symbol)
#include "ops/elementwise.def"
#include "ops/ops.def"
#undef OP
#undef INTERNAL
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE

#endif
