#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random well-typed programs: every engine gives what the reference evaluator gives.

A type-directed generator draws closed expressions of a wanted type, biased to sharing, closures in
data, references and derivatives. Each seed makes one file of items; the file is run in every way of
ENGINES, and standard output must be the same to the letter. Programs are well typed by
construction, so a diagnostic is a finding too.

    programs.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE, SLOW

FILES, ITEMS = 32, 40
ENGINES = ["--engine=reference", "--jit=off", "--jit=on"]
SHAPES = [(), (3,), (2, 3), (1, 3), (2, 1), (0,), (5,)]
LARGE = [(2500,), (50, 60)]  # from 2,048 elements on, operators are fused
FLOATS = ["float32", "float64"]


def tensor(dtype, shape):
    return ("tensor", dtype, shape)


def type_text(t):
    if t[0] == "tensor":
        if not t[2]:
            return t[1]
        dims = ", ".join(map(str, t[2])) + ("," if len(t[2]) == 1 else "")
        return f"Tensor[({dims}), {t[1]}]"
    if t[0] == "tuple":
        return "(" + ", ".join(type_text(x) for x in t[1]) + ("," if len(t[1]) == 1 else "") + ")"
    if t[0] == "list":
        return f"List[{type_text(t[1])}]"
    if t[0] == "option":
        return f"Option[{type_text(t[1])}]"
    return f"fn({', '.join(type_text(x) for x in t[1])}) -> {type_text(t[2])}"


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.names = 0
        self.scope = []  # (name, type)

    def fresh(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def some_type(self, depth):
        r = self.rng.random()
        if depth <= 0 or r < 0.6:
            dtype = self.rng.choice(FLOATS + ["float32", "int32", "bool"])
            shape = self.rng.choice(LARGE if self.rng.random() < 0.1 else SHAPES) if dtype != "bool" or self.rng.random() < 0.3 else ()
            return tensor(dtype, shape)
        inner = self.some_type(depth - 1)
        if r < 0.75:
            return ("tuple", [inner, self.some_type(depth - 1)])
        if r < 0.9:
            return ("list", inner)
        return ("option", inner)

    # ---- literals

    def number(self, dtype):
        if dtype == "int32":
            return str(self.rng.randint(-9, 9))
        if dtype == "bool":
            return self.rng.choice(["True", "False"])
        value = round(self.rng.uniform(-3, 3), 2)
        return f"{value}f64" if dtype == "float64" else f"{value}"

    def literal(self, t):
        dtype, shape = t[1], t[2]
        if 0 in shape:
            dims = ", ".join(map(str, shape))
            return f"zeros(shape=[{dims}], dtype={dtype})"
        if not shape:
            return self.number(dtype)
        if shape[0] > 5 or shape[-1] > 5:
            return self.large(dtype, shape)
        return "[" + ", ".join(self.literal(tensor(dtype, shape[1:])) for _ in range(shape[0])) + "]"

    def large(self, dtype, shape):
        n = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
        floats = dtype if dtype in FLOATS else "float32"
        step = f"{round(self.rng.uniform(0.001, 1.0), 3)}" + ("f64" if floats == "float64" else "")
        dims = ", ".join(map(str, shape))
        text = f"reshape(sin(cumsum(full({step}, shape=[{n}], dtype={floats}), axis=0)), newshape=[{dims}])"
        if dtype == "bool":
            return f"({text} > 0.0)"
        return f"cast({text} * 9.0, dtype=int32)" if dtype == "int32" else text

    # ---- expressions

    def expr(self, t, depth):
        known = [n for n, u in self.scope if u == t]
        if known and self.rng.random() < 0.45:
            return self.rng.choice(known)
        if depth > 0 and self.rng.random() < 0.3:
            return self.binder(t, depth)
        if t[0] == "tensor":
            return self.tensor_expr(t, depth)
        if t[0] == "tuple":
            return "(" + ", ".join(self.expr(x, depth - 1) for x in t[1]) + ("," if len(t[1]) == 1 else "") + ")"
        if t[0] == "list":
            return self.list_expr(t, depth)
        if t[0] == "option":
            return f"Some({self.expr(t[1], depth - 1)})"
        return self.closure(t, depth)

    def closure(self, t, depth):
        mark = len(self.scope)
        params = []
        for u in t[1]:
            name = self.fresh("p")
            params.append(f"{name}: {type_text(u)}")
            self.scope.append((name, u))
        body = self.expr(t[2], depth - 1)
        del self.scope[mark:]
        return f"fn ({', '.join(params)}) {{ {body} }}"

    def binder(self, t, depth):
        r = self.rng.random()
        if r < 0.35:
            u = self.some_type(1)
            name = self.fresh("x")
            value = self.expr(u, depth - 1)
            mark = len(self.scope)
            self.scope.append((name, u))
            body = self.expr(t, depth - 1)
            del self.scope[mark:]
            return f"{{ let {name} = {value}; {body} }}"
        if r < 0.5:
            c = self.expr(tensor("bool", ()), depth - 1)
            return f"if ({c}) {{ {self.expr(t, depth - 1)} }} else {{ {self.expr(t, depth - 1)} }}"
        if r < 0.65:
            u = self.some_type(1)
            f = self.closure(("fn", [u], t), depth)
            return f"({f})({self.expr(u, depth - 1)})"
        if r < 0.75:
            name = self.fresh("r")
            first, second = self.expr(t, depth - 1), self.expr(t, depth - 1)
            return f"{{ let {name} = ref({first}); let old{name} = !{name}; {name} := {second}; " \
                   f"if ({self.expr(tensor('bool', ()), depth - 2)}) {{ !{name} }} else {{ old{name} }} }}"
        if r < 0.85:
            u = self.some_type(0)
            name = self.fresh("h")
            xs = self.expr(("list", u), depth - 1)
            mark = len(self.scope)
            self.scope.append((name, u))
            some = self.expr(t, depth - 1)
            del self.scope[mark:]
            return f"match ({xs}) {{ Cons({name}, _) => {some}, Nil => {self.expr(t, depth - 1)} }}"
        if r < 0.93:
            u = self.some_type(0)
            pair = self.expr(("tuple", [t, u]), depth - 1)
            return f"({pair}).0"
        f = self.closure(("fn", [t], t), depth)
        name = self.fresh("f")
        return f"{{ let {name} = {f}; {name}({name}({self.expr(t, depth - 1)})) }}"

    def list_expr(self, t, depth):
        r = self.rng.random()
        if depth > 0 and r < 0.3:
            u = self.some_type(0)
            return f"map({self.closure(('fn', [u], t[1]), depth)}, {self.expr(('list', u), depth - 1)})"
        if depth > 0 and r < 0.4:
            return f"rev({self.expr(t, depth - 1)})"
        n = self.rng.randint(1, 3)
        return "list[" + ", ".join(self.expr(t[1], depth - 1) for _ in range(n)) + "]"

    def broadcast_operands(self, t):
        """Two types whose broadcast is t."""
        dtype, shape = t[1], t[2]
        a = b = shape
        if shape and self.rng.random() < 0.5:
            b = tuple(1 if self.rng.random() < 0.4 and d != 0 else d for d in shape)
            if self.rng.random() < 0.3:
                b = shape[1:] if len(shape) > 1 else ()
        return (tensor(dtype, a), tensor(dtype, b)) if self.rng.random() < 0.5 else \
               (tensor(dtype, b), tensor(dtype, a))

    def tensor_expr(self, t, depth):
        dtype, shape = t[1], t[2]
        if depth <= 0:
            return self.literal(t)
        r = self.rng.random()
        if dtype == "bool":
            if r < 0.5:
                a, b = self.broadcast_operands(tensor(self.rng.choice(FLOATS + ["int32"]), shape))
                sign = self.rng.choice(["<", "<=", ">", ">="])
                return f"({self.expr(a, depth - 1)} {sign} {self.expr(b, depth - 1)})"
            if not shape:
                return f"({self.expr(t, depth - 1)} {self.rng.choice(['&&', '||'])} {self.expr(t, depth - 1)})"
            return f"logical_not({self.expr(t, depth - 1)})"
        if dtype == "int32":
            if r < 0.6:
                a, b = self.broadcast_operands(t)
                sign = self.rng.choice(["+", "-", "*"])
                return f"({self.expr(a, depth - 1)} {sign} {self.expr(b, depth - 1)})"
            if r < 0.8:
                return f"({self.expr(t, depth - 1)} / {self.rng.choice([2, 3, 7, -4])})"
            return f"cast({self.expr(tensor('float32', shape), depth - 1)}, dtype=int32)"
        if r < 0.35:
            a, b = self.broadcast_operands(t)
            sign = self.rng.choice(["+", "-", "*", "/"])
            return f"({self.expr(a, depth - 1)} {sign} {self.expr(b, depth - 1)})"
        if r < 0.6:
            op = self.rng.choice(["tanh", "sigmoid", "exp", "sin", "cos", "nn.relu", "negative", "abs", "sqrt",
                                  "floor", "log"])
            return f"{op}({self.expr(t, depth - 1)})"
        if r < 0.7:
            c = self.expr(tensor("bool", shape), depth - 1)
            return f"where({c}, {self.expr(t, depth - 1)}, {self.expr(t, depth - 1)})"
        if r < 0.78 and not shape:
            op = self.rng.choice(["sum", "mean", "max", "min"])
            u = tensor(dtype, self.rng.choice([(3,), (2, 3), (5,)]))
            return f"{op}({self.expr(u, depth - 1)})"
        if r < 0.85 and len(shape) == 2 and 0 not in shape:
            k = self.rng.choice([1, 2, 4])
            a, b = tensor(dtype, (shape[0], k)), tensor(dtype, (k, shape[1]))
            return f"({self.expr(a, depth - 1)} @@ {self.expr(b, depth - 1)})"
        if r < 0.93:
            f = self.closure(("fn", [t], tensor(dtype, ())), depth)
            return f"deriv({f})({self.expr(t, depth - 1)})"
        return self.literal(t)

    def item(self):
        return self.expr(self.some_type(2), self.rng.randint(2, 4))


def make_file(seed, items):
    rng = random.Random(seed)
    lines = []
    for _ in range(items):
        lines.append(Generator(rng).item())
    return "\n".join(lines) + "\n"


def run(relay, path, engine):
    p = subprocess.run([relay, engine, "--color=never", path], capture_output=True,
                       timeout=PATIENCE * SLOW)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def compare(results):
    """What is wrong with the results of the engines, by name, the reference first; None if nothing."""
    for engine, (status, _, errors) in results.items():
        if status < 0:
            return f"{engine} ended by signal {-status}"
        if status:
            return f"{engine} gives a diagnostic for a well-typed program:\n{errors[:3000]}"
    (oracle, (_, wanted, _)), *others = results.items()
    for engine, (_, found, _) in others:
        if found != wanted:
            pairs = zip(wanted.decode().splitlines(), found.decode().splitlines())
            x, y = next(((x, y) for x, y in pairs if x != y), ("", ""))
            return f"{oracle} gives\n  {x}\n{engine} gives\n  {y}"
    return None


def main():
    args = share.arguments(__doc__).parse_args()
    seeds = share.seeds(args, FILES)
    failed = 0
    for seed in seeds:
        text = make_file(seed, ITEMS)
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "program.rly")
            with open(path, "w") as f:
                f.write(text)
            problem = compare({engine: run(args.relay, path, engine) for engine in ENGINES})
        if problem:
            failed += 1
            print(f"seed {seed}: {problem}")
            if args.keep:
                os.makedirs(args.keep, exist_ok=True)
                with open(os.path.join(args.keep, f"program{seed}.rly"), "w") as f:
                    f.write(text)
    print(f"{len(seeds) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
