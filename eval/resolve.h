/* SPDX-License-Identifier: Apache-2.0 */
/* Resolution of core to code: what resolve.c and match.c share. */
#ifndef EVAL_RESOLVE_H
#define EVAL_RESOLVE_H

#include "base/map.h"
#include "eval/machine.h"

typedef struct Resolver {
    Interp *in;
    Code *code;
    Expr *body;             /* what becomes instructions: after the passes, where they ran */
    Map vars;               /* Var -> operand + 1, of those in scope */
    VEC(const Var *) bound; /* these, in order */
    Map pointers;           /* what a constant points to -> its operand */
    Map fused_values;       /* Var -> the value that was fused into its one use (fuse.h) */
    Map uses, counted;      /* Var -> times mentioned; Expr seen while counting */
    uint32_t run; /* operators in the `let`s that were fused since the last one that was not */
    InstrVec instrs;
    OriginVec origin;
    VEC(Value) consts;
    VEC(Make) makes;
    SiteVec sites;
    VEC(struct GroupSite *) groups; /* eval/fuse.h */
    bool passes_ran;                /* tail calls are those of the function as it was written */
    VEC(Owners *) gives;
    VEC(uint32_t) items_owned; /* from the second on: Code.items_owned */
    int32_t *lists;            /* eval/tighten.h */
    const Expr *unverified;    /* a value that is not compared with its type (verify.h), or NULL */
    uint32_t top, max;         /* slots in use now, and at most */
    int32_t owned;             /* the slot for what OWNED says, or -1 */
} Resolver;

enum { TAIL = -1 };

/* Instructions whose target is not known yet. */
typedef VEC(size_t) Patches;
void patch_here(Resolver *r, const Patches *jumps);

size_t emit(Resolver *r, Expr *origin, Opcode op, uint32_t x, int32_t a, int32_t b, int32_t c);
int32_t slot_new(Resolver *r);
static inline int32_t slot(int32_t i) { return operand(BASE_SLOT, (uint32_t)i); }
/* The slot for the value of the next instruction. */
int32_t result_slot(Resolver *r, int32_t dst);
/* Ends a function whose value is in slot `at`, where dst is TAIL. */
void finish(Resolver *r, Expr *e, int32_t dst, int32_t at);
int32_t const_value(Resolver *r, Value v);
int32_t const_literal(Resolver *r, const Expr *e);
/* A tuple of literals, made once; false where e is none. */
bool const_tuple(Resolver *r, const Expr *e, int32_t *out);
int32_t const_pointer(Resolver *r, uint32_t tag, void *p);
/* A global, and in the constant after it its cell. */
int32_t const_global(Resolver *r, Global *g);
/* A constructor, and in the constant after it the layout that data was last made of here. */
int32_t const_ctor(Resolver *r, Ctor *ctor);
void bind(Resolver *r, const Var *v, int32_t at);
/* Ends the scope of all variables but the first so many: their slots serve others. */
void unbind(Resolver *r, size_t first);

int32_t resolve_operand(Resolver *r, Expr *e);
/* Values in adjacent slots; the first one's number. */
int32_t resolve_args(Resolver *r, Expr **args, uint32_t n);
/* Binds the variable of a `let`. Its slot stays taken until the end of the block. */
void resolve_let(Resolver *r, Expr *e);
void resolve_into(Resolver *r, Expr *e, int32_t dst);
/* Emits jumps, added to `jumps`, that are taken when the condition is `sense`. */
void resolve_condition(Resolver *r, Expr *e, bool sense, Patches *jumps);
/* The instructions of source, which stands for the code's function or item, as own_code leaves them. */
Resolver *resolve_code(Interp *in, Code *code, Expr *source);
void resolve_match(Resolver *r, Expr *e, int32_t dst);

/* ---- eval/room.c ---- */
/* Begins instructions where those of the last code were put together. */
void room_take(Resolver *r);
/* The code gets copies of the instructions, with what each is of and the sites that they name; the next code gets the room. */
void room_leave(Resolver *r, Code *code);

/* ---- eval/parts.c ---- */
/* A block in which the parts of one value that are bound in a row are taken one after the other. */
Expr *gather_parts(Expr *e);

#endif
