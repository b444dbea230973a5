/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that give their argument as it is and tell a compiler something about it: TVM's annotations, which its
 * modules contain. And reinterpret, which gives its bits. */
#include "ops/relate/signature.h"

static bool lower_same(const OpCall *call, Tensor *const *out, Plan *plan) {
    plan_copy(plan, out[0], call->in[0]);
    return true;
}

#define SAME(symbol, rel, op_name, op_attrs, n, meaning)                                           \
    SIGNATURE_OP(symbol, rel, op_name, "data", 1, (.text = "all(...) -> =0(...)"),                 \
                 .attrs = op_attrs, .nattrs = n, .dtypes = DTS_ALL, .pattern = OP_ELEMWISE,        \
                 .scalar = OP_SCALAR_SELF, .lower = lower_same,                                    \
                 .doc = "data itself. In TVM's modules: " meaning ".",                             \
                 .example = op_name "([1.0, 2.0])",                                                \
                 .example_result = "[1.0, 2.0] : Tensor[(2,), float32]", .see_also = "copy")

static const AttrSpec hint_attrs[] = {{"dtype", AT_DTYPE, "None", "not used"}};
static const AttrSpec compiler_attrs[] = {{"compiler", AT_STRING, "\"\"", "not used"}};
static const AttrSpec debug_attrs[] = {{"debug_func", AT_STRING, "\"\"", "not used"}};
static const AttrSpec copy_attrs[] = {
    {"src_virtual_device", AT_STRING, "\"\"", "not used: there is one device"},
    {"dst_virtual_device", AT_STRING, "\"\"", "not used: there is one device"},
};
static const AttrSpec device_attrs[] = {
    {"virtual_device", AT_STRING, "\"\"", "not used: there is one device"},
    {"constrain_result", AT_BOOL, "False", "not used"},
    {"constrain_body", AT_BOOL, "True", "not used"},
};

SAME(annotation_bitpack_end, "BitpackEnd", "annotation.bitpack_end", NULL, 0,
     "the end of what is computed in packed bits")
SAME(annotation_bitpack_start, "BitpackStart", "annotation.bitpack_start", NULL, 0,
     "the beginning of what is computed in packed bits")
SAME(annotation_cast_hint, "CastHint", "annotation.cast_hint", hint_attrs, 1,
     "the dtype that quantisation may give it")
SAME(annotation_checkpoint, "AnnotationCheckpoint", "annotation.checkpoint", NULL, 0,
     "a value that derivatives keep; see the function checkpoint")
SAME(annotation_compiler_begin, "CompilerBegin", "annotation.compiler_begin", compiler_attrs, 1,
     "the beginning of what another compiler takes")
SAME(annotation_compiler_end, "CompilerEnd", "annotation.compiler_end", compiler_attrs, 1,
     "the end of what another compiler takes")
SAME(annotation_stop_fusion, "StopFusion", "annotation.stop_fusion", NULL, 0,
     "nothing is fused across it")
SAME(debug, "Debug", "debug", debug_attrs, 1, "a function of the debugger is called with it")
SAME(device_copy, "DeviceCopy", "device_copy", copy_attrs, 2, "a copy on another device")
SAME(on_device, "OnDevice", "on_device", device_attrs, 3, "it is computed on a device")

/* ---- reinterpret ------------------------------------------------------------------------------ */

static bool has_same_bits(const OpCall *call, DType to) {
    DType from = call->in[0]->dtype;
    if (dtype_size(from) == dtype_size(to))
        return true;
    shape_error(call, DIAG_R0613, "%s has %d bits, %s has %d", dtype_info[from].name,
                8 * (int)dtype_size(from), dtype_info[to].name, 8 * (int)dtype_size(to));
    return false;
}

/* An integer of as many bits as an element has, or with a sign. */
static DType bits_of(DType t, bool has_sign) {
    switch (dtype_size(t)) {
    case 1: return has_sign ? DT_I8 : DT_U8;
    case 2: return has_sign ? DT_I16 : DT_U16;
    case 4: return has_sign ? DT_I32 : DT_U32;
    default: return has_sign ? DT_I64 : DT_U64;
    }
}

/* Both tensors are taken for ones of integers, since floats of 16 bits are widened where they are loaded. The two
 * kinds of integers differ, so that the result is no view of the argument. */
static bool lower_reinterpret(const OpCall *call, Tensor *const *out, Plan *plan) {
    const Tensor *x = call->in[0];
    bool truth = out[0]->dtype == DT_BOOL;
    if (!has_same_bits(call, out[0]->dtype))
        return false;
    DType from = bits_of(x->dtype, true), to = truth ? DT_BOOL : bits_of(x->dtype, false);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, x->rank, x->shape);
    int in = step_in(&s, x);
    s.in_types[in] = from;
    Sc v = sc_load(&s.body, in, from);
    if (truth)
        sc_ne(&s.body, v, sc_int(&s.body, from, 0));
    else
        sc_bits(&s.body, v, to);
    int written = step_out(&s, out[0]);
    s.out_types[written] = to;
    step_end(&s);
    return true;
}

static const AttrSpec reinterpret_attrs[] = {{"dtype", AT_DTYPE, NULL, "of the result"}};
SIGNATURE_OP(reinterpret, "Reinterpret", "reinterpret", "data", 1,
             (.text = "all(...) -> @dtype(...)"), .attrs = reinterpret_attrs, .nattrs = 1,
             .dtypes = DTS_ALL, .pattern = OP_OPAQUE, .lower = lower_reinterpret,
             .doc = "The bits of data as elements of another dtype, which has as many.",
             .example = "reinterpret([1.0, -2.0], dtype=int32)",
             .example_result = "[1065353216, -1073741824] : Tensor[(2,), int32]",
             .see_also = "cast")
