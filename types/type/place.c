/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a place, for a message that is written. Nothing here runs for a program without a mistake. */
#include "types/type/place.h"

#include "base/diag.h"
#include "base/mem.h"

const TypePlace *type_place_keep(TypePlace place) {
    TypePlace *kept = mem_new(TypePlace);
    *kept = place;
    return kept;
}

/* "argument `x` of `f`", "argument 2", by what is known of the two. */
static void add_part(Str *out, const char *noun, const TypePlace *place) {
    if (place->name)
        str_printf(out, "%s `%s`", noun, place->name);
    else
        str_printf(out, "%s %u", noun, place->index);
    if (place->of)
        str_printf(out, " of `%s`", place->of);
}

static void add_of(Str *out, const char *noun, const char *of) {
    str_add(out, noun);
    if (of)
        str_printf(out, " of `%s`", of);
}

static void add_whole(Str *out, const TypePlace *place) {
    switch (place->kind) {
    case PLACE_NONE: return;
    case PLACE_WORDS: str_add(out, place->name); return;
    case PLACE_NAME: str_printf(out, "`%s`", place->name); return;
    case PLACE_ARGUMENT: add_part(out, "argument", place); return;
    case PLACE_ONLY: add_of(out, "the argument", place->of); return;
    case PLACE_RESULT:
        add_of(out, place->of ? "the result" : "the result of the function", place->of);
        return;
    case PLACE_PARAMETER: add_part(out, "the parameter", place); return;
    case PLACE_FIELD: add_part(out, "field", place); return;
    case PLACE_THE_FIELD: add_part(out, "the field", place); return;
    case PLACE_KEPT_FIELD: add_part(out, "the kept field", place); return;
    case PLACE_TWO_VALUES: str_printf(out, "field `%s` of two values", place->name); return;
    case PLACE_ELEMENT: str_printf(out, "element %u of this tensor literal", place->index); return;
    case PLACE_PATTERN:
        str_printf(out, "a pattern of %u element%s", place->index, place->index == 1 ? "" : "s");
        return;
    case PLACE_UNKNOWN: str_printf(out, "`?%u`", place->index); return;
    }
    BUG("a place of an unknown kind");
}

const char *type_place_text(const TypePlace *place) {
    Str out = {0};
    if (place->has_axis)
        str_printf(&out, "axis %d of ", place->axis);
    add_whole(&out, place);
    if (place->or_one)
        str_add(&out, " (equal, or 1)");
    return str_text(&out);
}
