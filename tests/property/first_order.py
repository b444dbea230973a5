#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of random first-order programs are code: no closure is made or called, and no reference made or read.

A program is a function of float64 data (_draw.py): calls of definitions and of local functions, recursion, conditions,
matches, records and tuples, and derivatives within. Its value and its derivatives backwards and forwards are shown; what it
executes is counted, and what it leaves is that of the reference evaluator, to the bit. *Wider* programs have local functions
that call themselves, and functions given to the library: folds, loops, `map`, `vmap`, `jacobian`, `linearize`. Those of which
no code is made are told with --first; any is a failure, and of the wider ones more than FEW_WIDER in which nothing waits for the run.

    first_order.py RELAY [--share=F] [--seed=N] [--first]
"""
import concurrent.futures
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
import _draw
from process import PATIENCE, SLOW, run_program

WHOLE, WHOLE_WIDER, FILE = 2000, 500, 20  # programs
FEW_WIDER = 0.1  # of them, of which no code is made
# Instructions that call a function which only the run knows, or make one, differentiate while running, or use references.
REFUSED = ("call", "tail", "tail_of", "path", "closure", "grad", "ref", "read", "write", "bang")
# What keeps functions or makes references, and what gives functions to functions of the library, or makes local ones that
# call themselves: of the first kind of program only definitions do that.
KEPT = ("references", "aliases", "closures in data")
WIDER = ("folds", "recursion", "walks over data", "rows")
# Whose code the run makes or keeps: for sizes that it knows (Note [Loops of vmap] in passes/vmap.h), or to run again.
WAITS = re.compile(r"\b(vmap|jacobian|hessian|linearize|checkpoint)\b")


class Program(_draw.Program):
    """As drawn, of functions that are called where they are known, and derivatives of such."""
    cells = []

    def __init__(self, seed, wide):
        self.seed, self.definitions, self.wide = seed, [], wide
        super().__init__(random.Random("%sfirst order %d" % ("wider " if wide else "", seed)))

    def weighted(self, options):
        without = KEPT if self.wide else KEPT + WIDER
        return super().weighted([o for o in options if not any(c in without for c in o[1])])

    def list_of(self, t, n):
        if self.wide:
            return super().list_of(t, n)
        return "list[%s]" % ", ".join(self.expr(t[1], k) for k in _draw.split(self.rng, n, self.rng.randint(1, 3)))

    def jacobian(self, t, n):
        return super().jacobian(t, n) if self.wide else self.derivative(t, n)

    def derivative(self, t, n):
        while True:
            text = super().derivative(t, n)
            if self.wide or not text.startswith("linearize("):
                return text

    def define(self, params, t, make):
        """The name of a new definition; make() gives its body, in which only the parameters are in scope."""
        name = "d%d_%s" % (self.seed, self.fresh(""))
        scope, self.scope = self.scope, []
        body = self.within(params, lambda: make(name))
        self.scope = scope
        self.definitions.append("def %s(%s) -> %s { %s }\n" % (
            name, ", ".join("%s: %s" % (x, _draw.type_text(u)) for x, u in params), _draw.type_text(t), body))
        return name

    def call(self, t, n):
        u = self.some_type(1)
        a, b, c = _draw.split(self.rng, n, 3)
        r, x, k = self.rng.random(), self.fresh("x"), self.fresh("n")
        if r < 0.35:
            return "%s(%s)" % (self.define([(x, u)], t, lambda _: self.expr(t, a)), self.expr(u, b))
        if r < 0.55:  # it calls itself, in the last place or not
            def steps(name):
                again = "%s(%s - 1, %s)" % (name, k, self.expr(t, a))
                y = self.fresh("x")
                if self.rng.random() < 0.5:
                    again = "let %s = %s; %s" % (y, again, self.within([(y, t)], lambda: self.expr(t, b)))
                return "if (%s <= 0) { %s } else { %s }" % (k, x, again)
            name = self.define([(k, ("t", "int32", ())), (x, t)], t, steps)
            return "%s(%d, %s)" % (name, self.rng.randint(1, 3), self.expr(t, c))
        name = self.fresh("f")
        if r < 0.75:
            return "{ let %s = %s; %s(%s) }" % (name, self.closure(("fn", [u], t), a), name, self.expr(u, b))
        return "{ let %s = %s; %s(%s(%s)) }" % (name, self.closure(("fn", [t], t), a), name, name, self.expr(t, b))


def program(seed, wide):
    drawn = Program(seed, wide)
    of, to = _draw.type_text(drawn.type), _draw.type_text(drawn.result)
    return "".join(drawn.definitions) + (
        "def f{0}(p: {1}) -> {2} {{ ({3})(p) }}\n"
        "def g{0}(p: {1}) {{ let y = f{0}(p); (y, vjp(f{0})(p, y), jvp(f{0})(p, p)) }}\n"
        "g{0}({4})\n").format(seed, of, to, drawn.function, drawn.argument)


def run(relay, way, text):
    with tempfile.NamedTemporaryFile("w", suffix=".rly", prefix="first-order-", delete=False) as f:
        f.write(_draw.DECLARATIONS + text)
    try:
        return run_program([relay] + way + ["--diagnostics=short", f.name], b"", PATIENCE * SLOW)
    finally:
        os.unlink(f.name)


def judge(relay, text):
    """(what is wrong with a file, or None; what it executes of what it should not)"""
    status, wanted, said = run(relay, ["--engine=reference"], text)
    if status:
        return "the oracle: status %s\n%s" % (status, said), []
    _, found, said = run(relay, ["--opt=2", "--count"], text)
    if found != wanted:
        return "other bits than by the reference evaluator", []
    counts = dict(re.findall(r"^  (\w+) +(\d+)$", said, re.M))
    return (None if counts else "no counts"), ["%s %s" % (counts[name], name) for name in REFUSED if name in counts]


def judge_file(relay, programs):
    """The programs of a file of which there is something to tell: (text, what is wrong or None, what it executes)."""
    together = [text for text in programs if not WAITS.search(text)]
    apart = [text for text in programs if WAITS.search(text)]
    if judge(relay, "".join(together)) != (None, []):
        apart += together
    found = [(text, *judge(relay, text)) for text in apart]
    return [one for one in found if one[1:] != (None, [])]


def judge_all(relay, seeds, wide, first):
    """How many programs failed. Prints these, and of how many no code was made."""
    programs = [program(seed, wide) for seed in seeds]
    files = [programs[i:i + FILE] for i in range(0, len(programs), FILE)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [one for file in pool.map(lambda file: judge_file(relay, file), files) for one in file]
    failed = [one for one in found if one[1]]
    waiting = [one for one in found if not one[1] and WAITS.search(one[0])]
    left = [one for one in found if not one[1] and not WAITS.search(one[0])]
    for text, what, executed in failed + (left[:1] if first else []):
        print("%s:\n%s" % (what or "it executes " + ", ".join(executed), text))
    print("%sno code was made of %d of %d%s" % (
        "wider: " if wide else "", len(left), len(programs),
        ", besides %d that wait for the run" % len(waiting) if waiting else ""))
    if len(left) > (max(1, FEW_WIDER * len(programs)) if wide else 0):
        print("these are too many")
        failed = failed or left[:1]
    return len(failed)


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--first", action="store_true")
    options = parser.parse_args()
    relay = os.path.abspath(options.relay)
    seeds, wider = share.seeds(options, WHOLE), share.seeds(options, WHOLE_WIDER)
    failed = judge_all(relay, seeds, False, options.first) + judge_all(relay, wider, True, options.first)
    print("%d passed, %d failed, 0 skipped" % (len(seeds) + len(wider) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
