# SPDX-License-Identifier: Apache-2.0
"""What derivatives cost: value and gradient together over the value, one row a program. bench/run.py measures them.

Each program runs its work `n` times in one process, with two counts, and what the second run takes beyond the first is
divided by the difference: the start, the checker and the passes fall out. The argument depends on the sum so far, so
that nothing is taken out of the loop. Where PyTorch is installed (for the Python that --python names) its ratio stands beside some rows
(bench/peers/torch_grad.py). Further rows are whole processes, of which time and memory are asked, and the growth of
work with its size. GradBench's programs are in bench/gradbench/.
"""
import collections
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))

# few and many: the counts; by the few the passes have run over what is hot (eval/tier.c). AT stands for the work's argument in `value` and `gradient`, both float64 or float32. peer:
# the name in bench/peers/torch_grad.py.
Row = collections.namedtuple("Row", "name asked few many dtype setup value gradient peer", defaults=[None])
# A whole process: the most seconds and megabytes, the program.
Once = collections.namedtuple("Once", "name seconds megabytes text")
# Work of growing size, which stands for SIZE in `setup` and `gradient`.
Growth = collections.namedtuple("Growth", "name setup gradient")

NETWORK = """
let x: Tensor[(64, 784), float32] = full(0.01, shape=[64, 784]);
let w1: Tensor[(784, 128), float32] = full(0.01, shape=[784, 128]);
let w2: Tensor[(128, 10), float32] = full(0.01, shape=[128, 10]);
def loss(w1, w2) -> float32 { sum(nn.log_softmax(nn.relu(x @@ w1) @@ w2)) }
"""
LSTM = """
type P { P { w: Tensor[(2048, 300), float32], u: Tensor[(2048, 512), float32], b: Tensor[(2048,), float32] } }
let p = P { w: full(0.01, shape=[2048, 300]), u: full(0.01, shape=[2048, 512]), b: zeros(shape=[2048]) };
let xs: Tensor[(20, 1, 300), float32] = full(0.1, shape=[20, 1, 300]);
let zero: Tensor[(1, 512), float32] = zeros(shape=[1, 512]);
def cell(p: P, x: Tensor[(1, 300), float32], h: Tensor[(1, 512), float32], c: Tensor[(1, 512), float32]) {
  let (i, f, o, z) = split(nn.dense(x, p.w) + nn.dense(h, p.u) + p.b, indices_or_sections=4, axis=1);
  let c = sigmoid(f) * c + sigmoid(i) * tanh(z);
  (sigmoid(o) * tanh(c), c)
}
def run(p: P, t: int32, h, c) {
  if (t == 0) { h } else { let (h, c) = cell(p, xs[t - 1], h, c); run(p, t - 1, h, c) }
}
def loss(p: P, s: float32) { sum(run(p, 20, zero, zero)) + s }
"""
NEWTON = """
def go(x: float64, a: float64, i: int32) -> float64 { if (i == 0) { x } else { go(0.5 * (x + a / x), a, i - 1) } }
def newton(a: float64) -> float64 { go(a, a, 100) }
"""
FOLD = """
let xs: List[float64] = map(fn (i) { 1.0 + (float64) i * 0.0000001 }, range(10000));
def product(a: float64) -> float64 { foldl(fn (p, x) { p * x }, a, xs) }
def of_all(xs: List[float64], a: float64) -> float64 { foldl(fn (p, x) { p * x }, a, xs) }
"""
TREE = """
type Tree { Leaf(float64), Node(Tree, Tree) }
def make(n: int32) -> Tree { if (n == 0) { Leaf(0.5) } else { Node(make(n - 1), make(n - 1)) } }
let t = make(15);
def total(t: Tree, a: float64) -> float64 { match (t) { Leaf(x) => x * a, Node(l, r) => total(l, a) + total(r, a) } }
"""
LOOP = """
def steps(a: float64) -> float64 {
  while(fn (s) { s.1 < 1000000 }, fn (s) { (s.0 * 0.999999 + 0.000001, s.1 + 1) }, (a, 0)).0
}
"""
HEADS = """
let xs: List[float64] = list[1.0, 2.0, 3.0];
def heads(xs: List[float64], s: float64, n: int32) -> float64 {
  if (n == 0) { s } else { match (xs) { Cons(x, _) => heads(xs, s + x, n - 1), Nil => s } }
}
"""
MINORS = """
def minor(a: Tensor[(?, ?), float64], row: int32, columns: List[int32]) -> float64 {
  if (row + 1 == shape_of(a)[0]) { a[row, hd(columns)] } else {
    let add = fn ((total, sign), j) {
      (total + sign * a[row, j] * minor(a, row + 1, filter(fn (k) { k != j }, columns)), -sign)
    };
    foldl(add, (0.0, 1.0), columns).0
  }
}
def det(a: Tensor[(5, 5), float64]) -> float64 { minor(a, 0, range(5)) }
let m: Tensor[(5, 5), float64] = reshape(1.0 / (1.0 + (float64) arange(25)), newshape=[5, 5]);
"""
REVERSE = """
let xs: List[float64] = map(fn (i) { (float64) i }, range(10000));
def reversed(xs: List[float64]) -> List[float64] { foldl(fn (acc, x) { Cons(x, acc) }, Nil, xs) }
"""
READS = """
def reads(x: Tensor[(?,), float64], i: int32, s: float64) -> float64 {
  if (i == 0) { s } else { reads(x, i - 1, s + x[i - 1] * s) }
}
let x: Tensor[(?,), float64] = full(0.00001f64, shape=[%s]);
"""
ROWS_READ = """
def reads(x: Tensor[(?, 4), float64], i: int32, s: float64) -> float64 {
  if (i == 0) { s } else { reads(x, i - 1, s + %s * s) }
}
let x: Tensor[(?, 4), float64] = full(0.00001f64, shape=[SIZE, 4]);
"""
PARTS_WRITTEN = """
def writes(a: Tensor[(?,), float64], i: int32, x: float64) -> float64 {
  if (i == 0) { a[0] } else { writes({ a with [i - 1] = x * a[i] + 1.0 }, i - 1, x) }
}
let x: Tensor[(?,), float64] = full(1.0f64, shape=[%s + 1]);
"""
MIXTURE = """
import gmm;
def draw[a, b](like: Tensor[(a, b), float32], k: float64) -> Tensor[(a, b), float64] {
  reshape_like(sin((float64) arange(ndarray_size(like)) * k), like)
}
def input(gamma: float64) -> gmm.Input {
  gmm.Input {
    alpha: sin((float64) arange(50)), mu: draw(zeros(shape=[50, 32]), 0.3), q: draw(zeros(shape=[50, 32]), 0.9),
    l: draw(zeros(shape=[50, 496]), 0.11), x: draw(zeros(shape=[1000, 32]), 0.13), gamma: gamma, m: 0 }
}
let i = input(1.0);
def model(gamma: float64) -> gmm.Input {
  gmm.Input { alpha: i.alpha, mu: i.mu, q: i.q, l: i.l, x: i.x, gamma: gamma, m: 0 }
}
def value(gamma: float64) -> float64 { gmm.objective(model(gamma)) }
def gradient(gamma: float64) -> float64 {
  let of = model(gamma);
  let (v, (g,)) = grad(fn (p: gmm.Params) { gmm.posterior(p, of) })(gmm.params(of));
  v + sum(g.alpha)
}
"""
LARGE = """
let one: Tensor[(100000,), float32] = full(0.5, shape=[100000]);
let xs: List[Tensor[(100000,), float32]] = map(fn (_) { one }, range(1000));
def first(xs: List[Tensor[(100000,), float32]], s: float32) -> float32 { sum(hd(xs) * s) }
"""
HANDED = """
def handed(w: float64, n: int32) -> float64 { if (n == 0) { w } else { w * 0.5 + 0.5 * handed(w, n - 1) } }
"""
WRITES = """
let outer: ref(List[float32]) = ref(Nil);
def fill(n: int32) -> () { if (n == 0) { () } else { outer := Cons(1.0, !outer); fill(n - 1) } }
def f(x: float32) -> float32 { outer := Nil; fill(10000); x * x }
"""

ROWS = [
    Row("MLP 784-128-10, 64 rows", 2.5, 200, 1200, "float32", NETWORK, "loss(w1, w2 + AT)",
        "{ let (v, (_, g)) = grad(loss)(w1, w2 + AT); v + sum(g) }", "mlp"),
    Row("LSTM 300/512, 20 steps", 3, 8, 28, "float32", LSTM, "loss(p, AT)",
        "{ let (v, (g, _)) = grad(loss)(p, AT); v + sum(g.b) }", "lstm"),
    Row("Newton, 100 steps", 3, 200, 20200, "float64", NEWTON, "newton(2.0 + AT)",
        "{ let (v, (g,)) = grad(newton)(2.0 + AT); v + g }", "newton"),
    Row("Newton, `jvp`", 3, 200, 20200, "float64", NEWTON, "newton(2.0 + AT)", "jvp(newton)(2.0 + AT, 1.0).1"),
    Row("Newton, `hvp`", 8, 200, 20200, "float64", NEWTON, "newton(2.0 + AT)", "hvp(newton)(2.0 + AT, 1.0)", "newton_hvp"),
    Row("Newton, `deriv(deriv(f))`", 8, 200, 20200, "float64", NEWTON, "newton(2.0 + AT)",
        "deriv(deriv(newton))(2.0 + AT)"),
    Row("fold over 10,000 products", 3, 5, 205, "float64", FOLD, "product(1.0 + AT)",
        "{ let (v, (_, g)) = grad(of_all)(xs, 1.0 + AT); v + g }"),
    Row("the same, by its start alone", 3, 5, 405, "float64", FOLD, "product(1.0 + AT)",
        "{ let (v, (g,)) = grad(product)(1.0 + AT); v + g }"),
    Row("tree sum of 2^15 leaves", 4, 2, 202, "float64", TREE, "total(t, 1.0 + AT)",
        "{ let (v, (_, g)) = grad(total)(t, 1.0 + AT); v + g }"),
    Row("a million steps of `while`", 4, 2, 6, "float64", LOOP, "steps(1.0 + AT)",
        "{ let (v, (g,)) = grad(steps)(1.0 + AT); v + g }"),
    Row("100,000 heads of a list", 4, 2, 42, "float64", HEADS, "heads(xs, AT, 100000)",
        "{ let (v, (_, g, _)) = grad(heads)(xs, AT, 100000); v + g }"),
    Row("determinant by minors, 5 by 5", 3, 20, 620, "float64", MINORS, "det(m + AT)",
        "{ let (v, (g,)) = grad(det)(m + AT); v + g[0, 0] }"),
    Row("list of 10,000 reversed", 3, 5, 205, "float64", REVERSE, "{ let ys = reversed(xs); AT }",
        "{ let (_, (ys,)) = vjp(reversed)(xs, xs); AT }"),
    Row("10,000 reads `x[i]`", 4, 2, 42, "float64", READS % 10000, "reads(x, 10000, 1.0 + AT)",
        "{ let (v, (_, _, g)) = grad(reads)(x, 10000, 1.0 + AT); v + g }", "reads"),
    Row("1,000,000 reads `x[i]`", 4, 1, 3, "float64", READS % 1000000, "reads(x, 1000000, 1.0 + AT)",
        "{ let (v, (_, _, g)) = grad(reads)(x, 1000000, 1.0 + AT); v + g }"),
    Row("a parameter through 100,000 calls", 4, 1, 21, "float64", HANDED, "handed(1.0 + AT, 100000)",
        "{ let (v, (g, _)) = grad(handed)(1.0 + AT, 100000); v + g }"),
    Row("10,000 writes to a reference", 4, 5, 105, "float32", WRITES, "f(1.0 + AT)",
        "{ let (v, (g,)) = grad(f)(1.0 + AT); v + g }"),
    Row("GMM 32_50", 3, 8, 28, "float64", MIXTURE, "value(1.0 + AT)", "gradient(1.0 + AT)", "gmm"),
    Row("head of 1,000 tensors of 100,000", 4, 20, 420, "float32", LARGE, "first(xs, 1.0 + AT)",
        "{ let (v, (_, g)) = grad(first)(xs, 1.0 + AT); v + g }"),
]


def nested(function, levels):
    text = "fn (x) { x * sin(x) }"
    for _ in range(levels):
        text = function % text
    return f"({text})(1.0)\n"


# What the derivative costs where it is written by hand in Relay, with frames in data of its own: a bound for the rows above.
FRAMES = """
type Steps { End, Step(float64, float64, Steps) }
"""
FOLD_BY_HAND = FOLD + FRAMES + """
def forth(p: float64, xs: List[float64], k: Steps) -> (float64, Steps) {
  match (xs) { Cons(x, rest) => forth(p * x, rest, Step(x, p, k)), Nil => (p, k) }
}
def back(k: Steps, ct: float64, cts: List[float64]) -> (float64, List[float64]) {
  match (k) { Step(x, p, before) => back(before, ct * x, Cons(ct * p, cts)), End => (ct, cts) }
}
def gradient(a: float64) -> float64 { let (v, k) = forth(a, xs, End); let (g, cts) = back(k, 1.0, Nil); v + g }
"""
NEWTON_BY_HAND = NEWTON + FRAMES + """
def forth(x: float64, a: float64, i: int32, k: Steps) -> (float64, Steps) {
  if (i == 0) { (x, k) } else { let q = a / x; forth(0.5 * (x + q), a, i - 1, Step(x, q, k)) }
}
def back(k: Steps, ct: float64, ca: float64) -> float64 {
  match (k) {
    Step(x, q, before) => { let h = ct * 0.5; let t = h / x; back(before, h - t * q, ca + t) },
    End => ct + ca
  }
}
def gradient(a: float64) -> float64 { let (v, k) = forth(a, a, 100, End); v + back(k, 1.0, 0.0) }
"""
BY_HAND = [
    Row("Newton, 100 steps, by hand in Relay", None, 200, 20200, "float64", NEWTON_BY_HAND, "newton(2.0 + AT)",
        "gradient(2.0 + AT)"),
    Row("fold over 10,000 products, by hand in Relay", None, 5, 205, "float64", FOLD_BY_HAND, "product(1.0 + AT)",
        "gradient(1.0 + AT)"),
]

WHOLE = [
    Once("`deriv` 8 deep of `x * sin(x)`, first call", 0.5, 200, nested("deriv(%s)", 8)),
    Once("`jvp` 8 deep of it, first call", 0.5, 200, nested("fn (x) { jvp(%s)(x, 1.0).1 }", 8)),
    Once("a gradient of a million steps of `while`", None, 100, LOOP + "grad(steps)(1.0)\n"),
]
SIZES = (10000, 100000, 1000000)
GROWTHS = [
    Growth("reads `x[i]`", READS % "SIZE", "grad(reads)(x, SIZE, 1.0 + AT).0"),
    Growth("reads of rows `x[i]`", ROWS_READ % "sum(x[i - 1])", "grad(reads)(x, SIZE, 1.0 + AT).0"),
    Growth("reads of slices `x[i:i + 1]`", ROWS_READ % "sum(x[i - 1:i])", "grad(reads)(x, SIZE, 1.0 + AT).0"),
    Growth("writes `{ a with [i] = x * a[i - 1] }`", PARTS_WRITTEN % "SIZE",
           "grad(writes)(x, SIZE, 0.5 + AT).0"),
    Growth("reads by `take`", ROWS_READ % "sum(take(x, i - 1, axis=0))", "grad(reads)(x, SIZE, 1.0 + AT).0"),
]


def program(dtype, setup, what):
    """The text of the program; its first argument is how often the work is done."""
    return f"""
{setup}
let n = match (args) {{ Cons(a, _) => match (str.int(a)) {{ Some(k) => k, None => 0 }}, Nil => 0 }};
def again(k: int32, s: {dtype}) -> {dtype} {{
  if (k == 0) {{ s }} else {{ let at = s * 0.0; again(k - 1, {what.replace("AT", "at")}) }}
}}
again(n, 0.0)
"""


def peers(bench):
    """{name: (seconds of the value, of value and gradient)} in PyTorch, where it is installed."""
    names = [row.peer for row in ROWS if row.peer]
    told = subprocess.run([bench.python, os.path.join(HERE, "peers", "torch_grad.py"), *names], capture_output=True,
                          text=True)
    lines = [line.split() for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return {name: (float(value), float(gradient)) for name, value, gradient in lines}


def measure(bench):
    """A line for each row: the ratio, and both figures."""
    with open(os.path.join(HERE, "gradbench", "gmm.rly"), encoding="utf-8") as f:
        bench.file("gmm.rly", f.read())
    beside = peers(bench)
    for row in ROWS + BY_HAND:
        commands = [[bench.relay, "--threads=1", bench.file(f"{what}.rly", program(row.dtype, row.setup, text))]
                    for what, text in (("value", row.value), ("gradient", row.gradient))]
        value, gradient = bench.each(commands, row.few, row.many)
        target = f"at most {row.asked:g}" if row.asked else ""
        if row.peer in beside:
            theirs = beside[row.peer]
            target += f", PyTorch {theirs[1] / theirs[0]:.1f} of {theirs[0] * 1e6:.1f} us"
        bench.report.row(row.name, f"{gradient * 1e6:.1f} us", f"{value * 1e6:.1f} us the value",
                         f"{gradient / value:.1f}", target, not row.asked or gradient <= row.asked * value)
    for row in WHOLE:
        seconds, megabytes = bench.whole(bench.file("once.rly", row.text))
        asked = [f"{row.seconds:g} s"] if row.seconds else []
        bench.report.row(row.name, f"{seconds * 1e3:.0f} ms", f"{megabytes:.0f} MB", "",
                         "at most " + " and ".join(asked + [f"{row.megabytes:g} MB"]),
                         megabytes <= row.megabytes and (not row.seconds or seconds <= row.seconds))
    for row in GROWTHS:
        costs = []
        for size in SIZES:
            text = program("float64", *(t.replace("SIZE", str(size)) for t in (row.setup, row.gradient)))
            often = max(2, SIZES[-1] // size // 2)
            # The first run is not counted: with it the heap grows to what the frames take, which is a matter of pages.
            costs += bench.each([[bench.relay, "--threads=1", bench.file("growth.rly", text)]], 1, 1 + often)
        k = bench.slope(SIZES, costs)
        bench.report.row(row.name, ", ".join(f"{c / n * 1e9:.0f}" for c, n in zip(costs, SIZES)) + " ns each",
                         f"exponent {k:.2f}", "", "exponent at most 1.05", k <= 1.05)
