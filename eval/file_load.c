/* SPDX-License-Identifier: Apache-2.0 */
/* load and data.….
 *
 * What is loaded is built by the type that is asked for. A tensor is one NPY, IDX, CSV or PNG file, or
 * the one member of an archive. Tuples, data of one constructor and lists are archives (NPZ,
 * safetensors or TVM's parameters) whose members are named by the path to each tensor: `layers.0.w` is
 * field w of element 0 of field layers. All that does not fit is listed in one diagnostic. */
#include <string.h>

#include "eval/file.h"
#include "eval/machine.h"

/* ---- does it fit? ---------------------------------------------------------------------------- */

typedef VEC(const char *) TextVec;

/* Whether sizes of the type were read from the file's header while the program was checked. */
static bool is_of_header(Type *type) {
    uint32_t rank;
    Type **dims;
    if (!type_get_rank(type, &rank, &dims))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        const Origin *o = type_resolve(dims[i])->origin;
        if (o && o->kind == ORIGIN_FILE)
            return true;
    }
    return false;
}

/* What keeps a tensor from being of the type; NULL where nothing that is known does. */
static const char *misfit(const Tensor *t, Type *type) {
    DType d;
    uint32_t rank;
    Type **dims;
    int64_t n;
    if (!type)
        return NULL;
    const char *since = is_of_header(type) ? ", as it had when the program was checked" : "";
    if (type_get_dtype(type, &d) && d != t->dtype)
        return fmt_text("it is of %s, wanted is %s%s", dtype_info[t->dtype].name,
                        dtype_info[d].name, since);
    if (!type_get_rank(type, &rank, &dims))
        return NULL;
    if ((int)rank != t->rank)
        return fmt_text("it has %d ax%s, wanted %s %u%s", t->rank, t->rank == 1 ? "is" : "es",
                        rank == 1 ? "is" : "are", rank, since);
    for (uint32_t i = 0; i < rank; i++)
        if (type_get_int(dims[i], &n) && n != t->shape[i])
            return fmt_text("axis %u is %lld, wanted is %lld%s", i, (long long)t->shape[i],
                            (long long)n, since);
    return NULL;
}

/* The tensor type that was asked for; NULL where any tensor will do. */
static Type *tensor_type(Type *t) {
    t = t ? type_resolve(t) : NULL;
    return t && t->tag == TY_TENSOR ? t : NULL;
}

/* ---- archives -------------------------------------------------------------------------------- */

bool is_archive(const Bytes *b) {
    return is_zip(b) || is_safetensors(b) || is_params(b) || is_onnx(b);
}

bool archive_parse(const File *f, const Bytes *b, MemberVec *out) {
    return is_zip(b)           ? zip_parse(f, b, out)
           : is_safetensors(b) ? safetensors_parse(f, b, out)
           : is_params(b)      ? params_parse(f, b, out)
                               : onnx_parse(f, b, out);
}

Tensor *archive_tensor(const File *f, const Member *m) {
    if (m->kind != MEMBER_RAW)
        return zip_tensor(f, m);
    File member = {f->call, f->path, m->name};
    return file_elements(&member, m->dtype, m->rank, m->shape, false, false, m->p, m->stored);
}

/* ---- one tensor ------------------------------------------------------------------------------ */

static Tensor *one_member(const File *f, const Bytes *b) {
    MemberVec entries = {0};
    if (!archive_parse(f, b, &entries))
        return NULL;
    if (entries.len != 1) {
        file_fail(f, DIAG_R0504, "it is an archive of %zu tensors, wanted is one", entries.len);
        return NULL;
    }
    return archive_tensor(f, &entries.data[0]);
}

static Tensor *parse_tensor(const File *f, const Bytes *b, Type *type) {
    DType d = DT_F32;
    uint32_t rank = 2;
    Type **dims;
    if (is_npy(b))
        return npy_parse(f, b);
    if (is_archive(b))
        return one_member(f, b);
    if (is_idx(b))
        return idx_parse(f, b);
    if (is_png(b))
        return png_parse(f, b);
    if (b->n == 0 || memchr(b->p, 0, b->n) || b->p[0] == 0x93 || b->p[0] == 0x1f) {
        file_fail(f, DIAG_R0502,
                  b->n ? "this is no NPY, NPZ, safetensors, .params, PNG, IDX or CSV file"
                       : "it is empty");
        return NULL;
    }
    if (type) {
        (void)type_get_dtype(type, &d);
        if (type_get_rank(type, &rank, &dims) && rank != 1 && rank != 2) {
            file_fail(f, DIAG_R0504, "CSV holds a matrix or a vector, wanted are %u axes", rank);
            return NULL;
        }
    }
    return csv_parse(f, b, d, (int)rank);
}

static bool load_tensor(const File *f, const Bytes *b, Type *type, Value *out) {
    Tensor *t = parse_tensor(f, b, type);
    if (!t)
        return false;
    const char *why = misfit(t, type);
    if (why)
        return file_fail(f, DIAG_R0504, "%s", why);
    *out = value_tensor(t);
    return true;
}

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct Loader {
    const File *f;
    Map members; /* Symbol -> Member */
    Map used;
    TextVec wrong;
    bool failed; /* reported already */
} Loader;

const char *file_join_path(const char *path, const char *name) {
    return *path ? fmt_text("%s.%s", path, name) : name;
}

const char *file_part_name(const Ctor *c, uint32_t i) {
    return c->field_names ? c->field_names[i]->text : fmt_text("%u", i);
}

static Value load_part(Loader *l, Type *type, const char *path);

static Value load_leaf(Loader *l, Type *type, const char *path) {
    const Symbol *name = sym_intern(path);
    Member *e = map_find(&l->members, name);
    if (!e) {
        vec_push(&l->wrong, fmt_text("`%s` is missing", path));
        return value_unit();
    }
    map_set(&l->used, name, e);
    Tensor *t = archive_tensor(l->f, e);
    if (!t) {
        l->failed = true;
        return value_unit();
    }
    const char *why = misfit(t, type);
    if (why)
        vec_push(&l->wrong, fmt_text("`%s`: %s", path, why));
    return value_tensor(t);
}

static bool has_prefix(const Loader *l, const char *path) {
    size_t n = strlen(path), i = 0;
    const void *key;
    void *value;
    while (map_next(&l->members, &i, &key, &value)) {
        const Symbol *s = key;
        if (strncmp(s->text, path, n) == 0 && (s->text[n] == '\0' || s->text[n] == '.'))
            return true;
    }
    return false;
}

static bool is_list_decl(const Loader *l, const TypeDecl *d) {
    return d == env_prelude_type(l->f->call->in->env, "List");
}

static Value load_data(Loader *l, Type *type, const char *path) {
    TypeDecl *d = type->decl;
    if (is_list_decl(l, d)) {
        VEC(Value) items = {0};
        for (int i = 0; !l->failed; i++) {
            const char *at = file_join_path(path, fmt_text("%d", i));
            if (!has_prefix(l, at))
                break;
            vec_push(&items, load_part(l, type->args[0], at));
        }
        return builtin_list(l->f->call, items.data, items.len);
    }
    if (d->nctors != 1) {
        vec_push(&l->wrong,
                 fmt_text("`%s` is a `%s`, which has several constructors: archives hold "
                          "data of one",
                          path, d->name->text));
        return value_unit();
    }
    Ctor *c = d->ctors[0];
    Value *fields = mem_new_n(Value, c->nfields + 1);
    for (uint32_t i = 0; i < c->nfields && !l->failed; i++) {
        Type *t = type_substitute(c->fields[i], d->params, type->args, d->nparams);
        fields[i] = load_part(l, t, file_join_path(path, file_part_name(c, i)));
    }
    return value_data(ctor_of_values(c), fields);
}

static Value load_part(Loader *l, Type *type, const char *path) {
    type = type_resolve(type);
    switch (type->tag) {
    case TY_TENSOR: return load_leaf(l, type, path);
    case TY_TUPLE: {
        Value *items = mem_new_n(Value, type->nargs + 1);
        for (uint32_t i = 0; i < type->nargs && !l->failed; i++)
            items[i] = load_part(l, type->args[i], file_join_path(path, fmt_text("%u", i)));
        return value_tuple(items, type->nargs);
    }
    case TY_DATA:
        if (mem_stack_left() > 64 << 10)
            return load_data(l, type, path);
        vec_push(&l->wrong, "its type is nested without end");
        l->failed = true;
        return value_unit();
    case TY_VAR: /* types/infer/read.c refuses these */
    case TY_PARAM:
    case TY_FN:
    case TY_REF:
    case TY_STRING:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    vec_push(&l->wrong,
             fmt_text("`%s` is of type %s, which no archive holds", path, type_text(type)));
    return value_unit();
}

static bool load_archive(const File *f, const Bytes *b, Type *type, Value *out) {
    MemberVec entries = {0};
    Loader l = {.f = f};
    if (!is_archive(b))
        return file_fail(f, DIAG_R0504,
                         "data of type %s is loaded from an NPZ, safetensors or .params archive",
                         type_text(type));
    if (!archive_parse(f, b, &entries))
        return false;
    for (size_t i = 0; i < entries.len; i++)
        map_set(&l.members, sym_intern(entries.data[i].name), &entries.data[i]);
    *out = load_part(&l, type, "");
    if (l.failed)
        return false;
    for (size_t i = 0; i < entries.len; i++)
        if (!map_has(&l.used, sym_intern(entries.data[i].name)))
            vec_push(&l.wrong,
                     fmt_text("`%s` is in the file, but not in the type", entries.data[i].name));
    if (l.wrong.len == 0)
        return true;
    Diag *d = builtin_fail(f->call, DIAG_R0504, "`%s` does not hold a value of type %s", f->path,
                           type_text(type));
    enum { SHOWN = 20 };
    for (size_t i = 0; i < l.wrong.len && i < SHOWN; i++)
        diag_add_fact(d, "%s", l.wrong.data[i]);
    if (l.wrong.len > SHOWN)
        diag_add_fact(d, "and %zu more", l.wrong.len - SHOWN);
    return false;
}

/* load(path) */
bool builtin_load(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[0].p)->text, NULL};
    Type *type = call->type ? type_resolve(call->type) : NULL;
    Bytes b;
    if (!file_read(&f, &b))
        return false;
    bool structured = type && type->tag != TY_TENSOR;
    bool ok = structured ? load_archive(&f, &b, type, out)
                         : load_tensor(&f, &b, tensor_type(type), out);
    bytes_release(&b);
    return ok;
}

/* data.csv(path) */
bool builtin_data_csv(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[0].p)->text, NULL};
    Type *type = tensor_type(call->type);
    DType d = DT_F32;
    uint32_t rank = 2;
    Type **dims;
    Bytes b;
    if (!file_read(&f, &b))
        return false;
    if (type) {
        (void)type_get_dtype(type, &d);
        (void)type_get_rank(type, &rank, &dims);
    }
    Tensor *t = csv_parse(&f, &b, d, (int)rank);
    bytes_release(&b);
    if (t)
        *out = value_tensor(t);
    return t != NULL;
}

/* data.bytes(path): as they are (inflated where gzip'd), for formats a program reads itself. */
bool builtin_data_bytes(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[0].p)->text, NULL};
    Bytes b;
    if (!file_read(&f, &b))
        return false;
    int64_t shape[1] = {(int64_t)b.n};
    *out = value_tensor(tensor_from(DT_U8, 1, shape, b.p));
    bytes_release(&b);
    return true;
}

/* data.members(path): the names of the tensors of an archive. */
bool builtin_data_members(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[0].p)->text, NULL};
    MemberVec entries = {0};
    Bytes b;
    if (!file_read(&f, &b))
        return false;
    bool ok = is_archive(&b)
                  ? archive_parse(&f, &b, &entries)
                  : file_fail(&f, DIAG_R0504, "this is no NPZ, safetensors or .params archive");
    VEC(Value) names = {0};
    for (size_t i = 0; ok && i < entries.len; i++)
        vec_push(&names, value_string(entries.data[i].name, strlen(entries.data[i].name)));
    bytes_release(&b);
    if (ok)
        *out = builtin_list(call, names.data, names.len);
    return ok;
}

/* data.member(path, name) */
bool builtin_data_member(const BuiltinCall *call, Value *out) {
    File f = {call, ((const String *)call->args[0].p)->text, NULL};
    const String *name = call->args[1].p;
    MemberVec entries = {0};
    Bytes b;
    if (!file_read(&f, &b))
        return false;
    Tensor *t = NULL;
    bool tensor = !call->type || type_resolve(call->type)->tag == TY_TENSOR;
    bool ok = !tensor ? file_fail(&f, DIAG_R0504, "a member is a tensor, wanted is %s",
                                  type_text(call->type))
              : is_archive(&b)
                  ? archive_parse(&f, &b, &entries)
                  : file_fail(&f, DIAG_R0504, "this is no NPZ, safetensors or .params archive");
    const Member *found = NULL;
    for (size_t i = 0; ok && i < entries.len; i++)
        if (strcmp(entries.data[i].name, name->text) == 0)
            found = &entries.data[i];
    if (ok && !found)
        file_fail(&f, DIAG_R0504, "it has no member `%s`", name->text);
    else if (ok)
        t = archive_tensor(&f, found);
    bytes_release(&b);
    const char *why = t ? misfit(t, tensor_type(call->type)) : NULL;
    f.member = name->text;
    if (why)
        return file_fail(&f, DIAG_R0504, "%s", why);
    if (t)
        *out = value_tensor(t);
    return t != NULL;
}
