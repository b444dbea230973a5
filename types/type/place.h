/* SPDX-License-Identifier: Apache-2.0 */
/* Where a type is asked for, as data: "argument `weight` of `nn.dense`". Inference and relations hand a TypePlace
 * on wherever a mismatch may follow; type_place_text makes the words, once there is a message to write. */
#ifndef TYPES_TYPE_PLACE_H
#define TYPES_TYPE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum PlaceKind {
    PLACE_NONE,       /* nothing is known of it */
    PLACE_WORDS,      /* the words in `name` */
    PLACE_NAME,       /* `name` */
    PLACE_ARGUMENT,   /* argument `name` of `of`; argument 2; either part may be missing */
    PLACE_ONLY,       /* the argument of `of`; the argument */
    PLACE_RESULT,     /* the result of `of`; the result of the function */
    PLACE_PARAMETER,  /* the parameter `name` */
    PLACE_FIELD,      /* field `name` of `of`; field 2 of `of` */
    PLACE_THE_FIELD,  /* the field `name` of `of` */
    PLACE_KEPT_FIELD, /* the kept field `name` of `of` */
    PLACE_TWO_VALUES, /* field `name` of two values */
    PLACE_ELEMENT,    /* element 2 of this tensor literal */
    PLACE_PATTERN,    /* a pattern of 2 elements */
    PLACE_UNKNOWN,    /* `?2` */
} PlaceKind;

typedef struct TypePlace {
    PlaceKind kind;
    const char *name, *of; /* NULL where there is none */
    uint32_t index;        /* a number as it is said: that of the first argument is 1 */
    bool has_axis;         /* one axis of it: "axis 1 of …" */
    bool or_one;           /* a size of 1 would do too: "… (equal, or 1)" */
    int axis;
} TypePlace;

static inline TypePlace place_of_words(const char *words) {
    return (TypePlace){.kind = PLACE_WORDS, .name = words};
}
static inline TypePlace place_of_name(const char *name) {
    return (TypePlace){.kind = PLACE_NAME, .name = name};
}
static inline TypePlace place_of_axis(int axis, TypePlace of) {
    of.has_axis = true;
    of.axis = axis;
    return of;
}
/* An axis of the arguments that an operator broadcasts: their sizes are equal, or 1. */
static inline TypePlace place_of_broadcast(int axis, const char *op) {
    return (TypePlace){
        .kind = PLACE_NAME, .name = op, .has_axis = true, .axis = axis, .or_one = true};
}

const char *type_place_text(const TypePlace *place); /* "" for PLACE_NONE */
/* The same place in memory of its own, for what is kept. */
const TypePlace *type_place_keep(TypePlace place);

#endif
