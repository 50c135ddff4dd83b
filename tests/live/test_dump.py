#!/usr/bin/env python3
"""pyperf dump beside what the interpreter says of itself, and what it must not do to a program."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import live
from attached import burn
from live import check
from native import STACKS, compiled

# Threads that stay where they are; what sys._current_frames() has of them is printed.
PARKED = """
import json, os, sys, threading, time
held = threading.Lock(); held.acquire()
def sleeper(): time.sleep(1000)
def locked():
    def inner():
        with held: pass
    inner()
def generator():
    yield from deeper()
def deeper():
    yield time.sleep(1000)
def iterated(): list(generator())
def recursive(n=50): recursive(n - 1) if n else time.sleep(1000)
class Waits:
    def __enter__(self): threading.Event().wait()
    def __exit__(self, *_): pass
def in_a_class():
    with Waits(): pass
get_id = getattr(threading, "get_native_id", None)
ids = {}
def begin(function):
    ids[threading.current_thread().ident] = get_id() if get_id else int(os.path.basename(os.readlink("/proc/thread-self")))
    function()
for function in (sleeper, locked, iterated, recursive, in_a_class):
    threading.Thread(target=begin, args=(function,), daemon=True).start()
def frames(frame):
    while frame:
        code = frame.f_code
        yield getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno
        frame = frame.f_back
def snapshot(): return {str(ids[i]): list(frames(f)) for i, f in sys._current_frames().items() if i in ids}
def waiting(tid):
    with open("/proc/self/task/%s/stat" % tid) as stat: return stat.read().rpartition(")")[2].split()[0] == "S"
before = None
while len(ids) < 5 or snapshot() != before or not all(map(waiting, ids.values())):
    before = snapshot()
    time.sleep(0.05)
print(json.dumps(before), flush=True)
time.sleep(1000)
"""

SPIN = """
import threading, time
def spin():
    x = 0
    while True: x += 1
threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""


def started(python, program):
    process = subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline()


def ended(process):
    process.kill()
    process.wait()
    process.stdout.close()


def dumped(pid, *options):
    ran = live.pyperf("dump", "--json", *options, "-p", pid)
    check(ran.returncode == 0 and not ran.stderr, ran)
    return json.loads(ran.stdout)[0]


def pid_of(process):
    """Of the Python: one that is entered by chroot is what the script became."""
    return process.pid


@live.test_each_python
def same_frames_as_the_interpreter(python):
    process, line = started(python, PARKED)
    try:
        expected = json.loads(line)
        check(len(expected) == 5, expected)
        dump = dumped(pid_of(process))
        found = {str(thread["tid"]): thread for thread in dump["threads"]}
        total = 0
        for tid, frames in expected.items():
            mine = [[f["function"], f["file"], f["line"]] for f in found[tid]["frames"] if f["kind"] == "python"]
            check(mine == frames, f"thread {tid}: the interpreter has", frames, "and the dump", mine)
            total += len(mine)
            kinds = [f["kind"] for f in found[tid]["frames"]]
            check(kinds[0] == "native", "no native frames above", frames[0])
            check(not found[tid]["gil"], tid, "has the GIL")
        off = dumped(pid_of(process), "--native=off")
        check(all(f["kind"] == "python" for t in off["threads"] if str(t["tid"]) in expected for f in t["frames"]), off)
        return f"{total} frames"
    finally:
        ended(process)


# Threads with names: given at the start, later, by a class of its own, to one that has a dict of its own.
NAMED = """
import json, os, threading, time
class Own(threading.Thread):
    def __init__(self, **options):
        super().__init__(**options)
        self.more = self.data = 1
class Slots(threading.Thread):
    __slots__ = ("a", "b")
gone = threading.Event()
threads = [kind(target=gone.wait, name=name, daemon=True) for kind, name in (
    (threading.Thread, "loader-1"), (Own, "n\\u00e4me \\u4e2d"), (Slots, "x" * 100), (threading.Thread, "before"), (threading.Thread, "dict"))]
for thread in threads: thread.start()
threads[3].name = "after"
threads[4].__dict__["unlike others"] = 1
for i in range(2000): setattr(threads[4], "a%d" % i, i)
ended = threading.Thread(target=int)
ended.start()
ended.join()
while len(os.listdir("/proc/self/task")) > 1 + len(threads): time.sleep(0.001)
print(json.dumps(sorted(t.name for t in threading.enumerate())), flush=True)
gone.wait(1000)
"""


@live.test_each_python
def names_of_threads(python):
    process, line = started(python, NAMED)
    try:
        names = sorted(json.loads(line))
        shown = sorted(thread["name"] for thread in dumped(pid_of(process))["threads"])
    finally:
        ended(process)
    if live.version_of(python) >= (3, 14):
        raise live.Skip("names are the kernel's, which has 15 bytes for each")
    # Names are kept to 63 bytes.
    check(shown == [name[:63] for name in names], shown, "not", names)
    return shown[0]


@live.test_each_python
def who_holds_the_lock(python):
    """One thread runs Python code, the main thread sleeps."""
    process, line = started(python, SPIN)
    try:
        # Until the one has its turn, and the main thread sleeps.
        burn(process.pid, 0.1)
        held = 0
        for _ in range(20):
            threads = dumped(pid_of(process))["threads"]
            check(len(threads) == 2, threads)
            main, spinner = threads
            check(not main["gil"] and not main["running"], main)
            check(any(f["function"] == "spin" for f in spinner["frames"]), spinner)
            held += spinner["gil"]
        # It never has to let go of it: nobody asks.
        check(held == 20, "the lock was seen with its only user", held, "times of 20")
        check("holds the GIL" in live.pyperf("dump", "-p", pid_of(process)).stdout, "the text does not say it")
    finally:
        ended(process)


@live.test
def source_lines_and_order():
    """The most recent call last, with the text of lines."""
    with live.scratch_folder() as folder:
        path = pathlib.Path(folder, "app.py")
        path.write_text("import time\ndef inner():\n    time.sleep(1000)  # here\ndef outer():\n    inner()\nprint('ready', flush=True)\nouter()\n")
        process = subprocess.Popen([live.any_python(), path], stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            lines = []
            while "time.sleep(1000)  # here" not in "\n".join(lines):
                check(process.poll() is None, "it ended", lines)
                lines = live.pyperf("dump", "--native=off", process.pid).stdout.splitlines()
            start = lines.index(f'  File "{path}", line 7, in <module>')
            check(lines[start + 1:start + 6] == [
                "    outer()",
                f'  File "{path}", line 5, in outer',
                "    inner()",
                f'  File "{path}", line 3, in inner',
                "    time.sleep(1000)  # here",
            ], lines)
            check("sleeps" in lines[start - 1] and str(path) in lines[0], lines)
        finally:
            ended(process)


@live.test
def leaves_the_program_alone():
    """Sleeps are as long as they were, a stopped process stays stopped, a traced one is refused."""
    program = """
import sys, time
print("ready", flush=True)
begin = time.monotonic()
time.sleep(1.5)
print(time.monotonic() - begin, flush=True)
time.sleep(1000)
"""
    process, _ = started(live.any_python(), program)
    try:
        for _ in range(10):
            dumped(process.pid)
        slept = float(process.stdout.readline())
        check(slept >= 1.5, "it slept for", slept)
        process.send_signal(signal.SIGSTOP)
        while state(process.pid) != "T":
            pass
        check("is stopped" in dumped(process.pid)["threads"][0]["state"], "a stopped one is not said to be")
        check(state(process.pid) == "T", "it runs on")
    finally:
        ended(process)


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@live.test
def what_is_not_python():
    process = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    try:
        text = ""
        # It has to start first.
        while "sleeps" not in text and time.monotonic() < end:
            text = live.pyperf("dump", process.pid).stdout
        check("no CPython is in it" in text and "nanosleep" in text and "sleeps" in text, text)
    finally:
        ended(process)


@live.test
def handlers_with_their_own_stack():
    """A thread in a signal's handler, on the thread's stack and on one of the handler's own: all callers."""
    with live.scratch_folder() as folder:
        program = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        for mode in ("signal", "altstack"):
            process = subprocess.Popen([program, mode], stdout=subprocess.PIPE, text=True)
            try:
                process.stdout.readline()
                names = [frame["function"] for frame in dumped(process.pid)["threads"][0]["frames"]]
            finally:
                ended(process)
            check([name for name in names if name in STACKS[mode]] == STACKS[mode] and names[-1] == "_start", mode, names)


@live.test
def what_cannot_be_looked_at():
    check(live.pyperf("dump").returncode == 2, "without a process")
    process = subprocess.Popen(["true"])
    process.wait()
    ran = live.pyperf("dump", process.pid)
    check(ran.returncode == 1 and str(process.pid) in ran.stderr, ran)
    if os.getuid() != 0:
        raise live.Skip("becoming another user needs root")
    process = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE, text=True)
    try:
        with live.scratch_folder() as folder:
            tool = f"{folder}/pyperf"
            os.chmod(folder, 0o755)
            pathlib.Path(tool).write_bytes(live.PYPERF.read_bytes())
            os.chmod(tool, 0o755)
            ran = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", tool, "dump", str(process.pid)], capture_output=True, text=True)
        check(ran.returncode == 1 and "not permitted" in ran.stderr and "SYS_PTRACE" in ran.stderr, ran)
    finally:
        ended(process)


if __name__ == "__main__":
    sys.exit(live.run(needs_lines=False))
