"""The gradient of another call: of other settings, or of other values of another argument.

A rule that ignores a setting, inverts a mask, reads an array after it was changed or leaves out
weights returns what would be right if that argument were another: so forward is measured there.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pullback.check.explain.evidence import Evidence
from pullback.check.naming import axes_text
from pullback.check.report import Cause
from pullback.check.subject import Subject
from pullback.check.values import Array

_MOST = 60  # other calls that are tried for one argument
_TURNED = "a kernel that is not flipped, a matrix not transposed?"


class Other(NamedTuple):
    """A call with another value of one argument, and what it would mean.

    Attributes
    ----------
    subject : Subject
    cause : str
        The name of the cause.
    text : str
        What is said of the gradient, after its name.
    hint : str
    """

    subject: Subject
    cause: str
    text: str
    hint: str = ""


def other_value(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one argument had another value."""
    others = itertools.chain(_with_settings(e), _with_arrays(e, i))
    return _first(e, i, itertools.islice(others, _MOST)) or _formula_of_output(e, i)


def other_setting(e: Evidence, i: int) -> Cause | None:
    """The gradient would be right if one setting had another value."""
    return _first(e, i, _with_settings(e))


def _first(e: Evidence, i: int, others: Iterable[Other]) -> Cause | None:
    """Return the cause of the first call that has backward's gradient."""
    for other in others:
        if not e.may_be_that_of(other.subject, i):
            continue
        found = e.of(other.subject)
        if found is None or [g.shape for g in found.outputs] != [g.shape for g in e.outputs]:
            continue
        if e.fits(i, found.numerical(e.seeds)[i]) and e.matches(
            e.got_other[i], found.numerical(e.other_seeds)[i]
        ):
            return Cause(other.cause, f"`{e.names[i]}`: {other.text}", other.hint)
    return None


def _with_settings(e: Evidence) -> Iterator[Other]:
    """Yield calls with other settings."""
    for name, value, other, found in changed_settings(e.session.subject):
        text = f"the gradient is that with `{name}` = {other!r}, not {value!r}"
        yield Other(found, "other-value", text, _hint(name))


def _with_arrays(e: Evidence, i: int) -> Iterator[Other]:
    """Yield calls with other arrays, the likeliest mistakes first."""
    subject = e.session.subject
    leaves = subject.leaves_on_host()
    for k, leaf in enumerate(leaves):
        if not isinstance(leaf, np.ndarray) or not leaf.size:
            continue
        own = k == subject.tracked[i]
        for turned, cause, text, hint in (*_shared(e, k, leaf), *(() if own else _turned(leaf))):
            if turned.shape == leaf.shape and not np.array_equal(turned, leaf):
                changed = [turned.astype(leaf.dtype) if j == k else v for j, v in enumerate(leaves)]
                label = f"`{subject.labels[k]}`"
                words = f"{label} is used as if it were {text}"
                if own:
                    words = f"the derivative is taken at {text} instead of {label}"
                yield Other(subject.with_leaves(changed), cause, words, hint)
    yield from _exchanged(subject, subject.tracked[i])


def _exchanged(subject: Subject, own: int) -> Iterator[Other]:
    """Yield calls in which two other arrays are exchanged."""
    leaves = subject.leaves_on_host()
    arrays = [k for k, v in enumerate(leaves) if isinstance(v, np.ndarray) and k != own]
    for a, b in itertools.combinations(arrays, 2):
        if leaves[a].shape == leaves[b].shape and leaves[a].dtype == leaves[b].dtype:
            changed = list(leaves)
            changed[a], changed[b] = leaves[b], leaves[a]
            names = f"`{subject.labels[a]}` and `{subject.labels[b]}`"
            words = f"{names} are used as if they were exchanged"
            yield Other(subject.with_leaves(changed), "swapped", words)


def _hint(name: str) -> str:
    if re.match("seed|rng", name):
        return "backward must not draw again: save the mask or the noise that forward drew"
    if re.match("axis|axes|dim", name):
        return f"bring a negative axis into range first: {name} % x.ndim"
    return f"does backward use the setting `{name}`?"


def changed_settings(subject: Subject) -> Iterator[tuple[str, Any, Any, Subject]]:
    """Yield a setting's name, its value, one that a rule may have used, and the call with that."""
    for name, value in subject.settings():
        for other in _values_of_setting(value, subject.default_of(name)):
            found = subject.with_setting(name, other)
            if found is not None:
                yield name, value, other, found


def _values_of_setting(value: Any, default: Any) -> Iterator[Any]:
    """Yield other values of a setting."""
    found: list[Any] = [] if default is inspect.Parameter.empty else [default]
    if isinstance(value, bool):
        found.append(not value)
    elif isinstance(value, (int, float)) and np.isfinite(value):
        found += [-value, 0 * value, 0 * value + 1]
        found += [1 - value] if 0 < value < 1 else []
        found += [value + 1, value - 1] if isinstance(value, int) else []
    for k, other in enumerate(found):
        if (type(other), other) not in [(type(v), v) for v in (value, *found[:k])]:
            yield other


def _shared(e: Evidence, k: int, leaf: Array) -> Iterator[tuple[Array, str, str, str]]:
    """Yield the outputs and the other arrays of the same shape and kind in place of an array."""
    for name, out in e.named_outputs:
        if out.dtype.kind == leaf.dtype.kind:
            hint = "changed in place before it is used, or saved in its place?"
            yield out, "other-value", name, hint
    subject = e.session.subject
    for j, other in enumerate(subject.leaves_on_host()):
        if j != k and isinstance(other, np.ndarray) and other.dtype.kind == leaf.dtype.kind:
            yield other, "other-value", f"`{subject.labels[j]}`: the two are exchanged?", ""


def _turned(array: Array) -> Iterator[tuple[Array, str, str, str]]:
    """Yield an array rearranged, inverted, or without effect."""
    axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    if array.dtype.kind == "b":
        yield ~array, "other-value", "the inverse mask", ""
        yield np.ones_like(array), "other-value", "a mask that is true everywhere", ""
        return
    for count in range(1, len(axes) + 1):
        for some in itertools.combinations(axes, count):
            text = f"reversed along {axes_text(some)}"
            yield np.flip(array, some).copy(), "misplaced", text, _TURNED
    if array.ndim >= 2 and array.shape[-1] == array.shape[-2]:
        yield array.swapaxes(-1, -2).copy(), "transposed", "transposed", _TURNED
        both = (array + array.swapaxes(-1, -2)) / 2
        yield both, "transposed", "symmetric: the mean of it and its transpose", _TURNED
    for axis in axes:
        for step in (1, -1):
            text = f"shifted by one place along axis {axis}"
            yield np.roll(array, step, axis), "misplaced", text, "off by one?"
    if array.ndim == 1 and array.size > 1:
        yield np.sort(array), "misplaced", "sorted", "put the gradient back in the inverse order"
    if array.dtype.kind in "iu":
        if array.ndim == 1 and np.array_equal(np.sort(array), np.arange(array.size)):
            yield np.argsort(array), "misplaced", "its inverse permutation", ""
        return
    yield np.ones_like(array), "extra-factor", "ones: a factor left out", ""
    yield -array, "sign", "negative: it has the wrong sign in one term", ""
    if array.dtype.kind == "c":
        yield array.conj(), "conjugated", "conjugated", ""


def _formula_of_output(e: Evidence, i: int) -> Cause | None:
    """Backward's formula is right for the output, but is given the argument."""
    for name, out in e.named_outputs:
        if out.shape != e.arrays[i].shape or out.dtype != e.arrays[i].dtype:
            continue
        at_output = e.with_arrays([*e.arrays[:i], out, *e.arrays[i + 1 :]])
        if at_output is None:
            continue
        same = [g.shape for g in at_output.outputs] == [g.shape for g in e.outputs]
        if same and e.matches(at_output.vjp(e.seeds)[i], e.expected[i]):
            text = f"`{e.names[i]}`: the formula for {name} is applied to `{e.names[i]}` itself"
            return Cause("other-value", text, f"save {name} instead of the input")
    return None
