/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors (Hugging Face's format page): the length of a header in 8 bytes, a JSON object that gives
 * each tensor its dtype, shape and place among the bytes that follow.
 *
 *     {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}
 *
 * As the format asks, a header of more than 100 MB, a name that stands twice, and tensors that overlap,
 * leave holes or do not fill the file are refused. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "eval/file.h"

enum { LENGTH_BYTES = 8, MAX_HEADER = 100 << 20 };

static const struct {
    const char *name;
    DType dtype;
} dtype_names[] = {
    {"BOOL", DT_BOOL}, {"U8", DT_U8},     {"I8", DT_I8},   {"U16", DT_U16}, {"I16", DT_I16},
    {"F16", DT_F16},   {"BF16", DT_BF16}, {"U32", DT_U32}, {"I32", DT_I32}, {"F32", DT_F32},
    {"U64", DT_U64},   {"I64", DT_I64},   {"F64", DT_F64},
};
enum { NDTYPES = sizeof dtype_names / sizeof *dtype_names };

static uint64_t header_length(const Bytes *b) {
    uint64_t n = 0;
    for (int i = LENGTH_BYTES; i-- > 0;)
        n = n << 8 | b->p[i];
    return n;
}

bool is_safetensors(const Bytes *b) {
    return b->n > LENGTH_BYTES && b->p[LENGTH_BYTES] == '{' && header_length(b) <= b->n;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool find_dtype(const char *name, DType *out) {
    for (int i = 0; name && i < NDTYPES; i++)
        if (strcmp(dtype_names[i].name, name) == 0) {
            *out = dtype_names[i].dtype;
            return true;
        }
    return false;
}

/* The shape, and how many bytes such a tensor takes; false when there can be no such tensor. */
static bool read_shape(const json_t *list, Member *m, uint64_t *bytes) {
    size_t rank = json_array_size(list);
    if (!json_is_array(list) || rank > TENSOR_MAX_RANK)
        return false;
    for (size_t i = 0; i < rank; i++) {
        const json_t *n = json_array_get(list, i);
        if (!json_is_integer(n) || json_integer_value(n) < 0)
            return false;
        m->shape[i] = json_integer_value(n);
    }
    m->rank = (int)rank;
    int64_t count = shape_count(m->rank, m->shape, m->dtype);
    *bytes = (uint64_t)(count < 0 ? 0 : count) * dtype_size(m->dtype);
    return count >= 0;
}

static bool read_member(const File *f, const char *name, json_t *entry, uint64_t data_bytes,
                        Member *m, uint64_t *begin) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *place = json_object_get(entry, "data_offsets");
    uint64_t bytes;
    *m = (Member){.name = mem_strdup(name), .kind = MEMBER_RAW};
    if (!dtype || json_array_size(place) != 2)
        return file_fail(f, DIAG_R0502, "`%s` in its header has no dtype or no place", name);
    if (!find_dtype(dtype, &m->dtype))
        return file_fail(f, DIAG_R0502, "`%s` is of `%s`, for which there is no dtype", name,
                         mem_strdup(dtype));
    if (!read_shape(json_object_get(entry, "shape"), m, &bytes))
        return file_fail(f, DIAG_R0502, "`%s` in its header has no shape that a tensor can have",
                         name);
    json_int_t from = json_integer_value(json_array_get(place, 0));
    json_int_t to = json_integer_value(json_array_get(place, 1));
    if (from < 0 || to < from || (uint64_t)to > data_bytes || (uint64_t)(to - from) != bytes)
        return file_fail(f, DIAG_R0502, "`%s` in its header has a place that it does not fill",
                         name);
    *begin = (uint64_t)from;
    m->size = m->stored = (size_t)bytes;
    return true;
}

static int compare_places(const void *a, const void *b) {
    const Member *m = a, *n = b;
    return m->p < n->p ? -1 : m->p > n->p ? 1 : (m->size > n->size) - (m->size < n->size);
}

/* Whether the tensors fill the bytes, each after the other. */
static bool is_filled(const MemberVec *members, const unsigned char *data, uint64_t data_bytes) {
    Member *sorted = mem_new_n(Member, members->len + 1);
    if (members->len)
        memcpy(sorted, members->data, members->len * sizeof *sorted);
    qsort(sorted, members->len, sizeof *sorted, compare_places);
    uint64_t at = 0;
    for (size_t i = 0; i < members->len; i++) {
        if ((uint64_t)(sorted[i].p - data) != at)
            return false;
        at += sorted[i].size;
    }
    return at == data_bytes;
}

/* The header while it is read. It is released at its end, or by the collector where memory runs out before. */
typedef struct Header {
    json_t *root;
} Header;

static void release_header(void *p, void *arg) {
    Header *h = p;
    (void)arg;
    json_decref(h->root);
    h->root = NULL;
}

static bool read_members(const File *f, json_t *root, const unsigned char *data,
                         uint64_t data_bytes, MemberVec *out) {
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry) {
        Member m;
        uint64_t begin = 0;
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!read_member(f, name, entry, data_bytes, &m, &begin))
            return false;
        m.p = data + begin;
        vec_push(out, m);
    }
    return is_filled(out, data, data_bytes) ||
           file_fail(f, DIAG_R0502, "its tensors overlap, or leave bytes that are of none");
}

bool safetensors_parse(const File *f, const Bytes *b, MemberVec *out) {
    uint64_t n = header_length(b);
    json_error_t error;
    if (n > b->n - LENGTH_BYTES)
        return file_fail(f, DIAG_R0502, "its header is cut off");
    if (n > MAX_HEADER)
        return file_fail(f, DIAG_R0502, "its header takes more than 100 MB");
    Header *header = mem_new(Header);
    mem_on_unreachable(header, release_header, NULL);
    header->root = json_loadb((const char *)b->p + LENGTH_BYTES, (size_t)n, JSON_REJECT_DUPLICATES,
                              &error);
    if (!header->root)
        return file_fail(f, DIAG_R0502, "its header is no JSON: %s", mem_strdup(error.text));
    const unsigned char *data = b->p + LENGTH_BYTES + n;
    bool ok = read_members(f, header->root, data, b->n - LENGTH_BYTES - n, out);
    release_header(header, NULL);
    return ok;
}

/* ---- writing --------------------------------------------------------------------------------- */

static const char *dtype_name(DType t) {
    for (int i = 0; i < NDTYPES; i++)
        if (dtype_names[i].dtype == t)
            return dtype_names[i].name;
    BUG("safetensors has no name of the dtype %s", dtype_info[t].name);
}

static void add_entry(Str *header, const Leaf *leaf, uint64_t *at) {
    const Tensor *t = leaf->tensor;
    uint64_t bytes = (uint64_t)t->count * dtype_size(t->dtype);
    str_add(header, header->len > 1 ? "," : "");
    diag_add_json_text(header, leaf->name);
    str_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        str_printf(header, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    str_printf(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
               (unsigned long long)(*at + bytes));
    *at += bytes;
}

bool safetensors_write(const File *f, const LeafVec *leaves) {
    Str header = {0};
    uint64_t at = 0;
    str_add_char(&header, '{');
    for (size_t i = 0; i < leaves->len; i++)
        add_entry(&header, &leaves->data[i], &at);
    str_add_char(&header, '}');
    while (header.len % LENGTH_BYTES)
        str_add_char(&header, ' ');
    unsigned char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (unsigned char)((uint64_t)header.len >> (8 * i));
    Output file;
    output_open(&file, f->path);
    output_add(&file, length, sizeof length);
    output_add(&file, header.text, header.len);
    for (size_t i = 0; i < leaves->len; i++) {
        if (file_is_interrupted(f, &file))
            return false;
        const Tensor *t = tensor_canonical(leaves->data[i].tensor);
        output_add(&file, tensor_data(t), (size_t)t->count * dtype_size(t->dtype));
    }
    return file_close(f, &file);
}
