"""Norms of vectors and matrices, and what is made of them.

Edge values, decided once: a norm that is 0 has the derivative 0; elements that tie for the largest
or smallest size share the gradient evenly.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError, compose
from pullback.ops._axes import count, either, keep_axes, normalize_axes
from pullback.ops._declare import both, composition, face, needs_tensor, operation, sample
from pullback.ops._matrices import APART, in_linalg, needs_matrices, needs_one_stack
from pullback.ops.elementary import absolute
from pullback.ops.elementwise import clamp, divide, subtract
from pullback.ops.reductions import amax, amin
from pullback.ops.reductions import sum as sum_over
from pullback.ops.shape import expand_dims, permute_dims
from pullback.ops.spectral import svdvals

__all__ = [
    "cdist",
    "matrix_norm",
    "norm",
    "normalize",
    "vector_norm",
]

_INF = math.inf


def _vector_norm(xp: Any, x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    axes = normalize_axes("vector_norm", axis, len(x.shape))
    if isinstance(ord, bool) or not isinstance(ord, (int, float)):
        came = type(ord).__name__
        raise ArgumentTypeError(compose("vector_norm", "a number as ord required", came))
    if not axes or not count(x.shape, axis):
        if ord < 0 and axes:
            required = f"elements to take the norm of order {ord} of required"
            raise ArgumentError(compose("vector_norm", required, "none", ("x", x)))
        sizes = xp.abs(x)  # of one number it is the size, or whether it is not 0
        sizes = xp.where(sizes == 0, sizes, xp.ones_like(sizes)) if ord == 0 else sizes
        return xp.sum(sizes, axis=axes, keepdims=keepdims) if axes else sizes
    return xp.linalg.vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)


def _vector_norm_rule(
    g: Any, x: Any, out: Any, axis: Any, keepdims: bool, ord: Any, xp: Any
) -> Any:
    """Return g sign(x) (|x| / norm)^(ord - 1), or what that tends to."""
    if ord == 0 or 0 in x.shape:
        return xp.zeros_like(x)
    g = keep_axes(g, x.shape, axis, keepdims, xp)
    norm = keep_axes(out, x.shape, axis, keepdims, xp)
    if ord == 1:
        return xp.sign(x) * g
    if math.isinf(ord):
        size = xp.abs(x)
        ties = (size == norm) | ((size != size) & (norm != norm))  # all NaN: every element ties
        ties = xp.where(ties, xp.ones_like(norm), xp.zeros_like(norm))
        axes = normalize_axes("vector_norm", axis, len(x.shape))
        return xp.sign(x) * (ties * (g / xp.sum(ties, axis=axes, keepdims=True)))
    flat = norm == 0
    norm = xp.where(flat, xp.ones_like(norm), norm)
    g = xp.where(flat, xp.zeros_like(g), g)
    if ord == 2:
        return x * (g / norm)
    zero = x == 0
    share = xp.where(zero, xp.ones_like(norm), xp.abs(x) / norm) ** (ord - 1)
    return xp.sign(x) * (xp.where(zero, xp.zeros_like(share), share) * g)


vector_norm_ = operation(
    "vector_norm",
    _vector_norm,
    rules={"x": _vector_norm_rule},
    holomorphic=False,
    floating=True,
    domain=both(-2, 2, 0.0),
    samples=(
        sample((3, 2), axis=None, keepdims=False, ord=2),
        sample((3, 2), axis=-1, keepdims=True, ord=1),
        sample((2, 2, 2), axis=(0, 2), keepdims=False, ord=3),
        sample((2, 3), axis=1, keepdims=False, ord=_INF),
        sample((2, 3), axis=0, keepdims=True, ord=-_INF),
        sample((4,), axis=0, keepdims=False, ord=0.5),
        sample((2, 2), axis=None, keepdims=False, ord=0),
        sample((), axis=None, keepdims=False, ord=2),
        sample((2, 0), axis=1, keepdims=False, ord=_INF),
    ),
    doc="Return the norms of vectors.",
)


@face(vector_norm_)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Return sum(abs(x) ** ord) ** (1 / ord) over axes, all of them by default.

    Parameters
    ----------
    x : Tensor
    axis : int or tuple of int, optional
        All axes by default, as if they were one.
    keepdims : bool
    ord : number
        inf and -inf give the largest and the smallest size, 0 the number of elements that are
        not 0.

    Raises
    ------
    ArgumentError
        If `ord` is negative and there are no elements.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.vector_norm(pb.tensor([3.0, -4.0]))
    tensor(5.)
    """
    needs_tensor("vector_norm", x)
    return vector_norm_(x, axis=axis, keepdims=keepdims, ord=ord)


@composition(
    sample((3, 2)),
    sample((2, 2, 3), ord="nuc"),
    sample((3, 3), ord=2, keepdims=True),
    sample((2, 3), ord=-2),
    sample((2, 3), ord=1),
    sample((2, 3), ord=-_INF),
    sample((0, 2)),
    domain=APART,
)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Return the norm of a matrix, or of each in a stack.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    keepdims : bool
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        The root of the squares' sum; the sum of the singular values; the largest and smallest sum
        of sizes in a column, singular value, sum of sizes in a row.

    Raises
    ------
    ArgumentError
        If `ord` is another, or the largest or smallest of nothing is asked for.
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_norm(pb.tensor([[1.0, 2.0], [3.0, -4.0]]), ord=1)
    tensor(6.)
    """
    needs_matrices("matrix_norm", x)
    if ord is None or ord == "fro":
        return vector_norm_(x, axis=(-2, -1), keepdims=keepdims, ord=2)
    if ord == "nuc":
        result = sum_over(svdvals(x), axis=-1)
    elif ord not in (1, -1, 2, -2, _INF, -_INF):
        required = "ord one of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf required"
        raise ArgumentError(compose("matrix_norm", required, repr(ord)))
    elif 0 in x.shape[-2:]:
        required = f"elements to take the norm of order {ord} of required"
        raise ArgumentError(compose("matrix_norm", required, "none", ("x", x)))
    else:
        across = -2 if abs(ord) == 1 else -1
        sizes = svdvals(x) if abs(ord) == 2 else sum_over(absolute(x), axis=across)
        result = (amax if ord > 0 else amin)(sizes, axis=-1)
    return expand_dims(expand_dims(result, axis=-1), axis=-1) if keepdims else result


# -- beyond the standard ---------------------------------------------------------------------------
@composition(
    sample((3, 2)),
    sample((2, 3), p=1, dim=1, keepdim=True),
    sample((2, 2, 3), p="nuc", dim=(2, 0)),
    sample(()),
    sample((0, 2), dim=1),
    domain=both(0.5, 2),
)
def norm(
    x: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    *,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of vectors, or with ``p="nuc"`` of matrices, as PyTorch's function does.

    Parameters
    ----------
    x : Tensor
    p : number, "fro" or "nuc"
        The order, as for `pullback.linalg.vector_norm`; "fro" is 2, whatever the dimensions.
    dim : int or tuple of int, optional
        What to take together, all dimensions by default; for "nuc" two.
    keepdim : bool

    Raises
    ------
    ArgumentError
        If `p` is "nuc" and there are not two dimensions to take together.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.norm(pb.tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1)
    tensor([ 5., 10.])
    """
    needs_tensor("norm", x)
    over, keep = either("norm", dim, axis), keepdim or keepdims
    if p != "nuc":
        return vector_norm_(x, axis=over, keepdims=keep, ord=2 if p in ("fro", None) else p)
    axes = normalize_axes("norm", over, len(x.shape))
    if len(axes) != 2:
        required = "two dimensions for p='nuc' required"
        raise ArgumentError(compose("norm", required, str(len(axes)), ("x", x)))
    others = [i for i in range(len(x.shape)) if i not in axes]
    result = matrix_norm(permute_dims(x, (*others, *axes)), ord="nuc")
    for i in sorted(axes) if keep else ():
        result = expand_dims(result, axis=i)
    return result


@composition(
    sample((2, 3)),
    sample((3, 2), p=1, dim=0),
    sample((3,), dim=-1),
    sample((0, 2)),
    domain=both(0.5, 2),
)
def normalize(
    input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, *, axis: Any = None
) -> Tensor:
    """Return x / max(norm of x, eps), the norm of order `p` along a dimension.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.normalize(pb.tensor([3.0, 4.0]), dim=0)
    tensor([0.6000, 0.8000])
    """
    needs_tensor("normalize", input, "input")
    over = dim if axis is None else axis
    sizes = vector_norm_(input, axis=over, keepdims=True, ord=p)
    return divide(input, clamp(sizes, min=eps))


@composition(
    sample((3, 2), (2, 2)),
    sample((2, 1, 3), (2, 3), p=1.0),
    sample((2, 2), (2, 2), p=_INF),
    sample((0, 2), (3, 2)),
    sample((2, 0), (1, 0)),
)
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Return the distances between the rows of two matrices, or of each pair in two stacks.

    Parameters
    ----------
    x1, x2 : Tensor
        Of shapes (..., n, k) and (..., m, k); the leading axes broadcast.
    p : number
        The order of the norm of the differences.

    Returns
    -------
    Tensor
        Of shape (..., n, m). The derivative of a distance of 0 is 0.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cdist(pb.tensor([[0.0, 0.0]]), pb.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    needs_matrices("cdist", x1, "x1")
    needs_matrices("cdist", x2, "x2")
    if x1.shape[-1] != x2.shape[-1]:
        came = f"{x1.shape[-1]} and {x2.shape[-1]}"
        inputs = (("x1", x1), ("x2", x2))
        raise ShapeError(compose("cdist", "rows of one length required", came, *inputs))
    needs_one_stack("cdist", (x1.shape[:-2], x2.shape[:-2]), x1=x1, x2=x2)
    differences = subtract(expand_dims(x1, axis=-2), expand_dims(x2, axis=-3))
    return vector_norm_(differences, axis=-1, keepdims=False, ord=p)


in_linalg(matrix_norm, vector_norm)
