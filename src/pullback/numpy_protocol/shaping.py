"""NumPy's functions of shape and order on tensors: views, copies and joins."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from pullback.core.custom.pytree import leaves
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.numpy_protocol.arguments import (
    ADAPTERS,
    adapter,
    as_tensor,
    flat,
    position,
    tensors_in,
    together,
    values_of,
    with_rank,
    xp,
)
from pullback.numpy_protocol.computing import linspace
from pullback.ops.arguments import needs_rank
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.ops.functions import joining

# -- what is known without looking at the elements -------------------------------------------------
adapter("shape")(lambda a: tuple(a.shape))
adapter("ndim")(lambda a: len(a.shape))
adapter("iscomplexobj")(lambda x: bool(x.is_complex()))
adapter("isrealobj")(lambda x: not x.is_complex())


@adapter("size")
def size(a: Any, axis: Any = None) -> int:
    return math.prod(a.shape[i] for i in normalize_axes("np.size", axis, len(a.shape)))


# -- another shape, another order ------------------------------------------------------------------
@adapter("reshape")
def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    """Reshape; in Fortran's order, which is C's of the axes reversed."""
    x, wanted = as_tensor(a), tuple(shape) if isinstance(shape, Sequence) else (int(shape),)
    if _order(x, order) == "C":
        return xp.reshape(x, wanted, copy=copy)
    return transpose(xp.reshape(transpose(x), wanted[::-1]))


def _order(x: Any, order: str) -> str:
    """Return whether elements are counted in C's or in Fortran's order."""
    if order in ("A", "K"):  # as they lie in memory
        flags = values_of(x).flags
        if flags.c_contiguous or not (flags.f_contiguous or order == "K"):
            return "C"
        order = "F" if flags.f_contiguous else order
    if order not in ("C", "F"):
        required = "order 'C' or 'F' required, for elements that do not lie in one of the two"
        raise ArgumentError(compose("np.reshape", required, repr(order), ("a", x)))
    return order


@adapter("ravel")
def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, (-1,), order).contiguous()


@adapter("transpose")
def transpose(a: Any, axes: Any = None) -> Any:
    return xp.permute_dims(a, tuple(range(a.ndim))[::-1] if axes is None else tuple(axes))


@adapter("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    i = normalize_axis("np.rollaxis", axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return xp.moveaxis(a, i, start - (i < start))


@adapter("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    for i in sorted(normalize_axes("np.expand_dims", axes, a.ndim + len(axes))):
        a = xp.expand_dims(a, axis=i)
    return a


@adapter("flip")
def flip(m: Any, axis: Any = None) -> Any:
    """Return a view with axes reversed; ``pb.flip`` gives a copy, as PyTorch does."""
    x = as_tensor(m)
    axes = normalize_axes("np.flip", axis, x.ndim)
    return x[tuple([slice(None, None, -1 if i in axes else None) for i in range(x.ndim)])]


@adapter("fliplr")
def fliplr(m: Any) -> Any:
    needs_rank("np.fliplr", m, 2)
    return flip(m, 1)


@adapter("flipud")
def flipud(m: Any) -> Any:
    needs_rank("np.flipud", m, 1)
    return flip(m, 0)


@adapter("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    needs_rank("np.rot90", m, 2)
    plane = normalize_axes("np.rot90", axes, m.ndim)
    if len(plane) != 2:
        raise ArgumentError(compose("np.rot90", "two axes required", repr(axes), ("m", m)))
    turns = k % 4
    if turns % 2 == 0:
        return flip(m, plane if turns else ())
    order = list(range(m.ndim))
    order[plane[0]], order[plane[1]] = plane[::-1]
    return flip(transpose(m, order), plane[turns // 2])


@adapter("resize")
def resize(a: Any, new_shape: Any) -> Any:
    places = np.resize(np.arange(a.numel()), new_shape)
    return flat(a)[places] if a.numel() else xp.zeros(places.shape, dtype=a.dtype, device=a.device)


# -- joining and splitting ----------------------------------------------------------------------
adapter("append")(lambda arr, values, axis=None: xp.concat(together(arr, values), axis=axis))


@adapter("block")
def block(arrays: Any) -> Any:
    depth, like = _depth(arrays), tensors_in(arrays)[0]
    rank = max([depth, *(len(getattr(a, "shape", ())) for a in leaves(arrays))])

    def joined(part: Any, level: int) -> Any:
        if level == depth:
            return with_rank(as_tensor(part, like), rank)
        return xp.concat([joined(item, level + 1) for item in part], axis=level - depth)

    return joined(arrays, 0)


def _depth(part: Any) -> int:
    return 1 + _depth(part[0]) if isinstance(part, list) else 0


@adapter("split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    return list(joining.equal_parts("np.split", as_tensor(ary), indices_or_sections, axis))


# -- making ----------------------------------------------------------------------------------------
def _filled(make: Any, a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    wanted = a.shape if shape is None else shape
    return make(wanted, dtype=dtype or a.dtype, device=device or a.device)


adapter("zeros_like")(functools.partial(_filled, xp.zeros))
adapter("ones_like")(functools.partial(_filled, xp.ones))


@adapter("empty_like")
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    return _filled(xp.zeros, prototype, dtype, shape, device=device)


@adapter("full_like")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Any:
    zeros = _filled(xp.zeros, a, dtype, shape, device=device)
    if not isinstance(fill_value, Tensor):
        return xp.full_like(zeros, fill_value)
    return xp.clone(xp.broadcast_to(xp.astype(fill_value, zeros.dtype), zeros.shape))


# The modes of np.pad: the setting that each takes.
_PAD_SETTINGS = {
    **dict.fromkeys(("constant", "empty"), "constant_values"),
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), "stat_length"),
    **dict.fromkeys(("edge", "wrap"), ""),
    "linear_ramp": "end_values",
}


@adapter("pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Pad axis after axis, with constants or with what NumPy makes of the elements."""
    x = as_tensor(array)
    widths = _widths(pad_width, x.ndim)
    if mode not in _PAD_SETTINGS:
        required = f"mode {', '.join(map(repr, _PAD_SETTINGS))} required"
        raise ArgumentError(compose("np.pad", required, repr(mode)))
    name = _PAD_SETTINGS[mode]
    for other in kwargs.keys() - {name}:
        required = f"{name or 'no setting'} required in mode {mode!r}"
        raise ArgumentError(compose("np.pad", required, other))
    values = kwargs.get(name)
    if mode in ("constant", "empty") and (values is None or isinstance(values, Number)):
        value = 0 if values is None or mode == "empty" else np.asarray(values).astype(x.dtype.dtype)
        return xp.pad_constant(x, widths=tuple(widths), value=value)
    if name in ("constant_values", "end_values"):  # they may be tensors in the graph
        values = xp.broadcast_to(as_tensor(0 if values is None else values, x), (x.ndim, 2))
    elif name == "stat_length":
        values = np.broadcast_to(np.asarray(values, object), (x.ndim, 2))
    for axis, width in enumerate(widths):
        setting = values if values is None or isinstance(values, str) else values[axis]
        if any(width):
            parts = _padded(x, axis, width, mode, setting)
            x = xp.concat(parts, axis=axis) if len(parts) > 1 else parts[0]
    return x


def _padded(x: Any, axis: int, width: tuple[int, int], mode: str, setting: Any) -> list[Any]:
    """Return what stands before `x` on an axis, `x`, and what stands behind."""
    n, (low, high) = x.shape[axis], width

    def part(values: Any, start: int, stop: int) -> Any:
        return values[position(axis, slice(start, stop))]

    def repeated(values: Any, length: int) -> Any:
        return xp.broadcast_to(values, (*x.shape[:axis], length, *x.shape[axis + 1 :]))

    if mode == "constant":
        ends = [xp.astype(end, x.dtype) for end in setting]
        return [repeated(ends[0], low), x, repeated(ends[1], high)]
    first, last = part(x, 0, 1), part(x, n - 1, n)
    if mode == "linear_ramp":
        before = linspace(setting[0], first, low, False, dtype=x.dtype, axis=axis)
        after = linspace(setting[1], last, high, False, dtype=x.dtype, axis=axis)
        line = (*x.shape[:axis], -1, *x.shape[axis + 1 :])
        before, after = (xp.reshape(ramp, line) for ramp in (before, after))
        return [before, x, xp.flip(after, axis=axis)]
    if _PAD_SETTINGS[mode] == "stat_length":
        lengths = [n if count is None else min(count, n) for count in setting]
        ends = [part(x, 0, lengths[0]), part(x, n - lengths[1], n)]
        result = [ADAPTERS[_STATISTICS.get(mode, mode)](end, axis, keepdims=True) for end in ends]
        if not x.dtype.is_inexact:
            result = [xp.astype(xp.round(end), x.dtype) for end in result]
        return [repeated(result[0], low), x, repeated(result[1], high)]
    index = np.pad(np.arange(n), width, mode=mode)  # type: ignore[call-overload]
    padded = x[position(axis, index)]
    if setting not in ("odd", "even", None) or (setting == "odd" and max(width) >= n):
        required = "reflect_type 'even', or 'odd' and less elements than there are, required"
        raise ArgumentError(compose("np.pad", required, f"{setting!r}, {width}", ("array", x)))
    if setting != "odd":
        return [padded]
    return [first * 2 - part(padded, 0, low), x, last * 2 - part(padded, low + n, low + n + high)]


_STATISTICS = {"maximum": "max", "minimum": "min"}


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """Return one pair an axis from what NumPy takes."""
    if isinstance(pad_width, dict):
        named = {axis % rank: np.broadcast_to(width, 2) for axis, width in pad_width.items()}
        pairs = [named.get(axis, (0, 0)) for axis in range(rank)]
    else:
        pairs = list(np.broadcast_to(pad_width, (rank, 2)))
    return [(int(before), int(after)) for before, after in pairs]


@adapter("lib.stride_tricks.sliding_window_view")
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    """Return windows along axes, their elements in new last axes; a copy, not a view."""
    lengths = tuple(window_shape) if isinstance(window_shape, Sequence) else (window_shape,)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis).tolist()
    if len(lengths) != len(axes):
        required = f"a window of {len(axes)} axes required"
        raise ArgumentError(compose("np.sliding_window_view", required, str(len(lengths))))
    rank = x.ndim
    for along, length in zip(axes, lengths, strict=True):
        along = normalize_axis("np.sliding_window_view", along, rank)
        x = xp.unfold_along(x, along, int(length), 1)
    return x


# -- along axes ------------------------------------------------------------------------------------
@adapter("apply_along_axis")
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    along = normalize_axis("np.apply_along_axis", axis, arr.ndim)
    rows = xp.moveaxis(arr, along, -1)
    flat = xp.reshape(rows, (-1, rows.shape[-1]))
    results = [as_tensor(func1d(flat[i], *args, **kwargs)) for i in range(flat.shape[0])]
    result = xp.reshape(xp.stack(results), (*rows.shape[:-1], *results[0].shape))
    first, rank = arr.ndim - 1, results[0].ndim
    return xp.moveaxis(result, tuple(range(first, first + rank)), tuple(range(along, along + rank)))


@adapter("apply_over_axes")
def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        i = normalize_axis("np.apply_over_axes", axis, a.ndim)
        result = func(a, i)
        a = result if result.ndim == a.ndim else xp.expand_dims(result, axis=i)
    return a
