"""Linear algebra: the `linalg` extension of the Array API and more, differentiable."""

from typing import Never as _Never

from pullback.hints import absent as _absent
from pullback.ops.functions.diagonals import (
    diagonal as diagonal,
    trace as trace,
)
from pullback.ops.functions.linear_algebra import (
    EighResult as EighResult,
    EigResult as EigResult,
    QRResult as QRResult,
    SlogdetResult as SlogdetResult,
    SVDResult as SVDResult,
    eig as eig,
    eigh as eigh,
    eigvals as eigvals,
    eigvalsh as eigvalsh,
    matrix_power as matrix_power,
    qr as qr,
    slogdet as slogdet,
    svd as svd,
    svdvals as svdvals,
)
from pullback.ops.functions.manipulation import (
    matrix_transpose as matrix_transpose,
)
from pullback.ops.functions.matrix_functions import (
    LstsqResult as LstsqResult,
    cond as cond,
    lstsq as lstsq,
    matrix_exp as matrix_exp,
    multi_dot as multi_dot,
    solve_triangular as solve_triangular,
    tensorinv as tensorinv,
    tensorsolve as tensorsolve,
)
from pullback.ops.functions.norms import (
    matrix_norm as matrix_norm,
    vector_norm as vector_norm,
)
from pullback.ops.functions.products import (
    cross as cross,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    vecdot as vecdot,
)
from pullback.ops.primitives.decompositions import (
    cholesky as cholesky,
)
from pullback.ops.primitives.solving import (
    det as det,
    inv as inv,
    matrix_rank as matrix_rank,
    pinv as pinv,
    solve as solve,
)
from pullback.public_names import listed as _listed

__all__ = sorted(name for name in globals() if name[0].isalpha())
__dir__ = _listed(__name__)


def __getattr__(name: str) -> _Never:
    raise _absent(__name__, name)
