"""Reductions: sums, products, extremes, and what holds of any or all elements.

Edge values: elements that tie for a maximum or minimum share its gradient evenly; prod is right
with any number of zeros; an empty sum is 0 and an empty prod 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.arrays import library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, DTypeError, compose
from pullback.ops._axes import (
    count,
    either,
    keep_axes,
    normalize_axes,
    normalize_axis,
    spread,
)
from pullback.ops._declare import (
    Operation,
    composition,
    face,
    grid,
    needs_order,
    operation,
    real,
    sample,
)

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "sum",
]

# Samples of reductions: usual axes, empty tensors, no axes at all.
AXES = (
    sample((3, 4), axis=None, keepdims=False),
    sample((3, 4), axis=1, keepdims=False),
    sample((3, 4), axis=-2, keepdims=True),
    sample((2, 3, 4), axis=(0, 2), keepdims=False),
    sample((), axis=None, keepdims=False),
    sample((1,), axis=0, keepdims=True),
)
EMPTY = (
    sample((0, 3), axis=0, keepdims=False),
    sample((0, 3), axis=1, keepdims=False),
    sample((2, 0), axis=None, keepdims=False),
)
NO_AXIS = (sample((2, 3), axis=(), keepdims=False), sample((2, 3), axis=(), keepdims=True))


def _axes_of(x: Any, op: str, axis: Any) -> Any:
    return None if axis is None else normalize_axes(op, axis, len(x.shape))


def _sum(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return xp.sum(x, axis=_axes_of(x, "sum", axis), keepdims=keepdims)


sum_ = operation(
    "sum",
    _sum,
    quick="sum",
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: spread(g, x_shape, axis, keepdims, xp),
    },
    samples=(*AXES, *EMPTY, *NO_AXIS),
    doc="Return the sum over axes.",
)


def _mean(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    if not library_of(x).dtype(x).is_inexact:
        raise DTypeError(
            f"mean: needs a floating point or complex dtype, got {x.dtype}.\n"
            "hint: convert it first, for instance with .float()."
        )
    return xp.mean(x, axis=_axes_of(x, "mean", axis), keepdims=keepdims)


mean = operation(
    "mean",
    _mean,
    quick="mean",
    rules={
        "x": lambda g, x_shape, axis, keepdims, xp: spread(
            g / count(x_shape, axis), x_shape, axis, keepdims, xp
        ),
    },
    samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
    doc="""Return the mean over `axis`, all axes by default.

    Raises
    ------
    DTypeError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.mean(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([2., 3.])
    """,
)


def _prod(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    axes = normalize_axes("prod", axis, len(x.shape))
    if not axes:  # only the dtype of small integers changes
        return xp.prod(x, axis=()) if x.shape else xp.prod(x)
    for a in axes:  # some libraries' prod takes one axis at a time
        x = xp.prod(x, axis=a, keepdims=True)
    return x if keepdims else xp.reshape(x, dropped(x.shape, axis))


def dropped(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """Return a shape without the axes that are reduced."""
    axes = normalize_axes("prod", axis, len(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _prod_rule(g: Any, x: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g times the product of the other elements: right with any number of zeros.

    The reduced axes become one; the products before and after each element are cumulative
    products, so nothing is divided by.
    """
    shape = x.shape
    axes = normalize_axes("prod", axis, len(shape))
    if not axes:
        return g
    if 0 in shape:
        return xp.zeros_like(x)
    others = [i for i in range(len(shape)) if i not in axes]
    order = (*others, *axes)
    rows = tuple(shape[i] for i in others)
    flat = xp.reshape(xp.permute_dims(x, order), (*rows, count(shape, axis)))
    n = flat.shape[-1]
    one = xp.ones_like(flat[..., :1])
    before = xp.cumulative_prod(xp.concat([one, flat[..., : n - 1]], axis=-1), axis=-1)
    back = xp.flip(flat, axis=-1)
    after = xp.cumulative_prod(xp.concat([one, back[..., : n - 1]], axis=-1), axis=-1)
    after = xp.flip(after, axis=-1)
    product = xp.reshape(before * after, tuple(shape[i] for i in order))
    inverse = tuple(order.index(i) for i in range(len(shape)))
    return keep_axes(g, shape, axis, keepdims, xp) * xp.permute_dims(product, inverse)


prod_ = operation(
    "prod",
    _prod,
    quick="prod",
    rules={"x": _prod_rule},
    samples=(*AXES, *EMPTY, *NO_AXIS),
    doc="Return the product over axes; its gradient is right with any number of zeros.",
)


def _extreme_rule(g: Any, x: Any, out: Any, axis: Any, keepdims: bool, xp: Any) -> Any:
    """Return g where x is the extreme, shared evenly by those that tie."""
    # A NaN is the result wherever there is one, and ties with the others.
    ties = (x == keep_axes(out, x.shape, axis, keepdims, xp)) | (x != x)
    count = xp.count_nonzero(ties, axis=_axes_of(x, "max", axis), keepdims=True)
    share = keep_axes(g, x.shape, axis, keepdims, xp) / xp.astype(count, g.dtype)
    return xp.where(ties, share, 0)


def _extreme(name: str) -> Operation:
    kind = "largest" if name == "max" else "smallest"
    result = "3" if name == "max" else "1"

    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        if count(x.shape, _axes_of(x, name, axis)) == 0:
            required = "at least one element to compare required"
            raise ArgumentError(compose(name, required, "none", ("x", x)))
        needs_order(name, x)
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    return operation(
        name,
        forward,
        rules={"x": _extreme_rule},
        quick=name,
        samples=(*AXES, *NO_AXIS, sample((0, 3), axis=1, keepdims=False)),
        domain=real(-2, 2),
        distinct=True,
        doc=f"""Return the {kind} element over `axis`; elements that tie share the gradient evenly.

    Raises
    ------
    ArgumentError
        If there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([1.0, 3.0, 2.0]))
    tensor({result}.)
    """,
    )


max_, min_ = _extreme("max"), _extreme("min")


# -- public faces ----------------------------------------------------------------------------------
@face(sum_)
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the sum over `axis`, all axes by default.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.sum(pb.tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    tensor([4., 6.])
    """
    return in_dtype(sum_, x, dtype, axis=axis, keepdims=keepdims)


@face(prod_)
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over `axis`, all axes by default; the gradient is right with zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.prod(pb.tensor([2.0, 3.0]))
    tensor(6.)
    """
    return in_dtype(prod_, x, dtype, axis=axis, keepdims=keepdims)


def in_dtype(function: Operation, x: Any, dtype: Any, **settings: Any) -> Tensor:
    """Call an operation on `x` converted to a dtype, if one is given, which the result has too."""
    if dtype is None:
        return function(x, **settings)
    result: Tensor = TENSORS.astype(
        function(TENSORS.astype(x, dtype), **settings), dtype, copy=False
    )
    return result


def _whole(name: str, doc: str) -> Operation:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return getattr(xp, name)(x, axis=_axes_of(x, name, axis), keepdims=keepdims)

    return operation(
        name,
        forward,
        quick=name,
        differentiable=False,
        samples=(*AXES, *EMPTY, *NO_AXIS),
        domain=grid(-1, 1),
        doc=f"""{doc}

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([True, False]))
    tensor({name == "any"})
    """,
    )


any_ = _whole("any", "Return whether any element over `axis`, all axes by default, is true.")
all_ = _whole("all", "Return whether all elements over `axis`, all axes by default, are true.")


def _position(name: str) -> Operation:
    def forward(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = None if axis is None else normalize_axis(name, axis, len(x.shape))
        needs_order(name, x)
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return operation(
        name,
        forward,
        quick=name,
        differentiable=False,
        domain=grid(-2, 2),
        samples=(
            sample((3, 4), axis=None, keepdims=False),
            sample((3, 4), axis=None, keepdims=True),
            sample((3, 4), axis=1, keepdims=True),
            sample((2, 3, 4), axis=-2, keepdims=False),
            sample((0, 3), axis=1, keepdims=False),
            sample((), axis=None, keepdims=False),
        ),
        doc=f"""Return the index of the {name[3:]}imum along an axis, the first of several.

    Without an axis it is the index in `x` made flat.

    Raises
    ------
    ShapeError
        If there is no element.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.{name}(pb.tensor([2.0, 3.0, 1.0]))
    tensor({1 if name == "argmax" else 2})
    """,
    )


argmax, argmin = _position("argmax"), _position("argmin")
count_nonzero = operation(
    "count_nonzero",
    lambda xp, x, *, axis=None, keepdims=False: xp.count_nonzero(
        x, axis=_axes_of(x, "count_nonzero", axis), keepdims=keepdims
    ),
    differentiable=False,
    samples=(*AXES[1:5], *EMPTY[:1], *NO_AXIS[:1]),
    domain=grid(-1, 1),
    doc="""Return how many elements over `axis`, all axes by default, are not 0.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.count_nonzero(pb.tensor([0.0, 3.0, -1.0]))
    tensor(2)
    """,
)


# -- PyTorch's names -------------------------------------------------------------------------------
@composition(AXES[1], domain=real(-2, 2), distinct=True)
def amax(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
) -> Tensor:
    """Return the largest element over axes: PyTorch's name of `max`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.amax(pb.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=0)
    tensor([4., 3.])
    """
    return max_(x, axis=either("amax", dim, axis), keepdims=keepdim or keepdims)


@composition(AXES[1], domain=real(-2, 2), distinct=True)
def amin(
    x: Any, dim: Any = None, keepdim: bool = False, *, axis: Any = None, keepdims: bool = False
) -> Tensor:
    """Return the smallest element over axes: PyTorch's name of `min`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.amin(pb.tensor([[1.0, 3.0], [4.0, 2.0]]), dim=0)
    tensor([1., 2.])
    """
    return min_(x, axis=either("amin", dim, axis), keepdims=keepdim or keepdims)


class Extremes(NamedTuple):
    """The smallest and the largest element."""

    min: Tensor
    max: Tensor


@composition(AXES[1], AXES[0], domain=real(-2, 2), distinct=True, multi=True)
def aminmax(
    x: Any, *, dim: Any = None, keepdim: bool = False, axis: Any = None, keepdims: bool = False
) -> Extremes:
    """Return the smallest and the largest element over axes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.aminmax(pb.tensor([1.0, 3.0, 2.0]))
    Extremes(min=tensor(1.), max=tensor(3.))
    """
    over, kept = either("aminmax", dim, axis), keepdim or keepdims
    return Extremes(min_(x, axis=over, keepdims=kept), max_(x, axis=over, keepdims=kept))


max, min, any, all = max_, min_, any_, all_
