#!/usr/bin/env python3
"""No stack may be impossible, no line one that its code does not have, and none may be missing."""
import collections
import functools
import json
import re
import subprocess

import judge
import live
from live import check

EDGES = judge.EDGES

# Prints, for each file named on standard input, {qualname: [lines]} as this interpreter compiles it.
CO_LINES = """
import dis, json, sys, types
def lines(code):
    if hasattr(code, "co_lines"):
        return (line or 0 for _, _, line in code.co_lines())
    return (line for _, line in dis.findlinestarts(code))
def walk(code, found):
    name = getattr(code, "co_qualname", code.co_name)
    # Instructions without a line are reported as line 0; a frame that has not begun is on the first.
    found.setdefault(name, set()).update(lines(code))
    found[name].add(code.co_firstlineno)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            walk(constant, found)
answer = {}
for path in sys.stdin.read().splitlines():
    found = {}
    with open(path, "rb") as file:
        walk(compile(file.read(), path, "exec", dont_inherit=True), found)
    answer[path] = {name: sorted(lines) for name, lines in found.items()}
print(json.dumps(answer))
"""


@functools.lru_cache(maxsize=None)
def recorded(python):
    return live.Recording([python, EDGES, 1.5], "-e", "cpu-clock", "-F", judge.RATE)


def possible_calls(python, recording):
    """How often a line of the program called a function, where it says that it may; others fail."""
    edges = judge.Edges(python).judge(recording.script())
    check(not edges.impossible, *edges.impossible[:1])
    check(edges.whole >= 0.995 * edges.stacks, edges.whole, "of", edges.stacks, "stacks reach the program's start")
    return edges.pairs


@live.test_each_python
def every_call_is_in_the_program(python):
    pairs = possible_calls(python, recorded(python))
    names = {name for _, name in pairs}
    wanted = {"leaf", "even", "Shape.Inner.größe", "Shape.__init__", "inner", "numbers"}
    check({live.code_name(python, name) for name in wanted} <= names, "only", names)
    # From 3.12 on a comprehension is part of its function.
    inlined = live.code_name(python, "shapes.<locals>.<listcomp>") not in names
    check(inlined == (live.version_of(python) >= (3, 12)), names)
    return f"{sum(pairs.values())} calls, {len(pairs)} of them different"


@live.test_each_python
def lines_are_those_of_the_code(python):
    """Names and lines of every sampled function, the standard library's too, as co_lines() has them."""
    recording = live.Recording([python, live.WORKLOADS / "train.py"], "-e", "cpu-clock", "-F", 999)
    seen = collections.defaultdict(set)
    for source in (recorded(python), recording):
        for row in source.report()["lines"]:
            if row["file"].startswith("/"):
                seen[row["file"]].add((row["function"], row["line"]))
    check(len(seen) >= 2, "only", list(seen))
    answer = subprocess.run(
        [python, "-c", CO_LINES], input="\n".join(seen), capture_output=True, text=True, check=True
    )
    known = json.loads(answer.stdout)
    for path, rows in seen.items():
        for name, line in rows:
            check(name in known[path], name, "is no function of", path)
            check(line in known[path][name], name, "has no line", line, "in", path)
    return f"{sum(map(len, seen.values()))} lines of {len(seen)} files"


@live.test_each_python
def nearly_all_samples_have_lines(python):
    """Of the samples in user space, over several kinds of work."""
    recording = judge.worked(python, 20_000)
    samples = recording.report()["samples"]
    check(samples["total"] > 10_000, samples)
    check(samples["lost"] == 0, samples)
    share = judge.coverage(recording)
    check(share >= 0.995, f"{share:.4f} of", samples)
    script = recording.script()
    check(len(script) == samples["total"], "script prints", len(script), "samples of", samples["total"])
    with_lines = sum(bool(s.python) for s in script)
    check(samples["python_lines"] <= with_lines <= samples["python"], "script has", with_lines, "but report", samples)
    return f"{share:.2%} of {samples['total']}"


@live.test_each_python
def names_are_exact(python):
    """Qualified names, also beyond ASCII, and files with spaces, quotes and control characters."""
    with live.scratch_folder() as folder:
        path = f"{folder}/späce \t日本\x1b[31m.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "import time\n"
                "class Größe:\n"
                "    def 名前(self):\n"
                "        def innen():\n"
                "            end = time.monotonic() + 0.5\n"
                "            while time.monotonic() < end: pass\n"
                "        innen()\n"
                "Größe().名前()\n"
            )
        recording = live.Recording([python, path], "-e", "cpu-clock")
        names = {f["qualname"]: f for f in recording.report()["functions"] if f["kind"] == "python"}
        name = live.code_name(python, "Größe.名前.<locals>.innen")
        function = names.get(name)
        check(function, "is not among", list(names))
        check(function["file"] == path and function["line"] == 4, function)
        text = recording.read("report")
        check(name in text and "\x1b" not in text, "report:", repr(text))
        annotated = recording.read("annotate", name)
        check("while time.monotonic() < end: pass" in annotated, annotated)
        check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", annotated), repr(annotated))


if __name__ == "__main__":
    live.run()
