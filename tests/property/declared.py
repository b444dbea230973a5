#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random definitions with a declared `where`, and random sizes: what is accepted is what it says.

A definition has the `where` that Relay infers of one body, and as its body that one or one that differs a
little: another position, field, attribute, operator or order of its arguments. Some stand inside of a
definition that declares the types of the `where`, some call each other. Other definitions compute sizes
of declared sizes and of numbers around the limits of int32. Whatever is accepted runs with
`--verify-types`, which compares each value with its type: it may end in a diagnostic of its own, but never
with a value of another type, with a signal or with a bug.

Others read two elements of data, or results of a function, where one size is asked of both, and
make sizes from values (docs/sizes.md).

With either hole that it was written for open again (a fact that covers every relation of its name, sizes
that wrap, elements of two sizes taken for one, a size 0 beside -1), a tenth of it fails.

    declared.py RELAY [--share=F] [--seed=N] [--keep=DIR]
"""
import json
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

ROUNDS, DEFINITIONS, CALLS = 160, 24, 6

VALUES = ['(1, "a")', '("a", 2.0)', '("a", 1, [1.0])', "(1.0f64, True)", "[1, 2]", "[1.0, 2.0, 3.0]",
          "zeros(shape=[2, 3])", "ones(shape=[1, 3])", "zeros(shape=[2, 1, 4])", "ones(shape=[4, 2])",
          "P { w: 1, v: \"v\" }", "P { w: \"w\", v: [1.0] }", "ref(1.0)", "True", '"text"', "(fn (z) { z * z })"]
START = ("type P[a, b] { P { w: a, v: b } } type Two[n] { Two(Tensor[(n,), float32], Tensor[(n,), float32]) } "
         "type Q[n] { Q { w: Tensor[(n,), float32], v: Tensor[(n,), float32] } } "
         "def pair[n](x: Tensor[(n,), float32], y: Tensor[(n,), float32]) { (x, y) } "
         "def two(x, y) { let _ = list[x, y]; (x, x + y) } "
         "def pairs[n](x: List[Tensor[(n,), float32]]) { (hd(x), hd(tl(x))) } "
         "let up = length(list[1, 2]); let filled = fn (k) { ones(shape=[k]) }; "
         "def vmap_(x, y) { map(fn (i: int32) { x[i] + y[i] }, list[0, 1]) } def twice(f) { (f(1), f(2), f(1)) } "
         "def made(k: int32) { (float32) arange(k) } def same(k: int32) { (float32) arange(k - k + 2) } "
         "def plain(_k: int32, y: Tensor[(?,), float32]) { y } "
         "def windowed(k, z) { grad(fn (w) { sum(nn.max_pool1d(nn.conv1d(reshape(w, newshape=[1, 1, -1]), ones(shape=[1, 1, 2]), "
         "strides=[k], padding=[k]), pool_size=[1], strides=[k])) })(z) } "
         "def called(f: fn(int32, Tensor[(?,), float32]) -> Tensor[(?,), float32], y) { f(2, y) }\n")


def families(rng):
    """Bodies over x, or x and y: what stands in one row differs a little."""
    i, j, k = rng.choice([0, 1, -1]), rng.choice([0, 1]), rng.choice(["True", "False"])
    a = rng.choice(["sum", "max", "prod"])
    rows = [
        ["x[0]", "x[1]", "x[-1]", "x[2]"],
        ["x.0", "x.1", "x.2"],
        ["x.w", "x.v"],
        ["!x", "x"],
        [f"{a}(x, axis=[{b}], keepdims={c})" for b in (0, 1, -1) for c in ("True", "False")] + [f"{a}(x)"],
        [f"{a}(x, axis=[{i}])", f"min(x, axis=[{i}])", f"{a}(x, axis=[{j}], exclude={k})"],
        [f"argmax(x, axis=[{b}])" for b in (0, 1)] + ["argmin(x, axis=[0], keepdims=True)"],
        [f"reshape(x, newshape={n})" for n in ("[-1]", "[-1, 2]", "[2, -1]", "[0, -1]", "[-1, 0]")] +
        [f"contrib_reverse_reshape(x, newshape={n})" for n in ("[-1, 0]", "[0, -1]", "[-1, 2]")],
        [f"squeeze(x, axis=[{b}])" for b in (0, 1)] + ["squeeze(x)"],
        [f"expand_dims(x, axis={b})" for b in (0, 1, -1)],
        [f"repeat(x, repeats={n}, axis={b})" for n in (1, 2) for b in (0, 1)],
        [f"tile(x, reps={n})" for n in ("[2]", "[1, 2]", "[2, 1]")],
        [f"split(x, indices_or_sections={n}, axis={b})" for n in (1, 2) for b in (0, 1)],
        [f"nn.pad(x, 0.0, pad_width=[[{b}, {c}], [0, 1]])" for b in (0, 1) for c in (0, 2)],
        ["concatenate((x, y), axis=0)", "concatenate((y, x), axis=0)", "concatenate((x, y), axis=1)",
         "stack((x, y), axis=0)", "stack((x, y), axis=1)"],
        ["x @@ y", "y @@ x", "nn.dense(x, y)", "nn.dense(y, x)"],
        ["x == y", "y == x", "x < y", "x != y"],
        ["x + y", "x * y", "x + x", "y - x", "x < y"],
        ["take(x, y, axis=0)", "take(x, y, axis=1)", "take(y, x, axis=0)", "take(x, y)"],
        ["grad(x)", "deriv(x)", "jvp(x)", "vjp(x)"],
        ["(x[0], x[1])", "(x[1], x[0])", "(x[0], x[0])"],
        ["(x.w, y.v)", "(y.w, x.v)", "(x.v, y.w)"],
        ["x[0] + y", "x[1] + y", "x + y[0]"],
        ["sum(x + y, axis=[0])", "sum(x + y, axis=[1])", "sum(x, axis=[0]) + y", "sum(y, axis=[0]) + x"],
    ]
    return rows


def parameters(bodies):
    return "x, y" if any(re.search(r"\by\b", b) for b in bodies) else "x"


class Failure(Exception):
    pass


def run(relay, options, text, folder):
    """Its status, its diagnostics and what it printed."""
    path = os.path.join(folder, "program.rly")
    with open(path, "w") as f:
        f.write(text)
    p = subprocess.run([relay] + options + ["--diagnostics=json", "--memory=600M", "program.rly"], cwd=folder,
                       capture_output=True, timeout=PATIENCE * SLOW)
    output, said = p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")
    diags = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    if p.returncode < 0 or p.returncode > 2 or "bug in Relay" in said or "Sanitizer" in said or \
            (p.returncode and not any(d["severity"] == "error" for d in diags)):
        raise Failure(f"ended with {p.returncode}:\n{text}{said[-800:]}")
    return p.returncode, [d for d in diags if d["severity"] == "error"], output


def inferred(relay, rows, folder):
    """The type of each body, as it is shown."""
    bodies = [(row, body) for row in rows for body in row]
    lines = [f"fn ({parameters(row)}) {{ {body} }}" for row, body in bodies]
    kept = kept_lines(relay, START, range(len(lines)), lambda i: lines[i], folder)
    output = run(relay, [], START + "\n".join(lines[i] for i in kept) + "\n", folder)[2]
    types = [line[len("<fn> : "):] for line in output.splitlines() if line.startswith("<fn> : ")]
    if len(types) != len(kept):
        raise Failure("a type is not shown:\n" + "\n".join(lines[i] for i in kept))
    return {bodies[i][1]: t for i, t in zip(kept, types)}


def around(rng, name, declared, body, params):
    """The definition: by itself, inside of another that declares the types, or in a group."""
    m = re.match(r"fn \[(.*?)\]\((.*)\) -> (.*) where (.*)$", declared)
    if not m or rng.random() < 0.5:
        return f"let {name}: {declared} = fn ({params}) {{ {body} }};"
    quantified, given, result, where = m.groups()
    types = split_types(given)
    heads = ", ".join(f"{p}: {t}" for p, t in zip(params.split(", "), types))
    if rng.random() < 0.3:
        given = ", ".join(params.split(", "))
        return (f"def {name}[{quantified}]({heads}, k) -> {result} where {where} "
                f"{{ if (k == 0) {{ {body} }} else {{ {name}_({given}, k) }} }} "
                f"def {name}_({params}, k) {{ {name}({given}, k - 1) }}")
    if rng.random() < 0.5:
        outer = rng.choice([f" where {where}", ""])
        return (f"def {name}[{quantified}]({heads}) -> {result}{outer} "
                f"{{ let inner: fn [zz](zz) -> {result} where {where} = fn (_z) {{ {body} }}; inner(1) }}")
    return f"def {name}[{quantified}]({heads}) -> {result} where {where} {{ {body} }}"


def split_types(text):
    """The types of a list of parameters."""
    out, depth, begin = [], 0, 0
    for i, c in enumerate(text + ","):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            out.append(text[begin:i].strip())
            begin = i + 1
    return out


SIZES = [0, 1, 2, 3, 7, 255, 65535, 65536, 46341, 2147483647, 2147483646]


def size_text(rng, depth=2):
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(["n", "n", "m", str(rng.choice(SIZES))])
    op = rng.choice(["+", "-", "*", "*"])
    b = size_text(rng, depth - 1)
    if op == "*" and not re.fullmatch(r"\d+", b):
        b = str(rng.choice(SIZES))
    return f"({size_text(rng, depth - 1)} {op} {b})"


def size_definition(rng, name):
    use = rng.choice(["arange({})", "arange(0, {}, 65536)", "x[{}:{}]", "x[:{}]", "zeros(shape=[{}, 0])", "zeros(shape=[{}])",
                      "shape_of(x)", "ndarray_size(x)", "({}, shape_of(x))",
                      "broadcast_to(ones(shape=[1]), shape=[{}])", "repeat(x, repeats=2, axis=0)", "concatenate((x, x))"])
    use = re.sub(r"\{\}", lambda _: size_text(rng), use)
    text = f"def {name}[n, m](x: Tensor[(n, m), float32]) {{ {use} }}"
    n, m = rng.choice([(1, 2), (3, 1), (2, 0), (0, 4294967297), (4294967296, 0), (65536, 0), (0, 65537), (0, 2147483648)])
    return text, [f"{name}(zeros(shape=[{n}, {m}]))"]


def last_line(diag):
    """A call that a definition does not take may be blamed on the definition; then a label stands at the call."""
    return max([diag["line"]] + [label["line"] for label in diag["labels"]])


def element_definition(rng, name):
    """Sizes of elements of data, and of results of functions: one size is asked of two of them."""
    tensor = "Tensor[(n,), float32]"
    take = rng.choice(["a + b", "(a, b)", "pair(a, b)", "two(a, b)", "Two(a, b)", "Q { w: a, v: b }", "a @@ b",
                       "pair(a + b, a)", "reshape(a + b, newshape=[1, -1])", "{ let r = pair(a, b); r.0 + r.1 }",
                       "foldl(fn (t, x) { pair(t, x).0 + x }, a, list[b, a])", "pairs(list[a, b])"])
    form, value = rng.choice([
        ("List[{}]", "match? (x) {{ Cons(a, Cons(b, _)) => {} }}"),
        ("List[{}]", "{{ let a = hd(x); let b = hd(tl(x)); {} }}"),
        ("List[({}, int32)]", "match? (x) {{ Cons((a, _), Cons((b, _), _)) => {} }}"),
        ("List[Option[{}]]", "match? (x) {{ Cons(Some(a), Cons(Some(b), _)) => {} }}"),
        ("Tree[{}]", "match? (x) {{ Rose(a, Cons(Rose(b, _), _)) => {} }}"),
        ("P[List[{}], int32]", "match? (x.w) {{ Cons(a, Cons(b, _)) => {} }}"),
        ("ref(List[{}])", "match? (!x) {{ Cons(a, Cons(b, _)) => {} }}"),
        ("fn(int32) -> {}", "{{ let a = x(1); let b = x(2); {} }}"),
    ])
    body, form = value.format(take), form.format(tensor)
    head = rng.choice([f"def {name}[n](x: {form})", f"def {name}(x)", f"def {name}(x)",
                       f"def {name}[n](x: {form}, _y: {tensor})"])
    more = ", ones(shape=[2])" if "_y" in head else ""
    made = rng.choice(["made", "same"])
    given = {"L": f"map({made}, list[1, 2])", "T": f"Rose({made}(1), list[Rose({made}(2), list[])])",
             "P": f"P {{ w: map({made}, list[1, 2]), v: 1 }}", "r": f"ref(map({made}, list[1, 2]))", "f": made}[form[0]]
    if "int32)]" in form:
        given = f"map(fn (k) {{ ({made}(k), k) }}, list[1, 2])"
    elif "Option" in form:
        given = f"map(fn (k) {{ Some({made}(k)) }}, list[1, 2])"
    call = f"{name}({given}{more})"
    if rng.random() < 0.3:
        call = f"{{ let r = {call}; (r, r) }}"
    return f"{head} {{ {body} }}", [call]


def value_size(rng, names, depth=2):
    """A size over integer variables: docs/sizes.md."""
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(names + names + ["1", "2", "length(list[1, 2])", "(if True then 2 else 1)"])
    a, b = value_size(rng, names, depth - 1), value_size(rng, names, depth - 1)
    form = rng.choice(["({a} + {b})", "({a} - {b})", "({a} * {b})", "(2 * {a})", "floordiv({a}, 2)", "min({a}, {b})",
                       "max({a}, {b})", "minimum({a}, {b})", "({a} + 1)"])
    return form.format(a=a, b=b)


def value_definition(rng, name):
    """Sizes from values, through functions, closures, data, recursion and derivatives."""
    names = ["k", "j", "c", "up"]

    def tensor(inner=()):
        size = value_size(rng, names + list(inner))
        return rng.choice(["zeros(shape=[{}])", "ones(shape=[{}])", "(float32) arange({})", "full(1.0, shape=[{}])", "made({})",
                           "reshape(ones(shape=[{}, 2]), newshape=[-1])", "reshape(ones(shape=[2, {}]), newshape=[-1, {}])[0]",
                           "y[0:{}]", "y[{}:]", "broadcast_to(1.0, shape=[{}])", "filled({})", "sum(ones(shape=[{}, 3]), axis=[1])",
                           "one_hot(1, 1.0, 0.0, depth={})", "ones(shape=[2, {}])[1]", "nn.dilate(ones(shape=[3]), strides=[{}])",
                           "nn.max_pool1d(ones(shape=[1, 1, 9]), pool_size=[{}], strides=[2], padding=[1])[0, 0]",
                           "nn.avg_pool1d(ones(shape=[1, 1, 9]), pool_size=[2], strides=[{}], ceil_mode=True)[0, 0]",
                           "nn.conv1d(ones(shape=[1, 1, 9]), ones(shape=[1, 1, 2]), strides=[{}], padding=[{}], dilation=[2])[0, 0]",
                           "nn.conv1d_transpose(ones(shape=[1, 1, 3]), ones(shape=[1, 1, 2]), strides=[{}], dilation=[{}])[0, 0]",
                           "nn.adaptive_avg_pool1d(ones(shape=[1, 1, 4]), output_size=[{}])[0, 0]",
                           "split(ones(shape=[5]), indices_or_sections=[{}, 4]).1", "strided_slice(ones(shape=[9]), strides=[{}])",
                           "sliding_window(ones(shape=[7]), axis=0, window_shape=[{}], strides=[{}])[0]"]).replace("{}", size)

    a, b, c, e = tensor(), tensor(), tensor(["i"]), tensor(["i"])
    body = rng.choice([f"{a} + {b}", f"pair({a}, {b})", f"({a}, {a})", f"list[{a}, {b}]", f"pairs(list[{a}, {b}])", f"Two({a}, {b})",
                       f"Q {{ w: {a}, v: {b} }}", f"(fn (z) {{ pair(z, {a}) }})({b})", f"{{ let g = fn (z) {{ pair({a}, z) }}; g({b}) }}",
                       f"map(fn (i) {{ {c} }}, list[1, 2])", f"foldl(fn (t, i) {{ t + sum({c}) }}, 0.0, list[0, 1, 2])",
                       f"{{ let g = fn (i) {{ {c} }}; pair(g(1), g(2)) }}", f"{{ let g = fn (i) {{ {c} }}; (g(j), {a}) }}",
                       f"(if (k > 1) {{ {a} }} else {{ {b} }})", f"grad(fn (w) {{ sum(w * {a}) }})({b})", f"windowed({value_size(rng, names)}, {a})",
                       f"{{ let g = fn (i, w) {{ {c} * w + {e} }}; grad(fn (w) {{ sum(g(k, w)) }})(2.0) }}",
                       f"{{ let r = ref({a}); r := {b}; pair(!r, {a}) }}", f"vmap_({a}, {b})", f"{a} @@ {b}",
                       f"concatenate(({a}, {b}))", f"{{ let p = ({a}, {b}); pair(p.0, p.1) }}", f"(fn (i) {{ pair({c}, {e}) }})(k)",
                       f"twice(fn (i) {{ {c} }})", f"foldl(fn (t, x) {{ concatenate((t, x)) }}, {a}, list[{b}, {b}])",
                       f"loop(2, fn (t) {{ concatenate((t * 2.0, {a})) }}, {b})", f"loop(2, fn (t) {{ pair(t, {a}).0[1:] }}, {b})",
                       f"loop(2, fn ((t, u)) {{ (concatenate((t, u)), u) }}, ({a}, {b}))", f"loop(2, fn (t) {{ t * 2.0 + {a} }}, {b})"])
    head = rng.choice(["k", "k: int32"])
    if rng.random() < 0.3:  # the size of y is named, as the caller or the body must have it
        size = rng.choice(["k", "k", "k + 1", "2 * k", "max(k, 0)"])
        result = rng.choice(["", "", f" -> Tensor[({size},), float32]", " -> Tensor[(k,), float32]"])
        form = rng.choice([a, b, "y", f"y + {a}", f"pair(y, {a})", f"called({name}n, {a})", f"{name}n(k, {a})"])
        use = rng.choice(["{0}(K, Y)", "called({0}, Y)", "(id({0}))(K, Y)", "hd(list[{0}])(K, Y)", "hd(list[{0}, plain])(K, Y)",
                          "(fn (f, z) {{ f(K, z) }})({0}, Y)", "grad(fn (z) {{ sum({0}(K, z)) }})(Y)", "vjp({0})(K, Y, Y).0"])
        use = use.format(name).replace("K", rng.choice(["1", "2", "up", "length(list[1, 2])"]))
        return (f"def {name}n(k: int32, y: Tensor[(k,), float32]) {{ y }} "
                f"def {name}(k: int32, y: Tensor[({size},), float32]){result} {{ let c = 2; let j = c; let _ = c + j; {form} }}",
                [use.replace("Y", f"made({rng.choice([1, 2, 3])})" if rng.random() < 0.7 else "ones(shape=[2])")])
    bound = rng.choice(["k + 1", "2", "k", "c * 2", "length(list[k])", "k - 1"])
    more = rng.choice(["", f" let h = {a};"])
    return (f"def {name}({head}, y: Tensor[(?,), float32]) {{ let c = {rng.choice([1, 2, 3])}; let j = {bound};{more} {body} }}",
            [f"{name}({rng.choice([-1, 0, 1, 1, 2, 2, 3])}, made({rng.choice([0, 1, 2, 3])}))"])


def odd_definition(rng, name):
    """A size that may be 0 beside a -1 that only the caller's types know."""
    shape = rng.choice(["[m, -1]", "[-1, m]", "[m, -1, 1]", "[m, 0, -1]", "[-1, m, 3]"])
    op = rng.choice(["reshape", "contrib_reverse_reshape"])
    n = rng.choice([0, 0, 1, 2])
    return (f"def {name}(x) {{ {name}_(x[:, 0], x) }} "
            f"def {name}_[m](_y: Tensor[(m,), float32], x) {{ {op}(x, newshape={shape}) }} "
            f"def {name}d[m](x: Tensor[(m, 3), float32]) {{ {name}(x) }}",
            [f"{name}{rng.choice(['', 'd'])}(zeros(shape=[{n}, 3]))"])


def kept_lines(relay, before, items, text_of, folder):
    """The items that check after this text. A run of the checker reports some mistakes, not all."""
    first = before.count("\n") + 1
    while items:
        errors = run(relay, ["check"], before + "\n".join(map(text_of, items)) + "\n", folder)[1]
        bad = {last_line(d) - first for d in errors}
        if not errors:
            break
        if min(bad) < 0:
            raise Failure("what checked before does not any more:\n" + before)
        items = [item for i, item in enumerate(items) if i not in bad]
    return items


def round_of(relay, seed, folder, totals):
    rng = random.Random(seed)
    lines = []
    rows = rng.sample(families(rng), 8)
    types = inferred(relay, rows, folder)
    for i in range(DEFINITIONS):
        row = rng.choice(rows)
        known = [b for b in row if b in types]
        if rng.random() < 0.5 or not known:
            make = rng.choice([size_definition, value_definition, value_definition, element_definition, odd_definition])
            lines.append(make(rng, f"d{i}"))
            continue
        declared, params = rng.choice(known), parameters(row)
        body = declared if rng.random() < 0.4 else rng.choice(row)
        text = around(rng, f"d{i}", types[declared], body, params)
        calls = []
        for _ in range(CALLS):
            args = [rng.choice(VALUES) for _ in params.split(", ")] + (["1"] if f"d{i}_(" in text else [])
            calls.append(f"d{i}({', '.join(args)})")
        lines.append((text, calls))
    # What is refused, a definition and then a call, goes; what is left runs until a call ends it.
    drawn = len(lines)
    lines = kept_lines(relay, START, lines, lambda line: line[0], folder)
    totals["refused"] += drawn - len(lines)
    totals["accepted"] += len(lines)
    text = START + "\n".join(text for text, _ in lines) + "\n"
    calls = kept_lines(relay, text, [call for _, several in lines for call in several], str, folder)
    while calls:
        status, errors, output = run(relay, ["--verify-types"], text + "\n".join(calls) + "\n", folder)
        shown = shown_calls(output)
        if status == 0:
            totals["ran"] += len(calls)
            break
        at = next((d["line"] - 2 - len(lines) for d in errors if d["line"] - 2 >= len(lines)), None)
        if at is None:  # in a definition: the calls that were shown before it
            at = shown
        totals["ran"] += at
        totals["ended"] += 1
        calls = calls[at + 1:]


def shown_calls(output):
    """How many values are shown: a value ends with its type at the end of a line."""
    return sum(1 for line in output.splitlines() if re.search(r" : [^:]+$", line))


def main():
    args = share.arguments(__doc__).parse_args()
    relay = os.path.abspath(args.relay)
    failed, totals = 0, {"accepted": 0, "refused": 0, "ran": 0, "ended": 0}
    seeds = share.seeds(args, ROUNDS, 3)
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                round_of(relay, seed, folder, totals)
            except Failure as f:
                failed += 1
                print(f"seed {seed}: {f}")
                if args.keep:
                    os.makedirs(args.keep, exist_ok=True)
                    os.replace(os.path.join(folder, "program.rly"), os.path.join(args.keep, f"declared{seed}.rly"))
    print(", ".join(f"{what}: {n}" for what, n in totals.items()))
    if min(totals["accepted"], totals["refused"], totals["ran"]) < len(seeds):
        failed += 1
        print("too few definitions were accepted, refused or ran")
    print(f"{len(seeds) - min(failed, len(seeds))} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
