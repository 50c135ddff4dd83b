#!/usr/bin/env python3
"""The interactive view of annotate, driven in a terminal of tmux."""
import json
import re
import shlex
import sys
import time

import live
from live import check
from terminal import PROMPT, terminal

DATA = live.TOP / "tests/data/bytecode.data"


def annotate(word, data=DATA):
    return shlex.join([str(live.PYPERF), "annotate", "-i", str(data), word])


@live.test
def keys_do_what_they_say():
    """Source with figures; bytecode, calls, hot lines; to a callee and back."""
    with terminal(110, 30) as shown:
        shown.run(annotate("Work.count"))
        text = "\n".join(shown.wait(r"13 +total \+= i \* i"))
        check(re.search(r"^ Work\.count +.*66\.7% of cpu-clock", text), text)
        check(re.search(r"^ +14\.6% +7 +14 +86 +12 +for i in range\(n\)", text, re.M), text)
        shown.keys("b")
        text = "\n".join(shown.wait(r"29\.2% +14 +100 +42  BINARY_OP +\+="))
        shown.keys("b", "c")
        text = "\n".join(shown.wait(r"<- +52\.1%  main  golden\.py:30"))
        check("BINARY_OP" not in text, text)
        shown.keys("Down", "Enter")
        text = "\n".join(shown.wait(r"^ main +golden\.py:26"))
        check(re.search(r"^ +66\.7% +30 +work\.count", text, re.M), text)
        shown.keys("Escape")
        shown.wait(r"^ Work\.count")
        shown.keys("c", "Tab", "b")
        shown.wait(r"4\.2% +2 +100 +28  FOR_ITER +to 52")
        shown.keys("/", "hexdig", "Enter", "c")
        shown.wait("nothing|no calls from here")
        shown.keys("?")
        text = "\n".join(shown.wait("Keys of the annotate view"))
        check("machine code" in text, text)
        shown.keys("q", "e")
        shown.wait("no other event")
        shown.keys("q")
        shown.wait(f"^{PROMPT.strip()}$")


@live.test
def machine_code_of_a_callee():
    """d goes to the costliest native function of the line, or its sampled addresses, and back."""
    with terminal() as shown:
        shown.run(annotate("Work.count"))
        shown.wait(r"13 +total \+= i \* i")
        shown.keys("d")
        text = "\n".join(shown.wait(r"address  instruction"))
        check(re.search(r"^ _PyObject_Free", text), text)
        check(re.search(r"^ +\d+\.\d% +\d+ +[0-9a-f]+", text, re.M), text)
        shown.keys("q")
        shown.wait(r"^ Work\.count")


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
    with terminal(110, 30) as shown:
        shown.run(annotate("hot", recording.path))
        shown.wait(r"100002  def hot")
        for key, pattern in (
            ("g", r"^ +1  # a line"),
            ("NPage", r"^ +40  # a line"),
            ("Tab", r"100004 +for"),
            ("B", r"FOR_ITER|GET_ITER"),
            ("G", r"100010 +hot\(1000\)"),
        ):
            before = time.monotonic()
            shown.keys(key)
            shown.wait(pattern)
            took[key] = round(1000 * (time.monotonic() - before))
    check(max(took.values()) < 2000, took)
    return "ms from a key to the text of tmux: " + json.dumps(took)


if __name__ == "__main__":
    sys.exit(live.run(needs_lines=False))
