# SPDX-License-Identifier: Apache-2.0
"""How tests run programs: in a known environment, under a limit that only guards against hangs, and
with a record of the processor time that each took.

A machine that is busy makes a test slow and nothing else. So a limit is far above what a program needs,
a test waits for what it expects to see and does not sleep, and what must be fast is counted, not timed.
"""
import errno
import os
import re
import resource
import signal
import subprocess
import threading
import time

# Seconds after which a program hangs: of processor time, of which the slowest need a hundred, and, where it
# computes nothing, of the clock. A machine with ten times more to do than it can is no failure.
CPU_LIMIT, PATIENCE = 600, 3600.0
# How many times slower than usual this build is (with sanitizers): limits grow, the largest inputs shrink.
SLOW = float(os.environ.get("RELAY_SLOW", "1"))

# What an environment may hold that changes what a program prints, finds or keeps.
STRANGE = ("NO_COLOR", "COLUMNS", "LINES", "LANGUAGE", "LANG", "RELAY_PATH", "RELAY_STDLIB", "RELAY_JIT",
           "OPENBLAS_NUM_THREADS", "PYTHONPATH", "INPUTRC", "EDITRC", "MALLOC_PERTURB_")


def settle_environment(home):
    """The environment of every test: nothing of the user's, and `home` as the place for what is kept."""
    for name in list(os.environ):
        if name in STRANGE or name.startswith(("LC_", "GC_")):
            del os.environ[name]
    os.environ.update(HOME=home, XDG_CACHE_HOME=home, XDG_STATE_HOME=home, XDG_CONFIG_HOME=home,
                      LC_ALL="C.UTF-8", TERM="dumb", TZ="UTC", OMP_NUM_THREADS="1")
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
    os.umask(0o022)
    for number in signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM:  # `nohup` and the like leave them ignored
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The processor time of the programs that each thread has waited for.
spent = threading.local()


def count_time(usage):
    spent.seconds = getattr(spent, "seconds", 0.0) + usage.ru_utime + usage.ru_stime


class Program(subprocess.Popen):
    """A program whose processor time, and its children's, is counted for the thread that waits for it."""

    def __init__(self, *arguments, **options):
        """A file that was written a moment ago is busy while the child that another thread starts still holds it open."""
        for left in reversed(range(50)):
            try:
                return super().__init__(*arguments, **options)
            except OSError as error:
                if error.errno != errno.ETXTBSY or not left:
                    raise
                time.sleep(0.02)

    def _try_wait(self, wait_flags):  # where Popen asks the system; os.wait4 tells the time as well
        try:
            pid, status, usage = os.wait4(self.pid, wait_flags)
        except ChildProcessError:
            return self.pid, 0
        if pid == self.pid:
            count_time(usage)
        return pid, status


def limit_cpu(pid, seconds):
    """Ends a program, or any of its children, that computes for so long: SIGKILL does, as the collector handles SIGXCPU."""
    try:
        hard = resource.prlimit(pid, resource.RLIMIT_CPU)[1]
        if hard == resource.RLIM_INFINITY or hard > seconds:
            resource.prlimit(pid, resource.RLIMIT_CPU, (int(seconds), int(seconds)))
    except (ProcessLookupError, PermissionError):
        pass  # it has ended


def run_program(command, stdin=b"", patience=PATIENCE, cwd=None, cpu=None):
    """(status, stdout, stderr); the status is None when the program was killed for hanging."""
    p = Program(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=cwd, start_new_session=True)
    limit_cpu(p.pid, cpu or CPU_LIMIT * SLOW)
    try:
        out, err = p.communicate(stdin, timeout=patience)
        status = p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        status = None
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        status = None
    return status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def wait_until(holds, patience=PATIENCE):
    """Asks again and again whether a condition holds; False when it did not in all that time."""
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def cpu_seconds(pid):
    """The processor time of a running program so far; a great deal of one that has ended."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    if fields[0] == "Z":
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_waiting(pid):
    """Whether a running program sleeps until something happens; also true when it has ended."""
    try:
        with open("/proc/%d/task/%d/stat" % (pid, pid), encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in "SZ"
    except OSError:
        return True


def catches(pid, number):
    """Whether a running program handles a signal by now; also true when it has ended."""
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as f:
            caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", f.read(), re.M)
    except OSError:
        return True
    return not caught or bool(int(caught.group(1), 16) >> (number - 1) & 1)


def wait_busy(pid, number=signal.SIGINT, patience=PATIENCE, seconds=0.2):
    """Until a program handles the signal and has computed for some time since, or has ended."""
    if not wait_until(lambda: catches(pid, number), patience):
        return False
    begun = cpu_seconds(pid)
    return wait_until(lambda: cpu_seconds(pid) >= begun + seconds, patience)
