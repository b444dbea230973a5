/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator of the table, over every dtype it takes, on random arguments of sizes 0 to 40:
 * compiled kernels give the bits of the reference evaluation, and nothing that has a recipe is left
 * to the reference. */
#include "base/diag.h"
#include "jit/jit.h"
#include "ops/ops.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

static uint32_t seed = 11;
static uint32_t below(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 12) % n;
}

static void fill(Tensor *t, bool small) {
    for (int64_t i = 0; i < t->count; i++) {
        void *p = tensor_at(t, i);
        if (dtype_is_float(t->dtype))
            elem_set_float(p, t->dtype, below(50) == 0 ? NAN : ((double)below(4001) - 2000) / 300);
        else
            elem_set_int(p, t->dtype, small ? below(3) : (int64_t)below(9) + (below(6) ? 1 : -5));
    }
}

static Tensor *argument(DType t, int like_rank, const int64_t *like, bool small) {
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 17, 33, 40};
    int64_t shape[4] = {0};
    int rank = (int)below(5);
    bool near = like && below(5) != 0;
    if (near)
        rank = like_rank;
    for (int i = 0; i < rank; i++) {
        shape[i] = below(40) == 0 ? 0 : sizes[below(rank > 2 ? 5 : 8)];
        if (near)
            shape[i] = below(4) ? like[i] : 1;
    }
    Tensor *x = tensor_new(t, rank, shape);
    fill(x, small);
    return x;
}

static const Attrs *some_attrs(const Op *op, int pick) {
    static const char *const axes[] = {"None", "[0]", "[-1]", "[0, 1]", "[0, 2]"};
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++) {
        const char *text = op->attrs[i].initial;
        if (op->attrs[i].type == AT_INTS_OPT && strcmp(op->attrs[i].name, "axis") == 0)
            text = axes[pick % 5];
        else if (!text && op->attrs[i].type == AT_FLOAT)
            text = "0.5";
        else if (!text && op->attrs[i].type == AT_INT)
            text = "0";
        if (!text)
            return NULL;
        values[i] = attr_parse(text);
    }
    Attrs *a = mem_new(Attrs);
    a->op = op;
    a->values = values;
    return a;
}

static bool same(const Tensor *a, const Tensor *b) {
    for (int64_t i = 0; i < a->count; i++) {
        void *x = tensor_at(a, i), *y = tensor_at(b, i);
        if (memcmp(x, y, dtype_size(a->dtype)) != 0 &&
            !(dtype_is_float(a->dtype) && isnan(elem_get_float(x, a->dtype)) &&
              isnan(elem_get_float(y, a->dtype))))
            return false;
    }
    return true;
}

static Jit *jit;
static int runs;

enum { LARGE = 1 << 20 }; /* elements that `arange` of a drawn number near 2^32 has, and more */

/* One call both ways; false: the operator does not take these arguments. */
static bool compare(const Op *op, const Attrs *attrs, Tensor **in, uint32_t nin) {
    Diags diags = {0};
    OpCall call = {.op = op, .attrs = attrs, .nin = nin, .in = in, .diags = &diags};
    OutSpec out[OP_MAX_OUTPUTS];
    int outputs = op->shape(&call, out);
    for (int i = 0; i < outputs; i++)
        if (shape_count(out[i].rank, out[i].shape, out[i].dtype) > LARGE)
            return false;
    Tensor *want[OP_MAX_OUTPUTS], *got[OP_MAX_OUTPUTS];
    int n = op_run(&call, want, NULL, NULL);
    uint64_t before = jit_stats(jit).reference;
    int m = op_run(&call, got, jit_run_step, jit);
    Str text = {0};
    str_printf(&text, "%s of", op->name);
    for (uint32_t i = 0; i < nin; i++) {
        str_printf(&text, "%s %s (", i ? "," : "", dtype_info[in[i]->dtype].name);
        for (int a = 0; a < in[i]->rank; a++)
            str_printf(&text, "%s%lld", a ? ", " : "", (long long)in[i]->shape[a]);
        str_add(&text, ")");
    }
    if (jit_stats(jit).reference != before)
        check_fail(__FILE__, __LINE__, "%s: run by the reference", str_text(&text));
    if (n != m)
        check_fail(__FILE__, __LINE__, "%s: %d outputs, expected %d", str_text(&text), m, n);
    for (int k = 0; k < n && k < m; k++)
        if (!same(want[k], got[k]))
            check_fail(__FILE__, __LINE__, "%s: output %d differs", str_text(&text), k);
    runs += n > 0;
    return n >= 0;
}

TEST(table) {
    const char *why = NULL;
    jit = jit_open(&(JitOptions){.cache_dir = "", .threads = 2}, &why);
    if (!jit) {
        printf("no compiler: %s\n", why);
        return;
    }
    const char *only = getenv("RLY_JIT_OP");
    for (size_t i = 0; i < op_count() && !check_failures; i++) {
        const Op *op = op_at(i);
        if (!op->lower || !some_attrs(op, 0) || op->nargs < 0 ||
            (only && strcmp(only, op->name) != 0))
            continue;
        for (int t = 0; t < DTYPE_COUNT; t++) {
            if (!(op->dtypes & DT_BIT(t)))
                continue;
            int done = 0;
            for (int pick = 0; pick < 40 && done < 3; pick++) {
                Tensor *in[8];
                int nargs = op->nargs > 8 ? 8 : op->nargs;
                for (int k = 0; k < nargs; k++) {
                    /* A later argument may be a condition or an index. */
                    DType type = (DType)t;
                    if (k == 0 && strcmp(op->name, "where") == 0)
                        type = DT_BOOL;
                    else if (k > 0 && pick % 4 == 3)
                        type = DT_I32;
                    in[k] = argument(type, k ? in[0]->rank : 0, k ? in[0]->shape : NULL,
                                     type != (DType)t);
                }
                done += compare(op, some_attrs(op, pick), in, (uint32_t)nargs);
            }
        }
    }
    JitStats s = jit_stats(jit);
    printf("   %d calls, %llu kernels in %.1f s\n", runs, (unsigned long long)s.compiled,
           s.seconds);
    CHECK(only || runs > 500);
    jit_close(jit);
}

int main(void) {
    RUN(table);
    return check_result();
}
