"""Who holds a gradient's memory: what backward may keep, or add to in place, without a copy.

A gradient that a rule has just made is held by the pass alone. That is recognised by counting
references, as NumPy does for its temporaries, where the interpreter counts them exactly; elsewhere
nothing is ever taken for unshared. Must not be asked of anything but a NumPy array that owns its
memory.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from typing import Any

from pullback.arrays import NUMPY

_array = NUMPY.array_types[0]


def _count_of_one_variable() -> int:
    """Return what `getrefcount` says of an array that one local variable alone holds."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    array = NUMPY.xp.zeros(1)
    return getrefcount(array) if sys.implementation.name == "cpython" and locked else -1


SOLE = _count_of_one_variable()


def is_unshared(array: Any) -> bool:
    """Return whether an array that is referred to once also has its memory to itself."""
    if array.__class__ is not _array or array.base is not None:
        return False
    flags = array.flags
    return bool(flags.owndata and flags.writeable)
