/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (RFC 8259), by jansson. Text is read as the type that its use asks for, and any data is written:
 *
 *     tensors                numbers, or arrays of them nested as the axes are; bools
 *     String                 a text
 *     tuples, lists          arrays
 *     one constructor        an object of its fields, by name, else number; what else the object has is not read
 *     several constructors   the name, with fields {"Name": {…}}
 *     Option                 null, or the value
 *     json.Json              the JSON itself, as data
 *
 * What was read is held by jansson only until it has become a value. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "eval/file.h"
#include "eval/machine.h"

enum { STACK_LEFT = 64 << 10 };

/* The constructors of stdlib/json.rly's Json, in their order. */
typedef enum JsonTag {
    JSON_IS_NULL,
    JSON_IS_BOOL,
    JSON_IS_INT,
    JSON_IS_FLOAT,
    JSON_IS_TEXT,
    JSON_IS_ARRAY,
    JSON_IS_OBJECT
} JsonTag;

static bool is_json_decl(const TypeDecl *d) {
    return strcmp(d->name->text, "Json") == 0 && d->span.source &&
           (d->span.source->flags & SOURCE_INTERNAL);
}

static bool is_prelude_decl(const BuiltinCall *call, const TypeDecl *d, const char *name) {
    return d == env_prelude_type(call->in->env, name);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A place in the JSON, from the root: `x[2].name`. */
typedef struct Place {
    const struct Place *up;
    const char *field; /* NULL: element number `index` */
    size_t index;
} Place;

static void place_print(Str *out, const Place *at) {
    if (!at->up) {
        str_add(out, "it");
        return;
    }
    place_print(out, at->up);
    if (at->field)
        str_printf(out, ".%s", at->field);
    else
        str_printf(out, "[%zu]", at->index);
}

typedef struct Reader {
    const BuiltinCall *call;
    bool failed;
} Reader;

static const char *json_words(const json_t *j) {
    switch (json_typeof(j)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return fmt_text("an array of %zu", json_array_size(j));
    case JSON_STRING: return "a text";
    case JSON_INTEGER: return fmt_text("the number %" JSON_INTEGER_FORMAT, json_integer_value(j));
    case JSON_REAL: return fmt_text("the number %g", json_real_value(j));
    case JSON_TRUE:
    case JSON_FALSE: return "a bool";
    case JSON_NULL: return "null";
    }
    return "";
}

/* Reports once what stands at a place in place of what is wanted. */
static Value refuse(Reader *r, const Place *at, const json_t *j, const char *wanted) {
    Str place = {0};
    if (r->failed)
        return value_unit();
    place_print(&place, at);
    builtin_fail(r->call, DIAG_R0504, "in this JSON `%s` is %s, wanted is %s", str_text(&place),
                 j ? json_words(j) : "not there", wanted);
    r->failed = true;
    return value_unit();
}

static Value read_value(Reader *r, Type *type, const json_t *j, const Place *at);

static bool fits_int(int64_t v, DType t) {
    unsigned char kept[8];
    elem_set_int(kept, t, v);
    return elem_get_int(kept, t) == v && !(t == DT_U64 && v < 0);
}

/* One number or bool, as an element of dtype t. */
static bool read_element(Reader *r, const json_t *j, DType t, void *to, const Place *at) {
    if (t == DT_BOOL && json_is_boolean(j))
        elem_set_int(to, t, json_is_true(j));
    else if (dtype_is_float(t) && json_is_number(j))
        elem_set_float(to, t, json_number_value(j));
    else if (t != DT_BOOL && !dtype_is_float(t) && json_is_integer(j) &&
             fits_int(json_integer_value(j), t))
        elem_set_int(to, t, json_integer_value(j));
    else
        return refuse(r, at, j, dtype_info[t].name), false;
    return true;
}

static bool fill_tensor(Reader *r, Tensor *t, int axis, const json_t *j, char **to,
                        const Place *at) {
    if (builtin_interrupted(r->call))
        return false;
    if (axis == t->rank) {
        bool good = read_element(r, j, t->dtype, *to, at);
        *to += dtype_size(t->dtype);
        return good;
    }
    size_t n = (size_t)t->shape[axis];
    if (!json_is_array(j) || json_array_size(j) != n)
        return refuse(r, at, j, fmt_text("an array of %zu", n)), false;
    for (size_t i = 0; i < n; i++)
        if (!fill_tensor(r, t, axis + 1, json_array_get(j, i), to, &(Place){at, NULL, i}))
            return false;
    return true;
}

static Value read_tensor(Reader *r, Type *type, const json_t *j, const Place *at) {
    DType dtype;
    uint32_t rank = 0;
    Type **dims = NULL;
    int64_t shape[TENSOR_MAX_RANK];
    int axes = 0;
    bool ranked = type_get_rank(type, &rank, &dims);
    if (!type_get_dtype(type, &dtype))
        BUG("json.read at the open type %s", type_text(type));
    for (const json_t *e = j;
         axes < TENSOR_MAX_RANK && (ranked ? axes < (int)rank : json_is_array(e));
         e = json_array_get(e, 0)) {
        int64_t wanted;
        if (ranked && type_get_int(dims[axes], &wanted))
            shape[axes++] = wanted;
        else if (json_is_array(e) || !e)
            shape[axes++] = (int64_t)json_array_size(e);
        else
            return refuse(r, at, e, fmt_text("%s with %u axes", type_text(type), rank));
    }
    Tensor *t = tensor_new(dtype, axes, shape);
    char *to = tensor_data(t);
    return fill_tensor(r, t, 0, j, &to, at) ? value_tensor(t) : value_unit();
}

static Value read_list(Reader *r, Type *element, const json_t *j, const Place *at) {
    VEC(Value) items = {0};
    if (!json_is_array(j))
        return refuse(r, at, j, "an array");
    for (size_t i = 0; i < json_array_size(j) && !r->failed && !builtin_interrupted(r->call); i++)
        vec_push(&items, read_value(r, element, json_array_get(j, i), &(Place){at, NULL, i}));
    return builtin_list(r->call, items.data, items.len);
}

/* An object as a list of pairs, in the order of its text. */
static Value read_pairs(Reader *r, Type *json, const json_t *j, const Place *at) {
    VEC(Value) pairs = {0};
    for (void *i = json_object_iter((json_t *)j); i && !r->failed;
         i = json_object_iter_next((json_t *)j, i)) {
        const char *key = json_object_iter_key(i);
        Value pair[] = {value_string(key, json_object_iter_key_len(i)),
                        read_value(r, json, json_object_iter_value(i), &(Place){at, key, 0})};
        vec_push(&pairs, value_tuple(pair, 2));
    }
    return builtin_list(r->call, pairs.data, pairs.len);
}

static Value read_json(Reader *r, Type *json, const json_t *j, const Place *at) {
    Ctor **ctors = json->decl->ctors;
    Value field;
    switch (json_typeof(j)) {
    case JSON_NULL: return value_data(ctors[JSON_IS_NULL], NULL);
    case JSON_TRUE:
    case JSON_FALSE:
        field = value_bool(json_is_true(j));
        return value_data(ctors[JSON_IS_BOOL], &field);
    case JSON_INTEGER:
        field = value_int(DT_I64, json_integer_value(j));
        return value_data(ctors[JSON_IS_INT], &field);
    case JSON_REAL:
        field = value_float(DT_F64, json_real_value(j));
        return value_data(ctors[JSON_IS_FLOAT], &field);
    case JSON_STRING:
        field = value_string(json_string_value(j), json_string_length(j));
        return value_data(ctors[JSON_IS_TEXT], &field);
    case JSON_ARRAY:
        field = read_list(r, json, j, at);
        return value_data(ctors[JSON_IS_ARRAY], &field);
    case JSON_OBJECT:
        field = read_pairs(r, json, j, at);
        return value_data(ctors[JSON_IS_OBJECT], &field);
    }
    return value_unit();
}

/* The fields of a constructor from an object. */
static Value read_fields(Reader *r, Type *type, Ctor *c, const json_t *j, const Place *at) {
    Value *fields = mem_new_n(Value, c->nfields + 1);
    if (c->nfields && !json_is_object(j))
        return refuse(r, at, j, fmt_text("an object, for `%s`", c->name->text));
    for (uint32_t i = 0; i < c->nfields && !r->failed; i++) {
        const char *name = file_part_name(c, i);
        Type *t = type_substitute(c->fields[i], type->decl->params, type->args,
                                  type->decl->nparams);
        fields[i] = read_value(r, t, json_object_get(j, name), &(Place){at, name, 0});
    }
    return value_data(ctor_of_values(c), fields);
}

static Value read_data(Reader *r, Type *type, const json_t *j, const Place *at) {
    TypeDecl *d = type->decl;
    if (is_json_decl(d))
        return read_json(r, type, j, at);
    if (is_prelude_decl(r->call, d, "List"))
        return read_list(r, type->args[0], j, at);
    if (is_prelude_decl(r->call, d, "Option"))
        return json_is_null(j) ? builtin_none(r->call)
                               : builtin_some(r->call, read_value(r, type->args[0], j, at));
    if (d->nctors == 1)
        return read_fields(r, type, d->ctors[0], j, at);
    for (uint32_t i = 0; i < d->nctors; i++) {
        Ctor *c = d->ctors[i];
        const json_t *inside = json_object_get(j, c->name->text);
        const char *text = json_string_value(j);
        if (inside && c->nfields)
            return read_fields(r, type, c, inside, &(Place){at, c->name->text, 0});
        if (text && !c->nfields && strcmp(text, c->name->text) == 0)
            return value_data(ctor_of_values(c), NULL);
    }
    return refuse(r, at, j, fmt_text("a `%s`, by the name of a constructor", d->name->text));
}

static Value read_value(Reader *r, Type *type, const json_t *j, const Place *at) {
    type = type_resolve(type);
    bool optional = type->tag == TY_DATA && is_prelude_decl(r->call, type->decl, "Option");
    if (!j && optional)
        return builtin_none(r->call);
    if (!j || mem_stack_left() < STACK_LEFT)
        return refuse(r, at, j, type_text(type));
    switch (type->tag) {
    case TY_TENSOR: return read_tensor(r, type, j, at);
    case TY_STRING:
        return json_is_string(j) ? value_string(json_string_value(j), json_string_length(j))
                                 : refuse(r, at, j, "a text");
    case TY_DATA: return read_data(r, type, j, at);
    case TY_TUPLE: {
        Value *items = mem_new_n(Value, type->nargs + 1);
        if (!json_is_array(j) || json_array_size(j) != type->nargs)
            return refuse(r, at, j, fmt_text("an array of %u", type->nargs));
        for (uint32_t i = 0; i < type->nargs && !r->failed; i++)
            items[i] = read_value(r, type->args[i], json_array_get(j, i), &(Place){at, NULL, i});
        return value_tuple(items, type->nargs);
    }
    case TY_VAR: /* types/infer/read.c refuses these */
    case TY_PARAM:
    case TY_FN:
    case TY_REF:
    case TY_DERIV:
    case TY_ERROR:
    case TY_SHAPE:
    case TY_DTYPE:
    case TY_DIM:
    case TY_ANY:
    case TY_PURE:
    case TY_ALLOCATES: break;
    }
    return refuse(r, at, j, fmt_text("%s, which no JSON is", type_text(type)));
}

/* The text while it is read. It is released at its end, or by the collector where memory runs out before. */
typedef struct Root {
    json_t *json;
} Root;

static void release_root(void *p, void *arg) {
    Root *root = p;
    (void)arg;
    json_decref(root->json);
    root->json = NULL;
}

/* json.read(text), json.parse(text) */
bool builtin_json_read(const BuiltinCall *call, Value *out) {
    const String *text = call->args[0].p;
    json_error_t error;
    Reader r = {.call = call};
    Root *root = mem_new(Root);
    mem_on_unreachable(root, release_root, NULL);
    root->json = json_loadb(text->text, text->len,
                            JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!root->json && json_error_code(&error) == json_error_out_of_memory)
        mem_out_of_memory(text->len);
    if (!root->json) {
        builtin_fail(call, DIAG_R0502, "this is no JSON: line %d, column %d: %s", error.line,
                     error.column, mem_strdup(error.text));
        return false;
    }
    *out = read_value(&r, call->type, root->json, &(Place){0});
    release_root(root, NULL);
    return !r.failed && !builtin_interrupted(call);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct Writer {
    const BuiltinCall *call;
    Str out;
    bool failed;
} Writer;

static void cannot_write(Writer *w, const char *what) {
    if (!w->failed)
        builtin_fail(w->call, DIAG_R0505, "JSON has no form for %s", what);
    w->failed = true;
}

static void write_value(Writer *w, Value v);

static void write_text(Writer *w, const char *text, size_t n) {
    str_add_char(&w->out, '"');
    for (const char *end = text + n; text <= end; text += strlen(text) + 1) {
        Str part = {0};
        diag_add_json_text(&part, text);
        str_add_n(&w->out, part.text + 1, part.len - 2);
        str_add(&w->out, text + strlen(text) < end ? "\\u0000" : "");
    }
    str_add_char(&w->out, '"');
}

static void write_element(Writer *w, const void *p, DType t) {
    double v = dtype_is_float(t) ? elem_get_float(p, t) : 0;
    if (t == DT_BOOL)
        str_add(&w->out, elem_get_int(p, t) ? "true" : "false");
    else if (t == DT_U64)
        str_printf(&w->out, "%" PRIu64, (uint64_t)elem_get_int(p, t));
    else if (!dtype_is_float(t))
        str_printf(&w->out, "%" PRId64, elem_get_int(p, t));
    else if (v - v != 0)
        cannot_write(w, v != v ? "nan" : v > 0 ? "inf" : "-inf");
    else
        str_add_float(&w->out, v, t == DT_BF16 ? 17 : (int)dtype_info[t].bits);
}

static void write_tensor(Writer *w, const Tensor *t, int axis, const char **p) {
    if (axis == t->rank) {
        write_element(w, *p, t->dtype);
        *p += dtype_size(t->dtype);
        return;
    }
    str_add_char(&w->out, '[');
    for (int64_t i = 0; i < t->shape[axis] && !w->failed && !builtin_interrupted(w->call); i++) {
        str_add(&w->out, i ? ", " : "");
        write_tensor(w, t, axis + 1, p);
    }
    str_add_char(&w->out, ']');
}

static void write_list(Writer *w, Value list) {
    Value item;
    str_add_char(&w->out, '[');
    for (bool first = true;
         !w->failed && !builtin_interrupted(w->call) && builtin_list_next(&list, &item);
         first = false) {
        str_add(&w->out, first ? "" : ", ");
        write_value(w, item);
    }
    str_add_char(&w->out, ']');
}

static void write_name(Writer *w, const char *name, bool first) {
    str_add(&w->out, first ? "" : ", ");
    write_text(w, name, strlen(name));
    str_add(&w->out, ": ");
}

static void write_fields(Writer *w, const Ctor *c, const Value *fields) {
    str_add_char(&w->out, '{');
    for (uint32_t i = 0; i < c->nfields && !w->failed; i++) {
        write_name(w, file_part_name(c, i), i == 0);
        write_value(w, fields[i]);
    }
    str_add_char(&w->out, '}');
}

static void write_json(Writer *w, const Ctor *c, const Value *fields) {
    Value pairs, pair;
    switch ((JsonTag)c->tag) {
    case JSON_IS_NULL: str_add(&w->out, "null"); return;
    case JSON_IS_BOOL:
    case JSON_IS_INT:
    case JSON_IS_FLOAT:
    case JSON_IS_TEXT:
    case JSON_IS_ARRAY: write_value(w, fields[0]); return;
    case JSON_IS_OBJECT: break;
    }
    pairs = fields[0];
    str_add_char(&w->out, '{');
    for (bool first = true;
         !w->failed && !builtin_interrupted(w->call) && builtin_list_next(&pairs, &pair);
         first = false) {
        const Tuple *t = pair.p;
        const String *name = t->items[0].p;
        str_add(&w->out, first ? "" : ", ");
        write_text(w, name->text, name->len);
        str_add(&w->out, ": ");
        write_value(w, t->items[1]);
    }
    str_add_char(&w->out, '}');
}

static void write_data(Writer *w, Value v) {
    const Ctor *c = data_ctor(v);
    Value few[8], *fields = c->nfields > 8 ? mem_new_n(Value, c->nfields) : c->nfields ? few : NULL;
    for (uint32_t i = 0; i < c->nfields; i++)
        fields[i] = data_get(v, i);
    if (is_json_decl(c->decl)) {
        write_json(w, c, fields);
    } else if (is_prelude_decl(w->call, c->decl, "List")) {
        write_list(w, v);
    } else if (is_prelude_decl(w->call, c->decl, "Option")) {
        if (fields)
            write_value(w, fields[0]);
        else
            str_add(&w->out, "null");
    } else if (c->decl->nctors == 1) {
        write_fields(w, c, fields);
    } else if (!fields) {
        write_text(w, c->name->text, strlen(c->name->text));
    } else {
        str_add_char(&w->out, '{');
        write_name(w, c->name->text, true);
        write_fields(w, c, fields);
        str_add_char(&w->out, '}');
    }
}

static void write_value(Writer *w, Value v) {
    if (w->failed || builtin_interrupted(w->call))
        return;
    if (mem_stack_left() < STACK_LEFT) {
        cannot_write(w, "data that is nested so deeply");
        return;
    }
    v = value_primal(v);
    switch ((ValueTag)v.tag) {
    case VAL_SCALAR:
    case VAL_TENSOR: {
        const Tensor *t = tensor_canonical(value_to_tensor(v));
        const char *p = tensor_data(t);
        write_tensor(w, t, 0, &p);
        return;
    }
    case VAL_TUPLE: {
        const Tuple *t = v.p;
        str_add_char(&w->out, '[');
        for (uint32_t i = 0; t && i < t->n; i++) {
            str_add(&w->out, i ? ", " : "");
            write_value(w, t->items[i]);
        }
        str_add_char(&w->out, ']');
        return;
    }
    case VAL_STRING: {
        const String *s = v.p;
        write_text(w, s->text, s->len);
        return;
    }
    case VAL_CTOR: write_data(w, v); return;
    case VAL_CLOSURE:
    case VAL_BUILTIN: cannot_write(w, "a function"); return;
    case VAL_REF: cannot_write(w, "a reference"); return;
    case VAL_DUAL:
    case VAL_ABSENT: break;
    }
    BUG("json.print of a value with the tag %u", v.tag);
}

/* json.print(value) */
bool builtin_json_print(const BuiltinCall *call, Value *out) {
    Writer w = {.call = call};
    write_value(&w, call->args[0]);
    *out = value_string(str_text(&w.out), w.out.len);
    return !w.failed && !builtin_interrupted(call);
}
