#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/gradbench, asked as GradBench asks them, by messages on standard input: values and derivatives
of small inputs agree with bench/gradbench/reference.py to 1e-9.

    gradbench.py RELAY [--share=F] [--seed=N]

The searches of particle and saddle take seconds: a share of `make check` tries one way of each, `make check-long` all.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
import share
from process import PATIENCE, SLOW

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "gradbench"))
import inputs
import reference

LIMIT = 1e-9
SEARCHES = ("particle", "saddle")


def differs(want, got, at="output"):
    """Where two values differ, or None."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or want.keys() != got.keys():
            return "%s is %.60r, wanted are %s" % (at, got, sorted(want))
        return next((d for k in want for d in [differs(want[k], got[k], at + "." + k)] if d), None)
    if isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return "%s is %.60r, wanted are %d" % (at, got, len(want))
        return next((d for i in range(len(want)) for d in [differs(want[i], got[i], "%s[%d]" % (at, i))] if d), None)
    if not abs(want - got) <= LIMIT * max(1.0, abs(want)):
        return "%s is %r, the reference gives %r" % (at, got, want)
    return None


def questions(options):
    """(module, function, input)"""
    for module, functions in inputs.FUNCTIONS.items():
        if module in SEARCHES:
            functions = functions[-1:] if module == "saddle" or options.share >= 1 else ()
            functions = inputs.FUNCTIONS[module] if options.share >= 1 else functions
        for function in functions:
            for x in inputs.tiny(module):
                yield module, function, x


def main():
    options = share.arguments(__doc__).parse_args()
    asked = list(questions(options))
    messages = [{"id": 0, "kind": "start", "eval": "gmm"}, {"id": 1, "kind": "define", "module": "gmm"}]
    for module, function, x in asked:
        more = {"min_runs": 1, "min_seconds": 0} if isinstance(x, dict) else {}
        messages.append({"id": len(messages), "kind": "evaluate", "module": module, "function": function,
                         "input": dict(x, **more) if more else x})
    messages += [{"id": len(messages), "kind": "evaluate", "module": "gmm", "function": "nothing", "input": 1.0}]
    messages += [{"id": len(messages), "kind": "analysis", "of": 0}]
    program = os.path.join(ROOT, "bench", "gradbench", "gradbench.rly")
    run = subprocess.run([options.relay, program], input="".join(json.dumps(m) + "\n" for m in messages).encode(),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE * SLOW)
    wrong = [run.stderr.decode()[:2000]] if run.returncode or run.stderr else []
    answers = [json.loads(line) for line in run.stdout.decode().splitlines()]
    if [a["id"] for a in answers] != list(range(len(messages))):
        wrong.append("%d messages, %d answers" % (len(messages), len(answers)))
    else:
        if answers[0].get("tool") != "relay" or answers[1].get("success") is not True:
            wrong.append("it begins by %s, %s" % (answers[0], answers[1]))
        if answers[-2]["success"] or "gmm.nothing" not in answers[-2]["error"] or answers[-1].keys() != {"id"}:
            wrong.append("it ends by %s, %s" % (answers[-2], answers[-1]))
        for (module, function, x), a in zip(asked, answers[2:]):
            difference = differs(getattr(reference, module + "_" + function)(x), a["output"])
            if difference or len(a["timings"]) != 1:
                wrong.append("%s.%s: %s" % (module, function, difference or a["timings"]))
    print("\n".join(wrong))
    failed = min(len(wrong), len(asked))
    print("%d passed, %d failed, 0 skipped" % (len(asked) - failed, failed))


if __name__ == "__main__":
    main()
