#!/usr/bin/env python3
"""report reads what other tools write: folded stacks, speedscope, the Firefox Profiler."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

import live
from live import check, pyperf

GOLDEN = live.TOP / "tests/data/golden.data"
FOLDER = tempfile.TemporaryDirectory(prefix="pyperf-import-")


def file(name, content):
    path = pathlib.Path(FOLDER.name, name)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def report(path):
    ran = pyperf("report", "--json", "--inline", "-i", path)
    check(ran.returncode == 0, path.name, "ended with", ran.returncode, ran.stderr)
    return json.loads(ran.stdout)


def functions(read, keys=("name", "file", "line", "kind")):
    """{function: (self samples, total samples)} of the one event."""
    found = {}
    for row in read["functions"]:
        (figures,) = row["events"].values()
        key = tuple(row["qualname" if key == "name" else key] for key in keys)
        old = found.get(key, (0, 0))
        found[key] = (old[0] + figures.get("self_samples", 0), old[1] + figures.get("total_samples", 0))
    return found


def refused(name, content, why, status=1):
    path = file(name, content)
    ran = pyperf("report", "-i", path)
    check(ran.returncode == status and why in ran.stderr, name, "ended with", ran.returncode, ran.stderr)


@live.test
def what_is_exported_comes_back():
    """The same functions with the same samples, as far as the format can tell."""
    want = report(GOLDEN)
    count = 0
    for form, keys in (("speedscope", ("name", "file", "line", "kind")), ("firefox", ("name", "file", "line", "kind"))):
        for suffix in ("", ".gz"):
            path = pathlib.Path(FOLDER.name, form + suffix)
            check(pyperf("export", "-i", GOLDEN, "-f", form, "-o", path).returncode == 0)
            back = report(path)
            check(back["events"][0]["name"] == "cpu-clock", back["events"])
            have, expected = functions(back, keys), functions(want, keys)
            check(have == expected, form, "differs:", sorted(set(have.items()) ^ set(expected.items()))[:6])
            count += len(have)
    lines = {(row["file"], row["line"], row["function"]) for row in back["lines"]}
    check(lines == {(row["file"], row["line"], row["function"]) for row in want["lines"]}, "lines differ")
    path = pathlib.Path(FOLDER.name, "folded")
    check(pyperf("export", "-i", GOLDEN, "-f", "folded", "-o", path).returncode == 0)
    back, expected = functions(report(path), ("name",)), functions(want, ("name",))
    back.pop(("python3",))  # the thread's name is its outermost frame there
    # Functions of one name are one there, and count once where they call each other.
    check({k: v[0] for k, v in back.items()} == {k: v[0] for k, v in expected.items()}, "folded differs")
    return f"{count} functions"


@live.test
def folded_stacks():
    text = "# a comment\nmain;fit;dot_[k] 3\nmain;fit (model.py:17) 4\r\n\nmain 2.0\nwith spaces;a b 1\n"
    read = functions(report(file("a.folded", text)))
    check(read[("main", "", 0, "native")] == (2, 9), read)
    check(read[("dot", "[kernel]", 0, "kernel")] == (3, 3), read)
    check(read[("fit", "model.py", 0, "python")] == (4, 4), read)
    check(read[("a b", "", 0, "native")] == (1, 1), read)
    lines = report(file("a.folded.gz", gzip.compress(text.encode())))["lines"]
    check([(row["file"], row["line"]) for row in lines] == [("model.py", 17)], lines)
    ran = pyperf("report", "-i", file("b.folded", "a;b 1\nnot a stack\na;b 2\nc;d 5"))
    check(ran.returncode == 0 and "2 records break their own format" in ran.stdout, ran.stdout, ran.stderr)
    # What neighbours have in common is not read twice; a zero byte spoils its line alone.
    stacks = {"a;b": 1, "a;bc": 2, "a;b;c": 3, "a": 4, "ab;c": 5, "a;b;d": 6, "b;a;b": 7, "b": 8}
    text = "".join(f"{stack} {count}\n" for stack, count in stacks.items()).replace("a;b;d", "a;;b;d;").encode()
    text += b"# " + b"x" * 5000 + b"\na\0;b 9\na;b 1\n" # behind what tells the format
    again = pyperf("export", "-f", "folded", "-o", "-", "-i", file("c.folded", text))
    back = {stack.lstrip(";"): int(count) for stack, count in (line.rsplit(" ", 1) for line in again.stdout.splitlines())}
    check(back == {**stacks, "a;b": 2}, back, again.stderr)


@live.test
def speedscope_evented():
    doc = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main", "file": "m.py", "line": 1}, {"name": "leaf", "file": "libx.so"}]},
        "profiles": [{
            "type": "evented", "name": "thread", "unit": "microseconds", "startValue": 0, "endValue": 100,
            "events": [
                {"type": "O", "at": 10, "frame": 0}, {"type": "O", "at": 20, "frame": 1},
                {"type": "C", "at": 50, "frame": 1}, {"type": "C", "at": 100, "frame": 0},
            ],
        }],
    }
    rows = {row["name"]: row for row in report(file("e.json", json.dumps(doc)))["functions"]}
    main, leaf = rows["main"]["events"]["time"], rows["leaf"]["events"]["time"]
    check(abs(main["self"] - 60 / 90) < 1e-6 and main["total"] == 1, rows)
    check(abs(leaf["self"] - 30 / 90) < 1e-6 and rows["main"]["kind"] == "python", rows)
    check(rows["leaf"]["kind"] == "native" and rows["main"]["file"] == "m.py", rows)


def firefox(version):
    """The same profile as different versions have it."""
    shared = version >= 60
    strings = ["main", "leaf", "m.py", "libx.so"]
    tables = {
        "stackTable": {"frame": [0, 1], "length": 2},
        "frameTable": {"func": [0, 1], "category": [0, 1], "line": [7, None], "length": 2},
        "funcTable": {"name": [0, 1], "isJS": [True, False], "resource": [-1, 0], "lineNumber": [5, None], "length": 2},
        "resourceTable": {"name": [3], "length": 1},
    }
    tables["stackTable"]["prefixOffset" if version >= 66 else "prefix"] = [0, 1] if version >= 66 else [None, 0]
    if version >= 58:
        tables["sources"] = {"filename": [2], "length": 1}
        tables["funcTable"]["source"] = [0, None]
    else:
        tables["funcTable"]["fileName"] = [2, 3]
    samples = {"stack": [0, 1, 1, None], "weight": None, "weightType": "samples", "length": 4}
    samples["timeDeltas" if version >= 50 else "time"] = [1, 1, 1, 1] if version >= 50 else [1, 2, 3, 4]
    thread = {"name": "T", "pid": "12", "tid": 13, "samples": samples}
    doc = {
        "meta": {"preprocessedProfileVersion": version, "categories": [{"name": "Other"}, {"name": "Native"}]},
        "threads": [thread],
    }
    (doc.setdefault("shared", {}) if version >= 56 else thread)["stringArray"] = strings
    (doc["shared"] if shared else thread).update(tables)
    return doc


@live.test
def firefox_of_all_ages():
    want = {("main", "m.py", 5, "python"): (1, 3), ("leaf", "libx.so", 0, "native"): (2, 2)}
    for version in (47, 50, 56, 58, 60, 66, 70):
        read = report(file("f.json", json.dumps(firefox(version))))
        check(functions(read) == want, version, functions(read))
        check([row["line"] for row in read["lines"]] == [7], version, read["lines"])
    return len(want)


@live.test
def hostile():
    scope = '{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","unit":"none","samples":%s,"weights":%s}]}'
    fox = firefox(60)
    fox["shared"]["stackTable"]["prefix"] = [1, 0]
    loop = json.dumps(fox)
    fox = firefox(60)
    fox["threads"][0]["samples"]["stack"] = [9]
    for name, content, why in (
        ("deep.json", '{"a":' * 100_000, "nested too deeply"),
        ("cut.json", '{"shared":{"frames":[', "is no JSON, or cut short"),
        ("bad.json", '{"a": nope}', "is no JSON"),
        ("other.json", '{"a": 1}', "not of speedscope"),
        ("gecko.json", '{"meta": {"version": 30}, "threads": []}', "not of speedscope"),
        ("frame.json", scope % ("[[7]]", "[1]"), "names a frame that it does not have"),
        ("minus.json", scope % ("[[-1]]", "[1]"), "names a frame that it does not have"),
        ("half.json", scope % ("[[0.5]]", "[1]"), "names a frame that it does not have"),
        ("nested.json", scope % ("[[[0],[1]]]", "[1]"), "names a frame that it does not have"),
        ("ragged.json", scope % ("[[0]]", "[1,2]"), "1 samples with 2 weights"),
        ("type.json", scope.replace("sampled", "x") % ("[]", "[]"), "speedscope has not"),
        ("none.json", '{"shared":{"frames":[]},"profiles":[]}', "has no samples"),
        ("loop.json", loop, "its own caller"),
        ("stack.json", '{"meta":{"preprocessedProfileVersion":61},"threads":[{"samples":{"stack":[1e99],"length":1}}]}',
         "names a stack that it does not have"),
        ("stack.json", json.dumps(fox), "names a stack"),
        ("long.folded", "a;b 1\n" + "x" * 2_000_000, "more than 1 MB"),
        ("cut.json.gz", gzip.compress(json.dumps(firefox(60)).encode())[:-20], "damaged or cut short"),
    ):
        refused(name, content, why)
    # Huge weights and endless stacks neither crash nor hang.
    report(file("huge.json", scope % ("[[0],[0],[0]]", "[1e300,-5,1]")))
    report(file("tall.folded", ";".join(["f"] * 100_000) + " 1\n"))
    ran = pyperf("report", "--time", "0,1", "-i", file("t.folded", "a;b 1\n"))
    check(ran.returncode == 1 and "--time is for recordings" in ran.stderr, ran.stderr)
    for command in ("annotate", "script", "export -f trace", "export -f firefox", "export -f pprof", "export -f csv"):
        ran = pyperf(*command.split(), "-i", file("t.folded", "a;b 1\na 2\n"))
        check(ran.returncode in (0, 1) and "Traceback" not in ran.stderr, command, ran.returncode, ran.stderr)


@live.test
def bombs():
    """A little that unpacks to very much is refused before it has taken memory."""
    def members(head, part, count):
        return gzip.compress(head) + gzip.compress(part * (1 << 20)) * count

    for name, content, why in (
        ("values.json.gz", members(b'{"a": [0', b",0", 256), "made to fill memory"),
        ("text.json.gz", members(b'{"a": ["', b'","', 24), "made to fill memory"),
        ("string.json.gz", members(b'{"a": "', b"xx", 256), "a string of more than 8 MB"),
    ):
        path = file(name, content)
        child = subprocess.Popen([live.PYPERF, "report", "-i", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        check(child.returncode == 1 and why in said, name, "ended with", child.returncode, said)
        check(used.ru_maxrss < 600 << 10, name, "took", used.ru_maxrss >> 10, "MB")


if __name__ == "__main__":
    live.run(needs_lines=False)
