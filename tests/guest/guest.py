"""What the guest tests share: pyperf in an emulated machine that has hardware counters.

A test is a generator: it yields the Script that is to be run as root in a machine of the kind that it
names, gets what Ran of it, judges that, and returns what it measured, to be printed. Scripts of one
kind of machine share a boot, and there are as many machines at a time as there are CPUs. `scripts/guest`
says what the machines can do. Results are told as live tests tell them.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
from live import Failed, check, run_one, within  # noqa: E402,F401

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
GUEST = TOP / "scripts/guest"
CPUS = len(os.sched_getaffinity(0))

# Each script has a folder of its own, which is handed back, and finds pyperf and the workloads in /t. Where the machine's
# time is the host's, which may be busy, interrupts seem to take long: the kernel must not lower its rates for that.
RUN = """
PATH=/t:$PATH
echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
for name in {names}; do
	mkdir /out/$name
	cd /out/$name
	sh -u /t/$name.sh >text 2>&1 </dev/null
	echo $? >status
	rm -f *.data
done
"""


class Script:
    def __init__(self, text, **machine):
        self.text = text
        self.machine = tuple(sorted(machine.items()))


class Ran:
    """What a script printed, and what it left in its folder."""

    def __init__(self, folder):
        self.folder = folder
        self.text = (folder / "text").read_text()

    def report(self, name):
        return json.loads((self.folder / name).read_text())


def reason_for_no_guest(arch):
    """Prepares the guest and builds for it; why that cannot be, or None."""
    if os.geteuid() != 0 or not pathlib.Path("/etc/debian_version").exists():
        return "guests are prepared from Debian's packages, as root"
    for command in ([GUEST, "prepare", arch], [GUEST, "make", arch, "-s", f"-j{CPUS}", "all", "workloads"]):
        ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode != 0:
            if command[1] == "make":
                raise Failed(f"does not build for {arch}: {ran.stdout}{ran.stderr}")
            return " ".join(ran.stderr.split()[-40:])
    return None


def boot(arch, machine, scripts, folder):
    """Runs {name: Script} one after the other in one machine, whose files come into the folder; what it said."""
    build, test = TOP / f"build/release-{arch}", folder / "test"
    test.mkdir(parents=True)
    programs = [TOP / "tests/workloads" / name for name in ("shares.py", "uneven.py", "walks.py")]
    for path in (build / "pyperf", build / "tests/workloads/shares", *programs):
        (test / path.name).symlink_to(path)
    for name, script in scripts.items():
        (test / f"{name}.sh").write_text(script.text)
    (test / "run.sh").write_text(RUN.format(names=" ".join(scripts)))
    ran = subprocess.run(
        [GUEST, "run", arch, test, folder / "out"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, **dict(machine)},
    )
    return ran.stdout + ran.stderr


def event(report, name):
    """Of that very name: a silent fall-back to another event would look like success."""
    found = [e for e in report["events"] if e["name"] == name]
    check(found, "no event", name, "among", [e["name"] for e in report["events"]])
    return found[0]


def stat(ran, name):
    """The events of what `pyperf stat --json` said, by name."""
    return {event["name"]: event for event in ran.report(name)["events"]}


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


def three_quarters(report, event_name, **where):
    """Is three() sampled three times as often as one(), up to what chance does once in a million times? Words for it."""
    three, one = shares(report, event_name, "three", "one", **where)
    check(three + one >= 10, "only", three, "and", one, "samples of", event_name)
    check(within(three, three + one, 0.75, 1 - 1e-6), event_name, "of three() is", three, "of", three + one)
    return f"{event_name} {three / (three + one):.1%} of {three + one}"


def annotated(text, source):
    """The row of `pyperf annotate` that ends in this line of source."""
    rows = [line for line in text.splitlines() if re.search(rf"\s\d+\s+{re.escape(source)}$", line)]
    check(len(rows) == 1, "rows with", source, "are", rows, "in", text)
    return rows[0]


def judge(test, ran, told):
    """The rest of a test, when its script has run; without that the boot did not come so far."""
    check(ran, "the machine did not run the script:", told)
    status = (ran.folder / "status").read_text().strip()
    check(status == "0", "the guest's script ended with", status, ran.text)
    try:
        test.send(ran)
    except StopIteration as end:
        return end.value
    raise Failed("the test wants a second machine")


def parts(started):
    """[machine, {name: Script}]: of each kind of machine as many as there are CPUs to run them."""
    kinds = {}
    for name, (_, script) in started.items():
        kinds.setdefault(script.machine, []).append(name)
    for machine, names in kinds.items():
        for first in range(min(CPUS, len(names))):
            yield machine, {name: started[name][1] for name in names[first::CPUS]}


def run_all(arch, tests):
    wanted = [test for test in tests if not sys.argv[1:] or test.__name__ in sys.argv[1:]]
    try:
        reason = reason_for_no_guest(arch)
    except Failed as failure:
        print(failure)
        print("FAIL build")
        return
    if reason:
        for test in wanted:
            print("SKIP", test.__name__, reason)
        return
    started = {}
    for test in wanted:
        generator = test()
        started[test.__name__] = generator, next(generator)
    with tempfile.TemporaryDirectory(prefix="pyperf-guest-") as folder, concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        boots = {
            pool.submit(boot, arch, machine, scripts, pathlib.Path(folder, str(i))): (scripts, pathlib.Path(folder, str(i), "out"))
            for i, (machine, scripts) in enumerate(parts(started))
        }
        for future in concurrent.futures.as_completed(boots):
            scripts, out = boots[future]
            for name in scripts:
                ran = Ran(out / name) if (out / name / "status").exists() else None
                run_one(judge, name, started[name][0], ran, future.result())
