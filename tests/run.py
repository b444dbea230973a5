#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test runner. `make check` calls it; by hand: tests/run.py --build=build golden [PART-OF-NAME ...]

Golden tests are tests/golden/**.rly. What a file should do stands in its comments:

    // expect: TEXT          the next line of standard output (one blank after the colon is dropped)
    // error: R0301 WORDS    a diagnostic of this code points at this line, and says WORDS
    // warning: R0901 WORDS  (error@+1, error@-2: that many lines further; error@other: in another file)
    // check: TEXT           output holds TEXT (several: in this order); then `expect` is not needed
    // check-not: TEXT       output does not hold TEXT
    // flags: --x=y          options before the file; with --diagnostics=… the output is text, not matched
    // command: fmt --tvm    instead of running; only check, fmt and ir get the file's name
    // args: A B             arguments of the script
    // stdin: TEXT           standard input (several: its lines)
    // exit: N               the exit status, when it is not 1 after errors and else 0
    // engine: --jit=off     only this variant (several: each)
    // timeout: SECONDS      instead of 10
    // skip: REASON

An unexpected line or diagnostic is a failure, and so is death by a signal. Every file runs in every
variant of ENGINES. Transcripts of the prompt, tests/repl/*.repl, are replayed by tests/transcript.py;
unit tests are programs that print `ok NAME` or `FAILED NAME: why`; examples/ and the blocks in docs/
(tests/docs.py) are run too. --bless rewrites what is expected.
The last line is `N passed, N failed, N skipped`.
"""
import argparse
import concurrent.futures
import difflib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import messages

ENGINES = ["--jit=on", "--jit=off", "--engine=reference"]
DIRECTIVE = re.compile(r"//\s?(expect|error|warning|check|check-not|flags|command|args|stdin|exit|"
                       r"engine|timeout|skip)(@[+-]\d+|@other)?:(?: (.*))?$")


class Report:
    """Counts, and prints failures as they come; one line a failing test, then its details."""

    def __init__(self, verbose):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.verbose, self.lock = verbose, threading.Lock()

    def add(self, name, result, details=""):
        with self.lock:
            setattr(self, result, getattr(self, result) + 1)
            if result == "failed":
                print("FAILED " + name)
                for line in details.rstrip("\n").split("\n"):
                    print("    " + line)
            elif self.verbose:
                print("%s %s%s" % (result, name, details and ": " + details))
            sys.stdout.flush()


class Golden:
    """What one file's comments say."""

    def __init__(self, path):
        self.path, self.name = path, os.path.relpath(path, HERE)
        self.expects, self.diags, self.checks, self.nots = [], [], [], []
        self.flags, self.command, self.args, self.stdin, self.exit = [], [], [], [], None
        self.engines, self.timeout, self.skip = [], 10.0, None
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
        if self.diags:
            self.diags.sort(key=lambda d: d["line"] or 0)

    def directive(self, kind, where, text, number):
        if kind == "expect":
            self.expects.append((number, text.rstrip()))
        elif kind in ("error", "warning"):
            code, _, words = text.strip().partition(" ")
            line = None if where == "@other" else number + int(where[1:] or 0)
            self.diags.append({"severity": kind, "code": code, "words": words.strip(), "line": line})
        elif kind in ("check", "check-not"):
            (self.checks if kind == "check" else self.nots).append(text.strip())
        elif kind in ("flags", "command", "args"):
            setattr(self, kind, getattr(self, kind) + shlex.split(text))
        elif kind == "stdin":
            self.stdin.append(text)
        elif kind == "exit":
            self.exit = int(text)
        elif kind == "engine":
            self.engines.append(text.strip())
        elif kind == "timeout":
            self.timeout = float(text)
        elif kind == "skip":
            self.skip = text or "no reason given"


def run_program(command, stdin, timeout, cwd):
    """(status, stdout, stderr); the status is None after a time-out."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, cwd=cwd, start_new_session=True)
    try:
        out, err = p.communicate(stdin, timeout=timeout)
        return p.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        return None, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


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
    text_diags = any(f.startswith("--diagnostics") for f in golden.flags + golden.args)
    command = [options.relay] + ([engine] if engine else []) + golden.flags
    if not text_diags:
        command.append("--diagnostics=json")
    directory, name = os.path.split(golden.path)
    command += golden.command
    if not golden.command or golden.command[0] in ("check", "fmt", "ir", "run"):
        command.append(name)
    stdin = "".join(l + "\n" for l in golden.stdin).encode("utf-8", "surrogateescape")
    status, out, err = run_program(command + golden.args, stdin,
                                   golden.timeout * options.slow, directory)
    diags, rest = ([], []) if text_diags else read_diags(err)
    if not text_diags:
        out = residuals_as_text(out)
    options.drawn.update((d["code"], d["message"]) for d in diags)
    options.drawn.update(messages.drawn_in(out + "\n" + err))
    options.drawn.update(("R0907", m) for m in re.findall("checked when running: .*", out))
    wrong = []
    if status is None:
        wrong.append("no end after %g s" % (golden.timeout * options.slow))
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
    if want is None and not text_diags:
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


def golden_job(options, report, path, lenient=False):
    golden = Golden(path)
    golden.lenient = lenient
    if golden.skip:
        report.add(golden.name, "skipped", golden.skip)
        return
    if golden.command and golden.command[0] in ("fmt", "check", "doc", "explain"):
        engines = [""]
    else:
        engines = golden.engines or [e for e in options.engines]
    for engine in engines:
        wrong, out, diags = run_golden(options, golden, engine)
        if wrong and options.bless:
            bless(golden, out, diags)
            golden = Golden(path)
            wrong, out, diags = run_golden(options, golden, engine)
            print("blessed " + golden.name)
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
                                       30 * options.slow, directory)
        ok = status == 0 and out.encode("utf-8", "surrogateescape") == want
        found = "".join(difflib.unified_diff(want.decode().splitlines(True), out.splitlines(True),
                                             name, "relay fmt " + source))
        report.add("golden/fmt/%s formatted" % source, "passed" if ok else "failed", err + found)


def unit_job(options, report, program):
    status, out, err = run_program([os.path.join(options.build, program)], b"", 300 * options.slow,
                                   options.build)
    failed, lines = False, out.splitlines()
    for i, line in enumerate(lines):
        word, _, name = line.partition(" ")
        if word == "ok":
            report.add(program + " " + name, "passed")
        elif word == "skip":
            report.add(program + " " + name, "skipped")
        elif word == "FAILED":
            failed = True
            end = i + 1
            while end < len(lines) and lines[end].partition(" ")[0] not in ("ok", "skip", "FAILED"):
                end += 1
            name, _, why = name.partition(": ")
            report.add(program + " " + name, "failed", "\n".join([why] + lines[i + 1:end][:60]))
    if status != 0 and not failed:
        why = "no end" if status is None else "exit status %d" % status
        report.add(program, "failed", why + "\n" + out[-2000:] + err[-4000:])
    elif not failed and not out:
        report.add(program, "failed", "it ran no test")


def property_job(options, report, path):
    """A script that takes the program and ends with `N passed, N failed, N skipped`."""
    name = os.path.relpath(path, HERE)
    status, out, err = run_program([sys.executable, path, options.relay], b"", 300 * options.slow, None)
    counts = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*$", out)
    if not counts:
        report.add(name, "failed", "it printed no count; status %s\n%s" % (status, (out + err)[-2000:]))
        return
    for _ in range(int(counts.group(1))):
        report.add(name, "passed")
    if int(counts.group(2)) or status:
        report.add(name, "failed", out[-4000:])


def find_files(folder, ending, parts):
    found = []
    for directory, _, names in os.walk(folder):
        found += [os.path.join(directory, n) for n in names
                  if n.endswith(ending) and not n.startswith("_")]
    found.sort()
    return [f for f in found if not parts or any(p in os.path.relpath(f, HERE) for p in parts)]


def main():
    p = argparse.ArgumentParser(
        usage="run.py [options] [golden] [repl] [examples] [docs] [PART-OF-NAME ...]")
    p.add_argument("--build", default=os.path.join(ROOT, "build"), help="where make ran")
    p.add_argument("--cc", default="cc", help="compiler for --lint")
    p.add_argument("--lint", action="store_true")
    p.add_argument("--unit", default="", help="programs, separated by commas")
    p.add_argument("--bless", action="store_true")
    p.add_argument("--engines", default=",".join(ENGINES))
    p.add_argument("--jobs", "-j", type=int, default=2)
    p.add_argument("--slow", type=float, default=1.0, help="multiplies every time limit")
    p.add_argument("--skip", default="", help="parts of names of property tests to leave out, separated by commas")
    p.add_argument("--verbose", "-v", action="store_true")
    p.add_argument("what", nargs="*")
    options = p.parse_intermixed_args()
    options.build = os.path.abspath(options.build)
    options.relay = os.path.join(options.build, "relay")
    options.engines = options.engines.split(",")
    options.drawn = set()  # (code, message) of all diagnostics
    suites = [w for w in options.what if w in ("golden", "repl", "docs", "examples", "property")]
    parts = [w for w in options.what if w not in suites]
    if parts and not suites:
        suites = ["golden", "repl", "examples"]

    with tempfile.TemporaryDirectory(prefix="relay-test-") as home:
        os.environ.update(HOME=home, XDG_CACHE_HOME=home, XDG_STATE_HOME=home, XDG_CONFIG_HOME=home,
                          LC_ALL="C.UTF-8", TERM="dumb", OMP_NUM_THREADS="1",
                          RELAY_SLOW=str(options.slow))
        for name in ("NO_COLOR", "RELAY_PATH", "RELAY_STDLIB", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
        report = Report(options.verbose)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = []
            if options.lint:
                import lint
                jobs += [pool.submit(check, report, options) for check in lint.CHECKS]
            for program in filter(None, options.unit.split(",")):
                jobs.append(pool.submit(unit_job, options, report, program))
            if "golden" in suites:
                for path in find_files(os.path.join(HERE, "golden"), ".rly", parts):
                    jobs.append(pool.submit(golden_job, options, report, path))
                    if os.path.basename(os.path.dirname(path)) == "fmt":
                        jobs.append(pool.submit(format_job, options, report, path))
            if "repl" in suites:
                import transcript
                for path in find_files(os.path.join(HERE, "repl"), ".repl", parts):
                    jobs.append(pool.submit(transcript.job, options, report, path))
            if "examples" in suites:
                for path in find_files(os.path.join(ROOT, "examples"), ".rly", parts):
                    jobs.append(pool.submit(golden_job, options, report, path, True))
            if "docs" in suites:
                import docs
                for path in [os.path.join(ROOT, "README.md")] + find_files(
                        os.path.join(ROOT, "docs"), ".md", parts):
                    jobs.append(pool.submit(docs.job, options, report, path, sys.modules[__name__]))
            if "property" in suites:
                for path in find_files(os.path.join(HERE, "property"), ".py", parts):
                    if any(s in os.path.basename(path) for s in filter(None, options.skip.split(","))):
                        continue
                    jobs.append(pool.submit(property_job, options, report, path))
            try:
                for job in jobs:
                    job.result()
                if {"golden", "repl", "docs"} <= set(suites) and not parts:
                    messages.check(report, options)
            except KeyboardInterrupt:
                for job in jobs:
                    job.cancel()
                raise
    summary = "%d passed, %d failed, %d skipped" % (report.passed, report.failed, report.skipped)
    with open(os.path.join(options.build, "test-summary"), "w") as f:
        f.write(summary + "\n")
    print(summary)
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
