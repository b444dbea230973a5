/* SPDX-License-Identifier: Apache-2.0 */
/* See ops/recipe/fuse.h. A Fusion is worked out beside the consumer and copied over it when all has
 * gone well. */
#include "ops/recipe/fuse.h"

#include "base/mem.h"
#include "ops/recipe/chain.h"
#include "ops/recipe/epilogue.h"
#include "ops/recipe/join.h"

#include <string.h>

typedef struct Fusion {
    Recipe recipe;
    KernelArgs args;
    Tensor *in[RECIPE_MAX_OPERANDS];
    int64_t in_offsets[RECIPE_MAX_OPERANDS];
    bool gap; /* the place of `operand` is free */
    bool
        moves; /* the producer only moves elements: reading through it costs nothing, however often */
    int operand;
    const Step *producer;
    int axis_of[RECIPE_MAX_AXES];   /* consumer axis → producer axis, -1: extent 1 */
    int64_t times[RECIPE_MAX_AXES]; /* … one step there is so many steps here */
    uint32_t indexed;               /* consumer axes used by SC_IOTA */
    VEC(Scalar) body, epilogue;
} Fusion;

static int axes(const Recipe *r) { return r->rank + r->nreduce; }

static bool is_load(const Scalar *c) {
    return c->op == SC_LOAD || c->op == SC_LOAD_AT || c->op == SC_LOAD_IF;
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* Consumer axis `a` becomes (extent / inner, inner). */
static bool split_axis(Fusion *f, int a, int64_t inner) {
    Recipe *r = &f->recipe;
    int n = axes(r);
    if (n == RECIPE_MAX_AXES || f->indexed >> a & 1 || (r->kind == RECIPE_SCAN && a == r->rank - 1))
        return false;
    KernelArgs *k = &f->args;
    for (int i = n; i > a; i--) {
        k->extents[i] = k->extents[i - 1];
        for (int p = 0; p < r->noperands; p++)
            k->in_strides[p][i] = k->in_strides[p][i - 1];
        for (int p = 0; p < r->noutputs; p++)
            k->out_strides[p][i] = k->out_strides[p][i - 1];
    }
    k->extents[a] /= inner;
    k->extents[a + 1] = inner;
    for (int p = 0; p < r->noperands; p++)
        k->in_strides[p][a] *= inner;
    for (int p = 0; p < r->noutputs; p++)
        k->out_strides[p][a] *= inner;
    for (size_t i = 0; i < f->body.len + f->epilogue.len; i++) {
        Scalar *c = i < f->body.len ? &f->body.data[i] : &f->epilogue.data[i - f->body.len];
        if (c->op == SC_IOTA && c->a > a)
            c->a++;
    }
    uint32_t low = (1u << (a + 1)) - 1;
    f->indexed = (f->indexed & low) | (f->indexed & ~low) << 1;
    if (a < r->rank)
        r->rank++;
    else
        r->nreduce++;
    return true;
}

/* The producer's axis that a step of `stride` elements in its output moves along; -1: none. */
static int axis_by_stride(const Step *p, int64_t stride) {
    int best = -1;
    for (int j = 0; j < p->recipe->rank; j++) {
        int64_t s = p->args.out_strides[0][j];
        if (p->args.extents[j] > 1 && s > 0 && s <= stride && stride % s == 0 &&
            (best < 0 || s > p->args.out_strides[0][best]))
            best = j;
    }
    return best;
}

/* Finds where each axis of the consumer lies in the producer, splitting where needed. */
static bool map_axes(Fusion *f) {
    const Step *p = f->producer;
    int64_t elements = 1, most = 1, reach[RECIPE_MAX_AXES] = {0};
    for (int j = 0; j < p->recipe->rank; j++)
        most *= p->args.extents[j];
    for (int a = 0; a < axes(&f->recipe); a++) {
        int64_t n = f->args.extents[a], stride = f->args.in_strides[f->operand][a];
        f->axis_of[a] = -1;
        if (n == 1 || (stride == 0 && f->moves))
            continue;
        int j = stride > 0 ? axis_by_stride(p, stride) : -1;
        if (j < 0)
            return false;
        int64_t times = stride / p->args.out_strides[0][j], extent = p->args.extents[j];
        if (times * n > extent) {
            int64_t inner = extent / times;
            if (extent % times != 0 || inner < 2 || n % inner != 0 || !split_axis(f, a, inner))
                return false;
            a--; /* again, with the outer part, which is longer by as much */
            /* An outer part that lies in the same axis would not end. */
            if (axis_by_stride(p, stride * inner) == j)
                return false;
            continue;
        }
        f->axis_of[a] = j;
        f->times[a] = times;
        reach[j] += times * (n - 1);
        elements *= n;
    }
    for (int j = 0; j < p->recipe->rank; j++)
        if (reach[j] >= p->args.extents[j])
            return false;
    return elements <= most || f->moves;
}

/* ---- operands and parameters ----------------------------------------------------------------- */

/* The producer's operand as one of the consumer's: an equal one or a new one; -1: no room. */
static int add_operand(Fusion *f, int operand) {
    const Step *p = f->producer;
    Recipe *r = &f->recipe;
    int n = axes(r);
    int64_t strides[RECIPE_MAX_AXES];
    for (int a = 0; a < n; a++)
        strides[a] = f->axis_of[a] < 0 ? 0
                                       : f->times[a] * p->args.in_strides[operand][f->axis_of[a]];
    for (int i = 0; i < r->noperands; i++) {
        bool same = !(f->gap && i == f->operand) && f->in[i] == p->in[operand] &&
                    f->in_offsets[i] == p->in_offsets[operand] &&
                    r->in_types[i] == p->recipe->in_types[operand];
        for (int a = 0; a < n && same; a++)
            same = f->args.extents[a] == 1 || f->args.in_strides[i][a] == strides[a];
        if (same)
            return i;
    }
    /* The operand that goes away leaves its place to the first newcomer. */
    int i = f->gap ? f->operand : r->noperands;
    f->gap = false;
    if (i == RECIPE_MAX_OPERANDS)
        return -1;
    if (i == r->noperands)
        r->noperands++;
    f->in[i] = p->in[operand];
    f->in_offsets[i] = p->in_offsets[operand];
    r->in_types[i] = p->recipe->in_types[operand];
    memset(f->args.in_strides[i], 0, sizeof f->args.in_strides[i]);
    memcpy(f->args.in_strides[i], strides, sizeof(int64_t) * (size_t)n);
    return i;
}

/* How many parameters of a class the consumer uses. */
static int param_count(const Recipe *r, bool floats) {
    int n = 0;
    for (int i = 0; i < r->nbody + r->nepilogue; i++) {
        const Scalar *c = i < r->nbody ? &r->body[i] : &r->epilogue[i - r->nbody];
        if (c->op == SC_PARAM && dtype_is_float((DType)c->type) == floats && c->a >= n)
            n = c->a + 1;
    }
    return n;
}

/* ---- code ------------------------------------------------------------------------------------ */

/* The producer's program in front; gives the position of its value, -1 when something does not go.
 */
static int32_t add_producer(Fusion *f, const Recipe *consumer) {
    const Recipe *p = f->producer->recipe;
    int ni = param_count(consumer, false), nf = param_count(consumer, true);
    int place[RECIPE_MAX_OPERANDS];
    for (int i = 0; i < p->noperands; i++)
        if ((place[i] = add_operand(f, i)) < 0)
            return -1;
    f->body.len = 0;
    for (int i = 0; i < p->nbody; i++) {
        Scalar c = p->body[i];
        if (is_load(&c)) {
            c.a = place[c.a];
        } else if (c.op == SC_PARAM) {
            bool fl = dtype_is_float((DType)c.type);
            int to = c.a + (fl ? nf : ni);
            if (to >= RECIPE_MAX_PARAMS)
                return -1;
            if (fl)
                f->args.fparams[to] = f->producer->args.fparams[c.a];
            else
                f->args.iparams[to] = f->producer->args.iparams[c.a];
            c.a = to;
        } else if (c.op == SC_IOTA) {
            int axis = -1, found = 0;
            for (int a = 0; a < axes(&f->recipe); a++)
                if (f->axis_of[a] == c.a) {
                    axis = f->times[a] == 1 ? a : -1;
                    found++;
                }
            if (found > 1 || (found == 1 && axis < 0))
                return -1;
            if (found == 1)
                c.a = axis;
            else
                c = (Scalar){.op = SC_CONST, .type = DT_I64};
        }
        vec_push(&f->body, c);
    }
    return p->results[0];
}

/* The consumer's program behind; loads of what is computed now, and of what the producer loads, are
 * the values that are there. */
static bool add_consumer(Fusion *f, const Scalar *code, int n, int32_t value) {
    int32_t *at = mem_bytes(sizeof *at * (size_t)(n + 1));
    size_t before = f->body.len;
    for (int i = 0; i < n; i++) {
        Scalar c = code[i];
        if (c.op == SC_LOAD && c.a == f->operand) {
            at[i] = value;
            continue;
        }
        ScalarReads reads = scalar_reads(&c);
        for (int k = reads.first; k < reads.end; k++)
            c.at[k] = at[c.at[k]];
        at[i] = -1;
        for (size_t k = 0; k < before && c.op == SC_LOAD && at[i] < 0; k++)
            if (f->body.data[k].op == SC_LOAD && f->body.data[k].a == c.a &&
                f->body.data[k].type == c.type)
                at[i] = (int32_t)k;
        if (at[i] >= 0)
            continue;
        at[i] = (int32_t)f->body.len;
        vec_push(&f->body, c);
    }
    for (int k = 0; k < f->recipe.noutputs; k++)
        f->recipe.results[k] = at[f->recipe.results[k]];
    return f->body.len <= UINT16_MAX;
}

static bool fusible(const Step *into, const Step *producer, int operand) {
    const Recipe *r = into->recipe, *p = producer->recipe;
    if (p->kind != RECIPE_MAP || (r->kind == RECIPE_PRODUCT && !recipe_only_moves(p)) ||
        r->kind == RECIPE_SCATTER || producer->out[0] != into->in[operand] ||
        producer->out_offsets[0] != into->in_offsets[operand] ||
        (!recipe_only_moves(p) && scalar_result(&p->body[p->results[0]]) != (DType)p->out_types[0]))
        return false;
    for (int i = 0; i < r->nbody; i++)
        if (is_load(&r->body[i]) && r->body[i].a == operand && r->body[i].op != SC_LOAD)
            return false;
    for (int i = 0; i < r->nepilogue; i++)
        if (is_load(&r->epilogue[i]) && r->epilogue[i].a == operand)
            return false;
    return true;
}

/* Makes `into` compute what it reads from operand `operand`, the only output of `producer`.
 * False: it cannot, and nothing changed. */
static bool step_fuse(Step *into, const Step *producer, int operand) {
    if (!fusible(into, producer, operand))
        return false;
    const Recipe *old = into->recipe;
    Fusion fusion = {0}, *f = &fusion; /* too large to be left to the collector each time */
    f->recipe = *old;
    f->args = into->args;
    f->operand = operand;
    f->gap = true;
    f->producer = producer;
    f->moves = recipe_only_moves(producer->recipe);
    memcpy(f->in, into->in, sizeof f->in);
    memcpy(f->in_offsets, into->in_offsets, sizeof f->in_offsets);
    for (int i = 0; i < old->nbody; i++)
        vec_push(&f->body, old->body[i]);
    for (int i = 0; i < old->nepilogue; i++)
        vec_push(&f->epilogue, old->epilogue[i]);
    for (int i = 0; i < old->nbody + old->nepilogue; i++) {
        const Scalar *c = i < old->nbody ? &old->body[i] : &old->epilogue[i - old->nbody];
        if (c->op == SC_IOTA)
            f->indexed |= 1u << c->a;
    }
    if (!map_axes(f))
        return false;
    /* The consumer's code with its axes as they are now; the body is built anew. */
    Scalar *code = f->body.data;
    int n = (int)f->body.len;
    f->body.data = NULL;
    f->body.len = f->body.cap = 0;
    int32_t value = add_producer(f, old);
    if (value < 0 || !add_consumer(f, code, n, value))
        return false;
    Recipe *r = &f->recipe;
    /* A producer without operands leaves a gap: the last operand moves into it. */
    if (f->gap) {
        int last = --r->noperands;
        if (last != f->operand) {
            f->in[f->operand] = f->in[last];
            f->in_offsets[f->operand] = f->in_offsets[last];
            r->in_types[f->operand] = r->in_types[last];
            memcpy(f->args.in_strides[f->operand], f->args.in_strides[last],
                   sizeof f->args.in_strides[last]);
            for (size_t i = 0; i < f->body.len + f->epilogue.len; i++) {
                Scalar *c = i < f->body.len ? &f->body.data[i] : &f->epilogue.data[i - f->body.len];
                if (is_load(c) && c->a == last)
                    c->a = f->operand;
            }
        }
    }
    for (int i = r->noperands; i < RECIPE_MAX_OPERANDS; i++) {
        f->in[i] = NULL;
        r->in_types[i] = 0;
    }
    r->body = f->body.data;
    r->nbody = (uint16_t)f->body.len;
    r->epilogue = f->epilogue.data;
    Recipe *done = mem_new(Recipe);
    *done = *r;
    into->recipe = done;
    into->args = f->args;
    memcpy(into->in, f->in, sizeof into->in);
    memcpy(into->in_offsets, f->in_offsets, sizeof into->in_offsets);
    return true;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static bool same_buffer(const Tensor *a, const Tensor *b) { return a->buffer == b->buffer; }

static bool is_temp(const Plan *plan, const Tensor *t) {
    for (size_t i = 0; i < plan->temps.len; i++)
        if (plan->temps.data[i] == t)
            return true;
    return false;
}

/* The one step, and its one operand, that reads what step i makes; false: none or more. */
static bool only_reader(const Plan *plan, size_t i, size_t *step, int *operand) {
    const Tensor *t = plan->steps.data[i]->out[0];
    int count = 0;
    for (size_t k = 0; k < plan->steps.len; k++) {
        const Step *s = plan->steps.data[k];
        for (int p = 0; p < s->recipe->noperands; p++)
            if (same_buffer(s->in[p], t)) {
                if (s->in[p] != t || k <= i)
                    return false;
                *step = k;
                *operand = p;
                count++;
            }
        for (int p = 0; p < s->recipe->noutputs; p++)
            if (k != i && same_buffer(s->out[p], t))
                return false;
    }
    return count == 1;
}

/* Nothing that the producer reads is written before the consumer has read it. */
static bool inputs_stay(const Plan *plan, size_t producer, size_t consumer) {
    const Step *p = plan->steps.data[producer];
    for (size_t k = producer + 1; k <= consumer; k++)
        for (int o = 0; o < plan->steps.data[k]->recipe->noutputs; o++)
            for (int i = 0; i < p->recipe->noperands; i++)
                if (same_buffer(plan->steps.data[k]->out[o], p->in[i]))
                    return false;
    return true;
}

static void remove_step(Plan *plan, size_t i) {
    memmove(&plan->steps.data[i], &plan->steps.data[i + 1],
            (plan->steps.len - i - 1) * sizeof plan->steps.data[0]);
    plan->steps.len--;
}

/* Step i and what it alone writes are gone. */
static void drop_step(Plan *plan, size_t i) {
    Tensor *t = plan->steps.data[i]->out[0];
    vec_push(&plan->spares, plan->steps.data[i]);
    remove_step(plan, i);
    for (size_t k = 0; k < plan->temps.len; k++)
        if (plan->temps.data[k] == t) {
            plan->temps.data[k] = plan->temps.data[--plan->temps.len];
            break;
        }
    tensor_release(t);
}

/* One way through the plan; `fuse` makes a reader compute what it reads. */
static int fuse_with(Plan *plan, bool (*fuse)(Step *reader, const Step *producer, int operand)) {
    int gone = 0;
    for (size_t i = 0; i < plan->steps.len;) {
        Step *s = plan->steps.data[i];
        size_t reader = 0;
        int operand = 0;
        if (s->recipe->noutputs != 1 || !is_temp(plan, s->out[0]) ||
            !only_reader(plan, i, &reader, &operand) || !inputs_stay(plan, i, reader) ||
            !fuse(plan->steps.data[reader], s, operand)) {
            i++;
            continue;
        }
        drop_step(plan, i);
        gone++;
    }
    return gone;
}

/* ---- siblings -------------------------------------------------------------------------------- */

static bool reads(const Step *s, const Tensor *t) {
    for (int p = 0; p < s->recipe->noperands; p++)
        if (same_buffer(s->in[p], t))
            return true;
    return false;
}

static bool writes(const Step *s, const Tensor *t) {
    for (int p = 0; p < s->recipe->noutputs; p++)
        if (same_buffer(s->out[p], t))
            return true;
    return false;
}

/* Whether the step reads or writes what step i has written. */
static bool follows(const Plan *plan, size_t i, const Step *s) {
    const Step *from = plan->steps.data[i];
    for (int k = 0; k < from->recipe->noutputs; k++)
        if (reads(s, from->out[k]) || writes(s, from->out[k]))
            return true;
    return false;
}

/* Which results of step i are wanted when step k has its own: a bit each. */
static uint32_t find_wanted(const Plan *plan, size_t i, size_t k) {
    const Step *from = plan->steps.data[i];
    uint32_t wanted = 0;
    for (int o = 0; o < from->recipe->noutputs; o++) {
        bool is_wanted = !is_temp(plan, from->out[o]);
        for (size_t s = k + 1; s < plan->steps.len && !is_wanted; s++)
            is_wanted = reads(plan->steps.data[s], from->out[o]);
        wanted |= (uint32_t)is_wanted << o;
    }
    return wanted;
}

/* Step i is gone, and of its results those that are not wanted. */
static void drop_joined(Plan *plan, size_t i, uint32_t wanted) {
    const Step *from = plan->steps.data[i];
    for (int o = 0; o < from->recipe->noutputs; o++)
        for (size_t k = 0; k < plan->temps.len && !(wanted >> o & 1); k++)
            if (plan->temps.data[k] == from->out[o]) {
                plan->temps.data[k] = plan->temps.data[--plan->temps.len];
                tensor_release(from->out[o]);
                break;
            }
    remove_step(plan, i);
}

/* Joins step i to a later one, before which nothing meets its results. */
static bool join_later(Plan *plan, size_t i) {
    for (size_t k = i + 1; k < plan->steps.len; k++) {
        Step *into = plan->steps.data[k];
        uint32_t wanted = find_wanted(plan, i, k);
        if (inputs_stay(plan, i, k) && step_join(into, plan->steps.data[i], wanted)) {
            drop_joined(plan, i, wanted);
            return true;
        }
        if (follows(plan, i, into))
            return false;
    }
    return false;
}

static int join_all(Plan *plan) {
    int gone = 0;
    for (size_t i = 0; i < plan->steps.len;) {
        if (join_later(plan, i))
            gone++;
        else
            i++;
    }
    return gone;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Chains step i to a later one, before which nothing meets its results. */
static bool chain_later(Plan *plan, size_t i) {
    for (size_t k = i + 1; k < plan->steps.len; k++) {
        Step *into = plan->steps.data[k];
        if (inputs_stay(plan, i, k) && step_chain(into, plan->steps.data[i])) {
            vec_push(&plan->spares, plan->steps.data[i]);
            remove_step(plan, i);
            return true;
        }
        if (follows(plan, i, into))
            return false;
    }
    return false;
}

int plan_chain(Plan *plan) {
    int gone = 0;
    for (size_t i = 0; i < plan->steps.len;) {
        if (chain_later(plan, i))
            gone++;
        else
            i++;
    }
    return gone;
}

/* Maps first, so that what a fold is followed by is one step. A step fused may leave another with one reader. */
int plan_fuse(Plan *plan) {
    int gone = 0, more;
    do {
        more = fuse_with(plan, step_fuse);
        more += fuse_with(plan, step_finish);
        gone += more;
    } while (more);
    gone += join_all(plan);
    return gone + plan_chain(plan);
}
