#!/usr/bin/env python3
"""Arm SPE: traces made packet by packet, as the Arm architecture's manual ("Statistical Profiling Extension sample record
protocol") has them, in files as perf writes them: pyperf makes the samples of them that perf makes."""
import collections
import json
import os
import re
import shutil
import struct
import subprocess

import live
from live import check

PMU, SPE, DUMMY = 12, 77, 78  # type of the PMU; ids of the events
HOT, WORKER, COLD = (100, 100), (100, 101), (200, 200)  # pid, tid
KERNEL = 1 << 63 | 1 << 61 | 0xFF800000001000  # nonsecure, EL1
NEOVERSE_N1 = 0x413FD0C1
# The counter runs at 25 MHz and began 5 ms before the clock.
SHIFT, MULTIPLIER, ZERO = 10, 40 << 10, 5_000_000
RETIRED, L1, L1_MISS, TLB, TLB_WALK, LLC, LLC_MISS, REMOTE = (1 << bit for bit in (1, 2, 3, 4, 5, 8, 9, 10))
EVENTS = [RETIRED | L1, RETIRED | L1 | L1_MISS, L1 | L1_MISS | LLC, L1 | L1_MISS | LLC | LLC_MISS | TLB | TLB_WALK,
          L1 | TLB, L1 | L1_MISS | LLC | LLC_MISS | REMOTE]
SOURCES = [0, 8, 9, 10, 11, 12, 13, 14, 5]  # as Neoverse numbers them; 5 is none


def packet(head, value):
    return bytes([head]) + value.to_bytes(1 << (head >> 4 & 3), "little")


def operation(i, thread, time, pc=None):
    """The i-th: a load, sometimes a store or a branch, in user space or in the kernel."""
    packets = packet(0xB0, pc or (KERNEL if i % 5 == 1 else 0x400100 + 16 * (i % 4)))
    packets += packet(0x64, thread[1]) if thread else b""
    if i % 6 == 5:
        packets += packet(0x4A, 1) + packet(0xB1, 0x400200) + packet(0x42, RETIRED)
    else:
        address = 0xF0FF800000000000 + i if i % 5 == 1 else 0x7F0000000000 + 64 * i
        packets += packet(0x49, i % 7 == 3) + packet(0x52, EVENTS[i % 6]) + packet(0xB2, address)
        packets += packet(0x9A, 1) + packet(0x43, SOURCES[i % 9])
    packets += packet(0x99, 3) + packet(0x98, 10 * i) + bytes(i % 3)
    return packets + (b"\x01" if time is None else packet(0x71, (time - ZERO) // 40))


def record(kind, misc, body, behind=b""):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body + behind


class File:
    """A perf.data file of one SPE event and a dummy, with times or without."""

    def __init__(self, timed, midr=0, midr_by_cpu=False):
        self.timed, self.cpuid, self.offsets, self.data = timed, 0 if midr_by_cpu else midr, collections.Counter(), b""
        if timed:
            self.data += record(79, 0, struct.pack("<QQQQQBB", SHIFT, MULTIPLIER, ZERO, 0, (1 << 56) - 1, 1, 0))
        words = [PMU, 0]
        if midr_by_cpu:
            words = [2, 4, PMU, 2] + [word for cpu in (0, 1) for word in (0x1010101010101010, cpu, 3, midr, PMU, 1024)]
        self.data += record(70, 0, struct.pack(f"<II{len(words)}Q", 4, 0, *words))

    def add(self, kind, misc, body, thread=HOT, time=0, cpu=0):
        trailer = struct.pack("<II", *thread) + (struct.pack("<QII", time, cpu, 0) if self.timed else b"") + struct.pack("<Q", DUMMY)
        self.data += record(kind, misc, body + bytes(-len(body) % 8) + trailer)

    def program(self, thread, name, time, cpu):
        self.add(3, 1 << 13, struct.pack("<II", *thread) + name.ljust(8, b"\0"), thread, time, cpu)
        self.add(10, 2, struct.pack("<IIQQQIIQQII", *thread, 0x400000, 0x1000, 0, 8, 1, 99, 0, 5, 2) + b"/bin/" + name + b"\0",
                 thread, time + 1, cpu)

    def trace(self, buffer, tid, cpu, packets, flags=0):
        packets += bytes(-len(packets) % 64)
        self.data += record(71, 0, struct.pack("<QQQIIII", len(packets), self.offsets[buffer], 1, buffer, tid, cpu & 0xFFFFFFFF, 0),
                            packets)
        self.add(11, 0, struct.pack("<QQQ", self.offsets[buffer], len(packets), flags), HOT, 6_000_500, max(cpu, 0))
        self.offsets[buffer] += len(packets)

    def write(self, path):
        # What perf is to print must be in the attr, though the event itself has no samples.
        sample_type = 1 | 2 | 8 | 1 << 14 | 1 << 15 | 1 << 16 | (1 << 2 | 1 << 7 if self.timed else 0)
        attrs = b""
        for i, (kind, config) in enumerate(((PMU, 0), (1, 9))):
            attrs += struct.pack("<IIQQQQQ", kind, 112, config, 1024, sample_type, 0, 1 << 18).ljust(112, b"\0")
            attrs += struct.pack("<QQ", 104 + 8 * i, 8)
        at = 104 + 16 + len(attrs)
        cpuid = f"0x{self.cpuid:016x}".encode().ljust(64, b"\0")
        with open(path, "wb") as out:
            out.write(b"PERFILE2" + struct.pack("<8Q", 104, 128, 120, len(attrs), at, len(self.data), 0, 0))
            out.write(struct.pack("<4Q", 1 << 9, 0, 0, 0) + struct.pack("<QQ", SPE, DUMMY) + attrs + self.data)
            out.write(struct.pack("<QQI", at + len(self.data) + 16, 4 + len(cpuid), len(cpuid)) + cpuid)


def on_cpus(contexts, **kwargs):
    """Three threads on two CPUs: their ids are in the trace, or the scheduler's records tell who ran."""
    file = File(True, **kwargs)
    file.program(HOT, b"hot", 6_000_000, 0)
    file.program(COLD, b"cold", 6_000_010, 1)
    file.add(7, 0, struct.pack("<IIIIQ", WORKER[0], HOT[0], WORKER[1], HOT[1], 6_000_100), HOT, 6_000_100, 0)
    for cpu in (0, 1):
        packets = [b"", b""]
        for i in range(60):
            thread, time = (HOT, WORKER, COLD)[(i // 10 + cpu) % 3], 7_000_000 + 4000 * i + 400 * cpu
            packets[i // 30] += operation(i + cpu, thread if contexts else None, time)
            if not contexts and i % 10 == 0:  # switched out: the one that comes
                file.add(15, 1 << 13, struct.pack("<II", *thread), (0, 0), time - 2000, cpu)
        for half in packets:
            file.trace(cpu, HOT[1], cpu, half)
    file.data += record(68, 0, b"")
    file.add(3, 0, struct.pack("<II", *COLD) + b"late".ljust(8, b"\0"), COLD, 9_000_000, 1)
    return file


def of_a_thread():
    file = File(False)
    file.program(HOT, b"hot", 0, 0)
    file.trace(0, HOT[1], -1, b"".join(operation(i, HOT, None) for i in range(90)))
    file.add(4, 0, struct.pack("<IIIIQ", HOT[0], HOT[0], HOT[1], HOT[1], 0))
    return file


def perf_samples(path, itrace, fields):
    ran = subprocess.run(["perf", "script", "-i", path, f"--itrace={itrace}", "-F", fields], capture_output=True, text=True)
    check(ran.returncode == 0, ran.stderr)
    return ran.stdout.splitlines()


def memory_rows(path, *options):
    ran = live.pyperf("report", "--memory", "--json", "-i", path, *options)
    check(ran.returncode == 0, path, options, ran.stderr)
    return json.loads(ran.stdout)


@live.test
def samples_are_perfs():
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    files = {"events": on_cpus(True), "sources": on_cpus(True, midr=NEOVERSE_N1), "switches": on_cpus(False), "thread": of_a_thread()}
    with live.scratch_folder() as folder:
        for name, file in files.items():
            path, injected = os.path.join(folder, name), os.path.join(folder, "injected")
            file.write(path)
            ran = subprocess.run(["perf", "inject", "--itrace=M", "-i", path, "-o", injected], capture_output=True, text=True)
            if ran.returncode:
                raise live.Skip(f"this perf does not decode Arm SPE: {ran.stderr.strip()}")
            # Each operation: thread, moment, place. perf makes one that is all zero for a buffer without times.
            ours = live.pyperf("script", "-i", path).stdout
            if file.timed:
                ours = sorted(re.findall(r"^ *(\w+) +(\d+)/(\d+) +\[(\d+)\] +([\d.]+):", ours, re.M))
                theirs = sorted(re.match(r" *(\w+) +(\d+)/(\d+) +\[(\d+)\] +([\d.]+):", line).groups()
                                for line in perf_samples(path, "i1i", "comm,pid,tid,cpu,time,ip"))
                check(len(ours) == 120 and ours == theirs, name, ours, theirs)
            else:
                check(len(re.findall(r"^hot +100/100 ", ours, re.M)) == 90, ours)
            # Each access: what it cost, and where its data was.
            for tid in ("100", "101", "200") if file.timed else ("100",):
                check(memory_rows(path, "--tid", tid) == memory_rows(injected, "--tid", tid), name, tid)
            lines = [line.split() for line in perf_samples(path, "M", "ip,addr,weight")]
            answer = memory_rows(path)
            check(answer["accesses"] == len(lines) == (100 if file.timed else 75), name, answer, len(lines))
            rows = {row["kind"]: 0 for row in answer["rows"]}
            for row in answer["rows"]:
                rows[row["kind"]] += row["memory"]["accesses"]
            kernel = sum(len(ip) == 16 for _, _, ip in lines)
            check(rows == {"native": len(lines) - kernel, "kernel": kernel}, name, rows, kernel)
            # As the packets are laid down: perf reads tags and halves of addresses as the unit tests have it.
            check(all(int(address, 16) >> 40 in ((0xFFFF80,) if len(ip) == 16 else (0x7F,)) for address, _, ip in lines), lines)
        files["sources"] = on_cpus(True, midr=NEOVERSE_N1, midr_by_cpu=True)
        path = os.path.join(folder, "each")
        files["sources"].write(path)
        check(memory_rows(path) == memory_rows(os.path.join(folder, "sources")), "by CPU:", memory_rows(path))
        check(memory_rows(path) != memory_rows(os.path.join(folder, "events")), "the model of the CPU tells nothing")
    return f"{len(files)} traces, each operation and access as perf has it"


@live.test
def perf_reads_what_the_recorder_writes():
    """No machine here has an SPE: the recorder's parts are fed by a unit test, which leaves its recording on demand."""
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    with live.scratch_folder() as folder:
        path = os.path.join(folder, "recording")
        subprocess.run([live.BUILD / "tests/unit/test_traces"], env={**os.environ, "TRACE_RECORDING": path}, check=True)
        lines = [line.split() for line in perf_samples(path, "M", "tid,time") if line.strip()]
        answer = memory_rows(path)
        ours = re.findall(r"^hot +100/(\d+) +\[\d+\] +([\d.]+):", live.pyperf("script", "-i", path).stdout, re.M)
    if not lines:
        raise live.Skip("this perf does not decode Arm SPE")
    # Twenty loads in each of twenty pieces, of which ten are cut within the last one.
    check(answer["accesses"] == len(ours) == 390, answer, len(ours))
    check(sorted(f"{tid} {time}:" for tid, time in ours) == sorted(" ".join(line) for line in lines), ours, lines)
    return "390 loads"


@live.test
def what_is_missing_is_said():
    file = File(False)
    file.program(HOT, b"hot", 0, 0)
    whole = operation(2, HOT, None)
    file.trace(0, HOT[1], -1, whole[:20] + whole + b"\xff\xff" + whole + whole[:-1], 1 | 4)
    file.trace(0, HOT[1], -1, whole + b"\x98", 8)
    with live.scratch_folder() as folder:
        path = os.path.join(folder, "trace")
        file.write(path)
        ran = live.pyperf("report", "-i", path)
        with open(path, "rb") as full, open(f"{path}.cut", "wb") as out:
            out.write(full.read()[:-300])
        cut = live.pyperf("report", "-i", f"{path}.cut")
        file.data = file.data.replace(struct.pack("<IIQQ", 4, 0, PMU, 0), struct.pack("<IIQQ", 1, 0, PMU, 0))
        file.write(path)
        other = live.pyperf("report", "-i", path)
    check(": 3 samples" in ran.stdout, ran.stdout)
    for line in ("3 records of the trace are cut or make no sense", "1 piece of the trace was cut: its buffer was full",
                 "1 piece of the trace has gaps", "1 piece of the trace lacks samples that were due"):
        check(line in ran.stdout, line, ran.stdout)
    check(cut.returncode == 0 and ": 2 samples" in cut.stdout and "not read" not in cut.stdout and "damaged" in cut.stderr, cut.stdout, cut.stderr)
    check("no samples, but a trace" in other.stdout and "of Intel PT trace are not read: `perf inject" in other.stdout, other.stdout)


if __name__ == "__main__":
    live.run(needs_lines=False)
