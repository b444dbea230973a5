/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of prelude/ and stdlib/ inside the program. RELAY_STDLIB and an installed copy may
 * override them; embedded_texts ends with an entry whose name is NULL. */
#ifndef PRELUDE_TEXTS_H
#define PRELUDE_TEXTS_H

#include <stddef.h>

typedef struct EmbeddedText {
    const char *name; /* "prelude/prelude.rly", "stdlib/nn.rly" */
    const char *text;
    size_t len;
} EmbeddedText;

extern const EmbeddedText embedded_texts[];

#endif
