/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of an instruction runs: Note [Forms] in eval/code.h. */
#include "eval/tighten.h"

enum { FORM_SS, FORM_SK, FORM_KS };

static bool is_at(int32_t operand_of, int base) { return (operand_of & 3) == base; }

/* Each `step`th operand of a list. */
static bool are_slots(const int32_t *list, uint32_t n, uint32_t step) {
    for (uint32_t k = 0; k < n; k++)
        if (!is_at(list[k * step], BASE_SLOT))
            return false;
    return true;
}

/* The form for n parts, of three for `least` or more. */
static int counted_form(Opcode first, uint32_t least, uint32_t n) {
    return n - least < 3 ? (int)(first + n - least) : -1;
}

static int list_form(Opcode first, const int32_t *list, uint32_t n) {
    return are_slots(list, n, 1) ? counted_form(first, 2, n) : -1;
}

/* Of arithmetic: of_ints, or -1, and the first of those of floats. */
static int scalar_form(const Resolver *r, size_t at, int of_ints, Opcode first) {
    const Instr *i = &r->instrs.data[at];
    Type *type = r->origin.data[at]->type;
    if (type && type_is_scalar(type, DT_I32))
        return is_at(i->b, BASE_SLOT) && is_at(i->c, BASE_SLOT) ? of_ints : -1;
    if (!type || !(type_is_scalar(type, DT_F32) || type_is_scalar(type, DT_F64)))
        return -1;
    if (is_at(i->b, BASE_SLOT) && is_at(i->c, BASE_SLOT))
        return (int)first + FORM_SS;
    if (is_at(i->b, BASE_SLOT) && is_at(i->c, BASE_CONST))
        return (int)first + FORM_SK;
    return is_at(i->b, BASE_CONST) && is_at(i->c, BASE_SLOT) ? (int)first + FORM_KS : -1;
}

/* The form that the instruction may take; or -1. */
static int form_of(const Resolver *r, size_t at) {
    const Instr *i = &r->instrs.data[at];
    const int32_t *lists = r->lists;
    switch (i->op) {
    case CODE_ADD: return scalar_form(r, at, CODE_ADD_II, CODE_ADD_SS);
    case CODE_SUB: return scalar_form(r, at, CODE_SUB_II, CODE_SUB_SS);
    case CODE_MUL: return scalar_form(r, at, CODE_MUL_II, CODE_MUL_SS);
    case CODE_DIV: return scalar_form(r, at, -1, CODE_DIV_SS);
    case CODE_STRONG_MUL: return scalar_form(r, at, -1, CODE_STRONG_MUL_SS);
    case CODE_STRONG_DIV: return scalar_form(r, at, -1, CODE_STRONG_DIV_SS);
    case CODE_NEG_STRONG_MUL: return scalar_form(r, at, -1, CODE_NEG_STRONG_MUL_SS);
    case CODE_NEG_STRONG_DIV: return scalar_form(r, at, -1, CODE_NEG_STRONG_DIV_SS);
    case CODE_CALL_GLOBAL: {
        const Global *g = r->consts.data[i->b >> 4].p;
        return g->value == r->code->fn && i->x == r->code->nparams ? CODE_CALL_GLOBAL_SELF : -1;
    }
    case CODE_MOVES: return list_form(CODE_MOVES_2, lists + i->b, i->x);
    case CODE_TUPLE_OF: return list_form(CODE_TUPLE_OF_2, lists + i->b, (uint32_t)i->c);
    case CODE_RETURN_OF: return list_form(CODE_RETURN_OF_2, lists + i->b, (uint32_t)i->c);
    case CODE_DATA_OF: {
        uint32_t n = ((const Ctor *)r->consts.data[i->c >> 4].p)->nfields;
        return list_form(CODE_DATA_OF_2, lists + i->b, n);
    }
    case CODE_TAIL_GLOBAL_OF: {
        const int32_t *pairs = lists + i->c;
        uint32_t n = (uint32_t)*pairs;
        bool gives = i->a >> 1 != 0;
        return !gives && are_slots(pairs + 2, n, 2) ? counted_form(CODE_TAIL_GLOBAL_OF_0, 0, n)
                                                    : -1;
    }
    case CODE_POP_FRAME: return counted_form(CODE_POP_FRAME_2, 2, i->x);
    case CODE_NEXT_FRAME: return counted_form(CODE_NEXT_FRAME_2, 2, i->x);
    case CODE_GET_FIELDS: return counted_form(CODE_GET_FIELDS_2, 2, i->x);
    case CODE_NEXT_FIELDS: return counted_form(CODE_NEXT_FIELDS_2, 2, i->x);
    default: return -1;
    }
}

void choose_forms(Resolver *r) {
    for (size_t at = 0; at < r->instrs.len; at++) {
        int form = form_of(r, at);
        if (form >= 0)
            r->instrs.data[at].op = (uint16_t)form;
    }
}
