/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: the text is copied, so a Source outlives what it was read from. A line ends with "\n";
 * a "\r" before it is left in the text and not shown. */
#include "base/span.h"

#include "base/mem.h"

#include <string.h>

Source *source_new(const char *name, const char *text, size_t len, uint32_t flags) {
    Source *s = mem_new(Source);
    s->name = mem_strdup(name);
    s->text = mem_strndup(text, len);
    s->len = len;
    s->flags = flags;
    uint32_t n = 1;
    for (const char *p = s->text; (p = memchr(p, '\n', len - (size_t)(p - s->text))); p++)
        n++;
    s->line_starts = mem_bytes(n * sizeof(uint32_t));
    s->line_starts[s->nlines++] = 0;
    for (const char *p = s->text; (p = memchr(p, '\n', len - (size_t)(p - s->text))); p++)
        s->line_starts[s->nlines++] = (uint32_t)(p - s->text) + 1;
    return s;
}

void span_locate(Span span, uint32_t *line, uint32_t *column) {
    const Source *s = span.source;
    *line = *column = 0;
    if (!s)
        return;
    uint32_t at = span.begin > s->len ? (uint32_t)s->len : span.begin, lo = 0, hi = s->nlines;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->line_starts[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    *line = lo + 1;
    *column = 1;
    for (uint32_t i = s->line_starts[lo]; i < at; i++)
        if (((unsigned char)s->text[i] & 0xC0) != 0x80)
            ++*column;
}

/* Spans of different sources do not join: the first wins. */
Span span_join(Span a, Span b) {
    if (!a.source)
        return b;
    if (!b.source || a.source != b.source)
        return a;
    return (Span){a.source, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

Span span_inside(Span block) {
    enum { LONGEST = 2000 };
    const Source *s = block.source;
    uint32_t begin = block.begin, end = block.end;
    if (!s || end > s->len || end - begin < 3 || end - begin > LONGEST || s->text[begin] != '{' ||
        s->text[end - 1] != '}')
        return block;
    int depth = 0;
    for (uint32_t i = begin; i < end - 1; i++) {
        depth += s->text[i] == '{';
        depth -= s->text[i] == '}';
        if (depth == 0)
            return block; /* `{ a } + { b }` */
        if (depth == 1 && is_blank(s->text[i]) && strncmp(s->text + i + 1, "with", 4) == 0 &&
            (is_blank(s->text[i + 5]) || s->text[i + 5] == '['))
            return block; /* `{ a with w = b }` */
    }
    for (begin++, end--; begin < end && is_blank(s->text[begin]);)
        begin++;
    while (end > begin && is_blank(s->text[end - 1]))
        end--;
    bool comment = end - begin > 1 && s->text[begin] == '/' &&
                   (s->text[begin + 1] == '/' || s->text[begin + 1] == '*');
    return begin == end || comment ? block : (Span){s, begin, end};
}
