/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes as keys and as text. */
#include "ops/recipe/recipe.h"

#include "base/map.h"

#include <string.h>

static uint32_t result_count(const Recipe *r) {
    return r->kind == RECIPE_SCATTER ? 2 : r->noutputs;
}

/* What makes a recipe, in front of its code. */
static size_t head(const Recipe *r, unsigned char *out) {
    size_t n = 0;
    out[n++] = (unsigned char)r->kind;
    out[n++] = (unsigned char)r->combine;
    out[n++] = r->last;
    out[n++] = r->rank;
    out[n++] = r->nreduce;
    out[n++] = r->noperands;
    out[n++] = r->noutputs;
    out[n++] = r->acc_type;
    memcpy(out + n, &r->nbody, 2);
    memcpy(out + n + 2, &r->nepilogue, 2);
    n += 4;
    memcpy(out + n, r->in_types, r->noperands);
    n += r->noperands;
    memcpy(out + n, r->out_types, r->noutputs);
    n += r->noutputs;
    memcpy(out + n, r->results, result_count(r) * sizeof r->results[0]);
    n += result_count(r) * sizeof r->results[0];
    memcpy(out + n, r->parts, r->nparts * sizeof r->parts[0]);
    return n + r->nparts * sizeof r->parts[0];
}

enum {
    HEAD_MAX = 12 + 2 * RECIPE_MAX_OPERANDS + 4 * RECIPE_MAX_OPERANDS +
               RECIPE_MAX_PARTS * sizeof(RecipePart)
};

uint64_t recipe_hash(const Recipe *r) {
    unsigned char bytes[HEAD_MAX];
    uint64_t h = hash_bytes(bytes, head(r, bytes), 0x5265636970650001u);
    h = hash_bytes(r->body, r->nbody * sizeof(Scalar), h);
    return r->nepilogue ? hash_bytes(r->epilogue, r->nepilogue * sizeof(Scalar), h) : h;
}

bool recipe_equal(const Recipe *a, const Recipe *b) {
    unsigned char x[HEAD_MAX], y[HEAD_MAX];
    size_t n = head(a, x);
    if (a == b)
        return true;
    return head(b, y) == n && memcmp(x, y, n) == 0 &&
           memcmp(a->body, b->body, a->nbody * sizeof(Scalar)) == 0 &&
           (!a->nepilogue || memcmp(a->epilogue, b->epilogue, a->nepilogue * sizeof(Scalar)) == 0);
}

bool recipe_only_moves(const Recipe *r) {
    return r->kind == RECIPE_MAP && r->noutputs == 1 && r->nbody == 1 && r->body[0].op == SC_LOAD &&
           r->in_types[r->body[0].a] == r->out_types[0];
}

/* How the fields of an instruction read. */
typedef enum Shape {
    S_IMM,
    S_NUMBER,
    S_LOAD,
    S_LOAD_AT,
    S_LOAD_IF,
    S_NONE,
    S_1,
    S_2,
    S_3,
    S_FROM,
    S_FN1,
    S_FN2,
    S_FN_IF
} Shape;
static const struct {
    const char *name;
    Shape shape;
} scalar_ops[SCALAR_OP_COUNT] = {
    [SC_CONST] = {"const", S_IMM},
    [SC_PARAM] = {"param", S_NUMBER},
    [SC_IOTA] = {"iota", S_NUMBER},
    [SC_LOAD] = {"load", S_LOAD},
    [SC_LOAD_AT] = {"load", S_LOAD_AT},
    [SC_LOAD_IF] = {"load", S_LOAD_IF},
    [SC_ACC] = {"acc", S_NONE},
    [SC_CHECK] = {"check", S_1},
    [SC_ADD] = {"add", S_2},
    [SC_SUB] = {"sub", S_2},
    [SC_MUL] = {"mul", S_2},
    [SC_FMA] = {"fma", S_3},
    [SC_DIV] = {"div", S_2},
    [SC_REM] = {"rem", S_2},
    [SC_NEG] = {"neg", S_1},
    [SC_ABS] = {"abs", S_1},
    [SC_SQRT] = {"sqrt", S_1},
    [SC_FLOOR] = {"floor", S_1},
    [SC_CEIL] = {"ceil", S_1},
    [SC_TRUNC] = {"trunc", S_1},
    [SC_ROUND] = {"round", S_1},
    [SC_MIN] = {"min", S_2},
    [SC_MAX] = {"max", S_2},
    [SC_AND] = {"and", S_2},
    [SC_OR] = {"or", S_2},
    [SC_XOR] = {"xor", S_2},
    [SC_NOT] = {"not", S_1},
    [SC_SHL] = {"shl", S_2},
    [SC_SHR] = {"shr", S_2},
    [SC_EQ] = {"eq", S_2},
    [SC_NE] = {"ne", S_2},
    [SC_LT] = {"lt", S_2},
    [SC_LE] = {"le", S_2},
    [SC_GT] = {"gt", S_2},
    [SC_GE] = {"ge", S_2},
    [SC_SELECT] = {"select", S_3},
    [SC_CAST] = {"cast", S_FROM},
    [SC_BITS] = {"bits", S_FROM},
    [SC_CALL1] = {"call", S_FN1},
    [SC_CALL2] = {"call", S_FN2},
    [SC_CALL_IF] = {"call", S_FN_IF},
};

static const char *const math_names[MATH_FN_COUNT] = {
#define X(e, name, n) #name,
    MATH_FNS(X)
#undef X
};

static void print_imm(Str *out, const Scalar *c) {
    if (dtype_is_float((DType)c->type))
        str_add_float(out, c->imm.f, c->type == DT_F32 ? 32 : 64);
    else
        str_printf(out, "%lld", (long long)c->imm.i);
}

static void print_code(Str *out, const Scalar *code, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const Scalar *c = &code[i];
        str_printf(out, "  %%%u = %s", i, scalar_ops[c->op].name);
        if (c->op != SC_CHECK)
            str_printf(out, " %s", dtype_info[c->type].name);
        switch (scalar_ops[c->op].shape) {
        case S_IMM:
            str_add_char(out, ' ');
            print_imm(out, c);
            break;
        case S_NUMBER: str_printf(out, " #%d", c->a); break;
        case S_LOAD: str_printf(out, " in%d", c->a); break;
        case S_LOAD_AT: str_printf(out, " in%d + %%%d", c->a, c->b); break;
        case S_LOAD_IF:
            str_printf(out, " in%d + %%%d if %%%d else ", c->a, c->b, c->c);
            print_imm(out, c);
            break;
        case S_NONE: break;
        case S_1: str_printf(out, " %%%d", c->a); break;
        case S_2: str_printf(out, " %%%d, %%%d", c->a, c->b); break;
        case S_3: str_printf(out, " %%%d, %%%d, %%%d", c->a, c->b, c->c); break;
        case S_FROM: str_printf(out, " %%%d from %s", c->a, dtype_info[c->from].name); break;
        case S_FN1: str_printf(out, " %s(%%%d)", math_names[c->imm.i], c->a); break;
        case S_FN_IF:
            str_printf(out, " %s(%%%d) if %%%d else %%%d", math_names[c->imm.i], c->a, c->b, c->c);
            break;
        case S_FN2: str_printf(out, " %s(%%%d, %%%d)", math_names[c->imm.i], c->a, c->b); break;
        }
        str_add_char(out, '\n');
    }
}

static void print_types(Str *out, const uint8_t *types, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        str_printf(out, "%s%s", i ? ", " : "", dtype_info[types[i]].name);
}

static void print_rows(Str *out, const Recipe *r) {
    Recipe part;
    str_printf(out, "rows of %d parts\n", r->nparts);
    for (int k = 0; k < r->nparts; k++) {
        recipe_part(r, k, &part);
        recipe_print(out, &part);
    }
}

void recipe_print(Str *out, const Recipe *r) {
    static const char *const kinds[] = {"map", "reduce", "product", "scan", "scatter"};
    static const char *const combines[] = {"none", "sum", "prod",   "max",   "min",
                                           "all",  "any", "argmax", "argmin"};
    if (r->kind == RECIPE_ROWS) {
        print_rows(out, r);
        return;
    }
    str_printf(out, "%s rank %d", kinds[r->kind], r->rank);
    if (r->nreduce)
        str_printf(out, " over %d", r->nreduce);
    if (r->kind != RECIPE_MAP)
        str_printf(out, " by %s%s in %s", r->last ? "last " : "", combines[r->combine],
                   dtype_info[r->acc_type].name);
    str_add(out, " (");
    print_types(out, r->in_types, r->noperands);
    str_add(out, ") -> ");
    print_types(out, r->out_types, r->noutputs);
    str_add(out, "\n");
    print_code(out, r->body, r->nbody);
    str_add(out, "  result");
    for (uint32_t i = 0; i < result_count(r); i++)
        str_printf(out, "%s %%%d", i ? "," : "", r->results[i]);
    str_add(out, "\n");
    if (r->nepilogue) {
        str_add(out, " epilogue\n");
        print_code(out, r->epilogue, r->nepilogue);
    }
}

/* ---- axes ------------------------------------------------------------------------------------ */

static bool can_merge(const KernelArgs *a, int nin, int nout, int outer, int inner) {
    for (int i = 0; i < nin; i++)
        if (a->in_strides[i][outer] != a->in_strides[i][inner] * a->extents[inner])
            return false;
    for (int i = 0; i < nout; i++)
        if (a->out_strides[i][outer] != a->out_strides[i][inner] * a->extents[inner])
            return false;
    return true;
}

int kernel_group_axes(const KernelArgs *args, int nin, int nout, AxisRange range, int *group) {
    int n = 0, last = -1; /* last: an axis that the next one may join */
    for (int axis = range.begin; axis < range.end; axis++) {
        bool pinned = range.pinned >> axis & 1, alone = pinned || range.indexed >> axis & 1;
        group[axis] = -1;
        if (args->extents[axis] == 1 && !pinned)
            continue;
        bool joins = !alone && last >= 0 && can_merge(args, nin, nout, last, axis);
        group[axis] = joins ? n - 1 : n++;
        last = alone ? -1 : axis;
    }
    return n;
}
