#!/usr/bin/env python3
"""pyperf top beside programs whose shares are known by construction, py-spy, and pyperf record."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import live
import terminal
from attached import burn
from live import check

# Threads that do three quarters of their work in one function, by their own CPU time, and in no step with
# a sampling clock.
SHARES = """
import random, sys, threading, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def hot(): spin(random.uniform(0.003, 0.009))
def cold(): spin(random.uniform(0.001, 0.003))
def work():
    while True:
        hot()
        cold()
for i in range(int(sys.argv[1]) - 1): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
work()
"""

# Threads that hold the lock in a way that is known: `always` one, in C code that never lets go of it;
# `never`, since all sleep; `half` by turns, of which each is as long asleep as with it, or longer, and in no
# step with one who looks. (What threads that compete for it make of it depends on how soon one that waits
# is run.)
HOLDING = """
import collections, itertools, random, sys, threading, time
turns = [threading.Semaphore(1), threading.Semaphore(0)]
def ready(): sys.stdout.write("ready\\n"), sys.stdout.flush()
def always(me):
    turns[me].acquire()
    ready()
    collections.deque(itertools.repeat(None), 0)
def never(me): time.sleep(1000)
def half(me):
    while True:
        turns[me].acquire()
        begin, least = time.perf_counter(), random.uniform(0.001, 0.009)
        while time.perf_counter() < begin + least: pass
        time.sleep(time.perf_counter() - begin)
        turns[not me].release()
for i in range(2): threading.Thread(target=globals()[sys.argv[1]], args=[i], daemon=True).start()
ready()
time.sleep(1000)
"""


def all_sleep(pid):
    states = [stat.read_text().rsplit(")", 1)[1].split()[0] for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"S"}


class Program:
    def __init__(self, python, text, *arguments):
        self.process = subprocess.Popen([python, "-c", text, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "ready\n", "the program did not start")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def top(*options, timeout=60):
    """The tables of a run, as JSON."""
    ran = subprocess.run([str(live.PYPERF), "top", "-q", "--json", *map(str, options)], capture_output=True, text=True,
                         timeout=timeout)
    check(ran.returncode == 0, ran.stderr)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def apart(*of):
    """How far two shares lie apart, each as (hits, samples), beyond what chance can do of any share: five
    deviations."""
    one, other = (hits / samples for hits, samples in of)
    return abs(one - other) - 5 * sum(0.25 / samples for _, samples in of) ** 0.5


def started(shown):
    """When a `top` looks: its clock is what it makes last."""
    while shown.poll() is None:
        for fd in pathlib.Path(f"/proc/{shown.pid}/fd").glob("*"):
            try:
                if "timerfd" in os.readlink(fd):
                    return
            except FileNotFoundError:
                pass
        time.sleep(0.005)
    raise live.Failed("top ended", shown.returncode)


def figure(rows, key, name, what="total_samples"):
    return sum(event.get(what, 0) for row in rows if row[key] == name for event in row["events"].values())


@live.test_each_python
def shares(python):
    """Functions and lines of what runs, three to one."""
    with Program(python, SHARES, 2) as program:
        last = top("-p", program.pid, "-n", 2, "-d", 0.6, "-F", 499)[-1]
    hot, cold = (figure(last["functions"], "name", name) for name in ("hot", "cold"))
    check(hot, "samples:", last["samples"])
    check(live.within(hot, hot + cold, 0.75, live.SURE), f"hot {hot}, cold {cold}")
    check(last["lost"] == 0 and last["engine"] in ("bpf", "stop"), last["lost"], last["engine"])
    lines = {row["line"] for row in last["lines"] if row["function"] == "hot"}
    check(lines == {6}, "lines of hot:", lines)
    # Of the last interval a thread may have had no part, where others take the CPUs.
    check(len([thread for thread in last["threads"] if "line" in thread]) == 2, last["threads"])
    check(any(thread["cpu"] > 0 for thread in last["threads"]), last["threads"])
    return f"hot {hot} of {hot + cold}"


def held(python, what, seconds):
    """How long the lock is held of a program that holds it so, and by which threads."""
    with Program(python, HOLDING, what) as program:
        if what == "always":
            burn(program.pid, 0.05)
        while what == "never" and not all_sleep(program.pid):
            time.sleep(0.01)
        last = top("-p", program.pid, "-n", 1, "-d", seconds)[-1]
    if last["gil"] is None:
        raise live.Skip("this build has no lock, or its lock is not known")
    return last["gil"], [thread["gil"] for thread in last["threads"] if thread["gil"]]


def tells_threads(python):
    """What a lock knows of its holder is the thread's structure of the C library; of musl's, not where in it
    the kernel's number is."""
    return "musl" not in python.inside


@live.test_each_python
def gil(python):
    """How long the lock is held, and by whom."""
    for seconds in (1.5, 10):
        share, parts = held(python, "half", seconds)
        # A hundred turns and looks; where the machine is busy some ten, which may be of one thread.
        if len(parts) == 2 or not tells_threads(python):
            break
    check(0.02 < share < 0.8, share)
    if tells_threads(python):
        check(len(parts) == 2 and abs(sum(parts) - share) < 0.01, "by thread:", parts)
    return f"{share:.0%}" + "".join(f", {part:.0%} by one" for part in parts)


@live.test_each_python
def gil_always_and_never(python):
    always, never = (held(python, what, 0.4) for what in ("always", "never"))
    check(always == (1, [1] if tells_threads(python) else []), "always:", always)
    check(never == (0, []), "never:", never)


@live.test
def beside_record():
    """The same shares as a recording's, with C code and without."""
    with Program(live.any_python(), SHARES, 1) as program, tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data"
        subprocess.run([str(live.PYPERF), "record", "-q", "-F", "499", "-g", "-o", path, "-p", str(program.pid), "--duration", "1.5"],
                       check=True, capture_output=True)
        recorded = json.loads(live.pyperf("report", "--json", "-i", path).stdout)
        shown = top("-p", program.pid, "-n", 1, "-d", 1.5, "-F", 499, "--native")[-1]
    told, all_ = [], (shown["samples"], recorded["samples"]["total"])
    for name in ("hot", "spin"):
        rows = [[row for row in table["functions"] if row["name"] == name] for table in (shown, recorded)]
        check(list(map(len, rows)) == [1, 1], name, rows)
        hits = [figure(row, "name", name) for row in rows]
        # Something for the native functions that only one of them may have as roots.
        check(apart(*zip(hits, all_)) < 0.05, name, hits, "of", all_)
        told.append(f"{name} {hits[0] / all_[0]:.0%}, {hits[1] / all_[1]:.0%}")
    check(any(row["kind"] == "native" for row in shown["functions"]), "no native functions")
    return "; ".join(told)


@live.test
def beside_py_spy():
    """What py-spy says of the same program."""
    spy = shutil.which("py-spy")
    if not spy:
        raise live.Skip(os.environ.get("PYPERF_NO_PEERS") or "no py-spy; see scripts/peers")
    with Program(live.any_python(), SHARES, 1) as program, tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([spy, "record", "-d", "1", "-r", "199", "-f", "raw", "-o", f"{folder}/raw", "-p", str(program.pid)],
                             capture_output=True, text=True)
        if ran.returncode:
            raise live.Skip("py-spy does not work here")
        with open(f"{folder}/raw") as raw:
            stacks = [line.rsplit(" ", 1) for line in raw]
        shown = top("-p", program.pid, "-n", 1, "-d", 1, "-F", 199)[-1]["functions"]
    theirs = [sum(int(n) for stack, n in stacks if f"{name} (" in stack) for name in ("hot", "cold")]
    ours = [figure(shown, "name", name) for name in ("hot", "cold")]
    check(min(sum(ours), sum(theirs)) > 10, ours, theirs)
    told = [hot / (hot + cold) for hot, cold in (ours, theirs)]
    # Something for the looks of one that stops the program.
    check(apart(*((hot, hot + cold) for hot, cold in (ours, theirs))) < 0.1, ours, theirs)
    return f"hot {told[0]:.0%}, by py-spy {told[1]:.0%}"


@live.test
def command_and_children():
    """A program of our own, its child, and its end with its status."""
    text = ("import os, time\nif not os.fork():\n  def child():\n    while time.process_time() < 0.7: pass\n"
            "  child(); os._exit(0)\nos.wait(); os._exit(3)")
    ran = subprocess.run([str(live.PYPERF), "top", "-q", "--json", "-d", "0.3", "-F", "499", "--", live.any_python(), "-c", text],
                         capture_output=True, text=True, timeout=60)
    check(ran.returncode == 3, ran.returncode, ran.stderr)
    tables = [json.loads(line) for line in ran.stdout.splitlines()]
    check(tables[-1]["ended"] and not tables[0]["ended"], "the end is not told")
    check(figure(tables[-1]["functions"], "name", "child") > 5, tables[-1]["functions"][:5])
    return f"{len(tables)} tables"


@live.test
def end_of_the_target():
    """What was attached to ends: so does top, at once."""
    with Program(live.any_python(), SHARES, 1) as program:
        shown = subprocess.Popen([str(live.PYPERF), "top", "-q", "--stdio", "-d", "60", "-p", str(program.pid)],
                                 stdout=subprocess.PIPE, text=True)
        started(shown)
    begin = time.monotonic()
    text = shown.communicate(timeout=30)[0]
    check(shown.returncode == 0 and ", ended" in text, shown.returncode, text)
    return f"after {time.monotonic() - begin:.2f} s"


# Functions without end, each of a name of its own, and threads and processes.
CHURN = """
import os, threading
print("ready", flush=True)
n = 0
while True:
    n += 1
    scope = {}
    exec("def f%d():\\n    for i in range(3000): pass" % n, scope)
    thread = threading.Thread(target=scope["f%d" % n])
    thread.start()
    thread.join()
    if n % 50 == 0:
        if not os.fork(): os._exit(0)
        os.wait()
"""


def resident(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@live.test
def memory():
    """Code, threads and processes without end: what top takes stays within bounds."""
    seconds = 60 if live.LONG else 3
    with Program(live.any_python(), CHURN) as program:
        shown = subprocess.Popen([str(live.PYPERF), "top", "-q", "--stdio", "-d", "0.2", "-F", "999", "-p", str(program.pid)],
                                 stdout=subprocess.DEVNULL)
        started(shown)
        time.sleep(0.5)
        before = resident(shown.pid)
        time.sleep(seconds)
        after = resident(shown.pid)
        shown.send_signal(signal.SIGINT)
        check(shown.wait(20) == 0, "it did not end by Ctrl-C")
    # New functions, a thousand samples a second: up to a kilobyte each, until the tables begin anew.
    check(live.SANITIZED or after - before < seconds + 10, f"{before:.1f} MB, then {after:.1f} MB")
    return f"{before:.1f} MB, after {seconds} s {after:.1f} MB"


@live.test
def screen():
    """The table on a terminal: rows, order, filter, lines of a function, pause, and the end."""
    with tempfile.TemporaryDirectory() as folder, terminal.terminal(120, 24) as shown:
        path = f"{folder}/shares.py"
        with open(path, "w") as source:
            source.write(SHARES)
        shown.run(f"{live.PYPERF} top -q -d 0.2 -F 499 -- {live.any_python()} {path} 2; echo status $?")
        shown.wait(r"threads 2 active of 2")
        shown.wait(r"^ *[\d.]+% .*\bspin\b +shares.py:3")
        shown.keys("l")
        shown.wait(r"spin +shares.py:5 +while time.th")
        shown.keys("t")
        shown.wait(r"^ *[\d.]+%  +[\d.]+% +\d+  .*spin  shares.py:5")
        shown.keys("f", "2")
        shown.wait(r"by (\S+ )?total")
        shown.keys("<")
        shown.wait(r"by (\S+ )?self")
        shown.keys("s")
        shown.wait("Sort by")
        shown.keys("Down", "Enter")
        shown.wait(r"by (\S+ )?total")
        shown.keys("/")
        shown.run("hot")
        lines = shown.wait(r"filter: hot")
        shown.wait(r"\bcold\b", gone=True)
        shown.keys("Enter")
        shown.wait(r"^ +[\d.]+% .*\bdef hot|def hot\(\): spin")
        shown.keys("q", "p")
        shown.wait("paused")
        shown.resize(50, 10)
        shown.wait("60")
        shown.resize(120, 24)
        shown.wait("paused")
        shown.keys("q")
        # What the program wrote comes when the terminal is free again.
        shown.wait(r"^ready\nstatus 0")
        shown.run(f"{live.PYPERF} top -q -d 0.2 -- {live.any_python()} -c 'exit(5)'; echo status $?")
        shown.wait("ended")
        shown.keys("q")
        shown.wait("status 5")
    return f"{len(lines)} lines"


if __name__ == "__main__":
    live.run()
