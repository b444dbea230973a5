#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network is trained at the prompt for an hour, and its functions are redefined as it goes: memory is to stay flat, and
a step is to take at the end what it took at the beginning.

    bench/hour.py [--relay=build/relay] [--seconds=3600]

An entry runs 100 steps of a network of 784, 128 and 10 neurons on batches of 64 under Adam. Between entries the rate is
another, every third time the loss is redefined with another penalty, and every tenth time the network with another
activation, so that what depends on it is checked, optimised and differentiated anew. Of each tenth of the time one line is
printed: the median of the processor time of a step, the time by which the slowest entry was above it, and the resident
memory at its end. The last line compares the last tenth with the second; the first one warms up.
"""
import argparse
import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
START = """import nn
import optim
import random
import loss
type Net { Net { first: nn.Linear[784, 128], second: nn.Linear[128, 10] } }
let key = random.key(1)
let x = random.normal(random.threefry_key(3), out_shape=[64, 784]).1
let y = one_hot(mod(arange(64), 10), 1.0, 0.0, depth=10)
let rate = 0.001
def activate(h) { nn.relu(h) }
def logits(net: Net, x) { nn.apply_linear(net.second, activate(nn.apply_linear(net.first, x))) }
def cost(net: Net) { loss.cross_entropy(logits(net, x), y) + 0.0001 * sum(net.second.w ** 2) }
def step((net, state)) { let (_, (g,)) = grad(cost)(net); optim.adam(rate, net, g, state) }
let net = Net { first: nn.linear(key), second: nn.linear(random.fold_in(key, 1)) }
let now = ref((net, optim.adam_init(net)))
def train(n: int32) { now := loop(n, step, !now); cost((!now).0) }
"""
ACTIVATIONS = ["nn.relu(h)", "tanh(h)", "sigmoid(h) * h", "nn.leaky_relu(h, alpha=0.01)"]
STEPS = 100


class Prompt:
    def __init__(self, relay):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="dumb", NO_COLOR="1")
            os.execv(relay, [relay, "--threads", "1"])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        self.read()

    def read(self):
        """What is printed up to the next prompt."""
        out = b""
        while not out.endswith(b"relay> "):
            if not select.select([self.fd], [], [], 300)[0]:
                sys.exit("the prompt does not answer:\n" + out.decode(errors="replace"))
            out += os.read(self.fd, 65536)
        return out.decode(errors="replace")

    def enter(self, line):
        os.write(self.fd, line.encode() + b"\r")
        out = self.read()
        if "error" in out:
            sys.exit("refused:\n" + out)
        return out

    def processor_time(self):
        """Seconds that its first thread, which evaluates, has run."""
        with open("/proc/%d/schedstat" % self.pid, encoding="ascii") as f:
            return int(f.read().split()[0]) * 1e-9

    def resident(self):
        with open("/proc/%d/statm" % self.pid, encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def redefine(prompt, entry):
    prompt.enter("let rate = %r" % (0.001 / (1 + entry % 7)))
    if entry % 3 == 0:
        prompt.enter("def cost(net: Net) { loss.cross_entropy(logits(net, x), y) + %r * sum(net.second.w ** 2) }"
                     % (0.0001 * (1 + entry % 5)))
    if entry % 10 == 0:
        prompt.enter("def activate(h) { %s }" % ACTIVATIONS[entry // 10 % len(ACTIVATIONS)])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--relay", default=os.path.join(os.path.dirname(HERE), "build", "relay"))
    options.add_argument("--seconds", type=float, default=3600)
    options = options.parse_args()
    prompt = Prompt(options.relay)
    for line in START.splitlines():
        prompt.enter(line)
    begun, tenths, entry, times = time.time(), [], 0, []
    while len(tenths) < 10:
        redefine(prompt, entry)
        before = prompt.processor_time()
        prompt.enter("train(%d)" % STEPS)
        times.append((prompt.processor_time() - before) / STEPS * 1e3)
        entry += 1
        if time.time() - begun >= (len(tenths) + 1) * options.seconds / 10:
            tenths.append((statistics.median(times), max(times), prompt.resident(), len(times)))
            print("%3d %%   a step %.3f ms, in the slowest entry %.3f ms   %.0f MB resident   %d entries"
                  % ((10 * len(tenths),) + tenths[-1]), flush=True)
            times = []
    print("the last tenth over the second: time %.2f, memory %.2f; %d entries"
          % (tenths[9][0] / tenths[1][0], tenths[9][2] / tenths[1][2], entry))
    os.write(prompt.fd, b"\x04")


if __name__ == "__main__":
    main()
