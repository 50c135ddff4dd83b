"""Containers for the live tests: podman with a root made of this machine's own files.

A container sees /usr read-only as it is here, a Python under /opt/py, pyperf under /opt/pyperf and a
folder of the test under /work: all by other names than outside, save for /usr. The seccomp profile
is the file that the container engines' own package brings.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess

import live
from live import check

PROFILE = pathlib.Path("/usr/share/containers/seccomp.json")
HYBRID = pathlib.Path("/sys/fs/cgroup/unified")
# crun refuses the mix of both cgroup versions; without the second one's mount it is the first alone.
# podman raises limits, where it may not, unless told others.
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
ENTER = 'if [ -d {0} ]; then umount {0} 2>/dev/null; fi; exec "$@"'.format(HYBRID)


def filter_of_docker_23():
    """The profile with the rules of moby's pull request 43988, which Docker has from 23.0 on:
    perf_event_open with CAP_PERFMON, bpf with CAP_BPF."""
    profile = json.loads(PROFILE.read_text())
    gated = {"perf_event_open": "CAP_PERFMON", "bpf": "CAP_BPF"}
    for rule in profile["syscalls"]:
        if rule["action"] == "SCMP_ACT_ERRNO":
            rule["names"] = [name for name in rule["names"] if name not in gated]
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    profile["syscalls"] += [
        {"names": [name], "action": "SCMP_ACT_ALLOW", "includes": {"caps": [cap]}} for name, cap in gated.items()
    ]
    return json.dumps(profile)


def has_perf_maps(version):
    return tuple(map(int, version.split(".")[:2])) >= (3, 12)


class Engine:
    """podman with storage of its own, in a folder that goes with it."""

    def __init__(self):
        if os.geteuid() != 0:
            raise live.Skip("containers need root here")
        for tool in ("podman", "crun", "unshare"):
            if not shutil.which(tool):
                raise live.Skip(f"{tool} is not installed (scripts/setup installs it)")
        if not PROFILE.exists():
            raise live.Skip(f"{PROFILE} is missing (Debian: golang-github-containers-common)")
        self.folder = live.scratch_folder()
        self.path = pathlib.Path(self.folder.name)
        self.path.chmod(0o755)
        for name in ("root", "shared"):
            (self.path / name).mkdir(mode=0o755)
        (self.path / "shared").chmod(0o777)
        for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "run", "var", "opt/py", "opt/pyperf", "work"):
            (self.path / "root" / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if os.path.islink(f"/{name}"):
                (self.path / "root" / name).symlink_to(os.readlink(f"/{name}"))
        (self.path / "docker23.json").write_text(filter_of_docker_23())
        self.count = 0
        self.python = self.choose_python()
        ran = self.run([], "true")
        if ran.returncode:
            raise live.Skip("podman cannot run a container here: " + ran.stderr.strip().splitlines()[-1])

    @staticmethod
    def choose_python():
        """One whose place is not that of the system's, and that writes perf maps, where there is one."""
        found = [(version, path) for version, path in live.PYTHONS.items() if not getattr(path, "root", "")]
        if not found:
            raise live.Skip("no CPython of a supported version")
        _, path = max(found, key=lambda one: (not one[1].startswith("/usr/"), has_perf_maps(one[0])))
        ask = "import sys; print(sys.base_prefix); print(sys.executable)"
        prefix, executable = subprocess.run([path, "-c", ask], capture_output=True, text=True).stdout.splitlines()
        executable = os.path.realpath(executable)
        check(executable.startswith(prefix + "/"), executable, "is not below", prefix)
        return prefix, "/opt/py" + executable[len(prefix):]

    def podman(self, *arguments):
        """The command line of podman."""
        return [
            "unshare", "-m", "sh", "-c", ENTER, "sh", "podman", "--root", self.path / "storage", "--runroot",
            self.path / "run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
            *arguments,
        ]

    def command(self, options, *command):
        """The command line that runs a command in a new container."""
        own = () if any(option.startswith("--pid") for option in options) else ("--cgroups", "disabled")
        return self.podman(
            "run", "--rm", "-i", "--network", "none", *LIMITS, *own, *options,
            "-v", "/usr:/usr:ro", "-v", f"{self.python[0]}:/opt/py:ro", "-v", f"{live.BUILD}:/opt/pyperf:ro",
            "-v", f"{self.path / 'shared'}:/work", "-w", "/work",
            "--env", "PYTHONHOME=/opt/py", "--env", "LD_LIBRARY_PATH=/opt/py/lib",
            "--rootfs", self.path / "root", *command,
        )

    def run(self, options, *command):
        return subprocess.run(
            self.command(options, *command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )

    def close(self):
        self.folder.cleanup()


class Container:
    """A program in a container, told to end by the end of its input."""

    def __init__(self, engine, options, *command):
        self.engine = engine
        engine.count += 1
        self.name = f"pyperf-test-{os.getpid()}-{engine.count}"
        self.process = subprocess.Popen(
            engine.command(["--name", self.name, *options], *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )
        line = self.process.stdout.readline()
        if line != "ready\n":
            self.process.kill()
            raise live.Failed(f"the container did not start: {self.process.communicate()}")
        ran = subprocess.run(
            engine.podman("inspect", "--format", "{{.State.Pid}}", self.name), capture_output=True, text=True,
        )
        check(ran.returncode == 0, ran.stderr)
        self.pid = int(ran.stdout)

    def end(self):
        """Its status."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.kill(self.pid, signal.SIGKILL)
                self.process.wait(20)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.process.stdout.close()
        self.process.stderr.close()
