# SPDX-License-Identifier: Apache-2.0
"""GradBench's evaluations in JAX, as its users write them: for each, a function of the input that gives the two that are
timed, the value and the derivative, compiled and run once already."""
import math

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)


def warm(f, *args):
    compiled = jax.jit(f)

    def run():
        return jax.block_until_ready(compiled(*args))
    run()
    return run


def both(f, *args):
    """(value, derivative) of f."""
    return warm(f, *args), warm(jax.grad(f, tuple(range(len(args)))), *args)


def lse(i):
    return both(jax.scipy.special.logsumexp, jnp.array(i["x"]))


def llsq(i):
    t = jnp.linspace(-1.0, 1.0, i["n"])

    def objective(x):
        powers = t[:, None] ** jnp.arange(len(x))
        return 0.5 * ((jnp.sign(t) - powers @ x) ** 2).sum()
    return both(objective, jnp.array(i["x"]))


def kmeans(i):
    points, centroids = jnp.array(i["points"]), jnp.array(i["centroids"])

    def cost(points, c):
        far = (points ** 2).sum(1)[:, None] + (c ** 2).sum(1) - 2.0 * points @ c.T
        return far.min(1).sum()

    def step(points, c):
        j, h = jax.jvp(jax.grad(lambda c: cost(points, c)), (c,), (jnp.ones_like(c),))
        return j / h
    return warm(cost, points, centroids), warm(step, points, centroids)


def gmm(i):
    d, n = i["d"], i["n"]
    x = jnp.array(i["x"])
    column, row = jnp.triu_indices(d, 1)

    def objective(alpha, mu, q, l):
        below = jnp.zeros((i["k"], d, d)).at[:, row, column].set(l)
        triangle = below + jax.vmap(jnp.diag)(jnp.exp(q))
        far = jnp.einsum("knj,kij->kni", x[None] - mu[:, None], triangle)
        terms = (alpha + q.sum(1))[:, None] - 0.5 * (far ** 2).sum(2)
        prior = 0.5 * i["gamma"] ** 2 * ((jnp.exp(q) ** 2).sum() + (l ** 2).sum()) - i["m"] * q.sum()
        logsumexp = jax.scipy.special.logsumexp
        return logsumexp(terms, 0).sum() - n * logsumexp(alpha) - 0.5 * n * d * math.log(2 * math.pi) - prior
    return both(objective, *[jnp.array(i[name]) for name in ("alpha", "mu", "q", "l")])


def ode(i):
    x, s = jnp.array(i["x"]), i["s"]

    def end(x):
        def slope(y):
            return x * jnp.concatenate((jnp.ones(1), y[:-1]))

        def step(_, y):
            h = 2.0 / s
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(y + h * k3))
        return jax.lax.fori_loop(0, s, step, jnp.zeros_like(x))[-1]
    return both(end, x)


PEERS = {"lse": lse, "llsq": llsq, "kmeans": kmeans, "gmm": gmm, "ode": ode}
