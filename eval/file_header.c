/* SPDX-License-Identifier: Apache-2.0 */
#include "eval/file_header.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eval/file.h"

enum { MOST_HEADER = 64 << 10, MOST_CSV = 16 << 20 };

static void set_shape(FileHeader *h, DType t, int rank, const int64_t *shape) {
    h->has_dtype = true;
    h->dtype = t;
    h->rank = rank;
    memcpy(h->shape, shape, (size_t)rank * sizeof *shape);
}

/* ---- formats --------------------------------------------------------------------------------- */

static uint32_t get_big32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Whether a transparent colour is announced (tRNS) before the pixels: 1, 0, or -1 where the pixels do not
 * begin in what was read. */
static int has_transparency(const Bytes *b) {
    for (size_t at = 8; b->n - at >= 12;) {
        uint32_t n = get_big32(b->p + at);
        if (memcmp(b->p + at + 4, "tRNS", 4) == 0)
            return 1;
        if (memcmp(b->p + at + 4, "IDAT", 4) == 0)
            return 0;
        if (n > b->n - at - 12)
            break;
        at += (size_t)n + 12;
    }
    return -1;
}

static bool read_png(const Bytes *b, FileHeader *h) {
    enum { GREY = 0, COLOUR = 2, PALETTE = 3, GREY_ALPHA = 4, COLOUR_ALPHA = 6 };
    if (b->n < 33)
        return false;
    int channels = -1, transparent = has_transparency(b);
    switch (b->p[25]) {
    case GREY: channels = transparent < 0 ? -1 : 1 + transparent; break;
    case COLOUR:
    case PALETTE: channels = transparent < 0 ? -1 : 3 + transparent; break;
    case GREY_ALPHA: channels = 2; break;
    case COLOUR_ALPHA: channels = 4; break;
    }
    int64_t shape[3] = {get_big32(b->p + 20), get_big32(b->p + 16), channels};
    set_shape(h, b->p[24] == 16 ? DT_U16 : DT_U8, 3, shape);
    return true;
}

static bool read_safetensors(const File *f, const Bytes *begin, size_t whole, FileHeader *h) {
    MemberVec members = {0};
    uint64_t n = 0;
    for (int i = 8; i-- > 0;)
        n = n << 8 | begin->p[i];
    Bytes b = {begin->p, whole, NULL};
    if (n > begin->n - 8 || !safetensors_parse(f, &b, &members) || members.len != 1)
        return false;
    set_shape(h, members.data[0].dtype, members.data[0].rank, members.data[0].shape);
    return true;
}

static bool read_csv(const File *f, const Bytes *b, FileHeader *h) {
    int64_t shape[2];
    bool heading;
    if (memchr(b->p, 0, b->n) || !csv_count(f, b, &shape[0], &shape[1], &heading))
        return false;
    set_shape(h, DT_F32, 2, shape);
    h->is_text = true;
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads up to `most` bytes of a regular file; *whole: how many it has. */
static bool read_begin(const char *path, size_t most, Bytes *out, size_t *whole) {
    struct stat st;
    int fd = stat(path, &st) == 0 && S_ISREG(st.st_mode)
                 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                 : -1;
    if (fd < 0)
        return false;
    *whole = (size_t)st.st_size;
    size_t room = *whole < most ? *whole : most, at = 0;
    unsigned char *p = mem_bytes(room + 1);
    for (ssize_t n; at < room && (n = read(fd, p + at, room - at)) > 0;)
        at += (size_t)n;
    close(fd);
    *out = (Bytes){p, at, NULL};
    return true;
}

bool file_read_header(const char *path, const char *folder, FileHeader *out) {
    File f = {NULL, path, NULL};
    NpyHeader h;
    Bytes b;
    size_t whole;
    if (path[0] != '/' && access(path, F_OK) != 0)
        path = fmt_text("%s%s", folder, path);
    *out = (FileHeader){.rank = -1, .missing = access(path, F_OK) != 0};
    if (!read_begin(path, MOST_HEADER, &b, &whole) || b.n < 4)
        return false;
    if (is_npy(&b) || is_idx(&b)) {
        if (!(is_npy(&b) ? npy_parse_header(&f, &b, &h) : idx_parse_header(&f, &b, &h)))
            return false;
        set_shape(out, h.dtype, h.rank, h.shape);
        return true;
    }
    if (is_png(&b))
        return read_png(&b, out);
    Bytes all = {b.p, whole, NULL};
    if (b.n > 8 && is_safetensors(&all))
        return read_safetensors(&f, &b, whole, out);
    bool packed = is_zip(&b) || b.p[0] == 0x1f || b.p[0] == 0x93;
    return !packed && whole <= MOST_CSV && read_begin(path, MOST_CSV, &b, &whole) &&
           read_csv(&f, &b, out);
}
