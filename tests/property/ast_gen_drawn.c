/* SPDX-License-Identifier: Apache-2.0 */
/* What was drawn: each production is to be, and those that never were are told. */
#include "base/str.h"
#include "tests/property/ast_gen_impl.h"

const char *const gen_dtypes[13] = {"bool",     "int8",    "int16",  "int32",  "int64",
                                    "uint8",    "uint16",  "uint32", "uint64", "float16",
                                    "bfloat16", "float32", "float64"};

static const char *const thing_names[] = {
#define X(name) #name,
    THINGS(X)
#undef X
};

int drawn_item[N_ITEM], drawn_thing[N_THING];
int drawn_ast[N_AST], drawn_type[N_TYPE], drawn_pattern[N_PATTERN], drawn_attr[N_ATTR],
    drawn_index[N_INDEX], drawn_binop[N_BINOP], drawn_unop[N_UNOP], drawn_dim[N_DIM],
    drawn_sigil[N_SIGIL], drawn_suffix[13];

static void list_missing(Str *s, const char *what, const int *drawn, int n,
                         const char *const *names) {
    for (int i = 0; i < n; i++)
        if (!drawn[i])
            str_printf(s, "%s %s\n", what, names[i]);
}

static void list_numbers(Str *s, const char *what, const int *drawn, int n) {
    for (int i = 0; i < n; i++)
        if (!drawn[i])
            str_printf(s, "%s number %d\n", what, i);
}

const char *gen_missing(void) {
    Str s = {0};
    list_numbers(&s, "expression", drawn_ast, N_AST);
    list_numbers(&s, "type", drawn_type, N_TYPE);
    list_numbers(&s, "pattern", drawn_pattern, N_PATTERN);
    list_numbers(&s, "attribute", drawn_attr, N_ATTR);
    list_numbers(&s, "index", drawn_index, N_INDEX);
    list_numbers(&s, "binary operator", drawn_binop, N_BINOP);
    list_numbers(&s, "unary operator", drawn_unop, N_UNOP);
    list_numbers(&s, "size", drawn_dim, N_DIM);
    list_numbers(&s, "item", drawn_item, N_ITEM);
    list_numbers(&s, "sigil", drawn_sigil, N_SIGIL);
    list_missing(&s, "suffix", drawn_suffix + 1, 12, gen_dtypes + 1);
    list_missing(&s, "thing", drawn_thing, N_THING, thing_names);
    return str_text(&s);
}
