#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two operators of docs/HACKING.md, added to a copy of the tree as the page says and tested there.

The page names a file in backticks and shows indented code for it. A line of a .def goes among those of
its kind, in order; other code goes to the end of the file. The copy is built on from a copy of the build, then
the tests that walk the table of operators run on the new ones, and the golden test that the page shows.

    recipe.py RELAY        of a build; a long test: of a share below 1 the page alone is held against the files
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import share

UNITS = ["test_ops", "test_rules", "test_relations", "test_scalar", "test_jit_ops"]


def snippets(page):
    """(file, code) of each block of code behind the name of a file, in the section about operators."""
    section = page[page.index("## Your first change: an operator"):page.index("## Golden tests")]
    found, named, code = [], None, []
    for line in section.split("\n") + ["the end"]:
        if line.startswith(" " * 8) or (not line and code):
            code.append(line[8:])
            continue
        if code:
            found.append((named, "\n".join(code).strip("\n") + "\n"))
            named, code = None, []
        named = named or next((m for m in re.findall(r"`([\w/.]+\.(?:def|c|rly))`", line)
                               if not m.startswith("tests/property")), None)
    return found


def put(path, code):
    """A line of a .def among those of its kind, sorted by symbol; else the end of the file."""
    kind = re.match(r"(\w+)\((\w+)", code)
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
    if path.endswith(".def"):
        symbols = [(i, m.group(1)) for i, m in enumerate(re.match(r"%s\((\w+)" % kind.group(1), l) for l in lines) if m]
        at = max((i + 1 for i, symbol in symbols if symbol < kind.group(2)), default=symbols[0][0])
        lines.insert(at, code.rstrip("\n"))
        code = ""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + ("\n" if code and lines else "") + code)


def copy(build, top):
    """The sources, and the build where it stood among them; its path in the copy."""
    inside = os.path.relpath(build, ROOT)
    if inside.startswith(".."):
        inside = "build"
    others = {os.path.abspath(os.path.join(ROOT, n)) for n in os.listdir(ROOT)
              if os.path.exists(os.path.join(ROOT, n, "config.status"))} | {build}

    def left_out(folder, names):
        return [n for n in names if os.path.abspath(os.path.join(folder, n)) in others or
                n in (".git", "__pycache__", "fuzz", "golden")]
    shutil.copytree(ROOT, top, ignore=left_out, symlinks=True)
    there = os.path.join(top, inside)
    shutil.copytree(build, there, symlinks=True, ignore=lambda folder, names: [
        n for n in names if n in UNITS or n.endswith((".log", ".trs"))])
    for folder, _, names in os.walk(there):  # where the build wrote the whole path of the sources
        for name in names:
            if name == "Makefile" or name.endswith(".Po"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="surrogateescape") as f:
                    text = f.read()
                if ROOT in text:
                    times = os.stat(path)
                    with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                        f.write(text.replace(ROOT, top))
                    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return there


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def add(self, name, ok, details=""):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        if not ok:
            print("FAILED %s\n%s" % (name, details[-3000:]))


def run(command, folder, **environment):
    p = subprocess.run(command, cwd=folder, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=900,
                       env=dict(os.environ, **environment))
    return p.returncode, p.stdout + p.stderr


def examples(parts):
    """(example, its value) of each operator, as its entry has them."""
    for path, code in parts:
        strings = [s.replace('\\n', "\n").replace('\\"', '"') for s in re.findall(r'"((?:\\.|[^"\\])*)"', code)]
        if path.endswith("elementwise.def"):
            yield strings[-2], strings[-1]
        elif path.endswith(".c"):
            yield strings[-2], strings[-1]


def main():
    relay = os.path.abspath(sys.argv[1])
    build, checks = os.path.dirname(relay), Checks()
    with open(os.path.join(ROOT, "docs", "HACKING.md"), encoding="utf-8") as f:
        parts = snippets(f.read())
    places = [path for path, _ in parts]
    wanted = ["ops/elementwise.def", "prelude/derivatives.rly", "tests/golden/ops/softsign.rly", "ops/layout.c",
              "ops/ops.def", "prelude/derivatives.rly"]
    if places != wanted:
        print("the page changes %s\nnot %s\n0 passed, 1 failed, 0 skipped" % (places, wanted))
        return 1
    with tempfile.TemporaryDirectory(prefix="recipe-") as folder:
        top = os.path.join(folder, "relay")
        if share.SHARE < 1:
            return place(checks, parts, top)
        there = copy(build, top)
        for path, code in parts:
            put(os.path.join(top, path), code)
        units = ["tests/unit/" + u for u in UNITS]
        status, said = run(["make", "-s", "-j2", "all"], there)
        if status == 0:
            status, said = run(["make", "-s", "-j2"] + units, there)[0], said
        compiled = set(re.findall(r"^ *CC +(\S+)", said, re.M))
        checks.add("the tree with both operators builds", status == 0 and "warning:" not in said, said)
        checks.add("what only lists operators is not compiled again", not any(
            f.startswith(("parser/", "types/", "eval/", "passes/", "repl/")) for f in compiled), str(sorted(compiled)))
        if status == 0:
            judge(checks, parts, top, there, units)
    print("%d passed, %d failed, 0 skipped" % (checks.passed, checks.failed))
    return checks.failed != 0


def place(checks, parts, top):
    """The code of each part finds its place, and nothing else changes."""
    for path, code in parts:
        there, old = os.path.join(top, path), ""
        if os.path.exists(os.path.join(ROOT, path)):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            if not os.path.exists(there):
                shutil.copy(os.path.join(ROOT, path), there)
            with open(there, encoding="utf-8") as f:
                old = f.read()
        put(there, code)
        with open(there, encoding="utf-8") as f:
            new = f.read()
        checks.add("a place in " + path, code not in old and new.count(code) == 1 and
                   sorted(new.replace(code, "").split()) == sorted(old.split()), new)
    print("%d passed, %d failed, 0 skipped" % (checks.passed, checks.failed))
    return checks.failed != 0


def judge(checks, parts, top, there, units):
    relay = os.path.join(there, "relay")
    for unit in units:
        for op in ["softsign", "diagonal"] if unit.endswith("test_relations") else [""]:
            status, said = run([os.path.join(there, unit)], there, **({"RLY_RELATIONS_OP": op} if op else {}))
            checks.add("%s %s" % (unit, op), status == 0 and "ok " in said, said)
    for example, value in examples(parts):
        for engine in ["--jit=on", "--jit=off"]:
            with open(os.path.join(top, "example.rly"), "w", encoding="utf-8") as f:
                f.write(example + "\n")
            status, said = run([relay, engine, "example.rly"], top)
            checks.add("%s %s" % (example, engine), said == value + "\n", "found %r, the entry says %r" % (said, value))
    for op in ["softsign", "diagonal"]:
        status, said = run([sys.executable, os.path.join(top, "tests/property/gradients.py"), relay, "--only", op], top)
        counted = re.search(r"^(\d+) passed, 0 failed", said, re.M)
        checks.add("the derivative of " + op, status == 0 and counted and int(counted.group(1)) > 0, said)
    status, said = run([sys.executable, os.path.join(top, "tests/run.py"), "--build=" + there, "golden", "ops/softsign"],
                       top)
    counted = re.search(r"^(\d+) passed, 0 failed", said, re.M)
    checks.add("the golden test of the page", status == 0 and counted and int(counted.group(1)) > 0, said)


if __name__ == "__main__":
    sys.exit(main())
