#!/usr/bin/env python3
"""Many threads, many processes, processes that are stopped: what must end well. The long test run
has the full numbers."""
import ctypes
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import time

import live
from attached import Attached, Program, Running
from live import check

THREADS = 2000 if live.LONG else 300
SHORT_LIVED = 10000 if live.LONG else 2000
BURST = 500 if live.LONG else 60
MOST_KB = 300 << 10

# Threads that sleep until a line comes, and then run, each long enough for a sample or two.
MANY_THREADS = f"""
import os, sys, threading, time
go, done = threading.Event(), threading.Semaphore(0)
def work():
    go.wait()
    end = time.thread_time() + 0.003
    while time.thread_time() < end: pass
    done.release()
    time.sleep(1000)
threading.stack_size(256 * 1024)
for _ in range({THREADS}): threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
if len(sys.argv) == 1: input()
go.set()
for _ in range({THREADS}): done.acquire()
os._exit(0)
"""


def sampled(samples, what):
    """The processes or threads that samples are of."""
    return {re.search(r"(?P<pid>\d+)/(?P<tid>\d+)\s+\[", sample.head)[what] for sample in samples}


def check_threads(recording):
    """All have samples, and these have lines."""
    check("lost" not in recording.ran.stderr, recording.ran.stderr)
    working = [sample for sample in recording.script() if any(frame.name == "work" for frame in sample.python)]
    threads = sampled(working, "tid")
    check(len(threads) >= 0.95 * THREADS, "only", len(threads), "threads have samples in work()", recording.ran.stderr)
    return f"{len(threads)} threads"


@live.test
def threads_of_a_command():
    return check_threads(live.Recording([live.any_python(), "-c", MANY_THREADS, "now"], "-e", "cpu-clock"))


def files_at_most(soft, hard):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@live.test
def threads_of_a_process():
    """-p raises the limit of open files as far as it goes, and says where that is too low."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # Rings and the like take few.
    if hard != resource.RLIM_INFINITY and hard < THREADS * os.cpu_count() * 2 + 100:
        raise live.Skip(f"{THREADS} threads take more open files than this machine allows (ulimit -Hn)")
    with live.scratch_folder() as folder, Program(live.any_python(), MANY_THREADS) as program:
        path = f"{folder}/perf.data"
        ran = live.pyperf("record", "-e", "cpu-clock", "-o", path, "-p", program.pid, preexec_fn=files_at_most(100, 256))
        check(ran.returncode == 1 and "256" in ran.stderr and "RLIMIT_NOFILE" in ran.stderr, ran)
        check(not os.path.exists(path), "it left a file")
        recording = Running("-p", program.pid, preexec_fn=files_at_most(100, hard))
        program.tell("go")
        recording.end(number=None)
        return check_threads(recording)


# Processes that fork, do next to nothing and end.
FORKS = f"""
import os
def child(): return sum(range(50))
for _ in range({SHORT_LIVED} // 20):
    for _ in range(20):
        if os.fork() == 0:
            child()
            os._exit(0)
    for _ in range(20): os.wait()
"""


def watch(process):
    """The most files and kilobytes that it has until it ends."""
    files = memory = 0
    while process.poll() is None:
        try:
            files = max(files, len(os.listdir(f"/proc/{process.pid}/fd")))
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            memory = max(memory, int(re.search(r"VmHWM:\s+(\d+)", status)[1]))
        except (OSError, TypeError):
            pass  # it has ended
        time.sleep(0.02)
    return files, memory


def count_forks(path):
    """FORK records of processes in a plain recording, by the file's own bytes."""
    data, forks = pathlib.Path(path).read_bytes(), set()
    at, size = struct.unpack_from("=QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, size = struct.unpack_from("=IHH", data, at)
        if kind == 7:  # PERF_RECORD_FORK: pid, ppid, tid, ptid, time
            pid, _, tid, _, when = struct.unpack_from("=IIIIQ", data, at + 8)
            if pid == tid and when:
                forks.add((pid, when))
        at += size
    return len(forks)


@live.test
def short_lived_processes():
    """Each is known, none lost, in bounded memory and files."""
    with live.scratch_folder() as folder:
        path = f"{folder}/perf.data"
        process = subprocess.Popen(
            [live.PYPERF, "record", "-e", "cpu-clock", "-z", "0", "-o", path, "--", live.any_python(), "-S", "-c", FORKS],
            stderr=subprocess.PIPE, text=True,
        )
        files, memory = watch(process)
        errors = process.stderr.read()
        process.stderr.close()
        check(process.returncode == 0 and "lost" not in errors, process.returncode, errors)
        check(files < 200 and (memory < MOST_KB or live.SANITIZED), files, "files and", memory, "KB")
        forks = count_forks(path)
        check(forks == SHORT_LIVED, forks, "of", SHORT_LIVED, "processes are in the file")
        ran = live.pyperf("report", "-i", path)
        check(ran.returncode == 0 and "child" in ran.stdout, ran)
        return f"{forks} processes, {files} files, {memory} KB"


@live.test
def burst_of_pythons():
    """Many that start at once: all have lines in a function of theirs."""
    child = "import os, time\ndef burst(end):\n while time.thread_time() < end: pass\nburst(time.thread_time() + 0.05)"
    program = (
        f"import subprocess, sys\n"
        f"all = [subprocess.Popen([sys.executable, '-S', '-E', '-c', {child!r}]) for _ in range({BURST})]\n"
        f"sys.exit(any([process.wait() for process in all]))\n"
    )
    recording = live.Recording([live.any_python(), "-S", "-c", program], "-e", "cpu-clock")
    check("lost" not in recording.ran.stderr, recording.ran.stderr)
    pids = sampled((s for s in recording.script() if any(frame.name == "burst" for frame in s.python)), "pid")
    check(len(pids) >= 0.98 * BURST, "only", len(pids), "of", BURST, "processes have lines in their function")
    return f"{len(pids)} processes"


SPIN = "print('ready', flush=True)\ndef spin():\n while True: pass\nspin()"
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
LIBC = ctypes.CDLL(None, use_errno=True)


def trace(program):
    if LIBC.ptrace(PTRACE_ATTACH, program.pid, None, None) < 0:
        raise live.Skip("ptrace is not allowed here: " + os.strerror(ctypes.get_errno()))
    os.waitpid(program.pid, os.WUNTRACED)


def stopped_while_attached_to(stop, go_on):
    with Program(live.any_python(), SPIN) as program:
        stop(program)
        recording = Running("-p", program.pid)
        before = program.cpu_time()
        go_on(program)
        # By its own time, however busy the machine is.
        while program.cpu_time() < before + 0.3:
            time.sleep(0.01)
        recording.end()
        spinning = sum(any(frame.name == "spin" for frame in sample.python) for sample in recording.script())
        check(spinning >= 100, "only", spinning, "samples with lines", recording.ran.stderr)
        # One that is stopped from the beginning to the end.
        program.process.send_signal(signal.SIGSTOP)
        Attached("-p", program.pid, "--duration", "0.2")
        return f"{spinning} samples when it went on"


@live.test
def stopped_process():
    """Attached to without a hang, recorded when it goes on."""
    return stopped_while_attached_to(
        lambda program: program.process.send_signal(signal.SIGSTOP), lambda program: program.process.send_signal(signal.SIGCONT)
    )


@live.test
def traced_process():
    """The same under ptrace."""
    return stopped_while_attached_to(trace, lambda program: LIBC.ptrace(PTRACE_DETACH, program.pid, None, None))


if __name__ == "__main__":
    sys.exit(live.run())
