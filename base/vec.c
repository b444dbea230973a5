/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of vectors. The old storage is left to the collector, never freed: a copied struct may
 * still point to it. */
#include "base/vec.h"

#include <string.h>

void vec_reserve_(void **data, size_t *cap, size_t wanted, size_t elem_size) {
    if (wanted <= *cap)
        return;
    size_t grown = *cap < 4 ? 4 : *cap + *cap / 2 + 1;
    if (grown < wanted)
        grown = wanted;
    void *old, *new = mem_alloc(grown * elem_size);
    memcpy(&old, data, sizeof old); /* by bytes: *data is some T *, not a void * */
    if (*cap)
        memcpy(new, old, *cap * elem_size);
    memcpy(data, &new, sizeof new);
    *cap = grown;
}
