/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the generator. */
#ifndef TESTS_PROPERTY_AST_GEN_IMPL_H
#define TESTS_PROPERTY_AST_GEN_IMPL_H

#include "tests/property/ast_gen.h"

enum {
    N_AST = AST_ERROR,
    N_TYPE = AST_TYPE_HOLE + 1,
    N_PATTERN = AST_PAT_LIST + 1,
    N_ATTR = AST_ATTR_EXPR + 1,
    N_INDEX = INDEX_NEW_AXIS + 1,
    N_BINOP = BINOP_COUNT,
    N_UNOP = UNOP_SQ + 1,
    N_DIM = DIM_MAX + 1,
    N_ITEM = ITEM_ERROR,
    N_SIGIL = SIGIL_GLOBAL + 1,
};

/* Single things, by name. */
/* clang-format off */
#define THINGS(X)                                                                                  \
    X(WEAK_INT) X(WEAK_FLOAT) X(NEGATIVE_INT) X(NEGATIVE_FLOAT) X(NEGATIVE_ZERO) X(INF) X(MINUS_INF) \
    X(NAN) X(SMALLEST_INT) X(LARGEST_UINT) X(ESCAPES) X(NOT_UTF8) X(EMPTY_STRING) X(MATCH_PARTIAL) \
    X(GUARD) X(BINDING_PATTERN) X(LET_END) X(SEQ_END) X(LET_TYPE) X(PATTERN_TYPE) X(FN_PARAMS) X(FN_ATTRS) X(FN_RESULT) \
    X(FN_WHERE) X(WHERE_ATTRS) X(TYPE_WHERE) X(CALL_TYPES) X(CALL_ATTRS) X(KIND) X(DOC) X(EMPTY_TYPE) \
    X(NAMED_CTOR) X(IMPORT_PATH) X(IMPORT_AS) X(IMPORT_NAMES) X(SHOWN) X(NOT_SHOWN) X(CONSTANT)    \
    X(VERSIONED) X(SOFT_NAME) X(DOTTED_NAME) X(COMPOUND_NAME) X(NUMBERED_UNKNOWN) X(TUPLE_0) X(TUPLE_1) X(CHAIN_VALUE)
/* clang-format on */
enum {
#define X(name) THING_##name,
    THINGS(X)
#undef X
        N_THING
};

/* How often each was drawn. */
extern int drawn_item[N_ITEM], drawn_thing[N_THING], drawn_ast[N_AST], drawn_type[N_TYPE],
    drawn_pattern[N_PATTERN], drawn_attr[N_ATTR], drawn_index[N_INDEX], drawn_binop[N_BINOP],
    drawn_unop[N_UNOP], drawn_dim[N_DIM], drawn_sigil[N_SIGIL], drawn_suffix[13];

extern const char *const gen_dtypes[13];

static inline void thing(int which) { drawn_thing[which]++; }

int gen_pick(Gen *g, int n);
static inline bool gen_chance(Gen *g, int percent) { return gen_pick(g, 100) < percent; }
#define PICK(g, list) ((list)[gen_pick(g, (int)(sizeof(list) / sizeof *(list)))])

Name gen_name_of(const char *text, Sigil sigil);
Name gen_binder(Gen *g);
Name fresh_binder(Gen *g, const NameVec *taken); /* of a name that is not taken */
/* A pattern of a `let` or parameter, where each bare name is a variable. */
AstPattern *gen_binding_pattern(Gen *g, int depth, NameVec *bound);
AstType *gen_type(Gen *g);
void gen_type_params(Gen *g, AstTypeParamVec *out, int least);
void gen_arg_types(Gen *g, AstType *fn); /* of a function type, some with a name */
AstFn *gen_fn(Gen *g);
Ast *gen_expr(Gen *g);

#endif
