#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`relay watch FILE`: what it says when the file is saved again, with changes, mistakes, or nothing new.

    tests/property/live.py RELAY
"""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import process


class Watch:
    def __init__(self, relay, path):
        self.said, self.path = [], path
        self.program = subprocess.Popen([relay, "watch", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=lambda: self.said.extend(iter(self.program.stdout.readline, "")), daemon=True).start()

    def save(self, text, by_renaming=False):
        """Saves, and gives what is said until nothing more comes of this run."""
        self.said.clear()
        to = self.path + ("~" if by_renaming else "")
        with open(to, "w") as f:
            f.write(text)
        if by_renaming:
            os.rename(to, self.path)

    def expect(self, *wanted):
        """These lines come, in this order, with nothing between them but what is not listed in full."""
        deadline = time.monotonic() + 60 * process.SLOW
        while time.monotonic() < deadline:
            lines = [l.rstrip("\n") for l in list(self.said)]
            at = -1
            for want in wanted:
                at = next((i for i in range(at + 1, len(lines)) if want in lines[i]), None)
                if at is None:
                    break
            if at is not None:
                return lines
            time.sleep(0.02)
        raise AssertionError("%r does not come: %r" % (wanted, self.said))


def main():
    relay = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        path, module = os.path.join(folder, "a.rly"), os.path.join(folder, "half.rly")
        with open(module, "w") as f:
            f.write("def of(x: float32) -> float32 { x / 2.0 }\n")
        with open(path, "w") as f:
            f.write("import half;\nlet x = 3.0;\nx + 1.0\n[[1.0, 2.0],\n [3.0, 4.0]]\nhalf.of(x)\n")
        w = Watch(relay, path)
        w.expect("a.rly", "3 | x + 1.0   = 4.0 : float32", "4 | [[1.0, 2.0], [3.0, 4.0]]", "[3.0, 4.0]]",
                 "6 | half.of(x)   = 1.5 : float32")
        w.save("// a line more\nimport half;\nlet x = 5.0;\nx + 1.0\n[[1.0, 2.0],\n [3.0, 4.0]]\nhalf.of(x)\n")
        lines = w.expect("4 | x + 1.0   = 6.0", "7 | half.of(x)   = 2.5")
        assert len(lines) == 3, lines
        w.save("import half;\nlet x = 5.0;\nx + 1.0\n[[1.0, 2.0],\n [3.0, 4.0]]\nhalf.of(x)\n", by_renaming=True)
        lines = w.expect("nothing changed")
        assert len(lines) == 2, lines
        w.save("import half;\nlet x = ;\nx + 1.0\n")
        w.expect("error[R0001]")
        w.save("import half;\nlet x = 5.0;\nx + 1.0\nhalf.of(x)\n")
        lines = w.expect("nothing changed")
        w.said.clear()
        with open(module, "w") as f:
            f.write("def of(x: float32) -> float32 { x * 0.25 }\n")
        lines = w.expect("4 | half.of(x)   = 1.25")
        assert len(lines) == 2, lines
        os.unlink(path)
        w.save("1 / 0\n")
        w.expect("error[R0601]")
        w.save("def f(n) { f(n + 1) }\nf(0)\n")
        w.expect("-- ")
        time.sleep(1)
        w.program.send_signal(signal.SIGINT)
        w.expect("interrupted")
        w.save("")
        w.expect("it checks, and shows nothing")
        time.sleep(0.5)
        w.program.send_signal(signal.SIGINT)
        assert w.program.wait(60) == 0, w.program.returncode
        path = os.path.join(folder, "nosuch.rly")
        w = Watch(relay, path)
        w.expect("nosuch.rly")
        w.save("2 + 2\n")
        w.expect("1 | 2 + 2   = 4 : int32")
        w.program.send_signal(signal.SIGINT)
        assert w.program.wait(60) == 0, w.program.returncode
        for _ in range(20):  # Ctrl-C just as the run ends
            program = subprocess.Popen([relay, "watch", path], stdout=subprocess.PIPE, text=True)
            try:
                while "2 + 2" not in program.stdout.readline():
                    pass
                program.send_signal(signal.SIGINT)
                assert program.wait(60 * process.SLOW) == 0, program.returncode
            finally:
                program.kill()
                program.stdout.close()
        wrong = subprocess.run([relay, "watch"], capture_output=True, text=True)
        assert wrong.returncode == 2, wrong
    print("1 passed, 0 failed, 0 skipped")


if __name__ == "__main__":
    process.settle_environment(tempfile.gettempdir())
    sys.exit(main())
