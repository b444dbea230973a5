/* SPDX-License-Identifier: Apache-2.0 */
/* Places, and their accumulators while the way back is made: Note [Places] in reverse.h. */
#include "passes/known_type.h"
#include "passes/reverse/internal.h"

#include <string.h>

extern const Op op_expand_like;

/* ---- making ---------------------------------------------------------------------------------- */

static Place *make_place(Instance *n, Type *type, uint32_t id) {
    Place *p = mem_new(Place);
    p->type = type;
    p->id = id;
    vec_push(&n->leaves, p);
    p->leaf = (uint32_t)n->leaves.len;
    return p;
}

Place *place_new(Instance *n, Type *type) { return make_place(n, type, ++n->nplaces); }

Place *place_part(Instance *n, const Place *whole, Type *type) {
    Place *p = make_place(n, type, whole->id);
    p->depth = whole->depth + 1;
    return p;
}

static void take_form(Place *p, PlaceForm form, uint32_t nparts) {
    p->form = form;
    p->nparts = nparts;
    p->parts = mem_new_n(Place *, nparts + 1);
}

void place_note_read(Place *p, uint32_t i, Step *s) { vec_push(&p->reads, ((PartRead){i, s})); }

/* A part that was read before has a place, which is the part's from now on: what is added to it joins what was added to
 * the part, one by one. In several arms of a branch it may have several, which are other names of the part then. */
static void take_reads(Instance *n, Place *p) {
    for (size_t k = 0; k < p->reads.len; k++) {
        PartRead *read = &p->reads.data[k];
        Place *of = read->step->place;
        uint32_t same = 0;
        if (read->index >= p->nparts || !p->parts[read->index])
            continue;
        for (size_t i = 0; i < p->reads.len; i++)
            same += p->reads.data[i].index == read->index;
        if (same == 1) {
            p->parts[read->index] = of;
            of->depth = p->depth + 1;
        } else if (of->form == PLACE_LEAF && type_resolve(of->type)->tag == TY_TENSOR) {
            vec_push(&of->aliases, ((Alias){.number = ALWAYS, .place = p->parts[read->index]}));
        } else {
            reverse_give_up(n->program, "a frame holds another name of a value");
        }
        read->step->kind = STEP_PLAIN;
    }
    vec_clear(&p->reads);
}

/* A tangent is added to nothing, and what has cells has those of the part that was read. */
static bool gathers_reads(const Instance *n) { return !n->forward && !n->program->mirrors; }

void place_make_tuple(Instance *n, Place *p, uint32_t nparts) {
    if (p->form != PLACE_LEAF)
        return;
    take_form(p, PLACE_TUPLE, nparts);
    for (uint32_t i = 0; i < nparts; i++) {
        Type *part = place_part_type(p->type, p, i);
        if (!type_may_hold_float(part))
            continue;
        p->parts[i] = place_part(n, p, part);
        p->parts[i]->home = p->home;
    }
    if (gathers_reads(n))
        take_reads(n, p);
}

static bool is_unknown(Type *t) {
    TypeTag tag = type_resolve(t)->tag;
    return tag == TY_PARAM || tag == TY_VAR;
}

static void make_fields(Instance *n, Place *p, const Place *whole, Ctor *ctor) {
    take_form(p, PLACE_DATA, ctor->nfields);
    p->ctor = ctor;
    for (uint32_t i = 0; i < ctor->nfields; i++) {
        Type *t = place_field_type(whole->type, ctor, i);
        if (!type_may_hold_float(t))
            continue;
        p->parts[i] = place_part(n, whole, t);
        p->parts[i]->home = p->home; /* NULL in an arm, outside of which it is not known */
    }
    if (gathers_reads(n))
        take_reads(n, p);
}

bool place_is_within(const Place *whole, const Place *p) {
    whole = place_here(whole);
    bool within = whole == p;
    for (uint32_t i = 0; whole && !within && i < whole->nparts; i++)
        within = whole->parts[i] && place_is_within(whole->parts[i], p);
    return within;
}

bool place_give_form(Instance *callee, Place *slot, Place *given) {
    slot = place_here(slot);
    given = place_here(given);
    bool is_record = given->form == PLACE_DATA && given->ctor->decl->nctors == 1 &&
                     !given->ctor->is_function;
    if (given->form != PLACE_TUPLE && !is_record) {
        bool apart = slot->form == PLACE_TUPLE || slot->reads.len;
        return !apart || !is_unknown(given->type);
    }
    if (slot->form == PLACE_LEAF && is_unknown(slot->type) && !slot->aliases.len &&
        !place_is_within(given, slot)) {
        if (is_record)
            make_fields(callee, slot, slot, given->ctor);
        else
            place_make_tuple(callee, slot, given->nparts);
        callee->program->changed = true;
    }
    if (slot->form != given->form || slot->nparts != given->nparts)
        return slot->form != PLACE_TUPLE;
    for (uint32_t i = 0; i < slot->nparts; i++)
        if (slot->parts[i] && given->parts[i] &&
            !place_give_form(callee, slot->parts[i], given->parts[i]))
            return false;
    return true;
}

Type *place_field_type(Type *data, const Ctor *ctor, uint32_t i) {
    if (ctor->is_function)
        return ctor->fields[i];
    data = type_resolve(data);
    ctor = ctor_of_type(ctor, data);
    const TypeDecl *decl = ctor->decl;
    if (data->tag != TY_DATA || data->decl != decl || data->nargs != decl->nparams)
        return b_some_type("field");
    return type_substitute(ctor->fields[i], decl->params, data->args, decl->nparams);
}

Type *place_part_type(Type *type, const Place *p, uint32_t i) {
    Type *t = type_resolve(type);
    if (p->form == PLACE_DATA)
        return place_field_type(t, p->ctor, i);
    return t->tag == TY_TUPLE && i < t->nargs ? t->args[i] : b_some_type("part");
}

Place *place_as_data(Instance *n, Place *p, Ctor *ctor, bool *split) {
    *split = false;
    p = place_here(p);
    if (p->form == PLACE_DATA)
        return p->ctor == ctor ? p : NULL;
    if (p->form != PLACE_LEAF)
        return NULL;
    if (ctor->decl->nctors == 1) {
        make_fields(n, p, p, ctor);
        return p;
    }
    Place *arm = mem_new(Place);
    arm->type = p->type;
    arm->id = p->id;
    make_fields(n, arm, p, ctor);
    *split = true;
    return arm;
}

bool place_take_apart(Instance *n, Place *p, const Place *like) {
    const Type *t = type_resolve(p->type);
    bool split;
    if (p->form != PLACE_LEAF || p->aliases.len || p->depth >= DEEPEST_PART)
        return false;
    if (t->tag == TY_TUPLE && (!like || (like->form == PLACE_TUPLE && t->nargs == like->nparts)))
        place_make_tuple(n, p, t->nargs);
    else if (t->tag == TY_DATA && t->decl->nctors == 1 &&
             (!like ||
              (like->form == PLACE_DATA && type_decl_of_values(t->decl) == like->ctor->decl)))
        place_as_data(n, p, ctor_of_values(t->decl->ctors[0]), &split);
    return p->form != PLACE_LEAF;
}

Place *place_of_closure(Instance *n, const Known *k) {
    Place *p = mem_new(Place);
    p->type = k->fn->type;
    p->id = ++n->nplaces;
    take_form(p, PLACE_CLOSURE, (uint32_t)k->captured.len);
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!k->active[i] || k->known[i] == k)
            continue;
        p->parts[i] = k->known[i] ? place_of_closure(n, k->known[i])
                                  : place_new(n, k->captured.data[i]->type);
    }
    return p;
}

/* One slot for a value; for a known function one for each active variable that it captured. */
void place_add_slots(Place *p, const Known *k, Place **slots, uint32_t *nslots) {
    if (!k) {
        if (slots)
            slots[*nslots] = p;
        (*nslots)++;
        return;
    }
    for (uint32_t i = 0; i < k->captured.len; i++)
        if (k->active[i] && k->known[i] != k)
            place_add_slots(p ? p->parts[i] : NULL, k->known[i], slots, nslots);
}

/* ---- accumulators ---------------------------------------------------------------------------- */

void places_reset(Instance *n) {
    for (size_t i = 0; i < n->leaves.len; i++) {
        Place *p = n->leaves.data[i];
        p->arm = NULL;
        p->is_own = false;
        p->presence = ABSENT;
        p->acc = NULL;
    }
}

Presence presence_join(Presence a, Presence b) {
    if (a == UNKNOWN || b == UNKNOWN)
        return a == UNKNOWN ? b : a;
    return a == b ? a : PERHAPS;
}

Expr *absent_value(Way *w) { return b_absent(&w->build, b_some_type("ct")); }

Expr *way_bind(Way *w, Expr *e, Type *type) {
    Expr *v = block_let(w->block, "ct", e);
    v->var->type = v->type = type ? type : b_some_type("ct");
    return v;
}

/* The type of an accumulator that is there. */
static Type *acc_type(const Place *p) {
    Type *t = type_resolve(p->type);
    return t->tag == TY_TENSOR ? t : b_some_type("ct");
}

Presence acc_presence(Place *p) {
    p = place_here(p);
    if (p->mirror)
        return PERHAPS;
    if (p->form == PLACE_LEAF)
        return p->presence;
    for (uint32_t i = 0; i < p->nparts; i++)
        if (p->parts[i] && acc_presence(p->parts[i]) != ABSENT)
            return PRESENT;
    return ABSENT;
}

Expr *ct_of_data(const Build *b, Ctor *of, Expr **parts, uint32_t nparts) {
    Expr *ctor = expr_new(EXPR_CTOR, b_some_type("ctor"), b->span);
    ctor->ctor = of;
    return expr_call(ctor, parts, nparts, NULL, b_some_type("ct"), b->span);
}

Expr *acc_get(Way *w, Place *p) {
    p = place_here(p);
    if (p->mirror)
        return way_bind(w,
                        b_builtin(&w->build, "ad.mirror_sum", b_unit(&w->build),
                                  b_ref(&w->build, p->mirror), NULL),
                        NULL);
    if (p->form == PLACE_LEAF)
        return p->acc ? p->acc : absent_value(w);
    if (p->is_empty && w->n->forward) /* it is read like the tangent of any frame */
        return first_frame(&w->build);
    if (acc_presence(p) == ABSENT)
        return absent_value(w);
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = p->parts[i] ? acc_get(w, p->parts[i]) : absent_value(w);
    if (p->form != PLACE_TUPLE)
        return ct_of_data(&w->build, p->ctor, parts, p->nparts);
    Expr *tuple = b_tuple(&w->build, parts, p->nparts);
    if (w->n->forward && type_resolve(p->type)->tag != TY_TUPLE) /* of a frame: one, too */
        tuple->type = b_some_type("ct");
    return tuple;
}

/* Whether a value of this type may have no tangent: an integer, for all that is known here. */
static bool may_be_constant(Type *t) {
    t = type_resolve(t);
    if (t->tag == TY_VAR || t->tag == TY_PARAM)
        return true;
    return t->tag == TY_TENSOR && type_dtype_set(t->tensor.dtype) & ~DTS_FLOAT;
}

/* Whether a cotangent that is there may lack parts of the place: those of data do, and tuples that grow end with the last
 * part that was added. */
static bool may_lack_parts(const Way *w, const Place *p) {
    return p->form == PLACE_DATA || (p->form == PLACE_TUPLE && w->n->program->grows);
}

/* Where the block binds it; NULL: it does not. */
static Expr **find_link(const Block *block, const Expr *v) {
    for (size_t i = block->links.len; i-- > 0 && v->kind == EXPR_VAR;)
        if (block->links.data[i]->var == v->var)
            return &block->links.data[i];
    return NULL;
}

/* Whether it is what an operator gives, as the rule of `concatenate` calls `split_like`: a tuple of all its tensors. */
static bool is_of_operator(const Way *w, const Expr *ct) {
    Expr **link = find_link(w->block, ct);
    return link && (*link)->a->kind == EXPR_CALL && (*link)->a->a->kind == EXPR_OP;
}

/* A part of an accumulator: of one that was just put together the part itself. A tangent that is there has all parts
 * that have one, a cotangent perhaps. */
static Expr *acc_item(Way *w, Expr *acc, uint32_t i, const Place *whole, Presence *presence) {
    Presence of = *presence;
    *presence = w->n->forward && !may_be_constant(whole->parts[i]->type) ? of : PERHAPS;
    if ((acc->kind == EXPR_TUPLE || (acc->kind == EXPR_CALL && acc->a->kind == EXPR_CTOR)) &&
        i < acc->nargs) {
        if (acc->args[i]->kind == EXPR_ZERO)
            *presence = ABSENT;
        else if (type_resolve(acc->args[i]->type)->tag == TY_TENSOR)
            *presence = PRESENT; /* one that may be absent has not the type of a tensor */
        return acc->args[i];
    }
    bool is_whole = of == PRESENT && is_of_operator(w, acc);
    if (is_whole && !w->n->forward)
        *presence = PRESENT;
    Type *type = *presence == PRESENT ? acc_type(whole->parts[i]) : NULL;
    if (whole->form == PLACE_TUPLE && of == PRESENT && (is_whole || !may_lack_parts(w, whole))) {
        Expr *proj = expr_proj(acc, (int32_t)i, b_some_type("ct"), w->build.span);
        return way_bind(w, proj, type);
    }
    Expr *number = expr_int(i, DT_I32, w->build.span);
    return way_bind(w, b_builtin(&w->build, "ad.item", acc, number, NULL), type);
}

void acc_put(Way *w, Place *leaf, Expr *acc, Presence presence) {
    Instance *n = w->n;
    if (leaf->mirror) {
        if (acc)
            block_do(w->block, b_builtin(&w->build, "ad.mirror_put", b_ref(&w->build, leaf->mirror),
                                         acc, NULL));
        return;
    }
    bool known = leaf->leaf && leaf->leaf <= n->leaves.len &&
                 n->leaves.data[leaf->leaf - 1] == leaf;
    if (n->nchoices && known)
        vec_push(&n->trail, ((AccChange){leaf, leaf->presence, leaf->acc}));
    leaf->presence = presence;
    leaf->acc = acc;
}

void acc_set(Way *w, Place *p, Expr *acc, Presence presence) {
    p = place_here(p);
    bool none = presence == ABSENT || presence == UNKNOWN;
    if (p->form == PLACE_LEAF) {
        acc_put(w, p, none ? NULL : acc, presence);
        return;
    }
    if (!none && acc->kind != EXPR_VAR && acc->kind != EXPR_TUPLE &&
        !(acc->kind == EXPR_CALL && acc->a->kind == EXPR_CTOR))
        acc = way_bind(w, acc, NULL);
    for (uint32_t i = 0; i < p->nparts; i++) {
        if (!p->parts[i])
            continue;
        Presence of = presence;
        Expr *part = none ? NULL : acc_item(w, acc, i, p, &of);
        acc_set(w, p->parts[i], part, of);
    }
}

/* Whether its cotangents are added by the operator, which is fused with what it adds and writes over a sum that ends
 * there. A value of which less is known is added to by `ad.add`, and so is a product, which may wait beside the sum
 * (eval/waiting.h). */
static bool is_added_by_operator(const Way *w, const Place *p, const Expr *ct) {
    Type *t = type_resolve(p->type), **dims;
    uint32_t rank;
    return t->tag == TY_TENSOR &&
           (type_get_rank(t, &rank, &dims) || !(type_dtype_set(t->tensor.dtype) & ~DTS_FLOAT)) &&
           !(ct->kind == EXPR_VAR && map_has(&w->products, ct->var));
}

/* Adds a cotangent to each part by itself, since a value may be two of them; what is absent is not added. */
static void add_parts(Way *w, Place *p, Expr *ct, Presence presence) {
    if (ct->kind != EXPR_VAR && ct->kind != EXPR_TUPLE)
        ct = way_bind(w, ct, NULL);
    for (uint32_t i = 0; i < p->nparts; i++) {
        Presence of = presence;
        Expr *part = p->parts[i] ? acc_item(w, ct, i, p, &of) : NULL;
        if (part && of != ABSENT)
            (of == PRESENT ? acc_add : acc_add_perhaps)(w, p->parts[i], part);
    }
}

/* Adds to the cells of a value that has them; false where it has none. */
static bool add_to_mirror(Way *w, const Place *p, Expr *ct) {
    if (p->mirror)
        block_do(w->block,
                 b_builtin(&w->build, "ad.mirror_add", b_ref(&w->build, p->mirror), ct, NULL));
    return p->mirror;
}

void acc_add_perhaps(Way *w, Place *p, Expr *ct) {
    p = place_here(p);
    if (add_to_mirror(w, p, ct))
        return;
    if (p->form != PLACE_LEAF) {
        add_parts(w, p, ct, PERHAPS);
        return;
    }
    if (alias_add(w, p, ct, acc_add_perhaps))
        return;
    bool there = p->presence == PRESENT;
    if (p->presence != ABSENT)
        ct = way_bind(w, b_builtin(&w->build, "ad.add", p->acc, ct, NULL),
                      there ? acc_type(p) : NULL);
    acc_put(w, p, ct, there ? PRESENT : PERHAPS);
}

void acc_add(Way *w, Place *p, Expr *ct) {
    p = place_here(p);
    if (add_to_mirror(w, p, ct))
        return;
    if (p->form != PLACE_LEAF) {
        add_parts(w, p, ct, PRESENT);
        return;
    }
    if (alias_add(w, p, ct, acc_add))
        return;
    Expr *sum = ct;
    if (p->presence == PRESENT && is_added_by_operator(w, p, ct)) {
        Expr **two = mem_new_n(Expr *, 2);
        two[0] = p->acc;
        two[1] = ct;
        sum = b_op(&w->build, &op_add, two, 2, acc_type(p));
    } else if (p->presence != ABSENT) {
        sum = b_builtin(&w->build, "ad.add", p->acc, ct, NULL);
    }
    acc_put(w, p, sum->kind == EXPR_VAR ? sum : way_bind(w, sum, acc_type(p)), PRESENT);
}

/* Whether the sum has the shape of its value, for which no frame needs to hold that then. */
static bool gives_shape(const Place *p, const Expr *acc) {
    return p->presence == PRESENT && acc->kind == EXPR_VAR &&
           type_resolve(p->type)->tag == TY_TENSOR;
}

static void drop_link_unread(Block *block, const Expr *v) {
    Expr **link = find_link(block, v), **end = block->links.data + block->links.len;
    for (Expr **at = link; ++at < end;)
        if (expr_mentions((*at)->a, v->var))
            return;
    memmove(link, link + 1, sizeof *link * (size_t)(end - link - 1));
    block->links.len--;
}

/* What the rule of a sum gives, settled or not. */
static bool is_expansion(const Expr *e) {
    return e->kind == EXPR_CALL && e->a->kind == EXPR_OP && e->a->op == &op_expand_like &&
           type_has_rank0(e->args[0]->type) && !attrs_bool(e->attrs, "average");
}

/* A cotangent that is one number everywhere, as that of what is summed, is added as this number: no frame keeps the part
 * for its shape. */
static Expr *number_of(Block *block, Expr *ct) {
    Expr **link = find_link(block, ct), **of = link;
    Expr *settled = link && is_settling((*link)->a) ? (*link)->a->args[0] : NULL;
    if (settled)
        of = find_link(block, settled);
    if (!of || !is_expansion((*of)->a))
        return ct;
    Expr *number = (*of)->a->args[0];
    drop_link_unread(block, ct);
    if (settled)
        drop_link_unread(block, settled);
    return number;
}

static bool is_integer(const Expr *e) {
    if (e->kind != EXPR_CALL)
        return type_has_rank0(e->type) && (e->kind == EXPR_VAR || e->kind == EXPR_LIT);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->args[i]->kind == EXPR_CALL)
            return false;
    return is_scalar_operator(e);
}

/* The index where it is of integers, as a tuple of what they are made of, which a frame keeps at less cost; or NULL. */
static const Expr *integers_of(const Way *w, const Expr *call) {
    const Expr *at = call->nargs == 2 ? call->args[1] : call->args[0];
    const Step *s = at->kind == EXPR_VAR ? map_find(&w->n->made_by, at->var) : NULL;
    const Expr *tuple = s && s->kind == STEP_PLAIN ? s->e : at;
    if (tuple->kind != EXPR_TUPLE || call->nargs != 2)
        return NULL;
    for (uint32_t i = 0; i < tuple->nargs; i++)
        if (!is_integer(tuple->args[i]))
            return NULL;
    return tuple;
}

void acc_add_index(Way *w, Place *p, const Expr *call, Expr *ct) {
    p = place_here(p);
    if (p->form != PLACE_LEAF)
        BUG("an index into a value that is no tensor");
    const Expr *integers = integers_of(w, call);
    Expr **at = integers ? integers->args : call->args + 1, *spec;
    uint32_t n = integers ? integers->nargs : call->nargs - 1;
    Expr **args = mem_new_n(Expr *, n + 5);
    spec = expr_new(EXPR_STRING, type_string(), w->build.span);
    spec->text = attrs_text(call->attrs, "spec");
    spec->text_len = strlen(spec->text);
    args[0] = acc_get(w, p);
    args[1] = gives_shape(p, args[0]) ? args[0] : call->args[0];
    args[2] = number_of(w->block, ct);
    args[3] = spec;
    for (uint32_t i = 0; i < n; i++)
        args[i + 4] = at[i];
    acc_put(w, p, way_bind(w, b_builtin_n(&w->build, "ad.add_index", args, n + 4), acc_type(p)),
            PRESENT);
}

Expr *acc_settle(Way *w, Type *type, Expr *ct) {
    Type *t = type_resolve(type), **dims;
    uint32_t rank;
    bool scalar = t->tag == TY_TENSOR && type_get_rank(t, &rank, &dims) && rank == 0;
    if (scalar)
        return ct;
    return way_bind(w, b_builtin(&w->build, "ad.settle", ct, NULL), ct->type);
}

bool acc_is_free(Place *p) {
    p = place_here(p);
    if (p->form == PLACE_LEAF)
        return p->presence == ABSENT;
    for (uint32_t i = 0; i < p->nparts; i++)
        if (p->parts[i] && !acc_is_free(p->parts[i]))
            return false;
    return true;
}
