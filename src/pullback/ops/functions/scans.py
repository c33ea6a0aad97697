"""Scans along an axis, differences and integrals."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import needs_rank, tensor_of
from pullback.ops.axes import normalize_axes, normalize_axis
from pullback.ops.declare import composition, needs_one_library, needs_tensor, wrapper_of
from pullback.ops.functions.creation import full
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.joining import cat, concat
from pullback.ops.functions.manipulation import broadcast_to, moveaxis
from pullback.ops.functions.pointwise import add
from pullback.ops.primitives.arithmetic import divide, multiply, subtract
from pullback.ops.primitives.comparison import not_equal
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.scans import cumprod_p, cumsum_p, logcumsumexp_p
from pullback.ops.samples import sample
from pullback.ops.torch_words import torch_words


# -- running sums and products ---------------------------------------------------------------------
@wrapper_of(cumsum_p, methods="cumsum", numpy="cumsum: a=x axis/flat dtype")
@torch_words(cumsum_p)
def cumsum(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return the running sum along an axis.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumsum(pb.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 3., 6.])
    """
    return _along("cumsum", cumsum_p.public, x, axis, dtype)


@wrapper_of(cumprod_p, methods="cumprod", numpy="cumprod: a=x axis/flat dtype")
@torch_words(cumprod_p)
def cumprod(x: Any, axis: int | None = None, *, dtype: Any = None) -> Tensor:
    """Return the running product along an axis.

    `dim` and `axis` are two names of it; `dtype` is what `x` is converted to first. The gradient
    is right with any number of zeros.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumprod(pb.tensor([1.0, 2.0, 3.0]), 0)
    tensor([1., 2., 6.])
    """
    return _along("cumprod", cumprod_p.public, x, axis, dtype)


def _along(op: str, scan: Callable[..., Tensor], x: Any, axis: Any, dtype: Any) -> Tensor:
    needs_tensor(op, x)
    if dtype is None:
        return scan(x, axis=axis)
    return astype(scan(astype(x, dtype, copy=False), axis=axis), dtype, copy=False)


_STANDARD = (
    sample((4,)),
    sample((2, 3), axis=0, include_initial=True),
    sample((2, 0), axis=-1, include_initial=True),
)


@composition(*_STANDARD, scalars=False, numpy="cumulative_sum: x axis dtype include_initial")
def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sum along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int, optional
        May be left out if `x` is a vector.
    dtype : dtype, optional
        What `x` is converted to first; by default small integers become larger ones.
    include_initial : bool
        Whether the result begins with 0, and is longer by one.

    Raises
    ------
    ArgumentError
        If there is no axis and `x` is no vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_sum(pb.tensor([1.0, 2.0, 3.0]), include_initial=True)
    tensor([0., 1., 3., 6.])
    """
    return _standard("cumulative_sum", cumsum_p.public, 0, x, axis, dtype, include_initial)


@composition(*_STANDARD, scalars=False, numpy="cumulative_prod: x axis dtype include_initial")
def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running product along an axis; the gradient is right with any number of zeros.

    Parameters and errors are those of `cumulative_sum`; the initial element is 1.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_prod(pb.tensor([1.0, 2.0, 3.0]), include_initial=True)
    tensor([1., 1., 2., 6.])
    """
    return _standard("cumulative_prod", cumprod_p.public, 1, x, axis, dtype, include_initial)


def _standard(
    op: str,
    scan: Callable[..., Tensor],
    initial: int,
    x: Any,
    axis: Any,
    dtype: Any,
    include_initial: bool,
) -> Tensor:
    needs_tensor(op, x)
    if not x.shape:
        raise ShapeError(compose(op, "at least 1 dimension required", "none", ("x", x)))
    if axis is None:
        if len(x.shape) > 1:
            required = "an axis required, since x is no vector"
            raise ArgumentError(compose(op, required, "none", ("x", x)))
        axis = 0
    axis = normalize_axis(op, axis, len(x.shape))
    result = _along(op, scan, x, axis, dtype)
    if not include_initial:
        return result
    shape = (*result.shape[:axis], 1, *result.shape[axis + 1 :])
    first = full(shape, initial, dtype=result.dtype, device=result.device)
    joined: Tensor = concat([first, result], axis=axis)
    return joined


@wrapper_of(logcumsumexp_p, methods="logcumsumexp")
@torch_words()
def logcumsumexp(x: Any, axis: int | None = None) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, without overflow.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logcumsumexp(pb.tensor([1000.0, 1000.0]), 0)
    tensor([1000.0000, 1000.6932])
    """
    return logcumsumexp_p.public(x, axis=axis)


# -- differences -----------------------------------------------------------------------------------
@composition(
    sample((2, 4), (2, 0), (2, 1)),
    sample((3, 2), (2, 2), (0, 2), axis=0, n=2),
    sample((3,), (0,), (0,), n=0),
    sample((2,), (0,), (1,), n=5),
    call=lambda f, x, prepend, append, **settings: f(x, prepend=prepend, append=append, **settings),
    reference=(lambda np, x, prepend, append, axis=-1, n=1: np.diff(x, n, axis, prepend, append)),
    scalars=False,
    methods="diff",
    numpy="diff: a=x n axis prepend append",
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
        What to put before and after `x` along the axis first; one of no axes for all of it.

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
    if len(named) > 1:
        needs_one_library("diff", *named)
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    parts = [p if len(p.shape) else broadcast_to(p, one) for _, p in named] if n else [x]
    result: Tensor = concat(parts, axis=axis) if len(parts) > 1 else parts[0]
    lead = (slice(None),) * axis
    change = not_equal if str(x.dtype).endswith("bool") else subtract
    for _ in range(n):
        if not result.shape[axis]:
            break
        result = change(result[(*lead, slice(1, None))], result[(*lead, slice(None, -1))])
    return clone(result) if result is x else result


# -- integrals and derivatives ---------------------------------------------------------------------
def _slabs(op: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[Tensor, int]:
    """Return the areas between neighbours, along the last axis, and the axis they are of."""
    y = tensor_of(op, y, "y")
    needs_rank(op, y, 1)
    if x is not None and dx is not None:
        raise ArgumentError(f"{op}: give x or dx, not both")
    axis = normalize_axis(op, dim, len(y.shape))
    y = moveaxis(y, axis, -1)
    middle = divide(add(y[..., 1:], y[..., :-1]), 2)
    if x is None:
        return multiply(middle, 1 if dx is None else dx), axis
    x = tensor_of(op, x)
    needs_rank(op, x, 1)
    x = x if len(x.shape) == 1 else moveaxis(x, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        required = f"x with {y.shape[-1]} places, as many as y has, required"
        raise ShapeError(compose(op, required, str(x.shape[-1]), ("y", y), ("x", x)))
    return multiply(middle, subtract(x[..., 1:], x[..., :-1])), axis


@composition(
    sample((2, 4), (4,)),
    sample((3, 2), (3, 2), dim=0),
    sample((1,), (1,)),
    reference=(lambda np, y, x, dim=-1: np.trapezoid(y, x, axis=dim)),
    scalars=False,
)
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral of the straight lines between values `y` at positions `x`.

    Parameters
    ----------
    y : Tensor
    x : Tensor, optional
        Of the shape of `y`, or a vector along `dim`; by default positions `dx` apart.
    dx : float, optional
        1 by default.
    dim : int

    Examples
    --------
    >>> import pullback as pb
    >>> pb.trapezoid(pb.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    areas, _ = _slabs("trapezoid", y, x, dx, dim)
    return sum_p.public(areas, axis=-1, keepdims=False)


trapz = trapezoid


@composition(
    sample((2, 4), (4,)),
    sample((3, 2), (3, 2), dim=0),
    sample((1,), (1,)),
    reference=(
        lambda scipy, y, x, dim=-1: (
            scipy.integrate.cumulative_trapezoid(y, x, axis=dim) if y.shape[dim] > 1 else y[:0]
        )
    ),
    scalars=False,
)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integrals from the first place to every other one; see `trapezoid`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cumulative_trapezoid(pb.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    areas, axis = _slabs("cumulative_trapezoid", y, x, dx, dim)
    return moveaxis(cumsum(areas, -1), -1, axis)


@composition(
    sample((4,), spacing=0.5),
    sample((3, 2), dim=(0, 1)),
    sample((3, 3), dim=1, edge_order=2),
    multi=True,
    scalars=False,
)
def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Return the derivatives of sampled values along axes, by differences of neighbours.

    Parameters
    ----------
    input : Tensor
    spacing : float or sequence
        How far apart the samples are, or one such number or vector of positions an axis; tensors
        have a gradient too.
    dim : int or sequence of int, optional
        By default all axes.
    edge_order : int
        1 or 2: how many neighbours are looked at at the edges, less one.

    Returns
    -------
    tuple of Tensor, one an axis

    Raises
    ------
    ShapeError, ArgumentError
        If an axis is shorter than ``edge_order + 1``; if the order or the spacing does not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.gradient(pb.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    x = tensor_of("gradient", input, "input")
    axes = normalize_axes("gradient", dim, len(x.shape))
    spacing = 1 if spacing is None else spacing
    steps = spacing if isinstance(spacing, (tuple, list)) else (spacing,) * len(axes)
    if len(steps) != len(axes) or edge_order not in (1, 2):
        required = "one spacing an axis and edge_order 1 or 2 required"
        came = f"{len(steps)} for {len(axes)} axes, edge_order {edge_order}"
        raise ArgumentError(compose("gradient", required, came, ("input", x)))
    pairs = zip(axes, steps, strict=True)
    return tuple(_slopes(x, axis, step, edge_order) for axis, step in pairs)


def _slopes(x: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    """Return the slopes along an axis: inside, of the parabola through the two neighbours."""
    y = moveaxis(x, axis, -1)
    n = y.shape[-1]
    if n < edge_order + 1:
        required = f"at least {edge_order + 1} elements along axis {axis} required"
        raise ShapeError(compose("gradient", required, str(n), ("input", x)))
    if isinstance(step, Real):  # NumPy's numbers are such too
        gaps: Any = full((n - 1,), float(step), dtype=x.dtype, device=x.device)
    else:
        positions = tensor_of("gradient", step, "spacing")
        if positions.shape:
            gaps = subtract(positions[1:], positions[:-1])
        else:
            gaps = broadcast_to(positions, (n - 1,))
    slopes = divide(subtract(y[..., 1:], y[..., :-1]), gaps)
    left, right = gaps[:-1], gaps[1:]
    both_sides = add(left, right)
    inside = divide(
        add(multiply(slopes[..., :-1], right), multiply(slopes[..., 1:], left)), both_sides
    )
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:
        bend = divide(subtract(slopes[..., 1:], slopes[..., :-1]), both_sides)
        first = subtract(first, multiply(bend[..., :1], gaps[:1]))
        last = add(last, multiply(bend[..., -1:], gaps[-1:]))
    return moveaxis(cat([first, inside, last], dim=-1), -1, axis)
