/* SPDX-License-Identifier: Apache-2.0 */
/* The one definition of each scalar function, as instructions.
 *
 * Polynomials are evaluated by Horner's rule in fma. Sizes of a float that differ between float32
 * and float64 stand in `Format`. An integer is got from a float x, |x| < 2^22 or 2^51, by adding
 * `magic` (1.5 * 2^23 or 2^52): the sum's low bits are x rounded to nearest even, which avoids the
 * slow conversions with their rules for nan.
 *
 * Sources: exp and its polynomials are our own (interpolation of (e^r - 1 - r) / r^2 at Chebyshev
 * nodes); log, sin and cos use the polynomials of FDLIBM (Sun Microsystems, 1993) and of its float
 * forms, tanh those of Cephes (S. Moshier). */
#include "ops/recipe/scalar.h"

#include "base/diag.h"

#include <math.h>

typedef struct Format {
    DType type, bits; /* float32 and int32, or float64 and int64 */
    int mantissa;     /* stored bits */
    int64_t bias, sign, magic_bits;
    double magic, least_normal;
} Format;

static const Format format_f32 = {.type = DT_F32,
                                  .bits = DT_I32,
                                  .mantissa = 23,
                                  .bias = 127,
                                  .sign = INT32_MIN,
                                  .magic_bits = 0x4B400000,
                                  .magic = 0x1.8p23,
                                  .least_normal = 0x1p-126};
static const Format format_f64 = {.type = DT_F64,
                                  .bits = DT_I64,
                                  .mantissa = 52,
                                  .bias = 1023,
                                  .sign = INT64_MIN,
                                  .magic_bits = 0x4338000000000000,
                                  .magic = 0x1.8p52,
                                  .least_normal = 0x1p-1022};

static const Format *format(const ScalarBuilder *b, Sc x) {
    DType t = sc_type(b, x);
    if (t != DT_F32 && t != DT_F64)
        BUG("scalar function of %s", dtype_info[t].name);
    return t == DT_F32 ? &format_f32 : &format_f64;
}

static Sc number(ScalarBuilder *b, const Format *f, double v) { return sc_float(b, f->type, v); }

/* c[0] + c[1] x + … */
static Sc polynomial(ScalarBuilder *b, const Format *f, Sc x, const double *c, int n) {
    Sc y = number(b, f, c[n - 1]);
    for (int i = n - 1; i-- > 0;)
        y = sc_fma(b, y, x, number(b, f, c[i]));
    return y;
}
#define POLYNOMIAL(x, ...)                                                                         \
    polynomial(b, f, (x), (const double[]){__VA_ARGS__},                                           \
               (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

/* ---- exp ------------------------------------------------------------------------------------- */

/* 2^k for an integer k that keeps the exponent in range. */
static Sc power_of_two(ScalarBuilder *b, const Format *f, Sc k) {
    Sc biased = sc_add(b, k, sc_int(b, f->bits, f->bias));
    return sc_bits(b, sc_shl(b, biased, sc_int(b, f->bits, f->mantissa)), f->type);
}

/* x = k ln 2 + r: gives k, and e^r = 1 + (r + r^2 P(r)). The bounds keep 2^k near the numbers that there are. */
static Sc exp_of_rest(ScalarBuilder *b, const Format *f, Sc x, double low, double high, Sc *k) {
    bool single = f->type == DT_F32;
    Sc magic = number(b, f, f->magic);
    x = sc_min(b, sc_max(b, x, number(b, f, low)), number(b, f, high));
    Sc shifted = sc_fma(b, x, number(b, f, 0x1.71547652b82fep+0), magic);
    *k = sc_sub(b, sc_bits(b, shifted, f->bits), sc_int(b, f->bits, f->magic_bits));
    Sc whole = sc_sub(b, shifted, magic);
    Sc r = sc_fma(b, whole, number(b, f, single ? -0x1.62e43p-1 : -0x1.62e42fefa39efp-1), x);
    r = sc_fma(b, whole, number(b, f, single ? 0x1.05c61p-29 : -0x1.abc9e3b39803fp-56), r);
    Sc p = single
               ? POLYNOMIAL(r, 0x1p-1, 0x1.5554dcp-3, 0x1.55551ap-5, 0x1.120b6ep-7, 0x1.6d110ap-10)
               : POLYNOMIAL(r, 0x1p-1, 0x1.5555555555556p-3, 0x1.5555555553d63p-5,
                            0x1.11111111109b3p-7, 0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13,
                            0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19, 0x1.289185613a3d6p-22,
                            0x1.af38a9b0ec855p-26);
    return sc_add(b, sc_fma(b, sc_mul(b, r, r), p, r), number(b, f, 1.0));
}

/* 2^k in two halves, for results near the ends. */
Sc sc_exp(ScalarBuilder *b, Sc x) {
    const Format *f = format(b, x);
    bool single = f->type == DT_F32;
    Sc k, y = exp_of_rest(b, f, x, single ? -104.0 : -746.0, single ? 89.0 : 710.0, &k);
    Sc half = sc_shr(b, k, sc_int(b, f->bits, 1));
    y = sc_mul(b, y, power_of_two(b, f, half));
    return sc_mul(b, y, power_of_two(b, f, sc_sub(b, k, half)));
}

/* Note [No subnormal shares]. A processor takes 25 times as long for a product or a sum of products with a subnormal
 * operand (4.8 ns for eight float64, an Intel Xeon), and shares of a softmax are subnormal where logarithms lie 708 to 745
 * apart, 87 to 103 in float32. The derivative of a mixture of 100 Gaussians in 64 dimensions had them in 3.5 % of what its
 * two products read, which took 54 and 82 ms and take 20 and 24 without them. No sum that holds the share 1 beside them
 * can tell them from 0.
 *
 * Here the least k gives the factor 0: results below the root of 2 times the least normal number are 0. */
Sc sc_fast_exp(ScalarBuilder *b, Sc x) {
    const Format *f = format(b, x);
    bool single = f->type == DT_F32;
    double least = (double)(1 - f->bias) * 0x1.62e42fefa39efp-1; /* ln 2 */
    Sc k, y = exp_of_rest(b, f, x, least, single ? 89.0 : 710.0, &k);
    Sc halved = sc_sub(b, k, sc_int(b, f->bits, 1));
    return sc_mul(b, sc_add(b, y, y), power_of_two(b, f, halved));
}

/* ---- log ------------------------------------------------------------------------------------- */

/* x = 2^k (1 + g), sqrt(1/2) <= 1 + g < sqrt(2); s = g / (2 + g);
 * log(1 + g) = g - (g^2 / 2 - s (g^2 / 2 + R(s^2))). */
Sc sc_log(ScalarBuilder *b, Sc x) {
    const Format *f = format(b, x);
    bool single = f->type == DT_F32;
    Sc one = number(b, f, 1.0), zero = number(b, f, 0.0);
    Sc subnormal = sc_lt(b, x, number(b, f, f->least_normal));
    Sc scaled = sc_select(b, subnormal, sc_mul(b, x, number(b, f, single ? 0x1p25 : 0x1p54)), x);
    Sc extra = sc_select(b, subnormal, number(b, f, single ? -25.0 : -54.0), zero);

    int64_t root = single ? 0x3F3504F3 : 0x3FE6A09E667F3BCD; /* sqrt(1/2) */
    Sc i = sc_sub(b, sc_bits(b, scaled, f->bits), sc_int(b, f->bits, root));
    Sc k = sc_shr(b, i, sc_int(b, f->bits, f->mantissa));
    Sc rest = sc_and(b, i, sc_int(b, f->bits, ((int64_t)1 << f->mantissa) - 1));
    Sc m = sc_bits(b, sc_add(b, rest, sc_int(b, f->bits, root)), f->type);
    Sc whole = sc_bits(b, sc_add(b, k, sc_int(b, f->bits, f->magic_bits)), f->type);
    whole = sc_add(b, sc_sub(b, whole, number(b, f, f->magic)), extra);

    Sc g = sc_sub(b, m, one);
    Sc s = sc_div(b, g, sc_add(b, g, number(b, f, 2.0)));
    Sc z = sc_mul(b, s, s);
    Sc half_square = sc_mul(b, sc_mul(b, g, number(b, f, 0.5)), g);
    Sc p = single ? POLYNOMIAL(z, 0x1.555554p-1, 0x1.999c26p-2, 0x1.23d3dcp-2, 0x1.f13c4cp-3)
                  : POLYNOMIAL(z, 6.666666666666735130e-01, 3.999999999940941908e-01,
                               2.857142874366239149e-01, 2.222219843214978396e-01,
                               1.818357216161805012e-01, 1.531383769920937332e-01,
                               1.479819860511658591e-01);
    Sc inner = sc_mul(b, s, sc_fma(b, z, p, half_square));
    inner = sc_fma(b, whole, number(b, f, single ? -0x1.05c61p-29 : 0x1.abc9e3b39803fp-56), inner);
    Sc y = sc_add(b, sc_sub(b, inner, half_square), g);
    y = sc_fma(b, whole, number(b, f, single ? 0x1.62e43p-1 : 0x1.62e42fefa39efp-1), y);

    y = sc_select(b, sc_eq(b, x, number(b, f, INFINITY)), x, y);
    y = sc_select(b, sc_eq(b, x, zero), number(b, f, -INFINITY), y);
    y = sc_select(b, sc_lt(b, x, zero), number(b, f, NAN), y);
    return sc_select(b, sc_ne(b, x, x), x, y);
}

/* ---- tanh, sigmoid --------------------------------------------------------------------------- */

static Sc with_sign_of(ScalarBuilder *b, const Format *f, Sc y, Sc x) {
    Sc sign = sc_and(b, sc_bits(b, x, f->bits), sc_int(b, f->bits, f->sign));
    return sc_bits(b, sc_or(b, sc_bits(b, y, f->bits), sign), f->type);
}

/* float32: with e = e^2|x| - 1, tanh |x| = e / (e + 2), one division and no branch, which is what
 * the loops of a recurrent network are made of. 2|x| = k ln 2 + r as in sc_exp; e is
 * (r + r^2 P(r)) 2^k + (2^k - 1), and keeps its last bits where k = 0. From 10 on it is 1. */
static Sc tanh_single(ScalarBuilder *b, const Format *f, Sc x) {
    Sc size = sc_abs(b, x), magic = number(b, f, f->magic), one = number(b, f, 1.0);
    Sc twice = sc_min(b, number(b, f, 20.0), sc_add(b, size, size));
    Sc shifted = sc_fma(b, twice, number(b, f, 0x1.715476p+0), magic);
    Sc whole = sc_sub(b, shifted, magic);
    Sc r = sc_fma(b, whole, number(b, f, -0x1.62e43p-1), twice);
    r = sc_fma(b, whole, number(b, f, 0x1.05c61p-29), r);
    Sc p = POLYNOMIAL(r, 0x1p-1, 0x1.5554dcp-3, 0x1.55551ap-5, 0x1.120b6ep-7, 0x1.6d110ap-10);
    p = sc_fma(b, sc_mul(b, r, r), p, r);
    /* The low bits of `shifted` are k; those above fall off the end. */
    Sc k = sc_shl(b, sc_bits(b, shifted, f->bits), sc_int(b, f->bits, f->mantissa));
    Sc power = sc_bits(b, sc_add(b, k, sc_int(b, f->bits, f->bias << f->mantissa)), f->type);
    Sc e = sc_fma(b, p, power, sc_sub(b, power, one));
    return with_sign_of(b, f, sc_div(b, e, sc_add(b, e, number(b, f, 2.0))), x);
}

/* float64: |x| < 0.625: |x| + |x|^3 P(x^2); else 1 - 2 / (e^2|x| + 1); then the sign. */
Sc sc_tanh(ScalarBuilder *b, Sc x) {
    const Format *f = format(b, x);
    if (f->type == DT_F32)
        return tanh_single(b, f, x);
    Sc one = number(b, f, 1.0), size = sc_abs(b, x), z = sc_mul(b, x, x);
    Sc upper = POLYNOMIAL(z, -1.61468768441708447952e3, -9.92877231001918586564e1,
                          -9.64399179425052238628e-1);
    Sc lower = POLYNOMIAL(z, 4.84406305325125486048e3, 2.23548839060100448583e3,
                          1.12811678491632931402e2, 1.0);
    Sc small = sc_fma(b, sc_mul(b, size, z), sc_div(b, upper, lower), size);
    Sc e = sc_exp(b, sc_add(b, size, size));
    Sc large = sc_sub(b, one, sc_div(b, number(b, f, 2.0), sc_add(b, e, one)));
    Sc is_small = sc_lt(b, size, number(b, f, 0.625));
    return with_sign_of(b, f, sc_select(b, is_small, small, large), x);
}

/* With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) for negative x. What 1 + e loses is put back:
 * a quotient q = a / d has the residue a - q d, here of the exact denominator. */
Sc sc_sigmoid(ScalarBuilder *b, Sc x) {
    const Format *f = format(b, x);
    Sc one = number(b, f, 1.0), e = sc_exp(b, sc_neg(b, sc_abs(b, x)));
    Sc d = sc_add(b, one, e), lost = sc_sub(b, e, sc_sub(b, d, one));
    Sc q = sc_div(b, sc_select(b, sc_lt(b, x, number(b, f, 0.0)), e, one), d);
    return sc_fma(b, sc_mul(b, q, lost), sc_neg(b, one), q);
}

/* ---- sin, cos -------------------------------------------------------------------------------- */

/* sin and cos on [-pi/4, pi/4], in float64: to its precision, or to about 2^-35 for float32. */
static void sin_cos_kernels(ScalarBuilder *b, bool single, Sc r, Sc *sine, Sc *cosine) {
    const Format *f = &format_f64;
    Sc z = sc_mul(b, r, r), one = number(b, f, 1.0);
    if (single) {
        Sc p = POLYNOMIAL(z, -0x1.5555554cbac77p-3, 0x1.11110896efbb2p-7, -0x1.a00f9e2cae774p-13,
                          0x1.6cd878c3b46a7p-19);
        Sc q = POLYNOMIAL(z, -0x1.ffffffd0c5e81p-2, 0x1.55553e1053a42p-5, -0x1.6c087e80f1e27p-10,
                          0x1.99342e0ee5069p-16);
        *sine = sc_fma(b, sc_mul(b, r, z), p, r);
        *cosine = sc_fma(b, z, q, one);
        return;
    }
    Sc p = POLYNOMIAL(z, -1.66666666666666324348e-01, 8.33333333332248946124e-03,
                      -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                      -2.50507602534068634195e-08, 1.58969099521155010221e-10);
    Sc q = POLYNOMIAL(z, 4.16666666666666019037e-02, -1.38888888888741095749e-03,
                      2.48015872894767294178e-05, -2.75573143513906633035e-07,
                      2.08757232129817482790e-09, -1.13596475577881948265e-11);
    Sc half = sc_mul(b, z, number(b, f, 0.5)), w = sc_sub(b, one, half);
    Sc lost = sc_sub(b, sc_sub(b, one, w), half);
    *sine = sc_fma(b, sc_mul(b, r, z), p, r);
    *cosine = sc_add(b, w, sc_fma(b, sc_mul(b, z, z), q, lost));
}

/* x = k pi/2 + r. Up to 2^30 the product k pi/2 is taken in three parts; beyond, the C library.
 * float32 is computed in float64 and rounded once. sin and cos differ by one quarter turn. */
static Sc sin_cos(ScalarBuilder *b, Sc x, int quarter, MathFn beyond) {
    const Format *d = &format_f64;
    DType type = sc_type(b, x);
    bool single = type == DT_F32;
    Sc wide = sc_cast(b, x, DT_F64), magic = number(b, d, d->magic);
    Sc shifted = sc_fma(b, wide, number(b, d, 0x1.45f306dc9c883p-1), magic);
    Sc k = sc_sub(b, shifted, magic);
    Sc r = sc_fma(b, k, number(b, d, -0x1.921fb54442d18p0), wide); /* exact */
    if (single) {
        r = sc_fma(b, k, number(b, d, -0x1.1a62633145c07p-54), r);
    } else {
        Sc part = number(b, d, 0x1.1a62633145c07p-54);
        Sc product = sc_mul(b, k, part);
        Sc product_low = sc_fma(b, k, part, sc_neg(b, product));
        product_low = sc_fma(b, k, number(b, d, -0x1.f1976b7ed8fbcp-110), product_low);
        Sc high = sc_sub(b, r, product);
        Sc low = sc_sub(b, sc_sub(b, sc_sub(b, r, high), product), product_low);
        r = sc_add(b, high, low);
    }
    Sc sine, cosine;
    sin_cos_kernels(b, single, r, &sine, &cosine);
    Sc turn = sc_bits(b, shifted, DT_I64);
    if (quarter)
        turn = sc_add(b, turn, sc_int(b, DT_I64, quarter));
    Sc odd = sc_ne(b, sc_and(b, turn, sc_int(b, DT_I64, 1)), sc_int(b, DT_I64, 0));
    Sc y = sc_bits(b, sc_select(b, odd, cosine, sine), DT_I64);
    Sc flip = sc_and(b, sc_shl(b, turn, sc_int(b, DT_I64, 62)), sc_int(b, DT_I64, d->sign));
    y = sc_cast(b, sc_bits(b, sc_xor(b, y, flip), DT_F64), type);
    if (quarter == 0) /* the fma loses the sign of -0.0 */
        y = sc_select(b, sc_eq(b, x, sc_float(b, type, 0.0)), x, y);
    Sc far = sc_ge(b, sc_abs(b, x), sc_float(b, type, 0x1p30));
    return sc_call_if(b, beyond, x, far, y);
}

Sc sc_sin(ScalarBuilder *b, Sc x) { return sin_cos(b, x, 0, MATH_SIN); }
Sc sc_cos(ScalarBuilder *b, Sc x) { return sin_cos(b, x, 1, MATH_COS); }

/* ---- the rest -------------------------------------------------------------------------------- */

Sc sc_rsqrt(ScalarBuilder *b, Sc x) {
    return sc_div(b, number(b, format(b, x), 1.0), sc_sqrt(b, x));
}

Sc sc_erf(ScalarBuilder *b, Sc x) { return sc_call1(b, MATH_ERF, x); }

/* By squaring: one step for each bit that the exponent can have. */
static Sc int_pow(ScalarBuilder *b, Sc x, Sc n) {
    DType t = sc_type(b, x);
    Sc one = sc_int(b, t, 1), zero = sc_int(b, t, 0), result = one;
    bool is_signed = dtype_info[t].cls == DTC_INT;
    if (is_signed) /* 1 shifted by n would end the kernel as a negative exponent must */
        n = sc_max(b, n, sc_and(b, sc_shl(b, zero, n), zero));
    int bits = dtype_info[t].bits - is_signed;
    for (int i = 0; i < bits; i++) {
        Sc bit = sc_and(b, i ? sc_shr(b, n, sc_int(b, t, i)) : n, one);
        result = sc_select(b, sc_ne(b, bit, zero), sc_mul(b, result, x), result);
        if (i + 1 < bits)
            x = sc_mul(b, x, x);
    }
    return result;
}

/* A square is the product, rounded once: the C library's power may miss that by a unit in the last place, and code in
 * which the exponent is known multiplies (prelude/simplify.rly). */
Sc sc_pow(ScalarBuilder *b, Sc x, Sc y) {
    DType t = sc_type(b, x);
    if (!dtype_is_float(t))
        return int_pow(b, x, y);
    Sc is_square = sc_eq(b, y, sc_float(b, t, 2.0));
    return sc_select(b, is_square, sc_mul(b, x, x), sc_call2(b, MATH_POW, x, y));
}

Sc sc_sign(ScalarBuilder *b, Sc x) {
    DType t = sc_type(b, x);
    Sc zero = sc_int(b, t, 0), one = sc_int(b, t, 1);
    if (dtype_info[t].cls == DTC_UINT)
        return sc_select(b, sc_gt(b, x, zero), one, zero);
    Sc other = dtype_is_float(t) ? sc_select(b, sc_eq(b, x, zero), zero, x) : zero;
    other = sc_select(b, sc_lt(b, x, zero), sc_int(b, t, -1), other);
    return sc_select(b, sc_gt(b, x, zero), one, other);
}

/* The remainder has the other sign than the divisor. */
static Sc must_adjust(ScalarBuilder *b, Sc rest, Sc y) {
    Sc zero = sc_int(b, sc_type(b, y), 0);
    Sc differ = sc_xor(b, sc_lt(b, rest, zero), sc_lt(b, y, zero));
    return sc_and(b, sc_ne(b, rest, zero), differ);
}

/* Floats as NumPy: the quotient that goes with the remainder. */
Sc sc_floor_div(ScalarBuilder *b, Sc x, Sc y) {
    DType t = sc_type(b, x);
    Sc one = sc_int(b, t, 1), zero = sc_int(b, t, 0);
    if (dtype_info[t].cls == DTC_UINT)
        return sc_div(b, x, y);
    Sc rest = sc_rem(b, x, y), adjust = must_adjust(b, rest, y);
    if (!dtype_is_float(t)) {
        Sc q = sc_div(b, x, y);
        return sc_select(b, adjust, sc_sub(b, q, one), q);
    }
    Sc q = sc_div(b, sc_sub(b, x, rest), y), plain = sc_div(b, x, y);
    q = sc_select(b, adjust, sc_sub(b, q, one), q);
    Sc floor = sc_floor(b, q);
    floor = sc_select(b, sc_gt(b, sc_sub(b, q, floor), sc_float(b, t, 0.5)), sc_add(b, floor, one),
                      floor);
    const Format *f = format(b, x);
    floor = sc_select(b, sc_eq(b, q, zero), with_sign_of(b, f, zero, plain), floor);
    return sc_select(b, sc_eq(b, y, zero), plain, floor);
}

Sc sc_floor_mod(ScalarBuilder *b, Sc x, Sc y) {
    DType t = sc_type(b, x);
    Sc rest = sc_rem(b, x, y), zero = sc_int(b, t, 0);
    if (dtype_info[t].cls == DTC_UINT)
        return rest;
    Sc moved = sc_select(b, must_adjust(b, rest, y), sc_add(b, rest, y), rest);
    if (!dtype_is_float(t))
        return moved;
    return sc_select(b, sc_eq(b, rest, zero), with_sign_of(b, format(b, x), zero, y), moved);
}

Sc sc_relu(ScalarBuilder *b, Sc x) { return sc_max(b, x, sc_int(b, sc_type(b, x), 0)); }

Sc sc_clip(ScalarBuilder *b, Sc x, Sc low, Sc high) { return sc_min(b, sc_max(b, x, low), high); }

Sc sc_isnan(ScalarBuilder *b, Sc x) { return sc_ne(b, x, x); }

Sc sc_isinf(ScalarBuilder *b, Sc x) {
    return sc_eq(b, sc_abs(b, x), number(b, format(b, x), INFINITY));
}
