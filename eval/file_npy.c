/* SPDX-License-Identifier: Apache-2.0 */
/* NPY (magic, version, length, a Python literal, elements) and IDX (magic, sizes, elements). */
#include <stdio.h>
#include <string.h>

#include "eval/file.h"

/* ---- elements -------------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *p, int64_t count, size_t size) {
    for (int64_t i = 0; i < count; i++, p += size)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char c = p[k];
            p[k] = p[size - 1 - k];
            p[size - 1 - k] = c;
        }
}

Tensor *file_elements(const File *f, DType t, int rank, const int64_t *shape, bool big,
                      bool fortran, const unsigned char *p, size_t n) {
    int64_t count = shape_count(rank, shape, t), strides[TENSOR_MAX_RANK], stride = 1;
    size_t size = dtype_size(t);
    if (count < 0 || (size_t)count > n / size) {
        file_fail(f, DIAG_R0502, "it ends before all the elements its header announces");
        return NULL;
    }
    Tensor *made = tensor_new(t, rank, shape);
    unsigned char *to = tensor_data(made);
    if (count)
        memcpy(to, p, (size_t)count * size);
    if (big && size > 1)
        swap_bytes(to, count, size);
    if (t == DT_BOOL)
        for (int64_t i = 0; i < count; i++)
            to[i] = to[i] != 0;
    if (!fortran || rank < 2)
        return made;
    for (int i = 0; i < rank; i++) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return tensor_contiguous(tensor_view(made, rank, shape, strides, 0));
}

/* ---- NPY ------------------------------------------------------------------------------------- */

bool is_npy(const Bytes *b) { return b->n >= 10 && memcmp(b->p, "\x93NUMPY", 6) == 0; }

/* The Python literal of the header, scanned. */
typedef struct Scan {
    const char *p, *end;
} Scan;

static void skip_blanks(Scan *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t'))
        s->p++;
}

static bool take(Scan *s, char c) {
    skip_blanks(s);
    if (s->p >= s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static bool take_text(Scan *s, char *out, size_t room) {
    skip_blanks(s);
    char quote = s->p < s->end ? *s->p : 0;
    size_t n = 0;
    if (quote != '\'' && quote != '"')
        return false;
    for (s->p++; s->p < s->end && *s->p != quote; s->p++) {
        if (n + 1 >= room)
            return false;
        out[n++] = *s->p;
    }
    out[n] = '\0';
    return take(s, quote);
}

static bool take_word(Scan *s, const char *word) {
    size_t n = strlen(word);
    skip_blanks(s);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return false;
    s->p += n;
    return true;
}

static bool take_shape(Scan *s, int *rank, int64_t *shape) {
    if (!take(s, '('))
        return false;
    for (*rank = 0; !take(s, ')');) {
        int64_t v = 0;
        int digits = 0;
        skip_blanks(s);
        for (; s->p < s->end && *s->p >= '0' && *s->p <= '9' && digits < 18; digits++)
            v = v * 10 + (*s->p++ - '0');
        if (digits == 0 || *rank == TENSOR_MAX_RANK)
            return false;
        shape[(*rank)++] = v;
        if (!take(s, ',')) {
            if (!take(s, ')'))
                return false;
            return true;
        }
    }
    return true;
}

static bool npy_dtype(const char *descr, DType *t, bool *big) {
    static const struct {
        const char *name;
        DType t;
    } names[] = {
        {"b1", DT_BOOL}, {"i1", DT_I8},  {"i2", DT_I16}, {"i4", DT_I32},
        {"i8", DT_I64},  {"u1", DT_U8},  {"u2", DT_U16}, {"u4", DT_U32},
        {"u8", DT_U64},  {"f2", DT_F16}, {"f4", DT_F32}, {"f8", DT_F64},
    };
    *big = descr[0] == '>';
    if (strchr("<>|=", descr[0]) && descr[0])
        descr++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(descr, names[i].name) == 0) {
            *t = names[i].t;
            return true;
        }
    return false;
}

bool npy_parse_header(const File *f, const Bytes *b, NpyHeader *out) {
    size_t at = b->p[6] == 1 ? 10 : 12, len = b->p[8] | (size_t)b->p[9] << 8;
    if (b->p[6] > 1 && b->n >= 12)
        len |= (size_t)b->p[10] << 16 | (size_t)b->p[11] << 24;
    if (b->p[6] < 1 || b->p[6] > 3 || b->n < at || len > b->n - at)
        return file_fail(f, DIAG_R0502, "this is no NPY file of version 1, 2 or 3");
    Scan s = {(const char *)b->p + at, (const char *)b->p + at + len};
    char key[32], descr[32] = "";
    bool ok = take(&s, '{'), has_shape = false;
    *out = (NpyHeader){.elements = at + len};
    while (ok && !take(&s, '}')) {
        ok = take_text(&s, key, sizeof key) && take(&s, ':');
        if (ok && strcmp(key, "descr") == 0)
            ok = take_text(&s, descr, sizeof descr);
        else if (ok && strcmp(key, "fortran_order") == 0)
            ok = (out->fortran = take_word(&s, "True")) || take_word(&s, "False");
        else if (ok && strcmp(key, "shape") == 0)
            ok = has_shape = take_shape(&s, &out->rank, out->shape);
        else
            ok = false;
        (void)take(&s, ',');
    }
    if (!ok || !has_shape || !descr[0])
        return file_fail(f, DIAG_R0502, "its NPY header is not one of plain numbers");
    return npy_dtype(descr, &out->dtype, &out->big) ||
           file_fail(f, DIAG_R0502, "its elements are `%s`, for which there is no dtype", descr);
}

Tensor *npy_parse(const File *f, const Bytes *b) {
    NpyHeader h;
    if (!npy_parse_header(f, b, &h))
        return NULL;
    return file_elements(f, h.dtype, h.rank, h.shape, h.big, h.fortran, b->p + h.elements,
                         b->n - h.elements);
}

bool npy_header(const File *f, const Tensor *t, Str *out) {
    static const char *const kinds[] = {
        [DTC_BOOL] = "|b", [DTC_INT] = "<i", [DTC_UINT] = "<u", [DTC_FLOAT] = "<f"};
    if (t->dtype == DT_BF16)
        return file_fail(f, DIAG_R0505, "NPY has no bfloat16; `(float32) x` keeps every value");
    Str dict = {0};
    str_printf(&dict, "{'descr': '%s%zu', 'fortran_order': False, 'shape': (",
               kinds[dtype_info[t->dtype].cls], dtype_size(t->dtype));
    for (int i = 0; i < t->rank; i++)
        str_printf(&dict, "%lld,%s", (long long)t->shape[i], i + 1 < t->rank ? " " : "");
    str_add(&dict, "), }");
    while ((dict.len + 11) % 64)
        str_add_char(&dict, ' ');
    str_add_char(&dict, '\n');
    str_add_n(out, "\x93NUMPY\x01", 8);
    str_add_char(out, (char)(dict.len & 255));
    str_add_char(out, (char)(dict.len >> 8));
    str_add_n(out, dict.text, dict.len);
    return true;
}

bool npy_write(const File *f, const Tensor *t) {
    Str header = {0};
    if (!npy_header(f, t, &header))
        return false;
    t = tensor_canonical(t);
    Output file;
    output_open(&file, f->path);
    output_add(&file, header.text, header.len);
    output_add(&file, tensor_data(t), (size_t)t->count * dtype_size(t->dtype));
    return file_close(f, &file);
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static bool idx_dtype(unsigned char code, DType *t) {
    switch (code) {
    case 0x08: *t = DT_U8; return true;
    case 0x09: *t = DT_I8; return true;
    case 0x0B: *t = DT_I16; return true;
    case 0x0C: *t = DT_I32; return true;
    case 0x0D: *t = DT_F32; return true;
    case 0x0E: *t = DT_F64; return true;
    }
    return false;
}

bool is_idx(const Bytes *b) {
    DType t;
    return b->n >= 8 && b->p[0] == 0 && b->p[1] == 0 && idx_dtype(b->p[2], &t) && b->p[3] > 0 &&
           b->p[3] <= TENSOR_MAX_RANK;
}

bool idx_parse_header(const File *f, const Bytes *b, NpyHeader *out) {
    int rank = b->p[3];
    *out = (NpyHeader){.big = true, .rank = rank, .elements = 4 + 4 * (size_t)rank};
    (void)idx_dtype(b->p[2], &out->dtype);
    if (b->n < out->elements)
        return file_fail(f, DIAG_R0502, "its IDX header is cut off");
    for (int i = 0; i < rank; i++) {
        const unsigned char *p = b->p + 4 + 4 * i;
        out->shape[i] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    return true;
}

Tensor *idx_parse(const File *f, const Bytes *b) {
    NpyHeader h;
    if (!idx_parse_header(f, b, &h))
        return NULL;
    return file_elements(f, h.dtype, h.rank, h.shape, true, false, b->p + h.elements,
                         b->n - h.elements);
}
