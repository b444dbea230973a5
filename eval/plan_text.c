/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/plan_text.h"

#include "eval/fuse_impl.h"
#include "tensor/buffer.h"

#include <string.h>

typedef struct Planner {
    Interp *in;
    Resolver *r;
    Map groups;  /* Expr, a `let` or a call -> its GroupSite */
    Map instrs;  /* call of an operator -> its instruction, plus 1 */
    Map done;    /* Expr -> what is shown for it */
    Map *memory; /* name -> the Global of a function of the module `memory` */
} Planner;

/* A group, or a single operator, where it runs. */
typedef struct Launch {
    const Group *group;
    Expr *const *leaves;
    size_t instr;
    const Template *template; /* NULL: its sizes are not known before it runs */
    bool is_exact;            /* no size is a parameter */
    uint64_t dying, given;    /* leaves that end here; that do if the caller gave them */
} Launch;

static Expr *show(Planner *p, Expr *e);

/* ---- the functions of `memory` ---------------------------------------------------------------- */

static Expr *call_memory(Planner *p, const char *function, Expr **args, uint32_t n, Type *type) {
    const Symbol *name = sym_intern(fmt_text("memory.%s", function));
    Global *g = map_find(p->memory, name);
    if (!g) {
        g = mem_new(Global);
        g->kind = GLOBAL_DEF;
        g->name = name;
        map_set(p->memory, name, g);
    }
    Expr **copy = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        copy[i] = args[i];
    return expr_call(expr_global(g, type, span_none()), copy, n, NULL, type, span_none());
}

static Expr *bytes_of(int64_t n) {
    return expr_int(n, n > INT32_MAX ? DT_I64 : DT_I32, span_none());
}

static Expr *operator_on(const Op *op, Expr *x, Expr *y) {
    Expr **args = mem_new_n(Expr *, 2);
    args[0] = x;
    args[1] = y;
    return expr_call_op(op, args, 2, NULL, type_scalar(DT_I32), span_none());
}

/* ---- groups as functions ---------------------------------------------------------------------- */

typedef struct Writer {
    const Launch *l;
    Var **params;    /* of a leaf, or NULL where the leaf stands in the body */
    uint32_t *reads; /* of a node, by nodes and as a result */
    Var **names;     /* of nodes that have one */
} Writer;

static bool is_literal(const Expr *e) { return e->kind == EXPR_LIT && !e->like; }

static Expr *write_node(Writer *w, uint32_t number);

static Expr *write_operand(Writer *w, int32_t at) {
    if (at >= 0)
        return w->names[at] ? expr_var(w->names[at], span_none()) : write_node(w, (uint32_t)at);
    Var *param = w->params[~at];
    return param ? expr_var(param, span_none()) : w->l->leaves[~at];
}

static Expr *write_node(Writer *w, uint32_t number) {
    const Node *node = &w->l->group->nodes[number];
    Expr **args = mem_new_n(Expr *, node->site.nargs + 1);
    for (uint32_t k = 0; k < node->site.nargs; k++)
        args[k] = write_operand(w, node->args[k]);
    Expr *tuple = node->site.spread ? expr_tuple(args, node->site.nargs, node->span) : NULL;
    return expr_call_op(node->site.op, tuple ? &tuple : args, tuple ? 1 : node->site.nargs,
                        node->site.attrs, node->site.type, node->span);
}

/* Nodes that are read once stand where they are read, the others have names. */
static Expr *write_body(Writer *w) {
    const Group *g = w->l->group;
    Links links = {0};
    for (uint32_t i = 0; i < g->nnodes; i++) {
        for (uint32_t k = 0; k < g->nodes[i].site.nargs; k++)
            if (g->nodes[i].args[k] >= 0)
                w->reads[g->nodes[i].args[k]]++;
    }
    for (uint32_t i = 0; i < g->nresults && g->nresults > 1; i++)
        w->reads[g->results[i]] = 2;
    for (uint32_t i = 0; i < g->nnodes; i++) {
        if (w->reads[i] < 2)
            continue;
        Expr *value = write_node(w, i), *link = expr_new(EXPR_LET, value->type, span_none());
        link->var = w->names[i] = var_new(sym_intern("t"), value->type, span_none());
        link->a = value;
        vec_push(&links, link);
    }
    Expr *results[GROUP_RESULTS];
    for (uint32_t i = 0; i < g->nresults; i++)
        results[i] = write_operand(w, g->results[i]);
    if (g->nresults == 1)
        return close_links(&links, results[0]);
    Expr **parts = mem_new_n(Expr *, g->nresults);
    memcpy(parts, results, sizeof *parts * g->nresults);
    return close_links(&links, expr_tuple(parts, g->nresults, span_none()));
}

static AstAttr number_attr(const char *name, int64_t n) {
    AstAttrValue *value = mem_new(AstAttrValue);
    value->kind = AST_ATTR_INT;
    value->i = n;
    return (AstAttr){sym_intern(name), value, span_none()};
}

/* fn (x, c, Primitive=1) { … }(x, c) */
static Expr *write_call(Planner *p, const Launch *l) {
    const Group *g = l->group;
    Writer w = {.l = l};
    w.params = mem_new_n(Var *, g->nleaves + 1);
    w.reads = mem_new_n(uint32_t, g->nnodes + 1);
    w.names = mem_new_n(Var *, g->nnodes + 1);
    VEC(Var *) params = {0};
    ExprVec args = {0};
    for (uint32_t i = 0; i < g->nleaves; i++) {
        Expr *leaf = l->leaves[i];
        if (is_literal(leaf))
            continue;
        const Symbol *name = leaf->kind == EXPR_VAR ? leaf->var->name : sym_intern("p");
        w.params[i] = var_new(name, type_of(leaf), leaf->span);
        vec_push(&params, w.params[i]);
        vec_push(&args, show(p, leaf));
    }
    Expr *body = write_body(&w);
    Expr *fn = expr_fn(params.data, (uint32_t)params.len, body, NULL, span_none());
    fn->fn->attrs = mem_new_n(AstAttr, 2);
    fn->fn->attrs[fn->fn->nattrs++] = number_attr("Primitive", 1);
    if (l->template && l->is_exact)
        fn->fn->attrs[fn->fn->nattrs++] = number_attr("launches", l->template->nsteps);
    return expr_call(fn, args.data, (uint32_t)args.len, NULL, body->type, span_none());
}

/* ---- where results go ------------------------------------------------------------------------- */

/* Sizes that are parameters, each standing for a number of its own. */
typedef struct Sizes {
    Type *dims[GROUP_OPERANDS];
    uint32_t n;
} Sizes;

/* A size, or a number for a parameter. */
static bool find_size(Sizes *sizes, Type *dim, int64_t *out) {
    if (type_get_int(dim, out))
        return true;
    TypeTag tag = type_resolve(dim)->tag;
    if (tag != TY_PARAM && tag != TY_VAR)
        return false;
    uint32_t i = 0;
    while (i < sizes->n && !type_equal(sizes->dims[i], dim))
        i++;
    if (i == GROUP_OPERANDS)
        return false;
    if (i == sizes->n)
        sizes->dims[sizes->n++] = dim;
    *out = 101 + 2 * i;
    return true;
}

/* A tensor of that type; NULL where a size is not known, not even as a parameter. */
static Tensor *blank_of(Type *t, Sizes *sizes) {
    uint32_t rank;
    Type **dims;
    DType dtype;
    int64_t shape[TENSOR_MAX_RANK];
    if (!t || type_resolve(t)->tag != TY_TENSOR || !type_get_dtype(t, &dtype) ||
        !type_get_rank(t, &rank, &dims) || rank > TENSOR_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < rank; i++)
        if (!find_size(sizes, dims[i], &shape[i]))
            return NULL;
    return tensor_blank(dtype, (int)rank, shape);
}

static const Template *find_template(Launch *l) {
    Tensor *in[GROUP_OPERANDS];
    Sizes sizes = {.n = 0};
    if (l->group->nleaves > GROUP_OPERANDS)
        return NULL;
    for (uint32_t i = 0; i < l->group->nleaves; i++)
        if (!(in[i] = blank_of(type_of(l->leaves[i]), &sizes)))
            return NULL;
    l->is_exact = !sizes.n;
    return group_template(l->group, in);
}

/* What ends at an instruction: the notes of eval/own.h. */
static void find_dying(Planner *p, Launch *l) {
    const Instr *i = &p->r->instrs.data[l->instr];
    const Site *site = i->op == CODE_OPERATOR ? &p->r->sites.data[i->c] : NULL;
    if (site && site->spread) /* the leaf is the tuple, which is never made */
        return;
    for (uint32_t k = 0; k < l->group->nleaves; k++) {
        uint32_t owner = site ? (site->owners ? site->owners->owner[k] : OWN_NOT)
                              : (uint32_t)i->x >> (8 * k) & 0xff;
        if (owner == OWN_ALWAYS)
            l->dying |= UINT64_C(1) << k;
        else if (owner >= OWN_IF)
            l->given |= UINT64_C(1) << k;
    }
}

/* Whether no other operand is the same variable. */
static bool is_alone(const Launch *l, uint32_t leaf) {
    const Expr *x = l->leaves[leaf];
    for (uint32_t i = 0; i < l->group->nleaves; i++)
        if (i != leaf && x->kind == EXPR_VAR && l->leaves[i]->kind == EXPR_VAR &&
            l->leaves[i]->var == x->var)
            return false;
    return x->kind == EXPR_VAR;
}

/* A size as a number, or as the size of an operand that has it; NULL: neither. */
static Expr *size_of(const Launch *l, Type *dim) {
    int64_t n;
    if (type_get_int(dim, &n))
        return bytes_of(n);
    for (uint32_t i = 0; i < l->group->nleaves; i++) {
        uint32_t rank;
        Type **dims, *t = type_of(l->leaves[i]);
        if (!t || type_resolve(t)->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims))
            continue;
        for (uint32_t a = 0; a < rank; a++)
            if (type_equal(dims[a], dim) && !type_has(dim, TY_ANY)) {
                Expr *size = expr_new(EXPR_DIM_OF, type_scalar(DT_I32), span_none());
                size->a = l->leaves[i];
                size->index = (int32_t)a;
                return size;
            }
    }
    return NULL;
}

/* The bytes of a result of that type, and its shape; NULL where they are found when running. */
static Expr *storage_of(const Launch *l, Type *t, Expr **shape) {
    uint32_t rank;
    Type **dims;
    DType dtype;
    if (!t || type_resolve(t)->tag != TY_TENSOR || !type_get_dtype(t, &dtype) ||
        !type_get_rank(t, &rank, &dims))
        return NULL;
    int64_t known = (int64_t)dtype_size(dtype);
    Expr *bytes = NULL, **sizes = mem_new_n(Expr *, rank + 1);
    for (uint32_t i = 0; i < rank; i++) {
        Expr *size = size_of(l, dims[i]);
        if (!size)
            return NULL;
        sizes[i] = size;
        if (size->kind == EXPR_LIT && !__builtin_mul_overflow(known, size->i, &known))
            continue;
        bytes = bytes ? operator_on(&op_multiply, bytes, size) : size;
    }
    *shape = expr_tuple(sizes, rank, span_none());
    return bytes ? operator_on(&op_multiply, bytes, bytes_of(known)) : bytes_of(known);
}

static Expr *place_on(Planner *p, const char *how, Expr *x) {
    Expr *args[1] = {x};
    return call_memory(p, how, args, 1, type_unit());
}

static Expr *place_new(Planner *p, const Launch *l, Type *type) {
    Expr *shape, *bytes = storage_of(l, type, &shape);
    if (!bytes)
        return call_memory(p, "alloc_as_needed", NULL, 0, type_unit());
    Expr *room[3] = {bytes, shape, bytes_of(BUFFER_ALIGNMENT)};
    Expr *storage = call_memory(p, "alloc_storage", room, 3, type_unit());
    Expr *args[3] = {storage, bytes_of(0), shape};
    return call_memory(p, "alloc_tensor", args, 3, type_unit());
}

/* The place of a result; *used: operands that results are written over, a bit each. */
static Expr *place_of(Planner *p, const Launch *l, Type *type, uint64_t *used) {
    const Template *t = l->template;
    if (t && t->views && t->nout == 1 && l->dying >> t->views[0].slot & 1)
        return place_on(p, "view", l->leaves[t->views[0].slot]);
    for (int round = 0; t && round < 2; round++) {
        uint64_t may = t->in_place & (round ? l->given : l->dying) & ~*used;
        for (uint32_t i = 0; may >> i; i++)
            if (may >> i & 1 && is_alone(l, i)) {
                *used |= UINT64_C(1) << i;
                return place_on(p, round ? "reuse_if_given" : "reuse", l->leaves[i]);
            }
    }
    return place_new(p, l, type);
}

/* ---- launches --------------------------------------------------------------------------------- */

static void bind_to(Links *links, Var *v, Expr *value) {
    Expr *link = expr_new(EXPR_LET, value->type, span_none());
    link->var = v;
    link->a = value;
    vec_push(links, link);
}

static void write_kills(Planner *p, const Launch *l, uint64_t used, Links *links) {
    for (uint32_t i = 0; i < l->group->nleaves; i++) {
        bool dies = l->dying >> i & 1, may = l->given >> i & 1;
        const Template *t = l->template;
        bool seen = t && t->views && t->nout == 1 && t->views[0].slot == i;
        if ((dies || may) && !(used >> i & 1) && !seen && l->leaves[i]->kind == EXPR_VAR)
            bind_to(links, NULL, place_on(p, dies ? "kill" : "kill_if_given", l->leaves[i]));
    }
}

/* Adds what one launch does; its results are bound to vars. */
static void write_launch(Planner *p, Launch *l, Var *const *vars, Links *links) {
    const Group *g = l->group;
    uint64_t used = 0;
    find_dying(p, l);
    l->template = find_template(l);
    Expr *call = write_call(p, l);
    Expr **places = mem_new_n(Expr *, g->nresults);
    for (uint32_t i = 0; i < g->nresults; i++)
        places[i] = place_of(p, l, g->nodes[g->results[i]].site.type, &used);
    if (l->template && l->is_exact && l->template->scratch) {
        Expr *bytes = bytes_of(l->template->scratch);
        bind_to(links, NULL, call_memory(p, "scratch", &bytes, 1, type_unit()));
    }
    Expr *args[2] = {call, expr_tuple(places, g->nresults, span_none())};
    Expr *done = call_memory(p, "invoke_mut", args, 2, call->type);
    if (g->nresults == 1) {
        bind_to(links, vars[0], done);
    } else {
        Var *all = var_new(sym_intern("r"), call->type, span_none());
        bind_to(links, all, done);
        for (uint32_t i = 0; i < g->nresults; i++)
            bind_to(links, vars[i],
                    expr_proj(expr_var(all, span_none()), i, vars[i]->type, span_none()));
    }
    write_kills(p, l, used, links);
}

/* A group of one operator; NULL where the plan of the call is not made of sizes alone. */
static Group *single_group(Expr *call) {
    if (!is_operator(call) || type_resolve(call->type)->tag != TY_TENSOR)
        return NULL;
    Group *g = mem_alloc(sizeof *g + sizeof(Node));
    g->nleaves = call->nargs;
    g->nnodes = g->nresults = 1;
    g->nodes[0] = (Node){.site = {.op = call->a->op,
                                  .attrs = call->attrs ? call->attrs : attrs_defaults(call->a->op),
                                  .type = call->type,
                                  .nargs = call->nargs,
                                  .call = call},
                         .span = call->span};
    for (uint32_t i = 0; i < call->nargs; i++)
        g->nodes[0].args[i] = ~(int32_t)i;
    return g;
}

/* Operands; what a name stands for where no group took its value in after all. */
static Expr *const *operands_of(Planner *p, Expr *const *leaves, uint32_t n) {
    Expr **all = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Expr *value = leaves[i]->kind == EXPR_VAR ? fuse_value_of(p->r, leaves[i]->var) : NULL;
        all[i] = value ? value : leaves[i];
    }
    return all;
}

/* The launch that a call is. False: it is none, or one of scalars. */
static bool find_launch(Planner *p, Expr *e, Launch *l) {
    const GroupSite *site = map_find(&p->groups, e);
    uintptr_t instr = (uintptr_t)map_find(&p->instrs, e);
    *l = (Launch){0};
    if (e->kind != EXPR_CALL)
        return false;
    if (site) {
        *l = (Launch){.group = site->group,
                      .leaves = operands_of(p, site->row.leaves.data, site->group->nleaves),
                      .instr = site->instr};
        return true;
    }
    uint32_t rank;
    Type **dims;
    bool is_scalar = !e->type || (type_get_rank(e->type, &rank, &dims) && rank == 0);
    l->group = instr && !is_scalar ? single_group(e) : NULL;
    l->leaves = operands_of(p, e->args, e->nargs);
    l->instr = (size_t)instr - 1;
    return l->group != NULL;
}

/* ---- the program ------------------------------------------------------------------------------ */

static Expr *show_block(Planner *p, Expr *e) {
    Links links = {0};
    Launch l;
    while (e->kind == EXPR_LET) {
        const GroupSite *row = map_find(&p->groups, e);
        if (row) {
            Var *vars[GROUP_RESULTS];
            for (size_t i = 0; i < row->row.accesses.len; i++)
                vec_push(&links, expr_copy(row->row.accesses.data[i]));
            for (uint32_t i = 0; i < row->row.nresults; i++)
                vars[i] = row->row.results[i]->var;
            l = (Launch){.group = row->group, .leaves = row->row.leaves.data, .instr = row->instr};
            write_launch(p, &l, vars, &links);
            e = row->row.next;
            continue;
        }
        bool taken = e->var && fuse_value_of(p->r, e->var);
        if (!taken && e->var && find_launch(p, e->a, &l)) {
            write_launch(p, &l, &e->var, &links);
        } else if (!taken) {
            Expr *link = expr_copy(e);
            link->a = show(p, e->a);
            vec_push(&links, link);
        }
        e = e->body;
    }
    if (e->kind == EXPR_VAR && fuse_value_of(p->r, e->var))
        e = fuse_value_of(p->r, e->var);
    if (!find_launch(p, e, &l))
        return close_links(&links, show(p, e));
    Var *result = var_new(sym_intern("y"), e->type, span_none());
    write_launch(p, &l, &result, &links);
    return close_links(&links, expr_var(result, span_none()));
}

static Expr *show_child(void *ctx, Expr *child) { return show(ctx, child); }

static Expr *show_function(Planner *outer, Expr *e);

static Expr *show(Planner *p, Expr *e) {
    Launch l;
    Expr *known = map_find(&p->done, e);
    if (known)
        return known;
    if (e->kind == EXPR_VAR && fuse_value_of(p->r, e->var))
        return show(p, fuse_value_of(p->r, e->var));
    if (mem_stack_left() < 64 * 1024)
        return e;
    Expr *made;
    if (e->kind == EXPR_LET || find_launch(p, e, &l))
        made = show_block(p, e);
    else if (e->kind == EXPR_FN)
        made = show_function(p, e);
    else
        made = expr_map_children(e, show_child, p);
    map_set(&p->done, e, made);
    return made;
}

static void note_instrs(Planner *p) {
    Resolver *r = p->r;
    for (size_t i = 0; i < r->groups.len; i++)
        map_set(&p->groups, r->groups.data[i]->at, r->groups.data[i]);
    for (size_t at = 0; at < r->instrs.len; at++) {
        Opcode op = (Opcode)r->instrs.data[at].op;
        bool computes = op == CODE_OPERATOR || (op >= CODE_ADD && op <= CODE_GE) || op == CODE_NEG;
        if (computes)
            map_set(&p->instrs, r->origin.data[at], (void *)(uintptr_t)(at + 1));
    }
}

/* The function or item as its own code: what it captures is in scope. */
static Expr *show_code(Interp *in, Code *code, Expr *e, Map *memory) {
    Planner p = {.in = in, .memory = memory};
    p.r = resolve_code(in, code, e);
    note_instrs(&p);
    if (code->item)
        return show_block(&p, e);
    return expr_fn_with_body(e, show_block(&p, e->fn->body));
}

static Expr *show_function(Planner *outer, Expr *e) {
    return show_code(outer->in, code_of_fn(outer->in, e), e, outer->memory);
}

Expr *plan_text(Interp *in, Expr *e) {
    Map memory = {0};
    bool verifies = in->options.verify_types; /* code that is verified has no groups */
    in->options.verify_types = false;
    Code *code = e->kind == EXPR_FN ? code_of_fn(in, e) : code_of_expr(in, e);
    Expr *text = show_code(in, code, e, &memory);
    in->options.verify_types = verifies;
    return text;
}
