/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/optimise.h"

#include "passes/cells.h"
#include "passes/inline.h"
#include "passes/pass.h"

#include <stdio.h>
#include <string.h>

void opt_options_init(OptOptions *options) { *options = (OptOptions){.level = 2}; }

bool opt_is_on(const OptOptions *options) { return options->passes || options->level > 0; }

static const char *unknown_in(const char *const *names, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!pass_find(names[i]))
            return names[i];
    return NULL;
}

const char *opt_unknown_pass(const OptOptions *options) {
    const char *unknown = unknown_in(options->passes, options->npasses);
    if (!unknown)
        unknown = unknown_in(options->without, options->nwithout);
    return unknown ? unknown : unknown_in(&options->print_after, options->print_after != NULL);
}

static bool dependency_holds(const Dependency *d) {
    const Global *g = d->global;
    return g->value == d->value && g->values == d->values && !g->broken;
}

bool dependencies_hold(const DependencyVec *deps) {
    for (size_t i = 0; i < deps->len; i++)
        if (!dependency_holds(&deps->data[i]))
            return false;
    return true;
}

void pass_depend(PassCtx *ctx, Global *g) {
    if (!ctx->deps)
        return;
    for (size_t i = 0; i < ctx->deps->len; i++)
        if (ctx->deps->data[i].global == g)
            return;
    vec_push(ctx->deps, ((Dependency){g, g->value, g->values}));
}

static bool is_left_out(const OptOptions *options, const char *name) {
    for (uint32_t i = 0; i < options->nwithout; i++)
        if (strcmp(options->without[i], name) == 0)
            return true;
    return false;
}

/* Counts an application; false where bisection ends before it. */
static bool may_apply(PassCtx *ctx, const Pass *pass, const Symbol *name) {
    ctx->applied++;
    if (!ctx->opt->bisects || ctx->applied < ctx->opt->bisect)
        return true;
    if (ctx->applied > ctx->opt->bisect)
        return false;
    fprintf(stderr, "opt-bisect: %llu is the last: %s of %s%s%s\n",
            (unsigned long long)ctx->applied, pass->name, name ? "`" : "",
            name ? name->text : "an expression", name ? "`" : "");
    return true;
}

/* checked: what was found right last. Most passes leave most functions as they are. */
static Expr *apply(PassCtx *ctx, const Pass *pass, Expr *e, const Symbol *name, const VarVec *given,
                   const Expr **checked) {
    if (is_left_out(ctx->opt, pass->name) || !may_apply(ctx, pass, name))
        return e;
    Expr *after = pass->run(ctx, e);
    if (!after)
        return e;
    if (after != *checked)
        pass_check(ctx, after, given, pass->name);
    *checked = after;
    pass_print_after(ctx, pass, name, after);
    fn_note_written(after, e);
    return after;
}

/* cse makes one value of several, which adds cotangents up in another order; simplify and shapes keep the bits of values, not of
 * derivatives; unpack would have the parts of a record added to apart. A derivative inside is made where it is read (Note
 * [Derivatives inside] in passes/reverse/nested.c), unless it is asked for here. */
static bool spoils_source(const PassCtx *ctx, const Pass *pass) {
    static const char *const names[] = {"cse", "simplify", "shapes", "unpack"};
    if (strcmp(pass->name, "derive") == 0)
        return !ctx->derives_source;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(pass->name, names[i]) == 0)
            return true;
    return false;
}

/* What is to be differentiated says where values get cells of their own, before a pass takes them apart; what runs has
 * no cells: Note [Own cells] in passes/cells.h. */
static Expr *settle_cells(Expr *e, bool is_source) {
    return is_source ? cells_expose(e) : cells_drop(e);
}

enum { MOST_ROUNDS = 4 };

static Expr *run_passes(PassCtx *ctx, const PassVec *passes, Expr *e, const Symbol *name,
                        const VarVec *given, bool is_source) {
    const OptOptions *opt = ctx->opt;
    int rounds = opt->passes || opt->level <= 2 ? 1 : 2;
    bool derives = false;
    const Expr *settled = NULL, *checked = NULL;
    for (int round = 0; round < rounds; round++) {
        ctx->brought_derivative = false;
        for (size_t i = 0; i < passes->len; i++) {
            const Pass *pass = passes->data[i];
            if (e != settled)
                settled = e = settle_cells(e, is_source);
            if (!(is_source && spoils_source(ctx, pass)))
                e = apply(ctx, pass, e, name, given, &checked);
            derives |= strcmp(pass->name, "derive") == 0;
        }
        /* `derive` comes before what brings derivatives in from other functions */
        if (ctx->brought_derivative && derives && !is_source && rounds < MOST_ROUNDS)
            rounds++;
    }
    return settle_cells(e, is_source);
}

void opt_passes(const OptOptions *opt, PassVec *out) {
    for (size_t i = 0; i < opt->npasses; i++)
        vec_push(out, pass_find(opt->passes[i]));
    for (size_t i = 0; !opt->passes && i < pass_count(); i++)
        if (pass_at(i)->level && pass_at(i)->level <= opt->level)
            vec_push(out, pass_at(i));
}

static Expr *optimise_as(PassCtx *ctx, const PassVec *passes, Expr *e, const Symbol *name,
                         const VarVec *given, DependencyVec *deps, bool is_source, bool derives) {
    DependencyVec *outer = ctx->deps;
    bool outer_derives = ctx->derives_source;
    ctx->deps = deps;
    ctx->derives_source = is_source && derives;
    expr_mark_tails(e);
    e = run_passes(ctx, passes, e, name, given, is_source);
    ctx->deps = outer;
    ctx->derives_source = outer_derives;
    return e;
}

Expr *optimise_by(PassCtx *ctx, const PassVec *passes, Expr *e, const Symbol *name,
                  const VarVec *given, DependencyVec *deps) {
    return optimise_as(ctx, passes, e, name, given, deps, false, true);
}

Expr *optimise(PassCtx *ctx, Expr *e, const Symbol *name, const VarVec *given,
               DependencyVec *deps) {
    PassVec passes = {0};
    opt_passes(ctx->opt, &passes);
    return optimise_by(ctx, &passes, e, name, given, deps);
}

Expr *optimise_source(PassCtx *ctx, Expr *e, const Symbol *name, const VarVec *given,
                      DependencyVec *deps, bool derives) {
    PassVec passes = {0};
    opt_passes(ctx->opt, &passes);
    return optimise_as(ctx, &passes, e, name, given, deps, true, derives);
}
