"""What the live tests share: pythons to test with, running pyperf, judging shares, telling results.

A test is a function marked @test or @test_each_python; run() runs those of the calling file and
prints one line each, PASS, FAIL or SKIP, a name and a reason, which tests/run reads. A test returns
what it measured, to be printed, raises Skip(reason), or fails by check().
"""
import functools
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("BUILD") or TOP / "build/release")
PYPERF = BUILD / "pyperf"
WORKLOADS = TOP / "tests/workloads"
SUPPORTED = [(3, minor) for minor in range(6, 16)]
LONG = bool(os.environ.get("PYPERF_TEST_ALL"))
SANITIZED = "san-" in str(BUILD)


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def check(condition, *explanation):
    if not condition:
        raise Failed(" ".join(map(str, explanation)))


# Pythons


class Python(str):
    """A command that runs an interpreter: its path, or for one in a tree of files of its own a
    script that enters that tree, where the tests' files and temporary ones have the same names.
    `inside` is its path as its own processes see it, `root` the tree, "" if it is ours."""

    root = ""
    inside = ""


def asked(command):
    """(version, implementation, path) as an interpreter answers, or None."""
    ask = "import sys; print(sys.version.split()[0], sys.implementation.name, sys.executable)"
    answer = subprocess.run([command, "-S", "-E", "-c", ask], capture_output=True, text=True)
    return answer.stdout.rstrip("\n").split(" ", 2) if answer.returncode == 0 else None


def supported(version):
    return tuple(map(int, version.split(".")[:2])) in SUPPORTED


def own_pythons():
    """Paths that may be a Python: $PYTHON_LIST, else PATH's, those of pyenv and the system's."""
    if os.environ.get("PYTHON_LIST"):
        yield from os.environ["PYTHON_LIST"].split()
        return
    names = ["python3", *(f"python{major}.{minor}" for major, minor in SUPPORTED)]
    pyenv = shutil.which("pyenv")
    if pyenv:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
        yield from sorted(map(str, pathlib.Path(root, "versions").glob("*/bin/python3")))
    for folder in [*os.environ["PATH"].split(":"), "/usr/bin", "/usr/local/bin"]:
        yield from (os.path.join(folder, name) for name in names)


# In a mount namespace of its own, so that nothing is left mounted.
ENTER = """#!/bin/sh
root={root}
[ -n "$PYPERF_ENTERED" ] || PYPERF_ENTERED=1 exec unshare --mount "$0" "$@"
unset PYPERF_ENTERED
mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 125
for shared in {shared}; do
	mount --bind "$shared" "$root$shared" || exit 125
done
export LC_ALL=C.UTF-8
[ -d "$root$PWD" ] || cd /
exec unshare --root="$root" --wd="$PWD" {inside} "$@"
"""


def rooted_pythons():
    """What scripts/pythons unpacked and scripts/build-pythons built, entered by chroot."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    shared = sorted({str(TOP), os.path.realpath(tempfile.gettempdir())})
    found = [
        (root, f"/usr/bin/{match[0]}", root.name + (match[1] or ""))
        for root in sorted(cache.glob("pyperf/pythons/*"))
        for path in sorted(root.glob("usr/bin/python3.*"))
        if (match := re.fullmatch(r"python3\.\d+(-dbg)?", path.name)) and not (root / "opt").is_dir()
    ] + [
        (root, f"/opt/{path.name}/bin/python3", re.sub(r"^3\.\d+-?", "", path.name))
        for root in sorted(cache.glob("pyperf/pythons/*"))
        for path in sorted(root.glob("opt/3.*"))
    ]
    if os.getuid() != 0 or os.environ.get("PYTHON_LIST"):
        found = []
    for root, inside, build in found:
        for folder in shared:
            os.makedirs(f"{root}{folder}", exist_ok=True)
        script = pathlib.Path(SCRATCH.name, f"{build}-{inside.split('/')[-1]}-{inside.split('/')[2]}")
        script.write_text(
            ENTER.format(root=shlex.quote(str(root)), inside=inside, shared=" ".join(map(shlex.quote, shared)))
        )
        script.chmod(0o755)
        python = Python(script)
        python.root, python.inside = str(root), inside
        yield build, python


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def distinct(paths):
    """One path of each program; scripts that start another one of a version are none."""
    seen = set()
    for path in paths:
        if os.access(path, os.X_OK) and os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            if path.endswith("/python3") or not is_script(path):
                yield path


def find_pythons():
    """{"3.12.1": Python} of the CPythons here that pyperf supports, one a version and build."""
    found = {}
    for path in distinct(own_pythons()):
        answer = asked(path)
        if answer and answer[1] == "cpython" and supported(answer[0]):
            python = Python(answer[2])
            python.inside = answer[2]
            found.setdefault(answer[0], python)
    for build, python in rooted_pythons():
        answer = asked(python)
        if answer and supported(answer[0]):
            found[f"{answer[0]}-{build}"] = python
    return found


def one_a_version(builds):
    """The first of each minor version: all tests of every build would take hours."""
    found = {}
    for name, python in builds.items():
        found.setdefault(name.split(".")[1], (name, python))
    return dict(found.values())


def others():
    return {name: python for name, python in BUILDS.items() if name not in PYTHONS}


def missing_versions():
    """Versions of which no build was found."""
    found = {tuple(map(int, name.split(".")[:2])) for name in BUILDS}
    return [f"{major}.{minor}" for major, minor in SUPPORTED if (major, minor) not in found]


def missing_builds():
    """Kinds that scripts/build-pythons makes and that are not here."""
    if os.environ.get("PYTHON_LIST"):
        return []
    names = subprocess.run([TOP / "scripts/build-pythons", "--list"], capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if not any(p.inside.startswith(f"/opt/{name}/") for p in BUILDS.values())]


def why_missing(build):
    """What scripts/build-pythons said of it, as scripts/test passes it on."""
    said = os.environ.get("PYPERF_NO_BUILDS", "")
    own = [line for line in said.splitlines() if line.startswith(f"build-pythons: {build}: ")]
    return own[0] if own else said or "none here; see scripts/build-pythons"


def python_says(python, script):
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


@functools.lru_cache(maxsize=None)
def version_of(python):
    """(3, 12) of a path."""
    return tuple(map(int, python_says(python, "import sys; print(*sys.version_info[:2])").split()))


def code_name(python, qualname):
    """What a code object of that qualified name goes by: before co_qualname (3.11) its own name."""
    return qualname if version_of(python) >= (3, 11) else qualname.rpartition(".")[2]


def any_python():
    own = [python for python in PYTHONS.values() if not python.root]
    if not own:
        raise Skip("no CPython of a supported version")
    return own[-1]


# Running pyperf


# What pyperf is started through: as another user, say. And options of every recording.
THROUGH = []
RECORD_OPTIONS = []


def scratch_folder():
    folder = tempfile.TemporaryDirectory(prefix="pyperf-live-")
    if THROUGH:
        os.chmod(folder.name, 0o777)
    return folder


def pyperf(*arguments, timeout=120, **kwargs):
    kwargs = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **kwargs}
    return subprocess.run([*THROUGH, PYPERF, *map(str, arguments)], timeout=timeout, **kwargs)


def missing_permission():
    """Why Python lines cannot be recorded here, or None."""
    with scratch_folder() as folder:
        ran = pyperf("record", "--python=bpf", "-o", f"{folder}/p", "--", "true")
    return None if ran.returncode == 0 else " ".join(ran.stderr.split())


class Recording:
    """A program, recorded, in a folder of its own that lasts as long as the object."""

    def __init__(self, command, *options, env=None, status=0):
        self.folder = scratch_folder()
        self.path = pathlib.Path(self.folder.name, "perf.data")
        self.ran = pyperf("record", "-o", self.path, *RECORD_OPTIONS, *options, "--", *command, env={**os.environ, **(env or {})})
        check(self.ran.returncode == status, "record ended with", self.ran.returncode, self.ran.stderr)
        self.stdout = self.ran.stdout

    def read(self, *arguments):
        ran = pyperf(arguments[0], "-i", self.path, *arguments[1:])
        check(ran.returncode == 0, "pyperf", *arguments, "ended with", ran.returncode, ran.stderr)
        return ran.stdout

    def report(self, *options):
        return json.loads(self.read("report", "--json", "--percent-limit", "0", *options))

    def script(self):
        return list(parse_script(self.read("script")))


# `pyperf script`: a line a sample, then its frames, innermost first.
PYTHON_FRAME = re.compile(r"\s+(?:[0-9a-f]+ )?(?P<name>\S.*) \((?P<file>[^()]*):(?P<line>\d+)\)$")
OTHER_FRAME = re.compile(r"\s+[0-9a-f]+ (?P<name>.*) \((?P<file>.*)\)$")


class Frame:
    def __init__(self, text):
        match = PYTHON_FRAME.match(text)
        self.python = bool(match)
        match = match or OTHER_FRAME.match(text)
        check(match, "script prints a frame that is none:", repr(text))
        self.name, self.file = match["name"], match["file"]
        self.line = int(match["line"]) if self.python else 0

    def __repr__(self):
        return f"{self.name} ({self.file}:{self.line})" if self.python else f"{self.name} ({self.file})"


class Sample:
    def __init__(self, head):
        self.head = head
        self.frames = []

    @property
    def python(self):
        return [frame for frame in self.frames if frame.python]


def parse_script(text):
    sample = None
    for line in text.splitlines():
        if not line.strip():
            continue
        if line[0].isspace() and sample and re.match(r"\t|\s{8}", line):
            sample.frames.append(Frame(line))
        else:
            if sample:
                yield sample
            sample = Sample(line)
    if sample:
        yield sample


# Shares


def within(hits, samples, share, probability=0.99):
    """Whether so many hits are inside the central binomial interval of that probability."""
    tail = (1 - probability) / 2
    return binomial_at_most(hits, samples, share) > tail and binomial_at_most(hits - 1, samples, share) < 1 - tail


# That chance alone does not decide: a thousand checks of shares are made in a run of all tests.
SURE = 1 - 1e-7


def binomial_at_most(hits, samples, share):
    """P(X <= hits), summed exactly: every term by logarithms of the gamma function."""
    if hits < 0:
        return 0.0
    if hits >= samples or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0

    def term(k):
        return math.exp(
            math.lgamma(samples + 1) - math.lgamma(k + 1) - math.lgamma(samples - k + 1)
            + k * math.log(share) + (samples - k) * math.log1p(-share)
        )

    # The shorter tail is the more exact one.
    if hits <= samples * share:
        return min(1.0, sum(map(term, range(hits + 1))))
    return max(0.0, 1 - sum(map(term, range(hits + 1, samples + 1))))


# Telling


TESTS = []


def test(function):
    TESTS.append((function, None))
    return function


def test_each_python(function):
    """With a Python of each kind of layout, in the long test run with every build."""
    TESTS.append((function, "version"))
    return function


def test_any_python(function):
    """With one Python, for what is the same code in every version; in the long run with each."""
    TESTS.append((function, "any"))
    return function


def test_every_python(function):
    """With every version and build: to be kept short."""
    TESTS.append((function, "all"))
    return function


def test_each_other_build(function):
    """With what the tests of each version are not run with."""
    TESTS.append((function, "build"))
    return function


# Versions that differ most in what the walker does: frames that are objects, runs that are marked, shims
# and offsets that the interpreter tells. test_versions.py judges the others, and each build, briefly.
KINDS = [(3, 10), (3, 11), (3, 14)]


def of_each_kind():
    if LONG or os.environ.get("PYTHON_LIST"):
        return PYTHONS
    return {name: path for name, path in PYTHONS.items() if version_of(path) in KINDS} or PYTHONS


def of_any():
    if LONG:
        return PYTHONS
    python = any_python()
    return {name: path for name, path in PYTHONS.items() if path == python}


def tell(word, name, reason):
    print(word, name, " ".join(str(reason or "").split()))


def run_one(function, name, *arguments):
    try:
        tell("PASS", name, function(*arguments))
    except Skip as reason:
        tell("SKIP", name, reason)
    except Failed as reason:
        print(reason)
        tell("FAIL", name, "")
    except Exception:
        traceback.print_exc(file=sys.stdout)
        tell("FAIL", name, "")


def run(needs_lines=True):
    """Runs the tests, or those that the command line names, with or without "-VERSION"."""
    wanted = sys.argv[1:]
    reason = missing_permission() if needs_lines else None
    if any(each for _, each in TESTS) and not wanted:
        for version in missing_versions():
            tell("SKIP", f"python-{version}", os.environ.get("PYPERF_NO_PYTHONS") or "none here; see scripts/pythons")
        for build in missing_builds() if LONG else ():
            tell("SKIP", f"python-{build}", why_missing(build))
    for function, each in TESTS:
        name = function.__name__
        if wanted and not any(want == name or want.startswith(f"{name}-") for want in wanted):
            continue
        if reason:
            tell("SKIP", name, reason)
        elif not each:
            run_one(function, name)
        elif not PYTHONS:
            tell("SKIP", name, "no CPython of a supported version")
        else:
            choices = {"any": of_any, "version": of_each_kind, "build": others, "all": lambda: BUILDS}
            for version, path in choices[each]().items():
                if not wanted or {name, f"{name}-{version}"} & set(wanted):
                    run_one(function, f"{name}-{version}", path)


SCRATCH = scratch_folder()
BUILDS = find_pythons()
PYTHONS = BUILDS if LONG else one_a_version(BUILDS)
