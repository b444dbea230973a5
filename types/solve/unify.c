/* SPDX-License-Identifier: Apache-2.0 */
/* Unification of types of all kinds. Types are DAGs: pairs of nodes that were unified are remembered while one
 * unification runs, so shared parts are compared once.
 *
 * Sizes are polynomials. An equation is solved when it is linear in an undetermined variable with coefficient 1
 * or -1. Otherwise it waits as the relation Same (LANGUAGE §4 "Dims"). */
#include <stdarg.h>

#include "base/mem.h"
#include "types/solve/solver_impl.h"

static bool unify(Solver *s, Map *same, Type *a, Type *b);

/* ---- mismatches ------------------------------------------------------------------------------ */

bool solver_fail(Solver *s, MismatchKind kind, Type *a, Type *b) {
    s->mismatch = (Mismatch){.kind = kind, .a = a, .b = b, .axis = -1, .path = ""};
    return false;
}

void solver_prefix_path(Solver *s, const char *fmt, ...) {
    Str step = {0};
    va_list ap;
    va_start(ap, fmt);
    str_vprintf(&step, fmt, ap);
    va_end(ap);
    const char *rest = s->mismatch.path;
    s->mismatch.path = *rest ? fmt_text("%s.%s", str_text(&step), rest) : str_text(&step);
}

const Mismatch *solver_mismatch(const Solver *s) { return &s->mismatch; }

const SizeClash *solver_clash(const Solver *s) { return &s->clash; }

void solver_set_place(Solver *s, Span span, TypePlace place) {
    s->span = span;
    s->place = place;
}

/* ---- variables ------------------------------------------------------------------------------- */

void solver_link(Solver *s, Type *var, Type *to) {
    if (var->kind == KIND_EFFECT) {
        var->var.link = to;
        return;
    }
    var->var.link = to;
    if (to->tag != TY_VAR && var->var.id < s->first_id)
        s->learned = true;
    solver_wake(s, &var->var);
}

typedef struct Lower {
    Type *var; /* the variable that is about to be linked, which must not occur */
    int level;
    uint32_t age;
    bool occurs;
    Type *rigid; /* a declared parameter of a deeper level, or NULL */
    Map seen;
    uint32_t count, depth;
    uint64_t steps;
    bool deep;
} Lower;

static void lower_parts(Lower *l, Type *t);

static void lower_levels(void *lower, Type *t) {
    Lower *l = lower;
    if (l->depth++ < TYPE_MAX_DEPTH)
        lower_parts(l, type_resolve(t));
    else
        l->deep = true;
    l->depth--;
}

static void lower_parts(Lower *l, Type *t) {
    l->steps++;
    if (!(t->flags & (TYPE_HAS_VARS | TYPE_HAS_PARAMS)))
        return;
    switch (t->tag) {
    case TY_VAR:
        if (t == l->var) {
            l->occurs = true;
            return;
        }
        if (t->var.age > l->age)
            t->var.age = l->age;
        if (t->var.level > l->level) {
            t->var.level = l->level;
            for (uint32_t i = 0; t->kind == KIND_EFFECT && i < t->var.nwatchers; i++)
                lower_levels(l, t->var.subs[i]);
        }
        return;
    case TY_PARAM:
        if (t->param.level > l->level)
            l->rigid = t;
        return;
    case TY_TENSOR:
    case TY_DIM:
    case TY_REF:
    case TY_DERIV: type_each_part(t, lower_levels, l); return;
    case TY_TUPLE:
    case TY_FN:
    case TY_DATA:
    case TY_SHAPE:
        /* In large types each node is visited once. */
        if (++l->count > 32) {
            if (map_has(&l->seen, t))
                return;
            map_set(&l->seen, t, t);
        }
        type_each_part(t, lower_levels, l);
        return;
    case TY_STRING:
    case TY_ERROR:
    case TY_DTYPE:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return;
    }
}

void solver_lower_levels(Solver *s, Type *t, int level) {
    Lower l = {.level = level, .age = UINT32_MAX};
    lower_levels(&l, t);
    s->counts.steps += l.steps;
}

/* Restricts what a dtype variable is linked to by the variable's class. */
static bool meet_dtypes(Solver *s, Type *var, Type *to) {
    DTypeSet both = var->var.dtypes & type_dtype_set(to);
    if (both == 0) {
        solver_fail(s, MISMATCH_DTYPE, var, to);
        s->mismatch.dtypes = var->var.dtypes;
        return false;
    }
    if (to->tag == TY_VAR) {
        if (both != to->var.dtypes) {
            to->var.dtypes = both;
            solver_wake(s, &to->var);
        }
        to->var.weak = to->var.weak || var->var.weak;
        if (var->var.weak)
            vec_push(&s->weak, to);
        return true;
    }
    return to->tag != TY_PARAM || solver_restrict(s, to, var->var.dtypes);
}

static bool post_equation(Solver *s, Type *a, Type *b) {
    Type *args[] = {a, b};
    Relation *r = solver_post(s, &rel_same, args, 2, NULL, s->span);
    r->data = type_place_keep(s->place);
    return true;
}

/* Links var to `to`. Both are resolved, and they differ. */
bool bind_var(Solver *s, Type *var, Type *to) {
    if (to->kind != var->kind)
        return solver_fail(s, MISMATCH_KIND, var, to);
    if (to->tag == TY_VAR) {
        /* Link the variable with fewer watchers, since their relations run again. */
        bool swap = var->kind == KIND_EFFECT ? false : to->var.nwatchers < var->var.nwatchers;
        if (swap) {
            Type *other = var;
            var = to;
            to = other;
        }
        if (to->var.level > var->var.level)
            to->var.level = var->var.level;
        if (to->var.age > var->var.age)
            to->var.age = var->var.age;
        to->var.asked = to->var.asked || var->var.asked;
        to->var.made = to->var.made || var->var.made;
        if (!to->var.hint)
            to->var.hint = var->var.hint;
    } else {
        Lower l = {.var = var, .level = var->var.level, .age = var->var.age};
        lower_levels(&l, to);
        s->counts.steps += l.steps;
        if (var->var.asked && solver_has_each(to))
            return solver_fail(s, MISMATCH_DIM, to, var);
        if (l.occurs && to->tag == TY_DERIV)
            return post_equation(s, var, to); /* a = D(a) holds for data of floats */
        if (l.occurs)
            return solver_fail(s, MISMATCH_OCCURS, var, to);
        if (l.rigid)
            return solver_fail(s, MISMATCH_RIGID, l.rigid, to);
        if (l.deep)
            return solver_fail(s, MISMATCH_DEPTH, var, var);
    }
    if (var->kind == KIND_DTYPE && !meet_dtypes(s, var, to))
        return false;
    int64_t n;
    if (var->kind == KIND_DIM && type_get_int(to, &n) && n < 0)
        return solver_fail(s, MISMATCH_DIM, var, to);
    solver_link(s, var, to);
    return true;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

typedef struct Solve {
    Type *best; /* the variable to solve for, or NULL */
    int64_t coef;
    bool vars, unknowns; /* the equation has an undetermined variable, a `?` */
    Type *scaled;        /* the only variable, where it stands alone with the coefficient `scale` */
    int64_t scale;
    Map inside; /* variables that occur in a product or another atom */
} Solve;

static void collect_inside(Solve *v, Type *t);

static void collect_atom(Solve *v, const DimAtom *a) {
    if (a->kind == DIM_ATOM_TYPE) {
        collect_inside(v, a->type);
    } else {
        collect_inside(v, a->a);
        collect_inside(v, a->b);
    }
}

static void collect_inside(Solve *v, Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_VAR) {
        v->vars = true;
        map_set(&v->inside, t, t);
    } else if (t->tag == TY_ANY) {
        v->unknowns |= !t->param.declared;
    } else if (t->tag == TY_DIM) {
        for (uint32_t i = 0; i < t->dim->nterms; i++)
            for (uint32_t k = 0; k < t->dim->terms[i].natoms; k++)
                collect_atom(v, t->dim->terms[i].atoms[k]);
    }
}

static bool is_lone(const DimMonomial *m, TypeTag tag) {
    return m->natoms == 1 && m->atoms[0]->kind == DIM_ATOM_TYPE && m->atoms[0]->type->tag == tag;
}

/* Finds the variable of the deepest level that is linear with coefficient ±1 in the equation d = 0. */
static Solve analyse_equation(const Dim *d) {
    Solve v = {0};
    uint32_t nlone = 0;
    for (uint32_t i = 0; i < d->nterms; i++)
        if (!is_lone(&d->terms[i], TY_VAR))
            for (uint32_t k = 0; k < d->terms[i].natoms; k++)
                collect_atom(&v, d->terms[i].atoms[k]);
    for (uint32_t i = 0; i < d->nterms; i++) {
        const DimMonomial *m = &d->terms[i];
        if (!is_lone(m, TY_VAR))
            continue;
        v.vars = true;
        Type *t = m->atoms[0]->type;
        nlone++;
        v.scaled = t;
        v.scale = m->coef;
        if ((m->coef != 1 && m->coef != -1) || map_has(&v.inside, t))
            continue;
        if (!v.best || t->var.level > v.best->var.level) {
            v.best = t;
            v.coef = m->coef;
        }
    }
    if (nlone != 1 || v.inside.len)
        v.scaled = NULL;
    return v;
}

static bool contains_var(Type *t, Type *var) {
    Solve v = {0};
    collect_inside(&v, t);
    return map_has(&v.inside, var);
}

/* Divides a difference that may be 0 by the common divisor of its coefficients. This divides the constant too, or
 * dim_compare had found that the difference is never 0. */
static Type *divide_by_content(Type *difference) {
    int64_t g = 0;
    for (uint32_t i = 0; difference->tag == TY_DIM && i < difference->dim->nterms; i++) {
        int64_t c = difference->dim->terms[i].coef;
        while (c != 0) {
            int64_t rest = g % c;
            g = c;
            c = rest;
        }
    }
    g = g < 0 ? -g : g;
    return g > 1 ? dim_floordiv(difference, type_dim_int(g, NULL)) : difference;
}

/* Solves max(side, k) = c for numbers k and c: side = c where c > k, and no solution (*is is NULL) where c < k.
 * Likewise for min. False where d = 0 is no such equation. */
static bool solve_extreme(const Dim *d, Type **side, Type **is) {
    const DimMonomial *m = d->terms;
    if (d->nterms != 1 || m->natoms != 1 || (m->coef != 1 && m->coef != -1) ||
        (m->atoms[0]->kind != DIM_ATOM_MAX && m->atoms[0]->kind != DIM_ATOM_MIN))
        return false;
    const DimAtom *a = m->atoms[0];
    int64_t k, c = m->coef == 1 ? -d->constant : d->constant;
    bool first = type_get_int(a->a, &k);
    if ((!first && !type_get_int(a->b, &k)) || k == c)
        return false;
    *side = first ? a->b : a->a;
    *is = (c > k) == (a->kind == DIM_ATOM_MAX) ? type_dim_int(c, NULL) : NULL;
    return true;
}

bool dims_must_wait(Type *a, Type *b) {
    if (dim_compare(a, b) != DIM_UNDECIDED)
        return false;
    Type *d = divide_by_content(dim_sub(type_resolve(a), type_resolve(b))), *side, *is;
    if (d->tag != TY_DIM)
        return false;
    Solve v = analyse_equation(d->dim);
    return v.vars && !v.best && !solve_extreme(d->dim, &side, &is);
}

/* Adds a check where var is older than an unknown in `to`, or an operator makes it later (Note [Open values] in
 * unknown.c). */
static bool check_apart(Solver *s, Type *var, Type *to, bool gradual) {
    bool made = var->var.made && type_has(to, TY_ANY) && s->arg != -1;
    if (!gradual || to->tag == TY_VAR || !(made || unknowns_are_apart(s, var, to, true)))
        return false;
    solver_add_residual(s, var, to, s->span, s->place);
    return true;
}

bool unify_dims(Solver *s, Type *a, Type *b, bool gradual) {
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return true;
    if ((a->tag == TY_VAR && check_apart(s, a, b, gradual)) ||
        (b->tag == TY_VAR && check_apart(s, b, a, gradual)))
        return true;
    if (a->tag == TY_VAR && b->tag != TY_DIM)
        return bind_var(s, a, b);
    if (b->tag == TY_VAR && a->tag != TY_DIM)
        return bind_var(s, b, a);
    if (a->tag == TY_VAR)
        return contains_var(b, a) ? solver_fail(s, MISMATCH_OCCURS, a, b) : bind_var(s, a, b);
    if (b->tag == TY_VAR)
        return contains_var(a, b) ? solver_fail(s, MISMATCH_OCCURS, b, a) : bind_var(s, b, a);
    Type *difference = dim_sub(a, b);
    int64_t n;
    if (type_get_int(difference, &n))
        return n == 0 || solver_fail(s, MISMATCH_DIM, a, b);
    switch (dim_compare(a, b)) { /* decides about floordiv, min and max */
    case DIM_EQUAL: return true;
    case DIM_DIFFERENT: return solver_fail(s, MISMATCH_DIM, a, b);
    case DIM_UNDECIDED: break;
    }
    difference = divide_by_content(difference);
    if (difference->tag == TY_VAR)
        return bind_var(s, difference, type_dim_int(0, NULL));
    if (difference->tag == TY_DIM) {
        Solve v = analyse_equation(difference->dim);
        if (v.best) {
            /* coef * best + rest = 0 */
            Type *rest = v.coef == 1 ? dim_sub(difference, v.best) : dim_add(difference, v.best);
            Type *value = v.coef == 1 ? dim_sub(type_dim_int(0, NULL), rest) : rest;
            if (value->tag == TY_DIM && value->dim->nterms == 0 && value->dim->constant < 0)
                return solver_fail(s, MISMATCH_DIM, a, b);
            return bind_var(s, v.best, value);
        }
        Type *side, *is;
        if (v.vars && solve_extreme(difference->dim, &side, &is))
            return is ? unify_dims(s, side, is, gradual) : solver_fail(s, MISMATCH_DIM, a, b);
        if (v.scaled && v.unknowns && gradual) {
            /* scale * v + rest = 0. So v is a quotient, which must be whole at run time. */
            Type *rest = dim_sub(difference, dim_mul(type_dim_int(v.scale, NULL), v.scaled));
            Type *negated = v.scale > 0 ? dim_sub(type_dim_int(0, NULL), rest) : rest;
            int64_t by = v.scale > 0 ? v.scale : -v.scale;
            if (!bind_var(s, v.scaled, dim_floordiv(negated, type_dim_int(by, NULL))))
                return false;
            solver_add_residual(s, a, b, s->span, s->place);
            return true;
        }
        if (v.vars)
            return post_equation(s, a, b);
        if (v.unknowns && gradual) {
            solver_add_residual(s, a, b, s->span, s->place);
            return true;
        }
    } else if (difference->tag == TY_ANY && !difference->param.declared && gradual) {
        solver_add_residual(s, a, b, s->span, s->place);
        return true;
    }
    bool rigid = (a->flags | b->flags) & TYPE_HAS_PARAMS;
    return solver_fail(s, rigid ? MISMATCH_RIGID : MISMATCH_DIM, a, b);
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *find_param_name(const Type *data, uint32_t i) {
    return i < data->decl->nparams && data->decl->params[i]->param.name
               ? data->decl->params[i]->param.name->text
               : "";
}

static bool unify_shapes(Solver *s, Map *same, Type *a, Type *b) {
    if (a->nargs != b->nargs)
        return solver_fail(s, MISMATCH_RANK, a, b);
    for (uint32_t i = 0; i < a->nargs; i++) {
        s->axis = (int)i;
        if (!unify(s, same, a->args[i], b->args[i])) {
            s->mismatch.axis = (int)i;
            return false;
        }
    }
    s->axis = -1;
    return true;
}

/* Adds a check that a shape of unknown rank equals another. Open sizes of the other become unknowns. */
static bool unify_unknown_shape(Solver *s, Type *unknown, Type *shape) {
    if (!s->gradual)
        return solver_fail(s, MISMATCH_HEAD, unknown, shape);
    TypeVec open = {0};
    Map seen = {0};
    type_collect(shape, TY_VAR, &seen, &open);
    for (size_t i = 0; i < open.len; i++)
        solver_link(s, open.data[i], type_any(KIND_DIM, unknown->origin));
    solver_add_residual(s, unknown, shape, s->span, s->place);
    return true;
}

/* D(a) is a tensor of floats only where a is that tensor. Otherwise D is not inverted, and the equation waits until
 * one of the two is known. */
static bool unify_deriv(Solver *s, Map *same, Type *a, Type *b) {
    if (type_equal(a, b))
        return true;
    Type *tensor = a->tag == TY_TENSOR ? a : b->tag == TY_TENSOR ? b : NULL;
    if (tensor)
        return unify(s, same, tensor == a ? b->elem : a->elem, tensor) &&
               solver_restrict(s, tensor->tensor.dtype, DTS_FLOAT);
    /* A D without variables is reduced no further, so only another D can equal it. */
    bool open = (a->tag == TY_DERIV && type_has_vars(a)) ||
                (b->tag == TY_DERIV && type_has_vars(b));
    if (a->tag == TY_DERIV && b->tag == TY_DERIV && type_resolve(a->elem)->tag == TY_DATA &&
        type_resolve(b->elem)->tag == TY_DATA)
        return unify(s, same, a->elem, b->elem);
    return open ? post_equation(s, a, b) : solver_fail(s, MISMATCH_HEAD, a, b);
}

/* An arrow's effect is an upper bound, so an arrow with a lower effect keeps it. Only the effects that a variable
 * includes are carried over. */
static void unify_effects(Solver *s, Type *a, Type *b) {
    if (a->tag != TY_VAR && b->tag == TY_VAR) {
        unify_effects(s, b, a);
    } else if (a->tag == TY_VAR && b->tag == TY_VAR) {
        if (a == b)
            return;
        if (b->var.level > a->var.level) {
            Lower l = {.level = a->var.level, .age = UINT32_MAX};
            lower_levels(&l, b);
        }
        a->var.link = b;
        for (uint32_t i = 0; i < a->var.nwatchers; i++)
            solver_effect_include(s, a->var.subs[i], b);
    } else if (a->tag == TY_VAR && b->tag == TY_ALLOCATES) {
        a->var.link = b;
    } else if (a->tag == TY_VAR && b->tag == TY_PARAM) {
        solver_effect_include(s, b, a);
    }
}

static bool unify_heads(Solver *s, Map *same, Type *a, Type *b) {
    switch (a->tag) {
    case TY_TENSOR: {
        if (!unify(s, same, a->tensor.shape, b->tensor.shape))
            return false;
        return unify(s, same, a->tensor.dtype, b->tensor.dtype);
    }
    case TY_TUPLE:
        if (a->nargs != b->nargs)
            return solver_fail(s, MISMATCH_ARITY, a, b);
        for (uint32_t i = 0; i < a->nargs; i++)
            if (!unify(s, same, a->args[i], b->args[i])) {
                solver_prefix_path(s, "%u", i);
                return false;
            }
        return true;
    case TY_FN:
        if (a->nargs != b->nargs)
            return solver_fail(s, MISMATCH_ARITY, a, b);
        if (a->fn.named && b->fn.named)
            solver_fix_names(s, &a, &b, true);
        for (uint32_t i = 0; i < a->nargs; i++)
            if (!unify(s, same, a->args[i], b->args[i])) {
                solver_prefix_path(s, "parameter %u", i + 1);
                return false;
            }
        if (!unify(s, same, a->fn.result, b->fn.result)) {
            solver_prefix_path(s, "result");
            return false;
        }
        unify_effects(s, type_resolve(a->fn.effect), type_resolve(b->fn.effect));
        return true;
    case TY_REF: return unify(s, same, a->elem, b->elem);
    case TY_DATA:
        if (a->decl != b->decl)
            return solver_fail(s, MISMATCH_HEAD, a, b);
        for (uint32_t i = 0; i < a->nargs; i++)
            if (!unify(s, same, a->args[i], b->args[i])) {
                solver_prefix_path(s, "%s", find_param_name(a, i));
                return false;
            }
        return true;
    case TY_DTYPE: return a->dtype_value == b->dtype_value || solver_fail(s, MISMATCH_DTYPE, a, b);
    case TY_SHAPE: return unify_shapes(s, same, a, b);
    case TY_STRING:
    case TY_PURE:
    case TY_ALLOCATES:
    case TY_ERROR: return true;
    case TY_PARAM:
    case TY_VAR:
    case TY_DERIV:
    case TY_DIM:
    case TY_ANY: break;
    }
    return solver_fail(s, MISMATCH_HEAD, a, b);
}

/* Links the variables of a type that met an error type, so that the mistake is not reported again. */
static void absorb_error(Solver *s, Type *t) {
    TypeVec vars = {0};
    Map seen = {0};
    type_collect(t, TY_VAR, &seen, &vars);
    for (size_t i = 0; i < vars.len; i++)
        if (vars.data[i]->kind == KIND_TYPE && !vars.data[i]->var.link)
            solver_link(s, vars.data[i], type_error());
}

static bool unify(Solver *s, Map *same, Type *a, Type *b) {
    s->counts.steps++;
    a = type_resolve(a);
    b = type_resolve(b);
    if (a == b)
        return true;
    if (a->kind != b->kind)
        return solver_fail(s, MISMATCH_KIND, a, b);
    if (a->kind == KIND_DIM)
        return unify_dims(s, a, b, s->gradual);
    if (a->kind == KIND_EFFECT) {
        unify_effects(s, a, b);
        return true;
    }
    if (a->tag == TY_ERROR || b->tag == TY_ERROR) {
        absorb_error(s, a->tag == TY_ERROR ? b : a);
        return true;
    }
    if (a->tag == TY_VAR)
        return bind_var(s, a, b);
    if (b->tag == TY_VAR)
        return bind_var(s, b, a);
    if (a->tag == TY_DERIV || b->tag == TY_DERIV)
        return unify_deriv(s, same, a, b);
    if (a->tag == TY_ANY)
        return unify_unknown_shape(s, a, b);
    if (b->tag == TY_ANY)
        return unify_unknown_shape(s, b, a);
    if (a->tag == TY_PARAM || b->tag == TY_PARAM)
        return solver_fail(s, MISMATCH_RIGID, a, b);
    if (a->tag != b->tag)
        return solver_fail(s, MISMATCH_HEAD, a, b);
    bool composite = a->tag == TY_TUPLE || a->tag == TY_FN || a->tag == TY_DATA;
    if (composite) {
        if (map_find(same, a) == b)
            return true;
        map_set(same, a, b);
    }
    return unify_heads(s, same, a, b);
}

static bool unify_mode(Solver *s, Type *a, Type *b, bool gradual) {
    Map same = {0};
    bool before = s->gradual;
    s->gradual = gradual;
    bool ok = unify(s, &same, a, b);
    s->gradual = before;
    return ok;
}

bool solver_unify(Solver *s, Type *a, Type *b) { return unify_mode(s, a, b, false); }

bool unify_gradual(Solver *s, Type *a, Type *b) { return unify_mode(s, a, b, true); }

bool unify_sizes(Solver *s, Type *a, Type *b, bool gradual) {
    return a->kind == KIND_DIM ? unify_dims(s, a, b, gradual) : unify_mode(s, a, b, gradual);
}

/* ---- classes of dtypes ----------------------------------------------------------------------- */

bool solver_restrict(Solver *s, Type *dtype, DTypeSet set) {
    dtype = type_resolve(dtype);
    DTypeSet had = type_dtype_set(dtype), both = had & set;
    if (both == had)
        return true;
    /* Users need not declare Num, which a printed type leaves out. */
    bool allowed = dtype->tag == TY_VAR ||
                   (dtype->tag == TY_PARAM && (s->infer_where || set == DTS_NUM));
    if (both == 0 || !allowed) {
        solver_fail(s, MISMATCH_DTYPE, dtype, dtype);
        s->mismatch.dtypes = set;
        return false;
    }
    if (dtype->tag == TY_VAR) {
        dtype->var.dtypes = both;
        solver_wake(s, &dtype->var);
    } else {
        dtype->param.dtypes = both;
    }
    return true;
}

/* ---- effects --------------------------------------------------------------------------------- */

void solver_effect_include(Solver *s, Type *sub, Type *sup) {
    (void)s;
    sub = type_resolve(sub);
    sup = type_resolve(sup);
    if (sup->tag != TY_VAR || sub == sup || sub->tag == TY_PURE)
        return;
    TypeVar *v = &sup->var;
    if (sub->tag == TY_VAR && v->level < sub->var.level) {
        Lower l = {.level = v->level, .age = UINT32_MAX};
        lower_levels(&l, sub);
    }
    /* The latest effects often come again. An older one that is added again does no harm. */
    for (uint32_t i = v->nwatchers > 4 ? v->nwatchers - 4 : 0; i < v->nwatchers; i++)
        if (type_resolve(v->subs[i]) == sub)
            return;
    if (v->nwatchers == v->cap_watchers) {
        v->cap_watchers = v->cap_watchers ? 2 * v->cap_watchers : 4;
        v->subs = mem_realloc(v->subs, v->cap_watchers * sizeof *v->subs);
    }
    v->subs[v->nwatchers++] = sub;
}

static bool allocates(Solver *s, Map *seen, Type *e) {
    e = type_resolve(e);
    if (e->tag == TY_PURE)
        return false;
    if (e->tag != TY_VAR || e->var.level < s->level)
        return true;
    if (map_has(seen, e))
        return false;
    map_set(seen, e, e);
    for (uint32_t i = 0; i < e->var.nwatchers; i++)
        if (allocates(s, seen, e->var.subs[i]))
            return true;
    return false;
}

bool solver_effect_allocates(Solver *s, Type *effect) {
    Map seen = {0};
    return allocates(s, &seen, effect);
}
