"""The methods of Tensor for matrices and vectors, as PyTorch users type them."""

from __future__ import annotations

from typing import Any, NamedTuple

from pullback.core.tensor.tensor import Tensor
from pullback.ops.declare import detach_results
from pullback.ops.functions import (
    diagonals,
    linear_algebra,
    products,
)
from pullback.ops.functions.manipulation import conjugate_transpose
from pullback.ops.methods.inplace import written
from pullback.ops.primitives import decompositions, solving


class SVD(NamedTuple):
    """The factors of U diag(S) Vᴴ, as PyTorch's method names them."""

    U: Tensor
    S: Tensor
    V: Tensor


class MatrixMethods:
    """The linear algebra among `TensorMethods`."""

    __slots__ = ()

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

    def qr(self: Any, some: bool = True) -> linear_algebra.QRResult:
        """Return Q and R; without `some`, Q is square."""
        return linear_algebra.qr(self, mode="reduced" if some else "complete")

    def svd(self: Any, some: bool = True) -> SVD:
        """Return U, S and V, this matrix being U diag(S) Vᴴ; without `some`, U and V are square."""
        u, s, vh = linear_algebra.svd(self, full_matrices=not some)
        factors = SVD(u, s, conjugate_transpose(vh))
        detach_results(factors, (self,), {})
        return factors

    def pinverse(self: Any, rcond: Any = 1e-15) -> Tensor:
        """Return the pseudo-inverse."""
        return solving.pinv(self, rtol=rcond)

    def adjoint(self: Any) -> Tensor:
        """Return the conjugate transposes of the matrices in the last two dimensions."""
        return conjugate_transpose(self)

    @property
    def H(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The conjugate transpose of a matrix."""
        return conjugate_transpose(self) if self.ndim else self

    @property
    def mH(self: Any) -> Tensor:  # noqa: N802  (PyTorch's name)
        """The conjugate transposes of the matrices in the last two dimensions."""
        return conjugate_transpose(self)
