"""NumPy's products, its linear algebra and its Fourier transforms on tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import linalg
from pullback.core.function.namespace import TENSOR_XP
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.numpy_protocol.arguments import (
    adapter,
    as_tensor,
    inexact,
    together,
    values_of,
)
from pullback.numpy_protocol.shaping import pad
from pullback.ops.axes import normalize_axis
from pullback.ops.functions import (
    diagonals,
)


@adapter("dot")
def dot(a: Any, b: Any) -> Any:
    """Return the product over the last axis of `a` and the second to last of `b`."""
    x, y = together(a, b)
    if not x.ndim or not y.ndim:
        return TENSOR_XP.multiply(x, y)
    if y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        return TENSOR_XP.matmul(x, y)
    return TENSOR_XP.tensordot(x, y, axes=((-1,), (-2,)))


@adapter("outer")
def outer(a: Any, b: Any) -> Any:
    """Return the products of every element of `a` with every one of `b`, both flat."""
    return TENSOR_XP.outer(*(TENSOR_XP.reshape(x, (-1,)) for x in together(a, b)))


@adapter("vdot")
def vdot(a: Any, b: Any) -> Any:
    """Return the sum of the products of the flat arrays, the first conjugated."""
    return TENSOR_XP.vdot(*(TENSOR_XP.reshape(x, (-1,)) for x in together(a, b)))


@adapter("einsum")
def einsum(*operands: Any) -> Any:
    """Sum products by Einstein's convention, from a text or from lists of axis numbers."""
    if isinstance(operands[0], str):
        return TENSOR_XP.einsum(operands[0], *together(*operands[1:]))
    arrays, lists = operands[: 2 * (len(operands) // 2) : 2], operands[1::2]
    text = ",".join(map(_letters, lists))
    if len(operands) % 2:
        text += "->" + _letters(operands[-1])
    return TENSOR_XP.einsum(text, *together(*arrays))


def _letters(axes: Sequence[Any]) -> str:
    return "".join("..." if i is Ellipsis else chr(ord("A" if i < 26 else "G") + i) for i in axes)


@adapter("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Return the discrete convolution of two vectors."""
    x, y = together(a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.shape[0] or not y.shape[0]:
        raise ShapeError(compose("np.convolve", "two vectors required", "", ("a", x), ("v", y)))
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    n, m = x.shape[0], y.shape[0]
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[
        mode
    ]
    edge = TENSOR_XP.zeros((m - 1,), dtype=x.dtype, device=x.device)
    windows = np.arange(start, start + count)[:, None] + np.arange(m)
    return TENSOR_XP.matmul(TENSOR_XP.concat([edge, x, edge])[windows], TENSOR_XP.flip(y, axis=0))


# -- polynomials -----------------------------------------------------------------------------------
@adapter("polymul")
def polymul(a1: Any, a2: Any) -> Any:
    """Return the coefficients of a product of polynomials, the highest first."""
    return convolve(a1, a2)


def _polynomial_sum(name: str, sign: int) -> None:
    @adapter(name)
    def combine(a1: Any, a2: Any) -> Any:
        x, y = together(a1, a2)
        n = max(x.shape[0], y.shape[0])
        x, y = (pad(z, (n - z.shape[0], 0)) for z in (x, y))
        return x + y * sign


_polynomial_sum("polyadd", 1)
_polynomial_sum("polysub", -1)


@adapter("polyder")
def polyder(p: Any, m: int = 1) -> Any:
    """Return the coefficients of a derivative, the highest first."""
    x = as_tensor(p)
    for _ in range(m):
        x = x[:-1] * np.arange(x.shape[0] - 1, 0, -1)
    return x


@adapter("polyint")
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the coefficients of an integral, the highest first; `k` has its constants."""
    x = as_tensor(p)
    constants = TENSOR_XP.broadcast_to(as_tensor(0.0 if k is None else k, x), (m,))
    for i in range(m):
        x = TENSOR_XP.concat([x / np.arange(x.shape[0], 0, -1), constants[i : i + 1]])
    return x


# -- sums of products ------------------------------------------------------------------------------
@adapter("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Return the cross-correlation of two vectors, the second conjugated."""
    x, y = together(a, v)
    if x.shape[0] < y.shape[0]:  # NumPy exchanges them, which matters for where "same" begins
        return TENSOR_XP.conj(TENSOR_XP.flip(correlate(y, x, mode), axis=0))
    return convolve(x, TENSOR_XP.conj(TENSOR_XP.flip(y, axis=0)), mode)


@adapter("cross")
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Return the vector product."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = together(a, b)
    x, y = TENSOR_XP.moveaxis(x, axisa, -1), TENSOR_XP.moveaxis(y, axisb, -1)
    return TENSOR_XP.moveaxis(TENSOR_XP.cross(x, y, axis=-1), -1, axisc)


@adapter("cov")
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Any:
    """Return the covariance matrix of variables, in rows by default."""
    x = _variables(m, y, rowvar)
    less = ddof if ddof is not None else int(not bias)
    weights = [w if w is None else as_tensor(w, x) for w in (fweights, aweights)]
    return TENSOR_XP.cov(x, correction=less, fweights=weights[0], aweights=weights[1])


def _variables(m: Any, y: Any, rowvar: bool) -> Any:
    """Return the variables of one or two arguments, a row each."""
    rows = []
    for array in (m,) if y is None else (m, y):
        x = inexact(array)
        x = TENSOR_XP.reshape(x, (1, -1)) if x.ndim < 2 else x
        rows.append(x if rowvar or x.shape[0] == 1 else TENSOR_XP.matrix_transpose(x))
    return rows[0] if y is None else TENSOR_XP.concat(rows)


@adapter("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """Return the matrix of correlations: the covariances over the standard deviations."""
    result = TENSOR_XP.corrcoef(_variables(x, y, rowvar))
    return result if result.dtype.is_complex else TENSOR_XP.clip(result, -1.0, 1.0)


# -- diagonals -------------------------------------------------------------------------------------
@adapter("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the diagonals of matrices in two axes."""
    return diagonals.diagonal_of(as_tensor(a), offset, axis1, axis2)


@adapter("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum of diagonals."""
    return TENSOR_XP.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# -- linear algebra --------------------------------------------------------------------------------
@adapter("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of vectors or matrices, by the number of axes; all elements by default."""
    x = as_tensor(x)
    if axis is None and (ord is None or x.ndim == 1):
        over: Any = tuple(range(x.ndim))
    else:
        over = tuple(range(x.ndim)) if axis is None else axis
    if isinstance(over, Sequence) and len(over) == 1:
        over = over[0]
    if not isinstance(over, Sequence) or (axis is None and ord is None):
        order = 2 if ord is None else ord
        return TENSOR_XP.vector_norm(x, axis=over, keepdims=keepdims, ord=order)
    if len(over) != 2:
        required = "an axis of vectors or two of matrices required"
        raise ArgumentError(compose("np.linalg.norm", required, str(over), ("x", x)))
    rows, columns = (normalize_axis("np.linalg.norm", i, x.ndim) for i in over)
    matrices = TENSOR_XP.moveaxis(x, (rows, columns), (-2, -1))
    result = TENSOR_XP.matrix_norm(matrices, ord="fro" if ord is None else ord)
    shape = tuple(1 if i in (rows, columns) else n for i, n in enumerate(x.shape))
    return TENSOR_XP.reshape(result, shape) if keepdims else result


@adapter("linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Return the singular value decomposition, or the values alone."""
    if not compute_uv:
        return TENSOR_XP.svdvals(as_tensor(a))
    return TENSOR_XP.svd(as_tensor(a), full_matrices=full_matrices)


@adapter("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return Q and R, or R alone."""
    if mode == "r":
        return TENSOR_XP.qr(as_tensor(a), mode="reduced")[1]
    return TENSOR_XP.qr(as_tensor(a), mode=mode)


def _symmetric(name: str) -> None:
    @adapter(f"linalg.{name}")
    def decompose(a: Any, UPLO: str = "L") -> Any:
        x = as_tensor(a)
        if UPLO not in ("L", "l", "U", "u"):
            required = "UPLO 'L' or 'U' required"
            raise ArgumentError(compose(f"np.linalg.{name}", required, repr(UPLO), ("a", x)))
        if UPLO in ("U", "u"):  # the counterpart reads the lower triangle
            x = TENSOR_XP.matrix_transpose(TENSOR_XP.conj(x))
        return getattr(linalg, name)(x)


_symmetric("eigh")
_symmetric("eigvalsh")


@adapter("linalg.eig")
def eig(a: Any) -> Any:
    """Return eigenvalues and eigenvectors, real where NumPy's are."""
    x = as_tensor(a)
    values, vectors = TENSOR_XP.eig(x)
    if not _are_real(x, values):
        return linalg.EigResult(values, vectors)
    return linalg.EigResult(TENSOR_XP.real(values), TENSOR_XP.real(vectors))


@adapter("linalg.eigvals")
def eigvals(a: Any) -> Any:
    """Return eigenvalues, real where NumPy's are."""
    x = as_tensor(a)
    values = TENSOR_XP.eigvals(x)
    return TENSOR_XP.real(values) if _are_real(x, values) else values


def _are_real(x: Any, values: Any) -> bool:
    """Return whether NumPy's eigenvalues are real: up to 2.4, where all of a real matrix are."""
    if x.is_complex() or _numpys_are_complex():
        return False
    return not values_of(TENSOR_XP.imag(values.detach())).any()


@functools.cache
def _numpys_are_complex() -> bool:
    return np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


@adapter("linalg.pinv")
def pinv(a: Any, rcond: Any = None, *, rtol: Any = None) -> Any:
    """Return the pseudo-inverse; `rcond` is the older name of `rtol`."""
    return TENSOR_XP.pinv(as_tensor(a), rtol=rcond if rtol is None else rtol)
