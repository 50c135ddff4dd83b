#!/usr/bin/env python3
"""Recorded native stacks are what the sources of the programs say, and what perf says of them."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

import live
from live import check
from native import STACKS, compiled, is_root, perf_stacks

CLOCK = ("-e", "cpu-clock:u", "-F", "999")
SECONDS = 0.33  # of CPU time that a chain takes


def names_of(sample):
    return [frame.name.split("+")[0] for frame in sample.frames]


def recorded(command, *options, python="off"):
    return live.Recording(list(map(str, command)), f"--python={python}", *CLOCK, *options)


def inside(samples, name):
    """The names of those that passed through a function; clock() is no part of the chains."""
    return [names_of(sample) for sample in samples if name in names_of(sample)]


def check_share(good, all_, *explanation):
    check(all_ > 100 and good >= 0.99 * all_, good, "of", all_, *explanation)


@live.test
def known_chains():
    """C, signal handlers on either stack, threads: every frame, in order, down to the root."""
    told = []
    with live.scratch_folder() as folder:
        program = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        for mode in ("sleep", "signal", "thread"):
            stacks = inside(recorded([program, mode, SECONDS]).script(), "wait_here")
            good = sum(
                [name for name in stack[stack.index("wait_here"):] if name in STACKS[mode]] == STACKS[mode]
                and is_root(stack[-1], "") for stack in stacks
            )
            check_share(good, len(stacks), mode, stacks[:3])
            told.append(f"{mode} {good} of {len(stacks)}")
    return ", ".join(told)


@live.test
def handlers_with_their_own_stack():
    """The kernel copies one stack, and it is said which one lacks; the walker learns to copy both."""
    with live.scratch_folder() as folder:
        program = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        recording = recorded([program, "altstack", SECONDS])
        stacks = inside(recording.script(), "on_signal")
        check_share(sum("leaf" not in stack for stack in stacks), len(stacks), stacks[:3])
        told = re.search(r"(\d+) of \d+ native stacks are not whole: no copy of the stack that a signal interrupted in \S+ \((\d+)", recording.read("report"))
        check(told and int(told[2]) >= 0.99 * len(stacks), recording.read("report"))
        reason = live.missing_permission()
        if reason:
            return f"the kernel: none of {len(stacks)}; {reason}"
        # The first ones are those that it learns by, whenever the recorder comes to them; from then on
        # only a lost record can make a difference.
        recording = recorded([program, "altstack", 3 * SECONDS], python="bpf")
        stacks = inside(recording.script(), "on_signal")
        own = [[name for name in stack if name in STACKS["altstack"]] for stack in stacks]
        good = [names == STACKS["altstack"] and is_root(stack[-1], "") for names, stack in zip(own, stacks)]
        check(any(good), "none of", len(good), stacks[-1:])
        late = good[good.index(True) :]
        lost = recording.report()["samples"]["lost"]
        check(late.count(False) <= lost, late.count(False), "of the last", len(late), "are not whole;", lost, "records were lost")
        return f"the kernel: none of {len(stacks)}; the walker: {sum(good)} of {len(good)}"


@live.test
def deeper_than_copies():
    """What is known is the inner part, and the report says of how many, why, and where they end."""
    with live.scratch_folder() as folder:
        program = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        recording = recorded([program, "deep", SECONDS], "--call-graph", "dwarf,16384")
        stacks = inside(recording.script(), "wait_here")
        want = STACKS["deep"]
        good = 0
        for stack in stacks:
            stack = stack[stack.index("wait_here"):]
            good += 100 < len(stack) < len(want) and stack == want[: len(stack)]
        check_share(good, len(stacks), stacks[:1])
        said = re.search(r"([\d,]+) of [\d,]+ native stacks are not whole: the copy of the stack ends in chain \(([\d,]+)\)", recording.read("report"))
        check(said, recording.read("report"))
        count = int(said[2].replace(",", ""))
        check(count >= len(stacks), count, "are said,", len(stacks), "are so")
        return f"{good} of {len(stacks)}, {len(stacks[0])} frames of {len(want)}"


@live.test
def exceptions():
    """C++: a destructor that an exception runs, inlined into the function that it leaves."""
    with live.scratch_folder() as folder:
        program = compiled(folder, "throw", "g++ -O2 -g -fomit-frame-pointer", live.WORKLOADS / "throw.cc")
        stacks = inside(recorded([program, "spin"]).script(), "wait_here")
        good = 0
        for stack in stacks:
            stack = [re.sub(r"\(.*?\)|\[clone .*\]", "", name).strip() for name in stack[stack.index("wait_here"):]]
            at = [next((i for i, name in enumerate(stack) if name.startswith(want)), -1) for want in ("wait_here", "Guard::~Guard", "thrower", "main", "_start")]
            good += at == sorted(at) and at[0] == 0
        check_share(good, len(stacks), stacks[:2])
        return f"{good} of {len(stacks)}"


@live.test
def as_perf_unwinds():
    """perf's own recordings with copies: the stacks that perf itself finds in them, where it can."""
    perf = shutil.which("perf")
    if not perf:
        raise live.Skip("no perf")
    told = []
    with live.scratch_folder() as folder:
        program = compiled(folder, "chain", "gcc -O2 -g -fomit-frame-pointer")
        for mode in ("sleep", "signal"):
            path = f"{folder}/perf.data"
            ran = subprocess.run([perf, "record", "-B", "-q", *CLOCK, "--call-graph", "dwarf", "-o", path, program, mode, str(SECONDS)], capture_output=True)
            if ran.returncode:
                raise live.Skip(f"perf cannot record: {ran.stderr}")
            theirs = [[re.sub(r"@.*", "", name) for name, _ in stack] for stack in perf_stacks(path)]
            if not any(theirs):
                raise live.Skip("this perf cannot unwind")
            samples = live.parse_script(live.pyperf("script", "--no-inline", "-i", path).stdout)
            ours = [[re.sub(r"@.*", "", name) for name in names_of(sample)] for sample in samples]
            check(len(ours) == len(theirs), len(ours), len(theirs))
            same = sum(mine == his for mine, his in zip(ours, theirs))
            check_share(same, len(ours), mode, [pair for pair in zip(ours, theirs) if pair[0] != pair[1]][:3])
            told.append(f"{mode} {same} of {len(ours)}")
    return ", ".join(told)


VDSO = """
#include <time.h>
__attribute__((noinline)) static int ask(void) { struct timespec t; return clock_gettime(CLOCK_MONOTONIC, &t) + (int)t.tv_nsec; }
int main(void) { int sum = 0; while (clock() < CLOCKS_PER_SEC / 3) for (int i = 0; i < 10000; i++) sum += ask() & 1; return sum == 1; }
"""


@live.test
def vdso():
    """Callers of the kernel's code in user space."""
    with live.scratch_folder() as folder:
        source = pathlib.Path(folder, "vdso.c")
        source.write_text(VDSO)
        recording = recorded([compiled(folder, "vdso", "gcc -O2 -fomit-frame-pointer", source)])
        stacks = [names_of(sample) for sample in recording.script() if sample.frames[0].file == "[vdso]"]
        if len(stacks) < 200:
            raise live.Skip(f"the clock here is a system call: {len(stacks)} samples in the vDSO")
        good = sum("main" in stack and stack[-1] == "_start" for stack in stacks)
        check_share(good, len(stacks), stacks[:3])
        return f"{good} of {len(stacks)}"


EXTENSION = """
typedef int function(int);
static volatile int sink;
__attribute__((noinline)) int innermost(int n) { for (int i = 0; i < n; i++) sink = i; return sink; }
__attribute__((noinline)) int inner(function *call, int n) { int got = call(n); return got + sink; }
__attribute__((noinline)) int outer(function *call, int n) { int got = inner(call, n); return got + sink; }
"""
# It sleeps first, for pyperf to see the interpreter also where the machine is busy.
CALLS = """
import ctypes, sys, time
time.sleep(0.2)
library = ctypes.CDLL(sys.argv[1])
@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
def callback(n):
    return library.innermost(n)
def caller():
    library.outer(callback, 100000)
end = time.process_time() + 0.4
while time.process_time() < end: caller()
"""
ORDER = ["innermost", "callback", "inner", "outer", "caller", "<module>", "_start"]


def distribution():
    """The system's own Python: without symbols, and its C library without frame pointers."""
    if not os.access("/usr/bin/python3", os.X_OK):
        raise live.Skip("no /usr/bin/python3")
    return "/usr/bin/python3"


@live.test
def between_python_and_c():
    """Python calls C, which calls Python, which calls C: each function stands in its place."""
    told = []
    with live.scratch_folder() as folder:
        source = pathlib.Path(folder, "extension.c")
        source.write_text(EXTENSION)
        library = compiled(folder, "extension.so", "gcc -O2 -fomit-frame-pointer -shared -fPIC", source)
        program = pathlib.Path(folder, "calls.py")
        program.write_text(CALLS)
        newest = max((python for python in live.PYTHONS.values() if not python.root), key=live.version_of)
        for python in (distribution(), newest):
            ways = [[], ["-X", "perf"]] if live.version_of(python) >= (3, 12) else [[]]
            ways += [["-X", "perf_jit"]] if live.version_of(python) >= (3, 13) else []
            for way in ways:
                samples = live.Recording([python, *way, program, library], *CLOCK).script()
                stacks = inside(samples, "innermost")
                good = sum([name for name in stack if name in ORDER] == ORDER for stack in stacks)
                check_share(good, len(stacks), python, way, [s for s in stacks if [n for n in s if n in ORDER] != ORDER][:3])
                told.append(f"{good} of {len(stacks)}")
    return ", ".join(told)


@live.test
def numpy_and_its_threads():
    """The distribution's Python with NumPy, by default options: whole stacks, also of BLAS's threads."""
    python = distribution()
    program = "import numpy, time\na = numpy.random.rand(600, 600)\nend = time.process_time() + 1.5\nwhile time.process_time() < end: a @ a; numpy.linalg.svd(a[:60, :60])"
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
        raise live.Skip("the system's Python has no NumPy")
    recording = live.Recording([python, "-c", program], "-F", "499")
    samples = [sample for sample in recording.script() if any("[" not in frame.file for frame in sample.frames)]
    good = sum(is_root(sample.frames[-1].name, sample.frames[-1].file) for sample in samples)
    check_share(good, len(samples), collections.Counter(names_of(sample)[-1] for sample in samples).most_common(5))
    blas = sum("blas" in sample.frames[-2].file or any("blas" in frame.file for frame in sample.frames) for sample in samples)
    threads = sum(names_of(sample)[-1].startswith(("clone", "__clone")) for sample in samples)
    check(blas > 200, "only", blas, "samples in BLAS")
    if os.cpu_count() > 1 and "openblas" in recording.read("report", "--sort", "dso"):
        check(threads > 20, "only", threads, "samples of its threads")
    return f"{good} of {len(samples)}, {threads} in threads"


def files_hidden(recording, *commands):
    """How many files these commands do not need: what they print is the same when those are empty and the
    host is another. Those of pyperf itself stay."""
    needed = subprocess.run(["ldd", live.PYPERF], capture_output=True, text=True).stdout
    needed = {os.path.realpath(path) for path in [live.PYPERF, *re.findall(r"(/\S+)", needed)]}
    files = {os.path.realpath(frame.file) for sample in recording.script() for frame in sample.frames if frame.file.startswith("/")}
    hidden = sorted(filter(os.path.isfile, files - needed))
    check(hidden, "only", needed, "were sampled")
    hide = 'for file in "$@"; do mount --bind /dev/null "$file" || exit 9; done; hostname elsewhere; '
    for command in commands:
        before = recording.read(*command)
        run = f'{hide} exec "{live.PYPERF}" {" ".join(command)} -i "{recording.path}"'
        ran = subprocess.run(["unshare", "--mount", "--uts", "sh", "-c", run, "sh", *hidden], capture_output=True, text=True)
        if ran.returncode:
            raise live.Skip("takes the right to unshare: " + ran.stderr)
        differ = [pair for pair in zip(before.splitlines(), ran.stdout.splitlines()) if pair[0] != pair[1]]
        check(ran.stdout == before, command, "differs elsewhere:", len(differ), differ[:10])
    return len(hidden)


@live.test
def elsewhere():
    """A report without the binaries of Python, its extensions and their libraries is the same; so is one of
    a C++ program, what was inlined included."""
    program = "import hashlib, json, re, zlib\nfor i in range(300): hashlib.sha256(bytes(100000)); json.dumps(list(range(3000))); zlib.compress(bytes(range(256)) * 100); sorted(range(9999), key=lambda x: -x)"
    recording = live.Recording([distribution(), "-c", program], *CLOCK)
    count = files_hidden(recording, ["report", "--percent-limit", "0"], ["report", "--native", "all", "--percent-limit", "0"], ["script"])
    with live.scratch_folder() as folder:
        recording = recorded([compiled(folder, "throw", "g++ -O2 -g", live.WORKLOADS / "throw.cc"), "spin"])
        inlined = recording.read("script").count("Guard::~Guard (inlined)")
        check(inlined > 200, "only", inlined, "times ~Guard()")
        files_hidden(recording, ["report", "--inline", "--percent-limit", "0"], ["script"])
    return f"{count} files hidden; {inlined} frames inlined"


@live.test
def hidden_kernel():
    """Under kptr_restrict that is said once while recording, and the report tells whose names lack."""
    with live.scratch_folder() as folder:
        kallsyms = pathlib.Path(folder, "kallsyms")
        kallsyms.write_text(re.sub(r"^[0-9a-f]+", "0" * 16, pathlib.Path("/proc/kallsyms").read_text(), flags=re.M))
        path = f"{folder}/perf.data"
        program = f'mount --bind "{kallsyms}" /proc/kallsyms && exec "{live.PYPERF}" record --python=off -e cpu-clock -o "{path}" -- head -c 300000000 /dev/zero'
        ran = subprocess.run(["unshare", "--mount", "sh", "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if ran.returncode:
            raise live.Skip("takes the right to unshare: " + ran.stderr)
        check(ran.stderr.count("kptr_restrict") == 1, ran.stderr)
        # As on another machine: this one knows the names.
        report = f'mount --bind "{kallsyms}" /proc/kallsyms && exec "{live.PYPERF}" report -i "{path}"'
        text = subprocess.run(["unshare", "--mount", "sh", "-c", report], capture_output=True, text=True).stdout
        check(re.search(r"% in the kernel without names: .*kptr_restrict", text), text)


if __name__ == "__main__":
    live.run()
