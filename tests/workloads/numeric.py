"""Runs NumPy, C code of the standard library and Python for so many seconds of CPU time, or so many
times, and then tells the seconds that these took.

    python3 numeric.py SECONDS
    python3 numeric.py TIMESx
"""
import json
import re
import sys
import time

import numpy as np


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def work():
    a = np.random.rand(80, 80)
    a @ a
    np.linalg.svd(a[:30, :30])
    np.sort(a.ravel())
    np.fft.fft(a[0])
    fibonacci(13)
    sorted(range(500), key=lambda x: -x)
    json.loads(json.dumps(list(range(300))))
    re.sub(r"\w", lambda match: "x", "ab " * 50)


def main(amount):
    if amount.endswith("x"):
        begin = time.perf_counter()
        for _ in range(int(amount[:-1])):
            work()
        print(time.perf_counter() - begin)
    else:
        end = time.process_time() + float(amount)
        while time.process_time() < end:
            work()


if __name__ == "__main__":
    main(sys.argv[1])
