#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the examples compute, against the same in plain Python: each model is written here by loops over numbers, its
gradient taken by a tape of scalar operations, and every number that the example prints is compared.

    examples.py RELAY [--only=NAME]
"""
import csv
import itertools
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


# ---- a tape ----------------------------------------------------------------------------------------

class Var:
    """A number and how it was made: [(operand, partial derivative)]."""
    __slots__ = ("v", "of", "g")

    def __init__(self, v, of=()):
        self.v, self.of, self.g = v, of, 0.0

    def __add__(self, o):
        return Var(self.v + o.v, ((self, 1.0), (o, 1.0))) if isinstance(o, Var) else Var(self.v + o, ((self, 1.0),))

    def __mul__(self, o):
        return Var(self.v * o.v, ((self, o.v), (o, self.v))) if isinstance(o, Var) else Var(self.v * o, ((self, o),))

    def __pow__(self, n):
        return Var(self.v ** n, ((self, n * self.v ** (n - 1)),))

    def __neg__(self):
        return self * -1.0

    def __sub__(self, o):
        return self + -o

    def __rsub__(self, o):
        return -self + o

    def __truediv__(self, o):
        return self * (o ** -1.0)

    def __rtruediv__(self, o):
        return self ** -1.0 * o
    __radd__, __rmul__ = __add__, __mul__


def rule(f, slope):
    def apply(x):
        if not isinstance(x, Var):
            return f(x)
        y = f(x.v)
        return Var(y, ((x, slope(x.v, y)),))
    return apply


exp = rule(math.exp, lambda x, y: y)
log = rule(math.log, lambda x, y: 1.0 / x)
sqrt = rule(math.sqrt, lambda x, y: 0.5 / y)
tanh = rule(math.tanh, lambda x, y: 1.0 - y * y)
relu = rule(lambda x: max(x, 0.0), lambda x, y: float(x > 0))
magnitude = rule(abs, lambda x, y: math.copysign(1.0, x) if x else 0.0)


def sigmoid(x):
    return 1.0 / (1.0 + exp(-x))


def value(x):
    return x.v if isinstance(x, Var) else x


def flat(x):
    return [e for part in x for e in flat(part)] if isinstance(x, (list, tuple)) else [x]


def refill(like, numbers):
    """Nested lists like `like` of the next numbers of an iterator."""
    return [refill(e, numbers) for e in like] if isinstance(like, (list, tuple)) else next(numbers)


def gradient(f, x):
    """The value of f at nested lists x, and its partial derivatives, flat."""
    leaves = [Var(v) for v in flat(x)]
    top = f(refill(x, iter(leaves)))
    order, seen, stack = [], set(), [(top, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(p, False) for p, _ in node.of]
    top.g = 1.0
    for node in reversed(order):
        for p, d in node.of:
            p.g += node.g * d
    return top.v, [leaf.g for leaf in leaves]


def adam(f, x, rate, steps):
    w, m, s = flat(x), [0.0] * len(flat(x)), [0.0] * len(flat(x))
    for t in range(1, steps + 1):
        _, g = gradient(f, refill(x, iter(w)))
        m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
        s = [0.999 * a + 0.001 * b * b for a, b in zip(s, g)]
        w = [p - rate * (a / (1 - 0.9 ** t)) / (math.sqrt(b) / math.sqrt(1 - 0.999 ** t) + 1e-8) for p, a, b in zip(w, m, s)]
    return refill(x, iter(w))


# ---- the examples: each gives the numbers that it prints, in order -----------------------------------

def regression():
    n, features = 40, []
    for i in range(n):
        features.append([1.0 + (i * 7.0) % 11.0, math.sin(i * 1.3) * 3.0, math.cos(i * 0.7) + 2.0])
    price = [2 * a - b + 0.5 * c + 4.0 + 0.1 * math.sin(i * 12.9898) for i, (a, b, c) in enumerate(features)]
    for k in range(3):
        column = [f[k] for f in features]
        mean = sum(column) / n
        deviation = math.sqrt(sum((v - mean) ** 2 for v in column) / n)
        for f in features:
            f[k] = (f[k] - mean) / deviation
    x = [[1.0] + f for f in features]
    # the normal equations, by elimination
    a = [[sum(r[p] * r[q] for r in x) / n + (0.01 if p == q and p else 0.0) for q in range(4)] for p in range(4)]
    b = [sum(r[p] * y for r, y in zip(x, price)) / n for p in range(4)]
    for p in range(4):
        for q in range(p + 1, 4):
            f = a[q][p] / a[p][p]
            a[q] = [u - f * v for u, v in zip(a[q], a[p])]
            b[q] -= f * b[p]
    w = [0.0] * 4
    for p in reversed(range(4)):
        w[p] = (b[p] - sum(a[p][q] * w[q] for q in range(p + 1, 4))) / a[p][p]
    left = [y - sum(u * v for u, v in zip(r, w)) for r, y in zip(x, price)]
    squares = sum(e * e for e in left)
    mean = sum(price) / n
    return w + [squares / n + 0.01 * sum(v * v for v in w[1:]), 1 - squares / sum((y - mean) ** 2 for y in price)]


def kmeans():
    points = [(3.0 * (i % 3) + 2.0 * math.sin(i * i), 3.0 * abs(i % 3 - 1.0) + 2.0 * math.cos(i * 3.7)) for i in range(60)]
    centres = [points[0]]
    while len(centres) < 3:
        centres.append(max(points, key=lambda p: min(math.dist(p, c) for c in centres)))

    def nearest():
        return [min(range(3), key=lambda c: math.dist(p, centres[c])) for p in points]
    labels, rounds = nearest(), 0
    while True:
        rounds += 1
        groups = [[p for p, l in zip(points, labels) if l == c] for c in range(3)]
        centres = [tuple(sum(p[k] for p in g) / len(g) for k in range(2)) for g in groups]
        moved, labels = labels, nearest()
        if moved == labels:
            break
    return flat([list(c) for c in centres]) + [len(g) for g in groups] + [
        sum(min(math.dist(p, c) ** 2 for c in centres) for p in points), rounds]


def runge_kutta(steps=2):
    def path(r):
        def change(y):
            return [r[0] * y[0] - r[1] * y[0] * y[1], r[3] * y[0] * y[1] - r[2] * y[1]]
        y, out = [2.0, 1.0], []
        for k in range(81):
            if k % 10 == 0:
                out.append(y)
            k1 = change(y)
            k2 = change([a + 0.05 * b for a, b in zip(y, k1)])
            k3 = change([a + 0.05 * b for a, b in zip(y, k2)])
            k4 = change([a + 0.1 * b for a, b in zip(y, k3)])
            y = [a + 0.1 / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in zip(y, k1, k2, k3, k4)]
        return out
    true, guess = [1.1, 0.4, 0.4, 0.1], [1.0, 0.3, 0.5, 0.15]
    seen = path(true)

    def loss(r):
        return sum((a - b) ** 2 for y, s in zip(path(r), seen) for a, b in zip(y, s)) * (1.0 / 9)
    slope = gradient(lambda b: path([b[0]] + true[1:])[8][1], [1.1])[1][0]
    found = adam(loss, guess, 0.02, steps)
    return [seen[8][1], slope, slope, loss(guess), steps, loss(found)] + found


def kalman():
    zs = [0.5 * k + 0.01 * k * k + 0.8 * math.sin(k * k) for k in range(40)]

    def filtered(variance):
        x, p, total = [0.0, 0.0], [[10.0, 0.0], [0.0, 10.0]], 0.0
        for z in zs:
            x = [x[0] + x[1], x[1]]
            a, b, c = p[0][0], p[0][1], p[1][1]
            p = [[a + 2 * b + c + 0.005, b + c + 0.01], [b + c + 0.01, c + 0.02]]
            s, e = p[0][0] + variance, z - x[0]
            total = total - 0.5 * (e * e / s + log(2 * math.pi * s))
            gain = [p[0][0] / s, p[1][0] / s]
            x = [x[0] + gain[0] * e, x[1] + gain[1] * e]
            p = [[p[r][c] - gain[r] * p[0][c] for c in range(2)] for r in range(2)]
        return x, total
    x, likely = filtered(Var(0.5))
    best = math.log(0.5)
    for _ in range(20):
        best += 0.05 * gradient(lambda v: filtered(exp(v[0]))[1], [best])[1][0]
    return [value(e) for e in x] + [value(likely), math.exp(best), value(filtered(Var(math.exp(best)))[1])]


def gaussian_process():
    n = 12
    at = [k / 2.0 for k in range(n)]
    seen = [math.sin(t) + 0.1 * math.cos(17.0 * t) for t in at]

    def factor(k):
        def cov(a, b):
            return k[1] ** 2 * exp(-0.5 * ((a - b) / k[0]) ** 2)
        low = []
        for i in range(n):
            row = []
            for j in range(i + 1):
                left = cov(at[i], at[j]) + (k[2] ** 2 if i == j else 0.0) - sum(row[m] * low[j][m] for m in range(j)) if j < i else \
                    cov(at[i], at[i]) + k[2] ** 2 - sum(e * e for e in row)
                row.append(left / low[j][j] if j < i else sqrt(left))
            low.append(row)
        return low, cov

    def forward(low, b):
        x = []
        for row, v in zip(low, b):
            x.append((v - sum(p * q for p, q in zip(row, x))) / row[-1])
        return x

    def likelihood(k):
        low, _ = factor(k)
        z = forward(low, seen)
        return -0.5 * sum(e * e for e in z) - sum(log(row[-1]) for row in low) - 0.5 * n * math.log(2 * math.pi)
    k = [1.0, 1.0, 0.2]
    likely, g = gradient(likelihood, k)
    first = g[0]
    for _ in range(10):
        _, g = gradient(likelihood, k)
        k = [k[0] + 0.01 * g[0], k[1] + 0.01 * g[1], k[2] + 0.001 * g[2]]
    fitted, _ = gradient(likelihood, k)
    low, cov = factor([Var(e) for e in k])
    here = forward(low, [cov(t, 2.25) for t in at])
    mean = value(sum(a * b for a, b in zip(here, forward(low, seen))))
    return [likely, first, k[0], fitted, 2.25, mean, math.sqrt(k[1] ** 2 - value(sum(e * e for e in here)))]


def network(steps=1):
    half = [k / 16.0 + 0.2 for k in range(50)]
    arm = [(t * math.cos(2 * t) / 3, t * math.sin(2 * t) / 3) for t in half]
    inputs = arm + [(-a, -b) for a, b in arm]
    signs = [1.0] * 50 + [-1.0] * 50
    net = []
    for number, (m, n) in enumerate([(2, 16), (16, 16), (16, 1)]):
        w = [[math.sin((r * m + c + 100.0 * number) * 12.9898) / math.sqrt(m) for c in range(m)] for r in range(n)]
        net.append([w, [0.0] * n])

    def logits(net):
        out = []
        for x in inputs:
            y = list(x)
            for k, (w, b) in enumerate(net):
                y = [sum(p * q for p, q in zip(row, y)) + s for row, s in zip(w, b)]
                y = [tanh(e) for e in y] if k < 2 else y
            out.append(y[0])
        return out

    def loss(net):
        s = [sign * e for sign, e in zip(signs, logits(net))]
        return sum(relu(-e) + log(1.0 + exp(-magnitude(e))) for e in s) * 0.01
    first, g = gradient(loss, net)
    w, v = flat(net), [0.0] * len(g)
    for k in range(steps):
        g = g if k == 0 else gradient(loss, refill(net, iter(w)))[1]
        v = [0.9 * a - 0.2 * b for a, b in zip(v, g)]
        w = [a + b for a, b in zip(w, v)]
    net = refill(net, iter(w))
    right = sum((e > 0) == (s > 0) for e, s in zip(logits(net), signs))
    return [first, steps, loss(net), right / 100.0]


def factorisation(steps=20):
    ratings = [[3.0 + math.sin(p) * math.sin(2.0 * f) + math.cos(p) * math.cos(3.0 * f) for f in range(9)] for p in range(12)]
    known = [[((p * 9 + f) * 5.0) % 7.0 < 5.0 for f in range(9)] for p in range(12)]

    def waves(n, phase):
        return [[0.3 * math.sin((2 * r + c) * phase) for c in range(2)] for r in range(n)]
    start = [waves(12, 1.7), waves(9, 2.3), [0.0] * 12, [3.0] * 9]

    def error(m, which):
        chosen = [(p, f) for p in range(12) for f in range(9) if known[p][f] == which]
        return sum((m[0][p][0] * m[1][f][0] + m[0][p][1] * m[1][f][1] + m[2][p] + m[3][f] - ratings[p][f]) ** 2
                   for p, f in chosen) * (1.0 / len(chosen))

    def loss(m):
        return error(m, True) + 0.001 * sum(e ** 2 for e in flat(m[0]) + flat(m[1]))
    fitted = adam(loss, start, 0.05, steps)
    return [loss(start), steps, loss(fitted), math.sqrt(error(fitted, True)), math.sqrt(error(fitted, False))]


def read_digits(count):
    with open(os.path.join(ROOT, "examples", "digits.csv"), encoding="utf-8") as f:
        rows = [[float(e) for e in row] for row in csv.reader(f) if row and row[0].replace(".", "").isdigit()]
    return [([e / 16.0 for e in r[:64]], int(r[64])) for r in rows[:count]]


def cross_entropy(y, label):
    top = max(value(e) for e in y)
    return log(sum(exp(e - top) for e in y)) + top - y[label]


def cnn(images=2, steps=1):
    def waves(n, scale):
        return [scale * math.sin(k * 12.9898) for k in range(n)]
    start = [waves(72, 0.4), [0.0] * 8, waves(1280, 0.1), [0.0] * 10]

    def loss(net):
        total = 0.0
        for x, label in read_digits(images):
            pooled = []
            for f in range(8):
                seen = {}
                for r in range(8):
                    for c in range(8):
                        taps = [net[0][9 * f + 3 * a + b] * x[8 * (r + a - 1) + c + b - 1] for a in range(3) for b in range(3)
                                if 0 <= r + a - 1 < 8 and 0 <= c + b - 1 < 8]
                        seen[r, c] = relu(sum(taps) + net[1][f])
                for r in range(0, 8, 2):
                    for c in range(0, 8, 2):
                        pooled.append(max((seen[r + a, c + b] for a in range(2) for b in range(2)), key=value))
            y = [sum(net[2][128 * k + j] * pooled[j] for j in range(128)) + net[3][k] for k in range(10)]
            total = total + cross_entropy(y, label)
        return total * (1.0 / images)
    return [loss(start), steps, loss(adam(loss, start, 0.02, steps))]


def lstm(images=2, steps=1):
    def waves(n, scale):
        return [scale * math.sin(k * 12.9898) for k in range(n)]
    start = [waves(1536, 0.3), [0.0] * 64, waves(160, 0.3), [0.0] * 10]

    def loss(net):
        total = 0.0
        for x, label in read_digits(images):
            h, memory = [0.0] * 16, [0.0] * 16
            for r in range(8):
                inputs = x[8 * r:8 * r + 8] + h
                gates = [sum(net[0][24 * g + j] * inputs[j] for j in range(24)) + net[1][g] for g in range(64)]
                memory = [sigmoid(gates[k] + 1.0) * memory[k] + sigmoid(gates[16 + k]) * tanh(gates[48 + k]) for k in range(16)]
                h = [sigmoid(gates[32 + k]) * tanh(memory[k]) for k in range(16)]
            y = [sum(net[2][16 * k + j] * h[j] for j in range(16)) + net[3][k] for k in range(10)]
            total = total + cross_entropy(y, label)
        return total * (1.0 / images)
    return [loss(start), steps, loss(adam(loss, start, 0.03, steps))]


def calculator():
    x = 0.5
    return [1, 2, 0, 0.5, x * (x + 1) - 2 * math.sin(x) / math.exp(-x),
            2 * x + 1 - 2 * math.exp(x) * (math.sin(x) + math.cos(x))]


def hidden_markov():
    start, moves, emits = [0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.1, 0.4, 0.5], [0.6, 0.3, 0.1]]
    seen = [0, 1, 2, 2, 0, 0, 1]
    ways = {path: start[path[0]] * emits[path[0]][seen[0]] * math.prod(
        moves[path[t - 1]][path[t]] * emits[path[t]][seen[t]] for t in range(1, 7)) for path in itertools.product(range(2), repeat=7)}
    total = sum(ways.values())
    first = [sum(p for path, p in ways.items() if path[0] == k) / total for k in range(2)]
    pairs = [sum(p * sum(path[t - 1:t + 1] == (a, b) for t in range(1, 7)) for path, p in ways.items()) / total
             for a in range(2) for b in range(2)]
    told = [sum(p * sum(path[t] == k and seen[t] == e for t in range(7)) for path, p in ways.items()) / total
            for k in range(2) for e in range(3)]
    return [math.log(total), math.log(max(ways.values()))] + first + pairs + told


def decision_tree():
    kind = [k % 3 for k in range(48)]
    flowers = [(2.0 * k + 1.5 * math.sin(i * 1.7), abs(k - 1.0) * 2.0 + 1.2 * math.cos(i * 2.3)) for i, k in enumerate(kind)]

    def impurity(rows):
        return 1.0 - sum((sum(kind[r] == c for r in rows) / max(len(rows), 1)) ** 2 for c in range(3))

    def grow(rows, depth):
        if depth == 0 or impurity(rows) == 0.0:
            return [max(range(3), key=lambda c: sum(kind[r] == c for r in rows))]
        best = None
        for axis in range(2):
            for r in rows:
                yes = [q for q in rows if flowers[q][axis] < flowers[r][axis]]
                no = [q for q in rows if q not in yes]
                share = len(yes) / len(rows)
                cost = share * impurity(yes) + (1.0 - share) * impurity(no)
                if best is None or cost <= best[0] - 1e-12:
                    best = (cost, axis, flowers[r][axis], yes, no)
        return [best[1], best[2], grow(best[3], depth - 1), grow(best[4], depth - 1)]

    def ask(tree, flower):
        return tree[0] if len(tree) == 1 else ask(tree[2 if flower[tree[0]] < tree[1] else 3], flower)
    tree = grow(range(48), 4)
    return flat(tree) + [sum(ask(tree, f) == k for f, k in zip(flowers, kind)), 48]


def heat():
    scale = 0.00025 * 40 * 40

    def simulate(k):
        u = [math.exp(-200.0 * (i / 39 - 0.3) ** 2) for i in range(40)]
        for _ in range(200):
            u = [u[0]] + [u[i] + k * scale * (u[i + 1] - 2 * u[i] + u[i - 1]) for i in range(1, 39)] + [u[39]]
        return u
    measured = simulate(0.7)

    def misfit(k):
        return sum((a - b) ** 2 for a, b in zip(simulate(k), measured))
    out, k = [], 0.5
    for _ in range(6):
        h = 1e-4
        below, here, above = misfit(k - h), misfit(k), misfit(k + h)
        out += [k, here]
        k -= (above - below) / (2 * h) / ((above - 2 * here + below) / (h * h))
    return out + [k, measured[20]]


def principal():
    t = [-1.0 + 2.0 * i / 49 for i in range(50)]
    points = [(3 * v + 0.2 * math.sin(40 * v), 2 * v - 0.3 * math.cos(23 * v), 0.5 * math.sin(17 * v)) for v in t]
    middle = [sum(p[k] for p in points) / 50 for k in range(3)]
    centred = [[p[k] - middle[k] for k in range(3)] for p in points]
    a = [[sum(p[j] * p[k] for p in centred) / 49 for k in range(3)] for j in range(3)]
    v = [[float(j == k) for k in range(3)] for j in range(3)]
    for _ in range(20):  # Jacobi's rotations
        for p, q in ((0, 1), (0, 2), (1, 2)):
            angle = 0.5 * math.atan2(2 * a[p][q], a[q][q] - a[p][p])
            c, s = math.cos(angle), math.sin(angle)
            turn = [[float(j == k) for k in range(3)] for j in range(3)]
            turn[p][p], turn[q][q], turn[p][q], turn[q][p] = c, c, s, -s
            times = lambda x, y: [[sum(x[j][i] * y[i][k] for i in range(3)) for k in range(3)] for j in range(3)]
            a = times(times([list(r) for r in zip(*turn)], a), turn)
            v = times(v, turn)
    order = sorted(range(3), key=lambda k: -a[k][k])
    whole = sum(a[k][k] for k in range(3))
    out = []
    for k in order:
        out += [100 * a[k][k] / whole] + [abs(v[j][k]) for j in range(3)]
    return out + [49 * (whole - a[order[0]][order[0]]), 49 * whole]


def logistic():
    work = [4.0 + 3.0 * math.sin(i * 1.3) for i in range(30)]
    sleep = [7.0 + 1.5 * math.cos(i * 2.1) for i in range(30)]
    passed = [a + 0.5 * b + 1.5 * math.sin(i * 5.0) > 7.5 for i, (a, b) in enumerate(zip(work, sleep))]
    x = [(1.0, a, b) for a, b in zip(work, sleep)]

    def inverse(m):
        rows = [list(r) + [float(j == k) for k in range(3)] for j, r in enumerate(m)]
        for j in range(3):
            pivot = max(range(j, 3), key=lambda k: abs(rows[k][j]))
            rows[j], rows[pivot] = rows[pivot], rows[j]
            rows[j] = [v / rows[j][j] for v in rows[j]]
            for k in range(3):
                if k != j:
                    rows[k] = [p - rows[k][j] * q for p, q in zip(rows[k], rows[j])]
        return [r[3:] for r in rows]
    w, rounds = [0.0] * 3, 0
    while True:
        p = [sigmoid(sum(a * b for a, b in zip(r, w))) for r in x]
        slope = [sum((y - q) * r[k] for y, q, r in zip(passed, p, x)) for k in range(3)]
        inv = inverse([[sum(q * (1 - q) * r[j] * r[k] for q, r in zip(p, x)) for k in range(3)] for j in range(3)])
        step = [sum(inv[j][k] * slope[k] for k in range(3)) for j in range(3)]
        if math.hypot(*step) < 1e-9:
            break
        w, rounds = [a + b for a, b in zip(w, step)], rounds + 1
    likelihood = sum(math.log(q if y else 1 - q) for y, q in zip(passed, p))
    told = sum((q > 0.5) == y for q, y in zip(p, passed))
    tired = [y for y, s in zip(passed, sleep) if s < 6.5]
    return [likelihood, rounds] + flat([[w[k], math.sqrt(inv[k][k])] for k in range(3)]) + [told, 30, sum(tired), len(tired)]


# the arguments of each, and how near the numbers must be
EXAMPLES = {"regression": (regression, [], 1e-6), "kmeans": (kmeans, [], 1e-8), "runge_kutta": (runge_kutta, ["2"], 1e-6),
            "kalman": (kalman, [], 1e-6), "gaussian_process": (gaussian_process, [], 1e-6), "network": (network, ["1"], 1e-6),
            "factorisation": (factorisation, ["20"], 1e-4), "cnn": (cnn, ["2", "1"], 1e-3), "lstm": (lstm, ["2", "1"], 1e-3),
            "calculator": (calculator, [], 1e-9), "hidden_markov": (hidden_markov, [], 1e-6),
            "decision_tree": (decision_tree, [], 1e-9), "heat": (heat, [], 1e-5), "principal": (principal, [], 1e-5),
            "logistic": (logistic, [], 1e-6)}


def closing(text, at):
    """Where the bracket that opens at `at` is closed."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if not depth:
            return i
    return len(text)


def annotations(text):
    """What a program says of types beside its declarations: of parameters, results and `let`s, but for parameters of
    the types that it declares."""
    text = re.sub(r'//.*|"(\\.|[^"\\])*"', "", text)
    declared = re.findall(r"^type (\w+)", text, re.M)
    for at in reversed([m.start() for m in re.finditer(r"^type ", text, re.M)]):
        text = text[:at] + text[closing(text, text.index("{", at)) + 1:]
    found = re.findall(r"\blet [^=:]*: *([^=]+)=", text)
    for head in re.finditer(r"\b(?:def \w+(\[[^\]]*\])?|fn(?: ?\[[^\]]*\])?) ?\(", text):
        end = closing(text, head.end() - 1)
        found += re.findall(r"\w *: *(\w+)", text[head.end():end])
        found += re.findall(r"^ *-> *(\S+)", text[end + 1:])
        found += [head.group(1)] if head.group(1) else []
    return [t for t in found if t.strip() not in declared]


def counts():
    """Lines and annotations of the programs here, which README tells."""
    texts = []
    for name in EXAMPLES:
        with open(os.path.join(ROOT, "examples", name + ".rly"), encoding="utf-8") as f:
            texts.append(f.read())
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        said = re.search(r"their (\d+) lines have (\d+) annotations", f.read())
    lines, types = sum(t.count("\n") for t in texts), [a for t in texts for a in annotations(t)]
    if said and [int(said.group(1)), int(said.group(2))] == [lines, len(types)] and 30 * len(types) <= lines:
        return True
    print("README: the examples have %d lines and %d annotations, %s" % (lines, len(types), types))
    return False


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    passed = failed = 0
    if options.only in "README":
        passed, failed = (1, 0) if counts() else (0, 1)
    for name, (reference, args, limit) in EXAMPLES.items():
        if options.only not in name:
            continue
        path = os.path.join(ROOT, "examples", name + ".rly")
        run = subprocess.run([options.relay, path] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        text = run.stdout.decode()
        got = [float(t) for t in re.findall(r"(?<![A-Za-z_\d.])-?\d+(?:\.\d+)?(?:e[-+]\d+)?", text)]
        want = reference()
        wrong = [(w, g) for w, g in zip(want, got) if not abs(w - g) <= limit * max(1.0, abs(w))]
        if name == "cnn":  # a file beside the script is found by the reference, too
            other = subprocess.run([options.relay, "--engine=reference", path] + args, stdout=subprocess.PIPE, timeout=PATIENCE)
            wrong += [] if other.stdout == run.stdout else [other.stdout.decode()]
        if run.returncode or run.stderr or len(got) < len(want) or wrong:
            failed += 1
            print("%s: wanted and found %s\n%s%s" % (name, wrong[:5], text, run.stderr.decode()[:1000]))
        else:
            passed += 1
    print("%d passed, %d failed, 0 skipped" % (passed, failed))


if __name__ == "__main__":
    main()
