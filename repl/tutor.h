/* SPDX-License-Identifier: Apache-2.0 */
/* `:tutor`: lessons at the prompt. What is typed in a lesson is ordinary Relay, in a session of its own; after
 * each entry that tries to answer the frame it is judged (tutor_judge.h), and a right one leads to the next frame.
 * A wrong one gets a reply, then a hint, another, and the offer to skip.
 *
 * How far each lesson has come is kept in $XDG_STATE_HOME/relay/tutor, a line `NUMBER FRAME` each and
 * `now NUMBER`; who comes back finds the lesson's own answers entered for the frames before. */
#ifndef REPL_TUTOR_H
#define REPL_TUTOR_H

#include "repl/session.h"

typedef struct Tutor Tutor;

Tutor *tutor_new(Session *s);
/* Where entries go during a lesson; NULL when there is none. */
Session *tutor_session(const Tutor *t);
/* What stands behind `:tutor`: nothing, a number, or a word. */
void tutor_command(Tutor *t, const char *argument);
/* Whether the entry is a command of the tutor without `:tutor`, as in `skip`, and no name of the lesson. */
bool tutor_is_word(const Tutor *t, const char *entry);
/* After Enter alone. */
void tutor_take_empty(Tutor *t);
/* After an entry, or a command, has run in tutor_session. */
void tutor_take_entry(Tutor *t, const char *entry);

typedef struct TutorCount {
    size_t passed, failed;
} TutorCount;
/* Plays a lesson: each wrong answer must be refused with its reply, each right one taken, each shown block run
 * without a mistake. The play is added to `play`, what is not so to `wrong`. */
void tutor_play(Session *s, const char *path, TutorCount *count, Str *play, Str *wrong);

#endif
