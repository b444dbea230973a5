/* SPDX-License-Identifier: Apache-2.0 */
/* The section `#[metadata]` of a TVM module: a JSON graph whose root maps type keys to arrays of
 * nodes; a `relay.Constant` names an array in `b64ndarrays`. An array is, little-endian: u64 magic,
 * u64 reserved, i32 device type and id, i32 rank, dtype {u8 code, u8 bits, u16 lanes}, i64 sizes, i64
 * bytes, the elements (TVM-RELAY §1.7). */
#include "parser/metadata.h"
#include "parser/parse_internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t array_magic = UINT64_C(0xDD5E40F096B4A13F);

typedef struct Meta {
    Parser *p;
    uint32_t begin;
    json_t *root, *nodes, *arrays;
} Meta;

static bool complain(Meta *m, const char *what) {
    Span span = parse_span(m->p, m->begin, m->begin);
    parse_complain(m->p, DIAG_R0011, span, "bad metadata: %s", what);
    return false;
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The decoded bytes, or NULL. */
static unsigned char *read_base64(const char *text, size_t n, size_t *len) {
    unsigned char *out = mem_bytes(n / 4 * 3 + 3);
    uint32_t bits = 0;
    int have = 0;
    *len = 0;
    while (n > 0 && text[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++) {
        int d = base64_digit(text[i]);
        if (d < 0)
            return NULL;
        bits = bits << 6 | (uint32_t)d;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[(*len)++] = (unsigned char)(bits >> have);
        }
    }
    return out;
}

static uint64_t read_le(const unsigned char *at, size_t n) {
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | at[i];
    return v;
}

MetaConstant *metadata_read_array(const char *text, size_t n, const char **wrong) {
    size_t len = 0;
    const unsigned char *at = read_base64(text, n, &len);
    if (!at || len < 40 || read_le(at, 8) != array_magic) {
        *wrong = "an entry of `b64ndarrays` is no array";
        return NULL;
    }
    MetaConstant *c = mem_new(MetaConstant);
    uint64_t rank = read_le(at + 24, 4), elements = 1;
    c->code = at[28];
    c->bits = at[29];
    if (read_le(at + 30, 2) != 1 || rank > 32 || len < 40 + 8 * rank) {
        *wrong = "an array has lanes or too many axes";
        return NULL;
    }
    c->ndim = (int)rank;
    c->shape = mem_bytes(8 * rank + 1);
    for (uint64_t i = 0; i < rank; i++) {
        uint64_t size = read_le(at + 32 + 8 * i, 8);
        c->shape[i] = (int64_t)size;
        if (size > INT32_MAX || (size && elements > (UINT64_C(1) << 46) / size)) {
            *wrong = "an array is too large";
            return NULL;
        }
        elements *= size;
    }
    c->bytes = (size_t)read_le(at + 32 + 8 * rank, 8);
    c->data = at + 40 + 8 * rank;
    if (c->bytes > len - 40 - 8 * rank || c->bytes != elements * ((c->bits + 7u) / 8u)) {
        *wrong = "an array's elements and its sizes differ";
        return NULL;
    }
    return c;
}

static MetaConstant *read_array(Meta *m, json_t *text) {
    const char *wrong = "an entry of `b64ndarrays` is no array";
    MetaConstant *c = json_is_string(text) ? metadata_read_array(json_string_value(text),
                                                                 json_string_length(text), &wrong)
                                           : NULL;
    if (!c)
        complain(m, wrong);
    return c;
}

static json_t *find_node(Meta *m, json_t *index) {
    return json_is_integer(index) && json_integer_value(index) >= 0
               ? json_array_get(m->nodes, (size_t)json_integer_value(index))
               : NULL;
}

/* The array that a node of type relay.Constant holds. */
static bool read_constant(Meta *m, json_t *node) {
    json_t *type = json_object_get(node, "type_key");
    json_t *data = json_object_get(json_object_get(node, "attrs"), "data");
    const char *text = json_string_value(data);
    if (!json_is_string(type) || strcmp(json_string_value(type), "relay.Constant") != 0 || !text)
        return complain(m, "an entry of `relay.Constant` is no constant");
    char *end;
    unsigned long i = strtoul(text, &end, 10);
    if (*end || end == text || i >= json_array_size(m->arrays))
        return complain(m, "a constant names an array that is not there");
    MetaConstant *c = read_array(m, json_array_get(m->arrays, i));
    if (c)
        vec_push(&m->p->module->constants, c);
    return c != NULL;
}

static bool read_root(Meta *m) {
    m->nodes = json_object_get(m->root, "nodes");
    m->arrays = json_object_get(m->root, "b64ndarrays");
    json_t *map = find_node(m, json_object_get(m->root, "root"));
    json_t *keys = json_object_get(map, "keys"), *data = json_object_get(map, "data");
    if (!map)
        return complain(m, "it has no `root` among its `nodes`");
    if (json_array_size(keys) != json_array_size(data))
        return complain(m, "the root has not as many keys as values");
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (!key || strcmp(key, "relay.Constant") != 0)
            continue;
        json_t *list = json_object_get(find_node(m, json_array_get(data, i)), "data");
        for (size_t k = 0; k < json_array_size(list); k++)
            if (!read_constant(m, find_node(m, json_array_get(list, k))))
                return false;
    }
    return true;
}

void parse_metadata(Parser *p, uint32_t begin) {
    const char *text = p->source->text + begin;
    size_t len = p->source->len - begin;
    Meta m = {.p = p, .begin = begin};
    json_error_t error;
    while (m.begin < p->source->len && strchr(" \t\r\n", p->source->text[m.begin]))
        m.begin++;
    if (memmem(text, len, "#[metadata]", 11)) {
        complain(&m, "there are two sections");
        return;
    }
    m.root = json_loadb(text, len, 0, &error);
    if (!m.root) {
        if (error.position > 0 && (size_t)error.position <= len)
            m.begin = begin + (uint32_t)error.position - 1;
        complain(&m, error.text);
        return;
    }
    read_root(&m);
    json_decref(m.root);
}
