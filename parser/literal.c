/* SPDX-License-Identifier: Apache-2.0 */
/* See literal.h. Decimal text is rounded once: to float16 and bfloat16 by way of a float64 that was
 * rounded to odd, which makes the second rounding harmless (Boldo and Melquiond, 2008). */
#include "parser/literal.h"

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *suffix, *dtype;
    bool is_float;
    int bits; /* integers: negative when unsigned */
} suffixes[] = {
    {"", NULL, false, 64},          {"i", "int32", false, 32},     {"f", "float32", true, 32},
    {"i8", "int8", false, 8},       {"i16", "int16", false, 16},   {"i32", "int32", false, 32},
    {"i64", "int64", false, 64},    {"u8", "uint8", false, -8},    {"u16", "uint16", false, -16},
    {"u32", "uint32", false, -32},  {"u64", "uint64", false, -64}, {"f16", "float16", true, 16},
    {"bf16", "bfloat16", true, 17}, {"f32", "float32", true, 32},  {"f64", "float64", true, 64},
};
enum { NSUFFIXES = sizeof suffixes / sizeof *suffixes };

static int find_suffix(const char *text, size_t len) {
    for (int i = 0; i < NSUFFIXES; i++)
        if (strlen(suffixes[i].suffix) == len && memcmp(suffixes[i].suffix, text, len) == 0)
            return i;
    return -1;
}

static int find_dtype(const char *dtype) {
    for (int i = 3; i < NSUFFIXES; i++)
        if (strcmp(suffixes[i].dtype, dtype) == 0)
            return i;
    return -1;
}

/* strtod whatever the locale's decimal point is. */
static double read_double(const char *text) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d = c ? strtod_l(text, NULL, c) : strtod(text, NULL);
    if (c)
        freelocale(c);
    return d;
}

static double read_float(const char *text) {
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double d = (double)(c ? strtof_l(text, NULL, c) : strtof(text, NULL));
    if (c)
        freelocale(c);
    return d;
}

/* Toward zero, the last bit set if anything was cut off. */
static double read_to_odd(const char *text) {
    int mode = fegetround();
    fesetround(FE_TOWARDZERO);
    double down = read_double(text);
    fesetround(FE_UPWARD);
    double up = read_double(text);
    fesetround(mode);
    if (down == up)
        return down;
    uint64_t bits;
    memcpy(&bits, &down, sizeof bits);
    bits |= 1;
    memcpy(&down, &bits, sizeof bits);
    return down;
}

/* x to `mantissa` bits (with the hidden one), ties to even, subnormal below 2^min_exp. */
static double round_bits(double x, int mantissa, int min_exp, double largest) {
    if (x == 0 || !isfinite(x))
        return x;
    int e = ilogb(x);
    int unit = (e < min_exp ? min_exp : e) - (mantissa - 1);
    double r = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return r > largest ? INFINITY : r;
}

/* Text without sign or suffix, to a float of `bits` (17: bfloat16). */
static double read_rounded(const char *text, int bits) {
    switch (bits) {
    case 16: return round_bits(read_to_odd(text), 11, -14, 65504.0);
    case 17: return round_bits(read_to_odd(text), 8, -126, 0x1.fep127);
    case 32: return read_float(text);
    default: return read_double(text);
    }
}

static bool fits_int(uint64_t magnitude, bool negative, int bits) {
    if (bits < 0)
        return bits == -64 ? !negative || magnitude == 0
                           : magnitude < (UINT64_C(1) << -bits) && (!negative || magnitude == 0);
    uint64_t half = UINT64_C(1) << (bits - 1);
    return negative ? magnitude <= half : magnitude < half;
}

bool literal_is_special(const char *text, size_t len) {
    if (len < 3 || (memcmp(text, "inf", 3) != 0 && memcmp(text, "nan", 3) != 0))
        return false;
    int s = find_suffix(text + 3, len - 3);
    return s == 0 || (s > 0 && suffixes[s].is_float);
}

/* How many bytes of the text are its digits, and whether they are a float's. */
static size_t digits_length(const char *text, size_t len, bool *is_float) {
    size_t i = 0;
    *is_float = false;
    if (len >= 3 && (memcmp(text, "inf", 3) == 0 || memcmp(text, "nan", 3) == 0)) {
        *is_float = true;
        return 3;
    }
#define DIGIT(k) ((k) < len && text[k] >= '0' && text[k] <= '9')
    while (DIGIT(i))
        i++;
    if (i < len && text[i] == '.' && DIGIT(i + 1)) {
        *is_float = true;
        for (i++; DIGIT(i); i++)
            ;
    }
    if (i < len && (text[i] == 'e' || text[i] == 'E')) {
        size_t j = i + 1;
        if (j < len && (text[j] == '+' || text[j] == '-'))
            j++;
        if (DIGIT(j)) {
            *is_float = true;
            for (i = j; DIGIT(i); i++)
                ;
        }
    }
#undef DIGIT
    return i;
}

Number literal_read_number(const char *text, size_t len, bool negative) {
    Number n = {0};
    bool float_text;
    n.digits = digits_length(text, len, &float_text);
    int s = find_suffix(text + n.digits, len - n.digits);
    if (s < 0 || (float_text && s > 0 && !suffixes[s].is_float)) {
        n.is_float = float_text;
        n.error = DIAG_R0005;
        return n;
    }
    n.dtype = suffixes[s].dtype;
    n.is_float = float_text || suffixes[s].is_float;
    if (n.is_float) {
        char buffer[64], *digits = buffer;
        if (n.digits >= sizeof buffer)
            digits = mem_bytes(n.digits + 1);
        memcpy(digits, text, n.digits);
        digits[n.digits] = '\0';
        n.f = read_rounded(digits, s == 0 ? 64 : suffixes[s].bits);
        if (isinf(n.f) && text[0] != 'i')
            n.error = DIAG_R0006;
        if (negative)
            n.f = -n.f;
        return n;
    }
    for (size_t i = 0; i < n.digits; i++) {
        unsigned d = (unsigned)(text[i] - '0');
        if (n.magnitude > (UINT64_MAX - d) / 10) {
            n.error = DIAG_R0006;
            return n;
        }
        n.magnitude = n.magnitude * 10 + d;
    }
    if (!fits_int(n.magnitude, negative, suffixes[s].bits))
        n.error = DIAG_R0006;
    return n;
}

/* The values of uint64 above those of int64 look negative. */
static bool is_negative(const Ast *literal) {
    if (literal->kind == AST_FLOAT)
        return signbit(literal->f) != 0;
    return literal->i < 0 && !(literal->dtype && strcmp(literal->dtype->text, "uint64") == 0);
}

double literal_round(const Ast *literal, const char *dtype) {
    int s = find_dtype(dtype);
    int bits = s < 0 ? 64 : suffixes[s].bits;
    char *digits = mem_strndup(literal->text, literal->text_len);
    double x = read_rounded(digits, bits);
    bool negative = is_negative(literal);
    return negative ? -x : x;
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static size_t put_utf8(char *out, uint32_t c) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

/* One escape at s (which begins with a backslash; n bytes are left): its length, 0 if it is bad. */
static size_t read_escape(const char *s, size_t n, char *out, size_t *out_len) {
    static const char names[] = "ntrabfv\\\"'?", values[] = "\n\t\r\a\b\f\v\\\"'?";
    if (n < 2)
        return 0;
    const char *named = strchr(names, s[1]);
    *out_len = 1;
    if (named) {
        *out = values[named - names];
        return 2;
    }
    size_t i = 1, digits = 0;
    uint32_t c = 0;
    if (s[1] >= '0' && s[1] <= '7') {
        for (; i < n && digits < 3 && s[i] >= '0' && s[i] <= '7'; i++, digits++)
            c = c * 8 + (uint32_t)(s[i] - '0');
        *out = (char)c;
        return c < 256 ? i : 0;
    }
    size_t least = s[1] == 'x' ? 1 : s[1] == 'u' ? 4 : 8, most = s[1] == 'x' ? 2 : least;
    if (s[1] != 'x' && s[1] != 'u' && s[1] != 'U')
        return 0;
    for (i = 2; i < n && digits < most && hex_digit(s[i]) >= 0; i++, digits++)
        c = c * 16 + (uint32_t)hex_digit(s[i]);
    if (digits < least)
        return 0;
    if (s[1] == 'x') {
        *out = (char)c;
        return i;
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *out_len = put_utf8(out, c);
    return i;
}

char *literal_read_string(const char *text, size_t n, bool raw, size_t *len, size_t *bad_at,
                          size_t *bad_len) {
    char *out = mem_bytes(n + 1);
    size_t m = 0;
    for (size_t i = 1; i + 1 < n;) {
        if (raw || text[i] != '\\') {
            out[m++] = text[i++];
            continue;
        }
        size_t made = 0, used = read_escape(text + i, n - 1 - i, out + m, &made);
        if (!used) {
            *bad_at = i;
            *bad_len = i + 2 < n ? 2 : 1;
            return NULL;
        }
        i += used;
        m += made;
    }
    out[m] = '\0';
    *len = m;
    return out;
}
