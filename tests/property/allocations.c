/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one allocation fail, or all from one on. Loaded before the program by allocations.py (LD_PRELOAD):
 *
 *   RLY_FAIL=malloc|mmap|gc   which allocations count; counting begins at GC_init, so in main
 *   RLY_FAIL_AT=N             the Nth of them fails (0: none)
 *   RLY_FAIL_ON=1             and all after it
 *   RLY_FAIL_COUNT=FILE       at the end their number is written there
 *
 * A failure of the collector is what the collector does when it has no memory: it calls its handler
 * for that and returns what the handler returns. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

typedef enum Kind { KIND_NONE, KIND_MALLOC, KIND_MMAP, KIND_GC } Kind;

static struct {
    Kind kind;
    long at;
    bool on;
    atomic_long count;
} plan;

static bool fails(Kind kind) {
    if (plan.kind != kind)
        return false;
    long n = atomic_fetch_add(&plan.count, 1) + 1;
    if (!plan.at || (plan.on ? n < plan.at : n != plan.at))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n) { return fails(KIND_MALLOC) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails(KIND_MALLOC) ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails(KIND_MALLOC) ? NULL : __libc_realloc(p, n); }
void *memalign(size_t align, size_t n) {
    return fails(KIND_MALLOC) ? NULL : __libc_memalign(align, n);
}
void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void **out, size_t align, size_t n) {
    void *p = memalign(align, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    if (fails(KIND_MMAP))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    return mmap(at, n, protection, flags, fd, offset);
}

/* ---- the collector --------------------------------------------------------------------------- */

typedef void *(*OomFn)(size_t n);

static void *find_next(const char *name) {
    void *fn = dlsym(RTLD_NEXT, name);
    if (!fn)
        _exit(99);
    return fn;
}

static void *exhausted(size_t n) {
    static OomFn (*get_handler)(void);
    if (!get_handler)
        *(void **)&get_handler = find_next("GC_get_oom_fn");
    return get_handler()(n);
}

void *GC_malloc(size_t n) {
    static void *(*next)(size_t);
    if (!next)
        *(void **)&next = find_next("GC_malloc");
    return fails(KIND_GC) ? exhausted(n) : next(n);
}

void *GC_malloc_atomic(size_t n) {
    static void *(*next)(size_t);
    if (!next)
        *(void **)&next = find_next("GC_malloc_atomic");
    return fails(KIND_GC) ? exhausted(n) : next(n);
}

void *GC_realloc(void *p, size_t n) {
    static void *(*next)(void *, size_t);
    if (!next)
        *(void **)&next = find_next("GC_realloc");
    return fails(KIND_GC) ? exhausted(n) : next(p, n);
}

void GC_init(void) {
    static bool begun;
    void (*next)(void);
    *(void **)&next = find_next("GC_init");
    if (!begun) {
        static const char *const names[] = {"none", "malloc", "mmap", "gc"};
        const char *kind = getenv("RLY_FAIL"), *at = getenv("RLY_FAIL_AT");
        begun = true;
        plan.at = at ? atol(at) : 0;
        plan.on = getenv("RLY_FAIL_ON") != NULL;
        for (int i = 0; i < 4; i++)
            if (kind && strcmp(kind, names[i]) == 0)
                plan.kind = (Kind)i;
    }
    next();
}

static __attribute__((destructor)) void write_count(void) {
    const char *path = getenv("RLY_FAIL_COUNT");
    long n = atomic_load(&plan.count);
    plan.kind = KIND_NONE;
    if (!path)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char text[32];
    ssize_t len = snprintf(text, sizeof text, "%ld\n", n);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        _exit(98);
    close(fd);
}
