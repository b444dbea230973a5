/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled objects on disk, one file each, named by a hash of the key and holding the whole key, so
 * that a collision is a miss. A file is written under a temporary name and renamed: a reader sees
 * all of it or nothing. What does not check is treated as absent and written anew. Any failure to
 * write (read-only, full, no home) ends writing for this process and is otherwise silent: the cache
 * only saves time. Beyond CACHE_CAP the files unused for longest are removed. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "jit/internal.h"

#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_CAP ((int64_t)256 << 20)
static const char magic[8] = "RLYKERN1";

typedef struct Header {
    char magic[8];
    uint64_t nkey, nobject, check; /* check: hash of key and object */
} Header;

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
    *c = (JitCache){0};
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
    free(c->dir);
    *c = (JitCache){0};
}

static char *file_of(JitCache *c, const void *key, size_t nkey) {
    char *path;
    uint64_t a = hash_bytes(key, nkey, 0x72656c6179u), b = hash_bytes(key, nkey, a ^ 0x6b65726eu);
    return asprintf(&path, "%s/%016llx%016llx.o", c->dir, (unsigned long long)a,
                    (unsigned long long)b) < 0
               ? NULL
               : path;
}

static uint64_t check_of(const void *key, size_t nkey, const void *object, size_t n) {
    return hash_bytes(object, n, hash_bytes(key, nkey, n));
}

static bool read_all(int fd, void *to, size_t n) {
    char *p = to;
    while (n > 0) {
        ssize_t got = read(fd, p, n);
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
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

void *jit_cache_find(JitCache *c, const void *key, size_t nkey, size_t *n) {
    if (!c->dir)
        return NULL;
    char *path = file_of(c, key, nkey), *object = NULL;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    struct stat st;
    Header h;
    if (fd >= 0 && fstat(fd, &st) == 0 && read_all(fd, &h, sizeof h) &&
        memcmp(h.magic, magic, sizeof magic) == 0 && h.nkey == nkey &&
        h.nobject < (uint64_t)st.st_size && (uint64_t)st.st_size == sizeof h + h.nkey + h.nobject) {
        char *kept = malloc(nkey + h.nobject);
        if (kept && read_all(fd, kept, nkey + h.nobject) && memcmp(kept, key, nkey) == 0 &&
            check_of(key, nkey, kept + nkey, h.nobject) == h.check) {
            memmove(kept, kept + nkey, h.nobject);
            *n = h.nobject;
            object = kept;
            /* Its age counts from its last use; once a day is enough. */
            if (time(NULL) - st.st_mtime > 86400)
                futimens(fd, NULL);
        } else {
            free(kept);
        }
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return object;
}

typedef struct Kept {
    char name[40];
    int64_t bytes;
    time_t used;
} Kept;

static int by_age(const void *a, const void *b) {
    time_t x = ((const Kept *)a)->used, y = ((const Kept *)b)->used;
    return x < y ? -1 : x > y;
}

/* Removes the oldest files until three quarters of the cap are left, if it is exceeded. */
static void trim(JitCache *c) {
    DIR *d = opendir(c->dir);
    if (!d)
        return;
    Kept *all = NULL;
    size_t n = 0, cap = 0;
    int64_t total = 0;
    for (struct dirent *f; (f = readdir(d));) {
        struct stat st;
        size_t len = strlen(f->d_name);
        if (len >= sizeof all->name || f->d_name[0] == '.' ||
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
    if (!c->dir || c->broken)
        return;
    char *path = file_of(c, key, nkey), *temporary = NULL;
    if (!path || asprintf(&temporary, "%s/tmp.%ld.XXXXXX", c->dir, (long)getpid()) < 0) {
        free(path);
        return;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && make_dirs(c->dir)) {
        memcpy(temporary + strlen(temporary) - 6, "XXXXXX", 6); /* a failure leaves them changed */
        fd = mkostemp(temporary, O_CLOEXEC);
    }
    if (fd >= 0) {
        Header h = {.nkey = nkey, .nobject = n, .check = check_of(key, nkey, object, n)};
        memcpy(h.magic, magic, sizeof magic);
        bool ok = write_all(fd, &h, sizeof h) && write_all(fd, key, nkey) &&
                  write_all(fd, object, n);
        ok = close(fd) == 0 && ok;
        if (!ok || rename(temporary, path) != 0) {
            unlink(temporary);
            c->broken = true;
        }
    } else {
        c->broken = true;
    }
    free(temporary);
    free(path);
    if (!c->trimmed && !c->broken) {
        c->trimmed = true;
        trim(c);
    }
}
