/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/index_view.h"

#include <string.h>

#include "base/mem.h"
#include "ops/gather.h"

/* ---- while running --------------------------------------------------------------------------- */

bool index_count(const char *spec, IndexCount *count) {
    *count = (IndexCount){0};
    bool ellipsis = false, vector = false;
    for (const char *p = spec; *p; p++) {
        switch (*p) {
        case 'i':
        case 'c':
        case 'w':
        case 'o':
            count->taken++;
            count->axes++;
            break;
        case 'v':
            if (vector)
                return false;
            vector = true;
            count->taken++;
            count->axes++;
            count->results++;
            break;
        case ':':
            p++;
            if (*p < '0' || *p > '7')
                return false;
            count->taken += (*p & 1) + (*p >> 1 & 1) + (*p >> 2 & 1);
            count->axes++;
            count->results++;
            break;
        case '.':
            if (ellipsis)
                return false;
            ellipsis = true;
            break;
        case 'n': count->results++; break;
        default: return false;
        }
    }
    return true;
}

/* How many arguments the index whose letter p points at takes; a slice's digit follows its letter. */
static uint32_t count_args(const char *p) {
    if (*p == ':')
        return (uint32_t)((p[1] & 1) + (p[1] >> 1 & 1) + (p[1] >> 2 & 1));
    return *p && strchr("icwov", *p) != NULL;
}

/* The spec with an integer or a vector for each 'o', by the ranks of the arguments; NULL after a report. */
static const char *decided_spec(const OpCall *call, const char *spec, uint32_t first, uint32_t n) {
    if (!strchr(spec, 'o'))
        return spec;
    char *out = mem_bytes(strlen(spec) + 1);
    uint32_t at = 0, vectors = 0;
    strcpy(out, spec);
    for (char *p = out; *p; p++) {
        if (*p == 'o' && at < n)
            *p = call->in[first + at]->rank ? 'v' : 'i';
        vectors += *p == 'v';
        at += count_args(p);
        p += *p == ':';
    }
    if (vectors < 2)
        return out;
    shape_error(call, DIAG_R0313, "an index has at most one vector, this one has %u", vectors);
    return NULL;
}

/* The places on an axis of `size` that a vector names, in a tensor of int64; NULL after a report. */
static Tensor *find_places(const OpCall *call, const Tensor *rows, int axis, int64_t size) {
    bool mask = rows->dtype == DT_BOOL;
    int64_t n = 0;
    if (mask && rows->count != size) {
        shape_error(call, DIAG_R0314, "the mask has size %lld and axis %d has size %lld",
                    (long long)rows->count, axis, (long long)size);
        return NULL;
    }
    for (int64_t i = 0; mask && i < rows->count; i++)
        n += elem_get_int(tensor_at(rows, i), DT_BOOL) != 0;
    if (!mask)
        n = rows->count;
    Tensor *places = tensor_new(DT_I64, 1, &n);
    int64_t *to = tensor_data(places);
    for (int64_t i = 0; i < rows->count; i++) {
        int64_t at = elem_get_int(tensor_at(rows, i), rows->dtype);
        if (mask) {
            if (at)
                *to++ = i;
            continue;
        }
        int64_t place = at < 0 ? at + size : at;
        if (place < 0 || place >= size) {
            shape_error(call, DIAG_R0602, "index %lld is out of range for axis %d of size %lld",
                        (long long)at, axis, (long long)size);
            return NULL;
        }
        *to++ = place;
    }
    return places;
}

static bool check_vector(const OpCall *call, uint32_t arg) {
    return shape_check_dtype(call, (int)arg, DTS_INT | DTS_BOOL) &&
           shape_check_rank(call, (int)arg, 1);
}

static bool read_integer(const OpCall *call, uint32_t arg, int64_t *out) {
    const Tensor *t = call->in[arg];
    if (!shape_check_dtype(call, (int)arg, DTS_INT) || !shape_check_rank(call, (int)arg, 0))
        return false;
    *out = elem_get_int(tensor_data(t), t->dtype);
    return true;
}

int64_t index_place(char letter, int64_t i, int64_t size) {
    if (letter == 'c')
        return i < 0 ? 0 : i < size ? i : size - 1;
    if (letter == 'w' && size)
        return (i % size + size) % size;
    return i < 0 ? i + size : i;
}

bool index_view(const OpCall *call, const Tensor *x, uint32_t first, uint32_t n, IndexView *view) {
    const char *spec = attrs_text(call->attrs, "spec");
    IndexCount count;
    *view = (IndexView){.axis = -1};
    SliceView *v = &view->part;
    if (!index_count(spec, &count)) {
        shape_error(call, DIAG_R0316, "\"%s\" is not an index spec", spec);
        return false;
    }
    spec = decided_spec(call, spec, first, n);
    if (!spec || !index_count(spec, &count))
        return false;
    if (count.axes > x->rank) {
        shape_error(call, DIAG_R0313, "%d indices for a tensor with %d %s", count.axes, x->rank,
                    x->rank == 1 ? "axis" : "axes");
        return false;
    }
    if (count.results + x->rank - count.axes > TENSOR_MAX_RANK) {
        shape_error(call, DIAG_R0313, "the result would have more than %d axes", TENSOR_MAX_RANK);
        return false;
    }
    if ((uint32_t)count.taken != n) {
        shape_error(call, DIAG_R0316, "spec \"%s\" takes %d indices and gets %u", spec, count.taken,
                    n);
        return false;
    }
    uint32_t next = first;
    int axis = 0, rest = x->rank - count.axes;
    for (const char *p = spec; *p || rest; p++) {
        if (*p == 0 || *p == '.') { /* without an ellipsis the axes left over come last */
            for (; rest; rest--, axis++) {
                v->shape[v->rank] = x->shape[axis];
                v->strides[v->rank++] = x->strides[axis];
            }
            if (*p == 0)
                break;
        } else if (*p == 'n') {
            v->shape[v->rank] = 1;
            v->strides[v->rank++] = 0;
        } else if (*p == 'v') {
            if (!check_vector(call, next))
                return false;
            view->places = find_places(call, call->in[next++], axis, x->shape[axis]);
            if (!view->places)
                return false;
            view->axis = v->rank;
            view->stride = x->strides[axis++];
            v->shape[v->rank] = view->places->count;
            v->strides[v->rank++] = 0;
        } else if (*p == 'i' || *p == 'c' || *p == 'w') {
            int64_t size = x->shape[axis], i;
            if (!read_integer(call, next++, &i))
                return false;
            int64_t at = index_place(*p, i, size);
            if (at < 0 || at >= size) {
                shape_error(call, DIAG_R0602, "index %lld is out of range for axis %d of size %lld",
                            (long long)i, axis, (long long)size);
                return false;
            }
            v->offset += at * x->strides[axis++];
        } else {
            p++;
            SliceRange r = {.has_begin = *p & 1, .has_end = *p >> 1 & 1, .step = 1};
            if ((r.has_begin && !read_integer(call, next++, &r.begin)) ||
                (r.has_end && !read_integer(call, next++, &r.end)) ||
                ((*p >> 2 & 1) && !read_integer(call, next++, &r.step)))
                return false;
            if (r.step == 0) {
                shape_error(call, DIAG_R0316, "the step of a slice is 0");
                return false;
            }
            int64_t from, size;
            slice_resolve(&r, x->shape[axis], &from, &size);
            if (size)
                v->offset += from * x->strides[axis];
            v->shape[v->rank] = size;
            v->strides[v->rank++] = x->strides[axis++] * r.step;
        }
    }
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The offset, beyond what strides say, of the place that the vector names; 0 without a vector. */
static Sc place_offset(StepBuilder *s, const IndexView *view, Sc *place) {
    int64_t strides[TENSOR_MAX_RANK] = {0};
    strides[view->axis] = 1;
    ScalarBuilder *b = &s->body;
    *place = sc_index_load(b, step_in_strided(s, view->places, strides, 0), DT_I64);
    return sc_mul(b, *place, step_iparam(s, b, DT_I64, view->stride));
}

void plan_index_get(Plan *plan, Tensor *out, const Tensor *x, const IndexView *view) {
    const SliceView *v = &view->part;
    if (!view->places) {
        plan_gather_strided(plan, out, x, v->strides, v->offset);
        return;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, v->rank, v->shape);
    ScalarBuilder *b = &s.body;
    int from = step_in_strided(&s, x, v->strides, v->offset);
    Sc place, zero, offset = place_offset(&s, view, &place);
    if (view->some) { /* no place: a zero */
        zero = sc_i64(b, 0);
        Sc there = sc_le(b, zero, place);
        offset = sc_select(b, there, offset, zero);
        Sc value = sc_load_at(b, from, x->dtype, offset);
        Sc none = sc_cast(b, zero, sc_type_of(x->dtype));
        sc_select(b, there, value, none);
    } else {
        sc_load_at(b, from, x->dtype, offset);
    }
    step_out(&s, out);
    step_end(&s);
}

void plan_index_put(Plan *plan, Tensor *out, const IndexView *view, const Tensor *t, bool add) {
    const SliceView *v = &view->part;
    if (!view->places) {
        plan_slice_set(plan, out, v, t, add);
        return;
    }
    StepBuilder s;
    step_begin(&s, plan, RECIPE_SCATTER, v->rank, v->shape);
    step_combine(&s, add ? COMBINE_SUM : COMBINE_NONE,
                 add ? reduce_acc_type(out->dtype) : sc_type_of(out->dtype));
    ScalarBuilder *b = &s.body;
    Sc place, offset = place_offset(&s, view, &place);
    Sc value = sc_load(b, step_in(&s, t), t->dtype);
    step_result(&s, value);
    step_result(&s, offset);
    step_out_strided(&s, out, v->strides, v->offset);
    step_end(&s);
}

void index_keep_last(IndexView *view, int64_t size) {
    if (!view->places)
        return;
    int64_t *last = mem_bytes(sizeof *last * (size_t)(size + 1)), *at = tensor_data(view->places);
    for (int64_t i = 0; i < view->places->count; i++)
        last[at[i]] = i;
    for (int64_t i = 0; i < view->places->count; i++)
        if (last[at[i]] != i)
            at[i] = -1;
    view->some = true;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* How many vectors the ranks of data and part, a type each, leave for the open indices of `data[…]`; -1 where they do
 * not tell. A vector keeps its axis and an integer takes it away. */
static int count_open_vectors(Type *data, Type *part, const char *spec) {
    IndexCount count;
    uint32_t nd, nr;
    Type **dims;
    bool rank = rel_rank_in(data, &nd, &dims), result = rel_rank_in(part, &nr, &dims);
    Type *from = rel_shape_in(data), *to = rel_shape_in(part);
    if (!index_count(spec, &count))
        return -1;
    if (strchr(spec, 'v'))
        return 0;
    if (rank && result)
        return (int)nr - (int)nd - (count.results - count.axes);
    if (from && to && type_equal(from, to) && type_resolve(from)->tag != TY_ANY)
        return count.axes - count.results;
    return result && (int)nr == count.results ? 0 : -1;
}

/* Makes the index a tensor of this rank, of integers where it is one. False after a report. */
static bool become_index(Solver *s, Relation *r, Type *index, uint32_t rank) {
    Type *size = solver_var(s, KIND_DIM), *dtype = rel_dtype_in(index);
    bool ok = (rank || solver_restrict(s, dtype, DTS_INT)) &&
              solver_unify(s, index, type_tensor(type_shape(&size, rank), dtype));
    if (!ok)
        rel_error(s, r, DIAG_R0201,
                  "an index is one integer, or one vector of integers or bools, found %s",
                  type_text(index));
    return ok;
}

/* 'i' or 'v' for an index of this type, 'o' where it is open; 0 after a report. */
static char decide_letter(Solver *s, Relation *r, Type *index) {
    uint32_t rank;
    Type **dims;
    bool known = rel_rank_in(index, &rank, &dims);
    if (!known && type_dtype_set(rel_dtype_in(index)) != DTS_BOOL)
        return 'o';
    if (known && rank > 1) {
        rel_error(s, r, DIAG_R0313, "an index is one integer or a vector, this one has %u axes",
                  rank);
        return 0;
    }
    if (!become_index(s, r, index, known ? rank : 1))
        return 0;
    return known && rank == 0 ? 'i' : 'v';
}

static void set_spec(Relation *r, const char *spec) {
    Attrs *attrs = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, r->attrs->op->nattrs);
    for (int i = 0; i < r->attrs->op->nattrs; i++)
        values[i] = r->attrs->values[i];
    values[op_attr_index(r->attrs->op, "spec")] = (AttrValue){.kind = ATTR_STRING, .text = spec};
    *attrs = (Attrs){r->attrs->op, values};
    r->attrs = attrs;
}

RelStatus rel_index_letters(Solver *s, Relation *r, int arg) {
    const AttrValue *written = attrs_get(r->attrs, "spec");
    const char *spec = written->kind == ATTR_STRING ? written->text : "";
    Type *at = type_resolve(r->args[arg]);
    IndexCount count;
    if (!strchr(spec, 'o') || !index_count(spec, &count) || at->tag != TY_TUPLE)
        return REL_DONE;
    for (uint32_t i = 0; i < at->nargs; i++)
        if (type_resolve(at->args[i])->tag == TY_VAR)
            solver_unify(s, at->args[i],
                         type_tensor(solver_var(s, KIND_SHAPE), solver_var(s, KIND_DTYPE)));
    char *out = mem_bytes(strlen(spec) + 1);
    strcpy(out, spec);
    uint32_t next = 0, open = 0;
    for (char *p = out; *p; p++) {
        if (*p == 'o' && next < at->nargs) {
            *p = decide_letter(s, r, at->args[next]);
            if (!*p)
                return REL_FAIL;
            open += *p == 'o';
        }
        next += count_args(p);
        p += *p == ':';
    }
    bool reads = r->op->nargs ==
                 2; /* the result is the part; `index_add` and `index_set` return all */
    int vectors = open && reads ? count_open_vectors(r->args[0], rel_result_arg(r), out) : -1;
    bool tells = vectors == 0 || (vectors == 1 && open == 1);
    next = 0;
    for (char *p = out; *p && tells; p++) {
        if (*p == 'o' && next < at->nargs) {
            if (!become_index(s, r, at->args[next], (uint32_t)vectors))
                return REL_FAIL;
            *p = vectors ? 'v' : 'i';
        }
        next += count_args(p);
        p += *p == ':';
    }
    if (strcmp(out, spec) != 0)
        set_spec(r, out);
    const char *one = strchr(out, 'v');
    if (one && strchr(one + 1, 'v')) {
        rel_error(s, r, DIAG_R0313, "an index has at most one vector");
        return REL_FAIL;
    }
    return open && !tells ? REL_WAIT : REL_DONE;
}

/* Of the integers of a slice those that inference knows: a number or a size, else NULL. */
static Type *known_integer(const Attrs *attrs, int i) {
    const AttrValue *v = attrs_get(attrs, "sizes");
    if (v->kind != ATTR_LIST || i >= (int)v->list.n)
        return NULL;
    Type *t = type_resolve(rel_attr_dim(&v->list.items[i]));
    int64_t n;
    return t->flags & TYPE_HAS_ANY || !(type_get_int(t, &n) || dim_is_size(t)) ? NULL : t;
}

/* Whether a call has still to say what one of the integers is: a number below 0 would count from the end. */
static bool integers_are_open(const Attrs *attrs) {
    const AttrValue *v = attrs_get(attrs, "sizes");
    bool open = false;
    for (uint32_t i = 0; v->kind == ATTR_LIST && i < v->list.n && !open; i++)
        open = rel_dim_open(type_resolve(rel_attr_dim(&v->list.items[i])));
    return open;
}

/* The size of the slice whose bounds the digit names; its integers are `first`, first + 1, … */
static Type *index_slice(Relation *r, char digit, int first, Type *d) {
    Type *bound[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        if (!(digit >> i & 1))
            continue;
        bound[i] = known_integer(r->attrs, first++);
        if (!bound[i])
            return rel_unknown_dim(r);
    }
    int64_t step = 1, b = 0, e = 0, n, from, count;
    if (bound[2] && (!type_get_int(bound[2], &step) || step == 0))
        return rel_unknown_dim(r);
    bool numbers = (!bound[0] || type_get_int(bound[0], &b)) &&
                   (!bound[1] || type_get_int(bound[1], &e));
    if (!numbers || !type_get_int(type_resolve(d), &n))
        return rel_slice_size(r, d, bound[0], bound[1], step);
    SliceRange g = {.begin = b, .end = e, .step = step, .has_begin = bound[0], .has_end = bound[1]};
    slice_resolve(&g, n, &from, &count);
    return rel_int_dim(r, count);
}

/* The size that a vector takes of an axis of size d: as many as it has integers, or an unknown of a mask, which has
 * as many elements as the axis. */
static RelStatus vector_size(Solver *s, Relation *r, int arg, Type *vector, Type *d, uint32_t axis,
                             Type **out) {
    uint32_t rank;
    Type **dims;
    if (!rel_rank_in(vector, &rank, &dims))
        return REL_WAIT;
    if (rank != 1) {
        rel_error(s, r, DIAG_R0313, "an index is one integer or a vector, this one has %u axes",
                  rank);
        return REL_FAIL;
    }
    DTypeSet set = type_dtype_set(rel_dtype_in(vector));
    if (!(set & DTS_BOOL)) {
        *out = dims[0];
        return REL_DONE;
    }
    if (set & ~(DTypeSet)DTS_BOOL)
        return REL_WAIT;
    int64_t m, n;
    if (type_get_int(type_resolve(dims[0]), &m) && type_get_int(type_resolve(d), &n) && m != n) {
        Diag *diag = rel_error(s, r, DIAG_R0314, "the mask has size %lld and axis %u has size %lld",
                               (long long)m, axis, (long long)n);
        diag_add_fact(diag, "a mask has one bool for each element of the axis");
        return REL_FAIL;
    }
    if (!rel_unify_dim(s, r, dims[0], d, arg, (int)axis))
        return REL_FAIL;
    *out = rel_unknown_dim(r);
    return REL_DONE;
}

/* The axis of `x[:, None]`: its origin says that it was asked for, so that nobody is warned where it grows (R0901). */
static Type *new_axis(Relation *r) {
    Origin *o = mem_new(Origin);
    *o = *rel_origin(r);
    o->place = place_of_name("None");
    return type_dim_int(1, o);
}

RelStatus rel_index_part(Solver *s, Relation *r, int arg, uint32_t rank, Type **dims, Type ***part,
                         uint32_t *nout) {
    const char *spec = attrs_text(r->attrs, "spec");
    IndexCount count;
    int used = 0;
    if (!index_count(spec, &count) || count.axes > (int)rank) {
        rel_error(s, r, DIAG_R0313, "%d %s for a tensor with %u %s", count.axes,
                  count.axes == 1 ? "index" : "indices", rank, rank == 1 ? "axis" : "axes");
        return REL_FAIL;
    }
    if (integers_are_open(r->attrs) || strchr(spec, 'o'))
        return REL_WAIT;
    const Type *at = type_resolve(r->args[arg]);
    Type **out = mem_new_n(Type *, count.results + (int)rank - count.axes + 1);
    uint32_t n = 0, axis = 0, rest = rank - (uint32_t)count.axes;
    for (const char *p = spec; *p || rest; p++) {
        if (*p == 0 || *p == '.') {
            for (; rest; rest--)
                out[n++] = dims[axis++];
            if (*p == 0)
                break;
        } else if (*p == 'n') {
            out[n++] = new_axis(r);
        } else if (*p == 'i' || *p == 'c' || *p == 'w') {
            axis++;
            used++;
        } else if (*p == 'v') {
            if (used >= (int)at->nargs) { /* the shape function says so */
                out[n++] = rel_unknown_dim(r);
            } else {
                RelStatus status = vector_size(s, r, arg, at->args[used++], dims[axis], axis,
                                               &out[n++]);
                if (status != REL_DONE)
                    return status;
            }
            axis++;
        } else {
            char digit = (char)(*++p - '0');
            out[n++] = digit == 0 ? dims[axis] : index_slice(r, digit, used, dims[axis]);
            used += (digit & 1) + (digit >> 1 & 1) + (digit >> 2 & 1);
            axis++;
        }
    }
    *part = out;
    *nout = n;
    return REL_DONE;
}
