#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the checker says of a `match`, against all small values.

Each seed draws data types (with parameters, records, types without values) and some matches on them:
constructors, tuples, records, lists, literals of every kind, guards. Every value as deep as the deepest
pattern is made, here, and each arm is tried on each of them, here. Then the checker must say what was
found so:

    accepted        exactly when every value has an arm that is neither guarded nor has a float literal
    never taken     exactly the arms whose values all have such an arm before
    the value shown has no arm, and is a value

and the interpreter must take the same arm of every value, and meet no value without one in a match that
was accepted. Besides, matches on which the naive algorithm takes exponential time: they end.

    matches.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE, SLOW

INTS = [0, 1, 2, -1]
STRINGS = ["", "a", "b"]
FLOATS = ["0.0", "1.5"]
MANY = 400  # values of one match
WHOLE = 240  # programs
# Of a type without values. An arm on such a type is not called unreachable; no value of it is missing.
PHANTOM = ("phantom",)


# ---- types: ("int",) ("bool",) ("string",) ("float",) ("tuple", ts) ("list", t) ("data", name, ts) ("var", i)

class Types:
    def __init__(self, rng):
        self.rng = rng
        self.decls = {}  # name -> (number of parameters, [(constructor, fields, names or None)])
        for k in range(rng.randint(1, 3)):
            self.draw(f"T{k}")
        if rng.random() < 0.3:
            self.decls["Void"] = (0, [])
            self.decls["Maybe"] = (1, [("Just", [("var", 0)], None), ("Never", [("data", "Void", [])], None)])

    def some(self, depth, params=0, within=()):
        rng = self.rng
        kinds = ["int", "bool", "bool", "string", "float", "tuple", "list", "data", "data", "data"]
        if params:
            kinds += ["var", "var"]
        kind = rng.choice(kinds)
        if depth <= 0 and kind in ("tuple", "list", "data"):
            kind = "bool"
        if kind == "tuple":
            return ("tuple", [self.some(depth - 1, params, within) for _ in range(rng.choice([0, 1, 2, 2, 3]))])
        if kind == "list":
            return ("list", self.some(depth - 1, params, within))
        if kind == "data":
            name = rng.choice(list(self.decls) + list(within)) if self.decls or within else None
            if name is None:
                return ("bool",)
            n = self.decls[name][0] if name in self.decls else params
            if name in within:
                return ("data", name, [("var", i) for i in range(n)])
            return ("data", name, [self.some(depth - 1, params, within) for _ in range(n)])
        return ("var", rng.randrange(params)) if kind == "var" else (kind,)

    def draw(self, name):
        params = self.rng.choice([0, 0, 1])
        ctors = []
        for c in range(self.rng.choice([1, 2, 2, 3, 4])):
            fields = [self.some(1, params, (name,)) for _ in range(self.rng.choice([0, 1, 1, 2]))]
            names = [f"f{i}" for i in range(len(fields))] if fields and self.rng.random() < 0.3 else None
            ctors.append((f"{'ABCD'[c]}{name[1:]}", fields, names))
        self.decls[name] = (params, ctors)

    def text(self, t):
        kind = t[0]
        if kind == "tuple":
            return "(" + ", ".join(map(self.text, t[1])) + ("," if len(t[1]) == 1 else "") + ")"
        if kind == "list":
            return f"List[{self.text(t[1])}]"
        if kind == "data":
            return t[1] + (f"[{', '.join(map(self.text, t[2]))}]" if t[2] else "")
        if kind == "var":
            return "abc"[t[1]]
        return {"int": "int32", "bool": "bool", "string": "String", "float": "float32"}[kind]

    def declarations(self):
        for name, (n, ctors) in self.decls.items():
            head = f"type {name}" + (f"[{', '.join('abc'[:n])}]" if n else "")
            parts = []
            for ctor, fields, names in ctors:
                if names:
                    parts.append(ctor + " { " + ", ".join(f"{f}: {self.text(t)}" for f, t in zip(names, fields)) + " }")
                else:
                    parts.append(ctor + (f"({', '.join(map(self.text, fields))})" if fields else ""))
            yield head + " { " + ", ".join(parts) + " }"

    def subst(self, t, args):
        if t[0] == "var":
            return args[t[1]]
        if t[0] == "tuple":
            return ("tuple", [self.subst(x, args) for x in t[1]])
        if t[0] == "list":
            return ("list", self.subst(t[1], args))
        if t[0] == "data":
            return ("data", t[1], [self.subst(x, args) for x in t[2]])
        return t

    def ctors(self, t):
        """(constructor, field types, names) of a data or list type."""
        if t[0] == "list":
            return [("Nil", [], None), ("Cons", [t[1], t], None)]
        return [(c, [self.subst(f, t[2]) for f in fields], names) for c, fields, names in self.decls[t[1]][1]]

    # ---- values: literals as texts' values, ("tuple", …), (constructor, …)

    def smallest(self, t, depth=6):
        """Some value, or None when there is none (so shallow)."""
        if t[0] in ("int", "bool", "string", "float"):
            return {"int": 4, "bool": True, "string": "aa", "float": "2.0"}[t[0]]
        if t[0] == "tuple":
            parts = [self.smallest(x, depth) for x in t[1]]
            return None if any(p is None for p in parts) else ("tuple", *parts)
        if depth == 0:
            return None
        for ctor, fields, _ in self.ctors(t):
            parts = [self.smallest(f, depth - 1) for f in fields]
            if all(p is not None for p in parts):
                return (ctor, *parts)
        return None

    def values(self, t, depth):
        """Values that differ in the first `depth` levels: one of each kind that patterns tell apart."""
        if t[0] == "int":
            return INTS + [3, 4]
        if t[0] == "bool":
            return [True, False]
        if t[0] == "string":
            return STRINGS + ["aa", "aaa"]
        if t[0] == "float":
            return FLOATS + ["1.0", "2.0"]
        if t[0] == "tuple":
            return [("tuple", *p) for p in self.product([self.values(x, depth) for x in t[1]])]
        if depth == 0 or not self.ctors(t):
            one = self.smallest(t)
            return [PHANTOM if one is None else one]
        out = []
        for ctor, fields, _ in self.ctors(t):
            out += [(ctor, *p) for p in self.product([self.values(f, depth - 1) for f in fields])]
            if len(out) > MANY:
                raise OverflowError
        return out

    @staticmethod
    def product(parts):
        n = 1
        for p in parts:
            n *= len(p)
        if n > MANY:
            raise OverflowError
        return itertools.product(*parts)

    # ---- patterns: "_", ("lit", value), ("tuple", …), (constructor, …)

    def pattern(self, t, depth, open_rate=0.05):
        rng = self.rng
        if rng.random() < (open_rate if depth > 0 else 0.9):
            return "_"
        if t[0] in ("int", "bool", "string", "float"):
            return ("lit", rng.choice({"int": INTS, "bool": [True, False], "string": STRINGS, "float": FLOATS}[t[0]]))
        if t[0] == "tuple":
            return ("tuple", *[self.pattern(x, depth, 0.35) for x in t[1]])
        ctors = self.ctors(t)
        if not ctors or depth == 0:
            return "_"
        ctor, fields, _ = rng.choice(ctors)
        return (ctor, *[self.pattern(f, depth - 1, 0.35) for f in fields])


def is_real(v):
    return not isinstance(v, tuple) or (v != PHANTOM and all(map(is_real, v[1:])))


def matches(p, v):
    if p == "_":
        return True
    if p[0] == "lit":
        return p[1] == v and type(p[1]) is type(v)
    return p[0] == v[0] and all(matches(a, b) for a, b in zip(p[1:], v[1:]))


def has_float(p):
    if p == "_":
        return False
    if p[0] == "lit":
        return isinstance(p[1], str) and p[1] in FLOATS
    return any(has_float(x) for x in p[1:])


class Texts:
    """Patterns and values as Relay writes them; lists and records either way."""

    def __init__(self, types, rng):
        self.names = {c: names for _, (_, ctors) in types.decls.items() for c, _, names in ctors}
        self.rng = rng

    def literal(self, v):
        if isinstance(v, str):
            return v if v in FLOATS or v in ("1.0", "2.0") else f'"{v}"'
        return str(v)

    def items(self, x):
        out = []
        while x != "_" and x[0] == "Cons":
            out.append(x[1])
            x = x[2]
        return out, x

    def text(self, x):
        if x == "_":
            return "_"
        if not isinstance(x, tuple):
            return self.literal(x)
        if x[0] == "lit":
            return self.literal(x[1])
        if x[0] == "tuple":
            return "(" + ", ".join(map(self.text, x[1:])) + ("," if len(x) == 2 else "") + ")"
        if x[0] in ("Cons", "Nil") and self.rng.random() < 0.5:
            items, rest = self.items(x)
            if rest == ("Nil",):
                return "list[" + ", ".join(map(self.text, items)) + "]"
            return "(" + " :: ".join(map(self.text, items + [rest])) + ")"
        names = self.names.get(x[0])
        if names and self.rng.random() < 0.7:
            return x[0] + " { " + ", ".join(f"{n}: {self.text(a)}" for n, a in zip(names, x[1:])) + " }"
        return x[0] + (f"({', '.join(map(self.text, x[1:]))})" if len(x) > 1 else "")


class Match:
    def __init__(self, types, rng):
        self.type = types.some(2)
        while self.type[0] not in ("tuple", "list", "data") and rng.random() < 0.8:
            self.type = types.some(2)
        self.depth = rng.randint(1, 3)
        self.arms = [(types.pattern(self.type, self.depth), rng.random() < 0.15) for _ in range(rng.randint(0, 7))]
        self.all = types.values(self.type, self.depth)
        self.values = [v for v in self.all if is_real(v)]
        self.covers = [not guard and not has_float(p) for p, guard in self.arms]
        self.texts = [("", "")] * len(self.arms)

    def unmatched(self, v):
        return not any(c and matches(p, v) for c, (p, _) in zip(self.covers, self.arms))

    def useless(self):
        out = []
        for k, (p, _) in enumerate(self.arms):
            before = list(zip(self.covers, self.arms))[:k]
            mine = [v for v in self.all if matches(p, v)]
            if mine and all(any(c and matches(q, v) for c, (q, _) in before) for v in mine):
                out.append(k)
        return out

    def taken(self, v, guard):
        for k, (p, guarded) in enumerate(self.arms):
            if matches(p, v) and (guard or not guarded):
                return k
        return -1


def relay(binary, path, *flags):
    r = subprocess.run([binary, *flags, path], capture_output=True, text=True,
                       timeout=PATIENCE * SLOW)
    return r.returncode, r.stdout, r.stderr


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path


def one_seed(binary, seed, folder):
    """The findings, and how many matches were tried."""
    rng = random.Random(seed)
    types = Types(rng)
    texts = Texts(types, rng)
    found = []
    cases = []
    for _ in range(40):
        try:
            m = Match(types, rng)
        except OverflowError:
            continue
        if m.values or m.arms:
            cases.append(m)
        if len(cases) == 8:
            break
    lines = list(types.declarations())
    where = {}
    for i, m in enumerate(cases):
        m.texts = [texts.text(p) + (" when g" if guard else "") for p, guard in m.arms]
        lines.append(f"def m{i}(x: {types.text(m.type)}, g: bool) -> int32 {{ match (x) {{")
        m.line = len(lines)
        for k, text in enumerate(m.texts):
            lines.append(f"  {text} => {k},")
            where[len(lines)] = (i, k)
        lines[-1] += " } }"
    path = write(folder, f"check{seed}.rly", lines)
    _, out, err = relay(binary, path, "check", "--diagnostics=json")
    said = {i: {"missing": None, "useless": set()} for i in range(len(cases))}
    by_line = {m.line: i for i, m in enumerate(cases)}
    edits = []
    for d in (json.loads(x) for x in (out + err).splitlines() if x.startswith("{")):
        line = d["line"]
        if d["code"] == "R0903":
            i, k = where[line]
            said[i]["useless"].add(k)
        elif d["code"] == "R0210":
            said[by_line[line]]["missing"] = d["message"]
            edits += [dict(e, line_of=line) for fix in d["suggestions"][:1] for e in fix["edits"]]
        elif d["severity"] == "error":
            found.append(f"seed {seed}: {d['code']} {d['message']} at line {line}")
    if found:
        return found, len(cases)
    # With the arms that are suggested, nothing is missing.
    text = open(path).read()
    for e in sorted(edits, key=lambda e: -e["begin"]):
        text = text[:e["begin"]] + e["text"] + text[e["end"]:]
    mended = write(folder, f"mended{seed}.rly", [text])
    _, out, err = relay(binary, mended, "check", "--diagnostics=json")
    if (out + err).count('"R0903"') != sum(len(x["useless"]) for x in said.values()):
        found.append(f"seed {seed}: a suggested arm is never taken")
    for d in (json.loads(x) for x in (out + err).splitlines() if x.startswith("{")):
        if d["code"] != "R0903" and not (d["code"] == "R0210" and d["line"] in by_line and
                                         by_line[d["line"]] not in {by_line[e["line_of"]] for e in edits}):
            found.append(f"seed {seed}: with the suggested arms: {d['code']} {d['message']}")
    # The types again, the matches that were accepted as they are, the others with an arm for the rest.
    lines = list(types.declarations())
    for i, m in enumerate(cases):
        missing = [v for v in m.values if m.unmatched(v)]
        if bool(missing) != (said[i]["missing"] is not None):
            found.append(f"seed {seed} m{i}: the checker says {said[i]['missing']}, unmatched are {missing[:3]}")
            continue
        if sorted(said[i]["useless"]) != m.useless():
            found.append(f"seed {seed} m{i}: never taken {sorted(said[i]['useless'])}, found {m.useless()}")
        if not m.values:
            continue
        arms = [f"{text} => {k}" for k, text in enumerate(m.texts)]
        kind = "match?" if missing else "match"
        rest = ["_ => -1"] if missing else []
        t = types.text(m.type)
        lines.append(f"def m{i}(x: {t}, g: bool) -> int32 {{ {kind} (x) {{ {', '.join(arms + rest)} }} }}")
        lines.append(f"let v{i} : List[{t}] = list[{', '.join(map(texts.text, m.values))}];")
        lines.append(f"show((map(fn (v) {{ (m{i}(v, True), m{i}(v, False)) }}, v{i})))")
        if missing:
            shown = said[i]["missing"].split("`")[3] if said[i]["missing"].count("`") > 2 else "_"
            m.shown = shown
            first = f"{shown} => 1, " if shown != "_" else ""
            lines.append(f"show(map(fn (v : {t}) {{ match? (v) {{ {first}_ => {0 if first else 1} }} }}, v{i}))")
    path = write(folder, f"run{seed}.rly", lines)
    code, out, err = relay(binary, path)
    if code != 0:
        found.append(f"seed {seed}: the run fails: {err[:400]}")
        return found, len(cases)
    results = iter(json.loads(x.split(" : ")[0]) for x in out.splitlines() if x.startswith('"'))
    for i, m in enumerate(cases):
        missing = [v for v in m.values if m.unmatched(v)]
        if not m.values or bool(missing) != (said[i]["missing"] is not None):
            continue
        got = next(results).removeprefix("list").replace("(", "[").replace(")", "]")
        want = [[m.taken(v, True), m.taken(v, False)] for v in m.values]
        if json.loads(got) != want:
            found.append(f"seed {seed} m{i}: arms taken {got}, expected {want}")
        if missing:
            hits = json.loads(next(results).removeprefix("list"))
            shown = [v for v, hit in zip(m.values, hits) if hit]
            if not shown or (m.shown != "_" and not all(m.unmatched(v) for v in shown)):
                found.append(f"seed {seed} m{i}: `{m.shown}` is shown as missing; it is {shown[:3]}")
    return found, len(cases)


# ---- large matches ------------------------------------------------------------------------------------

def tuple_rows(n, rows):
    return ", ".join("(" + ", ".join(row.get(c, "_") for c in range(n)) + f") => {k}" for k, row in enumerate(rows))


def pigeons(holes):
    """A row for each way in which holes + 1 pigeons cannot sit: exhaustive, and hard to see."""
    n = holes * (holes + 1)
    at = lambda p, h: p * holes + h
    rows = [{at(p, h): "False" for h in range(holes)} for p in range(holes + 1)]
    rows += [{at(p, h): "True", at(q, h): "True"} for h in range(holes) for p in range(holes + 1) for q in range(p)]
    return n, rows


def large():
    """(name, what is matched, arms, None or words of the message)"""
    n = 60
    yield "pairs of equals", tuple_rows(2 * n, [{2 * i: b, 2 * i + 1: b} for i in range(n) for b in ("True", "False")]), "does not cover `(True, False"
    both = [{2 * i: b, 2 * i + 1: b} for i in range(n) for b in ("True", "False")]
    both += [{0: a, 1: b} for a, b in (("True", "False"), ("False", "True"))]
    yield "pairs, and the rest", tuple_rows(2 * n, both), None
    yield "a diagonal", tuple_rows(200, [{i: "True"} for i in range(200)]), "does not cover `(False, False"
    yield "a staircase", tuple_rows(200, [dict.fromkeys(range(i), "True") | {i: "False"} for i in range(200)] + [dict.fromkeys(range(200), "True")]), None
    lists = ", ".join("list[" + ", ".join(["True"] * i) + f"] => {i}" for i in range(400))
    yield "lists by length", lists, "does not cover `False :: _`"
    yield "four pigeons", tuple_rows(*pigeons(3)), None
    yield "six pigeons", tuple_rows(*pigeons(5)), None
    yield "thirteen pigeons", tuple_rows(*pigeons(12)), "too many to tell"
    yield "thirteen pigeons and a last arm", tuple_rows(*pigeons(12)) + ", _ => -1", None
    yield "strings", ", ".join(f'("s{i}", {i}) => {i}' for i in range(5000)) + ", _ => -1", None
    yield "small integers", ", ".join(f"{i}i8 => {i}" for i in range(-128, 128)), None
    yield "one small integer less", ", ".join(f"{i}u8 => {i}" for i in range(256) if i != 200), "does not cover `200`"


def large_matches(binary, folder):
    found = []
    for name, arms, words in large():
        path = write(folder, "large.rly", [f"def f(x) {{ match (x) {{ {arms} }} }}"])
        code, out, err = relay(binary, path, "check", "--diagnostics=short")
        if (code != 0) != (words is not None) or (words and words not in out + err):
            found.append(f"{name}: {(out + err)[:300] or 'accepted'}")
    return found


def main():
    options = share.arguments(__doc__).parse_args()
    seeds = share.seeds(options, WHOLE)
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            os.makedirs(folder, exist_ok=True)
        found, tried = large_matches(options.relay, folder), 0
        for seed in seeds:
            bad, n = one_seed(options.relay, seed, folder)
            found += bad
            tried += n
    for line in found[:20]:
        print(line)
    print(f"{tried} matches tried")
    print(f"{len(seeds) + 1 - min(len(found), len(seeds))} passed, {len(found)} failed, 0 skipped")
    return 1 if found or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
