/* SPDX-License-Identifier: Apache-2.0 */
/* Files of data: NPY and NPZ (NumPy's format documents, versions 1 to 3), safetensors, TVM's
 * parameters, PNG, IDX (MNIST's page), CSV (RFC 4180). Contents decide the format, not names. Any of them may be gzip'd.
 *
 * Files are hostile: every number in them is checked against the bytes that are there before it is
 * used. What is read is held in a tensor's buffer, so that it counts as memory of the program. */
#ifndef EVAL_FILE_H
#define EVAL_FILE_H

#include "base/output.h"
#include "eval/builtin_all.h"

/* One file being read or written; for messages. */
typedef struct File {
    const BuiltinCall *call; /* NULL: mistakes are not reported */
    const char *path;        /* as the program wrote it */
    const char *member;      /* of an archive; NULL */
} File;

/* Reports `path`: what. Always false. */
bool file_fail(const File *f, DiagCode code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

typedef struct Bytes {
    const unsigned char *p;
    size_t n;
    Tensor *owner; /* what holds them; released by bytes_release */
} Bytes;
void bytes_release(Bytes *b);

/* The whole file, inflated when it is gzip'd. Looked for from the working directory, then beside
 * the running script. */
bool file_read(const File *f, Bytes *out);
/* Where the file is. */
const char *file_find_path(const File *f);
/* Inflates a deflate (gzip: with its header) stream. expected: bytes it must give, or -1. */
bool bytes_inflate(const File *f, const unsigned char *p, size_t n, bool gzip, int64_t expected,
                   Bytes *out);

/* ---- formats: NULL or false after a diagnostic ----------------------------------------------- */
/* What stands before the elements of NPY and IDX. */
typedef struct NpyHeader {
    DType dtype;
    bool big, fortran;
    int rank;
    int64_t shape[TENSOR_MAX_RANK];
    size_t elements; /* where they begin */
} NpyHeader;
bool npy_parse_header(const File *f, const Bytes *b, NpyHeader *out);
bool idx_parse_header(const File *f, const Bytes *b, NpyHeader *out);
bool is_npy(const Bytes *b);
Tensor *npy_parse(const File *f, const Bytes *b);
/* The bytes before the elements; false: the dtype has no NPY form. */
bool npy_header(const File *f, const Tensor *t, Str *out);
bool is_idx(const Bytes *b);
Tensor *idx_parse(const File *f, const Bytes *b);
bool is_zip(const Bytes *b);

/* One tensor of an archive. */
typedef enum MemberKind {
    MEMBER_STORED,   /* an NPY file as it is */
    MEMBER_DEFLATED, /* an NPY file, compressed */
    MEMBER_RAW,      /* elements, whose dtype and shape the archive says */
} MemberKind;
typedef struct Member {
    const char *name; /* without ".npy" */
    const unsigned char *p;
    size_t stored, size;
    uint32_t crc; /* of NPY files */
    MemberKind kind;
    DType dtype; /* of RAW */
    int rank;
    int64_t shape[TENSOR_MAX_RANK];
} Member;
typedef VEC(Member) MemberVec;
bool zip_parse(const File *f, const Bytes *b, MemberVec *out);
Tensor *zip_tensor(const File *f, const Member *m);
bool is_safetensors(const Bytes *b);
bool safetensors_parse(const File *f, const Bytes *b, MemberVec *out);
bool is_params(const Bytes *b);
bool params_parse(const File *f, const Bytes *b, MemberVec *out);
bool is_onnx(const Bytes *b);
bool onnx_parse(const File *f, const Bytes *b, MemberVec *out); /* its weights and constants */
/* An archive of any of these kinds. */
bool is_archive(const Bytes *b);
bool archive_parse(const File *f, const Bytes *b, MemberVec *out);
Tensor *archive_tensor(const File *f, const Member *m);

/* A tensor of the elements at p; n bytes are there. big: most significant byte first; fortran: the first
 * axis is the fastest. */
Tensor *file_elements(const File *f, DType t, int rank, const int64_t *shape, bool big,
                      bool fortran, const unsigned char *p, size_t n);

bool is_png(const Bytes *b);
/* (height, width, channels): 1 grey, 2 grey with alpha, 3 colour, 4 with alpha; uint8, or uint16. */
Tensor *png_parse(const File *f, const Bytes *b);

/* How archives name the parts of data: a path, and a field by its name, else its number. */
const char *file_join_path(const char *path, const char *name);
const char *file_part_name(const Ctor *c, uint32_t i);

/* ---- writing: false after a diagnostic --------------------------------------------------------- */

typedef struct Leaf {
    const char *name;
    Tensor *tensor;
} Leaf;
typedef VEC(Leaf) LeafVec;
/* Whether the program was interrupted; then what was there before stays. */
bool file_is_interrupted(const File *f, Output *file);
/* Ends a file being written: false after R0505 when some of it could not be. */
bool file_close(const File *f, Output *file);
bool zip_write(const File *f, const LeafVec *leaves); /* stored */
bool safetensors_write(const File *f, const LeafVec *leaves);
bool params_write(const File *f, const LeafVec *leaves);
bool npy_write(const File *f, const Tensor *t);
bool csv_write(const File *f, const Tensor *t);
bool png_write(const File *f, const Tensor *t);

/* Rows and columns, without a first line that is a heading. */
bool csv_count(const File *f, const Bytes *b, int64_t *rows, int64_t *columns, bool *heading);
/* Numbers of dtype t; a first line that is none is a heading. rank 1: one row or one column. */
Tensor *csv_parse(const File *f, const Bytes *b, DType t, int rank);

#endif
