"""Equal work, three parts in three() and one in one(): shares.py ROUNDS."""
import sys


def work(times):
    x = 0
    for i in range(100 * times):
        x ^= i
        x += i
    return x


def three():
    return work(3)


def one():
    return work(1)


def main(rounds):
    for _ in range(rounds):
        three()
        one()


main(int(sys.argv[1]))
