/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX model as its file has it (onnx.proto of the ONNX project, IR versions 3 to 13): messages as
 * structs, numbers checked against the bytes that are there. What the model means is translate.h's.
 *
 * Nothing large is copied: the elements of tensors stay where they lie in the file's bytes, which must
 * outlive the model. Structs are made only for messages that take bytes in the file, so the memory of a model is bounded by
 * a small constant times the size of its file. */
#ifndef INTERCHANGE_ONNX_H
#define INTERCHANGE_ONNX_H

#include "base/diag.h"
#include "base/span.h"
#include "base/vec.h"
#include "interchange/wire.h"
#include "tensor/dtype.h"

typedef VEC(const char *) OnnxNames;
typedef VEC(int64_t) OnnxInts;

/* TensorProto.DataType */
typedef enum OnnxDType {
    ONNX_UNDEFINED = 0,
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_UINT16 = 4,
    ONNX_INT16 = 5,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9,
    ONNX_FLOAT16 = 10,
    ONNX_DOUBLE = 11,
    ONNX_UINT32 = 12,
    ONNX_UINT64 = 13,
    ONNX_COMPLEX64 = 14,
    ONNX_COMPLEX128 = 15,
    ONNX_BFLOAT16 = 16,
} OnnxDType;
#define ONNX_MOST_SIZE (INT64_C(1) << 40)
bool onnx_find_dtype(int64_t type, DType *out); /* false: Relay has none */
int64_t onnx_dtype_of(DType dtype);
const char *onnx_dtype_name(int64_t type); /* "float8e4m3fn", or a number in words */

typedef struct OnnxTensor {
    const char *name;
    int64_t type;
    int rank;
    const int64_t *dims;
    int64_t count; /* of elements */
    const unsigned char
        *data; /* little-endian; NULL: outside of the file, or of a type Relay has not */
    size_t bytes;
    const char *location;   /* external data: a file beside the model; else NULL */
    int64_t offset, length; /* of external data; length -1: to the end */
    const char *wrong;      /* why it has no elements, or NULL */
} OnnxTensor;
typedef VEC(OnnxTensor *) OnnxTensors;

typedef struct OnnxGraph OnnxGraph;

/* AttributeProto.AttributeType */
typedef enum OnnxAttrType {
    ONNX_ATTR_UNDEFINED,
    ONNX_ATTR_FLOAT,
    ONNX_ATTR_INT,
    ONNX_ATTR_STRING,
    ONNX_ATTR_TENSOR,
    ONNX_ATTR_GRAPH,
    ONNX_ATTR_FLOATS,
    ONNX_ATTR_INTS,
    ONNX_ATTR_STRINGS,
    ONNX_ATTR_TENSORS,
    ONNX_ATTR_GRAPHS,
    ONNX_ATTR_SPARSE_TENSOR,
    ONNX_ATTR_SPARSE_TENSORS,
    ONNX_ATTR_TYPE,
    ONNX_ATTR_TYPES,
} OnnxAttrType;

typedef struct OnnxAttr {
    const char *name;
    const char
        *refers; /* in a function of the model: the attribute of the call that it is, or NULL */
    OnnxAttrType type;
    float f;
    int64_t i;
    const char *s;
    OnnxTensor *tensor;
    OnnxGraph *graph;
    VEC(float) floats;
    OnnxInts ints;
    OnnxNames strings;
    bool used; /* a translator asked for it */
} OnnxAttr;

typedef struct OnnxNode {
    const char *name, *op, *domain; /* domain "": ONNX's own */
    OnnxNames inputs, outputs;      /* "": left out */
    VEC(OnnxAttr *) attrs;
} OnnxNode;

typedef enum OnnxTypeKind {
    ONNX_TYPE_NONE, /* the model does not say */
    ONNX_TYPE_TENSOR,
    ONNX_TYPE_SEQUENCE,
    ONNX_TYPE_OPTIONAL,
    ONNX_TYPE_MAP,
    ONNX_TYPE_SPARSE,
} OnnxTypeKind;
typedef struct OnnxDim {
    int64_t size;      /* -1: not known */
    const char *param; /* its name, or NULL */
} OnnxDim;
typedef struct OnnxType {
    OnnxTypeKind kind;
    int64_t elem; /* of a tensor */
    bool has_shape;
    VEC(OnnxDim) dims;
    struct OnnxType *of; /* of a sequence or an optional */
} OnnxType;
typedef struct OnnxValue {
    const char *name;
    OnnxType *type; /* never NULL */
} OnnxValue;
typedef VEC(OnnxValue *) OnnxValues;

struct OnnxGraph {
    const char *name;
    VEC(OnnxNode *) nodes;
    OnnxTensors initializers;
    size_t sparse; /* sparse initializers, which are not read */
    OnnxValues inputs, outputs, infos;
};

typedef struct OnnxFunction {
    const char *name, *domain;
    OnnxNames inputs, outputs, attr_names;
    VEC(OnnxAttr *) defaults;
    VEC(OnnxNode *) nodes;
} OnnxFunction;

typedef struct OnnxModel {
    const char *path; /* as the user wrote it */
    Span at;          /* who asks for it */
    int64_t ir_version;
    const char *producer, *producer_version;
    int64_t opset; /* of ONNX's own domain; 0: none is named */
    OnnxNames domains;
    OnnxGraph *graph;
    VEC(OnnxFunction *) functions;
} OnnxModel;

/* Whether the bytes look like a model: fields of a ModelProto with a graph among them. */
bool onnx_is_model(const unsigned char *p, size_t n);
/* at: who asks for the model. NULL after a diagnostic, which names the file. */
OnnxModel *onnx_read(const char *path, const unsigned char *p, size_t n, Span at, Diags *diags);

enum { ONNX_MAX_DEPTH = 32, ONNX_MAX_RANK = 16 };

#endif
