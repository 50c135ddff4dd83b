"""Known shares: hash_all spends its time in C, count in Python, walk in both."""
import hashlib
import time


class Work:
    def __init__(self):
        self.block = b"x" * 200_000

    def count(self, n):
        total = 0
        for i in range(n):
            total += i * i
        return total

    def hash_all(self):
        return hashlib.sha256(self.block).hexdigest()


def walk(depth):
    if depth == 0:
        return sum(range(20_000))
    return walk(depth - 1)


def main():
    work = Work()
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        work.count(20_000)
        work.hash_all()
        walk(20)


main()
