"""What tests of native stacks share."""
import pathlib
import re
import shutil
import subprocess

import live
from live import Skip, check

CHAIN = live.WORKLOADS / "chain.c"

# What chain.c says of itself, by its mode, innermost first.
B = ["chain_b"] * 4
STACKS = {
    "sleep": ["wait_here", "leaf", "chain_c", *B, "chain_a", "main"],
    "signal": ["wait_here", "on_signal", "leaf", "chain_c", *B, "chain_a", "main"],
    "altstack": ["wait_here", "on_signal", "leaf", "chain_c", *B, "chain_a", "main"],
    "thread": ["wait_here", "leaf", "chain_c", *B, "chain_a", "in_thread"],
    "deep": ["wait_here", "leaf", "chain_c", *["chain_b"] * 3000, "chain_a", "main"],
}

# What a thread or a program begins with. In ld.so's first instructions there is no caller either.
ROOT = r"(_start|_*clone\d?|start_thread|thread_start|_dl_start\w*)$"


def is_root(name, file):
    return bool(re.match(ROOT, name.split("+")[0])) or "/ld-" in file


def compiled(folder, name, command, source=CHAIN):
    if not shutil.which(command.split()[0]):
        raise Skip(f"no {command.split()[0]}")
    path = pathlib.Path(folder, name)
    ran = subprocess.run([*command.split(), "-o", path, source, "-lpthread"], capture_output=True, text=True)
    check(ran.returncode == 0, command, ran.stderr)
    return path


def perf_stacks(path):
    """The stacks that perf prints of the file, leaf first: [(function, file)]."""
    perf = shutil.which("perf")
    if not perf:
        raise Skip("no perf to read the stacks with")
    command = [perf, "script", "-i", path, "--no-inline", "--max-stack", "5000", "-F", "comm,event,ip,sym,dso"]
    stacks = []
    for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines():
        frame = re.fullmatch(r"\t +[0-9a-f]+ (.*) \((.*)\)", line)
        if frame:
            stacks[-1].append(frame.groups())
        elif re.match(r".*\scpu-clock", line):
            stacks.append([])
    return stacks
