# SPDX-License-Identifier: Apache-2.0
"""What bad_input.py and bad_data.py share: running the program, and what every refusal has in common.

A refusal is a diagnostic of the form of the language reference on standard error, status 1, and never a
signal. Limits only guard against what hangs: LIMIT seconds of processor time, so that a busy machine
changes nothing. Under sanitizers (SLOW above 1) inputs that are only large are smaller.
"""
import concurrent.futures
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import process
import share
from process import SLOW

LIMIT = 60 * SLOW  # of processor time; the slowest take three seconds
PATIENCE = process.PATIENCE * SLOW

HEAD = re.compile(r"(error|warning|note)\[R\d{4}\]: \S.*$")
BODY = [re.compile(p) for p in (
    r" +(-->|:::) \S.*:\d+:\d+$",  # the place
    r" +\d* *\|.*$",               # a line of the source, or under it
    r" +(=  ?\S.*|= .*)$", r" {4,}\S.*$", r"\.\.\.$", r"and \d+ more( warnings)?$",
)]


class Result:
    def __init__(self, status, out, err):
        self.status = status
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def codes(self):
        return re.findall(r"^error\[(R\d{4})\]", self.err, re.M)

    def details(self):
        return "status %s\nstdout: %s\nstderr: %s" % (self.status, self.out[:600], self.err[:1500])


def ill_formed(err):
    """The first line that is no part of a diagnostic; None when all are."""
    begun = False
    for line in err.splitlines():
        if HEAD.match(line):
            begun = True
        elif not begun or not any(p.match(line) for p in BODY):
            return line[:300]
    return None


def refused(r, code=None, words=None, status=1):
    """Why a result is no proper refusal; None when it is one."""
    if r.status is None:
        return "no end"
    if r.status < 0:
        return "death by %s" % signal.Signals(-r.status).name
    if r.status != status:
        return "exit status %d, not %d" % (r.status, status)
    if status == 2:
        return None if re.match(r"relay: \S.*\n$", r.err) else "no usage message of one line"
    wrong = ill_formed(r.err)
    if wrong is not None:
        return "standard error has a line that is no diagnostic's: " + wrong
    if not r.codes():
        return "no diagnostic"
    if len(r.err) > 20000:
        return "a diagnostic of %d bytes" % len(r.err)
    if code and not any(c in r.codes() for c in code.split("|")):
        return "no %s" % code
    if words and words not in r.err:
        return "it does not say: " + words
    return None


class Suite:
    """Checks are queued with `later` and run two at a time by `finish`."""

    def __init__(self, relay, jobs=2):
        self.relay = os.path.abspath(relay)
        self.dir = tempfile.mkdtemp(prefix="relay-bad-")
        self.passed = self.failed = self.skipped = 0
        self.lock, self.queue, self.jobs = threading.Lock(), [], jobs
        self.slowest = []  # (processor time, what ran)
        process.settle_environment(self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return self.path(name)

    def run(self, args, stdin=b"", cwd=None, before=None, env=None, **files):
        """`files` may say stdin=…, stdout=… as Popen takes them; before: called in the child."""
        handles = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        handles.update(files)

        return self.finish_run(self.start(args, cwd=cwd, before=before, env=env, **handles), stdin)

    def start(self, args, cwd=None, before=None, env=None, **handles):
        """A program that runs beside the test."""
        def begin():
            resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT), int(LIMIT) + 1))
            if before:
                before()
        return process.Program([self.relay] + args, cwd=cwd or self.dir, preexec_fn=begin,
                               env=dict(os.environ, **env) if env else None, start_new_session=True,
                               **handles)

    def finish_run(self, p, stdin=b""):
        begun = process.spent.seconds if hasattr(process.spent, "seconds") else 0.0
        try:
            out, err = p.communicate(stdin or None, timeout=PATIENCE)
            status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            status = None
        with self.lock:
            self.slowest.append((process.spent.seconds - begun, " ".join(map(str, p.args[1:]))[:80]))
        return Result(status, out or b"", err or b"")

    def interrupts(self, name, args, ready, said="interrupted", status=1, number=signal.SIGINT, **handles):
        """A program gets a signal when `ready`, which gets its process id, says so. The limit of processor
        time ends one that goes on."""
        def job():
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            p = self.start(args, **dict(streams, **handles))
            why = None if ready(p.pid) else "it never got so far"
            p.send_signal(number)
            r = self.finish_run(p)
            if r.status != status:
                why = why or "status %s, not %s" % (r.status, status)
            elif said not in r.err:
                why = why or "it does not say: " + said
            elif "is kept" in r.err:
                why = why or "nothing is kept of a run that ended"
            self.check(name, why, r)
        self.later(job)

    def check(self, name, why, r=None):
        """Counts; `why` says what is wrong, or is None."""
        with self.lock:
            if why is None:
                self.passed += 1
                return
            self.failed += 1
            print("FAILED %s: %s" % (name, why))
            for line in (r.details() if r else "").split("\n"):
                print("    " + line)
            sys.stdout.flush()

    def skip(self, name):
        with self.lock:
            self.skipped += 1

    def rejects(self, name, args, code=None, words=None, status=1, **how):
        def job():
            r = self.run(args, **how)
            self.check(name, refused(r, code, words, status), r)
        self.later(job)

    def ends(self, name, args, **how):
        """Accepted or refused, either is right."""
        def job():
            r = self.run(args, **how)
            self.check(name, None if r.status == 0 else refused(r, None, None, 1), r)
        self.later(job)

    def rejects_text(self, text, code=None, words=None, args=(), name=None):
        self.rejects(name or text[:60], list(args) + ["-e", text], code, words)

    def accepts(self, name, args, out=None, **how):
        def job():
            r = self.run(args, **how)
            why = None
            if r.status != 0:
                why = "it should succeed"
            elif out is not None and r.out != out:
                why = "the output is not %r" % out[:60]
            self.check(name, why, r)
        self.later(job)

    def later(self, job):
        self.queue.append(job)

    def drain(self):
        queue, self.queue = self.queue, []
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(job) for job in queue]:
                done.result()

    def finish(self, times):
        self.drain()
        shutil.rmtree(self.dir, ignore_errors=True)
        if times:
            for seconds, what in sorted(self.slowest, reverse=True)[:25]:
                print("%6.2f s  %s" % (seconds, what))
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return 1 if self.failed else 0


def run_parts(description, parts, long=()):
    """The main function of both: all parts, or those named; of the long ones a share of the checks."""
    parser = share.arguments(description)
    parser.add_argument("--only", default="", help="parts, separated by commas")
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    s = Suite(options.relay)
    for part in parts:
        if not wanted or part.__name__ in wanted:
            part(s)
            if part in long:
                s.queue = share.sample(options, s.queue)
            s.drain()
    return s.finish(options.times)


def limit_of(what, value):
    return lambda: resource.setrlimit(what, (value, value))
