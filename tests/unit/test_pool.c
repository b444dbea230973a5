/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of threads that kernels run in: each piece of a job is done, and done once. */
#include "jit/internal.h"
#include "tests/unit/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Pieces {
    pthread_t caller;
    bool slow; /* whoever is not the caller is put off in its piece */
    int times[64];
} Pieces;

static void count_piece(void *arg, int i) {
    Pieces *p = arg;
    if (p->slow && !pthread_equal(pthread_self(), p->caller))
        usleep(2000);
    p->times[i]++; /* one thread has this piece */
}

TEST(each_piece_is_done_once) {
    JitPool *pool = jit_pool_new(4);
    Pieces p = {.caller = pthread_self()};
    int wanted[64] = {0};
    for (int job = 0; job < 3000; job++) {
        int n = job % 64 + 1;
        jit_pool_run(pool, n, count_piece, &p);
        for (int i = 0; i < n; i++)
            wanted[i]++;
    }
    for (int i = 0; i < 64; i++)
        CHECK_INT(p.times[i], wanted[i]);
    jit_pool_free(pool);
}

/* jit/pool.c, Note [Backing off]: whether workers are slow or never come, the caller goes on alone. */
TEST(the_pool_backs_off) {
    JitPool *pool = jit_pool_new(2);
    Pieces p = {.caller = pthread_self(), .slow = true};
    int jobs = 0;
    while (!jit_pool_is_alone(pool) && jobs < 100) {
        jit_pool_run(pool, 2, count_piece, &p);
        jobs++;
    }
    CHECK(jobs < 100);
    int before = p.times[1];
    jit_pool_run(pool, 2, count_piece, &p);
    CHECK_INT(p.times[1], before + 1);
    jit_pool_free(pool);
}

/* jit/pool.c, Note [Asking who runs]: where other processes have all cores no worker is made. */
TEST(no_worker_beside_busy_processes) {
    enum { MOST = 64 };
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > MOST || access("/proc/loadavg", R_OK) != 0)
        return;
    pid_t busy[MOST];
    for (long i = 0; i < n; i++) {
        busy[i] = fork();
        if (busy[i] == 0) {
            alarm(60);
            for (;;)
                atomic_signal_fence(memory_order_seq_cst);
        }
    }
    JitPool *pool = jit_pool_new(2);
    Pieces p = {.caller = pthread_self(), .slow = true};
    jit_pool_run(pool, 2, count_piece, &p);
    CHECK(jit_pool_is_alone(pool));
    CHECK_INT(p.times[0] + p.times[1], 2);
    for (long i = 0; i < n; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    jit_pool_free(pool);
}

int main(void) {
    RUN(each_piece_is_done_once);
    RUN(the_pool_backs_off);
    RUN(no_worker_beside_busy_processes);
    return check_result();
}
