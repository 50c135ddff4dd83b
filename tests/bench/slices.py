"""How much slower a recorded program is, told on a machine where others work, too.

One process does the same work again and again, in stretches of some milliseconds. Recorders are attached to
it and switched on and off: a round is a slice of time alone, another one alone, and one with each recorder, in
an order left to chance. What the slices differ by is the recorders' doing, but for what else the machine does;
and it does not hang on where a process's memory came to lie, which from one process to the next is worth more
than a recorder.

Two figures come of it. By the clock: all stretches, with all that befell the target, which where others work is
mostly their doing. Undisturbed: the CPU time of the fastest stretches. Who shares a core's caches and units,
in another hardware thread or another guest, slows a program by half and shows in no statistic, but comes and
goes, while every stretch has its share of the samples. What the process of a recorder uses is in the first
figure as far as it hinders the target, and in the second not at all: it is told beside it.

How sure a figure is the rounds tell (bootstrap): it is made again from as many of them, drawn by chance, and
lies within the bounds in all but a twentieth of the times.
"""
import contextlib
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

DRAWS = 500
UNSURE = 0.05
FEWEST_ROUNDS = 6  # that tell how sure a figure is
FASTEST = 10  # of a hundred stretches so many are taken for undisturbed
QUIET = 0.05  # of the CPUs, that others may use where a claim is to fail
# Before a slice the same work is done uncounted: a recorder that was switched off ends what it has, and one
# that was switched on comes into its rhythm.
SETTLE_SECONDS = 0.3
SLICE_SECONDS = 0.7
STRETCH_SECONDS = 0.01
TICKS = os.sysconf("SC_CLK_TCK")

# Told how many times its work makes a stretch, and for how many seconds it is to go on, it answers with the
# seconds of the clock and of its CPU time that each stretch took.
TARGET = """
import json, sys, time
{work}
for line in sys.stdin:
    times, seconds = json.loads(line)
    marks = [(time.perf_counter(), time.process_time())]
    while marks[-1][0] < marks[0][0] + seconds:
        for _ in range(times):
            work()
        marks.append((time.perf_counter(), time.process_time()))
    print(json.dumps([(b[0] - a[0], b[1] - a[1]) for a, b in zip(marks, marks[1:])]), flush=True)
"""


@dataclasses.dataclass
class Slice:
    """Seconds, all of them."""

    clock: list  # by stretch
    cpu: list
    recorder: float  # CPU time of its process


def used(pid):
    """Seconds that a process was on a CPU."""
    seconds = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
            seconds += int(file.read().split()[0]) / 1e9
    return seconds


def busy():
    """Seconds that all CPUs were, with those that the host took."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = (int(field) / TICKS for field in file.readline().split()[1:9])
    return user + nice + system + irq + softirq + steal


class Target:
    def __init__(self, python, work, folder):
        self.process = subprocess.Popen(
            [python, "-c", TARGET.format(work=work)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(folder)},
        )
        self.pid = self.process.pid
        self.times = 1
        _, cpu = self.work(SETTLE_SECONDS)
        self.times = max(1, round(STRETCH_SECONDS / min(cpu)))

    def work(self, seconds):
        """For so long: what its stretches took by the clock, and of CPU time."""
        self.process.stdin.write(f"[{self.times}, {seconds}]\n")
        self.process.stdin.flush()
        return map(list, zip(*json.loads(self.process.stdout.readline())))

    def end(self):
        self.process.kill()
        self.process.communicate()


class Recorder:
    """Attached and switched off. `command` is one of pyperf or perf, without a target."""

    def __init__(self, command, pid):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            [*command, "-D", "-1", f"--control=fd:{orders},{answers}", "-p", str(pid)], pass_fds=(orders, answers),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(answers)
        self.pid = self.process.pid
        self.order("ping")

    def order(self, word):
        os.write(self.orders, f"{word}\n".encode())
        if not os.read(self.answers, 64):
            sys.exit(f"bench: {' '.join(self.process.args)}: ended")

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.orders)
        os.close(self.answers)


def take(target, recorder):
    """A slice with the recorder, or alone."""
    if recorder:
        recorder.order("enable")
    target.work(SETTLE_SECONDS)
    before = used(recorder.pid) if recorder else 0
    taken = Slice(*target.work(SLICE_SECONDS), recorder=0)
    if recorder:
        taken.recorder = used(recorder.pid) - before
        recorder.order("disable")
    return taken


@dataclasses.dataclass
class Estimate:
    """A figure, and the bounds that it lies within."""

    value: float
    low: float
    high: float

    def bounds(self):
        return f"{self.low:+.1%} to {self.high:+.1%}" if math.isfinite(self.low) else "of too few rounds"

    def at_most(self, limit):
        """None: undecided."""
        return True if self.high <= limit else False if self.low > limit else None


def clock(slices):
    return statistics.fmean(value for taken in slices for value in taken.clock)


def undisturbed(slices):
    values = sorted(value for taken in slices for value in taken.cpu)
    return values[len(values) * FASTEST // 100]


class Comparison:
    """Rounds of slices: alone, and with each of `commands` (name -> command of a recorder)."""

    def __init__(self, python, work, folder, commands, rounds):
        self.rounds, self.recorders = [], list(commands)
        with contextlib.ExitStack() as stack:
            target = Target(python, work, folder)
            stack.callback(target.end)
            recorders = {"alone": None, "alone again": None}
            for name, command in commands.items():
                recorders[name] = Recorder(command, target.pid)
                stack.callback(recorders[name].end)
            pids = [os.getpid(), target.pid, *(recorder.pid for recorder in recorders.values() if recorder)]

            def others():
                return busy() - sum(map(used, pids))

            began, before = time.monotonic(), others()
            for _ in range(rounds):
                names = random.sample(list(recorders), len(recorders))
                self.rounds.append({name: take(target, recorders[name]) for name in names})
            self.others = max(0, others() - before) / ((time.monotonic() - began) * os.cpu_count())

    def alone(self, seconds):
        return seconds([taken["alone"] for taken in self.rounds])

    def estimate(self, statistic):
        """Of a function of rounds."""
        draws = sorted(statistic(random.choices(self.rounds, k=len(self.rounds))) for _ in range(DRAWS))
        unsure = round(DRAWS * UNSURE / 2)
        low, high = (draws[unsure], draws[-unsure - 1]) if len(self.rounds) >= FEWEST_ROUNDS else (-math.inf, math.inf)
        return Estimate(statistic(self.rounds), low, high)

    @staticmethod
    def _ratio(rounds, name, seconds):
        alone = [taken[way] for taken in rounds for way in ("alone", "alone again")]
        return seconds([taken[name] for taken in rounds]) / seconds(alone) - 1

    def added(self, name, seconds):
        """To the time of the target alone."""
        return self.estimate(lambda rounds: self._ratio(rounds, name, seconds))

    def more(self, name, other, seconds, times=1):
        """What one recorder adds more than the other does, or than so many times that."""
        return self.estimate(lambda rounds: self._ratio(rounds, name, seconds) - times * self._ratio(rounds, other, seconds))

    def null(self, seconds):
        """What the same method makes of nothing."""
        return self.estimate(lambda rounds: seconds([taken["alone again"] for taken in rounds])
                             / seconds([taken["alone"] for taken in rounds]) - 1)

    def share(self, name):
        """Of a CPU, that a recorder's process uses."""
        return statistics.fmean(taken[name].recorder / sum(taken[name].clock) for taken in self.rounds)


def tell(say, compared, pairs, limit=None, times=1, bare=None):
    """The figures, and whether they hold: each recorder of `pairs` (ours -> perf's) adds at most `limit`, and at
    most so many times what the other adds. What fails where others work may be their doing. What it adds to the
    recorder `bare`, whose samples have nothing in them, is its own doing, and not that of interrupts."""
    quiet = compared.others <= QUIET

    def verdict(estimate, most):
        holds = estimate.at_most(most)
        return "undecided" if holds is None or (not holds and not quiet) else holds

    def told(figure, estimate, claim="", most=None):
        say(f"{figure} ({estimate.bounds()})", f"{estimate.value:.2%}", claim, None if most is None else verdict(estimate, most))

    say("of the CPUs, used by others and the host", f"{compared.others:.1%}")
    for words, seconds in (("by the clock", clock), ("undisturbed", undisturbed)):
        say(f"a stretch of the work, {words}", f"{compared.alone(seconds) * 1e3:.2f} ms")
        told("  added by nothing", compared.null(seconds))
        for name in compared.recorders:
            bounded = limit is not None and name in pairs
            told(f"  added by {name}", compared.added(name, seconds),
                 *((f"at most {limit:.0%}, nobody else at work", limit) if bounded else ()))
        for name, other in pairs.items():
            against = f"{times} times {other}" if times != 1 else other
            told(f"  {name} beyond {against}", compared.more(name, other, seconds, times), "nothing", 0)
            if bare:
                told(f"  {name} beyond {bare}", compared.more(name, bare, seconds))
    for name in compared.recorders:
        say(f"{name}: its process, of a CPU", f"{compared.share(name):.2%}")
