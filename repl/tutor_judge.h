/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an answer is right: by what it means, never by its text.
 *
 * An expression is right when its value and type are those of the frame's answer, in the learner's own
 * scope. A definition is right when the frame's `try` expressions (without any, the name that it binds) have
 * the same values and types under it as under the frame's answer in a session that holds the lesson's own
 * answers. Numbers are the same to three digits. `check` expressions are True in the learner's scope. An
 * answer that is a command asks the same command about something of the same type. */
#ifndef REPL_TUTOR_JUDGE_H
#define REPL_TUTOR_JUDGE_H

#include "repl/tutor_lesson.h"

/* Whether an entry tries to answer a frame, or is something between. */
bool judge_is_attempt(const Frame *frame, const char *entry);

/* After the entry has run in `learner`. model: a session in which the answers of the frames before have
 * run; definitions that answer this frame are entered there. reply: for a wrong answer what to say of it, or "". */
bool judge(Session *learner, Session *model, const Frame *frame, const char *entry,
           const char **reply);

#endif
