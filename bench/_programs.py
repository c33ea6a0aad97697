"""The programs that programs.py times: data, and each program as every peer's own users write it.

A program is a set of functions, one a peer, that prepare its data and return a step; a step
computes once and returns its values as a list, first the loss. pullback and torch share the text of
a program where their own users write it alike; HIPS autograd has its own, and plain NumPy, with the
gradient by hand, where that is reasonable. Nothing here measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np
import torch
from autograd.scipy.special import expit, logsumexp

import pullback as pb

Step = Callable[[], Sequence[Any]]
Values = list[np.ndarray]

FUNCTIONAL = {torch: torch.nn.functional, pb: getattr(getattr(pb, "nn", pb), "functional", pb)}


@dataclass(frozen=True)
class Program:
    """One program: a function a peer, and how its values are compared."""

    name: str
    peers: dict[str, Callable[[], Step]]
    repeats: int = 1  # steps in one timing, after one that is not timed where there are several
    steps: int = 1  # steps before values are compared
    tolerance: float = 1e-9
    reference: Callable[[Values], dict[str, tuple[float, float]]] | None = None  # got, expected


def both(write: Callable[[Any], Step]) -> dict[str, Callable[[], Step]]:
    """Return the two peers of a program whose text they share."""
    return {"pullback": partial(write, pb), "torch": partial(write, torch)}


def leaves(lib: Any, *arrays: np.ndarray) -> list[Any]:
    return [lib.tensor(array, requires_grad=True) for array in arrays]


def gradients(lib: Any, loss: Any, tensors: list[Any]) -> list[Any]:
    return [loss.detach(), *lib.autograd.grad(loss, tensors)]


def by_autograd(function: Callable[..., Any], *arrays: np.ndarray) -> Step:
    """Return the step of a function of several arrays, differentiated by HIPS autograd."""
    step = autograd.value_and_grad(lambda args: function(*args))

    def run() -> list[Any]:
        value, grads = step(arrays)
        return [value, *grads]

    return run


# -- gmm: a Gaussian mixture (GradBench, ADBench) --------------------------------------------------

D, K, N, GAMMA, M = 10, 25, 1000, 1.0, 0


def gmm_data() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(31337)
    x = np.array([rng.normal(size=D) for _ in range(N)])
    alpha = rng.normal(size=K)
    mu = np.array([rng.uniform(size=D) for _ in range(K)])
    q = np.array([rng.normal(size=D) for _ in range(K)])
    below = np.array([rng.normal(size=D * (D - 1) // 2) for _ in range(K)])
    return x, alpha, mu, q, below


def gmm_constant() -> float:
    """Return what of the objective depends on no parameter."""
    n = D + M + 1
    multigamma = D * (D - 1) / 4 * math.log(math.pi)
    multigamma += sum(math.lgamma((n - j) / 2) for j in range(D))
    wishart = K * (n * D * math.log(GAMMA / math.sqrt(2)) - multigamma)
    return wishart - N * D / 2 * math.log(2 * math.pi)


COLUMNS, ROWS = np.triu_indices(D, 1)  # below the diagonal, column by column


def gmm(lib: Any) -> Step:
    x, *arrays = gmm_data()
    points, constant = lib.tensor(x), gmm_constant()
    rows, columns = lib.tensor(ROWS), lib.tensor(COLUMNS)
    parameters = leaves(lib, *arrays)

    def step() -> list[Any]:
        alpha, mu, q, below = parameters
        diagonal = q.exp()
        factor = lib.diag_embed(diagonal)
        factor[:, rows, columns] = below
        whitened = (points - mu[:, None]) @ factor.mT
        beta = (alpha + q.sum(1))[:, None] - 0.5 * whitened.square().sum(2)
        loss = (
            constant
            - N * alpha.logsumexp(0)
            + beta.logsumexp(0).sum()
            - GAMMA**2 / 2 * (diagonal.square().sum() + below.square().sum())
            + M * q.sum()
        )
        return gradients(lib, loss, parameters)

    return step


def gmm_autograd() -> Step:
    x, *arrays = gmm_data()
    constant = gmm_constant()
    index = np.full((D, D), D * (D - 1) // 2)  # of each element in (below, 0)
    index[ROWS, COLUMNS] = np.arange(D * (D - 1) // 2)
    zeros = np.zeros((K, 1))

    def value(alpha, mu, q, below):
        diagonal = anp.exp(q)
        lower = anp.concatenate((below, zeros), axis=1)[:, index]
        centred = x - mu[:, None]
        whitened = anp.matmul(centred, anp.swapaxes(lower, 1, 2)) + diagonal[:, None] * centred
        beta = (alpha + anp.sum(q, 1))[:, None] - 0.5 * anp.sum(whitened**2, 2)
        return (
            constant
            - N * logsumexp(alpha)
            + anp.sum(logsumexp(beta, 0))
            - GAMMA**2 / 2 * (anp.sum(diagonal**2) + anp.sum(below**2))
            + M * anp.sum(q)
        )

    return by_autograd(value, *arrays)


def gmm_reference(values: Values) -> dict[str, tuple[float, float]]:
    """Return what is known of D=10, K=25, N=1000: the value, and the norms of the gradients."""
    known = (248.601567899, 1276.35543594, 1139.08836333, 1274.98842583)
    norms = [float(np.linalg.norm(g)) for g in values[1:]]
    names = ("alpha", "mu", "q", "l")
    found = {
        f"norm of {n}": pair for n, pair in zip(names, zip(norms, known, strict=True), strict=True)
    }
    return {"F": (float(values[0]), -30857.5336794227), **found}


# -- lstm: a recurrent network of diagonal weights (GradBench, ADBench) ----------------------------

LAYERS, CHARACTERS, BITS = 2, 1024, 14


def lstm_data(source: Path | int) -> list[np.ndarray]:
    """Return main, extra, state and text: of a file of ADBench, or so many characters drawn."""
    if isinstance(source, Path):
        blocks = source.read_text().split("\n\n")
        return [np.array([line.split() for line in b.splitlines()], float) for b in blocks[1:5]]
    rng = np.random.default_rng(0)
    main, extra = rng.random((2 * LAYERS, 4 * BITS)), rng.random((3, BITS))
    state = rng.random((2 * LAYERS, BITS))
    return [main, extra, state, rng.integers(2, size=(source, BITS)).astype(float)]


def lstm(source: Path | int, split: bool, lib: Any) -> Step:
    *arrays, state_array, text_array = lstm_data(source)
    parameters = leaves(lib, *arrays)
    state, text = lib.tensor(state_array), lib.tensor(text_array)
    cell_of = lstm_cell_split if split else lstm_cell

    def step() -> list[Any]:
        main, extra = parameters
        hidden, cell = list(state[0::2]), list(state[1::2])
        if split:
            main, extra = main.unbind(), extra.unbind()
        total = 0.0
        for now, after in pairwise(text):
            current = now * extra[0]
            for i in range(len(hidden)):
                cell[i], current = cell_of(
                    lib, current, hidden[i], cell[i], main[2 * i], main[2 * i + 1]
                )
                hidden[i] = current
            y = current * extra[1] + extra[2]
            total = total + (after * (y - (y.exp().sum() + 2).log())).sum()
        loss = -total / text[:-1].numel()
        return gradients(lib, loss, parameters)

    return step


def lstm_cell(lib, current, hidden, cell, weight, bias):
    """Return the new cell and hidden state: the gates cut by slices, as the benchmark has it."""
    gates = lib.cat((current, hidden, current, hidden)) * weight + bias
    size = hidden.shape[0]
    forget = gates[:size].sigmoid()
    ingate = gates[size : 2 * size].sigmoid()
    outgate = gates[2 * size : 3 * size].sigmoid()
    change = gates[3 * size :].tanh()
    cell = cell * forget + ingate * change
    return cell, outgate * cell.tanh()


def lstm_cell_split(lib, current, hidden, cell, weight, bias):
    """Return the same, the gates cut by one operation of four results."""
    gates = lib.cat((current, hidden, current, hidden)) * weight + bias
    forget, ingate, outgate, change = gates.chunk(4)
    cell = cell * forget.sigmoid() + ingate.sigmoid() * change.tanh()
    return cell, outgate.sigmoid() * cell.tanh()


def lstm_autograd(source: Path | int) -> Step:
    main, extra, state, text = lstm_data(source)
    size = extra.shape[1]

    def value(main, extra):
        hidden, cell = list(state[0::2]), list(state[1::2])
        total = 0.0
        for now, after in pairwise(text):
            current = now * extra[0]
            for i in range(len(hidden)):
                joined = anp.concatenate((current, hidden[i], current, hidden[i]))
                gates = joined * main[2 * i] + main[2 * i + 1]
                forget, ingate = expit(gates[:size]), expit(gates[size : 2 * size])
                outgate, change = expit(gates[2 * size : 3 * size]), anp.tanh(gates[3 * size :])
                cell[i] = cell[i] * forget + ingate * change
                hidden[i] = current = outgate * anp.tanh(cell[i])
            y = current * extra[1] + extra[2]
            total = total + anp.sum(after * (y - anp.log(2 + anp.sum(anp.exp(y)))))
        return -total / text[:-1].size

    return by_autograd(value, main, extra)


def lstm_reference(values: Values) -> dict[str, tuple[float, float]]:
    """Return what is known of `lstm_l2_c1024.txt`."""
    gradient = np.concatenate([g.ravel() for g in values[1:]])
    return {
        "loss": (float(values[0]), 0.666665179558852),
        "sum of the gradient": (float(gradient.sum()), -0.0381950009733),
        "norm of the gradient": (float(np.linalg.norm(gradient)), 0.0947413801145),
    }


# -- the tutorial: examples/two_layer_net.py -------------------------------------------------------

RATE = 1e-6


def tutorial_data() -> list[np.ndarray]:
    """Return x, y and the two weights, of the sizes of the example."""
    rng = np.random.default_rng(0)
    shapes = ((64, 1000), (64, 10), (1000, 100), (100, 10))
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def my_relu(lib: Any) -> Callable[..., Any]:
    if lib is pb:

        def forward(ctx, input):
            ctx.save_for_backward(input=input)
            return input.clamp(min=0)

        def backward(ctx, grad_output):
            v = ctx.saved_variables
            grad_input = grad_output.clone()
            grad_input[v.input < 0] = 0
            return {"input": grad_input}

        return pb.autograd_function(forward, backward)

    class MyReLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input):
            ctx.save_for_backward(input)
            return input.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[input < 0] = 0
            return grad_input

    return MyReLU.apply


def tutorial(lib: Any) -> Step:
    *data, first, second = tutorial_data()
    x, y = (lib.tensor(array) for array in data)
    w1, w2 = leaves(lib, first, second)
    relu = my_relu(lib)

    def step() -> list[Any]:
        y_pred = relu(x.mm(w1)).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        value = loss.item()
        loss.backward()
        with lib.no_grad():
            w1.sub_(RATE * w1.grad)
            w2.sub_(RATE * w2.grad)
            w1.grad.zero_()
            w2.grad.zero_()
        return [value, w1, w2]

    return step


def tutorial_autograd() -> Step:
    x, y, w1, w2 = tutorial_data()
    loss_of = autograd.value_and_grad(
        lambda w: anp.sum((anp.dot(anp.maximum(anp.dot(x, w[0]), 0), w[1]) - y) ** 2)
    )

    def step() -> list[Any]:
        value, (g1, g2) = loss_of((w1, w2))
        w1[...] -= RATE * g1
        w2[...] -= RATE * g2
        return [value, w1, w2]

    return step


def tutorial_numpy() -> Step:
    x, y, w1, w2 = tutorial_data()

    def step() -> list[Any]:
        h = x @ w1
        activated = h.clip(0)
        difference = activated @ w2 - y
        loss = (difference**2).sum().item()
        grad_y = 2 * difference
        grad_w2 = activated.T @ grad_y
        grad_h = grad_y @ w2.T
        grad_h[h < 0] = 0
        grad_w1 = x.T @ grad_h
        w1[...] -= RATE * grad_w1
        w2[...] -= RATE * grad_w2
        return [loss, w1, w2]

    return step


# -- a perceptron 64-128-128-10, batch 32, Adam ----------------------------------------------------

SIZES, BATCH = (64, 128, 128, 10), 32


def perceptron_data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Return the inputs, their classes, and weight and bias of each layer in turn."""
    rng = np.random.default_rng(0)
    weights = []
    for inputs, outputs in pairwise(SIZES):
        weights.append((rng.normal(size=(outputs, inputs)) / inputs**0.5).astype(np.float32))
        weights.append(np.zeros(outputs, np.float32))
    x = rng.normal(size=(BATCH, SIZES[0])).astype(np.float32)
    return x, rng.integers(SIZES[-1], size=BATCH), weights


def perceptron(lib: Any) -> Step:
    inputs, classes, arrays = perceptron_data()
    x, labels, functional = lib.tensor(inputs), lib.tensor(classes), FUNCTIONAL[lib]
    w1, b1, w2, b2, w3, b3 = weights = leaves(lib, *arrays)
    optimizer = lib.optim.Adam(weights, lr=1e-3)

    def step() -> list[Any]:
        hidden = functional.linear(x, w1, b1).relu()
        hidden = functional.linear(hidden, w2, b2).relu()
        loss = functional.cross_entropy(functional.linear(hidden, w3, b3), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return [loss.detach(), *weights]

    return step


class Adam:
    """Adam on NumPy arrays, in place."""

    def __init__(self, weights: list[np.ndarray]) -> None:
        self.state = [(w, np.zeros_like(w), np.zeros_like(w)) for w in weights]
        self.count = 0

    def step(self, grads: Sequence[np.ndarray]) -> None:
        self.count += 1
        first, second = 1 - 0.9**self.count, (1 - 0.999**self.count) ** 0.5
        for (w, m, v), g in zip(self.state, grads, strict=True):
            m += 0.1 * (g - m)
            v *= 0.999
            v += 0.001 * g * g
            w -= (1e-3 / first) * m / (np.sqrt(v) / second + 1e-8)


def perceptron_autograd() -> Step:
    x, labels, weights = perceptron_data()
    each = np.arange(BATCH)

    def value(weights):
        w1, b1, w2, b2, w3, b3 = weights
        hidden = anp.maximum(anp.dot(x, w1.T) + b1, 0)
        hidden = anp.maximum(anp.dot(hidden, w2.T) + b2, 0)
        scores = anp.dot(hidden, w3.T) + b3
        return anp.mean(logsumexp(scores, axis=1) - scores[each, labels])

    loss_of, optimizer = autograd.value_and_grad(value), Adam(weights)

    def step() -> list[Any]:
        loss, grads = loss_of(weights)
        optimizer.step(grads)
        return [loss, *weights]

    return step


def perceptron_numpy() -> Step:
    x, labels, weights = perceptron_data()
    w1, b1, w2, b2, w3, b3 = weights
    each, optimizer = np.arange(BATCH), Adam(weights)

    def step() -> list[Any]:
        h1 = np.maximum(x @ w1.T + b1, 0)
        h2 = np.maximum(h1 @ w2.T + b2, 0)
        scores = h2 @ w3.T + b3
        scores -= scores.max(1, keepdims=True)
        exps = np.exp(scores)
        sums = exps.sum(1, keepdims=True)
        loss = (np.log(sums[:, 0]) - scores[each, labels]).mean()
        g3 = exps / sums
        g3[each, labels] -= 1
        g3 /= BATCH
        g2 = (g3 @ w3) * (h2 > 0)
        g1 = (g2 @ w2) * (h1 > 0)
        optimizer.step([g1.T @ x, g1.sum(0), g2.T @ h1, g2.sum(0), g3.T @ h2, g3.sum(0)])
        return [loss, *weights]

    return step


# -- an attention block: batch 4, length 16, width 32, 4 heads -------------------------------------

BATCHES, LENGTH, WIDTH, HEADS = 4, 16, 32, 4


def attention_data() -> list[np.ndarray]:
    """Return x, and weight and bias of the projections in and out and of the normalization."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(BATCHES, LENGTH, WIDTH))
    project = rng.normal(size=(3 * WIDTH, WIDTH)) / WIDTH**0.5
    out = rng.normal(size=(WIDTH, WIDTH)) / WIDTH**0.5
    biases = [rng.normal(size=3 * WIDTH), *rng.normal(size=(3, WIDTH))]
    arrays = [x, project, biases[0], out, *biases[1:]]
    return [array.astype(np.float32) for array in arrays]


def attention(lib: Any) -> Step:
    parameters = leaves(lib, *attention_data())
    functional = FUNCTIONAL[lib]

    def step() -> list[Any]:
        x, project, project_bias, out, out_bias, scale, shift = parameters
        joined = functional.linear(x, project, project_bias)
        heads = joined.reshape(BATCHES, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind()
        mixed = functional.scaled_dot_product_attention(q, k, v)
        mixed = mixed.transpose(1, 2).reshape(BATCHES, LENGTH, WIDTH)
        y = x + functional.linear(mixed, out, out_bias)
        loss = functional.layer_norm(y, (WIDTH,), scale, shift).square().mean()
        return gradients(lib, loss, parameters)

    return step


def attention_autograd() -> Step:
    depth = WIDTH // HEADS

    def value(x, project, project_bias, out, out_bias, scale, shift):
        joined = anp.dot(x, project.T) + project_bias
        heads = anp.transpose(
            anp.reshape(joined, (BATCHES, LENGTH, 3, HEADS, depth)), (2, 0, 3, 1, 4)
        )
        q, k, v = heads[0], heads[1], heads[2]
        scores = anp.matmul(q, anp.swapaxes(k, 2, 3)) / depth**0.5
        weights = anp.exp(scores - anp.max(scores, 3, keepdims=True))
        mixed = anp.matmul(weights / anp.sum(weights, 3, keepdims=True), v)
        mixed = anp.reshape(anp.swapaxes(mixed, 1, 2), (BATCHES, LENGTH, WIDTH))
        y = x + anp.dot(mixed, out.T) + out_bias
        centred = y - anp.mean(y, 2, keepdims=True)
        variance = anp.mean(centred**2, 2, keepdims=True)
        return anp.mean((centred / anp.sqrt(variance + 1e-5) * scale + shift) ** 2)

    return by_autograd(value, *attention_data())


# -- Runge-Kutta of Lotka and Volterra's equations, 200 steps --------------------------------------

STEPS, STRIDE = 200, 0.05
START, RATES = np.array([10.0, 5.0]), np.array([1.1, 0.4, 0.1, 0.4])


def runge_kutta(derivative: Callable[[Any], Any], state: Any) -> Any:
    for _ in range(STEPS):
        k1 = derivative(state)
        k2 = derivative(state + STRIDE / 2 * k1)
        k3 = derivative(state + STRIDE / 2 * k2)
        k4 = derivative(state + STRIDE * k3)
        state = state + STRIDE / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


def lotka_volterra(lib: Any) -> Step:
    start, rates = parameters = leaves(lib, START, RATES)

    def step() -> list[Any]:
        a, b, c, d = rates.unbind()

        def derivative(state):
            prey, predators = state.unbind()
            meetings = prey * predators
            return lib.stack((a * prey - b * meetings, c * meetings - d * predators))

        return gradients(lib, runge_kutta(derivative, start).sum(), parameters)

    return step


def lotka_volterra_autograd() -> Step:
    def value(start, rates):
        a, b, c, d = rates

        def derivative(state):
            prey, predators = state
            meetings = prey * predators
            return anp.array([a * prey - b * meetings, c * meetings - d * predators])

        return anp.sum(runge_kutta(derivative, start))

    return by_autograd(value, START, RATES)


# -- the determinant of a 6x6 matrix by minors: nothing but scalars --------------------------------


def minors(rows: Sequence[Sequence[Any]]) -> Any:
    """Return the determinant, by the first row and the minors below it."""
    if len(rows) == 1:
        return rows[0][0]
    total = None
    for j, entry in enumerate(rows[0]):
        term = entry * minors([(*row[:j], *row[j + 1 :]) for row in rows[1:]])
        total = term if total is None else total - term if j % 2 else total + term
    return total


def det_data() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(6, 6))


def det(lib: Any) -> Step:
    (matrix,) = parameters = leaves(lib, det_data())

    def step() -> list[Any]:
        return gradients(lib, minors([row.unbind() for row in matrix.unbind()]), parameters)

    return step


def det_autograd() -> Step:
    return by_autograd(lambda m: minors([tuple(row) for row in m]), det_data())


def det_reference(values: Values) -> dict[str, tuple[float, float]]:
    matrix = det_data()
    expected = np.linalg.det(matrix)
    away = np.abs(values[1] - expected * np.linalg.inv(matrix).T).max()
    return {
        "value": (float(values[0]), float(expected)),
        "away from det * inv.T": (float(away), 0.0),
    }


# -- all of them -----------------------------------------------------------------------------------


def programs(lstm_source: Path | int = CHARACTERS) -> list[Program]:
    """Return the programs; lstm reads a data file of ADBench, or draws so many characters."""
    known = lstm_reference if isinstance(lstm_source, Path) else None
    lstm_peer = {"autograd": partial(lstm_autograd, lstm_source)}
    return [
        Program(
            "lstm",
            both(partial(lstm, lstm_source, False)) | lstm_peer,
            reference=known,
        ),
        Program(
            "lstm, gates by chunk",
            both(partial(lstm, lstm_source, True)),
            reference=known,
        ),
        Program("gmm", both(gmm) | {"autograd": gmm_autograd}, repeats=5, reference=gmm_reference),
        Program(
            "tutorial",
            both(tutorial) | {"autograd": tutorial_autograd, "numpy": tutorial_numpy},
            repeats=30,
            steps=5,
            tolerance=1e-5,
        ),
        Program(
            "perceptron",
            both(perceptron) | {"autograd": perceptron_autograd, "numpy": perceptron_numpy},
            repeats=30,
            steps=5,
            tolerance=1e-5,
        ),
        Program(
            "attention",
            both(attention) | {"autograd": attention_autograd},
            repeats=30,
            tolerance=1e-5,
        ),
        Program("lotka-volterra", both(lotka_volterra) | {"autograd": lotka_volterra_autograd}),
        Program("det", both(det) | {"autograd": det_autograd}, reference=det_reference),
    ]
