/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of `relay explain`: the bad program draws its code, the good one no error. */
#include "base/diag.h"
#include "repl/session.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

static DiagCode code;

static void write_file(const char *name, const char *bytes, size_t n) {
    FILE *f = fopen(name, "wb");
    if (f) {
        fwrite(bytes, 1, n, f);
        fclose(f);
    }
}

/* Version 1.0 of the format: six bytes and the version, the length of the header, the header. */
static void write_npy(const char *name, const char *dtype, const char *shape, const char *bytes,
                      size_t n) {
    Str s = {0};
    char header[118];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype,
             shape);
    str_add_n(&s, "\x93NUMPY\x01\x00\x76\x00", 10);
    str_add(&s, header);
    while (s.len < 127)
        str_add_char(&s, ' ');
    str_add_char(&s, '\n');
    str_add_n(&s, bytes, n);
    write_file(name, s.text, s.len);
}

/* Models as tests/onnx/make.py writes them: y = abs(x), of a float32 and of a string. */
static const char whole_model[] = "\010\010\022\007\155\141\153\145\056\160\171\072\064\012\015\012"
                                  "\001\170\022\001\171\032\000\042\003\101\142\163\022\001\147\132"
                                  "\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\001"
                                  "\142\017\012\001\171\022\012\012\010\010\001\022\004\012\002\010"
                                  "\001\102\004\012\000\020\021";
static const char strings_model[] =
    "\010\010\022\007\155\141\153\145\056\160\171\072\064\012\015\012"
    "\001\170\022\001\171\032\000\042\003\101\142\163\022\001\147\132"
    "\017\012\001\170\022\012\012\010\010\010\022\004\012\002\010\001"
    "\142\017\012\001\171\022\012\012\010\010\010\022\004\012\002\010"
    "\001\102\004\012\000\020\021";

/* The files that the examples name, in a folder of their own. */
static void make_files(char *folder) {
    if (!mkdtemp(folder) || chdir(folder) != 0)
        check_fail(__FILE__, __LINE__, "no folder %s", folder);
    static const char one[4] = {0, 0, (char)0x80, 0x3f};
    write_file("broken.npy", "\x93NUMPY\x01\x00", 8);
    write_npy("whole.npy", "<f4", "(1,)", one, 4);
    write_npy("bytes.npy", "|u1", "(1, 4)", one, 4);
    write_file("words.csv", "1,2\n3,four\n", 11);
    write_file("numbers.csv", "1,2\n3,4\n", 8);
    write_file("cycle.rly", "import cycle;", 13);
    write_file("whole.onnx", whole_model, sizeof whole_model - 1);
    write_file("strings.onnx", strings_model, sizeof strings_model - 1);
    write_file("broken.onnx", whole_model, sizeof whole_model / 2);
}

static void remove_files(const char *folder) {
    static const char *const names[] = {"broken.npy",  "whole.npy",    "bytes.npy",  "words.csv",
                                        "numbers.csv", "f.npy",        "cycle.rly",  "example.rly",
                                        "whole.onnx",  "strings.onnx", "broken.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(names[i]);
    if (chdir("/") != 0 || rmdir(folder) != 0)
        printf("left over: %s\n", folder);
}

/* An example as a program: its symbols for a NUL byte and for a bad one. */
static const char *as_bytes(const char *text, size_t *n) {
    Str s = {0};
    while (*text) {
        size_t symbol = strncmp(text, "\u2400", 3) == 0 || strncmp(text, "\uFFFD", 3) == 0 ? 3 : 0;
        str_add_char(&s, !symbol ? *text : text[1] == '\x90' ? '\0' : '\xff');
        text += symbol ? symbol : 1;
    }
    *n = s.len;
    return str_text(&s);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static void ignore(void *ctx, const char *text, size_t n) {
    (void)ctx;
    (void)text;
    (void)n;
}

static void collect(void *ctx, const char *text, size_t n) { str_add_n(ctx, text, n); }

/* What a program has to say. */
static const char *run(const char *text) {
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    options.hunts_nan = code == DIAG_R0615;
    options.diag_style = DIAG_STYLE_SHORT;
    options.memory_bytes = 64 << 20; /* the program that uses all of it comes to an end */
    if (code == DIAG_R0907)          /* only its list has it, which is an answer */
        options.diag_style = DIAG_STYLE_JSON;
    Session *s = session_new(&options);
    Str said = {0};
    if (!s)
        return "no session";
    SessionSink sink = {code == DIAG_R0907 ? collect : ignore, collect, &said, true};
    session_set_sink(s, &sink);
    size_t n;
    const char *program = as_bytes(text, &n);
    if (code == DIAG_R0507 || code == DIAG_R0907) {
        write_file("example.rly", program, n);
        if (code == DIAG_R0507)
            session_run_file(s, "example.rly", (const char *const[]){"x=random"}, 1);
        else
            session_check_file(s, "example.rly", true);
    } else if (code == DIAG_R0906) { /* only the prompt redefines */
        for (const char *line = program; *line; line += strcspn(line, "\n"), line += *line != 0)
            session_enter(s, line, strcspn(line, "\n"), false);
    } else {
        session_run_text(s, "example", program, n, false);
    }
    session_fini(s);
    return str_text(&said);
}

TEST(example) {
    const DiagInfo *info = diag_get_info(code);
    check_tried();
    if (info->bad[0]) {
        const char *said = run(info->bad);
        if (count(said, "[R") + count(said, "\"code\":\"R") != 1 ||
            count(said, fmt_text("[%s]", info->name)) +
                    count(said, fmt_text("\"code\":\"%s\"", info->name)) !=
                1)
            check_fail(__FILE__, __LINE__, "the bad program says\n%s", said);
    } else if (code != DIAG_R0018) { /* of the command line */
        check_fail(__FILE__, __LINE__, "there is no bad program");
    }
    if (info->good[0]) {
        const char *said = run(info->good);
        if (*said)
            check_fail(__FILE__, __LINE__, "the good program says\n%s", said);
    }
}

int main(void) {
    char folder[] = "/tmp/relay-explain-XXXXXX";
    make_files(folder);
    for (int c = DIAG_NONE + 1; c < DIAG_COUNT; c++) {
        code = (DiagCode)c;
        check_run(diag_get_info(code)->name, test_example);
    }
    remove_files(folder);
    return check_result();
}
