/* SPDX-License-Identifier: Apache-2.0 */
/* The checks that are left for the run (LANGUAGE §4 "Any"), and their list for `relay check --residual`.
 *
 * Two sizes that unification cannot compare become a check at once. Operators need more of sizes, as that the
 * elements fill a new shape, or that an axis splits evenly. Only their shape functions know this. So for the list,
 * each call whose sizes are not all known is tried with many sizes, and listed with the first refusal. */
#include <string.h>

#include "base/mem.h"
#include "types/op.h"
#include "types/solve/solver_impl.h"

/* ---- found by unification -------------------------------------------------------------------- */

size_t solver_nresiduals(const Solver *s) { return s->residuals.len; }

const Residual *solver_residual_at(const Solver *s, size_t i) { return &s->residuals.data[i]; }

void solver_drop_residuals(Solver *s, size_t keep) {
    if (keep < s->residuals.len)
        s->residuals.len = keep;
}

void solver_add_residual(Solver *s, Type *a, Type *b, Span span, TypePlace place) {
    const Relation *r = s->running;
    Residual check = {.a = a,
                      .b = b,
                      .span = span,
                      .place = place.kind == PLACE_NONE ? place_of_words("a size") : place,
                      .axis = s->axis,
                      .op = r ? r->op : NULL};
    if (r && s->arg >= 0)
        check.arg = relation_argument(r, s->arg);
    if (r && s->arg == -1)
        check.of_result = r->instance ? r->instance : (struct Expr *)r->expr;
    check.unlisted = r && r->from_call && s->arg == NO_ARGUMENT && is_broadcast(r->def);
    if (r) {
        check.fn = r->fn;
        check.time = r->time;
        check.inner = r->inner;
        check.inner_name = r->inner_name;
    }
    vec_push(&s->residuals, check);
}

void solver_list_elements(Solver *s, Elements elements, Span span, TypePlace place) {
    if (place.kind == PLACE_NONE)
        place = place_of_words("this");
    vec_push(&s->residuals,
             ((Residual){.span = span, .axis = -1, .place = place, .elements = elements}));
}

const char *relation_argument(const Relation *r, int arg) {
    return r->op ? op_arg(r->op, arg).name : NULL;
}

const char *residual_text(const Residual *r, TypeNamer *namer) {
    if (r->text)
        return r->text;
    if (r->elements == ELEMENTS_ALL)
        return fmt_text("%s: its elements may differ in size, and one size may be asked of several",
                        type_place_text(&r->place));
    if (r->elements == ELEMENTS_TWO)
        return fmt_text("%s: of two elements, whose sizes must be equal",
                        type_place_text(&r->place));
    Str a = {0}, b = {0};
    type_print(&a, r->a, namer);
    type_print(&b, r->b, namer);
    TypePlace place = r->axis < 0 || r->place.has_axis ? r->place
                                                       : place_of_axis(r->axis, r->place);
    return fmt_text("%s: %s must equal %s", type_place_text(&place), str_text(&a), str_text(&b));
}

/* ---- calls tried with sizes ------------------------------------------------------------------ */

enum { TRIALS = 400, MAX_ARGS = 32, MAX_VALUES = 64 };

/* The unknown sizes and shapes of a call, and what stands for them in one trial. */
typedef struct Trial {
    Solver *s;
    Relation *r;
    TypeVec unknowns;           /* TY_VAR, TY_PARAM, TY_ANY of KIND_DIM or KIND_SHAPE */
    int64_t values[MAX_VALUES]; /* the sizes to try */
    int nvalues;
    uint32_t number, seed;
    Tensor *in[MAX_ARGS];
    uint32_t nin;
} Trial;

static void note_value(Trial *t, int64_t v) {
    if (v < 0 || v > 1 << 16 || t->nvalues == MAX_VALUES)
        return;
    for (int i = 0; i < t->nvalues; i++)
        if (t->values[i] == v)
            return;
    t->values[t->nvalues++] = v;
}

static void note_unknown(Trial *t, Type *u) {
    for (size_t i = 0; i < t->unknowns.len; i++)
        if (t->unknowns.data[i] == u)
            return;
    vec_push(&t->unknowns, u);
}

static void note_dim(Trial *t, Type *d) {
    d = type_resolve(d);
    int64_t n;
    if (type_get_int(d, &n)) {
        for (int64_t k = n - 1; k <= n + 1; k++)
            note_value(t, k);
    } else if (d->tag != TY_DIM) {
        note_unknown(t, d);
    } else {
        for (uint32_t i = 0; i < d->dim->nterms; i++)
            for (uint32_t k = 0; k < d->dim->terms[i].natoms; k++) {
                const DimAtom *a = d->dim->terms[i].atoms[k];
                if (a->kind == DIM_ATOM_TYPE) {
                    note_unknown(t, a->type);
                } else {
                    note_dim(t, a->a);
                    note_dim(t, a->b);
                }
            }
    }
}

static void note_attr(Trial *t, const AttrValue *v) {
    if (v->kind == ATTR_INT)
        note_value(t, v->i);
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n; i++)
        note_attr(t, &v->list.items[i]);
}

static bool note_type(Trial *t, Type *type) {
    type = type_resolve(type);
    for (uint32_t i = 0; type->tag == TY_TUPLE && i < type->nargs; i++)
        if (!note_type(t, type->args[i]))
            return false;
    if (type->tag == TY_TUPLE)
        return true;
    if (type->tag != TY_TENSOR)
        return false;
    uint32_t rank;
    Type **dims, *shape = type_resolve(type->tensor.shape);
    if (!type_get_rank(shape, &rank, &dims)) {
        note_unknown(t, shape);
        return true;
    }
    for (uint32_t i = 0; i < rank; i++)
        note_dim(t, dims[i]);
    return true;
}

static uint32_t random_below(Trial *t, uint32_t n) {
    t->seed = t->seed * 1664525u + 1013904223u;
    return (t->seed >> 16) % n;
}

/* The size of an unknown in this trial. In the first trials all unknowns have one size. */
static int64_t choose_value(const Trial *t, const Type *unknown) {
    if (t->number < (uint32_t)t->nvalues)
        return t->values[t->number];
    size_t at = 0;
    while (at < t->unknowns.len && t->unknowns.data[at] != unknown)
        at++;
    uint32_t hash = (t->number * 2654435761u) ^ ((uint32_t)at * 40503u + 977u) * 2246822519u;
    return t->values[(hash >> 11) % (uint32_t)t->nvalues];
}

static DimKnown give_tried_value(void *trial, Type *unknown, int64_t *out) {
    *out = choose_value(trial, unknown);
    return DIM_KNOWN;
}

/* Chooses a dtype of the class where the dtype is not known, preferably one that the operator takes. */
static DType choose_dtype(Type *dtype, DTypeSet taken) {
    static const DType order[] = {DT_F32, DT_I32, DT_BOOL, DT_F64, DT_I64, DT_U8, DT_U64};
    DTypeSet set = type_dtype_set(dtype) & taken ? type_dtype_set(dtype) & taken
                                                 : type_dtype_set(dtype);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (set & DT_BIT(order[i]))
            return order[i];
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (set & DT_BIT(i))
            return (DType)i;
    return DT_F32;
}

/* Fills a tensor with small values of both signs, for shape functions that read values. */
static void fill_values(Trial *t, Tensor *x) {
    for (int64_t i = 0; i < x->count; i++) {
        int64_t v = (int64_t)random_below(t, 7) - 3;
        if (dtype_is_float(x->dtype))
            elem_set_float(tensor_at(x, i), x->dtype, (double)v);
        else
            elem_set_int(tensor_at(x, i), x->dtype, x->dtype == DT_BOOL ? v > 0 : v);
    }
}

static bool add_tensor(Trial *t, Type *type) {
    uint32_t rank;
    Type **dims, *shape = type_resolve(type->tensor.shape);
    int64_t sizes[TENSOR_MAX_RANK];
    if (t->nin == MAX_ARGS)
        return false;
    if (!type_get_rank(shape, &rank, &dims)) {
        uint32_t of = (uint32_t)choose_value(t, shape) * 7 + t->number;
        rank = of % 4;
        for (uint32_t i = 0; i < rank; i++)
            sizes[i] = t->values[(of / 4 + i * (t->number / 5)) % (uint32_t)t->nvalues];
    } else {
        if (rank > TENSOR_MAX_RANK)
            return false;
        for (uint32_t i = 0; i < rank; i++)
            if (dim_evaluate(dims[i], give_tried_value, t, &sizes[i]) != DIM_KNOWN || sizes[i] < 0)
                return false;
    }
    DType dtype = choose_dtype(type->tensor.dtype, t->r->op->dtypes);
    int64_t count = shape_count((int)rank, sizes, dtype);
    bool values = t->r->op->shape_mode != SHAPE_OF_SHAPES;
    if (count < 0 || (values && count > 4096))
        return false;
    Tensor *x;
    if (values) {
        x = tensor_new(dtype, (int)rank, sizes);
        fill_values(t, x);
    } else { /* only the sizes are read, so the tensor has no elements */
        x = mem_alloc(sizeof(Tensor) + rank * sizeof(int64_t));
        *x = (Tensor){.dtype = dtype, .rank = (int)rank, .count = count};
        memcpy(x->shape, sizes, rank * sizeof *sizes);
    }
    t->in[t->nin++] = x;
    return true;
}

static bool add_tensors(Trial *t, Type *type) {
    type = type_resolve(type);
    if (type->tag == TY_TENSOR)
        return add_tensor(t, type);
    for (uint32_t i = 0; i < type->nargs; i++)
        if (!add_tensors(t, type->args[i]))
            return false;
    return true;
}

static bool add_arguments(Trial *t) {
    t->nin = 0;
    for (uint32_t i = 0; i + 1 < t->r->nargs; i++)
        if (!add_tensors(t, t->r->args[i]))
            return false;
    return true;
}

/* Asks the shape function. The result is its refusal of these sizes, or NULL. */
static const Diag *ask_shape_function(Trial *t) {
    Diags diags = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    if (!add_arguments(t))
        return NULL;
    OpCall call = {.op = t->r->op,
                   .attrs = t->r->attrs,
                   .nin = t->nin,
                   .in = t->in,
                   .diags = &diags,
                   .span = t->r->span};
    return call.op->shape(&call, out) >= 0 || !diags.list.len ? NULL : diags.list.data[0];
}

static const char *find_size_refusal(Trial *t) {
    const Diag *d = ask_shape_function(t);
    if (!d)
        return NULL;
    bool of_sizes = d->code != DIAG_R0310 && d->code != DIAG_R0311 && d->code != DIAG_R0317 &&
                    d->code != DIAG_R0601 && d->code != DIAG_R0602;
    return of_sizes ? d->message : NULL;
}

bool residual_may_refuse(Solver *s, Relation *r) {
    Trial t = {.s = s, .r = r, .seed = 1, .values = {1}, .nvalues = 1};
    return r->op->shape && (!add_arguments(&t) || ask_shape_function(&t));
}

static bool is_ranked(Type *type) {
    uint32_t rank;
    Type **dims;
    type = type_resolve(type);
    for (uint32_t i = 0; type->tag == TY_TUPLE && i < type->nargs; i++)
        if (!is_ranked(type->args[i]))
            return false;
    return type->tag == TY_TUPLE || (type->tag == TY_TENSOR && type_get_rank(type, &rank, &dims));
}

bool solver_probe_ranks(Solver *s, Relation *r) {
    const Op *op = r->op;
    if (r->probed || !op || !op->shape || op->foreign || r->def != op->relation ||
        op->pattern == OP_ELEMWISE || is_broadcast(r->def) || (!r->attrs && op->nattrs) ||
        (r->attrs && (attrs_have_sizes(r->attrs) || attrs_have_refs(r->attrs))))
        return true;
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        if (!is_ranked(r->args[i]))
            return true;
    r->probed = true;
    Trial t = {.s = s, .r = r, .seed = 1, .values = {1}, .nvalues = 1};
    const Diag *d = ask_shape_function(&t);
    if (!d || (d->code != DIAG_R0313 && d->code != DIAG_R0315))
        return true;
    rel_error(s, r, d->code, "%s", d->message);
    return false;
}

/* Prints each unknown size with its place, as in "axis 0 of argument `data`, n". */
static void print_places(Str *out, Residual *check, Relation *r, TypeNamer *namer) {
    for (uint32_t i = 0; i + 1 < r->nargs; i++) {
        uint32_t rank;
        Type **dims, *type = type_resolve(r->args[i]);
        const char *arg = relation_argument(r, (int)i);
        bool ranked = type->tag == TY_TENSOR && type_get_rank(type, &rank, &dims);
        int64_t n;
        for (uint32_t k = 0; ranked && k < rank; k++) {
            if (type_get_int(type_resolve(dims[k]), &n))
                continue;
            str_printf(out, "%saxis %u of argument `%s`, ", out->len ? " and " : "", k, arg);
            type_print(out, dims[k], namer);
            if (!check->arg) {
                check->arg = arg;
                check->axis = (int)k;
            }
        }
        if (ranked || (type->tag == TY_TENSOR && !type_has_vars(type) && rank == 0))
            continue;
        str_printf(out, "%sargument `%s`, ", out->len ? " and " : "", arg ? arg : "");
        type_print(out, type, namer);
        if (!check->arg)
            check->arg = arg;
    }
}

static bool has_own_check(Solver *s, const Relation *r) {
    for (size_t i = 0; i < s->residuals.len; i++) {
        const Residual *c = &s->residuals.data[i];
        if (c->op == r->op && c->span.source == r->span.source && c->span.begin == r->span.begin)
            return true;
    }
    return false;
}

static bool is_same_text(Span a, Span b) {
    uint32_t n = a.end - a.begin;
    return a.source && a.source == b.source && n == b.end - b.begin &&
           memcmp(a.source->text + a.begin, a.source->text + b.begin, n) == 0;
}

/* The argument's type with sizes of its own for `each` unknowns. `x + x` has one value twice. */
static Type *open_argument(const Relation *r, uint32_t i, Type *const *before) {
    for (uint32_t k = 0; r->arg_spans && k < i; k++)
        if (is_same_text(r->arg_spans[k], r->arg_spans[i]))
            return before[k];
    return solver_open_each(r->args[i]);
}

static Relation *open_arguments(const Relation *r) {
    Relation *open = mem_new(Relation);
    *open = *r;
    open->args = mem_new_n(Type *, r->nargs + 1);
    for (uint32_t i = 0; i < r->nargs; i++)
        open->args[i] = i + 1 < r->nargs ? open_argument(r, i, open->args) : r->args[i];
    return open;
}

/* A foreign operator has no shape function before its item runs, so it is not tried. Its relation makes all of its
 * checks. */
void residual_try_sizes(Solver *s, Relation *r) {
    static const int64_t always[] = {0, 1, 2, 3, 7, 1009};
    r = open_arguments(r);
    Trial t = {.s = s, .r = r, .seed = 1};
    if (!r->op->shape || r->op->untried || has_own_check(s, r) || attrs_have_sizes(r->attrs) ||
        (r->attrs && attrs_have_refs(r->attrs)))
        return;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        note_value(&t, always[i]);
    for (uint32_t i = 0; i + 1 < r->nargs; i++)
        if (!note_type(&t, r->args[i]))
            return;
    for (int i = 0; r->attrs && i < r->op->nattrs; i++)
        note_attr(&t, &r->attrs->values[i]);
    bool values = r->op->shape_mode == SHAPE_OF_DATA;
    const char *said = NULL;
    for (; (t.unknowns.len || values) && t.number < TRIALS && !said; t.number++)
        said = find_size_refusal(&t);
    if (!said)
        return;
    const char *subject = relation_subject(r), *prefix = fmt_text("`%s`: ", r->op->name);
    if (strncmp(said, prefix, strlen(prefix)) == 0)
        said += strlen(prefix);
    Residual check = {
        .span = r->span, .axis = -1, .op = r->op, .inner = r->inner, .inner_name = r->inner_name};
    TypeNamer namer = {0};
    Str places = {0};
    print_places(&places, &check, r, &namer);
    check.text = fmt_text("`%s`: %s%snot every %s fits (%s)", subject, str_text(&places),
                          places.len ? ": " : "", values ? "value" : "size", said);
    vec_push(&s->residuals, check);
}

/* ---- the list --------------------------------------------------------------------------------- */

void solver_list_operators(Solver *s, bool on) { s->listing = on; }

void solver_try_operators(Solver *s) {
    for (size_t i = 0; i < s->settled.len; i++)
        residual_try_sizes(s, s->settled.data[i]);
    inside_list_checks(s);
    vec_clear(&s->settled);
}
