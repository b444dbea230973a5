#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one step of common networks launches and takes: exact numbers, so that a kernel more is noticed.

Each program does `n` steps. It runs with two counts of steps, both so many that its functions are optimised, and
what the second takes beyond the first is divided by the steps. Counted are launches of kernels, bytes of
tensors made, and bytes of results written over an argument (`:mem`, eval/interp.h). docs/performance.md tells what a
person would need by hand.

    work.py RELAY
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
from process import PATIENCE

COUNT = """
let n = match (args) { Cons(a, _) => match (str.int(a)) { Some(k) => k, None => 0 }, Nil => 0 };
"""

PROGRAMS = []


def program(name, launches, asked, in_place, text, first=100, second=140):
    PROGRAMS.append((name, (launches, asked, in_place), text, first, second))


program("an MLP of 784, 128 and 10, a step of 64 by hand", 8, 71360, 409640, """
let x: Tensor[(64, 784), float32] = full(0.01, shape=[64, 784]);
let y: Tensor[(64, 10), float32] = full(0.1, shape=[64, 10]);
let w1: Tensor[(784, 128), float32] = full(0.01, shape=[784, 128]);
let b1: Tensor[(128,), float32] = zeros(shape=[128]);
let w2: Tensor[(128, 10), float32] = full(0.01, shape=[128, 10]);
let b2: Tensor[(10,), float32] = zeros(shape=[10]);
def step(i: int32, w1, b1, w2, b2) {
  if (i == 0) { (w1, b1, w2, b2) } else {
    let h = nn.relu(x @@ w1 + b1);
    let d2 = (nn.softmax(h @@ w2 + b2) - y) / 64.0;
    let d1 = where(h > 0.0, d2 @@ transpose(w2), 0.0);
    step(i - 1, w1 - 0.1 * (transpose(x) @@ d1), b1 - 0.1 * sum(d1, axis=[0]),
         w2 - 0.1 * (transpose(h) @@ d2), b2 - 0.1 * sum(d2, axis=[0]))
  }
}
sum(step(n, w1, b1, w2, b2).0)
""")

program("the same through grad and optim.sgd", 8, 71680, 409640, """
import loss;
import nn;
import optim;
let x: Tensor[(64, 784), float32] = full(0.01, shape=[64, 784]);
let y: Tensor[(64, 10), float32] = full(0.1, shape=[64, 10]);
type Mlp { Mlp { hidden: nn.Linear[784, 128], output: nn.Linear[128, 10] } }
def logits(net: Mlp, x) { nn.apply_linear(net.output, nn.relu(nn.apply_linear(net.hidden, x))) }
def step(net: Mlp) -> Mlp {
  let (_, (g,)) = grad(fn (n: Mlp) { loss.cross_entropy(logits(n, x), y) })(net);
  optim.sgd(0.1, net, g)
}
let start = Mlp {
  hidden: nn.Linear { w: full(0.01, shape=[128, 784]), b: zeros(shape=[128]) },
  output: nn.Linear { w: full(0.01, shape=[10, 128]), b: zeros(shape=[10]) } };
sum(loop(n, step, start).hidden.w)
""")

LSTM = """
type P { P { w: Tensor[(2048, 300), float32], u: Tensor[(2048, 512), float32], b: Tensor[(2048,), float32] } }
let p = P { w: full(0.01, shape=[2048, 300]), u: full(0.01, shape=[2048, 512]), b: zeros(shape=[2048]) };
let xs: Tensor[(40, 1, 300), float32] = full(0.1, shape=[40, 1, 300]);
let zero: Tensor[(1, 512), float32] = zeros(shape=[1, 512]);
def cell(p: P, x: Tensor[(1, 300), float32], h: Tensor[(1, 512), float32], c: Tensor[(1, 512), float32]) {
  let g = nn.dense(x, p.w) + nn.dense(h, p.u) + p.b;
  let (i, f, o, z) = split(g, indices_or_sections=4, axis=1);
  let c = sigmoid(f) * c + sigmoid(i) * tanh(z);
  (sigmoid(o) * tanh(c), c)
}
def run(p: P, t: int32, h, c) {
  if (t == 0) { h } else { let (h, c) = cell(p, xs[mod(t, 40)], h, c); run(p, t - 1, h, c) }
}
"""
program("an LSTM of 300 and 512, a token", 3, 21744, 0, LSTM + "sum(run(p, n, zero, zero))\n")
program("the same, 20 tokens with gradient", 150, 7680704, 13500416, LSTM + """
def loss(p: P) { sum(run(p, 20, zero, zero)) }
def steps(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(loss)(p); steps(k - 1, s + v + sum(g.b)) }
}
steps(n, 0.0)
""", 4, 6)

program("a recurrent loop of one function, 20 tokens with gradient", 107, 43008, 54016, """
type P { P { w: Tensor[(64, 32), float32], u: Tensor[(64, 64), float32], b: Tensor[(64,), float32] } }
let p = P { w: full(0.01, shape=[64, 32]), u: full(0.01, shape=[64, 64]), b: zeros(shape=[64]) };
let xs: Tensor[(20, 1, 32), float32] = full(0.1, shape=[20, 1, 32]);
let zero: Tensor[(1, 64), float32] = zeros(shape=[1, 64]);
def run(p: P, t: int32, h: Tensor[(1, 64), float32]) -> Tensor[(1, 64), float32] {
  if (t == 0) { h } else { run(p, t - 1, tanh(nn.dense(xs[t - 1], p.w) + nn.dense(h, p.u) + p.b)) }
}
def loss(p: P) { sum(run(p, 20, zero)) }
def steps(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(loss)(p); steps(k - 1, s + v + sum(g.b)) }
}
steps(n, 0.0)
""", 20, 30)

TREE = """
type Parse { Word(int32), Phrase(Parse, Parse) }
type Cell { Cell {
  wx: Tensor[(300, 450), float32], b: Tensor[(450,), float32], u: Tensor[(150, 450), float32],
  uf: Tensor[(150, 150), float32], bf: Tensor[(150,), float32] } }
type State { State { c: Tensor[(1, 150), float32], h: Tensor[(1, 150), float32] } }
let cell = Cell {
  wx: full(0.01, shape=[300, 450]), b: zeros(shape=[450]), u: full(0.01, shape=[150, 450]),
  uf: full(0.01, shape=[150, 150]), bf: zeros(shape=[150]) };
let xs: Tensor[(32, 1, 300), float32] = full(0.1, shape=[32, 1, 300]);
def leaf(p: Cell, x: Tensor[(1, 300), float32]) -> State {
  let (i, o, u) = split(x @@ p.wx + p.b, indices_or_sections=3, axis=1);
  let c = sigmoid(i) * tanh(u);
  State { c: c, h: sigmoid(o) * tanh(c) }
}
def node(p: Cell, l: State, r: State) -> State {
  let (i, o, u) = split((l.h + r.h) @@ p.u + p.b, indices_or_sections=3, axis=1);
  let c = sigmoid(i) * tanh(u) + sigmoid(l.h @@ p.uf + p.bf) * l.c + sigmoid(r.h @@ p.uf + p.bf) * r.c;
  State { c: c, h: sigmoid(o) * tanh(c) }
}
def run(p: Cell, t: Parse) -> State {
  match (t) { Word(i) => leaf(p, xs[i]), Phrase(l, r) => node(p, run(p, l), run(p, r)) }
}
"""
program("a leaf of a Tree-LSTM of 300 and 150", 2, 4200, 0, TREE + """
def leaves(k: int32, s: float32) -> float32 { if (k == 0) { s } else { leaves(k - 1, s + leaf(cell, xs[3]).h[0, 0]) } }
leaves(n, 0.0)
""")
program("an inner node of it", 5, 3600, 0, TREE + """
def nodes(k: int32, l: State, r: State) -> State { if (k == 0) { l } else { nodes(k - 1, node(cell, l, r), r) } }
let at = leaf(cell, xs[1]);
sum(nodes(n, at, at).h)
""")
program("a tree of 8 leaves with gradient", 283, 1257600, 933000, TREE + """
def make(lo: int32, hi: int32) -> Parse {
  if (hi - lo == 1) { Word(lo) } else { let m = (lo + hi) / 2; Phrase(make(lo, m), make(m, hi)) }
}
let t = make(0, 8);
def loss(p: Cell) { sum(run(p, t).h) }
def steps(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(loss)(cell); steps(k - 1, s + v + sum(g.b)) }
}
steps(n, 0.0)
""", 70, 80)

program("the head of a list of 1,000 tensors with gradient", 3, 80000, 0, """
let one: Tensor[(10000,), float32] = full(0.5, shape=[10000]);
let xs: List[Tensor[(10000,), float32]] = map(fn (_) { one }, range(1000));
def first(xs: List[Tensor[(10000,), float32]], s: float32) -> float32 { sum(hd(xs) * s) }
def steps(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let at = s * 0.0; let (v, (g, _)) = grad(first)(xs, 1.0 + at); steps(k - 1, v + sum(hd(g))) }
}
steps(n, 0.0)
""")

for rows, asked in ((10, 904), (1000, 84064)):
    program("the loss of %d rows by vmap, with gradient" % rows, 11, asked, 32, """
let xs: Tensor[(%d, 8), float32] = full(0.1, shape=[%d, 8]);
def loss(w) { mean(vmap(fn (x) { tanh(sum(w * x)) })(xs)) }
def steps(k: int32, w: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
  if (k == 0) { w } else { steps(k - 1, w - 0.1 * deriv(loss)(w)) }
}
sum(steps(n, full(0.2, shape=[8])))
""" % (rows, rows))

program("1,000 products of neighbours by build, with gradient", 21, 212040, 24016, """
def f(x) { sum(build(1000, fn (i) { x[i] * x[i + 1] })) }
def steps(k: int32, x: Tensor[(1001,), float64]) -> Tensor[(1001,), float64] {
  if (k == 0) { x } else { steps(k - 1, x + 0.1 * deriv(f)(x)) }
}
sum(steps(n, full(0.001f64, shape=[1001])))
""")

for name, row, launches, asked in (("row", "sum(x[i])", 1, 32), ("slice", "sum(x[i:i + 1])", 1, 32),
                                   ("place by `take`", "sum(take(x, i, axis=0))", 1, 0), ("number", "x[i, 1]", 0, 0)):
    program("a %s of 10,000 rows read in a loop, with gradient" % name, launches, asked, 0, """
let x: Tensor[(10000, 4), float64] = full(0.001f64, shape=[10000, 4]);
def reads(x: Tensor[(10000, 4), float64], i: int32, s: float64) -> float64 {
  if (i < 0) { s } else { reads(x, i - 1, s + %s * s) }
}
grad(reads)(x, n, 1.0).0
""" % row)

program("a Jacobian of 300 results by 2 arguments, forwards", 15, 16924, 2400, """
def f(x: Tensor[(2,), float64]) -> Tensor[(300,), float64] { sin(full(0.5f64, shape=[300]) * x[0] + x[1]) }
def steps(k: int32, s: float64) -> float64 { if (k == 0) { s } else { steps(k - 1, s + sum(jacobian(f)([0.5, s * 0.0]))) } }
steps(n, 0.0)
""", 20, 30)

program("four columns made a matrix, and its rows", 2, 0, 80, """
def step(k: int32, x: Tensor[(10,), float64]) -> Tensor[(10,), float64] {
  if (k == 0) { x } else { step(k - 1, max(stack((x, x + 1.0, x * 2.0, x - 1.0), axis=-1), axis=[1]) * 0.5) }
}
sum(step(n, zeros(shape=[10], dtype=float64)))
""")

# Values and tangents, and what is read of both between them, in as few launches as either alone.
program("tangents of rows that are read by index, all at once", 23, 21916, 7408, """
let at: Tensor[(6,), int32] = cast(arange(6) * 3, dtype=int32);
def f(x: Tensor[(20,), float64]) {
  let a = sin(x) * x;
  let b = take(a, at, axis=0) * 2.0;
  let c = take(a + x, at, axis=0);
  expand_dims(b, axis=1) * c[:3] + expand_dims(c, axis=1) * b[3:]
}
def step(k: int32, x: Tensor[(20,), float64]) -> Tensor[(20,), float64] {
  if (k == 0) { x } else {
    step(k - 1, x - 0.001 * sum(vmap(fn (t) { jvp(f)(x, t).1 })(cast(eye(20), dtype=float64)), axis=[1, 2]))
  }
}
sum(step(n, full(0.5, shape=[20])))
""")

program("the gradient of each of 50 rows by parts of it", 11, 4000, 1600, """
def f(x: Tensor[(3,), float64]) { x[0] * x[1] + sin(x[..., 2]) * x[0] }
def step(k: int32, xs: Tensor[(50, 3), float64]) -> Tensor[(50, 3), float64] {
  if (k == 0) { xs } else { step(k - 1, xs - 0.001 * vmap(fn (x) { vjp(f)(x, 1.0).1.0 })(xs)) }
}
sum(step(n, full(0.5, shape=[50, 3])))
""")

# The sums only give their shapes, and nobody computes them.
program("sums whose shapes are taken", 3, 48000, 23992, """
let x: Tensor[(?,), float64] = full(0.5, shape=[n * 0 + 3000]);
def step(k: int32, c: Tensor[(?,), float64], a: Tensor[(?,), float64]) -> Tensor[(?,), float64] {
  if (k == 0) { c } else {
    let d = collapse_sum_like(c, a + x);
    step(k - 1, concatenate((collapse_sum_like(d, a + x * 2.0)[1:], [0.25]), axis=0), a)
  }
}
sum(step(n, x, x * 0.5))
""")

program("steps of a loop whose sizes are open, with gradient", 124, 2279840, 1392000, """
def turn(x, y) { x * concatenate(([1.0], y[:-1]), axis=0) }
def run(x: Tensor[(?,), float64]) {
  loop(10, fn (y) { let a = turn(x, y); let b = turn(x, y + a); y + 0.1 * (a + 2.0 * b) }, zeros_like(x))
}
let x: Tensor[(?,), float64] = full(0.5, shape=[n * 0 + 3000]);
def step(k: int32, x) { if (k == 0) { x } else { step(k - 1, x - 0.01 * deriv(fn (x) { sum(run(x)) })(x)) } }
sum(step(n, x))
""")

program("a vector that a loop puts together", 2, 16000, 1116000, """
def grow(k: int32, t: Tensor[(?,), float64]) -> Tensor[(?,), float64] {
  if (k == 0) { t } else { grow(k - 1, concatenate((t, full(0.5, shape=[1000], dtype=float64)), axis=0)) }
}
sum(grow(n, full(0.25, shape=[20000], dtype=float64)))
""")

program("data whose last field is a call", 1, 24000, 24000, """
type Out { Out { x: Tensor[(3000,), float64], n: int32 } }
def count(k: int32) -> int32 { if (k == 0) { 0 } else { count(k - 1) } }
def turn(x: Tensor[(3000,), float64]) -> Out { Out { x: sort(x) * 2.0, n: count(3) } }
let x: Tensor[(3000,), float64] = full(0.5, shape=[3000]);
def step(k: int32, m: int32) -> int32 { if (k == 0) { m } else { step(k - 1, m + turn(x).n) } }
step(n, 0)
""")

program("three states, one of them handed on as it is", 1, 12000, 24000, """
def step(n: int32, x: Tensor[(3000,), float32], y: Tensor[(3000,), float32], z: Tensor[(3000,), float32]) {
  let kept = stop_gradient(x);
  let a = tanh(x) + y;
  let b = a * kept + z;
  if (n == 0) { sum(a) + sum(b) + sum(kept) } else { step(n - 1, a, b, kept) }
}
let x: Tensor[(3000,), float32] = full(0.01, shape=[3000]);
step(n, x + 0.25, x - 0.5, x * 0.75)
""")

program("the gradient of formulas on records of vectors whose sizes are open", 3, 384000, 168000, """
type Vec[s] { Vec { x: Tensor[s, float64], y: Tensor[s, float64] } }
def turn[s](a: Tensor[s, float64], v: Vec[s]) -> Vec[s] {
  let (c, d) = (cos(a), sin(a));
  let w = Vec { x: c * v.x - d * v.y, y: d * v.x + c * v.y };
  Vec { x: w.x * exp(w.y) + tanh(a * w.x), y: w.y * exp(w.x) + tanh(a * w.y) }
}
def twice(a: Tensor[(?,), float64]) { let u = turn(a * a, turn(a, Vec { x: a, y: a * 2.0 })); sum(u.x * u.y) }
let a: Tensor[(?,), float64] = full(0.01, shape=[n * 0 + 3000]);
def step(k: int32, a) { if (k == 0) { a } else { step(k - 1, a - 0.001 * deriv(twice)(a)) } }
sum(step(n, a))
""")

program("differences of records whose sizes nobody knows", 1, 24000, 0, """
type Pair[s] { Pair { x: Tensor[s, float64], y: Tensor[s, float64] } }
def minus[s](a: Pair[s], b: Pair[s]) -> Pair[s] { Pair { x: a.x - b.x, y: a.y - b.y } }
def product(p: Pair[(?,)]) { let d = minus(p, minus(p, p)); d.x * d.y }
let x: Tensor[(?,), float64] = full(0.5, shape=[n * 0 + 3000]);
def step(k: int32, p: Pair[(?,)], z: Tensor[(?,), float64]) -> float64 {
  if (k == 0) { sum(z) } else { step(k - 1, p, product(p)) }
}
step(n, Pair { x: x, y: x * 2.0 }, x)
""")

program("the gradient of calls that take records of one shape", 3, 264000, 72000, """
type Vec[s] { Vec { x: Tensor[s, float64], y: Tensor[s, float64] } }
def times[s](c: Tensor[s, float64], a: Vec[s]) -> Vec[s] { Vec { x: c * a.x, y: c * a.y } }
def plus[s](a: Vec[s], b: Vec[s]) -> Vec[s] { Vec { x: a.x + b.x, y: a.y + b.y } }
def dot[s](a: Vec[s], b: Vec[s]) -> Tensor[s, float64] { a.x * b.x + a.y * b.y }
def turn[s](r: Vec[s], x: Vec[s]) -> Vec[s] {
  let angle = sqrt(dot(r, r));
  let axis = times(1.0 / angle, r);
  plus(plus(times(cos(angle), x), times(sin(angle), x)), times(dot(axis, x) * (1.0 - cos(angle)), axis))
}
type Row[s] { Row { by: Vec[s], point: Vec[s], focal: Tensor[s, float64] } }
def error(r: Row[(?,)]) { let t = turn(r.by, turn(r.by, r.point)); sum(t.x * t.y + r.focal) }
let a: Tensor[(?,), float64] = full(0.01, shape=[n * 0 + 3000]);
def step(k: int32, a) {
  if (k == 0) { a } else {
    let (d,) = grad(error)(Row { by: Vec { x: a, y: a }, point: Vec { x: a, y: a }, focal: a }).1;
    step(k - 1, a - 0.001 * d.by.x)
  }
}
sum(step(n, a))
""")

program("frames of a recursion that keep two dozen tensors", 211, 4488000, 1272000, """
def layer(x: Tensor[(3000,), float64]) {
  let a = sin(x); let b = cumsum(a) * x; let c = cumsum(exp(b * 0.001)); let d = cumsum(tanh(c * a)); let e = cumsum(sin(d * b));
  let f = cumsum(e * c * 0.001); let g = cumsum(cos(f) * d); let h = cumsum(sin(g * e * 0.001)); let i = cumsum(h * f * 0.001);
  let j = cumsum(sin(i) * g); let k = cumsum(cos(j) * h * 0.01); let l = cumsum(sin(k) * i * 0.01);
  sin(l * j * k * 0.001)
}
def deep(k: int32, x: Tensor[(3000,), float64]) -> float64 {
  if (k == 0) { sum(x) } else { sum(x) * 0.5 + deep(k - 1, layer(x)) }
}
def step(k: int32, x: Tensor[(3000,), float64]) -> Tensor[(3000,), float64] {
  if (k == 0) { x } else { step(k - 1, x - 0.001 * deriv(fn (x) { deep(3, x) })(x)) }
}
sum(step(n, full(0.01, shape=[3000])))
""")

program("a formula on columns of a table, which it updates", 2, 8000, 0, """
def step(k: int32, t: Tensor[(1000, 8), float64]) -> float64 {
  if (k == 0) { sum(t) } else { step(k - 1, { t with [:, 0] = t[:, 0] * t[:, 1] + t[:, 2] * 0.5 - t[:, 3] }) }
}
step(n, full(0.5, shape=[1000, 8]))
""")

program("layers of an LSTM with diagonal weights, with gradient", 17, 6160, 4480, """
def layer(x, (p, (hidden, cell))) {
  let forget = sigmoid(x * p[0, 0] + p[1, 0]);
  let taken = sigmoid(hidden * p[0, 1] + p[1, 1]);
  let given = sigmoid(x * p[0, 2] + p[1, 2]);
  let change = tanh(hidden * p[0, 3] + p[1, 3]);
  let cell = cell * forget + taken * change;
  let hidden = given * tanh(cell);
  (hidden, (hidden, cell))
}
def loss(main, extra, states, rows) {
  let step = fn ((states, total), (x, gold)) {
    let (top, states) = map_accuml(layer, x * extra[0], zip(main, states));
    (states, total + sum(gold * (top * extra[1])))
  };
  let (_, total) = foldl(step, (states, 0.0f64), zip(rows, tl(rows)));
  total
}
def layers(params: Tensor[(?, ?), float64]) { list.rows(reshape(params, newshape=[-4, -1, 2, -4, 4, -1])) }
def states(state: Tensor[(?, ?), float64]) { map(fn (s) { (s[0], s[1]) }, list.rows(reshape(state, newshape=[-4, -1, 2, -2]))) }
def total(main, extra: Tensor[(?, ?), float64], state: Tensor[(?, ?), float64], sequence: Tensor[(?, ?), float64]) {
  loss(layers(main), extra, states(state), list.rows(sequence))
}
let (extra, state, rows) = (full(0.5f64, shape=[2, 14]), full(0.2f64, shape=[4, 14]), full(0.1f64, shape=[n + 1, 14]));
sum(deriv(fn (main) { total(main, extra, state, rows) })(full(0.01f64, shape=[4, 56])))
""")

program("the Jacobian, a tangent a row, of a function that captures a record of tensors", 23, 1140, 32, """
type Model { Model { w: Tensor[(?, ?), float64], b: Tensor[(?,), float64] } }
type Data { Data { model: Model, xs: Tensor[(?, ?), float64] } }
def moved(m: Model, x: Tensor[(4,), float64]) {
  let y = m.w @@ concatenate((x[:2], zeros(shape=[1], dtype=float64), x[2:])) + m.b;
  if (sum(x * x) < 0.0001) { y * 2.0 } else { tanh(y) }
}
def gaps(d: Data, x: Tensor[(4,), float64]) { sum((d.xs - moved(d.model, x)) ** 2, axis=[1]) }
def jacobian(d: Data, x: Tensor[(4,), float64]) { vmap(fn (t) { jvp(fn (x) { gaps(d, x) })(x, t).1 })(cast(eye(4), dtype=float64)) }
let d = Data { model: Model { w: full(0.1, shape=[3, 5]), b: full(0.2, shape=[3]) }, xs: full(0.3, shape=[7, 3]) };
def step(k: int32, x: Tensor[(4,), float64]) -> Tensor[(4,), float64] {
  if (k == 0) { x } else { step(k - 1, x - 0.001 * sum(jacobian(d, x), axis=[1])) }
}
sum(step(n, full(0.5, shape=[4])))
""")

program("points on triangles, whose corners are taken by an index, and the Jacobian by a move of all", 24, 10553, 1224, """
let vertices: Tensor[(50, 3), float64] = full(0.5, shape=[50, 3]);
let corners: Tensor[(20, 3), int32] = full(7, shape=[20, 3]);
let us: Tensor[(20, 2), float64] = full(0.25, shape=[20, 2]);
def points(move: Tensor[(3,), float64]) {
  let moved = tanh(vertices + move);
  let corner = fn (k: int32) { take(moved, corners[:, k], axis=0) };
  let (u, v) = (us[:, 0:1], us[:, 1:2]);
  u * corner(0) + v * corner(1) + (1.0 - u - v) * corner(2)
}
def jacobian(x: Tensor[(3,), float64]) { vmap(fn (t) { jvp(points)(x, t).1 })(cast(eye(3), dtype=float64)) }
def step(k: int32, x: Tensor[(3,), float64]) -> Tensor[(3,), float64] {
  if (k == 0) { x } else { step(k - 1, x - 0.001 * sum(points(x), axis=[0]) * sum(jacobian(x), axis=[0, 1])) }
}
sum(step(n, full(0.5, shape=[3])))
""")

program("a call that is given its argument, and goes on with the result", 7, 16000, 40000, """
def sunk(x: Tensor[(?,), float64], k: int32) -> Tensor[(?,), float64] {
  if (k == 0) { x * 0.5 } else { let y = sunk(x - 1.0, k - 1); y * y }
}
def step(k: int32, x: Tensor[(?,), float64]) -> Tensor[(?,), float64] { if (k == 0) { x } else { step(k - 1, tanh(sunk(x * 2.0, 2))) } }
sum(step(n, full(0.1, shape=[1000])))
""")

program("an MLP for batches of any size through grad and optim.sgd", 16, 513768, 412200, """
import loss;
import nn;
import optim;
type Mlp { Mlp { w1: Tensor[(784, 128), float32], b1: Tensor[(128,), float32], w2: Tensor[(128, 10), float32], b2: Tensor[(10,), float32] } }
let net = Mlp { w1: full(0.01, shape=[784, 128]), b1: zeros(shape=[128]), w2: full(0.01, shape=[128, 10]), b2: zeros(shape=[10]) };
def logits(m: Mlp, x: Tensor[(?, 784), float32]) { nn.relu(x @@ m.w1 + m.b1) @@ m.w2 + m.b2 }
def cost(m: Mlp, x: Tensor[(?, 784), float32], y: Tensor[(?, 10), float32]) { loss.cross_entropy(logits(m, x), y) }
let x: Tensor[(?, 784), float32] = full(0.5, shape=[64, 784]);
let y: Tensor[(?, 10), float32] = full(0.1, shape=[64, 10]);
def step(k: int32, m: Mlp) -> Mlp {
  if (k == 0) { m } else { let (_, (g, _, _)) = grad(cost)(m, x, y); step(k - 1, optim.sgd(0.1, m, g)) }
}
sum(step(n, net).b2)
""")

program("a layer of attention, 8 heads of 32 over 64 places", 7, 528704, 196608, """
type Layer { Layer { q: Tensor[(256, 256), float32], k: Tensor[(256, 256), float32], v: Tensor[(256, 256), float32],
  o: Tensor[(256, 256), float32], b: Tensor[(256,), float32] } }
let w: Tensor[(256, 256), float32] = full(0.01, shape=[256, 256]);
let layer = Layer { q: w, k: w, v: w, o: w, b: zeros(shape=[256]) };
def heads(x: Tensor[(64, 256), float32]) { transpose(reshape(x, newshape=[64, 8, 32]), axes=[1, 0, 2]) }
def attend(l: Layer, x: Tensor[(64, 256), float32]) -> Tensor[(64, 256), float32] {
  let q = heads(x @@ l.q + l.b);
  let k = heads(x @@ l.k + l.b);
  let v = heads(x @@ l.v + l.b);
  let p = nn.softmax(nn.batch_matmul(q, transpose(k, axes=[0, 2, 1])) / sqrt(32.0));
  let y = nn.batch_matmul(p, v);
  x + reshape(transpose(y, axes=[1, 0, 2]), newshape=[64, 256]) @@ l.o + l.b
}
let x: Tensor[(64, 256), float32] = full(0.1, shape=[64, 256]);
def layers(k: int32, x) { if (k == 0) { x } else { layers(k - 1, attend(layer, x)) } }
sum(layers(n, x))
""")


def counts(relay, path, n):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    run = subprocess.run([relay, "--threads=1", "--time", path, str(n)], capture_output=True, text=True,
                         timeout=PATIENCE, env=env)
    if run.returncode:
        sys.exit(run.stdout + run.stderr)
    found = [re.search(rf"^{what}: (\d+)$", run.stderr, re.M)
             for what in ("launches", "bytes asked", "bytes written over an argument")]
    return [int(f.group(1)) for f in found]


def main():
    relay = os.path.abspath(sys.argv[1])
    passed = failed = 0
    for name, wanted, text, first, second in PROGRAMS:
        with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
            f.write(COUNT + text)
            f.flush()
            a, b = counts(relay, f.name, first), counts(relay, f.name, second)
        found = tuple((y - x) / (second - first) for x, y in zip(a, b))
        if found == wanted:
            passed += 1
        else:
            failed += 1
            print(f"FAILED {name}: launches, bytes asked, bytes in place\n  expected {wanted}\n  found    {found}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
