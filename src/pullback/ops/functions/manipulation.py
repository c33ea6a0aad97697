"""Manipulation of shapes, and moving elements about.

Little of this needs a rule of its own: turning is flipping, differences are slices. Where the
elements stay in their positions the result is a view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.core.tensor.tensor import TENSOR_CLASSES, Tensor
from pullback.core.tensor.views import detach_from_base
from pullback.errors import ArgumentError, ShapeError, TensorIndexError, compose
from pullback.ops.arguments import needs_rank, tensor_of
from pullback.ops.axes import normalize_axes, normalize_axis, to_builtin
from pullback.ops.declare import (
    composition,
    needs_tensor,
    register_xp,
    wrapper_of,
)
from pullback.ops.matrices import needs_matrices
from pullback.ops.primitives.arranging import roll_p
from pullback.ops.primitives.complex_numbers import conj
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.shape import (
    broadcast_to_p,
    flip_p,
    permute_p,
    reshape_p,
    resolve_shape,
)
from pullback.ops.primitives.sliding import unfold_dim_p
from pullback.ops.samples import sample

_INTS = frozenset((int,))


# -- shapes ----------------------------------------------------------------------------------------
@wrapper_of(reshape_p)
def reshape(x: Any, /, shape: Sequence[int] | int, *, copy: bool | None = None) -> Tensor:
    """Return `x` in another shape, a view where the memory allows; one length may be -1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.reshape(pb.tensor([1.0, 2.0, 3.0, 4.0]), (2, -1))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if x.__class__ not in TENSOR_CLASSES:
        needs_tensor("reshape", x)
    wanted = shape
    if shape.__class__ is not tuple or not _INTS.issuperset(map(type, shape)):
        shape = to_builtin(shape)
        shape = (shape,) if isinstance(shape, int) else shape
        wanted = resolve_shape("reshape", x.shape, shape)
    result: Tensor = reshape_p.public(x, shape=wanted)
    if copy:
        copied: Tensor = clone(result)
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


@wrapper_of(permute_p)
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
    return permute_p.public(x, axes=order)


permute = permute_dims


@composition(
    sample((2, 3)),
    sample((0, 2, 3)),
    view=True,
    scalars=False,
    numpy="matrix_transpose linalg.matrix_transpose: x",
)
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
    if len(x.shape) == 2:
        return permute_p.public(x, axes=(1, 0))
    return transpose(x, -1, -2)


@composition(
    sample((2, 3, 4), dim0=0, dim1=-1),
    sample((), dim0=0, dim1=0),
    view=True,
    reference=(lambda np, x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x),
    methods="transpose swapaxes swapdims",
    numpy="swapaxes: a=x axis1=dim0 axis2=dim1",
)
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
    return permute_p.public(x, axes=tuple(order))


swapaxes = transpose
swapdims = transpose


@composition(sample((2, 3), axis=-2), sample((), axis=0), sample((0,), axis=1), view=True)
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
    position = normalize_axis("expand_dims", axis, ndim)
    shape = x.shape
    return reshape_p.public(x, shape=(*shape[:position], 1, *shape[position:]))


@composition(
    sample((1, 3, 1), axis=(0, -1)),
    sample((1, 0), axis=0),
    sample((1, 1), axis=None),
    view=True,
    scalars=False,
    numpy="squeeze: a=x axis",
)
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
    return reshape_p.public(x, shape=shape)


@wrapper_of(broadcast_to_p, numpy="broadcast_to: array=x shape")
def broadcast_to(x: Any, /, shape: Sequence[int] | int) -> Tensor:
    """Return `x` repeated to `shape`, a view.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.broadcast_to(pb.tensor([1.0, 2.0]), (2, 2))
    tensor([[1., 2.],
            [1., 2.]])
    """
    needs_tensor("broadcast_to", x)
    shape = to_builtin(shape)
    return broadcast_to_p.public(x, shape=(shape,) if isinstance(shape, int) else tuple(shape))


@composition(
    sample((3, 1), shape=(2, -1, 4)),
    sample((), shape=(2,)),
    view=True,
    reference=(
        lambda np, x, shape: np.broadcast_to(
            x, [n if m == -1 else m for n, m in zip((1, *x.shape), shape, strict=False)]
        )
    ),
)
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
    return broadcast_to_p.public(x, shape=tuple(sizes))


@wrapper_of(flip_p)
def flip(x: Any, /, *, axis: Any = None) -> Tensor:
    """Return `x` with the order along `axis` reversed, all axes by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flip(pb.tensor([1.0, 2.0]))
    tensor([2., 1.])
    """
    needs_tensor("flip", x)
    return flip_p.public(x, axis=normalize_axes("flip", axis, len(x.shape)))


@composition(
    sample((2, 3, 4), shape=(3, 1)),
    sample((2, 0), shape=(2, 1)),
    sample((), shape=()),
    call=lambda f, x, *, shape: f(x, shape),
    reference=(
        lambda np, x, shape: (
            x if x.shape == shape else np.sum(x, axis=(0, 2) if x.ndim == 3 else 1).reshape(shape)
        )
    ),
    methods="sum_to_size",
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
    ones = (i for i, n in enumerate(wanted, extra) if n == 1 != x.shape[i])
    axes = (*range(extra), *ones)
    summed = sum_p.public(x, axis=axes, keepdims=True) if axes else x
    return summed if tuple(summed.shape) == tuple(wanted) else reshape(summed, wanted)


@composition(
    sample((2, 3, 4), start_dim=1),
    sample((), start_dim=0),
    sample((0, 2), end_dim=1),
    view=True,
    reference=(lambda x, start_dim=0, end_dim=-1: x.reshape((2, -1) if x.ndim == 3 else (-1,))),
    methods="flatten",
)
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


@composition(
    sample((2, 3), dim=1, index=-1),
    sample((3,), dim=0, index=1),
    view=True,
    reference=(lambda x, dim, index: x.take(index, dim)),
    scalars=False,
    methods="select",
)
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


@composition(
    sample((2, 3), dim=-1, start=1, length=2),
    sample((3,), dim=0, start=3, length=0),
    view=True,
    reference=(lambda x, dim, start, length: x.take(range(start, start + length), dim)),
    scalars=False,
    methods="narrow",
)
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


# -- orders of axes and elements -------------------------------------------------------------------
@composition(
    sample((2, 3, 1), source=0, destination=-1),
    sample((2, 3, 1), source=(0, -1), destination=(1, 0)),
    sample((), source=(), destination=()),
    view=True,
    call=lambda f, x, *, source, destination: f(x, source, destination),
    methods="moveaxis",
    numpy="moveaxis: a=x source destination",
)
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Return a view of `x` with axes moved to other positions, the others in their order.

    Raises
    ------
    ArgumentError
        If there are not as many positions as axes, or one is named twice.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.moveaxis(pb.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    needs_tensor("moveaxis", x)
    ndim = len(x.shape)
    from_, to = (normalize_axes("moveaxis", axes, ndim) for axes in (source, destination))
    if len(from_) != len(to):
        came = f"{len(from_)} and {len(to)}"
        raise ArgumentError(compose("moveaxis", "as many places as axes required", came, ("x", x)))
    order = [i for i in range(ndim) if i not in from_]
    for position, axis in sorted(zip(to, from_, strict=True)):
        order.insert(position, axis)
    return permute_dims(x, order)


@composition(
    sample((2, 3, 1), source=0, destination=-1),
    view=True,
    reference="numpy.moveaxis",
    scalars=False,
    methods="movedim",
)
def movedim(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view of `x` with axes moved to other positions: PyTorch's name of `moveaxis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.movedim(pb.zeros(2, 3, 4), source=0, destination=-1).shape
    (3, 4, 2)
    """
    return moveaxis(x, source, destination)


@composition(
    sample((2, 3), dim=-2),
    view=True,
    reference=(lambda np, x, dim: np.expand_dims(x, dim)),
    scalars=False,
)
def unsqueeze(x: Any, dim: int) -> Tensor:
    """Return a view of `x` with an axis of length 1 inserted: PyTorch's name of `expand_dims`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unsqueeze(pb.zeros(3), 0).shape
    (1, 3)
    """
    return expand_dims(x, dim)


@composition(sample((2, 3)), sample(()), view=True, methods="ravel")
def ravel(x: Any) -> Tensor:
    """Return the elements of `x` in one axis, one after the other in memory.

    It is a view where they lie so, else a copy; `flatten` and `reshape` give views of columns too.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ravel(pb.zeros(2, 3)).shape
    (6,)
    """
    return reshape(x, (-1,)).contiguous()


@composition(
    sample((2, 6), dim=-1, sizes=(3, -1)),
    sample((0,), dim=0, sizes=(2, 0)),
    view=True,
    reference=(lambda x, dim, sizes: x.reshape(*x.shape[:dim], *sizes)),
    scalars=False,
    methods="unflatten",
)
def unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return `x` with the axis `dim` made several, of these sizes; one of them may be -1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unflatten(pb.zeros(2, 6), 1, (3, -1)).shape
    (2, 3, 2)
    """
    needs_tensor("unflatten", x)
    if not x.shape:
        raise ShapeError(compose("unflatten", "at least 1 dimension required", "none", ("x", x)))
    axis = normalize_axis("unflatten", dim, len(x.shape))
    split = resolve_shape("unflatten", x.shape[axis : axis + 1], sizes)
    return reshape(x, shape=(*x.shape[:axis], *split, *x.shape[axis + 1 :]))


@wrapper_of(roll_p, numpy="roll: a=x shift axis")
def roll(
    x: Any,
    /,
    shift: int | Sequence[int],
    *,
    axis: int | Sequence[int] | None = None,
) -> Tensor:
    """Return `x` with the elements moved on by `shift`; those that leave enter at the other end.

    Parameters
    ----------
    x : Tensor
    shift : int or sequence of int
        How far, along each axis.
    axis : int or sequence of int, optional
        Along which axes; by default along `x` made flat, which gets its shape back.

    Raises
    ------
    ArgumentError
        If there is not one shift an axis.
    TensorIndexError
        If an axis is out of range; a 0-d tensor has none.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.roll(pb.tensor([1.0, 2.0, 3.0]), 1)
    tensor([3., 1., 2.])
    """
    needs_tensor("roll", x)
    shift = to_builtin(shift)
    if axis is None:
        if not isinstance(shift, int):
            raise ArgumentError(compose("roll", "one shift without an axis required", repr(shift)))
        result = reshape(roll_p.public(reshape(x, (-1,)), shift=(shift,), axis=(0,)), x.shape)
        detach_from_base(result)
        return result
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(map(to_builtin, shift))
    if len(shifts) != len(axes):
        came = f"{len(shifts)} for {len(axes)} axes"
        raise ArgumentError(compose("roll", "one shift an axis required", came, ("x", x)))
    total: dict[int, int] = {}
    for a, n in zip(axes, shifts, strict=True):
        position = normalize_axis("roll", a, len(x.shape))
        if not x.shape:
            required = "a tensor with at least 1 dimension required"
            raise TensorIndexError(compose("roll", required, f"axis {a} of a number", ("x", x)))
        total[position] = total.get(position, 0) + n
    return roll_p.public(x, shift=tuple(total.values()), axis=tuple(total))


@composition(sample((2, 3)), scalars=False, methods="fliplr")
def fliplr(x: Any) -> Tensor:
    """Return `x` with the order along axis 1 reversed: left and right exchanged.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.fliplr(pb.tensor([[1.0, 2.0]]))
    tensor([[2., 1.]])
    """
    needs_rank("fliplr", x, 2)
    return flip(x, axis=1)


@composition(sample((2, 1)), scalars=False, methods="flipud")
def flipud(x: Any) -> Tensor:
    """Return `x` with the order along axis 0 reversed: up and down exchanged.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.flipud(pb.tensor([1.0, 2.0]))
    tensor([2., 1.])
    """
    needs_rank("flipud", x, 1)
    return flip(x, axis=0)


@composition(
    sample((2, 3)),
    sample((2, 1, 2), k=-1, dims=(1, 2)),
    sample((2, 2), k=2),
    reference=(lambda np, x, k=1, dims=(0, 1): np.rot90(x, k, dims)),
    scalars=False,
    methods="rot90",
)
def rot90(x: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return `x` turned by `k` right angles in the plane of two axes, from the first to the second.

    Raises
    ------
    ArgumentError
        If `dims` are not two axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.rot90(pb.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[2., 4.],
            [1., 3.]])
    """
    needs_rank("rot90", x, 2)
    axes = normalize_axes("rot90", dims, len(x.shape))
    if len(axes) != 2:
        raise ArgumentError(compose("rot90", "two axes required as 'dims'", repr(dims)))
    turns = k % 4
    if turns % 2 == 0:
        return flip(x, axis=axes if turns else ())
    turned = transpose(x, *axes)
    return flip(turned, axis=axes[0] if turns == 1 else axes[1])


# -- windows ---------------------------------------------------------------------------------------
@wrapper_of(unfold_dim_p, methods="unfold")
def unfold_along(x: Any, dimension: int, size: int, step: int) -> Tensor:
    """Return a copy of the windows of `size` elements along a dimension, one every `step` elements.

    PyTorch's is a view: here a change of the result in place leaves `x` as it is, and takes memory
    of its own. An element that is in several windows gets the sum of their gradients.

    Parameters
    ----------
    x : Tensor
    dimension, size, step : int

    Returns
    -------
    Tensor
        With the number of the window along `dimension` and its elements along a new last dimension.

    Raises
    ------
    ArgumentError
        If the size is negative or larger than the dimension, or the step not positive.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tensor([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1)
    tensor([[1., 2.],
            [2., 3.],
            [3., 4.]])
    """
    needs_tensor("unfold", x)
    axis = normalize_axis("unfold", dimension, len(x.shape))
    length = x.shape[axis] if x.shape else 1
    if not 0 <= size <= length:
        required = f"a size from 0 to {length}, the length of axis {axis}, required"
        raise ArgumentError(compose("unfold", required, str(size), ("x", x)))
    if step < 1:
        raise ArgumentError(compose("unfold", "a step of at least 1 required", str(step)))
    return unfold_dim_p.public(x, axis=axis, size=size, step=step)


@composition(sample((2, 3)), sample((3,)), sample(()), view=True, reference="numpy.transpose")
def t(x: Any) -> Tensor:
    """Return the transpose of a matrix, a view; vectors and numbers as they are.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.t(pb.zeros(2, 3)).shape
    (3, 2)
    """
    return tensor_of("t", x).t()


@composition(
    sample((2, 3)),
    sample((2, 0, 1)),
    view=True,
    reference=(lambda np, x: np.conj(np.swapaxes(x, -1, -2))),
    scalars=False,
)
def adjoint(x: Any) -> Tensor:
    """Return the conjugate transposes of matrices.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.adjoint(pb.tensor([[1.0j, 2.0]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    needs_matrices("adjoint", x)
    return conjugate_transpose(tensor_of("adjoint", x))


def conjugate_transpose(x: Tensor) -> Tensor:
    """Return the conjugate transposes of matrices, views where they are real."""
    flipped = matrix_transpose(x)
    return conj(flipped) if x.dtype.is_complex else flipped


register_xp(matrix_transpose, space="linalg")
