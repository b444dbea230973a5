/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/tutor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "repl/session_internal.h"
#include "repl/tutor_frame.h"
#include "repl/tutor_judge.h"
#include "repl/tutor_progress.h"

struct Tutor {
    Session *main, *learner, *model; /* learner, model: NULL between lessons */
    Lesson *lesson;
    size_t frame;
    size_t hints; /* given in this frame */
    bool playing; /* entries are not judged */
    bool goes_on; /* the frame has been read: Enter leads on */
    size_t began; /* frames before it were done at another time */
    TextVec kept; /* definitions that worked */
    Progress progress;
};

Tutor *tutor_new(Session *s) {
    Tutor *t = mem_new(Tutor);
    t->main = s;
    return t;
}

Session *tutor_session(const Tutor *t) { return t->learner; }

static const Frame *current_frame(const Tutor *t) { return t->lesson->frames.data[t->frame]; }

static void say(const Tutor *t, const char *text) {
    frame_say(t->learner ? t->learner : t->main, text);
}

/* ---- going through a lesson ------------------------------------------------------------------ */

static void show_current_frame(Tutor *t) {
    const Frame *f = current_frame(t);
    session_say(t->learner, fmt_text("\n-- %d. %s -- %zu of %zu\n\n", t->lesson->number,
                                     t->lesson->title, t->frame + 1, t->lesson->frames.len));
    frame_show(t->learner, f);
    if (!f->answer)
        session_say(t->learner, "(Enter goes on)\n");
}

static void end_lesson(Tutor *t) {
    if (t->learner)
        session_end_beside(t->main, t->learner);
    if (t->model)
        session_end_beside(t->main, t->model);
    t->learner = t->model = NULL;
    t->playing = false;
}

static void keep_progress(Tutor *t) {
    progress_set(&t->progress, t->lesson->number, t->frame);
    progress_write(&t->progress);
}

static void finish_lesson(Tutor *t) {
    keep_progress(t);
    end_lesson(t);
    int next = t->lesson->number + 1;
    say(t, fmt_text("Lesson %d is done. `:tutor keep` takes what you defined in it along.",
                    t->lesson->number));
    say(t, next <= lesson_count()
               ? fmt_text("`:tutor %d` goes on: %s.", next, lesson_get(next)->title)
               : "It was the last one.");
    progress_set_now(&t->progress, next <= lesson_count() ? next : 1);
    progress_write(&t->progress);
}

/* The frame is done: its answer is entered where the lesson's own answers are. */
static void go_on(Tutor *t) {
    frame_enter_answer(t->model, current_frame(t));
    t->hints = 0;
    t->frame++;
    if (t->frame == t->lesson->frames.len) {
        finish_lesson(t);
        return;
    }
    keep_progress(t);
    frame_run(t->model, current_frame(t));
    show_current_frame(t);
}

static void begin_lesson(Tutor *t, int number, bool anew) {
    end_lesson(t);
    t->learner = session_new_beside(t->main);
    t->model = t->learner ? session_new_beside(t->main) : NULL;
    if (!t->model) {
        end_lesson(t);
        return;
    }
    t->lesson = lesson_get(number);
    t->kept = (TextVec){0};
    t->hints = 0;
    size_t reached = anew ? 0 : progress_get(&t->progress, number);
    if (reached >= t->lesson->frames.len)
        reached = 0;
    for (t->frame = 0; t->frame < reached; t->frame++) {
        frame_run(t->learner, current_frame(t));
        frame_enter_answer(t->learner, current_frame(t));
        frame_run(t->model, current_frame(t));
        frame_enter_answer(t->model, current_frame(t));
    }
    t->began = reached;
    frame_run(t->model, current_frame(t));
    progress_set_now(&t->progress, number);
    keep_progress(t);
    if (!reached)
        say(t, "What you type here is Relay. `hint` helps, `skip` shows the answer, `play` lets "
               "you try things "
               "until `next`, `:tutor quit` leaves; the lesson waits for you.");
    else
        say(t, "The lesson's own answers stand for what you defined before.");
    show_current_frame(t);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void give_hint(Tutor *t) {
    const Frame *f = current_frame(t);
    if (!f->answer)
        say(t, "There is nothing to answer here; Enter goes on.");
    else if (t->hints < f->hints.len)
        say(t, fmt_text("Hint: %s", f->hints.data[t->hints++]));
    else
        say(t, "There is no further hint; `skip` shows the answer and goes on.");
}

static void skip(Tutor *t) {
    const Frame *f = current_frame(t);
    if (f->answer) {
        say(t, "An answer:");
        frame_show_answer(t->learner, f);
    }
    go_on(t);
}

static void next(Tutor *t) {
    if (t->playing) {
        t->playing = false;
        show_current_frame(t);
    } else if (current_frame(t)->answer) {
        say(t, "This one wants an answer; `hint` helps, `skip` shows it and goes on.");
    } else {
        go_on(t);
    }
}

static void play(Tutor *t) {
    t->playing = true;
    say(t, "Try what you like; `next` comes back to the lesson.");
}

static void again(Tutor *t) { begin_lesson(t, t->lesson->number, true); }

static void quit(Tutor *t) {
    int number = t->lesson->number;
    end_lesson(t);
    say(t, fmt_text("Lesson %d waits here; `:tutor` comes back, `:tutor keep` takes what you "
                    "defined along.",
                    number));
}

static void show_frame_again(Tutor *t) { show_current_frame(t); }

static const struct {
    const char *name;
    void (*run)(Tutor *t);
} words[] = {
    {"again", again},    {"frame", show_frame_again},
    {"hint", give_hint}, {"next", next},
    {"play", play},      {"quit", quit},
    {"skip", skip},
};
enum { NWORDS = sizeof words / sizeof *words };

static void list(Tutor *t) {
    for (int i = 1; i <= lesson_count(); i++) {
        Lesson *lesson = lesson_get(i);
        size_t reached = progress_get(&t->progress, i), n = lesson->frames.len;
        session_say(t->main, fmt_text("  %2d. %-44s %s\n", i, lesson->title,
                                      reached >= n ? "done"
                                      : reached    ? fmt_text("%zu of %zu", reached + 1, n)
                                                   : ""));
    }
}

/* The lesson's own data comes first, for what was defined from it. */
static void keep(Tutor *t) {
    if (!t->lesson) {
        session_complain(t->main, "no lesson has begun; `:tutor` begins one\n");
        return;
    }
    for (size_t i = 0; i < t->lesson->frames.len && i <= t->frame; i++) {
        frame_run(t->main, t->lesson->frames.data[i]);
        if (i < t->began)
            frame_enter_answer(t->main, t->lesson->frames.data[i]);
    }
    for (size_t i = 0; i < t->kept.len; i++)
        session_enter(t->main, t->kept.data[i], strlen(t->kept.data[i]), false);
    say(t, fmt_text("What lesson %d defined is kept.", t->lesson->number));
}

static int read_number(const char *text) {
    size_t n = strspn(text, "0123456789");
    return n && n < 4 && !text[n] ? atoi(text) : 0;
}

void tutor_command(Tutor *t, const char *argument) {
    int number = read_number(argument);
    progress_read(&t->progress);
    if (!*argument && t->learner) {
        t->playing = false;
        show_current_frame(t);
    } else if (!*argument) {
        begin_lesson(t, progress_now(&t->progress, lesson_count()), false);
    } else if (number >= 1 && number <= lesson_count()) {
        begin_lesson(t, number,
                     progress_get(&t->progress, number) >= lesson_get(number)->frames.len);
    } else if (strcmp(argument, "list") == 0) {
        list(t);
    } else if (strcmp(argument, "keep") == 0) {
        keep(t);
    } else {
        for (size_t i = 0; i < NWORDS; i++)
            if (strcmp(words[i].name, argument) == 0) {
                if (t->learner)
                    words[i].run(t);
                else
                    session_complain(t->main, "no lesson has begun; `:tutor` begins one\n");
                return;
            }
        session_complain(t->main,
                         ":tutor wants a lesson, 1 to %d, or list, hint, skip, play, next, frame, "
                         "again, keep, quit\n",
                         lesson_count());
    }
}

bool tutor_is_word(const Tutor *t, const char *entry) {
    bool is_word = false;
    for (size_t i = 0; i < NWORDS && t->learner; i++)
        is_word |= strcmp(words[i].name, entry) == 0;
    return is_word &&
           env_find(session_env(t->learner), sym_intern(entry), SIGIL_NONE).kind == BIND_NONE;
}

/* ---- entries --------------------------------------------------------------------------------- */

void tutor_take_empty(Tutor *t) {
    if (t->learner && !t->playing && !current_frame(t)->answer)
        go_on(t);
}

static bool is_definition(const char *entry) {
    return strncmp(entry, "def ", 4) == 0 || strncmp(entry, "let ", 4) == 0 ||
           strncmp(entry, "type ", 5) == 0 || strncmp(entry, "import ", 7) == 0;
}

void tutor_take_entry(Tutor *t, const char *entry) {
    const SessionResult *last = session_last_result(t->learner);
    const Frame *f = current_frame(t);
    const char *reply;
    if (entry[0] != ':' && last->status == SESSION_OK && is_definition(entry))
        vec_push(&t->kept, mem_strdup(entry));
    if (t->playing || !f->answer || last->status == SESSION_INTERRUPTED ||
        !judge_is_attempt(f, entry))
        return;
    if (judge(t->learner, t->model, f, entry, &reply)) {
        say(t, "Right.");
        go_on(t);
        return;
    }
    say(t, fmt_text("Not yet. %s", reply));
    if (t->hints < f->hints.len)
        give_hint(t);
    else
        say(t, "Try again, or `skip`: it shows an answer and goes on.");
}
