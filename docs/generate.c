/* SPDX-License-Identifier: Apache-2.0 */
/* docs/generate PAGE FILE: the page, with the head of FILE, on standard output. */
#include <stdio.h>
#include <string.h>

#include "docs/pages.h"
#include "repl/session_internal.h"

typedef struct Job {
    const char *name, *path;
    int status;
} Job;

static void complain(void *ctx, const char *text, size_t n) {
    (void)ctx;
    fwrite(text, 1, n, stderr);
}

static void generate(void *arg) {
    Job *job = arg;
    SessionOptions options;
    session_options_init(&options);
    options.jit = false;
    Session *s = session_new(&options);
    SessionSink sink = {complain, complain, NULL, false};
    const Page *page = page_find(job->name);
    const char *old = page_read(job->path), *why = "no such page";
    Str text = {0};
    session_set_sink(s, &sink);
    if (!old)
        why = "the file cannot be read";
    if (old && page && page_print(page, s, old, &text, &why)) {
        fwrite(text.text, 1, text.len, stdout);
        job->status = 0;
    } else {
        fprintf(stderr, "%s: %s\n", job->path, why);
    }
    session_fini(s);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: docs/generate PAGE FILE\n");
        return 2;
    }
    mem_init();
    Job job = {argv[1], argv[2], 1};
    session_with_stack(NULL, generate, &job);
    return job.status;
}
