#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vmap` of every operator of the table against its loop: the same bits, for float32 and float64, with rows in each of the
operator's arguments, in some of them and in all.

The calls are those of the examples in docs/operators.md, a tensor of three rows in the place of an argument: the example's
own, one near it, and the first again. Each runs by the reference evaluator and without passes, which run the loop, and with them.
`:why` says of each whether it ran all rows at once; where an operator does not, it stands in LOOPS with its reason,
and nothing else may. tests/unit/test_rows.c does random calls of each.

    vmap_operators.py RELAY [--only=NAME] [--list]
"""
import argparse
import itertools
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
from process import PATIENCE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Operators that are not run at all rows at once, each with what makes that impossible.
LOOPS = {
    "arange": "the number of elements follows from the values",
    "argwhere": "the number of places follows from the values",
    "collapse_sum_to": "the shape is a value",
    "dyn.strided_slice": "the sizes of the part follow from the values",
    "sparse_fill_empty_rows": "the number of rows follows from the values",
    "unique": "how many differ follows from the values",
}
# Operators whose examples have no argument that rows could stand in.
WITHOUT_ARGUMENTS = {"ones", "zeros"}


def split(text):
    """The parts of a text between commas that no bracket holds."""
    parts, depth, quoted = [""], 0, False
    for c in text:
        quoted ^= c == '"'
        depth += 0 if quoted else (c in "([{") - (c in ")]}")
        if c == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def call_in(text, name):
    """The arguments of the first call of `name` in a text, or None."""
    at = text.find(name + "(")
    if at < 0:
        return None
    begin = end = at + len(name) + 1
    depth, quoted = 1, False
    while depth:
        quoted ^= text[end] == '"'
        depth += 0 if quoted else (text[end] in "([{") - (text[end] in ")]}")
        end += 1
    return split(text[begin:end - 1])


def operators():
    """name -> (positional arguments, attributes) of its example."""
    found = {}
    with open(os.path.join(ROOT, "docs", "operators.md"), encoding="utf-8") as f:
        entries = re.split(r"^### ", f.read(), flags=re.M)[1:]
    for entry in entries:
        name = entry.split("\n")[0]
        example = re.search(r"^relay> (.*?)^[^ ]", entry, re.M | re.S)
        args = call_in(example.group(1).replace("\n", " "), name) if example else None
        if args is None:
            found[name] = None
            continue
        is_attr = [re.match(r"\w+=[^=]", a) is not None for a in args]
        found[name] = ([a for a, k in zip(args, is_attr) if not k], [a for a, k in zip(args, is_attr) if k])
    return found


# What an example shows by a sign, or with a part of the result.
SIGNS = {
    "index": (["[[1.0, 2.0], [3.0, 4.0]]", "(1, -1)"], ['spec="ii"']),
    "where": (["[True, False]", "[1.0, 2.0]", "[3.0, 4.0]"], []),
}


def as_double(text):
    return re.sub(r"(\d\.\d+(?:e-?\d+)?)(?![\w.])", r"\1f64", text)


def near(text):
    return re.sub(r"-?\d+\.\d+", lambda m: "%.4g" % (float(m.group()) + 0.125) if "." in m.group() else m.group(), text)


def rows(text):
    """Three rows of an argument: of each part of a tuple."""
    if re.match(r"^\(.*\)$", text) and call_in("f" + text, "f") and split(text[1:-1]) != [text[1:-1]]:
        return "(%s,)" % ", ".join(rows(part) for part in split(text[1:-1]))
    other = near(text)
    other = other if re.fullmatch(r"[-\d.,\s\[\]e]+", text) and "." in text else text
    return "[%s, %s, %s]" % (text, other, text)


def subsets(n):
    if n <= 3:
        return [s for k in range(n, 0, -1) for s in itertools.combinations(range(n), k)]
    return [tuple(range(n))] + [(i,) for i in range(n)] + [tuple(range(n - 1)), tuple(range(1, n))]


def lines_of(name, example):
    args, attrs = example
    for double in (False, True):
        given = [as_double(a) for a in args] if double else args
        if double and given == args:
            continue
        for chosen in subsets(len(args)):
            inside = ["r%d" % chosen.index(i) if i in chosen else a for i, a in enumerate(given)]
            params = ", ".join("r%d" % i for i in range(len(chosen)))
            yield "vmap(fn (%s) { %s(%s) })(%s)" % (params, name, ", ".join(inside + attrs),
                                                    ", ".join(rows(given[i]) for i in chosen))


# ---- running ------------------------------------------------------------------------------------

def run(relay, lines, flags):
    with tempfile.NamedTemporaryFile("w", suffix=".rly", prefix="vmap-") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        p = subprocess.run([relay, "--threads=1", "--digest", "--diagnostics=short", *flags, f.name], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
                           env=dict(os.environ, OMP_NUM_THREADS="1"))
    return p


def accepted(relay, lines):
    """The lines of which the loop gives a value."""
    good, todo = [], list(lines)
    while todo:
        p = run(relay, todo, ["--opt=0"])
        bad = {int(n) - 1 for n in re.findall(r"^\S+\.rly:(\d+):\d+: error", p.stderr, re.M)}
        if p.returncode and not bad:
            raise SystemExit("the loops end with %d: %s" % (p.returncode, p.stderr[-800:]))
        ran = [l for i, l in enumerate(todo) if i not in bad and (not bad or "[R06" in p.stderr) and i < min(bad, default=len(todo))]
        if not bad:
            return good + todo
        if re.search(r"error\[R0[0-5]", p.stderr):  # they do not check
            todo = [l for i, l in enumerate(todo) if i not in bad]
        else:
            good += ran
            todo = todo[min(bad) + 1:]
    return good


def ask(relay, lines):
    """What `:why` answers to each."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", COLUMNS="400")
        os.execv(relay, [relay])

    def until_prompt():
        said, end = b"", time.time() + PATIENCE
        while not said.endswith(b"relay> ") and time.time() < end:
            if select.select([fd], [], [], 1)[0]:
                said += os.read(fd, 1 << 16)
        return said.decode()

    until_prompt()
    answers = []
    for line in lines:
        os.write(fd, (":why " + line + "\n").encode())
        answers.append(" ".join(until_prompt().split()))
    os.write(fd, b"\x04")
    os.close(fd)
    os.waitpid(pid, 0)
    return answers


def main():
    p = argparse.ArgumentParser()
    p.add_argument("relay")
    p.add_argument("--only", default="")
    p.add_argument("--list", action="store_true")
    options = p.parse_args()
    relay = os.path.abspath(options.relay)
    found, failures, made = operators(), [], {}
    found.update(SIGNS)
    for name, example in sorted(found.items()):
        if options.only not in name:
            continue
        if example is None:
            failures.append("%s: its example does not call it" % name)
        elif example[0]:
            made[name] = list(lines_of(name, example))
        elif name not in WITHOUT_ARGUMENTS:
            failures.append("%s: its example has no argument" % name)
    lines = [l for all_of in made.values() for l in all_of]
    good = accepted(relay, lines)
    kept = set(good)
    wanted = run(relay, good, ["--opt=0"])
    for flags in (["--engine=reference"], [], ["--opt=2", "--check-core"]):
        got = run(relay, good, flags)
        a, b = wanted.stdout.split("\n"), got.stdout.split("\n")
        if got.returncode or len(a) != len(b):
            failures.append("%s: status %d, %d lines for %d: %s" % (" ".join(flags), got.returncode, len(b), len(a), got.stderr[-400:]))
        differ = [i for i, (x, y) in enumerate(zip(a, b)) if x != y]
        failures += ["%s differs: %s and %s" % (" ".join(flags) or "all rows at once", a[i][:120], b[i][:120]) for i in differ[:5]]
    asked = [(name, l) for name, all_of in made.items() for l in all_of if l in kept]
    failures += ["%s: `vmap` of its example is refused: %s" % (name, made[name][0])
                 for name in made if not any(n == name for n, _ in asked)]
    once, loops = {}, {}
    for (name, line), said in zip(asked, ask(relay, [l for _, l in asked])):
        why = re.search(r"once for each row: (.*) relay>", said)
        if "vmap runs all rows at once" in said:
            once[name] = line
        else:
            loops[name] = (line, why.group(1) if why else said)
    for name in made:
        if options.list:
            print("%-40s %s" % (name, "loops: " + loops[name][1] if name in loops else "all rows at once"))
        if name in once and name in LOOPS:
            failures.append("%s has a rule, and stands in LOOPS: %s" % (name, once[name]))
        if name in loops and name not in LOOPS:
            failures.append("%s has no rule: %s: %s" % (name, *loops[name]))
    for f in failures:
        print("FAILED " + f)
    print("%d calls of %d operators, of which %d run at all rows at once" % (len(good), len(made), len(once)))
    print("%d passed, %d failed, 0 skipped" % (max(len(made) - len(failures), 0), len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
