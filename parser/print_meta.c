/* SPDX-License-Identifier: Apache-2.0 */
/* The `#[metadata]` section: TVM's node graph as JSON, constants as base64 of its NDArray format
 * (magic, reserved, device, rank, dtype, shape, bytes, data; little-endian). */
#include <inttypes.h>
#include <string.h>

#include "parser/metadata.h"
#include "parser/print_internal.h"

static const uint64_t ndarray_magic = UINT64_C(0xDD5E40F096B4A13F);

static void add_bytes(Str *s, const void *p, size_t n) { str_add_n(s, p, n); }

static void add_base64(Str *out, const unsigned char *p, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;
        v |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
        v |= i + 2 < n ? p[i + 2] : 0;
        str_add_char(out, digits[v >> 18 & 63]);
        str_add_char(out, digits[v >> 12 & 63]);
        str_add_char(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
        str_add_char(out, i + 2 < n ? digits[v & 63] : '=');
    }
}

void metadata_add_array(Str *out, const MetaConstant *c) {
    Str raw = {0};
    uint64_t reserved = 0;
    int32_t device[2] = {1, 0}, ndim = c->ndim;
    uint16_t lanes = 1;
    int64_t bytes = (int64_t)c->bytes;
    add_bytes(&raw, &ndarray_magic, 8);
    add_bytes(&raw, &reserved, 8);
    add_bytes(&raw, device, 8);
    add_bytes(&raw, &ndim, 4);
    add_bytes(&raw, &c->code, 1);
    add_bytes(&raw, &c->bits, 1);
    add_bytes(&raw, &lanes, 2);
    for (int i = 0; i < c->ndim; i++)
        add_bytes(&raw, &c->shape[i], 8);
    add_bytes(&raw, &bytes, 8);
    add_bytes(&raw, c->data, c->bytes);
    add_base64(out, (const unsigned char *)raw.text, raw.len);
}

void print_metadata(Str *out, const Module *m) {
    size_t n = m->constants.len;
    str_add(out, "\n#[metadata]\n{\n  \"root\": 1,\n  \"nodes\": [\n    {\"type_key\": \"\"},\n"
                 "    {\"type_key\": \"Map\", \"keys\": [\"relay.Constant\"], \"data\": [2]},\n"
                 "    {\"type_key\": \"Array\", \"data\": [");
    for (size_t i = 0; i < n; i++)
        str_printf(out, "%s%zu", i ? ", " : "", i + 3);
    str_add(out, "]}");
    for (size_t i = 0; i < n; i++)
        str_printf(
            out,
            ",\n    {\"type_key\": \"relay.Constant\", \"attrs\": {\"_checked_type_\": \"0\", "
            "\"data\": \"%zu\", \"span\": \"0\", \"virtual_device_\": \"0\"}}",
            i);
    str_add(out, "\n  ],\n  \"b64ndarrays\": [");
    for (size_t i = 0; i < n; i++) {
        str_add(out, i ? ",\n    \"" : "\n    \"");
        metadata_add_array(out, m->constants.data[i]);
        str_add(out, "\"");
    }
    str_add(out, "\n  ],\n  \"attrs\": {\"tvm_version\": \"0.18.0\"}\n}\n");
}
