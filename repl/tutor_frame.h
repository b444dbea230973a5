/* SPDX-License-Identifier: Apache-2.0 */
/* A frame before the learner: its paragraphs in lines, its blocks entered with their answers. */
#ifndef REPL_TUTOR_FRAME_H
#define REPL_TUTOR_FRAME_H

#include "repl/tutor_lesson.h"

enum { FRAME_WIDTH = 72 }; /* of paragraphs, on a terminal that has it */

void frame_say(Session *s, const char *paragraph);
/* Its text, and its blocks as they are entered. */
void frame_show(Session *s, const Frame *frame);
/* Its blocks alone, unseen. */
void frame_run(Session *s, const Frame *frame);
/* Its answer, if it has one that belongs to the scope: unseen, and as at the prompt. */
void frame_enter_answer(Session *s, const Frame *frame);
void frame_show_answer(Session *s, const Frame *frame);

#endif
