"""Linear algebra: the `linalg` extension of the Array API and more, differentiable."""

from pullback.ops.contraction import tensordot
from pullback.ops.decompositions import QRResult, cholesky, qr
from pullback.ops.determinants import SlogdetResult, det, slogdet
from pullback.ops.diagonals import diagonal, trace
from pullback.ops.matrix_functions import (
    LstsqResult,
    cond,
    lstsq,
    matrix_exp,
    multi_dot,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from pullback.ops.norms import matrix_norm, vector_norm
from pullback.ops.products import cross, matmul, outer, vecdot
from pullback.ops.shape import matrix_transpose
from pullback.ops.solving import inv, matrix_power, matrix_rank, pinv, solve
from pullback.ops.spectral import EighResult, SVDResult, eigh, eigvalsh, svd, svdvals

__all__ = [
    "EighResult",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
