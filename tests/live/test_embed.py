#!/usr/bin/env python3
"""Python wherever it runs: inside of other programs, started in every way, several at once."""
import functools
import json
import os
import shutil
import subprocess
import zipfile

import live
from live import check

SOURCE = live.WORKLOADS / "embed/host.c"
SECONDS = 0.2
SCRIPT = f"""
import io, time
def now():
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
def spin():
    end = now() + {SECONDS}
    while now() < end: pass
def fill():
    file, place = io.FileIO("/dev/zero"), bytearray(1 << 22)
    end = now() + {SECONDS}
    while now() < end: file.readinto(place)  # lets go of the lock
def work():
    spin()
    fill()
"""
HERTZ = 1999
RATE = ("-e", "cpu-clock", "-F", HERTZ)
# Each of these ways is the same code in every version: the long test run tries all, the other some.
EVERY = live.PYTHONS
SOME = ((3, 6), (3, 11), (3, 13))
if not os.environ.get("PYPERF_TEST_ALL"):
    live.PYTHONS = {name: python for name, python in EVERY.items() if live.version_of(python) in SOME} or EVERY
SECTION_SINCE = (3, 13)  # a section of its own for the runtime's state

ASK = """
import json, sysconfig
print(json.dumps({name: sysconfig.get_config_var(name) or "" for name in (
    "INCLUDEPY", "LIBDIR", "LIBPL", "LIBRARY", "LDVERSION", "LIBS", "SYSLIBS", "MODLIBS", "Py_ENABLE_SHARED", "prefix")}))
"""


@functools.lru_cache(maxsize=None)
def built(python, kind):
    """The host program, called "app", linked in that way."""
    if python.root:
        raise live.Skip("its compiler is not that of this system")
    config = json.loads(subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True).stdout)
    compiler = shutil.which("cc")
    library = f"{config['LIBPL']}/{config['LIBRARY']}"
    if not compiler or not os.path.exists(f"{config['INCLUDEPY']}/Python.h"):
        raise live.Skip("no compiler, or no headers of this Python")
    if kind == "shared":
        if not config["Py_ENABLE_SHARED"]:
            raise live.Skip("this Python has no shared library")
        link = [f"-L{config['LIBDIR']}", f"-Wl,-rpath,{config['LIBDIR']}", f"-lpython{config['LDVERSION']}"]
    elif not os.path.exists(library):
        raise live.Skip("this Python has no static library")
    else:
        link = [library, *config["LIBS"].split(), *config["MODLIBS"].split(), *config["SYSLIBS"].split(), "-lm", "-no-pie"]
        link += {"static": [], "exported": ["-rdynamic", "-s"], "stripped": ["-s"]}[kind]
    folder = live.scratch_folder()
    program = f"{folder.name}/app"
    ran = subprocess.run(
        [compiler, "-O1", "-w", "-o", program, SOURCE, f"-I{config['INCLUDEPY']}", *link, "-lpthread", "-ldl", "-lutil"],
        capture_output=True, text=True,
    )
    check(ran.returncode == 0, "cc ended with", ran.returncode, ran.stderr[-1000:])
    return folder, program, config["prefix"]


def hosted(python, kind, mode):
    """Python functions of a recording of the program, with their samples, and all its samples."""
    folder, program, prefix = built(python, kind)
    script = f"{folder.name}/script.py"
    with open(script, "w") as file:
        file.write(SCRIPT)
    recording = live.Recording([program, mode, script], *RATE, env={"PYTHONHOME": prefix})
    return counted(recording)


def counted(recording):
    report = recording.report()
    event = report["events"][0]["name"]
    functions = {
        f["qualname"]: f["events"][event]["total_samples"] for f in report["functions"] if f["kind"] == "python"
    }
    return functions, report["samples"]


def check_work(functions, samples, times=1, names=("spin", "fill")):
    """All of its time in each of the two, give or take a fifth, and both in work()."""
    for name in names:
        check(functions.get(name, 0) > 0.8 * SECONDS * HERTZ * times, name, "has", functions.get(name), "samples of", samples, functions)
    check(functions["work"] >= sum(functions[name] for name in names), functions)
    return f"work {functions['work']} of {samples['total']}"


@live.test_each_python
def linked_shared(python):
    return check_work(*hosted(python, "shared", "plain"))


@live.test_each_python
def linked_statically(python):
    """Nothing in the program's name or libraries tells of Python; its symbols do."""
    return check_work(*hosted(python, "static", "plain"))


@live.test_each_python
def linked_statically_and_stripped(python):
    """What it exports to extension modules is left; of later versions it need export nothing."""
    told = [check_work(*hosted(python, "exported", "plain"))]
    if live.version_of(python) >= SECTION_SINCE:
        told.append(check_work(*hosted(python, "stripped", "plain")))
    return "; ".join(told)


@live.test_each_python
def threads_made_by_c(python):
    return check_work(*hosted(python, "static", "threads"), times=2)


@live.test_each_python
def forked_workers(python):
    return check_work(*hosted(python, "static", "workers"), times=2)


@live.test_each_python
def second_interpreter(python):
    """From 3.12 on also while it has let go of the lock, in fill()."""
    names = ("spin", "fill") if live.version_of(python) >= (3, 12) else ("spin",)
    return check_work(*hosted(python, "static", "sub"), names=names)


@live.test_each_python
def interpreters_with_locks_of_their_own(python):
    if live.version_of(python) < (3, 12):
        raise live.Skip("one lock for all before 3.12")
    return check_work(*hosted(python, "static", "own-gil"), times=2)


@live.test_each_python
def started_in_every_way(python):
    """-c, -m, standard input, a virtual environment, an application in a zip file."""
    with live.scratch_folder() as folder:
        package = f"{folder}/package"
        os.mkdir(package)
        for name in ("__init__.py", "__main__.py"):
            with open(f"{package}/{name}", "w") as file:
                file.write(SCRIPT + "work()\n" if name == "__main__.py" else "")
        with zipfile.ZipFile(f"{folder}/app.pyz", "w") as archive:
            archive.write(f"{package}/__main__.py", "__main__.py")
        made = subprocess.run([python, "-m", "venv", "--without-pip", f"{folder}/venv"], capture_output=True, text=True)
        ways = {
            "-c": [python, "-c", SCRIPT + "work()"],
            "-m": [python, "-m", "package"],
            "input": ["sh", "-c", f"{python} <{package}/__main__.py"],
            "zip": [python, f"{folder}/app.pyz"],
        }
        if made.returncode == 0 and not python.root:
            ways["venv"] = [f"{folder}/venv/bin/python", f"{package}/__main__.py"]
        told = []
        for way, command in ways.items():
            told.append(f"{way}: " + check_work(*counted(live.Recording(command, *RATE, env={"PYTHONPATH": folder}))))
    return "; ".join(told)


@live.test
def several_versions_in_one_recording():
    """Each process is walked as its own version demands."""
    pythons = list(EVERY.items())
    if len(pythons) < 2:
        raise live.Skip("only one Python here")
    with live.scratch_folder() as folder:
        commands = []
        for number, (_, python) in enumerate(pythons):
            path = f"{folder}/{number}.py"
            with open(path, "w") as file:
                file.write(SCRIPT.replace("spin", f"spin_{number}") + "work()\n")
            commands.append(f"{python} {path} &")
        recording = live.Recording(["sh", "-c", " ".join(commands) + " wait"], *RATE)
        functions, samples = counted(recording)
    for number, (name, _) in enumerate(pythons):
        hits = functions.get(f"spin_{number}", 0)
        check(hits > 0.8 * SECONDS * HERTZ, name, "has", hits, "samples of", samples)
    return f"{len(pythons)} interpreters"


if __name__ == "__main__":
    live.run()
