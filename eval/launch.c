/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps run compiled. Both ways give the same bits, so the choice is one of time alone: a
 * kernel costs about a millisecond to compile, so a recipe whose launches are small is run by the
 * reference until it has done about as much work as that. */
#include "eval/launch.h"

#include "eval/machine.h"
#include "eval/plans.h"
#include "jit/jit.h"

enum {
    LARGE = 1 << 14, /* elements of a launch that is compiled at once */
    HOT =
        200000, /* work after which a recipe is compiled, in units of about 5 ns of the reference */
    LONG = 32,  /* instructions of a recipe that takes twice as long to compile as a short one */
    TABLE_BITS = 12,
    KEPT =
        32
        << 10, /* bytes from which panels are kept: less stays in the first caches in any order */
};

typedef struct Work {
    uint64_t hash;
    int64_t done;
} Work;

typedef struct Launch {
    Interp *in;
    JitOptions options;
    Jit *jit;
    bool tried;
    const char *why_not;
    LaunchTrace trace;
    Str *trace_out;
    Map traced; /* hash of a recipe, as a pointer */
    Work work[1 << TABLE_BITS];
} Launch;

static bool open_jit(Launch *l) {
    if (!l->tried) {
        l->tried = true;
        l->jit = jit_open(&l->options, &l->why_not);
    }
    return l->jit != NULL;
}

static int64_t elements(const int64_t *extents, int axes) {
    int64_t n = 1;
    for (int i = 0; i < axes; i++)
        if (__builtin_mul_overflow(n, extents[i], &n))
            return INT64_MAX;
    return n;
}

/* What the reference takes for a launch of n elements: it goes through the code block by block, with loads and stores that
 * cost as much as some instructions, and folds one result after the other. */
static int64_t count_work(const Recipe *r, const KernelArgs *args, int64_t n) {
    int64_t code = r->nbody + r->nepilogue, operands = r->noperands + r->noutputs;
    int64_t folds = r->nreduce ? elements(args->extents, r->rank) : 0;
    return 16 + 4 * code + n * (code + 4 * operands) / 8 + 64 * folds;
}

/* Adds a launch of n elements to a recipe's work and says whether it is worth compiling. Of two recipes with one place
 * in the table the newer one has it. */
static bool is_hot(Launch *l, const Recipe *r, uint64_t hash, const KernelArgs *args, int64_t n) {
    if (n >= LARGE)
        return true;
    Work *w = &l->work[hash >> (64 - TABLE_BITS)];
    if (w->hash != hash)
        *w = (Work){hash, 0};
    if (w->done >= HOT + HOT / LONG * r->nbody)
        return true;
    w->done += count_work(r, args, n);
    return false;
}

static void trace_step(Launch *l, const Recipe *r, const KernelArgs *args) {
    const void *key = (const void *)(uintptr_t)(recipe_hash(r) | 1);
    if (map_has(&l->traced, key) || !open_jit(l))
        return;
    map_set(&l->traced, key, l);
    JitText what = l->trace == LAUNCH_TRACE_ASM ? JIT_TEXT_ASSEMBLY : JIT_TEXT_IR;
    const char *why = NULL;
    if (!jit_text(l->jit, r, args, what, l->trace_out, &why))
        str_printf(l->trace_out, "; run by reference: %s\n", why ? why : "no kernel");
}

static int32_t run_step(void *ctx, const Recipe *r, const KernelArgs *args) {
    Launch *l = ctx;
    l->in->stats.launches++;
    if (l->trace != LAUNCH_TRACE_NONE)
        trace_step(l, r, args);
    if (is_hot(l, r, recipe_hash(r), args, elements(args->extents, r->rank + r->nreduce)) &&
        open_jit(l)) {
        l->in->stats.ops_compiled++;
        return jit_run(l->jit, r, args);
    }
    l->in->stats.ops_reference++;
    return recipe_run(r, args);
}

/* What a compiled step keeps: a launch that only wants addresses, or how an operand is packed. */
typedef struct Ready {
    JitLaunch *launch;
    bool packs;
    JitPacking packing;
} Ready;

static void make_ready(Launch *l, TemplateStep *step, const KernelArgs *args) {
    Ready *ready = mem_new(Ready);
    step->made = ready;
    ready->packs = jit_find_packing(l->jit, step->recipe, args, &ready->packing) &&
                   ready->packing.bytes >= KEPT;
    if (!ready->packs)
        ready->launch = jit_launch_new(l->jit, step->recipe, args);
    step->refused = !ready->launch;
}

/* Runs a step that reads an operand in panels, once that is worth while; -1: not yet. */
static int32_t run_packed(Launch *l, TemplateStep *step, const KernelArgs *args) {
    Ready *ready = step->made;
    int p = ready->packing.operand;
    const Tensor *t = plans_input(l->in, step->slot[p]);
    if (!t)
        return -1;
    PackedKey *key = &ready->packing.key;
    key->offset = (const char *)args->in[p] - (const char *)t->buffer->data;
    const void *panels = packed_find(t->buffer, key);
    if (!panels && packed_is_due(t->buffer, key)) {
        void *made = packed_new(t->buffer, key, ready->packing.bytes);
        int32_t status = made ? jit_pack(l->jit, step->recipe, args, made) : -1;
        if (status != KERNEL_DONE) {
            packed_forget(t->buffer);
            return status == KERNEL_INTERRUPTED ? status : -1;
        }
        panels = made;
    }
    return panels ? jit_run_packed(l->jit, step->recipe, args, panels) : -1;
}

/* A step that is compiled keeps what a launch of it needs. */
static int32_t run_kept(void *ctx, TemplateStep *step, char *const *at,
                        const volatile int *interrupt) {
    Launch *l = ctx;
    const Ready *ready = step->made;
    l->in->stats.launches++;
    if (ready && ready->launch && !jit_launch_is_outgrown(ready->launch) &&
        l->trace == LAUNCH_TRACE_NONE) {
        l->in->stats.ops_compiled++;
        return jit_launch_run(l->jit, ready->launch, at, step->slot, step->offset);
    }
    KernelArgs args;
    template_bind(step, at, interrupt, &args);
    if (l->trace != LAUNCH_TRACE_NONE)
        trace_step(l, step->recipe, &args);
    if (!is_hot(l, step->recipe, step->hash, &args, step->elements) || !open_jit(l)) {
        l->in->stats.ops_reference++;
        return recipe_run(step->recipe, &args);
    }
    if (!step->refused)
        make_ready(l, step, &args);
    ready = step->made;
    l->in->stats.ops_compiled++;
    if (ready->packs) {
        int32_t status = run_packed(l, step, &args);
        if (status >= 0)
            return status;
    }
    return jit_run(l->jit, step->recipe, &args);
}

static Launch *launch_of(const Interp *in) {
    return in->runner == run_step ? in->runner_ctx : NULL;
}

bool launch_element(Interp *in, Template *t, char *const *at) {
    Launch *l = launch_of(in);
    TemplateStep *step = &t->steps[0];
    if (!l || l->trace != LAUNCH_TRACE_NONE || step->refused)
        return false;
    if (!step->made) {
        KernelArgs args;
        if (!open_jit(l))
            return false;
        template_bind(step, at, &in->interrupt, &args);
        jit_expect_often(l->jit, step->recipe);
        make_ready(l, step, &args);
    }
    const Ready *ready = step->made;
    if (!ready->launch ||
        jit_launch_run(l->jit, ready->launch, at, step->slot, step->offset) != KERNEL_DONE)
        return false;
    in->stats.ops_compiled++;
    return true;
}

static void close_jit(void *ctx) {
    Launch *l = ctx;
    jit_close(l->jit);
    l->jit = NULL;
}

void launch_use_jit(Interp *in, int threads, bool cache) {
    Launch *l = mem_new(Launch);
    l->in = in;
    l->options.threads = threads;
    l->options.cache_dir = cache ? NULL : "";
    interp_set_runner(in, run_step, run_kept, l);
    interp_set_runner_fini(in, close_jit);
}

void launch_print_stats(Interp *in, Str *out) {
    Launch *l = launch_of(in);
    if (!l) {
        str_add(out, "kernels: off\n");
    } else if (!l->tried) {
        str_add(out, "kernels: none needed so far\n");
    } else if (!l->jit) {
        str_printf(out, "kernels: none, %s\n", l->why_not ? l->why_not : "no library");
    } else {
        JitStats s = jit_stats(l->jit);
        str_add(out, "kernels: ");
        jit_describe(l->jit, out);
        str_printf(out, "\nkernels compiled: %llu\nkernels from the cache: %llu\n",
                   (unsigned long long)s.compiled, (unsigned long long)s.loaded);
        str_printf(out, "compiling and loading: %.1f ms\n", s.seconds * 1e3);
    }
}

double launch_compile_ms(Interp *in) {
    Launch *l = launch_of(in);
    return l && l->jit ? jit_stats(l->jit).seconds * 1e3 : 0;
}

void launch_trace_kernels(Interp *in, LaunchTrace trace, Str *out) {
    Launch *l = launch_of(in);
    if (!l) {
        if (trace != LAUNCH_TRACE_NONE)
            str_add(out, "; kernels are off (--jit=off)\n");
        return;
    }
    l->trace = trace;
    l->trace_out = out;
    map_clear(&l->traced);
}
