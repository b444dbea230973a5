# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/engine.py as a user would write them elsewhere: each does its work `n` times, on one thread."""

BEFORE = {"NumPy": "import sys, numpy\nn = int(sys.argv[1])\n",
          "PyTorch": "import sys, torch\nimport torch.nn.functional as F\ntorch.set_num_threads(1)\nn = int(sys.argv[1])\n",
          "ONNX Runtime": "import sys, numpy, onnx, onnxruntime\nfrom onnx import helper, numpy_helper, TensorProto\n"
                          "n = int(sys.argv[1])\n"}
OCAML = "let n = int_of_string Sys.argv.(1)\n"

MLP_NUMPY = """
x, y = numpy.full((64, 784), 0.01, 'f'), numpy.full((64, 10), 0.1, 'f')
w1, w2 = numpy.full((784, 128), 0.01, 'f'), numpy.full((128, 10), 0.01, 'f')
b1, b2, rate = numpy.zeros(128, 'f'), numpy.zeros(10, 'f'), numpy.float32(0.1)
for _ in range(n):
    h = numpy.maximum(x @ w1 + b1, 0)
    o = h @ w2 + b2
    e = numpy.exp(o - o.max(1, keepdims=True))
    d2 = (e / e.sum(1, keepdims=True) - y) / numpy.float32(64)
    d1 = (d2 @ w2.T) * (h > 0)
    w1 -= rate * (x.T @ d1)
    b1 -= rate * d1.sum(0)
    w2 -= rate * (h.T @ d2)
    b2 -= rate * d2.sum(0)
"""
MLP_TORCH = """
x, y = torch.full((64, 784), 0.01), torch.full((64, 10), 0.1)
net = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
steps = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(n):
    steps.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), y).backward()
    steps.step()
"""

LSTM_ONNX = """
def weight(name, *shape):
    return numpy_helper.from_array(numpy.full(shape, 0.01, 'f'), name)
graph = helper.make_graph(
    [helper.make_node('LSTM', ['x', 'w', 'r', 'b'], ['', 'h', 'c'], hidden_size=512)], 'lstm',
    [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['t', 1, 300])],
    [helper.make_tensor_value_info('h', TensorProto.FLOAT, [1, 1, 512])],
    [weight('w', 1, 2048, 300), weight('r', 1, 2048, 512), weight('b', 1, 4096)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 14)], ir_version=8)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
xs = numpy.full((40, 1, 300), 0.1, 'f')
for _ in range(n):
    for t in range(10, 41):
        session.run(None, {'x': xs[:t]})
"""
LSTM_TORCH = """
lstm, xs = torch.nn.LSTM(300, 512), torch.full((40, 1, 300), 0.1)
with torch.inference_mode():
    for _ in range(n):
        for t in range(10, 41):
            lstm(xs[:t])
"""
LSTM_TORCH_GRADIENT = """
cell, xs = torch.nn.LSTMCell(300, 512), torch.full((20, 1, 300), 0.1)
for _ in range(n):
    cell.zero_grad(set_to_none=True)
    h = c = torch.zeros(1, 512)
    for t in range(20):
        h, c = cell(xs[t], (h, c))
    h.sum().backward()
"""

TREE_SHAPE = """
def make(lo, hi):
    if hi - lo == 1: return lo
    m = max((2 * lo + hi) // 3, lo + 1)
    return make(lo, m), make(m, hi)
tree = make(0, 32)
def run(t):
    return leaf(xs[t]) if isinstance(t, int) else node(*run(t[0]), *run(t[1]))
"""
TREE_NUMPY = """
wx, u, uf = (numpy.full(shape, 0.01, 'f') for shape in ((450, 300), (450, 150), (150, 150)))
b, bf, xs = numpy.zeros(450, 'f'), numpy.zeros(150, 'f'), numpy.full((32, 300), 0.1, 'f')
def sigmoid(x): return 1 / (1 + numpy.exp(-x))
def leaf(x):
    g = wx @ x + b
    io = sigmoid(g[:300])
    c = io[:150] * numpy.tanh(g[300:])
    return io[150:] * numpy.tanh(c), c
def node(hl, cl, hr, cr):
    g = u @ (hl + hr) + b
    io = sigmoid(g[:300])
    c = io[:150] * numpy.tanh(g[300:]) + sigmoid(uf @ hl + bf) * cl + sigmoid(uf @ hr + bf) * cr
    return io[150:] * numpy.tanh(c), c
""" + TREE_SHAPE + """
for _ in range(n):
    run(tree)
"""
TREE_CELL = """
xs = torch.full((32, 1, 300), 0.1)
x_gates, h_gates, forget = torch.nn.Linear(300, 450), torch.nn.Linear(150, 450, bias=False), torch.nn.Linear(150, 150)
parameters = [*x_gates.parameters(), *h_gates.parameters(), *forget.parameters()]
def leaf(x):
    i, o, u = torch.chunk(x_gates(x), 3, 1)
    c = torch.sigmoid(i) * torch.tanh(u)
    return torch.sigmoid(o) * torch.tanh(c), c
def node(hl, cl, hr, cr):
    i, o, u = torch.chunk(h_gates(hl + hr) + x_gates.bias, 3, 1)
    c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(forget(hl)) * cl + torch.sigmoid(forget(hr)) * cr
    return torch.sigmoid(o) * torch.tanh(c), c
""" + TREE_SHAPE
TREE_TORCH = TREE_CELL + """
with torch.inference_mode():
    for _ in range(n):
        run(tree)
"""
TREE_TORCH_GRADIENT = TREE_CELL + """
for _ in range(n):
    torch.autograd.grad(run(tree)[0].sum(), parameters)
"""

LENET_TORCH = """
x, y, N = torch.full((32, 1, 28, 28), 0.1), torch.full((32, 10), 0.1), torch.nn
net = N.Sequential(N.Conv2d(1, 6, 5, padding=2), N.ReLU(), N.MaxPool2d(2), N.Conv2d(6, 16, 5), N.ReLU(), N.MaxPool2d(2),
                   N.Flatten(), N.Linear(400, 120), N.ReLU(), N.Linear(120, 84), N.ReLU(), N.Linear(84, 10))
steps = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(n):
    steps.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), y).backward()
    steps.step()
"""
RESNET_TORCH = """
N = torch.nn
def conv(a, b, size, stride, pad): return N.Conv2d(a, b, size, stride, pad, bias=False)
class Unit(N.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.n1, self.n2 = N.BatchNorm2d(a), N.BatchNorm2d(b)
        self.c1, self.c2 = conv(a, b, 3, stride, 1), conv(b, b, 3, 1, 1)
        self.short = None if a == b else conv(a, b, 1, stride, 0)
    def forward(self, x):
        h = F.relu(self.n1(x))
        return self.c2(F.relu(self.n2(self.c1(h)))) + (x if self.short is None else self.short(h))
layers, last = [N.BatchNorm2d(3), conv(3, 64, 7, 2, 3), N.BatchNorm2d(64), N.ReLU(), N.MaxPool2d(3, 2, 1)], 64
for width in (64, 128, 256, 512):
    layers += [Unit(last, width, 1 if last == width else 2), Unit(width, width, 1)]
    last = width
layers += [N.BatchNorm2d(512), N.ReLU(), N.AdaptiveAvgPool2d(1), N.Flatten(), N.Linear(512, 1000), N.Softmax(1)]
net, x = N.Sequential(*layers).eval(), torch.full((1, 3, 224, 224), 0.01)
with torch.inference_mode():
    for _ in range(n):
        net(x)
"""
BERT_TORCH = """
N = torch.nn
q, k, v, o, up, down, norm = (*(N.Linear(768, 768) for _ in range(4)), N.Linear(768, 3072), N.Linear(3072, 768),
                              N.LayerNorm(768))
def heads(x): return x.view(64, 12, 64).transpose(0, 1)
def attend(x):
    y = F.scaled_dot_product_attention(heads(q(x)), heads(k(x)), heads(v(x))).transpose(0, 1).reshape(64, 768)
    h = norm(x + o(y))
    return norm(h + down(F.gelu(up(h))))
x = torch.sin(torch.arange(49152.).view(64, 768))
with torch.inference_mode():
    for _ in range(n):
        x = attend(x)
"""

FIB_OCAML = """
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let rec again k s = if k = 0 then s else again (k - 1) ((s + fib 20) mod 7)
let () = ignore (again n 0)
"""
LISTS_OCAML = """
let xs = List.init 10000 Fun.id
let rec again k s =
  if k = 0 then s
  else again (k - 1) (List.fold_left (fun a x -> a + x) 0 (List.map (fun x -> (x * 3 + s) mod 7) xs) mod 7)
let () = ignore (again n 0)
"""
INSERTION_OCAML = """
type tree = Empty | Node of tree * int * tree
let rec insert t k = match t with
  | Empty -> Node (Empty, k, Empty)
  | Node (l, x, r) -> if k < x then Node (insert l k, x, r) else if k > x then Node (l, x, insert r k) else t
let rec fill i s t = if i = 0 then t else let s = (s * 1103 + 12345) mod 65521 in fill (i - 1) s (insert t s)
let rec count = function Empty -> 0 | Node (l, _, r) -> 1 + count l + count r
let rec again k s = if k = 0 then s else again (k - 1) (count (fill 10000 s Empty))
let () = ignore (again n 42)
"""
QUEENS_OCAML = """
let rec safe q d = function [] -> true | x :: r -> q <> x && q <> x + d && q <> x - d && safe q (d + 1) r
let rec place k l = if k = 0 then 1 else attempt k 1 0 l
and attempt k q a l =
  if q > 8 then a else attempt k (q + 1) (if safe q 1 l then a + place (k - 1) (q :: l) else a) l
let rec again k s = if k = 0 then s else again (k - 1) (s + place 8 [])
let () = ignore (again n 0)
"""
