#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `relay ir` prints, read back, executes the same instructions.

A golden or example that ends well is run at a level of optimisation with `--count`. What `relay ir` prints of it at that
level is run with `--as-written`, so that passes run over the library only, as they did before. Both must print the same
values and count the same instructions of each kind. Of a program that takes derivatives only the values are compared:
what is differentiated knows fewer types than what is read, so other operators are fused.

Left out, and counted, is what no program can say: derivatives that keep a frame (`x_fwd`) or work with cotangents (`ad.settle`), rows
of data, and names that a module of the library keeps to itself.

    counts.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import share  # noqa: E402
from process import PATIENCE, SLOW  # noqa: E402

TESTS = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FOLDERS = [os.path.join(TESTS, "golden", name) for name in
           ("eval", "grad", "passes", "programs", "regress", "ops")] + [os.path.join(TESTS, "..", "examples")]
DIRECTED = re.compile(r"//\s*(command|args|stdin|exit|skip|flags|error|warning|check|check-not|engine)\b")
# Output that differs between two runs, or that tells where in the text something stands.
VOLATILE = re.compile(r"\bclock\(|\bprogress\b|\bload\(|\bsave\(")
# What is printed has no declared parameters of types, and `@main` is called by the command line.
UNDECLARED = re.compile(r"\bdef @?\w+\[|\bdef @?main\(")
DIFFERENTIATES = re.compile(r"\b(grad|deriv|vjp|jvp|hvp|jacobian|hessian|linearize|vmap|build|central)\b")
LIBRARY = re.compile(r"^import \w", re.M)
# These give the same values by a few other instructions: a call with a size that is not known before running stands in
# a function of its own (kmeans), checks of sizes are not printed (decision_tree), operators are fused where the text that
# is read back has known types (principal, power_square), `pi` is an item of the prelude (pi_is_a_weak_literal), and a tensor
# of elements that became known is a literal when it is read (an_index_is_a_vector).
OTHER_COUNT = ("../examples/kmeans.rly", "../examples/decision_tree.rly", "../examples/principal.rly",
               "golden/ops/power_square.rly", "golden/eval/pi_is_a_weak_literal.rly",
               "golden/eval/an_index_is_a_vector.rly")
ROWS = re.compile(r" : Rows\[", re.M)  # rows of data have the constructor of one, and none of their own
NO_NAME = re.compile(r"\[R010[12]\]")
UNSAID = re.compile(r"\bad\.\w|\b_typed\.\w|\bvmap\.\w|^%|\[\?\]|^def @\w*(fwd|bwd|pop)(_\d+)?\(", re.M)


def programs():
    for folder in FOLDERS:
        for directory, _, names in os.walk(folder):
            for name in sorted(names):
                path = os.path.join(directory, name)
                if not name.endswith(".rly") or name.startswith("_"):
                    continue
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if not (DIRECTED.search(text) or VOLATILE.search(text) or UNDECLARED.search(text)):
                    yield path


def relay(binary, *args, folder=""):
    """folder: where the program's own modules are."""
    try:
        p = subprocess.run([binary, *args], capture_output=True, timeout=PATIENCE * SLOW, stdin=subprocess.DEVNULL,
                           env={**os.environ, "RELAY_PATH": folder})
    except subprocess.TimeoutExpired:
        return None, "", "no end"
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def values(output):
    """Types are left out: what is inlined may have a more exact one."""
    return [line.split(" : ")[0] for line in output.split("\n")]


def counts(text):
    found = re.search(r"^instructions: \d+\n(?:  \w+ +\d+\n)*", text, re.M)
    return dict(line.split() for line in found.group().splitlines()[1:]) if found else {}


def one(binary, path, folder):
    """Whether the program was read back; and what is wrong, or None."""
    name = os.path.relpath(path, TESTS)
    with open(path, encoding="utf-8", errors="replace") as f:
        source = f.read()
    status, text, err = relay(binary, "ir", "--opt=2", path)
    if status != 0:
        return False, None
    if UNSAID.search(text):
        return False, None
    was, before, counted = relay(binary, "run", "--opt=2", "--count", "--jit=off", path)
    if was != 0 or ROWS.search(before):
        return False, None
    printed = os.path.join(folder, name.replace(os.sep, "_").lstrip("._"))
    with open(printed, "w", encoding="utf-8") as f:
        f.write(text)
    status, now, err = relay(binary, "run", "--as-written", "--count", "--jit=off", printed,
                             folder=os.path.dirname(path))
    if LIBRARY.search(source) and NO_NAME.search(err):
        return False, None  # what was inlined from a module names what only the module can
    if status != 0 or values(now) != values(before):
        return True, f"{name}: printed\n{before[:300]}and then\n{(now + err)[:600]}"
    first, second = counts(counted), counts(err)
    if name not in OTHER_COUNT and not DIFFERENTIATES.search(source) and (first != second or not first):
        differ = [f"{k} {first.get(k, 0)} and then {second.get(k, 0)}" for k in sorted({*first, *second})
                  if first.get(k) != second.get(k)]
        return True, f"{name}: other instructions run: {', '.join(differ)}"
    return True, None


def main():
    options = share.arguments(__doc__).parse_args()
    paths = share.sample(options, programs(), 40)
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            os.makedirs(folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda path: one(options.relay, path, folder), paths))
    found = [wrong for _, wrong in results if wrong]
    back = sum(1 for read, _ in results if read)
    for line in found[:40]:
        print(line)
    print(f"{back} of {len(paths)} programs read back")
    if back * 3 < len(paths):
        found.append("most programs were not read back")
        print(found[-1])
    print(f"{len(paths) - min(len(found), len(paths))} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
