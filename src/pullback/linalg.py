"""Linear algebra: the `linalg` extension of the Array API, over tensors and differentiable."""

from pullback.ops.contraction import tensordot
from pullback.ops.decompositions import QRResult, cholesky, qr
from pullback.ops.determinants import SlogdetResult, det, slogdet
from pullback.ops.diagonals import diagonal, trace
from pullback.ops.norms import matrix_norm, vector_norm
from pullback.ops.products import cross, matmul, outer, vecdot
from pullback.ops.shape import matrix_transpose
from pullback.ops.solving import inv, matrix_power, matrix_rank, pinv, solve
from pullback.ops.spectral import EighResult, SVDResult, eigh, eigvalsh, svd, svdvals

__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
