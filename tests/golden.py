# SPDX-License-Identifier: Apache-2.0
"""Golden tests: tests/golden/**.rly. What a file should do stands in its comments:

    // expect: TEXT          the next line of standard output (one blank after the colon is dropped)
    // error: R0301 WORDS    a diagnostic of this code points at this line, and says WORDS
    // warning: R0901 WORDS  (error@+1, error@-2: that many lines further; error@other: in another file)
    // check: TEXT           output holds TEXT (several: in this order); then `expect` is not needed
    // check-not: TEXT       output, of which there is some, does not hold TEXT
    // flags: --x=y          options before the file; with --diagnostics=… the output is text, not matched
    // command: fmt --tvm    instead of running; only check, fmt and ir get the file's name
    // args: A B             arguments of the script
    // stdin: TEXT           standard input (several: its lines)
    // exit: N               the exit status, when it is not 1 after errors and else 0
    // engine: --jit=off     only this variant (several: each)
    // skip: REASON

An unexpected line or diagnostic is a failure, and so is death by a signal. That every other way of running
the file leaves the same is looked at elsewhere (engines/). A file that could not fail is a failure too: one that expects nothing (where a file
should say nothing, `// exit: 0` says so), a directive without its text, a comment that is nearly a
directive, and directives in a file `_NAME.rly`, which is there for others to import.
"""
import difflib
import json
import os
import re
import shlex
import signal

import messages
from process import PATIENCE, run_program

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = ["--jit=on"]
KINDS = ("expect", "error", "warning", "check", "check-not", "flags", "command", "args", "stdin", "exit",
         "engine", "skip")
DIRECTIVE = re.compile(r"//\s?(%s)(@[+-]\d+|@other)?:(?: (.*))?$" % "|".join(KINDS))
NEARLY = re.compile(r"//\s*([A-Za-z]+(?:[-_][A-Za-z]+)?)\s?(?:@\S*)?:(?:\s|$)")


class Golden:
    """What one file's comments say, and what is wrong with how they say it."""

    def __init__(self, path):
        self.path, self.name = path, os.path.relpath(path, HERE)
        self.expects, self.diags, self.checks, self.nots = [], [], [], []
        self.flags, self.command, self.args, self.stdin, self.exit = [], [], [], [], None
        self.engines, self.skip = [], None
        self.mistakes = []
        self.lenient = False  # output without `expect`, and progress lines, are no mistake: examples
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
            self.lines = f.read().split("\n")
        for number, line in enumerate(self.lines, 1):
            while True:  # a line may hold several: the last first
                m = None
                for found in re.finditer(r"//", line):
                    at = DIRECTIVE.match(line, found.start())
                    if at:
                        m = at
                if not m:
                    break
                self.directive(m.group(1), m.group(2) or "", (m.group(3) or "").rstrip("\r"), number)
                line = line[:m.start()].rstrip()
            for m in NEARLY.finditer(line):
                meant = difflib.get_close_matches(m.group(1).lower(), KINDS, 1, 0.8)
                if meant:
                    self.mistakes.append("line %d: %s is no directive, `// %s:` is" %
                                         (number, m.group().strip(), meant[0]))
        self.diags.sort(key=lambda d: d["line"] or 0)

    def directive(self, kind, where, text, number):
        if not text.strip() and kind not in ("expect", "stdin"):
            self.mistakes.append("line %d: `// %s:` without its text" % (number, kind))
        elif where and kind not in ("error", "warning"):
            self.mistakes.append("line %d: `%s%s:`, only a diagnostic is elsewhere" % (number, kind, where))
        elif kind == "expect":
            self.expects.append((number, text.rstrip()))
        elif kind in ("error", "warning"):
            code, _, words = text.strip().partition(" ")
            if not re.fullmatch(r"R\d{4}", code):
                self.mistakes.append("line %d: `%s` is no code of a diagnostic" % (number, code))
            line = None if where == "@other" else number + int(where[1:] or 0)
            self.diags.append({"severity": kind, "code": code, "words": words.strip(), "line": line})
        elif kind in ("check", "check-not"):
            (self.checks if kind == "check" else self.nots).append(text.strip())
        elif kind in ("flags", "command", "args"):
            setattr(self, kind, getattr(self, kind) + shlex.split(text))
        elif kind == "stdin":
            self.stdin.append(text)
        elif kind == "exit":
            if re.fullmatch(r"\d+", text.strip()):
                self.exit = int(text)
            else:
                self.mistakes.append("line %d: `%s` is no exit status" % (number, text))
        elif kind == "engine":
            self.engines.append(text.strip())
        elif kind == "skip":
            self.skip = text.strip()

    def expects_something(self):
        return bool(self.expects or self.diags or self.checks or self.nots or self.exit is not None)

    def prints_text(self):
        """Whether diagnostics come as text, which `check` looks at, and not as data to be matched."""
        return any(f.startswith("--diagnostics") for f in self.flags + self.args)

    def find_mistakes(self):
        """Why this file could not fail, or does not say what it seems to."""
        wrong = list(self.mistakes)
        if not (self.expects_something() or self.lenient or self.skip):
            wrong.append("it expects nothing; where nothing is to be said, write `// exit: 0`")
        if self.diags and self.prints_text():
            wrong.append("`--diagnostics` makes text of diagnostics: `check` looks at it, `error` does not")
        return wrong


def read_diags(err):
    diags, rest = [], []
    for line in err.splitlines():
        try:
            d = json.loads(line) if line.startswith('{"severity"') else None
        except ValueError:
            d = None
        if d:
            diags.append(d)
        else:
            rest.append(line)
    return diags, rest


def residuals_as_text(out):
    """The list of `check --residual` as other styles have it."""
    lines = out.split("\n")
    for i, line in enumerate(lines):
        if line.startswith('{"severity":"note"'):
            d = json.loads(line)
            lines[i] = "%s:%d:%d: %s" % (d["file"], d["line"], d["column"], d["message"])
    return "\n".join(lines)


def said(d):
    """All the words of a diagnostic."""
    return "\n".join([d["message"], d["label"]] + [l["label"] for l in d["labels"]] + d["facts"] +
                     d["helps"] + [s["message"] for s in d["suggestions"]])


def show_diag(d):
    return "%s:%s:%s: %s[%s]: %s" % (d["file"], d["line"], d["column"], d["severity"], d["code"],
                                     d["message"])


def match_diags(golden, diags):
    wrong, wanted = [], list(golden.diags)
    for d in diags:
        mine = d["file"] is None or os.path.basename(d["file"]) == os.path.basename(golden.path)
        for w in wanted:
            if (w["severity"] == d["severity"] and w["code"] == d["code"] and w["words"] in said(d)
                    and (w["line"] == d["line"] if mine and d["file"] else w["line"] is None or
                         d["file"] is None)):
                wanted.remove(w)
                break
        else:
            wrong.append("unexpected " + show_diag(d))
            if any(w["line"] == d["line"] and w["code"] == d["code"] for w in wanted):
                wrong.append("    it says: " + said(d).replace("\n", " | "))
    for w in wanted:
        wrong.append("no %s on line %s: %s %s" % (w["severity"], w["line"], w["code"], w["words"]))
    return wrong


def match_text(golden, out, text):
    wrong, at = [], 0
    for check in golden.checks:
        found = text.find(check, at)
        if found < 0:
            wrong.append("output does not hold `%s`%s" % (check, " here" if check in text else ""))
        else:
            at = found + len(check)
    wrong += ["output holds `%s`" % c for c in golden.nots if c in text]
    if golden.nots and not text.strip():
        wrong.append("output is empty: `check-not` has nothing to look at")
    if golden.expects or not (golden.checks or golden.lenient):
        got, want = [l.rstrip() for l in out.splitlines()], [t for _, t in golden.expects]
        for i in range(max(len(got), len(want))):
            g, w = (x[i] if i < len(x) else None for x in (got, want))
            if g != w:
                where = " (line %d)" % golden.expects[i][0] if i < len(want) else ""
                wrong.append("output line %d%s" % (i + 1, where))
                wrong.append("  expected %s" % ("nothing more" if w is None else w))
                wrong.append("  found    %s" % ("nothing more" if g is None else g))
                break
    elif wrong:
        wrong.append("output was:")
        wrong += ["  " + l for l in text.splitlines()[:40]]
    return wrong


def run_golden(options, golden, engine):
    """A list of what is wrong, and what bless needs."""
    text_diags = golden.prints_text()
    # Types are verified without passes (eval/verify.h), so a program that asks for them runs without that.
    passes = any(flag.startswith(("--opt", "--pass")) for flag in golden.flags)
    relay = os.path.join(options.build, "relay") if passes else options.relay
    command = [relay] + ([engine] if engine else []) + golden.flags
    if not text_diags:
        command.append("--diagnostics=json")
    directory, name = os.path.split(golden.path)
    command += golden.command
    if not golden.command or golden.command[0] in ("check", "fmt", "ir", "run"):
        command.append(name)
    stdin = "".join(l + "\n" for l in golden.stdin).encode("utf-8", "surrogateescape")
    status, out, err = run_program(command + golden.args, stdin, PATIENCE * options.slow, directory)
    diags, rest = ([], []) if text_diags else read_diags(err)
    if not text_diags:
        out = residuals_as_text(out)
    options.drawn.update((d["code"], d["message"]) for d in diags)
    options.drawn.update(messages.drawn_in(out + "\n" + err))
    options.drawn.update(("R0907", m) for m in re.findall("checked when running: .*", out))
    wrong = golden.find_mistakes()
    if status is None:
        wrong.append("no end")
    elif status < 0:
        wrong.append("died by signal %s" % signal.Signals(-status).name)
    if text_diags:
        wrong += match_text(golden, out, out + err)
    else:
        wrong += match_diags(golden, diags)
        wrong += match_text(golden, out, out + "\n".join(rest))
        if rest and not golden.checks and not golden.lenient:
            wrong.append("on standard error: " + "\n".join(rest[:40]))
    want = golden.exit
    if want is None and text_diags:
        want = 1 if re.search(r"^(\x1b\[[\d;]*m)*error\[", err, re.M) else 0
    elif want is None:
        want = 1 if any(d["severity"] == "error" for d in golden.diags) else 0
    if status is not None and status >= 0 and want is not None and status != want:
        wrong.append("exit status %d, expected %d" % (status, want))
    return wrong, out, diags


def bless(golden, out, diags):
    """Rewrites a file's expectations to what happened."""
    lines = list(golden.lines)
    got = [l.rstrip() for l in out.splitlines()]
    if len(got) == len(golden.expects):
        for (number, old), new in zip(golden.expects, got):
            head = lines[number - 1].split("// expect:", 1)[0]
            lines[number - 1] = (head + "// expect: " + new).rstrip()
    elif not golden.checks:
        kept = []
        for line in lines:
            stripped = re.sub(r"\s*// expect:.*$", "", line)
            if stripped or not line.strip():
                kept.append(stripped)
        while kept and not kept[-1]:
            kept.pop()
        lines = kept + [("// expect: " + l).rstrip() for l in got] + [""]
    if match_diags(golden, diags):
        lines = [re.sub(r"\s*// (error|warning)(@\S+)?:.*$", "", l) for l in lines]
        for d in diags:
            if d["line"] and d["line"] <= len(lines):
                lines[d["line"] - 1] += "  // %s: %s %s" % (d["severity"], d["code"], d["message"])
    with open(golden.path, "w", encoding="utf-8", errors="surrogateescape", newline="") as f:
        f.write("\n".join(lines))


def job(options, report, path, lenient=False):
    golden = Golden(path)
    golden.lenient = lenient
    if golden.skip and not golden.mistakes:
        report.add(golden.name, "skipped", golden.skip)
        return
    if golden.command and golden.command[0] in ("fmt", "check", "doc", "explain"):
        engines = [""]
    else:
        engines = golden.engines or options.engines
    for engine in engines:
        wrong, out, diags = run_golden(options, golden, engine)
        if wrong and options.bless:
            bless(golden, out, diags)
            golden = Golden(path)
            golden.lenient = lenient
            wrong, out, diags = run_golden(options, golden, engine)
            print(("not blessed " if wrong else "blessed ") + golden.name)
        name = golden.name + (" " + engine if engine else "")
        report.add(name, "failed" if wrong else "passed", "\n".join(wrong))


def format_job(options, report, path):
    """A file of golden/fmt is what `relay fmt` makes of it, and of its unformatted twin `_NAME`."""
    directory, name = os.path.split(path)
    with open(path, "rb") as f:
        want = f.read()
    flags = ["--tvm"] if name.startswith("tvm") else []
    for source in (name, "_" + name):
        if not os.path.exists(os.path.join(directory, source)):
            continue
        status, out, err = run_program([options.relay, "fmt", *flags, source], b"",
                                       PATIENCE * options.slow, directory)
        ok = status == 0 and out.encode("utf-8", "surrogateescape") == want
        found = "".join(difflib.unified_diff(want.decode().splitlines(True), out.splitlines(True),
                                             name, "relay fmt " + source))
        report.add("golden/fmt/%s formatted" % source, "passed" if ok else "failed", err + found)


def helpers_job(options, report, paths):
    """Files that others import are not run by themselves: what they would expect is not looked at."""
    wrong = ["%s expects something, and is not run" % os.path.relpath(path, HERE)
             for path in paths if Golden(path).expects_something()]
    report.add("golden helpers", "failed" if wrong else "passed", "\n".join(wrong))
