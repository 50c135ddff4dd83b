#!/usr/bin/env python3
"""Arm SPE: a trace, packet by packet as the Arm architecture's manual (D17, "Statistical Profiling Extension sample
record protocol") has it, becomes samples by perf inject, as pyperf says, and pyperf reads their latencies and sources."""
import json
import os
import shutil
import struct
import subprocess

import live
from live import check

PMU, ID, TASK = 12, 77, 4711
# Loads: how many, latency in cycles, events (bits of the packet).
RETIRED, L1_ACCESS, L1_REFILL, LLC_ACCESS, LLC_REFILL = (1 << bit for bit in (1, 2, 3, 8, 9))
LOADS = [(30, 200, RETIRED | L1_ACCESS | L1_REFILL | LLC_ACCESS | LLC_REFILL), (60, 4, RETIRED | L1_ACCESS)]


def packet(head, value, size):
    return bytes([head]) + value.to_bytes(size, "little")


def load(address, latency, events):
    """A sampled load: instruction, context, operation, events, data address, latency, source, end."""
    return (packet(0xB0, 0x400100, 8) + packet(0x64, TASK, 4) + packet(0x49, 0, 1) + packet(0x52, events, 2)
            + packet(0xB2, address, 8) + packet(0x98, latency, 2) + packet(0x43, 0, 1) + b"\x01")


def record(kind, misc, body, behind=b""):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body + behind


def recording():
    """A perf.data file with one SPE event, a program's map, and the trace of its loads."""
    trace = b"".join(load(0x7F0000000000 + 64 * i, latency, events) for n, latency, events in LOADS for i in range(n))
    trace += bytes(-len(trace) % 4096)
    attr = struct.pack("<IIQQQQQ", PMU, 112, 0, 1024, 1 | 2 | 1 << 16, 0, 1 << 18).ljust(112, b"\0")  # IP, TID, IDENTIFIER
    trailer = struct.pack("<IIQ", TASK, TASK, ID)
    data = record(3, 1 << 13, struct.pack("<II", TASK, TASK) + b"hot".ljust(8, b"\0") + trailer)
    data += record(10, 2, struct.pack("<IIQQQIIQQII", TASK, TASK, 0x400000, 0x1000, 0, 8, 1, 99, 0, 5, 2)
                   + b"/bin/hot".ljust(16, b"\0") + trailer)
    data += record(70, 0, struct.pack("<IIQQ", 4, 0, PMU, 0))
    data += record(71, 0, struct.pack("<QQQIIII", len(trace), 0, 1, 0, TASK, 0xFFFFFFFF, 0), trace)
    data += record(4, 0, struct.pack("<IIIIQ", TASK, TASK, TASK, TASK, 5) + trailer)
    at = 104  # of the ids, behind the header; then the attrs, then the records
    header = b"PERFILE2" + struct.pack("<8Q", at, 128, at + 8, 128, at + 136, len(data), 0, 0) + bytes(32)
    return header + struct.pack("<Q", ID) + attr + struct.pack("<QQ", at, 8) + data


@live.test
def injected_samples_have_latency_and_source():
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    with live.scratch_folder() as folder:
        traced, injected = os.path.join(folder, "traced"), os.path.join(folder, "injected")
        with open(traced, "wb") as out:
            out.write(recording())
        ran = live.pyperf("report", "-i", traced)
        check("no samples, but a trace" in ran.stdout, ran.stdout)
        check("4.0 kB of Arm SPE trace are not read" in ran.stdout and "perf inject --itrace" in ran.stdout, ran.stdout, ran.stderr)
        ran = subprocess.run(["perf", "inject", "--itrace=M", "-i", traced, "-o", injected], capture_output=True, text=True)
        if ran.returncode:
            raise live.Skip(f"this perf does not decode Arm SPE: {ran.stderr.strip()}")
        ran = live.pyperf("report", "--memory", "--json", "-i", injected)
        check(ran.returncode == 0, ran.stderr)
    answer = json.loads(ran.stdout)
    count = sum(n for n, _, _ in LOADS)
    check(answer["accesses"] == count, answer)
    memory = answer["rows"][0]["memory"]
    latency = sum(n * latency for n, latency, _ in LOADS) / count
    check(abs(memory["latency"] - latency) < 1e-6, "latency:", memory, "not", latency)
    check(abs(memory["l1"] - 2 / 3) < 1e-6 and abs(memory["ram"] - 1 / 3) < 1e-6, "sources:", memory)
    return f"{count} loads, {memory['latency']:.1f} cycles"


if __name__ == "__main__":
    live.run(needs_lines=False)
