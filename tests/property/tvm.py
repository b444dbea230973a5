#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs that TVM saved as JSON, whole and damaged.

    tests/property/tvm.py RELAY [--share=F] [--seed=N] [--keep=DIR]

A program is built as TVM's nodes, in the forms of v0.6 and of v0.18, converted and run. What is written as a graph is read
again and gives the same. Graphs with a reference, a kind or
bytes changed are translated or refused with a diagnostic: no signal, no bug of Relay.
"""
import base64
import json
import os
import random
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import share
from process import PATIENCE, SLOW, run_program

MUTANTS = 300


class Graph:
    """Nodes by number; text is a node of its own in the new form, and stands where it is used in the old one."""

    def __init__(self, old):
        self.old, self.nodes, self.arrays = old, [{"type_key": ""}], []

    def node(self, kind, /, **attrs):
        for new, before in (("IRModule", "relay.Module"), ("GlobalVar", "relay.GlobalVar"), ("FuncType", "relay.FuncType"),
                            ("TypeVar", "relay.TypeVar"), ("GlobalTypeVar", "relay.GlobalTypeVar")):
            kind = before if self.old and kind == new else kind
        self.nodes.append({"type_key": kind, "attrs": {k: str(v) for k, v in attrs.items()}})
        return len(self.nodes) - 1

    def array(self, *items):
        self.nodes.append({"type_key": "Array", "data": list(items)})
        return len(self.nodes) - 1

    def map(self, *items):
        self.nodes.append({"type_key": "Map", "data": list(items)})
        return len(self.nodes) - 1

    def text(self, text):
        if self.old:
            return text
        self.nodes.append({"type_key": "runtime.String", "repr_str": text})
        return len(self.nodes) - 1

    def op(self, name):
        self.nodes.append({"type_key": "relay.Op", "global_key": name} if self.old else {"type_key": "Op", "repr_str": name})
        return len(self.nodes) - 1

    def int(self, n):
        return self.node("IntImm", dtype="int32", value=n)

    def tensor(self, *shape):
        return self.node("relay.TensorType", dtype="float32", shape=self.array(*map(self.int, shape)))

    def var(self, name, kind=0):
        return self.node("relay.Var", vid=self.node("relay.Id", name_hint=self.text(name)), type_annotation=kind)

    def call(self, op, *args, attrs=0):
        return self.node("relay.Call", op=self.op(op) if isinstance(op, str) else op, args=self.array(*args), attrs=attrs,
                         type_args=0)

    def function(self, params, body, kind=0):
        return self.node("relay.Function", params=self.array(*params), body=body, ret_type=kind, type_params=self.array(),
                         attrs=0)

    def constant(self, shape, values):
        raw = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, len(shape), 2, 32, 1)
        raw += struct.pack("<%dq" % len(shape), *shape) + struct.pack("<q", 4 * len(values))
        self.arrays.append(base64.b64encode(raw + struct.pack("<%df" % len(values), *values)).decode())
        return self.node("relay.Constant", data=len(self.arrays) - 1)

    def save(self, root):
        return {"root": root, "nodes": self.nodes, "b64ndarrays": self.arrays,
                "attrs": {"tvm_version": "0.6.0" if self.old else "0.18.0"}}


def program(old):
    """@main(x) = with h = x * [1, 2, 3] + 1, shared: if sum(h) < 100 {let p = (h, h); take(unbox(Box(p.0)))} else {h}."""
    g = Graph(old)
    x = g.var("x.1", g.tensor(2, 3))
    h = g.call("add", g.call("multiply", x, g.constant([3], [1, 2, 3])), g.constant([], [1]))
    total = g.call("sum", h, attrs=g.node("relay.attrs.ReduceAttrs", axis=g.array(g.int(0), g.int(1)), keepdims=0, exclude=0))
    header, var = g.node("GlobalTypeVar", name_hint=g.text("Box"), kind=5), g.node("TypeVar", name_hint=g.text("A"), kind=0)
    box = g.node("relay.Constructor", name_hint=g.text("Full"), inputs=g.array(var), belong_to=header, tag=0)
    none = g.node("relay.Constructor", name_hint=g.text("Empty"), inputs=g.array(), belong_to=header, tag=1)
    data = g.node("relay.TypeData", header=header, type_vars=g.array(var), constructors=g.array(box, none))
    p, inside = g.var("p"), g.var("v")
    first = g.node("relay.TupleGetItem", **{"tuple" if old else "tuple_value": p}, index=0)
    clauses = [g.node("relay.Clause", lhs=g.node("relay.PatternConstructor", constructor=box, patterns=g.array(
        g.node("relay.PatternVar", var=inside))), rhs=g.call("nn.softmax", inside, attrs=g.node(
            "relay.attrs.SoftmaxAttrs", axis=-1))),
               g.node("relay.Clause", lhs=g.node("relay.PatternWildcard"), rhs=h)]
    match = g.node("relay.Match", data=g.call(box, first), clauses=g.array(*clauses), complete=1)
    let = g.node("relay.Let", var=p, value=g.node("relay.Tuple", fields=g.array(h, h)), body=match)
    here = g.node("VirtualDevice", device_type_int=1, memory_scope=g.text(""), target=0, virtual_device_id=0)
    placed = g.call("on_device", h, attrs=g.node("relay.attrs.OnDeviceAttrs", virtual_device=here, constrain_result=1, constrain_body=1))
    body = g.node("relay.If", cond=g.call("less", total, g.constant([], [100])), true_branch=let, false_branch=h if old else placed)
    name = g.node("GlobalVar", name_hint=g.text("main"))
    main = g.function([x], body, g.tensor(2, 3))
    return g.save(g.node("IRModule", functions=g.map(name, main), type_definitions=g.map(header, data)))


def run(relay, args, cwd):
    status, out, said = run_program([relay, "--jit=off"] + args, b"", PATIENCE * SLOW, cwd)
    if status not in (0, 1) or "bug in Relay" in said or "Sanitizer" in said or "runtime error:" in said:
        return "relay %s: status %s\n%s" % (" ".join(args), status, said[-2000:]), out, said
    return None, out, said


def write(folder, graph, name="m.json"):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(graph if isinstance(graph, str) else json.dumps(graph))


def check_converted(relay, folder, old):
    write(folder, program(old))
    wrong, _, said = run(relay, ["convert", "m.json", "-o", "m.rly"], folder)
    if wrong or said:
        return wrong or said
    with open(os.path.join(folder, "m.rly"), "a+", encoding="utf-8") as f:
        f.seek(0)
        if "virtual_device" in f.read():
            return "converted: a device that is none here has a name"
        f.write("main([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])\nmain([[100.0, 0.0, 0.0], [0.0, 0.0, 0.0]])\n")
    wrong, out, said = run(relay, ["run", "m.rly"], folder)
    out = out.decode() if isinstance(out, bytes) else out
    numbers = [float(n) for n in out.replace("[", " ").replace("]", " ").replace(",", " ").split(":")[0].split()]
    expected = [1 / 3] * 3 + [0.0900306, 0.244728, 0.665241]
    if wrong or len(numbers) != 6 or any(abs(a - b) > 1e-5 for a, b in zip(numbers, expected)) or "101.0" not in out:
        return wrong or "converted: %s%s" % (out, said)
    return None


def check_free(relay, folder):
    """What is free in an expression is a parameter of a function made of it."""
    g = Graph(False)
    x, y = g.var("x", g.tensor(2)), g.var("y", g.tensor(2))
    write(folder, g.save(g.call("add", g.call("multiply", x, y), x)))
    wrong, _, said = run(relay, ["convert", "m.json", "-o", "m.rly"], folder)
    if wrong or said:
        return wrong or said
    with open(os.path.join(folder, "m.rly"), encoding="utf-8") as f:
        text = f.read().replace("@main", "@entry") + "entry([1.0, 2.0], [3.0, 4.0])\n"
        write(folder, text, "m.rly")
    wrong, out, said = run(relay, ["run", "m.rly"], folder)
    return wrong or (None if "[4.0, 10.0]" in str(out) else "free variables: %s%s" % (out, said))


def check_refused(relay, folder):
    g = Graph(False)
    x = g.var("x", g.tensor(2))
    a = g.call("relay.op.of.nobody", x)
    write(folder, g.save(g.function([x], g.call("another.one", a))))
    wrong, _, said = run(relay, ["convert", "m.json", "-o", "n.rly"], folder)
    if wrong or "R0509" not in said or "of.nobody" not in said or "another.one" not in said:
        return wrong or "missing operators: " + said
    g = Graph(False)
    x = g.var("x", g.tensor(2))
    cycle = g.call("negative", x)
    g.nodes[cycle]["attrs"]["args"] = str(g.array(cycle))
    write(folder, g.save(g.function([x], cycle)))
    wrong, _, said = run(relay, ["convert", "m.json", "-o", "n.rly"], folder)
    if wrong or "R0508" not in said or "part of itself" not in said or os.path.exists(os.path.join(folder, "n.rly")):
        return wrong or "a cycle: " + said
    write(folder, "def main(x: Tensor[(2,), float32]) { grad(fn (y) { sum(y) })(x) }\n", "bad.rly")
    wrong, _, said = run(relay, ["convert", "bad.rly", "-o", "n.json"], folder)
    if wrong or "a derivative" not in said or os.path.exists(os.path.join(folder, "n.json")):
        return wrong or "a derivative to write: " + said
    return None


# Programs and calls of them, which give the same bits after they were written as a graph and read again.
WRITTEN = {
    "layers": ("""
type Net { Net { w: Tensor[(2, 3), float32], b: Tensor[(2,), float32] } }
let net: Net = Net { w: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], b: [0.5, -0.5] };
def layer(n: Net, x: Tensor[(4, 3), float32]) { nn.relu(nn.dense(x, n.w) + n.b) }
def power(x: float32, n: int32) -> float32 { if (n == 0) { 1.0 } else { x * power(x, n - 1) } }
def main(x: Tensor[(4, 3), float32]) {
  let y = layer(net, x);
  let f = fn (a) { a * 2.0 };
  let (s, t) = (sum(y, axis=[1], keepdims=True), mean(y));
  match (list[s, s]) { Cons(h, _) => nn.softmax(f(h) + t * power(0.5, 3), axis=0), Nil => s }
}
""", "main([[0.1, 0.2, 0.3], [0.0, -1.0, 0.5], [0.0, 0.0, 0.1], [0.2, 0.5, -0.3]])"),
    "shapes": ("""
def main(x: Tensor[(2, 3), float32]) {
  let parts = split(x, indices_or_sections=3, axis=1);
  let joined = concatenate((parts.0, parts.2), axis=1);
  let moved = transpose(reshape(joined, newshape=[4, 1]), axes=[1, 0]);
  (moved, take(x, [1, 0], axis=0, mode="wrap"), strided_slice(x, begin=[0, 1], end=[2, 3]), clip(x, a_min=0.25, a_max=1.5),
   cast(x, dtype="int64"), argmax(x, axis=[1]), one_hot([0, 2], 1.0, 0.0, depth=3, axis=-1, dtype="float32"),
   squeeze(expand_dims(x, axis=0), axis=[0]), cumsum(x, axis=1, exclusive=True), [x, x + 1.0], repeat(x, repeats=2, axis=1),
   arange(0.0, 3.0, 1.0, dtype="float32"), zeros(shape=[2, 0]), full(2.5, shape=[2], dtype="float64"), logical_not(x == x), stack((x, x), axis=1))
}
""", "main([[0.0, 1.0, 2.0], [3.5, -4.0, 5.0]])"),
    "images": ("""
let kernel: Tensor[(2, 1, 2, 2), float32] = [[[[1.0, 2.0], [3.0, 4.0]]], [[[0.5, 0.0], [0.0, -0.5]]]];
def main(x: Tensor[(1, 1, 4, 4), float32]) {
  let y = nn.conv2d(x, kernel, channels=2, kernel_size=[2, 2], padding=[1, 1], strides=[2, 2]);
  let z = nn.batch_norm(y, [1.0, 2.0], [0.0, 0.5], [0.1, 0.2], [1.0, 1.5], epsilon=0.001).0;
  (nn.max_pool2d(z, pool_size=[2, 2], ceil_mode=True), nn.avg_pool2d(z, pool_size=[2, 2]), nn.global_avg_pool2d(z), nn.batch_flatten(z),
   nn.pad(z, 0.5, pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]]), nn.leaky_relu(z, alpha=0.1), nn.upsampling(z, scale_h=2.0, scale_w=2.0),
   image.resize2d(x, size=[3, 3], method="linear"), nn.layer_norm(z, [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]), nn.dropout(z, rate=0.5).0)
}
""", "main(reshape(arange(0.0, 16.0, 1.0), newshape=[1, 1, 4, 4]))"),
    "blocks": ("""
def main(x: Tensor[(2, 3), float32]) {
  let pair = ({ let a = x + 1.0; let b = a * a; a - b }, { let a = sum(x); a * 2.0 });
  let y = tanh({ let seen = { let inner = x * 3.0; inner + x }; match (list[seen, x]) { Cons(h, _) => { let w = h * h; w + h }, Nil => seen } });
  (pair, y + exp({ let z = y - x; z * z }))
}
""", "main([[0.0, 1.0, 2.0], [3.5, -4.0, 5.0]])"),
    "indices": ("""
type Net { Net { w: Tensor[(2, 3), float32], b: float32, n: int32 } }
let net = Net { w: [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], b: 0.5, n: 2 };
def main[n](x: Tensor[(n, 3), float32], y: Tensor[(4, 5, 6), float32], i: int32) {
  let other = { net with b = net.b + 1.0, n = i };
  ((x[0], y[i, -1], y[1:3, ::2, None], y[..., 1], y[i:, 1:i], y[[2, 0]], y[::-1], x[:, 1:], y[:, :, -2::-2], y[-2:, i:4:2]),
   reshape(x, newshape=[n * 3]), reshape(x, newshape=[n, -1, 1]), zeros(shape=[n, 2]), shape_of(y)[0] + i, broadcast_to([1.0], shape=[n]),
   tile(x, reps=[2, i]), n + 1, full(2.5, shape=[i, 2]), one_hot([0, 1], 1.0, 0.0, depth=i), other.w[0], other.b, other.n, topk(y, k=i).0)
}
""", "main([[0.0, 1.0, 2.0], [3.5, -4.0, 5.0]], reshape(arange(0.0, 120.0, 1.0), newshape=[4, 5, 6]), 2)"),
    "no main": ("""
type Tree[A] { Leaf, Node(Tree[A], A, Tree[A]) }
def total(t: Tree[float32]) -> float32 { match (t) { Leaf => 0.0, Node(l, v, r) => total(l) + v + total(r) } }
def both[A](f: fn(A) -> A, p: (A, A)) -> (A, A) { (f(p.0), f(p.1)) }
def count(n: int32) -> int32 { let c = ref(n); c := !c + 1; let go = fn (k: int32) -> int32 { if (k > 5) { k } else { go(k + !c) } }; go(0) }
""", "(total(Node(Node(Leaf, 1.5, Leaf), 2.0, Leaf)), both(fn (x) { x + 1 }, (1, 2)), count(1))"),
}


def check_written(relay, folder, name):
    text, call = WRITTEN[name]
    shown = []
    write(folder, text, "w.rly")
    for command in (["convert", "w.rly", "-o", "w.json"], ["convert", "w.json", "-o", "again.rly"]):
        wrong, _, said = run(relay, command, folder)
        if wrong or said:
            return "%s: %s" % (name, wrong or said)
    for path in ("w.rly", "again.rly"):
        with open(os.path.join(folder, path), encoding="utf-8") as f:
            write(folder, f.read().replace("main", "entry") + "\n" + call.replace("main", "entry") + "\n", "call.rly")
        wrong, out, said = run(relay, ["run", "call.rly"], folder)
        if wrong or said or not out:
            return "%s: %s: %s" % (name, path, wrong or said)
        shown.append(str(out).split(" : ")[0])  # sizes that the program knows may be `?` in the graph
    return None if shown[0] == shown[1] else "%s: %s\n%s" % (name, shown[0], shown[1])


def check_stored(relay, folder):
    """The nodes of a small function as save_json of v0.18 has them: kinds, and all that each holds."""
    write(folder, "def main(x: Tensor[(2, 3), float32]) { sum(x + 1.0, axis=[1]) }\n", "w.rly")
    wrong, _, said = run(relay, ["convert", "w.rly", "-o", "w.json"], folder)
    if wrong or said:
        return wrong or said
    with open(os.path.join(folder, "w.json"), encoding="utf-8") as f:
        graph = json.load(f)
    nodes = graph["nodes"]

    def at(node, key):
        return nodes[int(node["attrs"][key])]

    module = nodes[graph["root"]]
    names = at(module, "functions")["data"]
    fn = nodes[names[1]]
    call = at(fn, "body")
    attrs = at(call, "attrs")
    inner = nodes[at(call, "args")["data"][0]]
    var, one = (nodes[i] for i in at(inner, "args")["data"])
    raw = base64.b64decode(graph["b64ndarrays"][int(one["attrs"]["data"])])
    found = [nodes[0], sorted(graph), graph["attrs"], module["type_key"], at(nodes[names[0]], "name_hint"), fn["type_key"],
             sorted(fn["attrs"]), call["type_key"], sorted(call["attrs"]), at(call, "op"), attrs["type_key"], sorted(attrs["attrs"]),
             attrs["attrs"]["keepdims"], [nodes[i]["attrs"] for i in at(attrs, "axis")["data"]], at(inner, "op"),
             at(at(var, "vid"), "name_hint")["repr_str"], at(var, "type_annotation")["attrs"]["dtype"], raw[:8] + raw[-4:]]
    common = ["_checked_type_", "span", "virtual_device_"]
    expected = [{"type_key": ""}, ["attrs", "b64ndarrays", "nodes", "root"], {"tvm_version": "0.18.0"}, "IRModule",
                {"type_key": "runtime.String", "repr_str": "main"}, "relay.Function",
                sorted(common + ["attrs", "body", "params", "ret_type", "type_params"]), "relay.Call",
                sorted(common + ["args", "attrs", "op", "type_args"]), {"type_key": "Op", "repr_str": "sum"},
                "relay.attrs.ReduceAttrs", ["axis", "exclude", "keepdims"], "0", [{"dtype": "int32", "span": "0", "value": "1"}],
                {"type_key": "Op", "repr_str": "add"}, "x", "float32", struct.pack("<Qf", 0xDD5E40F096B4A13F, 1.0)]
    return None if found == expected else "stored: %s" % [pair for pair in zip(found, expected) if pair[0] != pair[1]]


def damage(r, graph):
    if r.random() < 0.3:
        text = json.dumps(graph)
        at = r.randrange(len(text))
        return text[:at] if r.random() < 0.5 else text[:at] + r.choice('0129"{}[],:-e') + text[at + 1:]
    for _ in range(r.randint(1, 3)):
        node = r.choice(graph["nodes"])
        value = r.choice([-1, 0, 1, 10 ** 18, "null", "", r.randrange(len(graph["nodes"]))])
        if node.get("attrs") and r.random() < 0.7:
            key = r.choice(sorted(node["attrs"]))
            node["attrs"][key] = r.choice([value, str(value)])
        elif node.get("data"):
            node["data"][r.randrange(len(node["data"]))] = value
        else:
            node["type_key"] = r.choice(graph["nodes"])["type_key"]
    if r.random() < 0.1:
        graph["root"] = r.choice([0, -1, 10 ** 9, None, r.randrange(len(graph["nodes"]))])
    return graph


def check_damaged(relay, folder, seed, keep):
    r = random.Random(seed)
    graph = damage(r, program(r.random() < 0.5))
    name = "damaged%d.json" % seed
    write(folder, graph, name)
    wrong, _, said = run(relay, ["convert", name, "-o", "damaged.rly"], folder)
    if wrong and keep:
        write(keep, graph, name)
    return wrong and "seed %d: %s" % (seed, wrong)


def main():
    options = share.arguments(__doc__).parse_args()
    relay = os.path.abspath(options.relay)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        checks = [lambda old=old: check_converted(relay, folder, old) for old in (False, True)]
        checks.append(lambda: check_refused(relay, folder))
        checks.append(lambda: check_stored(relay, folder))
        checks.append(lambda: check_free(relay, folder))
        checks += [lambda name=name: check_written(relay, folder, name) for name in WRITTEN]
        for seed in share.seeds(options, MUTANTS):
            checks.append(lambda seed=seed: check_damaged(relay, folder, seed, options.keep))
        for check in checks:
            wrong = check()
            found += [wrong] if wrong else []
    for wrong in found:
        print("FAILED " + wrong)
    print("%d passed, %d failed, 0 skipped" % (len(checks) - len(found), len(found)))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
