#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A zero cotangent or tangent adds nothing in an element-wise rule, whatever the partial is (LANGUAGE §5).

Each element-wise operator of ops/elementwise.def that takes floats is derived, backwards and forwards, where its value or its
partial is 0, infinite, nan or out of range, with a cotangent and tangents of zero: every derivative is zero. Of two arguments
all pairs of such points are taken. How many partials were not finite is told: a test at which all are finite would prove nothing.

    zero_cotangents.py RELAY [--only OPERATOR]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
from process import PATIENCE

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "..", "..", "ops", "elementwise.def")
POINTS = "[0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -3.0, 1000.0, -1000.0, 1e-30, 3e38, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0]"

HEAD = """
let points: Tensor[(14,), DTYPE] = %s;
let rows = reshape(points + zeros(shape=[14, 14], dtype=DTYPE), newshape=[196]);
let columns = reshape(expand_dims(points, axis=1) + zeros(shape=[14, 14], dtype=DTYPE), newshape=[196]);
def broken(d) { sum((int32) logical_not(isfinite(d))) }
def nonzero(d) { sum((int32) (d != 0.0)) }
""" % POINTS
UNARY = """
{{ let y = {op}(points); let (_, (d,)) = vjp({op})(points, ones_like(y));
  let (_, (none,)) = vjp({op})(points, zeros_like(y)); let (_, t) = jvp({op})(points, zeros_like(points));
  print(str.join(" ", list["{op}", show(broken(d)), show(nonzero(none) + nonzero(t))])) }};
"""
BINARY = """
{{ let y = {op}(rows, columns); let (_, (d, e)) = vjp({op})(rows, columns, ones_like(y));
  let (_, (a, b)) = vjp({op})(rows, columns, zeros_like(y));
  let (_, t) = jvp({op})(rows, columns, zeros_like(rows), zeros_like(rows));
  print(str.join(" ", list["{op}", show(broken(d) + broken(e)), show(nonzero(a) + nonzero(b) + nonzero(t))])) }};
"""
# Each of these has a partial that is infinite or nan at one of the points.
SINGULAR = ("acos acosh asin atanh cosh divide exp log log10 log2 multiply power rsqrt sinh sqrt tan").split()


def operators():
    """(number of arguments, name) of what takes floats."""
    with open(TABLE, encoding="utf-8") as f:
        rows = re.findall(r'^(UNARY|BINARY)\(\w+, "([\w.]+)", DTS_(\w+)', f.read(), re.M)
    return [(1 if kind == "UNARY" else 2, name) for kind, name, dtypes in rows if dtypes in ("FLOAT", "NUM", "ALL")]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("relay")
    p.add_argument("--only", help="this operator alone")
    options = p.parse_args()
    passed, failures = 0, []
    for dtype in ("float32", "float64"):
        for n, op in operators():
            if options.only and op != options.only:
                continue
            text = HEAD.replace("DTYPE", dtype) + (UNARY if n == 1 else BINARY).format(op=op)
            with tempfile.NamedTemporaryFile("w", suffix=".rly", prefix="zero-") as f:
                f.write(text)
                f.flush()
                r = subprocess.run([options.relay, "--jit=off", "--diagnostics=short", f.name], text=True,
                                   stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
            words = r.stdout.split()
            if len(words) != 3:
                failures.append("%s, %s: %s" % (op, dtype, r.stderr.strip() or r.stdout))
            elif words[2] != "0":
                failures.append("%s, %s: %s derivatives by a zero cotangent are not zero" % (op, dtype, words[2]))
            elif op in SINGULAR and words[1] == "0":
                failures.append("%s, %s: no partial was infinite or nan at these points" % (op, dtype))
            else:
                passed += 1
    for line in failures:
        print(line)
    print("%d passed, %d failed, 0 skipped" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
