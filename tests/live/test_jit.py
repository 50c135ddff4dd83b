#!/usr/bin/env python3
"""Code made at run time, named by a perf map as CPython's -X perf names its trampolines."""
import glob
import os
import re
import subprocess
import sys

import live

JITMAP = live.BUILD / "tests/workloads/jitmap"


def record(*options):
    if subprocess.run([JITMAP, "1"]).returncode == 77:
        raise live.Skip("jitmap knows no code of this architecture")
    before = set(glob.glob("/tmp/perf-*.map"))
    recording = live.Recording([str(JITMAP), "8000"], "-e", "cpu-clock:u", "-F", "4999", *options)
    # The report must not need what the program left behind.
    for path in set(glob.glob("/tmp/perf-*.map")) - before:
        os.unlink(path)
    return recording


@live.test
def trampolines_are_python_functions():
    """Their shares are 7 to 3, their callee is native code, and the map is in the recording."""
    recording = record()
    report = recording.report()
    (event,) = (e for e in report["events"] if e["samples"])
    functions = {f["qualname"]: f for f in report["functions"]}
    live.check("stale" not in functions, "an entry that was written over has samples")
    for name in ("seven", "three"):
        live.check(name in functions, name, "is not among", sorted(functions))
        live.check(functions[name]["kind"] == "python", functions[name])
        live.check(functions[name]["file"] == "/src/jit program.py", functions[name])
    seven, three = (functions[n]["events"][event["name"]]["total_samples"] for n in ("seven", "three"))
    live.check(live.within(seven, seven + three, 0.7, 0.9999), seven, "of", seven + three, "are not 70%")
    live.check(seven + three > 0.97 * event["samples"], seven + three, "of", event["samples"])
    live.check(functions["add"]["kind"] == "native", functions["add"])
    return f"{seven} and {three} of {event['samples']}"


@live.test
def stacks_go_through_them():
    """main calls the trampolines, which call spin. (add, which has no frame, hides its caller.)"""
    folded = record().read("export", "--format", "folded").splitlines()
    through = sum(int(line.rsplit(" ", 1)[1]) for line in folded if re.search(";main;(seven|three);(spin|add) ", line))
    total = sum(int(line.rsplit(" ", 1)[1]) for line in folded)
    live.check(through > 0.97 * total, through, "of", total, folded[:5])
    return f"{through} of {total}"


if __name__ == "__main__":
    sys.exit(live.run(needs_lines=False))
