/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of which the run decides which they are.
 *
 * Note [Functions as data]. A function that was put into data, that an `if` gives, or that is handed on through a recursion
 * is not known where it is called. But it is one of the literals that got there:
 *
 *   let fs = list[fn (x) { x * w }, fn (x) { x + b }];   foldl(fn (x, f) { f(x) }, 1.0, fs)
 *
 * So such a call is one of `apply`, which is made for it, and which the other files read as any function:
 *
 *   fn (f, x) { match (f) { fn_1(w) => f_1(x), fn_2(b) => f_2(x) } }
 *
 * The constructors stand for closures: a closure is of the constructor of its literal (Fn.as_data), whose fields are what it
 * captured. The value stays the closure, which all other code calls as ever; only patterns of derivatives ask of which
 * constructor it is. Its accumulator is data of that constructor, with the cotangents of what was captured; and f_1 is f, known
 * to be the first literal, with w for what that captured.
 *
 * This is done where a program is not taken without it (Functions.taken), and it holds while all functions that get there are
 * literals of the program, or of a value that it reads: one that comes in through a parameter or from a plain call leaves the
 * program to the twins. So in such a program no step is plain that may give a function, and a call that may is one of an
 * instance, whether something active reaches it or not: the closures that code makes which was optimised by itself may have
 * captured otherwise. The program is read again until no more literals are found that get into data. A literal in the body of a
 * definition that stands in place of its calls is one function in all copies with the same types, in each reading.
 *
 * Note [Functions of values]. A function may come from a top-level `let`, `let layers = map(dense, sizes)`. A derivative is
 * made when it is first asked for, and then such a name has its value, which never changes: so the evaluator looks which
 * functions there are in it (PassCtx.find_held), of which literals, and with what they captured. A name that is a function is
 * known as that literal. What is in data is listed as if the program had put it there. What these captured is constant. Code that
 * runs after passes may have made the closures of copies of what was written: the literal of a closure is that copy, and it
 * has a constructor of its own, if it was made before that of the other. The function that is differentiated may have captured such
 * data: then there is code for each set of functions in it (Known.held), as for each set of functions that it captured.
 *
 * An operator is a closure of a literal of any type, of which one is made for the types of each call that may take it. Other literals of
 * any type have that where they stand in the value; where nothing says that, the program is left to the twins, as it is where
 * the name has no value yet, where a reference may hold a function, and where a derivative or what `custom_grad` gave is among
 * them. A name that has another value since, by Global.values, makes the code outdated as another definition does. */
#include "passes/reverse/internal.h"
#include "types/core/check.h"

/* A literal that has a constructor, and the variable by which it calls itself, or NULL. */
typedef struct Function {
    Expr *literal;
    Var *self;
    Type *type;   /* at which it is in a value, where the literal may be of any type; or NULL */
    const Op *op; /* the literal is of any type, and stands for this operator; or NULL */
} Function;

/* What an arm of `apply` binds: f, which is known to be that literal there. */
typedef struct Arrival {
    const Function *function;
    Var **captured; /* variables of the pattern, or NULL */
} Arrival;

struct Functions {
    bool taken;
    Map all;    /* Ctor -> Function: the first literal that was read of those that are copies */
    Map of_ops; /* EXPR_OP -> the Ctor of the literals that stand for it */
    Map copies; /* EXPR_FN -> a Map: Symbol, a literal in it and types -> the Ctor of the copies with these */
    Map held;     /* Symbol: a `let` and a type of it, or HeldFunctions: these were listed */
    Map held_ops; /* literals of any type that stand for operators in values */
    Map in_data;  /* Known that gets into data, and its Function, which is one of */
    VEC(Function *) listed; /* these */
    size_t before;          /* how many of them there were when this reading began */
    bool asked;             /* in this reading: which of them a value is */
    Map globals;            /* Symbol, what is called with which types -> Global, of this reading */
    Map callees;            /* Global -> EXPR_FN, the function that matches */
    Map arrivals;           /* Var -> Arrival */
};

Functions *functions_new(void) { return mem_new(Functions); }

bool functions_are_data(const Program *p) { return p->functions->taken; }

bool functions_grew(const Functions *f) {
    return f->taken && f->asked && f->listed.len > f->before;
}

bool functions_begin(Functions *f) {
    bool more = !f->taken || functions_grew(f);
    f->taken = true;
    f->asked = false;
    f->before = f->listed.len;
    f->globals = f->callees = f->arrivals = (Map){0};
    return more;
}

bool type_may_be_function(Type *t) { return type_holds_code(t) || type_is_open(t, false); }

/* ---- literals -------------------------------------------------------------------------------- */

static TypeDecl *declaration(PassCtx *ctx) {
    GradState *state = grad_state(ctx);
    if (!state->functions) {
        state->functions = mem_new(TypeDecl);
        state->functions->name = sym_intern("fn");
        state->functions->nctors = UINT32_MAX; /* in no list: each goes with its literal */
    }
    return state->functions;
}

static void give_ctor(PassCtx *ctx, Expr *literal, const Known *k) {
    Ctor *ctor = mem_new(Ctor);
    ctor->decl = declaration(ctx);
    ctor->name = literal->fn->name ? literal->fn->name : sym_intern("fn");
    ctor->is_function = true;
    ctor->nfields = (uint32_t)k->captured.len;
    ctor->fields = mem_new_n(Type *, ctor->nfields + 1);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        ctor->fields[i] = k->captured.data[i]->type;
    literal->fn->as_data = ctor;
}

void function_note(Reader *r, const Known *k, Var *self) {
    Functions *f = r->p->functions;
    Fn *fn = k->original->fn;
    if (!f->taken)
        return;
    if (!fn->as_data)
        give_ctor(r->p->ctx, k->original, k);
    fn->keeps_captured |= k->captured.len >
                          0; /* a copy captures as many variables, in this order */
    if (map_has(&f->all, fn->as_data))
        return;
    Function *function = mem_new(Function);
    function->literal = k->original;
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->captured.data[i] == self)
            function->self = self;
    map_set(&f->all, fn->as_data, function);
}

void function_of_code(Reader *r, Expr *fn) {
    if (!r->p->functions->taken || fn->fn->as_data)
        return;
    Known *k = known_new(fn);
    give_ctor(r->p->ctx, fn, k);
    fn->fn->keeps_captured |= k->captured.len > 0;
}

/* The literals in a copy of the body of a function. */
typedef struct Copies {
    PassCtx *ctx;
    Map *ctors; /* Functions.copies of that function */
    uint32_t number;
    Map seen;
} Copies;

/* Whether nothing of a type is open but which effects a function has. */
static bool is_told(Type *t) {
    static const TypeTag open[] = {TY_PARAM, TY_VAR, TY_ANY};
    for (size_t k = 0; k < sizeof open / sizeof *open && !type_is_closed(t); k++) {
        Map seen = {0};
        TypeVec found = {0};
        type_collect(t, open[k], &seen, &found);
        for (size_t i = 0; i < found.len; i++)
            if (found.data[i]->kind != KIND_EFFECT)
                return false;
    }
    return true;
}

static void give_ctor_of_copies(Copies *c, Expr *literal) {
    Known *k = known_new(literal);
    bool told = is_told(literal->type);
    Str key = {0};
    str_printf(&key, "%u, %s", (unsigned)c->number, type_text(literal->type));
    for (size_t i = 0; i < k->captured.len; i++) {
        Type *type = k->captured.data[i]->type;
        told = told && is_told(type);
        str_printf(&key, ", %s", type_text(type));
    }
    if (!told) /* one name may stand for two sizes */
        return;
    const Symbol *symbol = sym_intern(str_text(&key));
    literal->fn->as_data = map_find(c->ctors, symbol);
    if (!literal->fn->as_data)
        give_ctor(c->ctx, literal, k);
    map_set(c->ctors, symbol, literal->fn->as_data);
}

static void find_copies(void *ctx, Expr *e) {
    Copies *c = ctx;
    if (mem_stack_left() < SPARE_STACK || !map_enter(&c->seen, e))
        return;
    if (e->kind == EXPR_FN) {
        c->number++;
        if (!e->fn->as_data)
            give_ctor_of_copies(c, e);
    }
    expr_each_child(e, find_copies, c);
}

void function_note_copies(Reader *r, const Expr *fn, Expr *body) {
    Functions *f = r->p->functions;
    if (!f->taken)
        return;
    Map *ctors = map_find(&f->copies, fn);
    if (!ctors) {
        ctors = mem_new(Map);
        map_set(&f->copies, fn, ctors);
    }
    find_copies(&(Copies){.ctx = r->p->ctx, .ctors = ctors}, body);
}

Expr *function_of_value(Reader *r, Expr *op) {
    Expr *fn = function_of_op(op);
    Functions *f = r->p->functions;
    if (!f->taken)
        return fn;
    if (!fn) {
        reverse_lack(r->p, "an operator of any type is handed on");
        return NULL;
    }
    fn->fn->as_data = map_find(&f->of_ops, op);
    if (!fn->fn->as_data) {
        give_ctor(r->p->ctx, fn, known_new(fn));
        map_set(&f->of_ops, op, fn->fn->as_data);
    }
    return fn;
}

static void note_in_data(Reader *r, const Known *k) {
    Functions *f = r->p->functions;
    if (!map_enter(&f->in_data, k))
        return;
    if (!k->captured.len) /* it may be a definition, whose value is a closure of its literal, too */
        function_note(r, k, NULL);
    if (map_has(&f->held_ops, k->original)) {
        reverse_lack(r->p, "an operator of any type is handed on");
        return;
    }
    const Ctor *ctor = k->original->fn->as_data;
    Function *function = ctor ? map_find(&f->all, ctor) : NULL;
    if (!function || !fn_has_own_code(k->fn)) {
        reverse_lack(r->p, "a function that is not known is stored");
        return;
    }
    if (map_enter(&f->in_data, function))
        vec_push(&f->listed, function);
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->known[i] && k->known[i] != k)
            note_in_data(r, k->known[i]);
}

/* The place of a closure as that of data of its constructor, with the places that it captured. */
static Place *place_of_data(Instance *n, const Place *closure, const Known *k) {
    if (!closure || closure->form != PLACE_CLOSURE)
        return (Place *)closure;
    Place *p = mem_new(Place);
    *p = *closure;
    p->form = PLACE_DATA;
    p->ctor = k->original->fn->as_data;
    p->id = ++n->nplaces;
    p->parts = mem_new_n(Place *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++) {
        p->parts[i] = k->known[i] && k->known[i] != k
                          ? place_of_data(n, closure->parts[i], k->known[i])
                          : closure->parts[i];
        p->partial |= !p->parts[i];
    }
    return p;
}

Expr *function_as_data(Reader *r, Expr *atom) {
    if (!r->p->functions->taken || r->p->why)
        return atom;
    Known *k = known_of(r, atom);
    bool is_function = atom->type && type_resolve(atom->type)->tag == TY_FN;
    if (!k) {
        if (is_function && atom->kind != EXPR_VAR)
            reverse_lack(r->p, "a function that is not known is stored");
        return atom;
    }
    note_in_data(r, k);
    Place *p = place_of(r->n, atom);
    if (r->p->why || !p || p->form != PLACE_CLOSURE)
        return atom;
    Expr *v = add_plain(r, "f", atom);
    name_place(r, v->var, place_of_data(r->n, p, k), k);
    return v;
}

/* ---- which one a value is -------------------------------------------------------------------- */

static bool is_called_so(const Function *f, Type *const *args, uint32_t nargs, Type *result) {
    const Type *t = type_resolve(f->type ? f->type : f->literal->type);
    if (t->tag != TY_FN || t->nargs != nargs || !core_types_fit(t->fn.result, result))
        return false;
    for (uint32_t i = 0; i < nargs; i++)
        if (!core_types_fit(t->args[i], args[i]))
            return false;
    return true;
}

static Pattern *pattern_of(const Build *b, const Function *function, Arrival *a) {
    VarVec captured = {0};
    expr_free_vars(function->literal, &captured);
    Pattern *p = b_pattern(b, PAT_CTOR, NULL);
    p->ctor = function->literal->fn->as_data;
    p->nargs = (uint32_t)captured.len;
    p->args = mem_new_n(Pattern *, p->nargs + 1);
    a->function = function;
    a->captured = mem_new_n(Var *, p->nargs + 1);
    for (uint32_t i = 0; i < p->nargs; i++) {
        Var *of = captured.data[i];
        bool is_read = of != function->self && type_may_hold_float(of->type);
        p->args[i] = b_pattern(b, is_read ? PAT_VAR : PAT_WILDCARD, of->type);
        if (is_read)
            a->captured[i] = p->args[i]->var = b_var(b, of->name->text, of->type);
    }
    return p;
}

/* The operator that a literal of any type stands for, as one of these types; NULL where it does not take them. */
static Function *operator_at_types(const Function *f, Type *const *args, uint32_t nargs,
                                   Type *result) {
    if (nargs != (uint32_t)f->op->nargs)
        return NULL;
    Expr *op = expr_op(f->op, NULL, span_none()), **atoms = mem_new_n(Expr *, nargs + 1);
    Build b = {span_none()};
    op->type = type_fn((Type **)args, nargs, result, type_pure());
    Expr *literal = function_of_op(op);
    for (uint32_t i = 0; i < nargs; i++) {
        atoms[i] = b_ref(&b, literal->fn->params[i]);
        if (type_resolve(args[i])->tag == TY_DATA)
            return NULL;
    }
    const char *wrong = NULL;
    Type *given = core_type_of_call(
        expr_call_op(f->op, atoms, nargs, attrs_defaults(f->op), result, b.span), &wrong);
    if (wrong || (given && !core_types_fit(given, result)))
        return NULL; /* where sizes are not known it may be called */
    Function *function = mem_new(Function);
    function->literal = literal;
    literal->fn->as_data = f->literal->fn->as_data;
    return function;
}

static bool has_arm(const Expr *match, const Ctor *ctor) {
    uint32_t i = 0;
    while (i < match->narms && match->arms[i].pattern->ctor != ctor)
        i++;
    return i < match->narms;
}

/* match (f) { fn_1(w) => { let f_1 = f; … }, … }: where `result` is NULL ad.own(f_1), else f_1(x, …), called there. */
static Expr *match_functions(Reader *r, const Build *b, Var *f, Var *const *xs, uint32_t n,
                             Type *result, Span call) {
    Functions *functions = r->p->functions;
    Build at = {call};
    Expr *match = expr_new(EXPR_MATCH, result ? result : f->type, b->span);
    const Type *of = type_resolve(f->type);
    Type *const *args = of->args;
    Type *gives = result || of->tag != TY_FN ? result : of->fn.result;
    match->a = b_ref(b, f);
    match->arms = mem_new_n(Arm, functions->listed.len + 1);
    Type **types = mem_new_n(Type *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = result ? xs[i]->type : args[i];
    for (size_t i = 0; i < functions->listed.len; i++) {
        const Function *function = functions->listed.data[i];
        if (!gives || has_arm(match, function->literal->fn->as_data))
            continue;
        if (function->op)
            function = operator_at_types(function, types, n, gives);
        if (!function || !is_called_so(function, types, n, gives))
            continue;
        Arrival *a = mem_new(Arrival);
        Pattern *pattern = pattern_of(b, function, a);
        Var *g = b_var(b, "f", function->type ? function->type : function->literal->type);
        map_set(&functions->arrivals, g, a);
        Expr **given = mem_new_n(Expr *, n + 1), *value;
        for (uint32_t k = 0; result && k < n; k++)
            given[k] = b_ref(b, xs[k]);
        if (result)
            value = b_call(&at, b_ref(&at, g), given, n, 0);
        else
            value = b_builtin(b, "ad.own", b_ref(b, g), NULL);
        value->type = match->type;
        match->arms[match->narms++] = (Arm){pattern, NULL, expr_let(g, b_ref(b, f), value)};
    }
    return match;
}

/* The global `name`, a function of f and of arguments of these types; result: NULL where it gives a function again. */
static Global *global_for(Reader *r, const char *name, Type *of, Type *const *args, uint32_t n,
                          Type *result, Span call) {
    Functions *functions = r->p->functions;
    Str key = {0};
    str_printf(&key, "%s at %p %u %u, %s", name, (void *)call.source, (unsigned)call.begin,
               (unsigned)call.end, type_text(of));
    for (uint32_t i = 0; i < n; i++)
        str_printf(&key, ", %s", type_text(args[i]));
    const Symbol *symbol = sym_intern(str_text(&key));
    Global *g = map_find(&functions->globals, symbol);
    functions->asked = true;
    if (g)
        return g;
    Build b = {span_none()};
    Var *f = b_var(&b, "f", of), **params = mem_new_n(Var *, n + 2);
    Expr **given = mem_new_n(Expr *, n + 1);
    params[0] = f;
    for (uint32_t i = 0; i < n; i++) {
        params[i + 1] = b_var(&b, "x", args[i]);
        given[i] = b_ref(&b, params[i + 1]);
    }
    uint32_t nargs = type_resolve(of)->tag == TY_FN ? type_resolve(of)->nargs : 0;
    Expr *match = match_functions(r, &b, f, params + 1, result ? n : nargs, result, call);
    if (!match->narms) /* nor does one get there */
        match = b_unreachable(&b, "a function that the program does not hold was called",
                              match->type);
    Expr *plain = result ? b_call(&b, b_ref(&b, f), given, n, 0) : b_ref(&b, f);
    plain->type = match->type;
    g = instance_global(name);
    g->value = b_fn(&b, name, params, n + 1, plain);
    map_set(&functions->globals, symbol, g);
    map_set(&functions->callees, g, b_fn(&b, name, params, n + 1, match));
    return g;
}

static bool list_of_let(Reader *r, const Expr *atom);

bool function_apply(Reader *r, Expr *call) {
    if (!r->p->functions->taken || call->mode || call->drop)
        return false;
    bool is_let = call->a->kind == EXPR_GLOBAL && call->a->global->kind == GLOBAL_LET;
    if (call->a->kind != EXPR_VAR && !(is_let && list_of_let(r, call->a)))
        return false;
    uint32_t n = call->nargs;
    bool open = type_is_open(call->type, false);
    Type **types = mem_new_n(Type *, n + 1);
    Expr **args = mem_new_n(Expr *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = call->args[i]->type;
        open |= type_is_open(types[i], false);
    }
    if (open) { /* the arms of functions that are not called there would have the wrong types */
        reverse_lack(r->p, "a function that is not known is called with values of any type");
        return true;
    }
    Global *g = global_for(r, "apply", call->a->type, types, n, call->type, call->span);
    if (!g)
        return true;
    args[0] = call->a;
    for (uint32_t i = 0; i < n; i++)
        args[i + 1] = call->args[i];
    call->a = expr_global(g, b_some_type("f"), call->span);
    call->args = args;
    call->nargs = n + 1;
    return true;
}

Known *function_callee(const Reader *r, const Expr *callee) {
    Expr *fn = callee->kind == EXPR_GLOBAL ? map_find(&r->p->functions->callees, callee->global)
                                           : NULL;
    return fn ? known_new(fn) : NULL;
}

bool function_arrives(Reader *r, const Expr *let) {
    const Arrival *a = map_find(&r->p->functions->arrivals, let->var);
    if (!a)
        return false;
    Expr *literal = a->function->literal;
    Known *k = known_new(literal);
    if (!k->captured.len)
        k = known_prepared(r->p, literal);
    Place *p = mem_new(Place);
    p->form = PLACE_CLOSURE;
    p->type = literal->type;
    p->id = ++r->n->nplaces;
    p->nparts = (uint32_t)k->captured.len;
    p->parts = mem_new_n(Place *, p->nparts + 1);
    bool any = false;
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (k->captured.data[i] == a->function->self)
            k->known[i] = k;
        if (a->captured[i])
            p->parts[i] = map_find(&r->n->places, a->captured[i]);
        k->active[i] = p->parts[i] != NULL;
        any |= k->active[i];
    }
    add_step(r, STEP_PLAIN, let->var, let->a);
    name_place(r, let->var, any ? p : NULL, k);
    return true;
}

/* ---- what is stored -------------------------------------------------------------------------- */

static bool may_be_tensor(Type *t) {
    TypeTag tag = type_resolve(t)->tag;
    return tag == TY_TENSOR || tag == TY_PARAM || tag == TY_VAR;
}

/* A function that is known, with places of their own for the tensors that it captured. */
static Expr *own_places(Reader *r, Expr *atom, const Known *k) {
    Place *of = place_of(r->n, atom), *p = mem_new(Place);
    if (!of)
        return atom;
    *p = *of;
    p->id = ++r->n->nplaces;
    p->parts = mem_new_n(Place *, p->nparts + 1);
    Build b = {atom->span};
    k->original->fn->keeps_captured = true;
    for (uint32_t i = 0; i < p->nparts; i++) {
        p->parts[i] = of->parts[i];
        Type *type = k->captured.data[i]->type;
        if (!of->parts[i] || k->known[i] || !may_be_tensor(type))
            continue;
        Expr *number = expr_int(i, DT_I32, b.span);
        Expr *part = add_plain(r, "v", b_builtin(&b, "ad.captured", atom, number, NULL)), *own;
        part->type = part->var->type = type;
        name_place(r, part->var, of->parts[i], NULL);
        Expr *call = b_builtin(&b, "ad.own", part, NULL);
        if (!read_builtin(r, call, true, &own))
            BUG("ad.own is linear");
        p->parts[i] = place_of(r->n, own);
    }
    Expr *v = add_plain(r, "f", b_builtin(&b, "ad.own", atom, NULL));
    name_place(r, v->var, p, (Known *)k);
    return v;
}

/* Of a function that is constant here: a derivative around this one may follow what it captured. */
static Expr *own_constant(Reader *r, Expr *atom, Known *k) {
    if (atom->kind != EXPR_VAR || (k && !k->captured.len))
        return atom;
    Build b = {atom->span};
    Expr *v = add_plain(r, "f", b_builtin(&b, "ad.own", atom, NULL));
    name_place(r, v->var, NULL, k);
    return v;
}

Expr *function_stored(Reader *r, Expr *atom, Type *type) {
    if (known_of(r, atom)) {
        atom = function_as_data(r, atom);
        Known *k = known_of(r, atom);
        if (r->p->why)
            return atom;
        return place_of(r->n, atom) ? own_places(r, atom, k) : own_constant(r, atom, k);
    }
    if (!place_of(r->n, atom))
        return own_constant(r, atom, NULL);
    if (!r->p->functions->taken)
        return atom;
    Global *g = global_for(r, "owned", type, NULL, 0, NULL, atom->span);
    if (!g)
        return atom;
    Build b = {atom->span};
    Expr **args = mem_new_n(Expr *, 1);
    args[0] = atom;
    Expr *call = b_call(&b, expr_global(g, b_some_type("f"), b.span), args, 1, 0);
    call->type = type;
    return read_value(r, call);
}

/* ---- what comes from outside ------------------------------------------------------------------ */

/* A function that a value holds; NULL where it may be of any type there. */
static Function *function_held(Reader *r, const HeldFunction *held) {
    Functions *f = r->p->functions;
    Fn *fn = held->literal->fn;
    Known *k = known_new(held->literal);
    bool is_open = !held->type || type_is_open(held->type, true);
    if (!fn->as_data)
        give_ctor(r->p->ctx, held->literal, k);
    fn->keeps_captured |= k->captured.len > 0;
    if (held->op)
        map_set(&f->held_ops, held->literal, held->literal);
    if (is_open && !held->op && type_is_open(held->literal->type, true))
        return NULL;
    Function *function = mem_new(Function);
    function->literal = held->literal;
    function->self = held->self < k->captured.len ? k->captured.data[held->self] : NULL;
    if (held->op)
        function->op = held->op;
    else if (!map_has(&f->all, fn->as_data))
        map_set(&f->all, fn->as_data, function);
    if (is_open || held->op)
        return function;
    if (map_find(&f->all, fn->as_data) == function) { /* what reads that literal is of any type */
        Function *copy = mem_new(Function);
        *copy = *function;
        function = copy;
    }
    function->type = held->type;
    return function;
}

/* Lists the functions that a value holds, but for those that are known; false where one may be anything. */
static bool list_functions(Reader *r, const HeldFunctions *held) {
    for (size_t i = 0; i < held->all.len; i++) {
        Function *function = function_held(r, &held->all.data[i]);
        const Ctor *ctor = held->all.data[i].literal->fn->as_data;
        bool is_known = held->all.data[i].is_known;
        if (ctor->nfields != held->all.data[i].ncaptured || (!function && !is_known))
            return false;
        if (!is_known)
            vec_push(&r->p->functions->listed, function);
    }
    return true;
}

/* Lists the functions that the value of a `let` holds, but for that which it is; false where they are not known. */
static bool list_of_let(Reader *r, const Expr *atom) {
    Functions *f = r->p->functions;
    const Symbol *name = sym_intern(
        fmt_text("%p, %s", (const void *)atom->global, type_text(atom->type)));
    PassCtx *ctx = r->p->ctx;
    use_global(r->p, atom->global);
    if (map_has(&f->held, name))
        return true;
    HeldFunctions held = {0};
    if (!ctx->find_held || !ctx->find_held(ctx->held_by, atom->global, atom->type, &held) ||
        !list_functions(r, &held))
        return false;
    map_set(&f->held, name, atom->global);
    return true;
}

Known *function_of_let(Reader *r, const Expr *atom) {
    PassCtx *ctx = r->p->ctx;
    HeldFunctions held = {0};
    if (!ctx->find_held || atom->global->kind != GLOBAL_LET || !type_may_be_function(atom->type))
        return NULL;
    use_global(r->p, atom->global);
    if (!ctx->find_held(ctx->held_by, atom->global, NULL, &held) || !held.whole)
        return NULL;
    if (r->p->functions->taken && !list_of_let(r, atom))
        return NULL;
    held.whole->fn = known_prepared(r->p, held.whole->original)->fn;
    return held.whole;
}

static bool captured_is_known(const Known *k, int depth) {
    enum { DEEPEST = 16 };
    if (depth == DEEPEST)
        return false;
    for (uint32_t i = 0; i < k->captured.len; i++) {
        const Known *of = k->known[i];
        bool ok = of ? of == k || captured_is_known(of, depth + 1)
                     : !type_may_be_function(k->captured.data[i]->type);
        if (!ok)
            return false;
    }
    return true;
}

void functions_check_source(Program *p, const Known *source) {
    Reader r = {NULL, p, NULL};
    const HeldFunctions *held = p->functions->taken && p->code->given ? p->code->given->held : NULL;
    bool ok = captured_is_known(source, 0);
    if (held && !ok) {
        ok = map_has(&p->functions->held, held) || list_functions(&r, held);
        map_set(&p->functions->held, held, (void *)held);
    }
    for (uint32_t i = 0; i < source->fn->fn->nparams; i++)
        ok &= !type_may_be_function(source->fn->fn->params[i]->type);
    if (p->functions->taken && !ok)
        reverse_lack(p, "a function comes from outside");
}

void functions_check_atom(Reader *r, Expr *atom) {
    bool is_global = atom->kind == EXPR_GLOBAL && type_may_be_function(atom->type);
    bool is_ctor = atom->kind == EXPR_CTOR && type_resolve(atom->type)->tag == TY_FN;
    if (!r->p->functions->taken || !(is_global || is_ctor) || known_of(r, atom))
        return;
    if (is_ctor || atom->global->kind != GLOBAL_LET || !list_of_let(r, atom))
        reverse_lack(r->p, "a function comes from outside");
}

/* ---- calls of instances ------------------------------------------------------------------------ */

bool function_is_given(const Program *p, const Step *s) {
    return p->functions->taken && s->kind == STEP_CALL && !s->is_custom && !s->runs_again &&
           type_may_be_function(s->e->type);
}

static void find_calls(Instance *n, const Steps *steps) {
    for (size_t i = 0; i < steps->steps.len && !n->program->why; i++) {
        Step *s = steps->steps.data[i];
        if (function_is_given(n->program, s) && !s->instance)
            s->instance = instance_get(n->program, s->callee, s->known, s->active, s->shared,
                                       s->nslots, &s->slots);
        for (uint32_t k = 0; s->kind == STEP_BRANCH && k < s->nchoices; k++)
            find_calls(n, s->choices[k].steps);
    }
    for (uint32_t k = 0; steps->end == END_BRANCH && k < steps->branch->nchoices; k++)
        find_calls(n, steps->branch->choices[k].steps);
}

void functions_find_calls(Program *p) {
    for (size_t i = 0; p->functions->taken && i < p->instances.len && !p->why; i++)
        if (!p->instances.data[i]->forward)
            find_calls(p->instances.data[i], p->instances.data[i]->body);
}
