"""Exponentials and their sums, without overflow: softmax, log_softmax, logsumexp."""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, add_up, library_of
from pullback.ops.arguments import all_values
from pullback.ops.axes import keep_axes, normalize_axes, normalize_axis, reduced_shape, reduced_size
from pullback.ops.declare import Primitive, elementwise, op_for, operation
from pullback.ops.samples import AXES, NO_AXIS, both, real, sample

_np = NUMPY.xp
_largest, _vdot = _np.max, _np.vdot


def _total(x: Any, axis: int, xp: Any) -> Any:
    """Return the sum along an axis, which a tensor of 0 dimensions is itself."""
    return xp.sum(x, axis=axis, keepdims=True) if x.shape else x


def _softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("softmax", axis, len(x.shape))
    if not x.shape:
        return x - x + 1  # NaN of what is not finite, as along an axis
    if 0 in x.shape:
        return xp.zeros_like(x)
    e = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return e / xp.sum(e, axis=axis, keepdims=True)


# Elements whose squares sum up to less are no larger than 50: e ** x cannot overflow, and so few
# of them have a finite sum in float32.
_SMALL = 2500.0


def _softmax_numpy(x: Any, *, axis: int) -> Any:
    if axis.__class__ is not int or not x.shape:
        raise TypeError
    if x.size < _SMALL and _vdot(x, x) < _SMALL:
        e = _np.exp(x)
    else:
        e = x - _largest(x, axis, True)
        _np.exp(e, e)
    e /= add_up(e, axis, True)
    return e


_ALONG = (
    sample((3, 4), axis=-1),
    sample((3, 4), axis=0),
    sample((5,), axis=0),
    sample((), axis=-1),
    sample((0, 3), axis=1),
    sample((3, 0), axis=1),
)


times_p: Primitive = elementwise(
    "times",
    lambda xp, x, y: xp.where((x == 0) | (y == 0), 0, x * y),
    x=lambda g, y, xp: op_for(xp, times_p)(g, y),
    y=lambda g, x, xp: op_for(xp, times_p)(g, x),
    reference="numpy.multiply",
    doc="Return x y, which is 0 where one of them is, even if the other is NaN.",
)


def _is_undefined(out: Any) -> bool:
    """Return whether there is a NaN, as in rows of -inf alone, for which g may not ask."""
    values = all_values(out)
    total = library_of(values).xp.sum(values)
    return bool(total != total)


def _softmax_rule(g: Any, out: Any, axis: int, xp: Any) -> Any:
    if _is_undefined(out):
        times = op_for(xp, times_p)
        return times(g - _total(times(g, out), axis, xp), out)
    return (g - _total(g * out, axis, xp)) * out


softmax_p: Primitive = operation(
    "softmax",
    _softmax,
    numpy_kernel=_softmax_numpy,
    rules={"x": _softmax_rule},
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return exp(x) normalised to sum 1 along an axis, without overflow.",
    batch="axis",
)


def _log_softmax(xp: Any, x: Any, *, axis: int = -1) -> Any:
    axis = normalize_axis("log_softmax", axis, len(x.shape))
    if not x.shape or 0 in x.shape:
        return x - x
    shifted = x - xp.max(x, axis=axis, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def _log_softmax_numpy(x: Any, *, axis: int) -> Any:
    if axis.__class__ is not int or not x.shape:
        raise TypeError
    shifted = x - _largest(x, axis, True)
    shifted -= _np.log(add_up(_np.exp(shifted), axis, True))
    return shifted


def _log_softmax_rule(g: Any, out: Any, axis: int, xp: Any) -> Any:
    total = _total(g, axis, xp)
    if _is_undefined(out):
        return g - op_for(xp, times_p)(total, op_for(xp, softmax_p)(out, axis=axis))
    return g - xp.exp(out) * total


log_softmax_p = operation(
    "log_softmax",
    _log_softmax,
    numpy_kernel=_log_softmax_numpy,
    rules={"x": _log_softmax_rule},
    domain=real(-2, 2),
    floating=True,
    samples=_ALONG,
    doc="Return the logarithm of softmax, without overflow.",
    batch="axis",
)


def _logsumexp(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("logsumexp", axis, len(x.shape))
    is_complex = "complex" in str(x.dtype)
    if not axes and not is_complex:  # of a complex number the logarithm is the principal one
        return x + 0
    if reduced_size(x.shape, axis) == 0:
        return _nothing(x, axes, keepdims)
    size = xp.real(x) if is_complex else x
    top = xp.max(size, axis=axes, keepdims=True)
    top = xp.where(xp.isfinite(top), top, xp.zeros_like(top))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keepdims else xp.reshape(total, reduced_shape(total.shape, axis))


def _logsumexp_numpy(x: Any, *, axis: Any, keepdims: bool) -> Any:
    if not x.size or not x.shape or axis == ():
        raise TypeError
    top = _largest(x, axis, True)
    finite = _np.isfinite(top)
    if _np.count_nonzero(finite) != top.size:
        top = _np.where(finite, top, 0)
    e = x - top
    _np.exp(e, e)
    total = add_up(e, axis, keepdims)
    return _np.log(total) + (top if keepdims else top.reshape(total.shape))


def _nothing(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the logarithm of empty sums."""
    library = library_of(x)
    device = library.native_device(library.device(x))
    lengths = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    shape = lengths if keepdims else reduced_shape(x.shape, axes)
    return library.full(shape, -float("inf"), library.dtype(x), device)


def _logsumexp_rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g exp(x - out), 0 where both are -inf."""
    out = xp.where(out == -float("inf"), xp.zeros_like(out), out)
    g, out = (keep_axes(v, x.shape, axis, keepdims, xp) for v in (g, out))
    return g * xp.exp(x - out)


logsumexp_p = operation(
    "logsumexp",
    _logsumexp,
    numpy_kernel=_logsumexp_numpy,
    rules={"x": _logsumexp_rule},
    domain=both(-2, 2),
    floating=True,
    samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    reference=(
        lambda np, x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))
    ),
    doc="Return log(sum(exp(x))) over axes, without overflow.",
    batch="reduction",
)
