/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's JSON graphs of Relay (`tvm.ir.save_json`, v0.6 to v0.18) as Relay text. */
#ifndef INTERCHANGE_TVM_H
#define INTERCHANGE_TVM_H

#include "base/diag.h"
#include "base/str.h"

typedef struct TvmProgram {
    Str types;  /* of what is stored, or empty */
    Str stored; /* the same values as the program's own metadata, `meta[relay.Constant][0]` */
    Str text;   /* the definitions */
    Str metadata;
} TvmProgram;

/* path: for messages. False after one diagnostic. */
bool tvm_read(const char *path, const char *text, size_t len, Diags *diags, TvmProgram *out);

#endif
