#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`:step` at a terminal: what each of its commands shows next.

    tests/property/step.py RELAY
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import transcript

PROGRAM = "def g(y) { let s = y * y; s + 1.0 }\ndef f(x) { let a = g(x); sin(a) }\n"
# (what is typed at `step> `, what the last line before the next `step> ` or prompt says)
CASES = [
    (":step f(2.0)", ["s", "", "v", "n", "q"],
     ["enter f(2.0)", "enter g(2.0)", "y * y  =  4.0", "y = 2.0", "s + 1.0  =  5.0", "given up"]),
    (":step f(2.0)", ["s", "o"], ["enter f(2.0)", "enter g(2.0)", "sin(a)  =  -0.95892"]),
    (":step f(2.0)", ["n"], ["enter f(2.0)", "sin(a)  =  -0.95892"]),
    (":step grad(f)(2.0)", ["u 9", ], ["a derivative begins", "the value is (-0.958924, (1.13465,))"]),
    (":step grad(f)(2.0)", ["c"], ["a derivative begins", "the value is (-0.958924, (1.13465,))"]),
    (":step f(2.0)", ["x", "u", "q"], ["enter f(2.0)", "v values in scope", "v values in scope", "given up"]),
]


def last_lines(screen):
    return [l for l in screen.text() if l.strip() and not l.startswith("step>")]


def draws_plainly(relay):
    """The tree of `:graph` where the locale is not UTF-8."""
    os.environ["LC_ALL"] = "C"
    terminal = transcript.Terminal([relay], 100)
    terminal.wait_prompt()
    terminal.type(":graph grad(fn (x) { sin(x) * x })(1.0)\n")
    terminal.wait_prompt()
    terminal.send("\004")
    text = "\n".join(terminal.screen.text())
    return terminal.finish() == 0 and "\n|- sin" in text and "\n|  `- x" in text and text.isascii()


def main():
    relay, passed, failed = os.path.abspath(sys.argv[1]), 0, 0
    for command, keys, wants in CASES:
        terminal = transcript.Terminal([relay], 100)
        terminal.wait_prompt()
        for line in (PROGRAM + command).rstrip("\n").split("\n"):
            terminal.type(line + "\n")
            if line != command:
                terminal.wait_prompt()
        said = []
        for key in keys + [None]:
            asked = lambda: terminal.screen.line().startswith("step> ") and terminal.screen.y > terminal.typed_row
            if not terminal.wait(lambda: asked() or terminal.is_prompting()):
                break
            said.append(last_lines(terminal.screen))
            if key is None or not asked():
                break
            terminal.typed_row = terminal.screen.y
            terminal.send(key + "\n")
        ok = len(said) == len(wants) and all(
            want is None or any(want in line for line in lines[-3:]) for want, lines in zip(wants, said))
        if not terminal.is_prompting():
            terminal.send("q\n")
            terminal.wait_prompt()
        terminal.send("\004")
        status = terminal.finish()
        ok = ok and status == 0
        passed, failed = passed + ok, failed + (not ok)
        if not ok:
            print("%s, %s: status %s" % (command, keys, status))
            print("\n".join("  " + l for l in terminal.screen.text()))
    plain = draws_plainly(relay)
    if not plain:
        print("`:graph` in the locale C")
    passed, failed = passed + plain, failed + (not plain)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
