/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/tutor_judge.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "parser/lexer.h"
#include "repl/commands.h"
#include "repl/session_internal.h"

/* What an expression gave, or why it did not. */
typedef SessionResult Outcome;
typedef VEC(Outcome) OutcomeVec;

/* ---- what an entry is ------------------------------------------------------------------------ */

static bool is_word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The word of a text at *at, behind blanks. */
static const char *next_word(const char **at) {
    *at += strspn(*at, " \t\n@%");
    size_t n = 0;
    while (is_word_char((*at)[n]))
        n++;
    const char *word = mem_strndup(*at, n);
    *at += n;
    return word;
}

typedef enum EntryKind {
    ENTRY_EXPR,
    ENTRY_VALUE,
    ENTRY_TYPE,
    ENTRY_IMPORT,
    ENTRY_COMMAND
} EntryKind;

/* name: what the entry binds, or the command; "" for none. */
static EntryKind kind_of(const char *entry, const char **name) {
    const char *at = entry;
    *name = "";
    if (*entry == ':') {
        at++;
        const char *full = command_full_name(next_word(&at));
        *name = full ? full : "";
        return ENTRY_COMMAND;
    }
    const char *word = next_word(&at);
    bool is_value = strcmp(word, "def") == 0 || strcmp(word, "let") == 0;
    EntryKind kind = is_value                      ? ENTRY_VALUE
                     : strcmp(word, "type") == 0   ? ENTRY_TYPE
                     : strcmp(word, "import") == 0 ? ENTRY_IMPORT
                                                   : ENTRY_EXPR;
    if (kind != ENTRY_EXPR)
        *name = next_word(&at);
    return kind;
}

/* The items of an entry, which `;` parts outside of brackets. */
static TextVec items_of(const char *entry) {
    TextVec out = {0};
    Lexer lex;
    lexer_init(&lex, source_new("entry", entry, strlen(entry), SOURCE_PROMPT), NULL);
    long depth = 0;
    size_t from = 0;
    Token t = {0};
    for (size_t at = 0;; at = t.end) {
        lexer_read(&lex, (uint32_t)at, &t);
        if (t.kind == TOK_EOF || t.end <= at)
            break;
        depth += token_depth(t.kind);
        if (t.kind == TOK_SEMI && depth <= 0) {
            vec_push(&out, mem_strndup(entry + from, t.begin - from));
            from = t.end;
        }
    }
    if (entry[from + strspn(entry + from, " \t\n")] || !out.len)
        vec_push(&out, entry + from);
    return out;
}

bool judge_is_attempt(const Frame *frame, const char *entry) {
    const char *asked, *given;
    EntryKind want = kind_of(frame->answer, &asked);
    TextVec items = {0};
    if (*entry == ':')
        vec_push(&items, entry);
    else
        items = items_of(entry);
    /* The last expression's value is judged, and a definition wherever it stands. */
    for (size_t i = want == ENTRY_EXPR ? items.len - 1 : 0; i < items.len; i++) {
        EntryKind got = kind_of(items.data[i], &given);
        bool is_named = want != ENTRY_TYPE && want != ENTRY_IMPORT;
        if (want == got && (!is_named || strcmp(asked, given) == 0))
            return true;
    }
    return false;
}

/* ---- values that mean the same --------------------------------------------------------------- */

static bool is_close(double a, double b) {
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return a == b || (isnan(a) && isnan(b));
    return fabs(a - b) <= 1e-3 * fmax(fabs(b), 1e-2);
}

static double number_at(const Tensor *t, int64_t i) {
    double x;
    elem_cast(&x, DT_F64, tensor_at(t, i), t->dtype);
    return x;
}

static bool tensors_close(const Tensor *a, const Tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)
        return false;
    for (int64_t i = 0; i < a->count; i++) {
        const void *x = tensor_at(a, i), *y = tensor_at(b, i);
        bool same = dtype_is_float(a->dtype)
                        ? is_close(number_at(a, i), number_at(b, i))
                        : elem_get_int(x, a->dtype) == elem_get_int(y, b->dtype);
        if (!same)
            return false;
    }
    return true;
}

static bool values_close(Value a, Value b) {
    for (;;) {
        if (a.tag != b.tag || a.aux != b.aux)
            return false;
        switch ((ValueTag)a.tag) {
        case VAL_SCALAR:
        case VAL_TENSOR: return tensors_close(value_to_tensor(a), value_to_tensor(b));
        case VAL_TUPLE: break;
        case VAL_CTOR: /* two sessions have a constructor each */
            if (data_ctor(a)->name != data_ctor(b)->name)
                return false;
            break;
        case VAL_STRING: return value_equal(a, b) == 1;
        case VAL_REF:
            a = ((const Ref *)a.p)->value;
            b = ((const Ref *)b.p)->value;
            continue;
        case VAL_CLOSURE:
        case VAL_BUILTIN: return true; /* of one type: `try` tells them apart */
        case VAL_DUAL:
        case VAL_ABSENT: return false;
        }
        uint32_t n = value_count(a);
        if (n != value_count(b))
            return false;
        if (!n)
            return true;
        for (uint32_t i = 0; i + 1 < n; i++)
            if (!values_close(value_part(a, i), value_part(b, i)))
                return false;
        a = value_part(a, n - 1);
        b = value_part(b, n - 1);
    }
}

static const char *outcome_type(const Outcome *o) {
    Str out = {0};
    if (o->scheme)
        scheme_print(&out, o->scheme, NULL);
    return str_text(&out);
}

static bool same_type(const Outcome *a, const Outcome *b) {
    return a->has_value == b->has_value && strcmp(outcome_type(a), outcome_type(b)) == 0;
}

static bool same_outcome(const Outcome *a, const Outcome *b) {
    if (a->status != SESSION_OK || b->status != SESSION_OK)
        return a->status == b->status && a->error == b->error;
    return same_type(a, b) && (!a->has_value || values_close(a->value, b->value));
}

/* ---- what an answer does --------------------------------------------------------------------- */

static void drop_text(void *ctx, const char *text, size_t n) { (void)ctx, (void)text, (void)n; }

static void enter_quietly(Session *s, const char *text) {
    SessionSink quiet = {drop_text, drop_text, NULL, true}, sink = session_swap_sink(s, &quiet);
    session_enter(s, text, strlen(text), false);
    session_set_sink(s, &sink);
}

static Outcome probe(Session *s, const char *text) {
    Outcome out;
    session_probe(s, text, strlen(text), &out);
    return out;
}

/* The type of what a command is about, as an outcome without a value. */
static Outcome probe_command(Session *s, const char *entry) {
    const char *at = entry + strcspn(entry, " \t");
    Str type = {0};
    SessionSink quiet = {drop_text, drop_text, NULL, true}, sink = session_swap_sink(s, &quiet);
    bool ok = session_type_of(s, at, false, &type);
    session_set_sink(s, &sink);
    Outcome out = {.status = ok ? SESSION_OK : SESSION_FAILED};
    if (ok) {
        out.has_value = true;
        out.value = value_string(str_text(&type), type.len);
    }
    return out;
}

/* What tells one definition from another. */
static TextVec probes_of(const Frame *frame) {
    TextVec out = frame->tries;
    const char *name;
    if (!out.len && kind_of(frame->answer, &name) == ENTRY_VALUE)
        vec_push(&out, name);
    return out;
}

static OutcomeVec probe_all(Session *s, const Frame *frame) {
    TextVec texts = probes_of(frame);
    OutcomeVec out = {0};
    for (size_t i = 0; i < texts.len; i++)
        vec_push(&out, probe(s, texts.data[i]));
    return out;
}

/* Of a text that stands in the answer's place. */
static OutcomeVec outcomes_of(Session *learner, Session *model, const Frame *frame,
                              const char *text) {
    const char *name;
    OutcomeVec out = {0};
    switch (kind_of(frame->answer, &name)) {
    case ENTRY_COMMAND: vec_push(&out, probe_command(learner, text)); break;
    case ENTRY_EXPR:
        if (!frame->tries.len) {
            vec_push(&out, probe(learner, text));
            break;
        } /* fall through */
    case ENTRY_VALUE:
    case ENTRY_TYPE:
    case ENTRY_IMPORT:
        enter_quietly(model, text);
        out = probe_all(model, frame);
        break;
    }
    return out;
}

static OutcomeVec outcomes_of_entry(Session *learner, const Frame *frame, const char *entry) {
    const char *name;
    OutcomeVec out = {0};
    switch (kind_of(frame->answer, &name)) {
    case ENTRY_COMMAND: vec_push(&out, probe_command(learner, entry)); break;
    case ENTRY_EXPR:
        if (!frame->tries.len) {
            Outcome last = *session_last_result(learner);
            vec_push(&out, last);
            break;
        } /* fall through */
    case ENTRY_VALUE:
    case ENTRY_TYPE:
    case ENTRY_IMPORT: out = probe_all(learner, frame); break;
    }
    return out;
}

static bool same_outcomes(const OutcomeVec *a, const OutcomeVec *b) {
    bool same = a->len == b->len;
    for (size_t i = 0; same && i < a->len; i++)
        same = same_outcome(&a->data[i], &b->data[i]);
    return same;
}

/* ---- what is said of a wrong answer ---------------------------------------------------------- */

static const char *outcome_text(const Outcome *o) {
    Str out = {0};
    if (o->status != SESSION_OK)
        return o->error == DIAG_NONE ? "an error"
                                     : fmt_text("the error %s", diag_get_info(o->error)->name);
    if (!o->has_value)
        return "()";
    ValuePrintOptions options = {.one_line = true, .max_elements = 20, .edge = 3};
    value_print(&out, o->value, &options);
    if (out.len > 60)
        return fmt_text("a %s", outcome_type(o));
    return fmt_text("%s : %s", str_text(&out), outcome_type(o));
}

/* The first thing that differs, in words; "" where the entry itself failed, which has been said. */
static const char *difference(const Frame *frame, const OutcomeVec *want, const OutcomeVec *got) {
    const char *name;
    EntryKind kind = kind_of(frame->answer, &name);
    for (size_t i = 0; i < want->len && i < got->len; i++) {
        const Outcome *a = &want->data[i], *b = &got->data[i];
        if (same_outcome(a, b))
            continue;
        if (kind == ENTRY_COMMAND)
            return "That asks about something else.";
        if (kind != ENTRY_EXPR || frame->tries.len) {
            const char *text = probes_of(frame).data[i];
            return fmt_text("`%s` gives %s; it should give %s.", text, outcome_text(b),
                            outcome_text(a));
        }
        if (b->status != SESSION_OK || a->status != SESSION_OK)
            return "";
        if (same_type(a, b))
            return "The type is right, the value is not yet.";
        bool wants_point = strcmp(outcome_type(a), "float32") == 0 &&
                           strcmp(outcome_type(b), "int32") == 0;
        if (a->has_value && b->has_value)
            return fmt_text("Its type is `%s`; `%s` is asked for.%s", outcome_type(b),
                            outcome_type(a),
                            wants_point ? " A float is written with a point: `2.0`." : "");
    }
    return "";
}

static bool is_true(const Outcome *o) {
    return o->status == SESSION_OK && o->has_value && o->value.tag == VAL_SCALAR &&
           o->value.aux == DT_BOOL && o->value.i;
}

/* Of the wrong answer that does the same; "" for none. */
static const char *reply_of_wrong(Session *learner, Session *model, const Frame *frame,
                                  const OutcomeVec *got) {
    for (size_t i = 0; i < frame->wrong.len; i++) {
        const WrongAnswer *w = &frame->wrong.data[i];
        OutcomeVec does = {0};
        if (got->len && *w->reply)
            does = outcomes_of(learner, model, frame, w->text);
        if (does.len && same_outcomes(&does, got))
            return w->reply;
    }
    return "";
}

bool judge(Session *learner, Session *model, const Frame *frame, const char *entry,
           const char **reply) {
    SessionResult last = *session_last_result(learner);
    bool is_command = entry[0] == ':';
    *reply = "";
    if (frame->error != DIAG_NONE && !is_command) {
        if (last.error == frame->error)
            return true;
        OutcomeVec got = outcomes_of_entry(learner, frame, entry);
        *reply = reply_of_wrong(learner, model, frame, &got);
        if (!**reply)
            *reply = last.error == DIAG_NONE ? "That is right, and here a mistake is asked for."
                                             : "That is another mistake than the one asked for.";
        return false;
    }
    bool ok = is_command || last.status == SESSION_OK;
    OutcomeVec got = outcomes_of_entry(learner, frame, entry);
    for (size_t i = 0; ok && i < frame->checks.len; i++) {
        Outcome check = probe(learner, frame->checks.data[i]);
        ok = is_true(&check);
    }
    bool compares = !frame->checks.len || frame->tries.len;
    OutcomeVec want = {0};
    if (compares) {
        want = outcomes_of(learner, model, frame, frame->answer);
        ok = ok && same_outcomes(&want, &got);
    }
    if (ok)
        return true;
    *reply = reply_of_wrong(learner, model, frame, &got);
    if (!**reply && compares && (is_command || last.status == SESSION_OK))
        *reply = difference(frame, &want, &got);
    return false;
}
