"""Joining tensors, and taking one apart into several.

The parts that split, chunk and unstack return are views; a part that got no gradient counts as
zeros.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops._axes import either, normalize_axis
from pullback.ops._declare import composition, face, needs_tensor, operation, sample
from pullback.ops.shape import reshape, tensor_of

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "cat",
    "chunk",
    "column_stack",
    "concat",
    "dstack",
    "hstack",
    "split",
    "stack",
    "tensor_split",
    "unbind",
    "unstack",
    "vstack",
]


# -- several arrays --------------------------------------------------------------------------------
def _check_one_shape(xs: Sequence[Any]) -> None:
    if len({tuple(x.shape) for x in xs}) != 1:
        raise ShapeError(
            compose(
                "stack",
                "tensors of one shape required",
                "several",
                *((f"arrays[{i}]", x) for i, x in enumerate(xs)),
                hint="use concat to join tensors along an axis that they have",
            )
        )


def _concat(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    axis = normalize_axis("concat", axis, len(arrays[0].shape))
    shapes = [tuple(x.shape) for x in arrays]
    if not shapes[0] or len({(len(s), s[:axis], s[axis + 1 :]) for s in shapes}) != 1:
        raise ShapeError(
            compose(
                "concat",
                f"tensors of one shape except along axis {axis} required",
                "others",
                *((f"arrays[{i}]", x) for i, x in enumerate(arrays)),
                hint="use stack to join tensors along a new axis",
            )
        )
    return xp.concat(arrays, axis=axis)


def _concat_rule(g: Any, shapes: Any, axis: int, xp: Any) -> list[Any]:
    axis %= len(shapes[0])
    parts = []
    start = 0
    for shape in shapes:
        index = (slice(None),) * axis + (slice(start, start + shape[axis]),)
        parts.append(g[(*index, ...)])
        start += shape[axis]
    return parts


_SEVERAL = (
    sample((3, 4), (2, 4), (0, 4), axis=0),
    sample((3, 4), (3, 1), axis=-1),
    sample((2,), axis=0),
)
concat_ = operation("cat", _concat, joint=_concat_rule, samples=_SEVERAL, doc="Join along an axis.")


def _stack(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    _check_one_shape(arrays)
    return xp.stack(arrays, axis=normalize_axis("stack", axis, len(arrays[0].shape) + 1))


def _stack_rule(g: Any, shapes: Any, axis: int, xp: Any) -> list[Any]:
    lead = (slice(None),) * (axis % (len(shapes[0]) + 1))
    return [g[(*lead, i, ...)] for i in range(len(shapes))]


stack_ = operation(
    "stack",
    _stack,
    joint=_stack_rule,
    samples=(
        sample((3, 4), (3, 4), axis=0),
        sample((3, 4), (3, 4), axis=-1),
        sample((), (), (), axis=0),
    ),
    doc="Join along a new axis.",
)


# -- several results -------------------------------------------------------------------------------
def _split(xp: Any, x: Any, *, sizes: tuple[int, ...], axis: int = 0) -> Any:
    lead = (slice(None),) * axis
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [x[(*lead, slice(s, s + n), ...)] for s, n in zip(starts, sizes, strict=True)]


def _zeros_for(grads: Sequence[Any], shapes: Sequence[tuple[int, ...]], xp: Any) -> list[Any]:
    """Return the gradients of several results with zeros for those that got none."""
    like = next(g for g in grads if g is not None)
    return [
        xp.zeros(shape, dtype=like.dtype, device=getattr(like, "device", None)) if g is None else g
        for g, shape in zip(grads, shapes, strict=True)
    ]


def _split_rule(g: Any, x_shape: Any, sizes: Any, axis: int, xp: Any) -> Any:
    shapes = [(*x_shape[:axis], n, *x_shape[axis + 1 :]) for n in sizes]
    return xp.concat(_zeros_for(g, shapes, xp), axis=axis)


split_: Any = operation(
    "split",
    _split,
    rules={"x": _split_rule},
    view=True,
    multi=True,
    samples=(sample((5, 4), sizes=(2, 3), axis=0), sample((3, 4), sizes=(1, 0, 3), axis=1)),
    doc="Return views of consecutive parts along an axis.",
)
unbind_: Any = operation(
    "unbind",
    lambda xp, x, *, axis=0: [
        library_of(x).getitem(x, ((slice(None),) * axis) + (i,)) for i in range(x.shape[axis])
    ],
    rules={
        "x": lambda g, x_shape, axis, xp: xp.stack(
            _zeros_for(g, [x_shape[:axis] + x_shape[axis + 1 :]] * x_shape[axis], xp), axis=axis
        )
    },
    view=True,
    multi=True,
    samples=(sample((3, 4), axis=0), sample((3, 4), axis=1), sample((2,), axis=0)),
    doc="Return views of the slices along an axis.",
)


# -- public faces ----------------------------------------------------------------------------------
@face(concat_)
def cat(tensors: Sequence[Any], dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Join tensors along an axis they have, the first by default: PyTorch's name of `concat`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cat([pb.zeros(2, 1), pb.zeros(2, 3)], dim=1).shape
    (2, 4)
    """
    along = either("cat", dim, axis)
    return concat(tensors, axis=0 if along is None else along)


@face(concat_, lambda *arrays, axis: TENSORS.concat(arrays, axis=axis))
def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Tensor:
    """Join tensors along an axis they have; with None, as vectors.

    Raises
    ------
    ShapeError
        If their shapes differ elsewhere than along the axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.concat([pb.tensor([1.0]), pb.tensor([2.0, 3.0])])
    tensor([1., 2., 3.])
    """
    arrays = _listed("concat", arrays)
    if axis is None:
        return concat_(*[reshape(a, (-1,)) for a in arrays], axis=0)
    return concat_(*arrays, axis=axis)


@face(stack_, lambda *arrays, axis: TENSORS.stack(arrays, axis=axis))
def stack(arrays: Sequence[Any], /, *, axis: int = 0, dim: int | None = None) -> Tensor:
    """Join tensors of one shape along a new axis; `dim` is PyTorch's name for `axis`.

    Raises
    ------
    ShapeError
        If their shapes differ.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.stack([pb.tensor(1.0), pb.tensor(2.0)])
    tensor([1., 2.])
    """
    return stack_(*_listed("stack", arrays), axis=axis if dim is None else dim)


@composition(sample((2,), (3,)), sample((), ()), call=lambda x, y: TENSORS.hstack([x, y]))
def hstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors side by side: along axis 1, vectors along their only axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hstack([pb.tensor([1.0]), pb.tensor([2.0, 3.0])])
    tensor([1., 2., 3.])
    """
    parts = [atleast_1d(x) for x in _listed("hstack", tensors)]
    return concat(parts, axis=0 if len(parts[0].shape) == 1 else 1)


@composition(sample((2,), (1, 2)), sample((), ()), call=lambda x, y: TENSORS.vstack([x, y]))
def vstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors one below the other: along axis 0, vectors as rows.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vstack([pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return concat([atleast_2d(x) for x in _listed("vstack", tensors)], axis=0)


@composition(sample((2,), (1, 2, 3)), call=lambda x, y: TENSORS.dstack([x, y]))
def dstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors in depth, along axis 2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dstack([pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])]).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(x) for x in _listed("dstack", tensors)], axis=2)


@composition(sample((2,), (2, 3)), sample((), ()), call=lambda x, y: TENSORS.column_stack([x, y]))
def column_stack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors side by side, vectors as columns.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.column_stack([pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])])
    tensor([[1., 3.],
            [2., 4.]])
    """
    listed = [tensor_of("column_stack", x) for x in _listed("column_stack", tensors)]
    columns = [x if len(x.shape) > 1 else reshape(x, (-1, 1)) for x in listed]
    return concat(columns, axis=1)


def _listed(op: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, Tensor) or not isinstance(arrays, (list, tuple)):
        raise ArgumentTypeError(
            f"{op}: needs a list or tuple of tensors, got {type(arrays).__name__}"
        )
    if not arrays:
        raise ArgumentError(f"{op}: needs at least one tensor, got none")
    return list(arrays)


@face(unbind_)
def unbind(x: Any, dim: int | None = None, *, axis: int | None = None) -> tuple[Tensor, ...]:
    """Return views of the slices of `x` along an axis, the first by default: `unstack`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unbind(pb.tensor([1.0, 2.0]))
    (tensor(1.), tensor(2.))
    """
    along = either("unbind", dim, axis)
    return unstack(x, axis=0 if along is None else along)


@face(unbind_)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the slices of `x` along an axis.

    Raises
    ------
    ShapeError
        If `x` has 0 dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unstack(pb.tensor([1.0, 2.0]))
    (tensor(1.), tensor(2.))
    """
    needs_tensor("unstack", x)
    if not x.shape:
        raise ShapeError("unstack: needs at least 1 dimension, got a 0-d tensor")
    return tuple(unbind_(x, axis=normalize_axis("unstack", axis, len(x.shape))))


@face(split_, lambda x, *, sizes, axis: TENSORS.split(x, sizes, dim=axis))
def split(x: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of `x` along an axis.

    Parameters
    ----------
    x : Tensor
    split_size_or_sections : int or sequence of int
        The length of each part, the last may be shorter; or all the lengths.
    dim : int
        The axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.split(pb.tensor([1.0, 2.0, 3.0]), 2)
    (tensor([1., 2.]), tensor([3.]))
    """
    needs_tensor("split", x)
    if not x.shape:
        raise ShapeError("split: needs at least 1 dimension, got a 0-d tensor")
    axis = normalize_axis("split", dim, len(x.shape))
    length = x.shape[axis]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 1:
            raise ArgumentError(f"split: a part must have a positive length, got {size}")
        sizes = tuple(min(size, length - start) for start in range(0, length, size)) or (0,)
    else:
        sizes = tuple(split_size_or_sections)
        if sum(sizes) != length or any(n < 0 for n in sizes):
            raise ShapeError(
                f"split: lengths that sum to {length}, the length of axis {axis} of shape "
                f"{tuple(x.shape)}, required, got {sizes}"
            )
    return tuple(split_(x, sizes=sizes, axis=axis))


@composition(sample((5, 2), chunks=2, dim=0), sample((2, 0), chunks=2, dim=-1), multi=True)
def chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` views of consecutive parts of `x` along an axis, of equal length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.chunk(pb.tensor([1.0, 2.0, 3.0]), 2)
    (tensor([1., 2.]), tensor([3.]))
    """
    needs_tensor("chunk", x)
    if chunks < 1:
        raise ArgumentError(f"chunk: chunks must be at least 1, got {chunks}")
    length = x.shape[normalize_axis("chunk", dim, len(x.shape))] if x.shape else 0
    return split(x, max(1, -(-length // chunks)), dim)


@composition(
    sample((5, 2), indices_or_sections=3),
    sample((2, 4), indices_or_sections=(1, 1, -1), dim=-1),
    multi=True,
)
def tensor_split(x: Any, indices_or_sections: int | Sequence[int], dim: int = 0) -> Any:
    """Return views of consecutive parts of `x` along an axis.

    Parameters
    ----------
    x : Tensor
    indices_or_sections : int or sequence of int
        How many parts, the first of them longer by one where they cannot be equal; or where to
        cut, as slices count.
    dim : int
        The axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensor_split(pb.tensor([1.0, 2.0, 3.0]), 2)
    (tensor([1., 2.]), tensor([3.]))
    """
    x = tensor_of("tensor_split", x)
    if not x.shape:
        raise ShapeError("tensor_split: needs at least 1 dimension, got a 0-d tensor")
    axis = normalize_axis("tensor_split", dim, len(x.shape))
    length = x.shape[axis]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if not isinstance(indices_or_sections, int):
        cuts = [0, *indices_or_sections, length]
    elif indices_or_sections < 1:
        raise ArgumentError(f"tensor_split: needs at least 1 part, got {indices_or_sections}")
    else:
        least, more = divmod(length, indices_or_sections)
        cuts = [i * least + min(i, more) for i in range(indices_or_sections + 1)]
    lead = (slice(None),) * axis
    return tuple(x[(*lead, slice(*ends))] for ends in itertools.pairwise(cuts))


# -- at least so many axes -------------------------------------------------------------------------
@composition(sample(()), sample((0, 2)))
def atleast_1d(*tensors: Any) -> Any:
    """Return `x` with at least 1 axis, a view; of several tensors, a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.atleast_1d(pb.tensor(1.0))
    tensor([1.])
    """
    return _each("atleast_1d", tensors, lambda shape: shape or (1,))


@composition(sample(()), sample((3,)), sample((1, 2)))
def atleast_2d(*tensors: Any) -> Any:
    """Return `x` with at least 2 axes, new ones in front, a view; of several tensors, a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.atleast_2d(pb.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _each("atleast_2d", tensors, lambda shape: (1,) * (2 - len(shape)) + shape)


@composition(sample(()), sample((3,)), sample((1, 2)))
def atleast_3d(*tensors: Any) -> Any:
    """Return `x` with at least 3 axes, a view; of several tensors, a tuple.

    The third axis is new for vectors and matrices, which lie in the plane of the first two.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.atleast_3d(pb.tensor([1.0, 2.0])).shape
    (1, 2, 1)
    """

    def wider(shape: tuple[int, ...]) -> tuple[int, ...]:
        plane = (1,) * (2 - len(shape)) + shape
        return (*plane, 1) if len(plane) == 2 else shape

    return _each("atleast_3d", tensors, wider)


def _each(op: str, tensors: Sequence[Any], wider: Callable[[tuple[int, ...]], Any]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(_each(op, (x,), wider) for x in tensors[0])
    found = []
    for x in tensors:
        tensor = tensor_of(op, x)
        shape = wider(tuple(tensor.shape))
        found.append(tensor if shape == tuple(tensor.shape) else reshape(tensor, shape))
    return found[0] if len(found) == 1 else tuple(found)
