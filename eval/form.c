/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of an instruction runs: Note [Forms] in eval/code.h. */
#include "eval/machine.h"
#include "eval/tighten_impl.h"

#include <string.h>

enum { FORM_SS, FORM_SK, FORM_KS, FORM_PL, FORM_PR };

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

static bool calls_itself(const Resolver *r, const Instr *i) {
    const Global *g = r->consts.data[i->b >> 4].p;
    return g->value == r->code->fn && i->x == r->code->nparams;
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
    case CODE_RETURN: return i->x ? CODE_RETURN_OWN : -1;
    case CODE_CALL_GLOBAL: return calls_itself(r, i) ? CODE_CALL_GLOBAL_SELF : -1;
    case CODE_MOVES: return list_form(CODE_MOVES_2, lists + i->b, i->x);
    case CODE_TUPLE_OF: return i->x ? -1 : list_form(CODE_TUPLE_OF_2, lists + i->b, (uint32_t)i->c);
    case CODE_RETURN_OF: return list_form(CODE_RETURN_OF_2, lists + i->b, (uint32_t)i->c);
    case CODE_DATA_OF: {
        uint32_t n = ((const Ctor *)r->consts.data[i->c >> 4].p)->nfields;
        return list_form(CODE_DATA_OF_2, lists + i->b, n);
    }
    case CODE_TAIL_GLOBAL_OF: {
        const int32_t *pairs = lists + i->c;
        uint32_t n = (uint32_t)*pairs;
        bool gives = i->a >> 1 != 0;
        if (gives || !are_slots(pairs + 2, n, 2))
            return -1;
        const Global *g = r->consts.data[i->b >> 4].p;
        bool made = g->is_made && calls_itself(r, i) && !(i->a && r->code->internal);
        return counted_form(made ? CODE_TAIL_GLOBAL_OF_MADE_0 : CODE_TAIL_GLOBAL_OF_0, 0, n);
    }
    case CODE_NEG: return is_at(i->b, BASE_SLOT) ? scalar_form(r, at, -1, CODE_NEG_S) : -1;
    case CODE_ADD_CT: return is_at(i->b, BASE_SLOT) && is_at(i->c, BASE_SLOT) ? CODE_ADD_CT_SS : -1;
    case CODE_UNPACK_FRAME:
        return is_at(i->b, BASE_SLOT) ? counted_form(CODE_UNPACK_FRAME_2, 2, i->x) : -1;
    case CODE_UNPACK_LAST: return counted_form(CODE_UNPACK_LAST_2, 2, i->x);
    case CODE_PARTS_OF_CT:
        return is_at(i->b, BASE_SLOT) && !i->c ? counted_form(CODE_PARTS_OF_CT_2, 2, i->x) : -1;
    case CODE_POP_FRAME: return counted_form(CODE_POP_FRAME_2, 2, i->x);
    case CODE_NEXT_FRAME: return counted_form(CODE_NEXT_FRAME_2, 2, i->x);
    case CODE_GET_FIELDS: return counted_form(CODE_GET_FIELDS_2, 2, i->x);
    case CODE_NEXT_FIELDS: return counted_form(CODE_NEXT_FIELDS_2, 2, i->x);
    default: return -1;
    }
}

/* ---- products that are added ----------------------------------------------------------------- */

/* The first of the forms of a product or quotient; -1: it is none. */
static int product_forms(Opcode op) {
    switch (op) {
    case CODE_STRONG_MUL: return CODE_STRONG_MUL_SS;
    case CODE_STRONG_DIV: return CODE_STRONG_DIV_SS;
    case CODE_NEG_STRONG_MUL: return CODE_NEG_STRONG_MUL_SS;
    case CODE_NEG_STRONG_DIV: return CODE_NEG_STRONG_DIV_SS;
    default: return -1;
    }
}

static bool is_arithmetic(Opcode op) {
    return (op >= CODE_ADD && op <= CODE_NEG_STRONG_DIV) || op == CODE_NEG;
}

/* Whether instruction k may run before the product i, which stands before it. */
static bool passes_product(const Tightener *t, size_t k, const Instr *product) {
    const Instr *in = tighten_at(t, k);
    bool reads = tighten_may_read(t, k, product->b) || tighten_may_read(t, k, product->c);
    return writes_a_only(in) && in->a != product->a && in->a != product->b && in->a != product->c &&
           (!reads || is_arithmetic((Opcode)in->op));
}

/* The sum that alone reads the product i, which may be made right before it; or SIZE_MAX. */
static size_t find_sum(const Tightener *t, size_t i) {
    enum { NEAR = 8 };
    const Instr *product = tighten_at(t, i);
    for (size_t k = i + 1; k < t->r->instrs.len && k <= i + NEAR && !t->targets[k]; k++) {
        const Instr *in = tighten_at(t, k);
        if (tighten_may_read(t, k, product->a)) {
            bool is_sum = in->op == CODE_ADD || in->op == CODE_ADD_CT;
            bool is_dead = is_sum && (in->a == product->a || tighten_is_dead(t, k + 1, product->a));
            return is_dead && in->b != in->c && is_slot(in->b) && is_slot(in->c) ? k : SIZE_MAX;
        }
        if (!passes_product(t, k, product))
            return SIZE_MAX;
    }
    return SIZE_MAX;
}

/* Moves the product i to just before the sum k. What runs before it now owns no operand of it any more. */
static void move_product(const Tightener *t, size_t i, size_t k) {
    Resolver *r = t->r;
    Instr product = r->instrs.data[i];
    Expr *origin = r->origin.data[i];
    for (; i + 1 < k; i++) {
        Instr in = r->instrs.data[i + 1];
        if (is_arithmetic((Opcode)in.op) &&
            (in.b == product.b || in.b == product.c || in.c == product.b || in.c == product.c))
            in.x = 0;
        r->instrs.data[i] = in;
        r->origin.data[i] = r->origin.data[i + 1];
    }
    r->instrs.data[i] = product;
    r->origin.data[i] = origin;
}

static bool is_product(const Resolver *r, size_t at) {
    int first = product_forms((Opcode)r->instrs.data[at].op);
    return first >= 0 && scalar_form(r, at, -1, (Opcode)first) == first + FORM_SS;
}

/* Finds these pairs: forms[at] is that of a product that stands right before its sum, or 0. NULL: there is no product. */
static uint16_t *pair_products(Resolver *r) {
    size_t n = r->instrs.len, last = n;
    while (last > 0 && !is_product(r, last - 1))
        last--;
    if (!last)
        return NULL;
    uint16_t *forms = mem_bytes((n + 1) * sizeof *forms);
    Tightener t = {.r = r, .targets = mem_bytes(n + 1), .gone = mem_bytes(n + 1)};
    t.lists.data = r->lists;
    memset(forms, 0, (n + 1) * sizeof *forms);
    memset(t.targets, 0, n + 1);
    memset(t.gone, 0, n + 1);
    for (size_t i = 0; i < n; i++)
        if (instr_jumps(tighten_at(&t, i)))
            t.targets[tighten_at(&t, i)->a] = true;
    for (size_t i = last; i-- > 0;) {
        size_t sum = is_product(r, i) ? find_sum(&t, i) : SIZE_MAX;
        if (sum == SIZE_MAX || (sum > i + 1 && forms[sum - 1]))
            continue;
        Instr product = *tighten_at(&t, i);
        bool is_left = tighten_at(&t, sum)->b == product.a;
        move_product(&t, i, sum);
        memmove(forms + i, forms + i + 1, (sum - 1 - i) * sizeof *forms);
        forms[sum - 1] = (uint16_t)(product_forms((Opcode)product.op) +
                                    (is_left ? FORM_PL : FORM_PR));
    }
    return forms;
}

/* Where instructions are counted there are no pairs, each of which would be one. */
void choose_forms(Resolver *r) {
    const uint16_t *pairs = r->in->counts || r->code->verify ? NULL : pair_products(r);
    for (size_t at = 0; at < r->instrs.len; at++) {
        int form = pairs && pairs[at] ? pairs[at] : form_of(r, at);
        if (form >= 0)
            r->instrs.data[at].op = (uint16_t)form;
    }
}
