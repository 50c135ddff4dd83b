"""What recorded programs must be like: the time on their lines (tests/workloads/truth.py) and the calls
in their stacks (tests/workloads/edges.py)."""
import collections
import json
import math
import re

import live

TRUTH = live.WORKLOADS / "truth.py"
EDGES = live.WORKLOADS / "edges.py"
RATE = 7999
STACKS_RATE = 19999  # where not time is judged, but each stack by itself
SHARES_MOST = 50_000  # samples that tell how shares differ from the truth
SURE = 0.999  # of one interval; some thousand are looked at, each TRIES times before it counts
TRIES = 3
SECTIONS = len(re.findall(r"^@section$", TRUTH.read_text(), re.MULTILINE))
MARKS = {
    match[1]: number
    for number, text in enumerate(TRUTH.read_text().splitlines(), 1)
    if (match := re.search(r"#: ([\w.]+)$", text))
}


class Truth:
    """One recording of the program: samples by line as reported, and its own account by mark."""

    def __init__(self, python, seconds, *sections, stacks=True):
        self.recording = recording = live.Recording([python, TRUTH, seconds, *sections], "-e", "cpu-clock", "-F", RATE)
        self.account = json.loads(recording.stdout)
        self.report = recording.report()
        self.event = self.report["events"][0]["name"]
        self.samples = collections.Counter()
        for line in self.report["lines"]:
            if line["file"].endswith("/truth.py"):
                self.samples[line["line"]] += line["events"][self.event]["self_samples"]
        self.stacks = recording.script() if stacks else []

    def shares(self, section):
        """{mark: (samples, its share of the section's time)} and all their samples."""
        account = self.account[section]
        total = sum(account.values())
        hits = {mark: (self.samples[MARKS[mark]], spent / total) for mark, spent in account.items()}
        return hits, sum(samples for samples, _ in hits.values())

    def complaints(self, section):
        """What lies outside the interval around its share, as in persistent()."""
        hits, samples = self.shares(section)
        for mark, (count, share) in hits.items():
            if not live.within(count, samples, share, SURE):
                more = count > share * samples
                yield (mark, more), f"{section}: {mark} has {count} of {samples} samples, {share:.4f} of the time"

    def distance(self):
        """Total variation distance of the lines' samples to the truth, and the mean and the deviation of
        what independent samples of the true distribution have. Sections count by their samples."""
        terms = []
        for section in self.account:
            hits, samples = self.shares(section)
            terms += [(count, share * samples) for count, share in hits.values()]
        total = sum(count for count, _ in terms)
        # The mean of |x| for a normal distribution is sqrt(2 / pi) of its deviation.
        variances = [mean * (1 - mean / total) for _, mean in terms]
        floor = sum(math.sqrt(2 / math.pi * variance) for variance in variances) / 2 / total
        deviation = math.sqrt((1 - 2 / math.pi) * sum(variances)) / 2 / total
        apart = sum(abs(count - mean) for count, mean in terms) / 2 / total
        return apart, floor, deviation


def persistent(truth, again, complain=Truth.complaints):
    """What complain(truth, section) yields, (what, text), that it yields of each of TRIES recordings; and
    how many were made. again(sections) makes one more, of those that something was said of."""
    said = {section: dict(complain(truth, section)) for section in truth.account}
    for tries in range(1, TRIES + 1):
        said = {section: complaints for section, complaints in said.items() if complaints}
        if not said or tries == TRIES:
            break
        truth = again(list(said))
        for section, complaints in said.items():
            now = dict(complain(truth, section))
            said[section] = {what: text for what, text in now.items() if what in complaints}
    return [text for complaints in said.values() for text in complaints.values()], tries


class Edges:
    """Judges stacks of that program, run by one interpreter: a pair of frames that the program does not
    have, callee and caller, is impossible."""

    def __init__(self, python):
        self.called = lambda name: live.code_name(python, name)
        self.calls = self.allowed_calls(python)
        self.pairs = collections.Counter()
        self.impossible = []
        self.stacks = self.whole = 0

    def allowed_calls(self, python):
        """{line: names that the line may call}, from the marks in the program: `name`, or `name<3.10` for
        the versions before."""
        calls = {}
        for number, text in enumerate(EDGES.read_text().splitlines(), 1):
            if "#->" not in text or text.startswith('"""'):
                continue
            for mark in text.split("#->")[1].split():
                name, _, before = re.fullmatch(r"(.+?)(<3\.(\d+))?", mark).groups()
                if not before or live.version_of(python) < (3, int(before)):
                    calls.setdefault(number, set()).add(self.called(name))
        return calls

    def judge(self, samples):
        for sample in samples:
            frames = sample.python
            if any(frame.file.endswith("edges.py") for frame in frames):
                self.stacks += 1
                self.whole += frames[-1].name in ("<module>", self.called("Thread._bootstrap"))
            # What the program executes as text counts as its own.
            inside = [f.file.endswith("edges.py") for f in frames]
            for n in reversed(range(len(frames) - 1)):
                inside[n] |= frames[n].file == "<string>" and inside[n + 1]
            for n, (callee, caller) in enumerate(zip(frames, frames[1:])):
                # What the interpreter runs before the program has callers of its own.
                if not inside[n] or not inside[n + 1]:
                    continue
                permitted = {"leaf"} if caller.file == "<string>" else self.calls.get(caller.line, set())
                self.pairs[caller.line, callee.name] += 1
                if callee.name not in permitted:
                    self.impossible.append(f"{caller} does not call {callee} in {frames}")
                    break
        return self


def line_coverage(report):
    """Share of the samples that carry a Python line."""
    samples = report["samples"]
    return samples["python_lines"] / samples["total"] if samples["total"] else 0.0


def worked(python, samples):
    """A recording of so many samples in user space of all sections."""
    return live.Recording([python, TRUTH, samples / RATE / SECTIONS], "-e", "cpu-clock:u", "-F", RATE)


def worked_samples(samples):
    """How many tell the coverage, of a measure of so many stacks."""
    return max(2000, samples / 10)


def coverage(recording):
    """Share of its samples that carry a Python line, from the first on a line of the program on, and of each
    thread to its last: while the interpreter starts and compiles the program, and while it or a thread ends
    (pthread_exit() may load a library for that), no Python runs."""
    by_thread, program = collections.defaultdict(list), False
    for text in recording.read("script").splitlines():
        if text and not text[0].isspace():
            lines = by_thread[re.search(r"\d+/(\d+) ", text)[1]]
            lines.append(False)
        elif by_thread and live.PYTHON_FRAME.match(text):
            lines[-1] = True
            if not program and f"/{TRUTH.name}:" in text:
                program = True
                by_thread.clear()
                lines = by_thread[...] = [True]
    live.check(program, "no sample has a line of the program")
    for lines in by_thread.values():
        while any(lines) and not lines[-1]:
            lines.pop()
    return sum(map(sum, by_thread.values())) / sum(map(len, by_thread.values()))


class Measures:
    """What recordings of one interpreter are like, by so many samples (of stacks; fewer do for the rest):
    how the lines' shares differ from the truth, how many user samples have lines, which stacks cannot be."""

    def __init__(self, python, samples):
        self.truth = Truth(python, min(samples, SHARES_MOST) / RATE / SECTIONS, stacks=False)
        self.apart, self.floor, self.deviation = self.truth.distance()
        self.coverage = coverage(worked(python, worked_samples(samples)))
        self.edges = Edges(python)
        while self.edges.stacks < samples:
            seconds = min(20, 0.2 + 2 * samples / STACKS_RATE)
            recording = live.Recording([python, EDGES, seconds], "-e", "cpu-clock", "-F", STACKS_RATE)
            self.edges.judge(live.parse_script(recording.read("script", "--native=off")))
