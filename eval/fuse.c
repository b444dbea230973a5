/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recipe/fuse.h"
#include "eval/fuse_impl.h"
#include "eval/own.h"
#include "eval/plans.h"

#include <string.h>

extern const Op op_concatenate, op_take;

/* ---- what is fused --------------------------------------------------------------------------- */

/* Whether values of this type are float tensors, of whatever dtype and rank, and not all scalars. A `Tensor[?, b]`,
 * which is what a leaf of data is to an optimiser, is taken for one: where it is an integer nothing but time is lost. */
bool is_float_tensor(Type *t) {
    uint32_t rank;
    Type **dims;
    t = t ? type_resolve(t) : NULL;
    if (!t || t->tag != TY_TENSOR)
        return false;
    bool is_leaf = type_resolve(t->tensor.shape)->tag == TY_ANY &&
                   type_resolve(t->tensor.dtype)->tag == TY_PARAM;
    return (is_leaf || !(type_dtype_set(t->tensor.dtype) & ~DTS_FLOAT)) &&
           (!type_get_rank(t, &rank, &dims) || rank > 0);
}

bool is_operator(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->nargs > 0 && e->nargs <= MAX_ARGS &&
           !e->nsizes && !e->a->op->tuple && op_has_kept_plans(e->a->op);
}

static bool is_truth(Type *t) {
    t = t ? type_resolve(t) : NULL;
    return t && t->tag == TY_TENSOR && !(type_dtype_set(t->tensor.dtype) & ~DTS_BOOL);
}

/* Comparisons of float tensors give truth values. */
bool is_elementwise(const Expr *e) {
    return is_operator(e) &&
           (e->a->op->pattern == OP_ELEMWISE || e->a->op->pattern == OP_BROADCAST) &&
           (is_float_tensor(e->type) ||
            (is_truth(e->type) && is_float_tensor(type_of(e->args[0]))));
}

/* Whether types say that a value of type t is summed over axes when it gets the shape of `like`. */
static bool is_summed(Type *t, Type *like) {
    uint32_t rank, n;
    Type **dims, **of;
    int64_t size, whole;
    if (!t || !like || !type_get_rank(t, &n, &of) || !type_get_rank(like, &rank, &dims))
        return false;
    for (uint32_t i = 0; i < rank && rank == n; i++)
        if (type_get_int(dims[i], &size) && size == 1 &&
            !(type_get_int(of[i], &whole) && whole == 1))
            return true;
    return rank != n;
}

/* A value brought to a shape that it nearly always has: the plan finds whether it does, and then nothing is done. */
static bool is_fit(const Expr *e) {
    return is_operator(e) && e->a->op == &op_collapse_sum_like && is_float_tensor(e->type) &&
           is_float_tensor(type_of(e->args[0])) &&
           !is_summed(type_of(e->args[0]), type_of(e->args[1]));
}

bool is_member(const Expr *e) { return is_elementwise(e) || is_fit(e); }

static bool is_reduction(const Expr *e) {
    return is_operator(e) && e->a->op->pattern == OP_REDUCE && is_float_tensor(type_of(e->args[0]));
}

bool is_product(const Expr *e) {
    return is_operator(e) && e->a->op->pattern == OP_PRODUCT && is_float_tensor(e->type);
}

static bool is_of_rows(const Expr *e) {
    return is_operator(e) && e->a->op->pattern == OP_ROWS && is_float_tensor(e->type);
}

bool reads_again(const Expr *e) { return is_product(e) || is_of_rows(e); }

bool is_move(const Expr *e) {
    return is_operator(e) && e->nargs == 1 && e->a->op->pattern == OP_INJECTIVE &&
           is_float_tensor(e->type) && is_float_tensor(type_of(e->args[0]));
}

bool is_gather(const Expr *e) {
    return is_operator(e) && e->a->op == &op_take && is_float_tensor(e->type) &&
           is_float_tensor(type_of(e->args[0]));
}

bool is_laid_together(const Expr *e) {
    return is_operator(e) && (e->a->op == &op_stack || e->a->op == &op_concatenate) &&
           own_is_tuple_of_tensors(e->args[0], MAX_ARGS) && is_float_tensor(e->type);
}

NodeOperands node_operands(const Expr *e) {
    const Expr *all = is_laid_together(e) ? e->args[0] : e;
    return (NodeOperands){all->args, all->nargs};
}

/* What a product or an operator of rows reads again is better written once, unless it only has to be read elsewhere; so is
 * what is read at an index, and the index. */
bool takes_in(const Expr *reader, const Expr *operand) {
    return !is_gather(reader) && (!reads_again(reader) || is_move(operand));
}

bool is_inner(const Expr *e) {
    return is_elementwise(e) || is_move(e) || is_gather(e) || is_laid_together(e) ||
           reads_again(e) || (is_reduction(e) && is_float_tensor(e->type));
}

bool is_root(const Expr *e) { return is_inner(e) || is_reduction(e); }

bool may_evaluate_early(const Expr *e) {
    while (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD)
        e = e->a;
    return e->kind == EXPR_VAR || e->kind == EXPR_LIT || e->kind == EXPR_CONST ||
           e->kind == EXPR_GLOBAL || (e->kind == EXPR_CALL && e->a->kind == EXPR_OP);
}

bool is_access(const Expr *e) {
    while (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD)
        e = e->a;
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST;
}

Expr *fuse_value_of(const Resolver *r, const Var *v) { return map_find(&r->fused_values, v); }

static int32_t remember(Collector *c, const Expr *e, int32_t number) {
    map_set(&c->numbers, e, (void *)(intptr_t)(number + MAX_LEAVES + 1));
    return number;
}

static bool is_same_literal(const Expr *a, const Expr *b) {
    DType t, u;
    return a->kind == EXPR_LIT && b->kind == EXPR_LIT && !a->like && !b->like &&
           a->is_float == b->is_float && type_get_dtype(a->type, &t) &&
           type_get_dtype(b->type, &u) && t == u && memcmp(&a->i, &b->i, sizeof a->i) == 0;
}

static int32_t add_leaf(Collector *c, Expr *e) {
    for (size_t i = 0; i < c->leaves->len; i++) {
        const Expr *leaf = c->leaves->data[i];
        if ((e->kind == EXPR_VAR && leaf->kind == EXPR_VAR && leaf->var == e->var) ||
            is_same_literal(e, leaf))
            return ~(int32_t)i;
    }
    c->failed |= c->leaves->len == MAX_LEAVES ||
                 !(c->at_once ? is_access(e) : may_evaluate_early(e));
    if (c->failed)
        return 0;
    vec_push(c->leaves, e);
    return remember(c, e, ~(int32_t)(c->leaves->len - 1));
}

/* What is not taken in is a leaf, but for a member of the row, which is none. */
static int32_t collect_operand(Collector *c, const Expr *reader, Expr *e) {
    Expr *value = e->kind == EXPR_VAR ? fuse_value_of(c->r, e->var) : NULL;
    bool is_member = e->kind == EXPR_VAR && map_has(&c->members, e->var);
    bool taken = takes_in(reader, value ? value : e) && (c->folds || !reads_again(reader));
    return is_member || taken ? fuse_collect(c, e, false) : add_leaf(c, e);
}

/* A chain longer than a group is cut: what is below is a leaf, and a group of its own. */
int32_t fuse_collect(Collector *c, Expr *e, bool root) {
    if (e->kind == EXPR_VAR && map_has(&c->members, e->var)) {
        c->failed |= c->elsewhere > 0;
        return (int32_t)(intptr_t)map_find(&c->members, e->var) - 1;
    }
    if (e->kind == EXPR_VAR && fuse_value_of(c->r, e->var))
        e = fuse_value_of(c->r, e->var);
    void *known = map_find(&c->numbers, e);
    if (known)
        return (int32_t)(intptr_t)known - MAX_LEAVES - 1;
    bool taken = root ? is_root(e) : c->folds ? is_inner(e) : is_elementwise(e);
    if (c->failed || c->entered == MAX_NODES || !taken)
        return add_leaf(c, e);
    c->entered++;
    NodeOperands operands = node_operands(e);
    Node n = {.site = {.op = e->a->op,
                       .scalar = e->a->op->scalar,
                       .attrs = e->attrs ? e->attrs : attrs_defaults(e->a->op),
                       .type = e->type,
                       .nargs = operands.n,
                       .spread = operands.at != e->args,
                       .call = e},
              .span = e->span};
    c->elsewhere += !is_member(e);
    for (uint32_t i = 0; i < operands.n; i++)
        n.args[i] = collect_operand(c, e, operands.at[i]);
    c->elsewhere -= !is_member(e);
    vec_push(&c->nodes, n);
    return remember(c, e, (int32_t)c->nodes.len - 1);
}

Group *fuse_group_of(const Collector *c, const int32_t *results, uint32_t nresults) {
    Group *g = mem_alloc(sizeof *g + c->nodes.len * sizeof(Node));
    g->nleaves = (uint32_t)c->leaves->len;
    g->nnodes = (uint32_t)c->nodes.len;
    g->nresults = nresults;
    for (uint32_t i = 0; i < nresults; i++)
        g->results[i] = results[i];
    for (size_t i = 0; i < c->nodes.len; i++)
        g->nodes[i] = c->nodes.data[i];
    return g;
}

Group *fuse_group(Resolver *r, Expr *e, ExprVec *leaves) {
    if (!is_root(e))
        return NULL;
    Collector c = {.r = r, .leaves = leaves, .folds = true};
    fuse_collect(&c, e, true);
    if (c.failed) { /* an argument of a product may be none of a group's */
        leaves->len = 0;
        c = (Collector){.r = r, .leaves = leaves};
        fuse_collect(&c, e, true);
    }
    if (c.failed || c.nodes.len < 2)
        return NULL;
    int32_t root = (int32_t)c.nodes.len - 1;
    return fuse_group_of(&c, &root, 1);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Each operator is told as the instruction being run, so that its mistake gets its own place and calls. */
static bool run_one_by_one(Interp *in, const Group *g, const Value *args, Value *out) {
    Value *values = mem_new_n(Value, g->nnodes);
    Expr **origin = &in->code->origin[in->pc - in->code->instrs], *whole = *origin;
    bool done = true;
    for (uint32_t i = 0; i < g->nnodes && done; i++) {
        const Node *n = &g->nodes[i];
        Value operands[MAX_ARGS];
        for (uint32_t k = 0; k < n->site.nargs; k++)
            operands[k] = n->args[k] < 0 ? args[~n->args[k]] : values[n->args[k]];
        *origin = (Expr *)(uintptr_t)n->site.call;
        done = apply_op(in, &n->site, operands, n->span, &values[i]);
    }
    *origin = whole;
    for (uint32_t i = 0; i < g->nresults && done; i++)
        *(i ? &in->more[i - 1] : out) = values[g->results[i]];
    return done;
}

static bool is_result(const Group *g, uint32_t node) {
    for (uint32_t i = 0; i < g->nresults; i++)
        if (g->results[i] == (int32_t)node)
            return true;
    return false;
}

/* Marks the nodes whose elements are read; of the others only a `like` takes the sizes. */
static void find_computed(const Group *g, bool *computed) {
    for (uint32_t i = g->nnodes; i-- > 0;) {
        const Node *node = &g->nodes[i];
        computed[i] |= is_result(g, i);
        for (uint32_t k = 0; computed[i] && k < node->site.nargs; k++)
            if (node->args[k] >= 0 && !(node->site.op->like_last && k + 1 == node->site.nargs))
                computed[node->args[k]] = true;
    }
}

/* One template of all nodes, their steps merged. The spares of the plan are left to its caller. */
static Template *merge_nodes(const Group *g, Plan *plan, Tensor *const *in, uint32_t n) {
    Tensor *results[MAX_NODES];
    bool computed[MAX_NODES] = {false};
    find_computed(g, computed);
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const Node *node = &g->nodes[i];
        Tensor *operands[MAX_ARGS];
        Diags unheard = {0};
        for (uint32_t k = 0; k < node->site.nargs; k++)
            operands[k] = node->args[k] < 0 ? in[~node->args[k]] : results[node->args[k]];
        OpCall call = {.op = node->site.op,
                       .attrs = node->site.attrs,
                       .nin = node->site.nargs,
                       .in = operands,
                       .diags = &unheard};
        OutSpec spec;
        if (node->site.op->shape(&call, &spec) != 1)
            return NULL;
        results[i] = is_result(g, i) || !computed[i]
                         ? tensor_blank(spec.dtype, spec.rank, spec.shape)
                         : plan_temp(plan, spec.dtype, spec.rank, spec.shape);
        if (computed[i] && !node->site.op->lower(&call, &results[i], plan))
            return NULL;
    }
    plan_fuse(plan);
    Tensor *out[GROUP_RESULTS];
    for (uint32_t i = 0; i < g->nresults; i++)
        out[i] = results[g->results[i]];
    Template *t = template_new(plan, in, n, out, g->nresults);
    if (!t)
        BUG("a group reads a tensor that is none of its arguments");
    return t;
}

typedef struct GroupMaking {
    Interp *in;
    const Group *group;
} GroupMaking;

static Template *make_template(void *ctx, Tensor *const *in, uint32_t n) {
    GroupMaking *m = ctx;
    Plan plan = {.blank = true, .spares = m->in->spare_steps};
    m->in->spare_steps = (StepVec){0}; /* an interrupt would leave them in use twice */
    Template *t = merge_nodes(m->group, &plan, in, n);
    for (size_t i = 0; i < plan.steps.len; i++)
        vec_push(&plan.spares, plan.steps.data[i]);
    m->in->spare_steps = plan.spares;
    return t;
}

/* Runs a group on scalars, which its types did not tell to be scalars; false where it is not that. */
static bool run_on_scalars(Interp *in, Group *g, const Value *args, Value *out) {
    Value values[MAX_NODES];
    for (uint32_t i = 0; i < g->nleaves; i++)
        if (args[i].tag != VAL_SCALAR)
            return false;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        Node *n = &g->nodes[i];
        Value operands[MAX_ARGS];
        for (uint32_t k = 0; k < n->site.nargs; k++)
            operands[k] = n->args[k] < 0 ? args[~n->args[k]] : values[n->args[k]];
        if (!apply_scalar(in, &n->site, operands, &values[i]))
            return false;
    }
    for (uint32_t i = 0; i < g->nresults; i++)
        *(i ? &in->more[i - 1] : out) = values[g->results[i]];
    return true;
}

Template *group_template(const Group *g, Tensor *const *in) {
    Plan plan = {.blank = true};
    return merge_nodes(g, &plan, in, g->nleaves);
}

/* A group that fails is run again one by one, which reports what is wrong. */
bool fuse_apply(Interp *in, const Site *site, const Value *args, uint64_t dying, Value *out) {
    Group *g = site->group;
    if (run_on_scalars(in, g, args, out))
        return true;
    PlanCall call = {
        .what = g, .dying = dying, .alone = site->alone, .rest = g->nresults > 1 ? in->more : NULL};
    GroupMaking making = {in, g};
    int32_t status = plans_run(in, &call, args, g->nleaves, make_template, &making, out);
    if (status == KERNEL_DONE)
        return true;
    if (status == KERNEL_INTERRUPTED) {
        in->interrupt = 1;
        return false;
    }
    return run_one_by_one(in, g, args, out);
}
