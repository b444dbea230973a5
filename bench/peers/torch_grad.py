# SPDX-License-Identifier: Apache-2.0
"""Programs of bench/grad.py in PyTorch, as its users write them.

    torch_grad.py NAME...

For each name a line `NAME SECONDS SECONDS`: processor time, on one thread, of one value, and of one value with its
gradient. Medians over about a second each.
"""
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gradbench"))
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch_peers  # noqa: E402

SECONDS = 1.0


def of(loss, *variables):
    """(value, value and gradient)"""
    def value():
        with torch.no_grad():
            return loss(*variables)

    def gradient():
        used = [v.detach().requires_grad_() for v in variables]
        return torch.autograd.grad(loss(*used), used)
    return value, gradient


def mlp():
    x, w1, w2 = torch.full((64, 784), 0.01), torch.full((784, 128), 0.01), torch.full((128, 10), 0.01)
    return of(lambda w1, w2: torch.log_softmax(torch.relu(x @ w1) @ w2, 1).sum(), w1, w2)


def lstm():
    xs = torch.full((20, 1, 300), 0.1)

    def loss(w, u, b):
        h = c = torch.zeros(1, 512)
        for t in reversed(range(20)):
            i, f, o, z = (xs[t] @ w.T + h @ u.T + b).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h.sum()
    return of(loss, torch.full((2048, 300), 0.01), torch.full((2048, 512), 0.01), torch.zeros(2048))


def sqrt_by_newton(a):
    x = a
    for _ in range(100):
        x = 0.5 * (x + a / x)
    return x


def newton():
    return of(sqrt_by_newton, torch.tensor(2.0, dtype=torch.float64))


def newton_hvp():
    a = torch.tensor(2.0, dtype=torch.float64)

    def second():
        v = a.detach().requires_grad_()
        g, = torch.autograd.grad(sqrt_by_newton(v), v, create_graph=True)
        return torch.autograd.grad(g, v)
    return of(sqrt_by_newton, a)[0], second


def reads():
    def loss(x):
        s = torch.tensor(1.0, dtype=torch.float64)
        for i in reversed(range(10000)):
            s = s + x[i] * s
        return s
    return of(loss, torch.full((10000,), 0.00001, dtype=torch.float64))


def gmm():
    import inputs
    return torch_peers.gmm(inputs.gmm(32, 50))


PROGRAMS = {f.__name__: f for f in (mlp, lstm, newton, newton_hvp, reads, gmm)}


def seconds(run):
    run()
    times, begun = [], time.process_time()
    while len(times) < 3 or time.process_time() - begun < SECONDS:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        print(name, *("%.9f" % seconds(run) for run in PROGRAMS[name]()), flush=True)


if __name__ == "__main__":
    main()
