"""The part of `run` that measures the page of `report --html` in a browser."""
import os
import pathlib
import statistics
import sys
import tempfile
import time

import replicate

# What a reader does with the page, each with the time until it is laid out, in ms.
STEPS = """
    const took = {open: performance.now()};
    const step = (name, action) => {
        const start = performance.now();
        action();
        document.body.getBoundingClientRect();
        took[name] = performance.now() - start;
    };
    const {flame} = app, widest = (row) => row.reduce((a, b) => a.w > b.w ? a : b).node;
    step("zoom", () => flame.choose(widest(flame.rects[Math.min(5, flame.rects.length - 1)]), true));
    step("reset", () => flame.reset());
    step("invert", () => flame.invert());
    step("zoom inverted", () => flame.choose(widest(flame.rects[1]), true));
    flame.invert();
    step("search", () => app.searchFor("work_2"));
    app.searchFor("");
    step("select half of the time", () => app.select({from: 0, to: Math.ceil(app.timeline.count / 2)}));
    app.select({from: 0, to: app.timeline.count});
    step("table of functions", () => app.show("functions"));
    step("source", () => app.show("source"));
    return took;
"""


def parts(bench):
    """By name; `bench` is the module that has output(), say() and the rest."""

    def page(options):
        """Of a million samples, most of whose stacks differ."""
        sys.path.insert(0, str(bench.TOP / "tests/live"))
        import browser

        if browser.why_not():
            return print(f"page: {browser.why_not()}")
        with tempfile.TemporaryDirectory() as folder:
            short, long, made = (f"{folder}/{name}" for name in ("short", "long", "page.html"))
            branchy = [bench.PYTHON, str(bench.TOP / "tests/workloads/branchy.py"), "2" if options.short else "12"]
            bench.output([*bench.pyperf_record(short, 9999, "-g", "-z", "0"), *branchy])
            want = 1e5 if options.short else 1e6
            replicate.replicate(short, long, round(want / bench.samples_of(short)["total"]) or 1)
            start = time.perf_counter()
            bench.output([bench.PYPERF, "report", "--html", made, "-i", long])
            took = time.perf_counter() - start
            bench.say(f"page of {bench.samples_of(long)['total']:,} samples, written in", f"{took:.2f} s")
            size = os.path.getsize(made) / 1e6
            bench.say("  its size", f"{size:.1f} MB", "under 10 MB", size < 10)
            runs = []
            with browser.browser() as shown:
                for _ in range(options.rounds):
                    shown.open(pathlib.Path(made).as_uri())
                    shown.wait("document.documentElement.dataset.ready === 'yes'")
                    runs.append(shown.run(STEPS))
        for name in runs[0]:
            took = statistics.median(run[name] for run in runs)
            if name == "open":
                bench.say("  open", f"{took:.0f} ms", "under 2 s", took < 2000)
            else:
                bench.say(f"  {name}", f"{took:.0f} ms")

    return {"page": page}
