"""Matrices: the small helpers that forwards and rules of linear algebra share.

They work on bare arrays and, where they are given `xp`, on tensors too.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, library_of, real_of
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.declare import needs_tensor
from pullback.ops.samples import both, sample


# -- checks ----------------------------------------------------------------------------------------
def needs_matrices(op: str, x: Any, name: str = "x") -> None:
    """Raise where `x` is no matrix or stack of matrices."""
    needs_tensor(op, x, name)
    if len(x.shape) < 2:
        came = f"shape {tuple(x.shape)}"
        raise ShapeError(compose(op, "a matrix or a stack of matrices required", came, (name, x)))


def needs_square(op: str, x: Any, name: str = "x") -> None:
    """Raise where `x` is no square matrix or stack of such."""
    needs_matrices(op, x, name)
    n, m = x.shape[-2:]
    if n != m:
        came = f"{n} rows and {m} columns"
        raise ShapeError(compose(op, "as many rows as columns required", came, (name, x)))


def needs_one_stack(op: str, stacks: tuple[Any, Any], **inputs: Any) -> None:
    """Raise where two shapes, those of the stacks that two inputs make, do not broadcast."""
    first, second = stacks
    pairs = zip(first[::-1], second[::-1], strict=False)
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        required = "stacks whose shapes broadcast required"
        came = f"{tuple(first)} and {tuple(second)}"
        raise ShapeError(compose(op, required, came, *inputs.items()))


_FAILED = NUMPY.xp.linalg.LinAlgError  # the other libraries raise NumPy's own


def attempt(op: str, required: str, came: str, function: Any, *arrays: Any, **settings: Any) -> Any:
    """Call a function of `xp.linalg`; where it fails, say what `op` required and what came."""
    try:
        return function(*arrays, **settings)
    except _FAILED:
        names = ("x",) if len(arrays) == 1 else ("x1", "x2")
        inputs = zip(names, arrays, strict=True)
        raise ArgumentError(compose(op, required, came, *inputs)) from None


# -- parts of rules --------------------------------------------------------------------------------
def is_complex(x: Any) -> bool:
    """Return whether an array or tensor is complex."""
    return "complex" in str(x.dtype)


def adjoint(x: Any, xp: Any) -> Any:
    """Return the conjugate transposes; those of real matrices are views."""
    flipped = xp.matrix_transpose(x)
    return xp.conj(flipped) if is_complex(x) else flipped


def eye(x: Any, xp: Any, rows: int, columns: int | None = None) -> Any:
    """Return a matrix with ones on its diagonal, real, beside the array or tensor `x`."""
    return xp.eye(rows, columns, **_beside(x))


def upper_triangle(x: Any, xp: Any, n: int, k: int = 0) -> Any:
    """Return a square matrix with ones from the k-th diagonal upwards, real, beside `x`."""
    return xp.triu(xp.ones((n, n), **_beside(x)), k=k)


def _beside(x: Any) -> dict[str, Any]:
    """Return the real dtype and the device of `x`, as the functions of its namespace take them."""
    if isinstance(x, Tensor):
        return {"dtype": real_of(x.dtype), "device": x.device}
    library = library_of(x)
    dtype = library.native(real_of(library.dtype(x)))
    return {"dtype": dtype, "device": library.native_device(library.device(x))}


# -- where the tests draw matrices -----------------------------------------------------------------
def spread_out(x: Tensor) -> Tensor:
    """Return small matrices with 2, 4, 6, ... added to the diagonal: well-conditioned ones."""
    rows, columns = x.shape[-2:]
    array = x.data_array()
    xp = library_of(array).xp
    steps = xp.sum(upper_triangle(array, xp, columns), axis=0)  # 1, 2, 3, ...
    return x + box(eye(array, xp, rows, columns) * steps * 2)


def hermitian(x: Tensor) -> Tensor:
    """Return Hermitian matrices, positive definite, with eigenvalues that are well separated."""
    x = spread_out(x)
    return (x + x.mH) / 2


def turning(x: Tensor) -> Tensor:
    """Return matrices with eigenvalues that are far apart, pairs of complex ones among them."""
    n = x.shape[-1]
    array = x.data_array()
    xp = library_of(array).xp
    upper = upper_triangle(array, xp, n, 1)
    return spread_out(x) + box((upper - xp.matrix_transpose(upper)) * 3)


WELL_CONDITIONED = both(-0.5, 0.5)._replace(within=spread_out)
GENERAL = both(-0.5, 0.5)._replace(within=turning)
HERMITIAN = both(-0.5, 0.5)._replace(within=hermitian)
SQUARE = (sample((3, 3)), sample((2, 2, 2)), sample((1, 1)), sample((0, 0)), sample((0, 2, 2)))


def without_phase(values: Any, vectors: Any) -> tuple[Any, Any]:
    """Return eigenvalues and the projectors on eigenvectors, free of their signs and phases."""
    return values, vectors[..., :, None, :] * vectors.conj()[..., None, :, :]


# What `attempt` says where an iteration does not end.
NO_CONVERGENCE = ("finite matrices required", "one for which the iteration does not converge")


def of_subspace(u: Any, gu: Any, count: int, xp: Any) -> tuple[Any, Any]:
    """Return the first columns, and their gradient with what it owes to the other columns.

    These are a basis, any one, of the space that the first leave: they turn only as that does.
    """
    if u.shape[-1] == count:
        return u, gu
    first, rest = u[..., :count], u[..., count:]
    if gu is None:
        return first, None
    back = xp.matmul(rest, xp.matmul(adjoint(gu[..., count:], xp), first))
    return first, gu[..., :count] - back
