/* SPDX-License-Identifier: Apache-2.0 */
/* fold: does now what is known already.
 *
 *   if (True) { a } else { b }                          becomes   a
 *   let p = (f(x), y); p.0 + p.1                        becomes   let t = f(x); t + y
 *   match (Some(x)) { Some(y) => g(y), None => 0 }      becomes   g(x)
 *   2 * 3 + n                                           becomes   6 + n
 *   if (mode == "add") { a } else { b }                 becomes   a, where mode is "add"
 *
 * Of a `match`, the arms that cannot be taken go; if it stays open which of the others is, the rest is left. Parts of
 * data that is taken apart later get names, in the order in which they were computed. Operators on
 * literals are computed by their scalar programs, which say what they mean; a result that has no literal
 * (nan, an infinity, -0.0) is left to the run, and so is what fails. Of a cotangent that has all its parts, those that
 * are absent need not be filled, and a single product that is added to it need not wait for others.
 *
 * It does not look into references, nor at what function literals do that are not called here (Note [Calls that
 * stay] in inline.c); there it replaces the names that went. */
#include <math.h>
#include <string.h>

#include "ops/elementwise.h"
#include "passes/inline.h"
#include "passes/known_type.h"

Expr *pass_fold(PassCtx *ctx, Expr *e);

typedef struct Folder {
    PassCtx *ctx;
    Map done;  /* Expr -> what became of it */
    Map atoms; /* Var -> the name or literal that stands for it */
    Map known; /* Var -> a tuple, or a call of a constructor, of names and literals */
    Map apart; /* Var that is projected or matched somewhere */
    Map made;  /* Var bound to a tensor that an operator gives -> its value */
    Map sums;  /* Var -> the sum of two cotangents, such tensors, that it is bound to */
    const Expr *root;
    uint64_t walk;   /* that of note_apart */
    uint32_t nested; /* function literals around the expression, besides the root */
} Folder;

static Expr *fold(Folder *f, Expr *e);

static Expr *fold_child(void *ctx, Expr *child) { return fold(ctx, child); }

/* ---- what is known --------------------------------------------------------------------------- */

static bool is_atom(const Expr *e) {
    enum { WORD = 16 /* bytes of a text, as of a mode, that may be repeated */ };
    if (e->kind == EXPR_GLOBAL)
        return e->global->kind == GLOBAL_DEF || e->global->kind == GLOBAL_BUILTIN;
    if (e->kind == EXPR_STRING)
        return e->text_len <= WORD;
    return e->kind == EXPR_VAR || (e->kind == EXPR_LIT && !e->like) || e->kind == EXPR_CONST ||
           e->kind == EXPR_OP || e->kind == EXPR_CTOR || (e->kind == EXPR_TUPLE && e->nargs == 0) ||
           (e->kind == EXPR_ZERO && !e->like && type_is_unit(e->zero_type));
}

static bool is_data(const Expr *e) {
    return (e->kind == EXPR_TUPLE && e->nargs) ||
           (e->kind == EXPR_CALL && e->a->kind == EXPR_CTOR && e->nargs);
}

static bool has_atoms_only(const Expr *e) {
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!is_atom(e->args[i]))
            return false;
    return true;
}

/* The tuple or data that a folded expression is; NULL where that is not known. */
static Expr *structure_of(Folder *f, Expr *e) {
    if (e->kind == EXPR_VAR)
        return map_find(&f->known, e->var);
    return is_data(e) || (e->kind == EXPR_CTOR && e->ctor->nfields == 0) ? e : NULL;
}

static void note_apart(void *ctx, Expr *e) {
    Folder *f = ctx;
    for (; !expr_is_leaf(e) && walk_enter(f->walk, e); e = e->body) {
        pass_visit(f->ctx);
        if ((e->kind == EXPR_PROJ || e->kind == EXPR_FIELD || e->kind == EXPR_MATCH) &&
            e->a->kind == EXPR_VAR)
            map_set(&f->apart, e->a->var, e);
        if (e->kind != EXPR_LET) {
            expr_each_child(e, note_apart, f);
            return;
        }
        note_apart(f, e->a);
    }
}

static Expr *atom_at(Expr *atom, const Expr *use) {
    atom = expr_copy(atom);
    atom->span = use->span;
    atom->inlined = use->inlined;
    if (atom->kind == EXPR_VAR || atom->kind == EXPR_CONST)
        atom->type = use->type;
    return atom;
}

/* Whether e is a tensor that is there whatever the run decides, and is added to no more. */
static bool gives_tensor(const Folder *f, const Expr *e) {
    if (e->kind == EXPR_VAR)
        return map_has(&f->made, e->var);
    if (e->kind != EXPR_CALL || e->mode || e->drop)
        return false;
    return e->a->kind == EXPR_OP ? !e->a->op->tuple : is_settling(e) && gives_tensor(f, e->args[0]);
}

/* A product to which another one is added is no sum here: the two may run as one. */
static bool is_sum(const Folder *f, const Expr *e) {
    if (!expr_calls_builtin(e, "ad.add") || !gives_tensor(f, e->args[0]) ||
        !gives_tensor(f, e->args[1]))
        return false;
    const Expr *first = e->args[0]->kind == EXPR_VAR ? map_find(&f->made, e->args[0]->var)
                                                     : e->args[0];
    return first->a->kind != EXPR_OP || first->a->op->pattern != OP_PRODUCT;
}

static void note_value(Folder *f, Var *v, const Expr *value) {
    if (gives_tensor(f, value))
        map_set(&f->made, v, (void *)(uintptr_t)value);
    if (is_sum(f, value))
        map_set(&f->sums, v, (void *)(uintptr_t)value);
}

/* The same data with names for its parts, which `links` binds. */
static Expr *name_parts(Folder *f, Expr *e, Links *links) {
    if (has_atoms_only(e))
        return e;
    Expr *copy = expr_copy(e);
    copy->args = mem_new_n(Expr *, e->nargs);
    for (uint32_t i = 0; i < e->nargs; i++) {
        Expr *part = copy->args[i] = e->args[i];
        if (is_atom(part))
            continue;
        Expr *link = expr_new(EXPR_LET, e->type, part->span);
        link->var = var_new(sym_intern("t"), part->type, part->span);
        if (is_data(part))
            part = name_parts(f, part, links);
        link->a = part;
        vec_push(links, link);
        note_value(f, link->var, part);
        if (is_data(part) && has_atoms_only(part))
            map_set(&f->known, link->var, part);
        copy->args[i] = expr_var(link->var, part->span);
    }
    return copy;
}

/* ---- operators on literals ------------------------------------------------------------------- */

static bool literal_of(const Expr *e, DType *t, ScalarValue *v) {
    if (e->kind != EXPR_LIT || e->like || !e->type || !type_get_dtype(e->type, t))
        return false;
    if (dtype_is_float(*t)) {
        double f = e->is_float ? e->f : (double)e->i;
        unsigned char p[8];
        if (!e->is_float && e->i < 0)
            return false;
        elem_set_float(p, *t, f);
        v->f = elem_get_float(p, *t);
        return true;
    }
    v->i = e->i;
    return !e->is_float;
}

static Expr *literal_at(DType t, ScalarValue v, const Expr *use) {
    DType wanted;
    if (use->type && type_get_dtype(use->type, &wanted) && wanted != t)
        return NULL;
    if (t == DT_BOOL)
        return expr_bool(v.i != 0, use->span);
    if (!dtype_is_float(t))
        return v.i == INT64_MIN || t == DT_U64 ? NULL : expr_int(v.i, t, use->span);
    return isfinite(v.f) && !(v.f == 0 && signbit(v.f)) ? expr_float(v.f, t, use->span) : NULL;
}

static Expr *fold_operator(Expr *e) {
    const Op *op = e->a->op;
    DType t, u, result;
    ScalarValue x = {0}, y = {0}, v = {0};
    int32_t status = KERNEL_DONE;
    if (op->scalar != OP_SCALAR_FORMULA || op->nattrs || e->nsizes || e->nargs < 1 ||
        e->nargs > 2 || !literal_of(e->args[0], &t, &x))
        return NULL;
    if (e->nargs == 2 && (!literal_of(e->args[1], &u, &y) || u != t))
        return NULL;
    bool done = e->nargs == 2 ? op_scalar_eval2(op, t, x, y, &result, &v, &status)
                              : op_scalar_eval1(op, t, x, &result, &v, &status);
    return done && status == KERNEL_DONE ? literal_at(result, v, e) : NULL;
}

/* Of two texts, as a rule of a derivative compares what an attribute says. */
static Expr *fold_equal(const Expr *e) {
    if (e->a->kind != EXPR_STRING || e->b->kind != EXPR_STRING)
        return NULL;
    bool same = e->a->text_len == e->b->text_len && !memcmp(e->a->text, e->b->text, e->a->text_len);
    return expr_bool(same != e->negate, e->span);
}

/* ---- matches --------------------------------------------------------------------------------- */

typedef enum Outcome { NEVER, OPEN, ALWAYS } Outcome;

static Outcome match_parts(Folder *f, const Pattern *p, const Expr *data, Map *bound);

static Outcome match_literal(const Pattern *p, const Expr *subject) {
    DType t, u;
    ScalarValue v, w;
    if (!literal_of(subject, &t, &v) || !literal_of(p->lit, &u, &w) || t != u || dtype_is_float(t))
        return OPEN;
    return v.i == w.i ? ALWAYS : NEVER;
}

/* Whether a folded subject matches; bound: gets the variables of the pattern. */
static Outcome match(Folder *f, const Pattern *p, Expr *subject, Map *bound) {
    switch (p->kind) {
    case PAT_WILDCARD: return ALWAYS;
    case PAT_VAR:
        if (!is_atom(subject))
            return OPEN;
        map_set(bound, p->var, subject);
        return ALWAYS;
    case PAT_LIT: return match_literal(p, subject);
    case PAT_STRING: return OPEN;
    case PAT_CTOR:
    case PAT_TUPLE: {
        Expr *data = structure_of(f, subject);
        return data ? match_parts(f, p, data, bound) : OPEN;
    }
    }
    return OPEN;
}

static Outcome match_parts(Folder *f, const Pattern *p, const Expr *data, Map *bound) {
    const Ctor *ctor = data->kind == EXPR_CALL   ? data->a->ctor
                       : data->kind == EXPR_CTOR ? data->ctor
                                                 : NULL;
    if (p->kind == PAT_CTOR ? ctor != p->ctor : ctor != NULL)
        return p->kind == PAT_CTOR && ctor ? NEVER : OPEN;
    Outcome all = ALWAYS;
    for (uint32_t i = 0; i < p->nargs && i < data->nargs; i++) {
        Outcome one = match(f, p->args[i], data->args[i], bound);
        all = one < all ? one : all;
    }
    return all;
}

static Pattern *wildcard_like(const Pattern *p) {
    Pattern *all = mem_new(Pattern);
    *all = (Pattern){.kind = PAT_WILDCARD, .span = p->span, .type = p->type};
    return all;
}

static Expr *fold_match(Folder *f, Expr *e) {
    Expr *subject = fold(f, e->a), *named = subject;
    Links links = {0};
    if (is_data(subject))
        named = name_parts(f, subject, &links);
    VEC(Arm) arms = {0};
    bool dropped = false;
    for (uint32_t i = 0; i < e->narms; i++) {
        Map bound = {0};
        Outcome outcome = match(f, e->arms[i].pattern, named, &bound);
        if (outcome == NEVER) {
            dropped = true;
            continue;
        }
        if (outcome == ALWAYS && !e->arms[i].guard && !arms.len) {
            map_add(&f->atoms, &bound);
            return close_links(&links, fold(f, e->arms[i].body));
        }
        Arm arm = e->arms[i];
        bool is_last = outcome == ALWAYS && !arm.guard;
        if (is_last && arm.pattern->kind != PAT_VAR) {
            /* It asks nothing more: what the pattern binds is known. */
            arm.pattern = wildcard_like(arm.pattern);
            map_add(&f->atoms, &bound);
        }
        arm.guard = arm.guard ? fold(f, arm.guard) : NULL;
        arm.body = fold(f, arm.body);
        vec_push(&arms, arm);
        if (is_last) {
            dropped = false;
            break;
        }
    }
    Expr *copy = expr_copy(e);
    copy->a = named;
    if (arms.len) {
        copy->arms = arms.data;
        copy->partial |= dropped; /* it covers no longer what it cannot meet */
        copy->narms = (uint32_t)arms.len;
    } else {
        for (uint32_t i = 0; i < e->narms; i++) {
            copy->arms = i ? copy->arms : mem_new_n(Arm, e->narms);
            copy->arms[i] = e->arms[i];
            copy->arms[i].guard = e->arms[i].guard ? fold(f, e->arms[i].guard) : NULL;
            copy->arms[i].body = fold(f, e->arms[i].body);
        }
    }
    return close_links(&links, copy);
}

/* ---- cotangents ------------------------------------------------------------------------------ */

/* The type of part i of data of that type; NULL where it is not known. */
static Type *type_of_part(const Expr *data, Type *t, uint32_t i) {
    if (data->kind == EXPR_TUPLE)
        return t && t->tag == TY_TUPLE && i < t->nargs ? t->args[i] : NULL;
    const Ctor *ctor = data->a->ctor;
    bool is_known = t && t->tag == TY_DATA && t->decl == ctor->decl && !t->decl->nexists &&
                    t->nargs == t->decl->nparams && i < ctor->nfields;
    return is_known ? type_substitute(ctor->fields[i], t->decl->params, t->args, t->nargs) : NULL;
}

/* Whether the cotangent of a value of that type has a tensor wherever the value has one: nothing in it is absent, or
 * added to later. */
static bool is_whole(Folder *f, Expr *ct, Type *type) {
    type = type ? type_resolve(type) : NULL;
    if (ct->kind == EXPR_TUPLE && !ct->nargs)
        return type && type_holds_float(type) == HOLDS_NO;
    if (gives_tensor(f, ct) || (ct->kind == EXPR_LIT && !ct->like && ct->is_float))
        return true;
    Expr *data = structure_of(f, ct);
    if (!data || !is_data(data))
        return false;
    if (data->kind == EXPR_TUPLE && !(type && type->tag == TY_TUPLE && type->nargs == data->nargs))
        return false; /* one that grew part by part may lack the last ones */
    for (uint32_t i = 0; i < data->nargs; i++)
        if (!is_whole(f, data->args[i], type_of_part(data, type, i)))
            return false;
    return true;
}

/* `ad.dense(x, ct)` fills what is absent in the cotangent: it is ct where that is nothing. A product that was to wait for
 * others, of which there are none, is added as any other value:
 *
 *   let t = ad.add(ct, matmul_rhs(…)); ad.dense(w, t)       becomes       ct + matmul_rhs(…) */
static Expr *fold_dense(Folder *f, Expr *e) {
    if (!expr_calls_builtin(e, "ad.dense") || e->nargs != 2 || e->mode || e->drop)
        return NULL;
    Expr *ct = e->args[1], *sum = ct->kind == EXPR_VAR ? map_find(&f->sums, ct->var) : NULL;
    if (sum && type_resolve(e->args[0]->type)->tag == TY_TENSOR) {
        sum = expr_call_op(&op_add, sum->args, 2, NULL, e->args[0]->type, e->span);
        sum->follows = true;
        return sum;
    }
    return is_whole(f, ct, e->args[0]->type) ? ct : NULL;
}

/* Whether an accumulator is absent, which a frame that is made here says: the way back from another one never runs, nor do
 * the types of its frame hold for this one. */
static Expr *fold_absence(Folder *f, const Expr *e) {
    if (!expr_calls_builtin(e, "ad.is_zero"))
        return NULL;
    Expr *ct = e->args[0], *known = structure_of(f, ct);
    bool tuple = known && known->kind == EXPR_TUPLE;
    bool absent = (ct->kind == EXPR_ZERO && type_is_unit(ct->zero_type)) ||
                  (tuple && !known->nargs);
    return absent || tuple ? expr_bool(absent, e->span) : NULL;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* A block, and the branch of an `if` on a literal where the block's value is one. */
static Expr *fold_block(Folder *f, Expr *e) {
    Links links = {0};
    for (; e->kind == EXPR_LET; e = e->body) {
        pass_visit(f->ctx);
        Expr *value = fold(f, e->a);
        if (e->rec)
            value = open_links(&links, value);
        if (e->var && !e->rec && is_atom(value)) {
            map_set(&f->atoms, e->var, value);
            continue;
        }
        /* another name of it may be taken apart, too */
        if (e->var && is_data(value) && (map_has(&f->apart, e->var) || has_atoms_only(value))) {
            value = name_parts(f, value, &links);
            map_set(&f->known, e->var, value);
        }
        if (e->var && !e->rec)
            note_value(f, e->var, value);
        Expr *link = expr_copy(e);
        link->a = value;
        vec_push(&links, link);
    }
    return close_links(&links, fold(f, e));
}

static bool is_field(const Ctor *ctor, const Expr *e) {
    return ctor->field_names && (uint32_t)e->index < ctor->nfields &&
           ctor->field_names[e->index] == e->field;
}

/* Whether the parts of a tuple that are left out when part number `index` is taken do nothing. */
static bool others_are_atoms(const Expr *tuple, int32_t index) {
    for (uint32_t i = 0; i < tuple->nargs; i++)
        if ((int32_t)i != index && !is_atom(tuple->args[i]))
            return false;
    return index >= 0 && (uint32_t)index < tuple->nargs;
}

/* The part of a tuple that stands in e, where the others do nothing: `(x, f(y)).1` is `f(y)`; else NULL. */
static Expr *part_of_tuple(const Expr *e, const Expr *data) {
    bool fits = e->kind == EXPR_PROJ && data->kind == EXPR_TUPLE &&
                others_are_atoms(data, e->index);
    return fits ? data->args[e->index] : NULL;
}

/* `{ let a = f(x); (x, a) }.1` is `{ let a = f(x); a }`. */
static Expr *fold_part_of_block(Expr *e, Expr *block) {
    Links links = {0};
    block = open_links(&links, block);
    Expr *part = part_of_tuple(e, block);
    if (!part) {
        part = expr_copy(e);
        part->a = block;
    }
    return close_links(&links, part);
}

static Expr *fold_part(Folder *f, Expr *e) {
    Expr *data = fold(f, e->a), *known = structure_of(f, data);
    if (data->kind == EXPR_LET)
        return fold_part_of_block(e, data);
    bool fits = known && e->index >= 0 && (uint32_t)e->index < known->nargs &&
                has_atoms_only(known) &&
                (e->kind == EXPR_PROJ ? known->kind == EXPR_TUPLE
                                      : known->kind == EXPR_CALL && is_field(known->a->ctor, e));
    if (fits)
        return atom_at(known->args[e->index], e);
    Expr *part = part_of_tuple(e, data);
    if (part || data == e->a)
        return part ? part : e;
    Expr *copy = expr_copy(e);
    copy->a = data;
    return copy;
}

/* A function literal that is not called here. */
static Expr *fold_nested(Folder *f, Expr *fn) {
    f->nested++;
    fn = expr_map_children(fn, fold_child, f);
    f->nested--;
    return fn;
}

/* Of a derivative or vmap. */
static Expr *fold_operand(void *ctx, Expr *e) {
    bool is_plain = e->kind == EXPR_FN && !e->fn->keeps_captured;
    return is_plain ? fold_nested(ctx, e) : fold_child(ctx, e);
}

static Expr *fold_form(Folder *f, Expr *e) {
    bool here = !f->nested;
    if (here && e->kind == EXPR_LET)
        return fold_block(f, e);
    if (e->kind == EXPR_LET)
        return expr_map_block(e, fold_child, f);
    if (e->kind == EXPR_FN && e != f->root && e->fn->keeps_captured)
        return literal_with_names(e, fold_child, f);
    if (e->kind == EXPR_FN && e != f->root) {
        Links links = {0};
        Expr *fn = f->atoms.len ? literal_with_own_names(e, fold_child, f, &links) : e;
        return close_links(&links, fold_nested(f, fn));
    }
    if (e->kind == EXPR_GRAD && e->a->kind == EXPR_FN)
        return expr_map_children(e, fold_operand, f);
    if (here && e->kind == EXPR_IF) {
        Expr *c = fold(f, e->a);
        if (c->kind == EXPR_LIT && !c->like)
            return fold(f, c->i ? e->b : e->c);
    }
    if (here && e->kind == EXPR_MATCH)
        return fold_match(f, e);
    if (here && (e->kind == EXPR_PROJ || e->kind == EXPR_FIELD))
        return fold_part(f, e);
    e = expr_map_children(e, fold_child, f);
    Expr *value = !here                   ? NULL
                  : e->kind == EXPR_EQUAL ? fold_equal(e)
                  : e->kind != EXPR_CALL  ? NULL
                  : e->a->kind == EXPR_OP ? fold_operator(e)
                                          : fold_dense(f, e);
    if (here && !value && e->kind == EXPR_CALL)
        value = fold_absence(f, e);
    return value ? value : e;
}

static Expr *fold(Folder *f, Expr *e) {
    if (e->kind == EXPR_VAR) {
        Expr *atom = map_find(&f->atoms, e->var);
        return atom ? atom_at(atom, e) : e;
    }
    Expr *known = expr_is_leaf(e) ? e : map_find(&f->done, e);
    if (known)
        return known;
    pass_visit(f->ctx);
    Expr *result = fold_form(f, e);
    map_set(&f->done, e, result);
    return result;
}

Expr *pass_fold(PassCtx *ctx, Expr *e) {
    Folder f = {.ctx = ctx, .root = e, .walk = walk_new()};
    MapRoom done;
    note_apart(&f, e);
    map_begin(&f.done, &done);
    e = fold(&f, e);
    map_end(&f.done);
    return e;
}
