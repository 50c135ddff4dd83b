#!/usr/bin/env python3
"""`pyperf view`: who is let in to what it serves, and that a browser shows it."""
import contextlib
import http.client
import os
import pathlib
import re
import signal
import subprocess
import urllib.parse

import browser
import live

GOLDEN = live.TOP / "tests/data/golden.data"


@contextlib.contextmanager
def viewing(*arguments, **more):
    """(its process, the page's address, the recording's)"""
    process = subprocess.Popen(
        [live.PYPERF, "view", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )
    try:
        lines = [process.stdout.readline() for _ in range(3)]
        addresses = re.findall(r"http://127\.0\.0\.1:\d+/\S+", "".join(lines))
        live.check(len(addresses) == 2, lines)
        yield process, *map(urllib.parse.urlsplit, addresses)
        process.send_signal(signal.SIGINT)
        live.check(process.wait(60) == 0, "it ended with", process.returncode)
    finally:
        process.kill()
        process.communicate()


def ask(address, path=None, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)
    connection.request(method, path or address.path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, reply.headers, body


def supported():
    if "[off]" in next(line for line in live.pyperf("version").stdout.splitlines() if "microhttpd" in line):
        raise live.Skip("built without libmicrohttpd")


@live.test
def the_token_works_once():
    supported()
    with viewing("--no-browser", GOLDEN) as (_, page, file):
        # Asking what is there uses nothing up, and shows nothing.
        live.check(ask(page, method="HEAD")[0] == 303)
        live.check(ask(page, "/")[0] == 403, "the page is open to all")
        status, headers, body = ask(page)
        live.check(status == 303 and headers["Location"] == "/" and not body, status, headers)
        live.check("HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"], headers)
        cookie = headers["Set-Cookie"].split(";")[0]
        live.check(ask(page)[0] == 403, "the token works twice")
        status, headers, body = ask(page, "/", Cookie=cookie)
        live.check(status == 200 and body.startswith(b"<!doctype html>"), status, body[:80])
        live.check(headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer", headers)
        live.check(ask(page, "/", Cookie=cookie[:-1] + ("0" if cookie[-1] != "0" else "1"))[0] == 403, "any cookie does")
        live.check(ask(page, "/", Cookie=cookie, Host="evil.example")[0] == 403, "another host's name does")
        live.check(ask(page, "/", method="POST", Cookie=cookie)[0] == 405)


@live.test
def the_recording_is_for_viewers():
    supported()
    with viewing("-i", GOLDEN, "--no-browser") as (_, page, file):
        for _ in range(2):
            status, headers, body = ask(file)
            live.check(status == 200 and body == GOLDEN.read_bytes(), status, len(body))
            live.check(headers["Access-Control-Allow-Origin"] == "*", headers)
        live.check(ask(file, file.path.replace("perf.data", "../../etc/passwd"))[0] == 403)
        live.check(ask(file, page.path + "perf.data")[0] == 403, "the page's token opens the file")
        live.check(page.path.split("/")[1] != file.path.split("/")[1])


@live.test
def only_this_machine_is_served():
    supported()
    with viewing("--no-browser", GOLDEN) as (process, page, _):
        listening = [
            line.split()[1] for line in pathlib.Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{page.port:04X}")
        ]
        live.check(listening == [f"0100007F:{page.port:04X}"], listening)


@live.test
def the_browser_is_given_the_address():
    supported()
    with live.scratch_folder() as folder:
        got = pathlib.Path(folder, "got")
        os.mkfifo(got)
        program = pathlib.Path(folder, "browser")
        program.write_text(f'#!/bin/sh\necho "$1" >{got}\n')
        program.chmod(0o755)
        with viewing(GOLDEN, env={**os.environ, "BROWSER": str(program)}) as (_, page, _file):
            live.check(got.read_text().strip() == page.geturl())


@live.test
def a_browser_shows_the_page():
    supported()
    missing = browser.why_not()
    if missing:
        raise live.Skip(missing)
    with viewing("--no-browser", GOLDEN) as (_, page, _file), browser.browser() as shown:
        shown.open(page.geturl())
        shown.wait("document.documentElement.dataset.ready === 'yes'")
        live.check(shown.run("return location.pathname") == "/", "the token stays in the address")
        live.check("walk" in shown.run("return app.model.data.functions.name"))
        shown.open(shown.run("return location.href"))
        shown.wait("document.documentElement.dataset.ready === 'yes'")


@live.test
def errors_are_told():
    for arguments, status, text in (
        (["nosuch.data"], 1, "nosuch.data"),
        (["--port", "99999", GOLDEN], 2, "--port is"),
        ([GOLDEN, "-i", GOLDEN], 2, "named twice"),
    ):
        ran = live.pyperf("view", "--no-browser", *arguments)
        live.check(ran.returncode == status and text in ran.stderr, arguments, ran.returncode, ran.stderr)


live.run(needs_lines=False)
