"""NumPy's products and its linear algebra on tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import linalg
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.numpy_protocol.arguments import adapter, as_tensor, inexact, together, values_of, xp
from pullback.numpy_protocol.shaping import pad
from pullback.ops.axes import normalize_axis
from pullback.ops.functions import diagonals


@adapter("dot")
def dot(a: Any, b: Any) -> Any:
    x, y = together(a, b)
    if not x.ndim or not y.ndim:
        return xp.multiply(x, y)
    if y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        return xp.matmul(x, y)
    return xp.tensordot(x, y, axes=((-1,), (-2,)))


@adapter("einsum")
def einsum(*operands: Any) -> Any:
    """Sum products by Einstein's convention, from a text or from lists of axis numbers."""
    if isinstance(operands[0], str):
        return xp.einsum(operands[0], *together(*operands[1:]))
    arrays, lists = operands[: 2 * (len(operands) // 2) : 2], operands[1::2]
    text = ",".join(map(_letters, lists))
    if len(operands) % 2:
        text += "->" + _letters(operands[-1])
    return xp.einsum(text, *together(*arrays))


def _letters(axes: Sequence[Any]) -> str:
    return "".join("..." if i is Ellipsis else chr(ord("A" if i < 26 else "G") + i) for i in axes)


@adapter("cross")
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = together(a, b)
    x, y = xp.moveaxis(x, axisa, -1), xp.moveaxis(y, axisb, -1)
    return xp.moveaxis(xp.cross(x, y, axis=-1), -1, axisc)


# -- of vectors, and of polynomials: their coefficients, the highest first -------------------------
@adapter("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, y = together(a, v)
    if x.ndim != 1 or y.ndim != 1 or not x.shape[0] or not y.shape[0]:
        raise ShapeError(compose("np.convolve", "two vectors required", "", ("a", x), ("v", y)))
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    n, m = x.shape[0], y.shape[0]
    spans = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
    start, count = spans[mode]
    edge = xp.zeros((m - 1,), dtype=x.dtype, device=x.device)
    windows = np.arange(start, start + count)[:, None] + np.arange(m)
    return xp.matmul(xp.concat([edge, x, edge])[windows], xp.flip(y, axis=0))


@adapter("correlate")
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Return the cross-correlation of two vectors, the second conjugated."""
    x, y = together(a, v)
    if x.shape[0] < y.shape[0]:  # NumPy exchanges them, which matters for where "same" begins
        return xp.conj(xp.flip(correlate(y, x, mode), axis=0))
    return convolve(x, xp.conj(xp.flip(y, axis=0)), mode)


adapter("polymul")(lambda a1, a2: convolve(a1, a2))


@adapter("polyadd")
def polyadd(a1: Any, a2: Any) -> Any:
    x, y = together(a1, a2)
    n = max(x.shape[0], y.shape[0])
    return pad(x, (n - x.shape[0], 0)) + pad(y, (n - y.shape[0], 0))


@adapter("polysub")
def polysub(a1: Any, a2: Any) -> Any:
    x, y = together(a1, a2)
    return polyadd(x, y * -1)


@adapter("polyder")
def polyder(p: Any, m: int = 1) -> Any:
    for _ in range(m):
        p = p[:-1] * np.arange(p.shape[0] - 1, 0, -1)
    return p


@adapter("polyint")
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return the coefficients of an integral; `k` has its constants."""
    x, k = together(p, 0.0 if k is None else k)
    constants = xp.broadcast_to(k, (m,))
    for i in range(m):
        x = xp.concat([x / np.arange(x.shape[0], 0, -1), constants[i : i + 1]])
    return x


@adapter("polyval")
def polyval(p: Any, x: Any) -> Any:
    coefficients, x = together(p, x)
    result = xp.zeros_like(x)
    for i in range(coefficients.shape[0]):
        result = result * x + coefficients[i]
    return result


# -- covariances -----------------------------------------------------------------------------------
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
    x, fweights, aweights = together(_variables(m, y, rowvar), fweights, aweights)
    less = ddof if ddof is not None else int(not bias)
    return xp.cov(x, correction=less, fweights=fweights, aweights=aweights)


@adapter("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    result = xp.corrcoef(_variables(x, y, rowvar))
    return result if result.dtype.is_complex else xp.clip(result, -1.0, 1.0)


def _variables(m: Any, y: Any, rowvar: bool) -> Any:
    """Return the variables of one or two arguments, a row each."""
    rows = []
    for array in (m,) if y is None else (m, y):
        x = inexact(array)
        x = xp.reshape(x, (1, -1)) if x.ndim < 2 else x
        rows.append(x if rowvar or x.shape[0] == 1 else xp.matrix_transpose(x))
    return rows[0] if y is None else xp.concat(rows)


# -- diagonals -------------------------------------------------------------------------------------
@adapter("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return diagonals.diagonal_of(as_tensor(a), offset, axis1, axis2)


@adapter("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return xp.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


# -- linear algebra --------------------------------------------------------------------------------
@adapter("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the norm of vectors or matrices, by the number of axes; all elements by default."""
    over = tuple(range(x.ndim)) if axis is None else axis
    if isinstance(over, Sequence) and len(over) == 1:
        over = over[0]
    if not isinstance(over, Sequence) or (axis is None and ord is None):
        return xp.vector_norm(x, axis=over, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(over) != 2:
        required = "an axis of vectors or two of matrices required"
        raise ArgumentError(compose("np.linalg.norm", required, str(over), ("x", x)))
    axes = tuple(normalize_axis("np.linalg.norm", i, x.ndim) for i in over)
    matrices = xp.moveaxis(x, axes, (-2, -1))
    result = xp.matrix_norm(matrices, keepdims=keepdims, ord="fro" if ord is None else ord)
    return xp.moveaxis(result, (-2, -1), axes) if keepdims else result


@adapter("linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    return xp.svd(a, full_matrices=full_matrices) if compute_uv else xp.svdvals(a)


@adapter("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    return xp.qr(a, mode="reduced")[1] if mode == "r" else xp.qr(a, mode=mode)


def _symmetric(name: str, a: Any, UPLO: str = "L") -> Any:
    if UPLO not in ("L", "l", "U", "u"):
        required = "UPLO 'L' or 'U' required"
        raise ArgumentError(compose(f"np.linalg.{name}", required, repr(UPLO), ("a", a)))
    if UPLO in ("U", "u"):  # the counterpart reads the lower triangle
        a = xp.matrix_transpose(xp.conj(a))
    return getattr(xp, name)(a)


for _name in ("eigh", "eigvalsh"):
    adapter(f"linalg.{_name}")(functools.partial(_symmetric, _name))


@adapter("linalg.eig")
def eig(a: Any) -> Any:
    values, vectors = xp.eig(a)
    if _are_real(a, values):
        values, vectors = xp.real(values), xp.real(vectors)
    return linalg.EigResult(values, vectors)


@adapter("linalg.eigvals")
def eigvals(a: Any) -> Any:
    values = xp.eigvals(a)
    return xp.real(values) if _are_real(a, values) else values


def _are_real(x: Any, values: Any) -> bool:
    """Return whether NumPy's eigenvalues are real: up to 2.4, where all of a real matrix are."""
    if x.is_complex() or _numpys_are_complex():
        return False
    return not values_of(xp.imag(values.detach())).any()


@functools.cache
def _numpys_are_complex() -> bool:
    return np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


@adapter("linalg.pinv")
def pinv(a: Any, rcond: Any = None, *, rtol: Any = None) -> Any:
    return xp.pinv(a, rtol=rcond if rtol is None else rtol)
