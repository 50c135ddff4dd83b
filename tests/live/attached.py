"""Programs that run before pyperf does, and recordings of them."""
import json
import os
import pathlib
import signal
import subprocess
import time

import live
from live import check

# Says "ready", then does what the lines of its input say: "late" starts a thread, "end" tells its
# account and exits. Threads run hot() three times as long as cold(), by their own CPU time.
PROGRAM = """
import json, random, sys, threading, time
account = {"hot": 0.0, "cold": 0.0, "late": 0.0}
def hot(seconds):
    begin = now = time.thread_time()
    while now < begin + seconds: now = time.thread_time()
    account["hot"] += now - begin
def cold(seconds):
    begin = now = time.thread_time()
    while now < begin + seconds: now = time.thread_time()
    account["cold"] += now - begin
def late(seconds):
    begin = now = time.thread_time()
    while now < begin + seconds: now = time.thread_time()
    account["late"] += now - begin
# All begin together: each start would wait for the lock that those before hold by turns.
begin = threading.Event()
def early_thread():
    begin.wait()
    while True:
        hot(random.uniform(0.003, 0.009))
        cold(random.uniform(0.001, 0.003))
def late_thread():
    while True: late(0.005)
sys.setswitchinterval(0.001)
for i in range(int(sys.argv[1])): threading.Thread(target=early_thread, daemon=True).start()
begin.set()
print("ready", flush=True)
for line in sys.stdin:
    if line == "late\\n": threading.Thread(target=late_thread, daemon=True).start()
    if line == "end\\n": break
print(json.dumps(account), flush=True)
import os; os._exit(7)
"""


def waits(pid):
    """Whether a process waits for something: one that has something to do runs, or would."""
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def cpu_time(pid):
    """Seconds on a CPU, of all its threads and those that ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def burn(pid, seconds):
    """Returns when it has used so much more time on a CPU."""
    until, end = cpu_time(pid) + seconds, time.monotonic() + 120
    while cpu_time(pid) < until:
        check(time.monotonic() < end, "the program does not run")
        time.sleep(0.02)


class Program:
    """A program that was there before pyperf."""

    def __init__(self, python, text=PROGRAM, *arguments):
        self.process = subprocess.Popen(
            [python, "-c", text, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        check(self.process.stdout.readline() == "ready\n", "the program did not start")
        self.pid = self.process.pid

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self):
        """Its account; fails where it was disturbed."""
        self.tell("end")
        out, _ = self.process.communicate(timeout=20)
        check(self.process.returncode == 7, "the program ended with", self.process.returncode)
        return json.loads(out)

    def cpu_time(self):
        return cpu_time(self.pid)

    def burn(self, seconds):
        burn(self.pid, seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Attached(live.Recording):
    """A recording of options alone, which are to end it."""

    def __init__(self, *options, status=0):
        self.folder = live.scratch_folder()
        self.path = pathlib.Path(self.folder.name, "perf.data")
        self.ran = live.pyperf("record", "-e", "cpu-clock", "-o", self.path, *options)
        check(self.ran.returncode == status, "record ended with", self.ran.returncode, self.ran.stderr)


class Running(Attached):
    """One that goes on until end()."""

    def __init__(self, *options, **kwargs):
        self.folder = live.scratch_folder()
        self.path = pathlib.Path(self.folder.name, "perf.data")
        self.process = subprocess.Popen(
            [live.PYPERF, "record", "-e", "cpu-clock", "-o", self.path, *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs,
        )
        # It makes its file when all events are open, and counts when it first waits.
        looks, end = 0, time.monotonic() + 60
        while looks < 3:
            looks = looks + 1 if self.path.exists() and waits(self.process.pid) else 0
            if self.process.poll() is not None:
                raise live.Failed(f"record ended: {self.process.communicate()}")
            check(time.monotonic() < end, "record did not begin")
            time.sleep(0.005)

    def end(self, number=signal.SIGINT, status=0):
        if number:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise live.Failed("record did not end")
        self.ran = subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)
        check(self.ran.returncode == status, "record ended with", self.ran.returncode, err)
