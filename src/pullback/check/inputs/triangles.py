"""Symmetric matrices of which an operation reads one triangle alone, or refuses any others.

So do `eigh`, Cholesky, and who compares a matrix with its transpose. The gradient is right if it is
along symmetric matrices: which elements it is spread over is a matter of convention. Must not know
how a gradient is compared.
"""

from __future__ import annotations

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.inputs.domains import recognised
from pullback.check.subject import Subject
from pullback.check.values import Array

_WORDS = ("spd", "symmetric")


def read_by_half(subject: Subject) -> dict[str, str]:
    """Return the words for the symmetric matrices that forward reads as such, by name.

    Examples
    --------
    >>> import pullback as pb
    >>> spd = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> read_by_half(Subject(lambda a, b: pb.linalg.cholesky(a) @ b, (spd, spd)))
    {'a': 'spd'}
    """
    words = {}
    for i, (name, array) in enumerate(zip(subject.names, subject.arrays, strict=True)):
        word = recognised(array)
        if word in _WORDS and (
            any(_ignores(subject, i, k) for k in (1, -1)) or _refuses_others(subject, i)
        ):
            words[name] = word
    return words


def _ignores(subject: Subject, i: int, side: int) -> bool:
    """Return whether the outputs do not change with a triangle of argument `i`."""
    array = subject.arrays[i]  # moved a little: forward may look whether it is symmetric
    triangle = np.triu(np.ones(array.shape), 1) if side > 0 else np.tril(np.ones(array.shape), -1)
    with np.errstate(all="ignore"):
        moved = (array * (1 + 1e-7 * triangle)).astype(array.dtype)
    return _same(subject, [*subject.arrays[:i], moved, *subject.arrays[i + 1 :]])


def _refuses_others(subject: Subject, i: int) -> bool:
    """Return whether forward raises for a matrix that is not symmetric, though nearly so."""
    array = subject.arrays[i]
    triangle = np.triu(np.ones(array.shape), 1)
    moved = (array * (1 + 1e-2 * triangle)).astype(array.dtype)
    try:
        subject.values([*subject.arrays[:i], moved, *subject.arrays[i + 1 :]])
    except ForwardError:
        return True
    return False


def _same(subject: Subject, arrays: list[Array]) -> bool:
    try:
        pairs = zip(subject.values(subject.arrays), subject.values(arrays), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)
    except ForwardError:
        return False
