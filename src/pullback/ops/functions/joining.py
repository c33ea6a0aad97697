"""Joining tensors, and splitting one into several.

The parts that split, chunk and unstack return are views; a part that got no gradient counts as
zeros.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops.arguments import needs_rank, tensor_of
from pullback.ops.axes import normalize_axis, to_builtin
from pullback.ops.declare import composition, needs_tensor, refuse_positions, wrapper_of
from pullback.ops.functions.manipulation import reshape
from pullback.ops.primitives.joining import cat_p, split_p, stack_p, unbind_p
from pullback.ops.samples import sample
from pullback.ops.torch_words import torch_words

_SEQUENCES = frozenset((tuple, list))


# -- joining ---------------------------------------------------------------------------------------
@wrapper_of(cat_p)
@torch_words()
def cat(tensors: Sequence[Any], axis: int = 0) -> Tensor:
    """Join tensors along an axis they have, the first by default: PyTorch's name of `concat`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cat([pb.zeros(2, 1), pb.zeros(2, 3)], dim=1).shape
    (2, 4)
    """
    if tensors.__class__ not in _SEQUENCES or not tensors:
        tensors = _listed("concat", tensors)
    return cat_p.public(*tensors, axis=axis)


concatenate = cat


@wrapper_of(
    cat_p, lambda f, *arrays, axis: f(arrays, axis=axis), numpy="concatenate: *arrays axis dtype"
)
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
    if arrays.__class__ not in _SEQUENCES or not arrays:
        arrays = _listed("concat", arrays)
    if axis is None:
        return cat_p.public(*[reshape(a, (-1,)) for a in arrays], axis=0)
    return cat_p.public(*arrays, axis=axis)


@wrapper_of(
    stack_p, lambda f, *arrays, axis: f(arrays, axis=axis), numpy="stack: *arrays axis dtype"
)
def stack(arrays: Sequence[Any], /, *_more: Any, axis: int = 0, dim: int | None = None) -> Tensor:
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
    if _more:
        refuse_positions(stack, _more)
    if arrays.__class__ not in _SEQUENCES or not arrays:
        arrays = _listed("stack", arrays)
    return stack_p.public(*arrays, axis=axis if dim is None else dim)


@composition(
    sample((2,), (3,)),
    sample((), ()),
    call=lambda f, x, y: f([x, y]),
    reference=(lambda np, *arrays: np.hstack(arrays)),
    numpy="hstack: *tup=tensors dtype",
)
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


@composition(
    sample((2,), (1, 2)),
    sample((), ()),
    call=lambda f, x, y: f([x, y]),
    reference=(lambda np, *arrays: np.vstack(arrays)),
    numpy="vstack: *tup=tensors dtype",
)
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


row_stack = vstack


@composition(
    sample((2,), (1, 2, 3)),
    call=lambda f, x, y: f([x, y]),
    reference=(lambda np, *arrays: np.dstack(arrays)),
    scalars=False,
    numpy="dstack: *tup=tensors",
)
def dstack(tensors: Sequence[Any]) -> Tensor:
    """Join tensors in depth, along axis 2.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dstack([pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0])]).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(x) for x in _listed("dstack", tensors)], axis=2)


@composition(
    sample((2,), (2, 3)),
    sample((), ()),
    call=lambda f, x, y: f([x, y]),
    reference=(lambda np, *arrays: np.column_stack(arrays)),
    numpy="column_stack: *tup=tensors",
)
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


# -- splitting -------------------------------------------------------------------------------------
@wrapper_of(unbind_p, methods="unbind")
@torch_words()
def unbind(x: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the slices of `x` along an axis, the first by default: `unstack`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unbind(pb.tensor([1.0, 2.0]))
    (tensor(1.), tensor(2.))
    """
    return unstack(x, axis=axis)


@wrapper_of(unbind_p, numpy="unstack: x axis")
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
    return tuple(unbind_p.public(x, axis=normalize_axis("unstack", axis, len(x.shape))))


@wrapper_of(split_p, lambda f, x, *, sizes, axis: f(x, sizes, dim=axis), methods="split")
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
    size = to_builtin(split_size_or_sections)
    if isinstance(size, int):
        if size < (1 if length else 0):
            raise ArgumentError(f"split: a part must have a positive length, got {size}")
        sizes = tuple(min(size, length - i) for i in range(0, length, size or 1)) or (0,)
    else:
        sizes = tuple(map(to_builtin, size))
        if sum(sizes) != length or any(n < 0 for n in sizes):
            raise ShapeError(
                f"split: lengths that sum to {length}, the length of axis {axis} of shape "
                f"{tuple(x.shape)}, required, got {sizes}"
            )
    return tuple(split_p.public(x, sizes=sizes, axis=axis))


@composition(
    sample((5, 2), chunks=2, dim=0),
    sample((2, 0), chunks=2, dim=-1),
    view=True,
    multi=True,
    reference=(lambda np, x, chunks, dim: np.array_split(x, chunks, dim)),
    scalars=False,
    methods="chunk",
)
def chunk(x: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most `chunks` views of consecutive parts of `x` along an axis, of equal length.

    Of an empty axis there are as many as asked for, all empty.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.chunk(pb.tensor([1.0, 2.0, 3.0]), 2)
    (tensor([1., 2.]), tensor([3.]))
    """
    needs_tensor("chunk", x)
    chunks = to_builtin(chunks)
    if chunks < 1:
        raise ArgumentError(f"chunk: chunks must be at least 1, got {chunks}")
    length = x.shape[normalize_axis("chunk", dim, len(x.shape))] if x.shape else 0
    return split(x, -(-length // chunks) if length else (0,) * chunks, dim)


@composition(
    sample((5, 2), indices_or_sections=3),
    sample((2, 4), indices_or_sections=(1, 1, -1), dim=-1),
    view=True,
    multi=True,
    reference=(
        lambda np, x, indices_or_sections, dim=0: np.array_split(x, indices_or_sections, dim)
    ),
    scalars=False,
    methods="tensor_split",
    numpy="array_split: ary=x indices_or_sections axis=dim -> list",
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
    indices_or_sections = to_builtin(indices_or_sections)
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
@composition(sample(()), sample((0, 2)), view=True, numpy="atleast_1d: *arys=tensors")
def atleast_1d(*tensors: Any) -> Any:
    """Return `x` with at least 1 axis, a view; of several tensors, a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.atleast_1d(pb.tensor(1.0))
    tensor([1.])
    """
    return _each("atleast_1d", tensors, lambda shape: shape or (1,))


@composition(sample(()), sample((3,)), sample((1, 2)), view=True, numpy="atleast_2d: *arys=tensors")
def atleast_2d(*tensors: Any) -> Any:
    """Return `x` with at least 2 axes, new ones in front, a view; of several tensors, a tuple.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.atleast_2d(pb.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _each("atleast_2d", tensors, lambda shape: (1,) * (2 - len(shape)) + shape)


@composition(sample(()), sample((3,)), sample((1, 2)), view=True, numpy="atleast_3d: *arys=tensors")
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
    result = []
    for x in tensors:
        tensor = tensor_of(op, x)
        shape = wider(tuple(tensor.shape))
        result.append(tensor if shape == tuple(tensor.shape) else reshape(tensor, shape))
    return result[0] if len(result) == 1 else tuple(result)


# -- splitting along the first axes ----------------------------------------------------------------
@composition(
    sample((4,), indices_or_sections=2),
    sample((2, 3), indices_or_sections=(1,)),
    view=True,
    multi=True,
    scalars=False,
    methods="hsplit",
    numpy="hsplit: ary=x indices_or_sections -> list",
)
def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 1, of a vector along its only one; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.hsplit(pb.tensor([1.0, 2.0]), 2)
    (tensor([1.]), tensor([2.]))
    """
    needs_rank("hsplit", x, 1)
    return equal_parts("hsplit", x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


@composition(
    sample((4, 1), indices_or_sections=2),
    view=True,
    multi=True,
    scalars=False,
    methods="vsplit",
    numpy="vsplit: ary=x indices_or_sections -> list",
)
def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 0; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vsplit(pb.tensor([[1.0], [2.0]]), 2)
    (tensor([[1.]]), tensor([[2.]]))
    """
    needs_rank("vsplit", x, 2)
    return equal_parts("vsplit", x, indices_or_sections, 0)


@composition(
    sample((1, 2, 3), indices_or_sections=(1, 2)),
    view=True,
    multi=True,
    scalars=False,
    methods="dsplit",
    numpy="dsplit: ary=x indices_or_sections -> list",
)
def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> Any:
    """Return the parts of `x` along axis 2; see `tensor_split`.

    Examples
    --------
    >>> import pullback as pb
    >>> [part.shape for part in pb.dsplit(pb.zeros(1, 1, 4), 2)]
    [(1, 1, 2), (1, 1, 2)]
    """
    needs_rank("dsplit", x, 3)
    return equal_parts("dsplit", x, indices_or_sections, 2)


def equal_parts(op: str, x: Any, parts: Any, axis: int) -> Any:
    """Return the parts between places, or a number of parts of one length."""
    parts = to_builtin(parts)
    if isinstance(parts, int) and (parts < 1 or x.shape[axis] % parts):
        required = f"a number of parts that divides the length {x.shape[axis]} required"
        raise ArgumentError(compose(op, required, str(parts), ("x", x)))
    return tensor_split(x, parts, axis)
