"""What the guest tests share: pyperf in an emulated machine that has hardware counters.

Each boot runs one script as root, in a folder with pyperf and the workloads, and hands back what it
left in /out. `scripts/guest` says what the machine can do. Results are told as live tests tell them.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
from live import Failed, Skip, check, parse_script, run_one, within  # noqa: E402,F401

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
GUEST = TOP / "scripts/guest"


def reason_for_no_guest(arch):
    """Prepares the guest and builds for it; why that cannot be, or None."""
    if os.geteuid() != 0 or not pathlib.Path("/etc/debian_version").exists():
        return "guests are prepared from Debian's packages, as root"
    for command in ([GUEST, "prepare", arch], [GUEST, "make", arch, "-s", "all", "workloads"]):
        ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            if command[1] == "make":
                raise Failed(f"does not build for {arch}: {ran.stdout}{ran.stderr}")
            return " ".join(ran.stderr.split()[-40:])
    return None


class Boot:
    """One boot: what the script printed, and what each pyperf recording in /out says."""

    def __init__(self, arch, script, **environment):
        build = TOP / f"build/release-{arch}"
        self.folder = tempfile.TemporaryDirectory(prefix="pyperf-guest-")
        test, self.out = pathlib.Path(self.folder.name, "test"), pathlib.Path(self.folder.name, "out")
        test.mkdir()
        for path in (build / "pyperf", build / "tests/workloads/shares", TOP / "tests/workloads/shares.py",
                     TOP / "tests/workloads/walks.py"):
            (test / path.name).symlink_to(path)
        (test / "run.sh").write_text("set -u\nPATH=/t:$PATH\n" + script)
        ran = subprocess.run(
            [GUEST, "run", arch, test, self.out], capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        self.text = ran.stdout + ran.stderr
        check(ran.returncode == 0, "the guest's script ended with", ran.returncode, self.text)

    def report(self, name):
        return json.loads((self.out / name).read_text())


def event(report, name):
    """Of that very name: a silent fall-back to another event would look like success."""
    found = [e for e in report["events"] if e["name"] == name]
    check(found, "no event", name, "among", [e["name"] for e in report["events"]])
    return found[0]


def stat(boot, name):
    """The events of what `pyperf stat --json` said, by name."""
    return {event["name"]: event for event in boot.report(name)["events"]}


def metric(row, key):
    """A metric of a function or line, or None where it has none."""
    return row.get("metrics", {}).get(key)


def shares(report, event_name, *names, kind="python", what="self", unit="_samples"):
    """Samples (or, without `unit`, counts) of the functions of these names, which there must be."""
    hits = []
    for name in names:
        found = [f for f in report["functions"] if f["name"] == name and f["kind"] == kind]
        check(len(found) == 1, name, "is there", len(found), "times")
        hits.append(found[0]["events"][event_name][f"{what}{unit}"])
    return hits


def run_all(arch, tests):
    wanted = sys.argv[1:]
    try:
        reason = reason_for_no_guest(arch)
    except Failed as failure:
        print(failure)
        print("FAIL build")
        return
    for function in tests:
        if wanted and function.__name__ not in wanted:
            continue
        if reason:
            print("SKIP", function.__name__, reason)
        else:
            run_one(function, function.__name__)
