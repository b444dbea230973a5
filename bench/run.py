#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, each beside a peer in the same run; medians and ratios, never absolute promises.

    bench/run.py --relay BUILD/relay [--only TEXT] [--runs N]

Runs alternate between Relay and the peer (A B A B …). A line: name, Relay's median, the peer's,
their ratio (Relay / peer, below 1 is faster), and the target where there is one. Below 10 % is noise.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, env=None):
    start = time.perf_counter()
    p = subprocess.run(command, capture_output=True, env=env)
    seconds = time.perf_counter() - start
    if p.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {p.returncode}:\n{p.stderr.decode()}")
    return seconds, p.stdout.decode()


def alternate(relay, peer, runs, env=None):
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(run(relay, env)[0])
        if peer:
            theirs.append(run(peer)[0])
    return statistics.median(ours), statistics.median(theirs) if peer else None


def line(name, ours, theirs, target):
    ms = f"{ours * 1e3:9.2f} ms"
    peer = f"{theirs * 1e3:9.2f} ms   ratio {ours / theirs:6.3f}" if theirs else " " * 28
    print(f"{name:34} {ms}   {peer}   {target}", flush=True)


FIB = "def fib(n) { if (n < 2) { n } else { fib(n - 1) + fib(n - 2) } }\nfib(30)\n"
FOLD = "foldl(fn (a, b) { a + b }, 0, range(300000))\n"
MAP_FOLD = "foldl(fn (a, b) { a + b }, 0, map(fn (x) { x + 1 }, range(300000)))\n"
PY_FIB = "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(30))"
PY_FOLD = "from functools import reduce\nprint(reduce(lambda a, b: a + b, list(range(300000)), 0))"
PY_MAP_FOLD = "from functools import reduce\n" \
              "print(reduce(lambda a, b: a + b, list(map(lambda x: x + 1, list(range(300000)))), 0))"
START = "foldl(fn (a, b) { a + b }, 0, map(fn (x) { x * x }, range(10)))"
START_GRAD = "grad(fn (x) { sin(x) })(1.0)"
KERNEL = "let a = ones(shape=[20000]); tanh(a * a + a) * a"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--relay", required=True)
    ap.add_argument("--only", default="")
    ap.add_argument("--runs", type=int, default=9)
    args = ap.parse_args()
    python = [sys.executable, "-I", "-S", "-c"]

    def wanted(name):
        return args.only in name

    if wanted("start"):
        for name, text in (("start: fold", START), ("start: grad", START_GRAD)):
            ours, theirs = alternate([args.relay, "--jit=off", "-e", text], python + ["0"], args.runs * 3)
            line(name, ours, theirs, "at most 20 ms")
    if wanted("kernel"):
        with tempfile.TemporaryDirectory() as cache:
            env = dict(os.environ, XDG_CACHE_HOME=cache)
            times = []
            for i in range(args.runs):
                fresh = dict(env, XDG_CACHE_HOME=os.path.join(cache, str(i)))
                times.append(run([args.relay, "-e", KERNEL], fresh)[0])
            p = subprocess.run([args.relay, "--time", "-e", KERNEL], capture_output=True, env=dict(
                env, XDG_CACHE_HOME=os.path.join(cache, "checked")))
            told = p.stderr.decode()
            compiled = int(re.search(r"kernels compiled: (\d+)", told).group(1))
            reference = int(re.search(r"operators run by reference: (\d+)", told).group(1))
            assert compiled >= 1 and reference == 0, told
            line("first kernel, compiled", statistics.median(times), None, "at most 40 ms")
            run([args.relay, "-e", KERNEL], env)
            times = [run([args.relay, "-e", KERNEL], env)[0] for _ in range(args.runs)]
            line("first kernel, from disk", statistics.median(times), None, "at most 40 ms")
    for name, text, py in (("fib(30)", FIB, PY_FIB), ("fold over 300,000", FOLD, PY_FOLD),
                           ("map and fold over 300,000", MAP_FOLD, PY_MAP_FOLD)):
        if wanted(name):
            with tempfile.NamedTemporaryFile("w", suffix=".rly") as f:
                f.write(text)
                f.flush()
                ours, theirs = alternate([args.relay, "--jit=off", f.name], python + [py], args.runs)
            line(name, ours, theirs, "ratio at most 1 (CPython)")


if __name__ == "__main__":
    main()
