/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the program `relay` (LANGUAGE §7): subcommands and options are tables. */
#ifndef REPL_CLI_H
#define REPL_CLI_H

/* The exit status: 0; 1 after an error in the program; 2 for wrong usage. */
int cli_main(int argc, char **argv);

#endif
