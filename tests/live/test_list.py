#!/usr/bin/env python3
"""What `pyperf list` says of this machine, beside `perf list` and `perf stat`."""
import json
import pathlib
import re
import shutil
import subprocess

import live
from live import check


def listed(*pattern):
    ran = live.pyperf("list", "--json", *pattern)
    check(ran.returncode == 0, ran.stderr)
    return json.loads(ran.stdout)


def need_perf():
    if not shutil.which("perf"):
        raise live.Skip("no perf here")


@live.test
def names():
    """All that perf lists is there; every PMU of sysfs, too."""
    need_perf()
    ours = listed()
    known = {name for event in ours["events"] for name in [event["name"], *event["aliases"]]}
    theirs = subprocess.run(["perf", "list", "hw", "sw", "cache", "pmu"], capture_output=True, text=True).stdout
    wanted = set()
    for line in theirs.splitlines():
        match = re.match(r"\s+(\S+(?: OR \S+)*)\s+\[(Hardware event|Software event|Hardware cache event|Kernel PMU event)\]", line)
        if match:
            wanted.update(match[1].split(" OR "))
    check(len(wanted) > 5, theirs)
    check(not wanted - known, "not listed:", wanted - known)
    pmus = {path.name for path in pathlib.Path("/sys/bus/event_source/devices").iterdir()}
    check({pmu["name"] for pmu in ours["pmus"]} == pmus, ours["pmus"])


# What every program has: others, such as migrations, happen or not.
ALWAYS = {"task-clock", "cpu-clock", "page-faults", "minor-faults", "cycles", "instructions", "branches"}


@live.test
def statuses():
    """What is said to count perf counts, too; what is said not to be here perf cannot open."""
    need_perf()
    told = {event["name"]: event["status"] for event in listed()["events"] if event["kind"] in ("hardware", "software", "cache")}
    check(told["task-clock"] == "counts" and told["page-faults"] == "counts", told)
    check(told["dummy"] == "zero", told)
    for name, status in told.items():
        if status not in ("counts", "absent") or (status == "absent" and "-" in name.split("-", 1)[-1]):
            continue
        ran = subprocess.run(["perf", "stat", "-x,", "-e", name, "sleep", "0.01"], capture_output=True, text=True)
        value = ran.stderr.split(",")[0]
        counted = value.replace(".", "").isdigit()
        check((status == "counts") == counted and not (name in ALWAYS and counted and float(value) <= 0), name, status, ran.stderr)
    return ", ".join(name for name, status in told.items() if status == "counts")


@live.test
def nothing_found():
    ran = live.pyperf("list", "no-such-event-at-all")
    check(ran.returncode == 1 and "no event here is like 'no-such-event-at-all'" in ran.stderr, ran.stderr)


live.run(needs_lines=False)
