#!/usr/bin/env python3
"""Lines must show the time that the program itself measured on them (tests/workloads/truth.py)."""
import collections
import runpy

import judge
import live
from live import check

WORKLOAD = judge.TRUTH
SECONDS = 1
MARKS = judge.MARKS


class Truth(judge.Truth):
    def __init__(self, python, *sections):
        super().__init__(python, SECONDS, *sections)


def summary(truth, section):
    account = truth.account[section]
    return ", ".join(f"{mark} {truth.samples[MARKS[mark]]}" for mark in account)


@live.test_each_python
def lines(python):
    """Every section's lines. An interval misses now and then when nothing is wrong: what falls outside is
    recorded again, and only what does so every time, to the same side, is a failure."""
    TRUTHS[python] = truth = Truth(python)
    complaints, tries = persistent(python, truth)
    check(not complaints, "; ".join(complaints))
    samples = truth.report["samples"]["total"]
    return f"{len(truth.account)} sections, {samples} samples; recorded {tries} times at most"


def persistent(python, truth, *complain):
    return judge.persistent(truth, lambda sections: Truth(python, *sections), *complain)


@live.test_each_python
def same_work_same_share(python):
    """Marks x.1, x.2 ... are the same statement equally often: the account, too, must say so, as far
    as the processor runs the same code at two places equally fast."""

    def complain(truth, section):
        account = truth.account[section]
        for mark, spent in account.items():
            first = account.get(mark.split(".")[0] + ".1")
            if first and abs(spent - first) / first >= 0.25:
                yield (mark, spent > first), f"{section} {account} is no equal work"

    truth = known(python)
    complaints, _ = persistent(python, truth, complain)
    check(not complaints, "; ".join(complaints))
    return summary(truth, "generators")


@live.test_each_python
def split_of_time(python):
    """A line's time by where it went: bytecode, C code, kernel."""
    truth = known(python)
    split = collections.defaultdict(collections.Counter)
    marked = {number: mark for mark, number in MARKS.items()}
    for sample in truth.stacks:
        frame = next(iter(sample.python), None)
        if not frame or not frame.file.endswith("truth.py") or frame.line not in marked:
            continue
        leaf = sample.frames[0]
        kernel = leaf.file.startswith("[kernel") or leaf.file == "[unknown]"
        split[marked[frame.line]]["python" if leaf.python else "kernel" if kernel else "native"] += 1

    def share(mark, kind):
        return split[mark][kind] / max(1, sum(split[mark].values()))

    # On a busy machine the kernel has its part, for interrupts and for the scheduler, of every line.
    # Debug builds fill what they allocate, and check what they pass on.
    check(share("read", "kernel") > 0.75, "read is not in the kernel:", split["read"])
    check(share("getppid", "kernel") > 0.1, "getppid is not in the kernel:", split["getppid"])
    for mark in ("pow", "sort", "hash", "crc"):
        check(share(mark, "kernel") < 0.4, mark, "is in the kernel:", split[mark])
    return f"read {share('read', 'kernel'):.0%} kernel, getppid {share('getppid', 'kernel'):.0%} kernel"


@live.test_each_python
def every_depth_of_recursion(python):
    """Each depth does the same work, so each has the same share of the samples."""
    depth_of = runpy.run_path(str(WORKLOAD))["DEPTH"]

    def complaints(truth):
        depths = collections.Counter()
        for sample in truth.stacks:
            frames = [frame for frame in sample.python if frame.name == "descend"]
            if frames and sample.python[0].line == MARKS["descend"]:
                depths[len(frames)] += 1
        samples = sum(depths.values())
        check(samples > 1000, "only", samples, "samples in descend")
        check(set(depths) <= set(range(1, depth_of + 1)), "depths that cannot be:", depths)
        return depths, [d for d in range(1, depth_of + 1) if not live.within(depths[d], samples, 1 / depth_of, 0.9999)]

    depths, wrong = complaints(known(python))
    if wrong:
        depths, still = complaints(Truth(python, "recursion"))
        check(not set(wrong) & set(still), "depths", wrong, "then", still, "have too many or too few samples:", depths)
    return dict(sorted(depths.items()))


@live.test_each_python
def functions_once_per_sample(python):
    """However deep it recurses, a function's total is no more than all samples, and its share right."""
    truth = known(python)
    total = truth.report["samples"]["total"]
    for function in truth.report["functions"]:
        count = function["events"][truth.event]
        check(count["self_samples"] <= count["total_samples"] <= total, function)
    by_name = {f["qualname"]: f["events"][truth.event] for f in truth.report["functions"] if f["kind"] == "python"}
    check(by_name["recursion"]["total_samples"] >= by_name["descend"]["total_samples"], by_name["descend"])


TRUTHS = {}


def known(python):
    if python not in TRUTHS:
        TRUTHS[python] = Truth(python)
    return TRUTHS[python]


if __name__ == "__main__":
    live.run()
