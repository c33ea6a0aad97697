"""Copies, casts and moves between devices: operations that change no value."""

from __future__ import annotations

from typing import Any

from pullback.arrays import DType, as_dtype, library_for, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentTypeError, DTypeError, compose
from pullback.ops._declare import (
    Operation,
    both,
    elementwise,
    face,
    needs_tensor,
    on,
    operation,
    real,
    sample,
)
from pullback.ops.shape import sum_to_shape

__all__ = [
    "astype",
    "clone",
]


def _cast(xp: Any, x: Any, *, dtype: DType) -> Any:
    library = library_of(x)
    if library.dtype(x).is_complex and not dtype.is_complex:
        x = library.xp.real(x)
    return library.astype(x, dtype, copy=True)


astype_: Operation = operation(
    "to",
    _cast,
    rules={"x": lambda g, x_dtype, xp: on(xp, astype_)(g, dtype=x_dtype)},
    holomorphic=False,
    domain=real(-2, 2),
    samples=(sample((3, 4), dtype=as_dtype("float64")), sample((), dtype=as_dtype("complex128"))),
    doc="Return x in another dtype; the gradient comes back in the dtype of x.",
)


@face(astype_, call=astype_)
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return `x` in another dtype, on another device if one is given.

    That is `x` itself where nothing changes and `copy` is False. Complex numbers become real ones
    by their real part.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.astype(pb.tensor([1, 2]), pb.float64)
    tensor([1., 2.], dtype=float64)
    """
    needs_tensor("astype", x)
    x = x if isinstance(x, Tensor) else box(library_of(x).copy(x))
    wanted = as_dtype(dtype)
    if device is not None:
        return to(x, dtype=wanted, device=device, copy=copy)
    if wanted is x.dtype:
        return clone(x) if copy else x
    return astype_(x, dtype=wanted)


clone = elementwise(
    "clone",
    lambda xp, x: library_of(x).copy(x),
    x=lambda g: g,
    domain=both(-2, 2),
    doc="Return a copy that is differentiable.",
)


def _move(xp: Any, x: Any, *, device: str) -> Any:
    source = library_of(x)
    target, native = library_for(device)
    if target is source:
        return target.asarray(x, device=native, copy=True)
    return target.from_numpy(source.to_numpy(x).copy(), native)


move_: Operation = operation(
    "toDevice",
    _move,
    rules={"x": lambda g, x_device, xp: on(xp, move_)(g, device=x_device)},
    samples=(sample((3, 4), device="cpu"),),
    doc="Return x on another device; the gradient comes back on the device of x.",
)


def to(
    x: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
) -> Tensor:
    """Return `x` with another dtype, on another device, or both.

    The arguments, a dtype, a device, a tensor that has both, may come by position, with two bools
    after them: `non_blocking`, which array libraries decide themselves, and `copy`.
    """
    *_, copy = (copy, *[a for a in args if isinstance(a, bool)][1:2])
    for a in args:
        if a is None or isinstance(a, bool):
            continue
        if isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, str) and (a.split(":")[0] in ("cpu", "cuda")):
            device = a
        else:
            dtype = a
    result = x
    if dtype is not None:
        result = astype(result, dtype, copy=False)
    if device is not None and str(device) != x.device and library_for(str(device)) is not None:
        wanted = str(device)
        if not (wanted == "cuda" and x.device.startswith("cuda")):
            result = move_(result, device=wanted)
    return clone(x) if copy and result is x else result


copy_into = operation(
    "copy",
    lambda xp, x, src: library_of(x).assign(library_of(x).copy(x), ..., src),
    rules={
        "x": lambda g, xp: xp.zeros_like(g),
        "src": lambda g, src_shape, xp: sum_to_shape(g, src_shape, xp),
    },
    promotes=False,
    inplace=lambda x, src: library_of(x).assign(x, ..., src),
    samples=(sample((3, 4), (4,)), sample((3, 4), (3, 4)), sample((), ())),
    doc="Return src broadcast to the shape of x.",
)
fill_with = operation(
    "fill",
    lambda xp, x, *, value: xp.full_like(x, value),
    rules={"x": lambda g, xp: xp.zeros_like(g)},
    inplace=lambda x, *, value: library_of(x).assign(x, ..., value),
    samples=(sample((3, 4), value=2.0),),
    doc="Return value in the shape of x.",
)


def needs_room(op: str, x: Tensor, value: Tensor) -> None:
    """Raise where complex numbers would be written into a tensor of real ones."""
    if value.dtype.is_complex and not x.dtype.is_complex:
        required = f"a value that the dtype {x.dtype.name} can hold required"
        named, hint = (("x", x), ("value", value)), "take real, imag or abs of it"
        raise DTypeError(compose(op, required, value.dtype.name, *named, hint=hint))


def asarray_like(value: Any, x: Tensor, op: str) -> Tensor:
    """Return `value` as a tensor of the dtype and device of `x`, for the method `op`."""
    if isinstance(value, Tensor):
        here = library_of(value._data) is library_of(x._data) and value.device == x.device
        moved = value if here else move_(value, device=x.device)
        needs_room(op, x, value)
        return moved if moved.dtype is x.dtype else astype(moved, x.dtype)
    raise ArgumentTypeError(f"{op}: the source must be a Tensor, got {type(value).__name__}")
