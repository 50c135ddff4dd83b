#!/usr/bin/env python3
"""Threads and processes that a target makes, by every way there is, and how they end."""
import sys

import live
from live import check

# Threads that sleep go on when others have ended.
SLEEPERS = """
import threading, time
def sleeper():
    for _ in range(500): time.sleep(0.0005)
def short(): time.sleep(0.01)
for function in (sleeper, sleeper, short, short): threading.Thread(target=function).start()
"""


@live.test_each_python
def tracepoints_outlive_a_thread(python):
    """The walker stays at a tracepoint when a thread that inherited its event ends."""
    recording = live.Recording([python, "-S", "-c", SLEEPERS], "-e", "sched:sched_switch")
    sleeping = [s for s in recording.script() if any("nanosleep" in frame.name for frame in s.frames)]
    check(len(sleeping) >= 1000, "only", len(sleeping), "switches in sleep()")
    lines = sum(s.python[0].name == "sleeper" for s in sleeping if s.python)
    # short() has two of them.
    check(lines >= 0.99 * len(sleeping), "sleeper() has", lines, "of", len(sleeping))
    return f"{lines} of {len(sleeping)}"


if __name__ == "__main__":
    sys.exit(live.run())
