#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every lesson of `:tutor`, played with its right, wrong and half-right answers.

    tests/property/tutor.py RELAY [--bless]

`relay doctest LESSON.tut` refuses what is wrong with the reply that the lesson has for it and takes what is
right. What was said is compared with tests/tutor/LESSON.txt; --bless writes that. Lessons that are none get a reason.
"""
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
sys.path.insert(0, TESTS)
from process import PATIENCE, SLOW, run_program

TIMES = re.compile(r"^.*\d ms\b.*$", re.M)  # lines that tell how long something took
LESSONS = os.path.join(ROOT, "repl", "tutor")
# (text, what is said of it)
BAD = [
    ("", "it is empty"),
    ("no title\n", "its first line is no title"),
    ("# T\n\ntext\n\n---\n\n---\n\ntext\n", "a frame says nothing"),
    ("# T\n\ntext\n\n---\n", "its last frame says nothing"),
    ("# T\n\ntext\n\n```relay dance\n1\n```\n", "begins no block of a lesson"),
    ("# T\n\ntext\n\n```relay answer\n1\n", "begins no block of a lesson"),
    ("# T\n\ntext\n\n```relay answer\n1\n```\n```relay wrong\n1\n```\n\nHint: one\n", "a wrong answer is taken"),
    ("# T\n\ntext\n\n```relay answer\n1\n```\n```relay or\n2\n```\n```relay wrong\n3\n```\n\nHint: one\n", "is refused"),
    ("# T\n\ntext\n\n```relay answer\n1\n```\n```relay wrong\n3\n```\n\nHint: one\n", None),
    ("# T\n\ntext\n\n```relay answer\n1\n```\n```relay wrong\n3\n```\n", "it has no hint"),
    ("# T\n\ntext\n\n```relay answer\n1\n```\n\nHint: one\n", "it has no wrong answer"),
    ("# T\n\ntext\n\n```relay show\nno_such\n```\n", "ends in a mistake"),
    ("# T\n\ntext\n\n```relay answer R0312\n1 + 1\n```\n```relay wrong\n1\n```\n\nHint: one\n", "its own answer is refused"),
    ("# T\n\ntext\n\n```relay answer\ndef f(x) { x }\n```\n```relay try\nf(1)\n```\n```relay wrong\n"
     "def f(x) { x + 0 }\n```\nNo.\n\nHint: one\n", "a wrong answer is taken"),
]


def main():
    relay, bless = os.path.abspath(sys.argv[1]), "--bless" in sys.argv
    passed = failed = 0

    def check(ok, what):
        nonlocal passed, failed
        passed, failed = passed + bool(ok), failed + (not ok)
        if not ok:
            print(what)

    for name in sorted(n for n in os.listdir(LESSONS) if n.endswith(".tut")):
        status, out, err = run_program([relay, "doctest", "--transcript", os.path.join("repl", "tutor", name)],
                                       b"", PATIENCE * SLOW, ROOT)
        check(status == 0 and not err, "%s: status %s\n%s%s" % (name, status, out[-3000:], err[-3000:]))
        out = TIMES.sub("(times)", out)
        said = os.path.join(TESTS, "tutor", name.replace(".tut", ".txt"))
        if bless:
            with open(said, "w", encoding="utf-8") as f:
                f.write(out)
        with open(said, encoding="utf-8") as f:
            want = f.read().split("\n")
        got = out.split("\n")
        at = next((i for i, pair in enumerate(zip(want, got)) if pair[0] != pair[1]), min(len(want), len(got)))
        check(want == got, "%s:%d: expected\n%s\nfound\n%s" % (said, at + 1, "\n".join(want[at:at + 8]),
                                                           "\n".join(got[at:at + 8])))
    with tempfile.TemporaryDirectory() as folder:
        for text, said in BAD:
            path = os.path.join(folder, "lesson.tut")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            status, out, err = run_program([relay, "doctest", path], b"", PATIENCE * SLOW)
            check(status == (0 if said is None else 1) and (said is None or said in out),
                  "%r: status %s\n%s%s" % (text, status, out, err))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
