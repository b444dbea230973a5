#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX models on the command line, and damaged ones.

    tests/property/models.py RELAY [--share=F] [--seed=N] [--keep=DIR]

`relay run m.onnx` gives what the program does that `relay convert` writes of it. A model with bytes changed, left
out, put in or repeated is read or refused with a diagnostic: no signal, no bug of Relay, and no more memory than so
small a file is worth. The models are those of the golden tests.
"""
import glob
import os
import random
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import share
from process import PATIENCE, SLOW, run_program

MODELS = os.path.join(TESTS, "golden", "interchange", "_models")
MUTANTS = 2000
MEMORY = "100M"


def run(relay, args, cwd):
    status, out, said = run_program([relay, "--jit=off"] + args, b"", PATIENCE * SLOW, cwd)
    if status not in (0, 1) or "bug in Relay" in said or "Sanitizer" in said or "runtime error:" in said:
        return "relay %s: status %s\n%s" % (" ".join(args), status, said[-2000:]), out, said
    return None, out, said


# ---- the command line ---------------------------------------------------------------------------

def npy(shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack("<%df" % len(values), *values))


def read_npy(path):
    with open(path, "rb") as f:
        data = f.read()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return list(struct.unpack("<%df" % ((len(data) - start) // 4), data[start:]))


def check_command_line(relay, folder):
    """What is wrong with running and converting the perceptron of the golden tests, which ends in
    relu([x0, x1 + 0.5, x0 - x1]) . [1, 2, -1] + 0.25."""
    model = os.path.join(MODELS, "mlp.onnx")
    x = [1.0, 2.0, -3.0, 0.25]
    expected = [max(a, 0) + 2 * max(b + 0.5, 0) - max(a - b, 0) + 0.25 for a, b in (x[:2], x[2:])]
    with open(os.path.join(folder, "x.npy"), "wb") as f:
        f.write(npy((2, 2), x))
    wrong, _, said = run(relay, ["run", model, "--input=x=x.npy", "--save=out"], folder)
    if wrong or not os.path.isfile(os.path.join(folder, "out", "y.npy")):
        return wrong or "relay run --save wrote nothing: " + said
    if read_npy(os.path.join(folder, "out", "y.npy")) != expected:
        return "relay run: %s and not %s" % (read_npy(os.path.join(folder, "out", "y.npy")), expected)
    wrong, _, said = run(relay, ["convert", model, "-o", "m.rly"], folder)
    if wrong or not os.path.isfile(os.path.join(folder, "m.safetensors")):
        return wrong or "relay convert wrote no weights: " + said
    wrong, _, said = run(relay, ["convert", "m.rly", "-o", "again.onnx"], folder)
    wrong = wrong or run(relay, ["run", "again.onnx", "--input=x=x.npy", "--save=again"], folder)[0]
    if wrong or not os.path.isfile(os.path.join(folder, "again", "output.npy")):
        return wrong or "what relay convert writes is no model again: " + said
    if read_npy(os.path.join(folder, "again", "output.npy")) != expected:
        return "the model written again gives %s" % read_npy(os.path.join(folder, "again", "output.npy"))
    with open(os.path.join(folder, "m.rly"), "a", encoding="utf-8") as f:
        f.write('save(model.run(model.weights, load("x.npy")), "again.npy");\n')
    wrong, _, said = run(relay, ["run", "m.rly"], folder)
    if wrong or not os.path.isfile(os.path.join(folder, "again.npy")):
        return wrong or "what relay convert writes does not run: " + said
    if read_npy(os.path.join(folder, "again.npy")) != expected:
        return "the converted program gives %s" % read_npy(os.path.join(folder, "again.npy"))
    return check_nothing_half(relay, model, folder)


def check_nothing_half(relay, model, folder):
    """Of a program and its weights neither is written where the other cannot be."""
    for taken in "half.rly", "half.safetensors":
        place = os.path.join(folder, taken + "-folder")
        os.makedirs(os.path.join(place, taken))
        wrong, _, said = run(relay, ["convert", model, "-o", os.path.join(place, "half.rly")], folder)
        if wrong or "error[" not in said or os.listdir(place) != [taken]:
            return wrong or "convert with a folder at %s leaves %s: %s" % (taken, os.listdir(place), said)
    return None


# ---- damage -------------------------------------------------------------------------------------

def damage(r, data):
    data = bytearray(data)
    for _ in range(r.randint(1, 4)):
        at, kind = r.randrange(len(data)), r.randrange(6)
        if kind == 0:
            data[at] = r.randrange(256)
        elif kind == 1 and at:
            del data[at:]
        elif kind == 2:
            data.insert(at, r.randrange(256))
        elif kind == 3:
            data[at] ^= 1 << r.randrange(8)
        elif kind == 4:
            data[at:at] = data[at:at + r.randrange(1, 20)]
        else:  # the largest length or number there is
            data[at:at + 1] = b"\xff" * r.randrange(1, 10)
    return bytes(data)


def check_damaged(relay, seed, models, folder, keep):
    r = random.Random(seed)
    path = r.choice(models)
    with open(path, "rb") as f:
        data = damage(r, f.read())
    name = "damaged%d.onnx" % seed
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)
    wrong, _, said = run(relay, ["--memory=" + MEMORY, "-e", 'import_onnx("%s").weights; 1' % name], folder)
    if not wrong and SLOW == 1 and "out of memory" in said:
        wrong = "more than %s for %d bytes\n%s" % (MEMORY, len(data), said)
    if wrong and keep:
        with open(os.path.join(keep, name), "wb") as f:
            f.write(data)
    return wrong and "%s, seed %d: %s" % (os.path.basename(path), seed, wrong)


def main():
    options = share.arguments(__doc__).parse_args()
    relay = os.path.abspath(options.relay)
    models = sorted(path for path in glob.glob(os.path.join(MODELS, "*.onnx")) if os.path.getsize(path))
    passed, found = 0, []
    with tempfile.TemporaryDirectory() as folder:
        checks = [lambda: check_command_line(relay, folder)]
        for seed in share.seeds(options, MUTANTS):
            checks.append(lambda seed=seed: check_damaged(relay, seed, models, folder, options.keep))
        for check in checks:
            wrong = check()
            passed += not wrong
            found += [wrong] if wrong else []
    for wrong in found:
        print("FAILED " + wrong)
    print("%d passed, %d failed, 0 skipped" % (passed, len(found)))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
