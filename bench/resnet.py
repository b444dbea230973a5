#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 in TVM's text format, as `print(relay.testing.resnet.get_workload(num_layers=18)[0])`.

    bench/resnet.py [--untyped] [--batch N] > resnet18.rly

TVM prints a module after it was checked: each parameter has its type, each binding a comment with
its own. `--untyped` is the module before that: only the image has a type, and what the weights are
follows from the operators' attributes; no type of the result is written either.
"""
import argparse


class Printer:
    """A graph printed one binding a line, as TVM's text printer numbers them."""

    def __init__(self, typed):
        self.typed = typed
        self.params = []  # (name, shape)
        self.lines = []

    def param(self, name, shape):
        self.params.append((name, shape))
        return "%" + name

    def bind(self, text, comment):
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {text}{f' /* ty={comment} */' if self.typed else ''};")
        return name

    def call(self, operator, arguments, shape, **attributes):
        attributes = "".join(f", {key}={value}" for key, value in attributes.items())
        return self.bind(f"{operator}({', '.join(arguments)}{attributes})", tensor(shape)), shape

    def module(self, shape):
        """The last binding is the body."""
        last = self.lines.pop().split(" = ", 1)[1].rstrip(";")
        params = ", ".join(
            f"%{name}: {tensor(s)}" if self.typed or name == "data" else f"%{name}"
            for name, s in self.params)
        result = f" -> {tensor(shape)}" if self.typed else ""
        return "\n".join(['#[version = "0.0.5"]', f"def @main({params}){result} {{"] + self.lines +
                         [f"  {last}", "}", ""])


def tensor(shape):
    return f"Tensor[({', '.join(map(str, shape))}), float32]"


def batch_norm(p, x, name, **attributes):
    data, shape = x
    c = (shape[1],)
    params = [p.param(f"{name}_{part}", c) for part in ("gamma", "beta", "moving_mean", "moving_var")]
    attributes = "".join(f", {key}={value}" for key, value in attributes.items())
    triple = f"({tensor(shape)}, {tensor(c)}, {tensor(c)})"
    b = p.bind(f"nn.batch_norm({', '.join([data] + params)}, epsilon=2e-05f{attributes})", triple)
    return p.bind(f"{b}.0", tensor(shape)), shape


def conv(p, x, name, channels, kernel, stride, pad):
    data, (n, c, h, w) = x
    weight = p.param(f"{name}_weight", (channels, c, kernel, kernel))
    h, w = ((size + 2 * pad - kernel) // stride + 1 for size in (h, w))
    strides = {"strides": [stride] * 2} if stride != 1 else {}
    return p.call("nn.conv2d", [data, weight], (n, channels, h, w), **strides, padding=[pad] * 4,
                  channels=channels, kernel_size=[kernel] * 2)


def relu(p, x):
    return p.call("nn.relu", [x[0]], x[1])


def unit(p, x, name, channels, stride, same):
    """He et al., 2016 (identity mappings): norm and activation come before each convolution."""
    act1 = relu(p, batch_norm(p, x, f"{name}_bn1"))
    conv1 = conv(p, act1, f"{name}_conv1", channels, 3, stride, 1)
    act2 = relu(p, batch_norm(p, conv1, f"{name}_bn2"))
    conv2 = conv(p, act2, f"{name}_conv2", channels, 3, 1, 1)
    short = x if same else conv(p, act1, f"{name}_sc", channels, 1, stride, 0)
    return p.call("add", [conv2[0], short[0]], conv2[1])


def resnet(batch, typed):
    p = Printer(typed)
    data = (batch, 3, 224, 224)
    x = batch_norm(p, (p.param("data", data), data), "bn_data", scale=False)
    x = relu(p, batch_norm(p, conv(p, x, "conv0", 64, 7, 2, 3), "bn0"))
    x = p.call("nn.max_pool2d", [x[0]], (batch, 64, 56, 56), pool_size=[3, 3], strides=[2, 2],
               padding=[1, 1, 1, 1])
    for stage, channels in enumerate((64, 128, 256, 512)):
        for number in (1, 2):
            stride = 2 if stage > 0 and number == 1 else 1
            x = unit(p, x, f"stage{stage + 1}_unit{number}", channels, stride, number == 2)
    x = relu(p, batch_norm(p, x, "bn1"))
    x = p.call("nn.global_avg_pool2d", [x[0]], (batch, 512, 1, 1))
    x = p.call("nn.batch_flatten", [x[0]], (batch, 512))
    x = p.call("nn.dense", [x[0], p.param("fc1_weight", (1000, 512))], (batch, 1000), units=1000)
    x = p.call("nn.bias_add", [x[0], p.param("fc1_bias", (1000,))], (batch, 1000), axis=-1)
    x = p.call("nn.softmax", [x[0]], (batch, 1000))
    return p.module(x[1])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--untyped", action="store_true", help="the module before inference")
    options.add_argument("--batch", type=int, default=1)
    given = options.parse_args()
    print(resnet(given.batch, not given.untyped), end="")
