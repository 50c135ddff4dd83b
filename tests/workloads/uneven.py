"""Three parts of the work in three() and one in one(), in portions of changing length, so that samples at even times are
in step with neither: uneven.py ROUNDS."""
import sys
from itertools import repeat


def work(times):
    x = 0
    for i in repeat(37, times):  # no number is new: each turn takes as long as any other
        x ^= i
        x = x + i & 127
    return x


def three(times):
    return work(3 * times)


def one(times):
    return work(times)


def main(rounds):
    seed = 1
    for _ in range(rounds):
        seed = seed * 1103515245 + 12345 & 0x7FFFFFFF
        times = 250 + (seed >> 16) % 501
        three(times)
        one(times)


main(int(sys.argv[1]))
