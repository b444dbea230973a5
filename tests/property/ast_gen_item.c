/* SPDX-License-Identifier: Apache-2.0 */
/* Random items and modules. */
#include "tests/property/ast_gen_impl.h"

AstPattern *gen_binding_pattern(Gen *g, int depth, NameVec *bound) {
    AstPattern *pat = mem_new(AstPattern);
    pat->kind = depth > 0 || gen_chance(g, 20) ? AST_PAT_TUPLE : AST_PAT_NAME;
    if (pat->kind == AST_PAT_NAME) {
        pat->name = fresh_binder(g, bound);
        vec_push(bound, pat->name);
        if (gen_chance(g, 20))
            pat->type = gen_type(g);
        return pat;
    }
    if (gen_chance(g, 30)) {
        pat->kind = AST_PAT_RECORD;
        pat->name = gen_name_of("Box", SIGIL_NONE);
        vec_push(&pat->fields, gen_name_of("w", SIGIL_NONE));
        vec_push(&pat->args, gen_binding_pattern(g, depth - 1, bound));
        return pat;
    }
    for (int n = gen_pick(g, 3); n > 0 && bound->len < 5; n--)
        vec_push(&pat->args, gen_binding_pattern(g, depth - 1, bound));
    thing(THING_BINDING_PATTERN);
    return pat;
}

void gen_arg_types(Gen *g, AstType *fn) {
    for (int n = gen_pick(g, 3); n > 0; n--)
        vec_push(&fn->args, gen_type(g));
    if (!gen_chance(g, 20) || g->versioned)
        return;
    for (size_t i = 0; i < fn->args.len; i++)
        vec_push(&fn->arg_names, i == 0              ? sym_intern("n")
                                 : gen_chance(g, 50) ? sym_intern("m")
                                                     : NULL);
}

static const char *const locals[] = {"x", "y", "acc", "_unused", "x1", "Long_Name_0", "data"};
static const char *const fields[] = {"w", "b", "weight", "type", "x"};

static const Symbol *sym(const char *text) { return sym_intern(text); }

static void gen_ctors(Gen *g, Item *item) {
    static const char *const names[] = {"Red", "Green", "Blue"};
    int n = gen_pick(g, 4);
    if (!n)
        thing(THING_EMPTY_TYPE);
    for (int i = 0; i < n; i++) {
        AstCtor c = {.name = gen_name_of(names[i], SIGIL_NONE), .named = gen_chance(g, 30)};
        int k = gen_pick(g, 3);
        if (c.named)
            thing(THING_NAMED_CTOR);
        for (int j = 0; j < k; j++) {
            AstField f = {.name = c.named ? sym(fields[j]) : NULL, .type = gen_type(g)};
            vec_push(&c.fields, f);
        }
        vec_push(&item->ctors, c);
    }
}

static void gen_import(Gen *g, Item *item) {
    if (gen_chance(g, 40)) {
        item->path = "lib/a file.rly";
        thing(THING_IMPORT_PATH);
    } else {
        item->name = gen_name_of("nn", SIGIL_NONE);
    }
    if (gen_chance(g, 30)) {
        item->as = sym("m");
        thing(THING_IMPORT_AS);
    } else if (gen_chance(g, 50)) {
        item->has_names = true;
        vec_push(&item->names, gen_name_of("linear", SIGIL_NONE));
        vec_push(&item->names, gen_name_of("sgd", SIGIL_GLOBAL));
        thing(THING_IMPORT_NAMES);
    }
}

static void gen_rule(Gen *g, Item *item) {
    static const char *const args[] = {"data", "weight", "out", "ct"};
    item->name = gen_name_of(gen_chance(g, 30) ? "where" : "nn.dense", SIGIL_NONE);
    item->fn = mem_new(AstFn);
    size_t mark = g->scope.len;
    for (int i = 0; i < 4; i++) {
        Name name = gen_name_of(args[i], gen_chance(g, 20) ? SIGIL_LOCAL : SIGIL_NONE);
        AstParam p = {.name = name};
        vec_push(&g->scope, name);
        if (i < 2)
            vec_push(&item->fn->params, p);
        else
            vec_push(&item->extra, name);
    }
    item->fn->body = gen_expr(g);
    g->scope.len = mark;
}

static Item *gen_item(Gen *g) {
    static const char *const docs[] = {"One line.", "Two\n  lines.", "", "a\n\nb"};
    Item *item = mem_new(Item);
    item->kind = (ItemKind)gen_pick(g, N_ITEM);
    drawn_item[item->kind]++;
    if (gen_chance(g, 20)) {
        item->doc = PICK(g, docs);
        thing(THING_DOC);
    }
    switch (item->kind) {
    case ITEM_DEF:
        item->name = gen_name_of(gen_chance(g, 20) ? "lib.fn_1" : "f",
                                 gen_chance(g, 60) ? SIGIL_GLOBAL : SIGIL_NONE);
        item->fn = gen_fn(g);
        break;
    case ITEM_TYPE:
        item->name = gen_name_of("Colour", SIGIL_NONE);
        gen_type_params(g, &item->type_params, 0);
        gen_ctors(g, item);
        break;
    case ITEM_EXTERN_TYPE:
        item->name = gen_name_of("Storage", SIGIL_NONE);
        gen_type_params(g, &item->type_params, 0);
        break;
    case ITEM_OPERATOR:
        item->name = gen_name_of("cbrt", gen_chance(g, 70) ? SIGIL_GLOBAL : SIGIL_NONE);
        item->type = gen_type(g);
        item->symbol = "cbrt";
        item->path = "libm.so.6";
        break;
    case ITEM_DERIVATIVE:
    case ITEM_TANGENT: gen_rule(g, item); break;
    case ITEM_NO_DERIVATIVE: item->name = gen_name_of("argsort", SIGIL_NONE); break;
    case ITEM_LET:
        item->name = gen_name_of(PICK(g, locals), gen_chance(g, 30) ? SIGIL_LOCAL : SIGIL_NONE);
        if (gen_chance(g, 30))
            item->type = gen_type(g);
        item->value = gen_expr(g);
        break;
    case ITEM_GRAPH_LET:
        item->index = gen_pick(g, 30);
        item->value = gen_expr(g);
        break;
    case ITEM_FREE_VAR:
        item->name = gen_name_of("input", SIGIL_LOCAL);
        if (gen_chance(g, 70))
            item->type = gen_type(g);
        break;
    case ITEM_IMPORT: gen_import(g, item); break;
    case ITEM_EXPR:
        item->value = gen_expr(g);
        item->shown = gen_chance(g, 60);
        thing(item->shown ? THING_SHOWN : THING_NOT_SHOWN);
        break;
    case ITEM_ERROR: break;
    }
    return item;
}

static MetaConstant *gen_constant(Gen *g) {
    static const unsigned char codes[] = {0, 1, 2, 2}, bits[] = {32, 8, 32, 64};
    MetaConstant *c = mem_new(MetaConstant);
    int type = gen_pick(g, 4);
    size_t n = 1;
    c->code = codes[type];
    c->bits = bits[type];
    c->ndim = gen_pick(g, 3);
    c->shape = mem_bytes(8 * 3);
    for (int i = 0; i < c->ndim; i++)
        n *= (size_t)(c->shape[i] = gen_pick(g, 4));
    c->bytes = n * c->bits / 8;
    unsigned char *data = mem_bytes(c->bytes + 1);
    for (size_t i = 0; i < c->bytes; i++)
        data[i] = (unsigned char)gen_pick(g, 256);
    c->data = data;
    thing(THING_CONSTANT);
    return c;
}

Module *gen_module(uint64_t seed) {
    Gen g = {.state = seed, .depth = 6};
    g.versioned = gen_chance(&g, 25);
    g.soft = gen_chance(&g, 30);
    Module *m = mem_new(Module);
    m->versioned = g.versioned;
    m->version = g.versioned ? "0.0.5" : NULL;
    if (g.versioned)
        thing(THING_VERSIONED);
    for (int n = 1 + gen_pick(&g, 6); n > 0; n--) {
        vec_push(&m->items, gen_item(&g));
        g.scope.len = 0;
    }
    if (gen_chance(&g, 10))
        for (int n = 1 + gen_pick(&g, 2); n > 0; n--)
            vec_push(&m->constants, gen_constant(&g));
    return m;
}
