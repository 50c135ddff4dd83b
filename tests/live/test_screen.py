#!/usr/bin/env python3
"""`pyperf report` on a terminal: what its views show, what keys do, and how the terminal is left."""
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile

import live
from live import check
from terminal import PROMPT, terminal

GOLDEN = live.TOP / "tests/data/golden.data"
EVENTS = pathlib.Path(os.environ.get("PYPERF_FIXTURES") or live.TOP / "../shared/fixtures") / "perf-data/perf.data.busy.0-3.4"
AT_PROMPT = f"^{PROMPT.strip()}$"

# Of golden.data, whose native names depend on what is installed.
FIRST_SCREEN = """\
 cpu-clock: 121 samples   by self   /usr/bin/python3 golden.py
   self  total   py nat krn   function
  27.3%  71.1%   38  62       + Work.count              golden.py:10
         98.3%                + <module>                golden.py:1
         97.5%                + main                    golden.py:26
         15.7%      100       + walk                    golden.py:20
         10.7%      100       + Work.hash_all           golden.py:16"""
NARROW = """\
 cpu-clock: 121 samples   by total   /usr/bin/python3 golden
   self  total   function
         98.3%   + <module>            golden.py:1
         97.5%   + main                golden.py:26
  27.3%  71.1%   + Work.count          golden.py:10
         15.7%   + walk                golden.py:20
         10.7%   + Work.hash_all       golden.py:16"""


def supported():
    if any("ncurses" in line and "[off]" in line for line in live.pyperf("version").stdout.splitlines()):
        raise live.Skip("built without ncurses")


def report(*arguments):
    return shlex.join([str(live.PYPERF), "report", *map(str, arguments)])


def is_shown(lines, expected):
    expected = expected.split("\n")
    check(lines[: len(expected)] == expected, "the screen is\n", "\n".join(lines), "\nand not\n", "\n".join(expected))


@live.test
def keys_and_views():
    """One recording, walked through as a reader would."""
    supported()
    with terminal() as shown:
        shown.run(report("-i", GOLDEN, "--kind", "python") + "; echo status $?")
        is_shown(shown.wait("Work.hash_all"), FIRST_SCREEN)

        # Callers and callees in place.
        shown.keys("j", "j", "Right")
        lines = shown.wait("- main")
        above = lines[lines.index(next(line for line in lines if "- main" in line)) + 1 :]
        check("- called by" in above[0] and "<module>" in above[1] and "- calls" in above[2], lines)
        check([line.split()[-2:] for line in above[3:6]] == [["Work.count", "golden.py:10"], ["walk", "golden.py:20"], ["Work.hash_all", "golden.py:16"]], lines)
        check([line.split()[0] for line in above[3:6]] == ["27.3%", "15.7%", "10.7%"], lines)
        shown.keys("C")
        shown.wait("called by", gone=True)

        # Order; search; zoom, which the title tells.
        shown.keys(">")
        lines = shown.wait("by total")
        check("<module>" in lines[2] and "main" in lines[3], lines)
        shown.keys("s")
        shown.wait("Sort by")
        shown.keys("G", "Enter")
        shown.wait("by file")
        shown.keys("<", "<")
        shown.wait("by total")
        shown.keys("/", "HASH_", "Enter", "Enter")
        shown.wait("^ Work.hash_all  golden.py:16")
        shown.keys("q")
        shown.wait("by total")
        shown.keys("/", "nowhere", "Enter")
        shown.wait("'nowhere' is not here")
        shown.keys("t")
        shown.wait(r"100\.0%  \d+ \(python3\)")
        shown.keys("Enter")
        shown.wait(r"^ .*> thread \d+ \(python3\)")
        shown.keys("F")
        shown.wait(r"golden\.py +│")
        shown.keys("Enter")
        lines = shown.wait("> thread .*> file golden.py")
        check("118 samples" in lines[0] and "100.0%" in lines[2], lines)
        shown.keys("Escape")
        shown.wait("> file", gone=True)
        shown.keys("BSpace")
        shown.wait("> thread", gone=True)

        # The flame graph: main's box is as wide as what it takes, and zooms to the whole width.
        shown.keys("f")
        lines = shown.wait("^>all")
        check(lines[3].startswith("<module>") and lines[4].startswith("main"), lines)
        count, walk = lines[5].index("Work.count"), lines[5].index("walk")
        check(count == 0 and abs(walk - 0.711 * 80) <= 1, walk, lines)
        shown.keys("Down", "Down", "Down", "Right", "Enter")
        lines = shown.wait("^>walk")
        check("15.7%  walk  golden.py:20" in lines[1] and lines[5] == ">walk", lines)
        shown.keys("r", "/", "hash_a", "Enter")
        shown.wait("10.7%  Work.hash_all")
        shown.keys("Escape")
        shown.wait("by total")

        # Help has what the keys do; sizes from the smallest on.
        shown.keys("?")
        shown.wait("Keys of the report view")
        shown.keys("/", "flame", "Enter", "q")
        shown.wait("Keys of", gone=True)
        shown.resize(60, 12)
        is_shown(shown.wait(r"^\? help  q back.{0,40}$"), NARROW)
        shown.resize(50, 10)
        shown.wait("50x10 is too small: 60x12 at least")
        shown.resize(200, 60)
        lines = shown.wait("Work.hash_all")
        check(len(lines) == 60 and "golden.py:16" in lines[6], lines)
        shown.mouse(5, 40)
        shown.mouse(5, 40)
        shown.wait("acc|while|for ")
        shown.keys("q", "q")
        shown.wait("^status 0$")


@live.test
def events_in_turn():
    supported()
    if not EVENTS.exists():
        raise live.Skip("no recordings at PYPERF_FIXTURES")
    with terminal() as shown:
        shown.run(report("-i", EVENTS))
        shown.wait("^ cycles: 67 samples")
        shown.keys("Tab")
        shown.wait("^ instructions: 127 samples")
        shown.keys("BTab", "BTab")
        shown.wait("^ branch-misses: 123|^ branch-misses: 106 samples")
        shown.keys("q")
        shown.wait(AT_PROMPT)


@live.test
def the_terminal_is_given_back():
    """Whatever ends the view, or interrupts it: the modes are as before, and so is the screen."""
    supported()
    with terminal() as shown, tempfile.TemporaryDirectory() as folder:
        def modes(name):
            shown.run(f"clear; stty -a >{folder}/{name}; tput cols")
            shown.wait("^80$")
            return pathlib.Path(folder, name).read_text()

        before = modes("before")
        for how in ("q", "stopped", signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, "interrupt"):
            if how == signal.SIGSEGV and live.SANITIZED:
                continue # the sanitizer has it
            shown.run(f"clear; ulimit -c 0; bash -c 'echo $$ >{folder}/pid; exec \"$@\"' - {report('-i', GOLDEN)}")
            shown.wait("Work.hash_all")
            if how == "stopped":
                shown.keys("C-z")
                shown.wait("Stopped")
                check(modes(how) == before, "modes differ while it is stopped")
                shown.run("clear; fg")
                shown.wait("Work.hash_all")
            if how == "interrupt":
                shown.keys("C-c")
            elif isinstance(how, str):
                shown.keys("q")
            else:
                os.kill(int(pathlib.Path(folder, "pid").read_text()), how)
            shown.wait("Work.hash_all", gone=True)
            check(modes(str(how)) == before, "modes differ after", how)
            check(not any("Work" in line for line in shown.lines()), shown.lines())


@live.test
def names_are_inert():
    """Control characters of the target reach no terminal; nor do those of a locale that has none."""
    supported()
    hostile = "evil\033c\033[2J\007\u202e\u009b31m"
    with tempfile.TemporaryDirectory() as folder:
        stacks = pathlib.Path(folder, "stacks.folded")
        stacks.write_text(f"main;{hostile} 30\nmain;caf\u00e9 10\n")
        for environment, cafe in ({}, "caf\u00e9"), ({"LC_ALL": "C"}, r"caf\?"):
            with terminal(**environment) as shown:
                shown.run(report("-i", stacks))
                lines = shown.wait(cafe)
                check(any("evil\\x1bc\\x1b[2J\\a\\u202e\\x9b31m" in line for line in lines), lines)
                shown.keys("f")
                shown.wait(r">all")
                check(any("evil\\x1b" in line for line in shown.lines()), shown.lines())


@live.test
def colours_only_where_they_are_wanted():
    supported()
    for environment, wanted in ({}, True), ({"NO_COLOR": "1"}, False):
        with terminal(**environment) as shown:
            shown.run(report("-i", GOLDEN))
            shown.wait("Work.hash_all")
            colours = [line for line in shown.lines(colours=True) if "\033[31m" in line or "\033[44m" in line]
            check(bool(colours) == wanted, environment, colours)


@live.test
def text_where_there_is_no_screen():
    """Redirected, asked for text, or on a terminal that cannot move its cursor."""
    with terminal() as shown, tempfile.TemporaryDirectory() as folder:
        text = live.pyperf("report", "-i", GOLDEN, "--stdio").stdout
        check("function" in text and "\033" not in text, text)
        if any("ncurses" in line and "[on " in line for line in live.pyperf("version").stdout.splitlines()):
            shown.run(f"clear; TERM=dumb {report('-i', GOLDEN)} --tui; echo status $?")
            check("TERM says that the terminal is dumb" in "".join(shown.wait("^status 1$")), shown.lines())
        commands = [
            report("-i", GOLDEN, "--stdio"), f"TERM=dumb {report('-i', GOLDEN)}", f"{report('-i', GOLDEN)} </dev/null",
            f"{report('-i', GOLDEN)} >{folder}/out",
        ]
        for number, command in enumerate(commands):
            shown.run(f"clear; {command}; echo end {number}")
            shown.wait(f"^end {number}$")
        check(pathlib.Path(folder, "out").read_text() == text, "redirected text differs")
    status = subprocess.run([live.PYPERF, "report", "--tui", "-i", GOLDEN], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    check(status.returncode == 1 and "no interactive view" in status.stderr and "--stdio" in status.stderr, status)


live.run(needs_lines=False)
