"""Bridges to other libraries, each loaded when it is first used.

Users of the public API. `scipy`: SciPy's names for what tensors cannot reach through SciPy itself.
"""

from __future__ import annotations

import importlib
from typing import Any

from pullback.public_names import listed as _listed

__all__ = ["scipy"]
__dir__ = _listed(__name__)


def __getattr__(name: str) -> Any:
    """Load a bridge; the other library is imported then, and not before."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has: {__all__}")
    return importlib.import_module(f"{__name__}.{name}")
