/* SPDX-License-Identifier: Apache-2.0 */
/* See keys.h. Sources: ECMA-48 §5.4 (control sequences), xterm's ctlseqs, rxvt's and the Linux console's
 * terminfo entries, "Fix Keyboard Input on Terminals" (CSI u). */
#include "repl/line/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { ESCAPE = 0x1B, BELL = 0x07, RUBOUT = 0x7F };

/* ---- one key --------------------------------------------------------------------------------- */

static bool give(KeyReader *r, Key *key, KeyKind kind) {
    *key = (Key){.kind = kind, .alt = r->alt};
    r->state = KEYS_GROUND;
    r->alt = false;
    return true;
}

/* An ASCII character, or a control character. */
static bool give_byte(KeyReader *r, Key *key, unsigned char c) {
    switch (c) {
    case '\r':
    case '\n': return give(r, key, KEY_ENTER);
    case '\t': return give(r, key, KEY_TAB);
    case '\b':
    case RUBOUT: return give(r, key, KEY_BACKSPACE);
    }
    give(r, key, c < ' ' ? KEY_CONTROL : KEY_TEXT);
    key->text[0] = (char)(c < ' ' ? c + '@' : c);
    key->ctrl = c < ' ';
    return true;
}

/* xterm sends 1 + a sum of Shift 1, Alt 2, Ctrl 4 and Meta 8. */
static void set_modifiers(Key *key, int sum) {
    int bits = sum > 1 ? sum - 1 : 0;
    key->shift |= (bits & 1) != 0;
    key->alt |= (bits & (2 | 8)) != 0;
    key->ctrl |= (bits & 4) != 0;
}

static KeyKind kind_of_letter(char letter) {
    switch (letter) {
    case 'A': return KEY_UP;
    case 'B': return KEY_DOWN;
    case 'C': return KEY_RIGHT;
    case 'D': return KEY_LEFT;
    case 'H': return KEY_HOME;
    case 'F': return KEY_END;
    case 'M': return KEY_ENTER;
    }
    return KEY_UNKNOWN;
}

static KeyKind kind_of_number(int number) {
    switch (number) {
    case 1:
    case 7: return KEY_HOME;
    case 4:
    case 8: return KEY_END;
    case 3: return KEY_DELETE;
    case 5: return KEY_PAGE_UP;
    case 6: return KEY_PAGE_DOWN;
    case 200: return KEY_PASTE;
    }
    return KEY_UNKNOWN;
}

/* A key that the terminal names by its code point (CSI u, and xterm's CSI 27 ~). */
static bool give_code(KeyReader *r, Key *key, int code, int modifiers) {
    bool ascii = code > 0 && code < 0x80;
    if (code == ESCAPE)
        give(r, key, KEY_ESCAPE);
    else if (ascii)
        give_byte(r, key, (unsigned char)code);
    else
        give(r, key, KEY_UNKNOWN);
    set_modifiers(key, modifiers);
    if (ascii && key->kind == KEY_TEXT && key->ctrl) {
        key->kind = KEY_CONTROL;
        if (key->text[0] >= 'a' && key->text[0] <= 'z')
            key->text[0] = (char)(key->text[0] - 'a' + 'A');
    }
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------- */

/* ESC [ parameters final. */
static bool end_csi(KeyReader *r, Key *key, char final) {
    int numbers[3] = {0, 0, 0};
    r->bytes[r->len] = '\0';
    const char *p = r->bytes;
    if (*p && strchr("?><=", *p)) /* an answer to a question */
        return give(r, key, KEY_UNKNOWN);
    for (int i = 0; i < 3 && *p; i++) {
        numbers[i] = atoi(p);
        p += strcspn(p, ";");
        p += *p == ';';
    }
    if (final == 'M' && !r->len) { /* a mouse, which nobody asked for: three more bytes */
        r->state = KEYS_SKIP;
        r->skip = 3;
        return false;
    }
    if (final == 'u')
        return give_code(r, key, numbers[0], numbers[1]);
    if (final == '~' && numbers[0] == 27)
        return give_code(r, key, numbers[2], numbers[1]);
    if (final == 'Z') {
        give(r, key, KEY_TAB);
        key->shift = true;
        return true;
    }
    if (final == '~' || final == '^' || final == '$' || final == '@') {
        give(r, key, kind_of_number(numbers[0]));
        key->ctrl = final == '^' || final == '@'; /* rxvt */
        key->shift = final == '$' || final == '@';
    } else if (final >= 'a' && final <= 'd') { /* rxvt: Shift and an arrow */
        give(r, key, kind_of_letter((char)(final - 'a' + 'A')));
        key->shift = true;
    } else {
        give(r, key, final == 'M' ? KEY_UNKNOWN : kind_of_letter(final));
    }
    set_modifiers(key, numbers[1]);
    return true;
}

/* ESC O [modifier] final: arrows and the keypad of a terminal in application mode. */
static bool end_ss3(KeyReader *r, Key *key, char final) {
    r->bytes[r->len] = '\0';
    int modifiers = atoi(r->bytes);
    static const char signs[] = "*+,-./0123456789"; /* of the letters j to y */
    if (final >= 'j' && final <= 'y')
        return give_byte(r, key, (unsigned char)signs[final - 'j']);
    if (final >= 'a' && final <= 'd') { /* rxvt: Ctrl and an arrow */
        give(r, key, kind_of_letter((char)(final - 'a' + 'A')));
        key->ctrl = true;
        return true;
    }
    give(r, key, kind_of_letter(final));
    set_modifiers(key, modifiers);
    return true;
}

static bool feed_parameters(KeyReader *r, unsigned char byte, Key *key) {
    bool csi = r->state == KEYS_CSI;
    if (byte < ' ') { /* the sequence was cut off */
        r->state = byte == ESCAPE ? KEYS_ESCAPE : KEYS_GROUND;
        r->alt = false;
        return byte != ESCAPE && give_byte(r, key, byte);
    }
    if (csi && byte == '[' && !r->len) { /* the Linux console's function keys: ESC [ [ A */
        r->state = KEYS_SKIP;
        r->skip = 1;
        return false;
    }
    bool rxvt = csi && byte == '$' && r->len && r->bytes[0] >= '0' && r->bytes[0] <= '9';
    bool parameter = csi ? byte < '@' : (byte >= '0' && byte <= '9') || byte == ';';
    if (parameter && !rxvt) {
        if (r->len + 1u < sizeof r->bytes)
            r->bytes[r->len++] = (char)byte;
        return false;
    }
    if (byte > '~')
        return give(r, key, KEY_UNKNOWN);
    return csi ? end_csi(r, key, (char)byte) : end_ss3(r, key, (char)byte);
}

static bool feed_escape(KeyReader *r, unsigned char byte, Key *key) {
    r->len = 0;
    switch (byte) {
    case '[': r->state = KEYS_CSI; return false;
    case 'O': r->state = KEYS_SS3; return false;
    case ']':
    case 'P':
    case '_':
    case '^':
    case 'X': r->state = KEYS_STRING; return false;
    case ESCAPE: r->alt = true; return false; /* rxvt: Alt and an arrow is ESC ESC [ A */
    }
    r->alt = true;
    r->state = KEYS_GROUND;
    return keys_feed(r, byte, key);
}

/* ---- characters ------------------------------------------------------------------------------ */

static bool feed_ground(KeyReader *r, unsigned char byte, Key *key) {
    if (byte == ESCAPE) {
        r->state = KEYS_ESCAPE;
        return false;
    }
    if (byte < 0x80)
        return give_byte(r, key, byte);
    r->want = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    if (byte >= 0xC2 && byte <= 0xF4) {
        r->state = KEYS_UTF8;
        r->bytes[0] = (char)byte;
        r->len = 1;
    }
    return false;
}

static bool feed_utf8(KeyReader *r, unsigned char byte, Key *key) {
    if ((byte & 0xC0) != 0x80) {
        r->state = KEYS_GROUND;
        return feed_ground(r, byte, key);
    }
    r->bytes[r->len++] = (char)byte;
    if (r->len < r->want)
        return false;
    if (!text_is_utf8(r->bytes, r->len, NULL)) {
        r->state = KEYS_GROUND;
        r->alt = false;
        return false;
    }
    give(r, key, KEY_TEXT);
    memcpy(key->text, r->bytes, r->len);
    return true;
}

bool keys_feed(KeyReader *r, unsigned char byte, Key *key) {
    switch (r->state) {
    case KEYS_GROUND: return feed_ground(r, byte, key);
    case KEYS_UTF8: return feed_utf8(r, byte, key);
    case KEYS_ESCAPE: return feed_escape(r, byte, key);
    case KEYS_CSI:
    case KEYS_SS3: return feed_parameters(r, byte, key);
    case KEYS_STRING:
        if (byte == ESCAPE)
            r->state = KEYS_STRING_ESCAPE;
        else if (byte == BELL)
            return give(r, key, KEY_UNKNOWN);
        else if (byte < ' ') { /* it never ended: what is typed now counts */
            r->alt = false;
            return give_byte(r, key, byte);
        }
        return false;
    case KEYS_STRING_ESCAPE:
        if (byte == '\\')
            return give(r, key, KEY_UNKNOWN);
        r->alt = false;
        r->state = KEYS_ESCAPE;
        return keys_feed(r, byte, key);
    case KEYS_SKIP:
        if (--r->skip)
            return false;
        return give(r, key, KEY_UNKNOWN);
    }
    return false;
}

bool keys_are_pending(const KeyReader *r) { return r->state != KEYS_GROUND; }

bool keys_flush(KeyReader *r, Key *key) {
    if (r->state == KEYS_GROUND)
        return false;
    return give(r, key, r->state == KEYS_ESCAPE ? KEY_ESCAPE : KEY_UNKNOWN);
}
