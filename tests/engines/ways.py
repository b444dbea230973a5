# SPDX-License-Identifier: Apache-2.0
"""The ways in which a program can run, and what it leaves behind in each: all of them must leave the same.

A way is a list of options. The oracle is the reference evaluator; FIXED are tried on every program, and
`draw` makes others at random. The passes are those that a level of optimisation runs.
"""
import difflib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from process import PATIENCE, SLOW, run_program

ORACLE = ["--engine=reference"]
FIXED = [["--jit=on", "--opt=0"], ["--jit=off", "--opt=3", "--check-core"]]
# Where a program meets a limit of the machine differs between engines, and so does the trace there.
LIMITS = re.compile(r'"code":"(R0605|R0606)"')
SPEED = re.compile(r"  [\d.,]+/s|  [\d:]+ left")  # of a line that `progress` writes

with open(os.path.join(ROOT, "passes", "passes.def"), encoding="utf-8") as f:
    PASSES = re.findall(r"^PASS\((\w+), \w+, [1-9]", f.read(), re.M)  # those that some level of --opt runs


def draw(rng):
    """A random way of the virtual machine: the passes of a level, of which some are left out, or any in any order,
    before code first runs; or those of its own choice once it has run often."""
    way = ["--jit=" + rng.choice(["on", "off"])]
    kind = rng.randrange(4)
    if kind == 0:
        way.append("--pass=" + ",".join(rng.choice(PASSES) for _ in range(rng.randint(1, 2 * len(PASSES)))))
    elif kind < 3:
        way.append("--opt=%d" % rng.randint(1, 3))
    if kind == 1:
        way.append("--no-pass=" + ",".join(rng.sample(PASSES, rng.randint(1, len(PASSES)))))
    if rng.random() < 0.5:
        way.append("--check-core")
    return way


class Left:
    """What a run left behind: its status, what it printed, diagnostics with their traces, and a number of all
    bits of each value that it showed or bound, of what references hold at the end included."""

    def __init__(self, relay, way, arguments, stdin=b"", cwd=None):
        command = [relay] + way + ["--digest", "--diagnostics=json"] + arguments
        self.way = way
        self.status, self.out, err = run_program(command, stdin, PATIENCE * SLOW, cwd)
        lines = err.splitlines()
        self.digests = [l for l in lines if l.startswith("digest: ")]
        self.said = [SPEED.sub("", l) for l in lines if not l.startswith("digest: ")]

    def is_sound(self):
        return self.status in (0, 1, 2) and not any(w in l for l in self.said
                                                 for w in ("bug in Relay", "Sanitizer", "runtime error:"))

    def met_a_limit(self):
        return any(LIMITS.search(l) for l in self.said)


def first_difference(wanted, found):
    lines = difflib.unified_diff(wanted, found, lineterm="", n=0)
    return "\n".join("    " + l[:400] for l in list(lines)[2:14])


def compare(oracle, other):
    """What is wrong with how one run ended, seen from that of the oracle; None if nothing."""
    name = " ".join(other.way)
    if not other.is_sound():
        return "%s: status %s\n%s" % (name, other.status, "\n".join(other.said)[-2000:])
    if oracle.met_a_limit() or other.met_a_limit():
        return None
    for what, wanted, found in (("status", [str(oracle.status)], [str(other.status)]),
                                ("output", oracle.out.splitlines(), other.out.splitlines()),
                                ("diagnostics", oracle.said, other.said),
                                ("values", oracle.digests, other.digests)):
        if wanted != found:
            return "%s: other %s than by %s\n%s" % (name, what, " ".join(oracle.way),
                                                    first_difference(wanted, found))
    return None
