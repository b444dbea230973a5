#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What editors/ says of Relay: each option and command of `relay --help` is completed by each shell, each reserved
word coloured by each editor; bash completes what it should.

    tests/property/editors.py RELAY
"""
import json
import os
import re
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from process import PATIENCE, SLOW, run_program

EDITORS = os.path.join(ROOT, "editors")
WORDS = ("let in if then else match fn def type when with where import operator extern derivative tangent no_derivative "
         "bool int8 uint64 float16 bfloat16 float32 String Tensor True False list Grad Zero").split()
# (what is typed, an answer that must be there, one that must not)
BASH = [("relay che", "check", "doc"), ("relay --jit", "--jit=", "--seed="), ("relay --jit = o", "on", "vm"),
        ("relay --engine = ", "reference", "on"), ("relay ed", "editors", "check")]


def read(name):
    with open(os.path.join(EDITORS, name), encoding="utf-8") as f:
        return f.read()


def main():
    passed = failed = skipped = 0

    def check(ok, what):
        nonlocal passed, failed
        passed, failed = passed + bool(ok), failed + (not ok)
        if not ok:
            print(what)

    _, text, _ = run_program([os.path.abspath(sys.argv[1]), "--help"], b"", PATIENCE * SLOW)
    options = re.findall(r"^  --([\w-]+)[= ]", text, re.M)
    commands = re.findall(r"^  relay (\w+) ", text, re.M)
    check(len(options) > 20 and len(commands) > 5, "`relay --help` lists too little")
    for name, option in ("relay.bash", "--%s"), ("_relay", "'--%s"), ("relay.fish", "-l %s"):
        shell = read(name)
        for o in options:
            check(re.search(re.escape(option % o) + r"(?![\w-])", shell), "%s: no --%s" % (name, o))
        for c in commands:
            check(re.search(r"\b%s\b" % c, shell), "%s: no command %s" % (name, c))
    json.loads(read("relay.tmLanguage.json"))
    for name in "relay.vim", "relay-mode.el", "relay.tmLanguage.json":
        for word in WORDS:
            check(re.search(r"\b%s\b" % word, read(name)), "%s: no `%s`" % (name, word))
    bash = shutil.which("bash")
    for line, wanted, unwanted in BASH if bash else []:
        words = line.split(" ")
        script = ("compopt() { :; }; source editors/relay.bash; COMP_WORDS=(%s); COMP_CWORD=%d; _relay; "
                  "printf '%%s\\n' \"${COMPREPLY[@]}\"" % (" ".join("'%s'" % w for w in words), len(words) - 1))
        status, out, err = run_program([bash, "-c", script], b"", PATIENCE * SLOW, ROOT)
        check(wanted in out.split() and unwanted not in out.split() and not err, "%s: %s%s" % (line, out, err))
    skipped += not bash
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
