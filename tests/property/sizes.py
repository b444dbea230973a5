#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random programs with sizes that are not known: a shape error when running is never a surprise.

Tensors come from annotations with `?`, from arange(n), unique, argwhere, slices at values and a file;
operators and definitions (annotated, with declared sizes, or generalised) are applied to them at
random. A program that checks may end in an error of shapes (R03…) only if `relay check --residual`
lists a check of the same operator at that line (or, for a generalised definition, inside it), or of
the argument, result or binding whose size was taken for another.

    sizes.py RELAY [--count N] [--seed N] [--keep DIR]
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

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
"""


class Generator:
    """Names with their ranks; all are float32."""

    def __init__(self, rng):
        self.rng = rng
        self.names = {1: [], 2: []}
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
        r = self.rng
        if r.random() < 0.35:
            text, rank = self.source()
        else:
            rank = r.randint(1, 2)
            text = self.vector_expr() if rank == 1 else self.matrix_expr()
        name, bind = self.fresh(rank)
        known = {1: ["(?,)", "(?,)", "(3,)", "(4,)"], 2: ["(?, ?)", "(?, 4)", "(?, 4)", "(3, 4)", "(?, 3)"]}
        note = f": Tensor[{r.choice(known[rank])}, float32]" if r.random() < 0.3 else ""
        return f"let {name}{note} = {text};", bind


def run(relay, args, folder):
    p = subprocess.run([relay, *args], capture_output=True, text=True, timeout=60, cwd=folder)
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
        if op in (None, place) or f"`{op}`" in error["message"]:
            return True
    return False


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
        line, bind = g.line()
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
            continue
        error = errors[0]
        if not error["code"].startswith("R03"):
            totals["values"] += 1
            continue
        totals["listed"] += 1
        if not is_listed(error, checks, text + line):
            return f"a check that is not listed:\n{line}\n{error['line']}: {error['message']}\n" + \
                   "\n".join(f"{c['line']}:{c['column']}: {c['message']}" for c in checks)
    return None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("relay")
    ap.add_argument("--count", type=int, default=6, help="programs")
    ap.add_argument("--lines", type=int, default=30, help="lines a program")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--keep", help="a folder for the programs that failed")
    args = ap.parse_args()
    failed = 0
    totals = {"refused": 0, "ran": 0, "values": 0, "listed": 0}
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as folder:
            problem = program(os.path.abspath(args.relay), seed, args.lines, folder, totals)
            if problem:
                failed += 1
                print(f"seed {seed}: {problem}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    os.replace(os.path.join(folder, "program.rly"), os.path.join(args.keep, f"sizes{seed}.rly"))
    print(f"lines that ran: {totals['ran']}, refused: {totals['refused']}, ended by a listed check: {totals['listed']}, "
          f"by a value: {totals['values']}")
    if args.count >= 6 and min(totals["ran"], totals["listed"]) < 10:
        failed += 1
        print("too few lines ran, or met a check")
    print(f"{args.count - min(failed, args.count)} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
