"""Determinants of matrices, and their logarithms.

Edge values: the derivative of det is right at singular matrices, that of slogdet is NaN there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.ops._declare import Operation, composition, face, on, operation
from pullback.ops._matrices import (
    APART,
    SQUARE,
    adjoint,
    eye,
    in_linalg,
    is_complex,
    needs_square,
)
from pullback.ops.comparison import less
from pullback.ops.elementary import log
from pullback.ops.elementwise import add, where

__all__ = [
    "SlogdetResult",
    "det",
    "logdet",
    "slogdet",
]


def _invertible(x: Any, xp: Any) -> tuple[Any, bool]:
    """Return the determinants as factors of matrices, and whether all are numbers other than 0."""
    det = xp.linalg.det(x)
    fine = bool(xp.all(xp.isfinite(det) & (det != 0)))
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


cofactors = operation(
    "cofactors",
    _cofactors,
    rules={"x": _cofactors_rule},
    floating=True,
    domain=APART,
    samples=SQUARE,
    doc="Return the matrices of cofactors: the gradients of the determinants.",
)


def _det(xp: Any, x: Any) -> Any:
    needs_square("det", x)
    return xp.linalg.det(x)


det_: Operation = operation(
    "det",
    _det,
    rules={"x": lambda g, x, xp: xp.reshape(g, (*g.shape, 1, 1)) * on(xp, cofactors)(x)},
    floating=True,
    domain=APART,
    samples=SQUARE,
    doc="Return the determinants of matrices.",
)


@face(det_)
def det(x: Any, /) -> Tensor:
    """Return the determinant of a square matrix, or of each in a stack.

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
    """
    return det_(x)


class SlogdetResult(NamedTuple):
    """The signs of determinants (phases, of complex ones) and the logarithms of their sizes."""

    sign: Tensor
    logabsdet: Tensor


def _slogdet(xp: Any, x: Any) -> list[Any]:
    needs_square("slogdet", x)
    return list(xp.linalg.slogdet(x))


def _slogdet_rule(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the gradient by d log(det x) = trace(x⁻¹ dx), whose imaginary part turns the sign."""
    g_sign, slope = g
    if is_complex(x) and g_sign is not None:
        sign = xp.linalg.slogdet(x)[0] if xp is TENSORS else out
        z = xp.conj(g_sign) * sign
        turning = (xp.conj(z) - z) / 2
        slope = turning if slope is None else slope + turning
    if slope is None:
        return None  # the sign of a real determinant does not change
    singular = xp.reshape(out == 0, (*out.shape, 1, 1))
    safe = xp.where(singular, eye(x, xp, x.shape[-1]), x)
    inverse = adjoint(xp.linalg.inv(safe), xp)
    return xp.where(singular, float("nan"), inverse * xp.reshape(slope, singular.shape))


slogdet_ = operation(
    "slogdet",
    _slogdet,
    rules={"x": _slogdet_rule},
    multi=True,
    floating=True,
    holomorphic=False,
    domain=APART,
    samples=SQUARE,
    doc="Return the signs and the logarithms of the sizes of determinants.",
)


@face(slogdet_)
def slogdet(x: Any, /) -> SlogdetResult:
    """Return sign and logabsdet with det(x) = sign * exp(logabsdet), without overflow.

    A singular matrix has sign 0 and logabsdet -inf; its gradient is NaN.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> sign, logabsdet = pb.linalg.slogdet(pb.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> sign, logabsdet
    (tensor(-1.), tensor(0.))
    """
    return SlogdetResult(*slogdet_(x))


@composition(*SQUARE, domain=APART)
def logdet(x: Any) -> Tensor:
    """Return the logarithm of the determinant of a square matrix, or of each in a stack.

    -inf for a singular matrix; NaN for a real one with a negative determinant.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.logdet(pb.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.)
    """
    sign, logabsdet = slogdet_(x)
    if is_complex(sign):
        return add(logabsdet, log(where(sign == 0, 1.0, sign)))
    return where(less(sign, 0), float("nan"), logabsdet)


in_linalg(det, slogdet)
