#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever is read, typed or asked for, the answer is a diagnostic, never a signal, and not a signal.

Texts that are none, very long lines, very deep nesting, mistakes of every kind, limits of stack and
memory, interrupts, broken output, wrong usage; from a file, on the command line and at the prompt.

    bad_input.py RELAY [--share=F] [--seed=N] [--only=PARTS] [--times]
"""
import errno
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _bad import PATIENCE, SLOW, limit_of, run_parts
from process import wait_busy

DEEP = 100_000
LONG = 10_000_000


def files(s):
    """What stands where a file should."""
    s.write("empty.rly", "")
    s.write("secret.rly", "1")
    os.mkdir(s.path("folder.rly"))
    os.mkfifo(s.path("unread"))
    os.symlink("loop.rly", s.path("loop.rly"))
    s.rejects("unending", ["run", "/dev/zero"])
    for command in (["run"], ["check"], ["fmt"], ["ir"]):
        name = command[0] + " "
        s.rejects(name + "missing", command + ["missing.rly"], "R0501", "missing.rly")
        s.rejects(name + "folder", command + ["folder.rly"], "R0501", "directory")
        s.rejects(name + "below a file", command + ["empty.rly/x.rly"], "R0501")
        s.rejects(name + "symlink to itself", command + ["loop.rly"], "R0501")
        s.accepts(name + "empty", command + ["empty.rly"])
        s.accepts(name + "/dev/null", command + ["/dev/null"])
        s.rejects(name + "name too long", command + ["x" * 5000], "R0501")
        if os.getuid() == 0:  # whom no permission stops
            s.rejects(name + "unreadable", command + ["/proc/self/mem"], "R0501")
        else:
            os.chmod(s.path("secret.rly"), 0)
            s.rejects(name + "unreadable", command + ["secret.rly"], "R0501")
    s.rejects("import of a folder", ["-e", "import folder;"])
    s.rejects("import of nothing", ["-e", "import nothing;"], "R0105")
    s.rejects("doc", ["doc", "nothing"], "R0101")
    s.rejects("explain", ["explain", "R9999"], "R0101")


def no_texts(s):
    binary = bytes((i * 7919 + (i >> 3)) & 255 for i in range(5000))
    texts = {
        "binary": binary, "elf": b"\x7fELF\x02\x01\x01" + bytes(200), "nul": b"1 + \0 1",
        "nul in a string": b'"a\0b"', "nul in a comment": b"// a\0\n1", "only nuls": bytes(1000),
        "latin-1": b'"caf\xe9"', "latin-1 outside": b"caf\xe9", "overlong": b'"\xc0\xaf"',
        "surrogate": b'"\xed\xa0\x80"', "beyond unicode": b'"\xf4\x90\x80\x80"', "cut off": b'"\xe2\x82',
        "continuation": b"\x80\x80", "utf-16 le": "1 + 1".encode("utf-16"),
        "utf-16 be": b"\xfe\xff" + "1 + 1".encode("utf-16-be"), "utf-32": "1".encode("utf-32"),
        "control": b"\x01\x02\x03", "escape": b"1 \x1b[31m + red", "delete": b"1 \x7f", "bad comment": b"// \xff\n1",
        "bad comment alone": b"// \xff", "bad byte alone": b"\xff",
        "bad doc comment": b"/// \xff\ndef f() { 1 }", "bom twice": b"\xef\xbb\xbf\xef\xbb\xbf1",
    }
    for name, data in texts.items():
        path = s.write(name.replace(" ", "_") + ".bad", data)
        for command in ("run", "check", "fmt"):
            if name == "nul in a comment" or name.startswith("bad"):
                continue
            s.rejects("%s: %s" % (command, name), [command, path])
        s.rejects("stdin: " + name, [], stdin=data) if name[:3] not in ("bad", "nul") else None
    for name in ("bad comment", "bad doc comment", "nul in a comment"):
        s.rejects(name, ["run", s.path(name.replace(" ", "_") + ".bad")], "R0007|R0008")
    s.accepts("byte order mark", ["run", s.write("bom.rly", b"\xef\xbb\xbf1 + 1\n")], "2 : int32\n")
    s.accepts("crlf", ["run", s.write("crlf.rly", b"1 +\r\n1\r\n")], "2 : int32\n")


def long_lines(s):
    n = LONG if SLOW == 1 else LONG // 20
    lines = {
        "name": "a" * n, "digits": "1" * n, "fraction": "0." + "1" * n + "x", "exponent": "1e" + "9" * n,
        "hex": "0x" + "f" * n, "open string": '"' + "a" * n, "operators": "+" * n, "blanks": " " * n + "x",
        "sum of strings": '"' + "a" * n + '" + 1', "after a comment": "/*" + "a" * n + "*/ nope",
        "open comment": "/* " + "a" * n, "escapes": '"' + "\\n" * (n // 2) + "\\q\"", "at signs": "@" * n,
        "semicolons": ";" * n + "nope", "commas": "(" + "," * n, "dots": "x" + ".x" * (n // 20),
        "wide": '"' + "\u20ac" * (n // 3) + '" + 1', "sum": "1" + "+1" * (n // 50) + "+ nope",
        "list": "[" + "1," * (n // 20) + "nope]", "quoted names": "`" * n,
    }
    for name, text in lines.items():
        path = s.write("long " + name, text)
        s.rejects("line of 10 MB: " + name, ["run", path])
        if name in ("name", "open string", "sum", "digits"):
            s.rejects("check, line of 10 MB: " + name, ["check", path])
    # What the program takes: the time is that of a text, so this many bytes end within the limit.
    done = {"sum": ("1" + " + 1" * (n // 40), "%d : int32\n" % (n // 40 + 1)), "let in": ("let x = 1 in " * (n // 100) + "x", "1 : int32\n"),
            "sequence": ("1; " * (n // 20) + "2", "2 : int32\n"), "else if": ("if (False) { 1 } else " * (n // 200) + "{ 2 }", "2 : int32\n"),
            "conjunction": ("True" + " && True" * (n // 100), "True : bool\n"), "composition": ("(fn (x) { x }" + " >> abs" * (n // 200) + ")(-1)", "1 : int32\n"),
            "tensor": ("sum([" + ", ".join("1" * (n // 20)) + "])", "%d : int32\n" % (n // 20)),
            "products": ("let a = [[1.0]]; sum(a" + " @@ a" * (n // 400) + ")", "1.0 : float32\n"),
            "list": ("foldl(fn (a, i) { a + i }, 0, list[" + ", ".join("1" * (n // 60)) + "])", "%d : int32\n" % (n // 60))}
    for name, (text, out) in done.items():
        s.accepts("long line: " + name, ["run", s.write("done " + name, text)], out)
    s.accepts("string of 10 MB", ["run", s.write("long string", 'str.length("%s")' % ("a" * n))],
              "%d : int32\n" % n)
    s.accepts("comment of 10 MB", ["run", s.write("long comment", "// %s\n2" % ("a" * n))], "2 : int32\n")


def nested(n):
    """Nesting of each kind, (opening, closing, middle): refused, or done if the kind has no limit."""
    def many(a, middle, b=""):
        return a * n + middle + b * n
    return {
        "parentheses": many("(", "1", ")"), "open parentheses": many("(", ""),
        "brackets": many("[", "1", "]"), "open brackets": many("[", ""),
        "braces": "def f() " + many("{", "1", "}"), "open braces": "def f() " + many("{", ""),
        "closing": many("", "1", ")"), "closing braces": many("", "1", "}"), "mixed": many("([{", "1"),
        "minus": many("- ", "True"), "not": many("!", "1"), "tuples": many("(", "", ",)") + ".nope",
        "calls": many("f(", "1", ")"), "curried": "f" + "(1)" * n, "indices": "x" + "[0]" * n,
        "projections": "x" + ".0" * n, "fn": many("fn (x) { ", "x", " }"), "open fn": many("fn (x) {", ""),
        "if": many("if (True) { ", "1", " } else { 2 }"),
        "else if": "if (True) { 1 }" + " else if (True) { 1 }" * n + " else { nope }",
        "if in a condition": many("if (", "True", ") { True } else { False }") + " + 1",
        "match": many("match (Nil) { Nil => ", "1", " }"), "match of match": many("match (", "1", ") { x => x }"),
        "let values": many("let x = { ", "1", "; x }"), "lets": "let x = 1; " * n + "nope",
        "let in": many("let x = 1 in ", "nope"), "list types": "let x: " + many("List[", "int32", "]") + " = 1;",
        "function types": "let x: " + many("fn (", "int32", ") -> int32") + " = 1;",
        "function results": "let x: " + many("fn () -> ", "int32") + " = 1;",
        "tuple types": "let x: " + many("(", "int32", ",)") + " = 1;", "open types": "let x: " + many("List[", ""),
        "dims": "let x: Tensor[(" + many("(", "1", ")") + ",), int32] = 1;",
        "sums of dims": "def f[n](x: Tensor[(n" + " + 1" * n + ",), int32]) { nope }",
        "patterns": "match (1) { " + many("Some(", "x", ")") + " => 1 }",
        "tuple patterns": "let " + many("(", "x", ",)") + " = 1; x", "open patterns": "match (1) { " + many("Some(", ""),
        "or patterns": "match (1) { 1" + " | 1" * n + " => 1 }",
        "arms": "match (1) { " + "1 => 1, " * n + "}",
        "conses": "1" + " :: 1" * n, "plus": "nope" + " + 1" * n, "ands": "1" + " && True" * n,
        "powers": "2" + " ** 2" * n + " + nope", "pipes": "nope" + " |> f" * n, "comparisons": "1" + " == 1" * n,
        "casts": many("(float32) ", "nope"), "refs": many("ref ", "nope"), "reads": many("! ", "nope"),
        "assignments": many("x := ", "nope"), "with": "x" + " with { a = 1 }" * n,
        "records": many("P { a: ", "1", " }"), "comments": many("/* ", ""), "strings": '"' + '\\"' * n,
        "types": "type T { " + "A(" * n, "type parameters": "def f[" + "a, " * n + "](x) { nope }",
        "parameters": "def f(" + ", ".join("x%d" % i for i in range(n)) + ") { nope }",
        "arguments": "nope(" + "1, " * n + ")", "attributes": "sum(1, axis=" + many("[", "", "]") + ")",
        "graph": "".join("%%%d = add(%%%d, 1);\n" % (i + 1, i) for i in range(n)) + "nope",
        "derivatives": many("grad(", "nope", ")"), "holes": "?" * n, "at": many("@", "x"), "tildes": many("~", "1"),
        "statements": "nope; " * n, "definitions": "def f() { nope }\n" * n,
        "doc comments": "/// x\n" * n + "nope", "imports": "import nothing; " * n,
    }


def deep_nesting(s):
    n = DEEP if SLOW == 1 else DEEP // 100
    for name, text in nested(n).items():
        path = s.write("deep " + name, text)
        if name == "braces":
            s.accepts("%d deep: braces" % n, ["run", path])
            continue
        (s.rejects if n == DEEP else s.ends)("%d deep: %s" % (n, name), ["run", path])
    for text in ("1" + " + 1" * n, "[" + "1, " * n + "]", "1" + " :: 1" * n + " :: Nil", "let x = 1; " * n + "x",
                 "if (False) { 1 }" + " else if (False) { 1 }" * (n - 10) + " else { 2 }", "-" * 999 + "1"):
        path = s.write("fine %d" % len(s.queue), text)
        for command in ("run", "check", "fmt", "ir"):
            s.accepts("%s, %d long: %s" % (command, n, text[:20]), [command, path])


def mistakes(s):
    """One of each; where the code is known, it is asked for."""
    for text, code in MISTAKES:
        s.rejects_text(text, code)
        s.rejects_text(text, code, args=["--jit=off"], name=text[:60] + " --jit=off")


MISTAKES = [
    ("nope", "R0101"), ("nope(1)", "R0101"), ("1 + nope + nope", "R0101"), ("let x: Nope = 1;", "R0102"),
    ("@nope", "R0101"), ("%nope", "R0114|R0101"), ("Nope(1)", None), ("sum(1.0, nope=1)", "R0109"),
    ("import nope;", "R0105"), ("nn.nope(1)", None), ('1 + "a"', None), ("1 + True", None), ("1(2)", "R0202"),
    ("(fn (x) { x })(1, 2)", "R0203"), ("if (1) { 1 } else { 2 }", "R0204"),
    ("if (True) { 1 } else { (1,) }", "R0205"), ("[1, True]", "R0207"), ("[[1, 2], [3]]", "R0215"),
    ("(1, 2).5", "R0216"), ("let r = ref 1; r := True", None), ("match (Nil) { Cons(x, _) => x }", "R0210"),
    ("match ((True, 1)) { (True, _) => 1 }", "R0210"), ("fn (x) { x(x) }", "R0217"),
    ("ones(shape=[2, 3]) + ones(shape=[4])", "R0312"), ("nn.dense(ones(shape=[2, 3]), ones(shape=[4, 5]))", None),
    ("reshape(ones(shape=[6]), newshape=[4])", None), ("transpose(ones(shape=[2, 3]), axes=[0, 0])", None),
    ("concatenate((ones(shape=[2, 3]), ones(shape=[2, 4])), axis=0)", None), ("sum(ones(shape=[2]), axis=5)", None),
    ("squeeze(ones(shape=[2]), axis=[0])", None), ("ones(shape=[2])[5]", None), ("ones(shape=[2])[-3]", None),
    ("split(ones(shape=[5]), indices_or_sections=2)", None), ("1 / 0", "R0601"), ("mod(1, 0)", "R0601"),
    ("floor_divide(1, 0)", "R0601"), ("[1, 2] / [1, 0]", "R0601"), ("mod([1, 2], [0, 0])", "R0601"),
    ("let i = 5; [1, 2, 3][i]", "R0602"), ("fn (i) { [1, 2, 3][i] }(7)", None), ("let xs = 1 :: Nil; nth(xs, 1)", None),
    ("gather([1.0], [3], axis=0)", "R0602"), ("left_shift(1, -1)", "R0603"), ("right_shift(1, [-1])", "R0603"), ("2 ** -1", "R0603"),
    ("checked_multiply(-1, -2147483648)", "R0614"), ("checked_multiply(-2147483648, -1)", "R0614"), ("checked_multiply(65536, 65536)", "R0614"), ("checked_subtract(-2147483648, 1)", "R0614"),
    ("checked_add(200u8, 100u8)", "R0614"), ("checked_subtract(1u8, 2u8)", "R0614"), ("checked_add([1, 2147483647], 1)", "R0614"),
    ("hd(Nil)", None), ("nth(1 :: Nil, 5)", None), ('error("no")', "R0611"), ("assert(False, \"no\")", "R0611"),
    ("let x: uint8 = 300;", "R0211|R0006"), ("99999999999999999999", None), ("1e999", "R0006"), ("0xfffffffffffffffff", None),
    ('"\\q"', "R0004"), ('"abc', "R0002"), ("/* abc", "R0003"), ("0x", "R0005"),
    ("1 +", "R0001"), ("def", "R0001"), ("let x = ;", "R0001"), ("}", "R0001"), ("?x", None),
    ("zeros(shape=[-1])", None), ("zeros(shape=[4611686018427387904])", "R0317"),
    ("zeros(shape=[4294967296, 4294967296, 4294967296])", None), ("zeros(shape=[9223372036854775807, 2])", None),
    ("zeros(shape=[9223372036854775807])", None), ("zeros(shape=[99999999999999999999])", None),
    ("zeros(shape=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])", None),
    ("broadcast_to(1.0, shape=[4611686018427387904])", None), ("arange(0, 9223372036854775807, 1)", None),
    ("arange(0.0, 1e30, 1.0)", None), ("arange(0, 10, 0)", None), ("arange(0.0, nan, 1.0)", None), ("repeat(ones(shape=[2]), repeats=-1, axis=0)", None),
    ("repeat(ones(shape=[4]), repeats=2147483647, axis=0)[0] + repeat(ones(shape=[4]), repeats=2147483647, axis=0)[0]", None),
    ("tile(ones(shape=[4]), reps=[4611686018427387904])", None), ("tile(ones(shape=[2]), reps=[-1])", None),
    ("one_hot([1], 1.0, 0.0, depth=4611686018427387904)", None), ("one_hot([1], 1.0, 0.0, depth=-1)", None),
    ("nn.pad(ones(shape=[2]), 0.0, pad_width=[[4611686018427387904, 4611686018427387904]])", None),
    ("nn.pad(ones(shape=[2]), 0.0, pad_width=[[-5, 0]])", None),
    ("nn.conv2d(ones(shape=[1, 1, 3, 3]), ones(shape=[1, 1, 5, 5]))", None),
    ("nn.conv2d(ones(shape=[1, 1, 3, 3]), ones(shape=[1, 1, 2, 2]), strides=[0, 0])", None),
    ("nn.max_pool2d(ones(shape=[1, 1, 3, 3]), pool_size=[9, 9])", None),
    ("nn.max_pool2d(ones(shape=[1, 1, 3, 3]), pool_size=[0, 0])", None),
    ("topk([1.0], k=5)", None), ('einsum((ones(shape=[2]),), equation="ij->")', None), ('einsum((ones(shape=[2]),), equation="")', None),
    ("range(1000000000000)", None), ("strided_slice(ones(shape=[3]), begin=[0], end=[3], strides=[0])", None),
    ("grad(fn (x) { x > 1.0 })(2.0)", None), ("grad(1)", None), ("grad(fn (x) { (x, x) })(1.0)", None),
    ("(fn (x) { x }) == (fn (x) { x })", "R0610|R0201"),
]




def recursion(s):
    endless = {
        "sum": "def f(x) { 1 + f(x) } f(1)", "list": "def f(x) { 1 :: f(x) } f(1)", "tuple": "def f(x : int32) -> int32 { (f(x), 1).0 } f(1)",
        "mutual": "def f(x) { 1 + g(x) } def g(x) { 1 + f(x) } f(1)", "closures": "def f(x : int32) -> int32 { let g = fn (y) { f(y) + 1 }; g(x) } f(1)",
        "match": "def f(x : int32) -> int32 { match (f(x)) { y => y + 1 } } f(1)", "if": "def f(x : int32) -> bool { if (f(x)) { True } else { False } } f(1)",
        "through ref": "let r = ref (fn (x : int32) { x }); r := fn (x) { (!r)(x) + 1 }; (!r)(1)",
        "in map": "def f(x : int32) -> int32 { length(map(f, x :: Nil)) } f(1)", "string": 'def f(x : int32) -> String { "a" ++ f(x) } f(1)',
        "in grad": "def f(x : float32) -> float32 { x * f(x) } grad(f)(1.0)",
        "of grad": "def f(x : float32) -> float32 { grad(f)(x).0 + x } f(1.0)",
        "tensor": "def f(x) { x + f(x) } f(ones(shape=[100]))",
    }
    for name, text in endless.items():
        s.rejects("endless recursion: " + name, ["--memory=150M", "-e", text], "R0605|R0606")
        s.rejects("endless recursion, --stack: " + name, ["--memory=200M", "--stack=8M", "--jit=off", "-e", text], "R0605|R0606")
    if SLOW == 1:
        s.accepts("ten million calls", ["-e", "def f(n : int32) -> int32 { if (n == 0) { 0 } else { 1 + f(n - 1) } } f(10000000)"],
                  "10000000 : int32\n")
        s.rejects("calls without end, by default", ["-e", "def fact(x) { x * fact(x - 1.0) } fact(0.5)"], "R0605", "the bound is 1024 MB")
    s.rejects("ten million calls in 10 MB", ["--stack=10M", "-e", "def f(n : int32) -> int32 { if (n == 0) { 0 } else { 1 + f(n - 1) } } f(10000000)"],
              "R0605")


def memory(s):
    greedy = {
        "tensor": "ones(shape=[100000000])", "product": "nn.matmul(ones(shape=[10000, 1]), ones(shape=[1, 10000]))",
        "broadcast": "ones(shape=[100000, 1]) + ones(shape=[1, 100000])", "tensors in a list": "def f(l) { f(ones(shape=[100000]) :: l) } f(Nil)",
        "list": "def f(l) { f(1 :: l) } f(Nil)", "string": "def f(s) { f(s ++ s) } f(\"ab\")", "range": "range(100000000)",
        "join": "str.join(\"abc\", map(fn (i) { \"abcdefghijklm\" }, range(100000000)))",
        "closures": "def f(g : fn (int32) -> int32) -> int32 { f(fn (x) { g(x) + 1 }) } f(fn (x) { x })",
        "refs": "def f(r) { f(ref !r :: !r) }", "arange": "arange(0, 1000000000, 1)",
        "one_hot": "one_hot(zeros(shape=[10000], dtype=int32), 1.0, 0.0, depth=100000)", "repeat": "repeat(ones(shape=[1000]), repeats=1000000, axis=0)",
        "tile": "tile(ones(shape=[1000]), reps=[1000000])", "pad": "nn.pad(ones(shape=[2]), 0.0, pad_width=[[0, 1000000000]])",
        "concatenate": "def f(x : Tensor[(?,), float32]) -> Tensor[(?,), float32] { f(concatenate((x, x), axis=0)) } f(ones(shape=[10]))",
        "stack of values": "def f(x : int32) -> List[int32] { concat(f(x), x :: Nil) } f(1)", "uniform": "random.uniform(random.threefry_key(1), 0.0, 1.0, out_shape=[1000000000], out_dtype=float32)",
        "gradient": "grad(fn (x) { sum(foldl(fn (a, i) { a * a }, x, range(100000))) })(ones(shape=[100000]))",
        "jacobian": "jacobian(fn (x) { x * x })(ones(shape=[100000]))", "pad of text": 'str.pad("a", 2000000000)',
        "literal": "[" + ", ".join(["ones(shape=[1000000])"] * 100) + "]", "cumsum": "cumsum(ones(shape=[100000000]), axis=0)",
    }
    del greedy["refs"]
    for name, text in greedy.items():
        for jit in ("on", "off"):
            s.rejects("memory: %s --jit=%s" % (name, jit), ["--memory=64M", "--jit=" + jit, "-e", text], "R0606|R0605")
    big = "1" + " + 1" * 500_000
    s.rejects("memory: reading", ["--memory=64M", "check", s.write("big.rly", big)], "R0606")
    s.rejects("memory: formatting", ["--memory=64M", "fmt", s.path("big.rly")], "R0606")
    if SLOW == 1:  # the sanitizers need terabytes of addresses
        s.rejects("memory: no address space", ["check", s.path("big.rly")], "R0606",
                  "address space is limited to 600 MB", before=limit_of(resource.RLIMIT_AS, 600 << 20))
        for mb in (100, 200, 400, 800, 1600):
            r = s.run(["--jit=off", "-e", "foldl(fn (a, i) { a + i }, 1, range(1000))"], before=limit_of(resource.RLIMIT_AS, mb << 20))
            s.check("memory: %d MB of address space are enough" % mb,
                    None if r.status == 0 and r.out == "499501 : int32\n" else "no value", r)
        for mb in (2, 5, 10, 20, 100):
            r = s.run(["-e", "1 + 1"], before=limit_of(resource.RLIMIT_DATA, mb << 20))
            s.check("memory: %d MB of data segment" % mb, None if r.status == 0 or "data segment is limited" in r.err else "no word of it", r)
        for mb in (6, 8, 16, 24, 32, 48, 64):  # below 5 the kernel cannot map the program itself, and kills it
            r = s.run(["-e", "1 + 1"], before=limit_of(resource.RLIMIT_AS, mb << 20))
            s.check("memory: %d MB of address space" % mb, None if r.status == 0 or "address space is limited" in r.err or
                    "shared libraries" in r.err else "no word of it", r)
    for text in ("1 + 1", "sum(ones(shape=[10]))"):
        s.accepts("memory: little is enough", ["--memory=32M", "-e", text])


SPINS = {
    "loop": "def spin(i : int32) -> int32 { spin(i + 1) } spin(0)",
    "list": "foldl(fn (a, i) { foldl(fn (b, j) { b + j }, a, range(10000)) }, 0, range(100000000))",
    "element-wise": "foldl(fn (a, i) { tanh(a * 1.01 + 0.5) }, ones(shape=[1000000]), range(100000))",
    "matmul": "foldl(fn (a, i) { nn.matmul(a, a) * 0.001 }, ones(shape=[1500, 1500]), range(10000))",
    "one matmul": "nn.matmul(ones(shape=[12000, 12000]), ones(shape=[12000, 12000]))",
    "one element-wise": "sum(" + "tanh(sin(" * 60 + "ones(shape=[3000, 1]) * ones(shape=[1, 10000]) + 0.5" + "))" * 60 + ")",
    "reduction": "foldl(fn (a, i) { a + sum(ones(shape=[10000, 1]) * ones(shape=[1, 10000]) * a) }, 0.0, range(10000))",
    "sort": "foldl(fn (a, i) { sort(a) }, random.uniform(random.threefry_key(1), 0.0, 1.0, out_shape=[3000000], out_dtype=float32).1, range(1000))",
    "conv2d": "nn.conv2d(ones(shape=[64, 64, 200, 200]), ones(shape=[256, 64, 7, 7]))",
    "einsum": 'einsum((ones(shape=[4000, 100, 100]), ones(shape=[100, 100, 4000])), equation="abc,bcd->ad")',
    "gradient": "foldl(fn (a, i) { grad(fn (x) { sum(tanh(x)) })(a).1.0 }, ones(shape=[1000000]), range(100000))",
    "showing": "foldl(fn (a, i) { a + str.length(show(a :: range(1000))) }, 0, range(100000000))",
    "showing at length": 'let s = str.pad("a", 100000); foldl(fn (a, i) { str.length(show(map(fn (k) { s }, range(1000)))) }, 0, range(1000))',
    "strings": 'foldl(fn (a, i) { str.length(str.upper("abcdefgh" ++ str.pad("a", 100000))) + a }, 0, range(100000000))',
}


def interrupts(s):
    """Ctrl-C in a script that computes ends it, with status 1 and a word."""
    def job(name, text, jit):
        s.interrupts("Ctrl-C: %s --jit=%s" % (name, jit), ["--jit=" + jit, "--memory=4G", "-e", text], wait_busy)
    for name, text in SPINS.items():
        job(name, text, "on")
        if name in ("loop", "element-wise", "sort", "one matmul"):
            job(name, text, "off")


class Prompt:
    """The prompt on a pseudo-terminal; what each entry answers."""

    def __init__(self, s, args=()):
        import transcript
        self.t = transcript.Terminal([s.relay] + list(args), 200, PATIENCE)
        self.t.wait_prompt()
        self.n = 0

    def enter(self, text):
        self.n = len(self.t.screen.rows)
        self.t.type(text + "\n")
        self.t.wait_prompt()
        return self.answer()

    def answer(self):
        return "\n".join("".join(r).rstrip() for r in self.t.screen.rows[self.n:-1])


def prompts(s):
    """After each mistake at the prompt, what was defined is there, and the next entry is evaluated."""
    def intact(p, name, said):
        why = None
        if not p.t.open:
            why = "the session ended"
        elif not any(w in said for w in ("error[R", "interrupted")):
            why = "no diagnostic but: " + said[:200]
        else:
            kept, sum_ = p.enter("kept(2)"), p.enter("1 + 1")
            if "43 : int32" not in kept or "2 : int32" not in sum_:
                why = "afterwards: %s; %s; after: %s" % (kept[:300], sum_[:300], said[:300])
        s.check("prompt: " + name, why)

    def job(entries, args=()):
        def run():
            p = Prompt(s, args)
            p.enter("let base = 41")
            p.enter("def kept(x : int32) { base + x }")
            for name, text in entries:
                intact(p, name, p.enter(text))
                if not p.t.open:
                    break
            p.t.send("\004")
            status = p.t.finish()
            s.check("prompt: leaving", None if status == 0 else "status %s" % status)
        return run

    s.later(job([(text, text) for text, _ in MISTAKES if "?" not in text and len(text) < 150 and
                 text not in ("def", "1 +", '"abc', "/* abc")]))
    deep = nested(DEEP if SLOW == 1 else 1000)
    wanted = ["match", "patterns", "tuple types", "lets", "let values", "comments"]
    if SLOW == 1:
        wanted += ["parentheses", "fn"]
    files = ["deep_" + name.replace(" ", "_") for name in wanted]
    for name, path in zip(wanted, files):
        s.write(path, deep[name])
    s.write("binary.rly", bytes(range(256)))
    s.write("endless.rly", "def f(x) { 1 + f(x) }\nf(1)")
    s.write("half.rly", "def kept2() { 1 }\nlet y = 1 / 0;\ndef kept3() { 2 }")
    files += ["binary.rly", "endless.rly", "half.rly", "missing.rly", "."]
    s.later(job([(":load " + f, ":load " + s.path(f)) for f in files], ["--memory=300M"]))
    s.later(job([("memory", "{ let eat = fn (l) { eat(1 :: l) }; eat(Nil) }")], ["--memory=64M"]))
    greedy = ["ones(shape=[100000000])", 'def f(s) { f(s ++ s) } f("ab")', "range(100000000)", "def g(x) { 1 + g(x) } g(1)",
              "def h(l) { h(1 :: l) } h(Nil)", "def kept(x : int32) { base + nope }", "let base = 1 / 0",
              "type T { A(Nope) }", 'let kept : int32 = error("no")', "import nothing;", ":load", ":nope", ":type nope", ":ir nope",
              ":doc nope", ":llvm nope", ":info nope", ":type 1 +", ":ir (", ":time nope", ":load /"]
    s.later(job([(t, t) for t in greedy if not t.startswith(":") or t[1:5] in ("type", "ir n", "ir (", "time", "llvm")],
                ["--memory=64M"]))

    def spins():
        p = Prompt(s, ["--memory=4G"])
        p.enter("let base = 41")
        p.enter("def kept(x : int32) { base + x }")
        for name in ("loop", "element-wise", "one matmul", "list", "sort"):
            p.n = len(p.t.screen.rows)
            p.t.type(SPINS[name] + "\n")
            p.t.wait_running()
            p.t.send("\003")
            p.t.wait_prompt()
            intact(p, "Ctrl-C in " + name, p.answer())
        p.t.send("\004")
        p.t.finish()
    s.later(spins)


def outputs(s):
    """Standard streams that are closed, full or broken."""
    s.write("many.rly", "let _ = map(fn (i) { print(i) }, range(20000)); 1\n")
    many = ["run", "many.rly"]

    def broken(name, args):
        def run():
            read, write = os.pipe()
            p = subprocess.Popen([s.relay] + args, stdout=write, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=s.dir)
            os.close(write)
            os.read(read, 1)
            os.close(read)
            try:
                _, err = p.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                p.kill()
                _, err = p.communicate()
            s.check("| head: " + name, None if p.returncode in (0, 1) and (not err or refused_text(err)) else
                    "status %d, %s" % (p.returncode, err[:300]))
        return run

    def refused_text(err):
        return err.startswith((b"relay: ", b"error["))
    s.later(broken("values", many))
    s.later(broken("endless", ["-e", "def f(i : int32) -> int32 { print(i); f(i + 1) } f(0)"]))
    s.later(broken("help", ["--help"]))
    s.write("long.rly", "\n".join("def f%d(x) { x + %d }" % (i, i) for i in range(5000)))
    s.later(broken("fmt", ["fmt", "long.rly"]))
    s.later(broken("ir", ["ir", "long.rly"]))
    s.later(broken("doc", ["doc", "sum", "map"]))
    for name, args in (("values", many), ("one", ["-e", "1"]), ("help", ["--help"]), ("version", ["--version"]),
                       ("fmt", ["fmt", "long.rly"]), ("ir", ["ir", "long.rly"]), ("doc", ["doc", "sum"]),
                       ("explain", ["explain", "R0001"])):
        def full(name=name, args=args):
            with open("/dev/full", "w") as f:
                r = s.run(args, stdout=f)
            s.check("/dev/full: " + name, None if r.status == 1 and "relay: cannot write" in r.err else "no word of it", r)
        s.later(full)

        def closed(name=name, args=args):
            for fds in ((0,), (1,), (2,), (0, 1, 2)):
                r = s.run(args, before=lambda fds=fds: [os.close(fd) for fd in fds])
                s.check("closed %s: %s" % (fds, name), None if r.status in (0, 1) else "status %s" % r.status, r)
        s.later(closed)

    def full_stderr():
        with open("/dev/full", "w") as f:
            r = s.run(["-e", "nope"], stderr=f)
        s.check("/dev/full as standard error", None if r.status == 1 else "status", r)
    s.later(full_stderr)
    def odd_stdin():
        fd = os.open("/", os.O_RDONLY)
        r = subprocess.run([s.relay], stdin=fd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=PATIENCE)
        os.close(fd)
        s.check("a directory as standard input", None if r.returncode == 1 and b"error[R0501]" in r.stderr else
                "status %d: %s" % (r.returncode, r.stderr[:300]))
    s.later(odd_stdin)

    def file_size():
        with open(s.path("small"), "w") as f:
            r = s.run(many, stdout=f, before=limit_of(resource.RLIMIT_FSIZE, 4096))
        s.check("RLIMIT_FSIZE", None if r.status == 1 and "relay: cannot write" in r.err else "no word of it", r)
    s.later(file_size)

    s.interrupts("SIGTERM", ["-e", SPINS["loop"]], wait_busy, "", -signal.SIGTERM, signal.SIGTERM)


def usage(s):
    for args in (["--nope"], ["--jit"], ["--jit=maybe"], ["--jit="], ["--jit", "maybe"], ["--memory"], ["--memory=x"],
                 ["--memory=-1"], ["--memory=0"], ["--memory=1X"], ["--memory=G"], ["--memory=99999999999999999999"],
                 ["--memory=99999999999G"], ["--memory="], ["--memory=1.5G"], ["--stack=none"], ["--stack=0"], ["--seed"], ["--seed=-1"],
                 ["--seed=x"], ["--seed=99999999999999999999999"], ["--threads=0"], ["--threads=x"], ["--threads=100000"],
                 ["--engine"], ["--engine=native"], ["--engine=nope"], ["--color=red"], ["--color"],
                 ["--diagnostics=long"], ["--no-prelude=1"], ["--time=1"], ["--no-jit-cache=off"], ["-e"], ["-x"], ["-"  "-=1"],
                 ["check"], ["fmt"], ["ir"], ["doc"], ["explain"], ["run"], ["build", "x.rly", "-o"], ["check", "--nope", "x.rly"],
                 ["--input=x", "run", "empty.rly"], ["--input==", "run", "empty.rly"], ["--input"]):
        s.rejects("usage: " + " ".join(args), args, status=2)
    s.rejects("an empty name", [""], "R0501")
    s.rejects("a name of control characters", ["\x1b[31m\n\x07"], "R0501")
    s.rejects("a name that is no text", [b"\xff\xfe".decode("utf-8", "surrogateescape")], "R0501")
    s.rejects("unknown pass", ["ir", s.write("one.rly", "1"), "--pass=nope"])
    s.rejects("input of a missing file", ["run", s.write("main.rly", "def @main(x: Tensor[(2,), float32]) { x }"), "--input", "x=missing.npy"], "R0501")
    s.rejects("no input", ["run", "main.rly", "--input", "y=random"], "R0507")
    s.write("empty.rly", "")
    s.rejects("tiny memory", ["--memory=1", "-e", "range(1000000)"], "R0606|R0605")
    s.accepts("color", ["--color=always", "-e", "1"])


PARTS = (files, no_texts, long_lines, deep_nesting, mistakes, recursion, memory, interrupts, prompts, outputs,
         usage)

if __name__ == "__main__":
    sys.exit(run_parts(__doc__, PARTS, long=(long_lines, deep_nesting, recursion, memory)))
