/* SPDX-License-Identifier: Apache-2.0 */
/* TVM's memory dialect, as its planner writes modules: functions that write their results into tensors which were
 * allocated before.
 *
 *     let %s = memory.alloc_storage(16, (2, 2), 64);
 *     let %t = memory.alloc_tensor(%s, 0, (2, 2));
 *     let %outs = (%t,);                                        let %r = %f(%x);
 *     let %u = vm.invoke_tvm_op(%f, (%x,), %outs);      is      let %t = %r;
 *     let %k = memory.kill(%x);                                 %t
 *     %t
 *
 * Tensors are values here, so a write becomes a `let`: names of allocated tensors, and of tuples that hold them, stand for
 * slots (Slot), and reading one reads what was bound last where it was written. Scopes do the rest: what is written in a
 * branch has no value behind it.
 *
 * A tensor is written once, as TVM's planner does it; then whoever reads it reads the same as in TVM. Where a
 * write cannot be seen, as through a parameter, and where another tensor has been written over it, that is reported.
 * Nothing is allocated: what the machine does with memory is in eval/. */
#include <string.h>

#include "types/infer/infer.h"
#include "types/infer/state.h"

typedef enum SlotKind { SLOT_STORAGE, SLOT_TENSOR, SLOT_TUPLE, SLOT_OTHER_NAME } SlotKind;

typedef VEC(Slot *) SlotVec;

/* A tuple of tuples is read leaf by leaf, so it holds at most so many; and a path to a leaf has at most so many steps. */
enum { MAX_LEAVES = 4096, MAX_PATH = 64 };

struct Slot {
    SlotKind kind;
    const Symbol *name; /* as the `let` has it */
    Span span;
    const AstType *type; /* what the `let` declares, or NULL */
    int64_t bytes;       /* of a storage or tensor; -1: not known */

    SlotVec tensors; /* of a storage: what was allocated in it */

    Slot *storage;           /* of a tensor */
    int64_t begin;           /* the byte of the storage with which it begins; -1: not known */
    AstType *allocated;      /* its type as it was allocated */
    const Symbol *value;     /* the name of its value, in scope where it was written */
    const Slot *overwritten; /* by this one, or NULL */

    uint32_t leaves; /* how many tensors and storages it stands for */
    SlotVec items;   /* of a tuple: NULL where it is a value; of another name: what it names */
    LocalVec values; /* these, NULL where it is a slot */
};

typedef enum Form { FORM_NONE, FORM_STORAGE, FORM_TENSOR, FORM_INVOKE, FORM_KILL } Form;
static const struct {
    const char *name, *args;
    uint32_t nargs;
    const char *attrs; /* NULL: any, which say nothing */
} forms[] = {
    [FORM_STORAGE] = {"memory.alloc_storage", "size, shape, alignment", 3,
                      " dtype virtual_device device_type device_id "},
    [FORM_TENSOR] = {"memory.alloc_tensor", "storage, offset, shape", 3,
                     " dtype const_shape assert_shape "},
    [FORM_INVOKE] = {"vm.invoke_tvm_op", "op, ins, outs", 3, NULL},
    [FORM_KILL] = {"memory.kill", "to_free", 1, " "},
};

static Form find_form(Infer *I, const Ast *e) {
    Name name;
    if (e->kind != AST_CALL || !callee_name(I, e->a, &name) || name.sigil != SIGIL_NONE)
        return FORM_NONE;
    for (Form i = FORM_STORAGE; i <= FORM_KILL; i++)
        if (strcmp(forms[i].name, name.sym->text) == 0)
            return scope_resolve(I, &name).kind == NAME_NONE ? i : FORM_NONE;
    return FORM_NONE;
}

Expr *infer_memory_form(Infer *I, const Symbol *name, Span span) {
    Diag *d = infer_error(I, DIAG_R0120, span, "`%s` is a statement of a block, and no expression",
                          name->text);
    if (d)
        diag_add_help(d, "write `let x = %s(...);` in a function or block", name->text);
    return infer_error_expr(span);
}

/* Whether a call of a form has the right number of arguments and attributes that are the form's. */
static bool check_call(Infer *I, Form form, const Ast *call) {
    uint32_t n = (uint32_t)call->args.len;
    if (n != forms[form].nargs) {
        Diag *d = infer_error(I, DIAG_R0203, call->span,
                              "`%s` takes %u argument%s, and %u %s given", forms[form].name,
                              forms[form].nargs, forms[form].nargs == 1 ? "" : "s", n,
                              n == 1 ? "is" : "are");
        if (d)
            diag_add_fact(d, "its arguments are (%s)", forms[form].args);
        return false;
    }
    for (size_t i = 0; forms[form].attrs && i < call->attrs.len; i++) {
        const AstAttr *a = &call->attrs.data[i];
        if (strstr(forms[form].attrs, fmt_text(" %s ", a->name->text)))
            continue;
        infer_error(I, DIAG_R0109, a->span, "`%s` has no attribute `%s`", forms[form].name,
                    a->name->text);
        return false;
    }
    return true;
}

static const AstAttrValue *find_attr(const Ast *call, const char *name) {
    for (size_t i = 0; i < call->attrs.len; i++)
        if (strcmp(call->attrs.data[i].name->text, name) == 0)
            return call->attrs.data[i].value;
    return NULL;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static Ast *node(AstKind kind, Span span) {
    Ast *e = mem_new(Ast);
    e->kind = kind;
    e->span = e->op_span = span;
    return e;
}

static Ast *local_node(const Symbol *name, Span span) {
    Ast *e = node(AST_NAME, span);
    e->name = (Name){.sym = name, .sigil = SIGIL_LOCAL, .span = span};
    return e;
}

static Ast *proj_node(Ast *tuple, size_t i) {
    Ast *e = node(AST_PROJ, tuple->span);
    e->a = tuple;
    e->i = (int64_t)i;
    return e;
}

/* A name that no text has. */
static const Symbol *fresh_name(Infer *I, const char *of) {
    return sym_intern(fmt_text("(%s %u", of, ++I->time));
}

static bool is_literal(const Ast *e) { return e->kind == AST_INT || e->kind == AST_META; }

/* An argument that only says how memory is laid out: it is checked and evaluated. */
static void emit_unread(Infer *I, void *links, Ast *e) {
    Expr *value = infer_expr(I, e, NULL);
    if (!is_literal(e))
        infer_chain_emit(links, NULL, value);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static const Symbol *graph_name(const Ast *e) {
    return sym_intern(fmt_text("%%%lld", (long long)e->i));
}

static Slot *slot_new(SlotKind kind, const Ast *let) {
    Slot *s = mem_new(Slot);
    s->kind = kind;
    s->span = let->a->span;
    s->name = let->kind == AST_GRAPH_LET ? graph_name(let)
              : let->kind == AST_LET     ? let->name.sym
                                         : sym_intern("_");
    s->type = let->kind == AST_LET ? let->type : NULL;
    s->begin = s->bytes = -1;
    s->leaves = kind == SLOT_STORAGE || kind == SLOT_TENSOR;
    return s;
}

static void bind_slot(Infer *I, const Ast *let, Slot *slot) {
    I->has_slots = true;
    if (let->kind == AST_SEQ)
        return;
    bool graph = let->kind == AST_GRAPH_LET;
    const Symbol *name = graph ? graph_name(let) : let->name.sym;
    Var *none = var_new(name, type_error(), let->a->span);
    scope_bind(I, name, graph || let->name.sigil != SIGIL_NONE, none)->slot = slot;
}

static Local *find_local(Infer *I, const Ast *e) {
    if (e->kind != AST_NAME && e->kind != AST_GRAPH_VAR)
        return NULL;
    Name name = e->name;
    if (e->kind == AST_GRAPH_VAR)
        name = (Name){.sym = graph_name(e), .sigil = SIGIL_LOCAL};
    Resolved r = scope_resolve(I, &name);
    return r.kind == NAME_LOCAL ? r.local : NULL;
}

/* What on_device(e) is computed on does not matter: there is one device. */
static const Ast *skip_device(Infer *I, const Ast *e) {
    Name name;
    while (e->kind == AST_CALL && e->args.len == 1 && callee_name(I, e->a, &name) &&
           strcmp(name.sym->text, "on_device") == 0 && scope_resolve(I, &name).kind == NAME_OP)
        e = e->args.data[0];
    return e;
}

static Slot *find_part(Infer *I, const Ast *e, int path) {
    e = skip_device(I, e);
    if (e->kind == AST_PROJ) {
        const Slot *tuple = path < MAX_PATH ? find_part(I, e->a, path + 1) : NULL;
        bool inside = tuple && tuple->kind == SLOT_TUPLE && e->i >= 0 &&
                      (uint64_t)e->i < tuple->items.len;
        return inside ? tuple->items.data[e->i] : NULL;
    }
    const Local *l = find_local(I, e);
    Slot *s = l ? l->slot : NULL;
    while (s && s->kind == SLOT_OTHER_NAME)
        s = s->items.data[0];
    return s;
}

/* The slot that an expression names, or NULL. */
static Slot *find_slot(Infer *I, const Ast *e) { return I->has_slots ? find_part(I, e, 0) : NULL; }

static Expr *lacks_value(Infer *I, const Slot *s, Span span) {
    Diag *d = infer_error(I, DIAG_R0104, span, "nothing has been written to `%s` here",
                          s->name->text);
    if (d) {
        diag_add_label(d, s->span, "allocated here");
        diag_add_fact(d, "a tensor of `memory.alloc_tensor` has a value behind the "
                         "`vm.invoke_tvm_op` that writes it, in the same block");
    }
    return infer_error_expr(span);
}

static Expr *read_tensor(Infer *I, const Slot *s, Span span) {
    Local *value = map_find(&I->locals, s->value);
    if (!value)
        return lacks_value(I, s, span);
    if (!s->overwritten)
        return infer_local(I, value, span);
    Diag *d = infer_error(I, DIAG_R0120, span, "`%s` was overwritten before this", s->name->text);
    if (d)
        diag_add_label(d, s->overwritten->span, "`%s` lies in the same storage, and was written to",
                       s->overwritten->name->text);
    return infer_error_expr(span);
}

static Expr *read_storage(Infer *I, const Slot *s, Span span) {
    Diag *d = infer_error(I, DIAG_R0120, span, "`%s` is storage, and no value", s->name->text);
    if (d)
        diag_add_fact(d, "`memory.alloc_tensor` alone takes it");
    return infer_error_expr(span);
}

static Expr *read_item(Infer *I, const Slot *tuple, size_t i, Span span) {
    return tuple->items.data[i] ? infer_slot_read(I, tuple->items.data[i], span)
                                : infer_local(I, tuple->values.data[i], span);
}

Expr *infer_slot_read(Infer *I, const Slot *s, Span span) {
    switch (s->kind) {
    case SLOT_STORAGE: return read_storage(I, s, span);
    case SLOT_TENSOR: return read_tensor(I, s, span);
    case SLOT_TUPLE:
    case SLOT_OTHER_NAME: break;
    }
    Expr **items = mem_new_n(Expr *, s->items.len + 1);
    for (size_t i = 0; i < s->items.len; i++)
        items[i] = read_item(I, s, i, span);
    Expr *e = s->kind == SLOT_TUPLE ? expr_tuple(items, (uint32_t)s->items.len, span) : items[0];
    if (!s->type)
        return e;
    Type *want = infer_ast_type(I, s->type, KIND_TYPE);
    return infer_flow(I, e, want, place_of_name(s->name->text), s->type->span);
}

Expr *infer_slot_proj(Infer *I, const Ast *e) {
    const Slot *tuple = find_slot(I, e->a);
    if (!tuple || tuple->kind != SLOT_TUPLE || e->i < 0 || (uint64_t)e->i >= tuple->items.len)
        return NULL;
    return read_item(I, tuple, (size_t)e->i, e->span);
}

/* The slot that an expression is, or the tuple that holds some; NULL where it is a value. */
static Slot *make_slot(Infer *I, const Ast *let, const Ast *e) {
    e = skip_device(I, e);
    if (e->kind != AST_TUPLE)
        return find_slot(I, e);
    Slot *tuple = slot_new(SLOT_TUPLE, let);
    tuple->type = NULL;
    for (size_t i = 0; i < e->args.len; i++) {
        Slot *item = make_slot(I, let, e->args.data[i]);
        tuple->leaves += item ? item->leaves : 0;
        if (tuple->leaves > MAX_LEAVES)
            tuple->leaves = MAX_LEAVES + 1;
        vec_push(&tuple->items, item);
    }
    return tuple->leaves ? tuple : NULL;
}

/* Binds what else the tuples that e writes hold, so that it is evaluated once, here. */
static void bind_values(Infer *I, void *links, Slot *slot, const Ast *e) {
    e = skip_device(I, e);
    for (size_t i = 0; e->kind == AST_TUPLE && i < e->args.len; i++) {
        Ast *item = e->args.data[i];
        Name name = {.sym = fresh_name(I, slot->name->text), .span = item->span};
        vec_push(&slot->values, slot->items.data[i]
                                    ? NULL
                                    : infer_chain_bind(I, links, &name, name.sym, NULL, item));
        if (slot->items.data[i])
            bind_values(I, links, slot->items.data[i], item);
    }
}

/* Another name of a slot, or a name of several: `let outs = (t, x);`. NULL where the link binds a value. */
static Slot *find_other_name(Infer *I, void *links, const Ast *let) {
    Slot *named = I->has_slots && let->kind != AST_SEQ ? make_slot(I, let, let->a) : NULL;
    if (!named)
        return NULL;
    if (named->leaves <= MAX_LEAVES)
        bind_values(I, links, named, let->a);
    Slot *other = slot_new(SLOT_OTHER_NAME, let);
    vec_push(&other->items, named);
    return other;
}

/* ---- memory.alloc_storage, memory.alloc_tensor ------------------------------------------------- */

/* A number of bytes that is written as a literal, or -1. */
static int64_t literal_of(const Ast *e) { return e->kind == AST_INT && e->i >= 0 ? e->i : -1; }

static Slot *alloc_storage(Infer *I, void *links, const Ast *let, const Ast *call) {
    Slot *s = slot_new(SLOT_STORAGE, let);
    const AstType *t = let->a == call ? s->type : NULL;
    if (t && (t->kind != AST_TYPE_NAME || strcmp(t->name->text, "Storage") != 0 || t->args.len)) {
        infer_error(I, DIAG_R0201, t->span, "`memory.alloc_storage` gives a `Storage`");
        return NULL;
    }
    for (size_t i = 0; i < call->args.len; i++)
        emit_unread(I, links, call->args.data[i]);
    s->bytes = literal_of(call->args.data[0]);
    return s;
}

static AstType *type_node(AstTypeKind kind, Span span) {
    AstType *t = mem_new(AstType);
    t->kind = kind;
    t->span = span;
    return t;
}

static void add_size(AstType *shape, int64_t n) {
    AstType *size = type_node(AST_TYPE_DIM, shape->span);
    size->op = DIM_INT;
    size->value = n;
    vec_push(&shape->args, size);
}

static bool sizes_of_constant(Infer *I, Ast *meta, AstType *shape) {
    const Expr *e = infer_expr(I, meta, NULL);
    const Tensor *t = e->kind == EXPR_CONST ? e->tensor : NULL;
    if (!t || t->rank != 1 || (t->dtype != DT_I64 && t->dtype != DT_I32))
        return false;
    for (int64_t i = 0; i < t->count; i++)
        add_size(shape,
                 t->dtype == DT_I64 ? *(int64_t *)tensor_at(t, i) : *(int32_t *)tensor_at(t, i));
    return true;
}

/* The sizes that `(2, 2)`, `[2, 2]` or a constant says. */
static bool sizes_of_expr(Infer *I, Ast *e, AstType *shape) {
    if (e->kind == AST_META)
        return sizes_of_constant(I, e, shape);
    if (e->kind != AST_TUPLE && e->kind != AST_TENSOR)
        return false;
    for (size_t i = 0; i < e->args.len; i++)
        if (e->args.data[i]->kind != AST_INT)
            return false;
    for (size_t i = 0; i < e->args.len; i++)
        add_size(shape, e->args.data[i]->i);
    return true;
}

static bool sizes_of_attr(Infer *I, const AstAttrValue *v, AstType *shape) {
    if (!v || (v->kind != AST_ATTR_META && v->kind != AST_ATTR_LIST))
        return false;
    if (v->kind == AST_ATTR_META) {
        Ast *meta = node(AST_META, v->span);
        meta->i = v->i;
        meta->text = v->text;
        meta->text_len = v->text_len;
        return sizes_of_constant(I, meta, shape);
    }
    for (size_t i = 0; i < v->items.len; i++)
        if (v->items.data[i]->kind != AST_ATTR_INT)
            return false;
    for (size_t i = 0; i < v->items.len; i++)
        add_size(shape, v->items.data[i]->i);
    return v->items.len > 0;
}

/* The type of the tensor that a call of memory.alloc_tensor allocates, its sizes open where nothing says them; NULL after
 * a report. bytes: how many it has, -1 if not known. */
static AstType *allocated_type(Infer *I, const Ast *call, int64_t *bytes) {
    Span span = call->span;
    const AstAttrValue *v = find_attr(call, "dtype");
    const char *dtype = !v                         ? "float32"
                        : v->kind == AST_ATTR_NAME ? v->name->text
                        : v->text                  ? v->text
                                                   : "";
    DType dt;
    if (!dtype_find(dtype, strlen(dtype), &dt)) {
        infer_error(I, DIAG_R0111, v->span,
                    "attribute `dtype` of `memory.alloc_tensor` is a dtype");
        return NULL;
    }
    AstType *t = type_node(AST_TYPE_TENSOR, span);
    t->dtype = type_node(AST_TYPE_NAME, span);
    t->dtype->name = sym_intern(dtype_info[dt].name);
    t->shape = type_node(AST_TYPE_SHAPE, span);
    *bytes = -1;
    if (!sizes_of_attr(I, find_attr(call, "const_shape"), t->shape) &&
        !sizes_of_attr(I, find_attr(call, "assert_shape"), t->shape) &&
        !sizes_of_expr(I, call->args.data[2], t->shape)) {
        t->shape = type_node(AST_TYPE_HOLE, span);
        return t;
    }
    *bytes = (int64_t)dtype_size(dt);
    for (size_t i = 0; i < t->shape->args.len && *bytes >= 0; i++)
        if (__builtin_mul_overflow(*bytes, t->shape->args.data[i]->value, bytes))
            *bytes = -1;
    return t;
}

static bool check_room(Infer *I, const Slot *s, Span span) {
    if (s->begin < 0 || s->bytes < 0 || s->storage->bytes < 0 ||
        s->begin <= s->storage->bytes - s->bytes)
        return true;
    Diag *d = infer_error(I, DIAG_R0120, span, "the tensor has no room in its storage");
    if (d) {
        diag_set_label(d, "%lld bytes from byte %lld on", (long long)s->bytes, (long long)s->begin);
        diag_add_label(d, s->storage->span, "%lld bytes", (long long)s->storage->bytes);
    }
    return false;
}

static Slot *alloc_tensor(Infer *I, void *links, const Ast *let) {
    const Ast *call = let->a, *where = call->args.data[0];
    bool inside = find_form(I, where) == FORM_STORAGE && check_call(I, FORM_STORAGE, where);
    Slot *s = slot_new(SLOT_TENSOR, let);
    s->storage = inside ? alloc_storage(I, links, let, where) : find_slot(I, where);
    if (!s->storage || s->storage->kind != SLOT_STORAGE) {
        infer_error(I, DIAG_R0120, where->span,
                    "`memory.alloc_tensor` takes what a `let` of `memory.alloc_storage` binds");
        return NULL;
    }
    s->allocated = allocated_type(I, call, &s->bytes);
    if (!s->allocated)
        return NULL;
    emit_unread(I, links, call->args.data[1]);
    emit_unread(I, links, call->args.data[2]);
    s->begin = literal_of(call->args.data[1]);
    s->value = fresh_name(I, s->name->text);
    vec_push(&s->storage->tensors, s);
    return check_room(I, s, call->span) ? s : NULL;
}

/* ---- vm.invoke_tvm_op ------------------------------------------------------------------------- */

/* Adds the slot that a part of `outs` names; false after a report. */
static bool add_out(Infer *I, Slot *s, Span span, SlotVec *outs) {
    if (!s || s->kind != SLOT_TENSOR) {
        Diag *d = infer_error(I, DIAG_R0120, span,
                              "what `vm.invoke_tvm_op` writes to cannot be followed");
        if (d) {
            diag_set_label(d, "this is no tensor of `memory.alloc_tensor`");
            diag_add_fact(d,
                          "tensors are values: what is followed are the names that a `let` gives "
                          "to an allocated tensor, and to tuples of them");
        }
        return false;
    }
    bool twice = map_has(&I->locals, s->value);
    for (size_t i = 0; i < outs->len; i++)
        twice |= outs->data[i] == s;
    if (twice) {
        Diag *d = infer_error(I, DIAG_R0120, span, "`%s` is written to twice", s->name->text);
        if (d)
            diag_add_fact(d, "who has read it since cannot be followed: allocate another tensor, "
                             "in the same storage if you like");
        return false;
    }
    vec_push(outs, s);
    return true;
}

static bool find_outs(Infer *I, const Ast *e, SlotVec *outs) {
    e = skip_device(I, e);
    if (e->kind == AST_TUPLE) {
        for (size_t i = 0; i < e->args.len; i++)
            if (!add_out(I, find_slot(I, e->args.data[i]), e->args.data[i]->span, outs))
                return false;
        return true;
    }
    Slot *tuple = find_slot(I, e);
    if (!tuple || tuple->kind != SLOT_TUPLE)
        return add_out(I, NULL, e->span, outs);
    for (size_t i = 0; i < tuple->items.len; i++)
        if (!add_out(I, tuple->items.data[i], e->span, outs))
            return false;
    return true;
}

/* The arguments of the call: the elements of the tuple `ins`. False after a report. */
static bool add_ins(Infer *I, void *links, Ast *ins, Ast *call) {
    if (ins->kind == AST_TUPLE) {
        call->args = ins->args;
        return true;
    }
    const Slot *slot = find_slot(I, ins);
    size_t n = slot && slot->kind == SLOT_TUPLE ? slot->items.len : 0;
    Ast *tuple = ins;
    if (!slot) {
        const Symbol *bound = fresh_name(I, "ins");
        Name name = {.sym = sym_intern("ins"), .span = ins->span};
        Local *l = infer_chain_bind(I, links, &name, bound, NULL, ins);
        const Type *t = type_resolve(l->var->type);
        if (t->tag == TY_ERROR)
            return false;
        if (t->tag != TY_TUPLE) {
            infer_error(I, DIAG_R0201, ins->span,
                        "`vm.invoke_tvm_op` takes the arguments in a tuple, found %s",
                        type_text(l->var->type));
            return false;
        }
        n = t->nargs;
        tuple = local_node(bound, ins->span);
    }
    for (size_t i = 0; i < n; i++)
        vec_push(&call->args, proj_node(tuple, i));
    return true;
}

/* Whether two tensors of a storage are known to have no byte in common. */
static bool are_apart(const Slot *a, const Slot *b) {
    bool known = a->begin >= 0 && b->begin >= 0 && a->bytes >= 0 && b->bytes >= 0;
    return known && (a->begin + a->bytes <= b->begin || b->begin + b->bytes <= a->begin);
}

/* What was overwritten once stays so, and is looked at no more. */
static void note_overwritten(Infer *I, const Slot *by) {
    SlotVec *tensors = &by->storage->tensors;
    size_t kept = 0;
    for (size_t i = 0; i < tensors->len; i++) {
        Slot *s = tensors->data[i];
        if (s != by && map_has(&I->locals, s->value) && !are_apart(s, by))
            s->overwritten = by;
        if (!s->overwritten)
            tensors->data[kept++] = s;
    }
    tensors->len = kept;
}

/* Binds the value of a slot, which has the type that was allocated and the one that its `let` declares. */
static void write_slot(Infer *I, void *links, Slot *s, Ast *value) {
    Name name = {.sym = s->name, .span = value->span};
    infer_chain_bind(I, links, &name, s->value, s->allocated, value);
    if (s->type)
        infer_chain_bind(I, links, &name, s->value, s->type, local_node(s->value, value->span));
    note_overwritten(I, s);
}

static bool invoke(Infer *I, void *links, const Ast *e) {
    SlotVec outs = {0};
    Ast *call = node(AST_CALL, e->span);
    call->a = e->args.data[0];
    if (!find_outs(I, e->args.data[2], &outs) || !add_ins(I, links, e->args.data[1], call))
        return false;
    const Symbol *bound = fresh_name(I, "results");
    Name name = {.sym = outs.len == 1 ? outs.data[0]->name : sym_intern("results"),
                 .span = e->span};
    Local *result = infer_chain_bind(I, links, &name, bound, NULL, call);
    const Type *t = type_resolve(result->var->type);
    if (t->tag == TY_ERROR)
        return false;
    size_t n = t->tag == TY_TUPLE ? t->nargs : 1;
    if (n != outs.len) {
        Diag *d = infer_error(I, DIAG_R0203, e->args.data[2]->span,
                              "%zu tensor%s to write to, and %zu result%s", outs.len,
                              outs.len == 1 ? "" : "s", n, n == 1 ? "" : "s");
        if (d)
            diag_add_label(d, e->args.data[0]->span, "it gives %s", type_text(result->var->type));
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        Ast *value = local_node(bound, e->span);
        write_slot(I, links, outs.data[i], t->tag == TY_TUPLE ? proj_node(value, i) : value);
    }
    return true;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The same link with another value. */
static Ast *link_of(const Ast *link, Ast *value) {
    Ast *e = mem_new(Ast);
    *e = *link;
    e->a = value;
    return e;
}

/* What is killed is evaluated where it is no name: `let k = memory.kill(f(x));`. */
static void kill(Infer *I, void *links, Ast *e) {
    Local *l = find_local(I, e);
    if (!l || !l->slot)
        emit_unread(I, links, e);
}

Ast *infer_memory_link(Infer *I, void *links, Ast *link) {
    if (link->kind == AST_FREE_VAR || (link->kind == AST_LET && link->pattern))
        return link;
    Form form = find_form(I, link->a);
    if (form != FORM_NONE && !check_call(I, form, link->a))
        return link_of(link, node(AST_ERROR, link->a->span));
    bool ok = true;
    Slot *slot = NULL;
    switch (form) {
    case FORM_NONE:
        slot = find_other_name(I, links, link);
        if (!slot)
            return link;
        ok = slot->items.data[0]->leaves <= MAX_LEAVES;
        if (!ok)
            infer_error(I, DIAG_R0120, link->a->span, "this holds more than %d tensors of memory",
                        MAX_LEAVES);
        break;
    case FORM_STORAGE:
        slot = alloc_storage(I, links, link, link->a);
        ok = slot != NULL;
        break;
    case FORM_TENSOR:
        slot = alloc_tensor(I, links, link);
        ok = slot != NULL;
        break;
    case FORM_INVOKE: ok = invoke(I, links, link->a); break;
    case FORM_KILL: kill(I, links, link->a->args.data[0]); break;
    }
    if (slot && ok) {
        bind_slot(I, link, slot);
        return NULL;
    }
    return link_of(link, node(ok ? AST_TUPLE : AST_ERROR, link->a->span));
}
