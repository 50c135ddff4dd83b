#!/usr/bin/env python3
"""Hardware counters of the machine at hand: what is skipped where it has none is tested in the emulated machines of
`make guest-test`."""
import json
import os
import re
import shutil
import subprocess

import live
from live import check

CHASE = live.TOP / "tests/workloads/chase.py"
CHASING, SUMMING = 12, 14  # its lines
STEPS = 2000000


def need(*events):
    """Skips where one of them does not count."""
    ran = live.pyperf("list", "--json", "hardware")
    check(ran.returncode == 0, ran.stderr)
    told = {event["name"]: event["status"] for event in json.loads(ran.stdout)["events"]}
    missing = [f"{name} ({told.get(name, 'unknown')})" for name in events if told.get(name) != "counts"]
    if missing:
        raise live.Skip(f"this machine does not count {', '.join(missing)}")


@live.test
def chasing_misses_and_summing_does_not():
    """The line that follows pointers has more misses per 1,000 instructions and a lower IPC, and surely so."""
    need("cycles", "instructions", "cache-misses")
    with live.scratch_folder() as folder:
        path = os.path.join(folder, "perf.data")
        ran = live.pyperf("record", "-q", "-e", "cycles,cache-misses", "-o", path, "--", live.any_python(), CHASE, STEPS)
        check(ran.returncode == 0, ran.stderr)
        ran = live.pyperf("annotate", "-i", path, "--json", "hot")
        check(ran.returncode == 0, ran.stderr)
    report = json.loads(ran.stdout)
    names = [event["name"].split(":")[0] for event in report["events"]]
    check(names[:1] == ["cycles"] and "instructions" in names and "cache-misses" in names, report["events"])
    lines = {row["line"]: row["metrics"] for row in report["lines"] if row["function"] == "hot"}
    chasing, summing = lines[CHASING], lines[SUMMING]
    check(chasing["mpki"]["low"] > summing["mpki"]["high"], "MPKI:", chasing, summing)
    check(chasing["ipc"]["high"] < summing["ipc"]["low"], "IPC:", chasing, summing)
    return "; ".join(f"{key} {chasing[key]['value']:.2f} and {summing[key]['value']:.2f}" for key in ("mpki", "ipc"))


@live.test
def totals_are_perfs():
    """What a recording says was counted in all, and stat, within 2% of perf stat."""
    need("instructions")
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    command = [live.any_python(), CHASE, STEPS // 10]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    with live.scratch_folder() as folder:
        path, csv, counts = (os.path.join(folder, name) for name in ("perf.data", "perf.csv", "stat.json"))
        ran = subprocess.run(["perf", "stat", "-x,", "-o", csv, "-e", "instructions:u", "--", *map(str, command)], env=environment)
        check(ran.returncode == 0, "perf stat ended with", ran.returncode)
        with open(csv) as lines:
            # A line for each PMU of a hybrid CPU, and so an event of stat's for each.
            perf = sum(float(line.split(",")[0]) for line in lines if re.match(r"\d+,.*instructions", line))
        ran = live.pyperf("record", "-q", "-e", "instructions:u", "-o", path, "--", *command, env=environment)
        check(ran.returncode == 0, ran.stderr)
        ran = live.pyperf("stat", "--json", "-o", counts, "-e", "instructions:u", "--", *command, env=environment)
        check(ran.returncode == 0, ran.stderr)
        with open(counts) as text:
            stat = sum(event["value"] for event in json.load(text)["events"])
        ran = live.pyperf("report", "--json", "-i", path)
        check(ran.returncode == 0, ran.stderr)
    recorded = json.loads(ran.stdout)["events"][0]["estimated_total"]
    for value in (recorded, stat):
        check(abs(value / perf - 1) < 0.02, "record:", recorded, "stat:", stat, "perf stat:", perf)
    return f"{recorded / perf:.4f} and {stat / perf:.4f} of perf's {perf:.0f}"


if __name__ == "__main__":
    live.run(needs_lines=False)
