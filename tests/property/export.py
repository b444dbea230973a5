#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs written as ONNX models, and read back.

    tests/property/export.py RELAY

Each result of the model is that of the program; where the packages `onnx` and `onnxruntime` are installed, theirs too. What
cannot be exported is told at once, and no file is written.
"""
import importlib.util
import os
import random
import re
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from process import PATIENCE, SLOW, run_program

# The inputs of each program: name, dtype, shape.
PROGRAMS = {
    "elements": ([('x', 'float32', (2, 3))], """
let w = [[0.5, -1.0, 2.0], [1.0, 0.25, -0.5], [0.0, 1.0, 1.0], [-1.0, 2.0, 0.5]];
let b = [0.1, 0.2, 0.3, 0.4];
def layer(x, w, b) { nn.relu(nn.dense(x, w) + b) }
def main[n](x: Tensor[(n, 3), float32]) {
  let h = layer(x, w, b);
  let s = nn.softmax(h * 2.0 - 1.0);
  let v = x * x + 1.5;
  let u = tanh(x);
  (where(s > 0.25, exp(s), -s), sum(h, axis=[1]), mean(h), transpose(h), max(h, axis=[0], keepdims=True),
   min(h, axis=[-1]), reshape(s, newshape=[-1, 2]), nn.matmul(h, w), where(logical_or(h == 0.0,
   logical_not(h < s)), h, s), v ** 2.0,
   log(v) / sqrt(v), sigmoid(x) + erf(x), abs(x) - sign(x), floor(x) * ceil(x), sin(x) + cos(x) * tan(u),
   maximum(x, u) - minimum(x, u), sinh(u) + cosh(u), asin(u) + acos(u) + atan(x), asinh(x) + acosh(v),
   atanh(u * 0.5), nn.log_softmax(h, axis=0), where(x <= u, x, u), where(logical_and(x >= u, x != 0.5), x, u),
   round(x * 3.0), isnan(log(x)), mean(h, axis=[0], exclude=True), 3)
}
"""),
    "mlp": ([('x', 'float32', (3, 4))], """
import nn; import random;
type Net { Net { l1: nn.Linear[4, 8], l2: nn.Linear[8, 3] } }
let net = Net { l1: nn.linear(random.key(1)), l2: nn.linear(random.key(2)) };
def main[n](x: Tensor[(n, 4), float32]) { nn.softmax(nn.apply_linear(net.l2, nn.relu(nn.apply_linear(net.l1,
   x)))) }
"""),
    "cnn": ([('x', 'float32', (2, 1, 12, 12))], """
import nn; import random;
type Net { Net { c1: nn.Convolution[1, 4, 3, 3], norm: nn.BatchNorm[4], c2: nn.Convolution[4, 6, 3, 3],
   out: nn.Linear[96, 10] } }
let net = Net { c1: nn.convolution(random.key(1)), norm: nn.batch_norm_init(),
   c2: nn.convolution(random.key(2)), out: nn.linear(random.key(3)) };
def main(x: Tensor[(2, 1, 12, 12), float32]) {
  let h = nn.relu(nn.apply_batch_norm(net.norm, nn.apply_convolution(net.c1, x)));
  let p = nn.max_pool2d(h, pool_size=[2, 2], strides=[2, 2], padding=[1, 1]);
  let q = nn.avg_pool2d(nn.relu(nn.apply_convolution(net.c2, p)), pool_size=[2, 2], strides=[1, 1],
   padding=[1,1]);
  let z = nn.pad(q, 0.5, pad_width=[[0,0],[0,0],[1,0],[0,1]]);
  (nn.log_softmax(nn.apply_linear(net.out, nn.batch_flatten(q[:, :, :4, 1:]))), nn.global_avg_pool2d(z),
   nn.global_max_pool2d(z))
}
"""),
    "normalisations": ([('x', 'float32', (2, 3, 4)), ('y', 'float32', (5, 3))], """
let g = [0.5, 2.0, 1.5];
let b = [1.0, -1.0, 0.25];
let m = [0.1, 0.2, -0.3];
let v = [1.0, 0.5, 2.0];
let g4 = [0.5, 2.0, 1.5, 1.0];
def main(x: Tensor[(2, 3, 4), float32], y: Tensor[(5, 3), float32]) {
  (nn.batch_norm(x, g, b, m, v, scale=False).0, nn.batch_norm(x, g, b, m, v, center=False, epsilon=0.01).0,
   nn.batch_norm(transpose(x, axes=[0, 2, 1]), g, b, m, v, axis=-1).0, nn.batch_norm(y, g, b, m, v).0,
   nn.layer_norm(x, g, b, axis=1), nn.layer_norm(x, g4, g4, scale=False), nn.layer_norm(y, g, b, center=False))
}
"""),
    "groups": ([('x', 'float32', (2, 4, 3, 5))], """
let g = [0.5, 2.0, 1.5, 1.0];
let b = [1.0, -1.0, 0.25, 0.0];
def main(x: Tensor[(2, 4, 3, 5), float32]) {
  (nn.group_norm(x, g, b, num_groups=2), nn.group_norm(x, g, b, num_groups=4, scale=False, epsilon=0.01),
   nn.instance_norm(x, g, b), nn.instance_norm(transpose(x, axes=[0, 2, 3, 1]), g, b, axis=-1, center=False),
   nn.lrn(x, size=3, bias=1.5, alpha=0.1), nn.l2_normalize(x, eps=0.001, axis=[1]), nn.fast_softmax(x, axis=1),
   nn.mirror_pad(x, mode="REFLECT", pad_width=[[0, 0], [0, 0], [1, 2], [2, 1]]))
}
"""),
    "images": ([('x', 'float32', (1, 4, 4, 6)), ('w', 'float32', (4, 2, 3, 3)), ('v', 'float32', (4, 1, 2, 2))], """
def main(x: Tensor[(1, 4, 4, 6), float32], w: Tensor[(4, 2, 3, 3), float32], v: Tensor[(4, 1, 2, 2), float32]) {
  (nn.conv2d_transpose(x, w, strides=[2, 2], padding=[1, 1], output_padding=[1, 1], channels=2, kernel_size=[3, 3]),
   nn.conv2d_transpose(x, v, strides=[1, 2], padding=[0, 1, 1, 0], groups=2, channels=2, kernel_size=[2, 2]),
   nn.depth_to_space(x, block_size=2), nn.depth_to_space(x, block_size=2, mode="CRD"), nn.space_to_depth(x, block_size=2),
   nn.upsampling(x, scale_h=2.0, scale_w=3.0), nn.upsampling(x, scale_h=2.0, scale_w=2.0, method="bilinear"),
   nn.upsampling(x, scale_h=2.0, scale_w=2.0, method="bilinear", align_corners=True),
   image.resize2d(x, size=[7, 5]), image.resize2d(x, size=[3, 9], method="nearest_neighbor", rounding_method="floor",
   coordinate_transformation_mode="asymmetric"),
   image.resize2d(x, size=[7, 5], method="nearest_neighbor"),
   image.resize2d(x, size=[6, 9], method="cubic", cubic_alpha=-0.75),
   image.resize2d(x, size=[6, 9], coordinate_transformation_mode="align_corners"),
   nn.adaptive_avg_pool2d(x, output_size=[2, 3]), nn.adaptive_max_pool2d(x, output_size=[1, 1]))
}
"""),
    "places": ([('x', 'float32', (3, 4)), ('i', 'int32', (2, 4)), ('n', 'int32', ())], """
let rows = [0, 2, 1];
let at = [[0, 1, 2], [3, 0, 1]];
def main(x: Tensor[(3, 4), float32], i: Tensor[(2, 4), int32], n: int32) {
  let j = mod(abs(i), 3);
  (sort(x), sort(x, axis=0, is_ascend=False), argsort(x), topk(x, k=2).0, topk(x, k=2).1, topk(x, k=1, axis=0, is_ascend=True, ret_type="values"),
   topk(j, ret_type="indices", dtype=int64), reverse(x, axis=1), reverse(x), gather(x, j, axis=0),
   gather(x, [[-1], [0], [2]], axis=1), gather_nd(x, at), gather_nd(x, [rows]), scatter_nd(x, at, [1.0, 2.0, 3.0], mode="add"),
   scatter_elements(x, j, x[:2], axis=0, reduction="add"), scatter_elements(x, [[1], [0], [3]], [[5.0], [6.0], [7.0]], axis=1),
   one_hot(j, 1.0, 0.5, depth=3), one_hot(i, 2, -1, depth=2, axis=0), trilu(x, 1), trilu(x, -1, upper=False),
   repeat(x, repeats=3, axis=1), repeat(x, repeats=2), ndarray_size(x), all(x > -9.0, axis=[1]), any(x > 0.5),
   logsumexp(x, axis=[1]), logsumexp(x * 100.0), std(x, axis=[0]), variance(x, mean(x, axis=[1], keepdims=True), axis=[1]),
   variance(x, mean(x, keepdims=True), unbiased=True), std(x, axis=[1], keepdims=True, unbiased=True),
   sum(arange(abs(n) + 2)))
}
"""),
    "lstm": ([('x', 'float32', (4, 2, 3)), ('w', 'int32', (2,))], """
import nn; import random;
let cell: nn.Lstm[3, 5] = nn.lstm(random.key(1));
let g: nn.Gru[3, 5] = nn.gru(random.key(2));
let words: nn.Embedding[7, 3] = nn.embedding(random.key(4));
def main(x: Tensor[(4, 2, 3), float32], w: Tensor[(2,), int32]) {
  let h0 = zeros(shape=[2, 5]);
  let (h, c) = foldl(fn (s, t) { nn.apply_lstm(cell, s, t) }, (h0, h0), list.rows(x));
  let k = loop(3, fn (s) { nn.apply_gru(g, s, x[0]) }, h);
  (h, c, k, nn.apply_embedding(words, w))
}
"""),
    "attn": ([('x', 'float32', (2, 5, 6))], """
import nn; import random;
let a: nn.Attention[2, 3, 6] = nn.attention(random.key(1));
let norm: nn.LayerNorm[6] = nn.layer_norm_init();
def main(x: Tensor[(2, 5, 6), float32]) {
  let y = nn.apply_layer_norm(norm, x + nn.apply_attention(a, x, x, nn.causal_mask()));
  (y, nn.gelu(y), einsum((x, x), equation="bij,bkj->bik"))
}
"""),
    "ctl": ([('x', 'float32', (3,)), ('i', 'int32', ())], """
type Shape { Circle(float32), Square(float32) }
let shapes = list[Circle(2.0), Square(3.0)];
def area(s) { match (s) { Circle(r) => 3.14 * r * r, Square(a) => a * a } }
def power(x, n) { if (n == 0) { ones_like(x) } else { x * power(x, n - 1) } }
def main(x: Tensor[(3,), float32], i: int32) {
  let y = if (x[0] > 0.0) { (x + 1.0, power(x, 3)) } else { (-x, x * 0.5) };
  let total = list.sum(map(area, shapes));
  let n = shape_of(x)[0];
  (y.0, y.1, x * total, x[i], x[::-1], x[None, :], argmax(x),
   if (i == 1) { if (x[1] > 1.0) { x[0] } else { x[2] } } else { 7.0 },
   stack((x, x), axis=1), concatenate((x, x)), [x[0], x[1]], cumsum(x, axis=0), take(x, [i, 9, -1], axis=0),
   max(x), cast(x, dtype=int32), reshape(x, newshape=[n, 1]), logical_not(x > 1.0), x != 2.0,
   match ((i, x[0] > 0.0)) { (0, True) => x, (1, _) => -x, (k, _) when k > 5 => x * 2.0, (_, b) => if (b) { x + 3.0 } else { x } },
   (match (i - 1) { 0 => (1, x), k => (k, x * 0.5) }).1, match (x[1]) { 2.5 => 1, _ => 2 },
   clip(x, a_min=0.0, a_max=1.0), split(concatenate((x, x)), indices_or_sections=[1, 2]).1)
}
"""),
    "dyn": ([('x', 'float32', (3, 5, 6)), ('m', 'bool', (3,)), ('s', 'float32', (3, 4))], """
import nn; import random;
let a: nn.Attention[2, 3, 6] = nn.attention(random.key(1));
def main[n](x: Tensor[(n, 5, 6), float32], m: Tensor[(n,), bool], s: Tensor[(3, 4), float32]) {
  let y = nn.apply_attention(a, x, x, zeros(shape=[5, 5]));
  let k = shape_of(x)[0];
  (y, reshape(x, newshape=[k * 5, 6]), zeros(shape=[n, 2]) + 1.0, broadcast_to([1.0, 2.0], shape=[n, 2]),
   nn.dense(s, s), where(m, 1, 2), full(2.5, shape=[n]), s @@ transpose(s), ones(shape=[2, 3]), sum(s, axis=[0,
   1]), prod(s, axis=[1]), argmin(s, axis=[1], keepdims=True), mod(7, k), nn.leaky_relu(s), nn.prelu(s, [0.1,
   0.2, 0.3, 0.4]), rsqrt(abs(s)), tile(s, reps=[2]), squeeze(expand_dims(s, axis=1), axis=[1]),
   strided_slice(s, begin=[1], end=[3]), cast(k, dtype=float32))
}
"""),
    "loops": ([('x', 'float32', (4, 2, 3)), ('n', 'int32', ())], """
import nn; import random;
let cell: nn.Lstm[3, 5] = nn.lstm(random.key(1));
def main[t](x: Tensor[(t, 2, 3), float32], n: int32) {
  let h0 = zeros(shape=[2, 5]);
  let (h, c) = foldl(fn (s, row) { nn.apply_lstm(cell, s, row) }, (h0, h0), list.rows(x));
  let k = abs(n) + 2;
  let (grown, steps) = while(fn ((y, i)) { sum(y) < 50.0 && i < 20 }, fn ((y, i)) { (y * 1.5 + h[0, 0], i + 1) }, ([1.0, 2.0], 0));
  let wide = loop(k, fn (y) { concatenate((y, y * 0.5)) }, [1.0]);
  (h, c, loop(k, fn (y) { tanh(y) + h[0] }, c[0]), grown, steps, wide, tensor.of(map(fn (row) { sum(row, axis=[1]) * 2.0 }, list.rows(x))),
   loop(k, fn ((a, b)) { (b, a + b) }, (1, 1)).0, loop(k, fn (y) { loop(2, fn (z) { z + 1.0 }, y) }, 0.0), loop(k, fn (y) { loop(k, fn (z) { z + x[0, 0, 0] }, y) }, 0.0))
}
"""),
    "gradient of layers": ([('x', 'float32', (5, 4)), ('y', 'float32', (5, 3))], """
import nn; import optim; import random;
type Net { Net { l1: nn.Linear[4, 8], l2: nn.Linear[8, 3] } }
let net = Net { l1: nn.linear(random.key(1)), l2: nn.linear(random.key(2)) };
def loss(net, x, y) { mean((nn.apply_linear(net.l2, nn.relu(nn.apply_linear(net.l1, x))) - y) ** 2.0) }
def main[n](x: Tensor[(n, 4), float32], y: Tensor[(n, 3), float32]) {
  let (l, (d, dx, _)) = grad(loss)(net, x, y);
  let (after, _) = optim.adam(0.1, net, d, optim.adam_init(net));
  (l, d.l1.w, d.l2.b, dx, after.l1.w, after.l2.b)
}
"""),
    "gradient of a loop": ([('x', 'float32', (4, 2, 3))], """
import nn; import random;
let cell: nn.Lstm[3, 5] = nn.lstm(random.key(1));
def run(cell, x) { let h0 = zeros(shape=[2, 5]); foldl(fn (s, t) { nn.apply_lstm(cell, s, t) }, (h0, h0), list.rows(x)) }
def main(x: Tensor[(4, 2, 3), float32]) {
  let (l, (d, dx)) = grad(fn (c, x) { mean(run(c, x).0 ** 2) })(cell, x);
  (l, d.w, d.b, dx)
}
"""),
    "gradient of images": ([('x', 'float32', (2, 4, 9, 8))], """
let a = reshape(sin(arange(0.0, 144.0, 1.0)), newshape=[8, 2, 3, 3]);
let b = reshape(cos(arange(0.0, 96.0, 1.0)), newshape=[3, 8, 2, 2]);
let g = [0.5, 2.0, 1.5, 1.0];
let v = [1.0, -1.0, 0.25, 0.0];
def loss(x: Tensor[(2, 4, 9, 8), float32], a: Tensor[(8, 2, 3, 3), float32], b, g, v) {
  let h = nn.group_norm(x, g, v, num_groups=2) + nn.batch_norm(x, g, v, v, g).0;
  let c = nn.conv2d(h, a, strides=[2, 1], padding=[1, 2], groups=2, channels=8, kernel_size=[3, 3]);
  let p = nn.avg_pool2d(c, pool_size=[2, 3], strides=[1, 2], padding=[1, 1, 0, 1]);
  let q = nn.conv2d(nn.pad(p, 0.0, pad_width=[[0, 0], [0, 0], [1, 0], [0, 2]]), b, dilation=[2, 1], channels=3, kernel_size=[2, 2]);
  mean(nn.max_pool2d(q, pool_size=[2, 2], strides=[1, 2], padding=[1, 0]) ** 3.0) + sum(nn.global_avg_pool2d(q) ** 2.0)
    + sum(nn.global_max_pool2d(c)) + mean(nn.avg_pool2d(c, pool_size=[2, 2], padding=[1, 1], count_include_pad=True) ** 2.0)
}
def main(x: Tensor[(2, 4, 9, 8), float32]) {
  let (l, (dx, da, db, dg, dv)) = grad(loss)(x, a, b, g, v);
  (l, dx, da, db, dg, dv)
}
"""),
    "gradient of elements": ([('x', 'float32', (3, 4)), ('y', 'float32', (4,))], """
def f(x, y) {
  sum(sin(x) * exp(y) + tanh(x) / (y * y + 1.0) + sqrt(x * x + 1.0) - log(y * y + 2.0) + abs(x) + sigmoid(y) + erf(x)
    + maximum(x, y) + x ** 2.0 + clip(x, a_min=-0.5, a_max=0.5) + atan(x)) + max(x) + logsumexp(y) + sum(std(x, axis=[1]))
    + sum(prod(x, axis=[1])) + sum(variance(x, mean(x, axis=[0], keepdims=True), axis=[0]))
}
def main(x: Tensor[(3, 4), float32], y: Tensor[(4,), float32]) {
  let (l, (dx, dy)) = grad(f)(x, y);
  let (_, t) = jvp(fn (x) { log(1.0 + exp(x)) * sum(x, axis=[1], keepdims=True) })(x, x);
  (l, dx, dy, t, deriv(fn (a) { a * a * sin(a) })(y[0]), grad(fn (y) { sum(strong(y) ** 2.0) })(y).1.0)
}
def strong(y) { where(y > 100.0, y / 0.0, y) }
"""),
    "gradient of places": ([('x', 'float32', (3, 4)), ('i', 'int32', (2,))], """
def f(x, i) {
  sum(take(x, i, axis=0) ** 2.0) + sum(x[1:, ::2] ** 3.0) + sum(x[1] * x[i[0]]) + sum(sort(x, axis=1)[:, 0])
    + sum(concatenate((x, x * x), axis=1)[:, 3:6]) + sum(stack((x, 2.0 * x), axis=1) ** 2.0) + sum(transpose(x) @@ x)
    + sum(x @@ x[0]) + sum(x[:, 0] @@ x) + sum(x[0] @@ x[1]) + sum(tile(x, reps=[1, 2])[:, 2:] ** 2.0)
    + sum(repeat(x, repeats=2, axis=0)[1:] ** 2.0) + sum(strided_slice(x, begin=[0, 1], end=[2, 3]) ** 2.0)
    + sum(cumsum(x, axis=1) ** 2.0) + sum(split(x, indices_or_sections=2, axis=1).1 ** 3.0) + sum(transpose(x, axes=[1, 0])[0] ** 2.0)
    + sum(gather_nd(x, [[0, 2], [1, 1]]) ** 2.0) + sum((expand_dims(x, axis=1) @@ expand_dims(transpose(x), axis=0)) ** 2.0)
}
def main(x: Tensor[(3, 4), float32], i: Tensor[(2,), int32]) {
  let (l, (dx, _)) = grad(f)(x, mod(abs(i), 3));
  (l, dx)
}
"""),
}
REFUSED = """
type P { P { w: Tensor[(3,), float32], n: int32 } }
let r = ref(1.0);
def again(x: Tensor[(3,), float32]) -> Tensor[(3,), float32] { again(x) + 1.0 }
def main(x: Tensor[(3,), float32], q: P) {
  r := 2.0;
  (cumprod(x), match (list.rows(x[:q.n])) { Cons(y, _) => y, Nil => 0.0 }, if (x[0] > 1.0) { Some(x) } else { None }, loop(1.0, x),
   grad(fn (y) { let c = hd(map(fn (z) { ref(z) }, list[y])); c := !c * y; sum(!c) })(x).0,
   grad(fn (y) { let c = hd(map(fn (z) { ref(fn (v) { v * z }) }, list[y])); sum((!c)(y)) })(x).0, again(x))
}
def loop(n, x) { grad(fn (x) { sum(x) * n })(x) }
"""
FORMATS = {"float32": ("<f4", "f"), "int32": ("<i4", "i"), "int64": ("<i8", "q"), "bool": ("|b1", "?")}


class Failed(Exception):
    pass


def run(relay, args, folder):
    status, _, said = run_program([relay, "--jit=off"] + args, b"", PATIENCE * SLOW, folder)
    if status not in (0, 1) or "bug in Relay" in said or "Sanitizer" in said or "runtime error:" in said:
        raise Failed("relay %s: status %s\n%s" % (" ".join(args)[:200], status, said[-2000:]))
    return status, said


def succeed(relay, args, folder):
    status, said = run(relay, args, folder)
    if status:
        raise Failed("relay %s: %s" % (" ".join(args)[:200], said))


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def write_npy(path, dtype, shape, values):
    descr, code = FORMATS[dtype]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                struct.pack("<%d%s" % (len(values), code), *values))


def read_npy(path):
    """Its dtype, its sizes, its numbers."""
    with open(path, "rb") as f:
        data = f.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    header = data[10:start].decode()
    descr, code = next(f for f in FORMATS.values() if "'%s'" % f[0] in header)
    count = (len(data) - start) // struct.calcsize(code)
    sizes = re.findall(r"\d+", header[header.index("'shape'"):].split(")")[0])
    return descr, sizes, struct.unpack("<%d%s" % (count, code), data[start:])


def draw(dtype, shape):
    r, count = random.Random(1), 1
    for size in shape:
        count *= size
    return [r.uniform(-2, 2) if dtype == "float32" else 1 for _ in range(count)]


def same(a, b):
    near = lambda p, q: p == q or (p != p and q != q) or abs(p - q) <= 1e-5 * max(1, abs(p))
    return a[:2] == b[:2] and len(a[2]) == len(b[2]) and all(map(near, a[2], b[2]))


def check_peer(folder, name, inputs, results):
    """ONNX Runtime's results, where it is installed."""
    import numpy
    import onnx
    import onnxruntime
    path = os.path.join(folder, name + ".onnx")
    onnx.checker.check_model(path, full_check=True)
    feed = {i: numpy.load(os.path.join(folder, i + ".npy")) for i, _, _ in inputs}
    found = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
    for i, (mine, theirs) in enumerate(zip(results, found)):
        numpy.save(os.path.join(folder, "peer.npy"), theirs)
        if not same(mine, read_npy(os.path.join(folder, "peer.npy"))):
            raise Failed("%s: result %d is %s, and %s in ONNX Runtime" % (name, i, mine, theirs))


def check_program(relay, folder, name, inputs, text, has_peer):
    model = name + ".onnx"
    write(folder, name + ".rly", text)
    succeed(relay, ["convert", name + ".rly", "-o", model], folder)
    for i, dtype, shape in inputs:
        write_npy(os.path.join(folder, i + ".npy"), dtype, shape, draw(dtype, shape))
    files = ["--input=%s=%s.npy" % (i, i) for i, _, _ in inputs]
    succeed(relay, ["run", model] + files + ["--save=" + name], folder)
    outputs = sorted(os.listdir(os.path.join(folder, name)), key=lambda f: (len(f), f))
    lets = "".join('let in_%s = load("%s.npy");\n' % (i, i) for i, _, _ in inputs)
    call = "let r = main(%s);\n" % ", ".join("in_" + i for i, _, _ in inputs)
    saves = "".join('save(r%s, "result%d.npy");\n' % (".%d" % i if len(outputs) > 1 else "", i)
                    for i in range(len(outputs)))
    write(folder, "saves.rly", text + lets + call + saves)
    succeed(relay, ["saves.rly"], folder)
    results = [read_npy(os.path.join(folder, "result%d.npy" % i)) for i in range(len(outputs))]
    for i, output in enumerate(outputs):
        back = read_npy(os.path.join(folder, name, output))
        if not same(results[i], back):
            raise Failed("%s: result %d is %s, and %s of the model read back" % (name, i, results[i], back))
    if has_peer:
        check_peer(folder, name, inputs, results)


def check_refused(relay, folder):
    write(folder, "refused.rly", REFUSED)
    _, said = run(relay, ["--diagnostics=short", "convert", "refused.rly", "-o", "refused.onnx"], folder)
    for words in ("a reference", "no counterpart of `cumprod`", "parameter `q` is no tensor",
                  "data of two forms", "a derivative that writes to cells", "`grad` that is not code: ", "calls nested more than 1000 deep"):
        if words not in said:
            raise Failed("relay convert does not say `%s`:\n%s" % (words, said))
    if os.path.exists(os.path.join(folder, "refused.onnx")):
        raise Failed("relay convert wrote a model that it refused")
    write(folder, "nothing.rly", "let x = 1;")
    _, said = run(relay, ["convert", "nothing.rly", "-o", "nothing.onnx"], folder)
    if "no function `main`" not in said:
        raise Failed("no `main`: " + said)


def check_nothing_half(relay, folder):
    """A model that cannot be written leaves nothing."""
    place = os.path.join(folder, "taken")
    os.makedirs(os.path.join(place, "m.onnx"))
    _, said = run(relay, ["convert", "mlp.rly", "-o", os.path.join(place, "m.onnx")], folder)
    if "error[R0505]" not in said or os.listdir(place) != ["m.onnx"]:
        raise Failed("convert over a folder leaves %s: %s" % (os.listdir(place), said))


def main():
    relay = os.path.abspath(sys.argv[1])
    has_peer = all(importlib.util.find_spec(m) for m in ("numpy", "onnx", "onnxruntime"))
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        checks = [lambda n=n, i=i, t=t: check_program(relay, folder, n, i, t, has_peer) for n, (i, t) in PROGRAMS.items()]
        for check in checks + [lambda: check_refused(relay, folder), lambda: check_nothing_half(relay, folder)]:
            try:
                check()
                passed += 1
            except Failed as wrong:
                print("FAILED %s" % wrong)
                failed += 1
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
