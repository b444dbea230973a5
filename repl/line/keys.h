/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a terminal to keys.
 *
 * A KeyReader takes one byte at a time and knows nothing of files or time, so that tests can feed it
 * anything. It reads UTF-8, control characters, and the escape sequences of xterm, rxvt, tmux, the
 * Linux console and the kitty protocol. A sequence that means nothing here, an answer of the terminal
 * among them, is one KEY_UNKNOWN; bytes that are no UTF-8 are dropped. */
#ifndef REPL_LINE_KEYS_H
#define REPL_LINE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum KeyKind {
    KEY_TEXT,    /* a character: text */
    KEY_CONTROL, /* Ctrl and a letter or sign: text, in upper case */
    KEY_ENTER,
    KEY_TAB,
    KEY_BACKSPACE,
    KEY_DELETE,
    KEY_ESCAPE,
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_PASTE, /* a bracketed paste begins: the bytes up to ESC [ 201 ~ are its text */
    KEY_UNKNOWN,
} KeyKind;

typedef struct Key {
    KeyKind kind;
    bool shift, alt, ctrl;
    char text[5]; /* ends with NUL */
} Key;

typedef enum KeyState {
    KEYS_GROUND,
    KEYS_UTF8,
    KEYS_ESCAPE,
    KEYS_CSI,    /* after ESC [ */
    KEYS_SS3,    /* after ESC O */
    KEYS_STRING, /* an answer that ends with BEL or ESC \ */
    KEYS_STRING_ESCAPE,
    KEYS_SKIP, /* `skip` more bytes belong to the sequence */
} KeyState;

typedef struct KeyReader {
    KeyState state;
    bool alt;
    uint8_t len, want, skip;
    char bytes[32]; /* of a character, or the parameters of a sequence */
} KeyReader;

/* True when the byte ends a key, which is then in *key. */
bool keys_feed(KeyReader *r, unsigned char byte, Key *key);
/* Whether bytes were read that are no key yet: ESC alone is a key only after a pause. */
bool keys_are_pending(const KeyReader *r);
/* That pause: what is pending is a key by itself. False: nothing was. */
bool keys_flush(KeyReader *r, Key *key);

#endif
