# SPDX-License-Identifier: Apache-2.0
"""Replays transcripts of the prompt on a real pseudo-terminal and compares what a person would see.

A transcript is what the screen shows: lines that begin with a prompt (`relay> ` or `  ...> `) are
typed, all others are output. `^C` at the end of a typed line, or on a line of its own, is sent as
the key, without Enter; so are `^D`, `\\t` for Tab and `\\e[A` for an arrow (what such a line looks like
in the end is not compared). `{*}` in a line stands for any text. The first lines may be `#! flags: …`, `#! columns: 80`, `#! folder: repl` (of tests/, to
run in), `#! needs: llvm` (skipped in a build without it), `#! skip: reason`.
"""
import codecs
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
import process

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
                m = re.compile(r"\033(?:\[([?>=]?)([\d;]*)([@-~])|\][^\007]*\007|_[^\033]*\033\\|[()][A-Z0-9]|[=>78M])"
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
    """A program on a pseudo-terminal. Nothing here depends on how soon it answers: the next line is typed
    when the prompt stands in a row below the last one and the terminal is the editor's."""

    def __init__(self, command, columns, patience=process.PATIENCE, folder=None):
        self.screen, self.patience = Screen(columns), patience
        command = [os.path.abspath(command[0])] + command[1:]
        self.typed_row = -1  # of the screen, where the last line was typed
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
                if folder:
                    os.chdir(folder)
                os.environ["TERM"] = "xterm"
                os.execv(command[0], command)
            finally:
                os._exit(127)
        process.limit_cpu(self.pid, process.CPU_LIMIT * process.SLOW)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
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

    def wait(self, holds):
        """Reads until a condition holds; False when the program has ended or hangs."""
        deadline = time.monotonic() + self.patience
        while self.open and time.monotonic() < deadline:
            if holds():
                return True
            self.read(0.02)
        return self.open and holds()

    def is_edited(self):
        """Whether the editor has the terminal: it takes the keys one by one."""
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def is_prompting(self):
        s = self.screen
        # An editor may have put indentation behind the prompt.
        return (s.y > self.typed_row and s.line()[:s.x].rstrip() in [p.rstrip() for p in PROMPTS]
                and self.is_edited())

    def wait_prompt(self):
        return self.wait(self.is_prompting)

    def wait_running(self):
        """Until what was typed has been taken and computes, or a prompt stands there already."""
        begun = []

        def runs():
            if self.is_prompting():
                return True
            if self.screen.y <= self.typed_row or self.is_edited():
                return False
            begun.append(process.cpu_seconds(self.pid))
            return begun[-1] >= begun[0] + 0.2
        return self.wait(runs)

    def send(self, text):
        try:
            data = text.encode()
            while data:
                data = data[os.write(self.fd, data):]
        except OSError:
            self.open = False

    def type(self, text):
        """Keys after which there will be another prompt."""
        self.typed_row = self.screen.y
        self.send(text)

    def finish(self):
        """The status of the program once it has ended; None when it had to be killed."""
        self.wait(lambda: False)
        ended = []

        def has_ended():
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                ended.append(status)
                process.count_time(usage)
            return bool(pid)
        try:
            if process.wait_until(has_ended, self.patience if not self.open else 0):
                return ended[0]
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return None
        finally:
            os.close(self.fd)


KEYS = re.compile(r"\^([A-Z\[])|\\t|\\e")


def keys(text):
    """Typed text with its control keys, and whether Enter follows."""
    def key(m):
        if m.group(1):
            return chr(ord(m.group(1)) - 64)
        return "\t" if m.group(0) == "\\t" else "\033"
    return KEYS.sub(key, text), not re.search(r"\^[CD]$", text)


def replay(command, lines, columns, patience, folder=None):
    terminal = Terminal(command, columns, patience, folder)
    alive = terminal.wait_prompt()
    for line in lines:
        prompt = next((p for p in PROMPTS if line.startswith(p)), None)
        if line.rstrip() in [p.rstrip() for p in PROMPTS]:
            prompt, line = line.rstrip(), line.rstrip()
        if line == "^C":
            terminal.wait_running()
            terminal.send("\003")
        elif prompt is not None:
            if not terminal.wait_prompt():
                break
            text, enter = keys(line[len(prompt):])
            terminal.type(text + "\n" * enter)
    if alive and terminal.wait_prompt():
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
    screen, status = replay([options.relay] + flags, body, columns, process.PATIENCE * options.slow, folder)
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


LIBRARIES = ("llvm", "openblas", "utf8proc")  # that a build may be without


def is_built_with(folder, library):
    """Whether the program of a build folder has a library."""
    with open(os.path.join(folder, "config.h"), encoding="utf-8") as f:
        return "#define HAVE_%s 1" % library.upper() in f.read()


def find_mistakes(body):
    """Why a transcript could not fail."""
    typed = [l for l in body if l.startswith(PROMPTS)]
    if not typed:
        return ["nothing is typed"]
    shown = [l for l in body[body.index(typed[0]):] if not l.startswith(PROMPTS) and l not in ("", "^C")]
    if not any(l.strip() and l.strip() != "{*}" for l in shown):
        return ["no answer is compared"]
    return []


def job(options, report, path):
    name = os.path.relpath(path, HERE)
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    head, flags, columns, folder, mistakes, skipped = 0, [], 100, None, [], None
    while lines[head].startswith("#"):
        kind, _, text = lines[head].lstrip("#! ").partition(":")
        text = text.strip()
        if not text:
            mistakes.append("line %d: `%s` without its text" % (head + 1, kind))
        elif kind == "flags":
            flags = text.split()
        elif kind == "columns":
            columns = int(text)
        elif kind == "folder":
            folder = os.path.join(HERE, text)
        elif kind == "skip":
            skipped = text
        elif kind == "needs" and text in LIBRARIES:
            skipped = None if is_built_with(options.build, text) else "built without " + text
        else:
            mistakes.append("line %d: there is no `%s`" % (head + 1, text if kind == "needs" else kind))
        head += 1
    body = lines[head:]
    mistakes += find_mistakes(body)
    # The screen would show a wide line in two, and the next replay type only the first.
    mistakes += ["wider than %d columns: %s" % (columns, l) for l in body
                 if l.startswith(PROMPTS) and len(l) >= columns]
    if mistakes or skipped:
        report.add(name, "failed" if mistakes else "skipped", "\n".join(mistakes) or skipped)
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
