"""Linear algebra: the `linalg` extension of the Array API and more, differentiable."""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.ops.functions.diagonals import diagonal, trace
from pullback.ops.functions.linear_algebra import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
)
from pullback.ops.functions.manipulation import matrix_transpose
from pullback.ops.functions.matrix_functions import (
    LstsqResult,
    cond,
    lstsq,
    matrix_exp,
    multi_dot,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from pullback.ops.functions.norms import matrix_norm, vector_norm
from pullback.ops.functions.products import cross, matmul, outer, tensordot, vecdot

__all__ = [
    "EigResult",
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
    "eig",
    "eigh",
    "eigvals",
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


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
