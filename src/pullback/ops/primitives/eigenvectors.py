"""Eigenvalues and eigenvectors of general matrices, which are complex.

The vectors are LAPACK's: of length 1, the largest element real. That makes their phase, and so
their derivative, well defined: a loss may depend on it. The sign alone is free, and constant.
Vectors of equal eigenvalues have no derivative; it comes out infinite or NaN.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, complex_of, library_of
from pullback.errors import ArgumentError, compose
from pullback.ops.arguments import holds_somewhere
from pullback.ops.declare import operation
from pullback.ops.gaps import over_gaps
from pullback.ops.matrices import (
    GENERAL,
    NO_CONVERGENCE,
    SQUARE,
    adjoint,
    attempt,
    eye,
    needs_square,
    without_phase,
)

# The largest element of an inverse of eigenvectors, by whether they are of single precision.
_LIMIT = {True: 0.1 / 1.2e-7, False: 0.1 / 2.2e-16}


def _on_host(x: Any, name: str) -> Any:
    """Return a function of NumPy's linear algebra for a library that has none of that name."""
    library = library_of(x)
    own = getattr(library.xp.linalg, name, None)
    if own is not None:
        return own
    from_host = library.from_numpy

    def on_host(x: Any) -> Any:
        result = getattr(NUMPY.xp.linalg, name)(library.to_numpy(x))
        device = library.native_device(library.device(x))
        if isinstance(result, tuple):
            return tuple(from_host(part, device) for part in result)
        return from_host(result, device)

    return on_host


def _as_complex(x: Any, like: Any) -> Any:
    library = library_of(like)
    return library.astype(x, complex_of(library.dtype(like)))


def _eig(xp: Any, x: Any) -> list[Any]:
    needs_square("eig", x)
    result = attempt("eig", *NO_CONVERGENCE, _on_host(x, "eig"), x)
    return [_as_complex(part, x) for part in result]


def _eig_rule(g: Any, w: Any, v: Any, x_dtype: Any, xp: Any) -> Any:
    """Return V⁻ᴴ (diag(gw) + conj(F) * (Vᴴ gV)) Vᴴ with F[i, j] = 1 / (w[j] - w[i]).

    gV less what the length and the phase of the vectors take away: Boeddeker et al., "On the
    computation of complex-valued gradients with application to statistically optimum beamforming"
    (2017), with LAPACK's phase.
    """
    gw, gv = g
    if 0 in v.shape:
        return v * 0 if "complex" in str(x_dtype) else xp.real(v)
    back = adjoint(v, xp)
    middle: Any = 0
    one = eye(v, xp, v.shape[-1])
    if gv is not None:
        turning = xp.matmul(back, _free(gv, v, xp))
        middle = over_gaps("eig", "eigenvectors", turning, xp.conj(w), xp)
    if gw is not None:
        middle = middle + one * xp.expand_dims(gw, axis=-2)
    required = "matrices with a basis of eigenvectors required for a gradient"
    came = "one that has none (it is defective)"
    limit = _LIMIT["complex64" in str(v.dtype)]
    inverse = attempt("eig", required, came, xp.linalg.inv, back)
    if holds_somewhere(xp.abs(inverse) > limit):
        raise ArgumentError(compose("eig", required, came))
    result = xp.matmul(xp.matmul(inverse, middle), back)
    return result if "complex" in str(x_dtype) else xp.real(result)


def _free(gv: Any, v: Any, xp: Any) -> Any:
    """Return the gradient of vectors of any length and phase, given that of LAPACK's."""
    real, one = xp.imag(v) == 0, xp.ones_like(xp.real(v))
    score = xp.where(real, xp.abs(v), -one)
    top = real & (score == xp.max(score, axis=-2, keepdims=True))
    weight = xp.where(top, one, one * 0)
    weight = weight / xp.sum(weight, axis=-2, keepdims=True)
    along = xp.sum(xp.conj(gv) * v, axis=-2, keepdims=True)
    turned = xp.imag(along) * weight / xp.where(top, xp.real(v), one)
    return gv - v * xp.real(along) + 1j * turned


eig_p: Any = operation(
    "eig",
    _eig,
    rules={"x": _eig_rule},
    results=("w", "v"),
    samples=SQUARE,
    domain=GENERAL,
    observed=without_phase,
    multi=True,
    floating=True,
    holomorphic=False,
    reference=(lambda np, x: [part + 0j for part in np.linalg.eig(x)]),
    result_dtype=("complex", "complex"),
    scalars=False,
    doc="Return the eigenvalues and eigenvectors of general matrices.",
)


def _eigvals(xp: Any, x: Any) -> Any:
    needs_square("eigvals", x)
    return _as_complex(attempt("eigvals", *NO_CONVERGENCE, _on_host(x, "eigvals"), x), x)


eigvals_p = operation(
    "general_eigenvalues",
    _eigvals,
    differentiable=False,
    samples=SQUARE,
    domain=GENERAL,
    floating=True,
    reference=(lambda np, x: np.linalg.eigvals(x) + 0j),
    result_dtype="complex",
    scalars=False,
    doc="Return the eigenvalues of general matrices, without the vectors that a gradient needs.",
)
