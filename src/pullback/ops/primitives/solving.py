"""Inverses, linear systems, ranks and determinants of matrices.

The rules are those of M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008), unless a docstring names another source.

Edge values: the derivative of det is right at singular matrices, that of slogdet is NaN there.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.errors import ShapeError, compose
from pullback.ops.arguments import array_of, holds_somewhere
from pullback.ops.axes import sum_to_shape
from pullback.ops.declare import Primitive, op_for, operation
from pullback.ops.matrices import (
    NO_CONVERGENCE,
    SQUARE,
    WELL_CONDITIONED,
    adjoint,
    attempt,
    eye,
    is_complex,
    needs_matrices,
    needs_one_stack,
    needs_square,
)
from pullback.ops.samples import both, sample


# -- determinants ----------------------------------------------------------------------------------
def _invertible(x: Any, xp: Any) -> tuple[Any, bool]:
    """Return the determinants as factors of matrices, and whether all are numbers other than 0."""
    det = xp.linalg.det(x)
    fine = not holds_somewhere(~(xp.isfinite(det) & (det != 0)))
    return xp.reshape(det, (*det.shape, 1, 1)), fine


def _products_without(s: Any, xp: Any, count: int) -> Any:
    """Return the products of the singular values but the i-th, or but the i-th and the j-th."""
    n = s.shape[-1]
    hole = eye(s, xp, n)
    others = xp.expand_dims(s, axis=-2)
    if count == 2:
        hole = xp.expand_dims(hole, axis=0) + xp.expand_dims(hole, axis=1)
        others = xp.expand_dims(others, axis=-2)
    return xp.prod(xp.where(hole > 0, xp.ones_like(others), others), axis=-1)


def _cofactors(xp: Any, x: Any) -> Any:
    det, fine = _invertible(x, xp)
    if fine:
        return det * xp.matrix_transpose(xp.linalg.inv(x))
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    turn = xp.reshape(xp.linalg.det(u) * xp.linalg.det(vh), det.shape)
    middle = xp.expand_dims(_products_without(s, xp, 1), axis=-2)
    return turn * xp.conj(xp.matmul(u * middle, vh))


def _cofactors_rule(g: Any, x: Any, xp: Any) -> Any:
    """Return the derivative of the cofactors: d (<g, W> W - W gᵀ W) with W the inverse transposed.

    Where that is not there, the matrix is turned to its singular values, for which the sums of
    products that make up a cofactor are written out.
    """
    det, fine = _invertible(x, xp)
    if fine:
        w = xp.matrix_transpose(xp.linalg.inv(x))
        along = xp.sum(g * w, axis=(-2, -1), keepdims=True)
        return det * (along * w - xp.matmul(xp.matmul(w, xp.matrix_transpose(g)), w))
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    turn = xp.reshape(xp.linalg.det(u) * xp.linalg.det(vh), det.shape)
    h = xp.matmul(xp.matmul(adjoint(u, xp), g), adjoint(vh, xp))
    one = eye(s, xp, s.shape[-1])
    two = _products_without(s, xp, 2) * (1 - one)
    diagonal = xp.sum(h * one, axis=-1, keepdims=True)
    middle = one * xp.matmul(two + 0 * h, diagonal) - two * xp.matrix_transpose(h)
    return turn * xp.matmul(xp.matmul(xp.conj(u), middle), xp.conj(vh))


cofactors_p = operation(
    "cofactors",
    _cofactors,
    rules={"x": _cofactors_rule},
    floating=True,
    domain=WELL_CONDITIONED,
    samples=SQUARE,
    scalars=False,
    doc="Return the matrices of cofactors: the gradients of the determinants.",
    batch="leading",
)


def _det(xp: Any, x: Any) -> Any:
    needs_square("det", x)
    return xp.linalg.det(x)


det_p: Primitive = operation(
    "det",
    _det,
    rules={"x": lambda g, x, xp: xp.reshape(g, (*g.shape, 1, 1)) * op_for(xp, cofactors_p)(x)},
    floating=True,
    domain=WELL_CONDITIONED,
    samples=SQUARE,
    scalars=False,
    doc="""Return the determinant of a square matrix, or of each in a stack.

    The gradient, the matrix of cofactors, and the second derivative are right at singular
    matrices too.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> x = pb.tensor([[1.0, 2.0], [2.0, 4.0]], requires_grad=True)
    >>> pb.linalg.det(x).backward()
    >>> x.grad
    tensor([[ 4., -2.],
            [-2.,  1.]])
    """,
    batch="leading",
    methods="det",
    numpy="linalg.det: a=x",
)
det = det_p.public


def _slogdet(xp: Any, x: Any) -> list[Any]:
    needs_square("slogdet", x)
    return list(xp.linalg.slogdet(x))


def _slogdet_rule(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the gradient by d log(det x) = trace(x⁻¹ dx), whose imaginary part turns the sign."""
    g_sign, slope = g
    if is_complex(x) and g_sign is not None:
        sign = xp.linalg.slogdet(x)[0]
        z = xp.conj(g_sign) * sign
        turning = (xp.conj(z) - z) / 2
        slope = turning if slope is None else slope + turning
    if slope is None:
        return None  # the sign of a real determinant does not change
    singular = xp.reshape(out == 0, (*out.shape, 1, 1))
    safe = xp.where(singular, eye(x, xp, x.shape[-1]), x)
    inverse = adjoint(xp.linalg.inv(safe), xp)
    return xp.where(singular, float("nan"), inverse * xp.reshape(slope, singular.shape))


slogdet_p = operation(
    "slogdet",
    _slogdet,
    rules={"x": _slogdet_rule},
    multi=True,
    floating=True,
    holomorphic=False,
    domain=WELL_CONDITIONED,
    samples=SQUARE,
    result_dtype=("same", "real"),
    scalars=False,
    doc="Return the signs and the logarithms of the sizes of determinants.",
    batch="leading",
)


# -- inverses --------------------------------------------------------------------------------------
def _inverse_of(op: str, xp: Any, x: Any) -> Any:
    needs_square(op, x)
    required = "invertible matrices required"
    return attempt(op, required, "a singular one", xp.linalg.inv, x)


def _inv_rule(g: Any, out: Any, xp: Any) -> Any:
    flipped = xp.matrix_transpose(out)
    return -xp.matmul(xp.matmul(flipped, g), flipped)


inv_p = operation(
    "inv",
    lambda xp, x: _inverse_of("inv", xp, x),
    rules={"x": _inv_rule},
    floating=True,
    domain=WELL_CONDITIONED,
    samples=SQUARE,
    scalars=False,
    doc="""Return the inverse of a square matrix, or of each in a stack.

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
    """,
    batch="leading",
    methods="inverse",
    numpy="linalg.inv: a=x",
)
inv = inverse = inv_p.public


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


solve_p = operation(
    "solve",
    _solve,
    rules={"x1": _solve_left, "x2": _solve_right},
    floating=True,
    domain={"x1": WELL_CONDITIONED, "x2": both(-2, 2)},
    samples=(
        sample((3, 3), (3,)),
        sample((2, 2), (2, 3)),
        sample((2, 2, 2), (2,)),
        sample((2, 1, 2, 2), (3, 2, 1)),
        sample((0, 0), (0, 2)),
        sample((0, 1, 1), (1, 1)),
    ),
    scalars=False,
    doc="""Return the solution y of x1 @ y = x2, or of each system in a stack.

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
    """,
    batch="solve",
    numpy="linalg.solve: a=x1 b=x2",
)
solve = solve_p.public


# -- inverses of matrices that have none -----------------------------------------------------------
def _tolerance(x: Any, rtol: Any) -> Any:
    """Return the size, relative to the largest, up to which a singular value counts as 0."""
    if rtol is None:
        library = library_of(x)
        return max(x.shape[-2:]) * float(library.xp.finfo(x.dtype).eps)
    return array_of(rtol)


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


pinv_p = operation(
    "pinv",
    _pinv,
    rules={"x": _pinv_rule},
    holomorphic=False,
    floating=True,
    domain=WELL_CONDITIONED,
    samples=(
        sample((2, 3), rtol=None),
        sample((3, 2), rtol=1e-10),
        sample((2, 2, 2), rtol=None),
        sample((1, 1), rtol=None),
        sample((0, 3), rtol=None),
    ),
    reference=(lambda np, x, rtol: np.linalg.pinv(x, rtol=rtol)),
    scalars=False,
    doc="""Return the Moore-Penrose pseudo-inverse of a matrix, or of each in a stack.

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
    """,
    batch="leading",
)
pinv = pinverse = pinv_p.public


def _rank(xp: Any, x: Any, *, rtol: Any = None) -> Any:
    needs_matrices("matrix_rank", x)
    library = library_of(x)
    if 0 in x.shape[-2:]:
        position = library.native_device(library.device(x))
        return library.zeros(tuple(x.shape[:-2]), DTYPES["int64"], position)
    s = attempt("matrix_rank", *NO_CONVERGENCE, xp.linalg.svdvals, x)
    limit = _tolerance(x, rtol)
    limit = limit if isinstance(limit, (int, float)) else xp.expand_dims(limit, axis=-1)
    large = s > limit * xp.max(s, axis=-1, keepdims=True)
    return xp.sum(library.astype(large, DTYPES["int64"]), axis=-1)


matrix_rank_p = operation(
    "matrix_rank",
    _rank,
    differentiable=False,
    floating=True,
    samples=(
        sample((3, 3), rtol=None),
        sample((2, 2, 3), rtol=0.5),
        sample((0, 3), rtol=None),
    ),
    reference=(
        lambda np, x, rtol: (
            np.zeros((), int) if 0 in x.shape else np.linalg.matrix_rank(x, rtol=rtol)
        )
    ),
    result_dtype="int64",
    scalars=False,
    doc="""Return the number of singular values that are not 0; it has no derivative.

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
    """,
    batch="leading",
)
matrix_rank = matrix_rank_p.public
