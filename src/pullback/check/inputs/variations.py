"""Calls that differ from the user's in what often changes what an operation does.

Other settings; whole numbers, larger values, values of both signs, zeros and ties in place of the
values; masks that hide something, indices that repeat. A variation counts only if forward takes it.
Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.comparison import max_abs
from pullback.check.inputs.arguments import Inputs, keeps_bounds, try_forward
from pullback.check.inputs.crossing import crossings
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.drawing import LARGE
from pullback.check.inputs.settings import STOPPING, other_settings
from pullback.check.iterating import converges, iterates
from pullback.check.naming import labels_of
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor, box

_SINGULAR = 1e-7  # relative change of the results that a change in the 13th digit must not make
_MOST_ALONE = 3  # arrays that are changed without the others
_MOST_SHIFTS = 3  # numbers among the settings around which values are drawn


class Variation(NamedTuple):
    """Another call.

    Attributes
    ----------
    what : str
        What is different.
    inputs : Inputs
        The call.
    tied : bool
        Whether equal values may make the operation not differentiable.
    edge : bool
        Whether values may lie at the edge of the domain.
    moved : bool
        Whether an iteration may end too early.
    coarse : bool
        Whether values are so large that little but NaN tells a mistake.
    small : bool
        Whether values are so small that differences may be those of rounding.
    crosses : bool
        Whether a comparison inside of the operation goes another way.
    """

    what: str
    inputs: Inputs
    tied: bool = False
    edge: bool = False
    moved: bool = False
    coarse: bool = False
    small: bool = False
    crosses: bool = False


def variations(
    fn: Callable[..., Any], parameters: Sequence[inspect.Parameter] | None, inputs: Inputs
) -> Iterator[Variation]:
    """Yield the variations of a call that forward takes.

    Parameters
    ----------
    fn : callable
    parameters : sequence of inspect.Parameter, optional
        Those of `fn`, if it has a signature.
    inputs : Inputs
        The call.
    """
    base = try_forward(fn, inputs)
    if isinstance(base, str):
        return
    settings = other_settings(fn, parameters or (), inputs, base)
    for what, calls in settings:
        # A rule may go wrong for an axis counted from the end, where forward does not.
        tries = _or_positive(fn, calls)
        taken = (call for call in tries if not isinstance(try_forward(fn, call), str))
        for call in itertools.islice(taken, 1):
            yield Variation(what, call)
    values = itertools.chain(
        _crossings(fn, inputs), _values(fn, inputs, parameters or ()), _complex(fn, inputs)
    )
    for variation in values:
        found = try_forward(fn, variation.inputs)
        if isinstance(found, str) or _is_singular(fn, variation, found):
            continue
        if _equal(found, base) and not variation.crosses:  # an even function's slope is odd
            continue
        yield variation


def _crossings(fn: Callable[..., Any], inputs: Inputs) -> Iterator[Variation]:
    """Yield calls in which a comparison goes another way."""
    if not iterates(fn):  # else it compares to find out whether it is close enough
        yield from (Variation(what, call, crosses=True) for what, call in crossings(fn, inputs))


def _complex(fn: Callable[..., Any], inputs: Inputs) -> Iterator[Variation]:
    """Yield the call with complex numbers, if what is said of the operation names them."""
    said = f"{inspect.getdoc(fn) or ''} {inspect.getdoc(getattr(fn, 'forward', fn)) or ''}"
    if not re.search("real or complex|complex or real", said, re.IGNORECASE):
        return

    def changed(value: Any) -> Any:
        array = host(value) if isinstance(value, Tensor) else None
        if array is None or array.dtype.kind != "f" or not value.requires_grad:
            return value
        return box(array + 0.5j * np.roll(array, 1)).requires_grad_()

    args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
    call = inputs._replace(args=args, kwargs=kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        try:
            fn(*args, **kwargs)
        except Exception:  # for real numbers alone
            return
    yield Variation("complex values", call)


def _or_positive(fn: Callable[..., Any], calls: Sequence[Inputs]) -> Iterator[Inputs]:
    """Yield calls, and then those with positive values: another setting may take a logarithm."""
    yield from calls
    for call in calls:
        yield _all_changed(fn, _positive, call)


def _equal(a: Sequence[Array], b: Sequence[Array]) -> bool:
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in pairs)


def _is_singular(fn: Callable[..., Any], variation: Variation, found: Sequence[Array]) -> bool:
    """Return whether a change by rounding alone changes the results: nothing is to be compared.

    Equal values or whole numbers may make a matrix singular.
    """
    moved = try_forward(fn, _all_changed(fn, _rounded, variation.inputs))
    if isinstance(moved, str) or len(moved) != len(found):
        return True
    pairs = list(zip(found, moved, strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return True
    return any(max_abs(b - a) > _SINGULAR * max_abs(a) for a, b in pairs)


def _rounded(array: Array) -> Array:
    """Change the last digits; equal values stay equal."""
    if array.dtype.kind != "f":
        return array
    return array * (1.0 + 1e-13 * np.cos(1e3 * array.astype(np.float64)))


# -- values ----------------------------------------------------------------------------------------
class _Change(NamedTuple):
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
    small : bool
        Whether values become so small that differences may be those of rounding.
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
    small: bool = False


def _changes() -> Iterator[_Change]:
    """Yield the changes; some of them keep in mind what they have changed in the same call."""
    zeros = itertools.chain([True], itertools.repeat(False))  # 0 / 0 is not the operation's mistake
    largest, smallest = (functools.partial(_tied, largest=k) for k in (True, False))
    none = _only_first(functools.partial(_scaled, 0.0))
    rounded = functools.partial(_whole, zeros=zeros)
    yield _Change("whole numbers in place of the values", rounded, tied=True)
    yield _Change("larger values", functools.partial(_scaled, 4.0), large=True)
    yield _Change("masks that are not all true", _hiding, moves=False)
    yield _Change("indices that repeat", _repeating, moves=False)
    yield _Change("complex values where all were real", _imaginary, moves=False)
    yield _Change("values of both signs", _only_first(_both_signs), signs=True)
    yield _Change("values of the other sign", _negative)
    yield _Change("rows in the reverse order", _reversed)
    yield _Change("a zero among the values", _only_first(_with_zero), zero=True)
    yield _Change("numbers in place of zeros", _filled)
    yield _Change("small values", functools.partial(_scaled, 0.02), small=True)
    yield _Change("tiny values", functools.partial(_scaled, 1e-6), tensors=True, small=True)
    yield _Change("values near 0 and 1", _extreme)
    yield _Change("far larger values", functools.partial(_scaled, 40.0), large=True)
    overflow = functools.partial(_scaled, 1000.0)
    yield _Change("values of a thousand and more", overflow, large=True, coarse=True)
    yield _Change("masks that are false in a row", _hiding_row, moves=False)
    row = _only_first(_with_zero_row)
    yield _Change("a row of zeros among the values", row, zero=True, tied=True)
    yield _Change("matrices that are not symmetric", _asymmetric, moves=False)
    yield _Change("whole matrices that are not symmetric", _turned, moves=False)
    yield _Change("ties: the two largest values equal", largest, tied=True)
    yield _Change("ties: the two smallest values equal", smallest, tied=True)
    yield _Change("ties: all values equal", _constant, tied=True)
    yield _Change("zeros everywhere", none, zero=True, tied=True)


def _values(
    fn: Callable[..., Any], inputs: Inputs, parameters: Sequence[inspect.Parameter]
) -> Iterator[Variation]:
    """Yield calls with other values of the arrays."""
    around = (
        _Change(
            f"values around `{name}` = {number:g}", functools.partial(_around, number), signs=True
        )
        for name, number in _numbers(inputs, parameters)
    )
    has_edge, approximate, repeats = _has_edge(inputs), converges(fn), iterates(fn)
    symmetric = "symmetric" in (inspect.getdoc(getattr(fn, "forward", fn)) or "").lower()
    for change in itertools.chain(_changes(), around, _alone(inputs)):
        if (change.moves and approximate) or (symmetric and change.of is _asymmetric):
            continue
        if change.signs and repeats:  # it may search where there is nothing
            continue
        profile = LARGE if change.large else inputs.profile
        other = _all_changed(fn, change.of, inputs, change.tensors)._replace(profile=profile)
        yield Variation(
            change.what,
            other,
            tied=change.tied,
            edge=change.zero and has_edge,
            moved=change.moves,
            coarse=change.coarse,
            small=change.small,
        )


def _alone(inputs: Inputs) -> Iterator[_Change]:
    """Yield the changes of single arrays: what matters may be which of two is larger."""
    arrays = [v for v in tree.leaves((inputs.args, inputs.kwargs)) if holds_numbers(v)]
    free = [k for k, v in enumerate(arrays) if _is_free(host(v)) and not _is_unit(host(v))]
    for k in free[:_MOST_ALONE] if len(free) > 1 else ():
        places = itertools.count()

        def changed(array: Array, places: Iterator[int] = places, k: int = k) -> Array:
            return _scaled(8.0, array) if next(places) == k else array

        yield _Change("larger values of one argument", changed, large=True)


def _has_edge(inputs: Inputs) -> bool:
    """Return whether an array has positive values alone: 0 may be the edge of its domain."""
    arrays = [host(v) for v in tree.leaves((inputs.args, inputs.kwargs)) if holds_numbers(v)]
    return any(bool((a > 0).all()) for a in arrays if a.dtype.kind == "f")


def _only_first(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a change that is made to the first array that it changes, and to no other.

    0 / 0 is not the operation's mistake.
    """
    left = [True]

    def changed(array: Array) -> Array:
        other = change(array) if left[0] else array
        left[0] = left[0] and np.array_equal(other, array)
        return other

    return changed


def _numbers(
    inputs: Inputs, parameters: Sequence[inspect.Parameter]
) -> Iterator[tuple[str, float]]:
    """Yield the numbers among the settings at which a formula may change, each value once."""
    named = [*zip([p.name for p in parameters], inputs.args, strict=False), *inputs.kwargs.items()]
    known = {name for name, _ in named}
    named += [(p.name, p.default) for p in parameters if p.name not in known]
    seen: set[float] = set()
    for name, value in named:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and np.isfinite(value) and value and not STOPPING.fullmatch(name):
            if value not in seen and len(seen) < _MOST_SHIFTS:
                yield name, float(value)
            seen.add(value)


def _all_changed(
    fn: Callable[..., Any], change: Callable[[Array], Array], inputs: Inputs, tensors: bool = False
) -> Inputs:
    """Return a call with every array or tensor changed, but those that would leave their bounds."""
    labels = iter(labels_of(fn, inputs.args, inputs.kwargs))

    def changed(value: Any) -> Any:
        label = next(labels)
        if not holds_numbers(value) or not host(value).size or _is_order(label, host(value)):
            return value
        if tensors and not isinstance(value, Tensor):
            return value
        other = _changed(change, value)
        return other if keeps_bounds(inputs, label, host(value), host(other)) else value

    args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)


def _is_order(name: str, array: Array) -> bool:
    """Return whether an array is a permutation and is named like one."""
    named = re.search("perm|order|rank|sigma|inverse", name)
    return bool(named) and np.array_equal(np.sort(array, axis=None), np.arange(array.size))


def _changed(change: Callable[[Array], Array], value: Any) -> Any:
    """Return an array or tensor with other values; itself if they are the same."""
    array = host(value)
    with np.errstate(all="ignore"):
        other = np.asarray(change(array)).astype(array.dtype)
    overflowed = array.dtype.kind == "f" and not np.isfinite(other).all()
    if overflowed or np.array_equal(other, array):
        return value
    tensor = box(other)
    asked = isinstance(value, Tensor) and value.requires_grad
    return tensor.requires_grad_() if asked else tensor if isinstance(value, Tensor) else other


def _is_free(array: Array) -> bool:
    """Return whether real values can be changed one by one: they have no structure."""
    return array.dtype.kind == "f" and bool(np.isfinite(array).all()) and not recognised(array)


def _is_unit(array: Array) -> bool:
    """Return whether all values are between 0 and 1: these may be probabilities or weights."""
    return bool(((array >= 0) & (array <= 1)).all())


def _whole(array: Array, zeros: Iterator[bool]) -> Array:
    """Round an array; only the first may become 0 somewhere, if it has both signs."""
    if not _is_free(array) or _is_unit(array):
        return array
    rounded = np.round(1.5 * array)
    away = np.where(array < 0, np.minimum(rounded, -1.0), np.maximum(rounded, 1.0))
    both = bool((array > 0).any() and (array < 0).any())
    return rounded if next(zeros) and both else away


def _scaled(factor: float, array: Array) -> Array:
    return array if not _is_free(array) or _is_unit(array) else factor * array


def _extreme(array: Array) -> Array:
    """Move values between 0 and 1 close to these."""
    if not _is_free(array) or not _is_unit(array) or array.size < 2:
        return array
    other = 1e-3 + 1e-3 * array
    other.flat[::3] = 1.0 - other.flat[::3]
    return np.asarray(other)


def _both_signs(array: Array) -> Array:
    if not _is_free(array) or not (array > 0).all() or _is_unit(array):
        return array
    other = array.copy()
    other.flat[::2] *= -1.0
    return other


def _positive(array: Array) -> Array:
    return np.abs(array) + 0.1 if _is_free(array) else array


def _negative(array: Array) -> Array:
    both = bool((array > 0).any() and (array < 0).any())
    return -array if both and _is_free(array) else array


def _reversed(array: Array) -> Array:
    """Reverse the rows: what goes round clockwise goes round the other way."""
    return array[::-1].copy() if array.ndim > 1 and _is_free(array) else array


def _with_zero(array: Array) -> Array:
    if not _is_free(array) or array.size < 2:
        return array
    other = array.copy()
    other.flat[array.size // 2] = 0.0
    return other


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
    if array.ndim < 2 or len(array) < 2 or not (_is_free(array) or array.dtype.kind in "iu"):
        return array
    other = array.copy()
    other[0] = 0
    return other


def _around(number: float, array: Array) -> Array:
    """Return values on both sides of a number, as far apart as they are."""
    if not _is_free(array) or not array.ndim or array.size < 2:
        return array
    return np.asarray(array - array.mean() + number)


def _tied(array: Array, largest: bool) -> Array:
    """Make the two largest or smallest values of each row equal."""
    if not _is_free(array) or not array.ndim or array.shape[-1] < 2:
        return array
    order = np.argsort(array, axis=-1)
    first, second = (order[..., [k]] for k in ((-1, -2) if largest else (0, 1)))
    other = array.copy()
    np.put_along_axis(other, second, np.take_along_axis(array, first, -1), -1)
    return other


def _constant(array: Array) -> Array:
    if not _is_free(array) or array.size < 2:
        return array
    return np.full_like(array, array.flat[0])


def _asymmetric(array: Array) -> Array:
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
