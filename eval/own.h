/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors an operator may take over. A tensor that an operator of a function made, that nothing but
 * slots of this activation refers to, and that is read here for the last time, is the operator's own:
 * its result may be written in its place, and else its buffer is given back at once.
 *
 *     def loop(i, x) { if (i == 0) { x } else { loop(i - 1, tanh(x * b) * b) } }
 *
 * Note [Owners]. This is decided on the instructions of a function when it is resolved. Each tensor that an
 * operator makes has a number, and each slot knows which tensor it holds. A tensor that is put where
 * this function does not see it any more (data, a closure, a call's argument, the result) loses its
 * number; so does one that different branches leave differently. Where an operator reads a numbered
 * tensor that no slot read later holds, it is the operator's own.
 *
 * A parameter belongs to the caller, unless the call hands over a tensor of the caller's own that nothing reads
 * after it: then nobody is left who knows it. A tail call says itself which of its arguments these are (Owners),
 * before another call stands GIVE. The machine keeps that as one bit a parameter until the next call or return, and
 * an operator that could take over a parameter asks for its bit.
 *
 * A tuple that is made for an operator, as the place of an index is, and that nothing reads later is given back after it.
 *
 * The result of a call is the caller's own if the callee owned it: RETURN says so, the machine keeps one more bit until
 * the next call or return. A tensor of the activation that a tail call leaves behind unread is given back before it
 * (DROP): a loop that makes a gradient of 10 MB in each round and keeps none has one buffer, where it had fresh pages
 * until the next collection.
 *
 * A frame of a derivative (Note [Frames] in passes/reverse/reverse.h) owns the tensors that nothing else refers to when it
 * is made: the tuple says which (Tuple.owned), and OWNED hands them to the way back, which takes it apart for the last
 * time. Who is called may take another frame apart: OWNED_AGAIN then says again what OWNED said. A function that hands the
 * frame itself to another owns none of its items.
 *
 * Note [Sums that end]. An accumulator that is settled is known to who settles it alone: what is still a sum (Tensor.accumulates)
 * was seen by nobody. Where a way back takes it from a cotangent with parts, settles it, and adds it to another accumulator,
 *
 *     let a = ad.settle(ad.item(ct, 0)); … ad.add(sum, a)
 *
 * and reads neither a nor ct later, it is given back after it was added, or written over (OWN_SUM). Such a function goes
 * through its frames once, and reads each part of its cotangents once.
 *
 * The cotangents of a tensor are owned, too, that a loop writes part by part, `{ a with [i] = v }`: of the sum that is
 * settled the part is read and made zero, and what was read of `a` is added, all in one tensor (eval/accumulate.c). */
#ifndef EVAL_OWN_H
#define EVAL_OWN_H

#include "eval/resolve.h"

/* Whether e is a tuple of tensors, at least one and at most `most`, as it is written. */
bool own_is_tuple_of_tensors(const Expr *e, uint32_t most);
/* Whether the operator of the call takes the items of its one argument e, a tuple, one by one, so that it may own them. */
bool own_spreads(const Resolver *r, const Expr *call, const Expr *e);

/* Adds to resolved code what its operators and tail calls may take over. */
void own_code(Resolver *r);

#endif
