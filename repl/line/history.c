/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/line/history.h"

#include "base/str.h"
#include "repl/line/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void history_open(History *h) { *h = (History){.path = place_of_state("history")}; }

/* ---- entries --------------------------------------------------------------------------------- */

/* Takes out the places that are empty, and what is too old. */
static void compact(History *h) {
    size_t drop = h->nlive > HISTORY_MAX ? h->nlive - HISTORY_MAX : 0, kept = 0;
    map_clear(&h->places);
    for (size_t i = 0; i < h->items.len; i++) {
        const Symbol *item = h->items.data[i];
        if (!item || drop) {
            drop -= item != NULL;
            continue;
        }
        h->items.data[kept++] = item;
        map_set(&h->places, item, (void *)(uintptr_t)kept);
    }
    h->items.len = h->nlive = kept;
}

static void keep(History *h, const char *text, size_t n) {
    if (!n || text[0] == ' ' || !text_is_utf8(text, n, NULL))
        return;
    const Symbol *item = sym_intern_n(text, n);
    uintptr_t place = (uintptr_t)map_find(&h->places, item);
    if (place)
        h->items.data[place - 1] = NULL;
    else
        h->nlive++;
    vec_push(&h->items, item);
    map_set(&h->places, item, (void *)(uintptr_t)h->items.len);
    if (h->items.len > 2 * HISTORY_MAX)
        compact(h);
}

bool history_find(const History *h, size_t *at, bool older, const char *text, bool inside,
                  const char * not ) {
    size_t n = strlen(text);
    for (size_t i = *at; older ? i > 0 : i + 1 < h->items.len;) {
        i = older ? i - 1 : i + 1;
        const Symbol *item = h->items.data[i];
        if (!item || (not &&strcmp(item->text, not ) == 0))
            continue;
        if (inside ? strcasestr(item->text, text) != NULL : strncmp(item->text, text, n) == 0) {
            *at = i;
            return true;
        }
    }
    return false;
}

/* Moves the entries of this prompt behind those of others: Up finds one's own first. */
static void put_own_last(History *h) {
    for (size_t i = 0; i < h->own.len; i++)
        keep(h, h->own.data[i]->text, h->own.data[i]->len);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Each entry of a text in the file's format. */
static void read_entries(History *h, const char *text, size_t n) {
    Str entry = {0};
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t len = (end ? (size_t)(end - text) : n) - i;
        bool goes_on = text[i] == '\t' && entry.len;
        if (!goes_on) {
            keep(h, str_text(&entry), entry.len);
            entry = (Str){0};
        } else {
            str_add_char(&entry, '\n');
        }
        str_add_n(&entry, text + i + goes_on, len - goes_on);
        h->lines++;
        i += len + 1;
    }
    keep(h, str_text(&entry), entry.len);
}

static void add_in_file_format(Str *out, const char *entry) {
    for (const char *p = entry; *p; p++) {
        str_add_char(out, *p);
        if (*p == '\n')
            str_add_char(out, '\t');
    }
    str_add_char(out, '\n');
}

static bool write_all(int fd, const Str *text) {
    size_t done = 0;
    while (done < text->len) {
        ssize_t n = write(fd, text->text + done, text->len - done);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* A file that has grown to twice what is kept is written anew, beside it and then in its place. */
static void rewrite(History *h) {
    const char *beside = fmt_text("%s.%ld", h->path, (long)getpid());
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    Str text = {0};
    compact(h);
    for (size_t i = 0; i < h->items.len; i++)
        add_in_file_format(&text, h->items.data[i]->text);
    bool ok = write_all(fd, &text) && fsync(fd) == 0;
    struct stat st;
    ok = fstat(fd, &st) == 0 && ok;
    close(fd);
    if (!ok || rename(beside, h->path) != 0) {
        unlink(beside);
        return;
    }
    h->device = st.st_dev;
    h->inode = st.st_ino;
    h->upto = text.len;
    h->lines = h->items.len;
}

/* A prompt that was stopped in the middle may hold the lock: nobody waits for it long. */
static bool lock_soon(int fd) {
    for (int i = 0; i < 20; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        usleep(5000);
    }
    return false;
}

/* The file, locked; another may have put a new one in its place before the lock was had. -1: none. */
static int open_locked(const History *h, int flags) {
    for (int i = 0; i < 10; i++) {
        struct stat here, there;
        int fd = open(h->path, flags | O_CLOEXEC | O_NONBLOCK, 0600);
        if (fd < 0)
            return -1;
        if (lock_soon(fd) && fstat(fd, &here) == 0 && S_ISREG(here.st_mode) &&
            stat(h->path, &there) == 0 && here.st_ino == there.st_ino &&
            here.st_dev == there.st_dev)
            return fd;
        close(fd);
    }
    return -1;
}

void history_refresh(History *h) {
    enum { MOST = 64 << 20 };
    struct stat st;
    if (!h->path || stat(h->path, &st) != 0)
        return;
    bool same = h->device == st.st_dev && h->inode == st.st_ino && h->upto <= (size_t)st.st_size;
    if (same && h->upto == (size_t)st.st_size)
        return;
    int fd = open_locked(h, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (!same) {
        h->upto = h->lines = 0;
        h->device = st.st_dev;
        h->inode = st.st_ino;
    }
    size_t size = (size_t)st.st_size, n = size > h->upto ? size - h->upto : 0;
    size_t skip = n > MOST ? n - MOST : 0;
    char *text = mem_bytes(n - skip + 1);
    ssize_t got = pread(fd, text, n - skip, (off_t)(h->upto + skip));
    if (got > 0) {
        h->upto += skip + (size_t)got;
        read_entries(h, text, (size_t)got);
        put_own_last(h);
    }
    if (h->lines > 3 * HISTORY_MAX)
        rewrite(h);
    close(fd);
}

void history_add(History *h, const char *entry) {
    if (!entry[0] || entry[0] == ' ')
        return;
    keep(h, entry, strlen(entry));
    vec_push(&h->own, sym_intern(entry));
    if (!h->path || !place_make_parents(h->path))
        return;
    int fd = open_locked(h, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0)
        return;
    Str text = {0};
    struct stat st;
    add_in_file_format(&text, entry);
    if (fstat(fd, &st) == 0 && !write_all(fd, &text)) { /* the disk is full: no half of an entry */
        int cut = ftruncate(fd, st.st_size);
        (void)cut;
    }
    close(fd);
}
