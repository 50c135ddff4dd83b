"""Stacks of all shapes: a few hundred functions that call each other by chance, for so many seconds."""
import random
import sys
import time

FUNCTIONS = 300
SOURCE = """
def work_{n}(depth):
    if depth <= 0:
        return sum(range({n} + 50))
    total = 0
    for _ in range(choose(3) + 1):
        total += functions[choose({n} + 20)](depth - 1 - choose(2))
    return total + len(sorted(str(total)))
"""

functions = []


def choose(n):
    return min(int(random.random() * n), FUNCTIONS - 1)


def main():
    for n in range(FUNCTIONS):
        scope = {"choose": choose, "functions": functions}
        exec(compile(SOURCE.format(n=n), f"/src/module_{n % 40}.py", "exec"), scope)
        functions.append(scope[f"work_{n}"])
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        functions[choose(FUNCTIONS)](choose(16))


main()
