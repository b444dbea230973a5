# SPDX-License-Identifier: Apache-2.0
"""The nine light models of the `onnx` package (resnet50, squeezenet, densenet121, vgg19, shufflenet, inception v1 and v2,
alexnet, zfnet512), run by `relay run`. For development: it needs the packages `onnx`, `onnxruntime` and `numpy`, which
`make check` does not.

    python3 tests/onnx/light.py build/relay             all of them
    python3 tests/onnx/light.py build/relay resnet      those with one of these words in their name

Each is compared with the output that the package stores. Its weights are all alike, so that most of those outputs are 1000
equal numbers; each is run once more with weights drawn at random, and compared with ONNX Runtime. Both differ by at most
1e-3 of the largest number, or the exit status is 1."""
import glob
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

FOLDER = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
BOUND = 1e-3


def drawn(rng, shape, is_positive):
    """Weights under which numbers keep their size from layer to layer: a factor near 1, a bias, or a kernel."""
    if is_positive:
        return rng.uniform(0.9, 1.1, size=shape).astype(numpy.float32)
    fan_in = numpy.prod(shape[1:]) if len(shape) > 1 else 100
    return (rng.normal(size=shape) / numpy.sqrt(fan_in)).astype(numpy.float32)


def draw_weights(model, rng):
    graph = model.graph
    stored = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    positive = {name for n in graph.node if n.op_type == "BatchNormalization" for name in (n.input[1], n.input[4])}
    made = {n.output[0]: tuple(stored[n.input[0]]) for n in graph.node
            if n.op_type == "ConstantOfShape" and n.input[0] in stored}
    made.update((name, a.shape) for name, a in stored.items() if a.dtype == numpy.float32 and a.size > 1)
    kept = [n for n in graph.node if n.output[0] not in made]
    tensors = [t for t in graph.initializer if t.name not in made]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(kept)
    graph.initializer.extend(tensors)
    for name, shape in sorted(made.items()):
        graph.initializer.append(numpy_helper.from_array(drawn(rng, shape, name in positive), name))


def run(relay, path, name, x, folder):
    given, out = os.path.join(folder, "x.npy"), os.path.join(folder, "out")
    numpy.save(given, x)
    done = subprocess.run([relay, "run", path, "--input=%s=%s" % (name, given), "--save=" + out],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("%s\n%s" % (path, done.stderr))
    (saved,) = glob.glob(os.path.join(out, "*.npy"))
    return numpy.load(saved)


def main():
    relay, words = sys.argv[1], sys.argv[2:]
    failed = 0
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.onnx"))):
        title = os.path.basename(path)[len("light_"):-len(".onnx")]
        if words and not any(w in title for w in words):
            continue
        model = onnx.load(path)
        given = {t.name for t in model.graph.initializer}
        (taken,) = [i for i in model.graph.input if i.name not in given]
        with open(path[:-len(".onnx")] + "_output_0.pb", "rb") as f:
            expected = numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
        x = Runner.generate_dummy_data(taken, seed=0, name=title, random=False)
        draw_weights(model, numpy.random.default_rng(5))
        with tempfile.TemporaryDirectory() as folder:
            stored = numpy.abs(run(relay, path, taken.name, x, folder) - expected).max() / numpy.abs(expected).max()
            other = os.path.join(folder, "drawn.onnx")
            onnx.save(model, other)
            x = numpy.random.default_rng(6).normal(size=x.shape).astype(numpy.float32)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            (peer,) = onnxruntime.InferenceSession(other, options).run(None, {taken.name: x})
            random = numpy.abs(run(relay, other, taken.name, x, folder) - peer).max() / numpy.abs(peer).max()
        failed += not max(stored, random) <= BOUND
        print("%-14s stored output %.1e   random weights, beside ONNX Runtime %.1e   (outputs from %.2g to %.2g)"
              % (title, stored, random, peer.min(), peer.max()), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
