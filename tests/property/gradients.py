#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every derivative rule against central differences, backwards against forwards, and twice.

For each case f, at x, with a cotangent c of its result and a tangent t of x, in float64:

    back = <vjp(f)(x, c), t>,  forth = <c, jvp(f)(x, t)>,  central = <c, df/dt by differences>

agree; and the same for the function (x, c) -> vjp(f)(x, c), which is the rule itself. An operator
that has a rule in prelude/ and no case here is tried near its documented example. Points stay
away from kinks.

    gradients.py RELAY [--only PART-OF-NAME] [--verbose]
"""
import argparse
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE, SLOW

HERE = os.path.dirname(os.path.abspath(__file__))
RULES = [os.path.join(HERE, "..", "..", "prelude", name) for name in ("derivatives.rly", "derivatives_nn.rly")]

HARNESS = """
def noise(v: Tensor[(?,), float64], k: float64) -> Tensor[(?,), float64] {
  sin(cumsum(ones_like(v)) * k + 0.37) + 0.1
}
def like(x, k) { tree.unflatten(x, noise(tree.flatten64(x), k)) }
def dot(a, b) { sum(tree.flatten64(a) * tree.flatten64(b)) }
def at(f, x, t, c, h: float64) {
  dot(c, f(tree.unflatten(x, tree.flatten64(x) + h * tree.flatten64(t))))
}
def far(a: float64, b: float64, scale: float64) -> float64 { abs(a - b) / (1.0 + abs(b) + scale) }
def first(f, x, h: float64) {
  let y = f(x);
  let c = like(y, 2.3);
  let t = like(x, 1.7);
  let g = vjp(f)(x, c).1.0;
  let back = dot(g, t);
  let forth = dot(c, jvp(f)(x, t).1);
  let scale = sum(abs(tree.flatten64(g) * tree.flatten64(t)));
  let central = fn (h: float64) { (at(f, x, t, c, h) - at(f, x, t, c, -h)) / (2.0 * h) };
  let a = central(h);
  let b = central(h / 2.0);
  let e = central(h / 4.0);
  let best = (64.0 * e - 20.0 * b + a) / 45.0;
  (far(back, forth, scale), far(back, best, scale))
}
def second(f, x, h: float64) {
  first(fn (p) { vjp(f)(p.0, p.1).1.0 }, (x, like(f(x), 2.9)), h)
}
def report(name, a, b) {
  print(str.join(" ", list[name, show(a.0), show(a.1), show(b.0), show(b.1)]))
}
"""
ADJOINT, CENTRAL = 1e-13, 1e-10  # tolerances

SHAPES = [(), (3,), (2, 3), (0,), (2, 0)]
DOMAINS = {
    "any": [(-2.0, -0.15), (0.15, 2.0)],
    "pos": [(0.3, 2.5)],
    "unit": [(-0.8, -0.1), (0.1, 0.8)],
    "above1": [(1.3, 3.0)],
    "off": [(k + 0.1, k + 0.4) for k in (-3, -2, -1, 1, 2)],  # no whole number, no half
    "between": [(-0.6, -0.3), (0.3, 0.6), (1.1, 1.2)],  # the middles of 3 and of 4 cells from -1 to 1
    "high": [(2.6, 2.95)],
    "low": [(-2.95, -2.6)],
    "one": [(1.02, 1.2)],
    "tiny": [(-0.2, 0.2)],
}


class Case:
    def __init__(self, op, body, args, second=True, tol=CENTRAL, adjoint=ADJOINT, h=1e-3):
        self.op, self.body, self.args = op, body, args
        self.second, self.tol, self.adjoint, self.h = second, tol, adjoint, h


CASES = []


def case(op, body, *args, **how):
    """args: a shape, or (domain, shape), for each of the parameters x, y, z, u, v."""
    CASES.append(Case(op, body, [a if a and isinstance(a[0], str) else ("any", a) for a in args],
                      **how))


def number(rng, domain):
    low, high = rng.choice(DOMAINS[domain])
    return round(rng.uniform(low, high), 4)


def literal(rng, domain, shape):
    """Elements lie apart, so that no step of the differences changes their order."""
    count = 1
    for n in shape:
        count *= n
    if count == 0:
        return "zeros(shape=[%s], dtype=float64)" % ", ".join(map(str, shape))
    values, gap = [], 0.02
    while len(values) < count:
        v, tries = number(rng, domain), 0
        while any(abs(v - w) < gap for w in values):
            v, tries = number(rng, domain), tries + 1
            if tries > 60:
                gap /= 2
        values.append(v)

    def nest(shape, values):
        if not shape:
            return "%sf64" % values[0]
        step = len(values) // shape[0]
        return "[" + ", ".join(nest(shape[1:], values[i * step:(i + 1) * step])
                               for i in range(shape[0])) + "]"
    return nest(shape, values)


def type_of(shape):
    return "Tensor[(%s), float64]" % "".join("%d, " % n for n in shape).rstrip(" ")


# ---- the cases ----------------------------------------------------------------------------------

def elementwise():
    for op, domain in [("abs", "any"), ("acos", "unit"), ("acosh", "above1"), ("asin", "unit"),
                       ("asinh", "any"), ("atan", "any"), ("atanh", "unit"), ("copy", "any"),
                       ("cos", "any"), ("cosh", "any"), ("erf", "any"), ("exp", "any"),
                       ("fast_erf", "any"), ("fast_exp", "any"), ("fast_tanh", "any"),
                       ("log", "pos"), ("log10", "pos"), ("log2", "pos"), ("negative", "any"),
                       ("nn.relu", "any"), ("rsqrt", "pos"), ("sigmoid", "any"), ("sin", "any"),
                       ("sinh", "any"), ("sqrt", "pos"), ("tan", "unit"), ("tanh", "any")]:
        for shape in SHAPES:
            case(op, "%s(x)" % op, (domain, shape))
    for op in ["ceil", "floor", "round", "sign", "trunc"]:
        for shape in SHAPES:
            case(op, "%s(x) * x" % op, ("off", shape))
    for op in ["isfinite", "isinf", "isnan"]:
        case(op, "where(%s(x), x, 2.0 * x)" % op, (2, 3))
    case("logical_not", "where(logical_not(x > 0.0), x, 2.0 * x)", (2, 3))
    case("bitwise_not", "x * (float64) bitwise_not((int32) x)", ("off", (3,)))
    for shape in SHAPES:
        case("nn.leaky_relu", "nn.leaky_relu(x, alpha=0.3)", shape)
        case("clip", "clip(x, a_min=-1.0, a_max=0.95)", ("off", shape))


def pairs(rng):
    """Shapes that broadcast: all up to rank 2 with sizes 0 to 3, and some of ranks 3 and 4."""
    def broadcasts(a, b):
        return all(m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b)))

    small = [s for rank in range(3) for s in itertools.product((1, 2, 3), repeat=rank)]
    found = [(a, b) for a in small for b in small if broadcasts(a, b)]
    found += [((0,), (1,)), ((0, 3), (3,)), ((2, 1), (0,)), ((2, 0), (2, 1)), ((), (0, 2))]
    while len(found) < 130:
        a, b = (tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(5))) for _ in "ab")
        if max(len(a), len(b)) > 2 and broadcasts(a, b):
            found.append((a, b))
    return found


def binary(rng):
    every = pairs(rng)
    for a, b in every:
        case("multiply", "x * y", a, b)
    some = every[::9] + [((0, 3), (3,)), ((2, 1), (0,)), ((), (2, 3))]
    for op, first, then in [("add", "any", "any"), ("subtract", "any", "any"),
                            ("checked_add", "any", "any"), ("checked_subtract", "any", "any"),
                            ("checked_multiply", "any", "any"),
                            ("divide", "any", "any"), ("power", "pos", "any"),
                            ("floor_mod", "high", "one"), ("floor_mod", "low", "one"),
                            ("mod", "high", "one"), ("mod", "low", "one"),
                            ("trunc_mod", "high", "one"), ("trunc_mod", "low", "one")]:
        for a, b in some:
            case(op, "%s(x, y)" % op, (first, a), (then, b))
    case("power", "x ** 3", ("any", (2, 3)))
    case("power", "x ** (-2)", ("any", (3,)))
    for op in ["maximum", "minimum"]:
        for a, b in some:
            case(op, "%s(x, y)" % op, ("off", a), ("unit", b))
    for op in ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]:
        for a, b in some:
            case(op, "where(%s(x, y), x, y * 2.0)" % op, ("off", a), ("unit", b))
    for op in ["logical_and", "logical_or", "logical_xor"]:
        case(op, "where(%s(x > 0.0, y > 0.5), x, y * x)" % op, ("off", (2, 3)), ("off", (3,)))
    for op in ["floor_divide", "trunc_divide"]:
        case(op, "%s(x, y) * x + y" % op, ("high", (2, 3)), ("one", (3,)))
        case(op, "%s(x, y) * x + y" % op, ("low", (3,)), ("one", (2, 1)))
    for op in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
        case(op, "x * (float64) %s((int32) x, 5)" % op, ("off", (2, 3)))
    for op in ["left_shift", "right_shift"]:
        case(op, "x * (float64) %s((int32) abs(x), 1)" % op, ("off", (2, 3)))
    for a, b in some:
        case("where", "where(x > 0.0, y, 2.0 * x)", a, b)
        case("where", "where([True, False, True], x * y, y)", a + (1,), b + (3,))


def conversions():
    case("cast", "cast(x, dtype=float64)", (2, 3))
    case("cast", "cast(x, dtype=float32)", (2, 3), tol=1e-3, adjoint=1e-6, h=0.1)
    case("cast", "x * cast(cast(x, dtype=int32), dtype=float64)", ("off", (3,)))
    case("cast_like", "cast_like(x, y) * y", (2, 3), (2, 3))
    case("cast_like", "cast_like(cast(x, dtype=int32), x) * x", ("off", (3,)))
    case("stop_gradient", "stop_gradient(floor(x)) * x", ("off", (2, 3)))
    case("arange", "arange(x, 3.1f64, y)", ("unit", ()), ("one", ()))
    case("arange", "arange(x, 7.3f64, y) * z", ("unit", ()), ("one", ()), ())
    case("full", "full(x, shape=[2, 3])", ())
    case("full", "full(x, shape=[0])", ())
    case("full_like", "full_like(y, x) * y", (), (2, 3))
    case("ones_like", "ones_like(x) * x", (2, 3))
    case("zeros_like", "zeros_like(x) + x", (2, 3))
    case("ndarray_size", "x * (float64) ndarray_size(x)", (2, 3))
    case("vm.shape_of", "x * (float64) vm.shape_of(x)[1]", (2, 3))
    case("shape_of", "x * (float64) shape_of(x)[1]", (2, 3))


# attributes, data's shape, that of the result with its axes kept
REDUCED = [("", (2, 3), (1, 1)), ("", (), ()), (", axis=[0]", (2, 3), (1, 3)),
           (", axis=[-1], keepdims=True", (2, 3), (2, 1)), (", axis=[0, 2]", (2, 3, 2), (1, 3, 1)),
           (", axis=[1], exclude=True", (2, 3, 2), (1, 3, 1)),
           (", axis=[0, -1], exclude=True, keepdims=True", (2, 3, 2), (2, 1, 2)),
           (", keepdims=True", (2, 1), (1, 1))]


def reductions():
    for attrs, shape, kept in REDUCED:
        for op in ["sum", "mean", "max", "min", "prod", "logsumexp"]:
            case(op, "%s(x%s)" % (op, attrs), shape)
            case(op, "x * %s(x%s)" % (op, attrs.replace(", keepdims=True", "") + ", keepdims=True"),
                 shape)
        keep = attrs.replace(", keepdims=True", "") + ", keepdims=True"
        case("variance", "variance(x, mean(x%s)%s)" % (keep, attrs), shape)
        case("variance", "variance(x, y%s)" % attrs, shape, kept)
        if shape == (2, 3, 2):
            case("variance", "variance(x, mean(x%s)%s, unbiased=True)" % (keep, attrs), shape)
        if shape in ((2, 3, 2), (2, 3)):
            case("var", "var(x%s, unbiased=True)" % attrs, shape)
            case("std", "std(x%s, unbiased=True)" % attrs, shape)
        case("all", "x * (float64) all(x > -3.0%s)" % keep, shape)
        case("any", "x * (float64) any(x > 0.0%s)" % keep, shape)
        case("argmax", "x * (float64) argmax(x%s)" % keep, shape)
        case("argmin", "x * (float64) argmin(x%s)" % keep, shape)
        for more in ["", ", average=True"]:
            case("expand_like", "expand_like(sum(x%s), y%s%s) * y" % (attrs, attrs, more), shape, shape)
    for op, shape in [("sum", (0, 3)), ("sum", (2, 0)), ("prod", (2, 0))]:
        case(op, "%s(x, axis=[1])" % op, shape)
    case("prod", "prod(x * [1.0, 0.0, 2.0], axis=[0])", (3,))
    case("prod", "prod(x * [1.0, 0.0, 0.0])", (2, 3))
    case("broadcast_to", "broadcast_to(x, shape=[2, 4, 3])", (4, 1))
    case("broadcast_to", "broadcast_to(x, shape=[2, 0])", ())
    case("broadcast_to_like", "broadcast_to_like(x, y) * y", (1, 3), (2, 2, 3))
    case("collapse_sum_like", "collapse_sum_like(x, y) * y", (2, 2, 3), (1, 3))
    case("collapse_sum_like", "collapse_sum_like(x, y) * y", (0, 3), (1, 3))
    case("collapse_sum_to", "collapse_sum_to(x, [1, 3]) * y", (2, 2, 3), (1, 3))


def shapes():
    case("contrib_reverse_reshape", "contrib_reverse_reshape(x, newshape=[-1, 0])", (2, 3, 4))
    case("expand_dims", "expand_dims(x, axis=1, num_newaxis=2)", (2, 3))
    case("expand_dims", "expand_dims(x, axis=-1)", ())
    case("nn.batch_flatten", "nn.batch_flatten(x)", (2, 3, 2))
    case("reshape", "reshape(x, newshape=[3, -1])", (2, 3, 2))
    case("reshape", "reshape(x, newshape=[0, -3])", (2, 3, 2))
    case("reshape", "reshape(x, newshape=[])", (1, 1))
    case("reshape_like", "reshape_like(x, y) * y", (6,), (2, 3))
    case("squeeze", "squeeze(x, axis=[1])", (2, 1, 1))
    case("squeeze", "squeeze(x)", (1, 3, 1))
    for attrs in ["", ", axis=[1]", ", axis=[0, 2]", ", axis=[0], exclude=True"]:
        case("flatten_axes", "flatten_axes(x%s)" % attrs, (2, 3, 2))
        case("unflatten_axes", "unflatten_axes(flatten_axes(x%s) * 2.0, y%s) * y" % (attrs, attrs),
             (2, 3, 2), (2, 3, 2))
    for attrs in ["", ", axes=[1, 2, 0]", ", axes=[0, -1, 1]"]:
        case("transpose", "transpose(x%s)" % attrs, (2, 3, 4))
        case("transpose_inverse", "transpose_inverse(x%s)" % attrs, (2, 3, 4))
    case("transpose", "transpose(x)", (2, 0))
    for attrs in ["", ", axis=0", ", axis=-1"]:
        case("reverse", "reverse(x%s)" % attrs, (2, 3))
    case("concatenate", "concatenate((x, y, x * y), axis=0)", (2, 3), (2, 3))
    case("concatenate", "concatenate((x, y), axis=-1)", (2, 3), (2, 0))
    case("split_like", "split_like(x, (y, z), axis=1).1 * z", (2, 5), (2, 2), (2, 3))
    case("split", "split(x, indices_or_sections=3, axis=1)", (2, 6))
    case("split", "split(x, indices_or_sections=[1, 3], axis=-1).1", (2, 6))
    case("split", "let s = split(x, indices_or_sections=2, axis=0); s.0 * s.1", (4, 2))
    case("stack", "stack((x, y, x * y), axis=0)", (2, 3), (2, 3))
    case("stack", "stack((x, y), axis=-1)", (2, 3), (2, 3))
    case("stack", "[x, y, x * y]", (), ())
    case("unstack_like", "unstack_like(x, (y, y), axis=1).0 * y", (3, 2), (3,))
    for reps in ["[2]", "[2, 3]", "[2, 1, 3]"]:
        case("tile", "tile(x, reps=%s)" % reps, (2, 3))
        case("tile_sum", "tile_sum(tile(x, reps=%s) * 2.0, y, reps=%s) * y" % (reps, reps),
             (2, 3), (2, 3))
    for attrs in [", axis=0", ", axis=-1", ""]:
        case("repeat", "repeat(x, repeats=2%s)" % attrs, (2, 3))
        case("repeat_sum", "repeat_sum(repeat(x, repeats=2%s), y, repeats=2%s) * y" % (attrs, attrs),
             (2, 3), (2, 3))
    for indexing in ["ij", "xy"]:
        case("meshgrid", 'let g = meshgrid((x, y), indexing="%s"); g.0 * g.1' % indexing, (2,), (3,))
        case("meshgrid", 'meshgrid((x, y, z), indexing="%s")' % indexing, (2,), (3,), (2,))
        case("meshgrid_sum", 'let g = meshgrid((x, y), indexing="%s"); '
             'meshgrid_sum((g.0 * g.1, g.1), (x, y), indexing="%s")' % (indexing, indexing), (2,), (3,))


def indexing():
    for at in ["1", "-1, 0", "0:1, ::2", "..., -1", ":, None, 1:", "::-1, 2", "1:1"]:
        case("index", "x[%s]" % at, (3, 4))
    for at in ["[0, -1, 0]", "1:, [3, 3, 1]", "[True, False, True], None", "-1, [2]"]:
        case("index", "x[%s]" % at, (3, 4))
        case("index_last", 'let p = x[%s]; p * { x with [%s] = p * p }[0, 0]' % (at, at), (3, 4))
    case("index_last", 'index_last(x, ([2, 0, 2],), spec="v")', (3, 2))
    case("index_set", "{ x with [1] = y }", (3, 2), (2,))
    case("index_set", "{ x with [1] = y * y } * x", (3, 2), ())
    case("index_set", "{ x with [[2, 0, 2], 1:] = y } * x", (3, 3), (3, 2))
    case("index_set", "{ x with [[True, False, True]] = y } * x", (3, 2), (2,))
    case("index_set", "{ x with [1:, ::2] = y * y }", (3, 4), (2, 1))
    case("index", "x[0] * x[1] + x[0]", (3, 4))
    case("index_add", 'index_add(x, y, (1,), spec="i")', (3, 2), (2,))
    case("index_add", 'index_add(x, y * y, (-1,), spec="i")', (3,), ())
    case("take", "take(x, [3, 0, 3])", (2, 3))
    case("take", "take(x, [[2, 0], [1, 2]], axis=1)", (2, 3))
    case("take", 'take(x, [5, -1], axis=0, mode="wrap")', (3, 2))
    case("take", 'take(x, [5, -1], axis=0, mode="clip")', (3, 2))
    case("take", "take(x, [[2, 0], [1, 2]], axis=1, batch_dims=1)", (2, 3))
    case("take_add", "take_add(x, [1, 0, 1], y, axis=0) * y", (3, 2), (2, 2))
    case("gather", "gather(x, [[1, 0, 1], [0, 0, 1]], axis=0)", (2, 3))
    case("gather", "gather(x, [[-1, 0], [1, 1]], axis=1)", (2, 3))
    case("gather_nd", "gather_nd(x, [[1, 0, 1], [0, 2, 0]])", (2, 3))
    case("gather_nd", "gather_nd(x, [[1, 1]])", (2, 3))
    case("gather_nd", "gather_nd(x, [[1, 0]], batch_dims=1)", (2, 3))
    case("gather_nd_add", "gather_nd_add(x, [[1, 0, 1], [0, 2, 0]], y) * y", (3,), (2, 3))
    for how in ["update", "add", "min", "max", "mul"]:
        case("scatter_elements", 'scatter_elements(x, [[1, 0, 2], [0, 0, 1]], y, axis=1, '
             'reduction="%s")' % how, (2, 3), ("off", (2, 3)))
        case("scatter_nd", 'scatter_nd(x, [[1, 0, 1], [0, 2, 0]], y, mode="%s")' % how, (2, 3),
             ("off", (3,)))
    case("sparse_to_dense", "sparse_to_dense([[1, 0], [0, 2], [1, 0]], x, sum(y), output_shape=[2, 3])", (3,), (1,))
    case("sparse_to_dense", "sparse_to_dense([2, 0], sum(x), sum(y), output_shape=[4])", (1,), (1,))
    for attrs in ["begin=[0, 1], end=[2, 4]", "begin=[3, 0], end=[0, 4], strides=[-1, 2]",
                  'begin=[1, 1], end=[2, -1], slice_mode="size"', "begin=[1], end=[3], axes=[1]"]:
        case("strided_slice", "strided_slice(x, %s)" % attrs, (4, 5))
        case("strided_slice_add", "strided_slice_add(strided_slice(x, %s) * 2.0, y, %s) * y"
             % (attrs, attrs), (4, 5), (4, 5))
    case("strided_set", "strided_set(x, y, [0, 1], [2, 3], [1, 1])", (3, 4), (2, 2))
    case("strided_set", "strided_set(x, y, [2, 0], [0, 4], [-1, 3])", (3, 4), (2, 2))
    case("dyn.strided_slice", "dyn.strided_slice(x, [0, 1], [2, 3], [1, 1]) * y", (3, 4), (2, 2))
    case("slice_like", "slice_like(x, y) * y", (3, 4), (2, 3))
    case("slice_like", "slice_like(x, y, axes=[1])", (3, 4), (2, 3))
    case("pad_like", "pad_like(x, y) * y", (2, 3), (3, 4))
    for axis in ["", ", axis=0"]:
        case("one_hot", "one_hot([1, 0, 2], x, y, depth=3, dtype=float64%s)" % axis, (), ())


def scans_and_sorts():
    for attrs in ["", ", axis=0", ", axis=-1", ", axis=1, exclusive=True"]:
        case("cumsum", "cumsum(x%s)" % attrs, (2, 3))
        case("cumprod", "cumprod(x%s)" % attrs, (2, 3))
    case("cumprod", "cumprod(x * [1.0, 0.0, 2.0], axis=1)", (2, 3))
    case("cumsum", "cumsum(x, axis=0)", (0, 2))
    for attrs in ["", ", axis=0", ", axis=-1, is_ascend=False"]:
        case("sort", "sort(x%s)" % attrs, (3, 4))
        case("topk", "topk(x, k=2%s).0" % attrs, (3, 4))
        case("sort_by", "sort_by(x, y%s)" % attrs, (3, 4), (3, 4))
        case("unsort_by", "unsort_by(x, y%s)" % attrs, (3, 4), (3, 4))


def products():
    for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 2)),
                 ((2, 1, 2, 3), (2, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3))]:
        case("matmul", "x @@ y", a, b)
    case("matmul_lhs", "matmul_lhs(x, y, z)", (2, 4), (3, 4), (2, 3))
    case("matmul_lhs", "matmul_lhs(x, y, z)", (2, 2, 4), (2, 3, 4), (2, 3))
    case("matmul_rhs", "matmul_rhs(x, y, z)", (2, 4), (2, 3), (3, 4))
    case("matmul_rhs", "matmul_rhs(x, y, z)", (2, 2, 4), (2, 2, 3), (3, 4))
    for a in [(2, 3), (2, 2, 3), (3,), (0, 3)]:
        case("nn.dense", "nn.dense(x, y)", a, (4, 3))
    case("nn.dense_weight", "nn.dense_weight(x, y)", (2, 4), (2, 3))
    case("nn.dense_weight", "nn.dense_weight(x, y)", (2, 2, 4), (2, 2, 3))
    for ta, tb in itertools.product([False, True], repeat=2):
        attrs = ", transpose_a=%s, transpose_b=%s" % (ta, tb)
        a, b = (3, 2) if ta else (2, 3), (4, 3) if tb else (3, 4)
        case("nn.matmul", "nn.matmul(x, y%s)" % attrs, a, b)
        if not ta:
            case("nn.matmul", "nn.matmul(x, y%s)" % attrs, (2,) + a, b)
        for m, n in [(2, 2), (1, 2), (2, 1)]:
            case("nn.batch_matmul", "nn.batch_matmul(x, y%s)" % attrs, (m,) + a, (n,) + b)
    for equation, a, b in [("ij,jk->ik", (2, 3), (3, 2)), ("ij,ij->", (2, 3), (2, 3)),
                           ("i,j->ij", (2,), (3,)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
                           ("ij,k->jk", (2, 3), (2,))]:
        for name, body in [
                ("einsum", "einsum((x, y), equation=E)"),
                ("einsum_grad", "einsum_grad(einsum((x, y), equation=E), (x, y), equation=E)"),
                ("einsum_tangent", "einsum_tangent((x, y), (y0, x0), equation=E)"),
                ("einsum_cross", "einsum_cross(einsum((x, y), equation=E), (x, y), (x * x, y * y), "
                 "equation=E)"),
                ("einsum_pairs", "einsum_pairs((x, y), (x * x, sin(y)), equation=E)")]:
            body = body.replace("(y0, x0)", "(x * x, sin(y))").replace("E", '"%s"' % equation)
            case(name, body, a, b)
    case("einsum", 'einsum((x,), equation="ii->i")', (3, 3))
    case("einsum", 'einsum((x,), equation="ij->ji")', (2, 3))
    case("einsum", 'einsum((x, y, z), equation="ij,jk,kl->il")', (2, 2), (2, 3), (3, 2), second=False)




CONVOLUTIONS = [
    ("2d", "", (1, 2, 4, 5), (3, 2, 2, 3)),
    ("2d", ", strides=[2, 1], padding=[1, 0, 2, 1]", (2, 2, 4, 4), (2, 2, 3, 2)),
    ("2d", ", dilation=[2, 1], padding=[1, 1]", (1, 2, 5, 4), (2, 2, 2, 2)),
    ("2d", ", groups=2", (1, 4, 3, 3), (4, 2, 2, 2)),
    ("2d", ", groups=2, strides=[2, 2], padding=[1, 1]", (1, 2, 4, 3), (2, 1, 3, 3)),
    ("2d", ', data_layout="NHWC", kernel_layout="HWIO"', (1, 4, 3, 2), (2, 2, 2, 3)),
    ("2d", ', data_layout="NHWC", kernel_layout="OHWI", strides=[1, 2]', (1, 4, 4, 2), (3, 2, 2, 2)),
    ("1d", ', strides=[2], padding=[1, 0], data_layout="NCW", kernel_layout="OIW"', (2, 2, 5), (3, 2, 2)),
    ("1d", ', groups=2, data_layout="NWC", kernel_layout="WOI"', (1, 3, 2), (2, 2, 1)),
    ("3d", ', dilation=[1, 2, 1], padding=[1, 0, 0], data_layout="NCDHW", kernel_layout="OIDHW"',
     (1, 2, 2, 3, 2), (2, 2, 2, 2, 1)),
]
TRANSPOSED = [
    ("1d", ', strides=[2], padding=[1, 0], output_padding=[1]', (2, 3, 2), (3, 2, 3)),
    ("2d", ', strides=[2, 1], dilation=[1, 2]', (1, 2, 2, 3), (2, 2, 2, 2)),
    ("2d", ', groups=2, data_layout="NHWC", kernel_layout="HWIO"', (1, 2, 2, 4), (2, 2, 4, 1)),
    ("3d", ', strides=[1, 2, 1]', (1, 2, 1, 2, 2), (2, 1, 1, 2, 2)),
]


def windows():
    for sides, attrs, a, b in CONVOLUTIONS:
        case("nn.conv" + sides, "nn.conv%s(x, y%s)" % (sides, attrs), a, b)
        case("nn.conv", "nn.conv(x, y%s)" % attrs, a, b)
        case("nn.conv_data", "nn.conv_data(nn.conv(x, y%s), y, x%s)" % (attrs, attrs), a, b)
        case("nn.conv_weight", "nn.conv_weight(nn.conv(x, y%s), x, y%s)" % (attrs, attrs), a, b)
    for sides, attrs, a, b in TRANSPOSED:
        case("nn.conv%s_transpose" % sides, "nn.conv%s_transpose(x, y%s)" % (sides, attrs), a, b)
    case("nn.conv2d_backward_weight", "nn.conv2d_backward_weight(x, y, kernel_size=[2, 2])",
         (1, 3, 3, 4), (1, 2, 4, 5))
    case("nn.conv2d_backward_weight", "nn.conv2d_backward_weight(x, y, kernel_size=[3, 2], "
         "padding=[1, 1])", (1, 2, 4, 6), (1, 2, 4, 5))
    blocks = 'data_layout="NCHW2c", kernel_layout="OIHW2i2o"'
    for op, more in (("nn.conv2d", ""), ("nn.contrib_conv2d_NCHWc", ', out_layout="NHWC"')):
        case(op, "%s(x, y, %s%s)" % (op, blocks, more), (1, 1, 2, 3, 2), (1, 1, 2, 2, 2, 2))
    case("nn.contrib_depthwise_conv2d_NCHWc", 'nn.contrib_depthwise_conv2d_NCHWc(x, y, groups=2, data_layout="NCHW2c", '
         'kernel_layout="OIHW1i2o")', (1, 1, 2, 3, 2), (1, 1, 2, 2, 1, 2))
    case("nn.conv1d_transpose", 'nn.conv1d_transpose(x, y, data_layout="NCW2c", kernel_layout="IOW2i2o")', (1, 1, 3, 2),
         (1, 1, 2, 2, 2))
    case("nn.conv2d", 'nn.conv2d(x, y, groups=2, data_layout="NCHW2c", kernel_layout="GHWOI")', (1, 2, 2, 3, 2), (2, 2, 2, 1, 2))
    for kind in ("max", "avg"):
        case("nn.%s_pool2d" % kind, 'nn.%s_pool2d(x, pool_size=[2, 2], layout="NCHW2c", out_layout="NHWC")' % kind,
             (1, 1, 2, 3, 2))
    for how in ("max_displacement=1, padding=[1]", "kernel_size=3, max_displacement=2, stride1=2, stride2=2, padding=[3, 2, 2, 3]",
                "max_displacement=1, padding=[1], is_multiply=False"):
        a, b = ("off", (1, 2, 3, 3)), ("unit", (1, 2, 3, 3))
        case("nn.correlation", "nn.correlation(x, y, %s)" % how, a, b)
        for side in ("first", "second"):
            case("nn.correlation_tangent", 'nn.correlation_tangent(z, x, y, %s, side="%s")' % (how, side), a, b, a)
            case("nn.correlation_grad", 'nn.correlation_grad(nn.correlation(x * 2.0, y, %s), x, y, %s, side="%s")'
                 % (how, how, side), a, b)
    kinds = ', kernel_layout="HWIO"'
    for how, more, data, offset, weight, kernel, columns in (
            ("padding=[1]", "", (1, 1, 2, 3), ("unit", (1, 8, 3, 4)), (1, 1, 2, 2), (1, 1, 2, 2), (1, 1, 2, 2, 3, 4)),
            ("strides=[2, 1], padding=[0, 1, 1, 0], dilation=[1, 2], deformable_groups=2", ", groups=2", (1, 4, 3, 3),
             ("off", (1, 8, 2, 2)), (2, 2, 1, 2), (2, 2, 1, 2), (1, 4, 1, 2, 2, 2)),
            ('strides=[1, 2], padding=[1], data_layout="NHWC"', kinds, (1, 2, 3, 2), ("unit", (1, 3, 2, 8)), (2, 2, 2, 1),
             (1, 2, 2, 2), (1, 2, 2, 2, 3, 2))):
        case("nn.deformable_conv2d", "nn.deformable_conv2d(x, y, z, %s%s)" % (how, more), data, offset, weight)
        sides = "zeros(shape=%s, dtype=float64)" % list(kernel)
        for order in ("[0, 0]", "[0, 1]"):
            case("nn.deform_columns", "nn.deform_columns(x, y, %s, %s, %s)" % (sides, order, how), data, offset)
            case("nn.deform_columns_add", "nn.deform_columns_add(x, y, zeros(shape=%s, dtype=float64), %s, %s, %s)"
                 % (list(data), sides, order, how), columns, offset)
    case("nn.contrib_conv2d_winograd_weight_transform", "nn.contrib_conv2d_winograd_weight_transform(x, tile_size=2)",
         (2, 1, 3, 3))
    for depth in (1, 3):
        case("nn.contrib_conv3d_winograd_weight_transform", "nn.contrib_conv3d_winograd_weight_transform(x, tile_size=2)",
             (1, 2, depth, 3, 3))
    case("nn.contrib_conv2d_winograd_nnpack_weight_transform",
         "nn.contrib_conv2d_winograd_nnpack_weight_transform(x, convolution_algorithm=3)", (1, 2, 3, 3))
    widths = "pad_width=[[1, 0], [1, 1]]"
    for mode in ["constant", "edge", "reflect"]:
        how = '%s, pad_mode="%s"' % (widths, mode)
        case("nn.pad", "nn.pad(x, y, %s)" % how, (2, 3), ())
        case("nn.pad_sum", "nn.pad_sum(x, y, %s) * y" % how, (3, 5), (2, 3))
    for mode in ["SYMMETRIC", "REFLECT"]:
        how = '%s, mode="%s"' % (widths, mode)
        case("nn.mirror_pad", "nn.mirror_pad(x, %s)" % how, (2, 3))
        case("nn.mirror_pad_sum", "nn.mirror_pad_sum(x, y, %s) * y" % how, (3, 5), (2, 3))
    for sides, attrs, shape in [
            ("2d", "pool_size=[2, 2]", (1, 2, 3, 4)),
            ("2d", "pool_size=[2, 3], strides=[2, 2], padding=[1, 1]", (1, 1, 4, 5)),
            ("2d", "pool_size=[2, 2], strides=[2, 2], ceil_mode=True", (1, 1, 3, 5)),
            ("2d", "pool_size=[2, 2], dilation=[2, 1]", (1, 1, 4, 3)),
            ("2d", 'pool_size=[2, 2], layout="NHWC"', (1, 3, 3, 2)),
            ("1d", 'pool_size=[2], padding=[1, 0], layout="NCW"', (1, 2, 3)),
            ("3d", 'pool_size=[2, 1, 2], strides=[1, 2, 1], layout="NCDHW"', (1, 1, 2, 3, 3))]:
        case("nn.max_pool" + sides, "nn.max_pool%s(x, %s)" % (sides, attrs), shape)
        case("nn.max_pool_grad", "nn.max_pool_grad(nn.max_pool%s(x * 2.0, %s), y, %s)"
             % (sides, attrs, attrs), shape, shape)
        case("nn.max_pool_pick", "nn.max_pool_pick(x, y, %s)" % attrs, shape, shape)
        for more in ["", ", count_include_pad=True"]:
            case("nn.avg_pool" + sides, "nn.avg_pool%s(x, %s%s)" % (sides, attrs, more), shape)
            case("nn.avg_pool", "nn.avg_pool(x, %s%s)" % (attrs, more), shape)
            case("nn.avg_pool_grad", "nn.avg_pool_grad(nn.avg_pool(x, %s%s), y, %s%s)"
                 % (attrs, more, attrs, more), shape, shape)
    for name in ["max", "avg"]:
        case("nn.%s_pool2d_grad" % name, "nn.%s_pool2d_grad(nn.%s_pool2d(x * 2.0, pool_size=[2, 2]), y, "
             "pool_size=[2, 2])" % (name, name), (1, 1, 3, 4), (1, 1, 3, 4))
        for sides, attrs, shape in [("1d", "output_size=[2]", (2, 1, 5)),
                                    ("2d", "output_size=[3, 2]", (1, 2, 4, 4)),
                                    ("2d", 'output_size=[2, 5], layout="NHWC"', (1, 3, 3, 2)),
                                    ("3d", "output_size=[1, 2, 2]", (1, 1, 2, 3, 4))]:
            case("nn.adaptive_%s_pool%s" % (name, sides),
                 "nn.adaptive_%s_pool%s(x, %s)" % (name, sides, attrs), shape)
        for layout in ["NCHW", "NHWC", "HWNC"]:
            case("nn.global_%s_pool2d" % name, 'nn.global_%s_pool2d(x, layout="%s")' % (name, layout),
                 (2, 3, 2, 2))


def layers():
    case("nn.bias_add", "nn.bias_add(x, y)", (2, 3, 2), (3,))
    case("nn.bias_add", "nn.bias_add(x, y, axis=-1)", (2, 3), (3,))
    for axis in ["", ", axis=0"]:
        case("nn.softmax", "nn.softmax(x%s)" % axis, (2, 3))
        case("nn.log_softmax", "nn.log_softmax(x%s)" % axis, (2, 3))
    case("nn.cross_entropy", "nn.cross_entropy(x, y)", ("pos", (2, 3)), (2, 3))
    case("nn.cross_entropy_with_logits", "nn.cross_entropy_with_logits(x, y)", (2, 3), (2, 3))
    for attrs in ["", ", epsilon=0.1", ", scale=False", ", center=False"]:
        case("nn.layer_norm", "nn.layer_norm(x, y, z%s)" % attrs, (2, 3), (3,), (3,))
        case("nn.batch_norm", "nn.batch_norm(x, y, z, u, v%s)" % attrs, (2, 3, 2), (3,), (3,), (3,),
             ("pos", (3,)))
    case("nn.layer_norm", "nn.layer_norm(x, y, z, axis=0)", (2, 3), (2,), (2,))
    case("nn.batch_norm", "nn.batch_norm(x, y, z, u, v, axis=-1).0", (2, 3), (3,), (3,), (3,),
         ("pos", (3,)))
    case("trilu", "trilu(x, 1)", (3, 4))
    case("trilu", "trilu(x, -1, upper=False)", (2, 3, 2))
    case("reverse_sequence", "reverse_sequence(x, [1, 3])", (2, 4))
    case("sequence_mask", "sequence_mask(x, [1, 3], mask_value=2.0, axis=1)", (2, 4))
    for attrs, diagonal in [("k1=-1, k2=1", (3, 3)), ("k1=1, k2=1", (3,)),
                            ("k1=-1, k2=0, sub_diag_right_align=True", (2, 3))]:
        case("matrix_set_diag", "matrix_set_diag(x, y, %s)" % attrs, (3, 4), diagonal)
        case("matrix_diag_part", "matrix_diag_part(x, y, %s) * y" % attrs, (3, 4), diagonal)
    for how, shape in [("size=[5]", (1, 2, 3)), ('size=[2], method="nearest_neighbor"', (1, 1, 5)),
                       ('size=[4], method="cubic", cubic_exclude=1', (1, 1, 3)),
                       ('size=[3], coordinate_transformation_mode="tf_crop_and_resize", roi=[-0.5, 1.2], '
                        'extrapolation_value=2.0', (1, 1, 4))]:
        case("image.resize1d", "image.resize1d(x, %s)" % how, shape)
        how = how[how.index("]") + 1:] + ', layout="NCW"'
        case("image.resize_like", "image.resize_like(x, y%s) * y" % how, shape, (1, shape[1], 4))
        case("image.resize_grad", "image.resize_grad(x, y%s) * y" % how, (1, shape[1], 4), shape)
    case("image.resize2d", 'image.resize2d(x, size=[3, 2], method="cubic", layout="NHWC")', (1, 2, 4, 2))
    case("image.resize3d", "image.resize3d(x, size=[1, 3, 2])", (1, 1, 2, 2, 3))
    case("image.resize2d", 'image.resize2d(x, size=[3, 2], layout="NCHW2c")', (1, 1, 2, 3, 2))
    case("image.resize_grad", 'image.resize_grad(x, y, layout="NCHW2c") * y', (1, 1, 3, 2, 2), (1, 1, 2, 3, 2))
    case("nn.upsampling", 'nn.upsampling(x, scale_h=2.0, method="bilinear", layout="NCHW2c")', (1, 1, 2, 1, 2))
    case("nn.upsampling", "nn.upsampling(x, scale_h=2.0, scale_w=1.5, align_corners=True)", (1, 1, 2, 2))
    case("nn.upsampling", 'nn.upsampling(x, scale_h=2.0, method="bicubic")', (1, 1, 2, 2))
    case("nn.upsampling3d", 'nn.upsampling3d(x, scale_d=2.0, method="trilinear")', (1, 1, 2, 2, 1))
    case("nn.contrib_dense_pack", "nn.contrib_dense_pack(x, y)", (2, 3), (2, 3, 4))
    case("nn.contrib_dense_pack", "nn.contrib_dense_pack(x, y)", (2, 1, 3), (1, 3, 2))
    case("nn.dropout", "nn.dropout(x).0 * x", (2, 3))
    rois = "[[0.0f64, 0.0, 0.0, 2.6, 1.9], [0.0, 0.7, 0.4, 3.0, 3.0]]"
    how = "pooled_size=[2, 2], spatial_scale=0.9"
    for mode in ('mode="avg"', 'mode="max", sample_ratio=2'):
        case("vision.roi_align", "vision.roi_align(x, %s, %s, %s)" % (rois, how, mode), (1, 2, 3, 4))
        case("vision.roi_align_grad", "vision.roi_align_grad(x, %s, zeros(shape=[1, 1, 3, 4], dtype=float64), %s, %s)"
             % (rois, how, mode), (2, 1, 2, 2))
        case("vision.roi_align_pick", "vision.roi_align_pick(x, %s, zeros(shape=[1, 1, 3, 4], dtype=float64), %s, %s)"
             % (rois, how, mode), (1, 1, 3, 4))
    case("vision.roi_align", 'vision.roi_align(x, %s, %s, layout="NHWC")' % (rois, how), (1, 3, 4, 2))
    case("vision.roi_pool", "vision.roi_pool(x, %s, %s)" % (rois, how), (1, 2, 3, 4))
    case("vision.roi_pool_grad", "vision.roi_pool_grad(x, %s, zeros(shape=[1, 1, 3, 4], dtype=float64), %s)"
         % (rois, how), (2, 1, 2, 2))
    case("vision.roi_pool_pick", "vision.roi_pool_pick(x, %s, zeros(shape=[1, 1, 3, 4], dtype=float64), %s)"
         % (rois, how), (1, 1, 3, 4))
    for method in ("bilinear", "bicubic"):
        for outside in ("zeros", "border", "reflection"):
            how = 'method="%s", padding_mode="%s"' % (method, outside)
            case("image.grid_sample", "image.grid_sample(x, y, %s)" % how, (1, 1, 3, 4), ("off", (1, 2, 1, 3)))
            case("image.grid_sample", "image.grid_sample(x, y, %s, align_corners=False)" % how, (1, 1, 3, 4),
                 ("between", (1, 2, 1, 3)))
    boxes = "[[0.0f64, 0.1, 0.7, 0.9], [0.2, 0.0, 0.3, 1.4]]"
    for layout, shape in (("NCHW", (2, 1, 3, 4)), ("NHWC", (2, 3, 4, 1))):
        how = 'crop_size=[2, 3], layout="%s"' % layout
        case("image.crop_and_resize", "image.crop_and_resize(x, y, [1, 0], %s)" % how, shape, ("unit", (2, 4)))
        case("image.crop_and_resize", 'image.crop_and_resize(x, %s, [1, 1], %s, method="nearest_neighbor")'
             % (boxes, how), shape)
    case("image.crop_and_resize", "image.crop_and_resize(x, y, [0], crop_size=[1, 1], extrapolation_value=2.0)",
         (1, 2, 3, 3), ("between", (1, 4)))
    for how, shape, weight in (
            ("strides=[1, 2], padding=[1, 0, 0, 2]", (1, 2, 3, 4), (2, 2, 3)),
            ('dilations=[2, 1], padding=[1], data_layout="NHWC", kernel_layout="HWI"', (1, 3, 3, 2), (2, 2, 2))):
        case("image.dilation2d", "image.dilation2d(x, y, %s)" % how, shape, weight)
        case("image.dilation2d_pick", "image.dilation2d_pick(x, y, z, u, %s)" % how, shape, weight, shape, weight)
        for part in ("data", "weight"):
            case("image.dilation2d_" + part, "image.dilation2d_%s(image.dilation2d(x, y, %s) * 2.0, x, y, %s)"
                 % (part, how, how), shape, weight)
    case("vision.multibox_prior", "vision.multibox_prior(x) + sum(x)", (1, 1, 2, 1))
    case("vision.yolo_reorg", "vision.yolo_reorg(x, stride=2)", (2, 4, 2, 4))
    for inverse in (False, True):
        case("dft", "dft(x, y, inverse=%s)" % inverse, (2, 5), (2, 5))
    for reduction in ["mean", "sum", "none"]:
        case("nn.nll_loss", 'nn.nll_loss(x, [1, -100, 2], y, reduction="%s")' % reduction, (3, 3), ("pos", (3,)))
    case("nn.nll_loss", "nn.nll_loss(x, [[1, 0]], y)", (1, 2, 2), ("pos", (2,)))
    for attrs in ["num_groups=2", "num_groups=2, axis=-1", "epsilon=0.1, scale=False", "center=False"]:
        case("nn.group_norm", "nn.group_norm(x, y, z, %s)" % attrs, (2, 4, 4), (4,), (4,))
    case("nn.instance_norm", "nn.instance_norm(x, y, z)", (2, 2, 3), (2,), (2,))
    case("group_mean", "group_mean(x, num_groups=2) * x", (2, 4, 2))
    case("nn.l2_normalize", "nn.l2_normalize(x, eps=0.001, axis=[1])", (2, 3))
    case("nn.l2_normalize", "nn.l2_normalize(x, eps=100.0)", (2, 3))
    case("nn.lrn", "nn.lrn(x, size=3, alpha=0.5)", (2, 4))
    case("window_sum", "window_sum(x, size=3, axis=0) * x", (4, 2))
    case("nn.prelu", "nn.prelu(x, y)", (2, 3, 2), (3,))
    for mode in ["DCR", "CRD"]:
        case("nn.depth_to_space", 'nn.depth_to_space(x, block_size=2, mode="%s")' % mode, (1, 8, 1, 2))
        case("nn.space_to_depth", 'nn.space_to_depth(x, block_size=2, layout="NHWC", mode="%s")' % mode, (1, 2, 4, 2))
    case("nn.space_to_batch_nd", "nn.space_to_batch_nd(x, block_shape=[2, 1], paddings=[[1, 0], [0, 1]])", (2, 3, 2))
    case("nn.batch_to_space_nd", "nn.batch_to_space_nd(x, block_shape=[2, 1], crops=[[1, 0], [0, 1]])", (4, 3, 2))
    case("nn.dilate", "nn.dilate(x, strides=[2, 1])", (3, 2))
    case("nn.fifo_buffer", "nn.fifo_buffer(x, y, axis=1)", (2, 1, 2), (2, 3, 2))
    case("nn.fifo_buffer", "nn.fifo_buffer(x, y)", (3,), (3,))
    case("sliding_window", "sliding_window(x, axis=1, window_shape=[2, 2], strides=[1, 2])", (2, 3, 4))
    case("sliding_window_add", "sliding_window_add(x, y, axis=0, window_shape=[2], strides=[1]) * y", (2, 2), (3,))
    key = "random.threefry_key(7i64)"
    case("random.threefry_key", "let k = %s; x * random.uniform(k, 0.0f64, 1.0f64, out_shape=[3]).1"
         % key, (3,))
    case("random.threefry_split", "let k = random.threefry_split(%s).1; "
         "x * random.uniform(k, 0.0f64, 1.0f64, out_shape=[3]).1" % key, (3,))
    case("random.threefry_generate",
         "x * (float64) (random.threefry_generate(%s, out_shape=[3]).1 / 1000000000000000u64)" % key,
         (3,))
    for op in ["random.uniform", "random.normal"]:
        case(op, "%s(%s, x, y, out_shape=[3, 2]).1" % (op, key), (), ("above1", ()))
        case(op, "%s(%s, x, y, out_shape=[0]).1" % (op, key), (), ("above1", ()))


def documented(relay, op):
    """A case made of the documented example: its arguments of floats vary near what they are there."""
    page = subprocess.run([relay, "doc", op], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    m = re.search(r"^  example +%s\((.*?)\)(?:   gives   .*)?$" % re.escape(op), page.stdout, re.M)
    given, depth = [""], 0
    for c in m.group(1) if m else "":
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            given.append("")
        else:
            given[-1] += c
    args, body = [], []
    for text in (g.strip() for g in given):
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d+", text)]
        if not numbers or not re.fullmatch(r"[-\d.,\s\[\]]+", text):
            body.append(text)
            continue
        shape, rest = [], json.loads(text)
        while isinstance(rest, list):
            shape.append(len(rest))
            rest = rest[0]
        name = "the example of %s, %d" % (op, len(args))
        DOMAINS[name] = [(n + 0.02, n + 0.2) for n in numbers]
        body.append("xyzuv"[len(args)])
        args.append((name, tuple(shape)))
    if not args:
        return False
    case(op, "%s(%s)" % (op, ", ".join(body)), *args)
    return True


# ---- running ------------------------------------------------------------------------------------

def item(rng, number, c):
    names = "xyzuv"[:len(c.args)]
    types = ", ".join(type_of(s) for _, s in c.args)
    values = ", ".join(literal(rng, d, s) for d, s in c.args)
    lets = " ".join("let %s = p.%d;" % (n, i) for i, n in enumerate(names))
    unused = " ".join("_" for n in names if not re.search(r"\b%s\b" % n, c.body))
    assert not unused, c.body
    f = "fn (p: (%s,)) { %s { %s } }" % (types, lets, c.body)
    x = "(%s,)" % values
    second = "second(%s, %s, %g)" % (f, x, c.h) if c.second else "(0.0f64, 0.0f64)"
    return 'report("%d", first(%s, %s, %g), %s);\n' % (number, f, x, c.h, second)


def run(relay, text):
    with tempfile.NamedTemporaryFile("w", suffix=".rly", prefix="gradients-") as f:
        f.write(text)
        f.flush()
        p = subprocess.run([relay, "--jit=off", "--diagnostics=short", f.name], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE * SLOW)
    return p.stdout, p.stderr


def judge(c, words):
    errors = [float(w) for w in words]
    limits = [c.adjoint, c.tol, c.adjoint, c.tol]
    said = ["backwards and forwards", "differences", "second order, backwards and forwards",
            "second order, differences"]
    return ["%s: %.3g" % (s, e) for s, e, l in zip(said, errors, limits) if not e <= l]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("relay")
    p.add_argument("--only", default="")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    rng = random.Random(options.seed)
    elementwise()
    binary(rng)
    conversions()
    reductions()
    shapes()
    indexing()
    scans_and_sorts()
    products()
    windows()
    layers()
    failures = []
    ruled = []
    for path in RULES:
        with open(path, encoding="utf-8") as f:
            ruled += re.findall(r"^(?:derivative|tangent) ([\w.]+)\(", f.read(), re.M)
    for op in sorted(set(ruled) - {c.op for c in CASES}):
        if not documented(options.relay, op):
            failures.append("%s has a derivative rule, no case here, and no float in its example" % op)
    cases = [c for c in CASES if options.only in c.op]
    worst = {}
    todo = list(enumerate(cases))
    while todo:
        part, todo = todo[:120], todo[120:]
        items = [(n, c, item(rng, n, c)) for n, c in part]
        out, err = run(options.relay, HARNESS + "".join(text for _, _, text in items))
        got = {int(l.split()[0]): l.split()[1:] for l in out.splitlines()}
        missing = [(n, c, text) for n, c, text in items if n not in got]
        for n, c, text in missing:  # a mistake in one item ends the file: each by itself
            out, err = run(options.relay, HARNESS + text)
            if out:
                got[n] = out.split()[1:]
            else:
                failures.append("%s: %s\n    %s" % (c.op, c.body, err.strip().replace("\n", "\n    ")))
        for n, c, text in items:
            if n not in got:
                continue
            wrong = judge(c, got[n])
            if wrong:
                failures.append("%s: %s on %s: %s" % (c.op, c.body, c.args, "; ".join(wrong)))
            if options.verbose and c.tol == CENTRAL:
                old = worst.get(c.op, [0.0] * 4)
                worst[c.op] = [max(a, float(b)) for a, b in zip(old, got[n])]
    for op in sorted(worst):
        print("%-30s %s" % (op, " ".join("%8.1g" % e for e in worst[op])))
    for f in failures:
        print(f)
    print("%d passed, %d failed, 0 skipped" % (len(cases) - min(len(failures), len(cases)), len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
