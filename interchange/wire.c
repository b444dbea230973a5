/* SPDX-License-Identifier: Apache-2.0 */
#include "interchange/wire.h"

#include <string.h>

Wire wire_of(const unsigned char *p, size_t n) { return (Wire){p, p + n, false}; }

static bool fail(Wire *w) {
    w->failed = true;
    w->p = w->end;
    return false;
}

/* Seven bits a byte, the least significant first; ten bytes at most. */
bool wire_varint(Wire *w, uint64_t *out) {
    uint64_t v = 0;
    if (w->p == w->end)
        return false;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->p == w->end)
            return fail(w);
        unsigned char byte = *w->p++;
        if (shift == 63 && byte > 1)
            return fail(w);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = v;
            return true;
        }
    }
    return fail(w);
}

static bool fixed(Wire *w, size_t n, uint64_t *out) {
    uint64_t v = 0;
    if (wire_left(w) < n)
        return fail(w);
    for (size_t i = n; i-- > 0;)
        v = v << 8 | w->p[i];
    w->p += n;
    *out = v;
    return true;
}

bool wire_next(Wire *w, WireField *out) {
    uint64_t key, n;
    if (!wire_varint(w, &key))
        return false;
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return fail(w);
    *out = (WireField){.number = (uint32_t)(key >> 3), .type = (WireType)(key & 7)};
    switch (key & 7) {
    case WIRE_VARINT: return wire_varint(w, &out->value) || fail(w);
    case WIRE_FIXED64: return fixed(w, 8, &out->value);
    case WIRE_FIXED32: return fixed(w, 4, &out->value);
    case WIRE_BYTES:
        if (!wire_varint(w, &n) || n > wire_left(w))
            return fail(w);
        out->bytes = wire_of(w->p, (size_t)n);
        w->p += n;
        return true;
    }
    return fail(w); /* groups, which no schema of today has */
}

float wire_float(uint64_t bits) {
    uint32_t b = (uint32_t)bits;
    float f;
    memcpy(&f, &b, sizeof f);
    return f;
}

double wire_double(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_varint(Str *out, uint64_t v) {
    for (; v >= 0x80; v >>= 7)
        str_add_char(out, (char)(v | 0x80));
    str_add_char(out, (char)v);
}

void wire_add_varint(Str *out, uint32_t number, uint64_t value) {
    add_varint(out, (uint64_t)number << 3 | WIRE_VARINT);
    add_varint(out, value);
}

void wire_add_float(Str *out, uint32_t number, float value) {
    uint32_t b;
    memcpy(&b, &value, sizeof b);
    add_varint(out, (uint64_t)number << 3 | WIRE_FIXED32);
    for (int i = 0; i < 4; i++)
        str_add_char(out, (char)(b >> 8 * i));
}

void wire_add_bytes(Str *out, uint32_t number, const void *p, size_t n) {
    add_varint(out, (uint64_t)number << 3 | WIRE_BYTES);
    add_varint(out, n);
    str_add_n(out, p, n);
}

void wire_add_text(Str *out, uint32_t number, const char *text) {
    wire_add_bytes(out, number, text, strlen(text));
}
