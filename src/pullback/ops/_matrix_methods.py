"""The methods of Tensor for matrices and vectors, as PyTorch users type them."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.function.handed import TENSORS
from pullback.core.tensor.tensor import Tensor
from pullback.ops import (
    decompositions,
    determinants,
    diagonals,
    matrix_functions,
    norms,
    products,
    solving,
    spectral,
    vectors,
)
from pullback.ops._inplace import composed, written
from pullback.ops._matrices import adjoint


class SVD(NamedTuple):
    """The factors of U diag(S) Vᴴ, as PyTorch's method names them."""

    U: Tensor
    S: Tensor
    V: Tensor


class MatrixMethods:
    """The linear algebra among `TensorMethods`."""

    __slots__ = ()

    mm, matmul, bmm, mv, dot = (
        products.mm,
        products.matmul,
        products.bmm,
        products.mv,
        products.dot,
    )
    addmm, baddbmm, outer, kron = products.addmm, products.baddbmm, products.outer, products.kron
    det, logdet, slogdet, inverse = (
        determinants.det,
        determinants.logdet,
        determinants.slogdet,
        solving.inv,
    )
    matrix_power, trace, norm = solving.matrix_power, diagonals.trace, norms.norm
    ger, inner, vdot, dist = vectors.ger, vectors.inner, vectors.vdot, vectors.dist
    addmv, addr, addbmm, renorm = vectors.addmv, vectors.addr, vectors.addbmm, vectors.renorm
    cov, corrcoef, matrix_exp = vectors.cov, vectors.corrcoef, matrix_functions.matrix_exp
    cholesky_solve, cholesky_inverse = (
        matrix_functions.cholesky_solve,
        matrix_functions.cholesky_inverse,
    )
    addmv_, addr_, addbmm_ = composed(addmv), composed(addr), composed(addbmm)
    renorm_ = composed(renorm)

    def addmm_(self: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Do `addmm` in place and return this tensor."""
        return written("addmm_", self, self.addmm(mat1, mat2, beta=beta, alpha=alpha))

    def baddbmm_(self: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Do `baddbmm` in place and return this tensor."""
        return written("baddbmm_", self, self.baddbmm(batch1, batch2, beta=beta, alpha=alpha))

    def cross(self: Any, other: Any, dim: int = -1) -> Tensor:
        """Return the cross product of vectors of three elements along `dim`."""
        return products.cross(self, other, axis=dim)

    def diagonal(self: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return the diagonals of the matrices that two dimensions make, a view."""
        return diagonals.diagonal_of(self, offset, dim1, dim2)

    def cholesky(self: Any, upper: bool = False) -> Tensor:
        """Return the triangular factor of a positive definite matrix."""
        return decompositions.cholesky(self, upper=upper)

    def qr(self: Any, some: bool = True) -> decompositions.QRResult:
        """Return Q and R; without `some`, Q is square."""
        return decompositions.qr(self, mode="reduced" if some else "complete")

    def svd(self: Any, some: bool = True) -> SVD:
        """Return U, S and V, this matrix being U diag(S) Vᴴ; without `some`, U and V are square."""
        u, s, vh = spectral.svd(self, full_matrices=not some)
        return SVD(u, s, adjoint(vh, TENSORS))

    def pinverse(self: Any, rcond: Any = 1e-15) -> Tensor:
        """Return the pseudo-inverse."""
        return solving.pinv(self, rtol=rcond)

    def adjoint(self: Any) -> Tensor:
        """Return the conjugate transposes of the matrices in the last two dimensions."""
        return adjoint(self, TENSORS)  # type: ignore[no-any-return]

    @property
    def H(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The conjugate transpose of a matrix."""
        return adjoint(self, TENSORS) if self.ndim else self  # type: ignore[no-any-return]

    @property
    def mH(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The conjugate transposes of the matrices in the last two dimensions."""
        return adjoint(self, TENSORS)  # type: ignore[no-any-return]
