#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes keep what a program prints and the rules of the core, in any order.

A golden program that ends well is run as it is. Then random passes, some of them twice, are applied in a
random order by `relay ir --check-core`, which holds what each pass makes to the rules of the core, and what
it prints, now and then with the plan of its memory, is read back and run: its output must be the same.

Only a program that the printed form can say is read back: one of definitions, bindings and expressions,
whose printed form names nothing that no program can name (`ad.tape`, a type argument). What is left out so is
counted, and it must not be most of them.

    passes.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import share  # noqa: E402
from process import PATIENCE, SLOW  # noqa: E402

WHOLE = 400  # programs, each under passes of its own
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
FOLDERS = ("eval", "grad", "passes", "programs", "regress", "ops")
PASSES = ("ad", "partial_eval", "derive", "inline", "specialise", "simplify", "fold", "cse", "dce")
# What `ir` does not print: declarations, the types of parameters.
UNSAID = re.compile(r"^\s*(type|import|operator|derivative|tangent|no_derivative|extern|free_var)\b"
                    r"|\bdef \w+\[|\?", re.M)
DIRECTED = re.compile(r"//\s*(command|args|stdin|exit|skip|flags|error|warning|check|check-not|engine)\b")
# The last are derivatives with frames: these have no type that can be written (`k` and then `(k, 0)`).
INTERNAL = re.compile(r"\bad\.\w|\bconstant<|<[^>]*>\(|\bshape_of\([^)]*\)\[\d|\bdef @?\w+_(fwd|bwd|pop)")
# Output that differs between two runs, or that tells where in the text something stands.
VOLATILE = re.compile(r"\bclock\(|\bprogress\b")


def relay(binary, *args):
    try:
        p = subprocess.run([binary, *args], capture_output=True, timeout=PATIENCE * SLOW, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, b"", b"no end"
    return p.returncode, p.stdout, p.stderr


def programs():
    for folder in FOLDERS:
        for directory, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                path = os.path.join(directory, name)
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
                if name.endswith(".rly") and not (UNSAID.search(text) or DIRECTED.search(text) or
                                                  VOLATILE.search(text)):
                    yield path


def values(output):
    """Types are left out: what is inlined, or printed without its annotations, may have a more exact one."""
    return [line.split(b" : ")[0] for line in output.split(b"\n")]


def one(binary, path, seed, folder):
    """None, or what is wrong; and whether the program was read back."""
    rng = random.Random(f"{seed} {os.path.relpath(path, ROOT)}")
    passes = ",".join(rng.choice(PASSES) for _ in range(rng.randint(1, 5))) + rng.choice(["", "", ",plan"])
    what = f"{os.path.relpath(path, ROOT)} --pass={passes}"
    status, out, err = relay(binary, "ir", "--check-core", "--pass=" + passes, path)
    if status != 0:
        return f"{what}: {err.decode(errors='replace')[:400]}", False
    text = out.decode(errors="replace")
    if INTERNAL.search(text):
        return None, False
    was, before, _ = relay(binary, "run", "--no-jit-cache", path)
    if was != 0:
        return None, False
    after = os.path.join(folder, f"{seed}_" + os.path.relpath(path, ROOT).replace(os.sep, "_"))
    with open(after, "w", encoding="utf-8") as f:
        f.write(text)
    status, now, err = relay(binary, "run", "--no-jit-cache", after)
    if status != 0 or values(now) != values(before):
        return (f"{what}: printed\n{before.decode(errors='replace')[:300]}and then\n"
                f"{(now + err).decode(errors='replace')[:400]}"), True
    return None, True


def main():
    options = share.arguments(__doc__).parse_args()
    paths = list(programs())
    random.Random(options.seed).shuffle(paths)
    jobs = [(paths[i % len(paths)], options.seed + i // len(paths)) for i in range(share.count(options, WHOLE, 10))]
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            os.makedirs(folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda j: one(options.relay, j[0], j[1], folder), jobs))
    found = [wrong for wrong, _ in results if wrong]
    back = sum(1 for _, read in results if read)
    for line in found[:20]:
        print(line)
    print(f"{back} of {len(jobs)} programs read back, of {len(paths)}")
    if back * 2 < len(jobs):
        found.append("most programs were not read back")
        print(found[-1])
    print(f"{len(jobs) - min(len(found), len(jobs))} passed, {len(found)} failed, 0 skipped")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
