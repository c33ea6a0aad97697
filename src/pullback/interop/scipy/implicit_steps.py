"""Steps of SciPy's implicit methods on tensors, and the curves between them.

A step is the solution of an equation, and `implicit.solution` gives its derivatives. SciPy solved
the equation on values, to a part of its tolerance: the search here starts there and goes on to
rounding. The equations are SciPy's own: E. Hairer and G. Wanner, "Solving Ordinary Differential
Equations II" (1996), IV.8, and L. Shampine and M. Reichelt, "The MATLAB ODE Suite" (1997).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core.graph.modes import no_grad
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ConvergenceError, compose
from pullback.implicit.refinement import jacobian_of
from pullback.implicit.solution import solution
from pullback.interop.scipy.runge_kutta import Piece, Slope, Taken
from pullback.ops.functions.creation import asarray
from pullback.ops.functions.data_types import finfo
from pullback.ops.functions.joining import stack
from pullback.ops.primitives.solving import solve

__all__ = ["bdf", "radau"]

_FRESH, _CHORD = 6, 4  # how often a Jacobian is computed, and how many steps are taken with it


def _solved(residual: Callable[[Any], Any], guess: Tensor, y: Tensor) -> Tensor:
    """Return what makes a residual vanish, near a guess, with its derivatives."""
    with no_grad():
        x = _to_rounding(residual, guess, y)
    return solution("solve_ivp", residual, x)


def _to_rounding(residual: Callable[[Any], Any], x: Tensor, y: Tensor) -> Tensor:
    rounding = float(finfo(y.dtype).eps) ** (2 / 3)
    for _ in range(_FRESH):
        matrix = jacobian_of(residual, x).detach()
        for _ in range(_CHORD):
            change = solve(matrix, residual(x).detach().reshape((-1, 1))).reshape(x.shape)
            x = x - change
            if _size(change) <= rounding * max(_size(x), _size(y)):
                return x
    required = "the equation of a step to be solved to rounding required"
    hint = "lower rtol and atol: shorter steps are easier to solve"
    came = f"a change of {_size(change):.3g} in the last iteration"
    raise ConvergenceError(compose("solve_ivp", required, came, hint=hint))


def _size(x: Tensor) -> float:
    return float(abs(x.detach()).max()) if x.numel() else 0.0


# -- Radau IIA of order 5 --------------------------------------------------------------------------
_NODES = np.array([(4 - 6**0.5) / 10, (4 + 6**0.5) / 10, 1.0])
_POWERS = np.arange(1, 4)
# Collocation: the stages are those of the polynomial whose slope is right at the nodes.
_STAGES = np.linalg.solve(
    (_NODES[:, None] ** (_POWERS - 1)).T, (_NODES[:, None] ** _POWERS / _POWERS).T
).T
_CURVE = np.linalg.inv(_NODES[:, None] ** _POWERS)  # from stages to coefficients of powers


def radau(f: Slope, times: list[Any], y: Tensor, log: list[Taken]) -> list[Piece]:
    """Take the steps of the method Radau."""
    pieces: list[Piece] = []
    for (start, end), step in zip(itertools.pairwise(times), log[1:], strict=True):
        length, solver = end - start, step.curve
        stages = _radau_stages(f, start, length, y, _radau_guess(solver, y))
        pieces.append(Piece(y + stages[2], functools.partial(_radau_at, y, stages, start, length)))
        y = pieces[-1].after
    return pieces


def _radau_guess(curve: Any, y: Tensor) -> Tensor:
    """Return the stages that SciPy found, which end its curve at the nodes."""
    at = curve.t_old + _NODES * (curve.t - curve.t_old)
    return asarray(curve(at).T - curve(curve.t_old)).to(y.dtype)


def _radau_stages(f: Slope, start: Any, length: Any, y: Tensor, guess: Tensor) -> Tensor:
    weights = asarray(_STAGES).to(y.dtype)

    def residual(stages: Tensor) -> Tensor:
        at = [start + length * float(c) for c in _NODES]
        slopes = stack([f(t, y + stages[i]) for i, t in enumerate(at)])
        result: Tensor = stages - length * (weights @ slopes)
        return result

    return _solved(residual, guess, y)


def _radau_at(y: Tensor, stages: Tensor, start: Any, length: Any, t: Any) -> Tensor:
    share = (t - start) / length
    powers = asarray(_CURVE).to(y.dtype) @ stages
    result: Tensor = y + share * (powers[0] + share * (powers[1] + share * powers[2]))
    return result


# -- backward differentiation formulae of order 1 to 5 ---------------------------------------------
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.hstack([0.0, np.cumsum(1 / np.arange(1, 6))])
_ALPHA = (1 - _KAPPA) * _GAMMA


def bdf(f: Slope, times: list[Any], y: Tensor, log: list[Taken]) -> list[Piece]:
    """Take the steps of the method BDF, of the orders that SciPy chose.

    The state is that of SciPy: `rows` holds y and its backward differences of order 1 and higher,
    for equal steps of length `planned`, and is made anew where that changes.
    """
    share = _share(times, log)
    planned = log[0].planned
    rows = [y, f(times[0], y) * share(planned)] + [y * 0.0] * 6
    pieces: list[Piece] = []
    for (start, end), (before, step) in zip(
        itertools.pairwise(times), itertools.pairwise(log), strict=True
    ):
        order, length = step.order, step.t - before.t
        _resample(rows, order, length / planned)
        rows = _bdf_step(f, rows, order, start, end, step)
        planned, order = step.planned, step.next_order
        _resample(rows, order, planned / length)
        curve = functools.partial(_bdf_at, rows[: order + 1], end, share(planned))
        pieces.append(Piece(rows[0], curve))
        rows = list(rows)
    return pieces


def _share(times: list[Any], log: list[Taken]) -> Callable[[float], Any]:
    """Return how a length on values follows from the span, which may have a derivative."""
    whole = log[-1].t - log[0].t
    if len(times) < 2 or not isinstance(times[-1] - times[0], Tensor):
        return float
    return lambda length: (times[-1] - times[0]) * (length / whole)


def _bdf_step(
    f: Slope, rows: list[Tensor], order: int, start: Any, end: Any, step: Taken
) -> list[Tensor]:
    """Return the differences after a step: y is the prediction and d."""
    predicted = sum(rows[1 : order + 1], rows[0])
    past = sum(rows[i] * float(_GAMMA[i] / _ALPHA[order]) for i in range(1, order + 1))
    factor = (end - start) / float(_ALPHA[order])
    guess = asarray(step.y).to(predicted.dtype) - predicted.detach()
    d = _solved(lambda d: d + past - factor * f(end, predicted + d), guess, predicted)
    rows = list(rows)
    rows[order + 2] = d - rows[order + 1]
    rows[order + 1] = d
    for i in reversed(range(order + 1)):
        rows[i] = rows[i] + rows[i + 1]
    return rows


def _resample(rows: list[Tensor], order: int, factor: float) -> None:
    """Make rows the differences for steps that are longer by a factor."""
    if factor == 1:
        return
    matrix = _differences(order, factor) @ _differences(order, 1.0)
    old = stack(rows[: order + 1])
    new = asarray(matrix.T).to(old.dtype) @ old
    rows[: order + 1] = [new[i] for i in range(order + 1)]


def _differences(order: int, factor: float) -> Any:
    i, j = np.arange(1, order + 1)[:, None], np.arange(1, order + 1)
    matrix = np.zeros((order + 1, order + 1))
    matrix[1:, 1:] = (i - 1 - factor * j) / i
    matrix[0] = 1
    return np.cumprod(matrix, axis=0)


def _bdf_at(rows: list[Tensor], end: Any, length: Any, t: Any) -> Tensor:
    """Return Newton's polynomial of the differences at a time."""
    result, product = rows[0], 1.0
    for j, row in enumerate(rows[1:]):
        product = product * ((t - end + length * float(j)) / (length * float(1 + j)))
        result = result + row * product
    return result
