/* SPDX-License-Identifier: Apache-2.0 */
/* A function of tensors written as an ONNX model (opset 17, IR version 8).
 *
 * The function is followed as if it were called: calls of other functions are replaced by their bodies, `let` names a
 * value, data is taken apart, and each operator becomes one or more nodes. Parameters are inputs, the result is the
 * output, of a tuple several. Tensors that the program holds become initializers. Derivatives are followed as the code that
 * runs for them. What cannot be said is gathered, so
 * that one run tells all of it. */
#ifndef INTERCHANGE_ONNX_EXPORT_H
#define INTERCHANGE_ONNX_EXPORT_H

#include "types/core/core.h"

/* A value that a global holds: a tensor, a tuple, data (ctor), or none of these (all NULL). */
typedef struct ExportValue {
    Tensor *tensor;
    const Ctor *ctor;
    struct ExportValue *parts;
    uint32_t nparts;
    bool is_tuple;
} ExportValue;
typedef ExportValue (*ExportFind)(void *ctx, Global *g);
/* An EXPR_FN with code in place of the derivatives in it, as far as they are code. */
typedef Expr *(*ExportPrepare)(void *ctx, Expr *fn);

typedef struct ExportAsk {
    ExportFind find;
    ExportPrepare prepare;
    const char *(*why)(void *ctx); /* what prepare left is no code, or NULL */
    void *ctx;
} ExportAsk;

/* Writes the model of `entry`, an EXPR_FN, to out. False after diagnostics, one for each place that cannot
 * be exported; out is then of no use. */
bool onnx_export(Expr *entry, const char *name, const ExportAsk *ask, Diags *diags, Str *out);

#endif
