/* SPDX-License-Identifier: Apache-2.0 */
/* Operators applied to values. A tuple argument is flattened into its tensors; scalars become
 * tensors of rank 0 for the call, unless the operator has a meaning on single elements, which needs
 * no tensors (ops/elementwise.h). */
#include "eval/element.h"
#include "eval/fuse.h"
#include "eval/index_part.h"
#include "eval/machine.h"
#include "eval/operands.h"
#include "eval/plans.h"
#include "eval/waiting.h"
#include "ops/ops.h"
#include "ops/recipe/fuse.h"
#include "ops/recipe/plan.h"
#include "tensor/packed.h"

#include <math.h>
#include <string.h>

extern const Op op_index_last;

/* ---- scalars --------------------------------------------------------------------------------- */

const Op *const arith_ops[OPCODE_COUNT] = {
    [CODE_ADD] = &op_add,
    [CODE_SUB] = &op_subtract,
    [CODE_MUL] = &op_multiply,
    [CODE_DIV] = &op_divide,
    [CODE_STRONG_MUL] = &op_strong_multiply,
    [CODE_STRONG_DIV] = &op_strong_divide,
    [CODE_LT] = &op_less,
    [CODE_LE] = &op_less_equal,
    [CODE_GT] = &op_greater,
    [CODE_GE] = &op_greater_equal,
    [CODE_NEG] = &op_negative,
    [CODE_NOT] = &op_logical_not,
};

bool apply_scalar(Interp *in, Site *site, const Value *args, Value *out) {
    OpScalar meaning = site->scalar;
    if (meaning == OP_SCALAR_NONE || args[0].tag != VAL_SCALAR)
        return false;
    bool is_select = meaning == OP_SCALAR_SELECT;
    for (uint32_t i = 1; i < site->nargs; i++)
        if (args[i].tag != VAL_SCALAR || args[i].aux != args[is_select].aux)
            return false;
    DType t = (DType)args[0].aux;
    switch (meaning) {
    case OP_SCALAR_NONE: return false;
    case OP_SCALAR_FORMULA: return element_apply(in, site, args, out);
    case OP_SCALAR_SELF: *out = args[0]; return true;
    case OP_SCALAR_ZERO: *out = (Value){.tag = VAL_SCALAR, .aux = args[0].aux}; return true;
    case OP_SCALAR_ONE:
        *out = dtype_is_float(t) ? value_float(t, 1.0) : value_int(t, 1);
        return true;
    case OP_SCALAR_SELECT:
        if (t != DT_BOOL || site->nargs != 3)
            return false;
        *out = args[0].i ? args[1] : args[2];
        return true;
    }
    return false;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* The sizes that were computed, in the order of the ATTR_DIM they stand for. */
static AttrValue fill_sizes(const AttrValue *v, const Value **sizes, const Value *end) {
    AttrValue filled = *v;
    if (v->kind == ATTR_DIM && *sizes < end) {
        filled = attr_computed_size((*sizes)++->i);
    } else if (v->kind == ATTR_LIST) {
        AttrValue *items = mem_new_n(AttrValue, v->list.n);
        for (uint32_t i = 0; i < v->list.n; i++)
            items[i] = fill_sizes(&v->list.items[i], sizes, end);
        filled.list.items = items;
    }
    return filled;
}

static const Attrs *attrs_with_sizes(const Attrs *attrs, const Value *sizes, uint32_t n) {
    Attrs *filled = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, attrs->op->nattrs);
    const Value *next = sizes;
    for (int i = 0; i < attrs->op->nattrs; i++)
        values[i] = fill_sizes(&attrs->values[i], &next, sizes + n);
    filled->op = attrs->op;
    filled->values = values;
    return filled;
}

const Attrs *site_attrs(const Site *site, const Value *args) {
    return site->nsizes ? attrs_with_sizes(site->attrs, args + site->nargs, site->nsizes)
                        : site->attrs;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct Operands {
    Tensor **in;
    bool *temporary; /* it was made of a scalar for this call */
    uint32_t n;
} Operands;

enum { FEW = 8 };

static void add_operand(Interp *in, Operands *o, const Op *op, Value v) {
    if (v.tag != VAL_SCALAR && v.tag != VAL_TENSOR)
        BUG("operator `%s` met a value with tag %u", op->name, v.tag);
    (void)waiting_add_of(in, v); /* after an interrupt nobody uses the result */
    o->temporary[o->n] = v.tag == VAL_SCALAR;
    o->in[o->n++] = value_to_tensor(v);
}

static void release_temporaries(const Operands *o, Tensor *const *outs, int nouts) {
    for (uint32_t i = 0; i < o->n; i++) {
        bool kept = !o->temporary[i];
        for (int k = 0; !kept && k < nouts; k++)
            kept = outs[k] == o->in[i] || outs[k]->buffer == o->in[i]->buffer;
        if (!kept)
            tensor_release(o->in[i]);
    }
}

static Value result_value(Tensor *t) {
    Value v = value_tensor(t);
    if (v.tag == VAL_SCALAR)
        tensor_release(t);
    return v;
}

__attribute__((noinline)) static Value several_results(Tensor *const *outs, int n) {
    Value items[OP_MAX_OUTPUTS];
    for (int i = 0; i < n; i++)
        items[i] = result_value(outs[i]);
    return value_tuple(items, (uint32_t)n);
}

/* Whether nothing but the call knows the tensor, so that its elements may change. */
static bool is_alone(const Operands *o, const Tensor *x) {
    if (o->temporary[0] || x->buffer->owners != 1)
        return false;
    for (uint32_t i = 1; i < o->n; i++)
        if (o->in[i]->buffer == x->buffer)
            return false;
    return true;
}

/* Runs an operator that changes a part of its first argument (Op.over_first) in place; the call was checked. Gives a
 * kernel status. */
static int32_t run_over_first(Interp *in, const OpCall *call) {
    Plan plan = {0};
    Tensor *out = call->in[0];
    if (!call->op->lower(call, &out, &plan))
        BUG("operator `%s` cannot be run", call->op->name);
    in->stats.in_place++;
    return plan_run(&plan, in->runner, in->runner_ctx, &in->interrupt);
}

/* Whether a part that is written may hold -0.0, which a mark of the whole says that it does not. */
static bool has_negative_zero(const Tensor *part) {
    if (part->dtype != DT_F32 && part->dtype != DT_F64)
        return true;
    if (!tensor_is_contiguous(part))
        return true;
    const void *data = tensor_data(part);
    for (int64_t i = 0; i < part->count; i++) {
        double x = part->dtype == DT_F32 ? ((const float *)data)[i] : ((const double *)data)[i];
        if (x == 0.0 && signbit(x))
            return true;
    }
    return false;
}

static bool apply_over_first(Interp *in, const Site *site, const OpCall *call, const Value *args,
                             bool *ok) {
    size_t said = in->diags->list.len;
    OutSpec spec[OP_MAX_OUTPUTS];
    *ok = false;
    if (call->op->shape(call, spec) < 0) {
        clash_explain(in, site, call, args, said);
        return true;
    }
    Tensor *t = call->in[0];
    if (t->accumulates && has_negative_zero(call->in[call->nin - 1]))
        t->accumulates = SETTLED;
    int32_t status = run_over_first(in, call);
    if (status == KERNEL_INTERRUPTED)
        in->interrupt = 1;
    *ok = status == KERNEL_DONE;
    return *ok || status == KERNEL_INTERRUPTED;
}

/* A call whose plan is not kept: it depends on elements, or there are no recipes. */
static bool apply_plainly(Interp *in, const Site *site, const Value *args, uint64_t dying,
                          Span span, Value *out) {
    const Op *op = site->op;
    /* cleared, because a collection that the operator forces scans them */
    Tensor *few[FEW] = {0}, *outs[OP_MAX_OUTPUTS] = {0};
    bool few_temporary[FEW];
    Operands o = {few, few_temporary, 0};
    uint32_t count = count_operands(args, site->nargs);
    if (count > FEW) {
        o.in = mem_new_n(Tensor *, count);
        o.temporary = mem_bytes(count);
    }
    for (uint32_t i = 0; i < site->nargs; i++) {
        if (args[i].tag == VAL_TUPLE) {
            const Tuple *t = args[i].p;
            for (uint32_t k = 0; t && k < t->n; k++)
                add_operand(in, &o, op, t->items[k]);
        } else {
            add_operand(in, &o, op, args[i]);
        }
    }
    OpCall call = {op,   site_attrs(site, args), o.n, o.in, in->diags, span,
                   NULL, clash_is_told(site)};
    size_t said = in->diags->list.len;
    bool ok;
    if (op->over_first && dying & 1 && is_alone(&o, o.in[0]) &&
        apply_over_first(in, site, &call, args, &ok)) {
        if (ok) {
            release_temporaries(&o, o.in, 1);
            *out = args[0];
        }
        return ok;
    }
    int n = op_run_interruptible(&call, outs, in->runner, in->runner_ctx, &in->interrupt);
    if (n < 0) {
        if (n == OP_INTERRUPTED)
            in->interrupt = 1;
        else
            clash_explain(in, site, &call, args, said);
        return false;
    }
    stack_share(in);
    if (n == 1 && !op->tuple) {
        release_temporaries(&o, outs, 1);
        *out = result_value(outs[0]);
        return true;
    }
    release_temporaries(&o, outs, n);
    *out = several_results(outs, n);
    return true;
}

typedef struct OpMaking {
    const Site *site;
    const Value *args;
} OpMaking;

static Template *make_template(void *ctx, Tensor *const *in, uint32_t n) {
    const OpMaking *m = ctx;
    const Op *op = m->site->op;
    OutSpec specs[OP_MAX_OUTPUTS];
    Tensor *outs[OP_MAX_OUTPUTS];
    Diags unheard = {0};
    OpCall call = {
        .op = op, .attrs = site_attrs(m->site, m->args), .nin = n, .in = in, .diags = &unheard};
    int nout = op->shape(&call, specs);
    for (int i = 0; i < nout; i++)
        outs[i] = tensor_blank(specs[i].dtype, specs[i].rank, specs[i].shape);
    Plan plan = {.blank = true};
    if (nout < 0 || !op->lower(&call, outs, &plan))
        return NULL;
    plan_chain(&plan);
    Template *t = template_new(&plan, in, n, outs, (uint32_t)nout);
    if (!t)
        BUG("operator `%s` reads a tensor that is none of its arguments", op->name);
    return t;
}

/* A part at integers and ranges, read without the operator: a small one that lies together by copying it here, another
 * one by a plan of its layout, or, where one group reads it once, where it lies. What is an error is left to the operator. */
static bool read_part(Interp *in, const Tensor *t, const char *spec, const Value *args, uint32_t n,
                      bool once, Value *out) {
    SliceView part;
    int64_t count;
    if (!index_part_find(t, spec, args, n, &part))
        return false;
    if (!index_part_is_small(&part, t->dtype, &count)) {
        if (!once)
            return index_part_copy(in, t, &part, out) == KERNEL_DONE;
        *out = index_part_view(t, &part);
        return true;
    }
    const char *from = index_part_data(t, &part);
    if (!part.rank) {
        *out = dtype_is_float(t->dtype) ? value_float(t->dtype, elem_get_float(from, t->dtype))
                                        : value_int(t->dtype, elem_get_int(from, t->dtype));
        return true;
    }
    Tensor *read = tensor_new(t->dtype, part.rank, part.shape);
    memcpy(tensor_data(read), from, (size_t)count * dtype_size(t->dtype));
    *out = value_tensor(read);
    return true;
}

static void write_small(Tensor *t, const SliceView *part, int64_t count, Value v) {
    size_t size = dtype_size(t->dtype);
    char *data = index_part_data(t, part);
    if (v.tag == VAL_TENSOR) {
        memcpy(data, tensor_data(v.p), (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++, data += size) {
        if (dtype_is_float(t->dtype))
            elem_set_float(data, t->dtype, v.f);
        else
            elem_set_int(data, t->dtype, v.i);
    }
}

/* Writes a part of a tensor that nothing else knows. What is an error is left to the operator. */
static bool write_part(Interp *in, Tensor *t, const char *spec, const Tuple *at, Value v) {
    SliceView part;
    int64_t count;
    const Tensor *from = v.tag == VAL_TENSOR ? v.p : NULL;
    if (t->buffer->owners != 1 || !index_part_find(t, spec, at->items, at->n, &part) ||
        !index_part_fits(&part, t->dtype, v) ||
        (from && (from->waiting || from->buffer == t->buffer)))
        return false;
    if (t->accumulates && (from ? has_negative_zero(from) : signbit(v.f)))
        t->accumulates = SETTLED;
    if (!index_part_is_small(&part, t->dtype, &count) || (from && !tensor_is_contiguous(from)))
        return index_part_put(in, t, &part, v, false) == KERNEL_DONE;
    if (t->buffer->packed)
        packed_forget(t->buffer);
    write_small(t, &part, count, v);
    return true;
}

/* Operators on a part that integers and ranges name; of such a one `index_last` reads what `index` does. */
static bool apply_to_part(Interp *in, const Site *site, const Value *args, uint64_t dying,
                          Value *out) {
    const Op *op = site->op;
    if ((op != &op_index && op != &op_index_last && op != &op_index_set) ||
        args[0].tag != VAL_TENSOR || args[1].tag != VAL_TUPLE || !args[1].p)
        return false;
    const Tuple *at = args[1].p;
    const char *spec = site->attrs->values[0].text;
    if (op != &op_index_set)
        return read_part(in, args[0].p, spec, at->items, at->n, site->read_once, out);
    if (!(dying & 1) || !write_part(in, args[0].p, spec, at, args[2]))
        return false;
    in->stats.in_place++;
    *out = args[0];
    return true;
}

/* Whether an element-wise operator certainly takes two such operands. */
static bool have_one_shape(const Value *a, const Value *b) {
    if (a->tag != VAL_TENSOR || b->tag != VAL_TENSOR)
        return a->tag == VAL_SCALAR || b->tag == VAL_SCALAR;
    const Tensor *t = a->p, *u = b->p;
    return t->rank == u->rank &&
           memcmp(t->shape, u->shape, sizeof t->shape[0] * (size_t)t->rank) == 0;
}

/* A call as it is written, whose items were handed over one by one. */
static bool apply_to_tuple(Interp *in, const Site *site, const Value *args, Span span, Value *out) {
    Site whole = *site;
    whole.spread = false;
    whole.nargs = 1;
    Value tuple = value_tuple(args, site->nargs);
    return apply_plainly(in, &whole, &tuple, 0, span, out);
}

/* What goes wrong with a kept plan goes wrong again below, where it is reported. */
bool apply_op(Interp *in, const Site *site, const Value *args, Span span, Value *out) {
    uint64_t dying = in->dying;
    in->dying = 0;
    if (site->group)
        return fuse_apply(in, site, args, dying, out);
    if (apply_to_part(in, site, args, dying, out))
        return true;
    if (site->only_checks && site->nargs == 2 && have_one_shape(args, args + 1)) {
        *out = value_unit();
        return true;
    }
    if (op_has_kept_plans(site->op)) {
        const Attrs *attrs = site->op->nattrs ? site->attrs : NULL; /* all that are none are one */
        PlanCall call = {.what = site->op,
                         .more = attrs,
                         .sizes = args + site->nargs,
                         .nsizes = site->nsizes,
                         .tuple = site->op->tuple,
                         .dying = dying,
                         .alone = site->alone};
        OpMaking making = {site, args};
        int32_t status = plans_run(in, &call, args, site->nargs, make_template, &making, out);
        if (status == KERNEL_DONE)
            return true;
        if (status == KERNEL_INTERRUPTED) {
            in->interrupt = 1;
            return false;
        }
    }
    return site->spread ? apply_to_tuple(in, site, args, span, out)
                        : apply_plainly(in, site, args, dying, span, out);
}

/* ---- tensor literals ------------------------------------------------------------------------- */

bool stack_tensors(Interp *in, Expr *origin, const Value *items, uint32_t n, Value *out) {
    DType t;
    if (n == 0) {
        if (!origin->type || !type_get_dtype(origin->type, &t))
            t = DT_F32;
        int64_t shape[1] = {0};
        *out = value_tensor(tensor_new(t, 1, shape));
        return true;
    }
    if (items[0].tag == VAL_SCALAR) {
        t = (DType)items[0].aux;
        int64_t shape[1] = {n};
        size_t size = dtype_size(t);
        Tensor *made = tensor_new(t, 1, shape);
        char *to = tensor_data(made);
        for (uint32_t i = 0; i < n; i++, to += size) {
            if (items[i].tag != VAL_SCALAR || items[i].aux != t)
                BUG("element %u of a tensor literal has tag %u", i, items[i].tag);
            if (dtype_is_float(t))
                elem_set_float(to, t, items[i].f);
            else
                elem_set_int(to, t, items[i].i);
        }
        *out = value_tensor(made);
        return true;
    }
    if (items[0].tag != VAL_TENSOR)
        BUG("a tensor literal of values with tag %u", items[0].tag);
    Tensor *first = items[0].p;
    if (first->rank >= TENSOR_MAX_RANK) {
        machine_fail(in, DIAG_R0313, "a tensor has at most %d axes", TENSOR_MAX_RANK);
        return false;
    }
    int64_t shape[TENSOR_MAX_RANK];
    shape[0] = n;
    memcpy(shape + 1, first->shape, (size_t)first->rank * sizeof(int64_t));
    Tensor *made = tensor_new(first->dtype, first->rank + 1, shape);
    size_t bytes = (size_t)first->count * dtype_size(first->dtype);
    char *to = tensor_data(made);
    for (uint32_t i = 0; i < n; i++, to += bytes) {
        Tensor *part = items[i].tag == VAL_TENSOR ? items[i].p : NULL;
        if (!part || part->dtype != first->dtype)
            BUG("element %u of a tensor literal is of another kind", i);
        if (!clash_check_element(in, items[0], items[i], i))
            return false;
        if (bytes)
            memcpy(to, tensor_data(tensor_contiguous(part)), bytes);
    }
    *out = value_tensor(made);
    return true;
}

/* ---- indexing -------------------------------------------------------------------------------- */

bool apply_index(Interp *in, Expr *origin, Value base, const Value *args, Value *out) {
    const char *spec = origin->attrs && origin->attrs->values ? origin->attrs->values[0].text : "i";
    if (base.tag == VAL_TENSOR && read_part(in, base.p, spec, args, origin->nargs, false, out))
        return true;
    if (base.tag == VAL_TUPLE) {
        const Tuple *t = base.p;
        int64_t n = t ? t->n : 0, i = origin->nargs == 1 ? args[0].i : -1;
        if (i < 0)
            i += n;
        if (i < 0 || i >= n)
            BUG("element %lld of a tuple of %lld", (long long)args[0].i, (long long)n);
        *out = t->items[i];
        return true;
    }
    Attrs *attrs = mem_new(Attrs);
    if (origin->attrs)
        *attrs = *origin->attrs;
    attrs->op = &op_index;
    Value few[FEW], *all = few;
    if (origin->nargs + 1 > FEW)
        all = mem_new_n(Value, origin->nargs + 1);
    all[0] = base;
    for (uint32_t i = 0; i < origin->nargs; i++)
        all[i + 1] = args[i];
    Site site = {.op = &op_index, .attrs = attrs, .nargs = origin->nargs + 1};
    return apply_op(in, &site, all, origin->span, out);
}

/* ---- what instructions leave to this file ---------------------------------------------------- */

static bool is_owned(const Interp *in, uint32_t owner) {
    return owner == OWN_ALWAYS ||
           (owner >= OWN_ITEM ? (uint64_t)in->owned_items >> (owner - OWN_ITEM) & 1
            : owner >= OWN_IF ? in->owned >> (owner - OWN_IF) & 1
                              : 0);
}

uint64_t owned_perhaps(const Interp *in, const Owners *o) {
    uint64_t owned = 0;
    for (uint64_t left = o->perhaps; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        owned |= (uint64_t)is_owned(in, o->owner[i]) << i;
    }
    return owned;
}

uint64_t dying_operands(const Interp *in, uint32_t owners) {
    return (uint64_t)is_owned(in, owners & 0xff) | (uint64_t)is_owned(in, owners >> 8) << 1;
}

uint64_t given_result(const Interp *in, uint32_t owner) {
    return (uint64_t)is_owned(in, owner) << OWN_PARAMS;
}

void drop_owned(const Interp *in, Value v, uint32_t owner) {
    if (v.tag == VAL_TENSOR && is_owned(in, owner))
        tensor_release(v.p);
}

bool apply_arith(Interp *in, Opcode op, Value l, Value r, Value *out) {
    const Expr *call = in->code->origin[in->pc - in->code->instrs];
    if (l.tag == VAL_STRING && r.tag == VAL_STRING) {
        const String *s = l.p, *t = r.p;
        int order = memcmp(s->text, t->text, s->len < t->len ? s->len : t->len);
        if (order == 0)
            order = s->len < t->len ? -1 : s->len > t->len;
        *out = value_bool(op == CODE_LT   ? order < 0
                          : op == CODE_LE ? order <= 0
                          : op == CODE_GT ? order > 0
                                          : order >= 0);
        return true;
    }
    bool unary = op == CODE_NEG || op == CODE_NOT;
    Value args[2];
    args[0] = l;
    if (!unary)
        args[1] = r;
    if (op >= CODE_LT && op <= CODE_GE) { /* comparisons have no derivative */
        args[0] = value_primal(l);
        args[1] = value_primal(r);
    }
    Site site = {.op = arith_ops[op], .nargs = unary ? 1 : 2, .call = call};
    uint32_t owners = instr_info(in->pc)->use == USE_TAKE ? in->pc->x : OWN_NOT;
    in->dying = dying_operands(in, owners);
    if (call->kind == EXPR_CALL && call->attrs)
        site.attrs = call->attrs;
    else
        site.attrs = attrs_defaults(site.op);
    return apply_op(in, &site, args, call->span, out);
}
