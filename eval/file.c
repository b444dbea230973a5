/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files, and zlib. */
#include "eval/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "eval/machine.h"

bool file_fail(const File *f, DiagCode code, const char *fmt, ...) {
    va_list ap;
    Str text = {0};
    if (!f->call)
        return false;
    va_start(ap, fmt);
    str_vprintf(&text, fmt, ap);
    va_end(ap);
    if (f->member)
        builtin_fail(f->call, code, "`%s`, `%s`: %s", f->path, f->member, str_text(&text));
    else
        builtin_fail(f->call, code, "`%s`: %s", f->path, str_text(&text));
    return false;
}

bool file_is_interrupted(const File *f, Output *file) {
    if (!builtin_interrupted(f->call))
        return false;
    file->why = EINTR;
    output_close(file);
    return true;
}

bool file_close(const File *f, Output *file) {
    return output_close(file) ||
           file_fail(f, DIAG_R0505, "cannot be written: %s", strerror(file->why));
}

void bytes_release(Bytes *b) {
    if (b->owner)
        tensor_release(b->owner);
    *b = (Bytes){0};
}

static Bytes bytes_new(int64_t n) {
    int64_t shape[1] = {n};
    Tensor *t = tensor_new(DT_U8, 1, shape);
    return (Bytes){tensor_data(t), (size_t)n, t};
}

/* ---- where a file is ------------------------------------------------------------------------- */

/* The folder of the file whose item runs; NULL at the prompt. The reference evaluator has no code: there it is the
 * file of the call. */
static const char *script_folder(const BuiltinCall *call) {
    const Interp *in = call->in;
    const Code *item = in->fp > in->frames + 1 ? in->frames[1].code : in->code;
    const Source *s = item && item->fn ? item->fn->span.source : call->span.source;
    const char *slash = s && !(s->flags & SOURCE_INTERNAL) ? strrchr(s->name, '/') : NULL;
    return slash ? mem_strndup(s->name, (size_t)(slash - s->name)) : NULL;
}

const char *file_find_path(const File *f) {
    const char *folder;
    if (f->path[0] == '/' || access(f->path, F_OK) == 0 || !(folder = script_folder(f->call)))
        return f->path;
    const char *beside = fmt_text("%s/%s", folder, f->path);
    return access(beside, F_OK) == 0 ? beside : f->path;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Doubles the room. */
static bool grow(Bytes *b, bool wanted) {
    if (!wanted)
        return false;
    Bytes more = bytes_new((int64_t)b->n * 2);
    memcpy((unsigned char *)(uintptr_t)more.p, b->p, b->n);
    bytes_release(b);
    *b = more;
    return true;
}

static bool read_all(const File *f, Bytes *out) {
    const char *path = file_find_path(f);
    struct stat st;
    if (stat(path, &st) != 0)
        return file_fail(f, DIAG_R0501, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return file_fail(f, DIAG_R0501, "this is no plain file");
    Bytes b = bytes_new(st.st_size ? (int64_t)st.st_size : 1 << 16); /* files of /proc say size 0 */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        bytes_release(&b);
        return file_fail(f, DIAG_R0501, "%s", strerror(why));
    }
    size_t at = 0;
    int why = 0;
    while (at < b.n || grow(&b, st.st_size == 0)) {
        ssize_t n = read(fd, (unsigned char *)(uintptr_t)b.p + at, b.n - at);
        if (n < 0 && errno == EINTR && !f->call->in->interrupt)
            continue;
        if (n <= 0) {
            why = n < 0 ? errno : 0;
            break;
        }
        at += (size_t)n;
    }
    close(fd);
    if (at < b.n && why) {
        bytes_release(&b);
        return file_fail(f, DIAG_R0501, "%s", strerror(why));
    }
    b.n = at;
    *out = b;
    return true;
}

/* zlib's own memory is collected, so that running out of memory leaks none of it. */
static voidpf inflate_alloc(voidpf opaque, uInt items, uInt size) {
    (void)opaque;
    return mem_alloc((size_t)items * size);
}
static void inflate_free(voidpf opaque, voidpf p) { (void)opaque, (void)p; }

bool bytes_inflate(const File *f, const unsigned char *p, size_t n, bool gzip, int64_t expected,
                   Bytes *out) {
    z_stream z = {.zalloc = inflate_alloc, .zfree = inflate_free};
    if (inflateInit2(&z, gzip ? 15 + 16 : -15) != Z_OK)
        BUG("zlib does not begin");
    int64_t room = expected >= 0 ? expected + 1 : (int64_t)n * 4 + 1024;
    Bytes b = bytes_new(room);
    size_t have = 0;
    int status = Z_OK;
    while (status == Z_OK || status == Z_BUF_ERROR) {
        if (have == b.n) {
            if (expected >= 0)
                break;
            grow(&b, true);
        }
        size_t in_part = n < 1 << 30 ? n : 1 << 30;
        size_t out_part = b.n - have < 1 << 30 ? b.n - have : 1 << 30;
        z.next_in = (Bytef *)(uintptr_t)p;
        z.avail_in = (uInt)in_part;
        z.next_out = (Bytef *)(uintptr_t)b.p + have;
        z.avail_out = (uInt)out_part;
        status = inflate(&z, Z_NO_FLUSH);
        size_t took = in_part - z.avail_in, gave = out_part - z.avail_out;
        p += took;
        n -= took;
        have += gave;
        if (took == 0 && gave == 0 && status != Z_STREAM_END)
            break;
        if (status == Z_STREAM_END && gzip && n > 2 && p[0] == 0x1f && p[1] == 0x8b &&
            inflateReset(&z) == Z_OK)
            status = Z_OK; /* another gzip member follows */
        if (f->call->in->interrupt)
            break;
    }
    if (status != Z_STREAM_END || (expected >= 0 && have != (size_t)expected)) {
        bytes_release(&b);
        return file_fail(f, DIAG_R0502, "its compressed data is damaged or cut off");
    }
    b.n = have;
    *out = b;
    return true;
}

bool file_read(const File *f, Bytes *out) {
    if (!read_all(f, out))
        return false;
    if (out->n < 3 || out->p[0] != 0x1f || out->p[1] != 0x8b)
        return true;
    Bytes packed = *out;
    bool ok = bytes_inflate(f, packed.p, packed.n, true, -1, out);
    bytes_release(&packed);
    return ok;
}
