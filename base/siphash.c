/* SPDX-License-Identifier: Apache-2.0 */
/* Section 2.1 of the paper, word by word; bytes are read in little-endian order on every machine. */
#include "base/siphash.h"

typedef struct State {
    uint64_t v0, v1, v2, v3;
} State;

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t read_word(const unsigned char *p, size_t n) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

static void run_rounds(State *s, int rounds) {
    for (int i = 0; i < rounds; i++) {
        s->v0 += s->v1;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v2 = rotate(s->v2, 32);
    }
}

static void add_word(State *s, uint64_t word) {
    s->v3 ^= word;
    run_rounds(s, 2);
    s->v0 ^= word;
}

uint64_t siphash(const unsigned char key[SIPHASH_KEY_BYTES], const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    uint64_t k0 = read_word(key, 8), k1 = read_word(key + 8, 8);
    State s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
               k1 ^ 0x7465646279746573u};
    size_t rest = n;
    for (; rest >= 8; rest -= 8, p += 8)
        add_word(&s, read_word(p, 8));
    add_word(&s, read_word(p, rest) | (uint64_t)(n & 0xFF) << 56);
    s.v2 ^= 0xFF;
    run_rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
