/* SPDX-License-Identifier: Apache-2.0 */
/* Relations that read a value whose type may not be known yet: `e.name`, `e.0`, `e[…]`, `!e`, `a == b`. Each waits
 * until the head of the type is known, and is generalised where it stays open. Below them are the relations of one
 * kind each: the classes of dtypes, and Same, the equation that waits. */
#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* Whether a type has no head that can be read: a variable, a declared parameter, or D of one. A relation over a
 * declared parameter can only follow from facts. */
static bool is_open(Type *t) {
    return t->tag == TY_VAR || t->tag == TY_PARAM ||
           (t->tag == TY_DERIV && type_resolve(t->elem)->tag != TY_DATA);
}

/* Lists the unknown sizes of what several merged reads give (Note [One read, one size] in laws.c). */
static void add_unknown_checks(Solver *s, const Relation *r, Type *read, TypePlace place) {
    if (!r->shared)
        return;
    TypeVec sizes = {0};
    Map seen = {0};
    type_collect(read, TY_ANY, &seen, &sizes);
    for (size_t i = 0; i < sizes.len; i++)
        solver_add_residual(s, sizes.data[i], type_any(sizes.data[i]->kind, NULL), r->span, place);
}

/* ---- Field ----------------------------------------------------------------------------------- */

static int find_field(const Ctor *c, const Symbol *name) {
    for (uint32_t i = 0; c->field_names && i < c->nfields; i++)
        if (c->field_names[i] == name)
            return (int)i;
    return -1;
}

/* The type of a field in a value of type data. The dims that the declaration binds itself are unknowns. */
static Type *make_field_type(Solver *s, Type *data, const Ctor *c, uint32_t i) {
    TypeDecl *decl = data->decl;
    Type *t = type_substitute(c->fields[i], decl->params, data->args, decl->nparams);
    if (decl->nexists) {
        Type **own = mem_new_n(Type *, decl->nexists);
        for (uint32_t k = 0; k < decl->nexists; k++)
            own[k] = type_any(KIND_DIM, NULL);
        t = type_substitute(t, decl->exists, own, decl->nexists);
    }
    return solver_open_unknowns(s, t);
}

/* Reports a field that is missing. ctor: a constructor without it. */
static RelStatus report_no_field(Solver *s, Relation *r, Type *t, const Ctor *ctor) {
    const Symbol *name = r->data;
    if (t->tag != TY_DATA) {
        rel_error(s, r, DIAG_R0212, "%s has no field `%s`", type_text(t), name->text)
            ->missing = name;
        return REL_FAIL;
    }
    for (uint32_t c = 0; c < t->decl->nctors; c++) {
        if (find_field(t->decl->ctors[c], name) < 0)
            continue;
        Diag *d = rel_error(s, r, DIAG_R0212, "not every `%s` has a field `%s`",
                            t->decl->name->text, name->text);
        d->missing = name;
        diag_add_fact(d, "`%s` has it, `%s` has not: `match` tells them apart",
                      t->decl->ctors[c]->name->text, ctor->name->text);
        return REL_FAIL;
    }
    VEC(const Symbol *) names = {0};
    for (uint32_t c = 0; c < t->decl->nctors; c++)
        for (uint32_t i = 0; t->decl->ctors[c]->field_names && i < t->decl->ctors[c]->nfields; i++)
            vec_push(&names, t->decl->ctors[c]->field_names[i]);
    Diag *d = rel_error(s, r, DIAG_R0212,
                        names.len ? "`%s` has no field `%s`"
                                  : "`%s` has no named fields, so no `%s`",
                        t->decl->name->text, name->text);
    d->missing = name;
    const Symbol *near = sym_find_nearest(name, names.data, names.len, s->budget);
    if (near) {
        diag_add_guess_fact(d, near);
    } else if (names.len) {
        Str all = {0};
        for (size_t i = 0; i < names.len && i < 12; i++)
            str_printf(&all, "%s`%s`", i ? ", " : "", names.data[i]->text);
        diag_add_fact(d, "its fields are %s", str_text(&all));
    }
    return REL_FAIL;
}

static RelStatus relate_field(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]);
    if (is_open(t))
        return REL_WAIT;
    bool deriv = t->tag == TY_DERIV;
    Type *data = deriv ? type_resolve(t->elem) : t;
    if (data->tag != TY_DATA || data->decl->nctors == 0)
        return report_no_field(s, r, data, NULL);
    Type *joined = NULL; /* the field's types of all constructors, joined */
    for (uint32_t c = 0; c < data->decl->nctors; c++) {
        const Ctor *ctor = data->decl->ctors[c];
        int i = find_field(ctor, r->data);
        if (i < 0)
            return report_no_field(s, r, data, ctor);
        Type *field = make_field_type(s, data, ctor, (uint32_t)i);
        add_unknown_checks(
            s, r, field, (TypePlace){.kind = PLACE_TWO_VALUES, .name = ctor->field_names[i]->text});
        Type *before = joined;
        joined = joined ? type_join(s, joined, field, false) : field;
        if (joined)
            continue;
        TypeNamer names = {0};
        Str here = {0}, there = {0};
        type_print(&there, before, &names);
        type_print(&here, field, &names);
        Diag *d = rel_error(s, r, DIAG_R0212, "the field `%s` is %s in `%s` and %s in `%s`",
                            ctor->field_names[i]->text, str_text(&there),
                            data->decl->ctors[0]->name->text, str_text(&here), ctor->name->text);
        diag_add_fact(d, "`match` tells them apart");
        return REL_FAIL;
    }
    return rel_unify(s, r, -1, deriv ? type_deriv(joined) : joined) ? REL_DONE : REL_FAIL;
}

/* ---- Proj, Index ----------------------------------------------------------------------------- */

static RelStatus relate_element(Solver *s, Relation *r, Type *t, int64_t i) {
    if (t->tag != TY_TUPLE) {
        rel_error(s, r, DIAG_R0216, "only a tuple has an element .%lld, this is %s", (long long)i,
                  type_text(t));
        return REL_FAIL;
    }
    if (i < 0 || i >= t->nargs) {
        Diag *d = rel_error(s, r, DIAG_R0216, "this tuple has no element %lld", (long long)i);
        diag_add_fact(d, t->nargs == 1 ? "it has one, .0" : "its %u elements count from 0",
                      t->nargs);
        return REL_FAIL;
    }
    return rel_unify(s, r, -1, t->args[i]) ? REL_DONE : REL_FAIL;
}

static RelStatus relate_proj(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]);
    return is_open(t) ? REL_WAIT : relate_element(s, r, t, *(const int64_t *)r->data);
}

/* How to take one value out of stacked ones of a record. */
static void add_help_of_rows(Diag *d, const Ctor *ctor) {
    if (ctor->decl->nctors != 1 || !ctor->nfields || !ctor->field_names)
        return;
    const char *field = ctor->field_names[0]->text;
    diag_add_help(d, "row i of rows x is made of that of its fields: `%s { %s: x.%s[i]%s }`",
                  ctor->name->text, field, field, ctor->nfields > 1 ? ", ..." : "");
}

static RelStatus relate_index(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]);
    const int64_t *constant = r->data;
    if (t->tag == TY_VAR && !(constant && r->nargs == 3)) {
        solver_unify(s, t, solver_tensor_var(s)); /* a tuple needs a constant position */
        t = type_resolve(t);
    }
    if (is_open(t))
        return REL_WAIT;
    if (t->tag == TY_TENSOR) {
        if (!r->op)
            r->op = &op_index;
        return r->op->relation->relate(s, r);
    }
    if (t->tag == TY_TUPLE && constant)
        return relate_element(s, r, t, *constant);
    Diag *d = rel_error(s, r, DIAG_R0216,
                        t->tag == TY_TUPLE ? "a tuple is projected by a constant: its elements may "
                                             "have different types"
                                           : "only tensors and tuples are indexed, this is %s",
                        type_text(t));
    d->cause = DIAG_CAUSE_INDEX;
    d->found = diag_type(t);
    if (type_is_list(t))
        diag_add_help(d, "element i of a list l is `nth(l, i)`");
    if (t->tag == TY_DATA && t->decl->row)
        add_help_of_rows(d, t->decl->ctors[0]);
    if (t->tag == TY_STRING)
        diag_add_help(d, "a part of a String is `str.slice(s, begin, end)`");
    return REL_FAIL;
}

/* ---- Bang ------------------------------------------------------------------------------------ */

/* Whether a type cannot be a bool. */
static bool is_not_bool(Type *t) {
    DTypeSet set;
    uint32_t rank;
    Type **dims;
    switch (t->tag) {
    case TY_TENSOR:
        set = type_dtype_set(t->tensor.dtype);
        return !(set & DTS_BOOL) || (type_get_rank(t, &rank, &dims) && rank > 0);
    case TY_TUPLE:
    case TY_FN:
    case TY_REF:
    case TY_DATA:
    case TY_STRING: return true;
    case TY_VAR:
    case TY_PARAM:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: return false;
    }
    return false;
}

static RelStatus relate_bang(Solver *s, Relation *r) {
    Type *t = type_resolve(r->args[0]), *c = type_resolve(r->args[1]);
    if (t->tag == TY_VAR && is_not_bool(c)) {
        solver_unify(s, t, type_ref(c));
        t = type_resolve(t);
    }
    if (is_open(t))
        return REL_WAIT;
    if (t->tag == TY_REF) {
        Type *held = solver_open_unknowns(s, t->elem);
        add_unknown_checks(s, r, held, place_of_words("what the reference holds at two times"));
        return rel_unify(s, r, -1, held) ? REL_DONE : REL_FAIL;
    }
    if (t->tag == TY_TENSOR && !is_not_bool(t))
        return solver_unify(s, t, type_scalar(DT_BOOL)) && rel_unify(s, r, -1, type_scalar(DT_BOOL))
                   ? REL_DONE
                   : REL_FAIL;
    rel_error(s, r, DIAG_R0219, "`!` takes a reference or a bool, this is %s", type_text(t));
    return REL_FAIL;
}

/* ---- Eq -------------------------------------------------------------------------------------- */

static RelStatus relate_equal(Solver *s, Relation *r) {
    Type *a = type_resolve(r->args[0]), *b = type_resolve(r->args[1]);
    Type *known = is_open(a) ? b : a;
    if (is_open(known)) {
        uint32_t rank;
        Type **dims;
        if (!type_get_rank(r->args[2], &rank, &dims) || rank == 0)
            return REL_WAIT;
        return relate_compare(s, r); /* only tensors compare to more than one bool */
    }
    if (known->tag == TY_TENSOR) {
        Type *other = known == a ? b : a;
        if (!is_open(other) && other->tag != TY_TENSOR) {
            rel_error(s, r, DIAG_R0201, "%s and %s cannot be equal: they have different types",
                      type_text(a), type_text(b));
            return REL_FAIL;
        }
        return relate_compare(s, r);
    }
    if (known->tag == TY_FN) {
        rel_error(s, r, DIAG_R0201, "functions cannot be compared: this is %s", type_text(known));
        return REL_FAIL;
    }
    if (!type_join(s, a, b, false)) {
        rel_error(s, r, DIAG_R0201, "%s and %s cannot be equal: they have different types",
                  type_text(a), type_text(b));
        return REL_FAIL;
    }
    return rel_unify(s, r, -1, type_scalar(DT_BOOL)) ? REL_DONE : REL_FAIL;
}

bool solver_is_equality(Type *t) {
    t = type_resolve(t);
    for (uint32_t i = 0; t->tag == TY_VAR && i < t->var.nwatchers; i++) {
        const Relation *r = t->var.watchers[i];
        if (r->def == &rel_equal && r->status == REL_WAIT && type_resolve(r->args[2]) == t)
            return true;
    }
    return false;
}

const RelDef rel_field = {.name = "Field", .relate = relate_field, .nargs = 2};
const RelDef rel_proj = {.name = "Proj", .relate = relate_proj, .nargs = 2};
const RelDef rel_index = {.name = "Index", .relate = relate_index, .nargs = -1};
const RelDef rel_bang = {.name = "Bang", .relate = relate_bang, .nargs = 2};
const RelDef rel_equal = {.name = "Eq", .relate = relate_equal, .nargs = 3};

/* ---- classes of dtypes ----------------------------------------------------------------------- */

/* Num, Float, Int and Bits (integers and bool). A class is kept in the variable itself, so its relation is done as
 * soon as it has run. */

static RelStatus relate_class(Solver *s, Relation *r, DTypeSet set) {
    if (solver_restrict(s, r->args[0], set))
        return REL_DONE;
    Type *t = type_resolve(r->args[0]);
    rel_error(s, r, DIAG_R0310, "this must be %s, it is %s", dtype_class_name(set),
              t->tag == TY_DTYPE ? type_text(t) : dtype_class_name(type_dtype_set(t)));
    return REL_FAIL;
}

static RelStatus relate_num(Solver *s, Relation *r) { return relate_class(s, r, DTS_NUM); }

static RelStatus relate_float(Solver *s, Relation *r) { return relate_class(s, r, DTS_FLOAT); }

static RelStatus relate_int(Solver *s, Relation *r) { return relate_class(s, r, DTS_INT); }

static RelStatus relate_bits(Solver *s, Relation *r) { return relate_class(s, r, DTS_BITS); }

DTypeSet rel_dtype_class(const RelDef *def) {
    return def == &rel_num     ? DTS_NUM
           : def == &rel_float ? DTS_FLOAT
           : def == &rel_int   ? DTS_INT
           : def == &rel_bits  ? DTS_BITS
                               : 0;
}

const RelDef *rel_of_dtypes(DTypeSet set) {
    return !(set & ~DTS_FLOAT)  ? &rel_float
           : !(set & ~DTS_INT)  ? &rel_int
           : !(set & ~DTS_NUM)  ? &rel_num
           : !(set & ~DTS_BITS) ? &rel_bits
                                : NULL;
}

const RelDef rel_num = {.name = "Num", .relate = relate_num, .nargs = 1, .implicit = true};
const RelDef rel_float = {.name = "Float", .relate = relate_float, .nargs = 1};
const RelDef rel_int = {.name = "Int", .relate = relate_int, .nargs = 1};
const RelDef rel_bits = {.name = "Bits", .relate = relate_bits, .nargs = 1};

/* ---- Same(a, b) ------------------------------------------------------------------------------ */

static bool is_open_deriv(Type *t) {
    if (t->tag != TY_DERIV)
        return false;
    Type *elem = type_resolve(t->elem);
    return elem->tag == TY_VAR || type_has_vars(elem);
}

/* Whether the cotangent of a tensor is asked to be what none is: it is a tensor, or () for one of integers. */
static bool is_no_deriv(Type *deriv, Type *other) {
    if (!is_open_deriv(deriv) || type_resolve(deriv->elem)->tag != TY_TENSOR)
        return false;
    return (other->tag == TY_TUPLE && other->nargs > 0) || other->tag == TY_FN ||
           other->tag == TY_DATA || other->tag == TY_REF || other->tag == TY_STRING;
}

static RelStatus relate_same(Solver *s, Relation *r) {
    Type *a = type_resolve(r->args[0]), *b = type_resolve(r->args[1]);
    if (type_equal(a, b))
        return REL_DONE;
    /* Unifying would only post the same equation again. */
    if (a->kind == KIND_DIM && dims_must_wait(a, b))
        return REL_WAIT;
    if (a->kind == KIND_TYPE && (is_open_deriv(a) || is_open_deriv(b)) && a->tag != TY_VAR &&
        b->tag != TY_VAR && a->tag == b->tag)
        return REL_WAIT;
    bool never = a->kind == KIND_TYPE && (is_no_deriv(a, b) || is_no_deriv(b, a));
    if (a->kind == KIND_TYPE && !never && is_open_deriv(a) != is_open_deriv(b))
        return REL_WAIT;
    const TypePlace *kept = r->data;
    s->place = kept ? *kept : (TypePlace){0};
    if (!never && (a->kind == KIND_DIM ? unify_dims(s, a, b, true) : unify_gradual(s, a, b)))
        return REL_DONE;
    const char *what = kept && kept->kind != PLACE_NONE ? type_place_text(kept) : "a size";
    TypeNamer names = {0};
    Str left = {0}, right = {0};
    Diag *d = NULL;
    type_print(&left, a, &names);
    type_print(&right, b, &names);
    if (a->kind == KIND_DIM)
        rel_error(s, r, s->mismatch.kind == MISMATCH_RIGID ? DIAG_R0303 : DIAG_R0301,
                  "%s: %s and %s must be equal", what, str_text(&left), str_text(&right));
    else
        d = rel_error(s, r, DIAG_R0201, "%s: %s and %s must be the same", what, str_text(&left),
                      str_text(&right));
    if (d && a->kind == KIND_TYPE && type_differs_by_comma(a, b))
        diag_add_fact(d, TYPE_COMMA_FACT);
    return REL_FAIL;
}

const RelDef rel_same = {.name = "Same", .relate = relate_same, .nargs = 2};
