/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/edit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *find_editor(void) {
    static const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *editor = getenv(names[i]);
        if (editor && *editor)
            return editor;
    }
    return "vi";
}

static bool write_file(int fd, const char *text) {
    size_t n = strlen(text), done = 0;
    while (done < n) {
        ssize_t k = write(fd, text + done, n - done);
        if (k < 0 && errno != EINTR)
            return false;
        done += k > 0 ? (size_t)k : 0;
    }
    return true;
}

static bool read_file(const char *path, Str *out) {
    enum { MOST_BYTES = 16 << 20 };
    char part[4096];
    FILE *f = fopen(path, "r");
    for (size_t n; f && out->len < MOST_BYTES && (n = fread(part, 1, sizeof part, f)) > 0;)
        str_add_n(out, part, n);
    bool lost = !f || ferror(f);
    if (f)
        fclose(f);
    return !lost;
}

/* The shell splits the editor's words, and sees the path as one. */
static const char *run_editor(const char *path) {
    Str command = {0};
    const char *editor = find_editor();
    str_printf(&command, "%s '", editor);
    for (const char *c = path; *c; c++)
        str_add(&command, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
    str_add_char(&command, '\'');
    fflush(stdout);
    int status = system(str_text(&command));
    if (status == -1)
        return "the shell cannot be run";
    if (WIFSIGNALED(status))
        return fmt_text("`%s` was ended by a signal", editor);
    if (WEXITSTATUS(status))
        return fmt_text("`%s` ended with status %d", editor, WEXITSTATUS(status));
    return NULL;
}

const char *edit_text(const char *text, Str *out) {
    const char *folder = getenv("TMPDIR");
    char *path = fmt_text("%s/relay-XXXXXX.rly", folder && *folder ? folder : "/tmp");
    int fd = mkstemps(path, (int)strlen(".rly"));
    if (fd < 0)
        return fmt_text("cannot write in `%s`: %s", folder && *folder ? folder : "/tmp",
                        strerror(errno));
    const char *why = write_file(fd, text) ? NULL : fmt_text("cannot write `%s`", path);
    if (close(fd) != 0 && !why)
        why = fmt_text("cannot write `%s`", path);
    if (!why)
        why = run_editor(path);
    if (!why && !read_file(path, out))
        why = fmt_text("cannot read `%s`", path);
    unlink(path);
    return why;
}
