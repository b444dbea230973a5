/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* For the handlers of signals: Note [Raw mode]. */
static struct termios found;
static volatile sig_atomic_t is_raw, was_woken, was_stopped, was_interrupted;

static const int ending[] = {SIGTSTP, SIGTERM, SIGHUP, SIGQUIT, SIGABRT,
                             SIGSEGV, SIGBUS,  SIGILL, SIGFPE,  SIGXCPU};
enum { NENDING = sizeof ending / sizeof *ending };
static struct sigaction ending_before[NENDING], winch_before, cont_before, int_before;

static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l\033[0m";

/* ---- what it is ------------------------------------------------------------------------------ */

bool terminal_can_edit(void) {
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

int terminal_width(int fd) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    if (n > 0 && n < 10000)
        return n;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

int terminal_height(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : 24;
}

/* ---- raw and back ---------------------------------------------------------------------------- */

/* Safe in a handler. */
static void put_back(void) {
    if (!is_raw)
        return;
    is_raw = 0;
    ssize_t n = write(STDOUT_FILENO, paste_off, sizeof paste_off - 1);
    (void)n;
    tcsetattr(STDIN_FILENO, TCSANOW, &found);
}

/* Puts the terminal back and lets the signal do what it did before. */
static void on_ending(int sig) {
    int saved = errno;
    put_back();
    for (int i = 0; i < NENDING; i++)
        if (ending[i] == sig)
            sigaction(sig, &ending_before[i], NULL);
    raise(sig); /* it comes when this handler has returned */
    errno = saved;
}

static void on_wake(int sig) {
    was_woken = 1;
    if (sig == SIGCONT)
        was_stopped = 1;
}

static void on_interrupt(int sig) {
    (void)sig;
    was_interrupted = 1;
}

static void install(int sig, void (*handler)(int), struct sigaction *before) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    /* A crash may come from a stack that is full. */
    action.sa_flags = handler == on_ending ? SA_ONSTACK : 0;
    sigaction(sig, NULL, before);
    if (before->sa_handler != SIG_IGN)
        sigaction(sig, &action, NULL);
}

static bool make_raw(void) {
    if (tcgetattr(STDIN_FILENO, &found) != 0)
        return false;
    struct termios raw = found;
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | IGNCR | BRKINT | ISTRIP | PARMRK);
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | ISIG | IEXTEN);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    is_raw = 1; /* before it is so: a signal in between puts back what is there already */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
        is_raw = 0;
        return false;
    }
    terminal_write(paste_on, sizeof paste_on - 1);
    return true;
}

bool terminal_enter(void) {
    for (int i = 0; i < NENDING; i++)
        install(ending[i], on_ending, &ending_before[i]);
    install(SIGWINCH, on_wake, &winch_before);
    install(SIGCONT, on_wake, &cont_before);
    install(SIGINT, on_interrupt, &int_before);
    was_interrupted = 0;
    if (make_raw())
        return true;
    terminal_leave();
    return false;
}

void terminal_leave(void) {
    put_back();
    sigaction(SIGINT, &int_before, NULL);
    sigaction(SIGCONT, &cont_before, NULL);
    sigaction(SIGWINCH, &winch_before, NULL);
    for (int i = 0; i < NENDING; i++)
        sigaction(ending[i], &ending_before[i], NULL);
}

void terminal_suspend(void) { raise(SIGTSTP); }

/* ---- reading and writing --------------------------------------------------------------------- */

/* After a stop: whoever stopped the process put the terminal back, and its handler is gone. */
static void resume(void) {
    if (is_raw)
        return;
    install(SIGTSTP, on_ending, &ending_before[0]);
    make_raw();
}

static TerminalEvent read_now(char *bytes, size_t *n, int milliseconds) {
    sigset_t wakers, before;
    sigemptyset(&wakers);
    sigaddset(&wakers, SIGWINCH);
    sigaddset(&wakers, SIGCONT);
    sigaddset(&wakers, SIGINT);
    sigprocmask(SIG_BLOCK, &wakers, &before); /* else one may come between the look and the wait */
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    int ready = 0;
    if (!was_woken && !was_interrupted)
        ready = ppoll(&in, 1, milliseconds < 0 ? NULL : &wait, &before);
    int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (was_interrupted) {
        was_interrupted = 0;
        return TERMINAL_INTERRUPT;
    }
    if (was_woken) {
        was_woken = 0;
        resume();
        return TERMINAL_WOKEN;
    }
    if (ready == 0)
        return TERMINAL_PAUSE;
    if (ready < 0)
        return why == EINTR ? TERMINAL_WOKEN : TERMINAL_GONE;
    ssize_t got = read(STDIN_FILENO, bytes, *n);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return TERMINAL_WOKEN;
    if (got <= 0)
        return TERMINAL_GONE;
    *n = (size_t)got;
    return TERMINAL_BYTES;
}

/* What was typed while the terminal was asked something. */
static char typed[256];
static size_t ntyped;

static size_t take_typed(char *bytes, size_t most) {
    size_t n = ntyped < most ? ntyped : most;
    memcpy(bytes, typed, n);
    memmove(typed, typed + n, ntyped - n);
    ntyped -= n;
    return n;
}

TerminalEvent terminal_read(char *bytes, size_t *n, int milliseconds) {
    if (!ntyped)
        return read_now(bytes, n, milliseconds);
    *n = take_typed(bytes, *n);
    return TERMINAL_BYTES;
}

/* The length of the answer that begins at text, `ESC [ ? … letter` or `ESC _ … ESC \`; 0: none does, and SIZE_MAX: it
 * has not come to its end. */
static size_t answer_length(const char *text, size_t n) {
    if (text[0] != '\033')
        return 0;
    if (n < 3)
        return n == 1 || text[1] == '[' || text[1] == '_' ? SIZE_MAX : 0;
    if (text[1] == '_') {
        for (size_t i = 2; i + 1 < n; i++)
            if (text[i] == '\033' && text[i + 1] == '\\')
                return i + 2;
        return SIZE_MAX;
    }
    if (text[1] != '[' || text[2] != '?')
        return 0;
    for (size_t i = 3; i < n; i++)
        if (text[i] >= '@' && text[i] <= '~')
            return i + 1;
    return SIZE_MAX;
}

/* Moves whole answers from the front of what was read, and keys to `typed`. True after the last answer. */
static bool sort_answers(char *got, size_t *n, char *answers, size_t most) {
    bool ended = false;
    size_t at = 0, have = strlen(answers);
    while (at < *n && !ended) {
        size_t len = answer_length(got + at, *n - at);
        if (len == SIZE_MAX)
            break;
        if (!len) {
            if (ntyped < sizeof typed)
                typed[ntyped++] = got[at];
            at++;
            continue;
        }
        ended = got[at + len - 1] == 'c';
        if (have + len < most) {
            memcpy(answers + have, got + at, len);
            have += len;
            answers[have] = '\0';
        }
        at += len;
    }
    memmove(got, got + at, *n - at);
    *n -= at;
    return ended;
}

bool terminal_ask(const char *question, char *answers, size_t most, int milliseconds) {
    char got[512];
    size_t n = 0;
    answers[0] = '\0';
    if (!terminal_can_edit() || ntyped || !terminal_enter())
        return false;
    terminal_write(question, strlen(question));
    for (bool ended = false; !ended && n < sizeof got;) {
        size_t more = sizeof got - n;
        TerminalEvent event = read_now(got + n, &more, milliseconds);
        if (event == TERMINAL_WOKEN)
            continue;
        if (event != TERMINAL_BYTES)
            break;
        n += more;
        ended = sort_answers(got, &n, answers, most);
    }
    for (size_t i = 0; i < n && ntyped < sizeof typed; i++) /* an answer that never ends, or keys */
        typed[ntyped++] = got[i];
    terminal_leave();
    return true;
}

bool terminal_was_stopped(void) {
    bool was = was_stopped;
    was_stopped = 0;
    return was;
}

void terminal_write(const char *text, size_t n) {
    fflush(stdout);
    while (n) {
        ssize_t k = write(STDOUT_FILENO, text, n);
        if (k < 0 && errno == EAGAIN) {
            struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&out, 1, 1000);
        } else if (k < 0 && errno != EINTR) {
            return;
        } else if (k > 0) {
            text += k;
            n -= (size_t)k;
        }
    }
}
