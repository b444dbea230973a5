/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/paste.h"

#include <string.h>

#include "repl/line/editor.h"

/* The bytes of the prompt that a line begins with, whose blank at the end may be missing; 0 for none. */
static size_t prompt_length(const char *line, size_t n, const char *prompt) {
    size_t want = strlen(prompt), bare = want - 1;
    if (n >= want && memcmp(line, prompt, want) == 0)
        return want;
    return n == bare && memcmp(line, prompt, bare) == 0 ? bare : 0;
}

void paste_clean(const char *text, size_t len, Str *out) {
    bool first = true, session = false;
    for (size_t i = 0; i < len;) {
        size_t n = 0;
        while (i + n < len && text[i + n] != '\n' && text[i + n] != '\r')
            n++;
        size_t prompt = prompt_length(text + i, n, editor_prompt);
        size_t skip = prompt ? prompt : prompt_length(text + i, n, editor_prompt_more);
        if (first && n) {
            session = prompt > 0;
            first = false;
        }
        bool kept = skip || !session, ends = i + n < len;
        if (kept)
            str_add_n(out, text + i + skip, n - skip);
        if (kept && ends)
            str_add_char(out, '\n');
        i += n + ends;
        if (ends && text[i - 1] == '\r' && i < len && text[i] == '\n')
            i++;
    }
}
