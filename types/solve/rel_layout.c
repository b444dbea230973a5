/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of shapes that clash, with the sizes to blame marked. Shapes that broadcast stand one below the other.
 * The arguments of other operators stand below what the operator's entry needs of them (Op.sizes).
 *
 *     left   (32, 128)           `a @@ b` needs   a: (n, k)     b: (k, m)
 *     right      (64,)           here it has      a: (32, 784)  b: (128, 784)
 *                 ^^                                       ^^^      ^^^ */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* The program's text of an operand, or `otherwise` where that is long or unknown. */
static const char *text_at(Span at, const char *otherwise) {
    enum { LONGEST = 24 };
    if (!at.source || (at.source->flags & SOURCE_INTERNAL) || at.end - at.begin > LONGEST ||
        at.end <= at.begin)
        return otherwise;
    const char *text = mem_strndup(at.source->text + at.begin, at.end - at.begin);
    for (const char *p = text; *p; p++) {
        if (*p < ' ' || *p > '~')
            return otherwise;
    }
    return text;
}

static Span operand_span(const Relation *r, uint32_t i) {
    return r->arg_spans ? r->arg_spans[i] : r->inner_spans ? r->inner_spans[i] : span_none();
}

static const char *operand_text(const Relation *r, uint32_t i, const char *otherwise) {
    return text_at(operand_span(r, i), otherwise);
}

/* The label of an operand in a definition: `x @@ w: (32, 128)` for a message about sizes, and its type otherwise. */
const char *rel_operand_label(const Diag *d, const Relation *r, uint32_t i, TypeNamer *names) {
    uint32_t rank;
    Type **dims, *t = type_resolve(r->args[i]);
    const char *text = text_at(r->inner_spans[i], NULL);
    if (!text || !diag_is_of_sizes(d->code) || t->tag != TY_TENSOR ||
        !type_get_rank(t, &rank, &dims))
        return type_text_with(names, t);
    return fmt_text("%s: %s", text, type_text_with(names, t->tensor.shape));
}

static const char *size_text(TypeNamer *names, Type *dim) {
    Str s = {0};
    type_print(&s, dim, names);
    return str_text(&s);
}

/* The order of the operands in the text. The laws order them by the type. */
static uint32_t *sort_by_text(const Relation *r, uint32_t n) {
    uint32_t *order = mem_bytes((n + 1) * sizeof *order);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        Span at = operand_span(r, i);
        for (; k > 0 && at.source && operand_span(r, order[k - 1]).source == at.source &&
               operand_span(r, order[k - 1]).begin > at.begin;
             k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
    return order;
}

void rel_add_aligned(Diag *d, const Relation *r, uint32_t n, Type *const *shapes, int axis,
                     TypeNamer *names) {
    uint32_t rank = 0, *ranks = mem_bytes((n + 1) * sizeof *ranks);
    Type ***dims = mem_new_n(Type **, n + 1);
    uint32_t *order = sort_by_text(r, n);
    for (uint32_t i = 0; i < n; i++) {
        if (!type_get_rank(shapes[order[i]], &ranks[i], &dims[i]))
            return;
        rank = ranks[i] > rank ? ranks[i] : rank;
    }
    if (rank < 2 || rank > 16)
        return; /* for vectors the message itself is enough */
    size_t *widths = mem_bytes((rank + 1) * sizeof *widths), lead = 0;
    for (uint32_t c = 0; c < rank; c++) {
        widths[c] = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (c + ranks[i] < rank)
                continue;
            size_t w = strlen(size_text(names, dims[i][c + ranks[i] - rank]));
            widths[c] = w > widths[c] ? w : widths[c];
        }
    }
    const char **heads = mem_new_n(const char *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        heads[i] = operand_text(r, order[i],
                                n == 2 ? (i ? "right" : "left") : fmt_text("%u", i + 1));
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
                str_printf(&out, "%s%s%s", first ? "(" : " ", text,
                           c + 1 < rank || ranks[i] == 1 ? "," : "");
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
    for (size_t i = 0; i < mark_width; i++)
        str_add_char(&out, '^');
    diag_add_fact(d, "%s", str_text(&out));
}

/* ---- what an operator needs ------------------------------------------------------------------ */

enum { MAX_AXES = TENSOR_MAX_RANK, MAX_NAME = 16, MAX_SHOWN_TYPES = 3 };

/* What the operator's entry needs of one tensor, and what the tensor is. */
typedef struct Row {
    const char *name; /* the name of the argument */
    bool known;       /* the rank is known */
    uint32_t rank, nneeds;
    Type **dims;
    char needs[MAX_AXES][MAX_NAME]; /* "k", "c/2", "b~" (b or 1), "<=n", "..." */
    int marked;                     /* the axis to mark, or -1 */
} Row;

/* Reads one `(…)` of Op.sizes. The result is the rest of the text, or NULL where there is no `(…)`. */
static const char *read_needs(const char *p, Row *row) {
    p = strchr(p, '(');
    if (!p)
        return NULL;
    row->nneeds = 0;
    for (p++; *p && *p != ')';) {
        p += strspn(p, ", ");
        size_t n = strcspn(p, ",)");
        if (n && n < MAX_NAME && row->nneeds < MAX_AXES) {
            memcpy(row->needs[row->nneeds], p, n);
            row->needs[row->nneeds++][n] = '\0';
        }
        p += n;
    }
    return *p ? p + 1 : p;
}

static bool is_dots(const char *need) { return strcmp(need, "...") == 0; }

static bool has_dots(const Row *row) {
    for (uint32_t i = 0; i < row->nneeds; i++) {
        if (is_dots(row->needs[i]))
            return true;
    }
    return false;
}

static bool fits_rank(const Row *row) {
    return has_dots(row) ? row->rank + 1 >= row->nneeds : row->rank == row->nneeds;
}

/* The need of an axis, or NULL where `...` stands for it. */
static const char *find_need(const Row *row, uint32_t axis) {
    uint32_t dots = 0;
    while (dots < row->nneeds && !is_dots(row->needs[dots]))
        dots++;
    if (axis < dots)
        return row->needs[axis];
    uint32_t behind = row->rank - axis; /* axes from here on */
    return behind < row->nneeds - dots ? row->needs[row->nneeds - behind] : NULL;
}

/* The name in a need: n in "<=n". */
static const char *strip_bound(const char *need) { return need[0] == '<' ? need + 2 : need; }

/* The size that a need such as "c/2" asks for, where c has this size. */
static Type *scale_size(Type *size, const char *need) {
    const char *by = strchr(need, '/');
    return by ? dim_floordiv(size, type_dim_int(strtoll(by + 1, NULL, 10), NULL)) : size;
}

static bool is_same_name(const char *a, const char *b) {
    a = strip_bound(a);
    b = strip_bound(b);
    size_t n = strcspn(a, "/~");
    return n == strcspn(b, "/~") && strncmp(a, b, n) == 0;
}

static bool is_one(Type *dim) {
    int64_t n;
    return type_get_int(dim, &n) && n == 1;
}

/* Whether a size meets a need such as "<=n". */
static bool is_within(const char *need, Type *size, Type *most) {
    int64_t n, m;
    return need[0] == '<' && type_get_int(size, &n) && type_get_int(most, &m) && n <= m;
}

/* Whether a dim may still be any size, so that nothing clashes with it. */
static bool is_open(Type *dim) { return type_has_vars(dim) || (dim->flags & TYPE_HAS_ANY); }

typedef struct Clash {
    uint32_t a, b; /* rows */
    Type *x, *y;   /* their sizes */
    bool or_one;
} Clash;

/* Finds the first size that differs from an earlier size of the same name. */
static bool find_clash(Row *rows, uint32_t n, DimCompare how, Clash *out) {
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t k = 0; rows[b].known && k < rows[b].rank; k++) {
            const char *need = find_need(&rows[b], k);
            Type *y = type_resolve(rows[b].dims[k]);
            if (!need || (strchr(need, '~') && is_one(y)))
                continue;
            for (uint32_t a = 0; a <= b; a++) {
                for (uint32_t i = 0; rows[a].known && i < (a < b ? rows[a].rank : k); i++) {
                    const char *first = find_need(&rows[a], i);
                    Type *x = type_resolve(rows[a].dims[i]);
                    if (!first || *need == '_' || !is_same_name(first, need) ||
                        (strchr(first, '~') && is_one(x)))
                        continue;
                    if (dim_compare(scale_size(x, need), scale_size(y, first)) != how ||
                        is_open(x) || is_open(y))
                        continue;
                    if (is_within(need, y, x) || is_within(first, x, y))
                        continue;
                    rows[a].marked = (int)i;
                    rows[b].marked = (int)k;
                    *out = (Clash){a, b, x, y, strchr(need, '~') != NULL};
                    return true;
                }
            }
        }
    }
    return false;
}

/* Adds the needs of a row as a reader knows them: `a: (n, k)`. */
static void add_needs(Str *out, const Row *row) {
    str_printf(out, "%s: (", row->name);
    for (uint32_t i = 0; i < row->nneeds; i++) {
        const char *need = row->needs[i];
        str_printf(out, "%s%.*s", i ? ", " : "", (int)strcspn(need, "~"), need);
    }
    str_add(out, row->nneeds == 1 && !has_dots(row) ? ",)" : ")");
}

static void add_pairing(Diag *d, const char *form, const Row *rows, const bool *shown, uint32_t n,
                        TypeNamer *names) {
    const char *first = fmt_text("%s needs", form), *second = "here it has";
    size_t column = (strlen(first) > strlen(second) ? strlen(first) : strlen(second)) + 3;
    Str want = {0}, have = {0}, marks = {0};
    str_add(&want, first);
    str_add(&have, second);
    for (uint32_t i = 0; i < n; i++) {
        const Row *row = &rows[i];
        if (!shown[i])
            continue;
        str_pad(&want, column);
        str_pad(&have, column);
        add_needs(&want, row);
        str_printf(&have, "%s: (", row->name);
        for (uint32_t k = 0; k < row->rank; k++) {
            const char *text = size_text(names, row->dims[k]);
            if ((int)k == row->marked) {
                str_pad(&marks, have.len);
                for (size_t w = strlen(text); w > 0; w--)
                    str_add_char(&marks, '^');
            }
            str_printf(&have, "%s%s", text, k + 1 < row->rank ? ", " : row->rank == 1 ? "," : "");
        }
        str_add_char(&have, ')');
        column = (have.len > want.len ? have.len : want.len) + 3;
    }
    diag_add_fact(d, "%s\n%s%s%s", str_text(&want), str_text(&have), marks.len ? "\n" : "",
                  str_text(&marks));
}

/* Adds a row for each tensor of an argument. Those in a tuple are named as in `data.0`. */
static uint32_t add_rows(Row *rows, uint32_t n, uint32_t most, const char *name, Type *type) {
    Type *t = type_resolve(type);
    for (uint32_t i = 0; t->tag == TY_TUPLE && i < t->nargs; i++)
        n = add_rows(rows, n, most, fmt_text("%s.%u", name, i), t->args[i]);
    if (t->tag == TY_TUPLE || n == most)
        return n;
    Row *row = &rows[n];
    row->name = name;
    row->marked = -1;
    row->known = t->tag == TY_TENSOR && type_get_rank(t, &row->rank, &row->dims) &&
                 row->rank <= MAX_AXES;
    return n + 1;
}

static const char *get_needs(const Op *op, const Attrs *attrs, const Row *rows, uint32_t n) {
    if (!op->write_sizes)
        return op->sizes;
    int *ranks = mem_bytes((n + 1) * sizeof *ranks);
    for (uint32_t i = 0; i < n; i++)
        ranks[i] = rows[i].known ? (int)rows[i].rank : -1;
    Str out = {0};
    op->write_sizes(&out, attrs, n, ranks);
    return str_text(&out);
}

void op_add_sizes(Diag *d, const Op *op, const Attrs *attrs, uint32_t nargs, Type *const *args,
                  SizeClash *out) {
    enum { MOST = 64 };
    *out = (SizeClash){0};
    if (!op->sizes && !op->write_sizes)
        return;
    Row *rows = mem_new_n(Row, MOST);
    uint32_t n = 0;
    BinOp sign = op_find_infix(op);
    bool infix = sign != BINOP_COUNT;
    for (uint32_t i = 0; i < nargs; i++)
        n = add_rows(rows, n, MOST, infix ? i ? "b" : "a" : op_arg(op, (int)i).name, args[i]);
    const char *p = get_needs(op, attrs, rows, n);
    bool *shown = mem_new_n(bool, n + 1), ranks = true, any = false;
    for (uint32_t i = 0; i < n; i++) {
        const char *rest = p ? read_needs(p, &rows[i]) : NULL;
        p = rest;
        if (!rest)
            rows[i].known = false;
        shown[i] = rows[i].known && !fits_rank(&rows[i]);
        ranks = ranks && !shown[i];
        any = any || shown[i];
    }
    Clash clash;
    TypeNamer names = {0};
    if (ranks && (find_clash(rows, n, DIM_DIFFERENT, &clash) ||
                  find_clash(rows, n, DIM_UNDECIDED, &clash))) {
        shown[clash.a] = shown[clash.b] = any = true;
    } else {
        clash.x = NULL;
        for (uint32_t i = 0; i < n && n <= MAX_SHOWN_TYPES; i++)
            shown[i] = rows[i].known;
    }
    if (!any)
        return;
    add_pairing(d,
                infix ? fmt_text("`a %s b`", infix_table[sign].sign) : fmt_text("`%s`", op->name),
                rows, shown, n, &names);
    if (clash.x)
        *out = (SizeClash){.diag = d, .a = clash.x, .b = clash.y, .or_one = clash.or_one};
}

static void note_first(Diag *d, Type *size) {
    int64_t n;
    if (type_get_int(type_resolve(size), &n))
        diag_note_size_first(d, sym_intern(fmt_text("%lld", (long long)n)));
}

void rel_add_clash(Solver *s, Diag *d, SizeClash clash, TypeNamer *names) {
    if (s)
        s->clash = clash;
    note_first(d, clash.b);
    note_first(d, clash.a);
    diag_add_origin(d, clash.a, size_text(names, clash.a));
    diag_add_origin(d, clash.b, size_text(names, clash.b));
}

/* Lays out tensors of known sizes that do not broadcast. */
static void add_broadcast(Diag *d, const Relation *r, SizeClash *out, TypeNamer *names) {
    uint32_t n = r->nargs - 1, rank = 0, *ranks = mem_bytes((n + 1) * sizeof *ranks);
    Type ***dims = mem_new_n(Type **, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (!type_get_rank(r->args[i], &ranks[i], &dims[i]))
            return;
        rank = ranks[i] > rank ? ranks[i] : rank;
    }
    for (uint32_t c = 1; c <= rank; c++) { /* from the end: the last axis is c = 1 */
        Type *found = NULL;
        for (uint32_t i = 0; i < n; i++) {
            Type *size = c <= ranks[i] ? type_resolve(dims[i][ranks[i] - c]) : NULL;
            if (!size || is_one(size))
                continue;
            if (found && dim_compare(found, size) == DIM_DIFFERENT) {
                *out = (SizeClash){.diag = d, .a = found, .b = size, .or_one = true};
                rel_add_aligned(d, r, n, r->args, -(int)c, names);
                return;
            }
            found = size;
        }
    }
}

void rel_add_sizes(Solver *s, Diag *d, const Relation *r) {
    if (!r->op || !diag_is_of_sizes(d->code))
        return;
    SizeClash clash;
    TypeNamer names = {0};
    op_add_sizes(d, r->op, r->attrs, r->nargs - 1, r->args, &clash);
    if (!clash.diag && !s && d->code == DIAG_R0312)
        add_broadcast(d, r, &clash, &names);
    if (clash.diag)
        rel_add_clash(s, d, clash, &names);
}
