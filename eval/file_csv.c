/* SPDX-License-Identifier: Apache-2.0 */
/* CSV (RFC 4180): cells between commas, quoted where they hold commas, quotes or line breaks. Read
 * twice: once to count, once to convert. Blank lines are skipped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eval/file.h"

typedef struct Reader {
    const unsigned char *p, *end;
    int64_t line, column; /* where the cell read last stands */
    int64_t next_line;
    Str cell;  /* its text, blanks at the ends removed */
    bool last; /* it is the last of its line */
} Reader;

static Reader reader_begin(const Bytes *b) {
    Reader r = {.p = b->p, .end = b->p + b->n, .next_line = 1, .last = true};
    if (b->n >= 3 && memcmp(b->p, "\xEF\xBB\xBF", 3) == 0)
        r.p += 3;
    return r;
}

static void read_quoted(Reader *r) {
    for (r->p++; r->p < r->end; r->p++) {
        if (*r->p == '"') {
            if (r->p + 1 == r->end || r->p[1] != '"') {
                r->p++;
                return;
            }
            r->p++;
        }
        r->next_line += *r->p == '\n';
        str_add_char(&r->cell, (char)*r->p);
    }
}

/* False at the end of the file. */
static bool read_cell(Reader *r) {
    if (r->last) {
        while (r->p < r->end && (*r->p == '\n' || *r->p == '\r'))
            r->next_line += *r->p++ == '\n';
        if (r->p == r->end)
            return false;
        r->column = 0;
    }
    r->line = r->next_line;
    r->column++;
    r->cell.len = 0;
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
    if (r->p < r->end && *r->p == '"')
        read_quoted(r);
    for (; r->p < r->end && *r->p != ',' && *r->p != '\n'; r->p++)
        str_add_char(&r->cell, (char)*r->p);
    r->last = r->p == r->end || *r->p == '\n';
    if (r->p < r->end && *r->p == ',')
        r->p++;
    while (r->cell.len && strchr(" \t\r", r->cell.text[r->cell.len - 1]))
        r->cell.len--;
    if (r->cell.text)
        r->cell.text[r->cell.len] = '\0';
    return true;
}

/* Writes the cell's number to `to`; with NULL it only checks that it is one. */
static bool convert(const Str *cell, DType t, void *to) {
    const char *text = str_text(cell);
    char *end = NULL;
    unsigned char ignored[8];
    to = to ? to : ignored;
    errno = 0;
    if (strlen(text) != cell->len)
        return false;
    if (dtype_is_float(t)) {
        double v = cell->len == 0 ? strtod("nan", NULL) : strtod(text, &end);
        if (t == DT_F32 && cell->len)
            v = (double)strtof(text, &end);
        elem_set_float(to, t, v);
        return cell->len == 0 || (*end == '\0' && end != text);
    }
    if (t == DT_BOOL) {
        bool yes = strcmp(text, "True") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        elem_set_int(to, t, yes);
        return yes || strcmp(text, "False") == 0 || strcmp(text, "false") == 0 ||
               strcmp(text, "0") == 0;
    }
    bool wide = t == DT_U64 && text[0] != '-';
    int64_t v = wide ? (int64_t)strtoull(text, &end, 10) : strtoll(text, &end, 10);
    elem_set_int(to, t, v);
    return cell->len && *end == '\0' && errno == 0 && dtype_holds_int(t, v, wide);
}

static bool is_number(const Str *cell) {
    char *end;
    if (cell->len == 0 || strcmp(cell->text, "True") == 0 || strcmp(cell->text, "False") == 0)
        return true;
    (void)strtod(cell->text, &end);
    return *end == '\0';
}

bool csv_count(const File *f, const Bytes *b, int64_t *rows, int64_t *columns, bool *heading) {
    Reader r = reader_begin(b);
    int64_t lines = 0;
    *columns = 0;
    *heading = false;
    while (read_cell(&r)) {
        if (f->call && builtin_interrupted(f->call))
            return false;
        if (lines == 0)
            *heading |= !is_number(&r.cell);
        if (!r.last)
            continue;
        if (lines++ == 0)
            *columns = r.column;
        if (r.column != *columns)
            return file_fail(f, DIAG_R0503, "line %lld has %lld cell%s, the first has %lld",
                             (long long)r.line, (long long)r.column, r.column == 1 ? "" : "s",
                             (long long)*columns);
    }
    *rows = lines - *heading;
    return true;
}

Tensor *csv_parse(const File *f, const Bytes *b, DType t, int rank) {
    int64_t rows, columns;
    bool heading;
    if (!csv_count(f, b, &rows, &columns, &heading))
        return NULL;
    int64_t shape[2] = {rows, columns};
    if (rank == 1 && rows != 1 && columns != 1 && rows * columns != 0) {
        file_fail(f, DIAG_R0504, "a matrix of %lld rows and %lld columns is no vector",
                  (long long)rows, (long long)columns);
        return NULL;
    }
    if (rank == 1)
        shape[0] = rows * columns;
    if (shape_count(rank == 1 ? 1 : 2, shape, t) < 0)
        BUG("a matrix larger than its file");
    Tensor *made = tensor_new(t, rank == 1 ? 1 : 2, shape);
    unsigned char *to = tensor_data(made);
    Reader r = reader_begin(b);
    for (int64_t line = 0; read_cell(&r); line += r.last) {
        if (heading && line == 0)
            continue;
        if (builtin_interrupted(f->call))
            return NULL;
        if (!convert(&r.cell, t, to)) {
            file_fail(f, DIAG_R0503, "line %lld, cell %lld: `%.40s` is no %s", (long long)r.line,
                      (long long)r.column, str_text(&r.cell), dtype_info[t].name);
            return NULL;
        }
        to += dtype_size(t);
    }
    return made;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool csv_write(const File *f, const Tensor *t) {
    if (t->rank != 1 && t->rank != 2)
        return file_fail(f, DIAG_R0505, "CSV holds a matrix or a vector, this has %d axes",
                         t->rank);
    int64_t columns = t->rank == 2 ? t->shape[1] : 1;
    Str text = {0};
    for (int64_t i = 0; i < t->count; i++) {
        if (builtin_interrupted(f->call))
            return false;
        void *p = tensor_at(t, i);
        if (dtype_is_float(t->dtype))
            value_print(&text, value_float(t->dtype, elem_get_float(p, t->dtype)), NULL);
        else
            value_print(&text, value_int(t->dtype, elem_get_int(p, t->dtype)), NULL);
        str_add_char(&text, (i + 1) % columns == 0 ? '\n' : ',');
    }
    Output file;
    output_open(&file, f->path);
    output_add(&file, text.text, text.len);
    return file_close(f, &file);
}
