/* SPDX-License-Identifier: Apache-2.0 */
/* Values are visited in order on a list of their own, so that depth costs no C stack; a reference that was met
 * before stands for the position of its first visit, which ends cycles and tells who shares. */
#include "eval/digest.h"

#include "base/map.h"
#include "base/symbol.h"
#include "base/vec.h"

#include <math.h>
#include <string.h>

enum { MAX_NODES = 1 << 20 };

typedef struct Digest {
    uint64_t hash;
    VEC(Value) pending; /* the next one last */
    Map refs;           /* Ref -> the number of those met before it, plus one */
} Digest;

static void add_bytes(Digest *d, const void *p, size_t n) { d->hash = hash_bytes(p, n, d->hash); }
static void add_word(Digest *d, uint64_t word) { add_bytes(d, &word, sizeof word); }

static void add_scalar(Digest *d, Value v) {
    add_word(d, v.aux);
    bool is_nan = dtype_is_float((DType)v.aux) && isnan(v.f);
    add_word(d, is_nan ? UINT64_MAX : (uint64_t)v.i);
}

static void add_tensor(Digest *d, const Tensor *t) {
    const Tensor *rows = tensor_canonical(t);
    add_word(d, (uint64_t)rows->dtype);
    add_bytes(d, rows->shape, (size_t)rows->rank * sizeof *rows->shape);
    add_bytes(d, tensor_data(rows), (size_t)rows->count * dtype_size(rows->dtype));
}

static void push_parts(Digest *d, Value whole) {
    uint32_t n = value_count(whole);
    if (n)
        add_word(d, n);
    for (uint32_t i = n; i-- > 0;)
        vec_push(&d->pending, value_part(whole, i));
}

static void add_value(Digest *d, Value v) {
    add_word(d, v.tag);
    switch ((ValueTag)v.tag) {
    case VAL_SCALAR: add_scalar(d, v); break;
    case VAL_TENSOR: add_tensor(d, v.p); break;
    case VAL_TUPLE: push_parts(d, v); break;
    case VAL_CTOR: {
        const char *name = data_ctor(v)->name->text;
        add_bytes(d, name, strlen(name));
        push_parts(d, v);
        break;
    }
    case VAL_REF: {
        void *before = map_find(&d->refs, v.p);
        add_word(d, (uint64_t)(uintptr_t)before);
        if (!before) {
            map_set(&d->refs, v.p, (void *)(uintptr_t)(d->refs.len + 1));
            vec_push(&d->pending, ((Ref *)v.p)->value);
        }
        break;
    }
    case VAL_STRING: add_bytes(d, ((String *)v.p)->text, ((String *)v.p)->len); break;
    case VAL_DUAL: vec_push(&d->pending, value_primal(v)); break;
    case VAL_CLOSURE:
    case VAL_BUILTIN:
    case VAL_ABSENT: break;
    }
}

uint64_t value_digest(Value v) {
    Digest d = {0};
    vec_push(&d.pending, v);
    for (int nodes = 0; d.pending.len && nodes < MAX_NODES; nodes++)
        add_value(&d, d.pending.data[--d.pending.len]);
    return d.hash;
}
