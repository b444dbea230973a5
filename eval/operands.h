/* SPDX-License-Identifier: Apache-2.0 */
/* What each instruction reads, writes and owns, as its line of OPCODES (eval/code.h) says: the one description of an
 * opcode that own.c and tighten.c go by. */
#ifndef EVAL_OPERANDS_H
#define EVAL_OPERANDS_H

#include "eval/resolve.h"

/* What stands in the field b or c. */
typedef enum Part {
    PART_NONE,       /* nothing that is read from the activation */
    PART_ONE,        /* an operand */
    PART_ROW_X,      /* x slots from here on */
    PART_ROW_C,      /* c slots */
    PART_ROW_CTOR,   /* as many as the constructor c has fields */
    PART_ROW_SITE,   /* arguments and sizes of sites[c] */
    PART_ROW_ARGS,   /* arguments of sites[c] */
    PART_ROW_ORIGIN, /* as many as the origin has arguments */
    PART_MAKE,       /* what makes[b] captures */
    PART_LIST_X,     /* x operands of lists[b] */
    PART_LIST_C,     /* c of them */
    PART_LIST_CTOR,  /* as many as the constructor c has fields */
    PART_PAIRS,      /* lists[c]: a number of pairs, then a slot and an operand for each */
    PART_ANY,        /* it may read any slot */
} Part;

typedef enum Use {
    USE_BORROW,       /* nothing refers to it longer than the instruction runs */
    USE_KEEP,         /* something else may refer to it from then on */
    USE_TAKE,         /* borrowed; what the activation owns may be written over */
    USE_KEEP_OR_TAKE, /* the result may be one of them */
} Use;

typedef enum Result {
    RESULT_NOTHING, /* `a` is no slot */
    RESULT_VALUE,   /* slot a */
    RESULT_FRESH,   /* slot a, and a tensor is one that nothing else refers to */
    RESULT_SEVERAL, /* x slots from a on */
    RESULT_CALLED,  /* slot a, after a callee's activation was at the slots from c on */
} Result;

typedef enum Flow {
    FLOW_NEXT, /* to the next instruction */
    FLOW_JUMP, /* there or to `a` */
    FLOW_GOTO, /* to `a` */
    FLOW_END,  /* the activation ends */
} Flow;

typedef struct OpcodeInfo {
    const char *name;
    Part b, c;
    Use use;
    Result result;
    Flow flow;
} OpcodeInfo;
extern const OpcodeInfo opcode_info[OPCODE_COUNT];
/* Of which opcode one is a form: Note [Forms] in eval/code.h. */
extern const uint8_t plain_opcode[ALL_OPCODES];

static inline const OpcodeInfo *instr_info(const Instr *i) {
    return &opcode_info[plain_opcode[i->op]];
}
/* Whether `a` is where it may lead to. */
static inline bool instr_jumps(const Instr *i) {
    return instr_info(i)->flow == FLOW_JUMP || instr_info(i)->flow == FLOW_GOTO;
}
/* Whether the instruction behind it is not reached from it. */
static inline bool instr_ends(const Instr *i) {
    return instr_info(i)->flow == FLOW_GOTO || instr_info(i)->flow == FLOW_END;
}

/* What an instruction reads: rows of slots, single operands in a list (every `step`th), a closure's captured variables. */
typedef struct Reads {
    struct {
        uint32_t first, n;
    } row[2];
    int nrows;
    const int32_t *list; /* or NULL */
    uint32_t nlist, step;
    const Make *make; /* or NULL */
    bool any;         /* it may read any slot */
} Reads;

/* Of the instruction number `at`. lists: those made so far. */
void instr_reads(const Resolver *r, const int32_t *lists, size_t at, Reads *out);
/* Whether slot is among them. */
bool reads_slot(const Reads *reads, uint32_t slot);

#endif
