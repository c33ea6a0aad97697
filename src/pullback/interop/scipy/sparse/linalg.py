"""`scipy.sparse.linalg`: systems of sparse matrices, by SuperLU."""

from __future__ import annotations

from typing import Any

import scipy.sparse as theirs
from scipy.sparse.linalg import splu

from pullback.core.custom.define import autograd_function
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.interop.scipy.reading import as_scipy, in_one_dtype, refuse
from pullback.interop.scipy.sparse.matrices import SparseMatrix, at_places, conjugate, csc_array
from pullback.ops.functions.creation import asarray

__all__ = ["spsolve"]


@autograd_function
def _solved(ctx: Any, data: Any, b: Any, pattern: Any) -> Any:
    matrix = theirs.csc_array(pattern.filled(data.numpy()))
    try:
        x = asarray(splu(matrix).solve(b.numpy()))
    except RuntimeError as error:
        raise ArgumentError(compose("spsolve", "a regular matrix required", str(error))) from None
    ctx.save_for_backward(data=data, x=x)
    ctx.pattern = pattern
    return x


@_solved.backward
def _(ctx: Any, g: Any) -> Any:
    data, x, pattern = ctx.saved_variables.data, ctx.saved_variables.x, ctx.pattern
    u = _solved(conjugate(data), g, pattern.transposed)
    return {"data": -at_places(u, conjugate(x), pattern), "b": u}


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """Return x with A x = b of a sparse matrix, as `scipy.sparse.linalg.spsolve`.

    Parameters
    ----------
    A : SparseMatrix or sparse matrix of SciPy's, (n, n)
        With derivatives in its values.
    b : (n,) or (n, k) array or Tensor
        Dense.

    Raises
    ------
    ArgumentError
        If the matrix is singular.

    Examples
    --------
    >>> import pullback as pb
    >>> sparse = pb.interop.scipy.sparse
    >>> a = sparse.csr_array((pb.tensor([2.0, 4.0]), ([0, 1], [0, 1])), shape=(2, 2))
    >>> sparse.linalg.spsolve(a, pb.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    matrix = A if isinstance(A, SparseMatrix) else csc_array(A)
    data, right = in_one_dtype(matrix.data, b)
    n = matrix.shape[0]
    if matrix.shape != (n, n) or right.ndim not in (1, 2) or right.shape[0] != n:
        required = "a square matrix and a b of as many rows required"
        came = f"shapes {matrix.shape} and {tuple(right.shape)}"
        raise ShapeError(compose("spsolve", required, came))
    x = _solved(data, right.reshape((n, -1)), matrix.pattern)
    x = x[:, 0] if right.ndim == 1 else x
    return as_scipy(x, [matrix._given, b])


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)
