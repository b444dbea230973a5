/* SPDX-License-Identifier: Apache-2.0 */
/* The lessons of `:tutor`, which are texts: repl/tutor/lessonNN.tut, part of the program and installed.
 *
 * A lesson is Markdown. Its first line is `# TITLE`; lines `---` part its frames. A frame is text in
 * paragraphs, of which those behind `> ` say what to do, and blocks fenced as
 *
 *     ```relay show      entered before the learner's eyes, with its answers
 *     ```relay setup     entered unseen
 *     ```relay answer    what the frame asks for; `answer R0312`: an entry that draws this diagnostic
 *     ```relay or        another right answer
 *     ```relay try       expressions, one a line, whose values tell a right definition from a wrong one
 *     ```relay check     expressions, one a line, which are True after a right answer
 *     ```relay wrong     a wrong answer; the text behind it, up to the next block, is said to whoever gives
 *                        an answer that means the same
 *
 * and lines `Hint: …`, of which a paragraph is one hint. A frame without an answer is only read. */
#ifndef REPL_TUTOR_LESSON_H
#define REPL_TUTOR_LESSON_H

#include "base/str.h"
#include "base/vec.h"
#include "repl/session.h"

typedef enum BlockKind {
    BLOCK_TEXT, /* a paragraph, or lines to be shown as they stand */
    BLOCK_TASK,
    BLOCK_SHOW,
    BLOCK_SETUP,
} BlockKind;

typedef struct Block {
    BlockKind kind;
    const char *text;
} Block;

typedef struct WrongAnswer {
    const char *text;
    const char *reply; /* "" for none of its own */
} WrongAnswer;

typedef struct Frame {
    VEC(Block) blocks;
    const char *answer; /* NULL: there is nothing to answer */
    DiagCode error;     /* that the answer draws; DIAG_NONE for none */
    TextVec others;     /* right as well */
    TextVec tries, checks, hints;
    VEC(WrongAnswer) wrong;
} Frame;

typedef struct Lesson {
    int number;
    const char *title;
    VEC(Frame *) frames;
} Lesson;

/* NULL where the text is no lesson: then *why says what is wrong with it. */
Lesson *lesson_parse(const char *text, size_t len, const char **why);
/* Of the lessons that come with the program, 1 to lesson_count(); never NULL. */
Lesson *lesson_get(int number);
int lesson_count(void);

#endif
