/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: of operators, constructors, transformations, functions.
 *
 *   Γ ⊢ f : (T1, …, Tn) -ε-> U    Γ ⊢ ei : Si    Si flows to Ti
 *   ------------------------------------------------------------
 *   Γ ⊢ f(e1, …, en) : U ! ε
 */
#include <string.h>

#include "types/infer/state.h"

static bool is_error(Type *t) { return type_resolve(t)->tag == TY_ERROR; }

/* The name of a module's member has at most so many parts. */
enum { MAX_QUALIFIERS = 8 };

/* The name that the callee is, if it is one. `nn.dense` was read as a field of `nn`. */
bool callee_name(Infer *I, const Ast *e, Name *out) {
    if (e->kind == AST_NAME) {
        *out = e->name;
        return true;
    }
    int fields = 0;
    for (const Ast *f = e; f->kind == AST_FIELD; f = f->a) {
        if (++fields > MAX_QUALIFIERS)
            return false;
    }
    if (e->kind != AST_FIELD || !callee_name(I, e->a, out) || out->sigil == SIGIL_LOCAL)
        return false;
    Name first = *out;
    if (!strchr(first.sym->text, '.') && map_has(&I->locals, first.sym) &&
        out->sigil == SIGIL_NONE && !((Local *)map_find(&I->locals, first.sym))->sigil)
        return false;
    out->sym = sym_qualify(out->sym, e->field);
    out->span = e->span;
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* How many arguments a call of the operator may leave out. */
static uint32_t optional_args(const Op *op) {
    uint32_t n = 0;
    for (int i = 0; i < op->nargs; i++)
        n += op_arg(op, i).optional;
    return n;
}

/* Completes the arguments of a call: arange(n) is arange(0, n, 1). Given arguments go to the required parameters
 * first, then to the optional ones from the left. */
static Expr **fill_args(Infer *I, const Op *op, Expr **args, uint32_t *n, Span span) {
    uint32_t nargs = (uint32_t)op->nargs, spare = *n + optional_args(op) - nargs;
    Expr **all = mem_new_n(Expr *, nargs + 1), **given = args;
    for (uint32_t i = 0; i < nargs; i++) {
        OpArg arg = op_arg(op, (int)i);
        bool left_out = arg.optional && spare == 0;
        spare -= arg.optional && spare > 0;
        all[i] = left_out ? infer_int(I, arg.n, span) : *given++;
    }
    *n = nargs;
    return all;
}

static void op_arity(Infer *I, const Op *op, uint32_t n, Expr *const *args, Span span) {
    uint32_t least = (uint32_t)op->nargs - optional_args(op);
    const char *from = least < (uint32_t)op->nargs ? fmt_text("%u to ", least) : "";
    Diag *d = infer_error(I, DIAG_R0203, span, "`%s` takes %s%u argument%s, and %u %s given",
                          op->name, from, (uint32_t)op->nargs, op->nargs == 1 ? "" : "s", n,
                          n == 1 ? "is" : "are");
    if (!d)
        return;
    diag_add_fact(d, "its arguments are (%s)", op->args ? op->args : "");
    if (n > (uint32_t)op->nargs && op->nattrs)
        diag_add_fact(d, "attributes are given by name, as in `%s=...`", op->attrs[0].name);
    if (n > (uint32_t)op->nargs && op->nargs == 1 && op_arg(op, 0).tuple)
        diag_add_fact(d, "the arguments of `%s` are one tuple: `%s((a, b))`", op->name, op->name);
    if (n > (uint32_t)op->nargs)
        diag_add_label(d, args[op->nargs]->span, "one too many");
}

/* A call of so many arguments keeps their types on the stack while it is related. */
enum { FEW_ARGUMENTS = 8 };

/* topk(x, ret_type="values") is the first of both results, which has a derivative. */
static Expr *first_of_all(Infer *I, const Op *op, Expr **args, uint32_t n, const Attrs *attrs,
                          Span span, Span op_span) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs);
    memcpy(values, attrs->values, sizeof *values * (size_t)op->nattrs);
    values[op_attr_index(op, op->first_of.attr)].text = op->first_of.all;
    Attrs *all = mem_new(Attrs);
    all->op = op;
    all->values = values;
    Expr *e = infer_op_call(I, op, NULL, args, n, all, span, op_span);
    if (is_error(e->type))
        return e;
    Type *t = type_resolve(e->type);
    if (t->tag == TY_TUPLE)
        return expr_proj(e, 0, t->args[0], span);
    Type *result = solver_var(I->s, KIND_TYPE);
    Expr *first = expr_proj(e, 0, result, span);
    solver_post_proj(I->s, e->type, 0, result, span)->expr = first;
    return solver_run(I->s) ? first : infer_error_expr(span);
}

Expr *infer_op_call(Infer *I, const Op *op, Ast *call, Expr **args, uint32_t n, const Attrs *attrs,
                    Span span, Span op_span) {
    if (op->first_of.attr && strcmp(attrs_text(attrs, op->first_of.attr), op->first_of.value) == 0)
        return first_of_all(I, op, args, n, attrs, span, op_span);
    uint32_t least = (uint32_t)op->nargs - optional_args(op);
    if (n > (uint32_t)op->nargs || n < least) {
        op_arity(I, op, n, args, span);
        return infer_error_expr(span);
    }
    if (n < (uint32_t)op->nargs)
        args = fill_args(I, op, args, &n, span);
    Type *few[FEW_ARGUMENTS], **types = n < FEW_ARGUMENTS ? few : mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = args[i]->type;
        if (is_error(types[i]))
            return infer_error_expr(span);
    }
    bool related = solver_relate_scalars(I->s, op, types, n, &types[n]);
    if (!related)
        types[n] = solver_var(I->s, KIND_TYPE);
    Expr *e = expr_call_op(op, args, n, attrs, types[n], span);
    /* Outside of functions the dtype of a literal is always known in the end. */
    for (uint32_t i = 0; (I->fn || !related) && n > 1 && i < n; i++)
        if (args[i]->kind == EXPR_LIT || args[i]->kind == EXPR_CONST)
            map_set(&I->beside, args[i], e);
    if (!related)
        infer_post(I, op->relation, types, n + 1, infer_index_attrs(e),
                   op_span.source ? op_span : span, e, args, n)
            ->op = op;
    (void)call;
    if (!solver_run(I->s))
        return infer_error_expr(span);
    if (attrs_have_sizes(attrs))
        infer_note(I, PENDING_SIZES, e);
    if (op->foreign)
        solver_effect_include(I->s, type_allocates(), I->effect);
    return e;
}

Expr *infer_known_op(Infer *I, const Op *op, Expr **args, uint32_t n, Span span, Span op_span) {
    return infer_op_call(I, op, NULL, args, n, attrs_defaults(op), span, op_span);
}

static Expr **infer_args(Infer *I, const AstVec *args) {
    Expr **out = mem_new_n(Expr *, args->len + 1);
    for (size_t i = 0; i < args->len; i++)
        out[i] = infer_expr(I, args->data[i], NULL);
    return out;
}

Expr *infer_named_op(Infer *I, const Op *op, Ast *e) {
    Span span = e->span;
    if (e->attrs.len && !I->module->versioned)
        e = infer_place_operands(I, op, e);
    if (!e)
        return infer_error_expr(span);
    const Attrs *attrs = infer_attrs(I, op, &e->attrs, e->span);
    Expr **args = infer_args(I, &e->args);
    if (!attrs && op->nattrs + e->attrs.len)
        return infer_error_expr(e->span);
    Span op_span = e->a->span;
    uint32_t n = (uint32_t)e->args.len;
    op = infer_accept(I, op, args, n, &attrs);
    Type *sized = infer_written_sizes(op, e, args);
    Expr *call = infer_op_call(I, op, e, args, n, attrs, e->span, op_span);
    if (sized && !is_error(call->type))
        call->type = sized;
    return call;
}

/* ---- constructors ---------------------------------------------------------------------------- */

static TypePlace ctor_place(const Ctor *ctor, uint32_t i) {
    TypePlace place = {.of = ctor->name->text, .index = i + 1};
    place.kind = ctor->field_names ? PLACE_FIELD : ctor->nfields == 1 ? PLACE_ONLY : PLACE_ARGUMENT;
    place.name = ctor->field_names ? ctor->field_names[i]->text : NULL;
    return place;
}

Expr *infer_ctor_call(Infer *I, const Ctor *ctor, Expr **args, uint32_t n, Ast *const *sources,
                      Type **type_args, uint32_t ntype_args, Span span) {
    if (n != ctor->nfields) {
        Diag *d = infer_error(I, DIAG_R0203, span, "`%s` takes %u argument%s, and %u %s given",
                              ctor->name->text, ctor->nfields, ctor->nfields == 1 ? "" : "s", n,
                              n == 1 ? "is" : "are");
        if (d && ctor->span.source && !(ctor->span.source->flags & SOURCE_INTERNAL))
            diag_add_label_of(d, DIAG_ROLE_DECLARATION, ctor->span, "declared here");
        return infer_error_expr(span);
    }
    Type **given = mem_new_n(Type *, ctor->decl->nparams + 1);
    if (ntype_args > ctor->decl->nparams) {
        infer_error(I, DIAG_R0108, span, "type `%s` has %u parameter%s, and %u arguments are given",
                    ctor->decl->name->text, ctor->decl->nparams,
                    ctor->decl->nparams == 1 ? "" : "s", ntype_args);
        return infer_error_expr(span);
    }
    for (uint32_t i = 0; i < ntype_args; i++)
        given[i] = type_args[i];
    CtorInstance c = ctor_instantiate(I, ctor, given, OPEN_FLEXIBLE, NULL);
    Expr **flowed = mem_new_n(Expr *, n + 1);
    size_t *flows = mem_new_n(size_t, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        Expr *arg = sources ? infer_expr(I, sources[i], c.fields[i]) : args[i];
        flowed[i] = infer_flow(I, arg, c.fields[i], ctor_place(ctor, i), span_none());
        flows[i] = infer_last_flow(I, flowed[i]);
    }
    Expr *callee = expr_new(EXPR_CTOR, c.data, span);
    callee->ctor = ctor_of_values(ctor);
    if (n == 0)
        return callee;
    callee->type = type_fn(c.fields, n, c.data, type_pure());
    Expr *call = expr_call(callee, flowed, n, NULL, c.data, span);
    call->own_cells = true;
    infer_tie_flows(I, call, flows);
    return call;
}

/* ---- functions ------------------------------------------------------------------------------- */

static TypePlace arg_place(const Expr *callee, const char *who, uint32_t i, uint32_t n) {
    TypePlace place = {.kind = n == 1 ? PLACE_ONLY : PLACE_ARGUMENT, .of = who, .index = i + 1};
    const AstFn *fn = NULL;
    if (callee->kind == EXPR_GLOBAL && callee->global->item)
        fn = callee->global->item->fn;
    if (fn && i < fn->params.len) {
        place.kind = PLACE_ARGUMENT;
        place.name = fn->params.data[i].name.sym->text;
    }
    return place;
}

static const char *callee_words(const Expr *callee) {
    if (callee->kind == EXPR_GLOBAL)
        return infer_name_shown(callee->global);
    if (callee->kind == EXPR_VAR)
        return callee->var->name->text;
    if (callee->kind == EXPR_OP)
        return callee->op->name;
    if (callee->kind == EXPR_CTOR)
        return callee->ctor->name->text;
    return NULL;
}

static Expr *fn_arity(Infer *I, const Expr *callee, uint32_t wanted, uint32_t n, Span span) {
    const char *who = callee_words(callee);
    Diag *d = infer_error(I, DIAG_R0203, span, "%s%s%s takes %u argument%s, and %u %s given",
                          who ? "`" : "", who ? who : "this function", who ? "`" : "", wanted,
                          wanted == 1 ? "" : "s", n, n == 1 ? "is" : "are");
    if (d) {
        if (callee->kind == EXPR_GLOBAL && callee->global->span.source &&
            !(callee->global->span.source->flags & SOURCE_INTERNAL))
            diag_add_label(d, callee->global->span, "`%s` is defined here", who);
        else
            diag_add_fact(d, "its type is %s", type_text(callee->type));
        const char *habit = callee->kind == EXPR_GLOBAL ? infer_arity_habit(callee->global, n)
                                                        : NULL;
        if (habit)
            diag_add_help(d, "%s", habit);
    }
    return infer_error_expr(span);
}

/* Refuses an integer for a parameter of a derivative that must be a float: grad(fn (n) { n * n })(3i32). */
static bool refuse_integer(Infer *I, const Expr *callee, uint32_t i, const Expr *arg, Type *want) {
    Type *from = type_resolve(arg->type), *to = type_resolve(want);
    if (from->tag != TY_TENSOR || to->tag != TY_TENSOR ||
        (type_dtype_set(from->tensor.dtype) & DTS_FLOAT) ||
        (type_dtype_set(to->tensor.dtype) & ~DTS_FLOAT))
        return false;
    const Fn *f = callee->a->kind == EXPR_FN && i < callee->a->fn->nparams ? callee->a->fn : NULL;
    Diag *d = f ? infer_error(I, DIAG_R0401, arg->span,
                              "cannot differentiate with respect to `%s`, it is %s",
                              f->params[i]->name->text, type_text(from))
                : infer_error(I, DIAG_R0401, arg->span,
                              "cannot differentiate with respect to this argument, it is %s",
                              type_text(from));
    if (d) {
        diag_set_label(d, "%s", type_text(from));
        if (f)
            diag_add_label(d, f->params[i]->span, "the parameter");
        diag_add_help(d, "`(float32) x` makes a float of an integer `x`");
        infer_add_classes(d, want, arg->type);
    }
    return true;
}

/* Whether a size entered the call by this argument. */
static bool is_from(const Type *size, const Expr *arg) {
    const Origin *o = size->origin;
    return o && o->kind == ORIGIN_ARGUMENT && !o->of && o->span.source == arg->span.source &&
           o->span.begin == arg->span.begin && o->span.end == arg->span.end;
}

/* "; `layer` needs last size 128 or 1 here", or "". */
static const char *asked_of(Infer *I, const Diag *d, const Expr *arg, const char *who) {
    const SizeClash *clash = solver_clash(I->s);
    uint32_t rank, axis = 0;
    Type **dims;
    if (clash->diag != d || !who || !type_get_rank(arg->type, &rank, &dims))
        return "";
    Type *own = is_from(clash->a, arg) ? clash->a : clash->b;
    Type *other = own == clash->a ? clash->b : clash->a;
    if (!is_from(own, arg) || is_from(other, arg))
        return "";
    while (axis < rank && type_resolve(dims[axis])->origin != own->origin)
        axis++;
    if (axis == rank)
        return "";
    bool last = axis + 1 == rank && (rank > 1 || clash->or_one);
    return fmt_text("; `%s` needs %s %s%s%s here", who, last ? "last size" : "size",
                    type_text(other), clash->or_one ? " or 1" : "",
                    axis + 1 == rank ? "" : fmt_text(" on axis %u", axis));
}

/* Where a condition of the called definition fails, moves the message to the argument that breaks it. */
static void point_at_argument(Infer *I, size_t first, const Expr *callee, Span call,
                              const Expr *arg) {
    if (I->diags->list.len <= first || !arg->span.source)
        return;
    Diag *d = I->diags->list.data[first];
    Span at = d->primary.span;
    bool whole = at.source == call.source && at.begin == call.begin && at.end == call.end;
    bool named = at.source == callee->span.source && at.begin == callee->span.begin &&
                 at.end == callee->span.end;
    if (!whole && !named)
        return;
    d->primary.span = arg->span;
    diag_set_label(d, "%s%s", type_text(arg->type), asked_of(I, d, arg, callee_words(callee)));
    size_t kept = 0;
    for (size_t i = 0; i < d->labels.len; i++) {
        Span s = d->labels.data[i].span;
        bool inside = s.source == arg->span.source && arg->span.begin <= s.begin &&
                      s.end <= arg->span.end;
        if (!inside)
            d->labels.data[kept++] = d->labels.data[i];
    }
    d->labels.len = kept;
}

/* Note [Polymorphic recursion]. Within its own body a definition has one type, unless its signature is
 * written in full. Whether the callee is still being inferred, so that this may be why it does not fit. */
static bool is_open_recursion(const Expr *callee) {
    if (callee->kind != EXPR_GLOBAL || callee->global->kind != GLOBAL_DEF)
        return false;
    const Scheme *scheme = callee->global->scheme;
    return scheme && !scheme->nparams && (scheme->type->flags & (TYPE_HAS_VARS | TYPE_HAS_PARAMS));
}

static void explain_recursion(Infer *I, const Expr *callee) {
    const Mismatch *m = solver_mismatch(I->s);
    if ((m->kind != MISMATCH_OCCURS && m->kind != MISMATCH_RIGID) || !is_open_recursion(callee))
        return;
    if (m->a && m->a->kind != KIND_TYPE)
        return;
    diag_add_fact(vec_last(&I->diags->list),
                  "inside its own definition `%s` has one type, unless all its parameters and its "
                  "result are annotated",
                  callee->global->name->text);
}

static bool calls_itself(const Expr *callee) {
    for (size_t i = 0; i < callee->global->uses.len; i++)
        if (callee->global->uses.data[i] == callee->global)
            return true;
    return is_open_recursion(callee);
}

/* The axis at which an operator within the called definition met another size than that of its argument; -1 for none. */
static int clashing_axis(Infer *I, const Diag *d, Type **dims, uint32_t rank) {
    const Mismatch *m = solver_mismatch(I->s);
    if (d->code != DIAG_R0314 || m->kind != MISMATCH_DIM || m->axis < 0 || m->axis >= (int)rank)
        return -1;
    Type *size = dims[m->axis];
    bool own = dim_compare(size, m->a) == DIM_EQUAL || dim_compare(size, m->b) == DIM_EQUAL;
    return own ? m->axis : -1;
}

/* The type of a parameter is left out, and the definition calls itself with a value of another size: names the
 * annotation that lets it grow. asked: the parameter's type. */
static void explain_growth(Infer *I, size_t said, const Expr *callee, uint32_t i, Type *asked,
                           const Expr *arg) {
    AstFn *fn = callee->kind == EXPR_GLOBAL && callee->global->item ? callee->global->item->fn
                                                                    : NULL;
    uint32_t rank, n;
    Type **dims, **own;
    if (I->diags->list.len <= said || !fn || i >= fn->params.len || fn->params.data[i].type ||
        !calls_itself(callee) || !type_get_rank(arg->type, &rank, &dims) || !rank)
        return;
    Diag *d = I->diags->list.data[said];
    int axis = clashing_axis(I, d, dims, rank);
    if (axis < 0 && (d->code != DIAG_R0217 || !is_open_recursion(callee)))
        return;
    bool both = type_get_rank(asked, &n, &own) && n == rank;
    Type **sizes = mem_new_n(Type *, rank);
    for (uint32_t k = 0; k < rank; k++) {
        int64_t size;
        bool stays = type_get_int(dims[k], &size) &&
                     (axis >= 0 ? axis != (int)k
                                : both && dim_compare(own[k], dims[k]) == DIM_EQUAL);
        sizes[k] = stays ? dims[k] : type_any(KIND_DIM, NULL);
    }
    Type *t = type_tensor(type_shape(sizes, rank), type_resolve(arg->type)->tensor.dtype);
    const char *name = fn->params.data[i].name.sym->text;
    infer_note_widening(I, &fn->params.data[i], t);
    diag_add_help(d, "`%s` calls itself: where `%s` changes its size, write `%s: %s`",
                  callee->global->name->text, name, name, type_text(t));
}

/* Where the arguments of a call begin on the next line, adds the `;` that would end the line before them. */
static void add_line_end(Diag *d, Span callee) {
    const char *text = callee.source ? callee.source->text : "", *p = text + callee.end;
    if (!callee.source)
        return;
    size_t blanks = strspn(p, " \t\r\n");
    if (p[blanks] == '(' && memchr(p, '\n', blanks))
        diag_add_fix(d, (Span){callee.source, callee.end, callee.end}, ";", NULL,
                     "a `;` after it keeps the bracket of the next line apart");
}

/* Applies a callee of any type to args, or where these are NULL to their sources. sizes: what named_give takes. */
static Expr *apply(Infer *I, Expr *callee, Type *const *sizes, Expr **args, Ast *const *sources,
                   uint32_t n, Span span) {
    Type *t = type_resolve(callee->type);
    Expr **out = mem_new_n(Expr *, n + 1);
    if (t->tag == TY_FN && t->nargs == n) {
        bool poly = callee->kind == EXPR_GLOBAL ||
                    (callee->kind == EXPR_VAR && callee->var->scheme);
        if (!poly)
            t = type_resolve(solver_open_unknowns(I->s, t));
        t = type_resolve(solver_open_call(I->s, t));
        const char *who = callee_words(callee);
        EarlyUse early = solver_find_early(I->s, callee->span);
        bool recursive = !poly || is_open_recursion(
                                      callee); /* the callee has one type for all its calls here */
        Expr *call = expr_call(callee, out, n, NULL, t->fn.result, span);
        call->args = out; /* the elements are filled in below */
        size_t *flows = mem_new_n(size_t, n + 1);
        Growing g;
        bool grows = poly && growing_find(t, &g);
        for (uint32_t i = 0; i < n; i++) {
            /* The unknown sizes of a parameter are those of its value, and an argument of a call within has its own. */
            bool own = recursive && (type_resolve(t->args[i])->flags & TYPE_HAS_ANY);
            Expr *arg = sources ? infer_expr(I, sources[i], own ? NULL : t->args[i]) : args[i];
            if (callee->kind == EXPR_GRAD && refuse_integer(I, callee, i, arg, t->args[i]))
                return infer_error_expr(span);
            size_t said = I->diags->list.len;
            if (poly && type_has_vars(t->args[i]))
                arg->type = origin_enter(arg->type, arg->span, span);
            solver_set_recursive(I->s, recursive);
            TypePlace place = arg_place(callee, who, i, n);
            Type *want = grows ? growing_want(I, &g, i, arg, t->args[i], place) : t->args[i];
            out[i] = infer_flow(I, arg, want, place, span_none());
            solver_set_recursive(I->s, false);
            if (I->diags->list.len == said)
                solver_check_use(I->s, early, i + 1 == n);
            point_at_argument(I, said, callee, span, arg);
            if (I->diags->list.len > said)
                explain_recursion(I, callee);
            explain_growth(I, said, callee, i, t->args[i], arg);
            flows[i] = infer_last_flow(I, out[i]);
            t = named_give(I, t, sizes, i, out[i]);
        }
        Type *result = t->fn.result;
        g.source = grows && sources ? sources[g.function] : NULL;
        if (grows && !g.stopped) {
            size_t said = I->diags->list.len;
            uint32_t i = g.value;
            out[i] = growing_close(I, &g, out[i], out[g.function], arg_place(callee, who, i, n),
                                   &result);
            flows[i] = infer_last_flow(I, out[i]);
            if (I->diags->list.len == said)
                solver_check_use(I->s, early, true);
            point_at_argument(I, said, callee, span, out[i]);
        }
        infer_tie_flows(I, call, flows);
        solver_effect_include(I->s, t->fn.effect, I->effect);
        if (sizes)
            solver_run(I->s);
        call->type = solver_open_each(result);
        infer_note_file(I, call, call->type);
        return call;
    }
    for (uint32_t i = 0; i < n; i++)
        out[i] = sources ? infer_expr(I, sources[i], NULL) : args[i];
    t = type_resolve(callee->type);
    if (t->tag == TY_ERROR)
        return infer_error_expr(span);
    if (t->tag == TY_FN && t->nargs != n)
        return fn_arity(I, callee, t->nargs, n, span);
    if (t->tag == TY_FN)
        return apply(I, callee, sizes, out, NULL, n, span);
    if (t->tag != TY_VAR) {
        Diag *d = infer_error(I, DIAG_R0202, callee->span, "only functions can be called, found %s",
                              type_text(t));
        if (d) {
            diag_set_label(d, "%s", type_text(t));
            add_line_end(d, callee->span);
        }
        return infer_error_expr(span);
    }
    Type **params = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = solver_make_parameter(I->s, t, out[i]->type);
    Type *fn = type_fn(params, n, solver_var(I->s, KIND_TYPE), solver_var(I->s, KIND_EFFECT));
    solver_set_place(I->s, span, place_of_words("this call"));
    if (!solver_unify(I->s, t, fn)) {
        TypeNamer namer = {0};
        Diag *d = infer_error(I, mismatch_code(solver_mismatch(I->s), DIAG_R0202), span,
                              "this call gives its callee a type that contains itself");
        if (d)
            diag_add_mismatch(I, d, &namer);
        return infer_error_expr(span);
    }
    solver_effect_include(I->s, fn->fn.effect, I->effect);
    if (!solver_run(I->s))
        return infer_error_expr(span);
    return expr_call(callee, out, n, NULL, fn->fn.result, span);
}

Expr *infer_apply(Infer *I, Expr *callee, Expr **args, uint32_t n, Span span, const char *who) {
    (void)who;
    return apply(I, callee, NULL, args, NULL, n, span);
}

/* ---- grad, vjp, jvp -------------------------------------------------------------------------- */

static bool find_grad(const Global *g, GradKind *mode) {
    return g->kind == GLOBAL_BUILTIN && g->symbol && grad_kind_find(g->symbol, mode);
}

static Expr *call_grad(Infer *I, Ast *e, Type *instance, GradKind mode) {
    Type *t = type_resolve(instance);
    Expr *g = expr_new(EXPR_GRAD, t->fn.result, e->span);
    g->mode = mode;
    if (mode == GRAD_VMAP)
        g->zero_type = g->type;
    g->a = infer_flow(I, infer_expr(I, e->args.data[0], NULL), t->args[0],
                      (TypePlace){.kind = PLACE_ONLY, .of = grad_kind_name(mode)}, span_none());
    if (g->a->kind == EXPR_ERROR || !solver_run(I->s))
        return infer_error_expr(e->span);
    return g;
}

/* ---- all calls ------------------------------------------------------------------------------- */

Type **infer_type_args(Infer *I, const Ast *e) {
    size_t n = e->type_args.len;
    Type **types = mem_new_n(Type *, n + 1);
    Name name;
    Resolved r = {.kind = NAME_NONE};
    if (callee_name(I, e->a, &name))
        r = scope_resolve(I, &name);
    VEC(Type *) params = {0};
    if (r.kind == NAME_CTOR) {
        for (uint32_t i = 0; i < r.ctor->decl->nparams; i++)
            vec_push(&params, r.ctor->decl->params[i]);
    } else {
        const Scheme *s = r.kind == NAME_GLOBAL  ? r.global->scheme
                          : r.kind == NAME_LOCAL ? r.local->var->scheme
                                                 : NULL;
        for (uint32_t i = 0; s && i < s->nparams; i++) {
            if (s->params[i]->kind != KIND_EFFECT)
                vec_push(&params, s->params[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        const AstType *t = e->type_args.data[i];
        if (t->kind == AST_TYPE_HOLE)
            continue; /* this type argument is left to inference */
        Kind kind = i < params.len ? params.data[i]->kind : KIND_TYPE;
        if (!params.len && r.kind == NAME_GLOBAL && r.global == I->current && r.global->item &&
            r.global->item->fn && i < r.global->item->fn->type_params.len) {
            /* the callee is the definition being checked, so its parameters are those in scope */
            TypeParam *p = type_scope_find(I, r.global->item->fn->type_params.data[i].name);
            if (p && p->kind_known)
                kind = p->kind;
        }
        types[i] = infer_ast_type(I, t, kind);
    }
    return types;
}

Expr *infer_call(Infer *I, Ast *e, Type *want) {
    (void)want;
    Span span = e->span;
    Name name;
    Resolved r = {.kind = NAME_NONE};
    bool named = callee_name(I, e->a, &name);
    if (named)
        r = scope_resolve(I, &name);
    if (r.kind == NAME_OP) {
        if (e->type_args.len) {
            infer_error(I, DIAG_R0108, e->span, "operator `%s` takes no type arguments",
                        r.op->name);
            return infer_error_expr(e->span);
        }
        return infer_named_op(I, r.op, e);
    }
    const Op *dyn = named && r.kind == NAME_NONE ? infer_find_dyn(name.sym) : NULL;
    if (dyn)
        return infer_dyn_call(I, dyn, e);
    if (named && r.kind == NAME_NONE && op_is_form(name.sym->text))
        return infer_memory_form(I, name.sym, e->span);
    uint32_t n = (uint32_t)e->args.len, ntypes = (uint32_t)e->type_args.len;
    Type **types = ntypes ? infer_type_args(I, e) : NULL;
    if (e->attrs.len &&
        !I->module->versioned) { /* TVM notes things about calls of functions, which mean nothing */
        const AstAttr *a = &e->attrs.data[0];
        if (named && r.kind == NAME_NONE) {
            scope_report_unknown(I, &name);
            return infer_error_expr(e->span);
        }
        const char *who = named ? name.sym->text : "this";
        Global *form = r.kind == NAME_GLOBAL ? infer_find_form(I, r.global, &e->attrs) : NULL;
        if (form) {
            r.global = form;
            name.sym = form->name;
        }
        const AstFn *fn = r.kind == NAME_GLOBAL ? infer_parameters(r.global) : NULL;
        if (!fn) {
            Diag *d = infer_error(I, DIAG_R0117, a->span,
                                  "`%s` is no operator and takes no attributes", who);
            if (d)
                diag_add_fact(
                    d, "the parameters of a definition have names, those of a value have none");
            return infer_error_expr(e->span);
        }
        e = infer_place_arguments(I, e, fn, who);
        if (!e)
            return infer_error_expr(span);
        n = (uint32_t)e->args.len;
    }
    if (r.kind == NAME_CTOR)
        return infer_ctor_call(I, ntypes ? r.ctor : ctor_of_type(r.ctor, want), NULL, n,
                               e->args.data, types, ntypes, e->span);
    Ast callee = *e->a;
    if (r.kind == NAME_GLOBAL || r.kind == NAME_LOCAL) {
        callee.kind = AST_NAME;
        callee.name = name;
    }
    GradKind mode;
    if (r.kind == NAME_GLOBAL && r.global->scheme && find_grad(r.global, &mode) && n == 1) {
        Type *t = scheme_instantiate(I->s, r.global->scheme, e->span, NULL, 0, NULL);
        return call_grad(I, e, t, mode);
    }
    Type **sizes = NULL;
    if (callee.kind != AST_NAME)
        return apply(I, infer_expr(I, e->a, NULL), NULL, NULL, e->args.data, n, e->span);
    solver_take_sizes(I->s, &sizes);
    Expr *fn = infer_name(I, &callee, types, ntypes, NULL);
    solver_take_sizes(I->s, NULL);
    return apply(I, fn, sizes, NULL, e->args.data, n, e->span);
}
