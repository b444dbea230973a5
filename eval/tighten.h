/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer instructions for the same work: the last step before code runs.
 *
 * Arguments are computed in adjacent slots, so a value that has a place already is moved there first. Of such moves
 * and of other rows of equal instructions one instruction is made:
 *
 *     MOVE s8 <- s3; MOVE s9 <- c1; TUPLE s7 <- s8, 2          TUPLE_OF s7 <- s3, c1
 *     MOVE s8 <- s3; MOVE s9 <- s5; CALL_GLOBAL s7 <- f(s8 …)  MOVES s8 <- s3, s5; CALL_GLOBAL s7 <- f(s8 …)
 *     MOVE s8 <- s3; MOVE s9 <- s5; TAIL_GLOBAL f(s8 …)        TAIL_GLOBAL_OF f(s3, s5)
 *     MUL s4 <- s0, s1; TAIL_GLOBAL_OF s0 <- s4                MUL s0 <- s0, s1; TAIL_GLOBAL_OF
 *     PROJ s4 <- s2.1; PROJ s5 <- s2.2                         UNPACK s4, s5 <- s2 from 1
 *     PROJ s4 <- s2.0; JUMP_ABSENT s4; UNPACK s5 <- s2 from 1  UNPACK_FRAME s4, s5 <- s2
 *     UNPACK s5, s6 <- s0 from 1, which is a frame           UNPACK_LAST s5, s6 <- s0 from 1
 *     GET_FIELDS s4, s5 <- s1; TAIL_GLOBAL_OF s1 <- s5         NEXT_FIELDS s4, s1 <- s1; TAIL_GLOBAL_OF
 *     CALL s7 <- f(…); UNPACK s8, s9 <- s7 from 0              CALL s7 <- f(…); UNPACK_CALLED s8, s9 <- s7 from 0
 *     TUPLE_OF s7 <- s3, c1; RETURN s7                         RETURN_OF s3, c1
 *     EQUAL s4 <- s0, c0; JUMP_IF s4                           JUMP_EQ s0, c0
 *     STRONG_MUL s4 <- s0, s1; NEG s4 <- s4                    NEG_STRONG_MUL s4 <- s0, s1
 *     SUB s4 <- s0, c0; JUMP_LT s4, c1                         SUB_I s4 <- s0 - 1; JUMP_LT_I s4, 2
 *
 * No tuple is made where RETURN_OF meets UNPACK_CALLED: the operands go to the slots of the caller. The lists of
 * operands stand beside the code (Code.lists). */
#ifndef EVAL_TIGHTEN_H
#define EVAL_TIGHTEN_H

#include "eval/resolve.h"

/* Rewrites the resolver's instructions. own_code has looked at them: it sees the plain forms only. */
void tighten_code(Resolver *r);
/* ---- eval/form.c ---- */
/* After that, each instruction that has a form for where its operands are becomes that form: Note [Forms] in code.h. */
void choose_forms(Resolver *r);

#endif
