#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vmap` at all rows at once (passes/batch.c) against the loop that it means: the same bits, and few launches.

Each expression runs by the reference evaluator, without passes (both run the loop) and with them, and all bits are
compared. Each kind of expression is counted too: with a rule for all of its operators, ROWS rows take fewer launches than
there are rows.

    vmap.py RELAY [EXPRESSION]
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
from process import PATIENCE

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
ROWS = 40
START = """import random;
type Lin { Lin { w: Tensor[(4, 5), float32], b: Tensor[(5,), float32] } }
type Net { Net { one: Lin, two: (Tensor[(3, 4), float32], float32) } }
"""
SHAPES = {"x": (3, 4), "y": (3, 4), "v": (4,), "u": (4,), "s": (), "m": (4, 5), "p": (130, 67), "q": (67, 70), "l": (1500,),
          "o": (1, 3, 1), "w": (6, 4)}


def elementwise(kind):
    """The names of the element-wise operators of a kind that take floats."""
    with open(os.path.join(ROOT, "ops", "elementwise.def"), encoding="utf-8") as f:
        found = re.findall(rf'^{kind}\(\w+, "([^"]+)", (DTS_\w+)', f.read(), re.M)
    return [name for name, dtypes in found if dtypes in ("DTS_FLOAT", "DTS_NUM", "DTS_ALL")]


def kinds():
    """kind -> expressions of r0, r1 … (rows of the tensors named before the colon) and whole tensors."""
    made = {}
    made["unary"] = [f"{t}: {name}(r0)" for name in elementwise("UNARY") for t in ("x", "s")]
    made["binary"] = [f"{t}: {name}({args})" for name in elementwise("BINARY") + elementwise("COMPARE")
                      for t, args in (("x y", "r0, r1"), ("x v", "r0, r1"), ("s x", "r0, r1"), ("v", "V, r0"), ("s", "r0, X"))]
    made["reductions"] = [f"{t}: {name}(r0{how})" for name in ("sum", "mean", "max", "min", "prod", "logsumexp", "argmax")
                          for t, how in (("x", ""), ("x", ", axis=[0]"), ("x", ", axis=[-1], keepdims=True"),
                                         ("x", ", axis=[1], exclude=True"), ("l", ""), ("p", ", axis=[0]"), ("p", ", axis=[1]"),
                                         ("o", ", axis=[0, 2]"))]
    made["products"] = ["x m: r0 @@ r1", "x: r0 @@ M", "m: X @@ r0", "v m: r0 @@ r1", "v: r0 @@ M", "m: V @@ r0", "x v: r0 @@ r1",
                        "v: X @@ r0", "x: r0 @@ V", "v u: r0 @@ r1", "v: r0 @@ U", "v: U @@ r0", "p q: r0 @@ r1", "p: r0 @@ Q",
                        "q: P @@ r0", "x w: nn.dense(r0, r1)", "x: nn.dense(r0, W)", "v: nn.dense(r0, W)"]
    made["axes"] = [f"x: {e}" for e in (
        "transpose(r0)", "transpose(r0, axes=[-1, 0])", "reshape(r0, newshape=[2, -1])", "expand_dims(r0, axis=0)",
        "expand_dims(r0, axis=-1, num_newaxis=2)", "nn.softmax(r0)", "nn.softmax(r0, axis=0)", "nn.log_softmax(r0, axis=-1)",
        "r0[1:, ::2]", "r0[..., None]", "concatenate((r0, 2.0 * r0), axis=-1)", "stack((r0, r0), axis=1)", "[r0, r0 + 1.0]")]
    made["axes"] += ["o: squeeze(r0)", "o: squeeze(r0, axis=[-1])", "s: [r0, 2.0 * r0]"]
    made["functions"] = ["x v: { let h = tanh(r0 @@ M); (sum(h * h), (r1, exp(r1) - sum(h))) }",
                         "x: { let (a, b) = (r0 + 1.0, sum(r0, axis=[0])); where(a > b, a, b * V) }",
                         "x: nn.relu(r0 - V) @@ M", "x: { let k = sum(V); r0 * k }", "s: r0 * 2.0 + 1.0",
                         "v: sum((r0 * U - 0.5) ** 2.0)", "x: cast(r0 > 0.5, dtype=int32)", "x: clip(r0, a_min=0.2, a_max=0.6)", "x: zeros_like(r0) + ones_like(r0)"]
    made["records"] = ["m: Lin { w: r0, b: sum(r0, axis=[0]) }", "m: { let l = Lin { w: r0, b: r0[1] }; tanh(X @@ l.w + l.b) }",
                       "x m s: Net { one: Lin { w: r1, b: exp(r1[0]) }, two: (r0, r2) }",
                       "x: { let l = Lin { w: M, b: M[0] }; let (y, (g,)) = grad(fn (p: Lin) { sum(tanh(r0 @@ p.w + p.b)) })(l); (y, g) }",
                       "x s: { let p = Net { one: Lin { w: M, b: M[0] }, two: (r0, r1) }; deriv(fn (p: Net) { "
                       "sum(p.two.0 @@ p.one.w + p.one.b) * p.two.1 })(p) }"]
    return made


def program(expressions):
    lines = [START]
    for i, (name, shape) in enumerate(SHAPES.items()):
        for k, (to, sizes) in enumerate(((name, (ROWS,) + shape), (name.upper(), shape))):
            made = f"random.uniform(random.key({2 * i + k}), out_shape=[{', '.join(map(str, sizes))}])"
            lines.append(f"let {to} = 0.1 + 0.8 * {made}.1;")
    for e in expressions:
        tensors, body = e.split(": ", 1)
        tensors = tensors.split()
        params = ", ".join(f"r{i}" for i in range(len(tensors)))
        lines.append(f"vmap(fn ({params}) {{ {body} }})({', '.join(tensors)})")
    return "\n".join(lines) + "\n"


def run(relay, path, flags):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    r = subprocess.run([relay, "--threads=1", "--digest", "--time", *flags, path], capture_output=True, text=True,
                       timeout=PATIENCE, env=env)
    launches = re.search(r"^launches: (\d+)$", r.stderr, re.M)
    said = re.sub(r"^(?!error|warning).*\n", "", r.stderr, flags=re.M)
    return r.stdout.split("\n"), said, int(launches.group(1)) if launches else 0, r.returncode


def count_launches(relay, expressions):
    with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
        f.write(program(expressions))
        f.flush()
        return run(relay, f.name, [])[2]


BUILDS = ["build(64, fn (i) { (float32) i * 2.0 })",
          "{ let y = build(64, fn (i) { (float32) i * V }); y + 1.0 }",
          "(fn (c) { build(64, fn (i) { (float32) i * c + 1.0 }) })(V)",
          "(fn (c) { build(64, fn (i) { let k = fn (z) { z * c }; k((float32) i) + k(V) }) })(V)",
          "(fn (c) { let y = build(64, fn (i) { (float32) i * c }); vmap(fn (row) { row * c + V })(y) })(V)"]


def count_builds(relay, made, passed, failed):
    """Each of BUILDS, whose functions are literals, takes few launches and gives the bits of the loop."""
    for expression in BUILDS:
        with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
            f.write(program([]) + expression + "\n")
            f.flush()
            loop = run(relay, f.name, ["--engine=reference"])
            ways = [run(relay, f.name, flags) for flags in ([], ["--opt=2", "--check-core"])]
        launches = max(way[2] - made for way in ways)
        same = all(way[0] == loop[0] and not way[3] for way in ways) and not loop[3]
        passed, failed = passed + (same and launches <= 12), failed + (not same or launches > 12)
        if not same or launches > 12:
            print(f"FAILED {expression}: " + (f"{launches} launches" if same else f"differs, {ways[0][1]} {ways[1][1]} {loop[1]}"))
    return passed, failed


# Networks whose parameters are records: of a size, within records, with numbers that are no parameters.
NETS = """type Lin[n, m] { Lin { w: Tensor[(n, m), float32], b: Tensor[(m,), float32] } }
type Net { Net { one: Lin[4, 3], two: (Lin[3, 1], int32), n: int32, k: float32 } }
def apply(l, x) { x @@ l.w + l.b }
def predict(p: Net, x) { p.k * sum(apply(p.two.0, tanh(apply(p.one, x)))) + (float32) p.n }
let ps : Rows[{rows}, Net] = Net { one: Lin { w: build(rows, fn (i) { transpose(w) * (float32) i }), b: y },
  two: (Lin { w: build(rows, fn (i) { w[:, :1] }), b: y[:, :1] }, arange(rows)), n: arange(rows), k: y[:, 2] };
"""
# name -> (launches, expression): of per-example gradients and the like they are as many for 30 rows as for 10.
PER_EXAMPLE = {
    "a gradient": (15, "let loss = fn (w, x, y) { sum((tanh(nn.dense(x, w)) - y) ** 2.0) }; vmap(fn (x, y) { grad(loss)(w, x, y) })(x, y)"),
    "by all arguments": (15, "vmap(grad(fn (w, x) { sum(nn.relu(nn.dense(x, w))) }))(build(rows, fn (i) { w }), x)"),
    "cross entropy": (13, "vmap(fn (x, y) { grad(fn (w) { -sum(y * nn.log_softmax(nn.dense(x, w))) })(w) })(x, y)"),
    "a convolution": (10, "vmap(fn (x, y) { grad(fn (w) { sum(nn.conv1d(reshape(x, newshape=[1, 1, 4]), reshape(w, newshape=[3, 1, 4]))) })(w) })(x, y)"),
    "a record": (12, "type P { P { w: Tensor[(3, 4), float32], b: Tensor[(3,), float32] } } "
                     "def loss(p: P, x, y) { sum((nn.dense(x, p.w) + p.b - y) ** 2.0) } let p = P { w: w, b: w[:, 0] }; "
                     "vmap(fn (x, y) { let (l, (g, _, _)) = grad(loss)(p, x, y); (l, g) })(x, y)"),
    "networks": (13, NETS + "vmap(predict)(ps, x)"),
    "gradients by a network": (24, NETS + "let (l, (g, _)) = vmap(grad(predict))(ps, x); (l, g)"),
    "a gradient within": (23, NETS + "vmap(fn (p: Net, (x, k)) { (k, deriv(fn (q: Net) { predict(q, x) * q.k })(p)) })(ps, (x, y))"),
    "a step of training": (67, "import optim; " + NETS + "let states = vmap(fn (p: Net) { optim.adam_init(p) })(ps); "
                               "vmap(fn (p: Net, s, x) { optim.adam(0.05, p, deriv(fn (q) { predict(q, x) })(p), s) })(ps, states, x)"),
    "a derivative through networks": (44, NETS + "grad(fn (q, x) { sum(vmap(predict)(q, x) ** 2.0) })(ps, x)"),
    "networks of each row": (21, NETS + "vmap(vmap(predict))(build(rows, fn (i) { ps }), build(rows, fn (i) { x }))"),
    "networks within": (14, NETS + "vmap(fn (x) { vmap(fn (p: Net) { predict(p, x) })(ps) })(x)"),
    "another record": (10, NETS + "vmap(fn (l: Lin[4, 3], x) { { l with b = sum(x, axis=[0])[1:] } })(ps.one, x)"),
    "a sum over a List": (4, "vmap(fn (l: List[Tensor[(1, 4), float32]]) { foldl(fn (s, y) { s + sum(y) }, 0.0, l) })(list[x, 2.0 * x, x])"),
    "a tree": (4, "type Tree { Leaf(float32), Fork(Tree, Tree) } let t : Rows[{rows}, Tree] = Fork(Leaf(y[:, 0]), Fork(Leaf(y[:, 1]), Leaf(y[:, 2]))); "
                  "def total(t: Tree) { match (t) { Leaf(x) => x, Fork(a, b) => total(a) * total(b) } } vmap(total)(t)"),
    "a constant": (2, "def by(x, w) { w @@ x } vmap(fn (x) { by(transpose(x), [0.5, 1.0, 2.0, 4.0]) })(x)"),
    "a tangent": (6, "vmap(fn (x, y) { jvp(fn (x) { sum(tanh(nn.dense(x, w))) })(x, x) })(x, y)"),
    "a gradient of a gradient": (19, "vmap(fn (x, y) { grad(fn (x) { sum(grad(fn (x) { sum(tanh(nn.dense(x, w))) })(x).1.0) })(x) })(x, y)"),
    "steps that are counted": (6, "vmap(fn (x, y) { loop(5, fn (h) { tanh(nn.dense(x, w)) + h }, zeros(shape=[1, 3])) })(x, y)"),
    "a choice": (6, "vmap(fn (x, y) { if (sum(x) > 2.0) { x * 2.0 } else { x - sum(y) } })(x, y)"),
    "rows of rows": (3, "vmap(fn (x, y) { vmap(fn (z) { sum(z) * y })(x) })(x, y)"),
    "a Jacobian forwards": (20, "jacobian(fn (v) { v * sum(v) + sin(v) })(y[:, 0])"),
    "a Jacobian backwards": (18, "jacobian(fn (v) { sum(reshape(v, newshape=[-1, 4]) ** 2.0, axis=[1]) })(reshape(x, newshape=[-1]))"),
    "a Hessian": (71, "let f = fn (v) { sum(v * v * sum(v)) }; hessian(f)(y[:, 0])"),
    "an index that differs": (6, "vmap(fn (x, i) { x[0, i] + w[mod(i, 3), 0] })(x, mod(arange(rows), 4))"),
}
# Functions of a row x of 4 numbers, of the same matrix w for all rows, and of the row's number i.
DERIVATIVES = {
    "elements": "sum(tanh(x * w[0]) + where(x > 0.5, x * x, sqrt(abs(x) + 0.1)))",
    "products": "let h = tanh(w @@ x); sum(h * h) + x @@ x",
    "softmax": "-nn.log_softmax(w @@ x)[mod(i, 3)]",
    "reductions": "max(x) * min(x) + prod(x) + logsumexp(x) + mean((x - mean(x)) ** 2.0)",
    "an index": "x[mod(i, 4)] * w[mod(i, 3), 1] + w[1, mod(i, 4)] * x[0]",
    "slices": "sum(x[1:3] * x[:2]) + sum(strided_slice(x, begin=[0], end=[4], strides=[2]))",
    "running sums": "sum(cumsum(x) * x) + sum(cumprod(x))",
    "order": "sum(sort(x) * w[1]) + topk(x, k=2, axis=0).0[1] + sum(reverse(x, axis=0) * w[2])",
    "parts": "let (a, b) = split(x, indices_or_sections=2); sum(a * b) + sum(concatenate((a, x), axis=0) ** 2.0)",
    "copies": "sum(tile(x, reps=[2]) ** 2.0) + sum(repeat(x, repeats=2, axis=0) * tile(x, reps=[2]))",
    "places": "sum(take(x, [1, 2], axis=0)) * sum(take(w, [mod(i, 3), 1], axis=0)) + sum(take(x, [i, 3], axis=0, mode=\"wrap\") ** 2.0)",
    "lengths": "sum(nn.l2_normalize(x, eps=0.001, axis=[0]) * w[0]) + sum(nn.layer_norm(x, w[0], w[1]) * x)",
    "images": "sum(nn.conv1d(reshape(x, newshape=[1, 1, 4]), reshape(w[:, :2], newshape=[3, 1, 2])) ** 2.0) + "
              "sum(nn.max_pool1d(reshape(x, newshape=[1, 1, 4]), pool_size=[2], strides=[2]) ** 2.0) + "
              "sum(nn.avg_pool2d(reshape(x, newshape=[1, 1, 2, 2]), pool_size=[2, 1]) ** 2.0)",
    "choices": "if (sum(x) > 2.0) { sum(x * w[0]) } else { loop(3, fn (s) { s * sum(x) }, 1.0) }",
    "data": "let p = Some((x, w)); match (p) { Some((a, b)) => sum(b @@ a), None => 0.0 }",
    "rows inside": "sum(vmap(fn (r) { tanh(sum(r * x)) })(w))",
}
DERIVATIVE = """
let rows = {rows};
let w = cos(reshape((float64) arange(12), newshape=[3, 4])) + 0.25;
let xs = sin(reshape((float64) arange(4 * rows), newshape=[rows, 4])) + 0.75;
def f(w, x, i: int32) {{ {body} }}
def all(w, xs) {{ sum(vmap(fn (x, i) {{ f(w, x, i) }})(xs, arange(rows)) * (1.0 + (float64) arange(rows))) }}
"""
ALL_ROWS = "print(grad(all)(w, xs).0)"
EACH_ROW = """
let (_, (dw, dx)) = grad(all)(w, xs);
def each(w, x, i: int32) { let (_, (a, b, _)) = grad(f)(w, x, i); (a * (1.0 + (float64) i), b * (1.0 + (float64) i)) }
let apart = map(fn (i) { each(w, xs[i], i) }, range(rows));
let wrong = maximum(max(abs(dw - foldl(fn (s, d) { s + d.0 }, zeros_like(w), apart))), max(abs(dx - tensor.of(map(fn (d) { d.1 }, apart)))));
let along = jvp(all)(w, xs, w, xs).1;
print(wrong < 1e-11 * (1.0 + max(abs(dw))) && abs(along - sum(dw * w) - sum(dx * xs)) < 1e-10 * (1.0 + abs(along)));
print(dw);
print(dx);
"""


def count_derivatives(relay, passed, failed):
    """The gradient of each of DERIVATIVES through `vmap` is the sum of those of the rows, has the same bits by the reference
    evaluator, and takes as many launches for few rows as for many."""
    for name, body in DERIVATIVES.items():
        counts, wrong = [], []
        for rows in (8, 24):
            text = DERIVATIVE.format(rows=rows, body=body)
            with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
                f.write(text + ALL_ROWS)
                f.flush()
                counts.append(run(relay, f.name, [])[2])
                f.write(";" + EACH_ROW)
                f.flush()
                ways = [run(relay, f.name, flags) for flags in (["--engine=reference"], [], ["--opt=2", "--check-core"])]
            if any(way[3] for way in ways) or "True" not in "".join(map(str, ways[0][0] + [ways[0][1]])):
                wrong.append(f"{[way[3] for way in ways]} {ways[0][1][:300]}")
            if any(way[0] != ways[0][0] for way in ways):
                wrong.append("other bits than by the reference evaluator")
        if counts[0] != counts[1]:
            wrong.append(f"{counts} launches")
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print(f"FAILED the derivative of {name}: " + "; ".join(wrong))
    return passed, failed


PER_EXAMPLE_START = """
import random;
let rows = {rows};
let w = random.uniform(random.key(1), out_shape=[3, 4]).1;
let x = random.uniform(random.key(2), out_shape=[{rows}, 1, 4]).1;
let y = random.uniform(random.key(3), out_shape=[{rows}, 3]).1;
"""


def count_per_example(relay, passed, failed):
    """Each of PER_EXAMPLE takes as many launches for few rows as for many, and gives the bits of the loop."""
    for name, (wanted, expression) in PER_EXAMPLE.items():
        counts, wrong = [], []
        for rows in (10, 30):
            made = PER_EXAMPLE_START.format(rows=rows)
            with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
                f.write(made + "\n")
                f.flush()
                before = run(relay, f.name, [])[2]
                f.write(expression.replace("{rows}", str(rows)) + "\n")
                f.flush()
                loop = run(relay, f.name, ["--engine=reference"])
                ways = [run(relay, f.name, flags) for flags in ([], ["--opt=2", "--check-core"])]
            counts.append(ways[0][2] - before)
            wrong += [f"differs: {way[0][:1]} {way[1][:200]}" for way in ways if way[0] != loop[0] or way[3] or loop[3]]
        if counts[0] != counts[1] or counts[0] > wanted:
            wrong.append(f"{counts} launches, not {wanted}")
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print(f"FAILED {name}: " + "; ".join(wrong))
    return passed, failed


def main():
    relay, passed, failed = os.path.abspath(sys.argv[1]), 0, 0
    made = count_launches(relay, [])
    wanted = {"given": sys.argv[2:]} if len(sys.argv) > 2 else kinds()
    for kind, expressions in wanted.items():
        with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
            f.write(program(expressions))
            f.flush()
            plain = run(relay, f.name, ["--opt=0"])
            ways = [("the reference", run(relay, f.name, ["--engine=reference"])), ("all rows at once", run(relay, f.name, []))]
        wrong = [f"{name} differs: {a[:90]} and {b[:90]}" for name, way in ways for a, b in zip(plain[0], way[0]) if a != b][:3]
        wrong += [f"{name}: status {way[3]} {way[1].split(chr(10))[0]}" for name, way in ways + [("the loop", plain)] if way[3]]
        launches = ways[1][1][2] - made
        if launches >= ROWS / 2 * len(expressions):
            wrong.append(f"{launches} launches for {len(expressions)} expressions")
        if min(len(way[0]) for _, way in ways) < len(expressions):
            wrong.append("some values are missing")
        if wrong:
            failed += 1
            print(f"FAILED {kind}: " + "\n  ".join(wrong))
        else:
            passed += 1
    dense = count_launches(relay, ["x w: nn.dense(r0, r1)"]) - made
    passed, failed = passed + (dense == 1), failed + (dense != 1)
    if dense != 1:
        print(f"FAILED vmap(nn.dense) takes {dense} launches, not one")
    passed, failed = count_builds(relay, made, passed, failed)
    passed, failed = count_per_example(relay, passed, failed)
    passed, failed = count_derivatives(relay, passed, failed)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
