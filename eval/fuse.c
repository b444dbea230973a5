/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/fuse.h"

#include "eval/plans.h"
#include "ops/recipe/fuse.h"
#include "types/core/check.h"

enum {
    MAX_NODES = 24,  /* operators in a group */
    MAX_LEAVES = 12, /* a kernel has RECIPE_MAX_OPERANDS operands */
    MAX_ARGS = 4,
};

/* One operator: its arguments are earlier nodes (>= 0) or leaves (~number). */
typedef struct Node {
    Site site;
    Span span;
    int32_t args[MAX_ARGS];
} Node;

struct Group {
    uint32_t nleaves, nnodes;
    Node nodes[]; /* in order of evaluation, the root last */
};

/* ---- what is fused --------------------------------------------------------------------------- */

/* Whether values of this type are float tensors, of whatever dtype and rank, and not all scalars. A `Tensor[?, b]`,
 * which is what a leaf of data is to an optimiser, is taken for one: where it is an integer nothing but time is lost. */
static bool is_float_tensor(Type *t) {
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

/* The type of an operand; passes find out more about variables (passes/known_type.h). */
static Type *type_of(const Expr *e) { return e->kind == EXPR_VAR ? e->var->type : e->type; }

static bool is_operator(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->nargs > 0 && e->nargs <= MAX_ARGS &&
           !e->nsizes && !e->a->op->tuple && e->a->op->lower && !e->a->op->cut &&
           e->a->op->shape_mode == SHAPE_OF_SHAPES; /* the plan is made without elements */
}

static bool is_truth(Type *t) {
    t = t ? type_resolve(t) : NULL;
    return t && t->tag == TY_TENSOR && !(type_dtype_set(t->tensor.dtype) & ~DTS_BOOL);
}

/* Comparisons of float tensors give truth values. */
static bool is_elementwise(const Expr *e) {
    return is_operator(e) &&
           (e->a->op->pattern == OP_ELEMWISE || e->a->op->pattern == OP_BROADCAST) &&
           (is_float_tensor(e->type) ||
            (is_truth(e->type) && is_float_tensor(type_of(e->args[0]))));
}

static bool is_reduction(const Expr *e) {
    return is_operator(e) && e->a->op->pattern == OP_REDUCE && is_float_tensor(type_of(e->args[0]));
}

static bool is_product(const Expr *e) {
    return is_operator(e) && e->a->op->pattern == OP_PRODUCT && is_float_tensor(e->type);
}

/* An operator that puts the elements of a tensor elsewhere: what reads its result may read the tensor instead. */
static bool is_move(const Expr *e) {
    return is_operator(e) && e->nargs == 1 && e->a->op->pattern == OP_INJECTIVE &&
           is_float_tensor(e->type) && is_float_tensor(type_of(e->args[0]));
}

/* What may be below the root of a group: element-wise operators, and folds whose epilogue they become. */
static bool is_inner(const Expr *e) {
    return is_elementwise(e) || is_move(e) || is_product(e) ||
           (is_reduction(e) && is_float_tensor(e->type));
}

/* The root of a group may also be a reduction to a scalar. */
static bool is_root(const Expr *e) { return is_inner(e) || is_reduction(e); }

/* Whether e may be evaluated before the operators around it: at most another of two mistakes is met first. */
static bool may_evaluate_early(const Expr *e) {
    while (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD)
        e = e->a;
    return e->kind == EXPR_VAR || e->kind == EXPR_LIT || e->kind == EXPR_CONST ||
           e->kind == EXPR_GLOBAL || (e->kind == EXPR_CALL && e->a->kind == EXPR_OP);
}

Expr *fuse_value_of(const Resolver *r, const Var *v) { return map_find(&r->fused_values, v); }

typedef struct Collector {
    Resolver *r;
    ExprVec *leaves;
    Map numbers; /* Expr -> its number in Node.args, plus MAX_LEAVES + 1 */
    VEC(Node) nodes;
    uint32_t entered; /* nodes so far, with those whose arguments are still being collected */
    bool folds;       /* products, reductions and moves are taken in below the root */
    bool failed;
} Collector;

static int32_t remember(Collector *c, const Expr *e, int32_t number) {
    map_set(&c->numbers, e, (void *)(intptr_t)(number + MAX_LEAVES + 1));
    return number;
}

static int32_t add_leaf(Collector *c, Expr *e) {
    if (e->kind == EXPR_VAR)
        for (size_t i = 0; i < c->leaves->len; i++)
            if (c->leaves->data[i]->kind == EXPR_VAR && c->leaves->data[i]->var == e->var)
                return ~(int32_t)i;
    c->failed |= !may_evaluate_early(e) || c->leaves->len == MAX_LEAVES;
    if (c->failed)
        return 0;
    vec_push(c->leaves, e);
    return remember(c, e, ~(int32_t)(c->leaves->len - 1));
}

static int32_t collect(Collector *c, Expr *e, bool root);

/* What a product reads again and again is better written once, unless it only has to be read elsewhere. */
static int32_t collect_factor(Collector *c, Expr *e) {
    Expr *value = e->kind == EXPR_VAR ? fuse_value_of(c->r, e->var) : NULL;
    return c->folds && is_move(value ? value : e) ? collect(c, e, false) : add_leaf(c, e);
}

/* A chain longer than a group is cut: what is below is a leaf, and a group of its own. */
static int32_t collect(Collector *c, Expr *e, bool root) {
    if (e->kind == EXPR_VAR && fuse_value_of(c->r, e->var))
        e = fuse_value_of(c->r, e->var);
    void *known = map_find(&c->numbers, e);
    if (known)
        return (int32_t)(intptr_t)known - MAX_LEAVES - 1;
    bool taken = root ? is_root(e) : c->folds ? is_inner(e) : is_elementwise(e);
    if (c->failed || c->entered == MAX_NODES || !taken)
        return add_leaf(c, e);
    c->entered++;
    Node n = {.site = {.op = e->a->op,
                       .attrs = e->attrs ? e->attrs : attrs_defaults(e->a->op),
                       .type = e->type,
                       .nargs = e->nargs,
                       .call = e},
              .span = e->span};
    for (uint32_t i = 0; i < e->nargs; i++)
        n.args[i] = is_product(e) ? collect_factor(c, e->args[i]) : collect(c, e->args[i], false);
    vec_push(&c->nodes, n);
    return remember(c, e, (int32_t)c->nodes.len - 1);
}

Group *fuse_group(Resolver *r, Expr *e, ExprVec *leaves) {
    if (!is_root(e))
        return NULL;
    Collector c = {.r = r, .leaves = leaves, .folds = true};
    collect(&c, e, true);
    if (c.failed) { /* an argument of a product may be none of a group's */
        leaves->len = 0;
        c = (Collector){.r = r, .leaves = leaves};
        collect(&c, e, true);
    }
    if (c.failed || c.nodes.len < 2)
        return NULL;
    Group *g = mem_alloc(sizeof *g + c.nodes.len * sizeof(Node));
    g->nleaves = (uint32_t)leaves->len;
    g->nnodes = (uint32_t)c.nodes.len;
    for (size_t i = 0; i < c.nodes.len; i++)
        g->nodes[i] = c.nodes.data[i];
    return g;
}

/* ---- lets ------------------------------------------------------------------------------------ */

static void count_uses(void *ctx, Expr *e) {
    Resolver *r = ctx;
    if (e->kind == EXPR_VAR) {
        uintptr_t n = (uintptr_t)map_find(&r->uses, e->var);
        map_set(&r->uses, e->var, (void *)(n + 1));
        return;
    }
    if (map_has(&r->counted,
                e)) { /* the expression is shared, so its variables are used more than once */
        VarVec free = {0};
        expr_free_vars(e, &free);
        for (size_t i = 0; i < free.len; i++)
            map_set(&r->uses, free.data[i], (void *)(uintptr_t)2);
        return;
    }
    map_set(&r->counted, e, e);
    for (; e->kind == EXPR_LET; e = e->body)
        count_uses(r, e->a);
    expr_each_child(e, count_uses, r);
    if (e->like)
        count_uses(r, e->like);
}

/* Whether the variable of a let is an operand somewhere in the operators of e. At most *budget of them are looked
 * at. */
static bool is_operand_in(const Expr *e, const Expr *let, bool root, uint32_t *budget) {
    if (e->kind == EXPR_VAR)
        return e->var == let->var;
    if (!*budget || !(root ? is_root(e) : is_inner(e)))
        return false;
    --*budget;
    for (uint32_t i = 0; i < e->nargs; i++) {
        const Expr *arg = e->args[i];
        bool taken = !is_product(e) || is_move(arg->kind == EXPR_VAR ? let->a : arg);
        if (taken && is_operand_in(arg, let, false, budget))
            return true;
    }
    return false;
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

/* The same of the arguments of a call or the parts of a tuple, where those before it are pure. */
static bool is_operand_in_parts(const Expr *e, const Expr *let, uint32_t *budget) {
    bool is_call = e->kind == EXPR_CALL && e->a->kind != EXPR_OP && e->a->kind != EXPR_FN;
    if (!is_call && e->kind != EXPR_TUPLE)
        return is_operand_in(e, let, true, budget);
    if (is_call && e->a->kind != EXPR_CTOR && !may_evaluate_early(e->a))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++) {
        if (e->args[i]->kind != EXPR_VAR && is_operand_in(e->args[i], let, true, budget))
            return true;
        if (!is_pure(e->args[i], budget))
            return false;
    }
    return false;
}

/* Whether evaluating e has no effect but its value, which is there at once. */
static bool is_access(const Expr *e) {
    while (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD)
        e = e->a;
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST;
}

/* Whether e is an operator of float tensors whose types are known whole, so that it cannot fail. */
static bool is_sure(const Expr *e) {
    if (!is_operator(e) || e->a->op->refuses_sizes || !core_is_closed(e->type))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_access(e->args[i]) || !core_is_closed(type_of(e->args[i])) ||
            !is_float_tensor(type_of(e->args[i])))
            return false;
    return true;
}

/* Whether a value may be computed after e as well as before it. */
static bool may_wait_for(const Expr *e) {
    bool is_data = e->kind == EXPR_TUPLE || (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR);
    for (uint32_t i = 0; is_data && i < e->nargs; i++)
        if (!is_access(e->args[i]))
            return false;
    return is_data || is_access(e) || is_sure(e);
}

/* The binding behind a `let`, or the value of its block, of whose operators it is an operand; NULL where something
 * else has to come before. */
static Expr *find_reader(const Expr *let) {
    enum { FARTHEST = 32 };
    const Expr *at = let->body;
    for (int i = 0; i < FARTHEST; i++, at = at->body) {
        uint32_t budget = MAX_NODES;
        Expr *next = at->kind == EXPR_LET ? at->a : (Expr *)(uintptr_t)at;
        if (next->kind != EXPR_VAR && is_operand_in_parts(next, let, &budget))
            return next;
        if (at->kind != EXPR_LET || !at->var || at->rec || !may_wait_for(next))
            return NULL;
    }
    return NULL;
}

/* Subtracts the number of operators in e from the budget. */
static void spend(const Expr *e, uint32_t *budget) {
    if (!*budget || !is_inner(e))
        return;
    --*budget;
    for (uint32_t i = 0; i < e->nargs; i++)
        spend(e->args[i], budget);
}

bool fuse_let(Resolver *r, Expr *let) {
    uint32_t run = r->run, left = MAX_NODES - run;
    r->run = 0;
    if (!let->var || let->rec || !is_inner(let->a))
        return false;
    if (!find_reader(let))
        return false;
    /* A run ends when it fills a group, so that a long chain becomes several groups. */
    spend(let->a, &left);
    if (left <= 1)
        return false;
    if (!r->uses.len)
        count_uses(r, r->body);
    if (map_find(&r->uses, let->var) != (void *)(uintptr_t)1)
        return false;
    map_set(&r->fused_values, let->var, let->a);
    r->run = MAX_NODES - left;
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

static bool run_one_by_one(Interp *in, const Group *g, const Value *args, Value *out) {
    Value *values = mem_new_n(Value, g->nnodes);
    for (uint32_t i = 0; i < g->nnodes; i++) {
        const Node *n = &g->nodes[i];
        Value operands[MAX_ARGS];
        for (uint32_t k = 0; k < n->site.nargs; k++)
            operands[k] = n->args[k] < 0 ? args[~n->args[k]] : values[n->args[k]];
        if (!apply_op(in, &n->site, operands, n->span, &values[i]))
            return false;
    }
    *out = values[g->nnodes - 1];
    return true;
}

/* One template of all nodes, their steps merged. */
static Template *make_template(void *ctx, Tensor *const *in, uint32_t n) {
    const Group *g = ctx;
    Tensor *results[MAX_NODES];
    Plan plan = {.blank = true};
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
        results[i] = i + 1 < g->nnodes ? plan_temp(&plan, spec.dtype, spec.rank, spec.shape)
                                       : tensor_blank(spec.dtype, spec.rank, spec.shape);
        if (!node->site.op->lower(&call, &results[i], &plan))
            return NULL;
    }
    plan_fuse(&plan);
    Template *t = template_new(&plan, in, n, &results[g->nnodes - 1], 1);
    if (!t)
        BUG("a group reads a tensor that is none of its arguments");
    return t;
}

/* A group that fails is run again one by one, which reports what is wrong. */
bool fuse_apply(Interp *in, const Group *g, const Value *args, uint64_t dying, Value *out) {
    PlanCall call = {.what = g, .dying = dying};
    int32_t status = plans_run(in, &call, args, g->nleaves, make_template, (void *)(uintptr_t)g,
                               out);
    if (status == KERNEL_DONE)
        return true;
    if (status == KERNEL_INTERRUPTED) {
        in->interrupt = 1;
        return false;
    }
    return run_one_by_one(in, g, args, out);
}
