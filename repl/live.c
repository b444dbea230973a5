/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/live.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "repl/session_internal.h"

enum { PAUSE_MS = 100, MOST_CODE = 60 };

/* A shown item and its value, as text. */
typedef struct LiveValue {
    const char *code, *text;
    bool matched; /* with one of the next run */
} LiveValue;
typedef VEC(LiveValue) LiveValues;

/* A file that was read, as it was then. */
typedef struct LiveFile {
    const char *path;
    struct stat was;
    bool is_there;
} LiveFile;

typedef struct Live {
    LiveValues before, now;
    VEC(LiveFile) files;
    size_t changed;
} Live;

/* ---- values ---------------------------------------------------------------------------------- */

/* The code on one line, cut where it is long. */
static const char *line_of_code(const char *code) {
    Str out = {0};
    for (const char *c = code; *c && out.len < MOST_CODE; c++)
        if (!strchr(" \t\n", *c))
            str_add_char(&out, *c);
        else if (out.len && out.text[out.len - 1] != ' ')
            str_add_char(&out, ' ');
    size_t end;
    while (out.len && !text_is_utf8(out.text, out.len, &end))
        out.text[out.len = end] = '\0';
    if (out.len >= MOST_CODE)
        str_add(&out, " ...");
    return str_text(&out);
}

static bool is_new(Live *l, const LiveValue *v) {
    for (size_t i = 0; i < l->before.len; i++) {
        LiveValue *b = &l->before.data[i];
        if (!b->matched && strcmp(b->code, v->code) == 0 && strcmp(b->text, v->text) == 0) {
            b->matched = true;
            return false;
        }
    }
    return true;
}

/* A value beside its line; one of several lines below it. */
static void show(void *ctx, Session *s, Span at, const char *text) {
    Live *l = ctx;
    uint32_t line, column;
    LiveValue v = {mem_strndup(at.source->text + at.begin, at.end - at.begin),
                   mem_strndup(text, strlen(text)), false};
    vec_push(&l->now, v);
    if (!is_new(l, &v))
        return;
    l->changed++;
    span_locate(at, &line, &column);
    Str out = {0};
    str_printf(&out, "%4u | %s", line, line_of_code(v.code));
    const char *end = strchr(text, '\n');
    if (end && !end[1]) {
        str_printf(&out, "   = %s", text);
    } else {
        str_add_char(&out, '\n');
        for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
            str_printf(&out, "       %.*s\n", (int)strcspn(p, "\n"), p);
    }
    session_say(s, str_text(&out));
    fflush(stdout);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void remember_file(Live *l, const char *path) {
    LiveFile f = {.path = path};
    f.is_there = stat(path, &f.was) == 0;
    vec_push(&l->files, f);
}

static bool has_changed(const LiveFile *f) {
    struct stat is;
    bool is_there = stat(f->path, &is) == 0;
    return is_there &&
           (!f->is_there || is.st_ino != f->was.st_ino || is.st_size != f->was.st_size ||
            is.st_mtim.tv_sec != f->was.st_mtim.tv_sec ||
            is.st_mtim.tv_nsec != f->was.st_mtim.tv_nsec);
}

/* False after Ctrl-C. */
static bool wait_for_change(const LiveFace *face, const Live *l) {
    struct timespec pause = {0, PAUSE_MS * 1000000L};
    while (!*face->interrupted && !*face->broken) {
        for (size_t i = 0; i < l->files.len; i++)
            if (has_changed(&l->files.data[i]))
                return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Ctrl-C that ended the run is done with; one that came when its last value was there ends the watch. */
static bool run_once(const LiveFace *face, Live *l, const char *path) {
    Session *s = face->start(face->ctx);
    if (!s)
        return false;
    char clock[16] = "";
    time_t t = time(NULL);
    struct tm now;
    if (localtime_r(&t, &now))
        strftime(clock, sizeof clock, "%H:%M:%S", &now);
    session_say(s, fmt_text("-- %s, %s\n", path, clock));
    fflush(stdout);
    l->before = l->now;
    l->now = (LiveValues){0};
    l->changed = 0;
    vec_clear(&l->files);
    remember_file(l, path); /* before it is read: what is saved meanwhile is another change */
    session_set_shown(s, show, l);
    SessionStatus status = session_run_file(s, path, NULL, 0);
    if (status == SESSION_OK && !l->changed)
        session_say(s, l->now.len ? "nothing changed\n" : "it checks, and shows nothing\n");
    if (status != SESSION_OK) /* what it did not come to is not forgotten */
        for (size_t i = 0; i < l->before.len; i++)
            if (!l->before.data[i].matched)
                vec_push(&l->now,
                         ((LiveValue){l->before.data[i].code, l->before.data[i].text, false}));
    for (size_t i = 0; i < s->loaded.len; i++)
        if (strchr(s->loaded.data[i]->name, '/'))
            remember_file(l, s->loaded.data[i]->name);
    if (status != SESSION_OK && session_was_interrupted(s))
        *face->interrupted = 0;
    face->finish(face->ctx, s);
    return true;
}

bool live_run(const LiveFace *face, const char *path) {
    Live *l = mem_new(Live);
    mem_pin(l);
    bool goes_on = run_once(face, l, path), ok = goes_on;
    while (goes_on) {
        goes_on = wait_for_change(face, l);
        if (goes_on)
            ok = goes_on = run_once(face, l, path);
    }
    mem_unpin(l);
    return ok;
}
