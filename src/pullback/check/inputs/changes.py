"""Changes of the values of an array that often change what an operation does.

Larger values, values of both signs, zeros, ties; masks that hide something, indices that repeat. An
array that a change does not suit comes back as it is. Must not know of calls.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from pullback.check.inputs.domains import recognised
from pullback.check.values import Array

_ZEROS = 3  # arguments of both signs that have a zero in turn
_OPEN = r"^\w*(upper|lower|bound|limit|ceil|high|low)|\bNAME\b[^;.\n]*(\binf|unbounded|censor|open)"
_ABSENT = r"is(nan|finite)\(\s*NAME\b|\bNAME\b[^;.\n]*\b(nan\b|missing|absent)"


class Change(NamedTuple):
    """A change of all arrays of a call.

    Attributes
    ----------
    what : str
    of : callable
        The change of one array.
    large, zero, tied, coarse : bool
        Whether values become larger, 0, equal, or so large that differences tell little.
    moves : bool
        Whether an iteration may end too early at the other values.
    tensors : bool
        Whether arrays that are no tensors stay: with everything tiny, forward may only round.
    signs : bool
        Whether values may have another sign.
    expects : str
        Where only arrays that are no tensors are changed: what the operation's text says of such a
        one, NAME, or how it is called.
    small : bool
        Whether values become so small that differences may be those of rounding.
    inner : bool
        Whether a zero is put between values of both signs: no edge of a domain.
    far : bool
        Whether values become so much larger that single numbers, exponents and scales, stay.
    """

    what: str
    of: Callable[[Array], Array]
    large: bool = False
    zero: bool = False
    tied: bool = False
    moves: bool = True
    coarse: bool = False
    tensors: bool = False
    signs: bool = False
    expects: str = ""
    small: bool = False
    inner: bool = False
    far: bool = False


def all_changes() -> Iterator[Change]:
    """Yield the changes; some of them keep in mind what they have changed in the same call."""
    zeros = itertools.chain([True], itertools.repeat(False))  # 0 / 0 is not the operation's mistake
    largest, smallest = (functools.partial(_tied, largest=k) for k in (True, False))
    none = _only(functools.partial(scaled, 0.0))
    rounded = functools.partial(_whole, zeros=zeros)
    yield Change("whole numbers in place of the values", rounded, tied=True)
    yield Change("larger values", functools.partial(scaled, 4.0), large=True)
    yield Change("masks that are not all true", _hiding, moves=False)
    yield Change("indices that repeat", _repeating, moves=False)
    yield Change("complex values where all were real", _imaginary, moves=False)
    yield Change("values of both signs", _only(_both_signs), signs=True)
    yield Change("values of the other sign", _negative)
    yield Change("rows in the reverse order", _reversed)
    yield Change("a zero among the values", _only(_with_zero), zero=True)
    for which in range(_ZEROS):
        inner = _only(_with_inner_zero, which)
        yield Change("a zero among values of both signs", inner, inner=True, tied=True)
    yield Change("numbers in place of zeros", _filled)
    yield Change("small values", functools.partial(scaled, 0.02), small=True)
    yield Change("tiny values", functools.partial(scaled, 1e-6), tensors=True, small=True)
    yield Change("values near 0 and 1", _extreme)
    far = functools.partial(scaled, 40.0)
    yield Change("far larger values", far, large=True, far=True)
    overflow = functools.partial(scaled, 1000.0)
    yield Change("values of a thousand and more", overflow, large=True, coarse=True, far=True)
    yield Change("masks that are false in a row", _hiding_row, moves=False)
    row = _only(_with_zero_row)
    yield Change("a row of zeros among the values", row, zero=True, tied=True)
    yield Change("equal eigenvalues", _degenerate, moves=False, tied=True)
    yield Change("an infinite value in a constant", _infinite, moves=False, expects=_OPEN)
    yield Change("a missing value (NaN) in a constant", _missing, moves=False, expects=_ABSENT)
    yield Change("matrices that are not symmetric", asymmetric, moves=False)
    yield Change("whole matrices that are not symmetric", _turned, moves=False)
    yield Change("ties: the two largest values equal", largest, tied=True)
    yield Change("ties: the two smallest values equal", smallest, tied=True)
    yield Change("ties: all values equal", _constant, tied=True)
    yield Change("zeros everywhere", none, zero=True, tied=True)


def _only(change: Callable[[Array], Array], which: int = 0) -> Callable[[Array], Array]:
    """Return a change that is made to one of the arrays that it changes, and to no other.

    0 / 0 is not the operation's mistake.
    """
    turns = itertools.count()

    def changed(array: Array) -> Array:
        other = change(array)
        if np.array_equal(other, array):
            return array
        return other if next(turns) == which else array

    return changed


def is_free(array: Array) -> bool:
    """Return whether real values can be changed one by one: they have no structure but an order."""
    finite = array.dtype.kind == "f" and bool(np.isfinite(array).all())
    return finite and recognised(array) in ("", "sorted")


def is_order(name: str, array: Array) -> bool:
    """Return whether an array is a permutation and is named like one."""
    named = re.search("perm|order|rank|sigma|inverse", name)
    return bool(named) and np.array_equal(np.sort(array, axis=None), np.arange(array.size))


def is_unit(array: Array) -> bool:
    """Return whether all values are between 0 and 1: these may be probabilities or weights."""
    return bool(((array >= 0) & (array <= 1)).all())


def _whole(array: Array, zeros: Iterator[bool]) -> Array:
    """Round an array; only the first may become 0 somewhere, if it has both signs."""
    if not is_free(array) or is_unit(array):
        return array
    rounded = np.round(1.5 * array)
    away = np.where(array < 0, np.minimum(rounded, -1.0), np.maximum(rounded, 1.0))
    both = bool((array > 0).any() and (array < 0).any())
    return rounded if next(zeros) and both else away


def scaled(factor: float, array: Array) -> Array:
    """Multiply values; not those between 0 and 1."""
    return array if not is_free(array) or is_unit(array) else factor * array


def _extreme(array: Array) -> Array:
    """Move values between 0 and 1 close to these."""
    if not is_free(array) or not is_unit(array) or array.size < 2:
        return array
    other = 1e-3 + 1e-3 * array
    other.flat[::3] = 1.0 - other.flat[::3]
    return np.asarray(other)


def _both_signs(array: Array) -> Array:
    if array.size < 2 or not is_free(array) or not (array > 0).all() or is_unit(array):
        return array
    other = array.copy()
    other.flat[::2] *= -1.0
    return other


def positive(array: Array) -> Array:
    """Return positive values."""
    return np.abs(array) + 0.1 if is_free(array) else array


def _negative(array: Array) -> Array:
    both = bool((array > 0).any() and (array < 0).any())
    return -array if both and is_free(array) else array


def _reversed(array: Array) -> Array:
    """Reverse the rows: what goes round clockwise goes round the other way."""
    return array[::-1].copy() if array.ndim > 1 and is_free(array) else array


def _with_zero(array: Array) -> Array:
    if not is_free(array) or array.size < 2:
        return array
    other = array.copy()
    other.flat[0 if recognised(array) == "sorted" else array.size // 2] = 0.0
    return other


def _with_inner_zero(array: Array) -> Array:
    """Put a zero among values of both signs, which it lies between: no edge of the domain."""
    return _with_zero(array) if array.size and array.min() < 0 < array.max() else array


def _filled(array: Array) -> Array:
    """Put numbers in place of zeros; what has a sum of 1 keeps it."""
    unit = recognised(array) == "simplex"
    zero = array == 0
    if array.dtype.kind != "f" or not zero.any() or zero.all() or (recognised(array) and not unit):
        return array
    other = np.where(zero, 0.3 * np.abs(array[~zero]).mean(), array)
    return np.asarray(other / other.sum(axis=-1, keepdims=True)) if unit else other


def _with_zero_row(array: Array) -> Array:
    """Make the first row 0: a text without words, a vector without length."""
    if array.ndim < 2 or len(array) < 2 or not (is_free(array) or array.dtype.kind in "iu"):
        return array
    other = array.copy()
    other[0] = 0
    return other


def moved_around(number: float, array: Array) -> Array:
    """Return values on both sides of a number, as far apart as they are."""
    if not is_free(array) or not array.ndim or array.size < 2:
        return array
    return np.asarray(array - array.mean() + number)


def _tied(array: Array, largest: bool) -> Array:
    """Make the two largest or smallest values of each row equal."""
    if not is_free(array) or not array.ndim or array.shape[-1] < 2:
        return array
    order = np.argsort(array, axis=-1)
    first, second = (order[..., [k]] for k in ((-1, -2) if largest else (0, 1)))
    other = array.copy()
    np.put_along_axis(other, second, np.take_along_axis(array, first, -1), -1)
    return other


def _constant(array: Array) -> Array:
    if not is_free(array) or array.size < 2:
        return array
    return np.full_like(array, array.flat[0])


def _degenerate(array: Array) -> Array:
    """Return a symmetric matrix whose two smallest eigenvalues are equal."""
    if recognised(array) not in ("spd", "symmetric") or array.shape[-1] < 3:
        return array
    values, vectors = np.linalg.eigh(array)
    values[..., 1] = values[..., 0]
    other = (vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2)
    return np.asarray((other + other.swapaxes(-1, -2)) / 2)


def _infinite(array: Array) -> Array:
    return _with_last(array, np.inf)


def _missing(array: Array) -> Array:
    return _with_last(array, np.nan)


def _with_last(array: Array, value: float) -> Array:
    if array.dtype.kind != "f" or array.size < 2:
        return array
    other = array.copy()
    other.flat[-1] = value
    return other


def asymmetric(array: Array) -> Array:
    """Return a symmetric matrix with another upper triangle."""
    if recognised(array) not in ("spd", "symmetric"):
        return array
    return np.asarray(array + 0.3 * np.triu(np.abs(array).max() * np.cos(array), 1))


def _turned(array: Array) -> Array:
    """Exchange the rows of symmetric matrices of -1, 0 and 1 in a circle."""
    square = array.ndim > 1 and array.shape[-1] == array.shape[-2] > 2
    if array.dtype.kind not in "if" or not square or not np.isin(array, (-1, 0, 1)).all():
        return array
    symmetric = np.array_equal(array, array.swapaxes(-1, -2))
    return np.roll(array, 1, axis=-2) if symmetric else array


def _hiding(array: Array) -> Array:
    if array.dtype.kind != "b" or not array.all():
        return array
    other = array.copy()
    other.flat[1::3] = False
    return other


def _hiding_row(array: Array) -> Array:
    if array.dtype.kind != "b" or array.ndim < 2:
        return array
    other = array.copy()
    other[0] = False
    return other


def _repeating(array: Array) -> Array:
    """Let two elements of a list of indices be equal, or two rows of a table have one in common."""
    if array.dtype.kind not in "iu" or array.size < 2 or array.ndim > 2 or len(array) < 2:
        return array
    other = array.copy()
    if array.ndim == 1:
        other[1] = other[0]
    else:
        other[1, 0] = next((v for v in other[0, ::-1] if v not in other[1, 1:]), other[1, 0])
    return other


def _imaginary(array: Array) -> Array:
    """Add imaginary parts to complex numbers without; a symmetric matrix becomes Hermitian."""
    if array.dtype.kind != "c" or array.size < 2 or array.imag.any():
        return array
    if array.ndim == 2 and array.shape[0] == array.shape[1] and np.array_equal(array, array.T):
        upper = np.triu(array.real, 1)
        return np.asarray(array + 0.5j * (upper - upper.T))
    return np.asarray(array + 0.5j * np.roll(array.real, 1))
