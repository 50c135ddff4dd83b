#!/usr/bin/env python3
"""Traces of other tools on one time line with ours: export --format trace --merge.

tests/data/viztracer and tests/data/pytorch hold a phases.py as VizTracer 1.1.1, PyTorch 2.4.1 and pyperf
saw the same run of it. More of PyTorch's traces, with times that are chosen, are made here, byte by byte
as libkineto's output_json.cpp prints them.
"""
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import live
from live import check, pyperf

DATA = live.TOP / "tests/data/viztracer"
RECORDING = DATA / "viztracer.data"
PYTORCH = live.TOP / "tests/data/pytorch"
INTERVAL = 1e6 / 199  # microseconds between samples
FOLDER = tempfile.TemporaryDirectory(prefix="pyperf-merge-")


def file(name, content):
    path = pathlib.Path(FOLDER.name, name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def merge(path, *options, recording=RECORDING):
    out = pathlib.Path(FOLDER.name, "out.json")
    out.unlink(missing_ok=True)
    ran = pyperf("export", "-i", recording, "-f", "trace", "--merge", path, "-o", out, *options)
    check(ran.returncode == 0, "merging", path.name, "ended with", ran.returncode, ran.stderr)
    check(not ran.stderr, "said", ran.stderr)
    return json.loads(out.read_text())


def refused(path, *options, why):
    out = pathlib.Path(FOLDER.name, "refused.json")
    ran = pyperf("export", "-i", RECORDING, "-f", "trace", "--merge", path, "-o", out, *options)
    check(ran.returncode == 1, path.name, "ended with", ran.returncode, ran.stderr)
    check(why in ran.stderr and str(path) in ran.stderr, path.name, "was refused with", ran.stderr)
    left = [p.name for p in out.parent.iterdir() if p.name.startswith("refused")]
    check(not left, "left behind:", left)
    return ran.stderr


def viztracer():
    return json.loads((DATA / "viztracer.json").read_text())


def slices(trace, kinds, name=""):
    return [
        (e["ts"], e["ts"] + e["dur"], e) for e in trace["traceEvents"]
        if e["ph"] == "X" and e.get("cat") in kinds and e["name"].startswith(name)
    ]


OURS = ("python", "native", "kernel")


def ours(trace):
    return slices(trace, OURS)


@live.test
def own_trace_of_viztracer():
    """What was sampled in spin() was sampled while VizTracer had it open, and never while rest() was."""
    plain = DATA / "viztracer.json"
    forms = [plain, file("v.json.gz", gzip.compress(plain.read_bytes()))]
    if shutil.which("zstd"):
        forms.append(file("v.json.zst", subprocess.run(["zstd", "-qc", plain], capture_output=True, check=True).stdout))
    merged = [merge(path) for path in forms]
    check(all(one == merged[0] for one in merged), "compressed files merge otherwise")
    trace, original = merged[0], viztracer()
    theirs = slices(trace, ("FEE",), "spin")
    check(len(theirs) == 3)
    sampled = slices(trace, OURS, "spin (phases.py")
    check(sampled, "no slice of spin")
    for start, end, _ in sampled:
        # A slice ends an interval after its last sample at most.
        check(any(a <= start and end <= b + INTERVAL for a, b, _ in theirs), "sampled at", start, end, "but ran", theirs)
    for a, b, _ in slices(trace, ("FEE",), "rest"):
        inside = [s for s in sampled if s[0] < b and s[1] > a + INTERVAL]
        check(not inside, "sampled in spin while in rest:", inside)
    covered = sum(end - start for start, end, _ in sampled) / sum(b - a for a, b, _ in theirs)
    check(covered > 0.8, "only", covered, "of spin was sampled")
    for event in original["traceEvents"]:
        check(event in trace["traceEvents"], "lost", event)
    check(all(trace[key] == original[key] for key in original if key != "traceEvents"), "members differ")
    return f"{covered:.0%} of spin covered"


@live.test
def threads_beside_theirs():
    """Same process, another number; their names stay theirs."""
    trace = merge(DATA / "viztracer.json")
    pid = viztracer()["traceEvents"][0]["pid"]
    check({e["pid"] for _, _, e in ours(trace)} == {pid})
    check(pid not in {e["tid"] for _, _, e in ours(trace)}, "our slices lie on their track")
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    check(names == ["MainProcess"], names)
    names = sorted(e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name")
    check(names == ["MainThread", "python (sampled)"], names)
    check(all(s["tid"] != pid for s in trace["samples"]))


# PyTorch


def kineto(base, events, base_first=True, pid=7):
    """As ChromeTraceLogger prints a trace; older versions have the base time at the end."""
    head = '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    \n  ],\n'
    base = f'  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {base},\n' if base is not None else '"displayTimeUnit": "ms",'
    lines = [
        '  {\n    "ph": "M",\n    "name": "process_name",\n    "ts": 0.000,\n    "pid": %d,\n    "tid": 0,\n'
        '    "args": {\n      "name": "python"\n    }\n  }' % pid,
        '  {\n    "ph": "M",\n    "name": "process_labels",\n    "ts": 0.000,\n    "pid": %d,\n    "tid": 0,\n'
        '    "args": {\n      "labels": "CPU"\n    }\n  }' % pid,
        '  {\n    "ph": "M",\n    "name": "process_sort_index",\n    "ts": 0.000,\n    "pid": "Spans",\n    "tid": 0,\n'
        '    "args": {\n      "sort_index": 536870912\n    }\n  }',
        *events,
        '  {\n    "name": "Record Window End",\n    "ph": "i",\n    "s": "g",\n    "pid": "",\n    "tid": "",\n    "ts": 900000000.000\n  }',
    ]
    body = '  "traceEvents": [\n' + ",\n".join(lines) + "\n  ],\n"
    tail = '  "traceName": "trace.json"\n}\n'
    return head + (base + body if base_first else body + base) + tail


def op(name, ts, dur, tid=7):
    return (
        f'  {{\n    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 7, "tid": {tid},\n    "ts": {ts}, "dur": {dur},\n'
        '    "args": {\n      "External id": 1,"Record function id": 0, "Ev Idx": 0\n    }\n  }'
    )


def wall_of_first_sample(recording=RECORDING):
    """By the recording alone: its trace has the time of day of its first sample."""
    ran = pyperf("export", "-i", recording, "-f", "trace")
    trace = json.loads(ran.stdout)
    check(trace["samples"][0]["ts"] == 0)
    return trace["baseTimeNanoseconds"]


@live.test
def own_trace_of_pytorch():
    """What was sampled in spin() was sampled while PyTorch had that range open, and never in rest()'s."""
    recording, packed = PYTORCH / "torch.data", PYTORCH / "torch.json.gz"
    plain = file("torch.json", gzip.decompress(packed.read_bytes()))
    original, trace = json.loads(plain.read_text()), merge(packed, recording=recording)
    check(merge(plain, recording=recording) == trace, "the compressed file merges otherwise")
    spins, rests = (slices(trace, ("user_annotation",), name) for name in ("spin", "rest"))
    check(len(spins) == len(rests) == 3, spins, rests)
    sampled = slices(trace, OURS, "spin (phases.py")
    interval = 1e6 / 499
    for start, end, _ in sampled:
        check(any(a <= start and end <= b + interval for a, b, _ in spins), "sampled at", start, end, "but ran", spins)
    for a, b, _ in rests:
        check(not [s for s in sampled if s[0] < b and s[1] > a + interval], "sampled in spin while in rest")
    for a, b, _ in spins:
        check([s for s in sampled if a <= s[0] < b], "a spin without a sample")
    # To the nanosecond, as far as a double of that size goes.
    at = (wall_of_first_sample(recording) - original["baseTimeNanoseconds"]) / 1000
    check(abs(trace["samples"][0]["ts"] - at) < 0.001, "the first sample is at", trace["samples"][0]["ts"], "not", at)
    kept = [event for event in trace["traceEvents"] if event in original["traceEvents"]]
    check(kept == original["traceEvents"], "events are lost or out of order")
    check({e["pid"] for _, _, e in ours(trace)} == {spins[0][2]["pid"]}, "our slices are another process's")
    check(all(trace[key] == original[key] for key in original if key != "traceEvents"), "members differ")
    return f"{len(sampled)} slices of spin"


@live.test
def trace_as_pytorch_writes_it():
    first = wall_of_first_sample()
    base = first - 123_456_789
    events = [op("aten::mm", "1000.123", "5000.250"), op("aten::add", "2000.000", "0.750")]
    merged = []
    for order in (True, False):
        text = kineto(base, events, base_first=order)
        for name, content in (("torch.json", text.encode()), ("torch.json.gz", gzip.compress(text.encode()))):
            merged.append(merge(file(name, content)))
            original = json.loads(text)
            kept = [e for e in merged[-1]["traceEvents"] if e in original["traceEvents"]]
            check(kept == original["traceEvents"], "events are lost or out of order")
            check(merged[-1]["baseTimeNanoseconds"] == base, "the base time changed")
            check(merged[-1]["schemaVersion"] == 1 and merged[-1]["traceName"] == "trace.json")
    trace = merged[0]
    check(all(one["samples"] == trace["samples"] for one in merged), "samples differ")
    check(trace["samples"][0]["ts"] == 123_456.789, "the first sample is at", trace["samples"][0]["ts"])
    check(all(one["traceEvents"] == trace["traceEvents"] for one in merged), "events differ")
    # A base within a microsecond is exact to the nanosecond: no digit is lost on the way.
    text = pathlib.Path(FOLDER.name, "out.json").read_text()
    check('"ts":1000.123,' in text and '"dur":0.750' in text, "numbers were printed anew")


@live.test
def short_slices_are_left_out():
    """And nothing else is: metadata, instants, counters, what pairs across others, the alignment."""
    base = wall_of_first_sample()
    pairs = [
        '{"ph":"B","name":"long","pid":7,"tid":1,"ts":10}', '{"ph":"B","name":"short","pid":7,"tid":1,"ts":20}',
        '{"ph":"B","name":"other","pid":7,"tid":2,"ts":25}', '{"ph":"E","pid":7,"tid":1,"ts":30}',
        '{"ph":"E","pid":7,"tid":1,"ts":5000}', '{"ph":"E","pid":7,"tid":2,"ts":5025}',
        '{"ph":"C","name":"counter","pid":7,"ts":1,"args":{"v":1}}', '{"ph":"X","name":"instant","pid":7,"tid":7,"ts":5}',
    ]
    text = kineto(base, [op("first", "-900000.0", "1"), op("long", "10", "2000"), op("edge", "3000", "1000.000"), *pairs])
    path = file("short.json", text)
    whole = merge(path)
    for option in ("1000us", "1ms", "1000", "0.001s", "1000000ns", "1e3"):
        trace = merge(path, "--min-duration", option)
        names = [e.get("name") for e in trace["traceEvents"] if e.get("cat") not in OURS]
        want = [e.get("name") for e in whole["traceEvents"] if e.get("cat") not in OURS]
        for name in ("first", "short"):
            want.remove(name)
        want.remove(None)
        check(names == want, option, "left", names, "not", want)
        check(all(e["dur"] >= 1000 for _, _, e in ours(trace)), "short slices of ours are left")
        check(trace["samples"] == whole["samples"], "the alignment moved, or samples are gone")
    return len(whole["traceEvents"])


@live.test
def offsets():
    events = [op("aten::mm", "100", "50")]
    path = file("none.json", kineto(None, events))
    trace = merge(path, "--offset", "0")
    check(trace["samples"][0]["ts"] == 0, trace["samples"][0])
    # Their time 0 is 250 ms after our start, so our start is before it.
    check(merge(path, "--offset", "250ms")["samples"][0]["ts"] == -250_000)
    check(merge(path, "--offset=-1.5s")["samples"][0]["ts"] == 1_500_000)
    first = wall_of_first_sample()
    known = file("known.json", kineto(first, events))
    check(merge(known, "--offset", "20us")["samples"][0]["ts"] == -20, "an offset beside a base time is not added")
    epoch = file("epoch.json", kineto(None, [op("aten::mm", f"{first / 1000:.3f}", "600000")]))
    at = merge(epoch, "--offset", "epoch")["samples"][0]["ts"]
    check(abs(at - first / 1000) < 1, at, "is not", first / 1000)
    array = file("array.json", '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2},')
    check(merge(array, "--offset", "0")["traceEvents"][0]["name"] == "a", "an array without its end is not read")


@live.test
def no_usable_base():
    events = [op("aten::mm", "100", "50")]
    said = refused(file("none.json", kineto(None, events)), why="no baseTimeNanoseconds")
    check("--offset" in said, "the option is not named:", said)
    for base in ("0", "-5", '"yesterday"', "1.5", "null"):
        said = refused(file("bad.json", kineto(base, events)), why="no time since 1970")
        check("--offset" in said, said)
    said = refused(file("epoch.json", kineto(None, [op("a", "1795255607393903.1", "5")])), why="no baseTime")
    check("--offset epoch" in said, said)
    # VizTracer's command does not write it, but its clock is known to be ours; of another boot it is not.
    trace = viztracer()
    del trace["viztracer_metadata"]["baseTimeNanoseconds"]
    merged = merge(file("viz.json", json.dumps(trace)))
    with_base = merge(DATA / "viztracer.json")
    drift = merged["samples"][0]["ts"] - with_base["samples"][0]["ts"]
    check(abs(drift) < 100, "VizTracer's clock is", drift, "us off")
    for event in trace["traceEvents"]:
        event["ts"] = event.get("ts", 0) - 1e9
    refused(file("viz.json", json.dumps(trace)), why="no baseTimeNanoseconds")
    return f"{drift:.3f} us between VizTracer's two clocks"


@live.test
def hostile():
    base = wall_of_first_sample()
    whole = kineto(base, [op("aten::mm", "100", "50")])
    packed = gzip.compress(whole.encode())
    for name, content, why in (
        ("empty", "", "is empty"),
        ("text", "hello", "is no JSON"),
        ("number", "123", "is no object"),
        ("other", '{"a": [1, 2]}', "no traceEvents"),
        ("twice", '{"traceEvents": [], "traceEvents": []}', "twice"),
        ("cut", whole[: len(whole) // 2], "cut short"),
        ("more", whole + "{}", "no JSON"),
        ("deep", '{"traceEvents": [' + "[" * 200_000, "too deeply"),
        ("deep2", '{"x": ' + '{"x": ' * 200, "too deeply"),
        ("cut.gz", packed[: len(packed) // 2], "damaged or cut short"),
        ("bad.gz", packed[:-6] + b"xxxxxx", "damaged or cut short"),
    ):
        refused(file(name, content), why=why)
    check(pyperf("export", "-i", RECORDING, "-f", "trace", "--merge", "-").returncode != 0, "standard input was taken")
    check(pyperf("export", "-i", RECORDING, "-f", "folded", "--merge", "x").returncode == 2)
    # Names are data.
    strange = kineto(base, ['{"ph":"X","name":"\\u0000\\ud83d\\ude00</script>","pid":1,"tid":1,"ts":1,"dur":2}'])
    names = [e["name"] for e in merge(file("strange.json", strange))["traceEvents"]]
    check("\x00\U0001f600</script>" in names, "a name changed")


@live.test
def large_traces_are_streamed():
    """Memory does not grow with the trace."""
    base = wall_of_first_sample()

    def peak(events):
        path = file(f"large-{events}.json.gz", gzip.compress(
            kineto(base, [op(f"aten::op{i % 100}", f"{i}.5", "0.5") for i in range(events)]).encode(), 1))
        out = pathlib.Path(FOLDER.name, "large.json")
        # The peak of a child includes what its parent had when it forked: so from a small one.
        ask = (
            "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]);"
            "_, status, usage = os.wait4(pid, 0); print(status, usage.ru_maxrss)"
        )
        ran = subprocess.run(
            [sys.executable, "-c", ask, live.PYPERF, "export", "-i", RECORDING, "-f", "trace", "--merge", path,
             "-o", out, "--min-duration", "1ms"], capture_output=True, text=True, check=True,
        )
        status, rss = ran.stdout.split()
        check(status == "0", "ended with", status, ran.stderr)
        return int(rss)

    few, many = peak(100), peak(100_000)
    check(many < few + 8192, "100 events take", few, "kB, 100,000 take", many, "kB")
    return f"{few} kB for 100 events, {many} kB for 100,000"


if __name__ == "__main__":
    live.run(needs_lines=False)
