#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes each allocation of twelve programs fail in turn: all in `make check-alloc`, a share in `make check`.

    allocations.py RELAY [--cc=CC] [--all] [--share=F] [--seed=N] [PART-OF-NAME ...]

As SQLite and Lua test it: the nth `malloc`, `mmap` or allocation of the collector fails, alone or with all
after it, for n = 1, 2, 3 …: first each, then in growing steps. A run ends with the right output and status
0, or with status 1, a message, and no output but a beginning of the right one; never by a signal, never
not at all. Without --all a share of the runs is drawn, by the seed. Sanitizers bring an allocator of their
own, so nothing is tested under them.

The last line is `N passed, N failed, N skipped`.
"""
import concurrent.futures
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import share
from process import PATIENCE

RUNS = 600  # of which a share is drawn
DENSE, GROWTH = 24, 1.22
KINDS = ("malloc", "mmap", "gc")
LIBC = b"cannot allocate memory for thread-local data"  # the C library's own end, of LLVM's thread-local data

ADT = """type Tree[A] { Leaf, Node(Tree[A], A, Tree[A]) }
def insert(t : Tree[int32], x : int32) -> Tree[int32] {
  match (t) { Leaf => Node(Leaf, x, Leaf), Node(l, y, r) => if (x < y) { Node(insert(l, x), y, r) } else { Node(l, y, insert(r, x)) } }
}
def total(t : Tree[int32]) -> int32 { match (t) { Leaf => 0, Node(l, x, r) => total(l) + x + total(r) } }
let t = foldl(fn (t, i) { insert(t, mod(i * 7919, 1009)) }, Leaf, range(300));
total(t)
t
"""
GRAD = """type Line { Line { w: float32, b: float32 } }
let xs = [0.0, 0.25, 0.5, 0.75, 1.0];
let ys = 3 * xs + 1;
def loss(p: Line) { mean((p.w * xs + p.b - ys) ** 2) }
def step(p: Line) -> Line { let g = grad(loss)(p).1.0; Line { w: p.w - 0.5 * g.w, b: p.b - 0.5 * g.b } }
loop(5, step, Line { w: 0.0, b: 0.0 })
grad(fn (x) { sum(nn.relu(x @@ x)) })([[1.0, -2.0], [3.0, 4.0]])
"""
FILES = """let x = reshape(arange(60000), newshape=[200, 300]);
save(x, "x.npy");
save((x, [1.0, 2.0]), "p.npz");
write_text(str.join(",", map(fn (i) { show(i) }, range(2000))), "t.txt");
let y : Tensor[(?, ?), int32] = load("x.npy");
let p : (Tensor[(?, ?), int32], Tensor[(?,), float32]) = load("p.npz");
(sum(y), sum(p.0), p.1, str.length(read_text("t.txt")))
"""
KERNELS = """let a = ones(shape=[300, 200]) * 0.5;
let b = ones(shape=[200, 100]);
sum(tanh(a @@ b) + 1.0)
sort(cumsum(ones(shape=[5000]), axis=0))
sum(nn.conv2d(ones(shape=[1, 2, 20, 20]), ones(shape=[3, 2, 3, 3])))
max(exp(reshape(arange(20000), newshape=[20000]) |> fn (x) { (float32) x * 0.0001 }))
"""
# name: (files, arguments, what is typed at the prompt or None)
PROGRAMS = {
    "scalars": ({"p.rly": "def fib(n : int32) -> int32 { if (n < 2) { n } else { fib(n - 1) + fib(n - 2) } }\nfib(15)\n1.0 / 3.0\n"},
                ["--jit=off", "p.rly"], None),
    "tensors": ({"p.rly": KERNELS}, ["--jit=off", "p.rly"], None),
    "kernels": ({"p.rly": KERNELS}, ["--no-jit-cache", "--threads=2", "p.rly"], None),
    "cache": ({"p.rly": "sum(ones(shape=[100000]) * 2.0)\n"}, ["p.rly"], None),
    "gradients": ({"p.rly": GRAD}, ["p.rly"], None),
    "data": ({"p.rly": ADT}, ["p.rly"], None),
    "reference": ({"p.rly": GRAD + ADT}, ["--jit=off", "--engine=reference", "p.rly"], None),
    "strings": ({"p.rly": 'let s = str.join(" ", map(fn (i) { str.upper("ab" ++ show(i)) }, range(500)));\n'
                          'str.length(str.replace(s, "AB", "cd"))\nlist.length(str.split(s, " "))\nstr.pad("a", 50)\n'}, ["p.rly"], None),
    "files": ({"p.rly": FILES}, ["p.rly"], None),
    "prompt": ({}, ["--jit=off"], "let x = [1.0, 2.0]\ndef f(y) { y * x }\nf(2.0)\nf([1.0, 2.0, 3.0])\n:type f\nmap(f, list[1.0])\n"),
    "mistakes": ({"p.rly": "def f(x) { x + nope }\nlet t = [1.0, 2.0] + [1.0, 2.0, 3.0];\nmatch (Some(1)) { None => 2 }\nf(True, 1\n",
                  "q.rly": "def g(xs) { map(fn (x) { x.w * 2 }, ys) }\nlet z = sum(ones(shape=[2, 3]) @@ ones(shape=[2, 3]));\n1 + \"a\"\n"},
                 ["check", "p.rly", "q.rly"], None),
    "modules": ({"p.rly": 'import nn;\nimport "m.rly";\nnn.relu([-1.0, twice(2.0)])\n', "m.rly": "import optim;\ndef twice(x) { x * 2 }\n"},
                ["p.rly"], None),
}


class Suite:
    def __init__(self, relay, cc):
        self.relay = os.path.abspath(relay)
        self.dir = tempfile.mkdtemp(prefix="relay-alloc-")
        self.library = os.path.join(self.dir, "fail.so")
        subprocess.run(cc.split() + ["-O1", "-shared", "-fPIC", os.path.join(HERE, "allocations.c"), "-o", self.library, "-ldl"],
                       check=True)
        self.passed = self.failed = 0
        self.expected = {}

    def run(self, name, kind=None, at=0, on=False):
        """(status, standard output, standard error, allocations counted)"""
        files, args, typed = PROGRAMS[name]
        folder = tempfile.mkdtemp(dir=self.dir)
        for file, text in files.items():
            with open(os.path.join(folder, file), "w") as f:
                f.write(text)
        count = os.path.join(folder, "count")
        env = dict(os.environ, XDG_CACHE_HOME=os.path.join(self.dir, "cache" if at else folder), HOME=folder, TERM="dumb",
                   LD_PRELOAD=self.library, RLY_FAIL_AT=str(at), RLY_FAIL_COUNT=count, RLY_FAIL=kind or "none", LC_ALL="C.UTF-8")
        env.pop("RLY_FAIL_ON", None)
        if on:
            env["RLY_FAIL_ON"] = "1"
        if name == "cache":  # its first run compiles
            env["XDG_CACHE_HOME"] = folder
        try:
            if typed is None:
                p = subprocess.run([self.relay] + args, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                   timeout=PATIENCE)
                result = p.returncode, p.stdout, p.stderr
            else:
                result = self.type_in([self.relay] + args, folder, env, typed)
        except subprocess.TimeoutExpired:
            result = None, b"", b""
        counted = 0
        if os.path.exists(count):
            with open(count) as f:
                counted = int(f.read() or 0)
        shutil.rmtree(folder, ignore_errors=True)
        return result + (counted,)

    def type_in(self, command, folder, env, typed):
        """All entries at once, on a terminal; what it writes there counts as standard error."""
        ours, theirs = pty.openpty()
        p = subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        os.write(ours, typed.encode() + b"\004")
        seen = []

        def read():
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:
                    return
                if not part:
                    return
                seen.append(part)
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            done = reader.submit(read)
            try:
                p.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                raise
            finally:
                done.result()
                os.close(ours)
        return p.returncode, b"", b"".join(seen)

    def check(self, name, kind, at, on):
        status, out, err, _ = self.run(name, kind, at, on)
        expected_status, expected = self.expected[name]
        why = None
        if status is None:
            why = "no end"
        elif status < 0:
            why = "death by %s" % signal.Signals(-status).name
        elif status == 127 and LIBC in err:
            pass
        elif status not in (0, 1):
            why = "status %d" % status
        elif status == 1 and not err.strip():
            why = "status 1 without a word"
        elif status == 0 and (expected_status != 0 or out != expected):
            why = "status 0 and another output"
        elif not (PROGRAMS[name][2] or out == expected or expected.startswith(out.rstrip(b"\n"))):
            why = "an output that is no beginning of the right one"
        if why:
            self.failed += 1
            print("FAILED %s: %s %d%s\n    %s\n    %s" % (name, kind, at, " and all after" if on else "", why,
                  (out[-200:] + err[-600:]).decode("utf-8", "replace").replace("\n", "\n    ")), flush=True)
        else:
            self.passed += 1

    def points(self, name, rng):
        for kind in KINDS:
            status, out, err, total = self.run(name, kind)
            if b"ASan runtime" in err:
                print("0 passed, 0 failed, 1 skipped")
                raise SystemExit(0)
            if status is None or status < 0:
                raise SystemExit("%s does not run: %s %s" % (name, status, err.decode("utf-8", "replace")))
            self.expected[name] = status, out
            n = 1.0
            while n <= total:
                for on in (False, True):
                    yield name, kind, int(n), on
                n = n + 1 if n < DENSE else n * GROWTH * rng.uniform(0.9, 1.1)


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"), help="the compiler")
    parser.add_argument("--all", action="store_true", help="every run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("words", nargs="*", metavar="PART-OF-NAME")
    options = parser.parse_args()
    words, rng = options.words, random.Random(options.seed)
    s = Suite(options.relay, options.cc)
    try:
        points = [p for name in PROGRAMS if not words or any(w in name for w in words) for p in s.points(name, rng)]
        if not options.all:
            points = rng.sample(points, min(share.count(options, RUNS), len(points)))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(s.check, *p) for p in points]:
                done.result()
    finally:
        shutil.rmtree(s.dir, ignore_errors=True)
    print("%d passed, %d failed, 0 skipped" % (s.passed, s.failed))
    return 1 if s.failed else 0


if __name__ == "__main__":
    sys.exit(main())
