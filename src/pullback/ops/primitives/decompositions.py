"""Factors of matrices: Cholesky, QR, eigenvalues and singular values.

Eigenvectors and singular vectors are free in sign or phase, and so is their derivative: the
gradient is right for every loss that does not depend on that choice, and what depends on it is
dropped. Vectors that belong to equal eigenvalues or singular values have no derivative: where
their gradient is asked for it comes out NaN, with a warning; that of the values themselves is
finite.
"""

from __future__ import annotations

from typing import Any

from pullback.ops.declare import op_for, operation
from pullback.ops.gaps import over_gaps
from pullback.ops.matrices import (
    HERMITIAN,
    NO_CONVERGENCE,
    SQUARE,
    WELL_CONDITIONED,
    adjoint,
    attempt,
    eye,
    is_complex,
    needs_square,
    of_subspace,
    upper_triangle,
    without_phase,
)
from pullback.ops.primitives.cones import toward_p
from pullback.ops.samples import sample


# -- Cholesky --------------------------------------------------------------------------------------
def _cholesky(xp: Any, x: Any, *, upper: bool = False) -> Any:
    needs_square("cholesky", x)
    required, came = "positive definite matrices required", "one that is not"
    return attempt("cholesky", required, came, xp.linalg.cholesky, x, upper=bool(upper))


def _cholesky_rule(g: Any, out: Any, upper: bool, xp: Any) -> Any:
    """Return L⁻ᴴ sym(tril(Lᴴ g)) L⁻¹, the diagonal of the triangle halved."""
    low, g = (adjoint(out, xp), adjoint(g, xp)) if upper else (out, g)
    high = adjoint(low, xp)
    n = low.shape[-1]
    weights = (upper_triangle(low, xp, n) + upper_triangle(low, xp, n, 1)) / 2
    middle = xp.matmul(high, g) * xp.matrix_transpose(weights)
    middle = (middle + adjoint(middle, xp)) / 2
    half = xp.linalg.solve(high, middle)
    return adjoint(xp.linalg.solve(high, adjoint(half, xp)), xp)


cholesky_p = operation(
    "cholesky",
    _cholesky,
    rules={"x": _cholesky_rule},
    holomorphic=False,
    floating=True,
    domain=HERMITIAN,
    samples=(
        sample((3, 3), upper=False),
        sample((2, 2, 2), upper=True),
        sample((1, 1), upper=False),
        sample((0, 0), upper=True),
    ),
    reference=(lambda np, x, upper: np.linalg.cholesky(x, upper=upper)),
    scalars=False,
    doc="""Return the triangular factor L of a positive definite matrix L Lᴴ, or of each in a stack.

    One triangle of `x` is read. The gradient is that of the matrix which both triangles make,
    x = (x + xᴴ) / 2. Rule: I. Murray, "Differentiation of the Cholesky decomposition" (2016).

    Parameters
    ----------
    x : Tensor
        Of shape (..., n, n), Hermitian.
    upper : bool
        Return U with x = Uᴴ U instead.

    Raises
    ------
    ArgumentError
        If a matrix is not positive definite.
    ShapeError
        If the matrices are not square.

    Examples
    --------
    >>> import pullback as pb
    >>> pb.linalg.cholesky(pb.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """,
    batch="leading",
    numpy="linalg.cholesky: a=x upper",
)
cholesky = cholesky_p.public


# -- QR --------------------------------------------------------------------------------------------
def _qr(xp: Any, x: Any, *, mode: str = "reduced") -> list[Any]:
    return list(xp.linalg.qr(x, mode=mode))


def _qr_rule(g: Any, x: Any, q: Any, r: Any, xp: Any) -> Any:
    """Return the gradient of the square part, and of the columns of a wide matrix beside it."""
    gq, gr = g
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    q, gq = of_subspace(q, gq, count, xp)
    r, gr = r[..., :count, :], None if gr is None else gr[..., :count, :]
    if rows >= columns:
        return _square_rule(q, r, gq, gr, xp)
    # x = [y, z] with y square: r = [r, qᴴ z].
    right = None
    if gr is not None:
        right = gr[..., count:]
        owed = xp.matmul(x[..., count:], adjoint(right, xp))
        gq, gr = owed if gq is None else gq + owed, gr[..., :count]
    left = _square_rule(q, r[..., :count], gq, gr, xp)
    right = xp.zeros_like(x[..., count:]) if right is None else xp.matmul(q, right)
    return xp.concat([left, right], axis=-1)


def _square_rule(q: Any, r: Any, gq: Any, gr: Any, xp: Any) -> Any:
    """Return (gq + q sym(triu(gr rᴴ - qᴴ gq))) r⁻ᴴ, the diagonal of the triangle halved."""
    turning: Any = 0
    if gr is not None:
        turning = xp.matmul(gr, adjoint(r, xp))
    if gq is not None:
        turning = turning - xp.matmul(adjoint(q, xp), gq)
    n = r.shape[-1]
    half = turning * ((upper_triangle(r, xp, n) + upper_triangle(r, xp, n, 1)) / 2)
    result = xp.matmul(q, half + adjoint(half, xp))
    result = result if gq is None else result + gq
    required, came = "linearly independent columns required for a gradient", "others"
    solve = xp.linalg.solve
    return adjoint(attempt("qr", required, came, solve, r, adjoint(result, xp)), xp)


def _without_rest(q: Any, r: Any) -> tuple[Any, Any, Any]:
    """Return the columns of Q that count, R, and the projector on the columns that are left."""
    count = min(q.shape[-2], r.shape[-1])
    rest = q[..., count:]
    return q[..., :count] * 1, r, rest @ rest.mH


qr_p: Any = operation(
    "qr",
    _qr,
    rules={"x": _qr_rule},
    results=("q", "r"),
    samples=(
        sample((3, 3)),
        sample((3, 2), mode="reduced"),
        sample((2, 2, 3), mode="reduced"),
        sample((3, 1), mode="complete"),
        sample((0, 2)),
    ),
    domain=WELL_CONDITIONED,
    observed=_without_rest,
    multi=True,
    floating=True,
    holomorphic=False,
    scalars=False,
    doc="Return the factors Q and R of matrices Q R.",
    batch="leading",
)


# -- eigenvalues -----------------------------------------------------------------------------------
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
    middle = over_gaps("eigh", "eigenvectors", (turning - adjoint(turning, xp)) / 2, w, xp)
    if gw is not None:
        middle = middle + one * xp.expand_dims(gw, axis=-2)
    return xp.matmul(xp.matmul(v, middle), back)


eigh_p: Any = operation(
    "eigh",
    _eigh,
    rules={"x": _eigh_rule},
    results=("w", "v"),
    samples=SQUARE,
    domain=HERMITIAN,
    observed=without_phase,
    multi=True,
    floating=True,
    holomorphic=False,
    result_dtype=("real", "same"),
    scalars=False,
    doc="Return the eigenvalues and eigenvectors of Hermitian matrices.",
    batch="leading",
)


def _eigvalsh(xp: Any, x: Any) -> Any:
    needs_square("eigvalsh", x)
    return attempt("eigvalsh", *NO_CONVERGENCE, xp.linalg.eigvalsh, x)


eigvalsh_p = operation(
    "eigenvalues",
    _eigvalsh,
    differentiable=False,
    samples=SQUARE,
    domain=HERMITIAN,
    floating=True,
    reference="numpy.linalg.eigvalsh",
    result_dtype="real",
    scalars=False,
    doc="Return the eigenvalues of Hermitian matrices, without the vectors that a gradient needs.",
    batch="leading",
)


# -- singular values -------------------------------------------------------------------------------
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
        gs = op_for(xp, toward_p)(gs, s, s)  # 0 where s is: the tip of a cone
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
    # row / (row ** 2 - column ** 2), whose squares would overflow
    both = row + column + one
    safe = xp.where(row == 0, xp.ones_like(row), row)
    phases = one / (4 * safe)  # the phase common to u and v is free; what differs is shared
    middle = 0 if gs is None else one * xp.expand_dims(gs, axis=-2)
    if gu is not None:
        turning = xp.matmul(adjoint(u, xp), gu)
        turning = turning - adjoint(turning, xp)
        middle = middle + over_gaps("svd", "U and Vh", turning, s, xp) * (row / both)
        middle = middle + turning * phases if is_complex(u) else middle
    if gv is not None:
        turning = xp.matmul(adjoint(v, xp), gv)
        turning = turning - adjoint(turning, xp)
        middle = middle + over_gaps("svd", "U and Vh", turning, s, xp) * (column / both)
        middle = middle - turning * phases if is_complex(u) else middle
    return middle


def without_phases(u: Any, s: Any, vh: Any) -> tuple[Any, ...]:
    """Return the singular values, the products of their vectors, and the projectors on the rest."""
    count = s.shape[-1]
    columns = u[..., :, None, :count]
    rows = vh[..., :count, :].mT[..., None, :, :]
    rest, below = u[..., count:], vh[..., count:, :]
    return (
        s,
        columns * rows,
        rest @ rest.mH,
        below.mH @ below,
    )


svd_p: Any = operation(
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
    domain=WELL_CONDITIONED,
    observed=without_phases,
    multi=True,
    floating=True,
    holomorphic=False,
    result_dtype=("real", "same", "same", "same"),
    scalars=False,
    doc="Return the factors U, S and Vh of matrices U diag(S) Vh.",
    batch="leading",
)


def _svdvals(xp: Any, x: Any) -> Any:
    return attempt("svdvals", *NO_CONVERGENCE, xp.linalg.svdvals, x)


STACKS = (sample((3, 3)), sample((2, 2, 3)), sample((1, 1)), sample((0, 2)))


svdvals_p = operation(
    "singular_values",
    _svdvals,
    differentiable=False,
    samples=STACKS,
    domain=WELL_CONDITIONED,
    floating=True,
    reference="numpy.linalg.svdvals",
    result_dtype="real",
    scalars=False,
    doc="Return the singular values, without the vectors that a gradient needs.",
    batch="leading",
)
