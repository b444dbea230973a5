# SPDX-License-Identifier: Apache-2.0
"""GradBench's evaluations in JAX, as its users write them: for each, a function of the input that gives the two that are
timed, the value and the derivative, compiled and run once already."""
import math

import jax
import jax.numpy as jnp

import inputs

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
    d, n, constant = i["d"], i["n"], inputs.gmm_constant(i)
    x = jnp.array(i["x"])
    column, row = jnp.triu_indices(d, 1)

    def objective(alpha, mu, q, l):
        below = jnp.zeros((i["k"], d, d)).at[:, row, column].set(l)
        triangle = below + jax.vmap(jnp.diag)(jnp.exp(q))
        far = jnp.einsum("knj,kij->kni", x[None] - mu[:, None], triangle)
        terms = (alpha + q.sum(1))[:, None] - 0.5 * (far ** 2).sum(2)
        prior = 0.5 * i["gamma"] ** 2 * ((jnp.exp(q) ** 2).sum() + (l ** 2).sum()) - i["m"] * q.sum()
        logsumexp = jax.scipy.special.logsumexp
        return logsumexp(terms, 0).sum() - n * logsumexp(alpha) - 0.5 * n * d * math.log(2 * math.pi) - prior + constant
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


def lstm(i):
    rows, state = jnp.array(i["sequence"]), jnp.array(i["state"])

    def layer(x, own):
        (weights, bias), (hidden, cell) = own
        forget = jax.nn.sigmoid(x * weights[0] + bias[0])
        taken = jax.nn.sigmoid(hidden * weights[1] + bias[1])
        given = jax.nn.sigmoid(x * weights[2] + bias[2])
        change = jnp.tanh(hidden * weights[3] + bias[3])
        cell = cell * forget + taken * change
        hidden = given * jnp.tanh(cell)
        return hidden, (hidden, cell)

    def loss(main, extra):
        b = extra.shape[1]
        weights = main.reshape(-1, 2, 4, b)

        def step(states, pair):
            x, gold = pair
            top, states = jax.lax.scan(layer, x * extra[0], ((weights[:, 0], weights[:, 1]), states))
            predicted = top * extra[1] + extra[2]
            return states, (gold * (predicted - jnp.log(jnp.exp(predicted).sum() + 2.0))).sum()
        states = state.reshape(-1, 2, b)
        _, terms = jax.lax.scan(step, (states[:, 0], states[:, 1]), (rows[:-1], rows[1:]))
        return -terms.sum() / ((len(rows) - 1) * b)
    return both(loss, jnp.array(i["main_params"]), jnp.array(i["extra_params"]))


def turn(r, x):
    """x turned about the axis r by its length."""
    angle = jnp.sqrt(r @ r)
    axis = r / angle
    return (x * jnp.cos(angle) + jnp.cross(axis, x) * jnp.sin(angle)
            + axis * (axis @ x) * (1.0 - jnp.cos(angle)))


def ba(i):
    n, m, p = i["n"], i["m"], i["p"]
    camera, point = jnp.arange(p) % n, jnp.arange(p) % m
    feat = jnp.array(i["feat"])
    cams, xs = jnp.tile(jnp.array(i["cam"]), (n, 1)), jnp.tile(jnp.array(i["x"]), (m, 1))
    weights = jnp.full(p, i["w"])

    def error(cam, x, w):
        seen = turn(cam[:3], x - cam[3:6])
        at = seen[:2] / seen[2]
        far = at @ at
        bent = 1.0 + cam[9] * far + cam[10] * far * far
        return w * (at * bent * cam[6] + cam[7:9] - feat)

    def objective(cams, xs, weights):
        return jax.vmap(error)(cams[camera], xs[point], weights), 1.0 - weights ** 2

    def jacobian(cams, xs, weights):
        by_cam, by_x, by_w = jax.vmap(jax.jacrev(error, (0, 1, 2)))(cams[camera], xs[point], weights)
        blocks = jnp.concatenate((by_cam, by_x, by_w[:, :, None]), 2)
        column = jnp.arange(p)[:, None] + 11 * n + 3 * m
        row = jnp.concatenate((camera[:, None] * 11 + jnp.arange(11), point[:, None] * 3 + jnp.arange(3) + 11 * n,
                               column), 1)
        cols = jnp.concatenate((jnp.stack((row, row), 1).reshape(-1), column.reshape(-1)))
        rows = jnp.concatenate((jnp.arange(2 * p + 1) * 15, jnp.arange(p) + 30 * p + 1))
        return rows, cols, jnp.concatenate((blocks.reshape(-1), -2.0 * weights))
    return warm(objective, cams, xs, weights), warm(jacobian, cams, xs, weights)


def det(i):
    def minors(a):
        """The determinant by minors along the first row, those of all columns at once."""
        n = len(a)
        if n == 1:
            return a[0, 0]
        others = jnp.array([[k for k in range(n) if k != j] for j in range(n)])
        signs = jnp.array([(-1.0) ** j for j in range(n)])
        return (signs * a[0] * jax.vmap(lambda columns: minors(a[1:, columns]))(others)).sum()
    return both(minors, jnp.array(i["A"]).reshape(i["ell"], i["ell"]))


PEERS = {"lse": lse, "llsq": llsq, "kmeans": kmeans, "gmm": gmm, "ode": ode, "lstm": lstm, "ba": ba, "det": det}
