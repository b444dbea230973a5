/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers on the wire (protobuf.dev/programming-guides/encoding), read in place and written.
 *
 * Note [A reader of our own]: protobuf-c would unpack a whole message into structs of its own. It copies
 * every bytes field, so a model takes twice its size; it keeps unknown fields; and it recurses once for each
 * message in a message without a bound, so that a file of some hundred kilobytes which nests graphs in
 * attributes of nodes ends the program by a signal. A model file is a stranger's. This reader is a hundred
 * lines, copies nothing, and who reads with it bounds the depth. It needs no package either. */
#ifndef INTERCHANGE_WIRE_H
#define INTERCHANGE_WIRE_H

#include <stdbool.h>

#include "base/str.h"

typedef enum WireType {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
} WireType;

/* A message, of which p to end is not read yet. */
typedef struct Wire {
    const unsigned char *p, *end;
    bool failed; /* what was read is no message: the rest is not looked at */
} Wire;

typedef struct WireField {
    uint32_t number;
    WireType type;
    uint64_t value; /* of VARINT, FIXED64 and FIXED32 */
    Wire bytes;     /* of BYTES: where they lie in the message */
} WireField;

Wire wire_of(const unsigned char *p, size_t n);
/* The next field. False at the end, and where the bytes are no field: then `failed`. */
bool wire_next(Wire *w, WireField *out);
bool wire_varint(Wire *w, uint64_t *out); /* the next of packed numbers; false as wire_next */
static inline size_t wire_left(const Wire *w) { return (size_t)(w->end - w->p); }
float wire_float(uint64_t bits);
double wire_double(uint64_t bits);

/* Appends a field to a message being written. */
void wire_add_varint(Str *out, uint32_t number, uint64_t value);
void wire_add_float(Str *out, uint32_t number, float value);
void wire_add_bytes(Str *out, uint32_t number, const void *p, size_t n);
void wire_add_text(Str *out, uint32_t number, const char *text);

#endif
