#!/usr/bin/env python3
"""Every build of CPython that is here: static, shared, stripped, debug, free-threaded, with the JIT."""
import collections
import json
import subprocess

import live
from live import check

EDGES = live.WORKLOADS / "edges.py"

# Prints {qualname: [lines]} of the file that it is given, as this interpreter compiles it.
LINES = """
import dis, json, sys
def walk(code, found):
    name = getattr(code, "co_qualname", code.co_name)
    lines = code.co_lines() if hasattr(code, "co_lines") else ((0, 0, line) for _, line in dis.findlinestarts(code))
    found.setdefault(name, {code.co_firstlineno}).update(line or 0 for _, _, line in lines)
    for constant in code.co_consts:
        if hasattr(constant, "co_firstlineno"):
            walk(constant, found)
found = {}
with open(sys.argv[1], "rb") as file:
    walk(compile(file.read(), sys.argv[1], "exec", dont_inherit=True), found)
print(json.dumps({name: sorted(lines) for name, lines in found.items()}))
"""


def native_shares(report):
    """Shares of the event by native file."""
    event = report["events"][0]["name"]
    native = collections.Counter()
    for function in report["functions"]:
        if function["kind"] != "python":
            native[function["file"]] += function["events"][event]["self"]
    return native


def shares(python, **env):
    """Records the program, checks each of its rows; what was recorded, and its native shares."""
    answer = subprocess.run([python, "-c", LINES, EDGES], capture_output=True, text=True, check=True)
    known = json.loads(answer.stdout)
    recording = live.Recording([python, EDGES, 1], "-e", "cpu-clock:u", "-F", 1999, env=env)
    report = recording.report()
    samples = report["samples"]
    rows = [row for row in report["lines"] if row["file"] == str(EDGES)]
    for row in rows:
        check(row["line"] in known.get(row["function"], ()), row["function"], "has no line", row["line"])
    names = {row["function"] for row in rows}
    check({"leaf", "even", "numbers", "joined"} <= names, "only", names)
    check(samples["total"] > 100 and samples["lost"] == 0, samples)
    # What runs before the interpreter does is among them.
    share = samples["python_lines"] / samples["total"]
    return f"{share:.1%} of {samples['total']} samples, {len(rows)} lines", native_shares(report)


@live.test_each_other_build
def lines_of(python):
    return shares(python)[0]


# 3.13 does not tell; it runs its JIT where it was built with it.
HAS_JIT = """
import sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
sys.exit(not (sys._jit.is_available() if hasattr(sys, "_jit") else "--enable-experimental-jit" in options))
"""

# Compiled after some thousand rounds.
HOT = """
import time
def hot(n):
    total = i = 0
    while i < n:
        total += i & 7
        i += 1
time.sleep(0.2) # for pyperf to see the interpreter before there is such code
end = time.process_time() + 0.3
while time.process_time() < end:
    hot(100000)
"""


@live.test
def lines_with_jit():
    """Where the JIT runs, its code is its function's: the frames say so, its addresses do not."""
    pythons = {name: p for name, p in live.BUILDS.items() if subprocess.run([p, "-c", HAS_JIT]).returncode == 0}
    if not pythons:
        raise live.Skip("no CPython with a JIT here")
    told = []
    for name, python in pythons.items():
        jit = {"PYTHON_JIT": "1"}
        text, native = shares(python, **jit)
        hot = live.Recording([python, "-c", HOT], "-e", "cpu-clock:u", "-F", 1999, env=jit).report()
        loop = native_shares(hot)
        # What runs before the first sample that tells, and where a chain broke.
        for share in (native["[anon]"], loop["[anon]"]):
            check(share < 0.02, f"{name}: {share:.2%} in code without a file")
        check(any(row["function"] == "hot" for row in hot["lines"]), name, hot["samples"])
        told.append(f"{name}: {text}, {native['[anon]']:.2%} in code without a file, {loop['[anon]']:.2%} of a loop")
    return "; ".join(told)


if __name__ == "__main__":
    live.run()
