"""Running sums and products, and their derivatives.

The derivative of a running product is right with any number of zeros, since nothing is divided
by: what an element is multiplied by afterwards is a linear recurrence, solved from the end.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, library_of, running_sum
from pullback.errors import DTypeError, compose
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import Primitive, operation
from pullback.ops.samples import real, sample

_ALONG = (
    sample((3, 4), axis=0),
    sample((2, 5), axis=-1),
    sample((1,), axis=0),
    sample((0, 2), axis=0),
    sample((), axis=-1),
)


def _reversed_sums(g: Any, axis: int, xp: Any) -> Any:
    if not g.shape:
        return g
    flipped = xp.cumulative_sum(xp.flip(g, axis=axis), axis=axis)
    return xp.flip(flipped, axis=axis)


def recurrence(a: Any, b: Any, xp: Any) -> Any:
    """Return s with s[k] = b[k] + a[k] * s[k + 1] along the last axis, s = 0 past the end.

    Two steps are one step of the same kind, so half of them suffice to find every second element:
    the work is linear in the length and the depth logarithmic.
    """
    n = b.shape[-1]
    if n < 2:
        return b
    if n % 2:
        rest = recurrence(a[..., 1:], b[..., 1:], xp)
        return xp.concat([b[..., :1] + a[..., :1] * rest[..., :1], rest], axis=-1)
    a0, a1, b0, b1 = a[..., ::2], a[..., 1::2], b[..., ::2], b[..., 1::2]
    even = recurrence(a0 * a1, b0 + a0 * b1, xp)
    after = xp.concat([even[..., 1:], xp.zeros_like(even[..., :1])], axis=-1)
    return xp.reshape(xp.stack([even, b1 + a1 * after], axis=-1), b.shape)


def _products_rule(g: Any, x: Any, out: Any, axis: int, xp: Any) -> Any:
    """Return the products before each element times what its later ones make of `g`."""
    if not x.shape or 0 in x.shape:
        return g
    g, x, out = (xp.moveaxis(t, axis, -1) for t in (g, x, out))
    later = recurrence(xp.concat([x[..., 1:], xp.zeros_like(x[..., :1])], axis=-1), g, xp)
    before = xp.concat([xp.ones_like(out[..., :1]), out[..., :-1]], axis=-1)
    return xp.moveaxis(before * later, -1, axis)


def _running(name: str, function: str, **declared: Any) -> Primitive:
    def forward(xp: Any, x: Any, *, axis: int = -1) -> Any:
        axis = normalize_axis(name, axis, len(x.shape))
        scan = getattr(xp, function)
        return scan(x, axis=axis) if x.shape else scan(xp.reshape(x, (1,)), axis=0)[0, ...]

    accumulate = running_sum if name == "cumsum" else NUMPY.xp.multiply.accumulate

    def of_numpy(x: Any, *, axis: int) -> Any:
        if axis.__class__ is not int or not x.shape:
            raise TypeError
        return accumulate(x, axis)

    return operation(name, forward, numpy_kernel=of_numpy, samples=_ALONG, batch="axis", **declared)


cumsum_p = _running(
    "cumsum",
    "cumulative_sum",
    rules={"x": _reversed_sums},
    doc="Return the running sum along an axis.",
)


cumprod_p = _running(
    "cumprod",
    "cumulative_prod",
    rules={"x": _products_rule},
    doc="Return the running product along an axis.",
)


# -- exponentials ----------------------------------------------------------------------------------
def _log_sums(xp: Any, x: Any, *, axis: int = -1) -> Any:
    """Return the running logaddexp, by doubling strides: log2(n) of them at once."""
    axis = normalize_axis("logcumsumexp", axis, len(x.shape))
    if library_of(x).dtype(x).is_complex:
        came = str(x.dtype).rpartition(".")[2]
        raise DTypeError(compose("logcumsumexp", "real numbers required", came, ("x", x)))
    if not x.shape:
        return library_of(x).copy(x)
    x = xp.moveaxis(x, axis, -1)
    n, step = x.shape[-1], 1
    while step < n:
        joined = xp.logaddexp(x[..., step:], x[..., :-step])
        x, step = xp.concat([x[..., :step], joined], axis=-1), 2 * step
    return library_of(x).copy(xp.moveaxis(x, -1, axis))


def _quotient(a: Any, b: Any, xp: Any) -> Any:
    """Return exp(a - b) of a <= b, 0 where both are -inf."""
    return xp.exp(a - xp.where(b == -float("inf"), xp.zeros_like(b), b))


def _log_sums_rule(g: Any, x: Any, out: Any, axis: int, xp: Any) -> Any:
    """Return sum over i >= k of g[i] exp(x[k] - out[i]), of factors that are at most 1."""
    if not x.shape or 0 in x.shape:
        return g
    g, x, out = (xp.moveaxis(t, axis, -1) for t in (g, x, out))
    steps = _quotient(out[..., :-1], out[..., 1:], xp)
    steps = xp.concat([steps, xp.zeros_like(out[..., :1])], axis=-1)
    return xp.moveaxis(_quotient(x, out, xp) * recurrence(steps, g, xp), -1, axis)


logcumsumexp_p = operation(
    "logcumsumexp",
    _log_sums,
    rules={"x": _log_sums_rule},
    floating=True,
    domain=real(-2, 2),
    samples=_ALONG,
    doc="Return the logarithm of running sums of exponentials.",
    batch="axis",
)
