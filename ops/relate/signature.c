/* SPDX-License-Identifier: Apache-2.0 */
/* Reading signatures, and what follows from one for sizes that are known and for types. */
#include "ops/relate/signature.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "ops/relate/solve.h"

enum { SIG_TENSORS = 16, SIG_AXES = TENSOR_MAX_RANK, SIG_NAMES = 26 };

/* ---- reading --------------------------------------------------------------------------------- */

typedef enum SizeKind { SIZE_NAME, SIZE_NUMBER, SIZE_REST, SIZE_ATTR, SIZE_MEASURED } SizeKind;

typedef struct SigSize {
    SizeKind kind;
    int64_t n; /* NAME: the number of its letter; NUMBER; ATTR: the place in its list, or -1 */
    const char *attr; /* of ATTR */
} SigSize;

typedef enum SigShape { SHAPE_LISTED, SHAPE_ANY, SHAPE_UP_TO_VECTOR } SigShape;

typedef struct SigTensor {
    DTypeSet set;     /* the dtypes that the line names */
    int like;         /* the argument whose dtype it has, or -1 */
    const char *attr; /* the attribute that names the dtype, or NULL */
    SigShape shape;
    int naxes, rest; /* sizes listed; which of them is `...`, or -1 */
    SigSize sizes[SIG_AXES];
} SigTensor;

typedef struct Line {
    int nargs, nresults;
    SigTensor tensors[SIG_TENSORS]; /* the arguments, then the results */
} Line;

static const struct {
    const char *name;
    DTypeSet set;
} classes[] = {
    {"all", DTS_ALL},
    {"num", DTS_NUM},
    {"int", DTS_INT},
    {"float", DTS_FLOAT},
    {"bool", DTS_BOOL},
    {"quant", DT_BIT(DT_I8) | DT_BIT(DT_U8) | DT_BIT(DT_I16) | DT_BIT(DT_U16) | DT_BIT(DT_I32)},
};

static const char *read_name(const char **p) {
    size_t n = strspn(*p, "abcdefghijklmnopqrstuvwxyz_0123456789");
    const char *name = mem_strndup(*p, n);
    *p += n;
    return name;
}

static void read_dtype(const char **p, SigTensor *t) {
    t->like = -1;
    if (**p == '=') {
        t->like = (int)strtol(*p + 1, (char **)p, 10);
        return;
    }
    if (**p == '@') {
        ++*p;
        t->attr = read_name(p);
        return;
    }
    const char *name = read_name(p);
    DType dtype;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i].name, name) == 0)
            t->set = classes[i].set;
    if (!t->set && dtype_find(name, strlen(name), &dtype))
        t->set = DT_BIT(dtype);
    if (!t->set)
        BUG("a signature names no dtype `%s`", name);
}

static SigSize read_size(const char **p) {
    SigSize size = {.kind = SIZE_NUMBER, .n = -1};
    if (strncmp(*p, "...", 3) == 0) {
        *p += 3;
        size.kind = SIZE_REST;
    } else if (**p == '?') {
        ++*p;
        size.kind = SIZE_MEASURED;
    } else if (**p == '@') {
        ++*p;
        size.kind = SIZE_ATTR;
        size.attr = read_name(p);
        if (**p == '.')
            size.n = strtol(*p + 1, (char **)p, 10);
    } else if (**p >= 'a' && **p <= 'z') {
        size.kind = SIZE_NAME;
        size.n = *(*p)++ - 'a';
    } else {
        size.n = strtol(*p, (char **)p, 10);
    }
    return size;
}

static void read_tensor(const char **p, SigTensor *t) {
    *t = (SigTensor){.rest = -1};
    read_dtype(p, t);
    char first = *(*p)++;
    if (first == '*' || first == '~') {
        t->shape = first == '*' ? SHAPE_ANY : SHAPE_UP_TO_VECTOR;
        return;
    }
    if (first != '(')
        BUG("a signature has no shape at `%s`", *p - 1);
    while (**p && **p != ')') {
        *p += strspn(*p, ", ");
        SigSize size = read_size(p);
        if (size.kind == SIZE_REST)
            t->rest = t->naxes;
        t->sizes[t->naxes++] = size;
    }
    ++*p;
}

static void read_line(const Op *op, const Attrs *attrs, Line *line) {
    *line = (Line){.nargs = op->nargs};
    int n = 0;
    const char *p = op->signature->text;
    for (int form = op->signature->form ? op->signature->form(attrs) : 0; form > 0; form--)
        p = strchr(p, '|') + 1;
    for (; *p && *p != '|'; p += strspn(p, ", ->")) {
        if (n == SIG_TENSORS)
            BUG("`%s`: its signature has more than %d tensors", op->name, SIG_TENSORS);
        read_tensor(&p, &line->tensors[n++]);
    }
    line->nresults = n - op->nargs;
}

/* ---- sizes that are known -------------------------------------------------------------------- */

/* Where a name was first met: the size of this axis of this argument. */
typedef struct Place {
    int arg, axis; /* arg -1: not met yet */
} Place;

typedef struct Bound {
    Place names[SIG_NAMES], rest;
    int nrest; /* how many axes `...` stands for */
} Bound;

static bool bind_axis(const OpCall *call, const SigSize *size, int arg, int axis, Bound *b) {
    int64_t have = call->in[arg]->shape[axis];
    if (size->kind == SIZE_NUMBER) {
        if (have == size->n)
            return true;
        shape_error(call, DIAG_R0314, "axis %d of `%s` is %lld, not %lld", axis,
                    shape_arg_name(call, arg), (long long)have, (long long)size->n);
        return false;
    }
    Place *first = &b->names[size->n];
    if (first->arg < 0)
        *first = (Place){arg, axis};
    return shape_check_dims(call, first->arg, first->axis, arg, axis);
}

/* The axes of argument `arg`, which has at least those that are listed. */
static bool bind_axes(const OpCall *call, const SigTensor *t, int arg, Bound *b) {
    int rest = t->rest < 0 ? 0 : call->in[arg]->rank - (t->naxes - 1);
    for (int i = 0, axis = 0; i < t->naxes; i++) {
        if (i != t->rest) {
            if (!bind_axis(call, &t->sizes[i], arg, axis++, b))
                return false;
            continue;
        }
        if (b->rest.arg < 0) {
            b->rest = (Place){arg, axis};
            b->nrest = rest;
        }
        if (!shape_check_rank(call, arg, b->nrest + t->naxes - 1))
            return false;
        for (int k = 0; k < rest; k++, axis++)
            if (!shape_check_dims(call, b->rest.arg, b->rest.axis + k, arg, axis))
                return false;
    }
    return true;
}

static bool check_argument(const OpCall *call, const SigTensor *t, int arg, Bound *b) {
    if (t->like >= 0 ? !shape_check_same_dtype(call, t->like, arg)
                     : !shape_check_dtype(call, arg, t->set))
        return false;
    if (t->shape == SHAPE_UP_TO_VECTOR && call->in[arg]->rank > 1) {
        shape_error(call, DIAG_R0313, "`%s` has %d axes, it is a scalar or a vector",
                    shape_arg_name(call, arg), call->in[arg]->rank);
        return false;
    }
    if (t->shape != SHAPE_LISTED)
        return true;
    if (t->rest < 0 ? !shape_check_rank(call, arg, t->naxes)
                    : !shape_check_min_rank(call, arg, t->naxes - 1))
        return false;
    return bind_axes(call, t, arg, b);
}

static const AttrValue *attr_size_of(const Attrs *attrs, const SigSize *size) {
    const AttrValue *v = attrs_get(attrs, size->attr);
    return size->n < 0 || v->kind != ATTR_LIST ? v : &v->list.items[size->n];
}

static DType dtype_of(const OpCall *call, const SigTensor *t) {
    if (t->attr)
        return shape_attr_dtype(call, t->attr, call->in[0]->dtype);
    return t->like >= 0 ? call->in[t->like]->dtype : (DType)__builtin_ctz(t->set);
}

static bool result_sizes(const OpCall *call, const SigTensor *t, const Bound *b, OutSpec *out) {
    out->rank = 0;
    out->dtype = dtype_of(call, t);
    for (int i = 0; i < t->naxes; i++) {
        const SigSize *size = &t->sizes[i];
        const Place *at = size->kind == SIZE_REST ? &b->rest : &b->names[size->n < 0 ? 0 : size->n];
        int n = size->kind == SIZE_REST ? b->nrest : 1;
        if (out->rank + n > TENSOR_MAX_RANK) {
            shape_error(call, DIAG_R0313, "the result would have more than %d axes",
                        TENSOR_MAX_RANK);
            return false;
        }
        for (int k = 0; k < n; k++) {
            int64_t *to = &out->shape[out->rank++];
            if (size->kind == SIZE_NAME || size->kind == SIZE_REST)
                *to = call->in[at->arg]->shape[at->axis + k];
            else if (size->kind == SIZE_ATTR)
                *to = attr_size_of(call->attrs, size)->i;
            else
                *to = size->n; /* -1 where it is measured */
        }
    }
    return true;
}

int shape_by_signature(const OpCall *call, OutSpec *out) {
    const Signature *signature = call->op->signature;
    Line line;
    Bound b = {.rest = {-1, 0}};
    for (int i = 0; i < SIG_NAMES; i++)
        b.names[i].arg = -1;
    int ranks[SIG_TENSORS];
    for (uint32_t i = 0; i < call->nin; i++)
        ranks[i] = call->in[i]->rank;
    const char *problem = signature->refuse ? signature->refuse(call->attrs, ranks) : NULL;
    if (problem) {
        shape_error(call, DIAG_R0316, "%s", problem);
        return -1;
    }
    read_line(call->op, call->attrs, &line);
    for (int i = 0; i < line.nargs; i++)
        if (!check_argument(call, &line.tensors[i], i, &b))
            return -1;
    for (int i = 0; i < line.nresults; i++)
        if (!result_sizes(call, &line.tensors[line.nargs + i], &b, &out[i]))
            return -1;
    if (signature->measure && !signature->measure(call, out))
        return -1;
    for (int i = 0; i < line.nresults; i++)
        if (!shape_set(call, &out[i], out[i].dtype, out[i].rank, out[i].shape))
            return -1;
    return line.nresults;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* What names stand for so far; NULL: nothing yet. */
typedef struct Sizes {
    Type *names[SIG_NAMES];
    Type **rest;  /* of nrest axes */
    int nrest;    /* -1: not known */
    Type *whole;  /* the shape that `(...)` stands for */
    bool open;    /* the rank of an argument is not known, */
    bool unknown; /* and never will be */
} Sizes;

static bool same_axis(Solver *s, Relation *r, const SigSize *size, Sizes *z, Type *dim, int arg,
                      int axis) {
    if (size->kind == SIZE_NUMBER)
        return rel_unify_dim(s, r, dim, rel_int_dim(r, size->n), arg, axis);
    Type **name = &z->names[size->n];
    if (!*name)
        *name = dim;
    return *name == dim || rel_unify_dim(s, r, *name, dim, arg, axis);
}

static bool same_axes(Solver *s, Relation *r, const SigTensor *t, Sizes *z, Type **dims,
                      uint32_t rank, int arg) {
    int rest = t->rest < 0 ? 0 : (int)rank - (t->naxes - 1);
    for (int i = 0, axis = 0; i < t->naxes; i++) {
        if (i != t->rest) {
            if (!same_axis(s, r, &t->sizes[i], z, dims[axis], arg, axis))
                return false;
            axis++;
            continue;
        }
        if (z->nrest < 0) {
            z->nrest = rest;
            z->rest = dims + axis;
        }
        for (int k = 0; k < rest; k++, axis++)
            if (dims[axis] != z->rest[k] && !rel_unify_dim(s, r, z->rest[k], dims[axis], arg, axis))
                return false;
    }
    return true;
}

/* The argument's rank, where the line or `...` of another argument tells it; false after a report. */
static bool relate_argument(Solver *s, Relation *r, const SigTensor *t, Sizes *z, int arg) {
    uint32_t rank;
    Type **dims;
    if (t->shape == SHAPE_UP_TO_VECTOR) {
        if (!rel_rank_in(r->args[arg], &rank, &dims) || rank <= 1)
            return true;
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, it is a scalar or a vector",
                  r->op->name, op_arg(r->op, arg).name, rank);
        return false;
    }
    if (t->shape == SHAPE_ANY)
        return true;
    if (t->naxes == 1 && t->rest == 0) {
        Type *shape = rel_shape_in(r->args[arg]);
        if (!z->whole)
            z->whole = shape;
        else if (!rel_unify(s, r, arg, type_tensor(z->whole, rel_dtype_in(r->args[arg]))))
            return false;
    }
    int told = t->rest < 0 ? t->naxes : z->nrest < 0 ? -1 : z->nrest + t->naxes - 1;
    if (told >= 0 && !rel_need_rank(s, r, arg, (uint32_t)told))
        return false;
    if (!rel_rank_in(r->args[arg], &rank, &dims)) {
        z->open = true;
        z->unknown = type_has_unknown_rank(r->args[arg]);
        return true;
    }
    if (t->rest >= 0 && (int)rank < t->naxes - 1) {
        rel_error(s, r, DIAG_R0313, "`%s`: `%s` has %u axes, at least %d are needed", r->op->name,
                  op_arg(r->op, arg).name, rank, t->naxes - 1);
        return false;
    }
    return same_axes(s, r, t, z, dims, rank, arg);
}

static Type *result_dtype(Relation *r, const SigTensor *t) {
    if (t->attr)
        return rel_attr_dtype(r, t->attr, rel_dtype_in(r->args[0]));
    return t->like >= 0 ? rel_dtype_in(r->args[t->like]) : type_dtype((DType)__builtin_ctz(t->set));
}

/* NULL where the rank is not known; a size that is measured stays open while `measured` is NULL. */
static Type *result_type(Solver *s, Relation *r, const SigTensor *t, const Sizes *z, bool settled) {
    Type *dtype = result_dtype(r, t);
    if (t->naxes == 1 && t->rest == 0 && z->whole)
        return type_tensor(z->whole, dtype);
    if (t->rest >= 0 && z->nrest < 0)
        return z->unknown ? type_tensor(type_any(KIND_SHAPE, rel_origin(r)), dtype) : NULL;
    Type **dims = mem_new_n(Type *, t->naxes + z->nrest + 2);
    uint32_t rank = 0;
    for (int i = 0; i < t->naxes; i++) {
        const SigSize *size = &t->sizes[i];
        if (size->kind == SIZE_REST)
            for (int k = 0; k < z->nrest; k++)
                dims[rank++] = z->rest[k];
        else if (size->kind == SIZE_MEASURED)
            dims[rank++] = settled ? rel_unknown_dim(r) : solver_var(s, KIND_DIM);
        else if (size->kind == SIZE_ATTR)
            dims[rank++] = rel_attr_dim(attr_size_of(r->attrs, size));
        else
            dims[rank++] = size->kind == SIZE_NAME && z->names[size->n] ? z->names[size->n]
                           : size->kind == SIZE_NAME                    ? rel_unknown_dim(r)
                                                                        : rel_int_dim(r, size->n);
    }
    return type_tensor(type_shape(dims, rank), dtype);
}

static bool is_measured(const Line *line) {
    for (int i = line->nargs; i < line->nargs + line->nresults; i++)
        for (int k = 0; k < line->tensors[i].naxes; k++)
            if (line->tensors[i].sizes[k].kind == SIZE_MEASURED)
                return true;
    return false;
}

/* What `refuse` says of the ranks that are known. */
static const char *find_problem(const Relation *r) {
    int ranks[SIG_TENSORS];
    for (int i = 0; i < r->op->nargs; i++) {
        uint32_t rank;
        Type **dims;
        ranks[i] = rel_rank_in(r->args[i], &rank, &dims) ? (int)rank : -1;
    }
    return r->op->signature->refuse
               ? r->op->signature->refuse(attrs_with_unit_sizes(r->attrs), ranks)
               : NULL;
}

const char *refuse_axis(const Attrs *attrs, const char *attr, int rank) {
    int64_t axis = attrs_int(attrs, attr);
    return rank < 0 || (axis < rank && axis >= -rank)
               ? NULL
               : fmt_text("%s=%lld is not one of the %d axes", attr, (long long)axis, rank);
}

void signature_argument(const Op *op, const Attrs *attrs, int arg, const int64_t *names,
                        const OutSpec *rest, DType first, OutSpec *out) {
    Line line;
    read_line(op, attrs, &line);
    const SigTensor *t = &line.tensors[arg], *source = t->like > 0 ? &line.tensors[t->like] : t;
    out->dtype = arg == 0 || t->like == 0 ? first : (DType)__builtin_ctz(source->set);
    if (!t->like && t->set & DT_BIT(DT_F32))
        out->dtype = DT_F32;
    out->rank = 0;
    for (int i = 0; i < t->naxes; i++) {
        if (t->sizes[i].kind != SIZE_REST)
            out->shape[out->rank++] = t->sizes[i].kind == SIZE_NAME ? names[t->sizes[i].n]
                                      : t->sizes[i].kind == SIZE_ATTR
                                          ? attr_size_of(attrs, &t->sizes[i])->i
                                          : t->sizes[i].n;
        for (int k = 0; t->sizes[i].kind == SIZE_REST && k < rest->rank; k++)
            out->shape[out->rank++] = rest->shape[k];
    }
    if (t->shape != SHAPE_LISTED)
        out->rank = t->shape == SHAPE_UP_TO_VECTOR && names[arg] % 2;
    if (t->shape != SHAPE_LISTED && out->rank)
        out->shape[0] = 1;
}

RelStatus relate_by_signature(Solver *s, Relation *r) {
    Line line;
    RelStatus status;
    DTypeSet sets[SIG_TENSORS];
    if (rel_attrs_open(r))
        return REL_WAIT;
    read_line(r->op, r->attrs, &line);
    for (int i = 0; i < line.nargs; i++) {
        const SigTensor *t = &line.tensors[i];
        sets[i] = t->like >= 0 ? line.tensors[t->like].set : t->set;
    }
    if (rel_known(s, r, sets, &status))
        return status;
    Sizes z = {.nrest = -1};
    for (int i = 0; i < line.nargs; i++) {
        const SigTensor *t = &line.tensors[i];
        if (t->like >= 0 &&
            !rel_unify(s, r, i,
                       type_tensor(rel_shape_in(r->args[i]), rel_dtype_in(r->args[t->like]))))
            return REL_FAIL;
        if (!relate_argument(s, r, t, &z, i))
            return REL_FAIL;
    }
    const char *problem = find_problem(r);
    if (problem) {
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
        return REL_FAIL;
    }
    bool waits = is_measured(&line) && rel_settled(r) == REL_WAIT;
    Type *results[SIG_TENSORS];
    for (int i = 0; i < line.nresults; i++) {
        results[i] = result_type(s, r, &line.tensors[line.nargs + i], &z, !waits);
        if (!results[i] && line.nresults == 1 && !r->op->tuple)
            return rel_wait(s, r, result_dtype(r, &line.tensors[line.nargs]));
        if (!results[i])
            return REL_WAIT;
    }
    bool tuple = r->op->tuple || line.nresults != 1;
    if (waits && !tuple)
        return rel_wait_rank(s, r, type_resolve(results[0]->tensor.shape)->nargs,
                             results[0]->tensor.dtype);
    if (waits)
        return REL_WAIT;
    Type *whole = tuple ? type_tuple(results, (uint32_t)line.nresults) : results[0];
    if (rel_result_type(s, r, whole) == REL_FAIL)
        return REL_FAIL;
    return z.open && !z.unknown ? REL_WAIT : REL_DONE;
}
