"""A mixture of Gaussians fitted by SciPy's optimizer: the parameters are one flat vector."""

import numpy as np
from scipy.optimize import minimize

from pullback import value_and_grad

CENTRES = np.array([[-3.0, 0.0], [3.0, 1.0], [0.0, 4.0]])


def samples(random):
    spread = np.array([[0.5, 1.0], [1.0, 0.4], [0.7, 0.7]])
    return np.concatenate(
        [c + s * random.normal(size=(60, 2)) for c, s in zip(CENTRES, spread, strict=True)]
    )


def unpack(flat):
    """Return the log proportions, the means and the lower triangles of inverse spreads."""
    logits, means, rows = flat[:3], np.reshape(flat[3:9], (3, 2)), np.reshape(flat[9:], (3, 3))
    zeros = np.zeros(3)
    first = np.stack([np.exp(rows[:, 0]), zeros], axis=1)
    second = np.stack([rows[:, 1], np.exp(rows[:, 2])], axis=1)
    proportions = logits - np.log(np.sum(np.exp(logits)))
    return proportions, means, np.stack([first, second], axis=1)


def negative_log_likelihood(flat, data):
    proportions, means, scales = unpack(flat)
    whitened = np.einsum("kij,nkj->nki", scales, data[:, None, :] - means)
    log_det = np.linalg.slogdet(scales)[1]
    parts = proportions + log_det - np.log(2 * np.pi) - 0.5 * np.sum(whitened**2, axis=2)
    best = np.max(parts, axis=1, keepdims=True)
    return -np.sum(best[:, 0] + np.log(np.sum(np.exp(parts - best), axis=1))) / len(data)


def test_the_optimizer_finds_the_centres():
    random = np.random.RandomState(1)
    data = samples(random)
    start = 0.1 * random.normal(size=18)
    start[3:9] = data[[0, 70, 130]].ravel()
    result = minimize(
        value_and_grad(negative_log_likelihood), start, args=(data,), jac=True, method="L-BFGS-B"
    )
    assert negative_log_likelihood(start, data) > 3.7
    assert result.fun < 3.1
    proportions, means, _ = unpack(result.x)
    np.testing.assert_allclose(means, CENTRES, atol=0.4)
    np.testing.assert_allclose(np.exp(proportions), 1 / 3, atol=0.1)
