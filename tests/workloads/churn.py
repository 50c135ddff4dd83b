"""Makes, runs and drops functions, each of another name and file, one where the other was.

    python churn.py SECONDS

Prints for each its number and when it ran, from and to, in ns of the monotonic clock. Names and texts
are of one length, so that all that a function consists of finds its place free again.
"""
import sys
import time

SOURCE = """
def f{0}():
    x = 0
    for _ in range(2000):
        x += {1}
    return x
"""


def run(number):
    text = "%06d" % number
    # Built anew: a string of the source may not be shared with the one before.
    code = compile(SOURCE.format(text, number % 7), "/made/" + text + ".py", "exec")
    names = {}
    exec(code, names)
    begin = time.monotonic()
    names["f" + text]()
    return begin, time.monotonic()


def lambdas(number):
    text = "%06d" % number
    made = eval(compile("lambda: sum(i * %d for i in range(1500))" % (number % 7), "/eval/" + text, "eval"))
    begin = time.monotonic()
    made()
    return begin, time.monotonic()


def main(seconds):
    end = time.monotonic() + seconds
    times = []
    number = 0
    while time.monotonic() < end:
        times.append(run(number) + lambdas(number))
        number += 1
    for number, when in enumerate(times):
        print(number, *("%d" % (t * 1e9) for t in when))


main(float(sys.argv[1]))
