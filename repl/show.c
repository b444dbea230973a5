/* SPDX-License-Identifier: Apache-2.0 */
/* Values and bindings as the prompt shows them: `value : type`. */
#include <string.h>

#include "eval/digest.h"
#include "repl/plot/cairo.h"
#include "repl/plot/screen.h"
#include "repl/session_internal.h"

/* A plot is shown as a picture, without its type. */
static bool show_plot(Session *s, Value v, Str *out) {
    enum { MOST_COLUMNS = 72, ROWS = 15 };
    const volatile int *interrupt = interp_interrupt_flag(s->interp);
    int width = s->options.width, height = s->options.plot_height;
    PlotLook look = {.width = width > 0 && width < MOST_COLUMNS ? width : MOST_COLUMNS,
                     .height = height ? height : ROWS,
                     .color = s->options.plot_color};
    PlotScreen screen = (PlotScreen)s->options.plot_screen;
    if (screen == SCREEN_AUTO && width > 0 && s->options.at_prompt && !s->asked_screen)
        s->asked_screen = (int)plot_screen_ask();
    if (screen == SCREEN_AUTO)
        screen = s->asked_screen ? (PlotScreen)s->asked_screen : plot_screen_find(width > 0);
    plot_show(out, plot_read(v, interrupt), screen, &look);
    return !*interrupt;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

bool show_draw(Value v, const char *path, Str *bytes, const char **why) {
    if (!plot_is(v))
        return false;
    if (ends_with(path, ".svg"))
        *why = plot_draw(bytes, plot_read(v, NULL), PLOT_SVG);
    else if (ends_with(path, ".png"))
        *why = plot_draw(bytes, plot_read(v, NULL), PLOT_PNG);
    else if (ends_with(path, ".pdf"))
        *why = plot_draw(bytes, plot_read(v, NULL), PLOT_PDF);
    else
        *why = "a plot is saved as .svg, .png or .pdf";
    return true;
}

/* The type, and in words what of it no use has decided yet: `ref(List[a])` of `ref(Nil)` holds elements of one type,
 * which the first one written decides. */
static void add_type(Str *out, const Scheme *scheme) {
    TypeNamer namer = {0};
    Scheme plain = *scheme;
    if (!type_holds_code(
            scheme->type)) { /* `list.sort(list[])`: what made it asks nothing of who looks at it */
        plain.nrelations = 0;
        scheme = &plain;
    }
    TypeVec open = {0};
    Map seen = {0};
    size_t said = 0;
    scheme_print(out, scheme, &namer);
    type_collect(scheme->type, TY_VAR, &seen, &open);
    for (size_t i = 0; i < open.len; i++) {
        if (open.data[i]->kind != KIND_EFFECT)
            str_printf(out, "%s`%s`", said++ ? ", " : "  (the first use decides ",
                       type_text_with(&namer, open.data[i]));
    }
    if (said)
        str_add_char(out, ')');
}

bool show_value(Session *s, Value v, const Scheme *scheme, Str *out) {
    const volatile int *interrupt = interp_interrupt_flag(s->interp);
    if (plot_is(v))
        return show_plot(s, v, out);
    ValuePrintOptions options = {.width = s->options.width,
                                 .digits = s->options.digits,
                                 .edge = s->options.edge,
                                 .max_elements = s->options.most_elements,
                                 .interrupt = interrupt};
    value_print(out, v, &options);
    if (*interrupt)
        return false;
    if (scheme && !s->options.hides_types) {
        str_add(out, " : ");
        add_type(out, scheme);
    }
    str_add_char(out, '\n');
    return true;
}

void show_binding(Str *out, const Symbol *name, const Scheme *scheme) {
    str_printf(out, "%s : ", name->text);
    add_type(out, scheme);
    str_add_char(out, '\n');
}

static void show_ctor(Str *out, const Ctor *c, TypeNamer *namer) {
    str_add(out, c->name->text);
    if (!c->nfields)
        return;
    str_add(out, c->field_names ? " { " : "(");
    for (uint32_t i = 0; i < c->nfields; i++) {
        if (i)
            str_add(out, ", ");
        if (c->field_names)
            str_printf(out, "%s: ", c->field_names[i]->text);
        type_print(out, c->fields[i], namer);
    }
    str_add(out, c->field_names ? " }" : ")");
}

void show_type_decl(Str *out, const TypeDecl *decl) {
    TypeNamer namer = {0};
    str_printf(out, "type %s", decl->name->text);
    if (decl->version)
        str_printf(out, "#%u", decl->version);
    for (uint32_t i = 0; i < decl->nparams; i++) {
        str_add(out, i ? ", " : "[");
        type_print(out, decl->params[i], &namer);
    }
    if (decl->nparams)
        str_add_char(out, ']');
    for (uint32_t i = 0; i < decl->nctors; i++) {
        str_add(out, i ? " | " : " = ");
        show_ctor(out, decl->ctors[i], &namer);
    }
    str_add_char(out, '\n');
}

/* ---- lines that a terminal can hold ---------------------------------------------------------- */

/* Whether a line may not end after the text before p: the word there announces what follows. */
static bool announces(const char *line, const char *p) {
    static const char *const words[] = {"where", "->", ":", "=", "|"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        size_t before = (size_t)(p - line);
        if (before >= n && (before == n || p[-(long)n - 1] == ' ') && !strncmp(p - n, words[i], n))
            return true;
    }
    return false;
}

/* Where the line of n bytes is best broken: at a blank, far to the right, not deep in brackets, and
 * rather after a comma than within a term. NULL: it fits, has no such blank, or is coloured, as the lines of a
 * picture are, which are as wide as they should be. *open: the brackets open where the line begins, then where it
 * breaks. */
static const char *break_of(const char *line, size_t n, size_t width, long *open) {
    enum {
        SQUARE = 4
    }; /* `Tensor[(2, 3), float32]` is rather kept whole than the parameters of a function */
    const char *best = NULL;
    long depth = *open, best_score = 0;
    bool quoted = false;
    size_t column = 0, indent = strspn(line, " ");
    if (memchr(line, '\033', n))
        return NULL;
    for (const char *p = line; p < line + n;) {
        size_t len = 1;
        while (p + len < line + n && ((unsigned char)p[len] & 0xC0) == 0x80)
            len++;
        if (*p == '"' && !(quoted && p[-1] == '\\'))
            quoted = !quoted;
        if (!quoted && strchr("([{", *p))
            depth += *p == '[' ? SQUARE : 1;
        if (!quoted && strchr(")]}", *p))
            depth -= *p == ']' ? SQUARE : 1;
        if (*p == ' ' && !quoted && column > indent && !announces(line, p)) {
            long inner = depth + (depth && p[-1] != ',' ? 2 : 0);
            long score = (long)column - inner * (long)width / 4;
            if (!best || score >= best_score) {
                best = p;
                best_score = score;
                *open = depth;
            }
        }
        column += text_width(p, len);
        if (column > width && best)
            return best;
        p += len;
    }
    return column > width ? best : NULL;
}

/* The column at which a broken line goes on: under the text of an entry `name    text`, under the
 * line itself when that is indented, else a step in. */
static size_t hanging(const char *line, size_t n) {
    size_t indent = strspn(line, " ");
    for (size_t i = indent + 1; i + 1 < n && i < 16; i++) {
        if (line[i - 1] == ' ' && line[i - 2] == ' ' && line[i] != ' ')
            return i;
    }
    return indent ? indent : 4;
}

static void add_folded(Str *out, const char *text, size_t width) {
    while (*text) {
        size_t n = strcspn(text, "\n"), hang = hanging(text, n), room = width;
        long open = 0;
        for (const char *at; (at = break_of(text, n, room, &open));) {
            str_add_n(out, text, (size_t)(at - text));
            str_printf(out, "\n%*s", (int)hang, "");
            n -= (size_t)(at + 1 - text);
            text = at + 1;
            room = width > hang + 20 ? width - hang : 20;
        }
        str_add_n(out, text, n);
        text += n;
        if (*text)
            str_add_char(out, *text++);
    }
}

const char *session_fold(const Session *s, const Str *text) {
    if (!s->options.width)
        return str_text(text);
    Str folded = {0};
    add_folded(&folded, str_text(text), (size_t)s->options.width);
    return str_text(&folded);
}

/* Words of a text in lines of at most `width` columns. */
static void add_filled(Str *out, const char *text, size_t width) {
    for (size_t column = 0; *text;) {
        size_t n = strcspn(text, " ");
        if (column && column + 1 + n > width) {
            str_add_char(out, '\n');
            column = 0;
        }
        if (column)
            str_add_char(out, ' ');
        str_add_n(out, text, n);
        column += n + (column > 0);
        text += n + strspn(text + n, " ");
    }
    str_add_char(out, '\n');
}

const char *session_fill(const Session *s, const char *words) {
    enum { WIDEST = 80 };
    int width = s->options.width;
    Str filled = {0};
    add_filled(&filled, words, (size_t)(width > 0 && width < WIDEST ? width : WIDEST));
    return str_text(&filled);
}

int session_width(const Session *s) { return s->options.width; }

void session_print_counts(const Session *s, Str *out) { interp_print_counts(s->interp, out); }

void session_print_digests(const Session *s, Str *out) {
    for (size_t i = 0; i < s->digested.len; i++) {
        const DigestedValue *d = &s->digested.data[i];
        str_printf(out, "digest: %s %016llx\n", d->name,
                   (unsigned long long)value_digest(d->value));
    }
}

void session_show(Session *s, const Str *text) {
    const char *folded = session_fold(s, text);
    s->sink.value(s->sink.ctx, folded, strlen(folded));
}
