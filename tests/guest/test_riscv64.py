#!/usr/bin/env python3
"""Hardware counters on riscv64: cycles, instructions and TLB misses, sampled by real interrupts."""
import guest
from guest import Boot, check, event, shares

ARCH = "riscv64"


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


guest.run_all(ARCH, [hardware, interpreted])
