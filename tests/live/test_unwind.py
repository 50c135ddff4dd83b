#!/usr/bin/env python3
"""Native stacks: those of stopped programs are what their sources and gdb say, by each back end;
those of a recording by perf are complete."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import live
from live import Skip, check
from native import STACKS, compiled

TOOLS = live.BUILD / "tests/bench"


@contextlib.contextmanager
def waiting(*command, env=None):
    """The (pid, tid) of a program that has said that it waits."""
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
    )
    try:
        for line in process.stdout:
            match = re.match(r"ready (\d+)", line)
            if match:
                asleep(int(match[1]))
                yield process.pid, int(match[1])
                return
        raise live.Failed(f"{command} ended without being ready")
    finally:
        process.kill()
        process.wait()


def asleep(tid):
    """Out of write() and into the wait."""
    while pathlib.Path(f"/proc/{tid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        pass


class Stack:
    def __init__(self, head, lines):
        name, guessed, self.end = head.split(" ", 2)
        self.backend, self.guessed = name, int(guessed)
        self.frames = [line.split(" ", 4) for line in lines]  # ip, sp, by, vaddr, file

    def ips(self):
        return [int(frame[0], 16) for frame in self.frames]

    def __repr__(self):
        return f"{self.backend} {self.end}: " + "; ".join(" ".join(frame) for frame in self.frames)


def unwound(pid, tid):
    """{back end: Stack}"""
    ran = subprocess.run([TOOLS / "unwind_thread", str(pid), str(tid)], capture_output=True, text=True)
    if "cannot stop" in ran.stderr:
        raise Skip("ptrace is not allowed here")
    check(ran.returncode == 0, "unwind_thread ended with", ran.returncode, ran.stderr)
    parts = re.split(r"^= ", ran.stdout, flags=re.M)[1:]
    stacks = [Stack(*(lambda lines: (lines[0], lines[1:]))(part.splitlines())) for part in parts]
    return {stack.backend: stack for stack in stacks}


GDB = """
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame = gdb.newest_frame()
    while frame:
        if frame.type() in (gdb.NORMAL_FRAME, gdb.SIGTRAMP_FRAME):
            print("at", thread.ptid[1], hex(frame.pc()))
        frame = frame.older()
"""


def gdb_ips(pid):
    """{tid: [ip]} by gdb."""
    if not shutil.which("gdb"):
        raise Skip("no gdb")
    with live.scratch_folder() as folder:
        script = pathlib.Path(folder, "stacks.py")
        script.write_text(GDB)
        ran = subprocess.run(
            ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "set backtrace past-main on",
             "-ex", "set backtrace limit unlimited", "-p", str(pid), "-x", script],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )
    found = {}
    for tid, ip in re.findall(r"^at (\d+) 0x([0-9a-f]+)$", ran.stdout, re.M):
        found.setdefault(int(tid), []).append(int(ip, 16))
    if not found:
        raise Skip("gdb shows no stacks: " + ran.stderr[-300:])
    return found


def names_of(path, vaddrs):
    """Names of functions by nm, for those that the file has."""
    symbols = []
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.fullmatch(r"([0-9a-f]+) [tT] (\S+)", line)
        if match:
            symbols.append((int(match[1], 16), match[2]))
    symbols.sort()
    names = []
    for vaddr in vaddrs:
        below = [name for start, name in symbols if start <= vaddr]
        names.append(below[-1] if below else "?")
    return names


# libunwind needs the sorted table of .eh_frame_hdr, which old static programs lack.
UNSORTED = ("table", "libdw")
OWN = {name for names in STACKS.values() for name in names}


def check_chain(binary, unstripped, mode, backends=None, guessed=False):
    """The chain is in the stack, in order and whole, down to the root."""
    with waiting(binary, mode) as (pid, tid):
        stacks = unwound(pid, tid)
    for name, stack in stacks.items():
        if backends and name not in backends:
            continue
        own = [frame for frame in stack.frames if frame[4].split(" (deleted)")[0] == str(binary)]
        names = names_of(unstripped, [int(frame[3], 16) for frame in own])
        names = [n for n in names if n in OWN]
        check(names == STACKS[mode], binary.name, mode, name, "is", " ".join(names)[:300], repr(stack)[:2000])
        check(stack.end == "complete", binary.name, mode, "ends:", repr(stack)[:2000])
        check(guessed or stack.guessed == 0, binary.name, mode, "was guessed:", repr(stack)[:2000])
    return stacks


@live.test
def known_chains():
    """Of programs linked in every way."""
    base = "-O2 -g -fomit-frame-pointer"
    with live.scratch_folder() as folder:
        plain = compiled(folder, "plain", f"gcc {base}")
        for mode in STACKS:
            check_chain(plain, plain, mode)
        for flags in ("-static", "-static-pie", "-no-pie", "-Wl,--no-eh-frame-hdr"):
            binary = compiled(folder, "linked" + flags, f"gcc {base} {flags}")
            only = None if b".eh_frame_hdr" in binary.read_bytes() else UNSORTED
            for mode in ("sleep", "signal", "thread"):
                check_chain(binary, binary, mode, only)
        for flags in ("", "-static"):
            whole = compiled(folder, "whole" + flags, f"gcc {base} {flags}")
            stripped = pathlib.Path(folder, "stripped" + flags)
            subprocess.run(["strip", "-o", stripped, whole], check=True)
            only = None if b".eh_frame_hdr" in stripped.read_bytes() else UNSORTED
            for mode in ("sleep", "altstack"):
                check_chain(stripped, whole, mode, only)
    return "5 ways to stop, 7 ways to link"


@live.test
def other_tables():
    """.debug_frame alone; no tables but frame pointers, marked; neither: what a search finds."""
    with live.scratch_folder() as folder:
        binary = compiled(folder, "debug_frame", "gcc -O2 -g -fomit-frame-pointer -fno-asynchronous-unwind-tables")
        check_chain(binary, binary, "sleep", UNSORTED)
        binary = compiled(folder, "pointers", "gcc -O1 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables")
        stack = check_chain(binary, binary, "sleep", ("table",), guessed=True)["table"]
        check(any(frame[2] == "frame-pointer" for frame in stack.frames), stack)
        check(stack.guessed >= 8, stack)


@live.test
def musl():
    """musl's own code has no tables at all: marked, and still down to the root."""
    with live.scratch_folder() as folder:
        for flags in ("", "-static"):
            binary = compiled(folder, "musl" + flags, f"musl-gcc -O2 -g -fomit-frame-pointer {flags}")
            for mode in ("sleep", "signal"):
                stack = check_chain(binary, binary, mode, ("table",), guessed=True)["table"]
                check(stack.guessed, stack)


@live.test
def deleted_binary():
    """By map_files or from memory."""
    with live.scratch_folder() as folder:
        keep = compiled(folder, "keep", "gcc -O2 -g -fomit-frame-pointer")
        gone = pathlib.Path(folder, "gone")
        shutil.copy(keep, gone)
        with waiting(gone, "sleep") as (pid, tid):
            gone.unlink()
            stacks = unwound(pid, tid)
        for stack in stacks.values():
            check(stack.end == "complete" and len(stack.frames) >= 12, stack)


@live.test
def agrees_with_gdb():
    with live.scratch_folder() as folder:
        chain = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        programs = [(chain, mode) for mode in ("sleep", "signal", "altstack", "thread", "deep")]
        if shutil.which("g++"):
            programs.append((compiled(folder, "throw", "g++ -O2 -g", live.WORKLOADS / "throw.cc"), ""))
        frames = 0
        for program, mode in programs:
            with waiting(program, mode) as (pid, tid):
                theirs = gdb_ips(pid)
                for each, ips in theirs.items():
                    for name, stack in unwound(pid, each).items():
                        check(stack.ips() == ips, program.name, mode, name, stack, "gdb:", [f"{ip:x}" for ip in ips])
                        frames += len(ips)
    return f"{frames} frames"


THREADS = """
import threading, time, sys
numpy = None
try:
    import numpy
except ImportError:
    pass
def nested(depth):
    if depth: return sorted([1], key=lambda x: nested(depth - 1))
    gate.acquire()
gate = threading.Lock(); gate.acquire()
threads = [threading.Thread(target=nested, args=(n,), daemon=True) for n in (1, 5, 20)]
for thread in threads: thread.start()
if numpy:
    def multiply():
        a = numpy.ones((300, 300))
        while True: a @ a
    threading.Thread(target=multiply, daemon=True).start()
time.sleep(0.5)
import os
os.write(1, b"ready %d\\n" % threading.get_native_id())
time.sleep(1000)
"""


@live.test
def python_threads_agree_with_gdb():
    """The system's Python, without frame pointers and symbols: in waits, and in NumPy where that is there."""
    if not os.access("/usr/bin/python3", os.X_OK):
        raise Skip("no /usr/bin/python3")
    frames = 0
    with waiting("/usr/bin/python3", "-c", THREADS) as (pid, _):
        os.kill(pid, signal.SIGSTOP)
        theirs = gdb_ips(pid)
        os.kill(pid, signal.SIGSTOP)
        check(len(theirs) >= 4, theirs)
        for tid, ips in theirs.items():
            stacks = unwound(pid, tid)
            for name, stack in stacks.items():
                check(stack.ips() == ips, tid, name, stack, "gdb:", [f"{ip:x}" for ip in ips])
                check(stack.end == "complete", stack)
            frames += len(ips)
    return f"{len(theirs)} threads, {frames} frames"


NESTED = """
import os, threading, time
def f(n):
    if n: return f(n - 1)
    os.write(1, b"ready %d\\n" % threading.get_native_id())
    time.sleep(1000)
f(30)
"""


@live.test_each_python
def trampolines(python):
    """With -X perf every Python function has a trampoline, and the chain goes on through all."""
    version = subprocess.run(
        [python, "-c", "import sys, sysconfig; print(sys.version_info[1], bool(sysconfig.get_config_var('PY_HAVE_PERF_TRAMPOLINE')))"],
        capture_output=True, text=True, check=True,
    ).stdout.split()
    if int(version[0]) < 12:
        raise Skip("has no trampolines")
    done = []
    for option in ("perf", "perf_jit")[: 1 if int(version[0]) == 12 else 2]:
        with waiting(python, "-X", option, "-c", NESTED) as (pid, tid):
            stack = unwound(pid, tid)["table"]
            mapped = pathlib.Path(f"/proc/{pid}/root/tmp/perf-{pid}.map")
            mapped.unlink(missing_ok=True)
        check(stack.end == "complete" and stack.guessed == 0, option, stack)
        known = sum(frame[2] == "code" for frame in stack.frames)
        check(known == 32, option, known, "trampolines for 31 calls of f() and the module:", stack)
        done.append(option)
    return f"{' and '.join(done)}: {len(stack.frames)} frames"


NUMERIC = live.WORKLOADS / "numeric.py"


@live.test
def recordings_are_complete():
    """User stacks that perf sampled on the system's Python, with NumPy where that is there: at least 99%
    reach the root, and the back ends say the same of as many."""
    if not shutil.which("perf"):
        raise Skip("no perf")
    if subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode != 0:
        raise Skip("the system's Python has no NumPy")
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        ran = subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "499", "--call-graph", "dwarf,32768", "-o", path,
             "/usr/bin/python3", NUMERIC, "2"], capture_output=True, text=True,
        )
        if ran.returncode != 0:
            raise Skip("perf cannot record: " + ran.stderr)
        out = subprocess.run([TOOLS / "unwind", path], capture_output=True, text=True, check=True).stdout
    rows = [row for row in map(json.loads, out.splitlines()) if "frames" in row]
    check([row["backend"] for row in rows][0] == "table" and len(rows) > 1, rows)
    table = rows[0]
    check(table["samples"] >= 200, table)
    check(table["complete"] >= 0.99 * table["samples"], table)
    # OpenBLAS is partly assembly without tables; all else here has them.
    check(table["guessed"] <= 0.05 * table["samples"], table)
    for row in rows[1:]:
        # Where the dynamic linker begins there are no tables, and each does as it can.
        check(row["differ"] <= 0.01 * row["samples"], "differ:", table, row)
    return f"{table['complete'] / table['samples']:.2%} of {table['samples']}, " + ", ".join(
        f"{row['backend']} {row['us_per_frame']:.3f} us a frame" for row in rows
    )


if __name__ == "__main__":
    live.run(needs_lines=False)
