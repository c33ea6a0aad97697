"""`scipy.linalg`: systems of equations and functions of matrices, differentiable of every order.

Owns SciPy's signatures and the rules of what LAPACK solves. Systems are of one matrix, functions of
matrices, inverses and determinants take stacks of them.
The rules are those of M. Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as theirs

from pullback import linalg
from pullback.core.custom.define import autograd_function
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.interop.scipy.reading import (
    are_scipys,
    as_given,
    floating,
    in_one_dtype,
    named,
    refuse,
)
from pullback.ops.functions.creation import asarray, zeros
from pullback.ops.functions.data_types import astype, finfo, result_type
from pullback.ops.functions.diagonals import tril, triu
from pullback.ops.functions.joining import concat, stack

__all__ = [
    "cho_factor",
    "cho_solve",
    "cholesky",
    "det",
    "expm",
    "inv",
    "logm",
    "solve",
    "solve_banded",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
]

_TRANSPOSED = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def _run(api: str, function: Any, *arrays: Tensor, **settings: Any) -> Tensor:
    """Call SciPy on the values; its errors of what it cannot solve become ours."""
    try:
        return asarray(function(*(x.numpy() for x in arrays), **settings))
    except theirs.LinAlgError as error:
        raise ArgumentError(compose(api, "a regular matrix required", str(error))) from None
    except ValueError as error:
        if all(np.isfinite(x.numpy()).all() for x in arrays):
            raise
        raise ArgumentError(compose(api, "finite elements required", "NaN or infinity")) from error


def _square(api: str, name: str, a: Tensor) -> Tensor:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        came = f"shape {tuple(a.shape)}"
        raise ShapeError(compose(api, f"a square matrix required as '{name}'", came))
    return a


def _with_axes(x: Any, count: int) -> Tensor:
    """Return a number as an array with axes of length 1, as SciPy does; arrays as they are."""
    result = floating(x)
    return result if result.ndim else result.reshape((1,) * count)


def _widened(api: str, name: str, x: Any) -> Tensor:
    """Return SciPy's own arrays in double precision, in which it answers; tensors as they are."""
    result = named(api, name, x)
    wide = "complex128" if result.is_complex() else "float64"
    return astype(result, wide, copy=False) if are_scipys([x]) else result


def _system(api: str, a: Any, b: Any) -> tuple[Tensor, Tensor, bool]:
    """Return matrix and right-hand sides as columns, and whether there was one without an axis."""
    a, b = in_one_dtype(a, b)
    _square(api, "a", a)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        required = f"{a.shape[0]} rows required in b, as many as a has"
        raise ShapeError(compose(api, required, f"shape {tuple(b.shape)}"))
    return a, b.reshape((b.shape[0], -1)), b.ndim == 1


# -- systems of equations --------------------------------------------------------------------------
@as_given
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """Return x with a x = b, as `scipy.linalg.solve`; nothing is overwritten.

    Parameters
    ----------
    a : (n, n) array or Tensor
    b : (n,) or (n, k) array or Tensor
    lower : bool
        With `assume_a` "sym", "her" or "pos": which triangle of `a` is looked at.
    assume_a : str, optional
        ``"gen"``, ``"sym"``, ``"her"`` or ``"pos"``.
    transposed : bool
        Solve with the transpose of `a`.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> pb.interop.scipy.linalg.solve(a, pb.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    a, b, is_vector = _system("solve", _with_axes(a, 2), _with_axes(b, 1))
    if assume_a not in (None, *_GENERAL, *_SYMMETRIC):
        required = f"assume_a one of {', '.join((*_GENERAL, *_SYMMETRIC))} required"
        raise ArgumentError(compose("solve", required, repr(assume_a)))
    if assume_a in _SYMMETRIC:
        strict = tril(a, k=-1) if lower else triu(a, k=1)
        other = strict.mT if assume_a in ("sym", "symmetric") else strict.mH
        a = strict + other + triu(tril(a))
    x = linalg.solve(a.mT if transposed else a, b)
    return x[:, 0] if is_vector else x


_GENERAL = ("gen", "general")
_SYMMETRIC = ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")


@autograd_function
def _triangular(ctx: Any, a: Any, b: Any, lower: bool, trans: str, unit: bool) -> Any:
    settings = {"lower": lower, "trans": trans, "unit_diagonal": unit}
    x = _run("solve_triangular", theirs.solve_triangular, a, b, **settings)
    ctx.save_for_backward(a=a, x=x)
    ctx.settings = (lower, trans, unit)
    return x


@_triangular.backward
def _(ctx: Any, g: Any) -> Any:
    a, x = ctx.saved_variables.a, ctx.saved_variables.x
    lower, trans, unit = ctx.settings
    if trans == "T":  # the adjoint of the transpose is the conjugate
        u = _triangular(a.conj(), g, lower, "N", unit)
        of_a = -(x.conj() @ u.mT)
    else:
        u = _triangular(a, g, lower, "C" if trans == "N" else "N", unit)
        of_a = -(u @ x.mH) if trans == "N" else -(x @ u.mH)
    triangle, away = (tril, -1) if lower else (triu, 1)
    return {"a": triangle(of_a, k=away if unit else 0), "b": u}


@as_given
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return x with op(a) x = b of a triangular matrix, as `scipy.linalg.solve_triangular`.

    `trans`: 0, 1 or 2, or "N", "T" or "C": the matrix, its transpose, its conjugate transpose.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> pb.interop.scipy.linalg.solve_triangular(a, pb.tensor([2.0, 3.0]), lower=True)
    tensor([1., 2.])
    """
    if trans not in _TRANSPOSED:
        required = "trans 0, 1, 2, 'N', 'T' or 'C' required"
        raise ArgumentError(compose("solve_triangular", required, repr(trans)))
    a, b, is_vector = _system("solve_triangular", a, b)
    x = _triangular(a, b, bool(lower), _TRANSPOSED[trans], bool(unit_diagonal))
    return x[:, 0] if is_vector else x


@as_given
def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """Return the Cholesky factor, the upper one unless `lower`, as `scipy.linalg.cholesky`.

    Its gradient is that of a symmetric matrix, as for `pb.linalg.cholesky`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.cholesky(pb.tensor([[4.0]]))
    tensor([[2.]])
    """
    a = _square("cholesky", "a", _with_axes(a, 2))
    triangle, away = (tril, -1) if lower else (triu, 1)
    whole = triangle(a) + triangle(a, k=away).mH  # SciPy looks at one triangle
    return linalg.cholesky(whole, upper=not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """Return the Cholesky factor for `cho_solve`, and whether it is the lower one.

    The other triangle holds zeros here, and no promise in SciPy.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.cho_factor(pb.tensor([[4.0]]))
    (tensor([[2.]]), False)
    """
    return cholesky(a, lower=lower), lower


@as_given
def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Return x with a x = b, of what `cho_factor` made of a.

    Examples
    --------
    >>> import pullback as pb
    >>> linalg = pb.interop.scipy.linalg
    >>> linalg.cho_solve(linalg.cho_factor(pb.tensor([[4.0]])), pb.tensor([8.0]))
    tensor([2.])
    """
    c, lower = c_and_lower
    c, b, is_vector = _system("cho_solve", c, b)
    first, second = ("N", "C") if lower else ("C", "N")
    x = _triangular(c, _triangular(c, b, lower, first, False), lower, second, False)
    return x[:, 0] if is_vector else x


# -- banded systems --------------------------------------------------------------------------------
def _shifted(row: Tensor, by: int) -> Tensor:
    """Return the elements from place `by` on, at place 0; zeros come in."""
    n = row.shape[0]
    if by == 0:
        return row
    rest = row[by:] if by > 0 else row[:by]
    empty = zeros((min(abs(by), n), *row.shape[1:]), dtype=row.dtype, device=row.device)
    return concat([rest, empty] if by > 0 else [empty, rest], axis=0)


def _adjoint_bands(ab: Tensor, low: int, high: int) -> Tensor:
    """Return the bands of the conjugate transpose."""
    rows = [_shifted(ab[high - e], e) for e in range(-low, high + 1)]
    return stack(rows).conj() if ab.is_complex() else stack(rows)


@autograd_function
def _banded(ctx: Any, ab: Any, b: Any, low: int, high: int) -> Any:
    x = _run("solve_banded", lambda m, r: theirs.solve_banded((low, high), m, r), ab, b)
    ctx.save_for_backward(ab=ab, x=x)
    ctx.bands = (low, high)
    return x


@_banded.backward
def _(ctx: Any, g: Any) -> Any:
    ab, x = ctx.saved_variables.ab, ctx.saved_variables.x
    low, high = ctx.bands
    u = _banded(_adjoint_bands(ab, low, high), g, high, low)
    away = x.conj() if x.is_complex() else x
    rows = [-(_shifted(u, e) * away).sum(axis=-1) for e in range(-high, low + 1)]
    return {"ab": stack(rows), "b": u}


@as_given
def solve_banded(
    l_and_u: tuple[int, int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return x with a x = b of a matrix with few diagonals, as `scipy.linalg.solve_banded`.

    Parameters
    ----------
    l_and_u : (int, int)
        How many diagonals there are below and above the main one.
    ab : (l + u + 1, n) array or Tensor
        The diagonals: ``ab[u + i - j, j] = a[i, j]``.
    b : (n,) or (n, k) array or Tensor

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.solve_banded((0, 0), pb.tensor([[2.0, 4.0]]), pb.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    ab, b = in_one_dtype(ab, b)
    low, high = l_and_u
    n = ab.shape[-1]
    if ab.ndim != 2 or ab.shape[0] != low + high + 1 or b.ndim not in (1, 2) or b.shape[0] != n:
        required = f"ab with {low + high + 1} rows, b with as many rows as ab has columns, required"
        came = f"shapes {tuple(ab.shape)} and {tuple(b.shape)}"
        raise ShapeError(compose("solve_banded", required, came))
    x = _banded(ab, b.reshape((n, -1)), int(low), int(high))
    return x[:, 0] if b.ndim == 1 else x


# -- functions of matrices -------------------------------------------------------------------------
@autograd_function
def _sylvester(ctx: Any, a: Any, b: Any, q: Any) -> Any:
    x = _run("solve_sylvester", theirs.solve_sylvester, a, b, q)
    ctx.save_for_backward(a=a, b=b, x=x)
    return x


@_sylvester.backward
def _(ctx: Any, g: Any) -> Any:
    a, b, x = ctx.saved_variables.a, ctx.saved_variables.b, ctx.saved_variables.x
    u = _sylvester(a.mH, b.mH, g)
    return {"a": -(u @ x.mH), "b": -(x.mH @ u), "q": u}


@as_given
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return x with a x + x b = q, as `scipy.linalg.solve_sylvester`.

    Examples
    --------
    >>> import pullback as pb
    >>> one = pb.tensor([[1.0]])
    >>> pb.interop.scipy.linalg.solve_sylvester(one, one, pb.tensor([[4.0]]))
    tensor([[2.]])
    """
    a, b, q = in_one_dtype(a, b, q)
    _square("solve_sylvester", "a", a)
    _square("solve_sylvester", "b", b)
    if q.shape != (a.shape[0], b.shape[0]):
        required = f"q of shape {(a.shape[0], b.shape[0])} required"
        raise ShapeError(compose("solve_sylvester", required, str(tuple(q.shape))))
    return _sylvester(a, b, q)


@autograd_function
def _sqrtm(ctx: Any, a: Any) -> Any:
    x = _run("sqrtm", theirs.sqrtm, a)
    ctx.save_for_backward(a=a, x=x)
    ctx.is_real = not a.is_complex()
    return x


@_sqrtm.backward
def _(ctx: Any, g: Any) -> Any:
    a, x = ctx.saved_variables.a, ctx.saved_variables.x
    values = _eigenvalues(a)
    _check_root(a, np.abs(values))
    _turn_off_cut("sqrtm", values, ctx.is_real)
    u = _sylvester(x.mH, x.mH, g)
    return u.real if ctx.is_real and u.is_complex() else u


def _eigenvalues(a: Tensor) -> Any:
    return np.linalg.eigvals(a.detach().numpy())


def _check_root(a: Tensor, sizes: Any) -> None:
    """Raise where an eigenvalue is 0, at which a square root has no derivative."""
    array = a.detach().numpy()
    is_exact = np.array_equal(array, np.triu(array))
    least = 0.0 if is_exact else float(finfo(a.dtype).eps) * float(np.max(sizes, initial=0.0))
    if sizes.size and not sizes.min() > least:
        required = "a regular matrix required for a gradient"
        came = f"eigenvalues of size {sizes.min():.3g} to {sizes.max():.3g}"
        hint = "a square root has none at 0; values alone: sqrtm(A.detach())"
        raise ArgumentError(compose("sqrtm", required, came, hint=hint))


@as_given
def sqrtm(A: Any) -> Any:
    """Return the principal square root of each matrix, as `scipy.linalg.sqrtm`.

    Matrices are in the last two axes of `A`. A real one with a negative eigenvalue has a complex
    root; there are complex results for all then.

    Raises
    ------
    ArgumentError
        If a gradient is asked for where there is none: of a singular matrix, and at negative
        eigenvalues as for `logm`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.sqrtm(pb.tensor([[4.0, 0.0], [0.0, 9.0]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    return _each(_sqrtm, _squares("sqrtm", "A", named("sqrtm", "A", A)))


def _squares(api: str, name: str, a: Tensor) -> Tensor:
    if a.ndim < 2 or a.shape[-2] != a.shape[-1]:
        came = f"shape {tuple(a.shape)}"
        raise ShapeError(compose(api, f"a square matrix, or several, required as '{name}'", came))
    return a


def _each(function: Callable[[Tensor], Tensor], a: Tensor) -> Tensor:
    """Return a function of each matrix in the last two axes."""
    if a.numel() == 0:
        return a * 1.0
    if a.ndim == 2:
        return function(a)
    matrices = a.reshape((-1, *a.shape[-2:]))
    result = [function(matrices[i]) for i in range(matrices.shape[0])]
    dtype = result_type(*result)
    return stack([astype(x, dtype, copy=False) for x in result]).reshape(a.shape)


@autograd_function
def _logm(ctx: Any, a: Any, is_block: bool) -> Any:
    dtype, wide = a.dtype, "complex128" if a.is_complex() else "float64"
    if not is_block:
        _check_regular(a)
    x = _run("logm", theirs.logm, a.to(wide))
    ctx.save_for_backward(a=a)
    ctx.is_real = not a.is_complex()
    narrow = dtype.name in ("float32", "complex64")
    return x.to("complex64" if x.is_complex() else "float32") if narrow else x


@_logm.backward
def _(ctx: Any, g: Any) -> Any:
    # The derivative L(a, e) is a block of the logarithm of [[a, e], [0, a]], and the trace of
    # g^H L(a, e) that of L(a, g^H) e: N. Higham, "Functions of Matrices" (2008), 3.2.
    a, g = in_one_dtype(ctx.saved_variables.a, g.mH)
    turn = _turn_off_cut("logm", _eigenvalues(ctx.saved_variables.a), ctx.is_real)
    if turn:  # the logarithm differs by a constant then
        a, g = a * turn, g * turn
    n = a.shape[0]
    upper = concat([a, g], axis=1)
    lower = concat([zeros((n, n), dtype=a.dtype, device=a.device), a], axis=1)
    u = _logm(concat([upper, lower], axis=0), True)[:n, n:].mH
    return u.real if ctx.is_real and u.is_complex() else u


def _check_regular(a: Tensor) -> None:
    if not np.all(np.isfinite(a.numpy())):
        raise ArgumentError(compose("logm", "finite elements required", "others", ("A", a)))
    values = np.linalg.svd(a.numpy(), compute_uv=False)
    if values.size and not values[-1] > float(finfo(a.dtype).eps) * values[0]:
        came = f"singular values from {values[-1]:.3g} to {values[0]:.3g}"
        raise ArgumentError(compose("logm", "a regular matrix required", came, ("A", a)))


def _turn_off_cut(api: str, values: Any, is_real: bool) -> complex | None:
    """Return what turns eigenvalues so that none is where the principal branch jumps.

    A real matrix keeps a negative eigenvalue that comes once on the cut, at the angle pi, when it
    changes: the branch on which it is has a derivative. Other eigenvalues leave the cut to both
    sides, and there is none.
    """
    near = 1e-6 * float(np.max(np.abs(values), initial=0.0))
    on_cut = (values.real < 0) & (np.abs(values.imag) <= near)
    if not on_cut.any():
        return None
    apart = np.abs(values[:, None] - values)
    np.fill_diagonal(apart, np.inf)
    moves = (values.imag != 0) | (apart.min(axis=1) <= near)
    wrong = on_cut & moves if is_real else on_cut
    if wrong.any():
        required = (
            "no negative eigenvalue of A, or of a real A each but once, required for a gradient"
        )
        hint = f"the principal branch jumps there; values alone: {api}(A.detach())"
        raise ArgumentError(compose(api, required, f"{values[wrong][0].real:.6g}", hint=hint))
    lowest = float(np.min(np.angle(values[~on_cut]), initial=math.pi))
    return cmath.exp(-0.5j * (math.pi + lowest))


@as_given
def logm(A: Any) -> Any:
    """Return the principal logarithm of each matrix, as `scipy.linalg.logm`.

    Matrices are in the last two axes of `A`. A real one with a negative eigenvalue has a complex
    logarithm; there are complex results for all then.

    Raises
    ------
    ArgumentError
        If a matrix is singular: it has no logarithm; or if a gradient is asked for where a complex
        matrix has a negative eigenvalue, or a real one has it several times: the principal
        logarithm jumps there.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.logm(pb.tensor([[1.0, 2.0], [0.0, 1.0]]))
    tensor([[0., 2.],
            [0., 0.]])
    """
    return _each(lambda a: _logm(a, False), _squares("logm", "A", _widened("logm", "A", A)))


@as_given
def expm(A: Any) -> Any:
    """Return the exponential of each matrix in the last two axes, as `scipy.linalg.expm`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.expm(pb.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return linalg.matrix_exp(_squares("expm", "A", _with_axes(named("expm", "A", A), 2)))


@as_given
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the inverse, as `scipy.linalg.inv`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.inv(pb.tensor([[4.0]]))
    tensor([[0.2500]])
    """
    return linalg.inv(floating(a))


@as_given
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the determinant, as `scipy.linalg.det`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.linalg.det(pb.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return linalg.det(_widened("det", "a", a))


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)
