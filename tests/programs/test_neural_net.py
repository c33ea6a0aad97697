"""A network with one hidden layer on scikit-learn's handwritten digits, by Adam written out."""

import itertools

import numpy as np
from sklearn.datasets import load_digits

from pullback import grad


def initial(sizes, random):
    """Return a list of pairs of weights and biases."""
    return [
        (random.normal(size=(m, n)) / np.sqrt(m), np.zeros(n)) for m, n in itertools.pairwise(sizes)
    ]


def log_probabilities(params, inputs):
    for weights, biases in params:
        outputs = np.dot(inputs, weights) + biases
        inputs = np.tanh(outputs)
    shifted = outputs - np.max(outputs, axis=1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))


def loss(params, inputs, targets):
    penalty = 1e-4 * sum(np.sum(w**2) for w, _ in params)
    return penalty - np.mean(np.sum(log_probabilities(params, inputs) * targets, axis=1))


def adam(slope, params, steps, rate=0.02):
    """Return the parameters after a number of steps, in the structure they came in."""
    flat = [x for pair in params for x in pair]
    mean, square = [np.zeros_like(x) for x in flat], [np.zeros_like(x) for x in flat]
    for i in range(steps):
        gradients = [g for pair in slope(params, i) for g in pair]
        for j, g in enumerate(gradients):
            mean[j] = 0.9 * mean[j] + 0.1 * g
            square[j] = 0.99 * square[j] + 0.01 * g**2
            step = mean[j] / (1 - 0.9 ** (i + 1))
            flat[j] = flat[j] - rate * step / (np.sqrt(square[j] / (1 - 0.99 ** (i + 1))) + 1e-8)
        params = list(zip(flat[::2], flat[1::2], strict=True))
    return params


def test_the_network_learns_to_read():
    images, labels = load_digits(return_X_y=True)
    images, targets = images / 16, np.eye(10)[labels]
    random = np.random.RandomState(0)
    order = random.permutation(len(images))
    train, test = order[:1400], order[1400:]
    batches = [train[i::7] for i in range(7)]
    params = initial([64, 40, 10], random)

    def slope(params, i):
        batch = batches[i % 7]
        return grad(loss)(params, images[batch], targets[batch])

    before = loss(params, images[train], targets[train])
    params = adam(slope, params, 105)
    assert before > 2.2
    assert loss(params, images[train], targets[train]) < 0.15
    guesses = np.argmax(log_probabilities(params, images[test]), axis=1)
    assert np.mean(guesses == labels[test]) > 0.93
