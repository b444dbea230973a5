/* SPDX-License-Identifier: Apache-2.0 */
/* Derivatives inside of what is differentiated.
 *
 * Note [Derivatives inside]. The derivative of a known function is made first, and the function it became is read like
 * any other:
 *
 *   fn (x) { x * deriv(fn (y) { x * y * y })(3.0) }   reads   let f = fn (y) { … };
 *                                                            let D = fn (y) { let T = f.fwd(f, y); … f.bwd(T, seed) };
 *                                                            x * D(3.0)
 *
 * What made code does with accumulators and frames is linear: a part of a frame, the sum of two accumulators. These
 * builtins are steps of their own, STEP_BUILTIN, whose tangent and way back stand here. A frame is a tuple of which
 * nothing is known but which part is read; so its accumulator is a tuple that grows (ad.add_part). */
#include "passes/inline.h"
#include "passes/reverse/beside.h"
#include "passes/subst.h"

#include <string.h>

extern const Op op_sum, op_equal;

/* ---- derivatives of known functions ---------------------------------------------------------- */

/* The derivatives of one kind of a function: one for each set of functions that its closures captured. */
struct ReverseFamily {
    VEC(ReverseCode *) codes;
};

static ReverseFamily *family_of(WeakMap *made, Expr *fn) {
    ReverseFamily *family = weak_find(made, fn);
    if (!family) {
        family = mem_new(ReverseFamily);
        weak_set(made, fn, family);
    }
    return family;
}

static ReverseCode *find_code(ReverseFamily *family, const Known *given) {
    ReverseCode *found = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < family->codes.len; i++) {
        ReverseCode *code = family->codes.data[i];
        if (!reverse_is_current(code))
            continue;
        family->codes.data[kept++] = code;
        if (known_equal(code->given, given))
            found = code;
    }
    family->codes.len = kept;
    return found;
}

static void set_code(ReverseFamily *family, const ReverseCode *before, ReverseCode *code) {
    enum { MOST_CODES = 16 };
    size_t i = 0;
    while (i < family->codes.len && family->codes.data[i] != before)
        i++;
    if (i == MOST_CODES)
        family->codes.len = i = 0;
    if (i == family->codes.len)
        vec_push(&family->codes, code);
    family->codes.data[i] = code;
    code->family = family;
}

ReverseCode *reverse_get(PassCtx *ctx, GradKind kind, bool merges, Expr *fn, Known *given) {
    ReverseFamily *family = family_of(&grad_state(ctx)->derived[kind][merges], fn);
    ReverseCode *code = find_code(family, given);
    if (code)
        return code;
    ReverseCode *unfinished = mem_new(ReverseCode);
    unfinished->why = "a function that differentiates itself";
    unfinished->given = given;
    set_code(family, NULL, unfinished);
    code = reverse_derive(ctx, kind, merges, fn, given);
    set_code(family, unfinished, code);
    return code;
}

bool derivative_is_known(Reader *r, Expr *e) {
    if (e->mode == GRAD_CUSTOM)
        return true;
    while (e->kind == EXPR_GRAD)
        e = e->a;
    if (e->kind == EXPR_FN || e->kind == EXPR_OP)
        return true;
    return (e->kind == EXPR_VAR || e->kind == EXPR_GLOBAL) && known_of(r, e);
}

Expr *read_derivative(Reader *r, Expr *e) {
    GradKind kind = (GradKind)e->mode;
    if (kind == GRAD_CUSTOM || kind == GRAD_CHECKPOINT)
        return read_own(r, e);
    if (kind == GRAD_VMAP) {
        reverse_refuse(r->p, "a function of the evaluator that is no derivative of code");
        return e;
    }
    Expr *f = read_value(r, e->a);
    Known *k = r->p->why ? NULL : known_of(r, f);
    if (!k) {
        reverse_lack(r->p, "the derivative of a function that is not known");
        return e;
    }
    Known *given = known_captured_any(k) ? known_inactive(k) : NULL;
    const ReverseCode *code = reverse_get(r->p->ctx, kind, r->p->merges && r->n->forward,
                                          k->original, given);
    if (!code->fn) {
        (code->lacks_function ? reverse_lack : reverse_refuse)(r->p, code->why);
        return e;
    }
    for (size_t i = 0; i < code->uses.len; i++)
        use_global(r->p, code->uses.data[i].global);
    function_of_code(r, code->fn);
    Subst s = {0};
    map_set(&s.vars, code->of, f);
    return read_fn(r, expr_substitute(&s, code->fn), NULL, false);
}

/* ---- calls of what was made ------------------------------------------------------------------- */

/* The variables that a literal captured must be known here; those of one that came as an argument are not. */
static bool is_in_scope(const Reader *r, const Known *k) {
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (!map_has(&r->n->knowns, k->captured.data[i]))
            return false;
    return true;
}

static bool calls_definition(void *g, const Expr *e) {
    return e->kind == EXPR_GLOBAL && e->global == g;
}

static bool gives_function(const Expr *e, int depth);

/* What that asks of a call, through so many others. */
static bool makes_function(const Expr *call, int depth) {
    const Global *g = call->a->kind == EXPR_GLOBAL ? call->a->global : NULL;
    Expr *fn = g && g->kind == GLOBAL_DEF && !g->broken && !g->by_types ? g->value : NULL;
    return fn && fn->kind == EXPR_FN && fn_has_own_code(fn) &&
           gives_function(fn->fn->body, depth) && !expr_any(fn, calls_definition, call->a->global);
}

/* Whether the value of e is a function that is written in it, or a tuple of such, perhaps by a definition that it calls. */
static bool gives_function(const Expr *e, int depth) {
    enum { DEEPEST = 4 };
    while (e->kind == EXPR_LET)
        e = e->body;
    for (uint32_t i = 0; e->kind == EXPR_TUPLE && i < e->nargs; i++)
        if (e->args[i]->kind == EXPR_FN)
            return true;
    return e->kind == EXPR_FN || e->kind == EXPR_GRAD ||
           (e->kind == EXPR_CALL && depth < DEEPEST && makes_function(e, depth + 1));
}

bool call_makes_function(const Expr *call) { return makes_function(call, 0); }

Expr *body_of_call(Expr *fn, const Expr *call) {
    Inlined *site = mem_new(Inlined);
    *site = (Inlined){.name = fn->fn->name,
                      .fn = fn,
                      .call = call->span,
                      .internal = expr_is_internal(fn),
                      .tail = call->tail == TAIL_CALL,
                      .outer = call->inlined};
    Subst s = {.site = site, .mono = mono_of_inlined(fn, call->args, call->nargs)};
    Build b = {call->span};
    Block block = {.b = &b};
    for (uint32_t i = 0; i < call->nargs;
         i++) { /* a literal inside captures as many variables as it did */
        Var *param = fn->fn->params[i];
        Expr *arg = block_let(&block, param->name->text, call->args[i]);
        map_set(&s.vars, param, arg);
    }
    return block_end(&block, expr_substitute(&s, fn->fn->body));
}

Expr *inline_made(Reader *r, Expr *call) {
    Known *k = known_of(r, call->a);
    if (!k || call->mode || call->drop || k->fn->fn->nparams != call->nargs || !is_in_scope(r, k))
        return NULL;
    if (!fn_is_straight(k->fn) && !call_makes_function(call))
        return NULL;
    note_cells(r->p, k->fn);
    Expr *body = body_of_call(k->fn, call);
    function_note_copies(r, k->fn, body);
    return body;
}

/* ---- ends that are known ----------------------------------------------------------------------- */

/* What that tells, through so many names. */
static const Expr *value_at(const Instance *n, const Expr *e, int depth) {
    enum { DEEPEST = 32 };
    if (depth == DEEPEST)
        return e;
    if (e->kind == EXPR_PROJ) {
        const Expr *tuple = value_at(n, e->a, depth + 1);
        bool known = tuple->kind == EXPR_TUPLE && (uint32_t)e->index < tuple->nargs;
        return known ? value_at(n, tuple->args[e->index], depth + 1) : e;
    }
    const Step *s = e->kind == EXPR_VAR ? map_find(&n->made_by, e->var) : NULL;
    if (!s || s->kind != STEP_PLAIN || s->rec || !s->e)
        return e;
    const Expr *is = value_at(n, s->e, depth + 1);
    return s->e->kind == EXPR_PROJ && is == s->e ? e : is;
}

const Expr *known_value(const Instance *n, const Expr *atom) { return value_at(n, atom, 0); }

static bool is_number(const Expr *e) { return e->kind == EXPR_LIT && !e->is_float && !e->like; }

static bool is_bool(const Expr *e) {
    DType dtype;
    return is_number(e) && type_get_dtype(e->type, &dtype) && dtype == DT_BOOL;
}

/* A plan that was made here is there. A frame that was made here says by which end it was left, and the first one of a loop
 * that none is before it: the way back from another one never runs, nor do the types of its frame hold for this one. */
Expr *known_arm(const Instance *n, const Expr *e) {
    const Expr *test = known_value(n, e->a);
    if (expr_calls_builtin(test, "ad.is_zero")) {
        const Expr *before = known_value(n, test->args[0]);
        bool none = before->kind == EXPR_ZERO && type_is_unit(before->zero_type);
        return none || (before->kind == EXPR_TUPLE && !before->nargs) ? e->b : NULL;
    }
    if (is_bool(test))
        return test->i ? e->b : e->c;
    if (test->kind != EXPR_CALL || test->a->kind != EXPR_OP || test->a->op != &op_equal)
        return NULL;
    const Expr *one = known_value(n, test->args[0]), *other = known_value(n, test->args[1]);
    if (!is_number(one) || !is_number(other))
        return NULL;
    return one->i == other->i ? e->b : e->c;
}

/* ---- reading --------------------------------------------------------------------------------- */

Expr *add_linear(Reader *r, Expr *e) {
    Expr *v = add_plain(r, "v", e);
    Step *s = vec_last(&r->steps->steps);
    s->kind = STEP_BUILTIN;
    s->place = place_new(r->n, e->type);
    name_place(r, v->var, s->place, NULL);
    return v;
}

/* The place of a part that was read before, where that is seen from here. */
static Place *find_read(const Reader *r, const Place *whole, uint32_t i) {
    for (size_t k = 0; k < whole->reads.len; k++)
        for (const Steps *at = r->steps; whole->reads.data[k].index == i && at; at = at->around)
            if (at == whole->reads.data[k].step->place->home)
                return whole->reads.data[k].step->place;
    return NULL;
}

Expr *read_unknown_part(Reader *r, Expr *v, Place *whole, uint32_t i) {
    Step *s = vec_last(&r->steps->steps);
    if (s->var != v->var)
        BUG("a part is not the last step");
    if (!type_may_hold_float(v->type))
        return v;
    Place *known = find_read(r, whole, i);
    if (known) {
        name_place(r, v->var, known, NULL);
        return v;
    }
    place_note_read(whole, i, s);
    s->kind = STEP_BUILTIN;
    s->place = place_new(r->n, v->type);
    name_place(r, v->var, s->place, NULL);
    return v;
}

/* A captured variable of a known closure, or a part of a value whose parts are known. */
static bool read_known_part(Reader *r, Expr *call, Expr **v) {
    Place *p = place_of(r->n, call->args[0]);
    uint32_t i = (uint32_t)call->args[1]->i;
    Known *k = known_of(r, call->args[0]), *part = NULL;
    p = place_here(p);
    if (p && !r->n->forward)
        place_take_apart(r->n, p, NULL); /* a record or tuple, as its type tells */
    if (!p || p->form == PLACE_LEAF || call->args[1]->kind != EXPR_LIT)
        return false;
    if (k && i < k->captured.len)
        part = k->known[i];
    *v = add_plain(r, "v", call);
    Place *of = i < p->nparts ? p->parts[i] : NULL;
    name_place(r, (*v)->var, part && part == k ? p : of,
               part); /* a closure that holds itself is one value */
    return true;
}

enum { LINEAR_MOST = 3 };
/* The accumulators or cotangents among the first LINEAR_MOST arguments of a builtin that is linear in them: a bit each. */
static uint32_t linear_args(const Expr *call) {
    static const struct {
        const char *name;
        uint32_t args;
    } table[] = {{"ad.add", 3},   {"ad.add_index", 5}, {"ad.add_part", 5},
                 {"ad.dense", 2}, {"ad.fit", 2},       {"ad.item", 1},
                 {"ad.own", 1},   {"ad.settle", 1},    {"ad.settle_parts", 1}};
    if (call->kind == EXPR_PROJ)
        return 1;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (expr_calls_builtin(call, table[i].name))
            return table[i].args;
    return 0;
}

/* Whether nothing is absent in the cotangent or tangent at p of a value of that type. */
static bool is_dense(const Place *p, Type *of) {
    of = type_resolve(of);
    const Type *type = p && p->type ? type_resolve(p->type) : NULL;
    if (p && p->form == PLACE_LEAF && type && type->tag == TY_TENSOR)
        return of->tag == TY_TENSOR && type_holds_float(of) == HOLDS_YES;
    if (!p || p->form != PLACE_TUPLE || of->tag != TY_TUPLE || of->nargs != p->nparts)
        return false;
    for (uint32_t i = 0; i < p->nparts; i++)
        if (!is_dense(p->parts[i], of->args[i]))
            return false;
    return p->nparts > 0;
}

/* The place of the cotangent that the builtin gives as it is, but for zeros in place of what is absent: it has the cells that it
 * had, and what is absent has none. NULL: it gives another one, or a tangent, which says itself what it lacks. */
static Place *kept_cells(const Reader *r, const Expr *call) {
    static const char *const names[] = {"ad.settle", "ad.settle_parts", "ad.dense", "ad.fit"};
    for (size_t i = 0; !r->n->forward && i < sizeof names / sizeof *names; i++)
        if (expr_calls_builtin(call, names[i]))
            return place_of(r->n, call->args[i / 2]);
    return NULL;
}

bool read_builtin(Reader *r, Expr *call, bool active, Expr **v) {
    bool captured = expr_calls_builtin(call, "ad.captured");
    if (captured && read_known_part(r, call, v))
        return true;
    if (captured && place_of(r->n, call->args[0])) {
        reverse_lack(r->p, "what a function captured that is not known");
        return false;
    }
    if (captured) { /* of a closure that is a constant */
        Known *k = known_of(r, call->args[0]);
        uint32_t i = (uint32_t)call->args[1]->i;
        *v = add_plain(r, "v", call);
        if (k && i < k->captured.len)
            name_place(r, (*v)->var, NULL, k->known[i]);
        return true;
    }
    if (expr_calls_builtin(call, "vmap.empty")) { /* without elements */
        *v = add_plain(r, "v", call);
        return true;
    }
    if (is_of_cells(call)) {
        *v = read_mirror_call(r, call);
        return true;
    }
    if (!active)
        return false;
    if (expr_calls_builtin(call, "vmap.plan")) {
        if ((*v = read_plan(r, call)))
            return true;
        reverse_refuse(r->p, "`vmap` finds code for all rows when it runs");
    }
    if (expr_calls_builtin(call, "ad.ones") || expr_calls_builtin(call, "ad.zeros")) {
        *v = add_plain(r, "v", call);
        return true;
    }
    if (expr_calls_builtin(call, "ad.item") && read_known_part(r, call, v))
        return true;
    bool fills = expr_calls_builtin(call, "ad.dense") || expr_calls_builtin(call, "ad.fit");
    bool has_cells = !(r->n->forward && r->p->merges);
    if (fills && has_cells && is_dense(place_of(r->n, call->args[1]), call->args[0]->type)) {
        *v = call->args[1]; /* it keeps its cells */
        return true;
    }
    uint32_t linear = linear_args(call);
    bool flows = false;
    for (uint32_t i = 0; linear >> i; i++)
        flows |= (linear >> i & 1) && place_of(r->n, call->args[i]);
    if (!linear)
        return false;
    if (flows && expr_calls_builtin(call, "ad.item") && call->args[1]->kind == EXPR_LIT) {
        *v = read_unknown_part(r, add_plain(r, "v", call), place_of(r->n, call->args[0]),
                               (uint32_t)call->args[1]->i);
        return true;
    }
    Place *same = kept_cells(r, call);
    *v = flows && !same ? add_linear(r, call) : add_plain(r, "v", call);
    if (same)
        name_place(r, (*v)->var, same, NULL);
    return true;
}

/* ---- tangents -------------------------------------------------------------------------------- */

/* The same builtin of the tangents of what it is linear in; what has none is (). */
static Expr *same_of_tangents(Way *w, const Step *s, Expr *const *tangents) {
    const Expr *e = s->e;
    if (e->kind == EXPR_PROJ)
        return b_builtin(&w->build, "ad.item", tangents[0],
                         expr_int(e->index, DT_I32, w->build.span), NULL);
    Expr **args = mem_new_n(Expr *, e->nargs + 1);
    for (uint32_t i = 0; i < e->nargs; i++) {
        bool linear = i < LINEAR_MOST && linear_args(e) >> i & 1;
        args[i] = !linear ? e->args[i] : tangents[i] ? tangents[i] : absent_value(w);
    }
    if (expr_calls_builtin(e, "ad.own"))
        return tangents[0];
    if (expr_calls_builtin(e, "ad.dense") ||
        expr_calls_builtin(e, "ad.fit")) /* what is absent stays absent */
        return b_builtin(&w->build, "ad.settle_parts", args[1], NULL);
    return b_builtin_n(&w->build, e->a->symbol->text, args, e->nargs);
}

void follow_builtin(Way *w, Step *s) {
    Expr *e = s->e;
    if (is_of_cells(e)) {
        follow_cells(w, s);
        return;
    }
    emit_let(w->block, s->var, e, false);
    if (!tangent_is_read(&w->n->read, s->place))
        return;
    Expr **args = e->kind == EXPR_PROJ ? &e->a : e->args;
    uint32_t linear = linear_args(e);
    Expr *tangents[LINEAR_MOST] = {NULL};
    Presence presence[LINEAR_MOST] = {ABSENT};
    uint32_t present = 0, perhaps = 0, unknown = 0, last = 0;
    for (uint32_t i = 0; linear >> i; i++) {
        if (!(linear >> i & 1))
            continue;
        Place *p = place_of(w->n, args[i]);
        presence[i] = tangent_presence(p);
        present += presence[i] == PRESENT;
        perhaps += presence[i] == PERHAPS;
        unknown += presence[i] == UNKNOWN;
        if (presence[i] != PRESENT && presence[i] != PERHAPS)
            continue;
        tangents[i] = acc_get(w, p);
        last = i;
    }
    if (!present && !perhaps) {
        acc_set(w, s->place, NULL, unknown ? UNKNOWN : ABSENT);
        return;
    }
    bool sum = expr_calls_builtin(e, "ad.add"), added = sum || linear == 5;
    Presence out = present ? PRESENT : PERHAPS;
    Expr *dv;
    if (e->kind == EXPR_PROJ && out == PRESENT) {
        dv = expr_proj(tangents[0], e->index, b_some_type("ct"), w->build.span);
    } else if (sum && present + perhaps == 1) {
        dv = tangents[last];
    } else {
        dv = same_of_tangents(w, s, tangents);
        if (added && !sum && presence[2] != PRESENT) { /* nothing may come to be added */
            Expr *there = b_builtin(&w->build, "ad.has_tangent",
                                    tangents[2] ? tangents[2] : absent_value(w), NULL);
            Expr *acc = tangents[0] ? tangents[0] : absent_value(w);
            dv = tangents[2] ? b_if(&w->build, there, dv, acc) : acc;
            out = presence[0] == PRESENT ? PRESENT : PERHAPS;
        } else if (expr_calls_builtin(e, "ad.add_part")) {
            out = PERHAPS;
        } else if (expr_calls_builtin(e, "ad.dense") || expr_calls_builtin(e, "ad.fit")) {
            /* what was absent, itself or a part of it, is zeros, which have no tangent */
            out = type_resolve(e->args[1]->type)->tag == TY_TENSOR ? out : PERHAPS;
        }
    }
    bool tensor = out == PRESENT && type_resolve(s->place->type)->tag == TY_TENSOR;
    acc_set(w, s->place, way_bind(w, dv, tensor ? s->place->type : NULL), out);
}

/* ---- the way back ---------------------------------------------------------------------------- */

static void add_to(Way *w, const Expr *arg, Expr *ct) {
    Place *p = place_of(w->n, arg);
    if (p)
        acc_add(w, p, ct);
}

/* An accumulator is a tuple that grows. */
static void note_growth(Way *w) {
    Program *program = w->n->program;
    program->changed |= !program->grows;
    program->grows = true;
}

/* The tuple of accumulators with one more in it, that part being absent there; NULL where it is not. */
static Expr *with_part(Way *w, const Expr *tuple, uint32_t i, Expr *ct) {
    uint32_t n = tuple ? tuple->nargs : 0, len = i < n ? n : i + 1;
    if (i < n && tuple->args[i]->kind != EXPR_ZERO)
        return NULL;
    Expr **parts = mem_new_n(Expr *, len);
    for (uint32_t k = 0; k < len; k++)
        parts[k] = k == i ? ct : k < n ? tuple->args[k] : absent_value(w);
    return b_tuple(&w->build, parts, len);
}

bool move_part(Way *w, const Step *s, Presence presence) {
    const Expr *e = s->e;
    bool reads = s->kind == STEP_BUILTIN &&
                 (e->kind == EXPR_PROJ || expr_calls_builtin(e, "ad.item"));
    Place *p = reads ? place_of(w->n, e->kind == EXPR_PROJ ? e->a : e->args[0]) : NULL;
    p = place_here(p);
    bool absent = p && acc_presence(p) == ABSENT;
    if (!p || p->form != PLACE_LEAF || p->aliases.len ||
        !(absent ? presence == PRESENT : p->acc->kind == EXPR_TUPLE))
        return false;
    uint32_t i = (uint32_t)(e->kind == EXPR_PROJ ? e->index : e->args[1]->i);
    Expr *sum = with_part(w, absent ? NULL : p->acc, i, acc_get(w, s->place));
    if (!sum)
        return false;
    note_growth(w);
    acc_set(w, s->place, NULL, ABSENT);
    acc_set(w, p, sum, PRESENT);
    return true;
}

static void add_part(Way *w, const Expr *arg, int64_t i, Expr *ct) {
    Place *p = place_of(w->n, arg);
    if (!p)
        return;
    p = place_here(p);
    if (p->form != PLACE_LEAF) { /* place_make_tuple made plain steps of all reads that it knew */
        reverse_give_up(w->n->program, "a frame holds another name of a value");
        return;
    }
    note_growth(w);
    bool known = acc_presence(p) == ABSENT || p->acc->kind == EXPR_TUPLE;
    Expr *sum = known ? with_part(w, p->acc, (uint32_t)i, ct) : NULL;
    if (!sum)
        sum = way_bind(w,
                       b_builtin(&w->build, "ad.add_part", acc_get(w, p),
                                 expr_int(i, DT_I32, w->build.span), ct, NULL),
                       NULL);
    acc_set(w, p, sum, PRESENT);
}

/* Whether that `ad.add_index` adds one number to a part that may have more elements. */
static bool adds_number(const Expr *call) {
    uint32_t rank;
    Type **dims;
    const char *spec = call->args[3]->text;
    bool element = type_get_rank(type_resolve(call->args[1]->type), &rank, &dims) &&
                   strlen(spec) == rank && strspn(spec, "icw") == rank;
    return type_has_rank0(call->args[2]->type) && !element;
}

/* What the rule of `add` gives for each of two sums: a value with a cell of its own, where a derivative around this one asks for
 * cells. */
static Expr *part_of_sum(Way *w, Expr *ct) {
    return w->n->program->merges ? ct
                                 : way_bind(w, b_builtin(&w->build, "ad.own", ct, NULL), ct->type);
}

void way_builtin(Way *w, Step *s, Expr *ct) {
    const Expr *e = s->e;
    if (e->kind == EXPR_PROJ) {
        add_part(w, e->a, e->index, ct);
    } else if (expr_calls_builtin(e, "ad.item")) {
        add_part(w, e->args[0], e->args[1]->i, ct);
    } else if (expr_calls_builtin(e, "ad.add")) {
        for (int i = 0; i < 2; i++)
            add_to(w, e->args[i], part_of_sum(w, ct));
    } else if (expr_calls_builtin(e, "ad.add_part")) {
        reverse_give_up(w->n->program, "what was added to a part of a frame is added to again");
    } else if (expr_calls_builtin(e, "ad.add_index")) {
        Attrs *attrs = mem_new(Attrs);
        AttrValue *values = mem_new_n(AttrValue, op_index.nattrs);
        values[op_attr_index(&op_index, "spec")] = (AttrValue){.kind = ATTR_STRING,
                                                               .text = e->args[3]->text};
        attrs->op = &op_index;
        attrs->values = values;
        Expr **args = mem_new_n(Expr *, 2);
        bool is_tuple = e->nargs == 5 && type_resolve(e->args[4]->type)->tag == TY_TUPLE;
        args[0] = ct;
        args[1] = is_tuple ? e->args[4] : b_tuple(&w->build, e->args + 4, e->nargs - 4);
        bool one = adds_number(e);
        Type *type = !one && place_of(w->n, e->args[2]) ? e->args[2]->type : b_some_type("ct");
        Expr *part = expr_call_op(&op_index, args, 2, attrs, type, w->build.span);
        part = way_bind(w, part, part->type);
        if (one)
            part = way_bind(w, b_op(&w->build, &op_sum, &part, 1, e->args[2]->type),
                            e->args[2]->type);
        add_to(w, e->args[0], ct);
        add_to(w, e->args[2], part);
    } else {
        add_to(w, e->args[e->nargs - 1], ct);
    }
}
