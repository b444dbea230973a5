#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One table of GradBench's evaluations: milliseconds of the value and of the derivative, and their ratio, on one thread;
beside them PyTorch's derivative where that can be imported and the evaluation is written for it (torch_peers.py).

    bench/gradbench/run.py [--relay=build/relay] [--seconds=1] [--limit=60] [--only=gmm,lse] [--workload=2_5]

The programs are asked through gradbench.rly, as GradBench itself asks them. A cell that takes longer than the limit is
left open. The median of all runs in a cell is shown.
"""
import argparse
import json
import os
import selectors
import statistics
import subprocess
import sys
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


def measure(relay, module, function, x, seconds, limit):
    """Milliseconds, or None."""
    more = {"min_runs": 1, "min_seconds": seconds} if isinstance(x, dict) else {}
    tool = Tool(relay)
    tool.ask({"id": 0, "kind": "start"}, limit)
    answer = tool.ask({"id": 1, "kind": "evaluate", "module": module, "function": function,
                       "input": dict(x, **more) if more else x}, limit)
    tool.end()
    times = [t["nanoseconds"] / 1e6 for t in answer["timings"]] if answer and answer["success"] else []
    return statistics.median(times) if times else None


def measure_peer(module, x, seconds):
    """Milliseconds of PyTorch's derivative, or None."""
    try:
        import torch
        import torch_peers
    except ImportError:
        return None
    if module not in torch_peers.DERIVATIVES:
        return None
    torch.set_num_threads(1)
    run, times, spent = torch_peers.DERIVATIVES[module](x), [], 0.0
    while spent < seconds or len(times) < 2:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
        spent += times[-1]
    return statistics.median(times[1:]) * 1e3


def cell(x):
    return "%12s" % ("-" if x is None else "%.3g" % x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--relay", default=os.path.join(HERE, "..", "..", "build", "relay"))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--only", default=",".join(inputs.FUNCTIONS))
    parser.add_argument("--workload", help="of this name only")
    options = parser.parse_args()
    print("%-22s%12s%12s%12s%12s" % ("", "value", "derivative", "ratio", "PyTorch"))
    for module in options.only.split(","):
        functions = inputs.FUNCTIONS[module]
        for name, make in inputs.workloads(module):
            if options.workload not in (None, name):
                continue
            x = make() if callable(make) else make
            times = [measure(options.relay, module, f, x, options.seconds, options.limit) for f in functions]
            if module in ("particle", "saddle"):  # four ways of one search
                for f, t in zip(functions, times):
                    print("%-22s%12s%s" % (module + " " + f, "", cell(t)))
                continue
            ratio = times[1] / times[0] if None not in times else None
            print("%-22s%s%s%s%s" % (module + " " + name, *map(cell, times + [ratio, measure_peer(module, x, options.seconds)])))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
