#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command and its flags over the golden tests, whatever these are about.

    tests/property/commands.py RELAY [--share=F] [--seed=N] [--only=PART-OF-NAME]

No signal, no bug of Relay, status 0 or 1, diagnostics that are JSON where JSON was asked for; what `fmt` and
`fmt --tvm` write is read back, and they write the same of it. A finding names the command.
"""
import concurrent.futures
import json
import os
import re
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import share
from process import PATIENCE, SLOW, run_program

GOLDEN = os.path.join(TESTS, "golden")
PASSES = ["ad", "dce", "inline", "partial_eval"]


class Finding(Exception):
    pass


def run(relay, args, cwd):
    status, out, said = run_program([relay] + args, b"", PATIENCE * SLOW, cwd)
    if status not in (0, 1) or "bug in Relay" in said or "Sanitizer" in said or "runtime error:" in said:
        raise Finding("relay %s: status %s\n%s" % (" ".join(args), status, said[-2000:]))
    return status, out, said


def check_json(args, text):
    for line in text.splitlines():
        try:
            json.loads(line)
        except ValueError:
            raise Finding("relay %s: no JSON: %s" % (" ".join(args), line[:300]))


def format_twice(relay, flags, name, cwd, scratch):
    """What `fmt` writes is read back; without flags, as the same text."""
    status, text, _ = run(relay, ["fmt"] + flags + [name], cwd)
    if status != 0:
        return
    again = os.path.join(scratch, "fmt%s-%s" % ("".join(flags), name))
    with open(again, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write(text)
    status, second, said = run(relay, ["fmt"] + flags + [again], cwd)
    if status != 0:
        raise Finding("relay fmt %s %s: what it writes is not read back\n%s" % (" ".join(flags), name, said[:1500]))
    if second != text:
        raise Finding("relay fmt %s %s: what it writes it would write in another way" % (" ".join(flags), name))


def names_in(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return sorted(set(re.findall(r"[A-Za-z_][A-Za-z0-9_.]*[A-Za-z0-9_]", f.read())))


def check_file(relay, path, scratch):
    """How many commands ran."""
    cwd, name = os.path.split(path)
    for flags in (["check", "--residual", "--diagnostics=json"], ["ir", "--diagnostics=json"]):
        status, out, said = run(relay, flags + [name], cwd)
        check_json(flags + [name], said)
        if flags[0] == "check":
            check_json(flags + [name], out)
    for flags in [["check", "--diagnostics=short"]] + [["ir", "--pass=" + p] for p in PASSES] + [
            ["ir", "--pass=" + ",".join(PASSES)], ["doc"]]:
        run(relay, flags + (names_in(path) if flags == ["doc"] else [name]), cwd)
    format_twice(relay, [], name, cwd, scratch)
    format_twice(relay, ["--tvm"], name, cwd, scratch)
    return 13


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--only", default="", help="goldens whose path has this in it")
    options = parser.parse_args()
    relay = os.path.abspath(options.relay)
    paths = sorted(os.path.join(d, n) for d, _, names in os.walk(GOLDEN) for n in names
                   if n.endswith(".rly") and options.only in os.path.join(d, n))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, job in [(p, pool.submit(check_file, relay, p, scratch)) for p in share.sample(options, paths)]:
            try:
                passed += job.result()
            except Finding as finding:
                failed += 1
                print("FAILED %s: %s" % (os.path.relpath(path, GOLDEN), finding))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
