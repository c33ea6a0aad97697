"""Products, distances and statistics of vectors, and integrals of what they sample.

Made of other operations. A distance of 0 has the gradient 0, as the norm has.
"""

from __future__ import annotations

import itertools
from typing import Any

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._axes import normalize_axes, normalize_axis
from pullback.ops._declare import both, composition, integers, needs_tensor, real, sample
from pullback.ops._values import take_slices
from pullback.ops.comparison import greater
from pullback.ops.complex_ import conj
from pullback.ops.elementary import sqrt
from pullback.ops.elementwise import add, clamp, divide, multiply, subtract, where
from pullback.ops.joining import cat
from pullback.ops.manipulation import diag, moveaxis, needs_rank
from pullback.ops.norms import vector_norm
from pullback.ops.products import added, bmm, matmul, mv, outer, vecdot
from pullback.ops.reductions import mean, sum_
from pullback.ops.scans import cumsum
from pullback.ops.shape import expand_dims, reshape, tensor_of

__all__ = [
    "addbmm",
    "addmv",
    "addr",
    "corrcoef",
    "cov",
    "cumulative_trapezoid",
    "dist",
    "ger",
    "gradient",
    "inner",
    "pairwise_distance",
    "pdist",
    "renorm",
    "trapezoid",
    "trapz",
    "vdot",
]


# -- products --------------------------------------------------------------------------------------
@composition(sample((2,), (2, 3), (3,), beta=0.5, alpha=2.0), sample((2,), (2, 0), (0,)))
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * (mat @ vec); with beta 0, `input` is not looked at.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addmv(pb.tensor([1.0]), pb.tensor([[2.0, 3.0]]), pb.tensor([1.0, 1.0]))
    tensor([6.])
    """
    return added("addmv", input, mv(mat, vec), beta, alpha)


@composition(sample((2, 3), (2,), (3,), beta=0.5, alpha=2.0), sample((0, 2), (0,), (2,)))
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * outer(vec1, vec2); with beta 0, `input` is not looked at.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addr(pb.zeros(1, 2), pb.tensor([2.0]), pb.tensor([1.0, 3.0]))
    tensor([[2., 6.]])
    """
    return added("addr", input, outer(vec1, vec2), beta, alpha)


@composition(
    sample((2, 2), (2, 2, 1), (2, 1, 2), beta=0.5, alpha=2.0),
    sample((1, 2), (0, 1, 2), (0, 2, 2)),
)
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta * input + alpha * the sum of the products of two stacks of matrices.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.addbmm(pb.zeros(1, 1), pb.ones(3, 1, 2), pb.ones(3, 2, 1))
    tensor([[6.]])
    """
    product = sum_(bmm(batch1, batch2), axis=0, keepdims=False)
    return added("addbmm", input, product, beta, alpha)


@composition(sample((2, 3), (4, 3)), sample((), (2, 2)), sample((0,), (0,)))
def inner(input: Any, other: Any) -> Tensor:
    """Return the sums of products along the last axes, of every pair of the other axes.

    Raises
    ------
    ShapeError
        If the last axes differ in length.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.inner(pb.tensor([1.0, 2.0]), pb.tensor([3.0, 4.0]))
    tensor(11.)
    """
    input, other = tensor_of("inner", input, "input"), tensor_of("inner", other, "other")
    if not input.shape or not other.shape:
        return multiply(input, other)
    if input.shape[-1] != other.shape[-1]:
        came = f"{input.shape[-1]} and {other.shape[-1]}"
        given = (("input", input), ("other", other))
        raise ShapeError(compose("inner", "last axes of one length required", came, *given))
    result: Tensor = TENSORS.tensordot(input, other, axes=((-1,), (-1,)))
    return result


@composition(sample((3,), (3,)), sample((0,), (0,)))
def vdot(input: Any, other: Any) -> Tensor:
    """Return the sum of conj(input) * other of two vectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vdot(pb.tensor([1.0j]), pb.tensor([2.0j]))
    tensor(2.+0.j)
    """
    input, other = tensor_of("vdot", input, "input"), tensor_of("vdot", other, "other")
    if len(input.shape) != 1 or input.shape != other.shape:
        came = f"shapes {input.shape} and {other.shape}"
        given = (("input", input), ("other", other))
        raise ShapeError(compose("vdot", "two vectors of one length required", came, *given))
    return vecdot(input, other)


# -- distances -------------------------------------------------------------------------------------
@composition(sample((2, 3), (3,), p=3), sample((), ()))
def dist(input: Any, other: Any, p: float = 2) -> Tensor:
    """Return the norm of order `p` of input - other, all elements taken as one vector.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.dist(pb.tensor([3.0, 0.0]), pb.tensor([0.0, 4.0]))
    tensor(5.)
    """
    return vector_norm(subtract(input, other), ord=p)


@composition(
    sample((2, 3), (2, 3), p=3.0),
    sample((3,), (3,), keepdim=True),
    sample((0, 2), (0, 2)),
    domain=real(-2, 2),
)
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm of order `p` of x1 - x2 + eps along the last axis.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pairwise_distance(pb.tensor([[3.0, 0.0]]), pb.tensor([[0.0, 4.0]]))
    tensor([5.])
    """
    return vector_norm(add(subtract(x1, x2), eps), axis=-1, keepdims=keepdim, ord=p)


@composition(sample((3, 2)), sample((3, 1), p=1.0), sample((1, 2)), domain=real(-2, 2))
def pdist(input: Any, p: float = 2.0) -> Tensor:
    """Return the distances of every two rows, (0, 1), (0, 2), ..., (1, 2), ...

    Examples
    --------
    >>> import pullback as pb
    >>> pb.pdist(pb.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    input = tensor_of("pdist", input, "input")
    if len(input.shape) != 2:
        came = f"{len(input.shape)} dimensions"
        raise ShapeError(compose("pdist", "a matrix of rows required", came, ("input", input)))
    pairs = list(itertools.combinations(range(input.shape[0]), 2))
    ends = ([pair[k] for pair in pairs] for k in (0, 1))
    places = (TENSORS.tensor(end, dtype="int64", device=input.device) for end in ends)
    first, second = (take_slices(input, place, axis=0) for place in places)
    return vector_norm(subtract(first, second), axis=1, ord=p)


@composition(
    sample((3, 2), p=2, dim=0, maxnorm=1.0),
    sample((2, 3), p=1, dim=-1, maxnorm=2.0),
)
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return `input` with each slice along `dim` brought down to a norm of at most `maxnorm`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.renorm(pb.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    needs_rank("renorm", input, 2)
    axis = normalize_axis("renorm", dim, len(input.shape))
    others = tuple(i for i in range(len(input.shape)) if i != axis)
    lengths = vector_norm(input, axis=others, keepdims=True, ord=p)
    smaller = divide(maxnorm, add(lengths, 1e-7))
    return multiply(input, where(greater(lengths, maxnorm), smaller, 1))


# -- covariances -----------------------------------------------------------------------------------
@composition(
    sample((2, 4), (4,), (4,), correction=0),
    sample((3,), (3,), (3,)),
    domain={"input": both(-2, 2), "fweights": integers(1, 3), "aweights": real(0.5, 2)},
    constants=("fweights",),
    call=lambda input, fweights, aweights, **settings: TENSORS.cov(
        input, fweights=fweights, aweights=aweights, **settings
    ),
)
def cov(input: Any, *, correction: float = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Return the covariances of variables, a row each, of which the columns are observations.

    Parameters
    ----------
    input : Tensor, shape (variables, observations) or (observations,)
    correction : float
        What is taken off the number of observations.
    fweights : Tensor of integers, optional
        How often each was observed.
    aweights : Tensor, optional
        How much each counts.

    Raises
    ------
    ShapeError
        If there are more dimensions, or not as many weights as observations.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cov(pb.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = tensor_of("cov", input, "input")
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            needs_tensor("cov", given, name)
    if len(x.shape) > 2:
        came = f"{len(x.shape)} dimensions"
        raise ShapeError(compose("cov", "at most 2 dimensions required", came, ("input", x)))
    square = len(x.shape) == 2 and x.shape[0] != 1
    x = x if len(x.shape) == 2 else reshape(x, (1, -1))
    weights = _weights(x, fweights, aweights)
    if weights is None:
        centred = subtract(x, mean(x, axis=1, keepdims=True))
        found = divide(matmul(centred, conj(centred).mT), max(x.shape[1] - correction, 0))
        return found if square else reshape(found, ())
    total = sum_(weights, axis=None, keepdims=False)
    centre = divide(sum_(multiply(x, weights), axis=1, keepdims=True), total)
    centred = subtract(x, centre)
    count = total
    if correction and aweights is None:
        count = subtract(total, correction)
    elif correction:
        squares = sum_(multiply(weights, aweights), axis=None, keepdims=False)
        count = subtract(total, divide(multiply(squares, correction), total))
    found = matmul(multiply(centred, weights), conj(centred).mT)
    found = divide(found, clamp(count, min=0))
    return found if square else reshape(found, ())


def _weights(x: Tensor, fweights: Any, aweights: Any) -> Any:
    """Return what each observation counts for, None where all count the same."""
    given = [w for w in (fweights, aweights) if w is not None]
    for w in given:
        if tuple(w.shape) != x.shape[1:]:
            required = f"one weight for each of {x.shape[1]} observations required"
            came = f"shape {tuple(w.shape)}"
            raise ShapeError(compose("cov", required, came, ("input", x), ("weights", w)))
    return multiply(*given) if len(given) == 2 else given[0] if given else None


def _spread_out(x: Tensor) -> Tensor:
    """Bring samples of variables to ones that vary."""
    return add(x, TENSORS.arange(x.shape[-1], dtype=x.dtype, device=x.device))


@composition(sample((2, 4)), sample((3,)), domain=both(-2, 2)._replace(within=_spread_out))
def corrcoef(input: Any) -> Tensor:
    """Return the correlation coefficients of variables, a row each: `cov` over the spreads.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.corrcoef(pb.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    found = cov(input)
    if not found.shape:
        return divide(found, found)
    spread = diag(found)
    spread = sqrt(TENSORS.real(spread) if spread.dtype.is_complex else spread)
    return divide(divide(found, expand_dims(spread, 1)), spread)


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


@composition(sample((2, 4), (4,)), sample((3, 2), (3, 2), dim=0), sample((1,), (1,)))
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral of the straight lines between values `y` at places `x`.

    Parameters
    ----------
    y : Tensor
    x : Tensor, optional
        Of the shape of `y`, or a vector along `dim`; by default places `dx` apart.
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
    return sum_(areas, axis=-1, keepdims=False)


@composition(sample((2, 4), (4,)), sample((3, 2), (3, 2), dim=0), sample((1,), (1,)))
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
)
def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Return the derivatives of sampled values along axes, by differences of neighbours.

    Parameters
    ----------
    input : Tensor
    spacing : float or sequence
        How far apart the samples are, or one such number or vector of places an axis.
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
    if isinstance(step, (int, float)):
        gaps: Any = TENSORS.full((n - 1,), float(step), dtype=x.dtype, device=x.device)
    else:
        places = tensor_of("gradient", step, "spacing")
        gaps = subtract(places[1:], places[:-1])
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


ger, trapz = outer, trapezoid
