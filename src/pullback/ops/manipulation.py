"""Moving elements about: orders of axes, shifts, turns, triangles, diagonals, differences.

Little of this needs a rule of its own: turning is flipping, differences are slices. Where the
elements stay in their places the result is a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._axes import normalize_axes, normalize_axis
from pullback.ops._declare import (
    Operation,
    composition,
    face,
    needs_one_library,
    needs_tensor,
    on,
    operation,
    sample,
)
from pullback.ops.comparison import not_equal
from pullback.ops.diagonals import diagonal_, from_diagonal
from pullback.ops.elementwise import subtract
from pullback.ops.shape import (
    expand_dims,
    flip,
    permute_dims,
    reshape,
    resolve_shape,
    transpose,
)

__all__ = [
    "diag",
    "diff",
    "fliplr",
    "flipud",
    "moveaxis",
    "movedim",
    "ravel",
    "roll",
    "rot90",
    "tril",
    "triu",
    "unflatten",
    "unsqueeze",
]


# -- views -----------------------------------------------------------------------------------------
@composition(
    sample((2, 3, 1), source=0, destination=-1),
    sample((2, 3, 1), source=(0, -1), destination=(1, 0)),
    sample((), source=(), destination=()),
    call=lambda x, *, source, destination: TENSORS.moveaxis(x, source, destination),
)
def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Return a view of `x` with axes moved to other places, the others in their order.

    Raises
    ------
    ArgumentError
        If there are not as many places as axes, or one is named twice.

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
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, order)


@composition(sample((2, 3, 1), source=0, destination=-1))
def movedim(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Return a view of `x` with axes moved to other places: PyTorch's name of `moveaxis`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.movedim(pb.zeros(2, 3, 4), source=0, destination=-1).shape
    (3, 4, 2)
    """
    return moveaxis(x, source, destination)


@composition(sample((2, 3), dim=-2))
def unsqueeze(x: Any, dim: int) -> Tensor:
    """Return a view of `x` with an axis of length 1 inserted: PyTorch's name of `expand_dims`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.unsqueeze(pb.zeros(3), 0).shape
    (1, 3)
    """
    return expand_dims(x, dim)


@composition(sample((2, 3)), sample(()))
def ravel(x: Any) -> Tensor:
    """Return the elements of `x` in one axis, a view where the memory allows.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.ravel(pb.zeros(2, 3)).shape
    (6,)
    """
    return reshape(x, (-1,))


@composition(sample((2, 6), dim=-1, sizes=(3, -1)), sample((0,), dim=0, sizes=(2, 0)))
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
    apart = resolve_shape("unflatten", x.shape[axis : axis + 1], sizes)
    return reshape(x, shape=(*x.shape[:axis], *apart, *x.shape[axis + 1 :]))


# -- another order ---------------------------------------------------------------------------------
roll_: Operation = operation(
    "roll",
    lambda xp, x, *, shift, axis: xp.roll(x, shift, axis=axis) if axis else library_of(x).copy(x),
    rules={
        "x": lambda g, shift, axis, xp: on(xp, roll_)(g, shift=tuple(-n for n in shift), axis=axis)
    },
    samples=(
        sample((3, 2), shift=4, axis=0),
        sample((2, 3), shift=(1, -2), axis=(0, -1)),
        sample((2, 3), shift=2),
        sample((2, 0), shift=1, axis=0),
        sample((), shift=1),
    ),
    doc="Return x with the elements moved on along axes, from the end to the beginning.",
)


@face(roll_)
def roll(
    x: Any, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None
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

    Examples
    --------
    >>> import pullback as pb
    >>> pb.roll(pb.tensor([1.0, 2.0, 3.0]), 1)
    tensor([3., 1., 2.])
    """
    needs_tensor("roll", x)
    if axis is None:
        if not isinstance(shift, int):
            raise ArgumentError(compose("roll", "one shift without an axis required", repr(shift)))
        return reshape(roll_(reshape(x, (-1,)), shift=(shift,), axis=(0,)), x.shape)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        came = f"{len(shifts)} for {len(axes)} axes"
        raise ArgumentError(compose("roll", "one shift an axis required", came, ("x", x)))
    total: dict[int, int] = {}
    for a, n in zip(axes, shifts, strict=True):
        a = normalize_axis("roll", a, len(x.shape))
        total[a] = total.get(a, 0) + n
    if not x.shape:
        total = {}
    return roll_(x, shift=tuple(total.values()), axis=tuple(total))


@composition(sample((2, 3)))
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


@composition(sample((2, 1)))
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


def needs_rank(op: str, x: Any, least: int) -> None:
    """Raise where a tensor has fewer dimensions than an operation works on."""
    needs_tensor(op, x)
    if len(x.shape) < least:
        required = f"at least {least} dimension{'s' * (least > 1)} required"
        raise ShapeError(compose(op, required, str(len(x.shape)), ("x", x)))


@composition(sample((2, 3)), sample((2, 1, 2), k=-1, dims=(1, 2)), sample((2, 2), k=2))
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


# -- triangles and diagonals -----------------------------------------------------------------------
def _triangle(name: str, doc: str) -> Operation:
    def forward(xp: Any, x: Any, *, k: int = 0) -> Any:
        return getattr(xp, name)(x, k=k)

    return operation(
        name,
        forward,
        rules={"x": lambda g, k, xp: getattr(xp, name)(g, k=k)},
        samples=(sample((3, 4), k=1), sample((2, 3, 2), k=-1), sample((1, 1)), sample((0, 2), k=0)),
        doc=doc,
    )


tril_ = _triangle("tril", "Return the lower triangles of matrices.")
triu_ = _triangle("triu", "Return the upper triangles of matrices.")


@face(tril_)
def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the elements of matrices on and below the `k`-th diagonal, with zeros above.

    Raises
    ------
    ShapeError
        If there are less than 2 dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.tril(pb.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    needs_rank("tril", x, 2)
    return tril_(x, k=k)


@face(triu_)
def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """Return the elements of matrices on and above the `k`-th diagonal, with zeros below.

    Raises
    ------
    ShapeError
        If there are less than 2 dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.triu(pb.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    needs_rank("triu", x, 2)
    return triu_(x, k=k)


@composition(sample((2, 3)), sample((3, 2), diagonal=-1), sample((2,), diagonal=1), sample((0,)))
def diag(x: Any, diagonal: int = 0) -> Tensor:
    """Return a matrix with the vector `x` on its `diagonal`, or the diagonal of the matrix `x`.

    Raises
    ------
    ShapeError
        If `x` is neither a vector nor a matrix.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diag(pb.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    >>> pb.diag(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), diagonal=1)
    tensor([2.])
    """
    needs_tensor("diag", x)
    if len(x.shape) not in (1, 2):
        came = f"{len(x.shape)} dimensions"
        raise ShapeError(compose("diag", "a vector or a matrix required", came, ("x", x)))
    if len(x.shape) == 2:
        copy: Tensor = TENSORS.clone(diagonal_(x, offset=diagonal))
        return copy
    size = x.shape[0] + abs(diagonal)
    return from_diagonal(x, shape=(size, size), offset=diagonal)


# -- differences -----------------------------------------------------------------------------------
@composition(
    sample((2, 4), (2, 0), (2, 1)),
    sample((3, 2), (2, 2), (0, 2), axis=0, n=2),
    sample((3,), (0,), (0,), n=0),
    sample((2,), (0,), (1,), n=5),
    call=lambda x, prepend, append, **settings: TENSORS.diff(
        x, prepend=prepend, append=append, **settings
    ),
)
def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Tensor:
    """Return the differences of neighbours along an axis, `n` times over.

    Parameters
    ----------
    x : Tensor
        Of bools: whether neighbours differ.
    axis : int
        The axis, one shorter in the result each time.
    n : int
        How often.
    prepend, append : Tensor, optional
        What to put before and after `x` along the axis first.

    Raises
    ------
    ArgumentError
        If `n` is negative.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.diff(pb.tensor([1.0, 4.0, 9.0]))
    tensor([3., 5.])
    """
    needs_rank("diff", x, 1)
    if n < 0:
        raise ArgumentError(compose("diff", "an order 'n' of at least 0 required", str(n)))
    axis = normalize_axis("diff", axis, len(x.shape))
    named = [("prepend", prepend), ("x", x), ("append", append)]
    named = [(name, part) for name, part in named if part is not None]
    for name, part in named:
        needs_tensor("diff", part, name)
    needs_one_library("diff", *named)
    parts = [part for _, part in named] if n else [x]
    result: Tensor = TENSORS.concat(parts, axis=axis) if len(parts) > 1 else TENSORS.clone(x)
    lead = (slice(None),) * axis
    change = not_equal if str(x.dtype).endswith("bool") else subtract
    for _ in range(n):
        if not result.shape[axis]:
            break
        result = change(result[(*lead, slice(1, None))], result[(*lead, slice(None, -1))])
    return result
