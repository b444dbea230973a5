#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hundred edits of what makes derivatives, at places of its own choosing (`make mutate`).

    mutate_derivatives.py [--work=DIR] [--seed=N] [--count=N] [--only=WORD] [--list] [--configure=FLAGS]

Where derivatives are made, in the rules of operators and in the code that applies them, patterns find the places
of which each is a fault that somebody could make: a sign, a factor or a term that is dropped, the wrong side of a
kink or tie, the wrong arm, an accumulator that is taken to be absent, a step left out. Of these `--count` are drawn
by `--seed`, evenly from the kinds. Each edit is made in a copy of the tree, built incrementally, judged, undone:

    rules     an edited rule by the cases of its operator in property/gradients.py and property/zero_cotangents.py
    goldens   tests/golden/grad, tests/golden/ad, those of NaN and of counted instructions, by the engine that is edited
    prompt    an edited reference evaluator: what the prompt shows of a derivative, `:graph`, `:step` and `:nan`
    counts    an edited pass: what a step of common networks launches and takes, by property/work.py
    units     an edited pass: what is kept until something is redefined, and sums that no program is known to make
    programs  2,000 random programs of property/derivatives.py, until one of them is wrong

It tells of each who found it first. More than one in fifty that nobody finds is a failure. With --work=DIR the copy,
its build and the verdicts stay there, and a run that was interrupted, or ended by --minutes, goes on with the tests as they are
then; --again judges once more what survived. --only takes the edits that have a word in their description. An edit that does not compile is no edit: the next of its kind is drawn in its stead.
"""
import argparse
import collections
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import mutate

PROGRAMS, FEW = 2000, 60  # few find most, in seconds
GOLDENS = ["golden/grad", "golden/ad", "golden/errors/nan", "golden/errors/an_operator", "golden/cli/count"]
PROMPT = ["graph", "nan", "gradient"]
UNITS = ["tests/unit/test_reverse", "tests/unit/test_eval"]
FOUND = 0.98
RULES = ["prelude/derivatives.rly", "prelude/derivatives_nn.rly"]
PASSES = ["passes/reverse/alias.c", "passes/reverse/back.c", "passes/reverse/backs.c", "passes/reverse/derive.c",
          "passes/reverse/make.c", "passes/reverse/merge.c", "passes/reverse/nested.c", "passes/reverse/own.c",
          "passes/reverse/place.c", "passes/reverse/read.c", "passes/reverse/replay.c", "passes/reverse/rule.c",
          "passes/reverse/tangent.c", "eval/accumulate.c", "eval/reference/derivative.c", "passes/reverse/split.c",
          "passes/reverse/known.c", "passes/reverse/demand.c", "passes/reverse/twice.c", "passes/reverse/functions.c",
          "passes/reverse/references.c", "passes/reverse/rows.c", "passes/reverse/mirror.c",
          "passes/reverse/cellwise.c", "passes/reverse/beside.c"]
# a statement of one line that may be left out: it puts a value, a step or an accumulator somewhere
STEPS = ("acc_set acc_add acc_move accumulate add_to add_slice enter_arm leave_arm end_return move_one places_reset "
         "restore_accs settle way_choose way_step way_steps forward_steps alias_each learn_out")
# what only says that a function is not taken, or that another round is needed, changes no derivative
HARMLESS = re.compile(r"refuse|give_up|->why|changed|waits|BUG|interrupt|_fail|outline|SPARE_STACK|deep")

# kind, files, pattern, replacement; the pattern's whole match is replaced
KINDS = [
    ("sign", RULES, r"\bnegative(?=\()", "copy"),
    ("sign", RULES, r"(?<=[\w)]) - (?=[\w(])", " + "),
    ("factor", RULES, r" \* \d[\d.]*(?![\w.])", ""),
    ("factor", RULES, r" / \(?\w+\b(?!\()\)?", ""),
    ("factor", RULES, r"\bstrong_multiply\((ct), (\w+)\)", r"\1"),
    ("factor", RULES, r"\bstrong_divide\((ct), (\w+)\)", r"\1"),
    ("term", RULES, r" \+ (?:\d[\d.]*|\w+(?:\.\w+)*(?! *[\w.(]))", ""),
    ("kink", RULES, r" >= ", " > "),
    ("kink", RULES, r" <= ", " < "),
    ("kink", RULES, r" > (?=0\.0)", " >= "),
    ("kink", RULES, r"\bgreater_equal(?=\()", "greater"),
    ("kink", RULES, r"\bless_equal(?=\()", "less"),
    ("tie", RULES, r"\bequal(?=\()", "not_equal"),
    ("strong", RULES, r"\bstrong_multiply(?=\()", "multiply"),
    ("strong", RULES, r"\bstrong_divide(?=\()", "divide"),
    ("arm", RULES, r"\bwhere\((\w+), (\w+), (0\.0)\)", r"where(\1, \3, \2)"),
    ("arm", RULES, r"\bif \((\w+)\)", r"if (!\1)"),
    ("step", PASSES, r"(?m)^( +)(?:%s)\([^\n]*\);$" % STEPS.replace(" ", "|"), r"\1;"),
    ("absent", PASSES, r"(?<=[=!]= )ABSENT\b", "PRESENT"),
    ("absent", PASSES, r"(?<=[,?:] )PRESENT\b", "ABSENT"),
    ("arm", PASSES, r"\? ([\w>.-]+(?:\([^?:;()]*\))?) : ([\w>.-]+(?:\([^?:;()]*\))?)(?=[;,)])", r"? \2 : \1"),
    ("test", PASSES, r"\bif \((!?[\w>.-]+(?:\([^()\n]*\))?)\)$", r"if (!(\1))"),
    ("both", PASSES, r" && (?=[^\n]*[;{)]$)", " || "),
    ("flag", PASSES, r"(?<= = )true(?=;)", "false"),
]


def hide_comments(text, relay):
    """The text with blanks for comments, of the same length."""
    pattern = r"//[^\n]*" if relay else r"/\*.*?\*/|//[^\n]*"
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def find_item(text, at, relay):
    """The rule or function around a place, or None."""
    head = r"^(?:derivative|tangent) ([\w.]+)\(" if relay else r"^[\w][^;{}=\n]*?\b(\w+)\([^;{}]*\) \{"
    last = None
    for m in re.compile(head, re.M).finditer(text, 0, at):
        last = m
    if not last or (not relay and "\n}" in text[last.end():at]):
        return None
    return last.group(1)


class Edit:
    """What is replaced by what, and the item it stands in."""

    def __init__(self, kind, path, item, text, m, new):
        self.kind, self.path, self.item = kind, path, item
        self.begin, self.end, self.new = m.start(), m.end(), new
        self.line = text.count("\n", 0, m.start()) + 1
        self.old = m.group()
        self.names_rule = bool(re.search(r"^(?:derivative|tangent) $", text[:m.start()], re.M))
        begin, end = text.rfind("\n", 0, m.start()) + 1, text.find("\n", m.end())
        self.what = (text[begin:m.start()] + new + text[m.end():end]).strip()
        before = text.count(self.old, 0, m.start())
        self.key = hashlib.sha1(("%s %s %s %s %s %d" % (kind, path, item, self.what, new, before)).encode()).hexdigest()[:12]

    def __str__(self):
        return "%s %s:%d %s: %s" % (self.kind, self.path, self.line, self.item, self.what)


def find_edits(tree):
    """All edits that the patterns find, by kind."""
    found = collections.OrderedDict()
    for kind, paths, pattern, replacement in KINDS:
        for path in paths:
            relay = path.endswith(".rly")
            with open(os.path.join(tree, path), encoding="utf-8") as f:
                text = f.read()
            shown = hide_comments(text, relay)
            for m in re.compile(pattern, re.M).finditer(shown):
                item = find_item(shown, m.start(), relay)
                begin = text.rfind("\n", 0, m.start())
                lines = text[begin:m.end()] + "".join(text[m.end():].split("\n")[:3])
                before = text[text.rfind("\n", 0, begin) + 1:begin]
                if not item or (not relay and (HARMLESS.search(lines) or "SPARE_STACK" in before)):
                    continue
                found.setdefault((kind, relay), []).append(Edit(kind, path, item, text, m, m.expand(replacement)))
    return found


def draw(found, seed):
    """The edits in the order in which they are made: one of each kind in turn. Where an edit comes hangs on it and the seed
    alone, so that a change elsewhere in the code leaves the others drawn, and their verdicts standing."""
    rows = [sorted(edits, key=lambda e: hashlib.sha1(("%d %s" % (seed, e.key)).encode()).digest())
            for edits in found.values()]
    while any(rows):
        for row in rows:
            while row and row[-1].names_rule:  # a rule of another operator: the reader's matter
                row.pop()
            if row:
                yield row.pop()


def run_tests(command, folder, limit):
    """Whether the tests fail, and what they said last."""
    try:
        p = subprocess.run(command, cwd=folder, capture_output=True, preexec_fn=mutate.limits, timeout=limit)
    except subprocess.TimeoutExpired:
        return True, "did not end"
    said = (p.stdout + p.stderr).decode(errors="replace").strip().split("\n")
    return p.returncode != 0, said[0][:160]


def in_reference(edit):
    return edit.path.startswith("eval/reference/")


def tests_of(tree, folder, edit):
    """Who may find the edit: (name, command, seconds). What costs little comes first."""
    relay = os.path.join(folder, "relay")
    tests = os.path.join(tree, "tests")
    rule = [("rules", [os.path.join(tests, "property/gradients.py"), relay, "--only", edit.item], 600),
            ("rules", [os.path.join(tests, "property/zero_cotangents.py"), relay, "--only", edit.item], 600)]
    few, programs = [("programs", [os.path.join(tests, "property/derivatives.py"), relay, "--programs=%d" % n, "--first"],
                      seconds) for n, seconds in ((FEW, 60), (PROGRAMS, 1800))]  # what hangs, hangs in each
    # the reference copies what others write in place, for which that golden gives no memory
    engine = ["--engines=--engine=reference", "--skip=writes_in_a_loop"] if in_reference(edit) else ["--engines=--jit=on"]
    goldens = ("goldens", [os.path.join(tests, "run.py"), "--build=" + folder, *engine, "golden", *GOLDENS], 1800)
    counts = ("counts", [os.path.join(tests, "property/work.py"), relay], 600)
    units = ("units", [os.path.join(tests, "run.py"), "--build=" + folder, "--unit=" + ",".join(UNITS)], 600)
    prompt = ("prompt", [os.path.join(tests, "run.py"), "--build=" + folder, "repl", *PROMPT], 600)
    if edit.path in RULES:
        return [*rule, goldens, programs]
    return [few, goldens, *([prompt] if in_reference(edit) else []), counts, units, programs]


def judge(tree, folder, edit):
    """(who finds the edit, in which words)"""
    for who, command, limit in tests_of(tree, folder, edit):
        failed, words = run_tests([sys.executable] + command, folder, limit)
        if failed:
            return who, words
    return "SURVIVED", ""


def check_unedited(tree, folder, edits):
    """Ends where goldens, the prompt, counts or units fail without an edit: they would find all of them."""
    for edit in edits:
        for who, command, limit in tests_of(tree, folder, edit):
            if who in ("goldens", "prompt", "counts", "units"):
                failed, words = run_tests([sys.executable] + command, folder, limit)
                if failed:
                    sys.exit("%s fail without an edit: %s" % (who, words))


def put_back(work, tree):
    """Takes back an edit that an interrupted run left, and takes the tests as they are now."""
    with tarfile.open(os.path.join(work, "tree.tar")) as archive:
        for name in RULES + PASSES:
            text, path = archive.extractfile(name).read(), os.path.join(tree, name)
            with open(path, "rb") as f:
                changed = f.read() != text
            if changed:
                with open(path, "wb") as f:
                    f.write(text)
    shutil.copytree(os.path.join(mutate.ROOT, "tests"), os.path.join(tree, "tests"), dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))


def prepare(work, configure):
    """A copy of the tracked tree, built."""
    tree = os.path.join(work, "tree")
    folder = os.path.join(tree, "build")
    if not os.path.exists(os.path.join(folder, "relay")):
        os.makedirs(folder, exist_ok=True)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=mutate.ROOT, capture_output=True, check=True).stdout
        archive = os.path.join(work, "tree.tar")
        subprocess.run(["tar", "--null", "-T", "-", "-cf", archive], cwd=mutate.ROOT, input=files, check=True)
        subprocess.run(["tar", "-xf", archive, "-C", tree], check=True)
        subprocess.run(["./bootstrap"], cwd=tree, capture_output=True, check=True)
        subprocess.run(["../configure", "-q", *shlex.split(configure)], cwd=folder, capture_output=True, check=True)
    else:
        put_back(work, tree)
    if not mutate.build(folder, UNITS):
        sys.exit("the tree does not build")
    return tree, folder


def make(tree, folder, edit):
    """Makes the edit, judges it and takes it back."""
    path = os.path.join(tree, edit.path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text[:edit.begin] + edit.new + text[edit.end:])
        if not mutate.build(folder, UNITS):
            return "does not compile", ""
        return judge(tree, folder, edit)
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", help="a folder that stays")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="shows the edits and makes none")
    parser.add_argument("--again", action="store_true", help="judges once more what survived")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begins with no edit after so many")
    parser.add_argument("--configure", default="")
    options = parser.parse_args()
    if options.list:
        for edit in [e for e in draw(find_edits(mutate.ROOT), options.seed) if options.only in str(e)][:options.count]:
            print(edit)
        return 0
    with tempfile.TemporaryDirectory(prefix="relay-mutate-") as tmp:
        work = os.path.abspath(options.work or tmp)
        tree, folder = prepare(work, options.configure)
        edits = list(draw(find_edits(tree), options.seed))
        code = [e for e in edits if e.path in PASSES]
        code.sort(key=in_reference)
        check_unedited(tree, folder, [code[0], code[-1]])
        state, verdicts = os.path.join(work, "verdicts.json"), {}
        if os.path.exists(state):
            with open(state, encoding="utf-8") as f:
                verdicts = json.load(f)
        if options.again:
            verdicts = {key: verdict for key, verdict in verdicts.items() if verdict[0] != "SURVIVED"}
        end = time.monotonic() + 60 * options.minutes
        by = collections.Counter()
        for edit in edits:
            if sum(by.values()) == options.count or time.monotonic() > end:
                break
            if options.only not in str(edit):
                continue
            if edit.key not in verdicts:
                verdicts[edit.key] = make(tree, folder, edit)
                with open(state, "w", encoding="utf-8") as f:
                    json.dump(verdicts, f)
            who, words = verdicts[edit.key]
            if who != "does not compile":
                by[who] += 1
                print("%-8s %s%s" % (who, edit, "\n         " + words if words else ""), flush=True)
        mutate.build(folder)
    done, survived = sum(by.values()), by["SURVIVED"]
    print(", ".join("%s found %d" % (who, n) for who, n in sorted(by.items()) if who != "SURVIVED"))
    print("%d of %d edits judged" % (done, options.count))
    print("%d passed, %d failed, 0 skipped" % (done - survived, survived))
    return 1 if survived > (1 - FOUND) * done else 0


if __name__ == "__main__":
    sys.exit(main())
