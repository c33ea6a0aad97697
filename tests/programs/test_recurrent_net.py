"""A recurrent network that learns to continue a text, letter by letter."""

import numpy as np

from pullback import value_and_grad

TEXT = "the cat sat on the mat and the rat ate the hat."
LETTERS = sorted(set(TEXT))


def one_hot(text):
    return np.array([[float(letter == c) for c in LETTERS] for letter in text])


def initial(size, random):
    count = len(LETTERS)
    return {
        "start": np.zeros(size),
        "change": random.normal(size=(count + size, size)) * 0.3,
        "predict": random.normal(size=(size, count)) * 0.3,
    }


def log_softmax(x):
    return x - np.log(np.sum(np.exp(x - np.max(x)))) - np.max(x)


def predictions(params, inputs):
    """Return the log probabilities of what comes after each letter."""
    hidden, found = params["start"], []
    for letter in inputs:
        hidden = np.tanh(np.dot(np.concatenate([letter, hidden]), params["change"]))
        found.append(log_softmax(np.dot(hidden, params["predict"])))
    return np.stack(found)


def loss(params, letters):
    guesses = predictions(params, letters[:-1])
    return -np.sum(guesses * letters[1:]) / len(guesses)


def test_the_network_learns_the_text():
    letters = one_hot(TEXT)
    params = initial(24, np.random.RandomState(3))
    squares = {name: np.zeros_like(x) for name, x in params.items()}
    values = []
    for _ in range(120):
        value, slopes = value_and_grad(loss)(params, letters)
        values.append(value)
        for name, slope in slopes.items():
            squares[name] = 0.9 * squares[name] + 0.1 * slope**2
            params[name] = params[name] - 0.01 * slope / (np.sqrt(squares[name]) + 1e-6)
    assert values[0] > 2.4
    assert values[-1] < 0.4
    best = np.argmax(predictions(params, letters[:-1]), axis=1)
    read = "".join(LETTERS[i] for i in best)
    assert sum(a == b for a, b in zip(read, TEXT[1:], strict=True)) >= 42
