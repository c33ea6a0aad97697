"""Logistic regression by gradient descent on the likelihood of the labels."""

import numpy as np

from pullback import grad

INPUTS = np.array(
    [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
)
LABELS = np.array([True, True, False, True])


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2.0) + 1)


def predict(weights):
    return sigmoid(np.dot(INPUTS, weights))


def loss(weights):
    """Return how unlikely the labels are under the predictions."""
    p = predict(weights)
    return -np.sum(np.log(p * LABELS + (1 - p) * (1 - LABELS)))


def test_gradient_descent_makes_the_labels_likely():
    weights = np.zeros(3)
    slope = grad(loss)
    first = slope(weights)
    np.testing.assert_allclose(first, INPUTS.T @ (0.5 - LABELS), rtol=1e-12)
    for _ in range(300):
        weights -= slope(weights) * 0.3
    assert type(weights) is np.ndarray
    assert loss(np.zeros(3)) > 2.7
    assert loss(weights) < 0.1
    np.testing.assert_array_equal(predict(weights) > 0.5, LABELS)
