/* SPDX-License-Identifier: Apache-2.0 */
/* save: a tensor, or data made of tensors as an archive, in which each is named by the path to it. */
#include <string.h>

#include "eval/file.h"
#include "eval/machine.h"

typedef struct Part {
    const char *path;
    Value v;
} Part;

static bool cannot_hold(const File *f, const char *path, const char *what) {
    return *path
               ? file_fail(f, DIAG_R0505, "`%s` is %s, which an archive does not hold", path, what)
               : file_fail(f, DIAG_R0505, "%s cannot be saved", what);
}

/* The tensors of a value, named by their paths. Iterative over lists and depth. */
static bool collect_leaves(const File *f, Value whole, LeafVec *out) {
    VEC(Part) pending = {0};
    TypeDecl *list = env_prelude_type(f->call->in->env, "List");
    Part first = {"", whole};
    vec_push(&pending, first);
    while (pending.len) {
        if (builtin_interrupted(f->call))
            return false;
        Part p = vec_pop(&pending);
        const Ctor *c = NULL;
        switch ((ValueTag)p.v.tag) {
        case VAL_SCALAR:
        case VAL_TENSOR: {
            Leaf leaf = {*p.path ? p.path : "value", value_to_tensor(p.v)};
            vec_push(out, leaf);
            continue;
        }
        case VAL_TUPLE: break;
        case VAL_CTOR: {
            c = data_ctor(p.v);
            if (c->decl == list) {
                Value rest = p.v, item;
                VEC(Part) parts = {0};
                for (int i = 0; !builtin_interrupted(f->call) && builtin_list_next(&rest, &item);
                     i++) {
                    Part part = {file_join_path(p.path, fmt_text("%d", i)), item};
                    vec_push(&parts, part);
                }
                while (parts.len)
                    vec_push(&pending, vec_pop(&parts));
                continue;
            }
            if (c->decl->nctors != 1)
                return cannot_hold(f, p.path,
                                   fmt_text("a `%s`, one of several constructors", c->name->text));
            break;
        }
        case VAL_STRING: return cannot_hold(f, p.path, "a String");
        case VAL_REF: return cannot_hold(f, p.path, "a reference");
        case VAL_DUAL: return cannot_hold(f, p.path, "a value being differentiated");
        case VAL_CLOSURE:
        case VAL_BUILTIN:
        case VAL_ABSENT: return cannot_hold(f, p.path, "a function");
        }
        for (uint32_t i = value_count(p.v); i-- > 0;) {
            const char *name = c ? file_part_name(c, i) : fmt_text("%u", i);
            Part part = {file_join_path(p.path, name), value_part(p.v, i)};
            vec_push(&pending, part);
        }
    }
    return true;
}

/* ---- formats --------------------------------------------------------------------------------- */

typedef struct Format {
    const char *extension;
    bool (*write)(const File *f, const Tensor *t);           /* of one tensor, or NULL */
    bool (*write_all)(const File *f, const LeafVec *leaves); /* of an archive, or NULL */
} Format;

static const Format formats[] = {
    {".npy", npy_write, NULL},
    {".csv", csv_write, NULL},
    {".png", png_write, NULL},
    {".npz", NULL, zip_write},
    {".safetensors", NULL, safetensors_write},
    {".params", NULL, params_write},
};
enum { NFORMATS = sizeof formats / sizeof *formats };

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const Format *find_format(const char *path) {
    for (int i = 0; i < NFORMATS; i++)
        if (ends_with(path, formats[i].extension))
            return &formats[i];
    return NULL;
}

static bool write_drawing(const File *f, const Str *bytes, const char *why) {
    Output file;
    if (why)
        return file_fail(f, DIAG_R0505, "%s", why);
    output_open(&file, f->path);
    output_add(&file, str_text(bytes), bytes->len);
    return file_close(f, &file);
}

/* save(value, path): in the format that the path's extension says. */
bool builtin_save(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[1].p)->text, NULL};
    Value v = call->args[0];
    const Format *format = find_format(f.path);
    bool is_tensor = v.tag == VAL_SCALAR || v.tag == VAL_TENSOR;
    LeafVec leaves = {0};
    Str drawing = {0};
    const char *why = NULL;
    *out = value_unit();
    if (call->in->draw && call->in->draw(v, f.path, &drawing, &why))
        return write_drawing(&f, &drawing, why);
    if (!format)
        return file_fail(
            &f, DIAG_R0505,
            "its extension says no format: a tensor is saved as .npy, .csv or .png, data "
            "of tensors as .npz, .safetensors or .params");
    if (format->write && is_tensor)
        return format->write(&f, value_to_tensor(v));
    if (!collect_leaves(&f, v, &leaves))
        return false;
    if (format->write)
        return file_fail(&f, DIAG_R0505,
                         "%s holds one tensor; data of tensors is saved as .npz, "
                         ".safetensors or .params",
                         format->extension);
    return format->write_all(&f, &leaves);
}
