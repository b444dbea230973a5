/* SPDX-License-Identifier: Apache-2.0 */
/* The explicit stacks, and what bounds them.
 *
 * Both are mmap'd without reservation and grow by steps; a step is refused when stack, collected
 * heap and tensors together would pass the memory limit. What the stacks take is taken from the
 * heap's limit, so the three stay within it together.
 *
 * Note [Out of memory]. The allocators of base/ and tensor/ never return NULL: past the limit they
 * call the handler set here, which must not return. It longjmps to machine_run, which reports and
 * drops the evaluation, so that the session goes on. The frames crossed are those between
 * machine_run and one of our own allocation functions (the loop, operators, passes): plain C that
 * holds no lock, and no frame of LLVM or of BLAS, neither of which calls us; the collector calls
 * the handler after it has given up and released its lock. Reading and checking are guarded in the
 * same way by interp_guard. Outside of both there is no place to go and the process ends with a
 * message (base/mem.h). */
#include "eval/machine.h"

#include <string.h>
#include <sys/mman.h>

enum { STEP_BYTES = 16 << 20 }; /* the largest step, of either stack */

/* The interpreter that runs on this thread: the collector's callbacks have no other way to it. */
static _Thread_local Interp *running;

static void push_roots(void *ctx) {
    Interp *in = ctx;
    mem_push_range(in->stack, in->top);
    mem_push_range(in->frames, in->fp);
    memset(in->free_cells, 0, sizeof in->free_cells); /* the collector finds them by itself */
}

static void *reserve(size_t *bytes) {
    for (;;) {
        void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED)
            return p;
        if (*bytes <= 1 << 20)
            return NULL;
        *bytes /= 2;
    }
}

static void oom_handler(size_t wanted) {
    Interp *in = running;
    if (in && in->escape) {
        in->escape_wanted = wanted;
        longjmp(*in->escape, 1);
    }
}

void machine_enter(Interp *in) { running = in; }

static size_t span_bytes(const Interp *in, const Value *top, const Frame *fp) {
    return (size_t)((const char *)top - (const char *)in->stack) +
           (size_t)((const char *)fp - (const char *)in->frames);
}

static void share_limit(Interp *in) {
    size_t limit = in->options.memory_bytes, tensors = tensor_bytes_live(), least = limit / 16;
    size_t stacks = span_bytes(in, in->stack_soft, in->frames_soft);
    size_t rest = stacks < limit ? limit - stacks : least;
    in->tensors_shared = tensors;
    tensor_set_limit(rest);
    mem_set_heap_limit(tensors + least < rest ? rest - tensors : least);
}

void stack_share(Interp *in) {
    enum { STEP = 16 << 20 };
    if (tensor_bytes_live() + STEP - in->tensors_shared > 2 * STEP)
        share_limit(in);
}

static ptrdiff_t step_of(size_t limit, size_t size) {
    size_t n = limit / 128 / size;
    return (ptrdiff_t)(n < 1024 ? 1024 : n * size > STEP_BYTES ? STEP_BYTES / size : n);
}

static Value *values_to(const Interp *in, const Value *top) {
    return in->stack_end - top > in->step_values ? (Value *)top + in->step_values : in->stack_end;
}

static Frame *frames_to(const Interp *in, const Frame *fp) {
    return in->frames_end - fp > in->step_frames ? (Frame *)fp + in->step_frames : in->frames_end;
}

/* Where none is asked for, 1 GB: a call of one parameter takes 80 bytes, so ten million of them fit, and
 * calls without end are refused after 13.6 million, in 1.4 s of a processor (half of it in the kernel,
 * which clears the pages); 4 GB took 11 s. */
static size_t stack_bound(const Interp *in) {
    size_t limit = in->options.memory_bytes, usual = (size_t)1 << 30;
    if (in->options.stack_bytes)
        return in->options.stack_bytes;
    return limit < usual ? limit : usual;
}

bool stack_init(Interp *in) {
    size_t limit = in->options.memory_bytes;
    size_t bytes = mem_stack_share(stack_bound(in));
    size_t values = bytes, frames = bytes;
    in->stack = reserve(&values);
    in->frames = reserve(&frames);
    if (!in->stack || !in->frames)
        return false;
    in->stack_end = in->stack + values / sizeof(Value);
    in->frames_end = in->frames + frames / sizeof(Frame);
    in->step_values = step_of(limit, sizeof(Value));
    in->step_frames = step_of(limit, sizeof(Frame));
    in->top = in->stack;
    in->fp = in->frames;
    in->stack_soft = values_to(in, in->stack);
    in->frames_soft = frames_to(in, in->frames);
    mem_add_roots_callback(push_roots, in);
    mem_set_oom_handler(oom_handler);
    share_limit(in);
    return true;
}

void stack_fini(Interp *in) {
    if (running == in)
        running = NULL;
    mem_remove_roots_callback(push_roots, in);
    munmap(in->stack, (size_t)((char *)in->stack_end - (char *)in->stack));
    munmap(in->frames, (size_t)((char *)in->frames_end - (char *)in->frames));
}

/* A deep recursion touches every page once: large pages take a tenth of the time. */
static void use_large_pages(void *from, void *to) {
    enum { LARGE = 2 << 20 };
    uintptr_t begin = ((uintptr_t)from + LARGE - 1) & ~(uintptr_t)(LARGE - 1);
    if (begin < (uintptr_t)to)
        madvise((void *)begin, (uintptr_t)to - begin, MADV_HUGEPAGE);
}

/* A trace takes memory, of which there may be none within the limit: what failed holds it until its frames are left. */
void stack_trace(Interp *in, size_t since) {
    mem_set_heap_limit(0);
    trace_since(in, since);
    share_limit(in);
}

static void out_of_memory_fail(Interp *in) {
    in->escape = NULL;
    mem_set_heap_limit(0); /* what the report takes; share_limit sets it again */
    Diag *d = machine_fail(in, DIAG_R0606, "out of memory");
    if (in->escape_wanted)
        diag_add_fact(d, "%zu bytes more were wanted", in->escape_wanted);
    diag_add_fact(d, "%zu MB of data and %zu MB of tensors are in use", mem_heap_bytes() >> 20,
                  tensor_bytes_live() >> 20);
    diag_add_fact(d, "the bound is %zu MB (`--memory`)", in->options.memory_bytes >> 20);
    char words[MEM_LIMIT_WORDS];
    if (mem_limit_words(words))
        diag_add_fact(d, "%s", words);
    share_limit(in);
}

static void fail_too_deep(Interp *in, size_t peak) {
    size_t bound = stack_bound(in);
    if (!in->options.stack_bytes && peak < 1 << 20) { /* something else took it all */
        in->escape_wanted = peak;
        out_of_memory_fail(in);
        return;
    }
    Diag *d = machine_fail(in, DIAG_R0605, "the recursion is too deep: its stack takes %zu %s",
                           peak >= 1 << 20 ? peak >> 20 : peak >> 10,
                           peak >= 1 << 20 ? "MB" : "KB");
    diag_add_fact(d, "a call in tail position, whose value is the function's own, uses no stack");
    diag_add_fact(d, "the bound is %zu %s (`--memory`, `--stack`)",
                  bound >= 1 << 20 ? bound >> 20 : bound >> 10, bound >= 1 << 20 ? "MB" : "KB");
}

bool stack_grow(Interp *in, const Value *top, const Frame *fp) {
    size_t peak = span_bytes(in, top, fp);
    if (peak > in->stats.stack_peak)
        in->stats.stack_peak = peak;
    Value *soft = in->stack_soft;
    Frame *frames_soft = in->frames_soft;
    bool fits = top <= in->stack_end && fp + 1 < in->frames_end;
    if (fits) {
        if (top > soft)
            soft = values_to(in, top);
        if (fp >= frames_soft)
            frames_soft = frames_to(in, fp);
        size_t wanted = span_bytes(in, soft, frames_soft), limit = in->options.memory_bytes;
        fits = wanted + mem_heap_bytes() + tensor_bytes_live() <= limit;
        if (!fits) {
            mem_collect();
            mem_run_finalizers();
            fits = wanted + mem_heap_bytes() + tensor_bytes_live() <= limit;
        }
        if (peak > stack_bound(in))
            fits = false;
    }
    if (!fits) {
        fail_too_deep(in, peak);
        return false;
    }
    if (soft - in->stack > 2 * in->step_values)
        use_large_pages(in->stack_soft, soft);
    if (frames_soft - in->frames > 2 * in->step_frames)
        use_large_pages(in->frames_soft, frames_soft);
    in->stack_soft = soft;
    in->frames_soft = frames_soft;
    share_limit(in);
    return true;
}

static void give_back(void *from, void *to) {
    uintptr_t page = 4096, begin = ((uintptr_t)from + page - 1) & ~(page - 1);
    if (begin < (uintptr_t)to)
        madvise((void *)begin, (uintptr_t)to - begin, MADV_DONTNEED);
}

/* Gives the pages of a deep recursion back to the system. */
void stack_trim(Interp *in) {
    Value *soft = in->stack + in->step_values;
    Frame *frames_soft = in->frames + in->step_frames;
    if (in->stack_soft <= soft && in->frames_soft <= frames_soft)
        return;
    if (in->top - in->stack > in->step_values / 2 || in->fp - in->frames > in->step_frames / 2)
        return;
    if (in->stack_soft > soft) {
        give_back(soft, in->stack_soft);
        in->stack_soft = soft;
    }
    if (in->frames_soft > frames_soft) {
        give_back(frames_soft, in->frames_soft);
        in->frames_soft = frames_soft;
    }
    share_limit(in);
}

__attribute__((noinline)) static void clear_below(void) {
    char stale[32 << 10];
    memset(stale, 0, sizeof stale);
    __asm__ volatile("" : : "r"(stale) : "memory");
}

void stack_forget(bool collect) {
    if (mem_stack_left() > 128 << 10)
        clear_below();
    if (collect)
        mem_collect();
    mem_run_finalizers();
}

void interp_poll_passes(void *arg) {
    Interp *in = arg;
    if (!in->interrupt || !in->escape)
        return;
    in->escape_is_interrupt = true;
    longjmp(*in->escape, 1);
}

EvalStatus stack_escaped(Interp *in) {
    bool interrupt = in->escape_is_interrupt;
    in->escape_is_interrupt = false;
    passes_abandon(&in->passes);
    if (interrupt)
        return EVAL_INTERRUPTED;
    out_of_memory_fail(in);
    return EVAL_FAILED;
}

bool interp_guard(Interp *in, Diags *diags, void (*fn)(void *arg), void *arg) {
    Value *top = in->top;
    Frame *fp = in->fp;
    Code *volatile code = in->code;
    Diags *before = in->diags;
    jmp_buf *outer = in->escape, here;
    bool ok = setjmp(here) == 0;
    machine_enter(in);
    in->top = top;
    in->fp = fp;
    if (ok) {
        in->escape = &here;
        fn(arg);
    } else {
        in->code = fp == in->frames ? NULL : code;
        interp_set_diags(in, diags);
        (void)stack_escaped(in);
        interp_set_diags(in, before);
    }
    in->escape = outer;
    if (!ok)
        stack_forget(true);
    return ok;
}

/* ---- a large C stack ------------------------------------------------------------------------- */

typedef struct LargeCall {
    Interp *in;
    void (*fn)(void *arg);
    void *arg;
    bool escaped;
} LargeCall;

static void run_large(void *p) {
    LargeCall *call = p;
    jmp_buf *outer = call->in->escape, here;
    if (outer) {
        if (setjmp(here)) {
            call->escaped = true;
            call->in->escape = outer;
            return;
        }
        call->in->escape = &here;
    }
    call->fn(call->arg);
    call->in->escape = outer;
}

void call_on_large_stack(Interp *in, void (*fn)(void *arg), void *arg) {
    LargeCall call = {in, fn, arg, false};
    mem_call_on_stack((size_t)1 << 30, run_large, &call);
    if (call.escaped)
        longjmp(*in->escape, 1);
}
