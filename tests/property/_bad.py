# SPDX-License-Identifier: Apache-2.0
"""What bad_input.py and bad_data.py share: running the program, and what every refusal has in common.

A refusal is a diagnostic of the form of the language reference on standard error, status 1, within
LIMIT seconds, and never a signal. Under sanitizers (RELAY_SLOW above 1) time limits grow, and what
only measures size or time is skipped.
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
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLOW = float(os.environ.get("RELAY_SLOW", "1"))
LIMIT = 10 * SLOW          # of processor time
PATIENCE = 6 * LIMIT       # of a machine that does other things too

HEAD = re.compile(r"(error|warning|note)\[R\d{4}\]: \S.*$")
BODY = [re.compile(p) for p in (
    r" +(-->|:::) \S.*:\d+:\d+$",  # the place
    r" +\d* *\|.*$",               # a line of the source, or under it
    r" +(=  ?\S.*|= .*)$", r" {4,}\S.*$", r"\.\.\.$", r"and \d+ more( warnings)?$",
)]


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.seconds = status, seconds
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def codes(self):
        return re.findall(r"^error\[(R\d{4})\]", self.err, re.M)

    def details(self):
        return "status %s after %.1f s\nstdout: %s\nstderr: %s" % (
            self.status, self.seconds, self.out[:600], self.err[:1500])


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
        return "no end after %.1f s" % r.seconds
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
        self.slowest = []
        os.environ.update(HOME=self.dir, XDG_CACHE_HOME=self.dir, XDG_STATE_HOME=self.dir,
                          XDG_CONFIG_HOME=self.dir, LC_ALL="C.UTF-8", TERM="dumb")
        os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
        for name in ("NO_COLOR", "RELAY_PATH", "RELAY_STDLIB"):
            os.environ.pop(name, None)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        return self.path(name)

    def run(self, args, stdin=b"", cwd=None, before=None, env=None, **files):
        """`files` may say stdin=…, stdout=… as Popen takes them; before: called in the child."""
        begun = time.monotonic()
        handles = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        handles.update(files)

        def begin():
            resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT), int(LIMIT) + 1))
            if before:
                before()
        p = subprocess.Popen([self.relay] + args, cwd=cwd or self.dir, preexec_fn=begin,
                             env=dict(os.environ, **env) if env else None, start_new_session=True,
                             **handles)
        try:
            out, err = p.communicate(stdin or None, timeout=PATIENCE)
            status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            status = None
        r = Result(status, out or b"", err or b"", time.monotonic() - begun)
        with self.lock:
            self.slowest.append((r.seconds, " ".join(args)[:80]))
        return r

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

    def finish(self):
        self.drain()
        shutil.rmtree(self.dir, ignore_errors=True)
        if "--times" in sys.argv:
            for seconds, what in sorted(self.slowest, reverse=True)[:25]:
                print("%6.2f s  %s" % (seconds, what))
        print("%d passed, %d failed, %d skipped" % (self.passed, self.failed, self.skipped))
        return 1 if self.failed else 0


def limit_of(what, value):
    return lambda: resource.setrlimit(what, (value, value))
