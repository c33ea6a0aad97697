"""When a wrong gradient is right: the inputs and settings at which backward's formula holds.

An engineer who sees a wrong number tries simpler inputs: a symmetric matrix, sorted values, one
row, another setting. The first such change that makes the gradient right says what backward
assumes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from pullback.check.explain.evidence import Evidence
from pullback.check.explain.other_values import changed_settings
from pullback.check.naming import quoted
from pullback.check.resizing import Symbol, resized, symbols
from pullback.check.subject import Subject
from pullback.check.values import Array


def condition(e: Evidence, i: int) -> str:
    """Return under which condition the gradient of argument `i` is right, or ``""``.

    Returns
    -------
    str
        The end of a sentence: ``"`A` is symmetric"``.
    """
    calls = itertools.chain(_other_settings(e), _structured(e), _of_sizes(e), _simple(e))
    return _first_right(e, i, calls)


def condition_on_settings(e: Evidence, i: int) -> str:
    """Return with which setting the gradient of argument `i` is right, or ``""``."""
    return _first_right(e, i, _other_settings(e))


def condition_on_structure(e: Evidence, i: int) -> str:
    """Return with which structure of an array the gradient is right, or ``""``."""
    return _first_right(e, i, _structured(e))


def _first_right(e: Evidence, i: int, calls: Iterable[tuple[str, Subject]]) -> str:
    if e.session.options.fast:
        return ""
    return next((text for text, subject in calls if e.is_right(subject, i)), "")


def _other_settings(e: Evidence) -> Iterator[tuple[str, Subject]]:
    """Yield calls with another setting, in words."""
    for name, value, other, found in changed_settings(e.session.subject):
        yield f"the setting `{name}` is {other!r}, not {value!r}", found


def _structured(e: Evidence) -> Iterator[tuple[str, Subject]]:
    """Yield calls with arrays of more structure, in words."""
    return _with_arrays(e, _with_structure)


def _simple(e: Evidence) -> Iterator[tuple[str, Subject]]:
    """Yield calls with simple values, in words."""
    return _with_arrays(e, _with_simple_values)


def _with_arrays(
    e: Evidence, changes: Callable[[Array], Iterator[tuple[Array, str]]]
) -> Iterator[tuple[str, Subject]]:
    subject = e.session.subject
    leaves = subject.leaves_on_host()
    for k, leaf in enumerate(leaves):
        for changed, text in changes(leaf) if isinstance(leaf, np.ndarray) and leaf.size else ():
            if not np.array_equal(changed, leaf):
                others = [changed.astype(leaf.dtype) if j == k else v for j, v in enumerate(leaves)]
                yield f"`{subject.labels[k]}` is {text}", subject.with_leaves(others)


def _with_structure(array: Array) -> Iterator[tuple[Array, str]]:
    """Yield arrays of the same shape with more structure, in words."""
    if array.dtype.kind == "b":
        yield np.ones_like(array), "true everywhere"
        return
    if array.dtype.kind == "c":
        yield array.real + 0j, "real"
        return
    if array.ndim >= 2 and array.shape[-1] == array.shape[-2]:
        yield (array + array.swapaxes(-1, -2)) / 2, "symmetric"
    if array.dtype.kind == "f" and np.unique(array).size < array.size:
        ties = array + 1e-2 * np.linspace(-1, 1, array.size).reshape(array.shape)
        yield ties, "without ties (equal values)"
    if array.ndim and array.shape[-1] > 1:
        yield np.sort(array, axis=-1), "sorted"
        yield np.sort(array, axis=-1)[..., ::-1].copy(), "sorted in descending order"
    if array.dtype.kind in "iu":
        if array.ndim == 1 and np.unique(array).size < array.size <= array.max(initial=0) + 1:
            yield np.arange(array.size), "without repeated values (duplicates)"
        return
    if (array == np.round(array)).any():
        yield array + np.where(array == np.round(array), 0.21, 0.0), "free of whole numbers"
    if (array == 0).any():
        yield np.where(array == 0, 0.3, array), "not zero anywhere"


def _with_simple_values(array: Array) -> Iterator[tuple[Array, str]]:
    """Yield arrays of the same shape with simple values, in words."""
    if array.dtype.kind != "f":
        return
    yield np.abs(array), "positive"
    yield -np.abs(array), "negative"
    yield np.ones_like(array), "one everywhere"
    yield 0.05 * array, "small"
    yield 20.0 * array, "large"


def _of_sizes(e: Evidence) -> Iterator[tuple[str, Subject]]:
    """Yield calls of other sizes, in words."""
    session, subject = e.session, e.session.subject
    found = symbols(session)
    for symbol in _separable(found, subject):
        one = subject.with_leaves(resized(session, symbol, 1))
        yield f"{_axis(subject, symbol)} has length 1", one
    for symbol in found:
        for length in (symbol.length + 1, symbol.length - 1):
            parity = "even (not odd)" if length % 2 == 0 else "odd (not even)"
            other = subject.with_leaves(resized(session, symbol, length))
            yield f"the length of {_axis(subject, symbol)} is {parity}", other
    for longer, shorter in itertools.permutations(found, 2):
        shared = {k for k, _ in longer.axes} & {k for k, _ in shorter.axes}
        if longer.length > shorter.length and shared:
            names = quoted(subject.labels[k] for k in sorted(shared))
            square = subject.with_leaves(resized(session, longer, shorter.length))
            yield f"{names} is square", square


def _separable(found: list[Symbol], subject: Subject) -> Iterator[Symbol]:
    """Yield axes that may be of length 1 alone; first axes without others of their length."""
    for symbol in found:
        arrays = [k for k, _ in symbol.axes]
        if all(np.ndim(subject.leaves[k]) < 2 for k in arrays):
            continue
        if len(set(arrays)) == len(arrays):
            yield symbol
        elif first := tuple((k, axis) for k, axis in symbol.axes if axis == 0):
            yield Symbol(symbol.length, first)


def _axis(subject: Subject, symbol: Symbol) -> str:
    """Return the axes of a symbol in words."""
    names = quoted(dict.fromkeys(subject.labels[k] for k, _ in symbol.axes))
    axes = sorted({axis for _, axis in symbol.axes})
    ndim = max(np.ndim(subject.leaves[k]) for k, _ in symbol.axes)
    if axes == [0] and ndim > 1:
        return f"axis 0 (the batch) of {names}"
    return f"axis {', '.join(map(str, axes))} of {names}"
