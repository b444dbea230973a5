/* SPDX-License-Identifier: Apache-2.0 */
/* Strings: bytes, UTF-8 by convention. Lengths and positions count characters; bytes that are no
 * UTF-8 count as one each. Every loop over characters or elements ends at an interrupt. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "eval/builtin_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_UTF8PROC
#include <utf8proc.h>
#endif

static const String *text_arg(const BuiltinCall *call, uint32_t i) { return call->args[i].p; }

static Value from_str(const Str *s) { return value_string(str_text(s), s->len); }

/* Bytes of the character at text[at]. */
static size_t char_bytes(const String *s, size_t at) {
    unsigned char c = (unsigned char)s->text[at];
    size_t n = c < 0x80 ? 1 : c >= 0xF0 && c < 0xF8 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 1;
    if (c >= 0xF8 || at + n > s->len)
        return 1;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s->text[at + i] & 0xC0) != 0x80)
            return 1;
    return n;
}

static int64_t char_count(const BuiltinCall *call, const String *s) {
    int64_t n = 0;
    if (s->chars >= 0)
        return s->chars;
    for (size_t at = 0; at < s->len && !builtin_interrupted(call); at += char_bytes(s, at))
        n++;
    if (!builtin_interrupted(call))
        ((String *)s)->chars = n;
    return n;
}

/* Where the character of that position begins: from the one that was looked up last, or from the beginning. */
static size_t char_place(const BuiltinCall *call, const String *s, int64_t position) {
    if (s->chars == (int64_t)s->len) /* each is one byte */
        return (size_t)position;
    bool near = s->at_char <= position;
    int64_t i = near ? s->at_char : 0;
    size_t at = near ? s->at_byte : 0;
    for (; i < position && !builtin_interrupted(call); i++)
        at += char_bytes(s, at);
    ((String *)s)->at_char = i;
    ((String *)s)->at_byte = at;
    return at;
}

bool builtin_str_length(const BuiltinCall *call, Value *out) {
    *out = value_int(DT_I32, (int32_t)char_count(call, text_arg(call, 0)));
    return !builtin_interrupted(call);
}

bool builtin_str_append(const BuiltinCall *call, Value *out) {
    size_t len = 0;
    for (uint32_t i = 0; i < call->n; i++)
        len += text_arg(call, i)->len;
    String *s = string_new(len);
    char *to = s->own;
    for (uint32_t i = 0; i < call->n; i++) {
        const String *part = text_arg(call, i);
        memcpy(to, part->text, part->len);
        to += part->len;
    }
    *out = (Value){.tag = VAL_STRING, .p = s};
    return true;
}

static const char *find(const String *s, size_t from, const String *part) {
    return memmem(s->text + from, s->len - from, part->text, part->len);
}

/* str.split(text, separator): an empty separator splits into characters. */
bool builtin_str_split(const BuiltinCall *call, Value *out) {
    const String *s = text_arg(call, 0), *sep = text_arg(call, 1);
    VEC(Value) parts = {0};
    size_t at = 0;
    if (sep->len == 0) {
        for (; at < s->len && !builtin_interrupted(call); at += char_bytes(s, at))
            vec_push(&parts, value_string(s->text + at, char_bytes(s, at)));
    } else {
        for (const char *p; !builtin_interrupted(call) && (p = find(s, at, sep));
             at = (size_t)(p - s->text) + sep->len)
            vec_push(&parts, value_string(s->text + at, (size_t)(p - s->text) - at));
        vec_push(&parts, value_string(s->text + at, s->len - at));
    }
    if (builtin_interrupted(call))
        return false;
    *out = builtin_list(call, parts.data, parts.len);
    return true;
}

/* str.join(separator, list) */
bool builtin_str_join(const BuiltinCall *call, Value *out) {
    const String *sep = text_arg(call, 0);
    Value list = call->args[1], item;
    Str s = {0};
    for (bool first = true; !builtin_interrupted(call) && builtin_list_next(&list, &item);
         first = false) {
        const String *part = item.p;
        if (!first)
            str_add_n(&s, sep->text, sep->len);
        str_add_n(&s, part->text, part->len);
    }
    *out = from_str(&s);
    return !builtin_interrupted(call);
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static const String *trimmed(const String *s) {
    size_t begin = 0, end = s->len;
    while (begin < end && is_blank(s->text[begin]))
        begin++;
    while (end > begin && is_blank(s->text[end - 1]))
        end--;
    return value_string(s->text + begin, end - begin).p;
}

bool builtin_str_trim(const BuiltinCall *call, Value *out) {
    *out = (Value){.tag = VAL_STRING, .p = (void *)(uintptr_t)trimmed(text_arg(call, 0))};
    return true;
}

/* Blanks around the number are allowed, nothing else. */
static bool read_int(const BuiltinCall *call, DType t, Value *out) {
    const String *s = trimmed(text_arg(call, 0));
    char *end;
    errno = 0;
    long long v = strtoll(s->text, &end, 10);
    bool ok = s->len && end == s->text + s->len && errno == 0 &&
              (t == DT_I64 || (v >= INT32_MIN && v <= INT32_MAX));
    *out = ok ? builtin_some(call, value_int(t, v)) : builtin_none(call);
    return true;
}

bool builtin_str_int(const BuiltinCall *call, Value *out) { return read_int(call, DT_I32, out); }
bool builtin_str_int64(const BuiltinCall *call, Value *out) { return read_int(call, DT_I64, out); }

static bool read_float(const BuiltinCall *call, DType t, Value *out) {
    const String *s = trimmed(text_arg(call, 0));
    char *end;
    double v = t == DT_F32 ? (double)strtof(s->text, &end) : strtod(s->text, &end);
    bool hex = memchr(s->text, 'x', s->len) || memchr(s->text, 'X', s->len);
    bool ok = s->len && end == s->text + s->len && !hex;
    *out = ok ? builtin_some(call, value_float(t, v)) : builtin_none(call);
    return true;
}

bool builtin_str_float(const BuiltinCall *call, Value *out) {
    return read_float(call, DT_F32, out);
}
bool builtin_str_float64(const BuiltinCall *call, Value *out) {
    return read_float(call, DT_F64, out);
}

/* str.fixed(x, digits): a number with so many digits after its point. */
bool builtin_str_fixed(const BuiltinCall *call, Value *out) {
    Value v = value_primal(call->args[0]);
    int64_t digits = call->args[1].i;
    Str s = {0};
    if (v.tag != VAL_SCALAR || v.aux == DT_BOOL) {
        builtin_fail(call, DIAG_R0613, "`str.fixed` takes one number");
        return false;
    }
    if (digits < 0 || digits > 1000) {
        builtin_fail(call, DIAG_R0613, "`str.fixed` writes 0 to 1000 digits, not %lld",
                     (long long)digits);
        return false;
    }
    double f = dtype_is_float((DType)v.aux) ? v.f
               : v.aux == DT_U64            ? (double)(uint64_t)v.i
                                            : (double)v.i;
    str_printf(&s, "%.*f", (int)digits, f);
    *out = from_str(&s);
    return true;
}

/* str.format(text, list): each `{}` is the next of the list; `{{` and `}}` are braces. */
bool builtin_str_format(const BuiltinCall *call, Value *out) {
    const String *s = text_arg(call, 0);
    Value list = call->args[1], item;
    Str to = {0};
    for (size_t i = 0; i < s->len; i++) {
        if (builtin_interrupted(call))
            return false;
        char c = s->text[i], next = s->text[i + 1];
        if (c == '{' && next == '}') {
            if (!builtin_list_next(&list, &item)) {
                builtin_fail(call, DIAG_R0613, "the format has more `{}` than there are Strings");
                return false;
            }
            str_add_n(&to, ((const String *)item.p)->text, ((const String *)item.p)->len);
            i++;
        } else {
            str_add_char(&to, c);
            if ((c == '{' || c == '}') && next == c)
                i++;
        }
    }
    if (builtin_list_next(&list, &item)) {
        builtin_fail(call, DIAG_R0613, "there are more Strings than `{}` in the format");
        return false;
    }
    *out = from_str(&to);
    return true;
}

/* str.slice(text, begin, end): negative positions count from the end; both clamp. */
bool builtin_str_slice(const BuiltinCall *call, Value *out) {
    const String *s = text_arg(call, 0);
    int64_t n = char_count(call, s), begin = call->args[1].i, end = call->args[2].i;
    begin = begin < 0 ? begin + n : begin;
    end = end < 0 ? end + n : end;
    begin = begin < 0 ? 0 : begin > n ? n : begin;
    end = end < begin ? begin : end > n ? n : end;
    size_t from = char_place(call, s, begin);
    if (end == n && s->len - from > sizeof(String))
        *out = (Value){.tag = VAL_STRING, .p = (void *)(uintptr_t)string_end(s, from, n - begin)};
    else
        *out = value_string(s->text + from, char_place(call, s, end) - from);
    return !builtin_interrupted(call);
}

bool builtin_str_contains(const BuiltinCall *call, Value *out) {
    *out = value_bool(find(text_arg(call, 0), 0, text_arg(call, 1)) != NULL);
    return true;
}

/* Without utf8proc, ASCII letters only. */
static bool change_case(const BuiltinCall *call, bool upper, Value *out) {
    const String *s = text_arg(call, 0);
    Str to = {0};
    for (size_t at = 0; at < s->len && !builtin_interrupted(call);) {
        size_t n = char_bytes(s, at);
        unsigned char c = (unsigned char)s->text[at];
#ifdef HAVE_UTF8PROC
        utf8proc_int32_t point;
        utf8proc_uint8_t bytes[4];
        if (c >= 0x80 && utf8proc_iterate((const utf8proc_uint8_t *)s->text + at,
                                          (utf8proc_ssize_t)n, &point) > 0) {
            point = upper ? utf8proc_toupper(point) : utf8proc_tolower(point);
            str_add_n(&to, (const char *)bytes, (size_t)utf8proc_encode_char(point, bytes));
            at += n;
            continue;
        }
#endif
        if (n == 1 && (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z'))
            str_add_char(&to, (char)(c ^ 0x20));
        else
            str_add_n(&to, s->text + at, n);
        at += n;
    }
    *out = from_str(&to);
    return !builtin_interrupted(call);
}

bool builtin_str_upper(const BuiltinCall *call, Value *out) { return change_case(call, true, out); }

bool builtin_str_lower(const BuiltinCall *call, Value *out) {
    return change_case(call, false, out);
}

bool builtin_str_pad(const BuiltinCall *call, Value *out) {
    const String *s = text_arg(call, 0);
    int64_t width = call->args[1].i, have = (int64_t)text_width(s->text, s->len);
    Str to = {0};
    for (int64_t i = have; i < width && !builtin_interrupted(call); i++)
        str_add_char(&to, ' ');
    str_add_n(&to, s->text, s->len);
    *out = from_str(&to);
    return !builtin_interrupted(call);
}
