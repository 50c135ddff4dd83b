"""Phases that PyTorch's profiler and pyperf both see: spin runs, rest sleeps, three times each.

torch.json.gz and torch.data are of one run with PyTorch 2.4.1 (from PyPI, CPU alone): this program was
started, `pyperf record -F 499 --call-graph none -p PID -o torch.data` attached to it while it waited
for the line, and the line was sent.
"""
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function


def spin(seconds):
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        for i in range(2000):
            total += i & 7
    return total


def rest(seconds):
    time.sleep(seconds)


def work():
    for _ in range(3):
        with record_function("spin"):
            spin(0.1)
        with record_function("rest"):
            rest(0.1)
    torch.ones(8, 8) @ torch.ones(8, 8)


torch.ones(2) + 1
with profile(activities=[ProfilerActivity.CPU]):
    pass  # what the profiler does first takes long
sys.stdin.readline()  # until sampling has begun
with profile(activities=[ProfilerActivity.CPU]) as prof:
    work()
prof.export_chrome_trace("torch.json.gz")
