"""Sparse matrices with values that may be tensors, and their products with dense ones.

A matrix is a pattern, which is constant, and the values at its places. Products and their
gradients are two operations that call each other: matrix times dense, and the products of the rows
of two dense matrices at the places of a pattern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as theirs

from pullback.core.custom.define import autograd_function
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentTypeError, ShapeError, compose
from pullback.interop.scipy.reading import as_scipy, floating, in_one_dtype
from pullback.ops.functions.creation import asarray, zeros
from pullback.ops.functions.scattering import index_add

__all__ = [
    "Pattern",
    "SparseMatrix",
    "at_places",
    "conjugate",
    "coo_array",
    "csc_array",
    "csr_array",
]

_CHUNK = 1 << 22  # elements of a temporary array


class Pattern(NamedTuple):
    """Where a matrix has values: the row and the column of each."""

    rows: Any
    columns: Any
    shape: tuple[int, int]

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transpose, with the values in the same order."""
        return Pattern(self.columns, self.rows, self.shape[::-1])

    def filled(self, values: Any) -> Any:
        """Return SciPy's matrix."""
        return theirs.coo_array((values, (self.rows, self.columns)), shape=self.shape)


# -- products --------------------------------------------------------------------------------------
@autograd_function
def _times(ctx: Any, data: Any, x: Any, pattern: Any) -> Any:
    ctx.save_for_backward(data=data, x=x)
    ctx.pattern = pattern
    return asarray(np.asarray(pattern.filled(data.numpy()).tocsr() @ x.numpy()))


@_times.backward
def _(ctx: Any, g: Any) -> Any:
    data, x, pattern = ctx.saved_variables.data, ctx.saved_variables.x, ctx.pattern
    result = {}
    if ctx.needs_input_grad.data:
        result["data"] = at_places(g, conjugate(x), pattern)
    if ctx.needs_input_grad.x:
        result["x"] = _times(conjugate(data), g, pattern.transposed)
    return result


@autograd_function
def at_places(ctx: Any, left: Any, right: Any, pattern: Any) -> Any:
    """Return, for each place of a pattern, the product of a row of `left` and one of `right`."""
    ctx.save_for_backward(left=left, right=right)
    ctx.pattern = pattern
    a, b = left.numpy(), right.numpy()
    step = max(1, _CHUNK // max(1, a.shape[1]))
    rows, columns = pattern.rows, pattern.columns
    parts = [
        np.einsum("ij,ij->i", a[rows[i : i + step]], b[columns[i : i + step]])
        for i in range(0, len(rows), step)
    ]
    return asarray(np.concatenate(parts) if parts else np.zeros(0, a.dtype))


@at_places.backward
def _(ctx: Any, g: Any) -> Any:
    left, right, pattern = ctx.saved_variables.left, ctx.saved_variables.right, ctx.pattern
    result = {}
    if ctx.needs_input_grad.left:
        result["left"] = _times(g, conjugate(right), pattern)
    if ctx.needs_input_grad.right:
        result["right"] = _times(g, conjugate(left), pattern.transposed)
    return result


def conjugate(x: Any) -> Any:
    """Return the conjugates of complex numbers; real ones as they are."""
    return x.conj() if x.is_complex() else x


# -- matrices --------------------------------------------------------------------------------------
class SparseMatrix:
    """A sparse matrix whose values may be a tensor; made by `csr_array` and its siblings.

    It has ``@``, ``*`` a number, ``.T``, ``toarray()``, ``data``, ``shape`` and ``nnz``.

    Attributes
    ----------
    data : Tensor
        The values, in the order in which they were given.
    pattern : Pattern
        Where they are; values of one place count together, as in SciPy.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.interop.scipy.sparse.csr_array(([2.0, 3.0], ([0, 1], [1, 0])))
    >>> a.shape, a.nnz, (a.T @ pb.tensor([1.0, 10.0], dtype=pb.float64)).tolist()
    ((2, 2), 2, [30.0, 2.0])
    """

    __array_ufunc__ = None  # array @ matrix comes here
    ndim = 2

    def __init__(self, data: Tensor, pattern: Pattern, original: Any) -> None:
        self.data, self.pattern, self._given = data, pattern, original

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<sparse matrix of {m} by {n}, {self.nnz} values, {self.data.dtype.name}>"

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """How many values are stored."""
        return len(self.pattern.rows)

    @property
    def T(self) -> SparseMatrix:  # noqa: N802 (SciPy's name)
        """The transpose, of the same values."""
        return SparseMatrix(self.data, self.pattern.transposed, self._given)

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a dense vector or matrix."""
        if isinstance(other, SparseMatrix) or theirs.issparse(other):
            required, hint = "a dense right-hand side required", "multiply by one vector at a time"
            came = "a sparse matrix"
            raise ArgumentTypeError(compose("sparse @", required, came, hint=hint))
        data, x = in_one_dtype(self.data, other)
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            required = f"a vector or matrix of {self.shape[1]} rows required"
            raise ShapeError(compose("sparse @", required, f"shape {tuple(x.shape)}"))
        product = _times(data, x.reshape((x.shape[0], -1)), self.pattern)
        product = product[:, 0] if x.ndim == 1 else product
        return as_scipy(product, [self._given, other])

    def __rmatmul__(self, other: Any) -> Any:
        """Return a dense vector or matrix times this one."""
        return (self.T @ other) if np.ndim(other) == 1 else (self.T @ other.T).T

    def __mul__(self, number: Any) -> SparseMatrix:
        """Return the matrix with all values multiplied by a number."""
        data, factor = in_one_dtype(self.data, number)
        if factor.ndim:
            required, hint = "a number required", "A @ x is the product of matrices"
            came = f"shape {tuple(factor.shape)}"
            raise ArgumentTypeError(compose("sparse *", required, came, hint=hint))
        original = number if isinstance(number, Tensor) else self._given
        return SparseMatrix(data * factor, self.pattern, original)

    __rmul__ = __mul__

    def __neg__(self) -> SparseMatrix:
        return self * -1.0

    def toarray(self) -> Any:
        """Return the dense matrix; the only method that makes one."""
        rows, columns, shape = self.pattern
        empty = zeros((shape[0] * shape[1],), dtype=self.data.dtype)
        dense = index_add(empty, 0, asarray(rows * shape[1] + columns), self.data).reshape(shape)
        return as_scipy(dense, [self._given])


def _matrix(api: str, arg: Any, shape: Any, kind: Any) -> SparseMatrix:
    """Return the matrix of what SciPy's constructors take; the values may be a tensor."""
    if isinstance(arg, SparseMatrix):
        return arg
    if isinstance(arg, tuple) and len(arg) in (2, 3) and not np.isscalar(arg[0]):
        data, places = arg[0], arg[1:]
        values = floating(data)
        if values.ndim != 1:
            required = "values of one axis required"
            raise ShapeError(compose(api, required, f"shape {tuple(values.shape)}", ("data", data)))
        return SparseMatrix(values, _places(api, places, values.shape[0], shape, kind), data)
    if isinstance(arg, Tensor):
        required = "a SciPy matrix, or values with their places, required"
        hint = "a dense tensor has a dense gradient: (data, (row, column)) gives values"
        raise ArgumentTypeError(compose(api, required, "a dense tensor", hint=hint))
    result = kind(arg, shape=shape).tocoo()
    return SparseMatrix(floating(result.data), _pattern(result), result.data)


def _places(api: str, places: Any, count: int, shape: Any, kind: Any) -> Pattern:
    """Return the pattern of (row, column), or of indices and where each row of them begins."""
    if len(places) == 1:
        rows, columns = (np.asarray(i, dtype=np.int64) for i in places[0])
    else:
        inner, ends = (np.asarray(i, dtype=np.int64) for i in places)
        outer = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        rows, columns = (inner, outer) if kind is theirs.csc_array else (outer, inner)
        if shape is None:
            inside = (len(ends) - 1, int(inner.max(initial=-1)) + 1)
            shape = inside[::-1] if kind is theirs.csc_array else inside
    if len(rows) != count or len(columns) != count:
        required = f"as many places as values, {count}, required"
        raise ShapeError(compose(api, required, f"{len(rows)} rows and {len(columns)} columns"))
    # SciPy checks the places against the shape, and finds the shape if there is none.
    result = theirs.coo_array((np.ones(count, dtype=bool), (rows, columns)), shape=shape)
    return Pattern(rows, columns, (int(result.shape[0]), int(result.shape[1])))


def _pattern(matrix: Any) -> Pattern:
    return Pattern(matrix.row.astype(np.int64), matrix.col.astype(np.int64), tuple(matrix.shape))


def csr_array(arg: Any, shape: Any = None) -> SparseMatrix:
    """Return a sparse matrix, as `scipy.sparse.csr_array`.

    Parameters
    ----------
    arg : sparse matrix of SciPy's, dense array, or tuple
        ``(data, (row, column))`` or ``(data, indices, indptr)``; `data` may be a tensor.
    shape : (int, int), optional

    Examples
    --------
    >>> import pullback as pb
    >>> values = pb.tensor([2.0, 3.0], requires_grad=True)
    >>> a = pb.interop.scipy.sparse.csr_array((values, ([0, 1], [1, 0])), shape=(2, 2))
    >>> (a @ pb.tensor([1.0, 10.0])).sum().backward()
    >>> values.grad
    tensor([10.,  1.])
    """
    return _matrix("csr_array", arg, shape, theirs.csr_array)


def csc_array(arg: Any, shape: Any = None) -> SparseMatrix:
    """Return a sparse matrix, as `scipy.sparse.csc_array`; see `csr_array`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.sparse.csc_array(([2.0, 3.0], ([0, 1], [1, 0]))).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    return _matrix("csc_array", arg, shape, theirs.csc_array)


def coo_array(arg: Any, shape: Any = None) -> SparseMatrix:
    """Return a sparse matrix, as `scipy.sparse.coo_array`; see `csr_array`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.interop.scipy.sparse.coo_array(([2.0, 3.0], ([0, 1], [1, 0]))).toarray()
    array([[0., 2.],
           [3., 0.]])
    """
    return _matrix("coo_array", arg, shape, theirs.coo_array)
