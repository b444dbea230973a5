/* SPDX-License-Identifier: Apache-2.0 */
/* Relation against kernel for every operator over small shapes: ranks 0 to 4, sizes 0 to 3. The operators
 * of one or two tensors over all of them (every_shape, below); and every operator with attributes swept
 * (axes, strides, padding, …). That product is walked with a fixed stride where it has more calls than the
 * share of CALLS, half of them with later arguments shaped after the first. RLY_RELATIONS_OP=NAME is for
 * one operator, RLY_RELATIONS_SHOW for how many calls of each there were. Of each call:
 *
 *  - the relation accepts exactly what the shape function accepts, and says the same shapes, which
 *    are those of the tensors that come out of running it;
 *  - with sizes replaced by `?` what was accepted still is, at a type of which the sizes are a case;
 *  - with ranks unknown too, and then at any rank where the result's follows from them;
 *  - with equal sizes replaced by a declared n the formula of the result has the right value there;
 *  - what is accepted with `?` or n and refused when running is among the residual checks;
 *  - what is refused whatever the sizes are (their number, the dtypes and the attributes being these) is
 *    refused with every size unknown;
 *  - where the type of an argument is not known yet, but that of the result may be, what was accepted is
 *    not refused; and it still is accepted, at the same type, once the argument turns out to be what it
 *    was: nothing else was found of it;
 *  - and what was refused is refused once its arguments are known, or it is among the residual checks;
 *  - so it is in a definition of any sizes or shapes, found or declared, that is called with these: nothing
 *    is left for the run; what was accepted is accepted there, and nothing declared is fixed. */
#include "base/diag.h"
#include "ops/ops.h"
#include "tests/unit/check.h"
#include "tests/unit/op_calls.h"
#include "types/solve/solver.h"

#include <stdlib.h>

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

/* ---- types ----------------------------------------------------------------------------------- */

static const char *call_text(const Call *c, Type **types) {
    Str text = {0};
    str_printf(&text, "%s(", c->op->name);
    for (int i = 0; i < c->ntypes; i++)
        str_printf(&text, "%s%s", i ? ", " : "", type_text(types[i]));
    str_add(&text, "; ");
    attrs_print(&text, c->attrs);
    str_add_char(&text, ')');
    return str_text(&text);
}

/* The types of the arguments, where tensor i has dims[i], or no known rank; then the result. */
static Type **make_types(const Call *c, Solver *s, Type *(*dims)[5], uint32_t unranked) {
    Type **types = mem_new_n(Type *, c->ntypes + 1), *parts[MAX_IN];
    int at = 0;
    for (int i = 0; i < c->ntypes; i++) {
        bool tuple = c->tuples >> i & 1;
        int n = tuple ? c->ntuple : 1;
        for (int k = 0; k < n; k++, at++) {
            Type **own = mem_new_n(Type *, c->shapes[at].rank + 1);
            for (int a = 0; a < c->shapes[at].rank; a++)
                own[a] = dims[at][a];
            Type *shape = unranked >> at & 1 ? type_any(KIND_SHAPE, NULL)
                                             : type_shape(own, (uint32_t)c->shapes[at].rank);
            parts[k] = type_tensor(shape, type_dtype(c->dtypes[at]));
        }
        if (tuple) {
            Type **held = mem_new_n(Type *, n + 1);
            memcpy(held, parts, sizeof *held * (size_t)n);
            types[i] = type_tuple(held, (uint32_t)n);
        } else {
            types[i] = parts[0];
        }
    }
    types[c->ntypes] = solver_var(s, KIND_TYPE);
    return types;
}

typedef struct Related {
    Solver *s;
    Diags diags;
    Type **types;
    bool ok, done;
} Related;

static Related relate_ranks(const Call *c, Type *(*dims)[5], uint32_t unranked) {
    Related x = {0};
    Diags *diags = mem_new(Diags);
    x.s = solver_new(diags);
    solver_list_operators(x.s, true);
    x.types = make_types(c, x.s, dims, unranked);
    Relation *r = solver_post(x.s, c->op->relation, x.types, (uint32_t)c->ntypes + 1, c->attrs,
                              span_none());
    r->op = c->op;
    x.ok = solver_run(x.s);
    x.done = r->status == REL_DONE && solver_nwaiting(x.s) == 0;
    x.diags = *diags;
    return x;
}

static Related relate(const Call *c, Type *(*dims)[5]) { return relate_ranks(c, dims, 0); }

/* ---- what must hold -------------------------------------------------------------------------- */

typedef struct Known {
    Type *unknown[MAX_IN * 5];
    Type *value[MAX_IN * 5];
    uint32_t n;
    bool ranks; /* not even the rank of the result follows */
} Known;

/* The size is `want`, where the unknowns of the arguments have their values; it may be an unknown
 * of its own where it depends on values. */
static bool size_is(Type *d, int64_t want, const Known *known) {
    int64_t n;
    Type *t = type_resolve(type_substitute(type_resolve(d), (Type *const *)known->unknown,
                                           (Type *const *)known->value, known->n));
    return type_get_int(t, &n) ? n == want : (t->flags & TYPE_HAS_ANY) != 0;
}

static bool tensor_is(Type *t, const OutSpec *out, const Known *known) {
    DType dtype;
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag != TY_TENSOR || !type_get_dtype(t, &dtype) || dtype != out->dtype)
        return false;
    if (known->ranks && type_resolve(t->tensor.shape)->tag == TY_ANY)
        return true;
    if (!type_get_rank(t, &rank, &dims) || (int)rank != out->rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!size_is(dims[i], out->shape[i], known))
            return false;
    return true;
}

static bool result_is(const Call *c, Type *t, const OutSpec *out, int n, const Known *known) {
    t = type_resolve(t);
    if (!c->op->tuple && n == 1)
        return tensor_is(t, out, known);
    if (t->tag != TY_TUPLE || t->nargs != (uint32_t)n)
        return false;
    for (int i = 0; i < n; i++)
        if (!tensor_is(t->args[i], &out[i], known))
            return false;
    return true;
}

static const char *outputs_text(const OutSpec *out, int n) {
    Str text = {0};
    for (int i = 0; i < n; i++) {
        str_printf(&text, "%s%s (", i ? ", " : "", dtype_info[out[i].dtype].name);
        for (int k = 0; k < out[i].rank; k++)
            str_printf(&text, "%lld,", (long long)out[i].shape[k]);
        str_add_char(&text, ')');
    }
    return str_text(&text);
}

static bool of_dtypes(const Diags *d) {
    DiagCode code = d->list.len ? d->list.data[0]->code : DIAG_R0301;
    return code == DIAG_R0310 || code == DIAG_R0311;
}

/* Of values, not of sizes. */
static bool of_values(const Diags *d) {
    DiagCode code = d->list.len ? d->list.data[0]->code : DIAG_R0301;
    return code == DIAG_R0601 || code == DIAG_R0602 || code == DIAG_R0603 || code == DIAG_R0613;
}

/* The rank of the result depends on a size. */
static bool rank_of_sizes(const Call *c) {
    const char *name = c->op->name;
    return strcmp(name, "collapse_sum_to") == 0 || strcmp(name, "gather_nd") == 0 ||
           (strcmp(name, "squeeze") == 0 && attrs_is_none(c->attrs, "axis"));
}

static void known_dims(const Call *c, Type *(*dims)[5]) {
    for (int i = 0; i < c->nin; i++)
        for (int k = 0; k < c->shapes[i].rank; k++)
            dims[i][k] = type_dim_int(c->shapes[i].dims[k], NULL);
}

/* Some sizes replaced: by `?`, or those equal to `n` by a declared one. */
static void replaced(const Call *c, const OutSpec *out, int n, const Diags *refused, bool declared,
                     int64_t size, uint32_t mask) {
    Type *dims[MAX_IN][5], *param = type_param(sym_intern("n"), KIND_DIM);
    Known known = {.ranks = rank_of_sizes(c)};
    uint32_t bit = 0;
    known_dims(c, dims);
    for (int i = 0; i < c->nin; i++)
        for (int k = 0; k < c->shapes[i].rank; k++, bit++) {
            if (declared ? c->shapes[i].dims[k] != size : !(mask >> (bit % 32) & 1))
                continue;
            Type *u = declared ? param : type_any(KIND_DIM, NULL);
            known.unknown[known.n] = u;
            known.value[known.n++] = dims[i][k];
            dims[i][k] = u;
        }
    if (known.n == 0)
        return;
    Related x = relate(c, dims);
    const char *text = call_text(c, x.types);
    bool sure = x.ok && x.done;
    if (n >= 0 && !declared && !x.ok)
        FAIL("%s: accepted with sizes known, refused with `?`: %s", text,
             x.diags.list.data[0]->message);
    if (n >= 0 && !declared && x.ok && !x.done)
        FAIL("%s: the relation waits", text);
    if (n >= 0 && sure && !result_is(c, x.types[c->ntypes], out, n, &known))
        FAIL("%s: %s does not have %s as a case", text, type_text(x.types[c->ntypes]),
             outputs_text(out, n));
    if (n < 0 && sure && c->op->shape_mode == SHAPE_OF_SHAPES) {
        solver_try_operators(x.s);
        if (solver_nresiduals(x.s) == 0)
            FAIL("%s: not listed, and refused when running with %s", text,
                 refused->list.data[0]->message);
    }
}

static Tensor *make_tensor(const Call *c, int i);

/* Some tensors replaced by ones of unknown rank. */
static void unranked(const Call *c, const OutSpec *out, int n, uint32_t mask) {
    Type *dims[MAX_IN][5];
    known_dims(c, dims);
    Related x = relate_ranks(c, dims, mask);
    const char *text = call_text(c, x.types);
    Known known = {.ranks = true};
    if (!x.ok)
        FAIL("%s: accepted with ranks known, refused with `?`: %s", text,
             x.diags.list.len ? x.diags.list.data[0]->message : "(nothing)");
    if (x.ok && !x.done)
        FAIL("%s: the relation waits", text);
    if (x.ok && x.done && !result_is(c, x.types[c->ntypes], out, n, &known))
        FAIL("%s: %s does not have %s as a case", text, type_text(x.types[c->ntypes]),
             outputs_text(out, n));
}

static int axes_of(const Call *c) {
    int n = 0;
    for (int i = 0; i < c->nin; i++)
        n += c->shapes[i].rank;
    return n;
}

/* The sizes that every axis is given; a random key has 10 elements. */
static const int64_t sizes[] = {0, 1, 2, 3, 4, 6, 10};
enum { NSIZES = 7, MOST_SIZES = 4000 };

/* In how many ways that can be done; 0: in more than are tried, which are fewer for a share of the whole. */
static int ways_of_sizes(const Call *c) {
    int most = (int)check_share(MOST_SIZES), count = 1;
    for (int i = 0; i < axes_of(c); i++)
        if ((count *= NSIZES) > most)
            return 0;
    return count;
}

/* Whether the shape function takes the call at some of these sizes; yes where they are not all tried, or
 * where it reads values. */
static bool some_sizes_fit(const Call *c) {
    Call other = *c;
    int count = ways_of_sizes(c);
    if (!count || c->op->shape_mode == SHAPE_OF_DATA)
        return true;
    for (int k = 0; k < count; k++) {
        int rest = k;
        for (int i = 0; i < c->nin; i++)
            for (int d = 0; d < c->shapes[i].rank; d++, rest /= NSIZES)
                other.shapes[i].dims[d] = sizes[rest % NSIZES];
        Diags refused = {0};
        OutSpec out[OP_MAX_OUTPUTS];
        for (int i = 0; i < c->nin; i++)
            other.in[i] = make_tensor(&other, i);
        OpCall call = {.op = c->op,
                       .attrs = c->attrs,
                       .nin = (uint32_t)c->nin,
                       .in = other.in,
                       .diags = &refused};
        if (c->op->shape(&call, out) >= 0 || of_values(&refused))
            return true;
    }
    return false;
}

/* Called by derivative rules, with what the operator took: only their ranks are looked at. */
static bool is_backward(const Op *op) {
    static const char *const names[] = {
        "einsum_cross",  "einsum_grad",        "einsum_pairs",       "expand_like",
        "gather_nd_add", "index_add",          "matmul_lhs",         "matmul_rhs",
        "meshgrid_sum",  "nn.avg_pool2d_grad", "nn.max_pool2d_grad", "nn.mirror_pad_sum",
        "nn.pad_sum",    "repeat_sum",         "strided_slice_add",  "take_add",
        "tile_sum",      "unflatten_axes",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0)
            return true;
    return false;
}

/* The call is refused. */
static void certain(const Call *c, const Diags *refused) {
    Type *dims[MAX_IN][5];
    for (int i = 0; i < c->nin; i++)
        for (int k = 0; k < c->shapes[i].rank; k++)
            dims[i][k] = type_any(KIND_DIM, NULL);
    Related x = relate(c, dims);
    DiagCode code = refused->list.data[0]->code;
    bool ranks = code == DIAG_R0313 || code == DIAG_R0315;
    if (ranks && x.ok)
        FAIL("%s: %s, accepted with `?`", call_text(c, x.types), refused->list.data[0]->message);
    if (ranks && c->op->shape_mode != SHAPE_OF_DATA && ways_of_sizes(c) && some_sizes_fit(c))
        FAIL("%s: R%04d is not of ranks and axes alone: %s", call_text(c, x.types), (int)code,
             refused->list.data[0]->message);
    bool by_count = strcmp(c->op->name, "scatter_nd") ==
                    0; /* of coordinates, a size: so its ranks fit */
    if (x.ok && !by_count && !is_backward(c->op) && !some_sizes_fit(c))
        FAIL("%s: refused at all sizes (R%04d %s), accepted with `?`", call_text(c, x.types),
             (int)refused->list.data[0]->code, refused->list.data[0]->message);
}

/* Zeros; where the values decide the shape, small ones. */
static Tensor *make_tensor(const Call *c, int i) {
    Tensor *t = tensor_new_zero(c->dtypes[i], c->shapes[i].rank, c->shapes[i].dims);
    for (int64_t k = 0; k < t->count && c->op->shape_mode != SHAPE_OF_SHAPES; k++)
        if (dtype_is_float(t->dtype))
            elem_set_float(tensor_at(t, k), t->dtype, (double)below(4));
        else
            elem_set_int(tensor_at(t, k), t->dtype, below(t->dtype == DT_BOOL ? 2 : 4));
    return t;
}

/* ---- in the other directions ----------------------------------------------------------------- */

static Type *output_type(const OutSpec *out) {
    Type **dims = mem_new_n(Type *, out->rank + 1);
    for (int i = 0; i < out->rank; i++)
        dims[i] = type_dim_int(out->shape[i], NULL);
    return type_tensor(type_shape(dims, (uint32_t)out->rank), type_dtype(out->dtype));
}

static Type *outputs_type(const Call *c, const OutSpec *out, int n) {
    if (!c->op->tuple && n == 1)
        return output_type(out);
    Type **parts = mem_new_n(Type *, n + 1);
    for (int i = 0; i < n; i++)
        parts[i] = output_type(&out[i]);
    return type_tuple(parts, (uint32_t)n);
}

typedef enum Open { OPEN_DTYPE = 1, OPEN_SIZES = 2, OPEN_SHAPE = 4, OPEN_ALL = 8 } Open;

/* Of the type of a tensor some of it is not known. */
static Type *opened(Solver *s, Type *t, uint32_t how) {
    uint32_t rank;
    Type **dims, *shape = t->tensor.shape;
    if (how & OPEN_SHAPE) {
        shape = solver_var(s, KIND_SHAPE);
    } else if (how & OPEN_SIZES && type_get_rank(t, &rank, &dims)) {
        Type **fresh = mem_new_n(Type *, rank + 1);
        for (uint32_t i = 0; i < rank; i++)
            fresh[i] = how & OPEN_ALL || below(2) ? solver_var(s, KIND_DIM) : dims[i];
        shape = type_shape(fresh, rank);
    }
    return type_tensor(shape, how & OPEN_DTYPE ? solver_var(s, KIND_DTYPE) : t->tensor.dtype);
}

static Type *open_argument(Solver *s, Type *t, uint32_t how, uint32_t mask, int *at) {
    t = type_resolve(t);
    if (t->tag != TY_TUPLE)
        return mask >> (*at)++ & 1 ? opened(s, t, how) : t;
    Type **parts = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = open_argument(s, t->args[i], how, mask, at);
    return type_tuple(parts, t->nargs);
}

/* A call whose arguments of the mask are not known at first. */
typedef struct Late {
    Solver *s;
    Diags *diags;
    Relation *r;
    Type **real, **types;
    const char *text;
} Late;

static Late post_late(const Call *c, uint32_t how, uint32_t mask) {
    Type *dims[MAX_IN][5];
    Late x = {.diags = mem_new(Diags), .types = mem_new_n(Type *, c->ntypes + 1)};
    int at = 0;
    x.s = solver_new(x.diags);
    solver_list_operators(x.s, true);
    known_dims(c, dims);
    x.real = make_types(c, x.s, dims, 0);
    for (int i = 0; i < c->ntypes; i++)
        x.types[i] = open_argument(x.s, x.real[i], how, mask, &at);
    x.types[c->ntypes] = x.real[c->ntypes];
    x.text = call_text(c, x.types);
    x.r = solver_post(x.s, c->op->relation, x.types, (uint32_t)c->ntypes + 1, c->attrs,
                      span_none());
    x.r->op = c->op;
    return x;
}

/* They turn out to be what they are: the first that cannot be, or -1. */
static int reveal(const Call *c, const Late *x) {
    for (int i = 0; i < c->ntypes; i++)
        if (!solver_unify(x->s, x->types[i], x->real[i]))
            return i;
    return -1;
}

/* The call is accepted. Of its result nothing is known at first, or some, or all. */
static void backward(const Call *c, const OutSpec *out, int n, uint32_t how, uint32_t mask,
                     uint32_t known) {
    Late x = post_late(c, how, mask);
    Type *result = x.types[c->ntypes];
    int at = 0;
    if (known && !solver_unify(x.s, result,
                               open_argument(x.s, outputs_type(c, out, n), OPEN_SIZES,
                                             known == 1 ? UINT32_MAX : 0, &at)))
        FAIL("%s: the result of another type", x.text);
    const char *text = fmt_text("%s -> %s", x.text, type_text(result)),
               *want = outputs_text(out, n);
    if (!solver_run(x.s)) {
        FAIL("%s, for %s: refused: %s", text, want, x.diags->list.data[0]->message);
        return;
    }
    int wrong = reveal(c, &x);
    if (wrong >= 0)
        FAIL("%s, for %s: argument %d was found to be %s, and is %s", text, want, wrong + 1,
             type_text(x.types[wrong]), type_text(x.real[wrong]));
    else if (!solver_run(x.s))
        FAIL("%s, for %s: refused when the arguments are known: %s", text, want,
             x.diags->list.data[0]->message);
    if (check_failures || c->op->shape_mode != SHAPE_OF_SHAPES || rank_of_sizes(c))
        return;
    Known nothing = {0};
    if (x.r->status != REL_DONE || solver_nwaiting(x.s))
        FAIL("%s, for %s: still waits when the arguments are known", text, want);
    else if (!result_is(c, result, out, n, &nothing))
        FAIL("%s, when the arguments are known: %s, not %s", text, type_text(result), want);
}

/* The call is refused: so it is when the arguments are known, or it is listed. */
static void refused_late(const Call *c, uint32_t how, uint32_t mask, const Diags *refused) {
    Late x = post_late(c, how, mask);
    if (c->op->shape_mode != SHAPE_OF_SHAPES || !solver_run(x.s) || reveal(c, &x) >= 0 ||
        !solver_run(x.s) || x.r->status != REL_DONE || !solver_check_early(x.s))
        return;
    solver_try_operators(x.s);
    if (solver_nresiduals(x.s) == 0)
        FAIL("%s: neither refused when the arguments are known, nor listed: %s", x.text,
             refused->list.data[0]->message);
}

/* A definition that makes the call, of any sizes or shapes. */
typedef struct Inside {
    Solver *s;
    Diags *diags;
    Scheme *scheme; /* NULL: it does not check */
    Type **real, **types, *own[MAX_IN * 5];
    uint32_t nown;
} Inside;

static Type *own_part(Inside *x, Kind kind, bool declared) {
    Type *t = declared ? solver_rigid(x->s, kind, sym_intern("n")) : solver_var(x->s, kind);
    x->own[x->nown++] = t;
    return t;
}

static Type *any_shapes(Inside *x, Type *t, bool declared, uint32_t mask, int *at) {
    if (t->tag != TY_TUPLE) {
        bool own = mask >> (*at)++ & 1;
        return own ? type_tensor(own_part(x, KIND_SHAPE, declared), t->tensor.dtype) : t;
    }
    Type **parts = mem_new_n(Type *, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        parts[i] = any_shapes(x, t->args[i], declared, mask, at);
    return type_tuple(parts, t->nargs);
}

/* Of the tensors in the mask; result: it is known, or NULL. */
static Inside define(const Call *c, bool of_shapes, bool declared, uint32_t mask, Type *result) {
    Type *dims[MAX_IN][5];
    uint32_t n = (uint32_t)c->ntypes;
    Inside x = {.diags = mem_new(Diags)};
    x.s = solver_new(x.diags);
    known_dims(c, dims);
    x.real = make_types(c, x.s, dims, 0);
    solver_enter(x.s);
    solver_set_infer_where(x.s, true);
    for (int i = 0; i < c->nin && !of_shapes; i++)
        for (int k = 0; k < c->shapes[i].rank; k++)
            if (mask >> i & 1)
                dims[i][k] = own_part(&x, KIND_DIM, declared);
    x.types = make_types(c, x.s, dims, 0);
    int at = 0;
    for (uint32_t i = 0; i < n && of_shapes; i++)
        x.types[i] = any_shapes(&x, x.types[i], declared, mask, &at);
    if (result)
        solver_unify(x.s, x.types[n], result);
    Relation *r = solver_post(x.s, c->op->relation, x.types, n + 1, c->attrs, span_none());
    r->op = c->op;
    Type *fn = type_fn(x.types, n, x.types[n], type_pure());
    if (solver_run(x.s))
        x.scheme = declared ? scheme_generalise_declared(x.s, fn, x.own, x.nown, false)
                            : scheme_generalise(x.s, fn, false);
    solver_leave(x.s);
    return x;
}

/* It is called with what the sizes really are. */
static bool use(const Call *c, const Inside *x) {
    Type *t = scheme_instantiate(x->s, x->scheme, span_none(), NULL, 0, NULL);
    for (int i = 0; i < c->ntypes; i++)
        if (!solver_unify(x->s, t->args[i], x->real[i]))
            return false;
    return solver_run(x->s) && solver_check_early(x->s);
}

static const char *inside_text(const Call *c, const Inside *x) {
    return fmt_text("%s, called with %s", call_text(c, x->types), call_text(c, x->real));
}

/* The call is refused: so it is inside of a definition, there or when that is called. */
static void refused_inside(const Call *c, const Diags *refused) {
    Inside x = define(c, below(3) == 0, below(2), UINT32_MAX, NULL);
    if (x.scheme && use(c, &x))
        FAIL("%s: not refused: %s", inside_text(c, &x), refused->list.data[0]->message);
}

/* The call is accepted: so it is inside of a definition that checks; and that fixes nothing declared. */
static void accepted_inside(const Call *c, const OutSpec *out, int n) {
    bool of_shapes = below(2), declared = below(4) > 0;
    uint32_t mask = below(2) ? UINT32_MAX : 1u << below((uint32_t)c->nin);
    Inside x = define(c, of_shapes, declared, mask, below(2) ? outputs_type(c, out, n) : NULL);
    if (!x.scheme && !declared)
        FAIL("%s: refused: %s", inside_text(c, &x), x.diags->list.data[0]->message);
    if (!x.scheme)
        return;
    Type **found;
    scheme_instantiate(x.s, x.scheme, span_none(), NULL, 0, &found);
    bool ran = solver_run(x.s);
    for (uint32_t i = 0; declared && ran && i < x.scheme->nparams && i < x.nown; i++)
        if (!type_has_vars(found[i]))
            FAIL("%s: the declared parameter %u is always %s", inside_text(c, &x), i,
                 type_text(found[i]));
    if (!use(c, &x))
        FAIL("%s: refused there: %s", inside_text(c, &x),
             x.diags->list.len ? x.diags->list.data[0]->message : "(other types)");
}

static void backwards(const Call *c, const OutSpec *out, int n, const Diags *refused) {
    static const uint32_t hows[] = {OPEN_SHAPE, OPEN_SHAPE | OPEN_DTYPE, OPEN_SIZES | OPEN_ALL,
                                    OPEN_SIZES, OPEN_SIZES | OPEN_DTYPE, OPEN_DTYPE};
    if (c->nin == 0)
        return;
    uint32_t how = hows[below(6)], other = hows[below(6)];
    uint32_t mask = below(4) ? 1 + below((1u << c->nin) - 1) : UINT32_MAX;
    if (n < 0) {
        refused_late(c, how, mask, refused);
        if (c->op->shape_mode == SHAPE_OF_SHAPES)
            refused_inside(c, refused);
        return;
    }
    accepted_inside(c, out, n);
    backward(c, out, n, how, 1u << below((uint32_t)c->nin), 2);
    backward(c, out, n, other, mask, below(3));
}

static int accepted, calls;

/* The relation against the shape function (whose outputs are n, or < 0) and against running. False: the
 * dtypes are not what the operator takes. `looking`: for calls that are accepted, others were checked
 * enough. */
static bool compare(Call *c, bool looking, OutSpec *out, int *outputs, Diags *refused) {
    for (int i = 0; i < c->nin; i++)
        c->in[i] = make_tensor(c, i);
    OpCall call = {
        .op = c->op, .attrs = c->attrs, .nin = (uint32_t)c->nin, .in = c->in, .diags = refused};
    int n = *outputs = c->op->shape(&call, out);
    if (n < 0 && of_dtypes(refused))
        return false;
    calls++;
    if (n < 0 && looking)
        return true;
    Type *dims[MAX_IN][5];
    known_dims(c, dims);
    Related x = relate(c, dims);
    Known nothing = {0};
    const char *text = call_text(c, x.types);
    bool by_values = c->op->shape_mode == SHAPE_OF_DATA;
    if (x.ok && n < 0 && !by_values)
        FAIL("%s: the relation holds, the shape function says %s", text,
             refused->list.data[0]->message);
    if (!x.ok && n >= 0)
        FAIL("%s: the shape function takes it, the relation says %s", text,
             x.diags.list.data[0]->message);
    if (x.ok && n >= 0 && !x.done)
        FAIL("%s: the relation still waits", text);
    if (n >= 0 && c->op->shape_mode != SHAPE_BOUND && x.done &&
        !result_is(c, x.types[c->ntypes], out, n, &nothing))
        FAIL("%s: the relation says %s, the shape function %s", text, type_text(x.types[c->ntypes]),
             outputs_text(out, n));
    if (n >= 0) {
        accepted++;
        Diags diags = {0};
        Tensor *made[OP_MAX_OUTPUTS];
        call.diags = &diags;
        int ran = op_run(&call, made, NULL, NULL);
        if (ran < 0 && !of_values(&diags))
            FAIL("%s: accepted, and running says %s", text, diags.list.data[0]->message);
        for (int i = 0; i < ran; i++) {
            bool same = made[i]->rank == out[i].rank && made[i]->dtype == out[i].dtype;
            for (int k = 0; k < out[i].rank && same; k++)
                same = c->op->shape_mode == SHAPE_BOUND ? made[i]->shape[k] <= out[i].shape[k]
                                                        : made[i]->shape[k] == out[i].shape[k];
            if (!same)
                FAIL("%s: result %d has another shape than the shape function says", text, i);
            for (int k = 0; k < out[i].rank; k++)
                out[i].shape[k] = made[i]->shape[k];
        }
        if (ran >= 0 && x.done && !result_is(c, x.types[c->ntypes], out, n, &nothing))
            FAIL("%s: the relation says %s, running %s", text, type_text(x.types[c->ntypes]),
                 outputs_text(out, n));
    }
    return true;
}

static bool check_call(Call *c, bool looking) {
    Diags refused = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    int n;
    if (!compare(c, looking, out, &n, &refused))
        return false;
    if (n < 0 && looking)
        return true;
    if (n < 0 && of_values(&refused))
        return true;
    if (n < 0)
        certain(c, &refused);
    uint32_t all = UINT32_MAX;
    replaced(c, out, n, &refused, false, 0, all);
    replaced(c, out, n, &refused, false, 0, 1u << below(12));
    replaced(c, out, n, &refused, false, 0, below(1u << 16));
    replaced(c, out, n, &refused, true, below(4), 0);
    backwards(c, out, n, &refused);
    if (n >= 0 && c->nin) {
        unranked(c, out, n, all);
        unranked(c, out, n, 1u << below((uint32_t)c->nin));
    }
    return true;
}

enum {
    CALLS = 1200,      /* of each operator */
    MOST_CALLS = 60000 /* until five of an operator are accepted */
};

/* The first argument has six axes, and shapes are drawn of up to four (tests/property/gradients.py calls it). */
static bool has_too_many_axes(const Op *op) {
    return strcmp(op->name, "nn.deform_columns_add") == 0;
}

TEST(every_operator) {
    const char *only = getenv("RLY_RELATIONS_OP");
    int failed = 0;
    seed = 4 + check_seed();
    uint32_t most = (uint32_t)check_share(CALLS);
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (only && strcmp(only, op->name) != 0)
            continue;
        uint32_t ways = 0;
        accepted = calls = 0;
        check_failures = 0; /* the first of each operator is shown */
        for (uint32_t k = 0; (k < most || (accepted < 5 && k < MOST_CALLS)) && !check_failures;
             k++) {
            Call c;
            if (!make_call(&c, op, k, ways))
                continue;
            if (!check_call(&c, k >= most)) /* other dtypes from now on */
                ways = accepted ? ways : below(1u << 16);
            if (!accepted && k % 50 == 49)
                ways = below(1u << 16);
        }
        if (getenv("RLY_RELATIONS_SHOW"))
            printf("%-28s %5d calls %5d accepted\n", op->name, calls, accepted);
        check_tried();
        if (accepted == 0 && !has_too_many_axes(op))
            FAIL("%s: no call was accepted of %d", op->name, calls);
        failed += check_failures;
    }
    check_failures = failed;
}

/* False: not these dtypes. */
static bool compare_shapes(Call *c, const Shape *first, const Shape *second) {
    Diags refused = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    int n;
    c->shapes[0] = *first;
    c->shapes[1] = *second;
    return compare(c, false, out, &n, &refused);
}

static int larger_rank(int k, int m) {
    return shapes[k].rank > shapes[m].rank ? shapes[k].rank : shapes[m].rank;
}

/* The operators of one or two tensors: every shape, every pair of shapes of at most one axis, and a share of
 * those of 2 and 3, of 2 four times as large. (Of 4 there are 116,281 pairs an operator.) */
TEST(every_shape) {
    const char *only = getenv("RLY_RELATIONS_OP");
    int failed = 0, operators = 0;
    uint32_t share = (uint32_t)check_share(1000);
    const uint32_t parts[] = {1000, 1000, 4 * share, share, 0}; /* of 1,000, by the larger rank */
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        Call c;
        if ((only && strcmp(only, op->name) != 0) || !make_call(&c, op, 0, 0) || c.tuples ||
            c.nin < 1 || c.nin > 2)
            continue;
        check_failures = 0;
        uint32_t way = 0;
        while (way < 4 && !compare_shapes(&c, &shapes[0], &shapes[0]) && !check_failures)
            c.dtypes[1] = later_dtype(op, c.dtypes[0], ++way);
        operators += way < 4;
        for (int k = 0; k < nshapes && way < 4; k++)
            for (int m = 0; m < (c.nin == 2 ? nshapes : 1) && !check_failures; m++)
                if (c.nin == 1 || below(1000) < parts[larger_rank(k, m)])
                    compare_shapes(&c, &shapes[k], &shapes[m]);
        failed += check_failures;
    }
    check_failures = failed;
    CHECK(only || operators > 140);
    if (getenv("RLY_RELATIONS_SHOW"))
        printf("%d operators of one or two tensors\n", operators);
}

int main(void) {
    mem_init();
    list_shapes();
    RUN(every_operator);
    RUN(every_shape);
    return check_result();
}
