#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference does not mind how a program is written.

Random definitions without annotations, and the definitions of the golden programs, in other words:

    annotated   `let g: T = fn …` where T is the type inferred, as printed (so T is read back too)
    eta         `def g(x, y) { f(x, y) }`
    renamed     other names of parameters and locals
    abstracted  `let v = e;` for a subexpression e
    reordered   other parameters first, and its calls accordingly
    literal     `fn (x, y) { … }` without a name

Each must check and have the type of the original, to the letter. A definition that does not check
must not check renamed or reordered either. Mutants of the golden programs (one token dropped, doubled,
exchanged or replaced) are checked or refused: nothing else may happen.

    inference.py RELAY [--share=F] [--seed=N]
"""
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
GOLDEN = os.path.join(os.path.dirname(HERE), "golden")
DEFINITIONS, GOLDENS, MUTANTS = 480, 240, 1200  # random definitions; programs, at most; of those
PREFIX = "type Line { Line { slope: float32, at: float32 } }\n"


class E:
    """An expression: text with holes for names, and its parts."""

    def __init__(self, form, *parts):
        self.form, self.parts = form, parts

    def text(self, names):
        out = self.form
        for i, p in enumerate(self.parts):
            out = out.replace("{%d}" % i, p.text(names))
        return out

    def walk(self):
        yield self
        for p in self.parts:
            yield from p.walk()

    def replaced(self, old, new):
        if self is old:
            return new
        return type(self)(self.form, *(p.replaced(old, new) for p in self.parts))


class Name(E):
    def text(self, names):
        return names.get(self.form, self.form)


class Generator:
    """Expressions of loosely known kinds: most of what comes out is well typed, and not all."""

    KINDS = ["num", "num", "num", "num", "bool", "pair", "fn", "ref", "list", "record", "any"]

    def __init__(self, rng):
        self.rng, self.scope, self.made = rng, [], 0

    def fresh(self, kind):
        self.made += 1
        name = "v%d" % self.made
        self.scope.append((name, kind))
        return name

    def name(self, kind):
        known = [n for n, k in self.scope if k == kind]
        return Name(self.rng.choice(known)) if known else None

    def expr(self, kind, depth):
        n = self.name(kind)
        if n and (depth <= 0 or self.rng.random() < 0.4):
            return n
        if depth > 0 and self.rng.random() < 0.25:
            return self.binder(kind, depth)
        return getattr(self, kind)(depth - 1)

    def binder(self, kind, depth):
        r, mark = self.rng.random(), len(self.scope)
        if r < 0.5:
            other = self.rng.choice(self.KINDS)
            value = self.expr(other, depth - 1)
            name = self.fresh(other)
            e = E("{ let {0} = {1}; {2} }", Name(name), value, self.expr(kind, depth - 1))
        elif r < 0.75:
            e = E("if ({0}) { {1} } else { {2} }", self.expr("bool", depth - 2), self.expr(kind, depth - 1),
                  self.expr(kind, depth - 1))
        elif r < 0.9:
            scrutinee = self.expr("list", depth - 1)
            head = self.fresh("num")
            some = self.expr(kind, depth - 1)
            del self.scope[mark:]
            return E("match ({0}) { Cons({1}, _) => {2}, Nil => {3} }", scrutinee, Name(head), some,
                     self.expr(kind, depth - 1))
        else:
            e = E("({ let {0} = {1}; ({2}, {0}) }.0)", Name(self.fresh("num")), self.num(depth - 2),
                  self.expr(kind, depth - 1))
        del self.scope[mark:]
        return e

    def num(self, depth):
        if depth <= 0:
            return self.name("num") or E(self.rng.choice(["2", "1.5", "3.0f64", "1i64"]))
        x = lambda: self.expr("num", depth)
        return self.rng.choice([
            lambda: E("({0} + {1})", x(), x()), lambda: E("({0} * {1})", x(), x()),
            lambda: E("({0} - {1})", x(), x()), lambda: E("({0} + 1)", x()),
            lambda: E("({0} * 0.5)", x()), lambda: E("({0} @@ {1})", x(), x()),
            lambda: E("(-{0})", x()), lambda: E("exp({0})", x()), lambda: E("sum({0})", x()),
            lambda: E("sum({0}, axis=[1])", x()), lambda: E("nn.relu({0})", x()),
            lambda: E("transpose({0})", x()), lambda: E("nn.dense({0}, {1})", x(), x()),
            lambda: E("where({0}, {1}, {2})", self.expr("bool", depth), x(), x()),
            lambda: E("{0}.0", self.expr("pair", depth)), lambda: E("{0}.1", self.expr("pair", depth)),
            lambda: E("{0}({1})", self.expr("fn", depth), x()), lambda: E("(!{0})", self.expr("ref", depth)),
            lambda: E("{0}.slope", self.expr("record", depth)), lambda: E("{0}.w", self.expr("any", depth)),
            lambda: E("foldl({0}, {1}, {2})", self.fn2(depth), x(), self.expr("list", depth)),
            lambda: E("deriv({0})({1})", self.expr("fn", depth), x()),
            lambda: E("grad({0})({1}).0", self.expr("fn", depth), x()),
            lambda: E("({0} |> {1})", x(), self.expr("fn", depth)),
        ])()

    def bool(self, depth):
        x = lambda: self.expr("num", depth)
        return self.rng.choice([
            lambda: E("({0} < {1})", x(), x()), lambda: E("({0} == {1})", x(), x()),
            lambda: E("({0} == {1})", self.expr("pair", depth), self.expr("pair", depth)),
            lambda: E("({0} && {1})", self.expr("bool", depth - 1), self.expr("bool", depth - 1))
            if depth > 0 else E("True"), lambda: E("True")])()

    def pair(self, depth):
        return E("({0}, {1})", self.expr("num", depth), self.expr("num", depth))

    def fn(self, depth):
        mark = len(self.scope)
        name = self.fresh("num")
        e = E("(fn ({0}) { {1} })", Name(name), self.expr("num", depth))
        del self.scope[mark:]
        return e

    def fn2(self, depth):
        mark = len(self.scope)
        a, b = self.fresh("num"), self.fresh("num")
        e = E("(fn ({0}, {1}) { {2} })", Name(a), Name(b), self.expr("num", depth))
        del self.scope[mark:]
        return e

    def ref(self, depth):
        return E("ref({0})", self.expr("num", depth))

    def list(self, depth):
        return self.rng.choice([
            lambda: E("list[{0}, {1}]", self.expr("num", depth), self.expr("num", depth)),
            lambda: E("map({0}, {1})", self.fn(depth), self.expr("list", depth - 1)) if depth > 0 else E("Nil"),
            lambda: E("({0} :: {1})", self.expr("num", depth), self.expr("list", depth - 1))
            if depth > 0 else E("Nil")])()

    def record(self, depth):
        return E("Line { slope: {0}, at: 1.0 }", self.expr("num", depth))

    def any(self, depth):
        return self.name("any") or self.record(depth)

    def definition(self):
        params = []
        for _ in range(self.rng.randint(1, 3)):
            kind = self.rng.choice(self.KINDS)
            params.append(self.fresh(kind))
        kind = self.rng.choice(["num", "num", "num", "bool", "pair", "list", "fn"])
        return params, self.expr(kind, self.rng.randint(2, 4))


# ---- variants -------------------------------------------------------------------------------------

BINDS = re.compile(r"\{ let|=> |fn \(|ref\(|:=")


def bound_in(e):
    """The names e itself binds."""
    names = set()
    for part in e.walk():
        if isinstance(part, Name):
            continue
        for i, p in enumerate(part.parts):
            if isinstance(p, Name) and ("let {%d} =" % i in part.form or "fn ({%d}" % i in part.form
                                        or "Cons({%d}" % i in part.form or ", {%d}) {" % i in part.form):
                names.add(p.form)
    return names


def abstractable(body, params, rng):
    """A subexpression over parameters alone, without literals (their dtype would be settled by the
    `let`) and without references (one would be made before another)."""
    found = []
    for e in body.walk():
        if isinstance(e, Name) or e is body:
            continue
        text = e.text({})
        free = {p.form for p in e.walk() if isinstance(p, Name)} - bound_in(e)
        if free and free <= set(params) and not re.search(r"\b\d|ref\(|!|error|Nil|list\[", text):
            found.append(e)
    return rng.choice(found) if found else None


def variants(params, body, rng):
    """(name, its items; the last of them is shown)."""
    head, text = ", ".join(params), body.text({})
    out = [("eta", "def g(%s) { f(%s) }\ng" % (head, head)), ("literal", "fn (%s) { %s }" % (head, text))]
    names = {n: n.replace("v", "other_") for n in set(params) | bound_in(body)}
    out.append(("renamed", "def g(%s) { %s }\ng" % (", ".join(names[p] for p in params), body.text(names))))
    e = abstractable(body, params, rng)
    if e:
        out.append(("abstracted", "def g(%s) { let v = %s; %s }\ng" %
                    (head, e.text({}), body.replaced(e, Name("v")).text({}))))
    turned = params[1:] + params[:1]
    out.append(("reordered", "def h(%s) { %s }\ndef g(%s) { h(%s) }\ng" %
                (", ".join(turned), text, head, ", ".join(turned))))
    return out


def clauses(text):
    """The relations of a `where`, one by one."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return out + [text[start:].strip()]


def canonical(t):
    """A type up to the names of its parameters, numbered as they are met, and the order of its relations, which is
    that in which they were met."""
    m = re.match(r"fn \[([^\]]*)\]", t)
    if not m:
        return t
    names = {n.strip() for n in m.group(1).split(",")}
    head, _, where = t[m.end():].partition(" where ")
    met = [w for w in re.findall(r"[A-Za-z_]\w*", head) if w in names]

    def anonymous(clause):
        return re.sub(r"[A-Za-z_]\w*", lambda w: "#" if w.group() in names and w.group() not in met
                      else "#%d" % met.index(w.group()) if w.group() in met else w.group(), clause)

    whole = " where ".join([head] + [", ".join(sorted(clauses(where), key=anonymous))] * bool(where))
    number = {}
    return re.sub(r"[A-Za-z_]\w*", lambda w: number.setdefault(w.group(), "#%d" % len(number))
                  if w.group() in names else w.group(), whole)


def same(t, u):
    return t is not None and u is not None and canonical(t) == canonical(u)


def is_writable(t):
    """Whether t can be the annotation of its own definition: all but a type that was declared anew, and one whose
    relations have what an argument is among their attributes, which has no name there."""
    return not re.search(r"T#|, \w+=(\?|\[[^\]]*\?)", t)


class Runner:
    def __init__(self, relay, folder):
        self.relay, self.folder, self.bad = relay, folder, []

    def run(self, text, *flags):
        path = os.path.join(self.folder, "program.rly")
        with open(path, "w") as f:
            f.write(text)
        p = subprocess.run([self.relay, *flags, "--color=never", path], capture_output=True,
                           timeout=PATIENCE * SLOW)
        return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")

    def type_of(self, text):
        """The type of the last item shown, or None; a signal is a finding."""
        status, out, err = self.run(text)
        if status not in (0, 1) or "BUG" in err:
            self.bad.append("status %s\n%s\n%s" % (status, text, err[-2000:]))
            return None
        m = re.search(r"^<fn> : (.*)\Z", out.rstrip().split("\n")[-1] if out else "")
        return m.group(1) if status == 0 and m else None


def check_definition(run, params, body, rng):
    head, text = ", ".join(params), body.text({})
    base = PREFIX + "def f(%s) { %s }\n" % (head, text)
    t = run.type_of(base + "f\n")
    if t is None:
        for name, items in variants(params, body, rng):
            if name in ("renamed", "reordered") and run.type_of(PREFIX + items + "\n") is not None:
                run.bad.append("does not check, but %s it does:\n%s%s" % (name, base, items))
        return False
    if len(t) >= 1990:
        return False
    tests = variants(params, body, rng)
    if is_writable(t):
        tests.append(("annotated", "let g: %s = fn (%s) { %s };\ng" % (t, head, text)))
    for name, items in tests:
        other = run.type_of(base + items + "\n")
        if not same(t, other):
            run.bad.append("%s: the type is\n  %s\nand not\n  %s\nin\n%s%s" % (name, other, t, base, items))
    return True


# ---- the golden programs ---------------------------------------------------------------------------

def goldens():
    for folder, _, files in sorted(os.walk(GOLDEN)):
        for name in sorted(files):
            if name.endswith(".rly") and not name.startswith("_"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape", newline="") as f:
                    text = f.read()
                yield os.path.join(folder, name), text


DEF = re.compile(r"^def (?:@)?(\w+)\(([^()\[\]{}]*)\)(?= *\{)", re.M)


def check_golden(run, text):
    """The plain definitions of a program: eta-expanded, annotated. The number of them."""
    found = [(m.group(1), m.group(2)) for m in DEF.finditer(text)]
    if not found or re.search(r"// (error|warning|flags|command|args|stdin|exit|skip|engine)|\bimport\b|"
                              r"#\[version|\bmain\b|\\|\bload\b|\bsave\b", text):
        return 0
    program = re.sub(r"\s*//.*$", "", text, flags=re.M).rstrip() + "\n;" * 0 + "\n"
    checked = 0
    for f, params in found:
        names = [p.split(":")[0].strip().lstrip("%") for p in params.split(",")] if params.strip() else []
        if any(not re.fullmatch(r"\w+", n) for n in names):
            continue
        t = run.type_of(program + f + "\n")
        if t is None or len(t) >= 1990:
            continue
        head = ", ".join(names)
        checked += 1
        tests = [("eta", "def eta_%s(%s) { %s(%s) }\neta_%s" % (f, head, f, head, f))]
        if is_writable(t):
            tests.append(("annotated", "let annotated_%s: %s = %s;\nannotated_%s" % (f, t, f, f)))
        for name, items in tests:
            other = run.type_of(program + items + "\n")
            if not same(t, other):
                run.bad.append("%s of %s: the type is\n  %s\nand not\n  %s\nin\n%s%s" %
                               (name, f, other, t, program, items))
    return checked


TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?\w*|==|=>|->|@@|\*\*|::|:=|[^\s\w]")
INSTEAD = ["0", "1.5", "True", '"a"', "x", "f", "(", ")", "+", "@@", "ref", "fn", "Nil", "?", "[", "grad", "n",
           "where", "float32", "Tensor", "!", ".0", "let"]


def mutate(text, rng):
    tokens = [m for m in TOKEN.finditer(text)]
    if not tokens:
        return None
    m, r = rng.choice(tokens), rng.random()
    if r < 0.25:
        return text[:m.start()] + text[m.end():]
    if r < 0.4:
        return text[:m.end()] + " " + m.group() + text[m.end():]
    if r < 0.7:
        other = rng.choice(tokens).group()
        return text[:m.start()] + other + text[m.end():]
    return text[:m.start()] + rng.choice(INSTEAD) + text[m.end():]


def check_mutants(run, programs, count, rng):
    for _ in range(count):
        text = mutate(rng.choice(programs), rng)
        if text is None:
            continue
        if rng.random() < 0.3:
            text = mutate(text, rng) or text
        with open(os.path.join(run.folder, "mutant.rly"), "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(text)
        p = subprocess.run([run.relay, "check", os.path.join(run.folder, "mutant.rly")], capture_output=True,
                           timeout=PATIENCE * SLOW)
        err = p.stderr.decode("utf-8", "replace")
        if p.returncode not in (0, 1) or "BUG" in err:
            run.bad.append("a mutant ends with status %s:\n%s\n%s" % (p.returncode, text, err[-2000:]))


def main():
    args = share.arguments(__doc__).parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(args.relay, folder)

        def settle(what, fine):
            nonlocal passed, failed
            for b in run.bad:
                print("%s: %s\n" % (what, b))
            failed += bool(run.bad)
            passed += not run.bad and fine
            run.bad = []

        typed = 0
        seeds = share.seeds(args, DEFINITIONS, 20)
        for seed in seeds:
            rng = random.Random(seed)
            params, body = Generator(rng).definition()
            fine = check_definition(run, params, body, rng)
            typed += fine
            settle("seed %d" % seed, fine)
        if typed < len(seeds) // 8:
            failed += 1
            print("only %d of %d definitions are well typed" % (typed, len(seeds)))
        programs = list(goldens())
        rng = random.Random(args.seed)
        rng.shuffle(programs)
        n = 0
        for path, text in programs:
            if n >= share.count(args, GOLDENS):
                break
            found = check_golden(run, text)
            n += found > 0
            settle(os.path.relpath(path, GOLDEN), found > 0)
        check_mutants(run, [text for _, text in programs], share.count(args, MUTANTS), rng)
        settle("mutants", True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
