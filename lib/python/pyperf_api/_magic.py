"""%pyperf and %%pyperf: record a statement or a cell and show the result below it."""
import argparse
import html
import os
import shlex
import subprocess
import tempfile

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import HTML, display

from ._command import RecordingError, find
from ._recording import profile

_HEIGHT = 640


class _Parser(argparse.ArgumentParser):
    def error(self, message):  # instead of an exit, which would end the kernel
        raise UsageError("%s; %s" % (message, self.format_usage().strip()))


def _parser():
    parser = _Parser(prog="%pyperf", add_help=False)
    parser.add_argument("-e", dest="events", default="", help="events to sample")
    parser.add_argument("-F", dest="frequency", help="samples per second")
    parser.add_argument("-o", dest="output", help="keep the recording in this file")
    parser.add_argument("--text", action="store_true", help="a table instead of the page")
    parser.add_argument("statement", nargs=argparse.REMAINDER)
    return parser


def _shown(recording, text):
    command = [find(), "report", "-q", "-i", recording]
    if not text:
        page = recording + ".html"
        run = subprocess.run(command + ["--html", page], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, check=False)
        if run.returncode:
            raise RecordingError(run.stderr.decode(errors="replace"))
        with open(page, encoding="utf-8") as file:
            content = file.read()
        os.unlink(page)
        return HTML('<iframe srcdoc="%s" sandbox="allow-scripts" style="width: 100%%; height: %dpx; border: 0">'
                    "</iframe>" % (html.escape(content), _HEIGHT))
    run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return HTML("<pre>%s</pre>" % html.escape(run.stdout.decode(errors="replace")))


@magics_class
class PyperfMagics(Magics):
    @line_cell_magic
    def pyperf(self, line, cell=None):
        """%pyperf [-e EVENTS] [-F HZ] [-o FILE] [--text] STATEMENT; %%pyperf with the same options.

        What is run keeps its effects. The result is shown also when it raises."""
        words = shlex.split(line) if cell is not None else line.split(" ")
        given = _parser().parse_args(words)
        with tempfile.TemporaryDirectory(prefix="pyperf-") as folder:
            path = os.path.abspath(given.output) if given.output else os.path.join(folder, "perf.data")
            try:
                with profile(path, events=given.events, frequency=given.frequency):
                    result = self._run(" ".join(given.statement), cell)
            finally:
                if os.path.exists(path):
                    display(_shown(path, given.text))
        return result

    def _run(self, statement, cell):
        if cell is not None:
            self.shell.run_cell(cell)
            return None
        try:
            compile(statement, "<pyperf>", "eval")
        except SyntaxError:
            return self.shell.ex(statement)
        return self.shell.ev(statement)
