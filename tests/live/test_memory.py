#!/usr/bin/env python3
"""annotate --memory: programs that touch known amounts of memory, line by line, and a recording of real
loads whose latencies and sources perf reads too."""
import collections
import json
import re
import shutil
import subprocess

import live
from live import check
from perf_reports import FOLDER

MIB = 1 << 20

PROGRAM = """
import mmap

def private(n):
    return mmap.mmap(-1, n << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

def touch(m):
    m[::4096] = b"x" * (len(m) >> 12)

def grow():
    a = private(24)
    a.madvise(mmap.MADV_NOHUGEPAGE)
    b = private(10)
    b.madvise(mmap.MADV_NOHUGEPAGE)
    a[::4096] = b"x" * (24 << 8)
    touch(b)
    a.madvise(mmap.MADV_DONTNEED)
    a[::4096] = b"x" * (24 << 8)
    return a, b

grow()
"""
FILL_A, TOUCH_B, REFILL_A = 15, 16, 18  # lines

HUGE = """
import mmap

def grow():
    m = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.madvise(mmap.MADV_HUGEPAGE)
    m[::4096] = b"x" * (32 << 8)

grow()
"""


def rows(program, *options):
    """{line: its figures} of grow()."""
    if subprocess.run([live.any_python(), "-c", "import mmap; mmap.mmap.madvise"], stderr=subprocess.DEVNULL).returncode:
        raise live.Skip(f"{live.any_python()} is older than mmap.madvise (3.8)")
    with live.scratch_folder() as folder:
        script, data = f"{folder}/grow.py", f"{folder}/perf.data"
        with open(script, "w") as out:
            out.write(program)
        ran = live.pyperf("record", *options, "-o", data, "--", live.any_python(), script)
        check(ran.returncode == 0, ran.stderr)
        ran = live.pyperf("annotate", "--memory", "--json", "grow", "-i", data)
        check(ran.returncode == 0, ran.stderr)
        return {row["line"]: row["memory"] for row in json.loads(ran.stdout)["rows"]}


def near(value, mib, what):
    # Beside the pages there are the bytes object that is assigned, tables and frames.
    check(mib * MIB <= value <= (mib + 1) * MIB, what, "grew by", value / MIB, "MiB, not", mib)


def grows(events):
    lines = rows(PROGRAM, "-e", events)
    near(lines[FILL_A]["increment"], 24, "the line that fills")
    near(lines[TOUCH_B]["increment"], 10, "the line that calls what fills")
    # Memory that was given back is not new, but it is touched again.
    check(lines[REFILL_A]["increment"] < MIB, "filling again grew by", lines[REFILL_A])
    near(lines[REFILL_A]["again"], 24, "the line that fills again")
    check(lines[TOUCH_B]["usage"] >= lines[FILL_A]["usage"] + 10 * MIB, "usage does not add up:", lines)
    check(lines[FILL_A]["occurrences"] >= 24 << 8, lines[FILL_A])


@live.test
def page_faults_grow():
    grows("page-faults")


@live.test
def minor_and_major_faults_grow():
    grows("minor-faults,major-faults")


@live.test
def periods_stand_for_faults():
    """Every 16th fault sampled: the same growth, to a sample or two."""
    lines = rows(PROGRAM, "-e", "page-faults", "-c", "16")
    check(abs(lines[FILL_A]["increment"] - 24 * MIB) <= MIB, "every 16th:", lines[FILL_A])


@live.test
def huge_pages_have_their_size():
    try:
        setting = open("/sys/kernel/mm/transparent_hugepage/enabled").read()
    except OSError:
        setting = "[never]"
    if "[never]" in setting:
        raise live.Skip("huge pages are off here")
    lines = rows(HUGE, "-e", "minor-faults,major-faults")
    fill = lines[7]
    if fill["occurrences"] >= 32 << 8:
        raise live.Skip("the kernel gave no huge pages")
    # Ends that are not aligned have small pages: the size is that of the mapping all the same.
    near(fill["increment"], 32, "the line that fills huge pages")


def perf_accesses(path):
    """(latencies, sources) of each sample as perf script tells them."""
    ran = subprocess.run(
        ["perf", "script", "-i", str(path), "-F", "data_src,weight"], capture_output=True, text=True, check=True
    )
    weights, levels = 0, collections.Counter()
    for line in ran.stdout.splitlines():
        if match := re.search(r"\|LVL ([^|]*)\|.*BLK\s+\S+\s+(\d+)", line):
            levels[match[1].split(" or ")[-1].replace("LFB/MAB", "LFB").strip()] += 1
            weights += int(match[2])
    return weights, levels


@live.test
def accesses_are_perfs():
    """Loads recorded on a real CPU: latencies and where the data was."""
    path = FOLDER / "perf.data.weight_struct"
    if not path.exists():
        raise live.Skip("no fixtures: set PYPERF_FIXTURES")
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    weights, levels = perf_accesses(path)
    report = json.loads(live.pyperf("report", "--memory", "--json", "-i", path).stdout)
    ours = collections.Counter()
    total = 0
    for row in report["rows"]:
        memory = row["memory"]
        total += round(memory["latency"] * memory["accesses"]) if memory["accesses"] else 0
        for key, name in (("l1", "L1 hit"), ("lfb", "LFB hit"), ("l2", "L2 hit"), ("l3", "L3 hit")):
            ours[name] += round(memory[key] * memory["accesses"])
    check(report["accesses"] == sum(levels.values()) == 14, report["accesses"], levels)
    check(total == weights, "latencies add up to", total, "but perf's to", weights)
    check(+ours == levels, "data was in", +ours, "but perf says", levels)


if __name__ == "__main__":
    live.run()
