#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The prompt's line editor on a pseudo-terminal, judged by the screen it leaves.

    tests/property/editor.py RELAY [--share=F] [--seed=N] [--only=PART-OF-NAME]

Keys, history, pastes, terminals that answer garbage or change their width, and how the terminal is left.
"""
import fcntl
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.dont_write_bytecode = True
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TESTS)
import process
import share
from transcript import Terminal

UP, DOWN, LEFT, RIGHT = "\033[A", "\033[B", "\033[D", "\033[C"
PASTE = "\033[200~%s\033[201~"
PATIENCE = 60 * process.SLOW


class Wrong(Exception):
    pass


class Prompt(Terminal):
    """A prompt in a home of its own, or in one it shares."""

    def __init__(self, relay, home, columns=100, **environment):
        before = dict(os.environ)
        os.environ.update(XDG_STATE_HOME=home, **environment)
        try:
            super().__init__([relay], columns, PATIENCE)
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.relay = relay
        self.wait_prompt()

    def enter(self, text):
        """Types keys that end an entry, and waits for the next prompt."""
        self.type(text + "\r")
        if not self.wait_prompt():
            raise Wrong("no prompt after %r: %s" % (text, self.tail()))

    def tail(self, n=12):
        return "\n".join(self.screen.text()[-n:])

    def expect(self, words):
        if not self.wait(lambda: words in "\n".join(self.screen.text())):
            raise Wrong("%r is not on the screen:\n%s" % (words, self.tail()))

    def expect_line(self, text):
        """The line of the cursor is this one, in the end."""
        if not self.wait(lambda: self.screen.line().rstrip() == text):
            raise Wrong("the line is %r and not %r" % (self.screen.line().rstrip(), text))

    def leave(self):
        self.wait(self.is_edited)  # a key that comes before is the terminal's, which drops what waits with it
        self.send("\003\004")
        status = self.finish()
        if status != 0:
            raise Wrong("it ended with status %s: %s" % (status, self.tail()))


def settings(terminal):
    return termios.tcgetattr(terminal.fd)


def test_keys(relay, home):
    p = Prompt(relay, home)
    for begin, end in (("\033[H", "\033[F"), ("\033OH", "\033OF"), ("\033[1~", "\033[4~"), ("\033[7~", "\033[8~"),
                       ("\001", "\005")):
        p.enter("23" + begin + "1" + end + "4 + 0")
        p.expect("1234 : int32")
        p.enter("let it = 0")
    p.enter("1 + 2 + 3\033[1;5D\033[1;5D\033\177")  # back two words, remove the one before: + 2 + 3
    p.expect("\n5 : int32")
    p.enter("7 * 8\025\031")  # to the beginning, and back from the ring
    p.expect("56 : int32")
    p.enter("99\027\037 + 1")  # a word removed, and undone
    p.expect("100 : int32")
    p.enter("4\033[15~\033[[A\033[?1;2c\033]11;rgb:0/0/0\007\0332\033[99;99;99X1")  # what means nothing
    p.expect("41 : int32")
    p.leave()


def test_lines(relay, home):
    p = Prompt(relay, home)
    p.send("def f(x) {\rx +\r1\r}" + UP + UP + "\005 x +" + "\r")
    p.expect("f : fn")
    p.enter("f(5)")
    p.expect("11 : int32")
    p.send("(1 +\r")
    p.expect("  ...>")
    p.enter("\004")  # drops the entry, and not the session
    p.enter("40 + 2")
    p.expect("42 : int32")
    p.leave()


def test_history(relay, home):
    p = Prompt(relay, home)
    p.enter("1 + 1 // one")
    p.enter("let a = [1,\r2]")
    p.enter("2 + 2")
    p.enter("1 + 1 // one")
    p.type("1 +" + UP)
    p.expect_line("relay> 1 + 1 // one")
    p.type("\003")
    p.wait_prompt()
    p.leave()
    with open(os.path.join(home, "relay", "history"), encoding="utf-8") as f:
        text = f.read()
    if "let a = [1,\n\t  2]\n" not in text:
        raise Wrong("the history lost the lines of an entry: %r" % text)
    p = Prompt(relay, home)
    other = Prompt(relay, home)
    other.enter("3333 + 1")
    p.send("\02233")
    p.expect("search `33`: 3333 + 1")
    p.enter("")
    p.expect("3334 : int32")
    p.send("let" + UP)
    p.expect("  ...>   2]")
    p.send("\003")
    p.send(UP + UP + UP)
    p.expect_line("relay> 2 + 2")
    p.leave()
    other.leave()


def test_bad_history(relay, home):
    folder = os.path.join(home, "relay")
    os.makedirs(folder)
    path = os.path.join(folder, "history")
    with open(path, "wb") as f:
        f.write(bytes(range(256)) * 40 + b"\n\t\n\xff\xfe\n77 + 1\n")
    p = Prompt(relay, home)
    p.send(UP)
    p.expect_line("relay> 77 + 1")
    p.enter("")
    p.expect("78 : int32")
    p.leave()
    os.remove(path)
    os.mkdir(path)  # no file at all
    p = Prompt(relay, home)
    p.enter("5 + 5")
    p.send(UP)
    p.expect_line("relay> 5 + 5")
    p.leave()


def history_of(home):
    with open(os.path.join(home, "relay", "history"), encoding="utf-8") as f:
        return f.read()


def test_history_on_a_full_disk(relay, home):
    """A file may grow to 300 bytes and no further: entries that have no room are left out whole."""
    entries = ["let number%d = %d // %s" % (i, i, "x" * 40) for i in range(9)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        p = Prompt(relay, home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for entry in entries:
        p.enter(entry)
    p.send(UP + UP)
    p.expect_line("relay> " + entries[-2])
    p.type("\003")
    p.wait_prompt()
    p.enter(":save %s/kept.rly" % home)
    p.expect("cannot write `%s/kept.rly`" % home)
    p.enter(":tutor 1")
    p.enter("ys")
    p.enter(":tutor quit")
    p.enter("40 + 2")
    p.expect("42 : int32")
    p.leave()
    kept = history_of(home)
    if not kept.endswith("\n") or any(l not in entries + ["40 + 2"] for l in kept.splitlines()) or entries[0] not in kept:
        raise Wrong("the history has a part of an entry: %r" % kept)


def test_history_that_has_no_place(relay, home):
    p = Prompt(relay, "/proc/no-such-folder")
    p.enter("5 + 5")
    p.send(UP)
    p.expect_line("relay> 5 + 5")
    p.leave()


def test_two_prompts_write_at_once(relay, home):
    prompts = [Prompt(relay, home), Prompt(relay, home)]
    for p, letter in zip(prompts, "ab"):
        p.type("".join("%d + (\r%s%d)\r" % (i, "let x = 0; " + letter, i) for i in range(40)) + "\"%s ends\"\r" % letter)
    for p, letter in zip(prompts, "ab"):
        p.expect('"%s ends" : String' % letter)
        p.typed_row = p.screen.y - 1
        p.wait_prompt()
        p.leave()
    text = history_of(home)
    for i in range(40):
        for letter in "ab":
            entry = "%d + (\n\t  let x = 0; %s%d)\n" % (i, letter, i)
            if entry not in text:
                raise Wrong("%r is not in the history: %r" % (entry, text))


def test_without_utf8(relay, home):
    p = Prompt(relay, home, LC_ALL="C", LANG="C")
    p.enter("\"caf\u00e9 \u6f22\u5b57\" // \xe9")
    p.enter("6 * 7")
    p.expect("42 : int32")
    p.enter(":graph grad(fn (x) { sin(x) * x })(1.0)")
    p.expect("`- x")
    p.leave()


def test_paste(relay, home):
    p = Prompt(relay, home)
    p.enter(PASTE % "relay> let a = 20\r  a : int32\rrelay> a + nosuch\rrelay> a +\r  ...>   2\r")
    p.expect("there is no `nosuch`")
    p.expect("22 : int32")
    p.send(PASTE % "6 * 7")
    p.expect_line("relay> 6 * 7")
    p.enter("")
    p.expect("42 : int32")
    p.send(PASTE % "def even(n) { if (n == 0) { True } else { odd(n - 1) } }\rdef odd(n) { if (n == 0) { False } else "
           "{ even(n - 1) } }\r1 / 0\rodd(7)\rlet z = (1,\r")
    p.expect("True : bool")
    p.expect_line("  ...>")
    p.enter("2)")
    p.expect("z : (int32, int32)")
    p.leave()


def send_much(p, text):
    """Sends what the terminal does not hold at once, and reads what comes back meanwhile."""
    begun = os.get_blocking(p.fd)
    os.set_blocking(p.fd, False)
    data = text.encode()
    while data and p.open:
        try:
            data = data[os.write(p.fd, data[:4096]):]
        except BlockingIOError:
            p.read(0.01)
    os.set_blocking(p.fd, begun)


def test_paste_of_even_lines(relay, home):
    """A walk backwards over such lines by two bytes once left the text; it did not crash each time."""
    for _ in range(10):
        p = Prompt(relay, home)
        send_much(p, PASTE % ("let nam = 1\r" * 5000 + "let end = 2\r"))
        p.expect("end : int32")
        p.typed_row = p.screen.y - 1
        p.wait_prompt()
        p.leave()


def test_long_paste(relay, home, share_of_lines):
    p = Prompt(relay, home)
    n = share_of_lines
    text = PASTE % ("".join("let v%d = %d\r" % (i % 50, i) for i in range(n - 1)) + "v1 + nosuch\rv0 + v1 + v2 + v3;\r")
    before = process.cpu_seconds(p.pid)
    send_much(p, text)
    p.expect("there is no `nosuch`")
    p.typed_row = p.screen.y - 1
    p.wait_prompt()
    print("%d pasted lines: %.2f s of the processor" % (n, process.cpu_seconds(p.pid) - before))
    p.enter("12321 + 1")
    p.expect("12322 : int32")
    p.leave()


def test_narrow(relay, home):
    p = Prompt(relay, home, columns=10)
    p.enter("100 + 20 + 3")
    p.expect("\n123")
    p.send("\"\u6f22\u5b57 e\u0301\" // \u6f22\u5b57\u6f22\u5b57" + LEFT * 4 + "\177" * 3)
    p.leave()


def test_width_changes(relay, home):
    p = Prompt(relay, home, columns=60)
    p.send("let long = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]")
    p.expect("16]")
    for columns in (100, 20, 7, 60):
        fcntl.ioctl(p.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        p.screen.columns = columns
        p.read(0.2)
    p.send("\r")
    p.expect("long : Tensor[(16,), int32]")
    p.leave()


def test_dumb(relay, home):
    before = dict(os.environ)
    os.environ.update(XDG_STATE_HOME=home)
    master, slave = os.openpty()
    with subprocess.Popen([relay], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, TERM="dumb")) as program:
        os.write(master, b"(1 +\n2)\nlet a = (\n\n7 + 1\n\004")
        out = program.communicate(timeout=PATIENCE)[0].decode()
    os.close(master)
    os.close(slave)
    os.environ.clear()
    os.environ.update(before)
    if "\033" in out or "3 : int32" not in out or "8 : int32" not in out or program.returncode != 0:
        raise Wrong("status %s: %r" % (program.returncode, out))


def test_pictures(relay, home):
    """A plot on terminals that answer what they take, that they take nothing, garbage, or not at all."""
    kitty, sixel, text = "\033_Gi=31;OK\033\\\033[?62;c", "\033[?62;4;22c", "\033[?1;2c"
    for answer, wants, keys in ((kitty, "\033_Ga=T", ""), (sixel, "\033Pq", ""), (text, "└──", ""), ("", "└──", ""),
                                ("\033_Gi=31;ENOTSUP\033\\" + text, "└──", ""), ("\033]11;x\007\033[?", "└──", ""),
                                ("\033_" + "x" * 700, "└──", ""), ("2 + " + text, "└──", "40\r"),
                                ("\033" + kitty, "\033_Ga=T", "")):
        p = Prompt(relay, home, LC_ALL="C.UTF-8", TERM_PROGRAM="")
        raw = []
        feed = p.screen.feed

        def answering(data, raw=raw, feed=feed, p=p, answer=answer):
            raw.append(data)
            if "_Gi=31,s=1" in data and answer:
                p.send(answer)
            feed(data)
        p.enter("import plot")
        p.screen.feed = answering
        p.type("plot.scatter([1.0, 2.0], [3.0, 4.0])\r")
        if not p.wait(lambda: wants in "".join(raw) and p.is_edited()):
            if "cairo" in "".join(raw) or wants == "└──":
                raise Wrong("after %r: %r" % (answer, "".join(raw)[-2000:]))
        if keys:
            p.send(keys)
            p.expect("42 : int32")
        if "".join(raw).count("_Gi=31,s=1") != 1:
            raise Wrong("it was asked %d times" % "".join(raw).count("_Gi=31,s=1"))
        p.screen.feed = feed
        p.send("\003")
        p.wait(p.is_edited)
        p.send("\r12 * 12\r")
        p.expect("144 : int32")
        p.leave()


def test_edit(relay, home):
    """`:edit` in an editor that changes the text, changes nothing, fails, is not there, is ended, makes garbage."""
    script = os.path.join(home, "an editor")
    with open(script, "w") as f:
        f.write("#!/bin/sh\nsed -i -e s/one/two/ -e s/1/2/ \"$1\"\n")
    os.chmod(script, 0o755)
    p = Prompt(relay, home, VISUAL="", EDITOR="'%s'" % script)
    p.enter(":edit")
    p.expect("nothing was entered yet")
    p.enter("let one = 1")
    p.enter("def twice(x) {\r2 * x + 1\r}")
    p.enter("twice(21)")
    p.expect("43 : int32")
    p.enter(":ed twice")
    p.expect("relay> def twice(x) {\n  ...>   2 * x + 2")
    p.enter("twice(20)")
    p.expect("42 : int32")
    p.enter(":edit one")
    p.enter("two + 40")
    p.expect("42 : int32")
    p.enter("nosuch_1")
    p.enter(":edit")  # what failed is what one edits
    p.expect("there is no `nosuch_2`")
    p.enter(":edit sum")
    p.expect("`sum` is not defined by an entry or a file")
    with open(os.path.join(home, "some.rly"), "w") as f:
        f.write("let a = 1\ndef loaded(x) { x + 1 }")
    p.enter(":load %s/some.rly" % home)
    p.enter(":edit loaded")
    p.expect("relay> def loaded(x) { x + 2 }")
    p.leave()
    for editor, answer in (("true", "nothing was changed"), ("false", "`false` ended with status 1; nothing is entered"),
                           ("no-such-editor", "`no-such-editor` ended with status 127; nothing is entered"),
                           ("kill $$;", "`kill $$;` was ended by a signal; nothing is entered"), ("rm", "cannot read `"),
                           ("head -c 300 /dev/urandom | tee", "relay>")):
        p = Prompt(relay, home, VISUAL=editor)
        p.enter("40 + 1")
        p.enter(":edit")
        p.expect(answer)
        p.enter("50 + 6")
        p.expect("56 : int32")
        p.leave()


def test_left_as_found(relay, home):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT):
        p = Prompt(relay, home)
        p.send("1 + 2")
        p.expect_line("relay> 1 + 2")
        if not p.is_edited():
            raise Wrong("the terminal is not raw while a line is edited")
        raw = []
        p.screen.feed = lambda data: raw.append(data)
        # The terminal lives as long as its other end: another process holds it.
        held = os.open(os.readlink("/proc/%d/fd/0" % p.pid), os.O_RDWR | os.O_NOCTTY)
        os.kill(p.pid, number)
        _, status = os.waitpid(p.pid, 0)
        flags = termios.tcgetattr(held)[3]
        while p.read(0.1):
            pass
        os.close(held)
        os.close(p.fd)
        # A sanitizer takes what says a fault, and ends the program itself.
        taken = process.SLOW > 1 and number in (signal.SIGSEGV, signal.SIGABRT)
        if not taken and (not os.WIFSIGNALED(status) or os.WTERMSIG(status) != number):
            raise Wrong("signal %d: status %s" % (number, status))
        if not flags & termios.ICANON or not flags & termios.ECHO:
            raise Wrong("signal %d left the terminal raw" % number)
        if "\033[?2004l" not in "".join(raw):
            raise Wrong("signal %d left bracketed paste on" % number)


def test_random_keys(relay, home, seed):
    rng = random.Random(seed)
    keys = [UP, DOWN, LEFT, RIGHT, "\r", "\t", "\177", "\001", "\005", "\013", "\025", "\027", "\031", "\033y", "\033b",
            "\033f", "\033d", "\037", "\022", "\007", "\033", "\033[200~", "\033[201~", "\033[3~", "\024", "\014",
            "(", ")", "[", "{", "}", "\"", "let ", "def ", "x", "1", " ", "\u6f22", "e\u0301", ":t", "\xff"]
    p = Prompt(relay, home, columns=rng.choice((20, 80)))
    typed = "".join(rng.choice(keys) for _ in range(400))
    typed = re.sub(r":!|:q|:e|:s", ":t", typed)
    p.send(typed + "\033[201~\003\r\003\r\003")
    p.send("123456 + 1\r")
    p.expect("123457")
    p.wait(p.is_edited)
    p.send("\003\004")
    status = p.finish()
    if status is None or os.WIFSIGNALED(status):
        raise Wrong("status %s after %r" % (status, typed))


TESTS_HERE = [test_keys, test_lines, test_history, test_bad_history, test_history_on_a_full_disk, test_history_that_has_no_place,
              test_two_prompts_write_at_once, test_without_utf8, test_paste, test_paste_of_even_lines, test_narrow,
              test_width_changes, test_dumb, test_pictures, test_edit, test_left_as_found]


def main():
    parser = share.arguments(__doc__)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    relay = os.path.abspath(options.relay)
    jobs = [(t.__name__[5:], t, ()) for t in TESTS_HERE]
    jobs += [("long_paste", test_long_paste, (100000 if options.share == 1 and process.SLOW == 1 else 3000,))]
    jobs += [("random_keys %d" % seed, test_random_keys, (seed,))
             for seed in range(options.seed, options.seed + max(1, round(20 * options.share)))]
    passed = failed = 0
    for name, job, arguments in jobs:
        if options.only not in name:
            continue
        home = tempfile.mkdtemp()
        try:
            job(relay, home, *arguments)
            passed += 1
        except Wrong as wrong:
            failed += 1
            print("FAILED %s: %s" % (name, wrong))
        finally:
            shutil.rmtree(home, ignore_errors=True)
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    process.settle_environment(tempfile.gettempdir())
    sys.exit(main())
