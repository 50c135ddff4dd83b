#!/usr/bin/env python3
"""pyperf installed with file capabilities or set-user-id, run by an ordinary user: Python lines, and
no right of anybody else's in any file, environment or program."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time

import live
from live import check

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
CAP_PERFMON, CAP_BPF = 38, 39

# Prints its ids and capabilities, then works.
SHOW = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print(json.dumps({"ids": [os.getresuid(), os.getresgid()], "caps": [int(status[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")]}))
for i in range(200): sum(range(30000))
"""


def capabilities(*bits):
    """The security.capability attribute, version 2, permitted and effective (linux/capability.h)."""
    low, high = sum(1 << b for b in bits if b < 32), sum(1 << b - 32 for b in bits if b >= 32)
    return struct.pack("<IIIII", 0x02000001, low, 0, high, 0)


class Installed:
    """A copy of pyperf in a folder of root's, and a folder for what it writes."""

    def __init__(self, kind):
        if os.getuid() != 0:
            raise live.Skip("only root installs such a program")
        self.folder = live.scratch_folder()
        os.chmod(self.folder.name, 0o755)
        self.binary = pathlib.Path(self.folder.name, "pyperf")
        shutil.copy(live.PYPERF, self.binary)
        self.binary.chmod(0o755)
        if kind == "set-user-id":
            self.binary.chmod(0o4755)
        else:
            try:
                os.setxattr(self.binary, "security.capability", capabilities(CAP_PERFMON, CAP_BPF))
            except OSError as error:
                raise live.Skip(f"{self.folder.name} takes no file capabilities: {error}")
        if os.statvfs(self.folder.name).f_flag & os.ST_NOSUID:
            raise live.Skip(f"{self.folder.name} is mounted nosuid")
        self.out = pathlib.Path(self.folder.name, "out")
        self.out.mkdir()
        os.chown(self.out, NOBODY, NOBODY)

    def run(self, *arguments, env=None):
        return subprocess.run(
            [*AS_NOBODY, self.binary, *map(str, arguments)], cwd=self.out, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}, timeout=120,
        )


def system_python():
    for path in ("/usr/bin/python3", live.any_python()):
        if subprocess.run([*AS_NOBODY, path, "-c", ""], capture_output=True).returncode == 0:
            return path
    raise live.Skip("no Python that an ordinary user may run")


def safe(kind):
    reason = live.missing_permission()
    if reason:
        raise live.Skip(reason)
    installed = Installed(kind)
    python = system_python()
    ran = installed.run("record", "--python=bpf", "-e", "cpu-clock", "-o", "p", "--", python, "-c", SHOW)
    check(ran.returncode == 0, ran.stderr)
    shown = json.loads(ran.stdout)
    check(shown["ids"] == [[NOBODY] * 3] * 2, "the program has the ids", shown)
    check(shown["caps"] == [0] * 4, "the program has the capabilities", shown)
    written = (installed.out / "p").stat()
    check((written.st_uid, written.st_gid, written.st_mode & 0o777) == (NOBODY, NOBODY, 0o600), written)
    report = installed.run("report", "--json", "-i", "p")
    check(report.returncode == 0, report.stderr)
    samples = json.loads(report.stdout)["samples"]
    check(samples["python_lines"] > 0, samples)

    # What the user may not write, link to or read stays so.
    precious = pathlib.Path(installed.folder.name, "precious")
    precious.write_text("root's\n")
    precious.chmod(0o600)
    (installed.out / "link").symlink_to(precious)
    for path in (precious, "link"):
        ran = installed.run("record", "-o", path, "--", "true")
        check(ran.returncode != 0 and precious.read_text() == "root's\n", path, "was written:", ran.stderr)
        ran = installed.run("report", "-i", path)
        check(ran.returncode == 1 and "denied" in ran.stderr, ran.stderr)
    check(not pathlib.Path(installed.folder.name, "precious.old").exists(), "another's file was renamed")
    locked = pathlib.Path(installed.folder.name, "tool")
    locked.write_text("#!/bin/sh\necho done\n")
    locked.chmod(0o700)
    ran = installed.run("record", "-o", "p", "--", locked)
    check(ran.returncode == 126 and "done" not in ran.stdout, "another's program was run:", ran)

    # The environment has no say in what is loaded.
    ran = installed.run(
        "record", "-o", "p", "--", "true", env={"LD_PRELOAD": f"{installed.out}/none.so", "LOCPATH": str(installed.out), "PYPERF_TEST_PLAIN_LOOPS": "1"}
    )
    check(ran.returncode == 0, ran.stderr)
    return f"lines on {samples['python_lines']} of {samples['total']} samples"


@live.test
def file_capabilities():
    return safe("file capabilities")


@live.test
def set_user_id():
    return safe("set-user-id")


@live.test
def capabilities_are_only_those_of_recording():
    """Of root's, a set-user-id pyperf keeps two, and none where it only reads files."""
    installed = Installed("set-user-id")
    fifo = installed.out / "fifo"
    os.mkfifo(fifo)
    os.chown(fifo, NOBODY, NOBODY)
    for command, kept in ((["report", "-i", "fifo"], 0), (["record", "-o", "p", "--", "sleep", "5"], 1 << CAP_PERFMON | 1 << CAP_BPF)):
        process = subprocess.Popen([*AS_NOBODY, installed.binary, *command], cwd=installed.out, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            wanted = "report" if command[0] == "report" else "record"
            status = {}
            end = time.monotonic() + 20
            while status.get("Name", "").strip() != "pyperf" or int(status["Uid"].split()[1]) != NOBODY:
                check(process.poll() is None and time.monotonic() < end, wanted, "ended, or stays", status.get("Uid"))
                status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
            # Ids come first, capabilities next.
            while time.monotonic() < end:
                status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines())
                if int(status["CapPrm"], 16) == kept:
                    break
            check(int(status["CapPrm"], 16) == kept and int(status["CapEff"], 16) == kept, command, "has", status["CapPrm"])
            check(set(status["Uid"].split()) == {str(NOBODY)}, status["Uid"])
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    live.run(needs_lines=False)
