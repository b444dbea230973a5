/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to tokens, on demand: lexer_read(lex, at, &token) is a pure function of the position, so
 * the reader looks ahead and goes back by remembering an offset. Comments are recorded in the
 * module the first time they are passed.
 *
 * A name with a sigil is read as the longest text TVM could have meant (`%a.b/c`); the reader, which
 * knows what is bound, cuts it. What cannot begin a token is TOK_ERROR, with a DiagCode. */
#ifndef PARSER_LEXER_H
#define PARSER_LEXER_H

#include "base/diag.h"
#include "base/map.h"
#include "parser/ast.h"
#include "parser/token.h"

/* WORD(name, spelling, class): reserved words, dtypes, words that begin a type, and soft words, which
 * are ordinary names wherever a binding is in scope or the syntax does not ask for them. */
#define LEXER_WORDS(WORD)                                                                          \
    WORD(LET, "let", RESERVED)                                                                     \
    WORD(IN, "in", RESERVED)                                                                       \
    WORD(IF, "if", RESERVED)                                                                       \
    WORD(THEN, "then", RESERVED)                                                                   \
    WORD(ELSE, "else", RESERVED)                                                                   \
    WORD(MATCH, "match", RESERVED)                                                                 \
    WORD(FN, "fn", RESERVED)                                                                       \
    WORD(DEF, "def", RESERVED)                                                                     \
    WORD(TYPE, "type", RESERVED)                                                                   \
    WORD(WHEN, "when", RESERVED)                                                                   \
    WORD(WITH, "with", RESERVED)                                                                   \
    WORD(WHERE, "where", RESERVED)                                                                 \
    WORD(IMPORT, "import", RESERVED)                                                               \
    WORD(OPERATOR, "operator", RESERVED)                                                           \
    WORD(EXTERN, "extern", RESERVED)                                                               \
    WORD(DERIVATIVE, "derivative", RESERVED)                                                       \
    WORD(TANGENT, "tangent", RESERVED)                                                             \
    WORD(NO_DERIVATIVE, "no_derivative", RESERVED)                                                 \
    WORD(TRUE, "True", RESERVED)                                                                   \
    WORD(FALSE, "False", RESERVED)                                                                 \
    WORD(BOOL, "bool", DTYPE)                                                                      \
    WORD(INT8, "int8", DTYPE)                                                                      \
    WORD(INT16, "int16", DTYPE)                                                                    \
    WORD(INT32, "int32", DTYPE)                                                                    \
    WORD(INT64, "int64", DTYPE)                                                                    \
    WORD(UINT8, "uint8", DTYPE)                                                                    \
    WORD(UINT16, "uint16", DTYPE)                                                                  \
    WORD(UINT32, "uint32", DTYPE)                                                                  \
    WORD(UINT64, "uint64", DTYPE)                                                                  \
    WORD(FLOAT16, "float16", DTYPE)                                                                \
    WORD(BFLOAT16, "bfloat16", DTYPE)                                                              \
    WORD(FLOAT32, "float32", DTYPE)                                                                \
    WORD(FLOAT64, "float64", DTYPE)                                                                \
    WORD(TENSOR, "Tensor", TYPE)                                                                   \
    WORD(INT_TYPE, "IntType", TYPE)                                                                \
    WORD(UINT_TYPE, "UIntType", TYPE)                                                              \
    WORD(FLOAT_TYPE, "FloatType", TYPE)                                                            \
    WORD(BOOL_TYPE, "BoolType", TYPE)                                                              \
    WORD(LIST, "list", SOFT)                                                                       \
    WORD(SQ, "sq", SOFT)                                                                           \
    WORD(GRAD, "Grad", SOFT)                                                                       \
    WORD(BIG_REF, "Ref", SOFT)                                                                     \
    WORD(ZERO, "Zero", SOFT)                                                                       \
    WORD(NONE_VALUE, "None", SOFT)                                                                 \
    WORD(REF, "ref", SOFT)                                                                         \
    WORD(REF_TYPE, "RefType", SOFT)                                                                \
    WORD(FORALL, "forall", SOFT)                                                                   \
    WORD(META, "meta", SOFT)                                                                       \
    WORD(FREE_VAR, "free_var", SOFT)                                                               \
    WORD(FROM, "from", SOFT)                                                                       \
    WORD(AS, "as", SOFT)                                                                           \
    WORD(FLOORDIV, "floordiv", SOFT)                                                               \
    WORD(MIN, "min", SOFT)                                                                         \
    WORD(MAX, "max", SOFT)                                                                         \
    WORD(SHAPE, "Shape", SOFT)                                                                     \
    WORD(REF_READ, "ref_read", SOFT)                                                               \
    WORD(READ, "read", SOFT)                                                                       \
    WORD(REF_WRITE, "ref_write", SOFT)

typedef enum Word {
    WORD_NONE,
#define WORD(name, text, cls) WORD_##name,
    LEXER_WORDS(WORD)
#undef WORD
} Word;

typedef enum WordClass {
    WORDCLASS_NONE,
    WORDCLASS_RESERVED,
    WORDCLASS_DTYPE,
    WORDCLASS_TYPE,
    WORDCLASS_SOFT
} WordClass;

typedef struct Token {
    TokenKind kind;
    Word word;         /* IDENT */
    DiagCode error;    /* ERROR */
    bool blank_before; /* blanks, a comment or a line break */
    bool break_before; /* a line break */
    uint32_t begin, end;
    const Symbol *sym; /* IDENT, LOCAL, GLOBAL: without its sigil */
} Token;

typedef struct Lexer {
    const Source *source;
    Module *module; /* where comments go */
    uint32_t comments_upto;
    bool versioned; /* strings are raw and may span lines */
    bool session;   /* the text is copied from a prompt: lines without one are what it answered */
} Lexer;

void lexer_init(Lexer *lex, const Source *source, Module *module);

/* Behind the prompt at the beginning of the line at i (`relay> ` or `...> ` and blanks before it), which text
 * copied from a session has; i where there is none. */
uint32_t lexer_skip_prompt(const Source *source, uint32_t i);

/* Reads the token at or after byte `at`. */
void lexer_read(Lexer *lex, uint32_t at, Token *t);

/* What a token adds to how deep in brackets a text stands: 1, 0 or -1. */
int token_depth(TokenKind kind);

WordClass word_get_class(Word word);
/* A dtype, or a word that begins a type and never an expression. */
bool word_is_type(Word word);

#endif
