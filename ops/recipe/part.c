/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a ROWS, for the program and for librelayjit.so. */
#include "ops/recipe/recipe.h"

#include <string.h>

void recipe_part(const Recipe *r, int k, Recipe *part) {
    *part = *r;
    if (r->kind != RECIPE_ROWS)
        return;
    const RecipePart *p = &r->parts[k];
    bool is_map = p->kind == RECIPE_MAP;
    part->kind = (RecipeKind)p->kind;
    part->combine = (Combine)p->combine;
    part->last = p->last;
    part->acc_type = p->acc_type;
    part->rank = (uint8_t)(is_map ? r->rank + r->nreduce : r->rank);
    part->nreduce = is_map ? 0 : r->nreduce;
    part->noutputs = p->noutputs;
    memcpy(part->out_types, r->out_types + p->out, p->noutputs);
    memcpy(part->results, r->results + p->out, p->noutputs * sizeof r->results[0]);
    for (int i = 0; i < k; i++) {
        part->body += r->parts[i].nbody;
        part->epilogue += r->parts[i].nepilogue;
    }
    part->nbody = p->nbody;
    part->nepilogue = p->nepilogue;
    part->nparts = 0;
}
