"""Elements and reductions of a NumPyTensor stand for NumPy's scalars, which nothing changes."""

import numpy as np
import pytest

import pullback as pb
from pullback.compat import autograd

WEIGHTS = np.array([1.0, 10.0, 100.0])


def swap(x):
    y = x * 1.0
    t = y[0]
    y[0] = y[2]
    y[2] = t
    return np.sum(y * y * WEIGHTS)


def history(x):
    kept, v = [], np.sum(x * x) * 1.0
    for _ in range(3):
        kept.append(v)
        v *= 2.0
    return kept[0] * x[0] + 10 * kept[1] + 100 * kept[2]


def accumulate(x):
    y = x * 1.0
    total = y[0]
    total += y[1]
    return total * y[0] + np.sum(y * y)


def unpack(x):
    y = x * 1.0
    a, b, c = y
    y *= 3
    return a * b + c * y[0]


def listed(x):
    y = x * 1.0
    values = [v for v in y]  # noqa: C416  (the loop is what is tried)
    y[:] = 0
    return values[0] * values[1] + np.sum(y)


def flat(x):
    y = x * 1.0
    a = y.flat[1]
    y *= 3
    return a * a + np.sum(y)


def changed_while_iterated(x):
    y, total = x * 1.0, 0.0
    for i, v in enumerate(y):
        y[i + 1 :] = y[i + 1 :] + v
        total = total + v * v
    return total


def all_augmented(x):
    a = b = np.sum(x * x)
    a += x[1]
    a -= x[0] ** 2
    a *= x[2]
    a /= 3.0
    a **= 2
    a %= 50.0
    c = a
    c //= 2.0
    return a * b + c


def an_argument(x):
    s = x[1]
    s *= 2
    return s * x[1]


def view_of_no_axes(x):
    y = x * 1.0
    v = y[..., 0]
    v += 1.0
    v *= 3.0
    return np.sum(y * y)


def only_element(x):
    y = x[:1] * 1.0
    t = y[0]
    y[0] = y[0] * 2
    return t * t + 10 * y[0]


def rows(x):
    y = np.outer(x, x)
    row = y[0]
    row *= 2.0
    return np.sum(y * WEIGHTS)


PROGRAMS = (
    *(swap, history, accumulate, unpack, listed, flat, changed_while_iterated, all_augmented),
    *(an_argument, view_of_no_axes, only_element, rows),
)
X = np.array([3.0, 1.5, 2.0])


def slopes(f, x):
    h = 1e-5
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(3)])


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_code_that_keeps_scalars_of_a_numpy_tensor_computes_what_numpy_does(f):
    batch, expected = np.stack([X, X[::-1]]), slopes(f, X)
    value, gradient = pb.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(pb.vmap(f)(batch), [f(row) for row in batch])
    along = [pb.jvp(f, (X,), (e,))[1] for e in np.eye(3)]
    over = pb.grad(lambda x: np.sum(pb.vmap(f)(x)))(batch)[0]
    samples = pb.vmap(pb.grad(f))(batch)[0]
    for found in (gradient, along, over, samples, pb.jacfwd(f)(X), autograd.grad(f)(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(pb.hessian(f)(X), slopes(pb.grad(f), X), rtol=1e-5, atol=1e-5)


def test_elements_of_a_numpy_tensor_share_the_node_and_not_the_memory():
    def f(x):
        y = x * x
        assert y[0].grad_fn.name() == y[..., 0].grad_fn.name() == "GetitemBackward"
        assert y[0].base is None
        assert y[..., 0].base is y
        return y[0]

    assert pb.grad(f)(X).tolist() == [6.0, 0.0, 0.0]


def test_elements_of_a_plain_tensor_stay_views():
    y = pb.tensor([1.0, 2.0])
    t = y[0]
    t += 5.0
    assert y.tolist() == [6.0, 2.0]
