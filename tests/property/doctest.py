#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `relay doctest` says of pages that are right, wrong or no pages.

    tests/property/doctest.py RELAY
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from process import PATIENCE, SLOW, run_program

FENCE = "```"
EMPTY = "PATH: no block fenced as ```relay types anything at `relay> `\n0 passed, 1 failed\n"
# (what is tested, file name, its text, status, standard output)
CASES = [
    ("right answers pass", "a.md", """text
```relay
relay> let x = [[1.0, 2.0],
  ...> [3.0, 4.0]]
x : Tensor[(2, 2), float32]
relay> x
[[1.0, 2.0],
 [3.0, 4.0]] : Tensor[(2, 2), float32]
```
relay> outside
```relay
relay> sum(x)
10.0 : float32
relay> :type x
Tensor[(2, 2), float32]
```
""", 0, None),
    ("a wrong answer is shown with the right one", "a.md", "```relay\nrelay> 1 + 1\n3 : int32\nrelay> 2\n2 : int32\n```\n",
     1, "PATH:2: relay> 1 + 1\n  - 3 : int32\n  + 2 : int32\n1 passed, 1 failed\n"),
    ("a missing answer is a failure", "a.md", "```relay\nrelay> 1 + 1\n```\n",
     1, "PATH:2: relay> 1 + 1\n  + 2 : int32\n0 passed, 1 failed\n"),
    ("an answer too many is a failure", "a.md", "```relay\nrelay> let x = 1\nx : int32\nx : int32\n```\n",
     1, "PATH:2: relay> let x = 1\n  - x : int32\n  - x : int32\n  + x : int32\n0 passed, 1 failed\n"),
    ("a star stands for any text of a line", "a.md",
     "```relay\nrelay> :time 1\n1 : int32\nchecked in {*} ms, {*}\nrelay> 12\n1{*}3 : int32\n```\n",
     1, "PATH:5: relay> 12\n  - 1{*}3 : int32\n  + 12 : int32\n1 passed, 1 failed\n"),
    ("diagnostics are answers", "a.md", """```relay
relay> y
error[R0101]: there is no `y`
  --> prompt 1:1:1
   |
 1 | y
   | ^
```
""", 0, None),
    ("an entry that is given up answers nothing", "a.md", "```relay\nrelay> (1 +\n  ...>\nrelay> 2\n2 : int32\n```\n", 0, None),
    ("an unfinished entry fails", "a.md", "```relay\nrelay> (1 +\n```\n", 1, None),
    ("the session ends where it says so", "a.md", "```relay\nrelay> 1\n1 : int32\nrelay> ^D\nrelay> 2\n```\n", 0, None),
    ("and after :quit", "a.md", "```relay\nrelay> :quit\nrelay> 2\n```\n", 0, None),
    ("what needs the prompt says so", "a.md", "```relay\nrelay> :history\n`:history` needs the prompt\n```\n", 0, None),
    ("other blocks are not run", "a.md", FENCE + "relay-fragment\nrelay> 1\n2 : int32\n```\n", 1, EMPTY),
    ("a page of no block", "a.md", "nothing\n", 1, EMPTY),
    ("an empty page", "a.md", "", 1, EMPTY),
    ("a fence that does not end", "a.md", "```relay\nrelay> 1\n1 : int32", 0, None),
    ("no UTF-8", "a.md", b"\xff\xfe```relay\n```relay\nrelay> \xff\n", 1, None),
    ("a manual page", "a.1", ".SH X\n.nf\nrelay> \\-1\n\\-1 : int32\nrelay> \\(aqa\\(aq\n.fi\n", 1, None),
    ("its escapes", "a.7", ".EX\nrelay> \"\\et\\fB\\fR\" ++ \\&\"-\"\n\"\\et-\" : String\n.EE\n", 0, None),
    ("a page of escapes that is right", "a.1", ".nf\nrelay> 3 \\- 4\n\\-1 : int32\n.fi\n", 0, None),
    ("CRLF", "a.md", "```relay\r\nrelay> 1\r\n1 : int32\r\n```\r\n", 0, None),
]


def main():
    relay, passed, failed = os.path.abspath(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for what, name, text, want_status, want_out in CASES:
            path = os.path.join(folder, name)
            with open(path, "wb") as f:
                f.write(text if isinstance(text, bytes) else text.encode())
            status, out, err = run_program([relay, "doctest", path], b"", PATIENCE * SLOW)
            ok = status == want_status and (want_out is None or out == want_out.replace("PATH", path))
            passed, failed = passed + ok, failed + (not ok)
            if not ok:
                print("%s: status %s, %s%s" % (what, status, out, err))
        status, out, err = run_program([relay, "doctest", os.path.join(folder, "none.md")], b"", PATIENCE * SLOW)
        ok = status == 1 and "cannot read" in err
        passed, failed = passed + ok, failed + (not ok)
        if not ok:
            print("a page that is not there: status %s, %s%s" % (status, out, err))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
