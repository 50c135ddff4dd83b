"""A headless Chromium for tests: the WebDriver protocol over plain HTTP, as chromedriver serves it."""
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015",
        "Home": "\ue011", "End": "\ue010", "Tab": "\ue004", "Backspace": "\ue003", "Shift": "\ue008"}
ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
    "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def why_not():
    """Why there is no browser here, or nothing."""
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            return f"no {program} (Debian: chromium chromium-driver)"
    return None


class Browser:
    def __init__(self, url, session):
        self.url, self.session = url, session

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/session/{self.session}{path}", method=method,
            data=None if method != "POST" else json.dumps(body or {}).encode(),
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """What a function body returns that runs in the page."""
        return self.call("POST", "/execute/sync", {"script": script, "args": arguments})

    def wait(self, script, seconds=60):
        """Until the expression is true; its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(f"return {script}")
            if value:
                return value
            assert time.monotonic() < end, f"never came true: {script}"
            time.sleep(0.02)

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def keys(self, *names):
        """Presses keys one after the other, wherever the focus is."""
        actions = []
        for name in names:
            key = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def mouse(self, *steps):
        """Steps (kind, x, y) in the page: "move", "down", "up"."""
        actions = []
        for kind, x, y in steps:
            actions.append({"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0})
            if kind != "move":
                actions.append({"type": "pointerDown" if kind == "down" else "pointerUp", "button": 0})
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def press(self, x, y):
        self.mouse(("down", x, y), ("up", x, y))

    def resize(self, width, height):
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        })

    def prefer(self, **features):
        """What the page's media queries are told: prefer(color_scheme="dark")."""
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setEmulatedMedia",
            "params": {"features": [
                {"name": "prefers-" + name.replace("_", "-"), "value": value} for name, value in features.items()
            ]},
        })

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self):
        """What the page logged as errors: exceptions, refusals of its security policy."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] == "SEVERE"]


@contextlib.contextmanager
def browser(width=1280, height=900):
    """A browser with an empty profile, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="pyperf-browser-") as home:
        driver = subprocess.Popen(
            ["chromedriver", "--port=0", "--log-level=SEVERE"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={"HOME": home, "TMPDIR": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}, start_new_session=True,
        )
        this = None
        try:
            port = next(line.rsplit(" ", 1)[1].strip(" .\n") for line in driver.stdout if "successfully on port" in line)
            this = Browser(f"http://127.0.0.1:{port}", "")
            request = urllib.request.Request(f"{this.url}/session", method="POST", data=json.dumps({
                "capabilities": {"alwaysMatch": {
                    "goog:chromeOptions": {
                        "binary": shutil.which("chromium"),
                        "args": ARGUMENTS + [f"--window-size={width},{height}", f"--user-data-dir={home}/profile"],
                    },
                    "goog:loggingPrefs": {"browser": "ALL"},
                }},
            }).encode())
            with urllib.request.urlopen(request, timeout=120) as reply:
                this.session = json.load(reply)["value"]["sessionId"]
            yield this
        finally:
            if this and this.session:
                with contextlib.suppress(Exception):
                    this.call("DELETE", "")
            # The browser's helpers end a little later than it does.
            with contextlib.suppress(ProcessLookupError):
                while True:
                    os.killpg(driver.pid, signal.SIGKILL)
                    driver.poll()
                    time.sleep(0.02)
            driver.wait()
            driver.stdout.close()
