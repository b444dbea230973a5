# SPDX-License-Identifier: Apache-2.0
"""How much of a long test runs, and which part of it.

A long test knows its whole: how many programs it draws, or the list that it walks. `make check-long` runs
the whole, `make check` the share that Makefile.am says, and `run.py --share=F --seed=N` any other. The
runner hands both down as RLY_SHARE and RLY_SEED, to unit tests too (tests/unit/check.h). One share and
one seed always give the same cases, so what failed is run again by naming them.

    parser = share.arguments(__doc__)                  # RELAY, --share, --seed, --keep
    options = parser.parse_args()
    for seed in share.seeds(options, 480): …           # of a test that draws its cases
    for path in share.sample(options, paths): …        # of a test that walks a list
"""
import argparse
import os
import random

SHARE = float(os.environ.get("RLY_SHARE", "1"))
SEED = int(os.environ.get("RLY_SEED", "1"))


def arguments(description):
    """A parser for what every property test takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("relay", help="the program")
    parser.add_argument("--share", type=float, default=SHARE, help="how much of the whole: 1 is all of it")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--keep", help="a folder for the programs that failed")
    return parser


def count(options, whole, least=1):
    """How many of `whole` cases."""
    return max(least, round(whole * options.share))


def seeds(options, whole, least=1):
    """The seeds of so many cases. Those of a larger share begin with those of a smaller one."""
    return range(options.seed, options.seed + count(options, whole, least))


def sample(options, items, least=1):
    """So many of the items, in their order."""
    items = list(items)
    wanted = min(len(items), count(options, len(items), least))
    if wanted == len(items):
        return items
    chosen = sorted(random.Random(options.seed).sample(range(len(items)), wanted))
    return [items[i] for i in chosen]
