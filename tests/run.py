#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The test runner. `make check` calls it; by hand: tests/run.py --build=build golden [PART-OF-NAME ...]

Its suites, each of which may be named:

    golden     tests/golden/**.rly; golden.py says what their comments mean
    repl       transcripts of the prompt, tests/repl/*.repl (transcript.py)
    engines    the programs of both in every way of running them (engines/engines.py)
    examples   examples/**.rly
    docs       the blocks in README.md, docs/*.md and the manual page (docs.py)
    property   tests/property/*.py, scripts that take the program and end with a count
    harness    whether all of this notices what it should (harness.py)

and, by options, --lint (lint.py) and --unit=PROGRAMS, which print `ok NAME`, `skip NAME` or `FAILED NAME: why`.
--share and --seed say how much of the long tests runs, and which part (share.py); a failure of such a
test says them. --times tells where the processor's time went. --bless rewrites what is expected.
The last line is `N passed, N failed, N skipped`.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import resource
import shlex
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(HERE, "engines")]
sys.dont_write_bytecode = True
import golden
import messages
import process
import share
from process import PATIENCE, run_program

SUITES = ("golden", "repl", "docs", "examples", "property", "harness", "engines")


class Report:
    """Counts, and prints failures as they come; one line a failing test, then its details."""

    def __init__(self, verbose):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.verbose, self.lock = verbose, threading.Lock()
        self.times = []  # (suite, name, processor time, time of the clock)

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


def timed(suite, name, report, job, *arguments):
    """Does a job and notes what it took, in this thread and in the programs it waited for."""
    begun, process.spent.seconds, own = time.monotonic(), 0.0, time.thread_time()
    try:
        job(*arguments)
    except Exception:  # a mistake of the harness is one failed test, and not the end of all
        report.add(name, "failed", traceback.format_exc())
    cpu = process.spent.seconds + time.thread_time() - own
    with report.lock:
        report.times.append((suite, name, cpu, time.monotonic() - begun))


def print_times(report, jobs):
    """Processor time by suite and the longest jobs. Idle, a run takes the sum shared among the processors."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(u.ru_utime + u.ru_stime for u in used)
    suites, counts = collections.Counter(), collections.Counter()
    for suite, _, cpu, _ in report.times:
        suites[suite] += cpu
        counts[suite] += 1
    suites["the rest"] = total - sum(suites.values())
    for suite, cpu in suites.most_common():
        print("%7.1f s  %s (%d)" % (cpu, suite, counts[suite]))
    for suite, name, cpu, wall in sorted(report.times, key=lambda t: -t[2])[:25]:
        print("%7.1f s  %7.1f s of the clock  %s" % (cpu, wall, name))
    longest = max((cpu for _, _, cpu, _ in report.times), default=0.0)
    print("%.0f s of processor time, about %.0f s of an idle machine with %d processors" %
          (total, max(total / jobs, longest), jobs))


def again(options, what):
    """The command that runs a test as it was run."""
    return "again: tests/run.py --build=BUILD --share=%g --seed=%d %s" % (options.share, options.seed, what)


def unit_job(options, report, program):
    status, out, err = run_program([os.path.join(options.build, program)], b"", PATIENCE * options.slow,
                                   options.build)
    failed, lines = False, out.splitlines()
    words = [line.partition(" ") for line in lines]
    for i, (word, _, name) in enumerate(words):
        if word == "ok":
            report.add(program + " " + name, "passed")
        elif word == "skip":
            report.add(program + " " + name, "skipped")
        elif word == "FAILED":
            failed = True
            end = i + 1
            while end < len(lines) and words[end][0] not in ("ok", "skip", "FAILED"):
                end += 1
            name, _, why = name.partition(": ")
            report.add(program + " " + name, "failed", "\n".join(
                [why] + lines[i + 1:end][:60] + [again(options, "--unit=" + program)]))
    if status != 0 and not failed:
        why = "no end" if status is None else "exit status %d" % status
        report.add(program, "failed", why + "\n" + out[-2000:] + err[-4000:])
    elif not any(word in ("ok", "skip", "FAILED") for word, _, _ in words):
        report.add(program, "failed", "it ran no test")


def property_job(options, report, path):
    name = os.path.relpath(path, HERE)
    status, out, err = run_program([sys.executable, path, options.relay], b"", PATIENCE * options.slow)
    counts = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped\s*\Z", out, re.M)
    passed, failed, skipped = map(int, counts.groups()) if counts else (0, 0, 0)
    for _ in range(passed):
        report.add(name, "passed")
    for _ in range(skipped):
        report.add(name, "skipped")
    why = None
    if not counts:
        why = "it printed no count; status %s" % status
    elif failed or status:
        why = "%d failed; status %s" % (failed, status)
    elif not passed:
        why = "it tested nothing"
    if why:
        report.add(name, "failed", "\n".join([why, (out + err)[-6000:], again(options, "property " + name)]))


def verifying_program(relay, folder):
    """A program that is `relay --verify-types`."""
    path = os.path.join(folder, "relay")
    with open(path, "w") as f:
        f.write("#!/bin/sh\nexec %s --verify-types \"$@\"\n" % shlex.quote(relay))
    os.chmod(path, 0o755)
    return path


def find_files(folder, ending, parts):
    found = []
    for directory, _, names in os.walk(folder):
        found += [os.path.join(directory, n) for n in names
                  if n.endswith(ending) and not n.startswith("_")]
    found.sort()
    return [f for f in found if not parts or any(p in os.path.relpath(f, HERE) for p in parts)]


def is_left_out(options, name):
    """Does --skip leave out this test?"""
    return any(part in os.path.basename(name) for part in options.skip.split(",") if part)


def find_jobs(options, report, suites, parts):
    """Those of all jobs that --skip does not leave out."""
    return (job for job in all_jobs(options, report, suites, parts) if not is_left_out(options, job[1]))


def all_jobs(options, report, suites, parts):
    """(suite, name, function, its arguments), those that take long first."""
    def found(folder, ending):
        for path in find_files(os.path.join(HERE, folder), ending, parts):
            yield path, os.path.relpath(path, HERE)

    if "property" in suites:
        for path, name in found("property", ".py"):
            yield name, name, property_job, path
    for program in filter(None, options.unit.split(",")):
        yield "unit", program, unit_job, program
    if options.lint:
        import lint
        for check in lint.CHECKS:
            yield "lint", "lint " + check.__name__, lambda o, r, check: check(r, o), check
    if "repl" in suites:
        import transcript
        for path, name in found("repl", ".repl"):
            yield "repl", name, transcript.job, path
    if "docs" in suites:
        import docs
        pages = [f for ending in (".md", ".1") for f in find_files(os.path.join(ROOT, "docs"), ending, parts)]
        for path in [os.path.join(ROOT, "README.md")] + pages:
            yield "docs", os.path.relpath(path, ROOT), docs.job, path
    if "golden" in suites:
        for path, name in found("golden", ".rly"):
            yield "golden", name, golden.job, path
            if os.path.basename(os.path.dirname(path)) == "fmt":
                yield "golden", name, golden.format_job, path
        helpers = [os.path.join(d, n) for d, _, names in os.walk(os.path.join(HERE, "golden"))
                   for n in names if n.startswith("_") and n.endswith(".rly") and not d.endswith("fmt")]
        if not parts:
            yield "golden", "golden helpers", golden.helpers_job, helpers
    if "engines" in suites:
        import engines
        for path, name in list(found("golden", ".rly")) + list(found("../examples", ".rly")):
            yield "engines", name, engines.job, path
    if "examples" in suites:
        for path, name in found("../examples", ".rly"):
            yield "examples", name, golden.job, path, True
    if "harness" in suites:
        import harness
        for name, job in harness.jobs():
            yield "harness", name, job


def read_options():
    p = argparse.ArgumentParser(usage="run.py [options] [%s] [PART-OF-NAME ...]" % "] [".join(SUITES))
    p.add_argument("--build", default=os.path.join(ROOT, "build"), help="where make ran")
    p.add_argument("--cc", default="cc", help="compiler for --lint")
    p.add_argument("--lint", action="store_true")
    p.add_argument("--unit", default="", help="programs, separated by commas")
    p.add_argument("--bless", action="store_true")
    p.add_argument("--engines", default=",".join(golden.ENGINES))
    p.add_argument("--jobs", "-j", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--slow", type=float, default=1.0,
                   help="how many times slower this build is: limits grow, and the largest inputs shrink")
    p.add_argument("--share", type=float, default=share.SHARE, help="how much of the long tests, 1 is all")
    p.add_argument("--seed", type=int, default=share.SEED, help="which part of them")
    p.add_argument("--skip", default="", help="parts of names of tests to leave out, separated by commas")
    p.add_argument("--times", action="store_true", help="tell the processor time of each suite")
    p.add_argument("--verify-types", action="store_true", help="every program of a test runs under this option")
    p.add_argument("--verbose", "-v", action="store_true")
    p.add_argument("what", nargs="*")
    options = p.parse_intermixed_args()
    options.build = os.path.abspath(options.build)
    options.relay = options.program = os.path.join(options.build, "relay")
    options.engines = options.engines.split(",")
    options.drawn = set()  # (code, message) of all diagnostics
    return options


def main():
    options = read_options()
    suites = [w for w in options.what if w in SUITES]
    parts = [w for w in options.what if w not in suites]
    if parts and not suites:
        suites = ["golden", "repl", "examples"]
    report = Report(options.verbose)
    with tempfile.TemporaryDirectory(prefix="relay-test-") as home:
        process.settle_environment(home)
        if options.verify_types:
            options.slow *= 2
        process.SLOW = options.slow
        os.environ.update(RELAY_BUILD=options.build, RELAY_SLOW=str(options.slow), RLY_SHARE=str(options.share), RLY_SEED=str(options.seed))
        if options.verify_types:
            options.relay = verifying_program(options.relay, home)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            jobs = [pool.submit(timed, suite, name, report, job, options, report, *arguments)
                    for suite, name, job, *arguments in find_jobs(options, report, suites, parts)]
            try:
                for job in jobs:
                    job.result()
            except KeyboardInterrupt:
                for job in jobs:
                    job.cancel()
                raise
        if {"golden", "repl", "docs"} <= set(suites) and not parts and not is_left_out(options, "messages drawn"):
            messages.check(report, options)
    if options.times:
        print_times(report, options.jobs)
    summary = "%d passed, %d failed, %d skipped" % (report.passed, report.failed, report.skipped)
    with open(os.path.join(options.build, "test-summary"), "w") as f:
        f.write(summary + "\n")
    print(summary)
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
