#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One table of GradBench's evaluations: milliseconds of the value and of the derivative, and their ratio, on one thread;
beside them both in PyTorch and in JAX, where this Python has them and the evaluation is written for them (torch_peers.py,
jax_peers.py), and in C by hand (bench/peers/gradbench.c, jacobians.c). JAX compiles what it measures, and is warm.

    bench/gradbench/run.py [--relay=build/relay] [--seconds=1] [--limit=60] [--only=gmm,lse] [--workload=2_5]
                           [--markdown]
    bench/gradbench/run.py --check [--only=gmm,lse]      # the peers on small inputs beside reference.py

The programs are asked through gradbench.rly, as GradBench itself asks them. A cell that takes longer than the limit is
left open. A cell is of the times that the program tells of its evaluations, which fill --seconds: the median of five means, so
that the collector counts and a stretch of other work does not. Before them others fill a second: code is made then, and the
system gives memory, neither of which is measured. The machine should be idle.
"""
import argparse
import array
import json
import os
import selectors
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import inputs


class Tool:
    """The program that answers, one line a message."""

    def __init__(self, relay):
        self.process = subprocess.Popen([relay, "--threads", "1", os.path.join(HERE, "gradbench.rly")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.process.stdout, selectors.EVENT_READ)

    def ask(self, message, limit):
        """The answer, or None when it did not come in time; then the program is gone."""
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()
        if self.ready.select(limit):
            line = self.process.stdout.readline()
            if line:
                return json.loads(line)
        self.end()
        return None

    def end(self):
        self.process.kill()
        self.process.wait()


def median_of_means(times):
    n, parts = len(times), min(5, len(times))
    return statistics.median(statistics.fmean(times[i * n // parts:(i + 1) * n // parts]) for i in range(parts))


def measure(relay, module, function, x, seconds, limit):
    """Milliseconds, or None."""
    tool = Tool(relay)
    tool.ask({"id": 0, "kind": "start"}, limit)

    def run(runs, at_least=0.0):
        """The seconds of each evaluation, or None."""
        more = {"min_runs": runs, "min_seconds": at_least} if isinstance(x, dict) else {}
        answer = tool.ask({"id": 1, "kind": "evaluate", "module": module, "function": function,
                           "input": dict(x, **more) if more else x}, limit)
        return [t["nanoseconds"] * 1e-9 for t in answer["timings"]] if answer and answer["success"] else None

    times = run(1, 1.0)
    if times and isinstance(x, dict):
        times = run(max(3, min(10000, int(seconds / statistics.median(times)))))
    elif times:  # a message that is a number asks for one evaluation
        times = [t for _ in range(200) for t in run(1)]
    tool.end()
    return median_of_means(times) * 1e3 if times else None


def milliseconds(run, seconds):
    times, spent = [], 0.0
    while spent < seconds or len(times) < 2:
        begun = time.process_time()
        run()
        times.append(time.process_time() - begun)
        spent += times[-1]
    return statistics.median(times[1:]) * 1e3


def torch_programs():
    """Evaluation -> what PyTorch runs of it, on one thread; {} where this Python does not have it."""
    try:
        import torch
        import torch_peers
    except ImportError:
        return {}
    torch.set_num_threads(1)
    return torch_peers.PEERS


def jax_programs():
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        import jax_peers
    except ImportError:
        return {}
    return jax_peers.PEERS


def measure_peer(peers, module, x, seconds):
    """Milliseconds of the value and of the derivative, or None for each."""
    if module not in peers:
        return [None, None]
    return [milliseconds(run, seconds) for run in peers[module](x)]


def numbers(x):
    """What an evaluation gives, in PyTorch, JAX or Python, as a flat list of numbers."""
    if isinstance(x, dict):
        x = list(x.values())
    elif hasattr(x, "tolist"):
        x = x.tolist()
    return [n for part in x for n in numbers(part)] if isinstance(x, (list, tuple)) else [float(x)]


def wanted(module, function, x):
    """What reference.py gives, of what the peers give."""
    import reference
    want = getattr(reference, module + "_" + function)(x)
    if (module, function) == ("ba", "objective"):
        return [*want["reproj_error"]["elements"], want["w_err"]["element"]]
    return numbers(want)[-1:] if (module, function) == ("ode", "primal") else numbers(want)


def given(module, function, x, result):
    """What a peer gives, without what reference.py leaves out of ba, where all observations are alike."""
    if module != "ba":
        return numbers(result)
    if function == "objective":
        return [*numbers(result[0][0]), float(result[1][0])]
    return [n for part in result for n in (numbers(part)[:30] + numbers(part)[-1:])]


def ht_by_hand(x):
    data, model = x["data"], x["data"]["model"]
    sizes = (len(data["correspondences"]), len(model["base_positions"]), len(model["parents"]))
    names = ("parents", "base_relatives", "inverse_base_absolutes", "base_positions", "weights", "triangles")
    return sizes, [x["theta"], [model["is_mirrored"]], *(model[name] for name in names), data["correspondences"],
                   data["points"], x["us"]]


# evaluation -> the program by hand, and what of its input that takes as sizes, and as numbers
BY_HAND = {"gmm": ("gradbench", ("d", "k", "n"), ("alpha", "mu", "q", "l", "x")), "lse": ("gradbench", (), ("x",)),
           "llsq": ("gradbench", ("n",), ("x",)), "ode": ("gradbench", ("s",), ("x",)),
           "det": ("gradbench", ("ell",), ("A",)), "ba": ("jacobians", ("n", "m", "p"), ("cam", "x", "w", "feat")),
           "ht": ("jacobians", ht_by_hand)}


def flat(x):
    return [e for part in x for e in flat(part)] if isinstance(x, list) else [float(x)]


class ByHand:
    """bench/peers/gradbench.c and jacobians.c, compiled once."""

    def __init__(self, folder):
        self.folder = folder
        bench = os.path.dirname(HERE)
        for name in ("gradbench", "jacobians"):
            subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-I", os.path.dirname(bench),
                            os.path.join(bench, "peers", name + ".c"), "-o", os.path.join(folder, name), "-lm"], check=True)

    def run(self, module, x, seconds, limit):
        """The value, the sum of the absolute derivative, and the milliseconds of both."""
        name, sizes, *numbers = BY_HAND[module]
        if numbers:
            sizes, numbers = [x[size] for size in sizes], [x[n] for n in numbers[0]]
        else:
            sizes, numbers = sizes(x)
        told = subprocess.run([os.path.join(self.folder, name), str(seconds), module, *map(str, sizes)], check=True,
                              input=array.array("d", flat(numbers)).tobytes(), capture_output=True, timeout=2 * limit).stdout
        return [float(t) for t in told.split()]

    def measure(self, module, x, seconds, limit):
        """Milliseconds of the value and of the derivative, or None for each."""
        if module not in BY_HAND:
            return [None, None]
        try:
            return self.run(module, x, seconds, limit)[2:]
        except subprocess.TimeoutExpired:
            return [None, None]


def agrees(want, got):
    return len(want) == len(got) and all(abs(a - b) <= 1e-9 * max(1.0, abs(a)) for a, b in zip(want, got))


def check_by_hand(modules, by_hand):
    """How many of the programs by hand, which tell sums, differ from reference.py."""
    import reference
    wrong = 0
    for module in modules:
        for x in inputs.tiny(module) if module in BY_HAND else ():
            value, derivative = inputs.FUNCTIONS[module]
            want = [sum(wanted(module, value, x))]
            if module == "ba":
                want = [x["p"] * want[0], x["p"] * sum(map(abs, reference.ba_jacobian(x)["vals"]))]
            else:
                want.append(sum(map(abs, wanted(module, derivative, x))))
            same = agrees(want, by_hand.run(module, x, 0.0, 60.0)[:2])
            wrong += not same
            print("by hand: %s %s" % (module, "agrees" if same else "differs"))
    return wrong


def check(modules, by_hand):
    """Whether the peers agree with reference.py to 1e-9."""
    wrong = check_by_hand(modules, by_hand)
    for name, peers in (("PyTorch", torch_programs()), ("JAX", jax_programs())):
        for module in modules:
            for x in inputs.tiny(module) if module in peers else ():
                for function, run in zip(inputs.FUNCTIONS[module], peers[module](x)):
                    same = agrees(wanted(module, function, x), given(module, function, x, run()))
                    wrong += not same
                    print("%s: %s %s %s" % (name, module, function, "agrees" if same else "differs"))
    return not wrong


HEAD = ("", "value", "derivative", "ratio", "PyTorch value", "derivative", "JAX value", "derivative",
        "by hand value", "derivative")


def line(cells, markdown):
    texts = [c if isinstance(c, str) else "-" if c is None else "%.3g" % c for c in cells]
    if markdown:
        return "| " + " | ".join(texts) + " |"
    return "%-22s" % texts[0] + "".join("%15s" % t for t in texts[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--relay", default=os.path.join(HERE, "..", "..", "build", "relay"))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default=",".join(inputs.FUNCTIONS))
    parser.add_argument("--workload", help="of this name only")
    parser.add_argument("--markdown", action="store_true", help="as a table for docs/performance.md")
    parser.add_argument("--check", action="store_true", help="measure nothing, compare the peers with reference.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.check:
            sys.exit(not check(options.only.split(","), ByHand(folder)))
        table(options, ByHand(folder))


def table(options, by_hand):
    print(line(HEAD, options.markdown))
    if options.markdown:
        print("|" + " --- |" * len(HEAD))
    torch, jax = torch_programs(), jax_programs()
    for module in options.only.split(","):
        functions = inputs.FUNCTIONS[module]
        for name, make in inputs.workloads(module):
            if options.workload not in (None, name):
                continue
            x = make() if callable(make) else make
            times = [measure(options.relay, module, f, x, options.seconds, options.limit) for f in functions]
            if module in ("particle", "saddle"):  # four ways of one search
                for f, t in zip(functions, times):
                    print(line([module + " " + f, None, t], options.markdown))
                continue
            ratio = times[1] / times[0] if None not in times else None
            beside = measure_peer(torch, module, x, options.seconds) + measure_peer(jax, module, x, options.seconds)
            beside += by_hand.measure(module, x, options.seconds, options.limit)
            print(line([module + " " + name, *times, ratio, *beside], options.markdown), flush=True)


if __name__ == "__main__":
    main()
