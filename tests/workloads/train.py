"""Trains a small network, for some seconds: an example with functions of differing behaviour.

Pure Python arithmetic (matmul), text parsing (read_rows), C code that holds the interpreter
(shuffled), C code that releases it (checkpoint), system calls (log_step), and NumPy where it is
installed (whiten).
"""
import hashlib
import math
import os
import random

try:
    import numpy
except ImportError:
    numpy = None

ROWS, INPUTS, HIDDEN, BATCH = 1000, 16, 24, 25


def make_text(rng):
    rows = []
    for _ in range(ROWS):
        row = [rng.uniform(-1, 1) for _ in range(INPUTS)]
        label = 1 if math.sin(3 * row[0]) + row[1] * row[2] > 0 else 0
        rows.append(",".join(f"{x:.6f}" for x in row) + f",{label}")
    return "\n".join(rows)


def read_rows(text):
    inputs, labels = [], []
    for line in text.splitlines():
        *fields, label = line.split(",")
        inputs.append([float(field) for field in fields])
        labels.append(int(label))
    return inputs, labels


def whiten(inputs):
    if numpy is None:
        return inputs
    a = numpy.array(inputs)
    for _ in range(60):
        a = (a - a.mean(axis=0)) / (a.std(axis=0) + 1e-9)
        a = numpy.tanh(a @ numpy.eye(INPUTS))
    return a.tolist()


def shuffled(rng, count):
    keys = [rng.random() for _ in range(count * 30)]
    return sorted(range(count), key=keys.__getitem__)


def matmul(a, b):
    rows, inner, columns = len(a), len(b), len(b[0])
    product = [[0.0] * columns for _ in range(rows)]
    for i in range(rows):
        for j in range(columns):
            total = 0.0
            for k in range(inner):
                total += a[i][k] * b[k][j]
            product[i][j] = total
    return product


def transpose(a):
    return [list(column) for column in zip(*a)]


def activate(a):
    return [[math.tanh(x) for x in row] for row in a]


class Network:
    def __init__(self, rng):
        self.first = [[rng.gauss(0, 0.5) for _ in range(HIDDEN)] for _ in range(INPUTS)]
        self.second = [[rng.gauss(0, 0.5)] for _ in range(HIDDEN)]

    def forward(self, batch):
        hidden = activate(matmul(batch, self.first))
        return hidden, matmul(hidden, self.second)

    def backward(self, batch, hidden, errors, rate):
        step = matmul(transpose(hidden), errors)
        slopes = [
            [error[0] * w[0] * (1 - h * h) for w, h in zip(self.second, row)]
            for error, row in zip(errors, hidden)
        ]
        subtract(self.first, matmul(transpose(batch), slopes), rate)
        subtract(self.second, step, rate)


def subtract(weights, step, rate):
    for row, changes in zip(weights, step):
        for k, change in enumerate(changes):
            row[k] -= rate * change


def checkpoint(network, epoch):
    state = repr((epoch, network.first, network.second)).encode()
    return hashlib.sha256(state * 1500).hexdigest()


def log_step(log, epoch, loss):
    for _ in range(5000):
        os.write(log, f"{epoch} {loss:.4f}\n".encode())


def train(epochs=40):
    rng = random.Random(1)
    text = make_text(rng)
    network = Network(rng)
    log = os.open(os.devnull, os.O_WRONLY)
    for epoch in range(epochs):
        inputs, labels = read_rows(text)
        inputs = whiten(inputs)
        order = shuffled(rng, len(inputs))
        loss = 0.0
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = [inputs[i] for i in chosen]
            hidden, outputs = network.forward(batch)
            errors = [[1 / (1 + math.exp(-o[0])) - labels[i]] for o, i in zip(outputs, chosen)]
            loss += sum(error[0] ** 2 for error in errors)
            network.backward(batch, hidden, errors, 0.05)
        digest = checkpoint(network, epoch)
        log_step(log, epoch, loss)
        print(f"epoch {epoch:2}  loss {loss / len(inputs):.4f}  state {digest[:8]}")
    os.close(log)


if __name__ == "__main__":
    train()
