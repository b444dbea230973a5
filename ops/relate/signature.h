/* SPDX-License-Identifier: Apache-2.0 */
/* The relation and the shape function of an operator, both from one line (Op.signature):
 *
 *     "float(n, c, h, w), =0(r, 5) -> =0(r, c, @pooled_size.0, @pooled_size.1), int32(r, ?)"
 *
 * says what its arguments are and, behind the arrow, its results. A dtype is a class (all, num, int, float,
 * bool, quant: the 8, 16 and 32 bit integers that stand for quantised numbers), the name of one dtype, `=i` for
 * that of argument i, or `@attr` for the one an attribute names (None: that of argument 0). Behind it stands the
 * shape, in parentheses, or `*` for any shape, or `~` for a scalar or a vector. A size is
 *
 *     n        a lower-case letter: the same size wherever it stands
 *     5        that size
 *     ...      any axes, the same ones wherever they stand
 *     @attr    the size that an attribute gives, @attr.1 the one at that place of its list
 *     ?        of a result: `measure` tells it from the sizes of the arguments
 *
 * Where results or ranks follow from an attribute, several lines stand one behind the other with `|` between
 * them, and `form` tells which one it is.
 *
 * An entry is written with SIGNATURE_OP, which sets the fields that follow from the line. */
#ifndef OPS_RELATE_SIGNATURE_H
#define OPS_RELATE_SIGNATURE_H

#include "ops/relate/structured.h"

struct Signature {
    const char *text;
    /* What is wrong with the attributes and the ranks of the arguments (-1: not known), whatever the sizes
     * are ("size is above 0"); NULL: nothing. */
    const char *(*refuse)(const Attrs *attrs, const int *ranks);
    /* Fills the sizes that are `?` (-1 in out[]), and checks what the line does not say; false after a
     * report. NULL: there is nothing to do. */
    bool (*measure)(const OpCall *call, OutSpec *out);
    int (*form)(const Attrs *attrs); /* which of several lines, from 0; NULL: there is one */
};

/* For `refuse`: attribute `attr` is no axis of a tensor of this rank; NULL where it is one, or rank is -1. */
const char *refuse_axis(const Attrs *attrs, const char *attr, int rank);
/* The shape and dtype that argument `arg` has where names (26 of them), `...` and the dtype of argument 0 are
 * these: what tests draw calls from. */
void signature_argument(const Op *op, const Attrs *attrs, int arg, const int64_t *names,
                        const OutSpec *rest, DType first, OutSpec *out);

int shape_by_signature(const OpCall *call, OutSpec *out);
RelStatus relate_by_signature(Solver *s, Relation *r);

/* symbol, name of the relation, name, arguments, their number, the initialiser of its Signature in
 * parentheses, then the other fields of the entry. */
#define SIGNATURE_UNPACK(...) __VA_ARGS__
#define SIGNATURE_OP(...) SIGNATURE_OP_BY(relate_by_signature, shape_by_signature, __VA_ARGS__)
/* The same with a relation and a shape function that ask those of the line for some calls. */
#define SIGNATURE_OP_BY(relate_fn, shape_fn, symbol, rel, op_name, names, count, sig, ...)         \
    static const RelDef rel_##symbol = {rel, relate_fn, (count) + 1, false};                       \
    static const Signature signature_##symbol = {SIGNATURE_UNPACK sig};                            \
    const Op op_##symbol = {.name = op_name,                                                       \
                            .args = names,                                                         \
                            .nargs = count,                                                        \
                            .relation = &rel_##symbol,                                             \
                            .signature = &signature_##symbol,                                      \
                            .shape = shape_fn,                                                     \
                            .refuses_sizes = true,                                                 \
                            __VA_ARGS__};

#endif
