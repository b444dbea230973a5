/* SPDX-License-Identifier: Apache-2.0 */
/* Boehm's collector behind base/mem.h.
 *
 * Note [Stacks]. The collector scans the stack from the stack pointer to the "bottom" it was told.
 * mem_call_on_stack moves execution to a region of its own, announces that region's end as the
 * bottom, and puts the part of the stack it left on a list of suspended ranges, which are pushed
 * with the other roots. The switch is a few instructions, not swapcontext: that one saves the
 * signal mask by a system call, and AddressSanitizer complains about it.
 *
 * Note [Static roots]. Only the data of the program, or of librelay.so, that holds this file is scanned. Other
 * libraries (LLVM, BLAS, whoever loaded us) keep no collected pointer in their data, and leaving them out makes a
 * collection three times shorter.
 *
 * Note [Whole cells]. The collector adds a byte to what GC_MALLOC is asked for, so that a pointer to the end of an
 * object keeps it, and does not scan the word that this byte is in. A cell of 32 bytes would become one of 48. Cells are
 * of a kind of their own, which is scanned to its last word; nobody keeps only the end of one.
 *
 * Note [Lists of free memory]. GC_MALLOC finds out which thread asks, 80 instructions. All memory of the collector is used
 * on one thread (Note [One thread] in repl/api.c), so small blocks come from lists of our own, which are static roots:
 * the collector hands out several at once, each with that one byte. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/mem.h"

#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS
#include <gc/gc.h>
#include <gc/gc_inline.h>
#include <gc/gc_mark.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define RLY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RLY_ASAN 1
#endif
#endif
#ifdef RLY_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

enum { RESERVE = 16 << 20, PIN_BUCKETS = 1024, LISTS = 65 };

typedef struct RootsCallback {
    MemRootsFn fn;
    void *ctx;
} RootsCallback;

typedef struct Pin {
    void *p;
    size_t count;
    struct Pin *next;
} Pin;

/* A stack that waits for a call on another stack to return. */
typedef struct Suspended {
    char *sp, *bottom;
    struct Suspended *next;
} Suspended;

static RootsCallback *roots_callbacks; /* collected */
static size_t nroots_callbacks, roots_callbacks_cap;
static void (*old_push_other_roots)(void);
static Suspended *suspended;
static Pin *pins[PIN_BUCKETS];
static void (*oom_handler)(size_t wanted);
static __attribute__((used)) int cell_kind; /* see Note [Whole cells]; under stress nobody asks */
/* Free blocks by granules, linked by their first words, zeroed behind them; under stress nobody asks. */
static __attribute__((used)) void **lists[LISTS];
static size_t heap_limit;
static size_t stack_most;             /* of a stack; 0: not yet asked */
static _Thread_local char *stack_low; /* lowest usable address of the stack in use */

static void push_other_roots(void) {
    if (old_push_other_roots)
        old_push_other_roots();
    for (Suspended *s = suspended; s; s = s->next)
        GC_push_all_eager(s->sp, s->bottom);
    for (size_t i = 0; i < nroots_callbacks; i++)
        roots_callbacks[i].fn(roots_callbacks[i].ctx);
}

/* See Note [Static roots]. */
static int has_static_roots(const char *name, void *start, size_t size) {
    (void)name;
    return (uintptr_t)pins - (uintptr_t)start < size;
}

/* The handler gets a reserve to report from; mem_collect takes what is left of it back. */
static void *out_of_memory(size_t wanted) {
    if (heap_limit)
        GC_set_max_heap_size(heap_limit + RESERVE);
    if (oom_handler)
        oom_handler(wanted);
    mem_exit("the program");
}

/* The smaller limit of what may be mapped, 0: none; *name: what it limits, as the shell sets it. */
static size_t mapping_limit(const char **name, const char **option) {
    static const struct {
        int resource;
        const char *name, *option;
    } limits[] = {{RLIMIT_AS, "address space", "-v"}, {RLIMIT_DATA, "data segment", "-d"}};
    size_t least = 0;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit l;
        if (getrlimit(limits[i].resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY ||
            (least && l.rlim_cur >= least))
            continue;
        least = l.rlim_cur ? l.rlim_cur : 1;
        *name = limits[i].name;
        *option = limits[i].option;
    }
    return least;
}

bool mem_limit_words(char words[MEM_LIMIT_WORDS]) {
    const char *name, *option;
    size_t bytes = mapping_limit(&name, &option);
    if (bytes)
        snprintf(words, MEM_LIMIT_WORDS, "the %s is limited to %zu %s (`ulimit %s`)", name,
                 bytes >> 20 ? bytes >> 20 : bytes >> 10, bytes >> 20 ? "MB" : "KB", option);
    return bytes > 0;
}

/* No destructors run: they may belong to who had no memory. */
void mem_exit(const char *who) {
    fflush(stdout);
    fprintf(stderr, "error[R0606]: out of memory, in %s\n", who);
    char words[MEM_LIMIT_WORDS];
    if (mem_limit_words(words))
        fprintf(stderr, "  = %s\n", words);
    _exit(1);
}

/* The collector is about to abort, as where a system call that gives memory back fails; its message is
 * printed by then. */
static void end_collector(const char *message) {
    if (message)
        mem_exit("the collector");
}

/* Without room for its first tables the collector ends the program in words of its own. */
static void check_first_room(void) {
    enum { FIRST_ROOM = 2 << 20 };
    void *room = mmap(NULL, FIRST_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        mem_exit("the program");
    munmap(room, FIRST_ROOM);
}

void mem_init(void) {
    static bool done;
    if (done)
        return;
    done = true;
    GC_set_all_interior_pointers(1);
    GC_set_finalize_on_demand(1);
    GC_set_warn_proc(GC_ignore_warn_proc);
    GC_set_abort_func(end_collector);
    GC_set_markers_count(1); /* a collection is short; helper threads cost more than they give */
    check_first_room();
    GC_INIT();
    /* Collect when the heap has doubled, not at a third more: `1 + 1 + …` of 1 MB takes 2.0 s so, 3.0 s
     * else, most of it marking. */
    GC_set_free_space_divisor(1);
    /* A younger heap is not worth collecting: the digits example takes 260 ms so, 360 ms without. */
    GC_set_min_bytes_allocd(16 << 20);
    GC_register_has_static_roots_callback(has_static_roots);
    old_push_other_roots = GC_get_push_other_roots();
    GC_set_push_other_roots(push_other_roots);
    GC_set_oom_fn(out_of_memory);
    cell_kind = (int)GC_new_kind(GC_new_free_list(), GC_DS_LENGTH, 1, 1);
}

/* --enable-gc-stress: collect at every RLY_GC_STRESS'th allocation, more rarely as the heap grows, so
 * that a run takes a multiple of its time and not the square, and more rarely as the run goes on: what
 * a loop does has been collected in the midst of after its first rounds. */
static inline void stress(void) {
#ifdef RLY_GC_STRESS
    enum { OFTEN = 64 }; /* collections */
    static size_t count, collections;
    if (++count >= RLY_GC_STRESS &&
        count / (1 + collections / OFTEN) >= GC_get_heap_size() / 4096) {
        count = 0;
        collections++;
        GC_gcollect();
    }
#endif
}

/* See Note [Lists of free memory]. */
void *mem_alloc(size_t bytes) {
    stress();
#ifndef RLY_GC_STRESS
    size_t granules = bytes / GC_GRANULE_BYTES + 1;
    if (granules < LISTS) {
        void **p = lists[granules];
        if (!p)
            GC_generic_malloc_many(granules * GC_GRANULE_BYTES, GC_I_NORMAL, (void **)&p);
        if (p) {
            lists[granules] = *p;
            *p = NULL;
            return p;
        }
    }
#endif
    return GC_MALLOC(bytes ? bytes : 1);
}

void *mem_cells(size_t bytes) {
#ifdef RLY_GC_STRESS
    return mem_alloc(bytes); /* its first word is NULL */
#else
    void *cells = NULL;
    GC_generic_malloc_many((bytes + GC_GRANULE_BYTES - 1) / GC_GRANULE_BYTES * GC_GRANULE_BYTES,
                           cell_kind, &cells);
    return cells ? cells : GC_MALLOC(bytes); /* which says that memory is exhausted */
#endif
}

void *mem_bytes(size_t bytes) {
    stress();
    return GC_MALLOC_ATOMIC(bytes ? bytes : 1);
}

void *mem_realloc(void *p, size_t bytes) {
    stress();
    return GC_REALLOC(p, bytes ? bytes : 1);
}

void mem_free(void *p) { GC_FREE(p); }

char *mem_strndup(const char *s, size_t n) {
    char *copy = mem_bytes(n + 1);
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *mem_strdup(const char *s) { return mem_strndup(s, strlen(s)); }

static Pin **pin_find(void *p) {
    Pin **at = &pins[((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 54];
    while (*at && (*at)->p != p)
        at = &(*at)->next;
    return at;
}

void mem_pin(void *p) {
    Pin **at = pin_find(p);
    if (!*at) {
        *at = mem_new(Pin);
        (*at)->p = p;
    }
    (*at)->count++;
}

void mem_unpin(void *p) {
    Pin **at = pin_find(p);
    if (*at && --(*at)->count == 0)
        *at = (*at)->next;
}

void mem_on_unreachable(void *p, void (*fn)(void *p, void *arg), void *arg) {
    GC_register_finalizer_no_order(p, fn, arg, NULL, NULL);
}

void **mem_watch(void *p) {
    void **link = mem_bytes(sizeof *link);
    *link = p;
    GC_disable(); /* before a full table of links grows the heap would be collected, at every 4096th link */
    int result = GC_general_register_disappearing_link(link, p);
    GC_enable();
    if (result == GC_NO_MEMORY)
        mem_out_of_memory(sizeof *link);
    return link;
}

void **mem_watch_holder(const void *p) {
    void *holder = GC_base((void *)(uintptr_t)p);
    return holder ? mem_watch(holder) : NULL;
}

void mem_run_finalizers(void) {
    if (GC_should_invoke_finalizers())
        GC_invoke_finalizers();
}

void mem_collect(void) {
    GC_gcollect();
    if (heap_limit)
        GC_set_max_heap_size(heap_limit);
}

void mem_add_roots_callback(MemRootsFn fn, void *ctx) {
    if (nroots_callbacks == roots_callbacks_cap) {
        roots_callbacks_cap = roots_callbacks_cap * 2 + 8;
        roots_callbacks = mem_realloc(roots_callbacks, sizeof(RootsCallback) * roots_callbacks_cap);
    }
    roots_callbacks[nroots_callbacks++] = (RootsCallback){fn, ctx};
}

void mem_remove_roots_callback(MemRootsFn fn, void *ctx) {
    for (size_t i = 0; i < nroots_callbacks; i++)
        if (roots_callbacks[i].fn == fn && roots_callbacks[i].ctx == ctx) {
            roots_callbacks[i] = roots_callbacks[--nroots_callbacks];
            return;
        }
}

void mem_push_range(void *begin, void *end) {
    if (begin < end)
        GC_push_all(begin, end);
}

/* ---- other stacks: see Note [Stacks] --------------------------------------------------------- */

typedef struct StackCall {
    void (*fn)(void *arg);
    void *arg;
    char *low; /* of the new stack */
    size_t bytes;
#ifdef RLY_ASAN
    const void *old_low;
    size_t old_bytes;
#endif
} StackCall;

static void run_stack_call(StackCall *call) {
#ifdef RLY_ASAN
    __sanitizer_finish_switch_fiber(NULL, &call->old_low, &call->old_bytes);
#endif
    call->fn(call->arg);
#ifdef RLY_ASAN
    __sanitizer_start_switch_fiber(NULL, call->old_low, call->old_bytes);
#endif
}

#if defined(__x86_64__)
static void switch_and_run(StackCall *call, char *top) {
    void *arg = call;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "callq *%[fn]\n\t"
                     "movq %%rbx, %%rsp"
                     : "+D"(arg)
                     : [top] "r"(top), [fn] "r"(run_stack_call)
                     : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
                       "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}
#elif defined(__aarch64__)
static void switch_and_run(StackCall *call, char *top) {
    register void *x0 __asm__("x0") = call;
    register void *x9 __asm__("x9") = (void *)top;
    register void (*x10)(StackCall *) __asm__("x10") = run_stack_call;
    __asm__ volatile("mov x19, sp\n\tmov sp, x9\n\tblr x10\n\tmov sp, x19"
                     : "+r"(x0), "+r"(x9), "+r"(x10)
                     :
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
                       "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
                       "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}
#else
#include <ucontext.h>
static void ucontext_entry(unsigned hi, unsigned lo) {
    run_stack_call((StackCall *)(((uintptr_t)hi << 16 << 16) | lo));
}
static void switch_and_run(StackCall *call, char *top) {
    (void)top;
    ucontext_t here, there;
    getcontext(&there);
    there.uc_stack.ss_sp = call->low;
    there.uc_stack.ss_size = call->bytes;
    there.uc_link = &here;
    makecontext(&there, (void (*)(void))ucontext_entry, 2, (unsigned)((uintptr_t)call >> 16 >> 16),
                (unsigned)(uintptr_t)call);
    swapcontext(&here, &there);
}
#endif

/* Below everything in the caller's frame. */
static __attribute__((noinline)) char *stack_position(void) {
    char *p = __builtin_frame_address(0);
    __asm__ volatile("" : "+r"(p));
    return p;
}

static void *set_bottom(void *sb) {
    GC_set_stackbottom(NULL, sb);
    return NULL;
}

static void find_stack(void) {
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0, guard = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_getguardsize(&attr, &guard);
        pthread_attr_destroy(&attr);
        stack_low = (char *)low + guard;
    } else {
        stack_low = stack_position() - (1 << 20);
    }
}

size_t mem_stack_share(size_t bytes) {
    if (!stack_most) {
        const char *name, *option;
        size_t bytes_mapped = mapping_limit(&name, &option);
        stack_most = bytes_mapped ? bytes_mapped / 8 : SIZE_MAX;
    }
    return bytes < stack_most ? bytes : stack_most;
}

void mem_call_on_stack(size_t bytes, void (*fn)(void *arg), void *arg) {
    mem_init();
    if (!stack_low)
        find_stack();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bytes = (mem_stack_share(bytes) + page - 1) / page * page;
    char *base;
    while ((base = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED) {
        if (bytes < 1 << 20)
            out_of_memory(bytes);
        bytes = bytes / 2 / page * page; /* who runs there asks mem_stack_left */
    }
    mprotect(base, page, PROT_NONE);

    struct GC_stack_base old, new;
    memset(&old, 0, sizeof old);
    memset(&new, 0, sizeof new);
    GC_get_my_stackbottom(&old);
    StackCall call = {.fn = fn, .arg = arg, .low = base + page, .bytes = bytes};
    char *top = call.low + bytes;
    char *saved_low = stack_low;
    Suspended here = {stack_position(), old.mem_base, suspended};
    new.mem_base = top;
    suspended = &here;
    stack_low = call.low;
    GC_call_with_alloc_lock(set_bottom, &new);
#ifdef RLY_ASAN
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, call.low, bytes);
#endif
    switch_and_run(&call, top);
#ifdef RLY_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
    GC_call_with_alloc_lock(set_bottom, &old);
    stack_low = saved_low;
    suspended = here.next;
    munmap(base, bytes + page);
}

size_t mem_stack_left(void) {
    if (!stack_low)
        find_stack();
    char *here = __builtin_frame_address(0);
    return here > stack_low ? (size_t)(here - stack_low) : 0;
}

/* ---- limits ---------------------------------------------------------------------------------- */

size_t mem_heap_bytes(void) { return GC_get_heap_size() - GC_get_free_bytes(); }
size_t mem_asked_bytes(void) { return GC_get_total_bytes(); }

static size_t read_limit(const char *path) {
    FILE *f = fopen(path, "r");
    unsigned long long value = 0;
    if (!f)
        return 0;
    if (fscanf(f, "%llu", &value) != 1)
        value = 0;
    fclose(f);
    return (size_t)value;
}

/* The smallest limit on the way from this process's control group to the root; 0: none. */
static size_t control_group_limit(void) {
    size_t limit = read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes"); /* version 1 */
    FILE *f = fopen("/proc/self/cgroup", "r");
    if (!f)
        return limit;
    char line[1024], path[1200];
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        char *dir = line + 3;
        dir[strcspn(dir, "\n")] = '\0';
        for (;;) {
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", dir);
            size_t here = read_limit(path);
            if (here && (!limit || here < limit))
                limit = here;
            char *slash = strrchr(dir, '/');
            if (!slash || dir[0] == '\0')
                break;
            *slash = '\0';
        }
    }
    fclose(f);
    return limit;
}

size_t mem_default_limit(void) {
    size_t ram = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    size_t group = control_group_limit();
    if (group && group < ram)
        ram = group;
    return ram / 10 * 7;
}

void mem_set_heap_limit(size_t bytes) {
    heap_limit = bytes;
    GC_set_max_heap_size(bytes);
}

void mem_set_oom_handler(void (*fn)(size_t wanted)) { oom_handler = fn; }

_Noreturn void mem_out_of_memory(size_t wanted) {
    out_of_memory(wanted);
    abort();
}
