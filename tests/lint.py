# SPDX-License-Identifier: Apache-2.0
"""What `make check` asks of the sources themselves: layers, sizes, headers that stand alone."""
import os
import re
import subprocess

import linkage
import lint_text
import mutate

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# Each room includes itself and those before it: linkage.LAYERS. What a room asks of a later one stands in a
# header for it: linkage.INTERFACES, each with its reason.
ROOMS = ["base", "parser", "tensor", "types", "ops", "passes", "interchange", "eval", "jit", "prelude", "stdlib",
         "repl"]
MAX_LINES = 800


def sources(endings, rooms=ROOMS + ["tests", "bench"]):
    for room in rooms:
        for directory, _, names in os.walk(os.path.join(ROOT, room)):
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(directory, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def result(report, name, wrong):
    report.add("lint " + name, "failed" if wrong else "passed", "\n".join(wrong))


def layers(report, options):
    wrong = []
    for path in sources((".c", ".h"), ROOMS):
        room = path.split("/")[0]
        for number, line in enumerate(read(path).split("\n"), 1):
            m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
            if not m:
                continue
            where, name = "%s:%d: " % (path, number), m.group(2)
            other = name.split("/")[0]
            if m.group(1) == "<":
                if re.match(r"gc(/|\.h|_)", name) and path != "base/mem.c":
                    wrong.append(where + "only base/mem.c includes " + name)
                if name.startswith("llvm-c/") and room != "jit":
                    wrong.append(where + "only jit/ includes " + name)
            elif name == "config.h":
                pass
            elif other not in ROOMS or "/" not in name:
                wrong.append(where + "spell it from the root: " + name)
            elif linkage.layer_of(name) > linkage.layer_of(path) and not any(
                    path.startswith(who) and name == header for who, _, header in linkage.INTERFACES):
                wrong.append(where + "%s stands above %s/" % (name, os.path.dirname(path)))
    result(report, "layers", wrong)


def linked(report, options):
    """Calls run downward as includes do, as the linker sees them; no state is shared by sessions."""
    objects = linkage.Objects(options.build)
    result(report, "calls", linkage.call_layers(objects))
    result(report, "statics", linkage.statics(objects))


def sizes(report, options):
    wrong = []
    for path in sources((".c", ".h", ".def", ".py", ".rly")):
        n = read(path).count("\n")
        if n > MAX_LINES:
            wrong.append("%s: %d lines, at most %d" % (path, n, MAX_LINES))
    result(report, "sizes", wrong)


def licences(report, options):
    wrong = []
    for path in sources((".c", ".h", ".def", ".py", ".am"), ROOMS + ["tests", "bench"]):
        if "SPDX-License-Identifier: Apache-2.0" not in read(path)[:200]:
            wrong.append(path + ": no SPDX line at the top")
    for path in sources(".rly", ["prelude", "stdlib"]):
        if "SPDX-License-Identifier: Apache-2.0" not in read(path)[:200]:
            wrong.append(path + ": no SPDX line at the top")
    result(report, "licences", wrong)


def headers(report, options):
    """Every header compiles alone. Templates, *_impl.h, are included with their macros set."""
    wrong = []
    config = read_flags(options)
    for path in sources(".h", ROOMS):
        if path.endswith("_impl.h"):
            continue
        command = options.cc.split() + ["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused", "-Werror",
                                        "-fsyntax-only", "-x", "c", "-I" + ROOT, "-I" + options.build,
                                        "-D_GNU_SOURCE"] + config + [os.path.join(ROOT, path)]
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if p.returncode:
            wrong.append(path + ":\n" + p.stdout.decode("utf-8", "replace")[:1500])
    result(report, "headers", wrong)


def read_flags(options):
    """The include path of LLVM, from the Makefile of the build."""
    try:
        with open(os.path.join(options.build, "Makefile")) as f:
            m = re.search(r"^LLVM_CPPFLAGS = (.*)$", f.read(), re.M)
        return m.group(1).split() if m else []
    except OSError:
        return []


def lists(report, options):
    """Every source stands in its room's local.am, sorted or not, and every entry exists."""
    wrong = []
    for room in ROOMS:
        listed = set(re.findall(r"\b%s/[\w./-]+\.(?:c|h|def|rly)\b" % room,
                                read(room + "/local.am") + read("Makefile.am")))
        there = set(sources((".c", ".h", ".def", ".rly"), [room]))
        there -= {"repl/main.c", "prelude/embed.c"}
        wrong += ["%s is not in %s/local.am" % (p, room) for p in sorted(there - listed)]
        wrong += ["%s is listed and not there" % p for p in sorted(listed - there)
                  if not os.path.exists(os.path.join(ROOT, p)) and p != "prelude/texts.c"]
    # What a distribution holds: folders would bring the objects built in them.
    listed = set(re.findall(r"[\w./-]+", "".join(read(n) for n in ("Makefile.am", "tests/local.am",
                                                                   "bench/local.am", "docs/local.am"))))
    for folder, ending in (("tests", ".py"), ("tests/property", ".py"), ("bench", ".py"), ("docs", ".md"),
                           ("docs", ".1")):
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(ending) and folder + "/" + name not in listed:
                wrong.append("%s/%s is in no local.am: it would not be distributed" % (folder, name))
    result(report, "lists", wrong)


def codes(report, options):
    """Each diagnostic has a golden test that draws it."""
    drawn = set()
    for path in sources((".rly", ".repl"), ["tests/golden", "tests/repl"]):
        drawn |= set(re.findall(r"\bR\d{4}\b", read(path)))
    known = re.findall(r"^DIAG\((R\d{4})", read("base/diag.def"), re.M)
    wrong = ["no golden test draws " + c for c in known if c not in drawn]
    wrong += ["%s stands before %s in base/diag.def" % (a, b)
              for a, b in zip(known, known[1:]) if a >= b]
    wrong += ["unknown code " + c for c in sorted(drawn - set(known))]
    result(report, "codes", wrong)


def options(report, opts):
    """Every option and subcommand of the program is in its manual page, and none else."""
    text = read("repl/cli.c")
    table = text[text.index("options[] = {"):text.index("NOPTIONS =")]
    there = set(re.findall(r'^    \{"([a-z-]+)",', table, re.M))
    manual = read("docs/relay.1").replace("\\-", "-")
    told = set(re.findall(r"^\.B --([a-z-]+)", manual, re.M)) - {"help"}
    wrong = ["--%s is not in docs/relay.1" % o for o in sorted(there - told)]
    wrong += ["docs/relay.1 tells of --%s" % o for o in sorted(told - there)]
    table = text[text.index("subcommands[] = {"):text.index("NSUBCOMMANDS =")]
    wrong += ["`relay %s` is not in docs/relay.1" % c for c in re.findall(r'^    \{"(\w+)"', table, re.M)
              if not re.search(r"^\.BI %s " % c, manual, re.M)]
    result(report, "options", wrong)


def edits(report, options):
    """The places of the edits of `make mutate` are found."""
    result(report, "edits", list(mutate.find_stale(ROOT)))


def layout(report, options):
    """The sources are as `make format` leaves them; asked where the same clang-format is."""
    try:
        version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    except OSError:
        return
    if " version 14." not in version:
        return
    files = list(sources((".c", ".h"), ROOMS + ["tests", "bench", "docs"]))
    p = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=ROOT, capture_output=True, text=True)
    places = re.findall(r"^(\S+?:\d+):\d+: error", p.stderr, re.M)
    result(report, "layout", [place + ": `make format` changes this" for place in places[:20]])


# Where an operator is asked for its name: `op->name`, what a function makes of it, or a variable that
# was set to one of these.
NAME_OF_OPERATOR = r"(?:\b(?:op|o)(?:->|\.)name\b|\b(?:op_name|op_subject|relation_subject)\()"
NAME_OF_RELATION = r"\bdef(?:->|\.)name\b"


def without_comments(text):
    """The text with comments blanked, on as many lines."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def calls(text, names):
    """(offset, arguments) of each call of one of the functions."""
    for m in re.finditer(r"\b(?:%s)\(" % names, text):
        depth, quoted, args, begin, i = 1, False, [], m.end(), m.end()
        while i < len(text) and depth:
            c = text[i]
            if c == '"' and text[i - 1] != "\\":
                quoted = not quoted
            elif not quoted:
                depth += (c in "([{") - (c in ")]}")
                if (c == "," and depth == 1) or not depth:
                    args.append(text[begin:i].strip())
                    begin = i + 1
            i += 1
        yield m.start(), args


def compared_names(text):
    """Lines that compare the name of an operator or relation, or look one up by a literal."""
    text, lines = without_comments(text), set()
    own = {m.group(1): m.start()
           for m in re.finditer(r"\*\s*(\w+)\s*=[^;={]*" + NAME_OF_OPERATOR + r"[^;]*;", text)}
    for at, args in calls(text, "strn?cmp|strcasecmp|memcmp"):
        named = [a for a in args if re.search(NAME_OF_OPERATOR, a)]
        literal = [a for a in args if a.startswith('"')]
        related = [a for a in args if re.search(NAME_OF_RELATION, a)]
        for a in args:
            begin = own.get(a)
            if begin is not None and begin < at and "\n}" not in text[begin:at]:
                named.append(a)
        if named or (related and literal):
            lines.add(text.count("\n", 0, at) + 1)
    for at, args in calls(text, "op_find|rel_find"):
        if args and '"' in args[0]:
            lines.add(text.count("\n", 0, at) + 1)
    return sorted(lines)


COMPARISONS = [  # that are to be found, or (False) are none
    (True, 'if (strcmp(op->name, "topk") == 0)'),
    (True, 'bool b = !strcmp(call->op->name, "power");'),
    (True, 'return strcmp("mean", op_name(r)) == 0;'),
    (True, 'for (i = 0; i < n; i++)\n    if (strcmp(op_name(r), strict[i]) == 0)'),
    (True, 'strncmp(op_subject(call->op), "nn.", 3)'),
    (True, 'const char *name = e->a->op->name;\nif (e->nargs == 1 && strcmp(name, "cast") == 0)'),
    (True, 'if (strcmp(r->def->name, "MatMul") == 0)'),
    (True, 'op = op_find(sym_intern("matmul"));'),
    (False, '/* strcmp(op->name, "topk") */ if (op == &op_topk)'),
    (False, 'if (strcmp(attrs_text(attrs, "mode"), "clip") == 0) report("%s", op->name);'),
    (False, 'const char *name = op->name;\nprint(name);\n}\nbool f(const char *name) { return !strcmp(name, "x"); }'),
    (False, 'if (strcmp(generic[i]->name, name->text) == 0)'),
    (False, 'op = op_find(sym_intern(text));'),
]


def operators(report, options):
    """What an operator does stands in its entry (types/op.h): nobody asks for it by its name."""
    wrong = ["the lint %s: %s" % ("misses" if found else "refuses", text)
             for found, text in COMPARISONS if bool(compared_names(text)) != found]
    for path in sources((".c", ".h"), ROOMS + ["docs"]):
        if path != "ops/ops.c":  # which finds operators by their names
            wrong += ["%s:%d: a field of the operator's entry, or `op == &op_…`, says this without its name"
                      % (path, line) for line in compared_names(read(path))]
    result(report, "operators", wrong)


def messages(report, options):
    """No code looks for the cause of a diagnostic in its text, but what lays that text out; unit tests may."""
    wrong = lint_text.self_test()
    for path in sources(".c", ROOMS + ["tests", "bench", "docs"]):
        if not path.startswith(("base/diag", "tests/unit/")):
            wrong += ["%s:%d: a diagnostic's text is searched: %s" % (path, line, code)
                      for line, code in lint_text.searches(read(path))]
    result(report, "messages", wrong)


CHECKS = [layers, linked, sizes, licences, headers, lists, codes, options, edits, layout, operators, messages]
