/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and sections as TVM's `#[metadata]` and its JSON graphs have them (TVM-RELAY §1.7). */
#ifndef PARSER_METADATA_H
#define PARSER_METADATA_H

#include "base/str.h"
#include "parser/ast.h"

/* An array in base64; NULL, and *wrong says why, where the text is none. */
MetaConstant *metadata_read_array(const char *text, size_t len, const char **wrong);
/* An array in base64, as a tensor of an NDArray's file has it. */
void metadata_add_array(Str *out, const MetaConstant *c);
/* The section that holds a module's constants. */
void print_metadata(Str *out, const Module *m);

#endif
