"""Computes, a dozen calls deep, and prints how many seconds of the clock that took.

    python busy.py ROUNDS       a fixed amount of work
    python busy.py 5s           for five seconds
"""
import sys
import time


def polynomial(x, factors):
    value = 0
    for factor in factors:
        value = (value * x + factor) % 65521
    return value


def collect(words, table):
    for word in words:
        table[word] = table.get(word, 0) + len(word)
    return table


def compute(depth, factors, words, table):
    if depth:
        return compute(depth - 1, factors, words, table)
    return polynomial(7, factors) + len(collect(words, table))


def one_round(factors, words):
    return [compute(depth, factors, words, {}) for depth in range(12)]


def main(amount):
    factors = list(range(1, 600))
    words = [f"word{i % 97}" for i in range(400)]
    begin = time.perf_counter()
    if amount.endswith("s"):
        while time.perf_counter() - begin < float(amount[:-1]):
            one_round(factors, words)
    else:
        for _ in range(int(amount)):
            one_round(factors, words)
    print(time.perf_counter() - begin)


if __name__ == "__main__":
    main(sys.argv[1])
