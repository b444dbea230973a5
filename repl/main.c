/* SPDX-License-Identifier: Apache-2.0 */
/* The program. All it does is in repl/cli.h; here alone the process ends. */
#include "base/mem.h"
#include "repl/cli.h"

int main(int argc, char **argv) {
    mem_init();
    return cli_main(argc, argv);
}
