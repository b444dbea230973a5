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
 * the handler after it has given up and released its lock. Outside of an evaluation there is no
 * place to go and the process ends with a message (base/mem.h). */
#include "eval/machine.h"

#include <string.h>
#include <sys/mman.h>

enum { STEP_VALUES = 1 << 20, STEP_FRAMES = 1 << 19 }; /* 16 MB each */

/* The interpreter that runs on this thread: the collector's callbacks have no other way to it. */
static _Thread_local Interp *running;

static void push_roots(void *ctx) {
    Interp *in = ctx;
    mem_push_range(in->stack, in->top);
    mem_push_range(in->frames, in->fp);
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

bool stack_init(Interp *in) {
    size_t limit = in->options.memory_bytes;
    size_t bytes = in->options.stack_bytes ? in->options.stack_bytes : limit;
    size_t values = bytes, frames = bytes;
    in->stack = reserve(&values);
    in->frames = reserve(&frames);
    if (!in->stack || !in->frames)
        return false;
    in->stack_end = in->stack + values / sizeof(Value);
    in->frames_end = in->frames + frames / sizeof(Frame);
    in->top = in->stack;
    in->fp = in->frames;
    in->stack_soft =
        in->stack + STEP_VALUES < in->stack_end ? in->stack + STEP_VALUES : in->stack_end;
    in->frames_soft =
        in->frames + STEP_FRAMES < in->frames_end ? in->frames + STEP_FRAMES : in->frames_end;
    mem_add_roots_callback(push_roots, in);
    mem_set_oom_handler(oom_handler);
    share_limit(in);
    return true;
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
            soft = in->stack_end - top > STEP_VALUES ? (Value *)top + STEP_VALUES : in->stack_end;
        if (fp >= frames_soft)
            frames_soft =
                in->frames_end - fp > STEP_FRAMES ? (Frame *)fp + STEP_FRAMES : in->frames_end;
        size_t wanted = span_bytes(in, soft, frames_soft), limit = in->options.memory_bytes;
        size_t option = in->options.stack_bytes;
        fits = wanted + mem_heap_bytes() + tensor_bytes_live() <= limit;
        if (!fits) {
            mem_collect();
            mem_run_finalizers();
            fits = wanted + mem_heap_bytes() + tensor_bytes_live() <= limit;
        }
        if (option && peak > option)
            fits = false;
    }
    if (!fits) {
        Diag *d = machine_fail(in, DIAG_R0605, "the recursion is too deep: its stack takes %zu MB",
                               peak >> 20);
        diag_add_fact(d,
                      "a call in tail position, whose value is the function's own, uses no stack");
        diag_add_fact(
            d, "the bound is %zu MB (`--memory`, `--stack`)",
            (in->options.stack_bytes ? in->options.stack_bytes : in->options.memory_bytes) >> 20);
        return false;
    }
    in->stack_soft = soft;
    in->frames_soft = frames_soft;
    share_limit(in);
    return true;
}

/* Gives back what a deep recursion took. */
void stack_trim(Interp *in) {
    if (in->stack_soft - in->stack <= STEP_VALUES && in->frames_soft - in->frames <= STEP_FRAMES)
        return;
    if (in->top - in->stack > STEP_VALUES / 2 || in->fp - in->frames > STEP_FRAMES / 2)
        return;
    madvise(in->stack + STEP_VALUES,
            (size_t)((char *)in->stack_soft - (char *)in->stack) - sizeof(Value) * STEP_VALUES,
            MADV_DONTNEED);
    if (in->frames_soft - in->frames > STEP_FRAMES)
        madvise(in->frames + STEP_FRAMES,
                (size_t)((char *)in->frames_soft - (char *)in->frames) -
                    sizeof(Frame) * STEP_FRAMES,
                MADV_DONTNEED);
    if (in->stack_soft - in->stack > STEP_VALUES)
        in->stack_soft = in->stack + STEP_VALUES;
    if (in->frames_soft - in->frames > STEP_FRAMES)
        in->frames_soft = in->frames + STEP_FRAMES;
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

void out_of_memory_fail(Interp *in) {
    in->escape = NULL;
    mem_set_heap_limit(0); /* what the report takes; share_limit sets it again */
    Diag *d = machine_fail(in, DIAG_R0606, "out of memory");
    diag_add_fact(d, "%zu bytes more were wanted; %zu MB of data and %zu MB of tensors are in use",
                  in->escape_wanted, mem_heap_bytes() >> 20, tensor_bytes_live() >> 20);
    diag_add_fact(d, "the bound is %zu MB (`--memory`)", in->options.memory_bytes >> 20);
    share_limit(in);
}

/* ---- a large C stack ----------------------------------------------------------------------- */

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
