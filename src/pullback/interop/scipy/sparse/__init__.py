"""`scipy.sparse`: sparse matrices times dense ones, and sparse systems; never densified."""

from __future__ import annotations

from typing import Any

from pullback.interop.scipy.reading import refuse
from pullback.interop.scipy.sparse import linalg
from pullback.interop.scipy.sparse.matrices import (
    SparseMatrix,
    coo_array,
    csc_array,
    csr_array,
)

__all__ = ["SparseMatrix", "coo_array", "csc_array", "csr_array", "linalg"]


def __getattr__(name: str) -> Any:
    return refuse(__name__, __all__, name)
