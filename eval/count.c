/* SPDX-License-Identifier: Apache-2.0 */
/* How many instructions the machine ran: InterpOptions.counts. The loop of run.c counts where in->counts is set. */
#include "eval/operands.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct Line {
    int opcode;
    uint64_t times;
} Line;

/* These prepare code, and are no part of what it does. */
static bool is_preparation(int opcode) { return opcode == CODE_RESOLVE || opcode == CODE_COUNT; }

static int compare(const void *a, const void *b) {
    const Line *x = a, *y = b;
    if (x->times != y->times)
        return x->times < y->times ? 1 : -1;
    return x->opcode - y->opcode;
}

void count_init(Interp *in) {
    if (in->options.counts)
        in->counts = mem_new_n(uint64_t, ALL_OPCODES);
}

uint64_t interp_count(const Interp *in) {
    uint64_t all = 0;
    for (int i = 0; in->counts && i < ALL_OPCODES; i++)
        all += is_preparation(i) ? 0 : in->counts[i];
    return all;
}

void interp_print_counts(const Interp *in, Str *out) {
    Line lines[OPCODE_COUNT];
    for (int i = 0; i < OPCODE_COUNT; i++)
        lines[i] = (Line){.opcode = i};
    for (int i = 0; in->counts && i < ALL_OPCODES; i++)
        lines[plain_opcode[i]].times += is_preparation(i) ? 0 : in->counts[i];
    qsort(lines, OPCODE_COUNT, sizeof *lines, compare);
    str_printf(out, "instructions: %llu\n", (unsigned long long)interp_count(in));
    for (int i = 0; i < OPCODE_COUNT && lines[i].times; i++) {
        Str name = {0};
        for (const char *c = opcode_info[lines[i].opcode].name; *c; c++)
            str_add_char(&name, (char)tolower((unsigned char)*c));
        str_printf(out, "  %-16s %llu\n", str_text(&name), (unsigned long long)lines[i].times);
    }
}
