# SPDX-License-Identifier: Apache-2.0
"""The networks of examples/models/ against PyTorch with the same weights: values to 1e-4 and gradients to 1e-3 of the
largest element, or of 1e-4 of the largest of all gradients where that is more. Those whose input holds tensors are also written as
ONNX models, and compared with what ONNX Runtime makes of them to 1e-4. For development: it needs the packages torch, numpy and onnxruntime.

    python3 tests/compare_models.py build/relay [NAME …]"""
import os
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
import torch
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "examples", "models")


class Weights(dict):
    """The tensors of a record by their path names: w.conv1.b is "conv1.b"."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        return Weights({key[len(name) + 1:]: t for key, t in self.items() if key.startswith(name + ".")})


def linear(l, x):
    return F.linear(x, l.w, l.b)


def conv(l, x, **how):
    return F.conv2d(x, l.w, l.b.flatten(), **how)


def batch_norm(l, x):
    return F.batch_norm(x, l.mean.detach(), l.variance.detach(), l.gamma, l.beta)


def lenet(w, x):
    seen = F.max_pool2d(torch.tanh(conv(w.conv1, x)), 2)
    seen = F.max_pool2d(torch.tanh(conv(w.conv2, seen)), 2)
    return linear(w.out, torch.tanh(linear(w.hidden, seen.flatten(1))))


def mlp(w, x):
    return linear(w.out, F.relu(linear(w.second, F.relu(linear(w.first, x)))))


def dqn(w, x):
    x = F.relu(conv(w.conv1, x, stride=4))
    x = F.relu(conv(w.conv3, F.relu(conv(w.conv2, x, stride=2))))
    return linear(w.out, F.relu(linear(w.hidden, x.flatten(1))))


def rnn(w, x):
    h = torch.zeros(3, 16)
    for row in x:
        h = torch.rnn_tanh_cell(row, h, w.cell.w, w.cell.u, w.cell.b, torch.zeros(16))
    return linear(w.out, h)


def gru(w, x):
    h = torch.zeros(3, 16)
    for row in x:
        h = torch.gru_cell(row, h, w.cell.w.flatten(0, 1), w.cell.u.flatten(0, 1), w.cell.b.flatten(), w.cell.c.flatten())
    return linear(w.out, h)


def lstm(w, x):
    state = (torch.zeros(3, 16), torch.zeros(3, 16))
    for row in x:
        state = torch.lstm_cell(row, state, w.cell.w.flatten(0, 1), w.cell.u.flatten(0, 1), w.cell.b.flatten(), torch.zeros(64))
    return linear(w.out, state[0])


def char_rnn(w, _):
    h, logits = torch.zeros(1, 32), []
    for letter in "the cat sat on my hat":
        number = torch.tensor([" abcdefghijklmnopqrstuvwxyz".index(letter)])
        h = torch.rnn_tanh_cell(F.embedding(number, w.letters.table), h, w.cell.w, w.cell.u, w.cell.b, torch.zeros(32))
        logits.append(linear(w.out, h))
    return torch.cat(logits)


def tree_lstm(w, _):
    def read(tree):
        if isinstance(tree, int):
            i, u, o = linear(w.leaf, F.embedding(torch.tensor([tree]), w.words.table)).chunk(3, 1)
            c = i.sigmoid() * u.tanh()
        else:
            (h1, c1), (h2, c2) = read(tree[0]), read(tree[1])
            i, u, o, f1, f2 = linear(w.node, torch.cat((h1, h2), 1)).chunk(5, 1)
            c = i.sigmoid() * u.tanh() + f1.sigmoid() * c1 + f2.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c
    return linear(w.out, read(((0, 1), (2, (0, 7))))[0])


def resnet18(w, x):
    def block(l, x, stride=1):
        y = F.relu(batch_norm(l.norm1, conv(l.conv1, x, stride=stride, padding=1)))
        short = x if stride == 1 else batch_norm(l.norm3, conv(l.short, x, stride=stride))
        return F.relu(batch_norm(l.norm2, conv(l.conv2, y, padding=1)) + short)
    x = F.max_pool2d(F.relu(batch_norm(w.norm, conv(w.stem, x, stride=2, padding=3))), 3, 2, 1)
    x = block(w.a2, block(w.a1, x))
    for first, second in ((w.b1, w.b2), (w.c1, w.c2), (w.d1, w.d2)):
        x = block(second, block(first, x, 2))
    return linear(w.out, x.mean((2, 3)))


def vgg16(w, x):
    for names in ("a1 a2", "b1 b2", "c1 c2 c3", "d1 d2 d3", "e1 e2 e3"):
        for name in names.split():
            x = F.relu(conv(getattr(w, name), x, padding=1))
        x = F.max_pool2d(x, 2)
    return linear(w.f3, F.relu(linear(w.f2, F.relu(linear(w.f1, x.flatten(1))))))


def mobilenet(w, x):
    x = F.relu(batch_norm(w.norm, conv(w.stem, x, stride=2, padding=1)))
    for number in range(1, 14):
        l, stride = getattr(w, "l%d" % number), 2 if number in (2, 4, 6, 12) else 1
        x = F.relu(batch_norm(l.norm1, conv(l.depth, x, stride=stride, padding=1, groups=x.shape[1])))
        x = F.relu(batch_norm(l.norm2, conv(l.point, x)))
    return linear(w.out, x.mean((2, 3)))


def bert(w, x):
    def norm(l, x):
        return F.layer_norm(x, x.shape[-1:], l.gamma, l.beta, 1e-12)

    def heads(x, weight, bias):
        return torch.einsum("ktn,hdn->khtd", x, weight) + bias[:, None]

    words, kinds = x
    x = F.embedding(words, w.words.table) + w.places.table[:words.shape[1]] + F.embedding(kinds, w.kinds.table)
    x = norm(w.norm, x)
    for number in range(2):
        l = getattr(w.layers, str(number))
        a = l.attention
        seen = F.scaled_dot_product_attention(heads(x, a.q, a.qb), heads(x, a.k, a.kb), heads(x, a.v, a.vb))
        x = norm(l.norm1, x + torch.einsum("khtd,nhd->ktn", seen, a.out) + a.b)
        x = norm(l.norm2, x + linear(l.down, F.gelu(linear(l.up, x))))
    return x, torch.tanh(linear(w.pool, x[:, 0]))


def loss(y):
    return (y[0] ** 3).mean() + (y[1] ** 2).mean() if isinstance(y, tuple) else (y ** 2).mean()


# Each network and whether its input holds tensors, and so is saved for PyTorch.
MODELS_OF = {lenet: True, mlp: True, dqn: True, rnn: True, gru: True, lstm: True, char_rnn: False, tree_lstm: False,
             resnet18: True, vgg16: True, mobilenet: True, bert: True}


def run_relay(relay, name, has_input, folder):
    """What the script's network, input, result and gradient are, as it saves them."""
    with open(os.path.join(MODELS, name + ".rly")) as f:
        text = f.read()
    saved = {"net": "net", "y": "run(net, x)", "gradient": "gradient.0"}
    if has_input:
        saved["x"] = "x"
    script = os.path.join(folder, name + ".rly")
    with open(script, "w") as f:
        f.write(text + "".join('save(%s, "%s");\n' % (e, os.path.join(folder, k + ".npz")) for k, e in saved.items()))
    done = subprocess.run([relay, script], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return {k: dict(numpy.load(os.path.join(folder, k + ".npz"))) for k in saved}


def run_onnx(relay, name, x, folder):
    """What ONNX Runtime makes of the network, which `relay convert` writes."""
    parts = sorted(x)
    types = ["x%d: Tensor[(%s), %s]" % (i, "".join("%d, " % n for n in x[k].shape), x[k].dtype) for i, k in enumerate(parts)]
    names = ", ".join("x%d" % i for i in range(len(parts)))
    program, model = os.path.join(folder, "main.rly"), os.path.join(folder, "main.onnx")
    with open(os.path.join(MODELS, name + ".rly")) as f:
        text = f.read()
    with open(program, "w") as f:
        f.write(text + "\ndef main(%s) { run(net, %s) }\n" % (", ".join(types), "(%s)" % names if len(parts) > 1 else names))
    done = subprocess.run([relay, "convert", program, "-o", model], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x[k] for i, k in zip(session.get_inputs(), parts)})


def distance(got, wanted, least=1e-6):
    """How far apart two tensors are, in units of the largest element, which counts as no smaller than `least`."""
    wanted = wanted.detach().numpy() if isinstance(wanted, torch.Tensor) else wanted
    if got.shape != wanted.shape:
        return numpy.inf
    return numpy.abs(got - wanted).max() / max(numpy.abs(wanted).max(), least)


def tensors(saved):
    values = [torch.from_numpy(saved[k]) for k in sorted(saved)]
    return tuple(values) if len(values) > 1 else values[0]


def compare(relay, model, has_input):
    """The furthest value, that of ONNX Runtime, and the furthest gradient with its name."""
    with tempfile.TemporaryDirectory() as folder:
        saved = run_relay(relay, model.__name__, has_input, folder)
        theirs = run_onnx(relay, model.__name__, saved["x"], folder) if has_input else []
    weights = Weights({k: torch.from_numpy(v).requires_grad_() for k, v in saved["net"].items()})
    y = model(weights, tensors(saved["x"]) if has_input else None)
    loss(y).backward()
    ours = [saved["y"][k] for k in sorted(saved["y"])]
    value = max(distance(a, b) for a, b in zip(ours, y if isinstance(y, tuple) else (y,)))
    # Some derivatives are zero but for rounding, as that of the bias of attention's keys.
    grads = {k: torch.zeros_like(t) if t.grad is None else t.grad for k, t in weights.items()}
    least = 1e-4 * max(g.abs().max().item() for g in grads.values())
    slopes = [(distance(saved["gradient"][k], g, least), k) for k, g in grads.items()]
    onnx = max((distance(a, b) for a, b in zip(ours, theirs)), default=None)
    return value, onnx, max(slopes)


def main(relay, names):
    wrong = 0
    for model, has_input in MODELS_OF.items():
        if names and model.__name__ not in names:
            continue
        value, onnx, (slope, where) = compare(relay, model, has_input)
        fine = value < 1e-4 and (onnx or 0.0) < 1e-4 and slope < 1e-3
        wrong += not fine
        told = "" if onnx is None else ", by ONNX Runtime %.1e" % onnx
        print("%-10s value %.1e%s, gradient %.1e at %s%s" % (model.__name__, value, told, slope, where, "" if fine else "  WRONG"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
