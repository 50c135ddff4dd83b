#!/usr/bin/env python3
"""The page of `pyperf report --html`, used in a browser: what it shows, and that names stay names."""
import json
import pathlib
import re
import subprocess

import browser
import live

GOLDEN = live.TOP / "tests/data/golden.data"
PAGE = None  # the browser

# Names that would run, break out or reorder text where they were taken for more than names.
HOSTILE = [
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "right\u202eto\u2066left",
    "bell\x07\x1b[31mred",
    "quote\"back\\slash'&lt;&amp;",
    "line\u2028separator\nnewline",
]
HOSTILE_PROGRAM = """
import time, types
names = {names!r}
def spin(n):
    x = 0
    for i in range(n):
        x += i * i
    return x
end = time.monotonic() + 1
made = []
for name in names:
    code = compile("def f(n):\\n x = 0\\n for i in range(n):\\n  x += i * i\\n return x\\n", "/tmp/" + name.split("/")[0], "exec")
    scope = {{}}
    exec(code, scope)
    f = scope["f"]
    extra = {{"co_qualname": name}} if hasattr(f.__code__, "co_qualname") else {{}}
    made.append(types.FunctionType(f.__code__.replace(co_name=name, **extra), scope))
while time.monotonic() < end:
    for f in made:
        f(20000)
"""


def page_of(data, *options):
    path = pathlib.Path(live.SCRATCH.name, "page.html")
    live.pyperf("report", "--html", path, "-i", data, *options)
    return path


def show(data=GOLDEN, *options):
    """Opens the page of a recording."""
    path = page_of(data, *options)
    PAGE.resize(1400, 900)
    PAGE.open(path.as_uri())
    PAGE.wait("document.documentElement.dataset.ready === 'yes'")
    return path


def report(data=GOLDEN, *options):
    return json.loads(live.pyperf("report", "--json", "-i", data, *options).stdout)


def rows(table):
    """The text of every cell, row by row."""
    return PAGE.run(
        "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))", table,
    )


def columns(table):
    return PAGE.run(
        "return [...document.querySelectorAll(arguments[0] + ' thead tr:last-child th button')]"
        ".map((head) => head.lastChild.data || head.textContent)", table,
    )


def share(value):
    return f"{100 * value:.1f}%" if value >= 0.0005 else ""


def frame(name):
    """Where the widest frame of a function lies on the screen."""
    place = PAGE.run("""
        let best = null;
        const {flame} = app, box = document.getElementById("flame-canvas").getBoundingClientRect();
        for (const row of flame.rects)
            for (const rect of row)
                if (flame.label(rect.node) === arguments[0] && (!best || rect.w > best.w))
                    best = rect;
        return best && {x: box.left + best.x, w: best.w, y: box.top + flame.top(best.node.depth) - flame.scroll.scrollTop + 9};
    """, name)
    live.check(place, f"no frame {name}")
    return place


def clean():
    complaints = PAGE.complaints()
    live.check(not complaints, complaints)


@live.test
def functions_have_the_figures_of_the_report():
    show()
    PAGE.keys("2")
    event = report()["events"][0]["name"]
    heads = columns("#functions-table")
    live.check(heads[:2] == ["self", "total"] and "function" in heads, heads)
    at = heads.index("function")
    shown = {(row[at], row[0], row[1]) for row in rows("#functions-table")}
    known = [f for f in report()["functions"] if f["events"]]
    for function in known[:200]:
        figures = function["events"][event]
        row = (function["qualname"], share(figures["self"]), share(figures["total"]))
        live.check(row in shown, row, "is not in the page")
    live.check(len(shown) <= len(known), "the page has functions that the report has not")
    clean()
    return f"{len(known)} functions"


@live.test
def lines_and_source_have_the_figures_of_the_report():
    show()
    event = report()["events"][0]["name"]
    known = [line for line in report()["lines"] if line["file"].endswith("golden.py")]
    PAGE.keys("4")
    PAGE.run("app.showFile(app.model.data.files.findIndex(([path]) => path.endsWith('golden.py')))")
    text = (live.TOP / "tests/data/golden.py").read_text().splitlines()
    shown = {}
    for row in PAGE.run(
        "return [...document.querySelectorAll('#source-text tr.line')].map((row) =>"
        " [Number(row.dataset.line), row.cells[0].innerText, row.cells[1].innerText, row.lastChild.innerText])"
    ):
        shown[row[0]] = row[1:]
    by_line = {}
    for line in known:
        by_line.setdefault(line["line"], []).append(line["events"][event])
    for number, figures in by_line.items():
        live.check(number in shown, f"line {number} is not shown")
        live.check(shown[number][0] == share(sum(f["self"] for f in figures)), number, shown[number], figures)
        live.check(shown[number][2].rstrip() == text[number - 1].rstrip(), shown[number], text[number - 1])
    # The next hot line is further down and hot.
    first = PAGE.run("return app.source.line")
    PAGE.click("#next-hot")
    second = PAGE.run("return app.source.line")
    live.check(second != first and second in by_line, first, second)
    clean()
    return f"{len(by_line)} lines"


@live.test
def metrics_are_those_of_the_report():
    """Counts read along at another event's samples, and events that were sampled apart."""
    maker = live.BUILD / "tests/unit/test_attribution"
    if not maker.exists():
        raise live.Skip("the unit tests are not built")
    shown = 0
    for way in ("group", "apart"):
        data = pathlib.Path(live.SCRATCH.name, f"{way}.data")
        subprocess.run([maker, data, live.TOP / "tests/data/hot.py", way], check=True)
        known = report(data, "--metrics", "ipc,mpki")
        show(data)
        PAGE.keys("3")
        heads = columns("#lines-table")
        at = [heads.index(name) for name in ("line", "IPC", "MPKI")]
        page = {row[at[0]]: (row[at[1]], row[at[2]]) for row in rows("#lines-table")}
        for line in known["lines"]:
            name = f"{pathlib.Path(line['file']).name}:{line['line']}"
            for key, text in zip(("ipc", "mpki"), page[name]):
                if text:
                    value, decimals = line["metrics"][key]["value"], len(text.partition(".")[2])
                    live.check(text == f"{value:.{decimals}f}", way, name, key, text, value)
                    shown += 1
        clean()
    live.check(shown >= 20, "the page shows few metrics:", shown)
    return f"{shown} figures"


@live.test
def tables_sort():
    show()
    PAGE.keys("2")

    def value(text):
        return float(text.rstrip("%") or 0)

    totals = columns("#functions-table").index("total")
    PAGE.click(f"#functions-table thead tr:last-child th:nth-child({totals + 1}) button")
    down = [value(row[totals]) for row in rows("#functions-table")]
    live.check(down == sorted(down, reverse=True) and down[0] > down[-1], down[:5])
    PAGE.click(f"#functions-table thead tr:last-child th:nth-child({totals + 1}) button")
    up = [value(row[totals]) for row in rows("#functions-table")]
    live.check(up == sorted(up), up[:5])
    state = PAGE.run(
        "return document.querySelector('#functions-table th[aria-sort=ascending] button').lastChild.data")
    live.check(state == "total", state)
    # By keys: down one row, open it.
    PAGE.run("document.querySelector('#functions-table tbody tr').focus()")
    PAGE.keys("Down", "Enter")
    name = rows("#functions-table")[1][columns("#functions-table").index("function")]
    live.check(name in PAGE.text("#function-panel"), name, PAGE.text("#function-panel"))
    clean()


@live.test
def frames_zoom_and_lead_to_source():
    show()
    place = frame("walk")
    whole = PAGE.run("return app.flame.width")
    PAGE.press(place["x"] + place["w"] / 2, place["y"])
    zoomed = frame("walk")
    live.check(place["w"] < whole / 2 and abs(zoomed["w"] - whole) < 1, place, zoomed, whole)
    live.check("walk" in PAGE.text("#path") and "walk" in PAGE.text("#flame-frame"), PAGE.text("#path"))
    PAGE.click("#frame-source")
    live.check(PAGE.run("return app.tab") == "source" and PAGE.text("#source-bar .path").endswith("golden.py"))
    line = PAGE.run("return app.source.line")
    live.check("walk(depth - 1)" in PAGE.text(f"#source-text tr[data-line='{line}']"), line)
    # From a line back to the graph.
    PAGE.click("#source-text .detail button:last-child")
    live.check(PAGE.run("return app.tab") == "flame" and "walk" in PAGE.text("#flame-frame"))
    PAGE.click("#reset") if not PAGE.run("return document.getElementById('reset').disabled") else None
    # By keys: to the first callee, zoom, out again.
    PAGE.run("app.flame.focusPath = []; app.flame.refresh(); document.getElementById('flame-canvas').focus()")
    PAGE.keys("Down", "Enter")
    live.check(PAGE.run("return app.flame.zoom.depth") == 1, "Enter does not zoom")
    PAGE.keys("Backspace")
    live.check(PAGE.run("return app.flame.zoom.depth") == 0, "Escape does not zoom out")
    clean()


@live.test
def inverted_it_begins_with_the_innermost():
    show()
    event = report()["events"][0]["name"]
    PAGE.keys("i")
    first = PAGE.run("return app.flame.rects[1].map(({node, w}) => [app.flame.label(node), w / app.flame.width])")
    known = sorted((f["events"][event]["self"] for f in report()["functions"] if f["events"]), reverse=True)
    for (name, part), want in zip(sorted(first, key=lambda each: -each[1])[:10], known):
        live.check(abs(part - want) < 0.0006, name, part, want)
    PAGE.keys("u")
    live.check(PAGE.run("return app.flame.top(0) > app.flame.top(1)"), "it does not grow upwards")
    clean()


@live.test
def search_marks_and_filters():
    show()
    PAGE.keys("/", *"hash_all")
    live.check("1 function" in PAGE.text("#found"), PAGE.text("#found"))
    event = report()["events"][0]["name"]
    want = next(f["events"][event]["total"] for f in report()["functions"] if f["name"] == "hash_all")
    live.check(share(want) in PAGE.text("#found"), PAGE.text("#found"), want)
    PAGE.keys("Enter", "2")
    live.check(len(rows("#functions-table")) == 1, rows("#functions-table"))
    PAGE.keys("/", "Escape")
    live.check(len(rows("#functions-table")) > 3, "Escape does not end the search")
    clean()


@live.test
def only_what_matters_is_kept():
    """Reduced lines and functions are those of the report; a key brings the others back."""
    event = report()["events"][0]["name"]
    known = report(GOLDEN, "--reduced")
    show(GOLDEN, "--reduced")
    PAGE.keys("2")
    live.check(len(rows("#functions-table")) == len(known["functions"]), len(rows("#functions-table")))
    PAGE.keys("3")
    live.check(len(rows("#lines-table")) == len(known["lines"]), len(rows("#lines-table")))
    PAGE.keys("4")
    PAGE.run("app.showFile(app.model.data.files.findIndex(([path]) => path.endsWith('golden.py')))")
    lines = "return [...document.querySelectorAll('#source-text tr.line')].map((row) => Number(row.dataset.line))"
    want = sorted({line["line"] for line in known["lines"] if line["file"].endswith("golden.py")})
    live.check(PAGE.run(lines) == want, PAGE.run(lines), want)
    gaps = PAGE.run("return document.querySelectorAll('#source-text tr.gap').length")
    live.check(gaps == sum(b != a + 1 for a, b in zip([0] + want, want)), gaps)
    PAGE.keys("r")
    live.check(len(PAGE.run(lines)) > len(want), "r does not bring the other lines back")
    PAGE.keys("2", "o")
    own = {f["qualname"] for f in report()["functions"] if f["origin"] == "own"}
    names = {row[columns("#functions-table").index("function")] for row in rows("#functions-table")}
    live.check(names == own, names, own)
    live.check(all(f["events"][event]["total"] >= 0.01 for f in known["functions"]), "the report keeps too much")
    clean()


@live.test
def what_is_not_shown_is_its_callers():
    show(GOLDEN, "--files", "golden.py")
    PAGE.keys("2")
    heads = columns("#functions-table")
    event = report()["events"][0]["name"]
    known = {f["qualname"]: f["events"][event] for f in report(GOLDEN, "--files", "golden.py")["functions"]}
    shown = {row[heads.index("function")]: row for row in rows("#functions-table")}
    live.check(set(shown) == set(known), set(shown), set(known))
    for name, figures in known.items():
        live.check(shown[name][0] == share(figures["self"]), name, shown[name], figures)
        if "native" in figures and figures["native"] > 0.02:
            live.check(str(round(100 * figures["native"])) in shown[name][heads.index("py nat krn")], name, shown[name])
    live.check("golden.py" in PAGE.text("#facts"), PAGE.text("#facts"))
    clean()


@live.test
def a_stretch_of_time_is_selected():
    show()
    box = PAGE.run("const b = document.getElementById('timeline').getBoundingClientRect();"
                   "return [b.left, b.top, b.width]")
    left, room = box[0] + 150, box[2] - 150

    def samples():
        return PAGE.run("return app.model.sums(app.event).wholeSamples")

    whole = samples()
    halves = []
    for from_, to in ((0, 0.5), (0.5, 1)):
        PAGE.mouse(("down", left + from_ * room + 1, box[1] + 20), ("move", left + (from_ + to) / 2 * room, box[1] + 20),
                   ("up", left + to * room - 1, box[1] + 20))
        halves.append(samples())
        live.check(PAGE.text("#selection").startswith("Only"), PAGE.text("#selection"))
    live.check(0 < halves[0] < whole and 0 < halves[1] < whole, halves, whole)
    # Slices are whole, so the halves may share the one in the middle.
    live.check(whole <= sum(halves) <= whole * 1.1, halves, whole)
    live.check(PAGE.text("#flame-frame").find(f"{int(halves[1]):,} samples") > 0, PAGE.text("#flame-frame"))
    PAGE.keys("Escape")
    live.check(samples() == whole, "Escape does not show all")
    PAGE.run("document.getElementById('timeline').focus()")
    PAGE.keys("Right")
    live.check(0 < samples() < whole, "the arrow key selects nothing")
    clean()


@live.test
def themes_follow_the_system_and_the_reader():
    show()
    ground = "return getComputedStyle(document.body).backgroundColor"
    PAGE.prefer(color_scheme="dark")
    dark = PAGE.run(ground)
    PAGE.prefer(color_scheme="light")
    light = PAGE.run(ground)
    live.check(dark != light, dark, light)
    PAGE.keys("t")
    live.check(PAGE.run(ground) == dark, "t does not turn it dark")
    PAGE.keys("?")
    live.check(PAGE.run("return document.getElementById('keys').open"), "no help")
    PAGE.keys("Escape")
    clean()


@live.test
def nothing_is_loaded():
    path = show()
    text = path.read_text()
    live.check(not re.search(r"(?:src|href)\s*=|@import|url\(", text), "the page refers to something")
    loaded = PAGE.run("return performance.getEntriesByType('resource').length")
    live.check(loaded == 0, loaded, "things were loaded")
    # What were smuggled in could not run: the policy has only the page's own nonce.
    live.check(re.search(r"default-src 'none'; script-src 'nonce-\w{32}'; style-src 'nonce-\w{32}'", text), "no policy")
    owned = PAGE.run("""
        const script = document.createElement("script");
        script.textContent = "window.owned = 1";
        document.body.append(script);
        return window.owned || 0;
    """)
    live.check(owned == 0, "the policy lets scripts run")
    PAGE.complaints()


@live.test
def hostile_names_are_inert():
    reason = live.missing_permission()
    if reason:
        raise live.Skip(reason)
    python = live.any_python()
    if live.version_of(python) < (3, 8):
        raise live.Skip("code objects have no replace()")
    recording = live.Recording([python, "-c", HOSTILE_PROGRAM.format(names=HOSTILE)], "-F", "999")
    path = show(recording.path)
    for name in HOSTILE:
        live.check(name not in path.read_text(), repr(name), "is in the page as it is")
    PAGE.keys("2")
    at = columns("#functions-table").index("function")
    names = [row[at] for row in rows("#functions-table")]
    for want in (HOSTILE[0], HOSTILE[1], r"right\u202eto\u2066left", HOSTILE[4], r"line\u2028separator\nnewline"):
        live.check(want in names, repr(want), "is not among", names[:12])
    for tab in "1234567":
        PAGE.keys(tab)
    live.check(PAGE.run("return document.title") != "owned", "a name was run")
    live.check(PAGE.run("return document.querySelectorAll('img, main script').length") == 0, "a name became an element")
    text = PAGE.run("return document.body.innerText")
    live.check(not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text), "control characters are shown")
    clean()


@live.test
def stacks_without_times_are_shown():
    folded = pathlib.Path(live.SCRATCH.name, "stacks.txt")
    folded.write_text("main;work;copy 30\nmain;work 60\nmain;other 10\n")
    show(folded)
    live.check(PAGE.run("return document.getElementById('time').hidden"), "there is a time line")
    whole = PAGE.run("return app.flame.width")
    live.check(abs(frame("work")["w"] / whole - 0.9) < 0.01, frame("work"), whole)
    live.check("100 samples" in PAGE.text("#flame-frame"), PAGE.text("#flame-frame"))
    clean()


@live.test
def without_samples_it_says_so():
    show(GOLDEN, "--comm", "no-such-thread")
    live.check("0 samples" in PAGE.text("#flame-frame"), PAGE.text("#flame-frame"))
    for tab in "1234567":
        PAGE.keys(tab)
    clean()


if __name__ == "__main__":
    missing = browser.why_not()
    if missing:
        live.tell("SKIP", "page", missing)
    else:
        with browser.browser() as PAGE:
            live.run(needs_lines=False)
