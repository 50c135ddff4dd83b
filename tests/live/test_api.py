#!/usr/bin/env python3
"""The Python package: recordings of a part of a program, phases, decorators, notebooks."""
import os
import pathlib
import shutil
import subprocess
import sys
import time

import live
from live import check

PACKAGE = live.TOP / "lib/python"
BURN = """
import threading, time
import pyperf_api
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def outside(): burn(0.1)
def load(): burn(0.1)
def train(): burn(0.2)
"""


def run(python, program, folder, **more):
    env = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYPERF": str(live.PYPERF), **more}
    return subprocess.run([python, "-c", BURN + program], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def samples(folder, *options, name="perf.data"):
    """Of each function, by `pyperf export`; {} where there are none."""
    ran = live.pyperf("export", "--format", "folded", "-i", f"{folder}/{name}", *options)
    check(ran.returncode == 0, ran.stderr)
    counts = {}
    for line in ran.stdout.splitlines():
        stack, _, count = line.rpartition(" ")
        for function in ("outside", "load", "train"):
            if function in stack.split(";"):
                counts[function] = counts.get(function, 0) + int(count)
    return counts


def near(count, seconds):
    """At 999 Hz of the CPU's time; what begins and ends it is part of it."""
    return 0.8 * 999 * seconds <= count <= 1.3 * 999 * seconds


@live.test
def context_manager():
    """What runs within it is recorded, what runs before, between and behind is not."""
    own = [python for python in live.PYTHONS.values() if not python.root]
    return "; ".join(check_context_manager(python) for python in {own[0], own[-1]})


def check_context_manager(python):
    with live.scratch_folder() as folder:
        ran = run(python, """
outside()
with pyperf_api.profile(events=["cpu-clock"]) as recording:
    with pyperf_api.phase("load data"): load()
    recording.pause()
    outside()
    recording.resume()
    for _ in range(2):
        with pyperf_api.phase("train"): train()
    pyperf_api.mark("done")
outside()
with pyperf_api.phase("nothing is recorded"): pass
""", folder)
        check(ran.returncode == 0 and not ran.stderr, ran)
        whole = samples(folder)
        check(set(whole) == {"load", "train"}, whole)
        check(near(whole["load"], 0.1) and near(whole["train"], 0.4), whole)
        check(set(samples(folder, "--phase", "load data")) == {"load"}, "phase 'load data' has others, too")
        check(samples(folder, "--phase", "train") == {"train": whole["train"]}, "phase 'train' is not that function")
        first, second = (samples(folder, "--time", span) for span in ("0%-60%", "60%-100%"))
        check(first["train"] + second["train"] == whole["train"] and first["load"] == whole["load"], first, second)
        unknown = live.pyperf("report", "-i", f"{folder}/perf.data", "--phase", "test")
        check(unknown.returncode == 1 and "load data, train, done" in unknown.stderr, unknown)
        return f"{whole}"


@live.test
def phases_of_threads():
    """A phase is a time: what other threads do in it belongs to it."""
    with live.scratch_folder() as folder:
        ran = run(live.any_python(), """
with pyperf_api.profile(events="cpu-clock", frequency=499, options=["--call-graph", "none"]):
    with pyperf_api.phase("both"):
        thread = threading.Thread(target=load)
        thread.start()
        train()
        thread.join()
    outside()
""", folder)
        check(ran.returncode == 0, ran.stderr)
        check(set(samples(folder, "--phase", "both")) == {"load", "train"}, samples(folder, "--phase", "both"))
        check("499 Hz" in live.pyperf("report", "-i", f"{folder}/perf.data").stdout, "not at that rate")


@live.test
def decorator():
    """Each call is a recording; the one before becomes FILE.old."""
    with live.scratch_folder() as folder:
        ran = run(live.any_python(), """
@pyperf_api.profile("f.data", events="cpu-clock")
def f(what):
    what()
f(load)
f(train)
""", folder)
        check(ran.returncode == 0, ran.stderr)
        check(set(samples(folder, name="f.data.old")) == {"load"} and set(samples(folder, name="f.data")) == {"train"},
              "the calls are not apart")


@live.test
def what_goes_wrong():
    with live.scratch_folder() as folder:
        ran = run(live.any_python(), """
try:
    with pyperf_api.profile(events="no-such-event"): pass
except pyperf_api.RecordingError as error: print(error)
try:
    with pyperf_api.profile(events="cpu-clock"): 1 / 0
except ZeroDivisionError: print("raised")
""", folder)
        check("no event 'no-such-event'" in ran.stdout and "raised" in ran.stdout, ran)
        other = pathlib.Path(folder, "pyperf")
        other.write_text("#!/bin/sh\necho pyperf 2.6.1\n")
        other.chmod(0o755)
        failing = "\ntry: pyperf_api.profile().start()\nexcept pyperf_api.RecordingError as error: print(error)"
        ran = run(live.any_python(), failing, folder, PYPERF="", PATH=f"{folder}:/usr/bin:/bin")
        check("benchmark tool" in ran.stdout and "PYPERF" in ran.stdout, ran)


@live.test
def ends_with_the_program():
    """Without stop(), by os._exit(): the recording is whole."""
    with live.scratch_folder() as folder:
        ran = run(live.any_python(), """
import os
recording = pyperf_api.profile(events="cpu-clock").start()
load()
os.kill(recording._process.pid, 0)
print(recording._process.pid, flush=True)
os._exit(0)
""", folder)
        recorder = int(ran.stdout)
        end = time.monotonic() + 60
        while os.path.exists(f"/proc/{recorder}/exe"):
            check(time.monotonic() < end, "the recorder goes on")
            time.sleep(0.02)
        check(near(samples(folder)["load"], 0.1), samples(folder))


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher
shell = InteractiveShell.instance()
shell.display_pub = CapturingDisplayPublisher(parent=shell)
shell.run_line_magic("load_ext", "pyperf_api")
shell.run_cell("import time\\ndef hot(seconds):\\n    end = time.process_time() + seconds\\n    while time.process_time() < end: pass\\n    return 7")
shell.run_cell("x = %pyperf -e cpu-clock -o hot.data --text hot(0.1)")
print(shell.user_ns["x"])
shell.run_cell("%%pyperf -e cpu-clock --text\\ny = hot(0.1)")
print(shell.user_ns["y"])
shown = [out["data"]["text/html"] for out in shell.display_pub.outputs]
print(sum("hot" in page and "100.0%" in page for page in shown))
"""


@live.test
def notebook():
    """The magics keep what the code returns and assigns; lines of cells have their text."""
    python = "/usr/bin/python3"
    if subprocess.run([python, "-c", "import IPython"], capture_output=True).returncode:
        raise live.Skip("IPython is not installed (python3-ipython)")
    with live.scratch_folder() as folder:
        ran = run(python, NOTEBOOK, folder, HOME=folder)
        check(ran.stdout.split()[-3:-1] == ["7", "7"], ran)
        check(ran.stdout.split()[-1] == "2", ran)
        text = live.pyperf("annotate", "-i", f"{folder}/hot.data", "hot").stdout
        check("while time.process_time() < end: pass" in text, text)


@live.test
def installs():
    """By pip, from a checkout, without the network."""
    python = next((python for python in ("/usr/bin/python3", sys.executable) if subprocess.run(
        [python, "-c", "import setuptools, wheel, pip"], capture_output=True).returncode == 0), None)
    if not python:
        raise live.Skip("pip, setuptools and wheel are not installed (python3-pip, python3-wheel)")
    with live.scratch_folder() as folder:
        shutil.copytree(PACKAGE, f"{folder}/package")
        ran = subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-build-isolation", "--target",
                              f"{folder}/installed", f"{folder}/package"], capture_output=True, text=True)
        check(ran.returncode == 0, ran)
        check((PACKAGE / "pyperf_api/_magic.py").read_text() == pathlib.Path(folder, "installed/pyperf_api/_magic.py").read_text(),
              "a module is missing")


if __name__ == "__main__":
    sys.exit(live.run())
