/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that spin a little for the next job and then sleep. They run with all signals
 * blocked (Ctrl-C belongs to the main thread) and are unknown to the collector: what they work on is
 * kept alive by the caller, who waits.
 *
 * Note [Pieces are claimed]. A job is n pieces, and whoever is free claims the next one, the caller
 * too. So a worker that the system has not let run yet costs nothing: the caller does its piece. The
 * ticket holds a job's number, its pieces and the next of them in one word, so that a worker which
 * wakes late cannot claim a piece of a job that is over.
 *
 * Note [Backing off]. Where other processes use the cores, a worker is put off in the middle of its
 * piece and the caller waits for it, for milliseconds. A job in which that wait was longer than the
 * caller's own work, or MISSES jobs in a row in which no worker came, is a sign of it: jobs are then the caller's
 * alone, and the workers sleep, until it has worked alone for `times` that wait. So waiting takes a small part of the time,
 * however short jobs are. Each sign doubles `times` and each job that went well takes a quarter of it.
 *
 * Note [Asking who runs]. One worker that wakes among such processes already costs the caller: the system then counts one
 * thread more and gives the caller a core together with another process, for tens of milliseconds. So before workers are
 * made, and each time that the caller has gone on alone, the system is asked how many threads run; where others
 * have all cores, that is a sign, too. */
#include "jit/internal.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 4000, MISSES = 4, TIMES_LEAST = 16, TIMES_MOST = 128, YIELD_AFTER = 256 };
static const int64_t WAIT_NS = 50000; /* shorter waits are no sign of a busy machine */

typedef struct Worker {
    JitPool *pool;
    pthread_t thread;
} Worker;

struct JitPool {
    int threads; /* the caller included; before `started` those that are wanted */
    bool started;
    Worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_int sleepers;
    atomic_uint_least64_t ticket; /* job << 32 | pieces << 16 | next piece */
    atomic_int done;              /* pieces of this job */
    atomic_int helped;            /* those among them that workers did */
    atomic_bool ending, backs_off;
    void (*fn)(void *arg, int i);
    void *arg;
    /* The caller's: Note [Backing off]. */
    int times, misses;
    int64_t alone; /* ns of work that are left */
    bool asks;     /* who runs, before the next job: Note [Asking who runs] */
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline bool has_piece(uint64_t ticket) {
    return (ticket & 0xffff) < (ticket >> 16 & 0xffff);
}

/* Claims the next piece of the job there is; -1 when all are claimed. */
static int claim(JitPool *p) {
    uint64_t ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    while (has_piece(ticket))
        if (atomic_compare_exchange_weak_explicit(&p->ticket, &ticket, ticket + 1,
                                                  memory_order_acq_rel, memory_order_acquire))
            return (int)(ticket & 0xffff);
    return -1;
}

static void sleep_until_work(JitPool *p) {
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (!has_piece(atomic_load(&p->ticket)) && !atomic_load(&p->ending))
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg) {
    JitPool *p = ((Worker *)arg)->pool;
    for (;;) {
        for (int spins = 0; spins < SPINS; spins++) {
            if (has_piece(atomic_load_explicit(&p->ticket, memory_order_acquire)) ||
                atomic_load_explicit(&p->backs_off, memory_order_relaxed))
                break;
            relax();
        }
        int i = claim(p);
        if (i < 0) {
            sleep_until_work(p);
            if (atomic_load(&p->ending))
                return NULL;
            continue;
        }
        p->fn(p->arg, i);
        atomic_fetch_add_explicit(&p->helped, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&p->done, 1, memory_order_release);
    }
}

JitPool *jit_pool_new(int threads) {
    JitPool *p = calloc(1, sizeof *p);
    Worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!p || !workers) {
        free(p);
        free(workers);
        return NULL;
    }
    p->workers = workers;
    p->threads = threads;
    p->times = TIMES_LEAST;
    p->asks = true;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    return p;
}

static void start_workers(JitPool *p) {
    int threads = p->threads;
    p->started = true;
    p->threads = 1;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (int i = 1; i < threads; i++) {
        p->workers[i] = (Worker){.pool = p};
        if (pthread_create(&p->workers[i].thread, NULL, work, &p->workers[i]) != 0)
            break;
        p->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void wake_workers(JitPool *p) {
    if (!atomic_load(&p->sleepers))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/* The threads that run or wait for a core, this one included; 0 where the system does not say. */
static int count_running(void) {
    char text[128];
    int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC); /* three averages, then running/all */
    ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[n > 0 ? n : 0] = '\0';
    const char *at = text;
    for (int i = 0; i < 3 && at; i++)
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    return at ? atoi(at) : 0;
}

/* See Note [Asking who runs]. The workers sleep. */
static bool is_crowded(void) {
    int others = count_running() - 1;
    return others >= sysconf(_SC_NPROCESSORS_ONLN);
}

static void back_off(JitPool *p, int64_t lost) {
    p->alone = lost * p->times;
    p->times = p->times * 2 > TIMES_MOST ? TIMES_MOST : p->times * 2;
    p->misses = 0;
    p->asks = true;
}

/* What a job says of the machine: `own` the caller's work, `waited` its wait after that, in ns. */
static void learn(JitPool *p, int64_t own, int64_t waited) {
    bool came = atomic_load_explicit(&p->helped, memory_order_relaxed) > 0;
    p->misses = came ? 0 : p->misses + 1;
    if (waited > WAIT_NS && waited > own)
        back_off(p, waited);
    else if (p->misses == MISSES)
        back_off(p, WAIT_NS);
    else if (came)
        p->times = p->times * 3 / 4 < TIMES_LEAST ? TIMES_LEAST : p->times * 3 / 4;
    atomic_store_explicit(&p->backs_off, p->alone > 0, memory_order_relaxed);
}

/* Whether the workers are to help. */
static bool is_shared(JitPool *p) {
    if (p->alone > 0)
        return false;
    if (p->asks) {
        p->asks = false;
        if (is_crowded())
            back_off(p, WAIT_NS);
        else if (!p->started)
            start_workers(p);
    }
    return p->alone <= 0 && p->threads > 1;
}

void jit_pool_run(JitPool *p, int n, void (*fn)(void *arg, int i), void *arg) {
    if (!p || n < 2 || !is_shared(p)) {
        int64_t begin = p && n > 1 ? now_ns() : 0;
        for (int i = 0; i < n; i++)
            fn(arg, i);
        if (p && n > 1)
            p->alone -= now_ns() - begin;
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->done, 0, memory_order_relaxed);
    atomic_store_explicit(&p->helped, 0, memory_order_relaxed);
    atomic_store_explicit(&p->backs_off, false, memory_order_relaxed);
    uint64_t job = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    int64_t begin = now_ns();
    atomic_store(&p->ticket, job << 32 | (uint64_t)n << 16);
    wake_workers(p);
    int own = 0;
    for (int i; (i = claim(p)) >= 0; own++)
        fn(arg, i);
    int64_t finished = now_ns();
    for (int spins = 0; atomic_load_explicit(&p->done, memory_order_acquire) + own < n; spins++) {
        relax();
        if (spins > YIELD_AFTER)
            sched_yield(); /* the worker may wait for this core */
    }
    learn(p, finished - begin, now_ns() - finished);
}

bool jit_pool_is_alone(const JitPool *p) { return p->alone > 0; }

void jit_pool_free(JitPool *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->ending, true);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads && p->started; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->workers);
    free(p);
}
