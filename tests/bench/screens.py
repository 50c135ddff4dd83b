"""The part of `run` that measures the interactive views, through a terminal."""
import fcntl
import os
import pty
import random
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time

import replicate

COLUMNS, ROWS = 120, 40
QUIET = 0.15 # s without output: the screen is drawn
PATIENCE = 120
# What a reader presses, one after the other, in the report; each changes what is seen.
KEYS = [
    ("one row down", b"j"), ("one page down", b" "), ("last row", b"G"), ("first row", b"g"), ("open the row", b"l"),
    ("open all below", b"E"), ("close all", b"C"), ("sort by the next column", b">"), ("search", b"/work_2\r"),
    ("threads", b"t"), ("zoom into one", b"\r"), ("zoom out", b"\x7f"), ("files", b"F"), ("zoom into one", b"\r"),
    ("open the row", b"l"), ("flame graph", b"f"), ("zoom in", b"jjjj\r"), ("search", b"/work_3\r"), ("back", b"q"),
    ("annotate", b"\r"), ("back", b"q"), ("help", b"?"), ("back", b"q"),
]
# perf asks for the event first.
PERF_KEYS = [("the event's functions", b"\r"), ("one row down", b"\x1b[B"), ("one page down", b"\x1b[6~"), ("last row", b"\x1b[F"), ("open the row", b"+")]


# The same in the annotation of a function.
SOURCE_KEYS = [
    ("calls of the line", b"c"), ("calls of all lines", b"C"), ("bytecode of the line", b"b"), ("last row", b"G"),
    ("first row", b"g"), ("next hot line", b"\t"),
]


class Screen:
    """A command on a terminal of its own."""

    def __init__(self, command):
        self.start = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.environ["TERM"] = "xterm-256color"
            os.execvp(command[0], command)

    def drawn(self, since, until=b""):
        """Seconds from then to the last output before it is quiet, after some that has `until`."""
        seen, last = b"", since
        while True:
            waited = QUIET if seen and until in seen else PATIENCE
            if not select.select([self.fd], [], [], waited)[0]:
                return last - since
            seen += os.read(self.fd, 1 << 16)
            last = time.perf_counter()

    def press(self, keys):
        start = time.perf_counter()
        os.write(self.fd, keys)
        return self.drawn(start)

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def measured(command, keys, until, rounds):
    """(ms to the first screen, {key: ms}): medians."""
    first, took = [], {name: [] for name, _ in keys}
    for _ in range(rounds):
        screen = Screen(command)
        first.append(screen.drawn(screen.start, until))
        for name, key in keys:
            took[name].append(screen.press(key))
        screen.end()
    return 1e3 * statistics.median(first), {name: 1e3 * statistics.median(times) for name, times in took.items()}


def place(function, line):
    return f"work_{function} (/src/module_{function % 40}.py:{10 + line})"


def all_different(path, count):
    """As many stacks as samples' thirds, no two of them the same: what a program with deep recursion over many
    functions gives. From one to the next some frames end and others begin."""
    chance, seen, stack = random.Random(1), set(), ["python3"] + [place(n, 0) for n in range(20)]
    with open(path, "w") as out:
        while len(seen) < count:
            del stack[max(1, len(stack) - 1 - int(chance.expovariate(0.2))) :]
            for _ in range(min(60 - len(stack), 1 + int(chance.expovariate(0.2)))):
                stack.append(place(int(300 * chance.random() * chance.random()), int(3 * chance.random())))
            folded = ";".join(stack)
            if folded not in seen:
                seen.add(folded)
                out.write(f"{folded} 3\n")


def parts(bench):
    """By name; `bench` is the module that has output(), say() and the rest."""

    def keys_of(what, command, keys, until, options, limits=True):
        first, took = measured(command, keys, until, options.rounds)
        bench.say(f"{what}: first screen", f"{first:.0f} ms", *(("under 1 s", first < 1e3) if limits else ()))
        for name, ms in took.items():
            bench.say(f"  {name}", f"{ms:.1f} ms", "under 50 ms", ms < 50)

    def screen(options):
        """Of a million samples, most of whose stacks differ."""
        with tempfile.TemporaryDirectory() as folder:
            short, long = (f"{folder}/{name}" for name in ("short", "long"))
            branchy = [bench.PYTHON, str(bench.TOP / "tests/workloads/branchy.py"), "2" if options.short else "12"]
            bench.output([*bench.pyperf_record(short, 9999, "-g", "-z", "0"), *branchy])
            want = 1e5 if options.short else 1e6
            replicate.replicate(short, long, round(want / bench.samples_of(short)["total"]) or 1)
            total = bench.samples_of(long)["total"]
            keys_of(f"report of {total:,} samples on a terminal", [bench.PYPERF, "report", "-i", long], KEYS, b"function", options)
            keys_of("annotation of a function of them", [bench.PYPERF, "annotate", "work_2", "-i", long], SOURCE_KEYS, b"self", options, False)
            different = f"{folder}/different.folded"
            count = 30_000 if options.short else 300_000
            all_different(different, count)
            # Text takes long to read: only keys are judged.
            keys_of(f"report of {count:,} different stacks", [bench.PYPERF, "report", "-i", different], KEYS, b"function", options, False)
            keys_of("annotation of a function of them", [bench.PYPERF, "annotate", "work_0", "-i", different], SOURCE_KEYS, b"self", options, False)
            if not shutil.which("perf"):
                return
            first, took = measured(["perf", "report", "--tui", "-i", long], PERF_KEYS, b"Available samples", options.rounds)
            bench.say("  perf report --tui: first screen", f"{first:.0f} ms")
            for name, ms in took.items():
                bench.say(f"    {name}", f"{ms:.1f} ms")

    return {"screen": screen}
