/* SPDX-License-Identifier: Apache-2.0 */
/* Functions written as TVM's JSON graph of Relay, in the form of v0.18 (`tvm.ir.save_json`). */
#ifndef INTERCHANGE_TVM_WRITE_H
#define INTERCHANGE_TVM_WRITE_H

#include "interchange/onnx_export.h"

/* Writes a module of these functions and of what they use. `find` gives the values of other globals. False after
 * diagnostics, one for each thing that has no counterpart; out is then of no use. */
bool tvm_write(Global *const *roots, size_t n, ExportFind find, void *ctx, Diags *diags, Str *out);

#endif
