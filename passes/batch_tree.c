/* SPDX-License-Identifier: Apache-2.0 */
/* `tree.leaves` and the like at all rows: of data whose constructors are known here, the float tensors are, and a List of them
 * is data of known constructors again, which `map` goes through. What would fail for a row is left to the loop. */
#include "passes/batch_internal.h"

#include <string.h>

typedef VEC(Row *) RowVec;

typedef enum Leaf { LEAF, LEAF_NOT, LEAF_UNKNOWN } Leaf;

static Leaf is_leaf(const Row *r) {
    DType t;
    const Type *type = type_resolve(r->type);
    if (type->tag == TY_STRING || type->tag == TY_FN || type->tag == TY_REF || row_is_unit(r))
        return LEAF_NOT;
    if (r->when || type->tag != TY_TENSOR || !type_is_closed(r->type) ||
        !type_get_dtype(r->type, &t))
        return LEAF_UNKNOWN;
    return dtype_is_float(t) ? LEAF : LEAF_NOT;
}

static bool have_one_type(const Row *a, const Row *b) {
    return is_leaf(b) == LEAF && type_equal(type_resolve(a->type), type_resolve(b->type));
}

/* Appends the leaves of x, or where `beside` is there, what stands in it in their places. False where that is not known. */
static bool list_leaves(Batch *m, const Row *x, const Row *beside, RowVec *out) {
    const Row *open = row_open(m, x), *other = beside ? row_open(m, beside) : NULL;
    if (!open) {
        Leaf leaf = is_leaf(x);
        if (leaf == LEAF)
            vec_push(out, (Row *)(beside ? beside : x));
        return leaf == LEAF_NOT || (leaf == LEAF && (!beside || have_one_type(x, beside)));
    }
    bool has_parts = other && other->ctor == open->ctor && other->nparts == open->nparts;
    Row *absent = beside ? row_tuple(NULL, 0) : NULL;
    for (uint32_t i = 0; i < open->nparts; i++)
        if (!list_leaves(m, open->parts[i], has_parts ? other->parts[i] : absent, out))
            return false;
    return true;
}

static Row *row_of_list(Batch *m, const RowVec *items, Span span) {
    TypeDecl *list = env_prelude_type(m->ctx->env, "List");
    Type *item = b_some_type("leaf"), *type = type_data(list, &item, 1);
    Ctor *nil = list->ctors[0]->nfields ? list->ctors[1] : list->ctors[0];
    Ctor *cons = list->ctors[0]->nfields ? list->ctors[0] : list->ctors[1];
    Row *all = batch_data(m, nil, mem_new_n(Row *, 1), type, span);
    for (size_t i = items->len; i-- > 0;) {
        Row **parts = mem_new_n(Row *, 2);
        parts[0] = items->data[i];
        parts[1] = all;
        all = batch_data(m, cons, parts, type, span);
    }
    return all;
}

/* x with the next of a list for each leaf; NULL where it has none, or one of another type. */
static Row *refill(Batch *m, const Row *x, const Row **rest) {
    const Row *open = row_open(m, x);
    if (!open) {
        Leaf leaf = is_leaf(x);
        if (leaf != LEAF)
            return leaf == LEAF_NOT ? (Row *)x : NULL;
        const Row *at = row_open(m, *rest);
        if (!at || at->nparts != 2 || !have_one_type(x, at->parts[0]))
            return NULL;
        *rest = at->parts[1];
        return at->parts[0];
    }
    Row **parts = mem_new_n(Row *, (size_t)open->nparts + 1);
    for (uint32_t i = 0; i < open->nparts; i++)
        if (!(parts[i] = refill(m, open->parts[i], rest)))
            return NULL;
    return row_like(m, open, parts, open->nparts);
}

bool batch_is_tree(const Expr *callee) {
    static const char *const names[] = {"tree.leaves", "tree.leaves_like", "tree.refill",
                                        "tree.zeros"};
    const Global *g = callee->kind == EXPR_GLOBAL ? callee->global : NULL;
    for (size_t i = 0; g && g->internal && i < sizeof names / sizeof *names; i++)
        if (g->kind == GLOBAL_BUILTIN && strcmp(g->name->text, names[i]) == 0)
            return true;
    return false;
}

Row *batch_tree(Batch *m, const Expr *call, Row **in) {
    const char *name = call->a->global->name->text;
    RowVec leaves = {0};
    if (strcmp(name, "tree.zeros") == 0)
        return batch_zeros(m, in[0], call);
    if (strcmp(name, "tree.refill") == 0) {
        const Row *rest = in[1], *end;
        Row *made = refill(m, in[0], &rest);
        if (made && (end = row_open(m, rest)) && !end->nparts)
            return made;
    } else if (list_leaves(m, in[0], call->nargs == 2 ? in[1] : NULL, &leaves)) {
        return row_of_list(m, &leaves, call->span);
    }
    return batch_give_up(m, "data whose tensors are not known", call->span);
}
