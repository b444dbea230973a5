/* SPDX-License-Identifier: Apache-2.0 */
/* Code: a function of the typed core, ready to run. Private to eval/.
 *
 * A register machine: each activation has `nslots` values on the explicit stack; parameters are the
 * first. An operand is a byte offset with its base in the low bits: a slot of the activation, a
 * constant of the code, a variable captured by the closure. Since no binding of the language
 * changes, operands may be read as late as one likes, and a variable costs no instruction.
 *
 * Arguments of a call are computed in adjacent slots at the top of the caller's activation, where
 * the callee's activation then begins: nothing is copied, and a call of known arity allocates
 * nothing. The caller's resumption is a Frame on a stack beside it; its result slot and the
 * distance of the bases stand in the call instruction itself. */
#ifndef EVAL_CODE_H
#define EVAL_CODE_H

#include "eval/builtin.h"
#include "eval/value.h"
#include "passes/pass.h"

/* X(name, b, c, use, result, flow): what the fields of an instruction are, in the terms of eval/operands.h. `a` is the
 * result's slot where there is one, as a byte offset; b and c are operands, rows of slots, or what the comment says. */
/* clang-format off */
#define OPCODES(X)                                                                                           \
    X(MOVE,         ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- b */                                   \
    X(GLOBAL,       NONE, NONE,       BORROW, VALUE,   NEXT)  /* a <- value of global b, a constant; its cell is the one after it */ \
    X(LIKE,         ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- constant c + (dtype of b): a literal in each dtype, in order */ \
    X(RETURN,       ONE,  NONE,       KEEP,   NOTHING, END)   /* b; x: who owns it, if it is a tensor (eval/own.h) */ \
    X(CALL,         ONE,  ROW_X,      KEEP,   CALLED,  NEXT)  /* a <- b(slots from c); x arguments; the callee's twin at this code's path */ \
    X(CALL_GLOBAL,  NONE, ROW_X,      KEEP,   CALLED,  NEXT)  /* the same, b a global, a constant */         \
    X(PATH,         NONE, NONE,       BORROW, NOTHING, NEXT)  /* the CALL or TAIL that follows asks for the twin at path b (constant operand) */ \
    X(GIVE,         NONE, NONE,       BORROW, NOTHING, NEXT)  /* the CALL that follows, or its PATH, gives arguments to the callee: number a of Owners */ \
    X(TAIL,         ONE,  ROW_X,      KEEP,   NOTHING, END)   /* b(slots from c), x arguments; no frame is kept; a & 1: the user's call; a >> 1: Owners */ \
    X(TAIL_GLOBAL,  NONE, ROW_X,      KEEP,   NOTHING, END)                                                  \
    X(HOLE,         ANY,  ANY,        KEEP,   NOTHING, NEXT)  /* the tail call that follows gives the last field of data c, a part of b; moves the activation */ \
    X(FILL,         ANY,  ANY,        KEEP,   NOTHING, NEXT)  /* the last field of slot 1's data <- slot 2 (machine.h, in->fill) */ \
    X(CLOSURE,      MAKE, NONE,       KEEP,   VALUE,   NEXT)  /* a <- closure of makes[b] */                 \
    X(GRAD,         ONE,  NONE,       KEEP,   VALUE,   NEXT)  /* a <- derivative x (GradKind) of the function b; c: Expr.is_left */ \
    X(JUMP,         NONE, NONE,       BORROW, NOTHING, GOTO)  /* to a */                                     \
    X(JUMP_IF,      ONE,  NONE,       BORROW, NOTHING, JUMP)  /* to a when b is x */                         \
    X(JUMP_LT,      ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_LE,      ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_GT,      ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_GE,      ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_EQ,      ONE,  ONE,        BORROW, NOTHING, JUMP)  /* to a when (b ? c) is x */                   \
    X(JUMP_LT_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_LE_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_GT_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_GE_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_EQ_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)                                                 \
    X(JUMP_NE_I,    ONE,  ONE,        BORROW, NOTHING, JUMP)  /* to a when slot b ? the int32 constant c, which x is too */ \
    X(JUMP_ABSENT,  ONE,  NONE,       BORROW, NOTHING, JUMP)  /* to a when it is x that the cotangent b is absent */ \
    X(ADD,          ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(SUB,          ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(MUL,          ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(DIV,          ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(STRONG_MUL,   ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(STRONG_DIV,   ONE,  ONE,        TAKE,   FRESH,   NEXT)  /* where a zero is stronger than what is not finite */ \
    X(NEG_STRONG_MUL, ONE, ONE,       BORROW, FRESH,   NEXT)  /* the negative of it, of scalars */           \
    X(NEG_STRONG_DIV, ONE, ONE,       BORROW, FRESH,   NEXT)                                                 \
    X(LT,           ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(LE,           ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(GT,           ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(GE,           ONE,  ONE,        TAKE,   FRESH,   NEXT)                                                 \
    X(EQUAL,        ONE,  ONE,        BORROW, VALUE,   NEXT)  /* a <- b == c, != when x */                   \
    X(NEG,          ONE,  NONE,       TAKE,   FRESH,   NEXT)                                                 \
    X(NOT,          ONE,  NONE,       TAKE,   FRESH,   NEXT)                                                 \
    X(ADD_I,        ONE,  ONE,        BORROW, FRESH,   NEXT)                                                 \
    X(SUB_I,        ONE,  ONE,        BORROW, FRESH,   NEXT)  /* of slot b and the int32 constant c, which x is too */ \
    X(OPERATOR,     ROW_SITE, NONE,   TAKE,   FRESH,   NEXT)  /* a <- sites[c] applied to the slots from b */ \
    X(MORE,         NONE, NONE,       BORROW, FRESH,   NEXT)  /* a <- result c + 1 of the OPERATOR before, a group of several */ \
    X(BUILTIN,      ROW_ARGS, NONE,   KEEP,   VALUE,   NEXT)  /* the same for a builtin */                   \
    X(DATA,         ROW_CTOR, NONE,   KEEP,   VALUE,   NEXT)  /* a <- constructor (constant operand c) of the slots from b */ \
    X(TUPLE,        ROW_C, NONE,      KEEP,   VALUE,   NEXT)  /* a <- c slots from b; x: which items it owns, of items_owned */ \
    X(PROJ,         ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- b.c */                                 \
    X(FIELD,        ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- the origin's field of b */             \
    X(UPDATE,       ONE,  ROW_ORIGIN, KEEP,   VALUE,   NEXT)  /* a <- b with the origin's fields = slots from c */ \
    X(REF,          ONE,  NONE,       KEEP,   VALUE,   NEXT)                                                 \
    X(READ,         ONE,  NONE,       BORROW, VALUE,   NEXT)                                                 \
    X(WRITE,        ONE,  ONE,        KEEP,   VALUE,   NEXT)                                                 \
    X(BANG,         ONE,  NONE,       BORROW, VALUE,   NEXT)                                                 \
    X(TENSOR,       ROW_C, NONE,      BORROW, FRESH,   NEXT)  /* a <- stack of c slots from b */             \
    X(INDEX,        ONE,  ROW_ORIGIN, BORROW, VALUE,   NEXT)  /* a <- b[slots from c], by the origin */      \
    X(DIM_OF,       ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- size of axis c of b, in the dtype of the origin's type */ \
    X(CHECK,        ONE,  ONE,        BORROW, NOTHING, NEXT)  /* found b, expected c, check number a of the origin */ \
    X(CHECK_SHAPE,  ONE,  ONE,        BORROW, NOTHING, NEXT)  /* the same of a rank or a shape */            \
    X(TEST_DATA,    ONE,  NONE,       BORROW, NOTHING, JUMP)  /* to a unless b is of constructor c (constant operand) */ \
    X(TEST_NULLARY, ONE,  NONE,       BORROW, NOTHING, JUMP)  /* the same of a constructor without fields */ \
    X(TEST_VALUE,   ONE,  NONE,       BORROW, NOTHING, JUMP)  /* to a unless b equals the literal c */       \
    X(GET_FIELD,    ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- field number c of b */                 \
    X(GET_CAPTURED, ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- captured variable number c of closure b */ \
    X(GET_ITEM,     ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- item number c of b */                  \
    X(ADD_CT,       ONE,  ONE,        KEEP_OR_TAKE, VALUE, NEXT) /* a <- cotangent b + cotangent c, either may be absent */ \
    X(ADD_PRODUCT,  ROW_SITE, NONE,   KEEP_OR_TAKE, VALUE, NEXT) /* a <- cotangent slot b + the product of sites[c] of the slots behind it */ \
    X(PART_OF_CT,   ONE,  NONE,       BORROW, VALUE,   NEXT)  /* a <- part c of cotangent b, absent where it has none */ \
    X(PARTS_OF_CT,  ONE,  NONE,       BORROW, SEVERAL, NEXT)  /* slots from a on <- x parts of cotangent b, from c on */ \
    X(MOVES,        LIST_X, NONE,     KEEP,   SEVERAL, NEXT)  /* slots from a <- x operands of lists[b]; so on: eval/tighten.h */ \
    X(TUPLE_OF,     LIST_C, NONE,     KEEP,   VALUE,   NEXT)  /* a <- c operands of lists[b]; x as in TUPLE */ \
    X(DATA_OF,      LIST_CTOR, NONE,  KEEP,   VALUE,   NEXT)  /* a <- constructor c of operands of lists[b] */ \
    X(UNPACK,       ONE,  NONE,       BORROW, SEVERAL, NEXT)  /* slots from a <- x items of tuple b, from c on */ \
    X(UNPACK_CALLED, ONE, NONE,       BORROW, SEVERAL, NEXT)  /* UNPACK of what the call before gave, which nothing else reads */ \
    X(UNPACK_FRAME, ONE,  NONE,       BORROW, NOTHING, JUMP)  /* slots from c <- x items of tuple b, and to a; where the first is absent, it alone, and no jump */ \
    X(POP_FRAME,    ONE,  NONE,       BORROW, NOTHING, JUMP)  /* the same, and the tuple is given back: nobody reads it any more */ \
    X(NEXT_FRAME,   ONE,  NONE,       BORROW, NOTHING, JUMP)  /* the same, and the first of the items goes to slot b itself */ \
    X(UNPACK_LAST,  ONE,  NONE,       BORROW, SEVERAL, NEXT)  /* UNPACK of a frame, which is given back: nobody reads it any more */ \
    X(RETURN_OF,    LIST_C, NONE,     KEEP,   NOTHING, END)   /* a tuple of c operands of lists[b], made in slot a unless UNPACK_CALLED follows the call; x as in TUPLE */ \
    X(GET_FIELDS,   ONE,  NONE,       BORROW, SEVERAL, NEXT)  /* the same of fields */                       \
    X(NEXT_FIELDS,  ONE,  NONE,       BORROW, SEVERAL, NEXT)  /* the same, and the last of them goes to slot b itself */ \
    X(TAIL_OF,      ONE,  PAIRS,      KEEP,   NOTHING, END)   /* b(lists[c]), x arguments; else as TAIL; the list: how many moves, each of them */ \
    X(TAIL_GLOBAL_OF, NONE, PAIRS,    KEEP,   NOTHING, END)                                                  \
    X(DROP,         ONE,  NONE,       BORROW, NOTHING, NEXT)  /* a tensor b is given back, if its owner x is this activation */ \
    X(OWNED,        NONE, NONE,       BORROW, VALUE,   NEXT)  /* what the frame in slot b owns belongs to the activation, until it calls; slot a keeps which items */ \
    X(OWNED_AGAIN,  ONE,  NONE,       BORROW, NOTHING, NEXT)  /* and once more after a call: slot b as OWNED wrote it */ \
    X(NO_MATCH,     ONE,  NONE,       BORROW, NOTHING, END)   /* of value b */                               \
    X(VERIFY,       ANY,  ANY,        BORROW, NOTHING, NEXT)  /* b is as place c says; notes in slot a (eval/verify.h) */ \
    X(RESOLVE,      ANY,  ANY,        BORROW, NOTHING, END)   /* the one instruction of code not resolved yet */ \
    X(COUNT,        NONE, NONE,       BORROW, NOTHING, NEXT)  /* one entry; the last of them leads into better code: tier.c */ \
    X(HALT,         ANY,  ANY,        BORROW, NOTHING, END)
/* clang-format on */

/* Note [Forms]. F(name, form): the instruction again, for operands that need not be looked for. Of arithmetic on what is a
 * float scalar by its type: SS where both operands are slots, SK and KS where one is a constant; II of two int32 in slots.
 * PL and PR: of a product or quotient that the ADD or ADD_CT behind it alone reads, on its left or right; both are run, and
 * the product is written nowhere. SELF: of a call, where a function calls itself; MADE: the same of a tail call in a function
 * that a pass made, which nobody defines again. Of lists and rows: the number of parts, all of them slots, so that the loop
 * over them is written out. A form leaves what it is not made for, as duals are, to the instruction itself. Nothing but the
 * machine knows of them: eval/form.c chooses them last. A step of Newton's iteration takes 119 machine instructions in place
 * of 164, with its derivative 316 in place of 531, a call of `fib` 125 in place of 141. */
/* clang-format off */
#define FORMS(F)                                                                                   \
    F(ADD, II) F(SUB, II) F(MUL, II)                                                               \
    FLOAT_FORMS(F, ADD)                                                                            \
    FLOAT_FORMS(F, SUB)                                                                            \
    FLOAT_FORMS(F, MUL)                                                                            \
    FLOAT_FORMS(F, DIV)                                                                            \
    PRODUCT_FORMS(F, STRONG_MUL)                                                                   \
    PRODUCT_FORMS(F, STRONG_DIV)                                                                   \
    PRODUCT_FORMS(F, NEG_STRONG_MUL)                                                               \
    PRODUCT_FORMS(F, NEG_STRONG_DIV)                                                               \
    F(NEG, S) F(ADD_CT, SS)                                                                        \
    F(CALL_GLOBAL, SELF)                                                                           \
    F(RETURN, OWN)                                                                                 \
    COUNTED_FORMS(F, MOVES)                                                                        \
    COUNTED_FORMS(F, TUPLE_OF)                                                                     \
    COUNTED_FORMS(F, DATA_OF)                                                                      \
    COUNTED_FORMS(F, RETURN_OF)                                                                    \
    F(TAIL_GLOBAL_OF, 0) F(TAIL_GLOBAL_OF, 1) F(TAIL_GLOBAL_OF, 2)                                 \
    F(TAIL_GLOBAL_OF, MADE_0) F(TAIL_GLOBAL_OF, MADE_1) F(TAIL_GLOBAL_OF, MADE_2)                  \
    COUNTED_FORMS(F, UNPACK_FRAME)                                                                 \
    COUNTED_FORMS(F, POP_FRAME)                                                                    \
    COUNTED_FORMS(F, NEXT_FRAME)                                                                   \
    COUNTED_FORMS(F, UNPACK_LAST)                                                                  \
    COUNTED_FORMS(F, PARTS_OF_CT)                                                                  \
    COUNTED_FORMS(F, GET_FIELDS)                                                                   \
    COUNTED_FORMS(F, NEXT_FIELDS)
#define FLOAT_FORMS(F, name) F(name, SS) F(name, SK) F(name, KS)
#define PRODUCT_FORMS(F, name) FLOAT_FORMS(F, name) F(name, PL) F(name, PR)
#define COUNTED_FORMS(F, name) F(name, 2) F(name, 3) F(name, 4)
/* clang-format on */

typedef enum Opcode {
#define X(name, ...) CODE_##name,
    OPCODES(X)
#undef X
        OPCODE_COUNT,
    LAST_OPCODE = OPCODE_COUNT - 1, /* the forms follow it */
#define F(name, form) CODE_##name##_##form,
    FORMS(F)
#undef F
        ALL_OPCODES
} Opcode;

typedef struct Instr {
    uint16_t op, x;
    int32_t a, b, c;
} Instr;

enum { DATA_OF_MOST = 32 /* fields that DATA_OF may have */ };

enum { BASE_SLOT, BASE_CONST, BASE_CAPTURED, BASES };
_Static_assert(sizeof(Value) == 16, "operands are byte offsets in units of a value");
enum { OPERAND_MAX = (1 << 27) - 1 };
static inline int32_t operand(int base, uint32_t i) { return (int32_t)(i << 4) | base; }

typedef struct Code Code;
typedef struct Verify Verify; /* eval/verify.h */

enum { PARTS_MOST = 16 /* of a tuple that a call gives and UNPACK_CALLED takes apart */ };

/* How an EXPR_FN makes its closure: which operands of the enclosing activation it captures. */
typedef struct Make {
    Code *code;
    int32_t *captured; /* code->ncaptured operands */
} Make;

/* Who owns an argument that is read for the last time (eval/own.h): nobody known, this activation, or it
 * does if the parameter of the number above OWN_IF was given to it, with OWN_CALLED if the last call's result was, or from
 * OWN_ITEM on if the frame that it took apart owned that item, of the first OWN_ITEMS behind the result. With OWN_SUM it does if
 * the tensor was a sum that only its accumulator knew until it was settled here (Note [Sums that end] in eval/own.h). */
enum { OWN_NOT, OWN_ALWAYS, OWN_IF, OWN_ARGS = 20, OWN_PARAMS = 63, OWN_ITEMS = 32 };
enum { OWN_CALLED = OWN_IF + OWN_PARAMS, OWN_ITEM, OWN_SUM = OWN_ITEM + OWN_ITEMS, OWN_END };

/* What an operator may take over of its first arguments, or a call gives of them to its callee. */
typedef struct Owners {
    uint64_t always,
        perhaps; /* a bit for each that is the activation's own, and for each whose owner is asked */
    uint8_t owner[OWN_PARAMS];
} Owners;

/* A call of an operator or builtin. */
typedef struct Site {
    const Op *op;
    const Attrs *attrs;
    const Builtin *builtin;
    Type *type; /* of the result, as inferred */
    uint32_t nargs;
    uint32_t nsizes; /* int64 slots after the arguments, for the ATTR_DIM of attrs */
    OpScalar scalar;
    struct Element *element; /* of its last call on scalars, or NULL (eval/element.c) */
    struct Group *group;     /* fused operators, in place of op; or NULL */
    const Expr *call;        /* for messages; may be NULL */
    bool spread;             /* the arguments are the items of the call's one argument, a tuple */
    bool only_checks;        /* its result is not read, only whether it has one */
    bool read_once;          /* its result is read by one group and by nothing else */
    Owners *owners;          /* or NULL */
    uint64_t alone;          /* a bit for each that has an owner and is no other argument, too */
    uint32_t spent; /* which argument is a tuple that was made for it, from 1; 0: none is */
} Site;

typedef VEC(Instr) InstrVec;
typedef VEC(Expr *) OriginVec; /* what each instruction is of */
typedef VEC(Site) SiteVec;

struct Code {
    Expr *fn;           /* EXPR_FN, or the expression of an item */
    const Symbol *path; /* NULL is "" */
    uint32_t nparams, nslots;
    uint32_t ncaptured;
    Var **captured; /* a twin captures in the order of its base; last NULL: the activation
                       (eval/verify.h) */
    const Instr *instrs;
    uint32_t ninstrs;
    Value *consts;
    Expr **origin; /* of each instruction: for its place, and for what does not fit into it */
    Make *makes;
    Site *sites;
    Owners **gives;
    const uint32_t *items_owned; /* which a tuple owns, as Tuple.owned; the first is none */
    int32_t *lists;              /* operands: eval/tighten.h */
    Verify *verify;              /* what its values are compared with, or NULL */
    bool internal;               /* its place is in the prelude or the library */
    bool item;                   /* fn is the expression of an item: no parameters, no tail calls */
    Code *base;                  /* the code of which this is a twin, or NULL */
    VEC(Code *) twins;           /* of a base: the twins that were asked for */
    Code *twin;                  /* the twin asked for last, or NULL */

    /* A derivative that is code (passes/reverse/reverse.h). What stands for it has a path of its own, so
       that each call of it asks code_twin: which takes `made` where nothing differentiates the call and
       no definition changed, else the template it is a twin of. */
    Code *derived[GRAD_KINDS]; /* what stands for a derivative of this function */
    Code *made;
    const struct ReverseCode *from;
    Code *next; /* the same derivative for other functions captured */
    struct ReverseCode
        *unmerged; /* the same to be differentiated, or NULL (passes/reverse/merge.c) */

    struct RowsFamily *rows; /* of a base: its code for all rows of `vmap` (rows.c), or NULL */

    /* Note [Tiers] in tier.c. */
    int32_t heat;       /* how many entries until it is optimised */
    uint64_t hot_at;    /* of all launches: once there were so many, the next entry is the last */
    bool is_better;     /* optimised code that its base leads into */
    bool is_optimised;  /* its instructions are those of what the passes made */
    bool watched;       /* Interp.optimised has it */
    Code *better;       /* what it leads into, once it was hot */
    DependencyVec deps; /* of optimised code */
};

/* The code of a function literal, resolved when it first runs. There is one as long as something refers
 * to it. */
Code *code_of_fn(Interp *in, Expr *fn);
/* The code of an item's expression; it takes no arguments and captures nothing. */
Code *code_of_expr(Interp *in, Expr *e);
/* Whether e has more nodes than a function may have that the passes look at; *most: so many. */
bool code_is_left(Expr *e, int *most);
/* Resolves variables and fills the instructions in. False after a diagnostic. */
bool code_resolve(Interp *in, Code *code);

/* Constants a program may name: eta-expanded functions, as closures that have twins. */
Value value_of_op(Interp *in, const Op *op, Span span);
Value value_of_ctor(Interp *in, Ctor *ctor, Span span);
/* A literal's value in dtype t. */
Value value_of_literal(const Expr *lit, DType t);
/* Captured variables are filled in by the caller. */
Closure *closure_alloc(Code *code);
Value closure_new(Code *code); /* captures nothing */

#endif
