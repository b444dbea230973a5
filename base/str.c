/* SPDX-License-Identifier: Apache-2.0 */
/* Text: growth, display width, quoting, and numbers as the shortest text that reads back. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "base/str.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_UTF8PROC
#include <utf8proc.h>
#endif

static void reserve(Str *s, size_t more) {
    size_t need = s->len + more + 1;
    if (need <= s->cap)
        return;
    size_t cap = s->cap ? s->cap * 2 : 64;
    if (cap < need)
        cap = need;
    char *text = mem_bytes(cap);
    if (s->len)
        memcpy(text, s->text, s->len);
    text[s->len] = '\0';
    s->text = text;
    s->cap = cap;
}

void str_add_char(Str *s, char c) {
    reserve(s, 1);
    s->text[s->len++] = c;
    s->text[s->len] = '\0';
}

void str_add_n(Str *s, const char *text, size_t n) {
    reserve(s, n);
    if (n)
        memcpy(s->text + s->len, text, n);
    s->len += n;
    s->text[s->len] = '\0';
}

void str_add(Str *s, const char *text) { str_add_n(s, text, strlen(text)); }

void str_vprintf(Str *s, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    reserve(s, 80);
    int n = vsnprintf(s->text + s->len, s->cap - s->len, fmt, ap);
    if (n > 0 && (size_t)n >= s->cap - s->len) {
        reserve(s, (size_t)n);
        vsnprintf(s->text + s->len, s->cap - s->len, fmt, again);
    }
    if (n > 0)
        s->len += (size_t)n;
    s->text[s->len] = '\0';
    va_end(again);
}

void str_printf(Str *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(s, fmt, ap);
    va_end(ap);
}

void str_pad(Str *s, size_t column) {
    size_t start = s->len;
    while (start > 0 && s->text[start - 1] != '\n')
        start--;
    size_t width = s->len ? text_width(s->text + start, s->len - start) : 0;
    for (; width < column; width++)
        str_add_char(s, ' ');
}

const char *str_text(const Str *s) { return s->text ? s->text : ""; }

char *fmt_text(const char *fmt, ...) {
    Str s = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&s, fmt, ap);
    va_end(ap);
    return s.text;
}

/* Decodes one character; returns its bytes, 0 when they are not UTF-8 (over-long forms, surrogates
 * and values above 10FFFF included). */
static size_t decode(const unsigned char *p, size_t n, uint32_t *out) {
    if (n == 0)
        return 0;
    if (p[0] < 0x80) {
        *out = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || len > n)
        return 0;
    uint32_t c = p[0] & (0xFFu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000) || c > 0x10FFFF ||
        (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *out = c;
    return len;
}

static unsigned char_width(uint32_t c) {
    if (c < 0x20 || (c >= 0x7F && c < 0xA0))
        return 0;
    if (c < 0x300)
        return 1;
#ifdef HAVE_UTF8PROC
    int w = utf8proc_charwidth((utf8proc_int32_t)c);
    return w > 0 ? (unsigned)w : 0;
#else
    /* The blocks that matter: combining marks and joiners 0, East Asian wide and emoji 2. */
    if (c <= 0x36F || (c >= 0x483 && c <= 0x489) || (c >= 0x591 && c <= 0x5BD) ||
        (c >= 0x610 && c <= 0x61A) || (c >= 0x64B && c <= 0x65F) || (c >= 0x1AB0 && c <= 0x1AFF) ||
        (c >= 0x1DC0 && c <= 0x1DFF) || (c >= 0x200B && c <= 0x200F) ||
        (c >= 0x202A && c <= 0x202E) || (c >= 0x2060 && c <= 0x2064) ||
        (c >= 0x20D0 && c <= 0x20FF) || (c >= 0xFE00 && c <= 0xFE0F) ||
        (c >= 0xFE20 && c <= 0xFE2F) || c == 0xFEFF || (c >= 0xE0100 && c <= 0xE01EF))
        return 0;
    if ((c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0x303E) ||
        (c >= 0x3041 && c <= 0xA4CF) || (c >= 0xA960 && c <= 0xA97F) ||
        (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
        (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
        (c >= 0xFFE0 && c <= 0xFFE6) || (c >= 0x1F300 && c <= 0x1F64F) ||
        (c >= 0x1F900 && c <= 0x1F9FF) || (c >= 0x20000 && c <= 0x3FFFD))
        return 2;
    return 1;
#endif
}

size_t text_width(const char *text, size_t n) {
    size_t width = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = decode((const unsigned char *)text + i, n - i, &c);
        width += len ? char_width(c) : 1;
        i += len ? len : 1;
    }
    return width;
}

/* Whether no cluster ends between two characters; *state is utf8proc's, and begins as 0. */
static bool joins(uint32_t before, uint32_t c, int32_t *state) {
#ifdef HAVE_UTF8PROC
    return !utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, state);
#else
    (void)before;
    (void)state;
    return char_width(c) == 0 && c >= 0x300;
#endif
}

size_t text_first_cluster(const char *text, size_t n, size_t *columns) {
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t before, c;
    int32_t state = 0;
    size_t end = decode(bytes, n, &before);
    if (!end) {
        *columns = 1;
        return 1;
    }
    *columns = char_width(before);
    for (size_t len; end < n && (len = decode(bytes + end, n - end, &c)) > 0; end += len) {
        if (!joins(before, c, &state))
            break;
        *columns += char_width(c);
        before = c;
    }
    return end;
}

bool text_is_utf8(const char *text, size_t n, size_t *bad_at) {
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = decode((const unsigned char *)text + i, n - i, &c);
        if (!len) {
            if (bad_at)
                *bad_at = i;
            return false;
        }
        i += len;
    }
    return true;
}

void str_add_escaped(Str *s, const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = decode((const unsigned char *)text + i, n - i, &c);
        unsigned char b = (unsigned char)text[i];
        static const char plain[] = "\"\\\n\t\r\a\b\f\v", names[] = "\"\\ntrabfv";
        const char *special = len == 1 && b ? strchr(plain, b) : NULL;
        if (special) {
            str_add_char(s, '\\');
            str_add_char(s, names[special - plain]);
        } else if (!len || c < 0x20 || c == 0x7F) {
            str_printf(s, "\\x%02x", b); /* exactly two digits, so a digit may follow */
        } else {
            str_add_n(s, text + i, len);
        }
        i += len ? len : 1;
    }
}

void str_add_quoted(Str *s, const char *text, size_t n) {
    str_add_char(s, '"');
    str_add_escaped(s, text, n);
    str_add_char(s, '"');
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Rounds to `digits` significant bits, ties to even, with the smallest exponent and the largest
 * finite value of the format. */
static double round_to(double v, int digits, int min_exp, double max) {
    if (v == 0 || isnan(v) || isinf(v))
        return v;
    int e;
    frexp(v, &e); /* v = m * 2^e, 0.5 <= m < 1 */
    if (e < min_exp)
        e = min_exp;
    double unit = ldexp(1.0, e - digits), r = nearbyint(v / unit) * unit;
    return fabs(r) > max ? copysign(INFINITY, v) : r;
}

static double read_back(const char *text, int bits) {
    if (bits == 64)
        return strtod(text, NULL);
    if (bits == 32)
        return (double)strtof(text, NULL);
    if (bits == 16)
        return round_to(strtod(text, NULL), 11, -13, 65504.0);
    return round_to(strtod(text, NULL), 8, -125, 0x1.FEp127);
}

/* The shortest significant digits of v > 0, and the decimal exponent of the first. The nearest
 * decimal of n digits is tried for growing n; at a power of two, where the gap below v is half the
 * gap above, its upper neighbour too. */
static void shortest_digits(double v, int bits, char digits[20], int *exponent) {
    int most = bits == 64 ? 17 : bits == 32 ? 9 : bits == 16 ? 5 : 4, e;
    bool power_of_two = frexp(v, &e) == 0.5;
    char text[40];
    for (int n = 1; n <= most; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, v);
        bool good = read_back(text, bits) == v;
        if (!good && power_of_two && n > 1) {
            char *p = text + n; /* the last digit, behind the dot */
            if (*p != '9') {
                ++*p;
                good = read_back(text, bits) == v;
            }
        }
        if (good || n == most)
            break;
    }
    size_t k = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p != '.')
            digits[k++] = *p;
    *exponent = atoi(p + 1);
    while (k > 1 && digits[k - 1] == '0')
        k--;
    digits[k] = '\0';
}

void str_add_float(Str *s, double value, int bits) {
    if (isnan(value)) {
        str_add(s, "nan");
        return;
    }
    if (signbit(value))
        str_add_char(s, '-');
    double v = fabs(value);
    if (isinf(v)) {
        str_add(s, "inf");
        return;
    }
    if (v == 0) {
        str_add(s, "0.0");
        return;
    }
    char digits[20];
    int e;
    shortest_digits(v, bits, digits, &e);
    int n = (int)strlen(digits);
    if (e < -4 || e >= 16) {
        str_add_char(s, digits[0]);
        if (n > 1)
            str_printf(s, ".%s", digits + 1);
        str_printf(s, "e%c%02d", e < 0 ? '-' : '+', abs(e));
    } else if (e < 0) {
        str_printf(s, "0.%.*s%s", -e - 1, "000", digits);
    } else if (n <= e + 1) {
        str_printf(s, "%s%.*s.0", digits, e + 1 - n, "000000000000000");
    } else {
        str_printf(s, "%.*s.%s", e + 1, digits, digits + e + 1);
    }
}
