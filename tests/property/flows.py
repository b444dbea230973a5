#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random derivatives of programs in which functions go through data, choices, calls and folds (passes/reverse/functions.c), or
references are written by whichever functions (passes/reverse/references.c): the same text as by the reference evaluator.

Half of the programs are of each sort, and run before and after passes by turns, every fifth with all types checked.

    flows.py RELAY [--share=F] [--seed=N]
"""
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import share  # noqa: E402
from process import PATIENCE, SLOW  # noqa: E402

WHOLE = 2000
POINT, DIRECTION = "0.6f64", "1.0"
WAYS = ["deriv(%s)", "deriv(%s)", "grad(%s)", "jvp(%s)", "deriv(deriv(%s))"]


class Draw:
    """Expressions of a program. vs: names of numbers that are in scope; fs, rs: of functions, of references."""

    def __init__(self, seed):
        self.random, self.count = random.Random(seed), 0

    def new(self, letter):
        self.count += 1
        return letter + str(self.count)

    def one_of(self, *makers):
        return self.random.choice(makers)()


class Functions(Draw):
    HEAD = """type M { M { run: fn(float64) -> float64, k: float64 } }
type W { One(fn(float64) -> float64), Two(fn(float64) -> float64, float64), Zero }
let gf = fn (y: float64) -> float64 { y * 0.5 + sin(y) };
let gfs = list[fn (y: float64) -> float64 { y * 0.7 }, sin, gf];
def mk(x: float64, n: int32) -> fn(float64) -> float64 {
  if (n == 0) { fn (y) { y * x } } else { if (n == 1) { cos } else { fn (y) { y - x } } }
}
def chain(fs: List[fn(float64) -> float64], x: float64) -> float64 { match (fs) { Nil => x, Cons(f, rest) => chain(rest, f(x)) } }
def app(f: fn(float64) -> float64, x: float64) -> float64 { f(x) * 0.9 }
def twice(f: fn(float64) -> float64) -> fn(float64) -> float64 { fn (y) { f(f(y)) } }
def rep(f: fn(float64) -> float64, n: int32, x: float64) -> float64 { if (n == 0) { x } else { rep(f, n - 1, f(x)) } }
def grow(n: int32, x: float64, k: fn(float64) -> float64) -> float64 {
  if (n == 0) { k(x) } else { grow(n - 1, x, fn (r) { k(r * 0.8 + 0.1) }) }
}
def pick(w: W, d: fn(float64) -> float64) -> fn(float64) -> float64 {
  match (w) { One(f) => f, Two(f, k) => fn (y) { f(y) * k }, Zero => d }
}
let gp = (cos, 0.9f64, fn (y: float64) { y * 0.8 });
let gm = M { run: tanh, k: 0.4 };
let gw = list[Two(gf, 0.3), One(mk(0.5, 0)), Zero];
let gk = map(fn (n) { mk(0.8, n) }, range(3));
let go = twice(hd(gk));
let gc = { let inner = list[sin, twice(gf)]; Some(fn (y: float64) -> float64 { chain(inner, y) * 0.6 }) };
let gr = { let h = fn (n: int32, y: float64) -> float64 { if (n == 0) { y } else { h(n - 1, y * 0.9) } }; fn (y: float64) { h(2, y) } };
let ge = { let r = ref(0.7f64); fn (y: float64) -> float64 { !r * y } };
let gd = list[deriv(fn (y: float64) -> float64 { y * y * 0.5 })];
"""
    LISTS = ["gfs", "gk", "gfs", "gk", "Cons(go, gfs)", "Cons(gr, gk)", "gd", "map(twice, gk)"]
    SINGLE = ["gf", "hd(gfs)", "gp.0", "gp.2", "gm.run", "pick(hd(gw), sin)", "hd(gk)", "go", "gr", "ge", "hd(gd)",
              "(match (gc) { Some(g) => g, None => sin })", "deriv(go)", "fn (y: float64) { hd(gk)(y) * gm.k }"]

    def body(self):
        return self.number(4, ["x"], [])

    def number(self, depth, vs, fs):
        if depth <= 0:
            return self.random.choice(vs + ["0.7f64", "1.2f64"])
        n = lambda: self.number(depth - 1, vs, fs)
        f = lambda: self.function(depth - 1, vs, fs)
        fl = lambda: self.functions(depth - 1, vs, fs)

        def bound():
            name = self.new("f")
            return "{ let %s = %s; %s(%s) + %s }" % (name, f(), name, n(), self.number(depth - 1, vs, fs + [name]))

        def named():
            name = self.new("v")
            return "{ let %s = %s; %s }" % (name, n(), self.number(depth - 1, vs + [name], fs))

        return self.one_of(lambda: "(%s * %s * 0.6)" % (n(), n()), lambda: "sin(%s)" % n(), lambda: "(%s + %s)" % (n(), n()),
                           lambda: "foldl(fn (a, f) { f(a) }, %s, %s)" % (n(), fl()), lambda: "chain(%s, %s)" % (fl(), n()),
                           lambda: "app(%s, %s)" % (f(), n()), lambda: "rep(%s, 2, %s)" % (f(), n()),
                           lambda: "grow(3, %s, %s)" % (n(), f()), lambda: "deriv(%s)(%s)" % (f(), n()), bound, bound, named)

    def functions(self, depth, vs, fs):
        f = lambda: self.function(depth - 1, vs, fs)
        some = lambda: "list[%s]" % ", ".join(f() for _ in range(self.random.randrange(1, 4)))
        if depth <= 0:
            return some()
        rest = lambda: self.functions(depth - 1, vs, fs)
        scaled = lambda: "map(fn (g) { fn (y: float64) { g(y) * %s } }, %s)" % (self.number(0, vs, fs), rest())
        made = lambda: "map(fn (n) { mk(%s, n) }, range(3))" % self.number(0, vs, fs)
        there = lambda: self.random.choice(self.LISTS)
        return self.one_of(some, some, some, there, scaled, made, lambda: "Cons(%s, %s)" % (f(), rest()), lambda: "rev(%s)" % rest())

    def function(self, depth, vs, fs):
        if depth <= 0:
            name = self.new("y")
            literal = "(fn (%s: float64) { %s * %s })" % (name, name, self.random.choice(vs))
            return self.random.choice(["sin", "cos", "tanh", literal, literal] + fs * 2)
        f = lambda: self.function(depth - 1, vs, fs)
        n = lambda: self.number(0, vs, fs)

        def literal():
            name = self.new("y")
            return "(fn (%s: float64) -> float64 { %s })" % (name, self.number(depth - 1, vs + [name], fs))

        def kept():
            name = self.new("r")
            return "{ let %s = ref(%s); %s := %s; !%s }" % (name, f(), name, f(), name)

        def recursive():
            name = self.new("h")
            return ("{ let %s = fn (n: int32, y: float64) -> float64 { if (n == 0) { y } else { %s(n - 1, y * %s) } };"
                    " fn (y: float64) { %s(2, y) } }" % (name, name, self.random.choice(vs), name))

        return self.one_of(
            literal, literal, literal, kept, recursive, lambda: "compose(%s, %s)" % (f(), f()),
            lambda: "(if (%s > 0.5) { %s } else { %s })" % (self.random.choice(vs), f(), f()),
            lambda: "hd(%s)" % self.functions(depth - 1, vs, fs),
            lambda: "(match (Some(%s)) { Some(g) => g, None => %s })" % (f(), f()),
            lambda: "(%s, %s).0" % (f(), n()), lambda: "M { run: %s, k: %s }.run" % (f(), n()),
            lambda: "mk(%s, %d)" % (n(), self.random.randrange(3)), lambda: "twice(%s)" % f(), lambda: "iterate(%s, 2)" % f(),
            lambda: "deriv(%s)" % f(), lambda: "id(%s)" % f(),
            lambda: "foldl(fn (f, g) { fn (y: float64) -> float64 { g(f(y)) } }, %s, %s)" % (f(), self.functions(depth - 1, vs, fs)),
            lambda: self.random.choice(self.SINGLE), lambda: self.random.choice(self.SINGLE),
            lambda: "pick(%s, %s)" % (self.one_of(lambda: "One(%s)" % f(), lambda: "Two(%s, %s)" % (f(), n()), lambda: "Zero"), f()))


class References(Draw):
    HEAD = """let far = ref(0.5f64);
let count = ref(0);
def put(r: ref(float64), x: float64) -> () { r := !r * x }
def both(r: ref(float64), s: ref(float64), x: float64) -> float64 { r := !r * x + !s; s := !s * 0.5; !r }
def down(r: ref(float64), n: int32, x: float64) -> float64 { if (n == 0) { !r } else { r := !r * 0.9 + x; down(r, n - 1, x) + !r * 0.1 } }
def each(f: fn(float64) -> (), xs: List[float64]) -> () { match (xs) { Nil => (), Cons(x, rest) => { f(x); each(f, rest) } } }
def loud(x: float64) -> float64 { count := !count + 1; x }
"""

    def body(self):
        return "{ let r0 = ref(%s); %s; %s; %s }" % (self.number(2, ["x"], [], []), self.statement(3, ["x"], ["r0"], []),
                                                    self.statement(3, ["x"], ["r0"], []), self.number(4, ["x"], ["r0"], []))

    def number(self, depth, vs, rs, fs):
        leaf = lambda: self.random.choice(vs + ["0.7f64"] + ["!" + r for r in rs] * 2)
        if depth <= 0:
            return leaf()
        n = lambda: self.number(depth - 1, vs, rs, fs)
        s = lambda: self.statement(depth - 1, vs, rs, fs)

        def reference():
            name = self.new("r")
            inner = rs + [name]
            return "{ let %s = ref(%s); %s; %s; %s }" % (name, n(), self.statement(depth - 1, vs, inner, fs),
                                                         self.statement(depth - 1, vs, inner, fs), self.number(depth - 1, vs, inner, fs))

        def named():
            name = self.new("v")
            return "{ let %s = %s; %s }" % (name, n(), self.number(depth - 1, vs + [name], rs, fs))

        def function():
            name, y = self.new("f"), self.new("y")
            return "{ let %s = fn (%s: float64) -> float64 { %s }; %s }" % (
                name, y, self.number(depth - 1, vs + [y], rs, fs), self.number(depth - 1, vs, rs, fs + [name]))

        def recursion():
            name, k = self.new("go"), self.new("n")
            again = self.random.choice(["%s(%s - 1)" % (name, k), "%s(%s - 1) * 0.5 + %s" % (name, k, leaf())])
            return "{ let %s = fn (%s: int32) -> float64 { if (%s <= 0) { %s } else { %s; %s } }; %s(2) }" % (
                name, k, k, n(), s(), again, name)

        makers = [lambda: "(%s * %s * 0.7)" % (n(), n()), lambda: "sin(%s)" % n(), lambda: "(%s + %s)" % (n(), n()), reference, named,
                  lambda: "(if (%s > 0.5) { %s } else { %s })" % (leaf(), n(), n()), lambda: "{ %s; %s }" % (s(), n()),
                  lambda: "(%s, %s).%d" % (n(), n(), self.random.randrange(2)), lambda: "loud(%s)" % n(),
                  lambda: "match (Some(%s)) { Some(z) => z * %s, None => %s }" % (n(), n(), n())]
        if rs:
            r = lambda: self.random.choice(rs)
            makers += [function, recursion, lambda: "down(%s, 2, %s)" % (r(), n()), lambda: "both(%s, %s, %s)" % (r(), r(), n())]
        if fs:
            makers.append(lambda: "%s(%s)" % (self.random.choice(fs), n()))
        return self.one_of(*makers)

    def statement(self, depth, vs, rs, fs):
        n = lambda: self.number(depth - 1, vs, rs, fs)
        if not rs:
            return "count := !count + 1"
        r = self.random.choice(rs)
        write = lambda: "%s := %s" % (r, n())
        makers = [write, write, write, lambda: "(if (%s > 0.4) { %s } else { () })" % (n(), write()), lambda: "put(%s, %s)" % (r, n()),
                  lambda: "{ let a = %s; a := %s }" % (r, n()), lambda: "%s := !%s + %s" % (r, r, n()),
                  lambda: "each(fn (z) { %s := !%s * z + 0.1 }, list[%s, %s])" % (r, r, n(), n()),
                  lambda: "{ let w = fn () -> () { %s }; w(); w() }" % write(), lambda: "%s := !far * %s" % (r, n()),
                  lambda: "match (list[%s]) { Cons(b, _) => b := %s, Nil => () }" % (r, n()), lambda: "put(far, 1.0)"]
        if depth > 0:
            makers.append(lambda: "{ %s; %s }" % (self.statement(depth - 1, vs, rs, fs), self.statement(depth - 1, vs, rs, fs)))
        return self.one_of(*makers)


def captured_program(draw, way, point):
    """A derivative of a function that captured a list and a record, for two of each."""
    draw.LISTS, draw.SINGLE = draw.LISTS + ["hs"] * 8, draw.SINGLE + ["hm.run", "hd(hs)"] * 6
    top = "def top(hs: List[fn(float64) -> float64], hm: M) { %s%s }\n" % (
        way % ("fn (x: float64) -> float64 { %s * hm.k }" % draw.body()), point)
    lists = draw.random.sample(["gfs", "gk", "list[sin]", "Cons(go, gfs)", "list[fn (y: float64) { y * 0.3 }, gr]", "gd"], 2)
    records = draw.random.sample(["gm", "M { run: sin, k: 0.5 }", "M { run: go, k: 0.2 }"], 2)
    return draw.HEAD + top + "".join("top(%s, %s)\n" % call for call in zip(lists + lists[:1], records + records[:1]))


def program(seed):
    draw = (References if seed % 2 else Functions)(seed)
    way = draw.random.choice(WAYS)
    point = "(%s, %s)" % (POINT, DIRECTION) if way.startswith("jvp") else "(%s)" % POINT
    if seed % 6 == 0:
        return captured_program(draw, way, point)
    shown = "!count\n!far\n" if seed % 2 else ""
    return draw.HEAD + way % ("fn (x: float64) -> float64 { %s }" % draw.body()) + point + "\n" + shown


def run(relay, flags, path):
    done = subprocess.run([relay] + flags + [path], capture_output=True, text=True, timeout=PATIENCE * SLOW)
    return done.stdout if done.returncode == 0 else "status %d\n%s" % (done.returncode, done.stderr[-1500:])


def judge(relay, folder, seed):
    """What is wrong with a program, or an empty text."""
    path = os.path.join(folder, "%d.rly" % seed)
    with open(path, "w", encoding="utf-8") as f:
        f.write(program(seed))
    right = run(relay, ["--engine=reference"], path)
    found = run(relay, ["--opt=%d" % (seed % 3)] + (["--check-core"] if seed % 5 == 0 else []), path)
    os.unlink(path)
    if right.startswith("status"):
        return "the program does not run: " + right
    return "" if found == right else "by the reference evaluator\n%sfound\n%s" % (right, found)


def main():
    options = share.arguments(__doc__).parse_args()
    relay, failed = os.path.abspath(options.relay), 0
    seeds = share.seeds(options, WHOLE)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for seed, wrong in zip(seeds, pool.map(lambda seed: judge(relay, folder, seed), seeds)):
            if wrong:
                failed += 1
                print("program %d: %s\n%s" % (seed, wrong, program(seed).split("\n")[-4 if seed % 2 else -5 if seed % 6 == 0 else -2]))
    print("%d passed, %d failed, 0 skipped" % (len(seeds) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
