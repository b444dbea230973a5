/* SPDX-License-Identifier: Apache-2.0 */
/* docs/kernels.md: for each operator and dtype, whether its steps run compiled. Nothing is
 * believed: the documented example of each operator is run once for each dtype it takes, its
 * arguments converted, with a runner that asks the kernel compiler what it did with each step. */
#include <string.h>

#include "docs/pages.h"
#include "jit/jit.h"
#include "ops/ops.h"
#include "repl/session_internal.h"

/* ---- the call of the example ----------------------------------------------------------------- */

typedef struct Wanted {
    const Op *op;
    Expr *call;
} Wanted;

static bool is_wanted(void *ctx, const Expr *e) {
    Wanted *w = ctx;
    bool is_index = e->kind == EXPR_INDEX && w->op == &op_index;
    bool is = is_index || (e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->a->op == w->op);
    if (is)
        w->call = (Expr *)(uintptr_t)e;
    return is;
}

static Expr *find_call(Expr *e, const Op *op) {
    Wanted w = {op, NULL};
    return e && expr_any(e, is_wanted, &w) ? w.call : NULL;
}

static Expr *core_of_example(Session *s, const Op *op) {
    Source *source = source_new(op->name, op->example, strlen(op->example), 0);
    ParseScope scope;
    session_parse_scope(s, &scope);
    ParseOptions options = {.scope = &scope};
    Diags diags = {0};
    Module *module = NULL;
    CoreItemVec items = {0};
    if (parse_module(source, &options, &diags, &module) != PARSE_OK ||
        !infer_module(s->env, module, INFER_CHECK_ONLY, &diags, &items))
        return NULL;
    for (size_t i = 0; i < items.len; i++) {
        Expr *call = items.data[i].kind == CORE_EXPR ? find_call(items.data[i].expr, op) : NULL;
        if (call)
            return call;
    }
    return NULL;
}

enum { MAX_IN = 16 };

typedef struct Example {
    const Attrs *attrs;
    uint32_t nin;
    Tensor *in[MAX_IN];
} Example;

static bool add_value(Example *x, Value v) {
    if (v.tag == VAL_TUPLE) {
        const Tuple *t = v.p;
        for (uint32_t i = 0; t && i < t->n; i++)
            if (!add_value(x, t->items[i]))
                return false;
        return true;
    }
    Tensor *t = value_to_tensor(v);
    if (!t || x->nin == MAX_IN)
        return false;
    x->in[x->nin++] = tensor_contiguous(t);
    return true;
}

static bool add_argument(Session *s, Example *x, Expr *e) {
    Value v;
    return interp_eval(s->interp, e, &v) == EVAL_OK && add_value(x, v);
}

static bool read_example(Session *s, const Op *op, Example *x) {
    Expr *call = core_of_example(s, op);
    if (!call || call->nsizes)
        return false;
    x->attrs = call->attrs ? call->attrs : attrs_defaults(op);
    if (call->kind == EXPR_INDEX && !add_argument(s, x, call->a))
        return false;
    for (uint32_t i = 0; i < call->nargs; i++)
        if (!add_argument(s, x, call->args[i]))
            return false;
    return x->attrs != NULL;
}

/* ---- one call in one dtype ------------------------------------------------------------------- */

typedef enum Verdict { COMPILED, REFERENCE, NO_STEPS, REFUSED } Verdict;

typedef struct Watch {
    Jit *jit;
    int steps;
    const char *why; /* of the first step run by the reference */
} Watch;

static int32_t watch_step(void *ctx, const Recipe *r, const KernelArgs *args) {
    Watch *w = ctx;
    uint64_t before = jit_stats(w->jit).reference;
    int32_t status = jit_run_step(w->jit, r, args);
    const char *why = jit_why_reference(w->jit, r);
    w->steps++;
    if (jit_stats(w->jit).reference != before && !w->why)
        w->why = mem_strdup(why ? why : "not compiled");
    return status;
}

static Tensor *converted(const Tensor *t, DType to) {
    Tensor *out = tensor_new(to, t->rank, t->shape);
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    const char *from = tensor_data(t);
    char *at = tensor_data(out);
    for (int64_t i = 0; i < n; i++)
        elem_cast(at + i * (int64_t)dtype_size(to), to, from + i * (int64_t)dtype_size(t->dtype),
                  t->dtype);
    return out;
}

/* Where the attribute `dtype` says which elements are made. */
static const Attrs *attrs_with_dtype(const Op *op, const Attrs *attrs, DType dtype) {
    int at = op_attr_index(op, "dtype");
    if (at < 0)
        return attrs;
    AttrValue *values = mem_new_n(AttrValue, op->nattrs);
    memcpy(values, attrs->values, sizeof *values * (size_t)op->nattrs);
    values[at] = (AttrValue){.kind = ATTR_DTYPE, .dtype = dtype};
    Attrs *out = mem_new(Attrs);
    out->op = op;
    out->values = values;
    return out;
}

/* One call, with the arguments in `mask` converted. */
static Verdict try_call(const Op *op, const Example *x, const Attrs *attrs, DType dtype,
                        uint32_t mask, Watch *w) {
    Tensor *in[MAX_IN], *out[OP_MAX_OUTPUTS];
    for (uint32_t i = 0; i < x->nin; i++)
        in[i] = mask >> i & 1 ? converted(x->in[i], dtype) : x->in[i];
    Diags diags = {0};
    OpCall call = {.op = op, .attrs = attrs, .nin = x->nin, .in = in, .diags = &diags};
    w->steps = 0;
    op_run(&call, out, watch_step, w);
    return w->why ? REFERENCE : w->steps ? COMPILED : diags.errors ? REFUSED : NO_STEPS;
}

/* Which of the arguments have the dtype of the first is not told by their dtypes (data and indices
 * may both be int32): as many as the operator takes. A condition comes before the first. A dtype
 * may also need other attributes than the example's: bools are counted by cumsum as integers. */
static Verdict verdict(const Op *op, const Example *x, DType dtype, Watch *w) {
    if (op->reference_only) {
        w->why = op->reference_only;
        return REFERENCE;
    }
    uint32_t first = op->scalar == OP_SCALAR_SELECT, all = 0;
    for (uint32_t i = first; i < x->nin; i++)
        if (x->in[i]->dtype == x->in[first]->dtype)
            all |= 1u << i;
    const Attrs *tried[] = {x->attrs, attrs_defaults(op), attrs_with_dtype(op, x->attrs, DT_I32)};
    if (!x->nin || op_attr_index(op, "dtype") >= 0)
        tried[0] = attrs_with_dtype(op, x->attrs, dtype);
    Verdict v = REFUSED;
    for (int k = 0; k < 3 && v == REFUSED; k++) {
        if (!tried[k])
            continue;
        v = try_call(op, x, tried[k], dtype, all, w);
        for (uint32_t mask = all; v == REFUSED && mask; mask--)
            if ((mask & all) == mask && mask >> first & 1)
                v = try_call(op, x, tried[k], dtype, mask, w);
    }
    return v;
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct Reason {
    const char *name, *why;
} Reason;

static void print_row(Str *out, const Op *op, const Example *x, Jit *jit, const char **why) {
    static const char *const marks[] = {"●", "r", "·", "refused"};
    str_printf(out, "| `%s` |", op->name);
    for (int t = 0; t < DTYPE_COUNT; t++) {
        Watch w = {.jit = jit};
        bool takes = op->dtypes & DT_BIT(t);
        str_printf(out, " %s |", takes ? marks[verdict(op, x, (DType)t, &w)] : "");
        if (w.why && !*why)
            *why = w.why;
    }
    str_add_char(out, '\n');
}

bool page_print_kernels(Session *s, Str *out, const char **why) {
    JitOptions options = {.cache_dir = "", .threads = 1};
    Jit *jit = jit_open(&options, why);
    VEC(Reason) reasons = {0};
    if (!jit) {
        *why = fmt_text("no kernels: %s", *why ? *why : "no library");
        return false;
    }
    str_add(out, "| operator |");
    for (int t = 0; t < DTYPE_COUNT; t++)
        str_printf(out, " %s |", dtype_info[t].name);
    str_add(out, "\n|---|");
    for (int t = 0; t < DTYPE_COUNT; t++)
        str_add(out, "---|");
    str_add_char(out, '\n');
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        Example x = {0};
        if (!op->reference_only && !read_example(s, op, &x)) {
            *why = fmt_text("the example of `%s` shows no call of it", op->name);
            jit_close(jit);
            return false;
        }
        Reason r = {op->name, NULL};
        print_row(out, op, &x, jit, &r.why);
        if (r.why)
            vec_push(&reasons, r);
    }
    str_add(out, "\n## Reference only\n\n");
    for (size_t i = 0; i < reasons.len; i++)
        str_printf(out, "- `%s`: %s\n", reasons.data[i].name, reasons.data[i].why);
    jit_close(jit);
    return true;
}
