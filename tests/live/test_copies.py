#!/usr/bin/env python3
"""Copies of stacks: as long as each takes, and where one is too short nothing is made up."""
import functools
import re
import shutil
import subprocess

import live
from live import Skip, check

FRAME = 512


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


def stacks(frames, *options):
    """(way, its frames, whether it ends at the program's start or the thread's) of each sample in spin_*()."""
    recording = live.Recording(
        [f"{program().name}/depths", str(frames)], "-e", "cpu-clock:u", "-F", "999", *options
    )
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
        found.append((way, len(own) - 1, names[-1] in ("_start", "clone3", "clone", "start_thread")))
    check(len(found) > 200 and {way for way, _, _ in found} == {"a", "b"}, len(found), "samples")
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
    found = stacks(frames)
    # A thread's first samples are those that its depth is learnt by, and it is learnt late.
    whole = sum(whole and count == frames for _, count, whole in found)
    check(whole >= 0.5 * len(found), "only", whole, "of", len(found), "are whole")
    check(all(count <= frames for _, count, _ in found), max(count for _, count, _ in found), "frames of", frames)
    late = found[-len(found) // 4 :]
    check(all(whole for _, _, whole in late), "of the last ones", sum(whole for _, _, whole in late), "of", len(late))
    return f"{whole} of {len(found)}"


@live.test
def to_the_guard():
    """Short stacks: a copy that would go beyond the base ends there, whatever lies behind."""
    needs_walker()
    found = stacks(4)
    whole = sum(whole and count == 4 for _, count, whole in found)
    check(whole >= 0.99 * len(found), "only", whole, "of", len(found), "are whole")
    return f"{whole} of {len(found)}"


@live.test
def beyond_the_longest():
    """What no copy holds is left out: 200 kB, of which frames that are there later are no part."""
    needs_walker()
    found = stacks(204800 // FRAME)
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
        found = stacks(40960 // FRAME, f"--python={engine}", "--call-graph=dwarf,8192")
        counts = {count for _, count, _ in found}
        check(counts <= {8192 // FRAME + n for n in (-1, 0, 1)}, engine, counts)
        check(not any(whole for _, _, whole in found), engine, "has whole stacks")
    return f"{counts} frames"


if __name__ == "__main__":
    live.run(needs_lines=False)
