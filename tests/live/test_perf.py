#!/usr/bin/env python3
"""perf opens what pyperf records, and counts the same samples; pyperf opens what perf records."""
import collections
import re
import shutil
import subprocess

import live
from live import check
from perf_reports import our_objects, perf_objects

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


GROUP = "{cpu-clock,page-faults,task-clock}:S"
TOUCHES = "for _ in range(20):\n    x = [bytearray(5000) for _ in range(2000)]\n    sum(range(200000))"


def same_objects(path):
    """Event by event: samples, period in all, and each object's part of both."""
    theirs, ours = perf_objects(path), our_objects(path)
    theirs.pop("python-frames", None)
    check(set(ours) == set(theirs), "events", set(ours), "but perf's are", set(theirs))
    for event, (objects, period) in theirs.items():
        check(ours[event][1] == period, event, "has the period", ours[event][1], "but perf's is", period)
        samples = [sum(part[0] for part in parts.values()) for parts in (ours[event][0], objects)]
        check(samples[0] == samples[1], event, "has", samples[0], "samples, but perf's has", samples[1])
    return ours, theirs


@live.test
def groups_that_are_read_agree():
    """What was counted along with a leader: perf makes the same differences of our reads."""
    need_perf()
    recording = live.Recording([live.any_python(), "-c", TOUCHES], "-e", GROUP, "-F", 1999)
    ours, _ = same_objects(recording.path)
    check(len(ours) == 3 and ours["page-faults"][1] > 100, "events are", ours)
    return {event: period for event, (_, period) in ours.items()}


@live.test
def groups_that_perf_reads_agree():
    need_perf()
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        perf("record", "-q", "-e", GROUP, "-F", "1999", "-o", path, "--", live.any_python(), "-c", TOUCHES)
        ours, theirs = same_objects(path)
        check(len(ours) == 3 and ours["page-faults"][1] > 100, "events are", ours)
        for event, (objects, _) in theirs.items():
            for name, part in objects.items():
                if name != "[kernel]":
                    check(ours[event][0].get(name) == part, event, name, "has", ours[event][0].get(name), "not", part)


@live.test
def symbols_have_perfs_shares():
    """Function by function of a program with symbols, for two events that are sampled each on its own."""
    need_perf()
    program = live.BUILD / "tests/workloads/shares"
    if not program.exists():
        raise live.Skip("tests/workloads/shares is not built (make workloads)")
    recording = live.Recording([program, 30000], "-e", "cpu-clock,task-clock", "-F", 1999, "--python=off")
    report = recording.report()
    text = perf("report", "-i", recording.path, "--stdio", "--no-children", "--no-group", "--percent-limit", "0",
                "--sort", "dso,sym", "-F", "sample,dso,sym", "-t", "|")
    theirs, event = collections.Counter(), None
    for line in text.splitlines():
        if match := re.match(r"# Samples: .* of events? '(.*)'", line):
            event = match[1]
        elif match := re.match(r"\s*(\d+)\s*\|\s*shares\s*\|\[\.\] (\S+)\s*$", line):
            theirs[event, match[2]] += int(match[1])
    ours = collections.Counter()
    for function in report["functions"]:
        if function["file"] == str(program):
            for event, figures in function["events"].items():
                ours[event, function["name"]] += figures["self_samples"]
    check(sum(theirs.values()) > 50, "perf sees", theirs)
    check(+ours == theirs, "functions have", +ours, "but perf's have", theirs)
    return dict(theirs)


if __name__ == "__main__":
    live.run()
