/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast(a, b, …, c): tensors of one dtype, where c is the broadcast of the others (LANGUAGE §4).
 *
 * The inputs are a set: equal ones count once, and an input of rank 0 is the unit. Where one input is left, it is
 * the result. Of several inputs each axis is solved by itself, counted from the last. A literal size other than 1
 * decides (`?` beside it is checked when running), equal sizes decide, and two unknowns make a new unknown. Other
 * axes wait. A known result decides what only one input can supply. */
#include <string.h>

#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

bool is_broadcast(const RelDef *def) { return def == &rel_broadcast; }

DTypeSet broadcast_dtypes(const Relation *r) {
    if (r->data)
        return (DTypeSet)(uintptr_t)r->data;
    return r->op && r->op->dtypes ? r->op->dtypes : DTS_ALL;
}

typedef struct Bcast {
    Solver *s;
    Relation *r;
    Type **in; /* the inputs, resolved */
    uint32_t n;
    Type **left; /* the distinct inputs that are no units */
    uint32_t nleft;
    Type *result;
    bool compare; /* the result has the dtype bool */
    Type *dtype;  /* the dtype of the inputs that are known to be tensors, or NULL */
} Bcast;

/* ---- dtypes ---------------------------------------------------------------------------------- */

static bool report_dtypes(Bcast *b, Type *x, Type *y) {
    const char *name = relation_subject(b->r);
    const Mismatch *m = solver_mismatch(b->s);
    DType dx, dy;
    if (type_get_dtype(x, &dx) && type_get_dtype(y, &dy)) {
        Diag *d = rel_error(b->s, b->r, DIAG_R0311,
                            "`%s` takes arguments of one dtype, not %s and %s", name,
                            dtype_info[dx].name, dtype_info[dy].name);
        diag_add_fact(d, "nothing is converted silently: write `(%s) ...` to convert",
                      dtype_info[dtype_is_float(dy) && !dtype_is_float(dx) ? dy : dx].name);
        return false;
    }
    DTypeSet set = m->dtypes ? m->dtypes : DTS_NUM;
    Type *known = type_get_dtype(x, &dx) ? x : y;
    rel_error(b->s, b->r, DIAG_R0311,
              "`%s` takes arguments of one dtype: one is %s, the other must be %s", name,
              type_text(known), dtype_class_name(set));
    return false;
}

static bool report_class(Bcast *b, DTypeSet set) {
    const char *name = relation_subject(b->r);
    Type *t = type_resolve(b->dtype);
    if (t->tag == TY_PARAM && (type_dtype_set(t) & set))
        rel_error(b->s, b->r, DIAG_R0304, "`%s` is not known to be %s, which `%s` needs",
                  type_text(t), dtype_class_name(set), name);
    else
        rel_error(b->s, b->r, DIAG_R0310, "`%s` takes %s, not %s", name, dtype_class_words(set),
                  t->tag == TY_DTYPE ? type_text(t) : dtype_class_name(type_dtype_set(t)));
    return false;
}

static bool unify_dtypes(Bcast *b) {
    for (uint32_t i = 0; i < b->n + !b->compare; i++) {
        Type *t = i < b->n ? b->in[i] : b->result;
        if (t->tag == TY_TENSOR) {
            if (!b->dtype)
                b->dtype = t->tensor.dtype;
            else if (!solver_unify(b->s, b->dtype, t->tensor.dtype))
                return report_dtypes(b, b->dtype, t->tensor.dtype);
        } else if (t->tag != TY_VAR && t->tag != TY_PARAM && t->tag != TY_DERIV) {
            const char *subject = relation_subject(b->r);
            Diag *d = rel_error(b->s, b->r, DIAG_R0201, "`%s` takes tensors, not %s", subject,
                                type_text(t));
            if (t->tag == TY_STRING && b->r->op == &op_add)
                diag_add_fact(d, "Strings are joined by `++`");
            return false;
        }
    }
    DTypeSet set = broadcast_dtypes(b->r);
    return !b->dtype || set == DTS_ALL || solver_restrict(b->s, b->dtype, set) ||
           report_class(b, set);
}

bool broadcast_restrict(Solver *s, Relation *r) {
    Bcast b = {.s = s, .r = r};
    for (uint32_t i = 0; i < r->nargs && !b.dtype; i++) {
        Type *t = type_resolve(r->args[i]);
        b.dtype = t->tag == TY_TENSOR ? t->tensor.dtype : NULL;
    }
    DTypeSet set = broadcast_dtypes(r);
    return !b.dtype || set == DTS_ALL || solver_restrict(s, b.dtype, set) || report_class(&b, set);
}

/* ---- the set --------------------------------------------------------------------------------- */

static bool is_rank0(Type *t) {
    uint32_t rank;
    Type **dims;
    return type_get_rank(t, &rank, &dims) && rank == 0;
}

/* Whether two inputs are equal. The inputs have one dtype, so the shapes of tensors decide. */
static bool is_same_input(Type *a, Type *b) {
    if (a->tag == TY_TENSOR && b->tag == TY_TENSOR)
        return type_equal(a->tensor.shape, b->tensor.shape);
    return type_equal(a, b);
}

static void reduce_set(Bcast *b) {
    b->left = mem_new_n(Type *, b->n + 1);
    for (uint32_t i = 0; i < b->n; i++) {
        if (is_rank0(b->in[i]))
            continue;
        uint32_t k = 0;
        while (k < b->nleft && !is_same_input(b->left[k], b->in[i]))
            k++;
        if (k == b->nleft)
            b->left[b->nleft++] = b->in[i];
    }
}

static bool drop_left(Bcast *b, Type *t) {
    for (uint32_t i = 0; i < b->nleft; i++)
        if (is_same_input(b->left[i], t)) {
            for (uint32_t k = i + 1; k < b->nleft; k++)
                b->left[k - 1] = b->left[k];
            b->nleft--;
            return true;
        }
    return false;
}

static bool has_left(const Bcast *b, Type *t) {
    for (uint32_t i = 0; i < b->nleft; i++)
        if (is_same_input(b->left[i], t))
            return true;
    return false;
}

/* Uses each declared Broadcast(x, …, z): all of x, … together are z, and z absorbs each of them. */
static void apply_facts(Bcast *b) {
    for (bool changed = true; changed;) {
        changed = false;
        const Relation *f;
        for (size_t at = 0; (f = solver_next_fact(b->s, is_broadcast, &at));) {
            Type *z = type_resolve(f->args[f->nargs - 1]);
            uint32_t inside = 0;
            for (uint32_t k = 0; k + 1 < f->nargs; k++) {
                Type *x = type_resolve(f->args[k]);
                inside += is_rank0(x) || has_left(b, x) || is_same_input(x, z);
            }
            bool whole = inside == f->nargs - 1, had = has_left(b, z);
            if (!whole && !had)
                continue;
            for (uint32_t k = 0; k + 1 < f->nargs; k++) {
                Type *x = type_resolve(f->args[k]);
                if (!is_same_input(x, z) && drop_left(b, x))
                    changed = true;
            }
            if (!had && changed)
                b->left[b->nleft++] = z;
        }
    }
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct Ranked {
    Type **dims;
    uint32_t rank;
} Ranked;

/* Whether the second of two operands is the first in the text. The laws order operands by the type. */
static bool is_swapped(const Relation *r) {
    const Span *at = r->arg_spans ? r->arg_spans : r->inner_spans;
    return r->nargs == 3 && at && at[0].source && at[0].source == at[1].source &&
           at[1].begin < at[0].begin;
}

static void report_shapes(Bcast *b, const Ranked *in, uint32_t rank, uint32_t axis, uint32_t i,
                          uint32_t k) {
    Diag *d = rel_error(b->s, b->r, DIAG_R0312, "these shapes do not broadcast");
    if (is_swapped(b->r) && i < k) {
        uint32_t first = i;
        i = k;
        k = first;
    }
    bool level = in[i].rank == in[k].rank;
    Type *x = type_resolve(in[i].dims[axis + in[i].rank - rank]);
    Type *y = type_resolve(in[k].dims[axis + in[k].rank - rank]);
    int shown = level ? (int)(axis + in[i].rank - rank) : (int)axis - (int)rank;
    TypeNamer names = {0};
    Str left = {0}, right = {0};
    type_print(&left, x, &names);
    type_print(&right, y, &names);
    if (b->n == 2)
        diag_add_fact(d,
                      "axis %d is %s on the left and %s on the right; broadcasting needs equal "
                      "sizes or 1",
                      shown, str_text(&left), str_text(&right));
    else
        diag_add_fact(d,
                      "axis %d is %s in one and %s in another; broadcasting needs equal sizes or 1",
                      shown, str_text(&left), str_text(&right));
    rel_add_aligned(d, b->r, b->n, b->in, (int)axis - (int)rank, &names);
    if (!b->r->arg_spans && !b->r->inner_spans) {
        for (uint32_t p = 0; p < b->n; p++)
            if (b->in[p]->tag == TY_TENSOR)
                diag_add_fact(d, "%s: %s", b->n == 2 ? (p ? "right" : "left") : "one",
                              type_text_with(&names, b->in[p]->tensor.shape));
        return;
    }
    rel_add_clash(b->s, d, (SizeClash){.diag = d, .a = x, .b = y, .or_one = true}, &names);
}

static bool is_size(Type *d, int64_t *n) { return type_get_int(d, n); }

typedef enum AxisState { AXIS_DONE, AXIS_WAIT, AXIS_FAIL } AxisState;

/* Solves one axis. c: the result's size, or NULL where the result has no dims yet. *out: the size that was found, or
 * NULL. */
static AxisState broadcast_axis(Bcast *b, const Ranked *in, uint32_t nin, uint32_t rank,
                                uint32_t axis, Type *c, Type **out) {
    Type **set = mem_new_n(Type *, nin);
    uint32_t *from = mem_bytes((nin + 1) * sizeof *from);
    uint32_t n = 0, nany = 0, nvars = 0, literal = UINT32_MAX;
    int64_t v, cv;
    for (uint32_t i = 0; i < nin; i++) {
        if (axis + in[i].rank < rank)
            continue;
        Type *d = type_resolve(in[i].dims[axis + in[i].rank - rank]);
        bool is_literal = is_size(d, &v);
        if (is_literal && v == 1)
            continue;
        uint32_t k = 0;
        while (k < n && dim_compare(set[k], d) != DIM_EQUAL)
            k++;
        if (k < n)
            continue;
        if (is_literal) {
            if (literal != UINT32_MAX) {
                report_shapes(b, in, rank, axis, from[literal], i);
                return AXIS_FAIL;
            }
            literal = n;
        } else {
            nany += (d->flags & TYPE_HAS_ANY) != 0;
            nvars += !(d->flags & TYPE_HAS_ANY) && (d->flags & TYPE_HAS_VARS);
        }
        from[n] = i;
        set[n++] = d;
    }
    int shown = (int)axis;
    if (n <= 1) {
        *out = n ? set[0] : type_dim_int(1, NULL);
        return c && !rel_unify_dim(b->s, b->r, c, *out, -1, shown) ? AXIS_FAIL : AXIS_DONE;
    }
    if (c && is_size(c, &cv) && cv == 1) { /* a result of size 1 has inputs of size 1 */
        for (uint32_t i = 0; i < n; i++)
            if (!rel_unify_dim(b->s, b->r, set[i], c, (int)from[i], shown))
                return AXIS_FAIL;
        *out = c;
        return AXIS_DONE;
    }
    TypePlace place = place_of_broadcast(shown, relation_subject(b->r));
    b->s->arg = NO_ARGUMENT;
    b->s->axis = shown;
    if (literal != UINT32_MAX) {
        *out = set[literal];
        if (c && !rel_unify_dim(b->s, b->r, c, *out, -1, shown))
            return AXIS_FAIL;
        if (nany + 1 < n)
            return AXIS_WAIT; /* an undetermined size may be 1 or this one */
        for (uint32_t i = 0; i < n; i++)
            if (i != literal)
                solver_add_residual(b->s, set[i], set[literal], b->r->span, place);
        return AXIS_DONE;
    }
    if (nany == 0 || nvars > 0)
        return AXIS_WAIT;
    *out = type_any(KIND_DIM, NULL);
    for (uint32_t i = 1; i < n; i++)
        solver_add_residual(b->s, set[0], set[i], b->r->span, place);
    /* Where the result has a size already, it is checked against the new unknown. */
    return c && !rel_unify_dim(b->s, b->r, c, *out, -1, shown) ? AXIS_FAIL : AXIS_DONE;
}

static const char *source_text(Span s) {
    return mem_strndup(s.source->text + s.begin, s.end - s.begin);
}

static const char *sizes_text(Type *const *dims, uint32_t n) {
    Str s = {0};
    for (uint32_t i = 0; i < n; i++)
        str_printf(&s, "%s%s", i ? ", " : "", type_text(dims[i]));
    return str_text(&s);
}

static int64_t count_elements(const Ranked *t) {
    int64_t n = 1, size;
    for (uint32_t i = 0; i < t->rank; i++)
        n *= is_size(t->dims[i], &size) ? size : 0;
    return n;
}

/* Suggests to reshape one of two operands with equally many elements, and tells how to write an outer broadcast that
 * is meant. */
static void add_outer_helps(Diag *d, Bcast *b, const Ranked *in, Type **dims, uint32_t rank) {
    enum { LONGEST = 60 };
    const Span *at = b->r->arg_spans;
    if (!at || b->n != 2 || b->nleft != 2 || !at[0].source || at[0].source != at[1].source ||
        at[0].end - at[0].begin > LONGEST || at[1].end - at[1].begin > LONGEST)
        return;
    const char *text[] = {source_text(at[0]), source_text(at[1])};
    if (count_elements(&in[0]) == count_elements(&in[1])) {
        int from = in[0].rank >= in[1].rank ? 0 : 1, to = 1 - from;
        Type *type = type_tensor(type_shape(in[to].dims, in[to].rank), b->dtype);
        const char *changed = fmt_text("reshape(%s, newshape=[%s])", text[from],
                                       sizes_text(in[to].dims, in[to].rank));
        Span op = b->r->span;
        bool infix = at[0].end <= op.begin && op.end <= at[1].begin;
        diag_add_fix(d, at[from], changed, type_text(type), "`%s%s%s` has shape %s",
                     infix && from ? fmt_text("%s %s ", text[0], source_text(op)) : "", changed,
                     infix && !from ? fmt_text(" %s %s", source_text(op), text[1]) : "",
                     type_text(type_shape(in[to].dims, in[to].rank)));
    }
    diag_add_help(d, "where it is meant, `broadcast_to(%s, shape=[%s])` says so", text[0],
                  sizes_text(dims, rank));
}

/* Whether expand_dims or `None` between brackets made the axis. */
static bool is_new_axis(const Type *d) {
    const Origin *o = d->origin;
    while (o && o->kind == ORIGIN_ARGUMENT && o->from)
        o = o->from;
    if (o && o->kind == ORIGIN_ARGUMENT && o->of)
        return strcmp(o->of, "reshape") == 0;
    return o && o->kind == ORIGIN_OPERATOR && o->place.kind == PLACE_NAME &&
           (strcmp(o->place.name, "expand_dims") == 0 || strcmp(o->place.name, "None") == 0);
}

/* Warns (R0901) where the result differs from every operand that is not a scalar. It is meant where expand_dims or
 * reshape made the axes that grow, as in `expand_dims(p, axis=1) - q`. An edit that is tried is never meant:
 * it is not suggested (mend/trial.c). */
static void warn_outer(Bcast *b, const Ranked *in, uint32_t nin, Type **dims, uint32_t rank) {
    const Source *source = b->r->span.source;
    if (nin < 2 || !source || (source->flags & SOURCE_INTERNAL))
        return;
    bool meant = !b->s->bounded, made_so = false;
    for (uint32_t i = 0; i < nin; i++) {
        bool same = in[i].rank == rank;
        for (uint32_t k = 0; k < in[i].rank; k++) {
            Type *c = dims[k + rank - in[i].rank];
            int64_t have, made;
            if (!is_size(in[i].dims[k], &have) || !is_size(c, &made))
                return;
            bool is_new = is_new_axis(type_resolve(in[i].dims[k]));
            meant = meant && (have == made || is_new);
            made_so = made_so || (have != made && is_new);
            same = same && have == made;
        }
        if (same)
            return;
    }
    if (meant && made_so)
        return;
    TypeNamer names = {0};
    Str text = {0};
    for (uint32_t i = 0; i < nin; i++) {
        str_add(&text, i ? " and " : "");
        type_print(&text, type_shape(in[i].dims, in[i].rank), &names);
    }
    str_add(&text, " broadcast to ");
    type_print(&text, type_shape(dims, rank), &names);
    Diag *d = diag_new(DIAG_R0901, b->r->span, "%s", str_text(&text));
    for (uint32_t i = 0; b->r->arg_spans && i < b->n; i++) {
        Str shape = {0};
        if (b->in[i]->tag == TY_TENSOR && b->r->arg_spans[i].source) {
            type_print(&shape, b->in[i]->tensor.shape, &names);
            diag_add_label(d, b->r->arg_spans[i], "%s", str_text(&shape));
        }
    }
    if (!b->r->arg_spans)
        rel_add_places(d, b->r);
    add_outer_helps(d, b, in, dims, rank);
    diag_report(b->s->diags, d);
}

static Type *get_or_make_dtype(Bcast *b) {
    if (!b->dtype) {
        b->dtype = solver_var(b->s, KIND_DTYPE);
        solver_restrict(b->s, b->dtype, broadcast_dtypes(b->r));
    }
    return b->dtype;
}

static bool make_tensor(Bcast *b, Type *var, Type *shape) {
    if (unify_gradual(b->s, var, type_tensor(shape, get_or_make_dtype(b))))
        return true;
    rel_error(b->s, b->r, DIAG_R0313, "`%s` needs %s here, not %s", relation_subject(b->r),
              shape->tag == TY_SHAPE && shape->nargs == 0 ? "scalars" : "a tensor", type_text(var));
    return false;
}

static RelStatus set_result(Bcast *b, Type *shape) {
    Type *dtype = b->compare ? type_dtype(DT_BOOL) : get_or_make_dtype(b);
    return rel_unify(b->s, b->r, -1, type_tensor(shape, dtype)) ? REL_DONE : REL_FAIL;
}

/* Solves the axes of inputs that all have known ranks. */
static RelStatus broadcast_ranked(Bcast *b, const Ranked *in, uint32_t nin) {
    uint32_t rank = 0, crank;
    Type **cdims = NULL;
    for (uint32_t i = 0; i < nin; i++)
        rank = in[i].rank > rank ? in[i].rank : rank;
    if (type_get_rank(b->result, &crank, &cdims) && crank != rank) {
        rel_error(b->s, b->r, DIAG_R0313, "the result of `%s` has %u axes, %u are expected",
                  relation_subject(b->r), rank, crank);
        return REL_FAIL;
    }
    Type **dims = mem_new_n(Type *, rank + 1);
    bool wait = false;
    for (uint32_t axis = 0; axis < rank; axis++) {
        Type *out = NULL, *c = cdims ? type_resolve(cdims[axis]) : NULL;
        AxisState state = broadcast_axis(b, in, nin, rank, axis, c, &out);
        if (state == AXIS_FAIL)
            return REL_FAIL;
        wait = wait || state == AXIS_WAIT;
        dims[axis] = c ? c : out ? out : solver_var(b->s, KIND_DIM);
    }
    if (!cdims && set_result(b, type_shape(dims, rank)) == REL_FAIL)
        return REL_FAIL;
    if (!wait)
        warn_outer(b, in, nin, dims, rank);
    return wait ? REL_WAIT : REL_DONE;
}

static bool get_ranked(Type *t, Ranked *out) {
    return t->tag == TY_TENSOR && type_get_rank(t, &out->rank, &out->dims);
}

/* Solves inputs of unknown rank from a result of known rank. False after a report. */
static bool use_result(Bcast *b, bool *progress) {
    uint32_t crank, rank = 0, open = UINT32_MAX, nopen = 0;
    Type **cdims;
    if (!type_get_rank(b->result, &crank, &cdims))
        return true;
    for (uint32_t i = 0; i < b->nleft; i++) {
        Ranked in;
        if (get_ranked(b->left[i], &in)) {
            rank = in.rank > rank ? in.rank : rank;
        } else {
            open = i;
            nopen++;
        }
    }
    for (uint32_t i = 0; crank == 0 && i < b->nleft; i++) {
        *progress = true;
        if (!make_tensor(b, b->left[i], type_shape(NULL, 0)))
            return false;
    }
    if (crank > 0 && nopen == 1 && rank < crank) {
        Type *x = b->left[open];
        if (x->tag == TY_VAR ||
            (x->tag == TY_TENSOR && type_resolve(x->tensor.shape)->tag == TY_VAR)) {
            Type **dims = mem_new_n(Type *, crank);
            for (uint32_t i = 0; i < crank; i++)
                dims[i] = solver_var(b->s, KIND_DIM);
            *progress = true;
            return make_tensor(b, x, type_shape(dims, crank));
        }
    }
    return true;
}

/* Gives the dtype of one tensor to all inputs, since other relations may need it before the shapes are known. */
static bool spread_dtype(Bcast *b) {
    DTypeSet set = broadcast_dtypes(b->r);
    bool open = !b->dtype && !b->compare && set != DTS_ALL && (set & DTS_NUM) != DTS_NUM;
    for (uint32_t i = 0; i < b->n && open; i++)
        open = b->in[i]->tag == TY_VAR;
    if (open) /* a class other than Num needs a dtype variable that can hold it */
        b->dtype = set == DTS_BOOL ? type_dtype(DT_BOOL) : get_or_make_dtype(b);
    for (uint32_t i = 0; b->dtype && i < b->n + !b->compare; i++) {
        Type **slot = i < b->n ? &b->in[i] : &b->result;
        if ((*slot)->tag != TY_VAR)
            continue;
        if (!make_tensor(b, *slot, solver_var(b->s, KIND_SHAPE)))
            return false;
        for (uint32_t k = i; k < b->n; k++)
            b->in[k] = type_resolve(b->in[k]);
        b->result = type_resolve(b->result);
    }
    return true;
}

static RelStatus broadcast_once(Bcast *b, bool *progress) {
    if (!unify_dtypes(b) || !spread_dtype(b))
        return REL_FAIL;
    reduce_set(b);
    if (b->nleft > 1 && b->s->facts.len)
        apply_facts(b);
    if (b->nleft == 0)
        return set_result(b, type_shape(NULL, 0));
    if (b->nleft == 1) {
        Type *x = b->left[0];
        if (x->tag == TY_VAR && !make_tensor(b, x, solver_var(b->s, KIND_SHAPE)))
            return REL_FAIL;
        x = type_resolve(x);
        if (x->tag == TY_TENSOR)
            return set_result(b, x->tensor.shape);
        if (x->tag == TY_PARAM && !rel_unify(b->s, b->r, -1, x))
            return REL_FAIL;
        const Relation *f; /* done where the facts say that x is a tensor */
        for (size_t at = 0; x->tag == TY_PARAM && (f = solver_next_fact(b->s, is_broadcast, &at));)
            for (uint32_t k = 0; k < f->nargs; k++)
                if (type_resolve(f->args[k]) == x)
                    return REL_DONE;
        return REL_WAIT;
    }
    Ranked *in = mem_new_n(Ranked, b->nleft);
    uint32_t known = 0;
    while (known < b->nleft && get_ranked(b->left[known], &in[known]))
        known++;
    if (known == b->nleft)
        return broadcast_ranked(b, in, known);
    return use_result(b, progress) ? REL_WAIT : REL_FAIL;
}

static RelStatus relate_inputs(Solver *s, Relation *r, Type **inputs, uint32_t n, bool compare) {
    for (;;) {
        Bcast b = {.s = s, .r = r, .n = n, .in = mem_new_n(Type *, n + 1), .compare = compare};
        for (uint32_t i = 0; i < n; i++)
            b.in[i] = type_resolve(inputs[i]);
        b.result = type_resolve(r->args[r->nargs - 1]);
        bool progress = false;
        RelStatus status = broadcast_once(&b, &progress);
        if (status != REL_WAIT || !progress)
            return status;
    }
}

static RelStatus relate_broadcast(Solver *s, Relation *r) {
    return relate_inputs(s, r, r->args, r->nargs - 1, false);
}

static RelStatus compare_strings(Solver *s, Relation *r) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        if (!rel_unify(s, r, (int)i, type_string()))
            return REL_FAIL;
    return rel_unify(s, r, -1, type_scalar(DT_BOOL)) ? REL_DONE : REL_FAIL;
}

/* c is Tensor[shape, bool]; the shape is that of the arguments' broadcast. */
RelStatus relate_compare(Solver *s, Relation *r) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) /* two Strings give one bool */
        if (type_resolve(r->args[i])->tag == TY_STRING)
            return compare_strings(s, r);
    Type *c = type_resolve(r->args[r->nargs - 1]);
    Type *shape = c->tag == TY_TENSOR ? c->tensor.shape : solver_var(s, KIND_SHAPE);
    if (!rel_unify(s, r, -1, type_tensor(shape, type_dtype(DT_BOOL))))
        return REL_FAIL;
    bool open = true; /* they may be Strings, those of a signature, too */
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        TypeTag tag = type_resolve(r->args[i])->tag;
        open = open && (tag == TY_VAR || tag == TY_PARAM);
    }
    if (open)
        return REL_WAIT;
    return relate_inputs(s, r, r->args, r->nargs - 1, true);
}

bool solver_relate_scalars(Solver *s, const Op *op, Type *const *args, uint32_t n, Type **result) {
    bool compare = op->relation == &rel_broadcast_compare;
    if ((!compare && op->relation != &rel_broadcast) || op->refuses_sizes || s->listing || n == 0)
        return false;
    DTypeSet common = op->dtypes ? op->dtypes : DTS_ALL;
    for (uint32_t i = 0; i < n; i++) {
        Type *t = type_resolve(args[i]);
        if (t->tag != TY_TENSOR || !is_rank0(t))
            return false;
        Type *dtype = type_resolve(t->tensor.dtype);
        if (dtype->tag != TY_DTYPE && dtype->tag != TY_VAR)
            return false;
        common &= type_dtype_set(dtype);
    }
    Type *first = type_resolve(args[0])->tensor.dtype;
    if (!common || !solver_restrict(s, first, common))
        return false;
    for (uint32_t i = 1; i < n; i++)
        if (!solver_unify(s, first, type_resolve(args[i])->tensor.dtype))
            return false;
    s->counts.steps += n;
    *result = compare ? type_scalar(DT_BOOL) : args[0];
    return true;
}

const RelDef rel_broadcast = {.name = "Broadcast", .relate = relate_broadcast, .nargs = -1};
const RelDef rel_broadcast_compare = {
    .name = "BroadcastCompare", .relate = relate_compare, .nargs = -1};
