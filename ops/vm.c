/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of TVM's machine that are operators on values too: vm.shape_of and vm.reshape_tensor, shape_of and reshape under the
 * names that its compiler gives them. What writes into storage is in the module `memory`. */
#include "base/mem.h"
#include "ops/relate/structured.h"
#include "ops/table.h"

static int shape_of_tensor(const OpCall *call, OutSpec *out) {
    return op_shape_of.shape(call, out);
}

static bool lower_shape_of_tensor(const OpCall *call, Tensor *const *out, Plan *plan) {
    return op_shape_of.lower(call, out, plan);
}

static const AttrSpec shape_attrs[] = {{"dtype", AT_DTYPE, "int64", "the result's dtype"}};
const Op op_vm_shape_of = {
    .name = "vm.shape_of",
    .args = "tensor",
    .nargs = 1,
    .attrs = shape_attrs,
    .nattrs = 1,
    .relation = &rel_shape_of,
    .dtypes = DTS_ALL,
    .pattern = OP_OPAQUE,
    .shape = shape_of_tensor,
    .lower = lower_shape_of_tensor,
    .doc = "The sizes of a tensor's axes: shape_of, as TVM's machine calls it.",
    .example = "vm.shape_of([[1.0, 2.0, 3.0]])",
    .example_result = "[1, 3] : Tensor[(2,), int64]",
    .see_also = "shape_of",
};

/* ---- vm.reshape_tensor ------------------------------------------------------------------------ */

/* reshape under this name, of the first tensor alone. */
static const Op *named_reshape(void) {
    Op *op = mem_new(Op);
    *op = op_reshape;
    op->name = "vm.reshape_tensor";
    return op;
}

static int shape_reshape_tensor(const OpCall *call, OutSpec *out) {
    OpCall sub = *call;
    sub.op = named_reshape();
    sub.nin = 1;
    if (!shape_check_dtype(call, 1, DTS_INT) || !shape_check_rank(call, 1, 1))
        return -1;
    return op_reshape.shape(&sub, out);
}

static RelStatus relate_reshape_tensor(Solver *s, Relation *r) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status))
        return status;
    if (!rel_make_rank(s, r, 1, 1))
        return REL_FAIL;
    uint32_t rank;
    Type **dims;
    if (rel_rank_in(r->args[1], &rank, &dims) && rank != 1) {
        rel_error(s, r, DIAG_R0313, "`vm.reshape_tensor`: `shape` has %u axes, not 1", rank);
        return REL_FAIL;
    }
    Relation sub = *r;
    sub.op = named_reshape();
    sub.def = op_reshape.relation;
    sub.nargs = 2;
    sub.args = mem_new_n(Type *, 2);
    sub.args[0] = r->args[0];
    sub.args[1] = rel_result_arg(r);
    return sub.def->relate(s, &sub);
}

static bool lower_reshape_tensor(const OpCall *call, Tensor *const *out, Plan *plan) {
    OpCall sub = *call;
    sub.op = &op_reshape;
    sub.nin = 1;
    return op_reshape.lower(&sub, out, plan);
}

static const AttrSpec reshape_attrs[] = {
    {"newshape", AT_DIMS, NULL, "the new sizes"},
    {"allowzero", AT_BOOL, "True", "0 is the size 0 and copies nothing"},
};
static const RelDef rel_reshape_tensor = {"ReshapeTensor", relate_reshape_tensor, 3, false};
const Op op_vm_reshape_tensor = {
    .name = "vm.reshape_tensor",
    .args = "data, shape",
    .nargs = 2,
    .attrs = reshape_attrs,
    .nattrs = 2,
    .relation = &rel_reshape_tensor,
    .dtypes = DTS_ALL,
    .pattern = OP_INJECTIVE,
    .shape = shape_reshape_tensor,
    .refuses_sizes = true,
    .lower = lower_reshape_tensor,
    .doc =
        "data in the shape newshape, which TVM's machine reads from `shape` too: reshape, as its\n"
        "compiler calls it.",
    .example = "vm.reshape_tensor([1.0, 2.0, 3.0, 4.0], [2, 2], newshape=[2, 2])",
    .example_result = "[[1.0, 2.0],\n [3.0, 4.0]] : Tensor[(2, 2), float32]",
    .see_also = "reshape",
};
