#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The line of `progress`: on terminals of several widths and kinds, in a file, and not at all.

    tests/property/progress.py RELAY
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import process
import transcript

# Steps wait for the clock, so that lines are written between the first and the last.
PROGRAM = """
def step(x: float32) -> float32 { let until = clock() + 0.04; let _ = while(fn (u) { clock() < until }, id, 0); x * 0.5 }
progress_with(20, step, 1024.0, %s)
"""


def on_terminal(relay, path, columns, **environment):
    command = ["/usr/bin/env"] + ["%s=%s" % pair for pair in environment.items()] + [relay, path]
    terminal = transcript.Terminal(command, columns)
    raw = []
    feed = terminal.screen.feed
    terminal.screen.feed = lambda data: (raw.append(data), feed(data))
    while terminal.read(10):
        pass
    terminal.finish()
    return terminal.screen.text(), "".join(raw)


def main():
    relay, passed, failed = os.path.abspath(sys.argv[1]), 0, 0

    def check(name, ok, said):
        nonlocal passed, failed
        passed, failed = passed + bool(ok), failed + (not ok)
        if not ok:
            print("FAILED %s: %r" % (name, said))

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "long.rly")

        def program(note):
            with open(path, "w") as f:
                f.write(PROGRAM % note)

        program("id")
        for columns in (100, 40, 12):
            lines, raw = on_terminal(relay, path, columns, LANG="C.UTF-8", LC_ALL="", TERM="xterm")
            check("one line at %d columns" % columns, len([l for l in lines if "20" in l]) == 1, lines)
            check("it is written over", raw.count("\r2") + raw.count("\r1") > 2, raw)
        lines, _ = on_terminal(relay, path, 100, LANG="C.UTF-8", LC_ALL="", TERM="xterm")
        check("all parts", re.fullmatch(r"20/20  █{18}  [\d.]+/s  0\.0009766  █[▁-█]+▁", lines[0].rstrip()), lines)
        lines, _ = on_terminal(relay, path, 40, LANG="C.UTF-8", LC_ALL="", TERM="xterm")
        check("the note where room is short", re.fullmatch(r"20/20  0\.0009766  [\d.]+/s.*", lines[0].rstrip()), lines)
        lines, _ = on_terminal(relay, path, 100, LANG="C", LC_ALL="C", TERM="xterm")
        check("ASCII", lines[0].isascii() and "#" * 18 in lines[0], lines)
        lines, raw = on_terminal(relay, path, 100, TERM="dumb")
        check("a dumb terminal", "\033" not in raw and [l.split()[0] for l in lines if "/20" in l] ==
              ["1/20", "2/20", "4/20", "8/20", "16/20", "20/20"], lines)
        program('fn (x) { str.join("", list["loss ", show(x), "\\n"]) }')
        lines, _ = on_terminal(relay, path, 100, LANG="C.UTF-8", LC_ALL="", TERM="xterm")
        check("a text that ends in a number", re.search(r"loss 0\.0009765625 ?", lines[0]), lines)
        for flags, count in (([], 6), (["--progress=never"], 0), (["--progress=auto"], 6)):
            done = subprocess.run([relay] + flags + [path], capture_output=True, text=True, timeout=60 * process.SLOW)
            check("a file %s" % flags, len(done.stderr.splitlines()) == count and "\033" not in done.stderr, done.stderr)
        done = subprocess.run([relay, "--progress=often", path], capture_output=True, text=True)
        check("nonsense", done.returncode == 2, done.stderr)
        program("fn (x) { log(0.0 - x) }")
        lines, _ = on_terminal(relay, path, 100, LANG="C.UTF-8", LC_ALL="", TERM="xterm")
        check("numbers that are none", re.search(r"nan  \?+$", lines[0].rstrip()), lines)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    process.settle_environment(tempfile.gettempdir())
    sys.exit(main())
