# SPDX-License-Identifier: Apache-2.0
"""A part of the mutation study (tests/study.py) against its targets, on mutants of both seeds, and its
page's figures too. Run as: study.py RELAY"""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import share
import study

MUTANTS = 600  # of each seed


def page_figures():
    """The last row of each table of the page, as fractions."""
    with open(study.PAGE, encoding="utf-8") as f:
        rows = re.findall(r"^\| \*\*all\*\* \| (\d+) \| (.*) \|$", f.read(), re.M)
    return [(int(n), dict(zip(study.TARGETS, [float(x.strip(" %")) / 100 for x in rest.split("|")])))
            for n, rest in rows]


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        options = share.arguments(__doc__).parse_args()
        relay = study.Relay(options.relay, folder)
        programs = study.corpus(relay)
        rows = []
        for seed in study.SEEDS:
            rows += study.study(relay, programs, seed, share.count(options, MUTANTS, 300), 2)[0]
    checks = [study.below_target(rows), [] if len(programs) >= 40 else ["only %d programs" % len(programs)]]
    figures = page_figures()
    checks.append([] if len(figures) == len(study.SEEDS) else ["docs/study.md has another number of tables"])
    for n, f in figures:
        good = n >= 500 and f["place"] >= 0.9 and f["mended"] >= 0.3 and f["internal"] <= 0.01
        checks.append([] if good else ["docs/study.md: %s of %d mutants; run `make study`" % (f, n)])
    for c in checks:
        wrong += c
    print(study.table(rows))
    print("\n".join(wrong))
    failed = sum(1 for c in checks if c)
    print("%d passed, %d failed, 0 skipped" % (len(checks) - failed, failed))


if __name__ == "__main__":
    main()
