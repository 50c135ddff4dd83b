"""The parts of `run` that measure native stacks, of the system's Python with NumPy, which have no
frame pointers: pyperf's default beside `perf record --call-graph dwarf`."""
import collections
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import tempfile

import replicate
import slices

SYSTEM_PYTHON = "/usr/bin/python3"
# What a program, a thread or a child of vfork() begins with, as perf prints it.
ROOT = re.compile(r"\t +[0-9a-f]+ (_start|_*clone\d?|start_thread|thread_start|_dl_start\w*|__vfork)\b")
MILLION = 1_000_000
# perf's own default. Half of the time of a report is spent on reading what was copied.
DUMP_BYTES = 8192


def parts(bench):
    """By name; `bench` is the module that has output(), say() and the rest."""
    numeric = str(bench.WORKLOADS / "numeric.py")
    say, output = bench.say, bench.output

    def program(amount):
        return [SYSTEM_PYTHON, numeric, amount]

    def everywhere(seconds):
        command = " ".join(program(str(seconds)))
        return ["sh", "-c", f"for i in $(seq {bench.CPUS}); do {command} & done; wait"]

    def perf_dwarf(path, rate, *options, size=DUMP_BYTES):
        return bench.perf_record(path, rate, "--call-graph", f"dwarf,{size}", *options)

    def whole_stacks(path):
        """(user samples, those whose chain ends at a root), as perf prints the file."""
        script = subprocess.Popen(
            ["perf", "script", "--no-inline", "-F", "comm,event,ip,sym", "--max-stack", "1000", "-i", path],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        samples = whole = 0
        last = ""
        for line in script.stdout:
            if line.startswith("\t"):
                last = line
            elif last and not line.strip():
                samples += 1
                whole += bool(ROOT.match(last))
                last = ""
        script.wait()
        return samples, whole

    def complete(options):
        """Stacks that reach the start of the program or thread, by one judge, perf script."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/data"
            for name, command in (
                ("perf dwarf", perf_dwarf(path, 999)),
                ("perf dwarf,65528", perf_dwarf(path, 999, size=65528)),
                ("perf fp", bench.perf_record(path, 999, "-g")),
                ("pyperf", bench.pyperf_record(path, 999)),
            ):
                output([*command, *program("1" if options.short else "4")])
                samples, whole = whole_stacks(path)
                claim = name == "pyperf"
                say(f"{name}: whole stacks, of {samples:,}", f"{whole / samples:.2%}", "at least 99%" if claim else "",
                    whole >= 0.99 * samples if claim else None)

    def unwind(options):
        """What a stack costs with warm tables, from copies of 32 kB, and what storing those would."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/data"
            command = ["perf", "record", "-q", "-e", bench.EVENT + ":u", "-F", "999", "-o", path]
            output([*command, "--call-graph", "dwarf,32768", *program("1" if options.short else "4")])
            lines = output([bench.BUILD / "tests/bench/unwind", path]).splitlines()
        for row in map(json.loads, lines):
            ours = row["backend"] == "table"
            if row["backend"] == "zstd":
                for size in ("16384", "8192", "stack"):
                    say(f"to compress a copy of {size.replace('stack', 'just the stack')}", f"{row['us_' + size]:.2f} us")
                    say("  bytes of it in the file", f"{row['bytes_' + size]:.0f}")
                continue
            say(f"{row['backend']}: stacks down to the root", f"{row['complete'] / row['samples']:.2%}",
                "at least 99%", row["complete"] >= 0.99 * row["samples"])
            say("  a stack of " + f"{row['frames'] / row['samples']:.0f} frames", f"{row['us_per_sample']:.2f} us")
            say("  a frame", f"{row['us_per_frame']:.3f} us", "at most 1 us" if ours else "",
                row["us_per_frame"] <= 1 if ours else None)
            if ours:
                say("  half of the stacks are within", f"{row['depth_50']:,} B")
                say("  95% are within", f"{row['depth_95']:,} B")

    def dwarf_report(options):
        """A perf recording with copies of stacks, made as long as a million samples, or as the disk allows.
        Repeated samples differ in a register, so that nobody finds them done before."""
        with tempfile.TemporaryDirectory() as folder:
            short, long = f"{folder}/short", f"{folder}/long"
            output([*perf_dwarf(short, 4999, "-m", "4096"), *program("1" if options.short else "6")])
            samples = bench.samples_of(short)["total"]
            each = os.path.getsize(short) / samples
            wanted = min(20_000 if options.short else MILLION, int(shutil.disk_usage(folder).free / 3 / each))
            replicate.replicate(short, long, max(1, round(wanted / samples)), vary=True)
            samples = bench.samples_of(long)["total"]
            say(f"{samples:,} samples with copies of {DUMP_BYTES} B", f"{os.path.getsize(long) / 1e9:.1f} GB")
            if wanted < MILLION and not options.short:
                say("  there is no room for a million: per sample all the same", "")
            ways = {
                "perf": ["perf", "report", "--stdio", "--no-children", "-i", long],
                "pyperf": [bench.PYPERF, "report", "-i", long],
            }
            costs = collections.defaultdict(list)
            for _ in range(min(options.rounds, 3)):
                for way, command in ways.items():
                    costs[way].append(bench.cost(command))
        seconds, memory, cpu = ({way: statistics.median(c[i] for c in costs[way]) for way in ways} for i in range(3))
        for way in ways:
            say(f"  {way} report: {cpu[way]:.1f} s of CPU time", f"{seconds[way]:.1f} s, {memory[way]:.0f} MB")
        faster, smaller = seconds["perf"] / seconds["pyperf"], memory["perf"] / memory["pyperf"]
        # What a report begins with is worth more than few samples are.
        judged = not options.short
        say("  faster than perf", f"{faster:.1f} times", "at least 10 times", faster >= 10 if judged else None)
        say("  less memory", f"{smaller:.1f} times", "at least 5 times", smaller >= 5 if judged else None)

    def native_size(options):
        """Two recordings' lengths tell what a sample adds. What is in a file once differs by some kilobytes from
        one to the next, so there must be samples enough in between."""
        rate = 4999 if options.short else 999
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/data"
            for name, command in (
                ("perf dwarf -z", perf_dwarf(path, rate, "-z")),
                ("pyperf", bench.pyperf_record(path, rate)),
            ):
                points = []
                for seconds in ("1", "4") if options.short else ("5", "20"):
                    output([*command, *program(seconds)])
                    points.append((bench.samples_of(path)["total"], os.path.getsize(path)))
                (few, small), (many, large) = points
                if many < 2 * few or large <= small:
                    say(f"{name}, whole stacks: too few samples to tell their size", f"{few:,}, {many:,}")
                    continue
                each = (large - small) / (many - few)
                ours = name == "pyperf"
                say(f"{name}, whole stacks: bytes for each sample", f"{each:.1f}", "at most 64" if ours else "",
                    each <= 64 if ours else None)

    def native_slowdown(options):
        """What whole stacks at the default rate add to a program's time, and what of that the bare interrupts do."""
        with tempfile.TemporaryDirectory() as folder:
            compared = slices.Comparison(SYSTEM_PYTHON, "from numeric import work", bench.WORKLOADS, {
                "perf without stacks": bench.perf_record(f"{folder}/bare", 999)[:-1],
                "perf dwarf": perf_dwarf(f"{folder}/perf", 999)[:-1],
                "pyperf": bench.pyperf_record(f"{folder}/pyperf", 999)[:-1],
            }, rounds=1 if options.short else 4 * options.rounds)
        slices.tell(say, compared, {"pyperf": "perf dwarf"}, limit=0.03, bare="perf without stacks")

    def native_lost(options):
        """Every CPU busy, the default ring, the default chains."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/data"
            work = 1 if options.short else 4
            for rate in (4999, 20000):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                output([*bench.pyperf_record(path, rate), *everywhere(work)])
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                samples = bench.samples_of(path)
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                recorder = cpu - work * bench.CPUS
                say(f"samples at {rate} Hz on {bench.CPUS} CPUs", f"{samples['total']:,}")
                say("  lost", f"{samples['lost']:,}", "none", samples["lost"] == 0)
                say("  CPU time of the recorder, start and end included, for a sample",
                    f"{recorder / samples['total'] * 1e6:.1f} us")

    return {part.__name__: part
            for part in (complete, unwind, dwarf_report, native_size, native_slowdown, native_lost)}
