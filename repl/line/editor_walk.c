/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through the history. */
#include "repl/line/editor_internal.h"

#include <string.h>

static void begin(Editor *e, size_t prefix) {
    history_refresh(&e->history);
    e->walking = true;
    e->place = e->history.items.len;
    e->original = mem_strdup(str_text(&e->buffer.text));
    e->original_cursor = e->buffer.cursor;
    e->query = (Str){0};
    str_add_n(&e->query, e->original, prefix);
}

static void show(Editor *e, const char *text, size_t cursor) {
    buffer_replace(&e->buffer, 0, e->buffer.text.len, text, strlen(text));
    buffer_set_cursor(&e->buffer, cursor);
}

void walk_to_entry(Editor *e, Direction d) {
    if (!e->walking)
        begin(e, e->buffer.cursor);
    const char *here = str_text(&e->buffer.text);
    if (history_find(&e->history, &e->place, d == BACKWARD, str_text(&e->query), false, here)) {
        const char *text = e->history.items.data[e->place]->text;
        show(e, text, strlen(text));
    } else if (d == FORWARD && e->place < e->history.items.len) {
        e->place = e->history.items.len;
        show(e, e->original, e->original_cursor);
    }
}

void walk_end(Editor *e) {
    e->walking = e->searching = false;
    e->original = NULL;
    e->query = (Str){0};
}

/* ---- search ---------------------------------------------------------------------------------- */

void walk_begin_search(Editor *e) {
    if (!e->walking)
        begin(e, 0);
    e->query = (Str){0};
    e->searching = true;
}

/* Shows the nearest entry that holds the query, from where the walk stands. */
static void search(Editor *e, bool older, const char *other_than) {
    if (!e->query.len) {
        e->place = e->history.items.len;
        show(e, e->original, e->original_cursor);
    } else if (history_find(&e->history, &e->place, older, str_text(&e->query), true, other_than)) {
        const char *text = e->history.items.data[e->place]->text;
        const char *at = strcasestr(text, str_text(&e->query));
        show(e, text, (size_t)(at - text));
    }
}

/* A changed query is looked for anew, from the newest entry. */
static void search_again(Editor *e) {
    e->place = e->history.items.len;
    search(e, true, NULL);
}

bool walk_press(Editor *e, const Key *key) {
    if (key->kind == KEY_TEXT && !key->alt) {
        str_add(&e->query, key->text);
        search_again(e);
        return true;
    }
    if (key->kind == KEY_BACKSPACE) {
        while (e->query.len && (e->query.text[--e->query.len] & 0xC0) == 0x80)
            ;
        if (e->query.text)
            e->query.text[e->query.len] = '\0';
        search_again(e);
        return true;
    }
    bool control = key->kind == KEY_CONTROL && !key->alt;
    if (control && (key->text[0] == 'R' || key->text[0] == 'S')) {
        search(e, key->text[0] == 'R', str_text(&e->buffer.text));
        return true;
    }
    if (key->kind == KEY_UNKNOWN)
        return true;
    bool gives_up = control && (key->text[0] == 'G' || key->text[0] == 'C');
    if (gives_up)
        show(e, e->original, e->original_cursor);
    walk_end(e);
    return gives_up || key->kind == KEY_ESCAPE;
}
