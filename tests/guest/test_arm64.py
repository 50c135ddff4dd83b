#!/usr/bin/env python3
"""Hardware counters on arm64: an emulated machine that counts instructions exactly."""
import guest
from guest import Boot, check, event, shares

ARCH = "arm64"
JSON = "report --json --percent-limit 0"
# With icount each instruction takes a constant time, 2^shift cycles of 1 GHz.
SHIFT = 1


def hardware():
    """C and Python: events of their own names, IPC as the machine must have it, known shares."""
    boot = Boot(ARCH, f"""
pyperf record -q -e cycles,instructions -F 499 -o /out/c.data -- shares 30000 || exit
pyperf {JSON} -i /out/c.data >/out/c.json || exit
pyperf record -q -e cycles,instructions -F 499 -o /out/py.data -- python3 shares.py 1500 || exit
pyperf {JSON} -i /out/py.data >/out/py.json || exit
pyperf annotate -i /out/py.data work || exit
""", GUEST_ICOUNT=f"shift={SHIFT},sleep=off")
    told = []
    for name, kind, what in (("c", "native", "self"), ("py", "python", "total")):
        report = boot.report(f"{name}.json")
        cycles, instructions = event(report, "cycles"), event(report, "instructions")
        check(cycles["samples"] > 300 and instructions["samples"] > 300, report["events"])
        check(cycles["lost"] == 0 and instructions["lost"] == 0, report["events"])
        ipc = instructions["period_total"] / cycles["period_total"]
        check(abs(ipc * 2**SHIFT - 1) < 0.03, "IPC is", ipc)
        for counted in ("cycles", "instructions"):
            three, one = shares(report, counted, "three", "one", kind=kind, what=what)
            share = three / (three + one)
            check(guest.within(three, three + one, 0.75, 0.999), counted, name, "three() has", three, "of", three + one)
            told.append(f"{name} {counted}: {share:.1%} of {three + one}")
    samples = report["samples"]
    work = [f for f in report["functions"] if f["name"] == "work" and f["kind"] == "python"]
    check(len(work) == 1 and work[0]["events"]["cycles"]["total_samples"] > 100, "work() is there", work)
    lines = {line["line"] for line in report["lines"] if line["function"] == "work"} if report.get("lines") else set()
    check("x ^= i" in boot.text and "x += i" in boot.text, boot.text)
    return "; ".join(told) + f"; lines on {samples['python_lines'] / samples['total']:.1%} with start-up {lines or ''}"


def attach():
    """To a running program, by its pid."""
    boot = Boot(ARCH, f"""
python3 shares.py 100000 & pid=$!
sleep 2
pyperf record -q -e cycles -F 499 -o /out/p.data -p $pid --duration 1 || exit
kill $pid
pyperf {JSON} -i /out/p.data >/out/p.json
""")
    report = boot.report("p.json")
    check(event(report, "cycles")["samples"] > 100, report["events"])
    samples = report["samples"]
    check(samples["python_lines"] > 0.98 * samples["total"], samples)
    three, one = shares(report, "cycles", "three", "one", what="total")
    check(guest.within(three, three + one, 0.75, 0.999), three, one)
    return f"lines on {samples['python_lines']} of {samples['total']}"


def no_counters():
    """Without a PMU: one line says so, and the clock is sampled."""
    boot = Boot(ARCH, f"""
pyperf record -e cycles,instructions -o /out/p.data -- shares 3000 || exit
pyperf {JSON} -i /out/p.data >/out/p.json || exit
pyperf record -e instructions -o /out/none.data -- shares 30 && exit 9
exit 0
""", GUEST_CPU="cortex-a72,pmu=off")
    report = boot.report("p.json")
    check([e["name"] for e in report["events"]] == ["cpu-clock"], report["events"])
    check("cpu-clock" in boot.text and "instructions" in boot.text, boot.text)


def no_instructions():
    """A PMU that counts cycles only: the other event is left out, and said so."""
    boot = Boot(ARCH, f"""
pyperf record -e cycles,instructions -o /out/p.data -- shares 10000 || exit
pyperf {JSON} -i /out/p.data >/out/p.json
""", GUEST_ICOUNT="")
    report = boot.report("p.json")
    check([e["name"] for e in report["events"]] == ["cycles"], report["events"])
    check("instructions" in boot.text, boot.text)


def ordinary_user():
    """At paranoid 2 its own user-mode code; above, the error names the setting and the capability."""
    boot = Boot(ARCH, """
chmod 777 /out /t
echo 2 >/proc/sys/kernel/perf_event_paranoid
su -s /bin/sh nobody -c '/t/pyperf record -e cycles:u --python=off -o /out/two.data -- /t/shares 10000' || exit
pyperf report --json -i /out/two.data >/out/two.json || exit
echo 3 >/proc/sys/kernel/perf_event_paranoid
echo == 3
su -s /bin/sh nobody -c '/t/pyperf record -e cycles:u -o /out/three.data -- /t/shares 10000' && exit 9
test ! -e /out/three.data
""")
    report = boot.report("two.json")
    check(event(report, "cycles:u")["samples"] > 50, report["events"])
    refused = boot.text.split("== 3")[1]
    check("perf_event_paranoid" in refused and "CAP_PERFMON" in refused, refused)


guest.run_all(ARCH, [hardware, attach, no_counters, no_instructions, ordinary_user])
