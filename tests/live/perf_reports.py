"""What a recording holds, event by event, as perf report and as pyperf tell it; and where recordings of
other machines lie."""
import json
import os
import pathlib
import re
import subprocess

import live
from live import check

FOLDER = pathlib.Path(os.environ.get("PYPERF_FIXTURES") or live.TOP / "../shared/fixtures", "perf-data")


def object_name(name):
    """One for the kernel; perf does not know addresses of kernels that recorded no map."""
    return "[kernel]" if name in ("[kernel.kallsyms]", "[unknown]") else name


def event_name(name):
    """Where the file has no name perf says also that the host alone was counted."""
    return re.sub(r":([a-zGI]*)H$", r":\1", name).rstrip(":")


def perf_report(path, keys, perf_options=(), options=()):
    """What perf report prints of these sort keys, its event by event lines and a row for each."""
    ran = subprocess.run(
        ["perf", *perf_options, "report", "-i", path, "--stdio", "--no-children", "--no-branch-stack", "--no-group",
         "--percent-limit", "0", "-g", "none", *options, "--sort", keys, "-F", f"sample,period,{keys}", "-t", "|"],
        capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
    )
    return ran.stdout.splitlines()


def perf_objects(path):
    """{event: ({object: [samples, period]}, period of the event)} of perf report."""
    events, event = {}, None
    for line in perf_report(path, "dso"):
        if match := re.match(r"# Samples: .* of events? '(.*)'", line):
            event = event_name(match[1])
            events[event] = ({}, 0)
        elif match := re.match(r"# Event count \(approx\.\): (\d+)", line):
            events[event] = (events[event][0], int(match[1]))
        elif event and (match := re.match(r"\s*(\d+)\s*\|\s*(\d+)\s*\|(.*)", line)):
            have = events[event][0].setdefault(object_name(match[3].strip()), [0, 0])
            have[0] += int(match[1])
            have[1] += int(match[2])
    return {name: objects for name, objects in events.items() if objects[0]}


def our_objects(path):
    ran = live.pyperf("report", "--json", "--by-pmu", "--sort", "dso", "-i", path)
    check(ran.returncode == 0, path, ran.stderr)
    report = json.loads(ran.stdout)
    events = {}
    for event in report["events"]:
        if not event["samples"]:
            continue
        objects = {}
        for row in report["groups"]:
            figures = row["events"].get(event["name"])
            if figures and figures["self_samples"]:
                have = objects.setdefault(object_name(row["dso"]), [0, 0])
                have[0] += figures["self_samples"]
                have[1] += figures["self"] * event["period_total"]
        # Shares are exact to one part in 10^15: what they are of is a whole number.
        objects = {name: [samples, round(period)] for name, (samples, period) in objects.items()}
        events[event["name"]] = (objects, event["period_total"])
    return events


def perf_addresses(path):
    """{(event, object, address): [samples, period]} of perf report where it finds no symbols: it would take this machine's
    for those of the machine that was recorded, where the recording has no build-ids."""
    found, event = {}, None
    with live.scratch_folder() as nothing:
        lines = perf_report(path, "dso,sym", ["--buildid-dir", nothing], ["--symfs", nothing, "--kallsyms", "/dev/null"])
    for line in lines:
        if match := re.match(r"# Samples: .* of events? '(.*)'", line):
            event = event_name(match[1])
        elif match := re.match(r"\s*(\d+)\s*\|\s*(\d+)\s*\|([^|]*)\|\[.\] (?:0x)?([0-9a-f]+)\s*$", line):
            have = found.setdefault((event, object_name(match[3].strip()), int(match[4], 16)), [0, 0])
            have[0] += int(match[1])
            have[1] += int(match[2])
    return found


def our_addresses(path):
    """The same of the innermost frames that pyperf script prints."""
    ran = live.pyperf("script", "-i", path, errors="replace")
    check(ran.returncode == 0, path, ran.stderr)
    found, head = {}, None
    for line in ran.stdout.splitlines():
        if match := re.match(r"\S.*\s[\d.]+:\s+(\d+) (\S.*):\s*$", line):
            head = match
        elif head and (match := re.match(r"\s+([0-9a-f]+) .*? \(([^()]*)\)$", line)):
            key = event_name(head[2]), object_name(os.path.basename(match[2])), int(match[1], 16)
            have = found.setdefault(key, [0, 0])
            have[0] += 1
            have[1] += int(head[1])
            head = None
    return found
