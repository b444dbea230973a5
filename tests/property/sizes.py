#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs with sizes that are not known: a shape error when running is never a surprise.

Tensors come from annotations with `?`, from arange(n), unique, argwhere, slices at values and a file;
operators and definitions (annotated, with declared sizes, generalised, or random ones) are applied to
them, to lists of them and to their elements at random. A program that checks may end in an error of
shapes (R03…, R0604) only if `relay check --residual` lists a check of the same operator at that line (or,
for a generalised definition, inside it), or of the argument, result or binding whose size was taken for
another. A tensor that is made has the shape that its type says.

And where all sizes are known when a definition without annotations is called, itself calling others,
nothing of shapes is left for the run: the call is refused, or it does not end so.

    sizes.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE, SLOW

PROGRAMS, LINES = 24, 30
DEFS = """\
def plus(x, y) { x + y }
def mix(x, y) { plus(x, y) * x }
def join(x, y) { concatenate((x, y), axis=0) }
def product(x, y) { x @@ y }
def tail(x) { x[1:] }
def rows[n](x: Tensor[(n, 4), float32], y: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] { x * y }
def pairs[n](x: Tensor[(n,), float32]) -> Tensor[(floordiv(n, 2), 2), float32] { reshape(x, newshape=[-1, 2]) }
def steps[n](x: Tensor[(n,), float32]) { x[1:] - x[:-1] }
def wide(x: Tensor[(?, 4), float32], y: Tensor[(?,), float32]) { x + expand_dims(y, axis=1) }
def three(x: Tensor[(?,), float32]) -> Tensor[(3,), float32] { x }
def same[n](x: Tensor[(n,), float32], y: Tensor[(n,), float32]) { (x, y) }
def largest(x) { max(x) }
type Layer[n, m] { Layer { w: Tensor[(n, m), float32], b: Tensor[(m,), float32] } }
type Own { Own { own: Tensor[(k,), float32], other: Tensor[(k,), float32] } }
def apply[n, m](l: Layer[n, m], x: Tensor[(n,), float32]) -> Tensor[(m,), float32] { x @@ l.w + l.b }
def inside(o: Own) { match (o) { Own { own, other } => own * other } }
def twice(f, x) { f(f(x)) }
def total(xs) { foldl(plus, [0.0], xs) }
def two[a](xs: List[a]) { (hd(xs), nth(xs, 1)) }
def collect(xs, i) { if (i == 0) { xs } else { collect(Cons((float32) arange(i), xs), i - 1) } }
def grown(x, i) { if (i == 0) { x } else { grown((float32) arange(i + 1), i - 1) } }
def kept(x: Tensor[(?,), float32], i: int32) { if (i == 0) { x } else { kept(join(x, x), i - 1) } }
"""


class Generator:
    """Names with their ranks; all are float32."""

    def __init__(self, rng):
        self.rng = rng
        self.names = {1: [], 2: [], "list": []}
        self.functions = []
        self.count = 0

    def fresh(self, rank):
        self.count += 1
        name = f"v{self.count}"
        return name, lambda: self.names[rank].append(name)

    def vector(self):
        r = self.rng
        if self.names[1] and r.random() < 0.75:
            return r.choice(self.names[1])
        return r.choice(["[1.0, 2.0, 3.0]", "[4.0]", "ones(shape=[4])", "ones(shape=[6])"])

    def vectors(self):
        r = self.rng
        if self.names["list"] and r.random() < 0.75:
            return r.choice(self.names["list"])
        return r.choice(["list[[1.0], [2.0]]", "list[[1.0, 2.0], [3.0, 4.0]]", "collect(Nil, 3)"])

    def list_expr(self):
        r, v, l = self.rng, self.vector, self.vectors
        return r.choice([
            lambda: f"list[{v()}, {v()}]", lambda: f"Cons({v()}, {l()})", lambda: f"{v()} :: {l()}",
            lambda: f"concat({l()}, {l()})", lambda: f"collect({l()}, size({r.randint(0, 3)}))", lambda: f"rev({l()})",
            lambda: f"map(fn (x) {{ x + {v()} }}, {l()})", lambda: f"map(fn (x) {{ same(x, {v()}).0 }}, {l()})",
            lambda: f"map(fn (x: Tensor[(?,), float32]) {{ same({v()}, x).1 }}, {l()})", lambda: f"map(tail, {l()})",
            lambda: f"map2(fn (x, y) {{ same(x, y).0 }}, {l()}, {l()})", lambda: f"scan(join, {v()}, {l()})",
            lambda: f"scan(fn (a: Tensor[(?,), float32], x) {{ join(a, x) }}, {v()}, {l()})",
            lambda: f"list.rows({self.matrix()})", lambda: f"if (size(1) == 1) {{ {l()} }} else {{ {l()} }}",
            lambda: f"{{ let c = ref({l()}); c := Cons({v()}, !c); !c }}", lambda: f"filter(fn (x) {{ sum(x) > 1.0 }}, {l()})",
            lambda: f"{{ let c = ref(Nil); for_each(fn (x) {{ c := Cons(tail(x), !c) }}, {l()}); !c }}",
            lambda: f"map(fn (p) {{ p.0 }}, zip({l()}, {l()}))", lambda: f"deriv(fn (xs) {{ sum(list.sum(xs)) }})({l()})",
        ])()

    def of_list(self):
        r, v, l = self.rng, self.vector, self.vectors
        return r.choice([
            lambda: f"hd({l()})", lambda: f"nth({l()}, 1)", lambda: f"list.sum({l()})", lambda: f"total({l()})",
            lambda: f"foldl(plus, {v()}, {l()})", lambda: f"foldl(join, {v()}, {l()})",
            lambda: f"foldl(fn (a: Tensor[(?,), float32], x) {{ join(a, x) }}, {v()}, {l()})",
            lambda: f"foldr1(fn (x, y) {{ same(x, y).0 }}, {l()})", lambda: f"foldr1(fn (x, y) {{ x * y }}, {l()})",
            lambda: f"{{ let xs = {l()}; same(hd(xs), nth(xs, 1)).0 }}", lambda: f"{{ let p = two({l()}); p.0 + p.1 }}",
            lambda: f"{{ let p = two({l()}); same(p.0, p.1).0 }}",
            lambda: f"match ({l()}) {{ Cons(x, Cons(y, _)) => same(x, y).0, _ => {v()} }}",
            lambda: f"grown({v()}, size({r.randint(0, 3)}))", lambda: f"kept({v()}, size({r.randint(0, 2)}))",
            lambda: f"twice(fn (x: Tensor[(?,), float32]) {{ join(x, {v()}) }}, {v()})",
            lambda: f"iterate(fn (x: Tensor[(?,), float32]) {{ join(x, {v()}) }}, 2)({v()})",
            lambda: f"iterate(fn (x) {{ x * {v()} }}, 2)({v()})",
        ])()

    def definition(self):
        """`def f(x, y) { … }`, whose parameters the body uses beside what is there."""
        r, outer = self.rng, self.names
        self.count += 1
        name, n = f"f{self.count}", r.randint(1, 2)
        params = ["x", "y"][:n]
        self.names = {1: outer[1][-2:] + 3 * params, 2: outer[2], "list": outer["list"]}
        made = self.source()
        first = f"let z = {made[0]}; " if made[1] == 1 and r.random() < 0.6 else ""
        if first:
            self.names[1] += 3 * ["z"]
        body = r.choice([self.vector_expr, self.of_list, self.list_expr])
        text = f"{{ {first}{body()} }}"
        self.names = outer
        notes = [r.choice(["", "", ": Tensor[(?,), float32]"]) for _ in params]
        head = ", ".join(p + note for p, note in zip(params, notes))
        kind = "list" if body == self.list_expr else 1
        return f"def {name}({head}) {text}", lambda: self.functions.append((name, n, kind))

    def call(self, kind):
        there = [f for f in self.functions if f[2] == kind]
        if not there:
            return self.of_list() if kind == 1 else self.list_expr()
        name, n, _ = self.rng.choice(there)
        return f"{name}({', '.join(self.vector() for _ in range(n))})"

    def matrix(self):
        r = self.rng
        if self.names[2] and r.random() < 0.75:
            return r.choice(self.names[2])
        return r.choice(["ones(shape=[3, 4])", "ones(shape=[1, 4])", "ones(shape=[4, 3])", "ones(shape=[2, 2])"])

    def source(self):
        """An unknown size: (text, rank)."""
        r, n = self.rng, self.rng.randint(0, 6)
        return r.choice([
            (f"(float32) arange(0, size({n}), 1)", 1),
            (f"{self.vector()}[size({n % 3}):]", 1),
            (f"{self.vector()}[:size({n})]", 1),
            (f"unique({self.vector()}).0", 1),
            (f"(float32) unique({self.vector()}, return_counts=True).4", 1),
            (f"(float32) argwhere({self.vector()} - 2.0)", 2),
            (f"(float32) argwhere({self.matrix()})", 2),
            (f"(float32) read{r.randint(1, 2)}", r.randint(1, 2)),
        ])

    def vector_expr(self):
        r, v, m = self.rng, self.vector, self.matrix
        return r.choice([
            lambda: f"{v()} + {v()}", lambda: f"{v()} * {v()}", lambda: f"plus({v()}, {v()})",
            lambda: f"mix({v()}, {v()})", lambda: f"join({v()}, {v()})", lambda: f"tail({v()})",
            lambda: f"steps({v()})", lambda: f"three({v()})", lambda: f"same({v()}, {v()}).0",
            lambda: f"concatenate(({v()}, {v()}, {v()}), axis=0)", lambda: f"sum({m()}, axis=[{r.randint(0, 1)}])",
            lambda: f"max({m()}, axis=[{r.randint(0, 1)}])", lambda: f"{m()} @@ {v()}",
            lambda: f"product({v()}, {m()})", lambda: f"reshape({m()}, newshape=[-1])",
            lambda: f"reshape({m()}, newshape=[{r.randint(1, 6)}])", lambda: f"split({v()}, indices_or_sections=2, axis=0).1",
            lambda: f"split({v()}, indices_or_sections=[1, 3], axis=0).1", lambda: f"{v()}[1:3]",
            lambda: f"{v()}[::2]", lambda: f"{m()}[0]", lambda: f"sort({v()})", lambda: f"topk({v()}, k=2).0",
            lambda: f"where({v()} > 1.0, {v()}, {v()})", lambda: f"reshape_like({v()}, {v()})",
            lambda: f"slice_like({v()}, {v()})", lambda: f"broadcast_to({v()}, shape=[{r.choice([1, 3, 4])}])",
            lambda: f"squeeze({m()}, axis=[0])", lambda: f"repeat({v()}, repeats=2, axis=0)",
            lambda: f"take({v()}, [0, 1], axis=0)", lambda: f"cumsum({v()}, axis=0)",
            lambda: f"if (size(1) == {r.randint(1, 2)}) {{ {v()} }} else {{ {v()} }}",
            lambda: f"(fn (x) {{ x + {v()} }})({v()})", lambda: f"({v()}, {m()}).0",
            lambda: f"(fn (x: Tensor[(?,), float32]) -> Tensor[(3,), float32] {{ x }})({v()})",
            lambda: f"match (list[{v()}, {v()}]) {{ Cons(h, _) => h, Nil => {v()} }}",
            lambda: f"total(list[{v()}, {v()}])", lambda: f"hd(map(fn (x) {{ x * {v()} }}, list[{v()}, {v()}]))",
            lambda: f"{{ let c = ref({v()}); c := {v()}; !c }}", lambda: f"twice(fn (x) {{ x[1:] }}, {v()})",
            lambda: f"apply(Layer {{ w: {m()}, b: {v()} }}, {v()})",
            lambda: f"inside(Own {{ own: {v()}, other: {v()} }})",
            lambda: f"deriv(fn (x) {{ sum(x * {v()}) }})({v()})",
            lambda: f"deriv(fn (x) {{ sum(steps(x) * {v()}) }})({v()})",
            lambda: f"grad(fn (x, y) {{ sum(mix(x, y)) }})({v()}, {v()}).1.0",
            lambda: f"(fn (p) {{ p.0 + p.1 }})(({v()}, {v()}))",
            lambda: f'einsum(({v()}, {v()}), equation="i,i->i")', lambda: f"expand_dims(largest({v()}), axis=0)",
        ])()

    def matrix_expr(self):
        r, v, m = self.rng, self.vector, self.matrix
        return r.choice([
            lambda: f"{m()} + {m()}", lambda: f"{m()} * {v()}", lambda: f"plus({m()}, {v()})",
            lambda: f"rows({m()}, {m()})", lambda: f"pairs({v()})", lambda: f"wide({m()}, {v()})",
            lambda: f"join({m()}, {m()})", lambda: f"{m()} @@ {m()}", lambda: f"product({m()}, {m()})",
            lambda: f"nn.dense({m()}, {m()})", lambda: f"transpose({m()})", lambda: f"stack(({v()}, {v()}), axis=0)",
            lambda: f"reshape({v()}, newshape=[-1, {r.randint(1, 3)}])",
            lambda: f"if (size(1) == {r.randint(1, 2)}) {{ {m()} }} else {{ {m()} }}",
            lambda: f"[{v()}, {v()}]", lambda: f"(Layer {{ w: {m()}, b: {v()} }}).w",
            lambda: f"deriv(fn (x) {{ sum(x @@ {m()}) }})({m()})",
            lambda: f"(fn (x: Tensor[(?, ?), float32]) -> Tensor[(?, 4), float32] {{ x }})({m()})",
            lambda: f"reshape({m()}, newshape=[0, -1])", lambda: f"reshape({m()}, newshape=[{r.randint(1, 4)}, -1])",
            lambda: f"split({m()}, indices_or_sections={r.randint(1, 3)}, axis=1).0", lambda: f"{m()}[1:]",
            lambda: f"{m()}[:, ::2]", lambda: f"expand_dims({v()}, axis=1)", lambda: f"nn.softmax({m()})",
            lambda: f"tile({v()}, reps=[2, 1])", lambda: f"nn.bias_add({m()}, {v()})",
            lambda: f"concatenate(({m()}, {m()}), axis=1)", lambda: f"broadcast_to({v()}, shape=[3, 4])",
            lambda: f"nn.pad({m()}, pad_width=[[1, 0], [0, 1]])", lambda: f"{m()} - max({m()}, axis=[1], keepdims=True)",
            lambda: f'einsum(({m()}, {m()}), equation="ij,jk->ik")',
            lambda: f"reshape(nn.max_pool2d(reshape({m()}, newshape=[1, 1, -1, 4]), pool_size=[2, 2]), newshape=[-1, 3])",
        ])()

    def line(self):
        """(text, name of a tensor or None, what enters the names)"""
        r = self.rng
        if r.random() < 0.15:
            text, bind = self.definition()
            return text, None, bind
        if r.random() < 0.2:
            text = self.call("list") if r.random() < 0.4 else self.list_expr()
            name, bind = self.fresh("list")
            return f"let {name} = {text};", None, bind
        if r.random() < 0.3:
            text, rank = self.source()
        else:
            rank = r.choice([1, 1, 2])
            vectors = r.choice([self.vector_expr, self.of_list, lambda: self.call(1)])
            text = vectors() if rank == 1 else self.matrix_expr()
        name, bind = self.fresh(rank)
        known = {1: ["(?,)", "(?,)", "(3,)", "(4,)"], 2: ["(?, ?)", "(?, 4)", "(?, 4)", "(3, 4)", "(?, 3)"]}
        note = f": Tensor[{r.choice(known[rank])}, float32]" if r.random() < 0.3 else ""
        return f"let {name}{note} = {text};", name, bind


# What makes sizes unknown, whatever it is given.
UNKNOWN = ["?"] + [name + "(" for name in "three wide total size inside collect grown kept arange".split()]


class Definitions(Generator):
    """Definitions of any sizes: their expressions are over the parameters a, b (vectors) and c, d (matrices)."""

    def __init__(self, rng):
        super().__init__(rng)
        self.known = {1: [], 2: []}

    def call(self, name, vector, matrix):
        return f"{name}({vector()}, {vector()}, {matrix()}, {matrix()})"

    def part(self, rank, given):
        if self.known[rank] and self.names[rank] and self.rng.random() < 0.2:
            return self.call(self.rng.choice(self.known[rank]), lambda: self.rng.choice(self.names[1]),
                             lambda: self.rng.choice(self.names[2]))
        return given()

    def vector(self):
        return self.part(1, super().vector)

    def matrix(self):
        return self.part(2, super().matrix)

    def expr(self, rank):
        while True:
            text = self.vector_expr() if rank == 1 else self.matrix_expr()
            if not any(word in text for word in UNKNOWN):
                return text

    def definition(self):
        """(text, a call of known sizes, what to do when it ran)."""
        rank, local = self.rng.randint(1, 2), self.rng.randint(1, 2)
        self.names = {1: ["a", "b"], 2: ["c", "d"]}
        body = f"let t = {self.expr(local)}; "
        self.names[local].append("t")
        body += self.expr(rank)
        self.names = {1: [], 2: []}
        self.count += 1
        name, known, self.known = f"g{self.count}", self.known, {1: [], 2: []}
        call = self.call(name, self.vector, self.matrix)
        self.known = known
        return f"def {name}(a, b, c, d) {{ {body} }}", call, lambda: known[rank].append(name)


def run(relay, args, folder):
    p = subprocess.run([relay, *args], capture_output=True, text=True, timeout=PATIENCE * SLOW,
                       cwd=folder)
    diags = [json.loads(line) for line in (p.stdout + p.stderr).splitlines() if line.startswith("{")]
    return p.returncode, diags, p.stdout + p.stderr


# Messages name operators as programs do.
INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@@",
         "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
         "greater_equal": ">="}


def is_listed(error, checks, program):
    """By operator, or as the place where a size was taken for another."""
    place = program.split("\n")[error["line"] - 1][error["column"] - 1:error["end_column"] - 1]
    for c in checks:
        places = [c] + ([c["inside"]] if c["inside"] else [])
        if not any(p["line"] == error["line"] and p["file"] == error["file"] for p in places):
            continue
        op = INFIX.get(c["operator"], c["operator"])
        said = [error["message"]] + error["facts"]  # code that a derivative made says the operator in a fact
        if op in (None, place) or any(f"`{op}`" in text for text in said):
            return True
    return False


def wrong_type(relay, text, name, folder):
    """What its type says of a tensor that is made, where that is not so."""
    with open(os.path.join(folder, "program.rly"), "w") as f:
        f.write(f"{text}shape_of({name})\n{name}\n")
    output = run(relay, ["program.rly"], folder)[2]
    shape = re.search(r"^\[([0-9, ]*)\] : ", output, re.M)
    said = re.findall(r" : Tensor\[\((.*?),?\), float32\]$", output, re.M)
    if not shape or not said:
        return None
    sizes, dims = shape.group(1).split(", "), re.split(r", (?![^(]*\))", said[-1])
    fits = len(sizes) == len(dims) and all(d == s or not d.isdigit() for d, s in zip(dims, sizes))
    return None if fits else f"`{name}` is of shape ({shape.group(1)}), and its type says ({said[-1]})"


def write_npy(path, shape):
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }" % dims
    header += " " * (-(len(header) + 11) % 64) + "\n"
    n = 1
    for d in shape:
        n *= d
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(struct.pack("<%df" % n, *[float(i % 5) for i in range(n)]))


def program(relay, seed, lines, folder, totals):
    """A description of what went wrong, or None."""
    rng = random.Random(seed)
    g = Generator(rng)
    write_npy(os.path.join(folder, "one.npy"), [rng.randint(1, 6)])
    write_npy(os.path.join(folder, "two.npy"), [rng.randint(1, 4), rng.choice([4, 4, 3])])
    path = os.path.join(folder, "program.rly")
    text = DEFS + "let sizes = ref([0, 1, 2, 3, 4, 5, 6]);\ndef size(i: int32) { (!sizes)[i] }\n"
    text += 'let read1: Tensor[(?,), float32] = load("one.npy");\nlet read2: Tensor[(?, ?), float32] = load("two.npy");\n'
    for _ in range(lines):
        line, name, bind = g.line()
        with open(path, "w") as f:
            f.write(text + line + "\n")
        status, diags, output = run(relay, ["check", "--residual", "--diagnostics=json", "program.rly"], folder)
        if status < 0:
            return f"check ended by signal {-status}:\n{line}"
        if status:
            totals["refused"] += 1
            continue
        checks = [d for d in diags if d["code"] == "R0907"]
        status, diags, output = run(relay, ["--diagnostics=json", "program.rly"], folder)
        errors = [d for d in diags if d["severity"] == "error"]
        if status < 0 or (status and not errors):
            return f"ended by signal or without a word ({status}):\n{line}\n{output}"
        if not status:
            totals["ran"] += 1
            text += line + "\n"
            bind()
            wrong = name and wrong_type(relay, text, name, folder)
            if wrong:
                return f"{wrong}:\n{line}"
            continue
        error = errors[0]
        if not error["code"].startswith("R03") and error["code"] != "R0604":
            totals["values"] += 1
            continue
        totals["listed"] += 1
        if not is_listed(error, checks, text + line):
            return f"a check that is not listed:\n{line}\n{error['line']}: {error['message']}\n" + \
                   "\n".join(f"{c['line']}:{c['column']}: {c['message']}" for c in checks)
    return None


def definitions(relay, seed, lines, folder, totals):
    """The same, where all sizes are known at the calls."""
    g = Definitions(random.Random(seed))
    text, path = DEFS, os.path.join(folder, "program.rly")
    for _ in range(lines):
        line, call, bind = g.definition()
        with open(path, "w") as f:
            f.write(text + line + "\n" + call + "\n")
        status, diags, output = run(relay, ["--diagnostics=json", "program.rly"], folder)
        errors = [d for d in diags if d["severity"] == "error"]
        if status < 0 or (status and not errors):
            return f"ended by signal or without a word ({status}):\n{line}\n{call}\n{output}"
        refused = run(relay, ["check", "--diagnostics=json", "program.rly"], folder)[0] if status else 0
        totals["called" if not status else "not called" if refused else "values"] += 1
        if status and not refused and errors[0]["code"].startswith("R03"):
            return f"first refused when running:\n{line}\n{call}\n{errors[0]['line']}: {errors[0]['message']}"
        if not status:
            text += line + "\n"
            bind()
    return None


def main():
    args = share.arguments(__doc__).parse_args()
    seeds = share.seeds(args, PROGRAMS, 2)
    failed = 0
    totals = {"refused": 0, "ran": 0, "values": 0, "listed": 0, "called": 0, "not called": 0}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            relay = os.path.abspath(args.relay)
            problem = program(relay, seed, LINES, folder, totals) or \
                definitions(relay, seed, LINES // 2, folder, totals)
            if problem:
                failed += 1
                print(f"seed {seed}: {problem}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    os.replace(os.path.join(folder, "program.rly"), os.path.join(args.keep, f"sizes{seed}.rly"))
    print(f"lines that ran: {totals['ran']}, refused: {totals['refused']}, ended by a listed check: {totals['listed']}, "
          f"by a value: {totals['values']}; definitions called: {totals['called']}, refused: {totals['not called']}")
    if min(totals["ran"], totals["listed"], totals["called"]) < len(seeds):
        failed += 1
        print("too few lines ran, or met a check")
    print(f"{len(seeds) - min(failed, len(seeds))} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
