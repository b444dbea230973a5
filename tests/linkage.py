# SPDX-License-Identifier: Apache-2.0
"""What the linker sees of the layers: calls between rooms, and state that is no session's."""
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# Each room, and each room in a room, uses itself and those before it.
LAYERS = ["base", "parser", "tensor", "types/type", "types/solve", "types/core", "types/infer", "types/mend",
          "ops/recipe", "ops/relate", "ops", "passes", "passes/reverse", "interchange", "eval", "jit", "prelude", "stdlib",
          "repl/line", "repl/plot", "repl"]
# What stands directly in types/ is the interface below; the reference is an engine beside the machine, which
# hands it the items it is to run, and takes values and builtins from it.
SAME_AS = {"types": "types/solve", "eval/reference": "eval"}

# What a room asks of a later one, declared in a header for it: (who, whom, the header): the reason.
INTERFACES = {
    ("types/", "ops/", "types/op.h"):
        "programs call operators, which are entries of ops/: their table, and those that a form of the language calls",
    ("passes/", "passes/reverse/pass.c", "passes/pass.h"):
        "the table of passes lists the one that makes derivatives code",
    ("eval/", "jit/launch.c", "jit/jit.h"):
        "kernels are an engine that may be missing: the evaluator asks for it and goes on without",
}

# Variables that are the process's and no session's: file -> (names, the reason).
PROCESS = {
    "repl/api.c": ({"library"}, "the thread that all sessions of relay.h share"),
    "base/diag.c": ({"bug_handler"}, "what a bug of ours does: set by tests, once"),
    "base/map.c": ({"storages"}, "memory of maps that are over, for the next ones"),
    "base/mem.c": ({"cell_kind", "done", "heap_limit", "lists", "nroots_callbacks", "old_push_other_roots", "oom_handler",
                    "pins", "roots_callbacks", "roots_callbacks_cap", "stack_low", "stack_most", "suspended"},
                   "the collector is the process's"),
    "base/symbol.c": ({"table", "table_cap", "table_len"}, "the table of symbols"),
    "tensor/spare.c": ({"spares"}, "small tensors that wait to serve again, for all sessions"),
    "tensor/buffer.c": ({"pool"}, "freed buffers, which the collector frees for all sessions"),
    "tensor/packed.c": ({"all"}, "copies of buffers, dropped when memory is short, whose ever they are"),
    "types/type/type.c": ({"cells", "constant_allocates", "constant_dtypes", "constant_error", "constant_pure",
                           "constant_rank0", "constant_scalars", "constant_string", "constant_unit", "next"},
                          "constants, handed out as Type *; ids are unique in the process; free memory"),
    "types/core/core.c": ({"cells", "last"}, "free memory; numbers of walks, each of which is one in the process"),
    "ops/ops.c": ({"ready", "table"}, "the table of operators, sorted once"),
    "ops/elementwise.c": ({"programs"}, "scalar programs of operators, built once and then constant"),
    "eval/stack.c": ({"running"}, "for the handler of a signal: whose stack it came upon, by thread"),
    "jit/cpu.c": ({"cpu"}, "what the processor is, found once"),
    "jit/llvm.c": ({"api", "end_program", "state", "version"}, "LLVM's own state is the process's"),
    "repl/line/terminal.c": ({"cont_before", "ending_before", "found", "int_before", "is_raw", "ntyped", "typed",
                              "was_interrupted", "was_stopped", "was_woken", "winch_before"},
                             "for the handlers of signals; the keys that wait: there is one terminal"),
    "repl/plot/cairo.c": ({"cairo", "is_open"}, "the library that draws, opened once"),
    "repl/cli.c": ({"caret_written", "current", "interrupted", "output_broken"}, "for the handlers of signals"),
}

MIN_CALLS = 3000  # there are about 5,000: fewer, and the objects were not read
MIN_OBJECTS = 150


class Objects:
    """What the objects of a build define, ask for and keep."""

    def __init__(self, build):
        self.defined, self.asked, self.kept, self.files = {}, [], [], set()
        paths = {}
        for room in sorted({layer.split("/")[0] for layer in LAYERS}):
            for directory, _, names in os.walk(os.path.join(build, room)):
                for name in names:
                    source = os.path.relpath(os.path.join(directory, name), build)[:-2] + ".c"
                    source = source.replace("librelayjit_so-", "")
                    if name.endswith(".o") and os.path.exists(os.path.join(ROOT, source)):
                        paths[os.path.join(directory, name)] = source
        if not paths:
            return
        lines = subprocess.run(["nm", "-A", "--format=sysv"] + sorted(paths), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, universal_newlines=True).stdout.split("\n")
        for line in lines:
            fields = [f.strip() for f in line.split("|")]
            if len(fields) != 7:
                continue
            path, _, symbol = fields[0].rpartition(":")
            if path not in paths:
                continue
            source, kind, section = paths[path], fields[2], fields[6]
            self.files.add(source)
            if kind in "TDRBC":
                self.defined[symbol] = source
            elif kind == "U":
                self.asked.append((source, symbol))
            changes = kind in "bBdDC" and not section.startswith(".data.rel.ro")
            if changes and fields[3] in ("OBJECT", "TLS") and not symbol.startswith("_"):
                self.kept.append((source, re.sub(r"\.\d+$", "", symbol)))

    def calls(self):
        """(the file that calls, the file called, the name), of different files."""
        for source, symbol in self.asked:
            if self.defined.get(symbol, source) != source:
                yield source, self.defined[symbol], symbol


def layer_of(path):
    """A room in a room that is not named here is above everything: nothing may call it until it is."""
    room = os.path.dirname(path)
    room = SAME_AS.get(room, room)
    return LAYERS.index(room) if room in LAYERS else len(LAYERS)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def declared_in(header):
    """The names a header has outside of its comments; OP(add) of a table it includes is op_add."""
    text = re.sub(r"/\*.*?\*/", "", read(header), flags=re.S)
    tables = "".join(read(t) for t in re.findall(r'#include "([\w/]+\.def)"', text))
    return set(re.findall(r"\w+", text)) | {"op_" + name for name in re.findall(r"\bOP\((\w+)\)", tables)}


def upward(calls):
    """Those that run upward and through no interface, in words; and which interfaces were used."""
    wrong, used = [], set()
    declared = {header: declared_in(header) for _, _, header in INTERFACES}
    for source, target, symbol in sorted(set(calls)):
        if layer_of(target) <= layer_of(source):
            continue
        for who, called, header in INTERFACES:
            if source.startswith(who) and target.startswith(called) and symbol in declared[header]:
                used.add((who, called, header))
                break
        else:
            wrong.append("%s calls %s of %s, which stands above it" % (source, symbol, target))
    return wrong, used


def call_layers(objects):
    calls = list(objects.calls())
    wrong, used = upward(calls)
    if len(calls) < MIN_CALLS or len(objects.files) < MIN_OBJECTS:
        wrong.append("only %d calls between %d files were seen: are the objects there, and is nm?"
                     % (len(calls), len(objects.files)))
    seen = {layer_of(source) for source, _, _ in calls}
    wrong += ["nothing in %s/ calls anything" % room for i, room in enumerate(LAYERS)
              if i not in seen and room not in ("base", "prelude", "stdlib")]
    wrong += ["%s to %s: nobody calls through %s" % key for key in sorted(set(INTERFACES) - used)]
    # The check itself: a call turned round is seen, and one through an interface of another's is.
    for source, target, _ in calls:
        if layer_of(source) > layer_of(target) and not upward([(target, source, "no_such_function")])[0]:
            wrong.append("a call of %s by %s would not be seen" % (source, target))
    if not upward([("types/infer/infer.c", "ops/ops.c", "no_such_function")])[0]:
        wrong.append("a call past an interface would not be seen")
    return wrong


# Of --enable-gc-stress alone.
STRESS = {("base/mem.c", "count"), ("base/mem.c", "collections")}


def statics(objects):
    wrong = ["%s keeps `%s` for the whole process: state belongs to a session" % (source, name)
             for source, name in sorted(set(objects.kept) - STRESS) if name not in PROCESS.get(source, ((), ""))[0]]
    there = set(objects.kept)
    wrong += ["%s no longer keeps `%s`" % (source, name) for source in sorted(PROCESS)
              for name in sorted(PROCESS[source][0]) if source in objects.files and (source, name) not in there]
    if len(there) < 10:
        wrong.append("only %d variables were seen: are the objects there, and is nm?" % len(there))
    return wrong
