#!/usr/bin/env python3
"""Threads and processes that a target makes, by every way there is, and how they end."""
import collections
import ctypes
import os
import pathlib
import re
import shutil
import sys

import live
from live import check

# "python3  4711/4712  [001]  7028.659459:    1001001 cpu-clock: "
HEAD = re.compile(r"(?P<pid>\d+)/(?P<tid>\d+)\s+\[\d+\]\s+(?P<time>[\d.]+):")

# Threads that sleep, some when others have ended.
SLEEPERS = """
import threading, time
ended = threading.Event()
def before():
    while not ended.is_set(): time.sleep(0.001)
def after():
    for _ in range(200): time.sleep(0.001)
def sleeper():
    before()
    after()
def short(): time.sleep(0.01)
for _ in range(2): threading.Thread(target=sleeper).start()
for _ in range(2):
    thread = threading.Thread(target=short)
    thread.start(); thread.join()
time.sleep(0.1)
print(time.monotonic())
ended.set()
"""


@live.test_any_python
def tracepoints_outlive_a_thread(python):
    """The walker stays at a tracepoint when a thread that inherited its event ends."""
    recording = live.Recording([python, "-S", "-c", SLEEPERS], "-e", "sched:sched_switch")
    then = float(recording.stdout)
    late = [s for s in recording.script() if float(HEAD.search(s.head)["time"]) > then]
    # Two threads sleep 200 times; between that and its end one is Python's for a few switches more.
    lines = sum(any(frame.name == "after" for frame in s.python) for s in late)
    check(lines >= 396, "only", lines, "switches in after(), of", len(late), recording.ran.stderr)
    return f"{lines} of {len(late)}"


BURN = """
import os, sys, time
clock = getattr(time, "thread_time", time.process_time)
def burn(name):
    code = compile("def %s(end):\\n while clock() < end: pass" % name, "<burn>", "exec")
    exec(code, globals())
    os.write(1, b"%s %d\\n" % (name.encode(), os.getpid()))
    globals()[name](clock() + 0.1)
"""

# Each child runs a function of its own name and says its pid, so that samples can be told to be
# those of the right process.
CHILDREN = {
    "fork": "if os.fork() == 0: burn('forked'); os._exit(0)\nos.wait()",
    # The child of a vfork() that becomes another program at once: subprocess does it.
    "subprocess": "import subprocess; subprocess.run([sys.executable, '-c', BURN + 'burn(\\'spawned\\')'])",
    "posix_spawn": "os.waitpid(os.posix_spawn(sys.executable, [sys.executable, '-c', BURN + 'burn(\\'posix\\')'], os.environ), 0)",
    "exec": "if os.fork() == 0: os.execv(sys.executable, [sys.executable, '-c', BURN + 'burn(\\'executed\\')'])\nos.wait()",
}
POOLS = """
import multiprocessing, queue
def worker(tasks, results, name):
    for _ in iter(tasks.get, None):
        burn(name)
        results.put(name)
def persistent_pool(method):
    # As a data loader has it: workers that live as long as the program and take work from a queue.
    context = multiprocessing.get_context(method)
    tasks, results = context.Queue(), context.Queue()
    workers = [context.Process(target=worker, args=(tasks, results, "worker_" + method)) for i in range(2)]
    for process in workers: process.start()
    for _ in range(4): tasks.put(1)
    for _ in range(4): results.get()
    for _ in workers: tasks.put(None)
    for process in workers: process.join()
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        persistent_pool(method)
"""


def expect_processes(recording, names):
    """Every process that said so has samples in the function that it ran, and no other has."""
    said = {}
    for line in recording.stdout.splitlines():
        name, pid = line.split()
        said.setdefault(name, set()).add(int(pid))
    check(set(said) >= set(names), "the program says", said)
    hits = {}
    for sample in recording.script():
        for frame in sample.python:
            if frame.name in said:
                pid = int(HEAD.search(sample.head)["pid"])
                check(pid in said[frame.name], frame.name, "is told of process", pid, "but ran in", said[frame.name])
                hits[frame.name, pid] = hits.get((frame.name, pid), 0) + 1
    for name, pids in said.items():
        for pid in pids:
            check(hits.get((name, pid), 0) >= 5, name, "in process", pid, "has", hits.get((name, pid)), "samples")
    return f"{len(hits)} processes"


@live.test_any_python
def children(python):
    program = f"BURN = {BURN!r}\nexec(BURN)\n" + "\n".join(CHILDREN.values())
    recording = live.Recording([python, "-S", "-c", program], "-e", "cpu-clock")
    return expect_processes(recording, ("forked", "spawned", "posix", "executed"))


@live.test_any_python
def pools(python):
    """multiprocessing, each way to start a process: persistent workers with queues."""
    with live.scratch_folder() as folder:
        path = pathlib.Path(folder, "pools.py")
        path.write_text(BURN + POOLS)
        recording = live.Recording([python, path], "-e", "cpu-clock")
        return expect_processes(recording, ["worker_" + m for m in ("fork", "spawn", "forkserver")])


FORKED = "\nif os.fork() == 0: burn('%s_child'); os._exit(0)\nos.wait()"


@live.test
def children_of_other_versions():
    """A Python of every version below one: each with its own runtime's frames."""
    pythons = list(live.PYTHONS.values())
    names = [f"version_{i}" for i in range(len(pythons))]
    program = "import subprocess\n" + "".join(
        f"subprocess.run([{python!r}, '-S', '-c', {BURN + f'burn({name!r})' + FORKED % name!r}])\n" for python, name in zip(pythons, names)
    )
    recording = live.Recording([live.any_python(), "-c", program], "-e", "cpu-clock")
    expect_processes(recording, names + [name + "_child" for name in names])
    head = recording.read("report").splitlines()[0]
    for version in live.PYTHONS:
        check(version.split("-")[0] in head, version, "is missing in", head)
    return f"{len(pythons)} versions"


@live.test_any_python
def exec_in_a_thread(python):
    """The thread takes over the process: its number becomes that of the first thread."""
    program = f"""
BURN = {BURN!r}
exec(BURN)
import threading
def become(): os.execv(sys.executable, [sys.executable, "-S", "-c", BURN + "burn('after')"])
burn("before")
threading.Thread(target=become).start()
time.sleep(100)
"""
    recording = live.Recording([python, "-S", "-c", program], "-e", "cpu-clock")
    expect_processes(recording, ("before", "after"))
    # What ran before has ended with its maps: no frame of it may follow.
    order = [name for sample in recording.script() for name in ("before", "after") if name in {f.name for f in sample.python}]
    check(order == sorted(order, reverse=True), "frames of before() follow those of after()")
    check("become" not in {f.name for sample in recording.script()[-20:] for f in sample.python}, "become() goes on")


@live.test
def exec_drops_the_maps():
    """Two programs in one process, one after the other, at the same addresses."""
    shell = os.path.realpath("/bin/sh")
    loop = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    no_randomization = 0x0040000
    with live.scratch_folder() as folder:
        for name in ("first", "second"):
            shutil.copy(shell, f"{folder}/{name}")
        command = [f"{folder}/first", "-c", f"{loop}; exec {folder}/second -c '{loop}'"]
        libc = ctypes.CDLL(None)
        before = libc.personality(0xFFFFFFFF)
        libc.personality(before | no_randomization)
        try:
            recording = live.Recording(command, "-e", "cpu-clock:u")
        finally:
            libc.personality(before)
        samples = [sample.frames[0] for sample in recording.script() if sample.frames]
    files = [frame.file for frame in samples if frame.file in ("first", "second", f"{folder}/first", f"{folder}/second")]
    check(files == sorted(files) and len(set(files)) == 2, "samples are of", collections.Counter(files), "in the order", files)
    return dict(collections.Counter(map(os.path.basename, files)))


@live.test
def without_what_they_create():
    """--per-thread: the first thread alone."""
    program = f"""
{BURN}
import threading
thread = threading.Thread(target=burn, args=("other",))
burn("first")
thread.start(); thread.join()
"""
    for option in ("--per-thread", "-i"):
        recording = live.Recording([live.any_python(), "-S", "-c", program], "-e", "cpu-clock", option)
        names = {frame.name for sample in recording.script() for frame in sample.python}
        check("first" in names and "other" not in names, option, "gives", names)


@live.test_any_python
def grouping(python):
    """report by process, thread and name; threads that name themselves."""
    program = f"""
{BURN}
import threading
def named():
    open("/proc/thread-self/comm", "w").write("renamed")
    os.write(1, b"tid %d\\n" % threading.get_native_id())
    burn("inner")
if os.fork() == 0:
    burn("child"); os._exit(0)
os.wait()
thread = threading.Thread(target=named); thread.start(); thread.join()
"""
    recording = live.Recording([python, "-S", "-c", program], "-e", "cpu-clock")
    said = dict(line.split() for line in recording.stdout.splitlines())
    by_pid = recording.read("report", "--sort", "pid")
    check(said["child"] in by_pid and said["inner"] in by_pid, by_pid)
    by_tid = recording.read("report", "--sort", "tid,function", "--percent-limit", "0")
    check(re.search(rf"{said['tid']} +inner\b", by_tid), said, by_tid)
    check(not re.search(rf"{said['tid']} +child\b", by_tid), by_tid)
    by_comm = recording.read("report", "--sort", "comm,function", "--percent-limit", "0")
    check(re.search(r"renamed +inner\b", by_comm), by_comm)
    only = {f["qualname"] for f in recording.report("--comm", "renamed")["functions"]}
    check("inner" in only and "child" not in only, only)


if __name__ == "__main__":
    sys.exit(live.run())
