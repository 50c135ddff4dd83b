#!/usr/bin/env python3
"""Code made at run time, named by perf maps and jitdumps, sound and hostile."""
import collections
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

import live

JITMAP = live.BUILD / "tests/workloads/jitmap"
JITDUMP = live.BUILD / "tests/workloads/jitdump"


def jitmap(*arguments):
    """A command that says the pid first, by which the map that it leaves behind is found."""
    return ["sh", "-c", 'echo $$; exec "$0" "$@"', str(JITMAP), *arguments]


def remove_map(stdout):
    path = f"/tmp/perf-{int(stdout)}.map"
    if os.path.isdir(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def need_jitmap():
    ran = subprocess.run(jitmap("1"), capture_output=True)
    if ran.returncode == 77:
        raise live.Skip("jitmap knows no code of this architecture")
    remove_map(ran.stdout)


def record(*options):
    need_jitmap()
    recording = live.Recording(jitmap("8000"), "-e", "cpu-clock:u", "-F", "4999", *options)
    # The report must not need what the program left behind.
    remove_map(recording.stdout)
    return recording


@live.test
def trampolines_are_python_functions():
    """Their shares are 7 to 3, their callee is native code, and the map is in the recording."""
    recording = record()
    report = recording.report()
    (event,) = (e for e in report["events"] if e["samples"])
    functions = {f["qualname"]: f for f in report["functions"]}
    live.check("stale" not in functions, "an entry that was written over has samples")
    for name in ("seven", "three"):
        live.check(name in functions, name, "is not among", sorted(functions))
        live.check(functions[name]["kind"] == "python", functions[name])
        live.check(functions[name]["file"] == "/src/jit program.py", functions[name])
    seven, three = (functions[n]["events"][event["name"]]["total_samples"] for n in ("seven", "three"))
    live.check(live.within(seven, seven + three, 0.7, live.SURE), seven, "of", seven + three, "are not 70%")
    live.check(seven + three > 0.97 * event["samples"], seven + three, "of", event["samples"])
    live.check(functions["add"]["kind"] == "native", functions["add"])
    return f"{seven} and {three} of {event['samples']}"


@live.test
def stacks_go_through_them():
    """main calls the trampolines, which call spin, and that the code without tables, add."""
    folded = record().read("export", "--format", "folded").splitlines()
    through = sum(int(line.rsplit(" ", 1)[1]) for line in folded if re.search(";main;(seven|three);spin(;add)? ", line))
    total = sum(int(line.rsplit(" ", 1)[1]) for line in folded)
    live.check(through > 0.97 * total, through, "of", total, folded[:5])
    return f"{through} of {total}"


def need_jitdump(folder):
    if subprocess.run([JITDUMP, folder, "1"]).returncode == 77:
        raise live.Skip("jitdump knows no code of this architecture")


def check_dump(text):
    """Of ten rounds three are early and seven late, and the child's five are early."""
    counts = collections.Counter()
    first = None
    for sample in live.parse_script(text):
        pid = int(re.search(r" (\d+)/\d+ ", sample.head)[1])
        first = first or pid
        names = {frame.name.split("+")[0] for frame in sample.frames}
        live.check(not {"early", "late"} <= names, "one piece of code has two names at a time:", sample.frames)
        for name in names & {"early", "late"}:
            counts[name if pid == first else f"child's {name}"] += 1
    early, late, child = counts["early"], counts["late"], counts["child's early"]
    live.check(not counts["child's late"], "the child has what its parent made after the fork:", counts)
    live.check(live.within(early, early + late, 0.3, live.SURE), early, "of", early + late, "are not 30%")
    live.check(live.within(child, early + late + child, 1 / 3, live.SURE), child, "beside", early + late, "are not 1/3")
    return ", ".join(f"{count} {name}" for name, count in counts.items())


@live.test
def dumps_name_code_as_of_the_time():
    """One address has one name after another, and a forked child has what there was at the fork."""
    with live.scratch_folder() as folder:
        need_jitdump(folder)
        recording = live.Recording([str(JITDUMP), folder, "700"], "-e", "task-clock:u", "-F", "4999")
        live.check(not glob.glob(f"{folder}/*.dump"), "the dump was to be gone")
        counted = check_dump(recording.read("script"))
        text = recording.read("annotate", "early")
        live.check("call rsi" in text or "blr" in text, "no instructions of early:", text)
        live.check(re.search(r"app\.jit:42", text), "no line of early:", text)
        return counted


@live.test
def dumps_beside_what_perf_recorded():
    with live.scratch_folder() as folder:
        need_jitdump(folder)
        if not shutil.which("perf"):
            raise live.Skip("no perf here")
        path = f"{folder}/perf.data"
        options = ["-q", "-k", "mono", "-e", "task-clock:u", "-F", "4999", "-g", "-o", path]
        ran = subprocess.run(["perf", "record", *options, "--", JITDUMP, folder, "700", "keep"], capture_output=True)
        live.check(ran.returncode == 0, ran.stderr)
        return check_dump(live.pyperf("script", "-i", path).stdout)


TRAMPOLINES = """
import os, time
class Work:
    def inner(self):
        end = time.process_time() + 0.3
        while time.process_time() < end: sum(range(3000))
    def outer(self): self.inner()
print(os.getpid(), flush=True)
Work().outer()
"""


@live.test
def pythons_name_their_own_trampolines():
    """-X perf and -X perf_jit, where frame pointers lead from one function to the next."""
    flags = "import sys, sysconfig; sys.exit('no-omit-frame-pointer' not in sysconfig.get_config_var('CFLAGS'))"
    told = []
    for version, python in live.PYTHONS.items():
        number = tuple(map(int, version.split(".")[:2]))
        if number < (3, 12) or subprocess.run([python, "-c", flags]).returncode != 0:
            continue
        for option, left in (("perf", "perf-{}.map"), ("perf_jit", "jit-{}.dump")):
            if option == "perf_jit" and number < (3, 13):
                continue
            recording = live.Recording([python, "-X", option, "-c", TRAMPOLINES], "--python=off", "-e", "cpu-clock:u")
            os.unlink(pathlib.Path("/tmp", left.format(int(recording.stdout))))
            stacks = [[f.name for f in s.frames if f.name in ("<module>", "Work.outer", "Work.inner")] for s in recording.script()]
            inside = [stack for stack in stacks if "Work.inner" in stack]
            right = inside.count(["Work.inner", "Work.outer", "<module>"])
            live.check(right > 100 and right >= 0.9 * len(inside), option, version, right, "of", len(inside), stacks[-3:])
            told.append(f"{version} -X {option}: {right} of {len(inside)}")
    if not told:
        raise live.Skip("no CPython 3.12 or later that was built with frame pointers")
    return ", ".join(told)


@live.test
def dumps_of_node():
    """V8 writes the same format, with its own habits."""
    if not shutil.which("node"):
        raise live.Skip("no node here")
    program = """
function hot(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s }
function main(end) { let k = 0; while (Date.now() < end) k += hot(100000); return k }
main(Date.now() + 700)
"""
    with live.scratch_folder() as folder:
        pathlib.Path(folder, "hot.js").write_text(program)
        node = ["sh", "-c", 'cd "$0" && exec node --perf-prof hot.js', folder]  # it writes where it runs
        recording = live.Recording(node, "-e", "cpu-clock:u")
        functions = recording.report()["functions"]
        hot = sum(
            f["events"]["cpu-clock:u"]["self_samples"] for f in functions
            if re.match(r"JS:\W?hot ", f["name"]) and f["file"] == "[JIT]"
        )
        live.check(hot > 0, "hot is not among", [f["name"] for f in functions][:50])
        return f"{hot} samples in hot"


# Hostile perf maps: pyperf ends well, says what it refused, and names what is sound.

START = 0x20000000


def hostile(put, *, refused=None, names=None, skipped=None):
    """Records a program whose map is what put(path) makes; returns the functions' names."""
    with live.scratch_folder() as folder:
        need_jitmap()
        path = f"{folder}/map"
        put(path)
        data = f"{folder}/perf.data"
        ran = live.pyperf("record", "-o", data, "-e", "cpu-clock:u", "-F", "4999", "--", *jitmap("400", path))
        live.check(ran.returncode == 0, "record ended with", ran.returncode, ran.stderr)
        remove_map(ran.stdout)
        live.check(bool(refused) == bool(re.search("no names|left out", ran.stderr)), "record said", ran.stderr)
        live.check(not refused or refused in ran.stderr, refused, "is not in", ran.stderr)
        report = live.pyperf("report", "--percent-limit", "0", "-i", data)
        live.check(report.returncode == 0, report.stderr)
        told = re.search(r"([\d,]+) entr(?:y|ies) of (?:a )?perf map", report.stdout)
        told = int(told[1].replace(",", "")) if told else 0
        live.check(skipped is None or told == skipped, "the report counts", told, "bad lines, not", skipped)
        live.check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", report.stdout), "raw control characters")
        live.check(max(map(len, report.stdout.splitlines())) < 2000, "a line of the report is huge")
        for name in names or ():
            live.check(name in report.stdout, name, "is not in", report.stdout[:3000])
        size = os.path.getsize(data)
        return f"{size >> 10} KB" if size < 10 << 20 else f"{size >> 20} MB"


def text(*lines):
    def put(path):
        pathlib.Path(path).write_bytes(b"".join(lines))

    return put


@live.test
def hostile_map_of_ten_million_lines():
    """What is beyond the bounds is refused and told; what comes first is used."""
    def put(path):
        with open(path, "wb") as file:
            file.write(b"%x 40 seven\n%x 40 three\n" % (START, START + 64))
            lines = b"".join(b"%x 10 line\n" % (START * 2 + 16 * i) for i in range(100000))
            for _ in range(100):
                file.write(lines)

    return hostile(put, refused="too large", names=["seven", "three"])


@live.test
def hostile_map_that_is_a_link():
    with live.scratch_folder() as folder:
        secret = pathlib.Path(folder, "secret")
        secret.write_bytes(b"%x 1000 secret\n" % START)
        return hostile(lambda path: os.symlink(secret, path), refused="not a regular file", names=["[anon]"])


@live.test
def hostile_map_with_a_second_name():
    with live.scratch_folder() as folder:
        secret = pathlib.Path(folder, "secret")
        secret.write_bytes(b"%x 1000 secret\n" % START)
        return hostile(lambda path: os.link(secret, path), refused="hard link", names=["[anon]"])


@live.test
def hostile_map_that_is_a_fifo():
    return hostile(os.mkfifo, refused="not a regular file", names=["[anon]"])


@live.test
def hostile_map_that_is_a_folder():
    return hostile(os.mkdir, refused="not a regular file", names=["[anon]"])


@live.test
def hostile_map_of_another_user():
    if os.getuid() != 0:
        raise live.Skip("only root can give a file to another user")

    def put(path):
        text(b"%x 1000 planted\n" % START)(path)
        os.chown(path, 54321, 54321)

    return hostile(put, refused="neither the process's user nor root", names=["[anon]"])


@live.test
def hostile_map_of_overlaps():
    """Half a million ranges within one another, the code of interest under all of them."""
    nested = b"".join(b"%x %x n%d\n" % (START - 2 * i, 4 * i + 4096, i) for i in range(500000, 0, -1))
    return hostile(text(nested, b"%x 40 seven\n" % START), names=["seven", "n1 "], skipped=0)


@live.test
def hostile_map_without_newlines():
    """A huge line is an entry with a huge name, which is cut; the last line needs no newline."""
    huge = b"%x 40 " % START + b"huge" * (4 << 20)
    return hostile(text(huge, b"\n%x 40 three" % (START + 64)), names=["huge", "three"], skipped=0)


@live.test
def hostile_map_of_control_characters():
    colour = b"%x 40 a\x1b[31mred\x07\xff\xfe\r\x08b\n" % START
    return hostile(text(b"\0\0\0\n", colour, b"%x 40 \xe2\x80\xae\n" % (START + 64)), names=["\\x1b[31mred"], skipped=1)


@live.test
def hostile_map_of_nonsense():
    lines = [b"", b"zz 10 bad", b"10", b"10 10", b"10 0 empty", b"ffffffffffffffff 10 wraps", b"-1 10 minus"]
    seven = b"\n0x%x 40 seven\n" % START
    return hostile(text(b"\n".join(lines), seven), names=["seven"], skipped=6)


if __name__ == "__main__":
    sys.exit(live.run(needs_lines=False))
