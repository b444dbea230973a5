/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/library.h"

#include <string.h>

#include "prelude/texts.h"
#include "repl/doc.h"

/* ---- reading the texts ----------------------------------------------------------------------- */

static bool is_name_char(char c) {
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* The word that begins an item of a line, with the blank after it, or NULL. */
static const char *item_word(const char *line) {
    static const char *const words[] = {"def ", "operator ", "type ", "let "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(line, words[i], strlen(words[i])) == 0)
            return words[i];
    return NULL;
}

/* The definition up to its body: of a function to `{`, of an operator or a `let` to `=`; line breaks become blanks. */
static const char *head_text(const char *line, bool is_def, bool is_type) {
    Str out = {0};
    for (const char *p = line; *p && (is_def ? *p != '{' : is_type || strncmp(p, " = ", 3) != 0);
         p++) {
        if (*p == '\n' && !is_def)
            break;
        if (*p == '\n')
            p += strspn(p + 1, " ");
        str_add_char(&out, *p == '\n' ? ' ' : *p);
    }
    while (out.len && (out.text[out.len - 1] == ' ' || out.text[out.len - 1] == '='))
        out.len--;
    if (out.text)
        out.text[out.len] = '\0';
    return str_text(&out);
}

/* Takes the comment above an item apart: what it says, an example, and what that shows. */
static void read_comment(const char *begin, const char *end, LibraryItem *item) {
    Str doc = {0}, result = {0};
    bool in_result = false;
    for (const char *p = begin; p < end;) {
        size_t n = strcspn(p, "\n"), skip = 3 + (n > 3 && p[3] == ' ');
        const char *text = n > skip ? mem_strndup(p + skip, n - skip) : "";
        if (strncmp(text, "Example: ", 9) == 0) {
            item->example = text + 9;
        } else if (item->example && (in_result || strncmp(text, "gives ", 6) == 0)) {
            str_printf(&result, "%s%s", in_result ? "\n" : "", text + (in_result ? 0 : 6));
            in_result = true;
        } else {
            str_printf(&doc, "%s%s", doc.len ? "\n" : "", text);
        }
        p += n + (p[n] == '\n');
    }
    item->doc = str_text(&doc);
    item->result = str_text(&result);
}

static void read_text(const char *module, const char *text, LibraryItemVec *out) {
    const char *comment = NULL;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        const char *word = item_word(p);
        const char *name = word ? p + strlen(word) : p;
        name += *name == '@';
        if (word && *name != '_' && is_name_char(*name)) {
            LibraryItem item = {.module = module, .doc = "", .result = ""};
            size_t len = 0;
            while (is_name_char(name[len]))
                len++;
            item.name = mem_strndup(name, len);
            item.head = head_text(p, word[0] == 'd', word[0] == 't');
            if (comment)
                read_comment(comment, p, &item);
            vec_push(out, item);
        }
        comment = strncmp(p, "///", 3) != 0 ? NULL : comment ? comment : p;
        p += n + (p[n] == '\n');
    }
}

void library_list(const char *module, LibraryItemVec *out) {
    for (const EmbeddedText *t = embedded_texts; t->name; t++) {
        bool prelude = strcmp(t->name, "prelude/prelude.rly") == 0 ||
                       strcmp(t->name, "prelude/rows.rly") == 0;
        if (!prelude && strncmp(t->name, "stdlib/", 7) != 0)
            continue;
        const char *file = t->name + 7;
        const char *name = prelude ? "" : mem_strndup(file, strcspn(file, "."));
        if (!module || strcmp(module, name) == 0)
            read_text(name, mem_strndup(t->text, t->len), out);
    }
}

const char *library_about(const char *module) {
    const char *path = fmt_text("stdlib/%s.rly", module);
    for (const EmbeddedText *t = embedded_texts; t->name; t++) {
        if (strcmp(t->name, path) != 0)
            continue;
        Str out = {0};
        const char *p = mem_strndup(t->text, t->len);
        for (size_t n; strncmp(p, "// ", 3) == 0; p += n + (p[n] == '\n')) {
            n = strcspn(p, "\n");
            if (strncmp(p, "// SPDX", 7) != 0)
                str_printf(&out, "%s%.*s", out.len ? "\n" : "", (int)n - 3, p + 3);
        }
        return str_text(&out);
    }
    return NULL;
}

const LibraryItem *library_find(const char *name) {
    LibraryItemVec all = {0};
    library_list(NULL, &all);
    const LibraryItem *bare = NULL;
    for (size_t i = 0; i < all.len; i++) {
        const LibraryItem *item = &all.data[i];
        if (strcmp(*item->module ? fmt_text("%s.%s", item->module, item->name) : item->name,
                   name) == 0)
            return item;
        if (!bare && strcmp(item->name, name) == 0)
            bare = item;
    }
    return bare;
}

/* ---- the page -------------------------------------------------------------------------------- */

void library_print_doc(Str *out, const LibraryItem *item) {
    str_printf(out, "%s\n", item->head);
    library_print_comment(out, item);
    if (*item->module)
        str_printf(out, "  `import %s;` has it\n", item->module);
}

void library_print_comment(Str *out, const LibraryItem *item) {
    if (*item->doc) {
        str_add(out, "  ");
        str_add_indented(out, join_lines(item->doc), 2);
        str_add_char(out, '\n');
    }
    if (item->example) {
        str_printf(out, "  example   %s\n", item->example);
        str_add(out, "  gives     ");
        str_add_indented(out, item->result, 12);
        str_add_char(out, '\n');
    }
}
