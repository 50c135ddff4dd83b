"""The part of `run` that measures what `pyperf top` itself takes."""
import fcntl
import os
import pty
import shutil
import signal
import statistics
import struct
import subprocess
import termios
import threading
import time

# So many threads, each in a loop for a while and asleep for a while.
PROGRAM = """
import sys, threading, time
def work(n):
    total = 0
    for i in range(n): total += i
    return total
def live():
    while True:
        work(20000)
        time.sleep(0.02)
for i in range(int(sys.argv[1]) - 1): threading.Thread(target=live, daemon=True).start()
print("ready", flush=True)
live()
"""


def cpu_clock(pid):
    """CPU seconds of a process so far, exactly: CPUCLOCK_SCHED of linux/posix-timers.h."""
    return time.clock_gettime((~pid << 3) | 2)


def drain(fd):
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass


def share(command, seconds):
    """Of one CPU, on a terminal of its own, once it has started; NaN where it does not go on."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                             env={**os.environ, "TERM": "xterm-256color"})
    os.close(theirs)
    threading.Thread(target=drain, args=(ours,), daemon=True).start()
    time.sleep(2)
    try:
        used, begin = cpu_clock(child.pid), time.monotonic()
        time.sleep(seconds)
        result = (cpu_clock(child.pid) - used) / (time.monotonic() - begin)
    except OSError:
        result = float("nan")
    child.send_signal(signal.SIGINT)
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    os.close(ours)
    return result


def parts(bench):
    """By name; `bench` is the module that has output(), say() and the rest."""

    def top(options):
        """Watching a Python at 99 Hz, beside py-spy where it is installed."""
        seconds = 3 if options.short else 10
        for threads in (1, 16, 200):
            program = subprocess.Popen([bench.PYTHON, "-c", PROGRAM, str(threads)], stdout=subprocess.PIPE)
            program.stdout.readline()
            pid = str(program.pid)
            ways = {
                "pyperf top": [bench.PYPERF, "top", "-q", "-F", "99", "-p", pid],
                "pyperf top --stdio": [bench.PYPERF, "top", "-q", "--stdio", "-F", "99", "-p", pid],
            }
            if shutil.which("py-spy"):
                ways["py-spy top"] = ["py-spy", "top", "-r", "99", "-p", pid]
            else:
                bench.say("py-spy top", "not installed: see scripts/peers")
            shares = {way: [] for way in ways}
            for _ in range(min(3, options.rounds)):
                for way, command in ways.items():
                    shares[way].append(share(command, seconds))
            program.kill()
            program.communicate()
            for way, values in shares.items():
                value = statistics.median(values)
                claim = way == "pyperf top"
                bench.say(f"{way}, a Python of {threads} threads: of one CPU", f"{value:.2%}",
                          "below 2%" if claim else "", value < 0.02 if claim else None)

    return {"top": top}
