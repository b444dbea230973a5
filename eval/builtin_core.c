/* SPDX-License-Identifier: Apache-2.0 */
/* Output, failure, the clock, the script's arguments, text files. */
#include "base/output.h"
#include "eval/builtin_all.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "eval/machine.h"

/* Writes a String as it is and everything else as it is shown. False when it was interrupted. */
static bool print_plain(const BuiltinCall *call, bool one_line, Str *out) {
    Value v = call->args[0];
    if (v.tag == VAL_STRING) {
        const String *s = v.p;
        str_add_n(out, s->text, s->len);
    } else {
        ValuePrintOptions options = {.one_line = one_line,
                                     .digits = call->in->digits,
                                     .interrupt = interp_interrupt_flag(call->in)};
        value_print(out, v, &options);
    }
    return !builtin_interrupted(call);
}

bool builtin_print(const BuiltinCall *call, Value *out) {
    Str text = {0};
    if (!print_plain(call, false, &text))
        return false;
    str_add_char(&text, '\n');
    call->in->write(call->in->write_ctx, text.text, text.len);
    *out = value_unit();
    return true;
}

bool builtin_show(const BuiltinCall *call, Value *out) {
    Str text = {0};
    if (!print_plain(call, true, &text))
        return false;
    *out = value_string(str_text(&text), text.len);
    return true;
}

bool builtin_error(const BuiltinCall *call, Value *out) {
    const String *s = call->args[0].p;
    (void)out;
    builtin_fail(call, DIAG_R0611, "%.*s", s->len > 4000 ? 4000 : (int)s->len, s->text);
    return false;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool builtin_clock(const BuiltinCall *call, Value *out) {
    (void)call;
    *out = value_float(DT_F64, now());
    return true;
}

bool builtin_seed(const BuiltinCall *call, Value *out) {
    *out = value_int(DT_I64, (int64_t)call->in->options.seed);
    return true;
}

bool builtin_script_args(const BuiltinCall *call, Value *out) {
    int n = call->in->argc;
    Value *items = mem_new_n(Value, n + 1);
    for (int i = 0; i < n; i++)
        items[i] = value_string(call->in->argv[i], strlen(call->in->argv[i]));
    *out = builtin_list(call, items, (size_t)n);
    return true;
}

/* ---- text files ------------------------------------------------------------------------------ */

bool builtin_read_text(const BuiltinCall *call, Value *out) {
    const String *path = call->args[0].p;
    const volatile int *interrupt = interp_interrupt_flag(call->in);
    Str text = {0};
    char part[16384];
    int fd;
    ssize_t n = 0;
    do /* repeat a call that a signal cut short, but not after Ctrl-C */
        fd = open(path->text, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR && !*interrupt);
    if (fd >= 0)
        while ((n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR && !*interrupt))
            str_add_n(&text, part, n > 0 ? (size_t)n : 0);
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (*interrupt)
        return false;
    if (fd < 0 || n < 0) {
        builtin_fail(call, DIAG_R0501, "cannot read `%s`: %s", path->text, strerror(why));
        return false;
    }
    *out = value_string(str_text(&text), text.len);
    return true;
}

/* read_line(): without its line break; None at the end. What is there before the end is a line, too. Whoever
 * answers may wait for what was printed, which is written out first. */
bool builtin_read_line(const BuiltinCall *call, Value *out) {
    Str line = {0};
    fflush(stdout);
    char part[16384];
    bool ended = false;
    while (!ended && fgets(part, sizeof part, stdin)) {
        size_t n = strlen(part);
        ended = n && part[n - 1] == '\n';
        str_add_n(&line, part, n - ended);
    }
    if (builtin_interrupted(call)) {
        clearerr(stdin);
        return false;
    }
    *out = ended || line.len ? builtin_some(call, value_string(str_text(&line), line.len))
                             : builtin_none(call);
    return true;
}

bool builtin_write_text(const BuiltinCall *call, Value *out) {
    const String *text = call->args[0].p, *path = call->args[1].p;
    Output file;
    output_open(&file, path->text);
    output_add(&file, text->text, text->len);
    if (!output_close(&file)) {
        builtin_fail(call, DIAG_R0505, "cannot write `%s`: %s", path->text, strerror(file.why));
        return false;
    }
    *out = value_unit();
    return true;
}
