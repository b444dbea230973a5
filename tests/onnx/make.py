# SPDX-License-Identifier: Apache-2.0
"""Writes the models that the goldens of tests/golden/interchange read, good ones and damaged ones, into the folder of
its argument. It needs no package: a model is protocol buffers (field numbers of onnx.proto), written here."""
import os
import struct
import sys

FLOAT, UINT8, INT32, INT64, STRING, BOOL, FLOAT8 = 1, 2, 6, 7, 8, 9, 17


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(*pairs):
    return b"".join(field(n, v) for n, v in pairs)


def tensor(name, dtype, dims, raw):
    return fields(*[(1, d) for d in dims], (2, dtype), (8, name), (9, raw))


def floats(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack("<%df" % len(values), *values))


def ints(name, dims, values):
    return tensor(name, INT64, dims, struct.pack("<%dq" % len(values), *values))


def external(name, dtype, dims, **keys):
    entries = [(13, fields((1, k), (2, str(v)))) for k, v in keys.items()]
    return fields(*[(1, d) for d in dims], (2, dtype), (8, name), *entries, (14, 1))


def value(name, dtype=None, dims=None):
    if dtype is None:
        return fields((1, name))
    shape = [] if dims is None else \
        [(2, b"".join(field(1, fields((1, d) if isinstance(d, int) else (2, d))) for d in dims))]
    return fields((1, name), (2, field(1, fields((1, dtype), *shape))))


def attribute(name, v):
    if isinstance(v, bytes):  # a graph
        return fields((1, name), (6, v), (20, 5))
    if isinstance(v, tuple):  # a tensor
        return fields((1, name), (5, v[0]), (20, 4))
    if isinstance(v, str):
        return fields((1, name), (4, v), (20, 3))
    if isinstance(v, float):
        return fields((1, name), (2, v), (20, 1))
    if isinstance(v, int):
        return fields((1, name), (3, v), (20, 2))
    return fields((1, name), *[(8, i) for i in v], (20, 7))


def node(op, inputs, outputs, name="", domain="", **attributes):
    return fields(*[(1, i) for i in inputs.split()], *[(2, o) for o in outputs.split()], (3, name), (4, op),
                  *[(5, attribute(k, v)) for k, v in attributes.items()], *([(7, domain)] if domain else []))


def graph(name, nodes, inputs, outputs, initializers=()):
    return fields(*[(1, n) for n in nodes], (2, name), *[(5, t) for t in initializers], *[(11, i) for i in inputs],
                  *[(12, o) for o in outputs])


def model(g, opset=17):
    return fields((1, 8), (2, "make.py"), (7, g), (8, fields((1, ""), (2, opset))))


def simple(nodes, initializers=(), opset=17, dims=("batch", 2)):
    """x: float32 of dims; y."""
    return model(graph("test", nodes, [value("x", FLOAT, dims)], [value("y", FLOAT)], initializers), opset)


def deep(n):
    g = graph("g", [], [], [])
    for _ in range(n):
        g = graph("g", [node("If", "c", "y", then_branch=g)], [], [])
    return g


def models():
    mlp = [node("Gemm", "x fc1.weight fc1.bias", "/fc1/out", "/fc1/Gemm", transB=1),
           node("Relu", "/fc1/out", "/act/out", "/act/Relu"),
           node("Gemm", "/act/out fc2.weight fc2.bias", "y", "/fc2/Gemm", transB=1)]
    weights = [floats("fc1.weight", [3, 2], [1, 0, 0, 1, 1, -1]), floats("fc1.bias", [3], [0, 0.5, 0]),
               floats("fc2.weight", [1, 3], [1, 2, -1]), floats("fc2.bias", [1], [0.25])]
    yield "mlp", simple(mlp, weights)
    # A reshape to what the graph computes about the shape.
    yield "shapes", simple(
        [node("Shape", "x", "s"), node("Gather", "s zero", "n", axis=0), node("Unsqueeze", "n axes", "nn"),
         node("Concat", "nn rest", "shape", axis=0), node("Reshape", "x shape", "y")],
        [ints("zero", [], [0]), ints("axes", [1], [0]), ints("rest", [2], [-1, 1])])
    # How much is padded, as PyTorch's exporter has it computed: [1, 0, 2, 3] with zeros, last axis first, turned around.
    yield "pads", simple(
        [node("ConstantOfShape", "two", "zeros", value=(ints("", [1], [0]),)), node("Concat", "given zeros", "all", axis=0),
         node("Reshape", "all pairs", "p"), node("Slice", "p last least first back", "q"), node("Transpose", "q", "r", perm=[1, 0]),
         node("Reshape", "r flat", "s"), node("Cast", "s", "pads", to=INT64), node("Pad", "x pads", "y", mode="constant")],
        [ints("two", [1], [2]), ints("given", [2], [1, 2]), ints("pairs", [2], [-1, 2]), ints("flat", [1], [-1]),
         ints("first", [1], [0]), ints("last", [1], [-1]), ints("least", [1], [-2 ** 63 + 1]), ints("back", [1], [-1])])
    # Sizes to which a tensor is expanded: -1 keeps that of the tensor, which is not known before it runs.
    yield "expand", simple(
        [node("Shape", "x", "s"), node("Gather", "s zero", "n", axis=0), node("Unsqueeze", "n axes", "nn"),
         node("Concat", "three nn kept", "wanted", axis=0), node("Equal", "wanted kept", "is_kept"),
         node("Shape", "wanted", "many"), node("ConstantOfShape", "many", "ones", value=(ints("", [1], [1]),)),
         node("Where", "is_kept ones wanted", "shape"), node("Expand", "x shape", "y")],
        [ints("zero", [], [0]), ints("axes", [1], [0]), ints("three", [1], [3]), ints("kept", [1], [-1])])
    yield "points", model(graph("points", [node("GridSample", "x points", "y", align_corners=1)], [value("x", FLOAT, [1, 1, 2, 2])],
                                [value("y", FLOAT)], [floats("points", [1, 1, 2, 2], [-1, 1, 0, 0])]))
    # Causal attention of two heads with a padded mask, over queries turned by their places.
    turn = [floats("cos", [4, 1], [1, 0.5, -0.5, 0.25]), floats("sin", [4, 1], [0, 0.75, 0.25, -0.5]), ints("at", [1, 3], [0, 2, 1])]
    yield "attention", model(graph("attention", [
        node("RotaryEmbedding", "x cos sin at", "r", num_heads=2),
        node("Attention", "r x x mask", "y", q_num_heads=2, kv_num_heads=2, is_causal=1, softcap=4.0)],
        [value("x", FLOAT, [1, 3, 4])], [value("y", FLOAT)], turn + [tensor("mask", BOOL, [3, 2], b"\1\1\1\1\0\0")]), opset=24)
    yield "pieces", model(graph("pieces", [
        node("LpPool", "x", "p", kernel_shape=[2, 2], pads=[1, 0, 0, 0]), node("Cast", "p", "u", to=UINT8),
        node("ConvInteger", "u kernel one", "y", pads=[1, 1, 0, 0]), node("Cast", "y", "v", to=UINT8),
        node("QLinearConv", "v half one k half zero half one", "z"), node("HannWindow", "five", "window"),
        node("BitCast", "window", "bits", to=INT32), node("SwiGLU", "x x", "s", alpha=2.0),
        node("NonMaxSuppression", "boxes scores most cut", "chosen")],
        [value("x", FLOAT, [1, 1, 3, 3]), value("boxes", FLOAT, [1, "n", 4]), value("scores", FLOAT, [1, 1, "n"])],
        [value(n) for n in ("p", "y", "z", "window", "bits", "s", "chosen")],
        [tensor("kernel", UINT8, [1, 1, 2, 2], bytes([1, 2, 3, 4])), tensor("k", UINT8, [1, 1, 1, 1], b"\2"),
         tensor("one", UINT8, [], b"\1"), tensor("zero", UINT8, [], b"\0"), floats("half", [], [0.5]), ints("five", [], [5]),
         ints("most", [1], [2]), floats("cut", [1], [0.5])]), opset=28)
    yield "signal", model(graph("signal", [
        node("CenterCropPad", "x wanted", "c"), node("Unsqueeze", "x last", "u"), node("DFT", "u four first", "d", onesided=1),
        node("DFT", "d four first", "back", onesided=1, inverse=1)], [value("x", FLOAT, [3, 3])],
        [value(n) for n in ("c", "d", "back")],
        [ints("wanted", [2], [2, 6]), ints("last", [1], [-1]), ints("four", [], [4]), ints("first", [], [0])]), opset=21)
    yield "grids", model(graph("grids", [
        node("AffineGrid", "x size", "g"), node("AffineGrid", "x size", "h", align_corners=1)], [value("x", FLOAT, ["n", 2, 3])],
        [value("g"), value("h")], [ints("size", [4], [1, 1, 2, 3])]), opset=22)
    yes = graph("yes", [node("Add", "x x", "t")], [], [value("t", FLOAT, [2])])
    no = graph("no", [node("Neg", "x", "e")], [], [value("e", FLOAT, [2])])
    yield "if", simple([node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
                        node("If", "c", "y", then_branch=yes, else_branch=no)], [floats("zero", [], [0])], dims=[2])
    body = graph("body", [node("Mul", "a x", "b"), node("Identity", "c", "d")],
                 [value("i", INT64, []), value("c", BOOL, []), value("a", FLOAT, [2])],
                 [value("d", BOOL, []), value("b", FLOAT, [2]), value("b", FLOAT, [2])])
    yield "loop", model(graph("powers", [node("Loop", "n go x", "y all", body=body)], [value("x", FLOAT, [2])],
                              [value("y", FLOAT), value("all", FLOAT)],
                              [ints("n", [], [3]), tensor("go", BOOL, [], b"\1")]))
    step = graph("step", [node("Add", "s e", "t"), node("Identity", "t", "u")],
                 [value("s", FLOAT, []), value("e", FLOAT, [])], [value("t", FLOAT, []), value("u", FLOAT, [])])
    yield "scan", model(graph("sums", [node("Scan", "zero x", "last y", body=step, num_scan_inputs=1)],
                              [value("x", FLOAT, [3])], [value("y", FLOAT)], [floats("zero", [], [0])]))
    yield "sequence", simple([node("SequenceConstruct", "x x", "s"), node("SequenceInsert", "s one", "t"),
                              node("ConcatFromSequence", "t", "y", axis=0)], [floats("one", [1], [1])], dims=[2])
    # What is missing is listed, all of it.
    yield "missing", simple([node("Relu", "x", "a"), node("StringNormalizer", "a", "b", "words"),
                             node("Abs", "a", "c", "odd", flavour=1), node("FancyOp", "c", "d", "f", "my.domain"),
                             node("StringNormalizer", "d", "e", "more"), node("Cast", "a", "y", "eight", to=FLOAT8)])
    yield "order", simple([node("Add", "x b", "a", "first"), node("Neg", "a", "b", "second"), node("Abs", "b", "y")])
    yield "computed", simple([node("Abs", "k", "kk"), node("Tile", "x kk", "y", "again")], [ints("k", [65, 1], [1] * 65)])
    yield "strings", model(graph("s", [node("Identity", "x", "y")], [value("x", STRING, [1])], [value("y", STRING)]))
    yield "no_rank", model(graph("s", [node("Abs", "x", "y")], [value("x", FLOAT)], [value("y", FLOAT)]))
    yield "old", simple([node("Abs", "x", "y")], opset=6)
    yield "names", model(graph("names", [node("Add", "1/let tf.add", "%x", "a b"), node("Mul", "%x add", "weights")],
                               [value("1/let", FLOAT, ["let", 2])], [value("weights", FLOAT)],
                               [floats("tf.add", [2], [1, 2]), floats("add", [2], [3, 4])]))
    add = [node("Add", "x w", "y")]
    yield "outside", simple(add, [external("w", FLOAT, [2], location="../secret.bin")])
    yield "absolute", simple(add, [external("w", FLOAT, [2], location="/etc/passwd")])
    yield "absent", simple(add, [external("w", FLOAT, [2], location="absent.bin")])
    yield "short", simple(add, [external("w", FLOAT, [2], location="two.bin", offset=4)])
    yield "eight", simple(add, [external("w", FLOAT8, [2], location="two.bin")])
    yield "beside", simple(add, [external("w", FLOAT, [2], location="two.bin", offset=0, length=8)])
    yield "few_elements", simple(add, [tensor("w", FLOAT, [1000000, 1000000], b"12345678")])
    yield "bad_offset", simple(add, [external("w", FLOAT, [2], location="two.bin", offset="many")])
    whole = simple(mlp, weights)
    yield "truncated", whole[:len(whole) // 2]
    yield "deep", model(deep(100))
    # Numbers that no tensor has.
    most = 2 ** 63 - 1
    yield "hostile", model(graph("hostile", [
        node("DepthToSpace", "x", "a", "blocks", blocksize=0), node("AveragePool", "x", "b", "pads", kernel_shape=[2, 2], pads=[most] * 4),
        node("ConvTranspose", "x w", "c", "more", kernel_shape=[2, 2], output_padding=[most, 1]),
        node("ConvTranspose", "x w", "d", "wanted", kernel_shape=[2, 2], output_shape=[-most, 1]),
        node("SpaceToDepth", "x", "e", "large", blocksize=most)],
        [value("x", FLOAT, [1, 4, most, 2 ** 40])], [value(n) for n in "abcde"], [floats("w", [4, 1, 1, 1], [1, 2, 3, 4])]))
    yield "range_of_none", simple([node("Shape", "x", "s", start=1, end=1), node("Range", "zero s one", "y")],
                                  [ints("zero", [], [0]), ints("one", [], [1])])
    # Words of the language, several names that are one identifier, and sizes whose names are none.
    names = ["let", "int32", "Tensor", "a.b", "a_b", "1", "\u03bb", "%x"]
    sums = [node("Add", "%s %s" % ("out:%d" % i if i else "match", n), "out:%d" % (i + 1) if i + 1 < len(names) else "fn")
            for i, n in enumerate(names)]
    yield "words", model(graph("in", sums, [value("match", FLOAT, ["type", "two words"])], [value("fn", FLOAT, ["type", "two words"])],
                               [floats(n, [1], [2 ** i]) for i, n in enumerate(names)]))
    yield "no_graph", fields((1, 8), (7, b""), (2, "x"))[:2] + field(2, "x") + field(7, b"\xff\xff")


def main():
    folder = sys.argv[1]
    for name, data in models():
        with open(os.path.join(folder, name + ".onnx"), "wb") as f:
            f.write(data)
    with open(os.path.join(folder, "two.bin"), "wb") as f:
        f.write(struct.pack("<2f", 10, 20))


if __name__ == "__main__":
    main()
