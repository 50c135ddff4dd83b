"""One line that follows pointers through 128 MiB, one that sums what is in the cache: chase.py STEPS."""
import array
import sys

LINE = 16  # elements of a cache line
LINES = 1 << 21


def hot(chain, numbers, steps):
    at = total = 0
    for _ in range(steps):
        at = chain[at]
    for _ in range(steps // 100):
        total += sum(numbers)
    return at + total


def main(steps):
    chain = array.array("I", bytes(4 * LINE * LINES))
    # A permutation of one cycle (a full-period generator): each step is to another line, which the
    # one before tells.
    follow = range(12345, 12345 + 1103515245 * LINES, 1103515245)
    chain[::LINE] = array.array("I", [(at & (LINES - 1)) * LINE for at in follow])
    hot(chain, list(range(1000)), steps)


main(int(sys.argv[1]))
