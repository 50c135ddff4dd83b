#!/usr/bin/env python3
"""Python lines for an ordinary user, by stopping threads at their samples; and nothing else changes
for the program: signals, exit status, children, its own threads.

As root, everything here runs as a user without capabilities (beside that of reading the Pythons, where
these are root's), with kernel.perf_event_paranoid at 2.
"""
import collections
import contextlib
import json
import os
import pathlib
import pty
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time

import judge
import live
from live import check

with_their_tests = list(live.TESTS)
import test_stacks
import test_truth

live.TESTS[:] = with_their_tests
test_truth.SECONDS = 1

ALONE = "it changes kernel.perf_event_paranoid, and measures how much slower a program becomes"
NOBODY = 65534
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
SCOPE = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")


def as_nobody(*capabilities):
    kept = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        f"--inh-caps={kept}", f"--ambient-caps={kept}", f"--bounding-set={kept}",
    ]


@contextlib.contextmanager
def ordinary_user():
    """pyperf and what it records run as an ordinary user within."""
    if os.getuid() != 0:
        if int(PARANOID.read_text()) > 2:
            raise live.Skip(f"kernel.perf_event_paranoid is {PARANOID.read_text().strip()}")
        live.RECORD_OPTIONS[:] = ["--python=stop"]
        yield
        return
    before = PARANOID.read_text()
    live.RECORD_OPTIONS[:] = ["--python=stop"]
    live.THROUGH[:] = as_nobody()
    own = [python for python in live.PYTHONS.values() if not python.root]
    if any(subprocess.run([*live.THROUGH, python, "-c", ""], capture_output=True).returncode for python in own):
        live.THROUGH[:] = as_nobody("dac_read_search")
    PARANOID.write_text("2")
    try:
        yield
    finally:
        PARANOID.write_text(before)


def record(text, *options, status=0, **kwargs):
    return live.Recording([live.any_python(), "-c", textwrap.dedent(text)], "-e", "cpu-clock", *options, status=status, **kwargs)


def python_names(recording):
    return {frame.name for sample in recording.script() for frame in sample.python}


def pids(recording):
    return {int(re.search(r"(\d+)/\d+\s+\[", sample.head)[1]) for sample in recording.script()}


def tids(recording):
    return {int(re.search(r"\d+/(\d+)\s+\[", sample.head)[1]) for sample in recording.script()}


@contextlib.contextmanager
def able_to_run(python):
    """Root, where it takes root to enter a Python's tree of files: threads are stopped all the same."""
    before = live.THROUGH[:]
    if python.root:
        live.THROUGH.clear()
    try:
        yield
    finally:
        live.THROUGH[:] = before


@live.test_any_python
def truth_of_lines(python):
    """The same program and account as with the bpf engine."""
    # All but what the kernel does, which an ordinary user may not sample.
    sections = [name for name in runpy.run_path(str(test_truth.WORKLOAD))["sections"] if name != "kernel"]
    with able_to_run(python):
        truth = test_truth.Truth(python, *sections)
        complaints, tries = test_truth.persistent(python, truth, test_truth.Truth.complaints)
        share = judge.coverage(truth.recording)
    check(not complaints, "; ".join(complaints))
    check(share > 0.99, f"lines on {share:.2%}")
    return f"{len(sections)} sections, lines on {share:.2%} of {truth.report['samples']['total']}; recorded {tries} times at most"


@live.test_any_python
def truth_of_calls(python):
    """The same program and calls as with the bpf engine."""
    with able_to_run(python):
        pairs = test_stacks.possible_calls(python, test_stacks.recorded(python))
    check({"leaf", "even"} <= {live.code_name(python, name) for _, name in pairs}, pairs)
    return f"{sum(pairs.values())} calls, {len(pairs)} of them different"


@live.test
def auto_takes_it():
    """Without BPF, and says so in one line; the file names the engine."""
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        ran = live.pyperf("record", "-e", "cpu-clock", "-o", path, "--", live.any_python(), "-c", "sum(range(10**7))")
        check(ran.returncode == 0, ran.stderr)
        said = [line for line in ran.stderr.splitlines() if "--python=stop" in line]
        check(len(said) == 1 and "BPF" in said[0], ran.stderr)
        report = live.pyperf("report", "--json", "-i", path)
        check(json.loads(report.stdout)["samples"]["python"] > 0, report.stdout[:500])
    return said[0].split(":")[1]


# Runs a program that may not call what is numbered, as a seccomp filter of a container has it.
FORBID = """
import ctypes, os, struct, sys
number, error = int(sys.argv[1]), int(sys.argv[2])
code = [
    (0x20, 0, 0, 0),  # load the number of the call
    (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error),
    (0x06, 0, 0, 0x7FFF0000),
]
program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
filter = Program(len(code), ctypes.addressof(program))
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
CALLS = {"x86_64": {"perf_event_open": 298, "ptrace": 101}, "aarch64": {"perf_event_open": 241, "ptrace": 117}}


def forbidden(call, error, *arguments):
    numbers = CALLS.get(os.uname().machine)
    if not numbers:
        raise live.Skip(f"the numbers of system calls on {os.uname().machine} are not known here")
    return subprocess.run(
        [*live.THROUGH, live.any_python(), "-c", FORBID, str(numbers[call]), str(error), live.PYPERF, *map(str, arguments)],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
        # The sanitizer's search for leaks takes ptrace.
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},
    )


@live.test
def without_tracing():
    """Where ptrace is forbidden, too, the trampoline is left, and that it has no lines is said."""
    with live.scratch_folder() as folder:
        arguments = ["-e", "cpu-clock", "-o", f"{folder}/p", "--", live.any_python(), "-c", "pass"]
        ran = forbidden("ptrace", 1, "record", *arguments)
        check(ran.returncode == 0, ran.stderr)
        check("--python=trampoline" in ran.stderr and "without lines" in ran.stderr and "seccomp filter blocks ptrace" in ran.stderr, ran.stderr)
        ran = forbidden("ptrace", 1, "record", "--python=stop", *arguments)
        check(ran.returncode == 1 and "seccomp filter blocks ptrace" in ran.stderr, ran.stderr)


@live.test
def without_perf_events():
    """Where perf_event_open is forbidden altogether: by a filter, or by the paranoid level."""
    with live.scratch_folder() as folder:
        arguments = ["record", "-o", f"{folder}/p", "--", "true"]
        for error in (1, 38):
            ran = forbidden("perf_event_open", error, *arguments)
            check(ran.returncode == 1 and not os.path.exists(f"{folder}/p"), ran)
            check("perf" in ran.stderr and len(ran.stderr.splitlines()) >= 2, ran.stderr)
        if os.getuid() != 0:
            return "by the filter only"
        PARANOID.write_text("3")
        ran = live.pyperf(*arguments)
        PARANOID.write_text("2")
        # Debian's and Ubuntu's kernels forbid all from 3 or 4 on, others do not know these levels.
        check(ran.returncode == 0 or "kernel.perf_event_paranoid" in ran.stderr, ran.stderr)
        return ran.stderr.splitlines()[0] if ran.returncode else "this kernel knows no level 3"


@live.test
def perf_reads_it():
    """perf counts the same samples in the file, and complains of nothing."""
    recording = record("sum(i * i for i in range(3 * 10**6))", "-F", "2999")
    total = recording.report()["samples"]["total"]
    try:
        ran = subprocess.run(["perf", "script", "-f", "-F", "event", "-i", recording.path], capture_output=True, text=True)
    except FileNotFoundError:
        raise live.Skip("perf is not installed")
    check(ran.returncode == 0, ran.stderr)
    events = collections.Counter(line.strip() for line in ran.stdout.splitlines() if line.strip())
    check(events["cpu-clock:u:"] == total, events, "but", total, "samples")
    check("rder" not in ran.stderr, ran.stderr)
    return dict(events)


HELPER = """
import os, signal, sys, time
pid = int(sys.argv[1])
def stopped(): return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] in "Tt"
for i in range(3):
    os.kill(pid, signal.SIGSTOP)
    while not stopped(): time.sleep(0.001)
    time.sleep(0.05)
    assert stopped()
    os.kill(pid, signal.SIGCONT)
    while stopped(): time.sleep(0.001)
"""
SIGNALS = f"    HELPER = {HELPER!r}" + """
    import ctypes, json, os, signal, subprocess, sys, threading, time
    seen = {}
    def count(number, frame):
        seen[number] = seen.get(number, 0) + 1
    for number in (signal.SIGALRM, signal.SIGUSR1, signal.SIGTRAP, signal.SIGCONT):
        signal.signal(number, count)
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
    def wait(number, count):
        while seen.get(number, 0) < count: burn(0.001)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    wait(signal.SIGALRM, 20)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, times in ((signal.SIGUSR1, 30), (signal.SIGTRAP, 30)):
        for i in range(times):
            os.kill(os.getpid(), number)
            wait(number, i + 1)
    # Stopped and continued by another process, which sees both.
    helper = subprocess.Popen([sys.executable, "-c", HELPER, str(os.getpid())])
    while helper.poll() is None: burn(0.002)
    burn(0.1)
    libc = ctypes.CDLL(None, use_errno=True)
    seen["traceme"] = [libc.ptrace(0, 0, 0, 0), ctypes.get_errno()]
    seen["helper"] = helper.returncode
    print(json.dumps(seen))
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
"""


@live.test
def signals():
    """Every signal arrives, once: its own SIGTRAP, too; a stop stops it; its own ptrace is refused."""
    recording = record(SIGNALS, "-F", "1999", status=128 + signal.SIGTERM)
    seen = json.loads(recording.stdout)
    for number, least, most in ((signal.SIGALRM, 20, 22), (signal.SIGUSR1, 30, 30), (signal.SIGTRAP, 30, 30)):
        check(least <= seen[str(int(number))] <= most, number.name, "came", seen[str(int(number))], "times")
    check(seen["helper"] == 0, "stopping it went wrong:", recording.ran.stderr)
    check(1 <= seen[str(int(signal.SIGCONT))] <= 3, "SIGCONT came", seen[str(int(signal.SIGCONT))], "times")
    check(seen["traceme"][0] == -1, "a traced program could be traced:", seen["traceme"])
    check("burn" in python_names(recording), python_names(recording))
    return recording.stdout.strip()


@live.test
def threads_and_children():
    """Threads, forks, spawned and forked workers, programs started by exec: each with its own frames."""
    text = """
    import multiprocessing, os, subprocess, sys, threading, time
    def burn(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
    def in_thread(): burn(0.4)
    def in_fork(): burn(0.4)
    def in_pool(n): burn(0.2); return n
    if __name__ == "__main__":
        running = [threading.Thread(target=in_thread) for i in range(3)]
        for thread in running: thread.start()
        for thread in running: thread.join()
        pid = os.fork()
        if pid == 0:
            in_fork()
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        for method in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(in_pool, range(4)) == [0, 1, 2, 3]
        program = "def in_program():\\n end = time.thread_time() + 0.4\\n while time.thread_time() < end: pass\\nimport time\\nin_program()"
        assert subprocess.run([sys.executable, "-c", program]).returncode == 0
        def exec_from_thread():
            os.execv(sys.executable, [sys.executable, "-c", program.replace("in_program", "after_exec") + "\\nraise SystemExit(5)"])
        threading.Thread(target=exec_from_thread).start()
        time.sleep(20)
    """
    with live.scratch_folder() as folder:
        path = pathlib.Path(folder, "program.py")
        path.write_text(textwrap.dedent(text))
        recording = live.Recording([live.any_python(), path], "-e", "cpu-clock", status=5)
        names = python_names(recording)
    check({"in_thread", "in_fork", "in_pool", "in_program", "after_exec"} <= names, sorted(names))
    check(len(pids(recording)) >= 9, "only", pids(recording))
    check(len(tids(recording)) >= len(pids(recording)) + 3, tids(recording))
    samples = recording.report()["samples"]
    return f"{len(pids(recording))} processes, Python on {samples['python'] / samples['total']:.1%} of {samples['total']}"


@live.test
def many_threads():
    """200 threads at once, and 500 that come and go."""
    recording = record(
        """
        import hashlib, threading
        block = bytes(1 << 20)
        def work():
            for i in range(4): hashlib.blake2b(block).digest()
        def crowd(count):
            threads = [threading.Thread(target=work) for i in range(count)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        crowd(200)
        for i in range(50): crowd(10)
        print("done")
        """,
        "-F", "499",
    )
    check(recording.stdout == "done\n", recording.stdout)
    check(len(tids(recording)) > 100, "only", len(tids(recording)), "threads have samples")
    check("work" in python_names(recording), python_names(recording))
    return f"{len(tids(recording))} threads have samples"


BUSY = """
import sys, time
def busy():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end: sum(range(100))
print("ready", flush=True)
busy()
print("done", flush=True)
"""


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def traced(pid):
    return int(re.search(r"TracerPid:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def wait_until(condition, *explanation):
    end = time.monotonic() + 30
    while not condition():
        check(time.monotonic() < end, *explanation)
        time.sleep(0.005)


@live.test
def killed_pyperf():
    """A program goes on when pyperf is killed, at whatever moment, and is not traced any more."""
    rounds = 12
    with live.scratch_folder() as folder:
        for i in range(rounds):
            process = subprocess.Popen(
                [*live.THROUGH, live.PYPERF, "record", "--python=stop", "-e", "cpu-clock", "-F", "4999",
                 "-o", f"{folder}/perf.data", "--", live.any_python(), "-c", BUSY, "0.3"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )
            check(process.stdout.readline() == "ready\n")
            time.sleep(0.02 + 0.003 * i)
            process.kill()
            # The program's output ends when it does.
            check(process.stdout.read() == "done\n", "the program ended with pyperf")
            process.wait()
    return f"{rounds} times"


@live.test
def attached():
    """-p: threads that are there and that come; afterwards the program is not traced, and goes on."""
    with live.scratch_folder() as folder:
        for number in (signal.SIGINT, signal.SIGKILL):
            program = subprocess.Popen(
                [*live.THROUGH, live.any_python(), "-c", "import threading, sys\n"
                 "def other():\n while True: sum(range(100))\n"
                 "threading.Thread(target=other, daemon=True).start()\n" + BUSY, "3"],
                stdout=subprocess.PIPE, text=True,
            )
            check(program.stdout.readline() == "ready\n")
            path = f"{folder}/{number}"
            recorder = subprocess.Popen(
                [*live.THROUGH, live.PYPERF, "record", "--python=stop", "-e", "cpu-clock", "-F", "1999", "-o", path, "-p", str(program.pid)],
                stderr=subprocess.PIPE, text=True,
            )
            wait_until(lambda: traced(program.pid) or recorder.poll() is not None, "it is not attached to")
            time.sleep(0.5)
            recorder.send_signal(number)
            said = recorder.stderr.read()
            check(recorder.wait() == (0 if number == signal.SIGINT else -number), said)
            wait_until(lambda: not traced(program.pid), "it is still traced")
            if number == signal.SIGINT:
                script = live.pyperf("script", "-i", path)
                names = {f.name for s in live.parse_script(script.stdout) for f in s.python}
                check({"busy", "other"} <= names, names, said)
            check(program.stdout.read() == "done\n" and program.wait() == 0, "the program ended with", program.returncode)


@live.test
def already_traced():
    """What has a tracer has no room for another: one line says so, and what to do."""
    program = subprocess.Popen([*live.THROUGH, live.any_python(), "-c", BUSY, "30"], stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    with live.scratch_folder() as folder:
        first = subprocess.Popen(
            [*live.THROUGH, live.PYPERF, "record", "--python=stop", "-o", f"{folder}/first", "-p", str(program.pid)], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: traced(program.pid), "it is not attached to")
            ran = live.pyperf("record", "--python=stop", "-o", f"{folder}/second", "-p", program.pid, "--duration", "1")
            check(ran.returncode == 1 and f"traced by process {traced(program.pid)}" in ran.stderr, ran.stderr)
            check(not os.path.exists(f"{folder}/second"), "it left a file")
            ran = live.pyperf("record", "-e", "cpu-clock", "-o", f"{folder}/second", "-p", program.pid, "--duration", "0.3")
            check(ran.returncode == 0 and "--python=trampoline" in ran.stderr, ran.stderr)
        finally:
            first.send_signal(signal.SIGINT)
            first.wait()
            check(program.poll() is None, "the program ended")
            program.kill()
            program.wait()


@live.test
def ends():
    """Its exit status, and that of a signal; Ctrl-C from a terminal; SIGKILL; no samples at all."""
    python = live.any_python()
    with live.scratch_folder() as folder:
        for text, status in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137), ("", 0)):
            ran = live.pyperf("record", "--python=stop", "-o", f"{folder}/p", "--", python, "-c", text)
            check(ran.returncode == status, text, "gave", ran.returncode, ran.stderr)
        caught = "import sys, time\nprint('ready', flush=True)\ntry:\n while True: sum(range(100))\nexcept KeyboardInterrupt:\n print('caught', flush=True); sys.exit(4)"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp(*(lambda line: (line[0], line))(list(map(str, [
                *live.THROUGH, live.PYPERF, "record", "-q", "--python=stop", "-o", f"{folder}/p", "--", python, "-c", caught]))))
        said = b""
        while b"ready" not in said:
            said += os.read(terminal, 1000)
        time.sleep(0.1)
        os.write(terminal, b"\x03")
        with contextlib.suppress(OSError):
            while part := os.read(terminal, 1000):
                said += part
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        check(b"caught" in said and status == 4, said, status)
        ran = live.pyperf("report", "-i", f"{folder}/p")
        check(ran.returncode == 0, ran.stderr)


@live.test
def killed_target():
    """A target that is killed while it is stopped, resumed and walked."""
    with live.scratch_folder() as folder:
        for i in range(5):
            process = subprocess.Popen(
                [*live.THROUGH, live.PYPERF, "record", "-q", "--python=stop", "-e", "cpu-clock", "-F", "4999", "-o", f"{folder}/p", "--",
                 live.any_python(), "-c", "import os\nprint(os.getpid(), flush=True)\nwhile True: sum(range(100))"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            pid = int(process.stdout.readline())
            time.sleep(0.1 + 0.003 * i)
            os.kill(pid, signal.SIGKILL)
            _, said = process.communicate(timeout=60)
            check(process.returncode == 137, process.returncode, said)
            check(live.pyperf("report", "-i", f"{folder}/p").returncode == 0)


@live.test
def slowdown_is_bounded():
    """At a rate that costs too much fewer samples are taken, which is said; their weights stay right."""
    recording = record(
        """
        import time
        import os
        while time.thread_time() < 1.5: sum(range(100000))
        print(os.times().user)
        """,
        "-F", "15000",
    )
    said = [line for line in recording.ran.stderr.splitlines() if "more seldom" in line]
    check(len(said) == 1, recording.ran.stderr)
    event = recording.report()["events"][0]
    seconds = float(recording.stdout)
    # Each sample stands for the time since the one before: together they are the program's.
    total = sum(int(re.search(r"(\d+) cpu-clock", sample.head)[1]) for sample in recording.script()) / 1e9
    check(0.8 * seconds < total < 1.1 * seconds, total, "s in samples of", seconds, event, recording.ran.stderr)
    return f"{said[0].split('pyperf: ')[1][:40]}; samples stand for {total:.2f} of {seconds:.2f} s"


def main():
    with ordinary_user():
        reason = live.pyperf("record", "--python=stop", "-o", "/dev/null", "--", "true")
        if reason.returncode != 0:
            for function, _ in live.TESTS:
                live.tell("SKIP", function.__name__, reason.stderr)
            return
        live.run(needs_lines=False)


if __name__ == "__main__":
    try:
        main()
    except live.Skip as reason:
        live.tell("SKIP", "stop", reason)
