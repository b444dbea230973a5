# SPDX-License-Identifier: Apache-2.0
"""Documentation is tested. In README.md and docs/*.md, blocks fenced as ```relay are run:
those with lines that begin `relay> ` by `relay doctest`, which takes those of the manual page too,
others as programs, which must end without a diagnostic and print what their `// expect:` comments say,
if there are any; `// error: R0301 words` is as in golden tests. Blocks fenced as ```relay-fragment are
not run."""
import os
import re
import tempfile

import golden
import messages
from process import PATIENCE, run_program

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def blocks(path):
    """(line, text) of each."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    found, start = [], None
    for i, line in enumerate(lines):
        if start is None and re.match(r"```relay\s*$", line):
            start = i + 1
        elif start is not None and line.startswith("```"):
            found.append((start + 1, lines[start:i]))
            start = None
    return found


def doctest(options, report, path):
    """Runs what a page types at the prompt."""
    status, out, err = run_program([options.relay, "doctest", path], b"", PATIENCE * options.slow, ROOT)
    with open(path, encoding="utf-8") as f:
        options.drawn.update(messages.drawn_in(f.read()))
    report.add(os.path.relpath(path, ROOT) + " transcript", "passed" if status == 0 else "failed",
               out[-6000:] + err[-2000:])


def job(options, report, page):
    name = os.path.relpath(page, ROOT)
    if page.endswith(".1"):
        doctest(options, report, page)
        return
    types = False
    for line, text in blocks(page):
        if any(l.startswith("relay> ") for l in text):
            types = True
            continue
        with tempfile.TemporaryDirectory() as folder:  # in which it runs, and may write
            path = os.path.join(folder, "block.rly")
            with open(path, "w", encoding="utf-8") as f:
                f.write("\n".join(text) + "\n")
            test = golden.Golden(path)
            test.lenient = True
            wrong, _, _ = golden.run_golden(options, test, "--jit=on")
        report.add("%s:%d" % (name, line), "failed" if wrong else "passed", "\n".join(wrong))
    if types:
        doctest(options, report, page)
