"""Stochastic gradient descent on containers: ``grad(x, i)`` is the gradient in iteration `i`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.misc.flatten import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Function = Callable[..., Any]


def unflatten_optimizer(optimize: Function) -> Function:
    """Return an optimizer of vectors as one of nested containers.

    Examples
    --------
    >>> step = unflatten_optimizer(lambda grad, x, callback: x - grad(x, 0))
    >>> step(lambda x, i: {"a": x["a"] / 2}, {"a": 4.0})
    {'a': np.float64(2.0)}
    """

    @functools.wraps(optimize)
    def call(grad: Function, x0: Any, callback: Any = None, *args: Any, **settings: Any) -> Any:
        def flat_grad(x: Any, i: int) -> Any:
            g = flatten(grad(unflatten(x), i))[0]
            if callback:
                callback(unflatten(x), i, unflatten(g))
            return g

        vector, unflatten = flatten(x0)
        return unflatten(optimize(flat_grad, vector, None, *args, **settings))

    return call


@unflatten_optimizer
def sgd(
    grad: Function, x: Any, _: Any, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:
    """Return `x` after gradient descent with momentum.

    Examples
    --------
    >>> round(float(sgd(lambda x, i: 2 * x, 1.0, num_iters=10)), 3)
    0.307
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        velocity = mass * velocity - (1 - mass) * grad(x, i)
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Function,
    x: Any,
    _: Any,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return `x` after steps divided by the root of the mean squared gradient.

    Examples
    --------
    >>> round(float(rmsprop(lambda x, i: 2 * x, 1.0, num_iters=10)), 3)
    0.141
    """
    square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        square = square * gamma + g**2 * (1 - gamma)
        x = x - step_size * g / (np.sqrt(square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Function,
    x: Any,
    _: Any,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return `x` after Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015).

    Examples
    --------
    >>> round(float(adam(lambda x, i: 2 * x, 1.0, num_iters=10, step_size=0.1)), 3)
    0.076
    """
    mean, square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        mean, square = (1 - b1) * g + b1 * mean, (1 - b2) * g**2 + b2 * square
        scale = np.sqrt(square / (1 - b2 ** (i + 1))) + eps
        x = x - step_size * (mean / (1 - b1 ** (i + 1))) / scale
    return x
