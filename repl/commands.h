/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the prompt, `:type e` and the like: one table, from which help, abbreviations and
 * completion come. */
#ifndef REPL_COMMANDS_H
#define REPL_COMMANDS_H

#include "repl/session.h"

/* What a command leaves to the prompt, which has the history and the screen. */
typedef enum CommandResult {
    COMMAND_DONE,
    COMMAND_QUIT,
    COMMAND_CLEAR,
    COMMAND_EDIT,
    COMMAND_HISTORY,
    COMMAND_SAVE,
    COMMAND_TUTOR
} CommandResult;

/* line begins with `:`. Answers and complaints go to the session's sink. *argument: what stands behind
 * the command. */
CommandResult command_run(Session *s, const char *line, const char **argument);
/* Each line that begins an item, with those that go on with it, and each command; shows: behind `tutor> `. */
void command_enter_lines(Session *s, const char *text, bool shows);
/* The same, of which only mistakes are said. */
void command_enter_quietly(Session *s, const char *text);
void command_complete(const char *text, size_t len, TextVec *out);
/* The command a name or its beginning means, and what it does; NULL: none, or several. */
const char *command_full_name(const char *name);
const char *command_help(const char *name);
/* What to say to those who type what other prompts know (`exit`, `?x`), where it is no name here; or NULL. */
const char *command_pointer(Session *s, const char *line);

#endif
