/* SPDX-License-Identifier: Apache-2.0 */
/* Behind relay.h: one thread that does all the work, in the order in which it is asked for.
 *
 * Note [One thread]. The collector scans the stacks it knows, and state that sessions share (symbols, buffers, kernels)
 * is guarded by nothing. So all of it lives on one thread; the others hand it requests and wait. What they
 * hold, RelaySession and RelayValue, is pinned. What they give back without waiting, values and exported tensors,
 * goes onto a list that the thread empties before its next request. */
#include "repl/relay.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/session_internal.h"
#include "tensor/dlpack.h"

struct RelaySession {
    Session *session;
    Str error;
    void (*write)(void *context, const char *text, size_t length);
    void *context;
};

/* What is given back: the thread unpins it, and a tensor loses an owner. */
typedef struct GivenBack {
    void *pinned;
    Tensor *exported;
    struct GivenBack *next;
} GivenBack;

struct RelayValue {
    RelaySession *session;
    Value value;
    const Scheme
        *scheme; /* of (), and of a value that is part of a larger one of unknown type: NULL */
    const char *shown;
    GivenBack given_back; /* so that release needs no memory */
};

typedef struct Request {
    void (*fn)(void *arg);
    void *arg;
    bool done;
    struct Request *next;
} Request;

/* The one thread and what it is asked. */
static struct Library {
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    Request *first, **last;
    GivenBack *given_back;
    pthread_t thread;
    bool running;
} library = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .asked = PTHREAD_COND_INITIALIZER,
             .answered = PTHREAD_COND_INITIALIZER,
             .last = &library.first};

static void take_back(GivenBack *all) {
    while (all) {
        GivenBack *g = all;
        all = g->next; /* unpinned, it may go */
        if (g->exported) {
            g->exported->buffer->owners--;
            mem_unpin(g->exported);
            free(g);
        } else {
            mem_unpin(g->pinned);
        }
    }
}

static void serve(void *arg) {
    (void)arg;
    pthread_mutex_lock(&library.lock);
    for (;;) {
        while (!library.first)
            pthread_cond_wait(&library.asked, &library.lock);
        Request *r = library.first;
        library.first = r->next;
        if (!library.first)
            library.last = &library.first;
        GivenBack *back = library.given_back;
        library.given_back = NULL;
        pthread_mutex_unlock(&library.lock);
        take_back(back);
        r->fn(r->arg);
        mem_run_finalizers();
        pthread_mutex_lock(&library.lock);
        r->done = true;
        pthread_cond_broadcast(&library.answered);
    }
}

static void *begin_worker(void *arg) {
    mem_init();
    session_with_stack(NULL, serve, arg);
    return NULL;
}

/* Has the thread call fn(arg), and waits. False: there is no thread, or this is it (an output function that calls
 * back would wait for itself). */
static bool perform(void (*fn)(void *arg), void *arg) {
    Request r = {fn, arg, false, NULL};
    pthread_mutex_lock(&library.lock);
    if (!library.running && pthread_create(&library.thread, NULL, begin_worker, NULL) == 0) {
        library.running = true;
        pthread_detach(library.thread);
    }
    bool can = library.running && !pthread_equal(pthread_self(), library.thread);
    if (can) {
        *library.last = &r;
        library.last = &r.next;
        pthread_cond_signal(&library.asked);
        while (!r.done)
            pthread_cond_wait(&library.answered, &library.lock);
    }
    pthread_mutex_unlock(&library.lock);
    return can;
}

static void give(GivenBack *g) {
    pthread_mutex_lock(&library.lock);
    g->next = library.given_back;
    library.given_back = g;
    pthread_mutex_unlock(&library.lock);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void take_output(void *ctx, const char *text, size_t n) {
    RelaySession *s = ctx;
    if (s->write)
        s->write(s->context, text, n);
    else
        fwrite(text, 1, n, stdout);
}

static void take_diag(void *ctx, const char *text, size_t n) {
    RelaySession *s = ctx;
    str_add_n(&s->error, text, n);
}

typedef struct Opening {
    const RelayOptions *options;
    RelaySession *result;
} Opening;

static void open_session(void *arg) {
    Opening *o = arg;
    SessionOptions options;
    session_options_init(&options);
    if (o->options) {
        options.threads = o->options->threads;
        options.memory_bytes = o->options->memory_bytes;
        options.stack_bytes = o->options->stack_bytes;
        options.seed = o->options->seed;
        options.jit = !o->options->without_kernels;
    }
    Session *session = session_new(&options);
    if (!session)
        return;
    RelaySession *s = mem_new(RelaySession);
    mem_pin(s);
    s->session = session;
    session_set_sink(session, &(SessionSink){take_output, take_diag, s, false});
    o->result = s;
}

RelaySession *relay_open(const RelayOptions *options) {
    Opening o = {options, NULL};
    perform(open_session, &o);
    return o.result;
}

static void close_session(void *arg) {
    RelaySession *s = arg;
    session_fini(s->session);
    mem_unpin(s);
}

void relay_close(RelaySession *session) {
    if (session)
        perform(close_session, session);
}

const char *relay_error(const RelaySession *session) { return str_text(&session->error); }

void relay_set_output(RelaySession *session,
                      void (*write)(void *context, const char *text, size_t length),
                      void *context) {
    session->write = write;
    session->context = context;
}

void relay_interrupt(RelaySession *session) { session_interrupt(session->session); }

/* ---- running --------------------------------------------------------------------------------- */

/* One call on a session; each function below uses the fields it needs. */
typedef struct Call {
    RelaySession *s;
    const char *text;
    size_t len;
    const RelayValue *value;
    RelayValue *const *items;
    size_t count;
    struct DLManagedTensor *tensor;
    RelayValue *result;
    bool ok;
} Call;

/* What a call has to say stands until the next begins. */
static void begin(RelaySession *s) { s->error = (Str){0}; }

static RelayValue *value_new(RelaySession *s, Value v, const Scheme *scheme) {
    RelayValue *result = mem_new(RelayValue);
    *result = (RelayValue){.session = s, .value = v, .scheme = scheme};
    if (!scheme && v.tag == VAL_TUPLE && !v.p)
        result->scheme = scheme_mono(type_tuple(NULL, 0));
    mem_pin(result);
    return result;
}

static void mistake(RelaySession *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str_add(&s->error, "error: ");
    str_vprintf(&s->error, fmt, ap);
    str_add_char(&s->error, '\n');
    va_end(ap);
}

static RelayValue *evaluate(RelaySession *s, const char *text) {
    const char *name = fmt_text("entry %u", ++s->session->prompts);
    SessionStatus status = session_evaluate(s->session, name, text, strlen(text));
    if (status == SESSION_INCOMPLETE)
        mistake(s, "the text ends in the middle of an item");
    if (status != SESSION_OK)
        return NULL;
    s->error = (Str){0}; /* warnings */
    const SessionResult *result = session_last_result(s->session);
    return result->has_value ? value_new(s, result->value, result->scheme)
                             : value_new(s, value_unit(), NULL);
}

static void run_text(void *arg) {
    Call *c = arg;
    begin(c->s);
    c->result = evaluate(c->s, c->text);
}

RelayValue *relay_evaluate(RelaySession *session, const char *text) {
    Call c = {.s = session, .text = text};
    perform(run_text, &c);
    return c.result;
}

/* Binds the values to names that no program has, and adds "(name, name)" to the text. */
static bool add_arguments(Call *c, Str *text) {
    str_add_char(text, '(');
    for (size_t i = 0; i < c->count; i++) {
        RelayValue *v = c->items[i];
        if (!v || v->session != c->s || !v->scheme) {
            mistake(c->s, "value %zu is %s", i + 1,
                    !v           ? "none"
                    : !v->scheme ? "of unknown type"
                                 : "of another session");
            return false;
        }
        const char *name = fmt_text("argument.x%zu", i);
        session_bind(c->s->session, name, v->value, (Scheme *)v->scheme);
        str_printf(text, "%s%s", i ? ", " : "", name);
    }
    str_add_char(text, ')');
    return true;
}

/* The names keep nothing alive. */
static void forget_arguments(const Call *c) {
    for (size_t i = 0; i < c->count; i++)
        session_bind(c->s->session, fmt_text("argument.x%zu", i), value_unit(),
                     scheme_mono(type_tuple(NULL, 0)));
}

static void call_function(void *arg) {
    Call *c = arg;
    begin(c->s);
    Str text = {0};
    str_add(&text, c->text);
    if (add_arguments(c, &text))
        c->result = evaluate(c->s, str_text(&text));
    forget_arguments(c);
}

RelayValue *relay_call(RelaySession *session, const char *function, RelayValue *const *arguments,
                       size_t count) {
    Call c = {.s = session, .text = function, .items = arguments, .count = count};
    perform(call_function, &c);
    return c.result;
}

RelayValue *relay_tuple(RelaySession *session, RelayValue *const *items, size_t count) {
    return relay_call(session, "", items, count);
}

static void define(void *arg) {
    Call *c = arg;
    begin(c->s);
    Str text = {0};
    str_printf(&text, "let %s = ", c->text);
    RelayValue *value = add_arguments(c, &text) ? evaluate(c->s, str_text(&text)) : NULL;
    c->ok = value != NULL;
    if (value)
        mem_unpin(value);
    forget_arguments(c);
}

bool relay_define(RelaySession *session, const char *name, const RelayValue *value) {
    RelayValue *items[] = {(RelayValue *)value};
    Call c = {.s = session, .text = name, .items = items, .count = 1};
    perform(define, &c);
    return c.ok;
}

static void load_file(void *arg) {
    Call *c = arg;
    begin(c->s);
    c->ok = session_load(c->s->session, c->text) == SESSION_OK;
    if (c->ok)
        c->s->error = (Str){0};
}

bool relay_load(RelaySession *session, const char *path) {
    Call c = {.s = session, .text = path};
    perform(load_file, &c);
    return c.ok;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_cons(Value v) {
    return v.tag == VAL_CTOR && data_size(v) == 2 && strcmp(data_ctor(v)->name->text, "Cons") == 0;
}

RelayKind relay_kind(const RelayValue *value) {
    switch ((ValueTag)value->value.tag) {
    case VAL_SCALAR:
    case VAL_TENSOR:
    case VAL_DUAL: return RELAY_TENSOR;
    case VAL_TUPLE: return RELAY_TUPLE;
    case VAL_CTOR: return RELAY_DATA;
    case VAL_STRING: return RELAY_STRING;
    case VAL_REF: return RELAY_REFERENCE;
    case VAL_CLOSURE:
    case VAL_BUILTIN:
    case VAL_ABSENT: break;
    }
    return RELAY_FUNCTION;
}

size_t relay_count(const RelayValue *value) {
    Value v = value->value;
    if (!is_cons(v))
        return value_count(v);
    size_t n = 0;
    for (; is_cons(v); v = data_get(v, 1))
        n++;
    return n;
}

/* The type of field i of data of type t; a size that each value has for itself is taken from the value. */
static Type *field_type(Type *t, const Ctor *ctor, uint32_t i) {
    ctor = ctor_of_type(ctor, t);
    TypeDecl *decl = ctor->decl;
    Type *field = type_substitute(ctor->fields[i], decl->params, t->args, decl->nparams);
    Type **unknown = mem_new_n(Type *, (size_t)decl->nexists + 1);
    for (uint32_t k = 0; k < decl->nexists; k++)
        unknown[k] = type_any(decl->exists[k]->kind, NULL);
    return type_substitute(field, decl->exists, unknown, decl->nexists);
}

static Scheme *part_scheme(const Scheme *whole, Type *type, Value v) {
    Scheme *part = mem_new(Scheme);
    *part = *whole;
    part->type = type;
    return scheme_with_known_sizes(part, v);
}

static void take_item(void *arg) {
    Call *c = arg;
    Value v = c->value->value;
    const Scheme *whole = c->value->scheme;
    Type *type = whole ? type_resolve(whole->type) : NULL, *part = NULL;
    size_t i = c->count;
    if (v.tag == VAL_TUPLE) {
        part = type && type->tag == TY_TUPLE ? type->args[i] : NULL;
        v = ((Tuple *)v.p)->items[i];
    } else {
        for (; is_cons(v) && i > 0; i--)
            v = data_get(v, 1);
        const Ctor *ctor = data_ctor(v);
        part = type && type->tag == TY_DATA ? field_type(type, ctor, (uint32_t)i) : NULL;
        v = data_get(v, (uint32_t)i);
    }
    c->result = value_new(c->value->session, v, part ? part_scheme(whole, part, v) : NULL);
}

RelayValue *relay_item(const RelayValue *value, size_t index) {
    if (!value || index >= relay_count(value))
        return NULL;
    Call c = {.value = value, .count = index};
    perform(take_item, &c);
    return c.result;
}

const char *relay_constructor(const RelayValue *value) {
    return value->value.tag == VAL_CTOR ? data_ctor(value->value)->name->text : NULL;
}

const char *relay_text(const RelayValue *value, size_t *length) {
    const String *s = value->value.tag == VAL_STRING ? value->value.p : NULL;
    if (length)
        *length = s ? s->len : 0;
    return s ? s->text : NULL;
}

static void show(void *arg) {
    RelayValue *v = arg;
    Str text = {0};
    interp_resume(v->session->session->interp);
    if (show_value(v->session->session, v->value, v->scheme, &text))
        text.text[--text.len] = '\0'; /* the line break */
    v->shown = str_text(&text);
}

const char *relay_show(RelayValue *value) {
    perform(show, value);
    return value->shown;
}

void relay_release(RelayValue *value) {
    if (!value)
        return;
    value->given_back.pinned = value;
    give(&value->given_back);
}

static void make_string(void *arg) {
    Call *c = arg;
    c->result = value_new(c->s, value_string(c->text, c->len), scheme_mono(type_string()));
}

RelayValue *relay_string(RelaySession *session, const char *text, size_t length) {
    Call c = {.s = session, .text = text, .len = length};
    perform(make_string, &c);
    return c.result;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void delete_tensor(void *ctx) {
    struct DLManagedTensor *m = ctx;
    if (m->deleter)
        m->deleter(m);
}

static void take_tensor(void *arg) {
    Call *c = arg;
    begin(c->s);
    const DLTensor *t = &c->tensor->dl_tensor;
    DType dtype;
    const char *why = dlpack_refuses(t, &dtype);
    if (why) {
        mistake(c->s, "%s", why);
    } else {
        char *data = (char *)t->data + t->byte_offset;
        Tensor *tensor = tensor_borrow(dtype, t->ndim, t->shape, t->strides, data, delete_tensor,
                                       c->tensor);
        Type *sizes[TENSOR_MAX_RANK];
        for (int i = 0; i < t->ndim; i++)
            sizes[i] = type_dim_int(t->shape[i], NULL);
        Type *type = type_tensor(type_shape(sizes, (uint32_t)t->ndim), type_dtype(dtype));
        c->result = value_new(c->s, value_tensor(tensor), scheme_mono(type));
    }
}

RelayValue *relay_from_dlpack(RelaySession *session, struct DLManagedTensor *tensor) {
    Call c = {.s = session, .tensor = tensor};
    perform(take_tensor, &c);
    return c.result;
}

/* What the caller of relay_to_dlpack holds: shape and strides stand behind it. */
typedef struct Export {
    struct DLManagedTensor managed;
    GivenBack *given_back;
    int64_t sizes[];
} Export;

static void delete_export(struct DLManagedTensor *m) {
    Export *e = (Export *)m;
    give(e->given_back);
    free(e);
}

static void give_tensor(void *arg) {
    Call *c = arg;
    Tensor *t = value_to_tensor(value_primal(c->value->value));
    if (!t)
        return;
    t = tensor_canonical(t);
    Export *e = malloc(sizeof *e + 2 * sizeof(int64_t) * (size_t)t->rank);
    GivenBack *back = malloc(sizeof *back);
    if (!e || !back) {
        free(e);
        free(back);
        return;
    }
    *back = (GivenBack){.exported = t};
    mem_pin(t);
    t->buffer->owners++; /* nobody writes over it */
    e->given_back = back;
    e->managed = (struct DLManagedTensor){.dl_tensor = dlpack_of(t, e->sizes, e->sizes + t->rank),
                                          .deleter = delete_export};
    c->tensor = &e->managed;
}

struct DLManagedTensor *relay_to_dlpack(const RelayValue *value) {
    Call c = {.value = value};
    perform(give_tensor, &c);
    return c.tensor;
}
