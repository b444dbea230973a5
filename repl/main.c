/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    mem_init();
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("relay 0.1.0");
        return 0;
    }
    return 2;
}
