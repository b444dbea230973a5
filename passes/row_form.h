/* SPDX-License-Identifier: Apache-2.0 */
/* What one row of an argument of `vmap` is made of: a tensor, or tuples and data down to their tensors.
 *
 * Stacked data is one value of the constructors that each of its rows has, so where an argument is looked into when it is
 * there, all constructors are known, those of a List or a tree too. A function at all rows then gets tensors only:
 *
 *   vmap(fn (p) { f(p) })(ps)      match (ps) { Net { hidden: Lin { w: W, b: B }, name: s } =>
 *                                    <f(Net { hidden: Lin { w, b }, name: s })  at the rows w, b  of W and B> }
 *
 * The types of data in it follow from those of the tensors. */
#ifndef PASSES_ROW_FORM_H
#define PASSES_ROW_FORM_H

#include "passes/build.h"

typedef struct RowForm {
    Type *
        type; /* of one row. Before row_forms_settle: of a leaf alone, and NULL where it is not known */
    Ctor *ctor;             /* of data, or NULL */
    struct RowForm **parts; /* of data, and of a tuple that holds data; NULL: a leaf */
    uint32_t n;
    bool is_whole; /* a leaf that is no tensor, nor a tuple of such: each row has it as it is */
} RowForm;

/* A leaf. type: NULL for a value of unknown type that is whole. */
RowForm *row_form_leaf(Type *type, bool is_whole);
/* Of a tuple, or with a constructor of values of data. */
RowForm *row_form_parts(Ctor *ctor, RowForm **parts, uint32_t n);
/* What a value of that type is, where the type says its constructors; NULL elsewhere. */
RowForm *row_form_of_type(Type *row);
/* The same where the type is that of all rows; NULL also where a tensor in it has no first axis. */
RowForm *row_form_of_rows(Type *rows);
/* Finds the types of data. False where those of the leaves do not fit the declarations. */
bool row_forms_settle(RowForm *const *forms, uint32_t n);

typedef VEC(const RowForm *) RowFormVec;
/* Appends the leaves, in order. */
void row_form_leaves(const RowForm *form, RowFormVec *out);

/* One row, made of its leaves, each a use of vars[*at…]. */
Expr *row_form_make(const Build *b, const RowForm *form, Var *const *vars, uint32_t *at);
/* The pattern that binds vars[*at…], the leaves of a value of type `all`. */
Pattern *row_form_pattern(const Build *b, const RowForm *form, Type *all, Var *const *vars,
                          uint32_t *at);

#endif
