"""A terminal that tests can look at: a shell in tmux, which draws what its programs write."""
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time

import live

PROMPT = "ready> "


class Terminal:
    def __init__(self, folder, columns, rows, environment):
        self.socket = f"{folder}/tmux"
        # What the tests' own terminal is must not matter.
        chosen = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PS1": PROMPT, **environment}
        kept = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME") if name in os.environ]
        shell = ["env", "-i", *kept, *(f"{name}={value}" for name, value in chosen.items()), "bash", "--norc", "--noprofile"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), shlex.join(shell), LC_ALL="C.UTF-8")
        self.wait(PROMPT.strip())

    def tmux(self, *arguments, **environment):
        command = ["tmux", "-S", self.socket, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment}).stdout

    def keys(self, *keys):
        """By tmux's names: "Enter", "C-z"; other words are typed."""
        self.tmux("send-keys", *keys)

    def run(self, command):
        self.tmux("send-keys", "-l", command)
        self.keys("Enter")

    def mouse(self, row, column):
        """A click of the first button, as xterm reports it; both from 1 on."""
        for end in "Mm":
            self.tmux("send-keys", "-l", f"\033[<0;{column};{row}{end}")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def lines(self, colours=False):
        return self.tmux("capture-pane", "-p", *["-e", "-N"] * colours).rstrip("\n").split("\n")

    def wait(self, pattern, gone=False, patience=20):
        """Until the screen has the pattern, or no more; its lines."""
        end = time.monotonic() + patience
        while True:
            lines = self.lines()
            if (re.search(pattern, "\n".join(lines), re.M) is None) == gone:
                return lines
            live.check(time.monotonic() < end, f"'{pattern}'", "stays on" if gone else "does not come to", "the screen:\n", "\n".join(lines))
            time.sleep(0.02)


@contextlib.contextmanager
def terminal(columns=80, rows=24, **environment):
    if not shutil.which("tmux"):
        raise live.Skip("no tmux")
    with tempfile.TemporaryDirectory() as folder:
        shown = None
        try:
            shown = Terminal(folder, columns, rows, environment)
            yield shown
        finally:
            # It ends with its only session, and so do its programs.
            subprocess.run(["tmux", "-S", f"{folder}/tmux", "kill-server"], capture_output=True)
