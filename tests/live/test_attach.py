#!/usr/bin/env python3
"""record attaches to what runs: processes, threads, CPUs, users; and leaves it as it was."""
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import live
from attached import Attached, PROGRAM, Program, Running
from live import check

# Threads that live for a moment and leave their place to another, until a line comes: then those
# that are there stay, and run.
CHURN = """
import threading, time
stop = threading.Event()
def link():
    time.sleep(0.002)
    while stop.is_set(): pass
    threading.Thread(target=link, daemon=True).start()
for i in range(30): threading.Thread(target=link, daemon=True).start()
print("ready", flush=True)
input()
stop.set()
time.sleep(1000)
"""


# "python3  4711/4712  [001]  7028.659459:    1001001 cpu-clock: "
HEAD = re.compile(r"(\d+)/(\d+)\s+\[(\d+)\]\s+(\d+\.\d+):")


def sample_pid(sample):
    return int(HEAD.search(sample.head)[1])


def sample_tid(sample):
    return int(HEAD.search(sample.head)[2])


def sample_cpu(sample):
    return int(HEAD.search(sample.head)[3])


def sample_time(sample):
    return float(HEAD.search(sample.head)[4])


def functions(report):
    event = report["events"][0]["name"]
    return {f["qualname"]: f["events"][event]["total_samples"] for f in report["functions"] if f["kind"] == "python"}


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        check(time.monotonic() < end, "it took too long")
        time.sleep(0.02)


@live.test_each_python
def shares(python):
    """Threads made before and after attaching have their share, on every sample a line."""

    def record():
        with Program(python, PROGRAM, 2) as program:
            recording = Running("-p", program.pid, "-F", "4999")
            # By its own time, however busy the machine is.
            begin = program.cpu_time()
            wait_for(lambda: program.cpu_time() > begin + 0.5)
            program.tell("late")
            wait_for(lambda: program.cpu_time() > begin + 2)
            recording.end()
            return recording.report(), program.end()

    def complaints(report, account):
        hits = functions(report)
        early = hits["hot"] + hits["cold"]
        check(hits.get("late", 0) > 200, "the thread made later has only", hits.get("late"), "samples")
        share = account["hot"] / (account["hot"] + account["cold"])
        return [] if live.within(hits["hot"], early, share, 0.9999) else [f"hot has {hits['hot']} of {early}, {share:.4f} of the time"]

    report, account = record()
    wrong = complaints(report, account)
    if wrong:
        wrong = complaints(*record())
    check(not wrong, wrong)
    samples = report["samples"]
    check(samples["python_lines"] > 0.99 * samples["total"], samples)
    return f"lines on {samples['python_lines'] / samples['total']:.2%} of {samples['total']}"


def raw_samples(path):
    """(id of the event, pid, tid, time in seconds, cpu) of a plain recording (-z 0) of one event: the
    file's own records, before pyperf judges them."""
    data = pathlib.Path(path).read_bytes()
    at, size = struct.unpack_from("=QQ", data, 40)
    end = at + size
    while at < end:
        kind, _, size = struct.unpack_from("=IHH", data, at)
        if kind == 9:  # PERF_RECORD_SAMPLE: identifier, ip, pid and tid, time, cpu
            ident, _, pid, tid, time_ns, cpu = struct.unpack_from("=QQIIQI", data, at + 8)
            yield ident, pid, tid, time_ns / 1e9, cpu
        at += size


def run_times(pid):
    """Seconds on a CPU, by thread."""
    times = {}
    for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            times[int(path.parent.name)] = int(path.read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass
    return times


@live.test_each_python
def counts(python):
    """Each thread once, also those that were made while it was attached to."""
    least, most, threads = 9.0, 0.0, 0
    for _ in range(3):
        with Program(python, CHURN) as program:
            recording = Running("-p", program.pid, "-z", "0", "-c", "500000", "--python=off")
            time.sleep(0.3)
            program.tell("stop")
            time.sleep(0.2)
            begin, before = time.monotonic(), run_times(program.pid)
            before.pop(program.pid)  # sleeps
            give_up = begin + 60
            # 40 periods each.
            while any(now - before.get(tid, now) < 0.02 for tid, now in run_times(program.pid).items() if tid in before):
                check(time.monotonic() < give_up, "some threads do not run:", before, run_times(program.pid))
                time.sleep(0.1)
            after, end = run_times(program.pid), time.monotonic()
            recording.end()
        counted, spans = {}, {}
        for ident, _, tid, when, cpu in raw_samples(recording.path):
            counted[tid] = counted.get(tid, 0) + (begin <= when < end)
            span = spans.setdefault((tid, cpu), {}).setdefault(ident, [when, when])
            span[1] = when
        # Where two events counted a thread on one CPU, one has taken over from the other.
        for (tid, _), known in spans.items():
            turns = sorted(known.values())
            check(all(one[1] < next[0] for one, next in zip(turns, turns[1:])), "thread", tid, "counted twice:", known)
        for tid in before.keys() & after.keys():
            ratio = counted.get(tid, 0) / (after[tid] - before[tid]) / 2000
            check(ratio, "thread", tid, "ran for", after[tid] - before[tid], "s without a sample")
            least, most, threads = min(least, ratio), max(most, ratio), threads + 1
    check(threads >= 30, "only", threads, "threads ran")
    return f"{threads} threads, samples to CPU time {least:.2f} to {most:.2f}"


@live.test
def samples_from_the_start():
    """What little a short look takes is the program's, from after the command's start on; how soon, the bench tells."""
    with Program(live.any_python(), PROGRAM, 1) as program:
        begin = time.monotonic()
        samples = Attached("-p", program.pid, "--duration", "0.2").script()
    # The samples' clock is the monotonic one.
    times = [sample_time(sample) for sample in samples]
    check(times and begin < min(times) and max(times) < time.monotonic(), begin, times[:3])
    return f"the first one after {(min(times) - begin) * 1000:.0f} ms"


@live.test
def many_threads():
    with Program(live.any_python(), PROGRAM, 200) as program:
        soft = ["sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh", live.PYPERF, "record", "-e", "cpu-clock", "-F", "4999"]
        with live.scratch_folder() as folder:
            ran = subprocess.run(
                [*soft, "-o", f"{folder}/p", "-p", str(program.pid), "--duration", "2"], capture_output=True, text=True
            )
            check(ran.returncode == 0, ran.stderr)
            ran = live.pyperf("script", "-i", f"{folder}/p")
            check(ran.returncode == 0, ran.stderr)
        threads = set(map(sample_tid, live.parse_script(ran.stdout)))
        # All of them wait for one lock, so few may have it in that time, but more than the first.
        check(len(threads) > 20, "only", len(threads), "threads were sampled")
        program.end()
        return f"{len(threads)} threads"


@live.test
def several_processes():
    python = live.any_python()
    with Program(python, PROGRAM, 1) as first, Program(python, PROGRAM, 1) as second, Program(python, PROGRAM, 1) as third:
        recording = Attached("-p", f"{first.pid},{second.pid}", "--duration", "0.7")
        pids = set(map(sample_pid, recording.script()))
        check(pids == {first.pid, second.pid}, pids, "of", first.pid, second.pid, third.pid)
        head = recording.read("report").splitlines()[0]
        check(f"attached to processes {first.pid} (" in head and str(second.pid) in head, head)
        for program in (first, second, third):
            program.end()


@live.test
def some_threads():
    """-t: those threads alone; -p with the id of one: the whole process."""
    with Program(live.any_python(), PROGRAM, 3) as program:
        # The first one only waits.
        tids = sorted(map(int, os.listdir(f"/proc/{program.pid}/task")))[1:]
        for option, given, expected in (
            ("-t", tids[:1], tids[:1]), ("-t", tids[:2], tids[:2]), ("-t", tids[1:] + tids[:1], tids), ("-p", tids[:1], tids)
        ):
            recording = Running(option, ",".join(map(str, given)))
            ran = run_times(program.pid)
            wait_for(lambda: all(now > ran[tid] + 0.05 for tid, now in run_times(program.pid).items() if tid in tids))
            recording.end()
            threads = set(map(sample_tid, recording.script())) - {program.pid}
            check(threads == set(expected), option, given, "gave", threads, "not", expected)
        program.end()


@live.test
def children_of_the_target():
    """Processes that the target forks later are walked, too."""
    text = (
        "import os, time\n"
        "def child():\n end = time.thread_time() + 0.3\n while time.thread_time() < end: pass\n"
        "print('ready', flush=True)\n"
        "input()\n"
        "for i in range(3):\n if os.fork() == 0:\n  child()\n  os._exit(0)\n os.wait()\n"
        "time.sleep(0.2); os._exit(7)\n"
    )
    with Program(live.any_python(), text) as program:
        recording = Running("-p", program.pid)
        time.sleep(0.3)
        program.tell("go")
        recording.end(number=None)
        check(functions(recording.report()).get("child", 0) > 600, functions(recording.report()))


@live.test
def ends_with_its_target():
    with Program(live.any_python(), PROGRAM, 1) as program:
        recording = Running("-p", program.pid)
        program.burn(0.3)
        program.end()
        recording.end(number=None)
        check(functions(recording.report())["hot"] > 50, "no samples")


@live.test
def signals_end_it_and_leave_the_target():
    with Program(live.any_python(), PROGRAM, 1) as program:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            recording = Running("-p", program.pid)
            program.burn(0.2)
            recording.end(number)
            check(recording.report()["samples"]["total"] > 20, number)
        status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
        check("TracerPid:\t0" in status, status)
        program.end()


@live.test
def whole_machine():
    """-a and -C, by themselves and as long as a command runs."""
    cpu = str(max(os.sched_getaffinity(0)))
    with Program(live.any_python(), PROGRAM, 1) as program:
        for options in (("-a", "--duration", "0.7"), ("-a", "--", "sleep", "0.7"), ("-C", cpu, "--duration", "0.7")):
            if options[0] == "-C":
                os.sched_setaffinity(program.pid, {int(cpu)})
                for tid in os.listdir(f"/proc/{program.pid}/task"):
                    os.sched_setaffinity(int(tid), {int(cpu)})
            recording = Attached(*options)
            hits = functions(recording.report())
            check(hits.get("hot", 0) > 0, options, "does not see the program:", hits)
            cpus = set(map(sample_cpu, recording.script()))
            check(options[0] != "-C" or cpus == {int(cpu)}, options, "gave CPUs", cpus)
        program.end()


@live.test
def user():
    """-u, by number and name: the processes of that user, and no others."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise live.Skip("becoming another user needs root and setpriv")
    taken = owners()
    uid = next(uid for uid in range(40000, 60000) if uid not in taken)
    spin = ["sh", "-c", "while :; do :; done"]
    other = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *spin])
    own = subprocess.Popen(spin)
    try:
        wait_for(lambda: os.stat(f"/proc/{other.pid}").st_uid == uid)
        for name in (str(uid), "root"):
            pids = set(map(sample_pid, Attached("-u", name, "--duration", "0.5").script()))
            check((other.pid in pids) == (name != "root") and (own.pid in pids) == (name == "root"), name, "gives", pids, "of", other.pid, own.pid)
            check(name == "root" or pids == {other.pid}, name, "gives", pids)
    finally:
        for process in (other, own):
            process.kill()
            process.wait()


def owners():
    """Of the processes that are there."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found.add(path.stat().st_uid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@live.test
def control_group():
    """--cgroup: what belongs to it, by its path, its name and a container's id."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    tops = [m[1] for m in mounts if m[2] == "cgroup" and "perf_event" in m[3]] or [m[1] for m in mounts if m[2] == "cgroup2"]
    if not tops:
        raise live.Skip("no control groups are mounted here")
    ident = f"0123456789ab{os.getpid():08x}"
    outer = pathlib.Path(tops[0], f"pyperf-test-{os.getpid()}")
    group = outer / f"docker-{ident}.scope"
    try:
        group.mkdir(parents=True)
    except OSError as why:
        raise live.Skip(f"control groups cannot be made here: {why}")
    try:
        with Program(live.any_python(), PROGRAM, 1) as inside, Program(live.any_python(), PROGRAM, 1) as outside:
            (group / "cgroup.procs").write_text(str(inside.pid))
            for name in (f"/{outer.name}", outer.name, str(group), group.name, ident[:14]):
                recording = Attached("--cgroup", name, "--duration", "0.5")
                pids = set(map(sample_pid, recording.script()))
                check(pids == {inside.pid}, name, "gives", pids, "not", inside.pid, "beside", outside.pid)
            check(functions(recording.report())["hot"] > 5, "no Python lines")
            check(f"control group {group}" in recording.read("report").splitlines()[0], recording.read("report"))
            (group.parent / "docker-0123456789ab-other").mkdir()
            ran = live.pyperf("record", "--cgroup", "0123456789ab", "-o", recording.path)
            check(ran.returncode == 2 and "several" in ran.stderr, ran)
            # It ends with the group.
            running = Running("-G", str(group))
            inside.end()
            inside.__exit__()
            group.rmdir()
            running.end(number=None)
            outside.end()
    finally:
        for folder in (*outer.glob("*/"), outer):
            if folder.is_dir():
                folder.rmdir()


@live.test
def duration_of_a_command():
    """It is ended by SIGTERM, which is no failure; one that ends first keeps its status."""
    program = "while True: pass"
    recording = live.Recording([live.any_python(), "-c", program], "--duration", "0.7")
    check(recording.report()["samples"]["total"] > 0, "no samples")
    live.Recording(["sh", "-c", "exit 3"], "--duration", "20", status=3)


@live.test
def other_root():
    """Sources come from the tree that the target sees."""
    if os.getuid() != 0 or not shutil.which("unshare") or not shutil.which("mount"):
        raise live.Skip("a mount namespace needs root, unshare and mount")
    with live.scratch_folder() as folder:
        place = pathlib.Path(folder, "place")
        place.mkdir()
        script = f"mount -t tmpfs tmpfs {place} && cat >{place}/inside.py && exec {live.any_python()} {place}/inside.py"
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        process.stdin.write("def inside():\n    while True: pass  # only there\nprint('ready', flush=True)\ninside()\n")
        process.stdin.close()
        try:
            if process.stdout.readline() != "ready\n":
                raise live.Skip("no mount namespace here: " + process.stderr.read())
            recording = Attached("-p", process.pid, "--duration", "0.5")
            check("# only there" in recording.read("annotate", "inside"), recording.read("annotate", "inside"))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


@live.test
def what_cannot_be_attached_to():
    free = next(pid for pid in range(4194303, 1, -1) if not os.path.exists(f"/proc/{pid}"))
    zombie = subprocess.Popen(["true"])
    while " Z " not in pathlib.Path(f"/proc/{zombie.pid}/stat").read_text():
        time.sleep(0.01)
    try:
        for options, status, words in (
            (("-p", free), 1, "does not exist"),
            (("-t", free), 1, "does not exist"),
            (("-p", f"{os.getpid()},{free}"), 1, str(free)),
            (("-p", zombie.pid), 1, "zombie"),
            (("-p", "0"), 2, "'0'"),
            (("-p", "-1"), 2, "-1"),
            (("-p", "1,"), 2, "'1,'"),
            (("-p", "12x"), 2, "'12x'"),
            (("-p", ""), 2, "''"),
            (("-p", "99999999999999999999"), 2, "999"),
            (("-C", "9999"), 1, "9999"),
            (("-C", "0-"), 2, "'0-'"),
            (("-u", "no such user"), 2, "no such user"),
            (("--cgroup", "no such group"), 1, "no such group"),
            (("--cgroup", "../.."), 1, "../.."),
            (("--cgroup", ""), 1, "''"),
            (("-p", os.getpid(), "-a"), 2, "exclude"),
            (("-a", "--duration", "0"), 2, "'0'"),
            (("-a", "--duration", "1s"), 2, "'1s'"),
            ((), 2, "-p"),
        ):
            with live.scratch_folder() as folder:
                ran = live.pyperf("record", "-o", f"{folder}/p", *options)
                check(ran.returncode == status, options, "gave", ran.returncode, ran.stderr)
                check(words in ran.stderr, options, "says", ran.stderr)
                check(not os.listdir(folder), options, "left", os.listdir(folder))
    finally:
        zombie.wait()


@live.test
def kernel_threads():
    """They have no maps, and may sleep all the time."""
    if not os.path.exists("/proc/2/status") or os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        raise live.Skip("kernel threads are not visible here")
    recording = Attached("-p", "2", "--duration", "0.3")
    recording.read("report")


@live.test
def ends_while_it_is_attached_to():
    """Processes that live for a moment: recorded, or said to have ended; never worse."""
    statuses = {0: 0, 1: 0}
    python = live.any_python()
    for delay in range(0, 100, 4):
        # Every third is stopped at each sample.
        engine = ("--python=stop",) if delay % 3 == 0 else ()
        process = subprocess.Popen([python, "-S", "-E", "-c", f"import time; time.sleep(0.{delay:03})"])
        with live.scratch_folder() as folder:
            ran = live.pyperf("record", "-e", "cpu-clock", *engine, "-o", f"{folder}/p", "-p", process.pid)
            check(ran.returncode in statuses, ran.returncode, ran.stderr)
            check(ran.returncode == 0 or "ended" in ran.stderr or "does not exist" in ran.stderr, ran.stderr)
            check(os.path.exists(f"{folder}/p") == (ran.returncode == 0), "a file of a recording that failed, or none")
            statuses[ran.returncode] += 1
        check(process.wait() == 0, "the program ended with", process.returncode)
    return f"{statuses[0]} recorded, {statuses[1]} ended"


@live.test
def names_are_not_printed_raw():
    """Processes, threads, functions and files have the names that they like; a terminal sees none as they are."""
    evil = "\x1b[31m\x07\r\x9b\u202e"
    text = (
        "import sys, threading\n"
        f"open('/proc/self/comm', 'wb').write({evil[:5].encode()!r} + b'\\n\\xff')\n"
        "print('ready', flush=True)\n"
        f"code = compile('def f():\\n while not done: pass', {evil + '.py'!r}, 'exec')\n"
        "done = []\n"
        "exec(code)\n"
        f"f.__code__ = f.__code__.replace(co_name={evil!r})\n"
        "threading.Thread(target=f).start()\n"
        "sys.stdin.readline()\n"
        "done.append(1)\n"
    )
    with Program(live.any_python(), text) as program, live.scratch_folder() as folder:
        recording = Attached("-v", "-p", program.pid, "--duration", "0.5")
        said = [recording.ran, live.pyperf("doctor", program.pid), live.pyperf("doctor")]
        for arguments in (
            ("report",), ("report", "--sort", "pid,tid,comm,function"), ("report", "--csv"), ("script",), ("annotate",),
            ("export", "--format", "folded"), ("report", "--comm", evil), ("annotate", evil),
        ):
            said.append(live.pyperf(arguments[0], "-i", recording.path, *arguments[1:]))
        said += [live.pyperf("record", "-o", f"{folder}/{evil}/p", "--", "true"), live.pyperf("record", "-o", f"{folder}/p", "--", evil)]
        said += [live.pyperf("report", "-i", f"{folder}/{evil}"), live.pyperf("record", "-u", evil), live.pyperf("record", "--cgroup", evil)]
        program.tell("")
    for ran in said:
        raw = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", ran.stdout + ran.stderr)
        check(not raw, ran.args, "prints", raw and raw[0].encode(), ran.stdout[:2000], ran.stderr[:2000])
    check("x1b[31m" in said[3].stdout, said[3].stdout)


@live.test
def processes_of_others():
    """An ordinary user is told whose the process is and what it takes."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise live.Skip("becoming another user needs root and setpriv")
    with live.scratch_folder() as folder, Program(live.any_python(), PROGRAM, 1) as program:
        os.chmod(folder, 0o777)
        tool = shutil.copy(live.PYPERF, f"{folder}/pyperf")
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", tool, "record"]

        def record(*options):
            return subprocess.run(
                [*user, "-e", "cpu-clock:u", "--python=off", "-o", f"{folder}/p", *options],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd="/",
            )

        for options in (("-p", str(program.pid)), ("-a",)):
            ran = record(*options, "--duration", "0.2")
            paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
            if options == ("-a",) and paranoid < 1:
                continue
            check(ran.returncode == 1 and "CAP_PERFMON" in ran.stderr, options, ran)
            check(options == ("-a",) or "belongs to root" in ran.stderr or paranoid > 2, ran.stderr)
        program.end()


if __name__ == "__main__":
    sys.exit(live.run())
