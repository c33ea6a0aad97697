"""Operations on shape: most return views; their gradients are the way back.

A view here is declared so with ``view=True``; whether it really shares memory is asked of the
array library when it is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops._axes import normalize_axes, normalize_axis
from pullback.ops._declare import (
    composition,
    face,
    needs_tensor,
    operation,
    sample,
)

__all__ = [
    "broadcast_to",
    "expand_dims",
    "flatten",
    "flip",
    "matrix_transpose",
    "narrow",
    "permute",
    "permute_dims",
    "reshape",
    "select",
    "squeeze",
    "sum_to_size",
    "swapaxes",
    "swapdims",
    "transpose",
]


def _reshape(xp: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    return library_of(x).reshape(x, shape)[0]


reshape_ = operation(
    "reshape",
    _reshape,
    rules={"x": lambda g, x_shape, xp: xp.reshape(g, x_shape)},
    view=True,
    samples=(
        sample((3, 4), shape=(4, 3)),
        sample((3, 4), shape=(12,)),
        sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0)),
    ),
    doc="Return x in another shape.",
)
permute_dims_ = operation(
    "permute permute_dims",
    lambda xp, x, *, axes: xp.permute_dims(x, axes),
    rules={
        "x": lambda g, axes, xp: xp.permute_dims(
            g, tuple(sorted(range(len(axes)), key=axes.__getitem__))
        )
    },
    view=True,
    samples=(sample((2, 3, 4), axes=(2, 0, 1)), sample((3, 4), axes=(1, 0)), sample((), axes=())),
    doc="Return x with its axes in another order.",
)
broadcast_to_ = operation(
    "broadcast_to",
    lambda xp, x, *, shape: library_of(x).broadcast_to(x, shape),
    rules={"x": lambda g, x_shape, xp: sum_to_shape(g, x_shape, xp)},
    view=True,
    samples=(
        sample((4,), shape=(3, 4)),
        sample((3, 1), shape=(2, 3, 4)),
        sample((), shape=(2, 2)),
        sample((1, 3), shape=(0, 3)),
    ),
    doc="Return x repeated to a larger shape, without copying.",
)
flip_ = operation(
    "flip",
    lambda xp, x, *, axis: library_of(x).copy(xp.flip(x, axis=axis) if axis else x),
    rules={"x": lambda g, axis, xp: xp.flip(g, axis=axis)},
    samples=(
        sample((3, 4), axis=(0,)),
        sample((3, 4), axis=(0, 1)),
        sample((0, 2), axis=(1,)),
        sample((), axis=()),
    ),
    doc="Return x with the order along axes reversed.",
)


def sum_to_shape(g: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Sum `g` over what broadcasting `shape` to its shape repeated."""
    extra = len(g.shape) - len(shape)
    ones = tuple(i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1)
    axes = (*range(extra), *ones)
    if axes:
        g = xp.sum(g, axis=axes, keepdims=True)
    return g if tuple(g.shape) == tuple(shape) else xp.reshape(g, shape)


# -- public faces ----------------------------------------------------------------------------------
def resolve_shape(op: str, came: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with a -1 replaced by what the elements of shape `came` leave for it."""
    try:
        wanted = [int(n.__index__()) for n in shape]
    except AttributeError:
        raise ArgumentTypeError(f"{op}: a shape is made of integers, got {shape!r}") from None
    if wanted.count(-1) > 1 or any(n < -1 for n in wanted):
        raise ShapeError(
            f"{op}: a shape may have one -1 and no other negative, got {tuple(wanted)}"
        )
    came = tuple(came)
    total = math.prod(came)
    if -1 in wanted:
        rest = math.prod(n for n in wanted if n != -1)
        if rest == 0 or total % rest:
            required = f"a shape that {total} elements of shape {came} fill required"
            raise ShapeError(f"{op}: {required}, got {tuple(wanted)}")
        wanted[wanted.index(-1)] = total // rest
    if math.prod(wanted) != total:
        required = f"a shape of {total} elements, as many as shape {came} has, required"
        raise ShapeError(f"{op}: {required}, got {tuple(wanted)}")
    return tuple(wanted)


@face(reshape_)
def reshape(x: Any, /, shape: Sequence[int] | int, *, copy: bool | None = None) -> Tensor:
    """Return `x` in another shape, a view where the memory allows; one length may be -1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.reshape(pb.tensor([1.0, 2.0, 3.0, 4.0]), (2, -1))
    tensor([[1., 2.],
            [3., 4.]])
    """
    needs_tensor("reshape", x)
    shape = (shape,) if isinstance(shape, int) else shape
    result: Tensor = reshape_(x, shape=resolve_shape("reshape", x.shape, shape))
    if copy:
        copied: Tensor = TENSORS.clone(result)
        return copied
    if copy is False and result._base is None:
        raise ArgumentError(
            compose(
                "reshape, view",
                f"memory that can be seen in shape {tuple(shape)} without a copy required",
                "another layout",
                ("x", x),
                hint="use reshape without copy=False",
            )
        )
    return result


@face(permute_dims_)
def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """Return a view of `x` with its axes in the order `axes`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.permute_dims(pb.zeros((2, 3)), (1, 0)).shape
    (3, 2)
    """
    needs_tensor("permute_dims", x)
    order = tuple(normalize_axis("permute_dims", a, len(x.shape)) for a in axes)
    if sorted(order) != list(range(len(x.shape))):
        raise ArgumentError(
            f"permute_dims: axes must name each of the {len(x.shape)} axes once, got {tuple(axes)}"
        )
    return permute_dims_(x, axes=order)


@composition(sample((2, 3)), sample((0, 2, 3)))
def matrix_transpose(x: Any, /) -> Tensor:
    """Return a view of `x` with the last two axes exchanged.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matrix_transpose(pb.zeros((4, 2, 3))).shape
    (4, 3, 2)
    """
    needs_tensor("matrix_transpose", x)
    if len(x.shape) < 2:
        raise ShapeError(f"matrix_transpose: needs at least 2 dimensions, got shape {x.shape}")
    return transpose(x, -1, -2)


@composition(sample((2, 3, 4), dim0=0, dim1=-1), sample((), dim0=0, dim1=0))
def transpose(x: Any, dim0: int, dim1: int) -> Tensor:
    """Return a view of `x` with two axes exchanged.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.transpose(pb.zeros(2, 3, 4), 0, -1).shape
    (4, 3, 2)
    """
    needs_tensor("transpose", x)
    ndim = len(x.shape)
    a, b = normalize_axis("transpose", dim0, ndim), normalize_axis("transpose", dim1, ndim)
    order = list(range(ndim))
    if ndim:
        order[a], order[b] = order[b], order[a]
    return permute_dims_(x, axes=tuple(order))


@composition(sample((2, 3), axis=-2), sample((), axis=0), sample((0,), axis=1))
def expand_dims(x: Any, /, axis: int) -> Tensor:
    """Return a view of `x` with an axis of length 1 inserted at `axis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.expand_dims(pb.zeros((3,)), axis=0).shape
    (1, 3)
    """
    needs_tensor("expand_dims", x)
    ndim = len(x.shape) + 1
    place = normalize_axis("expand_dims", axis, ndim)
    shape = x.shape
    return reshape_(x, shape=(*shape[:place], 1, *shape[place:]))


@composition(sample((1, 3, 1), axis=(0, -1)), sample((1, 0), axis=0), sample((1, 1), axis=None))
def squeeze(x: Any, /, axis: int | Sequence[int] | None) -> Tensor:
    """Return a view of `x` without the axes `axis`, which must have length 1.

    None stands for all that have.

    Raises
    ------
    ShapeError
        If an axis is longer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.squeeze(pb.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    needs_tensor("squeeze", x)
    axes = normalize_axes("squeeze", axis, len(x.shape))
    if axis is None:
        axes = tuple(i for i in axes if x.shape[i] == 1)
    for i in axes:
        if x.shape[i] != 1:
            raise ShapeError(f"squeeze: axis {i} must have length 1, got shape {x.shape}")
    shape = tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return reshape_(x, shape=shape)


@face(broadcast_to_)
def broadcast_to(x: Any, /, shape: Sequence[int]) -> Tensor:
    """Return `x` repeated to `shape`, a view.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.broadcast_to(pb.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    needs_tensor("broadcast_to", x)
    return broadcast_to_(x, shape=tuple(shape))


@composition(sample((3, 1), shape=(2, -1, 4)), sample((), shape=(2,)))
def expand(x: Any, shape: Sequence[int]) -> Tensor:
    """Return `x` repeated to `shape`; -1 keeps a length."""
    needs_tensor("expand", x)
    extra = len(shape) - len(x.shape)
    if extra < 0:
        raise ShapeError(
            f"expand: the number of sizes ({len(shape)}) must be at least the number of "
            f"dimensions, got a tensor of shape {x.shape}"
        )
    sizes = []
    for i, n in enumerate(shape):
        if n == -1 and i < extra:
            raise ShapeError(f"expand: -1 is not allowed for a new leading dimension, got {shape}")
        sizes.append(x.shape[i - extra] if n == -1 else int(n))
    if any(n not in (1, size) for n, size in zip(x.shape, sizes[extra:], strict=True)):
        required = f"sizes that repeat only axes of length 1 required for shape {x.shape}"
        raise ShapeError(compose("expand", required, str(tuple(shape)), ("x", x)))
    return broadcast_to_(x, shape=tuple(sizes))


@face(flip_)
def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Return `x` with the order along `axis` reversed, all axes by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flip(pb.tensor([1.0, 2.0]))
    tensor([2., 1.])
    """
    needs_tensor("flip", x)
    return flip_(x, axis=normalize_axes("flip", axis, len(x.shape)))


@composition(
    sample((2, 3, 4), shape=(3, 1)),
    sample((2, 0), shape=(2, 1)),
    sample((), shape=()),
    call=lambda x, *, shape: TENSORS.sum_to_size(x, shape),
)
def sum_to_size(x: Tensor, *shape: Any) -> Tensor:
    """Sum `x` over what broadcasting `shape` to its shape would repeat.

    The reduction that a backward owes an input which forward broadcast.

    Parameters
    ----------
    x : Tensor
    *shape : int, or one tuple of int
        A shape that broadcasts to that of `x`.

    Raises
    ------
    ShapeError
        If it does not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sum_to_size(pb.ones((3, 4)), (4,))
    tensor([3., 3., 3., 3.])
    """
    needs_tensor("sum_to_size", x)
    wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    extra = len(x.shape) - len(wanted)
    if extra < 0 or any(n not in (1, m) for n, m in zip(wanted, x.shape[extra:], strict=True)):
        required = f"a shape that broadcasts to {tuple(x.shape)} required"
        raise ShapeError(f"sum_to_size: {required}, got {wanted}")
    summed: Tensor = sum_to_shape(x, wanted, TENSORS)
    return summed


@composition(sample((2, 3, 4), start_dim=1), sample((), start_dim=0), sample((0, 2), end_dim=1))
def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return `x` with the axes from `start_dim` to `end_dim` made one, a view where possible.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flatten(pb.zeros(2, 3, 4), 1).shape
    (2, 12)
    """
    needs_tensor("flatten", x)
    first = normalize_axis("flatten", start_dim, len(x.shape))
    last = normalize_axis("flatten", end_dim, len(x.shape))
    if not x.shape:
        return reshape(x, (1,))
    if first > last:
        raise ArgumentError(
            f"flatten: start_dim must not come after end_dim, got {start_dim}, {end_dim}"
        )
    size = math.prod(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], size, *x.shape[last + 1 :]))


def squeeze_where_possible(x: Any, dim: Any) -> Tensor:
    """Return `x` without those axes of `dim` that have length 1, as PyTorch does."""
    if dim is None:
        return squeeze(x, None)
    axes = normalize_axes("squeeze", dim, len(x.shape))
    return squeeze(x, tuple(i for i in axes if x.shape[i] == 1))


def tensor_of(op: str, x: Any, name: str = "x") -> Tensor:
    """Return a tensor, or an array as one, or raise naming the operation."""
    needs_tensor(op, x, name)
    found: Tensor = x if isinstance(x, Tensor) else TENSORS.asarray(x)
    return found


@composition(sample((2, 3), dim=1, index=-1), sample((3,), dim=0, index=1))
def select(x: Any, dim: int, index: int) -> Tensor:
    """Return a view of one slice along an axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.select(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, 0)
    tensor([1., 3.])
    """
    x = tensor_of("select", x)
    axis = normalize_axis("select", dim, len(x.shape))
    part: Tensor = x[(*(slice(None),) * axis, int(index))]
    return part


@composition(sample((2, 3), dim=-1, start=1, length=2), sample((3,), dim=0, start=3, length=0))
def narrow(x: Any, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` slices along an axis from `start` on.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.narrow(pb.tensor([1.0, 2.0, 3.0]), 0, 1, 2)
    tensor([2., 3.])
    """
    x = tensor_of("narrow", x)
    axis = normalize_axis("narrow", dim, len(x.shape))
    if not x.shape:
        raise ShapeError("narrow: at least 1 dimension required, got a 0-d tensor")
    start += x.shape[axis] if start < 0 else 0
    if length < 0 or start < 0 or start + length > x.shape[axis]:
        raise ArgumentError(
            f"narrow: slices within axis {axis} of shape {tuple(x.shape)} required, got {length} "
            f"from {start} on"
        )
    part: Tensor = x[(*(slice(None),) * axis, slice(start, start + length))]
    return part


permute, swapaxes, swapdims = permute_dims, transpose, transpose
