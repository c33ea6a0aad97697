"""Linear algebra: decompositions, eigenvalues, inverses, systems and determinants."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from pullback.arrays import library_of, real_of
from pullback.core.graph.modes import is_grad_enabled
from pullback.core.tensor.tensor import Tensor
from pullback.errors import ArgumentError, ArgumentTypeError, compose
from pullback.ops.arguments import tensor_of
from pullback.ops.declare import composition, register_xp, wrapper_of
from pullback.ops.functions.creation import eye
from pullback.ops.functions.pointwise import add, where
from pullback.ops.functions.products import matmul
from pullback.ops.matrices import (
    GENERAL,
    HERMITIAN,
    SQUARE,
    WELL_CONDITIONED,
    is_complex,
    needs_matrices,
    needs_square,
)
from pullback.ops.primitives.comparison import less
from pullback.ops.primitives.conversion import clone
from pullback.ops.primitives.decompositions import (
    STACKS,
    cholesky,
    eigh_p,
    eigvalsh_p,
    qr_p,
    svd_p,
    svdvals_p,
)
from pullback.ops.primitives.eigenvectors import eig_p, eigvals_p
from pullback.ops.primitives.exponential import log
from pullback.ops.primitives.solving import det, inv, matrix_rank, pinv, slogdet_p, solve
from pullback.ops.samples import sample


# -- QR --------------------------------------------------------------------------------------------
class QRResult(NamedTuple):
    """The factors of Q R: orthonormal columns, and an upper triangle.

    Examples
    --------
    >>> import pullback as pb
    >>> q, r = pb.linalg.qr(pb.tensor([[3.0, 1.0], [0.0, 2.0]]))
    >>> pb.allclose(q @ r, pb.tensor([[3.0, 1.0], [0.0, 2.0]]))
    True
    """

    Q: Tensor
    R: Tensor


@wrapper_of(qr_p)
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """Return Q and R with x = Q R, Q of orthonormal columns, for a matrix or each in a stack.

    Rule: D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition matrix backpropagation
    algorithms for square, wide, and deep - real or complex - matrices and their software
    implementation" (2020). The first min(n, m) columns of `x` must be linearly independent where a
    gradient is asked for.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, m).
    mode : {"reduced", "complete"}
        Whether Q has min(n, m) columns or n; the further ones are any basis of the space that is
        left, and losses must not depend on which.

    Raises
    ------
    ArgumentError
        If `mode` is another.
    ShapeError
        If `x` has fewer than two dimensions.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.qr(pb.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(compose("qr", "mode='reduced' or 'complete' required", repr(mode)))
    needs_matrices("qr", x)
    return QRResult(*qr_p.public(x, mode=mode))


# -- determinants ----------------------------------------------------------------------------------
class SlogdetResult(NamedTuple):
    """The signs of determinants (phases, of complex ones) and the logarithms of their sizes.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.slogdet(pb.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    tensor(-1.)
    """

    sign: Tensor
    logabsdet: Tensor


@wrapper_of(slogdet_p, methods="slogdet", numpy="linalg.slogdet: a=x")
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
    return SlogdetResult(*slogdet_p.public(x))


@composition(
    *SQUARE,
    domain=WELL_CONDITIONED,
    reference=(lambda np, x: np.log(np.linalg.det(x))),
    scalars=False,
    methods="logdet",
)
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
    sign, logabsdet = slogdet_p.public(x)
    if is_complex(sign):
        return add(logabsdet, log(where(sign == 0, 1.0, sign)))
    return where(less(sign, 0), float("nan"), logabsdet)


# -- eigenvectors ----------------------------------------------------------------------------------
class EighResult(NamedTuple):
    """The eigenvalues of Hermitian matrices, ascending, and the eigenvectors as columns.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eigh(pb.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


@wrapper_of(eigh_p)
def eigh(x: Any, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of a Hermitian matrix, or of each in a stack.

    The eigenvalues ascend. One triangle of `x` is read; the gradient is that of (x + xᴴ) / 2, for
    losses that do not depend on the eigenvectors' phases. Rule: M. Giles, "An extended collection
    of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).

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
    return EighResult(*eigh_p.public(x))


@composition(*SQUARE, domain=HERMITIAN, result_dtype="real", scalars=False)
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
    return eigh(x).eigenvalues if _is_tracked(x) else eigvalsh_p.public(x)


class EigResult(NamedTuple):
    """The eigenvalues of general matrices, in no order, and the eigenvectors as columns.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eig(pb.tensor([[0.0, 1.0], [4.0, 0.0]])).eigenvalues.real.sort().values
    tensor([-2.,  2.])
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


@wrapper_of(eig_p)
def eig(x: Any, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of a square matrix, or of each in a stack.

    Both are complex. The vectors have length 1 and a largest element that is real, as LAPACK has
    them; `np.linalg.eig` of a tensor makes both real where NumPy does. Of a symmetric matrix,
    `eigh` is faster and more accurate.

    Raises
    ------
    ShapeError
        If the matrices are not square.
    ArgumentError
        If a gradient is asked for and a matrix has no basis of eigenvectors.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eig(pb.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    needs_matrices("eig", x)
    return EigResult(*eig_p.public(x))


@composition(
    *SQUARE,
    domain=GENERAL,
    reference=(lambda np, x: np.linalg.eigvals(x) + 0j),
    result_dtype="complex",
    scalars=False,
)
def eigvals(x: Any, /) -> Tensor:
    """Return the eigenvalues, complex and in no order, of a square matrix, or of each in a stack.

    Raises
    ------
    ShapeError, ArgumentError
        As `eig`.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.eigvals(pb.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    needs_matrices("eigvals", x)
    return eig(x).eigenvalues if _is_tracked(x) else eigvals_p.public(x)


def _is_tracked(x: Any) -> bool:
    """Return whether an operation on `x` is recorded, or its array wraps another."""
    if not isinstance(x, Tensor):
        return False
    return (x.requires_grad and is_grad_enabled()) or library_of(x.data_array()).level > 0


# -- singular values -------------------------------------------------------------------------------
class SVDResult(NamedTuple):
    """The factors of U diag(S) Vh; the singular values S are descending.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.svd(pb.tensor([[0.0, 3.0], [4.0, 0.0]])).S
    tensor([4., 3.])
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


@wrapper_of(svd_p)
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
    return SVDResult(*svd_p.public(x, full_matrices=full_matrices))


@composition(
    *STACKS, domain=WELL_CONDITIONED, result_dtype="real", scalars=False, numpy="linalg.svdvals: x"
)
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
    return svd(x, full_matrices=False).S if _is_tracked(x) else svdvals_p.public(x)


# -- inverses and systems --------------------------------------------------------------------------
@composition(
    sample((2, 2), n=3),
    sample((2, 2), n=-2),
    sample((2, 2, 2), n=1),
    sample((1, 1), n=2),
    sample((0, 0), n=5),
    domain=WELL_CONDITIONED,
    call=lambda f, x, *, n: f(x, n),
    scalars=False,
    methods="matrix_power",
    numpy="linalg.matrix_power: a=x n",
)
def matrix_power(x: Any, n: int, /) -> Tensor:
    """Return the n-th power of a square matrix, or of each in a stack, by repeated squaring.

    A negative `n` takes the inverse; the 0-th power is the identity, with a gradient of 0.

    Raises
    ------
    ArgumentError
        If `n` is negative and a matrix singular.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.matrix_power(pb.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    needs_square("matrix_power", x)
    try:
        left = operator.index(n)
    except TypeError:
        came = type(n).__name__
        raise ArgumentTypeError(compose("matrix_power", "an integer n required", came)) from None
    if left == 0:
        x = tensor_of("matrix_power", x)
        one = eye(x.shape[-1], dtype=real_of(x.dtype), device=x.device)
        return where(one < 0, x, one)
    if left == 1:
        return clone(x)
    power = inv(x) if left < 0 else x
    left, result = abs(left), None
    while left:
        if left & 1:
            result = power if result is None else matmul(result, power)
        left >>= 1
        power = matmul(power, power) if left else power
    return result  # type: ignore[return-value]


register_xp(cholesky, det, eig, eigh, eigvals, eigvalsh, inv, matrix_power, space="linalg")
register_xp(matrix_rank, pinv, qr, slogdet, solve, svd, svdvals, space="linalg")
