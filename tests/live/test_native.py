#!/usr/bin/env python3
"""Native stacks without frame pointers: whole, and woven with Python in the order of the calls.

Imports nest deeply, in some builds deeper than the copies: what is judged is the programs' own part."""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess

import live
from attached import Running, burn
from branches import as_branches
from live import check
from native import is_root, perf_stacks

# A C function that calls back into Python, which works in C: main -> qsort -> compare -> sha256.
CALLBACK = """
import ctypes, hashlib, random, time
libc = ctypes.CDLL(None)
block = bytes(4096)
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(a, b):
    hashlib.sha256(block).digest()
    return a[0] - b[0]
def sort():
    numbers = (ctypes.c_int * 200)(*[random.randrange(1000) for _ in range(200)])
    libc.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), compare)
def main():
    end = time.process_time() + 0.45
    while time.process_time() < end: sort()
main()
"""

THREADS = """
import threading, time, zlib
data = bytes(range(256)) * 400
def work():
    end = time.thread_time() + 0.15
    while time.thread_time() < end: zlib.compress(data)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def check_whole(python, recording, samples, function):
    """Chains end where programs and threads begin, for perf too."""
    ends = []
    for sample in samples:
        end = sample.frames[-1]
        # The C library of another system may have no symbols.
        root = is_root(end.name, end.file) or bool(python.root) and end.file.endswith("/libc.so.6")
        ends.append((root, any((frame.name, frame.file) == (function, "<string>") for frame in sample.python)))
    within = [root for root, inside in ends if inside]
    check(len(within) > 200, "only", len(within), "samples in", function)
    check(sum(within) >= 0.99 * len(within), "only", sum(within), "of", len(within), "stacks are whole")
    if not python.root and shutil.which("perf"):
        perf = collections.Counter(bool(stack) and is_root(*stack[-1]) for stack in perf_stacks(recording.path))
        check(perf == collections.Counter(root for root, _ in ends), "perf sees", perf, "whole")
    return f"{sum(within)} of {len(within)}"


def stand_in(frames, *wanted):
    """These functions, one after another, the innermost first."""
    at = -1
    for name in wanted:
        at = next((i for i in range(at + 1, len(frames)) if re.search(name, frames[i].name)), None)
        if at is None:
            return False
    return True


@live.test_each_python
def whole_and_in_order(python):
    """Python, C, Python, C: each calls the next one, down to the program's root and a thread's."""
    recording = live.Recording([python, "-c", CALLBACK], "-e", "cpu-clock:u", "-F", "999")
    samples = recording.script()
    told = check_whole(python, recording, samples, "main")
    inside = [sample.frames for sample in samples if "compare" in [frame.name for frame in sample.python]]
    ordered = sum(stand_in(frames, "^compare$", "^(qsort|msort)", "^sort$", "^main$") for frames in inside)
    check(len(inside) > 200, "only", len(inside), "samples of compare()")
    check(ordered >= 0.99 * len(inside), "only", ordered, "of", len(inside), "stacks have qsort() between its caller and what it calls")
    recording = live.Recording([python, "-c", THREADS], "-e", "cpu-clock:u", "-F", "999")
    threads = check_whole(python, recording, recording.script(), "work")
    return f"{told}, in threads {threads}, in order {ordered} of {len(inside)}"


HIDDEN = r"(_PyEval_EvalFrameDefault|_TAIL_CALL_\w+|py_trampoline_evaluator)\b|py::"


@live.test
def wanted():
    """--native=off leaves Python alone, =all adds the eval loop and trampolines, and no sample is lost."""
    told = []
    own = sorted((python for python in live.PYTHONS.values() if not python.root), key=live.version_of)
    for python in {own[0], own[-1]} if own else []:
        options = ["-X", "perf"] if live.version_of(python) >= (3, 12) else []
        recording = live.Recording([python, *options, "-c", CALLBACK], "-e", "cpu-clock:u", "-F", "999")
        on, off, all_ = (list(live.parse_script(recording.read("script", "--no-inline", f"--native={word}"))) for word in ("on", "off", "all"))
        check(len(on) == len(off) == len(all_) > 200, len(on), len(off), len(all_))
        shown = collections.Counter()
        for usual, without, whole in zip(on, off, all_):
            check(usual.head == without.head == whole.head, usual.head, without.head, whole.head)
            if not usual.python:
                continue
            # Without a line, too: a frame that has not begun.
            folded = [repr(frame) for frame in usual.frames if frame.python or re.match(r"<|.*\.py$|$", frame.file)]
            check([repr(frame) for frame in without.frames] == folded, without.frames, folded)
            hidden = [re.match(HIDDEN, frame.name) for frame in whole.frames]
            shown.update(match[0] for match in hidden if match)
            # Without offsets: an innermost frame is where it is, others where they return to.
            left = [frame.name.split("+")[0] for frame, match in zip(whole.frames, hidden) if not match]
            check(left == [frame.name.split("+")[0] for frame in usual.frames], "hidden is something else:", whole.frames, "of which is shown", usual.frames)
        check(shown["_PyEval_EvalFrameDefault"] > 200, shown)
        for name in ("py::", "py_trampoline_evaluator"):
            check(bool(options) == (shown[name] > 200), name, shown)
        told.append(f"{shown['_PyEval_EvalFrameDefault']} eval loops, {shown['py::']} trampolines")
    return "; ".join(told) or live.any_python()


@live.test
def said():
    """Copies that are too short: the report says how many stacks end, why and where."""
    recording = live.Recording([live.any_python(), "-c", CALLBACK], "-e", "cpu-clock:u", "--call-graph", "dwarf,256")
    text = recording.read("report")
    check(re.search(r"native stacks are not whole: the copy of the stack ends in \S+ \(\d", text), text)


@live.test
def copies():
    """A recording of perf's, which holds the copies: the same stacks."""
    perf = shutil.which("perf")
    if not perf:
        raise live.Skip("no perf to record with")
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        # -B: reading the build-ids of what ran, perf 6.1 sometimes dies.
        command = [perf, "record", "-B", "-q", "-e", "cpu-clock:u", "-F", "499", "--call-graph", "dwarf,16384", "-o", path]
        subprocess.run([*command, live.any_python(), "-c", THREADS], check=True, capture_output=True)
        ran = live.pyperf("script", "-i", path)
        check(ran.returncode == 0, ran.stderr)
        samples = list(live.parse_script(ran.stdout))
        ends = collections.Counter((s.frames[-1].name, s.frames[-1].file) for s in samples)
        whole = sum(count for end, count in ends.items() if is_root(*end))
        check(len(samples) > 100 and whole >= 0.99 * len(samples), whole, "of", len(samples), ends)
        return f"{whole} of {len(samples)}"


# Needs no library, and ends by a signal when it has worked.
LONELY = """
static volatile int sink;
__attribute__((noipa)) static int c(int n) { int s = 0; for (int i = 0; i < n; i++) { sink += i; s += sink; } return s; }
__attribute__((noipa)) static int b(int n) { int r = c(n) + 1; sink = r; return r; }
__attribute__((noipa)) static int a(int n) { int r = b(n) + 2; sink = r; return r; }
void _start(void) { for (long i = 0; i < ROUNDS; i++) a(100000); __builtin_trap(); }
"""


FOREVER = "1000000000L"


def lonely(path, flags, rounds):
    if not shutil.which("gcc"):
        raise live.Skip("no gcc")
    command = ["gcc", *flags.split(), f"-DROUNDS={rounds}", "-nostdlib", "-static", "-Wl,--eh-frame-hdr", "-x", "c", "-", "-o", path]
    subprocess.run(command, input=LONELY, check=True, text=True)
    return path


@live.test
def replaced():
    """The binary becomes another one while it is recorded: unwound and named by the one that runs."""
    with live.scratch_folder() as folder:
        path = lonely(f"{folder}/program", "-O2 -fomit-frame-pointer", FOREVER)
        other = lonely(f"{folder}/other", "-O0 -fno-omit-frame-pointer", FOREVER)
        with subprocess.Popen([path]) as process:
            try:
                recording = Running("-p", process.pid, "-F", "1999")
                os.replace(other, path)
                burn(process.pid, 0.3)
                recording.end()
            finally:
                process.kill()
        stacks = [[frame.name.split("+")[0] for frame in sample.frames if "[kernel" not in frame.file] for sample in recording.script()]
        whole = sum(stack == ["c", "b", "a", "_start"] for stack in stacks)
        check(whole > 0.9 * len(stacks) > 100, whole, "of", len(stacks), stacks[:5])
        return f"{whole} of {len(stacks)}"


@live.test
def chosen():
    """--call-graph auto is fp where all that runs has frame pointers, and dwarf elsewhere."""
    with live.scratch_folder() as folder:
        options = ["-v", "-e", "cpu-clock:u", "-F", "4999", "-o", f"{folder}/perf.data"]

        for name, flags, way in (("with", "-O0 -fno-omit-frame-pointer", "fp"), ("without", "-O2 -fomit-frame-pointer", "dwarf")):
            ran = live.pyperf("record", *options, "--", lonely(f"{folder}/{name}", flags, 1000))
            check(ran.returncode == 128 + signal.SIGILL and f"--call-graph {way}: {name} " in ran.stderr, ran.stderr)
            stacks = [[frame.name.split("+")[0] for frame in sample.frames] for sample in live.parse_script(live.pyperf("script", "-i", f"{folder}/perf.data").stdout)]
            whole = [stack for stack in stacks if stack == ["c", "b", "a", "_start"]]
            check(len(whole) > 0.9 * len(stacks) > 50, name, len(whole), "of", len(stacks), stacks[:9])
            with subprocess.Popen([lonely(f"{folder}/{name}-on", flags, FOREVER)]) as process:
                ran = live.pyperf("record", *options, "--duration", "0.1", "-p", process.pid)
                process.kill()
            check(ran.returncode == 0 and f"--call-graph {way}: " in ran.stderr, ran.stderr)
        ran = live.pyperf("record", *options, "--", live.any_python(), "-V")
        check("--call-graph dwarf: " in ran.stderr, ran.stderr)


@live.test
def by_branch_records():
    """--call-graph lbr: recorded where perf can, refused with the reason where it cannot."""
    perf = shutil.which("perf")
    if not perf:
        raise live.Skip("no perf to compare with")
    with live.scratch_folder() as folder:
        options = ["--call-graph", "lbr", "-e", "cycles:u", "-o", f"{folder}/perf.data", "--", "true"]
        theirs = subprocess.run([perf, "record", "-B", *options], capture_output=True)
        ours = live.pyperf("record", *options)
        check((theirs.returncode == 0) == (ours.returncode == 0), theirs.stderr, ours.stderr)
        if ours.returncode:
            check("does not record calls for " in ours.stderr and "Intel" in ours.stderr, ours.stderr)
            return "refused: " + ours.stderr.splitlines()[0]


def plain(sample):
    """What a stack says, without the addresses in it."""
    return [(frame.name.split("+")[0], frame.file, frame.line) for frame in sample.frames]


@live.test
def calls_of_branch_records():
    """What the CPU remembers of calls is woven with Python as the stacks are that these calls were made of;
    perf sees them, too; and where it remembers too few, the report says of how many."""
    recording = live.Recording([live.any_python(), "-c", CALLBACK], "-e", "cpu-clock:u", "-F", "999", "-z", "0", "--call-graph", "dwarf")
    with live.scratch_folder() as folder:
        path = pathlib.Path(folder, "perf.data")

        def read(most, *arguments):
            as_branches(recording.path, path, most)
            ran = live.pyperf(arguments[0], "-i", path, *arguments[1:])
            check(ran.returncode == 0, ran.stderr)
            return ran.stdout

        # No CPU remembers a stack of any depth; what is read of one must not depend on that.
        want, got = list(map(plain, recording.script())), list(map(plain, live.parse_script(read(1000, "script"))))
        check(len(want) > 200 and any(any(line for _, _, line in stack) for stack in want), len(want))
        differ = [pair for pair in zip(want, got) if pair[0] != pair[1]]
        check(len(want) == len(got) and not differ, len(want), len(got), len(differ), differ[:1])
        # perf names a return address, and not the call before it: files alone are the same.
        theirs, perf = ([[file for _, file in stack] for stack in perf_stacks(each)] for each in (recording.path, path))
        check(theirs == perf, "perf sees", [pair for pair in zip(theirs, perf) if pair[0] != pair[1]][:1])
        # The 32 innermost calls, and the frame that was interrupted.
        deep = sum(len(stack) > 33 for stack in theirs)
        said = re.search(r"([\d,]+) samples have incomplete native stacks: more calls than the CPU remembers", read(32, "report"))
        check(deep > 200 and said and int(said[1].replace(",", "")) >= deep, deep, said)
    return f"{len(want)} stacks, {deep} of more than 32 calls"


if __name__ == "__main__":
    live.run()
