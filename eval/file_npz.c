/* SPDX-License-Identifier: Apache-2.0 */
/* NPZ: a ZIP archive of NPY files (PKWARE's APPNOTE 6.3, with ZIP64). Written stored, always with
 * ZIP64 sizes, as NumPy does. */
#include <string.h>
#include <zlib.h>

#include "eval/file.h"

enum {
    END = 0x06054b50,
    END_BYTES = 22,
    END64 = 0x06064b50,
    END64_BYTES = 56,
    LOCATOR64 = 0x07064b50,
    LOCATOR64_BYTES = 20,
    CENTRAL = 0x02014b50,
    CENTRAL_BYTES = 46,
    LOCAL = 0x04034b50,
    LOCAL_BYTES = 30,
    MAX_COMMENT = 65535,
};

static uint16_t get16(const unsigned char *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t get32(const unsigned char *p) { return get16(p) | (uint32_t)get16(p + 2) << 16; }
static uint64_t get64(const unsigned char *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

bool is_zip(const Bytes *b) {
    return b->n >= END_BYTES && (get32(b->p) == LOCAL || get32(b->p) == END);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Where the central directory is, and how many entries it has. */
static bool find_directory(const Bytes *b, uint64_t *at, uint64_t *entries) {
    size_t from = b->n - END_BYTES, least = from > MAX_COMMENT ? from - MAX_COMMENT : 0;
    for (;; from--) {
        if (get32(b->p + from) == END)
            break;
        if (from == least)
            return false;
    }
    *entries = get16(b->p + from + 10);
    *at = get32(b->p + from + 16);
    if (from < LOCATOR64_BYTES || get32(b->p + from - LOCATOR64_BYTES) != LOCATOR64)
        return true;
    uint64_t end64 = get64(b->p + from - LOCATOR64_BYTES + 8);
    if (end64 > b->n || b->n - end64 < END64_BYTES || get32(b->p + end64) != END64)
        return false;
    *entries = get64(b->p + end64 + 32);
    *at = get64(b->p + end64 + 48);
    return true;
}

/* Sizes that did not fit into 32 bits, in the order they stand. */
static bool read_zip64(const unsigned char *extra, size_t n, uint64_t *size, uint64_t *stored,
                       uint64_t *offset) {
    while (n >= 4) {
        size_t len = get16(extra + 2);
        if (len > n - 4)
            return false;
        if (get16(extra) == 1) {
            const unsigned char *p = extra + 4, *end = p + len;
            uint64_t *wanted[3] = {size, stored, offset};
            for (int i = 0; i < 3; i++)
                if (*wanted[i] == 0xFFFFFFFFu) {
                    if (end - p < 8)
                        return false;
                    *wanted[i] = get64(p);
                    p += 8;
                }
            return true;
        }
        extra += 4 + len;
        n -= 4 + len;
    }
    return *size != 0xFFFFFFFFu && *stored != 0xFFFFFFFFu && *offset != 0xFFFFFFFFu;
}

/* One entry of the central directory; its bytes, 0 when it is damaged. */
static size_t read_entry(const Bytes *b, uint64_t at, Member *e) {
    if (at > b->n || b->n - at < CENTRAL_BYTES || get32(b->p + at) != CENTRAL)
        return 0;
    const unsigned char *p = b->p + at;
    size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    size_t total = CENTRAL_BYTES + name + extra + comment;
    uint64_t stored = get32(p + 20), size = get32(p + 24), offset = get32(p + 42);
    uint16_t method = get16(p + 10);
    if (b->n - at < total || (get16(p + 8) & 1) || (method != 0 && method != 8) ||
        !read_zip64(p + CENTRAL_BYTES + name, extra, &size, &stored, &offset))
        return 0;
    if (offset > b->n || b->n - offset < LOCAL_BYTES || get32(b->p + offset) != LOCAL)
        return 0;
    uint64_t data = offset + LOCAL_BYTES + get16(b->p + offset + 26) + get16(b->p + offset + 28);
    if (data > b->n || stored > b->n - data || size > ((uint64_t)1 << 47) ||
        (method == 0 && stored != size))
        return 0;
    if (name > 4 && memcmp(p + CENTRAL_BYTES + name - 4, ".npy", 4) == 0)
        name -= 4;
    e->name = mem_strndup((const char *)p + CENTRAL_BYTES, name);
    e->p = b->p + data;
    e->stored = (size_t)stored;
    e->size = (size_t)size;
    e->crc = get32(p + 16);
    e->kind = method == 8 ? MEMBER_DEFLATED : MEMBER_STORED;
    return total;
}

bool zip_parse(const File *f, const Bytes *b, MemberVec *out) {
    uint64_t at, entries;
    if (!find_directory(b, &at, &entries))
        return file_fail(f, DIAG_R0502, "its archive has no directory: it is damaged or cut off");
    for (uint64_t i = 0; i < entries; i++) {
        Member e = {0};
        size_t n = read_entry(b, at, &e);
        if (!n)
            return file_fail(f, DIAG_R0502,
                             "entry %llu of its archive is damaged or of a kind that "
                             "NPZ does not use",
                             (unsigned long long)i);
        vec_push(out, e);
        at += n;
    }
    return true;
}

Tensor *zip_tensor(const File *f, const Member *e) {
    File member = {f->call, f->path, e->name};
    Bytes b = {e->p, e->size, NULL};
    if (e->kind == MEMBER_DEFLATED &&
        !bytes_inflate(&member, e->p, e->stored, false, (int64_t)e->size, &b))
        return NULL;
    Tensor *t = NULL;
    uLong crc = crc32_z(0, b.p, b.n);
    if (crc != e->crc)
        file_fail(&member, DIAG_R0502, "its checksum is wrong");
    else if (!is_npy(&b))
        file_fail(&member, DIAG_R0502, "this is no NPY file");
    else
        t = npy_parse(&member, &b);
    bytes_release(&b);
    return t;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put16(Str *s, uint32_t v) {
    str_add_char(s, (char)(v & 255));
    str_add_char(s, (char)(v >> 8 & 255));
}
static void put32(Str *s, uint32_t v) {
    put16(s, v & 0xFFFF);
    put16(s, v >> 16);
}
static void put64(Str *s, uint64_t v) {
    put32(s, (uint32_t)v);
    put32(s, (uint32_t)(v >> 32));
}

/* What local and central headers share: version needed … length of the extra field. */
static void put_common(Str *s, uint32_t crc, size_t name, uint32_t extra) {
    put16(s, 45);
    put16(s, 0x0800); /* names are UTF-8 */
    put16(s, 0);      /* stored */
    put16(s, 0);
    put16(s, 0x0021); /* 1 January 1980 */
    put32(s, crc);
    put32(s, 0xFFFFFFFFu);
    put32(s, 0xFFFFFFFFu);
    put16(s, (uint32_t)name);
    put16(s, extra);
}

static void write_leaf(Output *file, const Leaf *leaf, const Str *header, uint64_t *offset,
                       Str *directory) {
    const Tensor *t = tensor_canonical(leaf->tensor);
    size_t bytes = (size_t)t->count * dtype_size(t->dtype);
    uLong crc = crc32_z(0, (const unsigned char *)header->text, header->len);
    if (bytes)
        crc = crc32_z(crc, tensor_data(t), bytes);
    uint64_t size = header->len + bytes;
    const char *name = fmt_text("%s.npy", leaf->name);
    size_t len = strlen(name);
    Str local = {0};
    put32(&local, LOCAL);
    put_common(&local, (uint32_t)crc, len, 20);
    str_add_n(&local, name, len);
    put16(&local, 1);
    put16(&local, 16);
    put64(&local, size);
    put64(&local, size);
    put32(directory, CENTRAL);
    put16(directory, 45);
    put_common(directory, (uint32_t)crc, len, 28);
    put16(directory, 0);
    put16(directory, 0);
    put16(directory, 0);
    put32(directory, 0);
    put32(directory, 0xFFFFFFFFu);
    str_add_n(directory, name, len);
    put16(directory, 1);
    put16(directory, 24);
    put64(directory, size);
    put64(directory, size);
    put64(directory, *offset);
    *offset += local.len + size;
    output_add(file, local.text, local.len);
    output_add(file, header->text, header->len);
    output_add(file, tensor_data(t), bytes);
}

static void put_end(Str *s, uint64_t entries, uint64_t at, uint64_t bytes) {
    uint64_t end64 = at + bytes;
    put32(s, END64);
    put64(s, END64_BYTES - 12);
    put16(s, 45);
    put16(s, 45);
    put32(s, 0);
    put32(s, 0);
    put64(s, entries);
    put64(s, entries);
    put64(s, bytes);
    put64(s, at);
    put32(s, LOCATOR64);
    put32(s, 0);
    put64(s, end64);
    put32(s, 1);
    put32(s, END);
    put16(s, 0);
    put16(s, 0);
    put16(s, 0xFFFF);
    put16(s, 0xFFFF);
    put32(s, 0xFFFFFFFFu);
    put32(s, 0xFFFFFFFFu);
    put16(s, 0);
}

bool zip_write(const File *f, const LeafVec *leaves) {
    VEC(Str) headers = {0};
    for (size_t i = 0; i < leaves->len; i++) {
        Str header = {0};
        if (builtin_interrupted(f->call))
            return false;
        if (strlen(leaves->data[i].name) > 60000)
            return file_fail(f, DIAG_R0505, "a path through the data is too long for an archive");
        if (!npy_header(f, leaves->data[i].tensor, &header))
            return false;
        vec_push(&headers, header);
    }
    Str directory = {0}, tail = {0};
    uint64_t offset = 0;
    Output file;
    output_open(&file, f->path);
    for (size_t i = 0; i < leaves->len; i++) {
        if (file_is_interrupted(f, &file))
            return false;
        write_leaf(&file, &leaves->data[i], &headers.data[i], &offset, &directory);
    }
    put_end(&tail, leaves->len, offset, directory.len);
    output_add(&file, directory.text, directory.len);
    output_add(&file, tail.text, tail.len);
    return file_close(f, &file);
}
