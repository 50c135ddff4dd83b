#!/usr/bin/env python3
"""The interactive view of annotate, driven in a terminal of tmux."""
import json
import re
import shutil
import subprocess
import sys
import time

import live
from live import check

DATA = live.TOP / "tests/data/bytecode.data"


class Terminal:
    """A command in a terminal of its own, which ends with the object."""

    def __init__(self, *command, width=110, height=30):
        if not shutil.which("tmux"):
            raise live.Skip("no tmux")
        self.folder = live.scratch_folder()
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), *map(str, command), ";",
                  "set-option", "-g", "escape-time", "0", ";", "set-option", "-g", "remain-on-exit", "on")

    def tmux(self, *arguments):
        socket = self.folder.name + "/socket"
        return subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True, check=True).stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def wait(self, pattern, seconds=10):
        """The screen's text, once it has the pattern."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.text()
            if re.search(pattern, text, re.M):
                return text
            time.sleep(0.01)
        raise live.Failed(f"{pattern} is not on the screen:\n{text}")

    def status(self, seconds=10):
        """Of the command, once it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            dead, status = self.tmux("display-message", "-p", "#{pane_dead} #{pane_dead_status}").split(" ")
            if dead == "1":
                return status.strip()
            time.sleep(0.01)
        raise live.Failed("the command has not ended:\n" + self.text())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")


def opened(word, data=DATA, **size):
    return Terminal(live.PYPERF, "annotate", "-i", data, word, **size)


@live.test
def keys_do_what_they_say():
    """Source with figures; bytecode, calls, hot lines; to a callee and back."""
    with opened("Work.count") as terminal:
        text = terminal.wait(r"13 +total \+= i \* i")
        check(re.search(r"^ Work\.count +.*66\.7% of cpu-clock", text), text)
        check(re.search(r"^ +14\.6% +7 +14 +86 +12 +for i in range\(n\)", text, re.M), text)
        terminal.keys("b")
        text = terminal.wait(r"29\.2% +14 +100 +42  BINARY_OP +\+=")
        terminal.keys("b", "c")
        text = terminal.wait(r"<- +52\.1%  main  golden\.py:30")
        check("BINARY_OP" not in text, text)
        terminal.keys("Down", "Enter")
        text = terminal.wait(r"^ main +golden\.py:26")
        check("all of it" in text or "total" in text, text)
        terminal.keys("Escape")
        terminal.wait(r"^ Work\.count")
        terminal.keys("c", "Tab", "b")
        terminal.wait(r"4\.2% +2 +100 +28  FOR_ITER +to 52")
        terminal.keys("/")
        terminal.keys("-l", "hashlib")
        terminal.keys("Enter")
        terminal.keys("?")
        text = terminal.wait("Keys of the annotate view")
        check("machine code" in text, text)
        terminal.keys("q", "e")
        terminal.wait("no other event")
        terminal.keys("q")
        check(terminal.status() == "0", "it ended with", terminal.status())


@live.test
def machine_code_of_a_callee():
    """d goes to the costliest native function of the line, or its sampled addresses, and back."""
    with opened("Work.count", width=80, height=20) as terminal:
        terminal.wait(r"13 +total \+= i \* i")
        terminal.keys("d")
        text = terminal.wait(r"address  instruction")
        check(re.search(r"^ _PyObject_Free", text), text)
        check(re.search(r"^ +\d+\.\d% +\d+ +[0-9a-f]+", text, re.M), text)
        terminal.keys("q")
        terminal.wait(r"^ Work\.count")


LONG = """
def hot(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
import time
end = time.process_time() + 0.2
while time.process_time() < end:
    hot(1000)
"""


@live.test_any_python
def long_sources_stay_quick(python):
    """Of 100,000 lines: every key is answered; the time that takes is told."""
    folder = live.scratch_folder()
    script = live.pathlib.Path(folder.name, "long.py")
    script.write_text("# a line of text\n" * 100000 + LONG)
    recording = live.Recording([python, script], "-e", "cpu-clock")
    took = {}
    with opened("hot", recording.path) as terminal:
        terminal.wait(r"100002  def hot")
        for key, pattern in (
            ("g", r"^ +1  # a line"),
            ("NPage", r"^ +40  # a line"),
            ("Tab", r"100004 +for"),
            ("B", r"FOR_ITER|GET_ITER"),
            ("G", r"100010 +hot\(1000\)"),
        ):
            before = time.monotonic()
            terminal.keys(key)
            terminal.wait(pattern)
            took[key] = round(1000 * (time.monotonic() - before))
    check(max(took.values()) < 2000, took)
    return "ms from a key to the text of tmux: " + json.dumps(took)


if __name__ == "__main__":
    sys.exit(live.run(needs_lines=False))
