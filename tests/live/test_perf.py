#!/usr/bin/env python3
"""perf opens what pyperf records, and counts the same samples; pyperf opens what perf records."""
import collections
import re
import shutil
import subprocess

import live
from live import check

BUSY = "x = 1\nfor i in range(6000000): x = x * 3 & 1023\nimport os\nfor i in range(20000): os.getppid()"


def perf(*arguments):
    ran = subprocess.run(
        ["perf", *map(str, arguments)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    check(ran.returncode == 0, "perf", *arguments, "ended with", ran.returncode, ran.stderr)
    return ran.stdout


def need_perf():
    if not shutil.which("perf"):
        raise live.Skip("no perf here")


def perf_stats(path):
    """{event: samples} of `perf report --stats`."""
    counts, event = {}, None
    for line in perf("report", "--stats", "-i", path).splitlines():
        if match := re.match(r"(\S+) stats:", line):
            event = match[1]
        elif (match := re.match(r"\s+SAMPLE events:\s+(\d+)", line)) and event not in (None, "Aggregated"):
            counts[event] = int(match[1])
    return counts


def perf_script(path):
    counts = collections.Counter()
    for line in perf("script", "-i", path, "-F", "event").splitlines():
        if line.strip():
            counts[line.strip().rstrip(":")] += 1
    return counts


def compare(recording):
    need_perf()
    ours = {event["name"]: event["samples"] for event in recording.report()["events"]}
    check(sum(ours.values()) > 0, "no samples")
    stats, script = perf_stats(recording.path), perf_script(recording.path)
    for event, samples in ours.items():
        check(stats.get(event, 0) == samples, event, "has", samples, "samples; perf report --stats:", stats)
        check(script.get(event, 0) == samples, event, "has", samples, "samples; perf script:", script)
    return ours


@live.test
def counts_agree():
    return compare(live.Recording([live.any_python(), "-c", BUSY], "-F", 4999))


@live.test
def counts_agree_uncompressed():
    return compare(live.Recording([live.any_python(), "-c", BUSY], "-F", 4999, "-z", "0"))


@live.test
def counts_agree_for_several_events():
    events = ["-e", "cpu-clock", "-e", "task-clock:u", "-e", "page-faults", "-e", "context-switches"]
    return compare(live.Recording([live.any_python(), "-c", BUSY], *events, "-g"))


@live.test
def counts_agree_for_tracepoints():
    """perf refuses a file whose tracepoints' formats are not in it."""
    events = ["-e", "sched:sched_switch", "-e", "cpu-clock", "-e", "sched:sched_wakeup,syscalls:sys_enter_write"]
    if live.pyperf("record", "-e", "sched:sched_switch", "-o", "/dev/null", "--", "true").returncode != 0:
        raise live.Skip("tracepoints cannot be recorded here")
    program = "import os, time\nfor _ in range(50):\n    time.sleep(0.002); os.write(2, b'')"
    return compare(live.Recording([live.any_python(), "-c", program], *events))


@live.test
def counts_agree_without_python_frames():
    return compare(live.Recording([live.any_python(), "-c", BUSY], "--python=off", "-g"))


@live.test
def counts_agree_for_many_processes():
    program = "import os\nfor _ in range(20):\n    if not os.fork():\n        sum(range(300000)); os._exit(0)\n    os.wait()"
    return compare(live.Recording([live.any_python(), "-c", program], "-F", 4999))


@live.test
def perf_names_the_call_chain():
    """perf resolves native frames of our chains: build-ids and maps are where it looks for them."""
    need_perf()
    recording = live.Recording([live.any_python(), "-c", BUSY], "-g", "-F", 999)
    text = perf("script", "-i", recording.path)
    check("python" in text, "perf script names no python:", text[:2000])


@live.test
def reads_what_perf_records():
    need_perf()
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        perf("record", "-q", "-e", "cpu-clock", "-F", "999", "-g", "-o", path, "--", live.any_python(), "-c", BUSY)
        ran = live.pyperf("report", "--json", "-i", path)
        check(ran.returncode == 0, ran.stderr)
        ours = {event["name"]: event["samples"] for event in live.json.loads(ran.stdout)["events"]}
        check(ours == perf_stats(path), ours, "but perf:", perf_stats(path))
        return ours


if __name__ == "__main__":
    live.run()
