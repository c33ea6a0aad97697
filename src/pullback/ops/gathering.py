"""Gathering and scattering: reading, writing and adding by index along an axis, or by a mask.

The functions of the Array API take `axis` and count negative indices from the end; those of
PyTorch take `dim`, and refuse negative indices as PyTorch does. Indices have no gradient. Where an
index names a place several times, its gradients add up.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops import comparison, elementwise, shape
from pullback.ops._declare import (
    Operation,
    both,
    composition,
    face,
    integers,
    mask,
    needs_tensor,
    on,
    operation,
    sample,
)
from pullback.ops._values import (
    array_of,
    axis_for,
    element_index,
    gather_elements,
    index_add_,
    index_fill_,
    index_for,
    index_write,
    needs_whole,
    one_number,
    same_rank,
    scatter_add_,
    scatter_write,
    scattered,
    slice_index,
    slices_for,
    take_slices,
)
from pullback.ops.shape import sum_to_shape

__all__ = [
    "embedding",
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "masked_select",
    "one_hot",
    "scatter",
    "scatter_add",
    "take",
    "take_along_axis",
]


# -- reading ---------------------------------------------------------------------------------------
@face(take_slices)
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Return the slices of `x` at `indices` along `axis`.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of integers
        Of any shape, which takes the place of the axis. Negative ones count from the end.
    axis : int, optional
        None, the default, reads the elements of the flattened tensor.

    Raises
    ------
    TensorIndexError, DTypeError
        If an index is out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> pb.take(x, pb.tensor([2, 0]), axis=0)
    tensor([[5., 6.],
            [1., 2.]])
    """
    needs_tensor("take", x)
    if axis is None:
        x, axis = shape.reshape(x, (-1,)), 0
    axis = axis_for("take", x, axis, "x")
    indices = index_for("take", x, axis, indices, names=("x", "indices"), wraps=True)
    return take_slices(x, indices, axis=axis)


@composition(
    sample((3, 4), (1, 4), axis=0),
    sample((2, 1, 3), (1, 2, 2), axis=-1),
    sample((3,), (0,)),
    domain={"x": both(-2, 2), "indices": integers(-3, 2)},
    constants=("indices",),
)
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """Return the element of `x` that each of `indices` names in its row along `axis`.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of integers
        Of the rank of `x`; the other axes broadcast. Negative ones count from the end.
    axis : int

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> pb.take_along_axis(x, pb.argsort(x, axis=1), axis=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    axis = axis_for("take_along_axis", x, axis, "x")
    names = ("x", "indices")
    indices = index_for("take_along_axis", x, axis, indices, names=names, wraps=True)
    same_rank("take_along_axis", x, indices, names)
    pairs = list(zip(x.shape, indices.shape, strict=True))
    wanted = [m if n == 1 else n for n, m in pairs]
    if any(1 not in pair and pair[0] != pair[1] for pair in pairs[:axis] + pairs[axis + 1 :]):
        required = f"shapes that broadcast but for axis {axis} required"
        came = f"{tuple(x.shape)} and {indices.shape}"
        raise ShapeError(compose("take_along_axis", required, came, ("x", x), ("indices", indices)))
    wanted[axis] = x.shape[axis]
    x = shape.broadcast_to(x, wanted)
    wanted[axis] = indices.shape[axis]
    return gather_elements(x, shape.broadcast_to(indices, wanted), axis=axis)


@face(gather_elements, call=lambda input, index, *, axis: TENSORS.gather(input, axis, index))
def gather(input: Any, dim: int, index: Any) -> Tensor:
    """Return the element of `input` that each number of `index` names in its row along `dim`.

    For three dimensions and ``dim=1``: ``out[i, j, k] = input[i, index[i, j, k], k]``.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of integers
        Of the rank of `input`, and along the other dimensions no longer.

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> scores = pb.tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> pb.gather(scores, 1, pb.tensor([[1], [0]]))
    tensor([[0.9000],
            [0.8000]])
    """
    axis, index = element_index("gather", input, dim, index)
    return gather_elements(input, index, axis=axis)


@composition(
    sample((3, 4), (2,), dim=0),
    sample((2, 3), (0,), dim=-1),
    sample((3,), (), dim=0),
    domain={"input": both(-2, 2), "index": integers(0, 2)},
    constants=("index",),
    call=lambda input, index, *, dim: TENSORS.index_select(input, dim, index),
)
def index_select(input: Any, dim: int, index: Any) -> Tensor:
    """Return the slices of `input` that `index`, of one dimension, names along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_select(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), 1, pb.tensor([1, 1]))
    tensor([[2., 2.],
            [4., 4.]])
    """
    axis, index = slice_index("index_select", input, dim, index)
    return take_slices(input, index, axis=axis)


# -- writing and adding ----------------------------------------------------------------------------
@face(
    scatter_write, call=lambda input, index, src, *, axis: TENSORS.scatter(input, axis, index, src)
)
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None) -> Tensor:
    """Return `input` with `src` written where `index` says, the opposite of `gather`.

    For three dimensions and ``dim=1``: ``out[i, index[i, j, k], k] = src[i, j, k]``.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of integers
        Of the rank of `input`, and along the other dimensions no longer. Where it names a place
        several times, any one of the values is written, and all of them get its gradient.
    src : Tensor or number
        A tensor of at least the lengths of `index`; what is beyond them is not used.
    value : number, optional
        The same as a number for `src`.

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter(pb.zeros((2, 3)), 1, pb.tensor([[2], [0]]), 1.0)
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    axis, index, src = scattered("scatter", input, dim, index, src if value is None else value)
    return scatter_write(input, index, src, axis=axis)


@face(
    scatter_add_,
    call=lambda input, index, src, *, axis: TENSORS.scatter_add(input, axis, index, src),
)
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Return `input` with `src` added where `index` says; see `scatter`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.scatter_add(pb.zeros(3), 0, pb.tensor([0, 2, 0]), pb.tensor([1.0, 2.0, 3.0]))
    tensor([4., 0., 2.])
    """
    axis, index, src = scattered("scatter_add", input, dim, index, src)
    return scatter_add_(input, index, src, axis=axis)


@face(
    index_add_,
    call=lambda input, index, source, *, axis: TENSORS.index_add(input, axis, index, source),
)
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input` with ``alpha * source`` added to the slices that `index` names along `dim`.

    Parameters
    ----------
    input : Tensor
    dim : int
    index : Tensor of integers
        Of one dimension; a slice that it names several times is added to as often.
    source : Tensor
        Of the shape of `input`, with the length of `index` along `dim`.
    alpha : number, optional

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If the shapes do not fit; if an index is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_add(pb.zeros(3), 0, pb.tensor([0, 2, 0]), pb.tensor([1.0, 2.0, 3.0]), alpha=10)
    tensor([40.,  0., 20.])
    """
    axis, slices = slice_index("index_add", input, dim, index)
    source = slices_for("index_add", input, axis, slices, source)
    return index_add_(input, slices, source if alpha == 1 else source * alpha, axis=axis)


@face(
    index_write, call=lambda input, index, src, *, axis: TENSORS.index_copy(input, axis, index, src)
)
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Tensor:
    """Return `input` with `source` written to the slices that `index` names along `dim`.

    The arguments are those of `index_add`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_copy(pb.zeros(3), 0, pb.tensor([2, 0]), pb.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """
    axis, slices = slice_index("index_copy", input, dim, index)
    source = slices_for("index_copy", input, axis, slices, source)
    return index_write(input, slices, source, axis=axis)


@face(
    index_fill_,
    call=lambda input, index, value, *, axis: TENSORS.index_fill(input, axis, index, value),
)
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Tensor:
    """Return `input` with one number written to the slices that `index` names along `dim`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.index_fill(pb.zeros(3), 0, pb.tensor([0, 2]), 7.0)
    tensor([7., 0., 7.])
    """
    axis, index = slice_index("index_fill", input, dim, index)
    return index_fill_(input, index, one_number("index_fill", value), axis=axis)


# -- masks -----------------------------------------------------------------------------------------
def _select(xp: Any, x: Any, mask: Any) -> Any:
    return library_of(x).getitem(x, mask)


def _put(xp: Any, g: Any, mask: Any) -> Any:
    library = library_of(g)
    device = library.native_device(library.device(g))
    zeros = library.zeros(mask.shape, library.dtype(g), device)
    return library.assign(zeros, mask, g)


masked_put: Operation = operation(
    "masked_put",
    _put,
    rules={
        "g": lambda g, mask, g_shape, xp: sum_to_shape(on(xp, select_)(g, mask), g_shape, xp),
        "mask": None,
    },
    holomorphic=False,
    domain={"g": both(-2, 2), "mask": mask()},
    samples=(sample((1,), (3, 4)), sample((), (2, 0))),
    doc="Return zeros with `g` written where mask holds.",
)
select_: Operation = operation(
    "masked_select",
    _select,
    rules={"x": lambda g, mask, xp: on(xp, masked_put)(g, mask), "mask": None},
    holomorphic=False,
    domain={"x": both(-2, 2), "mask": mask()},
    samples=(sample((3, 4), (3, 4)), sample((), ()), sample((2, 0), (2, 0))),
)


@face(select_)
def masked_select(input: Any, mask: Any) -> Tensor:
    """Return the elements of `input` where `mask` holds, in one dimension; the two broadcast.

    Raises
    ------
    DTypeError, ShapeError
        If the mask is not of bools; if the two do not broadcast.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, -2.0], [-3.0, 4.0]])
    >>> pb.masked_select(x, x > 0)
    tensor([1., 4.])
    """
    needs_tensor("masked_select", input, "input")
    elementwise.needs_mask("masked_select", "mask", mask)
    if tuple(input.shape) != tuple(mask.shape):
        common = _common_shape("masked_select", ("input", input), ("mask", mask))
        input, mask = shape.broadcast_to(input, common), shape.broadcast_to(mask, common)
    return select_(input, mask)


def _common_shape(op: str, *named: tuple[str, Any]) -> tuple[int, ...]:
    """Return the shape that two tensors broadcast to."""
    ndim = max(len(x.shape) for _, x in named)
    columns = list(
        zip(*((1,) * (ndim - len(x.shape)) + tuple(x.shape) for _, x in named), strict=True)
    )
    if any(len({*column} - {1}) > 1 for column in columns):
        came = " and ".join(str(tuple(x.shape)) for _, x in named)
        raise ShapeError(compose(op, "shapes that broadcast required", came, *named))
    return tuple(next((n for n in column if n != 1), 1) for column in columns)


# -- classes ---------------------------------------------------------------------------------------
@composition(
    sample((2, 3), (3, 2)),
    sample((), (3, 4)),
    sample((0,), (3, 2)),
    domain={"input": integers(0, 2), "weight": both(-2, 2)},
    constants=("input",),
)
def embedding(input: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """Return the rows of `weight` that `input` names.

    Parameters
    ----------
    input : Tensor of integers
        Of any shape.
    weight : Tensor, shape (n, features)
    padding_idx : int, optional
        A row that gets no gradient; a negative one counts from the end.

    Returns
    -------
    Tensor, of the shape of `input` with a last axis of the features

    Raises
    ------
    ShapeError, TensorIndexError, DTypeError
        If `weight` is no matrix; if a number is negative or out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> table = pb.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    >>> pb.embedding(pb.tensor([2, 1]), table)
    tensor([[3., 4.],
            [1., 2.]])
    """
    needs_tensor("embedding", weight, "weight")
    if len(weight.shape) != 2:
        came = f"{len(weight.shape)} dimensions"
        raise ShapeError(compose("embedding", "a matrix required", came, ("weight", weight)))
    input = index_for("embedding", weight, 0, input, names=("weight", "input"))
    rows = take_slices(weight, input, axis=0)
    if padding_idx is None:
        return rows
    n = weight.shape[0]
    if not -n <= padding_idx < n:
        required = f"padding_idx within axis 0 of length {n} required"
        raise ArgumentError(compose("embedding", required, str(padding_idx), ("weight", weight)))
    padding = shape.expand_dims(comparison.equal(input, padding_idx % n), -1)
    return elementwise.where(padding, rows.detach(), rows)


@composition(
    sample((3,), num_classes=4),
    sample((), num_classes=3),
    sample((2, 0), num_classes=1),
    domain=integers(0, 2),
    differentiable=False,
)
def one_hot(tensor: Any, num_classes: int = -1) -> Tensor:
    """Return int64 zeros with a last axis of `num_classes`, and 1 at the place of each number.

    Parameters
    ----------
    tensor : Tensor of integers
        Not negative, and less than `num_classes`.
    num_classes : int, optional
        -1, the default, takes one more than the largest number.

    Raises
    ------
    TensorIndexError, DTypeError
        If a number is out of range, or is no integer.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.one_hot(pb.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    needs_whole("one_hot", "tensor", tensor)
    array = array_of(tensor)
    library = library_of(array)
    if num_classes < -1:
        raise ArgumentError(compose("one_hot", "num_classes from -1 on required", str(num_classes)))
    if num_classes == -1:
        if 0 in array.shape:
            hint = "give num_classes"
            raise ArgumentError(
                compose("one_hot", "numbers required", "none", ("tensor", tensor), hint=hint)
            )
        num_classes = int(library.xp.max(array)) + 1
    classes = box(library.xp.arange(max(num_classes, 0), device=array.device))
    index_for("one_hot", classes, 0, tensor, names=("classes", "tensor"))
    hits = comparison.equal(shape.expand_dims(tensor, -1), classes)
    return hits.to(DTYPES["int64"])
