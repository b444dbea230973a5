/* SPDX-License-Identifier: Apache-2.0 */
/* Making data: Note [Cells] in eval/value.h. The layouts of a constructor are found by a hash of their first words. There
 * are few, as a rule one; where a program makes very many they are forgotten now and then, which only means that data
 * alike has two layouts that are alike. */
#include "base/mem.h"
#include "eval/value.h"
#include "types/type/type.h"

enum { CHAINS = 16, MOST = 512, FEW = 16 };

typedef struct DataLayouts {
    const DataLayout *last; /* the one found last */
    uint32_t len;
    const DataLayout *chains[CHAINS];
} DataLayouts;

static DataLayout *new_layout(Ctor *ctor, const uint64_t *heads) {
    size_t bytes = ctor->nfields * sizeof *heads;
    DataLayout *l = mem_alloc(sizeof *l + bytes);
    l->ctor = ctor;
    l->n = ctor->nfields;
    memcpy(l->heads, heads, bytes);
    return l;
}

const DataLayout *data_layout_first(Ctor *ctor) {
    if (!ctor->layout) {
        uint64_t *heads = mem_bytes((ctor->nfields + 1) * sizeof *heads);
        Value absent = {.tag = VAL_ABSENT};
        for (uint32_t i = 0; i < ctor->nfields; i++)
            heads[i] = value_head(&absent);
        ctor->layout = new_layout(ctor, heads);
    }
    return ctor->layouts ? ctor->layouts->last : ctor->layout;
}

static const DataLayout *find_layout(Ctor *ctor, const uint64_t *heads) {
    DataLayouts *all = ctor->layouts;
    if (!all || all->len >= MOST)
        all = ctor->layouts = mem_new(DataLayouts);
    size_t bytes = ctor->nfields * sizeof *heads;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < ctor->nfields; i++)
        hash = (hash ^ heads[i] ^ heads[i] >> 28) * 0x9E3779B97F4A7C15u;
    const DataLayout **chain = &all->chains[hash >> 60];
    for (const DataLayout *l = *chain; l; l = l->next)
        if (memcmp(l->heads, heads, bytes) == 0)
            return all->last = l;
    DataLayout *made = new_layout(ctor, heads);
    made->next = *chain;
    *chain = made;
    all->len++;
    return all->last = made;
}

_Static_assert(CHAINS == 1 << 4, "a chain is found by the top four bits of the hash");

const DataLayout *data_layout(Ctor *ctor, const Value *fields) {
    uint64_t few[FEW],
        *heads = ctor->nfields <= FEW ? few : mem_bytes(ctor->nfields * sizeof *heads);
    for (uint32_t i = 0; i < ctor->nfields; i++)
        heads[i] = value_head(&fields[i]);
    return find_layout(ctor, heads);
}

Value value_data(Ctor *ctor, const Value *fields) {
    const DataLayout *layout = data_layout_first(ctor);
    uint32_t n = ctor->nfields;
    if (n == 0)
        return (Value){.tag = VAL_CTOR, .p = ctor};
    Data *d = mem_alloc(sizeof(Data) + n * sizeof *d->words);
    uint64_t differ = 0;
    for (uint32_t i = 0; i < n; i++) {
        differ |= value_head(&fields[i]) ^ layout->heads[i];
        memcpy(&d->words[i], &fields[i].i, sizeof *d->words);
    }
    d->layout = differ ? data_layout(ctor, fields) : layout;
    return (Value){.tag = VAL_CTOR, .p = d};
}

void data_set(Value data, uint32_t i, Value field) {
    Data *d = data.p;
    uint64_t head = value_head(&field);
    if (head != d->layout->heads[i]) {
        uint32_t n = d->layout->n;
        uint64_t few[FEW], *heads = n <= FEW ? few : mem_bytes(n * sizeof *heads);
        memcpy(heads, d->layout->heads, n * sizeof *heads);
        heads[i] = head;
        d->layout = find_layout(d->layout->ctor, heads);
    }
    memcpy(&d->words[i], &field.i, sizeof *d->words);
}

Value data_hole(Type *type) {
    static const DataLayout none = {0};
    static const Data empty = {&none};
    DType t;
    uint32_t rank;
    Type **dims;
    type = type ? type_resolve(type) : NULL;
    if (type && type->tag == TY_DATA)
        return (Value){.tag = VAL_CTOR, .p = (void *)(uintptr_t)&empty};
    if (type && type->tag == TY_TENSOR && type_get_dtype(type, &t) &&
        type_get_rank(type, &rank, &dims) && rank == 0)
        return value_int(t, 0);
    return value_unit();
}
