/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share; nobody else includes it.
 *
 * The reader is recursive descent with one token in hand. At the first mistake it reports, sets
 * `panic` and unwinds: every function returns a node all the same (AST_ERROR, a hole, a wildcard),
 * every loop ends, nothing more is reported. The nearest block or the item loop then skips to where
 * it can go on (parse_recover). A speculation (`muted`) sets panic and reports nothing. */
#ifndef PARSER_PARSE_INTERNAL_H
#define PARSER_PARSE_INTERNAL_H

#include "base/map.h"
#include "parser/lexer.h"
#include "parser/literal.h"
#include "parser/parser.h"

/* What the place asks for. An opening bracket clears all of it, its closing one brings it back. */
enum {
    CTX_NO_RECORD = 1, /* a scrutinee or condition: `x {` is no record */
    CTX_INDEX = 2,     /* directly inside an index: `::` is two colons */
    CTX_LINE = 4,      /* a line break ends the item where it is complete */
    CTX_NO_SEMI = 8,   /* an arm without braces, an item: stops before `;` */
    CTX_NO_ARROW = 16, /* a type where `->` belongs to something else */
    CTX_NO_WHERE = 32, /* a result type whose `where` is the function's */
};

typedef struct Parser {
    const Source *source;
    const ParseOptions *options;
    Diags *diags;
    Module *module;
    Lexer lex;
    Token tok;
    uint32_t prev_end;   /* of the token before tok */
    Word prev_word;      /* the token before tok, where it is a word with a meaning */
    size_t comments;     /* how many comments were looked at: warn_division */
    uint32_t item_begin; /* of the item being read */
    unsigned ctx;
    VEC(char) brackets; /* the open ones, as their opening characters */
    int depth;
    int muted;
    bool in_call; /* sizes among attributes are expressions, not types */
    bool panic;
    bool incomplete;     /* the first thing missing is missing at the end */
    bool failed;         /* something was reported */
    Diag *unended;       /* the report of lines in braces that lack their `;`, or NULL */
    Map locals;          /* Symbol -> how many bare and sigil bindings are in scope */
    NameVec bindings;    /* in scope, innermost last */
    VEC(Item *) derived; /* by the pattern of the item being read */
    VEC(const Symbol *) type_params; /* in scope: of the functions around */
    Map heads;                       /* Symbol -> flags of what the whole text binds */
} Parser;

/* ---- parser.c: tokens, mistakes, nesting ----------------------------------------------------- */

size_t parse_old_version(const Source *s);
void parse_advance(Parser *p);
/* The token after the one in hand. */
Token parse_peek(Parser *p);
/* Puts the offset `at` right after the token in hand, which is cut there. */
void parse_cut(Parser *p, uint32_t at);

static inline bool parse_at(const Parser *p, TokenKind kind) { return p->tok.kind == kind; }
static inline bool parse_at_word(const Parser *p, Word word) {
    return p->tok.kind == TOK_IDENT && p->tok.word == word;
}
bool parse_accept(Parser *p, TokenKind kind);
bool parse_accept_word(Parser *p, Word word);
/* Expects and passes a token; the mistake names it and what was found. */
bool parse_expect(Parser *p, TokenKind kind);
bool parse_expect_word(Parser *p, Word word);
/* What could stand at the token in hand, where the message says more than the words. */
typedef enum Expected {
    EXPECTED_OTHER,
    EXPECTED_OPERATOR, /* an expression is complete there, and an operator would continue it */
} Expected;
/* "expected WHAT, found …" at the token in hand. */
void parse_unexpected(Parser *p, const char *what);
void parse_unexpected_at(Parser *p, Expected expected, const char *what);
/* Any other mistake. NULL (and nothing is reported) while muted or in panic. */
Diag *parse_mistake(Parser *p, DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A mistake after which reading goes on as if nothing had been. */
Diag *parse_complain(Parser *p, DiagCode code, Span span, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A warning; NULL while muted or in panic. */
Diag *parse_warn(Parser *p, DiagCode code, Span span, const char *text);

/* An opening bracket is in hand: passes it; returns what parse_close wants back. */
typedef struct Opened {
    unsigned ctx;
    Span span;
} Opened;
Opened parse_open(Parser *p);
bool parse_close(Parser *p, TokenKind kind, Opened opened);
/* The same where not a comma but `what` could have come. */
bool parse_close_after(Parser *p, TokenKind kind, Opened opened, Expected expected,
                       const char *what);
/* Between the elements of a list that ends with `close`: passes a comma and says whether another
 * element follows. */
bool parse_more(Parser *p, TokenKind close);

/* After a mistake in a block whose own brackets are `level` deep: skips to where it can go on.
 * False when that is further out; panic then stays. */
bool parse_recover(Parser *p, size_t level);
bool parse_begins_item(const Token *t);

/* Nesting: false after a diagnostic (or panic), and the caller returns. Leave always. */
bool parse_enter(Parser *p);
static inline void parse_leave(Parser *p) { p->depth--; }

/* Speculation. */
typedef struct Saved {
    Token tok;
    uint32_t prev_end;
    unsigned ctx;
    size_t brackets;
    int depth;
} Saved;
Saved parse_save(Parser *p);
void parse_restore(Parser *p, Saved saved);

Span parse_span(const Parser *p, uint32_t begin, uint32_t end);
static inline Span parse_tok_span(const Parser *p) {
    return parse_span(p, p->tok.begin, p->tok.end);
}
/* From begin to the end of the token last passed. */
static inline Span parse_span_from(const Parser *p, uint32_t begin) {
    return parse_span(p, begin, p->prev_end);
}
Ast *parse_node(Parser *p, AstKind kind, uint32_t begin); /* its span ends at prev_end */
Ast *parse_error_node(Parser *p);

/* ---- parse_name.c: names and what is bound --------------------------------------------------- */

void parse_scan_heads(Parser *p);
size_t parse_scope_mark(const Parser *p);
void parse_scope_bind(Parser *p, Name name);
void parse_scope_release(Parser *p, size_t mark);
/* What a name means here, bound any way; *local: a local of this text. */
KnownName parse_find_name(Parser *p, const Symbol *sym, bool *local);
/* Whether a binding in scope takes a soft word away from the syntax. */
bool parse_is_shadowed(Parser *p, const Symbol *sym);
/* The word in hand, and not shadowed. */
bool parse_at_soft(Parser *p, Word word);
/* A name in binding position: `x`, `%x`, also `@f` and dotted names where `global`. */
Name parse_binder(Parser *p, bool global, const char *what);
/* A name that is used: the longest bound prefix after a sigil, a bare name with its dots. */
Name parse_name_ref(Parser *p);
/* a.b.c, all of it, as one symbol: types, attributes, operators. */
Name parse_dotted(Parser *p, const char *what);
void parse_check_twice(Parser *p, const NameVec *names, const char *what);

/* ---- parse_let.c: what a binding binds ------------------------------------------------------- */

/* `let` has been passed. Reads a name or a pattern, and `: T`. Binds nothing yet. */
typedef struct LetHead {
    Name name; /* hidden where there is a pattern */
    AstPattern *pattern;
    AstType *type;
} LetHead;
LetHead parse_let_head(Parser *p, bool global);
/* Binds its variables, or its name. */
void parse_let_bind(Parser *p, const LetHead *head);
/* A pattern begins where the name of a binding could stand, too. */
bool parse_at_let_pattern(Parser *p);
/* A name for what the pattern takes apart. */
Name parse_hidden_name(Parser *p, const AstPattern *pattern);
/* The variables of a pattern that binds, in the order of the text. */
void parse_pattern_names(const AstPattern *pattern, NameVec *names);
/* The bindings of its variables to the parts of `whole`, as a chain of `let`s without a body, or NULL. */
Ast *parse_take_apart(Parser *p, const AstPattern *pattern, Name whole);

/* ---- the productions ------------------------------------------------------------------------- */

/* e, with `;` and bindings unless CTX_NO_SEMI. Stops before what cannot continue it. */
Ast *parse_sequence(Parser *p);
Ast *parse_expr(Parser *p); /* without `;`, with `:=` */
Ast *parse_unary(Parser *p);
Ast *parse_postfix(Parser *p);
Ast *parse_primary(Parser *p);
Ast *parse_block(Parser *p); /* { … } or { r with … } */
Ast *parse_if(Parser *p);
Ast *parse_match(Parser *p);
Ast *parse_fn(Parser *p);
AstFn *parse_fn_rest(Parser *p); /* from the type parameters to the body */
Ast *parse_literal(Parser *p, bool negative);
bool parse_at_literal_number(Parser *p); /* a number, inf, nan */
/* [i, 1:3]: into e->indices. */
void parse_indices(Parser *p, Ast *e);
/* [i, j] after a: an index, or type arguments. */
Ast *parse_brackets(Parser *p, Ast *a);
bool parse_begins_expr(const Token *t);
/* A line break before the token in hand ended the item. */
static inline bool parse_line_ended(const Parser *p) {
    return (p->ctx & CTX_LINE) && p->tok.break_before;
}

AstType *parse_type_any(Parser *p);
AstType *parse_type_atom(Parser *p); /* without arrows and arithmetic outside of brackets */
void parse_type_params(Parser *p, AstTypeParamVec *params); /* [A, n: Dim] or <A>, if there */
void parse_type_args(Parser *p, TokenKind close, AstTypeVec *args);
bool parse_where(Parser *p, AstConstraintVec *where); /* if there */

AstPattern *parse_pattern(Parser *p); /* binds its variables */

/* `key = value, …`, when one stands here; stops before `close`. */
bool parse_at_attr(Parser *p);
void parse_attrs(Parser *p, TokenKind close, AstAttrVec *attrs);
/* meta[Key][i] with the word in hand. */
bool parse_meta(Parser *p, const char **key, size_t *key_len, int64_t *index);
bool parse_index_number(Parser *p, uint32_t begin, uint32_t end, int64_t *value);

Item *parse_item(Parser *p);
/* The last comment read is the documentation of an item. */
bool parse_ends_in_doc(const Parser *p);

/* metadata.c: the JSON from `begin` to the end of the text into module->constants. */
void parse_metadata(Parser *p, uint32_t begin);

#endif
