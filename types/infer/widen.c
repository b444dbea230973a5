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
 * parts, as a decision tree grows, is the same, and so is one that joins it with others, as `go(concatenate((x, x)), n - 1)`
 * does: its sizes would all be 0. */
#include <string.h>

#include "parser/parser.h"
#include "types/infer/state.h"

enum { MAX_WIDENED = 4 }; /* so many parameters of an item */

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

void infer_note_widening(Infer *I, AstParam *param, Type *type) {
    const char *text = param->type || param->pattern ? NULL : text_of_type(type);
    if (!text || I->widenings.len == MAX_WIDENED)
        return;
    Diags diags = {0};
    AstType *written = parse_type(source_new("type", text, strlen(text), 0), &diags);
    if (written)
        vec_push(&I->widenings, ((Widening){param, written}));
}

void infer_widen_parts(Infer *I, AstFn *fn, const Scheme *scheme) {
    const Type *type = type_resolve(scheme->type);
    for (size_t i = 0; i < fn->params.len && !I->keeps_parts && type->tag == TY_FN; i++) {
        Type *t = type_resolve(type->args[i]);
        Type *shape = t->tag == TY_TENSOR ? type_resolve(t->tensor.shape) : NULL;
        if (shape && (scheme_mixes_parts(scheme, shape) || scheme_adds_parts(scheme, shape)))
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

bool infer_widening(Infer *I, bool (*infer)(Infer *I, void *item), void *item) {
    VEC(AstParam *) widened = {0};
    size_t said = I->diags->list.len, checks = solver_nresiduals(I->s);
    Diags first = *I->diags, now = {0};
    VEC(Diag *) kept = {0};
    vec_clear(&I->widenings);
    bool ok = infer(I, item), checked = ok;
    ok = ok && !I->widenings.len;
    for (size_t i = said; !ok && i < I->diags->list.len; i++)
        vec_push(&kept, I->diags->list.data[i]);
    now = *I->diags;
    while (!ok && I->widenings.len && widened.len < MAX_WIDENED) {
        for (size_t i = 0; i < I->widenings.len; i++) {
            vec_push(&widened, I->widenings.data[i].param);
            I->widenings.data[i].param->type = I->widenings.data[i].type;
        }
        vec_clear(&I->widenings);
        forget_what_was_said(I, said, &first, checks);
        ok = infer(I, item) && !I->widenings.len;
    }
    for (size_t i = 0; i < widened.len; i++)
        widened.data[i]->type = NULL; /* the text has none */
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
