"""Containers are Python's own; a traced value counts as the array or number that is in it."""

import builtins
from builtins import dict, list, tuple, type  # noqa: UP029 (what the module exports)
from typing import Any

from pullback.compat.autograd.boxes import getval

__all__ = ["dict", "isinstance", "list", "tuple", "type"]

# The classes of HIPS autograd's traced containers, which hold traced values here.
DictBox, ListBox, TupleBox = dict, list, tuple


def isinstance(value: Any, kinds: Any) -> bool:
    """Return whether a value, or what is in a traced one, is an instance of `kinds`.

    Examples
    --------
    >>> import numpy as np
    >>> from pullback.compat.autograd import grad
    >>> grad(lambda x: x**2 if isinstance(x, float) else x)(3.0)
    np.float64(6.0)
    """
    return builtins.isinstance(value, kinds) or builtins.isinstance(getval(value), kinds)
