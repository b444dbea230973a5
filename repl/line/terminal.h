/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: raw while a line is edited, and as it was found at every other time.
 *
 * Note [Raw mode]. While raw, Ctrl-C is a key and no signal. terminal_enter keeps the settings it found;
 * terminal_leave, and a handler for every signal that would end or stop the process, a crash included,
 * put them back and switch bracketed paste off. The handlers are installed only while raw, so that the
 * evaluator's are in force when it runs. SIGWINCH and SIGCONT only wake the reading. */
#ifndef REPL_LINE_TERMINAL_H
#define REPL_LINE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether standard input and output are a terminal that can move its cursor. */
bool terminal_can_edit(void);
/* Columns of the terminal that fd is, as COLUMNS or the terminal says; 0 when it is none. */
int terminal_width(int fd);
/* Rows of standard output's terminal; 24 when it does not say. */
int terminal_height(void);

/* False: it cannot be made raw. */
bool terminal_enter(void);
void terminal_leave(void);
/* What Ctrl-Z does elsewhere: stops the process; returns, raw again, when it goes on. */
void terminal_suspend(void);

typedef enum TerminalEvent {
    TERMINAL_BYTES,
    TERMINAL_PAUSE,     /* nothing came in time */
    TERMINAL_WOKEN,     /* the size may have changed, or the process was stopped and goes on */
    TERMINAL_INTERRUPT, /* SIGINT, from elsewhere than the keyboard */
    TERMINAL_GONE
} TerminalEvent;

/* Waits at most `milliseconds` (-1: for ever) and reads up to *n bytes, which *n then counts. */
TerminalEvent terminal_read(char *bytes, size_t *n, int milliseconds);
/* Asks the terminal, which need not be raw: writes the question, to which the last answer is that of `ESC [ c`, and
 * reads answers until that has come, or nothing for so long. They are put into `answers`, NUL-terminated; what
 * somebody types meanwhile is kept for terminal_read. False where it cannot be asked. */
bool terminal_ask(const char *question, char *answers, size_t most, int milliseconds);
/* Whether the last TERMINAL_WOKEN was the end of a stop, after which nothing is known of the screen. */
bool terminal_was_stopped(void);
/* Writes to standard output, past stdio, all of it or as much as the terminal takes. */
void terminal_write(const char *text, size_t n);

#endif
