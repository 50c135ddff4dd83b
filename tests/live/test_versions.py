#!/usr/bin/env python3
"""Every CPython that is here, each version and build: a row of what its recordings are like, which are
short here and of 250,000 samples each with PYPERF_TEST_ALL=1. `test_versions.py --table` prints the rows
as a table."""
import os
import re
import shutil
import subprocess
import sys

import judge
import live
from live import check

SAMPLES = 250_000
SECONDS = 0.12
TRIES = 3

COLUMNS = ("version and build", "samples", "lines", "stacks", "impossible", "distance", "i.i.d.", "off")
table = []


def truth_of(python, *sections):
    count = len(sections) or 10
    seconds = SAMPLES / judge.RATE / count if live.LONG else SECONDS
    return judge.Truth(python, seconds, *sections, stacks=False)


@live.test_every_python
def row(python):
    """The time on lines (a section that is off its interval is recorded again), lines on samples, and
    possible stacks alone."""
    truth = truth_of(python)
    off = [name for name in truth.account if list(truth.complaints(name, 0.999 if live.LONG else 0.99))]
    apart, floor = truth.distance()
    for _ in range(TRIES - 1):
        if off:
            again = truth_of(python, *off)
            off = [name for name in off if list(again.complaints(name, 0.999 if live.LONG else 0.99))]
    # In user space, where the run is long enough for the interpreter's start not to matter.
    user = truth.report
    if live.LONG:
        user = live.Recording([python, judge.TRUTH, 5], "-e", "cpu-clock:u", "-F", judge.RATE).report()
    edges = judge.Edges(python)
    wanted = SAMPLES if live.LONG else 1
    while edges.stacks < wanted:
        seconds = 20 if live.LONG else 1
        recording = live.Recording([python, judge.EDGES, seconds], "-e", "cpu-clock", "-F", judge.RATE)
        edges.judge(live.parse_script(recording.read("script")))
    cells = (
        f"{truth.report['samples']['total']}", f"{judge.line_coverage(user):.2%}", f"{edges.stacks}",
        f"{len(edges.impossible)}", f"{apart:.3%}", f"{floor:.3%}", ", ".join(off) or "-",
    )
    table.append((NAMES[python], *cells))
    check(not edges.impossible, *edges.impossible[:1])
    check(edges.whole >= 0.995 * edges.stacks, edges.whole, "of", edges.stacks, "stacks reach the program's start")
    check(not off, "lines are off the truth:", off, "each of", TRIES, "times")
    check(judge.line_coverage(user) >= (0.995 if live.LONG else 0.9), user["samples"])
    return " ".join(f"{name} {cell}," for name, cell in zip(COLUMNS[1:], cells)).rstrip(",")


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
    return live.Recording(
        [python, judge.EDGES, 1], "-e", "cpu-clock", "-F", judge.RATE, env={"LD_PRELOAD": copy},
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


# Versions whose tables differ in where the key is alone, so that frames must be walked to tell.
ALIKE = {(3, 8): (3, 9), (3, 9): (3, 8)}


def record_as(folder, version, python, library):
    """With that library under a version's name, which is all that tells it before 3.11."""
    copy = shutil.copy(library, f"{folder}/libpython3.{version[1]}.so.1.0")
    return live.Recording([python, judge.EDGES, 1], "-e", "cpu-clock", "-F", 999, env={"LD_PRELOAD": copy})


@live.test
def table_that_does_not_fit():
    """Refused, once and with the reason: by debug information, and without any by frames."""
    found = {version: p for p in live.BUILDS.values() if not p.root and (version := live.version_of(p)) in ALIKE}
    if not found:
        raise live.Skip("no CPython 3.8 or 3.9")
    version, python = found.popitem()
    where = live.python_says(python, "import sysconfig as s; print(s.get_config_var('LIBDIR'))")
    library = f"{where}/libpython3.{version[1]}.so.1.0"
    if not os.path.exists(library) or not shutil.which("strip"):
        raise live.Skip("no shared libpython of that version, or no strip")
    told = []
    with live.scratch_folder() as folder:
        stripped = f"{folder}/stripped"
        subprocess.run(["strip", "-o", stripped, library], check=True)
        for source, reason in ((library, " is at "), (stripped, "lead nowhere")):
            right = record_as(folder, version, python, source).report()["samples"]
            check(right["python_lines"] > 0.5 * right["total"], source, right)
            recording = record_as(folder, ALIKE[version], python, source)
            said = [line for line in recording.ran.stderr.splitlines() if "not built as others are" in line]
            samples = recording.report()["samples"]
            check(samples["total"] > 100 and samples["python_lines"] == 0, source, samples)
            # A debug file elsewhere may know the stripped one, too.
            check(len(said) == 1 and (reason in said[0] or " is at " in said[0]), source, recording.ran.stderr)
            told.append(said[0].split(": ", 2)[-1])
    return "; ".join(told)


def show(rows):
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows)]
    for cells in (COLUMNS, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())


NAMES = {python: name for name, python in live.BUILDS.items()}

if __name__ == "__main__":
    wants_table = "--table" in sys.argv
    if wants_table:
        sys.argv.remove("--table")
    live.run()
    if wants_table:
        show(table)
