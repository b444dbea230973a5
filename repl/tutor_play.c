/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a lesson as `relay doctest LESSON.tut` and the tests do. */
#include <string.h>

#include "repl/commands.h"
#include "repl/session_internal.h"
#include "repl/tutor.h"
#include "repl/tutor_frame.h"
#include "repl/tutor_judge.h"

typedef struct Play {
    Session *learner, *model;
    const char *path;
    size_t frame;
    TutorCount *count;
    Str *play, *wrong;
} Play;

static void keep_text(void *ctx, const char *text, size_t n) { str_add_n(ctx, text, n); }

/* A play's complaints among what it shows. */
static SessionSink sink_of(Play *p) { return (SessionSink){keep_text, keep_text, p->play, true}; }

static void expect(Play *p, bool holds, const char *what, const char *about) {
    *(holds ? &p->count->passed : &p->count->failed) += 1;
    if (!holds)
        str_printf(p->wrong, "%s: frame %zu: %s: %s\n", p->path, p->frame + 1, what, about);
}

/* Enters an answer as a learner would, and judges it. */
static bool try_answer(Play *p, const Frame *f, const char *entry, const char **reply) {
    const char *argument;
    session_say(p->learner, "relay> ");
    for (const char *c = entry; *c; c++)
        session_say(p->learner, *c == '\n' ? "\n  ...> " : (char[]){*c, '\0'});
    session_say(p->learner, "\n");
    if (entry[0] == ':')
        command_run(p->learner, entry, &argument);
    else
        session_enter(p->learner, entry, strlen(entry), false);
    return judge_is_attempt(f, entry) && judge(p->learner, p->model, f, entry, reply);
}

static void play_answers(Play *p, const Frame *f) {
    const char *reply = "";
    expect(p, f->wrong.len > 0, "it has no wrong answer to try", f->answer);
    expect(p, f->hints.len > 0, "it has no hint", f->answer);
    expect(p, f->error == DIAG_NONE || f->answer[0] != ':', "a command draws no diagnostic",
           f->answer);
    for (size_t i = 0; i < f->wrong.len; i++) {
        const WrongAnswer *w = &f->wrong.data[i];
        bool right = try_answer(p, f, w->text, &reply);
        expect(p, !right, "a wrong answer is taken", w->text);
        expect(p, right || !*w->reply || strcmp(reply, w->reply) == 0,
               fmt_text("a wrong answer gets the reply `%s`", reply), w->text);
        frame_say(p->learner, fmt_text("Not yet. %s", reply));
    }
    expect(p, !try_answer(p, f, "no_such_name_1 + 1", &reply), "nonsense is taken", f->answer);
    for (size_t i = 0; i < f->others.len; i++)
        expect(p, try_answer(p, f, f->others.data[i], &reply),
               fmt_text("another right answer is refused with `%s`", reply), f->others.data[i]);
    expect(p, try_answer(p, f, f->answer, &reply),
           fmt_text("its own answer is refused with `%s`", reply), f->answer);
    frame_say(p->learner, "Right.");
    session_say(p->learner, "\n");
}

/* Blocks that the learner sees run without a mistake, unless the frame says that one is shown. */
static void play_frame(Play *p, const Frame *f) {
    size_t before = p->play->len;
    session_say(p->learner, fmt_text("-- %zu\n\n", p->frame + 1));
    frame_run(p->model, f);
    frame_show(p->learner, f);
    bool shows_mistake = strstr(p->play->text + before, "\nerror[R") != NULL;
    bool expects = false;
    for (size_t i = 0; i < f->blocks.len; i++)
        expects |= f->blocks.data[i].kind != BLOCK_SHOW &&
                   strstr(f->blocks.data[i].text, "mistake");
    expect(p, !shows_mistake || expects, "a block ends in a mistake of which the text says nothing",
           "");
    if (f->answer)
        play_answers(p, f);
    frame_enter_answer(p->model, f);
}

void tutor_play(Session *s, const char *path, TutorCount *count, Str *play, Str *wrong) {
    Diags *diags = mem_new(Diags);
    Source *text = session_read_file(s, path, diags);
    const char *why = NULL;
    Lesson *lesson = text ? lesson_parse(text->text, text->len, &why) : NULL;
    session_print_diags(s, diags);
    if (why)
        str_printf(wrong, "%s: %s\n", path, why);
    Play p = {.path = path, .count = count, .play = play, .wrong = wrong};
    if (lesson) {
        p.learner = session_new_beside(s);
        p.model = session_new_beside(s);
    }
    if (!p.model) {
        count->failed++;
        return;
    }
    SessionSink sink = sink_of(&p);
    session_set_sink(p.learner, &sink);
    for (; p.frame < lesson->frames.len; p.frame++)
        play_frame(&p, lesson->frames.data[p.frame]);
    session_end_beside(s, p.learner);
    session_end_beside(s, p.model);
}
