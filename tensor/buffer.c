/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of tensor elements.
 *
 * Note [Where elements live]. Up to SMALL bytes they are an unscanned block of the collector: at
 * that size it costs tens of nanoseconds, and such a buffer needs no finalizer. Larger ones come
 * from outside: blocks of a size class, cut from chunks up to BLOCK_MAX and mapped one by one
 * above; what is given back waits in a list a class. The collector does not see outside bytes, so
 * a collection is forced when those allocated since the last one exceed max(64 MB, what survived
 * it): the cost of collections then stays in proportion to the work.
 *
 * A Buffer released at once (tensor_release) keeps its block, its finalizer and itself for the next
 * of its class; one found unreachable gives only its block back.
 *
 * Size classes: four a doubling, from 64 bytes. The lists hold at most max(256 MB, live bytes) / 2;
 * beyond it mapped blocks are unmapped. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tensor/buffer.h"

#include "base/mem.h"

#include <sys/mman.h>

enum { SMALL = 1024, BLOCK_MAX = 64 << 10, CHUNK = 1 << 20, NCLASSES = 192, COLLECTED = NCLASSES };
static const size_t COLLECT_AFTER = 64u << 20, KEEP = 256u << 20;

typedef struct Block {
    struct Block *next;
} Block;

typedef struct PooledBuffer {
    Buffer base;
    struct PooledBuffer *next;
} PooledBuffer;

typedef struct Pool {
    Block *blocks[NCLASSES];
    PooledBuffer *buffers[NCLASSES]; /* a root: this is static data */
    char *chunk, *chunk_end;
    size_t live, idle, limit;
    size_t since_collection, survived; /* allocated since the last, and live after it */
} Pool;

static Pool pool;

static uint32_t class_of(size_t bytes) {
    size_t units = (bytes + 63) / 64;
    if (units <= 4)
        return (uint32_t)(units ? units - 1 : 0);
    unsigned log = 63 - (unsigned)__builtin_clzll(units - 1); /* 2^log <= units - 1 */
    return (log - 1) * 4 + (uint32_t)((units - 1) >> (log - 2) & 3);
}

static size_t class_bytes(uint32_t c) {
    if (c < 4)
        return (size_t)(c + 1) * 64;
    return (size_t)((c & 3) + 5) << (c / 4 - 1) << 6;
}

static void *map_pages(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void idle_push(uint32_t c, void *data) {
    Block *b = data;
    b->next = pool.blocks[c];
    pool.blocks[c] = b;
}

static void *block_new(uint32_t c) {
    size_t bytes = class_bytes(c);
    Block *b = pool.blocks[c];
    if (b) {
        pool.blocks[c] = b->next;
        pool.idle -= bytes;
        return b;
    }
    if (bytes > BLOCK_MAX)
        return map_pages(bytes);
    if ((size_t)(pool.chunk_end - pool.chunk) < bytes) {
        char *chunk = map_pages(CHUNK); /* the rest of the old one stays unused */
        if (!chunk)
            return NULL;
        pool.chunk = chunk;
        pool.chunk_end = chunk + CHUNK;
    }
    void *p = pool.chunk;
    pool.chunk += bytes;
    return p;
}

static void block_release(uint32_t c, void *data) {
    size_t bytes = class_bytes(c);
    pool.live -= bytes;
    size_t keep = (pool.live > KEEP ? pool.live : KEEP) / 2;
    if (bytes > BLOCK_MAX && pool.idle + bytes > keep) {
        munmap(data, bytes);
        return;
    }
    pool.idle += bytes;
    idle_push(c, data);
}

/* Unmaps what waits in the lists. */
static void trim(void) {
    for (uint32_t c = class_of(BLOCK_MAX) + 1; c < NCLASSES; c++) {
        size_t bytes = class_bytes(c);
        for (PooledBuffer *b = pool.buffers[c]; b; b = b->next) {
            munmap(b->base.data, bytes);
            b->base.data = NULL;
            pool.idle -= bytes;
        }
        pool.buffers[c] = NULL;
        while (pool.blocks[c]) {
            Block *b = pool.blocks[c];
            pool.blocks[c] = b->next;
            munmap(b, bytes);
            pool.idle -= bytes;
        }
    }
}

static void unreachable(void *p, void *arg) {
    (void)arg;
    Buffer *b = p;
    if (b->data) {
        void *data = b->data;
        b->data = NULL;
        block_release(b->size_class, data);
    }
}

static void collect(void) {
    mem_collect();
    mem_run_finalizers();
    pool.since_collection = 0;
    pool.survived = pool.live;
}

static bool exceeds(size_t bytes) {
    return pool.limit && mem_heap_bytes() + pool.live + pool.idle + bytes > pool.limit;
}

static void make_room(size_t bytes) {
    mem_run_finalizers();
    pool.since_collection += bytes;
    if (pool.since_collection > (pool.survived > COLLECT_AFTER ? pool.survived : COLLECT_AFTER))
        collect();
    if (!exceeds(bytes))
        return;
    trim();
    if (!exceeds(bytes))
        return;
    collect();
    trim();
    if (exceeds(bytes))
        mem_out_of_memory(bytes);
}

Buffer *buffer_new(size_t bytes) {
    if (bytes <= SMALL) {
        Buffer *b = mem_new(Buffer);
        char *p = mem_bytes(bytes + 64); /* one past the end must not be another block's start */
        b->data = p + (-(uintptr_t)p & 63);
        b->bytes = bytes;
        b->owners = 1;
        b->size_class = COLLECTED;
        return b;
    }
    uint32_t c = class_of(bytes);
    size_t taken = class_bytes(c);
    if (c >= NCLASSES)
        mem_out_of_memory(bytes);
    PooledBuffer *b = pool.buffers[c];
    if (b) {
        pool.buffers[c] = b->next;
        b->next = NULL;
        pool.idle -= taken;
    } else {
        make_room(taken);
        b = (PooledBuffer *)mem_new(PooledBuffer);
        void *data = block_new(c);
        if (!data) {
            collect();
            trim();
            data = block_new(c);
            if (!data)
                mem_out_of_memory(bytes);
        }
        b->base.data = data;
        b->base.size_class = c;
        mem_on_unreachable(b, unreachable, NULL);
    }
    pool.live += taken;
    b->base.bytes = bytes;
    b->base.owners = 1;
    return &b->base;
}

void buffer_release(Buffer *b) {
    if (b->size_class == COLLECTED)
        return;
    PooledBuffer *p = (PooledBuffer *)b;
    size_t bytes = class_bytes(b->size_class);
    if (pool.idle + bytes > KEEP / 2) { /* its finalizer finds nothing left to do */
        void *data = b->data;
        b->data = NULL;
        block_release(b->size_class, data);
        return;
    }
    pool.live -= bytes;
    pool.idle += bytes;
    p->next = pool.buffers[b->size_class];
    pool.buffers[b->size_class] = p;
}

size_t tensor_bytes_live(void) { return pool.live; }
void tensor_set_limit(size_t bytes_with_heap) { pool.limit = bytes_with_heap; }
