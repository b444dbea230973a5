/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer on the reader: any bytes give a module, *incomplete*, or diagnostics whose spans lie in
 * the text. The first byte chooses file or prompt, and with or without a session.
 * tests/fuzz/run.sh builds and runs it. */
#include "base/mem.h"
#include "parser/parser.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STACK_BYTES = 256 << 20 };

typedef struct Input {
    const uint8_t *data;
    size_t size;
} Input;

static void require(bool holds) {
    if (!holds)
        abort();
}

static void check_span(const Source *source, Span span) {
    require(!span.source ||
            (span.source == source && span.begin <= span.end && span.end <= source->len));
}

/* A session in which every third name is a value, every third a definition. */
static KnownName find_global(void *ctx, const Symbol *name) {
    (void)ctx;
    return name->hash % 3 == 0 ? KNOWN_NOTHING : name->hash % 3 == 1 ? KNOWN_VALUE : KNOWN_DEF;
}

static void read_input(void *arg) {
    const Input *in = arg;
    ParseScope scope = {find_global, NULL};
    ParseOptions options = {.prompt = in->size && (in->data[0] & 1)};
    if (in->size && (in->data[0] & 2))
        options.scope = &scope;
    const char *text = (const char *)in->data + (in->size > 0);
    Source *source = source_new("fuzz", text, in->size - (in->size > 0), 0);
    Diags diags = {0};
    Module *module = NULL;
    ParseStatus status = parse_module(source, &options, &diags, &module);
    require(module != NULL);
    require((status == PARSE_FAILED) == (diags.errors > 0));
    require(status != PARSE_INCOMPLETE || options.prompt);
    uint32_t end = 0;
    for (size_t i = 0; i < module->items.len; i++) {
        check_span(source, module->items.data[i]->span);
        require(module->items.data[i]->span.begin >= end);
        end = module->items.data[i]->span.end;
    }
    for (size_t i = 0; i < module->comments.len; i++)
        check_span(source, module->comments.data[i].span);
    Str out = {0};
    for (size_t i = 0; i < diags.list.len; i++) {
        check_span(source, diags.list.data[i]->primary.span);
        diag_print(&out, diags.list.data[i], &(DiagLook){.style = DIAG_STYLE_FULL});
    }
    Diags type_diags = {0};
    require((parse_type(source, &type_diags) == NULL) == (type_diags.errors > 0));
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    mem_init();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in = {data, size};
    if (mem_stack_left() > STACK_BYTES / 2) /* run.sh gives the process such a stack */
        read_input(&in);
    else
        mem_call_on_stack(STACK_BYTES, read_input, &in);
    return 0;
}
