#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random derivatives of programs in which functions go through data, choices, calls and folds (passes/reverse/functions.c),
references are written by whichever functions (passes/reverse/references.c), or lists and trees have parts in common
(passes/reverse/mirror.c): the same text as by the reference evaluator.

Half of the programs are of the first sort, a quarter of each other. They run before and after passes by turns, every fifth with all
types checked.

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
WAYS = ["deriv(%s)", "deriv(%s)", "grad(%s)", "jvp(%s)", "deriv(deriv(%s))", "jvp(deriv(%s))",
        "deriv(fn (x) { deriv(%s)(x) * x })", "deriv(deriv(deriv(%s)))"]


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


class Parts(Draw):
    """ls, ts: names of lists and of trees."""

    HEAD = """type T { Leaf(float64), Node(T, float64, T) }
type P { P { xs: List[float64], k: float64 } }
def at(xs: List[float64], n: int32) -> float64 { match (xs) { Nil => 0.5, Cons(x, rest) => if (n == 0) { x } else { at(rest, n - 1) } } }
def rest(xs: List[float64]) -> List[float64] { match (xs) { Nil => xs, Cons(_, r) => r } }
def above(xs: List[float64], k: float64) -> List[float64] { match (xs) { Nil => xs, Cons(x, r) => if (x > k) { xs } else { above(r, k) } } }
def dot(xs: List[float64], ys: List[float64]) -> float64 {
  match (xs) { Nil => 0.1, Cons(x, r) => match (ys) { Nil => x, Cons(y, q) => x * y * 0.5 + dot(r, q) } }
}
def pairs(xs: List[float64], ys: List[float64]) -> float64 {
  foldl(fn (a: float64, x: float64) -> float64 { a + foldl(fn (b: float64, y: float64) -> float64 { b * 0.9 + (x - y) * x }, 0.2, ys) }, 0.1, xs)
}
def look(env: List[(float64, float64)], k: float64) -> float64 { match (env) { Nil => k, Cons((a, b), r) => if (a > k) { b } else { look(r, k) } } }
def total(t: T) -> float64 { match (t) { Leaf(x) => x * x, Node(l, x, r) => total(l) * 0.5 + x * total(r) * 0.5 } }
def left(t: T, n: int32) -> T { match (t) { Leaf(_) => t, Node(l, _, _) => if (n == 0) { t } else { left(l, n - 1) } } }
def put(t: T, x: float64) -> T { match (t) { Leaf(y) => if (x > y) { Node(t, x, Leaf(y)) } else { t }, Node(l, y, r) => Node(put(l, x), y, r) } }
"""

    def body(self):
        return "{ let l0 = list[x, %s, x * 0.7]; let t0 = Node(Leaf(x), %s, Leaf(0.4f64)); %s }" % (
            self.number(1, ["x"], [], []), self.number(1, ["x"], [], []), self.number(5, ["x"], ["l0"], ["t0"]))

    def number(self, depth, vs, ls, ts):
        if depth <= 0 or not ls:
            return self.random.choice(vs + ["0.7f64", "sin(%s)" % vs[-1]])
        n = lambda: self.number(depth - 1, vs, ls, ts)
        l = lambda: self.some(depth - 1, vs, ls, ts)
        t = lambda: self.tree(depth - 1, vs, ls, ts)
        k = lambda: self.random.randrange(3)

        def named():
            name, kind = self.new("v"), self.random.randrange(4)
            value = n() if kind == 0 else t() if kind == 1 else l()
            inner = [scope + [name] if kind == which else scope for which, scope in ((0, vs), (2, ls), (1, ts))]
            if kind == 3:
                inner[1] = ls + [name]
            return "{ let %s = %s; %s }" % (name, value, self.number(depth - 1, *inner))

        def taken():
            h, r = self.new("h"), self.new("r")
            return "match (%s) { Cons(%s, %s) => %s, Nil => %s }" % (l(), h, r, self.number(depth - 1, vs + [h], ls + [r], ts), n())

        def branch():
            a, x, b = self.new("a"), self.new("x"), self.new("b")
            return "match (%s) { Node(%s, %s, %s) => %s, Leaf(%s) => %s }" % (
                t(), a, x, b, self.number(depth - 1, vs + [x], ls, ts + [a, b]), x, self.number(depth - 1, vs + [x], ls, ts))

        def fold():
            a, v = self.new("a"), self.new("v")
            return "foldl(fn (%s: float64, %s: float64) -> float64 { %s * 0.5 + %s }, %s, %s)" % (
                a, v, a, self.number(depth - 2, vs + [a, v], ls, ts), n(), l())

        return self.one_of(lambda: "(%s * %s * 0.6)" % (n(), n()), lambda: "(%s + %s)" % (n(), n()), lambda: "sin(%s)" % n(),
                           lambda: "at(%s, %d)" % (l(), k()), lambda: "dot(%s, %s)" % (l(), l()), lambda: "pairs(%s, %s)" % (l(), l()),
                           lambda: "list.sum(%s)" % l(), lambda: "total(%s)" % t(), lambda: "look(zip(%s, %s), %s)" % (l(), l(), n()),
                           lambda: "P { xs: %s, k: %s }.k" % (l(), n()), named, named, taken, branch, fold)

    def some(self, depth, vs, ls, ts):
        if depth <= 0:
            return self.random.choice(ls)
        n = lambda: self.number(depth - 1, vs, ls, ts)
        l = lambda: self.some(depth - 1, vs, ls, ts)
        k = lambda: self.random.randrange(3)

        def mapped():
            v = self.new("v")
            return "map(fn (%s: float64) -> float64 { %s }, %s)" % (v, self.number(depth - 2, vs + [v], ls, ts), l())

        def again():
            m = self.new("m")
            return "loop(%d, fn (%s: List[float64]) -> List[float64] { %s }, %s)" % (k(), m, self.some(depth - 2, vs, ls + [m], ts), l())

        name = lambda: self.random.choice(ls)
        return self.one_of(name, name, name, lambda: "drop(%d, %s)" % (k(), l()), lambda: "Cons(%s, %s)" % (n(), l()), lambda: "rest(%s)" % l(),
                           lambda: "list.take(4, concat(%s, %s))" % (l(), l()), lambda: "(if (%s > 0.5) { %s } else { %s })" % (n(), l(), l()),
                           lambda: "above(%s, %s)" % (l(), n()), lambda: "list.sort(%s)" % l(), lambda: "rev(%s)" % l(), mapped, again,
                           lambda: "map2(fn (a: float64, b: float64) -> float64 { a * b }, %s, %s)" % (l(), l()),
                           lambda: "P { xs: %s, k: %s }.xs" % (l(), n()), lambda: "(%s, %s).0" % (l(), n()),
                           lambda: "(match (Some(%s)) { Some(o) => o, None => %s })" % (l(), l()))

    def tree(self, depth, vs, ls, ts):
        if depth <= 0:
            return self.random.choice(ts)
        n = lambda: self.number(depth - 1, vs, ls, ts)
        t = lambda: self.tree(depth - 1, vs, ls, ts)
        name = lambda: self.random.choice(ts)
        return self.one_of(name, name, lambda: "left(%s, 1)" % t(), lambda: "put(%s, %s)" % (t(), n()),
                           lambda: "Node(%s, %s, %s)" % (t(), n(), t()), lambda: "Leaf(%s)" % n(),
                           lambda: "{ let u = %s; Node(u, %s, u) }" % (t(), n()),
                           lambda: "(match (%s) { Node(l, y, r) => Node(r, y, l), Leaf(_) => %s })" % (t(), t()))


def captured_program(draw, way, point):
    """A derivative of a function that captured a list and a record, for two of each."""
    draw.LISTS, draw.SINGLE = draw.LISTS + ["hs"] * 8, draw.SINGLE + ["hm.run", "hd(hs)"] * 6
    top = "def top(hs: List[fn(float64) -> float64], hm: M) { %s%s }\n" % (
        way % ("fn (x: float64) -> float64 { %s * hm.k }" % draw.body()), point)
    lists = draw.random.sample(["gfs", "gk", "list[sin]", "Cons(go, gfs)", "list[fn (y: float64) { y * 0.3 }, gr]", "gd"], 2)
    records = draw.random.sample(["gm", "M { run: sin, k: 0.5 }", "M { run: go, k: 0.2 }"], 2)
    return draw.HEAD + top + "".join("top(%s, %s)\n" % call for call in zip(lists + lists[:1], records + records[:1]))


def program(seed):
    draw = (Functions, References, Functions, Parts)[seed % 4](seed)
    way = draw.random.choice(WAYS)
    point = "(%s, %s)" % (POINT, DIRECTION) if way.startswith("jvp") else "(%s)" % POINT
    if seed % 6 == 0:
        return captured_program(draw, way, point)
    shown = "!count\n!far\n" if isinstance(draw, References) else ""
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
                print("program %d: %s\n%s" % (seed, wrong, program(seed).split("\n")[-4 if seed % 4 == 1 else -5 if seed % 6 == 0 else -2]))
    print("%d passed, %d failed, 0 skipped" % (len(seeds) - failed, failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
