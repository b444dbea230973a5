/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters as TVM stores them (`relay.save_param_dict`, a `.params` file): in little-endian numbers, LIST_MAGIC, 8
 * bytes that are reserved, the names (how many, then for each its length and bytes), and as many arrays: ARRAY_MAGIC, 8
 * reserved bytes, the device (its kind and number, int32 each; 1: the CPU), the rank in 4 bytes, the element type (a byte
 * for its kind, one for its bits, two for its lanes, as DLPack numbers them), the shape in 8 bytes an axis, how many
 * bytes the elements take in 8, and these. (TVM's src/runtime/file_utils.cc and include/tvm/runtime/ndarray.h.) */
#include <string.h>

#include "base/diag.h"
#include "base/map.h"
#include "eval/file.h"

#define LIST_MAGIC 0xF7E58D4F05049CB7u
#define ARRAY_MAGIC 0xDD5E40F096B4A13Fu

enum { CPU = 1 };
typedef enum ElementKind {
    KIND_INT = 0,
    KIND_UINT = 1,
    KIND_FLOAT = 2,
    KIND_BFLOAT = 4
} ElementKind;

static const struct {
    unsigned char kind, bits;
    DType dtype;
} element_types[] = {
    {KIND_UINT, 1, DT_BOOL},    {KIND_UINT, 8, DT_U8},   {KIND_INT, 8, DT_I8},
    {KIND_UINT, 16, DT_U16},    {KIND_INT, 16, DT_I16},  {KIND_FLOAT, 16, DT_F16},
    {KIND_BFLOAT, 16, DT_BF16}, {KIND_UINT, 32, DT_U32}, {KIND_INT, 32, DT_I32},
    {KIND_FLOAT, 32, DT_F32},   {KIND_UINT, 64, DT_U64}, {KIND_INT, 64, DT_I64},
    {KIND_FLOAT, 64, DT_F64},
};
enum { NELEMENT_TYPES = sizeof element_types / sizeof *element_types };

/* ---- reading --------------------------------------------------------------------------------- */

/* What is left of the file. */
typedef struct Rest {
    const unsigned char *p;
    size_t n;
} Rest;

/* So many bytes; NULL where the file has fewer. */
static const unsigned char *take_bytes(Rest *r, uint64_t n) {
    const unsigned char *p = r->p;
    if (n > r->n)
        return NULL;
    r->p += n;
    r->n -= (size_t)n;
    return p;
}

/* A number of so many bytes; false where the file has ended. */
static bool take(Rest *r, int bytes, uint64_t *out) {
    const unsigned char *p = take_bytes(r, (uint64_t)bytes);
    if (!p)
        return false;
    *out = 0;
    for (int i = bytes; i-- > 0;)
        *out = *out << 8 | p[i];
    return true;
}

bool is_params(const Bytes *b) {
    Rest r = {b->p, b->n};
    uint64_t magic;
    return take(&r, 8, &magic) && magic == LIST_MAGIC;
}

static bool cut_off(const File *f) { return file_fail(f, DIAG_R0502, "it is cut off"); }

static bool read_names(const File *f, Rest *r, MemberVec *out) {
    Map seen = {0};
    uint64_t count, length;
    size_t end;
    if (!take(r, 8, &count))
        return cut_off(f);
    for (uint64_t i = 0; i < count; i++) {
        Member m = {.kind = MEMBER_RAW};
        const char *text = take(r, 8, &length) ? (const char *)take_bytes(r, length) : NULL;
        if (!text)
            return cut_off(f);
        if (!text_is_utf8(text, (size_t)length, &end) || memchr(text, 0, (size_t)length))
            return file_fail(f, DIAG_R0502, "the name of its tensor %llu is no text",
                             (unsigned long long)i);
        m.name = mem_strndup(text, (size_t)length);
        const Symbol *name = sym_intern(m.name);
        if (map_has(&seen, name))
            return file_fail(f, DIAG_R0502, "the name `%s` stands in it twice", m.name);
        map_set(&seen, name, out);
        vec_push(out, m);
    }
    return take(r, 8, &length)
               ? length == count || file_fail(f, DIAG_R0502, "it names %llu of %llu tensors",
                                              (unsigned long long)count, (unsigned long long)length)
               : cut_off(f);
}

static bool find_dtype(uint64_t kind, uint64_t bits, uint64_t lanes, DType *out) {
    for (int i = 0; i < NELEMENT_TYPES; i++)
        if (element_types[i].kind == kind && element_types[i].bits == bits && lanes == 1) {
            *out = element_types[i].dtype;
            return true;
        }
    return false;
}

static bool read_array(const File *f, Rest *r, Member *m) {
    uint64_t magic, reserved, device, number, rank, kind, bits, lanes, axis, bytes;
    if (!take(r, 8, &magic) || !take(r, 8, &reserved) || !take(r, 4, &device) ||
        !take(r, 4, &number) || !take(r, 4, &rank) || !take(r, 1, &kind) || !take(r, 1, &bits) ||
        !take(r, 2, &lanes))
        return cut_off(f);
    if (magic != ARRAY_MAGIC)
        return file_fail(f, DIAG_R0502, "where `%s` should stand is no tensor", m->name);
    if (device != CPU)
        return file_fail(f, DIAG_R0502, "`%s` is of another device than the CPU", m->name);
    if (!find_dtype(kind, bits, lanes, &m->dtype))
        return file_fail(
            f, DIAG_R0502,
            "`%s` is of DLPack's element type (%llu, %llu bits, %llu lanes), for which there is "
            "no dtype",
            m->name, (unsigned long long)kind, (unsigned long long)bits, (unsigned long long)lanes);
    if (rank > TENSOR_MAX_RANK)
        return file_fail(f, DIAG_R0502, "`%s` has no shape that a tensor can have", m->name);
    m->rank = (int)rank;
    for (int i = 0; i < m->rank; i++) {
        if (!take(r, 8, &axis))
            return cut_off(f);
        m->shape[i] = (int64_t)axis;
    }
    int64_t count = shape_count(m->rank, m->shape, m->dtype);
    if (count < 0)
        return file_fail(f, DIAG_R0502, "`%s` has no shape that a tensor can have", m->name);
    if (!take(r, 8, &bytes))
        return cut_off(f);
    if (bytes != (uint64_t)count * dtype_size(m->dtype))
        return file_fail(f, DIAG_R0502, "`%s` takes other than the bytes of its shape", m->name);
    m->p = take_bytes(r, bytes);
    m->size = m->stored = (size_t)bytes;
    return m->p || cut_off(f);
}

bool params_parse(const File *f, const Bytes *b, MemberVec *out) {
    Rest r = {b->p, b->n};
    uint64_t magic, reserved;
    if (!take(&r, 8, &magic) || !take(&r, 8, &reserved))
        return cut_off(f);
    if (!read_names(f, &r, out))
        return false;
    for (size_t i = 0; i < out->len; i++)
        if (!read_array(f, &r, &out->data[i]))
            return false;
    return r.n == 0 || file_fail(f, DIAG_R0502, "bytes stand after its last tensor");
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put(Output *file, uint64_t value, int bytes) {
    unsigned char text[8];
    for (int i = 0; i < bytes; i++)
        text[i] = (unsigned char)(value >> (8 * i));
    output_add(file, text, (size_t)bytes);
}

static void put_array(Output *file, const Tensor *t) {
    size_t bytes = (size_t)t->count * dtype_size(t->dtype);
    put(file, ARRAY_MAGIC, 8);
    put(file, 0, 8);
    put(file, CPU, 4);
    put(file, 0, 4);
    put(file, (uint64_t)t->rank, 4);
    for (int i = 0; i < NELEMENT_TYPES; i++)
        if (element_types[i].dtype == t->dtype) {
            put(file, element_types[i].kind, 1);
            put(file, element_types[i].bits, 1);
        }
    put(file, 1, 2);
    for (int i = 0; i < t->rank; i++)
        put(file, (uint64_t)t->shape[i], 8);
    put(file, bytes, 8);
    output_add(file, tensor_data(t), bytes);
}

bool params_write(const File *f, const LeafVec *leaves) {
    Output file;
    output_open(&file, f->path);
    put(&file, LIST_MAGIC, 8);
    put(&file, 0, 8);
    put(&file, leaves->len, 8);
    for (size_t i = 0; i < leaves->len; i++) {
        size_t length = strlen(leaves->data[i].name);
        put(&file, length, 8);
        output_add(&file, leaves->data[i].name, length);
    }
    put(&file, leaves->len, 8);
    for (size_t i = 0; i < leaves->len; i++) {
        if (file_is_interrupted(f, &file))
            return false;
        put_array(&file, tensor_canonical(leaves->data[i].tensor));
    }
    return file_close(f, &file);
}
