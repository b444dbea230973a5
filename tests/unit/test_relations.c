/* SPDX-License-Identifier: Apache-2.0 */
/* Relation against kernel for every operator over small shapes: ranks 0 to 4, sizes 0 to 3, and
 * attributes swept (axes, strides, padding, …). The product is walked with a fixed stride where it
 * has more than RLY_RELATIONS calls an operator (300 unless the environment says otherwise), half
 * of them with later arguments shaped after the first. Of each call:
 *
 *  - the relation accepts exactly what the shape function accepts, and says the same shapes, which
 *    are those of the tensors that come out of running it;
 *  - with sizes replaced by `?` what was accepted still is, at a type of which the sizes are a case;
 *  - with equal sizes replaced by a declared n the formula of the result has the right value there;
 *  - what is accepted with `?` or n and refused when running is among the residual checks;
 *  - what is refused whatever the sizes are (their number, the dtypes and the attributes being these) is
 *    refused with every size unknown;
 *  - where the type of an argument is not known yet, but that of the result may be, what was accepted is
 *    not refused; and it still is accepted, at the same type, once the argument turns out to be what it
 *    was: nothing else was found of it. */
#include "base/diag.h"
#include "ops/plan.h"
#include "tests/unit/check.h"
#include "types/solver.h"

#include <stdlib.h>

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

enum { MAX_IN = 8, MAX_CHOICES = 12, MAX_ATTRS = 12 };

static uint32_t seed = 5;
static uint32_t below(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Values tried for an attribute, of one operator or (NULL) of all that have it; else its default. */
static const struct {
    const char *op, *attr, *values;
} choices[] = {
    {"reverse", "axis", "None;0;1;-1;3"},
    {"take", "axis", "None;0;1;-1;3"},
    {"take_add", "axis", "None;0;1;-1"},
    {"cumsum", "axis", "None;0;1;-1"},
    {"cumprod", "axis", "None;0;1;-1"},
    {"repeat", "axis", "None;0;1;-1"},
    {"repeat_sum", "axis", "None;0;1;-1"},
    {"squeeze", "axis", "None;[0];[1, 2];[-1];[0, 0]"},
    {"cast", "dtype", "float32;int8"},
    {"random.uniform", "out_dtype", "None;float64"},
    {NULL, "axis", "None;0;1;-1;-2;[0];[0, 1];[-1];[];[1, 1];[3];4"},
    {NULL, "axes", "None;[0];[1, 0];[0, 2, 1];[2, 0, 1];[0, 1, 2, 3];[-1];[0, 0]"},
    {NULL, "keepdims", "False;True"},
    {NULL, "exclude", "False;True"},
    {"strided_slice", "strides", "None;[1];[2];[1, -1];[-2];[0]"},
    {"strided_slice_add", "strides", "None;[1];[2];[1, -1]"},
    {"strided_slice", "begin", "None;[0];[1];[-1, 1];[0, 0, 2]"},
    {"strided_slice_add", "begin", "None;[0];[1];[-1, 1]"},
    {NULL, "end", "None;[2];[-1];[3, 1];[9, 9, 9]"},
    {"strided_slice", "slice_mode", "\"end\";\"size\""},
    {"strided_slice", "axes", "None;[1];[-1];[0, 1]"},
    {"strided_slice_add", "axes", "None;[1];[-1]"},
    {"strided_slice_add", "slice_mode", "\"end\""},
    {NULL, "strides", "[1, 1];[2];[1, 2];[2, 2];[3, 1]"},
    {NULL, "padding", "[0, 0];[1];[1, 0];[0, 1, 1, 2]"},
    {NULL, "dilation", "[1, 1];[2];[1, 2]"},
    {NULL, "groups", "1;2;3"},
    {NULL, "channels", "None;2;3"},
    {NULL, "kernel_size", "None;[1, 1];[2, 2]"},
    {NULL, "pool_size", "[1, 1];[2];[2, 1];[3, 3]"},
    {NULL, "ceil_mode", "False;True"},
    {NULL, "count_include_pad", "False;True"},
    {NULL, "data_layout", "\"NCHW\";\"NHWC\""},
    {NULL, "kernel_layout", "\"OIHW\";\"HWIO\""},
    {NULL, "layout", "\"NCHW\";\"NHWC\""},
    {NULL, "newshape",
     "[-1];[0, -1];[2, -1];[-2];[-3, -2];[-4, 1, -1, -2];[3, 2];[-4, -1, 2];[0];[-1, 0, 3];[2, "
     "-2];[-1, -1]"},
    {NULL, "allowzero", "False;True"},
    {NULL, "lhs_begin", "0;1"},
    {NULL, "lhs_end", "None;1;-1"},
    {NULL, "rhs_begin", "0;1"},
    {NULL, "rhs_end", "None;1"},
    {NULL, "num_newaxis", "1;2;0"},
    {NULL, "indices_or_sections", "1;2;3;[1];[1, 2];[0, 3];[]"},
    {NULL, "reps", "[2];[1, 2];[3, 1, 1, 1, 2];[0];[]"},
    {NULL, "repeats", "0;1;3"},
    {NULL, "pad_width",
     "[[1, 0]];[[0, 0], [1, 2]];[[1, 1], [0, 0], [0, 1], [0, 0]];[[1, 1], [2, 0], [0, 1]]"},
    {"nn.pad", "pad_mode", "\"constant\";\"edge\";\"reflect\""},
    {"nn.pad_sum", "pad_mode", "\"edge\";\"reflect\";\"constant\""},
    {"nn.mirror_pad", "mode", "\"SYMMETRIC\";\"REFLECT\""},
    {"nn.mirror_pad_sum", "mode", "\"SYMMETRIC\";\"REFLECT\""},
    {"scatter_nd", "mode", "\"update\";\"add\""},
    {NULL, "mode", "\"clip\""},
    {NULL, "batch_dims", "0;1;2"},
    {NULL, "index_rank", "None;1;2"},
    {NULL, "reduction", "\"update\";\"add\""},
    {NULL, "depth", "0;3"},
    {NULL, "units", "None;2"},
    {NULL, "transpose_a", "False;True"},
    {NULL, "transpose_b", "False;True"},
    {NULL, "center", "True;False"},
    {NULL, "k", "None;1;2;0"},
    {NULL, "ret_type", "\"both\";\"values\";\"indices\""},
    {NULL, "indexing", "\"ij\";\"xy\""},
    {NULL, "return_counts", "False;True"},
    {"index", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\";\"i.:0\";\"iiiii\""},
    {"index_add", "spec", "\"i\";\"ii\";\".i\";\":0i\";\"n.\""},
    {"broadcast_to", "shape", "[];[2, 3];[1, 2, 2];[3]"},
    {NULL, "shape", "[];[3];[2, 0];[1, 2, 3, 1]"},
    {NULL, "out_shape", "[];[3];[2, 0]"},
    {"einsum", "equation",
     "\"ij,jk->ik\";\"ii->i\";\"i,i->\";\"ij->ji\";\"...i,...i->...\";\"ij\""},
    {"einsum_pairs", "equation", "\"ij,jk->ik\";\"i,i->\""},
    {NULL, "equation", "\"ij,jk->ik\";\"i,i->\";\"ij->ji\""},
};

static const char *choices_of(const Op *op, const AttrSpec *spec) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strcmp(choices[i].attr, spec->name) == 0 &&
            (!choices[i].op || strcmp(choices[i].op, op->name) == 0))
            return choices[i].values;
    if (spec->initial)
        return spec->initial;
    return spec->type == AT_INT ? "0;1" : spec->type == AT_FLOAT ? "0.5" : NULL;
}

/* One of several texts with `;` between them, as this attribute takes it; false: it does not. */
static bool choose(const AttrSpec *spec, const char *values, uint32_t which, AttrValue *out) {
    uint32_t n = 1;
    for (const char *p = values; *p; p++)
        n += *p == ';';
    const char *p = values;
    for (which %= n; which; which--)
        p = strchr(p, ';') + 1;
    *out = attr_parse(fmt_text("%.*s", (int)strcspn(p, ";"), p));
    switch (spec->type) {
    case AT_INT:
    case AT_DIM: return out->kind == ATTR_INT || (spec->type == AT_DIM && out->kind == ATTR_NONE);
    case AT_INT_OPT: return out->kind == ATTR_INT || out->kind == ATTR_NONE;
    case AT_INTS:
    case AT_DIMS: return out->kind == ATTR_LIST;
    case AT_INTS_OPT:
    case AT_DIMS_OPT: return out->kind == ATTR_LIST || out->kind == ATTR_NONE;
    case AT_FLOAT:
    case AT_BOOL:
    case AT_STRING:
    case AT_DTYPE:
    case AT_INT_LISTS:
    case AT_INT_OR_INTS:
    case AT_FLOATS: return true;
    }
    return false;
}

static const Attrs *make_attrs(const Op *op) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++) {
        const char *texts = choices_of(op, &op->attrs[i]);
        bool plain = op->attrs[i].initial && below(3) != 0 && op->nattrs > 3;
        if (!texts)
            return NULL;
        for (int tries = 0;
             !choose(&op->attrs[i], plain ? op->attrs[i].initial : texts, below(64), &values[i]);)
            if (++tries == 50)
                return NULL;
    }
    Attrs *attrs = mem_new(Attrs);
    attrs->op = op;
    attrs->values = values;
    return attrs;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct Shape {
    int rank;
    int64_t dims[5];
} Shape;

static Shape shapes[341];
static int nshapes;

static void list_shapes(void) {
    for (int rank = 0, count = 1; rank <= 4; rank++, count *= 4)
        for (int i = 0; i < count; i++) {
            Shape s = {.rank = rank};
            for (int k = 0, rest = i; k < rank; k++, rest /= 4)
                s.dims[k] = rest % 4;
            shapes[nshapes++] = s;
        }
}

/* A shape that may go with the first: its own, cut, broadcast, a vector of one of its sizes, … */
static Shape shape_after(const Shape *s, uint32_t way) {
    Shape out = *s;
    switch (way % 9) {
    case 8: return (Shape){0};
    case 0:
    case 1: return out;
    case 2: /* some axes 1 */
        for (int k = 0; k < out.rank; k++)
            if (below(2))
                out.dims[k] = 1;
        return out;
    case 3: { /* the last axes */
        int cut = s->rank ? (int)below((uint32_t)s->rank + 1) : 0;
        out.rank -= cut;
        for (int k = 0; k < out.rank; k++)
            out.dims[k] = s->dims[k + cut];
        return out;
    }
    case 4: /* a vector */
        out = (Shape){1, {s->rank ? s->dims[way / 9 % (uint32_t)s->rank] : 1}};
        return out;
    case 5: /* a matrix that begins or ends so */
        out = (Shape){2, {below(4), below(4)}};
        if (s->rank)
            out.dims[below(2)] = s->dims[below(2) ? 0 : s->rank - 1];
        return out;
    case 6: /* one axis another size, or gone */
        if (s->rank && below(2)) {
            out.dims[below((uint32_t)s->rank)] = below(4);
        } else if (s->rank) {
            int gone = (int)below((uint32_t)s->rank);
            out.rank--;
            for (int k = gone; k < out.rank; k++)
                out.dims[k] = out.dims[k + 1];
        }
        return out;
    }
    return shapes[below((uint32_t)nshapes)];
}

/* ---- calls ----------------------------------------------------------------------------------- */

typedef struct Call {
    const Op *op;
    const Attrs *attrs;
    int ntypes;      /* arguments; the tensors of a tuple argument stand in a row */
    uint32_t tuples; /* the arguments that are tuples, one bit each */
    int ntuple;      /* how many tensors each holds */
    int nin;
    Shape shapes[MAX_IN];
    DType dtypes[MAX_IN];
    Tensor *in[MAX_IN];
} Call;

static uint32_t tuple_arguments(const Op *op) {
    uint32_t found = 0;
    for (int i = 0; i < op->nargs; i++)
        found |= (uint32_t)op_arg(op, i).tuple << i;
    return found;
}

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

/* The types of the arguments, where tensor i has dims[i]; then the result. */
static Type **make_types(const Call *c, Solver *s, Type *(*dims)[5]) {
    Type **types = mem_new_n(Type *, c->ntypes + 1), *parts[MAX_IN];
    int at = 0;
    for (int i = 0; i < c->ntypes; i++) {
        bool tuple = c->tuples >> i & 1;
        int n = tuple ? c->ntuple : 1;
        for (int k = 0; k < n; k++, at++) {
            Type **own = mem_new_n(Type *, c->shapes[at].rank + 1);
            for (int a = 0; a < c->shapes[at].rank; a++)
                own[a] = dims[at][a];
            parts[k] = type_tensor(type_shape(own, (uint32_t)c->shapes[at].rank),
                                   type_dtype(c->dtypes[at]));
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

static Related relate(const Call *c, Type *(*dims)[5]) {
    Related x = {0};
    Diags *diags = mem_new(Diags);
    x.s = solver_new(diags);
    solver_list_operators(x.s, true);
    x.types = make_types(c, x.s, dims);
    Relation *r = solver_post(x.s, c->op->relation, x.types, (uint32_t)c->ntypes + 1, c->attrs,
                              span_none());
    r->op = c->op;
    x.ok = solver_run(x.s);
    x.done = r->status == REL_DONE && solver_nwaiting(x.s) == 0;
    x.diags = *diags;
    return x;
}

/* ---- what must hold -------------------------------------------------------------------------- */

typedef struct Known {
    Type *unknown[MAX_IN * 5];
    Type *value[MAX_IN * 5];
    uint32_t n;
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
    if (t->tag != TY_TENSOR || !type_get_dtype(t, &dtype) || dtype != out->dtype ||
        !type_get_rank(t, &rank, &dims) || (int)rank != out->rank)
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
    return code == DIAG_R0601 || code == DIAG_R0602 || code == DIAG_R0603;
}

/* The rank of the result depends on a size, which therefore must be known: an unknown one is refused
 * or waited for. */
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
    Known known = {0};
    uint32_t bit = 0;
    known_dims(c, dims);
    for (int i = 0; i < c->nin; i++)
        for (int k = 0; k < c->shapes[i].rank; k++, bit++) {
            if (declared ? c->shapes[i].dims[k] != size : !(mask >> (bit % 32) & 1))
                continue;
            Type *u = declared ? param : type_any(NULL);
            known.unknown[known.n] = u;
            known.value[known.n++] = dims[i][k];
            dims[i][k] = u;
        }
    if (known.n == 0)
        return;
    Related x = relate(c, dims);
    const char *text = call_text(c, x.types);
    bool sure = x.ok && x.done;
    if (n >= 0 && !declared && !x.ok && !rank_of_sizes(c))
        FAIL("%s: accepted with sizes known, refused with `?`: %s", text,
             x.diags.list.data[0]->message);
    if (n >= 0 && !declared && x.ok && !x.done && !rank_of_sizes(c))
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

static int axes_of(const Call *c) {
    int n = 0;
    for (int i = 0; i < c->nin; i++)
        n += c->shapes[i].rank;
    return n;
}

/* Whether the shape function takes the call at some sizes, of a few; yes where there are too many axes to
 * try them all, or where it reads values. */
static bool some_sizes_fit(const Call *c) {
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 6, 10}; /* a random key has 10 elements */
    enum { NSIZES = 7, MOST = 4000 };
    Call other = *c;
    int ndims = axes_of(c), count = 1;
    for (int i = 0; i < ndims && count < MOST; i++)
        count *= NSIZES;
    if (count >= MOST || c->op->shape_mode == SHAPE_OF_DATA)
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
            dims[i][k] = type_any(NULL);
    Related x = relate(c, dims);
    DiagCode code = refused->list.data[0]->code;
    bool ranks = code == DIAG_R0313 || code == DIAG_R0315;
    if (ranks && x.ok)
        FAIL("%s: %s, accepted with `?`", call_text(c, x.types), refused->list.data[0]->message);
    if (ranks && c->op->shape_mode != SHAPE_OF_DATA && axes_of(c) <= 4 && some_sizes_fit(c))
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
    x.real = make_types(c, x.s, dims);
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

static void backwards(const Call *c, const OutSpec *out, int n, const Diags *refused) {
    static const uint32_t hows[] = {OPEN_SHAPE, OPEN_SHAPE | OPEN_DTYPE, OPEN_SIZES | OPEN_ALL,
                                    OPEN_SIZES, OPEN_SIZES | OPEN_DTYPE, OPEN_DTYPE};
    if (c->nin == 0)
        return;
    uint32_t how = hows[below(6)], other = hows[below(6)];
    uint32_t mask = below(4) ? 1 + below((1u << c->nin) - 1) : UINT32_MAX;
    if (n < 0) {
        refused_late(c, how, mask, refused);
        return;
    }
    backward(c, out, n, how, 1u << below((uint32_t)c->nin), 2);
    backward(c, out, n, other, mask, below(3));
}

static int accepted, calls;

/* False: the dtypes are not what the operator takes. */
static bool check_call(Call *c) {
    Diags refused = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    for (int i = 0; i < c->nin; i++)
        c->in[i] = make_tensor(c, i);
    OpCall call = {
        .op = c->op, .attrs = c->attrs, .nin = (uint32_t)c->nin, .in = c->in, .diags = &refused};
    int n = c->op->shape(&call, out);
    if (n < 0 && of_dtypes(&refused))
        return false;
    calls++;
    Type *dims[MAX_IN][5];
    known_dims(c, dims);
    Related x = relate(c, dims);
    Known nothing = {0};
    const char *text = call_text(c, x.types);
    bool by_values = c->op->shape_mode == SHAPE_OF_DATA;
    if (x.ok && n < 0 && !by_values)
        FAIL("%s: the relation holds, the shape function says %s", text,
             refused.list.data[0]->message);
    if (!x.ok && n >= 0)
        FAIL("%s: the shape function takes it, the relation says %s", text,
             x.diags.list.data[0]->message);
    if (x.ok && n >= 0 && !x.done && !rank_of_sizes(c))
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
    return true;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Dtypes of later arguments: as the first, an index, a condition, a float. */
static DType later_dtype(const Op *op, DType first, uint32_t way) {
    (void)op;
    switch (way % 4) {
    case 0: return first;
    case 1: return DT_I32;
    case 2: return DT_F32;
    }
    return DT_BOOL;
}

static DType first_dtype(const Op *op) {
    static const DType order[] = {DT_F32, DT_I32, DT_F64, DT_U64, DT_BOOL};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (op->dtypes & DT_BIT(order[i]))
            return order[i];
    return DT_F32;
}

static int integers_of(const Attrs *attrs) {
    int n = 0;
    for (const char *p = attrs_text(attrs, "spec"); *p; p++)
        n += *p == 'i';
    return n;
}

static bool make_call(Call *c, const Op *op, uint32_t number, uint32_t ways) {
    *c = (Call){.op = op, .tuples = tuple_arguments(op), .attrs = make_attrs(op)};
    if (!c->attrs)
        return false;
    c->ntypes = op->nargs;
    bool integers = strncmp(op->name, "index", 5) == 0,
         random = strncmp(op->name, "random.", 7) == 0;
    c->ntuple = integers ? integers_of(c->attrs) : 1 + (int)below(3);
    for (int i = 0; i < c->ntypes; i++)
        c->nin += c->tuples >> i & 1 ? c->ntuple : 1;
    if (c->nin > MAX_IN)
        return false;
    /* Sizes that are often equal; later arguments each in its own way, or all in one. */
    bool narrow = below(2), together = below(2), one_shape = c->tuples && below(3) == 0;
    uint32_t way = below(9 * 16);
    for (int i = 0; i < c->nin; i++) {
        bool index = integers && i >= c->nin - c->ntuple;
        Shape *s = &c->shapes[i];
        *s = i == 0                 ? shapes[number * 89 % (uint32_t)nshapes]
             : one_shape            ? c->shapes[0]
             : together || below(2) ? shape_after(&c->shapes[0], together ? way : below(9 * 16))
                                    : shapes[below((uint32_t)nshapes)];
        for (int k = 0; k < s->rank && narrow; k++)
            s->dims[k] = 1 + s->dims[k] % 2;
        if (random && i == 0 && below(4))
            *s = (Shape){1, {10}};
        if (index)
            s->rank = 0;
        if (i >= 1 + (strcmp(op->name, "strided_set") == 0) && strstr(op->name, "strided_s") &&
            op->shape_mode == SHAPE_OF_DATA && below(2))
            *s = (Shape){1, {1}};
        c->dtypes[i] = i == 0      ? first_dtype(op)
                       : index     ? DT_I32
                       : c->tuples ? c->dtypes[0]
                                   : later_dtype(op, c->dtypes[0], ways >> (2 * (i - 1)));
    }
    if (strcmp(op->name, "where") == 0)
        c->dtypes[0] = DT_BOOL;
    return true;
}

TEST(every_operator) {
    const char *limit = getenv("RLY_RELATIONS"), *only = getenv("RLY_RELATIONS_OP");
    const char *other = getenv("RLY_RELATIONS_SEED");
    int failed = 0;
    seed = other ? (uint32_t)atoi(other) : seed;
    uint32_t most = limit ? (uint32_t)atoi(limit) : 300;
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (only && strcmp(only, op->name) != 0)
            continue;
        uint32_t ways = 0;
        accepted = calls = 0;
        check_failures = 0; /* the first of each operator is shown */
        for (uint32_t k = 0; (k < most || (accepted < 5 && k < 40 * most)) && !check_failures;
             k++) {
            Call c;
            if (!make_call(&c, op, k, ways))
                continue;
            if (!check_call(&c)) /* other dtypes from now on */
                ways = accepted ? ways : below(1u << 16);
            if (!accepted && k % 50 == 49)
                ways = below(1u << 16);
        }
        if (getenv("RLY_RELATIONS_SHOW"))
            printf("%-28s %5d calls %5d accepted\n", op->name, calls, accepted);
        if (accepted == 0)
            FAIL("%s: no call was accepted of %d", op->name, calls);
        failed += check_failures;
    }
    check_failures = failed;
}

int main(void) {
    mem_init();
    list_shapes();
    RUN(every_operator);
    return check_result();
}
