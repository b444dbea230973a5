/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign operators on tensors: the callee is this program itself, whose symbols are exported. */
#include "check.h"

#include "eval/foreign.h"

/* The beginning of DLPack's DLTensor, as a callee sees it. */
typedef struct Dl {
    double *data;
    int32_t device[2], ndim, dtype;
    int64_t *shape;
} Dl;

void foreign_twice(const Dl *x, Dl *out);
void foreign_twice(const Dl *x, Dl *out) {
    for (int64_t i = 0; i < x->shape[0]; i++)
        out->data[i] = 2 * x->data[i];
    x->shape[0] = 1000000; /* must be seen by nobody */
    out->shape[0] = 7;
}

static Type *vector(Type *size) { return type_tensor(type_shape(&size, 1), type_dtype(DT_F64)); }

TEST(the_callee_has_a_copy_of_the_sizes) {
    Diags diags = {0};
    Type *n = type_param(sym_intern("n"), KIND_DIM), *param = vector(n);
    Foreign foreign = {.library = "",
                       .symbol = "foreign_twice",
                       .type = type_fn(&param, 1, vector(n), type_allocates())};
    Op op = {.name = "twice", .nargs = 1, .foreign = &foreign};
    CHECK(foreign_bind(&op, &diags));
    int64_t size = 3;
    Tensor *x = tensor_new(DT_F64, 1, &size), *out = tensor_new(DT_F64, 1, &size);
    for (int i = 0; i < 3; i++)
        ((double *)tensor_data(x))[i] = i;
    OpCall call = {.op = &op, .nin = 1, .in = &x, .diags = &diags};
    OutSpec spec;
    CHECK_INT(op.shape(&call, &spec), 1);
    CHECK_INT(spec.shape[0], 3);
    CHECK(op.eval(&call, &out));
    CHECK_INT(x->shape[0], 3);
    CHECK_INT(out->shape[0], 3);
    CHECK(((double *)tensor_data(out))[2] == 4.0);
}

int main(void) {
    mem_init();
    RUN(the_callee_has_a_copy_of_the_sizes);
    return check_result();
}
