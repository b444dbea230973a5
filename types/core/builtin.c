/* SPDX-License-Identifier: Apache-2.0 */
#include "types/core/builtin.h"

#include <stddef.h>
#include <string.h>

/* Passes and the compiler of code ask at each call: comparing lengths first leaves one name or two to compare. */
int builtin_number(const char *name) {
    static const struct {
        size_t len;
        const char *name;
    } table[] = {
#define BUILTIN(name, nargs, fn, effects) {sizeof name - 1, name},
#define AD(name, nargs, fn, effects, gives) {sizeof name - 1, name},
#include "types/core/ad.def"
#include "types/core/builtin.def"
#undef AD
#undef BUILTIN
    };
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].len == len && memcmp(table[i].name, name, len) == 0)
            return (int)i;
    return -1;
}
