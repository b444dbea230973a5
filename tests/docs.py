# SPDX-License-Identifier: Apache-2.0
"""Documentation is tested. In README.md and docs/*.md, blocks fenced as ```relay are run:
those with lines that begin `relay> ` as transcripts of the prompt (the blocks of one file are one
session), others as programs, which must end without a diagnostic and print what their `// expect:`
comments say, if there are any; `// error: R0301 words` is as in golden tests. Blocks fenced as
```relay-fragment are not run."""
import os
import re
import tempfile

import golden
import transcript

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


def job(options, report, path):
    name = os.path.relpath(path, ROOT)
    session = []
    for line, text in blocks(path):
        if any(l.startswith("relay> ") for l in text):
            session += text
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".rly", encoding="utf-8") as f:
            f.write("\n".join(text) + "\n")
            f.flush()
            test = golden.Golden(f.name)
            test.lenient = not test.expects
            wrong, _, _ = golden.run_golden(options, test, "--jit=on")
        report.add("%s:%d" % (name, line), "failed" if wrong else "passed", "\n".join(wrong))
    if session:
        wrong = transcript.compare(options, ["Relay {*}"] + session, [], 100)[0]
        report.add(name + " transcript", "failed" if wrong else "passed", "\n".join(wrong))
