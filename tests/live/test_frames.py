#!/usr/bin/env python3
"""What code objects and frames can be: dropped, deep, huge, of any text; each beside what is true."""
import collections
import re
import struct
import subprocess
import sys

import live
from live import check

CHURN = live.WORKLOADS / "churn.py"


@live.test_each_python
def no_name_outlives_its_function(python):
    """Thousands of functions, each made where the one before was freed: by the clock, every sample
    has the one that ran."""
    recording = live.Recording([python, CHURN, 0.5], "-e", "cpu-clock", "-F", 4999)
    times = {int(n): tuple(map(int, when)) for n, *when in map(str.split, recording.stdout.splitlines())}
    counts = collections.Counter()
    for sample in recording.script():
        seconds, micros = re.search(r" (\d+)\.(\d{6}): ", sample.head).groups()
        now = int(seconds) * 10**9 + int(micros) * 1000
        for frame in sample.python:
            counts["unread"] += frame.name == "[unreadable Python function]"
            match = re.match(r"/(made|eval)/(\d{6})", frame.file)
            if not match or (match[1] == "made" and frame.name == "<module>"):
                continue
            number = int(match[2])
            begin, end = times[number][:2] if match[1] == "made" else times[number][2:]
            if match[1] == "eval" and frame.name == "<module>":
                continue
            counts[match[1]] += 1
            check(match[1] == "eval" or frame.name == f"f{match[2]}", frame, "has two numbers")
            # Times are printed in microseconds.
            check(begin - 1000 <= now <= end + 1000, frame, "was sampled at", now, "but ran from", begin, "to", end)
    check(counts["made"] > 20 and counts["eval"] > 20, counts)
    told = re.search(r"([\d,]+) samples? ran Python code that could not be read", recording.read("report"))
    check(bool(told) == bool(counts["unread"]), "the report counts unread code otherwise:", told, counts)
    return f"{len(times)} functions, {counts['made'] + counts['eval']} frames, {counts['unread']} unread"


DEEP = """
import sys, threading, time
def bottom():
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
def down(n):
    if n > 1: return down(n - 1)
    bottom()
def top(depth):
    down(depth)
sys.setrecursionlimit(1000000)
threading.stack_size(256 << 20)
for depth in 1000, 10000:
    thread = threading.Thread(target=top, args=(depth,))
    thread.start(); thread.join()
"""


@live.test_each_python
def recursion_is_whole_or_marked(python):
    """1,000 calls are whole. Of 10,000 the leaf end is kept, and the cut shows in script, report and
    folded stacks."""
    recording = live.Recording([python, "-c", DEEP], "-e", "cpu-clock:u", "-F", 999)
    depths = collections.defaultdict(collections.Counter)
    for sample in recording.script():
        names = [frame.name for frame in sample.frames]
        if "bottom" not in names:
            continue
        cut = "[deeper Python callers]" in names
        check(("top" in names) != cut, names[-4:])
        depths["cut" if cut else "whole"][names.count("down")] += 1
    check(set(depths["whole"]) == {1000}, depths)
    check(depths["cut"] and all(1000 < n < 1024 for n in depths["cut"]), depths)
    report = recording.read("report", "--percent-limit", "0")
    check("[deeper Python callers]" in report and re.search(r"Python stacks? (is|are) deeper", report), report)
    folded = [line for line in recording.read("export", "--format", "folded").splitlines() if ";bottom" in line]
    shown = [line for line in folded if ";[deeper Python callers];down;" in line]
    check(shown and len(shown) < len(folded), [f[:200] for f in folded])
    return {kind: sum(counts.values()) for kind, counts in depths.items()}


@live.test
def huge_functions_have_their_lines():
    """A line table of more than 64 KiB that begins behind line 65,535."""
    with live.scratch_folder() as folder:
        path = f"{folder}/huge.py"
        loop = "    for i in range(300000): x ^= i\n"
        with open(path, "w") as file:
            file.write("\n" * 69999 + "def huge(x):\n" + "    x += x * x - x // (x + 1)\n" * 40000 + loop + "    return x\n")
            file.write("import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: huge(1 & 0)\n")
        recording = live.Recording([live.any_python(), path], "-e", "cpu-clock:u", "-F", 999)
        rows = collections.Counter()
        for row in recording.report()["lines"]:
            if row["function"] == "huge":
                rows[row["line"]] += sum(event["total_samples"] for event in row["events"].values())
        check(rows and rows.most_common(1)[0][0] == 110001, rows.most_common(5))
        check(all(70000 <= line <= 110002 for line in rows), sorted(rows)[:3], sorted(rows)[-3:])
        functions = {f["qualname"]: f for f in recording.report()["functions"]}
        check(functions["huge"]["line"] == 70000, functions["huge"])
        text = recording.read("annotate", "huge")
        check(re.search(r"110001\s+for i in range", text), text[-2000:])
        return f"{rows[110001]} of {sum(rows.values())}"


MODULE = """{head}
import time
def {name}():
    # {text}
    end = time.process_time() + 0.1
    while time.process_time() < end: text = "{text}"
{name}()
"""
MODULES = (
    ("# -*- coding: latin-1 -*-", "größe", "Käse ÿ", "latin-1"),
    ("#!/usr/bin/python\n# vim: set fileencoding=cp1252 :", "plain", "100 €", "cp1252"),
    ("# coding: koi8-r", "имя", "Привет", "koi8-r"),
    ("", "名前", "日本語", "utf-8-sig"),  # with a byte order mark
    ("", "\U00020000x", "\U0001f40d", "utf-8"),
    ("", "n" * 3000, "long", "utf-8"),
    ("", "名" * 900, "long and wide", "utf-8"),
)


@live.test
def sources_and_names_of_any_encoding():
    """PEP 263, byte order marks, and names that CPython stores in one, two and four bytes a letter."""
    with live.scratch_folder() as folder:
        for number, (head, name, text, encoding) in enumerate(MODULES):
            with open(f"{folder}/module{number}.py", "wb") as file:
                file.write(MODULE.format(head=head, name=name, text=text).encode(encoding))
        with open(f"{folder}/main.py", "w") as file:
            file.write("import time; time.sleep(0.2)\n")
            file.writelines(f"import module{number}\n" for number in range(len(MODULES)))
        recording = live.Recording([live.any_python(), f"{folder}/main.py"], "-e", "cpu-clock:u", "-F", 999)
        names = [f["qualname"] for f in recording.report()["functions"] if f["kind"] == "python"]
        for _, name, text, _ in MODULES:
            check(name in names, name, "is not among", names)
            annotated = recording.read("annotate", name)
            check(f'text = "{text}"' in annotated, annotated)
        return f"{len(MODULES)} sources"


# As code objects may be called, if not in a source: what is shown, or kept, of each is as long as itself.
NAMES = (
    "esc\x1b[31m", "new\nline", "tab\tx", "semi;colon", "del\x7f\x9b", "bidi\u202ex", "nul\0x", "lone\ud800x",
    "größe\x1b", "日本\x07", "\U0001f40d\r", "",
)
NAMED = """
import time
time.sleep(0.2)
def spin():
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
for name in {names}:
    spin.__code__ = spin.__code__.replace(co_name=name, **{{"co_qualname": name}} if {qualname} else {{}})
    spin()
"""


@live.test_any_python
def names_of_control_characters(python):
    """Kept as they are, but for NUL and halves of a letter, and shown so that no terminal obeys them."""
    if live.version_of(python) < (3, 8):
        raise live.Skip("code.replace() came with 3.8")
    program = NAMED.format(names=ascii(NAMES), qualname=live.version_of(python) >= (3, 11))
    recording = live.Recording([python, "-c", program], "-e", "cpu-clock:u", "-F", 999)
    names = {f["qualname"] for f in recording.report()["functions"] if f["kind"] == "python"}
    for name in NAMES:
        check(re.sub("[\0\ud800]", "\ufffd", name) in names, ascii(name), "is not among", ascii(names))
    folded = recording.read("export", "--format", "folded")
    check(not any(name.startswith("colon") for line in folded.splitlines() for name in line.split(";")), folded)
    for text in (folded, recording.read("report", "--percent-limit", "0"), recording.read("script")):
        wild = [c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")]
        check(not wild and "esc\\x1b[31m" in text, ascii(wild), ascii(text[:2000]))
    return f"{len(NAMES)} names"


CALLBACKS = """
import ctypes, functools, sqlite3, sys, time, zlib

def spin(n=3000):
    x = 0
    for i in range(n): x ^= i
    return x
def key(v): spin(); return v
def reducer(a, b): spin(); return a
def compare(a, b): spin(); return 0
def adder(v): spin(); return v
class Item:
    def __eq__(self, other): spin(); return False
    def __hash__(self): spin(); return 1
    def __del__(self): spin()
    def __getattr__(self, name): spin(); return name
c_int_p = ctypes.POINTER(ctypes.c_int)
compare_c = ctypes.CFUNCTYPE(ctypes.c_int, c_int_p, c_int_p)(compare)
libc = ctypes.CDLL(None)
values = (ctypes.c_int * 8)(*range(8))
base = sqlite3.connect(":memory:")
base.create_function("adder", 1, adder)
def by_sorted(): sorted(range(8), key=key)
def by_reduce(): functools.reduce(reducer, range(8))
def by_ctypes(): libc.qsort(values, 8, 4, compare_c)
def by_sqlite(): base.execute("select adder(1)").fetchall()
def by_set(): {Item() for _ in range(4)}
def by_getattr(): Item().anything
end = time.process_time() + 0.3
while time.process_time() < end:
    by_sorted(); by_reduce(); by_ctypes(); by_set()
    for _ in range(4): by_sqlite(); by_getattr()
"""
CALLERS = {
    "key": {"by_sorted"}, "reducer": {"by_reduce"}, "compare": {"by_ctypes"}, "adder": {"by_sqlite"},
    "Item.__eq__": {"by_set.<locals>.<setcomp>", "by_set"}, "Item.__hash__": {"by_set.<locals>.<setcomp>", "by_set"},
    "Item.__getattr__": {"by_getattr"},
}


@live.test_each_python
def callbacks_from_c_have_their_callers(python):
    if subprocess.run([python, "-c", "import ctypes, sqlite3"], capture_output=True).returncode:
        raise live.Skip("this Python has no ctypes or no sqlite3")
    plain = {name.split(".")[-1] for callers in CALLERS.values() for name in callers}
    seen = collections.Counter()
    for sample in live.Recording([python, "-c", CALLBACKS], "-e", "cpu-clock:u", "-F", 1999).script():
        names = [frame.name.split(".")[-1] for frame in sample.python]
        # Modules have functions of these names too: ctypes.CDLL.__getattr__ runs the first time that
        # by_ctypes() asks for qsort.
        own = [name if frame.file == "<string>" else "" for name, frame in zip(names, sample.python)]
        for callee, callers in CALLERS.items():
            callee = callee.split(".")[-1]
            if callee not in own:
                continue
            seen[callee] += 1
            caller = names[own.index(callee) + 1]
            check(caller in {c.split(".")[-1] for c in callers}, callee, "is called by", names)
            check(names[-1] == "<module>", names)
    check(len(seen) == len(CALLERS) and plain, seen)
    return ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))


# spin(), which shows the frames that the interpreter itself sees, innermost first.
SPIN = """
import sys, time
def truth():
    frame, shown = sys._getframe(2), []
    while frame:
        shown.append("%s:%d" % (frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    print(" ".join(shown), flush=True)
def spin():
    truth()
    end = time.process_time() + 0.1
    while time.process_time() < end: pass
    return True
# For pyperf to see the interpreter also where the machine is busy.
time.sleep(0.2)
"""


def stacks_are_the_interpreters(python, program):
    """Above spin() every sample has one of the stacks that were shown, and each stack has some."""
    recording = live.Recording([python, "-c", SPIN + program], "-e", "cpu-clock:u", "-F", 999)
    known = {tuple(line.split()) for line in recording.stdout.splitlines()}
    check(len(known) >= 3, known)
    seen = collections.Counter()
    for sample in recording.script():
        names = [frame.name.split(".")[-1] for frame in sample.python]
        if "spin" not in names or "truth" in names:
            continue
        above = names.index("spin") + 1
        stack = tuple(f"{name}:{frame.line}" for name, frame in zip(names[above:], sample.python[above:]))
        check(stack in known, "sampled", stack, "but the interpreter knows", known)
        seen[stack] += 1
    check(set(seen) == known, "not sampled:", known - set(seen))
    return f"{len(seen)} stacks, {sum(seen.values())} samples"


ASYNC = """
import asyncio
async def leaf():
    await asyncio.sleep(0)
    spin()
async def middle():
    await leaf()
async def outer():
    await asyncio.gather(middle(), asyncio.sleep(0))
async def stream():
    for i in range(2):
        await asyncio.sleep(0)
        spin()
        yield i
async def reading():
    async for _ in stream(): pass
def generator():
    yield from (spin() for _ in range(1))
async def main():
    await outer()
    await reading()
    await asyncio.get_running_loop().run_in_executor(None, lambda: list(generator()))
if sys.version_info >= (3, 7):
    asyncio.run(main())
else:
    asyncio.get_running_loop = asyncio.get_event_loop
    asyncio.get_event_loop().run_until_complete(main())
"""


@live.test_each_python
def awaiting_chains_are_the_interpreters(python):
    """Coroutines, tasks, asynchronous generators and executors."""
    return stacks_are_the_interpreters(python, ASYNC)


# 3.12 made comprehensions part of the function that they stand in, 3.13 also of a class.
COMPREHENSIONS = """
def listed():
    return [
        spin()
        for _ in "a"
    ]
def nested():
    return [
        [
            spin() for _ in "a"
        ]
        for _ in "b"
    ]
def conditional():
    return [
        c for c in "a"
        if spin()
    ]
def mapped():
    return {
        c:
            spin()
        for c in "a"
    }
def lazy():
    return list(
        spin()
        for _ in "a"
    )
listed(), nested(), conditional(), mapped(), lazy()
class Body:
    members = [
        spin()
        for _ in "a"
    ]
"""


@live.test_each_python
def comprehensions_are_the_interpreters(python):
    """Frames of their own, or lines of the function that they are in."""
    return stacks_are_the_interpreters(python, COMPREHENSIONS)


# Enters the interpreter's loop anew by way of C code, several times, and counts its native frames by
# the C library's own unwinder.
NESTED = """
import ctypes, functools, sys
libc = ctypes.CDLL(None)
class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]
def loops():
    places, info = (ctypes.c_void_p * 1000)(), Info()
    for place in places[:libc.backtrace(places, 1000)]:
        if libc.dladdr(ctypes.c_void_p(place), ctypes.byref(info)):
            yield info.name == b"_PyEval_EvalFrameDefault"
def depth(frame):
    count = 0
    while frame:
        count, frame = count + 1, frame.f_back
    return count
def spin(x=0):
    # loops() is a generator: it has a loop of its own while sum() runs it.
    print(sum(loops()) - 1, depth(sys._getframe()), flush=True)
    for _ in range(30):
        for i in range(100000): x ^= i
class Made:
    def __init__(self): self.run()
    def run(self): spin()
def plain(): return Made()
def reducer(a, b): return plain()
def key(v): return functools.reduce(reducer, range(2))
def values(): yield sorted([1], key=key)
def nested(): return list(values())
spin()
nested()
exec("spin()")
"""


@live.test_each_python
def runs_are_the_native_loops(python):
    """As many runs of Python frames are marked as the interpreter's loop has native frames."""
    if subprocess.run([python, "-c", "import ctypes"], capture_output=True).returncode:
        raise live.Skip("this Python has no ctypes")
    recording = live.Recording([python, "-c", NESTED], "-e", "cpu-clock:u", "-F", 999, "-z", "0")
    known = {int(depth): int(loops) for loops, depth in map(str.split, recording.stdout.splitlines())}
    if min(known.values()) < 1:
        raise live.Skip("this build is stripped of the loop's name")
    data = recording.path.read_bytes()
    runs = collections.defaultdict(collections.Counter)
    for match in re.finditer(b"FRM1", data):
        _, status, count, _, _ = struct.unpack_from("=IHHII", data, match.start())
        if status == 0 and count in known:
            frames = [struct.unpack_from("=QII", data, match.start() + 16 + 16 * i) for i in range(count)]
            runs[count][sum(instr >> 31 for _, _, instr in frames)] += 1
    for depth, loops in known.items():
        # A few are of calls that are as deep by chance: before the program, in its first lines.
        right, samples = runs[depth][loops], sum(runs[depth].values())
        check(right > 10 and right >= 0.8 * samples, depth, "deep:", loops, "loops, but runs:", dict(runs[depth]))
    return ", ".join(f"{loops} runs in {depth} frames" for depth, loops in sorted(known.items()))


if __name__ == "__main__":
    sys.exit(live.run())
