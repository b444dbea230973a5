/* SPDX-License-Identifier: Apache-2.0 */
/* docs/errors.md from base/diag.def, docs/operators.md from the table of operators, docs/library.md from
 * the `///` comments of the prelude and the library. */
#include "docs/pages.h"

#include <stdio.h>
#include <string.h>

#include "ops/ops.h"
#include "repl/doc.h"
#include "repl/library.h"
#include "types/infer/infer.h"

const Page pages[PAGE_COUNT] = {
    {"errors", page_print_errors},       {"kernels", page_print_kernels},
    {"library", page_print_library},     {"onnx", page_print_onnx},
    {"operators", page_print_operators},
};

const Page *page_find(const char *name) {
    for (int i = 0; i < PAGE_COUNT; i++)
        if (strcmp(pages[i].name, name) == 0)
            return &pages[i];
    return NULL;
}

const char *page_read(const char *path) {
    FILE *f = fopen(path, "rb");
    Str text = {0};
    char part[16384];
    size_t n;
    if (!f)
        return NULL;
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        str_add_n(&text, part, n);
    fclose(f);
    return str_text(&text);
}

bool page_print(const Page *page, Session *s, const char *old, Str *out, const char **why) {
    const char *mark = strstr(old, PAGE_MARK);
    if (!mark) {
        *why = fmt_text("docs/%s.md has no line `%s`", page->name, PAGE_MARK);
        return false;
    }
    str_add_n(out, old, (size_t)(mark - old));
    str_add(out, PAGE_MARK "\n\n");
    return page->print(s, out, why);
}

/* ---- diagnostics ----------------------------------------------------------------------------- */

static const char *const ranges[10] = {
    "the reader", "names", "types", "shapes", "derivatives", "data", "run time", "", "", "warnings",
};

static void print_program(Str *out, const char *heading, const char *program) {
    if (*program)
        str_printf(out, "\n%s\n\n```relay-fragment\n%s\n```\n", heading, program);
}

bool page_print_errors(Session *s, Str *out, const char **why) {
    (void)s;
    (void)why;
    char range = 0;
    for (int c = DIAG_NONE + 1; c < DIAG_COUNT; c++) {
        const DiagInfo *info = diag_get_info((DiagCode)c);
        if (info->name[2] != range) {
            range = info->name[2];
            str_printf(out, "## R0%c: %s\n\n", range, ranges[range - '0']);
        }
        str_printf(out, "### %s: %s\n\n%s\n", info->name, info->title, info->explanation);
        print_program(
            out, info->severity == SEVERITY_WARNING ? "This draws the warning:" : "This draws it:",
            info->bad);
        print_program(out, "This is right:", info->good);
        if (c + 1 < DIAG_COUNT)
            str_add_char(out, '\n');
    }
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

static void print_link(Str *out, const char *name, size_t n) {
    bool known = op_find(sym_intern(mem_strndup(name, n))) != NULL;
    if (!known) {
        str_printf(out, "`%.*s`", (int)n, name);
        return;
    }
    str_printf(out, "[`%.*s`](#", (int)n, name);
    for (size_t i = 0; i < n; i++) /* as renderers make an anchor of a heading */
        if (name[i] != '.')
            str_add_char(out, name[i]);
    str_add_char(out, ')');
}

static void print_see_also(Str *out, const char *names) {
    str_add(out, "See also ");
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ", ");
        print_link(out, p, n);
        p += n;
        size_t gap = strspn(p, ", ");
        if (p[gap])
            str_add(out, ", ");
        p += gap;
    }
    str_add(out, ".\n\n");
}

static void print_op(Session *s, Str *out, const Op *op) {
    str_printf(out, "### %s\n\n```relay-fragment\n", op->name);
    op_print_signature(out, op, 96);
    const char *type = op_type_text(session_env(s), op);
    if (type)
        str_printf(out, "\n%s : %s", op->name, type);
    str_printf(out, "\n```\n\n%s\n\n", op->doc);
    str_printf(out, "Takes %s.", dtype_set_text(op->dtypes));
    if (op->shape_mode != SHAPE_OF_SHAPES)
        str_printf(out, " The result's sizes follow from %s.", shape_mode_words(op->shape_mode));
    if (op->reference_only)
        str_printf(out, " It has no kernel: %s.", op->reference_only);
    str_add(out, "\n\n");
    for (int i = 0; i < op->nattrs; i++) {
        const AttrSpec *a = &op->attrs[i];
        str_printf(out, "- `%s`, %s, %s%s%s: %s\n", a->name, attr_type_words(a->type),
                   a->initial ? "default `" : "required", a->initial ? a->initial : "",
                   a->initial ? "`" : "", a->doc);
    }
    if (op->nattrs)
        str_add_char(out, '\n');
    str_printf(out, "```relay-fragment\nrelay> ");
    str_add(out, op->example);
    str_printf(out, "\n%s\n```\n\n", op->example_result);
    const char *rule = op_rule_text(session_env(s), op);
    if (rule)
        str_printf(out, "```relay-fragment\n%s\n```\n\n", rule);
    else
        str_add(out, "It has no derivative.\n\n");
    if (op->see_also)
        print_see_also(out, op->see_also);
}

static const struct {
    const char *group, *name; /* one of them */
} tvm[] = {
#define TVM_GROUP(title) {title, NULL},
#define TVM(name) {NULL, name},
#include "docs/tvm.def"
#undef TVM_GROUP
#undef TVM
};
enum { NTVM = sizeof tvm / sizeof *tvm };

static bool is_of_tvm(const Op *op) {
    for (size_t i = 0; i < NTVM; i++)
        if (tvm[i].name && op_find(sym_intern(tvm[i].name)) == op)
            return true;
    return false;
}

/* The operator that has this name in TVM, or of which it is a form; or NULL. */
static const Op *find_tvm(size_t i) {
    const Symbol *name = tvm[i].name ? sym_intern(tvm[i].name) : NULL;
    const Op *op = name ? op_find(name) : NULL;
    return op || !name ? op : infer_find_dyn(name);
}

/* One row for each of TVM's operators that is here; the others of its group behind them. */
static void print_tvm(Session *s, Str *out) {
    size_t all = 0, here = 0, forms = 0, absent = 0;
    for (size_t i = 0; i < NTVM; i++) {
        const char *why, *instead;
        all += tvm[i].name != NULL;
        here += find_tvm(i) != NULL;
        if (find_tvm(i) || !tvm[i].name || !op_find_absent(tvm[i].name, &why, &instead))
            continue;
        forms += op_is_form(tvm[i].name);
        absent += !op_is_form(tvm[i].name);
    }
    str_printf(out,
               "## TVM's operators\n\nOf the %zu operators that TVM's Relay registers %zu are "
               "here, %zu are statements of blocks, and %zu are refused "
               "with what there is instead. "
               "Compiled ones run as kernels and give the bits of their reference evaluation.\n\n"
               "| operator | runs | derivative |\n|---|---|---|\n",
               all, here, forms, absent);
    for (size_t i = 0; i < NTVM; i++) {
        const Op *op = find_tvm(i);
        if (tvm[i].group)
            str_printf(out, "| **%s** | | |\n", tvm[i].group);
        if (op) {
            str_add(out, "| ");
            if (op != op_find(sym_intern(tvm[i].name)))
                str_printf(out, "`%s`, a form of ", tvm[i].name);
            print_link(out, op->name, strlen(op->name));
            str_printf(out, " | %s%s | %s |\n",
                       op->lower ? "compiled" : "reference: ", op->lower ? "" : op->reference_only,
                       op_rule_text(session_env(s), op) ? "yes" : "none");
        }
        const char *why, *instead;
        if (!op && tvm[i].name && op_find_absent(tvm[i].name, &why, &instead))
            str_printf(out, "| `%s` | %s%s | %s |\n", tvm[i].name,
                       op_is_form(tvm[i].name) ? "" : "refused: ", why, instead);
    }
    size_t missing = 0;
    for (size_t i = 0; i < NTVM; i++) {
        const char *why, *instead;
        if (!tvm[i].name || find_tvm(i) || op_find_absent(tvm[i].name, &why, &instead))
            continue;
        str_printf(out, "%s`%s`", missing++ ? ",\n" : "\nNot here:\n", tvm[i].name);
    }
    str_printf(out, "%s\nThese are not TVM's:", missing ? ".\n" : "");
    for (size_t i = 0, n = 0; i < op_count(); i++)
        if (!op_is_internal(op_at(i)) && !is_of_tvm(op_at(i))) {
            str_add(out, n++ ? ",\n" : "\n");
            print_link(out, op_at(i)->name, strlen(op_at(i)->name));
        }
    str_add(out, ".\n\n");
}

/* Links to the operators of one kind, then their entries. */
static void print_kind(Session *s, Str *out, bool internal) {
    for (size_t i = 0; i < op_count(); i++)
        if (op_is_internal(op_at(i)) == internal) {
            print_link(out, op_at(i)->name, strlen(op_at(i)->name));
            str_add_char(out, '\n');
        }
    str_add_char(out, '\n');
    for (size_t i = 0; i < op_count(); i++)
        if (op_is_internal(op_at(i)) == internal)
            print_op(s, out, op_at(i));
}

bool page_print_operators(Session *s, Str *out, const char **why) {
    (void)why;
    size_t shown = 0;
    for (size_t i = 0; i < op_count(); i++)
        shown += !op_is_internal(op_at(i));
    print_tvm(s, out);
    str_printf(out, "## The %zu operators\n\n", shown);
    print_kind(s, out, false);
    str_printf(out,
               "## What derivatives are made of\n\nThese %zu are in the derivatives of others; no "
               "program needs to call them.\n\n",
               op_count() - shown);
    print_kind(s, out, true);
    while (out->len > 1 && out->text[out->len - 1] == '\n' && out->text[out->len - 2] == '\n')
        out->text[--out->len] = '\0';
    return true;
}

/* ---- the prelude and the library ------------------------------------------------------------- */

static void print_example(Str *out, const LibraryItem *item) {
    str_add(out, "\n```relay\n");
    if (*item->module)
        str_printf(out, "import %s;\n", item->module);
    str_printf(out, "%s\n", item->example);
    for (const char *line = item->result; *line;) {
        size_t n = strcspn(line, "\n");
        str_printf(out, "// expect: %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    str_add(out, "```\n");
}

bool page_print_library(Session *s, Str *out, const char **why) {
    LibraryItemVec items = {0};
    const char *module = NULL;
    (void)s;
    (void)why;
    library_list(NULL, &items);
    for (size_t i = 0; i < items.len; i++) {
        const LibraryItem *item = &items.data[i];
        if (!module || strcmp(module, item->module) != 0) {
            module = item->module;
            if (*module)
                str_printf(out, "%s## `import %s;`\n", i ? "\n" : "", module);
            else
                str_printf(out, "%s## The prelude\n", i ? "\n" : "");
        }
        str_printf(out, "\n### `%s`\n\n    %s\n", item->name, item->head);
        if (*item->doc)
            str_printf(out, "\n%s\n", item->doc);
        if (item->example)
            print_example(out, item);
    }
    return true;
}
