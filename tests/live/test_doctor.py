#!/usr/bin/env python3
"""`pyperf doctor` against what is known to be so: for root, an ordinary user, other settings of the
kernel, a user namespace, and processes that are a Python, are none, are another user's or are gone."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys

from misnamed import Misnamed
from live import PYPERF, Skip, any_python, check, pyperf, run, scratch_folder, test, test_each_python

ALONE = "it changes kernel.perf_event_paranoid"
PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
USER = 65534  # nobody
# Stacks of known depth, in two threads, and one that is not Python's business: none.
PROGRAM = """
import sys, threading
def wait(depth, ready):
    if depth:
        return wait(depth - 1, ready)
    ready()
    threading.Event().wait()
def ready():
    global left
    left -= 1
    if not left:
        print(flush=True)
left = 2
threading.Thread(target=wait, args=(5, ready), daemon=True).start()
wait(7, ready)
"""


def doctor(*arguments, before=()):
    """(what it says, its exit status)"""
    ran = subprocess.run([*before, PYPERF, "doctor", "--json", *map(str, arguments)], capture_output=True, text=True,
                         timeout=60)
    check(ran.returncode in (0, 1), "doctor ended with", ran.returncode, ran.stderr)
    said = json.loads(ran.stdout)
    check(said["python_lines"] == (ran.returncode == 0), "exit status", ran.returncode, "but", said["python_lines"])
    for line in said["checks"]:
        if line["verdict"] == "fail":
            check(line["remedy"] and any(line["remedy"].values()), "no remedy for", line)
    return said, ran.returncode


def verdict(said, check_id):
    return next(line["verdict"] for line in said["checks"] if line["id"] == check_id)


def text(said, check_id):
    return next(line["text"] for line in said["checks"] if line["id"] == check_id)


@contextlib.contextmanager
def program(*command):
    with subprocess.Popen([*command, "-c", PROGRAM], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def need_root():
    if os.geteuid():
        raise Skip("takes root")
    if not shutil.which("setpriv"):
        raise Skip("takes setpriv")


def as_user():
    need_root()
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all"]


@contextlib.contextmanager
def paranoid(level):
    before = PARANOID.read_text()
    try:
        PARANOID.write_text(str(level))
    except OSError as error:
        raise Skip(f"perf_event_paranoid cannot be set: {error}") from error
    try:
        yield
    finally:
        PARANOID.write_text(before)


def records_lines(*before):
    """Does recording with Python lines work? The answer that the doctor has to foresee."""
    with scratch_folder() as folder:
        os.chmod(folder, 0o777)
        ran = subprocess.run([*before, PYPERF, "record", "-o", f"{folder}/data", "--", "true"], capture_output=True,
                             text=True, timeout=60)
    return ran.returncode == 0 and "no Python lines" not in ran.stderr


@test
def agrees_with_record():
    said, status = doctor()
    check((status == 0) == records_lines(), "doctor and record disagree:", said)
    return f"engine {said['engine']}"


@test
def hardware_events_as_perf_sees_them():
    perf = shutil.which("perf")
    if not perf:
        raise Skip("takes perf")
    said, _ = doctor()
    names = ["cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses"]
    ran = subprocess.run([perf, "stat", "-x,", *(word for name in names for word in ("-e", f"{name}:u")),
                          sys.executable, "-c", "sum(range(10**6))"], capture_output=True, text=True, timeout=60)
    rows = [line.split(",") for line in ran.stderr.splitlines() if line.count(",") > 3]
    counted = {row[2].removesuffix(":u") for row in rows if row[0].isdigit() and int(row[0])}
    for name in names:
        works = text(said, "hardware-events").split(";")[0].split(" (")[0].split()
        check((name in works) == (name in counted), name, "perf counts", counted, "doctor says", works)
    return f"{len(counted)} of {len(names)} count"


@test_each_python
def walks_a_python(python):
    with program(python) as pid:
        said, status = doctor(pid)
        stat = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = said["pythons"][0]
    version = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], check=True,
                             capture_output=True, text=True).stdout.strip()
    check(status == (0 if verdict(said, "engine") == "ok" else 1), "exit status", status, said["checks"])
    check(found["pid"] == pid and version.startswith(found["version"]), found, "is not", version)
    if not found["threads"]:
        raise Skip(found["text"])
    # Eight calls and the module's frame in the first thread, six calls and those of threading in
    # the other; waiting in both adds at least one each.
    check(found["python_threads"] == 2, "not two threads:", found)
    check(found["frames"] >= 9 + 6 + 2, "too few frames:", found)
    check("TracerPid:\t0\n" in stat, "the process is still traced")
    return found["text"]


@test
def leaves_the_process_alone():
    with program(any_python()) as pid:
        doctor(pid)
        # It would be 't' while stopped by a tracer.
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        check(state == "S", "the process is in state", state)


@test
def finds_all_that_run():
    with program(any_python()) as one, program(any_python()) as other:
        said, _ = doctor()
    pids = {python["pid"] for python in said["pythons"]}
    check({one, other} <= pids, one, other, "are not in", pids)


@test
def process_that_is_no_python():
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            said, status = doctor(process.pid)
        finally:
            process.kill()
    check(status == 1 and verdict(said, "pythons") == "fail", status, said["checks"])
    check("no CPython" in text(said, "pythons"), text(said, "pythons"))
    remedy = next(line["remedy"] for line in said["checks"] if line["id"] == "pythons")
    check("name a process" in remedy["host"], remedy)


@test
def build_that_is_not_known():
    """Its frames lead nowhere: a failure, and no right is named that would mend it."""
    with scratch_folder() as folder:
        for strip in (False, True):
            with program(*Misnamed(folder, strip).command) as pid:
                said, status = doctor(pid)
                listed, _ = doctor()
            check(status == 1 and verdict(said, "pythons") == "fail", status, said["checks"])
            check("not built as others are" in text(said, "pythons"), text(said, "pythons"))
            remedy = next(line["remedy"] for line in said["checks"] if line["id"] == "pythons")
            check("--python=trampoline" in remedy["host"] and "root" not in remedy["host"], remedy)
            check({p["verdict"] for p in listed["pythons"] if p["pid"] == pid} == {"fail"}, listed["pythons"])
    return text(said, "pythons")


@test
def process_that_is_gone():
    with subprocess.Popen(["true"]) as process:
        process.wait()
        pid = process.pid
    ran = pyperf("doctor", pid)
    check(ran.returncode == 1 and f"no process {pid}" in ran.stderr, ran.returncode, ran.stderr)


def without_bpf(said):
    """What BPF that does not work is called: a failure only where nothing stands in for it."""
    return "note" if verdict(said, "engine") == "ok" else "fail"


@test
def ordinary_user():
    user = as_user()
    for level in (2, 3):
        with paranoid(level):
            said, status = doctor(before=user)
            check((status == 0) == records_lines(*user), "doctor and record disagree at", level, said)
            check(text(said, "paranoid").startswith(str(level)), text(said, "paranoid"))
        check(verdict(said, "bpf") == without_bpf(said), "BPF for an ordinary user?", said["checks"])
        check(verdict(said, "capabilities") == "note", text(said, "capabilities"))
        check(verdict(said, "kernel-samples") == "note", text(said, "kernel-samples"))
        remedy = next(line["remedy"] for line in said["checks"] if line["id"] == "bpf")
        check("setcap" in remedy["host"] and "--cap-add" in remedy["docker"], remedy)


@test
def process_of_another_user():
    user = as_user()
    with program(any_python()) as pid:
        said, status = doctor(pid, before=user)
    check(status == 1 and verdict(said, "pythons") == "fail", status, said["checks"])
    owner = pwd.getpwuid(os.geteuid()).pw_name
    check(f"belongs to {owner}" in text(said, "pythons"), text(said, "pythons"))
    remedy = next(line["remedy"] for line in said["checks"] if line["id"] == "pythons")
    check("root" in remedy["host"], remedy)


@test
def user_namespace():
    user = as_user()
    inside = [*user, "unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode:
        raise Skip("user namespaces are not allowed")
    said, status = doctor(before=inside)
    check(said["machine"]["user_namespace"], "not noticed:", said["machine"])
    check(verdict(said, "bpf") == without_bpf(said), "BPF in a user namespace?", said["checks"])
    check((status == 0) == records_lines(*inside), "doctor and record disagree", said)


@test
def survives_without_proc():
    need_root()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        raise Skip("mount namespaces are not allowed")
    for folder in ("/proc", "/sys"):
        ran = subprocess.run(["unshare", "--mount", "sh", "-c", f'mount -t tmpfs none {folder} && exec "$@"', "sh",
                              PYPERF, "doctor"], capture_output=True, text=True, timeout=60)
        check(ran.returncode in (0, 1) and "Python engine" in ran.stdout, folder, ran.returncode, ran.stderr)


if __name__ == "__main__":
    run(needs_lines=False)
