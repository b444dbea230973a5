/* SPDX-License-Identifier: Apache-2.0 */
/* Which values have one shape.
 *
 * Note [Known shapes]. Sizes are often not known, `?`, and a rule then brings each cotangent to the shape of its argument
 * while the program runs, for which the way back keeps that argument:
 *
 *   fn (x, y) { let v = x * y; let w = v + 1.0; let z = w * x; … }      back:   collapse_sum_like(strong_multiply(ct, x), w)
 *
 * But w has the shape of v, as one operand has only one element, and so has z, since x was broadcast to v already. So a
 * cotangent of z has the shape of w, and nothing needs to be done. Shapes follow from the operators that ran: two values
 * with one Shape have the same sizes whenever both exist, as the results of an operator of arguments that have, or two rows
 * of one tensor, and what is `below` a shape was broadcast to it, or reduced from it with its axes kept. Where only the
 * shape of an operand matters, another value takes its place: the one from which the shape came, of which the operand was
 * made and which is there wherever that is, or one that the rule is given. And of what a frame would hold for its shape
 * only, a value of that shape which it holds anyway takes the place.
 *
 * Note [Shapes by name]. A size that stands in the types of a function's parameters is one size for as long as it runs
 * (Note [Each its own size] in types/solve/unknown.c), so tensors whose types say one shape in such sizes have it:
 *
 *   def scaled[s](by: Tensor[s, float64], p: Pair[s]) { Pair { x: by * p.x, y: by * p.y } }      nothing is broadcast here
 *
 * A body that came in the place of a call has names of its own, but for what the call says (mono_of_inlined). Names of
 * other sizes, as in rules, say nothing. */
#include "passes/reverse/internal.h"

#include "ops/elementwise.h"
#include "ops/relate/relations.h"
#include "passes/subst.h"

#include <string.h>

enum {
    MOST_BELOW = 32,
    MOST_SUMMED = 8,  /* operands: a group of operators has few, these among them */
    MOST_VISITED = 64 /* shapes until they are found */
};

extern const Op op_add, op_expand_like, op_full_like, op_index_add, op_reshape_like, op_reverse,
    op_scatter_elements, op_take_add;

struct Shape {
    Expr *like;             /* the variable from which it came; NULL: an operator made it */
    Map below;              /* Shape -> itself: those that broadcast to it */
    const Shape *const *of; /* those that were broadcast together and gave it, or NULL */
    uint32_t nof;
};

static const Shape scalar;

static Shape *shape_new(Expr *like) {
    Shape *s = mem_new(Shape);
    s->like = like;
    return s;
}

/* A shape that types say. */
typedef struct NamedShape {
    Type *type; /* of KIND_SHAPE */
    const Shape *shape;
    struct NamedShape *next;
} NamedShape;

/* The sizes in the types of the parameters of n that are one size each. */
static const Map *sizes_of(Instance *n) {
    if (n->sizes)
        return n->sizes;
    n->sizes = mem_new(Map);
    const Fn *f = n->is_rule ? NULL : n->fn->fn;
    TypeVec found = {0};
    Map seen[2] = {0};
    for (uint32_t i = 0; f && i < f->nparams; i++)
        if (type_resolve(f->params[i]->type)->tag != TY_FN)
            type_collect_names(f->params[i]->type, seen, &found);
    for (size_t i = 0; i < found.len; i++)
        if (!found.data[i]->param.each)
            map_set(n->sizes, found.data[i], found.data[i]);
    return n->sizes;
}

/* Whether all in the type of a shape is said by the parameters of n, or of functions around a rule. */
static bool is_said(Instance *n, Type *shape) {
    TypeVec found = {0};
    type_collect_names(shape, (Map[2]){0}, &found);
    for (size_t i = 0; i < found.len; i++) {
        Instance *at = n;
        while (at && !map_has(sizes_of(at), found.data[i]))
            at = at->around;
        if (!at)
            return false;
    }
    return !type_has_vars(shape);
}

/* The shape that the type says; NULL where it says none. */
static const Shape *shape_of_type(Instance *n, Type *t) {
    t = t ? type_resolve(t) : NULL;
    Type *type = t && t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
    if (!type || !is_said(n, type))
        return NULL;
    for (const Instance *at = n; at; at = at->around)
        for (const NamedShape *s = at->named_shapes; s; s = s->next)
            if (type_equal(s->type, type))
                return s->shape;
    NamedShape *s = mem_new(NamedShape);
    *s = (NamedShape){type, shape_new(NULL), n->named_shapes};
    n->named_shapes = s;
    return s->shape;
}

const Shape *shape_of_atom(Instance *n, const Map *own, const Expr *atom) {
    if (atom->kind == EXPR_LIT || type_has_rank0(atom->type))
        return &scalar;
    if (atom->kind != EXPR_VAR)
        return shape_new(NULL);
    const Shape *s = own ? map_find(own, atom->var) : NULL;
    for (const Instance *at = n; at && !s; at = at->around)
        s = map_find(&at->shapes, atom->var);
    if (!s) {
        s = shape_of_type(n, atom->var->type);
        s = s ? s : shape_new(expr_var(atom->var, atom->span));
        map_set(&n->shapes, atom->var, (void *)(uintptr_t)s);
    }
    return s;
}

static bool is_below(const Shape *a, const Shape *b) {
    return a == &scalar || a == b || map_has(&b->below, a);
}

/* Whether the call reads a part of a tensor of which the tensor's shape and the spec say the sizes: no slice, no vector. */
static bool reads_whole_axes(const Expr *call) {
    const char *spec = call->a->op == &op_index && call->nargs == 2
                           ? attrs_text(call->attrs, "spec")
                           : ":";
    return !spec[strspn(spec, "icw.n")];
}

static bool same_attrs(const Expr *a, const Expr *b) {
    const Attrs *x = a->attrs, *y = b->attrs;
    if (reads_whole_axes(a) && reads_whole_axes(b))
        return strcmp(attrs_text(x, "spec"), attrs_text(y, "spec")) == 0;
    return x == y || (x && y && attrs_equal_values(x, y));
}

/* A shape that an operator gave, which it gives again of arguments of the same shapes. */
typedef struct Given {
    const Expr *call;
    const Shape *const *args;
    Shape *shape;
    struct Given *next; /* with one number */
} Given;

static bool gives_same(const Given *g, const Expr *call, const Shape *const *args) {
    if (g->call->a->op != call->a->op || g->call->nargs != call->nargs ||
        memcmp(g->args, args, call->nargs * sizeof *args) != 0)
        return false;
    return same_attrs(g->call, call);
}

/* The shape that follows from those of the arguments; *is_new: nothing is known of it yet. */
static Shape *shape_given(Instance *n, const Expr *call, const Shape *const *args, bool *is_new) {
    uintptr_t number = (uintptr_t)call->a->op;
    for (uint32_t i = 0; i < call->nargs; i++)
        number = (number ^ (uintptr_t)args[i]) * (uintptr_t)0x9e3779b97f4a7c15u;
    void *key = (void *)(number | 1);
    *is_new = false;
    for (const Instance *at = n; at; at = at->around)
        for (const Given *g = map_find(&at->given_shapes, key); g; g = g->next)
            if (gives_same(g, call, args))
                return g->shape;
    Given *g = mem_new(Given);
    const Shape **own = mem_new_n(const Shape *, call->nargs + 1);
    memcpy(own, args, call->nargs * sizeof *own);
    *g = (Given){call, own, shape_new(NULL), map_find(&n->given_shapes, key)};
    map_set(&n->given_shapes, key, g);
    *is_new = true;
    return g->shape;
}

/* To what the operands broadcast. */
static const Shape *join(Instance *n, const Expr *call, const Shape *const *of) {
    bool is_new;
    for (uint32_t i = 0; i < call->nargs; i++) {
        bool all = true;
        for (uint32_t k = 0; k < call->nargs; k++)
            all &= is_below(of[k], of[i]);
        if (all)
            return of[i];
    }
    Shape *made = shape_given(n, call, of, &is_new);
    if (is_new) {
        const Shape **parts = mem_new_n(const Shape *, call->nargs);
        memcpy(parts, of, call->nargs * sizeof *parts);
        made->of = parts;
        made->nof = call->nargs;
    }
    for (uint32_t i = 0; is_new && i < call->nargs; i++) {
        if (of[i] == &scalar)
            continue;
        map_set(&made->below, of[i], (void *)(uintptr_t)of[i]);
        if (made->below.len + of[i]->below.len <= MOST_BELOW)
            map_add(&made->below, &of[i]->below);
    }
    return made;
}

/* Whether the sizes of the arguments say those of the result. */
static bool follows_from_shapes(const Expr *call) {
    bool refers = call->attrs && attrs_have_refs(call->attrs);
    return call->a->op->shape_mode == SHAPE_OF_SHAPES && !call->a->op->foreign && !refers;
}

/* Whether only the shape of the operator's last argument matters, which is that of the result. */
static bool takes_shape_of_last(const Expr *call) {
    const Op *op = call->a->op;
    if (op == &op_reshape_like) /* otherwise it takes some axes of it */
        return !call->attrs || attrs_equal_values(call->attrs, attrs_defaults(op));
    return op == &op_broadcast_to_like || op == &op_collapse_sum_like || op == &op_expand_like;
}

/* The argument whose shape the result has; -1: the operator is no such one. */
static int like_argument(const Expr *call) {
    const Op *op = call->a->op;
    if (takes_shape_of_last(call) || op == &op_take_add)
        return op->nargs - 1;
    bool first = op == &op_cast || op == &op_cast_like || op == &op_full_like ||
                 op == &op_index_add || op == &op_index_set || op == &op_ones_like ||
                 op == &op_reverse || op == &op_scatter_elements || op == &op_zeros_like;
    return first ? 0 : -1;
}

/* Notes that a reduction which keeps its axes, with size 1, broadcasts to its argument. */
static void note_reduced(const Expr *call, const Shape *of, const Shape *reduced) {
    bool keeps = call->a->op->relation == &rel_reduce && call->attrs &&
                 attrs_bool(call->attrs, "keepdims");
    if (keeps && reduced && of != &scalar && of != reduced && of->below.len < MOST_BELOW)
        map_set(&((Shape *)(uintptr_t)of)->below, reduced, (void *)(uintptr_t)reduced);
}

static const Shape *find_shape(Instance *n, const Expr *call, const Shape *const *args) {
    const Op *op = call->a->op;
    int like = like_argument(call);
    if (type_has_rank0(call->type))
        return &scalar;
    const Shape *said = shape_of_type(n, call->type);
    if (said)
        return said;
    if (call->nsizes || !call->nargs)
        return NULL;
    if (like >= 0 && (uint32_t)like < call->nargs)
        return args[like];
    if (op->elementwise || op == &op_where)
        return join(n, call, args);
    bool is_new;
    if (reads_whole_axes(call))
        return shape_given(n, call, (const Shape *[]){args[0], &scalar}, &is_new);
    return follows_from_shapes(call) ? shape_given(n, call, args, &is_new) : NULL;
}

const Shape *shape_of_call(Instance *n, const Expr *call, const Shape *const *args) {
    const Shape *s = find_shape(n, call, args);
    if (call->nargs)
        note_reduced(call, args[0], s);
    return s;
}

/* The shape of what a builtin of derivatives gives, which is that of an argument; NULL: it is no such one. */
static const Expr *like_of_builtin(const Expr *call) {
    static const struct {
        const char *name;
        uint32_t like;
    } table[] = {{"ad.add_index", 1}, {"ad.dense", 0},  {"ad.fit", 0},  {"ad.ones", 0},
                 {"ad.own", 0},       {"ad.settle", 0}, {"ad.zeros", 0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(call->a->symbol->text, table[i].name) == 0)
            return call->args[table[i].like];
    return NULL;
}

static const Shape *shape_of_value(Instance *n, const Expr *e, int depth) {
    enum { DEEPEST = 8 };
    switch (e->kind) {
    case EXPR_LIT:
    case EXPR_VAR:
    case EXPR_CONST: return shape_of_atom(n, NULL, e);
    case EXPR_CALL: break;
    default: return NULL;
    }
    if (e->a->kind == EXPR_BUILTIN) {
        const Expr *like = like_of_builtin(e);
        bool tensor = like && type_resolve(like->type)->tag == TY_TENSOR;
        return tensor ? shape_of_value(n, like, DEEPEST) : NULL;
    }
    if (e->a->kind != EXPR_OP || depth >= DEEPEST)
        return NULL;
    const Shape **args = mem_new_n(const Shape *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        args[i] = shape_of_value(n, e->args[i], depth + 1);
        args[i] = args[i] ? args[i] : shape_new(NULL);
    }
    return shape_of_call(n, e, args);
}

void shape_note(Instance *n, Var *v, const Expr *e) {
    const Shape *s = shape_of_value(n, e, 0);
    if (s)
        shape_know(&n->shapes, v, s);
}

void shape_know(Map *shapes, const Var *v, const Shape *s) {
    map_set(shapes, v, (void *)(uintptr_t)s);
}

bool shape_is_kept(const Expr *call, const Shape *const *args) {
    return takes_shape_of_last(call) && call->a->op != &op_expand_like && args[0] == args[1];
}

bool shape_keeps(Instance *n, const Expr *call) {
    const Shape *args[2];
    for (uint32_t i = 0; i < 2 && call->nargs == 2; i++)
        if (!(args[i] = shape_of_value(n, call->args[i], 0)))
            return false;
    return call->nargs == 2 && shape_is_kept(call, args);
}

Expr *shape_operand(const RuleUse *use, const Expr *call, const Shape *of) {
    if (!takes_shape_of_last(call))
        return NULL;
    if (of->like)
        return of->like;
    for (uint32_t i = 0; i < use->natoms; i++)
        if (use->atoms[i]->kind == EXPR_VAR && shape_of_atom(use->n, NULL, use->atoms[i]) == of)
            return use->atoms[i];
    return NULL;
}

typedef struct Reads {
    uint64_t walk; /* marks each variable that is read for more than its shape */
    Map reshaped;  /* Var -> itself: `reshape_like` reads its shape, which is no part of a group */
} Reads;

static void find_reads(void *ctx, Expr *e) {
    Reads *reads = ctx;
    for (; e->kind == EXPR_LET; e = e->body)
        find_reads(ctx, e->a);
    if (e->kind == EXPR_VAR)
        e->var->walk = reads->walk;
    if (!walk_enter(reads->walk, e))
        return;
    Expr *like = e->kind == EXPR_CALL && e->a->kind == EXPR_OP && takes_shape_of_last(e)
                     ? e->args[e->nargs - 1]
                     : NULL;
    if (!like || like->kind != EXPR_VAR) {
        expr_each_child(e, find_reads, ctx);
        return;
    }
    if (e->a->op == &op_reshape_like)
        map_set(&reads->reshaped, like->var, like->var);
    for (uint32_t i = 0; i + 1 < e->nargs; i++)
        find_reads(ctx, e->args[i]);
}

/* Whether a tensor of the type may have any sizes. */
static bool has_open_sizes(Type *t) {
    uint32_t rank;
    Type **dims;
    int64_t size;
    if (!type_get_rank(t, &rank, &dims))
        return true;
    for (uint32_t i = 0; i < rank; i++)
        if (type_get_int(dims[i], &size))
            return false;
    return true;
}

/* Whether w may stand for v in an operator, as far as the dtype and the number of axes go. */
static bool has_form_of(const Var *w, const Var *v) {
    DType t, u;
    uint32_t rank, other;
    Type **dims;
    if (type_resolve(w->type)->tag != TY_TENSOR || !type_get_dtype(v->type, &t) ||
        !type_get_dtype(w->type, &u) || t != u)
        return false;
    return !type_get_rank(v->type, &rank, &dims) ||
           (type_get_rank(w->type, &other, &dims) && rank == other);
}

/* Kept variables whose shapes broadcast together to one. */
typedef struct Sum {
    Var *operands[MOST_SUMMED];
    uint32_t n, visited;
} Sum;

/* Adds those of the shape; false where there are none, too many, or some of another form than v. */
static bool add_operands(Sum *sum, const Map *kept, const Shape *shape, const Var *v) {
    Var *one = map_find(kept, shape);
    if (++sum->visited > MOST_VISITED || (!one && !shape->nof))
        return false;
    for (uint32_t i = 0; !one && i < shape->nof; i++)
        if (shape->of[i] != &scalar && !add_operands(sum, kept, shape->of[i], v))
            return false;
    for (uint32_t i = 0; i < sum->n; i++)
        if (one == sum->operands[i])
            one = NULL;
    if (!one)
        return true;
    if (sum->n == MOST_SUMMED || !has_form_of(one, v))
        return false;
    sum->operands[sum->n++] = one;
    return true;
}

/* A sum of kept variables that has the shape of v and its type; NULL where there is none. */
static Expr *find_sum(const Map *kept, const Shape *shape, Var *v, Span span) {
    Build b = {span};
    Sum sum = {.n = 0};
    if (!has_open_sizes(v->type) || !add_operands(&sum, kept, shape, v) || !sum.n)
        return NULL;
    Expr *e = expr_var(sum.operands[0], span);
    for (uint32_t i = 1; i < sum.n; i++) {
        Expr **two = mem_new_n(Expr *, 2);
        two[0] = e;
        two[1] = expr_var(sum.operands[i], span);
        e = b_op(&b, &op_add, two, 2, v->type);
    }
    return e;
}

/* Note [Shapes of sums]. A value that only gives its shape, to which operands of unknown sizes were broadcast, is not kept
 * where these are: the way back reads the shape of their sum instead, which nobody computes, since a group of operators
 * takes no more than the shape of a `like`.
 *
 *   fn (x, y) { let v = x * y; sin(v * 2.0) … }      back:   collapse_sum_like(ct, v)   becomes   collapse_sum_like(ct, x + y)
 */
typedef struct Keeping {
    Instance *n;
    Map kept; /* Shape -> a variable that has it and is kept */
    Subst others;
    Span span;
} Keeping;

/* whole: v is kept in any case. sums: whether a sum may stand for it. */
static void keep_shape(Keeping *k, Var *v, bool whole, bool sums) {
    const Shape *shape = shape_of_atom(k->n, NULL, expr_var(v, k->span));
    Var *other = map_find(&k->kept, shape);
    Expr *sum = !other && sums ? find_sum(&k->kept, shape, v, k->span) : NULL;
    if (sum)
        map_set(&k->others.vars, v, sum);
    else if (!other)
        map_set(&k->kept, shape, v);
    else if (!whole && other != v)
        map_set(&k->others.vars, v, expr_var(other, k->span));
}

static bool is_broadcast(Instance *n, Var *v, Span span) {
    return shape_of_atom(n, NULL, expr_var(v, span))->nof > 0;
}

/* Puts what takes the place of variables into the list of those that are free. */
static void replace_vars(const Map *others, VarVec *vars) {
    Map seen = {0};
    size_t left = 0;
    for (size_t i = 0; i < vars->len; i++) {
        const Expr *other = map_find(others, vars->data[i]);
        Var *v = other ? other->var : vars->data[i];
        if (v && map_enter(&seen, v)) /* NULL is a sum, whose operands are in the list */
            vars->data[left++] = v;
    }
    vars->len = left;
}

Expr *shape_of_kept(Instance *n, Expr *code, VarVec *vars) {
    enum { WHOLE, SHAPES, BROADCASTS, ROUNDS };
    Keeping k = {.n = n, .span = code->span};
    Reads reads = {.walk = walk_new()};
    bool *whole = mem_new_n(bool, vars->len + 1);
    find_reads(&reads, code);
    for (size_t i = 0; i < vars->len; i++)
        whole[i] = vars->data[i]->walk == reads.walk;
    for (int round = WHOLE; round < ROUNDS; round++)
        for (size_t i = 0; i < vars->len; i++) {
            Var *v = vars->data[i];
            bool waits = round == SHAPES && is_broadcast(n, v, k.span);
            if (whole[i] == (round == WHOLE) && !waits && type_resolve(v->type)->tag == TY_TENSOR)
                keep_shape(&k, v, whole[i], round == BROADCASTS && !map_has(&reads.reshaped, v));
        }
    if (!k.others.vars.len)
        return code;
    replace_vars(&k.others.vars, vars);
    return expr_substitute(&k.others, code);
}

Type *shape_type(const Expr *call, const Shape *const *args, const Shape *s) {
    const Op *op = call->a->op;
    const Type *data = call->nargs ? type_resolve(call->args[0]->type) : NULL;
    const Type *like = s->like ? type_resolve(s->like->var->type) : NULL;
    bool same_dtype = (op->elementwise && !op->elementwise->compares) || takes_shape_of_last(call);
    if (!same_dtype || !data || data->tag != TY_TENSOR)
        return NULL;
    for (uint32_t i = 0; i < call->nargs && !(like && like->tag == TY_TENSOR); i++)
        like = args[i] == s ? type_resolve(call->args[i]->type) : like;
    return like && like->tag == TY_TENSOR ? type_tensor(like->tensor.shape, data->tensor.dtype)
                                          : NULL;
}

Expr *shape_kept(const Expr *call) {
    Expr *x = call->args[0];
    if (type_resolve(x->type)->tag == TY_TENSOR || type_resolve(call->type)->tag != TY_TENSOR)
        return x;
    x = expr_copy(x);
    x->type = call->type;
    return x;
}
