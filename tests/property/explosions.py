#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that passes could make much larger: they stop at their caps, say so, and the program runs all the same.

Each program is printed by `relay ir --opt=2`: neither does a definition get larger than passes may make it, nor are many
definitions made. Then it runs with all passes and by the reference evaluator, which must agree.

    explosions.py RELAY
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from process import PATIENCE, SLOW  # noqa: E402

MOST = 100000  # characters of a definition that passes made larger
MADE = 200  # definitions that passes made


def paths(depth):
    """Each function calls the one before twice: inlined, 2^depth additions."""
    lines = ["def f0(x: int32) -> int32 { x + 1 }"]
    lines += [f"def f{i}(x: int32) -> int32 {{ f{i - 1}(x) + f{i - 1}(x + 1) }}" for i in range(1, depth + 1)]
    return "\n".join(lines + ["f10(1)"])


def copies(n):
    """A definition that is given another function at each of n calls."""
    lets = "\n".join(f"  let x{i + 1} = twice(fn (y) {{ y + {i} }}, x{i});" for i in range(n))
    return f"def twice(f, x) {{ f(f(x)) }}\ndef all(x0: int32) -> int32 {{\n{lets}\n  x{n}\n}}\nall(1)"


def large(n):
    """A function of n nodes and more."""
    return "def f(x: int32) -> int32 { x" + " + 1" * n + " }\nf(1)"


def itself():
    """A function that is given to itself inside of data, so that no type grows and each call could be inlined."""
    return """type Self { Self(fn(Self, int32) -> int32) }
def go(s: Self, n: int32) -> int32 { match (s) { Self(f) => if (n == 0) { 0 } else { 1 + f(s, n - 1) } } }
go(Self(go), 1000)
(fn (u: Self, n: int32) { match (u) { Self(f) => f(u, n) } })(Self(go), 100)"""


def grows():
    """A function that gives itself a new function, which captured the last one, at each call."""
    return """def grow[a](n: int32, x: a, f: fn(a) -> int32) -> int32 {
  if (n == 0) { f(x) } else { f(x) + grow(n - 1, x, fn (y) { f(y) + 1 }) }
}
grow(20, 1, fn (x) { x })"""


def derivatives(depth):
    """The derivative of functions that each call the one before twice."""
    lines = ["def f0(x: float64) -> float64 { sin(x) }"]
    lines += [f"def f{i}(x: float64) -> float64 {{ f{i - 1}(x) * f{i - 1}(x + 1.0) }}" for i in range(1, depth + 1)]
    return "\n".join(lines + ["grad(f8)(0.5)"])


# A program, and what `relay ir` says that it gave up on; None where it stops without giving anything up.
PROGRAMS = {
    "2^40 paths": (paths(40), None),
    "2,000 copies": (copies(2000), "specialise gave up after"),
    "50,000 nodes": (large(50000), None),
    "a function given to itself": (itself(), None),
    "functions that grow": (grows(), None),
    "derivatives of 2^20 paths": (derivatives(20), None),
}
# What `relay ir --why` says of it.
TOLD = {"50,000 nodes": "the passes leave a function of more than 20000 nodes as it is"}


def relay(binary, path, *flags):
    command = [binary, *flags, "--no-jit-cache", path]
    p = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE * SLOW)
    return p.returncode, p.stdout, p.stderr


def wrong_in(binary, path, text, note):
    status, printed, err = relay(binary, path, "ir", "--opt=2")
    if status != 0:
        return err
    printed_items, items = (re.split(r"\n(?=\S)", t) for t in (printed, text))
    largest = max(len(item) for item in printed_items)
    if largest > MOST + 8 * max(len(item) for item in items):
        return f"a definition of {largest} characters"
    if printed.count("\ndef @") > text.count("\ndef ") + MADE:
        return f"{printed.count(chr(10) + 'def @')} definitions"
    if note and note not in printed:
        return f"`relay ir` does not say: {note}"
    runs = [relay(binary, path, "run", *flags) for flags in (("--opt=2",), ("--engine=reference",))]
    if runs[0] != runs[1] or runs[0][0] != 0:
        return f"the engines differ: {runs}"
    return None


def main():
    binary = sys.argv[1]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "explosion.rly")
        for name, (text, note) in PROGRAMS.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
            wrong = wrong_in(binary, path, text, note)
            if not wrong and TOLD.get(name, "") not in relay(binary, path, "ir", "--why")[1]:
                wrong = "`relay ir --why` does not say: " + TOLD[name]
            if wrong:
                failed += 1
                print(f"FAILED {name}: {wrong[:400]}")
    print(f"{len(PROGRAMS) - failed} passed, {failed} failed, 0 skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
