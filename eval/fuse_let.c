/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings that are taken into groups: by the operators that read them, or as results of a group of their own. */
#include "eval/fuse_impl.h"

#include <string.h>

/* ---- into their reader ------------------------------------------------------------------------ */

static void count_uses(void *ctx, Expr *e) {
    Resolver *r = ctx;
    if (e->kind == EXPR_VAR) {
        void **uses = map_at(&r->uses, e->var);
        *uses = (void *)((uintptr_t)*uses + 1);
        return;
    }
    if (expr_is_leaf(e))
        return;
    if (!map_enter(&r->counted,
                   e)) { /* the expression is shared, so its variables are used more than once */
        VarVec free = {0};
        expr_free_vars(e, &free);
        for (size_t i = 0; i < free.len; i++)
            map_set(&r->uses, free.data[i], (void *)(uintptr_t)2);
        return;
    }
    if (e->kind == EXPR_LET) {
        for (; e->kind == EXPR_LET; e = e->body) /* a chain is walked in a loop */
            count_uses(r, e->a);
        count_uses(r, e);
        return;
    }
    expr_each_child(e, count_uses, r);
    if ((e->kind == EXPR_LIT || e->kind == EXPR_ZERO) && e->like)
        count_uses(r, e->like);
}

/* How often the variable of a let is an operand in the operators of e. At most *budget of them are looked at. */
static uintptr_t count_operand_in(const Expr *e, const Expr *let, bool root, uint32_t *budget) {
    if (e->kind == EXPR_VAR)
        return e->var == let->var;
    if (!*budget || !(root ? is_root(e) : is_inner(e)))
        return 0;
    --*budget;
    uintptr_t count = 0;
    NodeOperands operands = node_operands(e);
    for (uint32_t i = 0; i < operands.n; i++) {
        const Expr *arg = operands.at[i];
        if (takes_in(e, arg->kind == EXPR_VAR ? let->a : arg))
            count += count_operand_in(arg, let, false, budget);
    }
    return count;
}

static bool is_operand_in(const Expr *e, const Expr *let, bool root, uint32_t *budget) {
    return count_operand_in(e, let, root, budget) > 0;
}

/* Whether e only reads variables and applies operators. At most *budget expressions are looked at. */
static bool is_pure(const Expr *e, uint32_t *budget) {
    if (!*budget)
        return false;
    --*budget;
    if (e->kind != EXPR_CALL)
        return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST;
    if (e->a->kind != EXPR_OP || e->nsizes)
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_pure(e->args[i], budget))
            return false;
    return true;
}

/* Whether e adds the value of a let, a product, to a cotangent or to none. */
static bool is_added_by(const Expr *e, const Expr *let) {
    return is_product(let->a) && is_sum_of_cotangents(e) &&
           (e->args[0]->kind == EXPR_VAR || e->args[0]->kind == EXPR_ZERO) &&
           e->args[1]->kind == EXPR_VAR && e->args[1]->var == let->var;
}

/* The same of the arguments of a call or the parts of a tuple, where those before it are pure. */
static bool is_operand_in_parts(const Expr *e, const Expr *let, uint32_t *budget) {
    if (is_added_by(e, let))
        return true;
    bool is_call = e->kind == EXPR_CALL && e->a->kind != EXPR_OP && e->a->kind != EXPR_FN;
    if (!is_call && e->kind != EXPR_TUPLE)
        return is_operand_in(e, let, true, budget);
    if (is_call && e->a->kind != EXPR_CTOR && !may_evaluate_early(e->a))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (e->args[i]->kind != EXPR_VAR &&
            (is_operand_in(e->args[i], let, true, budget) || is_added_by(e->args[i], let)))
            return true;
        if (!is_pure(e->args[i], budget))
            return false;
    }
    return false;
}

/* Whether a type is that of floats or truth values. */
static bool is_number(Type *t) {
    DType dtype;
    t = t ? type_resolve(t) : NULL;
    return t && t->tag == TY_TENSOR && type_get_dtype(t, &dtype) &&
           (dtype_is_float(dtype) || dtype == DT_BOOL);
}

/* Whether two tensors have one shape, whose sizes may be known to nobody. */
static bool have_same_shape(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    return a->tag == TY_TENSOR && b->tag == TY_TENSOR &&
           type_equal(a->tensor.shape, b->tensor.shape) && !type_has_vars(a->tensor.shape) &&
           !type_has_each(a->tensor.shape);
}

/* Whether each size of an operand is 1 or that of the result. */
static bool is_broadcast_to(Type *operand, Type *result) {
    uint32_t rank, all;
    Type **dims, **of;
    int64_t size;
    if (have_same_shape(operand, result))
        return true;
    if (!type_get_rank(operand, &rank, &dims) || !type_get_rank(result, &all, &of) || rank > all)
        return false;
    of += all - rank;
    for (uint32_t i = 0; i < rank; i++)
        if (!(type_get_int(dims[i], &size) && size == 1) &&
            (!type_equal(dims[i], of[i]) || type_has_vars(dims[i]) || type_has_each(dims[i])))
            return false;
    return true;
}

/* Whether types say that an operand fits into an operator's result. */
static bool is_fitting(const Expr *e, const Expr *operand) {
    Type *t = type_of(operand);
    if (!is_number(t))
        return false;
    return (is_number(e->type) && type_is_closed(t) && type_is_closed(e->type)) ||
           (is_elementwise(e) && is_broadcast_to(t, e->type));
}

/* Whether a `take` cannot fail: its indices are brought into the bounds of an axis that has elements. */
static bool is_sure_gather(const Expr *e) {
    uint32_t rank;
    Type **dims;
    int64_t size;
    const Attrs *attrs = e->attrs ? e->attrs : attrs_defaults(e->a->op);
    if (!is_access(e->args[0]) || !is_access(e->args[1]) || attrs_is_none(attrs, "axis") ||
        attrs_int(attrs, "batch_dims") != 0 || !strcmp(attrs_text(attrs, "mode"), "fast") ||
        !type_get_rank(type_of(e->args[1]), &rank, &dims) ||
        !type_get_rank(type_of(e->args[0]), &rank, &dims))
        return false;
    int64_t axis = attrs_int(attrs, "axis");
    return type_get_int(dims[axis < 0 ? axis + rank : axis], &size) && size > 0;
}

/* Whether e is operators of floats of which types say that it cannot fail. At most *budget of them are looked at. */
static bool is_sure(const Expr *e, uint32_t *budget) {
    if (!*budget || !is_operator(e) || e->a->op->refuses_sizes)
        return false;
    --*budget;
    if (is_gather(e))
        return is_sure_gather(e);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_fitting(e, e->args[i]) || (!is_access(e->args[i]) && !is_sure(e->args[i], budget)))
            return false;
    return true;
}

/* Whether a value may be computed after e as well as before it. */
static bool may_wait_for(const Expr *e) {
    bool is_data = e->kind == EXPR_TUPLE || (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR);
    for (uint32_t i = 0; is_data && i < e->nargs; i++)
        if (!is_access(e->args[i]))
            return false;
    uint32_t budget = MAX_NODES;
    return is_data || is_access(e) || is_sure(e, &budget);
}

/* Note [Parts between a value and its reader]. `let a = x * p[0]; let b = p[1]; tanh(a + b)` is one launch, though p[1]
 * may fail and so may the product, which comes first. At the place of the product stands a check that x and p[0] have one
 * shape, and the product itself where they have not. So it has to be one operator of values that are there. */

/* Parts of tensors that are read between a value and its reader. */
typedef struct PartsRead {
    const Expr *lets[MAX_ARGS];
    uint32_t n;
} PartsRead;

static bool add_part_read(PartsRead *parts, const Expr *let) {
    const Expr *e = let->a;
    if (e->kind != EXPR_CALL || e->a->kind != EXPR_OP || e->a->op != &op_index || e->nsizes ||
        parts->n == MAX_ARGS)
        return false;
    parts->lets[parts->n++] = let;
    return true;
}

/* Whether the reader has them all as operands, so that they would come first if they stood there. */
static bool are_operands(const PartsRead *parts, const Expr *reader) {
    for (uint32_t i = 0; i < parts->n; i++) {
        uint32_t budget = MAX_NODES;
        if (!is_operand_in(reader, parts->lets[i], true, &budget))
            return false;
    }
    return true;
}

/* An operator of values that are there. */
static bool is_of_accesses(const Resolver *r, const Expr *e) {
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_access(e->args[i]) ||
            (e->args[i]->kind == EXPR_VAR && fuse_value_of(r, e->args[i]->var)))
            return false;
    return is_elementwise(e);
}

/* The binding behind a `let`, or the value of its block, of whose operators it is an operand; NULL where something
 * else has to come before. */
static Expr *find_reader(const Expr *let, PartsRead *parts) {
    enum { FARTHEST = 32 };
    const Expr *at = let->body;
    for (int i = 0; i < FARTHEST; i++, at = at->body) {
        uint32_t budget = MAX_NODES;
        Expr *next = at->kind == EXPR_LET ? at->a : (Expr *)(uintptr_t)at;
        if (next->kind != EXPR_VAR && is_operand_in_parts(next, let, &budget))
            return are_operands(parts, next) ? next : NULL;
        if (at->kind != EXPR_LET || !at->var || at->rec ||
            !(may_wait_for(next) || add_part_read(parts, at)))
            return NULL;
    }
    return NULL;
}

/* Subtracts the number of operators in e from the budget. */
static void spend(const Expr *e, uint32_t *budget) {
    if (!*budget || !is_inner(e))
        return;
    --*budget;
    NodeOperands operands = node_operands(e);
    for (uint32_t i = 0; i < operands.n; i++)
        spend(operands.at[i], budget);
}

/* Whether e is operators of values that are there, so that nobody sees it computed again: where its reader becomes no group after
 * all, each use of a binding that was taken in computes it. */
static bool may_run_again(const Resolver *r, const Expr *e, uint32_t *budget) {
    const Expr *taken = e->kind == EXPR_VAR ? fuse_value_of(r, e->var) : NULL;
    e = taken ? taken : e;
    if (!*budget)
        return false;
    --*budget;
    if (e->kind == EXPR_LIT)
        return !e->like || may_run_again(r, e->like, budget);
    if (!is_operator(e))
        return is_access(e) || e->kind == EXPR_GLOBAL;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!may_run_again(r, e->args[i], budget))
            return false;
    return true;
}

/* Whether a binding that is used more than once is an operand nowhere but in its reader, and may be taken in all the same. */
static bool is_shared_in(const Resolver *r, const Expr *let, const Expr *reader, uintptr_t uses) {
    uint32_t budget = MAX_NODES, least = 2 * MAX_NODES;
    return uses == count_operand_in(reader, let, true, &budget) &&
           may_run_again(r, let->a, &least) && may_run_again(r, reader, &least);
}

bool fuse_let(Resolver *r, Expr *let, bool in_row) {
    PartsRead parts = {.n = 0};
    uint32_t run = r->run, left = MAX_NODES - run;
    r->run = 0;
    if (!let->var || let->rec || !is_inner(let->a))
        return false;
    const Expr *reader = find_reader(let, &parts);
    if (!reader || (parts.n && (in_row || !is_of_accesses(r, let->a))))
        return false;
    /* A run ends when it fills a group, so that a long chain becomes several groups. */
    spend(let->a, &left);
    if (left <= 1)
        return false;
    if (!r->uses.len)
        count_uses(r, r->body);
    uintptr_t uses = (uintptr_t)map_find(&r->uses, let->var);
    if (uses != 1 && !is_shared_in(r, let, reader, uses))
        return false;
    map_set(&r->fused_values, let->var, let->a);
    r->run = MAX_NODES - left;
    if (parts.n)
        resolve_check(r, let->a);
    return true;
}

/* ---- into a group of their own ---------------------------------------------------------------- */

/* Note [Groups of bindings]. Bindings of element-wise values that follow each other become one group with a result for
 * each that is read outside of it:
 *
 *     let s = sigmoid(f); let y = s * c; let t = tanh(x); let z = y + s * t; (z, s, t)
 *     ⇒ one launch that reads f, c and x, and writes s, t and z; y stays in registers
 *
 * Between them may stand what cannot be told from outside: parts of data, and bindings that a later reader takes in.
 * A binding joins where it is known to have their shape, or reads a result or an operand of those before it, none of the
 * results in a fold or at another place, and is not known to have another shape: the plan then decides by the sizes themselves which of them run as one (ops/recipe/join.h). All of them run at the place
 * of the first, none is put off, and nothing that the group reads is computed for it; so mistakes are met in their
 * order, and no tensor is kept longer than the group takes. */

typedef struct Row {
    Collector c;
    ExprVec leaves, members, accesses;
    ExprVec taken; /* bindings that a later reader takes in */
    Map seen;      /* while uses are counted */
} Row;

static bool have_one_shape(Type *a, Type *b) {
    a = type_resolve(a);
    b = type_resolve(b);
    return a->tag != TY_TENSOR || b->tag != TY_TENSOR || !type_is_closed(a) || !type_is_closed(b) ||
           type_equal(a->tensor.shape, b->tensor.shape);
}

static bool has_leaf(const Row *row, const Var *v) {
    for (size_t i = 0; i < row->leaves.len; i++)
        if (row->leaves.data[i]->kind == EXPR_VAR && row->leaves.data[i]->var == v)
            return true;
    return false;
}

/* Whether the operators of e read a result or an operand of the row. */
static bool is_related(const Row *row, const Expr *e, uint32_t *budget) {
    const Expr *taken = e->kind == EXPR_VAR ? fuse_value_of(row->c.r, e->var) : NULL;
    if (e->kind == EXPR_VAR && !taken)
        return map_has(&row->c.members, e->var) || has_leaf(row, e->var);
    e = taken ? taken : e;
    if (!*budget || !is_inner(e))
        return false;
    --*budget;
    NodeOperands operands = node_operands(e);
    for (uint32_t i = 0; i < operands.n; i++)
        if (is_related(row, operands.at[i], budget))
            return true;
    return false;
}

/* How often the operators of the row read a variable. */
static void count_reads(Row *row, Expr *e, Map *reads) {
    Expr *taken = e->kind == EXPR_VAR ? fuse_value_of(row->c.r, e->var) : NULL;
    if (e->kind == EXPR_VAR && !taken) {
        map_set(reads, e->var, (void *)((uintptr_t)map_find(reads, e->var) + 1));
        return;
    }
    e = taken ? taken : e;
    if (!map_has(&row->c.numbers, e) || map_has(&row->seen, e))
        return;
    map_set(&row->seen, e, e);
    NodeOperands operands = node_operands(e);
    for (uint32_t i = 0; i < operands.n && e->kind == EXPR_CALL; i++)
        count_reads(row, operands.at[i], reads);
}

/* The members that are read outside of the row, the last one always: in *results, from the last to the first. */
static void find_results(Row *row, ExprVec *results) {
    const Map *uses = &row->c.r->uses;
    Map reads = {0};
    row->seen = (Map){0};
    for (size_t i = 0; i < row->members.len; i++)
        count_reads(row, row->members.data[i]->a, &reads);
    for (size_t i = row->members.len; i-- > 0;) {
        Var *v = row->members.data[i]->var;
        bool is_last = i + 1 == row->members.len;
        if (is_last || map_find(uses, v) != map_find(&reads, v))
            vec_push(results, row->members.data[i]);
    }
}

/* Whether one more binding could be one result too many. */
static bool is_full(Row *row) {
    ExprVec results = {0};
    if (row->members.len < GROUP_RESULTS)
        return false;
    find_results(row, &results);
    return results.len >= GROUP_RESULTS;
}

/* Adds a binding; false where it does not go, and the row is as it was. */
static bool add_member(Row *row, Expr *let) {
    uint32_t budget = MAX_NODES;
    if (!is_member(let->a) || map_has(&row->c.numbers, let->a))
        return false;
    Type *type = let->a->type, *first = row->members.len ? row->members.data[0]->a->type : NULL;
    if (first && (!have_one_shape(type, first) || is_full(row) ||
                  /* of one shape they run as one whether they read the same or not */
                  !(have_same_shape(type, first) || is_related(row, let->a, &budget))))
        return false;
    size_t nodes = row->c.nodes.len, leaves = row->leaves.len;
    uint32_t entered = row->c.entered;
    int32_t node = fuse_collect(&row->c, let->a, true);
    if (row->c.failed || node < 0) { /* the row ends here: its numbers are not asked again */
        row->c.nodes.len = nodes;
        row->leaves.len = leaves;
        row->c.entered = entered;
        return false;
    }
    map_set(&row->c.members, let->var, (void *)(intptr_t)(node + 1));
    vec_push(&row->members, let);
    return true;
}

static bool mentions_member(const Row *row, const Expr *access) {
    while (access->kind == EXPR_PROJ || access->kind == EXPR_FIELD)
        access = access->a;
    return access->kind == EXPR_VAR && map_has(&row->c.members, access->var);
}

/* The value of a block whose first operator among the arguments has a name: `(a * b, c)` as `let t = a * b; (t, c)`. */
static Expr *name_operator(Resolver *r, Expr *e) {
    bool is_call = e->kind == EXPR_CALL && e->a->kind != EXPR_OP && e->a->kind != EXPR_FN &&
                   (e->a->kind == EXPR_CTOR || may_evaluate_early(e->a));
    if (!is_call && e->kind != EXPR_TUPLE)
        return NULL;
    uint32_t i = 0;
    while (i < e->nargs && is_access(e->args[i]))
        i++;
    if (i == e->nargs || !is_member(e->args[i]))
        return NULL;
    Expr *part = e->args[i], *copy = expr_copy(e);
    Var *v = var_new(sym_intern("t"), part->type, part->span);
    copy->args = mem_new_n(Expr *, e->nargs);
    for (uint32_t k = 0; k < e->nargs; k++)
        copy->args[k] = e->args[k];
    copy->args[i] = expr_var(v, part->span);
    map_set(&r->uses, v, (void *)(uintptr_t)1);
    return expr_let(v, part, copy);
}

/* Collects the row that begins at e, a `let`; gives what follows it. */
static Expr *collect_row(Row *row, Expr *e) {
    Resolver *r = row->c.r;
    for (;;) {
        if (e->kind != EXPR_LET) {
            Expr *named = row->members.len ? name_operator(r, e) : NULL;
            if (!named)
                return e;
            e = named;
        }
        if (!e->var || e->rec)
            return e;
        bool taken = row->members.len && fuse_let(r, e, true);
        if (!taken && is_access(e->a)) {
            if (mentions_member(row, e->a))
                return e;
            vec_push(&row->accesses, e);
        } else if (taken) {
            vec_push(&row->taken, e);
        } else if (!add_member(row, e)) {
            return e;
        }
        e = e->body;
    }
}

Group *fuse_row(Resolver *r, Expr *let, FusedRow *out) {
    Row row = {.c = {.r = r, .folds = true, .at_once = true}};
    row.c.leaves = &row.leaves;
    if (!is_member(let->a) || !let->var || let->rec)
        return NULL;
    if (!r->uses.len)
        count_uses(r, r->body);
    row.c.nodes.data = r->in->spare.nodes ? r->in->spare.nodes : mem_new_n(Node, MAX_NODES);
    row.c.nodes.cap = MAX_NODES;
    r->in->spare.nodes = NULL; /* see Note [Room for code] in room.c */
    out->next = collect_row(&row, let);
    r->in->spare.nodes = row.c.nodes.data;
    if (row.members.len < 2) {
        for (size_t i = 0; i < row.taken.len; i++)
            map_set(&r->fused_values, row.taken.data[i]->var, NULL);
        return NULL;
    }
    ExprVec found = {0};
    find_results(&row, &found);
    int32_t results[GROUP_RESULTS];
    for (size_t i = 0; i < found.len; i++) {
        out->results[i] = found.data[i];
        results[i] = (int32_t)(intptr_t)map_find(&row.c.members, found.data[i]->var) - 1;
    }
    out->nresults = (uint32_t)found.len;
    out->leaves = row.leaves;
    out->accesses = row.accesses;
    return fuse_group_of(&row.c, results, out->nresults);
}
