#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Relay from Python and from C, as examples/embedding does it; with NumPy too, where that is installed.

    embedding.py RELAY
"""
import array
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "examples", "embedding")
BUILD = os.path.dirname(os.path.abspath(sys.argv[1]))
os.environ["LIBRELAY"] = os.path.join(BUILD, "librelay.so")
sys.path.insert(0, EXAMPLES)
import relay


class Lent:
    """A matrix of float64 that says by DLPack where it lies. It stays as long as Relay has it."""
    lent = []

    def __init__(self, rows, columns, elements):
        self.elements = array.array("d", elements)
        self.shape = (ctypes.c_int64 * 2)(rows, columns)
        self.deleter = relay.DLManagedTensor._fields_[2][1](self.comes_back)
        self.managed = relay.DLManagedTensor(
            relay.DLTensor(self.elements.buffer_info()[0], 1, 0, 2, 2, 64, 1, self.shape, None, 0), None, self.deleter)

    def comes_back(self, _):
        Lent.lent.remove(self)

    def __dlpack__(self):
        Lent.lent.append(self)
        return relay._capsule_new(ctypes.addressof(self.managed), b"dltensor", None)


def address(value):
    """Where the elements of a value lie."""
    capsule = value.__dlpack__()
    tensor = relay.DLManagedTensor.from_address(relay._capsule_pointer(capsule, b"dltensor")).tensor
    return tensor.data


def trains_a_line(s):
    s.evaluate("def loss(w, x, y) { mean((x @@ w - y) ** 2) }\ndef g(w, x, y) { grad(loss)(w, x, y) }")
    x = Lent(4, 2, [0, 1, 1, 1, 2, 1, 3, 1])
    y, w = Lent(4, 1, [1, 3, 5, 7]), Lent(2, 1, [0, 0])
    for _ in range(200):
        loss, (dw, _, _) = s.call("g", w, x, y)
        w = s.call("fn (w, d) { w - 0.2 * d }", w, dw)
    assert float(loss) < 1e-4, loss
    assert [round(float(s.call("fn (w, i) { w[i, 0] }", w, i))) for i in (0, 1)] == [2, 1]


def nothing_is_copied(s):
    x = Lent(3, 1, [1, 2, 3])
    same, _ = s.call("fn (x) { (x, 0) }", x)
    assert address(same) == x.elements.buffer_info()[0]
    s.call("fn (x) { x * 2.0 }", x)
    assert list(x.elements) == [1, 2, 3]


def what_is_lent_comes_back(s):
    for _ in range(300):  # what waits for a collection, and for the next one to be given back, is 24 of them each
        s.call("sum", Lent(1000, 1000, bytes(8_000_000)))
    gc.collect()
    s.evaluate("1")
    large = [x for x in Lent.lent if x.shape[0] == 1000]
    assert len(large) < 100, len(large)


def values_are_python_values(s):
    assert s.evaluate('("a", (1, True))')[0] == "a"
    number, flag = s.evaluate('("a", (1, True))')[1]
    assert int(number) == 1 and bool(flag) is True
    items = s.evaluate("list[1.5, 2.5]")
    assert [float(x) for x in items] == [1.5, 2.5] and items.constructor == "Cons"
    assert repr(items) == "list[1.5, 2.5] : List[float32]"
    assert s.call("fn (s, n, x) { s ++ show(n + x.0) }", "n = ", 1, (2, 3)) == "n = 3"
    s.define("words", ("a", "b"))
    assert s.evaluate("words.1") == "b"


def mistakes_are_errors(s):
    for wrong, word in [(lambda: s.evaluate("1 +"), "ends in the middle"), (lambda: s.evaluate("nope"), "no `nope`"),
                        (lambda: s.call("fn (x) { x @@ x }", Lent(2, 3, range(6))), "inner sizes"),
                        (lambda: s.load("/none.rly"), "none.rly")]:
        try:
            wrong()
        except relay.Error as e:
            assert word in str(e), e
        else:
            raise AssertionError("no error: " + word)


def is_interrupted(s):
    timer = threading.Timer(0.2, s.interrupt)
    timer.start()
    try:
        s.evaluate("def forever(n) { forever(n + 1) }\nforever(0)")
    except relay.Error as e:
        assert "interrupted" in str(e), e
    timer.join()
    assert int(s.evaluate("2")) == 2


def numpy_shares_memory(s):
    try:
        import numpy as np
    except ImportError:
        return
    x = np.arange(6.0).reshape(2, 3)
    same, _ = s.call("fn (x) { (x, 0) }", x)
    assert np.shares_memory(np.from_dlpack(same), x)
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                  "float64"):
        a = np.arange(6).reshape(3, 2).astype(dtype)
        assert (np.from_dlpack(s.call("transpose", a.T[::-1])) == a.T[::-1].T).all(), dtype
    assert np.from_dlpack(s.call("sum", np.zeros((0, 3)))) == 0.0


def sessions_run_in_threads(_):
    """Two sessions, each in a thread of its own, know their own definitions alone, and the other's mistakes are not theirs."""
    wrong = []

    def work(factor):
        s = relay.Session()
        s.evaluate("def f(x) { x * %d }\nlet mine = %d" % (factor, factor))
        for i in range(100):
            if int(s.evaluate("f(%d) + mine" % i)) != (i + 1) * factor:
                wrong.append((factor, i))
            try:
                s.evaluate("f(nothing_%d)" % factor)
                wrong.append("no error")
            except relay.Error as e:
                if "nothing_%d" % factor not in str(e):
                    wrong.append(str(e))

    threads = [threading.Thread(target=work, args=(k,)) for k in (3, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]


def c_example(_):
    cc = shutil.which("cc") or shutil.which("gcc")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "gradient")
        subprocess.run([cc, os.path.join(EXAMPLES, "gradient.c"), "-I", os.path.join(ROOT, "repl"), "-o", program,
                        os.environ["LIBRELAY"], "-Wl,-rpath," + BUILD], check=True)
        out = subprocess.run([program], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        assert out == "[3.0, 12.0, 27.0] : Tensor[(3,), float32]\n", out


def main():
    passed = failed = 0
    session = relay.Session()
    for test in (trains_a_line, nothing_is_copied, what_is_lent_comes_back, values_are_python_values,
                 mistakes_are_errors, is_interrupted, numpy_shares_memory, sessions_run_in_threads, c_example):
        try:
            test(session)
            passed += 1
        except Exception as e:
            failed += 1
            print("%s: %s: %s" % (test.__name__, type(e).__name__, e))
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
