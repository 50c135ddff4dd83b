#!/usr/bin/env python3
"""Every format of export, read by its owner's own reader, or checked by its schema and its rules.

What each tells is compared with what `pyperf report` and perf say of the same recording.
"""
import bisect
import collections
import csv
import functools
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time

import live
from live import check, pyperf

PROGRAM = """
import threading

def spin(n):
    total = 0
    for i in range(n):
        total += i & 7
    return total

def outer(n):
    return spin(n)

def fault(n):
    return [bytearray(1 << 20) for _ in range(n)]

thread = threading.Thread(target=outer, args=(3000000,))
thread.start()
outer(3000000)
fault(40)
thread.join()
"""
EVENTS = ["cpu-clock", "page-faults"]


@functools.lru_cache(None)
def recording():
    return live.Recording([live.any_python(), "-c", PROGRAM], "-F", 1999, "-e", ",".join(EVENTS))


@functools.lru_cache(None)
def report():
    return recording().report("--inline")


def samples(event):
    return next(e["samples"] for e in report()["events"] if e["name"] == event)


def self_samples(function, event):
    rows = [row for row in report()["functions"] if row["qualname"] == function]
    check(rows, "the report has no", function)
    return sum(row["events"].get(event, {}).get("self_samples", 0) for row in rows)


def total_samples(function, event):
    return sum(
        row["events"].get(event, {}).get("total_samples", 0)
        for row in report()["functions"] if row["qualname"] == function
    )


def export(form, *options, name="out"):
    path = recording().path.with_name(name)
    ran = pyperf("export", "-i", recording().path, "-f", form, "-o", path, *options)
    check(ran.returncode == 0, "export", form, "ended with", ran.returncode, ran.stderr)
    check(ran.stderr == "" and ran.stdout == "", "export", form, "said", ran.stderr, ran.stdout)
    return path


def read_json(path):
    """Strictly: no NaN, no key twice."""
    def pairs(items):
        keys = [key for key, _ in items]
        check(len(keys) == len(set(keys)), "a key twice:", keys)
        return dict(items)

    def constant(word):
        raise live.Failed(f"{word} is no JSON")

    return json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)


def need(command):
    if not shutil.which(command):
        raise live.Skip(f"no {command} here; scripts/setup installs it")


@live.test
def folded():
    for event in EVENTS:
        counts = collections.Counter()
        for line in export("folded", "-e", event).read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            counts[stack.split(";")[-1]] += int(count)
        check(sum(counts.values()) == samples(event), counts, "but", samples(event), event)
        check(counts["spin"] == self_samples("spin", event), "spin:", counts["spin"])
    return sum(counts.values())


@live.test
def speedscope():
    try:
        import jsonschema
    except ImportError:
        raise live.Skip("no python3-jsonschema here; scripts/setup installs it")
    file = read_json(export("speedscope"))
    jsonschema.validate(file, json.loads((live.TOP / "tests/data/speedscope/schema.json").read_text()))
    names = [frame["name"] for frame in file["shared"]["frames"]]
    check(any(f["name"] == "spin" and f["file"] == "<string>" and f["line"] == 4 for f in file["shared"]["frames"]))
    leaves, weights = collections.Counter(), collections.Counter()
    for profile in file["profiles"]:
        event = profile["name"].rpartition(": ")[2]
        check(len(profile["samples"]) == len(profile["weights"]), profile["name"], "is ragged")
        check(sum(profile["weights"]) == profile["endValue"] - profile["startValue"], profile["name"], "does not end")
        weights[event] += sum(profile["weights"])
        for stack, weight in zip(profile["samples"], profile["weights"]):
            check(all(0 <= frame < len(names) for frame in stack))
            leaves[event, names[stack[-1]] if stack else ""] += weight
    for event in EVENTS:
        check(weights[event] == samples(event), weights, "but", samples(event), event)
        check(leaves[event, "spin"] == self_samples("spin", event))
    check(len({p["name"].split(": ")[0] for p in file["profiles"]}) >= 2, "threads are missing")
    return dict(weights)


def pprof(path, *options):
    ran = subprocess.run(
        ["go", "tool", "pprof", *options, str(path)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if ran.returncode and "no such tool" in ran.stderr:
        raise live.Skip("this Go has no pprof")
    check(ran.returncode == 0, "pprof", *options, "ended with", ran.returncode, ran.stderr)
    return ran.stdout


@live.test
def pprof_tool():
    if not re.search(r"protobuf +\[on \]", pyperf("version").stdout):
        raise live.Skip("pyperf was built without protobuf-c; scripts/setup installs it")
    need("go")
    path = export("pprof", name="out.pb.gz")
    check(path.read_bytes()[:2] == b"\x1f\x8b", "is not compressed")
    for event in EVENTS:
        top = pprof(path, "-top", "-nodecount=100000", "-nodefraction=0", f"-sample_index={event}_samples")
        check(re.search(rf"Total samples = {samples(event)} *$|% of {samples(event)} total", top, re.M), top[:400])
        rows = {
            match[3]: (int(match[1]), int(match[2]))
            for match in re.finditer(r"^ *(\d+) +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% +(.*)$", top, re.M)
        }
        for name in ("outer", "spin", "fault"):
            want = (self_samples(name, event), total_samples(name, event))
            check(rows.get(name, (0, 0)) == want, event, name, rows.get(name), "but", want)
    lines = pprof(path, "-top", "-lines", "-nodecount=100000", "-nodefraction=0", "-sample_index=cpu-clock_samples")
    check(re.search(r"spin <string>:[67]$", lines, re.M), "no lines of spin:", lines[:2000])
    tags = pprof(path, "-tags")
    check(re.search(r"^ *tid: Total", tags, re.M), tags)
    return len(rows)


# docs-developer/processed-profile-format.md and src/types/profile.ts of the Firefox Profiler, at
# version 61: the columns of each table, what they index, and whether null may stand there.
FIREFOX_TABLES = {
    "stackTable": {"frame": "frameTable", "prefix": "stackTable?"},
    "frameTable": {
        "address": int, "inlineDepth": int, "category": "categories?", "subcategory": int, "func": "funcTable",
        "nativeSymbol": "nativeSymbols?", "innerWindowID": None, "line": None, "column": None,
    },
    "funcTable": {
        "name": "stringArray", "isJS": bool, "relevantForJS": bool, "resource": "resourceTable-1",
        "source": "sources?", "lineNumber": None, "columnNumber": None,
    },
    "resourceTable": {"lib": "libs?", "name": "stringArray", "host": "stringArray?", "type": int},
    "nativeSymbols": {"libIndex": "libs", "address": int, "name": "stringArray", "functionSize": None},
    "sources": {
        "id": None, "filename": "stringArray", "startLine": int, "startColumn": int, "sourceMapURL": "stringArray?",
    },
}


# Reads it with opentelemetry-proto's own classes, and prints what it says: {event: {...}}.
OTLP_READER = """
import collections, json, sys
from opentelemetry.proto.profiles.v1development import profiles_pb2
data = profiles_pb2.ProfilesData()
data.ParseFromString(open(sys.argv[1], "rb").read())
tables = data.dictionary
known = tables.string_table
for field, table in data.dictionary.ListFields():
    first = table[0] if field.name == "string_table" else table[0].SerializeToString()
    assert not first, field.name + "[0] is not empty"
    items = [item if isinstance(item, str) else item.SerializeToString() for item in table]
    assert len(set(items)) == len(items), field.name + " has duplicates"
assert len(data.dictionary.ListFields()) == 7, "tables are missing"
used = collections.defaultdict(set)
def at(name, index):
    table = getattr(tables, name)
    assert 0 <= index < len(table), (name, index)
    used[name].add(index)
    return table[index]
def attributes(indices):
    found = {}
    for index in indices:
        item = at("attribute_table", index)
        assert at("string_table", item.key_strindex) not in found
        found[at("string_table", item.key_strindex)] = getattr(item.value, item.value.WhichOneof("value"))
    return found
def frame(index):
    location = at("location_table", index)
    at("mapping_table", location.mapping_index) and at("string_table", tables.mapping_table[location.mapping_index].filename_strindex)
    (line,) = location.lines
    function = at("function_table", line.function_index)
    at("string_table", function.system_name_strindex)
    return [at("string_table", function.name_strindex), at("string_table", function.filename_strindex), line.line,
            attributes(location.attribute_indices)["profile.frame.type"]]
result = {}
for resource in data.resource_profiles:
    (scope,) = resource.scope_profiles
    assert scope.scope.name == "pyperf"
    for profile in scope.profiles:
        event = at("string_table", profile.period_type.type_strindex)
        said = result[event] = {
            "type": [at("string_table", profile.sample_type.type_strindex), at("string_table", profile.sample_type.unit_strindex)],
            "unit": at("string_table", profile.period_type.unit_strindex), "from": profile.time_unix_nano,
            "to": profile.time_unix_nano + profile.duration_nano, "samples": [],
            "command": {item.key: item.value.string_value for item in resource.resource.attributes},
        }
        identities = set()
        for sample in profile.samples:
            identity = sample.stack_index, tuple(sample.attribute_indices)
            assert identity not in identities, "a sample is there twice"
            identities.add(identity)
            assert len(sample.values) == len(sample.timestamps_unix_nano) or not sample.timestamps_unix_nano
            said["samples"].append({"values": list(sample.values), "times": list(sample.timestamps_unix_nano),
                "thread": attributes(sample.attribute_indices),
                "stack": [frame(index) for index in at("stack_table", sample.stack_index).location_indices]})
for name, indices in used.items():
    missing = set(range(1, len(getattr(tables, name)))) - indices
    assert not missing, (name, "has items that nothing refers to", sorted(missing)[:5])
json.dump(result, sys.stdout)
"""


def otlp_reader():
    """A folder with opentelemetry-proto, from PyPI once for each build."""
    folder = live.BUILD / "opentelemetry-proto"
    if not folder.exists():
        made = folder.with_suffix(".new")
        ran = subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "0", "--timeout", "15",
                              "--target", str(made), "opentelemetry-proto>=1.40"], capture_output=True, text=True)
        if ran.returncode:
            shutil.rmtree(made, ignore_errors=True)
            raise live.Skip("no opentelemetry-proto from PyPI: " + (ran.stderr.strip().splitlines() or ["pip failed"])[-1])
        made.rename(folder)
    return folder


def read_otlp(path):
    ran = subprocess.run([sys.executable, "-c", OTLP_READER, str(path)], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(otlp_reader())})
    check(ran.returncode == 0, "the reader says", ran.stderr[-1000:])
    return json.loads(ran.stdout)


@live.test
def otlp():
    if not re.search(r"protobuf +\[on \]", pyperf("version").stdout):
        raise live.Skip("pyperf was built without protobuf-c; scripts/setup installs it")
    file = read_otlp(export("otlp"))
    check(set(file) == set(EVENTS), set(file))
    for event, profile in file.items():
        check(profile["type"] == ["samples", "count"] and profile["command"]["process.command_line"], profile["type"])
        check(profile["unit"] == ("nanoseconds" if event == "cpu-clock" else "count"), event, profile["unit"])
        leaves, times = collections.Counter(), []
        for sample in profile["samples"]:
            leaves[sample["stack"][0][0] if sample["stack"] else ""] += sum(sample["values"])
            times += sample["times"]
            check(set(sample["thread"]) == {"thread.name", "thread.id", "process.pid"}, sample["thread"])
        check(sum(leaves.values()) == samples(event) == len(times), event, sum(leaves.values()), len(times))
        check(all(profile["from"] <= at < profile["to"] for at in times), "a time lies outside")
        check(abs(profile["from"] / 1e9 - time.time()) < 3600, "is not of today:", profile["from"])
        check(leaves["spin"] == self_samples("spin", event), event, "spin:", leaves["spin"])
    stacks = [sample["stack"] for sample in file["cpu-clock"]["samples"]]
    names = [[frame[0] for frame in stack if frame[3] == "cpython"] for stack in stacks]
    check(any(stack[:2] == ["spin", "outer"] for stack in names), "spin does not lie below outer")
    check({frame[3] for stack in stacks for frame in stack} >= {"cpython", "native"}, "kinds are missing")
    check({frame[2] for stack in stacks for frame in stack if frame[0] == "spin"} & {6, 7}, "no lines of spin")
    check(len({sample["thread"]["thread.id"] for sample in file["cpu-clock"]["samples"]}) == 2, "threads are missing")
    period = read_otlp(export("otlp", "--weight", "period", "-e", "cpu-clock"))["cpu-clock"]
    total = next(e["period_total"] for e in report()["events"] if e["name"] == "cpu-clock")
    check(period["type"] == ["cpu-clock", "nanoseconds"], period["type"])
    check(sum(sum(sample["values"]) for sample in period["samples"]) == total, "periods do not add up to", total)
    # Without a clock: sums.
    stacks = recording().path.with_name("stacks.txt")
    stacks.write_text("a;b 3\na 4\na;b 5\n")
    out = stacks.with_suffix(".otlp")
    check(pyperf("export", "-i", stacks, "-f", "otlp", "-o", out).returncode == 0)
    sums = {tuple(frame[0] for frame in sample["stack"]): sample["values"] for sample in read_otlp(out)["samples"]["samples"]}
    check(sums == {("b", "a"): [8], ("a",): [4]}, sums)
    return {event: len(profile["samples"]) for event, profile in file.items()}


def check_firefox_tables(file):
    sizes = {name: file["shared"][name]["length"] for name in FIREFOX_TABLES}
    sizes["stringArray"] = len(file["shared"]["stringArray"])
    sizes["categories"] = len(file["meta"]["categories"])
    sizes["libs"] = len(file["libs"])
    for table, columns in FIREFOX_TABLES.items():
        have = file["shared"][table]
        check(set(have) == {*columns, "length"}, table, "has", sorted(have))
        for column, kind in columns.items():
            cells = have[column]
            check(len(cells) == have["length"], table, column, "is ragged")
            for row, cell in enumerate(cells):
                if kind is None or isinstance(kind, type):
                    good = (kind is None and cell is None) or isinstance(cell, kind or (int, str))
                else:
                    good = (cell is None and kind[-1] == "?") or (cell == -1 and kind[-2:] == "-1") or (
                        isinstance(cell, int) and 0 <= cell < sizes[kind.removesuffix("?").removesuffix("-1")]
                    )
                check(good, table, column, row, "is", cell)
    for row, prefix in enumerate(file["shared"]["stackTable"]["prefix"]):
        check(prefix is None or prefix < row, "stacks are out of order")


@live.test
def firefox():
    file = read_json(export("firefox"))
    shared, meta = file["shared"], file["meta"]
    check(meta["preprocessedProfileVersion"] == 61)
    check(any(c["color"] == "grey" for c in meta["categories"]), "no default category")
    check(all(c["subcategories"][0] == "Other" for c in meta["categories"]))
    check_firefox_tables(file)
    names, counts, kinds = shared["stringArray"], collections.Counter(), collections.Counter()
    for thread in file["threads"]:
        table = thread["samples"]
        check(len(table["stack"]) == len(table["time"]) == table["length"], thread["name"], "is ragged")
        check(table["time"] == sorted(table["time"]) and table["time"][0] >= 0, thread["name"], "is not in order")
        check(isinstance(thread["pid"], str) and table["weight"] is None and table["weightType"] == "samples")
        event = EVENTS[1] if thread["name"].endswith(f"({EVENTS[1]})") else EVENTS[0]
        for stack in table["stack"]:
            frame = shared["stackTable"]["frame"][stack]
            counts[event, names[shared["funcTable"]["name"][shared["frameTable"]["func"][frame]]]] += 1
            kinds[meta["categories"][shared["frameTable"]["category"][frame]]["name"]] += 1
    check(counts["cpu-clock", "spin"] == self_samples("spin", "cpu-clock"), counts["cpu-clock", "spin"])
    check(sum(kinds.values()) == sum(map(samples, EVENTS)), kinds)
    check(kinds["Python"] > 0 and kinds["Kernel"] + kinds["Native"] > 0, kinds)
    lines = {
        shared["frameTable"]["line"][i] for i, func in enumerate(shared["frameTable"]["func"])
        if names[shared["funcTable"]["name"][func]] == "spin"
    }
    check({6, 7} & lines, "no lines of spin:", lines)
    mains = [t for t in file["threads"] if t["isMainThread"]]
    check(mains, "no main thread")
    for event in EVENTS:
        rows = [c for c in file["counters"] if c["name"] == event]
        check(rows, "no counter of", event)
        for row in rows:
            check(len(row["samples"]["time"]) == len(row["samples"]["count"]) == row["samples"]["length"])
            check(file["threads"][row["mainThreadIndex"]]["pid"] == row["pid"])
        total = next(e["period_total"] for e in report()["events"] if e["name"] == event)
        check(sum(sum(row["samples"]["count"]) for row in rows) == total, event, "counters are not", total)
    return dict(kinds)


def check_nesting(slices):
    """Slices of a track lie within each other or apart; exactly, in nanoseconds."""
    open_until = []
    for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_until and open_until[-1] <= start:
            open_until.pop()
        check(not open_until or end <= open_until[-1], "slices cross:", start, end, open_until)
        open_until.append(end)


def nanoseconds(microseconds):
    return round(microseconds * 1000)


@live.test
def trace():
    file = read_json(export("trace"))
    tracks, names, counters = collections.defaultdict(list), {}, collections.defaultdict(list)
    for event in file["traceEvents"]:
        check({"ph", "name", "pid"} <= set(event), event)
        if event["ph"] == "X":
            check(event["dur"] >= 0 and event["cat"] in ("python", "native", "kernel"), event)
            start = nanoseconds(event["ts"])
            tracks[event["pid"], event["tid"]].append((start, start + nanoseconds(event["dur"])))
        elif event["ph"] == "M":
            names[event["name"], event["tid"]] = event["args"]["name"]
        else:
            check(event["ph"] == "C" and event["args"]["value"] >= 0, event)
            counters[event["name"]].append(event["ts"])
    for (pid, tid), slices in tracks.items():
        check(("thread_name", tid) in names, "thread", tid, "has no name")
        check_nesting(slices)
    check(set(counters) == {f"{event} per second" for event in EVENTS}, set(counters))
    check(any(e["name"].startswith("spin (") and e["ph"] == "X" for e in file["traceEvents"]), "no slice of spin")
    frames, counts = file["stackFrames"], collections.Counter()
    check(all("parent" not in f or f["parent"] in frames for f in frames.values()), "a stack frame has no parent")
    for sample in file["samples"]:
        counts[sample["name"], frames[sample["sf"]]["name"].split(" ")[0]] += 1
    check(len(file["samples"]) == sum(map(samples, EVENTS)), len(file["samples"]), "samples")
    check(counts["cpu-clock", "spin"] == self_samples("spin", "cpu-clock"))
    long = read_json(export("trace", "--min-duration", "2ms"))
    durations = [e["dur"] for e in long["traceEvents"] if e["ph"] == "X"]
    all_durations = [e["dur"] for e in file["traceEvents"] if e["ph"] == "X"]
    check(sorted(durations) == sorted(d for d in all_durations if d >= 2000), "slices are filtered wrongly")
    check(long["samples"] == file["samples"], "samples are filtered, too")
    return f"{len(all_durations)} slices, {len(durations)} of 2 ms"


@live.test
def callgrind():
    need("callgrind_annotate")
    path = export("callgrind")

    def annotate(*options):
        ran = subprocess.run(
            ["callgrind_annotate", "--auto=no", "--threshold=100", *options, str(path)], capture_output=True, text=True
        )
        check(ran.returncode == 0 and not ran.stderr, "callgrind_annotate", ran.returncode, ran.stderr)
        return ran.stdout

    def rows(text):
        number = r"([\d,]+|0) *(?:\([ \d.]+%\))?"
        return {
            match[3]: tuple(int(match[i].replace(",", "")) for i in (1, 2))
            for match in re.finditer(rf"^ *{number} +{number} +(.*)$", text, re.M)
        }

    own = rows(annotate())
    check(own["PROGRAM TOTALS"] == tuple(map(samples, EVENTS)), own["PROGRAM TOTALS"])
    check(own["<string>:spin [[python]]"] == tuple(self_samples("spin", e) for e in EVENTS))
    inclusive = rows(annotate("--inclusive=yes"))
    want = tuple(total_samples("outer", e) for e in EVENTS)
    check(inclusive["<string>:outer [[python]]"] == want, inclusive["<string>:outer [[python]]"], "but", want)
    return want


def kernel_names():
    """A function that tells by which names the kernel itself knows an address: all symbols that begin at
    one place, of which each tool prints another one."""
    symbols = collections.defaultdict(set)
    with open("/proc/kallsyms", encoding="utf-8") as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if kind in "tTwW":
                symbols[int(address, 16)].add(name)
    starts = sorted(symbols)
    return lambda address: symbols[starts[max(0, bisect.bisect(starts, address) - 1)]]


@live.test
def script_text():
    """As perf script prints the same samples: who, where, when, which event, and kernel frames."""
    need("perf")
    fields = "comm,tid,cpu,time,period,event,ip,sym"
    ran = subprocess.run(
        ["perf", "script", "-i", str(recording().path), "-F", fields], capture_output=True, text=True,
        stdin=subprocess.DEVNULL,
    )
    check(ran.returncode == 0, ran.stderr)
    head = re.compile(r" *(\S.*?) +(?:\d+/)?(\d+) +\[(\d+)\] +([\d.]+): +(\d+) +(\S+):(?: +0 \[unknown\])? *$")

    def parse(text):
        """A list of (head, frames); frames are (address, symbol)."""
        found = []
        for line in text.splitlines():
            if match := head.match(line):
                found.append((match.groups(), []))
            elif line.startswith("\t"):
                address, _, symbol = line.strip().partition(" ")
                found[-1][1].append((int(address, 16), symbol))
        return found

    theirs = [sample for sample in parse(ran.stdout) if sample[0][5] in EVENTS]
    ours = parse(export("script").read_text())
    check(len(ours) == len(theirs) == sum(map(samples, EVENTS)), len(ours), "and", len(theirs), "samples")
    key = lambda sample: (sample[0][3], sample[0][1], sample[0][5])
    kernel = 0
    names = kernel_names()
    for our, their in zip(sorted(ours, key=key), sorted(theirs, key=key)):
        check(our[0] == their[0], our[0], "but perf says", their[0])
        for (address, symbol), (their_address, their_symbol) in zip(our[1], their[1]):
            if address >> 63 == 0:
                break
            kernel += 1
            check(address == their_address, our[0], hex(address), "but perf says", hex(their_address))
            name, their_name = symbol.split("+")[0], their_symbol.split("+")[0]
            # BPF programs come and go, that of this recording too.
            if name != their_name and not name.startswith("bpf_"):
                # perf names a return address, which may be another function's already, and not the call.
                known = names(address) | names(address - 1)
                check(name in known and their_name in known, symbol, "but perf says", their_symbol, "of", known)
    check(kernel > 0, "no frames of the kernel were compared")
    return f"{len(ours)} samples, {kernel} frames of the kernel"


@live.test
def perf_itself():
    """perf report counts Python functions as we do, perf script and annotate show their lines."""
    need("perf")
    path = export("perf", name="for-perf.data")

    def perf(*arguments):
        ran = subprocess.run(
            ["perf", *arguments, "-i", str(path)], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL,
        )
        check(ran.returncode == 0, "perf", *arguments, "ended with", ran.returncode, ran.stderr)
        return ran.stdout

    counts, event = collections.Counter(), None
    for line in perf("report", "--stdio", "--no-children", "-g", "none", "-F", "sample,sym").splitlines():
        if match := re.match(r"# Samples: .* of event '(.*)'", line):
            event = match[1]
        elif match := re.match(r" +(\d+) +\[.\] (.*?) *$", line):
            counts[event, match[2]] += int(match[1])
    for event in EVENTS:
        check(sum(n for (e, _), n in counts.items() if e == event) == samples(event), event, counts)
        for name in ("spin", "outer", "fault"):
            check(counts[event, name] == self_samples(name, event), event, name, counts[event, name])
    stacks = perf("script", "-F", "ip,sym,srcline")
    for line in (r" spin\n  <string>:[67]\n", r" outer\n  <string>:11\n"):
        check(re.search(line, stacks), "no line", line)
    annotated = perf("annotate", "--stdio", "-s", "spin")
    check(re.search(r"spin\(\)", annotated) and re.search(r"[1-9]\d*\.\d+ +:", annotated), annotated[:800])
    return counts["cpu-clock", "spin"]


@live.test
def csv_rows():
    path = export("csv", name="out.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    check([int(row["time_ns"]) for row in rows] == sorted(int(row["time_ns"]) for row in rows), "not in order")
    integers = ["time_ns", "period", "pid", "tid", "cpu", "line", "python_line"]
    for row in rows:
        check(None not in row and None not in row.values(), "a row is ragged:", row)
        check(all(re.fullmatch(r"\d*", row[name]) for name in integers), row)
        check(row["stack"].split(";")[-1] == row["function"].replace(";", ":"), row)
    for event in EVENTS:
        mine = [row for row in rows if row["event"] == event]
        check(len(mine) == samples(event), event, len(mine))
        check(sum(row["function"] == "spin" for row in mine) == self_samples("spin", event))
    check(any(row["kind"] != "python" and row["python_function"] for row in rows), "no native code below Python")
    return len(rows)


@live.test
def compressed():
    """The same bytes, packed as the name says."""
    plain = export("folded", "-e", "cpu-clock", name="plain").read_bytes()
    check(gzip.decompress(export("folded", "-e", "cpu-clock", name="out.gz").read_bytes()) == plain, ".gz differs")
    need("zstd")
    path = export("folded", "-e", "cpu-clock", name="out.zst")
    ran = subprocess.run(["zstd", "-dcq", path], capture_output=True)
    check(ran.returncode == 0 and ran.stdout == plain, ".zst differs", ran.stderr)


if __name__ == "__main__":
    live.run()
