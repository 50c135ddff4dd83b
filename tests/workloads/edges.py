"""A program whose every call is known: a line that calls Python code names all it may call (`#-> names`;
`name<3.10` where only versions before that do so).

    python edges.py SECONDS

Calls directly and through C code, descends deep, yields, raises, awaits, and changes threads.
"""
import functools
import sys
import threading
import time


def leaf(n):
    x = 1
    for _ in range(n):
        x = x * 3 & 1023
    return x


def even(n):
    return leaf(40) if n == 0 else odd(n - 1)  #-> leaf odd


def odd(n):
    return leaf(60) if n == 0 else even(n - 1)  #-> leaf even


def key(value):
    return leaf(value % 7)  #-> leaf


def by_key(values):
    return sorted(values, key=key)  #-> key


def mapped(values):
    return sum(map(key, values)) + sum(map(lambda v: leaf(v), values))  #-> key mapped.<locals>.<lambda> leaf


def numbers(n):
    for i in range(n):
        yield leaf(i)  #-> leaf


def squares(source):
    for value in source:  #-> numbers
        yield value * value


def delegating(n):
    yield from squares(numbers(n))  #-> squares numbers


def joined(n):
    return ",".join(str(value) for value in delegating(n))  #-> joined.<locals>.<genexpr> delegating


class Shape:  #-> Shape
    def __init__(self, n):
        self.n = leaf(n) & 15  #-> leaf

    @property
    def area(self):
        return leaf(self.n)  #-> leaf

    def __lt__(self, other):
        return self.area < other.area  #-> Shape.area

    def __enter__(self):
        leaf(self.n)  #-> leaf
        return self

    def __exit__(self, *what):
        leaf(self.n + 1)  #-> leaf
        return False

    @classmethod
    def made(cls, n):
        return cls(n)  #-> Shape.__init__

    class Inner:  #-> Shape.Inner
        @staticmethod
        def größe(n):
            return leaf(n)  #-> leaf


def shapes(n):
    made = [Shape.made(i) for i in range(n)]  #-> Shape.made shapes.<locals>.<listcomp>
    made.sort()  #-> Shape.__lt__
    with made[0] as first:  #-> Shape.__enter__ Shape.__exit__
        Shape.Inner.größe(first.n + 50)  #-> Shape.Inner.größe Shape.__exit__<3.10
    return made


def traced(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)  #-> raising
    return wrapper


@traced  #-> traced
def raising(n):  #-> traced<3.11
    if n == 0:
        raise KeyError(leaf(30))  #-> leaf
    try:
        raising(n - 1)  #-> traced.<locals>.wrapper
    finally:
        leaf(20)  #-> leaf


def catching(n):
    try:
        raising(n)  #-> traced.<locals>.wrapper
    except KeyError:
        leaf(50)  #-> leaf


class Ready:  #-> Ready
    def __await__(self):
        leaf(25)  #-> leaf
        yield


async def inner(n):
    await Ready()  #-> Ready.__await__
    return leaf(n)  #-> leaf


async def outer(n):
    total = 0
    for i in range(n):
        total += await inner(i)  #-> inner
    return total


def driven(n):
    coroutine = outer(n)  #-> outer
    try:
        while True:
            coroutine.send(None)  #-> outer
    except StopIteration:
        pass


def everything():
    even(9)  #-> even
    odd(30)  #-> odd
    by_key(range(40))  #-> by_key
    mapped(range(30))  #-> mapped
    joined(25)  #-> joined
    shapes(12)  #-> shapes
    catching(8)  #-> catching
    driven(10)  #-> driven
    functools.reduce(lambda a, b: a + leaf(b), range(20))  #-> everything.<locals>.<lambda> leaf
    exec("leaf(30)")  #-> <module>


def until(end):
    while time.process_time() < end:
        everything()  #-> everything


def main(seconds):
    end = time.process_time() + seconds
    other = threading.Thread(target=until, args=(end,))
    other.start()
    until(end)  #-> until
    other.join()


if __name__ == "__main__":
    main(float(sys.argv[1]))  #-> main
