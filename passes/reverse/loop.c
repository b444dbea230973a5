/* SPDX-License-Identifier: Apache-2.0 */
/* The loops that pop frames: which there are, and what they take.
 *
 * Note [Loops for what is known]. Before the first frame most accumulators are absent, before the second one they are
 * there, so a function has a loop for each of what is known of them, and nothing is asked while it runs. The accumulators
 * of records and tuples are taken part by part:
 *
 *   run.pop(k, acc)   with the gradient `P(w, b)` becomes   run.pop(k, w, b)
 *
 * so that no record is taken apart and made again in each iteration, and a product is added to w in the product's own
 * kernel. A text says what is known, as that of cotangents in back.c does: `(11)0?` are a pair of tensors that are there, an
 * accumulator that is absent, and one of which nothing is known. */
#include "passes/reverse/internal.h"

#include <string.h>

enum { DEEPEST = 3, MOST_PARTS = 16 };

static bool is_tensor(Type *t) { return type_resolve(t)->tag == TY_TENSOR; }

static bool is_taken_apart(const Place *p, int depth) {
    bool parts = p->form == PLACE_TUPLE || (p->form == PLACE_DATA && p->ctor->decl->nctors == 1);
    return parts && depth < DEEPEST && p->nparts <= MOST_PARTS;
}

typedef VEC(Expr *) Args;

/* Adds what is known of an accumulator to the text, and what of it is there to args. */
static void describe(Way *w, Place *p, int depth, Str *text, Args *args) {
    while (p && p->arm)
        p = p->arm;
    Presence presence = p ? acc_presence(p) : ABSENT;
    if (presence == ABSENT) {
        str_add_char(text, '0');
        return;
    }
    if (!is_taken_apart(p, depth)) {
        str_add_char(text, presence == PRESENT && is_tensor(p->type) ? '1' : '?');
        vec_push(args, acc_get(w, p));
        return;
    }
    str_add_char(text, '(');
    for (uint32_t i = 0; i < p->nparts; i++)
        describe(w, p->parts[i], depth + 1, text, args);
    str_add_char(text, ')');
}

/* The accumulator of p with that text, made of parameters. */
static Expr *take(const Build *b, const Place *p, const char **text, Args *params) {
    char c = *(*text)++;
    if (c == '0')
        return b_absent(b, b_some_type("ct"));
    if (c != '(') {
        Expr *acc = b_ref(b, b_var(b, "acc", c == '1' ? p->type : b_some_type("ct")));
        vec_push(params, acc);
        return acc;
    }
    Expr **parts = mem_new_n(Expr *, p->nparts + 1);
    for (uint32_t i = 0; i < p->nparts; i++)
        parts[i] = take(b, p->parts[i], text, params);
    ++*text;
    if (p->form == PLACE_TUPLE)
        return b_tuple(b, parts, p->nparts);
    Expr *ctor = expr_new(EXPR_CTOR, b_some_type("ctor"), b->span);
    ctor->ctor = p->ctor;
    return expr_call(ctor, parts, p->nparts, NULL, b_some_type("ct"), b->span);
}

static Pop *find_pop(const Instance *n, const char *known, uint32_t *reached) {
    *reached = 0;
    for (size_t i = 0; i < n->pops.len; i++) {
        if (strcmp(n->pops.data[i]->known, known) == 0)
            return n->pops.data[i];
        *reached += n->pops.data[i]->reached;
    }
    return NULL;
}

static Pop *add_pop(Instance *n, const char *known) {
    Build b = {n->fn->span};
    Pop *pop = mem_new(Pop);
    Args params = {0};
    pop->known = known;
    pop->entry = mem_new_n(Presence, n->nslots + 1);
    pop->accs = mem_new_n(Expr *, n->nslots + 1);
    const char *text = known;
    for (uint32_t i = 0; i < n->nslots; i++) {
        char c = *text;
        pop->entry[i] = c == '0' ? ABSENT : c == '?' ? PERHAPS : PRESENT;
        pop->accs[i] = take(&b, n->slots[i].place, &text, &params);
    }
    pop->nparams = (uint32_t)params.len + 1;
    pop->params = mem_new_n(Var *, pop->nparams);
    pop->params[0] = b_var(&b, "k", b_some_type("frames"));
    for (size_t i = 0; i < params.len; i++)
        pop->params[i + 1] = params.data[i]->var;
    const Symbol *name = n->fn->fn->name;
    pop->global = instance_global(fmt_text("%s.pop", name ? name->text : "fn"));
    vec_push(&n->pops, pop);
    return pop;
}

Expr *pop_call(Way *w, Expr *chain, const Pop **called) {
    Instance *n = w->n;
    Str text = {0};
    Args args = {0};
    uint32_t reached;
    vec_push(&args, chain);
    for (uint32_t i = 0; i < n->nslots; i++)
        describe(w, n->slots[i].place, 0, &text, &args);
    Pop *pop = find_pop(n, str_text(&text), &reached);
    if (!pop && reached >= MAX_POPS) { /* one that is for all */
        Str any = {0};
        args.len = 1;
        for (uint32_t i = 0; i < n->nslots; i++) {
            str_add_char(&any, '?');
            vec_push(&args, acc_get(w, n->slots[i].place));
        }
        text = any;
        pop = find_pop(n, str_text(&text), &reached);
    }
    if (!pop)
        pop = add_pop(n, str_text(&text));
    pop->reached = true;
    *called = pop;
    Expr *f = expr_global(pop->global, b_some_type("f"), w->build.span);
    return b_call(&w->build, f, args.data, (uint32_t)args.len, 0);
}
