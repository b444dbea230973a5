/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar programs: the bodies and epilogues of recipes (ops/recipe/recipe.h), and the one definition of
 * each scalar function.
 *
 * Every call appends instructions and returns the position of its value. The dtype of an
 * instruction is that of its operands, so only leaves name one. Values are never float16 or
 * bfloat16: loads give float32 for them and stores round once (sc_type_of).
 *
 *     Sc x = sc_load(b, 0, DT_F32), y = sc_load(b, 1, DT_F32);
 *     sc_add(b, x, y);                    // the last instruction is the result
 *
 * The functions (sc_exp …) are defined for float32 and float64 as sequences of fma, multiply, add,
 * select and bit operations, so that both engines give the same bits; their errors in units in the
 * last place stand beside them and are tested by tests/unit/ops_scalar.c. Rare functions are one
 * call of the C library an element, in both engines. */
#ifndef OPS_RECIPE_SCALAR_H
#define OPS_RECIPE_SCALAR_H

#include "base/vec.h"
#include "ops/recipe/recipe.h"

typedef int32_t Sc; /* the position of a value */

typedef struct ScalarBuilder {
    VEC(Scalar) code;
} ScalarBuilder;

/* The dtype a stored element has in a scalar program. */
static inline DType sc_type_of(DType stored) {
    return stored == DT_F16 || stored == DT_BF16 ? DT_F32 : stored;
}
/* The dtype of a value: bool for comparisons and checks. */
DType sc_type(const ScalarBuilder *b, Sc v);

/* ---- leaves ---------------------------------------------------------------------------------- */

Sc sc_int(ScalarBuilder *b, DType type, int64_t v);    /* of any dtype; converted to it */
Sc sc_float(ScalarBuilder *b, DType type, double v);   /* float32, float64 */
Sc sc_param(ScalarBuilder *b, DType type, int number); /* iparams or fparams by class */
Sc sc_iota(ScalarBuilder *b, int axis);                /* int64 */
Sc sc_load(ScalarBuilder *b, int operand, DType stored);
Sc sc_load_at(ScalarBuilder *b, int operand, DType stored, Sc offset);
/* `otherwise` where cond does not hold; nothing is read there. */
Sc sc_load_if(ScalarBuilder *b, int operand, DType stored, Sc offset, Sc cond, double otherwise);
Sc sc_acc(ScalarBuilder *b, DType type); /* epilogues: the folded value */
/* Where cond does not hold, the kernel ends with that status. */
Sc sc_check(ScalarBuilder *b, Sc cond, int32_t status);

/* ---- instructions ---------------------------------------------------------------------------- */

Sc sc_op1(ScalarBuilder *b, ScalarOp op, Sc x);
Sc sc_op2(ScalarBuilder *b, ScalarOp op, Sc x, Sc y);
#define SC_DEFINE1(name, OP)                                                                       \
    static inline Sc name(ScalarBuilder *b, Sc x) { return sc_op1(b, SC_##OP, x); }
#define SC_DEFINE2(name, OP)                                                                       \
    static inline Sc name(ScalarBuilder *b, Sc x, Sc y) { return sc_op2(b, SC_##OP, x, y); }
/* clang-format off */
SC_DEFINE1(sc_neg, NEG) SC_DEFINE1(sc_abs, ABS) SC_DEFINE1(sc_sqrt, SQRT)
SC_DEFINE1(sc_floor, FLOOR) SC_DEFINE1(sc_ceil, CEIL) SC_DEFINE1(sc_trunc, TRUNC)
SC_DEFINE1(sc_round, ROUND) SC_DEFINE1(sc_not, NOT)
SC_DEFINE2(sc_add, ADD) SC_DEFINE2(sc_sub, SUB) SC_DEFINE2(sc_mul, MUL) SC_DEFINE2(sc_div, DIV)
SC_DEFINE2(sc_rem, REM) SC_DEFINE2(sc_min, MIN) SC_DEFINE2(sc_max, MAX) SC_DEFINE2(sc_and, AND)
SC_DEFINE2(sc_or, OR) SC_DEFINE2(sc_xor, XOR) SC_DEFINE2(sc_shl, SHL) SC_DEFINE2(sc_shr, SHR)
SC_DEFINE2(sc_eq, EQ) SC_DEFINE2(sc_ne, NE) SC_DEFINE2(sc_lt, LT) SC_DEFINE2(sc_le, LE)
SC_DEFINE2(sc_gt, GT) SC_DEFINE2(sc_ge, GE)
    /* clang-format on */
    Sc sc_fma(ScalarBuilder *b, Sc x, Sc y, Sc z); /* x * y + z rounded once; floats */
Sc sc_select(ScalarBuilder *b, Sc cond, Sc x, Sc y);
Sc sc_cast(ScalarBuilder *b, Sc x, DType to); /* LANGUAGE §3; x itself when it has it */
/* As a result that is stored with that dtype: to a half goes what its store rounds once (float32,
 * float64; integers by way of float64). */
Sc sc_convert(ScalarBuilder *b, Sc x, DType stored);
Sc sc_bits(ScalarBuilder *b, Sc x, DType to);
Sc sc_call1(ScalarBuilder *b, MathFn fn, Sc x);
Sc sc_call2(ScalarBuilder *b, MathFn fn, Sc x, Sc y);
Sc sc_call_if(ScalarBuilder *b, MathFn fn, Sc x, Sc cond, Sc otherwise);

/* ---- functions ------------------------------------------------------------------------------- */

/* Floats. Largest error over the whole range: 2 ulp, 2.5 for float32 tanh (tests/unit/test_scalar.c
 * prints what was measured); erf is the C library's. */
Sc sc_exp(ScalarBuilder *b, Sc x);
/* The same, but 0 where that is below the least normal number, or next to it: Note [No subnormal shares]. */
Sc sc_fast_exp(ScalarBuilder *b, Sc x);
Sc sc_log(ScalarBuilder *b, Sc x);
Sc sc_tanh(ScalarBuilder *b, Sc x);
Sc sc_sigmoid(ScalarBuilder *b, Sc x);
Sc sc_sin(ScalarBuilder *b, Sc x);
Sc sc_cos(ScalarBuilder *b, Sc x);
Sc sc_rsqrt(ScalarBuilder *b, Sc x);
Sc sc_erf(ScalarBuilder *b, Sc x);

/* Any number dtype. Integers: a negative exponent ends the kernel with KERNEL_SHIFT (DESIGN's
 * table of number corner cases: "a negative exponent is an error"). */
Sc sc_pow(ScalarBuilder *b, Sc x, Sc y);
Sc sc_sign(ScalarBuilder *b, Sc x);            /* nan stays nan, zeros stay */
Sc sc_floor_div(ScalarBuilder *b, Sc x, Sc y); /* rounds towards minus infinity */
Sc sc_floor_mod(ScalarBuilder *b, Sc x, Sc y); /* has the sign of y, as NumPy's */
Sc sc_relu(ScalarBuilder *b, Sc x);
Sc sc_clip(ScalarBuilder *b, Sc x, Sc low, Sc high); /* nan stays nan */
Sc sc_isnan(ScalarBuilder *b, Sc x);
Sc sc_isinf(ScalarBuilder *b, Sc x);

#endif
