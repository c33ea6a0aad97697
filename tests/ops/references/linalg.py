"""Reference values of linear algebra, by NumPy and SciPy."""

import numpy as np
from scipy.spatial.distance import cdist


def _embedded(g, shape, offset):
    result = np.zeros(shape, g.dtype)
    for place in np.ndindex(g.shape):
        row = place[-1] + max(-offset, 0)
        result[(*place[:-1], row, row + offset)] = g[place]
    return result


def _cofactors(x):
    """Return the signed determinants of what is left without one row and column."""
    result = np.zeros_like(x)
    for *stack, i, j in np.ndindex(x.shape):
        rest = np.delete(np.delete(x[tuple(stack)], i, 0), j, 1)
        result[(*stack, i, j)] = (-1) ** (i + j) * np.linalg.det(rest)
    return result


def _addmm(c, a, b, beta=1, alpha=1):
    return beta * c + alpha * np.matmul(a, b)


def _vecdot(x, y, axis=-1):
    return np.sum(np.conj(x) * y, axis=axis)


def _norm(x, p="fro", dim=None, keepdim=False):
    if p == "nuc":
        return np.linalg.norm(x, "nuc", dim, keepdim)
    return np.linalg.vector_norm(x, axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p)


def _vector_norm(x, axis, keepdims, ord):
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


def _normalize(x, p=2, dim=1):
    return x / np.linalg.vector_norm(x, ord=p, axis=dim, keepdims=True) if x.size else x


def _cdist(x, y, p=2):
    sizes = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if x.ndim == 2 and np.isrealobj(x) and 0 not in (*x.shape, *y.shape):
        metric = "chebyshev" if p == np.inf else "minkowski"
        return cdist(x, y, metric) if p == np.inf else cdist(x, y, metric, p=p)
    return sizes.max(axis=-1) if p == np.inf else np.sum(sizes**p, axis=-1) ** (1 / p)


def _rank(x, rtol):
    return np.zeros((), int) if 0 in x.shape else np.linalg.matrix_rank(x, rtol=rtol)


REFERENCES = {
    "diag_embed": _embedded,
    "diagonal": lambda x, offset: np.diagonal(x, offset, -2, -1),
    "trace": lambda x, offset=0: np.trace(x, offset, -2, -1),
    "bmm": np.matmul,
    "mv": np.matmul,
    "dot": np.dot,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "vecdot": _vecdot,
    "outer": np.outer,
    "kron": np.kron,
    "contract": lambda x, y, labels: np.einsum(
        ",".join(map("".join, labels[:2])) + "->" + "".join(labels[2]), x, y
    ),
    "cross": np.cross,
    "tensordot": lambda x, y, axes=2: np.tensordot(x, y, axes),
    "einsum": lambda x, y, equation: np.einsum(equation, x, y),
    "inv": np.linalg.inv,
    "cofactors": _cofactors,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "logdet": lambda x: np.log(np.linalg.det(x)),
    "solve": np.linalg.solve,
    "pinv": lambda x, rtol: np.linalg.pinv(x, rtol=rtol),
    "matrix_rank": _rank,
    "matrix_power": np.linalg.matrix_power,
    "cholesky": lambda x, upper: np.linalg.cholesky(x, upper=upper),
    "eigh": np.linalg.eigh,
    "eigvalsh": np.linalg.eigvalsh,
    "eigenvalues": np.linalg.eigvalsh,
    "svd": np.linalg.svd,
    "svdvals": np.linalg.svdvals,
    "singular_values": np.linalg.svdvals,
    "qr": np.linalg.qr,
    "vector_norm": _vector_norm,
    "matrix_norm": np.linalg.matrix_norm,
    "norm": _norm,
    "normalize": _normalize,
    "cdist": _cdist,
}

RESULTS = {
    **dict.fromkeys(("vector_norm", "matrix_norm", "norm", "cdist", "eigvalsh", "svdvals"), "real"),
    **dict.fromkeys(("eigenvalues", "singular_values"), "real"),
    "matrix_rank": "int64",
    "slogdet": ("same", "real"),
    "eigh": ("real", "same"),
    "svd": ("real", "same", "same", "same"),
}
NO_SCALARS = (
    REFERENCES.keys()
    - {"vector_norm", "norm", "kron", "addmm", "baddbmm", "tensordot"}
    - {"einsum"}
)
