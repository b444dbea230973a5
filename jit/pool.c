/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that spin a little for the next piece of work and then sleep. They run with all
 * signals blocked (Ctrl-C belongs to the main thread) and are unknown to the collector: what they
 * work on is kept alive by the caller, who waits. */
#include "jit/internal.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SPINS = 4000 };

typedef struct Worker {
    JitPool *pool;
    int number;
    pthread_t thread;
} Worker;

struct JitPool {
    int threads; /* the caller included */
    Worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint generation;
    atomic_int pending;
    atomic_bool ending;
    int n;
    void (*fn)(void *arg, int i);
    void *arg;
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void *work(void *arg) {
    Worker *w = arg;
    JitPool *p = w->pool;
    unsigned seen = 0;
    for (;;) {
        int spins = 0;
        while (atomic_load_explicit(&p->generation, memory_order_acquire) == seen &&
               ++spins < SPINS)
            relax();
        if (atomic_load(&p->generation) == seen) {
            pthread_mutex_lock(&p->lock);
            while (atomic_load(&p->generation) == seen)
                pthread_cond_wait(&p->wake, &p->lock);
            pthread_mutex_unlock(&p->lock);
        }
        seen = atomic_load(&p->generation);
        if (atomic_load(&p->ending))
            return NULL;
        if (w->number < p->n)
            p->fn(p->arg, w->number);
        atomic_fetch_sub_explicit(&p->pending, 1, memory_order_release);
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
    p->threads = 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    for (int i = 1; i < threads; i++) {
        workers[i] = (Worker){.pool = p, .number = i};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            break;
        p->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return p;
}

static void announce(JitPool *p) {
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void jit_pool_run(JitPool *p, int n, void (*fn)(void *arg, int i), void *arg) {
    int here = p ? p->threads : 1;
    if (n > 1 && here > 1) {
        p->fn = fn;
        p->arg = arg;
        p->n = n < here ? n : here;
        atomic_store(&p->pending, p->threads - 1);
        announce(p);
    } else {
        here = 1;
    }
    fn(arg, 0);
    for (int i = here; i < n; i++)
        fn(arg, i);
    if (here > 1)
        while (atomic_load_explicit(&p->pending, memory_order_acquire) > 0)
            relax();
}

void jit_pool_free(JitPool *p) {
    if (!p)
        return;
    atomic_store(&p->ending, true);
    announce(p);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->workers[i].thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->wake);
    free(p->workers);
    free(p);
}
