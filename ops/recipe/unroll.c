/* SPDX-License-Identifier: Apache-2.0 */
/* See ops/recipe/unroll.h. */
#include "ops/recipe/unroll.h"

#include "base/mem.h"

#include <string.h>

typedef struct Unrolling {
    const Step *from;
    Step *to;
    Recipe *recipe;
    ScalarBuilder body;
    int64_t at[RECIPE_MAX_AXES]; /* the step of the reduction, by axis */
} Unrolling;

static int64_t count_steps(const Step *s) {
    int64_t n = 1;
    for (int a = 0; a < s->recipe->nreduce; a++)
        if (__builtin_mul_overflow(n, s->args.extents[s->recipe->rank + a], &n))
            return INT64_MAX;
    return n;
}

/* Whether the body reads its operands at the index itself and does not depend on the index otherwise. */
static bool is_plain(const Recipe *r) {
    for (int i = 0; i < r->nbody; i++) {
        ScalarOp op = (ScalarOp)r->body[i].op;
        if (op == SC_LOAD_AT || op == SC_LOAD_IF || op == SC_IOTA || op == SC_CHECK)
            return false;
    }
    return r->nbody > 0 && r->body[r->results[0]].op == SC_MUL;
}

/* The operands as they lie at one step of the reduction; gives the number of the first. */
static int add_operands(Unrolling *u) {
    const Step *from = u->from;
    const Recipe *r = from->recipe;
    int first = u->recipe->noperands;
    for (int p = 0; p < r->noperands; p++) {
        int n = u->recipe->noperands++;
        int64_t offset = from->in_offsets[p];
        for (int a = 0; a < r->nreduce; a++)
            offset += u->at[a] * from->args.in_strides[p][r->rank + a];
        u->to->in[n] = from->in[p];
        u->to->in_offsets[n] = offset;
        u->recipe->in_types[n] = r->in_types[p];
        memcpy(u->to->args.in_strides[n], from->args.in_strides[p],
               sizeof(int64_t) * (size_t)r->rank);
    }
    return first;
}

/* One step more behind the sum so far. */
static Sc add_step(Unrolling *u, Sc sum) {
    const Recipe *r = u->from->recipe;
    int first = add_operands(u);
    const Scalar *mul = &r->body[r->results[0]];
    int32_t *at = mem_bytes(sizeof *at * ((size_t)r->nbody + 1));
    for (int i = 0; i < r->results[0]; i++) {
        Scalar c = r->body[i];
        if (c.op == SC_LOAD)
            c.a += first;
        ScalarReads reads = scalar_reads(&c);
        for (int k = reads.first; k < reads.end; k++)
            c.at[k] = at[c.at[k]];
        at[i] = (int32_t)u->body.code.len;
        vec_push(&u->body.code, c);
    }
    return sc_fma(&u->body, at[mul->a], at[mul->b], sum);
}

/* Goes on to the next step, row-major. */
static void advance(Unrolling *u) {
    const Recipe *r = u->from->recipe;
    for (int a = r->nreduce; a-- > 0;) {
        if (++u->at[a] < u->from->args.extents[r->rank + a])
            return;
        u->at[a] = 0;
    }
}

bool step_unroll(Step *step, int64_t most) {
    const Recipe *r = step->recipe;
    int64_t n = count_steps(step);
    if (r->kind != RECIPE_PRODUCT || r->nepilogue || r->noutputs != 1 || n < 1 || n > most ||
        n * r->noperands > RECIPE_MAX_OPERANDS || !dtype_is_float((DType)r->acc_type) ||
        r->acc_type != r->out_types[0] || !is_plain(r))
        return false;
    Unrolling unrolling = {.from = step, .to = mem_new(Step), .recipe = mem_new(Recipe)};
    Unrolling *u = &unrolling;
    *u->recipe = (Recipe){
        .kind = RECIPE_MAP, .rank = r->rank, .noutputs = 1, .acc_type = r->acc_type};
    u->recipe->out_types[0] = r->out_types[0];
    size_t row = sizeof(int64_t) * (size_t)r->rank;
    memcpy(u->to->args.extents, step->args.extents, row);
    memcpy(u->to->args.out_strides[0], step->args.out_strides[0], row);
    memcpy(u->to->args.iparams, step->args.iparams, sizeof step->args.iparams);
    memcpy(u->to->args.fparams, step->args.fparams, sizeof step->args.fparams);
    u->to->out[0] = step->out[0];
    u->to->out_offsets[0] = step->out_offsets[0];
    Sc sum = sc_float(&u->body, (DType)r->acc_type, 0.0);
    for (int64_t i = 0; i < n; i++, advance(u))
        sum = add_step(u, sum);
    u->recipe->body = u->body.code.data;
    u->recipe->nbody = (uint16_t)u->body.code.len;
    u->recipe->results[0] = sum;
    u->to->recipe = u->recipe;
    *step = *u->to;
    return true;
}
