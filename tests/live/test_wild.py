#!/usr/bin/env python3
"""Bad input while recording: stacks that lead nowhere, and files that change under the recording."""
import collections
import os
import re
import shutil

import live
from live import Skip, check

FRAMES_MAX = 1000

# By the innermost function: why its stacks end, and how many frames they may have.
ENDS = {
    "nowhere": ("memory cannot be read", 1),
    "around": ("the stack leads back to itself", 2),
    "endless": ("too many frames", FRAMES_MAX),
    "lying": ("the stack leads back to itself", 1),
    "[unknown]": ("memory cannot be read", 4),
}


def judge(*options):
    recording = live.Recording([live.BUILD / "tests/workloads/wild"], "-e", "cpu-clock:u", "-F", "999", *options)
    seen, whole = collections.Counter(), collections.Counter()
    for sample in recording.script():
        name = re.split(r"[+@ ]", sample.frames[0].name)[0]
        if name not in ENDS:
            continue
        if sample.frames[-1].name.startswith("_start"):
            whole[name] += 1
            continue
        check(len(sample.frames) <= ENDS[name][1], name, "has", len(sample.frames), "frames")
        seen[name] += 1
    # At a function's first instructions its stack is not spoilt yet.
    check(all(whole[name] <= seen[name] / 50 for name in ENDS), "whole:", whole, "of", seen)
    check(all(seen[name] > 50 for name in ENDS), seen)
    said = re.search(r"([\d,]+) of [\d,]+ native stacks are not whole: (.*)", recording.read("report"))
    check(said and int(said[1].replace(",", "")) >= sum(seen.values()), said and said[0], seen)
    for reason, _ in ENDS.values():
        check(reason in said[2], reason, "is not among", said[0])
    return f"{sum(seen.values())} stacks"


@live.test
def wild_stacks():
    """Bounded, counted, and each with its reason, whoever copies the stacks."""
    if os.uname().machine != "x86_64":
        raise Skip("for x86-64 only")
    told = [judge("--python=off")]
    if not live.missing_permission():
        told.append(judge("--python=bpf"))
    return ", ".join(told)


# Loads a library of its own, works in it, and has it cut short or overwritten in place before the
# recorder has seen the last of it: new functions are called directly before.
TORN = """
import ctypes, os, shutil, sys, time
original, folder, how = sys.argv[1:]
def spend(seconds, work):
    end = time.process_time() + seconds
    while time.process_time() < end: work()
loaded = []
for names in (["sin", "tgamma"], ["cos", "lgamma"], ["tan", "erfc"], ["exp", "cbrt"]):
    path = os.path.join(folder, names[0] + ".so")
    shutil.copy(original, path)
    loaded.append((path, ctypes.CDLL(path), names))
for path, library, names in loaded:
    for name, seconds in zip(names, (0.3, 0.02)):
        function = getattr(library, name)
        function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
        spend(seconds, lambda: function(1234.5))
    with open(path, "r+b") as file:
        if how == "cut":
            file.truncate(0)
        else:
            file.write(b"\\x7fELF" * (os.path.getsize(path) // 4))
spend(0.3, lambda: None)
print("done", flush=True)
os._exit(0)
"""


def library_of_math():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        text = maps.read()
    found = re.search(r"(/\S+/libm[.-]\S*)$", text, re.M)
    if not found:
        raise Skip("this Python's C library has no libm.so")
    return found[1]


@live.test
def torn_libraries():
    """Files that are cut short or overwritten in place, while the recorder has them open."""
    original = library_of_math()
    for how in ("cut", "overwrite"):
        with live.scratch_folder() as folder:
            shutil.copy(original, f"{folder}/original.so")
            recording = live.Recording(
                [live.any_python(), "-c", TORN, f"{folder}/original.so", folder, how], "-e", "cpu-clock:u", "-F", "999"
            )
            check("done" in recording.stdout, recording.stdout, recording.ran.stderr)
            report = recording.report()
            check(report["samples"]["total"] > 300, report["samples"])
            names = {function["name"] for function in report["functions"] if function["kind"] == "python"}
            check("spend" in names, names)
    return ""


if __name__ == "__main__":
    live.run(needs_lines=False)
