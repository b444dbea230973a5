/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a cotangent or an accumulator before running, as a text.
 *
 * Note [Outlines]. Cotangents and accumulators of tuples and records go from function to function part by part, so that
 * nothing is put together only to be taken apart again, and what is known of each part goes with it. The outline says it:
 *
 *   0      absent: it is not handed over at all
 *   1      there, with the type of what it belongs to where that is a tensor
 *   f, d   a cotangent that is there, a scalar of float32 or float64
 *   ?      nothing is known of it
 *   (…)    a tuple or record with these parts
 *
 * In `jvp(f)(x, t).1` the cotangent of the pair has the outline `(0d)`. The outlines of several values stand one after the
 * other: `(11)0?` is a pair of tensors that are there, an accumulator that is absent, and one of which nothing is known. */
#include "passes/reverse/internal.h"

#include <string.h>

enum { MOST_PARTS = 16, LONGEST_CT = 64 };

static bool is_tensor(Type *t) { return t && type_resolve(t)->tag == TY_TENSOR; }

/* ---- making ---------------------------------------------------------------------------------- */

/* The constructor of a result that is a record, else NULL. */
static Ctor *record_of(Type *result) {
    result = result ? type_resolve(result) : NULL;
    bool record = result && result->tag == TY_DATA && result->decl->nctors == 1;
    return record ? ctor_of_values(result->decl->ctors[0]) : NULL;
}

/* The type of a part of a result, NULL where the type of the whole does not say it. */
static Type *result_part(Type *result, uint32_t i) {
    result = result ? type_resolve(result) : NULL;
    if (record_of(result))
        return place_field_type(result, record_of(result), i);
    return result && result->tag == TY_TUPLE && i < result->nargs ? result->args[i] : NULL;
}

/* Whether the parts of a cotangent are handed over one by one: of a tuple, and of a record that the function says it gives. */
static bool is_ct_of_parts(const Expr *ct, Type *result) {
    if (ct->kind == EXPR_CALL)
        return ct->a->kind == EXPR_CTOR && ct->a->ctor == record_of(result) &&
               ct->nargs <= MOST_PARTS;
    return ct->kind == EXPR_TUPLE && ct->nargs <= MOST_PARTS;
}

static char letter_of_ct(const Expr *ct, Type *result) {
    Type *t = type_resolve(ct->type), **dims;
    uint32_t rank;
    DType dtype;
    if (ct->kind == EXPR_ZERO)
        return '0';
    if (!is_tensor(t))
        return '?';
    if (type_get_rank(t, &rank, &dims) && rank == 0 && type_get_dtype(t, &dtype) &&
        (dtype == DT_F32 || dtype == DT_F64))
        return dtype == DT_F32 ? 'f' : 'd';
    return is_tensor(result) ? '1' : '?';
}

static void add_outline_of_ct(const Expr *ct, Type *result, int depth, Str *text) {
    if (!is_ct_of_parts(ct, result) || depth == DEEPEST_PART || text->len > LONGEST_CT) {
        str_add_char(text, letter_of_ct(ct, result));
        return;
    }
    str_add_char(text, '(');
    for (uint32_t i = 0; i < ct->nargs; i++)
        add_outline_of_ct(ct->args[i], result_part(result, i), depth + 1, text);
    str_add_char(text, ')');
}

void outline_add_ct(Str *text, const Expr *ct, Type *result) {
    if (is_ct_of_parts(ct, result))
        add_outline_of_ct(ct, result, 0, text);
    else
        str_add(text, ANY_SEED);
}

static bool is_taken_apart(const Place *p, int depth) {
    bool parts = p->form == PLACE_TUPLE || (p->form == PLACE_DATA && p->ctor->decl->nctors == 1);
    return parts && depth < DEEPEST_PART && p->nparts <= MOST_PARTS;
}

/* A tuple or record of accumulators in the form of p. */
static Expr *whole_of_parts(const Build *b, const Place *p, Expr **parts) {
    return p->form == PLACE_TUPLE ? b_tuple(b, parts, p->nparts)
                                  : ct_of_data(b, p->ctor, parts, p->nparts);
}

static bool has_form_of(const Place *p, const Place *like) {
    return p->form == like->form && p->nparts == like->nparts && p->ctor == like->ctor;
}

/* Binds a value that begins as a product behind this, where they are one instruction. NULL: the product is not of this
 * block. */
static Expr *bind_behind(Way *w, const Var *product, Expr *value) {
    Block *block = w->block;
    size_t at = block->links.len;
    while (at > 0 && block->links.data[at - 1]->var != product)
        at--;
    if (!at)
        return NULL;
    Expr *v = way_bind(w, value, value->type), *link = vec_last(&block->links);
    for (size_t i = block->links.len - 1; i > at; i--)
        block->links.data[i] = block->links.data[i - 1];
    block->links.data[at] = link;
    return v;
}

/* The accumulator as it is handed on. A product that is all of it so far waits for those that are added to it
 * (eval/waiting.h). */
static Expr *hand_on(Way *w, Place *p) {
    Expr *acc = acc_get(w, p);
    if (p->form != PLACE_LEAF || acc->kind != EXPR_VAR || !map_has(&w->products, acc->var))
        return acc;
    Expr *sum = b_builtin(&w->build, "ad.add", absent_value(w), acc, NULL);
    sum->type = acc->type;
    sum = bind_behind(w, acc->var, sum);
    if (sum)
        acc_put(w, p, sum, p->presence);
    return p->acc;
}

static Expr *add_outline_of_acc(Way *w, Place *like, Place *p, int depth, Str *text) {
    p = place_here(p);
    like = place_here(like);
    bool handed = p && like && !w->n->program->mirrors; /* cells are in the frames */
    Presence presence = handed ? acc_presence(p) : ABSENT;
    if (presence == ABSENT) {
        str_add_char(text, '0');
        return absent_value(w);
    }
    if (!is_taken_apart(like, depth)) {
        str_add_char(text, presence == PRESENT ? '1' : '?');
        return hand_on(w, p);
    }
    bool apart = has_form_of(p, like);
    Expr *acc = apart ? NULL : acc_get(w, p);
    if (acc && acc->kind != EXPR_VAR && acc->kind != EXPR_TUPLE && acc->kind != EXPR_CALL)
        acc = way_bind(w, acc, NULL);
    Expr **parts = mem_new_n(Expr *, like->nparts + 1);
    str_add_char(text, '(');
    for (uint32_t i = 0; i < like->nparts; i++) {
        Place leaf, *part = apart ? p->parts[i] : NULL;
        if (!apart && like->parts[i]) {
            leaf = acc_part(w, like, i, acc, presence);
            part = &leaf;
        }
        parts[i] = add_outline_of_acc(w, like->parts[i], part, depth + 1, text);
    }
    str_add_char(text, ')');
    return whole_of_parts(&w->build, like, parts);
}

Expr *outline_add_acc(Way *w, Str *text, Place *like, Place *p) {
    return add_outline_of_acc(w, like, p, 0, text);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* What follows the first outline. */
static const char *skip_outline(const char *text) {
    if (*text != '(')
        return text + 1;
    for (text++; *text != ')';)
        text = skip_outline(text);
    return text + 1;
}

static uint32_t count_parts(const char *text) {
    uint32_t n = 0;
    for (text++; *text != ')'; n++)
        text = skip_outline(text);
    return n;
}

static void join_one(const char *a, const char *b, Str *text) {
    if (*a != '(' || *b != '(' || count_parts(a) != count_parts(b)) {
        str_add_char(text, *a == *b && *a != '(' ? *a : '?');
        return;
    }
    str_add_char(text, '(');
    for (a++, b++; *a != ')'; a = skip_outline(a), b = skip_outline(b))
        join_one(a, b, text);
    str_add_char(text, ')');
}

const char *outline_join(const char *a, const char *b) {
    Str text = {0};
    for (; *a; a = skip_outline(a), b = skip_outline(b))
        join_one(a, b, &text);
    return str_text(&text);
}

/* ---- handing over ---------------------------------------------------------------------------- */

void outline_flatten(const char **text, Expr *value, Exprs *args) {
    char c = *(*text)++;
    if (c != '(') {
        if (c != '0')
            vec_push(args, value);
        return;
    }
    for (uint32_t i = 0; **text != ')'; i++)
        outline_flatten(text, value->args[i], args);
    ++*text;
}

static Expr *add_param(const Build *b, const char *name, Type *type, Exprs *params) {
    Expr *param = b_ref(b, b_var(b, name, type));
    vec_push(params, param);
    return param;
}

Expr *outline_take_ct(const Build *b, const char **text, Type *result, Exprs *params) {
    char c = *(*text)++;
    switch (c) {
    case '0': return b_absent(b, b_some_type("ct"));
    case 'f': return add_param(b, "ct", type_scalar(DT_F32), params);
    case 'd': return add_param(b, "ct", type_scalar(DT_F64), params);
    case '1': return add_param(b, "ct", type_resolve(result), params);
    case '?': return add_param(b, "ct", b_some_type("ct"), params);
    }
    Expr **parts = mem_new_n(Expr *, MOST_PARTS);
    uint32_t n = 0;
    for (; **text != ')'; n++)
        parts[n] = outline_take_ct(b, text, result_part(result, n), params);
    ++*text;
    return record_of(result) ? ct_of_data(b, record_of(result), parts, n) : b_tuple(b, parts, n);
}

Expr *outline_take_acc(const Build *b, const char **text, const Place *p, Exprs *params) {
    char c = *(*text)++;
    if (c == '0')
        return b_absent(b, b_some_type("ct"));
    if (c != '(')
        return add_param(b, "acc", c == '1' && is_tensor(p->type) ? p->type : b_some_type("ct"),
                         params);
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = outline_take_acc(b, text, p->parts[i], params);
    ++*text;
    return whole_of_parts(b, p, parts);
}

Expr *outline_take_result(Results *r, const Place *p, Type *type) {
    char c = *r->text++;
    const Build *b = r->block->b;
    if (c == '0')
        return b_absent(b, b_some_type("ct"));
    if (c != '(') {
        Expr *part = r->value;
        Type *there = c == '1' && is_tensor(type) ? type : b_some_type("ct");
        if (r->count > 1)
            part = block_let(r->block, "ct",
                             expr_proj(r->value, (int32_t)r->next++, there, b->span));
        else
            part->type = part->var->type = there;
        return part;
    }
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = outline_take_result(r, p->parts[i], place_part_type(type, p, i));
    r->text++;
    return whole_of_parts(b, p, parts);
}

void outline_add_types(const char **text, const Place *p, Type *type, Types *types) {
    char c = *(*text)++;
    if (c != '(') {
        if (c != '0')
            vec_push(types, c == '1' && is_tensor(type) ? type : b_some_type("ct"));
        return;
    }
    for (uint32_t i = 0; **text != ')'; i++)
        outline_add_types(text, p->parts[i], place_part_type(type, p, i), types);
    ++*text;
}

uint32_t outline_count(const char *text) {
    uint32_t n = 0;
    for (; *text; text++)
        n += *text != '(' && *text != ')' && *text != '0';
    return n;
}

Presence outline_presence(const char *text) {
    return *text == '0' ? ABSENT : *text == '?' ? PERHAPS : PRESENT;
}
