"""Matrices: the small helpers that forwards and rules of linear algebra share.

They work on bare arrays and, where they are given `xp`, on tensors too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pullback.arrays import NUMPY, library_of, real_of
from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops._declare import both, needs_tensor, sample

# `xp.linalg` of a rule whose backward is recorded.
TENSORS.linalg = SimpleNamespace()


def in_linalg(*functions: Callable[..., Any]) -> None:
    """Let recorded rules call these functions as ``xp.linalg.<name>``."""
    for function in functions:
        setattr(TENSORS.linalg, function.__name__, function)


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
    return _beside(x, xp, lambda own, where: own.eye(rows, columns, **where))


def upper_triangle(x: Any, xp: Any, n: int, k: int = 0) -> Any:
    """Return a square matrix with ones from the k-th diagonal upwards, real, beside `x`."""
    return _beside(x, xp, lambda own, where: own.triu(own.ones((n, n), **where), k=k))


def _beside(x: Any, xp: Any, make: Callable[[Any, Any], Any]) -> Any:
    array = x.data_array() if isinstance(x, Tensor) else x
    library = library_of(array)
    made = make(
        library.xp,
        {
            "dtype": library.native(real_of(library.dtype(array))),
            "device": library.native_device(library.device(array)),
        },
    )
    return box(made) if xp is TENSORS else made


# -- where the tests draw matrices -----------------------------------------------------------------
def spread_out(x: Tensor) -> Tensor:
    """Return small matrices with 2, 4, 6, ... added to the diagonal: well-conditioned ones."""
    rows, columns = x.shape[-2:]
    one = eye(x, TENSORS, rows, columns)
    steps = TENSORS.cumulative_sum(eye(x, TENSORS, columns), axis=-1)  # ones, from the diagonal up
    result: Tensor = x + one * TENSORS.sum(steps, axis=0) * 2
    return result


def hermitian(x: Tensor) -> Tensor:
    """Return Hermitian matrices, positive definite, with eigenvalues that lie apart."""
    x = spread_out(x)
    result: Tensor = (x + adjoint(x, TENSORS)) / 2
    return result


APART = both(-0.5, 0.5)._replace(within=spread_out)
HERMITIAN = both(-0.5, 0.5)._replace(within=hermitian)
SQUARE = (sample((3, 3)), sample((2, 2, 2)), sample((1, 1)), sample((0, 0)), sample((0, 2, 2)))


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
