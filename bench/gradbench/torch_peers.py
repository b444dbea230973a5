# SPDX-License-Identifier: Apache-2.0
"""GradBench's evaluations in PyTorch, as its users write them: for each, a function of the input that gives the two
that are timed, the value and the derivative."""
import math

import torch

import inputs


def tensor(x):
    return torch.tensor(x, dtype=torch.float64)


def both(f, *args):
    """(value, derivative) of f."""
    def value():
        with torch.no_grad():
            return f(*args)

    def derivative():
        variables = [a.detach().requires_grad_() for a in args]
        return torch.autograd.grad(f(*variables), variables)
    return value, derivative


def lse(i):
    return both(lambda x: torch.logsumexp(x, 0), tensor(i["x"]))


def llsq(i):
    t = torch.linspace(-1.0, 1.0, i["n"], dtype=torch.float64)
    powers = t[:, None] ** torch.arange(len(i["x"]))
    return both(lambda x: 0.5 * ((torch.sign(t) - powers @ x) ** 2).sum(), tensor(i["x"]))


def kmeans(i):
    points, centroids = tensor(i["points"]), tensor(i["centroids"])

    def cost(c):
        far = (points ** 2).sum(1)[:, None] + (c ** 2).sum(1) - 2.0 * points @ c.T
        return far.min(1).values.sum()

    def run():
        c = centroids.detach().requires_grad_()
        j, = torch.autograd.grad(cost(c), c, create_graph=True)
        h, = torch.autograd.grad(j.sum(), c)
        return j / h
    return lambda: cost(centroids), run


def gmm(i):
    d, k, n, constant = i["d"], i["k"], i["n"], inputs.gmm_constant(i)
    x = tensor(i["x"])
    column, row = torch.triu_indices(d, d, 1)

    def objective(alpha, mu, q, l):
        triangle = torch.diag_embed(torch.exp(q)).index_put((torch.arange(k)[:, None], row, column), l)
        far = torch.einsum("knj,kij->kni", x[None] - mu[:, None], triangle)
        terms = (alpha + q.sum(1))[:, None] - 0.5 * (far ** 2).sum(2)
        prior = 0.5 * i["gamma"] ** 2 * ((torch.exp(q) ** 2).sum() + (l ** 2).sum()) - i["m"] * q.sum()
        return torch.logsumexp(terms, 0).sum() - n * torch.logsumexp(alpha, 0) - 0.5 * n * d * math.log(2 * math.pi) - prior + constant
    return both(objective, *[tensor(i[name]) for name in ("alpha", "mu", "q", "l")])


PEERS = {"lse": lse, "llsq": llsq, "kmeans": kmeans, "gmm": gmm}
