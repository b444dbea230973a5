#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, each beside a peer in the same run where there is one.

    bench/run.py [--build BUILD] [--only GROUP[,GROUP…]] [--runs N] [--markdown] [--python PYTHON] [--words WORDS]

Groups: start kernel interpret check resnet session memory chains kernels grad engine build. All but `build`,
which compiles the project from clean, run when none is named. `make bench` builds what is needed
(bench/kernels, bench/session) and runs them all.

Runs of Relay and its peer alternate (A B A B …); a figure is the median of the processor time, user
and system, of the whole process, in `engine` and `grad` the difference of the least: a busy machine disturbs them less than the
time by the clock. Where many repetitions took no longer than few, nothing was measured and it says nan. Ratios
are Relay / peer, below 1 is faster; in `kernels` they are peer / Relay, so above 1 is faster; in `grad`
they are what a derivative costs over its function. Below 10 % is noise. Compare ratios of one run, never times of two machines. Peers are used where they are
installed: CPython (this one), ocamlc, OpenBLAS; `engine` also NumPy, PyTorch and ONNX Runtime of the
interpreter that --python names, and `grad` PyTorch. Nothing is required. --words picks rows of `engine` by their names.

A line ends with its target, and MISSED where it is missed; the exit status is then 1.
"""
import argparse
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import chains  # noqa: E402
import engine  # noqa: E402
import grad  # noqa: E402
import ordinary  # noqa: E402
import resnet  # noqa: E402

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PYTHON = [sys.executable, "-I", "-S", "-c"]


def run(command, env=None, status=0):
    """Processor time in seconds, peak memory in bytes, output."""
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
        _, ended, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(ended)
        out.seek(0)
        text = out.read().decode(errors="replace")
    if p.returncode != status:
        sys.exit(f"{' '.join(command)[:200]} ended with {p.returncode}:\n{text[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, text


def seconds(command, runs, env=None):
    return statistics.median(run(command, env)[0] for _ in range(runs))


def alternate(ours, theirs, runs):
    times = [], []
    for _ in range(runs):
        times[0].append(run(ours)[0])
        if theirs:
            times[1].append(run(theirs)[0])
    return statistics.median(times[0]), statistics.median(times[1]) if theirs else None


class Report:
    def __init__(self, markdown):
        self.markdown, self.missed = markdown, 0
        if markdown:
            print("| what | Relay | peer | ratio | target |\n| --- | --- | --- | --- | --- |")

    def row(self, name, ours, peer="", ratio="", target="", ok=True):
        self.missed += not ok
        if not ok:
            target += "   MISSED"
        if self.markdown:
            print(f"| {name} | {ours} | {peer} | {ratio} | {target} |", flush=True)
        else:
            print(f"{name:44} {ours:>16} {peer:>24} {ratio:>7}   {target}".rstrip(), flush=True)

    def time(self, name, ours, peer=None, theirs=None, most=None, ratio=None):
        """Seconds; most: the target in seconds; ratio: the target of ours / theirs."""
        times = theirs is not None
        ok = (most is None or ours <= most) and (ratio is None or not times or ours / theirs <= ratio)
        target = f"at most {most * 1e3:g} ms" if most else f"ratio at most {ratio:g}" if ratio else ""
        self.row(name, f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms {peer}" if times else "",
                 f"{ours / theirs:.2f}" if times else "", target, ok)


class Bench:
    def __init__(self, options):
        self.relay = os.path.join(options.build, "relay")
        self.build, self.runs = options.build, options.runs
        self.python, self.words = options.python, options.words
        self.report = Report(options.markdown)
        self.directory = tempfile.TemporaryDirectory()

    def file(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def run(self, command):
        return run(command, ONE_THREAD)

    def median(self, command, runs):
        return seconds(command, runs, ONE_THREAD)

    def check(self, path):
        return [self.relay, "check", path]

    # ---- from the start of the process to its first answer ----

    def start(self):
        for name, text in (
                ("start, a fold of a map", "foldl(fn (a, b) { a + b }, 0, map(fn (x) { x * x }, range(10)))"),
                ("start, a derivative", "grad(fn (x) { sin(x) })(1.0)")):
            ours, theirs = alternate([self.relay, "--jit=off", "-e", text], PYTHON + ["0"], self.runs * 3)
            self.report.time(name, ours, "CPython, 0", theirs, most=0.020)

    def kernel(self):
        text = "let a = ones(shape=[20000]); tanh(a * a + a) * a"

        def caches(i):
            return dict(os.environ, XDG_CACHE_HOME=os.path.join(self.directory.name, f"cache{i}"))
        times = [run([self.relay, "-e", text], caches(i))[0] for i in range(self.runs)]
        told = run([self.relay, "--time", "-e", text], caches("told"))[2]
        compiled = int(re.search(r"kernels compiled: (\d+)", told).group(1))
        reference = int(re.search(r"operators run by reference: (\d+)", told).group(1))
        assert compiled >= 1 and reference == 0, told
        self.report.time("start, the first compiled kernel", statistics.median(times), most=0.040)
        told = run([self.relay, "--time", "-e", text], caches("told"))[2]
        assert "kernels compiled: 0" in told and "operators run by reference: 0" in told, told
        self.report.time("start, that kernel from disk", seconds([self.relay, "-e", text], self.runs,
                                                                   caches("told")), most=0.040)

    # ---- the interpreter ----

    def interpret(self):
        reduce = "from functools import reduce\n"
        for name, text, python in (
                ("fib(30)",
                 "def fib(n) { if (n < 2) { n } else { fib(n - 1) + fib(n - 2) } }\nfib(30)\n",
                 "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(30))"),
                ("a fold over 300,000 elements", "foldl(fn (a, b) { a + b }, 0, range(300000))\n",
                 reduce + "print(reduce(lambda a, b: a + b, list(range(300000)), 0))"),
                ("a map and a fold over 300,000 elements",
                 "foldl(fn (a, b) { a + b }, 0, map(fn (x) { x * x }, range(300000)))\n",
                 reduce + "print(reduce(lambda a, b: a + b, "
                 "list(map(lambda x: x * x, list(range(300000)))), 0))")):
            path = self.file("program.rly", text)
            ours, theirs = alternate([self.relay, "--jit=off", path], PYTHON + [python], self.runs)
            self.report.time(name, ours, "CPython", theirs, ratio=1)

    # ---- the checker ----

    def check_times(self):
        ours, ml = ordinary.ordinary(10000)
        path = self.file("ordinary.rly", ours)
        peer = ["ocamlc", "-i", self.file("ordinary.ml", ml)] if shutil.which("ocamlc") else None
        ours, theirs = alternate(self.check(path), peer, self.runs)
        self.report.time("10,000 ordinary lines checked", ours, "ocamlc -i", theirs, most=0.5)

    def resnet(self):
        result = "-> Tensor[(1, 1000), float32] {"
        for name, typed in (("ResNet-18 as TVM prints it", True),
                            ("ResNet-18, types of its weights inferred", False)):
            text = resnet.resnet(1, typed)
            known = text if typed else text.replace(") {", f") {result}", 1)
            run(self.check(self.file("known.rly", known)))
            wrong = self.file("wrong.rly", known.replace(result, result.replace("1000", "999")))
            told = run(self.check(wrong), status=1)[2]
            assert "999" in told and "1000" in told, told
            path = self.file("resnet.rly", text)
            self.report.time(name, seconds(self.check(path), self.runs), most=0.030)

    def program(self, name, *arguments):
        path = os.path.join(self.build, "bench", name)
        if not os.path.exists(path):
            sys.exit(f"{path} is not there: `make bench` builds it")
        return run([path] + list(arguments))[2]

    def session(self):
        """bench/session.c prints `what  N ms …`."""
        told = self.program("session", self.file("ordinary.rly", ordinary.ordinary(12000)[0]))
        for line in told.splitlines():
            name, ms, more = re.match(r"(.*?)\s+([\d.]+) ms\s*(.*)", line).groups()
            target = "at most 1 ms" if name.startswith("`:type`") else ""
            self.report.row(name, f"{ms} ms", more, "", target, not target or float(ms) <= 1)

    def slope(self, sizes, costs):
        """The exponent of growth: least squares in logarithms."""
        x, y = [math.log(n) for n in sizes], [math.log(max(c, 1e-9)) for c in costs]
        mx, my = statistics.mean(x), statistics.mean(y)
        return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)

    def memory(self):
        sizes, peaks, times = (10000, 20000, 40000, 80000), [], []
        for n in sizes:
            path = self.file("ordinary.rly", ordinary.ordinary(n)[0])
            taken = [run(self.check(path)) for _ in range(3)]
            times.append(statistics.median(t for t, _, _ in taken))
            peaks.append(max(m for _, m, _ in taken))
        text = ", ".join(f"{m / 1e6:.0f}" for m in peaks) + " MB"
        k = self.slope(sizes, peaks)
        self.report.row("memory at 10, 20, 40, 80 thousand lines", text, f"exponent {k:.2f}", "",
                        "exponent at most 1.1", k <= 1.1)
        k = self.slope(sizes, times)
        self.report.row("time there", ", ".join(f"{t * 1e3:.0f}" for t in times) + " ms",
                        f"exponent {k:.2f}", "", "exponent at most 1.2", k <= 1.2)

    def chains(self):
        sizes = (20000, 80000)
        for kind in chains.KINDS:
            costs = []
            for n, runs in zip(sizes, (3, 1)):
                path = self.file("chain.rly", kind(n))
                costs.append([seconds(self.check(path), runs),
                              seconds([self.relay, "--jit=off", path], runs),
                              seconds([self.relay, "fmt", path], runs)])
            check, whole, fmt = ([c[i] for c in costs] for i in range(3))
            k = max(self.slope(sizes, c) for c in (check, whole, fmt))
            self.report.row(f"80,000 {kind.__name__.replace('_', ' ')}", f"check {check[1] * 1e3:.0f} ms",
                            f"run {whole[1] * 1e3:.0f}, fmt {fmt[1] * 1e3:.0f} ms", "",
                            f"exponent {k:.2f}, at most 1.3", k <= 1.3)

    # ---- compiled kernels: processor time too ----

    def kernels(self):
        told = self.program("kernels")
        for line in told.splitlines():
            m = re.match(r"(.*?)\s+([\d.]+) us\s+([\d.]+ \S+)\s+(?:peer\s+([\d.]+) us\s+ratio\s+([\d.]+))?"
                         r"\s+first\s+[\d.]+ ms\s*(?:at least ([\d.]+))?", line)
            if not m:
                if not self.report.markdown:
                    print(line)
                continue
            name, us, rate, peer, ratio, least = m.groups()
            ok = not least or not ratio or float(ratio) >= float(least)
            self.report.row(name, f"{us} us", f"{peer} us" if peer else "", ratio or "",
                            f"peer / Relay at least {least}" if least else rate, ok)

    def each(self, commands, few, many):
        """What one of the commands' repetitions takes: their last argument says how many there are."""
        taken = [([], []) for _ in commands]
        for _ in range(max(3, self.runs // 3)):
            for command, times in zip(commands, taken):
                for n, of in zip((few, many), times):
                    of.append(run([*command, str(n)], ONE_THREAD)[0])
        # The least, as what disturbs only adds: fresh pages of a virtual machine took half a second in two of three runs.
        costs = [(min(more) - min(less)) / (many - few) for less, more in taken]
        return [cost if cost > 0 else float("nan") for cost in costs]

    def whole(self, path):
        """Seconds and megabytes of a whole process."""
        taken = [self.run([self.relay, "--threads=1", path])[:2] for _ in range(3)]
        return statistics.median(t for t, _ in taken), max(m for _, m in taken) / 1e6

    def gradients(self):
        grad.measure(self)

    def engine(self):
        engine.measure(self)

    def build_time(self):
        source, directory = os.path.dirname(HERE), self.directory.name
        script = f"cd {directory} && {source}/configure -q && make -s -j2"
        user = run(["sh", "-c", script], dict(os.environ, CCACHE_DISABLE="1"))[0]
        self.report.row("built from clean, on two cores", f"{user / 2:.0f} s", "half the processor time",
                        "", "at most 240 s", user / 2 <= 240)


GROUPS = {"start": Bench.start, "kernel": Bench.kernel, "interpret": Bench.interpret,
          "check": Bench.check_times, "resnet": Bench.resnet, "session": Bench.session,
          "memory": Bench.memory, "chains": Bench.chains, "kernels": Bench.kernels, "grad": Bench.gradients,
          "engine": Bench.engine, "build": Bench.build_time}


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    options.add_argument("--only", default=",".join(g for g in GROUPS if g != "build"))
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch and the like")
    options.add_argument("--words", default="", help="rows of `engine` with these words in their names")
    options.add_argument("--markdown", action="store_true", help="print a table for docs/performance.md")
    given = options.parse_args()
    bench = Bench(given)
    for group in given.only.split(","):
        if group not in GROUPS:
            options.error(f"no group {group}")
        GROUPS[group](bench)
    return bench.report.missed > 0


if __name__ == "__main__":
    sys.exit(main())
