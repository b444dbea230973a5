/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the line editor: keys, buffer, screen, paint, paste. Random keys must not break the buffer,
 * nor random frames the screen. */
#include "repl/line/buffer.h"
#include "repl/line/keys.h"
#include "repl/line/paint.h"
#include "repl/line/paste.h"
#include "repl/line/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static uint64_t random_state = 1;
static size_t draw_number(size_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(random_state >> 33) % n;
}

/* Letters, marks that combine, wide ones, emoji with joiners, line breaks, brackets. */
static const char *const pieces[] = {
    "a",
    "b",
    "1",
    " ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\t",
    "\"",
    "//",
    "/*",
    "e\xCC\x81",
    "\xCC\x81",
    "\xE6\xBC\xA2",
    "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",
    "let ",
    "fn",
    "\xC3\xA9",
};
enum { NPIECES = sizeof pieces / sizeof *pieces };

/* ---- keys ------------------------------------------------------------------------------------ */

/* What a string of bytes gives, as text: kinds by number, with modifiers and text. */
static const char *keys_of(const char *bytes) {
    KeyReader r = {0};
    Key key;
    Str out = {0};
    for (const char *p = bytes; *p; p++)
        if (keys_feed(&r, (unsigned char)*p, &key))
            str_printf(&out, "%d%s%s%s%s ", key.kind, key.shift ? "S" : "", key.alt ? "A" : "",
                       key.ctrl ? "C" : "", key.text);
    if (keys_flush(&r, &key))
        str_printf(&out, "%d%s ", key.kind, key.alt ? "A" : "");
    return str_text(&out);
}

static const char *kind(KeyKind k) { return fmt_text("%d ", k); }

TEST(keys) {
    static const char *const homes[] = {"\033[H", "\033OH", "\033[1~", "\033[7~"};
    static const char *const ends[] = {"\033[F", "\033OF", "\033[4~", "\033[8~"};
    for (int i = 0; i < 4; i++) {
        CHECK_TEXT(keys_of(homes[i]), kind(KEY_HOME));
        CHECK_TEXT(keys_of(ends[i]), kind(KEY_END));
    }
    CHECK_TEXT(keys_of("\033[1;5C"), fmt_text("%dC ", KEY_RIGHT));
    CHECK_TEXT(keys_of("\033[1;3D"), fmt_text("%dA ", KEY_LEFT));
    CHECK_TEXT(keys_of("\033\033[D"), fmt_text("%dA ", KEY_LEFT));
    CHECK_TEXT(keys_of("\033Od"), fmt_text("%dC ", KEY_LEFT));
    CHECK_TEXT(keys_of("\033[7^"), fmt_text("%dC ", KEY_HOME));
    CHECK_TEXT(keys_of("\033[3;5~"), fmt_text("%dC ", KEY_DELETE));
    CHECK_TEXT(keys_of("\033[97;5u"), fmt_text("%dCA ", KEY_CONTROL));
    CHECK_TEXT(keys_of("\033[27;5;114~"), fmt_text("%dCR ", KEY_CONTROL));
    CHECK_TEXT(keys_of("\033[13;2u"), fmt_text("%dS ", KEY_ENTER));
    CHECK_TEXT(keys_of("\033"), kind(KEY_ESCAPE));
    CHECK_TEXT(keys_of("\033x"), fmt_text("%dAx ", KEY_TEXT));
    CHECK_TEXT(keys_of("\033[200~"), kind(KEY_PASTE));
    CHECK_TEXT(keys_of("\xC3\xA9"), fmt_text("%d\xC3\xA9 ", KEY_TEXT));
    /* Answers and function keys are one unknown key each, and what follows is read. */
    static const char *const unknown[] = {
        "\033[?62;1c", "\033]11;rgb:0/0/0\007",
        "\033[[A",     "\033P1$r0m\033\\",
        "\033[15~",    "\033OP",
        "\033[M !!",   "\033[99999999999999999999999999999999999999999q"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        CHECK_TEXT(keys_of(fmt_text("%sx", unknown[i])),
                   fmt_text("%d %dx ", KEY_UNKNOWN, KEY_TEXT));
    /* An answer that does not end gives way to Enter; bytes that are no UTF-8 are dropped. */
    CHECK_TEXT(keys_of("\033]11;rgb\ra"), fmt_text("%d %da ", KEY_ENTER, KEY_TEXT));
    CHECK_TEXT(keys_of("\xFF\xC3x\xE2\x82y"), fmt_text("%dx %dy ", KEY_TEXT, KEY_TEXT));
    /* Any bytes at all. */
    KeyReader r = {0};
    Key key;
    for (int i = 0; i < 200000; i++)
        if (keys_feed(&r, (unsigned char)draw_number(draw_number(2) ? 256 : 48), &key) &&
            key.kind == KEY_TEXT)
            CHECK(text_is_utf8(key.text, strlen(key.text), NULL));
}

/* ---- buffer ---------------------------------------------------------------------------------- */

static bool is_boundary(const Buffer *b, size_t at) {
    size_t i = buffer_line_begin(b, at), columns;
    while (i < at)
        i += text_first_cluster(b->text.text + i, b->text.len - i, &columns);
    return i == at;
}

static void change_at_random(Buffer *b) {
    const char *piece = pieces[draw_number(NPIECES)];
    Direction d = draw_number(2) ? FORWARD : BACKWARD;
    size_t there = draw_number(2) ? buffer_find_char(b, b->cursor, d)
                                  : buffer_find_word(b, b->cursor, d);
    size_t begin = there < b->cursor ? there : b->cursor;
    size_t end = there < b->cursor ? b->cursor : there;
    switch (draw_number(12)) {
    case 0:
    case 1:
    case 2:
    case 3: buffer_insert(b, piece, strlen(piece)); break;
    case 4: buffer_replace(b, begin, end, "", 0); break;
    case 5: buffer_kill(b, begin, end); return;
    case 6: buffer_yank(b); return;
    case 7: buffer_yank_older(b); return;
    case 8: buffer_set_cursor(b, there); break;
    case 9: buffer_move_line(b, d); break;
    case 10: d == FORWARD ? buffer_redo(b) : buffer_undo(b); break;
    case 11: buffer_exchange_chars(b); break;
    }
    buffer_end_chain(b);
}

TEST(buffer_at_random) {
    for (int round = 0; round < 60; round++) {
        Buffer b = {0};
        const char *start = round % 2 ? "let x = 1\nx + \xE6\xBC\xA2" : "";
        buffer_set(&b, start, strlen(start));
        for (int i = 0; i < 400; i++) {
            change_at_random(&b);
            CHECK(b.cursor <= b.text.len);
            CHECK(text_is_utf8(str_text(&b.text), b.text.len, NULL));
            CHECK(is_boundary(&b, b.cursor));
        }
        const char *reached = mem_strdup(str_text(&b.text));
        size_t undone = 0;
        while (buffer_undo(&b))
            undone++;
        CHECK_TEXT(str_text(&b.text), start);
        while (undone-- > 0)
            buffer_redo(&b);
        CHECK_TEXT(str_text(&b.text), reached);
    }
}

TEST(buffer) {
    Buffer b = {0};
    buffer_set(&b, "one two", 7);
    buffer_kill(&b, buffer_find_word(&b, b.cursor, BACKWARD), b.cursor);
    buffer_kill(&b, buffer_find_word(&b, b.cursor, BACKWARD), b.cursor); /* joins the first */
    CHECK_TEXT(str_text(&b.text), "");
    buffer_yank(&b);
    CHECK_TEXT(str_text(&b.text), "one two");
    buffer_end_chain(&b);
    buffer_kill(&b, 0, 4);
    buffer_end_chain(&b);
    buffer_yank(&b);
    buffer_yank_older(&b);
    CHECK_TEXT(str_text(&b.text), "one twotwo");
    buffer_set(&b, "", 0);
    for (const char *c = "let x = 12"; *c; c++)
        buffer_insert(&b, c, 1);
    buffer_undo(&b); /* a word at a time */
    CHECK_TEXT(str_text(&b.text), "let x =");
    buffer_redo(&b);
    CHECK_TEXT(str_text(&b.text), "let x = 12");
    buffer_set(&b, "ab\nlonger\nc", 11);
    CHECK(buffer_move_line(&b, BACKWARD) && b.cursor == 4);
    CHECK(buffer_move_line(&b, BACKWARD) && b.cursor == 1);
    CHECK(!buffer_move_line(&b, BACKWARD));
    buffer_insert(&b, "\x01\xFF\x7Fz", 4); /* neither control characters nor broken UTF-8 */
    CHECK_TEXT(str_text(&b.text), "azb\nlonger\nc");
}

/* ---- screen ---------------------------------------------------------------------------------- */

/* A terminal: a grid with the text of each column ("" right of a wide character), and its cursor. */
enum { COLUMNS = 13, ROWS = 9 };
typedef struct Terminal {
    const char *at[ROWS][COLUMNS];
    size_t x, y;
    bool scrolled, wrong;
} Terminal;

static void clear_cells(Terminal *t, size_t y, size_t x) {
    for (; x < COLUMNS; x++)
        t->at[y][x] = " ";
}

static const char *run_escape(Terminal *t, const char *p) {
    size_t n = strtoul(p + 2, (char **)&p, 10);
    while (*p == ';' || (*p >= '0' && *p <= '9'))
        p++;
    size_t step = n ? n : 1;
    switch (*p) {
    case 'A':
        t->wrong |= step > t->y;
        t->y -= step;
        break;
    case 'B':
        t->y += step;
        t->wrong |= t->y >= ROWS;
        break;
    case 'C':
        t->x += step;
        t->wrong |= t->x >= COLUMNS;
        break;
    case 'D':
        t->wrong |= step > t->x;
        t->x -= step;
        break;
    case 'K':
        t->wrong |= t->x >= COLUMNS;
        clear_cells(t, t->y, t->x);
        break;
    case 'J':
        clear_cells(t, t->y, t->x);
        for (size_t y = t->y + 1; y < ROWS; y++)
            clear_cells(t, y, 0);
        break;
    case 'm': break;
    default: t->wrong = true;
    }
    return p + 1;
}

static void write_to(Terminal *t, const char *p) {
    while (*p && !t->wrong) {
        if (*p == '\033') {
            p = run_escape(t, p);
        } else if (*p == '\r') {
            t->x = 0;
            p++;
        } else if (*p == '\n') {
            if (++t->y == ROWS) {
                memmove(t->at[0], t->at[1], sizeof t->at[0] * (ROWS - 1));
                t->y--;
                clear_cells(t, t->y, 0);
            }
            p++;
        } else {
            size_t columns, len = text_first_cluster(p, strlen(p), &columns);
            t->wrong |= t->x + columns > COLUMNS; /* the screen breaks the rows */
            if (t->wrong)
                return;
            t->at[t->y][t->x] = mem_strndup(p, len);
            for (size_t i = 1; i < columns; i++)
                t->at[t->y][t->x + i] = "";
            t->x += columns;
            p += len;
        }
    }
}

/* Whether the terminal shows the frame, with its cursor, and nothing below it. */
static bool shows(const Terminal *t, const Frame *f) {
    if (t->y < f->row || t->x != f->column)
        return false;
    size_t top = t->y - f->row;
    for (size_t y = top; y < ROWS; y++) {
        const Row *row = y - top < f->rows.len ? &f->rows.data[y - top] : NULL;
        size_t x = 0;
        for (size_t i = 0; row && i < row->cells.len; x += row->cells.data[i++].width)
            if (strcmp(t->at[y][x], mem_strndup(row->text.text + row->cells.data[i].begin,
                                                row->cells.data[i].len)) != 0)
                return false;
        for (; x < COLUMNS; x++)
            if (strcmp(t->at[y][x], " ") != 0)
                return false;
    }
    return true;
}

static void start_terminal(Terminal *t) {
    memset(t, 0, sizeof *t);
    for (size_t y = 0; y < ROWS; y++)
        clear_cells(t, y, 0);
}

/* A frame of random text, the same for the same seed. */
static void build(Screen *s, uint64_t seed) {
    random_state = seed;
    screen_begin(s, COLUMNS, ROWS);
    size_t n = draw_number(30), cursor = draw_number(n + 1);
    for (size_t i = 0; i <= n; i++) {
        if (i == cursor)
            screen_mark_cursor(s);
        const char *piece = pieces[draw_number(NPIECES)];
        screen_add(s, piece, strlen(piece), (Style)draw_number(STYLE_HINT + 1));
    }
}

/* After any frames, the terminal shows the last. */
TEST(screen_at_random) {
    long rounds = check_share(2000);
    for (long round = 1; round <= rounds; round++) {
        Terminal t;
        Screen s = {.colors = round % 2};
        start_terminal(&t);
        for (int i = 0; i < 8; i++) {
            Str out = {0};
            build(&s, (uint64_t)round * 100 + (uint64_t)i);
            screen_show(&s, &out);
            write_to(&t, str_text(&out));
            CHECK(!t.wrong && s.drawn.rows.len <= ROWS);
            CHECK(shows(&t, &s.drawn));
        }
    }
}

TEST(screen) {
    Screen s = {0};
    Terminal t;
    Str out = {0};
    start_terminal(&t);
    screen_begin(&s, COLUMNS, ROWS);
    screen_add(&s, "relay> abc", 10, STYLE_PLAIN);
    screen_mark_cursor(&s);
    screen_show(&s, &out);
    write_to(&t, str_text(&out));
    out = (Str){0};
    screen_begin(&s, COLUMNS, ROWS);
    screen_add(&s, "relay> abcd", 11, STYLE_PLAIN);
    screen_mark_cursor(&s);
    screen_show(&s, &out);
    CHECK_TEXT(str_text(&out), "d"); /* a key at the end writes itself */
    write_to(&t, str_text(&out));
    CHECK(shows(&t, &s.drawn));
    out = (Str){0};
    screen_resize(&s, 4, &out); /* the row of 11 is three now, the cursor in the third */
    CHECK_TEXT(str_text(&out), "\033[2A\r\033[J");
}

/* ---- paint and paste ------------------------------------------------------------------------- */

/* A letter for the style of each byte. */
static const char *painted(const char *text, size_t cursor) {
    size_t n = strlen(text);
    uint8_t styles[100] = {0};
    paint_text(text, n, cursor, styles);
    Str out = {0};
    for (size_t i = 0; i < n; i++)
        str_add_char(&out, ".pktnsc:!=h"[styles[i]]);
    return str_text(&out);
}

TEST(paint) {
    CHECK_TEXT(painted("let x = 1 // a", SIZE_MAX), "kkk.....n.cc.c");
    CHECK_TEXT(painted("f(\"a\", [x)", SIZE_MAX), "..sss..!..");
    CHECK_TEXT(painted("(a)]", SIZE_MAX), "...!");
    CHECK_TEXT(painted("(a, (b))", 0), "=......=");
    CHECK_TEXT(painted("(a, (b)) ", 8), "=......=.");
    CHECK_TEXT(painted("Some(\"a", SIZE_MAX), "tttt.ss");
    CHECK_TEXT(painted(":type 1", SIZE_MAX), ":::::.n");
    size_t at;
    CHECK(paint_count_open("f(g[1], {", 9, &at) == 2 && at == 8);
}

static const char *cleaned(const char *text) {
    Str out = {0};
    paste_clean(text, strlen(text), &out);
    return str_text(&out);
}

TEST(paste) {
    CHECK_TEXT(cleaned("1 + 2"), "1 + 2");
    CHECK_TEXT(cleaned("a\r\nb\rc\n"), "a\nb\nc\n");
    CHECK_TEXT(cleaned("relay> 1 + 2\n3 : int32\nrelay> f(\n  ...> 1)\nrelay>\n"),
               "1 + 2\nf(\n1)\n\n");
    CHECK_TEXT(cleaned("def f(x) {\n  ...>   x\n  ...> }\n"), "def f(x) {\n  x\n}\n");
    CHECK_TEXT(cleaned("x\nrelay> y\n"), "x\ny\n");
}

int main(void) {
    mem_init();
    RUN(keys);
    RUN(buffer);
    RUN(buffer_at_random);
    RUN(screen);
    RUN(screen_at_random);
    RUN(paint);
    RUN(paste);
    return check_result();
}
