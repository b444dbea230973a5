#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thirty small edits of the sources, each of which some test must notice (`make mutate`).

    mutate.py [--configure=FLAGS] [NUMBER ...]

An edit names a function, or an item of Relay or of a table, and what is replaced inside of it; in which
file it stands, and how it is laid out, does not matter; where several files have a function so called,
the file's name stands before it. The tracked tree is copied, built once, and each
edit applied, built and tested by itself with the suites named beside it, then undone. An edit whose place
is not found, or is found twice, is a failure, which `make check` tells too; so is one that does not
compile. An edit may make a program loop or eat memory, so each test runs under limits. Takes about ten
minutes of an idle machine; not part of `make check`.
"""
import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ROOMS = ("base", "parser", "tensor", "types", "ops", "passes", "eval", "jit", "repl", "prelude", "stdlib")

# (function or item, what stands in it, what it becomes, what run.py is to run, or a unit test)
EDITS = [
    ("span_locate", "<= at", "< at", "golden/errors"),
    ("f32_to_bf16", "(u + 0x7FFF + (u >> 16 & 1)) >> 16", "u >> 16", "unit/test_tensor"),
    ("first_matrix", "arm->guard || node_has_float(arm->pattern)", "false", "golden"),
    ("infer_order", "e->data[k] == group->data[i]", "e->data[k] != e->data[k]", "golden/eval"),
    ("shape_broadcast_into", "&& b != 1", "", "golden"),
    ("add_operand", "f->gap = false;", "", "golden/eval"),
    ("take_axes", '"clip"', '"wrap"', "golden"),
    ("set_reduced", "else if (keepdims)", "else if (!keepdims)", "golden"),
    ("grad_twin_at", "'r'", "'f'", "golden/grad golden/ad"),
    ("with_tape", "t->tape", "args[0]", "golden/grad golden/ad"),
    ("backward", "expr_is_unit(ct)", "i == 1", "golden/grad golden/ad"),
    ("reverse_template", '"ad.ones"', '"ad.zeros"', "golden/grad golden/ad"),
    ("leaf_cotangent", "is_unit(ct) ? value_filled_like(m, primal, 0.0) : ct", "value_filled_like(m, primal, 0.0)",
     "golden/grad golden/ad"),
    ("ad.c is_dual_of", "&& ((Dual *)v.p)->level == level", "", "golden/grad golden/ad"),
    ("value_is_active_above", "value_holds_dual(v, epoch + 1, UINT64_MAX)", "false", "golden/grad golden/ad"),
    ("fuse.c merge_nodes", "in[~node->args[k]]", "in[0]", "golden/eval"),
    ("visit_leaf", "w->count += leaf_count(x)", "w->count += 1", "golden examples"),
    ("derivative exp", "strong_multiply(ct, out)", "ct", "golden/grad golden/ad"),
    ("derivative sin", "cos(data)", "sin(data)", "golden/grad golden/ad"),
    ("derivative tanh", "out * out", "out", "golden/grad golden/ad"),
    ("def loop", "n <= 0", "n <= 1", "golden examples"),
    ("def map_accuml", "rev(r.1)", "r.1", "golden"),
    ("def foldr", "foldr(f, acc, rest)", "foldr(f, acc, Nil)", "golden"),
    ("def apply_linear", "+ l.b", "- l.b", "golden"),
    ("def adam_with", "state.steps + 1", "state.steps", "golden"),
    ("INFIX SUB", "ADD,", "MUL,", "golden/fmt"),
    ("is_unused", "!(effects_at(c->effects, link->a) & ~(unsigned)UNSEEN)", "true", "golden"),
    ("session_run_source", "status == SESSION_OK && (flags & RUN_MAIN)", "0", "golden/cli"),
    ("input_add", 'strcmp(value, "random") != 0', 'strcmp(value, "random") == 0', "golden/cli"),
    ("jit_cache_put", "ok && renameat(c->folder, temporary, c->folder, name) != 0", "ok", "unit/test_jit"),
]


def sources(tree):
    """(path, text) of what an edit may stand in."""
    for room in ROOMS:
        for directory, _, names in os.walk(os.path.join(tree, room)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def", ".rly")):
                    path = os.path.join(directory, name)
                    with open(path, encoding="utf-8") as f:
                        yield path, f.read()


def is_function(name):
    return " " not in name or name.split(" ")[0].endswith(".c")


def pattern_of(name):
    """What the definition of a name begins with, and what follows it: a function of C, as `NAME` or `FILE.c
    NAME`; an item of Relay, as `def NAME`; an entry of a table, as `INFIX NAME`. All begin at the left margin."""
    kind, _, item = name.rpartition(" ")
    if is_function(name):
        return r"^\w[^;{}=\n]*\b%s\([^;{}]*\{" % re.escape(item), r"^\}"
    if kind.isupper():
        return r"^%s\(\s*%s\b" % (kind, re.escape(item)), r"\)$"
    return r"^%s\s+@?%s\s*[\[(]" % (kind, re.escape(item)), r"(?=^[\w@/#])|\Z"


def definitions(text, name):
    """Where each definition of that name begins and ends."""
    begin, end = (re.compile(p, re.M) for p in pattern_of(name))
    for m in begin.finditer(text):
        one_line = re.compile(r"[^\n]*\}$", re.M).match(text, m.end()) if is_function(name) else None
        stop = one_line or end.search(text, m.end())
        yield m.start(), stop.end() if stop else len(text)


def find_places(files, name, old):
    """(path, begin, end) of the fragment in each definition of the name. Blanks and line breaks may differ."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|\w+|[^\w\s]', old)
    fragment = re.compile(r"(?<!\w)%s(?!\w)" % r"\s*".join(map(re.escape, tokens)))
    where, _, item = name.rpartition(" ")
    for path, text in files:
        if item in text and (not where.endswith(".c") or os.path.basename(path) == where):
            for begin, end in definitions(text, name):
                for m in fragment.finditer(text, begin, end):
                    yield path, m.start(), m.end()


def find_stale(tree):
    """Edits whose place is not found, or is found twice."""
    files = list(sources(tree))
    for number, (name, old, new, _) in enumerate(EDITS):
        n = len(list(find_places(files, name, old)))
        if n != 1:
            yield "edit %d: `%s` stands %d times in %s" % (number, old, n, name)
        if old == new:
            yield "edit %d changes nothing" % number


def build(folder, programs=()):
    p = subprocess.run(["make", "-s", "-j2", "relay", "librelayjit.so", *programs], cwd=folder, capture_output=True)
    return p.returncode == 0


def limits():
    """Of each process of a test: 16 GB of addresses, five minutes of processor time."""
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))


def fails(command, folder):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, preexec_fn=limits,
                              timeout=3600).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def noticed(tree, folder, what):
    """Whether the tests fail."""
    if what.startswith("unit/"):
        program = "tests/" + what
        subprocess.run(["make", "-s", program], cwd=folder, capture_output=True, check=True)
        return fails([program], folder)
    words = []
    for w in what.split():
        suite, _, part = w.partition("/")
        words += [suite] + ([w] if part else [])
    return fails([sys.executable, os.path.join(tree, "tests/run.py"), "--build=" + folder,
                  "--engines=--jit=on", *words], folder)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--configure", default="")
    ap.add_argument("numbers", nargs="*", type=int)
    args = ap.parse_args()
    survived = 0
    chosen = args.numbers or range(len(EDITS))
    with tempfile.TemporaryDirectory(prefix="relay-mutate-") as tmp:
        tree, folder = os.path.join(tmp, "tree"), os.path.join(tmp, "build")
        os.makedirs(tree)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "--null", "-T", "-", "-cf", os.path.join(tmp, "tree.tar")], cwd=ROOT,
                       input=files, check=True)
        subprocess.run(["tar", "-xf", os.path.join(tmp, "tree.tar"), "-C", tree], check=True)
        subprocess.run(["./bootstrap"], cwd=tree, capture_output=True, check=True)
        os.makedirs(folder)
        subprocess.run([os.path.join(tree, "configure"), "-q", *shlex.split(args.configure)], cwd=folder,
                       capture_output=True, check=True)
        if not build(folder):
            sys.exit("the tree does not build")
        for what in sorted({EDITS[i][3] for i in chosen}):
            if noticed(tree, folder, what):
                sys.exit(f"{what} fails without an edit")
        for i in chosen:
            name, old, new, what = EDITS[i]
            places = list(find_places(sources(tree), name, old))
            if len(places) != 1:
                result = "stands there %d times: mend the list" % len(places)
            else:
                path, begin, end = places[0]
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text[:begin] + new + text[end:])
                if not build(folder):
                    result = "does not compile: mend the list"
                else:
                    result = "killed" if noticed(tree, folder, what) else "SURVIVED"
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            survived += result != "killed"
            print(f"{i:2} {name}, {old}: {result}", flush=True)
    print(f"{len(chosen) - survived} passed, {survived} failed, 0 skipped")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
