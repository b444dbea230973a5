# SPDX-License-Identifier: Apache-2.0
"""How fast whole programs run, a row for each, beside what else a user would run it in. bench/run.py measures them.

Each program does its work `n` times in one process. Two counts are run, and what the larger one takes beyond the smaller is
divided by the difference: start, checker, passes and compiler fall out. Relay and its peers take turns, all on one
thread; figures are the least processor times of three runs of each count.

Peers are NumPy, PyTorch (eager) and ONNX Runtime, where the interpreter given by `--python` has them, ocamlc where it is
installed, and loops in C (bench/peers/chain.c). What is missing is named at the end.
"""
import collections
import os
import shutil
import subprocess
import time

import engine_peers as peers
import resnet

# asked: the most that a figure may be, in seconds or, with the name of a peer, of that peer's time. per: how many units one
# repetition has, of which a figure is one.
Row = collections.namedtuple("Row", "name asked of few many per relay peers")

COUNT = "let n = match (args) { Cons(a, _) => match (str.int(a)) { Some(k) => k, None => 0 }, Nil => 0 };\n"

MLP = """
import loss;
import nn;
import optim;
let x: Tensor[(64, 784), float32] = full(0.01, shape=[64, 784]);
let y: Tensor[(64, 10), float32] = full(0.1, shape=[64, 10]);
"""
MLP_BY_HAND = MLP + """
let w1: Tensor[(784, 128), float32] = full(0.01, shape=[784, 128]);
let b1: Tensor[(128,), float32] = zeros(shape=[128]);
let w2: Tensor[(128, 10), float32] = full(0.01, shape=[128, 10]);
let b2: Tensor[(10,), float32] = zeros(shape=[10]);
def step(i: int32, w1, b1, w2, b2) {
  if (i == 0) { w1 } else {
    let h = nn.relu(x @@ w1 + b1);
    let d2 = (nn.softmax(h @@ w2 + b2) - y) / 64.0;
    let d1 = where(h > 0.0, d2 @@ transpose(w2), 0.0);
    step(i - 1, w1 - 0.1 * (transpose(x) @@ d1), b1 - 0.1 * sum(d1, axis=[0]),
         w2 - 0.1 * (transpose(h) @@ d2), b2 - 0.1 * sum(d2, axis=[0]))
  }
}
sum(step(n, w1, b1, w2, b2))
"""
MLP_BY_OPTIM = MLP + """
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
"""

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
  if (t == 0) { h } else { let (h, c) = cell(p, xs[t - 1], h, c); run(p, t - 1, h, c) }
}
"""
LSTM_TOKENS = LSTM + """
def lengths(t: int32, s: float32) -> float32 { if (t > 40) { s } else { lengths(t + 1, s + sum(run(p, t, zero, zero))) } }
def again(k: int32, s: float32) -> float32 { if (k == 0) { s } else { again(k - 1, lengths(10, s)) } }
again(n, 0.0)
"""
LSTM_SCAN = """
import nn;
let l = nn.Lstm { w: full(0.01, shape=[4, 512, 300]), u: full(0.01, shape=[4, 512, 512]), b: zeros(shape=[4, 512]) };
let xs: Tensor[(40, 1, 300), float32] = full(0.1, shape=[40, 1, 300]);
let zero: Tensor[(1, 512), float32] = zeros(shape=[1, 512]);
def lengths(t: int32, s: float32) -> float32 {
  if (t > 40) { s } else { lengths(t + 1, s + sum(nn.scan_lstm(l, (zero, zero), xs[:t]).1.0)) }
}
def again(k: int32, s: float32) -> float32 { if (k == 0) { s } else { again(k - 1, lengths(10, s)) } }
again(n, 0.0)
"""
LSTM_GRADIENT = LSTM + """
def loss(p: P) { sum(run(p, 20, zero, zero)) }
def again(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(loss)(p); again(k - 1, s + v + sum(g.b)) }
}
again(n, 0.0)
"""

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
def make(lo: int32, hi: int32) -> Parse {
  if (hi - lo == 1) { Word(lo) } else { let m = (2 * lo + hi) / 3; let m = if (m == lo) { m + 1 } else { m };
    Phrase(make(lo, m), make(m, hi)) }
}
let t = make(0, 32);
def loss(p: Cell) { sum(run(p, t).h) }
"""
TREE_LEAVES = TREE + """
def again(k: int32, s: float32) -> float32 { if (k == 0) { s } else { again(k - 1, s + loss(cell)) } }
again(n, 0.0)
"""
TREE_GRADIENT = TREE + """
def again(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(loss)(cell); again(k - 1, s + v + sum(g.b)) }
}
again(n, 0.0)
"""

LENET = """
import loss;
import nn;
import optim;
type LeNet { LeNet {
  c1: Tensor[(6, 1, 5, 5), float32], b1: Tensor[(6, 1, 1), float32],
  c2: Tensor[(16, 6, 5, 5), float32], b2: Tensor[(16, 1, 1), float32],
  f1: nn.Linear[400, 120], f2: nn.Linear[120, 84], f3: nn.Linear[84, 10] } }
let x: Tensor[(32, 1, 28, 28), float32] = full(0.1, shape=[32, 1, 28, 28]);
let y: Tensor[(32, 10), float32] = full(0.1, shape=[32, 10]);
def pool(x) { nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2]) }
def logits(net: LeNet, x: Tensor[(32, 1, 28, 28), float32]) {
  let a = pool(nn.relu(nn.conv2d(x, net.c1, padding=[2, 2]) + net.b1));
  let b = pool(nn.relu(nn.conv2d(a, net.c2) + net.b2));
  let c = nn.relu(nn.apply_linear(net.f1, reshape(b, newshape=[32, 400])));
  nn.apply_linear(net.f3, nn.relu(nn.apply_linear(net.f2, c)))
}
def step(net: LeNet) -> LeNet {
  let (_, (g,)) = grad(fn (net: LeNet) { loss.cross_entropy(logits(net, x), y) })(net);
  optim.sgd(0.01, net, g)
}
let start = LeNet {
  c1: full(0.1, shape=[6, 1, 5, 5]), b1: zeros(shape=[6, 1, 1]),
  c2: full(0.1, shape=[16, 6, 5, 5]), b2: zeros(shape=[16, 1, 1]),
  f1: nn.Linear { w: full(0.01, shape=[120, 400]), b: zeros(shape=[120]) },
  f2: nn.Linear { w: full(0.01, shape=[84, 120]), b: zeros(shape=[84]) },
  f3: nn.Linear { w: full(0.01, shape=[10, 84]), b: zeros(shape=[10]) } };
sum(loop(n, step, start).c1)
"""

BERT = """
import nn;
type Layer { Layer {
  q: nn.Linear[768, 768], k: nn.Linear[768, 768], v: nn.Linear[768, 768], o: nn.Linear[768, 768],
  up: nn.Linear[768, 3072], down: nn.Linear[3072, 768], gamma: Tensor[(768,), float32], beta: Tensor[(768,), float32] } }
def square() { nn.Linear { w: full(0.01, shape=[768, 768]), b: zeros(shape=[768]) } }
let layer = Layer {
  q: square(), k: square(), v: square(), o: square(),
  up: nn.Linear { w: full(0.01, shape=[3072, 768]), b: zeros(shape=[3072]) },
  down: nn.Linear { w: full(0.01, shape=[768, 3072]), b: zeros(shape=[768]) },
  gamma: ones(shape=[768]), beta: zeros(shape=[768]) };
def heads(x: Tensor[(64, 768), float32]) { transpose(reshape(x, newshape=[64, 12, 64]), axes=[1, 0, 2]) }
def norm(l: Layer, x: Tensor[(64, 768), float32]) { nn.layer_norm(x, l.gamma, l.beta) }
def gelu(x) { x * (erf(x * 0.70710678) * 0.5 + 0.5) }
def attend(l: Layer, x: Tensor[(64, 768), float32]) -> Tensor[(64, 768), float32] {
  let q = heads(nn.apply_linear(l.q, x));
  let k = heads(nn.apply_linear(l.k, x));
  let v = heads(nn.apply_linear(l.v, x));
  let p = nn.softmax(nn.batch_matmul(q, k, transpose_b=True) / 8.0);
  let y = reshape(transpose(nn.batch_matmul(p, transpose(v, axes=[0, 2, 1])), axes=[1, 0, 2]), newshape=[64, 768]);
  let h = norm(l, x + nn.apply_linear(l.o, y));
  norm(l, h + nn.apply_linear(l.down, gelu(nn.apply_linear(l.up, h))))
}
let x: Tensor[(64, 768), float32] = sin((float32) reshape(arange(49152), newshape=[64, 768]));
def again(k: int32, x: Tensor[(64, 768), float32]) { if (k == 0) { x } else { again(k - 1, attend(layer, x)) } }
sum(again(n, x))
"""


def resnet_program():
    """ResNet-18 as TVM prints it, its weights all alike, called n times."""
    text = resnet.resnet(1, True).split("\n", 1)[1]  # without the version, which may stand first only
    shapes = [part.split(")")[0] for part in text.split("-> ")[0].split("Tensor[(")[1:]]
    lists = [f"[{shape.rstrip(',')}]" for shape in shapes]
    names = [f"p{number}" for number in range(len(shapes))]
    lets = "".join(f"let {name}: Tensor[({shape}), float32] = full(0.01, shape={sizes});\n"
                   for name, shape, sizes in zip(names, shapes, lists))
    return text + lets + f"""
def again(k: int32, s: float32) -> float32 {{
  if (k == 0) {{ s }} else {{ again(k - 1, s + main(p0 + s, {", ".join(names[1:])})[0, 0]) }}
}}
again(n, 0.0)
"""


def chain(size, few, many, asked):
    return Row(f"`tanh(x * b + c) * b` in recursion, {size:,}", 1 / asked, "C", few, many, 1, f"""
let b: Tensor[({size},), float32] = full(0.5, shape=[{size}]);
let c: Tensor[({size},), float32] = full(0.25, shape=[{size}]);
def go(k: int32, x: Tensor[({size},), float32]) {{ if (k == 0) {{ x[0] }} else {{ go(k - 1, tanh(x * b + c) * b) }} }}
go(n, b)
""", {"C": str(size)})


FIB = """
def fib(n: int32) -> int32 { if (n < 2) { n } else { fib(n - 1) + fib(n - 2) } }
def again(k: int32, s: int32) -> int32 { if (k == 0) { s } else { again(k - 1, mod(s + fib(20), 7)) } }
again(n, 0)
"""
LISTS = """
let xs = range(10000);
def again(k: int32, s: int32) -> int32 {
  if (k == 0) { s } else { again(k - 1, mod(foldl(fn (a, x) { a + x }, 0, map(fn (x) { mod(x * 3 + s, 7) }, xs)), 7)) }
}
again(n, 0)
"""
INSERTION = """
type Tree { Empty, Node(Tree, int32, Tree) }
def insert(t: Tree, k: int32) -> Tree {
  match (t) {
    Empty => Node(Empty, k, Empty),
    Node(l, x, r) => if (k < x) { Node(insert(l, k), x, r) } else if (k > x) { Node(l, x, insert(r, k)) } else { t }
  }
}
def fill(i: int32, s: int32, t: Tree) -> Tree {
  if (i == 0) { t } else { let s = mod(s * 1103 + 12345, 65521); fill(i - 1, s, insert(t, s)) }
}
def count(t: Tree) -> int32 { match (t) { Empty => 0, Node(l, _, r) => 1 + count(l) + count(r) } }
def again(k: int32, s: int32) -> int32 { if (k == 0) { s } else { again(k - 1, count(fill(10000, s, Empty))) } }
again(n, 42)
"""
QUEENS = """
def safe(q: int32, d: int32, l: List[int32]) -> bool {
  match (l) { Nil => True, Cons(x, r) => q != x && q != x + d && q != x - d && safe(q, d + 1, r) }
}
def place(k: int32, l: List[int32]) -> int32 { if (k == 0) { 1 } else { try(k, 1, 0, l) } }
def try(k: int32, q: int32, a: int32, l: List[int32]) -> int32 {
  if (q > 8) { a } else { try(k, q + 1, if (safe(q, 1, l)) { a + place(k - 1, Cons(q, l)) } else { a }, l) }
}
def again(k: int32, s: int32) -> int32 { if (k == 0) { s } else { again(k - 1, s + place(8, Nil)) } }
again(n, 0)
"""
SCALAR = """
def f(x: float32) -> float32 { sin(x) * 0.5 + x * 0.5 }
def again(k: int32, s: float32) -> float32 {
  if (k == 0) { s } else { let (v, (g,)) = grad(f)(s); again(k - 1, v * 0.5 + g * 0.1) }
}
again(n, 0.5)
"""
OPERATORS = """
def again(k: int32, x: float32, b: float32, c: float32) -> float32 {
  if (k == 0) { x } else { again(k - 1, (((x * b + c) * b + c) * b + c) * b + c, b, c) }
}
again(n, 0.5, 0.25, 0.125)
"""
CALLS = """
let b: Tensor[(16,), float32] = ones(shape=[16]);
def again(k: int32, x: Tensor[(16,), float32]) { if (k == 0) { x[0] } else { again(k - 1, x * b) } }
again(n, b)
"""

# Many times are so many that it does not matter how long a program with PyTorch takes to start, which differs by 0.1 s.
ROWS = [
    Row("MLP 784-128-10, a step of 64 by hand", 0.7, "PyTorch", 50, 5050, 1, MLP_BY_HAND,
        {"PyTorch": peers.MLP_TORCH, "NumPy": peers.MLP_NUMPY}),
    Row("the same through `grad` and `optim`", 0.7, "PyTorch", 50, 5050, 1, MLP_BY_OPTIM,
        {"PyTorch": peers.MLP_TORCH, "NumPy": peers.MLP_NUMPY}),
    Row("LSTM 300/512, a token, lengths 10 to 40", 1.5, "ONNX Runtime", 2, 12, 775, LSTM_SCAN,
        {"ONNX Runtime": peers.LSTM_ONNX, "PyTorch": peers.LSTM_TORCH}),
    Row("LSTM 300/512, a token, a cell in a recursion", 1.5, "ONNX Runtime", 2, 12, 775, LSTM_TOKENS,
        {"ONNX Runtime": peers.LSTM_ONNX}),
    Row("the same LSTM, 20 tokens with gradient", 1.0, "PyTorch", 2, 152, 1, LSTM_GRADIENT,
        {"PyTorch": peers.LSTM_TORCH_GRADIENT}),
    Row("Tree-LSTM 300/150, a leaf", 0.8, "NumPy", 10, 2010, 32, TREE_LEAVES,
        {"NumPy": peers.TREE_NUMPY, "PyTorch": peers.TREE_TORCH}),
    Row("the same, value and gradient", 0.4, "PyTorch", 5, 305, 32, TREE_GRADIENT,
        {"PyTorch": peers.TREE_TORCH_GRADIENT}),
    Row("LeNet, a step of 32", 1.2, "PyTorch", 5, 1005, 1, LENET, {"PyTorch": peers.LENET_TORCH}),
    # The second image turns the weights for the kernels; the first touch of their memory took as long as four images.
    Row("ResNet-18, one image", 1.2, "PyTorch", 3, 63, 1, resnet_program(), {"PyTorch": peers.RESNET_TORCH}),
    Row("BERT-base, a layer, 64 tokens", 1.2, "PyTorch", 5, 105, 1, BERT, {"PyTorch": peers.BERT_TORCH}),
    chain(1000, 1000, 401000, 0.6), chain(100000, 100, 6100, 0.8), chain(10000000, 2, 22, 0.8),
    Row("fib(20)", 1.2, "ocamlc", 10, 610, 1, FIB, {"ocamlc": peers.FIB_OCAML}),
    Row("map and fold of 10,000", 1.2, "ocamlc", 10, 610, 1, LISTS, {"ocamlc": peers.LISTS_OCAML}),
    Row("10,000 insertions into a tree", 1.2, "ocamlc", 2, 42, 1, INSERTION, {"ocamlc": peers.INSERTION_OCAML}),
    Row("eight queens", 1.2, "ocamlc", 10, 210, 1, QUEENS, {"ocamlc": peers.QUEENS_OCAML}),
    Row("`sin(x) * 0.5 + x * 0.5`, value and gradient", 0.3e-6, "", 20000, 2020000, 1, SCALAR, {}),
    Row("a scalar operator, eight in a step of a loop", 8e-9, "", 20000, 4020000, 10, OPERATORS, {}),
    Row("a kernel of 16 elements, with its step of a loop", 0.1e-6, "", 20000, 2020000, 1, CALLS, {}),
]


def shown(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


class Peers:
    """The peers that this machine has, and how each is started."""

    MODULES = {"NumPy": "numpy", "PyTorch": "torch", "ONNX Runtime": "onnxruntime"}

    def __init__(self, bench):
        self.bench, self.missing = bench, set()
        self.have = {name for name, module in self.MODULES.items()
                     if subprocess.run([bench.python, "-c", f"import {module}"], capture_output=True,
                                       check=False).returncode == 0}
        self.have |= {name for name, program in (("ocamlc", "ocamlc"), ("C", "cc")) if shutil.which(program)}

    def command(self, peer, text, number):
        """The command that takes the count; None where the peer is missing."""
        if peer not in self.have:
            self.missing.add(peer)
            return None
        if peer == "C":
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "chain.c")
            program = os.path.join(self.bench.directory.name, "chain")
            subprocess.run(["cc", "-O3", "-march=native", "-o", program, source], check=True)
            return [program, text]
        if peer == "ocamlc":
            path = self.bench.file(f"peer{number}.ml", peers.OCAML + text)
            subprocess.run(["ocamlc", "-o", path + ".byte", path], check=True)
            return [path + ".byte"]
        return [self.bench.python, self.bench.file(f"{self.MODULES[peer]}{number}.py", peers.BEFORE[peer] + text)]


def measure_rows(bench):
    found = Peers(bench)
    for number, row in enumerate(ROWS):
        if bench.words not in row.name:
            continue
        commands = {"Relay": [bench.relay, "--threads=1", bench.file(f"engine{number}.rly", COUNT + row.relay)]}
        commands |= {peer: found.command(peer, text, number) for peer, text in row.peers.items()}
        commands = {name: command for name, command in commands.items() if command}
        times = bench.each(list(commands.values()), row.few, row.many)
        taken = {name: each / row.per for name, each in zip(commands, times)}
        ours = taken.pop("Relay")
        most = row.asked * taken.get(row.of, float("inf")) if row.of else row.asked
        bench.report.row(row.name, shown(ours), ", ".join(f"{shown(t)} {name}" for name, t in taken.items()),
                         ", ".join(f"{ours / t:.2f}" for t in taken.values()),
                         f"at most {row.asked:.3g} x {row.of}" if row.of else f"at most {shown(row.asked)}",
                         ours <= most)
    return found.missing


def adds(count):
    """A graph of additions as TVM prints it."""
    lines = ["def @main(%x: Tensor[(8), float32]) -> Tensor[(8), float32] {",
             "  %0 = add(%x, %x);"]
    lines += [f"  %{i} = add(%{i - 1}, %x);" for i in range(1, count - 1)]
    return "\n".join(lines + [f"  add(%{count - 2}, %x)", "}", "main(ones(shape=[8]))", ""])


def measure_adds(bench):
    half, whole = (bench.median([bench.relay, "--threads=1", bench.file(f"adds{n}.rly", adds(n))], 3)
                   for n in (45000, 90000))
    bench.report.row("90,000 `add`s as TVM prints them, whole run", shown(whole), f"{shown(half)} for 45,000", "",
                     "at most 2 s", whole <= 2)


def measure_threads(bench):
    """Two threads while two other processes keep the machine busy, by the clock."""
    path = bench.file("threads.rly", COUNT + chain(100000, 0, 0, 1).relay)
    busy = [subprocess.Popen([bench.relay, "--jit=off", "-e", "while(fn (i) { i >= 0 }, fn (i) { mod(i + 1, 7) }, 0)"],
                             stdout=subprocess.DEVNULL) for _ in range(2)]
    try:
        taken = {1: [], 2: []}
        for _ in range(5):
            for threads, times in taken.items():
                start = time.monotonic()
                bench.run([bench.relay, f"--threads={threads}", path, "6000"])
                times.append(time.monotonic() - start)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    one, two = (sorted(times)[2] for times in taken.values())
    bench.report.row("two threads beside two busy processes", shown(two), f"{shown(one)} one thread",
                     f"{one / two:.2f}", "one / two at least 0.9", one >= 0.9 * two)


def measure(bench):
    missing = measure_rows(bench)
    if not bench.words:
        measure_adds(bench)
        measure_threads(bench)
    if missing:
        print(f"left out, since not installed: {', '.join(sorted(missing))}")
