# SPDX-License-Identifier: Apache-2.0
"""Random well-typed programs of at most some forty nodes, for the tests of engines and of derivatives.

An expression of a wanted type is drawn from the productions of that type, which share out the nodes that are
left. Programs are *smooth*: float64, defined everywhere, of moderate size, and away from kinks by a margin
that holds for every argument, since what an `abs`, a `max` or a condition is asked of is a sine of at most
0.4 beside a constant of at least 0.5. So a derivative exists and differences approach it. *Wild* ones have
every dtype, shapes without elements, tensors that are large enough to be fused, infinities and nan.

    program = Program(random.Random(seed), smooth=True)
    program.argument, program.type      an argument as text, and its type
    program.function                    the text of a function of it
    program.has                         which of CONSTRUCTS it holds

DECLARATIONS stands before programs, once a file.
"""
CONSTRUCTS = ("closures in data", "recursion", "declared types", "references", "aliases", "folds", "broadcasting",
              "indexing", "nested derivatives", "walks over data", "updates", "rows", "conditions", "matches", "kinks", "reductions", "products")
NODES = 40

# name -> [(constructor, field types, field names)]; text of types below.
SCALAR, VECTOR, MATRIX = ("t", "float64", ()), ("t", "float64", (3,)), ("t", "float64", (2, 3))
DATA = {
    "Pair": [("Pair", [SCALAR, VECTOR], None)],
    "Layer": [("Layer", [MATRIX, ("t", "float64", (2,))], ["w", "b"])],
    "Form": [("Dot", [SCALAR], None), ("Bar", [VECTOR, SCALAR], None), ("Void", [], None)],
    "Chain": [("End", [SCALAR], None), ("Link", [VECTOR, ("d", "Chain")], None)],
    "Work": [("Once", [("fn", [SCALAR], SCALAR)], None), ("Each", [("fn", [VECTOR], VECTOR), VECTOR], None)],
    "Cell": [("Cell", [("ref", SCALAR), SCALAR], ["at", "by"])],
}
PLAIN = ["Pair", "Layer", "Form", "Chain"]  # that an argument may hold: floats only
SHAPES = [(), (), (3,), (2, 3), (2,), (1, 3), (2, 1)]
WILD_SHAPES = SHAPES + [(0,), (5,), (2, 0)]
LARGE = [(2500,), (50, 60)]  # from 2,048 elements on, operators are fused
FLOATS = ("float32", "float64")


def tensor(shape, dtype="float64"):
    return ("t", dtype, tuple(shape))


def comma(texts):
    return ", ".join(texts) + ("," if len(texts) == 1 else "")


def type_text(t):
    kind = t[0]
    if kind == "t":
        return t[1] if not t[2] else "Tensor[(%s), %s]" % (comma([str(n) for n in t[2]]), t[1])
    if kind == "tuple":
        return "(%s)" % comma([type_text(x) for x in t[1]])
    if kind == "list":
        return "List[%s]" % type_text(t[1])
    if kind == "option":
        return "Option[%s]" % type_text(t[1])
    if kind == "ref":
        return "ref(%s)" % type_text(t[1])
    if kind == "d":
        return t[1]
    return "fn(%s) -> %s" % (", ".join(type_text(x) for x in t[1]), type_text(t[2]))


def declaration(name):
    ctors = []
    for ctor, fields, names in DATA[name]:
        texts = [type_text(f) for f in fields]
        if names:
            ctors.append("%s { %s }" % (ctor, ", ".join("%s: %s" % pair for pair in zip(names, texts))))
        else:
            ctors.append(ctor + ("(%s)" % ", ".join(texts) if fields else ""))
    return "type %s { %s }\n" % (name, ", ".join(ctors))


DECLARATIONS = "".join(declaration(name) for name in DATA)


def split(rng, n, parts):
    """n nodes shared out among so many parts, each with at least none."""
    cuts = sorted(rng.randint(0, max(n, 0)) for _ in range(parts - 1))
    return [b - a for a, b in zip([0] + cuts, cuts + [max(n, 0)])]


class Program:
    cells = ["Cell"]  # declared types that hold references, which a match may take apart

    def __init__(self, rng, smooth=True, nodes=None):
        self.rng, self.smooth = rng, smooth
        self.names, self.has, self.scope = 0, set(), []
        # What is wanted is more likely: each program dwells on something.
        self.wanted = set(rng.sample(CONSTRUCTS, 4))
        nodes = nodes or 8 + int((NODES - 7) * rng.random() ** 2)
        if smooth:
            self.type = self.argument_type()
            self.argument = self.literal(self.type)
            self.result = self.some_type(1)
            self.function = self.closure(("fn", [self.type], self.result), nodes, "p")
        else:
            self.result = self.some_type(2)
            self.expression = self.expr(self.result, nodes)

    # ---- types

    def shape(self):
        if self.smooth:
            return self.rng.choice(SHAPES)
        return self.rng.choice(LARGE if self.rng.random() < 0.1 else WILD_SHAPES)

    def some_tensor(self):
        if self.smooth:
            return tensor(self.shape())
        dtype = self.rng.choice(["float64", "float32", "float32", "int32", "bool"])
        return tensor(self.shape() if dtype != "bool" or self.rng.random() < 0.3 else (), dtype)

    def some_type(self, depth):
        r = self.rng.random()
        if depth <= 0 or r < 0.55:
            return self.some_tensor()
        if r < 0.7:
            return ("tuple", [self.some_type(depth - 1) for _ in range(self.rng.randint(1, 3))])
        if r < 0.8:
            return ("list", self.some_type(depth - 1))
        if r < 0.85:
            return ("option", self.some_type(depth - 1))
        self.has.add("declared types")
        return ("d", self.rng.choice(PLAIN))

    def argument_type(self):
        parts = [tensor(self.shape()) for _ in range(self.rng.randint(1, 3))]
        r = self.rng.random()
        if r < 0.25:
            parts.append(("d", self.rng.choice(PLAIN)))
            self.has.add("declared types")
        elif r < 0.4:
            parts.append(("list", tensor(self.shape())))
        return ("tuple", parts)

    # ---- names

    def fresh(self, stem):
        self.names += 1
        return "%s%d" % (stem, self.names)

    def within(self, bound, make):
        """make() with these names in scope."""
        mark = len(self.scope)
        self.scope += bound
        try:
            return make()
        finally:
            del self.scope[mark:]

    def holds_code(self, t):
        """Whether it may hold functions or references."""
        return t[0] in ("fn", "ref") or t in (("d", "Cell"), ("d", "Work")) or any(
            self.holds_code(u) for u in (t[1] if t[0] == "tuple" else [t[1]] if t[0] in ("list", "option") else []))

    def without_references(self, make):
        """make() with the values in scope alone: what `checkpoint` runs twice reads nothing that is written."""
        scope, self.scope = self.scope, [(x, t) for x, t in self.scope if x.isalnum() and not self.holds_code(t)]
        try:
            return make()
        finally:
            self.scope = scope

    def known(self, t):
        return [name for name, u in self.scope if u == t]

    def closure(self, t, n, stem="v"):
        params = [(self.fresh(stem), u) for u in t[1]]
        heads = ", ".join("%s: %s" % (name, type_text(u)) for name, u in params)
        return "fn (%s) { %s }" % (heads, self.within(params, lambda: self.open_up(t, params, n)))

    def open_up(self, t, params, n):
        """A body in which parts of a tuple have names of their own."""
        for name, u in params:
            if u[0] == "tuple":
                parts = [(self.fresh("x"), part) for part in u[1]]
                body = self.within(parts, lambda: self.expr(t[2], n - 1))
                return "let (%s) = %s; %s" % (comma([x for x, _ in parts]), name, body)
        return self.expr(t[2], n)

    # ---- literals

    def number(self, dtype="float64"):
        if dtype == "int32":
            return str(self.rng.randint(-9, 9))
        if dtype == "bool":
            return self.rng.choice(["True", "False"])
        low, high = (0.2, 1.4) if self.smooth else (-3, 3)
        value = round(self.rng.uniform(low, high), 2) * (self.rng.choice([1, -1]) if self.smooth else 1)
        return "%s%s" % (value, "f64" if dtype == "float64" else "")

    def literal(self, t):
        kind = t[0]
        if kind == "tuple":
            return "(%s)" % comma([self.literal(x) for x in t[1]])
        if kind == "list":
            return "list[%s]" % ", ".join(self.literal(t[1]) for _ in range(self.rng.randint(1, 3)))
        if kind == "option":
            return "Some(%s)" % self.literal(t[1])
        if kind == "ref":
            return "ref(%s)" % self.literal(t[1])
        if kind == "fn":
            return self.closure(t, 0)
        if kind == "d":
            return self.construct(t, 0)
        return self.constant(t[1], t[2])

    def constant(self, dtype, shape):
        if 0 in shape:
            return "zeros(shape=[%s], dtype=%s)" % (", ".join(map(str, shape)), dtype)
        if not shape:
            return self.number(dtype)
        if max(shape) > 9:
            return self.large(dtype, shape)
        return "[%s]" % ", ".join(self.constant(dtype, shape[1:]) for _ in range(shape[0]))

    def leaf(self, t):
        """The smallest expression: what is in scope if it can be made to fit, since a program is to depend on its
        argument; else a literal."""
        kind = t[0]
        if kind == "tuple":
            return "(%s)" % comma([self.leaf(x) for x in t[1]])
        if kind == "list":
            return "list[%s]" % ", ".join(self.leaf(t[1]) for _ in range(self.rng.randint(1, 2)))
        if kind == "option":
            return "Some(%s)" % self.leaf(t[1])
        if kind == "ref":
            return "ref(%s)" % self.leaf(t[1])
        if kind == "t" and self.rng.random() < 0.9:
            near = [(x, u) for x, u in self.scope if u[0] == "t" and u[1] == t[1] and t[1] in FLOATS]
            same = [x for x, u in near if u == t]
            if same:
                return self.rng.choice(same)
            if near:
                x, u = self.rng.choice(near)
                return "(%s * %s)" % (self.literal(t), "mean(%s)" % x if u[2] else x)
        return self.literal(t)

    def large(self, dtype, shape):
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        floats = dtype if dtype in FLOATS else "float32"
        step = "%s%s" % (round(self.rng.uniform(0.001, 1.0), 3), "f64" if floats == "float64" else "")
        text = "reshape(sin(cumsum(full(%s, shape=[%d], dtype=%s), axis=0)), newshape=[%s])" % (
            step, count, floats, ", ".join(map(str, shape)))
        if dtype == "bool":
            return "(%s > 0.0)" % text
        return "cast(%s * 9.0, dtype=int32)" % text if dtype == "int32" else text

    # ---- expressions

    def weighted(self, options):
        """One of (weight, constructs, maker); what the program is to dwell on weighs four times as much."""
        weights = [w * (4 if any(c in self.wanted for c in constructs) else 1) for w, constructs, _ in options]
        _, constructs, make = self.rng.choices(options, weights)[0]
        self.has.update(constructs)
        return make()

    def expr(self, t, n):
        names = self.known(t)
        if names and self.rng.random() < (0.9 if n <= 0 else 0.3 if n < 4 else 0.08):
            return self.rng.choice(names)
        if n <= 0:
            return self.leaf(t)
        kind = t[0]
        if kind == "tuple" and self.rng.random() < 0.5:
            return "(%s)" % comma([self.expr(x, k) for x, k in zip(t[1], split(self.rng, n - 1, len(t[1])))])
        if kind == "list" and self.rng.random() < 0.6:
            return self.list_of(t, n - 1)
        if kind == "option" and self.rng.random() < 0.5:
            return "Some(%s)" % self.expr(t[1], n - 1)
        if kind == "ref":
            return "ref(%s)" % self.expr(t[1], n - 1)
        if kind == "fn":
            return self.closure(t, n - 1)
        if kind == "d" and self.rng.random() < 0.6:
            return self.construct(t, n - 1)
        if kind == "t" and self.rng.random() < 0.55:
            return self.tensor_expr(t, n - 1)
        return self.general(t, n - 1)

    def pair(self, t, u, n):
        a, b = split(self.rng, n, 2)
        return self.expr(t, a), self.expr(u, b)

    def list_of(self, t, n):
        count = self.rng.randint(1, 3)
        if self.rng.random() < 0.3 and n > 2:
            u = self.some_tensor()
            a, b = split(self.rng, n, 2)
            return "map(%s, %s)" % (self.closure(("fn", [u], t[1]), a), self.expr(("list", u), b))
        return "list[%s]" % ", ".join(self.expr(t[1], k) for k in split(self.rng, n, count))

    def construct(self, t, n):
        self.has.add("declared types")
        ctor, fields, names = self.rng.choice([c for c in DATA[t[1]] if n > 2 or t not in c[1]])
        texts = [self.expr(f, k) for f, k in zip(fields, split(self.rng, n, max(len(fields), 1)))]
        if names and self.rng.random() < 0.5:
            return "%s { %s }" % (ctor, ", ".join("%s: %s" % pair for pair in zip(names, texts)))
        return ctor + ("(%s)" % ", ".join(texts) if fields else "")

    def general(self, t, n):
        """Of any type: bindings, control, calls, data, references."""
        options = [
            (3, (), lambda: self.let(t, n)),
            (2, ("conditions",), lambda: self.condition(t, n)),
            (2, (), lambda: self.call(t, n)),
            (2, ("references",), lambda: self.reference(t, n)),
            (1, ("references", "aliases"), lambda: self.alias(t, n)),
            (2, ("matches", "declared types"), lambda: self.match_data(t, n)),
            (1, ("matches",), lambda: self.match_list(t, n)),
            (1, ("closures in data",), lambda: self.functions_in_list(t, n)),
            (1, ("closures in data", "declared types", "matches"), lambda: self.functions_in_data(t, n)),
            (1, ("closures in data",), lambda: self.functions_in_tuple(t, n)),
            (2, ("folds",), lambda: self.fold(t, n)),
            (1, ("folds",), lambda: self.repeat(t, n)),
            (2, ("recursion",), lambda: self.recursion(t, n)),
            (1, ("recursion", "declared types", "matches"), lambda: self.recursion_on_data(t, n)),
            (1, ("recursion", "walks over data"), lambda: self.walk(t, n)),
            (1, (), lambda: self.project(t, n)),
            (1, ("closures in data",), lambda: self.curried(t, n)),
            (1, ("folds",), lambda: self.state_of_two(t, n)),
            (1, ("folds",), lambda: self.zipped(t, n)),
        ]
        if t == ("d", "Layer"):
            options.append((6, ("updates",), lambda: self.update(t, n)))
        return self.weighted(options)

    def let(self, t, n):
        u = self.some_type(1)
        name = self.fresh("x")
        a, b = split(self.rng, n, 2)
        value = self.expr(u, a)
        return "{ let %s = %s; %s }" % (name, value, self.within([(name, u)], lambda: self.expr(t, b)))

    def truth(self, n):
        """A condition that no small step changes."""
        if not self.smooth:
            return self.expr(tensor((), "bool"), n)
        self.has.add("kinks")
        return "mean(sin(%s)) * 0.4f64 %s %sf64" % (self.expr(tensor(self.shape()), n), self.rng.choice("<>"),
                                                    self.rng.choice(["0.5", "-0.5"]))

    def condition(self, t, n):
        a, b, c = split(self.rng, n, 3)
        return "if (%s) { %s } else { %s }" % (self.truth(a), self.expr(t, b), self.expr(t, c))

    def call(self, t, n):
        u = self.some_type(1)
        a, b = split(self.rng, n, 2)
        if self.rng.random() < 0.2 and not self.holds_code(t) and not self.holds_code(u):
            return "checkpoint(%s)(%s)" % (self.without_references(lambda: self.closure(("fn", [u], t), a)), self.expr(u, b))
        if self.rng.random() < 0.5:
            return "(%s)(%s)" % (self.closure(("fn", [u], t), a), self.expr(u, b))
        name = self.fresh("f")
        return "{ let %s = %s; %s(%s(%s)) }" % (name, self.closure(("fn", [t], t), a), name, name, self.expr(t, b))

    def reference(self, t, n):
        name = self.fresh("r")
        a, b, c = split(self.rng, n, 3)
        first = self.expr(t, a)
        old = self.fresh("x")
        change = self.within([(old, t)], lambda: self.expr(t, b))
        rest = self.within([(old, t), ("!" + name, t)], lambda: self.expr(t, c))
        return "{ let %s = ref(%s); let %s = !%s; %s := %s; %s }" % (name, first, old, name, name, change, rest)

    def alias(self, t, n):
        one, two = self.fresh("r"), self.fresh("r")
        a, b, c = split(self.rng, n, 3)
        first = self.expr(t, a)
        change = self.within([("!" + one, t)], lambda: self.expr(t, b))
        both = [("!" + one, t), ("!" + two, t)]
        rest = self.within(both, lambda: self.expr(t, c))
        start = self.rng.choice(["let %s = %s" % (two, one),
                                 "let (%s, _) = (%s, 1)" % (two, one),
                                 "let %s = hd(list[%s, %s])" % (two, one, one)])
        return "{ let %s = ref(%s); %s; %s := %s; %s }" % (one, first, start, two, change, rest)

    def match_data(self, t, n):
        name = self.rng.choice(PLAIN + self.cells)
        arms = []
        shares = split(self.rng, n, len(DATA[name]) + 1)
        value = self.expr(("d", name), shares[0])
        for (ctor, fields, _), k in zip(DATA[name], shares[1:]):
            bound = [(self.fresh("x"), f) for f in fields]
            seen = bound + [("!" + x, f[1]) for x, f in bound if f[0] == "ref"]
            body = self.within(seen, lambda: self.expr(t, k))
            arms.append("%s => %s" % (ctor + ("(%s)" % ", ".join(x for x, _ in bound) if bound else ""), body))
        return "match (%s) { %s }" % (value, ", ".join(arms))

    def match_list(self, t, n):
        u = self.some_tensor()
        head, tail = self.fresh("x"), self.fresh("x")
        a, b, c = split(self.rng, n, 3)
        value = self.expr(("list", u), a)
        some = self.within([(head, u), (tail, ("list", u))], lambda: self.expr(t, b))
        return "match (%s) { Cons(%s, %s) => %s, Nil => %s }" % (value, head, tail, some, self.expr(t, c))

    def functions_in_list(self, t, n):
        count = self.rng.randint(1, 3)
        shares = split(self.rng, n, count + 1)
        works = ", ".join(self.closure(("fn", [t], t), k) for k in shares[1:])
        step, value = self.fresh("f"), self.fresh("x")
        return "foldl(fn (%s: %s, %s) { %s(%s) }, %s, list[%s])" % (
            value, type_text(t), step, step, value, self.expr(t, shares[0]), works)

    def functions_in_data(self, t, n):
        a, b, c, d = split(self.rng, n, 4)
        work = self.construct(("d", "Work"), a)
        f, g, x = self.fresh("f"), self.fresh("f"), self.fresh("x")
        once = self.within([("%s(%s)" % (f, self.expr(SCALAR, b)), SCALAR)], lambda: self.expr(t, c))
        each = self.within([("%s(%s)" % (g, x), VECTOR), (x, VECTOR)], lambda: self.expr(t, d))
        return "match (%s) { Once(%s) => %s, Each(%s, %s) => %s }" % (work, f, once, g, x, each)

    def functions_in_tuple(self, t, n):
        u = self.some_tensor()
        a, b = split(self.rng, n, 2)
        name = self.fresh("x")
        return "{ let %s = (%s, %s); %s.0(%s.1) }" % (name, self.closure(("fn", [u], t), a), self.expr(u, b), name, name)

    def fold(self, t, n):
        u = self.some_tensor()
        a, b, c = split(self.rng, n, 3)
        one = self.closure(("fn", [t, u], t), a)
        if self.rng.random() < 0.3:
            return "foldr(%s, %s, %s)" % (self.closure(("fn", [u, t], t), a), self.expr(t, b), self.expr(("list", u), c))
        return "foldl(%s, %s, %s)" % (one, self.expr(t, b), self.expr(("list", u), c))

    def repeat(self, t, n):
        a, b = split(self.rng, n, 2)
        step, start = self.closure(("fn", [t], t), a), self.expr(t, b)
        if self.rng.random() < 0.5:
            return "loop(%d, %s, %s)" % (self.rng.randint(1, 3), step, start)
        state = self.fresh("s")
        return "while(fn (%s) { %s.0 < %d }, fn (%s) { (%s.0 + 1, (%s)(%s.1)) }, (0, %s)).1" % (
            state, state, self.rng.randint(1, 3), state, state, step, state, start)

    def recursion(self, t, n):
        go, count, x = self.fresh("go"), self.fresh("n"), self.fresh("x")
        a, b, c = split(self.rng, n, 3)
        again = "%s(%s - 1, %s)" % (go, count, self.within([(x, t)], lambda: self.expr(t, a)))
        if self.rng.random() < 0.6:  # not in the last place
            y = self.fresh("x")
            again = "{ let %s = %s; %s }" % (y, again, self.within([(x, t), (y, t)], lambda: self.expr(t, b)))
        return "{ let %s = fn (%s: int32, %s: %s) -> %s { if (%s <= 0) { %s } else { %s } }; %s(%d, %s) }" % (
            go, count, x, type_text(t), type_text(t), count, x, again, go, self.rng.randint(1, 3), self.expr(t, c))

    def recursion_on_data(self, t, n):
        go, chain, x, rest, y = (self.fresh(s) for s in ("go", "c", "x", "c", "y"))
        a, b, c = split(self.rng, n, 3)
        end = self.within([(x, SCALAR)], lambda: self.expr(t, a))
        link = self.within([(x, VECTOR), (y, t)], lambda: self.expr(t, b))
        return ("{ let %s = fn (%s: Chain) -> %s { match (%s) { End(%s) => %s, "
                "Link(%s, %s) => { let %s = %s(%s); %s } } }; %s(Link(%s, %s)) }") % (
            go, chain, type_text(t), chain, x, end, x, rest, y, go, rest, link, go, self.literal(VECTOR),
            self.construct(("d", "Chain"), max(c, 3)))

    def walker(self, data, t, n):
        """The name and the definition of a local function that goes down data, and may read on the way back what is in
        scope: of a list, where data is one, else of a Chain."""
        go, whole, x, rest, y = (self.fresh(s) for s in ("go", "c", "x", "c", "y"))
        a, b = split(self.rng, n, 2)
        again = "%s(%s)" % (go, rest)
        bound = [(y, t), (x, data[1] if data[0] == "list" else VECTOR)]
        if self.rng.random() < 0.25:
            self.has.add("conditions")
            again = "if (%s) { %s } else { %s }" % (self.within(bound[1:], lambda: self.truth(0)), again, self.leaf(t))
        link = "{ let %s = %s; %s }" % (y, again, self.within(bound, lambda: self.combine(t, y, b)))
        if data[0] == "list":
            arms = "Nil => %s, Cons(%s, %s) => %s" % (self.expr(t, a), x, rest, link)
        else:
            end = self.fresh("x")
            last = self.within([(end, SCALAR)], lambda: self.expr(t, a))
            arms = "End(%s) => %s, Link(%s, %s) => %s" % (end, last, x, rest, link)
        return go, "let %s = fn (%s: %s) -> %s { match (%s) { %s } }" % (
            go, whole, type_text(data), type_text(t), whole, arms)

    def combine(self, t, name, n):
        """An expression of what a call gave, which is not forgotten."""
        if t[0] != "t" or t[1] not in FLOATS or self.rng.random() < 0.3:
            return self.expr(t, n)
        form = self.rng.choice(["sin(%s) * %s", "tanh(%s) * %s", "0.5%s * %%s + %%s" % self.suffix(t[1]), "tanh(%s) - %s"])
        return form % (name, self.expr(t, n))

    def walk(self, t, n):
        self.has.add("matches")
        data = self.rng.choice([("list", self.some_tensor()), ("d", "Chain")])
        a, b = split(self.rng, n, 2)
        go, definition = self.walker(data, t, a)
        return "{ %s; %s(%s) }" % (definition, go, self.expr(data, b))

    def derivative_of_walk(self, t, n):
        """By data, of a function that goes down it."""
        self.has.add("matches")
        a, b, c = split(self.rng, n, 3)
        if self.rng.random() < 0.4:
            u = tensor(self.shape(), t[1])
            data = ("list", u)
            go, definition = self.walker(data, t, a)
            name = self.fresh("x")
            return "{ %s; let %s = %s; jvp(%s)(%s, map(fn (v: %s) { v * %s }, %s)).1 }" % (
                definition, name, self.expr(data, b), go, name, type_text(u), self.number(t[1]), name)
        u = self.rng.choice([tensor((), t[1]), tensor(self.shape(), t[1])])
        go, definition = self.walker(("list", t), u, a)
        values = "list[%s]" % ", ".join(self.expr(t, k) for k in split(self.rng, b, self.rng.randint(1, 3)))
        if not u[2] and self.rng.random() < 0.4:
            return "{ %s; hd(%s(%s)(%s)%s) }" % (definition, *self.rng.choice(
                [("deriv", go, values, ""), ("grad", go, values, ".1.0")]))
        return "{ %s; hd(vjp(%s)(%s, %s).1.0) }" % (definition, go, values, self.expr(u, c))

    def derivative_of_recursion(self, t, n):
        """By a weight that goes through all calls unchanged, is read several times in each, and is used again outside: its
        cotangents come from many places, and what each call keeps holds it."""
        go, count, w, x, y = (self.fresh(s) for s in ("go", "n", "w", "x", "y"))
        a, b, c = split(self.rng, n, 3)
        u = tensor(t[2], t[1])
        step = self.rng.choice(["%s * %s", "%s + sin(%s)", "tanh(%s) * %s"]) % (x, w)
        if len(t[2]) == 2:
            u = tensor((self.rng.choice([1, 2]), t[2][0]), t[1])
            step = self.rng.choice(["{x} @@ {w} @@ transpose({w})", "({x} + 0.3{s}) @@ tanh({w}) @@ transpose({w})"]).format(
                x=x, w=w, s=self.suffix(t[1]))
        bound = [(w, t), (x, u)]
        if self.rng.random() < 0.4:
            step = "%s * %s" % (step, self.within(bound, lambda: self.expr(u, a)))
        again = "%s(%s - 1, %s, %s)" % (go, count, w, step)
        if self.rng.random() < 0.4:
            again = "{ let %s = %s; %s }" % (y, again, self.within(bound + [(y, u)], lambda: self.combine(u, y, b)))
        end = self.rng.choice([x, "(%s * %s)" % (x, x)])
        text = "let %s = fn (%s: int32, %s: %s, %s: %s) -> %s { if (%s <= 0) { %s } else { %s } }" % (
            go, count, w, type_text(t), x, type_text(u), type_text(u), count, end, again)
        of, by = self.fresh("w"), self.fresh("w")
        value = "%s(%d, %s, %s)" % (go, self.rng.randint(1, 3), by, self.literal(u))
        value = self.rng.choice(["sum(%s)", "sum(%s * %s)" % ("%s", self.literal(u))]) % value
        kind = self.rng.choice(["deriv(%s)(%s)", "grad(%s)(%s).1.0", "deriv(fn (v) { sum(deriv(%s)(v)) })(%s)"])
        slope = kind % ("fn (%s: %s) { %s }" % (by, type_text(t), value), of)
        outside = self.rng.choice(["%s", "(%s * %s)" % (of, "%s"), "(%s + %s)" % ("%s", of), "(sin(%s) * %s)" % ("%s", of)])
        return "{ %s; let %s = %s; %s }" % (text, of, self.expr(t, c), outside % slope)

    def curried(self, t, n):
        """A function that gives a function, called at once or kept."""
        u, v = self.some_tensor(), self.some_tensor()
        a, b, c = split(self.rng, n, 3)
        x, name = self.fresh("v"), self.fresh("f")
        inner = self.within([(x, u)], lambda: self.closure(("fn", [v], t), a))
        outer = "fn (%s: %s) { %s }" % (x, type_text(u), inner)
        one, two = self.expr(u, b), self.expr(v, c)
        if self.rng.random() < 0.5:
            return "{ let %s = %s; %s(%s)(%s) }" % (name, outer, name, one, two)
        return "{ let %s = (%s)(%s); %s(%s) }" % (name, outer, one, name, two)

    def state_of_two(self, t, n):
        """A loop or fold whose state is a tuple."""
        u = self.some_tensor()
        pair = ("tuple", [t, u])
        a, b, c = split(self.rng, n, 3)
        start = "(%s, %s)" % self.pair(t, u, b)
        if self.rng.random() < 0.2 and not self.holds_code(pair):
            step = self.without_references(lambda: self.closure(("fn", [pair], pair), a))
            return "loop(%d, %s, %s, checkpoint=2).0" % (self.rng.randint(1, 4), step, start)
        if self.rng.random() < 0.5:
            return "loop(%d, %s, %s).0" % (self.rng.randint(1, 3), self.closure(("fn", [pair], pair), a), start)
        w = self.some_tensor()
        return "foldl(%s, %s, %s).0" % (self.closure(("fn", [pair, w], pair), a), start, self.expr(("list", w), c))

    def zipped(self, t, n):
        u, v = self.some_tensor(), self.some_tensor()
        a, b, c, d = split(self.rng, n, 4)
        one, two = self.expr(("list", u), b), self.expr(("list", v), c)
        one = self.rng.choice(["%s", "rev(%s)", "concat(%s, list[])"]) % one
        step = self.closure(("fn", [t, ("tuple", [u, v])], t), a)
        return "foldl(%s, %s, zip(%s, %s))" % (step, self.expr(t, d), one, two)

    def update(self, t, n):
        a, b = split(self.rng, n, 2)
        field = self.rng.choice([("w", MATRIX), ("b", tensor((2,)))])
        return "{ %s with %s = %s }" % (self.expr(t, a), field[0], self.expr(field[1], b))

    def update_at(self, t, n):
        a, b = split(self.rng, n, 2)
        rows = t[2][0]
        if self.rng.random() < 0.5:
            return "{ %s with [%d] = %s }" % (self.expr(t, a), self.rng.randrange(rows), self.expr(tensor(t[2][1:], t[1]), b))
        part = tensor((rows - 1,) + t[2][1:], t[1])
        return "{ %s with [%s] = %s }" % (self.expr(t, a), self.rng.choice(["1:", ":%d" % (rows - 1)]), self.expr(part, b))

    def rows(self, t, n):
        """A function of each row of a tensor."""
        rows, u = t[2][0], tensor(self.rng.choice([(), (3,), (2,)]), t[1])
        a, b = split(self.rng, n, 2)
        of = self.closure(("fn", [u], tensor(t[2][1:], t[1])), a)
        return "vmap(%s)(%s)" % (of, self.expr(tensor((rows,) + u[2], t[1]), b))

    def jacobian(self, t, n):
        a, b = split(self.rng, n, 2)
        of, by = tensor(t[2][:1], t[1]), tensor(t[2][1:], t[1])
        if of == by and self.rng.random() < 0.4:
            return "hessian(%s)(%s)" % (self.closure(("fn", [by], tensor((), t[1])), a), self.expr(by, b))
        return "jacobian(%s)(%s)" % (self.closure(("fn", [by], of), a), self.expr(by, b))

    def project(self, t, n):
        u = self.some_tensor()
        return "(%s, %s).0" % self.pair(t, u, n)

    # ---- tensors

    def tensor_expr(self, t, n):
        dtype, shape = t[1], t[2]
        if dtype == "bool":
            return self.truths(t, n)
        if dtype == "int32":
            return self.integers(t, n)
        options = [
            (4, (), lambda: self.elementwise(t, n)),
            (4, (), lambda: self.arithmetic(t, n)),
            (1, ("kinks",), lambda: self.kink(t, n)),
            (2, ("nested derivatives",), lambda: self.derivative(t, n)),
            (1, ("nested derivatives", "walks over data"), lambda: self.derivative_of_walk(t, n)),
            (1, ("nested derivatives", "recursion"), lambda: self.derivative_of_recursion(t, n)),
        ]
        if shape:
            options += [(4, ("broadcasting",), lambda: self.broadcast(t, n)),
                        (1, (), lambda: self.stacked(t, n))]
        if len(shape) < 2:
            options += [(3, ("reductions",), lambda: self.reduction(t, n)),
                        (3, ("indexing",), lambda: self.element(t, n))]
        if shape and 0 not in shape and max(shape) < 9:
            options += [(2, ("indexing",), lambda: self.slices(t, n)),
                        (2, ("products",), lambda: self.product(t, n))]
            if shape[0] > 1:
                options.append((2, ("updates",), lambda: self.update_at(t, n)))
                if t[1] in FLOATS:
                    options.append((2, ("rows",), lambda: self.rows(t, n)))
        if len(shape) == 2 and 0 not in shape and max(shape) < 9 and t[1] in FLOATS:
            options.append((1, ("nested derivatives",), lambda: self.jacobian(t, n)))
        return self.weighted(options)

    def truths(self, t, n):
        r = self.rng.random()
        if r < 0.5:
            a, b = self.operands(tensor(t[2], self.rng.choice(["float32", "float64", "int32"])))
            return "(%s %s %s)" % self.around(self.pair(a, b, n), self.rng.choice(["<", "<=", ">", ">="]))
        if not t[2]:
            return "(%s %s %s)" % self.around(self.pair(t, t, n), self.rng.choice(["&&", "||"]))
        return "logical_not(%s)" % self.expr(t, n)

    @staticmethod
    def around(pair, sign):
        return pair[0], sign, pair[1]

    def integers(self, t, n):
        r = self.rng.random()
        if r < 0.6:
            return "(%s %s %s)" % self.around(self.pair(*self.operands(t), n), self.rng.choice("+-*"))
        if r < 0.8:
            return "(%s / %s)" % (self.expr(t, n), self.rng.choice([2, 3, 7, -4]))
        return "cast(%s, dtype=int32)" % self.expr(tensor(t[2], "float32"), n)

    def operands(self, t):
        """Two types whose broadcast is t."""
        dtype, shape = t[1], t[2]
        other = shape
        if shape and self.rng.random() < 0.6:
            other = tuple(1 if self.rng.random() < 0.4 and d else d for d in shape)
            if self.rng.random() < 0.3:
                other = shape[1:]
        both = [t, tensor(other, dtype)]
        self.rng.shuffle(both)
        return both

    def suffix(self, dtype):
        return "f64" if dtype == "float64" else ""

    def elementwise(self, t, n):
        u = self.expr(t, n)
        s = self.suffix(t[1])
        forms = ["sin(%s)", "cos(%s)", "tanh(%s)", "sigmoid(%s)", "atan(%s)", "(0.5{s} * exp(sin(%s)))", "log(2.0{s} + cos(%s))",
                 "sqrt(1.5{s} + sin(%s))", "(1.0{s} / (2.0{s} + cos(%s)))", "(-%s)", "(tanh(%s) ** 2.0{s})", "erf(%s)"]
        if not self.smooth:
            forms += ["exp(%s)", "log(%s)", "sqrt(%s)", "abs(%s)", "floor(%s)", "nn.relu(%s)", "(%s ** 3.0{s})"]
        return self.rng.choice(forms).replace("{s}", s) % u

    def arithmetic(self, t, n):
        a, b = self.pair(t, t, n)
        sign = self.rng.choice("+-**" if self.smooth else "+-*/")
        return "(%s %s %s)" % (a, sign, b)

    def broadcast(self, t, n):
        a, b = self.pair(*self.operands(t), n)
        return "(%s %s %s)" % (a, self.rng.choice("+-*"), b)

    def apart(self, t, n):
        """Values at least 0.1 away from zero on either side, by position."""
        if not self.smooth:
            return self.expr(t, n)

        def sides(shape):
            if not shape:
                return self.rng.choice(["0.5f64", "-0.5f64"])
            return "[%s]" % ", ".join(sides(shape[1:]) for _ in range(shape[0]))
        return "(sin(%s) * 0.4f64 + %s)" % (self.expr(t, n), sides(t[2]))

    def kink(self, t, n):
        r = self.rng.random()
        if r < 0.5:
            op = self.rng.choice(["abs", "nn.relu", "nn.leaky_relu"])
            return "%s(%s%s)" % (op, self.apart(t, n), ", alpha=0.3" if op == "nn.leaky_relu" else "")
        if r < 0.75:
            a, b = split(self.rng, n, 2)
            low = "sin(%s) * 0.05%s" % (self.expr(t, b), self.suffix(t[1]))
            return "%s(%s, %s)" % (self.rng.choice(["maximum", "minimum"]), self.apart(t, a), low)
        a, b, c = split(self.rng, n, 3)
        zero = "0.0" + self.suffix(t[1])
        return "where(%s > %s, %s, %s)" % (self.apart(t, a), zero, self.expr(t, b), self.expr(t, c))

    def reduction(self, t, n):
        shape = t[2]
        if shape:  # (k,): of (2, k) or (k, 3)
            axis = self.rng.choice([0, 1])
            u = tensor((2,) + shape if axis == 0 else shape + (3,), t[1])
            return "%s(%s, axis=[%d])" % (self.rng.choice(["sum", "mean"]), self.expr(u, n), axis)
        u = tensor(self.rng.choice([(3,), (2, 3), (2,)]), t[1])
        if self.rng.random() < 0.2 and self.smooth:
            self.has.add("kinks")
            # Elements that are apart: the largest stays the largest.
            return "%s(sin(%s) * 0.4f64 + [1.0f64, 2.0f64, 3.0f64])" % (
                self.rng.choice(["max", "min"]), self.expr(tensor((3,)), n))
        return "%s(%s)" % (self.rng.choice(["sum", "mean"]), self.expr(u, n))

    def element(self, t, n):
        shape = t[2]
        rows = self.rng.randint(2, 3)
        u = tensor((rows,) + shape, t[1])
        at = self.rng.randint(-rows, rows - 1)
        text = self.expr(u, n)
        return "(%s)[%d]" % (text, at)

    def slices(self, t, n):
        shape = t[2]
        r = self.rng.random()
        if r < 0.4:
            bigger = tensor((shape[0] + 1,) + shape[1:], t[1])
            return "(%s)[%s]" % (self.expr(bigger, n), self.rng.choice([":%d" % shape[0], "1:"]))
        if r < 0.6:
            return "(%s)[::-1]" % self.expr(t, n)
        picks = ", ".join(str(self.rng.randrange(shape[0])) for _ in range(shape[0]))
        return "take(%s, [%s], axis=0)" % (self.expr(t, n), picks)

    def stacked(self, t, n):
        shape = t[2]
        r = self.rng.random()
        if len(shape) == 2 and 0 not in shape and r < 0.5:
            return "transpose(%s)" % self.expr(tensor(shape[::-1], t[1]), n)
        if shape[0] > 1 and shape[0] < 9:
            if r < 0.7:
                parts = [self.expr(tensor(shape[1:], t[1]), k) for k in split(self.rng, n, shape[0])]
                return "[%s]" % ", ".join(parts)
            a, b = self.pair(tensor((1,) + shape[1:], t[1]), tensor((shape[0] - 1,) + shape[1:], t[1]), n)
            return "concatenate((%s, %s), axis=0)" % (a, b)
        return "cumsum(%s, axis=0)" % self.expr(t, n)

    def product(self, t, n):
        shape, k = t[2], self.rng.choice([1, 2, 3])
        if len(shape) == 1:
            a, b = tensor((shape[0], k), t[1]), tensor((k,), t[1])
        else:
            a, b = tensor((shape[0], k), t[1]), tensor((k, shape[1]), t[1])
        return "(%s @@ %s)" % self.pair(a, b, n)

    def derivative(self, t, n):
        a, b, c = split(self.rng, n, 3)
        scalar = tensor((), t[1])
        r = self.rng.random()
        if r < 0.4:
            return "deriv(%s)(%s)" % (self.closure(("fn", [t], scalar), a), self.expr(t, b))
        if r < 0.6:
            return "grad(%s)(%s).1.0" % (self.closure(("fn", [t], scalar), a), self.expr(t, b))
        u = tensor(self.shape(), t[1])
        if r < 0.7:
            pair = [(self.fresh("v"), t), (self.fresh("v"), u)]
            heads = ", ".join("%s: %s" % (x, type_text(of)) for x, of in pair)
            body = self.within(pair, lambda: self.expr(scalar, a))
            return "grad(fn (%s) { %s })(%s, %s).1.0" % (heads, body, self.expr(t, b), self.expr(u, c))
        if r < 0.8:
            of = self.closure(("fn", [u], t), a)
            return "linearize(%s, %s).1(%s)" % (of, self.expr(u, b), self.expr(u, c))
        if r < 0.9:
            return "jvp(%s)(%s, %s).1" % (self.closure(("fn", [u], t), a), self.expr(u, b), self.expr(u, c))
        return "vjp(%s)(%s, %s).1.0" % (self.closure(("fn", [t], u), a), self.expr(t, b), self.expr(u, c))
