#!/usr/bin/env python3
"""Hardware counters on riscv64: cycles, instructions and TLB misses, sampled by real interrupts."""
import re

import guest
from guest import Script, annotated, check, event, three_quarters

ARCH = "riscv64"
WALKS, COUNTS = 10, 11  # lines of walks.py


def hardware():
    """Python lines, on cycles and on TLB misses."""
    ran = yield Script("""
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -q -e cycles,dTLB-load-misses -F 499 -o py.data -- python3 /t/shares.py 5000 || exit
pyperf report --json --percent-limit 0 -i py.data >py.json
""")
    report = ran.report("py.json")
    check(event(report, "cycles")["samples"] > 100, report["events"])
    check(event(report, "dTLB-load-misses")["samples"] > 10, report["events"])
    return three_quarters(report, "cycles", what="total")


def metrics():
    """TLB misses land on the line that causes them; instructions are counted along, so lines have IPC and misses per
    1,000 instructions; and what the machine does not count is said."""
    ran = yield Script("""
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -e cycles,dTLB-load-misses,cache-misses -- python3 /t/walks.py 60 && pyperf annotate hot || exit
pyperf annotate hot --json >w.json
""")
    report = ran.report("w.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    lines = {row["line"]: row for row in report["lines"] if row["function"] == "hot"}
    walking, counting = lines[WALKS], lines[COUNTS]
    # Of what was counted: at a frequency a sample stands for more the more there is to count. Some are left to the other
    # line, for interrupts flush the TLB, and there are more of them where the host is busy.
    figures = [row["events"].get("dTLB-load-misses", {}) for row in (walking, counting)]
    misses = [figure.get("self", 0) for figure in figures]
    check(figures[0].get("self_samples", 0) > 100 and misses[0] > 3 * misses[1], "misses on the two lines:", figures, ran.text)
    for row in (walking, counting):
        # Both counters of this machine are the host's clock, read at different moments: there is an IPC, but it tells
        # nothing; see groups().
        check(row["metrics"]["ipc"]["value"] > 0, row)
    rates = [row["metrics"]["tlb-mpki"]["value"] for row in (walking, counting)]
    check(walking["metrics"]["tlb-mpki"]["low"] > rates[1], "misses per 1,000 instructions:", rates, walking, counting)
    check("left out, since this machine does not have it: cache-misses" in ran.text, ran.text)
    check(re.search(r"^[\d.]+% of cycles .*\n[\d.]+% of dTLB-load-misses .*\nIPC [\d.]+.* tlbMPKI", ran.text, re.M), ran.text)
    # Share and samples of each event, then the two metrics.
    row = annotated(ran.text, "total += sum(map(pages.__getitem__, order))")
    figures = re.match(r"\s*[\d.]+%\s+[\d,]+\s+([\d.]+)%\s+[\d,]+\s+([\d.]+)(?: ±[\d.]+)?\s+([\d.]+)", row)
    check(figures and abs(float(figures[1]) - 100 * misses[0]) < 0.06, "the line's figures:", row)
    return f"{misses[0]:.1%} and {misses[1]:.1%} of the misses, {rates[0]:.2f} and {rates[1]:.3f} per 1,000 instructions"


def groups():
    """Linux 6.12 reads groups of events that are inherited: each thread and child has its own counts, and all of them
    the machine's one instruction per cycle.

    Counted by instructions, for without that QEMU's counters are the host's clock. Its counters cannot be stopped, only
    set anew: cycles, which are when they overflow, leave the interrupt out, and instructions go on through it. So the
    walker's work there shows as instructions of Python code without cycles; C code without a walker is exact.
    """
    ran = yield Script("""
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -e '{cycles,instructions}:S' -c 4000000 --python=off --call-graph none -o c.data -- shares 20000 || exit
pyperf report --json --percent-limit 0 -i c.data >c.json || exit
pyperf record -e '{cycles,instructions}:S' -F 499 -o py.data -- sh -c 'python3 /t/shares.py 400 & python3 /t/shares.py 400; wait' || exit
pyperf report --json --percent-limit 0 -i py.data >py.json || exit
pyperf report --json --sort pid -i py.data >pids.json || exit
pyperf stat -q --json -o stat.json -e cycles,instructions -- shares 20000
""", GUEST_ICOUNT="shift=1,sleep=off")
    told = []
    report = ran.report("c.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    for name in ("three", "one"):
        figure = next(f for f in report["functions"] if f["name"] == name)["metrics"]["ipc"]
        check(figure["sure"] and abs(figure["value"] - 1) < 0.01, name, figure)
        told.append(f"{figure['value']:.3f}")
    for name, count in guest.stat(ran, "stat.json").items():
        ratio = event(report, name)["estimated_total"] / count["value"]
        check(abs(ratio - 1) < 0.02, name, "of what stat counts:", ratio)
        told.append(f"{name} {ratio:.3f} of stat's")
    check("6.12" not in ran.text, ran.text)
    report = ran.report("py.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    work = next(f for f in report["functions"] if f["name"] == "work" and f["kind"] == "python")
    figure = work["metrics"]["ipc"]
    check(figure["sure"] and 0.97 < figure["value"] < 1.25, figure)
    three_quarters(report, "instructions", what="total")
    pids = [row for row in ran.report("pids.json")["groups"] if row["events"]["cycles"]["self"] > 0.2]
    check(len(pids) == 2, "both processes have their counts:", ran.report("pids.json")["groups"])
    return " ".join(told)


def interpreted():
    """A kernel that does not compile BPF walks all the same."""
    ran = yield Script("""
echo 0 >/proc/sys/net/core/bpf_jit_enable
pyperf record -q -e cycles -F 499 -o py.data -- python3 /t/shares.py 5000 || exit
pyperf report --json --percent-limit 0 -i py.data >py.json
echo 1 >/proc/sys/net/core/bpf_jit_enable
""")
    return three_quarters(ran.report("py.json"), "cycles", what="total")


guest.run_all(ARCH, [hardware, metrics, groups, interpreted])
