"""Inverses, linear systems, powers and ranks of matrices.

The rules are those of M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), unless a docstring names another source.
"""

from __future__ import annotations

import operator
from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, ShapeError, compose
from pullback.ops._declare import both, composition, face, operation, sample
from pullback.ops._matrices import (
    APART,
    NO_CONVERGENCE,
    SQUARE,
    adjoint,
    attempt,
    eye,
    in_linalg,
    needs_matrices,
    needs_one_stack,
    needs_square,
)
from pullback.ops.conversion import clone
from pullback.ops.elementwise import where
from pullback.ops.products import matmul
from pullback.ops.shape import sum_to_shape

__all__ = [
    "inv",
    "matrix_power",
    "matrix_rank",
    "pinv",
    "solve",
]


def _inverse_of(op: str, xp: Any, x: Any) -> Any:
    needs_square(op, x)
    required = "invertible matrices required"
    return attempt(op, required, "a singular one", xp.linalg.inv, x)


def _inv_rule(g: Any, out: Any, xp: Any) -> Any:
    flipped = xp.matrix_transpose(out)
    return -xp.matmul(xp.matmul(flipped, g), flipped)


inv_ = operation(
    "inv",
    lambda xp, x: _inverse_of("inv", xp, x),
    rules={"x": _inv_rule},
    floating=True,
    domain=APART,
    samples=SQUARE,
    doc="Return the inverses of matrices.",
)


@face(inv_)
def inv(x: Any, /) -> Tensor:
    """Return the inverse of a square matrix, or of each in a stack.

    Raises
    ------
    ArgumentError
        If a matrix is singular.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.inv(pb.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv_(x)


# -- linear systems --------------------------------------------------------------------------------
def _solve(xp: Any, x1: Any, x2: Any) -> Any:
    needs_square("solve", x1, "x1")
    n, rows = x1.shape[-1], x2.shape[-2:][0] if x2.shape else 0
    if not x2.shape or rows != n:
        required = f"a vector of {n} elements or matrices of {n} rows required"
        raise ShapeError(compose("solve", required, str(tuple(x2.shape)), ("x1", x1), ("x2", x2)))
    if len(x2.shape) > 1:
        needs_one_stack("solve", (x1.shape[:-2], x2.shape[:-2]), x1=x1, x2=x2)
    required = "invertible matrices x1 required"
    return attempt("solve", required, "a singular one", xp.linalg.solve, x1, x2)


def _right_side(g: Any, x1: Any, x2_shape: Any, xp: Any) -> Any:
    """Return the gradients of the right sides, as columns of matrices."""
    columns = xp.expand_dims(g, axis=-1) if len(x2_shape) == 1 else g
    return xp.linalg.solve(xp.matrix_transpose(x1), columns)


def _solve_left(g: Any, x1: Any, out: Any, x2_shape: Any, xp: Any) -> Any:
    columns = xp.expand_dims(out, axis=-1) if len(x2_shape) == 1 else out
    right = _right_side(g, x1, x2_shape, xp)
    return -sum_to_shape(xp.matmul(right, xp.matrix_transpose(columns)), x1.shape, xp)


def _solve_right(g: Any, x1: Any, x2_shape: Any, xp: Any) -> Any:
    right = _right_side(g, x1, x2_shape, xp)
    if len(x2_shape) == 1:
        right = xp.reshape(right, right.shape[:-1])
    return sum_to_shape(right, x2_shape, xp)


solve_ = operation(
    "solve",
    _solve,
    rules={"x1": _solve_left, "x2": _solve_right},
    floating=True,
    domain={"x1": APART, "x2": both(-2, 2)},
    samples=(
        sample((3, 3), (3,)),
        sample((2, 2), (2, 3)),
        sample((2, 2, 2), (2,)),
        sample((2, 1, 2, 2), (3, 2, 1)),
        sample((0, 0), (0, 2)),
        sample((0, 1, 1), (1, 1)),
    ),
    doc="Return the solutions y of x1 @ y = x2.",
)


@face(solve_)
def solve(x1: Any, x2: Any, /) -> Tensor:
    """Return the solution y of x1 @ y = x2, or of each system in a stack.

    Parameters
    ----------
    x1 : Tensor
        Square matrices, of shape (..., n, n).
    x2 : Tensor
        A vector, of shape (n,), or matrices, of shape (..., n, k).

    Raises
    ------
    ArgumentError
        If a matrix is singular.
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.solve(pb.tensor([[2.0, 0.0], [0.0, 4.0]]), pb.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    return solve_(x1, x2)


# -- inverses of matrices that have none -----------------------------------------------------------
def _tolerance(x: Any, rtol: Any) -> Any:
    """Return the size, relative to the largest, up to which a singular value counts as 0."""
    if rtol is None:
        library = library_of(x)
        return max(x.shape[-2:]) * float(library.xp.finfo(x.dtype).eps)
    return rtol.data_array() if isinstance(rtol, Tensor) else rtol


def _pinv(xp: Any, x: Any, *, rtol: Any = None) -> Any:
    needs_matrices("pinv", x)
    return attempt("pinv", *NO_CONVERGENCE, xp.linalg.pinv, x, rtol=_tolerance(x, rtol))


def _pinv_rule(g: Any, x: Any, out: Any, xp: Any) -> Any:
    across = adjoint(out, xp)
    gh = adjoint(g, xp)
    right = xp.matmul(gh, out)
    right = xp.matmul(right - xp.matmul(x, xp.matmul(out, right)), across)
    left = xp.matmul(out, gh)
    left = xp.matmul(across, left - xp.matmul(xp.matmul(left, out), x))
    return right + left - xp.matmul(xp.matmul(across, g), across)


pinv_ = operation(
    "pinv",
    _pinv,
    rules={"x": _pinv_rule},
    holomorphic=False,
    floating=True,
    domain=APART,
    samples=(
        sample((2, 3), rtol=None),
        sample((3, 2), rtol=1e-10),
        sample((2, 2, 2), rtol=None),
        sample((1, 1), rtol=None),
        sample((0, 3), rtol=None),
    ),
    doc="Return the pseudo-inverses of matrices.",
)


@face(pinv_)
def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverse of a matrix, or of each in a stack.

    The derivative is that of G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses
    and nonlinear least squares problems whose variables separate" (1973); it holds where the rank
    does not change.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    rtol : float or Tensor, optional
        Singular values up to this times the largest count as 0; max(n, m) times the dtype's
        spacing of numbers by default.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.pinv(pb.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return pinv_(x, rtol=rtol)


def _rank(xp: Any, x: Any, *, rtol: Any = None) -> Any:
    needs_matrices("matrix_rank", x)
    library = library_of(x)
    if 0 in x.shape[-2:]:
        place = library.native_device(library.device(x))
        return library.zeros(tuple(x.shape[:-2]), DTYPES["int64"], place)
    s = attempt("matrix_rank", *NO_CONVERGENCE, xp.linalg.svdvals, x)
    limit = _tolerance(x, rtol)
    limit = limit if isinstance(limit, (int, float)) else xp.expand_dims(limit, axis=-1)
    large = s > limit * xp.max(s, axis=-1, keepdims=True)
    return xp.sum(library.astype(large, DTYPES["int64"]), axis=-1)


rank_ = operation(
    "matrix_rank",
    _rank,
    differentiable=False,
    floating=True,
    samples=(
        sample((3, 3), rtol=None),
        sample((2, 2, 3), rtol=0.5),
        sample((0, 3), rtol=None),
    ),
    doc="Return the ranks of matrices.",
)


@face(rank_)
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """Return the number of singular values that are not 0; it has no derivative.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    rtol : float or Tensor, optional
        As for `pinv`.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_rank(pb.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    return rank_(x, rtol=rtol)


@composition(
    sample((2, 2), n=3),
    sample((2, 2), n=-2),
    sample((2, 2, 2), n=1),
    sample((1, 1), n=2),
    sample((0, 0), n=5),
    domain=APART,
    call=lambda x, *, n: TENSORS.matrix_power(x, n),
)
def matrix_power(x: Any, n: int, /) -> Tensor:
    """Return the n-th power of a square matrix, or of each in a stack, by repeated squaring.

    A negative `n` takes the inverse; the 0-th power is the identity, with a gradient of 0.

    Raises
    ------
    ArgumentError
        If `n` is negative and a matrix singular.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_power(pb.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    needs_square("matrix_power", x)
    try:
        left = operator.index(n)
    except TypeError:
        came = type(n).__name__
        raise ArgumentTypeError(compose("matrix_power", "an integer n required", came)) from None
    if left == 0:
        one = eye(x, TENSORS, x.shape[-1])
        return where(one < 0, x, one)
    if left == 1:
        return clone(x)
    power = inv(x) if left < 0 else x
    left, result = abs(left), None
    while left:
        if left & 1:
            result = power if result is None else matmul(result, power)
        left >>= 1
        power = matmul(power, power) if left else power
    return result  # type: ignore[return-value]


in_linalg(inv, matrix_power, matrix_rank, pinv, solve)
