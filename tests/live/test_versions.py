#!/usr/bin/env python3
"""Every CPython that is here, each version and build: what its recordings are like, by few samples here
and by more with PYPERF_TEST_ALL=1. `tests/bench/run pythons` makes a table of it, by 250,000."""
import os
import re

import judge
import live
from live import check
from misnamed import Misnamed

SAMPLES = 20_000 if live.LONG else 1500
# Of few samples one that met a thread which ends counts much.
COVERAGE = 0.995 if live.LONG else 0.99


@live.test_every_python
def row(python):
    """The time on lines (a section that is off its interval is recorded again), lines on samples (so is
    all, where pyperf had to wait for a CPU while the interpreter started), and possible stacks alone."""
    measured = judge.Measures(python, SAMPLES)
    seconds = min(SAMPLES, judge.SHARES_MOST) / judge.RATE / judge.SECTIONS
    off, _ = judge.persistent(measured.truth, lambda sections: judge.Truth(python, seconds, *sections, stacks=False))
    edges = measured.edges
    check(not edges.impossible, *edges.impossible[:1])
    check(edges.whole >= 0.995 * edges.stacks, edges.whole, "of", edges.stacks, "stacks reach the program's start")
    check(not off, "lines are off the truth, each of", judge.TRIES, "times:", *off)
    coverage = measured.coverage
    for _ in range(judge.TRIES - 1):
        if coverage < COVERAGE:
            coverage = judge.coverage(judge.worked(python, judge.worked_samples(SAMPLES)))
    check(coverage >= COVERAGE, f"{coverage:.3%} of user samples have lines, after {judge.TRIES} tries")
    return (
        f"lines on {coverage:.2%}, {edges.stacks} stacks, distance {measured.apart:.2%}"
        f" (independent samples: {measured.floor:.2%})"
    )


NEWER = (3, 16)


def future(folder):
    """A copy of a libpython that says that it is of a version that nobody knows yet, and what runs it."""
    for python in live.BUILDS.values():
        if python.root or live.version_of(python) < (3, 13):
            continue
        library = live.python_says(python, "import sysconfig as s; print(s.get_config_var('LDLIBRARY'))")
        where = live.python_says(python, "import sysconfig as s; print(s.get_config_var('LIBDIR'))")
        path = os.path.join(where, library)
        if not re.fullmatch(r"libpython3\.\d+\.so(\.1\.0)?", library) or not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            content = file.read()
        version = int(live.python_says(python, "import sys; print(sys.hexversion)"))
        newer = (NEWER[0] << 24 | NEWER[1] << 16).to_bytes(4, "little")
        old = version.to_bytes(4, "little")
        # In the debug offsets, and Py_Version.
        cookie = content.index(b"xdebugpy" + old)
        copy = os.path.join(folder, os.path.basename(os.path.realpath(path)))
        content = content[: cookie + 8] + newer + content[cookie + 12 :]
        return python, copy, content, cookie
    raise live.Skip("no shared libpython of 3.13 or later")


def record_future(folder, copy, python, content):
    with open(copy, "wb") as file:
        file.write(content)
    # Not for pyperf itself, which may have been built with a sanitizer.
    return live.Recording(
        ["env", f"LD_PRELOAD={copy}", python, judge.EDGES, 1], "-e", "cpu-clock", "-F", judge.RATE,
    )


@live.test
def newer_version_that_describes_itself():
    """Unannounced: its layout from its debug offsets, its thread key from what its threads hold."""
    with live.scratch_folder() as folder:
        python, copy, content, _ = future(folder)
        recording = record_future(folder, copy, python, content)
        report = recording.report()
        check("3.16" in recording.read("report"), recording.read("report")[:300])
        edges = judge.Edges(python).judge(recording.script())
        check(not edges.impossible, *edges.impossible[:1])
        check(judge.line_coverage(report) > 0.5, report["samples"])
        return f"{edges.stacks} stacks, lines on {judge.line_coverage(report):.1%}"


@live.test
def newer_version_that_does_not():
    """Said once, and the recording goes on."""
    with live.scratch_folder() as folder:
        python, copy, content, cookie = future(folder)
        content = content[: cookie + 24] + bytes(800) + content[cookie + 824 :]
        recording = record_future(folder, copy, python, content)
        said = [line for line in recording.ran.stderr.splitlines() if "does not describe its structures" in line]
        check(len(said) == 1, recording.ran.stderr)
        report = recording.report()
        check(report["samples"]["total"] > 100 and not report["samples"]["python"], report["samples"])
        return said[0]


def record_misnamed(misnamed):
    return live.Recording([*misnamed.command, judge.EDGES, 1], "-e", "cpu-clock", "-F", 999)


@live.test
def table_that_does_not_fit():
    """Refused, once and with the reason: by debug information, and without any by frames."""
    told = []
    with live.scratch_folder() as folder:
        for strip, reason in ((False, " is at "), (True, "lead nowhere")):
            right = record_misnamed(Misnamed(folder, strip, rightly=True)).report()["samples"]
            check(right["python_lines"] > 0.5 * right["total"], "stripped" if strip else "whole", right)
            recording = record_misnamed(Misnamed(folder, strip))
            said = [line for line in recording.ran.stderr.splitlines() if "not built as others are" in line]
            samples = recording.report()["samples"]
            check(samples["total"] > 100 and samples["python_lines"] == 0, samples)
            # A debug file elsewhere may know the stripped one, too.
            check(len(said) == 1 and (reason in said[0] or " is at " in said[0]), recording.ran.stderr)
            told.append(said[0].split(": ", 2)[-1])
    return "; ".join(told)


if __name__ == "__main__":
    live.run()
