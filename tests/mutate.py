#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thirty one-line edits of the sources, each of which some test must notice (`make mutate`).

    mutate.py --build BUILD [NUMBER ...]

The tracked tree is copied, built once, and each edit applied, built and tested by itself with the
suites named beside it, then undone. A line that no longer stands in its file, or an edit that does
not compile, is a failure: the list is kept in step with the sources. An edit may make a program
loop or eat memory, so each test runs under limits. Takes about ten minutes; not part of `make check`.
"""
import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# (file, what stands there, what it becomes, what run.py is to run)
EDITS = [
    ("base/span.c", "if (s->line_starts[mid] <= at)", "if (s->line_starts[mid] < at)", "golden/errors"),
    ("tensor/dtype.c", "return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16);",
     "return (uint16_t)(u >> 16);", "golden/ops"),
    ("types/infer/cover.c", "m->guarded[i] = arm->guard || node_has_float(arm->pattern);",
     "m->guarded[i] = false;", "golden"),
    ("types/infer/infer.c", "if (e->data[k] == group->data[i])", "if (e->data[k] != e->data[k])",
     "golden/eval"),
    ("ops/relate/shape_util.c", "if (a != b && a != 1 && b != 1) {", "if (a != b && a != 1) {", "golden"),
    ("ops/recipe/fuse.c", "f->gap = false;", "", "golden/eval"),
    ("ops/take.c", "if (!strcmp(mode, \"clip\"))", "if (!strcmp(mode, \"wrap\"))", "golden"),
    ("ops/reduce.c", "else if (keepdims)", "else if (!keepdims)", "golden"),
    ("passes/twin.c", "*p == 'r' ? AD_REVERSE : AD_FORWARD", "*p == 'f' ? AD_REVERSE : AD_FORWARD",
     "golden/grad/lists"),
    ("passes/twin.c", "out[0] = t->tape;", "out[0] = args[0];", "golden/grad"),
    ("passes/grad.c", "if (inactive[i] || expr_is_unit(ct))", "if (inactive[i] || i == 1)", "golden/grad"),
    ("passes/template.c", "seed = b_builtin(b, \"ad.ones\", y, NULL);",
     "seed = b_builtin(b, \"ad.zeros\", y, NULL);", "golden/grad"),
    ("eval/ad.c", "is_unit(ct) ? filled_like(d->primal, 0.0) : ct", "filled_like(d->primal, 0.0)",
     "golden/grad"),
    ("eval/ad.c", "v.tag == VAL_DUAL && ((Dual *)v.p)->level == level", "v.tag == VAL_DUAL", "golden/grad"),
    ("eval/ad.c", "return value_holds_dual(v, epoch + 1, UINT64_MAX);", "return false;", "golden/grad"),
    ("eval/fuse.c", "n->args[k] < 0 ? leaves[~n->args[k]] : results[n->args[k]]",
     "n->args[k] < 0 ? leaves[0] : results[n->args[k]]", "golden/eval"),
    ("eval/builtin_tree.c", "w->count += leaf_count(v);", "w->count += 1;", "golden examples"),
    ("prelude/derivatives.rly", "derivative exp(data; out, ct) { (ct * out,) }",
     "derivative exp(data; out, ct) { (ct,) }", "golden/grad"),
    ("prelude/derivatives.rly", "derivative sin(data; out, ct) { (ct * cos(data),) }",
     "derivative sin(data; out, ct) { (ct * sin(data),) }", "golden/grad"),
    ("prelude/derivatives.rly", "derivative tanh(data; out, ct) { (ct * (1.0 - out * out),) }",
     "derivative tanh(data; out, ct) { (ct * (1.0 - out),) }", "golden/grad"),
    ("prelude/prelude.rly", "if (n <= 0) { x } else { loop(n - 1, f, f(x)) }",
     "if (n <= 1) { x } else { loop(n - 1, f, f(x)) }", "golden examples"),
    ("prelude/prelude.rly", "(r.0, rev(r.1))", "(r.0, r.1)", "golden"),
    ("prelude/prelude.rly", "Cons(x, rest) => f(x, foldr(f, acc, rest)), Nil => acc",
     "Cons(x, rest) => f(x, foldr(f, acc, Nil)), Nil => acc", "golden"),
    ("stdlib/nn.rly", "nn.dense(x, l.w) + l.b", "nn.dense(x, l.w) - l.b", "golden"),
    ("stdlib/optim.rly", "let steps = state.steps + 1;", "let steps = state.steps;", "golden"),
    ("parser/infix.def", "INFIX(SUB,     MINUS,      \"-\",  ADD,", "INFIX(SUB,     MINUS,      \"-\",  MUL,", "golden/fmt"),
    ("passes/dce.c", "if (is_pure(link->a) && !(link->var && map_has(&used, link->var)))",
     "if (!(link->var && map_has(&used, link->var)))", "golden"),
    ("repl/session.c", "if (status == SESSION_OK && (flags & RUN_MAIN))", "if (0)", "golden/cli"),
    ("repl/inputs.c", "if (strcmp(value, \"random\") != 0) {", "if (strcmp(value, \"random\") == 0) {",
     "golden/cli"),
    ("jit/cache.c", "if (ok && renameat(c->folder, temporary, c->folder, name) != 0) {", "if (ok) {", "jit"),
]


def build(folder):
    p = subprocess.run(["make", "-s", "-j2", "relay", "librelayjit.so"], cwd=folder, capture_output=True)
    return p.returncode == 0


def limits():
    """Of each process of a test: 16 GB of addresses, five minutes of processor time."""
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))


def fails(command, folder):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, preexec_fn=limits,
                              timeout=600).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def noticed(tree, folder, what):
    """Whether the tests fail."""
    if what == "jit":
        subprocess.run(["make", "-s", "tests/unit/test_jit"], cwd=folder, capture_output=True, check=True)
        return fails(["tests/unit/test_jit"], folder)
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
            path = os.path.join(tree, name)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            if text.count(old) < 1:
                result = "the line is gone: mend the list"
            else:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text.replace(old, new, 1))
                if not build(folder):
                    result = "does not compile: mend the list"
                else:
                    result = "killed" if noticed(tree, folder, what) else "SURVIVED"
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            survived += result != "killed"
            print(f"{i:2} {name}: {result}", flush=True)
    print(f"{len(chosen) - survived} passed, {survived} failed, 0 skipped")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
