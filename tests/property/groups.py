#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random groups of float operators give the same bits however they run: products, convolutions and reductions with
element-wise operators and transposes before and behind them, values used several times or kept, parameters updated in a
loop, states of which one, handed on as it is, may lie where another is written, derivatives.

Each seed makes one file. Its sizes are such that kernels are compiled, and the reference evaluator runs
each operator by itself.

    groups.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import os
import random
import sys
import tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "engines")]
sys.dont_write_bytecode = True
import share
import ways

FILES, ITEMS, ROUNDS = 60, 6, 8
UNARY = ["tanh({})", "nn.relu({})", "sigmoid({})", "exp({} * 0.1)", "sqrt(abs({}))", "-{}", "{} * 0.5", "1.5 - {}",
         "{} * {}", "where({} > 0.0, {}, 0.25)", "clip({}, a_min=-1.0, a_max=1.0)"]
COPIES = ["stop_gradient({})", "copy({})", "annotation.stop_fusion({})"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "maximum({}, {})", "{} / (1.0 + abs({}))", "where({} > {}, {}, {})"]


class Drawer:
    """Draws expressions over variables whose shapes are known; lets go in front."""

    def __init__(self, rng, dtype):
        self.rng, self.dtype = rng, dtype
        self.lets, self.variables, self.inputs = [], [], []

    def input(self, shape):
        """A fresh tensor of waves, of which some lie against their axes."""
        name = "x%d" % len(self.inputs)
        count, turned = 1, len(shape) > 1 and self.rng.random() < 0.25
        for n in shape:
            count *= n
        stored = list(reversed(shape)) if turned else shape
        text = "sin(reshape(arange(%d.0), newshape=%s) * %.2f)" % (count, stored, self.rng.uniform(0.3, 2.5))
        if self.dtype != "float32":
            text = '(%s) %s' % (self.dtype, text)
        self.inputs.append((name, "transpose(%s)" % text if turned else text))
        self.variables.append((name, shape))
        return name

    def leaf(self, shape):
        """A variable, or one whose elements are read elsewhere."""
        kind = self.rng.random()
        if kind < 0.15 and len(shape) > 1:
            return "transpose(%s)" % self.leaf(list(reversed(shape)))
        if kind < 0.25 and len(shape) > 1:
            return "reshape(%s, newshape=%s)" % (self.leaf([shape[0] * shape[1]] + shape[2:]), shape)
        known = [n for n, s in self.variables if s == shape]
        if known and self.rng.random() < 0.6:
            return self.rng.choice(known)
        return self.input(shape)

    def part(self, shape):
        """One of the parts that `split` gives."""
        axis, n = self.rng.randrange(len(shape)), self.rng.choice([2, 3])
        whole = list(shape)
        whole[axis] *= n
        names = ["p%d_%d" % (len(self.lets), i) for i in range(n)]
        self.lets.append("  let (%s) = split(%s, indices_or_sections=%d, axis=%d);" % (
            ", ".join(names), self.leaf(whole), n, axis))
        self.variables += [(name, shape) for name in names]
        return names[-1]

    def smaller(self, shape):
        """A shape that broadcasts to this one."""
        kind = self.rng.randrange(3)
        if kind == 0 or not shape:
            return shape
        if kind == 1:
            return shape[self.rng.randint(1, len(shape) - 1) if len(shape) > 1 else 0:]
        return [n if self.rng.random() < 0.6 else 1 for n in shape]

    def fold(self, shape, depth):
        """A product, convolution or reduction of that shape, or a leaf."""
        k, inner = self.rng.choice([1, 3, 17, 40]), depth - 1
        if len(shape) == 1:
            if self.rng.random() < 0.5:
                return "%s(%s, axis=[0])" % (self.rng.choice(["sum", "mean", "max"]), self.expr([k, shape[0]], inner))
            return "(%s @@ %s)" % (self.leaf([k]), self.leaf([k, shape[0]]))
        if len(shape) == 2:
            kind = self.rng.randrange(4)
            if kind == 0:
                return "nn.dense(%s, %s)" % (self.leaf([shape[0], k]), self.leaf([shape[1], k]))
            if kind == 1:
                return "sum(%s, axis=[1])" % self.expr([shape[0], k, shape[1]], inner)
            if kind == 2:
                return self.rows(self.expr(shape, inner))
            return "(%s @@ %s)" % (self.leaf([shape[0], k]), self.leaf([k, shape[1]]))
        if len(shape) == 4 and self.rng.random() < 0.7:
            channels = self.rng.choice([1, 3])
            return "nn.conv2d(%s, %s, padding=[1, 1, 1, 1])" % (
                self.leaf([shape[0], channels] + shape[2:]), self.leaf([shape[1], channels, 3, 3]))
        return "mean(%s, axis=[%d], keepdims=True)" % (self.expr(shape, inner), len(shape) - 1) \
            if shape[-1] == 1 else self.leaf(shape)

    def rows(self, part):
        """What reads each row of a matrix more than once."""
        x = self.named(part, None, True)
        d = "(%s - %s(%s, axis=[1], keepdims=True))" % (x, self.rng.choice(["max", "mean", "sum"]), x)
        return self.rng.choice(["nn.softmax(%s)" % x, "nn.log_softmax(%s)" % x, d,
                                "(tanh(%s) * sum(exp(%s * 0.1), axis=[1], keepdims=True))" % (d, x)])

    def expr(self, shape, depth):
        if depth <= 0:
            return self.part(shape) if self.rng.random() < 0.06 else self.leaf(shape)
        if len(shape) == 2 and self.rng.random() < 0.1:
            return "transpose(%s)" % self.named(self.expr(list(reversed(shape)), depth - 1), list(reversed(shape)))
        kind = self.rng.random()
        if kind < 0.3:
            form = self.rng.choice(UNARY)
            part = self.named(self.expr(shape, depth - 1), shape, form.count("{}") > 1)
            return "(" + form.replace("{}", part) + ")"
        if kind < 0.65:
            form = self.rng.choice(BINARY)
            a = self.named(self.expr(shape, depth - 1), shape, form.count("{}") > 2)
            b = self.named(self.expr(self.smaller(shape), depth - 2), None, form.count("{}") > 2)
            if self.rng.random() < 0.3 and form != BINARY[4]:
                a, b = b, a
            return "(" + form.format(*[a, b, a, b][:form.count("{}")]) + ")"
        return self.named(self.fold(shape, depth), shape, self.rng.random() < 0.3)

    def named(self, text, shape, must=False):
        if not must and self.rng.random() < 0.7 or text.isidentifier():
            return text
        name = "v%d" % len(self.lets)
        self.lets.append("  let %s = %s;" % (name, text))
        if shape:
            self.variables.append((name, shape))
        return name


def make_item(rng, i):
    drawer = Drawer(rng, rng.choice(["float32", "float32", "float64", "float16"]))
    shape = rng.choice([[64], [5, 33], [64, 24], [16, 48], [4, 6, 10], [2, 5, 8, 7], [37, 1]])
    results = [drawer.named(drawer.expr(shape, rng.randint(2, 5)), shape)]
    known = [n for n, _ in drawer.variables if n != results[0] and n[0] == "v"]
    if known and rng.random() < 0.7:
        results += rng.sample(known, min(len(known), rng.choice([1, 1, 2, 3, 5])))
    given = ", ".join(n for n, _ in drawer.inputs)
    lines = ["let a%d%s = %s;" % (i, n, t) for n, t in drawer.inputs]
    lines.append("def f%d(%s) {\n%s\n  (%s)\n}" % (i, given, "\n".join(drawer.lets), ", ".join(results + [""] * (len(results) < 2))))
    arguments = ", ".join("a%d%s" % (i, n) for n, _ in drawer.inputs)
    lines.append("f%d(%s)" % (i, arguments))
    first, others = drawer.inputs[0][0], arguments.split(", ")[1:]
    if dict(drawer.variables)[first] == shape:  # updated in a loop, where it may be overwritten
        lines.append("def u%d(n: int32, x) { if (n == 0) { x } else { u%d(n - 1, x * 0.5 - f%d(%s).0) } }" % (
            i, i, i, ", ".join(["x"] + others)))
        lines.append("u%d(3, a%d%s + 0.25)" % (i, i, first))
    lines.append("def s%d(%s) -> float64 { sum((float64) f%d(%s).0) }" % (i, given, i, given))
    if drawer.dtype != "float16" and rng.random() < 0.6:
        lines.append("grad(fn (%s) { s%d(%s) })(%s)" % (first, i, ", ".join([first] + others), "a%d%s" % (i, first)))
    lines.append("map(fn (k) { s%d(%s) }, range(40))" % (i, arguments))
    return "\n".join(lines)


def make_rounds(rng, i):
    """A recursive function all of whose states end in each round, of which some are handed on as they are."""
    shape, dtype = rng.choice([[3000], [64], [5, 33], [16, 48], [37, 1]]), rng.choice(["float32", "float64", "float16"])
    states = ["s%d" % k for k in range(rng.randint(1, 4))]
    lines, known, made = [], list(states), []
    for k in range(rng.randint(max(2, len(states)), 6)):
        copies = rng.random() < (0.3 if k else 0.6)
        form = rng.choice(COPIES if copies else UNARY + BINARY)
        text = form.format(*[rng.choice(states if copies else known) for _ in range(form.count("{}"))])
        made.append("v%d" % k)
        lines.append("  let v%d = %s;" % (k, text if copies else "(%s) * 0.5" % text))
        known.append(made[-1])
    typed = ": Tensor[(%s,), %s]" % (", ".join(map(str, shape)), dtype) if rng.random() < 0.6 else ""
    results = rng.sample(made, len(states)) if rng.random() < 0.7 else [rng.choice(known) for _ in states]
    others = rng.sample(known, min(len(known), rng.randint(1, 3)))
    count = 1
    for n in shape:
        count *= n
    start = "(%s) reshape(sin(arange(%d.0) * %.2f), newshape=%s)" % (dtype, count, rng.uniform(0.3, 2.5), shape)
    given = ", ".join("w%d %s 0.%d" % (i, rng.choice("+-*"), rng.randint(1, 9)) for _ in states)
    run = "d%d(%d, %s)" % (i, rng.randint(1, 4), given)
    total = " + ".join("sum((float64) r.%d)" % k for k in range(len(others)))
    return "\n".join([
        "def d%d(n: int32, %s) {" % (i, ", ".join(s + typed for s in states))] + lines + [
        "  if (n == 0) { (%s,) } else { d%d(n - 1, %s) }" % (", ".join(others), i, ", ".join(results)), "}",
        "let w%d = %s;" % (i, start), run,
        "grad(fn (w%d) { let r = %s; %s })(w%d)" % (i, run, total, i)])


def make_file(seed):
    rng = random.Random(seed)
    items = [make_item(rng, i) for i in range(ITEMS)]
    return "\n".join(items + [make_rounds(rng, i) for i in range(ITEMS, ITEMS + ROUNDS)]) + "\n"


def main():
    options = share.arguments(__doc__).parse_args()
    options.relay = os.path.abspath(options.relay)
    seeds, failed = share.seeds(options, FILES, 2), 0
    for seed in seeds:
        text = make_file(seed)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "groups.rly"), "w", encoding="utf-8") as f:
                f.write(text)
            oracle = ways.Left(options.relay, ways.ORACLE, ["groups.rly"], b"", folder)
            wrong = None if oracle.status == 0 else "refused:\n" + "\n".join(oracle.said)[:2000]
            for way in [["--jit=on", "--opt=0"], ["--jit=on", "--opt=3"], ["--jit=off"]]:
                wrong = wrong or ways.compare(oracle, ways.Left(options.relay, way, ["groups.rly"], b"", folder))
        if wrong:
            failed += 1
            print("seed %d: %s" % (seed, wrong))
            if options.keep:
                os.makedirs(options.keep, exist_ok=True)
                with open(os.path.join(options.keep, "groups%d.rly" % seed), "w", encoding="utf-8") as f:
                    f.write(text)
    print("%d passed, %d failed, 0 skipped" % (len(seeds) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
