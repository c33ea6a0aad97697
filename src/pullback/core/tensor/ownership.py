"""Who holds an array's memory: what may be kept, or added to in place, without a copy.

A gradient that a rule has just made is held by the pass alone, a tangent by what adds it up. That
is recognised by counting references, as NumPy does for its temporaries, where the interpreter
counts them exactly; elsewhere nothing is ever taken for unshared. Must not be asked of anything but
a NumPy array that owns its memory.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from typing import Any

from pullback.arrays import NUMPY, ndarray


def _count_of_one_variable() -> int:
    """Return what `getrefcount` says of an array that one local variable alone holds."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    array = NUMPY.xp.zeros(1)
    return getrefcount(array) if sys.implementation.name == "cpython" and locked else -1


SOLE = _count_of_one_variable()


def is_unshared(array: Any) -> bool:
    """Return whether an array that is referred to once also has its memory to itself."""
    if array.__class__ is not ndarray or array.base is not None:
        return False
    flags = array.flags
    return bool(flags.owndata and flags.writeable)


def _references(array: Any) -> int:
    return getrefcount(array)


# What a function finds that is given an array which one slot of an object holds.
_slots = [NUMPY.xp.zeros(1)]
IN_SLOT = _references(_slots[0]) if SOLE > 0 else -1


def is_held_once(thing: Any, others: int = 0) -> bool:
    """Return whether a slot alone holds an object.

    The slot itself is to be given, see `can_add_in_place`.
    Besides `others`, references that are known.
    """
    return getrefcount(thing) == IN_SLOT + others


def _references_to_base(array: Any) -> int:
    base = array.base
    return getrefcount(base)


_BY_VIEW = _references_to_base(NUMPY.xp.zeros(2)[:1]) if SOLE > 0 else -1


def is_unreachable(array: Any) -> bool:
    """Return whether nobody else can see the memory of an array that nobody else holds.

    False for arrays of libraries that do not say whose memory it is.
    """
    base: Any = getattr(array, "base", 0)
    if base is None:
        return bool(array.flags.owndata)
    return (
        base.__class__ is array.__class__
        and base.base is None
        and getrefcount(base) == _BY_VIEW
        and bool(base.flags.owndata)
    )


def can_add_in_place(array: Any, other: Any) -> bool:
    """Return whether another array can be added to one in place, where a slot alone holds that.

    The slot itself is to be given, an attribute or an item: a variable would count as well.
    """
    return (
        getrefcount(array) == IN_SLOT + (other is array)
        and other.__class__ is ndarray
        and is_unshared(array)
        and array.dtype is other.dtype
        and array.shape == other.shape
    )
