/* SPDX-License-Identifier: Apache-2.0 */
/* Small integers that a graph computes: the sizes of its tensors, and what it makes of them before they are a shape, a
 * range or a width of padding. A node on such integers is computed here, element by element; an element that is a size
 * with a name stays an expression. */
#include <string.h>

#include "interchange/translator.h"

Num num_int(int64_t n) { return (Num){true, n, NULL, false}; }

Num num_plus(int64_t a, int64_t b) {
    int64_t v;
    return __builtin_add_overflow(a, b, &v) ? num_unknown() : num_int(v);
}

Num num_times(int64_t a, int64_t b) {
    int64_t v;
    return __builtin_mul_overflow(a, b, &v) ? num_unknown() : num_int(v);
}
Num num_text(const char *text) { return (Num){false, 0, text, false}; }
Num num_size(const char *text) { return (Num){false, 0, text, true}; }
Num num_unknown(void) { return (Num){false, 0, NULL, false}; }

const char *num_print(Num n) { return n.known ? fmt_text("%lld", (long long)n.n) : n.text; }

bool num_is(Num a, Num b) {
    return a.known ? b.known && a.n == b.n : a.text && b.text && strcmp(a.text, b.text) == 0;
}

const char *nums_print(const Num *nums, size_t n) {
    Str out = {0};
    str_add(&out, "[");
    for (size_t i = 0; i < n; i++) {
        const char *text = num_print(nums[i]);
        if (!text)
            return NULL;
        str_printf(&out, "%s%s", i ? ", " : "", text);
    }
    str_add(&out, "]");
    return str_text(&out);
}

/* The number of elements; -1 where it is not known, or is more than is kept. */
static int64_t count_elements(const Val *v) {
    int64_t count = 1;
    for (int i = 0; i < v->rank; i++) {
        int64_t size = v->dims[i].n;
        if (!v->dims[i].known || size < 0 || (size && count > MOST_NUMS / size))
            return -1;
        count *= size;
    }
    return v->kind != KIND_OF_TENSOR || v->rank < 0 ? -1 : count;
}

bool val_has_nums(const Val *v) { return v->has_nums && count_elements(v) == (int64_t)v->nums.len; }

void nums_take_strided(Val *out, const Val *in, int64_t offset, const int64_t *strides) {
    int64_t count = count_elements(out), size = (int64_t)in->nums.len;
    Nums nums = {0};
    if (!val_has_nums(in) || count < 0)
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, at = offset;
        for (int axis = out->rank; axis-- > 0;) {
            at += rest % out->dims[axis].n * strides[axis];
            rest /= out->dims[axis].n;
        }
        if (at < 0 || at >= size)
            return;
        vec_push(&nums, in->nums.data[at]);
    }
    out->nums = nums;
    out->has_nums = true;
}

void nums_strides(const Val *v, int64_t *strides) {
    int64_t stride = val_has_nums(v);
    for (int axis = v->rank; axis-- > 0; stride = stride ? stride * v->dims[axis].n : 0)
        strides[axis] = stride;
}

void nums_take_all(Val *out, const Val *in) {
    if (val_has_nums(in) && count_elements(out) == (int64_t)in->nums.len) {
        out->nums = in->nums;
        out->has_nums = true;
    }
}

void nums_concatenate(Val *out, Val *const *in, uint32_t n, int64_t axis) {
    int64_t outer = 1;
    Nums nums = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!val_has_nums(in[i]) || !in[i]->nums.len)
            return;
    for (int64_t i = 0; i < axis; i++)
        outer *= in[0]->dims[i].n;
    for (int64_t block = 0; block < outer; block++)
        for (uint32_t i = 0; i < n; i++) {
            int64_t each = (int64_t)in[i]->nums.len / outer;
            for (int64_t k = 0; k < each; k++)
                vec_push(&nums, in[i]->nums.data[block * each + k]);
        }
    if (count_elements(out) == (int64_t)nums.len) {
        out->nums = nums;
        out->has_nums = true;
    }
}

/* ---- operators on elements ------------------------------------------------------------------- */

static Num truth(bool b) { return num_int(b); }

/* Sums, products and quotients of sizes stay expressions: (batch * 4). */
static Num fold_symbolic(const char *op, Num a, Num b) {
    static const struct {
        const char *op, *sign;
    } signs[] = {{"Add", "+"}, {"Sub", "-"}, {"Mul", "*"}};
    const char *x = num_print(a), *y = num_print(b);
    bool is_size = (a.known ? a.n >= 0 : a.is_size) && (b.known ? b.n >= 0 : b.is_size);
    if (!x || !y)
        return num_unknown();
    if (strcmp(op, "Equal") == 0) {
        if (num_is(a, b))
            return truth(true);
        if ((a.known && a.n < 0 && b.is_size) || (b.known && b.n < 0 && a.is_size))
            return truth(false);
        return num_unknown();
    }
    if (strcmp(op, "Mul") == 0 || strcmp(op, "Div") == 0) {
        if (b.known && b.n == 1)
            return a;
        if (op[0] == 'M' && a.known && a.n == 1)
            return b;
    }
    if (strcmp(op, "Div") == 0 && is_size && b.known && b.n > 0) /* truncated is floored */
        return num_size(fmt_text("(%s / %s)", x, y));
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(op, signs[i].op) == 0) {
            Num out = num_text(fmt_text("(%s %s %s)", x, signs[i].sign, y));
            out.is_size = is_size && op[0] != 'S';
            return out;
        }
    return num_unknown();
}

static Num fold_two(const char *op, Num a, Num b) {
    int64_t v;
    if (!a.known || !b.known)
        return fold_symbolic(op, a, b);
    if (strcmp(op, "Add") == 0)
        return num_plus(a.n, b.n);
    if (strcmp(op, "Sub") == 0)
        return __builtin_sub_overflow(a.n, b.n, &v) ? num_unknown() : num_int(v);
    if (strcmp(op, "Mul") == 0)
        return num_times(a.n, b.n);
    if (strcmp(op, "Div") == 0)
        return b.n == 0 || b.n == -1 ? num_unknown() : num_int(a.n / b.n);
    if (strcmp(op, "Mod") == 0) {
        if (b.n == 0 || b.n == -1)
            return num_unknown();
        v = a.n % b.n;
        return num_int(v && (v < 0) != (b.n < 0) ? v + b.n : v);
    }
    if (strcmp(op, "Max") == 0)
        return a.n > b.n ? a : b;
    if (strcmp(op, "Min") == 0)
        return a.n < b.n ? a : b;
    if (strcmp(op, "Equal") == 0)
        return truth(a.n == b.n);
    if (strcmp(op, "Less") == 0)
        return truth(a.n < b.n);
    if (strcmp(op, "LessOrEqual") == 0)
        return truth(a.n <= b.n);
    if (strcmp(op, "Greater") == 0)
        return truth(a.n > b.n);
    if (strcmp(op, "GreaterOrEqual") == 0)
        return truth(a.n >= b.n);
    if (strcmp(op, "And") == 0)
        return truth(a.n && b.n);
    if (strcmp(op, "Or") == 0)
        return truth(a.n || b.n);
    return num_unknown();
}

static Num fold_element(const char *op, const Num *in, uint32_t n) {
    if (n == 1) {
        if (strcmp(op, "Neg") == 0 && in[0].known && in[0].n != INT64_MIN)
            return num_int(-in[0].n);
        if (strcmp(op, "Not") == 0 && in[0].known)
            return truth(!in[0].n);
        return num_unknown();
    }
    if (strcmp(op, "Where") == 0)
        return n == 3 && in[0].known ? in[in[0].n ? 1 : 2] : num_unknown();
    Num out = in[0];
    for (uint32_t i = 1; i < n; i++)
        out = fold_two(op, out, in[i]);
    return out;
}

void nums_fold(const Node *n, Val *out, Val *const *in, uint32_t nin) {
    enum { MOST_OPERANDS = 8 };
    int64_t count = count_elements(out), strides[MOST_OPERANDS][ONNX_MAX_RANK];
    Nums nums = {0};
    if (nin > MOST_OPERANDS || count < 0 ||
        (out->dtype != DT_I64 && out->dtype != DT_I32 && out->dtype != DT_BOOL))
        return;
    for (uint32_t i = 0; i < nin; i++) {
        int64_t own[ONNX_MAX_RANK];
        if (!val_has_nums(in[i]))
            return;
        nums_strides(in[i], own);
        for (int axis = 0; axis < out->rank; axis++) {
            int at = axis - (out->rank - in[i]->rank);
            strides[i][axis] = at < 0 || in[i]->dims[at].n == 1 ? 0 : own[at];
        }
    }
    for (int64_t k = 0; k < count; k++) {
        Num parts[MOST_OPERANDS] = {num_unknown()};
        for (uint32_t i = 0; i < nin; i++) {
            int64_t rest = k, at = 0;
            for (int axis = out->rank; axis-- > 0; rest /= out->dims[axis].n)
                at += rest % out->dims[axis].n * strides[i][axis];
            if (at >= (int64_t)in[i]->nums.len)
                return;
            parts[i] = in[i]->nums.data[at];
        }
        Num v = fold_element(n->node->op, parts, nin);
        if (!num_print(v) || (v.known && out->dtype == DT_I32 && v.n != (int32_t)v.n))
            return;
        vec_push(&nums, v);
    }
    out->nums = nums;
    out->has_nums = true;
}

void nums_cast(Val *out, const Val *in) {
    Nums nums = {0};
    if (!val_has_nums(in))
        return;
    for (size_t i = 0; i < in->nums.len; i++) {
        Num v = in->nums.data[i];
        if (out->dtype == DT_BOOL && !v.known)
            return;
        if (out->dtype == DT_BOOL)
            v = truth(v.n != 0);
        else if (out->dtype != DT_I64 && (out->dtype != DT_I32 || (v.known && v.n != (int32_t)v.n)))
            return;
        vec_push(&nums, v);
    }
    out->nums = nums;
    out->has_nums = true;
}
