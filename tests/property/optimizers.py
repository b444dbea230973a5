#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The optimisers of stdlib/optim.rly against PyTorch's formulas, written out here in plain Python.

Each takes 25 steps on parameters in a record with a list, whose gradient changes with them, in float64
(which must agree to 1e-12) and in float32 (to 1e-4). PyTorch is not asked: its update rules, as its
documentation states them, are the functions below.

    optimizers.py RELAY
"""
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE

STEPS = 25
START = [0.5, -1.25, 2.0, 3.5, -0.75, 0.1]
TARGET = [1.0, 0.5, -2.0, 3.0, 0.25, -0.5]
SCALE = [1.0, 10.0, 0.1, 3.0, 0.5, 20.0]

PROGRAM = """
import optim;
type P { P { w: Tensor[(2, 2), DTYPE], rest: List[DTYPE], n: int32 } }
def p(w: Tensor[(2, 2), DTYPE], a: DTYPE, b: DTYPE) { P { w: w, rest: list[a, b], n: 7 } }
let start = p([[0.5, -1.25], [2.0, 3.5]], -0.75, 0.1);
def loss(x: P) {
  let d = x.w - [[1.0, 0.5], [-2.0, 3.0]];
  let a = nth(x.rest, 0) - 0.25;
  let b = nth(x.rest, 1) + 0.5;
  0.5 * (sum([[1.0, 10.0], [0.1, 3.0]] * d * d) + 0.5 * a * a + 20.0 * b * b)
}
let df = deriv(loss);
def steps(step, state) { loop(25, fn (s) { step(s.0, s.1) }, (start, state)).0 }
def say(x: P) { print(str.join(" ", list[show(x.w[0, 0]), show(x.w[0, 1]), show(x.w[1, 0]), show(x.w[1, 1]),
  show(nth(x.rest, 0)), show(nth(x.rest, 1)), show(x.n)])) }
say(steps(fn (x, s) { (optim.sgd(0.05, x, df(x)), s) }, ()))
say(steps(fn (x, s) { optim.momentum(0.01, 0.9, x, df(x), s) }, optim.momentum_init(start)))
say(steps(fn (x, s) { optim.nesterov(0.01, 0.9, x, df(x), s) }, optim.momentum_init(start)))
say(steps(fn (x, s) { optim.rmsprop(0.02, x, df(x), s) }, optim.rmsprop_init(start)))
say(steps(fn (x, s) { optim.adam(0.05, x, df(x), s) }, optim.adam_init(start)))
say(steps(fn (x, s) { optim.adam_with(0.05, (0.8, 0.95), 1e-3, x, df(x), s) }, optim.adam_init(start)))
say(steps(fn (x, s) { optim.adamw(0.05, 0.02, x, df(x), s) }, optim.adam_init(start)))
say(steps(fn (x, s) { (optim.sgd(0.05, x, optim.clip_by_norm(2.0, df(x))), s) }, ()))
say(steps(fn (x, s) { (optim.sgd(0.05, x, optim.clip_by_value(0.5, df(x))), s) }, ()))
say(steps(fn (x, s) {
  (optim.sgd(optim.warmup(5, optim.cosine_decay((DTYPE) 0.05, 20))(s), x, df(x)), s + 1) }, 0))
"""


def sgd(rate):
    return lambda p, g, s: p - rate(s["t"]) * g


def momentum(rate, mu, nesterov):
    def step(p, g, s):
        s["v"] = mu * s.get("v", 0.0) + g
        return p - rate * (g + mu * s["v"] if nesterov else s["v"])
    return step


def rmsprop(rate, alpha=0.99, eps=1e-8):
    def step(p, g, s):
        s["v"] = alpha * s.get("v", 0.0) + (1 - alpha) * g * g
        return p - rate * g / (math.sqrt(s["v"]) + eps)
    return step


def adam(rate, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0):
    def step(p, g, s):
        t = s["t"] + 1
        p *= 1 - rate * decay
        s["m"] = beta1 * s.get("m", 0.0) + (1 - beta1) * g
        s["v"] = beta2 * s.get("v", 0.0) + (1 - beta2) * g * g
        denominator = math.sqrt(s["v"]) / math.sqrt(1 - beta2 ** t) + eps
        return p - rate / (1 - beta1 ** t) * s["m"] / denominator
    return step


def clip_norm(g):
    size = math.sqrt(sum(x * x for x in g))
    return [x * min(1.0, 2.0 / size) for x in g]


def clip_value(g):
    return [max(-0.5, min(0.5, x)) for x in g]


def warm_cosine(t):
    return 0.05 * 0.5 * (1 + math.cos(math.pi * min(t, 20) / 20)) * min((t + 1) / 5, 1.0)


CASES = [
    ("sgd", sgd(lambda t: 0.05), None),
    ("momentum", momentum(0.01, 0.9, False), None),
    ("nesterov", momentum(0.01, 0.9, True), None),
    ("rmsprop", rmsprop(0.02), None),
    ("adam", adam(0.05), None),
    ("adam_with", adam(0.05, 0.8, 0.95, 1e-3), None),
    ("adamw", adam(0.05, decay=0.02), None),
    ("clip_by_norm", sgd(lambda t: 0.05), clip_norm),
    ("clip_by_value", sgd(lambda t: 0.05), clip_value),
    ("warmup and cosine_decay", sgd(warm_cosine), None),
]


def follow(step, clip):
    params, states = list(START), [{} for _ in START]
    for t in range(STEPS):
        g = [k * (p - c) for p, c, k in zip(params, TARGET, SCALE)]
        g = clip(g) if clip else g
        for s in states:
            s["t"] = t
        params = [step(p, x, s) for p, x, s in zip(params, g, states)]
    return params


def main():
    options = share.arguments(__doc__).parse_args()
    passed, failures = 0, []
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
            f.write(PROGRAM.replace("DTYPE", dtype))
            f.flush()
            run = subprocess.run([options.relay, f.name], capture_output=True, text=True, timeout=PATIENCE)
        lines = run.stdout.splitlines()
        if len(lines) != len(CASES):
            failures.append("%s: %d lines of %d\n%s" % (dtype, len(lines), len(CASES), run.stderr))
            continue
        for line, (name, step, clip) in zip(lines, CASES):
            found, wanted = [float(x) for x in line.split()], follow(step, clip) + [7]
            off = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(found, wanted))
            if off <= tolerance:
                passed += 1
            else:
                failures.append("%s in %s is off by %g:\n  %s\n  %s" % (name, dtype, off, found, wanted))
    for f in failures:
        print(f)
    print("%d passed, %d failed, 0 skipped" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
