"""Phases that VizTracer and pyperf both see: spin runs, rest sleeps, three times each."""
import time

from viztracer import VizTracer


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
        spin(0.1)
        rest(0.1)


time.sleep(0.6)  # imports are over when sampling begins
with VizTracer(output_file="viztracer.json", ignore_c_function=True, min_duration=50, verbose=0):
    work()
