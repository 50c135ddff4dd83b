#!/usr/bin/env python3
"""Bytecode in recordings: its instructions are those of dis, their samples those of their lines."""
import collections
import json
import sys

import live
from live import check

WORK = """
import dis, time
class Point:
    def __init__(self, v): self.v = v
def hot(n, p):
    total = 0
    for i in range(n):
        total += i * p.v % 7
        if total > 100:
            total = sorted([total, 3], key=lambda x: -x)[1]
    return total
end = time.process_time() + 0.2
while time.process_time() < end:
    hot(2000, Point(3))
def names(i):
    of_name = i.opcode in dis.hasname + dis.haslocal + dis.hasfree
    return "" if not of_name else i.argval if isinstance(i.argval, str) else ", ".join(i.argval)
for i in dis.get_instructions(hot):
    print(i.offset, i.opname, i.arg, names(i), sep="|")
time.sleep(0.3)  # names of arguments are read from a process that lives
"""


@live.test_each_python
def instructions_are_those_of_dis(python):
    """Each once, below its line, with the names of its arguments and the samples that hit it."""
    recording = live.Recording([python, "-c", WORK], "-e", "cpu-clock", "-F", 999)
    report = json.loads(recording.read("annotate", "--json", "--bytecode", "--callers", "--callees", "hot"))
    lines = report["lines"]
    got = sorted((i["offset"], i["opcode"], i.get("arg"), i.get("argument")) for row in lines for i in row["bytecode"])
    wanted = collections.OrderedDict()
    for line in recording.stdout.splitlines():
        offset, name, arg, argument = line.split("|")
        wanted[int(offset)] = name, None if arg == "None" else int(arg), argument
    check(len({g[0] for g in got}) == len(got), "an instruction is there twice", got)
    for offset, name, arg, argument in got:
        check(wanted[offset][:2] == (name, arg), offset, name, arg, "but dis says", wanted[offset])
        check(not wanted[offset][2] or argument == wanted[offset][2], argument, "but dis says", wanted[offset])
    for row in lines:
        event = row["events"]["cpu-clock"]
        below = [i["events"]["cpu-clock"] for i in row["bytecode"] if "events" in i]
        for key in "self_samples", "total_samples":
            check(sum(b[key] for b in below) == event[key], row["line"], key, below, "of", event)
        callers = row["callers"]
        check(all(c["function"] == "<module>" and c["line"] in (13, 14) for c in callers), callers)
        check(sum(c["events"]["cpu-clock"]["total_samples"] for c in callers) == event["total_samples"], callers)
    hot = max(lines, key=lambda row: row["events"]["cpu-clock"]["self"])
    check(hot["line"] in (7, 8, 10), hot)
    return f"{len(got)} instructions of {len(wanted)} in {len(lines)} lines"


if __name__ == "__main__":
    sys.exit(live.run())
