/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *followed(const char *path) {
    char *real = realpath(path, NULL);
    if (!real)
        return path;
    const char *kept = mem_strndup(real, strlen(real));
    free(real);
    return kept;
}

/* The permissions of a file made anew. */
static mode_t usual_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* /dev/stdout and /proc/self/fd/1 name what is open, though they lead to a file. */
static bool is_device(const char *path) {
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

void output_open(Output *o, const char *path) {
    struct stat st;
    bool there = stat(path, &st) == 0;
    *o = (Output){.path = there ? followed(path) : path};
    if (there && access(o->path, W_OK) != 0) {
        o->why = errno;
        return;
    }
    bool own = !there || (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid());
    if (own && !is_device(path)) {
        char *temporary = fmt_text("%s.XXXXXX", o->path);
        int fd = mkostemp(temporary, O_CLOEXEC);
        if (fd >= 0 && fchmod(fd, there ? st.st_mode & 07777 : usual_mode()) == 0 &&
            (o->file = fdopen(fd, "wb"))) {
            o->temporary = temporary;
            return;
        }
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
    }
    o->file = fopen(o->path, "wbe");
    if (!o->file)
        o->why = errno;
}

void output_add(Output *o, const void *bytes, size_t n) {
    if (!o->why && n && fwrite(bytes, 1, n, o->file) != n)
        o->why = errno;
}

bool output_flush(Output *o) {
    if (!o->why && fflush(o->file) != 0)
        o->why = errno;
    return !o->why;
}

void output_drop(Output *o) {
    o->why = ECANCELED;
    output_close(o);
}

bool output_close(Output *o) {
    if (o->file && fclose(o->file) != 0 && !o->why)
        o->why = errno;
    if (o->temporary && !o->why && rename(o->temporary, o->path) != 0)
        o->why = errno;
    if (o->temporary && o->why)
        unlink(o->temporary);
    return !o->why;
}

bool output_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
