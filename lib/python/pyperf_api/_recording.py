"""A recording of this process by the command, told when to begin and to end through a pipe."""
import contextlib
import ctypes
import linecache
import os
import subprocess
import tempfile
import threading
import time

from ._command import RecordingError, find

_ENDS_WITHIN = 60  # seconds: reading names and sources of what was hit, and writing them
_PR_SET_PTRACER = 0x59616D61

_running = []  # the latest last


if hasattr(time, "clock_gettime_ns"):

    def _now():
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

else:

    def _now():
        return int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9)


def _thread():
    return getattr(threading, "get_native_id", os.getpid)()


def _let_trace(pid):
    """Without rights of its own pyperf traces this process to see its frames, which Yama
    (kernel.yama.ptrace_scope 1) allows to parents, and to those that are named."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


class profile(contextlib.ContextDecorator):
    """Records this process, its threads and the processes that it starts meanwhile.

    output     the recording; an older one becomes OUTPUT.old
    events     names as of `pyperf record -e`; the default is the command's
    frequency  samples per second of each
    options    further ones of `pyperf record`, as a list

    A context manager, a decorator (each call replaces the recording of the call before), or
    start() and stop().
    """

    def __init__(self, output="perf.data", events=(), frequency=None, options=()):
        self.output = os.fspath(output)
        self._options = ["-e" + ",".join([events] if isinstance(events, str) else events)] if events else []
        if frequency:
            self._options += ["-F", str(frequency)]
        self._options += map(str, options)
        self._process = None

    def start(self):
        if self._process:
            raise RecordingError("%s is being recorded already" % self.output)
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._errors = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                [find(), "record", "-q", "-p", str(os.getpid()), "-D", "-1", "-o", self.output,
                 "--control", "fd:%d,%d" % (orders, answers)] + self._options,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors,
                pass_fds=(orders, answers),
                start_new_session=True,  # Ctrl-C is for the program
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(orders)
            os.close(answers)
        _let_trace(self._process.pid)
        self._order("enable")
        _running.append(self)
        return self

    def stop(self):
        if not self._process:
            raise RecordingError("%s is not being recorded" % self.output)
        if self in _running:
            _running.remove(self)
        self._give_sources()
        self._order("stop")
        try:
            status = self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise self._failed("pyperf did not end within %d s" % _ENDS_WITHIN) from None
        if status:
            raise self._failed("pyperf ended with status %d" % status)
        self._close()

    def pause(self):
        self._order("disable")

    def resume(self):
        self._order("enable")

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        self.stop()

    def _recreate_cm(self):  # each call of a decorated function is a recording of its own
        again = profile(self.output)
        again._options = self._options
        return again

    def _say(self, words, name):
        line = "%s @%d,%d,%d %s\n" % (words, _now(), os.getpid(), _thread(), " ".join(name.split()))
        with contextlib.suppress(OSError):  # the recording has ended
            os.write(self._orders, line.encode("utf-8", "replace"))

    def _give_sources(self):
        """Of what was compiled from no file, such as a notebook's cells, as far as tracebacks know it."""
        with tempfile.TemporaryDirectory(prefix="pyperf-") as folder:
            path = os.path.join(folder, "source.py")
            for name, entry in list(linecache.cache.items()):
                if len(entry) == 4 and not os.path.exists(name) and "\n" not in name:
                    with open(path, "w", encoding="utf-8", errors="replace") as file:
                        file.writelines(entry[2])
                    self._order("source %s\t%s" % (path, name))

    def _order(self, word):
        """Returns when it is carried out."""
        if not self._process:
            raise RecordingError("%s is not being recorded" % self.output)
        try:
            os.write(self._orders, (word + "\n").encode())
        except OSError:
            pass  # it has ended: so has the pipe of its answers
        answer = b""
        while not answer.endswith(b"\n"):
            got = os.read(self._answers, 16)
            if not got:
                self._process.wait()
                raise self._failed("pyperf ended with status %d" % self._process.returncode)
            answer += got

    def _failed(self, what):
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        self._process.wait()
        self._close()
        return RecordingError("%s: %s" % (what, said) if said else what)

    def _close(self):
        os.close(self._orders)
        os.close(self._answers)
        self._errors.close()
        self._process = None


@contextlib.contextmanager
def phase(name):
    """Names what runs within it, in all threads; phases may nest and come again."""
    recordings = list(_running)
    for recording in recordings:
        recording._say("begin", name)
    try:
        yield
    finally:
        for recording in recordings:
            if recording in _running:
                recording._say("end", name)


def mark(name):
    """Names a moment."""
    for recording in list(_running):
        recording._say("mark", name)
