#!/usr/bin/env python3
"""Groups whose leader is sampled: perf finds in its samples what the program is known to have done."""
import collections
import os
import re
import shutil
import subprocess

import live
from live import check

PAGES = 6000
# Each thread, and a child, faults pages in one place and computes long enough to be sampled after it, on one
# CPU: an event is opened on each, and what a thread did on another one since its last sample there stays unread.
PROGRAM = f"""
import mmap, os, threading, time
os.sched_setaffinity(0, {{max(os.sched_getaffinity(0))}})
def touch():
    pages = mmap.mmap(-1, {PAGES} * 4096)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range({PAGES}): pages[i * 4096] = 1
def compute():
    end = time.thread_time() + 0.06
    while time.thread_time() < end: pass
def work():
    compute(); touch(); compute(); compute()
pid = os.fork()
for _ in range(2):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
if pid: os.waitpid(pid, 0)
"""
EVENTS = "{task-clock,page-faults}:S"


def counted(path):
    """{event: {tid: count}}, as perf subtracts; a count below 0 shows as one near 2^64."""
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    counts = collections.defaultdict(collections.Counter)
    ran = subprocess.run(["perf", "script", "-i", path, "-F", "tid,event,period"], capture_output=True, text=True)
    check(ran.returncode == 0, ran.stderr)
    for line in ran.stdout.splitlines():
        if match := re.match(r"\s*(\d+)\s+(\d+)\s+(\S+):", line):
            check(int(match[2]) < 1 << 63, "something was counted backwards:", line)
            counts[match[3]][int(match[1])] += int(match[2])
    return counts


def judge(recording):
    counts = counted(recording.path)
    faults = {tid: n for tid, n in counts["page-faults"].items() if n >= PAGES}
    check(len(faults) == 4, "threads with all their page faults:", faults, "of", dict(counts["page-faults"]))
    for tid, count in faults.items():
        check(count < 1.1 * PAGES, tid, "has", count, "page faults of", PAGES)
    check(sum(counts["task-clock"].values()) > 8 * 0.06e9, "CPU time:", dict(counts["task-clock"]))
    return f"page faults of threads: {sorted(faults.values())}"


@live.test
def threads_and_children():
    return judge(live.Recording([live.any_python(), "-c", PROGRAM], "-e", EVENTS, "-F", "499"))


@live.test
def stopped_threads():
    """Their events are their own, opened anew when the rate changes."""
    return judge(live.Recording([live.any_python(), "-c", PROGRAM], "-e", EVENTS, "-F", "499", "--python=stop"))


@live.test
def whole_cpus():
    """Not inherited, and all that runs there: what several threads have is one stream."""
    recording = live.Recording([live.any_python(), "-c", PROGRAM], "-a", "-e", EVENTS.replace("task", "cpu"), "-F", "499")
    faults = counted(recording.path)["page-faults"]
    check(sum(faults.values()) >= 4 * PAGES, dict(faults))


# Attaches first: the program waits for a line, and this writes it and waits for the program's end.
ATTACHED = """
import os, sys, time
os.write(int(sys.argv[1]), b"\\n")
while os.path.exists(f"/proc/{sys.argv[2]}/exe"): time.sleep(0.05)
"""


@live.test
def attached():
    """Threads that exist and those that come, each with ids of its own at first."""
    program = f"import sys\nsys.stdin.readline()\n{PROGRAM}"
    target = subprocess.Popen([live.any_python(), "-c", program], stdin=subprocess.PIPE, text=True)
    try:
        with live.scratch_folder() as folder:
            path, pipe = os.path.join(folder, "perf.data"), target.stdin.fileno()
            ran = live.pyperf(
                "record", "-o", path, *live.RECORD_OPTIONS, "-e", EVENTS, "-F", "499", "-p", target.pid, "--",
                live.any_python(), "-c", ATTACHED, pipe, target.pid, pass_fds=[pipe],
            )
            check(ran.returncode == 0, ran.stderr)
            faults = [n for n in counted(path)["page-faults"].values() if n >= PAGES]
            check(len(faults) == 4 and max(faults) < 1.1 * PAGES, faults)
    finally:
        target.kill()
        target.wait()


if __name__ == "__main__":
    live.run()
