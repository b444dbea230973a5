/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the operators in elementwise.def. */
#include "ops/elementwise.h"

#include "base/mem.h"
#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

#include <math.h>

/* ---- formulas that are more than one call ---------------------------------------------------- */

/* Integers are whole already. */
static Sc whole(ScalarBuilder *b, ScalarOp op, Sc x) {
    return dtype_is_float(sc_type(b, x)) ? sc_op1(b, op, x) : x;
}

static Sc is_infinite(ScalarBuilder *b, Sc x) {
    return dtype_is_float(sc_type(b, x)) ? sc_isinf(b, x) : sc_int(b, DT_BOOL, 0);
}

static Sc is_finite(ScalarBuilder *b, Sc x) {
    DType t = sc_type(b, x);
    return dtype_is_float(t) ? sc_lt(b, sc_abs(b, x), sc_float(b, t, INFINITY))
                             : sc_int(b, DT_BOOL, 1);
}

static Sc trunc_divide(ScalarBuilder *b, Sc x, Sc y) { return whole(b, SC_TRUNC, sc_div(b, x, y)); }

/* ---- arithmetic of sizes: what wraps is an error ---------------------------------------------- */

static bool wraps(ScalarBuilder *b, Sc x) { return !dtype_is_float(sc_type(b, x)); }

static bool is_unsigned(ScalarBuilder *b, Sc x) {
    return dtype_info[sc_type(b, x)].cls == DTC_UINT;
}

static Sc of_type(ScalarBuilder *b, Sc x, int64_t v) { return sc_int(b, sc_type(b, x), v); }

/* x + y grows exactly where y is not negative. */
static Sc checked_add(ScalarBuilder *b, Sc x, Sc y) {
    Sc sum = sc_add(b, x, y), grows = sc_ge(b, sum, x);
    if (wraps(b, x))
        sc_check(b, is_unsigned(b, x) ? grows : sc_eq(b, grows, sc_ge(b, y, of_type(b, x, 0))),
                 KERNEL_SIZE);
    return sum;
}

static Sc checked_subtract(ScalarBuilder *b, Sc x, Sc y) {
    Sc difference = sc_sub(b, x, y), shrinks = sc_le(b, difference, x);
    if (wraps(b, x))
        sc_check(b, is_unsigned(b, x) ? shrinks : sc_eq(b, shrinks, sc_ge(b, y, of_type(b, x, 0))),
                 KERNEL_SIZE);
    return difference;
}

/* x, where it is zero and `value` nan. */
static Sc strong(ScalarBuilder *b, Sc x, Sc value) {
    Sc is_zero = sc_eq(b, x, of_type(b, x, 0));
    return sc_select(b, sc_and(b, is_zero, sc_ne(b, value, value)), x, value);
}

/* The product divided by x is y, but for -1 times the least integer, which both wrap to itself. */
static Sc checked_multiply(ScalarBuilder *b, Sc x, Sc y) {
    Sc product = sc_mul(b, x, y);
    if (!wraps(b, x))
        return product;
    Sc zero = of_type(b, x, 0), one = of_type(b, x, 1), is_zero = sc_eq(b, x, zero);
    Sc quotient = sc_div(b, product, sc_select(b, is_zero, one, x));
    Sc exact = sc_or(b, is_zero, sc_eq(b, quotient, y));
    if (!is_unsigned(b, x)) {
        Sc least = sc_and(b, sc_lt(b, y, zero), sc_lt(b, product, zero));
        exact = sc_and(b, exact, sc_not(b, sc_and(b, least, sc_lt(b, x, zero))));
    }
    sc_check(b, exact, KERNEL_SIZE);
    return product;
}

/* ---- shape and plan -------------------------------------------------------------------------- */

static int elementwise_shape(const OpCall *call, OutSpec *out) {
    out->rank = 0;
    for (uint32_t i = 0; i < call->nin; i++)
        if (!shape_check_dtype(call, (int)i, call->op->dtypes) ||
            (i && !shape_check_same_dtype(call, 0, (int)i)) ||
            !shape_broadcast_into(call, (int)i, out))
            return -1;
    DType t = call->op->elementwise->compares ? DT_BOOL : call->in[0]->dtype;
    return shape_set(call, out, t, out->rank, out->shape) ? 1 : -1;
}

/* The body is the operator's scalar program, built once. */
static bool elementwise_lower(const OpCall *call, Tensor *const *out, Plan *plan) {
    const ScalarProgram *p = scalar_program_find(call->op, call->in[0]->dtype);
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, out[0]->rank, out[0]->shape);
    for (int i = 0; i < p->nargs; i++)
        step_in(&s, call->in[i]);
    step_set_body(&s, p->code, p->n);
    step_result(&s, p->result);
    step_out(&s, out[0]);
    step_end(&s);
    return true;
}

/* ---- formulas -------------------------------------------------------------------------------- */

#define UNARY(symbol, name, set, formula, ...)                                                     \
    static Sc formula_##symbol(ScalarBuilder *b, Sc x) {                                           \
        (void)b;                                                                                   \
        return formula;                                                                            \
    }
#define TEST UNARY
#define BINARY(symbol, name, set, formula, ...)                                                    \
    static Sc formula_##symbol(ScalarBuilder *b, Sc x, Sc y) { return formula; }
#define COMPARE BINARY
#include "ops/elementwise.def"
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE

enum {
#define UNARY(symbol, ...) ELEMENTWISE_##symbol,
#define TEST(symbol, ...) ELEMENTWISE_##symbol,
#define BINARY(symbol, ...) ELEMENTWISE_##symbol,
#define COMPARE(symbol, ...) ELEMENTWISE_##symbol,
#include "ops/elementwise.def"
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE
    ELEMENTWISE_COUNT
};

#define UNARY(symbol, ...) [ELEMENTWISE_##symbol] = {.unary = formula_##symbol},
#define TEST(symbol, ...) [ELEMENTWISE_##symbol] = {.unary = formula_##symbol, .compares = true},
#define BINARY(symbol, ...) [ELEMENTWISE_##symbol] = {.binary = formula_##symbol},
#define COMPARE(symbol, ...)                                                                       \
    [ELEMENTWISE_##symbol] = {.binary = formula_##symbol, .compares = true},
static const Elementwise elementwise_table[ELEMENTWISE_COUNT] = {
#include "ops/elementwise.def"
};
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE

/* ---- scalar programs ------------------------------------------------------------------------- */

/* Constants once built: the same for everyone. */
static const ScalarProgram *programs[ELEMENTWISE_COUNT][DTYPE_COUNT];

static const ScalarProgram *build_program(const Elementwise *e, DType dtype) {
    ScalarBuilder b = {0};
    ScalarProgram *p = mem_new(ScalarProgram);
    Sc x = sc_load(&b, 0, dtype);
    p->nargs = e->unary ? 1 : 2;
    p->result = e->unary ? e->unary(&b, x) : e->binary(&b, x, sc_load(&b, 1, dtype));
    p->code = b.code.data;
    p->n = (int)b.code.len;
    p->in = dtype;
    p->out = e->compares ? DT_BOOL : dtype;
    return p;
}

const ScalarProgram *scalar_program_find(const Op *op, DType dtype) {
    const Elementwise *e = op->elementwise;
    if (!e || !(op->dtypes & DT_BIT(dtype)))
        return NULL;
    const ScalarProgram **slot = &programs[e - elementwise_table][dtype];
    if (!*slot)
        *slot = build_program(e, dtype);
    return *slot;
}

static bool eval_scalar(const Op *op, DType dtype, const ScalarValue *args, int nargs,
                        DType *out_dtype, ScalarValue *out, int32_t *status) {
    const ScalarProgram *p = scalar_program_find(op, dtype);
    if (!p || p->nargs != nargs)
        return false;
    *out_dtype = p->out;
    *status = scalar_program_run(p, args, out);
    return true;
}

bool op_scalar_eval1(const Op *op, DType dtype, ScalarValue x, DType *out_dtype, ScalarValue *out,
                     int32_t *status) {
    return eval_scalar(op, dtype, &x, 1, out_dtype, out, status);
}

bool op_scalar_eval2(const Op *op, DType dtype, ScalarValue x, ScalarValue y, DType *out_dtype,
                     ScalarValue *out, int32_t *status) {
    return eval_scalar(op, dtype, (const ScalarValue[]){x, y}, 2, out_dtype, out, status);
}

/* ---- entries --------------------------------------------------------------------------------- */

#define ENTRY(symbol, op_name, op_args, n, rel, set, kind, meaning, text, value)                   \
    const Op op_##symbol = {.name = op_name,                                                       \
                            .args = op_args,                                                       \
                            .nargs = n,                                                            \
                            .relation = &rel,                                                      \
                            .dtypes = set,                                                         \
                            .pattern = kind,                                                       \
                            .scalar = OP_SCALAR_FORMULA,                                           \
                            .shape = elementwise_shape,                                            \
                            .lower = elementwise_lower,                                            \
                            .elementwise = &elementwise_table[ELEMENTWISE_##symbol],               \
                            .doc = meaning,                                                        \
                            .example = text,                                                       \
                            .example_result = value};
#define UNARY(symbol, name, set, formula, doc, example, result)                                    \
    ENTRY(symbol, name, "x", 1, rel_identity, set, OP_ELEMWISE, doc, example, result)
#define TEST(symbol, name, set, formula, doc, example, result)                                     \
    ENTRY(symbol, name, "x", 1, rel_identity_compare, set, OP_ELEMWISE, doc, example, result)
#define BINARY(symbol, name, set, formula, doc, example, result)                                   \
    ENTRY(symbol, name, "x, y", 2, rel_broadcast, set, OP_BROADCAST, doc, example, result)
#define COMPARE(symbol, name, set, formula, doc, example, result)                                  \
    ENTRY(symbol, name, "x, y", 2, rel_broadcast_compare, set, OP_BROADCAST, doc, example, result)
#include "ops/elementwise.def"
