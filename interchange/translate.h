/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX model as Relay text. Importing a model and converting it are this one translation: the session reads
 * the text as a module, `relay convert` writes it to a file.
 *
 *     type Weights { Weights { fc_weight: Tensor[(4, 3), float32] } }
 *     type Stored { Stored { weights: Weights } }
 *     let stored: Stored = load("m.onnx");
 *     let weights: Weights = stored.weights;
 *     def run[batch](w: Weights, x: Tensor[(batch, 3), float32]) {
 *       let h = x @@ transpose(w.fc_weight);  // Gemm "fc"
 *       h
 *     }
 *     type Model[w, f] { Model { weights: w, run: f } }
 *     let model = Model { weights: weights, run: run };
 *
 * Initializers of float dtypes are weights, so that `grad` gives a derivative for each. Integers and bools are
 * literals where they stand, or fields of `constants` when there are many. All of them are read from the model's
 * own file, or from the safetensors file that `relay convert` writes, by the same names. */
#ifndef INTERCHANGE_TRANSLATE_H
#define INTERCHANGE_TRANSLATE_H

#include "interchange/onnx.h"

/* A tensor of the model under the name it is loaded by. */
typedef struct OnnxMember {
    const char *path;  /* "weights.fc_weight" */
    const char *field; /* "fc_weight" */
    bool weight;
    const OnnxTensor *tensor;
} OnnxMember;
typedef VEC(OnnxMember) OnnxMembers;
void onnx_find_members(const OnnxModel *m, OnnxMembers *out);

/* An input or output of the model. */
typedef struct OnnxPort {
    const char *name; /* in the model */
    const char *type; /* in Relay; of outputs NULL */
    bool many;        /* a sequence */
} OnnxPort;
typedef VEC(OnnxPort) OnnxPorts;

/* An input whose value is known before the translation: it may then be an axis, a shape or whatever else has to
 * be constant. */
typedef struct OnnxKnown {
    const char *name;
    DType dtype;
    int rank;
    const int64_t *shape;
    const void *data;
} OnnxKnown;
typedef struct OnnxKnowns {
    OnnxKnown *data;
    size_t len, cap;
} OnnxKnowns;

typedef struct OnnxProgram {
    Str text;
    Str entry; /* `main`, a function of the inputs alone: what is written as an ONNX model again */
    OnnxPorts inputs, outputs;
} OnnxProgram;

/* weights_path: the file that the text loads. False after one diagnostic that lists all that is missing. */
bool onnx_translate(const OnnxModel *m, const char *weights_path, const OnnxKnowns *known,
                    Diags *diags, OnnxProgram *out);

#endif
