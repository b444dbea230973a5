# SPDX-License-Identifier: Apache-2.0
"""The backend tests of the `onnx` package (onnx.backend.test.case.node), run by `relay run`. For development: it needs
the packages `onnx` and `numpy`, which `make check` does not.

    python3 tests/onnx/nodes.py build/relay                 how many pass, and each other one with its reason
    python3 tests/onnx/nodes.py build/relay softmax lstm    those with one of these words in their name
    --jobs=N   --page: the table of docs/onnx.md   --keep=DIR: their models and inputs"""
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
from onnx import numpy_helper

LIMIT_S = 60


def find_cases(words):
    warnings.filterwarnings("ignore")
    from onnx.backend.test.case.node import collect_testcases
    found = collect_testcases(None)
    return [c for c in found if not words or any(w in c.name for w in words)]


def as_array(value):
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    return numpy.asarray(value)


def save_input(folder, name, value):
    """The argument of --input, or None where Relay has no such values."""
    if value is None:
        return None
    path = os.path.join(folder, "in_" + re.sub(r"\W", "_", name))
    if isinstance(value, list):
        arrays = [as_array(v) for v in value]
        if any(a.dtype.kind not in "fiub" for a in arrays):
            return None
        numpy.savez(path + ".npz", **{str(i): a for i, a in enumerate(arrays)})
        return "--input=%s=%s.npz" % (name, path)
    array = as_array(value)
    if array.dtype.kind not in "fiub" or array.dtype.type.__module__ != "numpy":
        return None
    numpy.save(path + ".npy", array)
    return "--input=%s=%s.npy" % (name, path)


def differs(case, wanted, path):
    """Why what stands in the file is not what is wanted; None where it is."""
    if isinstance(wanted, list):
        if not os.path.exists(path + ".npz"):
            return "no output" if wanted else None
        with numpy.load(path + ".npz") as archive:
            if len(archive.files) != len(wanted):
                return "%d elements, wanted are %d" % (len(archive.files), len(wanted))
            pairs = [(as_array(w), archive[str(i)]) for i, w in enumerate(wanted)]
    else:
        if not os.path.exists(path + ".npy"):
            return "no output"
        pairs = [(as_array(wanted), numpy.load(path + ".npy"))]
    for want, got in pairs:
        if want.shape != got.shape:
            return "shape %s, wanted is %s" % (got.shape, want.shape)
        if want.dtype != got.dtype:
            return "dtype %s, wanted is %s" % (got.dtype, want.dtype)
        if want.dtype.kind == "f":
            # A float16 has eleven bits; a result that several operators rounded differs in the last two.
            rtol = max(case.rtol, 4e-3 if want.dtype.itemsize == 2 else 1e-3)
            if not numpy.allclose(got.astype("f8"), want.astype("f8"), rtol=rtol, atol=max(case.atol, 1e-6), equal_nan=True):
                return "wrong value"
        elif not numpy.array_equal(got, want):
            return "wrong value"
    return None


def run(case, relay, keep):
    """(status, reason): passed, refused, wrong or broken."""
    folder = os.path.join(keep, case.name) if keep else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as f:
            f.write(case.model.SerializeToString())
        for inputs, outputs in case.data_sets:
            arguments = [save_input(folder, i.name, v) for i, v in zip(case.model.graph.input, inputs)]
            if any(a is None for a in arguments):
                return "refused", "an input is of strings, narrow floats, bfloat16 or an optional"
            out = os.path.join(folder, "out")
            done = subprocess.run([relay, "--jit=off", "run", path, "--save=" + out] + arguments, capture_output=True,
                                  text=True, timeout=LIMIT_S)
            if done.returncode not in (0, 1) or "bug in Relay" in done.stderr:
                return "broken", "status %d: %s" % (done.returncode, done.stderr[:200])
            if done.returncode == 1:
                lines = done.stderr.strip().split("\n")
                reason = " | ".join(l.strip() for l in lines if "cannot be translated" not in l)[:400]
                return ("refused" if "R0509" in done.stderr else "failed"), reason
            for port, wanted in zip(case.model.graph.output, outputs):
                name = re.sub(r"[/]", "_", port.name)
                why = differs(case, wanted, os.path.join(out, name))
                if why:
                    return "wrong", "%s: %s" % (port.name, why)
        return "passed", ""
    except subprocess.TimeoutExpired:
        return "broken", "not done in %d s" % LIMIT_S
    finally:
        if not keep:
            shutil.rmtree(folder)


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    relay, words = os.path.abspath([a for a in sys.argv[1:] if a not in options][0]), \
        [a for a in sys.argv[1:] if a not in options][1:]
    keep = next((o[7:] for o in options if o.startswith("--keep=")), None)
    jobs = int(next((o[7:] for o in options if o.startswith("--jobs=")), "2"))
    found = find_cases(words)
    count = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, (status, reason) in zip(found, pool.map(lambda c: run(c, relay, keep), found)):
            count[status] += 1
            if status != "passed":
                print("%-8s %s: %s" % (status, case.name, reason), flush=True)
    print(", ".join("%d %s" % (n, s) for s, n in sorted(count.items())), "of", len(found))
    return count["wrong"] + count["broken"] > 0


if __name__ == "__main__":
    sys.exit(main())
