/* SPDX-License-Identifier: Apache-2.0 */
/* The type relations that several operators share, and helpers to write the others.
 *
 * A relation gets the argument types, then the result type, in r->args. It unifies whatever it can
 * determine in any direction, returns REL_WAIT while something is open, REL_DONE when all is
 * determined. For concrete shapes it must say what the shape function says.
 *
 * Dtype classes: rel_broadcast and rel_broadcast_compare belong to types/ and hold a dtype, once
 * known, against r->op->dtypes; the relations here do the same through rel_tensor. */
#ifndef OPS_RELATE_RELATIONS_H
#define OPS_RELATE_RELATIONS_H

#include "types/op.h"

extern const RelDef rel_identity;         /* (a, …, a): all tensors of one type */
extern const RelDef rel_identity_compare; /* (a, r): r has a's shape and dtype bool */
extern const RelDef rel_reduce;           /* axis, keepdims, exclude */
extern const RelDef rel_arg_reduce;       /* as reduce, int32 */
extern const RelDef rel_variance;         /* data, mean */
extern const RelDef rel_cast;             /* dtype */
extern const RelDef rel_cast_like;        /* data's shape, the other's dtype */
extern const RelDef rel_where;            /* bool, then broadcast */
extern const RelDef rel_init;             /* shape, dtype: zeros, ones */
extern const RelDef rel_full, rel_full_like, rel_arange;
extern const RelDef rel_broadcast_to; /* shape */
/* (data, like, r): r has like's shape and data's dtype; data broadcasts to like, or like to data. */
extern const RelDef rel_broadcast_like, rel_collapse_like;
extern const RelDef rel_shape_of, rel_size; /* dtype */
extern const RelDef rel_collapse_to;        /* shape */

/* ---- helpers --------------------------------------------------------------------------------- */

/* Makes argument `arg` (r->nargs - 1: the result) a tensor and gives its shape and dtype. With a
 * class the dtype must be of `set`: reported once known; until then Num, Float or Int is posted
 * where the set is one. False after a report. */
bool rel_tensor(Solver *s, Relation *r, int arg, DTypeSet set, Type **shape, Type **dtype);
/* The result is Tensor[dims, dtype]; `done` when the unification succeeds. */
RelStatus rel_result(Solver *s, Relation *r, Type **dims, uint32_t rank, Type *dtype);
RelStatus rel_result_type(Solver *s, Relation *r, Type *type);
/* The result's rank depends on a size that is not known: its shape is `?`. */
RelStatus rel_unknown_rank(Solver *s, Relation *r, Type *dtype);
/* Result (index nargs - 1) equals `with`, or REL_FAIL. */
Type *rel_result_arg(const Relation *r);

/* Some attribute is not known yet (a derivative rule): the relation waits. */
bool rel_attrs_open(const Relation *r);
/* Axis in range with negative ones counted from the end, or a report (R0315). */
bool rel_axis(Solver *s, Relation *r, const char *attr, int64_t axis, uint32_t rank, uint32_t *out);
/* Item i of an attribute's list of sizes as a dim; a lone one is every item's. */
Type *rel_attr_item(Relation *r, const char *attr, int i);
/* An attribute's size as a dim: ATTR_INT, or ATTR_DIM's type. */
Type *rel_attr_dim(const AttrValue *v);
/* The dims of an attribute that lists sizes; negative is reported (R0316). */
bool rel_attr_dims(Solver *s, Relation *r, const char *attr, uint32_t *rank, Type ***dims);
/* Where sizes come from that this operator makes; that an element of its attribute gives. */
const Origin *rel_origin(const Relation *r);
const Origin *rel_attr_origin(const Relation *r, const char *attr, const AttrValue *item);
/* Argument i becomes a `dtype`: a literal does at once. */
void rel_round_once(Solver *s, const Relation *r, uint32_t i, Type *dtype);
/* The dtype attribute as a type, or `otherwise` when None. */
Type *rel_attr_dtype(Relation *r, const char *attr, Type *otherwise);
bool rel_is_one(Type *dim); /* the literal 1 */

#endif
