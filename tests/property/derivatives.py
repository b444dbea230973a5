#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs (_draw.py) and their derivatives, by four oracles.

Each program is a function f of float64 data, in a file of many, every third without types. At its argument x, with a cotangent c of its
result and a direction t,

    back = <vjp(f)(x, c), t>,   forth = <c, jvp(f)(x, t)>,   best = <c, df/dt>,

the last by central differences with Richardson's extrapolation. `back` and `forth` agree closely, and with
`best` as far as its own error allows: the difference of its two last columns, or 1 where smaller steps bring differences no nearer to each other. A sample whose error exceeds
1e-8, whose value or difference exceeds a million, or that shows another derivative beside, or where its constants differ
in the twelfth digit, says nothing; it is thrown away and counted, and more than one in twenty is a failure. The file runs again in the reference evaluator, which differentiates as
figure 4.1 of the thesis does: what it prints is the same to the last bit. In one file of eight what each pass and each derivative makes
is held to the rules of the core.

It prints how many programs hold each construct; each must be in a tenth of them. A program that failed is
made smaller and shown.

    derivatives.py RELAY [--share=F] [--seed=N] [--keep=DIR] [--programs=N] [--state=FILE] [--first]

--state continues where a run with the same file was interrupted, and keeps its counts. --first ends with the first
program that fails, as it is.
"""
import collections
import concurrent.futures
import json
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import reduce
import share
import _draw
from process import PATIENCE, SLOW, run_program

WHOLE = 8000  # `make check` runs a quarter of them, and `make check-long` a million besides
FILE, SMALL = 100, 20  # programs of a file; with --first
CHECKED = 8  # of so many files one runs under --check-core, which takes twice the time
# The other files start with a large heap: 100 programs take 1.24 s in place of 1.57 where the collector runs seldom.
ROOMY = ["env", "GC_INITIAL_HEAP_SIZE=200m"]
ADJOINT, ERROR, CENTRAL = 1e-11, 1e-8, 1e-7
NUDGE = 1e-12  # of each constant, where differences may be lost in rounding
DIFFERS = "other bits than by the reference evaluator:"
STEPS, SHRINKING = 1200, 10  # in making a program smaller, and seconds of each: one that lost its end runs for ever
FEW = 0.05  # samples that may be thrown away
COMMON = 0.1  # of programs that hold each construct

STEP = "0.002f64"  # of the largest of three differences
VALUE = "  let y = f(x);"
COTANGENT = "  let c = like(y, 2.3);"
HARNESS = """
def noise(v: Tensor[(?,), float64], k: float64) -> Tensor[(?,), float64] {
  sin(cumsum(ones_like(v)) * k + 0.37) + 0.1
}
def like(x, k) { tree.unflatten(x, noise(tree.flatten64(x), k)) }
def dot(a, b) { sum(tree.flatten64(a) * tree.flatten64(b)) }
def sample(name: String, f, x) {
  let h = 0.002f64;
  let y = f(x);
  let c = like(y, 2.3);
  let t = like(x, 1.7);
  let at = tree.flatten64(x);
  let by = tree.flatten64(t);
  let weight = tree.flatten64(c);
  let along = fn (h: float64) { sum(weight * tree.flatten64(f(tree.unflatten(x, at + h * by)))) };
  let central = fn (h: float64) { (along(h) - along(-h)) / (2.0 * h) };
  let g = vjp(f)(x, c).1.0;
  let parts = tree.flatten64(g) * by;
  let a = central(h);
  let b = central(h / 2.0);
  let e = central(h / 4.0);
  let coarse = (4.0 * b - a) / 3.0;
  let fine = (4.0 * e - b) / 3.0;
  let best = (16.0 * fine - coarse) / 15.0;
  let error = if (abs(e - b) > maximum(abs(b - a), 0.000000001f64)) { 1.0 } else { abs(best - fine) };
  print(str.join(" ", list[name, show(along(0.0)), show(sum(parts)), show(dot(c, jvp(f)(x, t).1)), show(best),
                           show(error), show(sum(abs(parts)))]))
}
"""


def end_of(text, at):
    """Behind the bracket that closes the one before `at`."""
    depth = 1
    while depth:
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return at


def without_types(text):
    """The program without the types of parameters and results, which inference finds."""
    out, at, result = [], 0, re.compile(r"\s*->\s*")
    for head in re.finditer(r"\bfn \(|\bdef \w+\(", text):
        if head.start() < at:
            continue
        end = end_of(text, head.end())
        params, depth, shown = [], 0, True
        for c in text[head.end():end - 1]:
            depth += (c in "([{") - (c in ")]}")
            shown = (shown and c != ":") or (depth == 0 and c == ",")
            params.append(c if shown else "")
        if ":" not in text[head.end():end] and end > head.end() + 1:
            continue  # the type of a function
        out += [text[at:head.start()], head.group(), "".join(params), ")"]
        at = end
        arrow = result.match(text, end)
        if arrow:
            depth, at = 0, arrow.end()
            while depth or text[at] != "{":
                depth += (text[at] in "([") - (text[at] in ")]")
                at += 1
            out.append(" ")
    return "".join(out) + text[at:]


class Sample:
    """One program, and what a line of output says of it. Of a third the types are left out, where it checks without."""

    def __init__(self, seed):
        self.seed, self.program = seed, _draw.Program(random.Random("%d" % seed))
        self.is_typed = seed % 3 != 0

    def text(self):
        function = self.program.function
        return "sample(\"%d\", %s, %s);\n" % (self.seed, function if self.is_typed else without_types(function), self.program.argument)


def run(relay, way, text, cpu=None, harness=HARNESS):
    with tempfile.NamedTemporaryFile("w", suffix=".rly", prefix="derivatives-", delete=False) as f:
        f.write(_draw.DECLARATIONS + harness + text)
    try:
        heap = [] if "--check-core" in way else ROOMY
        return run_program(heap + [relay] + way + ["--diagnostics=short", f.name], b"", PATIENCE * SLOW, cpu=cpu)
    finally:
        os.unlink(f.name)


def judge(words):
    """(what is wrong, whether it was thrown away)"""
    value, back, forth, best, error, scale = map(float, words)
    size = 1.0 + abs(value) + scale
    if not all(abs(v) < 1e6 for v in (value, best)):
        return None, True
    if not abs(back - forth) <= ADJOINT * size:
        return "backwards %.17g, forwards %.17g" % (back, forth), False
    if not (error <= ERROR * size and error <= 1e-3 * (1.0 + abs(best))):
        return None, True  # of sin(1e10 * x), say, no step tells anything
    if not abs(back - best) <= CENTRAL * size:
        return "derivative %.17g, by differences %.17g (error %.2g)" % (back, best, error), False
    return None, False


class Written:
    """A program that is no random one."""
    is_typed = True

    def __init__(self, seed, program):
        self.seed, self.program = seed, program

    def text(self):
        return "sample(\"%d\", %s);\n" % (self.seed, self.program)


# What is known of differences that are exactly 0: x is lost in a sum, or the function is constant and its derivative is wrong.
LOST = Written(1, "fn (x: float64) { sin(x + 1.1f64 * 1000000000000000.1f64) }, 0.7f64")
WILD = Written(3, "fn (x: float64) { sin(x * 30000.0f64) * 0.00000000001f64 }, 0.3f64") # differences that do not converge
ROUNDED = Written(4, "fn (x: float64) { (x - x) * exp(25.1f64 * x) + sin(x) }, 0.7f64")  # what cancels backwards leaves rounding
CONSTANT = Written(2, "custom_grad(fn (x: float64) { 1.5f64 }, fn (x: float64, c: float64) { (0.2f64 * c,) }), 0.7f64")


def those_named(samples, rules, err):
    """The samples, each a line, that the messages are about."""
    before = (_draw.DECLARATIONS + HARNESS + rules).count("\n")
    lines = {int(line) for line in re.findall(r"(?m)^\S+?:(\d+):\d+: error", err)}
    return [s for i, s in enumerate(samples) if before + i + 1 in lines]


def try_samples(relay, samples, rules=""):
    """Of each sample what is wrong, "" where it was thrown away, or None. rules: that stand before them."""
    text = rules + "".join(s.text() for s in samples)
    checks = ["--check-core"] if samples[0].seed // FILE % CHECKED == 0 else []
    runs = []
    for way in (checks, ["--engine=reference"]):
        runs.append(run(relay, way, text))
        named = those_named(samples, rules, runs[-1][2]) if runs[-1][0] and len(samples) > 1 else []
        if named:  # an error ends a file, if it is not found before it runs: those by themselves, and the others again
            found = try_samples(relay, [s for s in samples if s not in named], rules) if len(named) < len(samples) else {}
            for s in named:
                found.update(try_samples(relay, [s], rules))
            return found
    lines = [{w[0]: w[1:] for w in (line.split() for line in out.splitlines()) if len(w) == 7} for _, out, _ in runs]
    found = {}
    for s in samples:
        one, two = (l.get(str(s.seed)) for l in lines)
        if one is None or two is None:
            if len(samples) > 1:  # an error ends a file: each by itself
                found.update(try_samples(relay, [s], rules))
            elif not s.is_typed:
                s.is_typed = True
                found.update(try_samples(relay, [s], rules))
            else:
                found[s.seed] = "".join("%s: status %s\n%s" % (name, status, err[-1500:]) for name, (status, _, err)
                                        in zip(("vm", "reference"), runs))
        elif one != two:
            found[s.seed] = DIFFERS + "\n  %s\n  %s" % (" ".join(one), " ".join(two))
        else:
            wrong, thrown = judge(one)
            thrown |= wrong is not None and is_lost(relay, rules, s, one, wrong)
            found[s.seed] = "" if thrown else wrong
    return found


def is_wild(relay, text, words):
    """Whether a step less, at an argument beside, tells another derivative: so wild a function has errors that their estimates do not
    show. The reference evaluator says so, that no mistake of the others passes for wildness."""
    beside = HARNESS.replace(STEP, "0.0003f64").replace(VALUE, "  let x = tree.unflatten(x, tree.flatten64(x) + 1e-12f64);\n" + VALUE)
    again = run(relay, ["--engine=reference"], text, harness=beside)[1].split()
    size = 1.0 + abs(float(words[0])) + float(words[5])
    return len(again) == 7 and not all(abs(float(again[i + 1]) - float(words[i])) <= CENTRAL * size for i in (1, 3))


# Each number but exponents: a negative number has a power of 2, and none of a number beside it.
NUMBER = re.compile(r"(?<!\*\* )\b\d+\.\d+(?=f64)")


def is_swallowed(relay, rules, sample, words):
    """Whether the derivative is another where the program's numbers differ in the twelfth digit. Of `sin(x + c)`, where c is
    computed and some 1e15, all differences are exactly 0, since a step is lost in the sum, and so is the error that is
    estimated of them. But c is known to a few digits only, and with another c the derivative is another. That of a function
    which is constant, or of one that rounding does not spoil, stays as it is, and is a mistake."""
    text = NUMBER.sub(lambda number: repr(float(number.group()) * (1.0 + NUDGE)), sample.text())
    again = run(relay, ["--engine=reference"], rules + text)[1].split()
    size = 1.0 + abs(float(words[0])) + float(words[5])
    return len(again) == 7 and abs(float(again[2]) - float(words[1])) > CENTRAL * size


def is_rounding(relay, text, words):
    """Whether backwards and forwards differ by no more than rounding: backwards of a third or a seventh of the cotangent is then not
    that part of it, as it is of any derivative, right or wrong. Of `(x - x) * y`, where y is some 1e7, cotangents of 1e7 cancel."""
    back, forth = float(words[1]), float(words[2])
    for part in (3.0, 7.0):
        less = HARNESS.replace(COTANGENT, "  let c = tree.unflatten(y, noise(tree.flatten64(y), 2.3) / %r);" % part)
        again = run(relay, ["--engine=reference"], text, harness=less)[1].split()
        if len(again) == 7 and 10.0 * abs(part * float(again[2]) - back) > abs(back - forth):
            return True
    return False


def is_lost(relay, rules, sample, words, wrong):
    """Whether what is wrong may lie in differences or rounding."""
    text = rules + sample.text()
    if is_wild(relay, text, words):
        return True
    return is_swallowed(relay, rules, sample, words) if wrong.startswith("derivative") else is_rounding(relay, text, words)


def shrink(relay, sample, wrong):
    """The smallest text of a sample that is wrong in the same way: in its words before the first number."""
    kind = wrong.split("\n")[0][:8]

    def line_of(text, way):
        words = run(relay, way, text, SHRINKING * SLOW)[1].split()
        return words if len(words) == 7 else None

    def shows(text):
        one = line_of(text, [])
        if one is None:
            return False
        if kind != DIFFERS[:8]:
            return (judge(one[1:])[0] or "").startswith(kind)
        two = line_of(text, ["--engine=reference"])
        return two is not None and one != two

    try:
        return reduce.reduce_text(sample.text(), shows, limit=STEPS)
    except ValueError:  # it gives no line
        return sample.text()


def one_file(relay, seeds):
    samples = [Sample(seed) for seed in seeds]
    counts = collections.Counter(c for s in samples for c in s.program.has)
    return counts, try_samples(relay, samples)


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--programs", type=int, help="so many instead of a share")
    parser.add_argument("--first", action="store_true", help="ends with the first that fails")
    parser.add_argument("--state", help="a file to keep the counts in, and to go on from")
    options = parser.parse_args()
    options.relay = os.path.abspath(options.relay)
    count = options.programs or share.count(options, WHOLE, FILE) // (4 if SLOW > 1 else 1)
    known = try_samples(options.relay, [LOST, CONSTANT, WILD, ROUNDED])
    thrown = [known[sample.seed] for sample in (LOST, WILD, ROUNDED)]
    if any(wrong != "" for wrong in thrown) or not (known[CONSTANT.seed] or "").startswith("derivative"):
        print("differences that say nothing are judged wrongly: %s" % known)
        return 1
    state = {"seed": options.seed, "done": 0, "thrown": 0, "failed": [], "counts": {}}
    if options.state and os.path.exists(options.state):
        with open(options.state, encoding="utf-8") as f:
            state = json.load(f)
    first = state["seed"] * 10000000
    size = SMALL if options.first else FILE
    files = [range(first + i, first + min(i + size, count)) for i in range(state["done"], count, size)]
    jobs = len(os.sched_getaffinity(0))
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        for counts, found in pool.map(lambda seeds: one_file(options.relay, seeds), files):
            state["done"] += len(found)
            state["thrown"] += sum(wrong == "" for wrong in found.values())
            for name, n in counts.items():
                state["counts"][name] = state["counts"].get(name, 0) + n
            for seed, wrong in found.items():
                if wrong and options.first:
                    print("program %d: %s" % (seed, wrong))
                    return 1
                if wrong:
                    state["failed"].append(seed)
                    print("program %d: %s\n%s" % (seed, wrong, shrink(options.relay, Sample(seed), wrong)))
                    if options.keep:
                        os.makedirs(options.keep, exist_ok=True)
                        with open(os.path.join(options.keep, "derivative%d.rly" % seed), "w") as f:
                            f.write(_draw.DECLARATIONS + HARNESS + Sample(seed).text())
            if options.state:
                with open(options.state + ".new", "w", encoding="utf-8") as f:
                    json.dump(state, f)
                os.replace(options.state + ".new", options.state)
    finally:
        pool.shutdown(cancel_futures=True)
    failed = len(state["failed"])
    done = max(state["done"], 1)
    for name in _draw.CONSTRUCTS:
        held = state["counts"].get(name, 0)
        print("%6.1f %% hold %s" % (100.0 * held / done, name))
        if held < COMMON * done:
            failed += 1
            print("too few programs hold %s" % name)
    print("%d of %d programs thrown away: differences say nothing" % (state["thrown"], done))
    if state["thrown"] > FEW * done:
        failed += 1
        print("that is more than one in twenty")
    print("%d passed, %d failed, 0 skipped" % (max(done - failed, 0), failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
