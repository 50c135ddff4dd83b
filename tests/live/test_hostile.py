#!/usr/bin/env python3
"""Programs that look like CPython and lie: pyperf ends well, in bounds, and counts what it refused."""
import os
import re
import subprocess
import sys
import tempfile

import live
from live import check

PROGRAM = live.BUILD / "tests/workloads/hostile_python"
MOST_KB = 400 << 10


def bounded(*arguments, statuses=(0,)):
    """Runs pyperf and returns (output, errors); its memory must stay in bounds, its time is limited."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            ["timeout", "100", live.PYPERF, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status  # it is waited for already
        out.seek(0)
        err.seek(0)
        output, errors = out.read(), err.read()
    check(os.waitstatus_to_exitcode(status) in statuses, arguments, "ended with", status, errors[-2000:])
    check("Sanitizer" not in errors, errors[-3000:])
    check(live.SANITIZED or usage.ru_maxrss < MOST_KB, arguments, "took", usage.ru_maxrss, "KB")
    return output, errors


def views(kind, program=PROGRAM):
    """The report of the recorded program; all views of it must end well."""
    with live.scratch_folder() as folder:
        data = f"{folder}/perf.data"
        command = [program, kind] if kind else [program]
        _, errors = bounded("record", "-o", data, "-e", "cpu-clock:u", "-F", "999", "--", *command)
        check(os.path.getsize(data) < 64 << 20, "the recording has", os.path.getsize(data), "bytes")
        report, _ = bounded("report", "-i", data, "--percent-limit", "0")
        for other in (["script"], ["export", "--format", "folded"]):
            bounded(other[0], "-i", data, *other[1:])
        # More than one function has that name, or none.
        bounded("annotate", "-i", data, "hostile:1", statuses=(0, 1))
        return report, errors


DEEPER = r"Python stacks? (is|are) deeper than"
EARLY = r"Python stacks? ends? early"
UNREAD = r"samples? ran Python code that could not be read"
# What the report says of each kind; None: there are no Python frames, or they are whole.
KINDS = {
    "sound": None, "cycle": DEEPER, "cycles": DEEPER, "endless": DEEPER, "codes": "",
    "wild": EARLY, "kernel": EARLY, "noncanonical": EARLY, "misaligned": EARLY, "misaligned-code": EARLY,
    "wild-code": EARLY, "shims": DEEPER, "state": EARLY, "key": EARLY, "strings": UNREAD, "tables": None, "changing": "",
}


def make_test(kind, told):
    def hostile():
        report, _ = views(kind)
        check(re.search(told or "", report), told, "is not in", report[-1500:])
        if told is None:
            check(not re.search("|".join((DEEPER, EARLY, UNREAD)), report), report[-1500:])
            check("hostile" in report, report)
        return " ".join(report.splitlines()[-1:])

    hostile.__name__ = f"hostile_{kind.replace('-', '_')}"
    live.test(hostile)


for _kind, _told in KINDS.items():
    make_test(_kind, _told)


@live.test
def hostile_debug_offsets():
    _, errors = views("", live.BUILD / "tests/workloads/hostile_python_offsets")
    check(re.search(r"no Python frames: .*offsets", errors), errors)
    return errors.splitlines()[0]


if __name__ == "__main__":
    sys.exit(live.run())
