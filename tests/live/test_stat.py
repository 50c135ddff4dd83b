#!/usr/bin/env python3
"""`pyperf stat` beside `perf stat`, and parts of a count that add up to it."""
import csv
import json
import os
import shutil
import subprocess
import time

import live
from live import check

PAGES = 20000
# Faults pages in one function, computes in another, in a thread; a known amount of each.
FUNCTIONS = f"""
import mmap, sys, threading, time
def touch():
    pages = mmap.mmap(-1, {PAGES} * 4096)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    for i in range({PAGES}): pages[i * 4096] = 1
def compute():
    end = time.thread_time() + 0.1
    while time.thread_time() < end: pass
def work():
    compute(); touch(); compute()
"""
PROGRAM = FUNCTIONS + """
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
# Two threads that wait to be told, do the work, say so, and stay.
WAITING = FUNCTIONS + """
gate, done = threading.Event(), threading.Barrier(2)
def second():
    gate.wait()
    work()
    done.wait()
    sys.stdin.readline()
threading.Thread(target=second, daemon=True).start()
sys.stdin.readline()
gate.set()
work()
done.wait()
open(sys.argv[1], "w").close()
sys.stdin.readline()
"""
TELL = """
import os, sys, time
os.write(int(sys.argv[1]), b"\\n")
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
"""
EVENTS = "task-clock,page-faults"


def stat(*arguments, status=0, **kwargs):
    ran = live.pyperf("stat", *arguments, **kwargs)
    check(ran.returncode == status, "stat", *arguments, "ended with", ran.returncode, ran.stderr)
    return ran


def stat_json(*arguments, **kwargs):
    return json.loads(stat("--json", "-q", *arguments, **kwargs).stderr)


def values(report):
    return {event["name"]: event["value"] for event in report["events"]}


@live.test
def totals():
    """Page faults as perf counts them; CPU time at least what the program took by its own clock."""
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    command = [live.any_python(), "-c", PROGRAM]
    ours = values(stat_json("-e", EVENTS, "--", *command))
    ran = subprocess.run(["perf", "stat", "-x,", "-e", "page-faults", *command], capture_output=True, text=True)
    theirs = float(ran.stderr.split(",")[0])
    check(ours["page-faults"] > PAGES and abs(ours["page-faults"] - theirs) < 0.02 * theirs, ours, "perf:", theirs)
    check(0.2e9 < ours["task-clock"] < 2e9, ours)
    return f"{ours['page-faults']:.0f} page faults, {theirs:.0f} by perf"


@live.test
def by_function():
    """Every row counted, the rows are what was counted in all, and the work is where it was done."""
    report = stat_json("--by-function", "-e", EVENTS, "--", live.any_python(), "-c", PROGRAM)
    rows = {row["name"].split(" (")[0]: row["events"] for row in report["functions"]}
    for name, total in values(report).items():
        parts = sum(row["events"][name] for row in report["functions"])
        check(abs(parts - total) < 1e-6 * total + 1, name, "adds up to", parts, "of", total)
    check(rows["touch"]["page-faults"] > 0.7 * PAGES, rows["touch"])
    check(rows["compute"]["task-clock"] > 0.15e9, rows["compute"])
    check(rows["compute"]["page-faults"] < 0.2 * PAGES, rows["compute"])


@live.test
def by_thread():
    """Of a program, by samples: the thread has its page faults, and the rows add up."""
    report = stat_json("--per-thread", "-e", EVENTS, "--", live.any_python(), "-c", PROGRAM)
    faults = sorted(row["events"]["page-faults"] for row in report["threads"])
    check(PAGES <= faults[-1] < 1.1 * PAGES, faults)
    check(abs(sum(faults) - values(report)["page-faults"]) < 1, faults, values(report))


@live.test
def attached_threads():
    """Of a process that runs, exactly: each thread on its own."""
    with live.scratch_folder() as folder:
        done = os.path.join(folder, "done")
        target = subprocess.Popen([live.any_python(), "-c", WAITING, done], stdin=subprocess.PIPE)
        try:
            while len(os.listdir(f"/proc/{target.pid}/task")) < 2:
                time.sleep(0.01)
            pipe = target.stdin.fileno()
            tell = [live.any_python(), "-c", TELL, str(pipe), done]
            report = stat_json("--per-thread", "-e", EVENTS, "-p", target.pid, "--", *tell, pass_fds=[pipe])
        finally:
            target.kill()
            target.wait()
    faults = [row["events"]["page-faults"] for row in report["threads"]]
    check(len(faults) == 2 and all(PAGES <= n < 1.1 * PAGES for n in faults), report["threads"])
    check(sum(faults) == values(report)["page-faults"], faults, values(report))


@live.test
def repeated():
    """Runs are counted each on its own, and how they vary is told."""
    report = stat_json("-r", "3", "-e", EVENTS, "--", live.any_python(), "-c", PROGRAM)
    check(len(report["runs"]) == 3, report["runs"])
    for event in report["events"]:
        counts = [run["count"] for run in event["runs"]]
        check(len(counts) == 3 and min(counts) > 0, event)
        check(abs(event["value"] - sum(counts) / 3) < 1e-6 * event["value"], event)
        check(event["low"] <= event["value"] <= event["high"], event)
    check(all(run["user_s"] + run["system_s"] > 0.2 for run in report["runs"]), report["runs"])


@live.test
def intervals():
    """Lines while it runs, which add up to the whole."""
    report = stat_json("-I", "50", "-e", EVENTS, "--", live.any_python(), "-c", PROGRAM)
    check(len(report["intervals"]) > 2, report["intervals"])
    for name, total in values(report).items():
        parts = sum(row["events"][name] for row in report["intervals"])
        check(abs(parts - total) < 0.01 * total, name, "adds up to", parts, "of", total)
    ends = [row["end_s"] for row in report["intervals"]]
    check(ends == sorted(ends) and ends[0] < ends[-1], ends)


@live.test
def shapes():
    """Text, CSV and files say the same; the program's output is its own, and so is its status."""
    with live.scratch_folder() as folder:
        path = os.path.join(folder, "counts")
        ran = stat("-o", path, "-e", EVENTS, "--", "sh", "-c", "echo out; exit 7", status=7)
        check(ran.stdout == "out\n", ran.stdout)
        text = open(path).read()
        check("task-clock" in text and "page-faults" in text and "elapsed" in text, text)
        stat("--csv", "-o", path, "-e", EVENTS, "--", "true")
        rows = list(csv.DictReader(open(path)))
        check({row["name"] for row in rows} == {"task-clock", "page-faults"}, rows)
        check(all(float(row["value"]) > 0 for row in rows), rows)


@live.test
def refusals():
    ran = stat("--", "/no/such/program", status=127)
    check("/no/such/program" in ran.stderr, ran.stderr)
    for arguments in (["-r", "0"], ["-r", "2", "-I", "100"], ["-I", "1"], ["--by-function", "-r", "2"], ["--json", "--csv"]):
        ran = stat(*arguments, "--", "true", status=2)
        check("usage:" in ran.stderr, ran.stderr)
    ran = stat("-e", "tsk-clock", "--", "true", status=2)
    check("task-clock" in ran.stderr, ran.stderr)


live.run(needs_lines=False)
