/* SPDX-License-Identifier: Apache-2.0 */
/* What the structured operators share: the frame of their type relations, axes given as attributes,
 * and steps that read or write by strides.
 *
 * A relation first asks rel_known. Where every argument is known to the last size it lets the shape
 * function decide, so that relation and kernel cannot disagree; what is left for the relation
 * itself are symbolic sizes, where it says as much as follows from what is known:
 *
 *     static RelStatus relate_take(Solver *s, Relation *r)
 *     {
 *         RelStatus status;
 *         if (rel_known(s, r, (DTypeSet[]){DTS_ALL, DTS_INT}, &status)) return status;
 *         …
 *     }
 */
#ifndef OPS_RELATE_STRUCTURED_H
#define OPS_RELATE_STRUCTURED_H

#include "ops/recipe/plan.h"
#include "ops/relate/relations.h"
#include "ops/relate/shape_util.h"

/* ---- relations ------------------------------------------------------------------------------- */

/* sets: the dtypes each argument takes (of a tuple argument: its parts). Makes the arguments
 * tensors. True: *status is the answer (a report, attributes still open, or all is known). */
bool rel_known(Solver *s, Relation *r, const DTypeSet *sets, RelStatus *status);

/* The parts of a tuple argument; false while it is not known to be a tuple. */
bool rel_parts(Relation *r, int arg, uint32_t *n, Type ***parts);
/* Shape and dtype of a type that rel_known made a tensor. */
Type *rel_shape_in(Type *t);
Type *rel_dtype_in(Type *t);
/* Its dims; false while the rank is not known. */
bool rel_rank_in(Type *t, uint32_t *rank, Type ***dims);

/* An argument whose rank is not known gets this one, with fresh sizes; false after a report. */
bool rel_make_rank(Solver *s, Relation *r, int arg, uint32_t rank);
/* The result's rank where it is known, and `more`: that of an argument whose shape is undetermined. */
bool rel_rank_of_result(Solver *s, Relation *r, int arg, int more);

Type *rel_int_dim(Relation *r, int64_t n); /* a literal size whose origin is this call */
Type *rel_unknown_dim(Relation *r);        /* a fresh `?` whose origin is this call */
/* The size that a and b broadcast to where one of them is an unknown and neither is open: the known
 * one, or a fresh unknown, with a check when running. NULL: they are not so. */
Type *rel_unknown_broadcast(Solver *s, Relation *r, Type *a, Type *b, int axis);
Type *rel_product(Relation *r, uint32_t n, Type *const *dims);
/* A size that inference may still learn something about. */
bool rel_dim_open(Type *dim);
/* DONE when no dim of the arguments can change any more, else WAIT: for relations whose result is
 * determined but which have more to check once sizes are known. */
RelStatus rel_settled(Relation *r);
/* REL_WAIT, with the result a tensor of this dtype already: what is known of a type flows on. */
RelStatus rel_wait(Solver *s, Relation *r, Type *dtype);
/* The relation goes on as if tensor `part` of a tuple argument had this rank, which the operator sees to. */
void rel_lend_rank(Solver *s, Relation *r, int arg, uint32_t part, uint32_t rank);
/* A copy of n dims with `extra` more places. */
Type **rel_copy_dims(uint32_t n, Type *const *dims, uint32_t extra);

/* ---- attributes ------------------------------------------------------------------------------ */

/* The axes of attribute `attr` (None, an int or a list) as a set, one bit an axis; R0315. */
bool shape_axis_set(const OpCall *call, const char *attr, bool exclude, int rank, uint32_t *out);
bool rel_axis_set(Solver *s, Relation *r, const char *attr, bool exclude, uint32_t rank,
                  uint32_t *out);
/* One axis; `otherwise` where the attribute is None. */
bool shape_one_axis(const OpCall *call, const char *attr, int rank, int *out);
bool rel_one_axis(Solver *s, Relation *r, const char *attr, uint32_t rank, uint32_t *out);
/* A written integer, or a size that is known; false otherwise. */
bool attr_get_int(const AttrValue *v, int64_t *out);
/* Attribute list of ints into out[max]; its length, or -1 when None or something else. */
int attr_int_list(const Attrs *attrs, const char *name, int64_t *out, int max);

/* A list of numbers into out[max]; its length, or -1 when it is none or longer. */
int attr_floats(const Attrs *attrs, const char *name, double *out, int max);

/* Already checked by the shape function. */
int lower_axis(const OpCall *call, const char *attr, int rank);
uint32_t lower_axis_set(const OpCall *call, const char *attr, bool exclude, int rank);

/* ---- steps ----------------------------------------------------------------------------------- */

/* out, read at `strides` (t->rank of them) from `offset`, becomes t. */
void plan_place_strided(Plan *plan, Tensor *out, const int64_t *strides, int64_t offset,
                        const Tensor *t);
/* out holds t's elements in row-major order; their shapes differ. */
void plan_relayout(Plan *plan, Tensor *out, const Tensor *t);
/* out = sum over reduction axes of t read by strides (out->rank + nreduce of them). */
void plan_sum_strided(Plan *plan, Tensor *out, int nreduce, const int64_t *extents, const Tensor *t,
                      const int64_t *strides, int64_t offset);
/* out = sum over the reduction axes of x * y, each read by strides (out->rank + nreduce) from an
 * offset; out is written by out_strides over `rank` axes of the given extents. */
typedef struct Product {
    int rank, nreduce;
    int64_t extents[RECIPE_MAX_AXES];
    int64_t out_strides[RECIPE_MAX_AXES], x_strides[RECIPE_MAX_AXES], y_strides[RECIPE_MAX_AXES];
    int64_t x_offset, y_offset;
} Product;
void plan_product(Plan *plan, Tensor *out, const Product *p, const Tensor *x, const Tensor *y);

/* SC for an index of any integer dtype, as int64. */
Sc sc_index_load(ScalarBuilder *b, int operand, DType stored);
/* 0 <= i < n. */
Sc sc_in_range(ScalarBuilder *b, Sc i, Sc n);
Sc sc_i64(ScalarBuilder *b, int64_t v);

#endif
