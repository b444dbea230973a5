/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters whose sizes grow (LANGUAGE §4, growing accumulators), where only an annotation shows it.
 *
 *     def grow(n, t) { if (n == 0) { t } else { grow(n - 1, concatenate((t, [1.0]))) } }
 *     foldl(fn (h, l) { tanh(h @@ l.w) }, x, layers)
 *
 * The size of a parameter without a type is the one that its body has for it: that of t cannot be its own and one more,
 * and that of h is a size of l. With `?` there the body takes any size, and compares. Whoever finds such a mismatch
 * notes the type that helps; an item that failed so is inferred once more with that annotation, and only if it then
 * checks is it taken. Otherwise what was said first stands, and names the annotation.
 *
 * Note [Parts of a parameter]. `def f(x, m, c) { if (c) { x[m] } else { x } }` checks as it stands: the shape of x is open,
 * and so becomes that of its part. But no call could have it, since a mask's size follows from its bools. Such a
 * parameter has an unknown shape, `x: Tensor[?, _]`, as every call's own argument may have. A recursion over its own
 * parts, as a decision tree grows, is the same, and so is one that joins, cuts or repeats it, as `go(concatenate((x, x)), n - 1)`
 * and `go(x[1:])` do: its sizes would all be 0. Where the body needs to know how many axes there are, as quicksort does, whose
 * pivot is `x[0]`, the parameter is a vector, `x: Tensor[(?,), _]`.
 *
 * Note [Results of a recursion]. In its own body a definition has one type, so without a written result all its calls
 * would give one size: that of `concatenate((go(l), go(r)))` would be twice an unknown. With the result written as it
 * was found, `-> Tensor[(?,), _]`, each call has its own. */
#include <string.h>

#include "parser/parser.h"
#include "types/infer/state.h"

enum { MAX_WIDENED = 4 }; /* so many parameters and results of an item */

/* The type as it would be written, `_` for a dtype that is open; NULL where a part of it has no name. */
static const char *text_of_type(Type *t) {
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag != TY_TENSOR)
        return type_has_vars(t) || (t->flags & TYPE_HAS_PARAMS) ? NULL : type_text(t);
    Str s = {0};
    Type *b = type_resolve(t->tensor.dtype);
    const char *dtype = b->tag == TY_DTYPE ? type_text(b) : "_";
    if (type_resolve(t->tensor.shape)->tag == TY_ANY)
        return fmt_text("Tensor[?, %s]", dtype);
    if (!type_get_rank(t, &rank, &dims))
        return NULL;
    str_add(&s, "Tensor[(");
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n;
        if (type_get_int(dims[i], &n))
            str_printf(&s, "%lld", (long long)n);
        else if (type_resolve(dims[i])->tag == TY_ANY)
            str_add(&s, "?");
        else
            return NULL;
        str_add(&s, i + 1 == rank && i ? "" : ", ");
    }
    str_printf(&s, "), %s]", dtype);
    return str_text(&s);
}

static AstType *written_type(Type *type) {
    Diags diags = {0};
    const char *text = text_of_type(type);
    return text ? parse_type(source_new("type", text, strlen(text), SOURCE_INTERNAL), &diags)
                : NULL;
}

static void note(Infer *I, AstType **place, Type *type) {
    AstType *written = I->widenings.len == MAX_WIDENED ? NULL : written_type(type), *vector = NULL;
    if (!written)
        return;
    type = type_resolve(type);
    if (type->tag == TY_TENSOR && type_resolve(type->tensor.shape)->tag == TY_ANY) {
        Type *size = type_any(KIND_DIM, NULL);
        vector = written_type(type_tensor(type_shape(&size, 1), type->tensor.dtype));
    }
    vec_push(&I->widenings, ((Widening){place, written, vector}));
}

void infer_note_widening(Infer *I, AstParam *param, Type *type) {
    if (!param->type && !param->pattern)
        note(I, &param->type, type);
}

void infer_widen_result(Infer *I, AstFn *fn, const Type *type) {
    type = type_resolve((Type *)type);
    if (type->tag == TY_FN && !fn->result && !I->keeps_parts && type_has(type->fn.result, TY_ANY))
        note(I, &fn->result, type->fn.result);
}

void infer_widen_sizes(Infer *I, AstFn *fn, const Type *type) {
    const Mismatch *m = solver_mismatch(I->s);
    type = type_resolve((Type *)type);
    if (m->kind != MISMATCH_OCCURS || !m->a || m->a->kind != KIND_DIM || type->tag != TY_FN)
        return;
    for (size_t i = 0; i < fn->params.len; i++) {
        uint32_t rank;
        Type **dims, *t = type_resolve(type->args[i]);
        if (t->tag != TY_TENSOR || !type_get_rank(t, &rank, &dims))
            continue;
        Type **sizes = mem_new_n(Type *, rank + 1);
        bool any = false;
        for (uint32_t k = 0; k < rank; k++) {
            bool own = type_resolve(dims[k]) == type_resolve(m->a);
            any |= own;
            sizes[k] = own ? type_any(KIND_DIM, NULL) : dims[k];
        }
        if (any)
            infer_note_widening(I, &fn->params.data[i],
                                type_tensor(type_shape(sizes, rank), t->tensor.dtype));
    }
}

void infer_widen_parts(Infer *I, AstFn *fn, const Scheme *scheme, bool recursive) {
    bool loops = recursive || I->open_state;
    const Type *type = type_resolve(scheme->type);
    for (size_t i = 0; i < fn->params.len && !I->keeps_parts && type->tag == TY_FN; i++) {
        Type *t = type_resolve(type->args[i]);
        Type *shape = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
        if (shape && (scheme_mixes_parts(scheme, shape) || scheme_resizes(scheme, shape, !loops)))
            infer_note_widening(I, &fn->params.data[i],
                                type_tensor(type_any(KIND_SHAPE, NULL), t->tensor.dtype));
    }
}

static void forget_what_was_said(Infer *I, size_t said, const Diags *first, size_t checks) {
    solver_drop_residuals(I->s, checks);
    I->diags->list.len = said;
    I->diags->errors = first->errors;
    I->diags->warnings = first->warnings;
}

/* Whether the item checks with the types that its places have by now, and asks for no more of them. */
static bool infer_again(Infer *I, bool (*infer)(Infer *I, void *item), void *item, size_t said,
                        const Diags *first, size_t checks) {
    vec_clear(&I->widenings);
    forget_what_was_said(I, said, first, checks);
    return infer(I, item) && !I->widenings.len;
}

bool infer_widening(Infer *I, bool (*infer)(Infer *I, void *item), void *item) {
    VEC(Widening) widened = {0};
    size_t said = I->diags->list.len, checks = solver_nresiduals(I->s);
    Diags first = *I->diags, now = {0};
    VEC(Diag *) kept = {0};
    vec_clear(&I->widenings);
    I->open_state = false;
    bool ok = infer(I, item), checked = ok;
    ok = ok && !I->widenings.len;
    for (size_t i = said; !ok && i < I->diags->list.len; i++)
        vec_push(&kept, I->diags->list.data[i]);
    now = *I->diags;
    for (bool vectors = true; !ok && vectors;) {
        while (!ok && I->widenings.len && widened.len < MAX_WIDENED) {
            for (size_t i = 0; i < I->widenings.len; i++) {
                vec_push(&widened, I->widenings.data[i]);
                *I->widenings.data[i].place = I->widenings.data[i].type;
            }
            ok = infer_again(I, infer, item, said, &first, checks);
        }
        vectors = false;
        for (size_t i = 0; i < widened.len && !ok; i++) {
            if (!widened.data[i].vector)
                continue;
            *widened.data[i].place = widened.data[i].vector;
            widened.data[i].vector = NULL;
            vectors = true;
        }
        if (vectors)
            ok = infer_again(I, infer, item, said, &first, checks);
    }
    for (size_t i = 0; i < widened.len; i++)
        *widened.data[i].place = NULL; /* the text has none */
    if (ok || !widened.len)
        return ok;
    if (checked) {
        forget_what_was_said(I, said, &first, checks);
        I->keeps_parts = true;
        ok = infer(I, item);
        I->keeps_parts = false;
        return ok;
    }
    I->diags->list.len = said;
    for (size_t i = 0; i < kept.len; i++)
        vec_push(&I->diags->list, kept.data[i]);
    I->diags->errors = now.errors;
    I->diags->warnings = now.warnings;
    return false;
}
