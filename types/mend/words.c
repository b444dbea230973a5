/* SPDX-License-Identifier: Apache-2.0 */
/* Judges which of two spellings of a name is likelier: the one made of known words, otherwise the one whose
 * letters follow each other as they do in words. The words are those of the library's names and pages and of
 * the program, its comments too. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "types/mend/mend.h"

/* Distinct words, in the order in which they were met. */
typedef struct Words {
    Map seen;
    VEC(const char *)
    marked; /* each word between `^` and `$`, which mark where it begins and ends */
} Words;

static void add_word(void *ctx, const Symbol *word) {
    Words *w = ctx;
    if (map_has(&w->seen, word))
        return;
    map_set(&w->seen, word, (void *)word);
    vec_push(&w->marked, fmt_text("^%s$", word->text));
}

/* Visits the words of a text: letters and digits in a row, where a capital begins another word, so that
 * `toList` and `to_list` both have two. */
static void each_word(const char *text, size_t n, void (*visit)(void *ctx, const Symbol *word),
                      void *ctx) {
    enum { LONGEST = 32 };
    char word[LONGEST];
    size_t len = 0;
    for (size_t i = 0; i <= n; i++) {
        bool letter = i < n && isalnum((unsigned char)text[i]);
        bool begins = letter && isupper((unsigned char)text[i]);
        if (len && (!letter || begins)) {
            visit(ctx, sym_intern_n(word, len));
            len = 0;
        }
        if (letter && len < LONGEST)
            word[len++] = (char)tolower((unsigned char)text[i]);
    }
}

static void add_text(Words *w, const char *text) {
    if (text)
        each_word(text, strlen(text), add_word, w);
}

static bool is_part_of_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Adds the words of the program, except where it says one of the two names. */
static void add_source(Words *w, const Mender *m, const Symbol *a, const Symbol *b) {
    const char *text = m->source->text, *end = text + m->source->len;
    while (text < end) {
        size_t n = 0;
        while (text + n < end && is_part_of_name(text[n]))
            n++;
        bool judged = (n == a->len && memcmp(text, a->text, n) == 0) ||
                      (n == b->len && memcmp(text, b->text, n) == 0);
        if (n && !judged)
            each_word(text, n, add_word, w);
        text += n ? n : 1;
    }
}

static void gather(Words *w, Mender *m, const Symbol *a, const Symbol *b) {
    const SymbolVec *known = mend_known_names(m);
    for (size_t i = 0; i < known->len; i++) {
        if (known->data[i] != a && known->data[i] != b)
            add_text(w, known->data[i]->text);
    }
    for (size_t i = 0; i < op_count(); i++)
        add_text(w, op_at(i)->doc);
    for (int code = DIAG_NONE + 1; code < DIAG_COUNT; code++) {
        add_text(w, diag_get_info((DiagCode)code)->title);
        add_text(w, diag_get_info((DiagCode)code)->explanation);
    }
    add_source(w, m, a, b);
}

typedef struct Judged {
    const Words *words;
    unsigned unknown; /* how many of its words are not known */
    double wordlike;  /* the logarithm of how much likelier it is as words than as random letters */
} Judged;

static unsigned count_words_with(const Words *words, const char *part) {
    unsigned n = 0;
    for (size_t i = 0; i < words->marked.len; i++)
        n += strstr(words->marked.data[i], part) != NULL;
    return n;
}

/* Judges each letter by the two before it. */
static void judge_word(void *ctx, const Symbol *word) {
    enum { LETTERS = 27 };
    Judged *j = ctx;
    j->unknown += !map_has(&j->words->seen, word);
    const char *text = fmt_text("^%s$", word->text);
    for (const char *p = text; p[2]; p++) {
        unsigned three = count_words_with(j->words, (char[]){p[0], p[1], p[2], 0});
        unsigned two = count_words_with(j->words, (char[]){p[0], p[1], 0});
        j->wordlike += log2(LETTERS * (three + 0.5) / (two + 0.5 * LETTERS));
    }
}

bool mend_is_likelier(Mender *m, const Symbol *a, const Symbol *b) {
    enum {
        READ = 10,
        COMPARE = 5
    }; /* units for reading a byte, and for comparing a word with a part of a name */
    Words words = {0};
    if (!mend_may_walk(m, READ * m->source->len))
        return false;
    gather(&words, m, a, b);
    if (!mend_may_walk(m, COMPARE * words.marked.len * 2 * (a->len + b->len)))
        return false;
    Judged x = {.words = &words}, y = {.words = &words};
    each_word(a->text, a->len, judge_word, &x);
    each_word(b->text, b->len, judge_word, &y);
    if (x.unknown != y.unknown)
        return x.unknown < y.unknown;
    return x.wordlike > y.wordlike;
}
