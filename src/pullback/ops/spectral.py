"""Eigenvalues of Hermitian matrices, singular values, and the vectors that belong to them.

Eigenvectors and singular vectors are free in sign or phase, and so is their derivative: the
gradient is right for every loss that does not depend on that choice, and what depends on it is
dropped. Vectors that belong to equal eigenvalues or singular values have no derivative: where
their gradient is asked for it comes out infinite or NaN, as in PyTorch; that of the values
themselves is finite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.function.handed import TENSORS
from pullback.core.graph.modes import is_grad_enabled
from pullback.core.tensor.tensor import Tensor
from pullback.ops._declare import composition, face, operation, sample
from pullback.ops._matrices import (
    APART,
    HERMITIAN,
    NO_CONVERGENCE,
    SQUARE,
    adjoint,
    attempt,
    eye,
    in_linalg,
    is_complex,
    needs_matrices,
    needs_square,
    of_subspace,
)

__all__ = [
    "EighResult",
    "SVDResult",
    "eigh",
    "eigvalsh",
    "svd",
    "svdvals",
]


# -- eigenvectors ----------------------------------------------------------------------------------
class EighResult(NamedTuple):
    """The eigenvalues of Hermitian matrices, ascending, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _eigh(xp: Any, x: Any) -> list[Any]:
    needs_square("eigh", x)
    return list(attempt("eigh", *NO_CONVERGENCE, xp.linalg.eigh, x))


def _eigh_rule(g: Any, w: Any, v: Any, xp: Any) -> Any:
    """Return V (diag(gw) + F * (Vᴴ gV)) Vᴴ, Hermitian, with F[i, j] = 1 / (w[j] - w[i])."""
    gw, gv = g
    back = adjoint(v, xp)
    if gv is None:
        return xp.matmul(v * xp.expand_dims(gw, axis=-2), back)
    one = eye(v, xp, v.shape[-1])
    turning = xp.matmul(back, gv)
    gaps = xp.expand_dims(w, axis=-2) - xp.expand_dims(w, axis=-1) + one
    middle = (turning - adjoint(turning, xp)) * ((1 - one) / (2 * gaps))
    if gw is not None:
        middle = middle + one * xp.expand_dims(gw, axis=-2)
    return xp.matmul(xp.matmul(v, middle), back)


def _without_phase(values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and the projectors on the eigenvectors, which are determined."""
    columns = TENSORS.expand_dims(vectors, axis=-2)
    rows = TENSORS.expand_dims(TENSORS.conj(vectors), axis=-3)
    return values, columns * rows


eigh_: Any = operation(
    "eigh",
    _eigh,
    rules={"x": _eigh_rule},
    results=("w", "v"),
    samples=SQUARE,
    domain=HERMITIAN,
    observed=_without_phase,
    multi=True,
    floating=True,
    holomorphic=False,
    doc="Return the eigenvalues and eigenvectors of Hermitian matrices.",
)


@face(eigh_)
def eigh(x: Any, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix, or of each in a stack.

    The eigenvalues ascend. One triangle of `x` is read; the gradient is that of (x + xᴴ) / 2, for
    losses that do not depend on the eigenvectors' phases. Rule: M. Giles, "An extended collection
    of matrix derivative results" (2008).

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> values, vectors = pb.linalg.eigh(pb.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> values
    tensor([1., 3.])
    """
    needs_matrices("eigh", x)
    return EighResult(*eigh_(x))


def _eigvalsh(xp: Any, x: Any) -> Any:
    needs_square("eigvalsh", x)
    return attempt("eigvalsh", *NO_CONVERGENCE, xp.linalg.eigvalsh, x)


eigvalsh_ = operation(
    "eigenvalues",
    _eigvalsh,
    differentiable=False,
    samples=SQUARE,
    domain=HERMITIAN,
    floating=True,
    doc="Return the eigenvalues of Hermitian matrices, without the vectors that a gradient needs.",
)


@composition(*SQUARE, domain=HERMITIAN)
def eigvalsh(x: Any, /) -> Tensor:
    """Return the eigenvalues, ascending, of a Hermitian matrix, or of each in a stack.

    As `eigh`; the first derivative is finite where eigenvalues are equal, too.

    Raises
    ------
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eigvalsh(pb.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    needs_matrices("eigvalsh", x)
    return eigh(x).eigenvalues if _is_tracked(x) else eigvalsh_(x)


def _is_tracked(x: Any) -> bool:
    """Return whether an operation on `x` is recorded."""
    return isinstance(x, Tensor) and x.requires_grad and is_grad_enabled()


# -- singular values -------------------------------------------------------------------------------
class SVDResult(NamedTuple):
    """The factors of U diag(S) Vh; the singular values S are descending."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _svd(xp: Any, x: Any, *, full_matrices: bool = True) -> list[Any]:
    svd = xp.linalg.svd
    return list(attempt("svd", *NO_CONVERGENCE, svd, x, full_matrices=bool(full_matrices)))


def _svd_rule(g: Any, u: Any, s: Any, vh: Any, xp: Any) -> Any:
    """Return U inner Vᴴ and what the vectors owe to the spaces beside them."""
    gu, gs, gvh = g
    count = s.shape[-1]
    v, gv = adjoint(vh, xp), None if gvh is None else adjoint(gvh, xp)
    u, gu = of_subspace(u, gu, count, xp)
    v, gv = of_subspace(v, gv, count, xp)
    if gs is not None:
        gs = xp.where(s == 0, xp.zeros_like(gs), gs)  # a kink, as that of abs
    back = adjoint(v, xp)
    if gu is None and gv is None:
        return xp.matmul(u * xp.expand_dims(gs, axis=-2), back)
    result = xp.matmul(xp.matmul(u, _inner(u, s, v, (gu, gs, gv), xp)), back)
    row = xp.expand_dims(s, axis=-2)
    if gu is not None and u.shape[-2] > count:
        outside = gu - xp.matmul(u, xp.matmul(adjoint(u, xp), gu))
        result = result + xp.matmul(outside / row, back)
    if gv is not None and v.shape[-2] > count:
        outside = gv - xp.matmul(v, xp.matmul(back, gv))
        result = result + xp.matmul(u, adjoint(outside / row, xp))
    return result


def _inner(u: Any, s: Any, v: Any, grads: tuple[Any, Any, Any], xp: Any) -> Any:
    """Return Uᴴ gx V: what is within the spaces of the singular vectors."""
    gu, gs, gv = grads
    one = eye(s, xp, s.shape[-1])
    row, column = xp.expand_dims(s, axis=-2), xp.expand_dims(s, axis=-1)
    gaps = (1 - one) / (row * row - column * column + one)
    safe = xp.where(row == 0, xp.ones_like(row), row)
    phases = one / (4 * safe)  # the phase common to u and v is free; what differs is shared
    middle = 0 if gs is None else one * xp.expand_dims(gs, axis=-2)
    if gu is not None:
        turning = xp.matmul(adjoint(u, xp), gu)
        turning = turning - adjoint(turning, xp)
        middle = middle + turning * (gaps * row)
        middle = middle + turning * phases if is_complex(u) else middle
    if gv is not None:
        turning = xp.matmul(adjoint(v, xp), gv)
        turning = turning - adjoint(turning, xp)
        middle = middle + turning * (gaps * column)
        middle = middle - turning * phases if is_complex(u) else middle
    return middle


def _without_phases(u: Tensor, s: Tensor, vh: Tensor) -> tuple[Tensor, ...]:
    """Return the singular values, the products of their vectors, and the projectors on the rest."""
    count = s.shape[-1]
    columns = TENSORS.expand_dims(u[..., :count], axis=-2)
    rows = TENSORS.expand_dims(TENSORS.matrix_transpose(vh[..., :count, :]), axis=-3)
    rest, below = u[..., count:], vh[..., count:, :]
    return (
        s,
        columns * rows,
        TENSORS.matmul(rest, adjoint(rest, TENSORS)),
        TENSORS.matmul(adjoint(below, TENSORS), below),
    )


svd_: Any = operation(
    "svd",
    _svd,
    rules={"x": _svd_rule},
    results=("u", "s", "vh"),
    samples=(
        sample((3, 3), full_matrices=False),
        sample((3, 2), full_matrices=False),
        sample((2, 2, 3), full_matrices=True),
        sample((3, 1)),
        sample((0, 2), full_matrices=False),
    ),
    domain=APART,
    observed=_without_phases,
    multi=True,
    floating=True,
    holomorphic=False,
    doc="Return the factors U, S and Vh of matrices U diag(S) Vh.",
)


@face(svd_)
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """Return U, S and Vh with x = U diag(S) Vh, for a matrix or each in a stack.

    Rule: J. Townsend, "Differentiating the singular value decomposition" (2016); for complex
    matrices Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued SVD" (2019),
    for losses that do not depend on the singular vectors' common phases. The derivative of a
    singular value that is 0 is 0.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    full_matrices : bool
        Let U and Vh be square; else they have the min(n, m) columns and rows that count. The
        further ones are any basis of the space that is left, and losses must not depend on which.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.svd(pb.tensor([[0.0, 3.0], [2.0, 0.0]])).S
    tensor([3., 2.])
    """
    needs_matrices("svd", x)
    return SVDResult(*svd_(x, full_matrices=full_matrices))


def _svdvals(xp: Any, x: Any) -> Any:
    return attempt("svdvals", *NO_CONVERGENCE, xp.linalg.svdvals, x)


_STACKS = (sample((3, 3)), sample((2, 2, 3)), sample((1, 1)), sample((0, 2)))

svdvals_ = operation(
    "singular_values",
    _svdvals,
    differentiable=False,
    samples=_STACKS,
    domain=APART,
    floating=True,
    doc="Return the singular values, without the vectors that a gradient needs.",
)


@composition(*_STACKS, domain=APART)
def svdvals(x: Any, /) -> Tensor:
    """Return the singular values, descending, of a matrix, or of each in a stack.

    As `svd`; the first derivative is finite where singular values are equal, too.

    Raises
    ------
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.svdvals(pb.tensor([[0.0, 3.0], [2.0, 0.0]]))
    tensor([3., 2.])
    """
    needs_matrices("svdvals", x)
    return svd(x, full_matrices=False).S if _is_tracked(x) else svdvals_(x)


in_linalg(eigh, eigvalsh, svd, svdvals)
