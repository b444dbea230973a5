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
 * Size classes: four a doubling, from 64 bytes.
 *
 * Note [Kept up to the high-water mark]. A program that runs in rounds (a training step, a gradient)
 * frees in each what it needs again in the next. Mapping fresh pages costs more than most kernels
 * that fill them, so what is live and what waits in the lists may together reach the mark: of each
 * class the most that was live recently, as a block serves its own class alone, and what is given back early is
 * wanted again in another class first. The lists may always hold IDLE_MIN. Recently means during this period or the one
 * before. A period ends when PERIODS times the mark has been allocated in it, and whatever then
 * exceeds the new mark is unmapped, first the classes that the period did not use.
 *
 * Note [Large pages]. What follows the first chunk is cut from regions that the system is asked to back by pages of 2 MB: blocks of
 * some hundred kilobytes mapped one by one get small ones, and the processor then looks up an address in its tables for
 * every few lines that a kernel reads. A block that is unmapped leaves a hole in its region; addresses do not run out.
 *
 * Note [Spread over the lines of a page]. A cache looks for a line where some low bits of its address say, and has eight or so
 * places there. Blocks at multiples of a page would have their elements of one number at the same places, so that a kernel
 * that goes through twenty tensors at once loses lines before it is done with them. So each block begins at another line.
 *
 * Note [Far from the heap]. A word that could be an address between the collector's lowest and highest block, but is none of its
 * own, may look like a pointer to a block that is made there later, so the collector makes no large block across such an
 * address, as it counts modulo 1 GB. Addresses of elements are such words where both are mapped side by side: beside
 * 1,000 tensors of 800 kB no block of 1 MB was found in a heap that grew to its bound. So elements are mapped where the
 * system puts nothing by itself; where that is not to be had, anywhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tensor/buffer.h"

#include "base/mem.h"
#include "tensor/packed.h"

#include <string.h>
#include <sys/mman.h>

enum {
    SMALL = 1024,
    BLOCK_MAX = 64 << 10,
    CHUNK = 1 << 20,
    OWN_MAPPING = 4 << 20, /* a block as large is mapped by itself */
    REGION = 32 << 20,
    LARGE_PAGE = 2 << 20,
    PAGE = 4 << 10,
    LINE = 64,
    NCLASSES = 192,
    COLLECTED = NCLASSES,
    WATCHED /* collected, and counted while it lives */
};
static const size_t COLLECT_AFTER = 64u << 20, COLLECT_MOST = 192u << 20, HEAPS = 16;
static const size_t IDLE_MIN = 128u << 20, PERIODS = 4;

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
    char *region, *region_end; /* Note [Large pages] */
    uint64_t mapped;           /* where the next block goes: Note [Far from the heap] */
    size_t line;               /* where in its page the last block begins */
    size_t live, idle, limit;
    size_t since_collection, survived; /* allocated since the last, and live after it */
    size_t mark;                       /* the sum of the most bytes live of each class recently */
    struct {
        size_t live, idle;
        size_t peak, last_peak; /* most bytes live in this period and in the one before */
    } of[NCLASSES];
    size_t in_period;    /* bytes allocated in this period */
    bool used[NCLASSES]; /* whether the class was allocated from in this period */
    size_t mappings;     /* blocks and chunks mapped so far */
    size_t held;         /* bytes asked for and not found dead yet */
    bool watches;        /* small ones are counted, too */
    TensorCounts counts;
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

/* What is mapped for a block of a class above BLOCK_MAX. */
static size_t mapped_bytes(uint32_t c) { return class_bytes(c) + PAGE; }

/* Bytes that may wait in the lists: Note [Kept up to the high-water mark]. */
static size_t idle_limit(void) {
    size_t mark = pool.mark;
    mark += mark / 8; /* so that a few small blocks do not push out a large one */
    return mark > pool.live + IDLE_MIN ? mark - pool.live : IDLE_MIN;
}

/* See Note [Far from the heap]. */
static char *map_new(size_t bytes) {
    static const uint64_t BEGIN = UINT64_C(1) << 45, LENGTH = UINT64_C(1) << 44;
    if (pool.mapped + bytes > LENGTH)
        pool.mapped = 0;
    char *p = mmap((void *)(uintptr_t)(BEGIN + pool.mapped), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pool.mapped += (bytes + LARGE_PAGE - 1) & ~(uint64_t)(LARGE_PAGE - 1);
    return p == MAP_FAILED ? NULL : p;
}

/* A region that is not there, or is not backed so, is no failure: Note [Large pages]. */
static char *map_large(size_t bytes) {
    char *p = map_new(bytes);
    if (p)
        madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static char *map_pages(size_t bytes) {
    pool.mappings++;
    if (bytes <= CHUNK && !pool.chunk) /* a program that holds little */
        return map_new(bytes);
    if (bytes >= OWN_MAPPING)
        return map_large(bytes);
    if ((size_t)(pool.region_end - pool.region) < bytes) {
        char *region = map_large(REGION); /* the rest of the old one stays unused */
        if (!region)
            return map_new(bytes);
        pool.region = region;
        pool.region_end = region + REGION;
    }
    char *p = pool.region;
    pool.region += bytes;
    return p;
}

/* A block of a class above BLOCK_MAX, which begins in the first page of what is mapped for it. */
static void *map_block(uint32_t c) {
    enum { STEP = 11 * LINE }; /* comes to each line, and soon to one far away */
    char *p = map_pages(mapped_bytes(c));
    pool.line = (pool.line + STEP) % PAGE;
    return p ? p + pool.line : NULL;
}

static void *mapping_of(void *data) { return (char *)data - (uintptr_t)data % PAGE; }

static void idle_push(uint32_t c, void *data) {
    Block *b = data;
    b->next = pool.blocks[c];
    pool.blocks[c] = b;
}

/* A block of the class leaves the lists. */
static void take_up(uint32_t c) {
    pool.idle -= class_bytes(c);
    pool.of[c].idle -= class_bytes(c);
    pool.counts.recycled += class_bytes(c);
}

static void *block_new(uint32_t c) {
    size_t bytes = class_bytes(c);
    Block *b = pool.blocks[c];
    if (b) {
        pool.blocks[c] = b->next;
        take_up(c);
        return b;
    }
    if (bytes > BLOCK_MAX)
        return map_block(c);
    if (pool.chunk_end - pool.chunk < (ptrdiff_t)bytes) {
        char *chunk = map_pages(CHUNK); /* the rest of the old one stays unused */
        if (!chunk)
            return NULL;
        pool.chunk = chunk;
        pool.chunk_end = chunk + CHUNK;
    }
    void *p = pool.chunk;
    pool.chunk += bytes + (bytes / PAGE | 1) * LINE;
    return p;
}

static size_t most_of(uint32_t c) {
    return pool.of[c].peak > pool.of[c].last_peak ? pool.of[c].peak : pool.of[c].last_peak;
}

/* Bytes of a class that wait for their next use: more of it than was live recently waits for nothing. */
static size_t wanted_of(uint32_t c) {
    return most_of(c) > pool.of[c].live ? most_of(c) - pool.of[c].live : 0;
}

/* What goes first: the classes that this period did not use, then what nobody waits for, then the rest. */
typedef enum Trim { TRIM_UNUSED, TRIM_UNWANTED, TRIM_ANY } Trim;

static size_t kept_of(uint32_t c, Trim trim) {
    return trim == TRIM_UNUSED && pool.used[c] ? SIZE_MAX
           : trim == TRIM_UNWANTED             ? wanted_of(c)
                                               : 0;
}

static void unmap(uint32_t c, void *data) {
    munmap(mapping_of(data), mapped_bytes(c));
    pool.idle -= class_bytes(c);
    pool.of[c].idle -= class_bytes(c);
}

/* Unmaps what waits in the lists of large classes until at most `most` bytes wait. */
static void trim_classes(size_t most, Trim trim) {
    for (uint32_t c = NCLASSES - 1; pool.idle > most && c > class_of(BLOCK_MAX); c--) {
        size_t kept = kept_of(c, trim);
        while (pool.idle > most && pool.of[c].idle > kept && pool.buffers[c]) {
            PooledBuffer *b = pool.buffers[c];
            pool.buffers[c] = b->next;
            unmap(c, b->base.data);
            b->base.data = NULL;
        }
        while (pool.idle > most && pool.of[c].idle > kept && pool.blocks[c]) {
            Block *b = pool.blocks[c];
            pool.blocks[c] = b->next;
            unmap(c, b);
        }
    }
}

static void trim(size_t most) {
    for (Trim first = TRIM_UNUSED; first <= TRIM_ANY && pool.idle > most; first++)
        trim_classes(most, first);
}

/* A block of the class joins the lists. */
static void give_up(uint32_t c) {
    pool.live -= class_bytes(c);
    pool.of[c].live -= class_bytes(c);
    pool.idle += class_bytes(c);
    pool.of[c].idle += class_bytes(c);
}

static void unreachable(void *p, void *arg) {
    (void)arg;
    Buffer *b = p;
    packed_forget(b);
    if (b->data) {
        pool.held -= b->bytes;
        void *data = b->data;
        b->data = NULL;
        give_up(b->size_class);
        idle_push(b->size_class, data);
        trim(idle_limit());
    }
}

static void count_held(size_t bytes) {
    pool.held += bytes;
    if (pool.held > pool.counts.peak)
        pool.counts.peak = pool.held;
}

/* A small buffer that was given back before is counted no more. */
static void small_unreachable(void *p, void *arg) {
    (void)arg;
    Buffer *b = p;
    if (b->size_class == WATCHED)
        pool.held -= b->bytes;
}

static void collect(void) {
    mem_collect();
    mem_run_finalizers();
    pool.since_collection = 0;
    pool.survived = pool.live;
}

/* Whether so many buffers were made since the last collection that another one pays: it marks the whole heap, and
 * finds at best what was made since. */
static bool is_collection_due(void) {
    size_t made = pool.since_collection;
    if (made <= COLLECT_AFTER || made <= pool.survived)
        return false;
    return made > COLLECT_MOST || made > HEAPS * mem_heap_bytes();
}

static bool exceeds(size_t bytes) {
    return pool.limit && mem_heap_bytes() + pool.live + pool.idle + bytes > pool.limit;
}

static void make_room(size_t bytes) {
    mem_run_finalizers();
    pool.since_collection += bytes;
    if (is_collection_due())
        collect();
    if (!exceeds(bytes))
        return;
    trim(0);
    if (packed_drop())
        trim(0);
    if (!exceeds(bytes))
        return;
    collect();
    trim(0);
    if (exceeds(bytes))
        mem_out_of_memory(bytes);
}

bool buffer_has_room(size_t bytes) { return !exceeds(class_bytes(class_of(bytes))); }
size_t buffer_limit(void) { return pool.limit ? pool.limit : (size_t)1 << 30; }

static void begin_period(void) {
    pool.mark = 0;
    for (uint32_t c = 0; c < NCLASSES; c++) {
        pool.of[c].last_peak = pool.of[c].peak;
        pool.of[c].peak = pool.of[c].live;
        pool.mark += most_of(c);
    }
    pool.in_period = 0;
}

static void count_live(uint32_t c) {
    size_t taken = class_bytes(c), most = most_of(c);
    pool.live += taken;
    pool.of[c].live += taken;
    if (pool.of[c].live > pool.of[c].peak)
        pool.of[c].peak = pool.of[c].live;
    if (pool.of[c].live > most)
        pool.mark += pool.of[c].live - most;
    pool.in_period += taken;
    size_t mark = pool.mark > IDLE_MIN ? pool.mark : IDLE_MIN;
    if (pool.in_period / PERIODS > mark) {
        begin_period();
        trim(idle_limit());
        memset(pool.used, 0, sizeof pool.used);
    }
}

/* A collected block, aligned. One past its end must not be another block's start. Blocks of some sizes lie at multiples of
 * these: up to FITTED bytes a block is asked for that is as large as a number of lines, the byte that the collector adds
 * included. */
static void *small_block(size_t bytes) {
    enum { FITTED = 511 };
    char *p = bytes <= FITTED ? mem_bytes((bytes | (BUFFER_ALIGNMENT - 1))) : NULL;
    if (p && (uintptr_t)p % BUFFER_ALIGNMENT == 0)
        return p;
    p = mem_bytes((bytes | (BUFFER_ALIGNMENT - 1)) + BUFFER_ALIGNMENT);
    return p + (-(uintptr_t)p & (BUFFER_ALIGNMENT - 1));
}

bool buffer_is_plain(size_t bytes) { return bytes <= SMALL && !pool.watches; }

void buffer_init_plain(Buffer *b, size_t bytes) {
    pool.counts.asked += bytes;
    *b = (Buffer){small_block(bytes), bytes, 1, COLLECTED, NULL};
}

bool buffer_may_renew(const Buffer *b) { return b->size_class == COLLECTED && !b->packed; }

void buffer_renew_plain(Buffer *b, size_t bytes) {
    pool.counts.asked += bytes;
    b->bytes = bytes;
    b->owners = 1;
}

Buffer *buffer_new(size_t bytes) {
    if (bytes <= SMALL) {
        Buffer *b = mem_new(Buffer);
        buffer_init_plain(b, bytes);
        if (pool.watches) {
            b->size_class = WATCHED;
            count_held(bytes);
            mem_on_unreachable(b, small_unreachable, NULL);
        }
        return b;
    }
    pool.counts.asked += bytes;
    uint32_t c = class_of(bytes);
    size_t taken = class_bytes(c);
    if (c >= NCLASSES)
        mem_out_of_memory(bytes);
    pool.used[c] = true;
    PooledBuffer *b = pool.buffers[c];
    if (b) {
        pool.buffers[c] = b->next;
        b->next = NULL;
        take_up(c);
    } else {
        make_room(taken);
        b = (PooledBuffer *)mem_new(PooledBuffer);
        void *data = block_new(c);
        if (!data) {
            collect();
            trim(0);
            data = block_new(c);
            if (!data)
                mem_out_of_memory(bytes);
        }
        b->base.data = data;
        b->base.size_class = c;
        mem_on_unreachable(b, unreachable, NULL);
    }
    count_live(c);
    count_held(bytes);
    b->base.bytes = bytes;
    b->base.owners = 1;
    return &b->base;
}

/* The elements of b in a block of class c, and its old block in the lists; NULL: there is no memory. A buffer that waits
 * with its block gets the old one for it. */
static char *block_copy(const Buffer *b, uint32_t c) {
    PooledBuffer *waiting = pool.buffers[c];
    char *data = waiting ? waiting->base.data : block_new(c);
    if (!data)
        return NULL;
    memcpy(data, b->data, b->bytes);
    if (waiting) {
        pool.buffers[c] = waiting->next;
        take_up(c);
        waiting->base.data = b->data;
        waiting->base.size_class = b->size_class;
        waiting->next = pool.buffers[b->size_class];
        pool.buffers[b->size_class] = waiting;
    } else {
        idle_push(b->size_class, b->data);
    }
    give_up(b->size_class);
    return data;
}

/* The pages of a block that is mapped by itself are put elsewhere; one that lies among others is copied, which costs less than
 * new pages do. The classes grow by a part of themselves, so that what is lengthened again and again is moved as often as
 * its size doubles. */
static bool block_lengthen(Buffer *b, uint32_t c) {
    size_t from = class_bytes(b->size_class), to = class_bytes(c);
    char *data;
    if (c == b->size_class)
        return true;
    if (from <= BLOCK_MAX || c >= NCLASSES || exceeds(to))
        return false;
    if (from < OWN_MAPPING) {
        data = block_copy(b, c);
        if (!data)
            return false;
    } else {
        void *old = mapping_of(b->data);
        data = mremap(old, mapped_bytes(b->size_class), mapped_bytes(c), MREMAP_MAYMOVE);
        if (data == MAP_FAILED)
            return false;
        data += (uintptr_t)b->data % PAGE;
        pool.live -= from;
        pool.of[b->size_class].live -= from;
    }
    b->data = data;
    b->size_class = c;
    pool.used[c] = true;
    count_live(c);
    return true;
}

bool buffer_lengthen(Buffer *b, size_t bytes) {
    if (b->size_class >= NCLASSES || !block_lengthen(b, class_of(bytes)))
        return false;
    pool.counts.asked += bytes - b->bytes;
    count_held(bytes - b->bytes);
    b->bytes = bytes;
    if (b->packed)
        packed_forget(b);
    return true;
}

/* Memory of somebody else. It counts as allocated, so that it is given back before long, and not as live. */
typedef struct BorrowedBuffer {
    Buffer base;
    void (*release)(void *ctx);
    void *ctx;
} BorrowedBuffer;

static void give_back(void *p, void *arg) {
    (void)arg;
    BorrowedBuffer *b = p;
    b->release(b->ctx);
}

Buffer *buffer_borrow(void *data, size_t bytes, void (*release)(void *ctx), void *ctx) {
    make_room(bytes);
    BorrowedBuffer *b = mem_new(BorrowedBuffer);
    *b = (BorrowedBuffer){
        {.data = data, .bytes = bytes, .owners = 2, .size_class = COLLECTED}, release, ctx};
    mem_on_unreachable(b, give_back, NULL);
    return &b->base;
}

Buffer *buffer_blank(void) {
    Buffer *b = mem_new(Buffer);
    b->owners = 1;
    b->size_class = COLLECTED;
    return b;
}

void buffer_release(Buffer *b) {
    pool.counts.returned += b->bytes;
    if (b->size_class == COLLECTED)
        return;
    pool.held -= b->bytes;
    if (b->size_class == WATCHED) {
        b->size_class = COLLECTED;
        return;
    }
    packed_forget(b);
    PooledBuffer *p = (PooledBuffer *)b;
    give_up(b->size_class);
    p->next = pool.buffers[b->size_class];
    pool.buffers[b->size_class] = p;
    if (b->size_class > class_of(BLOCK_MAX))
        trim(idle_limit());
}

size_t tensor_bytes_live(void) { return pool.live; }
size_t tensor_bytes_idle(void) { return pool.idle; }
size_t tensor_mappings(void) { return pool.mappings; }
TensorCounts tensor_counts(void) { return pool.counts; }
void tensor_watch(bool on) {
    pool.watches = on;
    if (on)
        pool.counts.peak = pool.held;
}
void tensor_set_limit(size_t bytes_with_heap) { pool.limit = bytes_with_heap; }
