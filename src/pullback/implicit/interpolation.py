"""Interpolation as NumPy does it, differentiable in all that it is given."""

from __future__ import annotations

from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ShapeError, compose
from pullback.implicit.reading import tensor_of
from pullback.ops.functions.pointwise import clamp, where
from pullback.ops.functions.sorting import searchsorted
from pullback.transforms.api.recording import value_as_given

__all__ = ["interp"]


def interp(x: Any, xp: Any, fp: Any) -> Any:
    """Return the piecewise linear function through ``(xp, fp)`` at `x`, as `numpy.interp`.

    Parameters
    ----------
    x : array or Tensor
        Where, of any shape; outside of `xp` the value is that at its end.
    xp, fp : array or Tensor
        Increasing points, and the values there, of one length n >= 2.

    Returns
    -------
    array or Tensor
        Of the shape of `x`. At a point of `xp` the derivative by `x` is that of the piece before.

    Raises
    ------
    ShapeError
        If `xp` and `fp` are not of one length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.grad(lambda x: pb.implicit.interp(x, [0.0, 1.0, 3.0], [0.0, 2.0, 3.0]))(2.0)
    0.5
    """
    at, points, values = map(tensor_of, (x, xp, fp))
    if points.ndim != 1 or points.shape != values.shape or points.numel() < 2:
        required = "xp and fp of one axis and one length, 2 or more, required"
        came = f"{tuple(points.shape)} and {tuple(values.shape)}"
        raise ShapeError(compose("interp", required, came))
    right = clamp(searchsorted(points.detach(), at.detach()), 1, points.numel() - 1)
    x0, x1, f0, f1 = points[right - 1], points[right], values[right - 1], values[right]
    inside = f0 + (at - x0) / (x1 - x0) * (f1 - f0)
    result = where(at < points[0], values[0], where(at > points[-1], values[-1], inside))
    tensors = [v for v in (x, xp, fp) if isinstance(v, Tensor)] or [x]
    return value_as_given(result, tensors)
