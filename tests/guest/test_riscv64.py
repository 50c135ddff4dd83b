#!/usr/bin/env python3
"""Hardware counters on riscv64: cycles, instructions and TLB misses, sampled by real interrupts."""
import guest
from guest import Boot, check, event, shares

ARCH = "riscv64"
WALKS, COUNTS = 10, 11  # lines of walks.py


def hardware():
    """Python lines, on cycles and on TLB misses."""
    boot = Boot(ARCH, """
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -q -e cycles,dTLB-load-misses -F 499 -o /out/py.data -- python3 shares.py 5000 || exit
pyperf report --json --percent-limit 0 -i /out/py.data >/out/py.json
""")
    report = boot.report("py.json")
    check(event(report, "cycles")["samples"] > 100, report["events"])
    check(event(report, "dTLB-load-misses")["samples"] > 10, report["events"])
    three, one = shares(report, "cycles", "three", "one", what="total")
    check(three + one > 40 and guest.within(three, three + one, 0.75, 0.999), "three() has", three, "of", three + one)
    return f"three() has {three / (three + one):.1%} of {three + one}"


def metrics():
    """TLB misses land on the line that causes them; instructions are counted along, so lines have IPC and misses per
    1,000 instructions."""
    boot = Boot(ARCH, """
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -q -e cycles,dTLB-load-misses -F 499 -o /out/w.data -- python3 walks.py 60 || exit
pyperf annotate --stdio -i /out/w.data hot || exit
pyperf annotate -i /out/w.data hot --json >/out/w.json
""")
    report = boot.report("w.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    lines = {row["line"]: row for row in report["lines"] if row["function"] == "hot"}
    walking, counting = lines[WALKS], lines[COUNTS]
    misses = [row["events"].get("dTLB-load-misses", {}).get("self_samples", 0) for row in (walking, counting)]
    check(misses[0] > 100 and misses[0] > 10 * misses[1], "misses on the two lines:", misses, boot.text)
    for row in (walking, counting):
        # Both counters of this machine are the host's clock, read at different moments: there is an IPC, but it tells
        # nothing; see groups().
        check(row["metrics"]["ipc"]["value"] > 0, row)
    rates = [row["metrics"]["tlb-mpki"]["value"] for row in (walking, counting)]
    check(walking["metrics"]["tlb-mpki"]["low"] > rates[1], "misses per 1,000 instructions:", rates, walking, counting)
    check("IPC" in boot.text and "tlbMPKI" in boot.text, boot.text)
    return f"{misses[0]} of {sum(misses)} misses, {rates[0]:.2f} and {rates[1]:.3f} per 1,000 instructions"


def groups():
    """Linux 6.12 reads groups of events that are inherited: each thread and child has its own counts, and all of them
    the machine's one instruction per cycle.

    Counted by instructions, for without that QEMU's counters are the host's clock. Its counters cannot be stopped, only
    set anew: cycles, which are when they overflow, leave the interrupt out, and instructions go on through it. So the
    walker's work there shows as instructions of Python code without cycles; C code without a walker is exact.
    """
    boot = Boot(ARCH, """
echo 1 >/proc/sys/net/core/bpf_jit_enable
pyperf record -e '{cycles,instructions}:S' -c 4000000 --python=off --call-graph none -o /out/c.data -- shares 20000 || exit
pyperf report --json --percent-limit 0 -i /out/c.data >/out/c.json || exit
pyperf record -e '{cycles,instructions}:S' -F 499 -o /out/py.data -- sh -c 'python3 shares.py 400 & python3 shares.py 400; wait' || exit
pyperf report --json --percent-limit 0 -i /out/py.data >/out/py.json || exit
pyperf report --json --sort pid -i /out/py.data >/out/pids.json || exit
pyperf stat -q --json -o /out/stat.json -e cycles,instructions -- shares 20000
""", GUEST_ICOUNT="shift=1,sleep=off")
    told = []
    report = boot.report("c.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    for name in ("three", "one"):
        figure = next(f for f in report["functions"] if f["name"] == name)["metrics"]["ipc"]
        check(figure["sure"] and abs(figure["value"] - 1) < 0.01, name, figure)
        told.append(f"{figure['value']:.3f}")
    for name, count in guest.stat(boot, "stat.json").items():
        ratio = event(report, name)["estimated_total"] / count["value"]
        check(abs(ratio - 1) < 0.02, name, "of what stat counts:", ratio)
        told.append(f"{name} {ratio:.3f} of stat's")
    check("6.12" not in boot.text, boot.text)
    report = boot.report("py.json")
    check(event(report, "instructions").get("counted_with") == "cycles", report["events"])
    work = next(f for f in report["functions"] if f["name"] == "work" and f["kind"] == "python")
    figure = work["metrics"]["ipc"]
    check(figure["sure"] and 0.97 < figure["value"] < 1.25, figure)
    three, one = shares(report, "instructions", "three", "one", what="total")
    check(guest.within(three, three + one, 0.75, 0.999), "three() has", three, "of", three + one)
    pids = [row for row in boot.report("pids.json")["groups"] if row["events"]["cycles"]["self"] > 0.2]
    check(len(pids) == 2, "both processes have their counts:", boot.report("pids.json")["groups"])
    return " ".join(told)


def interpreted():
    """A kernel that does not compile BPF walks all the same."""
    boot = Boot(ARCH, """
echo 0 >/proc/sys/net/core/bpf_jit_enable
pyperf record -q -e cycles -F 99 -o /out/py.data -- python3 shares.py 5000 || exit
pyperf report --json --percent-limit 0 -i /out/py.data >/out/py.json
""")
    report = boot.report("py.json")
    three, one = shares(report, "cycles", "three", "one", what="total")
    check(three + one > 8 and guest.within(three, three + one, 0.75, 0.999), "three() has", three, "of", three + one)


guest.run_all(ARCH, [hardware, metrics, groups, interpreted])
