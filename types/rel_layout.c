/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that clash, laid out one below the other with the sizes marked that are to blame:
 *
 *     left   (32, 128)           `a @@ b` needs   a: (n, k)     b: (k, m)
 *     right      (64,)           here it has      a: (32, 784)  b: (128, 784)
 *                 ^^                                       ^^^      ^^^ */
#include <string.h>

#include "base/mem.h"
#include "types/solver.h"

/* The program's text of an operand, or `otherwise` where that is long or unknown. */
static const char *operand_text(const Relation *r, uint32_t i, const char *otherwise)
{
    enum { LONGEST = 24 };
    Span at = r->arg_spans ? r->arg_spans[i] : r->inner_spans ? r->inner_spans[i] : span_none();
    if (!at.source || (at.source->flags & SOURCE_INTERNAL) || at.end - at.begin > LONGEST ||
        at.end <= at.begin)
        return otherwise;
    const char *text = mem_strndup(at.source->text + at.begin, at.end - at.begin);
    for (const char *p = text; *p; p++) {
        if (*p < ' ' || *p > '~') return otherwise;
    }
    return text;
}

static const char *size_text(TypeNamer *names, Type *dim)
{
    Str s = {0};
    type_print(&s, dim, names);
    return str_text(&s);
}

void rel_add_aligned(Diag *d, const Relation *r, uint32_t n, Type *const *shapes, int axis,
                     TypeNamer *names)
{
    uint32_t rank = 0, *ranks = mem_bytes((n + 1) * sizeof *ranks);
    Type ***dims = mem_new_n(Type **, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!type_get_rank(shapes[i], &ranks[i], &dims[i])) return;
        rank = ranks[i] > rank ? ranks[i] : rank;
    }
    if (rank < 2 || rank > 16) return; /* of vectors the message says all */
    size_t *widths = mem_bytes((rank + 1) * sizeof *widths), lead = 0;
    for (uint32_t c = 0; c < rank; c++) {
        widths[c] = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (c + ranks[i] < rank) continue;
            size_t w = strlen(size_text(names, dims[i][c + ranks[i] - rank]));
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    const char **heads = mem_new_n(const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        heads[i] = operand_text(r, i, n == 2 ? (i ? "right" : "left") : fmt_text("%u", i + 1));
        lead = strlen(heads[i]) > lead ? strlen(heads[i]) : lead;
    }
    lead += 2;
    Str out = {0};
    size_t mark = 0, mark_width = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t column = lead;
        str_add(&out, heads[i]);
        for (uint32_t c = 0; c < rank; c++) {
            if (c + ranks[i] >= rank) {
                const char *text = size_text(names, dims[i][c + ranks[i] - rank]);
                bool first = c + ranks[i] == rank;
                str_pad(&out, column + widths[c] - strlen(text));
                str_printf(&out, "%s%s%s", first ? "(" : " ", text, c + 1 < rank || ranks[i] == 1 ? "," : "");
            }
            if ((int)c - (int)rank == axis) {
                mark = column + 1;
                mark_width = widths[c];
            }
            column += widths[c] + 2;
        }
        str_add(&out, ranks[i] ? ")\n" : "()\n");
    }
    str_pad(&out, mark);
    for (size_t i = 0; i < mark_width; i++) str_add_char(&out, '^');
    diag_add_fact(d, "%s", str_text(&out));
}

void rel_add_pairing(Diag *d, const char *form, uint32_t n,
                     const char *const *names, const char *const *needs, Type *const *types,
                     const int *axes)
{
    Str want, have, marks = {0};
    const char *first = fmt_text("%s needs", form), *second = "here it has";
    size_t column = (strlen(first) > strlen(second) ? strlen(first) : strlen(second)) + 3;
    TypeNamer namer = {0};
    want = (Str){0};
    have = (Str){0};
    str_add(&want, first);
    str_add(&have, second);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank;
        Type **dims;
        if (!type_get_rank(types[i], &rank, &dims)) return;
        str_pad(&want, column);
        str_pad(&have, column);
        str_printf(&want, "%s: (%s)", names[i], needs[i]);
        str_printf(&have, "%s: (", names[i]);
        for (uint32_t k = 0; k < rank; k++) {
            const char *text = size_text(&namer, dims[k]);
            if ((int)k == axes[i]) {
                str_pad(&marks, have.len);
                for (size_t w = strlen(text); w > 0; w--) str_add_char(&marks, '^');
            }
            str_printf(&have, "%s%s", text, k + 1 < rank ? ", " : rank == 1 ? "," : "");
        }
        str_add_char(&have, ')');
        column = (have.len > want.len ? have.len : want.len) + 3;
    }
    diag_add_fact(d, "%s\n%s\n%s", str_text(&want), str_text(&have), str_text(&marks));
}
