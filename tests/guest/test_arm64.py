#!/usr/bin/env python3
"""Hardware counters on arm64: an emulated machine that counts instructions exactly."""
import re

import guest
from guest import Script, annotated, check, event, metric, shares, stat, three_quarters

ARCH = "arm64"
JSON = "report --json --percent-limit 0"
# With icount each instruction takes a constant time, 2^shift cycles of 1 GHz.
SHIFT = 1
IPC = 2**-SHIFT
ICOUNT = f"shift={SHIFT},sleep=off"


def hardware():
    """C and Python, each event sampled on its own: events of their own names, IPC as the machine must
    have it, known shares. What the machine does not count is left out, and said so."""
    ran = yield Script(f"""
pyperf record -q -e cycles,instructions -F 499 -o c.data -- shares 30000 || exit
pyperf {JSON} -i c.data >c.json || exit
pyperf record -e cycles,cache-misses -- python3 /t/shares.py 1500 && pyperf annotate work || exit
pyperf {JSON} >py.json || exit
""", GUEST_ICOUNT=ICOUNT)
    told = []
    for name, kind, what in (("c", "native", "self"), ("py", "python", "total")):
        report = ran.report(f"{name}.json")
        cycles, instructions = event(report, "cycles"), event(report, "instructions")
        check(len(report["events"]) == 2, report["events"])
        check(cycles["samples"] > 300 and instructions["samples"] > 300, report["events"])
        check(cycles["lost"] == 0 and instructions["lost"] == 0, report["events"])
        ipc = instructions["period_total"] / cycles["period_total"]
        check(abs(ipc / IPC - 1) < 0.03, "IPC is", ipc)
        told += [three_quarters(report, counted, kind=kind, what=what) for counted in ("cycles", "instructions")]
    samples = report["samples"]
    work = [f for f in report["functions"] if f["name"] == "work" and f["kind"] == "python"]
    check(len(work) == 1 and work[0]["events"]["cycles"]["total_samples"] > 100, "work() is there", work)
    check("left out, since this machine does not have it: cache-misses" in ran.text, ran.text)
    check(re.search(r"^[\d.]+% of cycles .*\n[\d.]+% of instructions .*\nIPC 0\.[45]\d", ran.text, re.M), ran.text)
    for line in ("x ^= i", "x += i"):
        # Share and samples of each event, then IPC.
        row = annotated(ran.text, line)
        check(re.match(r"\s*[\d.]+%\s+[\d,]+\s+[\d.]+%\s+[\d,]+\s+0\.[3-7]\d\b", row), "the line's figures:", row)
    return "; ".join(told) + f"; lines on {samples['python_lines'] / samples['total']:.1%} with start-up"


def groups():
    """Cycles alone count instructions along; {{..}}:S reads them, and what it reads is what was counted:
    the shares of a count are within a point, IPC is the constant on every line."""
    ran = yield Script(f"""
pyperf record -q -i -e '{{cycles,instructions}}:S' -F 4999 -o c.data -- shares 200000 || exit
pyperf {JSON} -i c.data >c.json || exit
pyperf record -q -i -e cycles -F 4999 -o py.data -- python3 /t/uneven.py 3500 || exit
pyperf {JSON} -i py.data >py.json || exit
perf report --stdio --group -i c.data --no-children -g none >perf.txt || exit
pyperf record -e '{{cycles,instructions}}:S' -F 99 -o old.data -- shares 3000 || exit
pyperf {JSON} -i old.data >old.json || exit
pyperf record -q -e '{{cycles,instructions}}' -F 99 -o both.data -- shares 3000 || exit
pyperf {JSON} -i both.data >both.json || exit
""", GUEST_ICOUNT=ICOUNT)
    told, shared = [], []
    for name, kind, what in (("c", "native", "self"), ("py", "python", "total")):
        report = ran.report(f"{name}.json")
        cycles, instructions = event(report, "cycles"), event(report, "instructions")
        check(instructions.get("counted_with") == "cycles", instructions)
        check(instructions["period_total"] > 1000000, instructions)
        ipc = instructions["estimated_total"] / cycles["estimated_total"]
        check(abs(ipc / IPC - 1) < 0.01, name, "IPC is", ipc)
        three, one = shares(report, "instructions", "three", "one", kind=kind, what=what, unit="")
        share = three / (three + one)
        check(abs(share - 0.75) < 0.01, name, "three() has", share)
        shared.append(f"{share:.2%}")
        lines = [line for line in report["lines"] if line["function"] == "work"] if name == "py" else []
        for row in [f for f in report["functions"] if f["name"] in ("three", "one", "work") and f["kind"] == kind] + lines:
            figure = metric(row, "ipc")
            if figure and figure["sure"]:
                check(abs(figure["value"] / IPC - 1) < 0.05, row["name"] if "name" in row else row["line"], figure)
                told.append(f"{figure['value']:.3f}")
    check(len(told) >= 4, "IPC of few rows:", told)
    perf = (ran.folder / "perf.txt").read_text()
    check("cycles, instructions" in perf and "three" in perf, perf)
    # This kernel cannot read inherited groups: it is said, and both are sampled.
    check("Linux 6.12" in ran.text, ran.text)
    for name in ("old", "both"):
        report = ran.report(f"{name}.json")
        check(event(report, "cycles")["samples"] > 10 and event(report, "instructions")["samples"] > 10, report["events"])
    return f"three() has {' and '.join(shared)}; IPC of rows: {' '.join(told)}"


def counting():
    """Counts of pyperf and perf are equal where the machine repeats itself; more events than counters
    are scaled; a group that does not fit says so."""
    many = ",".join(["r08:u"] * 9)
    ran = yield Script(f"""
pyperf stat -q --json -o one.json -e cycles,instructions,instructions:u -- shares 10000 || exit
pyperf stat -q --json -o two.json -e cycles,instructions,instructions:u -- shares 10000 || exit
perf stat -x, -o perf.csv -e instructions:u shares 10000 || exit
pyperf record -q -e cycles,instructions:u -F 499 --python=off --no-metrics -o r.data -- shares 10000 || exit
pyperf {JSON} -i r.data >r.json || exit
pyperf stat -q --json -o many.json -e instructions:u,{many} -- shares 100000 || exit
pyperf stat -q --json -o default.json -- shares 10000 || exit
pyperf stat -q --json --by-function -o by.json -e cycles,instructions -- python3 /t/shares.py 1500 || exit
echo == group
pyperf record -e '{{{many}}}' -o p.data -- shares 10 && exit 9
pyperf record -e '{{{many}}}:W' -c 100000000 -o p.data -- shares 10 || exit
echo == list
pyperf list --json hardware >list.json || exit
""", GUEST_ICOUNT=ICOUNT)
    one, two = stat(ran, "one.json"), stat(ran, "two.json")
    user = one["instructions:u"]["value"]
    perf = [line.split(",") for line in (ran.folder / "perf.csv").read_text().splitlines() if "instructions:u" in line]
    check(perf and float(perf[0][0]) > 10000 * 4000 * 3, "perf counts", perf)
    for other, what in ((two["instructions:u"]["value"], "the second run"), (float(perf[0][0]), "perf")):
        check(abs(user - other) <= 0.0005 * user, "instructions:u:", user, what, other)
    recorded = event(ran.report("r.json"), "instructions:u")["estimated_total"]
    check(abs(recorded / user - 1) < 0.02, "instructions:u of the recording:", recorded, "counted:", user)
    ipc = one["instructions"]["value"] / one["cycles"]["value"]
    check(abs(ipc / IPC - 1) < 0.01, "IPC is", ipc)
    report = ran.report("many.json")
    copies = [e for e in report["events"] if e["name"] == "r08:u"]
    exact = 10 * user
    check(len(copies) == 9 and any(e["scaled"] for e in report["events"]), report["events"])
    for copy in copies:
        check(abs(copy["value"] / exact - 1) < 0.15, "multiplexed:", copy["value"], "of", exact)
    default = stat(ran, "default.json")
    check(default["cycles"]["value"] > 1e6 and default["instructions"]["value"] > 1e6, default)
    by = ran.report("by.json")
    for name in ("cycles", "instructions"):
        total = next(e["value"] for e in by["events"] if e["name"] == name)
        check(abs(sum(f["events"][name] for f in by["functions"]) - total) < 1 + 1e-6 * total, name, by["functions"])
    work = next(f for f in by["functions"] if f["name"].startswith("work "))
    check(work["events"]["cycles"] > 0.5 * total / IPC * 0.9, work)
    refused = ran.text.split("== group")[1]
    check("does not fit on the counters" in refused and "at once" in refused and ":W" in refused, refused)
    check("on their own" in refused, refused)
    listed = {e["name"]: e["status"] for e in ran.report("list.json")["events"]}
    check(listed["cycles"] == "counts" and listed["instructions"] == "counts", listed)
    return f"{user:.0f} instructions, perf {perf[0][0]}; multiplexed {[round(c['value'] / exact, 3) for c in copies]}"


def multiplexing():
    """More events than counters, each sampled on its own: the counts of all, and of Python lines, are those that a
    counter of its own would give, and it is said that they are scaled."""
    copies = 9
    many = ",".join(["r08:u"] * copies)
    ran = yield Script(f"""
pyperf stat -q --json -o exact.json -e r08:u -- shares 50000 || exit
pyperf record -q -e {many} -c 5000000 --python=off --no-metrics -o c.data -- shares 50000 || exit
pyperf {JSON} -i c.data >c.json || exit
python3 /t/shares.py 1 # compiles what it imports
pyperf stat -q --json -o py-exact.json -e r08:u -- python3 /t/shares.py 1200 || exit
pyperf record -q -e cycles,{many} -F 499 --no-metrics -o py.data -- python3 /t/shares.py 1200 || exit
pyperf {JSON} -i py.data >py.json || exit
pyperf report --stdio -i c.data || exit
pyperf annotate --stdio -i py.data work || exit
""", GUEST_ICOUNT=ICOUNT)
    told = []
    for name, exact in (("c", "exact"), ("py", "py-exact")):
        report, truth = ran.report(f"{name}.json"), stat(ran, f"{exact}.json")["r08:u"]["value"]
        events = [e for e in report["events"] if e["name"].startswith("r08:u")]
        check(len(events) == copies, report["events"])
        for e in events:
            check(e["running_ns"] < 0.9 * e["enabled_ns"], "it had a counter of its own:", e)
            check(abs(e["estimated_total"] / truth - 1) < 0.03, name, e, "truth:", truth)
            three_quarters(report, e["name"], kind="native" if name == "c" else "python",
                           what="self" if name == "c" else "total")
        told.append(" ".join(f"{e['estimated_total'] / truth:.2f}" for e in events))
    check(ran.text.count("its counts are scaled up") == copies, ran.text)
    check(ran.text.count("of the time, scaled up)") > copies, ran.text)
    return "of the truth: " + "; ".join(told)


def taken():
    """Another user's pinned events have all counters: that is said, and what can be counted is."""
    held = ",".join(["cycles:D"] + ["r08:D"] * 8)
    ran = yield Script(f"""
perf stat -a -e {held} sleep 1000 >/dev/null 2>&1 & held=$!
trap 'kill $held' EXIT
sleep 2
pyperf record -e cycles,instructions -o p.data -- shares 10000 || exit
pyperf {JSON} -i p.data >p.json || exit
echo == alone
pyperf record -e instructions -o none.data -- shares 10 && exit 9
exit 0
""", GUEST_ICOUNT=ICOUNT)
    report = ran.report("p.json")
    check([e["name"] for e in report["events"]] == ["cpu-clock"] and report["samples"]["total"] > 10, report["events"])
    for part, name in zip(ran.text.split("== alone"), ("cycles: another user has its counter", "cannot count instructions: another user")):
        check(name in part, part)
    check("left out, since another user has its counter for itself: instructions" in ran.text, ran.text)


def throttling():
    """Samples that the kernel held back are said, and the total is corrected for them."""
    ran = yield Script(f"""
rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
echo 25 >/proc/sys/kernel/perf_cpu_time_max_percent # without it the rate stays
echo 200 >/proc/sys/kernel/perf_event_max_sample_rate
pyperf record -e cycles -c 1000000 --no-metrics --python=off -o p.data -- shares 100000 || exit
pyperf {JSON} -i p.data >p.json || exit
pyperf report -i p.data | head -8
echo "$rate" >/proc/sys/kernel/perf_event_max_sample_rate
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
pyperf stat -q --json -o stat.json -e cycles -- shares 100000 || exit
""", GUEST_ICOUNT=ICOUNT)
    cycles = event(ran.report("p.json"), "cycles")
    truth = stat(ran, "stat.json")["cycles"]["value"]
    check(cycles.get("throttled", 0) > 0, cycles)
    check("throttle" in ran.text, ran.text)
    check(cycles["period_total"] < 0.95 * truth, cycles, truth)
    check(abs(cycles["estimated_total"] / truth - 1) < 0.06, cycles, truth)
    return f"throttled {cycles['throttled']} times, {cycles['estimated_total'] / truth:.3f} of the truth"


def attach():
    """To a running program, by its pid."""
    ran = yield Script(f"""
python3 /t/shares.py 100000 & pid=$!
trap 'kill $pid' EXIT
sleep 2
pyperf record -q -e cycles -F 499 -o p.data -p $pid --duration 1 || exit
pyperf stat -q --json -o stat.json -e cycles,instructions -p $pid --duration 0.3 || exit
pyperf {JSON} -i p.data >p.json
""", GUEST_ICOUNT=ICOUNT)
    report = ran.report("p.json")
    check(event(report, "cycles")["samples"] > 100, report["events"])
    samples = report["samples"]
    check(samples["python_lines"] > 0.98 * samples["total"], samples)
    three_quarters(report, "cycles", what="total")
    counts = stat(ran, "stat.json")
    ipc = counts["instructions"]["value"] / counts["cycles"]["value"]
    check(abs(ipc / IPC - 1) < 0.02, "IPC is", ipc)
    return f"lines on {samples['python_lines']} of {samples['total']}"


def no_counters():
    """Without a PMU: one line says so, and the clock is sampled."""
    ran = yield Script(f"""
pyperf record -e cycles,instructions -o p.data -- shares 3000 || exit
pyperf {JSON} -i p.data >p.json || exit
pyperf record -o default.data -- shares 3000 || exit
pyperf {JSON} -i default.data >default.json || exit
pyperf record -e instructions -o none.data -- shares 30 && exit 9
pyperf stat --json -o stat.json -- shares 3000 || exit
pyperf stat -e cycles -- shares 30 && exit 9
exit 0
""", GUEST_CPU="cortex-a72,pmu=off")
    for name in ("p", "default"):
        report = ran.report(f"{name}.json")
        check([e["name"] for e in report["events"]] == ["cpu-clock"], report["events"])
    check("cpu-clock" in ran.text and "instructions" in ran.text, ran.text)
    counts = stat(ran, "stat.json")
    check("cycles" not in counts and counts["task-clock"]["value"] > 1e6, counts)


def no_instructions():
    """A PMU that counts cycles only: the other event is left out, and said so."""
    ran = yield Script(f"""
pyperf record -e cycles,instructions -o p.data -- shares 10000 || exit
pyperf {JSON} -i p.data >p.json || exit
echo == default
pyperf record -o default.data -- shares 10000 || exit
pyperf {JSON} -i default.data >default.json
""", GUEST_ICOUNT="")
    for name in ("p", "default"):
        report = ran.report(f"{name}.json")
        check([e["name"] for e in report["events"]] == ["cycles"], report["events"])
    for text in ran.text.split("== default"):
        check("instructions" in text, ran.text)


def ordinary_user():
    """At paranoid 2 its own user-mode code; above, the error names the setting and the capability."""
    ran = yield Script("""
chmod 777 .
level=$(cat /proc/sys/kernel/perf_event_paranoid)
trap 'echo $level >/proc/sys/kernel/perf_event_paranoid' EXIT
echo 2 >/proc/sys/kernel/perf_event_paranoid
su -s /bin/sh nobody -c '/t/pyperf record -e cycles:u --python=off -o two.data -- /t/shares 10000' || exit
pyperf report --json -i two.data >two.json || exit
su -s /bin/sh nobody -c '/t/pyperf stat --json -o stat.json -e cycles,instructions -- /t/shares 10000' || exit
echo 3 >/proc/sys/kernel/perf_event_paranoid
echo == 3
su -s /bin/sh nobody -c '/t/pyperf record -e cycles:u -o three.data -- /t/shares 10000' && exit 9
test ! -e three.data || exit
su -s /bin/sh nobody -c '/t/pyperf stat -e cycles -- /t/shares 10' && exit 9
exit 0
""", GUEST_ICOUNT=ICOUNT)
    report = ran.report("two.json")
    check(event(report, "cycles:u")["samples"] > 50, report["events"])
    counts = stat(ran, "stat.json")
    check(counts["cycles:u"]["value"] > 1e6 and counts["instructions:u"]["value"] > 1e6, counts)
    for refused in ran.text.split("== 3")[1].split("pyperf: ")[1:]:
        check("perf_event_paranoid" in refused and "CAP_PERFMON" in refused, refused)


guest.run_all(
    ARCH, [hardware, groups, counting, multiplexing, taken, throttling, attach, no_counters, no_instructions, ordinary_user]
)
