"""One line that misses the data TLB with each access, one that never does: walks.py ROUNDS."""
import sys

PAGES = 16384


def hot(pages, order, rounds):
    total = 0
    for _ in range(rounds):
        total += sum(map(pages.__getitem__, order))
        total += sum(map(pages.__getitem__, range(len(order))))
    return total


def main(rounds):
    pages = bytearray(PAGES * 4096)
    # Each access in another page than the one before.
    order = [(i * 10007 % PAGES) * 4096 + i % 4096 for i in range(PAGES)]
    hot(pages, order, rounds)


main(int(sys.argv[1]))
