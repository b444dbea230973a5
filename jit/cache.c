/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled objects on disk, one file each, named by a hash of the key and holding the whole key, so
 * that a collision is a miss. A file is written under a temporary name and renamed: a reader sees
 * all of it or nothing. What does not check is treated as absent and written anew. Any failure to
 * write (read-only, full, no home) ends writing for this process and is otherwise silent: the cache
 * only saves time. Beyond CACHE_CAP the files unused for longest are removed.
 *
 * Note [Whose cache]. What is found here is run, so it has to be ours. The folder is opened once and
 * everything is done relative to it; folder and files must belong to this user and not be writable
 * by others, and a file must be a plain one. Each file carries a SipHash tag whose key stands in the
 * file `secret` beside it, readable by this user alone: whoever can place a file without being able
 * to read ours (a shared disk, a copied folder, a damaged file) cannot make one that is run. A
 * folder that is somebody else's is not used at all, and jit_describe says why. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "jit/internal.h"

#include "base/map.h"
#include "base/siphash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_CAP ((int64_t)256 << 20)
#define ENTRY_CAP ((int64_t)64 << 20)
static const char magic[8] = "RLYKERN2";
static const char secret_name[] = "secret";

typedef struct Header {
    char magic[8];
    uint64_t tag; /* of everything behind it */
    uint64_t nkey, nobject;
} Header;
enum { TAGGED = offsetof(Header, nkey), NAME_BYTES = 40 };

_Static_assert(SIPHASH_KEY_BYTES == sizeof((JitCache *)NULL)->secret, "the secret is the key");

static bool make_dirs(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *p = '/';
        if (!ok)
            return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

void jit_cache_init(JitCache *c, const char *dir) {
    *c = (JitCache){.folder = -1};
    char *path = NULL;
    const char *home;
    if (dir) {
        path = *dir ? strdup(dir) : NULL;
    } else if ((home = getenv("XDG_CACHE_HOME")) && *home == '/') {
        if (asprintf(&path, "%s/relay", home) < 0)
            path = NULL;
    } else if ((home = getenv("HOME")) && *home == '/') {
        if (asprintf(&path, "%s/.cache/relay", home) < 0)
            path = NULL;
    }
    c->dir = path;
}

void jit_cache_fini(JitCache *c) {
    if (c->folder >= 0)
        close(c->folder);
    free(c->dir);
    *c = (JitCache){.folder = -1};
}

static bool read_all(int fd, void *to, size_t n) {
    char *p = to;
    while (n > 0) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t n) {
    const char *p = from;
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* ---- whose it is: see Note [Whose cache] ----------------------------------------------------- */

static bool is_ours(const struct stat *st) {
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A plain file of ours in the folder, opened to be read; -1 when there is none. Neither a FIFO nor a
 * device is waited for, and no link is followed. */
static int open_ours(const JitCache *c, const char *name, struct stat *st) {
    int fd = openat(c->folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) || !is_ours(st))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Writes the whole file under a name of its own; *name is set. False: there is none. */
static bool write_temporary(const JitCache *c, const void *bytes, size_t n, char name[NAME_BYTES]) {
    int fd = -1;
    for (int i = 0; i < 8 && fd < 0; i++) {
        uint64_t draw;
        if (getrandom(&draw, sizeof draw, 0) != sizeof draw)
            return false;
        snprintf(name, NAME_BYTES, "tmp.%016llx", (unsigned long long)draw);
        fd = openat(c->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return false;
    }
    bool ok = fd >= 0 && write_all(fd, bytes, n);
    if (fd >= 0 && (close(fd) != 0 || !ok))
        unlinkat(c->folder, name, 0);
    return ok;
}

static bool read_secret(JitCache *c) {
    struct stat st;
    int fd = open_ours(c, secret_name, &st);
    if (fd < 0)
        return false;
    bool ok = !(st.st_mode & 077) && st.st_size == sizeof c->secret &&
              read_all(fd, c->secret, sizeof c->secret);
    close(fd);
    return ok;
}

/* Of several processes that make one at once the first to link it wins. What stands in its place and
 * is no secret of ours is removed first. */
static bool make_secret(JitCache *c) {
    char name[NAME_BYTES];
    if (getrandom(c->secret, sizeof c->secret, 0) != sizeof c->secret ||
        !write_temporary(c, c->secret, sizeof c->secret, name))
        return false;
    struct stat st;
    int there = open_ours(c, secret_name, &st);
    if (there < 0 || st.st_size != sizeof c->secret || (st.st_mode & 077))
        unlinkat(c->folder, secret_name, 0);
    if (there >= 0)
        close(there);
    int linked = linkat(c->folder, name, c->folder, secret_name, 0);
    unlinkat(c->folder, name, 0);
    return linked == 0 || read_secret(c);
}

/* Opens the folder, made where it is absent and `make` is given, and reads its secret. */
static bool open_folder(JitCache *c, bool make) {
    if (c->folder >= 0 || !c->dir || c->refused)
        return c->folder >= 0;
    struct stat link, st;
    if (make && !make_dirs(c->dir))
        return false;
    if (lstat(c->dir, &link) != 0)
        return false;
    int fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        c->refused = "it cannot be opened as a folder";
        return false;
    }
    if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || link.st_uid != geteuid())
        c->refused = "it belongs to another user";
    else if (!is_ours(&st))
        c->refused = "other users may write there";
    if (c->refused) {
        close(fd);
        return false;
    }
    c->folder = fd;
    if (read_secret(c) || (make && make_secret(c)))
        return true;
    c->folder = -1;
    close(fd);
    return false;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void name_entry(const void *key, size_t nkey, char name[NAME_BYTES]) {
    uint64_t a = hash_bytes(key, nkey, 0x72656c6179u), b = hash_bytes(key, nkey, a ^ 0x6b65726eu);
    snprintf(name, NAME_BYTES, "%016llx%016llx.o", (unsigned long long)a, (unsigned long long)b);
}

static bool is_entry_name(const char *name) {
    return strspn(name, "0123456789abcdef") == 32 && strcmp(name + 32, ".o") == 0;
}

static bool is_temporary_name(const char *name) { return strncmp(name, "tmp.", 4) == 0; }

static uint64_t tag_of(const JitCache *c, const char *file, size_t n) {
    return siphash(c->secret, file + TAGGED, n - TAGGED);
}

static bool checks(const JitCache *c, const char *file, size_t n, const void *key, size_t nkey) {
    Header h;
    memcpy(&h, file, sizeof h);
    return memcmp(h.magic, magic, sizeof magic) == 0 && h.nkey == nkey &&
           h.nobject == n - sizeof h - nkey && memcmp(file + sizeof h, key, nkey) == 0 &&
           h.tag == tag_of(c, file, n);
}

void *jit_cache_find(JitCache *c, const void *key, size_t nkey, size_t *n) {
    if (!open_folder(c, false))
        return NULL;
    char name[NAME_BYTES], *object = NULL;
    name_entry(key, nkey, name);
    struct stat st;
    int fd = open_ours(c, name, &st);
    if (fd < 0)
        return NULL;
    size_t before = sizeof(Header) + nkey;
    if (st.st_size <= ENTRY_CAP && (size_t)st.st_size > before) {
        size_t size = (size_t)st.st_size;
        char *file = malloc(size);
        if (file && read_all(fd, file, size) && checks(c, file, size, key, nkey)) {
            *n = size - before;
            memmove(file, file + before, *n);
            object = file;
            /* Its age counts from its last use; once a day is enough. */
            if (time(NULL) - st.st_mtime > 86400)
                futimens(fd, NULL);
        } else {
            free(file);
        }
    }
    close(fd);
    return object;
}

typedef struct Kept {
    char name[NAME_BYTES];
    int64_t bytes;
    time_t used;
} Kept;

static int by_age(const void *a, const void *b) {
    time_t x = ((const Kept *)a)->used, y = ((const Kept *)b)->used;
    return x < y ? -1 : x > y;
}

/* Removes the oldest files until three quarters of the cap are left, if it is exceeded. Only what
 * has a name of the cache's is ever removed. */
static void trim(JitCache *c) {
    int fd = openat(c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    Kept *all = NULL;
    size_t n = 0, cap = 0;
    int64_t total = 0;
    for (struct dirent *f; (f = readdir(d));) {
        struct stat st;
        size_t len = strlen(f->d_name);
        if (len >= sizeof all->name ||
            !(is_entry_name(f->d_name) || is_temporary_name(f->d_name)) ||
            fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 256;
            Kept *more = realloc(all, cap * sizeof *all);
            if (!more)
                break;
            all = more;
        }
        memcpy(all[n].name, f->d_name, len + 1);
        all[n].bytes = st.st_size;
        all[n++].used = st.st_mtime;
        total += st.st_size;
    }
    if (total > CACHE_CAP) {
        qsort(all, n, sizeof *all, by_age);
        for (size_t i = 0; i < n && total > CACHE_CAP / 4 * 3; i++)
            if (unlinkat(dirfd(d), all[i].name, 0) == 0)
                total -= all[i].bytes;
    }
    free(all);
    closedir(d);
}

void jit_cache_put(JitCache *c, const void *key, size_t nkey, const void *object, size_t n) {
    if (!c->dir || c->broken || c->refused)
        return;
    size_t size = sizeof(Header) + nkey + n;
    char *file = malloc(size), name[NAME_BYTES], temporary[NAME_BYTES];
    if (!file)
        return;
    Header h = {.nkey = nkey, .nobject = n};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(file, &h, sizeof h);
    memcpy(file + sizeof h, key, nkey);
    memcpy(file + sizeof h + nkey, object, n);
    name_entry(key, nkey, name);
    bool ok = open_folder(c, true);
    if (ok) {
        h.tag = tag_of(c, file, size);
        memcpy(file, &h, sizeof h);
        ok = write_temporary(c, file, size, temporary);
        if (ok && renameat(c->folder, temporary, c->folder, name) != 0) {
            unlinkat(c->folder, temporary, 0);
            ok = false;
        }
    }
    free(file);
    c->broken = !ok;
    if (!c->trimmed && ok) {
        c->trimmed = true;
        trim(c);
    }
}
