#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots of every kind, in each form: files that are what they say, pictures of terminals, text; and of nan, of no
points, of ten million.

    tests/property/plots.py RELAY

What a picture looks like is for eyes; here are its size, its colours and its text.
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import xml.dom.minidom
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from process import PATIENCE, SLOW, run_program

KINDS = {
    "line": "plot.line([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])",
    "scatter": "plot.scatter([0, 1, 2], [0.0, 1.0, 4.0])",
    "bars": "plot.bars([3, 1, 2])",
    "hist": "plot.hist([[1.0, 2.0], [2.0, 2.5]])",
    "heat": "plot.heat([[1.0, 2.0, nan], [4.0, 5.0, 6.0]])",
    "image": "plot.image(ones(shape=[2, 3, 3]))",
    "grey": "plot.image(255 * ones(shape=[2, 3, 1], dtype=uint8))",
    "alpha": "plot.image(ones(shape=[2, 3, 4]))",
    "contour": "plot.contour(fn (x, y) { x * x + y * y }, -1.0, 1.0)",
    "functions": "plot.functions(list[sin, cos], -3.0, 3.0)",
    "over": "plot.over(list[plot.named(\"a\", plot.line([0, 1], [0, 1])), plot.named(\"b\", plot.scatter([0, 1], [1, 0]))])",
    "figure": "{ plot.figure(list[plot.bars([1, 2]), plot.figure(list[plot.bars([1]), plot.bars([2])])]) with title = \"all\" }",
    "log": "{ plot.line([1, 10, 100], [1, 100, 10000]) with log_across = True, log_up = True, title = \"t\", across = \"x\", up = \"y\" }",
    "nan": "plot.line([0.0, nan, 2.0], [nan, 1.0, inf])",
    "no points": "plot.line(zeros(shape=[0]), zeros(shape=[0]))",
    "no numbers": "plot.hist(zeros(shape=[0]))",
    "no matrix": "plot.heat(zeros(shape=[0, 3]))",
    "no plots": "plot.over(list[])",
    "an empty figure": "plot.figure(list[])",
    "one point": "plot.scatter([1.0], [5.0])",
    "a constant": "plot.line([1, 2], [7, 7])",
    "huge numbers": "plot.line([-1e38, 1e38], [1e-38, 3e38])",
    "negative on a logarithm": "{ plot.line([1.0, 2.0], [-1.0, 10.0]) with log_up = True }",
    "not UTF-8": "{ plot.bars([1]) with title = \"\\xff\" }",
}
MANY = "let x = cumsum(ones(shape=[%d], dtype=float64), axis=0); let y = sin(x * 0.001)"


def read_png(data):
    """Width, height and the set of colours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            body += data[at + 8:at + 8 + n]
        at += 12 + n
    raw = zlib.decompress(body)
    channels = {2: 3, 6: 4}[color]
    assert len(raw) == height * (1 + width * channels)
    return width, height, raw


def png_pixels(data):
    """Rows of (red, green, blue), the filters of the lines taken back."""
    width, height, raw = read_png(data)
    size = len(raw) // height - 1
    step, rows, above = size // width, [], bytes(size)
    for y in range(height):
        kind, line = raw[y * (size + 1)], bytearray(raw[y * (size + 1) + 1:(y + 1) * (size + 1)])
        for i in range(size):
            a, b, c = line[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            near = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[i] = line[i] + (0, a, b, (a + b) // 2, near)[kind] & 255
        rows.append([tuple(line[x:x + 3]) for x in range(0, size, step)])
        above = line
    return rows


def sixel_pixels(data):
    """Rows of (red, green, blue), of a picture that says its size and its palette."""
    body = re.search(r'\033Pq"1;1;(\d+);(\d+)(.*)\033\\', data, re.S)
    width, height = int(body.group(1)), int(body.group(2))
    rows, palette, x, y, color = [[None] * width for _ in range(height + 5)], {}, 0, 0, None
    for new, parts, again, char in re.findall(r"#(\d+)((?:;\d+){4})?|(?:!(\d+))?([?-~$-])", body.group(3)):
        if new:
            color = int(new)
            if parts:
                palette[color] = tuple(int(p) * 255 / 100 for p in parts.split(";")[2:])
        elif char in "$-":
            x, y = 0, y + (6 if char == "-" else 0)
        else:
            n = int(again or 1)
            for i in range(6):
                if ord(char) - 63 >> i & 1:
                    rows[y + i][x:x + n] = [palette[color]] * n
            x += n
    return rows[:height], len(palette)


class Test:
    def __init__(self, relay):
        self.relay, self.passed, self.failed = relay, 0, 0

    def check(self, ok, what):
        self.passed, self.failed = self.passed + bool(ok), self.failed + (not ok)
        if not ok:
            print(what)

    def run(self, text, env=None):
        before = dict(os.environ)
        os.environ.update(env or {})
        try:
            return run_program([self.relay, "-e", "import plot; " + text], b"", PATIENCE * SLOW)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def legend(self, folder):
        """It stands where nothing is drawn, or beside the plot."""
        line = "plot.named(\"a name that takes room\", plot.line([0, 1], [%d, %d]))"
        path = os.path.join(folder, "legend.svg")
        for lines in ([line % (1, 1)], [line % (0, 1), "plot.bars([0.0, 0.1])"], [line % (1, 1), line % (0, 0)]):
            _, _, err = self.run("save(plot.over(list[%s]), \"%s\")" % (", ".join(lines), path))
            if "libcairo" in err:
                return
            with open(path, encoding="utf-8") as f:
                svg = f.read()
            numbers = lambda text: [float(n) for n in re.findall(r"[0-9.]+", text)]
            box = numbers(re.search(r'fill-opacity[:=]"?0.85[^>]* d="([^"]*)"', svg).group(1))
            left, right, above, below = min(box[::2]), max(box[::2]), min(box[1::2]), max(box[1::2])
            seen = 0
            for drawn in re.findall(r'stroke-width[:=]"?1.8[^>]* d="([^"]*)"', svg):
                x0, y0, x1, y1 = numbers(drawn)[:4]
                at = [(x0 + (x1 - x0) * i / 999, y0 + (y1 - y0) * i / 999) for i in range(1000)]
                seen += 1
                self.check(not any(left < x < right and above < y < below for x, y in at), "a legend covers " + drawn)
            self.check(seen == len([l for l in lines if "line" in l]), "%d lines are drawn: %s" % (seen, svg))

    def text(self, name, expr):
        for ascii_only in (False, True):
            status, out, err = self.run(expr, {"TERM": "dumb" if ascii_only else "xterm"})
            self.check(status == 0 and not err, "%s: status %s, %s" % (name, status, err))
            lines = out.split("\n")
            self.check(all(len(l) <= 72 for l in lines), "%s: a line is too wide\n%s" % (name, out))
            self.check(not ascii_only or out.isascii() or name == "not UTF-8", "%s: no ASCII\n%s" % (name, out))
            self.check(all(l == l.rstrip() for l in lines), "%s: blanks at a line's end" % name)

    def on_terminal(self, expr):
        """Colours change nothing else."""
        plain = self.run(expr, {"TERM": "xterm", "LC_ALL": "C.UTF-8"})[1]
        text = self.shown(expr, TERM="xterm", TMUX="1")
        self.check("\033[" in text, "no colours on a terminal")
        bare = [l.rstrip() for l in re.sub(r"\033\[[0-9;]*m", "", text).split("\n")]
        self.check(bare == plain.split("\n"), "on a terminal:\n%s\nelse:\n%s" % ("\n".join(bare), plain))

    def sixel(self, expr, folder):
        """Every pixel is painted, with nearly the colour that it has in the file."""
        path = os.path.join(folder, "same.png")
        self.run("save(%s, \"%s\")" % (expr, path))
        with open(path, "rb") as f:
            wanted = png_pixels(f.read())
        found, colors = sixel_pixels(self.shown(expr, TERM="foot"))
        same = (len(found), len(found[0])) == (len(wanted), len(wanted[0]))
        self.check(same and colors <= 256, "%s: %d x %d in %d colours" % (expr, len(found[0]), len(found), colors))
        holes = sum(p is None for row in found for p in row)
        self.check(not holes, "%s: %d pixels have no colour" % (expr, holes))
        if same and not holes:
            far = [max(abs(a - b) for a, b in zip(p, q)) for r, s in zip(found, wanted) for p, q in zip(r, s)]
            self.check(max(far) < 40 and sum(far) / len(far) < 3, "%s: colours are off by %s, by %s" %
                       (expr, max(far), sum(far) / len(far)))

    def shown(self, expr, **env):
        """What a terminal of 80 by 40 is sent."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        ours_alone = ("NO_COLOR", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TMUX", "STY")
        env = dict({k: v for k, v in os.environ.items() if k not in ours_alone}, LC_ALL="C.UTF-8", **env)
        program = subprocess.Popen([self.relay, "-e", "import plot; " + expr], stdin=subprocess.DEVNULL, stdout=theirs,
                                   stderr=theirs, env=env)
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the program has gone
                break
            if not part:
                break
            shown += part
        program.wait()
        os.close(ours)
        return shown.decode().replace("\r\n", "\n")

    def files(self, name, expr, folder):
        paths = [os.path.join(folder, "p." + e) for e in ("svg", "png", "pdf")]
        status, out, err = self.run("let p = %s; %s" % (expr, "; ".join("save(p, \"%s\")" % p for p in paths)))
        if "libcairo" in err:
            return False
        self.check(status == 0 and not err, "%s: status %s, %s" % (name, status, err))
        if status:
            return True
        svg, png, pdf = (open(p, "rb").read() for p in paths)
        try:
            xml.dom.minidom.parseString(svg)
            width, height, raw = read_png(png)
            self.check(width >= 640 and height >= 420, "%s: %d x %d" % (name, width, height))
            self.check(len(set(raw)) > 1, "%s: nothing is drawn" % name)
        except Exception as e:
            self.check(False, "%s: %r" % (name, e))
        self.check(pdf.startswith(b"%PDF-") and b"%%EOF" in pdf[-20:], "%s: no PDF" % name)
        return True


    def ticks(self):
        """Bars that all stand at whole numbers and are so high have ticks at no others."""
        for bars, wanted in ("[3, 1, 2]", ["3", "2", "1", "0", "0 1 2"]), ("[0.5, 1.0]", ["1", "0.8", "0.6"]):
            _, out, _ = self.run("plot.bars(%s)" % bars, {"TERM": "dumb"})
            labels = [" ".join(re.findall(r"[0-9.]+", l)) for l in out.split("\n")]
            labels = [l for l in labels if l]
            self.check(labels[:len(wanted)] == wanted, "ticks of bars %s: %s" % (bars, labels))

    def small_picture(self, folder):
        """It has pixels enough that who smooths it between two of them does not blur it."""
        path = os.path.join(folder, "small.svg")
        status, _, err = self.run("save(plot.heat([[1.0, 2.0], [3.0, 4.0]]), \"%s\")" % path)
        with open(path, encoding="utf-8") as f:
            sizes = re.findall(r'<image[^>]* width="([0-9]+)" height="([0-9]+)"', f.read())
        self.check(status == 0 and sizes == [("1024", "1024")], "a small picture: %s %s" % (sizes, err))


def main():
    t = Test(os.path.abspath(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        has_cairo = True
        for name, expr in KINDS.items():
            t.text(name, expr)
            has_cairo = has_cairo and t.files(name, expr, folder)
        t.legend(folder)
        t.ticks()
        t.on_terminal("plot.functions(list[sin, cos], -6.0, 6.0)")
        status, out, err = t.run("save(plot.bars([1]), \"%s/p.npy\")" % folder)
        t.check(status == 1 and "a plot is saved as .svg, .png or .pdf" in err, err)
        status, out, err = t.run("save(plot.bars([1]), \"/none/p.svg\")")
        t.check(status == 1 and ("cannot be written" in err or "libcairo" in err), err)
        n = 10 ** 7 if SLOW == 1 else 10 ** 5
        status, out, err = t.run(MANY % n + "; plot.line(x, y)", {"TERM": "xterm"})
        t.check(status == 0 and out.count("⣿") > (500 if SLOW == 1 else 5), "a line of many points: %s %s\n%s" % (status, err, out))
        if has_cairo:
            t.small_picture(folder)
            t.sixel("plot.heat(reshape(linspace(0.0, 1.0, 600), newshape=[20, 30]))", folder)
            t.sixel("plot.functions(list[sin, cos], -3.0, 3.0)", folder)
            path = os.path.join(folder, "many.svg")
            status, out, err = t.run(MANY % n + "; save(plot.over(list[plot.line(x, y), plot.scatter(x, y)]), \"%s\")" % path)
            t.check(status == 0 and os.path.getsize(path) < 10e6, "many points: %s %s %s" % (status, err, os.path.getsize(path)))
    print("%d passed, %d failed, %d skipped" % (t.passed, t.failed, not has_cairo))
    return t.failed > 0


if __name__ == "__main__":
    sys.exit(main())
