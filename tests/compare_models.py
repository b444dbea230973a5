# SPDX-License-Identifier: Apache-2.0
"""The networks of examples/models/ against PyTorch with the same weights: values to 1e-4 and gradients to 1e-3 of the
largest element, or of 1e-4 of the largest of all gradients where that is more. Those whose input holds tensors are also written as
ONNX models, and compared with what ONNX Runtime makes of them to 1e-4. For development: it needs the packages torch, numpy and onnxruntime.

    python3 tests/compare_models.py build/relay [NAME …]
    python3 tests/compare_models.py build/relay --true-size [NAME …]     BERT-base, VGG-16, ResNet-18 and MobileNet

The second runs networks as large as the papers have them, with weights that are drawn here and that Relay loads from a safetensors
file; it takes seven minutes of processor time and 6 GB."""
import json
import os
import re
import struct
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
    for number in range(len({key.split(".")[0] for key in w.layers})):
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


def exact(t, true_size):
    """A large network is computed in float64: in float32 PyTorch's own gradient of VGG-16 is 1e-3 from it, and Relay's 1e-5."""
    t = torch.from_numpy(t)
    return t.double() if true_size and t.is_floating_point() else t


def tensors(saved, true_size):
    values = [exact(saved[k], true_size) for k in sorted(saved)]
    return tuple(values) if len(values) > 1 else values[0]


def compare(relay, model, has_input, true_size):
    """The furthest value, that of ONNX Runtime, and the furthest gradient with its name."""
    with tempfile.TemporaryDirectory() as folder:
        saved = run_true_size(relay, model, folder) if true_size else run_relay(relay, model.__name__, has_input, folder)
        theirs = run_onnx(relay, model.__name__, saved["x"], folder) if has_input and not true_size else []
    weights = Weights({k: exact(v, true_size).requires_grad_() for k, v in saved["net"].items()})
    y = model(weights, tensors(saved["x"], true_size) if has_input else None)
    loss(y).backward()
    ours = [saved["y"][k] for k in sorted(saved["y"])]
    value = max(distance(a, b) for a, b in zip(ours, y if isinstance(y, tuple) else (y,)))
    # Some derivatives are zero but for rounding, as that of the bias of attention's keys.
    grads = {k: torch.zeros_like(t) if t.grad is None else t.grad for k, t in weights.items()}
    least = 1e-4 * max(g.abs().max().item() for g in grads.values())
    slopes = [(distance(saved["gradient"][k], g, least), k) for k, g in grads.items()]
    onnx = max((distance(a, b) for a, b in zip(ours, theirs)), default=None)
    return value, onnx, max(slopes)


# ---- as large as in the papers --------------------------------------------------------------------

PICTURE = "Tensor[(1, 3, 224, 224), float32]"
# Each network: its constructor, its type and that of its input.
TRUE_SIZES = {bert: ("bert<30522, 512, 12, 64, 768>(12, random.key(1))", "Bert[30522, 512, 12, 64, 768]",
                     "(Tensor[(2, 128), int32], Tensor[(2, 128), int32])"),
              vgg16: ("vgg<64, 7, 1000>(random.key(1))", "Vgg[64, 7, 1000]", PICTURE),
              resnet18: ("resnet<64, 1000>(random.key(1))", "Resnet[64, 1000]", PICTURE),
              mobilenet: ("mobilenet<1000>(random.key(1))", "Mobilenet[1000]", PICTURE)}


def read_safetensors(path):
    with open(path, "rb") as f:
        length, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(length)), f.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[at["data_offsets"][0]:at["data_offsets"][1]], "<f4").reshape(at["shape"]).copy()
            for name, at in header.items()}


def write_safetensors(path, tensors_of):
    header, at = {}, 0
    for name, t in tensors_of.items():
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + t.nbytes]}
        at += t.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors_of.values():
            f.write(t.tobytes())


def draw_weight(rng, name, shape, is_bert):
    """What keeps numbers of one size from layer to layer, and no weight that does not count."""
    kind = name.rpartition(".")[2]
    if kind in ("gamma", "variance"):
        t = rng.uniform(0.8, 1.2, size=shape)
    elif is_bert:
        t = 0.02 * rng.normal(size=shape)
    elif kind == "w":
        t = rng.normal(size=shape) * numpy.sqrt(2 / numpy.prod(shape[1:]))
    else:
        t = 0.1 * rng.normal(size=shape)
    return t.astype(numpy.float32)


def run_script(relay, folder, text):
    script = os.path.join(folder, "script.rly")
    with open(script, "w") as f:
        f.write(text)
    done = subprocess.run([relay, "script.rly"], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(done.stderr)


def run_true_size(relay, model, folder):
    """The same as run_relay, of the large network."""
    make, net_type, input_type = TRUE_SIZES[model]
    with open(os.path.join(MODELS, model.__name__ + ".rly")) as f:
        text = f.read()
    start, steps = text[:text.index("\nlet net = ") + 1], text[text.index("\nlet (value, gradient)"):]
    run_script(relay, folder, start + 'save(%s, "made.safetensors");\n' % make)
    rng = numpy.random.default_rng(1)
    net = {name: draw_weight(rng, name, t.shape, model is bert)
           for name, t in read_safetensors(os.path.join(folder, "made.safetensors")).items()}
    write_safetensors(os.path.join(folder, "net.safetensors"), net)
    shapes = [tuple(int(n) for n in s.split(",")) for s in re.findall(r"\[\(([^)]*)\)", input_type)]
    given = [rng.uniform(size=shapes[0]).astype(numpy.float32)]
    if model is bert:
        given = [rng.integers(0, n, size=s).astype(numpy.int32) for n, s in zip((30522, 2), shapes)]
    x = {str(i): t for i, t in enumerate(given)}
    for name, t in x.items():
        numpy.save(os.path.join(folder, "x%s.npy" % name), t)
    types = re.findall(r"Tensor\[[^]]*\]", input_type)
    loads = "".join('let x%d: %s = load("x%d.npy");\n' % (i, t, i) for i, t in enumerate(types))
    value = "(%s)" % ", ".join("x%d" % i for i in range(len(types)))
    run_script(relay, folder, start + 'let net: %s = load("net.safetensors");\n%slet x = %s;\n' % (net_type, loads, value) + steps
               + 'save(run(net, x), "y.npz");\nsave(gradient.0, "gradient.safetensors");\n')
    return {"net": net, "x": x, "y": dict(numpy.load(os.path.join(folder, "y.npz"))),
            "gradient": read_safetensors(os.path.join(folder, "gradient.safetensors"))}


def main(relay, names):
    wrong, true_size = 0, "--true-size" in names
    names = [n for n in names if n != "--true-size"]
    for model, has_input in MODELS_OF.items():
        if names and model.__name__ not in names or true_size and model not in TRUE_SIZES:
            continue
        value, onnx, (slope, where) = compare(relay, model, has_input, true_size)
        fine = value < 1e-4 and (onnx or 0.0) < 1e-4 and slope < 1e-3
        wrong += not fine
        told = "" if onnx is None else ", by ONNX Runtime %.1e" % onnx
        print("%-10s value %.1e%s, gradient %.1e at %s%s" % (model.__name__, value, told, slope, where, "" if fine else "  WRONG"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2:]))
