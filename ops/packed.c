/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/packed.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ops/relate/signature.h"
#include "ops/relate/solve.h"

enum { GROUPS = 'G', CHANNELS = 'O' }; /* of a weight */

/* ---- layouts ---------------------------------------------------------------------------------- */

int64_t layout_block(const Layout *l, char letter) {
    for (int i = 0; i < l->rank; i++)
        if (l->axes[i].letter == letter && l->axes[i].block)
            return l->axes[i].block;
    return 1;
}

int layout_find(const Layout *l, char letter, bool block) {
    for (int i = 0; i < l->rank; i++)
        if (l->axes[i].letter == letter && (l->axes[i].block != 0) == block)
            return i;
    return -1;
}

const char *layout_parse(const char *text, Layout *l) {
    *l = (Layout){0};
    for (const char *p = text; *p; p++) {
        char *end;
        int64_t n = isdigit((unsigned char)*p) ? strtoll(p, &end, 10) : 0;
        p = n ? end : p;
        bool small = islower((unsigned char)*p);
        char letter = (char)toupper((unsigned char)*p);
        if (l->rank == TENSOR_MAX_RANK || !isalpha((unsigned char)*p) || small != (n > 0) ||
            n > INT32_MAX || layout_find(l, letter, small) >= 0)
            return "a layout is letters, of which small ones follow their size, each once: NCHW8c";
        l->axes[l->rank++] = (LayoutAxis){letter, n};
    }
    for (int i = 0; i < l->rank; i++)
        if (layout_find(l, l->axes[i].letter, false) < 0)
            return "a layout with a block has its axis too: NCHW8c";
    return l->rank ? NULL : "a layout has axes";
}

/* The axes of a tensor, as many as its layout has. */
typedef struct Axes {
    int64_t shape[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];
} Axes;

static Axes axes_of(const Tensor *t) {
    Axes a = {{0}, {0}};
    memcpy(a.shape, t->shape, sizeof *a.shape * (size_t)t->rank);
    memcpy(a.strides, t->strides, sizeof *a.strides * (size_t)t->rank);
    return a;
}

/* Each place of the result is one of x: along an axis its number is that of its block times the block's size
 * plus the place within it. */
static void plan_axes(Plan *plan, Tensor *out, const Axes *out_axes, const Tensor *x,
                      const Axes *x_axes, const Layout *from, const Layout *to) {
    int64_t none[RECIPE_MAX_AXES] = {0};
    StepBuilder s;
    step_begin(&s, plan, RECIPE_MAP, to->rank, out_axes->shape);
    ScalarBuilder *b = &s.body;
    Sc offset = sc_i64(b, 0);
    for (int i = 0; i < from->rank; i++) {
        char letter = from->axes[i].letter;
        int inner = layout_find(to, letter, true);
        Sc n = sc_iota(b, layout_find(to, letter, false));
        if (inner >= 0)
            n = sc_add(b, sc_mul(b, n, sc_i64(b, layout_block(to, letter))), sc_iota(b, inner));
        int64_t block = layout_block(from, letter);
        if (from->axes[i].block)
            n = sc_rem(b, n, sc_i64(b, block));
        else if (block > 1)
            n = sc_div(b, n, sc_i64(b, block));
        offset = sc_add(b, offset, sc_mul(b, n, step_iparam(&s, b, DT_I64, x_axes->strides[i])));
    }
    sc_load_at(b, step_in_strided(&s, x, none, 0), x->dtype, offset);
    step_out_strided(&s, out, out_axes->strides, 0);
    step_end(&s);
}

void plan_layout(Plan *plan, Tensor *out, const Tensor *x, const Layout *from, const Layout *to) {
    Axes a = axes_of(out), b = axes_of(x);
    plan_axes(plan, out, &a, x, &b, from, to);
}

/* The layout without its blocks and its groups. */
static Layout joined(const Layout *l) {
    Layout plain = {0};
    for (int i = 0; i < l->rank; i++)
        if (!l->axes[i].block && l->axes[i].letter != GROUPS)
            plain.axes[plain.rank++] = l->axes[i];
    return plain;
}

static bool has_groups(const Layout *l) { return layout_find(l, GROUPS, false) >= 0; }

/* A plain layout with the axis of groups before that of the result's channels, which a tensor of it splits. */
static Layout with_groups(const Layout *plain) {
    Layout l = {0};
    for (int i = 0; i < plain->rank; i++) {
        if (plain->axes[i].letter == CHANNELS)
            l.axes[l.rank++] = (LayoutAxis){GROUPS, 0};
        l.axes[l.rank++] = plain->axes[i];
    }
    return l;
}

/* The axes of a tensor of a plain layout, as with_groups has them. */
static Axes split_groups(const Tensor *t, const Layout *grouped, int64_t groups) {
    Axes own = axes_of(t), a = {{0}, {0}};
    int at = layout_find(grouped, GROUPS, false);
    for (int i = 0; i < grouped->rank; i++) {
        a.shape[i] = own.shape[i - (i > at)];
        a.strides[i] = own.strides[i - (i > at)];
    }
    a.shape[at + 1] /= groups;
    a.strides[at] *= a.shape[at + 1];
    a.shape[at] = groups;
    return a;
}

/* out, of a plain layout, = x without its blocks and groups. */
static void plan_join(Plan *plan, Tensor *out, const Tensor *x, const Layout *from,
                      const Layout *plain, int64_t groups) {
    Layout to = has_groups(from) ? with_groups(plain) : *plain;
    Axes a = has_groups(from) ? split_groups(out, &to, groups) : axes_of(out), b = axes_of(x);
    plan_axes(plan, out, &a, x, &b, from, &to);
}

/* The way back. */
static void plan_split(Plan *plan, Tensor *out, const Tensor *x, const Layout *plain,
                       const Layout *to, int64_t groups) {
    Layout from = has_groups(to) ? with_groups(plain) : *plain;
    Axes a = axes_of(out), b = has_groups(to) ? split_groups(x, &from, groups) : axes_of(x);
    plan_axes(plan, out, &a, x, &b, &from, to);
}

static const char *layout_text(const Layout *l) {
    char *text = mem_bytes((size_t)l->rank + 1);
    for (int i = 0; i < l->rank; i++)
        text[i] = l->axes[i].letter;
    text[l->rank] = 0;
    return text;
}

static bool has_block(const char *text) { return strpbrk(text, "0123456789") != NULL; }

/* ---- attributes ------------------------------------------------------------------------------- */

static const char *const layout_attrs[] = {"data_layout", "kernel_layout", "layout", "out_layout"};
enum { LAYOUTS = 4, OUT_LAYOUT = 3 };

bool packed_is(const Attrs *attrs) {
    bool any = false;
    for (int i = 0; i < LAYOUTS; i++) {
        const AttrValue *v = attrs_find(attrs, layout_attrs[i]);
        any |= v && v->kind == ATTR_STRING && (has_block(v->text) || strchr(v->text, GROUPS));
    }
    const AttrValue *in = attrs_find(attrs, "layout"), *out = attrs_find(attrs, "out_layout");
    return any || (in && out && in->kind == ATTR_STRING && out->kind == ATTR_STRING && *out->text &&
                   strcmp(in->text, out->text));
}

bool packed_is_listed(const Attrs *attrs, const char *choices) {
    bool all = true;
    for (int i = 0; i < LAYOUTS; i++) {
        const AttrValue *v = attrs_find(attrs, layout_attrs[i]);
        bool given = v && v->kind == ATTR_STRING && *v->text;
        const char *found = given ? strstr(choices, v->text) : choices;
        size_t n = given ? strlen(v->text) : 0;
        all = all && found && (!given || found[n] == ' ' || !found[n]);
    }
    const AttrValue *in = attrs_find(attrs, "data_layout"), *out = attrs_find(attrs, "out_layout");
    return all && (!in || !out || !*out->text || !strcmp(in->text, out->text));
}

static const char *layout_of(const Attrs *attrs, char role) {
    const char *data = strchr("LP", toupper(role)) ? "layout" : "data_layout";
    const char *own = role == 'O' || role == 'P' ? attrs_text(attrs, "out_layout") : "";
    return toupper(role) == 'K' ? attrs_text(attrs, "kernel_layout")
           : *own               ? own
                                : attrs_text(attrs, data);
}

/* How many groups a weight has. */
static int64_t groups_of(const Attrs *attrs) {
    const AttrValue *groups = attrs_find(attrs, "groups");
    return groups && groups->i > 0 ? groups->i : 1;
}

/* Whether an argument has a layout. */
static bool is_laid_out(char role) { return role != '-'; }

/* What an operator with `layout` computes in, whatever its result is laid out as. */
static const char *inner_layout(const Attrs *attrs, char role) {
    return layout_of(attrs, role == 'P' ? 'L' : role);
}

/* The layout that an attribute has where none is given. */
static const char *default_layout(const AttrSpec *spec) {
    size_t n = strlen(spec->initial);
    return n < 2 ? "" : mem_strndup(spec->initial + 1, n - 2);
}

/* The same attributes with layouts whose blocks and groups are joined. */
static const Attrs *join_attrs(const Attrs *attrs, const char *roles) {
    const Op *op = attrs->op;
    Attrs *plain = mem_new(Attrs);
    AttrValue *values = mem_new_n(AttrValue, op->nattrs + 1);
    *plain = (Attrs){op, values};
    memcpy(values, attrs->values, sizeof *values * (size_t)op->nattrs);
    for (int i = 0; i < LAYOUTS; i++) {
        int at = op_attr_index(op, layout_attrs[i]);
        Layout l;
        if (at < 0 || values[at].kind != ATTR_STRING || layout_parse(values[at].text, &l))
            continue;
        l = joined(&l);
        bool same = i == OUT_LAYOUT && op_attr_index(op, "layout") >= 0;
        bool usual = strchr(roles, '!') &&
                     (strcmp(layout_attrs[i], "kernel_layout") || strchr(roles, 'K'));
        values[at].text = same ? "" : usual ? default_layout(&op->attrs[at]) : layout_text(&l);
    }
    return plain;
}

/* ---- sizes that are known --------------------------------------------------------------------- */

static bool read_role(const OpCall *call, char role, Layout *l) {
    const char *problem = layout_parse(layout_of(call->attrs, role), l);
    if (problem)
        shape_error(call, DIAG_R0316, "%s", problem);
    return !problem;
}

static bool check_letters(const OpCall *call, const Layout *from, const Layout *to);

/* The groups of argument `arg` are as many as the attribute says; false after a report. */
static bool check_groups(const OpCall *call, int arg, int64_t groups) {
    int64_t given = groups_of(call->attrs);
    if (groups != given)
        shape_error(call, DIAG_R0314, "`%s` has %lld groups, and groups=%lld",
                    shape_arg_name(call, arg), (long long)groups, (long long)given);
    return groups == given;
}

/* The sizes of argument `arg`, laid out as l, in the layout `to`, which has no blocks; false after a report. */
static bool join_shape(const OpCall *call, int arg, const Layout *l, const Layout *to,
                       int64_t *shape) {
    const Tensor *t = call->in[arg];
    if (!shape_check_rank(call, arg, l->rank) || !check_letters(call, l, to))
        return false;
    for (int i = 0; i < l->rank; i++) {
        if (l->axes[i].block && t->shape[i] != l->axes[i].block) {
            shape_error(call, DIAG_R0314, "axis %d of `%s` is %lld, and a block has %lld", i,
                        shape_arg_name(call, arg), (long long)t->shape[i],
                        (long long)l->axes[i].block);
            return false;
        }
        if (l->axes[i].block)
            continue;
        char letter = l->axes[i].letter;
        int64_t size = size_multiply(t->shape[i], layout_block(l, letter));
        if (letter != GROUPS)
            shape[layout_find(to, letter, false)] = size;
        else if (!check_groups(call, arg, size))
            return false;
    }
    if (has_groups(l)) {
        int64_t *channels = &shape[layout_find(to, CHANNELS, false)];
        *channels = size_multiply(*channels, groups_of(call->attrs));
    }
    return true;
}

/* The same call of the plain operator, on tensors without elements; false after a report. */
static bool join_call(const OpCall *call, const char *roles, OpCall *plain) {
    *plain = *call;
    plain->attrs = join_attrs(call->attrs, roles);
    Tensor **in = mem_new_n(Tensor *, call->nin + 1);
    plain->in = in;
    for (uint32_t i = 0; i < call->nin; i++) {
        Layout l, to;
        int64_t shape[TENSOR_MAX_RANK];
        in[i] = call->in[i];
        if (!is_laid_out(roles[i]))
            continue;
        if (!read_role(call, roles[i], &l))
            return false;
        layout_parse(inner_layout(plain->attrs, roles[i]), &to);
        if (!join_shape(call, (int)i, &l, &to, shape))
            return false;
        in[i] = tensor_blank(call->in[i]->dtype, to.rank, shape);
    }
    return true;
}

/* Where the axes of `to` stand in `from`; false after a report. */
static bool check_letters(const OpCall *call, const Layout *from, const Layout *to) {
    bool same = joined(from).rank == joined(to).rank;
    for (int i = 0; i < to->rank; i++)
        same &= to->axes[i].letter == GROUPS || layout_find(from, to->axes[i].letter, false) >= 0;
    if (!same)
        shape_error(call, DIAG_R0316, "the layouts have different axes");
    return same;
}

int packed_shape(const OpCall *call, OutSpec *out, const char *roles) {
    OpCall plain;
    OutSpec inner;
    Layout from, to;
    const char *role = strchr(roles, '>') + 1;
    if (!join_call(call, roles, &plain) || call->op->shape(&plain, &inner) != 1 ||
        !read_role(call, *role, &to))
        return -1;
    layout_parse(inner_layout(plain.attrs, *role), &from);
    if (!check_letters(call, &from, &to))
        return -1;
    int64_t dims[TENSOR_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        char letter = to.axes[i].letter;
        int64_t block = layout_block(&to, letter), groups = groups_of(call->attrs);
        int64_t size = letter == GROUPS ? groups : inner.shape[layout_find(&from, letter, false)];
        if (letter == CHANNELS && has_groups(&to))
            size /= groups;
        if (size % block) {
            shape_error(call, DIAG_R0316, "%lld places of the result's %c are no multiple of %lld",
                        (long long)size, letter, (long long)block);
            return -1;
        }
        dims[i] = to.axes[i].block ? block : size / block;
    }
    return shape_set(call, out, inner.dtype, to.rank, dims) ? 1 : -1;
}

bool packed_lower(const OpCall *call, Tensor *const *out, Plan *plan, const char *roles) {
    OpCall plain;
    OutSpec inner;
    Layout from, to;
    const char *role = strchr(roles, '>') + 1;
    if (!join_call(call, roles, &plain) || call->op->shape(&plain, &inner) != 1)
        return false;
    Tensor **in = mem_new_n(Tensor *, call->nin + 1);
    int64_t groups = groups_of(call->attrs);
    for (uint32_t i = 0; i < call->nin; i++) {
        const Tensor *t = plain.in[i];
        in[i] = call->in[i];
        if (!is_laid_out(roles[i]))
            continue;
        in[i] = plan_temp(plan, t->dtype, t->rank, t->shape);
        layout_parse(layout_of(call->attrs, roles[i]), &from);
        layout_parse(inner_layout(plain.attrs, roles[i]), &to);
        if (isupper((unsigned char)roles[i]))
            plan_join(plan, in[i], call->in[i], &from, &to, groups);
    }
    plain.in = in;
    Tensor *result = plan_temp(plan, inner.dtype, inner.rank, inner.shape);
    if (!call->op->lower(&plain, &result, plan))
        return false;
    layout_parse(inner_layout(plain.attrs, *role), &from);
    layout_parse(layout_of(call->attrs, *role), &to);
    plan_split(plan, out[0], result, &from, &to, groups);
    return true;
}

/* ---- types ------------------------------------------------------------------------------------ */

static bool relate_layout(Solver *s, Relation *r, char role, Layout *l) {
    const char *problem = layout_parse(layout_of(r->attrs, role), l);
    if (problem)
        rel_error(s, r, DIAG_R0316, "`%s`: %s", r->op->name, problem);
    return !problem;
}

/* The type of an argument, laid out as l, in the layout `to`, which has no blocks; NULL after a report. */
static Type *join_type(Solver *s, Relation *r, int arg, const Layout *l, const Layout *to) {
    uint32_t rank;
    Type **dims, **plain = mem_new_n(Type *, l->rank + 1);
    if (!rel_need_rank(s, r, arg, (uint32_t)l->rank) || !rel_rank_in(r->args[arg], &rank, &dims))
        return NULL;
    for (int i = 0; i < l->rank; i++) {
        int64_t block = layout_block(l, l->axes[i].letter);
        if (l->axes[i].block) {
            if (!rel_unify_dim(s, r, dims[i], rel_int_dim(r, block), arg, i))
                return NULL;
            continue;
        }
        if (l->axes[i].letter == GROUPS) {
            int64_t groups = groups_of(r->attrs);
            if (groups % block) {
                rel_error(s, r, DIAG_R0316, "`%s`: groups=%lld is no multiple of %lld", r->op->name,
                          (long long)groups, (long long)block);
                return NULL;
            }
            if (!rel_unify_dim(s, r, dims[i], rel_int_dim(r, groups / block), arg, i))
                return NULL;
            continue;
        }
        int at = layout_find(to, l->axes[i].letter, false);
        if (at < 0 || joined(l).rank != to->rank) {
            rel_error(s, r, DIAG_R0316, "`%s`: the layouts have different axes", r->op->name);
            return NULL;
        }
        if (l->axes[i].letter == CHANNELS && has_groups(l))
            block *= groups_of(r->attrs);
        plain[at] = block > 1 ? dim_mul(dims[i], rel_int_dim(r, block)) : dims[i];
    }
    return type_tensor(type_shape(plain, (uint32_t)to->rank), rel_dtype_in(r->args[arg]));
}

/* The size of axis i of l, in the type of a tensor whose blocks and groups are joined; NULL: there is no such axis. */
static Type *split_dim(Solver *s, Relation *r, const Layout *l, int i, const Layout *plain,
                       Type **dims) {
    char letter = l->axes[i].letter;
    int64_t block = layout_block(l, letter);
    int at = layout_find(plain, letter, false);
    if (l->axes[i].block)
        return rel_int_dim(r, block);
    if (letter == GROUPS)
        return rel_int_dim(r, groups_of(r->attrs) / block);
    if (at < 0)
        return NULL;
    if (letter == CHANNELS && has_groups(l))
        block *= groups_of(r->attrs);
    return block > 1 ? rel_quotient(s, dims[at], rel_int_dim(r, block)) : dims[at];
}

RelStatus packed_relate(Solver *s, Relation *r, const char *roles) {
    RelStatus status;
    if (rel_known(s, r, (DTypeSet[]){DTS_NUM, DTS_NUM, DTS_NUM}, &status))
        return status;
    Layout l, from;
    const char *role = strchr(roles, '>') + 1;
    uint32_t n = r->nargs - 1, rank;
    Type **dims;
    Relation sub = *r;
    sub.attrs = join_attrs(r->attrs, roles);
    sub.args = mem_new_n(Type *, r->nargs);
    for (uint32_t i = 0; i < n; i++) {
        sub.args[i] = r->args[i];
        if (!is_laid_out(roles[i]))
            continue;
        layout_parse(inner_layout(sub.attrs, roles[i]), &from);
        if (!relate_layout(s, r, roles[i], &l) ||
            !(sub.args[i] = join_type(s, r, (int)i, &l, &from)))
            return REL_FAIL;
    }
    sub.args[n] = solver_var(s, KIND_TYPE);
    if (r->def->relate(s, &sub) == REL_FAIL || !relate_layout(s, r, *role, &l))
        return REL_FAIL;
    layout_parse(inner_layout(sub.attrs, *role), &from);
    if (type_resolve(sub.args[n])->tag != TY_TENSOR || !rel_rank_in(sub.args[n], &rank, &dims))
        return REL_WAIT;
    Type **out = mem_new_n(Type *, l.rank + 1);
    for (int i = 0; i < l.rank; i++) {
        out[i] = split_dim(s, r, &l, i, &from, dims);
        if (!out[i] || joined(&l).rank != (int)rank) {
            rel_error(s, r, DIAG_R0316, "`%s`: the layouts have different axes", r->op->name);
            return REL_FAIL;
        }
    }
    if (rel_result(s, r, out, (uint32_t)l.rank, rel_dtype_in(sub.args[n])) == REL_FAIL)
        return REL_FAIL;
    return rel_settled(r);
}

int packed_shape_data(const OpCall *call, OutSpec *out) {
    return packed_is(call->attrs) ? packed_shape(call, out, PACKED_DATA)
                                  : shape_by_signature(call, out);
}

RelStatus packed_relate_data(Solver *s, Relation *r) {
    return !rel_attrs_open(r) && packed_is(r->attrs) ? packed_relate(s, r, PACKED_DATA)
                                                     : relate_by_signature(s, r);
}
