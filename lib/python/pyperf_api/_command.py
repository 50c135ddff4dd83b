"""Finds the command pyperf, which is not the benchmark package of that name."""
import os
import shutil
import subprocess


class RecordingError(RuntimeError):
    """The recording could not be made; the text says why and what to do."""


def _is_profiler(path):
    """The other one, from PyPI, has no such line in answer to `pyperf version`."""
    try:
        run = subprocess.run([path, "version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return run.returncode == 0 and b"libpfm4" in run.stdout


def find():
    named = os.environ.get("PYPERF")
    if named:
        if _is_profiler(named):
            return named
        raise RecordingError("PYPERF names %s, which is not the profiler pyperf" % named)
    found = []
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = shutil.which("pyperf", path=folder or ".")
        if path and path not in found:
            found.append(path)
            if _is_profiler(path):
                return path
    if found:
        raise RecordingError("%s is the benchmark tool of that name, not the profiler; name the profiler's path "
                             "in the environment variable PYPERF" % ", ".join(found))
    raise RecordingError("there is no command pyperf in PATH; install it, or name its path in the environment "
                         "variable PYPERF")
