"""Programs whose time on each line is known.

    python truth.py SECONDS [SECTION...]

Each section runs statements that carry a mark (`#: name`), for SECONDS of CPU time, in rounds of
random length so that no round keeps step with a sampling clock. Around each the program reads its own thread's
CPU clock; the sums are printed as JSON at the end: {section: {mark: nanoseconds}}. Marks of one
section named x.1, x.2 ... do equal work by construction: the same statement, equally often.
A statement between two reads takes 50 microseconds or more, a read a tenth of one.
"""
import binascii
import hashlib
import json
import os
import random
import sys
import threading
import time

try:
    now = time.thread_time_ns
except AttributeError:  # 3.6
    def now():
        return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) * 1e9
rng = random.Random(7)
sections = {}


def section(function):
    sections[function.__name__] = function
    return function


class Clock:
    """Sums the CPU time between reads by mark."""

    def __init__(self):
        self.spent = {}
        self.last = now()

    def skip(self):
        self.last = now()

    def take(self, mark):
        at = now()
        self.spent[mark] = self.spent.get(mark, 0) + at - self.last
        self.last = now()


def rounds(seconds):
    end = now() + seconds * 1e9
    while now() < end:
        yield rng.randrange(1500, 4500)


@section
def equal_lines(seconds):
    clock, x = Clock(), 1
    for n in rounds(seconds):
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: equal.1
        clock.take("equal.1")
        for _ in range(n): x = x * 3 & 1023  #: equal.2
        clock.take("equal.2")
    return clock.spent


def seventy(n, x=1):
    for _ in range(7 * n): x = x * 3 & 1023  #: seventy
def twenty(n, x=1):
    for _ in range(2 * n): x = x * 3 & 1023  #: twenty
def ten(n, x=1):
    for _ in range(n): x = x * 3 & 1023  #: ten


@section
def functions(seconds):
    clock = Clock()
    for n in rounds(seconds):
        clock.skip()
        seventy(n)
        clock.take("seventy")
        twenty(n)
        clock.take("twenty")
        ten(n)
        clock.take("ten")
    return clock.spent


@section
def statement(seconds):
    """One statement over several lines, each a call of C code."""
    clock, values = Clock(), list(range(3000))
    for n in rounds(seconds):
        part = values[:n]
        clock.skip()
        result = (
            sum(part) + sum(part) + sum(part) + sum(part) + sum(part) + sum(part),  #: sum.1
            sum(part) + sum(part) + sum(part) + sum(part) + sum(part) + sum(part),  #: sum.2
            sum(part) + sum(part) + sum(part) + sum(part) + sum(part) + sum(part),  #: sum.3
        )
        clock.take("sum.1")
        assert len(result) == 3
    third = clock.spent.get("sum.1", 0) / 3
    return {"sum.1": third, "sum.2": third, "sum.3": third}


@section
def gil_held(seconds):
    clock, x = Clock(), 1
    modulus = (1 << 521) - 1
    keys = [rng.random() for _ in range(3000)]
    for n in rounds(seconds):
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: bytecode
        clock.take("bytecode")
        for _ in range(n >> 10): pow(3, modulus - 2, modulus)  #: pow
        clock.take("pow")
        keys.sort(key=str)  #: sort
        clock.take("sort")
        rng.shuffle(keys)
    return clock.spent


@section
def gil_released(seconds):
    clock, x = Clock(), 1
    block = bytes(range(256)) * 2048
    for n in rounds(seconds):
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: python
        clock.take("python")
        hashlib.blake2b(block[: 40 * n]).digest()  #: hash
        clock.take("hash")
        binascii.crc32(block) + binascii.crc32(block)  #: crc
        clock.take("crc")
    return clock.spent


@section
def kernel(seconds):
    clock, x = Clock(), 1
    zero = os.open("/dev/zero", os.O_RDONLY)
    block = bytearray(1 << 18)
    into = [block]
    for n in rounds(seconds):
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: user
        clock.take("user")
        for _ in range(n >> 6): os.readv(zero, into)  #: read
        clock.take("read")
        for _ in range(n): os.getppid()  #: getppid
        clock.take("getppid")
    os.close(zero)
    return clock.spent


DEPTH = 8


def descend(depth, n, x=1):
    for _ in range(n): x = x * 3 & 1023  #: descend
    if depth > 1:
        descend(depth - 1, n)


@section
def recursion(seconds):
    """Every depth from 1 to DEPTH does the same work."""
    clock = Clock()
    for n in rounds(seconds):
        clock.skip()
        descend(DEPTH, n)
        clock.take("descend")
    return clock.spent


def producer(clock, count, n, x=1):
    for _ in range(count):
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: turn.1
        clock.take("turn.1")
        yield x


def doubled(clock, source, n, x=1):
    for value in source:
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: turn.2
        clock.take("turn.2")
        yield 2 * value


@section
def generators(seconds):
    clock, x = Clock(), 1
    for n in rounds(seconds):
        for value in doubled(clock, producer(clock, 5, n), n):
            clock.skip()
            for _ in range(n): x = x * 3 & 1023  #: turn.3
            clock.take("turn.3")
    return clock.spent


def failing(clock, n, x=1):
    clock.skip()
    for _ in range(n): x = x * 3 & 1023  #: try.1
    clock.take("try.1")
    raise ValueError(x)


def cleaning(clock, n, x=1):
    try:
        failing(clock, n)
    finally:
        clock.skip()
        for _ in range(n): x = x * 3 & 1023  #: try.2
        clock.take("try.2")


@section
def exceptions(seconds):
    clock, x = Clock(), 1
    for n in rounds(seconds):
        try:
            cleaning(clock, n)
        except ValueError:
            clock.skip()
            for _ in range(n): x = x * 3 & 1023  #: try.3
            clock.take("try.3")
    return clock.spent


def short_thread(seconds, spent, x=1):
    begin = now()
    while now() - begin < seconds * 1e9:
        for _ in range(3000): x = x * 3 & 1023  #: short_thread
    spent["short_thread"] = now() - begin


def long_thread(seconds, spent, x=1):
    begin = now()
    while now() - begin < seconds * 1e9:
        for _ in range(3000): x = x * 3 & 1023  #: long_thread
    spent["long_thread"] = now() - begin


def hash_thread(seconds, spent):
    block = bytes(1 << 20)
    begin = now()
    while now() - begin < seconds * 1e9:
        hashlib.blake2b(block).digest()  #: hash_thread
    spent["hash_thread"] = now() - begin


@section
def threads(seconds):
    """Two compete for the interpreter, one computes without it."""
    spent = {}
    running = [
        threading.Thread(target=short_thread, args=(seconds / 5, spent)),
        threading.Thread(target=long_thread, args=(seconds / 2, spent)),
        threading.Thread(target=hash_thread, args=(seconds / 3, spent)),
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return spent


def main():
    seconds = float(sys.argv[1])
    chosen = sys.argv[2:] or list(sections)
    print(json.dumps({name: sections[name](seconds) for name in chosen}))


if __name__ == "__main__":
    main()
