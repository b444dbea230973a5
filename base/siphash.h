/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 with a tag of 64 bits: who does not know the key cannot make a tag for a text of his
 * own. J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", Indocrypt 2012. For
 * tables in memory hash_bytes (base/map.h) is faster. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_KEY_BYTES = 16 };

uint64_t siphash(const unsigned char key[SIPHASH_KEY_BYTES], const void *bytes, size_t n);

#endif
