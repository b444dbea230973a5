/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that an ONNX model stores, as an archive: members have the names that the translation of the model
 * asks for, `weights.fc_weight`. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eval/file.h"
#include "interchange/translate.h"

bool is_onnx(const Bytes *b) { return onnx_is_model(b->p, b->n); }

/* Data outside of the file lies in its folder or below: a model is a stranger's and names no other file of
 * ours. Symbolic links are not followed either. */
static bool is_below(const char *location) {
    for (const char *p = location; *p; p += strcspn(p, "/"), p += *p == '/')
        if (strcspn(p, "/") == 2 && p[0] == '.' && p[1] == '.')
            return false;
    return *location && *location != '/';
}

static bool read_external(const File *f, const OnnxTensor *t, size_t bytes, Member *m) {
    File member = {f->call, f->path, m->name};
    if (!is_below(t->location))
        return file_fail(&member, DIAG_R0502,
                         "its data is in `%s`, which is outside of the model's folder",
                         t->location);
    const char *model = file_find_path(f), *slash = strrchr(model, '/');
    const char *path = fmt_text("%.*s%s", slash ? (int)(slash - model) + 1 : 0, model, t->location);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return file_fail(&member, DIAG_R0501, "its data is in `%s`: %s", t->location,
                         strerror(why));
    }
    bool fits = S_ISREG(st.st_mode) && t->offset <= st.st_size &&
                (int64_t)bytes <= st.st_size - t->offset &&
                (t->length < 0 || t->length == (int64_t)bytes);
    unsigned char *p = fits ? mem_bytes(bytes + 1) : NULL;
    size_t at = 0;
    for (ssize_t n; fits && at < bytes &&
                    (n = pread(fd, p + at, bytes - at, (off_t)(t->offset + (int64_t)at))) > 0;)
        at += (size_t)n;
    close(fd);
    if (!fits || at < bytes)
        return file_fail(&member, DIAG_R0502, "`%s` does not hold the %zu bytes of its data",
                         t->location, bytes);
    m->p = p;
    return true;
}

bool onnx_parse(const File *f, const Bytes *b, MemberVec *out) {
    Diags *diags = mem_new(Diags);
    OnnxMembers members = {0};
    OnnxModel *model = onnx_read(f->path, b->p, b->n, span_none(), diags);
    if (!model)
        return file_fail(f, DIAG_R0502, "%s", diags->list.data[0]->message);
    onnx_find_members(model, &members);
    for (size_t i = 0; i < members.len; i++) {
        const OnnxTensor *t = members.data[i].tensor;
        Member m = {.name = members.data[i].path,
                    .kind = MEMBER_RAW,
                    .rank = t->rank,
                    .p = t->data,
                    .stored = t->bytes};
        File member = {f->call, f->path, m.name};
        if (!onnx_find_dtype(t->type, &m.dtype))
            return file_fail(&member, DIAG_R0504, "Relay has no dtype %s",
                             onnx_dtype_name(t->type));
        for (int k = 0; k < t->rank; k++)
            m.shape[k] = t->dims[k];
        m.stored = (size_t)t->count * dtype_size(m.dtype);
        if (t->location && !read_external(f, t, m.stored, &m))
            return false;
        m.size = m.stored;
        vec_push(out, m);
    }
    return true;
}
