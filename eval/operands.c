/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/operands.h"

const OpcodeInfo opcode_info[OPCODE_COUNT] = {
#define X(name, b, c, use, result, flow)                                                           \
    [CODE_##name] = {#name, PART_##b, PART_##c, USE_##use, RESULT_##result, FLOW_##flow},
    OPCODES(X)
#undef X
};

const uint8_t plain_opcode[ALL_OPCODES] = {
#define X(name, ...) [CODE_##name] = CODE_##name,
    OPCODES(X)
#undef X
#define F(name, form) [CODE_##name##_##form] = CODE_##name,
        FORMS(F)
#undef F
};
_Static_assert(OPCODE_COUNT <= UINT8_MAX, "an opcode fits into an entry of plain_opcode");

static void add_row(Reads *reads, int32_t at, uint32_t n) {
    if ((at & 3) != BASE_SLOT || !n)
        return;
    reads->row[reads->nrows].first = (uint32_t)at >> 4;
    reads->row[reads->nrows++].n = n;
}

static void add_list(Reads *reads, const int32_t *list, uint32_t n, uint32_t step) {
    reads->list = list;
    reads->nlist = n;
    reads->step = step;
}

static uint32_t count_fields(const Resolver *r, const Instr *i) {
    return ((const Ctor *)r->consts.data[i->c >> 4].p)->nfields;
}

static void add_part(const Resolver *r, const int32_t *lists, size_t at, Part part, int32_t field,
                     Reads *out) {
    const Instr *i = &r->instrs.data[at];
    switch (part) {
    case PART_NONE: return;
    case PART_ONE: add_row(out, field, 1); return;
    case PART_ROW_X: add_row(out, field, i->x); return;
    case PART_ROW_C: add_row(out, field, (uint32_t)i->c); return;
    case PART_ROW_CTOR: add_row(out, field, count_fields(r, i)); return;
    case PART_ROW_SITE:
        add_row(out, field, r->sites.data[i->c].nargs + r->sites.data[i->c].nsizes);
        return;
    case PART_ROW_ARGS: add_row(out, field, r->sites.data[i->c].nargs); return;
    case PART_ROW_ORIGIN: add_row(out, field, r->origin.data[at]->nargs); return;
    case PART_MAKE: out->make = &r->makes.data[field]; return;
    case PART_LIST_X: add_list(out, lists + field, i->x, 1); return;
    case PART_LIST_C: add_list(out, lists + field, (uint32_t)i->c, 1); return;
    case PART_LIST_CTOR: add_list(out, lists + field, count_fields(r, i), 1); return;
    case PART_PAIRS: add_list(out, lists + field + 2, (uint32_t)lists[field], 2); return;
    case PART_ANY: out->any = true; return;
    }
}

void instr_reads(const Resolver *r, const int32_t *lists, size_t at, Reads *out) {
    const Instr *i = &r->instrs.data[at];
    *out = (Reads){0};
    add_part(r, lists, at, instr_info(i)->b, i->b, out);
    add_part(r, lists, at, instr_info(i)->c, i->c, out);
}

bool reads_slot(const Reads *reads, uint32_t slot) {
    int32_t wanted = operand(BASE_SLOT, slot);
    if (reads->any)
        return true;
    for (int k = 0; k < reads->nrows; k++)
        if (slot - reads->row[k].first < reads->row[k].n)
            return true;
    for (uint32_t k = 0; k < reads->nlist; k++)
        if (reads->list[k * reads->step] == wanted)
            return true;
    for (uint32_t k = 0; reads->make && k < reads->make->code->ncaptured; k++)
        if (reads->make->captured[k] == wanted)
            return true;
    return false;
}
