/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/plans.h"

#include "eval/waiting.h"
#include "ops/ops.h"
#include "tensor/packed.h"

#include <string.h>

enum { SETS = 512, WAYS = 8, RECENT = 256, SWEEP_AFTER = 256, FEW = 20, ELEMENT = 64 };

/* An argument: a tensor, or a scalar of that dtype. */
typedef struct Operand {
    const Tensor *tensor;
    DType dtype;
} Operand;

struct Operands {
    Operand *in;
    char **at;
    char (*elements)[ELEMENT]; /* of the scalars */
    uint32_t n;
};
typedef struct Operands Operands;

typedef struct Kept {
    uintptr_t what,
        more;        /* with their bits inverted: a plan does not keep alive what it is a plan of */
    void **lives[2]; /* NULL for what is not collected; else a place that is NULL once it was */
    uint64_t hash, used;
    uint32_t nsizes, n;
    const int64_t *numbers; /* the sizes; then dtype, rank, shape and strides of each operand */
    Template *template;
} Kept;

typedef struct Plans {
    Kept *table[SETS][WAYS];
    Kept *recent[RECENT]; /* the last one of what is called, whatever its arguments were */
    uint64_t clock;
    uint32_t made; /* since the last sweep */
} Plans;

/* ---- finding --------------------------------------------------------------------------------- */

static inline uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static inline int64_t form_of(const Operand *o) {
    return o->tensor ? (int64_t)o->tensor->dtype | (int64_t)o->tensor->rank << 8
                     : (int64_t)o->dtype;
}

static uint64_t hash_call(const PlanCall *call, const Operand *in, uint32_t n) {
    uint64_t h = mix((uintptr_t)call->what, (uintptr_t)call->more + n);
    for (uint32_t i = 0; i < call->nsizes; i++)
        h = mix(h, (uint64_t)call->sizes[i].i);
    for (uint32_t i = 0; i < n; i++) {
        h = mix(h, (uint64_t)form_of(&in[i]));
        const Tensor *t = in[i].tensor;
        for (int axis = 0; t && axis < t->rank; axis++)
            h = mix(h, (uint64_t)t->shape[axis]);
    }
    return h;
}

static bool is_alive(const Kept *k) {
    return (!k->lives[0] || *k->lives[0]) && (!k->lives[1] || *k->lives[1]);
}

static bool is_of(const Kept *k, const PlanCall *call, const Operand *in, uint32_t n) {
    if (k->what != ~(uintptr_t)call->what || k->more != ~(uintptr_t)call->more ||
        k->nsizes != call->nsizes || k->n != n || !is_alive(k))
        return false;
    const int64_t *number = k->numbers;
    for (uint32_t i = 0; i < call->nsizes; i++)
        if (*number++ != call->sizes[i].i)
            return false;
    for (uint32_t i = 0; i < n; i++) {
        if (*number++ != form_of(&in[i]))
            return false;
        const Tensor *t = in[i].tensor;
        int rank = t ? t->rank : 0;
        for (int axis = 0; axis < rank; axis++)
            if (number[axis] != t->shape[axis] || number[rank + axis] != t->strides[axis])
                return false;
        number += 2 * rank;
    }
    return true;
}

static Kept *find(Plans *p, uint64_t hash, const PlanCall *call, const Operand *in, uint32_t n) {
    Kept **set = p->table[hash % SETS];
    for (int i = 0; i < WAYS; i++)
        if (set[i] && set[i]->hash == hash && is_of(set[i], call, in, n)) {
            set[i]->used = ++p->clock;
            return set[i];
        }
    return NULL;
}

/* Where the last plan of what is called stands. Most calls have arguments of the same layouts as the last time, so the
 * hash of these is not needed. */
static Kept **find_recent(Plans *p, const PlanCall *call) {
    uintptr_t number = (uintptr_t)call->what ^ (uintptr_t)call->more << 1;
    return &p->recent[(number >> 4 ^ number >> 12) % RECENT];
}

/* Drops the plans of code that is gone, as after a redefinition. */
static void sweep(Plans *p) {
    p->made = 0;
    memset(p->recent, 0, sizeof p->recent);
    for (int i = 0; i < SETS; i++)
        for (int j = 0; j < WAYS; j++)
            if (p->table[i][j] && !is_alive(p->table[i][j]))
                p->table[i][j] = NULL;
}

static void put(Plans *p, Kept *k) {
    if (++p->made == SWEEP_AFTER)
        sweep(p);
    Kept **set = p->table[k->hash % SETS];
    int oldest = 0;
    for (int i = 0; i < WAYS; i++) {
        if (!set[i]) {
            oldest = i;
            break;
        }
        if (set[i]->used < set[oldest]->used)
            oldest = i;
    }
    k->used = ++p->clock;
    set[oldest] = k;
}

static Kept *kept_new(const PlanCall *call, const Operand *in, uint32_t n) {
    Kept *k = mem_new(Kept);
    size_t count = call->nsizes + 1;
    for (uint32_t i = 0; i < n; i++)
        count += 1 + (in[i].tensor ? 2 * (size_t)in[i].tensor->rank : 0);
    int64_t *number = mem_bytes(sizeof *number * count);
    k->what = ~(uintptr_t)call->what;
    k->more = ~(uintptr_t)call->more;
    k->lives[0] = mem_watch_holder(call->what);
    k->lives[1] = mem_watch_holder(call->more);
    k->nsizes = call->nsizes;
    k->n = n;
    k->numbers = number;
    for (uint32_t i = 0; i < call->nsizes; i++)
        *number++ = call->sizes[i].i;
    for (uint32_t i = 0; i < n; i++) {
        *number++ = form_of(&in[i]);
        const Tensor *t = in[i].tensor;
        size_t row = t ? sizeof *number * (size_t)t->rank : 0;
        if (row) {
            memcpy(number, t->shape, row);
            memcpy(number + t->rank, t->strides, row);
            number += 2 * t->rank;
        }
    }
    return k;
}

static Kept *make_template(Interp *in, const PlanCall *call, uint64_t hash, const Operand *operands,
                           uint32_t n, PlanMake make, void *ctx) {
    Tensor **blank = mem_new_n(Tensor *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        blank[i] = operands[i].tensor ? tensor_blank_like(operands[i].tensor)
                                      : tensor_blank(operands[i].dtype, 0, NULL);
    Template *t = make(ctx, blank, n);
    if (!t)
        return NULL;
    in->stats.plans++;
    Kept *k = kept_new(call, operands, n);
    k->hash = hash;
    k->template = t;
    if (!in->plans)
        in->plans = mem_new(Plans);
    put(in->plans, k);
    return k;
}

/* The plan of the call: the last one, one that is kept, or a new one. */
static Template *get_template(Interp *in, const PlanCall *call, const Operands *o, PlanMake make,
                              void *ctx) {
    Kept **recent = in->plans ? find_recent(in->plans, call) : NULL;
    if (recent && *recent && is_of(*recent, call, o->in, o->n)) {
        (*recent)->used = ++in->plans->clock;
        return (*recent)->template;
    }
    uint64_t hash = hash_call(call, o->in, o->n);
    Kept *k = in->plans ? find(in->plans, hash, call, o->in, o->n) : NULL;
    k = k ? k : make_template(in, call, hash, o->in, o->n, make, ctx);
    if (k)
        *find_recent(in->plans, call) = k;
    return k ? k->template : NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

static Value take_result(Tensor *t) {
    Value v = value_tensor(t);
    if (v.tag == VAL_SCALAR)
        tensor_release(t);
    return v;
}

/* A result of rank 0, which needs no tensor. */
static int32_t run_to_scalar(Interp *in, Template *t, char **at, Value *out) {
    _Alignas(ELEMENT) char element[ELEMENT];
    DType d = t->out[0].dtype;
    at[t->nin] = element;
    int32_t status = template_run(t, at, in->kept_runner, in->runner_ctx, &in->interrupt);
    if (status == KERNEL_DONE)
        *out = dtype_is_float(d) ? value_float(d, elem_get_float(element, d))
                                 : value_int(d, elem_get_int(element, d));
    return status;
}

/* Whether no other operand lies in the buffer of that one: one that stands there twice may be read in two ways. */
static bool is_alone(const Operands *o, uint32_t i) {
    bool alone = true;
    const Buffer *buffer = o->in[i].tensor->buffer;
    for (uint32_t k = 0; k < o->n; k++)
        alone = alone && (k == i || !o->in[k].tensor || o->in[k].tensor->buffer != buffer);
    return alone;
}

/* The input that the one result is written over: it ends here, nothing else refers to it, and the template
 * writes each element where it has read it for the last time. -1: none. */
static int find_place(const Template *t, const Operands *o, uint64_t dying, uint64_t alone) {
    for (uint64_t may = dying & t->in_place; may; may &= may - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(may);
        const Tensor *x = o->in[i].tensor;
        if (!x || x->offset || x->buffer->owners != 1)
            continue;
        if (alone >> i & 1 || is_alone(o, i))
            return (int)i;
    }
    return -1;
}

static void release_dying(const Operands *o, uint64_t dying) {
    for (uint32_t i = 0; i < o->n && dying >> i; i++)
        if (dying >> i & 1 && o->in[i].tensor)
            tensor_drop((Tensor *)o->in[i].tensor);
}

/* The inputs that results are written over, -1 for a tensor of its own; a bit for each such input. */
static uint64_t find_places(const Template *t, const Operands *o, const PlanCall *call,
                            int *places) {
    uint64_t left = call->dying, placed = 0;
    bool may = call->rest || (t->nout == 1 && !call->tuple);
    for (uint32_t i = 0; i < t->nout; i++) {
        places[i] = may ? find_place(t, o, left, call->alone) : -1;
        if (places[i] >= 0)
            placed |= UINT64_C(1) << places[i];
        left &= ~placed;
    }
    return placed;
}

/* The results as tensors whose elements are not written yet. */
static void make_results(const Template *t, char **at, const Operands *o, const int *places,
                         Tensor **outs) {
    for (uint32_t i = 0; i < t->nout; i++) {
        if (places[i] >= 0) {
            outs[i] = (Tensor *)(uintptr_t)o->in[places[i]].tensor;
            outs[i]->accumulates = 0; /* it is another value now, which a program may see */
            if (outs[i]->buffer->packed)
                packed_forget(outs[i]->buffer);
        } else {
            outs[i] = tensor_new(t->out[i].dtype, t->out[i].rank, t->out[i].shape);
        }
        at[t->nin + i] = tensor_data(outs[i]);
    }
}

/* Note [Results that are longer]. What `concatenate` lays behind a tensor that ends here goes into that tensor's buffer,
 * where this has room or can be given some: an array that a loop puts together piece by piece is not copied each time. The
 * result, or NULL. */
static Tensor *lengthen_first(Interp *in, const Template *t, const Operands *o,
                              const PlanCall *call) {
    if (!t->lengthens || call->tuple || !(call->dying & 1) || !o->in[0].tensor || !is_alone(o, 0))
        return NULL;
    Tensor *x = (Tensor *)(uintptr_t)o->in[0].tensor;
    size_t bytes = x->buffer->bytes;
    Tensor *longer = tensor_lengthen(x, t->out[0].rank, t->out[0].shape);
    if (longer) {
        in->stats.in_place++;
        in->stats.bytes_in_place += bytes;
    }
    return longer;
}

static void count_places(Interp *in, const Template *t, const int *places, Tensor *const *outs) {
    for (uint32_t i = 0; i < t->nout; i++)
        if (places[i] >= 0) {
            in->stats.in_place++;
            in->stats.bytes_in_place += outs[i]->buffer->bytes;
        }
}

/* Whether a tensor has all of its buffer, so that a view of it keeps nothing else. */
static bool is_whole(const Tensor *x) {
    return x->count * (int64_t)dtype_size(x->dtype) == (int64_t)x->buffer->bytes;
}

/* Note [Results that are views]. A part of a tensor needs no copy, but it keeps the whole tensor in memory and out of
 * what may be written over. So all parts together are views (`split`), and so is what has all elements of a tensor that
 * ends here or has its buffer for itself (`reshape`): the two share it, and what writes over one of them while the other
 * is there takes the copy that is saved here. Any other part, like a row of a large matrix, is copied. */
static bool may_view(const Template *t, const Operands *o, uint64_t dying) {
    if (!t->views)
        return false;
    int64_t count = 0;
    for (uint32_t i = 0; i < t->nout; i++) {
        const TemplateView *v = &t->views[i];
        if (v->slot != t->views[0].slot || v->slot >= o->n || !o->in[v->slot].tensor)
            return false;
        count += shape_count(t->out[i].rank, t->out[i].shape, t->out[i].dtype);
    }
    uint32_t slot = t->views[0].slot;
    const Tensor *x = o->in[slot].tensor;
    bool ends = slot < 64 && dying >> slot & 1;
    return count == x->count && (t->nout > 1 || ends || is_whole(x));
}

static void make_views(const Template *t, const Operands *o, Tensor **outs) {
    for (uint32_t i = 0; i < t->nout; i++) {
        const TemplateView *v = &t->views[i];
        const Tensor *from = o->in[v->slot].tensor;
        outs[i] = tensor_view(from, t->out[i].rank, t->out[i].shape, v->strides,
                              from->offset + v->offset);
    }
}

static int32_t run_template(Interp *in, Template *t, char **at, const PlanCall *call,
                            const Operands *o, Value *out) {
    Tensor *outs[OP_MAX_OUTPUTS];
    in->inputs = o;
    if (t->nout == 1 && !call->tuple && t->out[0].rank == 0) {
        int32_t status = run_to_scalar(in, t, at, out);
        if (status == KERNEL_DONE)
            release_dying(o, call->dying);
        return status;
    }
    int places[OP_MAX_OUTPUTS];
    bool viewed = may_view(
        t, o, call->dying); /* before all: in place it would be copied to where it is */
    Tensor *longer = viewed ? NULL : lengthen_first(in, t, o, call);
    uint64_t placed = viewed ? 0 : longer ? 1 : find_places(t, o, call, places);
    int32_t status = KERNEL_DONE;
    if (viewed) {
        make_views(t, o, outs);
    } else if (longer) {
        outs[0] = longer;
        at[t->nin] = tensor_data(longer);
        status = template_run_from(t, 1, at, in->kept_runner, in->runner_ctx, &in->interrupt);
    } else {
        make_results(t, at, o, places, outs);
        status = template_run(t, at, in->kept_runner, in->runner_ctx, &in->interrupt);
    }
    if (status != KERNEL_DONE)
        return status;
    if (!viewed && !longer)
        count_places(in, t, places, outs);
    release_dying(o, call->dying & ~placed);
    if (!placed || longer)
        stack_share(in);
    if (t->nout == 1 && !call->tuple) {
        *out = take_result(outs[0]);
        return status;
    }
    Value items[OP_MAX_OUTPUTS];
    for (uint32_t i = 0; i < t->nout; i++)
        items[i] = take_result(outs[i]);
    if (call->rest) {
        *out = items[0];
        memcpy(call->rest, items + 1, (t->nout - 1) * sizeof *items);
        return status;
    }
    *out = value_tuple(items, t->nout);
    return status;
}

static inline void add_operand(Interp *in, Operands *o, Value v) {
    uint32_t i = o->n++;
    if (v.tag == VAL_TENSOR) {
        const Tensor *t = v.p;
        if (t->waiting)
            (void)waiting_add_all(in, v.p); /* after an interrupt nobody uses the result */
        o->in[i] = (Operand){t, t->dtype};
        o->at[i] = tensor_data(t);
        return;
    }
    if (v.tag != VAL_SCALAR)
        BUG("an operator met a value with tag %u", v.tag);
    DType d = (DType)v.aux;
    o->in[i] = (Operand){NULL, d};
    o->at[i] = o->elements[i];
    if (dtype_is_float(d))
        elem_set_float(o->at[i], d, v.f);
    else
        elem_set_int(o->at[i], d, v.i);
}

const Tensor *plans_input(const Interp *in, uint32_t slot) {
    return slot < in->inputs->n ? in->inputs->in[slot].tensor : NULL;
}

uint32_t count_operands(const Value *args, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Tuple *t = args[i].p;
        count += args[i].tag != VAL_TUPLE ? 1 : t ? t->n : 0;
    }
    return count;
}

static int32_t run_on(Interp *in, const PlanCall *call, const Operands *o, PlanMake make, void *ctx,
                      Value *out) {
    Template *t = get_template(in, call, o, make, ctx);
    if (!t)
        return PLAN_NONE;
    enum { ROOM = 64 };
    if (t->nslots <= ROOM) {
        char *at[ROOM];
        for (uint32_t i = 0; i < o->n; i++)
            at[i] = o->at[i];
        return run_template(in, t, at, call, o, out);
    }
    char **at = mem_new_n(char *, t->nslots);
    memcpy(at, o->at, sizeof *at * o->n);
    return run_template(in, t, at, call, o, out);
}

int32_t plans_run(Interp *in, const PlanCall *call, const Value *args, uint32_t nargs,
                  PlanMake make, void *ctx, Value *out) {
    Operand few[FEW];
    char *few_at[FEW];
    _Alignas(ELEMENT) char few_elements[FEW][ELEMENT];
    Operands o = {few, few_at, few_elements, 0};
    uint32_t count = count_operands(args, nargs);
    if (count > FEW) {
        o.in = mem_new_n(Operand, count);
        o.at = mem_new_n(char *, count);
        o.elements = mem_bytes((size_t)count * ELEMENT);
    }
    PlanCall flat;
    if (count != nargs) { /* arguments that are tuples of several operands own none */
        flat = *call;
        flat.dying = 0;
        call = &flat;
    }
    for (uint32_t i = 0; i < nargs; i++) {
        const Tuple *t = args[i].p;
        if (args[i].tag != VAL_TUPLE)
            add_operand(in, &o, args[i]);
        else
            for (uint32_t k = 0; t && k < t->n; k++)
                add_operand(in, &o, t->items[k]);
    }
    return run_on(in, call, &o, make, ctx, out);
}
