"""NumPy itself, whose functions take traced values; here lists of traced values as well."""

from typing import Any

import numpy as _np

from pullback.compat.autograd.numpy import (
    fft as fft,
    linalg as linalg,
    numpy_boxes as numpy_boxes,
    random as random,
)
from pullback.compat.autograd.numpy.creation import *  # noqa: F403
from pullback.compat.autograd.numpy.lists import takes_lists as _takes_lists
from pullback.compat.autograd.numpy.numpy_vjps import metadata as metadata
from pullback.compat.autograd.numpy.order import *  # noqa: F403

__all__ = [name for name in (*dir(_np), "make_diagonal", "metadata") if name[0] != "_"]
__version__ = _np.__version__


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, _takes_lists(getattr(_np, name)))
