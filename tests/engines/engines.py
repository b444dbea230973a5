# SPDX-License-Identifier: Apache-2.0
"""Every golden test and example leaves the same behind, whichever way it runs (ways.py).

Besides what a golden expects, which golden.py looks at: all its output, every diagnostic with its trace, the
status, and the bits of each value. At the share of `make check` each program runs in all FIXED ways, and a
quarter of them in one that is drawn; whole, each in DRAWN of these. A failure says the options of its way.
"""
import os
import random

import golden
import ways

DRAWN = 3
USUAL = 0.25  # the share of `make check`


def arguments_of(test):
    """How a golden's program is run; None where it is not run, or in one way only."""
    name = os.path.basename(test.path)
    if test.skip or test.engines or name.startswith("_") or (test.command and test.command[0] != "run"):
        return None
    return test.command + test.flags + [name] + test.args


def job(options, report, path):
    test = golden.Golden(path)
    arguments = arguments_of(test)
    rng = random.Random("%d %s" % (options.seed, test.name))
    if arguments is None or rng.random() * USUAL >= options.share:
        return
    count = sum(rng.random() < options.share for _ in range(DRAWN)) if options.share < 1 else DRAWN
    # Not options.relay: with --verify-types no pass runs.
    others = ways.FIXED + [ways.draw(rng) for _ in range(count)]
    stdin = "".join(l + "\n" for l in test.stdin).encode("utf-8", "surrogateescape")
    folder = os.path.dirname(path)
    oracle = ways.Left(options.program, ways.ORACLE, arguments, stdin, folder)
    for way in others:
        wrong = ways.compare(oracle, ways.Left(options.program, way, arguments, stdin, folder))
        report.add("engines %s %s" % (test.name, " ".join(way)), "failed" if wrong else "passed", wrong or "")
