#!/usr/bin/env python3
"""Host to container, and inside containers with every set of rights: it works, or says what is missing."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import live
from containers import Container, Engine
from live import check

# Runs until its input ends. The names are the truth: hot() has most of the time.
PROGRAM = """
import os, sys, threading
def hot(n):
    s = 0
    for i in range(n): s += i * i % 7
    return s
def cold(n):
    return sum(range(n))
stop = threading.Event()
def wait():
    sys.stdin.buffer.read()
    stop.set()
threading.Thread(target=wait, daemon=True).start()
print("ready", flush=True)
while not stop.is_set():
    hot(3000)
    cold(100)
os._exit(0)
"""
SHORT = "import time\ndef hot():\n    end = time.process_time() + 0.3\n    while time.process_time() < end: pass\nhot()\n"

ENGINE = None


def engine():
    """One for all tests; made at first use, so that what is missing is a reason to skip."""
    global ENGINE
    if ENGINE is None:
        try:
            ENGINE = Engine()
            (ENGINE.path / "shared/program.py").write_text(PROGRAM)
            (ENGINE.path / "shared/short.py").write_text(SHORT)
        except live.Skip as reason:
            ENGINE = reason
    if isinstance(ENGINE, live.Skip):
        raise ENGINE
    return ENGINE


class Attached(live.Recording):
    """What pyperf records out here."""

    def __init__(self, *options, meanwhile=None):
        self.folder = live.scratch_folder()
        self.path = pathlib.Path(self.folder.name, "perf.data")
        if not meanwhile:
            self.ran = live.pyperf("record", "-e", "cpu-clock", "-F", "999", "-o", self.path, *options)
            check(self.ran.returncode == 0, self.ran.stderr)
            return
        process = subprocess.Popen(
            [live.PYPERF, "record", "-e", "cpu-clock", "-F", "999", "-o", self.path, *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        # Until it has begun.
        while not self.path.exists():
            check(process.poll() is None, "record ended")
            time.sleep(0.01)
        meanwhile()
        _, err = process.communicate(timeout=30)
        check(process.returncode == 0, err)


def shares(report, kind="python"):
    event = report["events"][0]
    samples = {f["qualname"]: f["events"][event["name"]] for f in report["functions"] if f["kind"] == kind}
    return samples, event["samples"]


def check_program(recording):
    """hot() is there, most of it the interpreter's own work, and its source came along."""
    report = recording.report()
    python, samples = shares(report)
    check("hot" in python, "no Python frames:", report)
    native, _ = shares(report, "native")
    check(not any(name.startswith("_PyEval_EvalFrameDefault") for name in native),
          "the interpreter's loop is shown as native:", sorted(native))
    check(python["hot"]["total_samples"] > samples / 2, python["hot"], "of", samples)
    check(python["hot"]["self_samples"] > 0, "Python's time is shown as native:", python["hot"])
    named = [name for name in native if not name.startswith("[") and not name.startswith("0x")]
    check(named, "native functions have no names:", sorted(native))
    text = recording.read("annotate", "hot")
    check("s += i * i % 7" in text, "the source is missing:", text)
    return python, samples


@live.test
def host_to_container():
    """By its pid out here: its binaries lie under names that are not ours, its pid in there is 1."""
    e = engine()
    with Container(e, [], e.python[1], "program.py") as target:
        status = pathlib.Path(f"/proc/{target.pid}/status").read_text()
        check(re.search(r"^NSpid:\t\d+\t1$", status, re.M), "the target has no pid namespace of its own:", status)
        recording = Attached("-p", target.pid, "--duration", "1")
        python, samples = check_program(recording)
        pids = {re.search(r"\s(\d+)/\d+\s+\[", sample.head)[1] for sample in recording.script()}
        check(pids == {str(target.pid)}, "samples have the pids", pids, "not", target.pid)
        check(target.end() == 0, "the program was disturbed")
    # Once more, now that the container and its names are gone.
    again, _ = check_program(recording)
    check(again == python, "the report changed when the container had ended")
    return f"hot() {100 * python['hot']['total_samples'] / samples:.0f}% of {samples} samples"


@live.test
def container_is_launched():
    """The container's engine is the command, and everything is gone at the end of the recording."""
    e = engine()
    recording = live.Recording(
        list(map(str, e.command([], e.python[1], "-X", "perf", "short.py"))), "-e", "cpu-clock", "-F", "999"
    )
    python, _ = shares(recording.report())
    check("hot" in python, sorted(python))
    check("process_time() + 0.3" in recording.read("annotate", "hot"), "the source is missing")
    report = recording.report()
    native, samples = shares(report, "native")
    loop = sum(f["self_samples"] for name, f in native.items() if name.startswith("_PyEval_EvalFrameDefault"))
    # An interpreter that starts runs for a moment before its frames can be found.
    check(loop < samples / 20, "the interpreter's loop is shown as native:", loop, "of", samples)
    return f"{samples} samples"


@live.test
def perf_map_of_an_ended_container():
    """The map lies in the container's own /tmp, a mount of its own, under the pid in there."""
    e = engine()
    if not (live.BUILD / "tests/workloads/jitmap").exists():
        raise live.Skip("tests/workloads/jitmap is not built (make workloads)")
    program = "echo ready; read line; exec /opt/pyperf/tests/workloads/jitmap 8000"
    with Container(e, ["--tmpfs", "/tmp"], "sh", "-c", program) as target:
        recording = Attached("-p", target.pid, meanwhile=target.end)
    check(target.process.returncode == 0, "jitmap ended with", target.process.returncode)
    check(not os.path.exists("/tmp/perf-1.map"), "the map is out here")
    python, samples = shares(recording.report())
    named = sum(python[name]["total_samples"] for name in ("seven", "three") if name in python)
    check(named > samples / 2, "no names from the perf map:", sorted(python), named, "of", samples)
    return f"{named} of {samples} samples"


@live.test
def chroot():
    e = engine()
    root = e.path / "root"
    script = (
        f"mount --rbind /usr {root}/usr; mount --bind {e.python[0]} {root}/opt/py; mount -t proc proc {root}/proc;"
        f"mount --bind {e.path}/shared {root}/work;"
        f"exec chroot {root} env PYTHONHOME=/opt/py LD_LIBRARY_PATH=/opt/py/lib {e.python[1]} /work/program.py"
    )
    target = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        check(target.stdout.readline() == "ready\n", "the program did not start")
        recording = Attached("-p", target.pid, "--duration", "1")
    finally:
        target.stdin.close()
        status = target.wait(20)
        target.stdout.close()
    check(status == 0, "the program ended with", status)
    check_program(recording)


def replaced(remove):
    """An interpreter whose file is gone, or another file's by now, is known by what it has mapped."""
    python = next((path for path in live.BUILDS.values() if path.startswith("/usr/")), None)
    if not python:
        raise live.Skip("no CPython of the system's, which lies in one file")
    with live.scratch_folder() as folder:
        copy, source = pathlib.Path(folder, "python3"), pathlib.Path(folder, "program.py")
        shutil.copy(os.path.realpath(python), copy)
        source.write_text(PROGRAM)
        target = subprocess.Popen([copy, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            check(target.stdout.readline() == "ready\n", "the program did not start")
            remove(copy)
            recording = Attached("-p", target.pid, "--duration", "1")
        finally:
            target.stdin.close()
            target.wait(20)
            target.stdout.close()
        python, samples = check_program(recording)
    text = recording.read("report")
    check("another build" not in text, "the recording knows the names, and yet says:", text)
    return f"hot() {100 * python['hot']['total_samples'] / samples:.0f}%"


@live.test
def deleted_binary():
    return replaced(pathlib.Path.unlink)


@live.test
def replaced_binary():
    """A newer build under the same name: its symbols are of no use."""
    def put_another(path):
        other = path.with_name("other")
        shutil.copy(shutil.which("sleep"), other)
        other.rename(path)

    return replaced(put_another)


@live.test
def replaced_since():
    """A recording that does not carry the names says that the file is another one now."""
    if not shutil.which("perf"):
        raise live.Skip("perf is not installed")
    with live.scratch_folder() as folder:
        program, data = pathlib.Path(folder, "program"), pathlib.Path(folder, "perf.data")
        shutil.copy(live.BUILD / "tests/workloads/jitmap", program)
        ran = subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock:u", "-o", data, "--", program, "2000"],
            capture_output=True, text=True, env={**os.environ, "HOME": folder},
        )
        if ran.returncode:
            raise live.Skip("perf cannot record here: " + ran.stderr.strip())
        before = live.pyperf("report", "-i", data).stdout
        check(re.search(r"\badd +program", before), before)
        shutil.copy(shutil.which("sleep"), folder + "/other")
        os.rename(folder + "/other", program)
        after = live.pyperf("report", "-i", data)
        check("add" not in after.stdout and "replaced since" in after.stdout + after.stderr, after)


# Rights inside of a container that shares the pid namespace of the target, as a debug session does.
# What to expect of launching, of -p and of -a with --python=bpf, and of launching with what pyperf takes
# of its own accord where that fails: LINES, or what the message says.
LINES = None
FILTERED = r"seccomp filter blocks perf_event_open.*podman run --cap-add SYS_ADMIN --cap-add PERFMON"
NO_PERFMON = r"CAP_PERFMON is missing.*podman run --cap-add SYS_ADMIN --cap-add PERFMON --cap-add BPF"
NO_CAPS = r"BPF programs: CAP_BPF and CAP_PERFMON are missing.*podman run .*--cap-add BPF"
NO_BPF = r"BPF programs: CAP_BPF is missing.*podman run .*--cap-add BPF"
NO_PTRACE = r"look into process \d+.*CAP_SYS_PTRACE is missing: podman run --cap-add SYS_PTRACE"
NAMESPACED = r"user namespace.*--userns host"

DEFAULT = ()
ADMIN = ("--cap-add=SYS_ADMIN",)
FINE = ("--cap-add=PERFMON", "--cap-add=BPF")
BARE = ("--cap-drop=ALL",)
USER = ("--uidmap=0:100000:65536", "--gidmap=0:100000:65536")

MATRIX = [
    # rights                                    filter       launch      attach      all         own accord
    ("nothing",              DEFAULT,           "default",   FILTERED,   FILTERED,   FILTERED,   FILTERED),
    ("nothing, no filter",   DEFAULT,           None,        NO_CAPS,    NO_CAPS,    NO_CAPS,    LINES),
    ("SYS_ADMIN",            ADMIN,             "default",   LINES,      LINES,      LINES),
    ("only SYS_ADMIN",       BARE + ADMIN,      "default",   LINES,      NO_PTRACE,  NO_PTRACE),
    ("PERFMON, BPF",         FINE,              "default",   FILTERED,   FILTERED,   FILTERED,   FILTERED),
    ("PERFMON, BPF on 23",   FINE,              "docker23",  LINES,      LINES,      LINES),
    ("only PERFMON, BPF",    BARE + FINE,       "docker23",  LINES,      NO_PTRACE,  NO_PTRACE),
    ("and SYS_PTRACE",       BARE + FINE + ("--cap-add=SYS_PTRACE",), "docker23", LINES, LINES, LINES),
    ("PERFMON alone",        ("--cap-add=PERFMON",), None,   NO_BPF,     NO_BPF,     NO_BPF,     LINES),
    ("privileged",           ("--privileged",), "default",   LINES,      LINES,      LINES),
    ("user namespace",       USER + ADMIN + FINE, None,      NAMESPACED, NAMESPACED, NAMESPACED, LINES),
]

INSIDE = """
for way in {ways}; do
    engine=--python=bpf
    case $way in
    launch) set -- -- {python} short.py ;;
    own) engine=--python=auto; set -- -- {python} short.py ;;
    attach) set -- -p $(pgrep -f "python.* program.py" | head -1) --duration 0.6 ;;
    all) set -- -a --duration 0.6 ;;
    esac
    /opt/pyperf/pyperf record $engine -e cpu-clock -F 999 -o /work/$way.data "$@" >/work/$way.out 2>&1
    echo $? >/work/$way.status
    /opt/pyperf/pyperf report -i /work/$way.data --json >/work/$way.json 2>/dev/null
done
"""


def judge(e, way, expected):
    """None, or what is wrong."""
    shared = e.path / "shared"
    said = " ".join((shared / f"{way}.out").read_text().split())
    status = (shared / f"{way}.status").read_text().strip()
    lines = '"hot"' in (shared / f"{way}.json").read_text()
    if expected is LINES:
        return None if status == "0" and lines else f"{way}: {status}, {'lines' if lines else 'no lines'}: {said}"
    return None if re.search(expected, said) and not lines else f"{way}: {status}, not {expected!r}: {said}"


def row(rights, options, seccomp, *expected):
    e = engine()
    ways = ("launch", "attach", "all", "own")[: len(expected)]
    profile = {"default": "/usr/share/containers/seccomp.json", "docker23": e.path / "docker23.json", None: "unconfined"}
    for file in (e.path / "shared").glob("*.[dojs]*"):
        if file.suffix != ".py":
            file.unlink()
    with Container(e, [], e.python[1], "program.py") as target:
        ran = e.run(
            [f"--pid=container:{target.name}", f"--security-opt=seccomp={profile[seccomp]}", *options],
            "sh", "-c", INSIDE.format(python=e.python[1], ways=" ".join(ways)),
        )
        check((e.path / "shared/all.status").exists(), "the container did not run:", ran.stderr)
    wrong = [text for text in map(judge, [e] * len(ways), ways, expected) if text]
    check(not wrong, rights + ":", *wrong)
    return "; ".join("lines" if one is LINES else "a message" for one in expected)


for cells in MATRIX:
    def function(cells=cells):
        return row(*cells)

    function.__name__ = "inside-" + re.sub(r"\W+", "-", cells[0])
    live.test(function)


@live.test
def processes_outside():
    """With -a in a pid namespace the rest of the machine is one heap of time, under no one's name."""
    e = engine()
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        ran = e.run(
            ["--privileged"], "sh", "-c",
            "/opt/pyperf/pyperf record -e cpu-clock -F 999 -a --duration 0.5 -o /work/all.data &&"
            "/opt/pyperf/pyperf report -i /work/all.data --sort pid,comm --csv 2>/dev/null",
        )
    finally:
        busy.kill()
        busy.wait()
    check(ran.returncode == 0 and "--pid host" in ran.stderr, ran)
    nobodys = [line for line in ran.stdout.splitlines() if line.startswith("0,")]
    check(len(nobodys) == 1 and "[other pid namespaces]" in nobodys[0], ran.stdout)


@live.test
def other_pid_namespace():
    """/proc of another pid namespace than pyperf's own would name other processes."""
    if os.geteuid() != 0:
        raise live.Skip("namespaces need root here")
    ran = subprocess.run(
        ["unshare", "--pid", "--fork", str(live.PYPERF), "record", "-o", "/dev/null", "--", "true"], text=True,
        capture_output=True, stdin=subprocess.DEVNULL,
    )
    check(ran.returncode == 1 and "another pid namespace" in ran.stderr, ran.returncode, ran.stderr)


try:
    live.run()
finally:
    if isinstance(ENGINE, Engine):
        ENGINE.close()
