"""`scipy.integrate.quad`: integrals of functions, differentiable in limits and parameters.

SciPy cuts the range into intervals, for the function and for its derivative, until both integrals
are known to the tolerance. The function is then called on tensors at the nodes of Gauss and
Legendre in each: the result is a sum, with derivatives of every order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as theirs

from pullback.core.backward.collect import since
from pullback.core.backward.engine import run
from pullback.core.graph.modes import STATE, enable_grad, no_grad
from pullback.core.graph.node import next_seq
from pullback.core.tensor.tensor import Tensor, as_array, box
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    BatchedValueError,
    ConvergenceError,
    ShapeError,
    compose,
)
from pullback.implicit.limits import integral_to
from pullback.interop.scipy.reading import as_scipy, floating
from pullback.ops.declare import by_sample
from pullback.ops.functions.creation import asarray, ones_like
from pullback.ops.functions.joining import stack

__all__ = ["quad"]

_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(21)


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    *,
    complex_func: bool = False,
) -> tuple[Any, float]:
    """Return the integral of ``func(x, *args)`` from `a` to `b`, as `scipy.integrate.quad`.

    Parameters
    ----------
    func : callable
        Is given x as a tensor of shape () and returns one number.
    a, b : number or Tensor
        The limits; numbers may be infinite.
    args : tuple
    epsabs, epsrel : float
        The errors that are allowed, of the integral and of that of the derivative.
    limit : int
        The number of intervals, times 20: `scipy.integrate.quad_vec` cuts them.
    points : sequence of float, optional
        Where `func` has kinks or jumps.
    weight : None
        There are no weights: they are factors of `func`.
    complex_func : bool
        Whether `func` returns complex numbers.

    Returns
    -------
    (number or Tensor, float)
        The integral and an estimate of its error. It has derivatives of every order by `a`, `b`,
        `args` and what `func` closes over. By a limit it is ``func`` there. `vmap` integrates for
        each sample; what differs between them goes in `a`, `b` and `args`.

    Raises
    ------
    ConvergenceError
        If the integral, or that of the derivative, is not known to the tolerance.

    Examples
    --------
    >>> import pullback as pb
    >>> def integral(b, k):
    ...     return pb.interop.scipy.integrate.quad(lambda x: pb.sin(k * x), 0.0, b)[0]
    >>> [round(g, 6) for g in pb.grad(integral, argnum=(0, 1))(1.0, 2.0)]
    [0.909297, 0.100612]
    """
    args = args if isinstance(args, tuple) else (args,)
    _check(func, weight, full_output)
    arguments = (func, a, b, args, points, complex_func)
    bounds: dict[str, Any] = {"epsabs": epsabs, "epsrel": epsrel, "limit": 20 * limit}
    try:
        total, error = _quad(*arguments, **bounds)
    except BatchedValueError as raised:
        try:
            total, error = by_sample(raised, _tensors, arguments, bounds)
        except BatchedValueError as again:
            raise _closed_over() from again
    value = as_scipy(total, [a, b, *args])
    return (value.item() if isinstance(value, np.generic) else value), error


def _quad(
    func: Any, a: Any, b: Any, args: Any, points: Any, complex_func: bool, **bounds: Any
) -> tuple[Tensor, float]:
    """Return the integral of one sample, and the error."""
    low, high = _limit("a", a), _limit("b", b)

    def f(x: Any) -> Tensor:
        return _one_number(func(x, *args), complex_func)

    ends = [float(low.detach()), float(high.detach())]
    total, error = _integral(f, ends, points, bounds)
    for end, sign in ((high, 1.0), (low, -1.0)):
        if math.isfinite(float(end.detach())):
            change = integral_to(lambda x, _: f(x), end)
            total = total if change is None else total + sign * change
    return total, error


def _tensors(*arguments: Any, **bounds: Any) -> Any:
    """Return the same as tensors, which have an axis of samples."""
    try:
        total, error = _quad(*arguments, **bounds)
    except BatchedValueError as raised:
        return by_sample(raised, _tensors, arguments, bounds)
    return total, asarray(np.asarray(error))


def _closed_over() -> BatchedValueError:
    required = "what differs between the samples of vmap required among a, b and args"
    came = "a function that closes over it"
    hint = "hand it over in args, or integrate for each sample in a loop and pb.stack the results"
    return BatchedValueError(compose("quad", required, came, hint=hint))


def _check(func: Any, weight: Any, full_output: Any) -> None:
    if not callable(func):
        raise ArgumentTypeError(compose("quad", "a function required", type(func).__name__))
    if weight is not None:
        hint = "multiply func by the weight"
        raise ArgumentError(compose("quad", "weight=None required", repr(weight), hint=hint))
    if full_output:
        hint = "for SciPy's report call scipy.integrate.quad on values"
        raise ArgumentError(compose("quad", "full_output=0 required", "1", hint=hint))


def _limit(name: str, value: Any) -> Tensor:
    result = floating(value)
    if result.numel() != 1 or result.is_complex() or bool((result != result).any()):
        required = f"one real number, which may be infinite, required as '{name}'"
        came = f"shape {tuple(result.shape)}, {result.dtype.name}"
        raise ArgumentError(compose("quad", required, came, (name, result)))
    return result.reshape(())


def _one_number(value: Any, complex_func: bool) -> Tensor:
    result = floating(value)  # as integers, the sum would be cut off
    if result.numel() != 1:
        hint = "integrate each element, or the sum; func is called with one x"
        came = f"shape {tuple(result.shape)}"
        raise ShapeError(compose("quad", "one number required of func", came, hint=hint))
    if result.is_complex() and not complex_func:
        required, hint = "real numbers required of func", "set complex_func=True"
        raise ArgumentError(compose("quad", required, result.dtype.name, hint=hint))
    return result.reshape(())


# -- intervals -------------------------------------------------------------------------------------
def _integral(
    f: Callable[[Any], Tensor], ends: list[float], points: Any, bounds: dict[str, Any]
) -> tuple[Tensor, float]:
    """Return the integral between numbers, as a sum over the intervals that SciPy cuts."""
    a, b = ends
    if a == b:
        return (f(_place(a)) if math.isfinite(a) else _place(0.0)) * 0.0, 0.0
    if a > b:
        total, error = _integral(f, [b, a], points, bounds)
        return -total, error
    inner, whole = _inward(a, b), (0.0, 1.0)
    if inner is None:
        inner, whole = (lambda t: [(t, 1.0)]), (a, b)
    if points is not None and whole != (a, b):
        required = "finite limits required with points"
        raise ArgumentError(compose("quad", required, f"{a} and {b}"))
    first, error = _cut(lambda t: _value(f, inner(t)), whole, points, bounds, "the integral")
    cuts = set(first)
    if STATE.get().grad:
        slopes = _Slopes(f)
        of_slope = lambda t: sum(w * slopes(x) for x, w in inner(t))  # noqa: E731
        again, _ = _cut(of_slope, whole, points, bounds, "the integral of the derivative")
        cuts |= set(again)
    return _sum(f, inner, sorted(cuts)), error


def _inward(a: float, b: float) -> Any:
    """Return what maps the unit interval to an infinite one: places, and the factors there."""
    if math.isinf(a) and math.isinf(b):
        return lambda t: [((1 - t) / t, 1 / t**2), (-(1 - t) / t, 1 / t**2)]
    if math.isinf(b):
        return lambda t: [(a + (1 - t) / t, 1 / t**2)]
    if math.isinf(a):
        return lambda t: [(b - (1 - t) / t, 1 / t**2)]
    return None


def _place(x: float) -> Tensor:
    return asarray(np.asarray(x))


def _value(f: Callable[[Any], Tensor], pairs: Any) -> Any:
    """Return what the function gives at places, times the factors there."""
    with no_grad():
        result = [f(_place(x)).detach().numpy() * w for x, w in pairs]
    return np.atleast_1d(sum(result))


class _Slopes:
    """The derivative of the function by what it depends on, along one direction."""

    def __init__(self, f: Callable[[Any], Tensor]) -> None:
        self._f = f
        self._directions: dict[Any, Any] = {}
        self._rng = np.random.default_rng(0)

    def __call__(self, x: float) -> Any:
        begun = next_seq()
        with enable_grad():
            value = self._f(_place(x))
        if not value.requires_grad:
            return np.zeros(1)
        _, targets = since([value._node], begun)
        seed = [ones_like(value.detach()).data_array()]
        result = run([value._node], seed, targets, False, False, False, begun)
        return np.atleast_1d(sum(self._along(t, result.get(t)) for t in targets))

    def _along(self, target: Any, g: Any) -> Any:
        if g is None:
            return 0.0
        g = box(as_array(g)).detach().numpy()
        if target not in self._directions:
            self._directions[target] = self._rng.uniform(0.5, 1.5, g.shape)
        return np.sum(g * self._directions[target])


def _cut(
    f: Any, ends: tuple[float, float], points: Any, bounds: dict[str, Any], what: str
) -> tuple[list[float], float]:
    """Return where SciPy cuts the range for a function of arrays, and the error that is left."""
    points = None if points is None else [float(p) for p in points]
    with np.errstate(all="ignore"):
        result, error, info = theirs.quad_vec(
            f, *ends, points=points, quadrature="gk21", full_output=True, **bounds
        )
    if not info.success or not np.all(np.isfinite(result)):
        required = f"{what} of func to converge required"
        hint = "it may diverge; give points where func jumps, raise limit, epsabs or epsrel"
        came = f"{info.message.rstrip('.').lower()}, with an error of {error:.3g}"
        raise ConvergenceError(compose("quad", required, came, hint=hint))
    return [float(cut) for cut in np.unique(info.intervals)], float(error)


def _sum(f: Callable[[Any], Tensor], inner: Any, cuts: list[float]) -> Tensor:
    """Return the integral by the rule of Gauss and Legendre in each interval."""
    edges = np.asarray(cuts)
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    places, weights = (middle + half * _PLACES).ravel(), (half * _WEIGHTS).ravel()
    terms, factors = [], []
    for t, weight in zip(places, weights, strict=True):
        for x, w in inner(float(t)):
            terms.append(f(_place(x)))
            factors.append(w * weight)
    result = stack(terms)
    return (result * asarray(np.asarray(factors)).to(result.dtype)).sum()
