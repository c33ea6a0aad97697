"""Linear algebra beyond the standard: exponentials, triangular systems, least squares.

All of it is made of products and solutions; a triangular system is solved as any other is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from pullback.arrays import get_default_dtype
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, compose
from pullback.ops.arguments import needs_rank, tensor_of
from pullback.ops.axes import normalize_axes
from pullback.ops.declare import composition, register_xp
from pullback.ops.functions.complex_numbers import squared_size
from pullback.ops.functions.creation import arange, eye
from pullback.ops.functions.data_types import astype
from pullback.ops.functions.diagonals import tril, triu
from pullback.ops.functions.linear_algebra import svdvals
from pullback.ops.functions.manipulation import (
    conjugate_transpose,
    expand_dims,
    flip,
    moveaxis,
    reshape,
)
from pullback.ops.functions.norms import matrix_norm
from pullback.ops.functions.pointwise import add
from pullback.ops.functions.products import matmul
from pullback.ops.matrices import needs_matrices, needs_square
from pullback.ops.primitives import reductions as reductions_primitives
from pullback.ops.primitives.arithmetic import divide, multiply, pow, subtract
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.reductions import sum_p
from pullback.ops.primitives.rounding import absolute
from pullback.ops.primitives.solving import inv, matrix_rank, pinv, solve
from pullback.ops.samples import both, real, sample


# -- products --------------------------------------------------------------------------------------
@composition(
    sample((2, 3), (3, 1), (1, 2)),
    sample((2,), (2, 3), (3,)),
    call=lambda f, x, y, z: f([x, y, z]),
    reference=(lambda np, *matrices: np.linalg.multi_dot(matrices)),
    scalars=False,
    numpy="linalg.multi_dot: *arrays=tensors",
)
def multi_dot(tensors: Sequence[Any]) -> Tensor:
    """Return the product of matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.multi_dot([pb.ones(1, 2), pb.ones(2, 3), pb.ones(3, 1)])
    tensor([[6.]])
    """
    parts = [tensor_of("multi_dot", x, f"tensors[{i}]") for i, x in enumerate(tensors)]
    if len(parts) < 2:
        raise ArgumentError(compose("multi_dot", "at least two matrices required", str(len(parts))))
    row, column = len(parts[0].shape) == 1, len(parts[-1].shape) == 1
    parts[0] = expand_dims(parts[0], 0) if row else parts[0]
    parts[-1] = expand_dims(parts[-1], 1) if column else parts[-1]
    named = [(f"tensors[{i}]", x) for i, x in enumerate(parts)]
    if any(len(x.shape) != 2 for x in parts):
        came = ", ".join(str(x.shape) for x in parts)
        raise ShapeError(compose("multi_dot", "matrices required", came, *named))
    if any(x.shape[1] != y.shape[0] for x, y in itertools.pairwise(parts)):
        came = ", ".join(str(x.shape) for x in parts)
        raise ShapeError(compose("multi_dot", "matrices that fit required", came, *named))
    product = _in_best_order(parts)
    shape = (*(() if row else product.shape[:1]), *(() if column else product.shape[1:]))
    return reshape(product, shape) if row or column else product


def _in_best_order(parts: list[Tensor]) -> Tensor:
    """Multiply by the plan of least cost, found for ever longer stretches (Cormen et al.)."""
    n = len(parts)
    sizes = [parts[0].shape[0], *(x.shape[1] for x in parts)]
    cost = {(i, i): 0 for i in range(n)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    return _multiplied(parts, cut, 0, n - 1)


def _multiplied(parts: list[Tensor], cut: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    # No closure: one that calls itself is a reference cycle, and would keep the matrices alive.
    if i == j:
        return parts[i]
    k = cut[i, j]
    return matmul(_multiplied(parts, cut, i, k), _multiplied(parts, cut, k + 1, j))


@composition(
    sample((2, 3), (3, 1)), call=lambda f, x, y: f(x, y), reference="numpy.matmul", scalars=False
)
def chain_matmul(*matrices: Any) -> Tensor:
    """Return the product of matrices in the best order; see `linalg.multi_dot`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.chain_matmul(pb.ones(1, 2), pb.ones(2, 1))
    tensor([[2.]])
    """
    return multi_dot(matrices) if len(matrices) > 1 else clone(*matrices)


# -- the exponential -------------------------------------------------------------------------------
# The numerator of the Padé approximant of degree 13, and up to which 1-norm it is exact.
_PADE = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000),
    *(10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)


_REACH = 5.371920351148152


@composition(
    sample((3, 3)),
    sample((2, 2, 2)),
    sample((0, 0)),
    reference="scipy.linalg.expm",
    scalars=False,
    methods="matrix_exp",
)
def matrix_exp(x: Any) -> Tensor:
    """Return the exponential of square matrices, the sum of x ** k / k!.

    By scaling and squaring with a Padé approximant (Higham, 2005).

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.matrix_exp(pb.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    needs_square("matrix_exp", x)
    x = tensor_of("matrix_exp", x)
    x = x if x.dtype.is_inexact else astype(x, get_default_dtype())
    n = x.shape[-1]
    if 0 in x.shape:
        return clone(x)
    largest = float(
        reductions_primitives.max(
            sum_p.public(absolute(x.detach()), axis=-2, keepdims=False), axis=None
        )
    )
    halvings = max(0, math.ceil(math.log2(largest / _REACH))) if 0 < largest < math.inf else 0
    x = divide(x, 2.0**halvings) if halvings else x
    one = eye(n, dtype=x.dtype, device=x.device)
    two = matmul(x, x)
    four = matmul(two, two)
    powers = (one, two, four, matmul(two, four))
    odd, even = (_polynomial(powers, _PADE[i::2]) for i in (1, 0))
    odd = matmul(x, odd)
    result = solve(subtract(even, odd), add(even, odd))
    for _ in range(halvings):
        result = matmul(result, result)
    return result


def _polynomial(powers: tuple[Tensor, ...], coefficients: Sequence[int]) -> Tensor:
    """Return the polynomial of degree 6 whose variable has these powers, 0 to 3."""

    def part(some: Sequence[int], first: int) -> Tensor:
        terms = [multiply(p, float(c)) for p, c in zip(powers[first:], some, strict=False)]
        total = terms[0]
        for term in terms[1:]:
            total = add(total, term)
        return total

    return add(part(coefficients[:4], 0), matmul(powers[3], part(coefficients[4:], 1)))


# -- systems of equations --------------------------------------------------------------------------
def _regular(x: Tensor) -> Tensor:
    """Bring a matrix to one whose triangles are far from singular."""
    one = eye(x.shape[-1], dtype=x.dtype, device=x.device)
    return add(x, multiply(one, 4.0))


_SYSTEM = {"A": both(-1, 1)._replace(within=_regular), "B": both(-2, 2)}


@composition(
    sample((3, 3), (3, 2), upper=True),
    sample((2, 2), (3, 2), upper=False, left=False),
    sample((2, 2, 2), (2, 2, 1), upper=False, unitriangular=True),
    domain=_SYSTEM,
    scalars=False,
)
def solve_triangular(
    A: Any,
    B: Any,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    """Return X with A X = B, or X A = B, of a triangular matrix.

    Parameters
    ----------
    A : Tensor, shape (..., n, n)
        Only one triangle of it is looked at.
    B : Tensor, shape (..., n, k), or (..., k, n)
    upper : bool
        Whether it is the upper triangle.
    left : bool
        Whether A is on the left of X.
    unitriangular : bool
        Whether the diagonal counts as ones.

    Raises
    ------
    ShapeError, LinAlgError
        If the shapes do not fit; if the matrix is singular.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> pb.linalg.solve_triangular(a, pb.tensor([[2.0], [3.0]]), upper=False)
    tensor([[1.],
            [2.]])
    """
    needs_square("solve_triangular", A, "A")
    needs_matrices("solve_triangular", B, "B")
    triangle = triu if upper else tril
    away = 1 if upper else -1
    matrix = triangle(A, k=away if unitriangular else 0)
    if unitriangular:
        one = eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        matrix = add(matrix, one)
    if left:
        return solve(matrix, B)
    return solve(matrix.mT, tensor_of("solve_triangular", B, "B").mT).mT


@composition(
    sample((3, 2), (3, 3)),
    sample((2, 1), (2, 2), upper=True),
    domain={"B": both(-2, 2), "L": both(-1, 1)._replace(within=_regular)},
    scalars=False,
    methods="cholesky_solve",
)
def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Tensor:
    """Return X with L Lᴴ X = B, of a Cholesky factor, or Uᴴ U X = B if `upper`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cholesky_solve(pb.tensor([[8.0]]), pb.tensor([[2.0]]))
    tensor([[2.]])
    """
    needs_square("cholesky_solve", L, "L")
    factor = triu(L) if upper else tril(L)
    other = conjugate_transpose(factor)
    first, second = (other, factor) if upper else (factor, other)
    return solve(second, solve(first, B))


@composition(
    sample((2, 2)),
    sample((2, 2), upper=True),
    domain=both(-1, 1)._replace(within=_regular),
    scalars=False,
    methods="cholesky_inverse",
)
def cholesky_inverse(L: Any, upper: bool = False) -> Tensor:
    """Return the inverse of L Lᴴ, of a Cholesky factor, or of Uᴴ U if `upper`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.cholesky_inverse(pb.tensor([[2.0]]))
    tensor([[0.2500]])
    """
    needs_square("cholesky_inverse", L, "L")
    factor = inv(triu(L) if upper else tril(L))
    other = conjugate_transpose(factor)
    return matmul(factor, other) if upper else matmul(other, factor)


class LstsqResult(NamedTuple):
    """The solution of least squares, and how well it fits.

    Examples
    --------
    >>> import pullback as pb
    >>> a, b = pb.tensor([[1.0], [1.0]]), pb.tensor([[1.0], [3.0]])
    >>> round(pb.linalg.lstsq(a, b).solution.item(), 4)
    2.0
    """

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@composition(
    sample((4, 2), (4, 1)),
    sample((2, 3), (2, 2)),
    sample((4, 2), (4,)),
    multi=True,
    observed=lambda solution, *rest: solution,
    scalars=False,
)
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None) -> LstsqResult:
    """Return X of least norm among those for which the norm of A X - B is least.

    Parameters
    ----------
    A : Tensor, shape (..., m, n)
    B : Tensor, shape (..., m, k)
        Or one column for each matrix, of shape (..., m); then so is X, (..., n).
    rcond : float, optional
        Singular values up to `rcond` times the largest count as 0; as for `matrix_rank`.
    driver : str, optional
        Not looked at: the pseudo-inverse is right for every rank.

    Returns
    -------
    NamedTuple of solution, residuals, rank and singular_values
        The residuals are the squared distances for each column, empty unless m > n.

    Examples
    --------
    >>> import pullback as pb
    >>> a = pb.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> pb.linalg.lstsq(a, pb.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    needs_matrices("lstsq", A, "A")
    if isinstance(B, Tensor) and B.shape == A.shape[:-1]:
        result = lstsq(A, expand_dims(B, axis=-1), rcond)
        return result._replace(solution=result.solution[..., 0])
    needs_matrices("lstsq", B, "B")
    if A.shape[-2] != B.shape[-2]:
        required = f"a B of {A.shape[-2]} rows, as many as A has, required"
        raise ShapeError(compose("lstsq", required, str(B.shape[-2]), ("A", A), ("B", B)))
    solution = matmul(pinv(A, rtol=rcond), B)
    m, n = A.shape[-2:]
    squares = squared_size(subtract(matmul(A, solution), B))
    residuals = sum_p.public(squares, axis=-2, keepdims=False)
    residuals = residuals if m > n else reshape(residuals, (-1,))[:0]
    return LstsqResult(solution, residuals, matrix_rank(A, rtol=rcond), svdvals(A))


# -- conditions and powers -------------------------------------------------------------------------
@composition(
    sample((3, 3)),
    sample((2, 2, 2), p="fro"),
    sample((3, 2), p=-2),
    domain=both(-1, 1)._replace(within=lambda x: _regular(x) if x.shape[-1] == x.shape[-2] else x),
    result_dtype="real",
    scalars=False,
    numpy="linalg.cond: x p",
)
def cond(x: Any, p: Any = None) -> Tensor:
    """Return the condition number: norm(x) * norm(inv(x)), of the norm of order `p`, 2 if None.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.cond(pb.tensor([[1.0, 0.0], [0.0, 4.0]]))
    tensor(4.)
    """
    needs_matrices("cond", x)
    if p in (None, 2, -2):
        values = svdvals(x)
        largest = reductions_primitives.max(values, axis=-1, keepdims=False)
        smallest = reductions_primitives.min(values, axis=-1, keepdims=False)
        return divide(smallest, largest) if p == -2 else divide(largest, smallest)
    return multiply(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))


@composition(
    sample((3,)),
    sample((2,), N=4),
    sample((2,), N=2, increasing=True),
    domain=real(0.5, 2),
    scalars=False,
    numpy="vander: x N increasing",
)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element of a vector, a row each, the highest first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.vander(pb.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 1., 1.],
            [4., 2., 1.],
            [9., 3., 1.]])
    """
    x = tensor_of("vander", x)
    needs_rank("vander", x, 1)
    count = x.shape[-1] if N is None else N
    powers = arange(count, dtype="int64", device=x.device)
    powers = astype(powers, x.dtype if x.dtype.is_inexact else "int64", copy=False)
    result = pow(expand_dims(x, -1), powers)
    return result if increasing else flip(result, axis=-1)


# -- tensors as matrices ---------------------------------------------------------------------------
def _regular_tensor(x: Tensor) -> Tensor:
    """Bring a tensor to one that makes a regular matrix."""
    n = math.isqrt(math.prod(x.shape))
    return reshape(_regular(reshape(x, (n, n))), x.shape)


_TENSOR = both(-1, 1)._replace(within=_regular_tensor)


@composition(
    sample((2, 3, 6), ind=2),
    sample((2, 2), ind=1),
    domain=_TENSOR,
    reference=(lambda np, x, ind=2: np.linalg.tensorinv(x, ind)),
    scalars=False,
    numpy="linalg.tensorinv: a=x ind",
)
def tensorinv(x: Any, ind: int = 2) -> Tensor:
    """Return the inverse of `x` taken for a matrix, with its first `ind` axes for the rows.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.tensorinv(pb.tensor([[2.0]]), ind=1)
    tensor([[0.5000]])
    """
    x = tensor_of("tensorinv", x)
    rows, columns = x.shape[:ind], x.shape[ind:]
    if ind < 1 or math.prod(rows) != math.prod(columns):
        required = "as many elements in the first axes as in the others required"
        came = f"{rows} and {columns}"
        raise ShapeError(compose("tensorinv", required, came, ("x", x)))
    inverse = inv(reshape(x, (math.prod(rows), -1) if 0 not in x.shape else (0, 0)))
    return reshape(inverse, (*columns, *rows))


@composition(
    sample((2, 3, 6), (2, 3)),
    sample((2, 2), (2,), dims=(0,)),
    domain={"A": _TENSOR, "B": both(-2, 2)},
    reference=(lambda np, a, b, dims=None: np.linalg.tensorsolve(a, b, dims)),
    scalars=False,
    numpy="linalg.tensorsolve: a=A b=B axes=dims",
)
def tensorsolve(A: Any, B: Any, dims: Any = None) -> Tensor:
    """Return X with tensordot(A, X, X.ndim) = B.

    Parameters
    ----------
    A, B : Tensor
    dims : sequence of int, optional
        Axes of `A` to be moved to its end first.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.tensorsolve(pb.tensor([[2.0]]), pb.tensor([6.0]))
    tensor([3.])
    """
    A, B = tensor_of("tensorsolve", A, "A"), tensor_of("tensorsolve", B, "B")
    turned = A
    if dims is not None:
        moved = normalize_axes("tensorsolve", dims, len(A.shape))
        turned = moveaxis(A, moved, tuple(range(-len(moved), 0)))
    size, shape = math.prod(B.shape), turned.shape[len(B.shape) :]
    if math.prod(shape) != size or math.prod(A.shape) != size * size:
        required = f"an A of {size} by {size} elements required"
        raise ShapeError(compose("tensorsolve", required, str(A.shape), ("A", A), ("B", B)))
    return reshape(solve(reshape(turned, (size, size)), reshape(B, (size,))), shape)


register_xp(cond, lstsq, matrix_exp, multi_dot, solve_triangular, space="linalg")
register_xp(tensorinv, tensorsolve, space="linalg")
