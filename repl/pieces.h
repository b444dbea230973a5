/* SPDX-License-Identifier: Apache-2.0 */
/* A text of several entries, cut where one ends: for what is pasted at the prompt, where a mistake in one
 * item must not lose the others. */
#ifndef REPL_PIECES_H
#define REPL_PIECES_H

#include "repl/session.h"

typedef enum PieceKind {
    PIECE_ITEMS,   /* complete items */
    PIECE_COMMAND, /* a line that begins with `:` */
    PIECE_WRONG,   /* does not read */
    PIECE_OPEN,    /* the text ends in the middle of an item, or without a line break after it */
} PieceKind;

typedef struct Piece {
    PieceKind kind;
    size_t begin, end;
} Piece;
typedef VEC(Piece) PieceVec;

/* In order; blank lines belong to no piece. Only the last may be PIECE_OPEN. The reader decides where an
 * item ends, by the rules of a file: the next line may go on with an infix operator. */
void pieces_cut(Session *s, const char *text, size_t len, PieceVec *out);

#endif
