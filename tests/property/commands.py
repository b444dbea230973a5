#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command and its flags over the golden tests, whatever these are about.

    tests/property/commands.py RELAY [--share=F] [--seed=N] [--only=PART-OF-NAME]

No signal, no bug of Relay, status 0 or 1, diagnostics that are JSON where JSON was asked for; what `fmt` and
`fmt --tvm` write is read back, and they write the same of it. A finding names the command.

Starting the program costs more than most goldens, so each command gets GROUP of them at once; where that
fails each gets its own, to name it. Under sanitizers, which see more, all goldens are taken, else a share.
`ir` with all passes gets every golden that is taken. A pass by itself gets a share of the groups, and in
them the goldens that check: the others end before it.
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
MARK = "separator_"  # a name that no golden has
GROUP = 20
with open(os.path.join(os.path.dirname(TESTS), "passes", "passes.def"), encoding="utf-8") as defined:
    PASSES = re.findall(r"^PASS\((\w+),", defined.read(), re.M)


class Finding(Exception):
    pass


def run(relay, args, cwd):
    status, out, said = run_program([relay] + args, b"", PATIENCE * SLOW, cwd)
    if status not in (0, 1) or "bug in Relay" in said or "Sanitizer" in said or "runtime error:" in said:
        raise Finding("relay %s: status %s\n%s" % (" ".join(args), status, said[-2000:]))
    return status, out, said


def check_json(args, text):
    """What each line of the text is."""
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        raise Finding("relay %s: no JSON: %s" % (" ".join(args), text[:300]))


def refused(messages):
    """The files in which the messages find an error."""
    return {m["file"] for m in messages if m["severity"] == "error"}


def read_json(relay, args, cwd):
    """The messages of a command."""
    _, out, said = run(relay, args, cwd)
    return check_json(args, said + (out if args[0] == "check" else ""))


def format_all(relay, flags, paths, folder):
    """The status, what `fmt` writes of each file, and what it says. A file with a name that no other has
    stands after each: what is written of it parts the texts."""
    head = '#[version = "0.0.5"]\n' if "--tvm" in flags else ""
    args, marks = ["fmt"] + flags, []
    for i, path in enumerate(paths):
        marks.append("%s%s%d\n" % (head, MARK, i))
        with open(os.path.join(folder, "mark%d.rly" % i), "w", encoding="utf-8") as f:
            f.write(marks[i])
        args += [path, "mark%d.rly" % i]
    status, out, said = run(relay, args, folder)
    texts = []
    for path, mark in zip(paths, marks):
        text, found, out = out.partition(mark)
        if not found:
            raise Finding("relay fmt %s: %s is lost\n%s" % (" ".join(flags), path, said[-1500:]))
        texts.append(text)
    return status, texts, said


def check_format(relay, flags, paths, folder):
    """What `fmt` writes without an error is read back, and it writes the same again."""
    flags = flags + ["--diagnostics=json"]
    _, texts, said = format_all(relay, flags, paths, folder)
    wrong = refused(check_json(["fmt"] + flags, said))
    read = [(path, text) for path, text in zip(paths, texts) if path not in wrong]
    if not read:
        return
    copies = ["%d-%s" % (i, os.path.basename(path)) for i, (path, _) in enumerate(read)]
    for name, (_, text) in zip(copies, read):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as f:
            f.write(text)
    status, again, said = format_all(relay, flags, copies, folder)
    if status != 0:
        raise Finding("relay fmt %s: what it writes is not read back\n%s" % (" ".join(flags), said[:1500]))
    for (path, once), twice in zip(read, again):
        if once != twice:
            raise Finding("relay fmt %s %s: what it writes it would write in another way" % (" ".join(flags), path))


def new_names(paths, seen):
    """The names in the files that are not among those seen, which they join."""
    names = set()
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as f:
            names.update(re.findall(r"[A-Za-z_][A-Za-z0-9_.]*[A-Za-z0-9_]", f.read()))
    names -= seen
    seen |= names
    return sorted(names)


def check_group(relay, paths, names, alone, scratch):
    """How many commands ran. paths: of goldens; names: for `doc`; alone: the passes that run by themselves."""
    messages = read_json(relay, ["check", "--residual", "--diagnostics=json"] + paths, None)
    wrong = refused(messages)
    ran = 1
    spoken_of = sorted({m["file"] for m in messages})
    if spoken_of:
        run(relay, ["check", "--diagnostics=short"] + spoken_of, None)
        ran += 1
    if names:
        run(relay, ["doc"] + names, None)
        ran += 1
    folder = tempfile.mkdtemp(dir=scratch)
    for flags in ([], ["--tvm"]):
        check_format(relay, flags, paths, folder)
        ran += 2
    right = [path for path in paths if path not in wrong]
    for passes, given in [(",".join(PASSES), paths)] + [(name, right) for name in alone]:
        if given:
            read_json(relay, ["ir", "--diagnostics=json", "--pass=" + passes] + given, None)
            ran += 1
    return ran


def check_paths(relay, paths, names, alone, scratch):
    """How many commands ran, and what was found."""
    try:
        return check_group(relay, paths, names, alone, scratch), []
    except Finding as finding:
        if len(paths) == 1:
            return 0, ["%s: %s" % (os.path.relpath(paths[0], GOLDEN), finding)]
        each = [check_paths(relay, [path], names, alone, scratch) for path in paths]
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
    taken = set(share.sample(options, [(i, name) for i in range(len(groups)) for name in PASSES], len(groups)))
    alone = [[name for name in PASSES if (i, name) in taken] for i in range(len(groups))]
    seen = set()
    names = [new_names(group, seen) for group in groups]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(check_paths, relay, *group, scratch) for group in zip(groups, names, alone)]:
            ran, found = job.result()
            passed, failed = passed + ran, failed + len(found)
            for finding in found:
                print("FAILED " + finding)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
