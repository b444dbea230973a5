/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/tutor_lesson.h"

#include <stdlib.h>
#include <string.h>

#include "prelude/texts.h"

typedef enum Fence {
    FENCE_SHOW,
    FENCE_SETUP,
    FENCE_ANSWER,
    FENCE_OR,
    FENCE_TRY,
    FENCE_CHECK,
    FENCE_WRONG,
    NFENCES
} Fence;
static const char *const fences[NFENCES] = {"show", "setup", "answer", "or",
                                            "try",  "check", "wrong"};

typedef struct Reader {
    Lesson *lesson;
    Frame *frame;
    Str paragraph;    /* being collected */
    bool after_wrong; /* paragraphs are the reply to a wrong answer */
    const char *why;
} Reader;

/* ---- paragraphs ------------------------------------------------------------------------------ */

static void end_paragraph(Reader *r) {
    const char *text = str_text(&r->paragraph);
    if (!*text)
        return;
    if (strncmp(text, "Hint: ", 6) == 0)
        vec_push(&r->frame->hints, text + 6);
    else if (r->after_wrong)
        vec_last(&r->frame->wrong).reply = text;
    else
        vec_push(&r->frame->blocks,
                 ((Block){*text == '>' ? BLOCK_TASK : BLOCK_TEXT, text + (*text == '>' ? 2 : 0)}));
    r->paragraph = (Str){0};
}

/* Lines of a paragraph are joined; a list item and an indented line stay lines of their own. */
static void add_to_paragraph(Reader *r, const char *line) {
    bool task = strncmp(line, "> ", 2) == 0, own = *line == ' ' || strncmp(line, "- ", 2) == 0;
    Str *p = &r->paragraph;
    if (strncmp(line, "Hint: ", 6) == 0)
        end_paragraph(r);
    if (p->len) {
        line += task ? 2 : 0;
        str_add_char(p, own ? '\n' : ' ');
    }
    str_add(p, line);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void add_lines(TextVec *out, const char *text) {
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        vec_push(out, mem_strndup(text, n));
    }
}

static void add_block(Reader *r, Fence fence, const char *text, const char *argument) {
    Frame *f = r->frame;
    r->after_wrong = false;
    switch (fence) {
    case FENCE_SHOW: vec_push(&f->blocks, ((Block){BLOCK_SHOW, text})); break;
    case FENCE_SETUP: vec_push(&f->blocks, ((Block){BLOCK_SETUP, text})); break;
    case FENCE_ANSWER:
        f->answer = text;
        f->error = *argument ? diag_find_code(argument) : DIAG_NONE;
        break;
    case FENCE_OR: vec_push(&f->others, text); break;
    case FENCE_TRY: add_lines(&f->tries, text); break;
    case FENCE_CHECK: add_lines(&f->checks, text); break;
    case FENCE_WRONG:
        vec_push(&f->wrong, ((WrongAnswer){text, ""}));
        r->after_wrong = true;
        break;
    case NFENCES: break;
    }
}

/* "relay KIND ARGUMENT" behind a fence. */
static bool read_fence(const char *info, Fence *fence, const char **argument) {
    if (strncmp(info, "relay ", 6) != 0)
        return false;
    info += 6;
    size_t n = strcspn(info, " ");
    for (int i = 0; i < NFENCES; i++)
        if (strlen(fences[i]) == n && strncmp(info, fences[i], n) == 0) {
            *fence = (Fence)i;
            *argument = info + n + strspn(info + n, " ");
            return true;
        }
    return false;
}

static void begin_frame(Reader *r) {
    end_paragraph(r);
    if (r->frame && !r->frame->blocks.len)
        r->why = "a frame says nothing";
    r->frame = mem_new(Frame);
    r->after_wrong = false;
    vec_push(&r->lesson->frames, r->frame);
}

Lesson *lesson_parse(const char *text, size_t len, const char **why) {
    Reader r = {.lesson = mem_new(Lesson)};
    TextVec lines = {0};
    add_lines(&lines, mem_strndup(text, len));
    *why = NULL;
    for (size_t i = 0; i < lines.len && !r.why; i++) {
        const char *line = lines.data[i], *argument;
        Fence fence;
        if (i == 0) {
            if (strncmp(line, "# ", 2) != 0)
                r.why = "its first line is no title, `# …`";
            r.lesson->title = line + 2;
            begin_frame(&r);
        } else if (strcmp(line, "---") == 0) {
            begin_frame(&r);
        } else if (strncmp(line, "```", 3) == 0) {
            Str block = {0};
            end_paragraph(&r);
            while (++i < lines.len && strcmp(lines.data[i], "```") != 0)
                str_printf(&block, "%s%s", block.len ? "\n" : "", lines.data[i]);
            if (i == lines.len || !read_fence(line + 3, &fence, &argument))
                r.why = fmt_text("`%s` begins no block of a lesson", line);
            else
                add_block(&r, fence, str_text(&block), argument);
        } else if (!*line) {
            end_paragraph(&r);
        } else {
            add_to_paragraph(&r, line);
        }
    }
    if (!lines.len)
        r.why = "it is empty";
    else if (!r.why)
        end_paragraph(&r);
    if (!r.why && !r.frame->blocks.len)
        r.why = "its last frame says nothing";
    *why = r.why;
    return r.why ? NULL : r.lesson;
}

/* ---- those of the program -------------------------------------------------------------------- */

static const EmbeddedText *find_text(int number) {
    const char *name = fmt_text("repl/tutor/lesson%02d.tut", number);
    for (const EmbeddedText *t = embedded_texts; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

int lesson_count(void) {
    int n = 0;
    while (find_text(n + 1))
        n++;
    return n;
}

Lesson *lesson_get(int number) {
    const EmbeddedText *t = find_text(number);
    const char *why = "there is none";
    Lesson *lesson = t ? lesson_parse(t->text, t->len, &why) : NULL;
    if (!lesson)
        BUG("lesson %d: %s", number, why);
    lesson->number = number;
    return lesson;
}
