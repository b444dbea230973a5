/* SPDX-License-Identifier: Apache-2.0 */
/* Memory. The only room that includes <gc.h>.
 *
 * Under a collector the question is not who frees but who can see the pointer:
 *
 *   mem_new(T), mem_new_n(T, n)   collected, zeroed and scanned for pointers
 *   mem_bytes(n)                  collected, NOT scanned: text and numbers only
 *   mem_pin(p) / mem_unpin(p)     keeps p alive while only malloc'd memory, LLVM or code pages
 *                                 refer to it; pins nest
 *
 * None of the allocators returns NULL: exhaustion calls the handler set by mem_set_oom_handler,
 * which must not return (the evaluator unwinds to the session; without a handler: exit status 1
 * with a message). Tensor elements do not live here but in tensor/buffer.h. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Call first in main. Sets up the collector: interior pointers on, finalizers on demand. */
void mem_init(void);

void *mem_alloc(size_t bytes); /* scanned, zeroed */
void *mem_bytes(size_t bytes); /* not scanned, not zeroed */
void *mem_realloc(void *p, size_t bytes);
/* Gives back at once what an allocator returned and nobody else sees; NULL is nothing. */
void mem_free(void *p);
/* Several scanned cells of `bytes` each, one at least: a list linked through their first words, zeroed behind
 * them. For who makes very many of one size and keeps the list where the collector sees it. */
void *mem_cells(size_t bytes);

/* One scanned, zeroed cell, of a list for that size alone that the collector sees. Nothing may be kept by a pointer to
 * the end of a cell. */
static inline void *mem_cell(void **list, size_t bytes) {
    void **cell = *list ? *list : mem_cells(bytes);
    *list = *cell;
    *cell = NULL;
    return cell;
}

#define mem_new(T) ((T *)mem_alloc(sizeof(T)))
#define mem_new_n(T, n) ((T *)mem_alloc(sizeof(T) * (size_t)(n)))

char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);

void mem_pin(void *p);
void mem_unpin(void *p);

/* Calls fn(p, arg) some time after p became unreachable, from mem_run_finalizers only. */
void mem_on_unreachable(void *p, void (*fn)(void *p, void *arg), void *arg);
void mem_run_finalizers(void);
/* A place that holds p and does not keep it alive: NULL stands there once p was collected. p is what an
 * allocator returned. */
void **mem_watch(void *p);
/* The same of the object that p points into. NULL where that is none of the collector's, or p is NULL. */
void **mem_watch_holder(const void *p);
void mem_collect(void);

/* Extra root ranges, pushed at each collection (the evaluator's stack): the callback calls
 * mem_push_range for each live range, from within the collector, and must not allocate. */
typedef void (*MemRootsFn)(void *ctx);
void mem_add_roots_callback(MemRootsFn fn, void *ctx);
void mem_remove_roots_callback(MemRootsFn fn, void *ctx);
void mem_push_range(void *begin, void *end);

/* Runs fn(arg) on a large stack of its own (an mmap'd NORESERVE region of `bytes`), announced to
 * the collector: for the front end, which recurses over nesting. It is smaller where the address
 * space is limited: whoever recurses asks mem_stack_left. */
void mem_call_on_stack(size_t bytes, void (*fn)(void *arg), void *arg);
/* What of `bytes` mem_call_on_stack gives: all of it, or of a limited address space (`ulimit -v`) so
 * much that most is left to the heap. */
size_t mem_stack_share(size_t bytes);
/* How many bytes of C stack are left below the current frame, on whichever stack this is. */
size_t mem_stack_left(void);

size_t mem_heap_bytes(void);    /* the collector's heap in use */
size_t mem_asked_bytes(void);   /* what was asked of the collector since the program began */
size_t mem_default_limit(void); /* 0.7 of RAM or of the control group's limit, the smaller */
void mem_set_heap_limit(size_t bytes);
void mem_set_oom_handler(void (*fn)(size_t wanted));
/* Calls the handler: for who allocates by other means and has nothing to undo. wanted 0: unknown. */
_Noreturn void mem_out_of_memory(size_t wanted);
/* Ends the program with status 1 where nothing can be resumed; who: had no memory. */
_Noreturn void mem_exit(const char *who);
/* Says which limit of the process is the smallest, "the address space is limited to 600 MB (`ulimit
 * -v`)", in `words`; it needs no memory. False: there is none. */
enum { MEM_LIMIT_WORDS = 96 };
bool mem_limit_words(char words[MEM_LIMIT_WORDS]);

#endif
