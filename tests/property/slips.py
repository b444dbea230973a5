# SPDX-License-Identifier: Apache-2.0
"""What people write who come from Python, OCaml, Rust or TVM, and what the messages suggest instead. Each
program's first suggestion, applied by the edits of its JSON, must give just the program beside it, and that must
check; None: nothing is suggested. Run as: slips.py RELAY"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
from process import PATIENCE, SLOW

HELPERS = "def @twice(x) { x + x }\n"  # helpers.rly, beside the programs

SLIPS = [
    ("def f(x: float32) { sin(x }\nf(1.0)\n", "def f(x: float32) { sin(x) }\nf(1.0)\n"),
    ("def f(x: float32) { (x + 1.0 }\nf(1.0)\n", "def f(x: float32) { (x + 1.0) }\nf(1.0)\n"),
    ("def f(x: float32) { x + 1.0\nf(1.0)\n", "def f(x: float32) { x + 1.0 }\nf(1.0)\n"),
    ("def f(x: float32) { if (x > 0.0) { x } else { 1.0 }\ndef g(x) { x }\nf(1.0)\n",
     "def f(x: float32) { if (x > 0.0) { x } else { 1.0 } }\ndef g(x) { x }\nf(1.0)\n"),
    ("def f(x: float32) { sin(x)) }\nf(1.0)\n", "def f(x: float32) { sin(x) }\nf(1.0)\n"),
    ("def f(x: float32) { sin(x) }}\nf(1.0)\n", "def f(x: float32) { sin(x) }\nf(1.0)\n"),
    ("def f(x: float32) {\n  let y = x + 1.0\n  y\n}\nf(1.0)\n",
     "def f(x: float32) {\n  let y = x + 1.0;\n  y\n}\nf(1.0)\n"),
    ("let y = 1.0 y\n", "let y = 1.0; y\n"),
    ("def f(x: float32, y: float32) { x + y }\nf(1.0 2.0)\n",
     "def f(x: float32, y: float32) { x + y }\nf(1.0, 2.0)\n"),
    ("def f(x: int32) {\n  match (x) {\n    0 => 1\n    _ => 2\n  }\n}\n",
     "def f(x: int32) {\n  match (x) {\n    0 => 1,\n    _ => 2\n  }\n}\n"),
    ("def f(x: int32) {\n  match (x) {\n    0: 1,\n    _: 2\n  }\n}\n",
     "def f(x: int32) {\n  match (x) {\n    0 => 1,\n    _ => 2\n  }\n}\n"),
    ("def f(x: int32) { if (x = 1) { 2 } else { 3 } }\n",
     "def f(x: int32) { if (x == 1) { 2 } else { 3 } }\n"),
    ("def f(x: int32) { 2 if x == 1 else 3 }\n", "def f(x: int32) { if (x == 1) { 2 } else { 3 } }\n"),
    ("def f(x: int32) { x == 1 ? 2 : 3 }\n", "def f(x: int32) { if (x == 1) { 2 } else { 3 } }\n"),
    ("def f(x: int32) { if (x == 1) { 2 } elif (x == 2) { 3 } else { 4 } }\n",
     "def f(x: int32) { if (x == 1) { 2 } else if (x == 2) { 3 } else { 4 } }\n"),
    ("def f(x: int32) { y := x + 1; y }\n", "def f(x: int32) { let y = x + 1; y }\n"),
    ("def f(x: int32) { y = x + 1; y }\n", "def f(x: int32) { let y = x + 1; y }\n"),
    ("y = 3\ny\n", "let y = 3\ny\n"),
    ("let r = ref(0);\nr = 1\n", "let r = ref(0);\nr := 1\n"),
    ("let f = fun (x) { x + 1 };\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = fun x -> x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = lambda x: x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = function (x) { x + 1 };\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("function f(x) { x + 1 }\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("fn f(x) { x + 1 }\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("let f = (x) => x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = |x| x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let b = true;\nif (b) { 1 } else { 2 }\n", "let b = True;\nif (b) { 1 } else { 2 }\n"),
    ("let b = false;\nif (b) { 1 } else { 2 }\n", "let b = False;\nif (b) { 1 } else { 2 }\n"),
    ("let b = none;\n", "let b = None;\n"),
    ("match (list[1]) { nil => 1, x :: _ => x }\n", None),
    ("def f(a: bool, b: bool) { a and b }\n", "def f(a: bool, b: bool) { a && b }\n"),
    ("def f(a: bool, b: bool) { a or b }\n", "def f(a: bool, b: bool) { a || b }\n"),
    ("def f(a: bool) { not a }\n", "def f(a: bool) { !a }\n"),
    ("def f(a: bool, b: bool) { a & b }\n", "def f(a: bool, b: bool) { a && b }\n"),
    ("def f(a: bool, b: bool) { a | b }\n", "def f(a: bool, b: bool) { a || b }\n"),
    ("def f(a: bool) { ~a }\n", "def f(a: bool) { !a }\n"),
    ("def f(a: int32) { a % 2 }\n", "def f(a: int32) { mod(a, 2) }\n"),
    ("def f(a: int32) { a %2 }\n", "def f(a: int32) { mod(a, 2) }\n"),
    ("def f(a: int32) { a // 2 }\n", "def f(a: int32) { floor_divide(a, 2) }\n"),
    ("print('hello')\n", "print(\"hello\")\n"),
    ("# a comment\nlet x = 1;\nx\n", "// a comment\nlet x = 1;\nx\n"),
    ("let x = 1; # one\nx\n", "let x = 1; // one\nx\n"),
    ("(* a comment *)\nlet x = 1;\nx\n", "/* a comment */\nlet x = 1;\nx\n"),
    ("-- a comment\nlet x = 1;\nx\n", "// a comment\nlet x = 1;\nx\n"),
    ("def f(x: float32) { x ^ 2.0 }\n", "def f(x: float32) { x ** 2.0 }\n"),
    ("def f(x: Tensor[(2, 2), float32]) { x @ x }\n", "def f(x: Tensor[(2, 2), float32]) { x @@ x }\n"),
    ("let x = zeros(shape=[2, 3]);\nx.shape\n", "let x = zeros(shape=[2, 3]);\nshape_of(x)\n"),
    ("let x = zeros(shape=[2, 3]);\nx.dtype\n", None),
    ("let x = zeros(shape=[2, 3]);\nx.T\n", "let x = zeros(shape=[2, 3]);\ntranspose(x)\n"),
    ("let x = zeros(shape=[2, 3]);\nx.sum()\n", "let x = zeros(shape=[2, 3]);\nsum(x)\n"),
    ("let x = zeros(shape=[2, 3]);\nx.reshape(newshape=[6])\n",
     "let x = zeros(shape=[2, 3]);\nreshape(x, newshape=[6])\n"),
    ("let x = np.zeros(shape=[2, 3]);\nx\n", "let x = zeros(shape=[2, 3]);\nx\n"),
    ("len(list[1, 2])\n", "length(list[1, 2])\n"),
    ("def f(x) = x + 1\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("def f(x) = x + 1;\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("def f(x):\n    return x + 1\nf(1)\n", "def f(x) {\n    x + 1\n}\nf(1)\n"),
    ("def f(x): x + 1\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("def f(x) { return x + 1 }\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("def f(x) { return x + 1; }\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("def f(x) { x + 1; }\nf(1)\n", None),
    ("let rec f = fn (x) { x };\nf(1)\n", "let f = fn (x) { x };\nf(1)\n"),
    ("let f x = x + 1;\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("let f(x) = x + 1;\nf(1)\n", "def f(x) { x + 1 }\nf(1)\n"),
    ("var x = 1;\nx\n", "let x = 1;\nx\n"),
    ("const x = 1;\nx\n", "let x = 1;\nx\n"),
    ("let mut x = 1;\nx\n", "let x = 1;\nx\n"),
    ("val x = 1\nx\n", "let x = 1\nx\n"),
    ("def f(x: int32) { match x with | 0 -> 1 | _ -> 2 }\n",
     "def f(x: int32) { match x { | 0 -> 1 | _ -> 2 } }\n"),
    ("type T = A | B(int32)\nA\n", "type T { A, B(int32) }\nA\n"),
    ("type T = A | B of int32\nA\n", "type T { A, B(int32) }\nA\n"),
    ("data T = A | B\n", "type T { A, B }\n"),
    ("type P { P { x: float32, y: float32 } }\nlet p = P { x = 1.0, y = 2.0 };\np.x\n",
     "type P { P { x: float32, y: float32 } }\nlet p = P { x: 1.0, y: 2.0 };\np.x\n"),
    ("def f(x: Tensor[2, 3]) { x }\n", "def f(x: Tensor[(2, 3), float32]) { x }\n"),
    ("def f(x: Tensor[(2, 3)]) { x }\n", "def f(x: Tensor[(2, 3), float32]) { x }\n"),
    ("def f(x: Tensor[[2, 3], float32]) { x }\n", "def f(x: Tensor[(2, 3), float32]) { x }\n"),
    ("def f(x: Tensor<(2, 3), float32>) { x }\n", "def f(x: Tensor[(2, 3), float32]) { x }\n"),
    ("def f(x: float) { x }\n", "def f(x: float32) { x }\n"),
    ("def f(x: int) { x }\n", "def f(x: int32) { x }\n"),
    ("def f(x: string) { x }\n", "def f(x: String) { x }\n"),
    ("def f(x: str) { x }\n", "def f(x: String) { x }\n"),
    ("def f(x: Bool) { x }\n", "def f(x: bool) { x }\n"),
    ("def f(x: float32): float32 { x }\n", "def f(x: float32) -> float32 { x }\n"),
    ("def f(x: int32) { x <> 1 }\n", "def f(x: int32) { x != 1 }\n"),
    ("def f(x: int32) { x =/= 1 }\n", "def f(x: int32) { x != 1 }\n"),
    ("def f(x: int32) { x === 1 }\n", "def f(x: int32) { x == 1 }\n"),
    ("let r = ref(0);\nr += 1\n", "let r = ref(0);\nr := !r + 1\n"),
    ("let r = ref(0);\nr++\n", "let r = ref(0);\nr := !r + 1\n"),
    ("let r = ref(0);\n*r\n", "let r = ref(0);\n!r\n"),
    ("def f(x: float32) { x +. 1.0 }\n", "def f(x: float32) { x + 1.0 }\n"),
    ("let a = \"x\" ^ \"y\";\na\n", "let a = \"x\" ++ \"y\";\na\n"),
    ("def f(n: int32) { for i in range(n) { print(i) } }\n", None),
    ("def f(n: int32) { while (n > 0) { print(n) } }\n", None),
    ("from nn import Linear\n", "import nn (Linear)\n"),
    ("import nn.Linear;\n", "import nn (Linear);\n"),
    ("#include \"nn.rly\"\n", "import \"nn.rly\";\n"),
    ("open nn;\n1\n", "import nn;\n1\n"),
    ("import nm;\n1\n", "import nn;\n1\n"),
    ("let xs = [1, 2, 3];\nlength(xs)\n", "let xs = list[1, 2, 3];\nlength(xs)\n"),
    ("[x + 1 for x in list[1, 2]]\n", "map(fn (x) { x + 1 }, list[1, 2])\n"),
    ("1 :: [2]\n", "1 :: list[2]\n"),
    ("let x = 1;\nprint(f\"{x}\")\n", "let x = 1;\nprint(show(x))\n"),
    ("let x = 1,\nx\n", "let x = 1;\nx\n"),
    ("def f(x, y) { x + y }\nf(1,, 2)\n", "def f(x, y) { x + y }\nf(1, 2)\n"),
    ("def f(x) { x }\nf(x: 1)\n", "def f(x) { x }\nf(x=1)\n"),
    ("zeros(shape: [2])\n", "zeros(shape=[2])\n"),
    ("zeros([2])\n", "zeros(shape=[2])\n"),
    ("print(\"hello)\n", "print(\"hello\")\n"),
    ("list[1] | length\n", "list[1] |> length\n"),
    ("def f(x) { x, }\n", "def f(x) { x }\n"),
    ("let x = [1.0, 2.0;\nx\n", "let x = [1.0, 2.0];\nx\n"),
    ("def f(x: int32) { match (x) { 0 = > 1, _ => 2 } }\n",
     "def f(x: int32) { match (x) { 0 => 1, _ => 2 } }\n"),
    ("let x <- 1;\nx\n", "let x = 1;\nx\n"),
    ("let f = fn (x) => x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = fn (x) -> x + 1;\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("let f = fn x { x + 1 };\nf(1)\n", "let f = fn (x) { x + 1 };\nf(1)\n"),
    ("def f(x: int32) { if (x == 1) 2 else 3 }\n", "def f(x: int32) { if (x == 1) { 2 } else 3 }\n"),
    ("def f(x: int32) { x << 2 }\n", None),
    ("print(“hello”)\n", "print(\"hello\")\n"),
    ("def f(x: int32) { match (x) { 0 ⇒ 1, _ => 2 } }\n",
     "def f(x: int32) { match (x) { 0 => 1, _ => 2 } }\n"),
    ("def f(x: int32) { x =< 1 }\n", "def f(x: int32) { x <= 1 }\n"),
    ("class Net { }\n", "type Net { }\n"),
    ("struct P { x: float32 }\n", "type P { P { x: float32 } }\n"),
    ("enum T { A, B }\nA\n", "type T { A, B }\nA\n"),
    ("def f(x) { x }\nlet y = f 1;\ny\n", "def f(x) { x }\nlet y = f(1);\ny\n"),
    ("print 1\n", "print(1)\n"),
    ("def f(x) begin x end\n", None),
    ("sum(ones(shape=[2, 3]), 1)\n", "sum(ones(shape=[2, 3]), axis=1)\n"),
    ("let x = zeros(shape=[2, 3]);\nx.sum(axis=0)\n", "let x = zeros(shape=[2, 3]);\nsum(x, axis=0)\n"),
    ("def f(x) { softmax(x) }\n", "def f(x) { nn.softmax(x) }\n"),
    ("math.sqrt(2.0)\n", "sqrt(2.0)\n"),
    ("let x = np.linalg.sqrt([1.0]);\nx\n", "let x = sqrt([1.0]);\nx\n"),
    ("\"a\" + \"b\"\n", "\"a\" ++ \"b\"\n"),
    ("str(1)\n", "show(1)\n"),
    ("int(1.5)\n", "(int32) 1.5\n"),
    ("int(1.5 + 2.0)\n", "(int32) (1.5 + 2.0)\n"),
    ("torch.relu([1.0])\n", "nn.relu([1.0])\n"),
    ("def f(xs) { length(xs) }\nf([1, 2])\n", "def f(xs) { length(xs) }\nf(list[1, 2])\n"),
    ("def f(x):\n    y = x + 1\n    return y\nf(1)\n", "def f(x) {\n    let y = x + 1;\n    y\n}\nf(1)\n"),
    ("def f(a, y) { total := a; total + y }\n", "def f(a, y) { let total = a; total + y }\n"),
    ("def f(a: bool, b: bool) { a and b }\ndef g(a: bool, b: bool) { b and a }\n",
     "def f(a: bool, b: bool) { a && b }\ndef g(a: bool, b: bool) { b && a }\n"),
    ("# one\nlet x = 1; # two\nx\n", "// one\nlet x = 1; // two\nx\n"),
    ("let f = lambda x, y: x + y;\nf(1, 2)\n", "let f = fn (x, y) { x + y };\nf(1, 2)\n"),
    ("let add x y = x + y;\nadd(1, 2)\n", "def add(x, y) { x + y }\nadd(1, 2)\n"),
    ("def f(x: Tensor[(2, 3), float32]) { (x + 1.0).sum() }\n",
     "def f(x: Tensor[(2, 3), float32]) { sum(x + 1.0) }\n"),
    ("import nnn;\n1\n", "import nn;\n1\n"),
    ("import helper;\nhelpers.twice(1)\n", "import helpers;\nhelpers.twice(1)\n"),
    ("import \"helper.rly\";\ntwice(1)\n", "import \"helpers.rly\";\ntwice(1)\n"),
    ("import nn (Linera);\n1\n", "import nn (Linear);\n1\n"),
    ("import optm;\n1 + (2, 3)\n", "import optim;\n1 + (2, 3)\n"),
    ("import zzzzz;\n1\n", None),
    ("def f(x) { x $ ? ? }\n", None),
    ("def f(a: bool) { not a }\nlet g = lambda x: x;\n", "def f(a: bool) { !a }\nlet g = fn (x) { x };\n"),
    ("def f(x) { sin(x }\nf(nothing_of_the_kind)\n", None),
    ("def f(x: float32) { max(sin(cos(x }\n", None),
    ("def f(x: int32):\n    return 1 if x > 0 else 2\nf(3)\n",
     "def f(x: int32) {\n    if (x > 0) { 1 } else { 2 }\n}\nf(3)\n"),
    ("def f(x: int32):\n    if x > 0:\n        return 1\n    else:\n        return 2\nf(3)\n",
     "def f(x: int32) {\n    if x > 0 {\n        1\n    }\n    else {\n        2\n    }\n}\nf(3)\n"),
    ("def loss(w, x, y):\n    p = x @ w\n    return mean((p - y) ^ 2)\n",
     "def loss(w, x, y) {\n    let p = x @@ w;\n    mean((p - y) ** 2)\n}\n"),
    ("let rec fact n = if n = 0 then 1 else n * fact (n - 1);\nfact(3)\n",
     "def fact(n) { if n == 0 then 1 else n * fact (n - 1) }\nfact(3)\n"),
]


def check(relay, folder, number, text):
    name = "slip_%d.rly" % number
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)
    p = subprocess.run([relay, "--diagnostics=json", "check", name], cwd=folder, capture_output=True, timeout=PATIENCE * SLOW)
    out = (p.stdout + p.stderr).decode()
    return [json.loads(line) for line in out.split("\n") if line.startswith("{")], p.returncode


def apply(text, edits):
    data = text.encode()
    for e in sorted(edits, key=lambda e: -e["begin"]):
        data = data[:e["begin"]] + e["text"].encode() + data[e["end"]:]
    return data.decode()


def judge(relay, folder, number, wrong, right):
    """What is not as it should be, or None."""
    found, _ = check(relay, folder, 2 * number, wrong)
    fixes = [f for d in found for f in d["suggestions"]]
    if right is None:
        return "suggests %r" % fixes[0]["message"] if fixes else None
    if not fixes:
        return "suggests nothing"
    text = apply(wrong, fixes[0]["edits"])
    if text != right:
        return "suggests\n%s" % text
    found, status = check(relay, folder, 2 * number + 1, text)
    others = [d for d in found if d["severity"] == "error"]
    if len(fixes[0]["edits"]) and (status or others) and wrong not in OTHER_MISTAKES:
        return "what it suggests does not check"
    return None


# The suggestion mends one of two mistakes.
OTHER_MISTAKES = {"import optm;\n1 + (2, 3)\n"}


def main():
    relay = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "helpers.rly"), "w") as f:
            f.write(HELPERS)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(judge, relay, folder, i, w, r) for i, (w, r) in enumerate(SLIPS)]
    failed = 0
    for (wrong, _), job in zip(SLIPS, jobs):
        if job.result():
            failed += 1
            print("FAILED %s\n    %s" % (wrong, job.result()))
    print("%d passed, %d failed, 0 skipped" % (len(SLIPS) - failed, failed))


if __name__ == "__main__":
    main()
