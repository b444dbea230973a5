/* SPDX-License-Identifier: Apache-2.0 */
/* Text under construction. A zeroed Str is empty; s.text is always NUL-terminated once non-NULL. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Str {
    char *text;
    size_t len, cap;
} Str;

void str_add_char(Str *s, char c);
void str_add(Str *s, const char *text);
void str_add_n(Str *s, const char *text, size_t n);
void str_printf(Str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void str_vprintf(Str *s, const char *fmt, va_list ap);
void str_pad(Str *s, size_t column); /* blanks up to display column `column` of the last line */
const char *str_text(const Str *s);  /* never NULL */

char *fmt_text(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* collected */

/* Display columns of UTF-8 text (wide and combining characters counted as terminals show them). */
size_t text_width(const char *text, size_t n);
/* Bytes of the first character as a reader sees it, a letter with its marks, and its columns. A byte that
 * is no UTF-8 is a character of one column. n > 0. */
size_t text_first_cluster(const char *text, size_t n, size_t *columns);
bool text_is_utf8(const char *text, size_t n, size_t *bad_at);

/* Appends the text as a double-quoted literal with C escapes. */
void str_add_quoted(Str *s, const char *text, size_t n);
void str_add_escaped(Str *s, const char *text, size_t n); /* without the quotes */

/* The shortest decimal text that reads back as the same value when rounded to float64 (bits = 64),
 * float32 (32), float16 (16) or bfloat16 (bits = 17, by convention here); always with `.` or `e`,
 * as Python writes it: `1.0`, `0.1`, `1e+16`, `1e-05`, `nan`, `inf`, `-inf`, `-0.0`. */
void str_add_float(Str *s, double value, int bits);

#endif
