# SPDX-License-Identifier: Apache-2.0
"""GradBench's evaluations in plain Python, written from their definitions by loops over numbers, and their derivatives
by dual numbers: what the Relay programs are compared with. It shares nothing with them, and needs no library."""
import math


class Dual:
    """A value and its partial derivatives, {number of the variable: derivative}."""
    __slots__ = ("v", "d")

    def __init__(self, v, d):
        self.v, self.d = v, d

    def __add__(self, o):
        o = lift(o)
        return Dual(self.v + o.v, join(self.d, o.d, 1.0, 1.0))

    def __sub__(self, o):
        o = lift(o)
        return Dual(self.v - o.v, join(self.d, o.d, 1.0, -1.0))

    def __mul__(self, o):
        o = lift(o)
        return Dual(self.v * o.v, join(self.d, o.d, o.v, self.v))

    def __truediv__(self, o):
        o = lift(o)
        return Dual(self.v / o.v, join(self.d, o.d, 1.0 / o.v, -self.v / (o.v * o.v)))

    def __neg__(self):
        return self * -1.0

    def __rsub__(self, o):
        return lift(o) - self

    def __rtruediv__(self, o):
        return lift(o) / self
    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, o):
        return self.v < lift(o).v

    def __gt__(self, o):
        return self.v > lift(o).v

    def __le__(self, o):
        return self.v <= lift(o).v


def lift(x):
    return x if isinstance(x, Dual) else Dual(x, {})


def join(a, b, p, q):
    return {k: p * a.get(k, 0.0) + q * b.get(k, 0.0) for k in a.keys() | b.keys()}


def rule(f, slope):
    def apply(x):
        if not isinstance(x, Dual):
            return f(x)
        y = f(x.v)
        return Dual(y, {k: slope(x.v, y) * d for k, d in x.d.items()})
    return apply


exp = rule(math.exp, lambda x, y: y)
log = rule(math.log, lambda x, y: 1.0 / x)
sqrt = rule(math.sqrt, lambda x, y: 0.5 / y)
sin = rule(math.sin, lambda x, y: math.cos(x))
cos = rule(math.cos, lambda x, y: -math.sin(x))
tanh = rule(math.tanh, lambda x, y: 1.0 - y * y)


def sigmoid(x):
    return 1.0 / (1.0 + exp(-x))


def variables(x, first=0):
    """Data of numbers as variables, numbered in order, and the next number."""
    if isinstance(x, list):
        out = []
        for e in x:
            v, first = variables(e, first)
            out.append(v)
        return out, first
    return Dual(x, {first: 1.0}), first + 1


def gradient_of(f, x):
    v, n = variables(x)
    y = f(v)
    return [y.d.get(i, 0.0) for i in range(n)]


def shaped(flat, like):
    """A flat list of numbers in the shape of nested lists."""
    numbers = iter(flat)

    def fill(x):
        return [fill(e) for e in x] if isinstance(x, list) else next(numbers)
    return fill(like)


def log_sum_exp(x):
    top = max(lift(e).v for e in x)
    return log(sum((exp(e - top) for e in x), 0.0)) + top


# ---- gmm -------------------------------------------------------------------------------------------

def gmm(i, alpha, mu, q, l):
    d, k, n = i["d"], i["k"], i["n"]
    total = -n * d * 0.5 * math.log(2 * math.pi)
    for x in i["x"]:
        terms = []
        for c in range(k):
            z = [x[a] - mu[c][a] for a in range(d)]
            out = [exp(q[c][a]) * z[a] for a in range(d)]
            at = 0
            for a in range(d):
                for b in range(a + 1, d):
                    out[b] = out[b] + l[c][at] * z[a]
                    at += 1
            terms.append(alpha[c] + sum(q[c]) - 0.5 * sum(o * o for o in out))
        total = total + log_sum_exp(terms)
    total = total - n * log_sum_exp(alpha)
    m, gamma, degrees = i["m"], i["gamma"], d + i["m"] + 1
    norm = degrees * d * (math.log(gamma) - 0.5 * math.log(2)) - (
        0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * degrees - 0.5 * j) for j in range(d)))
    for c in range(k):
        squares = sum(exp(2.0 * e) for e in q[c]) + sum((e * e for e in l[c]), 0.0)
        total = total + norm - 0.5 * gamma * gamma * squares + m * sum(q[c])
    return total


def gmm_objective(i):
    return gmm(i, i["alpha"], i["mu"], i["q"], i["l"])


def gmm_jacobian(i):
    parts = [i["alpha"], i["mu"], i["q"], i["l"]]
    g = shaped(gradient_of(lambda p: gmm(i, *p), parts), parts)
    return dict(zip(["alpha", "mu", "q", "l"], g))


# ---- lstm ------------------------------------------------------------------------------------------

def lstm(i, main, extra):
    b, layers = len(extra[0]), len(main) // 2
    hidden = [list(i["state"][2 * c]) for c in range(layers)]
    cell = [list(i["state"][2 * c + 1]) for c in range(layers)]
    total = 0.0
    for x, gold in zip(i["sequence"], i["sequence"][1:]):
        y = [x[a] * extra[0][a] for a in range(b)]
        for c in range(layers):
            w, bias = main[2 * c], main[2 * c + 1]
            for a in range(b):
                forget = sigmoid(y[a] * w[a] + bias[a])
                taken = sigmoid(hidden[c][a] * w[b + a] + bias[b + a])
                given = sigmoid(y[a] * w[2 * b + a] + bias[2 * b + a])
                change = tanh(hidden[c][a] * w[3 * b + a] + bias[3 * b + a])
                cell[c][a] = cell[c][a] * forget + taken * change
                hidden[c][a] = given * tanh(cell[c][a])
            y = list(hidden[c])
        y = [y[a] * extra[1][a] + extra[2][a] for a in range(b)]
        norm = log(sum((exp(e) for e in y), 2.0))
        total = total + sum(gold[a] * (y[a] - norm) for a in range(b))
    return -total / ((len(i["sequence"]) - 1) * b)


def lstm_objective(i):
    return lstm(i, i["main_params"], i["extra_params"])


def lstm_jacobian(i):
    return gradient_of(lambda p: lstm(i, *p), [i["main_params"], i["extra_params"]])


# ---- ba --------------------------------------------------------------------------------------------

def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def project(cam, x, w, feat):
    moved = [x[a] - cam[3 + a] for a in range(3)]
    angle = sqrt(sum(cam[a] * cam[a] for a in range(3)))
    axis = [cam[a] / angle for a in range(3)]
    turned, along = cross(axis, moved), sum(axis[a] * moved[a] for a in range(3))
    p = [moved[a] * cos(angle) + turned[a] * sin(angle) + axis[a] * along * (1.0 - cos(angle)) for a in range(3)]
    u = [p[0] / p[2], p[1] / p[2]]
    far = u[0] * u[0] + u[1] * u[1]
    bend = 1.0 + cam[9] * far + cam[10] * far * far
    return [w * (u[a] * bend * cam[6] + cam[7 + a] - feat[a]) for a in range(2)]


def ba_objective(i):
    return {"reproj_error": {"elements": project(i["cam"], i["x"], i["w"], i["feat"]), "repeated": i["p"]},
            "w_err": {"element": 1 - i["w"] ** 2, "repeated": i["p"]}}


def ba_jacobian(i):
    n, m, p = i["n"], i["m"], i["p"]
    rows, cols, vals = [0], [], []
    for o in range(p):
        v, _ = variables([i["cam"], i["x"], i["w"]])
        for e in project(v[0], v[1], v[2], i["feat"]):
            cols += [11 * (o % n) + a for a in range(11)] + [11 * n + 3 * (o % m) + a for a in range(3)]
            cols += [11 * n + 3 * m + o]
            vals += [e.d.get(a, 0.0) for a in range(15)]
            rows.append(len(vals))
    for o in range(p):
        cols.append(11 * n + 3 * m + o)
        vals.append(-2.0 * i["w"])
        rows.append(len(vals))
    return {"rows": rows[:30] + rows[-1:], "cols": cols[:30] + cols[-1:], "vals": vals[:30] + vals[-1:]}


# ---- ht --------------------------------------------------------------------------------------------

def product(a, b):
    return [[sum(a[r][k] * b[k][c] for k in range(len(b))) for c in range(len(b[0]))] for r in range(len(a))]


def rotation(x, y, z):
    rx = [[1.0, 0.0, 0.0], [0.0, cos(x), -sin(x)], [0.0, sin(x), cos(x)]]
    ry = [[cos(y), 0.0, sin(y)], [0.0, 1.0, 0.0], [-sin(y), 0.0, cos(y)]]
    rz = [[cos(z), -sin(z), 0.0], [sin(z), cos(z), 0.0], [0.0, 0.0, 1.0]]
    return product(product(rz, ry), rx)


def ht(i, theta, us):
    data, model = i["data"], i["data"]["model"]
    pose = [[0.0, 0.0, 0.0] for _ in model["parents"]]
    at = 6
    for finger in range(5):
        for joint in range(3):
            pose[2 + 4 * finger + joint][0] = theta[at]
            at += 1
            if joint == 0:
                pose[2 + 4 * finger][1] = theta[at]
                at += 1
    absolutes, moves = [], []
    for b, parent in enumerate(model["parents"]):
        turn = rotation(pose[b][0], pose[b][2], pose[b][1])
        turn = [row + [0.0] for row in turn] + [[0.0, 0.0, 0.0, 1.0]]
        relative = product(model["base_relatives"][b], turn)
        absolutes.append(relative if parent < 0 else product(absolutes[parent], relative))
        moves.append(product(absolutes[b], model["inverse_base_absolutes"][b]))
    angle = sqrt(sum(theta[a] * theta[a] for a in range(3)))
    axis = [theta[a] / angle for a in range(3)]
    vertices = []
    for v, p in enumerate(model["base_positions"]):
        x = [0.0, 0.0, 0.0]
        for b, move in enumerate(moves):
            for a in range(3):
                x[a] = x[a] + model["weights"][v][b] * sum(move[a][k] * p[k] for k in range(4))
        if model["is_mirrored"]:
            x[0] = -x[0]
        turned, along = cross(axis, x), sum(axis[a] * x[a] for a in range(3))
        vertices.append([x[a] * cos(angle) + turned[a] * sin(angle) + axis[a] * along * (1.0 - cos(angle)) + theta[3 + a]
                         for a in range(3)])
    out = []
    for k, c in enumerate(data["correspondences"]):
        for a in range(3):
            if us:
                t, (u, v) = model["triangles"][c], us[k]
                x = u * vertices[t[0]][a] + v * vertices[t[1]][a] + (1.0 - u - v) * vertices[t[2]][a]
            else:
                x = vertices[c][a]
            out.append(data["points"][k][a] - x)
    return out


def ht_objective(i):
    return ht(i, i["theta"], i["us"])


def ht_jacobian(i):
    v, _ = variables([i["theta"], i["us"]])
    rows = []
    for k, e in enumerate(ht(i, *v)):
        us = [e.d.get(26 + 2 * (k // 3) + a, 0.0) for a in range(2)] if i["us"] else []
        rows.append(us + [e.d.get(a, 0.0) for a in range(26)])
    return rows


# ---- the others ------------------------------------------------------------------------------------

def nearest(i):
    """Of each point: the number of its centroid."""
    return [min(range(len(i["centroids"])), key=lambda c: math.dist(p, i["centroids"][c])) for p in i["points"]]


def kmeans_cost(i):
    return sum(math.dist(p, i["centroids"][c]) ** 2 for p, c in zip(i["points"], nearest(i)))


def kmeans_dir(i):
    near = nearest(i)
    out = []
    for c, at in enumerate(i["centroids"]):
        mine = [p for p, n in zip(i["points"], near) if n == c]
        out.append([sum(2.0 * (at[a] - p[a]) for p in mine) / (2.0 * len(mine)) for a in range(len(at))])
    return out


def minors(a, rows):
    if len(rows) == 1:
        return rows[0][0]
    return sum(((-1.0) ** j * rows[0][j] * minors(a, [r[:j] + r[j + 1:] for r in rows[1:]]) for j in range(len(rows))), 0.0)


def det(x):
    n = math.isqrt(len(x))
    return minors(x, [x[r * n:r * n + n] for r in range(n)])


def det_primal(i):
    return det(i["A"])


def det_gradient(i):
    return gradient_of(det, i["A"])


def llsq(i, x):
    total, n = 0.0, i["n"]
    for k in range(n):
        t = -1.0 + k * 2.0 / (n - 1)
        e = float((t > 0) - (t < 0))
        for j, c in enumerate(x):
            e = e - c * t ** j
        total = total + 0.5 * e * e
    return total


def llsq_primal(i):
    return llsq(i, i["x"])


def llsq_gradient(i):
    return gradient_of(lambda x: llsq(i, x), i["x"])


def lse_primal(i):
    return log_sum_exp(i["x"])


def lse_gradient(i):
    return gradient_of(log_sum_exp, i["x"])


def ode(i, x):
    n, h, y = len(x), 2.0 / i["s"], [0.0] * len(x)

    def slope(y):
        return [x[0]] + [x[a] * y[a - 1] for a in range(1, n)]
    for _ in range(i["s"]):
        k1 = slope(y)
        k2 = slope([y[a] + h * k1[a] / 2.0 for a in range(n)])
        k3 = slope([y[a] + h * k2[a] / 2.0 for a in range(n)])
        k4 = slope([y[a] + h * k3[a] for a in range(n)])
        y = [y[a] + h * (k1[a] + 2.0 * k2[a] + 2.0 * k3[a] + k4[a]) / 6.0 for a in range(n)]
    return y


def ode_primal(i):
    return ode(i, i["x"])


def ode_gradient(i):
    return gradient_of(lambda x: ode(i, x)[-1], i["x"])


def hello_square(x):
    return x * x


def hello_double(x):
    return gradient_of(hello_square, x)[0]


def argmin(f, slope, x):
    g, fx, rate, good = slope(x), f(x), 1e-5, 0
    while math.hypot(*g) > 1e-5:
        if good == 10:
            rate, good = 2.0 * rate, 0
            continue
        step = [a - rate * b for a, b in zip(x, g)]
        if math.dist(step, x) <= 1e-5:
            break
        if f(step) < fx:
            x, fx, g, good = step, f(step), slope(step), good + 1
        else:
            rate, good = rate / 2.0, 0
    return x


def crossing(w):
    charges = [(10.0, 10.0 - w), (10.0, 0.0)]
    x, v = [0.0, 8.0], [0.75, 0.0]
    while True:
        push = [0.0, 0.0]
        for c in charges:
            r = [x[0] - c[0], x[1] - c[1]]
            cube = sqrt(r[0] * r[0] + r[1] * r[1])
            cube = cube * cube * cube
            push = [push[a] + r[a] / cube for a in range(2)]
        ahead = [x[a] + 0.1 * v[a] for a in range(2)]
        if not ahead[1] > 0.0:
            at = x[0] - x[1] / v[1] * v[0]
            return at * at
        x, v = ahead, [v[a] + 0.1 * push[a] for a in range(2)]


def particle(i):
    return argmin(lambda w: crossing(w[0]), lambda w: gradient_of(lambda v: crossing(v[0]), w), [i["w"]])[0]


def saddle(i):
    """Of |x|^2 - |y|^2: the search for y does not depend on x, so that the gradients are known."""
    s = i["start"]
    y = argmin(lambda y: sum(e * e for e in y), lambda y: [2.0 * e for e in y], s)
    offset = sum(e * e for e in y)
    x = argmin(lambda x: sum(e * e for e in x) - offset, lambda x: [2.0 * e for e in x], s)
    return x + y


particle_ff = particle_fr = particle_rf = particle_rr = particle
saddle_ff = saddle_fr = saddle_rf = saddle_rr = saddle
