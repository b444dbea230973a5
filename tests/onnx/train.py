# SPDX-License-Identifier: Apache-2.0
"""Models that PyTorch exports run and train: values, and gradients with respect to the imported weights, compared with
PyTorch's own. For development: it needs the packages torch, onnx and numpy.

    python3 tests/onnx/train.py build/relay"""
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

TOLERANCE = 1e-5  # of the largest element


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = torch.nn.LSTM(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.cell(x)[0])


class Block(torch.nn.Module):
    """A transformer's: attention with two heads, then a layer on each place."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
        self.wide, self.narrow = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8)
        for p in self.norm1.parameters():  # the exporter would join weights that are equal
            torch.nn.init.normal_(p)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (z.view(n, t, 2, 4).transpose(1, 2) for z in self.qkv(self.norm1(x)).chunk(3, -1))
        seen = (q @ k.transpose(-1, -2) / 2.0).softmax(-1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(n, t, c))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm2(x))))


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        torch.nn.init.normal_(self.seen.in_proj_bias)

    def forward(self, x):
        return self.seen(x, x, x)[0]


def encoder():
    """PyTorch's own, which says a shape by what it computes about sizes."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    for p in model.parameters():  # both layers begin with the same
        torch.nn.init.normal_(p, std=0.3)
    return model


def cases():
    yield "mlp", torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)), \
        torch.randn(5, 3), {0: "batch"}
    yield "lstm", Lstm(), torch.randn(6, 2, 3), {0: "time", 1: "batch"}
    yield "block", Block(), torch.randn(2, 5, 8), {0: "batch", 1: "time"}
    yield "attention", Attention(), torch.randn(2, 5, 8), {0: "batch", 1: "time"}
    yield "encoder", encoder(), torch.randn(2, 5, 8), {0: "batch", 1: "time"}


def field(name):
    return ("v" if name[0].isdigit() else "") + name.replace(".", "_")


def distance(got, wanted):
    wanted = wanted.detach().numpy()
    return numpy.abs(got - wanted).max() / max(numpy.abs(wanted).max(), 1e-9) if got.shape == wanted.shape else numpy.inf


def gradient_of(key, p, weights, gradients):
    """The gradient of a parameter, which the exporter may have stored transposed under a name of its own."""
    if field(key) in gradients:
        return gradients[field(key)]
    p = p.detach().numpy()
    return next((gradients[k].T for k, w in weights.items() if w.T.shape == p.shape and (w.T == p).all()), numpy.zeros(0))


def main():
    relay, failed = os.path.abspath(sys.argv[1]), 0
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    os.chdir(tempfile.mkdtemp())
    for name, model, x, sizes in cases():
        for dynamic in (None, {"x": sizes}):
            model.zero_grad()
            torch.onnx.export(model, (x,), "m.onnx", dynamo=False, input_names=["x"], output_names=["y"],
                              dynamic_axes=dynamic, do_constant_folding=False)
            y = model(x)
            (y ** 2).sum().backward()
            numpy.save("x.npy", x.numpy())
            with open("m.rly", "w") as f:
                f.write("""let m = import_onnx("m.onnx");
let x = load("x.npy");
save(m.run(m.weights, x), "y.npy");
let (_, (d,)) = grad(fn (w) { sum(m.run(w, x) ** 2) })(m.weights);
save(d, "d.npz");
save(m.weights, "w.npz");
""")
            done = subprocess.run([relay, "m.rly"], capture_output=True, text=True)
            if done.returncode:
                print(name, done.stderr)
                failed += 1
                continue
            far = {"value": distance(numpy.load("y.npy"), y)}
            with numpy.load("d.npz") as d, numpy.load("w.npz") as w:
                for key, p in model.named_parameters():
                    far[key] = distance(gradient_of(key, p, w, d), p.grad)
            worst = max(far.values())
            failed += not worst < TOLERANCE
            print(name, "of named sizes" if dynamic else "of fixed sizes", "%.1e" % worst,
                  [k for k, v in far.items() if not v < TOLERANCE] or "")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
