/* SPDX-License-Identifier: Apache-2.0 */
#include "repl/commands.h"

#include "base/output.h"
#include "repl/graph.h"
#include "repl/kind.h"
#include "repl/search.h"
#include "repl/settings.h"
#include "repl/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Command {
    const char *name;
    const char *argument; /* as help shows it; "" for none */
    const char *help;
    CommandResult (*run)(Session *s, const struct Command *command, const char *argument);
} Command;

static const Command *find_command(const char *name, bool *ambiguous);
typedef CommandResult CommandFn(Session *s, const Command *command, const char *argument);
static CommandFn run_text, run_help, run_load, run_reload, run_measure, run_ir, run_quit, run_clear,
    run_history, run_save, run_set, run_shell, run_tutor, run_graph, run_step, run_bench,
    run_search, run_nan, run_trace, run_edit, run_import, run_unset;

/* Sorted. A name that ends in `!` is found only when written out. */
static const Command commands[] = {
    {"!", "COMMAND", "run a command of the shell", run_shell},
    {"asm", "EXPR", "the machine code of the kernels EXPR runs", run_text},
    {"bench", "EXPR", "run EXPR several times: the median, and the first run", run_bench},
    {"browse", "[MODULE]", "what is defined, with types", run_text},
    {"clear", "", "clear the screen; Ctrl-L does too", run_clear},
    {"doc", "NAME", "what an operator or a definition does", run_text},
    {"edit", "[NAME]", "change the last entry, or a definition, in $EDITOR", run_edit},
    {"explain", "CODE", "what a diagnostic means, as in :explain R0312", run_text},
    {"graph", "EXPR [> FILE]", "values and derivatives of EXPR; > FILE.svg or FILE.dot", run_graph},
    {"help", "[WORD]", "this list, or what has to do with WORD", run_help},
    {"history", "[N]", "the last N entries, or the last 20", run_history},
    {"import", "MODULE", "as `import MODULE` is", run_import},
    {"info", "NAME", "what NAME is; :info session for numbers", run_text},
    {"ir", "EXPR [--pass P,Q]", "the program of EXPR after passes", run_ir},
    {"kind", "TYPE", "the kind of a type", run_text},
    {"llvm", "EXPR", "the LLVM code of the kernels EXPR runs", run_text},
    {"load", "FILE", "run a file; its definitions stay", run_load},
    {"mem", "EXPR", "run EXPR and say what its tensors took", run_measure},
    {"nan", "on|off", "fail where a NaN or an infinity is made of finite numbers", run_nan},
    {"quit", "", "leave; Ctrl-D does too", run_quit},
    {"reload", "", "load the last file again", run_reload},
    {"save", "FILE", "write what was entered and worked, as a program", run_save},
    {"search", "TYPE", "what has this type, as in :search (a -> b, List[a]) -> List[b]",
     run_search},
    {"set", "[NAME VALUE]", "how values are shown, as in :set digits 4; :set lists", run_set},
    {"step", "EXPR", "walk through an evaluation, and a gradient's way back", run_step},
    {"time", "EXPR", "run EXPR and say how long it took", run_measure},
    {"trace", "", "all calls that led to the last error", run_trace},
    {"tutor", "[N]", "learn Relay by lessons; :tutor list lists them", run_tutor},
    {"type", "EXPR", "the type of EXPR, which is not run", run_text},
    {"type!", "EXPR", "the same with effects and open relations", run_text},
    {"unset", "NAME", "undo what :set NAME did", run_unset},
    {"why", "EXPR", "what the passes did with EXPR, and why they left the rest", run_text},
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

/* The questions: text in, text out. */
static CommandResult run_text(Session *s, const Command *command, const char *argument) {
    Str out = {0};
    const char *name = command->name;
    if (!*argument && name[0] != 'b') {
        session_complain(s, ":%s wants %s\n", name, command->argument);
        return COMMAND_DONE;
    }
    if (strcmp(name, "asm") == 0)
        session_llvm(s, argument, true, &out);
    else if (strcmp(name, "browse") == 0)
        session_browse(s, argument, &out);
    else if (strcmp(name, "doc") == 0)
        session_doc(s, argument, &out);
    else if (strcmp(name, "explain") == 0)
        session_explain(s, argument, &out);
    else if (strcmp(name, "info") == 0)
        session_info(s, argument, &out);
    else if (strcmp(name, "kind") == 0)
        session_kind(s, argument, &out);
    else if (strcmp(name, "llvm") == 0)
        session_llvm(s, argument, false, &out);
    else if (strcmp(name, "why") == 0)
        session_why(s, argument, &out);
    else
        session_type_of(s, argument, name[4] == '!', &out);
    bool code = strcmp(name, "asm") == 0 || strcmp(name, "llvm") == 0;
    session_say(s, code ? str_text(&out) : session_fold(s, &out));
    return COMMAND_DONE;
}

/* What one types first. Each is also its first letter alone, so `:t` is `:type` and not `:time`. */
static const char *const first_commands[] = {"doc",  "edit", "graph", "help", "info",
                                             "load", "quit", "set",   "type", "tutor"};
enum { NFIRST = sizeof first_commands / sizeof *first_commands };

static const char help_before[] =
    "An expression is evaluated and shown; `let`, `def`, `type` and `import` define. An item may "
    "go on over several lines; an empty line or Ctrl-C drops it. `it` is the last value shown. Tab "
    "completes, Ctrl-R searches the history.";
static const char help_after[] =
    "Commands may be cut short: `:t` is `:type`. `:help all` lists all of them, `:help WORD` those "
    "that have to do with a word.";

/* The name and what it does, side by side where the terminal has room, else below each other. */
static void print_help_line(Session *s, const Command *command) {
    enum { SECOND_COLUMN = 27 };
    Str line = {0};
    str_printf(&line, "  :%s %s", command->name, command->argument);
    size_t width = (size_t)session_width(s);
    if (width && SECOND_COLUMN + strlen(command->help) > width)
        str_printf(&line, "\n      %s\n", command->help);
    else
        str_printf(&line, "%*s%s\n", (int)(SECOND_COLUMN - line.len), "", command->help);
    session_say(s, session_fold(s, &line));
}

/* Commands that have a word in their name or help; else what a name of that word does. */
static void help_with(Session *s, const char *word) {
    bool found = false;
    word += *word == ':';
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (strcasestr(commands[i].name, word) || strcasestr(commands[i].help, word)) {
            print_help_line(s, &commands[i]);
            found = true;
        }
    Str doc = {0};
    bool known = env_find(session_env(s), sym_intern(word), SIGIL_NONE).kind != BIND_NONE;
    if ((known || !found) && session_doc(s, word, &doc))
        session_say(s, session_fold(s, &doc));
}

static CommandResult run_help(Session *s, const Command *command, const char *argument) {
    (void)command;
    bool all = strcmp(argument, "all") == 0;
    if (*argument && !all) {
        help_with(s, argument);
        return COMMAND_DONE;
    }
    if (!all)
        session_say(s, fmt_text("%s\n", session_fill(s, help_before)));
    for (size_t i = 0; i < (all ? NCOMMANDS : NFIRST); i++) {
        bool ambiguous;
        print_help_line(s, all ? &commands[i] : find_command(first_commands[i], &ambiguous));
    }
    if (!all)
        session_say(s, fmt_text("\n%s", session_fill(s, help_after)));
    return COMMAND_DONE;
}

static CommandResult run_load(Session *s, const Command *command, const char *argument) {
    (void)command;
    size_t n = strlen(argument);
    if (n > 1 && argument[0] == '"' && argument[n - 1] == '"')
        argument = mem_strndup(argument + 1, n - 2);
    if (!*argument)
        session_complain(s, ":load wants FILE\n");
    else
        session_load(s, argument);
    return COMMAND_DONE;
}

static CommandResult run_import(Session *s, const Command *command, const char *argument) {
    if (*argument) {
        const char *entry = fmt_text("import %s", argument);
        session_enter(s, entry, strlen(entry), false);
    } else {
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    }
    return COMMAND_DONE;
}

static CommandResult run_reload(Session *s, const Command *command, const char *argument) {
    (void)command;
    (void)argument;
    session_reload(s);
    return COMMAND_DONE;
}

static CommandResult run_measure(Session *s, const Command *command, const char *argument) {
    if (!*argument)
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    else
        (command->name[0] == 'm' ? session_mem : session_time)(s, argument);
    return COMMAND_DONE;
}

static CommandResult run_ir(Session *s, const Command *command, const char *argument) {
    Str out = {0};
    VEC(const char *) passes = {0};
    const char *flag = strstr(argument, "--pass");
    if (flag) {
        const char *p = flag + strlen("--pass");
        while (*p) {
            p += strspn(p, " =,");
            size_t n = strcspn(p, " ,");
            if (n)
                vec_push(&passes, mem_strndup(p, n));
            p += n;
        }
        argument = mem_strndup(argument, (size_t)(flag - argument));
    }
    if (!*argument)
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    else if (session_ir(s, argument, passes.data, (int)passes.len, &out))
        session_say(s, str_text(&out));
    return COMMAND_DONE;
}

/* What stands behind the last ` > ` of an argument that ends as a file of `kinds` does; NULL for none. */
static const char *find_file(const char *argument, const char **end) {
    const char *found = NULL;
    for (const char *at = argument; (at = strstr(at, " > ")); at += 3)
        found = at;
    if (!found || strchr(found + 3, ' ') || !strrchr(found, '.'))
        return NULL;
    *end = found;
    return found + 3;
}

static CommandResult run_graph(Session *s, const Command *command, const char *argument) {
    Str out = {0};
    const char *end, *file = find_file(argument, &end);
    const char *extension = file ? strrchr(file, '.') : "";
    bool svg = strcmp(extension, ".svg") == 0, dot = strcmp(extension, ".dot") == 0;
    if (svg || dot)
        argument = mem_strndup(argument, (size_t)(end - argument));
    if (!*argument) {
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
        return COMMAND_DONE;
    }
    if (!graph_print(s, argument, svg ? GRAPH_SVG : dot ? GRAPH_DOT : GRAPH_TEXT, &out))
        return COMMAND_DONE;
    if (!svg && !dot) {
        session_say(s, str_text(&out));
        return COMMAND_DONE;
    }
    Output to;
    output_open(&to, file);
    output_add(&to, str_text(&out), out.len);
    if (!output_close(&to))
        session_complain(s, "cannot write `%s`: %s\n", file, strerror(to.why));
    return COMMAND_DONE;
}

static CommandResult run_bench(Session *s, const Command *command, const char *argument) {
    Str out = {0};
    if (!*argument)
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    else if (session_bench(s, argument, &out))
        session_say(s, session_fold(s, &out));
    return COMMAND_DONE;
}

static CommandResult run_search(Session *s, const Command *command, const char *argument) {
    Str out = {0};
    if (!*argument)
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    else if (search_type(s, argument, &out))
        session_say(s, session_fold(s, &out));
    return COMMAND_DONE;
}

static CommandResult run_step(Session *s, const Command *command, const char *argument) {
    if (*argument)
        step_run(s, argument, isatty(STDIN_FILENO) && session_is_at_prompt(s));
    else
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    return COMMAND_DONE;
}

static CommandResult run_nan(Session *s, const Command *command, const char *argument) {
    if (strcmp(argument, "on") == 0 || strcmp(argument, "off") == 0)
        session_hunt_nan(s, argument[1] == 'n');
    else if (*argument)
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    else
        session_say(s, session_hunts_nan(s) ? "nan is on\n" : "nan is off\n");
    return COMMAND_DONE;
}

static CommandResult run_trace(Session *s, const Command *command, const char *argument) {
    (void)command;
    (void)argument;
    Str out = {0};
    str_add(&out, session_last_trace(s));
    if (!out.len)
        str_add(&out, "no program has failed yet\n");
    session_say(s, session_fold(s, &out));
    return COMMAND_DONE;
}

static CommandResult run_edit(Session *s, const Command *command, const char *argument) {
    (void)s;
    (void)command;
    (void)argument;
    return COMMAND_EDIT;
}

static CommandResult run_quit(Session *s, const Command *command, const char *argument) {
    (void)s;
    (void)command;
    (void)argument;
    return COMMAND_QUIT;
}

static CommandResult run_clear(Session *s, const Command *command, const char *argument) {
    (void)s;
    (void)command;
    (void)argument;
    return COMMAND_CLEAR;
}

static CommandResult run_tutor(Session *s, const Command *command, const char *argument) {
    (void)s;
    (void)command;
    (void)argument;
    return COMMAND_TUTOR;
}

static CommandResult run_history(Session *s, const Command *command, const char *argument) {
    (void)s;
    if (argument[strspn(argument, "0123456789")] == '\0')
        return COMMAND_HISTORY;
    session_complain(s, ":%s wants a number, not `%s`\n", command->name, argument);
    return COMMAND_DONE;
}

static CommandResult run_save(Session *s, const Command *command, const char *argument) {
    (void)s;
    if (*argument)
        return COMMAND_SAVE;
    session_complain(s, ":%s wants %s\n", command->name, command->argument);
    return COMMAND_DONE;
}

static CommandResult run_set(Session *s, const Command *command, const char *argument) {
    (void)command;
    settings_change(s, argument);
    return COMMAND_DONE;
}

static CommandResult run_unset(Session *s, const Command *command, const char *argument) {
    if (*argument)
        settings_reset(s, argument);
    else
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
    return COMMAND_DONE;
}

static CommandResult run_shell(Session *s, const Command *command, const char *argument) {
    (void)s;
    if (!*argument) {
        session_complain(s, ":%s wants %s\n", command->name, command->argument);
        return COMMAND_DONE;
    }
    fflush(stdout);
    int status = system(argument);
    if (status == -1)
        session_complain(s, "the shell cannot be run\n");
    else if (WIFEXITED(status) && WEXITSTATUS(status))
        session_complain(s, "exit status %d\n", WEXITSTATUS(status));
    return COMMAND_DONE;
}

/* The command of this name, or the only one that begins so. A single letter is one of the first commands. */
static const Command *find_command(const char *name, bool *ambiguous) {
    const Command *found = NULL;
    *ambiguous = false;
    for (size_t i = 0; i < NFIRST && name[0] && !name[1]; i++)
        if (first_commands[i][0] == name[0]) {
            name = first_commands[i];
            break;
        }
    size_t n = strlen(name);
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    for (size_t i = 0; i < NCOMMANDS && n; i++)
        if (strncmp(commands[i].name, name, n) == 0 && !strchr(commands[i].name, '!')) {
            *ambiguous |= found != NULL;
            found = &commands[i];
        }
    return *ambiguous ? NULL : found;
}

CommandResult command_run(Session *s, const char *line, const char **rest) {
    line += 1 + strspn(line + 1, " \t");
    size_t n = *line == '!' ? 1 : strcspn(line, " \t(");
    const char *name = mem_strndup(line, n);
    const char *argument = line + n + strspn(line + n, " \t");
    size_t end = strlen(argument);
    while (end && strchr(" \t\r\n", argument[end - 1]))
        end--;
    argument = *rest = mem_strndup(argument, end);
    bool ambiguous;
    const Command *command = find_command(name, &ambiguous);
    fflush(stdout);
    if (command)
        return command->run(s, command, argument);
    if (ambiguous) {
        Str fits = {0};
        for (size_t i = 0; i < NCOMMANDS; i++)
            if (strncmp(commands[i].name, name, n) == 0 && !strchr(commands[i].name, '!'))
                str_printf(&fits, "%s:%s", fits.len ? ", " : "", commands[i].name);
        session_complain(s, "`:%s` may be %s\n", name, str_text(&fits));
        return COMMAND_DONE;
    }
    const Symbol *names[NCOMMANDS];
    for (size_t i = 0; i < NCOMMANDS; i++)
        names[i] = sym_intern(commands[i].name);
    const Symbol *nearest = sym_find_nearest(sym_intern(name), names, NCOMMANDS, NULL);
    if (nearest)
        session_complain(s, "there is no command `:%s`; did you mean `:%s`?\n", name,
                         nearest->text);
    else
        session_complain(s, "there is no command `:%s`; :help lists them\n", name);
    return COMMAND_DONE;
}

void command_complete(const char *text, size_t len, TextVec *out) {
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (strncmp(commands[i].name, text + 1, len - 1) == 0)
            vec_push(out, fmt_text(":%s", commands[i].name));
}

const char *command_full_name(const char *name) {
    bool ambiguous;
    const Command *command = find_command(name, &ambiguous);
    return command ? command->name : NULL;
}

const char *command_help(const char *name) {
    bool ambiguous;
    const Command *command = find_command(name, &ambiguous);
    return command ? command->help : NULL;
}

const char *command_pointer(Session *s, const char *line) {
    static const struct {
        const char *word, *answer;
    } pointers[] = {
        {"exit", "Ctrl-D or :quit leaves"},
        {"exit()", "Ctrl-D or :quit leaves"},
        {"help", ":help lists the commands, :doc NAME explains a name"},
        {"quit", "Ctrl-D or :quit leaves"},
        {"quit()", "Ctrl-D or :quit leaves"},
    };
    if (line[0] == '?')
        return ":doc NAME explains a name, :info NAME says what it is";
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (strcmp(line, pointers[i].word) == 0) {
            size_t n = strcspn(line, "(");
            bool bound = env_find(session_env(s), sym_intern_n(line, n), SIGIL_NONE).kind !=
                         BIND_NONE;
            return bound ? NULL : pointers[i].answer;
        }
    return NULL;
}

static void drop_text(void *ctx, const char *text, size_t n) { (void)ctx, (void)text, (void)n; }

void command_enter_quietly(Session *s, const char *text) {
    SessionSink sink = session_swap_sink(s, &(SessionSink){0});
    SessionSink quiet = {drop_text, sink.diag, sink.ctx, true};
    session_set_sink(s, &quiet);
    command_enter_lines(s, text, false);
    session_set_sink(s, &sink);
}

void command_enter_lines(Session *s, const char *text, bool shows) {
    Str entry = {0};
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        const char *argument;
        n = strcspn(text, "\n");
        const char *line = mem_strndup(text, n);
        if (shows)
            session_say(s, fmt_text("%s%s\n", entry.len ? "   ..> " : "tutor> ", line));
        str_printf(&entry, "%s%s", entry.len ? "\n" : "", line);
        if (line[0] == ':' && entry.len == n)
            command_run(s, line, &argument);
        else if (text[n] && session_read_status(s, str_text(&entry), entry.len) == PARSE_INCOMPLETE)
            continue;
        else if (entry.text[strspn(entry.text, " \t\n")])
            session_enter(s, str_text(&entry), entry.len, false);
        entry = (Str){0};
    }
}
