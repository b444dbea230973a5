#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random well-typed programs (_draw.py) leave the same behind in every way of running them (engines/ways.py).

Each seed makes one file of wild programs, of every dtype and with infinities and nan, which all show their
value; the last one ends in an error. They are well typed by construction, so another diagnostic is a finding too.
A file that differs is made smaller and shown.

    programs.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import os
import random
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "engines")]
sys.dont_write_bytecode = True
import reduce
import share
import ways
import _draw

FILES, ITEMS = 120, 30
# The last program of a file, which fails somewhere inside of what stands around it.
ERRORS = ["[1, 2, 3][%s]", "1 / (%s - %s)", "hd(filter(fn (v) { v > %s }, list[%s]))", "left_shift(1, %s - 9 - %s)",
          "{ let n = %s; error(show(n)) }", "match? (%s) { 77 => 1 }", "take([1, 2], [%s + 9], axis=0)[0] + arange(%s + 2)[5]"]


def failing(rng):
    error = rng.choice(ERRORS)
    error = error.replace("%s", str(rng.randint(3, 9)))
    around = rng.choice(["%s", "map(fn (k) { k + %s }, list[1, 2])", "foldl(fn (a, k) { a + k * (%s) }, 0, list[1, 2])",
                         "{ let go = fn (n: int32) -> int32 { if (n == 0) { %s } else { go(n - 1) + 1 } }; go(3) }",
                         "grad(fn (x: float32) { x * (float32) (%s) })(2.0)"])
    return around % error


def make_file(seed):
    rng = random.Random(seed)
    programs = [_draw.Program(rng, smooth=False, nodes=rng.randint(5, 30)).expression for _ in range(ITEMS)]
    return _draw.DECLARATIONS + "\n".join(programs + [failing(rng)]) + "\n"


class Comparison:
    """What one way leaves behind of a text, beside what the oracle does."""

    def __init__(self, relay, way):
        self.relay, self.way = relay, way

    def wrong(self, text):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "program.rly"), "w", encoding="utf-8") as f:
                f.write(text)
            oracle, other = (ways.Left(self.relay, way, ["program.rly"], b"", folder) for way in (ways.ORACLE, self.way))
        if any('"severity":"error","code":"R0%d' % k in line for line in oracle.said for k in range(6)):
            return "refused: a program that is well typed\n" + "\n".join(oracle.said)[:2000]
        if not oracle.is_sound():
            return "the oracle: status %s\n%s" % (oracle.status, "\n".join(oracle.said)[-2000:])
        return ways.compare(oracle, other)

    def shrink(self, text, wrong):
        kind = wrong.split("\n")[0]
        if kind.startswith("refused"):
            return text
        return reduce.reduce_text(text, lambda t: (self.wrong(t) or "").split("\n")[0] == kind)


def main():
    options = share.arguments(__doc__).parse_args()
    options.relay = os.path.abspath(options.relay)
    seeds, failed = share.seeds(options, FILES), 0
    for seed in seeds:
        text, rng = make_file(seed), random.Random(seed)
        for way in ways.FIXED + [ways.draw(rng)]:
            comparison = Comparison(options.relay, way)
            wrong = comparison.wrong(text)
            if wrong:
                failed += 1
                print("seed %d: %s\n%s" % (seed, wrong, comparison.shrink(text, wrong)))
                if options.keep:
                    os.makedirs(options.keep, exist_ok=True)
                    with open(os.path.join(options.keep, "program%d.rly" % seed), "w", encoding="utf-8") as f:
                        f.write(text)
                break
    print("%d passed, %d failed, 0 skipped" % (len(seeds) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
