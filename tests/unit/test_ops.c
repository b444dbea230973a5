/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the table of operators: every field is there, and on concrete arguments the type relation
 * says what the shape function says. */
#include "base/diag.h"
#include "ops/ops.h"
#include "tests/unit/check.h"
#include "types/solve/solver.h"

#include <stdlib.h>

#define FAIL(...) check_fail(__FILE__, __LINE__, __VA_ARGS__)

/* ---- fields ---------------------------------------------------------------------------------- */

static int documented_args(const char *args) {
    if (!*args)
        return 0;
    int n = 1;
    for (; *args; args++)
        n += *args == ',';
    return n;
}

TEST(fields) {
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (i && strcmp(op_at(i - 1)->name, op->name) >= 0)
            FAIL("%s stands after %s", op->name, op_at(i - 1)->name);
        if (!op->args || (op->nargs >= 0 && documented_args(op->args) != op->nargs))
            FAIL("%s: its arguments are not documented", op->name);
        if (!op->relation || !op->shape || !op->dtypes)
            FAIL("%s: relation, shape or dtypes are missing", op->name);
        if (rel_find(sym_intern(op->relation->name)) != op->relation)
            FAIL("%s: `%s` of a `where` is another relation", op->name, op->relation->name);
        if (!op->lower == !op->eval || !op->eval != !op->reference_only)
            FAIL("%s: it needs a plan, or an evaluation and the reason for it", op->name);
        if (!op->doc || strlen(op->doc) < 10 || !op->example || !op->example_result)
            FAIL("%s: documentation or example is missing", op->name);
        if (!strstr(op->example, op->name) && !strstr(op->example, "["))
            FAIL("%s: its example does not show it", op->name);
        if (!strstr(op->example_result, " : "))
            FAIL("%s: the example's result has no type", op->name);
        CHECK(op_find(sym_intern(op->name)) == op);
        for (int k = 0; k < op->nattrs; k++) {
            if (!op->attrs[k].doc || !*op->attrs[k].doc)
                FAIL("%s: attribute %s is not documented", op->name, op->attrs[k].name);
            CHECK_INT(op_attr_index(op, op->attrs[k].name), k);
            static const char *const texts[] = {"equation",   "spec",       "compiler",
                                                "debug_func", "src_layout", "dst_layout"};
            bool free_text = strstr(op->attrs[k].name, "virtual_device") != NULL;
            for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
                free_text = free_text || !strcmp(op->attrs[k].name, texts[j]);
            if (op->attrs[k].type == AT_STRING && !free_text &&
                !(op->choices && strstr(op->choices, fmt_text("%s: ", op->attrs[k].name))))
                FAIL("%s: attribute %s may be any text", op->name, op->attrs[k].name);
        }
    }
    CHECK(op_find(sym_intern("no.such.operator")) == NULL);
}

/* ---- relation and shape function ------------------------------------------------------------- */

typedef struct Sample {
    const char *name, *attr, *value;
} Sample;

/* Attributes tried beside the defaults; those that an operator requires. */
static const Sample samples[] = {
    {"arange", "dtype", "float64"},  {"broadcast_to", "shape", "[2, 3]"},
    {"broadcast_to", "shape", "[]"}, {"cast", "dtype", "float16"},
    {"clip", "a_max", "1.0"},        {"full", "shape", "[2, 0]"},
    {"full", "dtype", "int8"},       {"ones", "shape", "[3]"},
    {"zeros", "shape", "[]"},
};
static const char *const axis_samples[] = {"None", "[0]", "[-1]", "[0, 1]", "[]", "[1, 1]", "[2]"};

static const char *sample_of(const Op *op, const char *attr, uint32_t pick) {
    const char *found = NULL;
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (strcmp(samples[i].name, op->name) == 0 && strcmp(samples[i].attr, attr) == 0 &&
            n++ <= pick % 2)
            found = samples[i].value;
    return found;
}

static const Attrs *make_attrs(const Op *op, uint32_t pick) {
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++) {
        const AttrSpec *spec = &op->attrs[i];
        const char *text = sample_of(op, spec->name, pick);
        if (!text)
            text = spec->initial;
        if (op->relation->nargs <= 3 && spec->type == AT_INTS_OPT &&
            strcmp(spec->name, "axis") == 0)
            text = axis_samples[pick % 7];
        if (spec->type == AT_BOOL && strcmp(spec->name, "select_last_index") != 0 && pick % 3 == 1)
            text = "True";
        if (!text && spec->type == AT_FLOAT)
            text = "0.5";
        if (!text)
            return NULL;
        values[i] = attr_parse(text);
    }
    Attrs *attrs = mem_new(Attrs);
    attrs->op = op;
    attrs->values = values;
    return attrs;
}

static uint32_t seed = 7;
static uint32_t random_below(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 16) % n;
}

static Tensor *random_argument(DType t, int like_rank, const int64_t *like) {
    int64_t shape[3] = {0};
    int rank = (int)random_below(4);
    bool near = like && random_below(4) != 0; /* shapes that go together */
    if (near)
        rank = (int)random_below((uint32_t)like_rank + 1);
    for (int i = 0; i < rank; i++) {
        shape[i] = random_below(4);
        if (near)
            shape[i] = random_below(3) ? like[like_rank - rank + i] : 1;
    }
    return tensor_new_zero(t, rank, shape);
}

static Type *type_of(DType dtype, int rank, const int64_t *shape) {
    Type **dims = mem_new_n(Type *, rank + 1);
    for (int i = 0; i < rank; i++)
        dims[i] = type_dim_int(shape[i], NULL);
    return type_tensor(type_shape(dims, (uint32_t)rank), type_dtype(dtype));
}

/* Each known size of the type is that of the output. */
static bool type_is(Type *t, const OutSpec *out) {
    DType dtype;
    uint32_t rank;
    Type **dims;
    t = type_resolve(t);
    if (t->tag != TY_TENSOR || !type_get_dtype(t, &dtype) || dtype != out->dtype ||
        !type_get_rank(t, &rank, &dims) || (int)rank != out->rank)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n;
        if (type_get_int(dims[i], &n) ? n != out->shape[i] : type_resolve(dims[i])->tag != TY_ANY)
            return false;
    }
    return true;
}

static DType pick_dtype(DTypeSet set, uint32_t pick) {
    for (uint32_t i = 0;; i++)
        if (set & DT_BIT((i + pick) % DTYPE_COUNT))
            return (DType)((i + pick) % DTYPE_COUNT);
}

static void compare(const Op *op, const Attrs *attrs, Tensor **in, uint32_t nin) {
    Diags run_diags = {0}, type_diags = {0};
    OutSpec out[OP_MAX_OUTPUTS];
    OpCall call = {.op = op, .attrs = attrs, .nin = nin, .in = in, .diags = &run_diags};
    int n = op->shape(&call, out);
    CHECK((n < 0) == (run_diags.errors > 0));

    Solver *s = solver_new(&type_diags);
    Type **args = mem_new_n(Type *, nin + 1);
    for (uint32_t i = 0; i < nin; i++)
        args[i] = type_of(in[i]->dtype, in[i]->rank, in[i]->shape);
    args[nin] = solver_var(s, KIND_TYPE);
    Relation *r = solver_post(s, op->relation, args, nin + 1, attrs, span_none());
    r->op = op;
    bool ok = solver_run(s);
    CHECK(ok == (type_diags.errors == 0));

    Str text = {0};
    str_printf(&text, "%s(", op->name);
    for (uint32_t i = 0; i < nin; i++)
        str_printf(&text, "%s%s", i ? ", " : "", type_text(args[i]));
    attrs_print(&text, attrs);
    str_printf(&text, ") : %s", type_text(args[nin]));
    bool by_values = op->shape_mode == SHAPE_OF_DATA;
    if (ok && n < 0 && !by_values)
        FAIL("%s: the relation holds, the shape function says %s", str_text(&text),
             run_diags.list.data[0]->message);
    if (!ok && n >= 0)
        FAIL("%s: the shape function takes it, the relation says %s", str_text(&text),
             type_diags.list.data[0]->message);
    if (ok && n == 1 && !op->tuple && !type_is(args[nin], &out[0]))
        FAIL("%s: the relation and the shape function differ", str_text(&text));
    if (ok && n >= 0 && r->status != REL_DONE)
        FAIL("%s: the relation still waits", str_text(&text));
}

TEST(relations_agree_with_shapes) {
    for (size_t i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (strchr(op->args, '(') || op->nargs < 0 || strchr(op->args, '='))
            continue;
        for (uint32_t pick = 0; pick < 200; pick++) {
            const Attrs *attrs = make_attrs(op, pick);
            if (!attrs)
                break;
            Tensor *in[8];
            DType dtype = pick_dtype(op->dtypes, pick);
            for (int k = 0; k < op->nargs; k++) {
                DType t = dtype;
                if (k == 0 && strcmp(op->name, "where") == 0)
                    t = DT_BOOL;
                if (pick % 10 == 9 && k == op->nargs - 1)
                    t = (DType)(pick / 10 % DTYPE_COUNT); /* sometimes the wrong one */
                in[k] = random_argument(t, k ? in[0]->rank : 0, k ? in[0]->shape : NULL);
            }
            compare(op, attrs, in, (uint32_t)op->nargs);
        }
    }
}

/* ---- sizes that are not known ---------------------------------------------------------------- */

static Solver *solver;
static Diags diags;

static const char *relate(const char *name, const char *const *attrs, Type **args, uint32_t n) {
    const Op *op = op_find(sym_intern(name));
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    for (int i = 0; i < op->nattrs; i++)
        values[i] = attr_parse(attrs && attrs[i] ? attrs[i] : op->attrs[i].initial);
    Attrs *a = mem_new(Attrs);
    a->op = op;
    a->values = values;
    Type **all = mem_new_n(Type *, n + 1);
    memcpy(all, args, sizeof(Type *) * n);
    all[n] = solver_var(solver, KIND_TYPE);
    Relation *r = solver_post(solver, op->relation, all, n + 1, a, span_none());
    r->op = op;
    if (!solver_run(solver))
        return "error";
    return type_text(all[n]);
}

TEST(symbolic_sizes) {
    diags = (Diags){0};
    solver = solver_new(&diags);
    Type *n = type_param(sym_intern("n"), KIND_DIM), *f32 = type_dtype(DT_F32);
    Type *x = type_tensor(type_shape((Type *[]){n, type_dim_int(3, NULL)}, 2), f32);
    Type *any = type_tensor(type_shape((Type *[]){type_any(KIND_DIM, NULL)}, 1), f32);
    CHECK_TEXT(relate("exp", NULL, &x, 1), "Tensor[(n, 3), float32]");
    CHECK_TEXT(relate("isnan", NULL, &x, 1), "Tensor[(n, 3), bool]");
    CHECK_TEXT(relate("sum", (const char *[]){"[1]", "True", NULL}, &x, 1),
               "Tensor[(n, 1), float32]");
    CHECK_TEXT(relate("argmax", (const char *[]){"[0]", NULL, NULL, NULL}, &x, 1),
               "Tensor[(3,), int32]");
    CHECK_TEXT(relate("cast", (const char *[]){"int8"}, &x, 1), "Tensor[(n, 3), int8]");
    CHECK_TEXT(relate("exp", NULL, &any, 1), "Tensor[(?,), float32]");
    CHECK_TEXT(relate("where", NULL, (Type *[]){type_scalar(DT_BOOL), x, type_scalar(DT_F32)}, 3),
               "Tensor[(n, 3), float32]");
}

/* What is unknown about the arguments is learned from the operator. */
TEST(relations_solve_backwards) {
    diags = (Diags){0};
    solver = solver_new(&diags);
    Type *a = solver_var(solver, KIND_TYPE), *b = solver_var(solver, KIND_TYPE);
    relate("sigmoid", NULL, &a, 1);
    CHECK(type_resolve(a)->tag == TY_TENSOR);
    Type *x = type_of(DT_F32, 2, (int64_t[]){4, 3});
    CHECK_TEXT(relate("variance", (const char *[]){"[1]", NULL, NULL, NULL}, (Type *[]){x, b}, 2),
               "Tensor[(4,), float32]");
    CHECK_TEXT(type_text(b), "Tensor[(4, 1), float32]");
    Type *fill = solver_var(solver, KIND_TYPE);
    CHECK_TEXT(relate("full_like", NULL, (Type *[]){x, fill}, 2), "Tensor[(4, 3), float32]");
    uint32_t rank;
    Type **dims;
    CHECK(type_get_rank(fill, &rank, &dims) && rank == 0);
}

/* ---- running --------------------------------------------------------------------------------- */

TEST(mistakes_are_reported) {
    static const struct {
        const char *name, *code;
        DType x, y;
        int64_t n, m;
    } cases[] = {{"add", "R0312", DT_F32, DT_F32, 2, 3},
                 {"add", "R0311", DT_F32, DT_F64, 2, 2},
                 {"sqrt", "R0310", DT_I32, DT_I32, 2, 2},
                 {"divide", "R0601", DT_I8, DT_I8, 2, 2},
                 {"max", "R0318", DT_F32, DT_F32, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Diags d = {0};
        const Op *op = op_find(sym_intern(cases[i].name));
        Tensor *in[] = {tensor_new_zero(cases[i].x, 1, &cases[i].n),
                        tensor_new_zero(cases[i].y, 1, &cases[i].m)},
               *out[OP_MAX_OUTPUTS];
        OpCall call = {.op = op,
                       .attrs = attrs_defaults(op),
                       .nin = (uint32_t)op->nargs,
                       .in = in,
                       .diags = &d};
        CHECK_INT(op_run(&call, out, NULL, NULL), OP_FAILED);
        CHECK_INT(d.errors, 1);
        if (d.errors)
            CHECK_TEXT(diag_get_info(d.list.data[0]->code)->name, cases[i].code);
    }
}

int main(void) {
    RUN(fields);
    RUN(relations_agree_with_shapes);
    RUN(symbolic_sizes);
    RUN(relations_solve_backwards);
    RUN(mistakes_are_reported);
    return check_result();
}
