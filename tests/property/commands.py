#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command and its flags over the golden tests, whatever these are about.

    tests/property/commands.py RELAY [--share=F] [--seed=N] [--only=PART-OF-NAME]

No signal, no bug of Relay, status 0 or 1, diagnostics that are JSON where JSON was asked for; what `fmt` and
`fmt --tvm` write is read back, and they write the same of it. A finding names the command.

Commands that take several files get GROUP at once; where that fails each gets its own, to name it. Under
sanitizers, which see more, all goldens are taken, else a share.
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
GROUP = 20


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


def read_json(relay, args, cwd):
    _, out, said = run(relay, args, cwd)
    check_json(args, said)
    if args[0] == "check":
        check_json(args, out)


def read_back(relay, flags, texts, scratch):
    """texts: what `fmt` wrote, by the name of a file. It writes the same of each again."""
    if not texts:
        return
    for name, text in texts:
        with open(os.path.join(scratch, name), "w", encoding="utf-8", newline="") as f:
            f.write(text)
    args = ["fmt"] + flags + [name for name, _ in texts]
    status, again, said = run(relay, args, scratch)
    if status != 0:
        raise Finding("relay %s: what it writes is not read back\n%s" % (" ".join(args), said[:1500]))
    if again != "".join(text for _, text in texts):
        raise Finding("relay %s: what it writes it would write in another way" % " ".join(args))


def names_in(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return re.findall(r"[A-Za-z_][A-Za-z0-9_.]*[A-Za-z0-9_]", f.read())


def check_group(relay, paths, scratch):
    """How many commands ran. paths: of goldens."""
    ran = 0
    for flags in (["check", "--residual", "--diagnostics=json"], ["check", "--diagnostics=short"]):
        (read_json if flags[1] == "--residual" else run)(relay, flags + paths, None)
        ran += 1
    run(relay, ["doc"] + sorted({name for path in paths for name in names_in(path)}), None)
    folder = tempfile.mkdtemp(dir=scratch)
    for flags in ([], ["--tvm"]):
        texts = []
        for i, path in enumerate(paths):
            status, text, _ = run(relay, ["fmt"] + flags + [path], None)
            if status == 0:
                texts.append(("%d%s-%s" % (i, "".join(flags), os.path.basename(path)), text))
        read_back(relay, flags, texts, folder)
        ran += len(paths) + 1
    for path in paths:
        cwd, name = os.path.split(path)  # what it imports lies there
        one = PASSES[sum(name.encode()) % len(PASSES)]
        read_json(relay, ["ir", "--diagnostics=json", "--pass=" + one, name], cwd)
        run(relay, ["ir", "--pass=" + ",".join(PASSES), name], cwd)
        ran += 2
    return ran + 1


def check_paths(relay, paths, scratch):
    """How many commands ran, and what was found."""
    try:
        return check_group(relay, paths, scratch), []
    except Finding as finding:
        if len(paths) == 1:
            return 0, ["%s: %s" % (os.path.relpath(paths[0], GOLDEN), finding)]
        each = [check_paths(relay, [path], scratch) for path in paths]
        found = [f for _, some in each for f in some]
        return sum(n for n, _ in each), found or ["several at once: %s" % finding]


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--only", default="", help="goldens whose path has this in it")
    options = parser.parse_args()
    relay = os.path.abspath(options.relay)
    paths = sorted(os.path.join(d, n) for d, _, names in os.walk(GOLDEN) for n in names
                   if n.endswith(".rly") and options.only in os.path.join(d, n))
    chosen = paths if SLOW > 1 else share.sample(options, paths)
    groups = [chosen[i:i + GROUP] for i in range(0, len(chosen), GROUP)]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(check_paths, relay, group, scratch) for group in groups]:
            ran, found = job.result()
            passed, failed = passed + ran, failed + len(found)
            for finding in found:
                print("FAILED " + finding)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
