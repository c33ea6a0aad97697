"""NumPy's linear algebra; of a Hermitian matrix one triangle alone counts, for derivatives too."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compat.autograd.boxes import isbox
from pullback.compat.autograd.numpy.lists import takes_lists

__all__ = [name for name in dir(np.linalg) if name[0] != "_"]


def T(a: Any) -> Any:  # noqa: N802 (HIPS autograd's name)
    """Return the transposes of matrices.

    Examples
    --------
    >>> T(np.array([[1.0, 2.0]])).shape
    (2, 1)
    """
    return np.swapaxes(a, -1, -2)


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian matrix.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> grad(lambda a: eigh(a)[0][0])(np.array([[2.0, 1.0], [1.0, 2.0]]))
    array([[ 0.5,  0. ],
           [-1. ,  0.5]])
    """
    return np.linalg.eigh(_of_triangle(a, UPLO))


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Return the eigenvalues of a Hermitian matrix.

    Examples
    --------
    >>> eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    array([1., 3.])
    """
    return np.linalg.eigvalsh(_of_triangle(a, UPLO))


def _of_triangle(a: Any, uplo: str) -> Any:
    """Return the Hermitian matrix that one triangle describes; the lower may stand alone."""
    lower = uplo.upper() == "L"
    if lower and not isbox(a):
        return a
    triangle = np.tril(a, -1) if lower else np.triu(a, 1)
    diagonal = np.real(a) * np.eye(np.shape(a)[-1])
    return triangle + np.conj(T(triangle)) + diagonal


_dot = np.matmul


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, takes_lists(getattr(np.linalg, name)))
