# SPDX-License-Identifier: Apache-2.0
"""Replays transcripts of the prompt on a real pseudo-terminal and compares what a person would see.

A transcript is what the screen shows: lines that begin with a prompt (`relay> ` or `  ...> `) are
typed, all others are output. `^C` at the end of a typed line, or on a line of its own, is sent as
the key, without Enter; so are `^D`, `\\t` for Tab and `\\e[A` for an arrow (what such a line looks like
in the end is not compared). `{*}` in a line stands for any text. The first lines may be `#! flags: …`, `#! columns: 80`, `#! folder: repl` (of tests/, to
run in), `#! needs: libedit` (skipped in a build without it), `#! skip: reason`.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import messages

PROMPTS = ("relay> ", "  ...> ")
HERE = os.path.dirname(os.path.abspath(__file__))


class Screen:
    """As much of a terminal as line editors use: cursor movement and erasing, no colours."""

    def __init__(self, columns):
        self.columns, self.rows, self.x, self.y, self.pending = columns, [[]], 0, 0, ""

    def feed(self, data):
        data = self.pending + data
        self.pending = ""
        i = 0
        while i < len(data):
            c = data[i]
            if c == "\033":
                m = re.compile(r"\033(?:\[([?>=]?)([\d;]*)([@-~])|\][^\007]*\007|[()][A-Z0-9]|[=>78M])"
                               ).match(data, i)
                if not m:
                    if len(data) - i < 40:
                        self.pending = data[i:]
                        return
                    i += 1
                    continue
                if m.group(3) and not m.group(1):
                    self.control(m.group(3), [int(n or 0) for n in m.group(2).split(";")])
                i = m.end()
                continue
            if c == "\r":
                self.x = 0
            elif c == "\n":
                self.y += 1
                if self.y == len(self.rows):
                    self.rows.append([])
            elif c == "\b":
                self.x = max(0, self.x - 1)
            elif c == "\t":
                self.x = (self.x // 8 + 1) * 8
            elif c >= " ":
                if self.x >= self.columns:
                    self.x = 0
                    self.feed("\n")
                row = self.rows[self.y]
                row += " " * (self.x - len(row))
                row[self.x:self.x + 1] = [c]
                self.x += 1
            i += 1

    def control(self, letter, numbers):
        n = max(1, numbers[0])
        row = self.rows[self.y]
        if letter == "A":
            self.y = max(0, self.y - n)
        elif letter == "B":
            self.y = min(len(self.rows) - 1, self.y + n)
        elif letter == "C":
            self.x += n
        elif letter == "D":
            self.x = max(0, self.x - n)
        elif letter == "G":
            self.x = n - 1
        elif letter == "K" and numbers[0] == 0:
            del row[self.x:]
        elif letter == "J" and numbers[0] == 0:
            del row[self.x:]
            del self.rows[self.y + 1:]
        elif letter == "P":
            del row[self.x:self.x + n]
        elif letter == "@":
            row[self.x:self.x] = [" "] * n

    def line(self):
        return "".join(self.rows[self.y])

    def text(self):
        lines = ["".join(r).rstrip() for r in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines


class Terminal:
    def __init__(self, command, columns, seconds, folder=None):
        self.screen, self.columns = Screen(columns), columns
        self.deadline = time.monotonic() + seconds
        command = [os.path.abspath(command[0])] + command[1:]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                if folder:
                    os.chdir(folder)
                os.environ["TERM"] = "xterm"
                os.execv(command[0], command)
            finally:
                os._exit(127)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.decoder = __import__("codecs").getincrementaldecoder("utf-8")("replace")
        self.open = True

    def read(self, seconds):
        """Feeds the screen with what comes within `seconds`; False when nothing did."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        if not data:
            self.open = False
            return False
        self.screen.feed(self.decoder.decode(data))
        return True

    def wait_prompt(self):
        """Until the cursor stands behind a prompt and nothing more comes."""
        while self.open and time.monotonic() < self.deadline:
            quiet = not self.read(0.02)
            s = self.screen
            if quiet and s.line()[:s.x] in PROMPTS + tuple(p.rstrip() for p in PROMPTS):
                return True
        return False

    def send(self, text):
        try:
            os.write(self.fd, text.encode())
        except OSError:
            self.open = False

    def finish(self):
        while self.open and time.monotonic() < self.deadline:
            self.read(0.05)
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            for _ in range(100):
                if pid:
                    break
                time.sleep(0.01)
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            if not pid:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                status = None
        finally:
            os.close(self.fd)
        return status


KEYS = re.compile(r"\^([A-Z\[])|\\t|\\e")


def keys(text):
    """Typed text with its control keys, and whether Enter follows."""
    def key(m):
        if m.group(1):
            return chr(ord(m.group(1)) - 64)
        return "\t" if m.group(0) == "\\t" else "\033"
    return KEYS.sub(key, text), not re.search(r"\^[CD]$", text)


def replay(command, lines, columns, seconds, folder=None):
    terminal = Terminal(command, columns, seconds, folder)
    alive = terminal.wait_prompt()
    for line in lines:
        prompt = next((p for p in PROMPTS if line.startswith(p)), None)
        if line.rstrip() in [p.rstrip() for p in PROMPTS]:
            prompt, line = line.rstrip(), line.rstrip()
        if line == "^C":  # while something runs
            for _ in range(10):
                terminal.read(0.05)
            terminal.send("\003")
        elif prompt is None:
            continue
        else:
            if not terminal.wait_prompt():
                break
            text, enter = keys(line[len(prompt):])
            if "\t" in text or "\033" in text:  # give the editor time for each key
                for piece in re.split(r"(\t|\033\[.)", text):
                    terminal.send(piece)
                    while terminal.read(0.1):
                        pass
            else:
                terminal.send(text)
            if enter:
                terminal.send("\n")
            while terminal.read(0.05):
                pass
    if alive and terminal.open:
        if terminal.wait_prompt():
            terminal.send("\004")
    return terminal.screen, terminal.finish()


def same(want, got):
    prompt = next((p for p in PROMPTS if want.startswith(p)), None)
    if prompt and re.search(r"\\t|\\e", want):
        return got.startswith(prompt)
    if want == "relay> ^D" and got == "relay>":  # not every editor echoes the key
        return True
    if "{*}" not in want:
        return want == got
    return re.fullmatch(".*".join(re.escape(p) for p in want.split("{*}")), got) is not None


def compare(options, body, flags, columns, first_line=1, folder=None):
    """What is wrong, what the screen showed, and the exit status."""
    body = list(body)
    while body and not body[-1].strip():
        body.pop()
    screen, status = replay([options.relay] + flags, body, columns, 20 * options.slow, folder)
    got = screen.text()
    if got and body and got[-1] in ("relay>", "relay> ^D") and not body[-1].startswith("relay>"):
        got.pop()
    want = [l.rstrip() for l in body]
    wrong = []
    for i in range(max(len(want), len(got))):
        w, g = (x[i] if i < len(x) else None for x in (want, got))
        if w is None or g is None or not same(w, g):
            wrong = ["line %d" % (first_line + i), "  expected " + str(w), "  found    " + str(g),
                     "the screen:"] + ["  " + l for l in got[max(0, i - 20):i + 40]]
            break
    if status is None:
        wrong.append("it did not end")
    elif os.WIFSIGNALED(status):
        wrong.append("died by signal %d" % os.WTERMSIG(status))
    return wrong, got, status


def configured(options, name):
    with open(os.path.join(options.build, "config.h"), encoding="utf-8") as f:
        return "#define HAVE_%s 1" % name.upper() in f.read()


def job(options, report, path):
    name = os.path.relpath(path, HERE)
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    head, flags, columns, folder = 0, [], 100, None
    while lines[head].startswith("#"):
        kind, _, text = lines[head].lstrip("#! ").partition(":")
        if kind == "flags":
            flags = text.split()
        elif kind == "columns":
            columns = int(text)
        elif kind == "folder":
            folder = os.path.join(HERE, text.strip())
        elif kind == "skip":
            report.add(name, "skipped", text.strip())
            return
        elif kind == "needs" and not configured(options, text.strip()):
            report.add(name, "skipped", "built without " + text.strip())
            return
        head += 1
    body = lines[head:]
    wide = [l for l in body if l.startswith(PROMPTS) and len(l) >= columns]
    if wide:  # the screen would show it in two lines, and the next replay type only the first
        report.add(name, "failed", "wider than %d columns: %s" % (columns, wide[0]))
        return
    wrong, got, status = compare(options, body, flags, columns, head + 1, folder)
    options.drawn.update(messages.drawn_in("\n".join(got)))
    by_hand = any(re.search(r"\\t|\\e|\{\*\}", l) for l in body)
    if wrong and options.bless and not by_hand and status is not None and not os.WIFSIGNALED(status):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines[:head] + got) + "\n")
        print("blessed " + name)
        wrong = []
    report.add(name, "failed" if wrong else "passed", "\n".join(wrong))
