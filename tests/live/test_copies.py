#!/usr/bin/env python3
"""Copies of stacks: as long as each takes, and where one is too short nothing is made up."""
import collections
import functools
import re
import shutil
import subprocess

import live
from live import Skip, check

FRAME = 512
ROOTS = {"_start": "first", "clone3": "other", "clone": "other", "start_thread": "other"}


@functools.lru_cache(maxsize=None)
def program():
    """Without frame pointers, where only tables and copies lead on."""
    if not shutil.which("gcc"):
        raise Skip("no gcc")
    folder = live.scratch_folder()
    subprocess.run(
        ["gcc", "-O2", "-g", "-fomit-frame-pointer", "-o", f"{folder.name}/depths",
         live.WORKLOADS / "depths.c", "-lpthread"], check=True,
    )
    return folder


def recorded(frames, *options, seconds=0.25):
    return live.Recording(
        [f"{program().name}/depths", str(frames), str(seconds)], "-e", "cpu-clock:u", "-F", "999", *options
    )


def stacks(recording):
    """(way, its frames, by which thread) of each sample in spin_*(): by "first" or "other", where it ends at the
    program's start or the thread's, else by None."""
    found, others = [], 0
    for sample in recording.script():
        names = [re.split(r"[+@]", frame.name)[0] for frame in sample.frames]
        if not names[0].startswith("spin_"):
            others += 1
            continue
        way = names[0][-1]
        own = [name for name in names if re.fullmatch(r"(down|spin)_[ab]", name)]
        check(all(name.endswith(way) for name in own), "a stack leads through both ways:", names)
        check(own == names[: len(own)], names)
        found.append((way, len(own) - 1, ROOTS.get(names[-1])))
    check(len(found) > 100 and {way for way, _, _ in found} == {"a", "b"}, len(found), "samples")
    text = re.search(r"([\d,]+) of ([\d,]+) native stacks are not whole: (.*)", recording.read("report"))
    said = int(text[1].replace(",", "")) if text else 0
    broken = sum(not whole for _, _, whole in found)
    check(broken <= said <= broken + others, said, "are said not to be whole,", broken, "are not:", text and text[0])
    return found


def needs_walker():
    reason = live.missing_permission()
    if reason:
        raise Skip(reason)


@live.test
def as_long_as_it_takes():
    """Deeper than any fixed copy that one would take for all: 40 kB, of the first thread and another."""
    needs_walker()
    frames = 40960 // FRAME
    recording = recorded(frames, seconds=1)
    found = stacks(recording)
    check(all(count <= frames for _, count, _ in found), max(count for _, count, _ in found), "frames of", frames)
    # A thread's first samples are those that its depth is learnt by, whenever the recorder comes to them; from
    # then on only a lost record can make a difference.
    whole = [root if count == frames else None for _, count, root in found]
    check({"first", "other"} <= set(whole), collections.Counter(whole))
    then, other = whole.index("first"), whole.index("other")
    begun = max(n for n in range(other) if whole[n] == "first") + 1
    late = [*whole[then:begun], *whole[other:]]
    lost = recording.report()["samples"]["lost"]
    check(late.count(None) <= lost, late.count(None), "of", len(late), "are not whole;", lost, "records were lost")
    return f"{len(whole) - whole.count(None)} of {len(whole)}"


@live.test
def to_the_guard():
    """Short stacks: a copy that would go beyond the base ends there, whatever lies behind."""
    needs_walker()
    found = stacks(recorded(4))
    whole = sum(whole and count == 4 for _, count, whole in found)
    check(whole >= 0.99 * len(found), "only", whole, "of", len(found), "are whole")
    return f"{whole} of {len(found)}"


@live.test
def beyond_the_longest():
    """What no copy holds is left out: 200 kB, of which frames that are there later are no part."""
    needs_walker()
    found = stacks(recorded(204800 // FRAME))
    check(not any(whole for _, _, whole in found), "some are whole")
    counts = [count for _, count, _ in found]
    check(min(counts) >= 16384 // FRAME - 1 and max(counts) <= 61440 // FRAME + 1, min(counts), max(counts))
    return f"{min(counts)} to {max(counts)} frames of 400"


@live.test
def as_long_as_told():
    """dwarf,SIZE is so much and no more, whoever copies."""
    for engine in ("bpf", "off"):
        if engine == "bpf" and live.missing_permission():
            continue
        found = stacks(recorded(40960 // FRAME, f"--python={engine}", "--call-graph=dwarf,8192"))
        counts = {count for _, count, _ in found}
        check(counts <= {8192 // FRAME + n for n in (-1, 0, 1)}, engine, counts)
        check(not any(whole for _, _, whole in found), engine, "has whole stacks")
    return f"{counts} frames"


if __name__ == "__main__":
    live.run(needs_lines=False)
