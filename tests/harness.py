# SPDX-License-Identifier: Apache-2.0
"""The tests' own tests: what has to fail does. Each case is a test in a folder of its own, which is wrong
in one way, and the words that say so; or none, where it is right."""
import copy
import os
import stat
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "property"))
import derivatives
import golden
import mutate
import process
import reduce
import run
import share
import transcript
import ways

GOLDENS = {
    "an expected line": ("1 + 1  // expect: 2 : int32\n", None),
    "another line": ("1 + 1  // expect: 3 : int32\n", "found    2 : int32"),
    "a line too many": ("1\n2  // expect: 1 : int32\n", "nothing more"),
    "a line too few": ("1  // expect: 1 : int32\n// expect: 2 : int32\n", "nothing more"),
    "a diagnostic": ("nope  // error: R0101 no `nope`\n", None),
    "no diagnostic": ("1  // error: R0101 no `nope`\n// expect: 1 : int32\n", "no error on line 1"),
    "a diagnostic at another line": ("1;\nnope\n// error@-2: R0101 no `nope`\n", "no error on line 1"),
    "a diagnostic of another code": ("nope  // error: R0102 no `nope`\n", "unexpected"),
    "a diagnostic of other words": ("nope  // error: R0101 no `hope`\n", "unexpected"),
    "a diagnostic too many": ("print(1)  // expect: 1 : int32\n;nope\n", "unexpected"),
    "an error where a warning is expected": ("nope  // warning: R0101 no `nope`\n", "unexpected"),
    "held text": ("// check: 2 :\n1 + 1\n", None),
    "held text in another order": ("// check: int32\n// check: 2 :\n1 + 1\n", "does not hold `2 :` here"),
    "text that is not held": ("// check: 3 :\n1 + 1\n", "does not hold `3 :`"),
    "text that is held all the same": ("// check-not: int32\n1 + 1  // expect: 2 : int32\n", "output holds"),
    "text that is absent": ("// check-not: float\n1 + 1  // expect: 2 : int32\n", None),
    "text absent from no output": ("// check-not: float\nlet x = 1;\n", "output is empty"),
    "text absent from no diagnostic": ("// flags: --diagnostics=full\n// check-not: float\nlet x = 1;\n",
                                       "output is empty"),
    "a golden that expects nothing": ("let x = 1;\n", "it expects nothing"),
    "a golden that is to be silent": ("let x = 1;\n// exit: 0\n", None),
    "a golden that is to be silent and is not": ("1\n// exit: 0\n", "found    1 : int32"),
    "check without its text": ("// check:\n1  // expect: 1 : int32\n", "`// check:` without its text"),
    "check-not without its text": ("// check-not: \n1  // expect: 1 : int32\n", "without its text"),
    "error without its code": ("nope  // error:\n", "without its text"),
    "error with a word for its code": ("nope  // error: nope\n", "is no code of a diagnostic"),
    "flags without any": ("// flags:\n1  // expect: 1 : int32\n", "without its text"),
    "engine without a name": ("// engine:\n1  // expect: 1 : int32\n", "without its text"),
    "an engine that there is not": ("// engine: --jit=maybe\n1  // expect: 1 : int32\n", "R0018"),
    "exit without a number": ("// exit:\n1  // expect: 1 : int32\n", "without its text"),
    "exit with a word": ("// exit: one\n1  // expect: 1 : int32\n", "`one` is no exit status"),
    "another exit status": ("// exit: 1\n1  // expect: 1 : int32\n", "exit status 0, expected 1"),
    "another exit status beside text": ("// flags: --diagnostics=full\n// check: R0101\n// exit: 0\nnope\n",
                                        "exit status 1, expected 0"),
    "expect elsewhere": ("1  // expect@+1: 1 : int32\n", "only a diagnostic is elsewhere"),
    "skip without a reason": ("// skip:\n1  // expect: 1 : int32\n", "without its text"),
    "a directive spelt wrongly": ("1  // expct: 2 : int32\n// expect: 1 : int32\n", "is no directive"),
    "a directive with a place of no kind": ("nope  // error@1: R0101\n", "is no directive"),
    "a directive behind two blanks": ("1  //  expect: 2\n// exit: 0\n", "is no directive"),
    "error where diagnostics are text": ("// flags: --diagnostics=full\n// check: R0101\nnope  // error: R0101\n",
                                         "`error` does not"),
    "error in a file that is not read": ("// command: explain R0101\n// check: R0101\nnope  // error: R0101\n",
                                         "no error on line 3"),
    "words on standard error": ("// command: doc nn.nope\n// expect: nn.nope\n", "unexpected"),
}

BANNER = "Relay {*}\n"
TRANSCRIPTS = {
    "a session": (BANNER + "relay> 1 + 1\n2 : int32\n", None),
    "another answer": (BANNER + "relay> 1 + 1\n3 : int32\n", "found    2 : int32"),
    "an answer too few": (BANNER + "relay> 1\n1 : int32\nrelay> 1 + 1\n", "found    2 : int32"),
    "an answer too many": (BANNER + "relay> 1 + 1\n2 : int32\n3 : int32\n", "expected 3 : int32"),
    "nothing typed": (BANNER, "nothing is typed"),
    "no answer": (BANNER + "relay> let x = 1;\n", "no answer is compared"),
    "any answer": (BANNER + "relay> 1 + 1\n{*}\n", "no answer is compared"),
    "an empty file": ("", "nothing is typed"),
    "skip without a reason": ("#! skip:\n" + BANNER + "relay> 1\n1 : int32\n", "without its text"),
    "an unknown head": ("#! colums: 80\n" + BANNER + "relay> 1\n1 : int32\n", "`colums`"),
    "a library that there is not": ("#! needs: libnone\n" + BANNER + "relay> 1\n1 : int32\n", "`libnone`"),
}

UNITS = {
    "passes": ("echo ok one", None),
    "fails": ("echo 'FAILED one: x.c:1: no'; exit 1", "x.c:1: no"),
    "fails with a good status": ("echo 'FAILED one: x.c:1: no'", "x.c:1: no"),
    "runs nothing": ("true", "it ran no test"),
    "says something else": ("echo hello", "it ran no test"),
    "is killed": ("echo ok one; kill -SEGV $$", "exit status -11"),
    "ends early": ("echo ok one; exit 3", "exit status 3"),
}

PROPERTIES = {
    "passes": ("print('3 passed, 0 failed, 0 skipped')", None),
    "fails": ("print('3 passed, 1 failed, 0 skipped')", "1 failed"),
    "tests nothing": ("print('0 passed, 0 failed, 0 skipped')", "it tested nothing"),
    "skips all": ("print('0 passed, 0 failed, 4 skipped')", "it tested nothing"),
    "prints no count": ("print('fine')", "it printed no count"),
    "ends with a bad status": ("print('3 passed, 0 failed, 0 skipped'); raise SystemExit(2)", "status 2"),
    "goes on after its count": ("print('3 passed, 0 failed, 0 skipped'); print('and more')", "no count"),
}


class Heard(run.Report):
    """A report that keeps what it is told."""

    def __init__(self):
        super().__init__(False)
        self.told = []

    def add(self, name, result, details=""):
        self.told.append((result, details))


def judge(report, name, told, words):
    """What a wrong test must say; a right one passes."""
    failed = [details for result, details in told if result == "failed"]
    if not told:
        why = "it was not counted at all"
    elif words is None:
        why = failed and "it should pass:\n" + "\n".join(failed)
    elif not failed:
        why = "it should fail, and say: " + words
    else:
        why = not any(words in details for details in failed) and \
            "it should say: %s\n%s" % (words, "\n".join(failed))
    report.add("harness: " + name, "failed" if why else "passed", why or "")


def in_folder(kind, name, ending, text, words, job):
    def run_case(options, report):
        options = copy.copy(options)
        options.bless, options.drawn = False, set()
        with tempfile.TemporaryDirectory(prefix="relay-harness-") as folder:
            path = os.path.join(folder, "case" + ending)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, stat.S_IRWXU)
            heard = Heard()
            job(options, heard, path)
        judge(report, "%s: %s" % (kind, name), heard.told, words)
    return kind + ": " + name, run_case


def run_unit(options, report, path):
    options.build = os.path.dirname(path)
    run.unit_job(options, report, os.path.basename(path))


def shares(options, report):
    """A share is of the size it says, the same each time, and another for another seed."""
    class Asked:
        share, seed = 0.25, 1
    wrong, items = [], list(range(200))
    first = share.sample(Asked, items)
    if len(first) != 50 or first != sorted(first) or first != share.sample(Asked, items):
        wrong.append("a quarter of 200 is %s" % first)
    Asked.seed = 2
    if first == share.sample(Asked, items):
        wrong.append("another seed draws the same")
    if list(share.seeds(Asked, 8)) != [2, 3] or list(share.seeds(Asked, 2)) != [2]:
        wrong.append("seeds: %s" % list(share.seeds(Asked, 8)))
    Asked.share = 1
    if share.sample(Asked, items) != items:
        wrong.append("all is not all")
    report.add("harness: shares", "failed" if wrong else "passed", "\n".join(wrong))


def a_broken_job(options, report):
    """A mistake of the harness itself is a failed test."""
    heard = Heard()
    run.timed("golden", "broken", heard, lambda: 1 // 0)
    judge(report, "a broken job", heard.told, "ZeroDivisionError")


def hangs(options, report):
    """A program that computes without end is ended, and so is one that waits without end."""
    wrong = []
    if process.run_program(["/bin/sh", "-c", "while :; do :; done"], cpu=1)[0] is not None:
        wrong.append("the limit of processor time does not hold")
    if process.run_program(["/bin/sleep", "1000"], patience=0.1)[0] is not None:
        wrong.append("the limit of the clock does not hold")
    report.add("harness: hangs", "failed" if wrong else "passed", "\n".join(wrong))


def helpers(options, report):
    heard = Heard()
    with tempfile.TemporaryDirectory(prefix="relay-harness-") as folder:
        path = os.path.join(folder, "_helper.rly")
        with open(path, "w", encoding="utf-8") as f:
            f.write("1  // expect: 1 : int32\n")
        golden.helpers_job(options, heard, [path])
    judge(report, "a helper that expects something", heard.told, "is not run")


PLACES = {  # how often the fragment is found in a definition of the name
    ("one", "a + b"): 1, ("one", "a+b"): 1, ("one", "a"): 2, ("one", "return"): 0, ("two", "return 2;"): 1,
    ("three", "return 3;"): 1, ("none", "a + b"): 0, ("x.c one", "a + b"): 1, ("y.c one", "a + b"): 0,
    ("def four", "n <= 0"): 1, ("def five", "n <= 0"): 0, ("ROW six", "7"): 1, ("ROW six", "8"): 0,
}
# What stands in for `relay` says `other` of the way with this option; the words that then say so.
WAYS = {
    "the same": ("echo 1", "echo 1", None),
    "another line": ("echo 1", "echo 2", "other output than by --engine=reference"),
    "a line too few": ("echo 1", "true", "other output"),
    "another bit": ("echo 1; echo 'digest: x 01' >&2", "echo 1; echo 'digest: x 02' >&2", "other values"),
    "a reference too few": ("echo 'digest: x 01' >&2", "true", "other values"),
    "another trace": ("echo at f >&2; exit 1", "echo at g >&2; exit 1", "other diagnostics"),
    "another status": ("exit 1", "exit 0", "other status"),
    "a signal": ("exit 1", "kill -SEGV $$", "status -11"),
    "a bug in both": ("echo bug in Relay >&2; exit 1", "echo bug in Relay >&2; exit 1", "bug in Relay"),
    "a limit met by one": ("echo '{\"code\":\"R0605\"}' >&2; exit 1", "echo 1", None),
}


def compare_ways(options, report):
    for name, (oracle, other, words) in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="relay-harness-") as folder:
            path = os.path.join(folder, "relay")
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\ncase $1 in --engine=reference) %s;; *) %s;; esac\n" % (oracle, other))
            os.chmod(path, stat.S_IRWXU)
            wrong = ways.compare(ways.Left(path, ways.ORACLE, []), ways.Left(path, ways.FIXED[0], []))
        judge(report, "ways: " + name, [("failed", wrong) if wrong else ("passed", "")], words)


# A fault that a text shows where it holds all of these words, and what is left of the text.
REDUCED = {
    "an item": ("let a = 1;\nlet b = bad;\nlet c = [1, 2];\n", ["bad"], "bad\n"),
    "an argument": ("f(g(1, h(bad, 2)), [3.0])\n", ["bad"], "bad\n"),
    "two places": ("let a = f(one, 2);\ndef g(x) { if (x) { two } else { 3 } }\n", ["one", "two"], "one two\n"),
    "a branch": ("match (x) { Cons(a, b) => { let c = 1; bad * a }, Nil => 0 }\n", ["bad"], "bad\n"),
    "brackets that do not match": ("f((1, bad]\nlet x = )\n", ["bad"], "bad\n"),
    "text in a string": ('f(1, "(bad", 2) // bad\n', ['"(bad"'], '"(bad"\n'),
}


def reducer(options, report):
    for name, (text, words, small) in REDUCED.items():
        found = reduce.reduce_text(text, lambda t: all(w in t for w in words))
        report.add("harness: reduce " + name, "passed" if found == small else "failed", "it leaves:\n" + found)
    # A fault of one engine alone, planted by a relay that reads `cos` for `sin` there.
    with tempfile.TemporaryDirectory(prefix="relay-harness-") as folder:
        path, planted = os.path.join(folder, "program.rly"), os.path.join(folder, "planted")
        with open(path, "w", encoding="utf-8") as f:
            f.write("def f(x: float32) -> float32 { x * 2.0 }\nlet xs = map(fn (v) { f(sin(v)) + 1.0 }, list[0.5, 1.0]);\n"
                    "let r = ref(xs);\nr := rev(xs);\n(length(xs), foldl(fn (a, v) { a + v }, 0.0, !r))\n")
        with open(planted, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\nfor last; do :; done\ncase $1 in --jit=off) sed s/sin/cos/ <$last >$last.2; mv $last.2 $last;; esac\n"
                    "exec %s \"$@\"\n" % options.program)
        os.chmod(planted, stat.S_IRWXU)
        status, out, err = process.run_program([sys.executable, os.path.join(os.path.dirname(__file__), "reduce.py"), planted,
                                                path, "--differs=--jit=off"])
        good = status == 0 and "sin" in out and len(out) < 40
        report.add("harness: reduce what differs", "passed" if good else "failed", out + err)


def wrong_rules(options, report):
    """Random programs find a derivative that is wrong by a thousandth, and a tangent that is."""
    samples = [derivatives.Sample(seed) for seed in range(20000000, 20000040)]
    for rule in ("derivative sin(data; out, ct) { (ct * cos(data) * 1.001,) }\n", "tangent sin(x; out, dx) { dx }\n", ""):
        found = derivatives.try_samples(options.relay, samples, rule)
        wrong = [seed for seed, words in found.items() if words]
        report.add("harness: random programs with %s" % (rule.strip() or "right rules"),
                   "failed" if bool(wrong) != bool(rule) else "passed", "found: %s" % [found[seed] for seed in wrong[:2]])


TEXTS = (("x.c", """static int one(int a,
               int b) {
    a +
        b;
}

int two(void) { return 2; }
int one_more(int a) { return a + b; }
int three(void);
int three(void) {
    return 3;
}
"""), ("x.rly", "def four(n) {\n  n <= 0\n}\ndef @five(n) { four(n) }\n"), ("x.def", "ROW(six, 7)\nROW(seven, 8)\n"))


def places(options, report):
    """Edits of make mutate find their places by name, however they are laid out."""
    wrong = ["`%s` stands %d times in %s, not %d" % (old, found, name, wanted)
             for (name, old), wanted in PLACES.items()
             for found in [len(list(mutate.find_places(TEXTS, name, old)))] if found != wanted]
    report.add("harness: places of edits", "failed" if wrong else "passed", "\n".join(wrong))


def jobs():
    for name, (text, words) in GOLDENS.items():
        yield in_folder("golden", name, ".rly", text, words, golden.job)
    for name, (text, words) in TRANSCRIPTS.items():
        yield in_folder("transcript", name, ".repl", text, words, transcript.job)
    for name, (text, words) in UNITS.items():
        yield in_folder("unit", name, "", "#!/bin/sh\n%s\n" % text, words, run_unit)
    for name, (text, words) in PROPERTIES.items():
        yield in_folder("property", name, ".py", text + "\n", words, run.property_job)
    yield "places", places
    yield "mutants", wrong_rules
    yield "ways", compare_ways
    yield "reducer", reducer
    yield "shares", shares
    yield "a broken job", a_broken_job
    yield "hangs", hangs
    yield "helpers", helpers
