"""Triangular factors of matrices: Cholesky and QR."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, compose
from pullback.ops._declare import face, operation, sample
from pullback.ops._matrices import (
    APART,
    HERMITIAN,
    adjoint,
    attempt,
    in_linalg,
    needs_matrices,
    needs_square,
    of_subspace,
    upper_triangle,
)

__all__ = [
    "QRResult",
    "cholesky",
    "qr",
]


# -- Cholesky --------------------------------------------------------------------------------------
def _cholesky(xp: Any, x: Any, *, upper: bool = False) -> Any:
    needs_square("cholesky", x)
    required, came = "positive definite matrices required", "one that is not"
    return attempt("cholesky", required, came, xp.linalg.cholesky, x, upper=bool(upper))


def _cholesky_rule(g: Any, out: Any, upper: bool, xp: Any) -> Any:
    """Return L⁻ᴴ sym(tril(Lᴴ g)) L⁻¹, the diagonal of the triangle halved."""
    low, g = (adjoint(out, xp), adjoint(g, xp)) if upper else (out, g)
    high = adjoint(low, xp)
    n = low.shape[-1]
    weights = (upper_triangle(low, xp, n) + upper_triangle(low, xp, n, 1)) / 2
    middle = xp.matmul(high, g) * xp.matrix_transpose(weights)
    middle = (middle + adjoint(middle, xp)) / 2
    half = xp.linalg.solve(high, middle)
    return adjoint(xp.linalg.solve(high, adjoint(half, xp)), xp)


cholesky_ = operation(
    "cholesky",
    _cholesky,
    rules={"x": _cholesky_rule},
    holomorphic=False,
    floating=True,
    domain=HERMITIAN,
    samples=(
        sample((3, 3), upper=False),
        sample((2, 2, 2), upper=True),
        sample((1, 1), upper=False),
        sample((0, 0), upper=True),
    ),
    doc="Return the Cholesky factors of positive definite matrices.",
)


@face(cholesky_)
def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor L of a positive definite matrix L Lᴴ, or of each in a stack.

    One triangle of `x` is read. The gradient is that of the matrix which both triangles make,
    x = (x + xᴴ) / 2. Rule: I. Murray, "Differentiation of the Cholesky decomposition" (2016).

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n), Hermitian.
    upper : bool
        Return U with x = Uᴴ U instead.

    Raises
    ------
    ArgumentError
        If a matrix is not positive definite.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.cholesky(pb.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return cholesky_(x, upper=upper)


# -- QR --------------------------------------------------------------------------------------------
class QRResult(NamedTuple):
    """The factors of Q R: orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


def _qr(xp: Any, x: Any, *, mode: str = "reduced") -> list[Any]:
    return list(xp.linalg.qr(x, mode=mode))


def _qr_rule(g: Any, x: Any, q: Any, r: Any, xp: Any) -> Any:
    """Return the gradient of the square part, and of the columns of a wide matrix beside it."""
    gq, gr = g
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    q, gq = of_subspace(q, gq, count, xp)
    r, gr = r[..., :count, :], None if gr is None else gr[..., :count, :]
    if rows >= columns:
        return _square_rule(q, r, gq, gr, xp)
    # x = [y, z] with y square: r = [r, qᴴ z].
    right = None
    if gr is not None:
        right = gr[..., count:]
        owed = xp.matmul(x[..., count:], adjoint(right, xp))
        gq, gr = owed if gq is None else gq + owed, gr[..., :count]
    left = _square_rule(q, r[..., :count], gq, gr, xp)
    right = xp.zeros_like(x[..., count:]) if right is None else xp.matmul(q, right)
    return xp.concat([left, right], axis=-1)


def _square_rule(q: Any, r: Any, gq: Any, gr: Any, xp: Any) -> Any:
    """Return (gq + q sym(triu(gr rᴴ - qᴴ gq))) r⁻ᴴ, the diagonal of the triangle halved."""
    turning: Any = 0
    if gr is not None:
        turning = xp.matmul(gr, adjoint(r, xp))
    if gq is not None:
        turning = turning - xp.matmul(adjoint(q, xp), gq)
    n = r.shape[-1]
    half = turning * ((upper_triangle(r, xp, n) + upper_triangle(r, xp, n, 1)) / 2)
    result = xp.matmul(q, half + adjoint(half, xp))
    result = result if gq is None else result + gq
    required, came = "linearly independent columns required for a gradient", "others"
    solve = xp.linalg.solve
    return adjoint(attempt("qr", required, came, solve, r, adjoint(result, xp)), xp)


def _without_rest(q: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the columns of Q that count, R, and the projector on the columns that are left."""
    count = min(q.shape[-2], r.shape[-1])
    rest = q[..., count:]
    return q[..., :count] * 1, r, TENSORS.matmul(rest, adjoint(rest, TENSORS))


qr_: Any = operation(
    "qr",
    _qr,
    rules={"x": _qr_rule},
    results=("q", "r"),
    samples=(
        sample((3, 3)),
        sample((3, 2), mode="reduced"),
        sample((2, 2, 3), mode="reduced"),
        sample((3, 1), mode="complete"),
        sample((0, 2)),
    ),
    domain=APART,
    observed=_without_rest,
    multi=True,
    floating=True,
    holomorphic=False,
    doc="Return the factors Q and R of matrices Q R.",
)


@face(qr_)
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return Q and R with x = Q R, Q of orthonormal columns, for a matrix or each in a stack.

    Rule: D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition matrix backpropagation
    algorithms for square, wide, and deep matrices, real or complex" (2020). The first min(n, m)
    columns of `x` must be linearly independent where a gradient is asked for.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    mode : {"reduced", "complete"}
        Whether Q has min(n, m) columns or n; the further ones are any basis of the space that is
        left, and losses must not depend on which.

    Raises
    ------
    ArgumentError
        If `mode` is another.
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.qr(pb.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(compose("qr", "mode='reduced' or 'complete' required", repr(mode)))
    needs_matrices("qr", x)
    return QRResult(*qr_(x, mode=mode))


in_linalg(cholesky, qr)
