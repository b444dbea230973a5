# SPDX-License-Identifier: Apache-2.0
"""Inputs of GradBench's evaluations, of its sizes, from a generator of our own with its seed. `workloads(module)` is
those of the table, `tiny(module)` those that `make check` compares with reference.py."""
import math
import random

SEED = 31337


class Draw:
    def __init__(self, name):
        self.rng = random.Random("%d %s" % (SEED, name))

    def vector(self, n, low=0.0, high=1.0):
        return [self.rng.uniform(low, high) for _ in range(n)]

    def normal(self, n):
        return [self.rng.gauss(0.0, 1.0) for _ in range(n)]

    def rows(self, n, m, low=0.0, high=1.0):
        return [self.vector(m, low, high) for _ in range(n)]


def gmm(d, k, n=1000):
    r = Draw("gmm %d %d %d" % (d, k, n))
    return {"d": d, "k": k, "n": n, "alpha": r.normal(k), "mu": r.rows(k, d), "q": [r.normal(d) for _ in range(k)],
            "l": [r.normal(d * (d - 1) // 2) for _ in range(k)], "x": [r.normal(d) for _ in range(n)],
            "gamma": 1.0, "m": 0}


def gmm_constant(i):
    """What the prior of gmm adds whatever the parameters are."""
    degrees = i["d"] + i["m"] + 1
    gammas = 0.25 * i["d"] * (i["d"] - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (degrees - j)) for j in range(i["d"]))
    return i["k"] * (degrees * i["d"] * math.log(i["gamma"] / math.sqrt(2)) - gammas)


def lstm(layers, c, b=14):
    r = Draw("lstm %d %d %d" % (layers, c, b))
    return {"main_params": r.rows(2 * layers, 4 * b, -1, 1), "extra_params": r.rows(3, b, -1, 1),
            "state": r.rows(2 * layers, b, -1, 1), "sequence": [[float(r.rng.getrandbits(1)) for _ in range(b)] for _ in range(c)]}


def ba(n, m, p):
    r = Draw("ba %d %d %d" % (n, m, p))
    cam = r.vector(3, 0.1, 0.5) + r.vector(3, -1, 1) + [r.rng.uniform(1, 2)] + r.vector(2) + r.vector(2, 0, 0.01)
    return {"n": n, "m": m, "p": p, "cam": cam, "x": [r.rng.uniform(-1, 1), r.rng.uniform(-1, 1), r.rng.uniform(4, 9)],
            "w": r.rng.uniform(0.5, 1), "feat": r.vector(2)}


def ht(count, vertices=544, complicated=True, bones=22):
    r = Draw("ht %d %d %d" % (count, vertices, complicated))

    def transform():
        return [r.vector(4, -1, 1) for _ in range(3)] + [[0.0, 0.0, 0.0, 1.0]]
    weights = r.rows(vertices, bones)
    model = {"bone_count": bones, "bone_names": ["bone%d" % i for i in range(bones)],
             "parents": [-1] + [r.rng.randrange(i) for i in range(1, bones)],
             "base_relatives": [transform() for _ in range(bones)],
             "inverse_base_absolutes": [transform() for _ in range(bones)],
             "base_positions": [r.vector(3, -1, 1) + [1.0] for _ in range(vertices)],
             "weights": [[w / sum(row) for w in row] for row in weights],
             "triangles": [[r.rng.randrange(vertices) for _ in range(3)] for _ in range(vertices)],
             "is_mirrored": not complicated}
    return {"theta": r.vector(26, -0.5, 0.5), "us": r.rows(count, 2, 0, 0.5) if complicated else [],
            "data": {"model": model, "correspondences": [r.rng.randrange(vertices) for _ in range(count)],
                     "points": r.rows(count, 3, -1, 1)}}


def kmeans(k, n, d):
    points = Draw("kmeans %d %d %d" % (k, n, d)).rows(n, d)
    return {"points": points, "centroids": points[-k:]}


def det(ell):
    return {"A": Draw("det %d" % ell).vector(ell * ell), "ell": ell}


def llsq(n, m=128):
    return {"x": Draw("llsq %d %d" % (n, m)).vector(m), "n": n}


def lse(n):
    return {"x": Draw("lse %d" % n).vector(n)}


def ode(n, s):
    return {"x": Draw("ode %d %d" % (n, s)).vector(n), "s": s}


def particle():
    return {"w": 0.0}


def saddle():
    return {"start": [1.0, 1.0]}


FUNCTIONS = {"hello": ("square", "double"), "gmm": ("objective", "jacobian"), "lstm": ("objective", "jacobian"),
             "ba": ("objective", "jacobian"), "ht": ("objective", "jacobian"), "kmeans": ("cost", "dir"),
             "det": ("primal", "gradient"), "llsq": ("primal", "gradient"), "lse": ("primal", "gradient"),
             "ode": ("primal", "gradient"), "particle": ("ff", "fr", "rf", "rr"), "saddle": ("ff", "fr", "rf", "rr")}
# the cameras, points and observations of ADBench's files ba1, ba5, ba10 and ba14
BA = {"ba1": (49, 7776, 31843), "ba5": (257, 65132, 225911), "ba10": (1197, 126327, 563734), "ba14": (356, 226730, 1255268)}


def workloads(module):
    """[(name, input)]; the largest take minutes to write as text, and are left out unless asked for by name."""
    if module == "hello":
        return [("hello", 3.0)]
    if module == "gmm":
        return [("%d_%d" % (d, k), lambda d=d, k=k: gmm(d, k)) for d, k in [(2, 5), (10, 25), (32, 50), (64, 100)]]
    if module == "lstm":
        return [("%d_%d" % (l, c), lambda l=l, c=c: lstm(l, c)) for l, c in [(2, 1024), (4, 4096), (6, 8192)]]
    if module == "ba":
        return [(name, lambda size=size: ba(*size)) for name, size in BA.items()]
    if module == "ht":
        return [("hand%d" % c, lambda c=c: ht(c)) for c in (100, 1000, 10000)]
    if module == "kmeans":
        return [("%d_%d_%d" % s, lambda s=s: kmeans(*s)) for s in [(10, 1000, 8), (100, 10000, 16), (1000, 10000, 16)]]
    if module == "det":
        return [(str(n), lambda n=n: det(n)) for n in (5, 6, 7, 8, 9, 10, 11)]
    if module == "llsq":
        return [(str(n), lambda n=n: llsq(n)) for n in (128, 1024, 16392)]
    if module == "lse":
        return [(str(n), lambda n=n: lse(n)) for n in (2500, 160000, 1280000)]
    if module == "ode":
        return [("%d_%d" % s, lambda s=s: ode(*s)) for s in [(1000, 1), (10000, 10), (100000, 100)]]
    return [(module, particle if module == "particle" else saddle)]


def tiny(module):
    return {"hello": lambda: [3.0], "gmm": lambda: [gmm(2, 3, 5), gmm(4, 2, 3)], "lstm": lambda: [lstm(2, 4, 3)],
            "ba": lambda: [ba(2, 3, 4)], "ht": lambda: [ht(3, 5, True), ht(2, 4, False)], "kmeans": lambda: [kmeans(2, 7, 3)],
            "det": lambda: [det(1), det(4)], "llsq": lambda: [llsq(6, 4)], "lse": lambda: [lse(9)],
            "ode": lambda: [ode(5, 3)], "particle": lambda: [particle()], "saddle": lambda: [saddle()]}[module]()
