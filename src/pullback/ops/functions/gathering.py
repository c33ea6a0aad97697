"""Reading by index along an axis, or by a mask.

The functions of the Array API take `axis` and count negative indices from the end; those of
PyTorch take `dim`, and refuse negative indices as PyTorch does. Indices have no gradient. Where an
index names a place several times, its gradients add up.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import DTypeError, ShapeError, TensorIndexError, compose
from pullback.ops.arguments import all_values, array_of, tensor_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import (
    composition,
    needs_one_library,
    needs_tensor,
    wrapper_of,
)
from pullback.ops.functions import manipulation, pointwise
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.manipulation import reshape
from pullback.ops.functions.pointwise import where
from pullback.ops.primitives.gathering import gather_p, take_p
from pullback.ops.primitives.indexing import masked_select_p
from pullback.ops.samples import both, integers, sample

Names = tuple[str, str]
_NAMES = ("input", "index")


# -- checking indices ------------------------------------------------------------------------------
def axis_for(op: str, x: Any, dim: Any, name: str = "input") -> int:
    """Return the axis that `dim` names, or raise where `x` has none."""
    needs_tensor(op, x, name)
    axis = normalize_axis(op, dim, len(x.shape))
    if not x.shape:
        required = f"at least 1 dimension for axis {axis} required"
        raise ShapeError(compose(op, required, "a 0-d tensor", (name, x), hint="reshape it first"))
    return axis


def index_for(
    op: str, x: Any, axis: int, index: Any, *, names: Names = _NAMES, wraps: bool = False
) -> Tensor:
    """Return an index as a tensor of whole numbers within `axis` of `x`.

    Parameters
    ----------
    op : str
        The public function.
    x : Tensor or array
    axis : int
        Counted from the front.
    index : Tensor or array
    names : tuple of str
        What the function calls `x` and `index`.
    wraps : bool
        Whether negative numbers count from the end; they are refused else.

    Raises
    ------
    ArgumentTypeError, DTypeError, DeviceError, TensorIndexError
        If the index is no tensor, not of integers, of another array library, or out of range.
    """
    needs_whole(op, names[1], index)
    needs_one_library(op, *zip(names, (x, index), strict=True))
    array = array_of(index)
    library = library_of(array)
    tensor = index if isinstance(index, Tensor) else box(library.snapshot(array))
    if 0 in array.shape:
        return tensor
    n = x.shape[axis] if x.shape else 1
    values = all_values(array)
    xp = library_of(values).xp
    low, high = int(xp.min(values)), int(xp.max(values))
    if high >= n or low < (-n if wraps else 0):
        required = f"indices within axis {axis} of length {n} required"
        wrong = high if high >= n else low
        hint = None if wraps or wrong >= 0 else "give indices from 0 on"
        named = zip(names, (x, index), strict=True)
        raise TensorIndexError(compose(op, required, str(wrong), *named, hint=hint))
    if low < 0:
        tensor = astype(tensor, DTYPES["int64"])
        tensor = where(tensor < 0, tensor + n, tensor)
    return tensor


def needs_whole(op: str, name: str, index: Any) -> None:
    """Raise where an index is not made of integers."""
    needs_tensor(op, index, name)
    array = array_of(index)
    dtype = library_of(array).dtype(array)
    if dtype.kind not in "iu":
        required = f"integers required as '{name}'"
        raise DTypeError(compose(op, required, dtype.name, (name, index)))


def same_rank(op: str, x: Any, index: Any, names: Names) -> None:
    """Raise where two have not as many dimensions."""
    if len(index.shape) != len(x.shape):
        required = f"as many dimensions of {names[1]} as {names[0]} has, {len(x.shape)}, required"
        named = zip(names, (x, index), strict=True)
        raise ShapeError(compose(op, required, str(len(index.shape)), *named))


def element_index(op: str, x: Any, dim: Any, index: Any) -> tuple[int, Tensor]:
    """Return the axis and the index of an operation that names elements."""
    needs_tensor(op, x, "input")
    axis = normalize_axis(op, dim, len(x.shape))
    index = index_for(op, x, axis, index)
    same_rank(op, x, index, _NAMES)
    if any(m > n for i, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if i != axis):
        required = f"an index no longer than {tuple(x.shape)}, but for axis {axis}, required"
        named = zip(_NAMES, (x, index), strict=True)
        raise ShapeError(compose(op, required, str(index.shape), *named))
    return axis, index


def scattered(op: str, x: Any, dim: Any, index: Any, src: Any) -> tuple[int, Tensor, Any]:
    """Return the axis, the index and what is written there, no longer than the index."""
    axis, index = element_index(op, x, dim, index)
    if isinstance(src, (int, float, complex)):
        return axis, index, src
    needs_tensor(op, src, "src")
    if not src.shape:
        return axis, index, src
    same_rank(op, index, src, ("index", "src"))
    if tuple(src.shape) == index.shape:
        return axis, index, src
    if any(m > n for n, m in zip(src.shape, index.shape, strict=True)):
        required = f"a src at least as long as the index, {index.shape}, required"
        came = str(tuple(src.shape))
        raise ShapeError(compose(op, required, came, ("input", x), ("index", index), ("src", src)))
    return axis, index, src[tuple(slice(m) for m in index.shape)]


def slice_index(op: str, x: Any, dim: Any, index: Any) -> tuple[int, Tensor]:
    """Return the axis and the index, of one dimension, of an operation that names slices."""
    needs_tensor(op, x, "input")
    axis = normalize_axis(op, dim, len(x.shape))
    index = index_for(op, x, axis, index)
    named = zip(_NAMES, (x, index), strict=True)
    if len(index.shape) > 1:
        required = "an index of one dimension required"
        raise ShapeError(compose(op, required, str(len(index.shape)), *named))
    index = manipulation.reshape(index, (-1,)) if not index.shape else index
    if not x.shape and index.shape != (1,):
        required = "an index of one element for a 0-d tensor required"
        raise ShapeError(compose(op, required, str(index.shape[0]), *named))
    return axis, index


def slices_for(op: str, x: Any, axis: int, index: Tensor, source: Any) -> Any:
    """Return what is written to slices, of the shape it must have."""
    needs_tensor(op, source, "source")
    wanted = (*x.shape[:axis], *index.shape[: len(x.shape)], *x.shape[axis + 1 :])
    if tuple(source.shape) != wanted:
        named = (("input", x), ("index", index), ("source", source))
        required = f"a source of shape {wanted} required"
        raise ShapeError(compose(op, required, str(tuple(source.shape)), *named))
    return source


def one_number(op: str, value: Any) -> Any:
    """Return a number, or a tensor of no dimensions."""
    if not isinstance(value, (int, float, complex)):
        needs_tensor(op, value, "value")
        if value.shape:
            required = "a number or a 0-d tensor required"
            raise ShapeError(compose(op, required, "more", ("value", value)))
    return value


# -- reading ---------------------------------------------------------------------------------------
@wrapper_of(take_p, numpy="take: a=x indices axis")
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
        x, axis = manipulation.reshape(x, (-1,)), 0
    axis = axis_for("take", x, axis, "x")
    indices = index_for("take", x, axis, indices, names=("x", "indices"), wraps=True)
    return take_p.public(x, indices, axis=axis)


@composition(
    sample((3, 4), (1, 4), axis=0),
    sample((2, 1, 3), (1, 2, 2), axis=-1),
    sample((3,), (0,)),
    domain={"x": both(-2, 2), "indices": integers(-3, 2)},
    constants=("indices",),
    scalars=False,
    numpy="take_along_axis: arr=x indices axis/flat",
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
    x = manipulation.broadcast_to(x, wanted)
    wanted[axis] = indices.shape[axis]
    return gather_p.public(x, manipulation.broadcast_to(indices, wanted), axis=axis)


@wrapper_of(gather_p, call=lambda f, input, index, *, axis: f(input, axis, index), methods="gather")
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
    return gather_p.public(input, index, axis=axis)


@composition(
    sample((3, 4), (2,), dim=0),
    sample((2, 3), (0,), dim=-1),
    sample((3,), (), dim=0),
    domain={"input": both(-2, 2), "index": integers(0, 2)},
    constants=("index",),
    call=lambda f, input, index, *, dim: f(input, dim, index),
    reference=(lambda np, x, index, dim: np.take(x, np.atleast_1d(index), dim)),
    methods="index_select",
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
    return take_p.public(input, index, axis=axis)


# -- masks -----------------------------------------------------------------------------------------
@wrapper_of(masked_select_p, methods="masked_select")
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
    pointwise.needs_mask("masked_select", "mask", mask)
    if tuple(input.shape) != tuple(mask.shape):
        common = _common_shape("masked_select", ("input", input), ("mask", mask))
        input, mask = (
            manipulation.broadcast_to(input, common),
            manipulation.broadcast_to(mask, common),
        )
    return masked_select_p.public(input, mask)


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


@composition(
    sample((2, 3), (2, 1), dim=1),
    sample((2, 3), (4,)),
    domain={"x": both(-2, 2), "indices": integers(0, 1)},
    constants=("indices",),
    reference=(
        lambda np, x, indices, dim=None: np.take_along_axis(
            x if dim is not None else x.ravel(), indices, dim or 0
        )
    ),
    scalars=False,
    methods="take_along_dim",
)
def take_along_dim(x: Any, indices: Any, dim: int | None = None) -> Tensor:
    """Return the element that each of `indices` names along `dim`, or in the flat tensor.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[3.0, 1.0]])
    >>> pb.take_along_dim(x, x.argsort(dim=1), 1)
    tensor([[1., 3.]])
    """
    x, indices = tensor_of("take_along_dim", x), tensor_of("take_along_dim", indices, "indices")
    if dim is None:
        return take_along_axis(reshape(x, (-1,)), reshape(indices, (-1,)), axis=0)
    return take_along_axis(x, indices, axis=dim)
