/* SPDX-License-Identifier: Apache-2.0 */
/* Records, references, zeros and equality: the parts of the run loop that call nothing back. */
#include "eval/ad.h"
#include "eval/machine.h"

#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

static Ctor *ctor_of(Value v) {
    if (v.tag != VAL_CTOR)
        BUG("a field of a value with tag %u", v.tag);
    return data_ctor(v);
}

static int field_position(const Ctor *c, const Symbol *name, int32_t hint) {
    if (!c->field_names)
        return -1;
    if (hint >= 0 && (uint32_t)hint < c->nfields && c->field_names[hint] == name)
        return hint;
    for (uint32_t i = 0; i < c->nfields; i++)
        if (c->field_names[i] == name)
            return (int)i;
    return -1;
}

static void bug_field(const Ctor *c, const Symbol *name) {
    BUG("a `%s` has no field `%s`", c->name->text, name->text);
}

void data_field(Expr *origin, Value v, Value *out) {
    Ctor *c = ctor_of(v);
    int at = field_position(c, origin->field, origin->index);
    if (at < 0)
        bug_field(c, origin->field);
    *out = data_get(v, (uint32_t)at);
}

void data_update(Expr *origin, Value v, const Value *fields, Value *out) {
    Ctor *c = ctor_of(v);
    for (uint32_t i = 0; i < origin->nargs; i++)
        if (field_position(c, origin->field_names[i], -1) < 0)
            bug_field(c, origin->field_names[i]);
    Value *changed = mem_new_n(Value, c->nfields + 1);
    for (uint32_t i = 0; i < c->nfields; i++)
        changed[i] = data_get(v, i);
    for (uint32_t i = 0; i < origin->nargs; i++)
        changed[field_position(c, origin->field_names[i], -1)] = fields[i];
    *out = value_data(c, changed);
}

/* ---- references ------------------------------------------------------------------------------ */

bool ref_write(Interp *in, Ref *r, Value v) {
    if (r->epoch < in->sealed) {
        Diag *d = machine_fail(in, DIAG_R0409, "`checkpoint` writes to an outer reference");
        diag_add_fact(d,
                      "its function runs again when the derivative goes backwards, and would write "
                      "twice");
        return false;
    }
    if (value_is_active_above(v, r->epoch)) {
        Diag *d = machine_fail(in, DIAG_R0407,
                               "an outer reference cannot hold a value being differentiated");
        diag_add_fact(d, "the reference was made outside of the running `grad`");
        diag_add_help(d, "`stop_gradient(x)` is the value without its derivative");
        return false;
    }
    r->value = v;
    r->written = in->level;
    return true;
}

bool ref_may_be_read(Interp *in, const Ref *r) {
    if (r->epoch >= in->sealed || r->written < in->again)
        return true;
    Diag *d = machine_fail(in, DIAG_R0409,
                           "`checkpoint` reads an outer reference that was written since");
    diag_add_fact(d, "its function runs again when the derivative goes backwards, and would read "
                     "another value than before");
    diag_add_help(d, "read the reference before, and give the function its value");
    return false;
}

/* ---- zeros ----------------------------------------------------------------------------------- */

bool value_zero(Type *t, Value *out) {
    t = type_resolve(t);
    if (t->tag == TY_TENSOR) {
        DType d;
        uint32_t rank;
        Type **dims;
        int64_t shape[TENSOR_MAX_RANK];
        if (!type_get_dtype(t, &d) || !type_get_rank(t, &rank, &dims) || rank > TENSOR_MAX_RANK)
            return false;
        for (uint32_t i = 0; i < rank; i++)
            if (!type_get_int(dims[i], &shape[i]))
                return false;
        if (rank == 0)
            *out = dtype_is_float(d) ? value_float(d, 0.0) : value_int(d, 0);
        else if (shape_count((int)rank, shape, d) < 0)
            return false;
        else
            *out = value_tensor(tensor_new_zero(d, (int)rank, shape));
        return true;
    }
    if (t->tag != TY_TUPLE)
        return false;
    Value *items = mem_new_n(Value, t->nargs + 1);
    for (uint32_t i = 0; i < t->nargs; i++)
        if (!value_zero(t->args[i], &items[i]))
            return false;
    *out = value_tuple(items, t->nargs);
    return true;
}

/* ---- equality -------------------------------------------------------------------------------- */

static bool is_tensor(Value v) { return v.tag == VAL_SCALAR || v.tag == VAL_TENSOR; }

bool equal_values(Interp *in, Expr *origin, Value a, Value b, bool negate, Value *out) {
    a = value_primal(a);
    b = value_primal(b);
    if (is_tensor(a) && is_tensor(b)) {
        Value args[2] = {a, b};
        const Op *op = negate ? &op_not_equal : &op_equal;
        Site site = {.op = op, .attrs = attrs_defaults(op), .nargs = 2};
        return apply_op(in, &site, args, origin->span, out);
    }
    int equal = value_equal(a, b);
    if (equal < 0) {
        machine_fail(in, DIAG_R0610, "functions cannot be compared");
        return false;
    }
    *out = value_bool((equal == 1) != negate);
    return true;
}

/* ---- no arm ---------------------------------------------------------------------------------- */

void fail_no_match(Interp *in, Value v) {
    if (v.tag == VAL_CLOSURE) /* no program matches functions, code of derivatives does */
        BUG("a derivative meets a function that it does not know");
    Str text = {0};
    value_print(
        &text, v,
        &(ValuePrintOptions){.nested = true, .max_elements = 20, .interrupt = &in->interrupt});
    if (text.len > 200) {
        text.len = 197;
        while (text.len && ((unsigned char)text.text[text.len] & 0xC0) == 0x80)
            text.len--;
        text.text[text.len] = '\0';
        str_add(&text, "...");
    }
    Diag *d = machine_fail(in, DIAG_R0607, "no arm matches this value");
    diag_add_fact(d, "the value is %s", str_text(&text));
}

/* ---- literals and sizes ---------------------------------------------------------------------- */

Value value_of_literal(const Expr *lit, DType t) {
    if (dtype_is_float(t)) {
        double f = lit->is_float ? lit->f : (double)lit->i;
        if (!lit->is_float && lit->i < 0 && lit->type) { /* a uint64 literal keeps its bits */
            DType own;
            if (type_get_dtype(lit->type, &own) && own == DT_U64)
                f = (double)(uint64_t)lit->i;
        }
        unsigned char p[8];
        elem_set_float(p, t, f);
        return value_float(t, elem_get_float(p, t));
    }
    unsigned char p[8];
    if (lit->is_float) {
        elem_cast(p, t, &lit->f, DT_F64);
    } else if (t == DT_BOOL) {
        p[0] = lit->i != 0;
    } else {
        elem_set_int(p, t, lit->i);
    }
    return value_int(t, elem_get_int(p, t));
}

static Value value_in_dtype(Value raw, DType t) {
    Expr lit = {.kind = EXPR_LIT, .is_float = raw.aux == DT_F64};
    if (lit.is_float)
        lit.f = raw.f;
    else
        lit.i = raw.i;
    return value_of_literal(&lit, t);
}

bool dtype_of_value(Value v, DType *out) {
    v = value_primal(v);
    if (v.tag == VAL_SCALAR)
        *out = (DType)v.aux;
    else if (v.tag == VAL_TENSOR)
        *out = ((Tensor *)v.p)->dtype;
    else
        return false;
    return true;
}

bool value_is_literal(Value v, Value lit) {
    v = value_primal(v);
    if (v.tag != lit.tag)
        return false;
    if (v.tag == VAL_STRING) {
        const String *s = v.p, *t = lit.p;
        return s->len == t->len && memcmp(s->text, t->text, s->len) == 0;
    }
    if (v.aux != lit.aux && dtype_is_float((DType)v.aux))
        lit = value_in_dtype(lit, (DType)v.aux);
    return dtype_is_float((DType)v.aux) ? v.f == lit.f : v.i == lit.i;
}

bool tensor_axis_size(Value v, int axis, int64_t *out) {
    v = value_primal(v);
    if (v.tag != VAL_TENSOR)
        return false;
    const Tensor *t = v.p;
    if (axis < 0)
        axis += t->rank;
    if (axis < 0 || axis >= t->rank)
        return false;
    *out = t->shape[axis];
    return true;
}

bool fits_dtype(int64_t size, Type *type, Value *out) {
    DType d;
    if (!type || !type_get_dtype(type, &d))
        d = DT_I32;
    *out = value_in_dtype(value_int(DT_I64, size), d);
    return dtype_is_float(d) || dtype_holds_int(d, size, false);
}
